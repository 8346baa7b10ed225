"""Suppositions on one operation, remedies, and files of bounds."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.kernel.certainty import Cause, Certainty, observed_by
from pypto_cast.testing import assert_possible, load_bounds, save_bounds


@pypto.jit
def quant(
    x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_INT8],
) -> None:
    """INT8 by row: two divisions, of which the second uses what the first leaves open."""
    pypto.set_vec_tile_shapes(8, 256)
    scale = 127.0 / pypto.amax(pypto.abs(x), -1, keepdim=True)
    whole = pypto.cast(pypto.exp(x * 0.0) * x * scale, pypto.DT_INT32, pypto.CAST_RINT)
    out[:] = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8)


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray]:
    # Quarters of a power of two times 127: many products lie on ties, which any error decides.
    rng = np.random.default_rng(3)
    x = np.float32(rng.integers(-508, 509, (16, 256)) / 4)
    x[:, 0] = 127
    return x, np.zeros(x.shape, np.int8)


def scale_cause(found: Certainty) -> Cause:
    return next(cause for cause in found.causes if cause.operation == "reciprocal")


def test_an_operation_taken_as_exact_leaves_nothing_open(arrays: tuple[np.ndarray, ...]) -> None:
    before = quant.certainty(*arrays)
    assert before.undecided > 100
    with pypto.what_if(scale_cause(before)) as first, pypto.what_if("exp"):
        inside = quant.certainty(*arrays)
    assert inside.undecided == 0
    assert first.matched
    assert quant.certainty(*arrays).undecided == before.undecided
    np.testing.assert_array_equal(inside.values[0], before.values[0])


def test_the_text_of_a_cause_names_it(arrays: tuple[np.ndarray, ...]) -> None:
    before = quant.certainty(*arrays)
    with pypto.what_if(str(scale_cause(before))):
        assert quant.certainty(*arrays).undecided <= before.undecided
    absent = "exp at elsewhere.py:1"
    with pytest.raises(ValueError, match=f"no {absent} was"), pypto.what_if(absent):
        quant.certainty(*arrays)


def test_a_result_rounded_first_is_that_of_written_casts(arrays: tuple[np.ndarray, ...]) -> None:
    @pypto.jit
    def written(
        x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
        out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_INT8],
    ) -> None:
        pypto.set_vec_tile_shapes(8, 256)
        scale = 127.0 / pypto.amax(pypto.abs(x), -1, keepdim=True)
        short = pypto.cast(pypto.cast(scale, pypto.DT_BF16, pypto.CAST_RINT), pypto.DT_FP32)
        whole = pypto.cast(pypto.exp(x * 0.0) * x * short, pypto.DT_INT32, pypto.CAST_RINT)
        out[:] = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8)

    x = arrays[0] * np.float32(1.003)
    wanted = written.certainty(x, arrays[1])
    before = quant.certainty(x, arrays[1])
    # 127.0 / t is reciprocal(t) * 127: the product is what is rounded.
    product = dataclasses.replace(scale_cause(before), operation="mul")
    with pypto.what_if(product, rounded_to=pypto.DT_BF16):
        found = quant.certainty(x, arrays[1])
    for have, want in ((found.values, wanted.values), (found.low, wanted.low)):
        np.testing.assert_array_equal(have[0], want[0])
    assert (found.values[0] != before.values[0]).any()


def test_remedies_say_what_would_settle(arrays: tuple[np.ndarray, ...]) -> None:
    seen: list[Certainty] = []
    with observed_by(seen.append):
        found = quant.remedies(*arrays, most=2)
    assert seen == []
    before = quant.certainty(*arrays)
    assert [each.cause for each in found] == list(before.causes)[:2]
    for each in found:
        assert each.undecided == before.undecided
        assert each.open_by_cause == before.causes[each.cause]
        with pypto.what_if(each.cause):
            assert each.if_exact == quant.certainty(*arrays).undecided
        for dtype, left in each.if_rounded.items():
            with pypto.what_if(each.cause, rounded_to=dtype):
                assert left == quant.certainty(*arrays).undecided
    assert any("rounding its result to DT_" in str(each) for each in found)


def test_a_product_of_matrices_taken_as_exact() -> None:
    @pypto.jit
    def product(
        x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
        y: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
        out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
    ) -> None:
        pypto.set_cube_tile_shapes([32, 32], [64, 64], [32, 32])
        out[:] = pypto.matmul(x, y, pypto.DT_FP32)

    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal((32, 64)).astype(np.float32) for _ in range(2))
    x[0, 0], y[1, 1] = np.inf, 3e38
    arrays = x, np.ascontiguousarray(y.reshape(64, 32)), np.zeros((32, 32), np.float32)
    before = product.certainty(*arrays)
    with pypto.what_if("matmul"):
        inside = product.certainty(*arrays)
    assert inside.undecided == 0 < before.undecided
    np.testing.assert_array_equal(inside.values[0], before.values[0])
    product(*arrays)
    np.testing.assert_array_equal(arrays[2], before.values[0])


@pytest.mark.parametrize(
    ("operation", "dtype", "error", "text"),
    [
        (3, None, TypeError, "takes a Cause or a str, not 3"),
        ("div", pypto.DT_INT8, ValueError, "must be DT_BF16 or DT_FP16, not"),
    ],
)
def test_suppositions_that_are_none(
    operation: str, dtype: pypto.DataType | None, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text), pypto.what_if(operation, rounded_to=dtype):
        raise AssertionError("not reached")


def test_an_error_inside_is_not_replaced() -> None:
    with pytest.raises(KeyError, match="inside"), pypto.what_if("exp"):
        raise KeyError("inside")


# --- Files of bounds ---------------------------------------------------------------------------


@pypto.jit
def three(
    x: pypto.Tensor[[pypto.STATIC], pypto.DT_FP32],
    wide: pypto.Tensor[[pypto.STATIC], pypto.DT_BF16],
    maybe: pypto.Tensor[[pypto.STATIC], pypto.DT_FP16],
    exact: pypto.Tensor[[pypto.STATIC], pypto.DT_FP32],
) -> None:
    pypto.set_vec_tile_shapes(64)
    wide[:] = pypto.cast(pypto.exp(x), pypto.DT_BF16)
    maybe[:] = pypto.cast(pypto.sqrt(pypto.exp(x) - pypto.exp(x)), pypto.DT_FP16)
    exact[:] = x + x


def three_certain() -> Certainty:
    x = np.linspace(-9, 9, 64, dtype=np.float32)
    bf16 = pypto.tensor([1], pypto.DT_BF16, data=[0]).numpy().dtype
    return three.certainty(
        x, np.zeros(64, bf16), np.zeros(64, np.float16), np.zeros(64, np.float32)
    )


def test_bounds_come_back_from_a_file(tmp_path: Path) -> None:
    before = three_certain()
    assert before["maybe"].may_be_nan is not None
    save_bounds(before, tmp_path / "bounds.npz")
    after = load_bounds(tmp_path / "bounds.npz")
    assert str(after) == str(before)
    assert after.causes == before.causes
    for have, want in zip(after.outputs, before.outputs, strict=True):
        for name in ("values", "low", "high", "cause", "may_be_nan"):
            a, b = getattr(have, name), getattr(want, name)
            assert (a is None) == (b is None)
            assert a is None or (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())
    assert_possible(before.high, after)


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "bounds.npz"
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        save_bounds(three_certain(), path)
    assert path.read_bytes() == b"mine"
    save_bounds(three_certain(), path, force=True)
    assert load_bounds(path).kernel == "three"


def test_files_that_hold_no_bounds(tmp_path: Path) -> None:
    path = tmp_path / "bounds.npz"
    save_bounds(three_certain(), path)
    whole = path.read_bytes()
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npz").write_text("no file of arrays")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(
        tmp_path / "newer.npz",
        about=np.frombuffer(b'{"kind": "pypto_cast bounds", "version": 9}', np.uint8),
    )
    for name in ("other.npz", "one.npy", "cut.npz", "text.npz", "empty.npz"):
        with pytest.raises(ValueError, match="no file of bounds; pypto-cast certainty --bounds"):
            load_bounds(tmp_path / name)
    with pytest.raises(ValueError, match=r"bounds of version 9; this package reads 1"):
        load_bounds(tmp_path / "newer.npz")
    with pytest.raises(FileNotFoundError):
        load_bounds(tmp_path / "absent.npz")
