"""The orders in which a tile's elements are joined, as the instruction sequences of pto-isa do it.

A repeat is the 256 B that an instruction takes at once; its elements are lanes. The functions take
arrays or `Enclosure`s alike, whose last two axes are groups of lanes, and join whole groups.
Sources: pto-isa a2a3/TRowReduceOps.hpp, TRowSum.hpp, TColSum.hpp, TColReduceOps.hpp; asc-devkit
ReduceRepeat.md and ReduceDataBlock.md for the tree inside a repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

REPEAT_BYTES: Final = 256
BLOCK_BYTES: Final = 32


class Lanes(Protocol):
    """An array, as far as an order looks at it."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, index: Any, /) -> Any: ...

    def reshape(self, shape: tuple[int, ...], /) -> Any: ...


X = TypeVar("X", bound=Lanes)
Join = Callable[[X, X], X]
Glue = Callable[[Sequence[X], int], X]
Order = Callable[[X, int, Join[X], Glue[X]], X]
"""(rows of n elements or groups, elements a repeat, join, concatenate) -> the last axis, or the
axis of groups, cut to one."""


def tree(x: X, join: Join[X], glue: Glue[X]) -> X:
    """Join neighbouring lanes, then neighbouring results, and so on; an odd one waits its turn.

    Lanes that a mask leaves out take no part.
    """
    while (lanes := x.shape[-1]) > 1:
        even = lanes // 2 * 2
        joined = join(x[..., 0:even:2], x[..., 1:even:2])
        x = joined if even == lanes else glue((joined, x[..., even:]), -1)
    return x


def row_sum(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Sum rows: repeats pairwise, the odd one and the tail onto the first, then the tree."""
    groups, tail = _repeats(x, repeat)
    if groups is None:
        return tree(x, join, glue)
    count = groups.shape[-2]
    pairs = count // 2
    if pairs:
        held = join(groups[..., 0 : 2 * pairs : 2, :], groups[..., 1 : 2 * pairs : 2, :])
        if count % 2:
            held = _onto(held, 0, groups[..., -1, :], join, glue)
    else:
        held = groups
    if tail is not None:
        held = _onto(held, 0, tail, join, glue)
    while pairs > 1:
        odd = held[..., pairs - 1, :] if pairs % 2 else None
        pairs //= 2
        held = join(held[..., 0 : 2 * pairs : 2, :], held[..., 1 : 2 * pairs : 2, :])
        if odd is not None:
            held = _onto(held, pairs - 1, odd, join, glue)
    first: X = held[..., 0, :]
    return tree(first, join, glue)


def row_extreme(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Join the repeats of rows one after another, the tail before the third; lanes remain."""
    groups, tail = _repeats(x, repeat)
    if groups is None:
        return x
    count = groups.shape[-2]
    held = groups[..., 0:1, :]
    if count > 1:
        held = join(held, groups[..., 1:2, :])
    if tail is not None:
        held = _onto(held, 0, tail, join, glue)
    for group in range(2, count):
        held = join(held, groups[..., group : group + 1, :])
    lanes: X = held[..., 0, :]
    return lanes


def row_sum_of_integers(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Add the blocks of rows one after another; lanes remain, which the scalar unit adds."""
    block = BLOCK_BYTES * repeat // REPEAT_BYTES
    held: X = x[..., :block]
    for start in range(block, x.shape[-1], block):
        more = x[..., start : start + block]
        lanes = more.shape[-1]
        added = join(held[..., :lanes], more)
        held = glue((added, held[..., lanes:]), -1) if lanes < block else added
    return held


def column_sum(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Join neighbouring groups, an odd one onto the first, until one is left."""
    while (count := x.shape[-2]) > 1:
        even = count // 2 * 2
        held = join(x[..., 0:even:2, :], x[..., 1:even:2, :])
        x = _onto(held, 0, x[..., -1, :], join, glue) if count % 2 else held
    return x


def column_extreme(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Join groups one after another."""
    held: X = x[..., 0:1, :]
    for group in range(1, x.shape[-2]):
        held = join(held, x[..., group : group + 1, :])
    return held


def fixed_tile_sum(steps: str) -> Order[Any]:
    """Sum rows as FP32 tiles of four shapes do that are fixed when the kernel is compiled.

    Args:
        steps: G: the tree inside each block of 8 elements; A: neighbouring blocks of 8 are added.
    """

    def run(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
        block = BLOCK_BYTES * repeat // REPEAT_BYTES
        for step in steps:
            blocks = x.reshape((*x.shape[:-1], x.shape[-1] // block, block))
            if step == "G":
                x = tree(blocks, join, glue)[..., 0]
            else:
                joined = join(blocks[..., 0::2, :], blocks[..., 1::2, :])
                x = joined.reshape((*x.shape[:-1], x.shape[-1] // 2))
        return x

    return run


FIXED_TILE_SUMS: Final = {
    (64, 128): fixed_tile_sum("GAG"),
    (32, 256): fixed_tile_sum("GAAG"),
    (16, 512): fixed_tile_sum("GGG"),
    (8, 1024): fixed_tile_sum("GGAG"),
}
"""By (rows, columns) of a tile whose shape, valid shape and column-major result are constants.
pypto's own lowering passes valid shapes at run time and takes none of these."""


def _repeats(x: X, repeat: int) -> tuple[X | None, X | None]:
    """Cut rows into full repeats and a tail; no repeats where one instruction takes the row."""
    elems = x.shape[-1]
    if elems <= repeat:
        return None, None
    count = elems // repeat
    full = x[..., : count * repeat].reshape((*x.shape[:-1], count, repeat))
    return full, x[..., count * repeat :] if elems % repeat else None


def _onto(held: X, group: int, more: X, join: Join[X], glue: Glue[X]) -> X:
    """Join lanes onto the first lanes of one group."""
    lanes = more.shape[-1]
    first = join(held[..., group, :lanes], more)
    if lanes < held.shape[-1]:
        first = glue((first, held[..., group, lanes:]), -1)
    parts = [held[..., :group, :], first[..., None, :], held[..., group + 1 :, :]]
    return glue([part for part in parts if part.shape[-2]], -2)
