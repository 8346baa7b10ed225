"""The README and the site tell the truth: their code gives what they show, their tables are those
of the project, and the pages for contributors name files that exist.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.environment.page_code import blocks_of
from support.environment.sources import ROOT

from ascend_kernels.matrix_table import grid, markdown
from docs.generators import change_page, fidelity_tables, notebook_page
from docs.generators.generated import PAGES, TABLES
from docs.generators.kernel_picture import KERNEL_PICTURE, kernel_picture
from docs.generators.markdown_text import joined
from docs.generators.rounding_picture import PICTURE, picture
from docs.generators.schedule_picture import SCHEDULE_PICTURE, schedule_picture
from docs.generators.small_floats_picture import SMALL_FLOATS_PICTURE, small_floats_picture
from docs.generators.table_words import in_chinese
from simulator.arithmetic.trust import ASSUMPTIONS, CHOICES
from tiling.chips import A2_A3, ASCEND_950

DOCS = ROOT / "docs"
RUNNER = ROOT / "tests" / "support" / "environment" / "page_code.py"
README = ROOT / "README.md"
WRITTEN = sorted(
    path
    for path in DOCS.rglob("*.md")
    if not path.name.endswith(".zh.md") and path.parent.name != "certificates"
)
"""The code of a translation is that of the page; certificates take long."""
TRANSLATED = [ROOT / "README.zh.md", *sorted(DOCS.rglob("*.zh.md"))]


def run_pages(pages: list[Path]) -> None:
    done = subprocess.run(
        [sys.executable, str(RUNNER), *map(str, pages)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_code_of_readme_and_site_gives_what_they_show() -> None:
    run_pages([README, *WRITTEN])


@pytest.mark.slow
def test_code_of_generated_pages_gives_what_they_show(tmp_path: Path) -> None:
    pages = []
    for name, write in PAGES.items():
        if name in notebook_page.PAGES:
            continue  # its cells are executed where the notebook is tested
        if name.endswith(".zh.md"):
            original = PAGES[name.replace(".zh.md", ".md")]
            assert code_of(write()) == code_of(original())
            continue
        path = tmp_path / name.replace("/", "_")
        path.write_text(write(), encoding="utf-8")
        pages.append(path)
    run_pages(pages)


def code_of(text: str) -> list[str]:
    return [block.text for block in blocks_of(text) if block.language == "python"]


def test_a_page_that_shows_another_result_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(2)\n```\n\n```text\n3\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="the page shows"):
        run_pages([page])


@pytest.mark.slow
def test_the_failure_on_the_start_page_is_that_of_the_changed_mode(tmp_path: Path) -> None:
    blocks = {block.title: block.text for block in blocks_of((DOCS / "start.md").read_text())}
    kernel = blocks["my_kernel.py"].replace("CAST_RINT", "CAST_FLOOR")
    (tmp_path / "my_kernel.py").write_text(kernel, encoding="utf-8")
    test = blocks["test_my_kernel.py"] + "\n\ntest_rounds_to_nearest(None)\n"
    done = subprocess.run(
        [sys.executable, "-c", test],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert blocks["the failure"].strip() in done.stderr


def test_the_readme_is_short_and_starts_with_one_sentence() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert lines[1] == lines[3] == ""


@pytest.mark.parametrize(
    ("name", "table"),
    [("grid", grid()), ("matrix", markdown(A2_A3)), ("matrix of 950", markdown(ASCEND_950))],
    ids=["grid", "A2/A3", "950"],
)
def test_the_support_table_is_the_matrix(name: str, table: str) -> None:
    page = (DOCS / "matrix.md").read_text(encoding="utf-8")
    shown = re.search(rf"<!-- {name}: .*? -->\n(.*?)<!-- end of {name} -->", page, re.S)
    assert shown is not None
    assert shown[1].strip() == table.strip()


def test_the_picture_is_what_the_modes_give() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture()


def test_the_picture_of_the_kernel_is_that_of_the_readme() -> None:
    assert KERNEL_PICTURE.read_text(encoding="utf-8") == kernel_picture()


def test_the_picture_of_small_floats_is_that_of_their_formats() -> None:
    assert SMALL_FLOATS_PICTURE.read_text(encoding="utf-8") == small_floats_picture()


def test_the_picture_of_tasks_is_that_of_the_dump() -> None:
    assert SCHEDULE_PICTURE.read_text(encoding="utf-8") == schedule_picture()


def test_every_result_that_changes_is_on_its_page() -> None:
    text = "## [2.0]\n\n### Results that change\n\n- A is\n  B. As before: C.\n- D.\n\n### Added\n"
    assert [*change_page.changes(text)] == [("2.0", "A is B.", "C."), ("2.0", "D.", "")]
    items = [*change_page.changes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))]
    assert len(items) > 20
    assert all(write().count("\n| ") == len(items) + 2 for write in change_page.PAGES.values())


def test_the_site_does_not_publish_its_generators() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    excluded = re.search(r"^exclude_docs: \|\n((?:  .*\n)+)", text, re.M)
    assert excluded is not None
    assert {"*.py", "__pycache__/"} <= set(excluded[1].split())
    assert list((DOCS / "generators").glob("*.py"))


def test_every_title_of_the_navigation_is_translated() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    head, _, navigation = text.partition("\nnav:\n")
    _, _, after = head.partition("nav_translations:\n")
    translations = re.match(r"(?: {12}.*\n)+", after)
    assert translations is not None
    translated = re.findall(r'^ {12}"?([^":]+)"?: \S', translations[0], re.M)
    titles = re.findall(r'^ +- "?([^":\n]+)"?:', navigation, re.M)
    assert {*titles} - {*translated} == {"pypto_cast"}
    assert sorted(translated) == sorted({*translated} & {*titles})


def test_every_table_is_shown_on_the_fidelity_page_of_each_language() -> None:
    for name in ("fidelity.md", "fidelity.zh.md"):
        text = (DOCS / name).read_text(encoding="utf-8")
        assert re.findall(r"<!-- table: (\w+) -->", text) == [
            "chosen",
            *(table for table in fidelity_tables.TABLES if table not in ("chosen", "chips")),
            "chips",
        ]


def test_the_chinese_fidelity_page_words_every_assumption() -> None:
    text = (DOCS / "fidelity.zh.md").read_text(encoding="utf-8")
    assert "<!-- table: assumptions -->" in text
    shown = in_chinese(TABLES["assumptions"]())
    for each in (*ASSUMPTIONS, *CHOICES.values()):
        (row,) = (line for line in shown.splitlines() if f"`{each.name}`" in line)
        assert re.search("[\u4e00-\u9fff]{2}", row.split(" | ")[2]), row
        assert each.statement not in row


def levels(path: Path) -> list[int]:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    return [len(marks) for marks in re.findall(r"^(#+) ", text, re.M)]


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda path: path.name)
def test_a_translation_has_the_headings_and_the_code_of_the_page(page: Path) -> None:
    original = page.with_name(page.name.replace(".zh.md", ".md"))
    assert levels(page) == levels(original)
    code, expected = (blocks_of(p.read_text(encoding="utf-8")) for p in (page, original))
    assert code == expected


@pytest.mark.parametrize(
    "name",
    [
        "index",
        "start",
        "tasks",
        "cheat_sheet",
        "migration",
        "limits",
        "concepts",
        "operations_to_tasks",
        "kernel_tasks",
        "fidelity",
        "operations",
        "device",
        "device_owners",
        "testing",
        "comparison",
        "features",
        "matrix",
        "routes",
        "speed",
    ],
)
def test_there_is_a_translation(name: str) -> None:
    assert DOCS / f"{name}.zh.md" in TRANSLATED


def test_the_parts_of_a_translation_are_those_of_the_page() -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    site_hooks = importlib.import_module("docs.generators.site_hooks")
    for name in ("matrix", "routes"):
        parts = re.findall(r"<!-- part: (\S+) (.*?) -->", (DOCS / f"{name}.zh.md").read_text())
        assert parts
        assert all(site_hooks.part_of(*part).strip() for part in parts)
    with pytest.raises(ValueError, match="has no generated part 'gird'"):
        site_hooks.part_of("matrix.md", "gird")


def test_generated_tables_on_chinese_pages_have_chinese_headings_and_words() -> None:
    """Names and quoted sources stay; a new heading, choice or statement needs its translation."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    site_hooks = importlib.import_module("docs.generators.site_hooks")
    english = re.compile(r"[a-z]{2,} [a-z]{2,}|\b(yes|no|all|none|exact|source|figure)\b")
    shown: dict[str, str] = {}
    for path in DOCS.glob("*.zh.md"):
        page = path.read_text(encoding="utf-8")
        for name in re.findall(r"<!-- table: (\w+) -->", page):
            shown[name] = in_chinese(TABLES[name]())
        for part in re.findall(r"<!-- part: (\S+) (.*?) -->", page):
            shown[part[1]] = in_chinese(site_hooks.part_of(*part))
    assert {"chosen", "upstream_operations", "grid", "matrix_counts"} <= set(shown)
    for name, text in shown.items():
        rows = [[*map(str.strip, x.strip("|").split("|"))] for x in text.splitlines() if x]
        assert [x for x in rows[0] if english.search(x)] == [], name
    for name, columns in (("chosen", [1, 2]), ("assumptions", [1, 2]), ("readings", [1])):
        for row in shown[name].splitlines()[2:]:
            cells = row.strip("| ").split(" | ")
            assert not any(english.search(cells[place]) for place in columns), row
    for name in ("matrix", "matrix of 950", "grid", "pairs"):
        assert not english.search(shown[name].replace("scaled", "")), name
    assert "have an" not in shown["matrix_counts"] + shown["vector_counts"]


def test_a_translation_shows_every_table_of_figures_once() -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    site_hooks = importlib.import_module("docs.generators.site_hooks")
    page = (DOCS / "speed.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\|(?:-+\|)+$", page, re.M)
    shown = re.findall(
        r"<!-- figures: speed.md (\d+): (.*) -->", (DOCS / "speed.zh.md").read_text()
    )
    assert [int(place) for place, _ in shown] == [*range(1, len(tables) + 1)]
    for place, headings in shown:
        first, *rows = site_hooks.figures_of("speed.md", int(place), headings).splitlines()
        assert first == f"| {headings} |"
        assert "\n".join(rows) in page
    with pytest.raises(ValueError, match=r"has 12 tables; there is no table 13"):
        site_hooks.figures_of("speed.md", 13, "a | b")
    with pytest.raises(ValueError, match=r"the columns of table 5 of docs/speed.md are \| program"):
        site_hooks.figures_of("speed.md", 5, "a | b | c")


def test_every_tutorial_is_translated() -> None:
    pages = {path.name for path in (DOCS / "tutorials").glob("*.md")}
    assert {p for p in pages if not p.endswith(".zh.md")} == {
        p.replace(".zh.md", ".md") for p in pages if p.endswith(".zh.md")
    }


def test_lines_within_a_chinese_sentence_are_joined() -> None:
    assert joined("甲，\n乙\n丙。\n丁") == "甲，乙丙。丁"
    assert joined("- 甲，\n  乙") == "- 甲，乙"
    for kept in ("甲\n\n乙", "## 甲\n\n乙", "甲\n- 乙", "甲\nb", "a\n乙", "甲\n| 乙 |"):
        assert joined(kept) == kept


def test_code_is_copied_without_prompts() -> None:
    """The button of a block copies all of it."""
    blocks = [
        (path.name, line)
        for path in (README, *WRITTEN, *TRANSLATED)
        for block in blocks_of(path.read_text(encoding="utf-8"))
        if block.language in ("sh", "python", "toml")
        for line in block.text.splitlines()
        if re.match(r"\s*(\$ |>>> |\.\.\. |In \[)", line)
    ]
    assert blocks == []


def test_both_set_up_commands_make_their_own_environment() -> None:
    blocks = blocks_of(README.read_text(encoding="utf-8"))
    commands = [b.text for b in blocks if b.text.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert all(len(command.splitlines()) == 1 for command in commands)


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md", "tests/README.md"])
def test_pages_name_files_that_exist(page: str) -> None:
    path = ROOT / page
    named = re.findall(r"`([\w./]+/[\w./]*|[\w/]+\.(?:py|md|toml))`", path.read_text())
    assert named
    assert [n for n in named if not ((ROOT / n).exists() or (path.parent / n).exists())] == []
