"""The house rules that a machine can hold: order of the rooms, sizes, names, docstrings."""

from __future__ import annotations

import ast
import graphlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from support.environment.sources import (
    ROOMS,
    ROOT,
    imported,
    imports_of,
    module_name,
    sources,
    tree_of,
)

from pypto_cast.former_names import MOVED

PAGE = ROOT / "docs" / "architecture.md"
MAX_LINES = 600
# Names of modules that occur twice, and why.
SHARED_NAMES = {
    "__init__": "every package has one",
    "__main__": "the package as a command, and its room of commands likewise",
    "cast": "ONNX's and Paddle's operation of that name",
    "convert": "the definition, and OpenVINO's operation of that name",
    "operation": "a row of the arithmetic, and upstream's module of that name",
    "npu": "the launch of a cast, and that of a kernel's casts",
}
QUESTION = re.compile(r"(What|Whether|How|Where|Which|Why|When|Who|Whose)\b|Tells? (whether|if)\b")
WHAT = re.compile(r".*\bwhat\b(?!-if)")
"""A first line with this word in place of a noun."""
DIGESTED = "simulator/numbers"
"""Its files change only together with the certificates."""

every_room = pytest.mark.parametrize("room", ROOMS)

Graph = dict[str, set[str]]


def files_of_the_rooms() -> dict[str, Path]:
    return {module_name(path): path for room in ROOMS for path in sources(room)}


def modules_run(importer: str, names: set[str], files: Collection[str]) -> set[str]:
    """Returns what Python runs for the names that a module imports: the modules that have them, and
    the packages on the way that do not run already. A name of `pypto_cast` itself is one of its
    interface; the packages of the rooms, which every import goes through, are left out.
    """
    run: set[str] = set()
    for name in names - {longer.rpartition(".")[0] for longer in names}:
        path = itertools.accumulate(name.split("."), "{}.{}".format)
        *packages, module = [part for part in path if part in files] or [importer]
        if module == "pypto_cast" and re.match(r"pypto_cast\.(?!__)", name):
            module = "pypto_cast.interface"
        run |= {module, *(each for each in packages if not importer.startswith(f"{each}."))}
    return run - {importer, *ROOMS}


def imports_between(files: dict[str, Path]) -> Graph:
    """Returns for every module the others that its imports run."""
    return {
        importer: modules_run(importer, {name for _, name in imports_of(path)}, files)
        for importer, path in files.items()
    }


def order_of_the_rooms() -> dict[str, list[str]]:
    """Returns the list of docs/architecture.md: the rooms of each package, {x, y} side by side."""
    page = PAGE.read_text(encoding="utf-8")
    listed = next(text for text in re.findall(r"```text\n(.*?)```", page, re.S))
    return {
        package: [name for name in re.split(r",\s*|\s+", rooms) if name]
        for package, rooms in re.findall(r"^(\w+): ((?:.*\n)(?: .*\n)*)", listed, re.M)
    }


def ranks_of(package: str, rooms: list[str]) -> dict[str, tuple[int, int]]:
    """Returns the place of each room, and the place before which those are that it may know."""
    ranks, first = {}, None
    for place, word in enumerate(rooms):
        if word.startswith("{"):
            first = place
        ranks[f"{package}.{word.strip('{}')}"] = place, place if first is None else first
        if word.endswith("}"):
            first = None
    return ranks


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def upward(graph: Graph, ranks: dict[str, tuple[int, int]]) -> list[str]:
    """Returns the imports of a room by one that may not know it."""
    return [
        f"{name} imports {target}"
        for name, targets in graph.items()
        for target in sorted(targets)
        if room_of(name) != room_of(target)
        and {room_of(name), room_of(target)} <= ranks.keys()
        and ranks[room_of(target)][0] >= ranks[room_of(name)][1]
    ]


def circle(graph: Graph) -> list[str]:
    """Returns the modules of one circle of imports, the first one again at the end."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def long(files: dict[str, Path]) -> list[str]:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files.values()}
    return [f"{path}: {count} lines" for path, count in lines.items() if count > MAX_LINES]


def repeated_names(files: dict[str, Path]) -> list[str]:
    counts = Counter(path.stem for path in files.values())
    return [name for name, count in counts.items() if count > 1 and name not in SHARED_NAMES]


def first_lines(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the first line of every docstring, those of names included."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.strip().partition("\n")[0]


def matching(pattern: re.Pattern[str], folder: str) -> list[str]:
    """Returns the first lines of docstrings in a folder that a pattern matches."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sources(folder)
        for line, text in first_lines(tree_of(path))
        if pattern.match(text)
    ]


# --- The house ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_former_name_is_imported() -> None:
    former = {f"pypto_cast.{name}" for name in MOVED}
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for room in ROOMS
        for path in sources(room)
        for line, name in imports_of(path)
        if name in former
    ]
    assert found == []


@pytest.mark.slow
@every_room
def test_nothing_is_imported_upward(room: str) -> None:
    above = set(ROOMS[ROOMS.index(room) + 1 :])
    files = list(sources(room))
    assert files
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files
        for line, name in imports_of(path)
        if name.split(".")[0] in above
    ]
    assert found == []


@every_room
def test_a_room_leans_on_the_one_below(room: str) -> None:
    below = ROOMS[: ROOMS.index(room)]
    names = {name.split(".")[0] for path in sources(room) for _, name in imports_of(path)}
    assert names & set(ROOMS) <= {room, *below}
    assert not below or below[-1] in names


@every_room
def test_the_rooms_stand_in_the_order_of_the_page(room: str) -> None:
    ranks = ranks_of(room, order_of_the_rooms()[room])
    graph = imports_between(files_of_the_rooms())
    assert {room_of(name) for name in graph if name.startswith(f"{room}.")} - {
        f"{room}.__main__"
    } == set(ranks)
    assert upward(graph, ranks) == []


def test_no_rooms_stand_in_a_circle() -> None:
    graph: Graph = {}
    for name, targets in imports_between(files_of_the_rooms()).items():
        known = graph.setdefault(room_of(name), set())
        known |= {room_of(target) for target in targets} - {room_of(name)}
    assert " -> ".join(circle(graph)) == ""


def test_no_imports_run_in_a_circle() -> None:
    assert " -> ".join(circle(imports_between(files_of_the_rooms()))) == ""


def test_no_file_is_long() -> None:
    assert long(files_of_the_rooms()) == []


def test_a_name_occurs_once() -> None:
    assert repeated_names(files_of_the_rooms()) == []


@pytest.mark.parametrize("name", ["utils", "common", "helpers"])
def test_there_is_no_room_for_odds_and_ends(name: str) -> None:
    found = [path for room in ROOMS for path in (ROOT / room).rglob(f"{name}*")]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*ROOMS, "docs", "tests", "benchmarks", "examples"])
def test_docstrings_say_and_do_not_ask(folder: str) -> None:
    assert matching(QUESTION, folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*ROOMS, "docs", "examples"])
def test_docstrings_name_things_by_nouns(folder: str) -> None:
    assert [each for each in matching(WHAT, folder) if not each.startswith(DIGESTED)] == []


def absent_from(page: str) -> list[str]:
    """Returns the paths and modules with a command that a page names and the checkout lacks."""
    paths = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", page)
    modules = re.findall(r"python -m ([\w.]+)", page)
    named = [*paths, *(f"{module.replace('.', '/')}.py" for module in modules)]
    return [path for path in named if not (ROOT / path).exists()]


def test_the_page_names_files_that_exist() -> None:
    assert absent_from(PAGE.read_text(encoding="utf-8")) == []


# --- Each of these trips where the house is not in order ---------------------------------------


def test_the_scan_sees_every_form_of_import() -> None:
    code = "import a.b, c\ndef f():\n    from d.e import g\nfrom . import h\nfrom ..i import j\n"
    found = {name for _, name in imported(ast.parse(code), package="room.sub")}
    assert found >= {"a.b", "c", "d.e", "d.e.g", "room.sub.h", "room.i", "room.i.j"}


def test_an_import_of_a_later_room_or_one_beside_is_seen() -> None:
    ranks = ranks_of("a", ["low", "{one", "two}", "high"])
    graph = {
        "a.low.x": {"a.high.y", "a.low.z", "b.high.y"},
        "a.one.x": {"a.low.x", "a.one.y", "a.two"},
        "a.high": {"a.low.x", "a.two.x"},
    }
    assert upward(graph, ranks) == ["a.low.x imports a.high.y", "a.one.x imports a.two"]


def test_a_file_that_is_gone_is_seen() -> None:
    page = "`tiling/chips.py`, `tiling/chip.py`, `tiling/`: `python -m ascend_kernels.emits`"
    assert absent_from(page) == ["tiling/chip.py", "ascend_kernels/emits.py"]


def test_a_circle_is_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("code", "run"),
    [
        ("from pypto_cast.room import name", {"room"}),
        ("from pypto_cast.room import other", {"room.other"}),
        ("import pypto_cast.above.deep as d\nd.name", {"above", "above.deep"}),
        ("from pypto_cast import jit", {"interface"}),
        ("def f():\n    import pypto_cast as p\n    p.jit", {"interface"}),
        ("import numpy, pypto_cast\npypto_cast.__version__, numpy.ones", set()),
    ],
)
def test_an_import_runs_the_packages_on_its_way(code: str, run: set[str]) -> None:
    names = {name for _, name in imported(ast.parse(code), package="pypto_cast.room")}
    rooms = ("room", "room.other", "room.one", "above", "above.deep", "interface")
    files = ("pypto_cast", *(f"pypto_cast.{room}" for room in rooms))
    found = modules_run("pypto_cast.room.one", names, files)
    assert found == {f"pypto_cast.{room}" for room in run}


def test_long_files_and_repeated_names_are_seen(tmp_path: Path) -> None:
    files = {"a": tmp_path / "a.py", "b": tmp_path / "b.py"}
    for path in files.values():
        path.write_text("pass\n" * MAX_LINES)
    assert (long(files), repeated_names(files)) == ([], [])
    inner = tmp_path / "inner" / "a.py"
    inner.parent.mkdir()
    inner.write_text("pass\n" * (MAX_LINES + 1))
    more = files | {"inner.a": inner}
    assert long(more) == [f"{inner}: {MAX_LINES + 1} lines"]
    assert repeated_names(more) == ["a"]


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        *((f"{word} it is.", True) for word in ("What", "Whether", "How", "Whose", "Tells if")),
        ("Returns what it takes.", True),
        ("Whatever it takes, and a what-if.", False),
    ],
)
def test_a_docstring_that_asks_is_seen(text: str, is_refused: bool) -> None:
    code = f'class A:\n    x = 1\n    """{text}"""\n    def f(self):\n        "{text}\\n..."\n'
    assert [*first_lines(ast.parse(code))] == [(3, text), (5, text)]
    assert bool(QUESTION.match(text) or WHAT.match(text)) is is_refused
