"""The results of a kernel that another release of upstream's would change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.options.context import current, options
from pypto_cast.options.releases import CONFLICTS, RELEASES, Conflict, Release
from pypto_cast.recording.causes import Cause
from pypto_cast.recording.output_certainty import Bools, OutputCertainty
from simulator.arithmetic.interval import unknown
from simulator.arithmetic.total_order import same_code
from simulator.arithmetic.trust import Assumption

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
    found, kept, refusal = list(outputs), list[OutputCertainty](), ""
    if dependence:
        try:
            with options(release=other.name):
                found = list(again())
        except Exception as error:  # whatever the body raises there
            refusal = f"{type(error).__name__}: {error}"
        else:
            by_name, names = {each.name: each for each in found}, {each.name for each in outputs}
            kept = [held(name) for name in by_name if name not in names]
            found = [by_name.get(each.name) or unknown_output(each) for each in (*outputs, *kept)]
    pairs = zip((*outputs, *kept), outputs if refusal else found, strict=True)
    return OtherRelease(
        followed=followed,
        other=other,
        changed=tuple(_all_of(one) if refusal else _changed(one, two) for one, two in pairs),
        outputs=() if refusal else tuple(found),
        kept=tuple(kept),
        causes=tuple(dependence),
        conflicts=tuple(
            conflict
            for conflict in CONFLICTS
            if any(conflict.is_about(cause.operation, dtype) for cause, dtype in dependence.items())
        ),
        refusal=refusal,
    )


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
    changed = ~same_code(one.values, two.values)
    for ours, theirs in ((one.low, two.low), (one.high, two.high)):
        changed |= ~same_code(ours, theirs)
    if one.may_be_nan is not None or two.may_be_nan is not None:
        changed |= _may_be_nan(one) != _may_be_nan(two)
    return changed


def _may_be_nan(output: OutputCertainty) -> Bools:
    return np.zeros(output.shape, np.bool_) if output.may_be_nan is None else output.may_be_nan
