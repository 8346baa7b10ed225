"""The arguments of a kernel's call as its function sees them."""

from __future__ import annotations

import functools
from typing import Any

from pypto_cast.dtypes.data_types import TileOpFormat, dtype_of_numpy
from pypto_cast.recording.recording import Recording
from pypto_cast.tensors.arguments import TensorAnnotation
from pypto_cast.tensors.arrays import array_of, check_contiguous
from pypto_cast.tensors.nz_layout import matrices_in
from pypto_cast.tensors.tensor import Tensor
from simulator.numbers.formats import Format
from tiling.grid import Shape


def format_and_shape(name: str, value: Any) -> tuple[Format, Shape]:
    """Those of a tensor of a call, which was checked."""
    if isinstance(value, Tensor):
        return value.dtype.number_format, tuple(map(int, value.shape))
    array = array_of(value, name)
    return dtype_of_numpy(array.dtype).number_format, array.shape


def outermost(
    label: str, name: str, value: Any, annotation: TensorAnnotation, running: Recording
) -> Tensor:
    """An array of the user as the kernel sees it."""
    if isinstance(value, Tensor) and not value.has_data:
        raise TypeError(f"{label} is declared without values; a kernel is called with arrays")
    held = value.enclosure() if isinstance(value, Tensor) else None
    array = array_of(value if held is None else held.values, label)
    interval = None if held is None else held.interval
    check_contiguous(array, label)
    if annotation.format is TileOpFormat.TILEOP_NZ:
        laid_out = functools.partial(matrices_in, dimensions=len(annotation.shape))
        array = laid_out(array)
        interval = None if interval is None else interval.map(laid_out)
    dtype = dtype_of_numpy(array.dtype)
    annotation.check(label, array.shape, dtype)
    declared = Tensor._from_result(array.shape, dtype, name)
    buffer = running.parameter(name, array, value, interval)
    return declared.as_parameter(name, buffer, annotation)


def inner(
    name: str, value: Tensor, annotation: TensorAnnotation, running: Recording, *, is_nested: bool
) -> Tensor:
    """A tensor of the kernel around, or one that is only declared, to look at the program."""
    value.check_content()
    held = None if is_nested else value.enclosure()
    if is_nested:
        buffer = value.writable()
    elif held is not None:
        buffer = running.parameter(name, held.values, value)
    else:
        buffer = running.local(name, tuple(value.shape), is_given=True)
    return value.as_parameter(name, buffer, annotation, is_nested=is_nested)
