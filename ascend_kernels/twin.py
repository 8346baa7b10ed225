"""The kernel itself, compiled for this machine: `execute` runs it, `trace` lists its instructions.

csrc/cast_kernel.h is AscendC. Here it is built by a plain C++ compiler against csrc/twin, whose
instructions give the results of a chip family, one library each, and its cores are played one after
another, or on threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.emit import CPP_TYPES, TRACED_OPERANDS, TRACED_OPS
from ascend_kernels.instances import A2_A3_TARGET, KernelTarget, instance_number, target_of
from ascend_kernels.program import TileProgram
from ascend_kernels.tiling_data import CastTilingData, tiling_data
from simulator.compiled_library import (
    CompiledLibraryError,
    LibrarySources,
    find_compiler,
    load_library,
)
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
    ScalarOp,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    UbAddress,
    VectorScalar,
    WaitFlag,
)
from simulator.machine.memory import Bytes, SimulatorFault
from simulator.numbers import elementwise
from simulator.numbers.convert import codes_of
from simulator.numbers.formats import Codes, FloatFormat
from simulator.numbers.rounding import RoundMode

SOURCES: Final = Path(__file__).with_name("csrc")
MAIN_SOURCE: Final = SOURCES / "twin" / "twin.cpp"
FLAGS: Final = (  # -O3 would build 2.5 times as long, for a program that runs once
    *("-std=c++17", "-O1", "-fPIC", "-shared", "-pthread", "-Werror=switch"),
    "-fvisibility=hidden",  # the libraries of two families would share a core, with the UB of one
)
ERROR_BYTES: Final = 1024


class TwinUnavailableError(RuntimeError):
    """The twin cannot be built or loaded here; the text gives the cause and the remedy."""


class Launch(ctypes.Structure):
    """The struct PyptoTwinLaunch of the library."""

    _fields_ = [
        ("instance", ctypes.c_uint64),
        ("tiling", ctypes.POINTER(CastTilingData)),
        ("x", ctypes.c_void_p),
        ("x_bytes", ctypes.c_uint64),
        ("y", ctypes.c_void_p),
        ("y_bytes", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
    ]


class Record(ctypes.Structure):
    """One instruction of a trace: its kind and its operands."""

    _fields_ = [
        ("op", ctypes.c_int64),
        ("operands", ctypes.c_int64 * TRACED_OPERANDS),
    ]


VISIT: Final = ctypes.CFUNCTYPE(None, ctypes.POINTER(Record))
NO_VISIT: Final = VISIT()


def library(target: KernelTarget = A2_A3_TARGET) -> ctypes.CDLL:
    """The twin, built if the cache has none of these sources, this compiler and these flags.

    Args:
        target: the family whose casts it has.

    Raises:
        TwinUnavailableError: no compiler, it fails, or the cache folder cannot be used.
    """
    return _declared(loaded(_library_sources(target)))


def loaded(sources: LibrarySources) -> ctypes.CDLL:
    """A library of this machine's compiler; raises as `library`."""
    with _available():
        return load_library(sources)


def compiler() -> tuple[str, ...]:
    """The command of the compiler that builds the twin: $CXX, else g++ or clang++.

    Raises:
        TwinUnavailableError: there is none.
    """
    with _available():
        return find_compiler()


@contextlib.contextmanager
def _available() -> Iterator[None]:
    try:
        yield
    except CompiledLibraryError as error:
        raise TwinUnavailableError(f"the twin is not available: {error}") from error


def sources() -> list[Path]:
    """Every file that the library is made of."""
    return sorted([*SOURCES.glob("cast_*.h"), *MAIN_SOURCE.parent.iterdir()])


@functools.cache
def _library_sources(target: KernelTarget) -> LibrarySources:
    flags = (*FLAGS, f"-DPYPTO_CAST_ARCH={target.architecture}")
    return LibrarySources(name="twin", main=MAIN_SOURCE, files=tuple(sources()), flags=flags)


@functools.lru_cache(maxsize=8)
def _declared(found: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its functions."""
    found.pypto_twin_run.argtypes = [
        ctypes.POINTER(Launch),
        ctypes.c_uint64,
        ctypes.c_uint64,
        VISIT,
        ctypes.c_char_p,
        ctypes.c_uint64,
    ]
    found.pypto_twin_run.restype = ctypes.c_int
    for repack in (found.pypto_twin_pack, found.pypto_twin_unpack):
        repack.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        repack.restype = None
    return found


# --- Runs --------------------------------------------------------------------------------------


def execute(program: TileProgram, values: npt.NDArray[Any], *, threads: int = 1) -> Codes:
    """Run a cast program with the compiled kernel.

    Args:
        program: the tile program of a cast.
        values: its input, any shape, strides and byte order; not modified.
        threads: threads that share the cores.

    Returns:
        Destination codes, one element each, 1-D in row-major order.

    Raises:
        TwinUnavailableError: the twin cannot be built here.
        SimulatorFault: the kernel did what hardware does not permit.
    """
    rule = program.resolution.rule
    target = target_of(rule.family)
    native = values.astype(values.dtype.newbyteorder("="), order="C", copy=False).reshape(-1)
    x = _packed(native, target) if rule.src.bits == 4 else codes_of(native, rule.src).view(np.uint8)
    y = np.empty(values.size * rule.dst.bits // 8, np.uint8)
    launch, cores = _launch(program, x, y), program.cores
    elementwise.share(
        lambda span: _run(launch, cores[span], target=target), len(cores), threads, least=1
    )
    return _unpacked(y, target) if rule.dst.bits == 4 else y.view(rule.dst.code_dtype)


def trace(program: TileProgram, core: int) -> list[Instruction]:
    """The instructions that the compiled kernel issues on one core, in order.

    Raises:
        TwinUnavailableError: the twin cannot be built here.
        SimulatorFault: the kernel did what hardware does not permit.
    """
    rule = program.resolution.rule
    elems = int(np.prod(program.plan.shape, dtype=np.int64))
    x = np.zeros(elems * rule.src.bits // 8, np.uint8)
    y = np.empty(elems * rule.dst.bits // 8, np.uint8)
    issued: list[Instruction] = []

    def visit(record: Any) -> None:
        issued.append(_instruction(program, record.contents))

    _run(
        _launch(program, x, y),
        range(core, core + 1),
        VISIT(visit),
        target_of(rule.family),
    )
    return issued


def _packed(values: npt.NDArray[Any], target: KernelTarget) -> Bytes:
    """Values of 4 bits as GM holds them, two to a byte."""
    memory = np.empty(values.size // 2, np.uint8)
    library(target).pypto_twin_pack(memory.ctypes.data, values.ctypes.data, memory.size)
    return memory


def _unpacked(memory: Bytes, target: KernelTarget) -> Codes:
    codes = np.empty(memory.size * 2, np.uint8)
    library(target).pypto_twin_unpack(codes.ctypes.data, memory.ctypes.data, memory.size)
    return codes


def _launch(program: TileProgram, x: Bytes, y: Bytes) -> Launch:
    return Launch(
        instance=instance_number(program.resolution),
        tiling=ctypes.pointer(tiling_data(program)),
        x=x.ctypes.data,
        x_bytes=x.size,
        y=y.ctypes.data,
        y_bytes=y.size,
        blocks=len(program.cores),
    )


def _run(
    launch: Launch,
    cores: range,
    visit: Callable[[Any], None] = NO_VISIT,
    target: KernelTarget = A2_A3_TARGET,
) -> None:
    """Play some cores of a launch, on this thread."""
    error = ctypes.create_string_buffer(ERROR_BYTES)
    run = library(target).pypto_twin_run
    if run(ctypes.byref(launch), cores.start, cores.stop, visit, error, ERROR_BYTES):
        raise SimulatorFault(f"the kernel, cores {cores}: {error.value.decode()}")


# --- The instructions of a trace ------------------------------------------------------------------

_FORMATS: Final = tuple(CPP_TYPES)
_MODES: Final = (None, *RoundMode)
_SCALAR_OPS: Final = tuple(ScalarOp)
_EVENTS: Final = tuple(HardEvent)


def _instruction(program: TileProgram, record: Record) -> Instruction:
    """An instruction as the simulator has it; csrc/twin/instructions.h orders the operands."""
    kind = _KINDS[TRACED_OPS[record.op]]
    return kind(program, *record.operands)


def _address(program: TileProgram, space: int, offset: int) -> GmAddress | UbAddress:
    if space == 0:
        return UbAddress(offset_bytes=offset)
    return GmAddress(tensor=(program.input, program.output)[space - 1], offset_bytes=offset)


def _data_copy_pad(program: TileProgram, *operands: int) -> Instruction:
    blocks, length, src_stride, dst_stride, elem_bytes = operands[4:9]
    return DataCopyPad(
        dst=_address(program, *operands[0:2]),
        src=_address(program, *operands[2:4]),
        block_count=blocks,
        block_len_bytes=length,
        src_stride=src_stride,
        dst_stride=dst_stride,
        elem_bytes=elem_bytes,
    )


def _scalar(_: TileProgram, *operands: int) -> Instruction:
    op, dst, src, number, word, count = operands[:6]
    fmt = _FORMATS[number]
    return VectorScalar(
        op=_SCALAR_OPS[op],
        dst=_ub(dst),
        src=_ub(src),
        format=fmt,
        scalar=_float(word) if isinstance(fmt, FloatFormat) else word,
        count=count,
    )


def _ub(offset: int) -> UbAddress:
    return UbAddress(offset_bytes=offset)


def _float(word: int) -> float:
    (number,) = struct.unpack("<f", struct.pack("<I", word))
    return float(number)


def _reader(
    kind: Callable[..., Instruction], **fields: Callable[[int], object]
) -> Callable[..., Instruction]:
    """A function that reads an instruction whose fields are the first operands of a record."""

    def read(_: TileProgram, *operands: int) -> Instruction:
        values = operands[: len(fields)]
        read_fields = zip(fields.items(), values, strict=True)
        return kind(**{name: of(value) for (name, of), value in read_fields})

    return read


def _strides(*operands: str) -> dict[str, Callable[[int], object]]:
    return {f"{name}_{step}_stride": int for step in ("blk", "rep") for name in operands}


_CAST: Final[dict[str, Callable[[int], object]]] = {
    "dst": _ub,
    "src": _ub,
    "dst_format": _FORMATS.__getitem__,
    "src_format": _FORMATS.__getitem__,
    "mode": _MODES.__getitem__,
    "saturate": {-1: None, 1: True}.__getitem__,
}
_FLAG: Final[dict[str, Callable[[int], object]]] = {"event": _EVENTS.__getitem__, "event_id": int}
_KINDS: Final[dict[str, Callable[..., Instruction]]] = {
    "DATA_COPY_PAD": _data_copy_pad,
    "CAST": _reader(Cast, **_CAST, count=int),
    "CAST_REPEAT": _reader(
        CastRepeat, **_CAST, mask=int, repeat_times=int, **_strides("dst", "src")
    ),
    "DUPLICATE": _reader(Duplicate, dst=_ub, value=int, count=int),
    "AND_REPEAT": _reader(
        AndRepeat,
        dst=_ub,
        src0=_ub,
        src1=_ub,
        mask=int,
        repeat_times=int,
        **_strides("dst", "src0", "src1"),
    ),
    "SET_CTRL": _reader(SetCtrl, bit=int, value=bool),
    "RESTORE_CTRL": _reader(RestoreCtrl),
    "SET_DEQ_SCALE": _reader(SetDeqScale, scale=_float),
    "SET_FLAG": _reader(SetFlag, **_FLAG),
    "WAIT_FLAG": _reader(WaitFlag, **_FLAG),
    "PIPE_BARRIER": _reader(functools.partial(PipeBarrier, of=Pipe.V)),
    "SCALAR": _scalar,
}
