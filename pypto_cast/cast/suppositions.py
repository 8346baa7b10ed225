"""Casts taken otherwise than a kernel writes them, and their results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from pypto_cast.call_sites import Place, caller
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode


@dataclass(frozen=True, slots=True, kw_only=True)
class CastSite:
    """A cast at a place of the user's code; those of an operation of several steps count too.

    Attributes:
        place: file and line.
        src, dst: dtypes.
        mode, satmode: as they are asked for.
    """

    place: Place
    src: DataType
    dst: DataType
    mode: CastMode
    satmode: SaturationMode | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposition:
    """A cast, and the mode and satmode that are taken in place of its own."""

    site: CastSite
    mode: CastMode
    satmode: SaturationMode | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watch:
    sites: dict[CastSite, None]
    supposition: Supposition | None


_WATCH: Final[ContextVar[_Watch | None]] = ContextVar("pypto_cast_suppositions", default=None)


def as_supposed(
    src: DataType, dst: DataType, mode: CastMode, satmode: SaturationMode | None
) -> tuple[CastMode, SaturationMode | None]:
    """The mode and satmode of a cast, noted and changed where this context says so."""
    watch = _WATCH.get()
    if watch is None:
        return mode, satmode
    site = CastSite(place=caller(), src=src, dst=dst, mode=mode, satmode=satmode)
    watch.sites[site] = None
    if watch.supposition is None or watch.supposition.site != site:
        return mode, satmode
    return watch.supposition.mode, watch.supposition.satmode


@contextlib.contextmanager
def supposing(supposition: Supposition | None) -> Iterator[dict[CastSite, None]]:
    """Take a cast otherwise in the body of a `with` statement.

    Args:
        supposition: None: nothing is changed.

    Yields the casts that were asked for, in order, each once.
    """
    watch = _Watch(sites={}, supposition=supposition)
    token = _WATCH.set(watch)
    try:
        yield watch.sites
    finally:
        _WATCH.reset(token)
