"""uniform and normal of the 950: Philox 4x32-10, and Box and Muller's steps on its numbers.

Sources: upstream pypto, docs/zh/api/operation/pypto-uniform.md and pypto-normal.md,
python/pypto/op/random.py (counters, steps), framework/src/interface/tileop/vector/uniform.h (bits
of a word that a number takes) and vector/uniform.cpp (counters of tiles); Salmon and others,
Parallel random numbers: as easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import DataType, check_dtype
from pypto_cast.operations.composites import log
from pypto_cast.operations.elementwise_functions import add, maximum, mul, sqrt
from pypto_cast.operations.indexed.gathering import gathermask
from pypto_cast.operations.lowering import check_memory_of, dtypes_of, of_release, tile_of
from pypto_cast.operations.movement import interleaved, reshape
from pypto_cast.operations.operation_rows import FLOATS, OperationRow, on_950
from pypto_cast.operations.special_functions import cos, sin
from pypto_cast.options import context as options
from pypto_cast.options.releases import Release
from pypto_cast.recording import recording
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure
from simulator.numbers.convert import in_numpy
from tiling.grid import Shape
from tiling.plan import MAX_DIMS, ShapeError, TileShapeError, check_shape
from tiling.ub import ElementBits

_Words = npt.NDArray[np.uint64]

_WORDS: Final = 4
"""Numbers of one counter."""
_ROUNDS: Final = 10
_MASK: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_MOST: Final = (1 << 64) - 1
_ALGORITHMS: Final = (1, 3)
"""Philox, and upstream's own choice, which is Philox."""
_LEAST_UNIFORM: Final = 1.0e-7
"""In place of smaller numbers, whose logarithm the steps take."""

_FIELDS: Final[Mapping[DataType, tuple[str, int, int]]] = {
    DataType.DT_FP32: ("<u4", 0x7FFFFF, 0x3F800000),
    DataType.DT_FP16: ("<u2", 0x3FF, 0x3C00),
    DataType.DT_BF16: ("<u2", 0x7F, 0x3F80),
}
"""By dtype: a code, the bits of a word that become its fraction, and the code of 1."""


@OperationRow(
    dtypes=on_950(*FLOATS),
    lacked_by=("0.2.0",),
    remark="integers, and the exact difference of a number from 1 to 2 and 1",
    instruction="vrandom (Philox), vand, vor, vadds",
    source="pypto tileop/vector/uniform.h; docs/zh/api/operation/pypto-uniform.md",
    example="pypto.uniform([2, 4], [1234], [0, 1], [1], pypto.DT_FP32)",
)
def uniform(
    shape: Sequence[int],
    key: Sequence[int],
    counter: Sequence[int],
    alg: Sequence[int],
    dtype: DataType,
) -> Tensor:
    """Random numbers from 0 to below 1, by Philox 4x32 of ten rounds.

    Element 4 n + i in row-major order takes word i of the counter n, of which the lowest bits
    become the fraction of a number from 1 to below 2; 1 is subtracted, exactly. No result depends
    on the tile shape.

    Args:
        shape: 1 to 4 extents.
        key: a list of one number of 64 bits.
        counter: a list of two; the first is not read, the second is the upper half of the counter.
        alg: [1] or [3], both Philox.
        dtype: DT_FP32, DT_FP16 or DT_BF16.

    Returns:
        A tensor of the shape and dtype.

    Raises:
        TypeError: another dtype, or no lists of ints.
        ValueError: lists of another length, an algorithm that is not there, or a number beyond 64
            bits.
        ShapeError: no extents from 1, or more than four.
        TileShapeError: a last entry that is no multiple of 4, too few entries, or too much UB.
    """
    asked = _asked("uniform", shape, key, counter, alg, dtype)
    return reshape(_uniform("uniform", asked, math.prod(asked.shape), dtype), list(asked.shape))


@OperationRow(
    dtypes=on_950(*FLOATS),
    lacked_by=("0.2.0",),
    parts=("maximum", "mul", "log", "sqrt", "sub", "add"),
    example="pypto.normal([2, 32], [1234], [0, 1], [1], pypto.DT_FP32)",
)
def normal(
    shape: Sequence[int],
    key: Sequence[int],
    counter: Sequence[int],
    alg: Sequence[int],
    dtype: DataType,
) -> Tensor:
    """Random numbers of the normal distribution, by Box and Muller's steps in FP32.

    Of two neighbours u and v of `uniform`, r is the square root of -2 times the logarithm of u, but
    at least 1e-7, and the neighbours become r sin(2 pi v) and r cos(2 pi v); a last cast rounds to
    the dtype. Bits are certain as far as those of `log`, `sqrt`, `sin` and `cos` are. The sine is
    that of the newest revision; the example on upstream's page, whose numbers differ in 4 of 16,
    lies within the results that the sine of release 0.2.0 leaves open.

    Args:
        shape: as of `uniform`.
        key, counter, alg, dtype: as of `uniform`.

    Returns:
        A tensor of the shape and dtype.

    Raises:
        TypeError: as of `uniform`.
        ValueError: as of `uniform`.
        ShapeError: as of `uniform`.
        TileShapeError: a tile shape that is not the shape, or as of `uniform`.
    """
    asked = _asked("normal", shape, key, counter, alg, dtype)
    if asked.tile is not None and asked.tile != asked.shape:
        raise TileShapeError(
            f"normal takes the shape {list(asked.shape)} as its tile shape, not {list(asked.tile)}"
        )
    count = math.prod(asked.shape)
    even = -(-count // 2) * 2
    with options.options(vec_tile_shapes=[even] if asked.tile is not None else []):
        numbers = _uniform("normal", asked, even, DataType.DT_FP32)
        u, v = gathermask(numbers, 1), gathermask(numbers, 2)
        angle = mul(v, 2.0 * math.pi)
        radius = sqrt(mul(log(maximum(u, _LEAST_UNIFORM)), -2.0))
        pairs = interleaved(mul(sin(angle), radius), mul(cos(angle), radius))
        wide = pairs if even == count else pairs[:count]
        if dtype is DataType.DT_FP32:
            return reshape(add(wide, 0), list(asked.shape))
        return reshape(cast(wide, dtype), list(asked.shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The arguments, checked; the tile shape, or None where none is set."""

    shape: Shape
    tile: Shape | None
    key: int
    upper: int


def _asked(
    name: str, shape: object, key: object, counter: object, alg: object, dtype: DataType
) -> _Asked:
    taken = dtypes_of(name)
    if check_dtype(dtype) not in taken:
        raise TypeError(f"{name} gives {', '.join(map(format, taken))}, not {dtype}")
    if not of_release(name, dtype, _has, name):
        raise TypeError(f"{options.current().followed_release} has no {name}")
    extents = tuple(_ints(name, "shape", shape))
    if not 1 <= len(extents) <= MAX_DIMS or min(extents) < 1:
        raise ShapeError(f"{name}: shape has 1 to {MAX_DIMS} extents from 1, not {list(extents)}")
    check_shape(extents, ElementBits(src=8, dst=8), name)
    lists = {
        label: _ints(name, label, given, count)
        for label, given, count in (("key", key, 1), ("counter", counter, 2), ("alg", alg, 1))
    }
    if lists["alg"][0] not in _ALGORITHMS:
        raise ValueError(f"{name}: alg is [1] or [3], both Philox, not {lists['alg']}")
    for label in ("key", "counter"):
        if not all(0 <= each <= _MOST for each in lists[label]):
            raise ValueError(f"{name}: {label} has numbers of 64 bits from 0, not {lists[label]}")
    tile = tile_of(name, extents)
    if tile is not None:
        last = options.current().vec_tile_shapes[-1]
        if last % _WORDS:
            raise TileShapeError(
                f"{name}: the last entry of tile shape {list(options.current().vec_tile_shapes)} "
                f"must be a multiple of {_WORDS}"
            )
        tile = tuple(options.current().vec_tile_shapes[: len(extents)])
        flat = (min(math.prod(tile), math.prod(extents)),)
        check_memory_of(name, flat, [(flat, 32), (flat, 32), (flat, 32)])
    return _Asked(shape=extents, tile=tile, key=lists["key"][0], upper=lists["counter"][1])


def _has(release: Release, name: str) -> bool:
    return name not in release.lacks


def _ints(name: str, label: str, given: object, count: int | None = None) -> list[int]:
    if not isinstance(given, (list, tuple)) or not all(type(each) is int for each in given):
        raise TypeError(f"{name}: {label} is a list of ints, not {given!r}")
    if count is not None and len(given) != count:
        raise ValueError(f"{name}: {label} is a list of {count}, not of {len(given)}")
    return list(given)


def _uniform(name: str, asked: _Asked, count: int, dtype: DataType) -> Tensor:
    """So many numbers on one axis."""
    if not recording.executes():
        return Tensor._from_result((count,), dtype, valid=(count,))
    word, fraction, one = _FIELDS[dtype]

    def compute(key: int, upper: int) -> Tensor:
        words = philox(key, upper, -(-count // _WORDS)).reshape(-1)[:count]
        fmt = dtype.number_format
        codes = (words & np.uint64(fraction) | np.uint64(one)).astype(word)
        above = in_numpy(codes.view(fmt.dtype), fmt).astype(np.float32) - np.float32(1)
        return Tensor._from_result(
            (count,), dtype, data=Enclosure(values=above.astype(fmt.dtype)), valid=(count,)
        )

    from pypto_cast.operations.untold_numbers import of_numbers  # loaded when first used

    return of_numbers("uniform", dtype, [asked.key, asked.upper], compute)


def philox(key: int, upper: int, count: int) -> _Words:
    """The four words of 32 bits of each counter from 0, by ten rounds of Philox 4x32.

    Args:
        key: of 64 bits.
        upper: the upper 64 bits of every counter.
        count: of counters.

    Returns:
        [count, 4], each word in 64 bits.
    """
    counters = np.arange(count, dtype=np.uint64)
    first, second = counters & _MASK, counters >> _HALF
    third = np.full(count, upper & int(_MASK), np.uint64)
    fourth = np.full(count, upper >> 32, np.uint64)
    keys = [key & int(_MASK), key >> 32]
    for _ in range(_ROUNDS):
        left, right = _MULTIPLIERS[0] * first, _MULTIPLIERS[1] * third
        first = right >> _HALF ^ second ^ np.uint64(keys[0])
        third = left >> _HALF ^ fourth ^ np.uint64(keys[1])
        second, fourth = right & _MASK, left & _MASK
        keys = [(each + step) & int(_MASK) for each, step in zip(keys, _KEY_STEPS, strict=True)]
    return np.stack([first, second, third, fourth], axis=1)
