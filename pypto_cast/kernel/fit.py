"""Reasons for which a kernel does not fit in UB, and the changes with which it does.

Each change was planned: another tile shape, another order of statements, a cast moved up to its
operand. Only a tile shape that cuts the rows of a reduction otherwise may change a result.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from ascend_kernels.schedule.planner.ub_overflow import UBOverflow, UBOverflowError
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.call_sites import Place, silenced
from pypto_cast.kernel.graph.statement_order import (
    moved,
    moved_beside,
    statement_place,
    statements,
    taken_in_order,
)
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.kernel_source import names_assigned
from pypto_cast.kernel.tile_choice import (
    TileCall,
    TiledTensors,
    replaced_tiles,
    tile_recording,
)
from pypto_cast.options.context import current, options
from pypto_cast.recording.steps import Call
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.page import check_pages, page_html
from pypto_cast.report.report import (
    Column,
    Fact,
    Report,
    Table,
    columns,
    json_text,
    plain,
    said,
)
from pypto_cast.report.text_format import plural
from pypto_cast.tensors.array_files import output_file
from tiling.grid import Shape

_MOST_PLANS: Final = 10
"""Tile shapes that are planned for one call of set_vec_tile_shapes, and for all together."""
_MOST_MOVES: Final = 8
_MOST_SHAPES: Final = 1 << 12
"""Tile shapes below one that is set, without those of powers of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitChange:
    """A change of a kernel that was planned, and the UB that it then needs.

    Attributes:
        kind: "tile", "order" or "cast earlier".
        text: the change in words.
        needed_ub_bytes: the most that is alive at once; where it does not fit, at that moment.
        fits: a schedule is planned.
        tiles: of a tile, the calls with their new tile shapes.
    """

    kind: str
    text: str
    needed_ub_bytes: int
    fits: bool
    tiles: tuple[tuple[TileCall, Shape], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FitReport:
    """The UB of a kernel: the moment at which it does not fit, the culprit, and remedies.

    It prints itself, in a notebook too; `html` writes a page, `to_json` gives the figures.

    Attributes:
        kernel: its name.
        chip, release: that it was planned for.
        ub_bytes: of the chip.
        peak_ub_bytes: as allocated; None where it does not fit.
        needed_ub_bytes: the most that is alive at once; where it does not fit, at that moment.
        overflow: that moment; None of a kernel that fits.
        changes: those that were planned and need less; of equal kind the nearest first.
        planned: how many variants were planned.
        tile_shapes: how many tile shapes there were to look at.
        tile_shapes_planned: of them.
    """

    kernel: str
    chip: str
    release: str
    ub_bytes: int
    peak_ub_bytes: int | None
    needed_ub_bytes: int
    overflow: UBOverflow | None = None
    changes: tuple[FitChange, ...] = ()
    planned: int = 0
    tile_shapes: int = 0
    tile_shapes_planned: int = 0

    @property
    def fits(self) -> bool:
        """A schedule is planned."""
        return self.overflow is None

    @property
    def nearest(self) -> tuple[FitChange, ...]:
        """The tile shapes that fit, of least change in elements first."""
        return tuple(each for each in self.changes if each.kind == "tile" and each.fits)

    @property
    def frees_most(self) -> FitChange | None:
        """The change with which least is alive at once, of those that fit if any does."""
        return min(self.changes, key=lambda x: (not x.fits, x.needed_ub_bytes), default=None)

    @property
    def culprit(self) -> str:
        """The source line that owns most bytes alive at the moment; "" of a kernel that fits."""
        return "" if self.overflow is None else self.overflow.culprit

    def __str__(self) -> str:
        lines = [self._title, *(f"  {fact.label}: {fact.lines[0]}" for fact in self._told())]
        lines += [f"  {each.size_bytes:>9,} B  {each.text}" for each in self._alive]
        return "\n".join(lines + [f"  {_in_words(each)}" for each in self.changes])

    def to_json(self) -> str:
        """The figures as JSON; "report_kind" is "fit"."""
        return json_text(self.report)

    def html(self, path: str | os.PathLike[str], *, replace: bool = True) -> None:
        """Write the page, whole or not at all; one that is there is replaced if `replace`."""
        check_pages()
        with output_file(Path(path), force=replace, inputs=[]) as file:
            assert file is not None
            file.write(page_html(self.report).encode())

    def _repr_html_(self) -> str:
        return notebook_html(self.report)

    @property
    def _alive(self) -> Sequence[Any]:
        return () if self.overflow is None else self.overflow.buffers

    @property
    def _title(self) -> str:
        if self.overflow is None:
            return f"{self.kernel}: fits in UB"
        asked = f" ({self.overflow.place})" if self.overflow.place else ""
        return f"{self.kernel}: does not fit in UB, at {self.overflow.opcode}{asked}"

    def _told(self) -> tuple[Fact, ...]:
        """The facts that people read."""
        if self.overflow is None:
            return (
                Fact(key="peak_ub_bytes", value=self.peak_ub_bytes, label="UB as allocated, B"),
                Fact(key="needed_ub_bytes", value=self.needed_ub_bytes, label="UB needed, B"),
                Fact(key="ub_bytes", value=self.ub_bytes, label="UB of the chip, B"),
            )
        place, owned = self.overflow.lines[0]
        best = self.frees_most
        return (
            Fact(key="needed_ub_bytes", value=self.needed_ub_bytes, label="UB needed then, B"),
            Fact(key="ub_bytes", value=self.ub_bytes, label="UB of the chip, B"),
            said("culprit", f"{place or 'copies of no line'}, which owns {owned:,} B"),
            said("frees most", _in_words(best) if best else "nothing that was planned"),
            said(
                "variants",
                f"{plural(self.planned, 'variant')} planned; {self.tile_shapes_planned:,} of "
                f"{plural(self.tile_shapes, 'tile shape')} looked at",
            ),
        )

    @property
    def report(self) -> Report:
        """The moment, the buffers alive then, and the changes."""
        moment = self.overflow
        best = self.frees_most
        return Report(
            kind="fit",
            title=self._title,
            facts=(
                *plain(
                    kernel=self.kernel,
                    chip=self.chip,
                    release=self.release,
                    fits=self.fits,
                    operation=moment.opcode if moment else None,
                    line=moment.place if moment else None,
                    reason=moment.reason if moment else None,
                    culprit=self.culprit or None,
                    frees_most=best.text if best else None,
                    planned=self.planned,
                    tile_shapes=self.tile_shapes,
                    tile_shapes_planned=self.tile_shapes_planned,
                ),
                *(() if moment is None else plain(peak_ub_bytes=None)),
                *self._told(),
            ),
            tables=(self._buffers_table(), self._changes_table()),
        )

    def _buffers_table(self) -> Table:
        rows = [
            (
                each.size_bytes,
                each.text,
                each.place,
                each.format.name if each.format else None,
                " x ".join(map(str, each.shape)),
            )
            for each in self._alive
        ]
        return Table(
            key="buffers",
            caption="Buffers alive at that moment, the largest first",
            columns=columns(
                bytes="bytes", operation="written by", line="line", format="format", shape="tile"
            ),
            rows=rows,
        )

    def _changes_table(self) -> Table:
        rows = [
            (
                each.text,
                each.kind,
                each.fits,
                each.needed_ub_bytes,
                self.needed_ub_bytes - each.needed_ub_bytes,
                [{"file": x.file, "line": x.line, "tile_shape": list(s)} for x, s in each.tiles],
            )
            for each in self.changes
        ]
        return Table(
            key="changes",
            caption="Changes, each planned; the nearest tile first",
            columns=(
                Column(key="change", heading="change", is_name=True),
                *columns(
                    kind="kind",
                    fits="fits",
                    needed_ub_bytes="UB\nneeded, B",
                    freed_bytes="freed, B",
                    tiles=None,
                ),
            ),
            rows=rows,
        )


def _in_words(change: FitChange) -> str:
    verdict = "fits" if change.fits else "does not fit yet"
    return f"{change.text}: {verdict}, {change.needed_ub_bytes:,} B needed"


def fit_report(kernel: Kernel, *arguments: Any, **named: Any) -> FitReport:
    """The report of a call of a kernel: it fits, or the reason for which not, and remedies.

    The tile shapes tried are smaller than the one set, and within the tensors under it: some 4,096,
    evenly apart along each axis, the last one of whole blocks, with powers of two. The nearest is
    of least change in elements, of equal ones the one with the longer last axis. A tile shape is
    taken not to fit if it is nowhere smaller than one that does not, or if UB has no room for the
    bytes of one that does not in proportion to their elements. At most 10 are planned of each call
    and 10 of all together, the nearest first, then in growing steps; the nearest found counts. A
    call is left as it is where another tile shape fails with the same buffers.

    Args:
        kernel: of `jit`.
        arguments, named: as `Kernel.schedule` takes them.

    Raises:
        TypeError: no kernel of `jit`.
        PlanError: as `Kernel.schedule`, for other reasons than UB.
    """
    check_kernel(kernel)
    chip, release = current().chip, str(current().release)
    found = _tried(kernel, arguments, named, is_variant=False)
    assert found is not None
    known = functools.partial(
        FitReport,
        kernel=kernel.signature.kernel,
        chip=chip.name,
        release=release,
        ub_bytes=chip.ub_bytes,
    )
    if isinstance(found, Schedule):
        return known(peak_ub_bytes=found.peak_ub_bytes, needed_ub_bytes=found.needed_ub_bytes)
    search = _Search(kernel, arguments, named, found)
    changes = (*search.tiles(), *search.moves())
    return known(
        peak_ub_bytes=None,
        needed_ub_bytes=found.needed_bytes,
        overflow=found,
        changes=changes,
        planned=search.planned,
        tile_shapes=search.tile_shapes,
        tile_shapes_planned=search.tile_shapes_planned,
    )


def check_kernel(kernel: object) -> None:
    """Refuse an object that is no kernel.

    Raises:
        TypeError: that.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"a kernel is a function under @pypto.frontend.jit; got {kernel!r} "
            f"({type(kernel).__name__})"
        )


def _tried(
    kernel: Kernel, arguments: Sequence[Any], named: Mapping[str, Any], *, is_variant: bool = True
) -> Schedule | UBOverflow | None:
    """The schedule, or the moment at which it does not fit; None of a variant not planned."""
    try:
        with silenced():
            return kernel.schedule(*arguments, **named)
    except UBOverflowError as error:
        return error.overflow
    except ValueError:
        if not is_variant:
            raise
        return None


class _Search:
    """The variants of a call of a kernel that does not fit."""

    def __init__(
        self,
        kernel: Kernel,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
        moment: UBOverflow,
    ) -> None:
        self._kernel, self._arguments, self._named = kernel, arguments, named
        self._moment = moment
        self.planned = self.tile_shapes = self.tile_shapes_planned = 0

    def _try(self) -> Schedule | UBOverflow | None:
        self.planned += 1
        return _tried(self._kernel, self._arguments, self._named)

    def _change(
        self,
        kind: str,
        text: str,
        found: Schedule | UBOverflow,
        tiles: tuple[tuple[TileCall, Shape], ...] = (),
    ) -> FitChange:
        fits = isinstance(found, Schedule)
        needed = found.needed_ub_bytes if isinstance(found, Schedule) else found.needed_bytes
        return FitChange(kind=kind, text=text, needed_ub_bytes=needed, fits=fits, tiles=tiles)

    # --- Tile shapes -----------------------------------------------------------------------------

    def tiles(self) -> Iterator[FitChange]:
        """The nearest tile shape that fits of each call; of all together where none alone does.

        Where none fits, the least bad.
        """
        recording = tile_recording(self._kernel, self._arguments, self._named)
        places: dict[Place, TileCall] = {}
        for each in recording.calls:
            places.setdefault(each.place, each)
        under = {each: recording.tensors_under(place) for place, each in places.items()}
        if not any(under.values()) and current().vec_tile_shapes:
            call = TileCall(file="", line=0, tile_shape=current().vec_tile_shapes)
            under = {call: recording.tensors_under(None)}
        known = {call: each for call, each in under.items() if each is not None}
        alone = [*filter(None, itertools.starmap(self._nearest, known.items()))]
        if len(known) > 1 and not any(each.fits for each in alone):
            alone += filter(None, [self._together(known)])
        fitting = [each for each in alone if each.fits]
        if fitting or not alone:
            yield from sorted(fitting, key=_lost)
        else:
            yield min(alone, key=lambda each: each.needed_ub_bytes)

    def _nearest(self, call: TileCall, under: TiledTensors) -> FitChange | None:
        """The nearest tile shape of a call that fits, below the one that it sets.

        Where none is found, the least bad of those that were planned.
        """
        asked = _within(call.tile_shape, under)
        candidates = _smaller(asked, under)
        if asked != call.tile_shape:
            candidates.insert(0, asked)
        self.tile_shapes += len(candidates)
        failed = {asked: self._moment}
        best: tuple[Shape, Schedule] | None = None

        def is_open(tile: Shape) -> bool:
            """True where no failure says that it does not fit."""
            return not any(
                all(a >= b for a, b in zip(tile, each, strict=True))
                or moment.needed_bytes * math.prod(tile) > current().chip.ub_bytes * math.prod(each)
                for each, moment in failed.items()
            )

        def fits(tile: Shape) -> bool:
            nonlocal best
            self.tile_shapes_planned += 1
            with _applied({call: tile}):
                found = self._try()
            if isinstance(found, Schedule):
                best = tile, found
            elif found is not None:
                failed[tile] = found
            else:
                candidates.remove(tile)  # not planned, for another reason
            return isinstance(found, Schedule)

        until = self.planned + _MOST_PLANS
        step, left = 1, [*filter(is_open, candidates)]
        while best is None and left and self.planned < until:
            tile, step = left[min(step, len(left)) - 1], 2 * step
            if not fits(tile) and [*failed.values()].count(failed.get(tile, self._moment)) > 1:
                break  # the same moment again: the tile of another call decides
            left = [each for each in candidates if is_open(each) and each != tile]
        if best is None:
            if len(failed) == 1 and candidates:
                fits(candidates[-1])
            over = {tile: each for tile, each in failed.items() if tile != asked}
            tile = min(over, key=lambda each: over[each].needed_bytes, default=asked)
            return self._tiled(over.get(tile), {call: tile})
        nearer = [each for each in candidates[: candidates.index(best[0])] if is_open(each)]
        while nearer and self.planned < until:
            middle = len(nearer) // 2
            tile = nearer[middle]
            nearer = nearer[:middle] if fits(tile) else [*filter(is_open, nearer[middle + 1 :])]
        return self._tiled(best[1], {call: best[0]})

    def _together(self, calls: Mapping[TileCall, TiledTensors]) -> FitChange | None:
        """All tile shapes, each halved as often: the outer axes first."""
        shapes = {call: _within(call.tile_shape, under) for call, under in calls.items()}
        last: FitChange | None = None
        for _ in range(_MOST_PLANS):
            halved = {call: _halved(shape, calls[call]) for call, shape in shapes.items()}
            if halved == shapes:
                break
            shapes = halved
            self.tile_shapes += 1
            self.tile_shapes_planned += 1
            with _applied(shapes):
                found = self._try()
            last = self._tiled(found, shapes) or last
            if last is not None and last.fits:
                break
        return last

    def _tiled(
        self, found: Schedule | UBOverflow | None, shapes: Mapping[TileCall, Shape]
    ) -> FitChange | None:
        if found is None:
            return None
        texts = [
            f"{f'{PurePath(x.file).name}:{x.line}: ' if x.file else ''}"
            f"set_vec_tile_shapes({', '.join(map(str, shape))})"
            for x, shape in shapes.items()
        ]
        return self._change("tile", " and ".join(texts), found, tuple(shapes.items()))

    # --- Order of statements ---------------------------------------------------------------------

    def moves(self) -> Iterator[FitChange]:
        """Statements moved down to their first reader, and casts up to their operand."""
        events: list[Any] = []

        def kept(given: Sequence[Any]) -> Sequence[Any]:
            events.extend(given)
            return given

        with taken_in_order(kept), silenced():
            self._kernel.tensor_graphs(*self._arguments, **self._named)
        assigned = names_assigned(inspect.unwrap(self._kernel))
        counts = Counter(name for name, _ in assigned)
        groups = statements(events)
        alive = [place for place, _ in self._moment.lines if place]
        movable = [(place, False) for place in alive if place != self._moment.place]
        movable += [
            (statement_place(group), True)
            for group in groups
            if all(isinstance(x, Call) and x.operation.__name__ == "cast" for x in group)
        ]
        for place, is_earlier in [*dict.fromkeys(movable)][:_MOST_MOVES]:
            lines = {x.line for group in groups if statement_place(group) == place for x in group}
            names = [name for name, span in assigned if lines & {*span}]
            target = moved_beside(groups, place, is_earlier=is_earlier)
            if not target or any(counts[name] > 1 for name in names):
                continue
            with taken_in_order(functools.partial(moved, place=place, is_earlier=is_earlier)):
                found = self._try()
            if found is None:
                continue
            text = (
                f"cast of {place} directly behind {target}"
                if is_earlier
                else f"{place} moved down to before {target}"
            )
            change = self._change("cast earlier" if is_earlier else "order", text, found)
            if change.fits or change.needed_ub_bytes < self._moment.needed_bytes:
                yield change


def _lost(change: FitChange) -> int:
    """The elements by which the tile shapes of a change are smaller."""
    return sum(math.prod(call.tile_shape) - math.prod(shape) for call, shape in change.tiles)


def _within(tile: Shape, under: TiledTensors) -> Shape:
    """A tile shape cut to the tensors under it, the last axis to whole blocks."""
    rank = len(under.extents)
    cut = (
        min(length, -(-extent // unit) * unit)
        for length, extent, unit in zip(tile[:rank], under.extents, _units(under), strict=True)
    )
    return (*cut, *tile[rank:])


def _units(under: TiledTensors) -> Shape:
    """The step of each axis."""
    return (*(1 for _ in under.extents[1:]), under.unit)


def _smaller(tile: Shape, under: TiledTensors) -> list[Shape]:
    """The candidates below a tile shape, the nearest first."""
    rank = len(under.extents)
    most = round(_MOST_SHAPES ** (1 / rank))
    along = [_extents(*each, most) for each in zip(tile[:rank], _units(under), strict=True)]
    along += [[extent] for extent in tile[rank:]]
    found = [each for each in itertools.product(*along) if each != tile]
    return sorted(found, key=lambda each: (-math.prod(each), *(-x for x in reversed(each))))


def _extents(extent: int, unit: int, most: int) -> list[int]:
    """Multiples of a unit up to an extent, evenly apart, with itself and the powers of two."""
    step = -(-extent // unit // most) * unit
    powers = (1 << k for k in range(extent.bit_length()))
    return sorted({extent, *range(step, extent, step), *(x for x in powers if not x % unit)})


def _halved(tile: Shape, under: TiledTensors) -> Shape:
    """A tile shape with its first axis that can be halved so; the last one in whole blocks."""
    for axis, step in enumerate(_units(under)):
        half = -(-tile[axis] // 2 // step) * step
        if 0 < half < tile[axis]:
            return (*tile[:axis], half, *tile[axis + 1 :])
    return tile


@contextlib.contextmanager
def _applied(shapes: Mapping[TileCall, Shape]) -> Iterator[None]:
    """Other tile shapes in the body of a `with` statement; a call without a file is the context."""
    context = [shape for call, shape in shapes.items() if not call.file]
    with contextlib.ExitStack() as stack:
        for shape in context:
            stack.enter_context(options(vec_tile_shapes=shape))
        stack.enter_context(replaced_tiles({x.place: each for x, each in shapes.items() if x.file}))
        yield
