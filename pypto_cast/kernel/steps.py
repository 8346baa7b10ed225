"""The casts of a kernel that ran and the operations around them, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from ascend_kernels.program import TileProgram
from tiling.grid import Shape, Tile


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRecord:
    """One cast that ran.

    Attributes:
        program: how the cores do it.
        file: where the call stands.
        line: its line.
        loops: the loops around it with their index, outermost first.
        kernel: name of the kernel; empty for a cast outside.
    """

    program: TileProgram
    file: str
    line: int
    loops: tuple[str, ...] = ()
    kernel: str = ""

    def tile_at(self, index: Shape) -> tuple[Tile, int]:
        """The tile that holds an element of the output, and its core."""
        plan = self.program.plan
        number = 0
        for count, position, extent in zip(plan.grid.counts, index, plan.tile_shape, strict=True):
            number = number * count + position // extent
        core = next(c for c in self.program.cores if number in plan.core_tiles(c))
        return plan.grid.tile(number), core

    def __str__(self) -> str:
        place = f"{PurePath(self.file).name}:{self.line}"
        within = f" in {self.kernel}" if self.kernel else ""
        return f"cast {self.program.resolution.rule} at {place}{within}" + "".join(
            f", {loop}" for loop in self.loops
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """One operation around the casts that ran.

    Attributes:
        name: upstream's.
        result: dtype and shape of what it gave.
        file: where the call stands.
        line: its line.
        loops: the loops around it with their index, outermost first.
    """

    name: str
    result: str
    file: str
    line: int
    loops: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.name} {self.result} at {PurePath(self.file).name}:{self.line}"
        return "".join((place, *(f", {loop}" for loop in self.loops)))
