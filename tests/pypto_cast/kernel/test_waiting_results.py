"""Results of a kernel wait and are computed together, right into its outputs where that is safe."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.arithmetic.native_executor import at, same_codes
from support.numbers.codes import SEED

import pypto_cast as pypto
from simulator.arithmetic.native import node_program, operation_nodes

_D = pypto.STATIC
_F = pypto.Tensor([_D, _D], pypto.DT_FP32)
_B = pypto.Tensor([_D, _D], pypto.DT_BF16)
_SHAPE = (64, 96)


def numbers(count: int = 1) -> list[Any]:
    rng = np.random.default_rng(SEED)
    return [rng.standard_normal(_SHAPE).astype(np.float32) for _ in range(count)]


@pypto.jit
def twice(x: _F, y: _F, out: _F) -> None:
    y[:] = x
    x[:] = pypto.exp(x)
    out[:] = pypto.mul(pypto.exp(x), y)


@pypto.jit
def several(x: _F, gate: _B, first: _F, second: _B, third: _F) -> None:
    wide = pypto.cast(gate, pypto.DT_FP32)
    shared = pypto.add(pypto.exp(x), wide)
    first[:] = shared
    total = pypto.sum(shared, -1, True)
    second[:] = pypto.cast(pypto.div(shared, total), pypto.DT_BF16)
    third[:] = pypto.sub(shared, total)


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("threads", [1, 2])
def test_both_engines_give_the_bits_of_the_steps(engine: str, threads: int) -> None:
    at("baseline")
    (x,) = numbers()
    gate = numbers()[0].astype(ml_dtypes.bfloat16)
    wide = gate.astype(np.float32)
    with pypto.options(engine="numpy"):
        powers = pypto.exp(pypto.from_numpy(x.copy()))
        shared = pypto.add(powers, pypto.from_numpy(wide))
        total = pypto.sum(shared, -1, True)
        narrow = pypto.cast(pypto.div(shared, total), pypto.DT_BF16)
        apart = pypto.sub(shared, total)
    first, third = np.zeros_like(x), np.zeros_like(x)
    second = np.zeros_like(gate)
    with pypto.options(engine=engine, threads=threads):
        several(x, gate, first, second, third)
    for found, expected in ((first, shared), (second, narrow), (third, apart)):
        same_codes(found, expected.numpy(), engine)


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_an_output_that_others_read_is_written_last(engine: str) -> None:
    at("baseline")
    (x,) = numbers()
    before, y, out = x.copy(), np.zeros_like(x), np.zeros_like(x)
    with pypto.options(engine=engine):
        twice(x, y, out)
    same_codes(y, before, "copied")
    with pypto.options(engine="numpy"):
        powers = pypto.exp(pypto.from_numpy(before))
        expected = pypto.mul(pypto.exp(powers), pypto.from_numpy(before))
    same_codes(x, powers.numpy(), "in place")
    same_codes(out, expected.numpy(), "of the new values")


def test_results_go_right_into_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    at("baseline")
    given: list[int] = []
    compute_all = operation_nodes.compute_all

    def counted(nodes: Any, memory: Any) -> None:
        given.append(len(memory))
        compute_all(nodes, memory)

    monkeypatch.setattr(operation_nodes, "compute_all", counted)
    x, y, out = numbers(3)

    @pypto.jit
    def add(x: _F, y: _F, out: _F) -> None:
        out[:] = pypto.add(x, y)

    add(x, y, out)
    wide = np.zeros((_SHAPE[0], 2 * _SHAPE[1]), np.float32)
    add(x, y, wide[:, ::2])
    same_codes(np.ascontiguousarray(wide[:, ::2]), out, "strided")

    @pypto.jit
    def square(x: _F) -> None:
        x[:] = pypto.mul(x, x)

    square(x)
    assert given == [1, 0, 0]


def test_a_result_that_somebody_keeps_stays_as_it_is() -> None:
    at("baseline")
    x, out = numbers(2)
    kept: list[pypto.Tensor] = []

    @pypto.jit
    def keep(x: _F, out: _F) -> None:
        found = pypto.exp(x)
        kept.append(found)
        kept.append(pypto.neg(found))
        out[:] = found

    keep(x, out)
    expected = out.copy()
    x[:] = 7
    out[:] = 7
    same_codes(kept[0].numpy(), expected, "the result of the output")
    same_codes(kept[1].numpy(), -expected, "another one")


def test_an_interrupt_leaves_outputs_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long work is done before anything is written, and may be interrupted."""
    at("baseline")
    monkeypatch.setattr(operation_nodes, "_SHORT_WORK", 0)
    x, y, out = numbers(3)
    before = out.copy()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(node_program.Program, "run", interrupted)

    @pypto.jit
    def add(x: _F, y: _F, out: _F) -> None:
        out[:] = pypto.add(x, y)

    with pytest.raises(KeyboardInterrupt):
        add(x, y, out)
    same_codes(out, before, "untouched")


def test_a_body_that_raises_writes_nothing() -> None:
    at("baseline")
    x, out = numbers(2)
    before = out.copy()

    @pypto.jit
    def fails(x: _F, out: _F) -> None:
        out[:] = pypto.exp(x)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fails(x, out)
    same_codes(out, before, "untouched")


def test_long_chains_and_nested_kernels() -> None:
    at("baseline")
    x, out, other = numbers(3)

    @pypto.jit
    def inner(x: _F, out: _F) -> None:
        out[:] = pypto.mul(pypto.add(x, 1.0), 0.5)

    @pypto.jit
    def outer(x: _F, out: _F) -> None:
        found = x
        for _ in range(100):
            between = pypto.tensor(list(_SHAPE), pypto.DT_FP32)
            inner(found, between)
            found = pypto.sub(between, 0.25)
        out[:] = found

    outer(x, out)
    with pypto.options(engine="numpy"):
        outer(x, other)
    same_codes(out, other, "100 rounds")
