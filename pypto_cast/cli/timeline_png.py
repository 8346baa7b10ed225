"""The timeline of a cast as a picture: a row per pipe, a bar per instruction."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from pypto_cast.cast.cast_run import TracedCast
from pypto_cast.report.text_format import extra_hint
from simulator.machine.isa import HardEvent, Pipe, WaitFlag
from simulator.traces.trace import Timeline, TraceEvent, timeline, trace

SHOWN_CORES: Final = 4
"""Cores drawn, of those that have work, unless the user names some."""
_ROWS: Final = (Pipe.MTE2, Pipe.V, Pipe.MTE3)
_SHOWN_EVENTS: Final = 900
"""Events of one core, from which on the picture is cut: more would be a solid block."""
_ARROWS: Final = 60
"""Flags of one core that are drawn; more would hide the bars."""
_COLORS: Final = {Pipe.MTE2: "#3b76b5", Pipe.V: "#e08a2c", Pipe.MTE3: "#4f9d5d"}
_WAIT: Final = "#e4e4e4"
_AXIS: Final = "#999999"
_GRID: Final = "#e9e9e9"
_GREY_TEXT: Final = "#444444"
_ARROW: Final = {
    "arrowstyle": "-|>",
    "color": "#8a8a8a",
    "linewidth": 0.7,
    "mutation_scale": 6,
    "shrinkA": 0,
    "shrinkB": 0,
}
_LABELS: Final = {Pipe.MTE2: "MTE2  copy in", Pipe.V: "V  cast", Pipe.MTE3: "MTE3  copy out"}
_BAR: Final = 0.74
_ROW_INCHES: Final = 0.34
_WIDTH_INCHES: Final = 13.0
_TITLE_CHARACTERS: Final = 110
_FRAMED: Final = 0.004
"""The part of the axis from which on a bar is framed."""
_CHARACTER: Final = 0.0075
"""The part of the axis that a character of a label takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """The part that is drawn: the first events of some cores, up to one cycle."""

    cast: TracedCast
    events: dict[int, list[TraceEvent]]
    whole: Timeline
    end_cycle: float

    @property
    def is_cut(self) -> bool:
        return self.end_cycle < self.whole.makespan_cycles

    def microseconds(self, cycle: float) -> float:
        return cycle / self.cast.parameters.clock_hz * 1e6

    def row(self, core: int, pipe: Pipe) -> float:
        """The height of a pipe: pipes of a core together, a gap between cores."""
        return list(self.events).index(core) * (len(_ROWS) + 0.7) + _ROWS.index(pipe)


def check_picture(path: Path) -> None:
    """Refuse a picture that cannot be drawn.

    Raises:
        RuntimeError: matplotlib is not installed.
        ValueError: the file is not named as a PNG is.
    """
    if path.suffix.lower() != ".png":
        raise ValueError(f"--png {path}: the picture is PNG; name it {path.with_suffix('.png')}")
    _require_matplotlib()


def _require_matplotlib() -> None:
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        text = f"a picture needs matplotlib: {extra_hint('viz')}"
        raise RuntimeError(text) from None


def draw(cast: TracedCast, title: str, out: BinaryIO) -> None:
    """Write the picture of a cast's cores as PNG.

    Args:
        cast: what to draw; only the first events of a long one are drawn, and the title says so.
        title: what it is.
        out: where to.

    Raises:
        RuntimeError: matplotlib is not installed.
    """
    _require_matplotlib()
    picture = _picture(cast)
    rows = len(picture.events) * (len(_ROWS) + 0.7)
    height = 2.15 + rows * _ROW_INCHES
    figure = importlib.import_module("matplotlib.figure").Figure(
        figsize=(_WIDTH_INCHES, height), facecolor="white"
    )
    axes = figure.add_axes((0.125, 0.62 / height, 0.795, 1 - 2.07 / height))
    for core, events in picture.events.items():
        _draw_core(axes, picture, core, events)
    _dress(axes, picture)
    _write_heads(figure, picture, title, height)
    figure.savefig(out, format="png", dpi=120)


def _picture(cast: TracedCast) -> _Picture:
    events: dict[int, list[TraceEvent]] = {}
    ends = []
    for core in cast.cores:
        stream = trace(cast.program, core, cast.parameters)
        events[core] = list(itertools.islice(stream, _SHOWN_EVENTS))
        if next(stream, None) is not None:
            # Pipes that ran ahead would show more than those behind.
            last = {event.pipe: event.end_cycle for event in events[core]}
            ends.append(min(last.get(pipe, 0.0) for pipe in _ROWS))
    whole = timeline(cast.events())
    end = min([*(end for end in ends if end), whole.makespan_cycles])
    return _Picture(cast=cast, events=events, whole=whole, end_cycle=end)


def _draw_core(axes: Any, picture: _Picture, core: int, events: Sequence[TraceEvent]) -> None:
    shown = [event for event in events if event.start_cycle < picture.end_cycle]
    for pipe in _ROWS:
        mine = [event for event in shown if event.pipe is pipe]
        row = picture.row(core, pipe)
        waits = [event for event in mine if isinstance(event.instruction, WaitFlag)]
        works = [event for event in mine if event.is_work]
        _draw_bars(axes, picture, row, waits, _WAIT)
        _draw_bars(axes, picture, row, works, _COLORS[pipe])
        _label_tiles(axes, picture, row, works)
    _draw_arrows(axes, picture, core, shown)


def _draw_bars(
    axes: Any, picture: _Picture, row: float, events: Sequence[TraceEvent], color: str
) -> None:
    spans = [
        (picture.microseconds(event.start_cycle), picture.microseconds(event.cycles))
        for event in events
    ]
    # A frame tells neighbours apart; narrow bars would be nothing but frame.
    framed = [event.is_work and event.cycles > _FRAMED * picture.end_cycle for event in events]
    axes.broken_barh(
        spans,
        (row - _BAR / 2, _BAR),
        facecolors=color,
        edgecolors=["white" if frame else color for frame in framed],
        linewidth=0.6,
    )


def _label_tiles(axes: Any, picture: _Picture, row: float, works: Sequence[TraceEvent]) -> None:
    """Write the tile's number into each unbroken run of its work, where it fits."""
    for where, group in itertools.groupby(works, key=lambda event: event.where):
        events = list(group)
        start, end = events[0].start_cycle, min(events[-1].end_cycle, picture.end_cycle)
        number = where.removeprefix("tile ").partition(" ")[0]
        if not number or end - start < _CHARACTER * (len(number) + 1) * picture.end_cycle:
            continue
        middle = picture.microseconds((start + end) / 2)
        axes.text(middle, row, number, ha="center", va="center_baseline", fontsize=8, color="white")


def _draw_arrows(axes: Any, picture: _Picture, core: int, events: Sequence[TraceEvent]) -> None:
    """From the end of a pipe's work to the place where the next one takes it over."""
    forward = (HardEvent.MTE2_V, HardEvent.V_MTE3)
    waits = [
        (event, event.edge)
        for event in events
        if isinstance(event.instruction, WaitFlag) and event.edge and event.edge.event in forward
    ]
    if len(waits) > _ARROWS:
        return
    for wait, edge in waits:
        top = picture.row(core, edge.event.setter) + _BAR / 2
        bottom = picture.row(core, edge.event.waiter) - _BAR / 2
        start = picture.microseconds(edge.set_cycle)
        end = picture.microseconds(max(wait.start_cycle, edge.set_cycle))
        axes.annotate(
            "", xy=(end, bottom), xytext=(start, top), arrowprops=_ARROW, annotation_clip=True
        )


def _dress(axes: Any, picture: _Picture) -> None:
    """Axes, names of cores and pipes, and how busy each pipe is."""
    end = picture.microseconds(picture.end_cycle)
    cores = list(picture.events)
    axes.set_xlim(0, end)
    axes.set_ylim(picture.row(cores[-1], _ROWS[-1]) + 0.75, -0.75)
    axes.set_xlabel("microseconds from the start of the cores", fontsize=9)
    axes.set_yticks([picture.row(core, pipe) for core in cores for pipe in _ROWS])
    axes.set_yticklabels([_LABELS[pipe] for _ in cores for pipe in _ROWS], fontsize=8.5)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8.5, color=_AXIS)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_AXIS)
    axes.grid(axis="x", color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    blended = axes.get_yaxis_transform()
    for added in picture.whole.cores:
        middle = picture.row(added.core, _ROWS[1])
        axes.text(
            -0.138,
            middle,
            f"core {added.core}",
            transform=blended,
            rotation=90,
            ha="center",
            va="center",
            fontsize=9.5,
            fontweight="bold",
        )
        for pipe in _ROWS:
            share = added.busy_cycles[pipe] / picture.whole.makespan_cycles
            axes.text(
                1.01,
                picture.row(added.core, pipe),
                f"{share:.0%} busy",
                transform=blended,
                va="center",
                fontsize=8.5,
                color=_GREY_TEXT,
            )


def _write_heads(figure: Any, picture: _Picture, title: str, height: float) -> None:
    patch = importlib.import_module("matplotlib.patches").Patch
    cast = picture.cast
    makespan = picture.microseconds(picture.whole.makespan_cycles)
    line = f"{makespan:,.2f} us"
    if picture.is_cut:
        line = f"the first {picture.microseconds(picture.end_cycle):,.2f} of {line}"
    line += f" of the cores shown  ·  cost set {cast.parameters.name}: {cast.parameters.standing}"
    tiles = cast.plan.tiles
    what = (
        f"{list(tiles.shape)} in {len(tiles.grid)} x {list(tiles.tile_shape)}, numbered"
        f"  ·  {tiles.busy_cores} of {tiles.chip.vector_cores} cores of {tiles.chip} have work"
    )
    # The end of a title says what is cast.
    title = title if len(title) <= _TITLE_CHARACTERS else f"…{title[1 - _TITLE_CHARACTERS :]}"
    figure.text(0.022, 1 - 0.33 / height, title, fontsize=12.5, fontweight="bold", va="center")
    figure.text(0.022, 1 - 0.62 / height, what, fontsize=9.5, color=_GREY_TEXT, va="center")
    figure.text(0.022, 1 - 0.86 / height, line, fontsize=9.5, color=_GREY_TEXT, va="center")
    handles = [patch(color=color, label=_LABELS[pipe]) for pipe, color in _COLORS.items()]
    handles.append(patch(color=_WAIT, label="waits for a flag"))
    figure.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(0.016, 1 - 1.19 / height),
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handlelength=1.2,
        handleheight=0.9,
        columnspacing=1.6,
    )
