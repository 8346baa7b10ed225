"""The arguments of a kernel: annotations, and what fits them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import pypto_cast as pypto
from pypto_cast.testing import assert_bits_equal, special_values

Array = npt.NDArray[Any]

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")


@pytest.fixture(autouse=True)
def _clean(pypto_sim: object) -> None:
    """Default options and no tile shape."""


@pypto.jit
def to_bf16(
    x: pypto.Tensor[[pypto.STATIC, ...], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.STATIC, ...], pypto.DT_BF16],
) -> None:
    """Has upstream's form of a kernel: tensors first, annotated, outputs written in place."""
    pypto.set_vec_tile_shapes(*[16] * x.dim)
    out[:] = pypto.cast(x, pypto.DT_BF16, mode=pypto.CastMode.CAST_FLOOR)


def specials() -> Array:
    return np.resize(special_values(pypto.DT_FP32), (24, 32))


def wanted() -> Array:
    with pypto.options(vec_tile_shapes=[16, 16]):
        x = pypto.from_numpy(specials())
        return pypto.cast(x, pypto.DT_BF16, mode=pypto.CAST_FLOOR).numpy()


def plain(x: Any, out: Any) -> None:
    out[:] = x


def annotated(x: Any, out: Any = pypto.Tensor) -> pypto.Kernel:
    """A kernel that copies, with these annotations."""

    def kernel(x: Any, out: Any) -> None:
        out[:] = x

    kernel.__annotations__ = {"x": x, "out": out}
    return pypto.jit(kernel)


FP32, ANY = pypto.DT_FP32, pypto.STATIC
FITS: list[Any] = [
    pypto.Tensor,
    pypto.Tensor[[], FP32],
    pypto.Tensor[FP32],
    pypto.Tensor[[4, 8], FP32],
    pypto.Tensor[[4, 8]],
    pypto.Tensor[(4, 8), FP32, pypto.TileOpFormat.TILEOP_ND, "x"],
    pypto.Tensor[{"shape": [4, 8], "dtype": FP32, "name": "x"}],
    pypto.Tensor[[ANY, ANY], FP32],
    pypto.Tensor[[ANY], FP32],
    pypto.Tensor[[4, pypto.DYNAMIC], FP32],
    pypto.Tensor[[pypto.DYN], FP32],
    pypto.Tensor[[pypto.DYNAMIC, 8], FP32],
    pypto.Tensor[[-1, 8], FP32],
    pypto.Tensor[[4, ...], FP32],
    pypto.Tensor[[...], FP32],
    pypto.Tensor([4, 8], FP32),
    pypto.Tensor([], FP32),
    pypto.Tensor([pypto.DYN, ...], FP32),
    pypto.Tensor([4, 8]),
    pypto.Tensor(),
    pypto.Tensor([pypto.frontend.dynamic("N"), 8]),
]


@pytest.mark.parametrize("annotation", FITS, ids=range(len(FITS)))
def test_annotations_that_fit(annotation: Any) -> None:
    x, out = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    annotated(annotation)(x, out)
    assert (out == 1).all()


@pytest.mark.parametrize(
    ("annotation", "error", "text"),
    [
        (
            pypto.Tensor[[4, 9], FP32],
            ValueError,
            r"x is annotated Tensor\[\[4, 9\], DT_FP32\]",
        ),
        (pypto.Tensor[[4], FP32], ValueError, r"argument has shape \[4, 8\]"),
        (pypto.Tensor[[8, ANY], FP32], ValueError, r"\[8, STATIC\]"),
        (pypto.Tensor[[4, 8, ANY], FP32], ValueError, r"\[4, 8, STATIC\]"),
        (pypto.Tensor[[4, 8, 1, ...], FP32], ValueError, r"\[4, 8, 1, \.\.\.\]"),
        (pypto.Tensor[[5, ...], FP32], ValueError, r"\[5, \.\.\.\]"),
        (pypto.Tensor[[], pypto.DT_FP16], TypeError, "DT_FP16.*the argument has dtype DT_FP32"),
        (pypto.Tensor([4, 8], pypto.DT_BF16), TypeError, "the argument has dtype DT_FP32"),
    ],
    ids=str,
)
def test_what_upstream_accepts_and_gets_wrong(
    annotation: Any, error: type[Exception], text: str
) -> None:
    kernel = annotated(annotation)
    with pytest.raises(error, match=text):
        kernel(np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32))
    with pytest.raises(error, match=text):
        kernel.program(pypto.tensor([4, 8]), pypto.tensor([4, 8]))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (7, "not 7"),
        (np.float32, "not <class 'numpy.float32'>"),
        ({"data": 3}, r"not \['data'\]"),
        ({"dtype": 3}, "takes a DataType and a str"),
        ({"format": 3}, r"must be a pypto\.TileOpFormat"),
        ([[4.5]], "4.5 is no int"),
        ([[True]], "True is no int"),
        ({"shape": 4}, "the shape in an annotation is a list, not 4"),
    ],
    ids=str,
)
def test_annotations_that_say_nothing(key: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        pypto.Tensor[tuple(key) if isinstance(key, list) else key]
    with pytest.raises(ValueError, match="may only come last"):
        pypto.Tensor[[..., 4]]
    with pytest.raises(ValueError, match="-3 is negative"):
        pypto.Tensor[[-3]]


def test_named_dimensions_are_equal_wherever_they_occur() -> None:
    n = pypto.frontend.dynamic("N")
    kernel = annotated(pypto.Tensor([n, 8], FP32), pypto.Tensor([n, 8], FP32))
    with pytest.raises(ValueError, match="dimension N is 4 in x and 5 in out"):
        kernel(np.ones((4, 8), np.float32), np.zeros((5, 8), np.float32))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: pypto.jit(plain), "plain has no tensor parameter"),
        (lambda: pypto.jit(lambda *x: None), "a kernel has no"),
        (lambda: pypto.jit(plain, speed={}), "jit has no option 'speed'"),
        (lambda: pypto.jit(host_options=3), "host_options must be a dict, not 3"),
    ],
)
def test_functions_that_are_no_kernels(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        make()

    def late(scale: int, x: pypto.Tensor) -> None: ...

    with pytest.raises(TypeError, match="tensor x comes after scale"):
        pypto.jit(late)

    def unknown(x: Any) -> None: ...

    unknown.__annotations__ = {"x": "pypto.Tensor[[nowhere], FP32]"}
    with pytest.raises(TypeError, match="name 'nowhere' is not defined"):
        pypto.jit(unknown)


@pypto.jit
def scaled(x: pypto.Tensor, out: pypto.Tensor, tile: int, mode: Any = pypto.CAST_RINT) -> None:
    pypto.set_vec_tile_shapes(tile)
    out[:] = pypto.cast(x, out.dtype, mode=mode)


def test_other_arguments_by_position_by_name_or_by_default() -> None:
    x, out = np.float32([1.7]), np.zeros(1, np.int32)
    for arguments, named, value in [
        ((16,), {}, 2),
        ((16, pypto.CAST_FLOOR), {}, 1),
        ((), {"tile": 16, "mode": pypto.CAST_TRUNC}, 1),
        ((16,), {"mode": pypto.CAST_CEIL}, 2),
    ]:
        scaled(x, out, *arguments, **named)
        assert out.tolist() == [value]


@pytest.mark.parametrize(
    ("arguments", "named", "text"),
    [
        (0, {}, "takes 2 tensors by position"),
        (1, {"out": 1}, r"got 1 arguments by position and out by name"),
        (2, {}, "misses its argument tile"),
        (2, {"tile": 1, "speed": 2}, "got 0 more arguments by position and"),
        (6, {}, "got 4 more arguments"),
        (3, {"tile": 1}, "got tile twice"),
    ],
)
def test_calls_that_do_not_fit(arguments: int, named: dict[str, Any], text: str) -> None:
    values = [np.float32([1.7]), np.zeros(1, np.int32), 16, pypto.CAST_RINT, 1, 2]
    with pytest.raises(TypeError, match=text):
        scaled(*values[:arguments], **named)


@pytest.mark.parametrize("wrong", [[1.0], 3, None, "x", np.ma.masked_array([1.0]), b""], ids=str)
def test_arguments_that_are_no_arrays(wrong: Any) -> None:
    with pytest.raises(TypeError, match="scaled: x "):
        scaled(wrong, np.zeros(1, np.int32), 16)
    with pytest.raises(TypeError, match="scaled: x is declared without values"):
        scaled(pypto.tensor([1]), np.zeros(1, np.int32), 16)
    with pytest.raises(TypeError, match="float64"):
        scaled(np.zeros(1), np.zeros(1, np.int32), 16)


def test_tensors_with_values_are_arguments_too() -> None:
    held = np.zeros((24, 32), ml_dtypes.bfloat16)
    to_bf16(pypto.from_numpy(specials()), pypto.from_numpy(held))
    assert_bits_equal(held, wanted())
    assert len(to_bf16.program(pypto.from_numpy(specials()), pypto.from_numpy(held))) == 1


def bf16(values: Any) -> pypto.Tensor:
    return pypto.cast(pypto.from_numpy(np.full((4, 16), values, np.float32)), pypto.DT_BF16)


def test_a_tensor_that_is_open_is_open_in_the_kernel() -> None:
    given = pypto.exp(pypto.from_numpy(np.full((4, 16), 0.3, np.float32)))
    copied = annotated(pypto.Tensor[[4, 16], FP32], pypto.Tensor[[4, 16], FP32])
    found = copied.certainty(given, np.zeros((4, 16), np.float32))
    assert (found["out"].certain.sum(), found.undecided) == (0, 64)
    assert [cause.operation for cause in found["out"].undecided_by_cause] == ["exp"]
    assert (found["out"].low == given.enclosure().low).all()


@pytest.mark.parametrize("way", ["kernel", "function"])
def test_a_tensor_that_a_kernel_wrote_has_nothing_of_its_former_values(way: str) -> None:
    out, x = pypto.exp(bf16(0.3)), bf16(1.0)
    if way == "kernel":
        annotated(pypto.Tensor[[4, 16], pypto.DT_BF16], pypto.Tensor[[4, 16], pypto.DT_BF16])(
            x, out
        )
    else:
        with pypto.function("copy", x, out):
            out[:] = x
    assert out.enclosure().certain().all()
    assert (pypto.abs(out).numpy() == 1).all()


@pytest.mark.parametrize(
    "write",
    [
        lambda out: out.numpy().fill(1.0),
        lambda out: annotated(
            pypto.Tensor[[4, 16], pypto.DT_BF16], pypto.Tensor[[4, 16], pypto.DT_BF16]
        )(bf16(1.0), pypto.view(out, [4, 16], [0, 0])),
    ],
)
def test_an_operation_outside_takes_what_was_written_to_the_array(write: Any) -> None:
    out = pypto.exp(bf16(0.3))
    expected = pypto.exp(out).numpy()
    assert (pypto.exp(out).numpy() == expected).all()  # by the FP32 value, also once it was read
    write(out)
    assert (pypto.abs(out).numpy() == 1).all()


def test_a_kernel_keeps_name_docstring_and_options() -> None:
    assert to_bf16.__name__ == "to_bf16"
    assert (to_bf16.__doc__ or "").startswith("Has upstream's form of a kernel")
    assert repr(to_bf16).startswith("<kernel to_bf16(x: Tensor[[STATIC, ...], DT_FP32], out: ")
    assert to_bf16.run_mode is pypto.RunMode.SIM
    assert pypto.jit(runtime_options={"run_mode": 1})(scaled.__wrapped__).run_mode.name == "SIM"


@pytest.mark.parametrize("given", [3, pypto.RunMode.SIM, "kernel"])
def test_jit_takes_a_function(given: Any) -> None:
    with pytest.raises(TypeError, match=r"jit takes a function, not .*; its options are given by"):
        pypto.jit(given)


def test_an_array_parameter_without_annotation_is_named() -> None:
    @pypto.jit
    def kernel(x: pypto.Tensor[[4], pypto.DT_FP32], out: Any) -> None:
        out[:] = pypto.cast(x, pypto.DT_FP16)

    with pytest.raises(TypeError, match=r"out is an array \(ndarray\); annotate it as out:"):
        kernel(np.zeros(4, np.float32), np.zeros(4, np.float16))


def test_parameters_that_pack_are_errors_of_upstreams_parser() -> None:
    def several(x: pypto.Tensor[[4], pypto.DT_FP32], *rest: Any) -> None: ...
    def named(x: pypto.Tensor[[4], pypto.DT_FP32], **rest: Any) -> None: ...

    for kernel in (several, named):
        for kind in (pypto.error.ParserError, TypeError):
            with pytest.raises(kind, match="name each parameter"):
                pypto.jit(kernel)


@pypto.jit
def through_hf8(
    x: pypto.Tensor[[4, 64], pypto.DT_HF8],
    out: pypto.Tensor[[4, 64], pypto.DT_HF8],
) -> None:
    pypto.set_vec_tile_shapes(4, 64)
    out[:] = pypto.cast(pypto.cast(x, pypto.DT_FP32) * 2.0, pypto.DT_HF8)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_codes_of_hf8_are_handed_in_as_bytes(library: str) -> None:
    """Neither library has values of it; upstream's models have its codes in tensors of uint8."""
    codes = np.arange(256, dtype=np.uint8).reshape(4, 64)
    given, out = codes.copy(), np.zeros_like(codes)
    to = pytest.importorskip(library).from_numpy if library == "torch" else np.asarray
    with pypto.options(chip="Ascend950PR", vec_tile_shapes=(4, 64)):
        through_hf8(to(given), to(out))
        held = pypto.cast(pypto.tensor([4, 64], pypto.DT_HF8, data=codes), pypto.DT_FP32)
        doubled = pypto.from_numpy(held.numpy() * np.float32(2))
        wanted = pypto.cast(doubled, pypto.DT_HF8).numpy()
    np.testing.assert_array_equal(out, wanted.view(np.uint8))
    np.testing.assert_array_equal(given, codes)


def test_bytes_are_handed_in_for_no_other_float() -> None:
    @pypto.jit
    def widened(
        x: pypto.Tensor[[4, 64], pypto.DT_FP8E4M3], out: pypto.Tensor[[4, 64], pypto.DT_FP32]
    ) -> None:
        out[:] = pypto.cast(x, pypto.DT_FP32)

    with (
        pypto.options(chip="Ascend950PR", vec_tile_shapes=(4, 64)),
        pytest.raises(TypeError, match=r"DT_FP8E4M3\]; the argument has dtype DT_UINT8"),
    ):
        widened(np.zeros((4, 64), np.uint8), np.zeros((4, 64), np.float32))
