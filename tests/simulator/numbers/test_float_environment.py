"""A rounding direction or a flush mode that another library left on this thread changes no bit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.numbers.float_environments import ENVIRONMENTS, foreign
from support.programs.twin_programs import CASES, needs_twin, random_codes

import pypto_cast as pypto
from ascend_kernels import twin
from ascend_kernels.matrix import MATRIX, CastRule
from ascend_kernels.program import TileProgram
from pypto_cast.dialects import onnx, openvino, paddle
from pypto_cast.dialects.onnx.types import FORMATS, TensorType
from simulator.machine import execute as machine
from simulator.numbers import elementwise, fast, float_environment
from simulator.numbers.convert import INF_NAN, Conversion, values_of
from simulator.numbers.engines import Engine
from simulator.numbers.formats import FP16, FP32, FP64, Format
from simulator.numbers.rounding import RoundMode, boundary_codes
from tiling.chips import A2_A3

ELEMS = 2000
NUMBERS = [dst for dst in TensorType if dst is not TensorType.STRING]

in_every_environment = pytest.mark.parametrize("environment", ENVIRONMENTS)
in_every_engine = pytest.mark.parametrize("engine", ["auto", "numpy"])


@functools.lru_cache(maxsize=16)
def worth_converting(fmt: Format) -> np.ndarray:
    """Returns codes where rounding decides, evenly thinned, and random ones of every magnitude."""
    codes = boundary_codes(fmt)
    codes = np.concatenate([codes[:: -(-codes.size // ELEMS)], random_codes(fmt, 1000, 1)])
    shifts = np.arange(codes.size) % fmt.bits
    small = codes >> shifts.astype(fmt.code_dtype)
    return values_of(np.concatenate([codes, small]), fmt)


def assert_no_difference(environment: str, run: Callable[[], list[np.ndarray]]) -> None:
    wanted = run()
    with foreign(environment):
        assert not float_environment.is_default()
        found = run()
    assert float_environment.is_default()
    for actual, expected in zip(found, wanted, strict=True):
        if expected.dtype == object:
            assert actual.tolist() == expected.tolist()
            continue
        np.testing.assert_array_equal(actual.view(np.uint8), expected.view(np.uint8))


def programs(rule: CastRule, elems: int) -> list[tuple[TileProgram, np.ndarray]]:
    """Every way of one row of the matrix, on the same values."""
    values = worth_converting(rule.src)[-elems:]
    tile = (min(2048, values.size),)
    return [(case.program(values.shape, tile), values) for case in CASES if case.rule is rule]


every_rule = pytest.mark.parametrize(
    "rule", MATRIX[A2_A3].values(), ids=lambda rule: f"{rule.src}-{rule.dst}".lower()
)


@pytest.mark.slow
@in_every_environment
@in_every_engine
@every_rule
@pytest.mark.sampled(4)
def test_casts(rule: CastRule, engine: Engine, environment: str) -> None:
    jobs = programs(rule, ELEMS)
    assert_no_difference(
        environment, lambda: [machine.execute(*job, engine=engine) for job in jobs]
    )


@pytest.mark.slow
@in_every_environment
@every_rule
@pytest.mark.sampled(4)
def test_casts_by_instructions(rule: CastRule, environment: str) -> None:
    run = functools.partial(machine.execute, fidelity="instructions")
    jobs = programs(rule, 500)
    assert_no_difference(
        environment, lambda: [run(*job, exact=exact) for job in jobs for exact in (False, True)]
    )


@pytest.mark.slow
@in_every_environment
@every_rule
@pytest.mark.sampled(3)
def test_casts_of_the_twin(rule: CastRule, environment: str) -> None:
    needs_twin()
    jobs = programs(rule, ELEMS)
    assert_no_difference(
        environment, lambda: [twin.execute(*job, threads=n) for job in jobs for n in (1, 2)]
    )


@in_every_environment
@pytest.mark.parametrize("dtype", [pypto.DT_FP16, pypto.DT_BF16, pypto.DT_INT32, pypto.DT_FP32])
@pytest.mark.parametrize("mode", [pypto.CAST_CEIL, pypto.CAST_FLOOR, pypto.CAST_RINT])
def test_many_threads(dtype: pypto.DataType, mode: pypto.CastMode, environment: str) -> None:
    codes = np.arange(1, 1 << 17, dtype=np.uint32)
    x = pypto.from_numpy(np.concatenate([codes, codes | 0x80000000]).view(np.float32))
    with pypto.options(vec_tile_shapes=[8192], threads=2):
        assert_no_difference(environment, lambda: [pypto.cast(x, dtype, mode=mode).numpy()])


@in_every_environment
@in_every_engine
def test_threads_born_in_a_foreign_environment(engine: Engine, environment: str) -> None:
    """They keep it when the thread that made them has long gone back."""
    conversion = Conversion(src=FP32, dst=FP16, mode=RoundMode.RINT, policy=INF_NAN)
    codes = worth_converting(FP32).view(np.uint32)
    wanted, found = (np.empty(codes.size, np.uint16) for _ in range(2))
    kernel = elementwise.loop((conversion,), engine=engine)
    kernel(codes, wanted)
    with ThreadPoolExecutor(1) as pool:
        with foreign(environment):
            pool.submit(int).result()
        assert not pool.submit(float_environment.is_default).result()
        pool.submit(kernel, codes, found).result()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.slow
@in_every_environment
def test_tables_made_in_a_foreign_environment(environment: str) -> None:
    """Tables that a fast path prepares once serve the default environment afterwards."""
    pairs = [(FP16, FP32), (FP64, FORMATS[TensorType.FLOAT8E5M2]), (FP32, FP16)]
    for src, dst in pairs:
        conversion = Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=INF_NAN)
        codes = worth_converting(src).view(src.code_dtype)
        out = np.empty(codes.size, dst.code_dtype)
        fast.loop.cache_clear()
        elementwise._loop.cache_clear()
        with foreign(environment):
            elementwise.loop((conversion,), engine="numpy")
        elementwise.loop((conversion,), engine="numpy")(codes, out)
        np.testing.assert_array_equal(out, conversion.reference(codes))


@in_every_environment
@pytest.mark.parametrize("src", FORMATS, ids=lambda src: src.name.lower())
@pytest.mark.sampled(9)
def test_onnx(src: TensorType, environment: str) -> None:
    values = worth_converting(FORMATS[src])[::3]
    assert_no_difference(
        environment,
        lambda: [onnx.cast(values, dst, saturate=s) for dst in NUMBERS for s in (True, False)],
    )


@pytest.mark.slow
@in_every_environment
def test_onnx_text_and_gradients(environment: str) -> None:
    texts = np.array(["0.1", "-1e-45", "16777217", "1e-310", "-65519.99", "-0"])
    doubles = worth_converting(FP64)
    floats = worth_converting(FP32)

    def run() -> list[np.ndarray]:
        read = [onnx.cast(texts, dst) for dst in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")]
        written = [onnx.cast(values[::50], "STRING") for values in (doubles, floats)]
        scaled = [
            onnx.cast_grad(values, values, factor)
            for values in (doubles, floats)
            for factor in (0.1, -3.0, 1e-300, float("inf"))
        ]
        return [*read, *written, *scaled]

    assert_no_difference(environment, run)


@in_every_environment
def test_paddle(environment: str) -> None:
    doubles, longs = worth_converting(FP64), worth_converting(FORMATS[TensorType.INT64])
    pairs = np.stack([doubles, doubles[::-1]], axis=-1).view(np.complex128)
    assert_no_difference(
        environment,
        lambda: [
            paddle.cast(values, dtype)
            for values in (doubles, longs, pairs)
            for dtype in ("float16", "bfloat16", "float32", "int64", "complex64")
        ],
    )


@in_every_environment
@pytest.mark.parametrize("numerics", ["reference", "plugin", "plugin-avx512fp16", "rne"])
@pytest.mark.sampled(12)
def test_fake_convert(numerics: str, environment: str) -> None:
    jobs = [
        (data, scale, shift, name)
        for fmt in (FP32, FP16, FORMATS[TensorType.BFLOAT16])
        for data in [worth_converting(fmt)]
        for scale in (data[::-1].copy(), np.array([1.7], fmt.dtype))
        for shift in (None, np.roll(data, 7)[: scale.size])
        for name in ("f8e4m3", "f8e5m2")
    ]
    assert_no_difference(
        environment, lambda: [openvino.fake_convert(*job, numerics=numerics) for job in jobs]
    )
