"""Upstream's releases: the formats operations run in, what each takes, and what another changes."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.operations.lowering import runs_in
from pypto_cast.tensors.tensor import Tensor
from simulator.numbers.formats import FP32

BF16 = ml_dtypes.bfloat16
HALF = pypto.Tensor[[...], pypto.DT_FP16]
SINGLE = pypto.Tensor[[...], pypto.DT_FP32]

WIDE_BF16 = [
    "add",
    "sub",
    "mul",
    "neg",
    "maximum",
    "minimum",
    "relu",
    "clip",
    "amax",
    "amin",
    "abs",
    "div",
    "reciprocal",
    "sqrt",
    "exp",
    "where",
    "logical_and",
    "logical_not",
    "sum",
]
WIDE_FP16 = {"head": ["add", "sub", "mul", "neg"], "0.2.0": []}
ALL = (*WIDE_BF16, "eq", "lt", "bitwise_and", "round", "floor")


def of(values: Any, dtype: Any) -> Tensor:
    return pypto.from_numpy(np.array(values, dtype))


@pypto.jit
def chain(a: HALF, out: HALF) -> None:
    pypto.set_vec_tile_shapes(16, 128)
    out[:] = a * 2.0 + 1.0 - 0.5


def halves() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).standard_normal((128, 128)).astype(np.float16)


def test_a_chain_in_fp16_differs_where_numpy_says() -> None:
    a = halves()
    two, one, half = (np.float16(x) for x in (2.0, 1.0, 0.5))
    in_halves = (a * two + one) - half
    in_singles = ((a.astype(np.float32) * 2 + 1) - np.float32(0.5)).astype(np.float16)
    for release, own, other in (
        ("head", in_singles, in_halves),
        ("0.2.0", in_halves, in_singles),
    ):
        with pypto.options(release=release):
            found = chain.certainty(a, np.zeros_like(a))
            out = np.zeros_like(a)
            chain(a, out)
        assert (out == own).all()
        assert found.other_release is not None
        (changed,) = found.other_release.changed
        assert (changed == (own != other)).all()
        assert found.other_release.count == np.count_nonzero(changed) > 1000
    with pypto.options(release="0.2.0", auto_cast="every op"):
        chain(a, out := np.zeros_like(a))
    assert (out == in_halves).all()


def test_the_release_is_chosen_by_name_and_printed() -> None:
    assert pypto.platform().release == "release head (883e7dfb0)"
    with pypto.options(release="0.2.0") as chosen:
        assert pickle.loads(pickle.dumps(chosen)) == chosen
        assert pypto.platform().release == "release 0.2.0 (d1c290f36)"
    with (
        pytest.raises(ValueError, match=r"option release must be one of \('0.2.0', 'head'\)"),
        pypto.options(release="0.1.0"),
    ):
        pass


def test_certainty_names_release_operations_and_the_conflict() -> None:
    found = chain.certainty(halves(), np.zeros((128, 128), np.float16))
    other = found.other_release
    assert other is not None
    assert [cause.operation for cause in other.causes] == ["mul", "add", "sub"]
    (conflict,) = other.conflicts
    assert "opcode.h:897" in conflict.source
    assert "test_input_tensor_reassign" in conflict.contrary
    assert found.release == "release head (883e7dfb0)"
    line = str(found).splitlines()[-1]
    assert line.startswith(f"{found.release}; release 0.2.0 (d1c290f36) changes {other.count:,} of")
    assert "conflicting: " in line


@pytest.mark.parametrize("release", ["0.2.0", "head"])
def test_the_formats_that_operations_run_in(release: Any) -> None:
    with pypto.options(release=release):
        wide = {
            dtype: {name for name in ALL if runs_in(name, dtype) is FP32}
            for dtype in (pypto.DT_BF16, pypto.DT_FP16, pypto.DT_INT32)
        }
    assert wide[pypto.DT_BF16] == set(WIDE_BF16)
    assert wide[pypto.DT_FP16] == set(WIDE_FP16[release])
    assert not wide[pypto.DT_INT32]


def test_numbers_beside_bf16_are_rounded_in_no_release_and_beside_fp16_in_the_older() -> None:
    brain, half = (np.linspace(1, 3, 256).astype(dtype) for dtype in (BF16, np.float16))
    exact = (half.astype(np.float32) * np.float32(0.1)).astype(np.float16)
    rounded = half * np.float16(0.1)
    assert (exact != rounded).any()
    for release, products in (("head", exact), ("0.2.0", rounded)):
        with pypto.options(release=release):
            assert (of(half, np.float16) * 0.1).numpy().tolist() == products.tolist()
            found = (of(brain, BF16) * 0.1).numpy()
        assert (found == (brain.astype(np.float32) * np.float32(0.1)).astype(BF16)).all()
    with pypto.options(release="0.2.0", auto_cast="every op"):
        assert (of(half, np.float16) * 0.1).numpy().tolist() == exact.tolist()


def test_a_sum_in_fp16_stays_in_fp16() -> None:
    x = of([[2048, 1, 0, 1] + [0] * 12], np.float16)
    with pytest.raises(TypeError, match=r"sum takes DT_FP32, .*, not DT_FP16; cast it first"):
        pypto.sum(x, -1)
    with pypto.options(release="0.2.0", vec_tile_shapes=(1, 16)):
        total = pypto.sum(x, -1, True)
    assert total.dtype is pypto.DT_FP16
    assert total.numpy().tolist() == [[2048]]  # 2050 in FP32


def test_comparisons_of_bf16_are_taken_by_the_older() -> None:
    x, y = of([[0.1, 1.0]], BF16), of([[0.1, 2.0]], BF16)
    with pytest.raises(TypeError, match=r"lt takes DT_FP32, DT_FP16, not DT_BF16"):
        pypto.lt(x, y)
    with pypto.options(release="0.2.0"):
        assert (x < y).numpy().tolist() == [[False, True]]
        assert (x == 0.1).numpy().tolist() == [[False, False]]  # 0.1 is not rounded to BF16
        step = of([[1.0, 1.0]], BF16) + 2.0**-9  # what a comparison reads is rounded
        assert (step > 1.0).numpy().tolist() == [[False, False]]
        with pytest.raises(TypeError, match="one dtype"):
            pypto.lt(x, of([[1.0, 1.0]], np.float16))


LARGE = 2**24 + 1


@pytest.mark.parametrize("operation", [pypto.floor, pypto.ceil, pypto.trunc, pypto.round])
def test_integers_go_through_fp32_in_the_older(operation: Callable[[Tensor], Tensor]) -> None:
    x = of([[LARGE, -7]], np.int32)
    assert operation(x).numpy().tolist() == [[LARGE, -7]]
    with pypto.options(release="0.2.0"):
        assert operation(x).numpy().tolist() == [[LARGE - 1, -7]]


def test_sums_of_int16_along_an_axis_go_through_fp32_in_the_older() -> None:
    x = of(np.full((1024, 2), 32767), np.int16)
    exact = np.cumsum(x.numpy(), 0, dtype=np.int64)
    assert (pypto.cumsum(x, 0).numpy() == exact).all()
    with pypto.options(release="0.2.0"):
        found = pypto.cumsum(x, 0).numpy()
    assert (found[:512] == exact[:512]).all()
    assert (found[513:] != exact[513:]).any()


def test_the_older_multiplies_where_var_divides() -> None:
    x = of(np.random.default_rng(2).standard_normal((32, 7)), np.float32)
    values = x.numpy()
    seventh, sixth = (np.float32(1) / np.float32(n) for n in (7, 6))

    def sum_of(terms: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return pypto.sum(of(terms, np.float32), -1, True).numpy()

    with pypto.options(vec_tile_shapes=(32, 8)):
        centre = sum_of(values * seventh)
        expected = sum_of((values - centre) ** 2 * sixth)
        with pypto.options(release="0.2.0"):
            assert (pypto.var(x, -1, keepdim=True).numpy() == expected).all()
        assert (pypto.var(x, -1, keepdim=True).numpy() != expected).any()


@pytest.mark.parametrize("shape", [[1, 64], [4, 16], [2, 4, 8]])
def test_exp2_is_the_same_operation_in_both(shape: list[int]) -> None:
    x = of(np.linspace(-3, 3, 64).reshape(shape), np.float32)
    newest = pypto.exp2(x).numpy()
    with pypto.options(release="0.2.0"):
        assert (pypto.exp2(x).numpy() == newest).all()


def test_var_over_several_dimensions_repeats_the_mean_along_one_after_another() -> None:
    x = of(np.linspace(-3, 3, 64).reshape(4, 2, 8), np.float32)
    with pypto.options(release="0.2.0"):
        assert [pypto.var(x, dim).numpy().shape for dim in ([0, 2], None)] == [(2,), (1,)]


# --- What a release takes --------------------------------------------------------------------


def ones(*shape: int, dtype: Any = np.float32) -> Tensor:
    return of(np.ones(shape), dtype)


REFUSED = {
    "both axes": (lambda: ones(1, 1) + ones(4, 64), pypto.ShapeError, "repeats an operand along 1"),
    "a row in three": (lambda: ones(64) * ones(2, 4, 64), pypto.ShapeError, "along 2"),
    "a comparison": (lambda: ones(4, 64) < ones(1, 1), pypto.ShapeError, "lt: release 0.2.0"),
    "a condition": (
        lambda: pypto.where(ones(1, 1, dtype=np.bool_), ones(4, 64), ones(4, 64)),
        pypto.ShapeError,
        "where: release",
    ),
    "expand_clone": (lambda: ones(1, 1).expand_clone([4, 64]), pypto.ShapeError, "expand_clone: "),
    "amax": (lambda: pypto.amax(ones(4, 12), -1), pypto.TileShapeError, "multiple of 8 elements"),
    "amin": (
        lambda: pypto.amin(ones(4, 12, dtype=np.float16), -1),
        pypto.TileShapeError,
        "multiple of 16 elements of DT_FP16",
    ),
    "sum": (lambda: ones(4, 12).sum(1), pypto.TileShapeError, "whole 32 B blocks"),
    "softmax": (lambda: pypto.softmax(ones(4, 12), -1), pypto.TileShapeError, "amax: release"),
    "exp2": (lambda: pypto.exp2(ones(64)), pypto.ShapeError, "2 dimensions or more in release"),
    "exp2 of bytes": (
        lambda: pypto.exp2(ones(4, 64, dtype=np.uint8)),
        TypeError,
        "exp2 takes DT_FP32, DT_FP16, DT_BF16, DT_INT32, DT_INT16, not DT_UINT8",
    ),
    "pow of bytes": (
        lambda: pypto.pow(ones(4, 64, dtype=np.int8), 2),
        TypeError,
        "pow takes DT_FP32, DT_FP16, DT_BF16, DT_INT32, not DT_INT8",
    ),
    "not": (
        lambda: pypto.logical_not(ones(4, 64, dtype=np.int32)),
        TypeError,
        "logical_not takes .*, not DT_INT32",
    ),
    "shift": (
        lambda: pypto.bitwise_left_shift(ones(4, 64, dtype=np.uint16), 1),
        TypeError,
        "bitwise_left_shift takes DT_INT16, not DT_UINT16",
    ),
    "and": (lambda: pypto.SymbolicScalar("a") & 1, TypeError, "unsupported operand"),
    "or of numbers": (lambda: 2 | pypto.SymbolicScalar(1), TypeError, "unsupported operand"),
    "round": (lambda: pypto.round(ones(64)), pypto.ShapeError, "round takes tensors of 2"),
    "var": (lambda: pypto.var(ones(64)), pypto.ShapeError, "var takes tensors of 2"),
    "integers": (
        lambda: ones(4, 64, dtype=np.int32) / 2,
        TypeError,
        "div takes DT_FP32, DT_FP16, DT_BF16, not DT_INT32",
    ),
    "argmax": (lambda: pypto.argmax(ones(4, 64)), TypeError, r"release 0.2.0 .* has no argmax"),
    "quantize": (
        lambda: pypto.quantize(ones(4, 64), ones(4), pypto.DT_INT8, -1),
        TypeError,
        "has no quantize",
    ),
}


@pytest.mark.parametrize("release", ["0.2.0", "head"])
def test_truths_of_integers_and_floats_are_joined(release: str) -> None:
    x = pypto.from_numpy(np.array([[0, 1, -7, 2]], np.int32))
    y = pypto.from_numpy(np.array([[1, np.nan, -0.0, 2]], np.float32))
    with pypto.options(release=release, vec_tile_shapes=(1, 8)):
        found = pypto.logical_and(x, y).numpy()
    assert found.tolist() == [[False, True, False, True]]


@pytest.mark.parametrize("case", REFUSED)
def test_the_older_refuses_what_the_newest_takes(case: str) -> None:
    operation, error, text = REFUSED[case]
    tile = (4, 12, 64) if "m" in case else (64, 64, 64)
    with pypto.options(vec_tile_shapes=tile):
        operation()
        with pypto.options(release="0.2.0"), pytest.raises(error, match=text):
            operation()


@pytest.mark.parametrize("name", ["prod", "remainder", "copy", "is_empty"])
def test_the_older_refuses_methods_that_its_tensor_lacks(name: str) -> None:
    arguments: tuple[Any, ...] = {"prod": (0,), "remainder": (2.0,)}.get(name, ())
    getattr(ones(4, 64), name)(*arguments)
    with (
        pypto.options(release="0.2.0"),
        pytest.raises(AttributeError, match=f"of release 0.2.0 .* has no method {name}"),
    ):
        getattr(ones(4, 64), name)(*arguments)
    with pypto.options(release="0.2.0", vec_tile_shapes=(4, 64)):
        assert pypto.prod(ones(4, 64), 0).shape == [64]


def test_what_both_take() -> None:
    with pypto.options(release="0.2.0", vec_tile_shapes=(4, 12, 64)):
        assert (ones(4, 1) + ones(1, 64)).shape == [4, 64]
        assert (ones(64) + ones(4, 64)).shape == [4, 64]
        assert pypto.amax(ones(4, 12), 0).shape == [12]
        with pypto.options(vec_tile_shapes=(4, 16)):
            assert pypto.amax(ones(4, 12), -1).shape == [4]


# --- What the other release changes ------------------------------------------------------------


def test_an_operation_that_the_other_refuses_is_named() -> None:
    @pypto.jit
    def kernel(a: SINGLE, out: SINGLE) -> None:
        pypto.set_vec_tile_shapes(4, 64)
        out[:] = a[0:1, 0:1] + a

    a = np.ones((4, 64), np.float32)
    other = kernel.certainty(a, np.zeros_like(a)).other_release
    assert other is not None
    assert other.refusal.startswith("ShapeError: add: release 0.2.0 (d1c290f36) repeats")
    assert other.count == a.size
    assert "refuses it: ShapeError" in str(other)


def test_only_the_choices_run_again_where_no_operation_depends_on_the_release() -> None:
    runs = []

    @pypto.jit
    def kernel(a: SINGLE, out: SINGLE) -> None:
        runs.append(pypto.platform().release)
        pypto.set_vec_tile_shapes(4, 64)
        out[:] = pypto.exp(a) * 2.0

    a = np.ones((4, 64), np.float32)
    assert kernel.certainty(a, np.zeros_like(a))[0].certain.sum() == 0
    assert len(runs) == 1  # no certain result may rest on a choice
    runs.clear()
    a[0] = -np.inf  # exp gives 0 of it
    other = kernel.certainty(a, np.zeros_like(a)).other_release
    assert other is not None
    assert (runs, other.count, other.causes) == ([runs[0]] * 2, 0, ())
    runs.clear()
    with pypto.options(trust="documented"):  # which has no choices to look for
        kernel.certainty(a, np.zeros_like(a))
    assert len(runs) == 1


def test_intervals_count_and_warnings_come_once() -> None:
    @pypto.jit
    def kernel(a: HALF, out: HALF) -> None:
        pypto.set_vec_tile_shapes(4, 7)
        out[:] = pypto.cast(pypto.cast(a * 3.0 + 0.1, pypto.DT_FP32) / 3.0, pypto.DT_FP16)

    a = halves()[:16]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = kernel.certainty(a, np.zeros_like(a))
    with pypto.options(release="0.2.0"):
        older = kernel.certainty(a, np.zeros_like(a))
    assert found.other_release is not None
    one, two = found[0], older[0]
    differ = (one.values != two.values) | (one.low != two.low) | (one.high != two.high)
    assert (found.other_release.changed[0] == differ).all()
    assert differ.any()
    assert not differ.all()
    # Nothing of the second run, which warns of the same tiles.
    with warnings.catch_warnings(record=True) as alone:
        warnings.simplefilter("always")
        kernel(a, np.zeros_like(a))
    assert [str(w.message) for w in caught] == [str(w.message) for w in alone]
    assert caught


# --- Moves ---------------------------------------------------------------------------------------


def write(out: Tensor, value: Tensor) -> None:
    out[:] = value


def moved_in_a_loop(a: Tensor, m: Tensor, out: Tensor, more: Tensor) -> None:
    for _ in pypto.loop(1):
        out[:] = m
    more[:] = m * 2.0


def read_in_a_loop(a: Tensor, m: Tensor, out: Tensor, more: Tensor) -> None:
    out[:] = m
    for _ in pypto.loop(2):
        more[:] = m * 2.0


def moved_in_each_iteration(a: Tensor, m: Tensor, out: Tensor, more: Tensor) -> None:
    for _ in pypto.loop(2):
        more[:] = m * 2.0
        out[:] = m


def moved_in_copies_of_a_body(a: Tensor, m: Tensor, out: Tensor, more: Tensor) -> None:
    for _ in pypto.loop(2, unroll_list=[2]):
        out[:] = m


def filled_again(a: Tensor, m: Tensor, out: Tensor, more: Tensor) -> None:
    out[:] = m
    m[:] = a * 3.0
    more[:] = m * 2.0


def viewed_before(a: Tensor, m: Tensor, out: Tensor, more: Tensor) -> None:
    part = m[0:4, :]
    out[:] = m
    pypto.assemble(part * 2.0, [0, 0], more)


def with_ellipsis(a: Tensor, m: Tensor, out: Tensor, more: Tensor) -> None:
    out[...] = m
    more[:] = m * 2.0


Body = Callable[[Tensor, Tensor, Tensor, Tensor], object]
READ: dict[str, Body] = {
    "operand": lambda a, m, out, more: (write(out, m), write(more, m * 2.0)),
    "cast": lambda a, m, out, more: (write(out, m), pypto.cast(m, pypto.DT_FP16)),
    "again": lambda a, m, out, more: (write(out, m), write(more, m)),
    "view": lambda a, m, out, more: (write(out, m), m[0:4, :]),
    "move": lambda a, m, out, more: (out.move(m), write(more, m * 2.0)),
    "parameter": lambda a, m, out, more: (write(out, a), write(more, a * 2.0)),
    "alias": lambda a, m, out, more: (write(out, m[:]), write(more, m * 2.0)),
    "assemble": lambda a, m, out, more: (write(out, m), pypto.assemble(m, [0, 0], more)),
    "written": lambda a, m, out, more: (write(out, m), pypto.assemble(a, [0, 0], m)),
    "in a loop": read_in_a_loop,
    "copies": moved_in_copies_of_a_body,
}
KEPT: dict[str, Body] = {
    "output": lambda a, m, out, more: (write(out, m), write(more, out * 2.0)),
    "assembled": lambda a, m, out, more: (pypto.assemble(m, [0, 0], out), write(more, m)),
    "after a loop": moved_in_a_loop,
    "iterations": moved_in_each_iteration,
    "filled again": filled_again,
    "viewed before": viewed_before,
    "ellipsis": with_ellipsis,
}


def run(body: Body) -> list[warnings.WarningMessage]:
    @pypto.jit
    def kernel(a: SINGLE, out: SINGLE, more: SINGLE) -> None:
        pypto.set_vec_tile_shapes(8, 64)
        body(a, a + 1.0, out, more)

    a = np.ones((8, 64), np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel(a, np.zeros_like(a), np.zeros_like(a))
    return [w for w in caught if w.category is pypto.UpstreamRefusalWarning]


@pytest.mark.parametrize("case", READ)
def test_a_moved_tensor_that_is_read_is_said_once(case: str) -> None:
    (caught,) = run(READ[case])
    assert "moved it: upstream leaves it empty" in str(caught.message)
    assert caught.filename == __file__
    with pypto.options(strict=True), pytest.raises(pypto.UpstreamRefusalError, match="moved it"):
        run(READ[case])


@pytest.mark.parametrize("case", KEPT)
def test_what_is_not_moved_may_be_read(case: str) -> None:
    assert run(KEPT[case]) == []
    with pypto.options(strict=True):
        run(KEPT[case])


def test_a_move_ends_with_its_kernel() -> None:
    x, out = (pypto.from_numpy(np.ones((8, 64), np.float32)) for _ in range(2))
    for _ in range(2):
        with pypto.options(strict=True), pypto.function("twice", x, out):
            pypto.set_vec_tile_shapes(8, 64)
            out[:] = x


# --- where ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("first", [True, False])
def test_where_takes_a_float_beside_any_float(dtype: Any, first: bool) -> None:
    condition, x = of([[True, False]], np.bool_), ones(1, 2, dtype=dtype)
    branches = (x, 0.1) if first else (0.1, x)
    expected = [1.0, float(dtype(0.1))]
    with pytest.warns(pypto.UpstreamRefusalWarning, match=r"takes no Python float beside DT_"):
        found = pypto.where(condition, *branches)
    assert found.numpy().astype(np.float64).tolist() == [expected if first else expected[::-1]]
    with pypto.options(strict=True), pytest.raises(pypto.UpstreamRefusalError, match="Element"):
        pypto.where(condition, *branches)
    with pypto.options(release="0.2.0", strict=True):
        older = pypto.where(condition, *branches).numpy()
    assert (older == found.numpy()).all()


PRECISION: dict[str, Callable[[Tensor, pypto.PrecisionType | None], Tensor]] = {
    "div": lambda x, kind: pypto.div(x, x, kind),
    "exp": lambda x, kind: pypto.exp(x, precision_type=kind),
    "method sqrt": lambda x, kind: x.sqrt(kind),
    "method log2": lambda x, kind: x.log2(precision_type=kind),
}


@pytest.mark.parametrize("name", PRECISION)
def test_precision_types_are_newer_than_0_2_0(name: str) -> None:
    call = PRECISION[name]
    with pypto.options(vec_tile_shapes=(4, 64)):
        plain = call(ones(4, 64), None).numpy()
        for kind in pypto.PrecisionType:
            assert (call(ones(4, 64), kind).numpy() == plain).all()
            with (
                pypto.options(release="0.2.0"),
                pytest.raises(TypeError, match=r"of release 0\.2\.0 .* no precision"),
            ):
                call(ones(4, 64), kind)


def test_an_operation_of_the_950_that_0_2_0_lacks_says_both() -> None:
    wanted = r"quant_mx has no .* of family A2/A3; it has on 950 alone: .*; release 0\.2\.0 .* none"
    with pypto.options(release="0.2.0"), pytest.raises(TypeError, match=wanted):
        pypto.quant_mx(ones(4, 64))
    with pytest.raises(TypeError, match=r"950 alone: options\(chip=\) chooses another$"):
        pypto.quant_mx(ones(4, 64))
