"""Records the instructions that a kernel issues on one core, each with its source line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from simulator.machine.isa import Instruction
from simulator.machine.memory import UbRange
from tiling.chips import Chip


class KernelError(RuntimeError):
    """A call that AscendC has no meaning for, at the line that makes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An instruction and the line of the kernel that asked for it, such as `cast.py:12`.

    Attributes:
        instruction: the instruction.
        line: the line.
        allocated: the buffers that alloc_tensor took since the instruction before.
    """

    instruction: Instruction
    line: str
    allocated: tuple[UbRange, ...] = ()


class Recorder:
    """One core while its kernel function runs.

    Args:
        core: which core, what `get_block_idx` returns.
        core_num: cores of the launch, what `get_block_num` returns.
        chip: sizes and limits.
    """

    def __init__(self, core: int, core_num: int, chip: Chip) -> None:
        self.core = core
        self.core_num = core_num
        self.chip = chip
        self.recorded: list[Recorded] = []
        self.pipe_ranges: list[UbRange] = []
        self.tensor_ranges: list[UbRange] = []
        self.finish: Callable[[], None] | None = None
        self._allocated: list[UbRange] = []
        self._ending: str | None = None

    @property
    def ranges(self) -> list[UbRange]:
        """All parts of UB that were given away."""
        return [*self.pipe_ranges, *self.tensor_ranges]

    def record(self, instruction: Instruction) -> None:
        """Note an instruction and the line of the kernel that is running."""
        line = self._ending or line_in_kernel()
        self.recorded.append(
            Recorded(instruction=instruction, line=line, allocated=tuple(self._allocated))
        )
        self._allocated.clear()

    def allocate(self, buffer: UbRange) -> None:
        """Note that a buffer holds garbage again to whatever is recorded from here on."""
        self._allocated.append(buffer)

    def end(self, kernel: str) -> None:
        """Record the instructions that AscendC adds when a kernel returns.

        Raises:
            KernelError: a tensor of a queue is still in use.
        """
        self._ending = f"the end of {kernel}"
        if self.finish is not None:
            self.finish()

    def claim_for_pipe(self, claimed: UbRange) -> None:
        """Give a part of UB to a buffer of TPipe."""
        self._claim(claimed, self.pipe_ranges, self.tensor_ranges)

    def claim_for_tensor(self, claimed: UbRange) -> None:
        """Give a part of UB to a tensor placed by hand; such tensors may share bytes.

        Raises:
            KernelError: it is not aligned, not within UB, or in a buffer of TPipe.
        """
        if claimed.offset_bytes % self.chip.block_bytes or claimed.offset_bytes < 0:
            raise KernelError(f"{claimed.name}: UB addresses are multiples of 32 B from 0 on")
        if claimed.stop > self.chip.ub_bytes:
            raise KernelError(
                f"{claimed.name} ends at ub+{claimed.stop}, beyond the {self.chip.ub_bytes} B of UB"
            )
        self._claim(claimed, self.tensor_ranges, self.pipe_ranges)

    def _claim(self, claimed: UbRange, mine: list[UbRange], others: list[UbRange]) -> None:
        for other in others:
            if claimed.offset_bytes < other.stop and other.offset_bytes < claimed.stop:
                raise KernelError(
                    f"{claimed.name} (ub+{claimed.offset_bytes}..{claimed.stop}) and {other.name} "
                    f"(ub+{other.offset_bytes}..{other.stop}) share bytes: TPipe and tensors "
                    "placed by hand do not know of each other"
                )
        mine.append(claimed)


_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def is_recording() -> bool:
    """True while a kernel is running."""
    return _current.get() is not None


def recorder() -> Recorder:
    """The core whose kernel is running.

    Raises:
        KernelError: none is.
    """
    found = _current.get()
    if found is None:
        raise KernelError(
            "called outside a kernel: put the call into a function under @asc.jit and launch that "
            "as kernel[core_num](...)"
        )
    return found


@contextmanager
def recording(core: Recorder) -> Iterator[None]:
    """Let the calls within record for a core."""
    token = _current.set(core)
    try:
        yield
    finally:
        _current.reset(token)


def user_frame() -> FrameType:
    """The innermost frame that is not of this package."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
        frame = frame.f_back
    return frame


def line_in_kernel() -> str:
    """The line of the kernel that is running, such as `cast.py:12`."""
    frame = user_frame()
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def name_in_kernel(value: object) -> str | None:
    """The name of the kernel's local variable that holds this very object."""
    names = (name for name, held in user_frame().f_locals.items() if held is value)
    return next(names, None)
