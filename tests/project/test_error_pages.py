"""Errors and warnings: each class has a section, which the command's line names."""

from __future__ import annotations

import re

import pytest
from support.environment.command import Command, command

import pypto_cast as pypto
from docs.generators import error_pages
from docs.generators.error_words import GROUPS
from pypto_cast.cli.main import _named

__all__ = ["command"]  # a fixture

NAMES = [name for _, _, classes in GROUPS for name in classes]


def test_every_class_is_on_the_page_once() -> None:
    assert sorted(NAMES) == sorted(error_pages.error_classes())
    for write in error_pages.PAGES.values():
        assert re.findall(r"^### (\w+)$", write(), re.M) == NAMES


def test_every_class_has_a_meaning_and_a_remedy() -> None:
    assert [n for n, text in error_pages.error_classes().items() if not text.endswith(".")] == []
    words = [text for _, _, classes in GROUPS for row in classes.values() for text in row]
    assert [text for text in words if text[-1] not in ".。"] == []


@pytest.mark.parametrize("name", error_pages.EXAMPLES)
def test_the_page_shows_the_message_of_the_example(name: str) -> None:
    message = error_pages.message_of(name)
    assert all(message in write() for write in error_pages.PAGES.values())


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
