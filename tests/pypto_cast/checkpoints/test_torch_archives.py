"""Archives of torch.save: read by places in the file, and written without torch."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.checkpoints import blocks, output_plan, torch_files
from pypto_cast.checkpoints.casting import Choice, plan_checkpoint
from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.checkpoints.output_plan import plan_output
from pypto_cast.checkpoints.reading import Reader
from pypto_cast.checkpoints.stored import CheckpointError

torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra torch)")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def tensors() -> dict[str, Any]:
    whole = torch.arange(6000, dtype=torch.int16).reshape(20, 30, 10)
    return {
        "whole": whole,
        "part": whole[7:],
        "permuted": whole.permute(2, 0, 1),
        "stepped": whole[::3, 1:, ::2],
        "wide": whole.to(torch.complex128).mT,
        "again": torch.arange(5).float()[:, None].expand(5, 300),
        "line": whole.reshape(-1)[5::7],
        "number": torch.tensor(3.0),
        "empty": torch.zeros(0, 3),
        "turned": whole.to(torch.complex64).conj(),
        "sparse": torch.eye(3).to_sparse(),
    }


def read_in_parts(source: Reader, checkpoint: Any) -> Iterator[tuple[str, bytes]]:
    for tensor in checkpoint.tensors:
        if tensor.dtype.startswith("torch."):
            continue  # not dense
        found = np.empty(tensor.size_bytes, np.uint8)
        for begin in range(0, found.size, 528):
            source.read(tensor, begin, found[begin : begin + 528])
        yield tensor.name, found.tobytes()


@contextlib.contextmanager
def small_windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(torch_files, "_STRIP_BYTES", 1 << 10)
        patch.setattr(torch_files, "_WINDOW_BYTES", 1 << 8)
        yield


@pytest.mark.parametrize("where", ["of the file", "mapped"])
def test_elements_are_read_a_part_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    torch.save(tensors(), tmp_path / "x.pt")
    checkpoint, by_map = open_checkpoint(tmp_path / "x.pt"), []
    by_torch = torch_files.read_bytes_of_torch

    def followed(held: Any, begin_bytes: int, out: Any) -> None:
        by_map.append((held.numel(), held.is_conj()))
        by_torch(held, begin_bytes, out)

    monkeypatch.setattr(torch_files, "read_bytes_of_torch", followed)
    if where == "mapped":
        monkeypatch.setattr(torch_files, "_address", lambda *_: None)
    with small_windows(monkeypatch), contextlib.closing(Reader(checkpoint)) as source:
        found = dict(read_in_parts(source, checkpoint))
    assert found.keys() == tensors().keys() - {"sparse"}
    for name, content in found.items():
        assert content == tensors()[name].resolve_conj().contiguous().numpy().tobytes(), name
    assert all(conj or not elems for elems, conj in by_map) == (where == "of the file")


def rewritten(path: Path, to: Path, **changed: bytes) -> None:
    """The entries of an archive, some of them changed or added."""
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(to, "w") as after:
        root = before.namelist()[0].partition("/")[0]
        entries = {info.filename: before.read(info) for info in before.infolist()}
        for name, content in (entries | {f"{root}/{n}": c for n, c in changed.items()}).items():
            after.writestr(name, content)


@pytest.mark.parametrize("order", ["<", ">"])
def test_other_writers(tmp_path: Path, order: str) -> None:
    """Storages in another byte order, which torch turns; one that nothing refers to."""
    values = np.arange(300, dtype=np.float32)
    torch.save({"w": torch.from_numpy(values)}, tmp_path / "in.pt")
    changed = {
        "data/0": values.astype(f"{order}f4").tobytes(),
        "data/unused": b"x" * 4096,
        "byteorder": b"little" if order == "<" else b"big",
    }
    rewritten(tmp_path / "in.pt", tmp_path / "x.pt", **changed)
    checkpoint = open_checkpoint(tmp_path / "x.pt")
    with contextlib.closing(Reader(checkpoint)) as source:
        assert dict(read_in_parts(source, checkpoint)) == {"w": values.tobytes()}


@pytest.mark.parametrize("name", ["whole", "permuted"])
def test_a_file_cut_short_meanwhile(tmp_path: Path, name: str) -> None:
    held = torch.arange(1 << 16).reshape(256, 256)
    torch.save({"whole": held, "permuted": held.T}, tmp_path / "x.pt")
    checkpoint = open_checkpoint(tmp_path / "x.pt")
    tensor = next(one for one in checkpoint.tensors if one.name == name)
    with contextlib.closing(Reader(checkpoint)) as source:
        os.truncate(tmp_path / "x.pt", 4096)
        with pytest.raises(CheckpointError, match=f"cut short while tensor '{name}' was read"):
            source.read(tensor, 0, np.empty(tensor.size_bytes, np.uint8))


@pytest.mark.parametrize("is_mapped", [False, True])
def test_what_is_kept_is_written_as_torch_does(tmp_path: Path, is_mapped: bool) -> None:
    torch.save({"cast": torch.arange(9).float(), "kept": tensors()}, tmp_path / "in.pt")
    choice = dataclasses.replace(Choice.of(pypto.DT_BF16), exclude=(re.compile("^kept"),))
    work = plan_checkpoint(open_checkpoint(tmp_path / "in.pt"), choice)
    with output_plan.new_checkpoint(plan_output(work, tmp_path / "out.pt", force=False)) as sink:
        list(blocks.execute_jobs(work, sink))
    found = torch.load(tmp_path / "out.pt", weights_only=True, mmap=is_mapped)
    kept = found["kept"]
    assert torch.equal(found["cast"], torch.arange(9).bfloat16())
    for name, before in tensors().items():
        assert kept[name].dtype is before.dtype
        assert kept[name].layout is torch.sparse_coo or kept[name].stride() == before.stride()
        assert torch.equal(kept[name].to_dense(), before.to_dense()), name
    assert kept["part"].untyped_storage().data_ptr() == kept["whole"].data_ptr()
    assert kept["whole"].data_ptr() % 64 == 0
    with zipfile.ZipFile(tmp_path / "out.pt") as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    assert len(names) == len(set(names))
