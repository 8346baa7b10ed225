"""The house rules that a machine can hold: order of the rooms, sizes, names, docstrings."""

from __future__ import annotations

import ast
import graphlib
import re
from collections import Counter
from pathlib import Path

import pytest
from support.surroundings.sources import (
    ROOMS,
    ROOT,
    imported,
    imports_of,
    module_name,
    sources,
    tree_of,
)

# The folders of a room that stand in an order; each knows only those before it and itself.
FOLDERS = {"simulator": ("numbers", "arithmetic", "machine", "traces", "ascendc")}
MAX_FILES = 20
MAX_LINES = 600
# Names of modules that occur twice, and why.
SHARED_NAMES = {
    "__init__": "every package has one",
    "cast": "ONNX's and Paddle's operation of that name",
    "convert": "the definition, and OpenVINO's operation of that name",
    "dtypes": "pypto's, and Paddle's, which has the same word for them",
    "names": "spellings of dtypes and modes, and what only the command reads",
    "operation": "a row of the arithmetic, and upstream's module of that name",
    "npu": "the launch of a cast, and that of a kernel's casts",
}
QUESTION = re.compile(r"(What|How|Where|Which|Why|Whether|When)\b")

every_room = pytest.mark.parametrize("room", ROOMS)

Graph = dict[str, set[str]]


def files_of_the_rooms() -> dict[str, Path]:
    return {module_name(path): path for room in ROOMS for path in sources(room)}


def imports_between(files: dict[str, Path]) -> Graph:
    """Returns for every module the other modules that it imports from, packages left out: what
    imports a package for one of its modules does not know the others.
    """
    modules = {name for name, path in files.items() if path.name != "__init__.py"}
    return {
        name: {target for _, target in imports_of(path)} & modules - {name}
        for name, path in files.items()
    }


def upward(graph: Graph, room: str, order: tuple[str, ...]) -> list[str]:
    """Returns the imports that run from a folder of a room to one after it in the order."""
    ranks = {f"{room}.{folder}": rank for rank, folder in enumerate(order)}

    def rank(module: str) -> int | None:
        return ranks.get(".".join(module.split(".")[:2]))

    return [
        f"{name} imports {target}"
        for name, targets in graph.items()
        for target in sorted(targets)
        if None not in (rank(name), rank(target)) and rank(name) < rank(target)
    ]


def circle(graph: Graph) -> list[str]:
    """Returns the modules of one circle of imports, the first one again at the end."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def crowded(files: dict[str, Path]) -> list[str]:
    """Returns the folders with too many files; `__init__.py` does not count."""
    counts = Counter(path.parent for path in files.values() if path.name != "__init__.py")
    return [f"{folder}: {count} files" for folder, count in counts.items() if count > MAX_FILES]


def long(files: dict[str, Path]) -> list[str]:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files.values()}
    return [f"{path}: {count} lines" for path, count in lines.items() if count > MAX_LINES]


def repeated_names(files: dict[str, Path]) -> list[str]:
    counts = Counter(path.stem for path in files.values())
    return [name for name, count in counts.items() if count > 1 and name not in SHARED_NAMES]


def questions(tree: ast.Module) -> list[tuple[int, str]]:
    """Returns line and docstring of everything whose docstring opens with a question word."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (getattr(node, "lineno", 1), text)
        for node in ast.walk(tree)
        if isinstance(node, kinds) and QUESTION.match(text := ast.get_docstring(node) or "")
    ]


# --- The house ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("room", FOLDERS)
def test_nothing_is_imported_upward_between_folders(room: str) -> None:
    assert upward(imports_between(files_of_the_rooms()), room, FOLDERS[room]) == []


def test_no_imports_run_in_a_circle() -> None:
    assert " -> ".join(circle(imports_between(files_of_the_rooms()))) == ""


def test_no_folder_is_crowded() -> None:
    assert crowded(files_of_the_rooms()) == []


def test_no_file_is_long() -> None:
    assert long(files_of_the_rooms()) == []


def test_a_name_occurs_once() -> None:
    assert repeated_names(files_of_the_rooms()) == []


@pytest.mark.parametrize("name", ["utils", "common", "helpers"])
def test_there_is_no_room_for_odds_and_ends(name: str) -> None:
    found = [path for room in ROOMS for path in (ROOT / room).rglob(f"{name}*")]
    assert found == []


@pytest.mark.parametrize("folder", [*ROOMS, "tests", "benchmarks", "examples"])
def test_docstrings_say_and_do_not_ask(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sources(folder)
        for line, text in questions(tree_of(path))
    ]
    assert found == []


# --- Each of these trips where the house is not in order ---------------------------------------


def test_the_scan_sees_every_form_of_import() -> None:
    code = "import a.b, c\ndef f():\n    from d.e import g\nfrom . import h\nfrom ..i import j\n"
    found = {name for _, name in imported(ast.parse(code), package="room.sub")}
    assert found >= {"a.b", "c", "d.e", "d.e.g", "room.sub.h", "room.i", "room.i.j"}


def test_an_import_to_a_later_folder_is_seen() -> None:
    graph = {"a.low.x": {"a.high.y", "a.low.z", "b.high.y"}, "a.high.y": {"a.low.x", "a.loose"}}
    assert upward(graph, "a", ("low", "high")) == ["a.low.x imports a.high.y"]


def test_a_circle_is_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_a_crowded_folder_long_files_and_repeated_names_are_seen(tmp_path: Path) -> None:
    files = {f"m{n}": tmp_path / f"m{n}.py" for n in range(MAX_FILES)}
    for path in files.values():
        path.write_text("pass\n" * MAX_LINES)
    package = {"p": tmp_path / "__init__.py"}
    package["p"].write_text("")
    assert (crowded(files | package), long(files | package), repeated_names(files)) == ([], [], [])
    inner = tmp_path / "inner" / "m0.py"
    inner.parent.mkdir()
    inner.write_text("pass\n" * (MAX_LINES + 1))
    one_more = {"last": tmp_path / "last.py"}
    one_more["last"].write_text("")
    more = files | one_more | {"inner.m0": inner}
    assert crowded(more) == [f"{tmp_path}: {MAX_FILES + 1} files"]
    assert long(more) == [f"{inner}: {MAX_LINES + 1} lines"]
    assert repeated_names(more) == ["m0"]


@pytest.mark.parametrize("word", ["What", "How", "Where", "Which", "Why", "Whether", "When"])
def test_a_docstring_that_asks_is_seen(word: str) -> None:
    code = f'"""Whatever."""\nclass A:\n    def f(self):\n        """{word} it is."""\n'
    assert questions(ast.parse(code)) == [(3, f"{word} it is.")]
