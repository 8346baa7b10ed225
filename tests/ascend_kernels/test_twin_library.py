"""The twin's library: built once, by whoever comes first, and kept where nobody else can write."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.programs.fake_compiler import SLOW_COPY, FakeCompiler, forget, kept, kept_one, started

import pypto_cast as pypto
from ascend_kernels import twin
from ascend_kernels.twin import TwinUnavailableError, library
from simulator import compiled_library


def test_the_second_load_builds_nothing(
    compiler: FakeCompiler, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        forget()
        library()
    (line,) = caplog.messages
    assert line.startswith(f"twin is compiled once, with {compiler.path}, for about a minute: ")
    assert len(compiler.builds) == 1
    assert len(kept(tmp_path)) == 1
    assert (tmp_path / "cache" / "pypto_cast").stat().st_mode & 0o777 == 0o700
    assert not list((tmp_path / "cache" / "pypto_cast").glob("*.tmp"))


def change_version(compiler: FakeCompiler, _: pytest.MonkeyPatch) -> None:
    compiler.write(macros="#define VERSION 2")


def change_flags(_: FakeCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin, "FLAGS", (*twin.FLAGS, "-DOTHER"))


def change_sources(compiler: FakeCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [*twin.sources(), compiler.path]
    monkeypatch.setattr(twin, "sources", lambda: files)


@pytest.mark.parametrize("change", [change_version, change_flags, change_sources])
def test_what_goes_into_a_library_is_part_of_its_name(
    change: Callable[[FakeCompiler, pytest.MonkeyPatch], None],
    compiler: FakeCompiler,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library()
    change(compiler, monkeypatch)
    forget()
    library()
    assert len(compiler.builds) == len(kept(tmp_path)) == 2


def test_every_source_counts() -> None:
    names = {path.name for path in twin.sources()}
    assert {"cast_kernel.h", "cast_instances.h", "twin.cpp", "kernel_operator.h"} <= names


@pytest.mark.slow
def test_eight_processes_build_once(compiler: FakeCompiler, tmp_path: Path) -> None:
    compiler.write(build=SLOW_COPY)
    running = [started() for _ in range(8)]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * 8
    assert outputs == [f"{kept_one(tmp_path)}\n"] * 8
    assert len(compiler.builds) == 1


def test_the_compiler_is_looked_for_once(
    compiler: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    library()
    monkeypatch.setattr(compiled_library.shutil, "which", None)
    library()


def test_without_a_compiler_numpy_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    x = pypto.from_numpy(np.float32([2.0, 2049.0, 65520.0]))
    with pypto.options(engine="twin", vec_tile_shapes=(16,)):
        with pytest.warns(pypto.EngineWarning, match=r"found none of g\+\+, clang\+\+") as caught:
            y = pypto.cast(x, pypto.DT_FP16, pypto.CAST_RINT)
        assert [warning.filename for warning in caught] == [__file__]
        monkeypatch.setenv("CXX", "no-such-compiler -O9")
        with pytest.warns(pypto.EngineWarning, match="CXX=no-such-compiler -O9 is none"):
            pypto.cast(x, pypto.DT_FP16, pypto.CAST_RINT)
    assert y.numpy().tolist() == [2.0, 2048.0, np.inf]


def test_who_asks_for_the_compiler_is_told_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(TwinUnavailableError, match=r"^the twin is not available: .* CXX=no-such-"):
        twin.compiler()


def test_numpy_needs_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=(16,)):
        warnings.simplefilter("error")
        pypto.cast(pypto.from_numpy(np.float32([2.0])), pypto.DT_FP16)
