"""Operands of exp, log and rsqrt whose float64 results do not decide their FP32 codes.

All 2^32 codes are tried. An operand is hard where numbers within the bound of the float64 loop's
error round to two codes; Python's decimal numbers tell which of them is right.

    python -m benchmarks.hard_operands
    NPY_DISABLE_CPU_FEATURES="X86_V4" python -m benchmarks.hard_operands

The variable makes numpy take other loops; `benchmarks/hard_operands.md` has the rows of three runs.
`--codes` prints the operands' codes instead.
"""

from __future__ import annotations

import argparse
import decimal
import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import date_and_revision
from simulator.arithmetic import OPERATIONS
from simulator.arithmetic.elementary import BOUND

Array = npt.NDArray[Any]
DIGITS: Final = 120
_PIECE: Final = 1 << 20
PIECES: Final = (1 << 32) // _PIECE
FLOAT64: Final[dict[str, Callable[[Array], Array]]] = {
    "exp": np.exp,
    "log": np.log,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
"""The functions as numpy computes them."""
_DECIMAL: Final[dict[str, Callable[[decimal.Decimal], decimal.Decimal]]] = {
    "exp": decimal.Decimal.exp,
    "log": decimal.Decimal.ln,
    "rsqrt": lambda x: 1 / x.sqrt(),
}


def undecided(
    name: str, operands: Array, dtype: type[np.floating[Any]], bound: float = BOUND
) -> Array:
    """Finds the operands whose codes the float64 results leave open."""
    with np.errstate(all="ignore"):
        near = FLOAT64[name](operands.astype(np.float64))
        low, high = ((near * (1 + off)).astype(dtype) for off in (-bound, bound))
    return operands[(low != high) & ~np.isnan(near)]


def exact(name: str, operand: float, dtype: type[np.floating[Any]]) -> np.floating[Any]:
    """The correctly rounded result, by decimal numbers."""
    near = float(FLOAT64[name](np.array([operand]))[0])
    low, high = sorted(dtype(near * (1 + off)) for off in (-BOUND, BOUND))
    if low == high:
        return low
    with decimal.localcontext(prec=DIGITS):
        middle = (decimal.Decimal(float(low)) + decimal.Decimal(float(high))) / 2
        return low if _DECIMAL[name](decimal.Decimal(operand)) < middle else high


def hard_operands(name: str, bound: float = BOUND, pieces: range = range(PIECES)) -> Array:
    """The hard operands of all FP32 codes, or of some of their pieces of 2^20 codes."""
    codes = np.arange(_PIECE, dtype=np.uint32)
    with np.errstate(all="ignore"):
        codes_of = (codes + np.uint32(k * _PIECE) for k in pieces)
        return np.concatenate(
            [undecided(name, x.view(np.float32), np.float32, bound) for x in codes_of]
        )


def main() -> None:
    """Print a row of figures for each function, or the codes of its hard operands."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--codes", action="store_true", help="print the codes")
    codes = parser.parse_args().codes
    without = os.environ.get("NPY_DISABLE_CPU_FEATURES", "-")
    for name in FLOAT64:
        operands = hard_operands(name)
        if codes:
            print(name, ", ".join(f"{code:#010x}" for code in operands.view(np.uint32).tolist()))
            continue
        right = np.array([exact(name, x, np.float32) for x in operands.tolist()])
        loop = FLOAT64[name](operands.astype(np.float64)).astype(np.float32)
        ours = np.empty_like(operands)
        OPERATIONS[name].function(operands, out=ours)
        cells = (name, without, operands.size, np.sum(loop != right), np.sum(ours != right))
        print("|", " | ".join(map(str, (*cells, date_and_revision()[0]))), "|", flush=True)


if __name__ == "__main__":
    main()
