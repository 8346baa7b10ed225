"""The two tables of pairs, by family: what pypto offers, and what the Cast instruction has.

A second family is rows: one is made up here, and cast from the public API down to instructions.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import pypto_cast as pypto
from ascend_kernels import matrix_table
from ascend_kernels.matrix import MATRIX, CastRule, CastStep
from pypto_cast.cli.commands.matrix_command import run_matrix
from pypto_cast.tuning.sweep.config import SkippedJobsWarning, read_config
from simulator.machine.cast_table import (
    CAST_TABLE,
    CTRL_AT_START,
    CTRL_BITS,
    CTRL_CAST,
    CTRL_FLOAT,
    CTRL_NAN,
    CastRow,
)
from simulator.numbers.convert import INF_NAN, SATURATE, SATURATE_KEEP_NAN, WRAP, Policy, convert
from simulator.numbers.formats import BF16, FP16, FP32, INT8, INT16, Format
from simulator.numbers.rounding import RoundMode
from tiling import chips
from tiling.chips import CHIPS, DEFAULT_CHIP, chosen

MADE_UP = "X1"
CEIL, ODD, TRUNC = RoundMode.CEIL, RoundMode.ODD, RoundMode.TRUNC


def lacking(rule: CastRule) -> Iterator[str]:
    """The instructions and modes that a row of the matrix takes and the instruction lacks."""
    for step in (*rule.on, *rule.off):
        if not isinstance(step, CastStep):
            continue
        row = CAST_TABLE[rule.family].get((step.src, step.dst))
        for mode in rule.modes if step.takes_mode else (step.mode,):
            if row is None or not (row.has_none if mode is None else mode in row.modes):
                yield f"{rule}: Cast {step.src} -> {step.dst} CAST_{mode or 'NONE'}"


def test_pypto_offers_nothing_that_the_instruction_lacks() -> None:
    asked = [text for rules in MATRIX.values() for rule in rules.values() for text in lacking(rule)]
    assert asked == []
    rule = MATRIX[chips.A2_A3][FP32, INT16]
    more = dataclasses.replace(rule, modes=(*rule.modes, ODD))
    assert [*lacking(more)] == [
        "FP32 -> INT16: Cast FP32 -> INT16 CAST_ODD",
        "FP32 -> INT16: Cast FP32 -> INT32 CAST_ODD",
    ]


def test_both_tables_say_the_same_of_special_values() -> None:
    for family, rules in MATRIX.items():
        for pair, rule in rules.items():
            row = CAST_TABLE[family][pair]
            assert rule.overflow is row.policy(CTRL_AT_START), str(rule)
            clear = CTRL_AT_START - {CTRL_FLOAT}
            assert rule.saturation is row.policy(clear), str(rule)
            with_nan = row.policy(clear | (CTRL_BITS[family] & {CTRL_NAN}))
            assert rule.saturation_with_nan is with_nan, str(rule)
            (step,) = rule.on
            assert isinstance(step, CastStep)
            assert step.is_scaled == row.is_scaled, str(rule)


def test_every_chip_has_rows_in_both_tables() -> None:
    assert {chip.isa for chip in CHIPS.values()} == set(MATRIX) == set(CAST_TABLE)


# --- A family that is rows alone --------------------------------------------------------------


def offered(
    src: Format, dst: Format, modes: tuple[RoundMode, ...], policy: Policy, *off: CastStep
) -> CastRule:
    return CastRule(
        family=MADE_UP,
        src=src,
        dst=dst,
        modes=modes,
        default=modes[0] if modes else None,
        overflow=policy,
        saturation=policy,
        saturation_with_nan=policy,
        on=(CastStep(src=src, dst=dst, takes_mode=bool(modes)),),
        off=off,
        origin=chosen("made up here"),
    )


def had(
    src: Format,
    dst: Format,
    modes: tuple[RoundMode, ...],
    when_clear: Policy,
    when_set: Policy | None = None,
) -> CastRow:
    return CastRow(
        src=src,
        dst=dst,
        modes=modes,
        has_none=not modes,
        is_scaled=False,
        ctrl=None if when_set is None else CTRL_CAST,
        when_clear=when_clear,
        when_set=when_set or when_clear,
    )


KEEPS_LOW_BITS = CastStep(src=BF16, dst=INT8, takes_mode=True, truncates=True)
RULES = (
    offered(BF16, FP16, (CEIL, ODD), SATURATE_KEEP_NAN),
    offered(BF16, INT8, (TRUNC, CEIL), SATURATE, KEEPS_LOW_BITS),
    offered(INT8, FP32, (), INF_NAN),
)
ROWS = (
    had(BF16, FP16, (CEIL, ODD), SATURATE_KEEP_NAN),
    had(BF16, INT8, (TRUNC, CEIL), SATURATE, WRAP),
    had(INT8, FP32, (), INF_NAN),
)
CASTS = [
    (rule, mode, saturate)
    for rule in RULES
    for mode in rule.modes or (None,)
    for saturate in ((True, False) if rule.off else (True,))
]


@pytest.fixture
def made_up_chip(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    chip = dataclasses.replace(DEFAULT_CHIP, name="MadeUp", family=MADE_UP, isa=MADE_UP)
    tables = {
        "CHIPS": (CHIPS, {**CHIPS, chip.name: chip}),
        "MATRIX": (MATRIX, {**MATRIX, MADE_UP: {(rule.src, rule.dst): rule for rule in RULES}}),
        "CTRL_BITS": (CTRL_BITS, {**CTRL_BITS, MADE_UP: frozenset({CTRL_FLOAT, CTRL_CAST})}),
        "CAST_TABLE": (CAST_TABLE, {**CAST_TABLE, MADE_UP: {(r.src, r.dst): r for r in ROWS}}),
    }
    for name, (table, extended) in tables.items():
        for module in [*sys.modules.values()]:
            if getattr(module, "__dict__", {}).get(name) is table:
                monkeypatch.setattr(module, name, MappingProxyType(extended))
    with pypto.options(chip=chip.name, vec_tile_shapes=(2, 32)):
        yield chip.name


@pytest.mark.parametrize("fidelity", ["fast", "instructions"])
@pytest.mark.parametrize(("rule", "mode", "saturate"), CASTS, ids=str)
def test_a_family_of_rows_is_cast(
    rule: CastRule, mode: RoundMode | None, saturate: bool, fidelity: str, made_up_chip: str
) -> None:
    codes = np.random.default_rng(7).bytes(rule.src.bits // 8 * 6 * 64)
    values = np.frombuffer(codes, rule.src.code_dtype).reshape(6, 64)
    src, dst = (pypto.DataType[f"DT_{fmt}"] for fmt in (rule.src, rule.dst))
    asked = pypto.CastMode[f"CAST_{mode or 'NONE'}"]
    satmode = pypto.SaturationMode.ON if saturate else pypto.SaturationMode.OFF
    with pypto.options(fidelity=fidelity):
        x = pypto.from_numpy(values.view(rule.src.dtype))
        found = pypto.cast(x, dst, mode=asked, satmode=satmode)
    policy = rule.overflow if saturate else WRAP
    wanted = convert(values, rule.src, rule.dst, mode or CEIL, policy)
    np.testing.assert_array_equal(found.numpy().view(rule.dst.code_dtype), wanted, str(src))


def test_only_instances_of_a_family_that_has_them(made_up_chip: str) -> None:
    x = pypto.from_numpy(np.zeros((2, 32), np.int8))
    with (
        pypto.options(engine="twin"),
        pytest.raises(ValueError, match="instances for A2/A3, 950, none for X1: another engine"),
    ):
        pypto.cast(x, pypto.DT_FP32)


def test_routes_are_chains_of_the_familys_own_casts(made_up_chip: str) -> None:
    assert pypto.routes(pypto.DT_FP32, pypto.DT_INT8).all == ()
    (found,) = pypto.routes(pypto.DT_BF16, pypto.DT_FP32).all
    assert str(found).startswith("BF16 -> INT8 CAST_TRUNC -> FP32: differs on 65,280 of 65,536")
    with pytest.raises(pypto.RouteError, match="X1 casts nothing from or to INT32"):
        pypto.routes(pypto.DT_FP32, pypto.DT_INT32)


def test_the_chip_that_is_tuned_for_has_the_pair(made_up_chip: str, tmp_path: Path) -> None:
    with pypto.options(chip=DEFAULT_CHIP.name):
        assert pypto.tune([4, 64], pypto.DT_BF16, pypto.DT_INT8, chip=made_up_chip).best
        with pytest.raises(pypto.UnsupportedCastError, match="X1 does not cast FP32"):
            pypto.tune([4, 64], pypto.DT_FP32, pypto.DT_FP16, chip=made_up_chip)
    config = tmp_path / "sweep.toml"
    config.write_text(f'shapes = [[4, 64]]\npairs = "all"\nchips = ["{made_up_chip}"]\n')
    assert [(job.src, job.dst) for job in read_config(config).jobs] == [
        (pypto.DataType[f"DT_{rule.src}"], pypto.DataType[f"DT_{rule.dst}"]) for rule in RULES
    ]
    config.write_text(
        'shapes = [[4, 64]]\npairs = [["DT_BF16", "DT_INT8"], ["DT_FP32", "DT_FP16"]]\n'
        f'chips = ["{made_up_chip}", "{DEFAULT_CHIP}"]\n'
    )
    with pytest.warns(SkippedJobsWarning, match="2 of 4 jobs are left out"):
        jobs = read_config(config).jobs
    assert [(job.src, job.chip) for job in jobs] == [
        (pypto.DT_BF16, made_up_chip),
        (pypto.DT_FP32, DEFAULT_CHIP.name),
    ]


def test_its_texts_are_of_its_rows(made_up_chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = pypto.from_numpy(np.zeros((2, 32), np.float32))
    with pytest.raises(pypto.UnsupportedCastError) as error:
        pypto.cast(x, pypto.DT_FP16)
    assert str(error.value) == (
        "X1 does not cast FP32 -> FP16: FP32 converts to nothing; sources are BF16, INT8. "
        "Chips of A2/A3 and 950 cast it: options(chip=)"
    )
    run_matrix(chip=made_up_chip, json=True)
    table = json.loads(capsys.readouterr().out)
    assert table["family"] == MADE_UP
    assert [row["dst"] for row in table["pairs"]] == ["FP16", "INT8", "FP32"]
    assert matrix_table.markdown(MADE_UP).splitlines()[2:] == [
        "| BF16 | FP16 | **CEIL**, ODD | max |  |",
        "| BF16 | INT8 | **TRUNC**, CEIL | clamped, NaN 0 | keeps low bits |",
        "| INT8 | FP32 | exact | none |  |",
    ]
