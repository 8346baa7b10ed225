"""The cycles of tasks beside those of upstream's simulator, and the table that they are made of.

    python -m benchmarks.simulated_cycles --python PYTHON --dumps DIR
    python -m benchmarks.simulated_cycles --python PYTHON --dumps DIR --write

With the interpreter of an environment that has upstream's wheel, each kernel is compiled by it with
its cost model, which leaves the timeline of each pipe and of the cores. The table of cycles by
opcode and dtype is fitted to calibration kernels and to every second kernel of planned_kernels.csv;
`--write` puts it into ascend_kernels/schedule/cycle_table.py. The other kernels, and all those in
many tile shapes, are held out: they are planned here, and their cycles by the table are ranked
beside the simulator's. Nothing is measured on a device.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import runpy
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

import pypto_cast as pypto
from ascend_kernels.schedule import cycle_table
from ascend_kernels.schedule.parts import Leaf
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.reader.dump_files import DumpError
from ascend_kernels.schedule.reader.timeline_files import TIMELINES
from ascend_kernels.schedule.schedule import RELEASE, Schedule
from ascend_kernels.schedule.simulated_cycles import Forms, forms_of, leaf_cycles, measured_size
from ascend_kernels.schedule.views.task_times import schedule_cycles
from benchmarks.measuring import Row, date_and_revision, markdown
from benchmarks.planned_schedules import COMPILE_SECONDS, LIST, listed, planned_kernel
from benchmarks.upstream_kernels import DTYPES, Written, written
from pypto_cast.upstream.wheel_compile import WheelError, compile_kernel

_OPERATION: Final = re.compile(r"\d+ (\w+) (.*?) ?TO (.*)")
_TENSOR: Final = re.compile(r"(UB|DDR)_\[[\d,-]*\]\[([\d,]*)\]-\d+-\d+ (\d+)B")
_FLOATS: Final = ("float32", "float16", "bfloat16")
_ONE: Final = (
    *("abs", "ceil", "exp", "exp2", "expm1", "floor", "isfinite", "log", "log1p", "logical_not"),
    *("neg", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "sqrt", "trunc"),
)
_TWO: Final = (
    *("add", "copysign", "div", "maximum", "minimum", "mul", "pow", "sub", "fmod", "remainder"),
)
_CASTS: Final = (
    *("bfloat16 float32", "float16 float32", "float16 int32", "float16 int8", "float16 uint8"),
    *("float32 bfloat16", "float32 float16", "float32 int16", "float32 int32", "int32 float32"),
    *("int8 float16", "uint8 float16", "int16 float16", "int32 int16", "float16 int16"),
    *("int32 float16", "int16 float32"),
)
_CALIBRATED: Final = ((16, 64), (64, 128))
"""Tile shapes of the calibration kernels; reductions have a third, of rows over 512 bytes."""
_WIDE: Final = (16, 320)
_SWEPT: Final = {
    "cast_f": "256x512:float32 256x512:float16",
    "chain_f": "256x512:float32 256x512:float32 256x512:float32",
    "chain_b": "256x512:bfloat16 256x512:bfloat16 256x512:bfloat16",
    "clip_f": "256x512:float16 256x512:float16",
    "int8tok_s": "256x512:bfloat16 256x512:int8 256x1:float32",
    "ln_s": "256x512:float32 1x512:float32 1x512:float32 256x512:float32",
    "longchain": "256x512:float32 256x512:float32 256x512:float32 256x512:float32",
    "red_sum_last_f": "256x512:float32 256x1:float32",
    "red_amax_first_f": "256x512:float32 1x512:float32",
    "rmsq_s": "256x512:bfloat16 1x512:bfloat16 256x512:int8 256x1:float32",
    "softmax_s": "256x512:float32 256x512:float16",
    "swiglu_s": "256x512:bfloat16 256x512:bfloat16 256x512:bfloat16",
    "where_s": "256x512:float32 256x512:float32 256x512:float32",
}
"""The kernels that are compiled in many tile shapes, with their arguments."""
_SWEEP: Final = tuple(itertools.product((4, 8, 16, 32, 64, 128), (64, 128, 256, 512)))
_MODULE: Final = '''\
"""Cycles of tile operations, as the simulator in upstream's wheel counts them; by no device.

Written by `python -m benchmarks.simulated_cycles --write` on {date} at revision {revision},
from the timelines of pipes of pypto {release} (the device of its model is an Ascend910B2):
{kernels} kernels, {operations} different sizes of operations, of which the forms miss {off} by more
than 2 cycles.
"""

from __future__ import annotations

from typing import Final

from simulator.numbers.formats import {formats}

ROWS: Final[tuple[tuple[str, str, float, float, float, int, int], ...]] = (
{rows}
)
"""Opcode, dtype, cycles once, of each sheet, of each KiB of it; fewest and most bytes measured."""
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A kernel that the wheel compiled and simulated.

    Attributes:
        kernel: its file.
        group: "calibration", "written", or the name of a kernel in many tile shapes.
        leaves: the tile programs in the wheel's dump.
        operations: opcode, dtype, sheets, bytes of a sheet and cycles, of different sizes.
        task_cycles: of one task on average.
        run_cycles: from the first task to the end.
        planned: the schedule planned here; None if it is refused.
        loop_cycles: by the model "loop"; NaN of a kernel with other operations than casts.
    """

    kernel: Written
    group: str
    leaves: tuple[Leaf, ...]
    operations: frozenset[tuple[str, str, int, int, int]]
    task_cycles: float
    run_cycles: int
    planned: Schedule | None
    loop_cycles: float


def calibration() -> Iterator[Written]:
    """Kernels of few operations in one tile."""
    for rows, columns in _CALIBRATED:
        tile = f"{rows}x{columns}"
        for name, shapes in _calibrated(rows, columns, tile):
            yield replace(written(name, shapes, tile), id=f"calibration_{name}_{tile}")
    for dtype in _FLOATS:
        for name, shapes in _reductions(*_WIDE, dtype):
            tile = "x".join(map(str, _WIDE))
            yield replace(written(name, shapes, tile), id=f"calibration_{name}_{tile}")


def _reductions(rows: int, columns: int, dtype: str) -> Iterator[tuple[str, str]]:
    x = f"{rows}x{columns}:{dtype}"
    for name in ("sum", "amax", "amin"):
        yield f"red_{name}_last_{dtype}", f"{x} {rows}x1:{dtype}"
        yield f"red_{name}_last_{dtype}_pairs", f"{rows}x{2 * columns}:{dtype} {rows}x1:{dtype}"
        yield f"red_{name}_first_{dtype}", f"{x} 1x{columns}:{dtype}"


def _calibrated(rows: int, columns: int, tile: str) -> Iterator[tuple[str, str]]:
    for dtype in _FLOATS:
        x = f"{tile}:{dtype}"
        for name in _ONE:
            logical = name in ("isfinite", "logical_not")
            yield f"one_{name}_{dtype}", f"{x} {tile}:bool" if logical else f"{x} {x}"
        for name in _TWO:
            yield f"two_{name}_{dtype}", f"{x} {x} {x}"
        yield from _reductions(rows, columns, dtype)
        yield f"where_{dtype}", f"{x} {x} {x}"
        for name in ("muladd_s", "divs", "clip", "softmaxop"):
            yield f"{name}_{dtype}", f"{x} {x}"
        yield f"transpose_{dtype}", f"{x} {columns}x{rows}:{dtype}"
    for dtype in ("int32", "int16"):
        x = f"{tile}:{dtype}"
        for name in ("add", "sub", "mul", "maximum", "minimum"):
            yield f"two_{name}_{dtype}", f"{x} {x} {x}"
    for pair in _CASTS:
        src, dst = pair.split()
        yield f"cast_{src}_{dst}", f"{tile}:{src} {tile}:{dst}"
    yield "int8tok_a", f"{tile}:bfloat16 {tile}:int8 {rows}x1:float32"


def kernels() -> Iterator[tuple[str, Written]]:
    """All kernels with their groups."""
    for each in calibration():
        yield "calibration", each
    for case in listed(LIST):
        yield "written", case.kernel
    for name, shapes in _SWEPT.items():
        for rows, columns in _SWEEP:
            kernel = written(name, shapes, f"{rows}x{columns}")
            yield name, replace(kernel, id=f"sweep_{name}_{rows}_{columns}")


def simulated(group: str, kernel: Written, dumps: Path, python: str) -> Simulated | str:
    """Compile a kernel with its timelines, or read those that are kept; else the reason."""
    warnings.simplefilter("ignore")
    file, dump, refused = (dumps / f"{kernel.id}{end}" for end in (".py", "", ".refused"))
    file.write_text(kernel.text, encoding="utf-8")
    if not dump.exists() and not refused.exists():
        try:
            compile_kernel(
                *(file, kernel.name, kernel.tensors, dump),
                python=python,
                seconds=COMPILE_SECONDS,
                more_files=TIMELINES,
            )
        except WheelError as error:
            refused.write_text(str(error), encoding="utf-8")
    if refused.exists():
        return refused.read_text(encoding="utf-8")
    try:
        leaves = pypto.read_schedule(dump).leaves
        cores, pipes = (json.loads((dump / each).read_text("utf-8")) for each in TIMELINES[:2])
    except (DumpError, FileNotFoundError) as error:
        return str(error)
    tasks = [each for core in cores if core["coreType"] == "AIV" for each in core["tasks"]]
    if not tasks:
        return "no task ran"
    ends = (each["execEnd"] for core in cores for each in core["tasks"])
    plan, loop_cycles = None, math.nan
    try:
        runs = runpy.run_path(str(file), run_name=kernel.id)[kernel.name]
        plan = planned_kernel(runs, kernel, None)
        tensors = [pypto.tensor(list(x), getattr(pypto, DTYPES[y])) for x, y in kernel.tensors]
        estimate = runs.estimate(*tensors, model="loop")
        loop_cycles = math.nan if estimate.uncounted else estimate.cycles
    except (PlanError, AttributeError, TypeError, ValueError):
        pass  # one that the planner refuses is not compared
    return Simulated(
        kernel=kernel,
        group=group,
        leaves=leaves,
        operations=frozenset(_operations(leaves, pipes)),
        task_cycles=sum(each["execEnd"] - each["execStart"] for each in tasks) / len(tasks),
        run_cycles=max(ends) - min(each["execStart"] for each in tasks),
        planned=plan,
        loop_cycles=loop_cycles,
    )


def _operations(
    leaves: Sequence[Leaf], pipes: Sequence[Mapping[str, object]]
) -> Iterator[tuple[str, str, int, int, int]]:
    """The sizes and cycles of a timeline's operations; the leaves say of which dtype they are."""
    dtypes = defaultdict(set)
    for leaf in leaves:
        for each in leaf.operations:
            if each.flag is None and (size := measured_size(each)) is not None:
                dtypes[(each.opcode, *size[1:])].add(size[0])
    for core in pipes:
        logs = core.get("pipeLogs")
        for log in itertools.chain(*logs.values()) if isinstance(logs, dict) else ():
            found = _OPERATION.match(log["tileOp"])
            tensors = _TENSOR.findall(f"{found[2]} {found[3]}") if found else []
            shapes = [(kind, list(map(int, shape.split(",")))) for kind, shape, _ in tensors]
            tiles = [shape for kind, shape in shapes if kind == "UB"]
            if found is None or not tiles:
                continue
            elems, in_gm = (
                min((_sheet(shape) for kind, shape in shapes if kind == place), default=math.inf)
                for place in ("UB", "DDR")
            )
            if in_gm < elems:  # a leaf does not say so, and the difference is small
                continue
            first = next(int(size) for kind, _, size in tensors if kind == "UB")
            elem_bytes = first // math.prod(tiles[0])
            size = min(math.prod(each[:-2]) for each in tiles), int(elems) * elem_bytes
            for dtype in dtypes[(found[1], *size)]:
                yield found[1], dtype, *size, log["execEnd"] - log["execStart"]


def _sheet(shape: Sequence[int]) -> int:
    return math.prod(shape[-2:]) if len(shape) > 1 else 1


def fitted(of: Sequence[Simulated]) -> list[tuple[str, str, float, float, float, int, int]]:
    """The rows of the table: least squares of the cycles of each opcode and dtype."""
    sizes: dict[tuple[str, str], set[tuple[int, int, int]]] = defaultdict(set)
    for opcode, dtype, *size in itertools.chain.from_iterable(each.operations for each in of):
        sizes[opcode, dtype].add((size[0], size[1], size[2]))
    rows = []
    for (opcode, dtype), found in sorted(sizes.items()):
        sheets, sheet_bytes, cycles = np.array(sorted(found), np.float64).T
        columns = [sheets, sheets * sheet_bytes / 1024]
        if len({*sheet_bytes}) == 1:
            columns = columns[:1]
        elif len({*sheets}) > 1:
            columns.append(np.ones_like(sheets))
        matrix = np.stack(columns, 1)
        solved = np.linalg.lstsq(matrix, cycles, rcond=None)[0]
        each, per_kib, once = (round(float(x), 4) for x in (*solved, 0.0, 0.0)[:3])
        ends = int(sheet_bytes.min()), int(sheet_bytes.max())
        rows.append((opcode, dtype, once, each, per_kib, *ends))
    return rows


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Spearman's; ties have their mean rank. NaN where all of one side are equal."""

    def ranks(values: Sequence[float]) -> list[float]:
        _, place, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
        return list((np.cumsum(count) - (count - 1) / 2)[place])

    a, b = (np.asarray(ranks(each)) - (len(each) + 1) / 2 for each in (xs, ys))
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale else math.nan


def _compared(name: str, of: Sequence[Simulated], forms: Forms, *, one_leaf: bool = True) -> Row:
    """The row of some kernels: a task and the run by the plan, ranked beside the simulator's."""
    known: list[tuple[float, float, float, float]] = []
    for each in of:
        plan = each.planned
        if plan is None or (one_leaf and not len(plan.leaves) == len(each.leaves) == 1):
            continue
        total = schedule_cycles(plan, forms)
        by_leaf = [leaf_cycles(leaf, forms)[0] or 0 for leaf in plan.leaves]
        tasks = [by_leaf[x.leaf] for body in plan.bodies for x in body.tasks if x.leaf is not None]
        if total.cycles is not None and len(tasks) == total.tasks:
            mean = sum(tasks) / len(tasks)
            known.append((mean, each.task_cycles, total.cycles, each.run_cycles))
    row: Row = {"kernels": name, "simulated": len(of), "compared": len(known)}
    if len(known) > 1:
        task, of_task, run, of_run = zip(*known, strict=True)
        off = [abs(ours - theirs) / theirs for ours, theirs in zip(task, of_task, strict=True)]
        row |= {
            "task": f"{rank_correlation(task, of_task):.4f}",
            "within_1_percent": sum(x <= 0.01 for x in off),
            "worst": f"{100 * max(off):.1f} %",
            "run": f"{rank_correlation(run, of_run):.4f}",
        }
    return row


def _models(name: str, of: Sequence[Simulated], forms: Forms) -> Row:
    """The row of a kernel of casts in tile shapes: the order of the two models."""
    found = [
        (cycles, each.loop_cycles)
        for each in of
        if each.planned is not None
        and not math.isnan(each.loop_cycles)
        and (cycles := schedule_cycles(each.planned, forms).cycles) is not None
    ]
    pairs = [(a - b) * (x - y) for (a, x), (b, y) in itertools.combinations(found, 2)]
    return {
        "kernel": name,
        "tile_shapes": len(found),
        "correlation": f"{rank_correlation(*zip(*found, strict=True)):.2f}",
        "pairs_in_another_order": f"{sum(x < 0 for x in pairs)} of {len(pairs)}",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile the kernels, fit the table and print the correlations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", required=True, help="an interpreter with upstream's wheel")
    parser.add_argument("--dumps", type=Path, help="keep dumps here, and use those that are here")
    parser.add_argument("--write", action="store_true", help="write the table of cycles")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name, ProcessPoolExecutor(chosen.processes) as pool:
        dumps = (chosen.dumps or Path(name)).absolute()
        dumps.mkdir(parents=True, exist_ok=True)
        groups, files = zip(*kernels(), strict=True)
        jobs = pool.map(
            simulated, groups, files, itertools.repeat(dumps), itertools.repeat(chosen.python)
        )
        results = [each for each in jobs if isinstance(each, Simulated)]
    _report(results, len(files), write=chosen.write)
    return 0


def _report(results: Sequence[Simulated], files: int, *, write: bool) -> None:
    """Fit the table, write it if wanted, and print the correlations."""
    groups = ("calibration", "written", *_SWEPT)
    by_group = {name: [x for x in results if x.group == name] for name in groups}
    halves = [by_group["written"][start::2] for start in (0, 1)]
    swept = list(itertools.chain.from_iterable(by_group[name] for name in _SWEPT))
    fit = [*by_group["calibration"], *halves[0]]
    rows = fitted(fit)
    forms = forms_of(rows)
    date, revision = date_and_revision()
    sizes = {size for each in fit for size in each.operations}
    off = sum(
        abs((forms[opcode, dtype].cycles(sheets, size) or 0) - cycles) > 2
        for opcode, dtype, sheets, size, cycles in sizes
    )
    if write:
        text = _MODULE.format(
            **{"date": date, "revision": revision, "release": RELEASE, "kernels": len(fit)},
            **{"operations": len(sizes), "off": off},
            formats=", ".join(sorted({dtype for _, dtype, *_ in rows})),
            rows="\n".join(
                f'    ("{opcode}", {dtype}.name, {", ".join(map(str, numbers))}),'
                for opcode, dtype, *numbers in rows
            ),
        )
        Path(cycle_table.__file__).write_text(text, encoding="utf-8")
    print("# Cycles of tasks beside upstream's simulator\n")
    print(
        f"{date}, revision {revision}, pypto {RELEASE}: {len(results)} of {files} kernels "
        f"compiled and simulated; {len(rows)} forms fitted to {len(sizes)} sizes of operations, "
        f"which they miss {off} times by more than 2 cycles\n"
    )
    print(
        markdown(
            [
                _compared("fitted: calibration, every second written one", fit, forms),
                _compared("held out: the other written ones", halves[1], forms),
                _compared("held out: kernels in tile shapes", swept, forms),
                _compared("all of one leaf", results, forms),
                _compared("all, of any number of leaves", results, forms, one_leaf=False),
            ]
        )
    )
    print("\nHeld out, each kernel in tile shapes:\n")
    print(markdown([_compared(name, by_group[name], forms, one_leaf=False) for name in _SWEPT]))
    print("\nThe models tasks and loop of one kernel in tile shapes:\n")
    print(markdown([_models("cast_f", by_group["cast_f"], forms)]))


if __name__ == "__main__":
    sys.exit(main())
