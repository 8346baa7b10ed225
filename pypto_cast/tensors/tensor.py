"""Tensor: a declared shape and dtype, with values or without, and parts of it."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final, cast, overload

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes import DataType, TileOpFormat, check_dtype
from pypto_cast.kernel import recording
from pypto_cast.kernel.recording import Patch, Patches, part_of
from pypto_cast.kernel.refusals import refusing, unknown_name
from pypto_cast.tensors import indexing
from pypto_cast.tensors.annotations import Dimension, TensorAnnotation, annotation_of
from pypto_cast.tensors.arguments import (
    DYNAMIC,
    checked_format,
    declared_dimensions,
    matched_shape,
    values_held,
)
from pypto_cast.tensors.buffers import Buffer
from pypto_cast.tensors.symbolic import SymbolicScalar
from tiling.grid import Shape

__all__ = ["DYNAMIC", "Tensor", "tensor"]

_SHOWN_VALUES: Final = 6


@refusing
class Tensor:
    """A tensor of 1 to 4 dimensions that `cast` takes and gives.

    Without `data` it only declares a shape and a dtype, as upstream's does. With `data` it holds
    values; an array is held as it is, without a copy, and only a kernel that has it as an output
    writes to it. In an annotation, `Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32]` says what a
    parameter of a kernel must be.

    Args:
        shape: a list or tuple of ints; -1 is a dimension that is not known yet. In an annotation
            also pypto.STATIC, pypto.DYNAMIC and `...`.
        dtype: DT_FP32 unless given.
        name: for messages and listings.
        format: TILEOP_ND; upstream's cast refuses NZ.
        data: values. An array must have the dtype that is declared; Python numbers are converted
            to it, rounded once to the nearest (ties to even).

    Raises:
        TypeError: a shape that is no list of ints, an unknown dtype, or data of another dtype,
            complex, float64, object or text.
        ValueError: data of another shape than declared, or of one that no cast takes (0 or more
            than 4 dimensions, empty, more than 2147483647 elements); a shape without data is
            judged when it is cast.
        OverflowError: a Python number that an integer dtype cannot hold, or an int of more than 64
            bits.
    """

    __slots__ = (
        *("__weakref__", "_annotation", "_buffer", "_data", "_dtype", "_dynamic", "_format"),
        *("_is_value", "_patches", "_shape", "_valid", "name"),
    )

    def _fill(self, shape: Shape, dtype: DataType, annotation: TensorAnnotation) -> None:
        self._shape, self._dtype = shape, dtype
        self.name = annotation.name
        self._data: npt.NDArray[Any] | None = None
        self._valid: Shape | None = None
        self._buffer: Buffer[Patch] | None = None
        self._patches: Patches = ()
        self._dynamic: frozenset[int] = frozenset()
        self._is_value = False
        self._format = annotation.format
        self._annotation = annotation

    def __init__(
        self,
        shape: Sequence[Dimension] | None = None,
        dtype: DataType | None = None,
        name: str = "",
        format: TileOpFormat | None = None,
        *,
        data: object = None,
    ) -> None:
        dimensions, entries = declared_dimensions(shape)
        known = DataType.DT_FP32 if dtype is None else check_dtype(dtype)
        layout = TileOpFormat.TILEOP_ND if format is None else checked_format(format)
        says = TensorAnnotation(shape=dimensions, dtype=dtype, name=name, format=layout)
        self._fill(entries, known, says)
        if data is not None:
            self._data = values_held(data, self._dtype)
            self._shape = matched_shape(self._shape, self._data, declared=shape is not None)

    @staticmethod
    def made(
        shape: Shape,
        dtype: DataType,
        name: str = "",
        data: npt.NDArray[Any] | None = None,
        *,
        valid: Shape | None = None,
        patches: Patches = (),
    ) -> Tensor:
        """The result of an operation or a part of a tensor, for the package itself."""
        entries = tuple(map(int, shape))
        result = Tensor.__new__(Tensor)  # nothing is left to check
        result._fill(entries, dtype, TensorAnnotation(shape=entries, dtype=dtype, name=name))
        result._is_value = True
        result._data = data
        result._valid = None if valid == shape else valid
        result._patches = patches
        return result

    def as_parameter(
        self, name: str, buffer: Buffer[Patch] | None, dynamic: frozenset[int]
    ) -> Tensor:
        """The same tensor as a kernel sees it as a parameter, for the package itself."""
        result = Tensor.made(
            self._shape, self._dtype, name, self._data, valid=self._valid, patches=self._patches
        )
        result.attach(buffer, dynamic)
        return result

    def attach(self, buffer: Buffer[Patch] | None, dynamic: frozenset[int] | None = None) -> None:
        """Have the memory of a parameter from now on, or none, for the package itself.

        What a running kernel declared stays with its recording, and ends with it.
        """
        running = recording.current()
        if buffer is not None and not buffer.is_given and running is not None:
            running.declared[self] = buffer
        else:
            self._buffer = buffer
        if dynamic is not None:
            self._dynamic = dynamic

    def __class_getitem__(cls, parameters: object) -> TensorAnnotation:
        """`Tensor[[shape], dtype, format, name]`, in any order, or a dict of them."""
        return annotation_of(parameters)

    @property
    def annotation(self) -> TensorAnnotation:
        """What the tensor says where it stands as an annotation."""
        return self._annotation

    @property
    def shape(self) -> list[SymbolicScalar]:
        """Dimensions, as a list like upstream's; -1 where not known.

        In a kernel, those annotated DYNAMIC have `min` and `max`; the others are plain ints.
        """
        entries = [
            SymbolicScalar(entry) if axis in self._dynamic else entry
            for axis, entry in enumerate(self._shape)
        ]
        return cast("list[SymbolicScalar]", entries)

    @property
    def valid_shape(self) -> list[int]:
        """What of the shape holds data: less than `shape` where a view reaches over an edge."""
        return list(self._shape if self._valid is None else self._valid)

    @property
    def dtype(self) -> DataType:
        """Element type."""
        return self._dtype

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def format(self) -> TileOpFormat:
        """Memory layout."""
        return self._format

    @property
    def has_data(self) -> bool:
        """Whether the tensor holds values."""
        buffer = self._live()
        return self._data is not None if buffer is None else buffer.has_values

    def numpy(self) -> npt.NDArray[Any]:
        """The values, without a copy; BF16 and narrower types are ml_dtypes'.

        Raises:
            ValueError: the tensor is only declared.
            TypeError: a kernel is running; no device program holds what Python makes of them.
        """
        if recording.current() is not None:
            raise TypeError(
                "a kernel does not see values: what Python computes of them would not be in the "
                "device program"
            )
        if self._data is None:
            raise ValueError(
                f"{self!r} is declared without values; give data= or use pypto.from_numpy"
            )
        return self._data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.numpy()
        if dtype is not None and np.dtype(dtype) != values.dtype:
            if copy is False:
                raise ValueError(f"no view of {self.dtype} as {np.dtype(dtype)} without a copy")
            return values.astype(dtype)
        return values.copy() if copy else values

    def __dlpack__(self, **arguments: Any) -> Any:
        """Export through DLPack; BufferError where numpy has no such dtype (BF16, 4-bit types)."""
        return self.numpy().__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self.numpy().__dlpack_device__()
        return int(kind), int(index)

    def __eq__(self, other: object) -> bool:
        if recording.current() is not None and other is not None:
            raise TypeError("a kernel does not compare tensors: pypto_cast covers cast")
        return self is other

    __hash__ = object.__hash__

    if not TYPE_CHECKING:  # so that type checkers report them

        def __getattr__(self, name: str) -> object:
            raise AttributeError(unknown_name(name, f"a {type(self).__name__}"))

    def __repr__(self) -> str:
        parts = [f"shape={self.shape}", f"dtype={self.dtype}"]
        if self.name:
            parts.append(f"name={self.name!r}")
        if self._valid is not None:
            parts.append(f"valid_shape={self.valid_shape}")
        data = self._data if self._buffer is None or self._buffer.home is None else self.elements()
        if data is not None:
            shown = ", ".join(str(value) for value in data.flat[:_SHOWN_VALUES])
            parts.append(f"data=[{shown}{', ...' if data.size > _SHOWN_VALUES else ''}]")
        return f"Tensor({', '.join(parts)})"

    def elements(self) -> npt.NDArray[Any] | None:
        """The values of the valid shape, for the package itself; None if it only declares.

        Raises:
            ValueError: a kernel runs, and has not written what it reads.
        """
        buffer, running = self._live(), recording.current()
        if buffer is not None:
            return buffer.read((0,) * self.dim, tuple(self.valid_shape))
        is_running = running is not None and running.executes
        if self._data is None and is_running and 0 not in self.valid_shape:
            raise ValueError(f"{self._label()} is read before the kernel writes to it")
        return self._data

    def patches(self) -> Patches:
        """Which casts the values come from, for the package itself."""
        buffer = self._live()
        return self._patches if buffer is None else tuple(buffer.patches)

    def view(
        self,
        shape: Sequence[int],
        offsets: Sequence[int],
        *,
        valid_shape: Sequence[int] | None = None,
    ) -> Tensor:
        """A part of the tensor; see `pypto.view`."""
        return self._part(
            *indexing.view_box(shape, offsets, valid_shape, self._shape, self.valid_shape)
        )

    def assemble(self, input: Tensor, offsets: Sequence[int]) -> None:
        """Write a tensor into a part of this one; see `pypto.assemble`."""
        if not isinstance(input, Tensor):
            raise TypeError(
                f"a kernel writes tensors, not {input!r} ({type(input).__name__}); make it with "
                "pypto.cast or pypto.view"
            )
        offset = indexing.ints("offsets", offsets, self.dim)
        buffer = self._memory()
        if input.dtype is not self._dtype:
            raise TypeError(
                f"{self._label()} is {self._dtype}; what is written to it is {input.dtype}: cast it"
            )
        valid = indexing.ints("shape", input.valid_shape, self.dim)
        indexing.check_placement(offset, valid, self._shape, self._label())
        if 0 not in valid:
            moved = tuple(patch.moved(offset) for patch in input.patches())
            buffer.write(input.elements(), offset, valid, moved)

    def move(self, other: Tensor) -> None:
        """Take over the values of a tensor of the same shape, as `out[:] = other` does."""
        if isinstance(other, Tensor) and other.shape != self.shape:
            raise ValueError(
                f"{self._label()} has shape {self.shape}; what is written to all of it has shape "
                f"{other.shape}"
            )
        self.assemble(other, [0] * self.dim)
        buffer = self._live()
        if buffer is not None and buffer.home is None:
            self._valid = None if other.valid_shape == self.shape else tuple(other.valid_shape)

    @overload
    def __getitem__(
        self, key: slice | EllipsisType | tuple[slice | EllipsisType, ...]
    ) -> Tensor: ...

    @overload
    def __getitem__(self, key: object) -> Any: ...

    def __getitem__(self, key: object) -> Any:
        if indexing.is_whole(key):
            return self
        box = indexing.box_of(key, self._shape)
        if len(box.dropped) == self.dim:
            return self._element(box.offset)
        valid = indexing.clipped(self.valid_shape, box.offset, box.extent)
        part = self._part(box.extent, box.offset, valid)
        return part._without(box.dropped) if box.dropped else part

    def __setitem__(self, key: object, value: Tensor) -> None:
        if indexing.is_whole(key):
            self.move(value)
        else:
            box = indexing.box_of(key, self._shape)
            self.assemble(self._fitted(value, box), box.offset)

    def _label(self) -> str:
        return f"tensor {self.name!r}" if self.name else "the tensor"

    def _part(self, extent: Shape, offset: Shape, valid: Shape) -> Tensor:
        if (buffer := self._live()) is not None:
            data = buffer.read(offset, valid)
        else:
            data = None if self._data is None else self._data[indexing.slices(offset, valid)]
        patches = part_of(self.patches(), offset, valid)
        return Tensor.made(extent, self._dtype, self.name, data, valid=valid, patches=patches)

    def _element(self, index: Shape) -> SymbolicScalar:
        """One INT32 of an input, which upstream lets a kernel compute offsets with."""
        if self._dtype is not DataType.DT_INT32:
            raise TypeError(f"single elements are read of DT_INT32 only, not of {self._dtype}")
        data = self._part((1,) * self.dim, index, (1,) * self.dim).elements()
        if data is None:
            raise ValueError(f"{self._label()} holds no values to read element {list(index)} of")
        return SymbolicScalar(data.reshape(()).item())

    def _without(self, axes: tuple[int, ...]) -> Tensor:
        """The same elements, without some axes of length 1."""
        kept = [axis for axis in range(self.dim) if axis not in axes]
        shape, valid = (tuple(s[axis] for axis in kept) for s in (self._shape, self.valid_shape))
        return self._reshaped(shape, valid)

    def _fitted(self, value: Tensor, box: indexing.Box) -> Tensor:
        """A value with the axes that the index drops, once it fills the box."""
        if not isinstance(value, Tensor) or (not box.dropped and value.dim != self.dim):
            return value
        shape, valid = indexing.filled_shape(box, value.shape, value.valid_shape, self._label())
        return value._reshaped(shape, valid) if box.dropped else value

    def _reshaped(self, shape: Shape, valid: Shape) -> Tensor:
        """The same elements under axes of length 1 more or fewer."""
        data = self.elements()
        held = None if data is None else data.reshape(valid)
        return Tensor.made(shape, self._dtype, self.name, held, valid=valid)

    def writable(self) -> Buffer[Patch] | None:
        """The memory that writing to the tensor changes; None for a view or a result."""
        buffer, running = self._live(), recording.current()
        is_declared = self._data is None and not self._is_value and min(self._shape, default=0) >= 0
        if buffer is None and running is not None and is_declared:
            buffer = running.declared[self] = running.local(self._label(), self._shape)
        return buffer

    def _live(self) -> Buffer[Patch] | None:
        """The memory of a parameter, or what the running kernel wrote to a tensor it declared."""
        running = recording.current()
        if self._buffer is not None or running is None:
            return self._buffer
        return running.declared.get(self)

    def _memory(self) -> Buffer[Patch]:
        if recording.current() is None:
            raise TypeError(
                f"{self._label()} is written outside a kernel; decorate the function with pypto.jit"
            )
        buffer = self.writable()
        if buffer is None:
            raise TypeError(
                f"{self._label()} is a view or a result, not an output of the kernel; write to the "
                "output itself: out[a:b] = value, or pypto.assemble(value, offsets, out)"
            )
        return buffer


tensor = Tensor
