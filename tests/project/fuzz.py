"""Coverage-guided fuzzing: inputs that reach new lines are kept and mutated further.

python tests/project/fuzz.py --seconds 600

Hypothesis turns bytes into the arguments of a target, so that mutated bytes are mutated arguments.
Needs the extra `test`. Exit code 1 and the bytes to repeat it with, if a target fails.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from types import FrameType
from typing import Any

from fuzz_targets import FOLDERS, TARGETS, Target

Line = tuple[str, int]
LONGEST_BYTES = 4096


def lines_of(target: Target, given: bytes) -> tuple[bytes | None, set[Line]]:
    """Run a target; the bytes it used, None if they made no arguments, and the lines it reached."""
    reached: set[Line] = set()

    def trace_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return trace_line

    def trace_call(frame: FrameType, event: str, _: Any) -> Any:
        return trace_line if frame.f_code.co_filename.startswith(FOLDERS) else None

    before = sys.gettrace()
    sys.settrace(trace_call)
    try:
        used = target.hypothesis.fuzz_one_input(given)
    finally:
        sys.settrace(before)
    return used, reached


class Fuzzer:
    """One target with its corpus and the lines that it has reached."""

    def __init__(self, name: str, target: Target, chance: random.Random) -> None:
        self.name = name
        self.target = target
        self.chance = chance
        self.corpus: list[bytes] = []
        self.reached: set[Line] = set()
        self.runs = 0

    def step(self) -> bool:
        """Run once; print what a failure takes to be repeated and return False."""
        given = self._next()
        self.runs += 1
        try:
            used, reached = lines_of(self.target, given)
        except Exception:
            traceback.print_exc()
            words = f"--target {self.name} --input {given.hex()}"
            print(f"repeat it: python tests/project/fuzz.py {words}")
            return False
        if used and not reached <= self.reached:
            self.corpus.append(used)
            self.reached |= reached
        return True

    def _next(self) -> bytes:
        if not self.corpus or self.chance.random() < 0.1:
            return self.chance.randbytes(self.chance.randint(1, 1024))
        held = bytearray(self.chance.choice(self.corpus[-8:] if self.chance.random() < 0.3 else
                                            self.corpus))  # fmt: skip
        for _ in range(1 << self.chance.randint(0, 4)):
            start = self.chance.randrange(len(held) + 1)
            stop = start + self.chance.choice([0, 1, 1, 1, 4, 8])
            held[start:stop] = self.chance.randbytes(self.chance.choice([0, 1, 1, 1, 4, 8]))
        if self.chance.random() < 0.2:
            other = self.chance.choice(self.corpus)
            held[self.chance.randrange(len(held) + 1) :] = other[
                self.chance.randrange(len(other)) :
            ]
        return bytes(held[:LONGEST_BYTES]) or b"\0"


def fuzz(targets: dict[str, Target], *, seconds: float, seed: int) -> bool:
    """Run targets in turn until the time is over, or one fails; whether none did."""
    chance = random.Random(seed)
    print(f"seed {seed}, {seconds:g} s: {', '.join(targets)}", flush=True)
    fuzzers = [Fuzzer(name, target, chance) for name, target in targets.items()]
    end = time.monotonic() + seconds
    sound = True
    while sound and time.monotonic() < end:
        sound = all(fuzzer.step() for fuzzer in fuzzers)
    for fuzzer in fuzzers:
        print(
            f"{fuzzer.name}: {fuzzer.runs} runs, {len(fuzzer.reached)} lines, "
            f"{len(fuzzer.corpus)} inputs kept"
        )
    return sound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=None, help="of the clock unless given")
    parser.add_argument("--target", choices=list(TARGETS), help="this one alone")
    parser.add_argument("--input", type=bytes.fromhex, help="hexadecimal bytes, run once")
    asked = parser.parse_args()
    targets = TARGETS if asked.target is None else {asked.target: TARGETS[asked.target]}
    if asked.input is not None:
        for target in targets.values():
            target.hypothesis.fuzz_one_input(asked.input)
        return 0
    seed = time.time_ns() if asked.seed is None else asked.seed
    return 0 if fuzz(targets, seconds=asked.seconds, seed=seed) else 1


if __name__ == "__main__":
    sys.exit(main())
