"""Declarations of a tensor: `Tensor[...]` annotations, and the arguments of `Tensor` checked."""

from __future__ import annotations

import numbers
import operator
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType, TileOpFormat, numpy_dtype, with_our_dtype
from pypto_cast.tensors.symbolic import StatusType, Symbol
from simulator.numbers import float_environment
from simulator.numbers.convert import INF_NAN, codes_of, convert, values_of
from simulator.numbers.formats import FP64, INT64, UINT64, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.grid import Shape
from tiling.plan import MOST_DIMS, check_shape
from tiling.ub import ElementBits

DYNAMIC: Final = -1
Dimension = int | StatusType | Symbol | EllipsisType


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorAnnotation:
    """The requirements of `pypto.Tensor[[shape], dtype, ...]` on a parameter.

    Attributes:
        shape: one entry for each dimension: an int for its length, STATIC or DYNAMIC for any, a
            symbol for one that has the same length wherever it occurs. With STATIC, DYNAMIC or
            `...` at the end more dimensions may follow, as upstream's take them; empty for any
            shape.
        dtype: None for any.
        name: for messages and listings.
        format: memory layout.
    """

    shape: tuple[Dimension, ...] = ()
    dtype: DataType | None = None
    name: str = ""
    format: TileOpFormat = TileOpFormat.TILEOP_ND

    def __str__(self) -> str:
        entries = ", ".join(map(_dimension_text, self.shape))
        return f"Tensor[[{entries}], {'any dtype' if self.dtype is None else self.dtype}]"

    def check(self, name: str, shape: Shape, dtype: DataType) -> None:
        """Compare an argument with the annotation.

        Raises:
            TypeError: it has another dtype.
            ValueError: it has another shape.
        """
        if self.dtype is not None and dtype is not self.dtype:
            raise TypeError(f"{name} is annotated {self}; the argument has dtype {dtype}")
        if not self.shape:
            return
        fixed = [entry for entry in self.shape if entry is not Ellipsis]
        is_open = any(entry is Ellipsis or isinstance(entry, StatusType) for entry in self.shape)
        agrees = len(shape) >= len(fixed) if is_open else len(shape) == len(fixed)
        if not agrees or any(
            isinstance(want, int) and want not in (DYNAMIC, have)
            for want, have in zip(fixed, shape, strict=False)
        ):
            raise ValueError(f"{name} is annotated {self}; the argument has shape {list(shape)}")

    def dynamic_axes(self) -> frozenset[int]:
        """Axes whose length upstream learns when the kernel runs."""
        return frozenset(
            axis
            for axis, entry in enumerate(self.shape)
            if isinstance(entry, Symbol)
            or entry == DYNAMIC
            or (isinstance(entry, StatusType) and entry.is_dynamic)
        )


def annotation_of(parameters: object) -> TensorAnnotation:
    """Read the brackets of `Tensor[...]`; FP32 of any shape unless they say otherwise.

    `...` in place of a shape says nothing, as upstream's.

    Raises:
        TypeError: something that is no shape, dtype, layout, name or dict of those.
    """
    found: dict[str, object] = {"dtype": DataType.DT_FP32}
    for entry in parameters if isinstance(parameters, tuple) else (parameters,):
        if entry is Ellipsis:
            continue
        if isinstance(entry, Mapping):
            found.update(entry)
        else:
            found[_role(entry)] = entry
    shape, dtype = found.pop("shape", None), found.pop("dtype")
    name, layout = found.pop("name", ""), found.pop("format", None)
    if found:
        raise TypeError(f"Tensor[...] takes shape, dtype, name and format, not {sorted(found)}")
    if not isinstance(dtype, DataType) or not isinstance(name, str):
        raise TypeError(f"Tensor[...] takes a DataType and a str, not {dtype!r} and {name!r}")
    if not isinstance(layout, TileOpFormat | None):
        raise TypeError(f"format must be a pypto.TileOpFormat, not {layout!r}")
    return TensorAnnotation(
        shape=checked_dimensions(shape),
        dtype=dtype,
        name=name,
        format=layout or TileOpFormat.TILEOP_ND,
    )


def checked_dimensions(shape: object) -> tuple[Dimension, ...]:
    """The entries of an annotated shape.

    Raises:
        TypeError: no list or tuple, or an entry that says nothing of a dimension.
        ValueError: a negative length, or `...` before the end.
    """
    if shape is None:
        return ()
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"the shape in an annotation is a list, not {shape!r}")
    entries: list[Dimension] = []
    for entry in shape:
        if isinstance(entry, bool) or not isinstance(entry, Dimension):
            raise TypeError(
                f"shape {list(shape)}: {entry!r} is no int, pypto.STATIC, pypto.DYNAMIC or ..."
            )
        if isinstance(entry, int) and entry < DYNAMIC:
            raise ValueError(f"shape {list(shape)}: {entry} is negative")
        entries.append(entry)
    if Ellipsis in entries[:-1]:
        raise ValueError(f"shape {list(map(_dimension_text, entries))}: ... may only come last")
    return tuple(entries)


def _role(entry: object) -> str:
    for role, kind in (
        ("shape", (list, tuple)),
        ("dtype", DataType),
        ("format", TileOpFormat),
        ("name", str),
    ):
        if isinstance(entry, kind):
            return role
    raise TypeError(
        f"Tensor[...] takes a shape in brackets, a dtype, a layout and a name, not {entry!r}; "
        "write pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32]"
    )


def _dimension_text(entry: Dimension) -> str:
    if isinstance(entry, StatusType | Symbol):
        return entry.name
    return "..." if entry is Ellipsis else str(entry)


def declared_dimensions(shape: object) -> tuple[tuple[Dimension, ...], Shape]:
    """Return a shape as an annotation has it, and as a tensor has it, with -1 where not known."""
    if isinstance(shape, (list, tuple)) and any(
        entry is Ellipsis or isinstance(entry, StatusType | Symbol) for entry in shape
    ):
        dimensions = checked_dimensions(shape)
        known = [entry for entry in dimensions if entry is not Ellipsis]
        return dimensions, tuple(e if isinstance(e, int) else DYNAMIC for e in known)
    entries = checked_shape(shape)
    return entries, entries


_VALUES_GO_TO_DATA: Final = " (the first argument is the shape; values go to data=)"


def checked_shape(shape: object) -> tuple[int, ...]:
    if shape is None:
        return ()
    if not isinstance(shape, (list, tuple)):
        raise TypeError(
            f"shape must be a list or tuple of ints, not {reprlib.repr(shape)}{_VALUES_GO_TO_DATA}"
        )
    entries = []
    for entry in shape:
        if isinstance(entry, (bool, np.bool_)) or not hasattr(entry, "__index__"):
            raise TypeError(
                f"shape {reprlib.repr(list(shape))}: {reprlib.repr(entry)} is no int"
                f"{_VALUES_GO_TO_DATA}"
            )
        if operator.index(entry) < DYNAMIC:
            raise ValueError(
                f"shape {list(shape)}: {entry} is negative; only -1 (not known yet) may be"
            )
        entries.append(operator.index(entry))
    return tuple(entries)


def matched_shape(
    shape: tuple[int, ...], data: npt.NDArray[Any], *, declared: bool
) -> tuple[int, ...]:
    """The shape of the data, once it agrees with the declared one and a cast takes it."""
    agrees = len(shape) == data.ndim and all(
        want in (DYNAMIC, have) for want, have in zip(shape, data.shape, strict=False)
    )
    if declared and not agrees:
        raise ValueError(f"data has shape {list(data.shape)}; {list(shape)} was declared")
    check_shape(data.shape, ElementBits(src=8, dst=8), "an operation", most_dims=MOST_DIMS)
    return data.shape


def values_held(data: object, dtype: DataType) -> npt.NDArray[Any]:
    """Take values in: an array as it is, Python numbers converted.

    Codes of a format of which numpy has no values are taken as uint8; of en_dtypes' arrays all are.
    """
    wanted = numpy_dtype(dtype)
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError("data is a masked array, whose mask would be lost; fill it first")
    if isinstance(data, (list, tuple, int, float)):
        return from_python(data, dtype)
    array = with_our_dtype(np.asarray(data))
    if array.dtype == np.uint8:
        array = codes_held(array, dtype)
    if array.dtype.newbyteorder("=") == wanted:
        check_codes(array, dtype, "data")
        return array
    if array.dtype.kind in "OSUMmc" or array.dtype.names is not None:
        raise TypeError(f"data of dtype {array.dtype} holds no numbers that a cast takes")
    if wanted.names is not None:
        holds, way = "codes, as uint8", "pypto.cast"
    else:
        holds = str(wanted)
        way = ".astype" if array.dtype.newbyteorder("=") == np.float64 else "pypto.cast or .astype"
        if (
            array.dtype == np.uint8
            and isinstance(dtype.format, FloatFormat)
            and wanted.itemsize == 1
        ):
            raise TypeError(
                f"data has dtype uint8, {dtype} holds {holds}: if they are its codes, take "
                f".view(ml_dtypes.{holds})"
            )
    raise TypeError(
        f"data has dtype {array.dtype}, {dtype} holds {holds}: convert with {way} first"
    )


def codes_held(array: npt.NDArray[Any], dtype: DataType) -> npt.NDArray[Any]:
    """Bytes as elements of a format of which numpy has no values, over the same memory.

    Of another format they stay bytes.

    Raises:
        ValueError: as `check_codes`.
    """
    wanted = numpy_dtype(dtype)
    if wanted.names is None:
        return array
    check_codes(array, dtype, "data")
    return array.view(wanted)


def check_codes(array: npt.NDArray[Any], dtype: DataType, label: str) -> None:
    """Refuse bytes that are no codes of a float of 4 bits, as two in a byte are.

    ml_dtypes reads another number out of them; of an integer the bits above say nothing.

    Raises:
        ValueError: there is one; the text begins with the label.
    """
    fmt = dtype.number_format
    if not isinstance(fmt, FloatFormat) or fmt.bits >= 8:
        return
    greatest = array.view(np.uint8).max(initial=0)
    if greatest >> fmt.bits:
        raise ValueError(
            f"{label} has the byte {greatest:#x}; a code of {dtype} has {fmt.bits} bits, and an "
            "array has one in each byte"
        )


@float_environment.quiet()
def from_python(data: object, dtype: DataType) -> npt.NDArray[Any]:
    """Convert nested lists of numbers. Floats round once to the nearest, ties to even.

    Raises:
        TypeError: an entry is no real number.
        ValueError: lists of different lengths.
        OverflowError: an integer dtype cannot hold an entry, an int has more than 64 bits, or a
            scale is zero or negative.
    """
    try:
        cells = np.array(data, dtype=object)
    except ValueError:
        raise ValueError("data is no regular array: lists of one level differ in length") from None
    flat = cells.reshape(-1)
    is_float = isinstance(dtype.format, FloatFormat)
    is_scale = isinstance(dtype.format, FloatFormat) and dtype.format.is_scale
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
        if is_scale and entry <= 0:
            raise OverflowError(
                f"data{_index(cells, position)} is {entry}; {dtype} has powers of two alone, "
                "neither zero nor negative numbers"
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
