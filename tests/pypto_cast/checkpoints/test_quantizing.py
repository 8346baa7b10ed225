"""INT8 codes with scales: against exact arithmetic, and read back by the loader of the layout."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from support.environment.command import Command, command
from support.environment.models import WEIGHTS, model, save_sharded
from support.numbers.codes import SEED

__all__ = ["command"]  # a fixture


def to_fp32(value: Fraction) -> Fraction:
    """The nearest FP32 number, ties to even; for magnitudes within its normal range."""
    if not value:
        return value
    exponent = 0
    magnitude = abs(value)
    while magnitude >= 2**24:
        magnitude, exponent = magnitude / 2, exponent + 1
    while magnitude < 2**23:
        magnitude, exponent = magnitude * 2, exponent - 1
    # round() takes ties to even.
    return (1 if value > 0 else -1) * round(magnitude) * Fraction(2) ** exponent


def exact_codes(row: np.ndarray, zero: int | None) -> tuple[np.ndarray, np.float32]:
    """Codes of one channel by fractions, and its scale."""
    values = [Fraction(float(x)) for x in row]
    if zero is None:
        scale = to_fp32(max(abs(x) for x in values) / 127)
    else:
        low, high = min(*values, Fraction(0)), max(*values, Fraction(0))
        scale = to_fp32(to_fp32(high / 2 - low / 2) / Fraction(255, 2))
    scale = scale or Fraction(1)
    offset = zero or 0
    codes = [max(-128, min(127, round(to_fp32(to_fp32(x / scale) + offset)))) for x in values]
    return np.array(codes, np.int8), np.float32(float(scale))


def weights() -> np.ndarray:
    rng = np.random.default_rng(SEED)
    values = (rng.standard_normal((12, 65)) * 2.0 ** rng.integers(-20, 20, (12, 1))).astype("f4")
    values[3] = 0
    values[4] = np.abs(values[4])
    values[5, :5] = [127, 0.5, 1.5, -2.5, 126.5]  # ties: the scale is 1
    values[5, 5:] = 0
    return values


def quantised(command: Command, folder: Path, *words: object) -> dict[str, np.ndarray]:
    save_file({"a.weight": weights(), "a.bias": weights()[0]}, folder / "in.safetensors")
    output = folder / "out.safetensors"
    ran = command(
        "checkpoint", folder / "in.safetensors", "--quantize", "int8", *words, "-o", output
    )
    assert ran.code == 0
    is_by_rows = "--axis" not in words or 0 in words
    assert ("without its quantization_config" in ran.err) is not is_by_rows
    with safe_open(output, framework="numpy") as file:
        assert ("quantization_config" in file.metadata()) is is_by_rows
    return load_file(output)


def test_symmetric_codes_are_those_of_exact_arithmetic(command: Command, tmp_path: Path) -> None:
    found = quantised(command, tmp_path)
    assert set(found) == {"a.weight", "a.weight_scale", "a.bias"}
    assert found["a.weight_scale"].shape == (12, 1)
    for row, codes, scale in zip(
        weights(), found["a.weight"], found["a.weight_scale"][:, 0], strict=True
    ):
        expected, exact_scale = exact_codes(row, None)
        assert scale == exact_scale
        np.testing.assert_array_equal(codes, expected)
    assert found["a.weight"][5, :5].tolist() == [127, 0, 2, -2, 126]
    assert found["a.bias"].dtype == np.float32


def test_asymmetric_codes_are_those_of_exact_arithmetic(command: Command, tmp_path: Path) -> None:
    found = quantised(command, tmp_path, "--asymmetric")
    zeros = found["a.weight_zero_point"]
    assert zeros.dtype == np.int8
    for n, row in enumerate(weights()):
        expected, scale = exact_codes(row, int(zeros[n, 0]))
        assert found["a.weight_scale"][n, 0] == scale
        np.testing.assert_array_equal(found["a.weight"][n], expected)
        low = min(Fraction(float(row.min())), Fraction(0))
        exact_zero = -128 - to_fp32(low / Fraction(float(scale)))
        assert zeros[n, 0] == max(-128, min(127, round(to_fp32(exact_zero))))


def test_scales_of_columns(command: Command, tmp_path: Path) -> None:
    found = quantised(command, tmp_path, "--axis", 1)
    assert found["a.weight_scale"].shape == (1, 65)
    for n, column in enumerate(weights().T):
        np.testing.assert_array_equal(found["a.weight"][:, n], exact_codes(column, None)[0])


@pytest.mark.parametrize("rule", ["percentile:90", "mse"])
@pytest.mark.parametrize("axis", [0, 1])
def test_other_scales(command: Command, tmp_path: Path, rule: str, axis: int) -> None:
    found = quantised(command, tmp_path, "--scale", rule, "--axis", axis)
    values, scale = weights().astype(np.float64), found["a.weight_scale"].astype(np.float64)
    extreme = np.abs(values).max(axis=1 - axis, keepdims=True)
    inside = scale * 127 <= extreme * (1 + 1e-6)
    assert inside[extreme > 0].all()
    if rule == "mse":
        plain = (extreme / 127).astype(np.float32).astype(np.float64)
        plain[plain == 0] = 1
        errors = []
        for one in (scale, plain):
            codes = np.clip(np.rint(values / one), -128, 127)
            errors.append(((codes * one - values) ** 2).sum(axis=1 - axis))
        assert (errors[0] <= errors[1] * (1 + 1e-6)).all()
    else:
        shares = (np.abs(values) <= scale * 127 * (1 + 1e-6)).mean(axis=1 - axis)
        assert (shares >= 0.88).all()


def test_open_codes_are_counted(command: Command, tmp_path: Path) -> None:
    values = np.zeros((1, 8), np.float32)
    # The scale is 1, and 2.5 lies on the middle between two codes; divided by 1 it is certain
    # nowhere that the device divides within a bound.
    values[0, :3] = [127, 2.5, 2.25]
    save_file({"w": values}, tmp_path / "in.safetensors")
    found = command("checkpoint", tmp_path / "in.safetensors", "--quantize", "int8", "--json").json
    assert found["tensors"][0]["uncertain"] == 1


def test_only_matrices_unless_told(command: Command, tmp_path: Path) -> None:
    tensors = {"cube": np.ones((2, 3, 4), np.float32), "row": np.ones(4, np.float32)}
    save_file(tensors, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", "--quantize", "int8", "--to", "bf16")
    assert "no tensor of FP32, FP16 or BF16 has 2 dimensions" in command(*words).error
    rows = command(*words, "--dims", "1", "--json").json["tensors"]
    assert {row["name"]: row["to"] for row in rows} == {"cube": "BF16", "row": "INT8"}
    rows = command(*words, "--dims", "2", "--dims", "3", "--json").json["tensors"]
    assert {row["name"]: row["to"] for row in rows} == {"cube": "INT8", "row": "BF16"}


def test_numbers_that_have_no_code(command: Command, tmp_path: Path) -> None:
    save_file({"w": np.array([[1, np.nan]], np.float32)}, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", "--quantize", "int8", "-o", tmp_path / "y")
    assert "tensor 'w' holds NaN or infinity" in command(*words).error
    assert not (tmp_path / "y").exists()
    twice = {"w": np.ones((2, 2), np.float32), "w_scale": np.ones(2, np.float32)}
    save_file(twice, tmp_path / "in.safetensors")
    assert "would be named 'w_scale'" in command(*words).error


def test_blocks_of_rows_give_the_same_codes(command: Command, tmp_path: Path) -> None:
    values = np.random.default_rng(2).standard_normal((700, 130)).astype(np.float32)
    save_file({"w": values}, tmp_path / "in.safetensors")
    found = []
    for memory in ("1MiB", "256MiB"):
        for axis in (0, 1):
            output = tmp_path / f"{memory}{axis}"
            words = ("checkpoint", tmp_path / "in.safetensors", "--quantize", "int8", "-o", output)
            assert command(*words, "--axis", axis, "--memory", memory).code == 0
            found.append(load_file(output)["w"].tobytes())
    assert found[:2] == found[2:]
    words = ("checkpoint", tmp_path / "in.safetensors", "--quantize", "int8", "--memory", "1MiB")
    assert "--memory allows" in command(*words, "--scale", "mse", "--axis", "1").error


@pytest.mark.exhaustive  # the loader takes seconds to import
@pytest.mark.parametrize("word", ["--symmetric", "--asymmetric"])
def test_the_loader_of_the_layout_reads_it(command: Command, tmp_path: Path, word: str) -> None:
    torch = pytest.importorskip("torch", reason="compressed-tensors needs torch")
    name = "compressed_tensors"
    pytest.importorskip(name, reason="pip install compressed-tensors")
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
    from safetensors.torch import load_file as load_torch

    source = save_sharded(tmp_path / "in")
    words = ("checkpoint", source, "--quantize", "int8", word, "--exclude", "head", "-o")
    assert command(*words, tmp_path / "out").code == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["model_type"] == "tiny"
    entry = config["quantization_config"]
    config = QuantizationConfig.model_validate(entry)
    tiny: Any = torch.nn.Module()
    tiny.layer = torch.nn.ModuleList([torch.nn.Module() for _ in range(2)])
    for layer in tiny.layer:
        layer.dense = torch.nn.Linear(40, 24, bias=False)
    apply_quantization_config(tiny, config)
    compressor = ModelCompressor(quantization_config=config)
    compressor.compress_model(tiny)
    held = {}
    for file in (tmp_path / "out").glob("*.safetensors"):
        held.update(load_torch(file))
    state = {key: held[key] for key in tiny.state_dict()}
    assert any(key.endswith("_scale") for key in state)
    tiny.load_state_dict(state)
    compressor.decompress_model(tiny)
    for number, key in enumerate(WEIGHTS):
        back = tiny.layer[number].dense.weight.detach().float().numpy()
        zero = held.get(f"{key}_zero_point")
        codes = held[key].numpy().astype(np.float32)
        shifted = codes if zero is None else codes - zero.numpy().astype(np.float32)
        np.testing.assert_array_equal(back, shifted * held[f"{key}_scale"].numpy())
        step = held[f"{key}_scale"].numpy()
        assert (np.abs(back - model()[key]) <= step * 0.5001).all()
