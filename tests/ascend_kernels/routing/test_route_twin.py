"""Routes in the compiled kernel: the simulator's bits, by the same instructions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from support.numbers.codes import SEED, source_codes
from support.programs.twin_programs import needs_twin, random_codes

from ascend_kernels import instances, tiling_data, twin
from ascend_kernels.matrix import MATRIX, CastStep, Operand, Resolution, resolve
from ascend_kernels.program import TileProgram
from ascend_kernels.routing.chain_ranking import chain_of_text
from ascend_kernels.routing.chains import MOST_WORK, Chain, all_chains, resolution_of, route_program
from ascend_kernels.routing.vector_rows import storage_format
from ascend_kernels.routing.verdict_table import recorded_rows
from simulator.machine.execute import execute
from simulator.numbers import formats as f
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Format
from tiling.chips import A2_A3, DEFAULT_CHIP
from tiling.grid import Shape

BEST = tuple(dict.fromkeys(routes[0].route for routes in recorded_rows().values()))
"""The best route of every pair and mode, in words."""


@pytest.fixture(autouse=True, scope="module")
def _twin() -> None:
    needs_twin()


def program_of(chain: Chain, shape: Shape, tile: Shape) -> TileProgram:
    return route_program(chain, shape, tile, DEFAULT_CHIP)


def values_for(fmt: Format, dst: Format, elems: int) -> np.ndarray:
    """Codes at which roundings decide, then random ones."""
    codes = source_codes(fmt.name, dst.name)
    codes = codes[:: -(-2 * codes.size // elems)].astype(fmt.code_dtype)
    random = random_codes(fmt, elems - codes.size, SEED)
    return values_of(
        np.concatenate([codes, random]).astype(storage_format(fmt).code_dtype), storage_format(fmt)
    )


@pytest.mark.parametrize("text", BEST)
@pytest.mark.sampled(4)
def test_every_best_route_gives_the_simulators_bits(text: str) -> None:
    chain = chain_of_text(text)
    values = values_for(chain.src, chain.dst, 4096)
    for shape, tile in (((4096,), (1000,)), ((8, 512), (2, 64)), ((64, 64), (3, 64))):
        program = program_of(chain, shape, tile)
        expected = execute(program, values)
        np.testing.assert_array_equal(twin.execute(program, values), expected)


@pytest.mark.parametrize("text", BEST)
@pytest.mark.sampled(3)
def test_every_best_route_has_the_programs_instructions(text: str) -> None:
    for shape, tile in (((6000,), (90,)), ((8, 512), (2, 64))):
        program = program_of(chain_of_text(text), shape, tile)
        for core in (program.cores[0], program.cores[-1]):
            assert twin.trace(program, core) == list(program.instructions(core))


def test_chains_of_up_to_four_casts_wherever_their_results_lie() -> None:
    """Results between casts stay in the input's buffer, in the output's or in the scratch."""
    seen = set()
    pairs = ((f.FP32, f.INT8), (f.INT64, f.INT4), (f.INT4, f.INT64), (f.BF16, f.FP16))
    for src, dst in pairs:
        for chain in list(all_chains(src, dst, 4))[::997]:
            program = program_of(chain, (640,), (130,))
            values = values_of(random_codes(src, 640, SEED), src)
            np.testing.assert_array_equal(
                twin.execute(program, values, threads=2), execute(program, values), str(chain)
            )
            assert twin.trace(program, 0) == list(program.instructions(0))
            places = [step.target for step in program.resolution.casts]
            seen.add((len(places), *set(places)))
    assert {length for length, *_ in seen} >= {2, 3, 4}
    assert {place for _, *places in seen for place in places} == set(Operand)


def test_a_planted_wrong_step_changes_the_bits() -> None:
    values = values_for(f.FP32, f.INT8, 4096)
    right, wrong = (
        twin.execute(program_of(chain_of_text(text), (4096,), (512,)), values)
        for text in (
            "FP32 -> FP16 CAST_ODD -> INT8 CAST_RINT",
            "FP32 -> FP16 CAST_TRUNC -> INT8 CAST_RINT",
        )
    )
    assert (right != wrong).any()


# --- Instances ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", BEST)
def test_every_best_route_has_an_instance(text: str) -> None:
    chain = chain_of_text(text)
    number = instances.instance_number(resolution_of(chain))
    data = tiling_data.tiling_data(program_of(chain, (64,), (64,)))
    if len(chain.work) == 1 and isinstance(chain.work[0], CastStep):
        assert number < len(instances.A2_A3_TARGET.instances)
        assert (data.step_count, *data.steps) == (0,) * (1 + len(data.steps))
        return
    route = instances.A2_A3_TARGET.route_instances[number - len(instances.A2_A3_TARGET.instances)]
    assert (route.src.bits, route.dst.bits) == (
        storage_format(chain.src).bits,
        storage_format(chain.dst).bits,
    )
    steps = resolution_of(chain).steps
    assert data.step_count == len(steps)
    places = list(Operand)
    for step, word, scalar in zip(steps, data.steps, data.scalars, strict=False):
        number, source, target, truncates = word.to_bytes(4, "little")
        assert (places[source], places[target]) == (step.source, step.target)
        if isinstance(step, CastStep):
            native = instances.A2_A3_TARGET.instances[number]
            assert (native.rule.src, native.rule.dst) == (step.src, step.dst)
            assert (native.mode, truncates, scalar) == (step.mode, step.truncates, 0)
        else:
            assert instances.SCALARS[number - len(instances.A2_A3_TARGET.instances)] == (
                step.op,
                step.format,
            )
            assert scalar == tiling_data.scalar_word(step.format, step.scalar)


def low_bits_of_another_row() -> Resolution:
    found = resolve(A2_A3, f.INT32, f.INT16, saturate=False)
    return dataclasses.replace(found, steps=found.steps * 2)


def too_many_casts() -> Resolution:
    found = resolve(A2_A3, f.FP32, f.FP32)
    return dataclasses.replace(found, steps=found.steps * (MOST_WORK + 1))


def low_byte_alone() -> Resolution:
    found = resolve(A2_A3, f.FP16, f.INT8, saturate=False)
    return dataclasses.replace(found, rule=MATRIX[A2_A3][f.FP16, f.INT16], steps=found.steps[:3])


@pytest.mark.parametrize("made", [low_bits_of_another_row, too_many_casts, low_byte_alone])
def test_other_steps_have_no_instance(made: Callable[[], Resolution]) -> None:
    with pytest.raises(ValueError, match=r"no instance for .* at most 12 instructions that"):
        instances.instance_number(made())
