"""The tile program of a chain: all its casts on each part of a tile while it lies in UB."""

from __future__ import annotations

import itertools
import math

from ascend_kernels.program import TileProgram, lower
from ascend_kernels.routing.chains import Chain, resolution_of
from ascend_kernels.vector_work import element_bits, vector_work
from tiling.chips import Chip
from tiling.cost_sets import COST_SETS, DEFAULT_COST_SET
from tiling.estimate import Estimate, estimates
from tiling.grid import Shape, as_tiles
from tiling.loads import Job
from tiling.plan import TilePlan, TileShapeError, plan
from tiling.ub import aligned_elems


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
        ShapeError, TileShapeError: as `tiling.plan.plan`; TileShapeError too where parts of tiles
            have several rows that are not whole blocks in the input and in the output.
    """
    resolution = resolution_of(chain)
    bits, work = element_bits(resolution), vector_work(resolution)
    tiles = plan(shape, tile_shape, bits, chip, strict=strict, work=work)
    if len(chain.casts) > 1:
        _check_rows(tiles)
    return lower(tiles, resolution)


def _check_rows(tiles: TilePlan) -> None:
    """Refuse rows that would lie at different places in the formats of a chain."""
    unit = aligned_elems(tiles.bits, tiles.chip)
    shapes = itertools.product(
        *(
            {tile, size % tile or tile}
            for size, tile in zip(tiles.shape, tiles.tile_shape, strict=True)
        )
    )
    for tile in shapes:
        part = [min(p, t) for p, t in zip(tiles.ub.pass_shape, tile, strict=True)]
        if math.prod(part[:-1]) > 1 and part[-1] % unit and tiles.bits.src != tiles.bits.dst:
            alone = [*(1 for _ in part[:-1]), tiles.tile_shape[-1]]
            raise TileShapeError(
                f"tile shape {list(tiles.tile_shape)} of {list(tiles.shape)} has parts of several "
                f"rows of {part[-1]} elements; a route takes several rows at once only where they "
                f"are whole {tiles.chip.block_bytes} B blocks in input and output, here multiples "
                f"of {unit} elements. {alone} takes one row at a time"
            )


def route_estimate(program: TileProgram) -> Estimate:
    """The estimated cost of a program under the default cost set, with the range over all."""
    tiles = program.plan
    work = vector_work(program.resolution)
    job = Job(shape=tiles.shape, bits=tiles.bits, work=work, chip=tiles.chip)
    sets = COST_SETS.values()
    (estimate,) = estimates(job, as_tiles([tiles.tile_shape]), DEFAULT_COST_SET, sets)
    return estimate
