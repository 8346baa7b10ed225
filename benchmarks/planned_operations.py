"""Each operation of upstream's in small kernels: planned, and equal to what its wheel compiles.

    PYTHONPATH=tests python -m benchmarks.planned_operations --python PYTHON --dumps DIR
    PYTHONPATH=tests python -m benchmarks.planned_operations tril prod

The kernels are those of operation_kernels.csv. With the interpreter of an environment that has
upstream's wheel each is compiled and planned as `benchmarks.planned_schedules` does it; what
release 0.2.0 lacks is planned with the lists of the newest revision, and nothing is beside it.
Each plan is executed by the kernel at fidelity "instructions", and its results have to lie in the
intervals of the tensor level. Ends with 1 after a fault, or a result that no device may give.
"""

from __future__ import annotations

import argparse
import collections
import csv
import itertools
import runpy
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import pypto_cast as pypto
from benchmarks.measuring import Row, date_and_revision, markdown
from benchmarks.planned_schedules import Case, Result, Verdict, judged
from benchmarks.upstream_kernels import DTYPES, written_body
from docs.generators.operation_tables import names
from pypto_cast.kernel.scheduled import UnplannedKernelWarning
from pypto_cast.missing_names import ON_950
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.options.releases import RELEASES
from pypto_cast.testing.possible import assert_possible
from pypto_cast.testing.schedule_checks import synthetic_arrays
from tiling.chips import A2_A3

LIST: Final = Path(__file__).parent / "operation_kernels.csv"
TABLE: Final = LIST.with_name("planned_operations.md")
WORDS: Final = {
    Verdict.EQUAL: "equal to the wheel",
    Verdict.DIFFERS: "differs from the wheel",
    Verdict.PLANNED: "planned, unconfirmed",
    Verdict.REFUSED: "refused",
    Verdict.NOT_COMPILED: "not compiled by the wheel",
    Verdict.WRONG: "wrong",
}
"""The ends that the way of a kernel may have, as the table has them."""


def kernels(path: Path = LIST) -> Iterator[tuple[str, Case]]:
    """Each operation of the list with a kernel of it, numbered in turn."""
    numbers: collections.Counter[str] = collections.Counter()
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = row["operation"]
            plain = name.removeprefix("experimental.")
            kernel = written_body({**row, "id": f"of_{plain}_{numbers[name]}"})
            numbers[name] += 1
            release = "head" if plain in RELEASES["0.2.0"].lacks else "0.2.0"
            yield name, Case(group="written", kernel=kernel, release=release)


def planned_and_run(case: Case, dumps: Path, python: str | None) -> Result:
    """The end of one kernel's way, with its plan executed at fidelity "instructions"."""
    result = judged(case, dumps, python if case.release == "0.2.0" else None)
    if result.verdict not in (Verdict.EQUAL, Verdict.DIFFERS, Verdict.PLANNED):
        return result
    try:
        run_as_planned(case, dumps)
    except Exception as error:  # whatever it is, the other kernels are tried
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return replace(result, verdict=Verdict.WRONG, why=why)
    return result


def run_as_planned(case: Case, dumps: Path) -> None:
    """Run a kernel as its plan, and compare its results with those of the tensor level.

    Raises:
        AssertionError: a result is outside the intervals.
        SimulatorFault: a guard reports the plan.
        UnplannedKernelWarning: there is no plan.
    """
    of = case.kernel
    kernel = runpy.run_path(str(dumps / f"{of.id}.py"), run_name=of.id)[of.name]
    with (
        warnings.catch_warnings(),
        pypto.options(release=case.release, satmode="upstream"),
    ):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", UnplannedKernelWarning)
        schedule = kernel.schedule(
            *(
                pypto.tensor(list(shape), getattr(pypto, DTYPES[dtype]))
                for shape, dtype in of.tensors
            )
        )
        arrays = synthetic_arrays(schedule, kernel)
        bounds = kernel.certainty(*(each.copy() for each in arrays))
        with pypto.options(fidelity="instructions"):
            kernel(*arrays)
    outputs = {output.name for output in bounds.outputs}
    named = zip(kernel.signature.tensors, arrays, strict=True)
    assert_possible({name: array for name, array in named if name in outputs}, bounds)


def _why(results: Iterable[Result]) -> str:
    """The reasons for the ends of kernels, each with the dtypes that it is of."""
    found: dict[str, dict[str, None]] = {}
    for each in results:
        if each.verdict in (Verdict.EQUAL, Verdict.PLANNED):
            continue
        dtypes = dict.fromkeys(DTYPES[dtype][3:] for _, dtype in each.case.kernel.tensors)
        parts = ", ".join(filter(None, (*each.parts, each.why)))
        text = parts if each.verdict is Verdict.DIFFERS else each.why
        text = f"{WORDS[each.verdict]}: {text.partition(each.case.kernel.id + ': ')[2] or text}"
        found.setdefault(text.replace("|", "/"), {}).update(dtypes)
    return "; ".join(f"{text} ({', '.join(dtypes)})" for text, dtypes in found.items())


def table(results: Iterable[tuple[str, Result]]) -> list[Row]:
    """A row for each operation of upstream's pages, and those of the list besides."""
    by_name: dict[str, list[Result]] = {name: [] for name in names()}
    for name, result in results:
        by_name.setdefault(name, []).append(result)
    return [
        {
            "operation": f"`{name}`",
            "kernels": len(found),
            **{
                WORDS[each]: sum(x.verdict is each for x in found) or ""
                for each in (Verdict.EQUAL, Verdict.DIFFERS, Verdict.PLANNED, Verdict.REFUSED)
            },
            "reason": _why(found) or absent(name),
        }
        for name, found in by_name.items()
    ]


def absent(name: str) -> str:
    """The reason for which the wheel or the chips that are planned for lack an operation."""
    plain = name.removeprefix("experimental.")
    row = ROWS.get(plain)
    if plain in ON_950 or (row is not None and row.dtypes and A2_A3 not in row.dtypes):
        return "upstream has it on the 950 alone"
    return "not in release 0.2.0" if plain in RELEASES["0.2.0"].lacks else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan and run the kernels and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operations", nargs="*", help="operations; all if none are named")
    parser.add_argument("--python", help="an interpreter with upstream's wheel")
    parser.add_argument("--list", type=Path, default=LIST, help="the kernels, CSV")
    parser.add_argument("--dumps", type=Path, help="keep dumps here, and use those that are here")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args(arguments)
    results: list[tuple[str, Result]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(chosen.processes) as pool,
    ):
        dumps = (chosen.dumps or Path(folder)).absolute()
        dumps.mkdir(parents=True, exist_ok=True)
        asked = [
            x for x in kernels(chosen.list) if not chosen.operations or x[0] in chosen.operations
        ]
        cases = [case for _, case in asked]
        found = pool.map(
            planned_and_run, cases, itertools.repeat(dumps), itertools.repeat(chosen.python)
        )
        for (name, _), result in zip(asked, found, strict=True):
            print(
                result.case.kernel.id,
                result.verdict.name,
                result.parts,
                result.why,
                file=sys.stderr,
                flush=True,
            )
            results.append((name, result))
    date, revision = date_and_revision()
    counts = collections.Counter(result.verdict for _, result in results)
    print(f"# Planned operations\n\n{date}, revision {revision}: {len(results)} kernels\n")
    print(markdown([{"verdict": WORDS[x], "kernels": counts[x]} for x in Verdict if counts[x]]))
    print(f"\nBy operation:\n\n{markdown(table(results))}")
    return int(counts[Verdict.WRONG] > 0)


if __name__ == "__main__":
    sys.exit(main())
