"""The leaves of a dump before upstream planned them, and as its last pass has them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ascend_kernels.schedule.parts import (
    COPIES,
    INWARD,
    PUTTERS,
    TAKERS,
    Leaf,
    TileOperand,
    TileOperation,
)
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph
from ascend_kernels.schedule.reader.dump_leaves import LeafReader, entries_of
from ascend_kernels.schedule.reader.upstream_dump import CHIP, FIRST_LEAVES, LAST_PASS
from pypto_cast.dtypes.data_types import DataType
from tiling.chips import chip_named

UB_BYTES: Final = chip_named(CHIP).ub_bytes
_FORMATS: Final = {int(dtype): dtype.format for dtype in DataType if dtype.format is not None}
_UB: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedLeaf:
    """One leaf of a dump.

    Attributes:
        graph: after pass 27; the number of a buffer is that of its raw tensor.
        plain: its operations with the valid shapes of the first caller.
        leaf: after pass 36.
        buffers: after pass 36, the buffer of each tensor in UB, by the tensor's number.
        gm_tensors: after pass 36, what each copy touches.
    """

    graph: LeafGraph
    plain: tuple[TileOperation, ...]
    leaf: Leaf
    buffers: Mapping[int, int]
    gm_tensors: tuple[int, ...]

    @property
    def spills(self) -> bool:
        """The leaf copies more than it was given to copy."""
        return len(self.gm_tensors) > len(self.graph.gm_tensors)


def leaves_of(folder: Path) -> Iterator[DumpedLeaf]:
    """The leaves of the vector core of a dump, but for those in which nothing is copied."""
    last = {_hash(path): path for path in folder.glob(f"{LAST_PASS}/After_*_LEAF_*.json")}
    for path in sorted(folder.glob(f"{FIRST_LEAVES}/After_*_LEAF_*.json")):
        first, then = _function(path), _function(last[_hash(path)])
        kinds = {each["mem_type"]["asis"] for each in then["tensors"]}
        if kinds == {_UB, 15}:
            yield _leaf(first, then)


def _leaf(first: dict[str, Any], then: dict[str, Any]) -> DumpedLeaf:
    entries = entries_of(first)
    leaf = LeafReader(then, {}, {}, {}, entries, _FORMATS, UB_BYTES).read().leaf
    plain = _early(first, entries)
    # The names of valid shapes come with the pass that follows.
    names = {each["magic"]: each["dynvalidshape"] for each in then["tensors"]}
    for shape in [*names.values()]:  # a reload has those of the copy that it replaces
        for kind, *name in shape:
            if kind == 1 and (found := re.fullmatch(r"sym_(\d+)_dim_\d+", str(name[0]))):
                names.setdefault(int(found[1]), shape)
    for each in first["tensors"]:
        each["dynvalidshape"] = names.get(each["magic"], each["dynvalidshape"])
    operations = [each for each in first["operations"] if not _is_view_of_gm(first, each)]
    return DumpedLeaf(
        graph=LeafGraph(
            operations=_early(first, entries),
            reads=tuple(tuple(each["ioperands"]) for each in operations),
            writes=tuple(tuple(each["ooperands"]) for each in operations),
            gm_tensors=_copied(first, "rawtensor"),
        ),
        plain=plain,
        leaf=leaf,
        buffers={
            each["magic"]: each["mem_id"]
            for each in then["tensors"]
            if each["mem_type"]["asis"] == _UB
        },
        gm_tensors=_copied(then, "mem_id"),
    )


def _early(function: dict[str, Any], entries: Mapping[int, int]) -> tuple[TileOperation, ...]:
    """Operations whose buffers are raw tensors, without an address."""
    for each in function["tensors"]:
        if each["mem_type"]["asis"] == _UB:
            each["mem_id"], each["mem_range"] = each["rawtensor"], [0, 0]
    packed = [x for each in function["operations"] if each["opcode"] == "BRCB" for x in _ends(each)]
    for each in function["operations"]:  # the last pass says it of copies
        if each["opcode"] in INWARD and each["ooperands"][0] in packed:
            each["op_attr"] = {**(each.get("op_attr") or {}), "op_attr_output_combine_axis": [True]}
    leaf = LeafReader(function, {}, {}, {}, entries, _FORMATS, UB_BYTES).read().leaf

    def raw(operand: TileOperand) -> TileOperand:
        if operand.buffer is None:
            return operand
        return replace(operand, buffer=int(leaf.buffers[operand.buffer].name))

    return tuple(
        replace(each, inputs=tuple(map(raw, each.inputs)), outputs=tuple(map(raw, each.outputs)))
        for each in leaf.operations
    )


def _ends(operation: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of the first tensor that an operation reads, and that it writes."""
    return operation["ioperands"][0], operation["ooperands"][0]


def _is_view_of_gm(function: Mapping[str, Any], operation: Mapping[str, Any]) -> bool:
    in_gm = {x["magic"] for x in function["tensors"] if x["mem_type"]["asis"] != _UB}
    return operation["opcode"] == "VIEW" and {*_ends(operation)} <= in_gm


def _copied(function: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """The places that copies touch in GM, those that operations read there, ends of reshapes."""
    numbers = {each["magic"]: each[key] for each in function["tensors"]}
    in_gm = {x["magic"] for x in function["tensors"] if x["mem_type"]["asis"] != _UB}
    copied = (
        _ends(each)[each["opcode"] not in INWARD]
        for each in function["operations"]
        if each["opcode"] in COPIES
    )
    reshaped = (
        end
        for each in function["operations"]
        if each["opcode"] == "RESHAPE" and {*_ends(each)} <= in_gm
        for end in _ends(each)
    )
    taken = (
        tensor
        for each in function["operations"]
        if each["opcode"] in TAKERS | PUTTERS
        for tensor in each["ioperands"]
        if tensor in in_gm
    )
    return tuple(numbers[each] for each in (*copied, *taken, *reshaped))


def _function(path: Path) -> dict[str, Any]:
    (found,) = json.loads(path.read_text(encoding="utf-8"))["functions"]
    assert isinstance(found, dict)
    return found


def _hash(path: Path) -> str:
    return path.stem.split("_LEAF_")[1] + path.stem.split("_TENSOR_")[1]
