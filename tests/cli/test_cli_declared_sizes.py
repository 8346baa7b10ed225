"""Files that declare far more than they hold: refused in one line, without memory for it."""

from __future__ import annotations

import json
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.environment.command import Command, command

__all__ = ["command"]  # a fixture

resource = pytest.importorskip("resource", reason="the peak of memory is told by POSIX only")
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="holes in files and KiB in ru_maxrss are Linux's"
)

SPARE_BYTES = 512 << 20
"""More than a command takes besides, and far less than any of the files declares."""


KERNEL = """
import pypto_cast as pypto

@pypto.jit
def kernel(x: pypto.Tensor([], pypto.DT_INT8), out: pypto.Tensor([], pypto.DT_INT8)):
    out[:] = x
"""


def npy(path: Path, descr: str, shape: tuple[int, ...], held_bytes: int) -> None:
    """An array with a header of its own and a hole for its data."""
    with path.open("wb") as file:
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + held_bytes)


def npy_header(path: Path, declared_bytes: int, held_bytes: int) -> None:
    with path.open("wb") as file:
        file.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", declared_bytes) + b"{")
        file.truncate(held_bytes)


def npz(path: Path, declared_bytes: int) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as file,
    ):
        header = {"descr": "|i1", "fortran_order": False, "shape": (declared_bytes,)}
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(declared_bytes >> 20):
            file.write(bytes(1 << 20))


def safetensors(path: Path, header_bytes: int, tensor: dict[str, object], held_bytes: int) -> None:
    text = json.dumps({"x": tensor}).encode() if tensor else b"{}"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", header_bytes or len(text)) + text)
        file.truncate(file.tell() + held_bytes)


def tensor(elems: int, size_bytes: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": [elems], "data_offsets": [0, size_bytes]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("declared")
    npz(folder / "bomb.npz", 1 << 30)
    (folder / "k.py").write_text(KERNEL)
    npy(folder / "many.npy", "<f2", (1 << 31,), 2 << 31)
    npy(folder / "swapped.npy", ">u2", (1 << 31,), 2 << 31)
    npy(folder / "short.npy", "<f4", (1 << 62,), 4)
    npy(folder / "beyond.npy", "<f4", (1 << 32, 1 << 32), 4)
    npy_header(folder / "header.npy", 0xFFFFFFF0, 64)
    npy_header(folder / "hole.npy", 0xFFFFFFF0, 5 << 30)
    safetensors(folder / "header.safetensors", 1 << 60, {}, 64)
    safetensors(folder / "hole.safetensors", 1 << 40, {}, 2 << 40)
    safetensors(folder / "short.safetensors", 0, tensor(1 << 40, 4 << 40), 16)
    safetensors(folder / "beyond.safetensors", 0, tensor(1 << 62, 16), 16)
    return folder


CASES = (
    ("cast bomb.npz --to fp16", "is no .npy file but a zip archive"),
    ("cast many.npy --to fp32", "declares 2147483648 elements"),
    ("trace many.npy --to fp32", "declares 2147483648 elements"),
    ("cast swapped.npy --from bf16 --to fp32", "declares 2147483648 elements"),
    ("cast short.npy --to fp16", "no .npy file that a cast can read"),
    ("cast beyond.npy --to fp16", "no .npy file that a cast can read"),
    ("cast header.npy --to fp16", "declares a header of 4294967280 bytes"),
    ("cast hole.npy --to fp16", "declares a header of 4294967280 bytes"),
    ("checkpoint bomb.npz --to fp16", "as a zip bomb does"),
    ("certainty k.py::kernel --inputs bomb.npz", "as a zip bomb does"),
    ("checkpoint header.safetensors --to fp16", "header too large"),
    ("checkpoint hole.safetensors --to fp16", "declares a header of 1,099,511,627,776 B"),
    ("checkpoint short.safetensors --to fp16", "no safetensors file"),
    ("checkpoint beyond.safetensors --to fp16", "no safetensors file"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "says"), CASES, ids=[words for words, _ in CASES])
def test_refused_without_the_memory(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, says: str
) -> None:
    """A file may be mapped, which takes addresses alone."""
    monkeypatch.chdir(folder)
    files = sorted(entry.name for entry in folder.iterdir())
    before = resident_peak()
    output = [] if words.startswith(("trace", "certainty")) else ["-o", "out"]
    assert says in command(*words.split(), *output).error
    assert resident_peak() - before < SPARE_BYTES
    assert sorted(entry.name for entry in folder.iterdir()) == files


def resident_peak() -> int:
    return 1024 * int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
