"""Spoiled programs against the guards: `python -m benchmarks.machine_mutants --count 21000`.

A mutant is a correct program with one thing changed. Before it runs, `mutant_sorting` says whether
a guard must report it; then the machine runs it. A mutant that must be reported and is not is
silent, and the command ends with 1. One that is another legal program is never counted as caught:
the table tells how many of them give another output or write it in part, and whether a guard
refused one, which ends the command with 1 too.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import secrets
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from benchmarks import mutant_programs, mutant_queues
from benchmarks.measuring import date_and_revision, markdown
from benchmarks.mutant_programs import Outcome
from benchmarks.mutant_sorting import Item, reason
from simulator.machine.cast_table import CAST_TABLE
from simulator.machine.isa import (
    And,
    AndRepeat,
    Cast,
    CastRepeat,
    DataCopy,
    DataCopyPad,
    Duplicate,
    GmAddress,
    HardEvent,
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
from simulator.machine.pipes import COPY_COMPLETIONS, CopyCompletion
from tiling.chips import A2_A3

Body = tuple[Item, ...]
Rng = np.random.Generator
_COPIES: Final = (DataCopy, DataCopyPad)
_WORK: Final = (Cast, CastRepeat, Duplicate, And, AndRepeat, VectorScalar)
_FLAGS: Final = (SetFlag, WaitFlag)
MUTANTS_OF_ONE: Final = 120
"""Mutants that are tried of one correct program; of a kernel of queues, which is short, fewer."""
MUTANTS_OF_QUEUES: Final = 60
_Program = TypeVar("_Program", bound=Hashable)


# --- What is changed ---------------------------------------------------------------------------


def _pick(rng: Rng, body: Body, kinds: tuple[type, ...]) -> int | None:
    places = [index for index, each in enumerate(body) if isinstance(each, kinds)]
    return int(rng.choice(places)) if places else None


def _changed(body: Body, index: int, **fields: Any) -> Body:
    other = dataclasses.replace(body[index], **fields)
    return (*body[:index], other, *body[index + 1 :])


def _dropped(*kinds: type) -> Callable[[Rng, Body], Body | None]:
    def drop(rng: Rng, body: Body) -> Body | None:
        index = _pick(rng, body, kinds)
        return None if index is None else (*body[:index], *body[index + 1 :])

    return drop


def _pair_dropped(rng: Rng, body: Body) -> Body | None:
    """A flag is neither set nor waited for."""
    index = _pick(rng, body, (SetFlag,))
    given = None if index is None else body[index]
    if index is None or not isinstance(given, SetFlag):
        return None
    wait = WaitFlag(event=given.event, event_id=given.event_id)
    later = (place for place in range(index, len(body)) if body[place] == wait)
    place = next(later, None)
    return None if place is None else (*body[:index], *body[index + 1 : place], *body[place + 1 :])


def _moved(rng: Rng, body: Body) -> Body | None:
    """An instruction stands a few places earlier or later."""
    index = _pick(rng, body, (*_FLAGS, PipeBarrier, *_COPIES, *_WORK))
    if index is None:
        return None
    rest = [*body[:index], *body[index + 1 :]]
    place = min(max(index + int(rng.choice([-9, -3, -2, -1, 1, 2, 3, 9])), 0), len(rest))
    return (*rest[:place], body[index], *rest[place:])


def _swapped(rng: Rng, body: Body) -> Body | None:
    if len(body) < 2:
        return None
    index = int(rng.integers(len(body) - 1))
    return (*body[:index], body[index + 1], body[index], *body[index + 2 :])


def _doubled(rng: Rng, body: Body) -> Body | None:
    index = _pick(rng, body, (*_FLAGS, *_COPIES, *_WORK))
    return None if index is None else (*body[: index + 1], *body[index:])


def _other_flag(rng: Rng, body: Body) -> Body | None:
    index = _pick(rng, body, _FLAGS)
    if index is None:
        return None
    if rng.random() < 0.5:
        return _changed(body, index, event_id=int(rng.integers(-1, 9)))
    return _changed(body, index, event=list(HardEvent)[rng.integers(len(HardEvent))])


def _other_barrier(rng: Rng, body: Body) -> Body | None:
    index = _pick(rng, body, (PipeBarrier,))
    pipe = list(Pipe)[rng.integers(len(Pipe))]
    return None if index is None else _changed(body, index, of=pipe)


def _address(rng: Rng, body: Body) -> Body | None:
    """By bytes, elements, lines or repeats, or to the place of another instruction's operand."""
    index = _pick(rng, body, (*_COPIES, *_WORK))
    if index is None:
        return None
    name, address = _some_field(rng, body[index], (GmAddress, UbAddress))
    if rng.random() < 0.3:
        others = [value for each in body for _, value in _fields(each)]
        place = int(rng.choice([o.offset_bytes for o in others if isinstance(o, type(address))]))
    else:
        step = int(rng.choice([1, 2, 4, 8, 16, 32, 64, 96, 256, 4096])) * int(rng.choice([-1, 1]))
        place = address.offset_bytes + step
    return _changed(body, index, **{name: dataclasses.replace(address, offset_bytes=place)})


_AMOUNTS: Final = (
    "count", "size_bytes", "block_count", "block_len_bytes", "repeat_times", "left_padding",
    "right_padding",
)  # fmt: skip
_STRIDES: Final = (
    "src_stride", "dst_stride", "dst_blk_stride", "src_blk_stride", "dst_rep_stride",
    "src_rep_stride", "src0_blk_stride", "src1_blk_stride", "src0_rep_stride", "src1_rep_stride",
)  # fmt: skip


def _number(names: tuple[str, ...]) -> Callable[[Rng, Body], Body | None]:
    def change(rng: Rng, body: Body) -> Body | None:
        index = _pick(rng, body, (*_COPIES, *_WORK))
        if index is None:
            return None
        found = [(name, value) for name, value in _fields(body[index]) if name in names]
        if not found:
            return None
        name, value = found[rng.integers(len(found))]
        by_one = value + int(rng.choice([-64, -32, -16, -8, -4, -2, -1, 1, 2, 4, 8, 16, 32, 64]))
        other = int(rng.choice([by_one, by_one, by_one, value * 2, value // 2, 0]))
        return _changed(body, index, **{name: other})

    return change


def _mask(rng: Rng, body: Body) -> Body | None:
    index = _pick(rng, body, (CastRepeat, AndRepeat))
    if index is None:
        return None
    mask = dict(_fields(body[index]))["mask"]
    if isinstance(mask, int):
        return _changed(body, index, mask=int(rng.choice([mask - 1, mask + 1, 0, mask // 2, 64])))
    bit = 1 << int(rng.integers(65))
    other = (mask[0] ^ bit, mask[1]) if bit < 1 << 64 else (mask[0], mask[1] ^ 1)
    return _changed(body, index, mask=other)


def _mode(rng: Rng, body: Body) -> Body | None:
    index = _pick(rng, body, (Cast, CastRepeat))
    cast = None if index is None else body[index]
    if index is None or not isinstance(cast, (Cast, CastRepeat)):
        return None
    row = CAST_TABLE[A2_A3][cast.src_format, cast.dst_format]
    modes = [*row.modes, *[None] * row.has_none]
    return _changed(body, index, mode=modes[rng.integers(len(modes))])


def _fields(each: Item) -> Iterator[tuple[str, Any]]:
    return ((known.name, getattr(each, known.name)) for known in dataclasses.fields(each))


def _some_field(rng: Rng, each: Item, kinds: tuple[type, ...]) -> tuple[str, Any]:
    found = [(name, value) for name, value in _fields(each) if isinstance(value, kinds)]
    return found[rng.integers(len(found))]


KINDS: Final[dict[str, Callable[[Rng, Body], Body | None]]] = {
    "set or wait dropped": _dropped(*_FLAGS),
    "set and wait dropped": _pair_dropped,
    "barrier dropped": _dropped(PipeBarrier),
    "copy dropped": _dropped(*_COPIES),
    "vector instruction dropped": _dropped(*_WORK),
    "register instruction dropped": _dropped(SetCtrl, RestoreCtrl, SetDeqScale),
    "instruction moved": _moved,
    "neighbours swapped": _swapped,
    "instruction doubled": _doubled,
    "another flag": _other_flag,
    "another pipe's barrier": _other_barrier,
    "address moved": _address,
    "amount changed": _number(_AMOUNTS),
    "stride changed": _number(_STRIDES),
    "mask changed": _mask,
    "round mode changed": _mode,
}


# --- The run -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end of one mutant.

    Attributes:
        kind: what was changed.
        text: the program and the change, for messages.
        reason: why a guard must report it; empty: it is another legal program.
        fault: what a guard reported; empty: nothing.
        differs: the output is another.
        is_whole: every byte of the output was written.
    """

    kind: str
    text: str
    reason: str
    fault: str
    differs: bool
    is_whole: bool

    @property
    def is_silent(self) -> bool:
        return bool(self.reason) and not self.fault

    @property
    def is_refused(self) -> bool:
        return not self.reason and bool(self.fault)

    @property
    def is_accepted(self) -> bool:
        return not self.reason and not self.fault


def mutants(seed: int) -> Iterator[Result]:
    """Mutants of one correct program after another, without end."""
    for number in range(1 << 62):
        rng = np.random.default_rng([seed, number])
        if number % 4 == 3:
            kernel, elems = mutant_queues.correct(rng)
            x = rng.permutation(elems).astype(np.float32) + np.float32(0.5)
            yield from _mutants_of(
                kernel,
                rng,
                mutant_queues.spoiled,
                partial(mutant_queues.reason_of, elems),
                partial(mutant_queues.launch, x),
                MUTANTS_OF_QUEUES,
            )
            continue
        base = (mutant_programs.kernel_base if number % 2 else mutant_programs.cast_base)(rng)
        yield from _mutants_of(
            base.program.bodies,
            rng,
            partial(_spoiled, base.name),
            lambda bodies, base=base: reason(base.listing(bodies)),
            base.outcome,
            MUTANTS_OF_ONE,
        )


def _mutants_of(
    correct: _Program,
    rng: Rng,
    spoiled: Callable[[Rng, _Program], tuple[str, _Program, str] | None],
    reason_of: Callable[[_Program], str],
    run: Callable[[_Program, CopyCompletion], Outcome],
    tries: int,
) -> Iterator[Result]:
    """Different mutants of one program, with what was expected of each and what it did."""
    why, sound = reason_of(correct), run(correct, COPY_COMPLETIONS[0])
    if why or sound.fault or not sound.is_whole:
        raise RuntimeError(f"{correct} is no correct program: {why or sound.fault}")
    seen = {correct}
    for _ in range(tries):
        found = spoiled(rng, correct)
        if found is None or found[1] in seen:
            continue
        kind, changed, text = found
        seen.add(changed)
        must = reason_of(changed)
        outcome = run(changed, COPY_COMPLETIONS[rng.integers(len(COPY_COMPLETIONS))])
        yield Result(
            kind=kind,
            text=text,
            reason=must,
            fault=outcome.fault,
            differs=not np.array_equal(outcome.output, sound.output),
            is_whole=outcome.is_whole,
        )


def _spoiled(name: str, rng: Rng, bodies: tuple[Body, ...]) -> tuple[str, Any, str] | None:
    """The kind of change, the bodies with it, and its text; None: nothing was changed."""
    kind = list(KINDS)[rng.integers(len(KINDS))]
    core = int(rng.integers(len(bodies)))
    body = KINDS[kind](rng, bodies[core])
    if body is None or body == bodies[core]:
        return None
    text = f"{name}, core {core}: {_difference(bodies[core], body)}"
    return kind, (*bodies[:core], body, *bodies[core + 1 :]), text


def _difference(before: Body, after: Body) -> str:
    """The stretch of a program that changed."""
    first = next(
        (i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]),
        min(len(before), len(after)),
    )
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    old, new = (
        "; ".join(str(each) for each in body[first : len(body) - last]) for body in (before, after)
    )
    return f"item {first}: {old or 'nothing'} -> {new or 'nothing'}"


# --- The table ---------------------------------------------------------------------------------


COUNTS: Final[Mapping[str, Callable[[Result], bool]]] = {
    "mutants": lambda each: True,
    "must": lambda each: bool(each.reason),
    "reported": lambda each: bool(each.reason) and not each.is_silent,
    "silent": lambda each: each.is_silent,
    "legal": lambda each: not each.reason,
    "same": lambda each: each.is_accepted and each.is_whole and not each.differs,
    "differs": lambda each: each.is_accepted and each.is_whole and each.differs,
    "incomplete": lambda each: each.is_accepted and not each.is_whole,
    "refused": lambda each: each.is_refused,
}
"""The columns of the table: the mutants that each counts."""


@dataclass(slots=True)
class Tally:
    """The counts by kind and by reason, and the mutants that should not be."""

    rows: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[Result] = field(default_factory=list)

    @property
    def must(self) -> int:
        """Those that a guard must report."""
        return self.rows["all"]["must"]

    def add(self, result: Result) -> None:
        """Count a mutant."""
        for name in (result.kind, "all"):
            self.rows[name].update({count: of(result) for count, of in COUNTS.items()})
        if result.reason:
            self.reasons[result.reason] += 1
        if result.is_silent or result.is_refused:
            self.wrong.append(result)

    def table(self) -> str:
        """The counts as a table of Markdown."""
        names = sorted(self.rows, key=lambda name: (name == "all", name))
        rows = [{"kind": name, **{c: self.rows[name][c] for c in COUNTS}} for name in names]
        reasons = ", ".join(f"{name} {count}" for name, count in self.reasons.most_common())
        return f"{markdown(rows)}\n\nMust be reported because of: {reasons}."


def measure(seeds: Sequence[int], count: int | None = None, seconds: float = math.inf) -> Tally:
    """Run the mutants of each seed until so many must be reported, or for so long in all."""
    tally, until = Tally(), time.monotonic() + seconds
    for seed in seeds:
        before = tally.must
        for result in mutants(seed):
            tally.add(result)
            if tally.must - before == count or time.monotonic() >= until:
                break
    return tally


_COLUMNS: Final = """\
A mutant *must* be reported by a guard, or it is another *legal* program: its output is the *same*,
*differs* or is written in part (*incomplete*). *Silent* are those that a guard must report and none
did, *refused* the legal ones that one reported."""


def report(tally: Tally, seeds: Sequence[int]) -> str:
    """The table with its date, revision and seeds, and a line for each mutant that is wrong."""
    today, revision = date_and_revision()
    lines = [
        "# Mutants of correct programs against the guards of the machine",
        "",
        f"{today}, revision {revision}, seeds {' '.join(map(str, seeds))}",
        "",
        _COLUMNS,
        "",
        tally.table(),
    ]
    for each in tally.wrong:
        word = "silent" if each.is_silent else "refused"
        lines.append(f"- {word}: {each.kind}: {each.text}: {each.reason or each.fault}")
    return "\n".join(lines)


def main() -> int:
    """Print the report; 1 if a mutant was silent or a legal program refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", nargs="+", default=["1"], help='numbers, or "random"')
    parser.add_argument("--count", type=int, help="for each seed so many that must be reported")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    options = parser.parse_args()
    if options.count is None and math.isinf(options.seconds):
        parser.error("give --count or --seconds")
    seeds = [secrets.randbelow(1 << 32) if s == "random" else int(s) for s in options.seed]
    print("seeds", *seeds, file=sys.stderr, flush=True)
    tally = measure(seeds, options.count, options.seconds)
    print(report(tally, seeds))
    return bool(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())
