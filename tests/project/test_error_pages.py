"""Errors and warnings: each class has a section, which the command's line names."""

from __future__ import annotations

import re
import textwrap

import pytest
from support.environment.command import Command, command

import pypto_cast as pypto
from docs.generators import error_examples, error_pages
from docs.generators.error_examples import COMMANDS, EXAMPLES, example_of, message_of
from docs.generators.error_words import GROUPS
from pypto_cast.cli.main import _named

__all__ = ["command"]  # a fixture

WITH_EXAMPLE = [*EXAMPLES, *COMMANDS]
NAMES = [name for _, _, classes in GROUPS for name in classes]


@pytest.mark.slow
def test_every_class_is_on_the_page_once() -> None:
    assert sorted(NAMES) == sorted(error_pages.error_classes())
    for write in error_pages.PAGES.values():
        assert re.findall(r"^### (\w+)$", write(), re.M) == NAMES


@pytest.mark.slow
def test_every_class_has_a_meaning_and_a_remedy() -> None:
    assert [n for n, text in error_pages.error_classes().items() if not text.endswith(".")] == []
    words = [text for _, _, classes in GROUPS for row in classes.values() for text in row]
    assert [text for text in words if text[-1] not in ".。"] == []


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_the_page_shows_the_message_of_the_example(name: str) -> None:
    shown = f"{example_of(name)}\n\n", f"```text\n{message_of(name)}\n```"
    for write in error_pages.PAGES.values():
        section = re.split(r"^### ", write(), flags=re.M)[1 + NAMES.index(name)]
        assert section.startswith(f"{name}\n")
        assert all(textwrap.indent(text, "    ") in section for text in shown)


def test_a_message_is_that_of_the_class_and_of_the_lines_shown() -> None:
    assert len(WITH_EXAMPLE) == 34
    assert {*WITH_EXAMPLE} <= {*NAMES}
    assert "FP32 -> INT32 has no mode CAST_ODD" in message_of("CastModeError")
    assert message_of("CheckpointError").startswith("pypto-cast: error: m.safetensors is no")
    number = re.search(r"example\.py:(\d+)", message_of("UBOverflowError"))
    assert number is not None
    code = EXAMPLES["UBOverflowError"].splitlines()
    assert code[int(number[1]) - 1] == "    y[:] = pypto.exp(x) + x"


def test_an_example_that_does_not_raise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_examples, "EXAMPLES", {"PlanError": "print()", "ShapeError": "1 / 0"})
    with pytest.raises(LookupError, match="example of PlanError neither raises it nor warns"):
        message_of.__wrapped__("PlanError")
    with pytest.raises(ZeroDivisionError):
        message_of.__wrapped__("ShapeError")


def test_the_line_of_the_command_names_the_class(command: Command) -> None:
    ran = command("explain", "1", "--from", "bf16", "--to", "fp16")
    assert ran.error_line.endswith(" [UnsupportedCastError]")
    assert ran.error == ran.error_line.removesuffix(" [UnsupportedCastError]")
    ran = command("cast", "none.npy", "--to", "fp16")
    assert ran.error_line == ran.error  # no error of this project


def test_a_private_class_goes_by_its_public_one() -> None:
    class _OwnError(pypto.PlanError):
        __module__ = "pypto_cast.cli.commands"

    assert _named(_OwnError("text")) == " [PlanError]"
    assert _named(ValueError("text")) == ""
