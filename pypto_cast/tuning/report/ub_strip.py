"""Draws the best tile shape's buffers in UB, to scale."""

from __future__ import annotations

from typing import Final

from pypto_cast.pages.markup import Table
from pypto_cast.tuning.report.section import (
    COPY_IN,
    COPY_OUT,
    ILLEGAL,
    SCALAR,
    Figure,
    Json,
    Section,
    hatched,
    legend_below,
)
from pypto_cast.tuning.tune import TunedCast
from tiling.plan import TilePlan

_ROLES: Final = {"in": ("input", COPY_IN), "out": ("output", COPY_OUT), "tmp": ("scratch", SCALAR)}
_FREE: Final = "#f4f4f4"
_KIB: Final = 1024
_ROW: Final = "UB"
_Part = tuple[str, int, int, str, str]
"""Name, offset and size in bytes, colour, pattern."""


def ub_strip(cast: TunedCast) -> Section:
    """The UB of one vector core as a strip."""
    made = cast.plan
    chip = made.chip
    used = made.ub.used_bytes
    parts = _parts(made)
    return Section(
        key="ub",
        title="UB",
        summary=(
            f"UB of one vector core of {chip}, {chip.ub_bytes:,} B: {used:,} B hold buffers of "
            f"{list(made.ub.pass_shape)} elements, {made.buffering}; "
            f"{chip.ub_bytes - chip.ub_safe_bytes:,} B are not for user code."
        ),
        notes=("To scale. Two slots take turns: one is copied while the other is converted.",),
        figure=_figure(parts, chip.ub_bytes),
        tables=(
            Table(
                caption="UB in address order",
                headings=("what", "from, B", "bytes"),
                rows=tuple((name, f"{at:,}", f"{size:,}") for name, at, size, *_ in parts),
            ),
        ),
    )


def _parts(made: TilePlan) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    for buffer in made.ub.buffers:
        role, color = _ROLES[buffer.role]
        slot = "" if buffer.role == "tmp" else f", slot {buffer.slot}"
        pattern = "/" if buffer.slot else ""
        parts.append((f"{role}{slot}", buffer.offset_bytes, buffer.size_bytes, color, pattern))
    used, safe, whole = made.ub.used_bytes, made.chip.ub_safe_bytes, made.chip.ub_bytes
    parts.append(("free", used, safe - used, _FREE, ""))
    parts.append(("not for user code", safe, whole - safe, ILLEGAL, "x"))
    return tuple(part for part in parts if part[2] > 0)


def _figure(parts: tuple[_Part, ...], ub_bytes: int) -> Figure:
    traces: list[Json] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": f"{name}: {size:,} B",
            "y": [_ROW],
            "base": [at / _KIB],
            "x": [size / _KIB],
            "marker": {
                "color": color,
                "line": {"color": "#555555", "width": 1},
                "pattern": hatched(pattern),
            },
            "hovertemplate": f"<b>{name}</b><br>from {at:,} B, {size:,} B<extra></extra>",
        }
        for name, at, size, color, pattern in parts
    ]
    return Figure(
        data=tuple(traces),
        layout={
            "barmode": "overlay",
            "bargap": 0.1,
            "xaxis": {
                "title": {"text": "address, KiB"},
                "range": [0, ub_bytes / _KIB],
                "dtick": 32,
            },
            "yaxis": {"visible": False, "fixedrange": True},
            "legend": legend_below(-0.65),
            "hovermode": "closest",
        },
        height=300,
    )
