"""function: the body of a `with` statement as a kernel, at once or when its values come."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from pypto_cast.call_sites import asked_at
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.kernel.choices import unjudged
from pypto_cast.options.context import Scope
from pypto_cast.recording import recording, steps, tally
from pypto_cast.recording.recording import Recording
from pypto_cast.recording.steps import Call, tree_map
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.unfinished import held_back
from tiling.grid import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class _Body:
    """A body that ran over declared tensors, without values.

    Attributes:
        name: of the function.
        tensors: which it ran over.
        declared: shape and dtype of each before.
        calls: what it did, in order.
        unread: the elements that it computed with before they had values.
    """

    name: str
    tensors: tuple[Tensor, ...]
    declared: tuple[tuple[Shape, DataType], ...]
    calls: list[Call]
    unread: list[str]


_BUILT: Final[ContextVar[_Body | None]] = ContextVar("pypto_cast_function", default=None)


@contextlib.contextmanager
def function(name: str, *arguments: object) -> Iterator[Iterable[int]]:
    """Run the body of a `with` statement as a kernel over tensors of `from_torch` or `from_numpy`.

    What it writes reaches their arrays at its end, unless it raises. Over tensors that are declared
    without values the body runs once without them, an element that it reads counting as 0 then,
    and its operations are kept:
    `pypto.runtime._device_run_once_data_from_host` carries them out over tensors with values. As
    upstream's, a tile shape set inside stays.

    Args:
        name: of the function.
        arguments: the tensors; what is no tensor is ignored, as upstream does.

    Yields:
        Upstream's recorder, over which `for _ in recorder` goes once.

    Raises:
        TypeError: some tensors with data and some without.
        RuntimeError: inside a kernel.
    """
    tensors = tuple(each for each in arguments if isinstance(each, Tensor))
    if recording.current() is not None:
        raise RuntimeError(f"function {name!r} is inside a kernel, which upstream refuses")
    executes = any(tensor.has_data for tensor in tensors)
    for tensor in tensors:
        if tensor.has_data is not executes:
            raise TypeError(
                f"function {name!r} takes tensors with data, or tensors all of which are declared "
                f"without, not {tensor!r}"
            )
    _BUILT.set(None)
    if executes:
        with _executing(name, tensors, tensors):
            yield range(1)
        return
    declared = tuple((tuple(map(int, tensor.shape)), tensor.dtype) for tensor in tensors)
    calls: list[Call] = []
    unread: list[str] = []
    own = Recording(kernel=name, executes=False, calls=calls, unread=unread)
    try:
        for tensor, (shape, _) in zip(tensors, declared, strict=True):
            tensor.attach(own.local(tensor.name or name, shape, is_given=True))
        with recording.running(own):
            yield range(1)
    finally:
        _detach(tensors)
    _BUILT.set(_Body(name=name, tensors=tensors, declared=declared, calls=calls, unread=unread))


def run_function(*tensors: Tensor) -> None:
    """Carry out the function that was built last in this context over tensors with values.

    What its body called is called again, in the same order, with the options and at the tile shapes
    of then; Python's statements around it are not run again. What it writes reaches the arrays of
    the tensors at the end, unless an operation raises. It may be run any number of times.

    Args:
        tensors: of `from_torch` or `from_numpy`, one for each that the function was declared over,
            in that order. Upstream takes their memory alone: one of another shape with as many
            elements is taken under the declared one.

    Raises:
        RuntimeError: no `pypto.function` over declared tensors was built in this context, or it is
            asked for inside a kernel.
        TypeError: no tensors with values, another number of them, or another dtype than declared.
        ValueError: another number of elements than declared; or the body read an element of a
            declared tensor, as `x[0, 0]`, which stood for 0 while it was recorded.
    """
    if recording.current() is not None:
        raise RuntimeError("a function is run outside kernels only")
    body = _BUILT.get()
    if body is None:
        raise RuntimeError(
            "no pypto.function over declared tensors was built here before; over tensors with "
            "values, pypto.function(name, pypto.from_torch(x), ...) runs at once, and their arrays "
            "have the results already"
        )
    if body.unread:
        raise ValueError(
            f"function {body.name!r} computed with element {body.unread[0]} before it had a value, "
            "and its body is not run again: have pypto.function over tensors with values, "
            "pypto.from_torch(x), or a kernel of pypto.jit"
        )
    given, tensors = tensors, _checked(body, tensors)
    again = dict(zip(map(id, body.tensors), tensors, strict=True))
    with _executing(body.name, tensors, body.tensors, given) as own:
        for call in body.calls:
            own.loops[:], own.segment = call.loops, call.segment
            with Scope(call.settings), asked_at((call.file, call.line)):
                arguments, named = (
                    tree_map(given, lambda value: _again(value, again))
                    for given in (call.arguments, call.named)
                )
                _match(call.result, call.operation(*arguments, **named), again)


@contextlib.contextmanager
def _executing(
    name: str,
    tensors: Sequence[Tensor],
    declared: Sequence[Tensor],
    given: Sequence[Tensor] = (),
) -> Iterator[Recording]:
    """Compute in the body of a `with` statement, and write the tensors' arrays at its end.

    Args:
        name: of the function.
        tensors: with values.
        declared: which messages name.
        given: those of the caller, whose memory they have.
    """
    own = Recording(kernel=name, bounds=tally.is_counting())
    try:
        for tensor, named in zip(tensors, declared, strict=True):
            array, held = tensor.numpy(), tensor.enclosure()
            interval = None if held is None else held.interval
            tensor.attach(own.parameter(named.name or tensor.name or name, array, array, interval))
        with recording.running(own):
            yield own
            found = unjudged(own) if own.bounds else ()
            with held_back():
                changed = own.commit()
                for tensor in (*tensors, *given):
                    tensor.take_results(changed)
                steps.remember(changed)
            own.count(found)
    finally:
        _detach(tensors)


def _detach(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        tensor.attach(None)


def _checked(body: _Body, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors under the declared shapes."""
    wanted = ", ".join(f"{dtype} {list(shape)}" for shape, dtype in body.declared)
    asked = f"function {body.name!r} is declared over {wanted}"
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor) or not tensor.has_data:
            raise TypeError(
                f"{asked}; argument {position} is {tensor!r}: give pypto.from_torch(x) or "
                "pypto.from_numpy(x)"
            )
    if len(tensors) != len(body.declared):
        raise TypeError(f"{asked}; {len(tensors)} tensors are given")
    found = []
    for position, (tensor, (shape, dtype)) in enumerate(zip(tensors, body.declared, strict=True)):
        if tensor.dtype is not dtype:
            raise TypeError(f"{asked}; argument {position} is {tensor.dtype}: cast it")
        found.append(_under_shape(tensor, shape))
        if found[-1] is None:
            raise ValueError(
                f"{asked}; argument {position} has shape {list(map(int, tensor.shape))}: declare "
                "the function over tensors of as many elements"
            )
    return tuple(tensor for tensor in found if tensor is not None)


def _under_shape(tensor: Tensor, shape: Shape) -> Tensor | None:
    """The memory of a tensor under a shape of as many elements; None if it has none there."""
    if tuple(tensor.shape) == shape:
        return tensor
    held = tensor.enclosure()
    if held is None or held.values.size != math.prod(shape) or not held.values.flags.c_contiguous:
        return None
    return Tensor._from_result(shape, tensor.dtype, tensor.name, data=held.reshape(shape))


def _again(value: Any, again: dict[int, Tensor]) -> Any:
    """An argument of the first run, or the tensor with values that stands for it now."""
    if not isinstance(value, Tensor) or value.has_data:
        return value
    found = again.get(id(value))
    if found is None:
        found = again[id(value)] = _declared_anew(value)
    return found


def _declared_anew(tensor: Tensor) -> Tensor:
    """A tensor that the body declares, as it was before anything was written to it."""
    declared = tensor.annotation
    return Tensor(declared.shape, declared.dtype, declared.name, declared.format)


def _match(first: Any, result: Any, again: dict[int, Tensor]) -> None:
    """Have the tensors of a result stand for those of the first run."""
    if isinstance(first, Tensor):
        again[id(first)] = result
    elif isinstance(first, list | tuple):
        for one, other in zip(first, result, strict=True):
            _match(one, other, again)
