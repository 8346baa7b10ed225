"""Random programs of all operations, against runs in which every open result is another one.

A program is some operations on earlier results, in FP32, FP16, BF16, INT32, INT16, INT8, UINT8 and
BOOL. It runs as a kernel, whose certainty is asked for. Then it runs again on operands that are
exact, and each operation that leaves elements open gives one that its own ends allow, drawn for
each element: what a device may compute, step by step. An element is falsely certain if its result
is another one then; nor may a result lie outside the ends that the certainty has. By documents the
program runs again as well, under `trust="documented"`.

    python -m benchmarks.perturbed_programs --count 10000 --seed 1
    python -m benchmarks.perturbed_programs --seconds 120
"""

from __future__ import annotations

import argparse
import contextlib
import random
import secrets
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import pypto_cast as pypto
from benchmarks.measuring import date_and_revision
from benchmarks.program_operations import CALLS, SHAPE, STATEMENTS, TILE, Drawn
from pypto_cast.operations.lowering import converted_to
from simulator.arithmetic import Enclosure
from simulator.arithmetic.total_order import from_keys, keys
from simulator.numbers.formats import FP32, FloatFormat, Format

Array = npt.NDArray[Any]

LONGEST: Final = 6
_NAN_SHARE: Final = 0.2
"""The share of results that are NaN where they may be."""
_INPUTS: Final = (
    *(pypto.DT_FP32, pypto.DT_FP32, pypto.DT_FP16, pypto.DT_BF16, pypto.DT_INT32),
    *(pypto.DT_INT16, pypto.DT_INT8, pypto.DT_UINT8),
)
_RARE: Final = 0.04
_SPECIAL: Final = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3e38, 1.0, 7e4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Operations one after another, of which the last results are outputs.

    Attributes:
        names: of the operations.
        seed: of their operands and of the inputs.
    """

    names: tuple[str, ...]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One program, checked.

    Attributes:
        elems: elements of its outputs.
        certain: those called certain, by choices.
        documented: those of them certain by documents.
        changed: open ones that a perturbed run gave otherwise.
        false: certain ones that a perturbed run gave otherwise, and results outside their ends.
        where: the outputs and elements of the false ones.
    """

    elems: int
    certain: int
    documented: int
    changed: int
    false: int
    where: str = ""


def drawn_from(random: np.random.Generator, found: Enclosure, fmt: Format) -> Enclosure:
    """One result for each element, of those that an interval allows."""
    interval = found.interval
    if interval is None:
        return found
    low, high = (keys(end, fmt).astype(np.int64) for end in (found.low, found.high))
    ends = random.integers(0, 4, low.shape)
    between = random.integers(low, high + 1)
    chosen = np.where(ends == 0, low, np.where(ends == 1, high, between))
    values = from_keys(chosen.astype(keys(found.low, fmt).dtype), fmt).reshape(found.shape)
    if interval.may_be_nan is not None:
        wins = interval.may_be_nan & (random.random(found.shape) < _NAN_SHARE)
        values = np.where(wins, np.array(np.nan, values.dtype), values)
    return Enclosure(values=np.ascontiguousarray(values))


@contextlib.contextmanager
def perturbed(random: np.random.Generator) -> Iterator[Callable[[pypto.Tensor], None]]:
    """Have every result that is open be one that its ends allow; gives what settles an output."""
    plain = pypto.Tensor._from_result

    def result(
        shape: Any, dtype: Any, name: str = "", data: Any = None, *, hidden: Any = None, **more: Any
    ) -> pypto.Tensor:
        if hidden is not None:
            hidden = drawn_from(random, hidden, FP32)
            data = converted_to(hidden, FP32, dtype.number_format)
        elif callable(data):
            data = data()
        if isinstance(data, Enclosure):
            data = drawn_from(random, data, dtype.number_format)
        return plain(shape, dtype, name, data, hidden=hidden, **more)

    def settle(out: pypto.Tensor) -> None:
        held = out[:].enclosure()
        assert held is not None
        out[:] = result(SHAPE, out.dtype, data=held)

    pypto.Tensor._from_result = staticmethod(result)
    try:
        yield settle
    finally:
        pypto.Tensor._from_result = staticmethod(plain)


_X, _H, _B, _Z, _S, _C, _U = (pypto.Tensor[list(SHAPE), dtype] for dtype in dict.fromkeys(_INPUTS))


def _kernel(program: Program, settle: Callable[[pypto.Tensor], None]) -> Any:
    @pypto.jit
    def kernel(
        x: _X,
        y: _X,
        h: _H,
        b: _B,
        z: _Z,
        s: _S,
        c: _C,
        u: _U,
        out: _X,
        real: _X,
        half: _H,
        whole: _Z,
    ) -> None:
        pypto.set_vec_tile_shapes(*TILE)
        pypto.set_cube_tile_shapes([32, 32], [32, 32], [32, 32])
        quarters = pypto.div(x, 0.25)  # integers for the most part, to the last place of a division
        opened = [quarters, pypto.cast(quarters, pypto.DT_INT32, pypto.CAST_FLOOR), quarters > y]
        drawn = Drawn(program.seed, out, [x, y, h, b, z, s, c, u, *opened])
        last = {real.dtype: x, half.dtype: h, whole.dtype: z}
        for name in program.names:
            found = CALLS[name](drawn)
            if name in STATEMENTS:
                settle(out)
                found = out + 0.0
            for each in found if isinstance(found, tuple) else (found,):
                drawn.hold(each)
                last[each.dtype] = each
        for written in (real, half, whole):
            written[:] = last[written.dtype]

    return kernel


def inputs(seed: int) -> tuple[Array, ...]:
    """The tensors of a program: numbers near 1, half of them quarters, and some far from
    it, and small integers.
    """
    random = np.random.default_rng(seed)
    arrays = []
    for dtype in _INPUTS:
        fmt = dtype.number_format
        if isinstance(fmt, FloatFormat):
            values = random.normal(0, 2, SHAPE)
            values = np.where(random.random(SHAPE) < 0.5, np.rint(values * 4) / 4, values)
            rare = random.random(SHAPE) < _RARE
            values = np.where(rare, random.choice(_SPECIAL, SHAPE), values)
            with np.errstate(over="ignore"):
                arrays.append(values.astype(fmt.dtype))
        else:
            arrays.append(random.integers(max(fmt.min, -9), 10, SHAPE).astype(fmt.dtype))
    return tuple(arrays)


def _outputs() -> tuple[Array, ...]:
    dtypes = (np.float32, np.float32, np.float16, np.int32)
    return tuple(np.full(SHAPE, 3, dtype) for dtype in dtypes)


def check(program: Program) -> Checked:
    """Compare the certainty of a program with perturbed runs of it."""
    arrays = inputs(program.seed)
    found = _kernel(program, lambda out: None).certainty(*arrays, *_outputs())
    elems = found.size
    false, changed, where = 0, 0, []
    for trust in ("default", "documented"):
        with pypto.options(trust=trust):
            random = np.random.default_rng(program.seed)
            with perturbed(random) as settle:
                other = _kernel(program, settle)._certainty((*arrays, *_outputs()), {})
        for name in found:
            mine, theirs = found[name], other[name]
            fmt = mine.dtype.number_format
            differs = keys(mine.values, fmt) != keys(theirs.values, fmt)
            if isinstance(fmt, FloatFormat):
                differs &= ~(np.isnan(mine.values) & np.isnan(theirs.values))
            certain = mine.certain if trust == "default" else mine.by_documents
            wrong = differs & certain
            if trust == "default":
                wrong |= ~mine.contains(theirs.values)
            changed += int((differs & ~certain).sum())
            if wrong.any():
                false += int(wrong.sum())
                at = tuple(map(int, np.argwhere(wrong)[0]))
                where.append(f"{trust} {name}{list(at)}: {mine.values[at]} {theirs.values[at]}")
    return Checked(
        elems=elems,
        certain=elems - found.undecided,
        documented=sum(int(found[name].by_documents.sum()) for name in found),
        changed=changed,
        false=false,
        where="; ".join(where),
    )


def random_programs(seed: int) -> Iterator[Program]:
    """Programs without end; every name is drawn once before one is drawn again."""
    chance, left = random.Random(seed), list[str]()
    while True:
        length = chance.randint(1, LONGEST)
        while len(left) < length:
            left += chance.sample(sorted(CALLS), len(CALLS))
        names, left = tuple(left[:length]), left[length:]
        yield Program(names=names, seed=chance.randrange(1 << 32))


def table_row(seed: int, checked: Sequence[Checked], names: Counter[str]) -> str:
    """A row of the table in benchmarks/perturbed_programs.md."""
    totals = (sum(getattr(each, name) for each in checked) for name in _COUNTED)
    counts = f"{len(names)}, each {min(names.values()):,} times or more"
    cells = (*date_and_revision(), seed, f"{len(checked):,}", counts, *(f"{n:,}" for n in totals))
    return f"| {' | '.join(map(str, cells))} |"


_COUNTED: Final = ("elems", "certain", "documented", "changed", "false")


def main() -> int:
    """Check so many programs, or as many as fit the seconds."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.perturbed_programs", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--count", type=int, help="programs; else as many as fit the seconds")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    end, checked = time.monotonic() + given.seconds, list[Checked]()
    names = Counter[str]()
    for program in random_programs(given.seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = check(program)
        checked.append(found)
        names.update(program.names)
        if found.false:
            print(f"{found.false} elements are false: {program}\n    {found.where}", flush=True)
        done = time.monotonic() > end if given.count is None else len(checked) >= given.count
        if done:
            break
    print(table_row(given.seed, checked, names))
    return int(any(each.false for each in checked))


if __name__ == "__main__":
    sys.exit(main())
