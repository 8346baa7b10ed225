"""Draws the best tile shape's buffers in UB, to scale."""

from __future__ import annotations

from typing import Final

from pypto_cast.report.figure import Figure, Mark, Row
from pypto_cast.report.markup import Table
from pypto_cast.tuning.report.section import Section
from pypto_cast.tuning.tune import TunedCast
from tiling.plan import TilePlan

_ROLES: Final = {
    "in": ("input", "copy-in"),
    "out": ("output", "copy-out"),
    "tmp": ("scratch", "scalar"),
}
_KIB: Final = 1024
_TICK_KIB: Final = 32
_Part = tuple[str, int, int, str]
"""Name, offset and size in bytes, class in the style."""


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
        figures=(_figure(parts, chip.ub_bytes),),
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
        role, kind = _ROLES[buffer.role]
        slot = "" if buffer.role == "tmp" else f", slot {buffer.slot}"
        parts.append(
            (
                f"{role}{slot}",
                buffer.offset_bytes,
                buffer.size_bytes,
                kind + " second" * bool(buffer.slot),
            )
        )
    used, safe, whole = made.ub.used_bytes, made.chip.ub_safe_bytes, made.chip.ub_bytes
    parts.append(("free", used, safe - used, "free"))
    parts.append(("not for user code", safe, whole - safe, "illegal"))
    return tuple(part for part in parts if part[2] > 0)


def _figure(parts: tuple[_Part, ...], ub_bytes: int) -> Figure:
    return Figure(
        rows=(
            Row(
                marks=tuple(
                    Mark(left=at, width=size, kind=kind, tip=f"{name}\nfrom {at:,} B, {size:,} B")
                    for name, at, size, kind in parts
                )
            ),
        ),
        extent=ub_bytes,
        axis="address, KiB",
        ticks=tuple((kib * _KIB, str(kib)) for kib in range(0, ub_bytes // _KIB + 1, _TICK_KIB)),
        keys=tuple((kind, f"{name}: {size:,} B") for name, _, size, kind in parts),
        height_px=72,
    )
