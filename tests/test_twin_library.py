"""The twin's library: built once, by whoever comes first, and kept where nobody else can write."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from twin_programs import needs_twin

import pypto_cast as pypto
from ascend_kernels import twin_library
from ascend_kernels.twin_library import TwinUnavailableError, library

ROOT = Path(__file__).parents[1]

COMPILER = """\
#!/bin/sh
# A compiler that notes what it is asked for and gives a library built before.
case "$*" in
    {refused}) echo "unknown option" >&2; exit 1 ;;
    *-dM*) echo "#define VERSION {version}"; exit 0 ;;
esac
echo "$*" >>"{log}"
{build}
"""
COPY = 'sleep 0.5; while [ $# -gt 1 ]; do [ "$1" = -o ] && cp "{real}" "$2"; shift; done'


class FakeCompiler:
    def __init__(self, folder: Path, real: str) -> None:
        self.path = folder / "compiler"
        self.log = folder / "log"
        self.real = real
        self.write()

    def write(self, *, refused: str = "--no-such", version: int = 1, build: str = COPY) -> None:
        build = build.format(real=self.real)
        text = COMPILER.format(refused=refused, version=version, log=self.log, build=build)
        self.path.write_text(text)
        self.path.chmod(0o755)

    @property
    def builds(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCompiler]:
    needs_twin()
    fake = FakeCompiler(tmp_path, library()._name)
    monkeypatch.setenv("CXX", str(fake.path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield fake
    forget()


def forget() -> None:
    """As in a new process."""
    twin_library._found.cache_clear()
    twin_library._path.cache_clear()


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "pypto_cast").glob("*.so"))


def test_the_second_load_builds_nothing(compiler: FakeCompiler, tmp_path: Path) -> None:
    for _ in range(3):
        forget()
        library()
    assert len(compiler.builds) == 1
    assert len(kept(tmp_path)) == 1
    assert (tmp_path / "cache" / "pypto_cast").stat().st_mode & 0o777 == 0o700
    assert not list((tmp_path / "cache" / "pypto_cast").glob("*.tmp"))


def change_version(compiler: FakeCompiler, _: pytest.MonkeyPatch) -> None:
    compiler.write(version=2)


def change_flags(_: FakeCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin_library, "FLAGS", (*twin_library.FLAGS, "-DOTHER"))


def change_sources(compiler: FakeCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [*twin_library.sources(), compiler.path]
    monkeypatch.setattr(twin_library, "sources", lambda: files)


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
    names = {path.name for path in twin_library.sources()}
    assert {"cast_kernel.h", "cast_instances.h", "twin.cpp", "kernel_operator.h"} <= names


def test_two_processes_build_once(compiler: FakeCompiler, tmp_path: Path) -> None:
    code = "from ascend_kernels.twin_library import library; print(library()._name)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert outputs[0] == outputs[1]
    assert len(compiler.builds) == len(kept(tmp_path)) == 1


def test_a_compiler_that_refuses_native_builds_portably(compiler: FakeCompiler) -> None:
    library()
    compiler.write(refused="*-march=native*")
    forget()
    library()
    native, portable = compiler.builds
    assert "-march=native" in native
    assert "-march" not in portable


def test_a_failing_compiler_is_quoted_and_not_asked_again(compiler: FakeCompiler) -> None:
    compiler.write(build='echo "no space left for jokes" >&2; exit 1')
    for _ in range(3):
        with pytest.raises(TwinUnavailableError, match="no space left for jokes"):
            library()
    assert len(compiler.builds) == 1
    assert not kept(compiler.path.parent)


@pytest.mark.parametrize("flaw", ["a file", "writable by others"])
def test_a_cache_that_cannot_be_used(
    flaw: str, compiler: FakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    if flaw == "a file":
        base.write_text("")
    else:
        (base / "pypto_cast").mkdir(parents=True)
        (base / "pypto_cast").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    with pytest.raises(TwinUnavailableError, match=r"cannot be kept in .*Set XDG_CACHE_HOME"):
        library()
    assert compiler.builds == []


def test_the_cache_is_in_the_home_folder_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert twin_library.cache_folder() == Path("/home/somebody/.cache/pypto_cast")


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


def test_numpy_needs_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=(16,)):
        warnings.simplefilter("error")
        pypto.cast(pypto.from_numpy(np.float32([2.0])), pypto.DT_FP16)
