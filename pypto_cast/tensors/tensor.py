"""Tensor: a declared shape and dtype, with values or without, and parts of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any, overload

import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType, TileOpFormat, check_choice, check_dtype
from pypto_cast.options.context import current
from pypto_cast.recording import recording
from pypto_cast.recording.buffers import Buffer, Uninitialized, slices
from pypto_cast.recording.causes import CONTROL_DEPENDENCE
from pypto_cast.recording.steps import Patch, Patches
from pypto_cast.tensors import indexing
from pypto_cast.tensors.arguments import (
    DYNAMIC,
    Dimension,
    TensorAnnotation,
    annotation_of,
    declared_dimensions,
    matched_shape,
    values_held,
)
from pypto_cast.tensors.nz_layout import matrices_in
from pypto_cast.tensors.operators import REGISTERED, Operators, of_some_releases
from pypto_cast.tensors.storage import Storage
from pypto_cast.tensors.symbolic import (
    DynamicShape,
    RuntimeScalar,
    SymbolicScalar,
    check_extents,
    declare,
    read_from_data,
    scalar_of,
)
from pypto_cast.tensors.undecided import UndecidedScalar
from pypto_cast.unsupported import DynamicOperandWarning, refusing, tolerate
from simulator.arithmetic.indexed.gather_scatter import read_box, write_box
from simulator.arithmetic.interval import Enclosure, unknown
from tiling.grid import Shape

__all__ = ["DYNAMIC", "Tensor", "tensor"]


def _of_iterations(extent: Shape) -> Shape:
    """The extent of a box of the body, for all iterations that are carried out together."""
    running = recording.current()
    if running is None or running.box_heights is None:
        return extent
    return next(running.box_heights) * extent[0], *extent[1:]


@refusing
class Tensor(Storage, Operators):
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
        format: TILEOP_ND, or TILEOP_NZ, which matmul takes besides; data of a declared shape may
            then lie in fractals, two dimensions more.
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
        "__weakref__",
        "_annotation",
        "_control_dependence",
        "_dynamic",
        "_format",
        "_viewed",
    )
    _annotation: TensorAnnotation | None
    _viewed: tuple[Tensor, indexing.Start] | None

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
        self._fill(entries, DataType.DT_FP32 if dtype is None else check_dtype(dtype), name)
        self._format = TileOpFormat.TILEOP_ND
        if format is not None:
            self._format = check_choice("format", format, TileOpFormat)
        self._annotation = TensorAnnotation(
            shape=dimensions, dtype=dtype, name=name, format=self._format
        )
        declare(self, shape or ())
        if data is not None:
            values = values_held(data, self._dtype)
            if self._format is TileOpFormat.TILEOP_NZ:
                values = matrices_in(values, len(entries))
            self._held = Enclosure(values=values)
            self._shape = matched_shape(self._shape, values, declared=shape is not None)

    def _fill(self, shape: Shape, dtype: DataType, name: str) -> None:
        """Set shape and dtype, and everything else to empty."""
        self._shape = shape
        self._dtype = dtype
        self.name = name
        self._held = self._valid = self._buffer = self._uninitialized = None
        self._rounding = self._hidden = self._viewed = self._annotation = None
        self._patches: Patches = ()
        self._dynamic: frozenset[int] = frozenset()
        self._is_value = self._is_part = self._cached = False
        self._moved = None
        self._format = TileOpFormat.TILEOP_ND
        self._control_dependence = CONTROL_DEPENDENCE.get()

    @staticmethod
    def _from_result(
        shape: Shape,
        dtype: DataType,
        name: str = "",
        data: npt.NDArray[Any] | Enclosure | Callable[[], Enclosure] | None = None,
        *,
        valid: Shape | None = None,
        patches: Patches = (),
        uninitialized: Uninitialized | None = None,
        source: Tensor | None = None,
        hidden: Enclosure | None = None,
    ) -> Tensor:
        """The result of an operation or a part of a tensor, for the package itself.

        Args:
            shape, dtype, name: of the result.
            data: the elements of the valid shape, or what gives them once they are read; None if
                the tensor only declares.
            valid: what of the shape holds data; None for all.
            patches: which casts and operations the values come from.
            uninitialized: which of them nobody wrote.
            source: the tensor that this is a part of; None for the result of an operation.
            hidden: the FP32 value of which a 16-bit result holds the rounding.
        """
        result = Tensor.__new__(Tensor)  # nothing is left to check
        result._fill(tuple(map(int, shape)), dtype, name)
        if source is not None:
            result._format = source.format
        result._is_value, result._is_part = True, source is not None
        result._uninitialized = uninitialized
        if isinstance(data, Enclosure):
            result._held = data
        elif callable(data):
            result._rounding = data
        elif data is not None:
            result._held = Enclosure(values=data)
        if hidden is not None:
            result._hidden = recording.segment(), hidden
        result._valid = None if valid == shape else valid
        result._patches = patches
        return result

    @staticmethod
    def _computed(shape: Shape, dtype: DataType, held: Enclosure, patches: Patches) -> Tensor:
        """A result that is all valid and held as it is, of a shape of ints."""
        result = Tensor.__new__(Tensor)
        result._fill(shape, dtype, "")
        result._held, result._is_value, result._patches = held, True, patches
        return result

    def as_parameter(
        self,
        name: str,
        buffer: Buffer[Patch] | None,
        annotation: TensorAnnotation,
        *,
        is_nested: bool = False,
    ) -> Tensor:
        """The same tensor as a kernel sees it as a parameter, for the package itself.

        One that another kernel calls knows what that one knows of the lengths, as upstream inlines
        it.
        """
        data, valid, patches = self._own(), self._valid, self._patches
        result = Tensor._from_result(
            self._shape,
            self._dtype,
            name,
            data,
            valid=valid,
            patches=patches,
            uninitialized=self._uninitialized,
            source=self,
        )
        if annotation.format is not TileOpFormat.TILEOP_ND:
            result._format = annotation.format
        result.attach(buffer)
        result.mark_dynamic(self._dynamic if is_nested else annotation.dynamic_axes())
        return result

    def mark_dynamic(self, axes: frozenset[int]) -> None:
        """Have axes whose length upstream learns when a kernel runs, for the package itself."""
        self._dynamic = axes

    def is_plain(self) -> bool:
        """True if every extent is an int that no run changes, for the package itself."""
        return not self._dynamic and (
            self._valid is None or all(type(length) is int for length in self._valid)
        )

    def check_static(
        self, refusal: str = "Dynamic shape tensors are not allowed as operation operands"
    ) -> None:
        """Warn, in a kernel, of an operation on a dynamic dimension, for the package itself.

        Release 0.2.0 refuses most of them and makes nothing of the others, a cast among them;
        883e7dfb0 refuses all (`CheckTensorDynamicShape`).

        Args:
            refusal: the words in which upstream refuses it.

        Raises:
            UpstreamRefusalError: under `options(strict=True)`.
        """
        if not self._dynamic or recording.current() is None:
            return
        axis, tile, name = min(self._dynamic), current().vec_tile_shapes, self.name or "x"
        rows: int | str = tile[axis] if len(tile) > axis else "rows"
        shape = [rows if a in self._dynamic else length for a, length in enumerate(self._shape)]
        offsets = [f"i * {rows}" if a == axis else "0" for a in range(self.dim)]
        tolerate(
            f"{refusal}: dimension {axis} of {self._label()} is DYNAMIC; compute on views in a "
            f"loop, as in `for i in pypto.loop({name}.shape[{axis}] // {rows}): "
            f"part = pypto.view({name}, [{', '.join(map(str, shape))}], "
            f"[{', '.join(offsets)}])`, and assemble the results",
            strict=current().strict,
            category=DynamicOperandWarning,
        )

    def __class_getitem__(cls, parameters: object) -> TensorAnnotation:
        """`Tensor[[shape], dtype, format, name]`, in any order, or a dict of them."""
        return annotation_of(parameters)

    @property
    def annotation(self) -> TensorAnnotation:
        """The annotation that the tensor stands for where it is used as one."""
        return self._annotation or TensorAnnotation(
            shape=self._shape, dtype=self._dtype, name=self.name, format=self._format
        )

    @property
    def shape(self) -> list[SymbolicScalar]:
        """Dimensions, as a list like upstream's; -1 where not known.

        In a kernel, those annotated DYNAMIC have `min` and `max`; the others are plain ints.
        """
        entries: list[Any] = list(self._shape)
        for axis in self._dynamic:
            entries[axis] = RuntimeScalar(entries[axis])
            entries[axis].in_any_run(("extent", self.name, axis))
        return DynamicShape(entries) if self._dynamic or DYNAMIC in self._shape else entries

    @property
    def dtype(self) -> DataType:
        """Element type."""
        return self._dtype

    @property
    def format(self) -> TileOpFormat:
        """Memory layout."""
        return self._format

    @property
    def id(self) -> int:
        """A number that no other tensor has while this one is alive."""
        return id(self)

    @of_some_releases
    def is_empty(self) -> bool:
        """True of a tensor that `move` or `out[:] = x` emptied."""
        return self._moved is not None

    @of_some_releases
    def copy(self, name: str = "") -> Tensor:
        """A tensor that is declared alike, without the values, as upstream's; `clone` has them.

        Args:
            name: of the new tensor; this one's unless given.
        """
        return Tensor(self.shape, self._dtype, name or self.name, self._format)

    def to_tensor(self, name: str = "") -> Tensor:
        """The tensor itself, under another name if one is given."""
        self.name = name or self.name
        return self

    @recording.replayable_operation
    def view(
        self,
        shape: Sequence[int],
        offsets: Sequence[int],
        *,
        valid_shape: Sequence[int] | None = None,
    ) -> Tensor:
        """A part of the tensor; see `pypto.view`."""
        extent, start, valid = indexing.view_box(
            shape, offsets, valid_shape, self._shape, self.valid_shape
        )
        whole = _of_iterations(extent)
        return self._part(whole, start, valid if whole == extent else whole)

    @recording.replayable_operation
    def assemble(self, input: Tensor, offsets: Sequence[int]) -> None:
        """Write a tensor into a part of this one; see `pypto.assemble`."""
        if isinstance(input, Tensor) and not current().followed_release.assembles_dynamic:
            input.check_static("Assemble: shape of src tensor requires integer")
        self._write(input, indexing.start_of("offsets", offsets, self.dim))

    def _write(self, input: Tensor, start: indexing.Start) -> None:
        if not isinstance(input, Tensor):
            raise TypeError(
                f"a kernel writes tensors, not {input!r} ({type(input).__name__}); make it with "
                "pypto.cast or pypto.view"
            )
        self.check_content()
        input.check_content()
        buffer = self.memory()
        if input.dtype is not self._dtype:
            raise TypeError(
                f"{self._label()} is {self._dtype}; what is written to it is {input.dtype}: cast it"
            )
        valid = indexing.ints("shape", input.valid_shape, self.dim)
        self._hidden = None
        start = indexing.placed(start, valid, self._shape, self._label())
        if 0 in valid:
            return
        region, held, uninitialized = start.region(valid), input.enclosure(), input.uninitialized()
        left = None
        if start.cause is not None and held is not None:
            before = buffer.read(*region)
            if (
                before is not None
                and uninitialized is None
                and buffer.uninitialized(*region) is None
            ):
                at, cause = start.within(), start.cause
                left = write_box(before, held, self._dtype.number_format, at=at, cause=cause)
            else:  # who reads what nobody wrote raises, for other candidates elsewhere
                start = start.decided()
        moved = tuple(patch.moved(start.offset) for patch in input.patches())
        buffer.write(held, start.offset, valid, moved, uninitialized)
        if left is not None:
            buffer.put_interval(left, region[0])

    def lose(self, start: indexing.Start, extent: Shape) -> None:
        """Let the elements that boxes cover be any, if their place is open, for the package itself.

        All boxes lie in the tensor; see `indexing.placed`.
        """
        if start.cause is None:
            return
        buffer = self.memory()
        offset, covered = start.region(extent)
        if (held := buffer.read(offset, covered)) is not None:
            interval = unknown(held.values, self._dtype.number_format, start.cause)
            buffer.put_interval(Enclosure(values=held.values, interval=interval), offset)

    def window(self, shape: Shape) -> Tensor | None:
        """The same memory under another shape, for the package itself.

        None outside kernels, and for what has no memory of its own, such as a view.
        """
        buffer = self.writable()
        if buffer is None or recording.current() is None:
            return None
        seen = Tensor._from_result(shape, self._dtype, self.name, source=self)
        seen.attach(buffer.window(shape))
        return seen

    @recording.replayable_operation
    def move(self, other: Tensor) -> None:
        """Take over a tensor, as `out[:] = other` does.

        An output takes the values, of its shape or of another of as many elements. A tensor that
        the kernel declared, a result of an operation or a view takes shape and dtype too, as
        upstream's, and holds them until the kernel ends; what a view was taken from stays as it
        was. Upstream leaves `other` empty until the loop's body or the kernel ends.
        """
        self._take_over(other)
        if other is not self:
            other.move_away()

    def _take_over(self, other: Tensor) -> None:
        self._moved = None
        running, buffer = recording.current(), self._live()
        is_local = self._is_value or self._own() is None if buffer is None else not buffer.is_given
        if running is not None and is_local and isinstance(other, Tensor):
            before = self._shape, self._dtype
            self._shape, self._dtype, self._dynamic = other._shape, other._dtype, other._dynamic
            if before != (self._shape, self._dtype) or (self._is_value and buffer is None):
                running.declare(self, running.local(self._label(), self._shape))
        if isinstance(other, Tensor) and other._shape != self._shape:
            holds_all = tuple(other.valid_shape) == other._shape
            if holds_all and math.prod(other.shape) == math.prod(self._shape):
                other.check_content()
                self._take_over(other._reshaped(self._shape, self._shape))
                return
            raise ValueError(
                f"{self._label()} has shape {self.shape}; what is written to all of it has shape "
                f"{other.shape}"
            )
        self._write(other, indexing.start_of("offsets", [0] * self.dim, self.dim))
        buffer = self._live()
        if buffer is not None and buffer.home is None:
            valid = tuple(other.valid_shape)
            self._valid = None if valid == self._shape else valid
            self._hidden = other._hidden

    @overload
    def __getitem__(
        self, key: slice | EllipsisType | tuple[slice | EllipsisType, ...]
    ) -> Tensor: ...

    @overload
    def __getitem__(self, key: object) -> Any: ...

    @recording.replayable_operation
    def __getitem__(self, key: object) -> Any:
        if indexing.is_whole(key):
            return self
        if isinstance(key, slice) and isinstance(key.stop, Tensor):
            return self.gather(key.start, key.stop)
        box = indexing.box_of(key, self._shape)
        self._check_place("part", key)
        if any(box.follows_length[axis] for axis in self._dynamic):
            self.check_static()
        if len(box.dropped) == self.dim:
            return self._element(box.start, key)
        check_extents(box.extent)
        extent, held = _of_iterations(tuple(map(operator.index, box.extent))), self.valid_shape
        valid = indexing.clipped(held, box.start.offset, extent)
        part = self._part(extent, box.start.unless_cut(held, extent, valid), valid)
        return part._without(box.dropped) if box.dropped else part

    @recording.replayable_operation
    def __setitem__(self, key: object, value: Any) -> None:
        if indexing.is_whole(key):
            self._take_over(value)
            if value is not self and not indexing.has_ellipsis(key):
                value.move_away()
        elif isinstance(key, slice) and isinstance(key.stop, Tensor):
            self.scatter_(key.start, key.stop, value)
        else:
            box = indexing.box_of(key, self._shape)
            self._check_place("assignment", key)
            whole = _of_iterations(box.extent)
            box = box if whole is box.extent else replace(box, extent=whole)
            is_number = len(box.dropped) == self.dim and not isinstance(value, Tensor)
            self._write((self._number if is_number else self._fitted)(value, box), box.start)

    def _check_place(self, what: str, key: object) -> None:
        """Warn where upstream takes another part of the tensor for a key."""
        misplaced = indexing.outside(key, self.shape, is_assigned=what == "assignment")
        if misplaced:
            recording.refuse_plan(what, misplaced)
            tolerate(f"{self._label()}{misplaced}", strict=current().strict)

    def _number(self, value: object, box: indexing.Box) -> Tensor:
        """A number for one INT32 element, as upstream's SetTensorData writes it."""
        if self._dtype is not DataType.DT_INT32:
            raise TypeError(f"single elements are assigned in DT_INT32 only, not in {self._dtype}")
        if recording.is_for_plan():
            recording.refuse_plan("element", "the assignment of a number to one is not planned")
        element: Tensor = REGISTERED["one_element"](value, len(box.dropped))
        return element

    def _part(self, extent: Shape, start: indexing.Start, valid: Shape) -> Tensor:
        """A part that holds data in a valid shape, wherever it starts."""
        self.check_content()
        held, uninitialized = self._box(start.offset, valid)
        if start.cause is not None and held is not None and 0 not in valid:
            whole, not_written = self._box(*start.region(valid))
            assert whole is not None
            at, cause, fmt = start.within(), start.cause, self._dtype.number_format
            held = read_box(whole, fmt, at=at, extent=valid, cause=cause)
            if not_written is not None:  # who reads it raises
                start = start.decided()
        result = Tensor._from_result(
            extent,
            self._dtype,
            self.name,
            held,
            valid=valid,
            patches=self._patches_of(start.offset, valid),
            uninitialized=uninitialized,
            source=self,
        )
        base, before = self._viewed or (self, indexing.Start.at((0,) * self.dim))
        result._viewed = base, before.moved(start)
        return result

    def _box(self, offset: Shape, extent: Shape) -> tuple[Enclosure | None, Uninitialized | None]:
        """The elements of a box, and those that nobody wrote."""
        if (buffer := self._live()) is not None and not buffer.is_blank:
            return buffer.read(offset, extent), buffer.uninitialized(offset, extent)
        whole = self._own()
        held = None if whole is None else whole[slices(offset, extent)]
        return held, self._uninitialized and self._uninitialized.part(offset, extent)

    def from_its_start(self) -> Tensor:
        """The tensor that a view is of, from the view's first row on, for the package itself."""
        if self._viewed is None:
            return self
        base, start = self._viewed
        offset = start.decided().offset
        extent = (base._shape[0] - offset[0], *self._shape[1:])
        valid = indexing.clipped(base.valid_shape, offset, extent)
        return base._part(extent, indexing.Start.at(offset), valid)

    def _element(self, index: indexing.Start, key: Any) -> SymbolicScalar | UndecidedScalar:
        """One INT32 of an input, which upstream lets a kernel compute offsets with."""
        if self._dtype is not DataType.DT_INT32:
            raise TypeError(f"single elements are read of DT_INT32 only, not of {self._dtype}")
        if recording.is_for_plan():
            if self._buffer is None or not self._buffer.is_given or self._viewed is not None:
                recording.refuse_plan("element", "a number that tasks compute is not planned")
            place = key if isinstance(key, tuple) else (key,)
            return read_from_data(("data", self.name, *map(scalar_of, place)))
        one = (1,) * self.dim
        element = self._part(one, index.unless_cut(self.valid_shape, one, one), one)
        held = element.enclosure()
        if element._uninitialized is not None:
            element._uninitialized.refuse("a number that the kernel computes with")
        running = recording.current()
        if held is None and running is not None and running.unread is not None:
            running.unread.append(f"{list(index.offset)} of {self._label()}")
            return RuntimeScalar(0)  # the body goes on, and is not carried out with it
        if held is None:
            raise ValueError(
                f"{self._label()} holds no values to read element {list(index.offset)} of: call a "
                "kernel with arrays, or have pypto.function over tensors with values: "
                "pypto.from_torch(x)"
            )
        value = RuntimeScalar(held.values.item())
        if held.interval is None or held.certain().all():
            return value
        low, high, cause = (
            int(array.item()) for array in (held.low, held.high, held.interval.cause)
        )
        return UndecidedScalar.of(value, low, high, cause, self._control_dependence)

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
        held, uninitialized = self.enclosure(), self.uninitialized()
        return Tensor._from_result(
            shape,
            self._dtype,
            self.name,
            None if held is None else held.reshape(valid),
            valid=valid,
            uninitialized=uninitialized and uninitialized.masked(uninitialized.mask.reshape(valid)),
            source=self,
        )


tensor = Tensor
