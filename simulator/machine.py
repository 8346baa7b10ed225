"""The machine: GM, UB and the instructions of a tile program, checked and executed in order.

GM and UB are byte arrays. A result leaves the machine only through a copy from UB to GM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from simulator import elementwise
from simulator.convert import Conversion, codes_of
from simulator.formats import FP16, INT32, Codes, Format
from simulator.isa import (
    CAST_TABLE,
    CTRL_CAST,
    CTRL_FLOAT,
    And,
    Cast,
    DataCopyPad,
    Duplicate,
    GmAddress,
    Instruction,
    SetCtrl,
    SetDeqScale,
    UbAddress,
    cast_policy,
)
from simulator.rounding import RoundMode
from tiling.chips import Chip

Bytes = npt.NDArray[np.uint8]
Fidelity = Literal["fast", "instructions"]
FIDELITIES: Final[tuple[Fidelity, ...]] = get_args(Fidelity)

MAX_BLOCK_COUNT: Final = 4095
MAX_BLOCK_LEN_BYTES: Final = 2097151
MAX_GM_STRIDE_BYTES: Final = 2**32 - 1


class SimulatorFault(RuntimeError):
    """An instruction that the hardware would not forgive."""


class Program(Protocol):
    """What the machine needs of a program."""

    @property
    def chip(self) -> Chip:
        """The chip it was written for."""

    @property
    def cores(self) -> range:
        """Cores that have work."""

    def instructions(self, core: int) -> Iterable[Instruction]:
        """The instructions of one core, in program order."""


@runtime_checkable
class ElementwiseProgram(Program, Protocol):
    """A program whose tiles partition a tensor and treat every element alike."""

    @property
    def conversions(self) -> tuple[Conversion, ...]:
        """What happens to each element, in order."""

    @property
    def input(self) -> str:
        """Name of the tensor read in GM."""

    @property
    def output(self) -> str:
        """Name of the tensor written in GM."""


def execute(
    program: ElementwiseProgram,
    values: npt.NDArray[Any],
    *,
    fidelity: Fidelity = "fast",
    exact: bool = False,
    threads: int = 1,
) -> Codes:
    """Put values into GM, run a cast program over them, and take the result out of GM.

    Args:
        program: the tile program of a cast.
        values: its input, any shape, strides and byte order; not modified.
        fidelity: "fast" takes all tiles together, piece by piece; "instructions" executes every
            instruction of every core. Both give the same bits.
        exact: convert by the definition instead of the fast paths.
        threads: threads that share the work of "fast".

    Returns:
        Destination codes, one element each, 1-D in row-major order.

    Raises:
        SimulatorFault: "instructions" only.
    """
    src, dst = program.conversions[0].src, program.conversions[-1].dst
    if fidelity == "fast":
        out = np.empty(values.size, dst.code_dtype)
        elementwise.run(program.conversions, values, out, exact=exact, threads=threads)
        return out
    native = values.astype(src.dtype.newbyteorder("<"), order="C", copy=False)
    gm = {
        program.input: _packed(codes_of(native.reshape(-1), src), src),
        program.output: np.empty(values.size * dst.bits // 8, np.uint8),
    }
    run(program, gm, exact=exact)
    return _load(gm[program.output], dst)


def run(program: Program, gm: Mapping[str, Bytes], *, exact: bool = False) -> None:
    """Execute every instruction of every core.

    Args:
        program: the tile program.
        gm: global memory, one byte array per tensor; outputs are written in place.
        exact: convert by the definition instead of the fast paths.

    Raises:
        SimulatorFault: naming core, instruction and what is wrong with it.
    """
    for core in program.cores:
        vector_core = VectorCore(program.chip, gm, exact=exact)
        for index, instruction in enumerate(program.instructions(core)):
            try:
                vector_core.execute(instruction)
            except SimulatorFault as fault:
                raise SimulatorFault(
                    f"core {core}, instruction {index} ({instruction}): {fault}"
                ) from None


class VectorCore:
    """One AIV core: its UB, its control bits, and what each instruction does to them."""

    def __init__(self, chip: Chip, gm: Mapping[str, Bytes], *, exact: bool = False) -> None:
        self.chip = chip
        self.exact = exact
        self.gm = gm
        self.ub: Bytes = np.zeros(chip.ub_bytes, np.uint8)
        self.ctrl = {CTRL_FLOAT: True, CTRL_CAST: False}
        self.deq_scale: float | None = None

    def execute(self, instruction: Instruction) -> None:
        """Check an instruction and carry it out.

        Raises:
            SimulatorFault: the hardware would not forgive it.
        """
        match instruction:
            case DataCopyPad():
                self._data_copy_pad(instruction)
            case Cast():
                self._cast(instruction)
            case Duplicate():
                self._int16(instruction.dst, instruction.count)[:] = instruction.value
            case And():
                np.bitwise_and(
                    self._int16(instruction.src0, instruction.count),
                    self._int16(instruction.src1, instruction.count),
                    out=self._int16(instruction.dst, instruction.count),
                )
            case SetCtrl():
                if instruction.bit not in self.ctrl:
                    raise SimulatorFault(f"A2/A3 has no control bit {instruction.bit} for Cast")
                self.ctrl[instruction.bit] = instruction.value
            case SetDeqScale():
                self.deq_scale = instruction.scale

    def _data_copy_pad(self, copy: DataCopyPad) -> None:
        if not 0 <= copy.block_count <= MAX_BLOCK_COUNT:
            raise SimulatorFault(f"blockCount must be 0 to {MAX_BLOCK_COUNT}")
        if not 0 <= copy.block_len_bytes <= MAX_BLOCK_LEN_BYTES:
            raise SimulatorFault(f"blockLen must be 0 to {MAX_BLOCK_LEN_BYTES} B")
        if copy.block_len_bytes % copy.elem_bytes:
            raise SimulatorFault(f"blockLen is no multiple of the element's {copy.elem_bytes} B")
        match copy.dst, copy.src:
            case UbAddress(), GmAddress():
                gm = self._gm_blocks(copy.src, copy, copy.src_stride)
                ub = self._ub_blocks(copy.dst, copy, copy.dst_stride)
                ub[:, : copy.block_len_bytes] = gm
                padding = ub.shape[1] - copy.block_len_bytes
                first = gm[:, : copy.elem_bytes]
                ub[:, copy.block_len_bytes :] = np.tile(first, -(-padding // copy.elem_bytes))[
                    :, :padding
                ]
            case GmAddress(), UbAddress():
                ub = self._ub_blocks(copy.src, copy, copy.src_stride)
                gm = self._gm_blocks(copy.dst, copy, copy.dst_stride)
                if not gm.flags.writeable:
                    raise SimulatorFault(f"{copy.dst} is read-only")
                gm[:] = ub[:, : copy.block_len_bytes]
            case _:
                raise SimulatorFault("DataCopyPad moves between GM and UB")

    def _gm_blocks(self, address: GmAddress, copy: DataCopyPad, stride: int) -> Bytes:
        """The blocks of a copy in GM, (block_count, block_len_bytes)."""
        if address.tensor not in self.gm:
            raise SimulatorFault(f"GM has no tensor {address.tensor!r}")
        if not 0 <= stride <= MAX_GM_STRIDE_BYTES:
            raise SimulatorFault(f"GM stride must be 0 to {MAX_GM_STRIDE_BYTES} B")
        memory = self.gm[address.tensor]
        pitch = copy.block_len_bytes + stride
        return _blocks(
            memory, str(address), address.offset_bytes, copy, pitch, copy.block_len_bytes
        )

    def _ub_blocks(self, address: UbAddress, copy: DataCopyPad, stride_blocks: int) -> Bytes:
        """The blocks of a copy in UB, each with its padding up to a whole line."""
        line = self.chip.block_bytes
        width = -(-copy.block_len_bytes // line) * line
        self._check_aligned(address)
        return _blocks(
            self.ub, str(address), address.offset_bytes, copy, width + stride_blocks * line, width
        )

    def _cast(self, cast: Cast) -> None:
        row = CAST_TABLE.get((cast.src_format, cast.dst_format))
        if row is None:
            raise SimulatorFault(f"Cast has no pair {cast.src_format} -> {cast.dst_format}")
        if not (row.has_none if cast.mode is None else cast.mode in row.modes):
            modes = [mode.name for mode in row.modes] + ["NONE"] * row.has_none
            raise SimulatorFault(f"Cast has only the modes {', '.join(modes)} for this pair")
        if (row.src, row.dst) == (INT32, FP16) and self.deq_scale != 1.0:
            raise SimulatorFault(
                f"INT32 -> FP16 multiplies by the deq scale, which is {self.deq_scale}; "
                "SetDeqScale 1 first"
            )
        src = self._ub_range(cast.src, cast.count, cast.src_format)
        dst = self._ub_range(cast.dst, cast.count, cast.dst_format)
        conversion = Conversion(
            src=cast.src_format,
            dst=cast.dst_format,
            mode=RoundMode.RINT if cast.mode is None else cast.mode,
            policy=cast_policy(cast.dst_format, self.ctrl),
        )
        codes = _load(src, cast.src_format)
        result = np.empty(codes.shape, cast.dst_format.code_dtype)
        elementwise.kernel((conversion,), exact=self.exact)(codes, result)
        _store(dst, result, cast.dst_format)

    def _ub_range(self, address: UbAddress, count: int, fmt: Format) -> Bytes:
        if count < 0 or count * fmt.bits % 8:
            raise SimulatorFault(f"count {count} is no whole number of bytes of {fmt}")
        return self._ub_bytes(address, count * fmt.bits // 8)

    def _int16(self, address: UbAddress, count: int) -> npt.NDArray[np.int16]:
        return self._ub_bytes(address, 2 * count).view(np.int16)

    def _ub_bytes(self, address: UbAddress, size_bytes: int) -> Bytes:
        self._check_aligned(address)
        _check_range(self.ub, str(address), address.offset_bytes, size_bytes)
        return self.ub[address.offset_bytes : address.offset_bytes + size_bytes]

    def _check_aligned(self, address: UbAddress) -> None:
        if address.offset_bytes % self.chip.block_bytes:
            raise SimulatorFault(f"{address} is not aligned to {self.chip.block_bytes} B")


def _check_range(memory: Bytes, name: str, offset_bytes: int, size_bytes: int) -> None:
    if offset_bytes < 0 or offset_bytes + size_bytes > memory.size:
        raise SimulatorFault(
            f"{name}: bytes {offset_bytes} to {offset_bytes + size_bytes} are outside the "
            f"{memory.size} B there are"
        )


def _blocks(
    memory: Bytes, name: str, offset_bytes: int, copy: DataCopyPad, pitch: int, width: int
) -> Bytes:
    """View `copy.block_count` stretches of `width` bytes, `pitch` apart, after checking them."""
    if copy.block_count == 0 or width == 0:
        return memory[:0].reshape(0, 0)
    span = (copy.block_count - 1) * pitch + width
    _check_range(memory, name, offset_bytes, span)
    return np.lib.stride_tricks.as_strided(
        memory[offset_bytes:],
        (copy.block_count, width),
        (pitch, 1),
        writeable=memory.flags.writeable,
    )


def _load(memory: Bytes, fmt: Format) -> Codes:
    """Codes that lie in memory; two of 4 bits share a byte, the low nibble first."""
    if fmt.bits == 4:
        return np.stack([memory & 15, memory >> 4], axis=-1).reshape(-1)
    codes: Codes = memory.view(fmt.code_dtype)
    return codes


def _store(memory: Bytes, codes: Codes, fmt: Format) -> None:
    memory[:] = _packed(codes, fmt)


def _packed(codes: Codes, fmt: Format) -> Bytes:
    """Codes as memory holds them, the inverse of `_load`."""
    if fmt.bits != 4:
        return codes.view(np.uint8)
    pairs: Bytes = codes.astype(np.uint8, copy=False).reshape(-1, 2)
    packed: Bytes = pairs[:, 0] | (pairs[:, 1] << np.uint8(4))
    return packed
