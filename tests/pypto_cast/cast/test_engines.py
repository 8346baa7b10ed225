"""The engine of a cast: chosen by name or by what is there, with the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.environment.sources import ROOT
from support.numbers.codes import SEED
from support.numbers.float_environments import ENVIRONMENTS, foreign
from support.numbers.native_cases import NOWHERE, Chain, codes_of_interest, loaded

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX, CastRule
from pypto_cast.dialects import onnx, openvino, paddle
from pypto_cast.options.context import Engine
from simulator.numbers import elementwise, engines
from simulator.numbers.convert import INF_NAN, Conversion, values_of
from simulator.numbers.formats import FP16, FP32, FP64, Codes
from simulator.numbers.native import library
from simulator.numbers.native.library import Native
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

NO_LIBRARY = f"{NOWHERE} cannot be read: there is no such file"
FAST: tuple[Engine, ...] = ("auto", "native", "numpy")


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The library of this checkout, whatever the run has chosen; nothing was warned of yet."""
    monkeypatch.delenv(library.LEVEL_VARIABLE, raising=False)
    setenv(monkeypatch, library.LIBRARY_VARIABLE, loaded().path)
    monkeypatch.setattr(engines, "_WARNED", {})
    with pypto.options(vec_tile_shapes=(64,) * 4):
        yield
    library.find.cache_clear()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the arrays that the native engine is given."""
    lengths: list[int] = []
    real = Native.loop

    def recorded(self: Native, chain: Chain) -> elementwise.Loop:
        convert = real(self, chain)
        assert convert is not None

        def note(codes: Codes, out: Codes) -> None:
            lengths.append(codes.size)
            convert(codes, out)

        return note

    monkeypatch.setattr(Native, "loop", recorded)
    elementwise._loop.cache_clear()
    yield lengths
    elementwise._loop.cache_clear()


def setenv(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    """A new process would see it."""
    monkeypatch.setenv(name, str(value))
    library.find.cache_clear()


def foreign_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "foreign.so").write_bytes(b"\x7fELF")
    setenv(monkeypatch, library.LIBRARY_VARIABLE, tmp_path / "foreign.so")


def halves(engine: Engine | None = None) -> npt.NDArray[Any]:
    with pypto.options(engine=engine):
        return pypto.cast(pypto.from_numpy(np.float32([2.0, 2049.0])), pypto.DT_FP16).numpy()


# --- Bits --------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "rule", MATRIX[A2_A3].values(), ids=lambda rule: f"{rule.src}-{rule.dst}".lower()
)
def test_every_row_through_cast(rule: CastRule) -> None:
    codes = codes_of_interest(rule.src, 500)
    codes = np.ascontiguousarray(codes[:: max(1, codes.size // 2000)])
    codes = codes[: codes.size // 2 * 2].reshape(2, -1)
    codes = codes[:, : codes.shape[1] // 2 * 2]
    x = pypto.from_numpy(values_of(np.ascontiguousarray(codes), rule.src))
    dtype = next(d for d in pypto.DataType if d.format is rule.dst)
    for mode in rule.modes or (RoundMode.RINT,):
        for satmode in pypto.SaturationMode if rule.off else (pypto.SaturationMode.ON,):
            for inf_nan_mode in (True, False):
                given = (dtype, pypto.CastMode[f"CAST_{mode}"], satmode)
                with pypto.options(inf_nan_mode=inf_nan_mode, vec_tile_shapes=(2, 1024)):
                    with pypto.options(exact=True):
                        expected = pypto.cast(x, *given).numpy().tobytes()
                    for engine in FAST:
                        with pypto.options(engine=engine):
                            assert pypto.cast(x, *given).numpy().tobytes() == expected, given


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.reshape(-1, 4)[:, ::2],
        lambda x: x.reshape(-1, 4).T,
        lambda x: x[::-1],
        lambda x: x.astype(">f4"),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32),
        lambda x: x[:1],
    ],
    ids=["strided", "transposed", "reversed", "big-endian", "unaligned", "one"],
)
def test_arrays_of_any_layout(change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> None:
    values = np.random.default_rng(SEED).uniform(-70000, 70000, 4000).astype(np.float32)
    x = pypto.from_numpy(change(values))
    with np.errstate(over="ignore"):
        expected = x.numpy().astype(np.float16)
    for engine in FAST:
        with pypto.options(engine=engine):
            found = pypto.cast(x, pypto.DT_FP16, pypto.CAST_RINT).numpy()
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_the_environment_of_the_caller(engine: Engine, environment: str) -> None:
    x = pypto.from_numpy(values_of(codes_of_interest(FP32, 2000)[-70000:], FP32))
    for mode in (pypto.CAST_RINT, pypto.CAST_CEIL, pypto.CAST_ODD):
        with pypto.options(exact=True):
            expected = pypto.cast(x, pypto.DT_FP16, mode).numpy()
        with pypto.options(engine=engine, threads=2), foreign(environment):
            found = pypto.cast(x, pypto.DT_FP16, mode).numpy()
        np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


# --- Choice ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "is_native"),
    [
        ({}, True),
        ({"engine": "native"}, True),
        ({"engine": "numpy"}, False),
        ({"exact": True}, False),
        ({"fidelity": "instructions"}, False),
    ],
    ids=str,
)
def test_what_converts(chosen: dict[str, Any], is_native: bool, calls: list[int]) -> None:
    x = pypto.from_numpy(np.float32([2.0, 2049.0]))
    with pypto.options(**chosen):
        assert pypto.cast(x, pypto.DT_FP16).numpy().tolist() == [2.0, 2048.0]
    assert calls == [2] * is_native


def test_auto_takes_numpy_where_there_is_no_loop(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    setenv(monkeypatch, library.LEVEL_VARIABLE, "scalar")
    halves("auto")
    assert calls == []
    halves("native")
    assert calls == [2]


def test_threads_share_a_native_cast(calls: list[int]) -> None:
    x = pypto.from_numpy(np.zeros(1 << 20, np.float32))
    with pypto.options(threads=4, vec_tile_shapes=(8192,)):
        pypto.cast(x, pypto.DT_FP16)
        assert calls == [1 << 19] * 2  # of fewer elements each a thread costs more than it saves
        pypto.cast(x[: (1 << 20) - 1], pypto.DT_FP16)
    assert calls[2:] == [(1 << 20) - 1]


DIALECTS: dict[str, Callable[[npt.NDArray[Any]], object]] = {
    "onnx": lambda x: onnx.cast(x, "FLOAT16"),
    "paddle": lambda x: paddle.cast(x, "float16"),
    "openvino-promotion": lambda x: openvino.convert_promote_types(x.astype(np.float16), x[:1]),
    **{
        f"openvino-{way}": lambda x, way=way: openvino.fake_convert(
            x, np.float32([1.5]), numerics=way
        )
        for way in ("plugin", "rne")
    },
}


@pytest.mark.parametrize("call", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("threads", [1, 2])
def test_dialects_take_the_engine_of_the_context(
    call: Callable[[npt.NDArray[Any]], object], threads: int, calls: list[int]
) -> None:
    x = np.linspace(-500, 500, 1 << 17, dtype=np.float32)
    others: tuple[Engine, ...] = ("numpy", "twin")
    for engine in others:
        with pypto.options(engine=engine, threads=threads):
            call(x)
        assert calls == []
    with pypto.options(threads=threads):
        call(x)
    assert sum(calls) >= x.size


# --- Without the library -----------------------------------------------------------------------


def test_auto_says_nothing_where_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    setenv(monkeypatch, library.LIBRARY_VARIABLE, NOWHERE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert halves().tolist() == [2.0, 2048.0]


def test_native_that_is_not_there_warns_and_numpy_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    setenv(monkeypatch, library.LIBRARY_VARIABLE, NOWHERE)
    wanted = f"engine 'native' cannot run, 'numpy' goes on: {NO_LIBRARY}"
    for _ in range(2):
        with pytest.warns(pypto.EngineWarning) as caught:
            assert halves("native").tolist() == [2.0, 2048.0]
        assert [(str(one.message), one.filename) for one in caught] == [(wanted, __file__)]
    with pytest.warns(pypto.EngineWarning) as caught, pypto.options(engine="native"):
        onnx.cast(np.float32([1]), "FLOAT16")
    assert [one.filename for one in caught] == [__file__]


def test_a_damaged_library_is_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    foreign_library(monkeypatch, tmp_path)
    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        for result in pool.map(lambda _: halves(), range(8)):
            assert result.tolist() == [2.0, 2048.0]
    (one,) = (one for one in caught if one.category is pypto.EngineWarning)
    assert "foreign.so was not built from these sources" in str(one.message)
    assert "\n" not in str(one.message)
    with pytest.warns(pypto.EngineWarning, match="not built from these sources"):
        halves("native")


def test_numpy_asks_for_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    foreign_library(monkeypatch, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        halves("numpy")


# --- Which one runs ----------------------------------------------------------------------------


def test_which_engine_runs_and_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = pypto.platform().engine
    assert (found.name, found.reason) == ("native", "")
    assert str(found) == f"native ({found.instructions})"
    setenv(monkeypatch, library.LEVEL_VARIABLE, "scalar")
    forced = pypto.platform().engine
    assert str(forced) == (f"native (scalar): PYPTO_CAST_NATIVE_LEVEL forbids {found.instructions}")
    setenv(monkeypatch, library.LIBRARY_VARIABLE, NOWHERE)
    assert str(pypto.platform().engine) == f"numpy: {NO_LIBRARY}"
    foreign_library(monkeypatch, tmp_path)
    assert "was not built from these sources" in pypto.platform().engine.reason


@pytest.mark.parametrize("path", [NOWHERE, ""])
def test_the_version_names_the_engine(path: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pypto_cast", "--version"],
        cwd=ROOT,
        env={**os.environ, library.LIBRARY_VARIABLE: path or str(loaded().path)},
        capture_output=True,
        text=True,
        check=False,
    )
    engine = f"numpy: {NO_LIBRARY}" if path else str(pypto.platform().engine)
    assert done.stdout == f"pypto-cast {pypto.__version__}, engine {engine}\n"


def test_a_format_without_loops_goes_through_numpy() -> None:
    conversion = Conversion(src=FP64, dst=FP16, mode=RoundMode.RINT, policy=INF_NAN)
    codes = np.float64([1.0, 65520.0, 2.0**-25]).view(np.uint64)
    for engine in engines.ENGINES:
        out = np.empty(3, np.uint16)
        elementwise.loop((conversion,), engine=engine)(codes, out)
        np.testing.assert_array_equal(out, conversion.reference(codes))
