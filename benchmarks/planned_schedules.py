"""Schedules planned here: beside those of upstream's compiler, and under the machine's guards.

    PYTHONPATH=tests python -m benchmarks.planned_schedules --python PYTHON --drawn 300 --dumps DIR
    python -m benchmarks.planned_schedules --drawn 10000
    python -m benchmarks.planned_schedules --seconds 60 --seed random

With the interpreter of an environment that has upstream's wheel, each kernel is compiled by it and
planned here; the table says in which parts the two schedules are equal, and executes both: equal
schedules must give the same bits, others results inside the intervals of the tensor level. The
kernels are those of planned_kernels.csv and of further lists, those of the tests' dumps, and drawn
ones. Without an interpreter, drawn kernels are planned and executed under all guards. Ends with 1
after a fault, or a result that no device may give.
"""

from __future__ import annotations

import argparse
import collections
import csv
import enum
import itertools
import re
import runpy
import secrets
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.reader.dump_files import DumpError
from ascend_kernels.schedule.reader.upstream_dump import CHIP
from ascend_kernels.schedule.schedule import RELEASE, Schedule
from ascend_kernels.schedule.views.schedule_differences import PARTS, differences, has_spill
from benchmarks.measuring import Row, date_and_revision, markdown
from benchmarks.upstream_kernels import DTYPES, Written, drawn_chain, written, written_body
from pypto_cast.kernel.jit import Kernel
from pypto_cast.options.releases import ReleaseName
from pypto_cast.testing.possible import assert_possible
from pypto_cast.testing.schedule_checks import synthetic_arrays
from pypto_cast.upstream.wheel_compile import WheelError, compile_kernel
from simulator.machine.tile_opcodes import TILE_OPCODES

LIST: Final = Path(__file__).parent / "planned_kernels.csv"
MOST_DIMS: Final = 4
COMPILE_SECONDS: Final = 120
SEED: Final = 20261123
_BATCH: Final = 60
IN_BRIEF: Final = ("leaves", "tasks", "operations", "peak")


class Verdict(enum.Enum):
    """The ends that the way of a kernel may have."""

    EQUAL = "equal in every part"
    DIFFERS = "differs"
    PLANNED = "planned and executed"
    REFUSED = "refused by the planner"
    NOT_COMPILED = "refused by the wheel, or not compiled in time"
    WRONG = "a fault, or a result that no device may give"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One kernel to plan.

    Attributes:
        group: "written" or "drawn".
        kernel: its file, with the tensors that it takes.
        release: whose lists of AutoCast are followed.
    """

    group: str
    kernel: Written
    release: ReleaseName = RELEASE

    @property
    def dims(self) -> int:
        """The number of dimensions of its first tensor."""
        return len(self.kernel.tensors[0][0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end that the way of a kernel had.

    Attributes:
        case: the kernel.
        verdict: the end.
        why: the reason for it; of two that differ, if the plan says that it is simplified.
        parts: those in which the two schedules differ.
        spills: if the wheel's schedule has a spill.
        doubts: what a guard says of both schedules.
    """

    case: Case
    verdict: Verdict
    why: str = ""
    parts: tuple[str, ...] = ()
    spills: bool = False
    doubts: tuple[str, ...] = ()


def judged(case: Case, dumps: Path, python: str | None) -> Result:
    """Plan and execute one kernel, with an interpreter beside the wheel's schedule of it.

    Args:
        case: the kernel.
        dumps: keeps files and dumps; a dump that is there is not made again.
        python: an interpreter with upstream's wheel; None leaves the comparison out.
    """
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    name = case.kernel.id
    file, dump, refused = dumps / f"{name}.py", dumps / name, dumps / f"{name}.refused"
    file.write_text(case.kernel.text, encoding="utf-8")
    if python and not dump.exists() and not refused.exists():
        try:
            compile_kernel(
                file,
                case.kernel.name,
                case.kernel.tensors,
                dump,
                python=python,
                seconds=COMPILE_SECONDS,
            )
        except WheelError as error:
            refused.write_text(str(error).replace(f"{file}: ", ""), encoding="utf-8")
    if refused.exists():
        why = refused.read_text(encoding="utf-8")
        return Result(case=case, verdict=Verdict.NOT_COMPILED, why=why)
    try:
        other = pypto.read_schedule(dump) if dump.exists() else None
    except DumpError as error:
        return Result(
            case=case, verdict=Verdict.NOT_COMPILED, why=str(error).replace(f"{dump}", "")
        )
    if other is not None and not other.bodies:
        return Result(case=case, verdict=Verdict.NOT_COMPILED, why=other.not_executed[0])
    kernel = runpy.run_path(str(file), run_name=name)[case.kernel.name]
    spills = other is not None and has_spill(other)
    try:
        planned = planned_kernel(kernel, case.kernel, other, case.release)
    except (PlanError, AttributeError, TypeError, ValueError) as error:  # of the tensor level too
        return Result(case=case, verdict=Verdict.REFUSED, why=_reason(error), spills=spills)
    parts = differences(planned, other) if other else ()
    try:
        doubts = _executed(kernel, planned, other, equal=not parts)
    except Exception as error:  # whatever it is, the other kernels are tried
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Result(case=case, verdict=Verdict.WRONG, why=why, parts=parts, spills=spills)
    verdict = Verdict.DIFFERS if parts else Verdict.EQUAL if other else Verdict.PLANNED
    why = "the plan says simplified" if parts and planned.simplified else ""
    return Result(case=case, verdict=verdict, why=why, parts=parts, spills=spills, doubts=doubts)


def _reason(error: BaseException) -> str:
    """The text of an error, without the kernel it is of."""
    text = " ".join(str(error).split()).split(": pypto_cast covers")[0]
    return re.sub(r"^\S+( leaf \d+)?: | at \S+:\d+( in \w+)?| \(\S+:\d+\)", "", text)[:200]


def planned_kernel(
    kernel: Kernel, of: Written, other: Schedule | None, release: ReleaseName = RELEASE
) -> Schedule:
    """Plan a kernel as the wheel compiles it; with its schedule, for arrays that fit that."""
    given = (
        [pypto.tensor(list(shape), getattr(pypto, DTYPES[dtype])) for shape, dtype in of.tensors]
        if other is None
        else synthetic_arrays(other, kernel)
    )
    with pypto.options(release=release, satmode="upstream", chip=CHIP):
        return kernel.schedule(*given)


def _executed(
    kernel: Kernel, planned: Schedule, other: Schedule | None, *, equal: bool
) -> tuple[str, ...]:
    """Execute a plan and compare its results; the doubts that the guards name.

    Raises:
        AssertionError: equal schedules give other bits, or a result is outside the intervals.
        SimulatorFault: a guard reports the plan.
    """
    arrays = synthetic_arrays(planned, kernel)
    results, expected = ([each.copy() for each in arrays] for _ in range(2))
    found: list[str] = []
    planned.times_written(*results, doubt=found.append)
    doubts = tuple(found)
    if other is None:
        return doubts
    if equal and not _lacks_numbers(other):
        used = {each.name for each in other.parameters}  # the wheel leaves out what none reads
        other.run(
            *(x for of, x in zip(planned.parameters, expected, strict=True) if of.name in used)
        )
        for got, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))
        return doubts
    with pypto.options(release=RELEASE, satmode="upstream"):
        bounds = kernel.certainty(*arrays)
    written = [each.is_written for each in planned.parameters]
    names = [each.name for each in planned.parameters]
    assert_possible(dict(itertools.compress(zip(names, results, strict=True), written)), bounds)
    return doubts


def _lacks_numbers(dump: Schedule) -> bool:
    """True for a dump with an operation whose two numbers no dump has, so that none can run it."""
    opcodes = {each.opcode for leaf in dump.leaves for each in leaf.operations}
    return any(TILE_OPCODES[x].scalars == 2 for x in opcodes & TILE_OPCODES.keys())


def listed(path: Path) -> Iterator[Case]:
    """The kernels of a list, of rows that say what a kernel computes."""
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                kernel = (
                    written_body(row)
                    if row.get("body")
                    else written(row["id"], row["shape"], row["tile"])
                )
            except ValueError:
                continue
            yield Case(group="written", kernel=kernel)


def drawn(seed: int, first: int = 0) -> Iterator[Case]:
    """Draw kernels of 1 to 4 dimensions in turn, each from a generator of its own."""
    for number in itertools.count(first):
        kernel = drawn_chain(np.random.default_rng([seed, number]), number % MOST_DIMS + 1)
        yield Case(group="drawn", kernel=replace(kernel, id=f"drawn_{seed}_{number}"))


def of_fixtures(dumps: Path) -> Iterator[Case]:
    """The kernels of the tests' dumps, with these dumps."""
    from support.programs.upstream_dumps import DUMPS, NAMES, kernel_of, unpacked

    folder = dumps / "fixtures"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        if not (folder / name).exists():
            unpacked(name, folder)
        text = (DUMPS / f"{name}.py").read_text(encoding="utf-8")
        annotations = kernel_of(name).signature.tensors.values()
        tensors = tuple((each.shape, f"{each.dtype}") for each in annotations)
        yield Case(
            group="written",
            kernel=Written(id=f"fixtures/{name}", name=name, text=text, tensors=tensors),
        )


def _results(
    cases: Iterable[Case], dumps: Path, python: str | None, seconds: float | None, processes: int
) -> Iterator[Result]:
    """Judge the kernels, a batch after the other; no batch begins after so many seconds."""
    end = time.monotonic() + (seconds or float("inf"))
    with ProcessPoolExecutor(processes) as pool:
        waiting = iter(cases)
        while batch := list(itertools.islice(waiting, _BATCH)):
            for result in pool.map(
                judged, batch, itertools.repeat(dumps), itertools.repeat(python)
            ):
                print(
                    result.case.kernel.id,
                    result.verdict.name,
                    *result.parts,
                    result.why,
                    file=sys.stderr,
                    flush=True,
                )
                yield result
            if time.monotonic() > end:
                break


def in_brief(result: Result) -> bool:
    """Leaves, tasks, multisets of operations and peaks of the two schedules are equal."""
    return not {*result.parts} & {*IN_BRIEF}


def _percent(part: int, of: int) -> str:
    return f"{part} of {of}" + (f" ({100 * part / of:.1f} %)" if of else "")


def _summary(results: Sequence[Result]) -> Iterator[Row]:
    """A row for each group of kernels, of each number of dimensions, spills apart."""
    for group, spills in itertools.product(("written", "drawn"), (False, True)):
        of_group = [x for x in results if x.case.group == group and x.spills == spills]
        for dims in (*range(1, MOST_DIMS + 1), None):
            chosen = [x for x in of_group if dims in (None, x.case.dims)]
            compared = [x for x in chosen if x.verdict is not Verdict.NOT_COMPILED]
            if not compared:
                continue
            planned = [x for x in compared if x.verdict is not Verdict.REFUSED]
            yield {
                "kernels": f"{group}, with spills" if spills else group,
                "dimensions": dims or "all",
                "compiled": len(compared),
                "refused": len(compared) - len(planned),
                **{part: sum(part not in x.parts for x in planned) for part in PARTS},
                "all_parts": _percent(sum(not x.parts for x in planned), len(compared)),
                "leaves_tasks_operations_peak": _percent(
                    sum(map(in_brief, planned)), len(compared)
                ),
            }


def _reasons(results: Sequence[Result]) -> list[Row]:
    """The kernels that are not equal, by verdict and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in results:
        if each.verdict not in (Verdict.EQUAL, Verdict.PLANNED):
            why = ", ".join(filter(None, (*each.parts, each.why)))
            why = why if each.verdict is Verdict.DIFFERS else each.why
            key = each.verdict.value, why.replace("|", "/")
            found.setdefault(key, []).append(each.case.kernel.id)
    return [
        {"verdict": verdict, "parts_or_reason": why, "kernels": ", ".join(ids)}
        for (verdict, why), ids in sorted(found.items())
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan the kernels and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ids", nargs="*", help="kernels by their names; all if none are named")
    parser.add_argument("--python", help="an interpreter with upstream's wheel")
    parser.add_argument("--list", type=Path, action="append", default=[], help="more kernels, CSV")
    parser.add_argument("--dumps", type=Path, help="keep dumps here, and use those that are here")
    parser.add_argument("--drawn", type=int, default=0, help="so many drawn kernels")
    parser.add_argument("--seconds", type=float, help="none that begins later")
    parser.add_argument("--seed", default=str(SEED), help="a number, or random")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args(arguments)
    seed = secrets.randbits(32) if chosen.seed == "random" else int(chosen.seed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        dumps = (chosen.dumps or Path(name)).absolute()
        dumps.mkdir(parents=True, exist_ok=True)
        most = None if chosen.seconds and not chosen.drawn else chosen.drawn
        cases = itertools.islice(drawn(seed), most)
        if chosen.python:
            lists = itertools.chain.from_iterable(map(listed, (LIST, *chosen.list)))
            cases = itertools.chain(of_fixtures(dumps), lists, cases)
        named = (x for x in cases if not chosen.ids or x.kernel.id in chosen.ids)
        results = list(_results(named, dumps, chosen.python, chosen.seconds, chosen.processes))
    date, revision = date_and_revision()
    print("# Planned schedules\n")
    print(
        f"{date}, revision {revision}, seed {seed}: {len(results)} kernels, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    counts = collections.Counter(x.verdict for x in results)
    print(markdown([{"verdict": x.value, "kernels": counts[x]} for x in Verdict if counts[x]]))
    doubts = sum(bool(x.doubts) for x in results)
    print(
        f"\nOf these {doubts} set an event whose last wait has not ended: a warning, and under "
        "`strict` a fault."
    )
    for title, table in (
        ("Equal parts", [*_summary(results)] if chosen.python else []),
        ("By reason", _reasons(results)),
    ):
        if table:
            print(f"\n{title}:\n\n{markdown(table)}")
    return int(counts[Verdict.WRONG] > 0)


if __name__ == "__main__":
    sys.exit(main())
