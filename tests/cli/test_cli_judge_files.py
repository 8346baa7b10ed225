"""The command judge: kinds of files, folders of dumps, dump.json, and written verdicts."""

from __future__ import annotations

import io
import json
import os
import pickle
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.environment.command import Command, command

__all__ = ["command"]  # a fixture

X = np.arange(64, dtype=np.float32).reshape(8, 8) / 7


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    np.save(tmp_path / "golden.npy", X)
    return tmp_path / "golden.npy"


def test_pt_and_safetensors(command: Command, golden: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.numpy")
    torch.save(torch.from_numpy(X.copy()), tmp_path / "x.pt")
    torch.save({"y": torch.from_numpy(X.copy())}, tmp_path / "d.pt")
    safetensors.save_file({"y": X}, tmp_path / "x.safetensors")
    for name in ("x.pt", "d.pt", "x.safetensors"):
        ran = command("judge", tmp_path / name, "--golden", golden)
        assert (ran.code, ran.err) == (0, ""), name
        assert "0 of 64 elements have other bits" in ran.out


def test_bf16_of_safetensors(command: Command, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    saved = pytest.importorskip("safetensors.torch")
    narrow = torch.from_numpy(X.copy()).to(torch.bfloat16)
    saved.save_file({"y": narrow}, tmp_path / "x.safetensors")
    torch.save(narrow, tmp_path / "x.pt")
    np.save(tmp_path / "wide.npy", narrow.float().numpy())
    np.save(tmp_path / "codes.npy", narrow.view(torch.int16).numpy().view(np.uint16))
    for result in ("x.pt", "x.safetensors"):
        for other in ("wide", "codes"):
            words = ("--golden", tmp_path / f"{other}.npy", "--dtype", "bf16")
            ran = command("judge", tmp_path / result, *words)
            assert (ran.code, ran.err) == (0, "")
    ran = command("judge", tmp_path / "x.pt", "--golden", tmp_path / "x.safetensors")
    assert (ran.code, ran.err) == (0, ""), "both say their dtype"
    ran = command("judge", tmp_path / "x.pt", "--golden", tmp_path / "x.pt", "--dtype", "fp16")
    assert (ran.code, "which is not DT_FP16" in ran.err) == (2, True)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_tensors_of_folders(name: str, command: Command, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    narrow = torch.from_numpy(X.copy()).to(getattr(torch, name))
    for folder, changed in (("device", 1), ("cpu", 0)):
        (tmp_path / folder).mkdir()
        other = narrow.clone()
        other.view(torch.uint8).reshape(-1)[0] ^= changed
        torch.save(other, tmp_path / folder / "step1.pt")
    found = command("judge", tmp_path / "device", "--golden", tmp_path / "cpu", "--json").json
    assert (found["judged"], found["first"]) == (1, "step1.pt")


class _Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def as_npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def hostile(folder: Path) -> dict[str, bytes]:
    torch = pytest.importorskip("torch")
    torch.save({"y": _Evil(folder / "ran")}, folder / "evil.pt")
    huge = b'{"y":{"dtype":"F32","shape":[99999999999],"data_offsets":[0,4]}}'
    return {
        "evil.pt": (folder / "evil.pt").read_bytes(),
        "evil_pickle.pt": pickle.dumps(_Evil(folder / "ran")),
        "evil.npy": b"\x93NUMPY\x01\x00\x76\x00"
        + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"
        + b" " * 60
        + b"\n"
        + pickle.dumps(_Evil(folder / "ran")),
        "empty.pt": b"",
        "empty.safetensors": b"",
        "huge.safetensors": len(huge).to_bytes(8, "little") + huge + b"\0" * 4,
        "text.pt": b"hello",
        "text.npz": b"hello",
        "wide.npy": as_npy(X.astype(np.float64)),
        "words.npy": as_npy(np.array(["a"])),
        "dump.json": b"[" * 100_000,
        "list.json": b"[1]",
        "none.json": b'{"data": {}}',
    }


@pytest.mark.parametrize(
    "name",
    [
        *("evil.pt", "evil_pickle.pt", "evil.npy", "empty.pt", "empty.safetensors"),
        *("huge.safetensors", "text.pt", "dump.json", "list.json", "none.json"),
        *("text.npz", "wide.npy", "words.npy"),
    ],
)
def test_hostile_files_get_one_line(
    name: str, command: Command, golden: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(hostile(tmp_path)[name])
    words = () if name.endswith(".json") else ("--golden", golden)
    ran = command("judge", tmp_path / name, *words)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1, ran.err
    assert name in ran.err or "error: result: numpy dtype" in ran.err
    assert not (tmp_path / "ran").exists()


def folder_of(path: Path, changed: str = "") -> Path:
    path.mkdir()
    for k in (1, 2, 10):
        np.save(path / f"step{k}.npy", X * np.float32(k) + np.float32(f"step{k}" == changed))
    return path


def test_the_first_step_that_differs(command: Command, tmp_path: Path) -> None:
    device, cpu = folder_of(tmp_path / "device"), folder_of(tmp_path / "cpu")
    assert command("judge", device, "--golden", cpu).code == 0
    for name in ("step2", "step10"):
        np.save(device / f"{name}.npy", X)
    np.save(device / "step11.npy", X)
    ran = command("judge", device, "--golden", cpu)
    assert ran.code == 1
    assert "the first that differs: step2.npy" in ran.out
    document = command("judge", device, "--golden", cpu, "--json").json
    assert document["first"] == "step2.npy"
    assert [row["step"] for row in document["steps"]] == ["step2.npy", "step10.npy", "step11.npy"]
    assert "does not have it" in document["steps"][2]["reason"]


def calls_of(folder: Path, changed: str = "", suffix: str = "npy") -> Path:
    """Three calls whose names sort otherwise than they ran: mul, add, exp."""
    data = folder / "rank0" / "dump_tensor_data"
    data.mkdir(parents=True)
    document: dict[str, object] = {}
    for k, name in enumerate(("mul", "add", "exp")):
        stem = f"Torch.{name}.0.forward.output.0"
        document[f"Torch.{name}.0.forward"] = {
            "input_kwargs": {"other": {"data_name": f"Torch.{name}.0.forward.input.0.npy"}},
            "output": [{"data_name": f"{stem}.npy"}],
        }
        value = X + np.float32(k + (name in changed.split()))
        np.save(data / f"Torch.{name}.0.forward.input.0.npy", X)
        np.save(data / f"{stem}.npy", value)
        if suffix != "npy":
            (data / f"{stem}.npy").rename(data / f"{stem}.{suffix}")
    (folder / "rank0" / "dump.json").write_text(json.dumps({"data": document}))
    return folder


@pytest.mark.parametrize("place", ["", "rank0", "rank0/dump_tensor_data"])
def test_the_first_that_differs_is_that_of_the_program(
    place: str, command: Command, tmp_path: Path
) -> None:
    """By names add would come first."""
    device, cpu = calls_of(tmp_path / "device", "mul add"), calls_of(tmp_path / "cpu")
    for first, second in ((device, cpu), (cpu, device)):
        found = command("judge", first / place, "--golden", second / place, "--json").json
        assert [Path(row["step"]).name for row in found["steps"]] == [
            "Torch.mul.0.forward.output.0.npy",
            "Torch.add.0.forward.output.0.npy",
        ]
        assert found["first"].endswith("Torch.mul.0.forward.output.0.npy")
    (cpu / "rank0" / "dump.json").unlink()
    ran = command("judge", device / place, "--golden", cpu / place)
    assert "the first that differs: " in ran.out
    assert "Torch.mul.0.forward.output.0.npy" in ran.out.split("the first that differs: ")[1]
    assert "6 of 6 steps are judged, in the order of the program" in ran.out
    (device / "rank0" / "dump.json").unlink()
    ran = command("judge", device / place, "--golden", cpu / place)
    assert "in the order of their names" in ran.out


def test_a_golden_of_another_kind_of_file(command: Command, tmp_path: Path) -> None:
    device = calls_of(tmp_path / "device")
    cpu = calls_of(tmp_path / "cpu", suffix="bin")
    for path in cpu.rglob("*.bin"):
        np.load(path).tofile(path.with_suffix(".raw"))
        path.with_suffix(".raw").rename(path)
    words = ("--dtype", "fp32", "--shape", "8,8")
    ran = command("judge", device, "--golden", cpu, *words)
    assert (ran.code, ran.err) == (0, "")
    assert "6 of 6 steps are judged" in ran.out
    ran = command("judge", device, "--golden", cpu, "--junit", tmp_path / "j.xml")
    assert ran.code == 0
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert [suite.get(key) for key in ("tests", "failures", "skipped")] == ["6", "0", "3"]
    reasons = [each.get("message", "") for each in suite.iter("skipped")]
    assert all("give --dtype and --shape" in reason for reason in reasons)
    assert "3 of 6 steps are judged" in (suite.findtext("system-out") or "")


def test_dumps_of_two_runs_of_a_kernel(command: Command, tmp_path: Path) -> None:
    """BF16 is kept as its codes; the index says so."""
    for name, mode in (("a", "RINT"), ("b", "TRUNC")):
        (tmp_path / f"{name}.py").write_text(TWO_CASTS.format(mode=mode))
        assert command("run", "--dump", tmp_path / name, tmp_path / f"{name}.py").code == 0
    for place in ("a", "b"):  # names that sort otherwise than they ran
        index = tmp_path / place / "index.jsonl"
        text = index.read_text()
        for path in (tmp_path / place).glob("*.npy"):
            start = "z" if path.name.startswith("000000") else "a"
            other = start + path.name.replace("b_py", "a_py")
            text = text.replace(path.name, other)
            path.rename(tmp_path / place / other)
        index.write_text(text)
    found = command("judge", tmp_path / "b", "--golden", tmp_path / "a", "--json").json
    assert found["first"].startswith("z000000_a_py_8_cast_out")
    assert {row["step"].split("_", 1)[0] for row in found["steps"]} == {"z000000", "a000001"}
    (tmp_path / "b" / "index.jsonl").write_text("[1]\n")
    ran = command("judge", tmp_path / "b", "--golden", tmp_path / "a")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "index.jsonl is no index of a dump" in ran.err


TWO_CASTS = """
import numpy as np
import pypto_cast as pypto

@pypto.frontend.jit
def kernel(x: pypto.Tensor[[8, 8], pypto.DT_FP32], y: pypto.Tensor[[8, 8], pypto.DT_FP32]):
    pypto.set_vec_tile_shapes(8, 8)
    h = pypto.cast(x, pypto.DT_BF16, mode=pypto.CAST_{mode})
    y[:] = pypto.cast(h, pypto.DT_FP32)

x = np.arange(64, dtype=np.float32).reshape(8, 8) / np.float32(7)
kernel(x, np.zeros_like(x))
"""


@pytest.mark.parametrize("word", ["--precise", "--inputs", "--memory", "--kernel", "--output"])
def test_options_of_one_dump_are_refused_for_folders(
    word: str, command: Command, tmp_path: Path
) -> None:
    device, cpu = folder_of(tmp_path / "device"), folder_of(tmp_path / "cpu")
    ran = command("judge", device, "--golden", cpu, word, "1")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert f"holds many dumps, and {word} is of one" in ran.err


def test_folders_of_which_nothing_is_judged(command: Command, tmp_path: Path) -> None:
    device, cpu = folder_of(tmp_path / "device"), folder_of(tmp_path / "cpu")
    for path in cpu.iterdir():
        path.rename(cpu / f"other_{path.name}")
    ran = command("judge", device, "--golden", cpu)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "no step can be judged" in ran.err


def dumped_calls(folder: Path) -> Path:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy())
    calls = {
        "Torch.exp.0.forward": ((x,), torch.from_numpy(np.exp(X.astype(np.float64)).astype("f4"))),
        "Tensor.__add__.0.forward": ((x, x), x + x),
        "Torch.mul.0.forward": ((x, x), x * x + (x == x.max())),
        "Functional.softmax.0.forward": ((x,), x),
    }
    return written_calls(folder, calls)


def written_calls(folder: Path, calls: dict[str, Any]) -> Path:
    torch, data = pytest.importorskip("torch"), folder / "dump_tensor_data"
    data.mkdir()
    document: dict[str, object] = {}
    for name, (inputs, output) in calls.items():
        entries = {}
        for key, tensors in (("input_args", inputs), ("output", (output,))):
            entries[key] = []
            for k, tensor in enumerate(tensors):
                file = f"{name}.{key.partition('_')[0]}.{k}.pt"
                torch.save(tensor.clone(), data / file)
                entries[key].append({"type": "torch.Tensor", "data_name": file})
        document[name] = {**entries, "input_kwargs": {}}
    path = folder / "dump.json"
    path.write_text(json.dumps({"task": "tensor", "level": "L1", "data": document}))
    return path


def test_the_first_api_that_its_inputs_do_not_explain(command: Command, tmp_path: Path) -> None:
    path = dumped_calls(tmp_path)
    files = {"--junit": tmp_path / "j.xml", "--html": tmp_path / "j.html"}
    words = [word for pair in files.items() for word in pair]
    assert command("judge", path, *words).code == 1
    suite = ET.parse(files["--junit"]).getroot()
    assert [suite.get(key) for key in ("tests", "failures", "skipped")] == ["4", "1", "1"]
    cases = {case.get("name"): [each.tag for each in case] for case in suite.iter("testcase")}
    assert cases == {
        "Torch.exp.0.forward output": [],
        "Tensor.__add__.0.forward output": [],
        "Torch.mul.0.forward output": ["failure"],
        "Functional.softmax.0.forward": ["skipped"],
    }
    page = files["--html"].read_text()
    assert "Torch.mul.0.forward" in page
    assert "no operation here is this API" in page
    for asked in (path, tmp_path):
        found = command("judge", asked, "--json").json
        assert (found["passes"], found["judged"]) == (False, 3)
        assert found["first"] == "Torch.mul.0.forward"
        assert [row["step"] for row in found["steps"]] == [
            "Torch.mul.0.forward",
            "Functional.softmax.0.forward",
        ]
        assert found["steps"][1]["reason"] == "no operation here is this API"


def test_the_apis_that_are_operations_here(command: Command, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy())
    n, m = (torch.arange(k, k + 9, dtype=torch.int16) for k in (-4, 3))
    one = ("ceil", "floor", "trunc", "reciprocal", "negative", "absolute", "relu")
    calls = {f"Torch.{name}.0.forward": ((x.abs(),), getattr(torch, name)(x.abs())) for name in one}
    two = ("subtract", "multiply", "true_divide", "maximum", "minimum")
    calls |= {f"Torch.{name}.0.forward": ((x, x), getattr(torch, name)(x, x)) for name in two}
    calls |= {
        "Tensor.__and__.0.forward": ((n, m), n & m),
        "Torch.bitwise_or.0.forward": ((n, m), n | m),
        "Tensor.__invert__.0.forward": ((n,), ~n),
        "Tensor.__radd__.0.forward": ((n, m), n + m),
    }
    for number, dtype in enumerate((torch.bfloat16, torch.float16), 1):
        y = x.to(dtype)
        calls |= {
            f"Tensor.mul.{number}.forward": ((y, y), y * y),
            f"Torch.maximum.{number}.forward": ((y, y), torch.maximum(y, y)),
        }
    found = command("judge", written_calls(tmp_path, calls), "--json").json
    assert (found["passes"], found["judged"], found["steps"]) == (True, len(calls), [])


def test_a_file_outside_the_folder_is_not_read(command: Command, tmp_path: Path) -> None:
    path = dumped_calls(tmp_path)
    np.save(tmp_path / "secret.npy", X)
    path.write_text(path.read_text().replace("Torch.exp.0.forward.input.0.pt", "../secret.npy"))
    rows = command("judge", path, "--json").json["steps"]
    assert "lies outside" in next(r for r in rows if "exp" in r["step"])["reason"]


def test_junit_and_html(command: Command, golden: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "wrong.npy", -X)
    files = {"--junit": tmp_path / "j.xml", "--html": tmp_path / "j.html"}
    words = [word for pair in files.items() for word in pair]
    assert command("judge", tmp_path / "wrong.npy", "--golden", golden, *words).code == 1
    suite = ET.parse(files["--junit"]).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    (failure,) = suite.iter("failure")
    assert "have other bits" in failure.get("message", "")
    assert "have other bits" in files["--html"].read_text()
    again = command("judge", tmp_path / "wrong.npy", "--golden", golden, *words)
    assert again.code == 2
    assert "--force" in again.err
