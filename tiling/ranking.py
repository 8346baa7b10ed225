"""Choosing the tile shape of a cast: every legal one, ranked by its estimated cost.

Nothing here was measured on a device. A result names the cost set it follows, shows the range over
all sets, and says whether its choice would be another one under one of them. The landscape is a
slice: the costs of the tile shapes around a chosen one along its last two axes, or why one is not
legal; the axes further out keep the chosen extents.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

import numpy as np

from tiling.chips import Chip, Copied
from tiling.cost import COST_SETS, DEFAULT_COST_SET, CostParameters
from tiling.estimate import CastEstimate, Limit, bound_cycles, estimates
from tiling.grid import Grid, Ints, Shape, as_tiles
from tiling.loads import Floats, Job
from tiling.plan import TilePlan, check_shape, plan
from tiling.search import (
    MAX_TILES,
    LegalTiles,
    are_legal,
    cycles_of_all,
    legal_tiles,
    ranking,
    robust_ranking,
)
from tiling.ub import ElementBits, aligned_elems, charged_bytes, slots_bytes

Objective = Literal["time", "ub", "robust"]
OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)
STABLE_WITHIN: Final = 0.02
"""Share by which the closed form and the event simulation may differ; less is no difference."""
UB_WITHIN: Final = 0.05
"""Share of the time that the objective "ub" gives away for less UB (chosen)."""
_LIMITS: Final = {
    Limit.MTE2: "copies into UB",
    Limit.V: "vector work",
    Limit.MTE3: "copies out of UB",
    Limit.GM: "the chip's GM bandwidth",
    Limit.S: "issuing instructions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A legal tile shape with its estimate and its rank.

    Attributes:
        rank: 1 is the best under the objective and the set of the result.
        tile_shape: one entry per axis, as to be given to `set_vec_tile_shapes`.
        estimate: cycles, us, GB/s, share of the bandwidth bound, limit, range over the sets.
        tile_count: tiles that the tensor is cut into.
        busy_cores: vector cores that get at least one.
        vector_cores: those of the chip.
        ub_bytes: UB that upstream's rule charges for a tile: input and output, rows padded.
        ub_limit_bytes: the UB of a vector core.
        is_double_buffered: two tiles fit UB at once, else each passes in parts.
        tail_waste: share of the grid's cells that lie outside the tensor, 0 to below 1.
        warnings: what `cast` would warn of, and cores or slots that it leaves idle.
        reason: a sentence on why it is here.
    """

    rank: int
    tile_shape: Shape
    estimate: CastEstimate
    tile_count: int
    busy_cores: int
    vector_cores: int
    ub_bytes: int
    ub_limit_bytes: int
    is_double_buffered: bool
    tail_waste: float
    warnings: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetView:
    """The best tile shape under another set, compared with the one chosen.

    Attributes:
        cost_set: name of the set.
        best: the tile shape that is best under it.
        best_cycles: and its cycles.
        chosen_cycles: those of the result's best under this set.
    """

    cost_set: str
    best: Shape
    best_cycles: float
    chosen_cycles: float

    @property
    def excess(self) -> float:
        """Share by which the result's best is slower than this set's best; 0: not at all."""
        return self.chosen_cycles / self.best_cycles - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult(Copied):
    """Legal tile shapes of a cast, ranked.

    Attributes:
        job: the cast.
        parameters: the cost set that ranks.
        objective: what is least in the best: "time", "ub" among those nearly as fast, or how bad it
            is at worst over all sets: "robust".
        top: candidates that were asked for.
        max_tiles: tile shapes that make so many tiles or more were left out, if not all do.
        candidates: the best ones, by rank.
        legal_count: legal tile shapes that were compared.
        bound_cycles: cycles that no tile shape beats under the set: bytes at full bandwidth.
        views: by name, what every set makes of the choice, the result's own included.
        notes: what limits the search, in words.
    """

    job: Job
    parameters: CostParameters
    objective: Objective
    top: int
    max_tiles: int
    candidates: tuple[Candidate, ...]
    legal_count: int
    bound_cycles: float
    views: Mapping[str, SetView]
    notes: tuple[str, ...]

    @property
    def shape(self) -> Shape:
        """The tensor's."""
        return self.job.shape

    @property
    def bits(self) -> ElementBits:
        """Element widths."""
        return self.job.bits

    @property
    def chip(self) -> Chip:
        """The chip with the UB and the cores."""
        return self.job.chip

    @property
    def cost_set(self) -> str:
        """Name of the cost set that ranks."""
        return self.parameters.name

    @property
    def best(self) -> Shape:
        """The tile shape to set: `set_vec_tile_shapes(*result.best)`."""
        return self.candidates[0].tile_shape

    @property
    def is_stable(self) -> bool:
        """Under no set is another tile shape faster than the best by more than 2 %.

        Below that the closed form and the event simulation do not agree with each other either.
        """
        return self._dissent.excess <= STABLE_WITHIN

    @property
    def stability(self) -> str:
        """`is_stable` in a sentence, with the set that disagrees most."""
        most = self._dissent
        if most.excess <= 0:
            return (
                f"stable: {list(self.best)} is the best under each of {len(self.views)} cost sets"
            )
        word = "stable" if self.is_stable else "not stable"
        return (
            f"{word}: cost set {most.cost_set} prefers {list(most.best)}, and finds "
            f"{list(self.best)} {most.excess:.1%} slower"
        )

    @property
    def _dissent(self) -> SetView:
        return max(self.views.values(), key=lambda view: view.excess)

    def __str__(self) -> str:
        lines = [
            f"tile shapes of {list(self.shape)}, {self.bits.src} to {self.bits.dst} bits, on "
            f"{self.chip}: {self.legal_count} legal, objective {self.objective} (estimated, never "
            "measured)",
            *(f"  {c.rank:>3}  {list(c.tile_shape)}  {c.estimate}" for c in self.candidates),
            self.stability,
            *self.notes,
        ]
        return "\n".join(lines)


def tune(
    job: Job,
    *,
    parameters: CostParameters = DEFAULT_COST_SET,
    objective: Objective = "time",
    top: int = 10,
    max_tiles: int = MAX_TILES,
) -> TuningResult:
    """Rank every legal tile shape of a cast.

    Legality is told by `tiling.search`, cost by `tiling.estimate`. Equal candidates are told apart
    by the longer last axis, then the longer axis before it, and so on; so the order is always one.

    Args:
        job: the cast.
        parameters: the cost set that ranks; the range is over it and all named sets.
        objective: "time" for the fewest cycles; "ub" for the least UB of those that take at most
            5 % more; "robust" for the one that is, at worst over all sets, the least slower than a
            set's own best.
        top: candidates to return, at least 1; all of them if fewer are legal.
        max_tiles: tile shapes that make so many tiles or more are left out; if all do, none is, and
            a note says so.

    Raises:
        ShapeError: no cast takes the shape.
        ValueError: an objective, `top` or `max_tiles` without meaning.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}; got {objective!r}")
    for name, number in (("top", top), ("max_tiles", max_tiles)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(f"{name} must be an int of at least 1, not {number!r}")
    check_shape(job.shape, job.bits)
    sets = {**COST_SETS, parameters.name: parameters}
    tiles = legal_tiles(job, max_tiles)
    cycles = cycles_of_all(job, tiles, tuple(sets.values()))
    own = list(sets).index(parameters.name)
    order = _order(job, tiles, cycles, own, objective)
    return TuningResult(
        job=job,
        parameters=parameters,
        objective=objective,
        top=top,
        max_tiles=max_tiles,
        candidates=_candidates(job, tiles, order[:top], parameters, sets, float(cycles[own].min())),
        legal_count=len(tiles),
        bound_cycles=bound_cycles(job, parameters),
        views=MappingProxyType(
            {
                name: _view(name, tiles, row, int(order[0]))
                for name, row in zip(sets, cycles, strict=True)
            }
        ),
        notes=(
            f"every tile shape that fits UB makes {max_tiles} tiles or more; all of them compete",
        )
        if tiles.exceeds_max_tiles
        else (),
    )


def _order(job: Job, tiles: LegalTiles, cycles: Floats, own: int, objective: Objective) -> Ints:
    if objective == "robust":
        return robust_ranking(tiles, cycles, own)
    by_time = ranking(tiles, cycles[own])
    if objective == "time":
        return by_time
    near = by_time[cycles[own][by_time] <= (1 + UB_WITHIN) * cycles[own].min()]
    clipped = tiles.clipped[near]
    rows: Ints = clipped[:, :-1].prod(axis=1)
    ub_bytes = charged_bytes(rows, clipped[:, -1], job.bits, job.chip)
    by_ub: Ints = near[np.argsort(ub_bytes, kind="stable")]
    return by_ub


def _candidates(
    job: Job,
    tiles: LegalTiles,
    rows: Ints,
    parameters: CostParameters,
    sets: Mapping[str, CostParameters],
    least_cycles: float,
) -> tuple[Candidate, ...]:
    found = []
    costs = estimates(job, tiles.clipped[rows], parameters, sets.values())
    for rank, (row, estimate) in enumerate(zip(rows, costs, strict=True), start=1):
        tile_shape = tuple(map(int, tiles.asked[row]))
        made = plan(job.shape, tile_shape, job.bits, job.chip)
        found.append(
            Candidate(
                rank=rank,
                tile_shape=tile_shape,
                estimate=estimate,
                tile_count=len(made.grid),
                busy_cores=made.busy_cores,
                vector_cores=job.chip.vector_cores,
                ub_bytes=made.tile_bytes,
                ub_limit_bytes=job.chip.ub_bytes,
                is_double_buffered=made.ub.is_double_buffered,
                tail_waste=1 - job.elems / (len(made.grid) * made.grid.tile(0).elems),
                warnings=_warnings_of(made),
                reason=_reason(made, estimate, parameters, least_cycles, len(tiles)),
            )
        )
    return tuple(found)


def _view(name: str, tiles: LegalTiles, cycles: Floats, chosen: int) -> SetView:
    best = int(ranking(tiles, cycles)[0])
    return SetView(
        cost_set=name,
        best=tuple(map(int, tiles.asked[best])),
        best_cycles=float(cycles[best]),
        chosen_cycles=float(cycles[chosen]),
    )


def _reason(
    plan: TilePlan,
    estimate: CastEstimate,
    parameters: CostParameters,
    least_cycles: float,
    legal_count: int,
) -> str:
    """Explain the rank of a tile shape among the legal ones, its limit and its largest loss."""
    more = estimate.cycles / least_cycles - 1
    place = f"{more:.1%} more cycles than the fastest"
    if round(estimate.cycles - least_cycles, 3) <= 0:
        place = f"no legal tile shape of {legal_count} takes fewer cycles"
    cycles, text = max(_losses(plan, estimate, parameters))
    loss = f"; most of what the bound lacks is {text}" if round(cycles, 3) > 0 else ""
    return f"{place}; limited by {_LIMITS[estimate.limit]}{loss}"


def _losses(
    plan: TilePlan, estimate: CastEstimate, parameters: CostParameters
) -> list[tuple[float, str]]:
    """Cycles beyond the bandwidth bound, by cause."""
    cores = plan.chip.vector_cores
    work = estimate.pipe_cycles[estimate.limit]
    even = estimate.copied_bytes * parameters.clock_hz / parameters.gm_bytes_per_second
    # How much more the busiest core has than the mean. Idle cores leave GM to the others.
    lost = estimate.pipe_cycles[Limit.GM] * estimate.lost_share
    busiest = (estimate.pipe_cycles[Limit.GM] - lost) / even
    tiles = f"{len(plan.core_tiles(0))} tiles on the busiest of {plan.busy_cores} cores"
    if estimate.limit is not Limit.GM and plan.busy_cores < cores:
        busiest *= cores / plan.busy_cores
        tiles = f"{cores - plan.busy_cores} of {cores} cores idle"
    return [
        (estimate.cycles * (1 - 1 / busiest), f"an uneven share ({tiles})"),
        (
            (estimate.cycles - work) / busiest,
            "start and end, in which one pipe waits for another",
        ),
        (lost / busiest, "moving blocks that are off the 512 B lines of GM"),
        (
            (work - lost) / busiest - estimate.bound_cycles,
            "start-up of copies and the speed of one core",
        ),
    ]


def _warnings_of(plan: TilePlan) -> tuple[str, ...]:
    """The warnings of `cast` under this plan, and the idle cores and slots."""
    found = list(plan.diagnostics)
    cores = plan.chip.vector_cores
    if plan.busy_cores < cores:
        found.append(f"{cores - plan.busy_cores} of {cores} vector cores have no tile")
    if not plan.ub.is_double_buffered:
        found.append(f"two tiles do not fit UB: {plan.buffering}")
    return tuple(found)


_MOST_EXTENTS: Final = 40
"""Extents of an axis that are looked at; of more, about evenly spaced ones by their ratio."""
_BEYOND: Final = 2
"""Extents past the longest one that fits UB, so that the slice shows the edge."""


class CellKind(enum.Enum):
    """The kind of a tile shape in the slice: legal, left out, or the rule that it breaks."""

    LEGAL = "legal"
    TOO_MANY_TILES = "too many tiles"
    ILLEGAL = "not legal"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One tile shape of the slice.

    Attributes:
        tile_shape: as it would be set.
        tile_count: tiles that the tensor would be cut into.
        kind: legal, legal with more tiles than were asked for, or not legal.
        estimate: what it is taken to cost; None unless it is legal.
        refusal: why it is not of the first kind; empty if it is.
    """

    tile_shape: Shape
    tile_count: int
    kind: CellKind
    estimate: CastEstimate | None
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """Tile shapes that differ in their last two extents.

    Attributes:
        leading: the extents of the axes further out, the same in all.
        rows: extents of the last axis but one, ascending; (1,) if the tensor has one axis.
        cols: extents of the last axis, ascending, in whole blocks.
        unit: elements that make whole blocks on both sides; other last axes are not legal.
        is_complete: no extent in reach was left out.
        cells: by row, then by column.
    """

    leading: Shape
    rows: tuple[int, ...]
    cols: tuple[int, ...]
    unit: int
    is_complete: bool
    cells: tuple[tuple[Cell, ...], ...]

    @property
    def legal_count(self) -> int:
        return self.counts[CellKind.LEGAL]

    @property
    def counts(self) -> Counter[CellKind]:
        """Cells of each kind."""
        return Counter(cell.kind for row in self.cells for cell in row)


def landscape(
    job: Job, chosen: Shape, parameters: CostParameters, *, max_tiles: int | None
) -> Landscape:
    """Estimate the tile shapes that differ from a chosen one in the last two axes only.

    Args:
        job: the cast.
        chosen: a legal tile shape, as `tune` returns it; it is one of the cells.
        parameters: the cost set to follow; the range is over it and all named sets.
        max_tiles: a tile shape that makes so many or more is refused; None: none is for that.

    Returns:
        At most 41 extents of each axis, from the least to beyond what fits UB.
    """
    unit = aligned_elems(job.bits, job.chip)
    leading = chosen[:-2]
    cols, all_cols = _extents(job, leading, chosen, axis=-1, step=unit)
    rows, all_rows = (
        _extents(job, leading, chosen, axis=-2, step=1) if len(chosen) > 1 else ((1,), True)
    )
    outer = rows if len(chosen) > 1 else (None,)
    tiles = [(*leading, *(() if row is None else (row,)), col) for row in outer for col in cols]
    clipped = [tuple(map(min, tile, job.shape)) for tile in tiles]
    counts = [len(Grid(shape=job.shape, tile_shape=tile)) for tile in clipped]

    def refused(count: int, is_legal: bool) -> tuple[CellKind, str]:
        """The kind of a tile shape, and why it is not legal or left out; empty if it is neither."""
        if not is_legal:
            safe = job.chip.ub_safe_bytes
            text = f"two tiles do not fit the {safe:,} B of UB that are safe for user code"
            return CellKind.ILLEGAL, text
        if max_tiles is not None and count >= max_tiles:
            text = f"it makes {count:,} tiles; fewer than {max_tiles:,} are allowed"
            return CellKind.TOO_MANY_TILES, text
        return CellKind.LEGAL, ""

    refusals = list(map(refused, counts, are_legal(job, as_tiles(clipped)).tolist()))
    legal = [tile for tile, (_, text) in zip(clipped, refusals, strict=True) if not text]
    costs = iter(estimates(job, as_tiles(legal), parameters, COST_SETS.values()))
    cells = [
        Cell(
            tile_shape=tile,
            tile_count=count,
            kind=kind,
            estimate=None if refusal else next(costs),
            refusal=refusal,
        )
        for tile, count, (kind, refusal) in zip(tiles, counts, refusals, strict=True)
    ]
    starts = range(0, len(cells), len(cols))
    return Landscape(
        leading=leading,
        rows=rows,
        cols=cols,
        unit=unit,
        is_complete=all_cols and all_rows,
        cells=tuple(tuple(cells[start : start + len(cols)]) for start in starts),
    )


def _extents(
    job: Job, leading: Shape, chosen: Shape, *, axis: int, step: int
) -> tuple[tuple[int, ...], bool]:
    """Extents of an axis; True if no extent in reach was left out."""
    unit = aligned_elems(job.bits, job.chip)
    least = [*leading, *([1] * (len(chosen) > 1)), unit]
    least[axis] = step
    fit = max(
        job.chip.ub_safe_bytes // slots_bytes(math.prod(least[:-1]), least[-1], job.bits, job.chip),
        1,
    )
    longest = min(-(-job.shape[axis] // step), fit * _BEYOND)
    if longest <= _MOST_EXTENTS:
        return tuple(step * number for number in range(1, longest + 1)), True
    spaced = np.geomspace(1, longest, _MOST_EXTENTS).round().astype(int)
    numbers = {*map(int, spaced), chosen[axis] // step}
    return tuple(step * number for number in sorted(numbers)), False
