"""`pypto-cast operations`: the table of operations, and the facts of one."""

from __future__ import annotations

import pytest
from support.environment.command import Command, command

from pypto_cast.operations.operation_rows import ROWS

__all__ = ["command"]  # fixtures


def test_every_operation_is_listed(command: Command) -> None:
    found = command("operations", "--json").json
    assert [each["name"] for each in found["operations"]] == sorted(ROWS)
    assert found["count"] == len(ROWS)
    (exp,) = (each for each in found["operations"] if each["name"] == "exp")
    floats = ["DT_FP32", "DT_FP16", "DT_BF16"]
    assert exp["dtypes"] == {"A2/A3": floats, "950": floats}
    assert exp["fidelity"] == "bounded"


def test_one_operation_has_its_facts(command: Command) -> None:
    found = command("operations", "sqrt", "--json").json
    special = {"0.0": "0.0", "-0.0": "-0.0", "inf": "inf", "-inf": "nan", "nan": "nan"}
    assert special.items() <= found["special_values"].items()
    assert [(each["family"], each["release"]) for each in found["dtypes"]] == [
        (family, release) for family in ("A2/A3", "950") for release in ("0.2.0", "head")
    ]
    (part,) = found["bounds"]
    assert (part["part"], "FP32" in part["bound"]) == ("sqrt", True)
    assert part["source"]
    text = command("operations", "sqrt").out
    assert "special values" in text
    assert "-inf: nan" in text


def test_an_operation_less_known_than_its_parts_says_where(command: Command) -> None:
    found = command("operations", "isfinite", "--json").json
    assert {each["fidelity"] for each in found["bounds"]} == {"exact"}
    assert found["fidelity"] == "unknown"
    assert "unknown: of FP32 from 65520 on" in command("operations", "isfinite").out


def test_a_release_that_lacks_it_accepts_nothing(command: Command) -> None:
    found = command("operations", "tanh", "--json").json
    by_release = {
        each["release"]: each["dtypes"] for each in found["dtypes"] if each["family"] == "A2/A3"
    }
    assert by_release == {"0.2.0": [], "head": ["DT_FP32", "DT_FP16", "DT_BF16"]}


@pytest.mark.parametrize("name", sorted(ROWS))
@pytest.mark.sampled(6)
def test_every_operation_has_a_report_with_its_source(command: Command, name: str) -> None:
    found = command("operations", name, "--json").json
    assert found["source"] or found["bounds"]
    assert all(part["source"] for part in found["bounds"])
    assert "](" not in command("operations", name).out


def test_a_typing_error_names_the_nearest(command: Command) -> None:
    assert "did you mean 'softmax'?" in command("operations", "sofmax").error
    assert "did you mean 'tanh'?" in command("operations", "tahn").error


def test_a_name_of_upstreams_that_is_not_here_has_its_reason(command: Command) -> None:
    assert "copies twice the elements of its result" in command("operations", "mrgsort").error
