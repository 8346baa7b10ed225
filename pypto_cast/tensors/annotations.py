"""Tensor[...] annotations: the requirements of a kernel on a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Final

from pypto_cast.dtypes.data_types import DataType, TileOpFormat
from pypto_cast.tensors.symbolic import StatusType, Symbol
from tiling.grid import Shape

Dimension = int | StatusType | Symbol | EllipsisType
_UNKNOWN: Final = -1


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
            isinstance(want, int) and want not in (_UNKNOWN, have)
            for want, have in zip(fixed, shape, strict=False)
        ):
            raise ValueError(f"{name} is annotated {self}; the argument has shape {list(shape)}")

    def dynamic_axes(self) -> frozenset[int]:
        """Axes whose length upstream learns when the kernel runs."""
        return frozenset(
            axis
            for axis, entry in enumerate(self.shape)
            if isinstance(entry, Symbol)
            or entry == _UNKNOWN
            or (isinstance(entry, StatusType) and entry.is_dynamic)
        )


def annotation_of(parameters: object) -> TensorAnnotation:
    """Read the brackets of `Tensor[...]`; FP32 unless a dtype is given.

    Raises:
        TypeError: something that is no shape, dtype, layout, name or dict of those.
    """
    found: dict[str, object] = {"dtype": DataType.DT_FP32}
    for entry in parameters if isinstance(parameters, tuple) else (parameters,):
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
        if isinstance(entry, int) and entry < _UNKNOWN:
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
