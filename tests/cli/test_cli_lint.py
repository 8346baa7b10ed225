"""The command: lint. Formats, what is ignored, settings, files that cannot be read."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from support.environment.command import Command, command
from support.environment.sources import ROOT

from pypto_cast.cli.main import main
from pypto_cast.lint.checks import CHECKS

__all__ = ["command"]  # a fixture

SOURCE = """import pypto

def f(x):
    return pypto.cast(x, pypto.DT_INT8, pypto.CAST_RINT)
"""
MESSAGE = "float to INT8 without saturation: out of range it is the low bits in pypto: name satmode"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(SOURCE)
    return tmp_path


def test_a_finding_has_its_place(command: Command, folder: Path) -> None:
    ran = command("lint", "k.py")
    assert (ran.code, ran.out, ran.err) == (1, f"k.py:4:12: PC103 {MESSAGE}\n", "")


def test_nothing_found_is_silent(command: Command, folder: Path) -> None:
    (folder / "k.py").write_text("x = 1\n")
    assert (command("lint", "k.py").code, command("lint", ".").out) == (0, "")


def test_columns_count_characters(command: Command, folder: Path) -> None:
    text = 'import pypto\ny = "\u4f60\u597d", pypto.cast(x, pypto.DT_INT8, 1)\n'
    (folder / "k.py").write_text(text, encoding="utf-8")
    assert command("lint", "k.py").out.startswith(
        f"k.py:2:{text.splitlines()[1].index('pypto') + 1}"
    )


def test_json(command: Command, folder: Path) -> None:
    (finding,) = command("lint", "k.py", "--format", "json").json["findings"]
    assert finding == {
        "file": "k.py",
        "line": 4,
        "column": 12,
        "code": "PC103",
        "message": MESSAGE,
        "text": SOURCE.splitlines()[3].strip(),
    }


def test_json_by_its_flag(command: Command, folder: Path) -> None:
    assert command("lint", "k.py", "--json").out == command("lint", "k.py", "--format", "json").out
    error = command("lint", "k.py", "--json", "--format", "sarif").error
    assert error == "--json is --format json; give it or --format sarif"


def test_sarif(command: Command, folder: Path) -> None:
    (folder / "k.py").rename(folder / "a b%.py")
    document = command("lint", "a b%.py", "--format", "sarif").json
    (run,) = document["runs"]
    assert document["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(CHECKS)
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b%25.py"
    assert place["region"] == {"startLine": 4, "startColumn": 12}
    assert (result["ruleId"], result["message"]["text"]) == ("PC103", MESSAGE)


SARIF = {
    "": ({"$schema", "version", "runs"}, {"version", "runs"}),
    "runs": ({"tool", "columnKind", "results"}, {"tool"}),
    "tool": ({"driver"}, {"driver"}),
    "driver": ({"name", "version", "rules"}, {"name"}),
    "rules": ({"id", "shortDescription", "help"}, {"id"}),
    "shortDescription": ({"text"}, {"text"}),
    "help": ({"text"}, {"text"}),
    "results": ({"ruleId", "level", "message", "locations"}, {"message"}),
    "message": ({"text"}, {"text"}),
    "locations": ({"physicalLocation"}, set()),
    "physicalLocation": ({"artifactLocation", "region"}, {"artifactLocation"}),
    "artifactLocation": ({"uri"}, set()),
    "region": ({"startLine", "startColumn"}, set()),
}
"""Objects of SARIF 2.1.0, of the OASIS standard: properties used here, and those required there."""


def test_sarif_has_the_properties_of_the_standard(command: Command, folder: Path) -> None:
    met: set[str] = set()

    def check(name: str, value: object) -> None:
        if isinstance(value, list):
            for each in value:
                check(name, each)
        elif isinstance(value, dict):
            allowed, required = SARIF[name]
            assert required <= set(value) <= allowed, name
            met.add(name)
            for key, inner in value.items():
                check(key, inner)
        else:
            is_number = name in ("startLine", "startColumn")
            assert isinstance(value, int if is_number else str), name
            assert not is_number or int(str(value)) >= 1

    (folder / "k.py").write_text(SOURCE * 3)
    check("", command("lint", "k.py", "--format", "sarif").json)
    assert met == set(SARIF)


def test_sarif_without_findings_is_a_document(command: Command, folder: Path) -> None:
    (folder / "k.py").write_text("")
    ran = command("lint", "k.py", "--format", "sarif")
    assert (ran.code, ran.json["runs"][0]["results"]) == (0, [])


def test_github(command: Command, folder: Path) -> None:
    (folder / "k.py").rename(folder / "a,b.py")
    out = command("lint", "a,b.py", "--format", "github").out
    assert out == f"::warning file=a%2Cb.py,line=4,col=12,title=PC103::{MESSAGE}\n"


def test_an_unknown_format(command: Command, folder: Path) -> None:
    error = command("lint", "k.py", "--format", "xml").error
    assert error == "--format is one of text, json, sarif, github, not 'xml'"


@pytest.mark.parametrize(
    ("comment", "code"),
    [
        ("# pypto-cast: ignore[PC103]", 0),
        ("# pypto-cast: ignore[PC101, PC103] and why", 0),
        ("# pypto-cast: ignore", 0),
        ("# pypto-cast: ignore[PC101]", 1),
        ("# pypto-cast: ignore[PC10]", 1),
        ("# pypto-cast: ignore[]", 1),
        ("# pypto-cast: ignore[PC103", 1),
        ("# pypto-cast: ignored here", 1),
        ("# pypto-cast: ignore-next", 1),
        ("# pypto-cast: ignore[PC101]  # pypto-cast: ignore[PC103]", 0),
        ("# noqa: E501  # pypto-cast: ignore[PC103]", 0),
    ],
)
def test_a_comment_ignores(comment: str, code: int, command: Command, folder: Path) -> None:
    (folder / "k.py").write_text(f"{SOURCE.rstrip()}  {comment}\n")
    assert command("lint", "k.py").code == code


def test_a_comment_in_any_line_of_the_call(command: Command, folder: Path) -> None:
    text = "import pypto\npypto.cast(\n    x,\n    pypto.DT_INT8,  # pypto-cast: ignore[PC103]\n)\n"
    (folder / "k.py").write_text(text)
    assert command("lint", "k.py").code == 0
    text = "LocalTensor<float> x; LocalTensor<int32_t> m;\nvoid f() { Cast(m, x, CAST_NONE, 8);"
    (folder / "k.cpp").write_text(f"{text}\n")
    assert command("lint", "k.cpp").code == 1
    (folder / "k.cpp").write_text(f"{text} // pypto-cast: ignore[PC101]\n")
    assert command("lint", "k.cpp").code == 0


def test_a_baseline_hides_as_many_as_it_has(command: Command, folder: Path) -> None:
    (folder / "base.json").write_text(command("lint", ".", "--format", "json").out)
    assert command("lint", ".", "--baseline", "base.json").code == 0
    (folder / "k.py").write_text(SOURCE.replace("def", "# moved down\ndef"))
    assert command("lint", ".", "--baseline", "base.json").code == 0
    (folder / "k.py").write_text(SOURCE + SOURCE)
    ran = command("lint", ".", "--baseline", "base.json")
    assert (ran.code, ran.out[:9]) == (1, "k.py:8:12")


def test_a_baseline_is_of_its_files_from_any_folder(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "k.py").write_text(SOURCE)
    (folder / "ci").mkdir()
    found = command("lint", "k.py", "--format", "json").out
    for base in ("base.json", "ci/base.json"):
        (folder / base).write_text(found)
        assert command("lint", "k.py", "--baseline", base).code == 0
        assert command("lint", folder / "k.py", "--baseline", base).code == 0
    monkeypatch.chdir(folder / "sub")
    assert command("lint", "../k.py", "--baseline", "../base.json").code == 0
    ran = command("lint", "k.py", "--baseline", "../base.json")
    assert (ran.code, ran.out[:5]) == (1, "k.py:"), "a file of the same name in another folder"


def test_patterns_are_of_paths_in_the_folder_of_the_settings(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub" / "build").mkdir(parents=True)
    (folder / "sub" / "build" / "k.py").write_text(SOURCE)
    (folder / "pyproject.toml").write_text('[tool.pypto-cast.lint]\nexclude = ["sub/build/*"]\n')
    assert command("lint", folder / "sub").code == 0
    monkeypatch.chdir(folder / "sub")
    assert command("lint", ".").code == 0
    assert command("lint", "build/k.py").code == 1, "a file that is named is read"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"findings": 3}', '{"findings": [{}]}', "[" * 9999]
)
def test_a_file_that_is_no_baseline(content: str, command: Command, folder: Path) -> None:
    (folder / "base.json").write_text(content)
    assert "base.json is no baseline" in command("lint", ".", "--baseline", "base.json").error


def test_settings(command: Command, folder: Path) -> None:
    (folder / "k.py").write_text(f"{SOURCE}h: pypto.Tensor([64], pypto.DT_FP16)\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "k.py").write_text(SOURCE)
    settings = folder / "pyproject.toml"
    settings.write_text('[tool.pypto-cast.lint]\nexclude = ["sub/*"]\n')
    assert command("lint", ".").out.count("PC103") == 1
    settings.write_text('[tool.pypto-cast.lint]\nignore = ["PC103"]\n')
    assert command("lint", ".").code == 0
    settings.write_text('[tool.pypto-cast.lint]\nselect = ["PC101"]\n')
    assert command("lint", ".").code == 0
    settings.write_text('[tool.pypto-cast.lint]\nbaseline = "base.json"\n')
    assert command("lint", ".").error == "base.json: No such file or directory".replace(
        "base.json", str(folder / "base.json")
    )
    settings.write_text("[tool.other]\n")
    assert command("lint", ".").code == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('colour = "red"', "[tool.pypto-cast.lint] has no colour; it has select, ignore, exclude"),
        ('ignore = "PC103"', "ignore is a list of texts, not 'PC103'"),
        ('ignore = ["E501"]', "no check is E501; there are PC101, PC102"),
        ("many-elems = true", "many-elems is a positive number, not True"),
        ("many-elems = 0", "many-elems is a positive number, not 0"),
        ("baseline = 3", "baseline is a path, not 3"),
    ],
)
def test_settings_that_are_wrong(text: str, error: str, command: Command, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.pypto-cast.lint]\n{text}\n")
    assert error in command("lint", ".").error


def test_settings_in_another_place(command: Command, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("tool = 3\n")
    assert "[tool.pypto-cast.lint] is no table" in command("lint", ".").error


HOSTILE = {
    "syntax.py": (b"def f(:\n", r"syntax\.py:1:7: invalid syntax"),
    "indent.py": (b"if x:\ny = 1\n", r"indent\.py:2:1: expected an indented block.*"),
    "binary.py": (b"\x00\x01\x02", r"binary\.py: it has a byte 0, and is no source"),
    "binary.cpp": (b"\xff\xfe\x00", r"binary\.cpp: it is no UTF-8 at byte 0"),
    "latin.py": ("x = 'é'".encode("latin-1"), r"latin\.py: it is no UTF-8 at byte 5"),
    "deep.py": (b"(" * 5000, r"deep\.py.*(nested|too many).*"),
    "sum.py": (b"x = " + b"+".join([b"a"] * 50000), r"sum\.py: it is nested too deeply to be read"),
    "dots.py": (b"x" + b".a" * 50000, r"dots\.py: it is nested too deeply to be read"),
    "large.py": (b"#" * (1 << 20) + b"\n", r"large\.py has 1,048,577 B, more than .*"),
    "notes.txt": (b"x", r"notes\.txt is neither Python nor C\+\+ by its name; .*"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_are_no_source(name: str, command: Command, folder: Path) -> None:
    content, error = HOSTILE[name]
    (folder / name).write_bytes(content)
    assert re.fullmatch(error, command("lint", "k.py", name).error)


def test_files_that_cannot_be_read(command: Command, folder: Path) -> None:
    assert command("lint", "gone.py").error == "gone.py: No such file or directory"
    os.symlink("b.py", "a.py")
    os.symlink("a.py", "b.py")
    assert command("lint", "a.py").error == "a.py: Too many levels of symbolic links"
    os.mkfifo("pipe.py")
    assert "pipe.py is no regular file" in command("lint", "pipe.py").error


def test_a_folder_that_links_to_itself(command: Command, folder: Path) -> None:
    os.symlink(".", folder / "again")
    assert command("lint", ".").out.count("PC103") == 1


def test_assignments_that_double_a_list(command: Command, folder: Path) -> None:
    lines = ["x = (x, x)\nif y:\n    x = (x, x)\nelse:\n    x = (x, x)\n" for _ in range(60)]
    (folder / "k.py").write_text(f"x = (1, 2)\n{''.join(lines)}")
    assert command("lint", "k.py").code == 0


def test_a_source_is_not_run(command: Command, folder: Path) -> None:
    (folder / "k.py").write_text("open('ran', 'w')\nraise SystemExit(7)\n")
    assert (command("lint", "k.py").code, (folder / "ran").exists()) == (0, False)


def test_the_hook_of_pre_commit() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entry = re.search(r"entry: pypto-cast (.*)", text)
    assert entry is not None
    assert main([*entry[1].split(), str(ROOT / "examples" / "hello_cast.py")]) in (0, 1)
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    cli = re.search(r"^cli = (\[.*\])$", extras, re.M)
    needed = re.search(r"additional_dependencies: (\[.*\])$", text, re.M)
    assert cli is not None
    assert needed is not None
    assert json.loads(needed[1]) == json.loads(cli[1])
