"""The casts of a kernel that ran and the operations around them, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from ascend_kernels.program import TileProgram
from tiling.grid import Grid, Shape, Tile, first_tile


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Something that ran.

    Attributes:
        file: where the call stands.
        line: its line.
        loops: the loops around it with their index, outermost first.
        kernel: name of the kernel; empty outside.
    """

    file: str
    line: int
    loops: tuple[str, ...] = ()
    kernel: str = ""

    @property
    def place(self) -> str:
        """The call and the loops around it, in words."""
        within = f" in {self.kernel}" if self.kernel else ""
        loops = "".join(f", {loop}" for loop in self.loops)
        return f"at {PurePath(self.file).name}:{self.line}{within}{loops}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRecord(Placed):
    """One cast that ran.

    Attributes:
        program: how the cores do it.
    """

    program: TileProgram

    def tile_at(self, index: Shape) -> tuple[Tile, int]:
        """The tile that holds an element of the output, and its core."""
        return _tile_and_core(self.program.plan.grid, index, self.program.plan.chip.vector_cores)

    def __str__(self) -> str:
        return f"cast {self.program.resolution.rule} {self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord(Placed):
    """The tiles of an operation's output; they go to the cores as those of a cast.

    Attributes:
        operation: its name.
        grid: the tiles of its output.
        core_count: the cores that share them.
    """

    operation: str
    grid: Grid
    core_count: int

    def tile_at(self, index: Shape) -> tuple[Tile, int]:
        """The tile that holds an element of the output, and its core."""
        return _tile_and_core(self.grid, index, self.core_count)

    def __str__(self) -> str:
        return f"{self.operation} {self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationStep(Placed):
    """One operation around the casts that was called.

    Attributes:
        name: upstream's.
        result: dtype and shape of what it gave.
    """

    name: str
    result: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.result, self.place)))


Step = CastRecord | OperationStep


def _tile_and_core(grid: Grid, index: Shape, cores: int) -> tuple[Tile, int]:
    number = 0
    for count, position, extent in zip(grid.counts, index, grid.tile_shape, strict=True):
        number = number * count + position // extent
    core = next(c for c in range(cores) if number < first_tile(c + 1, len(grid), cores))
    return grid.tile(number), core
