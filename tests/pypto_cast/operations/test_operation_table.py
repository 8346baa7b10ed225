"""The one row of an operation: what is entered for it, and what follows of it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import pypto_cast as pypto
from docs.generators.operation_stubs import STUBS
from pypto_cast import experimental, operations
from pypto_cast.operations.operation_rows import (
    NO_METHOD_HAS,
    ROWS,
    OperationRow,
    everywhere,
)
from pypto_cast.options.context import Scope, current
from pypto_cast.options.releases import RELEASES
from simulator.arithmetic import OPERATIONS
from tiling.chips import DEFAULT_CHIP, Standing

MADE_UP = dataclasses.replace(DEFAULT_CHIP, name="made-up", isa="9")
OF_NO_TENSORS = {"get_operation_options", "set_operation_options"}
METHODS = [name for name, row in ROWS.items() if row.is_method]


@pytest.fixture
def made_up_chip() -> Iterator[None]:
    with Scope(dataclasses.replace(current(), chip=MADE_UP, vec_tile_shapes=(8, 32))):
        yield


def test_a_row_is_an_operation_and_an_operation_has_a_row() -> None:
    assert set(operations.__all__) == ROWS.keys() & set(pypto.__all__)
    assert ROWS.keys() - set(pypto.__all__) == set(experimental.__all__) - OF_NO_TENSORS
    for name in operations.__all__:
        assert inspect.unwrap(getattr(pypto, name)) is inspect.unwrap(ROWS[name].function)


def test_a_primitive_has_bits_and_a_composed_operation_primitives() -> None:
    for name, row in ROWS.items():
        assert set(row.parts) <= OPERATIONS.keys(), name
        told = [bool(row.parts), row.name in OPERATIONS, bool(row.instruction or row.remark)]
        assert any(told) or row.like or name == "transposed_batchmatmul", name


def test_how_much_is_known_follows_from_the_parts() -> None:
    for name in ("abs", "transpose", "gather"):
        assert ROWS[name].standing is Standing.DOCUMENTED
    for name in ("exp", "sigmoid", "cumsum", "quantize"):
        assert ROWS[name].standing is Standing.CHOSEN


@pytest.mark.usefixtures("made_up_chip")
def test_a_second_family_is_entries_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = pypto.from_numpy(np.array([[-3, 4] * 16], np.int16))
    floats = pypto.from_numpy(np.ones((1, 32), np.float32))
    places = pypto.from_numpy(np.zeros((1, 32), np.int32))
    for attempt in (lambda: pypto.abs(codes), lambda: pypto.full([1, 32], 1.0, pypto.DT_FP32)):
        with pytest.raises(TypeError, match="has no dtypes on made-up, of family 9; it has on A2"):
            attempt()
    more = {"abs": (pypto.DT_INT16,), "full": (pypto.DT_FP32,), "gather": (pypto.DT_FP32,)}
    for name, dtypes in more.items():
        row = ROWS[name]
        changed = {"dtypes": {**row.dtypes, "9": dtypes}}
        if row.index_dtypes:
            changed["index_dtypes"] = {**row.index_dtypes, "9": (pypto.DT_INT64,)}
        monkeypatch.setitem(ROWS, name, dataclasses.replace(row, **changed))
    assert pypto.abs(codes).numpy().tolist() == [[3, 4] * 16]
    with pytest.raises(TypeError, match="abs takes DT_INT16, not DT_FP32; cast it first"):
        pypto.abs(floats)
    assert pypto.full([1, 32], 1.0, pypto.DT_FP32).shape == [1, 32]
    with pytest.raises(TypeError, match="full makes DT_FP32, not DT_FP16"):
        pypto.full([1, 32], 1.0, pypto.DT_FP16)
    with pytest.raises(TypeError, match="gather takes DT_INT64, not DT_INT32"):
        pypto.gather(floats, 1, places)


def test_other_families_are_as_before() -> None:
    with pypto.options(vec_tile_shapes=(8, 32)):
        for chip in ("Ascend910B1", "Ascend910_9391"):
            with (
                pypto.options(chip=chip),
                pytest.raises(TypeError, match="abs takes DT_FP32, DT_FP16, DT_BF16, not DT_INT16"),
            ):
                pypto.abs(pypto.from_numpy(np.ones((1, 32), np.int16)))


@pytest.mark.parametrize("fact", ["run_in_fp32", "cast_to_fp32", "takes", "refuses", "least_dims"])
@pytest.mark.parametrize("release", RELEASES)
def test_releases_have_the_facts_of_the_rows(release: str, fact: str) -> None:
    given = {name: getattr(row, fact) for name, row in ROWS.items() if name == row.name}
    told = {name: by[release] for name, by in given.items() if release in by}
    assert getattr(RELEASES[release], fact) == told
    lacking = {name for name, row in ROWS.items() if release in row.lacked_by}
    assert RELEASES[release].lacks == lacking


def test_a_row_enters_what_it_says() -> None:
    def made_up() -> None: ...

    try:
        row = OperationRow(
            dtypes=everywhere(pypto.DT_FP32),
            takes={"0.2.0": (pypto.DT_FP16,)},
            least_dims={"0.2.0": 2},
            lacked_by=("head",),
        )
        assert row(made_up) is made_up
        old, head = RELEASES["0.2.0"], RELEASES["head"]
        assert ROWS["made_up"] == dataclasses.replace(row, name="made_up", function=made_up)
        assert (old.takes["made_up"], old.least_dims["made_up"]) == ((pypto.DT_FP16,), 2)
        assert "made_up" in head.lacks
        assert not {"made_up"} & {*old.lacks, *head.takes, *head.least_dims, *old.refuses}
    finally:
        del ROWS["made_up"], old.takes["made_up"], old.least_dims["made_up"]
        head.lacks.remove("made_up")


# --- Methods -------------------------------------------------------------------------------------


def test_the_stubs_are_current() -> None:
    for path, text in STUBS.items():
        assert path.read_text(encoding="utf-8") == text()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_the_function(name: str) -> None:
    method, function = getattr(pypto.Tensor, name), getattr(pypto, name)
    wanted = [p for p in inspect.signature(function).parameters if p not in NO_METHOD_HAS]
    assert list(inspect.signature(method).parameters) == wanted
    assert inspect.unwrap(method) is inspect.unwrap(function)
    assert inspect.getdoc(method) == inspect.getdoc(function)
    assert name in dir(pypto.tensor([8]))


def test_methods_lack_arguments_that_functions_have() -> None:
    x = pypto.from_numpy(np.array([1.0, 4.0], np.float32))
    with pytest.raises(TypeError, match="topk takes as a method of a tensor: k, dim, largest"):
        x.topk(1, algo=None)
