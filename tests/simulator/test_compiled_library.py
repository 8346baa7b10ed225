"""The cache of compiled libraries: whole, one's own, and said clearly where it cannot be."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.programs.fake_compiler import FakeCompiler, forget, kept, kept_one, started

import pypto_cast as pypto
from ascend_kernels.twin import TwinUnavailableError, library
from simulator import compiled_library

# --- A library that is not whole ---------------------------------------------------------------


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def other_bytes(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def without_record(path: Path) -> None:
    path.with_suffix(".sha256").unlink()


def record_of_nothing(path: Path) -> None:
    path.with_suffix(".sha256").write_bytes(b"\xff")


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "damage",
    [
        other_bytes,
        without_record,
        pytest.param(empty, marks=pytest.mark.exhaustive),
        pytest.param(cut_short, marks=pytest.mark.exhaustive),
        pytest.param(record_of_nothing, marks=pytest.mark.exhaustive),
    ],
)
def test_a_damaged_library_is_built_again(
    damage: Callable[[Path], None], compiler: FakeCompiler, tmp_path: Path
) -> None:
    """In a process of its own: loading half a library ends the process."""
    assert started().wait() == 0
    path = kept_one(tmp_path)
    whole = path.read_bytes()
    damage(path)
    again = started()
    assert again.communicate()[0] == f"{path}\n"
    assert again.returncode == 0
    assert path.read_bytes() == whole
    assert len(compiler.builds) == 2
    forget()
    library()
    assert len(compiler.builds) == 2


def test_what_killed_builds_left_is_cleared(compiler: FakeCompiler, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "pypto_cast"
    folder.mkdir(parents=True, mode=0o700)
    for name in ("twin-0123.4567.tmp", "other-89.1.tmp"):
        (folder / name).write_bytes(b"half of a library")
    library()
    assert not list(folder.glob("*.tmp"))


def test_bytes_are_on_the_disk_before_their_name(
    compiler: FakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    renamed: list[tuple[str, bool]] = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(file: int) -> None:
        synced.append(os.fstat(file).st_ino)
        fsync(file)

    def noted_replace(path: Path, target: Path) -> Path:
        renamed.append((target.suffix, path.stat().st_ino in synced))
        return replace(path, target)

    monkeypatch.setattr(compiled_library.os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    library()
    assert renamed == [(".so", True), (".sha256", True)]


# --- Compilers that are none -------------------------------------------------------------------


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


def test_a_compiler_that_makes_nothing(compiler: FakeCompiler) -> None:
    compiler.write(build="exit 0")
    with pytest.raises(TwinUnavailableError, match=r"compiler .* ends well and makes no library"):
        library()


def test_a_compiler_without_macros_is_none(compiler: FakeCompiler) -> None:
    compiler.write(macros="")
    with pytest.raises(TwinUnavailableError, match=r"-dM -E\), it names none, as a C\+\+ compiler"):
        library()
    assert compiler.builds == []


def test_a_compiler_that_cannot_be_read_as_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", '"unclosed')
    with pytest.raises(TwinUnavailableError, match='CXX="unclosed is no command: No closing quot'):
        library()
    assert pypto.platform().is_twin_available is False


def test_a_library_that_does_not_load(compiler: FakeCompiler, tmp_path: Path) -> None:
    compiler.write(build='while [ $# -gt 1 ]; do [ "$1" = -o ] && echo none >"$2"; shift; done')
    with pytest.raises(TwinUnavailableError, match=r"twin-\w+\.so does not load: .*file too short"):
        library()


# --- The cache ---------------------------------------------------------------------------------


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
    assert compiled_library.cache_folder() == Path("/home/somebody/.cache/pypto_cast")


@pytest.mark.parametrize("base", ["", "cache", "./cache", "~/cache"])
def test_a_relative_folder_is_ignored(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the XDG Base Directory Specification has it; the cache does not move with the shell."""
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert compiled_library.cache_folder() == Path("/home/somebody/.cache/pypto_cast")


def test_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "unknown")
    monkeypatch.setattr(Path, "home", classmethod(unknown))
    with pytest.raises(TwinUnavailableError, match=r"home directory\.\. Set XDG_CACHE_HOME to"):
        library()


def another_users(link: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a link belong to somebody else; what it leads to stays one's own."""
    lstat = Path.lstat

    def owned(path: Path) -> os.stat_result:
        found = lstat(path)
        return os.stat_result((*found[:4], 4242, *found[5:])) if path == link else found

    monkeypatch.setattr(Path, "lstat", owned)


@pytest.mark.parametrize("level", ["base", "base/pypto_cast"])
def test_another_users_link_to_ones_own_folder(
    level: str, compiler: FakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns the link can turn it elsewhere once it was looked at."""
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o700)
    link = tmp_path / level
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(mine)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "base"))
    library()
    assert len(compiler.builds) == 1
    another_users(link, monkeypatch)
    forget()
    with pytest.raises(TwinUnavailableError, match=f"{link} is another user's link"):
        library()


def cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that is mounted read-only, where even root cannot write."""
    mkdir, opened = os.mkdir, Path.open

    def refused(path: Path) -> OSError:
        return OSError(errno.EROFS, "Read-only file system", str(path))

    def read_only_mkdir(path: Path, *arguments: int, **others: int) -> None:
        if Path(path).is_relative_to(folder) and not Path(path).exists():
            raise refused(path)
        mkdir(path, *arguments, **others)

    def read_only_open(path: Path, mode: str = "r", **others: Any) -> Any:
        if path.is_relative_to(folder) and mode != "rb" and mode != "r":
            raise refused(path)
        return opened(path, mode, **others)

    monkeypatch.setattr(os, "mkdir", read_only_mkdir)
    monkeypatch.setattr(Path, "open", read_only_open)


def test_a_read_only_home(
    compiler: FakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    cannot_be_written(tmp_path / "home", monkeypatch)
    x = pypto.from_numpy(np.float32([2.0, 2049.0]))
    with pypto.options(engine="twin", vec_tile_shapes=(16,)):
        text = "cannot be kept in .*Read-only file system.*Set XDG_CACHE_HOME"
        with pytest.warns(pypto.EngineWarning, match=text):
            y = pypto.cast(x, pypto.DT_FP16, pypto.CAST_RINT)
    assert y.numpy().tolist() == [2.0, 2048.0]
    assert compiler.builds == []


def test_a_read_only_home_that_has_the_library(
    compiler: FakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library()
    cannot_be_written(tmp_path / "cache", monkeypatch)
    forget()
    library()
    assert len(compiler.builds) == 1
