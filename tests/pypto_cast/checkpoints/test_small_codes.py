"""FP8 and MX codes with scales, and HiF8: against exact arithmetic, and read back by the loader."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from support.environment.command import Command, command
from support.numbers.codes import SEED

__all__ = ["command"]  # a fixture

CHIP = ("--chip", "Ascend950PR")
E4M3 = (-6, 3, Fraction(448))
"""Exponent of the least normal number, bits behind the leading one, the greatest number; of OCP
OFP8 1.0, table 1."""
E2M1 = (0, 1, Fraction(6))
"""The same of OCP MX 1.0, table 5."""
BF16 = (-126, 7, Fraction(2) ** 128 - Fraction(2) ** 120)
FP32 = (-126, 23, Fraction(2) ** 128 - Fraction(2) ** 104)


def rounded(value: Fraction, fmt: tuple[int, int, Fraction]) -> Fraction:
    """The nearest number of a format, ties to even; beyond the greatest the greatest."""
    least, bits, greatest = fmt
    if not value:
        return value
    exponent = max(floor_log2(abs(value)), least) - bits
    nearest = round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent
    return max(-greatest, min(greatest, nearest))


def floor_log2(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1


def value_of(code: int, man_bits: int, bias: int, bits: int) -> Fraction:
    """The number of a code without infinity, as the specifications say it."""
    sign = -1 if code >> (bits - 1) else 1
    exponent = code >> man_bits & (1 << (bits - 1 - man_bits)) - 1
    fraction = Fraction(code & (1 << man_bits) - 1, 1 << man_bits)
    if not exponent:
        return sign * fraction * Fraction(2) ** (1 - bias)
    return sign * (1 + fraction) * Fraction(2) ** (exponent - bias)


def weights() -> np.ndarray:
    """[256, 128]: magnitudes far apart, zeros, ties of E4M3 and E2M1, subnormal numbers."""
    rng = np.random.default_rng(SEED)
    values = rng.standard_normal((256, 128)) * 2.0 ** rng.integers(-40, 40, (256, 4)).repeat(32, 1)
    values[3] = 0
    values[4, :32] = 2.0 ** -np.arange(32)
    values[5, :8] = [448, 17, 19, 0.5, 232, 2**-9, 2**-10, 3 * 2**-10]
    values[5, 8:] = 0
    values[6, :8] = [6, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]
    values[6, 8:] = 0
    values[7] = 2.0**-130
    values[8, 0] = 3e38
    return values.astype(np.float32)


def numbers(found: dict[str, np.ndarray], name: str) -> np.ndarray:
    """The numbers of codes, without their scales."""
    if name == "int8":
        return found["dense.weight"].astype(np.float32)
    if name == "mxfp4":
        packed = found["dense.weight_packed"]
        codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(256, 128)
        return np.float32([value_of(code, 1, 1, 4) for code in range(16)])[codes]
    return np.float32([value_of(code, 3, 7, 8) for code in range(256)])[found["dense.weight"]]


def quantised(command: Command, folder: Path, *words: object) -> dict[str, np.ndarray]:
    save_file({"dense.weight": weights()}, folder / "in.safetensors")
    output = folder / "out.safetensors"
    ran = command("checkpoint", folder / "in.safetensors", *CHIP, *words, "-o", output)
    assert ran.code == 0, ran.err
    return raw(output)


def raw(output: Path) -> dict[str, np.ndarray]:
    """The tensors of a file; floats of a byte as their codes."""
    found: dict[str, np.ndarray] = {}
    text = output.read_bytes()
    header = json.loads(text[8 : 8 + int.from_bytes(text[:8], "little")])
    begin = 8 + int.from_bytes(text[:8], "little")
    dtypes = {"F32": "<f4", "U8": "u1", "F8_E4M3": "u1", "I8": "i1"}
    for name, entry in header.items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            held = np.frombuffer(text[begin + first : begin + last], dtypes[entry["dtype"]])
            found[name] = held.reshape(entry["shape"])
    return found


SQUARE = np.arange(256)[:, None] // 128 * np.ones(128, int)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("words", "shape", "group"),
    [
        ((), (256, 1), np.arange(256)[:, None] * np.ones(128, int)),
        (("--axis", 1), (1, 128), np.arange(128) * np.ones((256, 1), int)),
        (("--strategy", "tensor"), (1,), np.zeros((256, 128), int)),
        (("--strategy", "block"), (2, 1), SQUARE),
    ],
    ids=["rows", "columns", "tensor", "block"],
)
def test_fp8_codes_are_those_of_exact_arithmetic(
    command: Command,
    tmp_path: Path,
    words: tuple[object, ...],
    shape: tuple[int],
    group: np.ndarray,
) -> None:
    found = quantised(command, tmp_path, "--quantize", "fp8", *words)
    scales = found["dense.weight_scale"]
    assert scales.shape == shape
    values = weights()
    for channel in range(scales.size):
        here = values[group == channel]
        extent = max(abs(Fraction(float(x))) for x in here)
        exact = rounded(extent / 448, FP32)
        exact = max(exact, Fraction(2) ** -126) if extent else Fraction(1)
        scale = Fraction(float(scales.reshape(-1)[channel]))
        assert scale == exact
        codes = found["dense.weight"][group == channel]
        for value, code in zip(here[:64], codes[:64], strict=True):
            quotient = rounded(Fraction(float(value)) / scale, FP32)
            assert value_of(int(code), 3, 7, 8) == rounded(quotient, E4M3)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["mxfp8", "mxfp4"])
def test_mx_codes_are_those_of_exact_arithmetic(
    command: Command, tmp_path: Path, name: str
) -> None:
    found = quantised(command, tmp_path, "--quantize", name)
    fmt, of_high = (E4M3, 8) if name == "mxfp8" else (E2M1, 2)
    scales = found["dense.weight_scale"]
    assert scales.dtype == np.uint8
    assert scales.shape == (256, 4)
    if name == "mxfp8":
        codes = found["dense.weight"]
        numbers = [value_of(code, 3, 7, 8) for code in range(256)]
    else:
        packed = found["dense.weight_packed"]
        assert packed.shape == (256, 64)
        codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(256, 128)
        numbers = [value_of(code, 1, 1, 4) for code in range(16)]
    values = weights()
    for row in range(256):
        for number in range(4):
            here = slice(number * 32, number * 32 + 32)
            extent = max(abs(Fraction(float(x))) for x in values[row, here])
            exponent = floor_log2(extent) - of_high if extent else -127
            exponent = max(-127, min(127, exponent))
            assert int(scales[row, number]) == exponent + 127
            for value, code in zip(values[row, here], codes[row, here], strict=True):
                scaled = Fraction(float(value)) / Fraction(2) ** exponent
                if name == "mxfp4":  # the 950 casts BF16 alone to E2M1
                    scaled = rounded(max(-fmt[2], min(fmt[2], scaled)), BF16)
                assert numbers[int(code)] == rounded(scaled, fmt)
                assert (int(code) >> (7 if name == "mxfp8" else 3)) == (math.copysign(1, value) < 0)


def test_quotients_of_powers_of_two_leave_no_code_open(command: Command, tmp_path: Path) -> None:
    save_file({"w": weights()}, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP, "--json", "--quantize")
    assert command(*words, "mxfp8").json["tensors"][0]["uncertain"] == 0
    assert command(*words, "fp8").json["tensors"][0]["uncertain"] > 0


@pytest.mark.parametrize("scale", ["percentile:90", "mse"])
def test_clamped_codes_are_no_nan(command: Command, tmp_path: Path, scale: str) -> None:
    found = quantised(command, tmp_path, "--quantize", "fp8", "--scale", scale)
    assert not (found["dense.weight"] & 127 == 127).any()
    ran = command(
        "checkpoint", tmp_path / "in.safetensors", *CHIP, "--json", "--quantize", "fp8",
        "--scale", "percentile:90",
    )  # fmt: skip
    assert ran.json["tensors"][0]["report"]["overflows"] > 0


def test_a_last_place_of_a_zero_is_that_of_the_least_number(
    command: Command, tmp_path: Path
) -> None:
    """The scales are 1, so the errors are those of the weights, in units of 2**-9 for E4M3."""
    save_file({"w": np.float32([[448, 2**-10], [448, 2**-11]])}, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP, "--json", "--quantize", "fp8")
    report = command(*words).json["tensors"][0]["report"]
    assert (report["zeros"], report["ulp_max"], report["ulp_mean"]) == (2, 0.5, 0.1875)
    assert report["worst"] == {"tensor": "w", "index": [0, 1], "source": 2**-10, "result": 0}


def test_codes_that_share_a_byte_are_named_by_their_format(
    command: Command, tmp_path: Path
) -> None:
    save_file({"w": np.ones((2, 32), np.float32)}, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP, "--quantize", "mxfp4")
    assert "FP32 -> E2M1" in command(*words).out
    assert command(*words, "--json").json["tensors"][0]["dst"] == "E2M1"


@pytest.mark.parametrize(
    ("words", "classes"),
    [
        (
            ("--to", "fp8e4m3"),
            {9: "beyond", 8: "normal", -6: "normal", -7: "subnormal", -9: "subnormal"}
            | {-10: "flushed"},
        ),
        (("--to", "fp8e5m2"), {16: "beyond", 15: "normal", -15: "subnormal", -17: "flushed"}),
        (("--to", "hf8"), {16: "beyond", 15: "normal", -22: "normal", -23: "flushed"}),
        (("--quantize", "mxfp8"), dict.fromkeys((20, 8, -6, -60), "normal")),
        (("--quantize", "mxfp4"), dict.fromkeys((20, 8, -6, -60), "normal")),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_binades_by_what_holds_them(
    command: Command, tmp_path: Path, words: tuple[str, ...], classes: dict[int, str]
) -> None:
    """The greatest binade of E4M3 holds 256 to 448; scales bring any binade into range."""
    values = np.zeros((1, 32), np.float32)
    values[0, : len(classes)] = np.ldexp(np.float32(1), list(classes))
    save_file({"w": values}, tmp_path / "in.safetensors")
    page = tmp_path / "page.html"
    assert (
        command("checkpoint", tmp_path / "in.safetensors", *CHIP, *words, "--html", page).code == 0
    )
    bars = re.findall(r'<i class="([a-z]+)"[^>]* data-tip="2\^(-?\d+): 1"', page.read_text())
    assert {int(exponent): kind for kind, exponent in bars} == classes


def test_hif8_is_read_back_only_by_its_name(command: Command, tmp_path: Path) -> None:
    values = np.float32([[0, -0.0, 1, 1.0625, 1e9, -(2.0**-22), np.inf, np.nan]])
    save_file({"w": values}, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP, "--to", "hf8", "-o")
    assert command(*words, tmp_path / "hf8.safetensors").code == 0
    with safe_open(tmp_path / "hf8.safetensors", framework="numpy") as file:
        assert json.loads(file.metadata()["pypto_cast.dtypes"]) == {"w": "HF8"}
        assert file.get_tensor("w").dtype == np.uint8
    back = ("checkpoint", tmp_path / "hf8.safetensors", *CHIP, "--to", "fp32", "-o")
    assert command(*back, tmp_path / "back.safetensors").code == 0
    found = load_file(tmp_path / "back.safetensors")["w"]
    # 1.0625 is the middle between two codes and goes away from zero; the least is 2**-22.
    expected = np.float32([[0, 0, 1, 1.125, np.inf, -(2.0**-22), np.inf, np.nan]])
    np.testing.assert_array_equal(found, expected)
    # As a copy it keeps its name, and without that it is bytes.
    kept = ("checkpoint", tmp_path / "hf8.safetensors", *CHIP, "--to", "fp32", "--exclude", "w")
    assert command(*kept, "-o", tmp_path / "kept.safetensors").code == 0
    with safe_open(tmp_path / "kept.safetensors", framework="numpy") as file:
        assert json.loads(file.metadata()["pypto_cast.dtypes"]) == {"w": "HF8"}
    save_file({"w": np.uint8([[1, 2]])}, tmp_path / "bytes.safetensors")
    plain = ("checkpoint", tmp_path / "bytes.safetensors", *CHIP, "--to", "fp32", "--json")
    assert command(*plain).json["tensors"][0]["src"] == "UINT8"


def hif8(path: Path, codes: list[int]) -> None:
    save_file({"w": np.uint8([codes])}, path, metadata={"pypto_cast.dtypes": '{"w": "HF8"}'})


@pytest.mark.parametrize("to", ["fp8e4m3", "fp8e5m2", "hf8"])
def test_floats_of_a_byte_are_not_quantised_again(
    command: Command, tmp_path: Path, to: str
) -> None:
    """A file may hold scales for them, which would not be applied."""
    tensors = {"w": np.ones((2, 32), np.float32), "v": np.ones((2, 32), np.float32)}
    save_file(tensors, tmp_path / "in.safetensors")
    small = tmp_path / "small.safetensors"
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP, "--to", f"w={to}", "-o", small)
    assert command(*words).code == 0
    ran = command("checkpoint", small, *CHIP, "--quantize", "int8", "--json")
    rows = {row["name"]: row["to"] for row in ran.json["tensors"]}
    assert rows["v"] == "INT8"
    assert rows["w"] != "INT8"
    assert "has no INT8 codes" in command("checkpoint", small, *CHIP, "--quantize", "int8").out


def test_hif8_as_a_source_of_pages(command: Command, tmp_path: Path) -> None:
    """0x08 is 1 and 0x10 is 2, as arXiv 2409.16626 has them."""
    hif8(tmp_path / "in.safetensors", [0x08] * 31 + [0x10])
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP)
    page = tmp_path / "page.html"
    assert command(*words, "--to", "fp32", "--html", page).code == 0
    assert 'data-tip="2^0: 31"' in page.read_text()
    assert 'data-tip="2^1: 1"' in page.read_text()


def test_hif8_that_differs(command: Command, tmp_path: Path) -> None:
    hif8(tmp_path / "a.safetensors", [0x08, 0x10])
    hif8(tmp_path / "b.safetensors", [0x08, 0x11])
    ran = command("diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert "1 code differs; at most 1 ulp, at [0, 1]: 2 = 0x10 and 2.25 = 0x11" in ran.out


@pytest.mark.parametrize("to", ["fp8e4m3", "fp8e5m2", "hf8"])
def test_differences_know_casts_of_another_family(
    command: Command, tmp_path: Path, to: str
) -> None:
    save_file({"w": np.float32([[0.3, 1.7, 5]])}, tmp_path / "in.safetensors")
    output = tmp_path / "out.safetensors"
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP, "--to", to, "-o", output)
    assert command(*words).code == 0
    ran = command("diff", tmp_path / "in.safetensors", output)
    assert ran.code == 0
    assert "B is A cast" in ran.out


@pytest.mark.parametrize(
    ("dtypes", "told"),
    [
        ('{"w": "HF4"}', "'w' is said to be 'HF4'; known: HF8"),
        ('{"w": 8}', "'w' is said to be 8; known: HF8"),
        ('{"v": "HF8"}', "'v' is said to be HF8, and is no tensor of U8"),
        ('{"f": "HF8"}', "'f' is said to be HF8, and is no tensor of U8"),
        ("[]", "its JSON is no object but list"),
        ("{", "Expecting property name"),
        ('{"w": "HF8", "w": "HF8"}', "'w' occurs twice"),
        ("[" * 100_000, "'pypto_cast.dtypes' of its metadata"),
    ],
)
def test_wrong_names_of_dtypes_are_refused(
    command: Command, tmp_path: Path, dtypes: str, told: str
) -> None:
    tensors = {"w": np.uint8([1]), "f": np.float32([1])}
    save_file(tensors, tmp_path / "in.safetensors", metadata={"pypto_cast.dtypes": dtypes})
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP, "--to", "fp32")
    assert told in command(*words).error


def test_files_without_a_dtype_for_hif8(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", w=np.float32([1, 2]))
    words = ("checkpoint", tmp_path / "in.npz", *CHIP, "--to", "hf8", "-o")
    told = "tensor 'w' is HF8, which a .npz file has no dtype for; name a .safetensors"
    assert told in command(*words, tmp_path / "out.npz").error
    assert not (tmp_path / "out.npz").exists()
    assert command(*words, tmp_path / "out.safetensors").code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--quantize", "fp4"), "--quantize makes int8, fp8, mxfp8, mxfp4 codes, not 'fp4'"),
        (("--quantize", "fp8", "--asymmetric"), "fp8 codes have no zero points"),
        (("--quantize", "fp8", "--strategy", "row"), "--strategy is channel, tensor, block, not"),
        (("--quantize", "fp8", "--strategy", "block", "--axis", 1), "--strategy block has none"),
        (("--quantize", "mxfp8", "--strategy", "block"), "a scale for each 32 elements"),
        (("--quantize", "mxfp8", "--axis", 1), "a scale for each 32 elements"),
        (("--quantize", "mxfp4", "--scale", "mse"), "mxfp4 has scales by absmax alone"),
        (("--to", "fp8e4m3", "--strategy", "tensor"), "changes nothing without --quantize"),
        (("--to", "fp4_e2m1x2"), "nothing in a checkpoint can be cast to DT_FP4_E2M1X2"),
        (("--to", "fp4_e2m1x2"), "; --quantize mxfp4 makes codes of it"),
        (("--to", "fp8"), "; DT_FP8 is a name without a format here; formats are of DT_FP8E4M3, "),
    ],
)
def test_settings_that_do_not_go_together(
    command: Command, tmp_path: Path, words: tuple[object, ...], told: str
) -> None:
    save_file({"w": np.ones((2, 32), np.float32)}, tmp_path / "in.safetensors")
    assert told in command("checkpoint", tmp_path / "in.safetensors", *CHIP, *words).error


@pytest.mark.parametrize("codes", ["fp8", "mxfp8", "mxfp4"])
def test_a_family_without_the_casts_names_one_that_has_them(
    command: Command, tmp_path: Path, codes: str
) -> None:
    save_file({"w": np.ones((2, 32), np.float32)}, tmp_path / "in.safetensors")
    error = command("checkpoint", tmp_path / "in.safetensors", "--quantize", codes).error
    assert "which A2/A3 has not; --chip Ascend950PR has it" in error


def test_a_pair_that_is_no_cast_names_a_way(command: Command, tmp_path: Path) -> None:
    """Another chip, or by way of FP32, which holds all of a narrower float; else none."""
    tensors = {
        "bf16": np.ones(2, ml_dtypes.bfloat16),
        "e5m2": np.ones(2, ml_dtypes.float8_e5m2),
        "i64": np.ones(2, np.int64),
    }
    save_file(tensors, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", "--json", "--to")
    why = {
        row["name"]: row["unchanged"] for row in command(*words, "fp8e4m3", *CHIP).json["tensors"]
    }
    by_fp32 = "is no cast of 950; --to fp32 and then --to of its result makes it"
    assert why == {
        "bf16": f"BF16 -> E4M3FN {by_fp32}",
        "e5m2": f"F8_E5M2 -> E4M3FN {by_fp32}",
        "i64": "INT64 -> E4M3FN is no cast of 950",
    }
    why = {row["name"]: row["unchanged"] for row in command(*words, "fp32").json["tensors"]}
    assert why["e5m2"] == "F8_E5M2 -> FP32 is no cast of A2/A3; --chip Ascend950PR has it"
    error = command(*words, "hf8").error
    assert "nothing in a checkpoint can be cast to DT_HF8" in error
    assert error.endswith("; --chip Ascend950PR casts to it")


def test_shapes_that_have_no_whole_groups_stay(command: Command, tmp_path: Path) -> None:
    tensors = {"odd": np.ones((2, 33), np.float32), "even": np.ones((3, 160), np.float32)}
    save_file(tensors, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP, "--json", "--quantize")
    rows = {row["name"]: row for row in command(*words, "mxfp4").json["tensors"]}
    assert "33 elements along the last axis are no multiple of the 32" in str(rows["odd"])
    assert rows["even"]["to"] != "FP32"
    rows = {
        row["name"]: row for row in command(*words, "fp8", "--strategy", "block").json["tensors"]
    }
    assert "160 elements along the last axis are no multiple of the 128" in str(rows["even"])


@pytest.mark.parametrize("name", ["E1M2", "E2M1"])
def test_fp4_of_cast_in_npy_is_compared(tmp_path: Path, command: Command, name: str) -> None:
    """numpy has no dtype of E1M2 and no name in a file for E2M1; their bytes say enough."""
    source, small, other = (tmp_path / f"{name}.npy" for name in ("source", "small", "other"))
    np.save(source, np.float32([[0.5, 1, 0, -0.25]]).astype(ml_dtypes.bfloat16))
    words = ("cast", source, "--from", "bf16", *CHIP, "--to", f"fp4_{name}x2", "-o", small)
    assert command(*words).code == 0
    assert command("diff", small, small).code == 0
    changed = np.load(small)
    changed.view(np.uint8)[0, 3] ^= 8
    np.save(other, changed)
    ran = command("diff", small, other)
    assert (ran.code, "1 code differs" in ran.out) == (1, True)
    unchanged = command("checkpoint", small, *CHIP, "--to", "fp32", "--json").json["tensors"]
    assert unchanged[0]["unchanged"] == "|V1 -> FP32 is no cast of 950"


def test_elements_that_share_a_byte_are_copied(tmp_path: Path, command: Command) -> None:
    entry = {"w": {"dtype": "F4", "shape": [2, 4], "data_offsets": [0, 4]}}
    header = json.dumps(entry).encode()
    content = len(header).to_bytes(8, "little") + header + bytes([0x21, 0x43, 0x65, 0x87])
    (tmp_path / "in.safetensors").write_bytes(content)
    words = ("checkpoint", tmp_path / "in.safetensors", *CHIP, "--to", "bf16", "--json")
    ran = command(*words, "-o", tmp_path / "out.safetensors")
    assert ran.json["tensors"][0]["unchanged"] == "elements of F4 that share a byte are not cast"
    assert (tmp_path / "out.safetensors").read_bytes().endswith(content[-4:])
    assert command("diff", tmp_path / "in.safetensors", tmp_path / "out.safetensors").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("fp8",),
        ("fp8", "--strategy", "tensor"),
        ("fp8", "--strategy", "block"),
        ("mxfp8",),
        ("mxfp4",),
        ("int8", "--strategy", "tensor"),
    ],
    ids=" ".join,
)
def test_the_loader_of_the_layouts_reads_them(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    torch = pytest.importorskip("torch", reason="compressed-tensors needs torch")
    pytest.importorskip("compressed_tensors", reason="pip install compressed-tensors")
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
    from safetensors.torch import load_file as load_torch

    found = quantised(command, tmp_path, "--quantize", *words)
    with safe_open(tmp_path / "out.safetensors", framework="numpy") as file:
        entry = json.loads(file.metadata()["quantization_config"])
    config = QuantizationConfig.model_validate(entry)
    tiny: Any = torch.nn.Module()
    tiny.dense = torch.nn.Linear(128, 256, bias=False)
    apply_quantization_config(tiny, config)
    compressor = ModelCompressor(quantization_config=config)
    compressor.compress_model(tiny)
    held = load_torch(tmp_path / "out.safetensors")
    assert set(held) == set(tiny.state_dict())
    for name, tensor in tiny.state_dict().items():
        assert (held[name].dtype, held[name].shape) == (tensor.dtype, tensor.shape), name
    tiny.load_state_dict(held)
    compressor.decompress_model(tiny)
    back = tiny.dense.weight.detach().float().numpy()
    scales = found["dense.weight_scale"]
    if scales.dtype == np.uint8:
        scales = np.ldexp(np.float32(1), scales.astype(np.int32) - 127)
    for axis in (0, 1) if scales.ndim == 2 else ():
        scales = scales.repeat((256, 128)[axis] // scales.shape[axis], axis)
    np.testing.assert_array_equal(back, numbers(found, words[0]) * scales)


@pytest.mark.parametrize("words", [("--quantize", "mxfp8"), ("--to", "fp8e4m3")])
def test_the_error_of_each_layer_is_against_its_tensors_in_bf16(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    rng = np.random.default_rng(SEED)
    tensors = {
        f"layers.{layer}.{name}.weight": (rng.standard_normal((64, 64)) / 8).astype(np.float32)
        for layer in (0, 10)
        for name in ("up", "down")
    }
    source, output = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(tensors, source)
    ran = command("checkpoint", source, *CHIP, *words, "--json", "-o", output)
    layers = {layer["name"]: layer for layer in ran.json["layers"]}
    assert {name: layer["tensors"] for name, layer in layers.items()} == {
        "layers.0": 2,
        "layers.10": 2,
    }
    found, value = raw(output), np.float64([value_of(code, 3, 7, 8) for code in range(256)])
    for name, layer in layers.items():
        signal = noise = 0.0
        for tensor in (f"{name}.up.weight", f"{name}.down.weight"):
            bf16 = tensors[tensor].astype(ml_dtypes.bfloat16).astype(np.float64)
            exponents = found.get(f"{tensor}_scale", np.full((64, 2), 127)).astype(np.int64) - 127
            after = value[found[tensor]] * 2.0 ** exponents.repeat(32, axis=1)
            signal += float((bf16**2).sum())
            noise += float(((after - bf16) ** 2).sum())
        expected = 10 * np.log10(signal / noise)
        assert abs(layer["against_bf16"]["snr_db"] - expected) < 1e-4
        assert layer["report"]["snr_db"] != layer["against_bf16"]["snr_db"]
    assert "layer, against BF16" in command("checkpoint", source, *CHIP, *words).out


def test_hif8_of_cast_in_npy_is_cast_back_and_compared(tmp_path: Path, command: Command) -> None:
    codes = np.setdiff1d(np.arange(256, dtype=np.uint8), [0x80]).reshape(1, 255)  # without NaN
    hif8, wide, back = (tmp_path / f"{name}.npy" for name in ("hif8", "wide", "back"))
    np.save(hif8, codes.view([("HF8", "V1")]))
    assert command("cast", hif8, *CHIP, "--to", "fp32", "-o", wide).code == 0
    assert command("checkpoint", hif8, *CHIP, "--to", "fp32", "-o", back).code == 0
    assert back.read_bytes() == wide.read_bytes()
    assert np.load(wide)[0, [0x08, 0x87, 0x6F]].tolist() == [1.0, -1.0, math.inf]
    assert "B is A cast by CAST_ROUND" in command("diff", wide, hif8).out
    assert command("diff", hif8, hif8).code == 0
