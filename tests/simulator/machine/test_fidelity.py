"""Both fidelities, both completions and both kinds of conversion give the same bits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.numbers.codes import SEED, as_codes, as_values, random_codes
from support.programs.listings import chip_of

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX, resolve
from ascend_kernels.program import TileProgram, lower
from simulator.machine.execute import FIDELITIES, execute, run
from simulator.machine.pipes import COPY_COMPLETIONS, CopyCompletion
from simulator.numbers import formats as f
from simulator.numbers.formats import Codes, Format
from tiling.chips import A2_A3, CHIPS, DEFAULT_CHIP, Chip
from tiling.grid import Shape
from tiling.plan import plan
from tiling.ub import ElementBits

CASTS = [(src, dst, saturate) for src, dst in MATRIX[A2_A3] for saturate in (True, False)]
every_cast = pytest.mark.parametrize(
    ("src", "dst", "saturate"),
    [
        pytest.param(s, d, saturate, id=f"{s}-{d}-{'on' if saturate else 'off'}".lower())
        for s, d, saturate in CASTS
    ],
)


def program_of(
    shape: Shape,
    tile: Shape,
    src: Format,
    dst: Format,
    *,
    saturate: bool = True,
    chip: Chip = DEFAULT_CHIP,
) -> TileProgram:
    resolution = resolve(A2_A3, src, dst, saturate=saturate)
    bits = ElementBits(src=src.bits, dst=dst.bits, tmp=resolution.tmp_bits)
    return lower(plan(shape, tile, bits, chip), resolution)


def values_of(shape: Shape, src: Format) -> np.ndarray:
    return as_values(random_codes(shape, src.name, salt=f"{src}{shape}"), src.name)


def fast(program: TileProgram, values: np.ndarray) -> Codes:
    return execute(program, values)


def by_instruction(
    program: TileProgram,
    values: np.ndarray,
    copy_completion: CopyCompletion,
    *,
    exact: bool = False,
) -> Codes:
    return execute(
        program, values, fidelity="instructions", copy_completion=copy_completion, exact=exact
    )


def assert_one_result(program: TileProgram, values: np.ndarray, *, exact: bool = False) -> None:
    wanted = fast(program, values)
    np.testing.assert_array_equal(execute(program, values, engine="numpy"), wanted)
    for copy_completion in COPY_COMPLETIONS:
        found = by_instruction(program, values, copy_completion, exact=exact)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.exhaustive
@every_cast
def test_every_tail_of_a_row(src: Format, dst: Format, saturate: bool) -> None:
    """Rows of 1 to 64 elements, and tiles that leave a tail of 1 to 64 behind a whole tile."""
    step = 2 if 4 in (src.bits, dst.bits) else 1
    for cols in range(step, 64 + step, step):
        shape, tile = ((3, cols), (2, 64)) if cols % (2 * step) else ((3, 64 + cols), (2, 64))
        program = program_of(shape, tile, src, dst, saturate=saturate, chip=chip_of(1))
        values = values_of(shape, src)
        copy_completion = COPY_COMPLETIONS[cols // step % 2]
        np.testing.assert_array_equal(
            by_instruction(program, values, copy_completion), fast(program, values)
        )


@every_cast
@pytest.mark.sampled(3)
def test_the_definition_and_the_fast_paths(src: Format, dst: Format, saturate: bool) -> None:
    program = program_of((5, 38), (2, 16), src, dst, saturate=saturate, chip=chip_of(3))
    assert_one_result(program, values_of((5, 38), src), exact=True)


SHAPES = [
    ((130,), (32,)),
    ((7, 50), (3, 32)),
    ((3, 5, 34), (2, 2, 32)),
    ((2, 3, 4, 18), (1, 2, 3, 16)),
    ((3, 2, 2, 64), (2, 2, 1, 64)),
]


@pytest.mark.parametrize(("shape", "tile"), SHAPES, ids=str)
@every_cast
@pytest.mark.sampled(6)
def test_shapes_of_1_to_4_axes(
    shape: Shape, tile: Shape, src: Format, dst: Format, saturate: bool
) -> None:
    program = program_of(shape, tile, src, dst, saturate=saturate, chip=chip_of(2))
    assert_one_result(program, values_of(shape, src))


@pytest.mark.parametrize("chip", ["Ascend910B1", "Ascend910B3"])
@pytest.mark.parametrize("tiles", [1, 2, 39, 40, 41, 47, 48, 49, 97])
@pytest.mark.sampled(12)
def test_1_to_48_cores(chip: str, tiles: int) -> None:
    for src, dst, saturate in ((f.FP32, f.FP16, True), (f.FP16, f.INT8, False)):
        shape = (32 * (tiles - 1) + 7,)
        program = program_of(shape, (32,), src, dst, saturate=saturate, chip=CHIPS[chip])
        assert len(program.cores) == min(tiles, CHIPS[chip].vector_cores)
        assert_one_result(program, values_of(shape, src))


@pytest.mark.parametrize(
    ("shape", "src", "dst", "saturate"),
    [
        pytest.param((20000,), f.FP32, f.FP16, True, id="part-of-a-row"),
        pytest.param((3, 9000), f.FP32, f.FP16, True, id="rows"),
        pytest.param((2, 2, 2, 3600), f.FP32, f.FP16, True, id="4d"),
        pytest.param((60001,), f.FP16, f.INT8, False, id="scratch"),
        pytest.param((30001,), f.FP16, f.INT16, False, id="more-scratch"),
        pytest.param((70002,), f.INT4, f.FP16, True, id="int4"),
        pytest.param((3, 21846), f.FP16, f.INT4, True, id="to-int4"),
    ],
)
def test_tiles_that_pass_in_parts(shape: Shape, src: Format, dst: Format, saturate: bool) -> None:
    program = program_of(shape, shape, src, dst, saturate=saturate)
    assert len(program.plan.grid) == 1
    assert not program.plan.ub.is_double_buffered
    assert len(list(program.parts(0))) >= 2
    assert_one_result(program, values_of(shape, src))


@st.composite
def programs(draw: st.DrawFn) -> TileProgram:
    src, dst, saturate = draw(st.sampled_from(CASTS))
    axes = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), max_size=3))
    cols, tile_cols = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    step = 2 if 4 in (src.bits, dst.bits) else 1
    shape = (*(s for s, _ in axes), cols * step)
    tile = (*(t for _, t in axes), tile_cols * step)
    chip = chip_of(draw(st.integers(1, 6)))
    return program_of(shape, tile, src, dst, saturate=saturate, chip=chip)


@pytest.mark.slow
@given(programs())
@settings(max_examples=150)
def test_any_shape_and_tile(program: TileProgram) -> None:
    assert_one_result(program, values_of(program.plan.shape, program.conversions[0].src))


def test_gm_is_written_and_the_input_is_not() -> None:
    """The bytes of GM are the caller's."""
    program = program_of((5, 34), (2, 16), f.FP32, f.FP16)
    values = values_of((5, 34), f.FP32)
    x = values.view(np.uint8).reshape(-1)
    x.flags.writeable = False
    gm = {"x": x, "y": np.full(340, 0xEE, np.uint8)}
    run(program, gm)
    np.testing.assert_array_equal(gm["y"].view(np.uint16), fast(program, values))


def test_fidelity_and_completion_are_known_words() -> None:
    program = program_of((32,), (32,), f.FP32, f.FP16)
    gm = {"x": np.zeros(128, np.uint8), "y": np.zeros(64, np.uint8)}
    with pytest.raises(ValueError, match=r"^fidelity must be one of \('fast', 'instructions'\)"):
        execute(program, np.zeros(32, np.float32), fidelity="slow")
    with pytest.raises(
        ValueError, match=r"^copy_completion must be one of \('latest', 'earliest'\)"
    ):
        run(program, gm, copy_completion="never")


# --- Through the front door --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ascend_kernels.matrix.SaturationModeWarning")
@every_cast
@pytest.mark.sampled(3)
def test_cast_gives_the_same_bits_at_either_fidelity(
    src: Format, dst: Format, saturate: bool
) -> None:
    shape = (3, 5, 70)
    x = pypto.from_numpy(values_of(shape, src))
    satmode = pypto.SaturationMode.ON if saturate else pypto.SaturationMode.OFF
    results = []
    with pypto.options(vec_tile_shapes=[2, 3, 64]):
        for copy_completion in COPY_COMPLETIONS:
            for fidelity, exact in itertools.product(FIDELITIES, (False, True)):
                with pypto.options(fidelity=fidelity, copy_completion=copy_completion, exact=exact):
                    y = pypto.cast(x, getattr(pypto, f"DT_{dst}"), satmode=satmode).numpy()
                assert y.shape == shape
                results.append(as_codes(y, dst.name))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_the_elements_are_all_different_ones() -> None:
    """The random codes would show a row that went astray."""
    codes = random_codes((7, 50), "FP32", salt=str(SEED))
    assert np.unique(codes).size > math.prod(codes.shape) * 0.9
