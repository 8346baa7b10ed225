"""Arrays under test: their codes, and the tile and the core that wrote an element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from pypto_cast.cast.npu import HostCopies
from pypto_cast.recording.steps import CastRecord, OperationRecord, Patches, origin_of
from pypto_cast.tensors.arrays import array_of
from pypto_cast.tensors.tensor import Tensor
from simulator.numbers.convert import codes_of
from simulator.numbers.formats import Codes, FloatFormat, Format
from tiling.grid import Shape, Tile


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element of an array, and where it came from.

    Attributes:
        index: where.
        tile: the tile of the cast or operation that wrote it; None if none of this package did.
        core: the core that had the tile.
        record: the cast or operation.
    """

    index: Shape
    tile: Tile | None
    core: int | None
    record: CastRecord | OperationRecord | None

    @property
    def place(self) -> str:
        """Tile, core and call in words; empty if nothing of this package wrote the element."""
        if self.tile is None:
            return ""
        where = f"tile {self.tile.index} at {list(self.tile.offset)}, {list(self.tile.shape)}"
        return f"{where} elements, core {self.core}, {self.record}"


def element_at(index: Shape, patches: Patches) -> Element:
    """An element with the last of the calls that wrote it."""
    found = [(patch, at) for patch in patches if (at := patch.tile_at(index)) is not None]
    if not found:
        return Element(index=index, tile=None, core=None, record=None)
    patch, (tile, core) = found[-1]
    return Element(index=index, tile=tile, core=core, record=patch.record)


def array_under_test(value: Any, label: str) -> npt.NDArray[Any]:
    """The elements of a pypto tensor, a numpy array or a torch tensor, on the CPU or an NPU.

    Raises:
        TypeError: something else.
        ValueError: not contiguous, under `options(strict=True)`.
    """
    value = HostCopies().of(value)
    return value.numpy() if isinstance(value, Tensor) else array_of(value, label)


def patches_of(value: Any, array: npt.NDArray[Any]) -> Patches:
    """The casts that wrote an array under test; none where they are not known."""
    return value.patches() if isinstance(value, Tensor) else origin_of(array)


def native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers, contiguous and in this machine's byte order."""
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)


def flat_codes(array: npt.NDArray[Any], fmt: Format) -> Codes:
    """The codes of an array, 1-D in row-major order."""
    return codes_of(native(array).reshape(-1), fmt)


def hex_code(code: int, fmt: Format) -> str:
    """A code in hex."""
    return f"0x{code:0{-(-fmt.bits // 4)}X}"


def code_in_words(code: int, fmt: Format) -> str:
    """A code in hex, and that of a float as sign, exponent and fraction."""
    if not isinstance(fmt, FloatFormat):
        return hex_code(code, fmt)
    bits = f"{code:0{fmt.bits}b}"
    fraction = fmt.bits - fmt.man_bits
    return f"{hex_code(code, fmt)} ({bits[0]} {bits[1:fraction]} {bits[fraction:]})"
