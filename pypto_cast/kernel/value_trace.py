"""The way of one element of an output through the operations of a kernel, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.operation_dump import tensors_of
from pypto_cast.recording import recording
from pypto_cast.recording.steps import CallSite, Patches, WatchedCall, origin_of, watching
from pypto_cast.report.text_format import printable
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic.interval import Enclosure
from simulator.numbers import float_environment
from simulator.numbers.convert import in_numpy

_MOST: Final = 10_000
"""Elements that a trace has at most."""
Index = tuple[int, ...]
Box = tuple[int | None, ...]
"""Places of elements; None stands for all of an axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedElement:
    """An element, or the elements that an operation reads for one.

    Attributes:
        name: of the tensor; empty: it has none.
        dtype: of the tensor.
        box: of the element or elements; empty: all of the tensor.
        count: of elements.
        value: computed here; of several the least and the greatest with two dots.
        low, high: the ends of the interval, of several the outermost ones.
        is_certain: a device can give one code.
    """

    name: str
    dtype: str
    box: Box
    count: int
    value: str
    low: str
    high: str
    is_certain: bool

    def __str__(self) -> str:
        place = ", ".join(":" if i is None else str(i) for i in self.box) or "..."
        interval = "certain" if self.is_certain else f"in [{self.low}, {self.high}]"
        several = f", {self.count:,} elements" if self.count > 1 else ""
        return f"{self.name or self.dtype}[{place}]{several} = {self.value}, {interval}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedStep:
    """An operation that an element went through.

    Attributes:
        operation: its name.
        site: the call.
        operands: the elements that it read.
        result: the element that it gave.
    """

    operation: str
    site: CallSite
    operands: tuple[TracedElement, ...]
    result: TracedElement

    def __str__(self) -> str:
        read = "".join(f"\n    of {operand}" for operand in self.operands)
        return f"{self.operation} {self.site.place}\n    {self.result}{read}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTrace:
    """The way of an element.

    Attributes:
        output: the element of the output.
        steps: the operations, in the order of the run.
    """

    output: TracedElement
    steps: tuple[TracedStep, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, (self.output, *self.steps)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A tensor as it was when an operation read or gave it."""

    name: str
    dtype: Any
    enclosure: Enclosure
    patches: Patches

    @staticmethod
    def of(tensor: Tensor) -> _Held | None:
        held = tensor.enclosure()
        if held is None:
            return None
        return _Held(
            name=tensor.name, dtype=tensor.dtype, enclosure=_copied(held), patches=tensor.patches()
        )

    @float_environment.quiet()
    def element(self, box: Box) -> TracedElement:
        """The elements of a box; an empty one is all of the tensor."""
        place: Any = tuple(slice(None) if i is None else slice(i, i + 1) for i in box) or ...
        held, fmt = self.enclosure[place], self.dtype.number_format
        values, low, high = (in_numpy(x, fmt) for x in (held.values, held.low, held.high))
        several = values.size != 1
        return TracedElement(
            name=printable(self.name),
            dtype=self.dtype.name,
            box=box,
            count=values.size,
            value=f"{values.min()!s}..{values.max()!s}" if several else str(values.flat[0]),
            low=str(low.min()),
            high=str(high.max()),
            is_certain=bool(held.certain().all()),
        )


def _copied(held: Enclosure) -> Enclosure:
    """Values that no later write of the kernel changes; an interval is never written to."""
    return Enclosure(values=held.values.copy(), interval=held.interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """An operation of the run."""

    number: int
    name: str
    site: CallSite
    operands: tuple[_Held, ...]
    results: tuple[_Held, ...]


def trace_values(
    kernel: Kernel, *arguments: Any, element: Sequence[Any], **named: Any
) -> ValueTrace:
    """Print one element's way through every operation of a kernel, with its interval.

    The way goes back from the output through the operands of the same place, broadcast ones too;
    where an operation reads several elements for one, as a sum does, it shows their range and goes
    no further there.

    Args:
        kernel: of `pypto.jit`.
        arguments, named: as for a call; no array is written.
        element: the name of an output and an index: ("y", 3, 17).

    Returns:
        The trace that is printed.

    Raises:
        TypeError: `kernel` is none, or the index holds something else than ints.
        ValueError: no such output or element.
        RuntimeError: inside a kernel.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"trace_values takes a kernel of pypto.jit, not {kernel!r}")
    events: list[_Event] = []

    def watch(call: WatchedCall) -> None:
        found = [(role, _Held.of(tensor)) for role, tensor in tensors_of(call)]
        results = tuple(h for role, h in found if h is not None and role.startswith("out"))
        operands = tuple(h for role, h in found if h is not None and not role.startswith("out"))
        events.append(
            _Event(
                number=len(events),
                name=call.name,
                site=CallSite(**recording.site_fields()),
                operands=operands,
                results=results,
            )
        )

    with watching(watch):
        certainty = kernel.certainty(*arguments, **named)
    name, index = _asked(element, {n: certainty[n].values.shape for n in certainty})
    output = certainty[name]
    held = _Held(
        name=output.name,
        dtype=output.dtype,
        enclosure=Enclosure(values=output.values, interval=output.interval),
        patches=origin_of(output.values),
    )
    steps = sorted(_way(held, index, events), key=lambda pair: pair[0])
    trace = ValueTrace(output=held.element(index), steps=tuple(step for _, step in steps))
    print(trace)
    return trace


def _asked(element: Sequence[Any], shapes: dict[str, Index]) -> tuple[str, Index]:
    """The output and the index that are asked for."""
    name, index = (element[0], tuple(element[1:])) if len(element) else ("", ())
    if not isinstance(name, str) or name not in shapes:
        raise ValueError(f"the kernel writes {', '.join(shapes) or 'nothing'}, not {name!r}")
    shape = shapes[name]
    if any(isinstance(i, bool) or not hasattr(i, "__index__") for i in index):
        raise TypeError(f"an index is ints, as in ({name!r}, 3, 17), not {index!r}")
    whole = tuple(int(i) for i in index)
    inside = all(-n <= i < n for i, n in zip(whole, shape, strict=False))
    if len(whole) != len(shape) or not inside:
        raise ValueError(f"{name} has shape {list(shape)}, and no element {list(whole)}")
    return name, tuple(i % n for i, n in zip(whole, shape, strict=True))


def _way(held: _Held, index: Index, events: Sequence[_Event]) -> Iterator[tuple[int, TracedStep]]:
    """The operations that an element came through, each once."""
    waiting: list[tuple[_Held, Index, int]] = [(held, index, len(events))]
    seen: set[tuple[int, Index]] = set()
    while waiting and len(seen) < _MOST:
        tensor, place, before = waiting.pop()
        found = _made_by(tensor, place, events[:before])
        if found is None or (found[0].number, found[2]) in seen:
            continue
        event, result, at = found
        seen.add((event.number, at))
        operands = []
        for operand in event.operands:
            there = _place_in(operand.enclosure.values.shape, result.enclosure.values.shape, at)
            operands.append(operand.element(there))
            one = tuple(i for i in there if i is not None)
            if len(one) == operand.enclosure.values.ndim:
                waiting.append((operand, one, event.number))
        yield (
            event.number,
            TracedStep(
                operation=event.name,
                site=event.site,
                operands=tuple(operands),
                result=result.element(at),
            ),
        )


def _made_by(
    tensor: _Held, index: Index, events: Sequence[_Event]
) -> tuple[_Event, _Held, Index] | None:
    """The operation that gave an element, the result and the element's place in it."""
    for patch in reversed(tensor.patches):
        local = tuple(i - o for i, o in zip(index, patch.offset, strict=True))
        if not all(0 <= i < n for i, n in zip(local, patch.extent, strict=True)):
            continue
        at = tuple(i + s for i, s in zip(local, patch.start, strict=True))
        record = patch.record
        for event in reversed(events):
            if (event.site.line, event.site.loops) != (record.line, record.loops):
                continue
            if event.site.file != record.file:
                continue
            for result in event.results:
                if _holds(result, at, tensor, index):
                    return event, result, at
    return None


def _holds(result: _Held, at: Index, tensor: _Held, index: Index) -> bool:
    """True if a result has the element's bits at a place; another operation of the line may not."""
    values = result.enclosure.values
    if result.dtype is not tensor.dtype or len(at) != values.ndim:
        return False
    if any(i >= n for i, n in zip(at, values.shape, strict=True)):
        return False
    return bool(values[at].tobytes() == tensor.enclosure.values[index].tobytes())


def _place_in(shape: Index, result: Index, at: Index) -> Box:
    """The elements of an operand that one of a result is computed from; empty: any of them.

    An axis is that of the result, of one element, or one that a reduction made one element of.
    """
    if math.prod(shape) == 1:
        return (0,) * len(shape)
    missing = len(result) - len(shape)
    if missing < 0:
        return ()
    pairs = list(zip(shape, result[missing:], at[missing:], strict=True))
    if any(n not in (1, r) and r != 1 for n, r, _ in pairs):
        return ()
    return tuple(i if n == r else 0 if n == 1 else None for n, r, i in pairs)
