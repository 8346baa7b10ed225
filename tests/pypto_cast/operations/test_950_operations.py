"""Operations that the 950 alone has: by turns, random numbers, blocks of a softmax; its dtypes."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from support.numbers.codes import SEED

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from pypto_cast.operations.operation_rows import ROWS
from tiling.chips import A2_A3, ASCEND_950

CHIP: Final = "Ascend950PR"
UNIFORM_OF_THE_PAGE: Final = [
    *("0.1689806", "0.9725481", "0.90036285", "0.16582811"),
    *("0.1454581", "0.48029935", "0.02495587", "0.99239147"),
    *("0.02835405", "0.10649502", "0.45283175", "0.87260246"),
    *("0.6877538", "0.24809706", "0.95886254", "0.24039495"),
]
"""Upstream's page of uniform: [4, 4] of key 1234, counter [0, 1], FP32."""
NORMAL_OF_THE_PAGE: Final = [
    *(-0.32364845, 1.8577391, 0.39556974, 0.2311697, 0.24243996, -1.9485782, -0.12983137),
    *(2.7137496, 1.6558666, 2.0938187, -0.90338254, 0.8765667, 0.86518306, 0.01034508),
    *(0.2893259, 0.01748212),
]
"""Upstream's page of normal, likewise."""


@pytest.fixture(autouse=True)
def on_the_950() -> Any:
    with pypto.options(chip=CHIP):
        yield


# --- interleave and deinterleave ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ROWS["interleave"].dtypes[ASCEND_950], ids=str)
def test_interleave_is_that_of_upstream_s_page(dtype: pypto.DataType) -> None:
    held = dtype.number_format.dtype
    a, b = np.arange(8).reshape(2, 4).astype(held), np.arange(10, 18).reshape(2, 4).astype(held)
    x, y = (pypto.tensor(None, dtype, data=each) for each in (a, b))
    first, second = pypto.interleave(x, y)
    np.testing.assert_array_equal(first.numpy().astype(int), [[0, 10, 1, 11], [4, 14, 5, 15]])
    np.testing.assert_array_equal(second.numpy().astype(int), [[2, 12, 3, 13], [6, 16, 7, 17]])
    for found, given in zip(pypto.deinterleave(first, second), (a, b), strict=True):
        np.testing.assert_array_equal(found.numpy(), given)
    even, odd = pypto.deinterleave(first)
    assert even.shape == [2, 2]
    np.testing.assert_array_equal(even.numpy(), a[:, :2])
    np.testing.assert_array_equal(odd.numpy(), b[:, :2])


def test_intervals_move_with_their_elements() -> None:
    @pypto.frontend.jit
    def kernel(
        x: pypto.Tensor[[2, 8], pypto.DT_FP32], out: pypto.Tensor[[2, 8], pypto.DT_FP32]
    ) -> None:
        pypto.set_vec_tile_shapes(2, 8)
        first, _ = pypto.interleave(pypto.exp(x), x)
        out[:] = first

    x = np.random.default_rng(SEED).standard_normal((2, 8)).astype(np.float32)
    output = kernel.certainty(x, np.zeros((2, 8), np.float32)).outputs[0]
    np.testing.assert_array_equal(output.certain[:, 1::2], True)
    assert not output.certain[:, ::2].all()


def rows(*shape: int, dtype: pypto.DataType = pypto.DT_INT16) -> Any:
    return pypto.tensor(None, dtype, data=np.zeros(shape, dtype.number_format.dtype))


@pytest.mark.parametrize(
    ("operands", "error", "text"),
    [
        ([rows(2, 3), rows(2, 3)], pypto.ShapeError, r"last axis of \[2, 3\] has an odd length"),
        ([rows(2, 4), rows(2, 6)], pypto.ShapeError, r"one shape, not \[2, 4\] and \[2, 6\]"),
        ([rows(2, 4), rows(2, 4, dtype=pypto.DT_INT32)], TypeError, "one dtype, not DT_INT16 and"),
        ([rows(2, 4, dtype=pypto.DT_INT64)] * 2, TypeError, "takes .*, not DT_INT64"),
        ([rows(2, 4)[:, :3]] * 2, pypto.ShapeError, "odd length"),
    ],
)
@pytest.mark.parametrize("name", ["interleave", "deinterleave"])
def test_pairs_that_upstream_refuses(
    name: str, operands: list[Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        getattr(pypto, name)(*operands)


def test_rows_that_are_divided_or_hold_little_are_refused() -> None:
    x = rows(2, 8)
    for tile, text in (([2, 4], "takes rows whole: the last entry .* must be 8"), ([8], "exactly")):
        with (
            pypto.options(vec_tile_shapes=tile),
            pytest.raises(pypto.TileShapeError, match=text),
        ):
            pypto.interleave(x, x)
    with (
        pypto.options(vec_tile_shapes=[2, 3]),
        pytest.raises(pypto.TileShapeError, match="must be even, not 3"),
    ):
        pypto.deinterleave(x)
    part = pypto.view(x, [2, 8], [0, 0], valid_shape=[2, 6])
    with pytest.raises(ValueError, match="holds data in 6"):
        pypto.interleave(part, part)


# --- Random numbers -------------------------------------------------------------------------------


def philox(key: int, counter: list[int]) -> list[int]:
    """Ten rounds of Philox 4x32 on one counter of four words, in Python's integers."""
    words = [*counter]
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        left, right = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [
            right >> 32 ^ words[1] ^ low,
            right & 0xFFFFFFFF,
            left >> 32 ^ words[3] ^ high,
            left & 0xFFFFFFFF,
        ]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return words


def test_uniform_is_that_of_upstream_s_page() -> None:
    found = pypto.uniform([4, 4], [1234], [0, 1], [1], pypto.DT_FP32).numpy().reshape(-1)
    shown = [np.format_float_positional(number, precision=8) for number in found]
    assert shown == UNIFORM_OF_THE_PAGE


@pytest.mark.parametrize("key", [0, 1234, (1 << 64) - 1])
@pytest.mark.parametrize("upper", [0, 1, (1 << 63) + 5])
def test_words_are_those_of_philox(key: int, upper: int) -> None:
    count = 23
    counters = [[n, 0, upper & 0xFFFFFFFF, upper >> 32] for n in range(-(-count // 4))]
    words = np.array([philox(key, each) for each in counters], np.uint64).reshape(-1)[:count]
    for dtype, bits in ((pypto.DT_FP32, 23), (pypto.DT_FP16, 10), (pypto.DT_BF16, 7)):
        found = pypto.uniform([count], [key], [77, upper], [3], dtype)
        wanted = (words & np.uint64((1 << bits) - 1)).astype(np.float64) / (1 << bits)
        np.testing.assert_array_equal(found.numpy().astype(np.float64), wanted)
        assert found.numpy().dtype == dtype.number_format.dtype


def test_no_number_depends_on_the_tile() -> None:
    whole = pypto.uniform([3, 5, 8], [7], [0, 9], [1], pypto.DT_FP32).numpy()
    with pypto.options(vec_tile_shapes=[1, 2, 4]):
        tiled = pypto.uniform([3, 5, 8], [7], [0, 9], [1], pypto.DT_FP32).numpy()
    np.testing.assert_array_equal(whole, tiled)


@pytest.mark.parametrize("dtype", [pypto.DT_FP32, pypto.DT_FP16, pypto.DT_BF16], ids=str)
@pytest.mark.parametrize("count", [16, 15])
def test_normal_is_box_and_muller_of_uniform(count: int, dtype: pypto.DataType) -> None:
    even = count + count % 2
    numbers = pypto.uniform([even], [1234], [0, 1], [1], pypto.DT_FP32).numpy()
    u, v = (pypto.from_numpy(numbers[start::2].copy()) for start in (0, 1))
    angle = pypto.mul(v, 2.0 * np.pi)
    radius = pypto.sqrt(pypto.mul(pypto.log(pypto.maximum(u, 1.0e-7)), -2.0))
    pairs = [pypto.mul(turn(angle), radius).numpy() for turn in (pypto.sin, pypto.cos)]
    wanted = np.stack(pairs, axis=1).reshape(-1)[:count]
    found = pypto.normal([count], [1234], [0, 1], [1], dtype).numpy()
    np.testing.assert_array_equal(found, wanted.astype(dtype.number_format.dtype))


def test_upstream_s_page_of_normal_lies_within_the_older_sine() -> None:
    """12 of its numbers lie within the newer one's; see the docstring."""
    page = np.array(NORMAL_OF_THE_PAGE, np.float32)
    numbers = pypto.uniform([16], [1234], [0, 1], [1], pypto.DT_FP32).numpy()
    with pypto.options(release="0.2.0", chip="Ascend910B3"):
        u, v = (pypto.from_numpy(numbers[start::2].copy()) for start in (0, 1))
        angle = pypto.mul(v, 2.0 * np.pi)
        radius = pypto.sqrt(pypto.mul(pypto.log(pypto.maximum(u, 1.0e-7)), -2.0))
        for start, turn in enumerate((pypto.sin, pypto.cos)):
            whole = pypto.mul(turn(angle), radius).enclosure()
            assert whole is not None
            assert ((whole.low <= page[start::2]) & (page[start::2] <= whole.high)).all()
    held = pypto.normal([16], [1234], [0, 1], [1], pypto.DT_FP32).enclosure()
    assert held is not None
    assert int(((held.low <= page) & (page <= held.high)).sum()) == 12


@pytest.mark.parametrize("name", ["uniform", "normal"])
@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"shape": []}, pypto.ShapeError, "1 to 4 extents from 1, not"),
        ({"shape": [2, 0]}, pypto.ShapeError, "1 to 4 extents from 1, not"),
        ({"shape": [1] * 5}, pypto.ShapeError, "1 to 4 extents"),
        ({"shape": 4}, TypeError, "shape is a list of ints, not 4"),
        ({"key": [1, 2]}, ValueError, "key is a list of 1, not of 2"),
        ({"key": 1234}, TypeError, "key is a list of ints, not 1234"),
        ({"key": [1 << 64]}, ValueError, "numbers of 64 bits from 0"),
        ({"counter": [1]}, ValueError, "counter is a list of 2, not of 1"),
        ({"counter": [0, -1]}, ValueError, "numbers of 64 bits from 0"),
        ({"alg": [2]}, ValueError, r"alg is \[1\] or \[3\], both Philox, not \[2\]"),
        ({"dtype": pypto.DT_INT32}, TypeError, "gives DT_FP32, DT_FP16, DT_BF16, not DT_INT32"),
    ],
)
def test_random_arguments_that_upstream_refuses(
    name: str, changes: dict[str, Any], error: type[Exception], text: str
) -> None:
    given = {
        **{"shape": [4, 4], "key": [1234], "counter": [0, 1], "alg": [1]},
        "dtype": pypto.DT_FP32,
    }
    with pytest.raises(error, match=text):
        getattr(pypto, name)(**given | changes)


def test_tiles_of_random_numbers() -> None:
    arguments = ([4, 8], [1], [0, 0], [1], pypto.DT_FP32)
    for tile, call, text in (
        ([4, 6], pypto.uniform, "must be a multiple of 4"),
        ([2, 8], pypto.normal, r"takes the shape \[4, 8\] as its tile"),
    ):
        with (
            pypto.options(vec_tile_shapes=tile),
            pytest.raises(pypto.TileShapeError, match=text),
        ):
            call(*arguments)
    with pypto.options(vec_tile_shapes=[4, 8]):
        pypto.normal(*arguments)
    with pytest.raises(TypeError, match="has no uniform"), pypto.options(release="0.2.0"):
        pypto.uniform(*arguments)


# --- Blocks of a softmax --------------------------------------------------------------------------


def away_from_zero(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """FP32 to BF16, ties away from zero, as codes."""
    return ((values.view(np.uint32) + np.uint32(0x8000)) >> np.uint32(16)).astype(np.uint16)


@pytest.mark.parametrize("scale", [0.125, 1.0, -0.3])
def test_online_softmax_takes_upstream_s_steps(scale: float) -> None:
    x = np.random.default_rng(SEED).standard_normal((9, 16)).astype(np.float32)
    factor = np.float32(scale)
    most = x.max(axis=0, keepdims=True) * factor
    exponents = x * factor - most
    wide = pypto.exp(pypto.from_numpy(exponents)).numpy()
    total = wide[:1]
    for row in range(1, 9, 2):
        total = total + (wide[row] + wide[row + 1])
    with pypto.options(vec_tile_shapes=[16, 8]):
        found, found_most, found_sum = pypto.experimental.online_softmax(pypto.from_numpy(x), scale)
    np.testing.assert_array_equal(found_most.numpy(), most)
    np.testing.assert_array_equal(found.numpy().view(np.uint16), away_from_zero(wide))
    np.testing.assert_array_equal(found_sum.numpy(), total)
    assert found.numpy().dtype == ml_dtypes.bfloat16


def test_online_softmax_update_takes_upstream_s_steps() -> None:
    rng = np.random.default_rng(SEED)
    maxima, sums = rng.standard_normal((2, 2, 1, 16)).astype(np.float32)
    outputs = rng.standard_normal((2, 5, 16)).astype(np.float32)
    most = np.maximum(*maxima)
    scales = [pypto.exp(pypto.from_numpy(each - most)).numpy() for each in maxima]
    given = [(maxima[k], sums[k], outputs[k]) for k in (0, 1)]
    tensors = [pypto.from_numpy(each) for part in given for each in part]
    found = pypto.experimental.online_softmax_update(*tensors)
    np.testing.assert_array_equal(found[0].numpy(), most)
    np.testing.assert_array_equal(found[1].numpy(), scales[0] * sums[0] + scales[1] * sums[1])
    np.testing.assert_array_equal(found[2].numpy(), outputs[0] * scales[0] + outputs[1] * scales[1])


def test_a_sum_in_no_known_order_is_open() -> None:
    x = np.random.default_rng(SEED).standard_normal((9, 16)).astype(np.float32)
    with pypto.options(trust="documented"):
        _, _, total = pypto.experimental.online_softmax(pypto.from_numpy(x), 1.0)
    held = total.enclosure()
    assert held is not None
    assert held.interval is not None


def single(*shape: int) -> Any:
    return rows(*shape, dtype=pypto.DT_FP32)


def test_softmax_arguments_that_upstream_refuses() -> None:
    softmax = pypto.experimental.online_softmax
    update = pypto.experimental.online_softmax_update
    row, matrix = single(1, 8), single(4, 8)
    for call, error, text in (
        (lambda: softmax(rows(4, 8), 1.0), TypeError, "takes DT_FP32, not DT_INT16"),
        (lambda: softmax(single(2, 4, 8), 1.0), pypto.ShapeError, "scores has two dimensions"),
        (lambda: softmax(matrix, "1"), TypeError, "scale is a float, not '1'"),
        (
            lambda: update(row, row, matrix, row, row, single(5, 8)),
            pypto.ShapeError,
            r"current_output has shape \[4, 8\], not \[5, 8\]",
        ),
        (
            lambda: update(matrix, row, matrix, row, row, matrix),
            pypto.ShapeError,
            r"previous_max has shape \[1, 8\], not \[4, 8\]",
        ),
    ):
        with pytest.raises(error, match=text):
            call()
    with pypto.options(vec_tile_shapes=[2, 8]):
        for call in (
            lambda: softmax(matrix, 1.0),
            lambda: update(row, row, matrix, row, row, matrix),
        ):
            with pytest.raises(pypto.TileShapeError, match="must be at least 4"):
                call()


# --- Dtypes by family -----------------------------------------------------------------------------


def test_every_dtype_of_a2_and_a3_is_one_of_the_950() -> None:
    for row in ROWS.values():
        for listed in (row.dtypes, row.index_dtypes, row.added):
            assert set(listed.get(A2_A3, ())) <= set(listed.get(ASCEND_950, ())), row.name


def test_bytes_wrap_or_clamp_by_their_own_control_bit() -> None:
    x = pypto.tensor(None, pypto.DT_INT8, data=np.array([[100, -100]], np.int8))
    np.testing.assert_array_equal(pypto.add(x, x).numpy(), [[-56, 56]])
    with pypto.options(inf_nan_mode=False):
        np.testing.assert_array_equal(pypto.add(x, x).numpy(), [[-56, 56]])
    with pypto.options(int_saturation=True):
        np.testing.assert_array_equal(pypto.add(x, x).numpy(), [[127, -128]])


@pytest.mark.parametrize(("chip", "hidden"), [("Ascend910B3", True), (CHIP, False)])
def test_auto_cast_leaves_the_greater_of_bf16_as_it_is(chip: str, hidden: bool) -> None:
    """On A2 and A3 the product's FP32 value goes through maximum; on the 950 its rounding does."""

    @pypto.frontend.jit
    def kernel(
        x: pypto.Tensor[[1, 16], pypto.DT_BF16], out: pypto.Tensor[[1, 16], pypto.DT_BF16]
    ) -> None:
        pypto.set_vec_tile_shapes(1, 16)
        out[:] = pypto.mul(pypto.maximum(pypto.mul(x, x), x), x)

    x = np.linspace(1, 2, 16, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(1, 16)
    wide = x.astype(np.float32)
    square = wide * wide
    kept = square if hidden else square.astype(ml_dtypes.bfloat16).astype(np.float32)
    wanted = (np.maximum(kept, wide) * wide).astype(ml_dtypes.bfloat16)
    out = np.zeros((1, 16), ml_dtypes.bfloat16)
    with pypto.options(chip=chip):
        kernel(x, out)
    np.testing.assert_array_equal(out.view(np.uint16), wanted.view(np.uint16))
    assert not np.array_equal(kept, square) or hidden


# --- Schedules ------------------------------------------------------------------------------------

Wide = pypto.Tensor[[64, 64], pypto.DT_FP32]
Fp8 = pypto.Tensor[[64, 64], pypto.DT_FP8E4M3]
Row = pypto.Tensor[[1, 64], pypto.DT_FP32]
PLANNED: dict[str, Any] = {
    "interleave": lambda x, c, s, r: pypto.interleave(x, x),
    "deinterleave": lambda x, c, s, r: pypto.deinterleave(x, x),
    "online_softmax": lambda x, c, s, r: pypto.experimental.online_softmax(x, 1.0),
    "online_softmax_update": lambda x, c, s, r: pypto.experimental.online_softmax_update(
        r, r, x, r, r, x
    ),
    "quant_mx": lambda x, c, s, r: pypto.quant_mx(x, performance_mode=False),
    "scaled_mm": lambda x, c, s, r: pypto.scaled_mm(c, c, pypto.DT_FP32, s, s, scale_b_trans=True),
    "uniform": lambda x, c, s, r: pypto.uniform([64, 64], [1], [0, 1], [1], pypto.DT_FP32),
    "normal": lambda x, c, s, r: pypto.normal([64, 64], [1], [0, 1], [1], pypto.DT_FP32),
}


@pytest.mark.parametrize("name", PLANNED)
def test_the_planner_refuses_by_name_what_it_has_no_tile_operations_of(name: str) -> None:
    @pypto.frontend.jit
    def kernel(
        x: Wide, c: Fp8, s: pypto.Tensor[[64, 1, 2], pypto.DT_FP8E8M0], r: Row, out: Wide
    ) -> None:
        pypto.set_vec_tile_shapes(64, 64)
        pypto.set_cube_tile_shapes([64, 64], [64, 64], [64, 64])
        found = PLANNED[name](x, c, s, r)
        first = found[0] if isinstance(found, tuple) else found
        if first.dtype is pypto.DT_FP32 and list(first.shape) == [64, 64]:
            out[:] = first
        else:
            out[:] = pypto.mul(x, 2.0)

    given = [
        pypto.tensor(list(each.shape), each.dtype) for each in kernel.signature.tensors.values()
    ]
    with (
        pypto.options(chip="Ascend950PR"),
        pytest.raises(PlanError, match=rf"^{name} at .* upstream has it on 950 alone; the passes"),
    ):
        kernel.schedule(*given)
