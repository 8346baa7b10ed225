"""Every operation has one page, with all sections, and what it says of dtypes and parts holds.

Its example is run where the code of all generated pages is.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from support.environment.sources import ROOT

import pypto_cast as pypto
from docs.generators.argument_words import ARGUMENTS_ZH
from docs.generators.markdown_text import table
from docs.generators.operation_examples import EXPRESSIONS, STATEMENTS, chip_of, example
from docs.generators.operation_pages import (
    GROUPS,
    PAGES,
    PARAMETERS,
    TITLES,
    arguments_of,
    result_of,
    with_operations,
)
from docs.generators.operation_words import (
    PARAMETERS_ZH,
    RETURNS_ZH,
    SUMMARIES_ZH,
    TITLES_ZH,
)
from pypto_cast import experimental, operations
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations import elementwise_plan, reduction_functions
from pypto_cast.operations.operation_rows import ROWS, OperationRow
from simulator.arithmetic import OPERATIONS, Operation
from tiling.chips import CHIPS

MKDOCS = ROOT / "mkdocs.yml"
SECTIONS = ["Prototype", "Parameters", "Returns", "Constraints", "Fidelity", "Example"]
NO_SUCH_OPERANDS = {
    "where",
    "dequantize",
    "full",
    "expand_clone",
    "matmul",
    "prelu",
    "unpack",
    "gathermask",
    "conv",
    *("quant_mx", "scaled_mm", "uniform", "normal"),
}
"""In their examples operands or results are of several dtypes, or there are none."""
OF_ONE_DTYPE = sorted(
    name
    for name, text in EXPRESSIONS.items()
    if ROWS[name].dtypes and name not in NO_SUCH_OPERANDS and not re.search(r"\b(at|row)\b", text)
)


def page(name: str) -> str:
    return PAGES[f"operations/{name}.md"]()


def sections(name: str) -> dict[str, str]:
    first, *others = re.split(r"^## ", page(name), flags=re.M)
    heading, sentence = first.strip().split("\n\n", 1)
    assert heading == f"# {name}"
    assert sentence
    return {title: text.strip() for title, _, text in (o.partition("\n") for o in others)}


def test_every_operation_has_one_page_in_one_group() -> None:
    listed = [path for group in GROUPS.values() for path in group]
    assert sorted(listed) == sorted(f"operations/{name}.md" for name in operations.__all__)
    english = {*listed, *GROUPS}
    assert set(PAGES) == english | {path.replace(".md", ".zh.md") for path in english}


def test_a_chinese_page_says_in_chinese_what_the_english_one_does() -> None:
    assert [*SUMMARIES_ZH] == sorted(operations.__all__)
    assert [*TITLES_ZH] == [*TITLES]
    for path in PAGES:
        if path.endswith(".zh.md"):
            lines = PAGES[path]().splitlines()
            english = PAGES[path.replace(".zh.md", ".md")]().splitlines()
            headings = ([x for x in text if x.startswith("## ")] for text in (lines, english))
            assert len({*map(len, headings)}) == 1
            assert re.search(r"[\u4e00-\u9fff]", lines[2])
            tables = [[x for x in text if x.startswith("| `")] for text in (lines, english)]
            assert len({len(rows) for rows in tables}) == 1
            for row, original in zip(*tables, strict=True):
                assert row == original or re.search(r"[\u4e00-\u9fff]", row)


def test_the_words_of_parameters_and_results_are_those_of_pages() -> None:
    assert {*RETURNS_ZH} == {result_of(name) for name in operations.__all__}
    for name in operations.__all__:
        given = sections(name)["Returns"].replace("\\", "")
        chinese = PAGES[f"operations/{name}.zh.md"]().replace("\\", "")
        assert f"## 返回值\n\n{RETURNS_ZH[given]}\n" in chinese
    assert {*PARAMETERS_ZH} == {*PARAMETERS}
    described = [arguments_of(name) for name in operations.__all__]
    assert {*ARGUMENTS_ZH} == {text for each in described for text in each.values()}
    for name, arguments in zip(operations.__all__, described, strict=True):
        chinese = PAGES[f"operations/{name}.zh.md"]().replace("\\", "")
        rows = dict(re.findall(r"^\| `\*?(\w+)` \| .* \| (.*) \|$", chinese, re.M))
        for parameter in inspect.signature(getattr(pypto, name)).parameters:
            if parameter in arguments:
                assert rows[parameter] == ARGUMENTS_ZH[arguments[parameter]]


@pytest.mark.parametrize("name", operations.__all__)
@pytest.mark.sampled(3)
def test_a_page_has_all_sections(name: str) -> None:
    found = sections(name)
    assert list(found) == SECTIONS
    assert all(found.values())
    assert f"pypto.{name}(" in found["Prototype"]
    for parameter in inspect.signature(getattr(pypto, name)).parameters:
        assert re.search(rf"^\| `\*?{parameter}` \| `[^|].*\| [^|]+ \|$", found["Parameters"], re.M)
    assert re.search(r"^\| `\w+Error` \| ", found["Constraints"], re.M)
    assert re.search(r"^\| fidelity \| [^|]+ \|$", found["Fidelity"], re.M)
    code, output = re.findall(r"```\w+\n(.*?)```", found["Example"], re.S)
    assert code == example(name)
    assert f"pypto.{name}(" in code
    assert output.strip()


def test_bars_of_cells_are_escaped_outside_of_code() -> None:
    assert table(("a", "b"), [("1|2", "`x | y` | z")]).splitlines()[2] == (
        r"| 1\|2 | `x | y` \| z |"
    )


def test_an_example_is_an_expression_or_a_statement() -> None:
    assert sorted([*EXPRESSIONS, *STATEMENTS]) == sorted(operations.__all__)


def test_a_group_lists_its_operations() -> None:
    for group, pages in GROUPS.items():
        links = re.findall(r"^\| \[\w+\]\(\.\./(\w+\.md)\) \| [^|]+ \|$", PAGES[group](), re.M)
        assert [f"operations/{link}" for link in links] == pages


def test_the_navigation_has_every_group_and_gets_the_operations() -> None:
    text = MKDOCS.read_text(encoding="utf-8")
    assert re.findall(r"^ +- [^:]+: (operations/\w+/index\.md)$", text, re.M) == list(GROUPS)
    group = next(iter(GROUPS))
    nav = [{"Start": "index.md"}, {"Operations": ["operations.md", {"Elementwise": group}]}]
    filled = with_operations(nav)
    assert filled[1]["Operations"][1]["Elementwise"] == [group, *GROUPS[group]]
    assert with_operations(filled) == filled


@pytest.mark.parametrize("name", sorted(n for n, row in ROWS.items() if row.parts))
def test_the_parts_are_those_that_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: set[str] = set()

    def noting(row: OperationRow) -> tuple[Operation, ...]:
        names = row.parts if row.is_chain else (row.name,)
        ran.update(names)
        return tuple(OPERATIONS[each] for each in names)

    monkeypatch.setattr(OperationRow, "steps", property(noting))
    monkeypatch.setattr(elementwise_plan, "_PLANS", {})  # plans of former calls know their steps
    monkeypatch.setattr(elementwise_plan, "_KNOWN", {})
    for module in (elementwise_plan, reduction_functions):
        monkeypatch.setattr(module, "_SETTLED", {})
    x = pypto.tensor([2, 3], pypto.DT_FP32, data=[[1.5, -2.0, 0.25], [0.0, 8.0, -1.5]])
    one = pypto.tensor([2], pypto.DT_FP32, data=[1.0, 1.0])
    row = pypto.tensor([1, 3], pypto.DT_FP32, data=[[1.0, 2.0, 3.0]])
    codes = pypto.tensor([2, 3], pypto.DT_INT8, data=[[1, 2, 3], [4, 5, 6]])
    arguments: dict[str, tuple[Any, ...]] = {
        "softmax": (x, -1),
        "var": (x, -1),
        "rms_norm": (x, pypto.tensor([3], pypto.DT_FP32, data=[1.0, 2.0, 3.0])),
        "quantize": (x, one, pypto.DT_UINT8, -1, one),
        "dequantize": (codes, one, pypto.DT_FP32, -1, one),
        "prelu": (x, pypto.tensor([3], pypto.DT_FP32, data=[1.0, 2.0, 3.0])),
        "ceil_div": (pypto.tensor([2, 2], pypto.DT_INT32, data=[[1, 2], [3, 4]]), 2),
        "pow": (x, 1.7),
        "normal": ([2, 32], [1], [0, 0], [1], pypto.DT_FP32),
        "online_softmax": (x, 0.5),
        "online_softmax_update": (row, row, x, row, row, x),
        **dict.fromkeys(
            ("atan2", "copysign", "hypot", "fmod", "remainder", "floor_div", "expand_exp_dif"),
            (x, x),
        ),
    }
    module = experimental if ROWS[name].is_experimental else pypto
    with pypto.options(vec_tile_shapes=[2, 32], chip=chip_of(name)):
        getattr(module, name)(*arguments.get(name, (x,)))
    assert ran == set(ROWS[name].parts)


def takes(name: str, dtype: DataType) -> bool:
    x = pypto.tensor([2, 32], dtype)
    space = {"pypto": pypto, **dict.fromkeys("xyijuv", x)}
    try:
        eval(EXPRESSIONS[name], space)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "family"), [(name, family) for name in OF_ONE_DTYPE for family in ROWS[name].dtypes]
)
@pytest.mark.sampled(3)
def test_the_dtypes_are_those_that_it_takes(name: str, family: str) -> None:
    shown = re.search(rf"^\| dtypes(?:, on {family})? \| (.*) \|$", page(name), re.M)
    assert shown is not None
    chip = next(chip.name for chip in CHIPS.values() if chip.isa == family)
    with pypto.options(vec_tile_shapes=[2, 32], chip=chip):
        taken = {dtype.name for dtype in DataType if dtype.format and takes(name, dtype)}
    assert set(shown[1].split(", ")) == taken
