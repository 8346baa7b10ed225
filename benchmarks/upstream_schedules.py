"""Upstream's own programs of a list of kernels: compiled, read, executed, compared.

    python -m benchmarks.upstream_schedules --python /path/to/venv/bin/python --list FILE

The list is a CSV file with the columns id, kernel, shape, tile and dropped, a row for each kernel.
Each kernel of the list that can be written again from its columns is compiled by upstream's wheel
in a process with limits of time and memory; its schedule is read and executed under the guards, and
compared with the tensor level at the schedule's release. Kernels of upstream's models are called
by the drivers of their tests, with their arguments, if PYPTO_CAST_MODELS names checkouts of
upstream's repository; the interpreter needs pytest and what the drivers import. Prints a table;
ends with 1 if something was found wrong.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import csv
import enum
import functools
import itertools
import multiprocessing
import os
import re
import resource
import runpy
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import numpy as np

import pypto_cast as pypto
from ascend_kernels.schedule.reader.dump_files import DumpError
from ascend_kernels.schedule.schedule import RELEASE, Schedule
from benchmarks.measuring import Row, date_and_revision, markdown
from benchmarks.upstream_drivers import driven
from benchmarks.upstream_kernels import DTYPES, Written, written
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.kernel.jit import Kernel
from pypto_cast.tensors.torch_bridge import array_over, is_torch_tensor
from pypto_cast.testing.possible import assert_possible
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.wheel_compile import WheelError, compile_kernel
from simulator.machine.memory import SimulatorFault
from simulator.numbers.formats import FloatFormat

MODELS: Final = "PYPTO_CAST_MODELS"
"""Checkouts of upstream's repository, as a PATH."""
SECONDS: Final = 300
"""For compiling, and for reading and executing."""
JUDGE_BYTES: Final = 8 << 30
_FIRST: Final = 20261123


class Status(enum.Enum):
    """The ends that the way of a kernel may have."""

    EQUAL = "the bits of the tensor level"
    INSIDE = "inside the intervals of the tensor level"
    GUARDS = "executed under the guards; the tensor level does not run it"
    NOT_EXECUTED = "read, and named as not executed"
    NOT_READ = "not read"
    FAULT = "a guard, or a result outside the intervals"
    TOO_LONG = "compiled; reading or executing it did not end in time or memory"
    NOT_COMPILED = "refused by the wheel, or not compiled in time"
    NOT_WRITTEN = "cannot be written again from the list"


WRONG: Final = (Status.NOT_READ, Status.FAULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end of one kernel, the reason, how many leaves were executed, doubts about its flags."""

    id: str
    status: Status
    why: str = ""
    leaves: str = ""
    doubts: int = 0


def tried(
    row: Mapping[str, str], folders: Sequence[Path], python: str, dumps: Path, seconds: int
) -> Result:
    """Write, compile, read, execute and compare one kernel of the list.

    Args:
        row: of the list.
        folders: checkouts with the models.
        python: the interpreter with upstream's wheel.
        dumps: keeps dumps; one that is there is not made again.
        seconds: the limit for compiling, and for reading and executing.
    """
    if ":" in row["kernel"]:
        result = Result(id=row["id"], status=Status.NOT_WRITTEN, why="no checkout has it")
        for kernel in driven(row, folders):
            found = _tried(kernel, python, dumps, seconds)
            if found.leaves or not kernel.tensors:  # the reason is the driver's
                result = replace(found, id=row["id"], why=_inside(folders, found.why))
            if found.leaves:
                break
        return result
    try:
        kernel = written(row["id"], row["shape"], row["tile"])
    except ValueError as error:
        return Result(id=row["id"], status=Status.NOT_WRITTEN, why=str(error))
    return _tried(kernel, python, dumps, seconds)


def _inside(folders: Sequence[Path], text: str) -> str:
    """A text with the paths of checkouts as they are inside upstream's repository."""
    names = "|".join(re.escape(folder.name) for folder in folders)
    return re.sub(rf"[^\s'\"]*/(?:{names})/", "", text)


def _tried(kernel: Written, python: str, dumps: Path, seconds: int) -> Result:
    """Compile, read, execute and compare one kernel."""
    file, dump = dumps / f"{kernel.id}.py", dumps / kernel.id
    file.write_text(kernel.text, encoding="utf-8")
    refused = dumps / f"{kernel.id}.refused"
    if not dump.exists() and not refused.exists():
        try:
            compile_kernel(file, kernel.name, kernel.tensors, dump, python=python, seconds=seconds)
        except WheelError as error:
            refused.write_text(str(error), encoding="utf-8")
    if refused.exists():
        why = refused.read_text(encoding="utf-8").replace(f"{file}: ", "")
        return Result(id=kernel.id, status=Status.NOT_COMPILED, why=why)
    return _in_child(kernel, file, dump, seconds)


def _in_child(kernel: Written, file: Path, dump: Path, seconds: int) -> Result:
    """Judge in a process with limits."""
    context = multiprocessing.get_context("forkserver")  # a fork of threads may never end
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(sender, kernel, file, dump))
    child.start()
    sender.close()
    found, why = Result(id=kernel.id, status=Status.TOO_LONG), f"{seconds} s"
    deadline = time.monotonic() + seconds
    try:
        while receiver.poll(max(deadline - time.monotonic(), 0)):
            found = receiver.recv()
    except EOFError:
        why = f"ended within {JUDGE_BYTES >> 30} GB"
    if found.status is Status.TOO_LONG:
        found = replace(found, why=found.why or why)
    child.kill()
    child.join()
    return found


def _send(sender: Connection, kernel: Written, file: Path, dump: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (JUDGE_BYTES, JUDGE_BYTES))
    warnings.simplefilter("ignore")
    doubts: list[str] = []
    try:
        found = judged(kernel, file, dump, doubts.append, sender.send)
    except MemoryError:
        why = f"more than {JUDGE_BYTES >> 30} GB"
        found = Result(id=kernel.id, status=Status.TOO_LONG, why=why)
    except Exception as error:  # whatever it is, the other kernels are tried
        found = Result(id=kernel.id, status=Status.FAULT, why=_line(error))
    sender.send(replace(found, doubts=len(doubts)))


def judged(
    kernel: Written,
    file: Path,
    dump: Path,
    doubt: Callable[[str], object],
    report: Callable[[Result], object],
) -> Result:
    """Read and execute a dump, and compare it with the kernel at tensor level.

    Args:
        kernel: as it was written.
        file: that holds it.
        dump: of it.
        doubt: takes doubts about its flags.
        report: gets what holds if there is no end of the execution.
    """
    try:
        schedule = pypto.read_schedule(dump)
    except DumpError as error:
        why = str(error).replace(f"{dump}/", "")
        return Result(id=kernel.id, status=Status.NOT_READ, why=why)
    count = len(schedule.leaves)
    if not schedule.bodies:
        why = _reasons(schedule)
        return Result(id=kernel.id, status=Status.NOT_EXECUTED, why=why, leaves=f"0 of {count}")
    report(Result(id=kernel.id, status=Status.TOO_LONG, leaves=f"0 of {count}"))
    status, why, unable = _executed(schedule, kernel, file, doubt)
    return Result(id=kernel.id, status=status, why=why, leaves=f"{count - unable} of {count}")


def _executed(
    schedule: Schedule, kernel: Written, file: Path, doubt: Callable[[str], object]
) -> tuple[Status, str, int]:
    """Execute a schedule; how many of its leaves were not, too."""
    arrays = _arrays(kernel)
    found: object = None
    given: Sequence[Any] = arrays
    named: Mapping[str, Any] = {}
    why = ""
    try:
        with as_pypto(replace_installed=True), contextlib.redirect_stdout(sys.stderr):
            space = runpy.run_path(str(file), run_name=kernel.id)
            found = space.get(kernel.name)
            if "reached" in space:
                found, given, named = space["reached"](functools.partial(_fits, schedule))
                arrays = [
                    array_over(each, "")
                    for each in (*given, *named.values())
                    if is_torch_tensor(each)
                ]
    except Exception as error:  # a model may raise whatever it likes
        why = _line(error)
    names = [f"a{place}" for place in range(len(arrays))]
    if isinstance(found, Kernel):
        names = list(found.signature.tensors)[: len(arrays)]
    own = [each.name for each in schedule.parameters]
    if not set(own) & set(names) and len(own) == len(names):  # inside, they have other names
        place_of = dict(zip(own, range(len(own)), strict=True))
    else:
        place_of = {name: place for place, name in enumerate(names)}
    if missing := [name for name in own if name not in place_of]:
        why = f"no arrays for its parameters {', '.join(missing)}. {why}"
        return Status.NOT_EXECUTED, why, len(schedule.leaves)
    executed = {names[place_of[name]]: _copied(arrays[place_of[name]]) for name in own}
    try:
        schedule.times_written(*executed.values(), doubt=doubt)
    except SimulatorFault as error:
        return Status.FAULT, _line(error), len(schedule.leaves)
    except pypto.NotExecutedError as error:
        if met := re.match(r"not executed: (\d+) of", str(error)):
            return Status.NOT_EXECUTED, _reasons(schedule) or _line(error), int(met[1])
        return Status.NOT_EXECUTED, _line(error), len(schedule.leaves)
    except ValueError as error:
        return Status.NOT_EXECUTED, _line(error), len(schedule.leaves)
    if not isinstance(found, Kernel):
        return Status.GUARDS, why or "its kernel is none of the package's", 0
    try:
        with pypto.options(release=RELEASE, satmode="upstream"):
            bounds = found.certainty(*given, **named)
    except Exception as error:  # whatever the tensor level or a model says
        return Status.GUARDS, _line(error).split(": pypto_cast covers")[0], 0
    return *_compared(schedule, executed, bounds), 0


def _fits(schedule: Schedule, run: object, given: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """True if a call may be the one that a schedule was compiled for."""
    shapes = [tuple(x.shape) for x in (*given, *named.values()) if is_torch_tensor(x)]
    return all(
        any(
            len(shape) == len(each.shape)
            and all(
                wanted == extent or not isinstance(wanted, int)
                for wanted, extent in zip(each.shape, shape, strict=True)
            )
            for shape in shapes
        )
        for each in schedule.parameters
    )


def _copied(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).copy()


def _compared(
    schedule: Schedule, executed: Mapping[str, np.ndarray], bounds: Certainty
) -> tuple[Status, str]:
    is_written = [each.is_written for each in schedule.parameters]
    results = {name: executed[name] for name in itertools.compress(executed, is_written)}
    try:
        assert_possible(results, bounds)
    except (AssertionError, ValueError) as error:
        return Status.FAULT, _line(error)
    differ = sum(
        np.count_nonzero(
            results[each.name].reshape(-1).view(f"u{each.values.itemsize}")
            != np.ascontiguousarray(each.values).reshape(-1).view(f"u{each.values.itemsize}")
        )
        for each in bounds.outputs
        if each.name in results
    )
    if differ:
        return Status.INSIDE, f"{differ} elements have other bits"
    return Status.EQUAL, ""


def _arrays(kernel: Written) -> list[np.ndarray]:
    rng = np.random.default_rng(_FIRST)
    found = []
    for shape, dtype in kernel.tensors:
        fmt = getattr(pypto, DTYPES[dtype]).format
        values = rng.standard_normal(shape, np.float32) * 2
        is_float = isinstance(fmt, FloatFormat)
        found.append((values if is_float else np.abs(values)).astype(fmt.dtype))
    return found


def _reasons(schedule: Schedule) -> str:
    """The reasons for which leaves are not executed, each once."""
    names = {leaf.name for leaf in schedule.leaves}
    texts = (each for each in schedule.not_executed)
    reasons = (text.split(" ", 1)[1] if text.split(" ", 1)[0] in names else text for text in texts)
    return "; ".join(dict.fromkeys(reasons))


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _listed(path: Path) -> list[dict[str, str]]:
    """The rows of the list; of several tries of one kernel of a model, the last that has shapes."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["kernel"] not in found or row["shape"]:
            found[row["kernel"]] = row
    return list(found.values())


def _kept(path: Path) -> Iterator[Row]:
    """The rows of the last table of an earlier output, that of kernels of models."""
    lines = path.read_text(encoding="utf-8").splitlines()
    (*_, first) = [at for at, line in enumerate(lines) if line.startswith("| kernel | read |")]
    head, _, *rows = (
        [each.strip() for each in line.strip().removeprefix("|").removesuffix("|").split("|")]
        for line in itertools.takewhile(lambda line: line.startswith("|"), lines[first:])
    )
    for row in rows:
        yield dict(itertools.zip_longest(head, row, fillvalue=""))


def _drawn(rows: Sequence[Mapping[str, str]], count: int | None, seed: int) -> Iterator[int]:
    order = np.random.default_rng(seed).permutation(len(rows)) if count else range(len(rows))
    yield from sorted(int(each) for each in list(order)[:count])


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the kernels of the list and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ids", nargs="*", help="of the list; all if none are named")
    parser.add_argument("--python", required=True, help="an interpreter with upstream's wheel")
    parser.add_argument("--list", type=Path, required=True, help="the list of kernels, CSV")
    parser.add_argument("--dumps", type=Path, help="keep dumps here, and use those that are here")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="for each step of a kernel")
    parser.add_argument(
        "--keep", type=Path, help="an earlier output, whose rows of other kernels of models stay"
    )
    parser.add_argument("--count", type=int, help="so many kernels, drawn by the seed")
    parser.add_argument("--seed", type=int, default=_FIRST)
    chosen = parser.parse_args(arguments)
    if not chosen.list.is_file():
        print(f"no list of kernels: {chosen.list} is not there")
        return 2
    folders = [Path(each) for each in os.environ.get(MODELS, "").split(os.pathsep) if each]
    rows = [row for row in _listed(chosen.list) if not chosen.ids or row["id"] in chosen.ids]
    if missing := sorted({*chosen.ids} - {row["id"] for row in rows}):
        print(f"{chosen.list} has no kernel {missing[0]}")
        return 2
    models = {row["id"] for row in rows if ":" in row["kernel"]}
    results: list[Result] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        dumps = chosen.dumps or Path(name)
        dumps.mkdir(parents=True, exist_ok=True)
        for place in _drawn(rows, chosen.count, chosen.seed):
            results.append(tried(rows[place], folders, chosen.python, dumps, chosen.seconds))
            print(results[-1].id, results[-1].status.name, results[-1].why, file=sys.stderr)
    date, revision = date_and_revision()
    sample = f", drawn by seed {chosen.seed} from {len(rows)}" if chosen.count else ""
    print("# Upstream's own programs, executed\n")
    print(
        f"{date}, revision {revision}: {len(results)} kernels{sample}, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    counts = collections.Counter(each.status for each in results)
    print(markdown([{"status": x.value, "kernels": counts[x]} for x in Status if counts[x]]))
    if doubtful := [f"{each.id} ({each.doubts})" for each in results if each.doubts]:
        print(f"\nOf these with doubts, see `EventReuseWarning`: {', '.join(doubtful)}")
    by_reason: dict[tuple[Status, str], list[str]] = {}
    for each in results:
        if each.status not in (Status.EQUAL, Status.INSIDE) and each.id not in models:
            by_reason.setdefault((each.status, each.why), []).append(each.id)
    table: list[Row] = [
        {"status": status.value, "reason": why.replace("|", "/"), "kernels": ", ".join(ids)}
        for (status, why), ids in sorted(by_reason.items(), key=lambda x: x[0][0].value)
    ]
    if table:
        print("\nBy reason:\n")
        print(markdown(table))
    table = [
        {
            "kernel": each.id,
            "read": "yes" if each.leaves else "no",
            "executable leaves": each.leaves,
            "verdict": each.status.value,
            "reason": each.why.replace("|", "/"),
            "run": f"{date}, {revision}, {chosen.seconds} s",
        }
        for each in results
        if each.id in models
    ]
    if chosen.keep:
        now = {row["kernel"] for row in table}
        table += [row for row in _kept(chosen.keep) if row["kernel"] not in now]
        table.sort(key=lambda row: str(row["kernel"]))
    if table:
        print("\nKernels of models:\n")
        print(markdown(table))
    return int(any(each.status in WRONG for each in results))


if __name__ == "__main__":
    sys.exit(main())
