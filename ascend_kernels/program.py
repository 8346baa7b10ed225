"""TileProgram: a plan and a resolved cast, written out as the instructions of every core.

    for each tile of the core:            (for each part of it, where UB does not hold all twice)
        CopyIn    DataCopyPad  gm.x -> in       rows at one pitch in elements on both sides
        Compute   Cast ...     in -> out        so that one instruction spans them all
        CopyOut   DataCopyPad  out -> gm.y

Two slots of UB take turns, kept apart by flags as AscendC's queues do it: enque sets a flag for
the next pipe and deque waits for it; free sets one for the pipe before, and the alloc that takes
the slot again waits for it.

The program owns every address and decides nothing: tiles, cores and UB offsets are the plan's,
steps are the resolution's. Its loop is lazy, so a program costs the same for any number of tiles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ascend_kernels.matrix import (
    DEFAULT_CONTROLS,
    MATRIX,
    CastControls,
    CastStep,
    LowByteStep,
    Operand,
    Resolution,
    ScalarStep,
    Step,
)
from simulator.corrections import ElementStep
from simulator.machine.cast_table import CTRL_CAST, CTRL_FLOAT, CTRL_GLOBAL, CTRL_NAN
from simulator.machine.core import ScalarWork
from simulator.machine.isa import (
    AndRepeat,
    Cast,
    CastRepeat,
    DataCopyPad,
    Duplicate,
    GmAddress,
    HardEvent,
    Instruction,
    Pipe,
    PipeBarrier,
    RestoreCtrl,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    UbAddress,
    VectorScalar,
    WaitFlag,
)
from simulator.machine.memory import UbRange
from simulator.numbers.convert import WRAP, Conversion
from simulator.numbers.formats import INT16, UINT8
from simulator.numbers.rounding import RoundMode
from tiling.chips import Chip
from tiling.grid import Grid, Shape, Tile
from tiling.loads import MAX_STRIDE_BYTES, by_rows
from tiling.plan import TilePlan
from tiling.ub import SLOTS, UbBuffer, aligned_elems, padded_row_bytes, round_up

INPUT: Final = "x"
OUTPUT: Final = "y"


class _RowCopy(NamedTuple):
    """A copy of rows of a part, wherever in GM the part begins."""

    operand: Operand
    elem: int
    """Of GM, counted from the first one of the part."""
    ub: UbAddress
    bits: int
    block_count: int
    block_len_bytes: int
    gm_stride: int
    ub_stride: int

    def at(self, first_elem: int) -> DataCopyPad:
        """The copy of a part that begins at an element of GM."""
        reads = self.operand is Operand.IN
        gm = GmAddress(
            tensor=INPUT if reads else OUTPUT,
            offset_bytes=(first_elem + self.elem) * self.bits // 8,
        )
        return DataCopyPad(
            dst=self.ub if reads else gm,
            src=gm if reads else self.ub,
            block_count=self.block_count,
            block_len_bytes=self.block_len_bytes,
            src_stride=self.gm_stride if reads else self.ub_stride,
            dst_stride=self.ub_stride if reads else self.gm_stride,
            elem_bytes=max(self.bits // 8, 1),
        )


_Body = tuple[Instruction | _RowCopy, ...]
"""The instructions that parts of one shape in one slot share: they begin elsewhere in GM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileProgram:
    """A cast as the cores run it: from `gm.x` to `gm.y`.

    Attributes:
        plan: tiles, cores, UB.
        resolution: the cast.
        controls: the control bits that hold while it runs.
        conversions: what the steps do to each element.
    """

    plan: TilePlan
    resolution: Resolution
    controls: CastControls = DEFAULT_CONTROLS
    conversions: tuple[ElementStep, ...] = field(init=False, repr=False, compare=False)
    _bodies: dict[tuple[Shape, int, bool], _Body] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        steps = element_steps(self.resolution, self.controls)
        object.__setattr__(self, "conversions", steps)

    @property
    def inf_nan_mode(self) -> bool:
        """FP16 and BF16 results keep infinities and NaN (CTRL[48])."""
        return self.controls.inf_nan_mode

    @property
    def chip(self) -> Chip:
        return self.plan.chip

    @property
    def cores(self) -> range:
        """Cores that have at least one tile."""
        return range(self.plan.busy_cores)

    @property
    def input(self) -> str:
        """Name of the tensor that is read in GM."""
        return INPUT

    @property
    def output(self) -> str:
        """Name of the tensor that is written in GM."""
        return OUTPUT

    def ub_ranges(self, core: int) -> tuple[UbRange, ...]:
        """The buffers of the plan, by name; every core lays UB out alike."""
        return tuple(_ub_range(buffer) for buffer in self.plan.ub.buffers)

    def instructions(self, core: int) -> Iterator[Instruction]:
        """All instructions of a core, in program order, one at a time."""
        for _, instruction in self.located(core):
            yield instruction

    def issued(self, core: int) -> Iterator[Instruction | UbRange]:
        """The instructions of a core, and before each part the buffers that it takes.

        Nothing is handed from one part to the next: its slot and the scratch are allocated anew.
        """
        for _, each in self._walk(core):
            yield each

    def located(self, core: int) -> Iterator[tuple[Tile | None, Instruction]]:
        """The instructions of a core with the tile that each belongs to."""
        grid = self.plan.grid
        tile: Tile | None = None
        for index, each in self._walk(core):
            if index is None:
                tile = None
            elif tile is None or tile.index != index:
                tile = grid.tile(index)
            if not isinstance(each, UbRange):
                yield tile, each

    def _walk(self, core: int) -> Iterator[tuple[int | None, Instruction | UbRange]]:
        """The instructions and buffers of a core with the index of the tile that each is for."""
        for instruction in self.prologue():
            yield None, instruction
        taken = [tuple(self._taken(slot)) for slot in range(SLOTS)]
        number = -1
        for number, part in enumerate(self.parts(core)):
            tile = part.index
            if number and self.resolution.ends_on_scratch:
                yield tile, PipeBarrier(of=Pipe.V)
            for buffer in taken[number % SLOTS]:
                yield tile, buffer
            for instruction in self.part_instructions(part, number % SLOTS, number >= SLOTS):
                yield tile, instruction
        yield None, RestoreCtrl()
        for slot in range(min(number + 1, SLOTS)):
            yield None, WaitFlag(event=HardEvent.V_MTE2, event_id=slot)
            yield None, WaitFlag(event=HardEvent.MTE3_V, event_id=slot)

    def _taken(self, slot: int) -> Iterator[UbRange]:
        """The buffers that a part takes: those of its slot, and the scratch, which has one slot."""
        for buffer in self.plan.ub.buffers:
            if buffer.slot == slot or buffer.role == Operand.TMP.value:
                yield _ub_range(buffer)

    def where(self, core: int, index: int) -> str:
        """Name the tile that an instruction of a core works on."""
        tile, _ = next(itertools.islice(self.located(core), index, None))
        if tile is None:
            return "outside the tiles"
        return f"tile {tile.index} at {list(tile.offset)}, {list(tile.shape)} elements"

    def parts(self, core: int) -> Iterator[Tile]:
        """Yields the parts that a core holds in UB in turn: its tiles, or pieces of them.

        Their axes are those of the plan's merged tiles.
        """
        tiles = map(self.plan.merged.tile, self.plan.core_tiles(core))
        return (part for tile in tiles for part in self.plan.parts(tile))

    def prologue(self) -> Iterator[Instruction]:
        """Yields the instructions before the first tile of a core."""
        yield SetCtrl(bit=CTRL_FLOAT, value=self.inf_nan_mode)
        yield SetCtrl(bit=CTRL_CAST, value=self.resolution.begins_truncating)
        if self.controls.fp8_nan:
            yield SetCtrl(bit=CTRL_NAN, value=True)
        if not self.controls.global_saturation:
            yield SetCtrl(bit=CTRL_GLOBAL, value=False)
        if any(cast.is_scaled for cast in self.resolution.casts):
            yield SetDeqScale(scale=1.0)

    def part_instructions(self, part: Tile, slot: int, reused: bool) -> Iterator[Instruction]:
        """Copy in, compute and copy out one part of a tile.

        Args:
            part: what is converted.
            slot: which of the UB slots it takes.
            reused: the slot was taken before, so its flags tell when it is free.
        """
        key = part.shape, slot, reused
        if key not in self._bodies:
            self._bodies[key] = tuple(self._body(*key))
        strides = _strides(self.plan.merged.shape)
        first_elem = sum(o * s for o, s in zip(part.offset, strides, strict=True))
        for each in self._bodies[key]:
            yield each.at(first_elem) if isinstance(each, _RowCopy) else each

    def _body(self, shape: Shape, slot: int, reused: bool) -> Iterator[Instruction | _RowCopy]:
        if reused:
            yield WaitFlag(event=HardEvent.V_MTE2, event_id=slot)
        yield from self._copies(shape, Operand.IN, slot)
        yield SetFlag(event=HardEvent.MTE2_V, event_id=slot)
        yield WaitFlag(event=HardEvent.MTE2_V, event_id=slot)
        if reused:
            yield WaitFlag(event=HardEvent.MTE3_V, event_id=slot)
        yield from self._steps(shape, slot)
        yield SetFlag(event=HardEvent.V_MTE2, event_id=slot)
        yield SetFlag(event=HardEvent.V_MTE3, event_id=slot)
        yield WaitFlag(event=HardEvent.V_MTE3, event_id=slot)
        yield from self._copies(shape, Operand.OUT, slot)
        yield SetFlag(event=HardEvent.MTE3_V, event_id=slot)

    def _steps(self, shape: Shape, slot: int) -> Iterator[Instruction]:
        """The vector work on a part; steps that hand data to each other are kept apart."""
        truncates = self.resolution.begins_truncating
        for number, step in enumerate(self.resolution.steps):
            if number:
                yield PipeBarrier(of=Pipe.V)
            if isinstance(step, CastStep) and step.truncates != truncates:
                truncates = step.truncates
                yield SetCtrl(bit=CTRL_CAST, value=truncates)
            yield from self._compute(step, shape, slot)
        if truncates != self.resolution.begins_truncating:
            yield SetCtrl(bit=CTRL_CAST, value=not truncates)

    def __str__(self) -> str:
        rule, mode = self.resolution.rule, self.resolution.mode
        lines = [
            f"TileProgram {rule}" + (f" CAST_{mode}" if mode else ""),
            f"  plan    {self.plan}",
        ]
        lines += [
            f"  buffer  {b.role}{b.slot}: ub+{b.offset_bytes}, {b.size_bytes} B"
            for b in self.plan.ub.buffers
        ]
        lines += [f"  set up  {instruction}" for instruction in self.prologue()]
        first = self.plan.merged.tile(0)
        parts = len(Grid(shape=first.shape, tile_shape=self.plan.ub.pass_of(first.shape)))
        lines.append(
            f"  tile 0 of {len(self.plan.grid)}"
            + (f", part 0 of {parts}" if parts > 1 else "")
            + "; the others alike"
        )
        part = next(self.plan.parts(first))
        lines += [
            f"    {instruction.pipe.name:<5} {instruction}"
            for instruction in self.part_instructions(part, 0, reused=False)
        ]
        return "\n".join(lines)

    @property
    def _satmode(self) -> bool | None:
        """The SatMode of its instructions, which counts where no control bit holds for all."""
        return None if self.controls.global_saturation else self.resolution.saturate

    def _bits(self, operand: Operand) -> int:
        bits = self.plan.bits
        if operand is Operand.IN:
            return bits.src
        return bits.dst if operand is Operand.OUT else bits.tmp

    def _pitch_elems(self, operand: Operand, cols: int) -> int:
        """Elements from one row of an operand in UB to the next, in units of its own width."""
        if self.plan.ub.has_one_pitch:
            return round_up(cols, aligned_elems(self.plan.bits, self.chip))
        if operand is Operand.TMP:
            return self._pitch_elems(Operand.IN, cols)
        bits = self._bits(operand)
        return padded_row_bytes(cols, bits, self.chip) * 8 // bits

    def _ub(self, operand: Operand, slot: int, size_bytes: int = 0) -> UbAddress:
        """The byte of a buffer that lies behind so many others."""
        slot = 0 if operand is Operand.TMP else slot
        base = self.plan.ub.buffer(operand.value, slot).offset_bytes
        return UbAddress(offset_bytes=base + size_bytes)

    def _copies(self, shape: Shape, operand: Operand, slot: int) -> Iterator[_RowCopy]:
        """Move a part between GM and UB, a row a block."""
        bits = self._bits(operand)
        cols = shape[-1]
        row_bytes = self._pitch_elems(operand, cols) * bits // 8
        ub_gap = (row_bytes - padded_row_bytes(cols, bits, self.chip)) // self.chip.block_bytes
        for elem, row, blocks, pitch_elems in _block_groups(self.plan.merged.shape, shape, bits):
            gaps = ((pitch_elems - cols) * bits // 8, ub_gap) if blocks > 1 else (0, 0)
            yield _RowCopy(
                operand=operand,
                elem=elem,
                ub=self._ub(operand, slot, row * row_bytes),
                bits=bits,
                block_count=blocks,
                block_len_bytes=cols * bits // 8,
                gm_stride=gaps[0],
                ub_stride=gaps[1],
            )

    def _compute(self, step: Step, shape: Shape, slot: int) -> Iterator[Instruction]:
        rows, cols = math.prod(shape[:-1]), shape[-1]
        if isinstance(step, LowByteStep):
            count = (rows - 1) * self._pitch_elems(step.operand, cols) + cols
            yield from self._keep_low_bytes(step, count, slot)
            return
        pitches = [self._pitch_elems(operand, cols) for operand in (step.source, step.target)]
        if isinstance(step, ScalarStep):
            yield VectorScalar(
                op=step.op,
                dst=self._ub(step.target, slot),
                src=self._ub(step.source, slot),
                format=step.format,
                scalar=step.scalar,
                count=(rows - 1) * pitches[0] + cols,
            )
            return
        if rows == 1 or pitches[0] == pitches[1]:
            # Rows lie equally far apart on both sides: one Cast spans them, padding included.
            yield self._cast(step, slot, (0, 0), (rows - 1) * pitches[0] + cols)
            return
        lanes = 8 * self.chip.repeat_bytes // max(step.src.bits, step.dst.bits)
        if by_rows(rows, cols, max(pitches), lanes, self.chip):
            for row in range(rows):
                yield self._cast(step, slot, (row * pitches[0], row * pitches[1]), cols)
            return
        for row in range(0, rows, self.chip.max_repeat):
            for col in range(0, cols, lanes):
                source, target = (row * pitch + col for pitch in pitches)
                yield CastRepeat(
                    dst=self._ub(step.target, slot, target * step.dst.bits // 8),
                    src=self._ub(step.source, slot, source * step.src.bits // 8),
                    dst_format=step.dst,
                    src_format=step.src,
                    mode=step.mode,
                    saturate=self._satmode,
                    mask=min(lanes, cols - col),
                    repeat_times=min(self.chip.max_repeat, rows - row),
                    dst_rep_stride=pitches[1] * step.dst.bits // (8 * self.chip.block_bytes),
                    src_rep_stride=pitches[0] * step.src.bits // (8 * self.chip.block_bytes),
                )

    def _cast(self, step: CastStep, slot: int, starts: tuple[int, int], count: int) -> Cast:
        return Cast(
            dst=self._ub(step.target, slot, starts[1] * step.dst.bits // 8),
            src=self._ub(step.source, slot, starts[0] * step.src.bits // 8),
            dst_format=step.dst,
            src_format=step.src,
            mode=step.mode,
            saturate=self._satmode,
            count=count,
        )

    def _keep_low_bytes(self, step: LowByteStep, count: int, slot: int) -> Iterator[Instruction]:
        """A mask of one block, which every block of the elements meets; whole repeats first."""
        lanes = 8 * self.chip.repeat_bytes // INT16.bits
        mask = self._ub(step.scratch, slot)
        yield Duplicate(dst=mask, value=0x00FF, count=8 * self.chip.block_bytes // INT16.bits)
        yield PipeBarrier(of=Pipe.V)
        repeats, rest = divmod(count, lanes)
        for start, times, active in ((0, repeats, lanes), (repeats, 1, rest)):
            if not times or not active:
                continue
            operand = self._ub(step.operand, slot, start * self.chip.repeat_bytes)
            yield AndRepeat(
                dst=operand,
                src0=operand,
                src1=mask,
                mask=active,
                repeat_times=times,
                src1_blk_stride=0,
                src1_rep_stride=0,
            )


def _ub_range(buffer: UbBuffer) -> UbRange:
    return UbRange(
        name=f"{buffer.role}{buffer.slot}",
        offset_bytes=buffer.offset_bytes,
        size_bytes=buffer.size_bytes,
    )


def conversions(
    resolution: Resolution, controls: CastControls = DEFAULT_CONTROLS
) -> tuple[Conversion, ...]:
    """Returns the steps of a row of the matrix as conversions between number formats."""
    steps = element_steps(resolution, controls)
    return tuple(step for step in steps if isinstance(step, Conversion))


def element_steps(
    resolution: Resolution, controls: CastControls = DEFAULT_CONTROLS
) -> tuple[ElementStep, ...]:
    """Returns the work of a cast's or a route's steps on each element."""
    family, saturate = resolution.rule.family, resolution.saturate
    return tuple(
        one
        for step in resolution.steps
        for one in step_work(step, family, controls, saturate=saturate)
    )


def step_work(
    step: Step, family: str, controls: CastControls = DEFAULT_CONTROLS, *, saturate: bool = True
) -> tuple[ElementStep, ...]:
    """Returns the work of one step on each element, on a chip of a family."""
    if isinstance(step, ScalarStep):
        return (ScalarWork(op=step.op, format=step.format, scalar=step.scalar),)
    return _conversions(step, family, controls, saturate)


def _conversions(
    step: CastStep | LowByteStep, family: str, controls: CastControls, saturate: bool
) -> tuple[Conversion, ...]:
    if isinstance(step, LowByteStep):
        keep = Conversion(src=INT16, dst=UINT8, mode=RoundMode.TRUNC, policy=WRAP)
        widen = Conversion(src=UINT8, dst=INT16, mode=RoundMode.TRUNC, policy=WRAP)
        return keep, widen
    rule = MATRIX[family][step.src, step.dst]
    mode = RoundMode.RINT if step.mode is None else step.mode
    policy = WRAP if step.truncates else rule.policy(controls, saturate=saturate)
    return (Conversion(src=step.src, dst=step.dst, mode=mode, policy=policy),)


def lower(
    plan: TilePlan, resolution: Resolution, controls: CastControls = DEFAULT_CONTROLS
) -> TileProgram:
    """Write a planned and resolved cast as a tile program."""
    return TileProgram(plan=plan, resolution=resolution, controls=controls)


def _strides(shape: Shape) -> Shape:
    """Elements of GM from one position along each axis to the next."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _block_groups(whole: Shape, part: Shape, bits: int) -> Iterator[tuple[int, int, int, int]]:
    """Group the rows of a part into equally spaced blocks, as few groups as one stride allows.

    The longest axis of rows goes into the copy, the innermost of equal ones; the others are walked
    through. Rows lie in UB in the order in which they are copied.

    Yields:
        The first element in GM, counted from that of the part, the first row in UB, the number of
        blocks, and the elements from one block to the next in GM.
    """
    cols = part[-1]
    axes = [(1, cols), *zip(part[:-1], _strides(whole)[:-1], strict=True)]
    longest = max(reversed(range(len(axes))), key=lambda axis: axes[axis][0])
    blocks, pitch = axes.pop(longest)
    if (pitch - cols) * bits // 8 > MAX_STRIDE_BYTES:
        axes.append((blocks, pitch))
        blocks, pitch = 1, cols
    row = 0
    for position in itertools.product(*(range(extent) for extent, _ in axes)):
        elem = sum(i * s for i, (_, s) in zip(position, axes, strict=True))
        yield elem, row, blocks, pitch
        row += blocks
