"""conv against sums of exact products, its ends in other orders, and its refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto

Array = np.ndarray[Any, Any]
F = np.float32


def terms_of(
    x: Array,
    w: Array,
    place: tuple[int, ...],
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    groups: int,
) -> list[tuple[float, float]]:
    """The factors of one result, element by element; those in the padding are left out."""
    batch, out, *at = place
    inner = w.shape[1]
    first = out // (w.shape[0] // groups) * inner
    found = []
    for channel, *offset in itertools.product(*(range(n) for n in w.shape[1:])):
        where = [
            a * s + o * d - p
            for a, s, o, d, p in zip(at, strides, offset, dilations, paddings[::2], strict=True)
        ]
        if all(0 <= k < n for k, n in zip(where, x.shape[2:], strict=True)):
            factor = x[(batch, first + channel, *where)]
            found.append((float(factor), float(w[(out, channel, *offset)])))
    return found


CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], list[int], list[int], list[int], int]] = {
    "1d": ((2, 3, 9), (4, 3, 3), [2], [1, 2], [1], 1),
    "2d": ((1, 4, 6, 7), (6, 2, 3, 2), [1, 2], [2, 1, 1, 0], [1, 2], 2),
    "3d": ((2, 2, 3, 4, 5), (2, 1, 2, 1, 3), [1, 3, 1], [1, 0, 0, 0, 2, 1], [1, 1, 2], 2),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_small_integers_are_exact_and_certain(case: str, dtype: Any) -> None:
    shape, extents, strides, paddings, dilations, groups = CASES[case]
    random = np.random.default_rng(1)
    x, w = (random.integers(-6, 7, size).astype(dtype) for size in (shape, extents))
    bias = random.integers(-9, 9, extents[0]).astype(dtype)
    out = pypto.DT_FP16 if dtype is np.float16 else pypto.DT_FP32
    found = pypto.conv(
        pypto.from_numpy(x),
        pypto.from_numpy(w),
        out,
        strides,
        paddings,
        dilations,
        groups=groups,
        extend_params={"bias_tensor": pypto.from_numpy(bias)},
    )
    result = found.numpy()
    for place in np.ndindex(*result.shape):
        pairs = terms_of(x, w, place, strides, paddings, dilations, groups)
        assert result[place] == sum(a * b for a, b in pairs) + float(bias[place[1]])
    enclosure = found.enclosure()
    assert enclosure is not None
    assert enclosure.certain().all()


@pytest.mark.parametrize("case", CASES)
def test_sums_in_another_order_lie_within_the_ends(case: str) -> None:
    shape, extents, strides, paddings, dilations, groups = CASES[case]
    random = np.random.default_rng(2)
    x, w = (random.normal(0, 1, size).astype(F) for size in (shape, extents))
    found = pypto.conv(
        pypto.from_numpy(x),
        pypto.from_numpy(w),
        pypto.DT_FP32,
        strides,
        paddings,
        dilations,
        groups=groups,
    ).enclosure()
    assert found is not None
    assert not found.certain().all()
    for place in np.ndindex(*found.shape):
        pairs = terms_of(x, w, place, strides, paddings, dilations, groups)
        exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
        assert Fraction(float(found.low[place])) <= exact <= Fraction(float(found.high[place]))
        total = F(0)
        for k in random.permutation(len(pairs)):
            total += F(pairs[k][0]) * F(pairs[k][1])
        assert found.low[place] <= total <= found.high[place]


def test_relu_and_the_padding_of_an_infinite_weight() -> None:
    x, w = np.full((1, 1, 2), -1, F), np.array([[[np.inf, 1.0]]], F)
    given = (pypto.from_numpy(x), pypto.from_numpy(w), pypto.DT_FP32, [1])
    found = pypto.conv(*given, [1, 0], [1]).numpy()
    assert_array_equal(found, np.array([[[np.nan, -np.inf]]], F))
    relu = {"relu_type": pypto.ReLuType.RELU}
    finite = pypto.from_numpy(np.array([[[2.0, 1.0]]], F))
    clipped = pypto.conv(given[0], finite, *given[2:], [0, 0], [1], extend_params=relu).numpy()
    assert_array_equal(clipped, np.zeros((1, 1, 1), F))


def test_five_dimensions_are_for_conv_alone() -> None:
    x = pypto.from_numpy(np.ones((1, 1, 1, 2, 2), F))
    with pytest.raises(ValueError, match="1 to 4 dimensions"):
        pypto.add(x, x)
    with pytest.raises(ValueError, match="1 to 4 dimensions"):
        pypto.cast(x, pypto.DT_FP16)
    with pytest.raises(ValueError, match="1 to 5 dimensions"):
        pypto.from_numpy(np.ones((1, 1, 1, 1, 2, 2), F))


def _conv(
    x: tuple[int, ...] = (1, 4, 6),
    w: tuple[int, ...] = (2, 4, 3),
    strides: Any = None,
    paddings: Any = None,
    dilations: Any = None,
    **named: Any,
) -> object:
    dtype = named.pop("dtype", pypto.DT_FP32)
    return pypto.conv(
        pypto.from_numpy(np.ones(x, F)),
        pypto.from_numpy(np.ones(w, named.pop("of", F))),
        dtype,
        [1] if strides is None else strides,
        [0, 0] if paddings is None else paddings,
        [1] if dilations is None else dilations,
        **named,
    )


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (TypeError, "one dtype", lambda: _conv(of=np.float16)),
        (TypeError, "gives DT_FP32", lambda: _conv(dtype=pypto.DT_FP16)),
        (ValueError, "3 to 5 dimensions", lambda: _conv((4, 6), (4, 6))),
        (ValueError, "as many each", lambda: _conv((1, 4, 6), (2, 4, 3, 1))),
        (ValueError, "2 groups", lambda: _conv(groups=2)),
        (ValueError, "groups must be", lambda: _conv(groups=0)),
        (TypeError, "groups must be an int", lambda: _conv(groups=1.0)),
        (ValueError, "strides has 2 entries", lambda: _conv(strides=[1, 1])),
        (ValueError, "strides must be 1 to 63", lambda: _conv(strides=[64])),
        (TypeError, "strides must be a list", lambda: _conv(strides=(1,))),
        (ValueError, "dilations must be 1 to 63", lambda: _conv(dilations=[0])),
        (ValueError, "paddings must be 0 to 255", lambda: _conv(paddings=[-1, 0])),
        (ValueError, "smaller than the kernel", lambda: _conv(paddings=[3, 0])),
        (ValueError, "places", lambda: _conv(dilations=[5])),
        (ValueError, "up to 255", lambda: _conv((1, 4, 300), (2, 4, 256))),
        (
            ValueError,
            "more than 65535",
            lambda: _conv((1, 1, 200, 200), (1, 1, 120, 120), [1, 1], [0] * 4, [1, 1]),
        ),
        (ValueError, "no transposed", lambda: _conv(transposed=True)),
        (TypeError, "transposed must be", lambda: _conv(transposed=1)),
        (ValueError, "output_paddings belong", lambda: _conv(output_paddings=[1])),
        (TypeError, "extend_params must be", lambda: _conv(extend_params=[1])),
        (TypeError, "extend_params takes", lambda: _conv(extend_params={"bias": 1})),
        (ValueError, "no quantised", lambda: _conv(extend_params={"scale": 2.0})),
        (TypeError, "relu_type", lambda: _conv(extend_params={"relu_type": 1})),
        (
            ValueError,
            "bias_tensor has shape",
            lambda: _conv(extend_params={"bias_tensor": pypto.from_numpy(np.ones(3, F))}),
        ),
        (
            TypeError,
            "bias_tensor takes",
            lambda: _conv(extend_params={"bias_tensor": pypto.from_numpy(np.ones(2, np.float16))}),
        ),
    ],
)
def test_bad_arguments_are_refused_in_one_error(
    error: type[Exception], text: str, call: Callable[[], object]
) -> None:
    with pytest.raises(error, match=text):
        call()
