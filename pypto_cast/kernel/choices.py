"""The choices that certain results rest on: a kernel is run again without them, and compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from pypto_cast.kernel.output_certainty import ChoiceBits, OutputCertainty
from pypto_cast.options import Options
from simulator.arithmetic.cause_codes import NAMED_CHOICES, choice_bits
from simulator.arithmetic.total_order import same_code
from simulator.arithmetic.trust import Assumption

Outputs = tuple[OutputCertainty, ...]
Settings = Mapping[str, Any]
Run = Callable[[Settings], Outputs]
"""Runs the kernel again under other options, by public texts alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A choice that no operation's interval knows of: the kernel runs again under other options.

    Attributes:
        choice: what a result rests on that is another one then, or is open.
        settings: the options of that run, by those of now; None: the choice is not in force.
    """

    choice: Assumption
    settings: Callable[[Options], Settings | None]


ALTERNATIVES: Final[list[Alternative]] = []
"""Each costs a run of the kernel wherever its choice is in force."""


def judged(outputs: Outputs, assumed: frozenset[Assumption], context: Options, run: Run) -> Outputs:
    """Name the choices that the certain elements of outputs rest on.

    Args:
        outputs: of a kernel that ran.
        assumed: the assumptions that it made.
        context: the options that it ran under.
        run: runs it again.
    """
    found = outputs
    if assumed:
        found = _resting(outputs, choice_bits(*assumed), partial(run, {}))
    else:
        found = tuple(dataclasses.replace(output, choices=None) for output in outputs)
    names = NAMED_CHOICES
    for alternative in ALTERNATIVES:
        settings = alternative.settings(context)
        if settings is not None:
            bit, names = 1 << len(names), (*names, alternative.choice)
            other = _differing(found, partial(run, settings))
            found = tuple(
                dataclasses.replace(
                    output, choices=_bits(output) | differs * np.uint32(bit), named_choices=names
                )
                for output, differs in zip(found, other, strict=True)
            )
    return found


def unjudged(outputs: Iterable[OutputCertainty], assumed: frozenset[Assumption]) -> Outputs:
    """Have all certain elements rest on all assumptions that were made, where nothing can be run
    again.
    """
    bits = np.uint32(choice_bits(*assumed))
    return tuple(
        dataclasses.replace(output, choices=np.full(output.shape, bits, np.uint32))
        for output in outputs
    )


def _resting(outputs: Outputs, in_force: int, again: Callable[[], Outputs]) -> Outputs:
    """The choices of intervals: those that leave an element open when none is in force."""
    others = _again(outputs, again)
    if others is None:
        return tuple(
            dataclasses.replace(output, choices=np.full(output.shape, in_force, np.uint32))
            for output in outputs
        )
    return tuple(
        dataclasses.replace(output, choices=_choices_of(output, other, in_force))
        for output, other in zip(outputs, others, strict=True)
    )


def _choices_of(output: OutputCertainty, other: OutputCertainty, in_force: int) -> ChoiceBits:
    named = _bits(other) & np.uint32(in_force)
    # An element that a choice opens on a way that no interval follows rests on all in force.
    named = np.where(named == 0, np.uint32(in_force), named)
    return np.where(output.certain & ~_is_same(output, other), named, np.uint32(0))


def _differing(outputs: Outputs, again: Callable[[], Outputs]) -> Sequence[np.ndarray]:
    """Finds the elements by documents that are others, or open, in another run."""
    others = _again(outputs, again)
    if others is None:
        return [output.certain for output in outputs]
    return [
        output.certain & ~_is_same(output, other)
        for output, other in zip(outputs, others, strict=True)
    ]


def _again(outputs: Outputs, run: Callable[[], Outputs]) -> Outputs | None:
    """The outputs of another run; None where it fails, or writes others: the choices decide."""
    try:
        others = run()
    except ValueError:  # As of elements that nobody wrote, where a condition is open.
        return None
    same = [(o.name, o.dtype, o.shape) for o in outputs]
    return others if same == [(o.name, o.dtype, o.shape) for o in others] else None


def _is_same(output: OutputCertainty, other: OutputCertainty) -> np.ndarray:
    """Finds the elements of which the other run knows the code, and which is the same."""
    return np.asarray(other.certain & same_code(output.values, other.low))


def _bits(output: OutputCertainty) -> ChoiceBits:
    return np.zeros(output.shape, np.uint32) if output.choices is None else output.choices
