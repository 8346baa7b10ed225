"""The tile program of a chain: all its casts on each part of a tile while it lies in UB."""

from __future__ import annotations

from ascend_kernels.program import TileProgram, lower
from ascend_kernels.routing.chains import Chain, resolution_of
from ascend_kernels.vector_work import element_bits, vector_work
from tiling.chips import Chip
from tiling.cost import COST_SETS, DEFAULT_COST_SET
from tiling.estimate import Estimate, estimates
from tiling.grid import Shape, as_tiles
from tiling.loads import Job
from tiling.plan import plan


def route_program(
    chain: Chain, shape: Shape, tile_shape: Shape | None, chip: Chip, *, strict: bool = False
) -> TileProgram:
    """Plan and lower a chain as one program.

    Args:
        chain: the casts.
        shape: of the tensor.
        tile_shape: None: the planner chooses.
        chip: to plan for.
        strict: as for `tiling.plan.plan`.

    Raises:
        ShapeError, TileShapeError: as `tiling.plan.plan`.
    """
    resolution = resolution_of(chain)
    bits, work = element_bits(resolution), vector_work(resolution)
    tiles = plan(shape, tile_shape, bits, chip, strict=strict, work=work)
    return lower(tiles, resolution)


def route_estimate(program: TileProgram) -> Estimate:
    """The estimated cost of a program under the default cost set, with the range over all."""
    tiles = program.plan
    work = vector_work(program.resolution)
    job = Job(shape=tiles.shape, bits=tiles.bits, work=work, chip=tiles.chip)
    sets = COST_SETS.values()
    (estimate,) = estimates(job, as_tiles([tiles.tile_shape]), DEFAULT_COST_SET, sets)
    return estimate
