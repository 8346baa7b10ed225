"""Public entries on special values, where the exceptions of the floating-point unit trap.

A trap ends the process, so a test runs this module in another one, in a directory of its own, with
the name of a group of entries. On stderr stands the name of each entry before it is called, and
"done" at the end.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file
from support.devices.checked_devices import stand_in
from support.devices.planted_devices import planted, some_cases

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX
from docs.generators.operation_examples import EXPRESSIONS, chip_of
from pypto_cast import testing
from pypto_cast.cli.main import main
from pypto_cast.device.check import check_casts
from pypto_cast.device.check_steps import CheckPlan
from pypto_cast.device.device_process import measured_by
from pypto_cast.dialects import onnx, openvino, paddle
from pypto_cast.dialects.comparison import compare
from pypto_cast.dtypes.data_types import dtype_of_numpy
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FloatFormat
from tiling.chips import A2_A3, DEFAULT_CHIP

Array = npt.NDArray[Any]
Entry = tuple[str, Callable[[], object]]
TRAPPED = 1 | 4 | 8 | 16
"""fenv.h's invalid, division by zero, overflow and underflow on x86-64, in AArch64 near to it."""
DTYPES = {dtype.format: dtype for dtype in pypto.DataType if dtype.format is not None}
FITTING = {
    "expand_clone": "pypto.expand_clone(pypto.amax(x, -1, True), [8, 32])",
    "reshape": "pypto.reshape(x, [16, 16])",
    "conv": "pypto.conv(pypto.reshape(x, [1, 8, 32]), pypto.reshape(y, [1, 8, 32]), x.dtype, "
    "[1], [2, 2], [1])",
    "prelu": "pypto.prelu(x, y[0:1, :].reshape([32]))",
    "scatter_update": "pypto.scatter_update(x, -2, pypto.reshape(row, [1, 2]), y[0:2, :])",
    "quantize": "pypto.quantize(x, y[:, 0:1].reshape([8]), pypto.DT_INT8, -1)",
    "dequantize": "pypto.dequantize(i, y[:, 0:1].reshape([8]), pypto.DT_FP32, -1)",
    "topk": "pypto.topk(x, 32)[0]",
    "interleave": "pypto.interleave(x, y)",
    "deinterleave": "pypto.deinterleave(x)",
    "normal": "pypto.normal([8, 32], [1234], [0, 1], [1], pypto.DT_FP32)",
    "scaled_mm": "pypto.scaled_mm(*[pypto.cast(pypto.full([2, 64], 1.5, pypto.DT_FP32), "
    "pypto.DT_FP8E4M3)] * 2, pypto.DT_FP32, *[pypto.tensor(None, pypto.DT_FP8E8M0, "
    "data=[[[1.0, 1.0]]] * 2)] * 2, b_trans=True, scale_b_trans=True)",
}
"""Expressions of examples whose shapes are those of the example, for [8, 32]."""
COMMANDS = (
    "cast x.npy --to fp16",
    "checkpoint x.safetensors --to bf16 -o o.safetensors --html o.html",
    "checkpoint x.safetensors --quantize int8 --exclude w -o q.safetensors",
    "diff x.safetensors y.safetensors",
)


def special(dtype: pypto.DataType) -> Array:
    """Special values, with a signalling NaN of each sign; the last row has no NaN."""
    fmt, values = dtype.format, testing.special_values(dtype)
    if isinstance(fmt, FloatFormat) and fmt.inf_code is not None:
        signalling = np.array([fmt.inf_code + 1, fmt.inf_code + 1 | fmt.sign_code], fmt.code_dtype)
        values = np.concatenate([values_of(signalling, fmt), values])
    found: Array = np.resize(values, (8, 32))
    found[-1] = values[2]
    return found


def operations() -> Iterator[Entry]:
    for dtype in (pypto.DT_FP32, pypto.DT_FP16):
        x, codes = special(dtype), special(pypto.DT_INT16)
        at = np.arange(4, dtype=np.int32).reshape(2, 2)
        arrays = {"x": x, "y": x[::-1, ::-1].copy(), "i": codes, "j": codes & 7}
        arrays |= {"at": at, "row": at[0].copy()}
        for name, expression in (EXPRESSIONS | FITTING).items():
            chip = chip_of(name)
            with pypto.options(chip=chip):
                made = [*kernel(f"{name} {dtype}", expression, arrays)]
            yield from ((told, partial(on_chip, chip, run)) for told, run in made)


def on_chip(chip: str, run: Callable[[], object]) -> object:
    with pypto.options(chip=chip):
        return run()


def casts() -> Iterator[Entry]:
    for rule in MATRIX[A2_A3].values():
        expression = f"pypto.cast(x, pypto.{DTYPES[rule.dst].name})"
        yield from kernel(f"cast {rule}", expression, {"x": special(DTYPES[rule.src])})
    there_and_back = "pypto.cast(pypto.cast(x, pypto.DT_FP16), pypto.DT_FP32)"
    yield from kernel("casts", there_and_back, {"x": special(pypto.DT_FP32)})


def kernel(name: str, expression: str, arrays: dict[str, Array]) -> Iterator[Entry]:
    """An expression outside kernels; in one; and its certainty, judged."""
    used = {word: arrays[word] for word in re.findall(r"\b\w+\b", expression) if word in arrays}
    code = compile(expression, name, "eval")

    def compute(**operands: object) -> Any:
        return eval(code, {"pypto": pypto, **operands})

    eager = partial(compute, **{word: pypto.from_numpy(array) for word, array in used.items()})
    try:
        result = eager()
    except TypeError:  # an operation that does not take the dtype
        return
    yield name, eager
    if not isinstance(result, pypto.Tensor):
        return
    out = np.zeros(tuple(map(int, result.shape)), result.numpy().dtype)

    def run(*tensors: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(*(8, 8, 32)[-max(2, out.ndim) :])
        tensors[-1][:] = compute(**dict(zip(used, tensors, strict=False)))

    space: dict[str, Any] = {"run": run}
    words = ", ".join((*used, "out"))
    exec(f"def kernel({words}): run({words})", space)
    space["kernel"].__annotations__ = {
        word: pypto.Tensor[list(array.shape), dtype_of_numpy(array.dtype)]
        for word, array in {**used, "out": out}.items()
    }
    made = pypto.jit(space["kernel"])
    yield f"{name} in a kernel", partial(made, *used.values(), out)
    yield f"certainty of {name}", lambda: judge(made.certainty(*used.values(), out))


def judge(found: pypto.Certainty) -> None:
    """Ask what a certainty tells, and compare it with what it says and with other bits."""
    output = found.outputs[0]
    for row in range(output.shape[0]):
        output.possible((row, *(0,) * (len(output.shape) - 1)))
    assert output.contains(output.values).all()
    testing.assert_possible(output.values, found)
    assert str(found)
    bits = f"V{output.values.itemsize}", f"u{output.values.itemsize}"
    others = output.values.copy()
    others.view(bits[0]).view(bits[1])[...] ^= 1
    with contextlib.suppress(AssertionError):
        testing.assert_possible(others, found)
    with contextlib.suppress(AssertionError):
        testing.assert_bits_equal(others, output.values, nans="class")


def pages() -> Iterator[Entry]:
    def kernel(
        a: pypto.Tensor[[8, 32], pypto.DT_FP32], out: pypto.Tensor[[8, 32], pypto.DT_FP32]
    ) -> None:
        pypto.set_vec_tile_shapes(8, 32)
        out[:] = pypto.exp(a) / 3.0

    made, values = pypto.jit(kernel), special(pypto.DT_FP32)
    out = np.zeros_like(values)
    found = made.certainty(values, out)
    yield "a certainty's page", lambda: found.html("page.html")
    yield "saved bounds", lambda: testing.save_bounds(found, "bounds.npz", force=True)
    yield "remedies", lambda: made.remedies(values, out)

    def function() -> None:
        a, b = pypto.from_numpy(values), pypto.from_numpy(out)
        with pypto.function("function", a, b):
            b[:] = pypto.maximum(a, -1.0) * 2.5

    yield "function", function
    tensor = pypto.from_numpy(values)
    yield "a tensor's text", lambda: (repr(tensor), str(tensor))
    yield "numbers", lambda: pypto.tensor([2], pypto.DT_FP16, data=[float("nan"), 1e300])


def dialects() -> Iterator[Entry]:
    for dtype in (pypto.DT_FP32, pypto.DT_FP16, pypto.DT_BF16):
        x = special(dtype)
        for to in onnx.TensorType:
            yield f"onnx.cast {dtype} {to}", partial(onnx.cast, x, to)
        yield f"onnx.cast_grad {dtype}", partial(onnx.cast_grad, x, x, 1e-3)
        for numerics in ("reference", "plugin", "plugin-avx512fp16", "rne"):
            fake = partial(openvino.fake_convert, x, x[:1], x[1:2], numerics=numerics)
            yield f"fake_convert {dtype} {numerics}", fake
        promote = partial(openvino.convert_promote_types, x, np.float16([1, np.nan]), True)
        yield f"convert_promote_types {dtype}", promote
        for name in ("float16", "bfloat16", "float32", "int64", "bool", "complex64"):
            yield f"paddle.cast {dtype} {name}", partial(paddle.cast, x, name)
        yield f"promote_operands {dtype}", partial(paddle.promote_operands, "add", x, 2.5)
        for value in x[0, :4]:
            compared = partial(compare, value, dtype, pypto.DT_INT8)
            yield f"compare {dtype} {value}", lambda compared=compared: str(compared())
    compared = compare("nan", pypto.DT_FP16, pypto.DT_INT8)
    yield "differences", partial(compared.differences, "pypto", "onnx")
    ends = {"values": (-1e3, 1e3), "steps": 2}
    yield "routes", partial(pypto.routes, pypto.DT_FP16, pypto.DT_UINT16, **ends)
    found, tensor = pypto.routes(pypto.DT_FP32, pypto.DT_INT8), special(pypto.DT_FP32)
    yield "a route", lambda: found.best.cast(pypto.from_numpy(tensor))


def devices() -> Iterator[Entry]:
    cases = some_cases()[:12]
    steps = {step.name: step for step in CheckPlan().steps(DEFAULT_CHIP.name)}
    yield "device-check of casts", partial(check_casts, planted(), cases)
    wrong = planted(lambda program, values, codes: codes ^ 1)
    yield "device-check of other casts", partial(check_casts, wrong, cases)
    yield "device-check of cycles", partial(measured_by, stand_in(), steps["cycles of Cast"])


def commands() -> Iterator[Entry]:
    x = special(pypto.DT_FP32)
    np.save("x.npy", x)
    for name, array in (("x", x), ("y", x[::-1].copy())):
        save_file({"w": array, "v": array[-1:]}, f"{name}.safetensors")
    for line in COMMANDS:
        yield line, partial(succeed, line)


def succeed(line: str) -> None:
    """Run a command, which may find differences."""
    assert main(line.split()) < 2


GROUPS: dict[str, tuple[dict[str, Any], Callable[[], Iterator[Entry]]]] = {
    **{
        each.__name__: ({}, each)
        for each in (operations, casts, pages, dialects, devices, commands)
    },
    "casts by numpy": ({"engine": "numpy"}, casts),
    "casts by instructions": ({"fidelity": "instructions"}, casts),
}
"""The entries of each group, and the options under which they are called."""


def run(name: str) -> None:
    """Call all entries of a group."""
    settings, group = GROUPS[name]
    warnings.simplefilter("ignore")
    faulthandler.enable()
    cube = [[16, 16], [64, 64], [32, 32]]
    with pypto.options(vec_tile_shapes=[8, 32], cube_tile_shapes=cube, **settings):
        entries = list(group())
        with trapped():
            for told, call in entries:
                print(told, file=sys.stderr, flush=True)
                with np.errstate(all="raise"):
                    call()
    print("done", file=sys.stderr)


@contextlib.contextmanager
def trapped() -> Iterator[None]:
    """Unmask the exceptions, where the C library can."""
    library = ctypes.CDLL("libm.so.6") if sys.platform == "linux" else None
    if not hasattr(library, "feenableexcept"):
        yield
        return
    assert library is not None
    library.feclearexcept(TRAPPED)
    library.feenableexcept(TRAPPED)
    try:
        yield
    finally:
        library.fedisableexcept(TRAPPED)


if __name__ == "__main__":
    run(sys.argv[1])
