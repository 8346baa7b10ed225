"""Texts for the KernelWarnings of a launch: kernels that run without a fault but leave errors."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from simulator.ascendc.recorder import Recorded
from simulator.machine.cast_table import CTRL_CAST
from simulator.machine.isa import CastRepeat, SetCtrl, SetDeqScale, UbAddress
from simulator.machine.memory import GlobalMemory
from simulator.machine.repeats import overwritten_bytes
from tiling.chips import Chip

_STRETCHES_NAMED: Final = 3


class KernelWarning(UserWarning):
    """A kernel that runs, and leaves something that its author will hardly have meant."""


def leftovers(
    listings: Sequence[Sequence[Recorded]], chip: Chip, memory: GlobalMemory
) -> tuple[str, ...]:
    """Returns the warnings that a run deserves, each text once.

    Args:
        listings: the instructions of each core.
        chip: sizes and limits.
        memory: the global memory that they ran on.
    """
    texts = list(_written_in_part(memory))
    for listing in listings:
        texts += _overwriting_repeats(listing, chip)
        texts += _left_truncating(listing)
        texts += _left_scaling(listing)
    return tuple(dict.fromkeys(texts))


def _written_in_part(memory: GlobalMemory) -> Iterator[str]:
    for tensor in memory.written_tensors:
        missing = memory.unwritten(tensor)
        if missing:
            yield (
                f"gm.{tensor} is written in part: {sum(map(len, missing))} of its "
                f"{memory.size_bytes(tensor)} B never are, {_stretches(missing)}; they keep what "
                "the array held. Where that is meant, launch on a view of the part to be written"
            )


def _stretches(missing: Sequence[range]) -> str:
    named = [
        f"{each.start} to {each[-1]}" if len(each) > 1 else str(each.start)
        for each in missing[:_STRETCHES_NAMED]
    ]
    more = len(missing) - len(named)
    return f"bytes {', '.join(named)}" + (f" and {more} more stretches" if more else "")


def _overwriting_repeats(listing: Iterable[Recorded], chip: Chip) -> Iterator[str]:
    for each in listing:
        if isinstance(each.instruction, CastRepeat):
            lost = _lost_bytes(replace(each.instruction, dst=_ANYWHERE, src=_ANYWHERE), chip)
            if lost:
                yield (
                    f"{each.line}: repeats of one Cast overwrite each other's results, {lost} B "
                    f"are lost: dst_rep_stride is {each.instruction.dst_rep_stride} blocks"
                )


_ANYWHERE: Final = UbAddress(offset_bytes=0)
_lost_bytes = functools.lru_cache(maxsize=256)(overwritten_bytes)


def _left_truncating(listing: Iterable[Recorded]) -> Iterator[str]:
    """CTRL[59] outlives a kernel; CTRL[48] is the stream's, which sets it for every kernel."""
    line, is_set = "", False
    for each in listing:
        if isinstance(each.instruction, SetCtrl) and each.instruction.bit == CTRL_CAST:
            line, is_set = each.line, each.instruction.value
    if is_set:
        yield (
            f"{line}: saturation of integer results is still off when the kernel ends, and "
            "would be for the next one: set_saturation_flag(SaturationMode.CAST, True) puts it back"
        )


def _left_scaling(listing: Iterable[Recorded]) -> Iterator[str]:
    """The deq scale outlives a kernel too, and no kernel can read its value."""
    line, scale = "", 1.0
    for each in listing:
        if isinstance(each.instruction, SetDeqScale):
            line, scale = each.line, each.instruction.scale
    if scale != 1:
        yield (
            f"{line}: the deq scale is still {scale:g} when the kernel ends, and would be for the "
            "next one: set_deq_scale(1.0) puts it back"
        )
