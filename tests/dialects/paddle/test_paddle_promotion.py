"""Paddle's promotion against the document's own tables, lists and samples, written out here."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from pypto_cast.dialects import paddle

# The document's tables, as printed: bf16 f16 f32 f64 bool u8 i8 i16 i32 i64 c64 c128.
TENSOR_TENSOR = """
bf16 bf16 f32 f32 f64 - - - - - - c64 c128
f16 f32 f16 f32 f64 - - - - - - c64 c128
f32 f32 f32 f32 f64 - - - - - - c64 c128
f64 f64 f64 f64 f64 - - - - - - c128 c128
bool - - - - - - - - - - c64 c128
u8 - - - - - - - - - - c64 c128
i8 - - - - - - - - - - c64 c128
i16 - - - - - - - - - - c64 c128
i32 - - - - - - - - - - c64 c128
i64 - - - - - - - - - - c64 c128
c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128
c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
"""
TENSOR_SCALAR = """
bool bool i64 f32 c64
u8 u8 u8 f32 c64
i8 i8 i8 f32 c64
i16 i16 i16 f32 c64
i32 i32 i32 f32 c64
i64 i64 i64 f32 c64
bf16 bf16 bf16 bf16 c64
f16 f16 f16 f16 c64
f32 f32 f32 f32 c64
f64 f64 f64 f64 c128
c64 c64 c64 c64 c64
c128 c128 c128 c128 c128
"""
NAMES = {
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bool": "bool",
    "u8": "uint8",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "c64": "complex64",
    "c128": "complex128",
    "-": None,
}
INTEGRAL = ("bool", "uint8", "int8", "int16", "int32", "int64")
SCALARS = {"bool": True, "int": 1, "float": 1.0, "complex": 1j}
REFUSED = (
    "(InvalidType) Type promotion only support calculations between floating-point numbers and "
    "between complex and real numbers. But got different data type x: {}, y: {}."
)


def cells(text: str, columns: list[str]) -> dict[tuple[str, str], str | None]:
    rows = [line.split() for line in text.strip().splitlines()]
    return {
        (str(NAMES[head]), column): NAMES[cell]
        for head, *row in rows
        for column, cell in zip(columns, row, strict=True)
    }


DTYPES = [name for name in NAMES.values() if name is not None]
PRINTED = cells(TENSOR_TENSOR, DTYPES)
MEASURED = (
    PRINTED
    | {("complex64", "float64"): "complex128", ("complex64", "int64"): "complex64"}
    | {(dtype, dtype): dtype for dtype in INTEGRAL}
)
WITH_SCALAR = cells(TENSOR_SCALAR, list(SCALARS))


def answer(op: str, x: object, y: object, rules: str = "3.3", *, of: str = "promote") -> str:
    """The dtype, or the text of the refusal."""
    ask = paddle.promote_dtype if of == "promote" else paddle.result_dtype
    try:
        return ask(op, x, y, rules=rules)
    except TypeError as error:
        return str(error)


# --- The tables -------------------------------------------------------------------------------


def test_dtypes_are_the_documents() -> None:
    assert list(paddle.DTYPES) == DTYPES


@pytest.mark.parametrize(("rules", "wanted"), [("doc", PRINTED), ("3.3", MEASURED)])
def test_tensor_tensor_table(rules: str, wanted: dict[tuple[str, str], str | None]) -> None:
    assert len(wanted) == 144
    assert dict(paddle.tensor_tensor_table(rules)) == wanted


def test_the_default_table_differs_from_the_printed_one_in_eight_cells() -> None:
    doc, default = paddle.tensor_tensor_table("doc"), paddle.tensor_tensor_table()
    assert sum(doc[pair] != default[pair] for pair in doc) == 8
    assert all(default[x, y] == default[y, x] for x, y in default)


def test_tensor_scalar_table() -> None:
    assert len(WITH_SCALAR) == 48
    assert dict(paddle.tensor_scalar_table()) == WITH_SCALAR


def test_tables_cannot_be_changed() -> None:
    for table in (paddle.tensor_tensor_table(), paddle.tensor_scalar_table()):
        assert isinstance(table, MappingProxyType)


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "pow", "remainder", "floor_divide"])
@pytest.mark.parametrize(("rules", "table"), [("doc", PRINTED), ("3.3", MEASURED)])
def test_common_rule_of_tensors(
    op: str, rules: str, table: dict[tuple[str, str], str | None]
) -> None:
    for (x, y), wanted in table.items():
        assert answer(op, x, y, rules) == (wanted or REFUSED.format(x, y))


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "pow", "remainder", "floor_divide"])
@pytest.mark.parametrize("rules", ["doc", "3.3"])
def test_common_rule_of_scalars(op: str, rules: str) -> None:
    for (dtype, kind), wanted in WITH_SCALAR.items():
        assert answer(op, dtype, SCALARS[kind], rules) == wanted
        assert answer(op, SCALARS[kind], dtype, rules) == wanted


def test_divide_rule() -> None:
    for (dtype, kind), common in WITH_SCALAR.items():
        wanted = "float32" if common in INTEGRAL else common
        assert answer("divide", dtype, SCALARS[kind], "doc") == wanted
        assert answer("divide", SCALARS[kind], dtype, "doc") == wanted
        measured = "bool" if dtype == kind == "bool" else wanted
        assert answer("divide", dtype, SCALARS[kind]) == measured
        assert answer("divide", SCALARS[kind], dtype) == measured
    for dtype in INTEGRAL:
        assert answer("divide", dtype, dtype) == ("bool" if dtype == "bool" else "float32")


LOGIC = ["equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]


@pytest.mark.parametrize("op", LOGIC + LOGICAL)
def test_logic_rule_of_tensors(op: str) -> None:
    for (x, y), common in MEASURED.items():
        wanted = "bool" if common else REFUSED.format(x, y)
        assert answer(op, x, y, of="result") == wanted
        if common:
            assert answer(op, x, y) == common
    for (x, y), common in PRINTED.items():
        got = answer(op, x, y, "doc", of="result")
        if "complex" in x + y:
            assert got.startswith("complex types cannot be used for logical operations")
        else:
            assert got == ("bool" if common else REFUSED.format(x, y))


@pytest.mark.parametrize("op", LOGIC)
def test_comparison_with_a_scalar_is_bool(op: str) -> None:
    for dtype, kind in WITH_SCALAR:
        assert answer(op, dtype, SCALARS[kind], of="result") == "bool"
        assert answer(op, SCALARS[kind], dtype, of="result") == "bool"


# --- The list of APIs -------------------------------------------------------------------------

LIST = """
1 add Common Common
2 subtract Common Common
3 multiply Common Common
4 divide Common Divide
5 floor_divide Common Common
6 pow Common Common
7 equal Logic Logic
8 not_equal Logic Logic
9 less_than Logic Logic
10 less_equal Logic Logic
11 greater_than Logic Logic
12 greater_equal Logic Logic
13 logical_and Logic Logic
14 logical_or Logic Logic
15 logical_xor Logic Logic
16 bitwise_and - Common
17 bitwise_or - Common
18 bitwise_xor - Common
19 where Common Common
20 fmax Common -
21 fmin Common -
22 logaddexp Common -
23 maximum Common -
24 minimum Common -
25 remainder Common Common
26 huber_loss Common -
27 nextafter Common -
28 atan2 Common -
29 poisson_nll_loss Common -
30 l1_loss Common -
31 huber_loss Common -
32 mse_loss Common -
"""


def test_the_list_is_the_documents() -> None:
    def word(rule: paddle.PromotionRule | None) -> str:
        return "-" if rule is None else rule.value

    rows = {
        number: f"{number} {api.name} {word(api.tensor_tensor)} {word(api.tensor_scalar)}"
        for api in paddle.APIS
        for number in api.numbers
    }
    assert [rows[number] for number in range(1, 33)] == LIST.strip().splitlines()
    assert len(rows) == 32


@pytest.mark.parametrize("line", LIST.strip().splitlines(), ids=lambda line: line.split()[1])
def test_every_row_follows_its_rules_in_the_document(line: str) -> None:
    _, op, of_tensors, of_scalars = line.split()
    if of_tensors == "-":
        assert answer(op, "int32", "int32", "doc") == "int32"
        with pytest.raises(ValueError, match="data we are trying to retrieve"):
            paddle.promote_dtype(op, "int32", "int64", rules="doc")
    else:
        assert answer(op, "float16", "bfloat16", "doc") == "float32"
        assert answer(op, "float16", "int8", "doc") == REFUSED.format("float16", "int8")
    if of_scalars == "-":
        with pytest.raises(ValueError, match="must be Tensor, but got float"):
            paddle.promote_dtype(op, "float16", 1.0, rules="doc")
    else:
        assert answer(op, "float16", 1.0, "doc") == "float16"
        wanted = {"Common": "uint8", "Divide": "float32", "Logic": "bool"}[of_scalars]
        assert answer(op, "uint8", 1, "doc", of="result") == wanted


@pytest.mark.parametrize(
    ("op", "dtype", "wanted"),
    [
        ("logaddexp", "int32", "float32"),
        ("logaddexp", "int64", "float32"),
        ("atan2", "int32", "float64"),
        ("atan2", "float16", "float16"),
        ("l1_loss", "complex64", "float32"),
        ("l1_loss", "complex128", "float64"),
        ("mse_loss", "complex64", "complex64"),
        ("divide", "int8", "float32"),
    ],
)
def test_results_of_another_dtype(op: str, dtype: str, wanted: str) -> None:
    assert paddle.result_dtype(op, dtype, dtype) == wanted


def test_poisson_nll_loss_evaluates_exp_of_its_input_first() -> None:
    assert answer("poisson_nll_loss", "int32", "int32") == REFUSED.format("float32", "int32")
    assert answer("poisson_nll_loss", "float16", "bool") == REFUSED.format("bool", "float16")
    assert answer("poisson_nll_loss", "float16", "float32") == "float32"


# --- The document's samples -------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["doc", "3.3"])
@pytest.mark.parametrize(
    ("op", "x", "y", "wanted"),
    [
        ("+", "float16", "float32", "float32"),
        ("+", "float32", "float16", "float32"),
        ("+", "bfloat16", "float64", "float64"),
        ("+", "complex128", "complex64", "complex128"),
        ("+", "float16", 1.0, "float16"),
        ("paddle.add", "float16", "float32", "float32"),
        ("/", "int32", 1, "float32"),
        ("==", "float32", "float16", "bool"),
        # The sample's comment says float16, the table and Paddle float32.
        ("+", 1.0, "int64", "float32"),
    ],
)
def test_samples(rules: str, op: str, x: object, y: object, wanted: str) -> None:
    shaped = [((o, (3, 3)) if isinstance(o, str) else o) for o in (x, y)]
    assert paddle.result_dtype(op, *shaped, rules=rules) == wanted


def test_the_sample_of_complex64_and_float64_contradicts_the_printed_cell() -> None:
    assert paddle.promote_dtype("+", "complex64", "float64") == "complex128"
    assert paddle.promote_dtype("+", "complex64", "float64", rules="doc") == "complex64"


@pytest.mark.parametrize("rules", ["doc", "3.3"])
def test_the_sample_of_the_unsupported_case(rules: str) -> None:
    with pytest.raises(TypeError) as raised:
        paddle.promote_dtype("+", ("int64", (3, 3)), ("float32", (3, 3)), rules=rules)
    assert str(raised.value) == REFUSED.format("int64", "float32")


def test_shapes_play_no_part_in_the_document() -> None:
    for (x, y), wanted in PRINTED.items():
        assert answer("add", (x, (2,)), (y, ()), "doc") == (wanted or REFUSED.format(x, y))
