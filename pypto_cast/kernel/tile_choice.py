"""Tile shapes of a kernel in place of those that it sets, while its function stays as it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pypto_cast.call_sites import Place, caller, silenced
from pypto_cast.options.context import TILE_CHOICE
from pypto_cast.recording.steps import Call
from pypto_cast.tensors.tensor import Tensor
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


class MarkedTile(tuple[int, ...]):
    """A tile shape that knows the call that set it."""

    call: TileCall


@contextlib.contextmanager
def marked_tiles() -> Iterator[None]:
    """Have tile shapes know the call that sets them, in the body of a `with` statement."""
    choice = TILE_CHOICE.get()

    def marked(asked: Shape) -> Shape:
        tile, (file, line) = MarkedTile(choice(asked)), caller()
        tile.call = TileCall(file=file, line=line, tile_shape=tuple(tile))
        return tile

    token = TILE_CHOICE.set(marked)
    try:
        yield
    finally:
        TILE_CHOICE.reset(token)


def marked_tile(event: object) -> MarkedTile | None:
    """The tile shape under which an operation was recorded, if it is marked."""
    tile = event.settings.vec_tile_shapes if isinstance(event, Call) else None
    return tile if isinstance(tile, MarkedTile) else None


def largest_extents(events: Iterable[object], place: Place | None) -> tuple[Shape, int]:
    """The most of each axis among tensors under a call, and the bytes of the narrowest element.

    Args:
        events: recorded under `marked_tiles`.
        place: of the call; None of the tile shape of the context.
    """
    lengths: list[int] = []
    itemsizes = set()
    for event in events:
        tile = event.settings.vec_tile_shapes if isinstance(event, Call) else None
        set_at = tile.call.place if isinstance(tile, MarkedTile) else None
        if tile is None or set_at != place or not isinstance(event, Call):
            continue
        lengths = lengths or [1] * len(tile)
        for each in (event.result, *event.arguments, *event.named.values()):
            if isinstance(each, Tensor) and len(each.shape) == len(tile):
                lengths = [max(pair) for pair in zip(lengths, map(int, each.shape), strict=True)]
                itemsizes.add(each.dtype.number_format.dtype.itemsize)
    return tuple(lengths), min(itemsizes, default=1)


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
