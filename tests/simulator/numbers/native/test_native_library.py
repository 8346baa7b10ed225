"""Finding and checking the library: a bad one is refused in one line."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.numbers.native_cases import loaded

from simulator.numbers.native import library
from simulator.numbers.native.library import NativeUnavailableError, native

NAME = library.NAME + library.SUFFIXES[0]


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A library on its own."""
    shutil.copy(loaded().path, tmp_path / "good.so")
    monkeypatch.delenv(library.LEVEL_VARIABLE, raising=False)
    monkeypatch.delenv(library.LIBRARY_VARIABLE, raising=False)
    library.find.cache_clear()
    yield tmp_path
    library.find.cache_clear()


def refusal() -> str:
    library.find.cache_clear()
    with pytest.raises(NativeUnavailableError) as caught:
        native()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def install(place: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> list[Path]:
    """Installs the good library under these names, recorded as pip records it."""
    record = place / "site" / "pypto_cast-1.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    content = (place / "good.so").read_bytes()
    code = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    lines = ["pypto_cast/cast/api.py,,"]
    for name in names:
        path = place / "site" / name
        path.parent.mkdir()
        path.write_bytes(content)
        lines.append(f"{name},sha256={code},{len(content)}")
    record.write_text("\n".join(lines) + "\n")
    (record.parent / "METADATA").write_text(f"Name: {library.DISTRIBUTION}\nVersion: 1\n")
    found = importlib.metadata.PathDistribution(record.parent)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: found)
    return [place / "site" / name for name in names]


def test_the_variable_names_the_library(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.LIBRARY_VARIABLE, str(place / "good.so"))
    found = native()
    assert found.path == place / "good.so"
    assert found.level == found.levels[-1]
    assert native() is found


def test_the_variable_names_the_level(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.LIBRARY_VARIABLE, str(place / "good.so"))
    monkeypatch.setenv(library.LEVEL_VARIABLE, "baseline")
    assert native().level == "baseline"
    monkeypatch.setenv(library.LEVEL_VARIABLE, "avx1024")
    assert "PYPTO_CAST_NATIVE_LEVEL=avx1024 is no level" in refusal()
    assert "scalar, baseline" in refusal()


def test_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "DISTRIBUTION", "no-such-distribution")
    assert "no-such-distribution is not installed" in refusal()


def test_no_compiler_when_it_was_installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(place, monkeypatch)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(place))
    assert "without the native engine: a C++17 compiler is needed; found none" in refusal()


def test_a_compiler_that_failed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(place, monkeypatch)
    monkeypatch.setenv("CXX", sys.executable)
    assert f"which {sys.executable} can build: `pip install -v` says what fails" in refusal()


def test_windows(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(place, monkeypatch)
    monkeypatch.setattr(sys, "platform", "win32")
    assert refusal() == "the native engine is not built on Windows"


def test_an_installed_library(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = install(place, monkeypatch, f"somewhere/{NAME}")
    assert native().path == path


@pytest.mark.parametrize("kept", [0, 3, 64, 4096, 0.5, 0.99, -1])
def test_a_cut_file(place: Path, monkeypatch: pytest.MonkeyPatch, kept: float) -> None:
    content = (place / "good.so").read_bytes()
    size = int(len(content) * kept) if 0 < kept < 1 else int(kept)
    (path,) = install(place, monkeypatch, f"somewhere/{NAME}")
    path.write_bytes(content[:size])
    text = refusal()
    assert str(path) in text
    assert "install pypto-cast again" in text


def test_a_changed_byte(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = install(place, monkeypatch, f"somewhere/{NAME}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert refusal() == f"{path} is damaged; install pypto-cast again"


def test_a_file_that_is_no_library(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "text.so").write_text(f"I contain {library.digest()}")
    monkeypatch.setenv(library.LIBRARY_VARIABLE, str(place / "text.so"))
    assert "cannot be loaded" in refusal()


def test_a_missing_file_and_a_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (place / "absent.so", place):
        monkeypatch.setenv(library.LIBRARY_VARIABLE, str(path))
        assert f"{path} cannot be read" in refusal()


def test_other_sources(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = place / "csrc"
    shutil.copytree(library.SOURCES, copy)
    (copy / "loops.h").write_text((copy / "loops.h").read_text() + "\n")
    monkeypatch.setattr(library, "SOURCES", copy)
    monkeypatch.setenv(library.LIBRARY_VARIABLE, str(place / "good.so"))
    assert "was not built from these sources" in refusal()


def test_another_version(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "VERSION", library.VERSION + 1)
    monkeypatch.setenv(library.LIBRARY_VARIABLE, str(place / "good.so"))
    assert f"has version {library.VERSION - 1} where {library.VERSION}" in refusal()


def test_a_good_library_behind_a_bad_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = install(place, monkeypatch, f"first/{NAME}", f"second/{NAME}")
    bad.write_bytes(b"")
    assert native().path == good
