"""What a user types for a dtype, a mode or a tile shape, turned into what it means."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TypeVar

from pypto_cast.dtypes import CastMode, DataType, SaturationMode

_Enum = TypeVar("_Enum", bound=enum.Enum)


def dtype_named(text: str) -> DataType:
    """`DT_FP16`, `FP16` or `fp16`.

    Raises:
        ValueError: no such dtype; the text lists them.
    """
    known = [dtype for dtype in DataType if dtype is not DataType.DT_BOTTOM]
    return _named(text, "DT_", "dtype", known)


def mode_named(text: str) -> CastMode:
    """`CAST_RINT`, `RINT` or `rint`.

    Raises:
        ValueError: no such mode; the text lists them.
    """
    return _named(text, "CAST_", "mode", list(CastMode))


def satmode_named(text: str) -> SaturationMode:
    """`ON` or `OFF`, in any case.

    Raises:
        ValueError: neither.
    """
    return _named(text, "", "satmode", list(SaturationMode))


def tile_named(text: str) -> tuple[int, ...]:
    """`64,128` as (64, 128).

    Raises:
        ValueError: no list of positive ints.
    """
    try:
        tile = tuple(int(entry) for entry in text.split(","))
    except ValueError:
        tile = ()
    if not tile or any(entry < 1 for entry in tile):
        raise ValueError(f"a tile is positive ints with commas between, as in 64,128; got {text!r}")
    return tile


def _named(text: str, prefix: str, what: str, members: Sequence[_Enum]) -> _Enum:
    wanted = text.strip().upper().removeprefix(prefix)
    for member in members:
        if member.name.removeprefix(prefix) == wanted:
            return member
    names = ", ".join(member.name for member in members)
    raise ValueError(f"unknown {what} {text!r}; known: {names}")
