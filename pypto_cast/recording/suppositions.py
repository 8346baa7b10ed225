"""Calls of operations and casts taken otherwise than a kernel writes them, and the calls it makes.

A call that is taken otherwise gets its operation and arguments; its result stands for the call's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import inspect
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from pypto_cast.call_sites import Place, caller, muted
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.recording.steps import INTERCEPTOR

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The calls of one operation at one place of the user's code, with operands of some dtypes.

    Attributes:
        operation: its name; "cast" of casts.
        place: file and line; those inside an operation of several steps have its place.
        dtypes: of its operands.
        named: the enum members among its other arguments, such as a dtype and a mode.
    """

    operation: str
    place: Place
    dtypes: tuple[DataType, ...]
    named: tuple[enum.Enum, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteCall:
    """One call at a site.

    Attributes:
        site: where.
        operation: carries it out.
        arguments: of the call, by parameter.
        sources: by parameter, the operands of casts that gave operands in this run.
    """

    site: Site
    operation: Callable[..., Any]
    arguments: inspect.BoundArguments
    sources: Mapping[str, Any]

    def operands(self) -> dict[str, Any]:
        """The tensors among the arguments, by parameter."""
        return {
            name: value for name, value in self.arguments.arguments.items() if _is_tensor(value)
        }

    def plainly(self, **changed: Any) -> Any:
        """The result of the operation, of other arguments where some are given."""
        given = {**self.arguments.arguments, **changed}
        bound = inspect.BoundArguments(self.arguments.signature, OrderedDict(given))
        return self.operation(*bound.args, **bound.kwargs)


class Alternative(Protocol):
    """The result that stands for that of a call."""

    def __call__(self, call: SiteCall, /) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposition:
    """Calls that are taken otherwise.

    Attributes:
        site: whose; None: all of them.
        alternative: gives the result that stands for a call's.
    """

    site: Site | None
    alternative: Alternative


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """A call that was taken otherwise.

    Attributes:
        call: as the kernel makes it.
        plain: the result as it is written.
        supposed: the one that stood for it.
    """

    call: SiteCall
    plain: Any
    supposed: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The calls of a run.

    Attributes:
        suppositions: all that fit a call are taken, the first around the others.
        calls: the first call of each site with its result, in order; None: not kept.
        sources: by the identity of the result of a cast, while it lives, that and the operand.
        altered: the calls that were taken otherwise; None: not kept.
    """

    suppositions: tuple[Supposition, ...]
    calls: dict[Site, tuple[SiteCall, Any]] | None
    sources: dict[int, tuple[weakref.ref[Any], Any]] = field(default_factory=dict)
    altered: list[Altered] | None = None


_WATCH: Final[ContextVar[Watch | None]] = ContextVar("pypto_cast_suppositions", default=None)


def _watched(
    watch: Watch,
    name: str,
    operation: Callable[..., _Result],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> _Result:
    bound = inspect.signature(operation).bind(*arguments, **named)
    bound.apply_defaults()
    given = list(bound.arguments.values())
    site = Site(
        operation=name,
        place=caller(),
        dtypes=tuple(value.dtype for value in given if _is_tensor(value)),
        named=tuple(value for value in given if isinstance(value, enum.Enum)),
    )
    call = SiteCall(
        site=site,
        operation=operation,
        arguments=bound,
        sources={
            parameter: watch.sources[id(value)][1]
            for parameter, value in bound.arguments.items()
            if id(value) in watch.sources
        },
    )
    found = [s.alternative for s in watch.suppositions if s.site is None or s.site == site]
    result: _Result = _taken(found, call)
    if found and watch.altered is not None:
        watch.altered.append(Altered(call=call, plain=call.plainly(), supposed=result))
    if watch.calls is not None:
        watch.calls.setdefault(site, (call, result))
    if site.operation == "cast":
        key, sources = id(result), watch.sources
        sources[key] = weakref.ref(result, lambda _: sources.pop(key, None)), given[0]
    return result


def _taken(alternatives: Sequence[Alternative], call: SiteCall) -> Any:
    """The result by alternatives: the operation that one calls gives the result of the others."""
    if not alternatives:
        return call.plainly()
    first, *others = alternatives

    def operation(*arguments: Any, **named: Any) -> Any:
        bound = call.arguments.signature.bind(*arguments, **named)
        return _taken(others, dataclasses.replace(call, arguments=bound))

    return first(dataclasses.replace(call, operation=operation) if others else call)


@contextlib.contextmanager
def supposing(
    *suppositions: Supposition, keeps_calls: bool = False, keeps_altered: bool = False
) -> Iterator[Watch]:
    """Take calls otherwise in the body of a `with` statement, besides those around it.

    The kernels in it run for a second time: they warn of nothing, print nothing,
    and give intervals alone.

    Args:
        suppositions: of which calls, and how.
        keeps_calls: keep the first call of each site with its result.
        keeps_altered: keep the calls that are taken otherwise, with both results.

    Yields the calls that are made.
    """
    around = _WATCH.get()
    watch = Watch(
        calls={} if keeps_calls else None,
        suppositions=(*suppositions, *(() if around is None else around.suppositions)),
        altered=[] if keeps_altered else None if around is None else around.altered,
    )
    token, hook = _WATCH.set(watch), INTERCEPTOR.set(functools.partial(_watched, watch))
    try:
        with muted():
            yield watch
    finally:
        _WATCH.reset(token)
        INTERCEPTOR.reset(hook)


def is_supposing() -> bool:
    """True where the calls of a run are kept or taken otherwise; only intervals are of use then."""
    return _WATCH.get() is not None


def _is_tensor(value: object) -> bool:
    """Tensors are of a room above this one."""
    return hasattr(value, "dtype") and hasattr(value, "enclosure")
