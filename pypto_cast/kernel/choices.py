"""The choices that certain results rest on: a kernel is run again without them, and compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

import numpy as np

from pypto_cast.kernel.other_release import OtherRelease, unwritten
from pypto_cast.recording.output_certainty import Cause, ChoiceBits, OutputCertainty
from pypto_cast.recording.recording import Recording
from simulator.arithmetic.cause_codes import NAMED_CHOICES, choice_bits
from simulator.arithmetic.ends import Ends, union
from simulator.arithmetic.total_order import same_code
from simulator.arithmetic.trust import Assumption
from simulator.numbers import float_environment

Outputs = tuple[OutputCertainty, ...]

_OF_RELEASE: Final = 1 << len(NAMED_CHOICES)
"""The bit of the release that is followed."""


def judged(
    outputs: Outputs, assumed: frozenset[Assumption], again: Callable[[], Outputs]
) -> Outputs:
    """Name the choices that the certain elements of outputs rest on.

    Args:
        outputs: of a kernel that ran.
        assumed: the assumptions that it made.
        again: runs it by public texts alone.
    """
    if assumed:
        return _resting(outputs, choice_bits(*assumed), again)
    return tuple(dataclasses.replace(output, choices=None) for output in outputs)


def resting_on_release(outputs: Outputs, other: OtherRelease, *, doubts: bool) -> Outputs:
    """Name the release that is followed, where the other one gives something else.

    Elements that both releases give, but the other only by its choices, rest on these. A kernel
    that the other release refuses has no other results.

    Args:
        outputs: under the release that is followed.
        other: the outputs under the other one.
        doubts: no choice is taken for granted: what the other release changes is open, and the
            arrays that it alone writes are outputs.
    """
    if other.refusal or not other.causes:
        return outputs
    if doubts:
        either = zip((*outputs, *other.kept), other.outputs, strict=True)
        return tuple(_opened(output, theirs, other.causes[0]) for output, theirs in either)
    bit = np.uint32(_OF_RELEASE)
    found = zip(outputs, other.outputs, other.changed, strict=False)  # those of `kept` are behind
    return tuple(
        dataclasses.replace(
            output,
            choices=_bits(output) | np.where(changed, output.certain * bit, _bits(theirs)),
            named_choices=(*NAMED_CHOICES, other.choice),
        )
        for output, theirs, changed in found
    )


def _opened(output: OutputCertainty, other: OutputCertainty, cause: Cause) -> OutputCertainty:
    """An output whose elements may be those of either release."""
    ours, theirs = (
        Ends(low=each.low, high=each.high, nan=each.may_be_nan) for each in (output, other)
    )
    ends = union(ours, theirs, output.format)
    index = np.uint16(len(output.causes))
    return dataclasses.replace(
        output,
        low=ends.low,
        high=ends.high,
        may_be_nan=ends.nan,
        cause=np.where(output.certain, index, output.cause),
        causes=(*output.causes, cause),
    )


@float_environment.quiet()
def unjudged(ran: Recording) -> Outputs:
    """The outputs of a run that cannot be made again, and whose source is not known.

    All certain elements rest on all assumptions that were made, and on the release if an operation
    depends on it; they are open if that took no choice for granted.
    """
    outputs = ran.outputs(name for buffer in ran.buffers for name in buffer.names if ran.steered_by)
    if ran.doubts_release:
        cause = next(iter(ran.release_dependence))
        return tuple(_opened(output, unwritten(output), cause) for output in outputs)
    bits = np.uint32(choice_bits(*ran.assumed) | bool(ran.release_dependence) * _OF_RELEASE)
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
