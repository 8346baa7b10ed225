"""The kernels of a device check under the machine's guards: every instruction that the twin shows.

The twin runs a kernel one instruction after another. Here its instructions run again on the pipes
of the machine, which faults where no flag or barrier orders two of them, where a flag is set twice,
and where bytes are read that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from support.devices.checks_on_twin import run_on_twin

from ascend_kernels.checks.check_program import CheckProgram
from ascend_kernels.emit import TRACED_OPS
from ascend_kernels.twin import _KINDS, VISIT
from simulator.machine.core import Registers, VectorCore
from simulator.machine.isa import DataCopyPad, GmAddress, Pipe, PipeBarrier, UbAddress
from simulator.machine.memory import Effect, GlobalMemory, Lives, Region
from simulator.machine.pipes import CopyCompletion, Scheduler
from tiling.chips import DEFAULT_CHIP


@dataclass(frozen=True, slots=True, kw_only=True)
class UbWork:
    """Vector work that reads bytes of UB and writes others; each an offset and a size."""

    pipe: ClassVar[Pipe] = Pipe.V
    writes: tuple[int, int]
    reads: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return f"work ub+{self.writes[0]} <- {[f'ub+{start}' for start, _ in self.reads]}"


class CheckCore(VectorCore):
    """A core of the machine that knows that work too."""

    def effect(self, instruction: Any) -> Effect:
        if not isinstance(instruction, UbWork):
            return super().effect(instruction)

        regions = [Region(space="ub", start=a, width=n) for a, n in instruction.reads]
        start, size_bytes = instruction.writes
        target = Region(space="ub", start=start, width=size_bytes)
        return Effect(reads=tuple(regions), writes=(target,))

    def apply(
        self, index: int, instruction: Any, effect: Effect, registers: Registers, lives: Lives
    ) -> None:
        if not isinstance(instruction, UbWork):
            super().apply(index, instruction, effect, registers, lives)
            return
        self._ub.begin(index, lives)
        for region in effect.reads:
            self._ub.check_written(region)
        for region in effect.writes:
            self._ub.note(region)


def run_guarded(
    program: CheckProgram, copy_completion: CopyCompletion = "latest", chip: Any = DEFAULT_CHIP
) -> int:
    """Run a check's kernel on the machine's pipes, core by core; how many instructions there were.

    Raises:
        Fault: the machine does not permit it.
    """
    traces = list(_traces(program, chip.isa))
    gm = GlobalMemory({"x": program.x.copy(), "y": np.zeros(program.result_bytes, np.uint8)})
    gm.tensors["x"].flags.writeable = False
    for number, trace in enumerate(traces):
        core = CheckCore(number, chip, gm)
        names = [str(each) for each in trace]
        Scheduler(core, copy_completion, names.__getitem__, isa=chip.isa).run(iter(trace))
    return sum(len(trace) for trace in traces)


def _traces(program: CheckProgram, family: str) -> Iterator[list[Any]]:
    """The instructions of each core: those between two kernel entries."""
    found: list[Any] = []

    def visit(record: Any) -> None:
        found.append(_instruction(record.contents))

    run_on_twin(program, VISIT(visit), family)
    share, rest = divmod(len(found), program.cores)
    assert not rest
    for core in range(program.cores):
        yield found[core * share : (core + 1) * share]


def _instruction(record: Any) -> Any:
    kind, operands = TRACED_OPS[record.op], list(record.operands)
    if kind == "UB_WORK":
        reads = ((operands[2], operands[3]), (operands[4], operands[5]))
        return UbWork(writes=(operands[0], operands[1]), reads=tuple(x for x in reads if x[1]))
    if kind == "BARRIER_ALL":
        return PipeBarrier(of=Pipe.ALL)
    if kind == "DATA_COPY_PAD":
        blocks, length, src_stride, dst_stride, elem_bytes = operands[4:9]
        return DataCopyPad(
            dst=_address(*operands[0:2]),
            src=_address(*operands[2:4]),
            block_count=blocks,
            block_len_bytes=length,
            src_stride=src_stride,
            dst_stride=dst_stride,
            elem_bytes=elem_bytes,
        )
    return _KINDS[kind](None, *operands)


def _address(space: int, offset: int) -> GmAddress | UbAddress:
    if space == 0:
        return UbAddress(offset_bytes=offset)
    return GmAddress(tensor="xy"[space - 1], offset_bytes=offset)
