"""The device's steps of special functions against 200 bits, and against their own ends.

Of every function the correctly rounded results come from mpmath. Counted are how many codes the
steps lie off at most, by range of the operand, and how many results are certain. FP16 and BF16 have
all codes; FP32 a draw over all codes and numbers near 1, in pairs for functions of two operands.
The steps are carried out once more, each open one with another result that its own ends allow: no
result may lie outside its ends.

    python -m benchmarks.special_functions --count 20000 --seed 1
    python -m benchmarks.special_functions --seconds 120 --seed random
"""

from __future__ import annotations

import argparse
import math
import secrets
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import mpmath
import numpy as np
import numpy.typing as npt

import pypto_cast as pypto
from benchmarks.measuring import date_and_revision
from pypto_cast.recording.recording import trust
from simulator import arithmetic
from simulator.arithmetic import OPERATIONS, Enclosure, special_steps
from simulator.arithmetic.total_order import from_keys, keys
from simulator.machine.tile_functions import ON_ARRAYS
from simulator.numbers.formats import FP32

Array = npt.NDArray[Any]
BITS: Final = 200
FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    **{name: getattr(mpmath, name) for name in ("tanh", "sinh", "cosh", "sin", "cos", "tan")},
    **{name: getattr(mpmath, name) for name in ("erf", "erfc", "expm1", "log1p")},
    **{name: getattr(mpmath, name) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
}
OF_TWO: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "atan2": mpmath.atan2,
    "hypot": mpmath.hypot,
    "pow": mpmath.power,
    "fmod": lambda x, y: x - int(x / y) * y,
    "remainder": lambda x, y: x - mpmath.floor(x / y) * y,
    "floor_div": lambda x, y: mpmath.floor(x / y),
}
BITS_OF_TWO: Final = 600
"""Enough for the quotient of any two FP32 numbers as an integer."""
RANGES: Final = (
    (0.0, 2.0**-12),
    (2.0**-12, 0.5),
    (0.5, 2.0),
    (2.0, 16.0),
    (16.0, 1e4),
    (1e4, math.inf),
)
LEAST: Final = 2.0**-126
"""Results below it have fewer bits, and are not counted."""
_DRAWN: Final = 500


def exact(name: str, *operands: Array) -> Array:
    """The function of FP32 numbers, rounded once to FP32; NaN outside its domain."""
    found = np.full(operands[0].shape, np.nan, np.float32)
    function = FUNCTIONS[name] if len(operands) == 1 else OF_TWO[name]
    with mpmath.workprec(BITS if len(operands) == 1 else BITS_OF_TWO):
        for k, each in enumerate(zip(*(x.tolist() for x in operands), strict=True)):
            try:
                value = function(*map(mpmath.mpf, each))
            except (ValueError, ZeroDivisionError):
                continue
            if not isinstance(value, mpmath.mpc):
                found[k] = _rounded(value)
    return found


def _rounded(value: Any) -> np.float32:
    """To FP32, once: normal numbers alone, to which the precision of mpmath's context rounds."""
    with mpmath.workprec(24), np.errstate(over="ignore"):
        return np.float32(float(+value))


def operands(count: int, seed: int) -> dict[str, Array]:
    """FP32 numbers: those that are FP16 or BF16, and drawn ones."""
    random = np.random.default_rng(seed)
    codes = np.arange(1 << 16, dtype=np.uint16)
    drawn = random.integers(0, 1 << 32, count // 2, np.uint32).view(np.float32)
    near = random.normal(0, 2, count - count // 2).astype(np.float32)
    found = {
        "FP16": codes.view(np.float16).astype(np.float32),
        "BF16": (codes.astype(np.uint32) << 16).view(np.float32),
        "FP32": np.concatenate([drawn, near]),
    }
    return {name: x[np.isfinite(x)] for name, x in found.items()}


def pairs(count: int, seed: int) -> dict[str, tuple[Array, Array]]:
    """Pairs of FP32 numbers: of all codes, and near 1."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 << 32, (2, count // 2), np.uint32).view(np.float32)
    near = random.normal(0, 2, (2, count - count // 2)).astype(np.float32)
    found = np.concatenate([codes, near], axis=1)
    x, y = found[:, np.isfinite(found).all(axis=0)]
    return {"FP32": (x, y)}


def moved(random: np.random.Generator) -> special_steps.Steps[Array]:
    """The steps on arrays, each of whose open results is any that its own ends allow."""

    def run(name: str, *operands: Array | float) -> Array:
        found = ON_ARRAYS.run(name, *operands)
        if found.dtype != np.float32 or OPERATIONS[name].bound is None:
            return found
        given = [Enclosure(values=np.asarray(each, np.float32)) for each in operands]
        ends = arithmetic.evaluate(OPERATIONS[name], given, FP32, trust=trust(name)).interval
        if ends is None:
            return found
        low, high = (keys(end, FP32).astype(np.int64) for end in (ends.low, ends.high))
        drawn = from_keys(random.integers(low, high + 1).astype(keys(found, FP32).dtype), FP32)
        return np.where(np.isnan(found), found, drawn)

    return replace(ON_ARRAYS, run=run)


def _carried_out(name: str, operands: tuple[Array, ...], random: np.random.Generator) -> Array:
    do = moved(random)
    steps = special_steps.OF_ONE if len(operands) == 1 else special_steps.OF_TWO
    if name in steps:
        return steps[name](do, *(each[None, :] for each in operands))
    (x,) = operands
    return getattr(pypto, name)(pypto.from_numpy(x[None, :])).numpy()


def rows(name: str, kind: str, operands: tuple[Array, ...], seed: int) -> list[str]:
    """A row of the table for each range: codes off at most, and how many results are certain.

    Raises:
        AssertionError: a result outside its ends.
    """
    x = operands[0]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        narrow = np.float16 if kind == "FP16" else np.float32
        given = [pypto.from_numpy(each[None, :].astype(narrow)) for each in operands]
        found = getattr(pypto, name)(*(pypto.cast(g, pypto.DT_FP32) for g in given)).enclosure()
        elsewhere = _carried_out(name, operands, np.random.default_rng(seed))[0]
        wanted = exact(name, *operands)
    values, certain = found.values[0], found.certain()[0]
    is_counted = np.isfinite(values) & np.isfinite(wanted) & (np.abs(wanted) >= LEAST)
    off = np.abs(keys(values, FP32).astype(np.int64) - keys(wanted, FP32).astype(np.int64))
    low, high = (keys(end, FP32)[0] for end in (found.low, found.high))
    flags = None if found.interval is None else found.interval.may_be_nan
    may_be_nan = np.isnan(values) if flags is None else flags[0]
    for each in (values, elsewhere):
        is_inside = (low <= keys(each, FP32)) & (keys(each, FP32) <= high)
        is_inside = np.where(np.isnan(each), may_be_nan | np.isnan(values), is_inside)
        assert is_inside.all(), (name, kind, [given[~is_inside][:3] for given in operands])
    lines = []
    for least, most in RANGES:
        chosen = is_counted & (np.abs(x) >= least) & (np.abs(x) < most)
        if chosen.any():
            place = np.argmax(np.where(chosen, off, -1))
            share = 100 * certain[chosen].mean()
            lines.append(
                f"| {name} | {kind} | {least:.3g} to {most:.3g} | {chosen.sum():,} | "
                f"{off[place]:,} | {x[place]!r} | {share:.1f} % |".replace("np.float32", "")
            )
    return lines


def main() -> None:
    """Print the table, or draw anew for some seconds and print how many results were looked at."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", choices=[[], *FUNCTIONS, *OF_TWO], help="all by default")
    parser.add_argument("--count", type=int, default=20000, help="drawn FP32 operands")
    parser.add_argument("--seed", default="1", help='a number, or "random"')
    parser.add_argument("--seconds", type=float, help="draw anew for so long")
    given = parser.parse_args()
    seed = secrets.randbits(32) if given.seed == "random" else int(given.seed)
    print(f"{' '.join(date_and_revision())}, {given.count:,} drawn FP32 operands, seed {seed}\n")
    if given.seconds is not None:
        print(f"{sampled(seed, given.seconds):,} results, none outside its ends")
        return
    print("| function | operands | magnitude | count | codes off at most | at | certain |")
    print("|---|---|---|---|---|---|---|")
    for name in given.only or (*FUNCTIONS, *OF_TWO):
        of_one = {kind: (x,) for kind, x in operands(given.count, seed).items()}
        drawn = of_one if name in FUNCTIONS else pairs(given.count, seed)
        for kind, each in drawn.items():
            print("\n".join(rows(name, kind, each, seed)), flush=True)


def sampled(seed: int, seconds: float) -> int:
    """Look at drawn operands of all functions for so long; the number of results.

    Raises:
        AssertionError: a result outside its ends.
    """
    until, count, number = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        drawn = np.random.default_rng([seed, number]).integers(0, 1 << 32)
        x = operands(2 * _DRAWN, int(drawn))["FP32"]
        for name in FUNCTIONS:
            rows(name, "FP32", (x,), int(drawn))
        both = pairs(2 * _DRAWN, int(drawn))["FP32"]
        for name in OF_TWO:
            rows(name, "FP32", both, int(drawn))
        count += len(FUNCTIONS) * len(x) + len(OF_TWO) * len(both[0])
        number += 1
    return count


if __name__ == "__main__":
    main()
