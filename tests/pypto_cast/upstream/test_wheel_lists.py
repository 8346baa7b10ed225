"""The tables of release 0.2.0 against the dtypes that upstream's wheel compiles operations to."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.environment.sources import ROOT
from support.environment.upstream_wheel import run
from support.numbers.codes import SEED

import pypto_cast as pypto
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.options.releases import RELEASES

DRIVER = ROOT / "tests" / "support" / "environment" / "upstream_compiles.py"
AT_ONCE = 16
"""Kernels that the wheel compiles behind one import."""
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
    found = []
    for start in range(0, len(cases), AT_ONCE):
        part = folder / str(start)
        part.mkdir(parents=True)
        given, results = part / "cases.json", part / "results.json"
        given.write_text(json.dumps(cases[start : start + AT_ONCE]))
        done = run(str(python), str(DRIVER), str(given), str(results), cwd=part)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        found += json.loads(results.read_text())
    return {each["name"]: each for each in found}


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
    refused = [{**each, "name": name} for name, (each, _) in REFUSED.items()]
    found = compiled(python, tmp_path / "others", [var, *refused])
    opcodes = [each for each, _ in found["var"]["operations"]]
    assert (opcodes.count("MULS"), opcodes.count("DIVS")) == (2, 0)
    for name, (_, text) in REFUSED.items():
        assert text in found[name]["error"] + found[name]["log"], (name, found[name]["error"])


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


EXTENTS = (2, 3, 8, 64)
DRAWN = 12
"""Cases; all if PYPTO_CAST_LONG_TESTS is set."""
ARRAYS = {
    **{"FP32": np.float32, "BOOL": np.bool_},
    **{"INT16": np.int16, "INT32": np.int32, "INT64": np.int64},
}
LINES = {
    **{name: f"pypto.{name}(a, -1, True)" for name in ("amax", "amin", "sum")},
    **{name: f"pypto.{name}({{shape}}, dtype=pypto.DT_FP32)" for name in ("zeros", "ones")},
    **{name: f"pypto.{name}(a, -1)" for name in ("softmax", "cumsum")},
    "clip": "pypto.clip(a, -1.0, 1.0)",
    "where": "pypto.where(c, a, b)",
    "reshape": "pypto.reshape(a, {turned})",
    "transpose": "pypto.transpose(a, {before}, {last})",
    "concat": "pypto.concat([a, b], -1)",
    "expand_clone": "pypto.expand_clone(r, {shape})",
    "full": "pypto.full({shape}, 0.5, pypto.DT_FP32)",
    "var": "pypto.var(a, -1, 1, True)",
    "gather": "pypto.gather(a, {last}, h)",
    "index_select": "pypto.index_select(a, 0, row)",
    "scatter": "pypto.scatter(a, 0, h, 9.0)",
    "argsort": "pypto.argsort(a, -1, True)",
}
"""The operation on operands of some dimensions; by default of one tensor or two alone."""
OTHERWISE = (
    *("arange", "unsqueeze", "pad", "one_hot", "topk", "sort32"),
    *("matmul", "transposed_batchmatmul", "gather_in_ub", "gather_in_l1"),
    *("scatter_", "scatter_update", "index_put_"),
)
"""Operations whose results or operands have dimensions of their own."""


def ranked(name: str, dims: int) -> tuple[Any, bool]:
    """The case of an operation on operands of so many dimensions, and if it is refused here."""
    shape = list(EXTENTS[-dims:])
    operands = {
        **{"a": ("FP32", shape), "b": ("FP32", shape), "c": ("BOOL", shape)},
        **{"i": ("INT16", shape), "j": ("INT16", shape), "h": ("INT32", shape)},
        **{"r": ("FP32", [*shape[:-1], 1]), "row": ("INT32", [2])},
    }
    given = inspect.signature(getattr(pypto, name)).parameters.values()
    letters = "ij" if name.startswith("bitwise") else "ab"
    count = sum(each.default is each.empty for each in given)
    line = LINES.get(name, f"pypto.{name}({', '.join(letters[:count])})").format(
        shape=shape, turned=shape[::-1], before=max(dims - 2, 0), last=dims - 1
    )
    used = {each: operands[each] for each in operands if re.search(rf"\b{each}\b", line)}
    arrays = {
        each: pypto.from_numpy(np.zeros(extents, ARRAYS[dtype]))
        for each, (dtype, extents) in used.items()
    }
    out: tuple[str, list[int]] = "FP32", shape
    is_refused = False
    for release in ("head", "0.2.0"):
        try:
            with pypto.options(release=release, vec_tile_shapes=shape):
                result = eval(line, {"pypto": pypto}, arrays)
            out = result.dtype.name.removeprefix("DT_"), list(map(int, result.shape))
        except (TypeError, ValueError):
            is_refused = release == "0.2.0"
    tensors = [[each, *used[each]] for each in used] + [["o", *out]]
    body = f"o[:] = {line}"
    return {"name": f"{name} {dims}", "tensors": tensors, "tile": shape, "body": body}, is_refused


@pytest.mark.upstream
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_wheel_takes_the_dimensions_that_the_rows_say(
    python_with_wheel: Path, tmp_path: Path
) -> None:
    print(f"seed {SEED}")
    names = sorted({*ROWS} - {*OTHERWISE, *RELEASES["0.2.0"].lacks})
    assert {*RELEASES["0.2.0"].least_dims} <= {*names}
    every = [(name, dims) for name in names for dims in range(1, 5)]
    if not os.environ.get("PYPTO_CAST_LONG_TESTS"):
        every = [every[place] for place in np.random.default_rng(SEED).permutation(len(every))]
        every = every[:DRAWN] + [(name, 1) for name in RELEASES["0.2.0"].least_dims]
    cases = [ranked(name, dims) for name, dims in dict.fromkeys(every)]
    found = compiled(python_with_wheel, tmp_path, [case for case, _ in cases])
    no_model = "No pipe type"  # of the cost model, behind all passes
    wrong = {
        case["name"]: error
        for case, is_refused in cases
        if is_refused == (no_model in (error := found[case["name"]]["error"] or no_model))
    }
    assert wrong == {}
