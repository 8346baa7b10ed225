"""Measures the memory that judging dumps takes beside the dumps.

`python -m benchmarks.judging_memory --write` writes the table: minutes, and 2 GB in a temporary
folder. Files are mapped into memory, so that Python's and numpy's own allocations are what is
measured, by tracemalloc.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import pypto_cast as pypto
from pypto_cast.cli.dumped_arrays import dumped
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.testing.judgement import judge
from pypto_cast.testing.part_judgement import PartJudge
from pypto_cast.testing.row_parts import RowParts

COLS: Final = 1000
ALLOWED_BYTES: Final = 80_000_000
"""A tenth of two FP32 dumps of 10^8 elements."""
_PAGE: Final = Path(__file__).with_suffix(".md")
_STEP_ROWS: Final = 1000
_N: Final = pypto.frontend.dynamic("N")
_Rows: Final = pypto.Tensor[[_N, COLS], pypto.DT_FP32]


@pypto.frontend.jit
def softmax(x: _Rows, y: _Rows) -> None:
    pypto.set_vec_tile_shapes(8, COLS)
    for i in pypto.loop(x.shape[0] // 8):
        t = x[i * 8 : i * 8 + 8, :]
        e = pypto.exp(t - pypto.amax(t, -1, True))
        y[i * 8 : i * 8 + 8, :] = e / pypto.sum(e, -1, True)


def _written(path: Path, rows: int, change: float, dtype: str, *, fortran: bool = False) -> None:
    """Write random numbers, and one row in a thousand changed, a piece at a time."""
    held = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.dtype(dtype), shape=(rows, COLS), fortran_order=fortran
    )
    for start in range(0, rows, _STEP_ROWS):
        rng = np.random.default_rng(start)
        part = rng.standard_normal((min(_STEP_ROWS, rows - start), COLS), np.float32)
        part[0] += np.float32(change)
        held[start : start + len(part)] = part
    held.flush()


def _measured(judging: Callable[[], object]) -> tuple[int, float]:
    """The peak of what is allocated, in bytes, and the seconds."""
    start = time.perf_counter()
    tracemalloc.start()
    try:
        judging()
        return tracemalloc.get_traced_memory()[1], time.perf_counter() - start
    finally:
        tracemalloc.stop()


def _in_parts(folder: Path) -> Callable[[], object]:
    """Judge the softmax of the golden, of which one row in a thousand is wrong."""
    x = np.load(folder / "golden.npy", mmap_mode="r")
    y = np.load(folder / "result.npy", mmap_mode="r+")
    for start in range(0, len(x), _STEP_ROWS):
        part = x[start : start + _STEP_ROWS]
        e = np.exp(part - part.max(-1, keepdims=True), dtype=np.float64)
        y[start : start + _STEP_ROWS] = e / e.sum(-1, keepdims=True)
        y[start] *= np.float32(1.25)
    arguments = [x, np.zeros(y.shape, y.dtype)]
    return lambda: PartJudge(RowParts(softmax, arguments, {}), ALLOWED_BYTES).judged({"y": y}, None)


def _rows(elems: int, folder: Path) -> Iterator[tuple[str, int, float]]:
    rows = elems // COLS // 8 * 8
    _written(folder / "golden.npy", rows, 0, "<f4")
    golden = folder / "golden.npy"

    def beside(words: str, dtype: DataType | None = None) -> tuple[str, int, float]:
        def judging() -> object:
            given = (dumped(folder / "result.npy", dtype), dumped(golden, dtype))
            return judge(*given, standard="community")

        return words, *_measured(judging)

    kinds: tuple[tuple[str, str, bool], ...] = (
        ("FP32 in Fortran's order", "<f4", True),
        ("FP32 with the bytes of big-endian machines", ">f4", False),
    )
    for words, dtype, fortran in kinds:
        _written(folder / "result.npy", rows, 1, dtype, fortran=fortran)
        yield beside(words)
    _written(folder / "result.npy", rows, 1, "<f4")
    yield beside("FP32")
    yield "FP32 by the bounds of a softmax, in parts", *_measured(_in_parts(folder))
    _written(folder / "result.npy", rows, 1, "<f4")
    for name in ("result", "golden"):
        codes: npt.NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r+").view(np.uint32)
        for start in range(0, rows, _STEP_ROWS):
            codes[start : start + _STEP_ROWS] &= np.uint32(0xFFFF0000)
    yield beside("BF16 kept as FP32", DataType.DT_BF16)


def _page(elems: int) -> Iterator[str]:
    yield "# Memory that judging takes beside the dumps"
    yield ""
    yield f"`python -m benchmarks.judging_memory --write`, two dumps of {elems:,} elements each,"
    yield f"{2 * 4 * elems:,} B, mapped into memory. In parts, {ALLOWED_BYTES:,} B are allowed."
    yield ""
    yield "| dump | peak, bytes | of the dumps |"
    yield "|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for words, peak, seconds in _rows(elems, Path(folder)):
            yield f"| {words} | {peak:,} | {100 * peak / (2 * 4 * elems):.1f} % |"
            print(f"{words}: {seconds:.0f} s")


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--elems", type=int, default=10**8)
    parser.add_argument("--write", action="store_true", help=f"write {_PAGE.name}")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    text = "\n".join((*_page(asked.elems), ""))
    if asked.write:
        _PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
