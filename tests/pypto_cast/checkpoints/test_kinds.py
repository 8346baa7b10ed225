"""Checkpoints of every kind: read, cast and written as they were, bit for bit."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from support.environment.command import Command, command
from support.environment.models import NORM, WEIGHTS, equal_bits, load_sharded, model, save_sharded
from support.numbers.codes import SEED

import pypto_cast as pypto
from pypto_cast.checkpoints.sinks import Sink

__all__ = ["command"]  # a fixture


def in_bf16(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The model as ml_dtypes casts it, without NaN."""
    with np.errstate(all="ignore"):
        return {
            name: array.astype(ml_dtypes.bfloat16) if array.dtype == np.float32 else array
            for name, array in tensors.items()
        }


def test_a_directory_keeps_its_files_and_what_lies_beside(command: Command, tmp_path: Path) -> None:
    source = save_sharded(tmp_path / "in")
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    ran = command("checkpoint", source, "--to", "bf16", "-o", tmp_path / "out")
    assert (ran.code, ran.err) == (0, "")
    expected = in_bf16(model())
    found = load_sharded(tmp_path / "out")
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert equal_bits(found[name], array), name
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    was = json.loads((source / "model.safetensors.index.json").read_text())
    assert index["weight_map"] == was["weight_map"]
    assert index["metadata"]["who"] == "x"
    for name in ("config.json", "sub/note.txt"):
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes()
    assert {path: path.read_bytes() for path in before} == before
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


def test_a_file_in_shards(command: Command, tmp_path: Path) -> None:
    save_file(model(), tmp_path / "m.safetensors", {"format": "pt"})
    words = ("checkpoint", tmp_path / "m.safetensors", "--to", "bf16", "--shard-size", "2kB")
    assert command(*words, "-o", tmp_path / "out").code == 0
    found = load_sharded(tmp_path / "out")
    assert {name: a.tobytes() for name, a in found.items()} == {
        name: a.tobytes() for name, a in in_bf16(model()).items()
    }
    sizes = [
        sum(a.nbytes for a in load_file(p).values())
        for p in (tmp_path / "out").glob("*.safetensors")
    ]
    assert len(sizes) == 3
    assert max(sizes) <= 2000
    assert command(*words[:-1], "1GB", "-o", tmp_path / "one").code == 0
    assert [p.name for p in (tmp_path / "one").iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(command: Command, tmp_path: Path, save: Any) -> None:
    tensors = {**model(), "big": np.arange(4, dtype=">f4"), "flag": np.array([True])}
    tensors["columns"] = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    save(tmp_path / "in.npz", **tensors)
    ran = command("checkpoint", tmp_path / "in.npz", "--to", "fp16", "-o", tmp_path / "out.npz")
    assert (ran.code, ran.err) == (0, "")
    with np.load(tmp_path / "out.npz") as found, np.errstate(over="ignore"):
        assert set(found) == set(tensors)
        for name, array in tensors.items():
            is_cast = array.dtype.newbyteorder("=") == np.float32
            expected = array.astype(np.float16) if is_cast else array
            assert equal_bits(found[name], expected), name
        assert found["columns"].flags.f_contiguous
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        kinds = {info.compress_type for info in archive.infolist()}
    assert kinds == {zipfile.ZIP_STORED if save is np.savez else zipfile.ZIP_DEFLATED}


def test_npy_and_the_way_to_safetensors(command: Command, tmp_path: Path) -> None:
    array = model()[WEIGHTS[0]]
    np.save(tmp_path / "x.npy", array)
    for output in ("y.npy", "y.safetensors"):
        words = ("checkpoint", tmp_path / "x.npy", "--to", "bf16", "-o", tmp_path / output)
        assert command(*words).code == 0
    expected = array.astype(ml_dtypes.bfloat16)
    assert np.load(tmp_path / "y.npy").tobytes() == expected.tobytes()
    assert equal_bits(load_file(tmp_path / "y.safetensors")["x"], expected)


def test_safetensors_align_a_tensor_of_one_element(command: Command, tmp_path: Path) -> None:
    """Wide elements come first, however few there are."""
    np.savez(tmp_path / "x.npz", bytes=np.ones(3, np.int8), one=np.ones(1, np.float32))
    words = ("checkpoint", tmp_path / "x.npz", "--to", "bf16", "-o", tmp_path / "y.safetensors")
    assert command(*words, "--exclude", "bytes").code == 0
    content = (tmp_path / "y.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert header["one"]["data_offsets"] == [0, 2]
    assert header["bytes"]["data_offsets"] == [2, 5]


def test_torch(command: Command, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    weight = torch.nn.Parameter(torch.from_numpy(model()[WEIGHTS[0]]))
    transposed = torch.from_numpy(model()[WEIGHTS[1]]).T
    content = {
        "state_dict": {"weight": weight, "tied": weight, "turned": transposed},
        "optimizer": [{"step": torch.tensor(3.0), "lr": 0.1}],
        "epoch": 7,
        "empty": torch.zeros(0, 3),
    }
    torch.save(content, tmp_path / "in.pt")
    ran = command(
        "checkpoint",
        tmp_path / "in.pt",
        "--to",
        "bf16",
        "--exclude",
        "step",
        "-o",
        tmp_path / "out.pt",
    )
    assert (ran.code, ran.err) == (0, "")
    found = torch.load(tmp_path / "out.pt", weights_only=True)
    assert found["epoch"] == 7
    assert found["optimizer"][0]["lr"] == 0.1
    assert found["optimizer"][0]["step"].dtype is torch.float32
    state = found["state_dict"]
    assert isinstance(state["weight"], torch.nn.Parameter)
    assert state["weight"] is state["tied"]
    for name, before in (("weight", weight), ("turned", transposed)):
        expected = before.detach().to(torch.bfloat16)
        assert torch.equal(state[name].view(torch.int16), expected.contiguous().view(torch.int16))
    assert {path.name for path in tmp_path.iterdir()} == {"in.pt", "out.pt"}


def test_torch_codes_have_scales_beside_them(command: Command, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    values = torch.from_numpy(model()[WEIGHTS[0]])
    torch.save({"model": {"a.weight": values}, "n": 1}, tmp_path / "in.pt")
    words = ("checkpoint", tmp_path / "in.pt", "--quantize", "int8", "-o", tmp_path / "out.pt")
    assert command(*words).code == 0
    found = torch.load(tmp_path / "out.pt", weights_only=True)["model"]
    assert found["a.weight"].dtype is torch.int8
    back = found["a.weight"] * found["a.weight_scale"]
    assert (back - values).abs().max() <= found["a.weight_scale"].max() / 2 * 1.001


def test_gguf(command: Command, tmp_path: Path) -> None:
    gguf: Any = pytest.importorskip("gguf", reason="gguf is not installed (extra gguf)")
    writer = gguf.GGUFWriter(tmp_path / "in.gguf", "llama")
    plain = model()[WEIGHTS[0]]
    writer.add_tensor("blk.0.weight", plain)
    quantised = np.zeros((2, 34), np.uint8)
    writer.add_tensor("blk.1.weight", quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    words = ("checkpoint", tmp_path / "in.gguf", "--to", "bf16", "-o", tmp_path / "out.safetensors")
    ran = command(*words)
    assert ran.code == 0
    assert "1 of 2 tensors are not in the output" in ran.err
    found = load_file(tmp_path / "out.safetensors")
    assert list(found) == ["blk.0.weight"]
    assert equal_bits(found["blk.0.weight"], plain.astype(ml_dtypes.bfloat16))


def test_threads_and_memory_do_not_matter(command: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    tensors = {f"w{n}": rng.standard_normal((300, 401)).astype(np.float32) for n in range(3)}
    save_file(tensors, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", "--to", "bf16", "-o")
    outputs = {}
    for jobs, memory in ((1, "1MiB"), (3, "1MiB"), (2, "64MiB")):
        path = tmp_path / f"out{jobs}{memory}.safetensors"
        more = ("--jobs", jobs, "--memory", memory, "--json")
        report = command(*words, path, *more).json["total"]["report"]
        outputs[path.read_bytes()] = {k: v for k, v in report.items() if isinstance(v, int)}
    assert len(outputs) == 1


def numbers(count: int) -> np.ndarray:
    return np.random.default_rng(SEED).standard_normal(count).astype(np.float32)


@pytest.mark.parametrize("output", ["y.npz", "y.npy", "y.pt", "shards", "y.safetensors"])
def test_tensors_of_several_blocks(command: Command, tmp_path: Path, output: str) -> None:
    """Read back by the kind's own library; the memory is that of a few blocks, cast and copied."""
    tensors = {"big": numbers(100_000), "kept": np.arange(150_000), "small": numbers(7)}
    source, more = tmp_path / "x.npz", ["--memory", "1MiB"]
    if output == "y.npy":
        source = tmp_path / "x.npy"
        tensors = {"x": tensors["big"]}
        np.save(source, tensors["x"])
    elif output == "y.pt":
        torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
        source = tmp_path / "x.pt"
        torch.save({name: torch.from_numpy(array) for name, array in tensors.items()}, source)
    elif output == "shards":
        source = tmp_path / "x.safetensors"
        save_file(tensors, source)
        more += ["--shard-size", "300kB"]
    else:
        np.savez(source, **tensors)
    for jobs in (1, 2):
        words = ("checkpoint", source, "--to", "fp16", "--jobs", jobs, *more, "--force", "--json")
        ran = command(*words, "-o", tmp_path / output)
        assert ran.code == 0, ran.err
        rows = {row["name"]: row["report"] for row in ran.json["tensors"]}
        assert (rows.get("big") or rows["x"])["elems"] == 100_000
        found: Any
        if output == "y.npy":
            found = {"x": np.load(tmp_path / output)}
        elif output == "y.pt":
            loaded = torch.load(tmp_path / output, weights_only=True)
            found = {name: tensor.numpy() for name, tensor in loaded.items()}
        elif output == "y.npz":
            with np.load(tmp_path / output) as held:
                found = dict(held)
        else:
            of_kind = load_sharded if output == "shards" else load_file
            found = of_kind(tmp_path / output)
        assert set(found) == set(tensors)
        for name, array in tensors.items():
            expected = array.astype(np.float16) if array.dtype == np.float32 else array
            assert equal_bits(found[name], expected), name


@pytest.mark.parametrize("values", [np.arange(4, dtype=">f4"), np.ones((2, 3), "<f4", "F")])
def test_orders_that_safetensors_does_not_store(
    command: Command, tmp_path: Path, values: np.ndarray
) -> None:
    np.save(tmp_path / "x.npy", values)
    output = tmp_path / "y.safetensors"
    words = ("checkpoint", tmp_path / "x.npy", "-o", output, "--force")
    assert "tensor 'x' is F32 in an order or dtype" in command(*words, "--to", "fp32").error
    assert not output.exists()
    if not values.flags.f_contiguous or values.ndim == 1:  # cast, it has the order of safetensors
        assert command(*words, "--to", "bf16").code == 0
        assert equal_bits(load_file(output)["x"], values.astype(ml_dtypes.bfloat16))


def test_dtypes_that_safetensors_does_not_store(command: Command, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    from safetensors.torch import load_file as load_torch

    words = ("checkpoint", tmp_path / "x.pt", "--to", "bf16", "-o", tmp_path / "y.safetensors")
    torch.save({"a": torch.ones(4, dtype=torch.complex128)}, tmp_path / "x.pt")
    assert "tensor 'a' is complex128 in an order or dtype" in command(*words).error
    kept = torch.ones(4).to(torch.float8_e4m3fn)
    torch.save({"a": kept}, tmp_path / "x.pt")
    assert command(*words).code == 0
    found = load_torch(tmp_path / "y.safetensors")["a"]
    assert found.dtype is kept.dtype
    assert torch.equal(found.view(torch.uint8), kept.view(torch.uint8))


@pytest.mark.parametrize("change", [-4, 4])
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays_of_another_size_than_they_say(
    command: Command, tmp_path: Path, kind: str, change: int
) -> None:
    held = io.BytesIO()
    np.save(held, numbers(8))
    content = held.getvalue()[:change] if change < 0 else held.getvalue() + bytes(change)
    path = tmp_path / f"x.{kind}"
    if kind == "npy":
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", content)
    ran = command("checkpoint", path, "--to", "bf16", "-o", tmp_path / "y")
    assert f"declares 32 B of elements and has {32 + change} B" in ran.error
    assert list(tmp_path.iterdir()) == [path]


def test_torch_tensors_of_one_object_may_become_two(command: Command, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    weight = torch.from_numpy(model()[WEIGHTS[0]])
    torch.save({"a": weight, "b": weight, "c": weight, "d": [weight]}, tmp_path / "in.pt")
    words = ("checkpoint", tmp_path / "in.pt", "-o", tmp_path / "out.pt", "--force")
    more = ("--to", "bf16", "--to", "b=fp16", "--exclude", "c")
    assert command(*words, *more).code == 0
    found = torch.load(tmp_path / "out.pt", weights_only=True)
    dtypes = {name: str(tensor.dtype) for name, tensor in found.items() if name != "d"}
    assert dtypes == {"a": "torch.bfloat16", "b": "torch.float16", "c": "torch.float32"}
    assert found["d"][0] is found["a"]
    assert torch.equal(found["b"], weight.half())


def test_torch_scales_have_a_place(command: Command, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    values = torch.from_numpy(model()[WEIGHTS[0]])
    words = ("checkpoint", tmp_path / "in.pt", "--quantize", "int8", "-o", tmp_path / "out.pt")
    for content, says in (
        ([values], "tensor '0' is in no dict that could hold '0_scale'"),
        ({"w": values, "w_scale": 0.5}, "tensor 'w' needs the name 'w_scale', which is there"),
    ):
        torch.save(content, tmp_path / "in.pt")
        assert says in command(*words).error
        assert not (tmp_path / "out.pt").exists()
    # A name that is another's beginning, and a dict that is named as one's entry.
    torch.save({"a": {"w": values}, "a.w_": values[:2]}, tmp_path / "in.pt")
    assert command(*words, "--exclude", "w_").code == 0
    found = torch.load(tmp_path / "out.pt", weights_only=True)
    assert set(found) == {"a", "a.w_"}
    assert set(found["a"]) == {"w", "w_scale"}


def test_gguf_of_the_other_byte_order(command: Command, tmp_path: Path) -> None:
    gguf: Any = pytest.importorskip("gguf", reason="gguf is not installed (extra gguf)")
    writer = gguf.GGUFWriter(tmp_path / "in.gguf", "llama", endianess=gguf.GGUFEndian.BIG)
    plain = model()[WEIGHTS[0]]
    writer.add_tensor("w", plain)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    words = ("checkpoint", tmp_path / "in.gguf", "-o", tmp_path / "out.safetensors")
    assert "in an order or dtype" in command(*words, "--to", "fp32").error
    assert command(*words, "--to", "bf16").code == 0
    found = load_file(tmp_path / "out.safetensors")["w"]
    assert equal_bits(found, plain.astype(ml_dtypes.bfloat16))


def test_an_interrupt_in_an_archive_is_told_as_one(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_once(*arguments: Any) -> Any:
        return next(calls, fail)(*arguments)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    calls = iter([Sink.write])
    np.savez(tmp_path / "x.npz", a=numbers(100_000))
    monkeypatch.setattr(Sink, "write", write_once)
    words = ("checkpoint", tmp_path / "x.npz", "--to", "fp16", "--memory", "1MiB")
    assert command(*words, "-o", tmp_path / "y.npz").error == "interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


def test_what_was_done_is_noted(command: Command, tmp_path: Path) -> None:
    """As a reader knows it: the names and values of the fields, and no others."""
    save_file(model(), tmp_path / "m.safetensors")
    words = ("checkpoint", tmp_path / "m.safetensors", "--to", "bf16", "--to", "head=fp32")
    words = (*words, "--mode", "floor", "--satmode", "off", "--force", "-o", tmp_path / "out")
    note = {
        "version": pypto.__version__,
        "to": ["DT_BF16", "head=DT_FP32"],
        "mode": "CAST_FLOOR",
        "satmode": "OFF",
    }

    def metadata() -> dict[str, str]:
        with safe_open(tmp_path / "out", framework="numpy") as file:
            held: dict[str, str] = file.metadata()
        return held

    assert command(*words).code == 0
    assert {key: json.loads(text) for key, text in metadata().items()} == {"pypto_cast": note}
    scales = ("--quantize", "int8", "--asymmetric", "--scale", "mse", "--include", "dense")
    assert command(*words, *scales).code == 0
    held = metadata()
    expected = {"dtype": "DT_INT8", "strategy": "channel", "axis": 0, "scale": "mse"}
    expected["symmetric"] = False
    assert json.loads(held["pypto_cast"]) == {**note, "quantize": expected}
    weights = {
        "num_bits": 8,
        "type": "int",
        "symmetric": False,
        "strategy": "channel",
        "dynamic": False,
    }
    targets = [name.removesuffix(".weight") for name in WEIGHTS]
    group = {"targets": targets, "weights": weights, "format": "int-quantized"}
    assert json.loads(held["quantization_config"]) == {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": [],
    }
    assert set(held) == {"pypto_cast", "quantization_config"}


# --- The choice --------------------------------------------------------------------------------


def unchanged(command: Command, *words: object) -> dict[str, tuple[str, str | None]]:
    rows = command(*words, "--json").json["tensors"]
    return {row["name"]: (row["to"], row["unchanged"]) for row in rows}


def test_patterns_and_targets(command: Command, tmp_path: Path) -> None:
    save_file(model(), tmp_path / "m.safetensors")
    words = ("checkpoint", tmp_path / "m.safetensors", "--to", "bf16")
    found = unchanged(command, *words, "--keep-fp32", "norm|router", "--exclude", "layer.1")
    assert found[NORM] == ("FP32", "kept by 'norm|router'")
    assert found[WEIGHTS[1]] == ("FP32", "excluded by 'layer.1'")
    assert found[WEIGHTS[0]] == ("BF16", None)
    found = unchanged(command, *words, "--include", "layer.0")
    assert found[WEIGHTS[1]] == ("FP32", "not included")
    found = unchanged(command, *words, "--to", "lm_head=DT_FP32", "--to", "norm=fp16")
    assert (found["lm_head.weight"][0], found[NORM][0]) == ("FP32", "FP16")
    ran = command(*words, "--keep-fp32", "rooter")
    assert "the pattern 'rooter' is in the name of no tensor" in ran.err


def test_a_config_says_it_all(command: Command, tmp_path: Path) -> None:
    save_file(model(), tmp_path / "m.safetensors")
    config = tmp_path / "c.toml"
    config.write_text(
        'to = ["bf16", "lm_head=fp32"]\nkeep_fp32 = "norm"\nmode = "CAST_FLOOR"\njobs = 1\n'
    )
    words = ("checkpoint", tmp_path / "m.safetensors", "--config", config)
    found = unchanged(command, *words)
    assert (found[NORM][0], found["lm_head.weight"][0]) == ("FP32", "FP32")
    assert command(*words, "--json").json["mode"] == "CAST_FLOOR"
    assert command(*words, "--mode", "rint", "--json").json["mode"] == "CAST_RINT"
    for text, says in (
        ("too = 1", "unknown key 'too'"),
        ("to = 3", "to must be a list of str"),
        ('axis = "0"', "axis must be int"),
        ("to = [", "c.toml: "),
    ):
        config.write_text(text)
        assert says in command(*words).error


# --- The report --------------------------------------------------------------------------------


def test_summary_by_kind_and_page(command: Command, tmp_path: Path) -> None:
    save_file(model(), tmp_path / "m.safetensors")
    page = tmp_path / "page.html"
    words = ("checkpoint", tmp_path / "m.safetensors", "--to", "fp16", "--html", page)
    ran = command(*words)
    assert "layer.*.dense.weight" in ran.out
    text = page.read_text()
    # The overflow stands first.
    assert text.index("<h3>layer.1.dense.weight") < text.index("<h3>layer.0.dense.weight")
    assert 'class="beyond"' in text
    assert "http" not in text.replace("http-equiv", "")
    found = command("checkpoint", tmp_path / "m.safetensors", "--to", "fp16", "--json").json
    kinds = {kind["name"]: kind for kind in found["kinds"]}
    assert kinds["layer.*.dense.weight"]["tensors"] == 2
    assert kinds["layer.*.dense.weight"]["report"]["overflows"] == 1
    row = next(row for row in found["tensors"] if row["name"] == WEIGHTS[0])
    before = model()[WEIGHTS[0]].astype(np.float64)
    noise = model()[WEIGHTS[0]].astype(np.float16).astype(np.float64) - before
    expected = 10 * np.log10((before**2).sum() / (noise**2).sum())
    assert abs(row["report"]["snr_db"] - expected) < 1e-4
    assert command(*words).error == f"{page} exists; --force replaces it"


def test_binades_of_fp16(command: Command, tmp_path: Path) -> None:
    """Each end of what FP16 holds: 2^15 is normal, 2^-15 subnormal, 2^-25 less than its least."""
    edges = {16: "beyond", 15: "normal", -14: "normal", -15: "subnormal", -24: "subnormal"}
    edges |= {-25: "flushed", 127: "beyond", -126: "flushed"}
    save_file({"w": np.ldexp(np.float32(1), list(edges))}, tmp_path / "m.safetensors")
    page = tmp_path / "page.html"
    for to, others in (("fp16", {}), ("bf16", dict.fromkeys(edges, "normal"))):
        words = ("checkpoint", tmp_path / "m.safetensors", "--to", to, "--html", page, "--force")
        assert command(*words).code == 0
        bars = re.findall(r'<i class="([a-z]+)"[^>]* data-tip="2\^(-?\d+): 1"', page.read_text())
        assert {int(exponent): kind for kind, exponent in bars} == {**edges, **others}


def test_zeros_and_infinities_are_bars_beside_the_binades(command: Command, tmp_path: Path) -> None:
    """Also of a tensor that has nothing else; the table counts in columns of numbers."""
    held = {"mixed": [0, 0, 1, np.inf, -np.inf, np.nan], "wild": [np.inf, np.nan]}
    tensors = {name: np.float32(values) for name, values in held.items()}
    save_file(tensors, tmp_path / "m.safetensors")
    page = tmp_path / "page.html"
    words = ("checkpoint", tmp_path / "m.safetensors", "--to", "fp16", "--html", page)
    assert command(*words).code == 0
    text = page.read_text()
    for tip in ("0 or subnormal: 2", "2^0: 1", "infinity or NaN: 3", "infinity or NaN: 2"):
        assert text.count(f'data-tip="{tip}"') == 1
    assert text.count('<i class="beyond special"') == 2
    assert '<th scope="row">mixed</th>' in text
    assert '<th scope="col" class="number">overflow</th>' in text


@pytest.mark.slow
def test_the_page_of_a_large_model_is_small(command: Command, tmp_path: Path) -> None:
    """The worst are shown as far as there is room, and the captions say how many they are."""
    wide = 10.0 ** np.arange(-32, 32, 1 / 4)
    tensors = {f"{n}.{'<' * 80}": np.float32(wide) for n in range(2000)}
    save_file(tensors, tmp_path / "m.safetensors")
    words = ("checkpoint", tmp_path / "m.safetensors", "--to", "fp16")
    assert command(*words, "--html", tmp_path / "page.html").code == 0
    text = (tmp_path / "page.html").read_text()
    assert 500_000 < len(text.encode()) < 1_000_000
    assert re.search("Tensors, the worst first; [0-9]+ of 2,000</caption>", text)


def test_no_report(command: Command, tmp_path: Path) -> None:
    save_file(model(), tmp_path / "m.safetensors")
    words = ("checkpoint", tmp_path / "m.safetensors", "--to", "bf16", "--no-report", "--json")
    found = command(*words, "-o", tmp_path / "out").json
    assert {row["report"] for row in found["tensors"]} == {None}
    assert equal_bits(load_file(tmp_path / "out")[WEIGHTS[0]], in_bf16(model())[WEIGHTS[0]])
