"""The plan of an output: files, entries beside them, those that give way, and refusals."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support.environment.command import Command, command
from support.environment.models import NORM, WEIGHTS, equal_bits, load_sharded, model, save_sharded

from pypto_cast.checkpoints import output_plan
from pypto_cast.checkpoints.directories import check_directory
from pypto_cast.report.text_format import extra_hint

__all__ = ["command"]  # a fixture

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges directories")
BF16 = ("--to", "bf16", "--no-report")
INDEX = "model.safetensors.index.json"


def tree(folder: Path) -> dict[str, bytes | str]:
    """All entries of a folder: the bytes of files, where links lead, nothing for folders."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink())
        if path.is_symlink()
        else (path.read_bytes() if path.is_file() else "")
        for path in folder.rglob("*")
    }


def single(folder: Path) -> Path:
    """A directory with one file of tensors and a config."""
    folder.mkdir()
    save_file(model(), folder / "model.safetensors")
    (folder / "config.json").write_text('{"model_type": "tiny"}')
    return folder


@pytest.mark.parametrize(
    "left", ["model-00001-of-00003.safetensors", INDEX.upper(), "MODEL-00002-OF-00003.safetensors"]
)
def test_a_leftover_with_the_name_of_an_output(command: Command, tmp_path: Path, left: str) -> None:
    source = single(tmp_path / "in")
    save_file({"lm_head.weight": np.zeros(3, np.float32)}, source / left)
    words = ("checkpoint", source, *BF16, "--shard-size", "2kB", "-o", tmp_path / "out")
    error = command(*words).error
    assert f"{source / left} is not of the model, and the output has a file" in error
    assert {path.name for path in tmp_path.iterdir()} == {"in"}
    (source / left).rename(source / "consolidated.safetensors")
    assert command(*words).code == 0
    found = load_sharded(tmp_path / "out")
    assert equal_bits(found[WEIGHTS[0]], model()[WEIGHTS[0]].astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("npz", "__metadata__"),
        ("npy", "__metadata__"),
        ("npy", "lone \udc80"),
        ("pt", "__metadata__"),
        ("pt", "lone \udc80"),
    ],
)
def test_names_that_safetensors_does_not_store(
    command: Command, tmp_path: Path, kind: str, name: str
) -> None:
    source, output = tmp_path / "in", tmp_path / "out.safetensors"
    values = np.ones((2, 8), np.float32)
    if kind == "pt":
        torch: Any = pytest.importorskip("torch", reason=".pt files need torch")
        torch.save({name: torch.from_numpy(values)}, source)
    elif kind == "npy":
        source = tmp_path / f"{name}.npy"
        np.save(source, values)
    else:
        source = tmp_path / "in.npz"
        np.savez(source, **{name: values})
    for words in (BF16, ("--quantize", "int8")):
        ran = command("checkpoint", source, *words, "-o", output)
        assert f"tensor {name!r} has a name that safetensors does not store" in ran.error
    assert list(tmp_path.iterdir()) == [source]


def test_a_header_that_no_reader_takes(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_plan, "_MOST_HEADER_BYTES", 100)
    np.savez(tmp_path / "in.npz", a=np.ones(4, np.float32))
    words = ("checkpoint", tmp_path / "in.npz", *BF16, "-o", tmp_path / "out.safetensors")
    assert "out.safetensors would have a header of" in command(*words).error


@linux
def test_force_replaces_what_is_of_the_models_alone(command: Command, tmp_path: Path) -> None:
    source, output = single(tmp_path / "in"), save_sharded(tmp_path / "out")
    words = ("checkpoint", source, *BF16, "--force", "-o", output)
    (output / "photos").mkdir()
    (output / "photos" / "cat.jpg").write_bytes(b"cat")
    (output / "spare.safetensors").write_bytes(b"spare")
    (output / "link").symlink_to(source)
    before = tree(output)
    error = command(*words).error
    assert "the model there: link, photos/, spare.safetensors, sub/; move it away" in error
    dry = command(*words, "--dry-run", "--json")
    assert (dry.code, dry.json["refused"]) == (1, [error])
    assert tree(output) == before
    for name in ("photos/cat.jpg", "spare.safetensors", "link", "sub/note.txt"):
        (output / name).unlink()
    (output / "photos").rmdir()
    (output / "sub").rmdir()
    dry = command(*words, "--dry-run", "--json").json
    shards = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    assert dry["replaced"] == ["config.json", *shards, INDEX]
    assert command(*words).code == 0
    assert set(tree(output)) == {"config.json", "model.safetensors"}
    assert command(*words).code == 0  # its own output


@linux
@pytest.mark.parametrize("named", ["thesis.docx", "photos", "keys.SAFETENSORS", "config.json"])
def test_an_index_does_not_make_a_file_one_of_tensors(
    command: Command, tmp_path: Path, named: str
) -> None:
    source, output = tmp_path / "in.safetensors", save_sharded(tmp_path / "out")
    save_file(model(), source)
    (output / "sub" / "note.txt").unlink()
    (output / "sub").rmdir()
    words = ("checkpoint", source, *BF16, "--shard-size", "2kB", "--force", "-o", output)
    if named == "photos":
        (output / named).mkdir()
        (output / named / "cat.jpg").write_bytes(b"cat")
    else:
        (output / named).write_text("years of work")
    index = json.loads((output / INDEX).read_text())
    index["weight_map"]["w"] = named
    (output / INDEX).write_text(json.dumps(index))
    before = tree(output)
    error = command(*words).error
    assert f"{output} holds what --force does not replace" in error
    assert named in error
    assert tree(output) == before


@linux
def test_what_comes_into_an_output_meanwhile_is_kept(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = save_sharded(tmp_path / "in"), save_sharded(tmp_path / "out")

    def completed(*arguments: Any) -> None:
        complete(*arguments)
        (output / "thesis.txt").write_text("years of work")

    complete = output_plan.complete_directory
    monkeypatch.setattr(output_plan, "complete_directory", completed)
    assert "thesis.txt" in command("checkpoint", source, *BF16, "--force", "-o", output).error
    assert (output / "thesis.txt").read_text() == "years of work"
    assert load_sharded(output)[WEIGHTS[0]].dtype == "float32"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither FIFOs nor free links")
def test_each_kind_of_entry_is_named(command: Command, tmp_path: Path) -> None:
    source = save_sharded(tmp_path / "in")
    (tmp_path / "blob").write_bytes(b"blob")
    (tmp_path / "more").mkdir()
    shard = "model-00001-of-00002.safetensors"
    links = {
        "vocab.txt": "../blob",
        "all": "../more",
        "sub/up": "..",
        "sub/config.json": str(source / "config.json"),
        "weights": shard,
    }
    for name, text in links.items():
        (source / name).symlink_to(text)
    (source / "empty").mkdir()
    words = ("checkpoint", source, *BF16, "-o", tmp_path / "out")
    expected = {
        "written": [INDEX],
        "made": ["empty", "sub"],
        "link to a folder outside, kept": ["all"],
        "link inside, kept": ["sub/config.json", "sub/up", "weights"],
        "copied": ["config.json", "sub/note.txt"],
        "link to a file outside, whose content is copied": ["vocab.txt"],
    }
    ran = command(*words, "--json").json
    assert {kind: sorted(names) for kind, names in ran["beside"].items()} == expected
    found = tree(tmp_path / "out")
    assert found["vocab.txt"] == b"blob"
    assert found["all"] == str(tmp_path / "more")
    assert [found[f"sub/{name}"] for name in ("up", "config.json")] == ["..", "../config.json"]
    assert found["weights"] == shard
    # The link leads to the new weights, and to none where these have another name.
    assert load_file(tmp_path / "out" / "weights")[WEIGHTS[0]].dtype == "bfloat16"
    out = command(*words[:-1], tmp_path / "two").out
    for kind, names in expected.items():
        assert sum(f"{len(names)} {kind}: " in line for line in out.splitlines()) == 1, kind
    ran = command(*words, "--force", "--shard-size", "1GB")
    assert f"in/weights cannot be kept: it is a link to {shard}, which the output" in ran.error


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither FIFOs nor free links")
def test_what_cannot_be_kept_is_refused(command: Command, tmp_path: Path) -> None:
    source = save_sharded(tmp_path / "in")
    (source / "gone").symlink_to("nowhere")
    (source / "round").symlink_to("round")
    (source / "null").symlink_to("/dev/null")
    os.mkfifo(source / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(source / "sub" / "s"))
    words = ("checkpoint", source, *BF16, "-o", tmp_path / "out")
    error = command(*words).error
    refused = command(*words, "--dry-run", "--json").json["refused"]
    assert [text.removeprefix(f"{source}/").split(";")[0] for text in refused] == [
        "fifo cannot be kept: it is neither file nor folder",
        "gone cannot be kept: it is a link to nowhere, which does not exist",
        "null cannot be kept: it is a link to /dev/null, which is neither file nor folder",
        "round cannot be kept: it is a link to round, which does not exist",
        "sub/s cannot be kept: it is neither file nor folder",
    ]
    assert error == "; ".join(refused)
    os.mkfifo(source / "zero")
    assert command(*words).error == f"{error}; and 1 more: see --dry-run"
    assert {path.name for path in tmp_path.iterdir()} == {"in"}


@pytest.mark.parametrize("form", ["directory", "shards", "file", "npz"])
def test_a_dry_run_says_what_is_then_done(command: Command, tmp_path: Path, form: str) -> None:
    source, output, more = save_sharded(tmp_path / "in"), tmp_path / "out", ()
    if form == "shards":
        more = ("--shard-size", "2kB", "--quantize", "int8")
    elif form != "directory":
        source = tmp_path / "in.npz"
        np.savez(source, **model())
        output = output.with_suffix(".safetensors" if form == "file" else ".npz")
    words = ("checkpoint", source, *BF16, *more, "-o", output)
    dry = command(*words, "--dry-run", "--json")
    assert (dry.code, dry.json["refused"], dry.json["replaced"]) == (0, [], [])
    assert not output.exists()
    text = command(*words, "--dry-run").out
    assert command(*words).code == 0
    sizes = {
        p.relative_to(output).as_posix(): p.stat().st_size for p in output.rglob("*") if p.is_file()
    }
    sizes = sizes or {output.name: None if form == "npz" else output.stat().st_size}
    listed = {row["name"]: row["bytes"] for row in dry.json["entries"] if row["what"] != "made"}
    assert listed == sizes
    assert all(name in text for name in sizes)
    again = command(*words, "--dry-run")
    assert again.code == 1
    assert f"refused: {output} exists; --force replaces it" in again.out
    assert "name it with --output" in command(*words[:-2], "--dry-run").error


CONFIG: dict[str, Any] = {
    "torch_dtype": "float32",
    "dtype": "float32",
    "text_config": {"dtype": "float32", "layers": 2},
    "encoder": {"dtype": "float32", "name": "\ud800"},  # half of a pair, which JSON can escape
    "quantization_config": {"dtype": "int4"},
    "rope": 1e-05,
}


def config_of(dtype: str) -> dict[str, Any]:
    nested = {name: {**CONFIG[name], "dtype": dtype} for name in ("text_config", "encoder")}
    return {**CONFIG, "torch_dtype": dtype, "dtype": dtype, **nested}


@pytest.mark.parametrize(
    ("words", "dtype"),
    [
        (("--to", "bf16"), "bfloat16"),
        (("--to", "fp16", "--keep-fp32", "norm"), "float16"),
        (("--to", "layer.0.dense=fp16", "--to", "layer.1.dense=bf16"), "float16"),  # as many
        (("--to", "dense=bf16", "--to", "lm_head=fp32"), "bfloat16"),
        (("--to", "bf16", "--include", "norm"), "float32"),
        (("--quantize", "int8", "--to", "bf16", "--exclude", "head"), "float16"),
    ],
)
def test_config_says_what_the_weights_are(
    command: Command, tmp_path: Path, words: tuple[str, ...], dtype: str
) -> None:
    source = save_sharded(tmp_path / "in")
    (source / "config.json").write_text(json.dumps(CONFIG))
    index = json.loads((source / INDEX).read_text())
    index["metadata"]["dtype"] = "float32"
    (source / INDEX).write_text(json.dumps(index))
    assert command("checkpoint", source, *words, "-o", tmp_path / "out").code == 0
    found = json.loads((tmp_path / "out" / "config.json").read_text())
    expected = config_of(dtype)
    if "--quantize" in words:
        assert found.pop("quantization_config")["quant_method"] == "compressed-tensors"
        del expected["quantization_config"]
    assert found == expected
    metadata = json.loads((tmp_path / "out" / INDEX).read_text())["metadata"]
    assert metadata["dtype"] == dtype


def test_configs_that_stay_or_cannot_be_read(command: Command, tmp_path: Path) -> None:
    source = save_sharded(tmp_path / "in")
    (source / "config.json").write_text('{"torch_dtype":   "bfloat16"}')
    words = ("checkpoint", source, *BF16, "-o", tmp_path / "out")
    assert command(*words).code == 0
    assert (tmp_path / "out" / "config.json").read_text() == '{"torch_dtype":   "bfloat16"}'
    (source / "config.json").write_text("{torch_dtype: float32}")
    assert "config.json is no JSON" in command(*words, "--force").error


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--axis=5",), "--axis 5 is an axis of no tensor that --dims takes; they have -2 to 1 in"),
        (("--axis=2", "--dims=1", "--dims=2"), "have -1 to 0 in 1 dimension, -2 to 1 in 2"),
        (("--dims=7",), "BF16 has 7 dimensions, as --dims asks; they have 1 or 2"),
        (("--dims=2", "--dims=7", "--axis=5"), "they have -2 to 1 in 2 dimensions"),
        (("--dims=3",), "no tensor of FP32, FP16 or BF16 has 3 dimensions"),
        (("--dims=-2",), "--dims is a number of dimensions, at least 1, not -2"),
        (("--dims=0",), "at least 1, not 0"),
    ],
)
def test_an_axis_or_a_number_of_them_that_no_tensor_has(
    command: Command, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    pixels = np.zeros((2, 3, 4), np.uint8)
    save_file({**model(), "pixels": pixels}, tmp_path / "m.safetensors")
    more = ("--quantize", "int8", "-o", tmp_path / "out.safetensors")
    ran = command("checkpoint", tmp_path / "m.safetensors", *words, *more)
    assert says in ran.error
    assert "warning" not in ran.err
    assert list(tmp_path.iterdir()) == [tmp_path / "m.safetensors"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--to bf16 --axis 1", "axis is set, which changes nothing without --quantize"),
        ("--to bf16 --asymmetric", "symmetric is set, which changes nothing without --quantize"),
        ("--to bf16 --scale median", "scale is set, which changes nothing without --quantize"),
        ("--quantize int8 --mode CAST_FLOOR", "mode is set, which changes nothing without --to"),
    ],
)
def test_an_option_of_what_is_not_asked_for(
    command: Command, tmp_path: Path, words: str, says: str
) -> None:
    save_file(model(), tmp_path / "m.safetensors")
    more = ("-o", tmp_path / "out.safetensors")
    assert command("checkpoint", tmp_path / "m.safetensors", *words.split(), *more).error == says


def test_no_word_of_scales_where_there_are_none(command: Command, tmp_path: Path) -> None:
    save_file(model(), tmp_path / "m.safetensors")
    words = ("checkpoint", tmp_path / "m.safetensors", "--quantize", "int8", "--axis", "1")
    assert "compressed-tensors knows one scale" in command(*words).err
    assert command(*words, "--exclude", ".").err == ""


def test_tensors_without_codes_are_counted_and_named(command: Command, tmp_path: Path) -> None:
    tensors = {
        **model(),
        "columns": np.asfortranarray(np.ones((2, 3), np.float32)),
        "empty": np.ones((0, 3), np.float32),
    }
    np.savez(tmp_path / "m.npz", **tensors)
    words = ("checkpoint", tmp_path / "m.npz", "--quantize", "int8", "--axis=-2", "--to", "bf16")
    words = (*words, "--exclude", "head")
    expected = {
        "1 dimension, and --dims takes 2": [NORM],
        "excluded by 'head'": ["lm_head.weight"],
        "INT64 has no INT8 codes": ["steps"],
        "stored by columns, which no scales are computed of": ["columns"],
        "empty": ["empty"],
    }
    ran = command(*words, "--json").json
    assert ran["uncoded"] == expected
    out = command(*words).out
    for reason, (name,) in expected.items():
        assert f"1 tensor, {reason}: {name}" in " ".join(out.split())
    ran = command(*words, "--dims", "1", "--dims", "2", "--axis", "1", "--json").json
    assert ran["uncoded"]["no axis 1"] == [NORM]


@pytest.mark.parametrize(("count", "rest"), [(20, ""), (21, " and 1 more"), (22, " and 2 more")])
def test_what_force_does_not_replace_is_named_or_counted(
    tmp_path: Path, count: int, rest: str
) -> None:
    names = [f"note{n:02}" for n in range(count)]
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match="does not replace") as error:
        check_directory(tmp_path, force=True, inputs=(), files=set(), folders=set())
    assert f": {', '.join(names[:20])}{rest}; move it away" in str(error.value)


def test_a_cluster_needs_dask_before_anything_is_written(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "distributed" else found(name)
    )
    words = (save_sharded(tmp_path / "in"), *BF16, "-o", tmp_path / "out")
    error = command("checkpoint", *words, "--scheduler", "tcp://127.0.0.1:1").error
    assert error == f"--scheduler needs Dask: {extra_hint('dask')}"
    assert {path.name for path in tmp_path.iterdir()} == {"in"}
