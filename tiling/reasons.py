"""Explains the estimated cost of a tile shape in a sentence, and lists what speaks against it."""

from __future__ import annotations

from typing import Final

from tiling.cost import CostParameters
from tiling.estimate import Estimate, Limit
from tiling.plan import TilePlan

_LIMITS: Final = {
    Limit.MTE2: "copies into UB",
    Limit.V: "vector work",
    Limit.MTE3: "copies out of UB",
    Limit.GM: "the chip's GM bandwidth",
    Limit.S: "issuing instructions",
}


def reason(
    plan: TilePlan,
    estimate: Estimate,
    parameters: CostParameters,
    least_cycles: float,
    legal_count: int,
) -> str:
    """Tell the rank of a tile shape among the legal ones, its limit and its largest loss."""
    more = estimate.cycles / least_cycles - 1
    place = f"{more:.1%} more cycles than the fastest"
    if round(estimate.cycles - least_cycles, 3) <= 0:
        place = f"no legal tile shape of {legal_count} takes fewer cycles"
    cycles, text = max(_losses(plan, estimate, parameters))
    loss = f"; most of what the bound lacks is {text}" if round(cycles, 3) > 0 else ""
    return f"{place}; limited by {_LIMITS[estimate.limit]}{loss}"


def _losses(
    plan: TilePlan, estimate: Estimate, parameters: CostParameters
) -> list[tuple[float, str]]:
    """Cycles beyond the bandwidth bound, told apart by what they go into."""
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


def warnings_of(plan: TilePlan) -> tuple[str, ...]:
    """List what `cast` warns of under this plan, and what stays idle."""
    found = list(plan.diagnostics)
    cores = plan.chip.vector_cores
    if plan.busy_cores < cores:
        found.append(f"{cores - plan.busy_cores} of {cores} vector cores have no tile")
    if not plan.ub.is_double_buffered:
        found.append(f"two tiles do not fit UB: {plan.buffering}")
    return tuple(found)
