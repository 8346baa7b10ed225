"""Makes docs/routes.md: the table of verdicts, and the chains that libraries write.

python -m ascend_kernels.routing.routes_document            writes docs/routes.md
python -m ascend_kernels.routing.routes_document --check    fails if it is stale
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ascend_kernels.matrix import MATRIX
from ascend_kernels.routing.chain_check import all_values
from ascend_kernels.routing.chain_ranking import chain_verdict
from ascend_kernels.routing.recorded_chains import chain_of_text
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
    """The text of the page."""
    of_matrix, of_vectors = (
        [key for key in recorded_rows() if bool(set(key) & _VECTOR_ENDS) is beside]
        for beside in (False, True)
    )
    without_odd = [key for key in of_matrix if key[2] != RoundMode.ODD.name]
    without_wide = [key for key in of_vectors if not set(key) & _WIDE_ENDS]
    return "\n".join(
        (
            "# Routes of native casts",
            "",
            "A2/A3 converts 25 pairs of formats. Others take a chain of casts, which may round",
            "twice. `pypto.routes(src, dst, mode)` and `pypto-cast route` list the chains, each",
            "with a verdict against one rounding of the definition in that mode: integers clamp,",
            "FP16 and BF16 overflow as IEEE 754 says, NaN becomes 0 or the one NaN.",
            "",
            f"Of {len(of_matrix)} pairs and modes of the nine formats that A2/A3 casts",
            f"{_exact(of_matrix)} have an exact route of at most three steps,",
            f"{_exact(without_odd)} of {len(without_odd)} without CAST_ODD. For each of",
            "the others every chain of three steps differs on some code: these are all that can be",
            "exact.",
            "",
            "A verdict says how it is known. *Shown*: every code of the source was converted",
            "both ways. *Proved*: rounding, clamping and overflow never decrease, so a chain is",
            "known by the least source of each result; these are equal for both. That holds for",
            "64-bit sources too. Results of more than 16 bits are too many for it; a chain that",
            "ends there is compared code by code or, from 64 bits, on boundary codes and 65,536",
            "evenly spaced ones (*at least*).",
            "",
            "## Steps that are no casts",
            "",
            "*Scaled*: Muls by 2^-24, a cast to FP16, and Muls by 2^12 twice. The last place of",
            "subnormal FP16 is then 1, so the cast rounds to integers, by CAST_ODD too, which no",
            "cast to integers has. Such chains are tried where casts alone are not exact. Their",
            "verdicts rest on Muls that takes and gives subnormal numbers, and say so.",
            "",
            "No Cast has UINT16, UINT32, UINT64 or BOOL. Vector instructions reach them: codes are",
            "read as those of a format of the same width, clamped by Maxs and Mins, and cut by",
            "shifts. The types that A2/A3 have are in CANN asc-devkit's documents of Maxs, Mins,",
            "Muls (int16_t, half, int32_t, float), ShiftLeft, ShiftRight (int16_t, uint16_t,",
            "int32_t, uint32_t), And (int16_t, uint16_t), Compare and Select (half, float). A cast",
            "that clamps by itself gains nothing by a clamp before it.",
            "",
            f"Of {len(of_vectors)} pairs and modes with such an end {_exact(of_vectors)} have an",
            f"exact route, {_exact(without_wide)} of {len(without_wide)} of those with UINT16 or",
            "BOOL alone. None of these instructions takes 64-bit integers: an INT64 cannot be",
            "clamped at 0, and a UINT64 from 2^63 on is read as a negative number; so is a UINT32",
            "from 2^31 on.",
            "",
            'BOOL is "not zero": NaN is true, as the definition, numpy and torch have it, and',
            "-0.0 is false. All modes are one question. pypto has operations for routes from and",
            "to BOOL, none that reads UINT16, UINT32 or UINT64 as another dtype: `Route.kernel`",
            "refuses there, `Route.program` and `Route.cast` run.",
            "",
            "FakeConvert rounds to an 8-bit float, which A2/A3 lack. Of f16 to f8e5m2, with scale",
            "1 and no shift, it is a route all the same, since E5M2 is the upper byte of FP16:",
            "`pypto_cast.dialects.openvino.route` gives it, and for the others what comes nearest.",
            "",
            "## Pairs that the device does not convert",
            "",
            "`CAST_*` stands for each of the modes named.",
            "",
            *_table(("from", "to", "modes", "best route", "differs on"), _pair_rows()),
            "",
            "## Chains that libraries write",
            "",
            "Against one rounding by CAST_RINT, or by CAST_TRUNC from float to integer where the",
            "chain truncates. Sources: cann-ops,",
            "`src/math/cast/op_kernel/cast.cpp` (chains of casts alone; its conversions to 8 bits",
            "keep low bits on purpose and are not among them); pypto,",
            "`models/deepseek_v4/common.py` and `models/glm_v4_5/glm_ffn_common_interface.py`.",
            "AscendNPU-IR, a compiler for these devices: its saturating conversions and those",
            "through FP32 for A2/A3, `CastingTemplateHelpers.h` and `selectRoundMode`, which takes",
            "integers to float by RINT in one version and by TRUNC in another. torch_npu 2.13.0",
            "has no chain to compare: the Python of its wheel hands every cast to one operator",
            "(`npu_dtype_cast`), whose kernel is CANN's, compiled.",
            "",
            *_table(("library", "chain", "differs on", "best route"), _library_rows()),
            "",
            "The table is `ascend_kernels/routing/verdicts.json`, made by",
            "`python -m ascend_kernels.routing.make_table`; this page by",
            "`python -m ascend_kernels.routing.routes_document`.",
            "",
        )
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
