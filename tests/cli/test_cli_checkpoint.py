"""The checkpoint command: what is cast, what is kept, how little memory it takes, bad files."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from support.environment.command import Command, command
from support.environment.sources import ROOT
from support.numbers.codes import SEED

import pypto_cast as pypto
from pypto_cast.cast.cast_plan import plan_cast
from pypto_cast.checkpoints import blocks, checkpoint_report, model_differences, opening
from pypto_cast.checkpoints import casting as checkpoint
from pypto_cast.checkpoints.casting import Choice, folded
from pypto_cast.checkpoints.reading import Reader

__all__ = ["command"]  # a fixture

DIGITS = ROOT / "examples" / "digits.safetensors"
METADATA = {"format": "np", "note": "größe \n 1"}


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(SEED)
    return {
        "weight": rng.standard_normal((40, 33)).astype(np.float32),
        "deep": rng.standard_normal((2, 3, 2, 5, 4)).astype(np.float32),
        "scalar": np.array(0.1, np.float32),
        "empty": np.zeros((0, 3), np.float32),
        "special": np.array([np.nan, np.inf, 3.4e38, 1e-39, 1e-45], np.float32),
        "steps": np.array([1, 2**40], np.int64),
        "mean": rng.standard_normal(3),
        "mask": np.array([True, False, True]),
        "done": np.ones(3, ml_dtypes.bfloat16),
    }


@pytest.fixture
def source(tmp_path: Path, tensors: dict[str, np.ndarray]) -> Path:
    save_file(tensors, tmp_path / "in.safetensors", METADATA)
    return tmp_path / "in.safetensors"


def header_of(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


def bf16(values: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cast = pypto.cast(pypto.from_numpy(values.reshape(-1)), pypto.DT_BF16)
    return cast.numpy().reshape(values.shape)


def test_output_has_the_bits_of_pypto_cast(
    command: Command, source: Path, tensors: dict[str, np.ndarray]
) -> None:
    output = source.with_name("out.safetensors")
    ran = command("checkpoint", source, "--to", "DT_BF16", "-o", output)
    assert (ran.code, ran.err) == (0, "")
    written = load_file(output)
    assert set(written) == set(tensors)
    for name, values in tensors.items():
        is_cast = values.dtype == np.float32 and values.size > 0
        expected = bf16(values) if is_cast else values
        assert written[name].dtype == expected.dtype
        assert written[name].shape == values.shape
        assert written[name].tobytes() == expected.tobytes(), name
    with safe_open(output, framework="numpy") as file:
        metadata = file.metadata()
    note = json.loads(metadata.pop("pypto_cast"))
    assert metadata == METADATA
    assert (note["to"], note["mode"]) == (["DT_BF16"], "CAST_NONE")
    offsets = [
        entry["data_offsets"][0] % np.dtype(np.float64).itemsize
        for name, entry in header_of(output).items()
        if name in ("steps", "mean")
    ]
    assert offsets == [0, 0]
    assert int.from_bytes(output.read_bytes()[:8], "little") % 8 == 0


def test_every_tensor_is_named_with_what_was_done(command: Command, source: Path) -> None:
    found = command("checkpoint", source, "--to", "bf16", "--json").json
    rows = {row["name"]: row for row in found["tensors"]}
    assert {name: row["unchanged"] for name, row in rows.items() if row["unchanged"]} == {
        "empty": "empty",
        "steps": "INT64 -> BF16 is no cast of A2/A3",
        "mean": "FP64 -> BF16 is no cast of A2/A3",
        "mask": "BOOL -> BF16 is no cast of A2/A3",
        "done": "already BF16",
    }
    assert rows["deep"]["shape"] == [2, 3, 2, 5, 4]
    assert rows["deep"]["plan"]["shape"] == [6, 2, 5, 4]
    assert rows["scalar"]["plan"]["shape"] == [1]
    assert (rows["weight"]["from"], rows["weight"]["to"]) == ("FP32", "BF16")
    special = rows["special"]["report"]
    assert (special["overflows"], special["nans_in"], special["nans_out"]) == (1, 1, 1)
    assert (special["subnormals"], special["zeros"]) == (0, 1)  # 1e-40 was subnormal before
    total = found["total"]
    assert (total["cast"], total["unchanged"]) == (4, 5)
    elems = 40 * 33 + 240 + 1 + 5
    assert total["report"]["elems"] == elems
    assert total["bytes_in"] - total["bytes_out"] == 2 * elems
    assert found["metadata"] == METADATA
    text = command("checkpoint", source, "--to", "bf16").out
    assert "[2, 3, 2, 5, 4] folded to [6, 2, 5, 4]" in text
    assert "[] folded to [1]" in text
    assert "plan     [40, 33] in " in text


@pytest.mark.parametrize(("rows", "more"), [(4, 0), (3, 1), (2, 2)])
def test_what_a_table_leaves_out_is_counted(
    command: Command, tmp_path: Path, rows: int, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_report, "_MOST_ROWS", rows)
    monkeypatch.setattr(model_differences, "_MOST_ROWS", rows)
    cast = {f"cast{n}": np.full(3, n, np.float32) for n in range(4)}
    kept = {f"kept{n}": np.ones(3, np.int64) for n in range(4)}
    source, output = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(cast | kept, source)
    out = command("checkpoint", source, "--to", "bf16", "-o", output).out
    told = f"{more} more tensor{'s' if more > 1 else ''} in --json"
    assert out.count(f"the {rows} worst; {told}") == (more > 0)
    assert out.count("in --json") == 2 * (more > 0)
    assert out.count(f"\n{told}") == (more > 0)
    assert sum(f"kept{n}" in out for n in range(4)) == rows
    out = command("diff", source, output).out
    assert out.count(told) == out.count("in --json") == (more > 0)
    assert sum(f"cast{n}" in out for n in range(4)) == rows


def test_without_an_output_nothing_is_written(command: Command, source: Path) -> None:
    assert command("checkpoint", source, "--to", "bf16").code == 0
    assert list(source.parent.iterdir()) == [source]


def test_tiles_by_number_of_dimensions(command: Command, source: Path) -> None:
    words = ("checkpoint", source, "--to", "bf16", "--json", "--tile", "16,16", "--tile", "4,4,4")
    ran = command(*words, "--chip", "Ascend910B1")
    plans = {row["name"]: row["plan"] for row in ran.json["tensors"]}
    assert (plans["weight"]["grid"], plans["weight"]["vector_cores"]) == ([3, 3], 48)
    assert plans["special"]["tile_shape"] == [5]
    assert ran.err == (
        "pypto-cast: warning: tile shape [4, 4, 4] is not used: no tensor of 3 dimensions is cast\n"
    )
    assert "two tile shapes" in command(*words, "--tile", "8,8").error


def test_modes(command: Command, source: Path) -> None:
    up = command("checkpoint", source, "--to", "fp16", "--mode", "odd", "--json").json
    rows = {row["name"]: row for row in up["tensors"]}
    assert rows["weight"]["plan"]["mode"] == "CAST_ODD"
    ran = command("checkpoint", source, "--to", "bf16", "--mode", "odd", "--satmode", "off")
    assert ran.code == 0
    lines = ran.err.splitlines()
    assert len(lines) == 2
    assert "FP32 -> BF16 has no mode CAST_ODD" in lines[0]
    assert "SaturationMode.OFF does not act" in lines[1]


def test_equal_dtypes_stay_even_with_a_mode(command: Command, source: Path) -> None:
    ran = command("checkpoint", source, "--to", "fp32", "--mode", "rint", "--json").json
    rows = {row["name"]: row["unchanged"] for row in ran["tensors"]}
    assert (rows["weight"], rows["done"]) == ("already FP32", None)


def test_only_what_is_shown_is_planned(
    command: Command, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = []

    def plan_noted(shape: Any, *arguments: Any) -> Any:
        planned.append(shape)
        return plan_cast(shape, *arguments)

    monkeypatch.setattr(checkpoint, "plan_cast", plan_noted)
    assert command("checkpoint", source, "--to", "bf16").code == 0
    assert sorted(set(planned)) == [(1,), (5,), (6, 2, 5, 4), (40, 33)]
    planned.clear()
    assert command("checkpoint", source, "--to", "bf16", "--no-report").code == 0
    assert planned == [(40, 33)]  # the largest


def test_a_failure_half_way_leaves_nothing(
    command: Command, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter([Reader.read])

    def read_once(*arguments: Any) -> Any:
        return next(calls, fail)(*arguments)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Reader, "read", read_once)
    output = source.with_name("out.safetensors")
    assert command("checkpoint", source, "--to", "bf16", "-o", output).error == "interrupted"
    assert list(source.parent.iterdir()) == [source]


@pytest.mark.slow
def test_blocks_stay_within_the_memory(command: Command, tmp_path: Path) -> None:
    size = 1 << 22
    values = {f"layer{i}": np.full((1024, size // 1024), i + 0.1, np.float32) for i in range(4)}
    values["kept"] = np.zeros(4 * size, np.float64)
    save_file(values, tmp_path / "in.safetensors")
    del values
    words = ("checkpoint", tmp_path / "in.safetensors", "--to", "bf16", "-o", tmp_path / "out")
    words = (*words, "--memory", "8MiB")
    assert command("checkpoint", DIGITS, "--to", "bf16").code == 0  # imports and caches
    tracemalloc.start()
    try:
        assert command(*words).code == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * 2**20  # a tensor has 16 MiB, and one that is copied 128


def test_more_elements_than_a_cast_takes() -> None:
    stored = checkpoint.StoredTensor(
        name="x", dtype="F32", shape=(2, 2**30), offset_bytes=0, size_bytes=2**33
    )
    found = checkpoint.Checkpoint(path=Path("x"), tensors=(stored,), metadata={})
    (job,) = checkpoint.plan_checkpoint(found, Choice.of(pypto.DT_BF16)).jobs
    assert job.reason == "more than 2147483647 elements"


def test_folding() -> None:
    assert folded(()) == (1,)
    assert folded((2, 3, 4, 5)) == (2, 3, 4, 5)
    assert folded((2, 3, 4, 5, 6, 7)) == (24, 5, 6, 7)


def test_a_shorter_file_than_its_header_said(
    command: Command, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def truncate(path: Path) -> checkpoint.Checkpoint:
        found = read_header(path)
        path.write_bytes(path.read_bytes()[:-4000])
        return found

    read_header = opening.read_header
    monkeypatch.setattr(opening, "read_header", truncate)
    output = source.with_name("out.safetensors")
    assert "cut short" in command("checkpoint", source, "--to", "bf16", "-o", output).error
    assert list(source.parent.iterdir()) == [source]


def raw(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return (len(header) if length is None else length).to_bytes(8, "little") + header + data


def entry(shape: list[int], begin: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


HOSTILE = {
    "empty file": b"",
    "short length": b"\x10\0\0",
    "huge length": raw(b"{}", length=2**63),
    "longer than the file": raw(b"{}", length=1000),
    "no json": raw(b"{nonsense"),
    "a list": raw(b"[]"),
    "no utf-8": raw(b'{"\xff\xfe": 1}'),
    "deep": raw(b'{"a":' * 5000 + b"1" + b"}" * 5000),
    "overlap": raw(json.dumps({"a": entry([2], 0, 8), "b": entry([2], 4, 12)}).encode(), b"0" * 12),
    "hole": raw(json.dumps({"a": entry([1], 0, 4), "b": entry([1], 8, 12)}).encode(), b"0" * 12),
    "backwards": raw(json.dumps({"a": entry([1], 4, 0)}).encode(), b"0" * 4),
    "negative": raw(json.dumps({"a": entry([-1], 0, 4)}).encode(), b"0" * 4),
    "wrong size": raw(json.dumps({"a": entry([3], 0, 4)}).encode(), b"0" * 4),
    "too many elements": raw(json.dumps({"a": entry([2**62, 8], 0, 4)}).encode(), b"0" * 4),
    "cut short": raw(json.dumps({"a": entry([4], 0, 16)}).encode(), b"0" * 8),
    "more than it says": raw(json.dumps({"a": entry([1], 0, 4)}).encode(), b"0" * 8),
    "unknown dtype": raw(json.dumps({"a": entry([1], 0, 4, "Q7")}).encode(), b"0" * 4),
    "metadata no text": raw(json.dumps({"__metadata__": {"a": [1]}}).encode()),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_one_line(command: Command, tmp_path: Path, name: str) -> None:
    path = tmp_path / "in.safetensors"
    path.write_bytes(HOSTILE[name])
    ran = command("checkpoint", path, "--to", "bf16", "-o", tmp_path / "out")
    assert "is no safetensors file" in ran.error
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_headers_never_leave_a_traceback(command: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    sound = DIGITS.read_bytes()
    length = 8 + int.from_bytes(sound[:8], "little")
    path = tmp_path / "in.safetensors"
    for _ in range(40):
        damaged = bytearray(sound)
        for position in rng.integers(0, length, 3):
            damaged[position] = rng.integers(0, 256)
        path.write_bytes(damaged)
        ran = command("checkpoint", path, "--to", "bf16", "-o", tmp_path / "out", "--force")
        assert ran.code == 0 or ran.error
        assert {file.name for file in tmp_path.iterdir()} <= {"in.safetensors", "out"}


def test_hostile_names_do_not_reach_the_terminal(command: Command, tmp_path: Path) -> None:
    names = ["\x1b[31mred", "[bold]x[/bold]", "two\nlines", "x" * 300, ""]
    save_file({name: np.ones(8, np.float32) for name in names}, tmp_path / "x.safetensors")
    ran = command("checkpoint", tmp_path / "x.safetensors", "--to", "bf16")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "\\x1b[31mred" in ran.out
    assert "[bold]x[/bold]" in ran.out
    assert "two lines" in ran.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("none.safetensors --to bf16", "No such file or directory"),
        (". --out x", "No such option"),
        ("in.safetensors", "there is nothing to do"),
        ("in.safetensors --to int8", "--quantize int8 --axis 0"),
        ("in.safetensors --to bf16 --to fp16", "both for all tensors"),
        ("in.safetensors --to bf16 --include (", "is no regular expression"),
        ("in.safetensors --quantize int4", "makes int8, fp8, mxfp8, mxfp4 codes"),
        ("in.safetensors --quantize int8 --scale big", "absmax, percentile:99.9 or mse"),
        ("in.safetensors --to bf16 --memory 1", "less than a cast needs"),
        ("in.safetensors --to bf16 --memory much", "--memory is a size"),
        ("in.safetensors --to bf16 --html x.html --no-report", "--html is the report"),
        ("in.safetensors --to bf16 -o out.npz", "names another kind"),
        ("in.safetensors --to int4", "nothing in a checkpoint can be cast to DT_INT4"),
        ("in.safetensors --to double", "nothing in a checkpoint can be cast to DT_DOUBLE"),
        ("in.safetensors --to bf16 --tile 64,4096", "tensor 'wide': tile shape [64, 4096]"),
        ("in.safetensors --to bf16 --tile x", "as in 64,128"),
        ("in.safetensors --to bf16 --chip x", "unknown chip"),
        ("in.safetensors --to bf16 -o in.safetensors", "is the input in.safetensors"),
    ],
)
def test_errors_come_before_any_work(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    save_file({"wide": np.zeros((64, 9000), np.float32)}, "in.safetensors")
    monkeypatch.setattr(Reader, "read", None)
    assert says in command("checkpoint", *words.split()).error
    assert list(tmp_path.iterdir()) == [tmp_path / "in.safetensors"]


@pytest.mark.parametrize("elems", [1, 2, 3])
def test_a_tensor_may_end_with_any_block(
    command: Command, tmp_path: Path, elems: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_MOST_BLOCK_ELEMS", elems)
    tensors = {f"x{n}": np.arange(n, dtype=np.float32) for n in range(1, 2 * elems + 2)}
    source, output = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file(tensors, source)
    found = command("checkpoint", source, "--to", "bf16", "-o", output, "--jobs", 1, "--json").json
    assert sorted(row["name"] for row in found["tensors"]) == sorted(tensors)
    assert found["total"]["report"]["elems"] == sum(array.size for array in tensors.values())
    written = load_file(output)
    for name, array in tensors.items():
        np.testing.assert_array_equal(written[name], bf16(array), strict=True)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)], ids=str)
def test_an_array_may_have_a_header_of_either_version(
    command: Command, tmp_path: Path, version: tuple[int, int]
) -> None:
    path, array = tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3)
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version)
    assert command("checkpoint", path, "--to", "bf16", "-o", tmp_path / "y.safetensors").code == 0
    (written,) = load_file(tmp_path / "y.safetensors").values()
    np.testing.assert_array_equal(written, bf16(array))


def test_the_most_elements_are_cast_and_one_more_are_not(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "MAX_ELEMS", 6)
    save_file({f"x{n}": np.ones(n, np.float32) for n in (6, 7)}, tmp_path / "in.safetensors")
    rows = command("checkpoint", tmp_path / "in.safetensors", "--to", "bf16", "--json").json
    told = {row["name"]: row["unchanged"] or "" for row in rows["tensors"]}
    assert told == {"x6": "", "x7": "more than 6 elements"}


def test_nothing_to_cast(command: Command, tmp_path: Path) -> None:
    save_file({"x": np.zeros(4, np.int64)}, tmp_path / "x.safetensors")
    ran = command("checkpoint", tmp_path / "x.safetensors", "--to", "bf16", "-o", tmp_path / "y")
    assert ran.code == 0
    assert "0 tensors cast, 1 unchanged, 32 B -> 32 B" in ran.out
    np.testing.assert_array_equal(load_file(tmp_path / "y")["x"], np.zeros(4, np.int64))


@pytest.mark.parametrize("columns", [80, 120])
def test_the_example_fits(command: Command, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = command("checkpoint", DIGITS, "--to", "DT_BF16").out.splitlines()
    assert max(map(len, lines)) <= columns
    assert all(line == line.rstrip() for line in lines)
    source = "FP32 -> BF16" if columns > 80 else "FP32"
    rows = [line for line in lines if line.startswith("layer") and source in line]
    assert len(rows) == 6
    for word in ("SNR", "dB") if columns > 80 else ("max", "ulp"):
        assert any(line.endswith(word) for line in lines)
    assert "6 tensors cast, 4 unchanged, 70,648 B -> 36,196 B" in "\n".join(lines)


@pytest.mark.parametrize("to", ["DT_FP8E4M3", "DT_FP8E5M2"])
def test_a_checkpoint_becomes_fp8_on_the_950(command: Command, tmp_path: Path, to: str) -> None:
    """The file is the one that torch and its own library write."""
    torch = pytest.importorskip("torch")
    files = pytest.importorskip("safetensors.torch")
    weights = torch.from_numpy(np.linspace(-3, 3, 96, dtype=np.float32).reshape(8, 12))
    source, made, like, back = (tmp_path / f"{name}.safetensors" for name in "abcd")
    files.save_file({"w": weights}, source)
    chip = ("--chip", "Ascend950PR")
    ran = command("checkpoint", source, "--to", to, *chip, "--output", made)
    assert (ran.code, "1 tensor cast" in ran.out) == (0, True)
    holder = {"DT_FP8E4M3": torch.float8_e4m3fn, "DT_FP8E5M2": torch.float8_e5m2}[to]
    files.save_file({"w": weights.to(holder)}, like)
    assert command("diff", made, like).code == 0
    ran = command("diff", source, like, *chip)
    assert (ran.code, "B is A cast by CAST_RINT" in ran.out) == (0, True)
    ran = command("diff", source, like)
    assert (ran.code, "B is A cast by CAST_RINT" in ran.out) == (0, True)
    assert command("checkpoint", made, "--to", "DT_FP32", *chip, "--output", back).code == 0
    assert torch.equal(files.load_file(back)["w"], weights.to(holder).to(torch.float32))
    ran = command("checkpoint", source, "--to", to, "--output", tmp_path / "e.safetensors")
    assert (ran.code, f"can be cast to {to}; casts of A2/A3" in ran.err) == (2, True)
    assert command("checkpoint", made, "--quantize", "int8", "--output", back, "--force").code


def test_diff_with_bounds_reads_no_chip(command: Command, tmp_path: Path) -> None:
    names = (tmp_path / "a.npy", tmp_path / "b.npy", "--bounds", tmp_path / "c.npz")
    ran = command("diff", *names, "--chip", "Ascend950PR")
    assert (ran.code, "--chip would change nothing beside --bounds" in ran.err) == (2, True)
