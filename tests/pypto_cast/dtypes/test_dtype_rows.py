"""The table of dtypes: complete, as the installed frameworks have it, and the only one."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.dtypes.data_types import ROWS, DataType, TensorType, bytes_of
from pypto_cast.dtypes.names import SPELLINGS
from simulator.machine.vector_types import VECTOR_TYPES
from simulator.numbers.formats import FORMATS
from simulator.numbers.rounding import RoundMode

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("tiling", "simulator", "ascend_kernels", "pypto_cast")

# --- The rows ------------------------------------------------------------------------------------

COLUMNS = {
    "format": FORMATS.values(),
    "pypto": DataType,
    "onnx": TensorType,
}


@pytest.mark.parametrize("column", COLUMNS)
def test_everything_has_one_row(column: str) -> None:
    found = [getattr(row, column) for row in ROWS if getattr(row, column) is not None]
    assert sorted(map(str, found)) == sorted(map(str, COLUMNS[column]))


@pytest.mark.parametrize("column", ["openvino", "paddle", "safetensors", "torch", "dtype"])
def test_no_name_is_in_two_rows(column: str) -> None:
    found = [getattr(row, column) for row in ROWS if getattr(row, column) is not None]
    assert len(set(found)) == len(found)


def test_constants_are_members() -> None:
    for member in (*DataType, *pypto.CastMode):
        assert getattr(pypto, member.name) is member
        assert member.name in pypto.__all__


def test_modes_are_numbered_in_the_order_of_the_simulator() -> None:
    """Upstream's dumps number them so."""
    offered = [mode.round_mode for mode in sorted(pypto.CastMode, key=int)]
    assert offered == [None, *RoundMode][: len(offered)]
    assert [int(mode) for mode in pypto.CastMode] == [*range(len(offered))]


def test_ascendc_has_types_of_rows() -> None:
    formats = {row.format for row in ROWS if row.pypto is not None}
    assert set(VECTOR_TYPES) <= formats
    assert {(t.pyasc, t.format.dtype.name) for t in VECTOR_TYPES.values() if t.pyasc} >= {
        ("float16", "float16"),
        ("bfloat16", "bfloat16"),
    }


def test_torch_has_the_names() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for row in ROWS:
        if row.torch is not None:
            held = getattr(torch, row.torch)
            assert held.itemsize == row.bits // 8 or row.torch == "bool"
    known = {str(value)[6:] for value in vars(torch).values() if isinstance(value, torch.dtype)}
    named = {row.dtype.name for row in ROWS if row.dtype is not None and row.bits >= 8}
    assert named & known == {row.torch for row in ROWS if row.torch is not None} - {"bool"}


def test_safetensors_has_the_names() -> None:
    stored = pytest.importorskip("safetensors.torch", reason="torch is not installed")
    theirs = {name: str(dtype)[6:] for name, dtype in stored._TYPES.items()}
    ours = {row.safetensors: row.torch for row in ROWS if row.safetensors is not None}
    assert {**ours, **theirs} == ours
    assert set(ours) - set(theirs) <= {"F8_E8M0"}  # which its Rust library has


def test_onnx_has_the_numbers_and_numpys_dtypes() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    for row in ROWS:
        if row.onnx is not None and row.dtype is not None:
            assert onnx.TensorProto.DataType.Value(row.onnx.name) == row.onnx
            assert np.dtype(onnx.helper.tensor_dtype_to_np_dtype(int(row.onnx))) == row.dtype


def test_widths_are_upstreams() -> None:
    """Bytes as upstream counts them: below 8 bits 1."""
    for row in ROWS:
        if row.pypto is not None and row.dtype is not None:
            assert bytes_of(row.pypto) == row.dtype.itemsize


# --- No other list -------------------------------------------------------------------------------

MEMBERS = {*DataType.__members__, *TensorType.__members__, *FORMATS}
ENUMS = {"DataType", "TensorType", "f", "formats", "pypto", "data_types"}
TELLING = {
    name
    for row in ROWS
    if row.pypto is not None and row.pypto.name in ("DT_BF16", "DT_FP8E4M3", "DT_FP8E5M2")
    for name in (*row.names, row.torch)
} | {known.cpp for known in VECTOR_TYPES.values() if known.cpp and "bfloat" in known.cpp}
"""Strings that only a list of dtypes has."""
MOST_MEMBERS = 8
"""A longer list of members is no longer the dtypes that one operation accepts."""

TABLES = {
    "pypto_cast/dtypes/data_types.py": "the rows",
    "simulator/machine/vector_types.py": "AscendC's names by format, which two packages below need",
    "simulator/numbers/formats.py": "the rows of the formats",
}
ALLOWED = {
    "simulator/ascendc/__init__.py": (2, "the public names of the module, spelled as pyasc"),
    "pypto_cast/dialects/paddle/apis.py": (3, "dtypes of Paddle's results by operation"),
    "pypto_cast/dialects/paddle/promotion.py": (2, "Paddle's rules of promotion"),
    "pypto_cast/dialects/paddle/cast.py": (4, "names that mean another dtype in Paddle alone"),
    "pypto_cast/dialects/openvino/element_types.py": (1, "types that ConvertPromoteTypes refuses"),
    "pypto_cast/dialects/openvino/fake_convert.py": (2, "the default of an argument"),
    "pypto_cast/routes/cast_routes.py": (2, "the kernel's text of four pairs"),
}
"""Findings in a file that are no list of dtypes: how many, and what they are."""


def telltales(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines that list dtypes or spell one, with what is there."""
    nodes = [node for node in ast.walk(tree) if not isinstance(node, ast.Expr | ast.JoinedStr)]
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in docstrings and node.value in TELLING:
            yield node.lineno, f"spells {node.value!r}"
        for entries in displays(node):
            members = {name for name in map(member, entries) if name}
            spelled = {
                entry.value
                for entry in entries
                if isinstance(entry, ast.Constant)
                and isinstance(entry.value, str)
                and key(entry.value) in SPELLINGS
            }
            if len(members) > MOST_MEMBERS:
                yield node.lineno, f"lists {sorted(members)}"
            if members and spelled:
                yield node.lineno, f"names {sorted(members)} {sorted(spelled)}"
            if len(spelled) > 2:
                yield node.lineno, f"lists {sorted(spelled)}"
        if isinstance(node, ast.Dict):
            numbered = [
                pair
                for pair in zip(node.keys, node.values, strict=True)
                if any(map(member, pair)) and any(map(is_number, pair))
            ]
            if len(numbered) > 1:
                yield node.lineno, f"numbers {len(numbered)} dtypes"


def displays(node: ast.AST) -> Iterator[list[ast.AST]]:
    """Expressions side by side: the entries of a display, the arguments of a call."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield list(node.elts)
    elif isinstance(node, ast.Dict):
        yield [entry for entry in itertools.chain(node.keys, node.values) if entry is not None]
    elif isinstance(node, ast.Call):
        yield [*node.args, *(keyword.value for keyword in node.keywords)]


def member(node: ast.AST | None) -> str | None:
    """The name of a dtype or a format that an expression is."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owned = node.attr in MEMBERS and (node.value.id in ENUMS or node.value.id.startswith("_"))
        return node.attr if owned else None
    return node.id if isinstance(node, ast.Name) and node.id in MEMBERS else None


def is_number(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def key(text: str) -> str:
    return text.lower().replace("_", "")


@pytest.mark.slow
def test_no_other_list_of_dtypes() -> None:
    found: dict[str, list[str]] = {}
    for folder in (*PACKAGES, "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            for line, text in telltales(ast.parse(path.read_text(encoding="utf-8"))):
                found.setdefault(name, []).append(f"{name}:{line} {text}")
    assert all(found.pop(name) for name in TABLES)
    listed = {name: texts for name, texts in found.items() if len(texts) > allowed(name)}
    texts = "\n".join(itertools.chain.from_iterable(listed.values()))
    assert not listed, f"the rows are in pypto_cast/dtypes/data_types.py:\n{texts}"
    assert {name: len(texts) for name, texts in found.items()} == {n: allowed(n) for n in ALLOWED}


def allowed(name: str) -> int:
    return ALLOWED.get(name, (0, ""))[0]


@pytest.mark.parametrize(
    "text",
    [
        'KEPT = ("F32", "F16", "F64")',
        'NAMES = {"float64": "F64", "int8": "I8"}',
        "HELD = {1: f.FP32, 10: f.FP16}",
        'ROWS = (("f16", 16, f.FP16),)',
        '_row("half", Category.FLOAT, f.FP16)',
        'CPP = {f.FP32: "float"}',
        'if dtype == "bfloat16": pass',
        'found = getattr(torch, "float8_e4m3fn")',
        "ALL = [DataType.DT_INT4, DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, DT_FP16,"
        "DataType.DT_INT64, DataType.DT_FP32, DataType.DT_UINT8, DataType.DT_UINT16]",
    ],
)
def test_a_second_list_is_found(text: str) -> None:
    assert list(telltales(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        '"""BF16"""\ndef f(): "bfloat16"',
        "TAKEN = (DataType.DT_FP32, DataType.DT_FP16, DataType.DT_BF16)",
        "RULES = ((f.FP32, f.FP16, MODES, True),)",
        'raise ValueError("DT_BF16 is none")',
    ],
)
def test_what_an_operation_takes_is_no_list(text: str) -> None:
    assert not list(telltales(ast.parse(text)))


def test_the_row_is_found_by_every_name_of_it() -> None:
    for row in ROWS:
        assert {SPELLINGS[key(name)] for name in row.names} <= {row}
