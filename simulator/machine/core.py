"""One vector core: its UB, its registers, and the effect of each instruction.

Sources: CANN asc-devkit, DataCopy and DataCopyPad between GM and UB for A2/A3 (limits and padding),
Cast and the guide on masks, repeats and strides (its two forms), Maxs, Mins, Muls, ShiftLeft and
ShiftRight, which name the types of A2/A3; special values as the operations of
`simulator.arithmetic.table` have them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from simulator.arithmetic import total_order
from simulator.corrections import NIBBLES, NO_CORRECTIONS, Corrections, loop
from simulator.machine.cast_table import (
    CAST_TABLE,
    CTRL_AT_START,
    CTRL_BITS,
    CTRL_FLOAT,
    CTRL_GLOBAL,
    CastRow,
)
from simulator.machine.isa import (
    And,
    AndRepeat,
    Cast,
    CastRepeat,
    DataCopy,
    DataCopyPad,
    Duplicate,
    GmAddress,
    Instruction,
    RestoreCtrl,
    ScalarOp,
    SetCtrl,
    SetDeqScale,
    SourceRounding,
    UbAddress,
    VectorScalar,
)
from simulator.machine.memory import (
    UB,
    Addresses,
    Bytes,
    Effect,
    GlobalMemory,
    Known,
    Lives,
    Offsets,
    SimulatorFault,
    UbRange,
    VectorMemory,
    check_elem_bytes,
    check_gm_alignment,
    load,
    packed,
)
from simulator.machine.repeats import active_bytes, operands, refuse_overlap, repeat_effect
from simulator.numbers import elementwise, float_environment
from simulator.numbers.convert import Conversion, Policy
from simulator.numbers.formats import (
    FP16,
    FP32,
    INT16,
    INT32,
    UINT16,
    UINT32,
    Codes,
    FloatFormat,
    Format,
    IntFormat,
)
from simulator.numbers.rounding import RoundMode
from tiling.chips import Chip
from tiling.loads import MAX_STRIDE_BYTES

_NUMBERS: Final = (FP32, FP16, INT32, INT16)
SCALAR_FORMATS: Final[Mapping[ScalarOp, tuple[Format, ...]]] = {
    ScalarOp.MAXS: _NUMBERS,
    ScalarOp.MINS: _NUMBERS,
    ScalarOp.MULS: (FP32, FP16),
    ScalarOp.SHIFT_LEFT: (UINT32, UINT16),
    ScalarOp.SHIFT_RIGHT: (UINT32, UINT16),
}
"""The formats that are simulated. A2/A3 have Muls and shifts of signed integers too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarWork:
    """An instruction with a scalar as work on each element.

    Attributes:
        op: which one.
        format: of the elements, before and after.
        scalar: a number of the format, or the bits of a shift.
    """

    op: ScalarOp
    format: Format
    scalar: float

    @property
    def src(self) -> Format:
        return self.format

    @property
    def dst(self) -> Format:
        return self.format

    def reference(self, codes: Codes) -> Codes:
        """Give the codes of the results.

        Maxs and Mins count -0 below +0 and give NaN where an element is one; Muls rounds to nearest
        even, with subnormal numbers on both sides. A NaN that results is the format's one NaN. The
        shifts are those of unsigned integers: zeros move in.
        """
        fmt = self.format
        values = codes.view(fmt.dtype)
        scalar = np.asarray(self.scalar, fmt.dtype)
        with float_environment.quiet():
            results = _FUNCTIONS[self.op](values, scalar)
        made: Codes = np.ascontiguousarray(results).view(fmt.code_dtype)
        if isinstance(fmt, FloatFormat) and fmt.nan_code is not None:
            nan = np.isnan(results)
            if nan.any():
                made[nan] = fmt.nan_code
        return made


_FUNCTIONS: Final[Mapping[ScalarOp, Any]] = {
    ScalarOp.MAXS: total_order.maximum,
    ScalarOp.MINS: total_order.minimum,
    ScalarOp.MULS: np.multiply,
    ScalarOp.SHIFT_LEFT: np.left_shift,
    ScalarOp.SHIFT_RIGHT: np.right_shift,
}


MAX_BLOCK_COUNT: Final = 4095
MAX_BLOCK_LEN_BYTES: Final = 2097151

_KEPT_EFFECTS: Final = 1 << 10
"""Instructions of a core whose effects are kept: those of the bodies of loops are met again."""

VectorInstruction = Cast | CastRepeat | Duplicate | And | AndRepeat | VectorScalar
_Place = slice | Offsets
"""The bytes of an operand in UB, in the order of its elements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    """Control bits and deq scale, as an instruction finds them when it is issued.

    Attributes:
        ctrl: the control bits that are 1.
        deq_scale: None: never set.
        changed: the control bits that were set and not restored since, whatever their value: what
            a program finds in them is not known before.
    """

    ctrl: frozenset[int] = CTRL_AT_START
    deq_scale: float | None = None
    changed: frozenset[int] = frozenset()


def next_registers(
    registers: Registers, instruction: SetCtrl | RestoreCtrl | SetDeqScale, isa: str
) -> Registers:
    """The registers after a scalar instruction.

    Raises:
        SimulatorFault: the family has no such control bit.
    """
    if isinstance(instruction, SetDeqScale):
        return replace(registers, deq_scale=instruction.scale)
    if isinstance(instruction, RestoreCtrl):
        return Registers(deq_scale=registers.deq_scale)
    bit = frozenset({instruction.bit})
    if not bit <= CTRL_BITS.get(isa, frozenset()):
        raise SimulatorFault(f"{isa} has no control bit {instruction.bit} for Cast")
    ctrl = registers.ctrl | bit if instruction.value else registers.ctrl - bit
    return replace(registers, ctrl=ctrl, changed=registers.changed | bit)


def left_behind(registers: Registers) -> Iterator[tuple[int | None, str]]:
    """Yields the registers that a program does not leave to the next one as it must, and a text.

    Those are control bits that are not restored, and the deq scale, which cannot be read, where it
    is not 1: it has no bit.
    """
    for bit in sorted(registers.changed):
        ends = "the program ends with another CTRL than it found"
        yield bit, f"{ends}: bit {bit} was set and not restored"
    if registers.deq_scale not in (None, 1.0):
        yield None, f"the program leaves the deq scale at {registers.deq_scale:g}, not 1"


class VectorCore:
    """The memory of one AIV core and the meaning of each instruction.

    Args:
        number: which core.
        chip: sizes and limits.
        gm: global memory, shared by all cores.
        buffers: parts of UB that accesses must keep to; any part of UB if there are none.
        exact: convert by the definition instead of the fast paths.
        corrections: what a measured device converts in its own way.
        first_nibble: as for `load`.
        like: a core of the same chip and GM, perhaps with the same buffers.

    Raises:
        SimulatorFault: buffers overlap, are not aligned or do not fit UB.
    """

    def __init__(
        self,
        number: int,
        chip: Chip,
        gm: GlobalMemory,
        buffers: Sequence[UbRange] = (),
        *,
        exact: bool = False,
        corrections: Corrections = NO_CORRECTIONS,
        first_nibble: str = NIBBLES.default,
        like: VectorCore | None = None,
    ) -> None:
        self._number = number
        space: Addresses | None = None if like is None else like._space
        if space is None or space.buffers != buffers:
            space = Addresses(chip, gm, buffers)
        self._space: Addresses = space
        # Of UB only what an access may reach.
        self._ub = VectorMemory(max((each.stop for each in buffers), default=chip.ub_bytes))
        self._exact = exact
        self._corrections = corrections
        self._first_nibble = first_nibble

    def effect(self, instruction: Instruction) -> Effect:
        """Check an instruction's form and addresses, and return the bytes that it touches.

        Raises:
            SimulatorFault: the hardware does not permit it.
        """
        space = self._space
        if isinstance(instruction, (DataCopy, DataCopyPad)):
            return _copy_effect(instruction, space)
        _, found = space.effects.get(id(instruction), (None, None))
        if found is None:
            found = _vector_effect(instruction, space)
            if len(space.effects) < _KEPT_EFFECTS:
                space.effects[id(instruction)] = instruction, found
        return found

    def writer(self, byte: int) -> int:
        """The number of the instruction that wrote a byte of UB last, as `VectorMemory.writers`."""
        writers = self._ub.writers
        return int(writers[byte]) if 0 <= byte < writers.size else 0

    def apply(
        self,
        index: int,
        instruction: Instruction,
        effect: Effect,
        registers: Registers,
        lives: Lives,
    ) -> None:
        """Execute an instruction whose effect was checked.

        Args:
            index: its place in the program of the core.
            instruction: the instruction.
            effect: the bytes that it touches.
            registers: as they were when it was issued.
            lives: likewise, the buffers that were allocated.

        Raises:
            SimulatorFault: garbage would reach GM, GM is not this core's to touch, or a register is
                not set as the instruction needs it.
        """
        if not effect.writes:
            return
        self._ub.begin(index, lives)
        match instruction:
            case DataCopy() | DataCopyPad():
                self._copy(instruction, effect)
            case Cast() | CastRepeat() | Duplicate() | And() | AndRepeat() | VectorScalar():
                self._compute(instruction, effect, registers)

    def _copy(self, copy: DataCopy | DataCopyPad, effect: Effect) -> None:
        ub = self._ub
        source, target = effect.reads[0], effect.writes[0]
        if source.space == UB:
            ub.check_written(source)
            rows: Bytes = source.view(ub.bytes).view(np.uint8)
            self._space.gm.write(target, rows, self._number)
            return
        rows = self._space.gm.read(source, self._number)
        lines: Bytes = target.view(ub.bytes).view(np.uint8)
        if isinstance(copy, DataCopy):
            lines[:] = rows
            ub.note(target)
            return
        left = copy.left_padding * copy.elem_bytes
        stop = left + copy.block_len_bytes
        lines[:, left:stop] = rows
        ub.note(target, _pad(copy, lines, rows, left, stop))

    def _compute(
        self, instruction: VectorInstruction, effect: Effect, registers: Registers
    ) -> None:
        """Execute a vector instruction; the shadow of its bytes goes along."""
        ub = self._ub
        target, *sources = _places(instruction, effect, self._space.chip)
        match instruction:
            case Cast() | CastRepeat():
                convert = self._conversion(instruction, registers)
                formats = instruction.src_format, instruction.dst_format
                self._map_elements(sources[0], target, *formats, convert)
            case Duplicate():
                ub.bytes[target].view(np.uint16)[:] = np.uint16(instruction.value & 0xFFFF)
                ub.note(target)
            case And() | AndRepeat():
                known = np.logical_and(*(ub.known(source, _first(source)) for source in sources))
                ub.bytes[target] = np.bitwise_and(*(ub.bytes[source] for source in sources))
                ub.note(target, known)
            case VectorScalar():
                if CTRL_FLOAT not in registers.ctrl:
                    raise SimulatorFault(
                        f"{instruction.op.value} is simulated with CTRL[{CTRL_FLOAT}] = 1 alone"
                    )
                fmt = instruction.format
                work = ScalarWork(op=instruction.op, format=fmt, scalar=instruction.scalar)
                self._map_elements(sources[0], target, fmt, fmt, work.reference)

    def _map_elements(
        self,
        source: _Place,
        target: _Place,
        src: Format,
        dst: Format,
        work: Callable[[Codes], Codes],
    ) -> None:
        """Work on elements one by one; of an element of which a byte is garbage, all of it is."""
        ub = self._ub
        known = ub.known(source, _first(source))
        nibble = self._first_nibble
        ub.bytes[target] = packed(work(load(ub.bytes[source], src, nibble)), dst, nibble)
        if known.all():
            ub.note(target)
        else:
            ub.note(target, _bytes_of_lanes(_lanes_of_bytes(known, src), dst))

    def _conversion(
        self, cast: Cast | CastRepeat, registers: Registers
    ) -> Callable[[Codes], Codes]:
        row = CAST_TABLE[self._space.chip.isa][cast.src_format, cast.dst_format]
        if row.is_scaled and registers.deq_scale != 1.0:
            raise SimulatorFault(
                f"{row.src} -> {row.dst} multiplies by the deq scale, which is "
                f"{registers.deq_scale}; SetDeqScale 1 first"
            )
        if row.ctrl is not None and cast.saturate is None and CTRL_GLOBAL not in registers.ctrl:
            raise SimulatorFault(
                f"CTRL[{CTRL_GLOBAL}] is 0 and {row.src} -> {row.dst} has no SatMode: nothing "
                "tells whether it saturates"
            )
        policy = row.policy(registers.ctrl, cast.saturate)
        run = _cast_loop(row, cast.mode, policy, self._exact, self._corrections)

        def convert(codes: Codes) -> Codes:
            result = np.empty(codes.shape, cast.dst_format.code_dtype)
            run(codes, result)
            return result

        return convert


def _vector_effect(instruction: Instruction, space: Addresses) -> Effect:
    match instruction:
        case Cast():
            _check_cast(instruction, space.chip)
            reads = space.span(instruction.src, instruction.count, instruction.src_format.bits)
            writes = space.span(instruction.dst, instruction.count, instruction.dst_format.bits)
            if _narrows_in_place(instruction):
                return Effect(reads=reads, writes=writes)
        case CastRepeat() | AndRepeat():
            if isinstance(instruction, CastRepeat):
                _check_cast(instruction, space.chip)
            return repeat_effect(instruction, space)
        case Duplicate():
            return Effect(writes=space.span(instruction.dst, instruction.count, 16))
        case And():
            sources = (instruction.src0, instruction.src1)
            reads = tuple(r for a in sources for r in space.span(a, instruction.count, 16))
            writes = space.span(instruction.dst, instruction.count, 16)
        case VectorScalar():
            _check_scalar(instruction)
            bits = instruction.format.bits
            reads = space.span(instruction.src, instruction.count, bits)
            writes = space.span(instruction.dst, instruction.count, bits)
        case _:
            return Effect()
    for read, written in itertools.product(reads, writes):
        if read != written:
            refuse_overlap(read, written)
    return Effect(reads=reads, writes=writes)


def _copy_effect(copy: DataCopy | DataCopyPad, space: Addresses) -> Effect:
    match copy.src, copy.dst:
        case GmAddress() as gm, UbAddress() as ub:
            to_ub = True
        case UbAddress() as ub, GmAddress() as gm:
            to_ub = False
        case _:
            raise SimulatorFault(f"{type(copy).__name__} moves between GM and UB")
    check_elem_bytes(copy.elem_bytes)
    line = space.chip.block_bytes
    if isinstance(copy, DataCopy):
        whole = copy.size_bytes // line * line
        if copy.size_bytes < 0:
            raise SimulatorFault(f"size must not be negative, is {copy.size_bytes} B")
        if whole == 0:
            return Effect()
        check_gm_alignment(gm, copy.elem_bytes)
        in_gm, in_ub = space.gm_region(gm, whole), space.ub_region(ub, whole)
    else:
        _check_copy_pad(copy, space.chip)
        size, count = copy.block_len_bytes, copy.block_count
        if not (size and count):
            return Effect()
        gm_stride, ub_stride = copy.src_stride, copy.dst_stride
        if not to_ub:
            gm_stride, ub_stride = ub_stride, gm_stride
        if not 0 <= gm_stride <= MAX_STRIDE_BYTES:
            raise SimulatorFault(f"GM stride must be 0 to {MAX_STRIDE_BYTES} B, is {gm_stride}")
        padding = (copy.left_padding + copy.right_padding) * copy.elem_bytes
        width = -(-(size + padding) // line) * line
        in_gm = space.gm_region(gm, size, count, size + gm_stride)
        in_ub = space.ub_region(ub, width if to_ub else size, count, width + ub_stride * line)
    source, target = (in_gm, in_ub) if to_ub else (in_ub, in_gm)
    return Effect(reads=(source,), writes=(target,))


def _check_copy_pad(copy: DataCopyPad, chip: Chip) -> None:
    if not 0 <= copy.block_count <= MAX_BLOCK_COUNT:
        raise SimulatorFault(f"blockCount must be 0 to {MAX_BLOCK_COUNT}, is {copy.block_count}")
    if not 0 <= copy.block_len_bytes <= MAX_BLOCK_LEN_BYTES:
        raise SimulatorFault(
            f"blockLen must be 0 to {MAX_BLOCK_LEN_BYTES} B, is {copy.block_len_bytes}"
        )
    if copy.block_len_bytes % copy.elem_bytes:
        raise SimulatorFault(f"blockLen is no multiple of the element's {copy.elem_bytes} B")
    in_ub = copy.dst_stride if isinstance(copy.dst, UbAddress) else copy.src_stride
    if in_ub < 0:
        raise SimulatorFault(f"UB stride must not be negative, is {in_ub} blocks")
    for name, elems in (("left", copy.left_padding), ("right", copy.right_padding)):
        if not 0 <= elems * copy.elem_bytes <= chip.block_bytes:
            raise SimulatorFault(
                f"{name}Padding must be 0 to {chip.block_bytes} B, is {elems * copy.elem_bytes} B"
            )
    if isinstance(copy.dst, GmAddress) and (copy.left_padding or copy.right_padding):
        raise SimulatorFault("a copy to GM takes no padding")
    if copy.elem_bytes == 8 and copy.padding_value:
        raise SimulatorFault("paddingValue must be 0 for elements of 8 B")
    if not 0 <= copy.padding_value < 1 << 8 * copy.elem_bytes:
        raise SimulatorFault(
            f"paddingValue must be a code of {copy.elem_bytes} B, is {copy.padding_value:#x}"
        )


def _pad(copy: DataCopyPad, lines: Bytes, rows: Bytes, left: int, stop: int) -> Known | None:
    """Fill the bytes that a copy to UB adds around each block.

    Returns:
        Of each byte whether it is known; None: all are.
    """
    width = lines.shape[1]
    if width == copy.block_len_bytes:
        return None
    if (left or copy.right_padding) and not copy.is_pad:
        known: Known = np.zeros(lines.shape, np.bool_)
        known[:, left:stop] = True
        return known
    if copy.is_pad:
        value = np.array([copy.padding_value], f"<u{copy.elem_bytes}").view(np.uint8)
        first = np.broadcast_to(value, (rows.shape[0], copy.elem_bytes))
    else:
        first = rows[:, : copy.elem_bytes]
    for part in (slice(0, left), slice(stop, width)):
        size = lines[:, part].shape[1]
        lines[:, part] = np.tile(first, -(-size // copy.elem_bytes))[:, :size]
    return None


def _places(instruction: VectorInstruction, effect: Effect, chip: Chip) -> tuple[_Place, ...]:
    """The destination, then the sources."""
    if isinstance(instruction, (CastRepeat, AndRepeat)):
        return tuple(
            operand[1].offset_bytes + active_bytes(instruction, operand, chip)
            for operand in operands(instruction)
        )
    return tuple(slice(each.start, each.stop) for each in (*effect.writes, *effect.reads))


def _first(place: _Place) -> int:
    return place.start if isinstance(place, slice) else int(place[0])


@functools.lru_cache(maxsize=256)
def _cast_loop(
    row: CastRow,
    mode: RoundMode | SourceRounding | None,
    policy: Policy,
    exact: bool,
    corrections: Corrections,
) -> elementwise.Loop:
    if isinstance(mode, SourceRounding):
        from simulator.machine.hybrid_rounding import HybridRounding

        return HybridRounding(src=row.src, policy=policy).run
    if mode is None:
        mode = RoundMode.TRUNC if row.copies_exponent else RoundMode.RINT
    conversion = Conversion(src=row.src, dst=row.dst, mode=mode, policy=policy)
    run = loop((conversion,), corrections, exact=exact, engine="numpy")
    if not row.copies_exponent:
        return run
    assert isinstance(row.src, FloatFormat)
    unsigned = row.src.code_dtype.type(row.src.sign_code - 1)
    return lambda codes, out: run(codes & unsigned, out)


def _narrows_in_place(cast: Cast) -> bool:
    """True if a Cast by count writes narrower elements from its source's own address on.

    Cast's document calls only widening unsafe where addresses overlap. The rule that source and
    destination coincide wholly or not at all is for the form by repeats (CANN asc-devkit, general
    restrictions, address overlap). CANN's own kernels narrow by count in place (ops-nn,
    ascend_quant_v2, INT32 -> FP16).
    """
    return cast.src == cast.dst and cast.dst_format.bits < cast.src_format.bits


def _check_cast(cast: Cast | CastRepeat, chip: Chip) -> None:
    row = CAST_TABLE.get(chip.isa, {}).get((cast.src_format, cast.dst_format))
    if row is None:
        raise SimulatorFault(f"Cast has no pair {cast.src_format} -> {cast.dst_format}")
    if cast.mode not in row.all_modes:
        modes = ", ".join(mode.name if mode else "NONE" for mode in row.all_modes)
        raise SimulatorFault(f"Cast has only the modes {modes} for this pair")


def _check_scalar(instruction: VectorScalar) -> None:
    name, fmt, known = instruction.op.value, instruction.format, SCALAR_FORMATS[instruction.op]
    if fmt not in known:
        raise SimulatorFault(f"{name} has {', '.join(map(str, known))} here, not {fmt}")
    is_shift = instruction.op in (ScalarOp.SHIFT_LEFT, ScalarOp.SHIFT_RIGHT)
    scalar = instruction.scalar
    if is_shift and (not 0 <= scalar <= fmt.bits or scalar % 1):
        raise SimulatorFault(f"{name} moves by 0 to {fmt.bits} bits, not {scalar}")
    if isinstance(fmt, IntFormat):
        is_number = fmt.min <= scalar <= fmt.max and not scalar % 1
    else:
        is_number = not math.isfinite(scalar) or abs(scalar) <= float(np.finfo(fmt.dtype).max)
    if not is_number:
        raise SimulatorFault(f"{name} takes a number of {fmt}, not {scalar}")


def _lanes_of_bytes(known: Known, fmt: Format) -> Known:
    if fmt.bits == 4:
        return known.repeat(2)
    lanes: Known = np.logical_and.reduce(known.reshape(-1, fmt.bits // 8), axis=1)
    return lanes


def _bytes_of_lanes(lanes: Known, fmt: Format) -> Known:
    if fmt.bits == 4:
        pairs: Known = np.logical_and.reduce(lanes.reshape(-1, 2), axis=1)
        return pairs
    return lanes.repeat(fmt.bits // 8)
