"""The command: cast, matrix and explain."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from support.environment.command import Command, command, npy

import pypto_cast as pypto
from ascend_kernels import matrix_table
from ascend_kernels.matrix import MATRIX
from pypto_cast.dtypes.data_types import numpy_dtype
from pypto_cast.dtypes.names import dtype_named
from pypto_cast.tensors.array_files import npz_arrays
from simulator.numbers.literals import number_of
from tiling.chips import A2_A3

__all__ = ["command", "npy"]  # fixtures


def cast_bits(values: npt.NDArray[np.generic], *arguments: object) -> npt.NDArray[np.generic]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pypto.cast(pypto.from_numpy(values), *arguments).numpy()


# cast


def test_cast_writes_the_bits_of_pypto_cast(command: Command, npy: Path) -> None:
    output = npy.with_name("y.npy")
    ran = command("cast", npy, "--to", "fp16", "--mode", "odd", "--tile", "32,16", "-o", output)
    assert (ran.code, ran.err) == (0, "")
    assert "[100, 30] in 8 tiles of [32, 16], grid 4 x 2, tails [4, 14]" in ran.out
    assert "8 of 40 cores of Ascend910B3" in ran.out
    assert "3072 of 196608 B of UB a tile, double-buffered" in ran.out
    assert f"written to {output}" in ran.out
    expected = cast_bits(np.load(npy), pypto.DT_FP16, pypto.CAST_ODD)
    np.testing.assert_array_equal(np.load(output).view(np.uint16), expected.view(np.uint16))


def test_cast_reports_in_json(command: Command, npy: Path) -> None:
    found = command("cast", npy, "--to", "DT_FP16", "--tile", "64,32", "--json").json
    assert (found["from"], found["to"]) == ("DT_FP32", "DT_FP16")
    assert found["plan"]["mode"] == "CAST_RINT"
    assert (found["plan"]["tiles"], found["plan"]["tails"]) == (2, [36, 0])
    report = found["report"]
    counted = {key: report[key] for key in ("overflows", "nans_in", "nans_out", "zeros")}
    assert counted == {"overflows": 1, "nans_in": 1, "nans_out": 1, "zeros": 1}
    assert (report["elems"], report["subnormals"]) == (3000, 1)
    assert 0.4 < report["ulp_max"] <= 0.5
    assert report["worst"]["source"] == float(np.load(npy)[tuple(report["worst"]["index"])])


def test_chip_and_saturation(command: Command, npy: Path) -> None:
    words = ("cast", npy, "--to", "FP16", "--tile", "1,32", "--json")
    found = command(*words, "--chip", "Ascend910B1", "--no-inf-nan").json
    assert (found["plan"]["chip"], found["plan"]["busy_cores"]) == ("Ascend910B1", 48)
    assert found["report"]["nans_out"] == 0


def small_floats(command: Command, path: Path, *words: str) -> list[int]:
    output = path.with_name("y.npy")
    ran = command("cast", path, "--chip", "Ascend950PR", "-o", output, "--force", *words)
    assert (ran.code, ran.err) == (0, "")
    return list(np.load(output).view(np.uint8).ravel().tolist())


def test_control_bits_and_readings_of_the_950(command: Command, tmp_path: Path) -> None:
    floats, path = np.array([np.nan, np.inf, 1.0, 2.0], np.float32), tmp_path / "x.npy"
    np.save(path, floats)
    to_fp8 = ("--to", "DT_FP8E4M3")
    assert small_floats(command, path, *to_fp8) == [0x7F, 0x7F, 0x38, 0x40]
    assert small_floats(command, path, *to_fp8, "--no-inf-nan") == [0, 0x7E, 0x38, 0x40]
    saturated = small_floats(command, path, *to_fp8, "--no-inf-nan", "--fp8-nan")
    assert saturated == [0x7F, 0x7E, 0x38, 0x40]
    assert small_floats(command, path, *to_fp8, "--no-global-saturation")[:2] == [0, 0x7E]
    off = small_floats(command, path, *to_fp8, "--no-global-saturation", "--satmode", "OFF")
    assert off[:2] == [0x7F, 0x7F]
    np.save(path, floats.astype(ml_dtypes.bfloat16).view(np.uint16))
    to_fp4 = ("--from", "DT_BF16", "--to", "DT_FP4_E2M1X2")
    assert small_floats(command, path, *to_fp4) == [0, 7, 2, 4]
    assert small_floats(command, path, *to_fp4, "--reading", "nan-e2m1=max") == [7, 7, 2, 4]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--fp8-nan",), "option fp8_nan=True is CTRL[50] of chips of 950; Ascend910B3"),
        (("--reading", "nan-e2m1"), "--reading takes NAME=VALUE, such as nan-e2m1=max, not 'nan"),
        (("--reading", "a=b", "--reading", "a=c"), "--reading gives a name twice: a=b a=c"),
        (("--reading", "nan=max", "--chip", "Ascend950PR"), "the nearest is 'nan-e2m1'"),
    ],
)
def test_wrong_bits_and_readings(
    command: Command, npy: Path, words: tuple[str, ...], text: str
) -> None:
    ran = command("cast", npy, "--to", "FP16", *words)
    assert ran.code == 2
    assert text in ran.err


def test_explain_follows_readings(command: Command) -> None:
    pair = ("--from", "DT_BF16", "--to", "DT_FP4_E2M1X2", "--chip", "Ascend950PR")
    assert "NaN becomes 0" in command("explain", "nan", *pair).out
    ran = command("explain", "nan", *pair, "--reading", "nan-e2m1=max")
    assert "NaN becomes 6" in ran.out
    ran = command("explain", "1.3", *pair, "--reading", "bf16-fp4-modes=five")
    assert ran.out.count("CAST_") == 5


def test_files_of_two_codes_in_a_byte(command: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 64), 0x21, np.uint8))
    words = ("--from", "DT_FP4_E2M1X2", "--to", "DT_BF16", "--chip", "Ascend950PR")
    refused = command("cast", tmp_path / "x.npy", *words).error
    assert "x.npy has the byte 0x21; a code of DT_FP4_E2M1X2 has 4 bits" in refused


def test_nothing_of_zero_is_dropped(command: Command) -> None:
    for chip, dst in (("Ascend910B3", "FP16"), ("Ascend950PR", "DT_HF8")):
        ran = command("explain", "-0.0", "--from", "FP32", "--to", dst, "--chip", chip)
        assert "dropped  nothing: the value fits" in ran.out


def test_matrix_and_trace_follow_readings(command: Command, tmp_path: Path) -> None:
    on = ("--chip", "Ascend950PR", "--reading")
    rows = {
        value: command("matrix", *on, f"fp32-fp8-modes={value}", "--json").json["pairs"]
        for value in ("five", "rint")
    }
    modes = {
        value: next(row["modes"] for row in found if (row["src"], row["dst"]) == ("FP32", "E5M2"))
        for value, found in rows.items()
    }
    assert modes == {"five": ["RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"], "rint": ["RINT"]}
    np.save(tmp_path / "x.npy", np.ones((8, 64), np.uint16))
    words = ("trace", tmp_path / "x.npy", "--from", "DT_BF16", "--to", "DT_FP4_E2M1X2", *on)
    ceil = ("--mode", "CAST_CEIL", "--tile", "8,64")
    assert "CAST_CEIL" in command(*words, "bf16-fp4-modes=five", *ceil).out
    assert "CAST_RINT" in command(*words, "bf16-fp4-modes=none", *ceil).out


def test_satmode_off(command: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full(32, 300.0, np.float16))
    output = tmp_path / "y.npy"
    ran = command(
        "cast", tmp_path / "x.npy", "--to", "int8", "--satmode", "off", "--tile", 32, "-o", output
    )
    assert "CAST_TRUNC, SaturationMode.OFF" in ran.out
    assert set(np.load(output)) == {44}


@pytest.mark.parametrize("name", ["cast", "trace"])
def test_the_tile_of_the_planner_is_told_in_the_report(
    command: Command, npy: Path, name: str
) -> None:
    """As the option that sets it, with which the plan is the same and nobody is warned."""
    chosen = command(name, npy, "--to", "fp16")
    assert (chosen.code, chosen.err) == (0, "")
    (line,) = (line for line in chosen.out.splitlines() if "--tile" in line)
    found = re.fullmatch(
        r" +the planner chose the tile shape; --tile (\d+,(?:16|32)) sets it", line
    )
    assert found is not None
    given = command(name, npy, "--to", "fp16", "--tile", found[1])
    assert (given.code, given.err) == (0, "")
    assert given.out == chosen.out.replace(f"{line}\n", "")
    assert "--tile" not in command("cast", npy, "--to", "fp32").out


def test_strict_refuses(command: Command, npy: Path) -> None:
    words = ("cast", npy, "--to", "fp16", "--tile", "8,5")
    assert "multiple of 16 elements" in command(*words).err
    assert "multiple of 16 elements" in command(*words, "--strict").error


def test_bf16_needs_its_name(command: Command, tmp_path: Path) -> None:
    values = np.array([1.5, -2.0, np.nan], ml_dtypes.bfloat16)
    np.save(tmp_path / "bytes.npy", values)
    np.save(tmp_path / "codes.npy", values.view(np.uint16))
    assert "--from DT_BF16" in command("cast", tmp_path / "bytes.npy", "--to", "fp32").error
    for name in ("bytes", "codes"):
        output = tmp_path / f"{name}.out.npy"
        words = ("cast", tmp_path / f"{name}.npy", "--from", "bf16", "--to", "fp32", "--tile", 8)
        assert command(*words, "-o", output).code == 0
        expected = cast_bits(values, pypto.DT_FP32).view(np.uint32)
        np.testing.assert_array_equal(np.load(output).view(np.uint32), expected)


@pytest.mark.parametrize("name", ["bfloat16", "int4", "float16"])
def test_how_to_read_the_output_back(command: Command, npy: Path, name: str) -> None:
    """The command says it for dtypes that .npy has no name for."""
    source, output = npy.with_name("in.npy"), npy.with_name("y.npy")
    np.save(source, np.ones(64, np.float16 if name == "int4" else np.float32))
    dtype = {"bfloat16": "bf16", "float16": "fp16"}.get(name, name)
    ran = command("cast", source, "--to", dtype, "-o", output)
    *_, last = ran.out.splitlines()
    if name == "float16":
        assert last == f"written to {output}"
        return
    assert last == f"written to {output}; to read it: numpy.load(...).view(ml_dtypes.{name})"
    read = np.load(output).view(getattr(ml_dtypes, name))
    np.testing.assert_array_equal(read, np.ones(64, read.dtype))


def test_int4_both_ways(command: Command, tmp_path: Path) -> None:
    values = np.arange(-8, 8).astype(np.float16)
    np.save(tmp_path / "x.npy", values)
    there, back = tmp_path / "i4.npy", tmp_path / "back.npy"
    assert command("cast", tmp_path / "x.npy", "--to", "int4", "--tile", 64, "-o", there).code == 0
    words = ("cast", there, "--from", "DT_INT4", "--to", "fp16", "--tile", 64, "-o", back)
    assert command(*words).code == 0
    np.testing.assert_array_equal(np.load(back), values)


@pytest.mark.parametrize("layout", ["fortran", "big-endian"])
def test_any_layout(command: Command, tmp_path: Path, layout: str) -> None:
    values = np.random.default_rng(2).standard_normal((9, 16)).astype(np.float32)
    stored = np.asfortranarray(values) if layout == "fortran" else values.astype(">f4")
    np.save(tmp_path / "x.npy", stored)
    output = tmp_path / "y.npy"
    words = ("cast", tmp_path / "x.npy", "--to", "bf16", "--tile", "4,16", "-o", output)
    assert command(*words).code == 0
    expected = cast_bits(values, pypto.DT_BF16).view(np.uint16)
    np.testing.assert_array_equal(np.load(output).view(np.uint16), expected)


def test_the_same_dtype_comes_back(command: Command, npy: Path) -> None:
    ran = command("cast", npy, "--to", "fp32")
    assert (ran.code, ran.err) == (0, "")
    assert "it is FP32 already" in ran.out
    assert "FP32 -> FP32, CAST_RINT" in command("cast", npy, "--to", "fp32", "--mode", "rint").out


# matrix


def test_matrix_lists_every_pair(command: Command) -> None:
    found = command("matrix", "--json").json
    assert found["family"] == A2_A3
    rows = found["pairs"]
    assert [(row["src"], row["dst"]) for row in rows] == [
        (str(src), str(dst)) for src, dst in MATRIX[A2_A3]
    ]
    by_pair = {(row["src"], row["dst"]): row for row in rows}
    assert by_pair["FP16", "INT8"] == {
        "src": "FP16",
        "dst": "INT8",
        "source": "FP16",
        "destination": "INT8",
        "modes": ["RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"],
        "default": "TRUNC",
        "overflow": "clamped, NaN 0",
        "off_acts": True,
    }
    overflow = {pair: row["overflow"] for pair, row in by_pair.items()}
    assert overflow["FP32", "FP16"] == "inf or max, by mode"
    assert overflow["INT32", "FP16"] == "inf"
    assert overflow["FP16", "INT32"] == "inf clamped, NaN 0"
    assert overflow["INT16", "FP16"] == overflow["BF16", "FP32"] == "none"
    text = command("matrix").out.splitlines()
    assert len(text) == len(rows) + 1
    assert "[RINT] ROUND FLOOR CEIL TRUNC ODD" in text[1]


def test_matrix_in_markdown() -> None:
    lines = matrix_table.markdown().splitlines()
    assert len(lines) == len(MATRIX[A2_A3]) + 2
    assert lines[2] == (
        "| FP32 | FP16 | **RINT**, ROUND, FLOOR, CEIL, TRUNC, ODD | inf or max, by mode |  |"
    )


# explain


def test_explain_shows_the_cut_and_every_mode(command: Command) -> None:
    found = command("explain", "0.1", "--from", "DT_FP32", "--to", "DT_FP16", "--json").json
    assert found["value"] == "0.100000001490116119384765625"
    assert (found["rounded_from"], found["code"]) == ("0.1", "0x3dcccccd")
    assert found["bits"] == "0|01111011|10011001100110011001101"
    assert found["significand"] == {
        "kept": "11001100110",
        "dropped": "0110011001101",
        "guard": False,
        "sticky": True,
        "quantum": -14,
    }
    codes = {result["mode"]: result["code"] for result in found["results"]}
    low, high = "0x2e66", "0x2e67"
    assert codes == {
        "CAST_RINT": low,
        "CAST_ROUND": low,
        "CAST_FLOOR": low,
        "CAST_CEIL": high,
        "CAST_TRUNC": low,
        "CAST_ODD": high,
    }
    text = command("explain", "0.1", "--from", "fp32", "--to", "fp16").out
    assert "0.1, which FP32 cannot hold" in text
    assert "CAST_RINT   0x2e66  0|01011|1001100110  0.0999755859375   -0.4 ulp  default" in text


@pytest.mark.parametrize(
    ("words", "value", "first", "note"),
    [
        ("-300.5 --from fp16 --to int8", "-300.5", "-128", "clamped"),
        ("inf --from fp32 --to bf16", "inf", "inf", ""),
        ("-inf --from fp16 --to uint8", "-inf", "0", "clamped"),
        ("nan --from fp32 --to int32", "nan", "0", "NaN becomes 0"),
        ("code:0x7fc00000 --from fp32 --to fp16", "nan", "nan", ""),
        ("0x1.8p3 --from fp32 --to int64", "12", "12", "exact"),
        ("-0.0 --from fp32 --to fp16", "-0", "-0", "exact"),
        ("1e6 --from fp32 --to fp16", "1000000", "inf", "overflow"),
        ("-5 --from int4 --to fp16", "-5", "-5", "exact"),
        ("inf --from fp32 --to fp8e4m3 --chip Ascend950PR", "inf", "nan", "infinity becomes NaN"),
        ("-inf --from bf16 --to fp4_e2m1x2 --chip Ascend950PR", "-inf", "-6", "clamped"),
        ("2.5 --from fp32 --to fp32", "2.5", "2", ""),
        ("9007199254740993 --from int64 --to fp32", "9007199254740993", "9007199254740992", ""),
    ],
)
def test_explain(command: Command, words: str, value: str, first: str, note: str) -> None:
    found = command("explain", *words.split(), "--json").json
    assert found["value"] == value
    assert (found["results"][0]["value"], found["results"][0]["note"]) == (first, note)
    assert command("explain", *words.split()).code == 0


def test_explain_shows_satmode_off(command: Command) -> None:
    found = command("explain", "300", "--from", "fp16", "--to", "int8", "--json").json
    assert {result["satmode_off"] for result in found["results"]} == {"44"}
    assert "satmode OFF" in command("explain", "300", "--from", "fp16", "--to", "int8").out


@pytest.mark.parametrize("dtype", ["fp8e4m3", "fp8e5m2", "hf8", "fp4_e2m1x2", "fp4_e1m2x2"])
def test_small_floats_come_back_from_npy_and_npz(
    command: Command, tmp_path: Path, dtype: str
) -> None:
    """As numpy saves them: plain bytes, and of E5M2 a header that numpy itself cannot read."""
    chip, wide = ("--chip", "Ascend950PR"), "bf16" if "x2" in dtype else "fp32"
    codes = np.arange(16 if "x2" in dtype else 256, dtype=np.uint8)
    values = codes.view(numpy_dtype(dtype_named(dtype)))
    there, bytes_of, again = (tmp_path / f"{name}.npy" for name in ("there", "bytes", "again"))
    np.save(there, values)
    np.save(bytes_of, codes.view("V1"))
    for source in (there, bytes_of):
        output = source.with_suffix(".wide.npy")
        ran = command("cast", source, "--from", dtype, "--to", wide, *chip, "-o", output)
        assert (ran.code, ran.err) == (0, "")
    wide_codes = np.load(there.with_suffix(".wide.npy")).view("u2" if wide == "bf16" else "u4")
    np.testing.assert_array_equal(
        np.load(bytes_of.with_suffix(".wide.npy")).view(wide_codes.dtype), wide_codes
    )
    source = there.with_suffix(".wide.npy")
    back = command("cast", source, "--from", wide, "--to", dtype, *chip, "-o", again)
    assert back.code == 0
    is_nan = np.isin(codes, nan_bytes(dtype))
    np.testing.assert_array_equal(np.load(again).view(np.uint8)[~is_nan], codes[~is_nan])
    np.savez(tmp_path / "all.npz", a=values, b=codes.view("V1"))
    held = npz_arrays(tmp_path / "all.npz")
    np.testing.assert_array_equal(held["a"].view(np.uint8), held["b"].view(np.uint8))


def nan_bytes(dtype: str) -> list[int]:
    """Codes of NaN, of which a cast keeps one."""
    fmt = dtype_named(dtype).number_format
    return [code for code in range(256) if number_of(code, fmt).special == "nan"]


def test_bytes_without_a_name_are_refused_with_those_that_fit(
    command: Command, tmp_path: Path
) -> None:
    source = tmp_path / "x.npy"
    np.save(source, np.ones(8, ml_dtypes.float8_e4m3fn))
    error = command("cast", source, "--to", "fp32", "--chip", "Ascend950PR").error
    assert "--from DT_INT4 or DT_HF8 or DT_FP8E4M3 or DT_FP8E5M2" in error
    np.save(source, np.zeros(8, "V3"))
    assert "elements that no dtype has" in command("cast", source, "--to", "fp32").error
    np.save(source, np.ones(8, ml_dtypes.float8_e4m3fn))
    np.save(tmp_path / "y.npy", np.ones(8, np.float32))
    assert (
        "B is of bytes that .npy has no name for" in command("diff", tmp_path / "y.npy", source).out
    )
