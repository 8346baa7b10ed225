"""Programs written down by hand, and what the machine makes of them: bytes of GM, or a fault."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from simulator.machine.execute import Program, run
from simulator.machine.isa import (
    Cast,
    DataCopyPad,
    GmAddress,
    HardEvent,
    Instruction,
    Pipe,
    PipeBarrier,
    SetFlag,
    UbAddress,
    WaitFlag,
)
from simulator.machine.memory import SimulatorFault, UbRange
from simulator.machine.pipes import COPY_COMPLETIONS, CopyCompletion
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import DEFAULT_CHIP, Chip

Bytes = npt.NDArray[np.uint8]
Address = GmAddress | UbAddress

UB_BYTES = 196608
FENCE = PipeBarrier(of=Pipe.ALL)
"""Everything before it is done: put between instructions whose order is not the question."""
UNTOUCHED = 0xEE
"""The output where nothing was written."""


def chip_of(cores: int) -> Chip:
    """The default chip with another number of cores."""
    return dataclasses.replace(DEFAULT_CHIP, vector_cores=cores)


@dataclass(frozen=True)
class Listing:
    """The instructions of each core, written down."""

    bodies: Mapping[int, Sequence[Instruction]]
    chip: Chip = DEFAULT_CHIP

    @property
    def cores(self) -> Iterable[int]:
        return self.bodies.keys()

    def instructions(self, core: int) -> Iterable[Instruction]:
        return iter(self.bodies[core])


@dataclass(frozen=True)
class MappedListing(Listing):
    """Instructions that must keep to buffers of UB, each with a place of its own.

    A buffer among the instructions is allocated there.
    """

    buffers: Sequence[UbRange] = ()

    def ub_ranges(self, core: int) -> Sequence[UbRange]:
        return self.buffers

    def issued(self, core: int) -> Iterable[Instruction | UbRange]:
        return iter(self.bodies[core])

    def instructions(self, core: int) -> Iterable[Instruction]:
        return (each for each in self.bodies[core] if not isinstance(each, UbRange))

    def where(self, core: int, index: int) -> str:
        return f"line {index} of core {core}"


def buffer(name: str, start: int, size_bytes: int) -> UbRange:
    return UbRange(name=name, offset_bytes=start, size_bytes=size_bytes)


def fenced(*body: Instruction) -> list[Instruction]:
    """The instructions with a barrier for all pipes between any two of them."""
    pairs = itertools.chain.from_iterable((instruction, FENCE) for instruction in body)
    return list(pairs)[:-1]


def memory(*, x: Bytes | None = None, y_bytes: int = 256) -> dict[str, Bytes]:
    """GM with an input, counting up unless given, and an untouched output."""
    counting = np.arange(256, dtype=np.uint8)
    return {"x": counting if x is None else x, "y": np.full(y_bytes, UNTOUCHED, np.uint8)}


def execute(
    *body: Instruction,
    gm: dict[str, Bytes] | None = None,
    copy_completion: CopyCompletion = "latest",
) -> Bytes:
    """Run instructions on one core as they stand; what `y` holds then."""
    gm = memory() if gm is None else gm
    run(Listing({0: body}), gm, copy_completion=copy_completion)
    return gm["y"]


def execute_fenced(*body: Instruction, gm: dict[str, Bytes] | None = None) -> Bytes:
    """Run instructions on one core, each one done before the next; what `y` holds then."""
    return execute(*fenced(*body), gm=gm)


def cast_values(
    values: list[float] | list[int],
    src: Format,
    dst: Format,
    mode: RoundMode | None,
    *set_up: Instruction,
    in_place: bool = False,
) -> list[float] | list[int]:
    """Copy values in, cast them, copy the result out."""
    data = np.array(values, src.dtype).view(np.uint8)
    target = ub() if in_place else ub(4096)
    out_bytes = len(values) * dst.bits // 8
    y = execute_fenced(
        *set_up,
        copy_in(ub(), x_at(), length=data.size),
        cast(src, dst, mode, count=len(values), dst=target),
        copy_out(y_at(), target, length=out_bytes),
        gm=memory(x=data, y_bytes=out_bytes),
    )
    result: list[float] | list[int] = y.view(dst.dtype).tolist()
    return result


def execute_anyway(*body: Instruction, gm: dict[str, Bytes] | None = None) -> Bytes:
    """Run instructions with copies late and early, which must agree; returns the bytes of `y`."""
    gm = memory() if gm is None else gm
    results = []
    for copy_completion in COPY_COMPLETIONS:
        again = {name: data.copy() for name, data in gm.items()}
        results.append(execute(*body, gm=again, copy_completion=copy_completion))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    return results[0]


def fault_of(
    program: Program,
    gm: dict[str, Bytes] | None = None,
    *,
    copy_completion: CopyCompletion = "latest",
) -> str:
    """The text of the fault that a program makes, without the last writer."""
    return fault_and_writer(program, gm, copy_completion=copy_completion)[0]


def fault_and_writer(
    program: Program,
    gm: dict[str, Bytes] | None = None,
    *,
    copy_completion: CopyCompletion = "latest",
) -> tuple[str, str]:
    """The text of the fault that a program makes, and its last clause, on the last writer."""
    with pytest.raises(SimulatorFault) as caught:
        run(program, memory() if gm is None else gm, copy_completion=copy_completion)
    found = re.fullmatch("(.*?)(?:; ((?:no instruction wrote )?byte .*))?", str(caught.value))
    assert found is not None
    return found[1], found[2] or ""


def fault_at(
    index: int,
    *body: Instruction,
    gm: dict[str, Bytes] | None = None,
    completions: Sequence[CopyCompletion] = COPY_COMPLETIONS,
) -> str:
    """The text of the fault that instruction `index` makes, without what precedes it."""
    gm = memory() if gm is None else gm
    texts = set()
    for copy_completion in completions:
        again = {name: data.copy() for name, data in gm.items()}
        for name, data in gm.items():
            again[name].flags.writeable = data.flags.writeable
        texts.add(fault_of(Listing({0: body}), again, copy_completion=copy_completion))
    (text,) = texts
    before = f"core 0, instruction {index} ({body[index]}): "
    assert text.startswith(before), text
    return text.removeprefix(before)


def fault(*body: Instruction, gm: dict[str, Bytes] | None = None) -> str:
    """The text of the fault that the last of some instructions makes, all others being done."""
    return fault_at(2 * len(body) - 2, *fenced(*body), gm=gm)


Access = tuple[int, str, str]
"""The instruction, "reads" or "writes", and the bytes."""


def assert_race(one: Access, other: Access, *body: Instruction) -> None:
    """Two instructions race, whichever of them the copy_completion lets come first."""
    texts = []
    for (late, verb, bytes_now), (early, doing, bytes_then) in ((one, other), (other, one)):
        now, then = body[late], body[early]
        texts.append(
            f"core 0, instruction {late} ({now}): {verb} {bytes_now} while instruction {early} "
            f"({then}) {doing} {bytes_then}: no flag or barrier puts {then.pipe.name} before "
            f"{now.pipe.name}"
        )
    for copy_completion in COPY_COMPLETIONS:
        assert fault_of(Listing({0: body}), copy_completion=copy_completion) in texts


# --- Shorthand ---------------------------------------------------------------------------------


def x_at(offset_bytes: int = 0) -> GmAddress:
    return GmAddress(tensor="x", offset_bytes=offset_bytes)


def y_at(offset_bytes: int = 0) -> GmAddress:
    return GmAddress(tensor="y", offset_bytes=offset_bytes)


def ub(offset_bytes: int = 0) -> UbAddress:
    return UbAddress(offset_bytes=offset_bytes)


def set_flag(event: HardEvent, event_id: int = 0) -> SetFlag:
    return SetFlag(event=event, event_id=event_id)


def wait_flag(event: HardEvent, event_id: int = 0) -> WaitFlag:
    return WaitFlag(event=event, event_id=event_id)


def flag(event: HardEvent, event_id: int = 0) -> tuple[SetFlag, WaitFlag]:
    """Both ends of a flag, for where one directly follows the other."""
    return set_flag(event, event_id), wait_flag(event, event_id)


def copy_in(
    dst: Address,
    src: Address,
    *,
    count: int = 1,
    length: int = 32,
    gap: int = 0,
    ub_gap: int = 0,
    elem: int = 1,
) -> DataCopyPad:
    """GM to UB: `gap` bytes between blocks in GM, `ub_gap` lines in UB."""
    return DataCopyPad(
        dst=dst,
        src=src,
        block_count=count,
        block_len_bytes=length,
        src_stride=gap,
        dst_stride=ub_gap,
        elem_bytes=elem,
    )


def copy_out(
    dst: Address, src: Address, *, gap: int = 0, ub_gap: int = 0, **more: int
) -> DataCopyPad:
    """UB to GM, as `copy_in`: `gap` bytes between blocks in GM, `ub_gap` lines in UB."""
    return copy_in(dst, src, gap=ub_gap, ub_gap=gap, **more)


def cast(
    src_format: Format,
    dst_format: Format,
    mode: RoundMode | None,
    *,
    count: int = 4,
    src: UbAddress | None = None,
    dst: UbAddress | None = None,
) -> Cast:
    return Cast(
        dst=ub(4096) if dst is None else dst,
        src=ub() if src is None else src,
        dst_format=dst_format,
        src_format=src_format,
        mode=mode,
        count=count,
    )
