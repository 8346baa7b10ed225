"""Each operation of upstream's in small kernels, beside the table of what is planned of it."""

from __future__ import annotations

import os
import re
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.environment.upstream_wheel import python_with_wheel
from support.numbers.codes import SEED

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from benchmarks import planned_operations
from benchmarks.planned_operations import TABLE, WORDS, absent, kernels, planned_and_run
from benchmarks.planned_schedules import Case, Verdict, planned_kernel
from docs.generators.operation_tables import names
from pypto_cast.kernel.jit import Kernel

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
CASES = list(kernels())
DRAWN = 12
"""Operations; all if PYPTO_CAST_LONG_TESTS is set."""
OF_THE_WHEEL = ("tril", "arange", "prelu", "cbrt", "one_hot", "gathermask")
OF_THE_950 = ("interleave", "deinterleave", "uniform", "normal", "quant_mx", "scaled_mm")
"""Operations of the 950 alone."""


def rows() -> dict[str, dict[str, str]]:
    """The rows of the committed table by operation, each cell by its heading."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    place = next(k for k, cells in enumerate(found) if cells[0] == "operation")
    heads = found[place]
    return {
        cells[0].strip("`"): dict(zip(heads, cells, strict=True)) for cells in found[place + 2 :]
    }


ROWS = rows() if TABLE.exists() else {}


def drawn() -> list[str]:
    every = sorted({name for name, _ in CASES})
    if os.environ.get("PYPTO_CAST_LONG_TESTS"):
        return every
    return sorted(np.random.default_rng(SEED).permutation(every)[:DRAWN])


def test_each_operation_has_a_kernel_and_a_row() -> None:
    listed = {name for name, _ in CASES}
    missing = {name for name in {*names()} - listed if not absent(name)}
    assert missing == set()
    assert {*names()} <= ROWS.keys()
    assert listed <= ROWS.keys()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", drawn())
def test_the_table_says_what_is_planned(name: str, tmp_path: Path) -> None:
    """Without the wheel a kernel is planned and run as its plan, or refused."""
    row, found = ROWS[name], []
    for operation, case in CASES:
        if operation == name:
            result = planned_and_run(case, tmp_path, None)
            assert result.verdict in (Verdict.PLANNED, Verdict.REFUSED), (result, case.kernel.text)
            found.append(result.verdict)
    assert int(row["kernels"]) == len(found)
    told = sum(int(row[WORDS[x]] or 0) for x in (Verdict.EQUAL, Verdict.DIFFERS, Verdict.PLANNED))
    uncompiled = len(found) - told - int(row[WORDS[Verdict.REFUSED]] or 0)
    assert told <= found.count(Verdict.PLANNED) <= told + uncompiled


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", drawn())
def test_plans_by_the_newest_lists_give_the_tensor_levels_results(
    name: str, tmp_path: Path
) -> None:
    for operation, case in CASES:
        if operation == name and case.release != "head":
            result = planned_and_run(replace(case, release="head"), tmp_path, None)
            assert result.verdict in (Verdict.PLANNED, Verdict.REFUSED), (result, case.kernel.text)


def refusal(kernel: Kernel, case: Case) -> str:
    """The text of the planner's refusal; "" of a kernel that is planned, or refused before."""
    try:
        planned_kernel(kernel, case.kernel, None, case.release)
    except PlanError as error:
        return str(error)
    except (TypeError, ValueError):  # of the tensor level
        return ""
    return ""


def test_a_refusal_names_the_operation_and_its_line(tmp_path: Path) -> None:
    refused = 0
    for name, case in CASES:
        if not ROWS[name][WORDS[Verdict.REFUSED]]:
            continue
        file = tmp_path / f"{case.kernel.id}.py"
        file.write_text(case.kernel.text, encoding="utf-8")
        kernel = runpy.run_path(str(file), run_name=case.kernel.id)[case.kernel.name]
        reason = refusal(kernel, case)
        assert re.search(rf"\w+.* at {case.kernel.id}\.py:\d+", reason) or not reason
        refused += bool(reason)
    assert refused == sum(int(row[WORDS[Verdict.REFUSED]] or 0) for row in ROWS.values())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("argmin", "argmin: of DT_BF16, whose places upstream counts in INT16"),
        ("matmul", "matmul: A_MUL_B is not planned: it needs the cube's memories"),
        ("argsort", "argsort: of DT_FP16, which is cast, not planned"),
        ("atomic_add", "atomic_add: ATOMIC_RMW is not planned: it needs additions in GM"),
    ],
)
def test_a_refusal_says_the_opcode_and_the_reason(name: str, reason: str, tmp_path: Path) -> None:
    found = []
    for _, case in (each for each in CASES if each[0] == name):
        file = tmp_path / f"{case.kernel.id}.py"
        file.write_text(case.kernel.text, encoding="utf-8")
        kernel = runpy.run_path(str(file), run_name=case.kernel.id)[case.kernel.name]
        found.append(re.sub(r" at \S+:\d+( in \w+)?", "", refusal(kernel, case)))
    assert any(each.startswith(reason) for each in found), found


@pytest.mark.parametrize("page", ["operations.md", "operations.zh.md"])
def test_the_page_of_operations_lists_those_without_a_plan(page: str) -> None:
    text = (Path(__file__).parents[3] / "docs" / page).read_text(encoding="utf-8")
    (section,) = re.findall(
        r"### (?:Operations without a plan|不能规划的操作)\n(.*?)\n## ", text, re.DOTALL
    )
    firsts = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    named = [each for first in firsts for each in re.findall(r"`([\w.]+)`", first)]
    ends = [WORDS[each] for each in (Verdict.EQUAL, Verdict.DIFFERS, Verdict.PLANNED)]
    refused = [
        name
        for name, row in ROWS.items()
        if row[WORDS[Verdict.REFUSED]] and not any(row[each] for each in ends)
    ]
    assert sorted(named) == sorted(refused)


def test_the_command_ends_with_0_and_has_a_row_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert planned_operations.main(["tril", "atomic_add", "--processes", "1"]) == 0
    printed = capsys.readouterr().out
    assert "| `atomic_add` | 1 |  |  |  | 1 | refused: atomic_add: ATOMIC_RMW is not pl" in printed
    assert "| `tanh` | 0 |  |  |  |  | not in release 0.2.0 |" in printed
    assert "| `online_softmax` |" not in printed


@pytest.mark.upstream
def test_the_wheel_compiles_them_as_they_are_planned(tmp_path: Path) -> None:
    python = str(python_with_wheel(tmp_path))
    wanted = dict.fromkeys(OF_THE_WHEEL)
    cases = [case for name, case in CASES if name in wanted and case.kernel.id.endswith("_0")]
    assert len(cases) == len(OF_THE_WHEEL)
    for case in cases:
        result = planned_and_run(case, tmp_path, python)
        assert result.verdict is Verdict.EQUAL, (result.verdict, result.parts, result.why)


def test_operations_of_the_950_are_refused_where_they_are_called() -> None:
    with pypto.options(chip="Ascend910B2", vec_tile_shapes=[16, 64]):
        x = pypto.from_numpy(np.zeros((16, 64), np.float32))
        with pytest.raises(TypeError, match="has no dtypes on Ascend910B2"):
            pypto.interleave(x, x)
    assert all(absent(name) for name in OF_THE_950)
