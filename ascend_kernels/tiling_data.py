"""The tiling data of a cast: a flat struct that the host fills from a TileProgram.

Its layout is asserted in C++ and here, from one list of fields.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ascend_kernels.instances import A2_A3_TARGET, SCALARS, is_row
from ascend_kernels.matrix import (
    LowByteStep,
    Operand,
    ScalarStep,
    Step,
)
from ascend_kernels.program import TileProgram
from ascend_kernels.routing.chains import MOST_WORK
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from tiling.grid import Shape
from tiling.plan import MAX_DIMS, TilePlan

_OPERANDS: Final = tuple(Operand)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of the tiling data: a 32-bit word, or several.

    Attributes:
        name: in C++ and in Python.
        words: how many there are; 0: one that is no array.
        text: what it says.
    """

    name: str
    words: int
    text: str

    @property
    def size_bytes(self) -> int:
        return max(self.words, 1) * ctypes.sizeof(ctypes.c_uint32)


TILING_FIELDS: Final = (
    Field(name="shape", words=MAX_DIMS, text="of the tensor, axes merged; missing ones: 1"),
    Field(name="tile_shape", words=MAX_DIMS, text="of all tiles but the tails"),
    Field(
        name="pass_shapes",
        words=MAX_DIMS << MAX_DIMS,
        text="what a slot holds of a tile, by its tails: a bit an axis, the last one lowest",
    ),
    Field(name="tile_count", words=0, text="tiles of the tensor"),
    Field(name="in_bytes", words=0, text="UB of the input of one pass, in each of the two slots"),
    Field(name="out_bytes", words=0, text="UB of the output, likewise"),
    Field(name="tmp_bytes", words=0, text="UB of the scratch, which both slots share; 0: none"),
    Field(name="one_pitch", words=0, text="1: rows are as many elements apart in and out of UB"),
    Field(name="inf_nan", words=0, text="1: FP16 and BF16 results keep inf and NaN (CTRL[48])"),
    Field(name="saturate", words=0, text="1: integer results clamp; 0: they keep the low bits"),
    Field(
        name="fp8_nan", words=0, text="1: E5M2 and E4M3FN keep NaN where they saturate (CTRL[50])"
    ),
    Field(
        name="own_saturation", words=0, text="1: Cast saturates by its own SatMode (CTRL[60]: 0)"
    ),
    Field(name="step_count", words=0, text="of a route; 0: the steps are the instance's"),
    Field(name="steps", words=MOST_WORK, text="instruction, source, target, low bits: bytes"),
    Field(name="scalars", words=MOST_WORK, text="of each step: an integer, or the code of a float"),
)


class CastTilingData(ctypes.Structure):
    """The struct of this name in C++."""

    _fields_ = [
        (field.name, ctypes.c_uint32 * field.words if field.words else ctypes.c_uint32)
        for field in TILING_FIELDS
    ]


def tiling_data(program: TileProgram) -> CastTilingData:
    """Returns the fields of a program that the kernel reads.

    Raises:
        ValueError: each Cast shall go by its own SatMode, and that one shall not saturate.
    """
    plan, controls = program.plan, program.controls
    if not controls.global_saturation and not program.resolution.saturate:
        raise ValueError(
            "the AscendC kernel has no SaturationMode.OFF under options(global_saturation=False): "
            "Cast of AscendC's memory API has SatMode SAT alone; another engine runs it"
        )
    sizes = {buffer.role: buffer.size_bytes for buffer in plan.ub.buffers}
    steps = [] if is_row(program.resolution) else [*map(_route_step, program.resolution.steps)]
    values = {
        "shape": _words(plan.merged.shape),
        "tile_shape": _words(plan.merged.tile_shape),
        "pass_shapes": (ctypes.c_uint32 * (MAX_DIMS << MAX_DIMS))(*_pass_shapes(plan)),
        "tile_count": len(plan.grid),
        "in_bytes": sizes["in"],
        "out_bytes": sizes["out"],
        "tmp_bytes": sizes.get("tmp", 0),
        "one_pitch": int(plan.ub.has_one_pitch),
        "inf_nan": int(program.inf_nan_mode),
        "saturate": int(not any(cast.truncates for cast in program.resolution.casts)),
        "fp8_nan": int(controls.fp8_nan),
        "own_saturation": int(not controls.global_saturation),
        "step_count": len(steps),
        "steps": (ctypes.c_uint32 * MOST_WORK)(*(word for word, _ in steps)),
        "scalars": (ctypes.c_uint32 * MOST_WORK)(*(scalar for _, scalar in steps)),
    }
    return CastTilingData(**values)


def tiling_words(program: TileProgram) -> tuple[int, ...]:
    """The tiling data as its 32-bit words, in order."""
    data = tiling_data(program)
    return tuple((ctypes.c_uint32 * (ctypes.sizeof(data) // 4)).from_buffer(data))


def _route_step(step: Step) -> tuple[int, int]:
    """A step of a route as the kernel reads it, from the low byte up, and its scalar."""
    if isinstance(step, LowByteStep):
        raise ValueError("a route keeps no low bytes")
    scalar, truncates = 0, False
    if isinstance(step, ScalarStep):
        number = len(A2_A3_TARGET.instances) + SCALARS.index((step.op, step.format))
        scalar = scalar_word(step.format, step.scalar)
    else:
        found = A2_A3_TARGET.number(step.src, step.dst, step.mode)
        assert found is not None, "a route takes the modes of the matrix"
        number, truncates = found, step.truncates
    places = (_OPERANDS.index(operand) for operand in (step.source, step.target))
    return int.from_bytes((number, *places, truncates), "little"), scalar


def scalar_word(fmt: Format, scalar: float) -> int:
    """A scalar as 32 bits: the code of an FP32 for floats, else the low bits of the integer."""
    if isinstance(fmt, f.FloatFormat):
        return int.from_bytes(struct.pack("<f", scalar), "little")
    return int(scalar) & 0xFFFFFFFF


def _pass_shapes(plan: TilePlan) -> Iterator[int]:
    """Yields the pass of a full tile, then of those that are tails along each choice of axes."""
    grid = plan.merged
    tails = (s % t or t for s, t in zip(grid.shape, grid.tile_shape, strict=True))
    along = [*itertools.repeat((1, 1), MAX_DIMS - len(grid.shape))]
    for extents in itertools.product(*along, *zip(grid.tile_shape, tails, strict=True)):
        yield from _full(plan.ub.pass_of(extents[-len(grid.shape) :]))


def _words(shape: Shape) -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * MAX_DIMS)(*_full(shape))


def _full(shape: Shape) -> Shape:
    return (1,) * (MAX_DIMS - len(shape)) + shape
