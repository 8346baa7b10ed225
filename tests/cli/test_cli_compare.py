"""The command: compare."""

from __future__ import annotations

import numpy as np
import pytest
from support.environment.command import Command, command

from pypto_cast.dialects.systems import DIALECTS

__all__ = ["command"]  # a fixture

FRAMEWORKS = ["pypto", "pypto-off", "torch", "onnx", "openvino", "paddle", "numpy"]
"""The dialects that have a row for every pair."""
PAIR = ("--from", "float16", "--to", "int8")


def cells(out: str) -> dict[str, list[str]]:
    """The words of each dialect's row."""
    lines = (line.split() for line in out.splitlines())
    return {words[0]: words[1:] for words in lines if words and words[0] in DIALECTS}


def test_a_number(command: Command) -> None:
    ran = command("compare", "130.0", *PAIR)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("130.0: FP16 -> INT8\n")
    assert "0|10110|0000010000  0x5810" in ran.out
    found = cells(ran.out)
    assert list(found) == FRAMEWORKS
    assert {name: words[:2] for name, words in found.items()} == {
        "pypto": ["127", "0x7f"],
        "pypto-off": ["-126", "0x82"],
        "torch": ["-126", "0x82"],
        "onnx": ["127", "0x7f"],
        "openvino": ["-126", "0x82"],
        "paddle": ["not", "settled"],
        "numpy": ["-126", "0x82"],
    }
    assert "C17 6.3.1.4" in ran.out


def test_a_negative_number_is_no_option(command: Command) -> None:
    assert command("compare", "-1e3", *PAIR).out.startswith("-1e3: FP16 -> INT8\n")


def test_a_pair_alone(command: Command) -> None:
    ran = command("compare", *PAIR)
    assert ran.out.startswith("FP16 -> INT8\n")
    assert "0x" not in ran.out


def test_what_was_written(command: Command) -> None:
    wide = ("--from", "float8_e4m3fn", "--to", "float16")
    assert "written  449, which E4M3FN cannot hold" in command("compare", "449", *wide).out
    for number in ("448", "-nan", "code:0x7e"):
        assert "written" not in command("compare", number, *wide).out


def test_a_code_without_a_sign(command: Command) -> None:
    ran = command("compare", "1", "--from", "float8_e8m0fnu", "--to", "float32")
    assert "bits   01111111  0x7f" in ran.out
    assert cells(ran.out)["onnx"][:2] == ["1", "0x3f800000"]


def test_a_nan_of_any_bits(command: Command) -> None:
    words = ("compare", "nan", "--from", "fp32", "--to", "bf16")
    found = cells(command(*words).out)
    assert (found["pypto"][:2], found["torch"][:2]) == (["nan", "0x7fff"], ["nan", "any"])
    torch = command(*words, "--json").json["rows"][2]
    assert (torch["value"], torch["code"], torch["settled"]) == ("nan", None, True)


def test_what_a_framework_has_not(command: Command) -> None:
    ran = command("compare", "1", "--from", "fp32", "--to", "uint8")
    assert cells(ran.out)["pypto"][:2] == ["no", "conversion"]
    ran = command("compare", "nan", "--from", "fp32", "--to", "uint32")
    assert cells(ran.out)["torch"][:2] == ["not", "settled"]


def test_a_mode(command: Command) -> None:
    ran = command("compare", "2.5", *PAIR, "--mode", "ceil")
    assert cells(ran.out)["pypto"][0] == "3"


def test_all_values(command: Command) -> None:
    ran = command("compare", "--all-values", *PAIR)
    assert "18,154  65,536            0  0x5800 = 128: 127 and -128" in ran.out
    assert ran.out.count(" 65,536 ") == 21


def test_between_two(command: Command) -> None:
    ran = command("compare", "--all-values", *PAIR, "--between", "torch, numpy")
    assert ran.out.splitlines()[-1].split() == ["torch", "numpy", "0", "65,536", "0", "none"]


def test_settings_and_fake_convert(command: Command) -> None:
    pair = ("--from", "float16", "--to", "float8_e4m3fn")
    found = cells(command("compare", "nan", *pair).out)
    assert set(found) == {*DIALECTS} - {"onnx-19", "pypto-950"}
    assert found["fake-plugin"][:2] == ["-448", "0xfe"]
    ran = command("compare", "--all-values", *pair, "--between", "onnx,onnx-off")
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    beyond = int((np.abs(values.astype(np.float64)) > 464).sum())
    assert ran.out.splitlines()[-1].split()[:3] == ["onnx", "onnx-off", f"{beyond:,}"]


def test_json(command: Command) -> None:
    document = command("compare", "130", *PAIR, "--all-values", "--json").json
    assert {key: document[key] for key in ("from", "to", "mode", "value", "code")} == {
        "from": "FP16",
        "to": "INT8",
        "mode": "CAST_NONE",
        "value": "130",
        "code": "0x5810",
    }
    assert [row["dialect"] for row in document["rows"]] == FRAMEWORKS
    torch = document["rows"][2]
    assert (torch["value"], torch["code"], torch["settled"]) == ("-126", "0x82", True)
    first = document["differences"][0]
    assert first == {
        "between": ["pypto", "pypto-off"],
        "count": 18154,
        "not_settled": 0,
        "total": 65536,
        "first": {"code": "0x5800", "results": ["0x7f", "0x80"]},
    }
    assert "differences" not in command("compare", "130", *PAIR, "--json").json


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("130", "--from", "float16"), "Missing option '--to'"),
        (
            ("130", "--from", "float17", "--to", "int8"),
            "unknown dtype 'float17' (did you mean float16",
        ),
        (("x", *PAIR), "'x' is no number"),
        (("300", "--from", "int8", "--to", "fp16"), "300 is not in INT8"),
        ((*PAIR, "--mode", "up"), "unknown mode 'up'"),
        (("--from", "fp32", "--to", "int8", "--all-values"), "FP32 has 2^32 codes"),
        ((*PAIR, "--between", "torch,numpy"), "--between goes with --all-values"),
        ((*PAIR, "--all-values", "--between", "torch"), "--between names two of pypto, "),
        (
            (*PAIR, "--all-values", "--between", "onnx,onnx-off"),
            "numpy for FP16 -> INT8, as in pypto,torch; got 'onnx,onnx-off'",
        ),
        (
            ("--from", "fp16", "--to", "int4", "--all-values", "--between", "pypto,torch"),
            "torch does not convert FP16 to INT4",
        ),
    ],
)
def test_errors(command: Command, words: tuple[str, ...], text: str) -> None:
    assert text in command("compare", *words).error


@pytest.mark.parametrize(
    ("number", "to", "codes"),
    [
        ("-3", "float8_e8m0fnu", {"torch": "0x81", "onnx": "0x00", "onnx-off": "0xff"}),
        ("0", "float8_e8m0fnu", {"torch": "0x00", "onnx": "0x00", "onnx-off": "0xff"}),
        ("1.25", "float8_e8m0fnu", {"torch": "0x7f", "onnx": "0x80", "numpy": "0x7f"}),
        ("0x1.08p-127", "DT_FP8E8M0", {"torch": "0x01", "onnx": "0x01", "numpy": "0x01"}),
        ("nan", "float4_e2m1", {"onnx": "0x0", "numpy": "0x8", "torch": None}),
        ("inf", "DT_FP4_E2M1X2", {"onnx": "0x7", "numpy": "0x7"}),
    ],
)
def test_small_floats_in_the_frameworks(
    command: Command, number: str, to: str, codes: dict[str, str | None]
) -> None:
    """As torch 2.13, ml_dtypes 0.6 and the text of ONNX have them."""
    rows = command("compare", number, "--from", "float32", "--to", to, "--json").json["rows"]
    found = {row["dialect"]: row["code"] for row in rows}
    wanted = {name: code if code is None else int(code, 16) for name, code in codes.items()}
    shown = {name: None if found[name] is None else int(found[name], 16) for name in codes}
    assert shown == wanted
