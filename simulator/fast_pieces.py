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

from simulator.formats import Codes, FloatFormat

Kernel = Callable[[Codes, Codes], None]
"""(source codes, destination codes): 1-D, contiguous, equally long; writes all of the latter."""

PIECE_ELEMS: Final = 1 << 18
"""Elements per piece: few enough to stay in the outer cache, and so many that an operation lasts
longer than handing the interpreter's lock to another thread (measured: from 2**17 on)."""

_DEFINED_ELEMS: Final = 1 << 15
"""Elements that the definition, which needs much more memory for each, is asked about at once."""

_SCRATCH_BYTES: Final = 28 * PIECE_ELEMS
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
        return np.errstate(all="ignore")(step.run)

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
    """What becomes of float codes whose magnitude exceeds `limit`: a step function of the code.

    Attributes:
        src: the source format.
        limit: the largest magnitude code that needs no mending.
        intervals: (first source code, result) of each interval, ascending; one ends where the next
            begins.
    """

    src: FloatFormat
    limit: int
    intervals: tuple[tuple[int, int], ...]

    @staticmethod
    def tabulate(src: FloatFormat, limit: int, definition: Callable[[Codes], Codes]) -> Beyond:
        """Ask the definition where the result changes above `limit`.

        From the next power of two on every finite number overflows alike, so the codes up to there,
        infinity and the first NaN tell all.
        """
        dtype = src.code_dtype
        settled = (limit | ((1 << src.man_bits) - 1)) + 1
        infinity = src.sign_code - (1 << src.man_bits)
        finite = np.arange(limit + 1, min(settled, infinity) + 1, dtype=dtype)
        positive = np.concatenate([finite, np.array([infinity, infinity + 1], dtype)])
        starts = np.concatenate([positive, positive | dtype.type(src.sign_code)])
        pieces = np.array_split(starts, -(-starts.size // _DEFINED_ELEMS))
        results = np.concatenate([definition(piece) for piece in pieces])
        changes = np.flatnonzero(results[1:] != results[:-1]) + 1
        return Beyond(
            src=src,
            limit=limit,
            intervals=tuple((int(starts[i]), int(results[i])) for i in (0, *changes)),
        )

    def touches(self, codes: Codes) -> bool:
        """Tell whether any code lies beyond; two reductions, no scratch.

        Read as signed integers only positive floats are positive, read as unsigned ones the
        negative floats are the largest; both orders follow the magnitude.
        """
        signed = codes.view(f"i{codes.itemsize}")
        return bool(
            np.maximum.reduce(signed) > self.limit
            or np.maximum.reduce(codes) > self.src.sign_code + self.limit
        )

    def results(self, codes: Codes, dtype: np.dtype[Any]) -> Codes:
        """Look up codes that all lie beyond, by counting the intervals that begin at or below."""
        interval = np.zeros(codes.shape, np.uint8)
        for start, _ in self.intervals[1:]:
            np.add(interval, (codes >= codes.dtype.type(start)).view(np.uint8), out=interval)
        table = np.array([result for _, result in self.intervals], dtype)
        return np.take(table, interval, mode="wrap")


def mended(step: Step, beyond: Beyond) -> Step:
    """Join a step that is right up to `beyond.limit` with the results beyond it.

    The step never meets a code beyond the limit: in a piece that has some, it converts zeros in
    their stead.
    """
    dtype = beyond.src.code_dtype
    magnitude_bits = np.array(beyond.src.sign_code - 1, dtype)
    limit = np.array(beyond.limit, dtype)

    def run(codes: Codes, out: Codes, tame: Codes, *scratch: npt.NDArray[Any]) -> None:
        if not beyond.touches(codes):
            step.run(codes, out, *scratch)
            return
        np.bitwise_and(codes, magnitude_bits, out=tame)
        wild = tame > limit
        np.copyto(tame, codes)
        np.copyto(tame, 0, where=wild)
        step.run(tame, out, *scratch)
        for start in range(0, codes.size, _DEFINED_ELEMS):
            where = np.flatnonzero(wild[start : start + _DEFINED_ELEMS])
            if where.size:
                where += start
                out[where] = beyond.results(codes[where], out.dtype)

    return Step(run=run, scratch=(dtype, *step.scratch))
