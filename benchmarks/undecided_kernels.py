"""Kernels over undecided numbers, against every value that the numbers can have.

A kernel reads numbers of an INT32 tensor whose elements a device may give otherwise. Its certainty
is compared with plain calls, one for each combination of values: an element that is called certain
must have its code in all of them, and an array that is not listed as an output must stay as it was.

    python -m benchmarks.undecided_kernels --count 10000 --seed 1
    python -m benchmarks.undecided_kernels --seconds 120
"""

from __future__ import annotations

import argparse
import itertools
import linecache
import random
import secrets
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import pypto_cast as pypto
from benchmarks.measuring import date_and_revision
from pypto_cast.recording import recording
from simulator.arithmetic import Enclosure, Interval

Array = npt.NDArray[Any]
Body = Callable[..., None]
"""Called with x, y (FP32 [8, 8]), z (INT32 [8, 8]), outputs out, other, third (FP32 [8, 8]) and the
numbers."""
Range = tuple[int, int, int]
"""The least value of a number, the one that the simulation has, and the greatest."""

ROWS: Final = 8
_F32 = pypto.Tensor[[ROWS, ROWS], pypto.DT_FP32]
_I32 = pypto.Tensor[[ROWS, ROWS], pypto.DT_INT32]
_NUMBERS = pypto.Tensor[[1, pypto.DYNAMIC], pypto.DT_INT32]
_STEERING: Final = 0.03
"""The share of forms that make all outputs unknown, where another will do."""
_OUTPUTS: Final = ("out", "other", "third")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One kernel, checked.

    Attributes:
        runs: values of its numbers with which it was called.
        failed: those with which a call raises, so that nothing is compared.
        elems: elements of the listed outputs.
        certain: those called certain.
        false: those called certain with another code in some call, those of arrays that are not
            listed and change, and wrong values.
    """

    runs: int
    failed: int
    elems: int
    certain: int
    false: int


class Skipped(Exception):
    """A kernel does not run, mostly for an extent or an offset."""


def _opened(numbers: pypto.Tensor, ranges: Sequence[Range]) -> pypto.Tensor:
    """The numbers, of which a device may have others where bounds are found."""
    held = numbers.enclosure()
    running = recording.current()
    if held is None or (running is not None and not running.bounds):
        return numbers
    low, _, high = (np.array([ends], np.int32) for ends in zip(*ranges, strict=True))
    cause = np.full(low.shape, recording.causes().index_here("opened"), np.uint16)
    interval = Interval(low=low, high=high, may_be_nan=None, cause=cause)
    data = Enclosure(values=held.values, interval=interval)
    return pypto.Tensor._from_result(low.shape, pypto.DT_INT32, data=data)


def check(body: Body, ranges: Sequence[Range]) -> Checked:
    """Compare the certainty of a kernel with its results for every value of its numbers.

    Raises:
        Exception: what the kernel raises when its certainty is asked for.
        Skipped: a plain call raises for the values that the simulation goes by.
    """

    @pypto.jit
    def kernel(
        x: _F32, y: _F32, z: _I32, numbers: _NUMBERS, out: _F32, other: _F32, third: _F32
    ) -> None:
        pypto.set_vec_tile_shapes(ROWS, ROWS)
        opened = _opened(numbers, ranges)
        body(x, y, z, out, other, third, *(opened[0, k] for k in range(len(ranges))))

    kernel._function.__wrapped__ = body  # whose source says which arrays it may write
    values = [value for _, value, _ in ranges]
    try:
        kernel(*_inputs(), np.array([values], np.int32), *_outputs())
    except Exception as error:
        raise Skipped(str(error)) from error
    found = kernel.certainty(*_inputs(), np.array([values], np.int32), *_outputs())
    runs = failed = 0
    false = {name: np.zeros((ROWS, ROWS), np.bool_) for name in _OUTPUTS}
    for members in itertools.product(*(range(low, high + 1) for low, _, high in ranges)):
        results = _outputs()
        runs += 1
        try:
            kernel(*_inputs(), np.array([members], np.int32), *results)
        except Exception:  # a device would go astray: nothing is known
            failed += 1
            continue
        for name, result, before in zip(_OUTPUTS, results, _outputs(), strict=True):
            codes = result.view(np.int32)
            if name not in found:
                false[name] |= codes != before.view(np.int32)
                continue
            output = found[name]
            differs = codes != output.values.view(np.int32)
            false[name] |= differs & (output.certain | (list(members) == values))
            false[name] |= ~output.contains(result)
    return Checked(
        runs=runs,
        failed=failed,
        elems=found.size,
        certain=found.size - found.undecided,
        false=sum(int(wrong.sum()) for wrong in false.values()),
    )


def _inputs() -> tuple[Array, Array, Array]:
    x = np.arange(ROWS * ROWS, dtype=np.float32).reshape(ROWS, ROWS) / 4 - 5
    return x, x[::-1].copy() * 3, x.astype(np.int32)


def _outputs() -> tuple[Array, ...]:
    return tuple(np.full((ROWS, ROWS), -7 - k, np.float32) for k in range(len(_OUTPUTS)))


class Writer:
    """The source of a random body.

    Args:
        chance: that it is made of.
        numbers: how many numbers it has.
    """

    def __init__(self, chance: random.Random, numbers: int) -> None:
        self._chance = chance
        self._names = [f"n{k}" for k in range(numbers)]
        self._count, self._before = 0, list[str]()
        self.parameters = ", ".join(("x", "y", "z", *_OUTPUTS, *self._names))

    def lines(self) -> list[str]:
        """The body."""
        lines = ["t = x + 0.0"]
        for _ in range(self._chance.randint(1, 5)):
            lines += self._statement("", 0)
        return lines

    def _number(self, depth: int = 0) -> str:
        pick = self._chance.choice
        if depth > 2 or self._chance.random() < 0.35:
            return pick(self._names) if self._chance.random() < 0.75 else str(pick(range(-3, 9)))
        a, b = self._number(depth + 1), self._number(depth + 1)
        steers = self._chance.random() < _STEERING
        forms = (
            *(f"({a} {sign} {b})" for sign in "+-*+-*"),
            *(f"({a} {sign} {pick((2, 3, 4, -3, b))})" for sign in ("//", "%", "/")),
            f"({a} {pick('&|^')} {b})",
            f"({a} {pick(('<<', '>>'))} {pick((0, 1, 2))})",
            f"pypto.min({a}, {b})",
            f"pypto.max({a}, {b})",
            f"({pick('-~')}{a})",
            f"min({a}, {b})" if steers else a,
            f"int({a})" if steers else b,
            f"[3, 1, 4, 1][{a} % 4]" if steers else a,
            f"({a} {pick(('<', '<=', '>', '>=', '==', '!='))} {b})",
        )
        return pick(forms)

    def _real(self) -> str:
        number = self._number(1)
        return f"float({number})" if self._chance.random() < _STEERING else number

    def _place(self) -> str:
        """The name of an offset of four rows, mostly; two uses of a number count as one."""
        number = self._number(1)
        self._count += 1
        form = f"pypto.max({number}, 0) % 5" if self._chance.random() < 0.9 else number
        self._before.append(f"p{self._count} = {form}")
        return f"p{self._count}"

    def _count_of(self) -> str:
        if self._chance.random() > _STEERING:
            return str(self._chance.randint(1, 3))
        return f"pypto.max({self._number(1)}, 0) % 4"

    def _tensor(self) -> str:
        """Eight rows."""
        pick = self._chance.choice
        of, real = pick(("x", "y", "t", "t")), self._real()
        forms = (
            f"{of} {pick('+-*')} {self._number(1)}",
            f"{of} {pick('+-*/')} {real}",
            f"{real} - {of}",
            f"pypto.maximum({of}, {real})",
            f"pypto.clip({of}, {real}, {self._real()})",
            f"pypto.full([8, 8], {real}, pypto.DT_FP32)",
            f"pypto.full([8, 8], {self._number(1)}, pypto.DT_FP32)",
            f"pypto.where({of} > pypto.Element(pypto.DT_FP32, {real}), {of}, {self._real()})",
            f"pypto.where({of} <= pypto.Element(pypto.DT_FP32, {real}), y, {of})",
            f"pypto.cast(z {pick('+-*')} {self._number(1)}, pypto.DT_FP32)",
            f"pypto.concat([{self._part()}, {self._part()}], 0)",
            f"{of} * pypto.sum({self._part()}, 0, True)",
            f"{of} + pypto.cast(z[{self._place()}, {pick(range(8))}] + z, pypto.DT_FP32)",
            f"pypto.fillpad(pypto.view({of}, [8, 8], [0, 0], valid_shape=[4, 8]), value={real})",
            f"{of} + pypto.topk({of}, 1 + {self._count_of()})[0][:, 0:1]",
        )
        return pick(forms)

    def _part(self) -> str:
        """Four rows."""
        of, place = self._chance.choice(("x", "y", "t")), self._place()
        length = f"1 + {self._count_of()}"
        valid = f"valid_shape=[{length}, 8]" if self._chance.random() < _STEERING else ""
        forms = (
            f"pypto.view({of}, [4, 8], [{place}, 0], {valid})",
            f"{of}[{place}:{place} + 4]",
            f"{of}[2:6]",
            f"({of}[0:4] + {self._real()})",
            f"pypto.view({of}, [4, 8], [{place}, 0])",
        )
        return self._chance.choice(forms)

    def _statement(self, indent: str, depth: int) -> list[str]:
        pick = self._chance.choice
        out, place = pick(_OUTPUTS), self._place()
        simple = (
            f"t = {self._tensor()}",
            f"{out}[:] = {self._tensor()}",
            f"{out}[{place}:{place} + 4] = {self._part()}",
            f"pypto.assemble({self._part()}, [{place}, 0], {out})",
            f"pypto.atomic_add({self._part()}, [{place}, 0], {out})",
            f"{out}.fill_({self._number(1)})",
            f"{out}[2:6] = {self._part()}",
            f"{out}[{place}, :] = x[{self._place()}, :]",
            f"{pick(self._names)} = {self._number()}",
        )
        if depth > 1 or self._chance.random() < 0.92:
            chosen = pick(simple)
            before, self._before = self._before, []
            return [indent + line for line in (*before, chosen)]
        self._count += 1
        name, inner, self._before = f"k{self._count}", [], []
        heads = (
            f"if {self._number()}:",
            f"if {self._number(1)} > {self._number(1)}:",
            f"if pypto.cond({self._number(1)} == {self._number(1)}):",
            f"for {name} in pypto.loop({self._count_of()}):",
            f"for {name} in pypto.loop({self._count_of()}, 4):",
            f"for {name}, _ in pypto.loop_unroll(0, {self._count_of()}, 1, unroll_list=[2]):",
            f"for {name} in range({self._count_of()}):",
        )
        for _ in range(self._chance.randint(1, 2)):
            inner += self._statement(indent + "    ", depth + 1)
        return [indent + pick(heads), *inner]


def compiled(parameters: str, lines: Sequence[str], **names: Any) -> Body:
    """The function of a source, which `inspect` finds too.

    Args:
        parameters: its own.
        lines: its body, without the function's indent.
        names: that it knows beside `pypto`.
    """
    text = "\n".join((f"def body({parameters}):", *(f"    {line}" for line in lines), ""))
    file = f"<kernel {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"pypto": pypto, "__name__": __name__, **names}
    exec(compile(text, file, "exec"), space)
    body: Body = space["body"]
    return body


def random_kernels(seed: int) -> Iterator[tuple[str, Checked]]:
    """Sources of random kernels that run, one after another, and what checking found."""
    chance = random.Random(seed)
    while True:
        count = chance.choice((1, 1, 2))
        ranges = []
        for _ in range(count):
            low = chance.choice((0, 0, 1, chance.randint(-6, 6)))
            high = low + chance.randint(1, 4)
            ranges.append((low, chance.randint(low, high), high))
        writer = Writer(chance, count)
        lines = writer.lines()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = "\n".join((f"# numbers {ranges}", *lines))
            try:
                checked = check(compiled(writer.parameters, lines), ranges)
            except Skipped:
                continue
            except Exception as error:
                raise RuntimeError(f"no certainty of\n{source}") from error
        yield source, checked


def table_row(seed: int, checked: Sequence[Checked]) -> str:
    """A row of the table in benchmarks/undecided_kernels.md."""
    total = {
        name: sum(getattr(each, name) for each in checked)
        for name in ("runs", "failed", "elems", "certain", "false")
    }
    cells = (
        *date_and_revision(),
        seed,
        f"{len(checked):,}",
        f"{total['runs'] - total['failed']:,}",
        f"{total['elems']:,}",
        f"{total['certain']:,}",
        total["false"],
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.undecided_kernels", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--count", type=int, help="kernels; else as many as fit the seconds")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    end, checked, wrong = time.monotonic() + given.seconds, [], 0
    for source, found in random_kernels(given.seed):
        checked.append(found)
        if found.false:
            wrong += 1
            print(f"{found.false} elements are falsely certain:\n{textwrap.indent(source, '    ')}")
        done = time.monotonic() > end if given.count is None else len(checked) >= given.count
        if done:
            break
    print(table_row(given.seed, checked))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
