"""Dumps that are not as upstream writes them: one line, with the file and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.programs.upstream_dumps import arrays_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule import upstream_dump
from ascend_kernels.schedule.schedule import Schedule

Function = dict[str, Any]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return unpacked("two_tile_shapes", tmp_path)


def leaf_of(dump: Path) -> Path:
    return sorted(dump.glob("Pass_36_*/After_*_LEAF_*.json"))[0]


def root_of(dump: Path) -> Path:
    return next(dump.glob("Pass_36_*/After_*_ROOT.json"))


def flow_of(dump: Path) -> Path:
    return next(dump.glob("kernel_aicpu/controlFlow_*.cpp"))


def changed(path: Path, change: Callable[[Function], object]) -> None:
    document = json.loads(path.read_text())
    change(document["functions"][0])
    path.write_text(json.dumps(document))


def in_ub(leaf: Function) -> Function:
    return next(each for each in leaf["tensors"] if each["mem_type"]["asis"] == 0)


def refusal(dump: Path, path: Path) -> str:
    """The text of the error, which names the file."""
    with pytest.raises(upstream_dump.DumpError) as caught:
        pypto.read_schedule(dump)
    text = str(caught.value)
    assert "\n" not in text
    assert path.name in text
    return text.split(path.name, 1)[1]


def circle(root: Function) -> None:
    """The task that reads a temporary writes the argument of the one that wrote it."""
    first = root["operations"][0]
    last = next(each for each in root["operations"] if first["ooperands"][0] in each["ioperands"])
    first["ioperands"] = first["ioperands"] + last["ooperands"]


LEAF_DAMAGES: dict[str, tuple[Callable[[Function], object], str]] = {
    "no opcode": (lambda leaf: leaf["operations"][0].pop("opcode"), "'opcode' is missing"),
    "no tensors": (lambda leaf: leaf.pop("tensors"), "'tensors' is missing"),
    "unknown dtype": (lambda leaf: leaf["rawtensors"][-1].update(datatype=99), "has dtype 99"),
    "outside UB": (
        lambda leaf: in_ub(leaf).update(mem_range=[196_000, 300_000]),
        "lies at bytes 196000 to 300000 of UB",
    ),
    "a text for a list": (lambda leaf: leaf.update(operations="no"), ""),
    "no such tensor": (lambda leaf: leaf["operations"][1].update(ioperands=[123456]), "123456"),
    "unknown mode": (
        lambda leaf: leaf["operations"][1].update(op_attr={"op_attr_mode": 77}),
        "out of range",
    ),
}


@pytest.mark.parametrize("damage", LEAF_DAMAGES)
def test_a_damaged_leaf_is_named(damage: str, dump: Path) -> None:
    change, said = LEAF_DAMAGES[damage]
    changed(leaf_of(dump), change)

    assert said in refusal(dump, leaf_of(dump))


@pytest.mark.parametrize("size", [0, 1, 4000])
def test_a_file_that_is_cut_short_is_named(size: int, dump: Path) -> None:
    for path in (leaf_of(dump), root_of(dump)):
        whole = path.read_text()
        path.write_text(whole[:size])
        refusal(dump, path)
        path.write_text(whole)


def test_a_scalar_that_is_cut_short_is_named(dump: Path) -> None:
    changed(root_of(dump), lambda root: root["operations"][0]["attr"].__setitem__(4, [2, 16, 4]))

    assert "is cut short" in refusal(dump, root_of(dump))


def test_a_scalar_that_is_nested_too_deeply_is_named(dump: Path) -> None:
    deep = [2, 1] * 100_000 + [0, 1]
    changed(root_of(dump), lambda root: root["operations"][0]["attr"].__setitem__(4, deep))

    assert "nested too deeply" in refusal(dump, root_of(dump))


def test_another_version_is_named(dump: Path) -> None:
    path = leaf_of(dump)
    path.write_text(path.read_text().replace('"2.0"', '"3.0"'))

    assert "version '3.0' of a dump, only 2.0 is known" in refusal(dump, path)


def test_tasks_in_a_circle_are_named(dump: Path) -> None:
    changed(root_of(dump), circle)

    assert "wait for each other in a circle" in refusal(dump, root_of(dump))


def test_a_missing_leaf_is_named(dump: Path) -> None:
    leaf_of(dump).unlink()

    assert "is not in the dump" in refusal(dump, root_of(dump))


def test_a_control_flow_that_is_not_understood_is_named(dump: Path) -> None:
    path = flow_of(dump)
    whole = path.read_text()
    for text, said in (
        (whole.replace("RUNTIME_RootStitch(0ULL)", "goto somewhere"), "is not understood"),
        (
            whole.replace("LOOP(VAR_loop_idx_0, 0, 1, 1)", "LOOP(VAR_loop_idx_0, 0)"),
            "no begin, end",
        ),
        (whole[: whole.index("RUNTIME_RootStitch(0")], "ends inside a block"),
    ):
        path.write_text(text)
        assert said in refusal(dump, path)


def test_a_file_beyond_the_limit_is_named(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_dump, "MAX_FILE_BYTES", 20_000)

    assert "more than the 20000 B of a file" in refusal(dump, root_of(dump))


def test_a_dump_beyond_the_limit_is_named(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_dump, "MAX_DUMP_BYTES", 20_000)
    with pytest.raises(upstream_dump.DumpError, match="the dump has more than 20000 B"):
        pypto.read_schedule(dump)


def test_a_folder_without_a_dump_or_with_several_kernels(tmp_path: Path) -> None:
    with pytest.raises(upstream_dump.DumpError, match="no dump of upstream's compiler is there"):
        pypto.read_schedule(tmp_path)
    for name in ("abs_1d", "softmax"):
        unpacked(name, tmp_path)
    flow_of(tmp_path / "abs_1d").rename(tmp_path / "flow")
    with pytest.raises(upstream_dump.DumpError, match="leaves without a control flow"):
        pypto.read_schedule(tmp_path / "abs_1d")
    unpacked("abs_1d", tmp_path)
    with pytest.raises(ValueError, match="several kernels, name one of abs_1d, softmax"):
        pypto.read_schedule(tmp_path)
    with pytest.raises(ValueError, match="no kernel 'other'; it holds abs_1d, softmax"):
        pypto.read_schedule(tmp_path, "other")
    assert pypto.read_schedule(tmp_path, "softmax").kernel == "softmax"


def test_an_opcode_without_a_row_and_a_leaf_of_the_cube_are_named(dump: Path) -> None:
    def spoil(leaf: Function) -> None:
        leaf["operations"][-1]["opcode"] = "COPY_OUT"
        for each in leaf["operations"]:
            if each["opcode"] in ("MULS", "ADDS"):
                each["opcode"] = "POW"

    changed(leaf_of(dump), spoil)
    cube = sorted(dump.glob("Pass_36_*/After_*_LEAF_*.json"))[1]
    changed(cube, lambda leaf: in_ub(leaf)["mem_type"].update(asis=2))

    schedule = pypto.read_schedule(dump)

    assert [each.split(" ", 1)[1] for each in sorted(schedule.not_executed)] == [
        "has POW, without a row (it needs values that no operation of the table gives)",
        "runs on the cube",
    ]
    x, y = arrays_of(schedule)
    before = y.copy()
    with pytest.raises(ValueError, match="not executed: 2 of 2 leaves, and with them 16 of 16"):
        schedule.run(x, y)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "no schedule of version 1"),
        ('{"version": 2, "schedule": {}}', "no schedule of version 1"),
        ('{"version": 1, "schedule": {"kernel": 3}}', "'3' is not of"),
        ('{"version": 1, "schedule": {"kernel": "k"}}', "missing"),
        ('{"version": 1, "schedule": {"nonsense": 3}}', "a Schedule is wanted"),
        ('{"version": 1}', "a Schedule is wanted"),
        ("[]", "no schedule of version 1"),
        ("no JSON", "Expecting value"),
    ],
)
def test_json_that_is_no_schedule_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Schedule.from_json(text)
