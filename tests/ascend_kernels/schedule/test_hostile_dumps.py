"""Dumps that are not as upstream writes them: one line, with the file and what is wrong."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.programs.upstream_dumps import arrays_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule import task_lowering
from ascend_kernels.schedule.reader import dump_fields, dump_files
from ascend_kernels.schedule.reader.dump_files import DumpError
from ascend_kernels.schedule.schedule import Schedule

Function = dict[str, Any]
LEAF_TEXT = "Pass_36_*/*.tifwkgr"
EXPRESSIONS = "kernel_aicpu/expression_0.h"


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
    with pytest.raises(DumpError) as caught:
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
    "a text for a list": (
        lambda leaf: leaf.update(operations="no"),
        'functions[0], operations: a list is wanted, not "no"',
    ),
    "a fraction": (
        lambda leaf: leaf["operations"][1].update(latency=0.5),
        "operations[1], latency: a whole number of 64 bits is wanted, not 0.5",
    ),
    "a huge number": (
        lambda leaf: leaf["tensors"][0].update(mem_id=1 << 70),
        "tensors[0], mem_id: a whole number of 64 bits is wanted",
    ),
    "NaN": (
        lambda leaf: leaf["operations"][1].update(op_attr={"SCALAR": {"value": math.nan}}),
        "NaN is no number of JSON",
    ),
    "half a character": (
        lambda leaf: leaf["operations"][1].update(file="\ud800"),
        "operations[1], file: printable text is wanted",
    ),
    "two tensors of one magic": (
        lambda leaf: leaf["tensors"].append(leaf["tensors"][0]),
        "is there 2 times",
    ),
    "no raw tensor": (
        lambda leaf: leaf["tensors"][0].update(rawtensor=-5),
        "raw tensor -5 is missing",
    ),
    "axes that differ": (
        lambda leaf: in_ub(leaf).update(offset=[0]),
        "an operand's shapes and offset differ in their axes",
    ),
    "no function": (lambda leaf: leaf.clear(), "functions[0]: 'hash' is missing"),
    "no such tensor": (lambda leaf: leaf["operations"][1].update(ioperands=[123456]), "123456"),
    "a text for an axis": (
        lambda leaf: leaf["operations"][1].update(op_attr={"op_attr_axis": "0"}),
        'op_attr, op_attr_axis: a whole number of 64 bits is wanted, not "0"',
    ),
    "a number for axes": (
        lambda leaf: leaf["operations"][1].update(op_attr={"op_attr_shape": 1}),
        "op_attr, op_attr_shape: a list is wanted, not 1",
    ),
    "a packed tensor too many": (
        lambda leaf: leaf["operations"][1].update(
            op_attr={"op_attr_output_combine_axis": [False, True]}
        ),
        "op_attr_output_combine_axis is of 2 tensors, not 1",
    ),
    "a valid shape by a tensor of another leaf": (
        lambda leaf: in_ub(leaf).update(dynvalidshape=[[1, "sym_9_dim_0"]] * 2),
        "sym_9_dim_0 is no axis of its leaf",
    ),
    "another pipe": (
        lambda leaf: leaf["operations"][1]["sync_queue"].update(pipe_id=5),
        "COPY_IN is of pipe MTE3, and the opcode of MTE2",
    ),
    "another core": (
        lambda leaf: leaf["operations"][1].update(op_attr={"IS_CUBE": True}),
        "COPY_IN is of the cube, and its leaf of AIV: all is in UB or GM",
    ),
    "a barrier between two pipes": (
        lambda leaf: (
            leaf["operations"][1].update(opcode="BAR.V", ioperands=[], ooperands=[])
            or leaf["operations"][1]["sync_queue"].update(pipe_id=1, trig_pipe=5)
        ),
        "BAR.V: it is between V and MTE3",
    ),
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


def test_a_number_of_thousands_of_digits_is_named(dump: Path) -> None:
    number = "9" * 5000
    said = "a whole number of 64 bits is wanted, not 99999999999999999999..., which has 5000 digits"
    as_json = pypto.read_schedule(dump).to_json()
    with pytest.raises(ValueError, match=said):
        Schedule.from_json(as_json.replace('"version": 1', f'"version": {number}'))
    assert Schedule.from_json(as_json).to_json() == as_json
    for path in (leaf_of(dump), root_of(dump)):
        whole = path.read_text()
        path.write_text(whole.replace('"funcmagic":', f'"funcmagic": {number}, "other":', 1))
        assert said in refusal(dump, path)
        path.write_text(whole)
    for path, old in (
        (next(dump.glob(EXPRESSIONS)), "ARG_x 0"),
        (leaf_of(dump).with_suffix(".tifwkgr"), "INCAST[  0"),
    ):
        whole = path.read_text()
        path.write_text(whole.replace(old, f"{old[:-1]}{number}", 1))
        assert ": line " in (found := refusal(dump, path))
        assert "is not understood" in found
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


@pytest.mark.parametrize(
    "pattern", ["kernel_aicpu/*.cpp", "kernel_aicpu/*.h", "Pass_36_*/*.tifwkgr"]
)
def test_a_text_that_is_cut_short_at_the_end_of_a_line_is_named(pattern: str, dump: Path) -> None:
    path = sorted(dump.glob(pattern))[0]
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for kept in (0, 2, len(lines) // 2, len(lines) - 1):
        path.write_bytes(b"".join(lines[:kept]))
        assert "is cut short: its last line is not" in refusal(dump, path)
    path.write_bytes(whole.replace(b"\n", b"\r\n"))
    pypto.read_schedule(dump)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("pattern", "name"),
    [(LEAF_TEXT, "softmax"), (LEAF_TEXT, "loop_paths"), (EXPRESSIONS, "loop_paths")],
)
def test_a_text_with_a_line_less_is_named(pattern: str, name: str, tmp_path: Path) -> None:
    dump = unpacked(name, tmp_path)
    path = sorted(dump.glob(pattern))[0]
    lines = path.read_text().splitlines(keepends=True)
    for place, line in enumerate(lines):
        path.write_text("".join(lines[:place] + lines[place + 1 :]))
        # Comments on the expressions, which nothing is read from.
        if line.strip() and not line.startswith(("/* Full", "/* Function info")):
            refusal(dump, path)
    path.write_text("".join(lines))
    pypto.read_schedule(dump)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [LEAF_TEXT, EXPRESSIONS])
def test_garbage_in_a_text_is_named_with_its_line(pattern: str, tmp_path: Path) -> None:
    dump = unpacked("loop_paths", tmp_path)
    path = sorted(dump.glob(pattern))[0]
    lines = path.read_text().splitlines(keepends=True)
    for place in range(1, len(lines) - 1):
        path.write_text("".join([*lines[:place], "@@garbage ((\n", *lines[place:]]))
        assert f": line {place + 1}: '@@garbage ((' is not" in refusal(dump, path)


@pytest.mark.parametrize(
    ("name", "pattern", "old", "new", "said"),
    [
        ("softmax", LEAF_TEXT, "!10012 ", "!10013 ", "operation 10013 is there twice"),
        ("softmax", LEAF_TEXT, "!10012 ", "!99999 ", "operation 10012 is not in it"),
        ("softmax", LEAF_TEXT, "5755378140415235496", "1", "the text of 1, not of its JSON"),
        (
            "softmax",
            LEAF_TEXT,
            "op_attr_validShape{[",
            "op_attr",
            "op_attr_validShape of operation",
        ),
        ("softmax", LEAF_TEXT, "softmax.py:12 */", "softmax.py */", "the source line of operation"),
        (
            "softmax",
            LEAF_TEXT,
            "softmax.py:12 */",
            "softmax.py:13 */",
            " is 13, and 12 in its JSON",
        ),
        ("padded", LEAF_TEXT, "SCALAR{-inf}", "SCALAR{1}", "SCALAR of operation"),
        ("loop_paths", EXPRESSIONS, "ARG_x, 0))", "ARG_x, 0)", "is not the next line of"),
        (
            "loop_paths",
            EXPRESSIONS,
            "LOOP_BES_0: ",
            "LOOP_BES_7: ",
            "listed under 'EXPR_LOOP_BES_7'",
        ),
        (
            "loop_paths",
            EXPRESSIONS,
            "define ARG_y 1",
            "define ARG_y 2",
            "argument 1 of 3 or more is missing",
        ),
    ],
)
def test_a_text_that_differs_from_its_json_is_named(
    name: str, pattern: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    dump = unpacked(name, tmp_path)
    path = next(each for each in sorted(dump.glob(pattern)) if old in each.read_text())
    path.write_text(path.read_text().replace(old, new, 1))

    assert said in refusal(dump, path)


def test_an_output_that_no_task_writes_is_named(tmp_path: Path) -> None:
    for place, path_of in enumerate((leaf_of, root_of)):
        dump = unpacked("softmax", tmp_path / str(place))
        changed(path_of(dump), lambda function: function.update(operations=[]))
        text = leaf_of(dump).with_suffix(".tifwkgr")
        if path_of is leaf_of:
            lines = text.read_text().splitlines(keepends=True)
            text.write_text("".join(each for each in lines if " TILE_" not in each))
        assert "it gives y, which none of its tasks writes" in refusal(dump, root_of(dump))


def test_arguments_in_one_place_are_named(dump: Path) -> None:
    path = next(dump.glob("kernel_aicpu/expression_0.h"))
    path.write_text(path.read_text().replace("#define ARG_x 0", "#define ARG_x 1"))
    assert "two arguments have one name or place: " in refusal(dump, path)


def test_a_control_flow_that_is_not_understood_is_named(dump: Path) -> None:
    path = flow_of(dump)
    whole = path.read_text()
    for text, said in (
        (whole.replace("RUNTIME_RootStitch(0ULL)", "goto somewhere"), "is not understood"),
        (
            whole.replace("LOOP(VAR_loop_idx_0, 0, 1, 1)", "LOOP(VAR_loop_idx_0, 0)"),
            "no begin, end",
        ),
        (whole.replace("  }\n", "", 1), "'} // namespace npu::tile_fwk' is not understood"),
        (whole.replace("ControlFlowEntry", "Entry"), "it runs nothing"),
        (whole.replace("// #name: ", "// ", 1), "no kernel is named before its function"),
        (re.sub(r"(?m)^.*LOOP\(VAR_.*\n", "", whole), "stands behind the end of its function"),
        (re.sub(r"(?m)^.*RUNTIME_RootAlloc.*\n", "", whole), "hands in a root not allocated"),
        (re.sub(r"(?m)^.*RootStitch\(0.*\n", "", whole), "its last root is allocated, and not"),
    ):
        path.write_text(text)
        assert said in refusal(dump, path)


def test_a_control_flow_without_an_end_is_not_executed(
    dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = flow_of(dump)
    whole = path.read_text()
    monkeypatch.setattr(task_lowering, "MAX_TASKS", 40)
    for text, said in (
        # Refused by its bounds, before it comes to tasks.
        (f"LOOP(VAR_loop_idx_0, 0, {2**63 - 1}, 1)", "more than 40 rounds of"),
        (f"LOOP(VAR_loop_idx_0, {1 - 2**63}, {2**63 - 1}, 1)", "more than 40 rounds of"),
        ("LOOP(VAR_loop_idx_0, 0, 40, 1)", "more than 40 tasks"),
        ("LOOP(VAR_a, 0, 99, 1) {\n}\nLOOP(VAR_loop_idx_0, 0, 1, 1)", "more than 40 rounds of"),
    ):
        path.write_text(whole.replace("LOOP(VAR_loop_idx_0, 0, 1, 1)", text))
        schedule = pypto.read_schedule(dump)
        with pytest.raises(ValueError, match=said):
            schedule.run(*arrays_of(schedule))
    for text in ("LOOP(VAR_a, 0, 1, 1) {\n" * 200 + "}\n" * 200, "if (" + "-" * 300 + "1) {\n}\n"):
        path.write_text(whole.replace("LOOP(VAR_loop_idx_0", f"{text}LOOP(VAR_loop_idx_0"))
        assert "nested more than 100 deep" in refusal(dump, path)
    path.write_text(whole.replace("0, 1, 1)", f"0, {1 << 70}, 1)"))
    assert "loop loop_idx_0: whole numbers and texts" in refusal(dump, path)


def test_texts_without_bounds_are_read_in_one_pass(dump: Path) -> None:
    text = leaf_of(dump).with_suffix(".tifwkgr")
    last = " " + "#op_attr_validShape{[" * 50_000 + " = !1" * 100_000 + "\n}\n"
    text.write_text(text.read_text().removesuffix("\n}\n") + last)
    path = flow_of(dump)
    path.write_text(path.read_text().replace("loop_idx_0, 0,", f"loop_idx_0, {'1+' * 200_000}1,"))

    assert "an expression has 400002 letters, more than 65536" in refusal(dump, path)


def test_temporaries_without_bounds_are_not_allocated(dump: Path) -> None:
    def grow(root: Function) -> None:
        first = root["operations"][0]["ooperands"][0]
        raw = next(each["rawtensor"] for each in root["tensors"] if each["magic"] == first)
        for each in root["rawtensors"]:
            if each["rawmagic"] == raw:
                each["rawshape"] = [1 << 30, 1 << 30]

    changed(root_of(dump), grow)
    schedule = pypto.read_schedule(dump)

    with pytest.raises(ValueError, match="more than 268435456 bytes of temporaries"):
        schedule.run(*arrays_of(schedule))


@pytest.mark.parametrize("kind", ["folder", "pipe", "bytes", "bomb", "symlink"])
def test_what_is_no_file_of_upstreams_is_named(
    kind: str, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = leaf_of(dump)
    whole = path.read_bytes()
    path.unlink()
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "bytes":
            path.write_bytes(whole[:100] + b"\xff" + whole[100:])
        case "bomb":
            monkeypatch.setattr(dump_fields, "_MAX_VALUES", 10_000)
            path.write_text("[" + "[]," * 9_999 + "[]]")
        case "symlink":
            path.symlink_to(path)
    said = {
        "folder": "Is a directory",
        "pipe": "is no regular file",
        "bytes": "can't decode byte 0xff",
        "bomb": "it has 20000 values, more than the 10000 of a file",
        "symlink": "levels of symbolic links",
    }

    assert said[kind] in refusal(dump, path)


def test_a_file_beyond_the_limit_is_named(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_files, "MAX_FILE_BYTES", 20_000)

    assert "more than the 20000 B of a file" in refusal(dump, root_of(dump))


def test_a_dump_beyond_the_limit_is_named(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_files, "MAX_DUMP_BYTES", 20_000)
    with pytest.raises(DumpError, match="the dump has more than 20000 B"):
        pypto.read_schedule(dump)


def test_a_folder_without_a_dump_or_with_several_kernels(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="no dump of upstream's compiler is there"):
        pypto.read_schedule(tmp_path)
    for name in ("abs_1d", "softmax"):
        unpacked(name, tmp_path)
    with pytest.raises(ValueError, match="several kernels, name one of abs_1d, softmax"):
        pypto.read_schedule(tmp_path)
    with pytest.raises(ValueError, match="no kernel 'other'; it holds abs_1d, softmax"):
        pypto.read_schedule(tmp_path, "other")
    assert pypto.read_schedule(tmp_path, "softmax").kernel == "softmax"


def test_leaves_of_a_compiler_that_stopped_are_read_and_named(dump: Path) -> None:
    complete = pypto.read_schedule(dump)
    flow_of(dump).unlink()
    stopped = pypto.read_schedule(dump)

    assert {leaf.name for leaf in stopped.leaves} >= {leaf.name for leaf in complete.leaves}
    assert (stopped.kernel, stopped.parameters, stopped.bodies) == (dump.name, (), ())
    assert "the control flow is not known" in stopped.not_executed[0]
    assert pypto.Schedule.from_json(stopped.to_json()) == stopped
    count = len(stopped.leaves)
    with pytest.raises(pypto.NotExecutedError, match=f"not executed: {count} of {count} leaves"):
        stopped.run()
    unpacked("abs_1d", dump / "other")
    flow_of(dump / "other" / "abs_1d").unlink()
    with pytest.raises(DumpError, match="several dumps without a control flow"):
        pypto.read_schedule(dump)


def test_an_opcode_without_a_row_and_a_leaf_of_the_cube_are_named(dump: Path) -> None:
    def spoil(leaf: Function) -> None:
        leaf["operations"][-1]["opcode"] = "COPY_OUT"
        for each in leaf["operations"]:
            if each["opcode"] in ("MULS", "ADDS"):
                each["opcode"] = "POWS"

    changed(leaf_of(dump), spoil)
    cube = sorted(dump.glob("Pass_36_*/After_*_LEAF_*.json"))[1]
    changed(cube, lambda leaf: in_ub(leaf)["mem_type"].update(asis=2))

    schedule = pypto.read_schedule(dump)

    assert [each.split(" ", 1)[1] for each in sorted(schedule.not_executed)] == [
        "has POWS, without a row (it needs a number that chooses among several functions)",
        "runs on the cube",
    ]
    x, y = arrays_of(schedule)
    before = y.copy()
    with pytest.raises(ValueError, match="not executed: 2 of 2 leaves, and with them 16 of 16"):
        schedule.run(x, y)
    np.testing.assert_array_equal(y, before)


def test_a_format_that_an_opcode_has_no_values_of_is_named(dump: Path) -> None:
    schedule = pypto.read_schedule(dump)
    leaf = schedule.leaves[0]
    place = next(k for k, each in enumerate(leaf.operations) if each.pipe == "V" and not each.flag)
    operations = list(leaf.operations)
    outputs = operations[place].outputs * 2  # the second is its scratch
    operations[place] = replace(operations[place], opcode="ISFINITE", scalar=None, outputs=outputs)
    changed_leaf = replace(leaf, operations=tuple(operations))
    (reason,) = replace(schedule, leaves=(changed_leaf, *schedule.leaves[1:])).not_executed
    assert "has ISFINITE of FP32 (it needs a cast to FP16 over its own operand" in reason


@pytest.mark.parametrize(
    "name", ["joined", "loop_columns", "padded", "powers", "running_sums", "through_gm"]
)
def test_a_kernel_without_its_last_argument_is_named(name: str, tmp_path: Path) -> None:
    dump = unpacked(name, tmp_path)
    path = next(dump.glob(EXPRESSIONS))
    whole = path.read_text()
    *_, last = re.findall(r"(?m)^#define ARG_.*\n", whole)
    path.write_text(whole.replace(last, ""))
    assert ", no argument, which no body takes" in refusal(dump, path)


def test_a_tensor_that_no_body_gives_is_named(tmp_path: Path) -> None:
    dump = unpacked("loop_held", tmp_path)

    def take_another(function: Function) -> None:
        function["incasts"] = [[magic, [99]] for magic, _ in function["incasts"]]

    changed(next(dump.glob("Pass_01_*/*_read_*.json")), take_another)
    said = refusal(dump, next(dump.glob(EXPRESSIONS)))
    assert ", no argument, which no body gives" in said


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("loop_data", "        } else {\n", "", "line 36: path 0 of TENSOR_times_Unroll1 follows"),
        ("loop_data", "} else {\n", "} else {\n} else {\n", "line 37: a second else of one"),
    ],
)
def test_an_else_that_is_missing_or_too_much_is_named(
    name: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    dump = unpacked(name, tmp_path)
    path = flow_of(dump)
    path.write_text(path.read_text().replace(old, new, 1))
    assert said in refusal(dump, path)
