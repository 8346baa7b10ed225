"""Working through long arrays in pieces that stay in cache, and mending the rare special elements.

A fast path is a `Step`: a function that converts one piece with whole-piece numpy operations, each
writing into scratch memory that the thread keeps. A step may be right on ordinary codes only; the
`Beyond` of its pair then says what the other codes become, and `mended` joins the two.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.formats import Codes, FloatFormat

Kernel = Callable[[Codes, Codes], None]
"""(source codes, destination codes): 1-D, contiguous, equally long; writes all of the latter."""

PIECE_ELEMS: Final = 1 << 18
"""Elements per piece: few enough to stay in the outer cache, and so many that an operation lasts
longer than handing the interpreter's lock to another thread (measured: from 2**17 on)."""

_MENDED_ELEMS: Final = 1 << 15
"""Elements that are mended at once, in new memory."""

_WORTH_A_LOOK_UP: Final = 1 / 16
"""The share of elements to mend from which on it is faster to look all of them up (measured)."""

_SCRATCH_BYTES: Final = 24 * PIECE_ELEMS
"""The most that the scratch of any step adds up to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The conversion of one piece.

    Attributes:
        run: called with source codes, destination codes and one scratch array per entry of
            `scratch`, all of one length.
        scratch: dtypes of the scratch arrays.
        single_pass: goes over its piece once, so that pieces would only cost time.
    """

    run: Callable[..., None]
    scratch: tuple[np.dtype[Any], ...] = ()
    single_pass: bool = False


_CACHE_LINE_BYTES: Final = 64
"""Wide vectors that straddle cache lines cost a tenth of the speed."""


class _Scratch(threading.local):
    """One block of scratch memory per thread, shared by all kernels: none of them calls another."""

    def __init__(self) -> None:
        memory = np.empty(_SCRATCH_BYTES + _CACHE_LINE_BYTES, np.uint8)
        start = -memory.ctypes.data % _CACHE_LINE_BYTES
        self.memory = memory[start : start + _SCRATCH_BYTES]

    def carve(self, dtypes: tuple[np.dtype[Any], ...], elems: int) -> list[npt.NDArray[Any]]:
        """Lay out one array of each dtype, side by side."""
        arrays = []
        start = 0
        for dtype in dtypes:
            stop = start + dtype.itemsize * PIECE_ELEMS
            arrays.append(self.memory[start:stop].view(dtype)[:elems])
            start = stop
        return arrays


_SCRATCH: Final = _Scratch()


def in_pieces(step: Step) -> Kernel:
    """Make a kernel that applies `step` piece by piece.

    Floating-point warnings are silenced: an inexact operation is part of a conversion, not an
    accident.
    """
    if step.single_pass:

        def run_at_once(codes: Codes, out: Codes) -> None:
            with np.errstate(all="ignore"):
                step.run(codes, out)

        return run_at_once

    def run(codes: Codes, out: Codes) -> None:
        scratch = _SCRATCH.carve(step.scratch, min(codes.size, PIECE_ELEMS))
        with np.errstate(all="ignore"):
            for start in range(0, codes.size, PIECE_ELEMS):
                piece = codes[start : start + PIECE_ELEMS]
                if piece.size < PIECE_ELEMS:
                    scratch = [array[: piece.size] for array in scratch]
                step.run(piece, out[start : start + PIECE_ELEMS], *scratch)

    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """The results of float codes whose magnitude exceeds `limit`: a step function of the code.

    Attributes:
        src: the source format.
        limit: the largest magnitude code that needs no mending.
        intervals: (first source code, result) of each interval, ascending; one ends where the next
            begins. What is not beyond, of either sign, has the result 0.
    """

    src: FloatFormat
    limit: int
    intervals: tuple[tuple[int, int], ...]

    @staticmethod
    def tabulate(src: FloatFormat, limit: int, definition: Callable[[Codes], Codes]) -> Beyond:
        """Ask the definition where the result changes above `limit`.

        It does so in one direction only, up to infinity. All NaNs of a sign are alike.
        """

        def result(code: int) -> int:
            return int(definition(np.array([code], src.code_dtype))[0])

        infinity = src.sign_code - (1 << src.man_bits)
        intervals = []
        for sign in (0, src.sign_code):
            changes = _changes(result, sign + limit + 1, sign + infinity)
            starts = (sign + limit + 1, *changes, sign + infinity + 1)
            intervals += [(sign, 0), *((start, result(start)) for start in starts)]
        return Beyond(src=src, limit=limit, intervals=tuple(intervals))

    def mend(self, codes: Codes, out: Codes) -> None:
        """Set the results of the codes that lie beyond; those of all others stay.

        A few are picked out one by one. Where they are many, as in an attention mask, everything is
        looked up and blended in: no branch of that depends on a code.
        """
        for start in range(0, codes.size, _MENDED_ELEMS):
            piece, target = codes[start : start + _MENDED_ELEMS], out[start : start + _MENDED_ELEMS]
            wild = self._lie_beyond(piece)
            count = np.count_nonzero(wild)
            if count > piece.size * _WORTH_A_LOOK_UP:
                np.multiply(target, np.logical_not(wild).view(np.uint8), out=target)
                np.bitwise_or(target, self._results(piece, out.dtype), out=target)
            elif count:
                where = np.flatnonzero(wild)
                target[where] = self._results(piece[where], out.dtype)

    def _lie_beyond(self, codes: Codes) -> npt.NDArray[np.bool]:
        dtype = self.src.code_dtype.type
        wild: npt.NDArray[np.bool] = (codes & dtype(self.src.sign_code - 1)) > dtype(self.limit)
        return wild

    def _results(self, codes: Codes, dtype: np.dtype[Any]) -> Codes:
        """Look up by counting the intervals that begin at or below; 0 for what is not beyond."""
        interval = np.zeros(codes.shape, np.uint8)
        for start, _ in self.intervals[1:]:
            np.add(interval, (codes >= codes.dtype.type(start)).view(np.uint8), out=interval)
        table = np.array([result for _, result in self.intervals], dtype)
        return np.take(table, interval, mode="wrap")


def _changes(result: Callable[[int], int], first: int, last: int) -> list[int]:
    """Codes at which a step function that goes one way takes a new value, by bisection."""
    if result(first) == result(last):
        return []
    if last - first == 1:
        return [last]
    middle = (first + last) // 2
    return _changes(result, first, middle) + _changes(result, middle, last)


def exceed(codes: Codes, fmt: FloatFormat, limit: int) -> bool:
    """Tell whether the magnitude of any code is more than `limit`; two reductions, no scratch.

    Read as signed integers only positive floats are positive, read as unsigned ones the negative
    floats are the largest; both orders follow the magnitude.
    """
    return bool(
        np.maximum.reduce(codes.view(f"i{codes.itemsize}")) > limit
        or np.maximum.reduce(codes) > fmt.sign_code + limit
    )


def mended(step: Step, beyond: Beyond) -> Step:
    """Join a step that is right up to `beyond.limit` with the results beyond it.

    The step may give anything there, for numpy casts any float to some integer.
    """

    def run(codes: Codes, out: Codes, *scratch: npt.NDArray[Any]) -> None:
        step.run(codes, out, *scratch)
        if exceed(codes, beyond.src, beyond.limit):
            beyond.mend(codes, out)

    return Step(run=run, scratch=step.scratch)
