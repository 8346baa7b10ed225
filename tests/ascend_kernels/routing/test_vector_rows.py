"""Rows of vector instructions, and routes with them, against exact fractions."""

from __future__ import annotations

import numpy as np
import pytest
from support.numbers.oracle import rounded_once, with_scalar
from support.programs.route_oracle import along
from support.programs.twin_programs import needs_twin

from ascend_kernels import twin
from ascend_kernels.routing.chain_check import all_values, between_thresholds, enumerated
from ascend_kernels.routing.chain_ranking import (
    chain_of_text,
    chain_verdict,
    ranked_chains,
)
from ascend_kernels.routing.chains import (
    ROUTE_FORMATS,
    Chain,
    NativeCast,
    all_chains,
    function_of,
    route_program,
)
from ascend_kernels.routing.vector_rows import (
    STORAGE_FORMATS,
    VECTOR_ROWS,
    VectorRow,
    storage_format,
)
from simulator.machine.core import SCALAR_FORMATS, ScalarWork
from simulator.machine.execute import execute
from simulator.machine.isa import ScalarOp
from simulator.numbers import formats as f
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Codes, Format
from simulator.numbers.rounding import RoundMode, boundary_codes
from tiling.chips import DEFAULT_CHIP

WORKING_ROWS = [row for row in VECTOR_ROWS if row.work]
every_row = pytest.mark.parametrize("row", WORKING_ROWS, ids=lambda row: f"{row} {row.suffix}")


def sample(fmt: Format, most: int = 3000) -> Codes:
    codes = boundary_codes(fmt)
    return codes[:: -(-codes.size // most)]


def chains_of(row: VectorRow) -> list[Chain]:
    return [Chain(casts=(NativeCast(rule=row, mode=mode),)) for mode in row.modes or (None,)]


@every_row
def test_a_row_does_what_its_instructions_do(row: VectorRow) -> None:
    codes = sample(row.src)
    for chain in chains_of(row):
        found = function_of(chain.conversions)(codes)
        assert found.tolist() == along(codes.tolist(), chain), str(chain)


@every_row
def test_program_and_compiled_kernel_give_the_bits_of_a_row(row: VectorRow) -> None:
    codes = np.resize(sample(row.src, 1500), 2048).astype(storage_format(row.src).code_dtype)
    values = values_of(codes, storage_format(row.src))
    needs_twin()
    for chain in chains_of(row)[:1]:
        wanted = function_of(chain.conversions)(codes)
        for shape, tile in (((2048,), (300,)), ((16, 128), (8, 64))):
            program = route_program(chain, shape, tile, DEFAULT_CHIP)
            for fidelity in ("fast", "instructions"):
                found = execute(program, values, fidelity=fidelity)
                np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(twin.execute(program, values), wanted)
            assert twin.trace(program, 0) == list(program.instructions(0))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("src", [x for x in ROUTE_FORMATS if x.bits <= 8], ids=str)
def test_verdicts_of_small_sources_are_the_oracles(src: Format) -> None:
    for dst in ROUTE_FORMATS:
        if src is dst or not {src, dst} & set(STORAGE_FORMATS):
            continue
        for mode in (RoundMode.RINT, RoundMode.CEIL):
            best, *_ = ranked_chains(all_values(src, dst), mode, 3)
            found = along([*range(1 << src.bits)], best.chain)
            wrong = [
                code
                for code, one in enumerate(found)
                if one != rounded_once(code, src.name, dst.name, mode.name)
            ]
            assert best.verdict.differing == len(wrong) == 0, str(best.chain)


@pytest.mark.exhaustive
@pytest.mark.parametrize("src", [x for x in ROUTE_FORMATS if x.bits == 16], ids=str)
def test_verdicts_of_16_bit_sources_are_the_oracles(src: Format) -> None:
    for dst in ROUTE_FORMATS:
        if src is dst or not {src, dst} & set(STORAGE_FORMATS):
            continue
        is_rounded = isinstance(dst, f.FloatFormat) or isinstance(src, f.FloatFormat)
        for mode in RoundMode if is_rounded and dst is not f.BOOL else (RoundMode.RINT,):
            best, *_ = ranked_chains(all_values(src, dst), mode, 3)
            wrong = sum(
                one != rounded_once(code, src.name, dst.name, mode.name)
                for code, one in enumerate(along([*range(1 << 16)], best.chain))
            )
            assert best.verdict.differing == wrong, str(best.chain)


def test_thresholds_in_parts_count_what_enumeration_counts() -> None:
    seen = set()
    for src in (f.FP16, f.BF16, f.INT16, f.UINT16):
        for one in list(all_chains(src, f.BOOL, 3))[::7]:
            ask = all_values(src, f.BOOL)
            truth = (
                function_of(chain_of_text(f"{src} -> INT32 -> BOOL").conversions)
                if (src is f.UINT16)
                else function_of(next(iter(all_chains(src, f.BOOL, 2))).conversions)
            )
            found = function_of(one.conversions)
            fast, slow = between_thresholds(ask, found, truth), enumerated(ask, found, truth)
            for name in ("codes", "differing", "first", "largest_error", "exact_range"):
                assert getattr(fast, name) == getattr(slow, name), f"{one} {name}"
            seen.add(fast.differing > 0)
    assert seen == {True, False}


@pytest.mark.parametrize("wrong", [2.0**-23, 2.0**-25, 1.0])
def test_a_planted_wrong_scale_changes_the_verdict(wrong: float) -> None:
    right = chain_of_text("FP16 -> FP32 -> FP16 CAST_ODD scaled -> INT8 CAST_RINT")
    ask = all_values(f.FP16, f.INT8)
    found = chain_verdict(ask, right, RoundMode.ODD)
    assert found is not None
    assert found.is_exact
    planted = tuple(
        ScalarWork(op=one.op, format=one.format, scalar=wrong)
        if isinstance(one, ScalarWork) and one.format is f.FP32
        else one
        for one in right.conversions
    )
    function = function_of(right.conversions)
    assert enumerated(ask, function_of(planted), function).differing > 1000


def test_a_scaled_route_names_the_rules_that_it_rests_on() -> None:
    chain = chain_of_text("FP16 -> FP32 -> FP16 CAST_ODD scaled -> INT8 CAST_RINT")
    found = chain_verdict(all_values(f.FP16, f.INT8), chain, RoundMode.ODD)
    assert found is not None
    underflow, subnormals = found.rests_on
    assert "CAST_ODD below the smallest subnormal" in underflow
    assert "Muls takes and gives subnormal numbers; were they zero" in subnormals


def test_nan_of_a_clamp_is_not_rested_on() -> None:
    """A NaN becomes 0 in integers, whether the clamp at 0 keeps it or not."""
    chain = chain_of_text("FP16 -> FP32 -> UINT32 CAST_RINT")
    found = chain_verdict(all_values(f.FP16, f.UINT32), chain, RoundMode.RINT)
    assert found is not None
    assert found.is_exact
    assert found.rests_on == ()


# --- The instructions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "fmt"), [(op, fmt) for op, known in SCALAR_FORMATS.items() for fmt in known], ids=str
)
def test_an_instruction_with_a_scalar_is_the_oracles(op: ScalarOp, fmt: Format) -> None:
    codes = sample(fmt, 2000)
    is_shift = op in (ScalarOp.SHIFT_LEFT, ScalarOp.SHIFT_RIGHT)
    scalars = (0, 1, fmt.bits - 1, fmt.bits) if is_shift else (0, 1, 100)
    if op is ScalarOp.MULS:
        scalars = (0.5, 4096.0, 2.0**-12)
    for scalar in scalars:
        found = ScalarWork(op=op, format=fmt, scalar=scalar).reference(codes)
        wanted = [with_scalar(code, op.value, fmt.name, scalar) for code in codes.tolist()]
        assert found.tolist() == wanted, scalar
