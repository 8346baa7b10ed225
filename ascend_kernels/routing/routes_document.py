"""Makes the counts and tables of docs/routes.md: verdicts, and the chains that libraries write.

python -m ascend_kernels.routing.routes_document            writes docs/routes.md
python -m ascend_kernels.routing.routes_document --check    fails if it is stale
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ascend_kernels.matrix import MATRIX
from ascend_kernels.routing.chain_check import all_values
from ascend_kernels.routing.chain_ranking import chain_of_text, chain_verdict
from ascend_kernels.routing.vector_rows import STORAGE_FORMATS
from ascend_kernels.routing.verdict_table import RecordedRoute, recorded_rows
from simulator.numbers.formats import FORMATS, FloatFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

PAGE: Final = Path(__file__).parents[2] / "docs" / "routes.md"
_ANY: Final = "CAST_*"
_VECTOR_ENDS: Final = {fmt.name for fmt in STORAGE_FORMATS}
_WIDE_ENDS: Final = {"UINT32", "UINT64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryChain:
    """A chain that a library writes, and the one rounding that it stands for."""

    library: str
    route: str
    mode: RoundMode


_CANN_OPS: Final = "cann-ops"
_NPU_IR: Final = "AscendNPU-IR"
_NPU_IR_ANOTHER: Final = "AscendNPU-IR, another version"
_PYPTO_MODELS: Final = "pypto models"
_BY_HAND: Final = "by hand"
_TRUNCATING: Final = "FP32 -> FP16 CAST_TRUNC -> INT8 CAST_TRUNC"
LIBRARY_CHAINS: Final = tuple(
    LibraryChain(
        library=library,
        route=route,
        mode=RoundMode.TRUNC if route == _TRUNCATING else RoundMode.RINT,
    )
    for library, route in (
        (_CANN_OPS, "FP16 -> FP32 -> BF16 CAST_RINT"),
        (_CANN_OPS, "BF16 -> FP32 -> FP16 CAST_RINT"),
        (_CANN_OPS, "INT32 -> FP32 CAST_RINT -> FP16 CAST_RINT"),
        (_CANN_OPS, "INT32 -> FP32 CAST_RINT -> BF16 CAST_RINT"),
        (_CANN_OPS, "INT64 -> FP32 CAST_ROUND -> FP16 CAST_RINT"),
        (_CANN_OPS, "INT64 -> FP32 CAST_ROUND -> BF16 CAST_RINT"),
        (_CANN_OPS, "INT64 -> INT32 -> INT16"),
        (_CANN_OPS, "INT16 -> FP32 -> INT32 CAST_ROUND"),
        (_CANN_OPS, "INT16 -> FP32 -> INT64 CAST_ROUND"),
        (_CANN_OPS, "INT8 -> FP16 -> INT32 CAST_TRUNC -> INT64"),
        (_CANN_OPS, "INT8 -> FP16 -> FP32 -> BF16 CAST_RINT"),
        (_CANN_OPS, "UINT8 -> FP16 -> INT32 CAST_TRUNC -> INT64"),
        (_CANN_OPS, "UINT8 -> FP16 -> FP32 -> BF16 CAST_RINT"),
        (_NPU_IR, _TRUNCATING),
        (_NPU_IR, "INT64 -> FP32 CAST_TRUNC -> INT16 CAST_TRUNC"),
        (_NPU_IR, "INT64 -> FP32 CAST_TRUNC -> FP16 CAST_TRUNC -> INT8 CAST_TRUNC"),
        (_NPU_IR, "INT32 -> FP32 CAST_TRUNC -> FP16 CAST_TRUNC -> INT8 CAST_TRUNC"),
        (_NPU_IR, "INT16 -> FP16 CAST_TRUNC -> INT8 CAST_TRUNC"),
        (_NPU_IR, "INT64 -> FP32 CAST_RINT -> FP16 CAST_RINT"),
        (_NPU_IR, "INT64 -> FP32 CAST_RINT -> BF16 CAST_RINT"),
        (_NPU_IR, "INT32 -> FP32 CAST_RINT -> FP16 CAST_RINT"),
        (_NPU_IR, "INT32 -> FP32 CAST_RINT -> BF16 CAST_RINT"),
        (_NPU_IR, "INT16 -> FP32 -> BF16 CAST_RINT"),
        (_NPU_IR_ANOTHER, "INT64 -> FP32 CAST_TRUNC -> FP16 CAST_RINT"),
        (_NPU_IR_ANOTHER, "INT64 -> FP32 CAST_TRUNC -> BF16 CAST_RINT"),
        (_NPU_IR_ANOTHER, "INT32 -> FP32 CAST_TRUNC -> FP16 CAST_RINT"),
        (_NPU_IR_ANOTHER, "INT32 -> FP32 CAST_TRUNC -> BF16 CAST_RINT"),
        (_PYPTO_MODELS, "FP32 -> INT32 CAST_RINT -> FP16 CAST_RINT -> INT8 CAST_TRUNC"),
        (_BY_HAND, "FP32 -> FP16 CAST_RINT -> INT8 CAST_RINT"),
    )
)
"""Chains of casts alone, as read in the sources that the page names; its CAST_NONE is CAST_RINT."""


def page() -> str:
    """The text of the page, with the counts and tables as they are now."""

    def generated(found: re.Match[str]) -> str:
        return "\n".join((found[1], *_GENERATED[found[2]](), found[3]))

    return _MARKED.sub(generated, PAGE.read_text(encoding="utf-8"))


def _counts(*, of_vectors: bool) -> tuple[str, ...]:
    """The number of rows with an exact route, of those between formats that Cast has or others."""
    keys = [key for key in recorded_rows() if bool(set(key) & _VECTOR_ENDS) is of_vectors]
    if of_vectors:
        without_wide = [key for key in keys if not set(key) & _WIDE_ENDS]
        return (
            f"Of {len(keys)} pairs and modes with such an end {_exact(keys)} have an",
            f"exact route, {_exact(without_wide)} of {len(without_wide)} of those with UINT16 or",
            "BOOL alone.",
        )
    without_odd = [key for key in keys if key[2] != RoundMode.ODD.name]
    return (
        f"Of {len(keys)} pairs and modes of the nine formats that A2/A3 casts",
        f"{_exact(keys)} have an exact route of at most three steps,",
        f"{_exact(without_odd)} of {len(without_odd)} without CAST_ODD.",
    )


def _exact(keys: Iterable[tuple[str, str, str]]) -> int:
    """The number of rows whose best route is exact."""
    rows = recorded_rows()
    return sum(not rows[key][0].differing for key in keys)


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [headings, ("---",) * len(headings), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _pair_rows() -> Iterator[tuple[str, ...]]:
    alike: dict[tuple[str, str, str, str], list[str]] = {}
    for (src, dst, mode), (best, *_) in recorded_rows().items():
        if (FORMATS[src], FORMATS[dst]) in MATRIX[A2_A3]:
            continue
        is_rounded = FloatFormat in (type(FORMATS[src]), type(FORMATS[dst]))
        route = best.route.replace(f"CAST_{mode}", _ANY) if is_rounded else best.route
        alike.setdefault((src, dst, route, _differs(best)), []).append(mode)
    for (src, dst, route, differs), modes in alike.items():
        named = route.replace(_ANY, f"CAST_{modes[0]}") if len(modes) == 1 else route
        yield src, dst, ", ".join(modes) if len(modes) < len(RoundMode) else "all", named, differs


def _differs(route: RecordedRoute) -> str:
    if not route.differing:
        return "none"
    return f"{'at least ' if route.verdict.get('is_least') else ''}{route.differing:,}"


def _library_rows() -> Iterator[tuple[str, ...]]:
    for written in LIBRARY_CHAINS:
        chain = chain_of_text(written.route)
        verdict = chain_verdict(all_values(chain.src, chain.dst), chain, written.mode)
        best = recorded_rows()[chain.src.name, chain.dst.name, written.mode.name][0]
        differs = "?" if verdict is None else f"{verdict.differing:,}" if verdict.differing else ""
        better = "" if differs == "" else f"{best.route}: {_differs(best)}"
        yield written.library, written.route, differs or "none", better


_MARKED: Final = re.compile(r"(<!-- generated: (\w+) -->)\n.*?(<!-- end -->)", re.DOTALL)
_GENERATED: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "matrix_counts": lambda: _counts(of_vectors=False),
    "vector_counts": lambda: _counts(of_vectors=True),
    "pairs": lambda: _table(("from", "to", "modes", "best route", "differs on"), _pair_rows()),
    "chains": lambda: _table(("library", "chain", "differs on", "best route"), _library_rows()),
}
"""The parts of the page by the names of their markers."""


def main() -> int:
    """Write the page, or with --check fail if it is stale."""
    prog = "python -m ascend_kernels.routing.routes_document"
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print(f"{PAGE.name} is stale: run {prog}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
