"""All FP32 operands of the native executor's exp and log: `python -m benchmarks.native_operations`.

Compares the codes of both engines, operand by operand, at an instruction set that this machine has.
Prints the operands whose results differ, with both; none is expected. The definition decides:
`simulator.arithmetic.elementary`. A minute or four for each function, by the instruction set.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

import numpy as np

from simulator.arithmetic import OPERATIONS, Enclosure, evaluate
from simulator.arithmetic.native.executor_library import Executor, find
from simulator.arithmetic.trust import EXACT
from simulator.numbers.formats import FP32

_PIECE: Final = 1 << 24
_FUNCTIONS: Final = ("exp", "log", "rsqrt", "sqrt", "round", "floor", "ceil", "trunc")


def differences(name: str, count: int) -> Iterator[tuple[int, int, int]]:
    """Yield the codes of operands, of numpy's results and of the executor's, where they differ.

    Args:
        name: of an operation of one operand.
        count: so many operands, spread over all codes; 2**32 are all.
    """
    stride = (1 << 32) // count
    for start in range(0, count, _PIECE):
        numbers = np.arange(start, min(start + _PIECE, count), dtype=np.uint64) * stride
        codes = numbers.astype(np.uint32)
        given = [Enclosure(values=codes.view(np.float32))]
        expected, found = (
            evaluate(OPERATIONS[name], given, FP32, trust=EXACT, engine=engine).values
            for engine in ("numpy", "native")
        )
        results = expected.view(np.uint32), found.view(np.uint32)
        for k in np.flatnonzero(results[0] != results[1]):
            yield int(codes[k]), int(results[0][k]), int(results[1][k])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.native_operations", description=__doc__
    )
    parser.add_argument("--name", action="append", choices=_FUNCTIONS, help="repeatable")
    parser.add_argument("--count", type=int, default=1 << 32, help="operands, spread; else all")
    given = parser.parse_args()
    executor = find()
    if not isinstance(executor, Executor):
        raise SystemExit(str(executor))
    for name in given.name or ("exp", "log"):
        wrong = list(differences(name, given.count))
        for operand, expected, found in wrong:
            print(f"{name} of 0x{operand:08X}: 0x{found:08X}, not 0x{expected:08X}")
        print(
            f"{name}, {executor.level}: {len(wrong)} of {given.count} operands differ", flush=True
        )


if __name__ == "__main__":
    main()
