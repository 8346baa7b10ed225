"""scaled_mm of the 950 against exact fractions; matmul of its small floats; errors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from support.numbers.codes import SEED
from support.numbers.oracle import rounded, split
from support.numbers.small_floats import decode

import pypto_cast as pypto
from pypto_cast.dtypes.data_types import DTYPE_OF
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.arithmetic.microscaling import in_fp64, scaled_numbers
from simulator.numbers.convert import values_of
from simulator.numbers.formats import E4M3FN, E8M0, FORMATS, FP64

CHIP: Final = "Ascend950PR"
BLOCK: Final = 32
NAN_SCALE: Final = 255
FORMATS_OF: Final = [
    *(("E4M3FN", "E4M3FN"), ("E4M3FN", "E5M2"), ("E5M2", "E4M3FN"), ("E5M2", "E5M2")),
    ("E2M1", "E2M1"),
]


def finite_codes(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> Any:
    fmt = FORMATS[name]
    codes = rng.integers(0, 1 << fmt.bits, shape)
    kinds = np.vectorize(lambda code: decode(int(code), name).kind == "finite")
    return np.where(kinds(codes), codes, 1).astype(np.uint8)


def signed(code: int, name: str) -> Fraction:
    value = decode(int(code), name)
    return -value.magnitude if value.negative else value.magnitude


def exact(a: Any, b: Any, scales: tuple[Any, Any], names: tuple[str, str]) -> list[list[Fraction]]:
    """Sums of products by fractions: a and its scales by rows, b and its scales by columns."""
    sums = []
    for row, row_scales in zip(a, scales[0], strict=True):
        sums.append([])
        for column, column_scales in zip(b.T, scales[1], strict=True):
            total = Fraction(0)
            for k, (left, right) in enumerate(zip(row, column, strict=True)):
                power = int(row_scales[k // BLOCK]) + int(column_scales[k // BLOCK]) - 254
                total += signed(left, names[0]) * signed(right, names[1]) * Fraction(2) ** power
            sums[-1].append(total)
    return sums


def once(number: Fraction, fmt: str, mode: str = "RINT") -> int:
    """The code of a number rounded once."""
    sign = {"FP32": 1 << 31, "FP16": 1 << 15, "BF16": 1 << 15}[fmt] if number < 0 else 0
    return sign | rounded(split(abs(number), fmt), number < 0, mode)


def tensor_of(codes: Any, name: str) -> Tensor:
    fmt = FORMATS[name]
    return pypto.tensor(None, DTYPE_OF[fmt], data=values_of(codes, fmt))


def pairs_of(scales: Any) -> Any:
    """[lines, blocks] as upstream lays it out, [lines, pairs, 2]."""
    return scales.reshape(scales.shape[0], -1, 2)


@pytest.mark.parametrize("names", FORMATS_OF, ids="-".join)
def test_sums_are_those_of_exact_fractions(names: tuple[str, str]) -> None:
    rng = np.random.default_rng(SEED)
    rows, terms, columns = 6, 96, 4  # rows of FP4 are even in both layouts
    a = finite_codes(rng, names[0], (rows, terms))
    b = finite_codes(rng, names[1], (terms, columns))
    scales = [rng.integers(124, 131, (lines, 4)).astype(np.uint8) for lines in (rows, columns)]
    total = exact(a, b, (scales[0], scales[1]), names)
    given = (
        tensor_of(a, names[0]),
        tensor_of(b, names[1]),
        pypto.DT_FP32,
        tensor_of(pairs_of(scales[0]), "E8M0"),
        tensor_of(pairs_of(scales[1]).transpose(1, 0, 2).copy(), "E8M0"),
    )
    with pypto.options(chip=CHIP):
        found = pypto.scaled_mm(*given)
        turned = pypto.scaled_mm(
            tensor_of(a.T.copy(), names[0]),
            tensor_of(b.T.copy(), names[1]),
            pypto.DT_FP32,
            tensor_of(pairs_of(scales[0]).transpose(1, 0, 2).copy(), "E8M0"),
            tensor_of(pairs_of(scales[1]), "E8M0"),
            a_trans=True,
            b_trans=True,
            scale_a_trans=True,
            scale_b_trans=True,
        )
        halves = [
            pypto.scaled_mm(*given[:2], dtype, *given[3:])
            for dtype in (pypto.DT_FP16, pypto.DT_BF16)
        ]
    wanted = np.array([[once(number, "FP32") for number in row] for row in total], np.uint32)
    codes = found.numpy().view(np.uint32)
    np.testing.assert_array_equal(codes, wanted)
    np.testing.assert_array_equal(turned.numpy().view(np.uint32), wanted)
    with np.errstate(over="ignore"):
        single = found.numpy()
        np.testing.assert_array_equal(halves[0].numpy(), single.astype(np.float16))
        np.testing.assert_array_equal(
            halves[1].numpy().view(np.uint16), single.astype(ml_dtypes.bfloat16).view(np.uint16)
        )


def test_what_every_order_gives_is_certain_and_the_exact_sum_is_possible() -> None:
    rng = np.random.default_rng(SEED)
    few = finite_codes(rng, "E2M1", (6, 64))
    wide = np.full((6, 2), 127, np.uint8)

    @pypto.frontend.jit
    def product(
        a: pypto.Tensor[[6, 64], pypto.DT_FP8E4M3],
        scales: pypto.Tensor[[6, 1, 2], pypto.DT_FP8E8M0],
        out: pypto.Tensor[[6, 6], pypto.DT_FP32],
    ) -> None:
        pypto.set_cube_tile_shapes([16, 16], [64, 64], [32, 32])
        out[:] = pypto.scaled_mm(
            a, a, pypto.DT_FP32, scales, scales, b_trans=True, scale_b_trans=True
        )

    small = values_of(few, FORMATS["E2M1"]).astype(E4M3FN.dtype)
    spread = finite_codes(rng, "E4M3FN", (6, 64)).view(E4M3FN.dtype)
    with pypto.options(chip=CHIP):
        for data, all_certain in ((small, True), (spread, False)):
            operands = (
                data,
                values_of(pairs_of(wide), E8M0),
                np.zeros((6, 6), np.float32),
            )
            counts = product.certainty(*operands).outputs[0]
            low, high = counts.low, counts.high
            assert bool(np.array_equal(low, high)) is all_certain
            codes = data.view(np.uint8)
            total = exact(codes, codes.T, (wide, wide), ("E4M3FN", "E4M3FN"))
            for number, least, most in zip(
                (number for row in total for number in row), low.flat, high.flat, strict=True
            ):
                assert Fraction(float(least)) <= number <= Fraction(float(most))


def test_a_scale_that_is_nan_makes_its_lines_nan() -> None:
    a = np.full((2, 64), 0x38, np.uint8)  # 1
    scales = np.full((2, 2), 127, np.uint8)
    spoilt = scales.copy()
    spoilt[1, 1] = NAN_SCALE
    with pypto.options(chip=CHIP):
        found = pypto.scaled_mm(
            tensor_of(a, "E4M3FN"),
            tensor_of(a, "E4M3FN"),
            pypto.DT_FP32,
            tensor_of(pairs_of(spoilt), "E8M0"),
            tensor_of(pairs_of(scales), "E8M0"),
            b_trans=True,
            scale_b_trans=True,
        ).numpy()
    np.testing.assert_array_equal(np.isnan(found), [[False, False], [True, True]])
    assert found[0, 0] == 64


def test_bias_relu_and_int8() -> None:
    rng = np.random.default_rng(SEED)
    a = finite_codes(rng, "E2M1", (3, 64))
    scales = tensor_of(np.full((3, 1, 2), 127, np.uint8), "E8M0")
    sums = np.array(exact(a, a.T, (np.full((3, 2), 127),) * 2, ("E2M1", "E2M1")), np.float64)
    row = np.array([[-200.0, 0.5, 7.25]], np.float32)
    x = tensor_of(a, "E2M1")

    def product(dtype: pypto.DataType, **params: Any) -> Any:
        return pypto.scaled_mm(
            x, x, dtype, scales, scales, b_trans=True, scale_b_trans=True, extend_params=params
        ).numpy()

    with pypto.options(chip=CHIP):
        for kept in (np.float32, np.float16, ml_dtypes.bfloat16):
            bias = pypto.from_numpy(row.astype(kept))
            np.testing.assert_array_equal(product(pypto.DT_FP32, bias_tensor=bias), sums + row)
            clipped = product(pypto.DT_FP32, bias_tensor=bias, relu_type=pypto.ReLuType.RELU)
            np.testing.assert_array_equal(clipped, np.maximum(sums + row, 0))
        eighth = product(pypto.DT_INT8, scale=0.125)
    np.testing.assert_array_equal(eighth, np.clip(np.rint(sums / 8), -128, 127))


def test_batches_share_their_scales() -> None:
    rng = np.random.default_rng(SEED)
    a = finite_codes(rng, "E2M1", (4, 64)).reshape(2, 2, 64)
    scales = tensor_of(rng.integers(126, 129, (2, 1, 2)).astype(np.uint8), "E8M0")
    turns = {"b_trans": True, "scale_b_trans": True}
    with pypto.options(chip=CHIP):
        whole = pypto.scaled_mm(
            tensor_of(a, "E2M1"), tensor_of(a, "E2M1"), pypto.DT_FP32, scales, scales, **turns
        ).numpy()
        for batch, part in zip(whole, a, strict=True):
            x = tensor_of(part, "E2M1")
            one = pypto.scaled_mm(x, x, pypto.DT_FP32, scales, scales, **turns).numpy()
            np.testing.assert_array_equal(batch, one)


@pytest.mark.parametrize("names", [("E4M3FN", "E5M2"), ("E5M2", "E5M2"), ("HF8", "HF8")])
def test_matmul_of_small_floats(names: tuple[str, str]) -> None:
    rng = np.random.default_rng(SEED)
    a, b = finite_codes(rng, names[0], (4, 8)), finite_codes(rng, names[1], (8, 4))
    a, b = a & 0xBF, b & 0xBF  # without the largest numbers
    unscaled = [np.full((4, 1), 127)] * 2
    total = exact(a, b, (unscaled[0], unscaled[1]), names)
    wanted = np.array([[once(number, "FP32") for number in row] for row in total], np.uint32)
    with pypto.options(chip=CHIP):
        found = pypto.matmul(tensor_of(a, names[0]), tensor_of(b, names[1]), pypto.DT_FP32)
    np.testing.assert_array_equal(found.numpy().view(np.uint32), wanted)


def test_members_of_open_operands_stay_inside() -> None:
    rng = np.random.default_rng(SEED)
    codes = np.sort(finite_codes(rng, "E4M3FN", (2, 3 * 64)).view(E4M3FN.dtype), axis=0)
    codes = codes.astype(np.float64)
    low, high = codes.reshape(2, 3, 64)
    exponents = np.sort(rng.integers(120, 132, (2, 3, 2)), axis=0).astype(np.uint8)
    cause = np.ones(low.shape, np.uint16)
    given = Enclosure(
        values=low, interval=Interval(low=low, high=high, may_be_nan=None, cause=cause)
    )
    ends = [values_of(each, E8M0) for each in exponents]
    scales = Enclosure(
        values=ends[0],
        interval=Interval(
            low=ends[0], high=ends[1], may_be_nan=None, cause=np.ones((3, 2), np.uint16)
        ),
    )
    whole = scaled_numbers(given, scales)
    assert whole.interval is not None
    for number in (low, high, (low + high) / 2):
        for scale in ends:
            member = scaled_numbers(Enclosure(values=number), Enclosure(values=scale))
            assert whole.interval.contains(member.values, FP64).all()
    assert in_fp64(Enclosure(values=ends[0]), E8M0).values.dtype == np.float64


# --- Errors ---------------------------------------------------------------------------------------


def ones(*shape: int, name: str = "E4M3FN") -> Tensor:
    one = 0x02 if name == "E2M1" else 0x38
    return tensor_of(np.full(shape, one, np.uint8), name)


def scales_of(*shape: int) -> Tensor:
    return tensor_of(np.full(shape, 127, np.uint8), "E8M0")


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"mat_b": ones(64, 4, name="BF16")}, TypeError, "scaled_mm takes DT_FP8E5M2, DT_FP8E4M3"),
        ({"mat_b": ones(64, 4, name="E2M1")}, TypeError, "one dtype, or both of FP8, not DT_FP8E4"),
        ({"out_dtype": pypto.DT_INT32}, TypeError, "gives DT_FP32, DT_FP16, DT_BF16, DT_INT8"),
        ({"out_dtype": pypto.DT_INT8}, ValueError, "to DT_INT8 needs scale or scale_tensor"),
        ({"extend_params": {"scale": 2.0}}, ValueError, "to DT_FP32 takes no scale"),
        (
            {"scale_a": ones(2, 1, 2)},
            TypeError,
            "scale_a takes DT_FP8E8M0, not DT_FP8E4M3; no cast",
        ),
        ({"scale_a": scales_of(2, 2)}, pypto.ShapeError, r"has shape \[2, 1, 2\], not \[2, 2\]$"),
        (
            {"scale_a_trans": True},
            pypto.ShapeError,
            r"has shape \[1, 2, 2\], not \[2, 1, 2\]; scale_a_trans exchanges the first two axes$",
        ),
        ({"scale_b": scales_of(2, 4, 2)}, pypto.ShapeError, r"scale_b of 4 lines along K = 64"),
        ({"mat_a": ones(2, 32)}, pypto.ShapeError, r"takes \[..., M, K\] and \[..., K, N\]"),
        ({"c_matrix_nz": True}, ValueError, "c_matrix_nz must be False"),
        ({"a_trans": 1}, TypeError, "a_trans must be True or False, not 1"),
        ({"scale_b_trans": 0}, TypeError, "scale_b_trans must be True or False, not 0"),
    ],
)
def test_what_upstream_refuses_is_refused(
    changes: dict[str, Any], error: type[Exception], text: str
) -> None:
    given = {
        "mat_a": ones(2, 64),
        "mat_b": ones(64, 4),
        "out_dtype": pypto.DT_FP32,
        "scale_a": scales_of(2, 1, 2),
        "scale_b": scales_of(1, 4, 2),
    }
    with pypto.options(chip=CHIP), pytest.raises(error, match=text):
        pypto.scaled_mm(**given | changes)


@pytest.mark.parametrize("shapes", [((2, 63), (63, 4)), ((2, 64), (64, 3))], ids=["k", "n"])
def test_rows_of_fp4_have_an_even_number_of_elements(
    shapes: tuple[tuple[int, int], tuple[int, int]],
) -> None:
    """Two of them share a byte; of a matrix handed over as its transpose the rows count."""
    a, b = (ones(*shape, name="E2M1") for shape in shapes)
    scales = scales_of(2, 1, 2), scales_of(1, shapes[1][1], 2)
    text = "two elements of 4 bits share a byte"
    with pypto.options(chip=CHIP):
        with pytest.raises(pypto.ShapeError, match=text):
            pypto.scaled_mm(a, b, pypto.DT_FP32, *scales)
        with pytest.raises(pypto.ShapeError, match=text):
            pypto.scaled_mm(
                ones(64, 3, name="E2M1"),
                ones(64, 4, name="E2M1"),
                pypto.DT_FP32,
                scales_of(3, 1, 2),
                scales_of(1, 4, 2),
                a_trans=True,
            )
        turned = ones(*reversed(shapes[1]), name="E2M1")
        if shapes[1][0] % 2 == 0:
            even = pypto.scaled_mm(a, turned, pypto.DT_FP32, *scales, b_trans=True)
            assert even.numpy().tolist() == [[64.0] * 3] * 2


def test_scales_that_hold_too_little_are_refused() -> None:
    with pypto.options(chip=CHIP):
        part = pypto.view(scales_of(2, 1, 2), [2, 1, 2], [0, 0, 0], valid_shape=[1, 1, 2])
        with pytest.raises(ValueError, match="scales hold data in"):
            pypto.scaled_mm(ones(2, 64), ones(64, 4), pypto.DT_FP32, part, scales_of(1, 4, 2))


def test_a2_and_a3_refuse_it_by_its_name() -> None:
    with pytest.raises(TypeError, match=r"scaled_mm has no dtypes on Ascend910B3.* has on 950"):
        pypto.scaled_mm(
            ones(2, 64), ones(64, 4), pypto.DT_FP32, scales_of(2, 1, 2), scales_of(1, 4, 2)
        )
