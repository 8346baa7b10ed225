"""The tables of release 0.2.0 against the dtypes that upstream's wheel compiles operations to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.environment.sources import ROOT
from support.environment.upstream_wheel import run

import pypto_cast as pypto
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.options.releases import RELEASES

DRIVER = ROOT / "tests" / "support" / "environment" / "upstream_compiles.py"
SHAPE = [16, 64]
DTYPES = {name: DataType[f"DT_{name}"] for name in ("FP16", "BF16", "INT32", "INT16")}

# By operation the statement, its opcode, and the dtypes besides FP16 and BF16 to compile it with.
ELEMENTWISE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "add": ("a + b", "ADD", ()),
    "sub": ("a - 1.5", "SUBS", ()),
    "mul": ("a * b", "MUL", ()),
    "div": ("a / b", "DIV", ()),
    "neg": ("-a", "MULS", ()),
    "maximum": ("pypto.maximum(a, b)", "MAXIMUM", ()),
    "minimum": ("pypto.minimum(a, 1.5)", "MINS", ()),
    "clip": ("pypto.clip(a, 0.0, 1.0)", "MAXS", ()),
    "relu": ("pypto.relu(a)", "RELU", ()),
    "abs": ("pypto.abs(a)", "ABS", ()),
    "exp": ("pypto.exp(a)", "EXP", ()),
    "sqrt": ("pypto.sqrt(a)", "SQRT", ()),
    "reciprocal": ("pypto.reciprocal(a)", "RECIPROCAL", ()),
    "where": ("pypto.where(c, a, b)", "WHERE_TT", ()),
    "logical_not": ("pypto.logical_not(a)", "LOGICALNOT", ()),
    "logical_and": ("pypto.logical_and(a, b)", "LOGICALAND", ()),
    "amax": ("pypto.amax(a, -1, True)", "ROWMAX_SINGLE", ()),
    "amin": ("pypto.amin(a, -1, True)", "ROWMIN_SINGLE", ()),
    "sum": ("pypto.sum(a, -1, True)", "ROWSUM_SINGLE", ()),
    "eq": ("a == b", "CMP", ()),
    "lt": ("a < 1.5", "CMPS", ()),
    "exp2": ("pypto.exp2(a)", "EXP2", ()),
    "round": ("pypto.round(a)", "ROUND", ("INT32",)),
    "floor": ("pypto.floor(a)", "FLOOR", ("INT32", "INT16")),
    "ceil": ("pypto.ceil(a)", "CEIL", ("INT32",)),
    "trunc": ("pypto.trunc(a)", "TRUNC", ("INT16",)),
}
INSIDE_THE_TILE = ("eq", "lt", "round")
"""They cast to FP32 in their tiles, which pass 01 does not show."""
WRITTEN = ("floor", "ceil", "trunc")
"""Casts that both releases write around FP16 and BF16."""
TRUTHS = ("logical_not", "logical_and", "eq", "lt")


def case(name: str, body: str, dtype: str, tile: list[int] = SHAPE, **shapes: list[int]) -> Any:
    operation = name.split()[0]
    out = [SHAPE[0], 1] if operation in ("amax", "amin", "sum") else SHAPE
    tensors = [
        ["a", dtype, shapes.get("a", SHAPE)],
        ["b", dtype, SHAPE],
        ["c", "BOOL", SHAPE],
        ["o", "BOOL" if operation in TRUTHS else dtype, shapes.get("o", out)],
    ]
    used = [each for each in tensors if each[0] == "o" or each[0] in body.replace("pypto", "")]
    return {"name": name, "tensors": used, "tile": tile, "body": f"o[:] = {body}"}


REFUSED = {
    "two axes": (case("two axes", "a + b", "FP32", a=[1, 1]), "Only allow to expand one axis"),
    "a tile of 16 B": (
        case("amax", "pypto.amax(a, -1, True)", "FP32", [16, 4]),
        "need to 32Byte align",
    ),
    "a tile of 8 halves": (case("sum", "pypto.sum(a, -1, True)", "FP16", [16, 8]), "32Byte align"),
    "one dimension": (
        case("exp2", "pypto.exp2(a)", "FP32", [64], a=[64], o=[64]),
        "only support 2~4",
    ),
}


def compiled(python: Path, folder: Path, cases: list[Any]) -> dict[str, Any]:
    folder.mkdir()
    (folder / "cases.json").write_text(json.dumps(cases))
    done = run(
        str(python),
        str(DRIVER),
        str(folder / "cases.json"),
        str(folder / "results.json"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads((folder / "results.json").read_text())
    return {each["name"]: {**each, "log": done.stderr} for each in found}


def expected(operation: str, dtype: str) -> str:
    """The dtype of the opcode's first input that is no condition, by the tables."""
    release = RELEASES["0.2.0"]
    listed = [release.run_in_fp32]
    if operation not in INSIDE_THE_TILE:
        listed.append(release.cast_to_fp32)
    wide = any(DTYPES[dtype] in table.get(operation, ()) for table in listed)
    return "FP32" if wide or (operation in WRITTEN and dtype in ("FP16", "BF16")) else dtype


@pytest.mark.upstream
def test_the_wheel_compiles_what_the_tables_of_0_2_0_say(
    python_with_wheel: Path, tmp_path: Path
) -> None:
    python = python_with_wheel
    cases = {
        f"{operation} {dtype}": case(f"{operation} {dtype}", body, dtype)
        for operation, (body, _, more) in ELEMENTWISE.items()
        for dtype in ("FP16", "BF16", *more)
    }
    found = compiled(python, tmp_path / "taken", list(cases.values()))
    wrong = {}
    for name in cases:
        operation, dtype = name.split()
        opcode = ELEMENTWISE[operation][1]
        runs = [inputs[-1] for each, inputs in found[name]["operations"] if each == opcode]
        if runs[:1] != [expected(operation, dtype)]:
            wrong[name] = found[name]["operations"] or found[name]["error"]
    assert wrong == {}
    var = case("var", "pypto.var(a, -1, 1, True)", "FP32", o=[16, 1])
    opcodes = [each for each, _ in compiled(python, tmp_path / "var", [var])["var"]["operations"]]
    assert (opcodes.count("MULS"), opcodes.count("DIVS")) == (2, 0)
    for position, (name, (refused, text)) in enumerate(REFUSED.items()):
        (said,) = compiled(python, tmp_path / f"refused_{position}", [refused]).values()
        assert text in said["error"] + said["log"], (name, said["error"])


def test_the_cases_are_refused_here_too() -> None:
    with pypto.options(release="0.2.0"):
        for refused, _ in REFUSED.values():
            arrays = {
                name: pypto.from_numpy(
                    np.ones(shape, {"FP32": np.float32, "FP16": np.float16}[dtype])
                )
                for name, dtype, shape in refused["tensors"]
                if name != "o"
            }
            body = refused["body"].removeprefix("o[:] = ")
            with (
                pypto.options(vec_tile_shapes=refused["tile"]),
                pytest.raises(ValueError, match=r"release 0\.2\.0"),
            ):
                eval(body, {"pypto": pypto}, arrays)
