"""Finding, checking and building the library: a bad one is refused in one line."""

from __future__ import annotations

import importlib.metadata
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.native_cases import library_path

from simulator.numbers.native import building, library
from simulator.numbers.native.library import NativeUnavailableError, native

NAME = library.NAME + library.SUFFIXES[0]


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A library on its own, and nothing in the cache."""
    copy = tmp_path / "good.so"
    shutil.copy(library_path(), copy)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
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


def without_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "DISTRIBUTION", "no-such-distribution")


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


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    without_installed(monkeypatch)
    assert "no library libpypto_cast_native is installed" in refusal()


def test_a_library_in_the_cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_installed(monkeypatch)
    folder = library.cache_folder() / library.digest()[:32]
    folder.mkdir(parents=True, mode=0o700)
    shutil.copy(place / "good.so", folder / NAME)
    assert native().path == folder / NAME


def test_an_installed_library(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = place / "site" / f"{library.DISTRIBUTION.replace('-', '_')}-1.dist-info" / "RECORD"
    installed = place / "site" / "somewhere" / NAME
    for folder in (record.parent, installed.parent):
        folder.mkdir(parents=True)
    shutil.copy(place / "good.so", installed)
    record.write_text(f"somewhere/{NAME},,\n")
    (record.parent / "METADATA").write_text(f"Name: {library.DISTRIBUTION}\nVersion: 1\n")
    found = importlib.metadata.PathDistribution(record.parent)
    monkeypatch.setattr(importlib.metadata, "files", lambda name: found.files)
    assert native().path == installed


@pytest.mark.parametrize("kept", [0, 3, 64, 4096, 0.5, 0.99, -1])
def test_a_cut_file(place: Path, monkeypatch: pytest.MonkeyPatch, kept: float) -> None:
    content = (place / "good.so").read_bytes()
    size = int(len(content) * kept) if 0 < kept < 1 else int(kept)
    (place / "cut.so").write_bytes(content[:size])
    monkeypatch.setenv(library.LIBRARY_VARIABLE, str(place / "cut.so"))
    text = refusal()
    assert "cut.so" in text
    assert "build or install it again" in text


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
    without_installed(monkeypatch)
    (place / NAME).write_bytes(b"")
    candidates = [place / NAME, place / "good.so"]
    monkeypatch.setattr(library, "_candidates", lambda expected: iter(candidates))
    assert native().path == place / "good.so"


def test_building_without_cmake(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(building.BuildError, match="cmake is not on PATH"):
        building.build()


def test_building_with_a_compiler_that_fails(place: Path) -> None:
    with pytest.raises(building.BuildError, match="cmake -S fails"):
        building.build(place / "new", ["CMAKE_CXX_COMPILER=/bin/false"])
    assert not any((place / "new").iterdir())


def test_what_is_built_is_not_built_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(place / "good.so", place / NAME)
    monkeypatch.setenv("PATH", "")
    assert building.build(place) == place / NAME
