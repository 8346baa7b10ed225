"""The tile shapes of the cube: whole fractals that fit L0 and L1.

Sources: upstream pypto, framework/src/interface/operation/cube_operation_impl.cpp (CheckCubeTiling,
CheckNZFormatAligned, SetMatmulTileInfo), docs/zh/api/config/pypto-set_cube_tile_shapes.md
(capacities); asc-devkit, NPU architecture 2201 (`tiling.chips`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.options.context import current
from tiling.chips import Chip
from tiling.plan import TileShapeError

BLOCK_BYTES: Final = 32
BLOCK_ELEMS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeTiles:
    """The tile shapes that `set_cube_tile_shapes` sets; elements in L0, then in L1.

    Attributes:
        m, n: rows of the left matrix and columns of the right one.
        k: terms in L0, in L1 for the left matrix and for the right one.
        splits_k: cores share the terms of a sum and add their sums afterwards.
    """

    m: tuple[int, int]
    k: tuple[int, int, int]
    n: tuple[int, int]
    splits_k: bool

    @property
    def terms_of_a_core(self) -> int:
        """Terms that are summed before sums of cores are added, where cores share them."""
        return min(self.k[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A matrix of a product, for the checks.

    Attributes:
        dtype: of its elements.
        is_transposed: it is handed over as its transpose.
        is_nz: it lies in fractals.
    """

    dtype: DataType
    is_transposed: bool
    is_nz: bool


def current_tiles() -> CubeTiles | None:
    """The tile shapes of this context; None if they are not set."""
    found: dict[str, Any] = dict(current().hints.get("cube_tile_shapes", {}))
    if not found:
        return None
    return CubeTiles(
        m=tuple(found["m"]),
        k=tuple(found["k"]),
        n=tuple(found["n"]),
        splits_k=found.get("enable_split_k", False),
    )


def check_cube_tiles(
    tiles: CubeTiles,
    extents: tuple[int, int, int],
    factors: tuple[Factor, Factor],
    *,
    has_bias: bool,
    has_scales: bool,
) -> None:
    """Refuse tile shapes that upstream refuses or that exceed a buffer of the core.

    Args:
        tiles: as set.
        extents: M, K and N of the matrices; a tile is no longer than its matrix.
        factors: the left and the right one.
        has_bias, has_scales: a row of them lies in the BiasTable or the Fixpipe buffer.

    Raises:
        TileShapeError: naming the figures and the limit.
    """
    (m0, m1), (k0, *k1), (n0, n1) = tiles.m, tiles.k, tiles.n
    if min(m0, m1, k0, *k1, n0, n1) < 1:
        raise TileShapeError(f"matmul: {_shown(tiles)}: every entry must be at least 1")
    for name, inner, outer in (
        *(("m", m0, m1), ("n", n0, n1)),
        *(("k", k0, terms) for terms in k1),
    ):
        if outer % inner:
            raise TileShapeError(
                f"matmul: {_shown(tiles)}: {name} in L1, {outer}, must be a multiple of {name} in "
                f"L0, {inner}"
            )
    for name, length, unit in _units(tiles, factors):
        if length % unit:
            raise TileShapeError(
                f"matmul: {_shown(tiles)}: {name} in L0 must be a multiple of {unit} elements of "
                f"{factors[0].dtype}, not {length}; {-(-length // unit) * unit} would do"
            )
    if max(k1) < extents[1] and max(k1) % min(k1):
        raise TileShapeError(
            f"matmul: {_shown(tiles)}: of k in L1 one must be a multiple of the other, not {k1}"
        )
    for buffer, asked, limit in _memory(tiles, extents, factors, has_bias, has_scales):
        if asked > limit:
            raise TileShapeError(
                f"matmul: {_shown(tiles)} takes {asked} B of {buffer}; it has {limit} B; make "
                "the tiles smaller"
            )


def _shown(tiles: CubeTiles) -> str:
    return f"cube tile shapes m={list(tiles.m)} k={list(tiles.k)} n={list(tiles.n)}"


def _units(tiles: CubeTiles, factors: tuple[Factor, Factor]) -> Iterator[tuple[str, int, int]]:
    """Lengths, and the units that they must be multiples of."""
    left = factors[0]
    m, k, n = tiles.m[0], tiles.k[0], tiles.n[0]
    block = _block_elems(left.dtype)
    yield from (("k", k, BLOCK_ELEMS), ("n", n, BLOCK_ELEMS), ("k", k, block), ("n", n, block))
    if left.is_transposed:
        yield "m", m, block
    elif left.is_nz:
        yield "m", m, BLOCK_ELEMS


def _block_elems(dtype: DataType) -> int:
    return BLOCK_BYTES * 8 // dtype.number_format.bits


def _memory(
    tiles: CubeTiles,
    extents: tuple[int, int, int],
    factors: tuple[Factor, Factor],
    has_bias: bool,
    has_scales: bool,
) -> Iterator[tuple[str, int, int]]:
    chip: Chip = current().chip
    fmt = factors[0].dtype.number_format
    unit = max(BLOCK_ELEMS, _block_elems(factors[0].dtype))

    def clipped(length: int, axis: int) -> int:
        return -(-min(length, extents[axis]) // unit) * unit

    m0, k0, n0 = clipped(tiles.m[0], 0), clipped(tiles.k[0], 1), clipped(tiles.n[0], 2)
    left = clipped(tiles.m[1], 0) * clipped(tiles.k[1], 1)
    right = clipped(tiles.n[1], 2) * clipped(tiles.k[2], 1)
    yield "L0A", m0 * k0 * fmt.bits // 8, chip.l0a_bytes
    yield "L0B", n0 * k0 * fmt.bits // 8, chip.l0b_bytes
    yield "L0C", m0 * n0 * 4, chip.l0c_bytes
    yield "L1", (left + right) * fmt.bits // 8, chip.l1_bytes
    if has_bias:
        yield "the BiasTable buffer", n0 * 4, chip.bias_table_bytes
    if has_scales:
        yield "the Fixpipe buffer", n0 * 8, chip.fixpipe_bytes
