"""What the commands print with --json: plain dicts; numbers that JSON lacks become strings."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascend_kernels.matrix_table import MatrixRow
from pypto_cast.cast_plan import CastPlan
from pypto_cast.cast_report import CastReport
from pypto_cast.checkpoints.casting import CheckpointCast, Outcome
from pypto_cast.cli.explanation import Explanation, ModeResult
from pypto_cast.cli.run import CastRun
from pypto_cast.cli.traced import TracedCast
from pypto_cast.dtypes import SaturationMode
from pypto_cast.names import dtype_named
from pypto_cast.tensors.tensor import Tensor
from simulator.traces.trace import PIPES
from tiling.cost import NOT_MEASURED


def cast(
    source: Path, output: Path | None, tensor: Tensor, satmode: SaturationMode, done: CastRun
) -> dict[str, Any]:
    """The cast command."""
    return {
        "input": str(source),
        "output": None if output is None else str(output),
        "from": tensor.dtype.name,
        "to": done.result.dtype.name,
        "satmode": satmode.name,
        "plan": _plan(done.plan),
        "report": _report(done.report),
    }


def checkpoint(
    work: CheckpointCast, output: Path | None, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """The checkpoint command."""
    reports = [outcome.report for outcome in outcomes if outcome.report is not None]
    return {
        "input": str(work.checkpoint.path),
        "output": None if output is None else str(output),
        "to": work.dst.name,
        "mode": work.mode.name,
        "satmode": work.satmode.name,
        "metadata": dict(work.checkpoint.metadata),
        "tensors": [
            {
                "name": outcome.job.stored.name,
                "shape": list(outcome.job.stored.shape),
                "from": outcome.job.stored.dtype_in_words,
                "to": outcome.job.result.dtype_in_words,
                "unchanged": outcome.job.reason or None,
                "plan": _plan(outcome.job.plan),
                "report": None if outcome.report is None else _report(outcome.report),
            }
            for outcome in outcomes
        ],
        "total": {
            "cast": len(reports),
            "unchanged": len(outcomes) - len(reports),
            "bytes_in": sum(outcome.job.stored.size_bytes for outcome in outcomes),
            "bytes_out": sum(outcome.job.result.size_bytes for outcome in outcomes),
            "report": _report(sum(reports, CastReport())),
        },
    }


def trace(
    source: Path, output: Path | None, picture: Path | None, found: TracedCast
) -> dict[str, Any]:
    """The trace command; cycles of the chip's clock, time in us."""
    added, rule = found.timeline(), found.plan.resolution.rule
    seconds = added.makespan_cycles / found.parameters.clock_hz
    return {
        "input": str(source),
        "output": None if output is None else str(output),
        "picture": None if picture is None else str(picture),
        "from": dtype_named(str(rule.src)).name,
        "to": dtype_named(str(rule.dst)).name,
        "plan": _plan(found.plan),
        "cost_set": found.parameters.name,
        "not_measured": NOT_MEASURED,
        "cores": list(found.cores),
        "makespan_cycles": added.makespan_cycles,
        "makespan_us": seconds * 1e6,
        "busy_share": {pipe.name: added.busy_share(pipe) for pipe in PIPES},
        "limiting_pipe": added.limiting_pipe.name,
        "copied_bytes": added.copied_bytes,
        "gb_per_second": added.copied_bytes / seconds / 1e9,
    }


def matrix_row(row: MatrixRow) -> dict[str, Any]:
    """A row of the matrix command."""
    return dataclasses.asdict(row)


def explanation(found: Explanation) -> dict[str, Any]:
    """The explain command; every value is exact, as decimal text."""
    digits = found.src.code_dtype.itemsize * 2
    cut = found.cut
    return {
        "literal": found.literal,
        "from": found.src.name,
        "to": found.dst.name,
        "value": str(found.value),
        "rounded_from": None if found.rounded_from is None else str(found.rounded_from),
        "code": f"{found.code:#0{digits + 2}x}",
        "bits": found.bits,
        "significand": None
        if cut is None
        else {
            "kept": cut.kept,
            "dropped": cut.dropped,
            "guard": cut.guard,
            "sticky": cut.sticky,
            "quantum": cut.quantum,
        },
        "results": [_mode_result(result, found) for result in found.results],
    }


def _mode_result(result: ModeResult, found: Explanation) -> dict[str, Any]:
    digits = found.dst.code_dtype.itemsize * 2
    return {
        "mode": result.mode,
        "default": result.is_default,
        "code": f"{result.code:#0{digits + 2}x}",
        "bits": result.bits,
        "value": str(result.value),
        "ulp_error": None if result.ulp_error is None else float(result.ulp_error),
        "note": result.note,
        "satmode_off": None if result.off is None else str(result.off),
    }


def _plan(plan: CastPlan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    tiles, mode = plan.tiles, plan.resolution.mode
    return {
        "mode": None if mode is None else f"CAST_{mode}",
        "shape": list(tiles.shape),
        "tile_shape": list(tiles.tile_shape),
        "grid": list(tiles.grid.counts),
        "tiles": len(tiles.grid),
        "tails": list(tiles.tails),
        "chip": tiles.chip.name,
        "busy_cores": tiles.busy_cores,
        "vector_cores": tiles.chip.vector_cores,
        "tile_bytes": tiles.tile_bytes,
        "ub_bytes": tiles.chip.ub_bytes,
        "double_buffered": tiles.ub.is_double_buffered,
    }


def _report(report: CastReport) -> dict[str, Any]:
    worst = report.worst
    return {
        "elems": report.elems,
        "overflows": report.overflows,
        "nans_in": report.nans_in,
        "nans_out": report.nans_out,
        "subnormals": report.subnormals,
        "zeros": report.zeros,
        "inexact": report.inexact,
        "ulp_max": report.ulp_max,
        "ulp_mean": report.ulp_mean,
        "relative_max": report.relative_max,
        "relative_mean": report.relative_mean,
        "worst": None if worst is None else dataclasses.asdict(worst),
    }
