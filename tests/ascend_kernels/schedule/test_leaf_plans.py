"""Leaves planned here against those that upstream's compiler dumped, stage by stage."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest
from support.programs.leaf_dumps import UB_BYTES, DumpedLeaf, leaves_of
from support.programs.upstream_dumps import NAMES, unpacked

from ascend_kernels.schedule.parts import PUTTERS, TAKERS, Leaf, TileOperand, TileOperation
from ascend_kernels.schedule.planner.leaves.addresses import issued
from ascend_kernels.schedule.planner.leaves.issues import Issues
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph, operation_cycles
from ascend_kernels.schedule.planner.leaves.leaf_plan import plan_leaf
from ascend_kernels.schedule.planner.leaves.order import first_order
from ascend_kernels.schedule.planner.leaves.shared_buffers import (
    allocation_order,
    hash_order,
    with_shared_buffers,
)
from ascend_kernels.schedule.planner.leaves.spills import Spills
from ascend_kernels.schedule.planner.leaves.syncs import with_syncs
from simulator.numbers.formats import FP16, FP32, Format
from tiling.free_space import FreeSpace

SPILLING = {"reload", "spill", "spilled_argument"}


@pytest.fixture(scope="module", params=[x for x in NAMES if x != "keepdim_false"])
def dumped(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[DumpedLeaf]:
    leaves = list(leaves_of(unpacked(request.param, tmp_path_factory.mktemp("dump"))))
    assert leaves
    assert any(each.spills for each in leaves) is (request.param in SPILLING)
    return leaves


def unnamed(leaf: Leaf) -> Leaf:
    """A leaf without the numbers that upstream counts over all leaves of a kernel."""
    return replace(leaf, buffers=tuple(replace(each, name="") for each in leaf.buffers))


def in_dumped_buffers(each: DumpedLeaf) -> LeafGraph:
    """The operations before their order, in the buffers that they have in the end."""

    def moved(
        operands: tuple[TileOperand, ...], numbers: tuple[int, ...]
    ) -> tuple[TileOperand, ...]:
        return tuple(
            replace(operand, buffer=each.buffers[number]) if operand.buffer is not None else operand
            for operand, number in zip(operands, numbers, strict=True)
        )

    graph = each.graph
    rows = zip(graph.operations, graph.reads, graph.writes, strict=True)
    return replace(
        graph,
        operations=tuple(
            replace(one, inputs=moved(one.inputs, reads), outputs=moved(one.outputs, writes))
            for one, reads, writes in rows
        ),
    )


@pytest.mark.sampled(3)
def test_latencies_are_those_of_the_dump(dumped: list[DumpedLeaf]) -> None:
    """But of operations by indices in GM, for which the box there counts too."""
    for each in dumped:
        for one in each.plain:
            if one.opcode not in TAKERS | PUTTERS:
                assert operation_cycles(one) == one.latency, one


def test_results_lie_in_the_buffers_of_the_dump(dumped: list[DumpedLeaf]) -> None:
    for each in dumped:
        if not each.spills:
            assert with_shared_buffers(each.graph) == in_dumped_buffers(each)


def test_order_and_addresses_are_those_of_the_dump(dumped: list[DumpedLeaf]) -> None:
    for each in dumped:
        # A spill exchanges buffers, so the dump's are not those that the order was found with.
        graph = with_shared_buffers(each.graph) if each.spills else in_dumped_buffers(each)
        found = issued(graph, first_order(graph, allocation_order(graph)), UB_BYTES)
        wanted = tuple(one for one in each.leaf.operations if one.flag is None)
        assert found.operations == wanted
        assert [(one.address, one.size_bytes) for one in found.buffers] == [
            (one.address, one.size_bytes) for one in each.leaf.buffers
        ]


def test_syncs_are_those_of_the_dump(dumped: list[DumpedLeaf]) -> None:
    for each in dumped:
        leaf = each.leaf
        operations = tuple(one for one in leaf.operations if one.flag is None)
        assert with_syncs(operations, leaf.buffers, each.gm_tensors) == leaf.operations


def passes_through_gm(graph: LeafGraph) -> bool:
    """True if the leaf reads a tensor of GM that it writes."""
    read, written = (
        {
            graph.gm_tensors[each.access]
            for one in graph.operations
            for each in ends(one)
            if each.access is not None
        }
        for ends in (attrgetter("inputs"), attrgetter("outputs"))
    )
    return not read.isdisjoint(written)


def test_all_stages_in_a_row_give_the_leaf_of_the_dump(dumped: list[DumpedLeaf]) -> None:
    for each in dumped:
        planned = plan_leaf(each.leaf.name, each.graph, UB_BYTES)
        if not each.spills:
            assert planned.leaf == each.leaf
        assert unnamed(planned.leaf) == unnamed(each.leaf)
        assert planned.leaf.peak_ub_bytes == each.leaf.peak_ub_bytes
        if passes_through_gm(each.graph):
            continue  # places in UB do not tell which copy waits for which
        by_place = LeafGraph.of(each.graph.operations, each.graph.gm_tensors)
        assert plan_leaf(each.leaf.name, by_place, UB_BYTES) == planned


def test_spills_say_what_their_copies_move(tmp_path: Path) -> None:
    (each,) = leaves_of(unpacked("spill", tmp_path))
    copies = plan_leaf("spill", each.graph, UB_BYTES).copies
    moved = [(one.access, one.workspace_bytes) for one in copies]
    stores = [(None, 0), (None, 65_536), (None, 65_536), (None, 131_072), (None, 131_072)]
    assert moved == [(0, 0), (0, 0), *stores, (None, 0), (0, 0), (1, 0)]


# --- Leaves that no dump has ---------------------------------------------------------------------


def tile(buffer: int, *shape: int, format: Format = FP32, valid: int = 0) -> TileOperand:
    valid_shape = (*shape[:-1], valid or shape[-1])
    return TileOperand(
        buffer=buffer, format=format, shape=shape, valid_shape=valid_shape, offset=(0,) * len(shape)
    )


def copy_in(access: int, target: TileOperand) -> TileOperation:
    source = TileOperand(access=access, format=target.format)
    return TileOperation(opcode="COPY_IN", pipe="MTE2", inputs=(source,), outputs=(target,))


def copy_out(access: int, source: TileOperand) -> TileOperation:
    target = TileOperand(access=access, format=source.format)
    return TileOperation(opcode="COPY_OUT", pipe="MTE3", inputs=(source,), outputs=(target,))


def vector(opcode: str, target: TileOperand, *sources: TileOperand, line: int = 0) -> TileOperation:
    return TileOperation(
        opcode=opcode, pipe="V", inputs=sources, outputs=(target,), file="k.py", line=line
    )


@pytest.mark.parametrize(
    ("opcode", "result", "is_shared"),
    [
        ("EXPAND", tile(2, 16, 8), True),
        ("RECIPROCAL", tile(2, 16, 8, valid=1), False),
        ("ABS", tile(2, 16, 16, valid=1), False),
        ("CAST", tile(2, 16, 16, format=FP16, valid=1), False),
    ],
)
def test_a_result_shares_the_buffer_of_an_input_of_its_size(
    opcode: str, result: TileOperand, is_shared: bool
) -> None:
    narrow = tile(1, 16, 8, valid=1)
    graph = LeafGraph.of([copy_in(0, narrow), vector(opcode, result, narrow), copy_out(1, result)])
    buffers = with_shared_buffers(graph).buffer_bytes
    assert list(buffers) == ([1] if is_shared else [1, 2])


def test_an_input_with_two_readers_keeps_its_buffer() -> None:
    first, second, third = (tile(number, 8, 8) for number in (1, 2, 3))
    graph = LeafGraph.of(
        [
            copy_in(0, first),
            vector("EXP", second, first),
            vector("MUL", third, second, first),
            copy_out(1, third),
        ]
    )
    shared = with_shared_buffers(graph).operations
    assert [each.outputs[0].buffer for each in shared[:3]] == [1, 2, 2]


def test_flags_are_merged_where_a_pair_of_pipes_has_no_event_left() -> None:
    count = 10
    inputs = [tile(number, 8, 8) for number in range(count)]
    operations = [copy_in(number, each) for number, each in enumerate(inputs)]
    operations += [vector("ABS", each, each) for each in inputs]
    graph = LeafGraph.of(operations)
    planned = plan_leaf("many", graph, UB_BYTES).leaf
    by_hand = with_syncs(graph.operations, planned.buffers, range(count))
    flags = [(each.opcode, each.flag) for each in by_hand if each.flag is not None]
    sources = [flag.event_id for opcode, flag in flags if opcode == "SYNC_SRC"]
    waits = [flag.event_id for opcode, flag in flags if opcode == "SYNC_DST"]
    # Copies 0 and 1 share a flag, so that 8 has an event, and 2 and 3, so that 9 has.
    assert sources == waits == [1, 3, 4, 5, 6, 7, 0, 2]


def test_an_opcode_without_a_row_is_named() -> None:
    one, other = tile(1, 8, 8), tile(2, 8, 8)
    graph = LeafGraph.of([copy_in(0, one), vector("NOVEL", other, one, line=7)])
    with pytest.raises(ValueError, match=r"^NOVEL \(k\.py:7\) has no row here"):
        plan_leaf("leaf", graph, UB_BYTES)


def test_an_operation_that_does_not_fit_is_named() -> None:
    one, other = tile(1, 200, 128), tile(2, 200, 128)
    graph = LeafGraph.of(
        [copy_in(0, one), vector("RECIPROCAL", other, one, line=7), copy_out(1, other)]
    )
    with pytest.raises(
        ValueError,
        match=r"^RECIPROCAL \(k\.py:7\) holds 102400 B of RECIPROCAL \(k\.py:7\), 102400 B of "
        r"COPY_IN for RECIPROCAL \(k\.py:7\) in UB, which has 196608 B; a smaller tile would fit",
    ):
        plan_leaf("leaf", graph, UB_BYTES)


def test_what_finds_no_room_is_named_with_what_is_there() -> None:
    one, other = tile(1, 8, 8), tile(2, 8, 8)
    graph = LeafGraph.of([copy_in(0, one), vector("RECIPROCAL", other, one, line=7)])
    issues = Issues(graph, first_order(graph, allocation_order(graph)))
    spills, space = Spills(issues), FreeSpace(300)
    held, copy, wanted, _ = issues.order
    space.take(1, 256)
    spills.holders[1] = copy
    assert (held.buffers, wanted.buffers) == ([1], [2])
    assert str(spills.full(wanted, space)).startswith(
        "RECIPROCAL (k.py:7) needs 256 B more in UB, where there are 256 B of COPY_IN for "
        "RECIPROCAL (k.py:7); a smaller"
    )


def test_what_is_assembled_is_not_spilled() -> None:
    rows = [
        replace(tile(1, 128, 128), offset=(64 * number, 0), valid_shape=(64, 128))
        for number in (0, 1)
    ]
    whole, *others = (tile(number, 128, 128) for number in (1, 2, 3, 4, 5, 6))
    first, second, third, fourth, fifth = others
    graph = LeafGraph.of(
        [
            *(copy_in(number, each) for number, each in enumerate(rows)),
            *(vector("ASSEMBLE", whole, each, line=3) for each in rows),
            vector("RECIPROCAL", first, whole, line=4),
            vector("RECIPROCAL", second, first, line=5),
            vector("ADD", third, second, first, line=6),
            vector("ADD", fourth, third, second, line=7),
            vector("ADD", fifth, fourth, whole, line=8),
            copy_out(2, fifth),
        ]
    )
    with pytest.raises(ValueError, match=r"^ASSEMBLE \(k\.py:3\): what is assembled in UB would"):
        plan_leaf("leaf", graph, UB_BYTES)


def test_numbers_come_back_as_from_a_hash_table() -> None:
    assert hash_order(range(13)) == tuple(reversed(range(13)))
    assert hash_order([0, 13, 1]) == (1, 13, 0)
    assert hash_order([0, 1, 13]) == (1, 13, 0)
    # The fourteenth finds the table full: the others are put, in their order, into a larger one.
    assert hash_order(range(14)) == (13, *range(13))
