"""The NZ layout of matrices: fractals of 16 rows, column after column of them.

(..., M, N) is padded to (..., M1*16, N1*C0), cut to (..., M1, 16, N1, C0) and moved to
(..., N1, M1, 16, C0), where a row of a fractal has 32 bytes. Source: asc-devkit, "data layout
formats", FRACTAL_NZ outside the L0 buffers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tiling.grid import Shape
from tiling.plan import ShapeError

FRACTAL_ROWS: Final = 16
FRACTAL_ROW_BYTES: Final = 32


def to_nz(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Lay matrices out in fractals, padded with zeros.

    Args:
        array: [..., M, N], of elements of 1, 2, 4 or 8 bytes.

    Returns:
        [..., N1, M1, 16, C0], C-contiguous, where C0 elements have 32 bytes.

    Raises:
        ShapeError: fewer than two dimensions.
    """
    if array.ndim < 2:
        raise ShapeError(f"NZ lays out matrices; an array of shape {list(array.shape)} holds none")
    width = FRACTAL_ROW_BYTES // array.itemsize
    (rows, columns), batch = array.shape[-2:], array.shape[:-2]
    padding = [(0, -rows % FRACTAL_ROWS), (0, -columns % width)]
    padded = np.pad(array, [(0, 0)] * len(batch) + padding)
    fractals = padded.reshape(
        *batch, padded.shape[-2] // FRACTAL_ROWS, FRACTAL_ROWS, padded.shape[-1] // width, width
    )
    return np.ascontiguousarray(np.moveaxis(fractals, -2, -4))


def from_nz(
    fractals: npt.NDArray[Any], rows: int | None = None, columns: int | None = None
) -> npt.NDArray[Any]:
    """Read matrices that lie in fractals.

    Args:
        fractals: [..., N1, M1, 16, C0].
        rows, columns: of a matrix without padding; as many as there are unless given.

    Returns:
        [..., M, N].

    Raises:
        ShapeError: the last two dimensions are no fractal, or the matrix is larger than they are.
    """
    if not is_laid_out(fractals.shape, fractals.itemsize):
        width = FRACTAL_ROW_BYTES // fractals.itemsize
        raise ShapeError(
            f"an array in NZ ends in fractals of {FRACTAL_ROWS} x {width} elements of "
            f"{fractals.dtype}; its shape is {list(fractals.shape)}"
        )
    lines = np.moveaxis(fractals, -4, -2)
    whole = lines.reshape(
        *fractals.shape[:-4],
        fractals.shape[-3] * fractals.shape[-2],
        fractals.shape[-4] * fractals.shape[-1],
    )
    height, width = (
        have if want is None else want
        for want, have in zip((rows, columns), whole.shape[-2:], strict=True)
    )
    if not (0 < height <= whole.shape[-2] and 0 < width <= whole.shape[-1]):
        raise ShapeError(
            f"fractals of shape {list(fractals.shape)} hold at most {list(whole.shape[-2:])} "
            f"elements, not {[height, width]}"
        )
    return whole[..., :height, :width]


def is_laid_out(shape: Shape, itemsize: int) -> bool:
    """True if an array ends in fractals."""
    width = FRACTAL_ROW_BYTES // itemsize
    return len(shape) >= 4 and tuple(shape[-2:]) == (FRACTAL_ROWS, width)


def matrices_in(array: npt.NDArray[Any], dimensions: int) -> npt.NDArray[Any]:
    """The matrices of an argument declared TILEOP_NZ: rows as they are, or laid out in fractals.

    Args:
        array: of as many dimensions as declared, or of two more and laid out; then the matrices are
            a copy that nothing can write to.
        dimensions: that are declared.
    """
    if array.ndim != dimensions + 2 or not is_laid_out(array.shape, array.itemsize):
        return array
    matrices = from_nz(array)
    matrices.flags.writeable = False
    return matrices
