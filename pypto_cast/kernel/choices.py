"""The choices that certain results rest on: a kernel runs again without them, or by the other
release or reading of public texts, and the outputs of both runs are compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.options.context import current, options
from pypto_cast.options.releases import CONFLICTS, RELEASES, Conflict, Release
from pypto_cast.recording.causes import Cause
from pypto_cast.recording.output_certainty import Bools, ChoiceBits, OutputCertainty
from pypto_cast.recording.recording import Asked, Recording
from simulator.arithmetic.interval import (
    Bounds,
    Enclosure,
    Index,
    Rests,
    changed,
    pieces,
    union,
    unknown,
)
from simulator.arithmetic.total_order import same_code
from simulator.arithmetic.trust import NAMED_CHOICES, Assumption, choice_bits
from simulator.corrections import READINGS, Reading, value_of_reading
from simulator.numbers import float_environment

_LISTED = 3
"""Causes that are printed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OtherRelease:
    """The outputs of a kernel under another release, beside those of the one that is followed.

    Attributes:
        followed, other: the releases.
        changed: for each output, in their order, True where the other gives another code or leaves
            another range of codes; all True where the other refuses the kernel. Those of `kept`
            follow.
        outputs: those of the other, in the same order; none where it refuses the kernel. Of an
            array that it does not write nothing is known.
        kept: the arrays that the other alone writes, as they stay here.
        causes: the operations that the two carry out differently, or of which one refuses some.
        conflicts: the readings behind `causes` that upstream's own texts contradict.
        refusal: what the other says instead of results; empty where it has some.
    """

    followed: Release
    other: Release
    changed: tuple[Bools, ...]
    outputs: tuple[OutputCertainty, ...] = ()
    kept: tuple[OutputCertainty, ...] = ()
    causes: tuple[Cause, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    refusal: str = ""

    @property
    def count(self) -> int:
        """The number of elements of all outputs that the other release changes."""
        return sum(int(np.count_nonzero(changed)) for changed in self.changed)

    @property
    def choice(self) -> Assumption:
        """The release that is followed, as a choice that results rest on."""
        return Assumption(
            name=f"RELEASE_{self.followed.name}",
            statement=f"operations run as {self.followed} runs them, not as {self.other}",
            source="; ".join(map(str, self.conflicts)) or "upstream's sources at both",
        )

    def __str__(self) -> str:
        size = sum(changed.size for changed in self.changed)
        if self.refusal:
            return f"{self.other} refuses it: {self.refusal}"
        text = f"{self.other} changes {self.count:,} of {size:,}"
        if not self.count:
            return text
        listed = ", ".join(map(str, self.causes[:_LISTED]))
        more = len(self.causes) - _LISTED
        by = f"{listed} and {more} more" if more > 0 else listed
        return "; ".join((f"{text}, by {by}", *map(str, self.conflicts)))


def other_release(
    outputs: Sequence[OutputCertainty],
    dependence: Mapping[Cause, DataType],
    again: Callable[[], Sequence[OutputCertainty]],
    held: Callable[[str], OutputCertainty],
) -> OtherRelease:
    """Run a kernel under the other release and compare.

    Nothing runs where no operation depends on the release.

    Args:
        outputs: under the release that is followed here.
        dependence: the operations that depend on it, with the dtype of their operands.
        again: runs the kernel without warnings and gives its outputs, under the options of then.
        held: gives an array of this name as the run that is followed leaves it.
    """
    followed = current().followed_release
    other = next(each for each in RELEASES.values() if each is not followed)
    found = _OtherRun(changed=tuple(_changed(each, each) for each in outputs), outputs=(*outputs,))
    if dependence:
        with options(release=other.name):
            found = _run_otherwise(outputs, again, held)
    return OtherRelease(
        followed=followed,
        other=other,
        changed=found.changed,
        outputs=found.outputs,
        kept=found.kept,
        causes=tuple(dependence),
        conflicts=tuple(
            conflict
            for conflict in CONFLICTS
            if any(conflict.is_about(cause.operation, dtype) for cause, dtype in dependence.items())
        ),
        refusal=found.refusal,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _OtherRun:
    """The outputs of a kernel under other options, as `OtherRelease` has them."""

    changed: tuple[Bools, ...]
    outputs: tuple[OutputCertainty, ...] = ()
    kept: tuple[OutputCertainty, ...] = ()
    refusal: str = ""


def _run_otherwise(
    outputs: Sequence[OutputCertainty],
    again: Callable[[], Sequence[OutputCertainty]],
    held: Callable[[str], OutputCertainty],
) -> _OtherRun:
    """Run a kernel under the options of now, which are others, and compare."""
    try:
        by_name = {each.name: each for each in again()}
    except Exception as error:  # whatever the body raises there
        refusal = f"{type(error).__name__}: {error}"
        return _OtherRun(changed=tuple(map(_all_of, outputs)), refusal=refusal)
    names = {each.name for each in outputs}
    kept = tuple(held(name) for name in by_name if name not in names)
    found = tuple(by_name.get(each.name) or unknown_output(each) for each in (*outputs, *kept))
    pairs = zip((*outputs, *kept), found, strict=True)
    changed = tuple(_changed(one, two) for one, two in pairs)
    return _OtherRun(changed=changed, outputs=found, kept=kept)


def unknown_output(output: OutputCertainty) -> OutputCertainty:
    """An output of which any code is possible, for the array holds its former elements."""
    held = unknown(output.values, output.format, 0)
    return dataclasses.replace(
        output, low=held.low, high=held.high, may_be_nan=held.may_be_nan, cause=held.cause
    )


def _all_of(output: OutputCertainty) -> Bools:
    return np.ones(output.shape, np.bool_)


def _changed(one: OutputCertainty, two: OutputCertainty) -> Bools:
    """The elements whose code, or whose range of codes, is another."""
    if one is two:
        return np.zeros(one.shape, np.bool_)
    if one.dtype is not two.dtype or one.shape != two.shape:
        return _all_of(one)
    return ~same_code(one.values, two.values) | changed(_bounds(one), _bounds(two))


def _bounds(output: OutputCertainty) -> Bounds:
    return Bounds(low=output.low, high=output.high, nan=output.may_be_nan)


Outputs = tuple[OutputCertainty, ...]

_OF_RELEASE: Final = 1 << len(NAMED_CHOICES)
"""The bit of the release that is followed."""
_OF_READINGS: Final = {name: _OF_RELEASE << 1 + k for k, name in enumerate(READINGS)}
"""The bits of the readings that hold."""


def judged(
    outputs: Outputs, assumed: frozenset[Assumption], again: Callable[[Asked], Outputs]
) -> Outputs:
    """Name the choices that the certain elements of outputs rest on.

    Args:
        outputs: of a kernel that ran.
        assumed: the assumptions that it made.
        again: runs it by public texts alone, for a `Recording` that is given this.
    """
    if not assumed:
        return tuple(dataclasses.replace(output, choices=None) for output in outputs)
    if not any(_has_certain(output) for output in outputs):
        return tuple(_resting_on(output, 0) for output in outputs)
    in_force = choice_bits(*assumed)
    others = _again(outputs, lambda: again(_asked_for(outputs, in_force)))
    if others is None:
        return tuple(_resting_on(output, in_force) for output in outputs)
    return tuple(
        dataclasses.replace(output, choices=_choices_of(output, other, in_force))
        for output, other in zip(outputs, others, strict=True)
    )


def _asked_for(outputs: Outputs, in_force: int) -> Asked:
    """Of a run by public texts: the choices of elements, without ends that are compared.

    Args:
        outputs: by choices.
        in_force: the bits of the choices that were made.

    Returns:
        Gives an output by choices with what its elements rest on; or None, where intervals have to
        be compared.
    """
    by_name = {output.name: output for output in outputs if output.may_be_nan is None}

    def found(name: str, held: Enclosure) -> OutputCertainty | None:
        output = by_name.get(name)
        if output is None:
            return None
        rests = held.rests(output.low, output.high, in_force, output.certain_rows)
        if rests is None:
            return None
        return dataclasses.replace(output, choices=_widened(rests, output))

    return found


def _resting_on(output: OutputCertainty, bits: int) -> OutputCertainty:
    """An output all of whose certain elements rest on the same choices."""
    return dataclasses.replace(output, choices=np.broadcast_to(np.uint32(bits), output.shape))


_SPARSE: Final = 64
"""Of so many elements one in a place of its own takes as long as all of them in order."""
_PIECE_ELEMS: Final = 1 << 15
"""Elements of outputs that are compared together, in the cache."""


def _has_certain(output: OutputCertainty) -> bool:
    if output.certain_rows is not None:
        return bool(output.certain_rows.any())
    return any(_certain_part(output, index).any() for index in pieces(output.shape, _PIECE_ELEMS))


def _certain_part(output: OutputCertainty, index: Index) -> Bools:
    certain = same_code(output.low[index], output.high[index])
    return certain if output.may_be_nan is None else certain & ~output.may_be_nan[index]


def resting_on_release(outputs: Outputs, other: OtherRelease, doubts: bool) -> Outputs:
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


def resting_on_readings(outputs: Outputs, ran: Recording, again: Callable[[], Outputs]) -> Outputs:
    """Name the readings that hold, where the other value of one gives something else.

    All elements rest on a reading under whose other value the kernel is refused.

    Args:
        outputs: under the readings that hold.
        ran: the run of them; where an operation doubts a reading, elements that the other value
            changes are open.
        again: as for `other_release`.
    """
    for name, (cause, doubts) in ran.reading_dependence.items():
        reading, value = READINGS[name], value_of_reading(READINGS[name], current().readings)
        with options(readings={name: reading.other(value)}):
            other = _run_otherwise(outputs, again, lambda each: ran.certainty_of(ran.held(each)))
        if doubts and not other.refusal:
            either = zip((*outputs, *other.kept), other.outputs, strict=True)
            outputs = tuple(_opened(output, theirs, cause) for output, theirs in either)
            continue
        bit = np.uint32(_OF_READINGS[name])
        outputs = tuple(
            dataclasses.replace(
                output,
                choices=_bits(output) | np.where(changed, output.certain * bit, np.uint32(0)),
                named_choices=_with_readings(output.named_choices),
            )
            for output, changed in zip(outputs, other.changed, strict=False)
        )
    return outputs


def _with_readings(named: tuple[Assumption, ...]) -> tuple[Assumption, ...]:
    """Choices by bit, those of the readings too; the bit of a release behind none is not set."""
    if len(named) > len(NAMED_CHOICES) + 1:
        return named
    release = Assumption(name="RELEASE", statement="the release that is followed", source="")
    return (
        *(*named, release)[: len(NAMED_CHOICES) + 1],
        *(_reading_choice(reading) for reading in READINGS.values()),
    )


def _reading_choice(reading: Reading) -> Assumption:
    """A reading that holds, as a choice that results rest on."""
    value = value_of_reading(reading, current().readings)
    other = reading.values[reading.other(value)]
    return Assumption(
        name=f"READING_{reading.name}",
        statement=f"{reading.subject}: {reading.values[value]}",
        source=f"conflicting: {other}",
    )


def _opened(output: OutputCertainty, other: OutputCertainty, cause: Cause) -> OutputCertainty:
    """An output whose elements may be those of either release."""
    ends = union(_bounds(output), _bounds(other), output.format)
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
    outputs = ran.outputs(
        name for buffer in ran.buffers for name in buffer.names if ran.control_dependence
    )
    if ran.doubts_release:
        cause = next(iter(ran.release_dependence))
        return tuple(_opened(output, unknown_output(output), cause) for output in outputs)
    bits = choice_bits(*ran.assumed) | bool(ran.release_dependence) * _OF_RELEASE
    bits |= sum(_OF_READINGS[name] for name in ran.reading_dependence)
    return tuple(_resting_on(output, bits) for output in outputs)


def _choices_of(output: OutputCertainty, other: OutputCertainty, in_force: int) -> ChoiceBits:
    """The choices that leave an element open when none is in force."""
    if other.choices is not None:  # of `_asked_for`
        return other.choices
    found = np.zeros(output.shape, np.uint32)
    for index in pieces(output.shape, _PIECE_ELEMS):
        certain = _certain_part(output, index)
        if not certain.any():
            continue
        is_same = same_code(output.values[index], other.low[index]) & _certain_part(other, index)
        rests = certain & ~is_same
        if rests.any():
            named = other.cause[index].astype(np.uint32) & np.uint32(in_force)
            # What a choice opens on a way that no interval follows rests on all in force.
            np.copyto(named, in_force, where=named == 0)
            np.copyto(found[index], named, where=rests)
    return found


def _widened(rests: Rests, output: OutputCertainty) -> ChoiceBits:
    """Bits in an array of zeros: four elements at a time show whether there are any.

    Where few have some, most of the array is never touched.
    """
    found, rows = np.zeros(output.shape, np.uint32), output.certain_rows
    if rests.places is not None:
        named = np.flatnonzero(rests.bits)
        found.reshape(-1)[rests.places[named]] = rests.bits[named]
        return found
    columns = rests.bits.shape[-1]
    every, whole = rests.bits.reshape(-1, columns), found.reshape(-1, columns)
    runs = [slice(0, len(every))] if rows is None or rows.all() else map(_one, np.flatnonzero(rows))
    for run in runs:
        flat, to = every[run].reshape(-1), whole[run].reshape(-1)
        at = np.flatnonzero(flat[: flat.size // 4 * 4].view(np.uint64) != 0)
        if at.size > flat.size // _SPARSE:
            np.copyto(to, flat)
            continue
        at = (4 * at[:, np.newaxis] + np.arange(4)).reshape(-1)
        at = np.append(at, np.arange(flat.size // 4 * 4, flat.size))
        to[at] = flat[at]
    return found


def _one(row: np.intp) -> slice:
    return slice(int(row), int(row) + 1)


def _again(outputs: Outputs, run: Callable[[], Outputs]) -> Outputs | None:
    """The outputs of another run; None where it fails, or writes others: the choices decide."""
    try:
        others = run()
    except ValueError:  # As of elements that nobody wrote, where a condition is open.
        return None
    same = [(o.name, o.dtype, o.shape) for o in outputs]
    return others if same == [(o.name, o.dtype, o.shape) for o in others] else None


def _bits(output: OutputCertainty, index: Index = ()) -> ChoiceBits:
    choices = np.broadcast_to(np.uint32(0), output.shape)
    found: ChoiceBits = (choices if output.choices is None else output.choices)[index]
    return found
