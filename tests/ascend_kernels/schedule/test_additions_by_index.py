"""Additions by index as tile operations: planned, executed, and refused where upstream fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from pypto_cast.kernel.jit import Kernel
from pypto_cast.options.releases import ReleaseName
from simulator.machine.memory import SimulatorFault
from simulator.numbers.formats import BF16, INT8
from simulator.numbers.rounding import RoundMode

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
Body = Callable[[Any, Any, Any], Any]
RNG = np.random.default_rng(2609)
PLACES = (3, 0, 39, 3, 17, 3, 8, 0)
DTYPES = {
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
}


def adding(fmt: str, where: str, body: Body, *, tile: tuple[int, ...] = (16, 64)) -> Kernel:
    dtype = getattr(pypto, f"DT_{fmt.upper()}")

    @pypto.frontend.jit
    def added(
        x: pypto.Tensor([40, 64], dtype),
        terms: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], dtype),
        at: pypto.Tensor([8], getattr(pypto, f"DT_{where.upper()}")),
        y: pypto.Tensor([40, 64], dtype),
    ) -> None:
        pypto.set_vec_tile_shapes(*tile)
        y[:] = body(x, terms, at)

    return added


def data(fmt: str, where: str, axis: int) -> list[np.ndarray]:
    shape = (8, 64) if axis == 0 else (40, 8)
    x, terms = ((RNG.standard_normal(each) * 50).astype(DTYPES[fmt]) for each in ((40, 64), shape))
    return [x, terms, np.array(PLACES, where), np.zeros((40, 64), DTYPES[fmt])]


def rounded_each(fmt: str, given: list[np.ndarray], axis: int, alpha: float) -> np.ndarray:
    """Added one after another, product and sum rounded to the dtype each time."""
    dtype = DTYPES[fmt]
    x, terms, at, _ = given
    exact = np.float64 if fmt in ("fp16", "bf16") else dtype
    factor = dtype(np.float32(alpha) if exact is np.float64 else alpha).astype(exact)
    out = x.copy()
    for place, index in enumerate(at):
        line = np.take(terms, place, axis).astype(exact)
        if alpha != 1:
            line = (line * factor).astype(dtype).astype(exact)
        box = (index, slice(None)) if axis == 0 else (slice(None), index)
        out[box] = (out[box].astype(exact) + line).astype(dtype)
    return out


@pytest.mark.parametrize("fmt", [each for each in DTYPES if each != "int8"])
@pytest.mark.parametrize(("axis", "alpha"), [(0, 1), (1, 3), (0, 0.3)])
@pytest.mark.parametrize("name", ["index_add", "index_add_ub"])
def test_rows_are_added_as_planned(name: str, fmt: str, axis: int, alpha: float) -> None:
    if fmt.startswith("int") and alpha == 0.3:
        alpha = -2
    release: ReleaseName = "0.2.0" if name == "index_add" else "head"
    kernel = adding(
        fmt, "int32", lambda x, t, at: getattr(pypto, name)(x, axis, at, t, alpha=alpha)
    )
    given = data(fmt, "int32", axis)
    expected = rounded_each(fmt, given, axis, alpha)
    with pypto.options(release=release, satmode="upstream"):
        schedule = kernel.schedule(*given)
        found = kernel.certainty(*(each.copy() for each in given))
        with pypto.options(fidelity="instructions"):
            kernel(*given)
    opcodes = [each.opcode for leaf in schedule.leaves for each in leaf.operations]
    assert ("INDEX_ADD_UB" if name.endswith("ub") else "INDEX_ADD") in opcodes
    assert_array_equal(given[-1], expected)
    (output,) = found.outputs
    assert_array_equal(np.asarray(output.values), expected)


def test_fp16_by_int64_is_rounded_once() -> None:
    kernel = adding("fp16", "int64", lambda x, t, at: pypto.index_add(x, 0, at, t))
    given = data("fp16", "int64", 0)
    given[0][:], given[1][:], given[2][:] = 2048, 1, 3
    with pypto.options(release="0.2.0", satmode="upstream", fidelity="instructions"):
        kernel(*given)
    assert_array_equal(given[-1][3], np.float16(2056))
    assert_array_equal(given[-1][4], np.float16(2048))


@pytest.mark.parametrize(("fmt", "row"), [("fp32", 16), ("int8", 16), ("fp16", 64)])
def test_the_scratch_is_a_block_or_a_line_of_bf16(fmt: str, row: int) -> None:
    """A line where FP16 by INT64 is added in FP32 (pypto r0.2.0, vector/indexing.cpp:72, :101)."""
    kernel = adding(fmt, "int64", lambda x, t, at: pypto.index_add(x, 0, at, t))
    with pypto.options(release="0.2.0", satmode="upstream"):
        schedule = kernel.schedule(*data(fmt, "int64", 0))
    operations = [each for leaf in schedule.leaves for each in leaf.operations]
    scratch = {x.outputs[1] for x in operations if x.opcode == "INDEX_ADD"}
    assert {(each.format, each.shape) for each in scratch} == {(BF16, (1, row))}


def test_int8_is_clamped() -> None:
    kernel = adding("int8", "int32", lambda x, t, at: pypto.index_add(x, 0, at, t, alpha=2))
    given = data("int8", "int32", 0)
    given[0][:], given[1][:] = 100, 30
    with pypto.options(release="0.2.0", satmode="upstream", fidelity="instructions"):
        kernel(*given)
        schedule = kernel.schedule(*given)
    operations = [each for leaf in schedule.leaves for each in leaf.operations]
    back = {x.mode for x in operations if x.opcode == "CAST" and x.outputs[0].format is INT8}
    assert back == {RoundMode.TRUNC}  # CAST_TRUNC of r0.2.0, vector/indexing.cpp:96
    assert_array_equal(given[-1][3], np.int8(127))
    assert_array_equal(given[-1][4], np.int8(100))


@pytest.mark.parametrize("place", [-1, 40])
@pytest.mark.parametrize("fidelity", ["fast", "instructions"])
def test_a_place_outside_is_an_error_and_nothing_is_written(place: int, fidelity: str) -> None:
    kernel = adding("fp32", "int32", lambda x, t, at: pypto.index_add(x, 0, at, t))
    given = data("fp32", "int32", 0)
    given[2][5], given[3][:] = place, 7
    with (
        pypto.options(release="0.2.0", satmode="upstream", fidelity=fidelity),
        pytest.raises((IndexError, SimulatorFault), match=rf"test_additions.*{place}|{place} at"),
    ):
        kernel(*given)
    assert_array_equal(given[3], np.float32(7))


def test_the_machine_refuses_a_place_outside() -> None:
    kernel = adding("fp32", "int32", lambda x, t, at: pypto.index_add(x, 0, at, t))
    given = data("fp32", "int32", 0)
    with pypto.options(release="0.2.0", satmode="upstream"):
        schedule = kernel.schedule(*given)
    given[2][5] = 40
    with pytest.raises(SimulatorFault, match="has indices 0 to 40 along an axis of 40 elements"):
        schedule.run(*given)


def test_rows_in_several_tasks_are_read_back_by_one_that_wrote_some() -> None:
    def body(x: Any, terms: Any, at: Any) -> Any:
        doubled = x * 2.0
        pypto.index_add_(doubled, 0, at, terms)
        return doubled

    kernel = adding("fp32", "int32", body)
    given = data("fp32", "int32", 0)
    expected = rounded_each("fp32", [given[0] * 2, *given[1:]], 0, 1)
    with pypto.options(release="0.2.0", satmode="upstream"):
        schedule = kernel.schedule(*given)
        schedule.run(*given)
    (own,) = (x for x in schedule.leaves if any(y.opcode == "INDEX_ADD" for y in x.operations))
    opcodes = [each.opcode for each in own.operations if each.flag is None]
    assert opcodes.count("COPY_OUT") == 2
    assert opcodes.index("COPY_OUT") < len(opcodes) - 1 - opcodes[::-1].index("COPY_IN")
    assert_array_equal(given[-1], expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            lambda x, t, at: (lambda b: pypto.index_add(b, 0, at, t) + b)(x * 2.0),
            r"over its first operand, which another .* add to a copy of its own, as x \* 1\.0$",
        ),
        (
            lambda x, t, at: (
                lambda b: pypto.index_add(x, 0, at, b, alpha=2.0) * pypto.amax(b, 0, True)
            )(t * 2.0),
            "upstream multiplies its terms where they lie, and another operation reads them",
        ),
    ],
)
def test_an_addition_that_upstream_spoils_is_refused(body: Body, message: str) -> None:
    given = data("fp32", "int32", 0)
    with (
        pypto.options(release="0.2.0", satmode="upstream"),
        pytest.raises(PlanError, match=rf"INDEX_ADD .*{message}"),
    ):
        adding("fp32", "int32", body, tile=(40, 64)).schedule(*given)


def test_terms_that_hold_data_in_part_are_refused() -> None:
    def body(x: Any, terms: Any, at: Any) -> Any:
        held = pypto.view(terms, [8, 64], [0, 0], valid_shape=[5, 64])
        return pypto.index_add(x, 0, at, held)

    with (
        pypto.options(release="0.2.0", satmode="upstream"),
        pytest.raises(PlanError, match=r"index_add at .*: a tensor that holds data in a part of"),
    ):
        adding("fp32", "int32", body).schedule(*data("fp32", "int32", 0))


def test_additions_in_memory_are_refused_with_their_reason() -> None:
    kernel = adding("fp32", "int32", lambda x, t, at: pypto.index_add(x, 0, at, t))
    with pytest.raises(PlanError, match=r"index_add at .*additions in GM by several tasks, whose"):
        kernel.schedule(*data("fp32", "int32", 0))
