"""Programs drawn at random, on tensors and on devices that are off: every result lies inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.devices.kernel_references import Inputs
from support.devices.other_device import BY_TRUST, Device, Held, from_bf16, is_possible

import pypto_cast as pypto
from pypto_cast.tensors.tensor import Tensor

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")  # odd rows

ROWS = 4
DEVICES = 3
LONGEST = 8

Operation = tuple[int, Callable[..., Tensor], Callable[..., Held]]


def both(count: int, function: Callable[..., Any]) -> Operation:
    """An expression that means the same on both sides."""
    return count, function, function


def of_bf16(x: Held) -> Held:
    return x.device.hold(from_bf16(x.to_bf16()))


def of_int32(x: Held) -> Held:
    return x.device.hold(x.to_integers(-(2**31), 2**31 - 1))


def chosen(a: Held, b: Held) -> Held:
    a, b = (Held(x, a.device) for x in np.broadcast_arrays(a.values, b.values))
    return Held(np.where(a.values >= b.values, a.values, b.values), a.device)


def whole_numbers(x: Tensor) -> Tensor:
    return pypto.cast(pypto.cast(x, pypto.DT_INT32, pypto.CAST_RINT), pypto.DT_FP32)


def polynomial(x: Held, terms: Sequence[float]) -> Held:
    found = x * terms[0] + terms[1]
    for term in terms[2:]:
        found = x * found + term
    return found


def selected(condition: Any, a: Held, b: Held) -> Held:
    return Held(np.where(condition, a.values, b.values), a.device)


def tanh(x: Held) -> Held:
    square = x * x
    terms = [0.0157396831, -0.0523039624, 0.133152977, -0.333327681]
    small = polynomial(square, terms) * square * x + x
    power = (x.minimum(20.0) * 2.0).exp()
    return selected(abs(x).values < np.float32(0.55), small, (power + -1.0) / (power + 1.0))


def cosh(x: Held) -> Held:
    power = (abs(x) * 0.5).exp()
    return (power + (abs(x) * -1.5).exp()) * 0.5 * power


def erf(x: Held) -> Held:
    x = x.minimum(3.92).maximum(-3.92)
    square = x * x
    top = [0.053443748819, 7.5517016694, 101.62808918, 1393.8061484, 5063.791506, 29639.384698]
    bottom = square + 31.212858877
    for term in (398.56963806, 3023.124815, 13243.365831, 26267.224157):
        bottom = square * bottom + term
    return x * polynomial(square, top) / bottom


def atan(x: Held) -> Held:
    size, one = abs(x), x.device.hold(np.ones(x.values.shape))
    is_large = size.values > 1
    reduced = selected(is_large, one / size, size)
    square = reduced * reduced
    terms = [0.0024500289, -0.0143969795, 0.0398497507, -0.0725297481]
    terms += [0.105184801, -0.14171803, 0.199887753, -0.333329409]
    found = polynomial(square, terms) * square * reduced + reduced
    found = selected(is_large, found * -1.0 + np.pi / 2, found)
    return selected(x.values >= 0, found, found * -1.0)


def hypot(x: Held, y: Held) -> Held:
    x, y = abs(x), abs(y)
    most = x.maximum(y) + 1e-9
    ratio = x.minimum(y) / most
    return most * (ratio * ratio + 1.0).sqrt()


def fmod(x: Held, y: Held) -> Held:
    ratio = x / y
    count = Held(np.trunc(ratio.values) + np.float32(0), x.device)
    return x - count * y


OPERATIONS: dict[str, Operation] = {
    "add": both(2, lambda a, b: a + b),
    "sub": both(2, lambda a, b: a - b),
    "mul": both(2, lambda a, b: a * b),
    "div": both(2, lambda a, b: a / b),
    "square": both(1, lambda a: a * a),
    "scaled": both(1, lambda a: a * -3.1),
    "parts": both(1, lambda a: a / 127.0),
    "shifted": both(1, lambda a: a + 1e-6),
    "itself": both(1, lambda a: a - a),
    "abs": (1, pypto.abs, abs),
    "reciprocal": (1, pypto.reciprocal, lambda a: a.device.hold(1) / a),
    "sqrt": (1, pypto.sqrt, Held.sqrt),
    "exp": (1, pypto.exp, Held.exp),
    "sigmoid": (1, pypto.sigmoid, Held.sigmoid),
    "round": (1, pypto.round, Held.rounded),
    "maximum": (2, pypto.maximum, Held.maximum),
    "minimum": (2, pypto.minimum, Held.minimum),
    "where": (2, lambda a, b: pypto.where(a >= b, a, b), chosen),
    "sum of rows": (1, lambda a: pypto.sum(a, -1, True), lambda a: a.sum(-1)),
    "sum of columns": (1, lambda a: pypto.sum(a, 0, True), lambda a: a.sum(0)),
    "amax": (1, lambda a: pypto.amax(a, -1, True), lambda a: a.amax(-1)),
    "amin": (1, lambda a: pypto.amin(a, 0, True), lambda a: a.amin(0)),
    "prod of rows": (1, lambda a: pypto.prod(a, -1, True), lambda a: a.prod(-1)),
    "prod of columns": (1, lambda a: pypto.prod(a, 0, True), lambda a: a.prod(0)),
    "cumprod": (1, lambda a: pypto.cumprod(a, 1), Held.cumprod),
    "expand_exp_dif": (2, pypto.expand_exp_dif, lambda a, b: (a - b).exp()),
    "tanh": (1, pypto.tanh, tanh),
    "cosh": (1, pypto.cosh, cosh),
    "erf": (1, pypto.erf, erf),
    "atan": (1, pypto.atan, atan),
    "hypot": (2, pypto.hypot, hypot),
    "fmod": (2, pypto.fmod, fmod),
    "as BF16": (1, lambda a: pypto.cast(pypto.cast(a, pypto.DT_BF16), pypto.DT_FP32), of_bf16),
    "as INT32": (1, whole_numbers, of_int32),
}

IN_FP16 = {
    *("div", "parts", "abs", "reciprocal", "sqrt", "exp", "maximum", "minimum", "where"),
    *("amax", "amin"),
}
"""Those that round to FP16; AutoCast runs the others in FP32."""

Step = tuple[str, int, int]


def programs_of(names: Iterable[str]) -> st.SearchStrategy[list[Step]]:
    step = st.tuples(st.sampled_from(sorted(names)), st.integers(0, 99), st.integers(0, 99))
    return st.lists(step, min_size=1, max_size=LONGEST)


programs = programs_of(OPERATIONS)


def carried_out(program: Sequence[Step], inputs: Sequence[Any], side: int) -> list[Any]:
    """All results of a program; steps take any earlier results, mostly the last ones."""
    held = list(inputs)
    for name, first, second in program:
        count = OPERATIONS[name][0]
        picked = [held[-1 - min(k % len(held), k % 3)] for k in (first, second)[:count]]
        held.append(OPERATIONS[name][side](*picked))
    return held[len(inputs) :]


def check(
    program: Sequence[Step], trust: str, seed: int, columns: int, dtype: Any = np.float32
) -> None:
    give = Inputs(seed, tame=False)
    with np.errstate(over="ignore"):
        data = [give.fp32(ROWS, columns).astype(dtype) for _ in range(2)]
    # Only a device that keeps no order adds alike in one tile and in several.
    tile = -(-columns // 3) if trust == "documented" else columns
    with pypto.options(trust=trust, vec_tile_shapes=(ROWS, tile)):
        found = carried_out(program, [pypto.from_numpy(x) for x in data], 1)
    for number in range(DEVICES):
        device = Device.of_trust(trust, seed + number, dtype) if number else Device(dtype=dtype)
        results = carried_out(program, [device.hold(x) for x in data], 2)
        for step, (tensor, held) in enumerate(zip(found, results, strict=True)):
            enclosure = tensor.enclosure()
            assert enclosure is not None
            assert enclosure.shape == held.values.shape
            flags = None if enclosure.interval is None else enclosure.interval.may_be_nan
            possible = is_possible(held.values, enclosure.low, enclosure.high, flags)
            if not possible.all():
                at = tuple(np.argwhere(~possible)[0].tolist())
                raise AssertionError(
                    f"{program[: step + 1]}, {trust}: {held.values[at]!r} at {at} is not in "
                    f"[{enclosure.low[at]!r}, {enclosure.high[at]!r}]"
                )


PARTS = 15
"""Of thousands of programs, each a test of its own, which draws its own."""
every_trust = pytest.mark.parametrize("trust", BY_TRUST)
every_part = pytest.mark.parametrize("part", range(PARTS))
seeds = st.integers(0, 2**32 - 1)
lengths = st.sampled_from([1, 2, 5, 40, 64, 65, 100])


@pytest.mark.slow
@every_trust
@settings(max_examples=20)
@example(program=[("maximum", 0, 1), ("cumprod", 0, 0)], seed=0, columns=40)
@given(program=programs, seed=seeds, columns=lengths)
def test_results_lie_inside(program: list[Step], trust: str, seed: int, columns: int) -> None:
    check(program, trust, seed, columns)


@every_trust
@settings(max_examples=20)
@given(program=programs_of(IN_FP16), seed=seeds, columns=lengths)
def test_results_in_fp16_lie_inside(
    program: list[Step], trust: str, seed: int, columns: int
) -> None:
    check(program, trust, seed, columns, np.float16)


@pytest.mark.exhaustive
@every_trust
@every_part
@settings(max_examples=1500 // PARTS)
@given(program=programs_of(IN_FP16), seed=seeds, columns=lengths)
def test_results_of_thousands_of_programs_in_fp16_lie_inside(
    program: list[Step], trust: str, seed: int, columns: int, part: int
) -> None:
    check(program, trust, seed, columns, np.float16)


@pytest.mark.exhaustive
@every_trust
@every_part
@settings(max_examples=1500 // PARTS)
@given(program=programs, seed=seeds, columns=lengths)
def test_results_of_thousands_of_programs_lie_inside(
    program: list[Step], trust: str, seed: int, columns: int, part: int
) -> None:
    check(program, trust, seed, columns)


def test_every_operation_runs() -> None:
    """A program of all operations runs on both sides."""
    program = [(name, 0, 2) for name in OPERATIONS]
    check(program, "ieee", 5, 40)
