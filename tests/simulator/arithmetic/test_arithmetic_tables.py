"""Special values of the operations against the vendor's boundary tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.numbers.boundary_tables import (
    BINARY_TABLES,
    COMPARISON_TABLES,
    CONTRADICTED,
    FLOAT_TO_FLOAT,
    INTEGER_TABLES,
    LEVEL_TABLES,
    NAN_BELOW_ZERO,
    OPERANDS,
    REDUCTION_TABLES,
    UNARY_TABLES,
)

from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Enclosure
from simulator.arithmetic.reduction import reduce
from simulator.arithmetic.table import OPERATIONS
from simulator.numbers.formats import FP16, FP32, INT16, INT32

FLOATS = {"FP32": FP32, "FP16": FP16}
NAN = {"FP32": 0x7FFFFFFF, "FP16": 0x7FFF}
UNSIGNED = {"FP32": np.uint32, "FP16": np.uint16}


def value(word: str, name: str):
    """The number that a word of the tables means in a format."""
    dtype = FLOATS[name].dtype
    if word == "nan":
        return np.array(NAN[name], UNSIGNED[name]).view(dtype)[()]
    limits = np.finfo(dtype)
    return {"MIN": limits.min, "MAX": limits.max}.get(word) or dtype.type(word)


def code(word: str, name: str) -> int:
    return int(np.asarray(value(word, name)).view(UNSIGNED[name]))


def codes(values: np.ndarray, name: str) -> list[int]:
    return values.view(UNSIGNED[name]).tolist()


def saturated(word: str) -> str:
    return {"inf": "MAX", "-inf": "MIN", "nan": "0"}.get(word, word)


def run(operation: str, name: str, *columns: list[str], inf_nan_mode: bool = True) -> np.ndarray:
    operands = [
        Enclosure(values=np.array([value(w, name) for w in column], FLOATS[name].dtype))
        for column in columns
    ]
    row = OPERATIONS[operation]
    return evaluate(row, operands, FLOATS[name], inf_nan_mode=inf_nan_mode).values


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("number", UNARY_TABLES)
def test_unary_special_values(number: int, name: str) -> None:
    operation, table = UNARY_TABLES[number]
    assert number in OPERATIONS[operation].tables
    assert [operand for (operand,) in table] == list(OPERANDS)
    for inf_nan_mode in (True, False):
        found = run(operation, name, list(OPERANDS), inf_nan_mode=inf_nan_mode)
        for (operand,), result, words in zip(table, found, table.values(), strict=True):
            word = words.split("|")[-1 if name == "FP32" else 0]
            if not inf_nan_mode and name == "FP16":
                word = saturated(word)
            if "|" in words:
                digits = len(word.split("e")[0].replace(".", "").lstrip("-0"))
                assert abs(float(result) / float(word) - 1) < 10.0 ** (1 - digits), operand
            else:
                assert result.view(UNSIGNED[name]) == code(word, name), (operand, word)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("numbers", BINARY_TABLES)
def test_binary_special_values(numbers: tuple[int, ...], name: str) -> None:
    operation, table = BINARY_TABLES[numbers]
    assert OPERATIONS[operation].tables == numbers
    pairs = dict(table)
    if len(pairs) == 28:
        pairs |= {(b, a): result for (a, b), result in table.items()}
    assert len(pairs) == 49
    first, second = (list(side) for side in zip(*pairs, strict=True))
    for inf_nan_mode in (True, False):
        found = codes(run(operation, name, first, second, inf_nan_mode=inf_nan_mode), name)
        saturates = name == "FP16" and not inf_nan_mode
        expected = [code(saturated(word) if saturates else word, name) for word in pairs.values()]
        assert found == expected


@pytest.mark.parametrize("name", FLOATS)
def test_comparisons(name: str) -> None:
    ((numbers, table),) = COMPARISON_TABLES.items()
    for operation, pairs in table.items():
        assert OPERATIONS[operation].tables == numbers
        first, second = (list(side) for side in zip(*pairs, strict=True))
        assert len(first) == 49
        found = run(operation, name, first, second)
        assert found.tolist() == [word == "1" for word in pairs.values()], operation


@pytest.mark.parametrize("fmt", [INT16, INT32], ids=str)
@pytest.mark.parametrize("operation", INTEGER_TABLES)
def test_integers_at_their_limits(operation: str, fmt) -> None:
    limits = {"MIN": fmt.min, "MAX": fmt.max}
    for pair, words in INTEGER_TABLES[operation].items():
        operands = [Enclosure(values=np.array([limits[w]], fmt.dtype)) for w in pair]
        for inf_nan_mode, word in zip((True, False), words, strict=True):
            found = evaluate(OPERATIONS[operation], operands, fmt, inf_nan_mode=inf_nan_mode)
            assert int(found.values.item()) == (limits[word] if word in limits else int(word))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("number", REDUCTION_TABLES)
def test_reductions(number: int, name: str) -> None:
    operation, held_bytes, table = REDUCTION_TABLES[number]
    assert number in OPERATIONS[operation].tables
    dtype = FLOATS[name].dtype
    count = held_bytes // dtype.itemsize
    for pattern, (result, half) in table.items():
        words = pattern.split()
        if words[0] == "ones":
            words = ["1"] * (count - 1) + words[1:]
        elements = [value(w, name) for w in itertools.islice(itertools.cycle(words), count)]
        x = Enclosure(values=np.array([elements], dtype))
        for inf_nan_mode in (True, False):
            found = reduce(
                OPERATIONS[operation], x, FLOATS[name], axis=-1, inf_nan_mode=inf_nan_mode
            )
            saturates = name == "FP16" and not inf_nan_mode
            expected = code(half if saturates else result, name)
            agrees = codes(found.values, name) == [[expected]]
            assert agrees == (not (saturates and (number, pattern) in CONTRADICTED)), pattern


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("number", LEVEL_TABLES)
def test_reductions_of_several_repeats(number: int, name: str) -> None:
    """The vendor reduces repeat by repeat; a row of one instruction sequence reduces them all."""
    operation, table = LEVEL_TABLES[number]
    row, fmt = OPERATIONS[operation], FLOATS[name]
    assert number in row.tables
    repeat = 256 // fmt.dtype.itemsize
    for first, (result, half) in table.items():
        words = [*first.split(), *["1"] * 256][:256]
        x = Enclosure(values=np.array([value(w, name) for w in words], fmt.dtype))
        for inf_nan_mode in (True, False):
            repeats = reduce(
                row, x.reshape((-1, repeat)), fmt, axis=1, inf_nan_mode=inf_nan_mode
            ).reshape((-1,))
            found = reduce(row, repeats, fmt, axis=0, inf_nan_mode=inf_nan_mode).values
            saturates = name == "FP16" and not inf_nan_mode
            assert codes(found, name) == [code(half if saturates else result, name)], first
            if not saturates:
                whole = reduce(row, x, fmt, axis=0, inf_nan_mode=inf_nan_mode)
                assert codes(whole.values, name) == codes(found, name)


def test_negative_numbers_have_no_logarithm_and_no_root() -> None:
    number, operations = NAN_BELOW_ZERO
    found = {name for name, row in OPERATIONS.items() if number in row.tables}
    assert found == set(operations)
    for operation, name in itertools.product(operations, FLOATS):
        words = ["MIN", "-inf", "-1", "-6e-8" if name == "FP16" else "-1e-45"]
        assert codes(run(operation, name, words), name) == [NAN[name]] * len(words)


def test_casts_from_float_to_float_give_zero_for_every_zero() -> None:
    number, operations, results = FLOAT_TO_FLOAT
    for operation in operations:
        assert OPERATIONS[operation].tables == (number,)
        found = run(operation, "FP32", list(OPERANDS))
        assert codes(found, "FP32") == [code(word, "FP32") for word in results]


def test_a_row_names_the_page_of_its_tables() -> None:
    page = "asc-devkit, boundary values of the memory vector interfaces"
    for row in OPERATIONS.values():
        assert (page in row.source) == bool(row.tables), row.name


def test_every_table_number_is_typed_in() -> None:
    typed = {
        NAN_BELOW_ZERO[0],
        FLOAT_TO_FLOAT[0],
        *UNARY_TABLES,
        *itertools.chain(*BINARY_TABLES, *COMPARISON_TABLES),
        *REDUCTION_TABLES,
        *LEVEL_TABLES,
    }
    assert typed == {*range(1, 19), *range(30, 42)}
    named = {number for row in OPERATIONS.values() for number in row.tables}
    assert named == typed
