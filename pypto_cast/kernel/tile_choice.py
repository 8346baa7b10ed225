"""Tile shapes of a kernel in place of those that it sets, while its function stays as it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pypto_cast.call_sites import Place, caller, silenced
from pypto_cast.options.context import TILE_CHOICE, current
from pypto_cast.recording.recording import Recording
from pypto_cast.recording.steps import Call
from pypto_cast.tensors.tensor import Tensor
from tiling.grid import Shape
from tiling.plan import MAX_DIMS, TileShapeError

if TYPE_CHECKING:
    from pypto_cast.kernel.jit import Kernel
    from pypto_cast.kernel.scheduled import TensorForms


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


class _MarkedTile(tuple[int, ...]):
    """A tile shape that knows the call that set it."""

    call: TileCall


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledTensors:
    """The tensors of the operations under one tile shape.

    Attributes:
        extents: the most of each axis, of those of most dimensions. A tile shape may have more
            entries; the leading ones count.
        unit: the elements of a block of 32 B of the narrowest of them: a step of the last axis.
    """

    extents: Shape
    unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TileRecording:
    """A recording of a call of a kernel, with the calls that set its tile shapes.

    Attributes:
        recorded: whose tile shapes know the call that set them.
        tensors: format and shape of each tensor of the call.
        calls: of `set_vec_tile_shapes`, in order, each once. A line that sets several tile shapes,
            as one of a loop may, has a call of each.
    """

    recorded: Recording
    tensors: TensorForms
    calls: tuple[TileCall, ...]

    @property
    def events(self) -> Sequence[object]:
        """The operations that were recorded, and the events between them."""
        return self.recorded.calls or ()

    def tensors_under(self, place: Place | None) -> TiledTensors | None:
        """The tensors under the calls of a place, or (None) under the tile shape of the context.

        None where no operation is.
        """
        shapes, itemsizes = [], set()
        for event in self.events:
            call = call_of(event)
            tile = event.settings.vec_tile_shapes if isinstance(event, Call) else None
            if tile is None or (call and call.place) != place or not isinstance(event, Call):
                continue
            for each in (event.result, *event.arguments, *event.named.values()):
                if isinstance(each, Tensor) and len(each.shape) <= len(tile):
                    shapes.append(tuple(map(int, each.shape)))
                    itemsizes.add(each.dtype.number_format.dtype.itemsize)
        rank = max(map(len, shapes), default=0)
        most = zip(*(each for each in shapes if len(each) == rank), strict=True)
        unit = max(current().chip.block_bytes // min(itemsizes, default=1), 1)
        return TiledTensors(extents=tuple(map(max, most)), unit=unit) if rank else None


def tile_recording(
    kernel: Kernel, arguments: Sequence[Any], named: Mapping[str, Any]
) -> TileRecording:
    """Record a call of a kernel with the calls that set its tile shapes.

    Nothing is computed and nothing warned of; takes what `Kernel.schedule` takes.

    Raises:
        PlanError: as `Kernel.schedule`, of what the recording tells.
    """
    met: dict[TileCall, None] = {}
    choice = TILE_CHOICE.get()

    def marked(asked: Shape) -> Shape:
        tile, (file, line) = _MarkedTile(choice(asked)), caller()
        tile.call = TileCall(file=file, line=line, tile_shape=tuple(tile))
        met[tile.call] = None
        return tile

    token = TILE_CHOICE.set(marked)
    try:
        with silenced():
            recorded, tensors = kernel._recorded_for_plan(tuple(arguments), named)
    finally:
        TILE_CHOICE.reset(token)
    return TileRecording(recorded=recorded, tensors=tensors, calls=tuple(met))


def call_of(event: object) -> TileCall | None:
    """The call that set the tile shape of a recorded operation."""
    tile = event.settings.vec_tile_shapes if isinstance(event, Call) else None
    return tile.call if isinstance(tile, _MarkedTile) else None


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
