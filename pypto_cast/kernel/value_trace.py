"""The way of one element of an output through the operations of a kernel, with its interval."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.operation_dump import tensors_of
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.recording import recording
from pypto_cast.recording.steps import CallSite, Patches, WatchedCall, origin_of, watching
from pypto_cast.report.text_format import printable
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic.interval import Enclosure
from simulator.numbers import float_environment
from simulator.numbers.convert import in_numpy

_AXES: Final = ("dim", "axis")
_MOST: Final = 10_000
"""Steps that a trace has at most."""
Index = tuple[int, ...]
Box = tuple[int | tuple[int, int] | None, ...]
"""Places of elements: one, from one to before another, or None for all of an axis."""
Spans = tuple[tuple[int, int], ...]
"""Begin and end of each axis."""


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
        place = ", ".join(map(_place_text, self.box)) or "..."
        interval = "certain" if self.is_certain else f"in [{self.low}, {self.high}]"
        several = f", {self.count:,} elements" if self.count > 1 else ""
        return f"{self.name or self.dtype}[{place}]{several} = {self.value}, {interval}"


def _place_text(place: int | tuple[int, int] | None) -> str:
    return ":" if place is None else ":".join(map(str, np.atleast_1d(place)))


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
        is_cut: there are more, which are left out.
    """

    output: TracedElement
    steps: tuple[TracedStep, ...]
    is_cut: bool

    def __str__(self) -> str:
        cut = (f"cut: more than {len(self.steps):,} operations",) if self.is_cut else ()
        return "\n".join(map(str, (self.output, *cut, *self.steps)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A tensor as it was when an operation read or gave it."""

    name: str
    dtype: Any
    enclosure: Enclosure
    patches: Patches
    tensor: Tensor | None = None

    @staticmethod
    def of(tensor: Tensor) -> _Held | None:
        held = tensor.enclosure()
        if held is None:
            return None
        return _Held(
            name=tensor.name,
            dtype=tensor.dtype,
            enclosure=_copied(held),
            patches=tensor.patches(),
            tensor=tensor,
        )

    @property
    def shape(self) -> Index:
        """The shape of the tensor."""
        return self.enclosure.values.shape

    def bits(self, place: Spans) -> bytes:
        """The bits of elements."""
        return self.enclosure.values[tuple(slice(*span) for span in place)].tobytes()

    @float_environment.quiet()
    def elements(self, place: Spans | None) -> TracedElement:
        """Some elements; None: all of the tensor."""
        index: Any = ... if place is None else tuple(slice(*span) for span in place)
        held, fmt = self.enclosure[index], self.dtype.number_format
        values, low, high = (in_numpy(x, fmt) for x in (held.values, held.low, held.high))
        several = values.size != 1
        return TracedElement(
            name=printable(self.name),
            dtype=self.dtype.name,
            box=() if place is None else tuple(map(_shown, place, self.shape)),
            count=values.size,
            value=f"{values.min()!s}..{values.max()!s}" if several else str(values.flat[0]),
            low=str(low.min()),
            high=str(high.max()),
            is_certain=bool(held.certain().all()),
        )


def _shown(span: tuple[int, int], extent: int) -> int | tuple[int, int] | None:
    begin, end = span
    if end - begin == 1:
        return begin
    return None if (begin, end) == (0, extent) else span


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
    named: Mapping[str, Any]
    axis: int


def trace_values(
    kernel: Kernel, *arguments: Any, element: Sequence[Any], **named: Any
) -> ValueTrace:
    """Print one element's way through every operation of a kernel, with its interval.

    The way goes back from the output through the elements that each operation read. Of several, as
    those of a sum, a row or a matrix, it shows the range, and goes on with all of them together. At
    an operation that moves elements, as a transposition, it shows the range of all, and ends.

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
                named=call.named,
                axis=_axis_of(call),
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
    found = list(itertools.islice(_way(held, index, events), _MOST + 1))
    steps = sorted(found[:_MOST], key=lambda pair: pair[0])
    trace = ValueTrace(
        output=held.elements(_single(index)),
        steps=tuple(step for _, step in steps),
        is_cut=len(found) > _MOST,
    )
    print(trace)
    return trace


def _axis_of(call: WatchedCall) -> int:
    """The dimension that a call names, as of a sum; the last one without."""
    given = (*call.arguments[1:], *(call.named[name] for name in _AXES if name in call.named))
    found = (x for x in given if hasattr(x, "__index__") and not isinstance(x, bool | Tensor))
    return int(next(found, -1))


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
    """The operations that an element came through, each once for the same elements."""
    waiting: list[tuple[_Held, Spans, int]] = [(held, _single(index), len(events))]
    seen: set[tuple[int, Spans]] = set()
    while waiting:
        tensor, place, before = waiting.pop()
        for event, result, at in _made_by(tensor, place, events[:before]):
            if (event.number, at) in seen:
                continue
            seen.add((event.number, at))
            operands = []
            reads = _places_read(event, result.shape, at)
            for operand, there in zip(event.operands, reads, strict=True):
                operands.append(operand.elements(there))
                if there is not None:
                    waiting.append((operand, there, event.number))
            yield (
                event.number,
                TracedStep(
                    operation=event.name,
                    site=event.site,
                    operands=tuple(operands),
                    result=result.elements(at),
                ),
            )


def _single(index: Index) -> Spans:
    return tuple((i, i + 1) for i in index)


def _made_by(
    tensor: _Held, place: Spans, events: Sequence[_Event]
) -> Iterator[tuple[_Event, _Held, Spans]]:
    """The operations that gave elements, the results and the elements' places in them."""
    left = [place]
    for patch in reversed(tensor.patches):
        box = tuple((o, o + n) for o, n in zip(patch.offset, patch.extent, strict=True))
        found = [common for each in left if (common := _common(each, box)) is not None]
        if not found:
            continue
        left = [rest for each in left for rest in _without(each, box)]
        for common in found:
            local = zip(common, patch.offset, patch.start, strict=True)
            at = tuple((a - o + s, b - o + s) for (a, b), o, s in local)
            made = _event_of(patch.record, tensor, common, at, events)
            if made is not None:
                yield *made, at
    if tensor.tensor is None:  # an output, all of which an operation without tiles may have given
        whole = tuple((0, n) for n in tensor.shape)
        for event in reversed(events):
            for result in event.results:
                if result.shape == tensor.shape and _holds(result, whole, tensor, whole):
                    yield from ((event, result, rest) for rest in left)
                    return
    else:
        given = [
            (event, result)
            for event in events
            for result in event.results
            if result.tensor is tensor.tensor and result.shape == tensor.shape
        ]
        for event, result in given[-1:]:
            yield from (
                (event, result, rest) for rest in left if _holds(result, rest, tensor, rest)
            )


def _event_of(
    record: CallSite, tensor: _Held, place: Spans, at: Spans, events: Sequence[_Event]
) -> tuple[_Event, _Held] | None:
    for event in reversed(events):
        site = event.site
        if (site.file, site.line, site.loops) != (record.file, record.line, record.loops):
            continue
        for result in event.results:
            if _holds(result, at, tensor, place):
                return event, result
    return None


def _holds(result: _Held, at: Spans, tensor: _Held, place: Spans) -> bool:
    """True if a result has the elements' bits at a place; another operation of the line may not."""
    if result.dtype is not tensor.dtype or len(at) != len(result.shape):
        return False
    if any(b > n for (_, b), n in zip(at, result.shape, strict=True)):
        return False
    return result.bits(at) == tensor.bits(place)


def _common(one: Spans, other: Spans) -> Spans | None:
    both = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return None if any(a >= b for a, b in both) else both


def _without(place: Spans, box: Spans) -> Iterator[Spans]:
    """The parts of a place that lie outside a box."""
    inside = _common(place, box)
    if inside is None:
        yield place
        return
    for axis, ((a, b), (c, d)) in enumerate(zip(place, inside, strict=True)):
        for part in ((a, c), (d, b)):
            if part[0] < part[1]:
                yield (*inside[:axis], part, *place[axis + 1 :])


# --- The elements that an operation reads --------------------------------------------------------

_ROWS: Final = ("softmax", "rms_norm", "cumsum", "cumprod")
"""Operations that compute an element of the elements of its row, or of another axis."""
_REDUCED: Final = ("sum", "prod", "amax", "amin", "argmax", "argmin")
_NOT_BY_ELEMENT: Final = (*_ROWS, *_REDUCED)
_OTHERS: Final = (*_NOT_BY_ELEMENT, "var")
_BY_ELEMENT: Final = ("elementwise_functions", "truth_and_bits", "special_functions", "composites")
"""The groups whose other operations compute an element of those at the same place."""


def _places_read(event: _Event, shape: Index, at: Spans) -> list[Spans | None]:
    """The elements of each operand that some of a result are computed of; None: not known which."""
    if event.name in _MATRICES:
        return [*_matrix_places(event, at), *(None for _ in event.operands[2:])]
    if event.name not in _NOT_BY_ELEMENT and not _is_by_element(event.name):
        return [None] * len(event.operands)
    return [_place_in(event, operand.shape, shape, at) for operand in event.operands]


def _is_by_element(name: str) -> bool:
    row = ROWS.get(name)
    group = "" if row is None else row.function.__module__.rpartition(".")[-1]
    return name in ("cast", "clone") or (group in _BY_ELEMENT and name not in _OTHERS)


def _place_in(event: _Event, shape: Index, result: Index, at: Spans) -> Spans | None:
    """The elements of an operand: an axis is that of the result, of one element, or reduced."""
    axis = event.axis % max(1, len(shape))
    if event.name in _REDUCED and len(shape) == len(result) + 1:
        result, at = (*result[:axis], 1, *result[axis:]), (*at[:axis], (0, 1), *at[axis:])
    missing = len(result) - len(shape)
    if missing < 0:
        return None
    along = axis if event.name in _NOT_BY_ELEMENT else None
    place = []
    for k, (n, r, span) in enumerate(zip(shape, result[missing:], at[missing:], strict=True)):
        if n not in (1, r) and k != along:
            return None
        place.append(span if n == r and k != along else (0, n))
    return tuple(place)


_MATRICES: Final = ("matmul",)


def _matrix_places(event: _Event, at: Spans) -> Iterator[Spans]:
    """The rows of the left matrix and the columns of the right one."""
    for operand, flag, axis in zip(event.operands, ("a_trans", "b_trans"), (-2, -1), strict=False):
        turned = bool(event.named.get(flag))
        lines, terms = at[axis], (0, operand.shape[-1 if (axis == -2) is not turned else -2])
        matrix = (lines, terms) if (axis == -2) is not turned else (terms, lines)
        batch = tuple(
            (0, 1) if n == 1 else span for n, span in zip(operand.shape[:-2], at[:-2], strict=True)
        )
        yield (*batch, *matrix)
