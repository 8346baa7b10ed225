"""Cost sets from TOML files: what they give, and what is refused, with the file's name."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import pypto_cast as pypto
from tiling.chips import Standing
from tiling.cost import DEFAULT_COST_SET, cost_set, figure_names
from tiling.cost_file import read_cost_set


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_set_is_its_base_but_for_its_figures(tmp_path: Path) -> None:
    text = """
        name = "mine"
        base = "documented"
        [figures]
        read_startup_cycles = 251
        gm_bytes_per_second = 1.5e12
        [sources]
        read_startup_cycles = "measured by me"
    """
    found, base = read_cost_set(written(tmp_path, text)), cost_set("documented")
    assert found.name == "mine"
    changed = {"read_startup_cycles": 251, "gm_bytes_per_second": 1.5e12}
    for field in figure_names():
        assert getattr(found, field) == changed.get(field, getattr(base, field))
    assert found.is_startup_per_stream == base.is_startup_per_stream
    assert found.sources["read_startup_cycles"].text == "measured by me"
    assert found.sources["gm_bytes_per_second"].text == "set by the user"
    assert found.sources["read_startup_cycles"].standing is Standing.CHOSEN
    assert found.sources["clock_hz"] == base.sources["clock_hz"]


def test_the_default_is_the_base(tmp_path: Path) -> None:
    found = read_cost_set(written(tmp_path, 'name = "mine"'))
    assert all(getattr(found, f) == getattr(DEFAULT_COST_SET, f) for f in figure_names())


def test_the_rule_of_start_ups_can_be_changed(tmp_path: Path) -> None:
    text = 'name = "mine"\n[figures]\nis_startup_per_stream = false'
    found = read_cost_set(written(tmp_path, text))
    assert DEFAULT_COST_SET.is_startup_per_stream
    assert not found.is_startup_per_stream


def test_the_file_of_the_docstring(tmp_path: Path) -> None:
    from tiling import cost_file

    assert cost_file.__doc__ is not None
    example = cost_file.__doc__.split("\n\n", maxsplit=1)[1]
    found = read_cost_set(written(tmp_path, example))
    assert (found.name, found.read_bytes_per_cycle) == ("calibrated", 140.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            'name = "a"\nfigure = 1',
            "unknown key 'figure'; known: name, base, standing, figures, sources",
        ),
        (
            'name = "a"\nstanding = "sure"',
            "standing must be one of documented, inferred, chosen, measured, not 'sure'",
        ),
        ('name = "a"\n[figures]\nstartup = 1', "no figure startup; known: clock_hz, "),
        (
            'name = "a"\n[figures]\nflag_cycles = -1',
            "cost set a: flag_cycles must be 0 or more, is -1",
        ),
        (
            'name = "a"\n[figures]\nclock_hz = 0',
            "cost set a: clock_hz must be positive, is 0",
        ),
        (
            'name = "a"\n[figures]\nclock_hz = nan',
            "cost set a: clock_hz must be positive, is nan",
        ),
        ('name = "a"\n[figures]\nclock_hz = "1"', "figure clock_hz must be a number, not '1'"),
        ('name = "a"\n[figures]\nclock_hz = true', "figure clock_hz must be a number, not True"),
        *(
            (
                f'name = "a"\n[figures]\n{field} = {value}',
                rf"figure {field} must be 0 or from 1e-30 to 1e\+30, is {re.escape(shown)}",
            )
            for field in ("clock_hz", "read_startup_cycles")
            for value, shown in (
                ("1" + "0" * 399, "1" + "0" * 17 + "..." + "0" * 19),
                ("1e308", "1e+308"),
                ("1e-308", "1e-308"),
                ("inf", "inf"),
            )
        ),
        (
            'name = "a"\n[figures]\nis_startup_per_stream = 1',
            "cost set a: is_startup_per_stream must be a bool, is 1",
        ),
        ("[figures]\nclock_hz = 1", "name must be a text, not None"),
        ("name = 5", "name must be a text, not 5"),
        ('name = "documented"', "'documented' is a set of its own"),
        ('name = "a"\nbase = "b"', "unknown cost set 'b'; known: documented, pto-isa-910b3"),
        ('name = "a"\nfigures = 5', r"figures must be a table, \[figures\], not 5"),
        (
            'name = "a"\n[sources]\nclock_hz = "x"',
            r"a source for clock_hz, which \[figures\] does not set",
        ),
        (
            'name = "a"\n[figures]\nclock_hz = 1\n[sources]\nclock_hz = 5',
            "the source of clock_hz must be a text, not 5",
        ),
        ("name =", "Invalid value"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=rf"mine.toml: {says}") as caught:
        read_cost_set(written(tmp_path, text))
    assert "\n" not in str(caught.value)


@pytest.mark.sampled(18)
@pytest.mark.parametrize(
    "value",
    ["1e-30", "1" + "0" * 30, pytest.param("1e30", marks=pytest.mark.exhaustive)],
)
@pytest.mark.parametrize("field", [name for name in figure_names() if not name.endswith("_loss")])
def test_the_extremes_give_finite_results(tmp_path: Path, field: str, value: str) -> None:
    text = f'name = "mine"\n[figures]\n{field} = {value}'
    found = read_cost_set(written(tmp_path, text))
    best = pypto.tune([2, 2**15, 2**15 - 1], pypto.DT_FP32, pypto.DT_FP16, cost_set=found, top=1)
    estimate = best.candidates[0].estimate
    assert 0 < estimate.microseconds < math.inf
    assert 0 < estimate.high_cycles < math.inf
    assert 0 <= estimate.gb_per_second < math.inf


@pytest.mark.parametrize("value", ["1.01", "-0.01", "1e30"])
def test_a_loss_is_a_part(tmp_path: Path, value: str) -> None:
    text = f'name = "mine"\n[figures]\ngm_line_loss = {value}'
    with pytest.raises(ValueError, match="gm_line_loss must be 0 to 1"):
        read_cost_set(written(tmp_path, text))


def test_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(ValueError, match=r"mine\.toml: TOML is UTF-8, and this is not"):
        read_cost_set(path)
    with pytest.raises(FileNotFoundError):
        read_cost_set(tmp_path / "none.toml")
