"""The control bits of the 950 as options: CTRL[48], [50], [53], [59] and [60] against fractions."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from ml_dtypes import float8_e4m3fn
from support.numbers import ascend950
from support.numbers.ascend950 import PAIRS, Pair
from support.numbers.codes import SEED

import pypto_cast as pypto
from ascend_kernels.program import TileProgram
from pypto_cast.cast.cast_plan import plan_cast
from pypto_cast.dtypes.data_types import DTYPE_OF
from pypto_cast.options.context import current
from simulator.machine.cast_table import CTRL_CAST, CTRL_FLOAT, CTRL_GLOBAL, CTRL_INT, CTRL_NAN
from simulator.machine.execute import SimulatorFault, execute
from simulator.machine.isa import RestoreCtrl, SetCtrl
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FORMATS, Codes
from simulator.numbers.rounding import boundary_codes
from tiling.chips import CHIPS

CHIP = "Ascend950PR"
ON, OFF = pypto.SaturationMode.ON, pypto.SaturationMode.OFF
ONLY_950 = {
    "fp8_nan": (CTRL_NAN, True),
    "int_saturation": (CTRL_INT, True),
    "global_saturation": (CTRL_GLOBAL, False),
}
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p.src}-{p.dst}".lower())
every_state = pytest.mark.parametrize(
    ("inf_nan_mode", "fp8_nan", "global_saturation"), [*itertools.product((True, False), repeat=3)]
)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    warnings.simplefilter("ignore", pypto.TileShapeWarning)
    warnings.simplefilter("ignore", pypto.SaturationModeWarning)


def drawn_codes(name: str, most: int = 128) -> Codes:
    """Codes around cuts, of both signs, and all special values; an even number of them."""
    fmt = FORMATS[name]
    codes = boundary_codes(fmt)
    if codes.size > most:
        codes = np.random.default_rng(SEED).choice(codes, most, replace=False)
    inf, nan = getattr(fmt, "inf_code", None), getattr(fmt, "nan_code", None)
    special = [code for code in (0, inf, nan, getattr(fmt, "max_code", None)) if code is not None]
    codes = np.concatenate([codes, np.array(special, fmt.code_dtype)])
    return codes[: codes.size // 2 * 2]


def cast_codes(
    codes: Codes, pair: Pair, satmode: pypto.SaturationMode | None, **chosen: Any
) -> Codes:
    src, dst = FORMATS[pair.src], FORMATS[pair.dst]
    x = pypto.tensor(None, DTYPE_OF[src], data=values_of(codes.reshape(1, -1), src))
    with pypto.options(chip=CHIP, vec_tile_shapes=(1, 4096), **chosen):
        mode = pypto.CastMode[f"CAST_{pair.default or 'NONE'}"]
        found = pypto.cast(x, DTYPE_OF[dst], mode, satmode)
    result: Codes = found.numpy().view(dst.code_dtype).reshape(-1)
    return result & dst.code_dtype.type((1 << dst.bits) - 1)


def wanted_codes(codes: Codes, pair: Pair, *, off: bool, **state: bool) -> list[int]:
    mode = pair.default or "RINT"
    return [ascend950.expected(code, pair, mode, off=off, **state) for code in codes.tolist()]


@every_pair
@every_state
@pytest.mark.sampled(7)
def test_every_state_of_the_bits_is_that_of_fractions(
    pair: Pair, inf_nan_mode: bool, fp8_nan: bool, global_saturation: bool
) -> None:
    codes = drawn_codes(pair.src)
    state = {
        "inf_nan_mode": inf_nan_mode,
        "fp8_nan": fp8_nan,
        "global_saturation": global_saturation,
    }
    for satmode in (ON, OFF):
        wanted = wanted_codes(codes, pair, off=satmode is OFF, **state)
        for fidelity in ("fast", "instructions"):
            found = cast_codes(codes, pair, satmode, fidelity=fidelity, **state)
            np.testing.assert_array_equal(found, wanted, f"{satmode} {fidelity}")


@pytest.mark.parametrize("src", ["FP16", "BF16"])
@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_all_codes_of_16_bits(src: str, every: int) -> None:
    codes = np.arange(SEED % every, 1 << 16, every, dtype=np.uint16)
    for pair in PAIRS:
        if pair.src != src or ascend950.is_integer(pair.dst):
            continue
        for satmode in (ON, OFF):
            found = cast_codes(codes, pair, satmode, global_saturation=False)
            off = satmode is OFF
            wanted = wanted_codes(codes, pair, off=off, inf_nan_mode=True, global_saturation=False)
            np.testing.assert_array_equal(found, wanted, f"{pair} {satmode}")


@pytest.mark.parametrize("dst", ["E4M3FN", "E5M2"])
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_nan_of_fp8_stays_nan_where_the_bit_is_set(dst: str, engine: str) -> None:
    pair = next(pair for pair in PAIRS if (pair.src, pair.dst) == ("FP32", dst))
    codes = np.array([0x7FC00000, 0xFF800001, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0], np.uint32)
    found = {
        fp8_nan: cast_codes(codes, pair, ON, inf_nan_mode=False, fp8_nan=fp8_nan, engine=engine)
        for fp8_nan in (False, True)
    }
    largest = {"E4M3FN": 0x7E, "E5M2": 0x7B}[dst]
    finite = [largest, largest | 0x80, largest, 0]
    assert found[False].tolist() == [0, 0, *finite]
    assert found[True].tolist() == [0x7F, 0x7F, *finite]


@every_pair
def test_a_cast_without_satmode_follows_the_bit_of_integers(pair: Pair) -> None:
    codes = drawn_codes(pair.src)
    for cast_saturation, like in ((True, ON), (False, OFF)):
        found = cast_codes(codes, pair, None, cast_saturation=cast_saturation)
        np.testing.assert_array_equal(found, cast_codes(codes, pair, like))
        for named in (ON, OFF):
            found = cast_codes(codes, pair, named, cast_saturation=cast_saturation)
            np.testing.assert_array_equal(found, cast_codes(codes, pair, named))


@every_pair
def test_no_cast_depends_on_the_bit_of_integer_arithmetic(pair: Pair) -> None:
    codes = drawn_codes(pair.src)
    for satmode in (ON, OFF):
        found = cast_codes(codes, pair, satmode, int_saturation=True)
        np.testing.assert_array_equal(found, cast_codes(codes, pair, satmode))


def test_the_bit_of_integers_counts_where_no_instruction_decides() -> None:
    x = pypto.tensor(None, pypto.DT_INT32, data=[[70_000, 1]])
    with pypto.options(chip=CHIP, cast_saturation=False):
        assert pypto.cast(x, pypto.DT_INT16).numpy().tolist() == [[4464, 1]]
        with pypto.options(global_saturation=False):
            assert pypto.cast(x, pypto.DT_INT16).numpy().tolist() == [[32767, 1]]


def test_the_bit_of_integers_exists_on_a2_too() -> None:
    x = pypto.tensor(None, pypto.DT_INT32, data=[[70_000, 1]])
    with pypto.options(cast_saturation=False), warnings.catch_warnings():
        warnings.simplefilter("error", pypto.SaturationModeWarning)
        assert pypto.cast(x, pypto.DT_INT16).numpy().tolist() == [[4464, 1]]
        assert pypto.cast(x, pypto.DT_INT16, satmode=ON).numpy().tolist() == [[32767, 1]]


# --- What a program sets, and what is refused -----------------------------------------------------


def program_of(**chosen: Any) -> Any:
    with pypto.options(chip=CHIP, vec_tile_shapes=(64,), **chosen):
        mode = pypto.CastMode.CAST_RINT
        return plan_cast((64,), pypto.DT_FP32, pypto.DT_FP8E4M3, mode, ON).program


def test_a_program_sets_the_bits_that_differ_from_their_defaults() -> None:
    usual = [SetCtrl(bit=CTRL_FLOAT, value=True), SetCtrl(bit=CTRL_CAST, value=False)]
    assert [*program_of().prologue()] == usual
    assert [*program_of(fp8_nan=True, global_saturation=False).prologue()] == [
        *usual,
        SetCtrl(bit=CTRL_NAN, value=True),
        SetCtrl(bit=CTRL_GLOBAL, value=False),
    ]
    shown = str(program_of(global_saturation=False))
    assert "CAST_RINT, SAT, count" in shown
    assert "SAT," not in str(program_of())


def test_an_instruction_without_satmode_faults_where_it_would_decide() -> None:
    program = program_of(fp8_nan=True)

    class Clearing(TileProgram):
        def prologue(self) -> Any:
            yield from super().prologue()
            yield SetCtrl(bit=CTRL_GLOBAL, value=False)

    clearing = Clearing(plan=program.plan, resolution=program.resolution)
    with pytest.raises(SimulatorFault, match=r"CTRL\[60\] is 0 and FP32 -> E4M3FN has no SatMode"):
        execute(clearing, np.zeros(64, np.float32), fidelity="instructions")


@pytest.mark.parametrize("name", ONLY_950)
@pytest.mark.parametrize("chip", ["Ascend910B3", "Ascend910_9391"])
def test_a_bit_that_only_the_950_has_is_refused_elsewhere(name: str, chip: str) -> None:
    bit, value = ONLY_950[name]
    text = rf"option {name}={value} is CTRL\[{bit}\] of chips of 950; {chip}, of A2/A3, has none"
    with pytest.raises(ValueError, match=text), pypto.options(chip=chip, **{name: value}):
        pytest.fail("the body must not run")
    with pypto.options(chip=chip, **{name: not value}):
        assert current().chip is CHIPS[chip]
    with (
        pypto.options(chip=CHIP, **{name: value}),
        pytest.raises(ValueError, match=text),
        pypto.options(chip=chip),
    ):
        pytest.fail("the body must not run")


@pytest.mark.parametrize("name", [*ONLY_950, "cast_saturation"])
@pytest.mark.parametrize("value", [0, 1, "True", None.__class__])
def test_a_bit_is_true_or_false(name: str, value: Any) -> None:
    with (
        pytest.raises(TypeError, match=f"option {name} must be True or False"),
        pypto.options(chip=CHIP, **{name: value}),
    ):
        pytest.fail("the body must not run")


def test_the_machine_of_a2_has_none_of_them() -> None:
    with pypto.options(vec_tile_shapes=(64,)):
        mode = pypto.CastMode.CAST_RINT
        program = plan_cast((64,), pypto.DT_FP32, pypto.DT_FP16, mode, ON).program

    class Setting(TileProgram):
        def prologue(self) -> Any:
            yield SetCtrl(bit=CTRL_NAN, value=True)
            yield RestoreCtrl()
            yield from super().prologue()

    setting = Setting(plan=program.plan, resolution=program.resolution)
    with pytest.raises(SimulatorFault, match=r"A2/A3 has no control bit 50 for Cast"):
        execute(setting, np.zeros(64, np.float32), fidelity="instructions")


Given = pypto.Tensor[[64, 64], pypto.DT_FP32]
InFp8 = pypto.Tensor[[64, 64], pypto.DT_FP8E4M3]


@pypto.frontend.jit
def to_fp8(x: Given, y: InFp8) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.cast(x, pypto.DT_FP8E4M3)


def test_a_kernel_follows_the_bits_of_each_call() -> None:
    values = np.full((64, 64), np.nan, np.float32)
    x = pypto.tensor(None, pypto.DT_FP32, data=values)
    found = []
    for fp8_nan in (True, False, True):
        y = pypto.tensor(None, pypto.DT_FP8E4M3, data=np.zeros((64, 64), float8_e4m3fn))
        with pypto.options(chip=CHIP, inf_nan_mode=False, fp8_nan=fp8_nan):
            to_fp8(x, y)
        found.append({*y.numpy().view(np.uint8).ravel().tolist()})
    assert found == [{0x7F}, {0}, {0x7F}]


def test_a_schedule_refuses_what_it_does_not_follow() -> None:
    x = pypto.tensor(None, pypto.DT_FP32, data=np.ones((64, 64), np.float32))
    y = pypto.tensor(None, pypto.DT_FP8E4M3, data=np.zeros((64, 64), float8_e4m3fn))
    chosen = {"chip": CHIP, "fidelity": "instructions", "global_saturation": False}
    with (
        pypto.options(**chosen),
        pytest.warns(pypto.UnplannedKernelWarning, match="global_saturation=False"),
    ):
        to_fp8(x, y)
    assert {*y.numpy().view(np.uint8).ravel().tolist()} == {0x38}
