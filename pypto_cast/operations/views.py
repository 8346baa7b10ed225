"""view and assemble: parts of tensors, by offset and shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType, check_dtype, numpy_dtype
from pypto_cast.recording import recording
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic.interval import Enclosure, Interval, limits
from simulator.numbers.formats import FloatFormat

Pieces = Sequence[tuple[Tensor, Sequence[int]]]


@recording.replayable_operation
def view(
    input: Tensor,
    shape: Sequence[int] | None = None,
    offsets: Sequence[int] | None = None,
    valid_shape: Sequence[int] | None = None,
    dtype: DataType | None = None,
) -> Tensor:
    """Take a part of a tensor.

    Args:
        input: any tensor.
        shape: of the part, plain ints, as many as dimensions; it may reach over an edge.
        offsets: where it starts.
        valid_shape: what of it holds data; by default, what lies in the input. A cast converts only
            this, and assemble writes only this.
        dtype: read the bits of the whole tensor as another dtype instead; the last axis grows or
            shrinks with the width.

    Raises:
        TypeError: lists of other things than ints, a shape that depends on a loop or a dynamic
            dimension (upstream refuses it), or both a part and a dtype.
        ValueError: another number of dimensions, an offset outside, a valid shape beyond the input
            or the view, or bits that are no whole number of elements.
    """
    _check("view", input)
    if dtype is not None and shape is None and offsets is None and valid_shape is None:
        return _reread(input, check_dtype(dtype))
    if dtype is not None or shape is None or offsets is None:
        raise TypeError("view takes a shape and offsets, or a dtype alone")
    return input.view(shape, offsets, valid_shape=valid_shape)


@overload
def assemble(
    input: Tensor, offsets: Sequence[int], out: Tensor, *, parallel: bool = False
) -> None: ...


@overload
def assemble(input: Pieces, offsets: Tensor, *, parallel: bool = False) -> None: ...


def assemble(
    input: Tensor | Pieces,
    offsets: Sequence[int] | Tensor,
    out: Tensor | None = None,
    *,
    parallel: bool = False,
) -> None:
    """Write a tensor, or several, into parts of another; nothing else of that one changes.

    Args:
        input: a tensor, or a list of tensors with their offsets.
        offsets: where it goes; left out for a list.
        out: an output of the kernel, or a tensor that it declared.
        parallel: upstream may then write pieces at the same time; the bits are the same.

    Raises:
        TypeError: no tensors, another dtype than the output's, or an output that is a view or a
            result.
        ValueError: a part that does not fit the output.
    """
    if not isinstance(parallel, bool):
        raise TypeError(f"parallel must be True or False, not {parallel!r}")
    if isinstance(offsets, Tensor) and out is None and not isinstance(input, Tensor):
        for piece, offset in input:
            offsets.assemble(piece, offset)
    elif isinstance(input, Tensor) and isinstance(out, Tensor) and not isinstance(offsets, Tensor):
        out.assemble(input, offsets)
    else:
        raise TypeError("assemble takes (tensor, offsets, out) or ([(tensor, offsets), ...], out)")


def _check(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} takes a pypto Tensor, not {type(value).__name__}")


def _reread(input: Tensor, dtype: DataType) -> Tensor:
    """The bits as another dtype, of a row's valid part as far as it makes whole elements.

    Source: upstream pypto, `framework/src/interface/operation/operation_impl.cpp`, the branch of
    view for a dtype: the last valid dimension changes as the last dimension does.
    """
    before, after = numpy_dtype(input.dtype), numpy_dtype(dtype)
    row_bytes = input.shape[-1] * before.itemsize
    if row_bytes % after.itemsize:
        raise ValueError(f"rows of {row_bytes} B do not hold whole elements of {dtype}")
    *rows, length = input.valid_shape
    valid = (*rows, length * before.itemsize // after.itemsize)
    whole = valid[-1] * after.itemsize // before.itemsize
    held, uninitialized = input.enclosure(), input.uninitialized()
    if uninitialized is not None:
        of_bytes = uninitialized.mask[..., :whole].repeat(before.itemsize, axis=-1)
        mask: npt.NDArray[np.bool_] = np.any(of_bytes.reshape(*valid, after.itemsize), axis=-1)
        uninitialized = uninitialized.masked(mask)
    return Tensor._from_result(
        (*input.shape[:-1], row_bytes // after.itemsize),
        dtype,
        input.name,
        None if held is None else _with_bits(held[..., :whole], dtype),
        valid=valid,
        uninitialized=uninitialized,
        source=input,
    )


def _with_bits(held: Enclosure, dtype: DataType) -> Enclosure:
    """The same bits as elements of another dtype; anything, where not all of them are certain."""
    fmt = dtype.number_format
    values = np.ascontiguousarray(held.values).view(fmt.dtype)
    if held.interval is None:
        return Enclosure(values=values)
    item_bytes = held.values.dtype.itemsize

    def by_element(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Give each byte of a new element the flag of the element that it comes from."""
        of_bytes = np.repeat(array, item_bytes, axis=-1)
        return of_bytes.reshape(*values.shape, values.itemsize)

    certain: npt.NDArray[np.bool_] = np.all(by_element(held.certain()), axis=-1)
    cause = np.where(by_element(held.certain()), 0, by_element(held.interval.cause)).max(axis=-1)
    low, high = (np.where(certain, values, end) for end in limits(fmt))
    nan = np.logical_not(certain) if isinstance(fmt, FloatFormat) else None
    interval = Interval(low=low, high=high, may_be_nan=nan, cause=cause)
    return Enclosure(values=values, interval=interval)
