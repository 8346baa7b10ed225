"""Every cast of the 950: pairs, modes, saturation and the float mode against exact fractions."""

from __future__ import annotations

import ast
import copy
import warnings
from pathlib import Path

import numpy as np
import pytest
from support.numbers import ascend950
from support.numbers.ascend950 import PAIRS, Pair
from support.numbers.codes import SEED

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX
from pypto_cast.dtypes.data_types import DTYPE_OF
from simulator.machine.cast_table import CAST_TABLE
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FORMATS, Codes, FloatFormat
from simulator.numbers.rounding import boundary_codes
from tiling.chips import ASCEND_950, CHIPS

ROOT = Path(__file__).resolve().parents[2]
CHIP = "Ascend950PR"
PIECE = 4096
every_pair = pytest.mark.parametrize(
    "pair", PAIRS, ids=lambda pair: f"{pair.src}-{pair.dst}".lower()
)


def source_codes(name: str, most: int = PIECE) -> Codes:
    """All codes of narrow sources up to `most`; of others those around cuts and near the range."""
    fmt = FORMATS[name]
    codes = boundary_codes(fmt)
    rng = np.random.default_rng(950)
    if codes.size > most:
        codes = rng.choice(codes, most, replace=False)
    if isinstance(fmt, FloatFormat) and fmt.bits >= 16:
        exponents = rng.integers(fmt.bias - 26, fmt.bias + 34, most) % ((1 << fmt.exp_bits) - 1)
        fractions = rng.integers(0, 1 << fmt.man_bits, most)
        near = (exponents << fmt.man_bits | fractions).astype(fmt.code_dtype)
        special = [0, fmt.max_code, fmt.inf_code, fmt.nan_code, 1]
        codes = np.concatenate([codes, near, np.array(special, fmt.code_dtype)])
        codes = np.concatenate([codes, codes ^ fmt.code_dtype.type(fmt.sign_code)])
    return codes[: codes.size // 2 * 2]


def cast_codes(codes: Codes, pair: Pair, mode: str, satmode: pypto.SaturationMode) -> Codes:
    src, dst = FORMATS[pair.src], FORMATS[pair.dst]
    x = pypto.tensor(None, DTYPE_OF[src], data=values_of(codes.reshape(1, -1), src))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pypto.cast(x, DTYPE_OF[dst], pypto.CastMode[f"CAST_{mode or 'NONE'}"], satmode)
    result: Codes = found.numpy().view(dst.code_dtype).reshape(-1)
    return result & dst.code_dtype.type((1 << dst.bits) - 1)


@every_pair
@pytest.mark.parametrize("most", [PIECE // 8, pytest.param(PIECE, marks=pytest.mark.exhaustive)])
@pytest.mark.sampled(21)
def test_every_mode_and_saturation_is_that_of_fractions(pair: Pair, most: int) -> None:
    codes = source_codes(pair.src, most)
    for mode in pair.modes or ("",):
        for satmode in pypto.SaturationMode:
            for inf_nan_mode in (True, False):
                with pypto.options(chip=CHIP, inf_nan_mode=inf_nan_mode, vec_tile_shapes=(1, 4096)):
                    found = cast_codes(codes, pair, mode, satmode)
                off = satmode is pypto.SaturationMode.OFF
                wanted = [
                    ascend950.expected(
                        code, pair, mode or "RINT", off=off, inf_nan_mode=inf_nan_mode
                    )
                    for code in codes.tolist()
                ]
                np.testing.assert_array_equal(found, wanted, f"{mode} {satmode} {inf_nan_mode}")


@pytest.mark.parametrize("src", ["FP16", "BF16", "INT16"])
@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_all_codes_of_16_bits(src: str, every: int) -> None:
    codes = np.arange(SEED % every, 1 << 16, every, dtype=np.uint16)
    for pair in PAIRS:
        if pair.src != src:
            continue
        with pypto.options(chip=CHIP, vec_tile_shapes=(1, 4096)):
            found = cast_codes(codes, pair, pair.default, pypto.SaturationMode.ON)
        mode = pair.default or "RINT"
        wanted = [
            ascend950.expected(code, pair, mode, off=False, inf_nan_mode=True)
            for code in codes.tolist()
        ]
        np.testing.assert_array_equal(found, wanted, str(pair))


@every_pair
@pytest.mark.sampled(3)
def test_instructions_give_the_same_bits(pair: Pair) -> None:
    codes = source_codes(pair.src, 300)
    for satmode in pypto.SaturationMode:
        for inf_nan_mode in (True, False):
            found = []
            for fidelity in ("fast", "instructions"):
                with pypto.options(
                    chip=CHIP,
                    fidelity=fidelity,
                    inf_nan_mode=inf_nan_mode,
                    vec_tile_shapes=(1, 128),
                ):
                    found.append(cast_codes(codes, pair, pair.default, satmode))
            np.testing.assert_array_equal(*found)


def test_the_default_mode_and_the_modes_are_those_of_the_document() -> None:
    offered = {
        (str(rule.src), str(rule.dst)): (
            {mode.name for mode in rule.modes},
            rule.default.name if rule.default else "",
        )
        for rule in MATRIX[ASCEND_950].values()
    }
    assert offered == {(p.src, p.dst): ({*p.modes}, p.default) for p in PAIRS}
    assert len(offered) == 46
    assert len(CAST_TABLE[ASCEND_950]) == 58
    assert set(MATRIX[ASCEND_950]) <= set(CAST_TABLE[ASCEND_950])


def test_low_bits_are_kept_where_an_integer_may_be_out_of_range() -> None:
    acts = {(str(r.src), str(r.dst)) for r in MATRIX[ASCEND_950].values() if r.off}
    assert acts == {(p.src, p.dst) for p in PAIRS if ascend950.has_low_bits(p.src, p.dst)}


# --- What is refused ------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _quiet() -> None:
    warnings.simplefilter("ignore", pypto.TileShapeWarning)


def test_a_pair_of_the_other_family_is_named() -> None:
    x = pypto.tensor(None, pypto.DT_FP16, data=[[1.0, 2.0]])
    y = pypto.tensor(None, pypto.DT_FP32, data=[[1.0, 2.0]])
    with (
        pypto.options(chip=CHIP),
        pytest.raises(pypto.UnsupportedCastError, match=r"950 does not cast FP16 -> INT4.*A2/A3"),
    ):
        pypto.cast(x, pypto.DT_INT4)
    with pytest.raises(pypto.UnsupportedCastError, match=r"A2/A3 does not .* HF8.*Chips of 950"):
        pypto.cast(y, pypto.DT_HF8)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("DT_FP8", "; formats are of DT_FP8E4M3, DT_FP8E5M2, DT_FP8E8M0"),
        ("DT_HF4", ""),
        ("DT_FP4_E2M1", "; formats are of DT_FP4_E2M1X2"),
        ("DT_FP4_E1M2", "; formats are of DT_FP4_E1M2X2"),
    ],
)
def test_dtypes_without_a_format_are_refused_by_name(name: str, instead: str) -> None:
    x = pypto.tensor(None, pypto.DT_FP32, data=[[1.0, 2.0]])
    with (
        pypto.options(chip=CHIP),
        pytest.raises(pypto.UnsupportedCastError, match=rf"FP32 -> {name[3:]}: ") as refused,
    ):
        pypto.cast(x, pypto.DataType[name])
    assert str(refused.value).endswith(f"{name} is a name without a format here{instead}")


def test_scales_are_no_pair_of_pypto() -> None:
    x = pypto.tensor(None, pypto.DT_FP8E8M0, data=[[1.0, 0.5]])
    with pypto.options(chip=CHIP):
        for src, dst in ((x, pypto.DT_BF16), (x, pypto.DT_FP32)):
            with pytest.raises(pypto.UnsupportedCastError, match="950 does not cast E8M0"):
                pypto.cast(src, dst)


@pytest.mark.parametrize("entry", [0, 0.0, -0.0, -2.0, -float("inf")])
def test_a_scale_is_neither_zero_nor_negative(entry: float) -> None:
    with pytest.raises(OverflowError, match=r"data\[0, 1\] is .* neither zero nor negative"):
        pypto.tensor(None, pypto.DT_FP8E8M0, data=[[1.0, entry]])
    held = pypto.tensor(None, pypto.DT_FP8E8M0, data=[[1.0, float("nan")]])
    assert held.numpy().view(np.uint8).tolist() == [[127, 255]]


def test_the_last_axis_of_fp4_is_even() -> None:
    x = pypto.tensor(None, pypto.DT_BF16, data=[[1.0, 2.0, 3.0]])
    with (
        pypto.options(chip=CHIP),
        pytest.raises(pypto.ShapeError, match="two elements of 4 bits share a byte"),
    ):
        pypto.cast(x, pypto.DT_FP4_E2M1X2)


def test_ub_is_that_of_the_chip() -> None:
    x = pypto.tensor(None, pypto.DT_FP32, data=np.zeros((1, 42_400), np.float32))
    assert {chip.ub_bytes for chip in CHIPS.values() if chip.isa == ASCEND_950} == {253_952}
    with pypto.options(chip=CHIP, vec_tile_shapes=(1, 42_304)):
        pypto.cast(x, pypto.DT_FP16)
    with (
        pypto.options(chip=CHIP, vec_tile_shapes=(1, 42_400)),
        pytest.raises(pypto.TileShapeError, match="253952"),
    ):
        pypto.cast(x, pypto.DT_FP16)


def test_simt_leaves_less_of_ub() -> None:
    x = pypto.tensor(None, pypto.DT_FP32, data=np.zeros((1, 42_304), np.float32))
    tile = {"vec_tile_shapes": (1, 42_304)}
    with pypto.options(chip=CHIP, simt_bytes=32_768) as inside:
        assert copy.deepcopy(inside).chip.ub_bytes == inside.chip.ub_bytes == 221_184
        with pytest.raises(pypto.TileShapeError, match="221184"), pypto.options(**tile):
            pypto.cast(x, pypto.DT_FP16)
        for fidelity in ("fast", "instructions"):
            with pypto.options(vec_tile_shapes=(1, 36_864), fidelity=fidelity):
                pypto.cast(x, pypto.DT_FP16)
        with pypto.options(simt_bytes=0, **tile):
            pypto.cast(x, pypto.DT_FP16)
        with (
            pytest.raises(ValueError, match="SIMT of Ascend910B3"),
            pypto.options(chip="Ascend910B3"),
        ):
            pytest.fail("the body must not run")
    for wrong in (True, "32768"):
        with pytest.raises(TypeError, match="simt_bytes"), pypto.options(simt_bytes=wrong):
            pytest.fail("the body must not run")


# --- A family is rows -----------------------------------------------------------------------------


FAMILIES = {chip.isa for chip in CHIPS.values()} | {chip.family for chip in CHIPS.values()}
NAMED = FAMILIES | set(CHIPS)
CONSTANTS = {"A2_A3", "ASCEND_950"}
COMPARING = {"eq", "ne", "is_", "is_not", "contains", "startswith", "endswith", "match"}
COMPARING |= {"__eq__", "__ne__", "__contains__"}


@pytest.mark.slow
def test_no_code_compares_with_a_family() -> None:
    """Families are keys of tables: a comparison with one would be a branch."""
    found = []
    for room in ("tiling", "simulator", "ascend_kernels", "pypto_cast"):
        for path in (ROOT / room).rglob("*.py"):
            lines = comparisons(path.read_text(encoding="utf-8"))
            found += [f"{path.relative_to(ROOT)}:{line}" for line in lines]
    assert found == []


@pytest.mark.parametrize(
    "branch",
    [
        "chip.isa == ASCEND_950",
        "chip.isa != '950'",
        "chip.isa in (chips.A2_A3,)",
        "chip.isa in frozenset({ASCEND_950})",
        "chip.isa in {'950': 1}",
        "chip.name == 'Ascend950PR'",
        "chip.name.startswith('Ascend950')",
        "operator.eq(chip.isa, ASCEND_950)",
        "chip is CHIPS['Ascend950DT']",
        "'950' in chip.name",
    ],
)
def test_a_comparison_with_a_family_is_found_however_it_is_spelt(branch: str) -> None:
    assert comparisons(f"if {branch}:\n    pass") == [1]


def test_a_comparison_by_another_name_or_by_match_is_found() -> None:
    renamed = "from tiling.chips import ASCEND_950 as NEW\nmade = chip.isa == NEW"
    assigned = "_NEW: Final = ASCEND_950\nmade = chip.isa == _NEW"
    matched = "match chip.isa:\n    case '950' | chips.A2_A3:\n        pass"
    assert comparisons(renamed) == comparisons(assigned) == [2]
    assert comparisons(matched) == [2, 2]


def test_a_row_of_a_table_is_no_comparison() -> None:
    assert comparisons("pair in MATRIX[ASCEND_950] and rules_of(A2_A3) == {}") == []


def comparisons(source: str) -> list[int]:
    """The lines where source text compares with a family, with a chip or with a part of a name."""
    tree = ast.parse(source)
    names = CONSTANTS | {name for node in ast.walk(tree) for name in other_names(node)}
    return [
        operand.lineno
        for node in ast.walk(tree)
        for operand in compared(node)
        if is_family(operand, names)
    ]


def other_names(node: ast.AST) -> list[str]:
    """The names that an import or an assignment gives the constant of a family."""
    if isinstance(node, ast.ImportFrom):
        return [each.asname for each in node.names if each.asname and each.name in CONSTANTS]
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    if getattr(node.value, "id", getattr(node.value, "attr", "")) not in CONSTANTS:
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def compared(node: ast.AST) -> list[ast.expr]:
    """The operands of a comparison, or of a call or a case that compares."""
    if isinstance(node, ast.MatchValue):
        return [node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return node.args if called in COMPARING else []
    return []


def is_family(operand: ast.AST, names: set[str]) -> bool:
    """The text or the constant of a family, alone or among others; or a chip, by its name."""
    if isinstance(operand, ast.Constant):
        text = operand.value
        return isinstance(text, str) and (text in NAMED or text.startswith(CHIP[:-2]))
    if isinstance(operand, ast.Tuple | ast.List | ast.Set):
        return any(is_family(each, names) for each in operand.elts)
    if isinstance(operand, ast.Dict):
        return any(is_family(each, names) for each in operand.keys if each)
    if isinstance(operand, ast.Call):
        collects = getattr(operand.func, "id", "") in {"set", "frozenset", "tuple", "list"}
        return collects and any(is_family(each, names) for each in operand.args)
    if isinstance(operand, ast.Subscript):
        return isinstance(operand.slice, ast.Constant) and operand.slice.value in CHIPS
    return getattr(operand, "id", getattr(operand, "attr", "")) in names


# --- Kernels --------------------------------------------------------------------------------------


Given = pypto.Tensor[[64, 64], pypto.DT_FP32]
InHif8 = pypto.Tensor[[64, 64], pypto.DT_HF8]


@pypto.frontend.jit
def to_hif8(x: Given, y: InHif8) -> None:
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.cast(x, pypto.DT_HF8)


def test_a_kernel_casts_to_hif8_and_its_schedule_says_whose_passes_it_has() -> None:
    values = np.linspace(-60_000, 60_000, 4096, dtype=np.float32).reshape(64, 64)
    x = pypto.tensor(None, pypto.DT_FP32, data=values)
    y = pypto.tensor(None, pypto.DT_HF8, data=np.zeros((64, 64), np.uint8))
    with pypto.options(chip=CHIP):
        to_hif8(x, y)
        schedule = to_hif8.schedule(x, y)
        certain = to_hif8.certainty(x, y)
        with pypto.options(chip=CHIP, fidelity="instructions", schedule=schedule):
            z = pypto.tensor(None, pypto.DT_HF8, data=np.zeros((64, 64), np.uint8))
            to_hif8(x, z)
    pair = next(pair for pair in PAIRS if (pair.src, pair.dst) == ("FP32", "HF8"))
    wanted = [
        ascend950.expected(code, pair, "ROUND", off=False, inf_nan_mode=True)
        for code in values.view(np.uint32).ravel().tolist()
    ]
    for found in (y, z):
        np.testing.assert_array_equal(found.numpy().view(np.uint8).ravel(), wanted)
    assert "simplified: passes of A2/A3, unconfirmed for 950" in str(schedule)
    assert "ASSUME_INF_NAN_MODE" in str(certain)
