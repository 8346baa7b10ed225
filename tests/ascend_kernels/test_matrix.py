"""The conversion matrix: rows, defaults, and what it says about pairs and modes it lacks."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import pypto_cast as pypto
from ascend_kernels.matrix import (
    MATRIX,
    CastModeError,
    CastModeWarning,
    CastRule,
    CastStep,
    LowByteStep,
    Operand,
    SaturationModeWarning,
    Step,
    UnsupportedCastError,
    resolve,
)
from ascend_kernels.routing.verdict_table import advised
from simulator.machine.cast_table import CAST_TABLE
from simulator.numbers import formats as f
from simulator.numbers.formats import FORMATS, Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, ASCEND_950

RINT, TRUNC, ODD = RoundMode.RINT, RoundMode.TRUNC, RoundMode.ODD
M5 = (RINT, RoundMode.ROUND, RoundMode.FLOOR, RoundMode.CEIL, TRUNC)

RULES: dict[tuple[str, str], tuple[tuple[RoundMode, ...], RoundMode | None]] = {
    ("FP32", "FP16"): ((*M5, ODD), RINT),
    ("FP32", "BF16"): (M5, RINT),
    ("FP32", "INT16"): (M5, TRUNC),
    ("FP32", "INT32"): (M5, TRUNC),
    ("FP32", "INT64"): (M5, TRUNC),
    ("FP32", "FP32"): (M5, RINT),
    ("FP16", "FP32"): ((), None),
    ("FP16", "INT32"): (M5, TRUNC),
    ("FP16", "INT16"): (M5, TRUNC),
    ("FP16", "INT8"): (M5, TRUNC),
    ("FP16", "UINT8"): (M5, TRUNC),
    ("FP16", "INT4"): (M5, TRUNC),
    ("BF16", "FP32"): ((), None),
    ("BF16", "INT32"): (M5, TRUNC),
    ("INT32", "FP32"): (M5, RINT),
    ("INT32", "INT16"): ((), None),
    ("INT32", "INT64"): ((), None),
    ("INT32", "FP16"): ((RINT,), RINT),
    ("INT16", "FP32"): ((), None),
    ("INT16", "FP16"): (M5, RINT),
    ("INT64", "FP32"): (M5, RINT),
    ("INT64", "INT32"): ((), None),
    ("UINT8", "FP16"): ((), None),
    ("INT8", "FP16"): ((), None),
    ("INT4", "FP16"): ((), None),
}
CLAMPING = {("INT32", "INT16"), ("INT64", "INT32")}
OFF_PAIRS = {
    ("FP16", "UINT8"),
    ("FP16", "INT8"),
    ("FP16", "INT16"),
    ("FP32", "INT16"),
    ("INT64", "INT32"),
    ("INT32", "INT16"),
}

every_rule = pytest.mark.parametrize(
    "rule", MATRIX[A2_A3].values(), ids=[f"{r.src}-{r.dst}".lower() for r in MATRIX[A2_A3].values()]
)
LACKED = [
    pytest.param(FORMATS[src], FORMATS[dst], mode, id=f"{src}-{dst}-{mode}".lower())
    for (src, dst), (modes, _) in RULES.items()
    for mode in RoundMode
    if modes and mode not in modes
]


def names(rule: CastRule) -> tuple[str, str]:
    return rule.src.name, rule.dst.name


# --- Rows --------------------------------------------------------------------------------------


def test_there_are_25_rows_the_same_as_cast_has() -> None:
    assert len(MATRIX[A2_A3]) == 25
    assert set(MATRIX[A2_A3]) == set(CAST_TABLE[A2_A3])
    assert {names(rule) for rule in MATRIX[A2_A3].values()} == set(RULES)
    assert all((rule.src, rule.dst) == pair for pair, rule in MATRIX[A2_A3].items())


@every_rule
def test_modes_and_default_are_those_of_the_rules(rule: CastRule) -> None:
    modes, default = RULES[names(rule)]
    assert set(rule.modes) == set(modes)
    assert len(rule.modes) == len(modes)
    assert rule.default is default
    assert rule.default is None or rule.default in rule.modes


@every_rule
def test_a_row_is_exact_or_clamps_or_rounds(rule: CastRule) -> None:
    modes, _ = RULES[names(rule)]
    assert rule.is_exact == (not modes and names(rule) not in CLAMPING)
    to_integer = rule.dst.name.startswith(("INT", "UINT"))
    assert rule.clamps == (to_integer and not rule.is_exact)
    assert str(rule) == f"{rule.src} -> {rule.dst}"
    assert len(rule.source.split()) > 2


@every_rule
def test_off_acts_on_six_pairs(rule: CastRule) -> None:
    assert bool(rule.off) == (names(rule) in OFF_PAIRS)


@every_rule
def test_none_is_the_default(rule: CastRule) -> None:
    plain = resolve(A2_A3, rule.src, rule.dst)
    assert plain.mode is rule.default
    assert plain.diagnostics == ()
    assert resolve(A2_A3, rule.src, rule.dst, rule.default) == plain


@every_rule
def test_a_mode_that_the_pair_has_reaches_the_instruction(rule: CastRule) -> None:
    for mode in rule.modes:
        for saturate in (True, False) if rule.off else (True,):
            resolution = resolve(A2_A3, rule.src, rule.dst, mode, saturate=saturate, strict=True)
            assert resolution.mode is mode
            assert resolution.diagnostics == ()
            first = resolution.steps[0]
            assert isinstance(first, CastStep)
            has_modes = bool(CAST_TABLE[A2_A3][rule.src, rule.dst].modes)
            assert first.mode is (mode if has_modes else None)


@every_rule
@pytest.mark.parametrize("saturate", [True, False], ids=["on", "off"])
def test_steps_are_instructions_that_exist(rule: CastRule, saturate: bool) -> None:
    resolution = resolve(A2_A3, rule.src, rule.dst, saturate=saturate)
    holds: dict[Operand, Format] = {Operand.IN: rule.src}
    for step in resolution.steps:
        if isinstance(step, LowByteStep):
            assert holds[step.operand] is f.INT16
            assert resolution.tmp_bits >= 16
            continue
        row = CAST_TABLE[A2_A3][step.src, step.dst]
        assert row.has_none if step.mode is None else step.mode in row.modes
        assert holds[step.source] is step.src
        if step.target is step.source:
            assert step.src.bits == step.dst.bits
        holds[step.target] = step.dst
    assert holds[Operand.OUT] is rule.dst


# --- SaturationMode.OFF ------------------------------------------------------------------------


def outline(step: Step) -> tuple[object, ...]:
    if isinstance(step, LowByteStep):
        return ("and", step.operand.value, step.scratch.value)
    return (
        f"{step.src}-{step.dst}",
        step.mode,
        "low bits" if step.truncates else "clamp",
        f"{step.source.value}-{step.target.value}",
    )


CEIL = RoundMode.CEIL
OFF_STEPS: dict[tuple[str, str], list[tuple[object, ...]]] = {
    ("FP16", "UINT8"): [("FP16-UINT8", CEIL, "low bits", "in-out")],
    ("INT64", "INT32"): [("INT64-INT32", None, "low bits", "in-out")],
    ("INT32", "INT16"): [("INT32-INT16", None, "low bits", "in-out")],
    ("FP32", "INT16"): [
        ("FP32-INT32", CEIL, "clamp", "in-in"),
        ("INT32-INT16", None, "low bits", "in-out"),
    ],
    ("FP16", "INT16"): [
        ("FP16-INT32", CEIL, "clamp", "in-tmp"),
        ("INT32-INT16", None, "low bits", "tmp-out"),
    ],
    ("FP16", "INT8"): [
        ("FP16-INT32", CEIL, "clamp", "in-tmp"),
        ("INT32-INT16", None, "low bits", "tmp-in"),
        ("and", "in", "tmp"),
        ("INT16-FP16", RINT, "clamp", "in-in"),
        ("FP16-INT8", TRUNC, "low bits", "in-out"),
    ],
}


@pytest.mark.parametrize("pair", OFF_STEPS, ids="-".join)
def test_the_steps_of_off(pair: tuple[str, str]) -> None:
    src, dst = FORMATS[pair[0]], FORMATS[pair[1]]
    off = resolve(A2_A3, src, dst, CEIL, saturate=False)
    assert [outline(step) for step in off.steps] == OFF_STEPS[pair]
    assert off.diagnostics == ()
    assert off.tmp_bits == (32 if pair in {("FP16", "INT16"), ("FP16", "INT8")} else 0)
    on = resolve(A2_A3, src, dst, CEIL)
    assert len(on.steps) == 1
    assert on.tmp_bits == 0
    assert outline(on.steps[0])[2:] == ("clamp", "in-out")


@pytest.mark.parametrize(
    "pair", [pair for pair in RULES if pair not in OFF_PAIRS], ids=lambda p: "-".join(p).lower()
)
def test_off_elsewhere_is_said_and_changes_nothing(pair: tuple[str, str]) -> None:
    src, dst = FORMATS[pair[0]], FORMATS[pair[1]]
    off = resolve(A2_A3, src, dst, saturate=False)
    ((category, text),) = off.diagnostics
    assert category is SaturationModeWarning
    assert text.startswith(f"SaturationMode.OFF does not act on {src} -> {dst}: ")
    listed = set(text.split("It acts on ")[1].split(", "))
    assert listed == {f"{a} -> {b}" for a, b in OFF_PAIRS}
    assert off.steps == resolve(A2_A3, src, dst).steps


# --- Modes that a pair lacks -------------------------------------------------------------------


@pytest.mark.parametrize(("src", "dst", "mode"), LACKED)
def test_a_lacking_mode_is_said_and_the_default_taken(
    src: Format, dst: Format, mode: RoundMode
) -> None:
    resolution = resolve(A2_A3, src, dst, mode)
    modes, default = RULES[src.name, dst.name]
    ((category, text),) = resolution.diagnostics
    assert category is CastModeWarning
    has = ", ".join(f"CAST_{m.name}" for m in modes)
    assert text.startswith(f"{src} -> {dst} has no mode CAST_{mode.name}; it has {has}. ")
    assert f"The default CAST_{default} is taken" in text
    assert resolution.steps == resolve(A2_A3, src, dst).steps
    assert resolution.mode is default


@pytest.mark.parametrize(("src", "dst", "mode"), LACKED)
def test_a_lacking_mode_is_refused_if_strict(src: Format, dst: Format, mode: RoundMode) -> None:
    with pytest.raises(CastModeError) as error:
        resolve(A2_A3, src, dst, mode, strict=True)
    assert str(error.value).startswith(f"{src} -> {dst} has no mode CAST_{mode.name}; it has CAST_")
    assert resolve(A2_A3, src, dst, strict=True).diagnostics == ()


def test_lacking_modes_are_those_of_the_rules() -> None:
    rounding = [pair for pair, (modes, _) in RULES.items() if len(modes) == 5]
    assert len(LACKED) == len(rounding) + 5


@pytest.mark.parametrize("mode", RoundMode, ids=str)
@pytest.mark.parametrize(
    "pair", [pair for pair, (modes, _) in RULES.items() if not modes], ids=lambda p: "-".join(p)
)
def test_pairs_that_round_nothing_ignore_the_mode_silently(
    pair: tuple[str, str], mode: RoundMode
) -> None:
    src, dst = FORMATS[pair[0]], FORMATS[pair[1]]
    for strict in (False, True):
        resolution = resolve(A2_A3, src, dst, mode, strict=strict)
        assert resolution.diagnostics == ()
        assert resolution.mode is None
        assert resolution.steps == resolve(A2_A3, src, dst).steps


# --- Pairs outside the matrix ------------------------------------------------------------------

SOURCES = list(dict.fromkeys(src for src, _ in RULES))
UNSIGNED = {"UINT16", "UINT32", "UINT64", "BOOL"}
OUTSIDE = [
    (src, dst) for src in FORMATS for dst in FORMATS if src != dst and (src, dst) not in RULES
]


def test_pairs_outside_are_refused_with_advice() -> None:
    for src, dst in OUTSIDE:
        assert_refused_with_advice(src, dst)


def assert_refused_with_advice(src: str, dst: str) -> None:
    with pytest.raises(UnsupportedCastError) as error:
        resolve(A2_A3, FORMATS[src], FORMATS[dst])
    text = str(advised(error.value, A2_A3, FORMATS[src], FORMATS[dst], None))
    elsewhere = ". Chips of 950 cast it: options(chip=)"
    is_elsewhere = (FORMATS[src], FORMATS[dst]) in MATRIX[ASCEND_950]
    assert (elsewhere in text) is is_elsewhere
    text = text.replace(elsewhere, "")
    assert text.startswith(f"A2/A3 does not cast {src} -> {dst}: {src} converts to ")
    if src not in SOURCES:
        head, listed = text.split(" converts to nothing; sources are ")
        assert head.endswith(src)
        listed, _, advice = listed.partition(". ")
        reached = src in UNSIGNED and dst in {*UNSIGNED, *SOURCES}
        assert advice.startswith(f"{src} -> ") is reached
        assert set(listed.split(", ")) == set(SOURCES)
        return
    head, _, advice = text.partition(". ")
    assert set(head.split(" converts to ")[1].split(", ")) == {b for a, b in RULES if a == src}
    if dst in UNSIGNED:
        assert advice.startswith(f"{src} -> ")
        return
    if dst not in SOURCES and all(b != dst for _, b in RULES):
        assert advice == ""
        return
    # An odd last bit that INT32 -> FP32 drops leaves no way to BF16 that rounds once.
    is_exact = (src, dst) not in {("INT32", "BF16"), ("INT64", "BF16")}
    words = " is exact on all " if is_exact else " differs from one rounding on "
    route, _, verdict = advice.partition(words)
    assert verdict.endswith(" codes")
    steps = [step.partition(" CAST_")[0] for step in route.split(" -> ")]
    assert (steps[0], steps[-1]) == (src, dst)
    assert set(itertools.pairwise(steps)) <= set(RULES)


@pytest.mark.parametrize(
    ("src", "dst", "mode", "advice"),
    [
        ("FP16", "BF16", "RINT", "FP16 -> FP32 -> BF16 CAST_RINT is exact on all 65,536 codes"),
        (
            "FP32",
            "INT8",
            "RINT",
            "FP32 -> FP16 CAST_ODD -> INT8 CAST_RINT is exact on all 4,294,967,296 codes",
        ),
        ("INT8", "BF16", "RINT", "INT8 -> FP16 -> FP32 -> BF16 CAST_RINT is exact on all 256"),
        (
            "INT32",
            "BF16",
            "RINT",
            "INT32 -> FP32 CAST_TRUNC -> BF16 CAST_ROUND differs from one rounding on 2,944 of "
            "4,294,967,296 codes",
        ),
    ],
)
def test_advice_literally(src: str, dst: str, mode: str, advice: str) -> None:
    with pytest.raises(UnsupportedCastError) as error:
        resolve(A2_A3, FORMATS[src], FORMATS[dst], RoundMode[mode])
    assert advice in str(advised(error.value, A2_A3, FORMATS[src], FORMATS[dst], RoundMode[mode]))


# --- Through the public API --------------------------------------------------------------------


def api_cast(
    src: pypto.DataType, dst: pypto.DataType, *, strict: bool = False, **arguments: object
) -> pypto.Tensor:
    x = pypto.tensor([64], src)
    with pypto.options(vec_tile_shapes=[64], strict=strict):
        return pypto.cast(x, dst, **arguments)


def test_cast_warns_of_a_lacking_mode() -> None:
    with pytest.warns(
        CastModeWarning, match="FP32 -> INT32 has no mode CAST_ODD; it has CAST_RINT"
    ):
        api_cast(pypto.DT_FP32, pypto.DT_INT32, mode=pypto.CAST_ODD)
    with pytest.raises(CastModeError, match="has no mode CAST_ODD; it has CAST_RINT, CAST_ROUND"):
        api_cast(pypto.DT_FP32, pypto.DT_INT32, mode=pypto.CAST_ODD, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        api_cast(pypto.DT_FP32, pypto.DT_FP16, mode=pypto.CAST_ODD, strict=True)
        api_cast(pypto.DT_FP16, pypto.DT_FP32, mode=pypto.CAST_ODD, strict=True)
        api_cast(pypto.DT_INT32, pypto.DT_INT16, mode=pypto.CAST_ODD, strict=True)


def test_cast_warns_where_off_does_not_act() -> None:
    off = pypto.SaturationMode.OFF
    with pytest.warns(SaturationModeWarning, match=r"OFF does not act on FP32 -> INT32"):
        api_cast(pypto.DT_FP32, pypto.DT_INT32, satmode=off)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        api_cast(pypto.DT_FP32, pypto.DT_INT16, satmode=off)


def test_cast_where_off_does_not_act_clamps() -> None:
    x = pypto.from_numpy(np.resize(np.float32([3e9, -3e9, 7.9]), 64))
    with pypto.options(vec_tile_shapes=[64]), pytest.warns(SaturationModeWarning):
        y = pypto.cast(x, pypto.DT_INT32, satmode=pypto.SaturationMode.OFF)
    assert y.numpy()[:3].tolist() == [2**31 - 1, -(2**31), 7]


def test_cast_refuses_pairs_by_pyptos_names() -> None:
    with pytest.raises(UnsupportedCastError, match="A2/A3 does not cast FP16 -> BF16"):
        api_cast(pypto.DT_FP16, pypto.DT_BF16)
    with pytest.raises(UnsupportedCastError, match="HF8 converts to nothing; sources are FP32"):
        api_cast(pypto.DT_HF8, pypto.DT_FP32)
    with pytest.raises(UnsupportedCastError, match="FP32 -> HF8: FP32 converts to FP16, BF16"):
        api_cast(pypto.DT_FP32, pypto.DT_HF8)
    assert issubclass(UnsupportedCastError, TypeError)
