"""Small faults in the source, and the tests that find them: `python -m benchmarks.mutation`.

Faults are drawn by a seed from all places of the four packages where one can be put: a comparison
that takes its limit in or leaves it out, `and` for `or`, + for -, min for max, a constant one more,
a condition negated, a statement dropped. First the suite runs once in a copy of the checkout where
each place is marked, unchanged: it tells the tests that reach the place. Then each fault is put
alone into the copy, and those tests run until one fails; where the place runs at import, the tests
of its module. What no test finds either changes nothing that anybody can observe (equivalent:
somebody has to say why) or is a test that is missing.

    python -m benchmarks.mutation --sample 60 --seed 7 --jobs 2 > benchmarks/mutation.md
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.measuring import date_and_revision

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("tiling", "simulator", "ascend_kernels", "pypto_cast")

KERNEL_TESTS: Final = ("pypto_cast/kernel", "pypto_cast/recording")
TESTS: Final[dict[str, tuple[str, ...]]] = {
    "tiling": ("tiling", "ascend_kernels/test_program.py", "cli/test_cli_tune.py"),
    "simulator": ("simulator", "ascend_kernels/test_program.py"),
    "simulator/numbers": ("simulator/numbers", "pypto_cast/cast"),
    "simulator/arithmetic": ("simulator/arithmetic", "pypto_cast/operations", *KERNEL_TESTS),
    "simulator/traces": ("simulator/traces", "tiling/test_estimate.py", "cli/test_cli_trace.py"),
    "ascend_kernels": ("ascend_kernels", "pypto_cast/routes", "cli"),
    "pypto_cast": ("pypto_cast", "cli"),
    "pypto_cast/checkpoints": ("pypto_cast/checkpoints", "cli"),
    "pypto_cast/cli": ("cli",),
    "pypto_cast/device": ("pypto_cast/device", "cli"),
    "pypto_cast/dialects": ("dialects", "cli/test_cli_compare.py"),
    "pypto_cast/kernel": (*KERNEL_TESTS, "pypto_cast/operations"),
    "pypto_cast/operations": ("pypto_cast/operations", *KERNEL_TESTS),
    "pypto_cast/tensors": ("pypto_cast/tensors", *KERNEL_TESTS, "pypto_cast/operations"),
    "pypto_cast/testing": ("pypto_cast/testing", "cli/test_cli_certainty.py"),
    "pypto_cast/tuning": ("pypto_cast/tuning", "cli"),
    "pypto_cast/upstream": ("pypto_cast/upstream", "cli/test_cli_run.py"),
}
"""Tests of a folder; the longest prefix of a module's path counts."""
LEFT_OUT: Final = (
    # They compare digests of the source: they would find every fault, and know nothing of it.
    "tests/simulator/numbers/test_certificates.py",
    # They look at the source's form and its documents more than at what it does.
    "tests/project",
)
_MARKS: Final = """\
def _reached(number, seen=set()):
    import os
    mark = "%d %s\\n" % (number, os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])
    if mark not in seen:
        seen.add(mark)
        with open({!r}, "a") as file:
            file.write(mark)
"""

_Kind = TypeVar("_Kind")


def _exchanged(*pairs: tuple[_Kind, _Kind]) -> dict[_Kind, _Kind]:
    """Each of two in the place of the other."""
    return dict(pairs) | {other: one for one, other in pairs}


_COMPARISONS: Final = _exchanged(
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
)
_OPERATORS: Final = {
    **_exchanged(
        (ast.Add, ast.Sub),
        (ast.Mult, ast.FloorDiv),
        (ast.LShift, ast.RShift),
        (ast.BitAnd, ast.BitOr),
    ),
    ast.Mod: ast.FloorDiv,
}
_NAMES: Final = _exchanged(("min", "max"), ("any", "all"), ("minimum", "maximum"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: text of a file from one place to another, and what stands there instead.

    Attributes:
        path: of the file, from the checkout's root.
        line: where it begins, from 1.
        kind: what was changed.
        start: first byte of the text.
        stop: the byte after it.
        text: in its place.
    """

    path: str
    line: int
    kind: str
    start: int
    stop: int
    text: str

    def put_into(self, source: bytes) -> bytes:
        """The file with the fault."""
        return source[: self.start] + self.text.encode() + source[self.stop :]


def faults_of(path: str, source: str) -> Iterator[Fault]:
    """Yields every fault that can be put into a file."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, kind, changed in _changes(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        yield Fault(
            path=path,
            line=node.lineno,
            kind=kind,
            start=starts[node.lineno - 1] + node.col_offset,
            stop=starts[node.end_lineno - 1] + node.end_col_offset,
            text=changed,
        )


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Yields nodes, what is changed in them, and their text with the change."""
    for node in _running(tree):
        if isinstance(node, ast.stmt):
            if isinstance(node, (ast.Expr, ast.AugAssign, ast.Raise)) and not _is_text(node):
                yield node, "drop a statement", "pass"
            continue
        for kind, changed in _variants(node):
            yield node, kind, f"({ast.unparse(changed)})"


def _running(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yields what runs: no annotations, no imports of type checkers, no parts of f-strings."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, (ast.expr, ast.stmt)):
                yield child
            yield from _running(child)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.Yield))


def _variants(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            yield "comparison", _with(node, ops=[_COMPARISONS[type(op)]()])
        case ast.BoolOp(op=op):
            yield "and, or", _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            yield "arithmetic", _with(node, op=_OPERATORS[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negation", operand
        case ast.Call(func=ast.Name(id=name)) if name in _NAMES:
            yield "min, max, any, all", _with(node, func=ast.Name(id=_NAMES[name]))
        case ast.Call(func=ast.Attribute(attr=name)) if name in _NAMES:
            yield "min, max, any, all", _with(node, func=_with(node.func, attr=_NAMES[name]))
        case ast.IfExp(test=test):
            yield "negation", _with(node, test=ast.UnaryOp(op=ast.Not(), operand=test))
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(value=not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value=value + 1)


def _with(node: ast.expr, **fields: object) -> ast.expr:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def drawn(sample: int, seed: int, root: Path) -> list[Fault]:
    """The faults of a seed, in the order of the draw: a longer sample begins with a shorter one."""
    files = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    every = [
        fault
        for path in files
        for fault in faults_of(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    ]
    random.Random(seed).shuffle(every)
    return every[:sample]


def relevant_tests(path: str) -> tuple[str, ...]:
    """The tests of a module."""
    fitting = [prefix for prefix in TESTS if path.startswith(f"{prefix}/")]
    return tuple(f"tests/{name}" for name in TESTS[max(fitting, key=len)])


def marked(source: bytes, faults: Iterable[tuple[int, Fault]], into: Path) -> bytes:
    """A file that writes down which tests reach the places of faults; as it was where none can."""
    put = [(_after_the_future(source), 0, f"exec({_MARKS.format(str(into))!r})\n")]
    for number, fault in faults:
        call = f"_reached({number})"
        if fault.text == "pass":
            put.append((fault.start, -fault.stop, f"{call}; "))
        else:
            put += [(fault.start, -fault.stop, f"({call} or ("), (fault.stop, -fault.start, "))")]
    text = source
    for place, _, words in sorted(put, reverse=True):
        text = text[:place] + words.encode() + text[place:]
    try:
        ast.parse(text)
    except SyntaxError:
        return source
    return text


def _after_the_future(source: bytes) -> int:
    future = b"from __future__ import annotations\n"
    return max(0, source.find(future) + len(future) * (future in source))


def reaching(
    faults: Sequence[tuple[int, Fault]], copied: Path, jobs: int
) -> dict[int, tuple[str, ...]]:
    """The tests that reach the places of faults, and those of the module where it is at import.

    Tests that fail though nothing was changed judge nothing: they are left out, as are those of the
    runs of pytest that tests start.
    """
    wholes = {copied / fault.path: (copied / fault.path).read_bytes() for _, fault in faults}
    found = copied / "reached.txt"
    for file, whole in wholes.items():
        mine = [each for each in faults if copied / each[1].path == file]
        file.write_bytes(marked(whole, mine, found))
    try:
        done = _tests_run(["tests", "-n", str(jobs)], copied, None)
    finally:
        for file, whole in wholes.items():
            file.write_bytes(whole)
    failing = {test.split("[")[0] for test in _failures(done.stdout)}
    print("\n".join(sorted(failing)), file=sys.stderr)
    reached: dict[int, dict[str, None]] = {number: {} for number, _ in faults}
    for line in found.read_text(encoding="utf-8").splitlines() if found.exists() else ():
        place, _, test = line.partition(" ")
        reached[int(place)][test] = None
    at_import = {
        number for number, fault in faults if _is_at_import(fault, wholes[copied / fault.path])
    }
    return {
        number: (
            *(relevant_tests(fault.path) if number in at_import or "" in reached[number] else ()),
            *(x for x in reached[number] if _is_test(x, copied) and x.split("[")[0] not in failing),
        )
        for number, fault in faults
    }


def _is_at_import(fault: Fault, source: bytes) -> bool:
    """It stands in no body of a function: who uses what it makes does not reach it."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(ast.parse(source)) if isinstance(node, functions)]
    return not any(
        body[0].lineno <= fault.line <= (body[-1].end_lineno or fault.line) for body in bodies
    )


def _is_test(name: str, copied: Path) -> bool:
    return "::" in name and (copied / name.split("::")[0]).is_file()


def _tests_run(
    words: Sequence[str], copied: Path, seconds: float | None
) -> subprocess.CompletedProcess[str]:
    left_out = [f"--ignore={name}" for name in LEFT_OUT]
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    return subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, *left_out],
        cwd=copied,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def judged(fault: Fault, copied: Path, jobs: int, seconds: float, tests: Sequence[str]) -> str:
    """Put a fault into a copy of the checkout, run its tests, take it out again.

    Returns:
        The test that found it; empty if all passed.
    """
    file = copied / fault.path
    whole = file.read_bytes()
    listed = copied / "tests_of_the_fault.txt"
    listed.write_text("\n".join(tests or relevant_tests(fault.path)), encoding="utf-8")
    file.write_bytes(fault.put_into(whole))
    try:
        done = _tests_run(["-x", "-n", str(jobs), f"@{listed}"], copied, seconds)
        return _first_failure(done.stdout, done.stderr) if done.returncode else ""
    except subprocess.TimeoutExpired:
        return "a run without end"
    finally:
        file.write_bytes(whole)


def _first_failure(output: str, errors: str) -> str:
    found = _failures(output)
    if found:
        return found[0].removeprefix("tests/")
    return f"a run that does not begin: {(errors or output).strip().splitlines()[-1]}"


def _failures(output: str) -> list[str]:
    lines = [x for x in output.splitlines() if x.startswith(("FAILED ", "ERROR "))]
    return [line.partition(" ")[2].partition(" - ")[0] for line in lines]


def copy_of(root: Path, place: Path) -> Path:
    """The files that git knows, as they are."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, place / name)
    return place


def line_of(number: int, fault: Fault, found_by: str, root: Path) -> str:
    """A row of the table."""
    before = (root / fault.path).read_bytes()[fault.start : fault.stop].decode()
    shown = (" ".join(text.split()).replace("|", "\\|") for text in (before, fault.text))
    change = " -> ".join(f"`{text if len(text) <= 60 else text[:57] + '...'}`" for text in shown)
    found = found_by.replace("|", "\\|") or "**no test**"
    return f"| {number} | {fault.path}:{fault.line} | {fault.kind}: {change} | {found} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, judge and print; 1 if a fault was found by no test."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=60, help="how many faults")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the draw")
    parser.add_argument("--jobs", type=int, default=2, help="processes of pytest")
    parser.add_argument("--first", type=int, default=1, help="go on with this one of the draw")
    parser.add_argument("--seconds", type=float, default=1200, help="after which a run is ended")
    parser.add_argument("--list", action="store_true", help="show the draw, run nothing")
    given = parser.parse_args(arguments)
    faults = list(enumerate(drawn(given.sample, given.seed, ROOT), start=1))[given.first - 1 :]
    today, revision = date_and_revision()
    print(f"{today}, revision {revision}, --seed {given.seed}, --sample {given.sample}\n")
    print("| | where | fault | found by |\n|-|-|-|-|", flush=True)
    missed = 0
    with tempfile.TemporaryDirectory() as place:
        copied = copy_of(ROOT, Path(place))
        tests = {} if given.list else reaching(faults, copied, given.jobs)
        for number, fault in faults:
            found = "not run"
            if not given.list:
                found = judged(fault, copied, given.jobs, given.seconds, tests[number])
            missed += not found
            print(line_of(number, fault, found, ROOT), flush=True)
    if not given.list:
        print(f"\n{len(faults) - missed} of {len(faults)} found", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
