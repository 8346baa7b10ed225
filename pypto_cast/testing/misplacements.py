"""Outputs of which boxes hold something else: a tile of elsewhere, nothing, NaN, or stale tails."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.recording.output_certainty import OutputCertainty
from pypto_cast.report.text_format import plural
from pypto_cast.testing.bits import patches_of
from simulator.arithmetic.total_order import nan_value
from simulator.numbers import float_environment
from simulator.numbers.formats import FloatFormat
from tiling.grid import Shape, first_tile

MOST_TILES: Final = 512
"""Tiles of one output that are looked at."""
_TRIED: Final = 8
"""Tiles with elements outside for which every source is tried."""
_STALE_BYTES: Final = (32, 256)
"""A block and a repeat: elements behind the last whole one of a row may be stale."""
_LEAST_SHARE: Final = 0.5
"""Of the elements outside in a box, the share that a source must give to be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A tile of an output.

    Attributes:
        tile: its number.
        core: that had it.
        offset, shape: in the output.
        written_by: the operation and its line.
    """

    tile: int
    core: int
    offset: Shape
    shape: Shape
    written_by: str

    @property
    def index(self) -> tuple[slice, ...]:
        """The elements."""
        return tuple(slice(a, a + n) for a, n in zip(self.offset, self.shape, strict=True))

    def part(self, start: int, stop: int) -> Box:
        """The elements at these positions of the last axis."""
        return dataclasses.replace(
            self,
            offset=(*self.offset[:-1], self.offset[-1] + start),
            shape=(*self.shape[:-1], stop - start),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A box, and its content instead.

    Attributes:
        target: the box.
        source: the box of which it holds the elements; None: a fill.
        fill: the value; NaN becomes the format's own.
    """

    target: Box
    source: Box | None = None
    fill: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplacement:
    """Boxes of an output that hold something else.

    Attributes:
        text: in words.
        output: its name.
        moves: of boxes.
    """

    text: str
    output: str
    moves: tuple[Move, ...]


def boxes_of(output: OutputCertainty, most: int | None = MOST_TILES) -> tuple[Box, ...]:
    """The tiles that wrote an output, the first ones if there are more than `most`."""
    return tuple(itertools.islice(_boxes(output), most))


def _boxes(output: OutputCertainty) -> Iterator[Box]:
    number = itertools.count()
    for patch in patches_of(output.values, output.values):
        record = patch.record.tiles()
        if len(record.grid.shape) != len(output.shape):
            continue
        tiles, cores = len(record.grid), record.core_count
        core = 0
        for k in range(tiles):
            while k >= first_tile(core + 1, tiles, cores):
                core += 1
            tile = record.grid.tile(k)
            low = [max(o, s) for o, s in zip(tile.offset, patch.start, strict=True)]
            high = [
                min(o + n, s + e)
                for o, n, s, e in zip(
                    tile.offset, tile.shape, patch.start, patch.extent, strict=True
                )
            ]
            if all(a < b for a, b in zip(low, high, strict=True)):
                yield Box(
                    tile=next(number),
                    core=core,
                    offset=tuple(
                        a - s + o for a, s, o in zip(low, patch.start, patch.offset, strict=True)
                    ),
                    shape=tuple(b - a for a, b in zip(low, high, strict=True)),
                    written_by=str(patch.record),
                )


def misplacements(
    outputs: Iterable[OutputCertainty],
    results: Mapping[str, npt.NDArray[Any]],
    outside: Mapping[str, npt.NDArray[np.bool_]],
) -> Iterator[Misplacement]:
    """Those that may explain elements outside.

    Args:
        outputs: of the kernel as written.
        results: by the names of outputs.
        outside: true where a result cannot be.
    """
    for output in outputs:
        boxes = boxes_of(output)
        hit = [box for box in boxes if outside[output.name][box.index].any()]
        if hit:
            yield from _of_output(output, boxes, hit, results[output.name], outside[output.name])


def _of_output(
    output: OutputCertainty,
    boxes: tuple[Box, ...],
    hit: list[Box],
    result: npt.NDArray[Any],
    outside: npt.NDArray[np.bool_],
) -> Iterator[Misplacement]:
    name = output.name
    fills = [("unwritten, 0", 0.0)]
    if isinstance(output.format, FloatFormat) and output.format.nan_code is not None:
        fills.append(("NaN", float("nan")))
    for box in hit[:_TRIED]:
        for words, fill in fills:
            yield Misplacement(
                text=f"tile {box.tile} of {name} {words}",
                output=name,
                moves=(Move(target=box, fill=fill),),
            )
        for source in boxes:
            if source.shape != box.shape or source is box:
                continue
            gives = _gives(output, source, result[box.index]) & outside[box.index]
            if np.count_nonzero(gives) > _LEAST_SHARE * np.count_nonzero(outside[box.index]):
                yield Misplacement(
                    text=f"tile {box.tile} of {name} holds tile {source.tile}",
                    output=name,
                    moves=(Move(target=box, source=source),),
                )
    by_core = {core: [b for b in boxes if b.core == core] for core in {b.core for b in boxes}}
    for core in sorted({box.core for box in hit}):
        own = by_core[core]
        for words, fill in fills:
            yield Misplacement(
                text=f"{plural(len(own), 'tile')} of core {core} of {name} {words}",
                output=name,
                moves=tuple(Move(target=box, fill=fill) for box in own),
            )
        for other, theirs in by_core.items():
            if other != core and [b.shape for b in own] == [b.shape for b in theirs[: len(own)]]:
                yield Misplacement(
                    text=f"{plural(len(own), 'tile')} of core {core} of {name} hold those of core "
                    f"{other}",
                    output=name,
                    moves=tuple(
                        Move(target=box, source=source)
                        for box, source in zip(own, theirs, strict=False)
                    ),
                )
    for words, fill in fills:
        yield Misplacement(
            text=f"{name} {words}",
            output=name,
            moves=tuple(Move(target=box, fill=fill) for box in boxes),
        )
    for unit_bytes in _STALE_BYTES:
        unit = max(1, unit_bytes * 8 // output.format.bits)
        yield from _stale(name, boxes, hit, unit, unit_bytes)


def _stale(
    name: str, boxes: tuple[Box, ...], hit: list[Box], unit: int, unit_bytes: int
) -> Iterator[Misplacement]:
    """The elements behind the last whole unit of a tile's rows are those of the tile before."""
    moves = []
    for before, box in itertools.pairwise(boxes):
        last = box.shape[-1]
        start = last // unit * unit
        fits = all(a >= b for a, b in zip(before.shape, box.shape, strict=True))
        if start < last and fits:
            source = dataclasses.replace(before, shape=box.shape)
            moves.append(Move(target=box.part(start, last), source=source.part(start, last)))
    behind = f"behind the last whole {unit_bytes} B of a row"
    if moves:
        yield Misplacement(
            text=f"stale tails of tiles of {name}, {behind}", output=name, moves=tuple(moves)
        )
    touched = {box.tile for box in hit}
    for move in moves[: _TRIED * 2]:
        if len(moves) > 1 and move.target.tile in touched:
            yield Misplacement(
                text=f"the stale tail of tile {move.target.tile} of {name}, {behind}",
                output=name,
                moves=(move,),
            )


@float_environment.quiet()
def _gives(output: OutputCertainty, source: Box, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """True where values are among those that a device may give for the elements of a box."""
    part = output.interval.map(lambda array: np.ascontiguousarray(array[source.index]))
    found: npt.NDArray[np.bool_] = part.contains(np.ascontiguousarray(values), output.format)
    return found


def _fill_of(output: OutputCertainty, fill: float) -> npt.NDArray[Any]:
    if fill == fill:
        return np.asarray(fill).astype(output.values.dtype)
    assert isinstance(output.format, FloatFormat)
    return nan_value(output.format)


def rewritten(output: OutputCertainty, misplacement: Misplacement) -> OutputCertainty:
    """An output with boxes that hold something else."""
    if output.name != misplacement.output:
        return output
    values, low, high = (array.copy() for array in (output.values, output.low, output.high))
    nan = None if output.may_be_nan is None else output.may_be_nan.copy()
    for move in misplacement.moves:
        target = move.target.index
        if move.source is None:
            fill = _fill_of(output, move.fill)
            for array in (values, low, high):
                array[target] = fill
            if nan is not None:
                nan[target] = False
            continue
        source = move.source.index
        pairs = (values, output.values), (low, output.low), (high, output.high)
        for array, of in pairs:
            array[target] = of[source]
        if nan is not None and output.may_be_nan is not None:
            nan[target] = output.may_be_nan[source]
    return dataclasses.replace(output, values=values, low=low, high=high, may_be_nan=nan)
