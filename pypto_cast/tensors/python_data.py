"""Python numbers as values of a dtype: exact in integers, rounded once in floats."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType, numpy_dtype
from simulator.numbers import float_environment
from simulator.numbers.convert import INF_NAN, codes_of, convert, values_of
from simulator.numbers.formats import FP64, INT64, UINT64, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode


@float_environment.quiet()
def from_python(data: object, dtype: DataType) -> npt.NDArray[Any]:
    """Convert nested lists of numbers. Floats round once to the nearest, ties to even.

    Raises:
        TypeError: an entry is no real number.
        ValueError: lists of different lengths.
        OverflowError: an integer dtype cannot hold an entry, or an int has more than 64 bits.
    """
    try:
        cells = np.array(data, dtype=object)
    except ValueError:
        raise ValueError("data is no regular array: lists of one level differ in length") from None
    flat = cells.reshape(-1)
    is_float = isinstance(dtype.format, FloatFormat)
    for position, entry in enumerate(flat):
        is_wide = is_float and isinstance(entry, (int, np.integer))
        if is_wide and not INT64.min <= entry <= UINT64.max:
            raise OverflowError(
                f"data{_index(cells, position)} is {entry}: an int of more than 64 bits; integers "
                f"from {INT64.min} to {UINT64.max} are taken"
            )
        if not isinstance(entry, numbers.Real) and not isinstance(entry, np.bool_):
            raise TypeError(
                f"data{_index(cells, position)} is {entry!r} ({type(entry).__name__}), not a real "
                "number"
            )
    if isinstance(dtype.format, FloatFormat):
        return _floats(flat, dtype.format).reshape(cells.shape)
    values = [_integer(cells, position, dtype) for position in range(flat.size)]
    wide = np.uint64 if dtype is DataType.DT_UINT64 else np.int64
    return np.array(values, wide).astype(numpy_dtype(dtype)).reshape(cells.shape)


def _integer(cells: npt.NDArray[Any], position: int, dtype: DataType) -> int:
    entry = cells.reshape(-1)[position]
    fmt = dtype.format
    assert isinstance(fmt, IntFormat)
    try:
        number = int(entry)
    except (OverflowError, ValueError):  # infinity, NaN
        number = fmt.max + 1
    if number != entry or not fmt.min <= number <= fmt.max:
        raise OverflowError(
            f"data{_index(cells, position)} is {entry}, which {dtype} ({numpy_dtype(dtype)}) "
            f"cannot hold: integers from {fmt.min} to {fmt.max}"
        )
    return number


def _floats(flat: npt.NDArray[Any], dst: FloatFormat) -> npt.NDArray[Any]:
    """Convert ints and floats apart, so that no int passes through a float."""
    result = np.empty(flat.shape, dst.code_dtype)
    is_int = np.array([isinstance(entry, (int, np.integer, np.bool_)) for entry in flat], np.bool_)
    is_big = is_int & np.array([entry > INT64.max for entry in flat], np.bool_)
    sources: tuple[tuple[Format, npt.NDArray[np.bool_]], ...] = (
        (FP64, ~is_int),
        (INT64, is_int & ~is_big),
        (UINT64, is_big),
    )
    for src, chosen in sources:
        numbers_of_kind = np.array(flat[chosen].tolist(), src.dtype)
        codes = codes_of(numbers_of_kind, src)
        result[chosen] = convert(codes, src, dst, RoundMode.RINT, INF_NAN)
    return values_of(result, dst)


def _index(cells: npt.NDArray[Any], position: int) -> list[int]:
    return [int(axis) for axis in np.unravel_index(position, cells.shape)]
