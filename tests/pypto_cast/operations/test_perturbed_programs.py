"""Random programs of all operations against perturbed runs of them, and the check itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from benchmarks import perturbed_programs
from benchmarks.perturbed_programs import Program, check, random_programs
from benchmarks.program_operations import CALLS, LEFT_OUT, STATEMENTS
from pypto_cast import experimental
from pypto_cast.operations.operation_rows import ROWS
from simulator.arithmetic import Enclosure

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_all_operations_of_the_table_are_drawn_or_left_out_with_a_reason() -> None:
    assert set(CALLS) | set(LEFT_OUT) == set(ROWS)
    assert not set(CALLS) & set(LEFT_OUT)
    assert all(LEFT_OUT.values())
    assert set(CALLS) >= STATEMENTS


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.sampled(8)
def test_a_program_carries_out_the_operation_it_names(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    module = experimental if ROWS[name].is_experimental else pypto
    operation: Callable[..., Any] = getattr(module, name)

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(name)
        return operation(*given, **named)

    monkeypatch.setattr(module, name, counted)

    assert check(Program(names=(name,), seed=1)).false == 0
    assert calls


def test_every_operation_is_drawn_once_before_one_is_drawn_again() -> None:
    drawn: list[str] = []
    for program in itertools.islice(random_programs(5), 100):
        drawn += program.names
    assert sorted(drawn[: len(CALLS)]) == sorted(CALLS)


@pytest.mark.slow
def test_nothing_is_falsely_certain() -> None:
    found = [check(program) for program in itertools.islice(random_programs(11), 12)]
    assert [each.where for each in found if each.false] == []
    assert 0 < sum(each.documented for each in found) < sum(each.certain for each in found)
    assert sum(each.certain for each in found) < sum(each.elems for each in found)
    assert sum(each.changed for each in found) > 0


def test_a_step_beyond_its_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def beyond(random: np.random.Generator, found: Enclosure, fmt: object) -> Enclosure:
        return Enclosure(values=found.values + found.values.dtype.type(1))

    program = Program(names=("exp", "add"), seed=2)
    assert not check(program).false
    monkeypatch.setattr(perturbed_programs, "drawn_from", beyond)
    found = check(program)
    assert found.false
    assert "default real[" in found.where
    assert "documented real[" in found.where
