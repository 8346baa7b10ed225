"""The certainty of a kernel's results: the bits that a device gives, and causes of open ones.

What would be open, were one operation exact or its result rounded first, tells remedies.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.kernel.choices import OtherRelease
from pypto_cast.loading import entry
from pypto_cast.recording.causes import ROUNDED_TO, WhatIf, applying
from pypto_cast.recording.causes import Cause as Cause
from pypto_cast.recording.output_certainty import Array, Bools, certain_by_choice
from pypto_cast.recording.output_certainty import CertaintyCounts as CertaintyCounts
from pypto_cast.recording.output_certainty import OutputCertainty as OutputCertainty
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.page import check_pages
from pypto_cast.report.report import Report, plain
from pypto_cast.report.text_format import printable
from pypto_cast.tensors.array_files import new_file
from simulator.arithmetic.trust import Assumption

_HEAVIEST: Final = 5
"""Causes that are printed."""

T = TypeVar("T")


class ByOutput(Mapping[str, T], Generic[T]):
    """Something for each output of a kernel, by its name or by its position.

    Args:
        items: by name, in the order of the parameters.
        aliases: other names, and the ones that they stand for.
    """

    def __init__(
        self, items: Mapping[str, T], aliases: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._items, self._aliases = dict(items), dict(aliases)

    def __getitem__(self, key: str | int) -> T:
        names = list(self._items)
        if isinstance(key, int) and -len(names) <= key < len(names):
            return self._items[names[key]]
        if isinstance(key, str) and (name := self._aliases.get(key, key)) in self._items:
            return self._items[name]
        raise KeyError(f"no output {key!r}; there are {', '.join(names) or 'none'}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"ByOutput({self._items!r})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Certainty:
    """The results of a kernel, and which of them a device is certain to give.

    An output is found by its name or by its position: `certainty["out"]`, `certainty[0]`; so is
    what the properties hold. An array handed in for several parameters is one output, which each of
    their names finds.

    Attributes:
        outputs: in the order of the parameters.
        kernel: its name.
        standing: the measured device that the bounds follow, with its date; empty: what is assumed.
        release: upstream's release that was followed, with its revision; empty: not known.
        other_release: the results that the other release would change; None: not known.

    Raises:
        ValueError: two outputs of one name.
    """

    outputs: tuple[OutputCertainty, ...]
    kernel: str = ""
    standing: str = ""
    release: str = ""
    other_release: OtherRelease | None = None

    def __post_init__(self) -> None:
        names = [output.name for output in self.outputs]
        if len(set(names)) < len(names):
            raise ValueError(f"outputs need names of their own, got {', '.join(names)}")

    def __getitem__(self, key: str | int) -> OutputCertainty:
        return self._each(lambda output: output)[key]

    def __iter__(self) -> Iterator[str]:
        return (output.name for output in self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    def __contains__(self, name: object) -> bool:
        return any(name in (output.name, *output.aliases) for output in self.outputs)

    @property
    def values(self) -> ByOutput[Array]:
        """The values that this library computes, by output."""
        return self._each(lambda output: output.values)

    @property
    def low(self) -> ByOutput[Array]:
        """The least that a device may give, by output."""
        return self._each(lambda output: output.low)

    @property
    def high(self) -> ByOutput[Array]:
        """The greatest that a device may give, by output."""
        return self._each(lambda output: output.high)

    @property
    def certain(self) -> ByOutput[Bools]:
        """True where one code is possible, by output."""
        return self._each(lambda output: output.certain)

    @property
    def by_documents(self) -> ByOutput[Bools]:
        """True where one code is possible whatever stands for a named choice, by output."""
        return self._each(lambda output: output.by_documents)

    @property
    def counts(self) -> CertaintyCounts:
        """The number of results of all outputs by how much is known of them."""
        return sum((output.counts for output in self.outputs), CertaintyCounts())

    @property
    def choices(self) -> Mapping[Assumption, int]:
        """The number of certain results that rest on each choice, the most first."""
        return certain_by_choice(self.outputs)

    @property
    def causes(self) -> Mapping[Cause, int]:
        """The number of results of all outputs that each cause leaves open, the most first."""
        counts: Counter[Cause] = Counter()
        for output in self.outputs:
            counts.update(output.undecided_by_cause)
        return dict(counts.most_common())

    @property
    def undecided(self) -> int:
        """The number of results of all outputs that have more than one possible code."""
        return sum(output.undecided for output in self.outputs)

    @property
    def size(self) -> int:
        """The number of results of all outputs."""
        return sum(output.values.size for output in self.outputs)

    @property
    def release_in_words(self) -> str:
        """The release, and the results that the other one changes where an operation may differ."""
        other = self.other_release
        return self.release if other is None or not other.causes else f"{self.release}; {other}"

    def html(self, path: str | os.PathLike[str], *, replace: bool = True) -> None:
        """Write a picture of each output: the undecided elements, and their causes on hover.

        It is one file under 1 MB that needs no network, dark or light as the system is. Of a large
        output a cell of the picture stands for several elements. The file is written whole or not
        at all.

        Args:
            path: the file.
            replace: one that is there already is replaced.

        Raises:
            FileExistsError: it is there, and `replace` is false.
            FileNotFoundError: its directory does not exist.
            ModuleNotFoundError: the extra `cli` is not installed.
            RuntimeError: another run writes it.
            ValueError: `path` is no regular file.
            OSError: the directory cannot be written to, or there is no room.
        """
        check_pages()
        text = entry("certainty_page")(self.outputs, self._title, self.causes)
        with new_file(Path(path), force=replace) as file:
            file.write(text.encode())

    @property
    def _title(self) -> str:
        title = f"Certainty of {self.kernel}" if self.kernel else "Certainty"
        return f"{title}, {self.standing}" if self.standing else title

    def __str__(self) -> str:
        heaviest = [(f"left open by {c}", n) for c, n in list(self.causes.items())[:_HEAVIEST]]
        heaviest += [(f"rest on {choice}", n) for choice, n in self.choices.items()]
        width = max((len(f"{count:,}") for _, count in heaviest), default=0)
        lines = [f"  {count:>{width},} {words}" for words, count in heaviest]
        about = filter(None, (self.release_in_words, self.standing))
        return "\n".join([*map(str, self.outputs), *lines, *about])

    def __repr__(self) -> str:
        return f"<certainty: {'; '.join(map(str, self.outputs))}>"

    @property
    def report(self) -> Report:
        """The outputs, the causes of open results, the choices that certain ones rest on."""
        other = self.other_release
        changes = other and {
            "release": str(other.other),
            "changed": other.count,
            "refusal": other.refusal or None,
            "causes": list(map(str, other.causes)),
            "conflicts": list(map(str, other.conflicts)),
        }
        causes = self.causes
        return Report(
            kind="certainty",
            title=self._title,
            facts=(
                *plain(kernel=self.kernel, standing=self.standing or None),
                *plain(release=self.release or None, other_release=changes),
                *plain(
                    causes=lambda: [
                        {**dataclasses.asdict(cause), "undecided": count}
                        for cause, count in causes.items()
                    ]
                ),
            ),
            tables=entry("certainty_tables")(self.outputs, causes, self.choices, _HEAVIEST),
            notes=tuple(printable(text) for text in (self.release_in_words, self.standing) if text),
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report)

    def _each(self, of: Callable[[OutputCertainty], T]) -> ByOutput[T]:
        aliases = {alias: output.name for output in self.outputs for alias in output.aliases}
        return ByOutput({output.name: of(output) for output in self.outputs}, aliases)


_OBSERVERS: Final[list[Callable[[Certainty], None]]] = []


def announce(certainty: Certainty) -> None:
    """Hand the certainty of a kernel that ran to whoever observes."""
    for observer in tuple(_OBSERVERS):
        observer(certainty)


@contextlib.contextmanager
def observed_by(observer: Callable[[Certainty], None]) -> Iterator[None]:
    """Call a function with every certainty that is announced while the body runs, in any thread."""
    _OBSERVERS.append(observer)
    try:
        yield
    finally:
        _OBSERVERS.remove(observer)


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
        names = " or ".join(map(format, ROUNDED_TO))
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
