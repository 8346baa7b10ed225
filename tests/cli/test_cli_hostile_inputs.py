"""Inputs of commands that would never end, or grow without limit, are refused in one line."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.environment.command import Command, command

from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.checkpoints.stored import CheckpointError, parsed_json, twice
from pypto_cast.tensors.array_files import mapped_npy, npz_arrays

__all__ = ["command"]  # a fixture

_PAIR = ("--from", "fp32", "--to", "fp16", "--shape", "64,64")
_FACTS = ("--facts", "{}")
READS: dict[str, Sequence[str]] = {
    "cast": ("cast", "{}", "--to", "fp16", "--tile", "8,32"),
    "cast facts": ("cast", "x.npy", "--to", "fp16", "--tile", "8,32", *_FACTS),
    "trace": ("trace", "{}", "--to", "fp16"),
    "checkpoint": ("checkpoint", "{}", "--to", "bf16"),
    "checkpoint settings": ("checkpoint", "x.npy", "--config", "{}"),
    "sweep": ("sweep", "{}"),
    "facts": ("facts", "{}"),
    "tune cost": ("tune", *_PAIR, "--cost-set", "{}"),
    "certainty inputs": ("certainty", "k.py::kernel", "--inputs", "{}"),
    "diff": ("diff", "{}", "x.npy"),
    "diff second": ("diff", "x.npy", "{}"),
    "bounds": ("diff", "x.npy", "x.npy", "--bounds", "{}"),
    "run": ("run", "{}"),
    "certainty kernel": ("certainty", "{}::kernel", "--inputs", "x.npy"),
    "certainty facts": ("certainty", "k.py::kernel", "--inputs", "x.npy", *_FACTS),
    "run facts": ("run", *_FACTS, "k.py"),
    "trace facts": ("trace", "x.npy", "--to", "fp16", *_FACTS),
    "tune facts": ("tune", *_PAIR, *_FACTS),
    "tune kernel": ("tune", *_PAIR, "--config", "c.json", "--config-line", "{}:3"),
}
_OF_ARRAYS = ("cast", "trace", "checkpoint", "certainty inputs", "diff", "diff second", "bounds")
_KERNEL = """
import pypto_cast as pypto

@pypto.jit
def kernel(x: pypto.Tensor([], pypto.DT_FP32), out: pypto.Tensor([], pypto.DT_FP32)):
    out[:] = x
"""


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if sys.platform == "win32":
        pytest.skip("Windows has no named pipes that are files")
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    np.save("x.npy", np.ones((8, 32), np.float32))
    Path("k.py").write_text(_KERNEL)
    return tmp_path / "pipe"


@pytest.mark.parametrize("words", READS.values(), ids=READS)
def test_pipes_are_not_read(command: Command, pipe: Path, words: Sequence[str]) -> None:
    error = command(*(word.replace("{}", str(pipe)) for word in words)).error
    assert "pipe is no regular file; a pipe or a device is not read" in error


DOCUMENTS = {name: words for name, words in READS.items() if name not in _OF_ARRAYS}


@pytest.mark.parametrize("words", DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_of_any_size_are_not_read(
    command: Command, pipe: Path, words: Sequence[str]
) -> None:
    """A hole in a file: what reads it takes gigabytes."""
    with open("big.toml", "wb") as file:
        file.truncate(1 << 40)
    error = command(*(word.replace("{}", "big.toml") for word in words)).error
    assert "big.toml has 1,099,511,627,776 B, more than the 33,554,432 B that are read of" in error


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("facts", "deep"), "deep is no whole facts file: "),
        (("cast", "x.npy", "--to", "fp16", "--tile", "8,32", "--facts", "deep"), "no whole facts"),
        (("tune", *_PAIR, "--cost-set", "./deep.toml"), "deep.toml: lists are nested too deeply"),
        (("sweep", "deep.toml"), "deep.toml: lists are nested too deeply"),
    ],
)
def test_documents_that_are_nested_too_deeply(
    command: Command, pipe: Path, words: Sequence[str], says: str
) -> None:
    Path("deep").write_text("[" * 200_000)
    Path("deep.toml").write_text("a = " + "[" * 200_000)
    assert says in command(*words).error


def test_certificates_that_are_none(command: Command, pipe: Path) -> None:
    words = ("verify", "--pair", "fp16-int8", "--mode", "rint", "--confirm", ".")
    for content in (b"[" * 200_000, b"\xff", b"{}"):
        Path("fp16-int8-rint.json").write_bytes(content)
        ran = command(*words)
        assert ran.code == 1
        assert "fp16-int8-rint.json:" in " ".join((ran.out + ran.err).split())


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_devices_are_not_read(command: Command) -> None:
    for words in (
        ("facts", "/dev/zero"),
        ("run", "/dev/zero"),
        ("trace", "/dev/zero", "--to", "fp16"),
    ):
        assert "/dev/zero is no regular file" in command(*words).error


def test_names_that_occur_twice_are_found_in_one_pass() -> None:
    """Counted in comparisons of names."""
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    names = [Name(f"t{number}") for number in range(2000)]
    assert twice([*names, Name("t1999")]) == "t1999"
    assert compared < 4000
    assert twice(names) is None
    with pytest.raises(ValueError, match="'b' occurs twice"):
        parsed_json(b'{"a": 1, "b": 2, "b": 3}')


def npy_of(shape: tuple[int, ...], descr: str = "<f4") -> bytes:
    out = io.BytesIO()
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, fields)
    return out.getvalue() + bytes(16)


@pytest.mark.parametrize("shape", [(10**30,), (10**10, 10**10), (10**9,)], ids=str)
def test_headers_of_more_than_there_is(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", npy_of(shape))
    with pytest.raises(ValueError, match=r"declares .* B of elements and has"):
        npz_arrays(path)
    with pytest.raises(CheckpointError):
        open_checkpoint(path)


@pytest.mark.parametrize(
    ("descr", "shape"),
    [
        ("<f4", (0, 10**30)),
        ("<f4", (0, 1 << 62, 4)),
        ("<f4", (0,) * 70),
        *((descr, (10**30,)) for descr in ("|V0", "|S0", "<U0")),
        ("|V0", (3,)),
    ],
    ids=str,
)
def test_arrays_that_numpy_cannot_read(
    descr: str, shape: tuple[int, ...], command: Command, tmp_path: Path
) -> None:
    """No file lacks a byte of them, for they have none."""
    array, archive = tmp_path / "x.npy", tmp_path / "x.npz"
    array.write_bytes(npy_of(shape, descr)[:-16])
    with zipfile.ZipFile(archive, "w") as made:
        made.write(array, "x.npy")
    output = tmp_path / "out"
    for path in (array, archive):
        told = command("checkpoint", path, "--to", "bf16", "-o", output).error
        assert told.startswith(f"{path} is no {path.suffix} file that a cast can read: ")
    assert not output.exists()
    with pytest.raises(ValueError, match=r"is no \.npy file that a cast can read"):
        mapped_npy(array)
    with pytest.raises(ValueError, match=r"is no \.npz file of arrays"):
        npz_arrays(archive)


def test_a_tensor_that_no_array_holds(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensor = {"dtype": "F32", "shape": [0, 1 << 62, 4], "data_offsets": [0, 0]}
    header = json.dumps({"x": tensor}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(CheckpointError, match="'x' has a shape that no array has"):
        open_checkpoint(path)


def test_entries_that_occur_twice(command: Command, pipe: Path) -> None:
    with zipfile.ZipFile("twice.npz", "w") as archive:
        archive.writestr("x.npy", npy_of((4,)))
        archive.writestr("x", npy_of((4,)))
    says = "twice.npz is no .npz file of arrays: an entry occurs twice"
    assert command("certainty", "k.py::kernel", "--inputs", "twice.npz").error == says


def test_extents_that_are_no_integers(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", npy_of((True, 4)))
    with pytest.raises(CheckpointError, match=r"declares the shape \[True, 4\]"):
        open_checkpoint(path)


@pytest.mark.parametrize("packed", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2], ids=["lzma", "bzip2"])
@pytest.mark.parametrize("entry", ["x.npy", "a/data.pkl"])
def test_archives_that_are_unpacked_as_a_whole(packed: int, entry: str, tmp_path: Path) -> None:
    """zipfile unpacks a stretch of these at once, whatever it becomes."""
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr(entry, npy_of((4,)))
    with pytest.raises(CheckpointError, match="never does"):
        open_checkpoint(path)
    with pytest.raises(ValueError, match="never does"):
        npz_arrays(path)
