"""diff: equal bits, distances in codes, and the cast that explains another dtype."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file
from support.environment.command import Command, command
from support.environment.models import WEIGHTS, model, save_sharded

__all__ = ["command"]  # a fixture


def test_equal_models_of_different_kinds(command: Command, tmp_path: Path) -> None:
    source = save_sharded(tmp_path / "in")
    np.savez(tmp_path / "m.npz", **model())
    ran = command("diff", source, tmp_path / "m.npz")
    assert (ran.code, ran.err) == (0, "")
    assert "5 tensors: 5 equal in all bits, 0 wholly a cast of the other, 0 different" in ran.out


def test_codes_that_differ(command: Command, tmp_path: Path) -> None:
    before = np.array([[1.0, 2.0, np.nan], [-0.0, 0.0, np.inf]], np.float32)
    after = before.copy()
    codes = after.view(np.uint32)
    codes[0, 0] += 3
    codes[0, 2] += 1  # another NaN
    codes[1, 0] = 0  # +0 for -0
    np.save(tmp_path / "a.npy", before)
    np.save(tmp_path / "b.npy", after)
    ran = command("diff", tmp_path / "a.npy", tmp_path / "b.npy", "--json")
    assert ran.code == 1
    (found,) = ran.json["tensors"]
    assert (found["differing"], found["nans"], found["ulp_max"]) == (3, 1, 3)
    assert found["element"]["index"] == [0, 0]
    assert found["element"]["codes"] == ["0x3f800000", "0x3f800003"]
    text = command("diff", tmp_path / "a.npy", tmp_path / "b.npy").out
    assert "3 codes differ, 1 of them NaN on both sides; at most 3 ulp, at [0, 0]" in text


@pytest.mark.parametrize(
    ("low", "high", "dtype"), [(-(2**63), 2**63 - 1, np.int64), (-128, 127, np.int8)]
)
def test_the_widest_distance(
    command: Command, tmp_path: Path, low: int, high: int, dtype: type
) -> None:
    np.save(tmp_path / "a.npy", np.array([low, 0], dtype))
    np.save(tmp_path / "b.npy", np.array([high, 0], dtype))
    ran = command("diff", tmp_path / "a.npy", tmp_path / "b.npy", "--json")
    assert ran.json["tensors"][0]["ulp_max"] == high - low


@pytest.mark.parametrize("mode", ["CAST_RINT", "CAST_FLOOR", "CAST_TRUNC", "CAST_CEIL"])
def test_the_cast_is_found(command: Command, tmp_path: Path, mode: str) -> None:
    source = tmp_path / "in.safetensors"
    save_file(model(), source)
    output = tmp_path / "out.safetensors"
    words = ("checkpoint", source, "--to", "bf16", "--mode", mode, "-o", output)
    assert command(*words).code == 0
    ran = command("diff", source, output)
    assert ran.code == 0
    assert f"B is A cast by {mode}" in ran.out
    assert f"A is B cast by {mode}" in command("diff", output, source).out


def test_elements_that_no_cast_explains(command: Command, tmp_path: Path) -> None:
    array = model()[WEIGHTS[0]]
    other = array.astype(ml_dtypes.bfloat16)
    for column in (3, 5, 7):
        other.view(np.uint16)[2, column] ^= 1
    save_file({"w": array}, tmp_path / "a.safetensors")
    save_file({"w": other}, tmp_path / "b.safetensors")
    ran = command("diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert ran.code == 1
    assert "B is A cast by CAST_RINT, but for 3 elements; the first: [2, 3]: " in ran.out


def test_what_cannot_be_compared(command: Command, tmp_path: Path) -> None:
    one = {
        "shape": np.ones(3, np.float32),
        "dtype": np.ones(3, np.int64),
        "mine": np.ones(1, np.float32),
        "wide": np.ones(2, np.float64),
    }
    other = {
        "shape": np.ones(4, np.float32),
        "dtype": np.ones(3, np.uint8),
        "theirs": np.ones(1, np.float32),
        "wide": np.array([1.0, 2.0]),
    }
    save_file(one, tmp_path / "a.safetensors")
    save_file(other, tmp_path / "b.safetensors")
    ran = command("diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "--json")
    assert ran.code == 1
    assert {row["name"]: row["found"] for row in ran.json["tensors"]} == {
        "shape": "the shapes differ",
        "dtype": "no cast of A2/A3 or 950 leads from one to the other",
        "mine": "only in A",
        "theirs": "only in B",
        "wide": "1 code differs",
    }


def test_blocks_add_up(command: Command, tmp_path: Path) -> None:
    array = np.zeros((3, 1 << 17), np.float32)
    other = array.copy()
    other[2, 5] = 1e-45
    other[0, 1] = 2e-45
    np.save(tmp_path / "a.npy", array)
    np.save(tmp_path / "b.npy", other)
    (found,) = command("diff", tmp_path / "a.npy", tmp_path / "b.npy", "--json").json["tensors"]
    assert (found["differing"], found["ulp_max"]) == (2, 1)
    assert found["element"]["index"] == [0, 1]


def write_safetensors(path: Path, dtype: str, shape: list[int], data: bytes) -> Path:
    """A file of one tensor w, of dtypes that numpy has not too."""
    entry = {"w": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}
    header = json.dumps(entry).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


def test_codes_of_fp4_that_share_a_byte_are_compared_one_by_one(
    command: Command, tmp_path: Path
) -> None:
    """E2M1 by OCP MX 1.0, table 5; the first code in the low bits, as torch has them."""
    values = np.float32([[0.5, 1, 1.5], [2, 3, 4], [6, -6, -0.0], [0, 0.5, 6]])
    codes = [1, 2, 3, 4, 5, 6, 7, 15, 8, 0, 1, 7]
    packed = bytes(a | b << 4 for a, b in zip(codes[::2], codes[1::2], strict=True))
    fp4 = write_safetensors(tmp_path / "fp4.safetensors", "F4", [4, 3], packed)
    wide = tmp_path / "wide.safetensors"
    save_file({"w": values.astype(ml_dtypes.bfloat16)}, wide)
    assert "B is A cast by CAST_RINT" in command("diff", wide, fp4).out
    assert command("diff", fp4, wide).code == command("diff", fp4, fp4).code == 0
    changed = packed[:-1] + bytes([packed[-1] ^ 0x80])
    other = write_safetensors(tmp_path / "other.safetensors", "F4", [4, 3], changed)
    ran = command("diff", fp4, other)
    assert ran.code == 1
    assert "1 code differs; at most 15 ulp, at [3, 2]: 6 = 0x7 and -6 = 0xf" in ran.out
    assert "but for 1 element; the first: [3, 2]: 6 = 0x7" in command("diff", wide, other).out


@pytest.mark.parametrize(
    ("dtype", "size_bytes"), [("F6_E2M3", 12), ("F6_E3M2", 12), ("F8_E8M0", 16), ("C64", 128)]
)
def test_the_last_byte_of_elements_without_a_format_counts(
    command: Command, tmp_path: Path, dtype: str, size_bytes: int
) -> None:
    data = bytes(range(size_bytes))
    one = write_safetensors(tmp_path / "one.safetensors", dtype, [2, 8], data)
    other = write_safetensors(
        tmp_path / "other.safetensors", dtype, [2, 8], data[:-1] + bytes([data[-1] ^ 0x80])
    )
    assert command("diff", one, one).code == 0
    ran = command("diff", one, other)
    assert ran.code == 1
    assert f"1 {'byte' if dtype.startswith('F6') else 'code'} differs" in ran.out


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q2_K"])
def test_every_byte_of_quantised_blocks_counts(command: Command, tmp_path: Path, kind: str) -> None:
    gguf: Any = pytest.importorskip("gguf", reason="gguf is not installed (extra gguf)")
    quantised = gguf.GGMLQuantizationType[kind]
    elems, size_bytes = gguf.GGML_QUANT_SIZES[quantised]
    data = np.arange(2 * size_bytes, dtype=np.uint8).reshape(2, size_bytes)
    for name, last in (("one", 0), ("other", 1)):
        data[-1, -1] = last
        writer = gguf.GGUFWriter(tmp_path / f"{name}.gguf", "llama")
        writer.add_tensor("w", data.copy(), raw_dtype=quantised)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    assert elems > 1
    assert command("diff", tmp_path / "one.gguf", tmp_path / "one.gguf").code == 0
    ran = command("diff", tmp_path / "one.gguf", tmp_path / "other.gguf")
    assert ran.code == 1
    assert "1 byte differs" in ran.out
