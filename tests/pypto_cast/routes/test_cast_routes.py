"""Routes in the user's words: code, program and casts of one route give the same bits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from support.numbers.codes import as_codes, as_values, source_codes
from support.numbers.oracle import rounded_once
from support.programs.twin_programs import needs_twin

import pypto_cast as pypto
from ascend_kernels import twin
from pypto_cast.routes.cast_routes import Route
from simulator.machine.execute import execute
from simulator.machine.isa import Cast
from simulator.traces.trace import trace
from tiling.cost import DEFAULT_COST_SET

CASES = [
    ("FP32", "INT8", "RINT"),
    ("FP32", "INT4", "FLOOR"),
    ("INT8", "BF16", "RINT"),
    ("INT4", "INT64", "RINT"),
    ("BF16", "FP16", "CEIL"),
    ("INT64", "BF16", "TRUNC"),
    ("INT32", "BF16", "RINT"),
    ("FP16", "INT8", "ODD"),
    ("FP32", "INT4", "ODD"),
    ("FP32", "BOOL", "RINT"),
    ("BOOL", "BF16", "RINT"),
    ("UINT16", "FP16", "FLOOR"),
    ("INT64", "UINT16", "RINT"),
    ("UINT64", "INT8", "RINT"),
]
every_case = pytest.mark.parametrize(("src", "dst", "mode"), CASES, ids=map("-".join, CASES))


def dtype(name: str) -> pypto.DataType:
    return pypto.DataType[f"DT_{name}"]


def best(src: str, dst: str, mode: str = "RINT", **arguments: Any) -> Route:
    return pypto.routes(dtype(src), dtype(dst), pypto.CastMode[f"CAST_{mode}"], **arguments).best


def codes_of(src: str, dst: str) -> np.ndarray:
    codes = source_codes(src, dst)
    chosen = codes[:: -(-codes.size // 1500)]
    return np.resize(chosen, 2048).reshape(16, 128)


def converted(route: Route, src: str, dst: str, codes: np.ndarray) -> np.ndarray:
    """The codes that the casts of a route give."""
    with pypto.options(vec_tile_shapes=[16, 128]):
        result = route.cast(pypto.from_numpy(as_values(codes, src)))
    return as_codes(result.numpy(), dst)


@every_case
def test_casts_give_one_rounding_where_the_route_is_exact(src: str, dst: str, mode: str) -> None:
    route, codes = best(src, dst, mode), codes_of(src, dst)
    wanted = [rounded_once(code, src, dst, mode) for code in codes.ravel().tolist()]
    found = converted(route, src, dst, codes).ravel().tolist()
    assert (found == wanted) is route.verdict.is_exact


@every_case
def test_the_program_gives_the_bits_of_the_casts(src: str, dst: str, mode: str) -> None:
    route, codes = best(src, dst, mode), codes_of(src, dst)
    wanted = converted(route, src, dst, codes).ravel()
    values = as_values(codes, src)
    program = route.program((16, 128), (8, 64))
    for fidelity in ("fast", "instructions"):
        found = execute(program, values, fidelity=fidelity)
        np.testing.assert_array_equal(found, wanted)
    odd = route.program((2048 - 6,), (300,))
    found = execute(
        odd, values.reshape(-1)[:-6], fidelity="instructions", copy_completion="earliest"
    )
    np.testing.assert_array_equal(found, wanted[:-6])


@every_case
def test_the_kernel_that_is_written_gives_the_bits_of_the_casts(
    src: str, dst: str, mode: str, pypto_sim: object
) -> None:
    route, codes = best(src, dst, mode), codes_of(src, dst)
    if not route.has_kernel:
        with pytest.raises(pypto.RouteError, match=r"pypto has no operation for .*UINT"):
            route.kernel()
        return
    names: dict[str, Any] = {}
    exec(route.kernel(), names)
    out = np.zeros(codes.shape, dtype(dst).format.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pypto.TileShapeWarning)
        names[f"{src}_to_{dst}_{mode}".lower()](as_values(codes, src), out)
    np.testing.assert_array_equal(as_codes(out, dst), converted(route, src, dst, codes))


def test_a_program_has_a_trace_and_an_estimate() -> None:
    route = best("FP32", "INT8")
    program = route.program((64, 1024), (16, 512))
    events = list(trace(program, 0, DEFAULT_COST_SET))
    casts = [event for event in events if isinstance(event.instruction, Cast)]
    assert len(casts) == 2 * len(list(program.parts(0)))
    end = max(event.end_cycle for event in events)
    assert 0.98 * end <= route.estimate((64, 1024), (16, 512)).cycles <= 1.02 * end


@pytest.mark.parametrize("tile", [(8, 100), (3, 64), (1, 100)], ids=str)
def test_rows_need_not_be_whole_blocks(tile: tuple[int, int]) -> None:
    route = best("FP32", "INT8")
    codes = source_codes("FP32", "INT8")[:800].reshape(8, 100)
    values = as_values(codes, "FP32")
    found = execute(route.program((8, 100), tile), values, fidelity="instructions")
    np.testing.assert_array_equal(found, converted(route, "FP32", "INT8", codes).ravel())


def test_rows_of_a_route_lie_at_one_pitch_even_where_that_takes_more_parts() -> None:
    """Between two casts there are elements narrower than those of either side."""
    program = best("FP32", "INT8").program((2800, 4), (1400, 2))
    assert program.plan.ub.has_one_pitch
    assert len(list(program.parts(0))) > len(program.plan.core_tiles(0))
    values = np.arange(2800 * 4, dtype=np.float32)
    found = execute(program, values, fidelity="instructions")
    np.testing.assert_array_equal(found, execute(program, values))


@every_case
def test_the_compiled_kernel_gives_the_bits_of_the_casts(src: str, dst: str, mode: str) -> None:
    needs_twin()
    route, codes = best(src, dst, mode), codes_of(src, dst)
    found = twin.execute(route.program((16, 128), (8, 64)), as_values(codes, src))
    np.testing.assert_array_equal(found, converted(route, src, dst, codes).ravel())


def test_the_best_comes_first_and_others_say_where_they_differ() -> None:
    found = pypto.routes(pypto.DT_INT32, pypto.DT_BF16)
    assert found.exact == ()
    assert [route.verdict.differing for route in found] == sorted(
        route.verdict.differing for route in found
    )
    assert found[0] is found.best
    assert len(found) == len(found.all)
    assert "CAST_RINT\n  INT32 -> FP32" in str(found)
    assert str(found.best.chain) == "INT32 -> FP32 CAST_TRUNC -> BF16 CAST_ROUND"
    assert found.best.exact_range == "[-2134900735, -2118123521]"
    truncated = pypto.routes(pypto.DT_INT32, pypto.DT_BF16, pypto.CAST_TRUNC)
    assert truncated.exact
    assert str(truncated.best.chain) == "INT32 -> FP32 CAST_TRUNC -> BF16 CAST_TRUNC"


def test_no_mode_is_the_default_of_the_pair() -> None:
    assert pypto.routes(pypto.DT_FP32, pypto.DT_INT8, pypto.CAST_NONE).mode is pypto.CAST_TRUNC
    assert pypto.routes(pypto.DT_INT8, pypto.DT_BF16, pypto.CAST_NONE).mode is pypto.CAST_RINT


def test_values_make_routes_exact() -> None:
    narrow = best("INT32", "BF16", values=(-256, 256))
    assert narrow.verdict.is_exact
    assert narrow.verdict.codes == 513


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"src": "fp32"}, TypeError, "DataType"),
    ({"mode": 1}, TypeError, "mode must be a pypto.CastMode"),
    (
        {"dst": pypto.DT_FP8E5M2},
        pypto.RouteError,
        "nothing from or to E5M2; .*FP16 holds every value of E5M2",
    ),
    ({"dst": pypto.DT_HF8}, pypto.RouteError, "nothing from or to HF8"),
    ({"src": pypto.DT_INT8, "dst": pypto.DT_INT8}, pypto.RouteError, "changes nothing"),
    ({"values": (1, -1)}, pypto.RouteError, r"1 is above -1; \(-1, 1\) would do"),
    ({"values": (0.5, float("nan"))}, pypto.RouteError, "two numbers"),
    ({"values": 3}, pypto.RouteError, "two numbers"),
    ({"src": pypto.DT_INT8, "values": (0.1, 0.2)}, pypto.RouteError, "the nearest: 0, 1"),
    ({"steps": 0}, pypto.RouteError, "steps must be 1 to 4, not 0"),
    ({"steps": True}, pypto.RouteError, "steps must be 1 to 4, not True"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), BAD)
def test_bad_input_is_told(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    asked = {"src": pypto.DT_FP32, "dst": pypto.DT_BF16, **arguments}
    with pytest.raises(error, match=text):
        pypto.routes(**asked)


def test_no_route_is_told() -> None:
    found = pypto.routes(pypto.DT_FP32, pypto.DT_INT8, steps=1)
    assert len(found) == 0
    assert str(found).endswith("no chain of 1 step")
    with pytest.raises(pypto.RouteError, match="more steps may"):
        _ = found.best


def test_a_route_takes_tensors_of_its_dtype_alone() -> None:
    route = best("FP32", "INT8")
    with pytest.raises(TypeError, match="of DT_FP32, not DT_FP16"):
        route.cast(pypto.tensor([8], pypto.DT_FP16))
    with pytest.raises(TypeError, match="of DT_FP32, not ndarray"):
        route.cast(np.zeros(8, np.float32))


def test_the_error_of_a_pair_names_the_best_route() -> None:
    x = pypto.tensor([64], pypto.DT_FP32)
    wanted = "FP32 -> FP16 CAST_ODD -> INT8 CAST_RINT is exact on all 4,294,967,296 codes"
    with pytest.raises(pypto.UnsupportedCastError) as error:
        pypto.cast(x, pypto.DT_INT8, pypto.CAST_RINT)
    assert wanted in str(error.value)
    x = pypto.tensor([64], pypto.DT_INT32)
    with pytest.raises(pypto.UnsupportedCastError, match="differs from one rounding on 2,944 of"):
        pypto.cast(x, pypto.DT_BF16)
