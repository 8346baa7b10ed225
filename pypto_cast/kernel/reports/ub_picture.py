"""UB over time as a picture: the buffers of each leaf at their addresses, and the bytes alive."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ascend_kernels.schedule.line_work import NO_LINE, buffer_owner
from ascend_kernels.schedule.parts import Buffer, Leaf
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.report.figure import CORE_COLORS, Figure, Mark, Row, round_ticks
from pypto_cast.report.report import Report
from pypto_cast.report.text_format import plural
from tiling.chips import chip_named

_MOST_LEAVES: Final = 8
_UB_PX: Final = 260
_MOST_FREE: Final = 4
"""A picture is less than so many times as high as its buffers."""
_TEXT_PX: Final = 14
"""Height of a bar from which on it holds a line's number."""


def ub_part(schedule: Schedule) -> Report:
    """The picture of UB, of the leaves that need most."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for number, leaf in enumerate(schedule.leaves):
        bars = tuple(replace(each, name="") for each in leaf.ub_buffers)
        owners = tuple(buffer_owner(leaf, place) for place in range(len(bars)))
        if bars:
            alike.setdefault((bars, owners, leaf.operation_columns), []).append(number)
    drawn = sorted(alike.values(), key=lambda each: -schedule.leaves[each[0]].needed_ub_bytes)
    ub_bytes = chip_named(schedule.chip).ub_bytes
    left = sum(map(len, drawn[_MOST_LEAVES:]))
    more = f" The {plural(left, 'leaf', 'leaves')} that need less are left out." if left else ""
    peaks = (schedule.leaves[first].peak_ub_bytes for first, *_ in drawn[:_MOST_LEAVES])
    whole = _drawn_bytes(ub_bytes, max(peaks, default=ub_bytes))
    if whole < ub_bytes:
        more = f" The lowest {whole:,} B are drawn; the rest is free.{more}"
    return Report(
        kind="ub",
        title="UB over time",
        lead=f"A bar is a buffer: its height and place are its bytes and address of {ub_bytes:,} "
        f"B, address 0 at the foot; from its first operation to its last. Colours repeat.{more}",
        figures=tuple(
            each
            for first, *others in drawn[:_MOST_LEAVES]
            for each in _ub_figures(_name(first, others), schedule.leaves[first], whole, ub_bytes)
        ),
    )


def _name(first: int, others: list[int]) -> str:
    return f"Leaf {first}" + (f" and {len(others):,} like it" if others else "")


def _drawn_bytes(ub_bytes: int, peak: int) -> int:
    """The bytes that a picture is high: UB, or a half of it and so on that all buffers fit in."""
    whole = max(ub_bytes, peak)
    while whole >= _MOST_FREE * peak:
        whole //= 2
    return whole


def _ub_figures(name: str, leaf: Leaf, whole: int, ub_bytes: int) -> tuple[Figure, Figure]:
    at = leaf.operation_columns
    extent = max(at) + 1
    peak, needed = leaf.peak_ub_bytes, leaf.needed_ub_bytes
    bars = tuple(
        _buffer_mark(leaf, place, each, whole, at) for place, each in enumerate(leaf.ub_buffers)
    )
    line = Mark(left=0, width=extent, kind="range", foot=peak / whole)
    sums = [0] * extent
    for index, column in enumerate(at):
        sums[column] = max(sums[column], leaf.live_bytes(index))
    alive = tuple(
        Mark(
            left=column,
            width=1,
            kind="beyond" if each == needed else "normal",
            height=each / whole,
            tip=f"{each:,} B alive",
        )
        for column, each in enumerate(sums)
    )
    axis = "operations in the order of issue, without flags"
    allocated = f"{peak:,} B as allocated (the line)"
    return (
        Figure(
            rows=(Row(marks=(*bars, line)),),
            extent=extent,
            axis=axis,
            ticks=round_ticks(extent),
            height_px=_UB_PX,
            title=f"{name}: buffers",
            summary=f"{name}: {plural(len(bars), 'buffer')}, {allocated}",
            caption=f"{allocated} of {ub_bytes:,} B.",
        ),
        Figure(
            rows=(Row(marks=alive),),
            extent=extent,
            axis=axis,
            ticks=round_ticks(extent),
            height_px=80,
            title=f"{name}: bytes alive",
            summary=f"{name}: at most {needed:,} B are alive at once",
            caption=f"{needed:,} B are needed: the most that is alive at once.",
        ),
    )


def _buffer_mark(leaf: Leaf, place: int, each: Buffer, whole: int, at: tuple[int, ...]) -> Mark:
    opcode, line = buffer_owner(leaf, place)
    is_tall = each.size_bytes / whole * _UB_PX >= _TEXT_PX
    return Mark(
        left=at[each.first],
        width=at[each.last] - at[each.first] + 1,
        kind=f"core-{place % CORE_COLORS}",
        foot=each.address / whole,
        height=each.size_bytes / whole,
        text=line.rpartition(":")[2] if line != NO_LINE and is_tall else "",
        tip=f"{opcode}, {line}\n{each.size_bytes:,} B from {each.address:,}\n"
        f"operations {each.first} to {each.last}",
    )
