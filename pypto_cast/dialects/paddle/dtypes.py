"""Paddle's dtypes by name: their category, their numpy dtype, the format of their parts."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from pypto_cast.dtypes.names import Names, spelled, text_of
from simulator.numbers import formats as f
from simulator.numbers.formats import Format


class Category(enum.Enum):
    """Paddle's "broad type"; promotion goes from an earlier one to a later one."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    COMPLEX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Dtype:
    """A dtype of Paddle.

    Attributes:
        name: Paddle's name for it.
        category: its broad type.
        part: format of a number, or of the real and the imaginary part of a complex one.
        numpy: dtype of the arrays that hold it.
    """

    name: str
    category: Category
    part: Format
    numpy: np.dtype[Any]


def _row(name: str, category: Category, part: Format, numpy: object = None) -> Dtype:
    holder: Any = part.dtype if numpy is None else numpy
    return Dtype(name=name, category=category, part=part, numpy=np.dtype(holder))


_ROWS: Final[Mapping[str, Dtype]] = MappingProxyType(
    {
        row.name: row
        for row in (
            _row("bfloat16", Category.FLOAT, f.BF16),
            _row("float16", Category.FLOAT, f.FP16),
            _row("float32", Category.FLOAT, f.FP32),
            _row("float64", Category.FLOAT, f.FP64),
            _row("bool", Category.BOOL, f.BOOL),
            _row("uint8", Category.INT, f.UINT8),
            _row("int8", Category.INT, f.INT8),
            _row("int16", Category.INT, f.INT16),
            _row("int32", Category.INT, f.INT32),
            _row("int64", Category.INT, f.INT64),
            _row("complex64", Category.COMPLEX, f.FP32, np.complex64),
            _row("complex128", Category.COMPLEX, f.FP64, np.complex128),
        )
    }
)

DTYPES: Final[tuple[str, ...]] = tuple(_ROWS)
"""The dtypes that promotion knows, in the order of the document's tables."""

SCALAR_DTYPES: Final[Mapping[str, str]] = MappingProxyType(
    {"bool": "bool", "int": "int64", "float": "float32", "complex": "complex64"}
)
"""The default dtype of each kind of Python scalar."""

_BY_NUMPY: Final[Mapping[np.dtype[Any], str]] = MappingProxyType(
    {row.numpy: row.name for row in _ROWS.values()} | {np.dtype(np.uint16): "bfloat16"}
)
"""numpy has no bfloat16 of its own; Paddle takes and gives its codes as uint16."""

_NAMES: Final = Names(
    {name: name for name in _ROWS} | {"uint16": "bfloat16", "float": "float64", "int": "int64"},
    {row.numpy.name: row.name for row in _ROWS.values()},
)
"""A bare "float" or "int" is numpy's here, as in Paddle."""


def row_of(name: str) -> Dtype:
    """The row of a dtype that `dtype_name` has named."""
    return _ROWS[name]


def dtype_name(given: object) -> str:
    """Paddle's name of a dtype.

    Args:
        given: any name as "float32", "f32" or "paddle.float32", or a dtype of Paddle, pypto, torch
            or numpy, or what numpy takes for one. The text "i8" is int8, as Paddle's document
            spells it, and uint16 is bfloat16, as in Paddle.

    Raises:
        TypeError: no name of a dtype.
        ValueError: a dtype that Paddle's promotion does not have.
    """
    text = None if isinstance(given, int) else text_of(given)
    if text is not None and (found := _NAMES.get(text)) is not None:
        return found
    asked: Any = given if text is None else spelled(text)
    try:
        if asked is None:  # float64 to numpy
            raise TypeError
        dtype = np.dtype(asked)
    except TypeError:
        near = _NAMES.near(text)
        raise TypeError(f"data type {given!r} not understood{near}; {_known()}") from None
    if (name := _BY_NUMPY.get(dtype.newbyteorder("="))) is not None:
        return name
    raise ValueError(f"Not supported numpy dtype {dtype}; {_known()}")


def _known() -> str:
    return f"known are {', '.join(DTYPES)}"
