"""Parts of a tensor: slices, views, and what a kernel writes into it."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, TypeVar, cast, overload

import numpy.typing as npt

from pypto_cast.dtypes import DataType
from pypto_cast.kernel import recording
from pypto_cast.kernel.recording import Patch, Patches, part_of
from pypto_cast.kernel.refusals import CastOnly
from pypto_cast.tensors.buffers import Buffer
from pypto_cast.tensors.indexing import Box, box_of, clipped, ints, is_whole, slices
from pypto_cast.tensors.symbolic import SymbolicScalar
from tiling.grid import Shape

_T = TypeVar("_T", bound="Parts")


class Parts(CastOnly):
    """What a tensor holds, and how a kernel takes parts of it and writes to them.

    It holds values of its own (an array that nobody writes to), the memory of a kernel's output, or
    none. Where a view reaches over an edge, only the valid part of its shape is held.
    """

    __slots__ = (
        *("__weakref__", "_buffer", "_data", "_dtype"),
        *("_dynamic", "_is_value", "_patches", "_shape", "_valid", "name"),
    )

    def __init__(self, shape: Shape, dtype: DataType, name: str = "") -> None:
        self._shape = shape
        self._dtype = dtype
        self.name = name
        self._data: npt.NDArray[Any] | None = None
        self._valid: Shape | None = None
        self._buffer: Buffer[Patch] | None = None
        self._patches: Patches = ()
        self._dynamic: frozenset[int] = frozenset()
        self._is_value = False

    @classmethod
    def made(
        cls: type[_T],
        shape: Shape,
        dtype: DataType,
        name: str = "",
        data: npt.NDArray[Any] | None = None,
        *,
        valid: Shape | None = None,
        patches: Patches = (),
    ) -> _T:
        """The result of an operation or a part of a tensor, for the package itself."""
        result = cls(shape, dtype, name)
        result._is_value = True
        result._data = data
        result._valid = None if valid == shape else valid
        result._patches = patches
        return result

    def as_parameter(
        self: _T, name: str, buffer: Buffer[Patch] | None, dynamic: frozenset[int]
    ) -> _T:
        """The same tensor as a kernel sees it as a parameter, for the package itself."""
        result = type(self).made(
            self._shape, self._dtype, name, self._data, valid=self._valid, patches=self._patches
        )
        result.attach(buffer, dynamic)
        return result

    def attach(self, buffer: Buffer[Patch] | None, dynamic: frozenset[int] | None = None) -> None:
        """Have a kernel's memory from now on, or none, for the package itself."""
        self._buffer = buffer
        if dynamic is not None:
            self._dynamic = dynamic

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
    def has_data(self) -> bool:
        """Whether the tensor holds values."""
        buffer = self._live()
        return self._data is not None if buffer is None else buffer.has_values

    def elements(self) -> npt.NDArray[Any] | None:
        """The values of the valid shape, for the package itself; None if it only declares.

        Raises:
            ValueError: a kernel runs, and has not written what it reads.
        """
        buffer, running = self._live(), recording.current()
        if buffer is None:
            is_running = running is not None and running.executes
            if self._data is None and is_running and 0 not in self.valid_shape:
                raise ValueError(f"{self._label()} is read before the kernel writes to it")
            return self._data
        valid = tuple(self.valid_shape)
        return buffer.read((0,) * len(valid), valid)

    def patches(self) -> Patches:
        """Which casts the values come from, for the package itself."""
        buffer = self._live()
        return self._patches if buffer is None else tuple(buffer.patches)

    def view(
        self: _T,
        shape: Sequence[int],
        offsets: Sequence[int],
        *,
        valid_shape: Sequence[int] | None = None,
    ) -> _T:
        """A part of the tensor; see `pypto.view`."""
        extent = ints("shape", shape, self.dim)
        offset = ints("offsets", offsets, self.dim)
        if any(isinstance(entry, SymbolicScalar) for entry in shape):
            raise TypeError(
                f"view: shape {list(shape)} depends on a loop or a dynamic dimension, which "
                "upstream refuses; give the whole view's shape, and the part with valid_shape="
            )
        if any(o >= s for o, s in zip(offset, self._shape, strict=True)):
            raise ValueError(f"view: offsets {list(offset)} lie outside shape {self.shape}")
        most = clipped(self.valid_shape, offset, extent)
        valid = most if valid_shape is None else ints("valid_shape", valid_shape, self.dim)
        if any(v > m for v, m in zip(valid, most, strict=True)):
            raise ValueError(
                f"view: valid_shape {list(valid)} of a view of {list(extent)} at {list(offset)} "
                f"reaches beyond the {self.valid_shape} that hold data"
            )
        return self._part(extent, offset, valid)

    def assemble(self, input: Parts, offsets: Sequence[int]) -> None:
        """Write a tensor into a part of this one; see `pypto.assemble`."""
        if not isinstance(input, Parts):
            raise TypeError(
                f"a kernel writes tensors, not {input!r} ({type(input).__name__}); make it with "
                "pypto.cast or pypto.view"
            )
        offset = ints("offsets", offsets, self.dim)
        buffer = self._memory()
        if input.dtype is not self._dtype:
            raise TypeError(
                f"{self._label()} is {self._dtype}; what is written to it is {input.dtype}: cast it"
            )
        valid = ints("shape", input.valid_shape, self.dim)
        if any(o + v > s for o, v, s in zip(offset, valid, self._shape, strict=True)):
            raise ValueError(
                f"{list(valid)} at {list(offset)} do not fit {self._label()}, shape {self.shape}"
            )
        if 0 not in valid:
            moved = tuple(patch.moved(offset) for patch in input.patches())
            buffer.write(input.elements(), offset, valid, moved)

    def move(self, other: Parts) -> None:
        """Take over the values of a tensor of the same shape, as `out[:] = other` does."""
        if isinstance(other, Parts) and other.shape != self.shape:
            raise ValueError(
                f"{self._label()} has shape {self.shape}; what is written to all of it has shape "
                f"{other.shape}"
            )
        self.assemble(other, [0] * self.dim)
        if self._buffer is not None and self._buffer.home is None:
            self._valid = None if other.valid_shape == self.shape else tuple(other.valid_shape)

    @overload
    def __getitem__(
        self: _T, key: slice | EllipsisType | tuple[slice | EllipsisType, ...]
    ) -> _T: ...

    @overload
    def __getitem__(self, key: object) -> Any: ...

    def __getitem__(self, key: object) -> Any:
        if is_whole(key):
            return self
        box = box_of(key, self._shape)
        if len(box.dropped) == self.dim:
            return self._element(box.offset)
        valid = clipped(self.valid_shape, box.offset, box.extent)
        part = self._part(box.extent, box.offset, valid)
        return part._without(box.dropped) if box.dropped else part

    def __setitem__(self, key: object, value: Parts) -> None:
        if is_whole(key):
            self.move(value)
        else:
            box = box_of(key, self._shape)
            self.assemble(self._fitted(value, box), box.offset)

    def _label(self) -> str:
        return f"tensor {self.name!r}" if self.name else "the tensor"

    def _part(self: _T, extent: Shape, offset: Shape, valid: Shape) -> _T:
        if (buffer := self._live()) is not None:
            data = buffer.read(offset, valid)
        else:
            data = None if self._data is None else self._data[slices(offset, valid)]
        patches = part_of(self.patches(), offset, valid)
        return type(self).made(extent, self._dtype, self.name, data, valid=valid, patches=patches)

    def _element(self, index: Shape) -> SymbolicScalar:
        """One INT32 of an input, which upstream lets a kernel compute offsets with."""
        if self._dtype is not DataType.DT_INT32:
            raise TypeError(f"single elements are read of DT_INT32 only, not of {self._dtype}")
        data = self._part((1,) * self.dim, index, (1,) * self.dim).elements()
        if data is None:
            raise ValueError(f"{self._label()} holds no values to read element {list(index)} of")
        return SymbolicScalar(data.reshape(()).item())

    def _without(self: _T, axes: tuple[int, ...]) -> _T:
        """The same elements, without some axes of length 1."""
        kept = [axis for axis in range(self.dim) if axis not in axes]
        valid = self.valid_shape
        return self._reshaped(
            tuple(self._shape[axis] for axis in kept), tuple(valid[axis] for axis in kept)
        )

    def _fitted(self, value: Parts, box: Box) -> Parts:
        """A value with the axes that the index drops, once it fills the box."""
        if not isinstance(value, Parts) or (not box.dropped and value.dim != self.dim):
            return value
        if value.dim != self.dim - len(box.dropped):
            raise ValueError(
                f"the index takes {self.dim - len(box.dropped)} dimensions of {self._label()}; "
                f"what is written has shape {value.shape}"
            )
        lengths, valid = iter(value.shape), iter(value.valid_shape)
        shape = tuple(1 if axis in box.dropped else next(lengths) for axis in range(self.dim))
        held = tuple(1 if axis in box.dropped else next(valid) for axis in range(self.dim))
        for wanted, is_open, whole, part in zip(box.extent, box.is_open, shape, held, strict=True):
            if not is_open and wanted not in (whole, part):
                raise ValueError(
                    f"the index takes {list(box.extent)} of {self._label()}; what is written has "
                    f"shape {value.shape}"
                )
        return value._reshaped(shape, held) if box.dropped else value

    def _reshaped(self: _T, shape: Shape, valid: Shape) -> _T:
        """The same elements under axes of length 1 more or fewer."""
        data = self.elements()
        held = None if data is None else data.reshape(valid)
        return type(self).made(shape, self._dtype, self.name, held, valid=valid)

    def writable(self) -> Buffer[Patch] | None:
        """The memory that writing to the tensor changes; None for a view or a result."""
        running = recording.current()
        is_declared = self._data is None and not self._is_value and min(self._shape, default=0) >= 0
        if self._live() is None and running is not None and is_declared:
            self._buffer = running.local(self._label(), self._shape)
        return self._buffer

    def _live(self) -> Buffer[Patch] | None:
        """The tensor's memory; what a kernel wrote to a tensor it declared ends with the kernel."""
        buffer, running = self._buffer, recording.current()
        if buffer is None or buffer.home is not None or buffer.is_given:
            return buffer
        if running is None or all(buffer is not other for other in running.buffers):
            self._buffer = None
        return self._buffer

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
