"""Results left open, were one operation exact or its result rounded first; remedies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.recording.causes import ROUNDED_TO, Cause, WhatIf, applying

if TYPE_CHECKING:
    from pypto_cast.kernel.certainty import Certainty


@contextlib.contextmanager
def what_if(operation: Cause | str, *, rounded_to: DataType | None = None) -> Iterator[WhatIf]:
    """Assume something of an operation for the body of a `with` statement.

    Exact: a device gives our value for it, as a measurement there might show; operands that are
    open still leave its result open. Rounded: as if a cast to `rounded_to` (CAST_RINT) and one back
    to FP32 stood after it; this changes values.

    Args:
        operation: a cause out of `Certainty.causes`, its text, or the name of an operation, which
            means every one of that name.
        rounded_to: DT_BF16 or DT_FP16, or None for exact.

    Raises:
        TypeError: neither a cause nor a str.
        ValueError: another dtype; or, at the end, no such operation was carried out.
    """
    if not isinstance(operation, (Cause, str)):
        raise TypeError(f"what_if takes a Cause or a str, not {operation!r}")
    if rounded_to is not None and rounded_to not in ROUNDED_TO:
        names = " or ".join(map(str, ROUNDED_TO))
        raise ValueError(f"rounded_to must be {names}, not {rounded_to!r}")
    assumed = WhatIf(operation=operation, rounded_to=rounded_to)
    with applying(assumed):
        yield assumed
    if not assumed.matched:
        how = "" if rounded_to is None else " with a result in FP32"
        raise ValueError(
            f"what_if: no {operation}{how} was carried out; Certainty.causes names operations"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """The results that one operation leaves open, and ways to settle them.

    Attributes:
        cause: the operation.
        undecided: results of the kernel that are open.
        open_by_cause: those of them that this operation leaves open.
        if_exact: results that would be open, were it exact.
        if_rounded: by dtype, those that would be, were its result rounded to that; none where the
            result is not in FP32.
    """

    cause: Cause
    undecided: int
    open_by_cause: int
    if_exact: int
    if_rounded: Mapping[DataType, int]

    def __str__(self) -> str:
        text = (
            f"{self.cause} leaves {self.open_by_cause:,} of {self.undecided:,} open; "
            f"were it known, {self.if_exact:,} would be"
        )
        if not self.if_rounded:
            return text
        dtype, left = min(self.if_rounded.items(), key=lambda item: item[1])
        share = 100 * (self.undecided - left) // max(1, self.undecided)
        if share <= 0:
            return text
        return f"{text}; rounding its result to {dtype} first would decide {share} % of them"


def remedies(run: Callable[[], Certainty], most: int) -> tuple[Remedy, ...]:
    """Try ways to settle the heaviest causes of a kernel.

    Args:
        run: runs the kernel, three times for each cause besides the first time.
        most: the number of causes.
    """
    found = run()

    def undecided(cause: Cause, rounded_to: DataType | None) -> int | None:
        assumed = WhatIf(operation=cause, rounded_to=rounded_to)
        with applying(assumed):
            left = run().undecided
        return left if assumed.matched else None

    tried = []
    for cause, count in list(found.causes.items())[:most]:
        exact = undecided(cause, None)
        rounded = {dtype: undecided(cause, dtype) for dtype in ROUNDED_TO}
        tried.append(
            Remedy(
                cause=cause,
                undecided=found.undecided,
                open_by_cause=count,
                if_exact=found.undecided if exact is None else exact,
                if_rounded={dtype: left for dtype, left in rounded.items() if left is not None},
            )
        )
    return tuple(tried)
