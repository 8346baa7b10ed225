"""Files that are damaged or made to harm: one clear line each, and nothing of them executed."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save, save_file
from support.environment.command import Command, command
from support.environment.models import model, save_sharded
from support.numbers.codes import SEED

import pypto_cast as pypto
from pypto_cast.checkpoints.blocks import Limits, execute_jobs
from pypto_cast.checkpoints.casting import Choice, plan_checkpoint
from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.checkpoints.output_plan import new_checkpoint, plan_output

__all__ = ["command"]  # a fixture

WORDS = ("--to", "bf16", "--force", "--jobs", "1")
BUDGET = 64 << 20


def needs_torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed (extra torch)")


class Executed:
    """Unpickling it makes a directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self._path),)


def old_pickle(path: Path, trap: Path) -> None:
    torch = needs_torch()
    torch.save({"a": torch.ones(2)}, path, _use_new_zipfile_serialization=False)


def plain_pickle(path: Path, trap: Path) -> None:
    path.write_bytes(pickle.dumps(Executed(trap)))


def torch_pickle(path: Path, trap: Path) -> None:
    torch = needs_torch()
    torch.save({"a": torch.ones(2), "b": Executed(trap)}, path)


def script(path: Path, trap: Path) -> None:
    needs_torch()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02}.")
        archive.writestr("x/code/__torch__.py", b"import os")


def packed_torch(path: Path, trap: Path) -> None:
    needs_torch()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", bytes(1 << 20))


def damaged_byte_order(path: Path, trap: Path) -> None:
    """torch does not compare the checksum of this entry."""
    torch = needs_torch()
    torch.save({"a": torch.ones(2)}, path)
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\x01\x02", 0, content.rindex(b"byteorder"))
    content[directory + 16] ^= 1  # of its checksum
    path.write_bytes(content)


def tar(path: Path, trap: Path) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("pickle"))


def objects(path: Path, trap: Path) -> None:
    with open(path, "wb") as file:
        np.savez(file, a=np.array([Executed(trap)], object))


def with_entry(name: str, content: bytes, times: int = 1) -> Callable[[Path, Path], None]:
    def make(path: Path, trap: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for _ in range(times):
                archive.writestr(name, content)

    return make


def npy(shape: object, data: bytes = b"", descr: object = "<f4") -> bytes:
    out = io.BytesIO()
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, fields)
    return out.getvalue() + data


def written(content: bytes) -> Callable[[Path, Path], None]:
    return lambda path, trap: path.write_bytes(content) and None


def huge_header(path: Path, trap: Path) -> None:
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", 2 << 30) + b'{"a":')
        file.truncate((2 << 30) + 100)


TWICE = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},' + (
    b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
)
FILES: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "older PyTorch": (old_pickle, "is a PyTorch pickle of an older kind"),
    "pickle": (plain_pickle, "is a Python pickle, which could run code"),
    "pickle in a zip": (torch_pickle, "nothing of it was executed: it asks for "),
    "TorchScript": (script, "is a TorchScript archive"),
    "packed torch": (packed_torch, "compressed, which torch.save never does"),
    "byte order of torch": (damaged_byte_order, "that can be read: Bad CRC-32"),
    "tar": (tar, "is a tar archive"),
    "objects": (objects, "it holds Python objects"),
    "other zip": (with_entry("readme.txt", b"x"), "neither of numpy.savez nor of torch.save"),
    "twice": (with_entry("a.npy", npy((1,), bytes(4)), 2), "occurs twice"),
    "bomb": (with_entry("a.npy", npy((1,), bytes(1 << 26))), "declares 4 B of elements and has"),
    "huge shape": (with_entry("a.npy", npy((2**62, 2**62))), "declares"),
    "negative shape": (with_entry("a.npy", npy((-1,), bytes(4))), "the shape [-1]"),
    "records": (with_entry("a.npy", npy((1,), bytes(8), [("x", "<f8")])), "it holds records"),
    "short npy": (written(npy((4,), bytes(8))), "declares 16 B of elements and has 8 B"),
    "long header": (
        written(b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 31)),
        "declares a header of 2147483648 bytes",
    ),
    "header of 2 GB": (huge_header, "declares a header of 2,147,483,648 B"),
    "name twice": (written(struct.pack("<Q", len(TWICE)) + TWICE + bytes(4)), "no safetensors"),
    "gguf": (written(b"GGUF" + bytes(40)), "is no GGUF file that can be read"),
    "lfs": (written(b"version https://git-lfs.github.com/spec/v1\n"), "is a Git LFS pointer"),
    "html": (written(b"<!DOCTYPE html>"), "is a page of HTML"),
    "gzip": (written(b"\x1f\x8b\x08\x00"), "is compressed by gzip"),
    "index": (written(b'{\n  "metadata": {}}'), "name the directory, not its index"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FILES)
def test_what_it_is_is_told_in_a_line(command: Command, tmp_path: Path, name: str) -> None:
    if name == "gguf":
        pytest.importorskip("gguf", reason="gguf is not installed (extra gguf)")
    make, says = FILES[name]
    path, trap = tmp_path / "model", tmp_path / "trap"
    make(path, trap)
    tracemalloc.start()
    try:
        ran = command("checkpoint", path, *WORDS, "-o", tmp_path / "out")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert says in ran.error
    assert list(tmp_path.iterdir()) == [path]
    assert peak < BUDGET


INDEXES: dict[str, tuple[Any, str]] = {
    "outside": ({"weight_map": {"a": "../m.safetensors"}}, "not a file of its directory"),
    "absolute": ({"weight_map": {"a": "/etc/passwd"}}, "not a file of its directory"),
    "windows": ({"weight_map": {"a": "..\\m.safetensors"}}, "not a file of its directory"),
    "drive": ({"weight_map": {"a": "C:m.safetensors"}}, "not a file of its directory"),
    "no name": ({"weight_map": {"a": 3}}, "it names the file 3"),
    "no map": ({}, "it has no weight_map"),
    "list": ([], "no object but list"),
    "missing": ({"weight_map": {"a": "none.safetensors"}}, "No such file"),
    "other names": ({"weight_map": {"b": "m.safetensors"}}, "do not agree: 'a' is not in"),
    "too many": ({"weight_map": {"a": "m.safetensors", "c": "m.safetensors"}}, "'c' is not in"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_hostile_indexes(command: Command, tmp_path: Path, name: str) -> None:
    content, says = INDEXES[name]
    folder = tmp_path / "in"
    folder.mkdir()
    save_file({"a": np.ones(2, np.float32)}, folder / "m.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))
    assert says in command("checkpoint", folder, *WORDS, "-o", tmp_path / "out").error
    assert list(tmp_path.iterdir()) == [folder]


def test_a_directory_without_a_model(command: Command, tmp_path: Path) -> None:
    assert "holds no model.safetensors" in command("checkpoint", tmp_path, *WORDS).error
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert "such as pytorch_model.bin" in command("checkpoint", tmp_path, *WORDS).error
    for name in ("a", "b"):
        save_file({"a": np.ones(2, np.float32)}, tmp_path / f"{name}.safetensors")
    assert "has 2 safetensors files and no" in command("checkpoint", tmp_path, *WORDS).error


# --- Damaged files -----------------------------------------------------------------------------


def npz_bytes() -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **model())
    return out.getvalue()


def npy_bytes() -> bytes:
    out = io.BytesIO()
    np.save(out, next(iter(model().values())))
    return out.getvalue()


def torch_bytes() -> bytes:
    torch, out = needs_torch(), io.BytesIO()
    torch.save({name: torch.from_numpy(array) for name, array in model().items()}, out)
    return out.getvalue()


def gguf_bytes(folder: Path) -> bytes:
    gguf: Any = pytest.importorskip("gguf", reason="gguf is not installed (extra gguf)")
    writer = gguf.GGUFWriter(folder / "x.gguf", "llama")
    writer.add_tensor("a", np.ones((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    content = (folder / "x.gguf").read_bytes()
    (folder / "x.gguf").unlink()
    return content


KINDS = {
    "safetensors": lambda folder: save(model()),
    "npz": lambda folder: npz_bytes(),
    "npy": lambda folder: npy_bytes(),
    "torch": lambda folder: torch_bytes(),
    "gguf": gguf_bytes,
}


def damaged(sound: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, cut off, or a stretch moved."""
    content = bytearray(sound)
    kind = rng.integers(0, 4)
    if kind == 0:
        return bytes(content[: rng.integers(0, len(content))])
    if kind == 1:
        first, second, size = rng.integers(0, len(content), 3)
        content[first : first + size % 64] = content[second : second + size % 64]
        return bytes(content)
    # The heads and ends are what is parsed.
    edge = min(len(content), 700)
    for _ in range(rng.integers(1, 6)):
        position = rng.integers(0, edge) * rng.choice([1, -1])
        content[position] = rng.integers(0, 256)
    return bytes(content)


def is_cast(path: Path, output: Path) -> bool:
    """Casts a checkpoint; False where it was refused in words."""
    try:
        work = plan_checkpoint(open_checkpoint(path), Choice.of(pypto.DT_BF16))
        with new_checkpoint(plan_output(work, output, force=True)) as sink:
            list(execute_jobs(work, sink, Limits(memory_bytes=1 << 20, with_report=False)))
    except (OSError, ValueError):
        return False
    return True


def check_damaged(folder: Path, kind: str, count: int) -> None:
    sound = KINDS[kind](folder)
    rng = np.random.default_rng(SEED)
    path, output = folder / "model", folder / "out"
    path.write_bytes(sound)
    assert is_cast(path, output)
    for _ in range(count):
        path.write_bytes(damaged(sound, rng))
        is_cast(path, output)
        assert {file.name for file in folder.iterdir()} == {"model", "out"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused_in_words(tmp_path: Path, kind: str) -> None:
    check_damaged(tmp_path, kind, 30)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_damaged_files(tmp_path: Path, kind: str) -> None:
    check_damaged(tmp_path, kind, 1000)


@pytest.mark.exhaustive
def test_a_thousand_damaged_indexes(tmp_path: Path) -> None:
    source = save_sharded(tmp_path / "in")
    index = source / "model.safetensors.index.json"
    sound = index.read_bytes()
    rng = np.random.default_rng(SEED)
    for _ in range(1000):
        index.write_bytes(damaged(sound, rng))
        is_cast(source, tmp_path / "out")
        assert {file.name for file in tmp_path.iterdir()} <= {"in", "out"}
