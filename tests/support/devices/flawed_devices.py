"""Stand-in devices that do not repeat themselves: a broken core, a bad place, a flaky unit.

Each takes a device that casts and gives another one. Where elements lie is asked of the plan, tile
by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ascend_kernels.checks.check_program import CheckProgram
from ascend_kernels.program import TileProgram
from pypto_cast.device.check import CastOnDevice
from simulator.numbers.formats import Codes
from tiling.grid import Tile

Values = npt.NDArray[Any]
Flaw = Callable[[CastOnDevice], CastOnDevice]
CheckDevice = Callable[[CheckProgram], npt.NDArray[np.uint8]]


def _region(tile: Tile) -> tuple[slice, ...]:
    spans = zip(tile.offset, tile.shape, strict=True)
    return tuple(slice(start, start + extent) for start, extent in spans)


def broken_core(core: int) -> Flaw:
    """Of one core the lowest bit of every result is wrong."""

    def flaw(device: CastOnDevice) -> CastOnDevice:
        def run(program: TileProgram, values: Values) -> Codes:
            codes = device(program, values).reshape(program.plan.shape).copy()
            for tile in program.plan.tiles(core) if core < program.plan.busy_cores else ():
                codes[_region(tile)] ^= 1
            return codes.reshape(-1)

        return run

    return flaw


def bad_position(position: int) -> Flaw:
    """In each tile one result is wrong, by its place."""

    def flaw(device: CastOnDevice) -> CastOnDevice:
        def run(program: TileProgram, values: Values) -> Codes:
            codes = device(program, values).reshape(program.plan.shape).copy()
            for core in range(program.plan.busy_cores):
                for tile in program.plan.tiles(core):
                    part = codes[_region(tile)].reshape(-1)
                    part[position : position + 1] ^= 1
                    codes[_region(tile)] = part.reshape(tile.shape)
            return codes.reshape(-1)

        return run

    return flaw


def flaky(one_in: int = 10_000, seed: int = 1) -> Flaw:
    """So many results are wrong, others at each run."""
    random = np.random.default_rng(seed)

    def flaw(device: CastOnDevice) -> CastOnDevice:
        def run(program: TileProgram, values: Values) -> Codes:
            codes = device(program, values).copy()
            codes[random.random(codes.size) < 1 / one_in] ^= 1
            return codes

        return run

    return flaw


def flaky_arithmetic(device: CheckDevice, one_in: int = 10_000, seed: int = 1) -> CheckDevice:
    """So many bytes of arithmetic are wrong, others at each run."""
    random = np.random.default_rng(seed)

    def run(program: CheckProgram) -> npt.NDArray[np.uint8]:
        found = device(program).copy()
        if program.kernel.startswith("v"):
            found[random.random(found.size) < 1 / one_in] ^= 4
        return found

    return run


def other_core(device: CheckDevice, core: int, kernels: tuple[str, ...]) -> CheckDevice:
    """One core answers something else in some kernels, by the beginnings of their names."""

    def run(program: CheckProgram) -> npt.NDArray[np.uint8]:
        found = device(program).copy()
        if program.kernel.startswith(kernels) and core < program.cores:
            found.reshape(program.cores, -1)[core] ^= 2
        return found

    return run
