"""AscendC kernels as lists of calls of queues, tensors and copies, and their mutants.

The calls are data, so that one can be dropped, doubled or exchanged. `lowered` is a model of TPipe
and TQue of its own: it says which calls have no meaning, and which instructions the others issue.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from benchmarks.mutant_programs import Outcome
from benchmarks.mutant_sorting import Item, Listing, reason
from simulator import ascendc as asc
from simulator.machine.isa import (
    Cast,
    DataCopyPad,
    GmAddress,
    HardEvent,
    Pipe,
    PipeBarrier,
    SetFlag,
    UbAddress,
    WaitFlag,
)
from simulator.machine.memory import SimulatorFault, UbRange
from simulator.machine.pipes import CopyCompletion
from simulator.numbers.formats import FP16, FP32
from simulator.numbers.rounding import RoundMode

_NO_MEANING: Final = "call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a kernel.

    Attributes:
        name: alloc, enque, deque, free, copy_in, cast, copy_out or barrier.
        queue: "in" or "out", whose tensor the first four work on.
        elem: of copies, the first element in GM.
        count: elements of copies and casts.
    """

    name: str
    queue: str = ""
    elem: int = 0
    count: int = 0

    def __str__(self) -> str:
        return f"{self.name} {self.queue or f'{self.elem} {self.count}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """A kernel: FP32 to FP16 on one core, tile by tile.

    Attributes:
        buffers: how many each of the two queues has.
        tile_bytes: bytes of a buffer of the first queue and of the second.
        body: the calls.
    """

    buffers: tuple[int, int]
    tile_bytes: tuple[int, int]
    body: tuple[Call, ...]


def correct(rng: np.random.Generator) -> tuple[Calls, int]:
    """A correct kernel, and its elements."""
    tile, tiles = int(rng.integers(8, 80)), int(rng.integers(2, 6))
    elems = tile * tiles - int(rng.integers(tile - 1))
    body: list[Call] = []
    for start in range(0, elems, tile):
        count = min(tile, elems - start)
        arrive = [
            Call(name="alloc", queue="in"),
            Call(name="copy_in", elem=start, count=count),
            Call(name="enque", queue="in"),
        ]
        body += [
            *arrive,
            Call(name="deque", queue="in"),
            Call(name="alloc", queue="out"),
            Call(name="cast", count=count),
            Call(name="free", queue="in"),
            Call(name="enque", queue="out"),
            Call(name="deque", queue="out"),
            Call(name="copy_out", elem=start, count=count),
            Call(name="free", queue="out"),
        ]
    buffers = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    return Calls(buffers=buffers, tile_bytes=(4 * tile, 2 * tile), body=tuple(body)), elems


# --- The model ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Place:
    """A buffer: who may use it, and whether a flag says that it is free."""

    ub: UbRange
    number: int
    holder: int | None = None
    is_queued: bool = False
    is_flagged: bool = False


@dataclass(slots=True)
class _Line:
    """A queue: its buffers, the flags it sets, the order of its tensors."""

    forth: HardEvent
    back: HardEvent
    places: list[_Place]
    waiting: deque[_Place] = field(default_factory=deque)
    next: int = 0


class _NoMeaningError(Exception):
    pass


def lowered(kernel: Calls) -> tuple[list[Item], list[UbRange]] | None:
    """The instructions that a kernel issues, and its buffers; None: a call has no meaning."""
    lines, layout = {}, []
    used = 0
    events = {
        "in": (HardEvent.MTE2_V, HardEvent.V_MTE2),
        "out": (HardEvent.V_MTE3, HardEvent.MTE3_V),
    }
    for position, name in enumerate(events):
        places = []
        for number in range(kernel.buffers[position]):
            size = (kernel.tile_bytes[position] + 31) // 32 * 32
            places.append(
                _Place(UbRange(name=f"{name}{number}", offset_bytes=used, size_bytes=size), number)
            )
            used += size
        layout += [place.ub for place in places]
        lines[name] = _Line(*events[name], places)
    items: list[Item] = []
    held: dict[str, tuple[_Place, int]] = {}
    try:
        for ticket, call in enumerate(kernel.body):
            _lower(call, ticket, lines, held, items)
        for line in lines.values():
            if line.waiting or any(place.holder is not None for place in line.places):
                return None
            items += [_wait(line.back, place) for place in line.places if place.is_flagged]
    except _NoMeaningError:
        return None
    return items, layout


def _wait(event: HardEvent, place: _Place) -> WaitFlag:
    return WaitFlag(event=event, event_id=place.number)


def _tensor(held: dict[str, tuple[_Place, int]], queue: str) -> _Place:
    place, ticket = held[queue]
    if place.holder != ticket:
        raise _NoMeaningError
    return place


def _lower(
    call: Call,
    ticket: int,
    lines: dict[str, _Line],
    held: dict[str, tuple[_Place, int]],
    items: list[Item],
) -> None:
    match call.name:
        case "alloc":
            line = lines[call.queue]
            turns = [(line.next + i) % len(line.places) for i in range(len(line.places))]
            free = [
                i for i in turns if line.places[i].holder is None and not line.places[i].is_queued
            ]
            if not free:
                raise _NoMeaningError
            place = line.places[free[0]]
            line.next = (free[0] + 1) % len(line.places)
            if place.is_flagged:
                items.append(_wait(line.back, place))
                place.is_flagged = False
            items.append(place.ub)
            place.holder, held[call.queue] = ticket, (place, ticket)
        case "enque":
            line, place = lines[call.queue], _tensor(held, call.queue)
            if line.waiting:
                raise _NoMeaningError
            items.append(SetFlag(event=line.forth, event_id=place.number))
            place.holder, place.is_queued = -1, True
            line.waiting.append(place)
        case "deque":
            line = lines[call.queue]
            if not line.waiting:
                raise _NoMeaningError
            place = line.waiting.popleft()
            items.append(_wait(line.forth, place))
            place.holder, place.is_queued = ticket, False
            held[call.queue] = (place, ticket)
        case "free":
            line, place = lines[call.queue], _tensor(held, call.queue)
            items.append(SetFlag(event=line.back, event_id=place.number))
            place.holder, place.is_flagged = None, True
        case "barrier":
            items.append(PipeBarrier(of=Pipe.V))
        case _:
            items.append(_worked(call, held))


def _worked(call: Call, held: dict[str, tuple[_Place, int]]) -> Item:
    if call.name == "cast":
        target, source = _tensor(held, "out").ub, _tensor(held, "in").ub
        if not 0 <= call.count <= min(target.size_bytes // 2, source.size_bytes // 4):
            raise _NoMeaningError
        return Cast(
            dst=UbAddress(offset_bytes=target.offset_bytes),
            src=UbAddress(offset_bytes=source.offset_bytes),
            dst_format=FP16,
            src_format=FP32,
            mode=RoundMode.RINT,
            count=call.count,
        )
    queue, width = ("in", 4) if call.name == "copy_in" else ("out", 2)
    ub = UbAddress(offset_bytes=_tensor(held, queue).ub.offset_bytes)
    gm = GmAddress(tensor="x" if queue == "in" else "y", offset_bytes=width * call.elem)
    return DataCopyPad(
        dst=ub if queue == "in" else gm,
        src=gm if queue == "in" else ub,
        block_count=1,
        block_len_bytes=width * call.count,
        src_stride=0,
        dst_stride=0,
        elem_bytes=width,
    )


# --- The real thing ----------------------------------------------------------------------------


@asc.jit
def issue(x: asc.GlobalAddress, y: asc.GlobalAddress, kernel: Calls) -> None:
    """Make the calls with AscendC's objects."""
    queues = {
        "in": asc.TQue(asc.TPosition.VECIN, 1),
        "out": asc.TQue(asc.TPosition.VECOUT, 1),
    }
    dtypes = {"in": asc.float32, "out": asc.half}
    pipe = asc.TPipe()
    for position, name in enumerate(queues):
        pipe.init_buffer(queues[name], kernel.buffers[position], kernel.tile_bytes[position])
    held: dict[str, asc.LocalTensor] = {}
    gm = {"in": asc.GlobalTensor(), "out": asc.GlobalTensor()}
    for call in kernel.body:
        queue = queues.get(call.queue)
        match call.name, queue:
            case "alloc", asc.TQue():
                held[call.queue] = queue.alloc_tensor(dtypes[call.queue])
            case "deque", asc.TQue():
                held[call.queue] = queue.deque(dtypes[call.queue])
            case "enque", asc.TQue():
                queue.enque(held[call.queue])
            case "free", asc.TQue():
                queue.free_tensor(held[call.queue])
            case "barrier", _:
                asc.pipe_barrier(asc.PipeID.PIPE_V)
            case "cast", _:
                asc.cast(held["out"], held["in"], asc.RoundMode.CAST_RINT, call.count)
            case "copy_in", _:
                gm["in"].set_global_buffer(x + call.elem)
                pad = asc.DataCopyPadExtParams(asc.float32)
                blocks = asc.DataCopyExtParams(1, 4 * call.count)
                asc.data_copy_pad(held["in"], gm["in"], blocks, pad)
            case "copy_out", _:
                gm["out"].set_global_buffer(y + call.elem)
                blocks = asc.DataCopyExtParams(1, 2 * call.count)
                asc.data_copy_pad(gm["out"], held["out"], blocks)


def launch(x: Any, kernel: Calls, copy_completion: CopyCompletion) -> Outcome:
    """Run a kernel on its input."""
    y = np.full(x.size, np.nan, np.float16)
    fault = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", asc.KernelWarning)
            issue.options(copy_completion=copy_completion)[1](x, y, kernel)
    except (asc.KernelError, SimulatorFault) as found:
        fault = str(found)
    return Outcome(fault=fault, output=y.view(np.uint16), is_whole=not np.isnan(y).any())


# --- What is changed ---------------------------------------------------------------------------

_OTHER_CALLS: Final = {
    "alloc": "deque", "deque": "alloc", "enque": "free", "free": "enque",
    "copy_in": "copy_out", "copy_out": "copy_in", "cast": "barrier",
}  # fmt: skip


def spoiled(rng: np.random.Generator, kernel: Calls) -> tuple[str, Calls, str] | None:
    """The change, a mutant of a kernel, and its text; None: it would be no program."""
    kind, changed = _changed(rng, kernel)
    if not _is_meant(changed.body):
        return None
    calls = "; ".join(map(str, changed.body))
    return kind, changed, f"queues {kernel.buffers} {kernel.tile_bytes}: {calls}"


def _changed(rng: np.random.Generator, kernel: Calls) -> tuple[str, Calls]:
    body = kernel.body
    place = int(rng.integers(len(body)))
    call = body[place]
    kinds = ("dropped", "swapped", "doubled", "another", "amount", "buffers")
    kind = kinds[rng.integers(len(kinds))]
    if kind == "dropped":
        return "call dropped", dataclasses.replace(kernel, body=body[:place] + body[place + 1 :])
    if kind == "doubled":
        return "call doubled", dataclasses.replace(kernel, body=body[: place + 1] + body[place:])
    if kind == "swapped":
        other = int(np.clip(place + rng.choice([-3, -2, -1, 1, 2, 3, 11]), 0, len(body) - 1))
        changed = list(body)
        changed[place], changed[other] = body[other], call
        return "calls swapped", dataclasses.replace(kernel, body=tuple(changed))
    if kind == "buffers":
        by = [int(n) for n in rng.choice([-32, -1, 0, 1, 32], 2)]
        tile_bytes = (max(kernel.tile_bytes[0] + by[0], 1), max(kernel.tile_bytes[1] + by[1], 1))
        return "buffers of another size", dataclasses.replace(kernel, tile_bytes=tile_bytes)
    if kind == "another":
        name = _OTHER_CALLS.get(call.name, call.name)
        changed = [*body[:place], dataclasses.replace(call, name=name), *body[place + 1 :]]
        return "another call", dataclasses.replace(kernel, body=tuple(changed))
    by_elems = int(rng.choice([-16, -8, -2, -1, 1, 2, 8, 16]))
    fields = {"elem": call.elem} if rng.random() < 0.4 else {"count": call.count}
    moved = {name: max(value + by_elems, 0) for name, value in fields.items()}
    changed = [*body[:place], dataclasses.replace(call, **moved), *body[place + 1 :]]
    return "amount of a call changed", dataclasses.replace(kernel, body=tuple(changed))


def _is_meant(body: Sequence[Call]) -> bool:
    """No tensor is used before the variable that holds it is set: that would be no program."""
    known: set[str] = set()
    needs = {"copy_in": {"in"}, "copy_out": {"out"}, "cast": {"in", "out"}}
    for call in body:
        if call.name in ("alloc", "deque"):
            known.add(call.queue)
        elif not needs.get(call.name, {call.queue} - {""}) <= known:
            return False
    return True


def reason_of(elems: int, kernel: Calls) -> str:
    """The reason why a guard must report a kernel; empty if it is a legal one."""
    found = lowered(kernel)
    if found is None:
        return _NO_MEANING
    items, layout = found
    listing = Listing(
        bodies=(items,),
        layouts=(layout,),
        sizes={"x": 4 * elems, "y": 2 * elems},
        outputs=("y",),
        restores=False,
    )
    return reason(listing)
