"""The fuzzer: it finds what is hidden behind lines, repeats itself, and tells errors apart."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import fuzz
import fuzz_targets
import pytest
from hypothesis import strategies as st

from pypto_cast.dtypes import names
from simulator.numbers import literals

SCRIPT = Path(fuzz.__file__)


@fuzz_targets.fuzzed(text=st.text("019.eEx-", max_size=8))
def hidden(text: str) -> None:
    """Fails behind lines of the project that random bytes seldom reach in a row."""
    with fuzz_targets.refused_in_own_words():
        number = literals.number_named(text)
        if text.startswith("0x") and number.negative is False and number.magnitude > 1:
            raise ZeroDivisionError(text)


def test_it_finds_a_planted_fault_and_says_how_to_repeat_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not fuzz.fuzz({"hidden": hidden}, seconds=120, seed=1)
    said = capsys.readouterr()
    assert said.out.startswith("seed 1, 120 s: hidden\n")
    assert "ZeroDivisionError" in said.err
    repeat = next(line for line in said.out.splitlines() if line.startswith("repeat it: "))
    with pytest.raises(ZeroDivisionError):
        hidden.hypothesis.fuzz_one_input(bytes.fromhex(repeat.split()[-1]))


@pytest.mark.exhaustive
def test_inputs_that_reach_new_lines_are_kept_and_a_seed_repeats_them() -> None:
    found = []
    for _ in range(2):
        fuzzer = fuzz.Fuzzer("numbers", fuzz_targets.TARGETS["numbers"], random.Random(5))
        assert all(fuzzer.step() for _ in range(60))
        found.append(fuzzer.corpus)
        assert len(fuzzer.reached) > 10
        for kept in fuzzer.corpus:
            assert fuzz.lines_of(fuzzer.target, kept)[1] <= fuzzer.reached
    assert found[0] == found[1]
    assert 0 < len(found[0]) < 60


def test_whose_error_it_is() -> None:
    def error_of(look_up: object, *given: object) -> BaseException:
        with pytest.raises((ValueError, TypeError, AttributeError)) as raised:
            look_up(*given)
        return raised.value

    assert fuzz_targets.is_own(error_of(names.dtype_named, "fp17"))
    assert fuzz_targets.is_own(error_of(literals.number_named, "ten"))
    assert not fuzz_targets.is_own(error_of(literals.number_named, None))
    assert not fuzz_targets.is_own(error_of(int, "ten"))


@pytest.mark.exhaustive
def test_the_script(tmp_path: Path) -> None:
    words = ("--seconds", "3", "--seed", "7", "--target", "spellings")
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SCRIPT.parents[2])},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("seed 7, 3 s: spellings\nspellings: ")
    assert {entry.name for entry in tmp_path.iterdir()} <= {".hypothesis"}
