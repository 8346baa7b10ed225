"""Tile shapes of a kernel in place of those that it sets, while its function stays as it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pypto_cast.call_sites import Place, caller, silenced
from pypto_cast.options.context import TILE_CHOICE
from tiling.grid import Shape
from tiling.plan import MAX_DIMS, TileShapeError

if TYPE_CHECKING:
    from pypto_cast.kernel.jit import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class TileCall:
    """A call of `set_vec_tile_shapes` that a kernel makes.

    Attributes:
        file, line: of the call.
        tile_shape: that it sets, in elements.
    """

    file: str
    line: int
    tile_shape: Shape

    @property
    def place(self) -> Place:
        """The key of the call in `replaced_tiles`."""
        return self.file, self.line

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.tile_shape))
        return f"{PurePath(self.file).name}:{self.line}: set_vec_tile_shapes({shape})"


def tile_calls(kernel: Kernel, *arguments: Any, **named: Any) -> tuple[TileCall, ...]:
    """The calls of `set_vec_tile_shapes` that a call of a kernel makes, in order, each once.

    A line that sets several tile shapes, as one of a loop may, has a call of each. Nothing is
    computed and nothing warned of; takes what `Kernel.schedule` takes.

    Raises:
        PlanError: as `Kernel.tensor_graphs`.
    """
    met: dict[TileCall, None] = {}
    choice = TILE_CHOICE.get()

    def noted(asked: Shape) -> Shape:
        file, line = caller()
        met[TileCall(file=file, line=line, tile_shape=asked)] = None
        return choice(asked)

    token = TILE_CHOICE.set(noted)
    try:
        with silenced():
            kernel.tensor_graphs(*arguments, **named)
    finally:
        TILE_CHOICE.reset(token)
    return tuple(met)


@contextlib.contextmanager
def replaced_tiles(at: Mapping[Place, Sequence[int]] | Sequence[int]) -> Iterator[None]:
    """Have `set_vec_tile_shapes` set other tile shapes in the body of a `with` statement.

    Args:
        at: the tile shape that holds at each place (`TileCall.place`); or one tile shape, that
            holds wherever one of as many dimensions is set. A call that it does not name sets its
            own.

    Raises:
        TileShapeError: a tile shape that is not 1 to 4 positive ints.
    """
    by_place = {} if isinstance(at, Sequence) else {key: tuple(each) for key, each in at.items()}
    by_rank = {len(at): tuple(at)} if isinstance(at, Sequence) else {}
    for tile in (*by_place.values(), *by_rank.values()):
        if not 1 <= len(tile) <= MAX_DIMS or any(
            type(each) is not int or each < 1 for each in tile
        ):
            raise TileShapeError(f"a tile shape is 1 to {MAX_DIMS} positive ints; got {list(tile)}")
    choice = TILE_CHOICE.get()

    def chosen(asked: Shape) -> Shape:
        found = by_place.get(caller()) or by_rank.get(len(asked))
        return choice(asked) if found is None else found

    token = TILE_CHOICE.set(chosen)
    try:
        yield
    finally:
        TILE_CHOICE.reset(token)
