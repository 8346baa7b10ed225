"""Numbers of a kernel that upstream's compiler takes for one: of the same six decimals, or untold.

It compares operations by their text, and that of a number is what `std::to_string` gives. Of equal
operations on one tensor, one is kept (`common_operation_eliminate.cpp`), and of equal tile programs
the first is run for all (`Function::ComputeHash`), across the loops of a kernel. So `x * 1e-7` and
`z * 2e-7` may both multiply by 2e-7. The numbers between are what a device may multiply by.
The text of `where` of two numbers has neither of them, and that by which tile programs are compared
has no decimals of `round`, and at head no key of `uniform`: of two calls one may serve for both.
Sources: upstream pypto at tag r0.2.0 and at 883e7dfb0, framework/src/interface/operation/
attr_holder.h, interface/function/function.cpp; confirmed by dumps of the wheel 0.2.0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Key = tuple[str, str, str]
"""An operation, the format that it runs in, and the text of a number, as the planner has it; "" of
numbers that are not in the text."""


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


@dataclass(slots=True)
class CloseNumbers:
    """The float operands of a kernel, by operation, format and text.

    Attributes:
        known: the numbers of each key, from a run before.
        found: those of this run.
        is_inside: the steps are those inside one tile operation, which no pass compares.
    """

    known: dict[Key, frozenset[float | str]] = field(default_factory=dict)
    found: dict[Key, set[float | str]] = field(default_factory=dict)
    is_inside: bool = False

    def others(self, operation: str, fmt: str, number: float) -> frozenset[float]:
        """The numbers that a device may take for one; not those that only come later.

        Args:
            operation: its name.
            fmt: the name of the format that it runs in.
            number: in that format.
        """
        if self.is_inside:
            return frozenset()
        found = self._with((operation, fmt, format(number, "f")), number)
        return frozenset(each for each in found if not isinstance(each, str))

    def untold(
        self, operation: str, fmt: str, numbers: Sequence[float]
    ) -> tuple[tuple[float, ...], ...]:
        """The other numbers that a device may take for those that no text has.

        Args:
            operation: its name.
            fmt: the name of its dtype's format.
            numbers: ints and floats, each in its place.
        """
        if self.is_inside:
            return ()
        # As text, which tells -0.0 from 0.0 and is the same of two NaN.
        given = " ".join(map(str, numbers))
        others = self._with((operation, fmt, ""), given) - {given}
        return tuple(tuple(map(_number, str(each).split())) for each in sorted(map(str, others)))

    def _with(self, key: Key, number: float | str) -> frozenset[float | str]:
        alike = self.found.setdefault(key, set())
        alike.add(number)
        return self.known.get(key, frozenset()).union(alike)

    def came_later(self) -> bool:
        """True if numbers of this run were not known to those before them."""
        return any(
            len(each) > 1 and not each <= self.known.get(key, frozenset())
            for key, each in self.found.items()
        )

    def for_next_run(self) -> CloseNumbers:
        """The table of another run of the kernel, which knows the numbers of this one."""
        known = {
            key: self.known.get(key, frozenset()) | each
            for key, each in self.found.items()
            if len(each) > 1 or key in self.known
        }
        return CloseNumbers(known={**self.known, **known})

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """The body carries out the steps inside one tile operation."""
        before, self.is_inside = self.is_inside, True
        try:
            yield
        finally:
            self.is_inside = before
