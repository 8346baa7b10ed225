"""The steps of a run, casts and operations, and the boxes of tensors and arrays that they wrote.

A watcher sees the calls with their operands and results.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, ParamSpec, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ascend_kernels.program import TileProgram
from pypto_cast.call_sites import is_silenced
from pypto_cast.options.context import Options
from pypto_cast.recording.buffers import Buffer
from tiling.grid import Grid, Shape, Tile, first_tile

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """The call that a step of a run stands at.

    Attributes:
        file: where the call stands.
        line: its line.
        loops: the loops around it with their index, outermost first.
        kernel: name of the kernel; empty outside.
    """

    file: str
    line: int
    loops: tuple[str, ...] = ()
    kernel: str = ""

    @property
    def place(self) -> str:
        """The call and the loops around it, in words."""
        within = f" in {self.kernel}" if self.kernel else ""
        loops = "".join(f", {loop}" for loop in self.loops)
        return f"at {os.path.basename(self.file)}:{self.line}{within}{loops}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRecord(CallSite):
    """One cast that ran.

    Attributes:
        program: how the cores do it.
    """

    program: TileProgram

    def tile_at(self, index: Shape) -> tuple[Tile, int]:
        """The tile that holds an element of the output, and its core."""
        return self.tiles().tile_at(index)

    def tiles(self) -> OperationRecord:
        """The tiles alone, without how the cores convert them."""
        plan = self.program.plan
        return OperationRecord(
            operation=f"cast {self.program.resolution.rule}",
            grid=plan.grid,
            core_count=plan.chip.vector_cores,
            file=self.file,
            line=self.line,
            loops=self.loops,
            kernel=self.kernel,
        )

    def __str__(self) -> str:
        return f"cast {self.program.resolution.rule} {self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord(CallSite):
    """The tiles of an operation's output; they go to the cores as those of a cast.

    Attributes:
        operation: its name.
        grid: the tiles of its output.
        core_count: the cores that share them.
    """

    operation: str
    grid: Grid
    core_count: int

    def tile_at(self, index: Shape) -> tuple[Tile, int]:
        """The tile that holds an element of the output, and its core."""
        number, cores, counts = 0, self.core_count, self.grid.counts
        for count, position, extent in zip(counts, index, self.grid.tile_shape, strict=True):
            number = number * count + position // extent
        tiles = len(self.grid)
        core = next(c for c in range(cores) if number < first_tile(c + 1, tiles, cores))
        return self.grid.tile(number), core

    def tiles(self) -> OperationRecord:
        """The record itself."""
        return self

    def __str__(self) -> str:
        return f"{self.operation} {self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationStep(CallSite):
    """One operation around the casts that was called.

    Attributes:
        name: upstream's.
        result: dtype and shape of what it gave.
        openness: gives True if a device may give other values; it may be found out only then.
    """

    name: str
    result: str
    openness: Callable[[], bool] = field(default=bool, compare=False, repr=False)

    @property
    def is_open(self) -> bool:
        """True if a device may give other values."""
        return self.openness()

    @property
    def result_elems(self) -> int:
        """The elements of its result; 0 if that is no tensor."""
        _, _, shape = self.result.partition(" ")
        return math.prod(map(int, re.findall(r"\d+", shape))) if shape else 0

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.result, self.place)))


_IN_WORDS: Final = {"__getitem__": "part", "__setitem__": "assignment", "move": "assignment"}


_Step = TypeVar("_Step")


class StepList(MutableSequence[_Step]):
    """A list, some stretches of which are made when an element up to their end is asked for.

    What comes after all such stretches is added, found and deleted without making any: so an
    operation that runs after thousands of iterations, which were carried out together, is recorded
    without looking at them.
    """

    __slots__ = ("_before", "_last", "_start")

    def __init__(self) -> None:
        self._before: list[list[_Step] | Callable[[], Iterable[_Step]]] = []
        self._start = 0
        """The number of those in `_before`."""
        self._last: list[_Step] = []

    def __len__(self) -> int:
        return self._start + len(self._last)

    def extend_later(self, count: int, make: Callable[[], Iterable[_Step]]) -> None:
        """Add so many elements, which a function makes; it may be called more than once."""
        self._before += self._last, make
        self._start += len(self._last) + count
        self._last = []

    def _made(self) -> list[_Step]:
        """All elements, as one list that this one is from now on."""
        if self._before:
            whole: list[_Step] = []
            for each in self._before:
                whole += each() if callable(each) else each
            whole += self._last
            self._before, self._start, self._last = [], 0, whole
        return self._last

    def _at(self, index: int | slice) -> tuple[list[_Step], int | slice]:
        """The list that an index is of, and the index in it."""
        start = self._start
        if not start:
            return self._last, index
        if isinstance(index, int):
            return (self._last, index - start) if index >= start else (self._made(), index)
        first, is_open = index.start, index.stop is None and index.step is None
        if is_open and first is not None and first >= start:
            return self._last, slice(first - start, None)
        return self._made(), index

    @overload
    def __getitem__(self, index: int) -> _Step: ...

    @overload
    def __getitem__(self, index: slice) -> list[_Step]: ...

    def __getitem__(self, index: int | slice) -> _Step | list[_Step]:
        own, at = self._at(index)
        return own[at]

    @overload
    def __setitem__(self, index: int, value: _Step) -> None: ...

    @overload
    def __setitem__(self, index: slice, value: Iterable[_Step]) -> None: ...

    def __setitem__(self, index: int | slice, value: Any) -> None:
        own, at = self._at(index)
        own[at] = value

    def __delitem__(self, index: int | slice) -> None:
        own, at = self._at(index)
        del own[at]

    def insert(self, index: int, value: _Step) -> None:
        """Put an element before that at an index, or at the end."""
        if index < self._start:
            self._made()
        self._last.insert(index - self._start, value)

    def append(self, value: _Step) -> None:
        """Put an element at the end."""
        self._last.append(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(CallSite):
    """A call of an operation in a body that ran without values, to be made again with them.

    Attributes:
        operation: the function.
        arguments, named: its arguments.
        result: what it gave.
        settings: the options of the context.
        segment: of the recording, when it was called.
    """

    operation: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    result: Any
    settings: Options
    segment: object

    @property
    def name(self) -> str:
        """The operation in words; of a function that several share, its first argument."""
        given, function = next(iter(self.arguments), None), self.operation.__name__
        return given if isinstance(given, str) else _IN_WORDS.get(function, function)


RecordedStep = CastRecord | OperationStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A box of a tensor that came out of a cast or another operation.

    Attributes:
        offset: where the box starts in the tensor.
        extent: how far it reaches.
        record: the cast or the operation.
        start: where the box starts in its output.
    """

    offset: Shape
    extent: Shape
    record: CastRecord | OperationRecord
    start: Shape

    def within(self, offset: Shape, extent: Shape) -> Patch | None:
        """The part of it in a box of the tensor, as seen from that box; None if there is none."""
        low = tuple(map(max, self.offset, offset))
        high = tuple(
            min(a + b, c + d)
            for a, b, c, d in zip(self.offset, self.extent, offset, extent, strict=True)
        )
        if any(a >= b for a, b in zip(low, high, strict=True)):
            return None
        return Patch(
            offset=_minus(low, offset),
            extent=_minus(high, low),
            record=self.record,
            start=_plus(self.start, _minus(low, self.offset)),
        )

    def moved(self, offset: Shape) -> Patch:
        """The same in a larger tensor that holds this one at an offset."""
        return Patch(
            offset=_plus(self.offset, offset),
            extent=self.extent,
            record=self.record,
            start=self.start,
        )

    def tile_at(self, index: Shape) -> tuple[Tile, int] | None:
        """The tile and the core of an element of the tensor; None if it lies elsewhere."""
        local = _minus(index, self.offset)
        if any(not 0 <= i < e for i, e in zip(local, self.extent, strict=True)):
            return None
        return self.record.tile_at(_plus(self.start, local))


Patches = tuple[Patch, ...]


def part_of(patches: Iterable[Patch], offset: Shape, extent: Shape) -> Patches:
    """The parts of the patches that lie in a box, as seen from it."""
    parts = (patch.within(offset, extent) for patch in patches)
    return tuple(part for part in parts if part is not None)


def _plus(a: Shape, b: Shape) -> Shape:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _minus(a: Shape, b: Shape) -> Shape:
    return tuple(x - y for x, y in zip(a, b, strict=True))


_Key = tuple[int, tuple[int, ...], tuple[int, ...]]

_KEPT: Final = 256
"""Arrays remembered at most, the last ones."""
_SWEPT: Final = 16
"""Of more than these, those that no longer exist are forgotten, with all boxes that wrote them."""
_REMEMBERED: Final[dict[_Key, tuple[weakref.ref[Any], Callable[[], Patches]]]] = {}
_LOCK: Final = Lock()


def remember(buffers: Iterable[Buffer[Patch]]) -> None:
    """Keep where the elements of these outputs came from."""
    for buffer in buffers:
        if buffer.home is not None:
            remember_array(buffer.home, buffer.owner, buffer.origins())


def remember_array(
    array: npt.NDArray[Any], owner: Any, patches: Iterable[Patch] | Callable[[], Patches]
) -> None:
    """Keep the origin of the elements of an array as long as the owner of its memory lives.

    Args:
        array: whose elements they are.
        owner: of its memory.
        patches: the origin, or what gives it.
    """
    key = _memory_key(array)
    gives = patches if callable(patches) else functools.partial(tuple, tuple(patches))
    with _LOCK:
        _REMEMBERED.pop(key, None)
        _REMEMBERED[key] = (weakref.ref(_memory_owner(owner)), gives)
        if len(_REMEMBERED) > _SWEPT:
            for gone in [k for k, (memory, _) in _REMEMBERED.items() if memory() is None]:
                del _REMEMBERED[gone]
        while len(_REMEMBERED) > _KEPT:
            del _REMEMBERED[next(iter(_REMEMBERED))]


def origin_of(array: npt.NDArray[Any]) -> Patches:
    """The casts that wrote an array, by its memory and shape; none if no kernel did."""
    with _LOCK:
        owner, gives = _REMEMBERED.get(_memory_key(array), (None, tuple))
    # Without the lock: what it gives may take long to find, in a process that forks.
    return gives() if owner is not None and owner() is not None else ()


def _memory_owner(owner: Any) -> Any:
    """The array that keeps the memory: of a slice, its base."""
    if isinstance(owner, np.ndarray):
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return owner
    if not hasattr(type(owner), "_base"):  # torch's
        return owner
    return owner if owner._base is None else owner._base


def _memory_key(array: npt.NDArray[Any]) -> _Key:
    return array.ctypes.data, array.shape, array.strides


@functools.lru_cache(maxsize=1 << 12)
def form_text(dtype: object, shape: tuple[int, ...]) -> str:
    """Dtype and shape of a result, as steps say them."""
    return f"{dtype} {list(shape)}"


def tree_map(given: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of nested lists, tuples, dicts and slices with each leaf changed."""
    if isinstance(given, list | tuple):
        return type(given)(tree_map(value, change) for value in given)
    if isinstance(given, dict):
        return {key: tree_map(value, change) for key, value in given.items()}
    if isinstance(given, slice):
        return slice(tree_map(given.start, change), tree_map(given.stop, change), given.step)
    return change(given)


def origin(record: CastRecord | OperationRecord, shape: Shape) -> Patches:
    """The origin of all elements of an output of this shape."""
    start = (0,) * len(shape)
    return (Patch(offset=start, extent=shape, record=record, start=start),)


@functools.lru_cache(maxsize=1 << 12)
def operation_origin(
    operation: str,
    grid: Grid,
    core_count: int,
    file: str,
    line: int,
    loops: tuple[str, ...] = (),
    kernel: str = "",
) -> Patches:
    """The origin of all elements of an operation's output; equal ones share it."""
    record = OperationRecord(
        operation=operation,
        grid=grid,
        core_count=core_count,
        file=file,
        line=line,
        loops=loops,
        kernel=kernel,
    )
    return origin(record, grid.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCall:
    """A call of an operation that succeeded.

    Attributes:
        name: the operation.
        arguments, named: its arguments.
        result: of the call; a tensor, or a tuple of some.
    """

    name: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    result: Any


Watcher = Callable[[WatchedCall], None]
Interceptor = Callable[[str, Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Any]
"""Carries out a call of an operation: its name, itself, and its arguments."""
INTERCEPTOR: Final[ContextVar[Interceptor | None]] = ContextVar(
    "pypto_cast_interceptor", default=None
)
"""See `watching` and `suppositions.supposing`."""


def intercepted(
    name: str, operation: Callable[_Arguments, _Result]
) -> Callable[_Arguments, _Result]:
    """An operation whose calls are handed to the interceptor, where there is one."""

    @functools.wraps(operation)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        interceptor = INTERCEPTOR.get()
        if interceptor is None:
            return operation(*arguments, **named)
        result: _Result = interceptor(name, operation, arguments, named)
        return result

    return call


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Hand every outermost call of an operation to a watcher in the body of a `with` statement.

    Runs for a second time, such as those of certainty, are not watched.
    """

    def watch(
        name: str,
        operation: Callable[..., Any],
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Any:
        if is_silenced():
            return operation(*arguments, **named)
        token = INTERCEPTOR.set(None)
        try:
            result = operation(*arguments, **named)
            watcher(WatchedCall(name=name, arguments=arguments, named=named, result=result))
        finally:
            INTERCEPTOR.reset(token)
        return result

    token = INTERCEPTOR.set(watch)
    try:
        yield
    finally:
        INTERCEPTOR.reset(token)
