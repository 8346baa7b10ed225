"""`pypto-cast certainty`: a kernel of a file on saved inputs."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.environment.command import Command, command

from pypto_cast.tensors.array_files import npz_arrays
from pypto_cast.testing import load_bounds

__all__ = ["command"]

KERNEL = """
import pypto

N = pypto.symbolic_scalar("N")

@pypto.jit
def quant(
    x: pypto.Tensor[[N, pypto.STATIC], pypto.DT_FP32],
    weight: pypto.Tensor[[1, pypto.STATIC], pypto.DT_BF16],
    scale: pypto.Tensor[[N, 1], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_INT8],
    least: float,
    factor: float = 127.0,
):
    pypto.set_vec_tile_shapes(1, 64)
    for start in pypto.loop(0, x.shape[0], 8):
        rows = pypto.view(x, [8, 64], [start, 0])
        top = pypto.maximum(pypto.amax(pypto.abs(rows), -1, keepdim=True), least)
        part = factor / top
        y = rows * part * pypto.cast(weight, pypto.DT_FP32)
        whole = pypto.cast(y, pypto.DT_INT32, pypto.CAST_RINT)
        narrow = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8)
        pypto.assemble(part, [start, 0], scale)
        pypto.assemble(narrow, [start, 0], out)
"""


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL, encoding="utf-8")
    return f"{path}::quant"


def inputs(folder: Path, **changed: object) -> Path:
    rng = np.random.default_rng(1)
    x = np.float32(rng.integers(-508, 509, (16, 64)) / 4)
    x[:, 0] = 127.3
    held = {
        "x": x,
        "weight": np.ones((1, 64), ml_dtypes.bfloat16),
        "out": np.zeros((16, 64), np.int8),
        "least": np.float64(1e-3),
        **changed,
    }
    path = folder / "inputs.npz"
    np.savez(path, **{name: array for name, array in held.items() if array is not None})
    return path


def test_it_says_what_is_certain_and_why_not(command: Command, kernel: str, tmp_path: Path) -> None:
    ran = command("certainty", kernel, "--inputs", inputs(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].endswith("kernels.py: quant")
    assert any(line.split()[:2] == ["scale", "DT_FP32"] for line in lines)
    assert "reciprocal at kernels.py:19" in ran.out
    assert "release head (883e7dfb0)" in lines


def test_json_pages_and_bounds(command: Command, kernel: str, tmp_path: Path) -> None:
    html, bounds = tmp_path / "page.html", tmp_path / "bounds.npz"
    options = ["--html", html, "--bounds", bounds, "--what-if", 1, "--json"]
    found = command("certainty", kernel, "--inputs", inputs(tmp_path), *options).json
    saved = load_bounds(bounds)
    assert [output["undecided"] for output in found["outputs"]] == [
        output.undecided for output in saved.outputs
    ]
    for output, kept in zip(found["outputs"], saved.outputs, strict=True):
        counted = {kind: output[kind] for kind in ("by_documents", "by_choices", "undecided")}
        assert counted == dataclasses.asdict(kept.counts)
        assert sum(counted.values()) == output["elems"]
    named = {each["name"]: each["certain"] for each in found["choices"]}
    assert named == {choice.name: count for choice, count in saved.choices.items()}
    assert found["causes"][0]["operation"] == "reciprocal"
    assert found["release"] == saved.release == "release head (883e7dfb0)"
    other = {"release": "release 0.2.0 (d1c290f36)", "changed": 0, "refusal": None}
    assert found["other_release"] == {**other, "causes": [], "conflicts": []}
    (tried,) = found["what_if"]
    assert tried["if_exact"] < tried["undecided"] == saved.undecided
    assert set(tried["if_rounded"]) == {"DT_BF16", "DT_FP16"}
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")
    again = command("certainty", kernel, "--inputs", inputs(tmp_path), "--bounds", bounds)
    assert "bounds.npz" in again.error
    text = command("certainty", kernel, "--inputs", inputs(tmp_path), "--what-if", 2).out
    assert "were it known" in text


def test_values_are_arrays_of_numpy(command: Command, kernel: str, tmp_path: Path) -> None:
    values, bounds = tmp_path / "values.npz", tmp_path / "bounds.npz"
    words = ("certainty", kernel, "--inputs", inputs(tmp_path))
    assert command(*words, "--values", values, "--bounds", bounds).code == 0
    with np.load(values, allow_pickle=False) as held:
        saved = {name: held[name] for name in held.files}
    known = load_bounds(bounds).values
    assert set(saved) == set(known)
    for name, array in saved.items():
        assert array.dtype.isbuiltin == 1
        assert array.tobytes() == known[name].tobytes()
        assert array.shape == known[name].shape
    assert "values.npz" in command(*words, "--values", values).error
    assert "would be the same file" in command(*words, "--values", "a", "--bounds", "a").error


def test_values_of_bf16_are_codes(command: Command, tmp_path: Path) -> None:
    (tmp_path / "halves.py").write_text(
        "import pypto_cast as pypto\n"
        "@pypto.frontend.jit\n"
        "def halves(x: pypto.Tensor[[4, 16], pypto.DT_FP32], "
        "y: pypto.Tensor[[4, 16], pypto.DT_BF16]):\n"
        "    pypto.set_vec_tile_shapes(4, 16)\n"
        "    y[:] = pypto.cast(x, pypto.DT_BF16, mode=pypto.CAST_TRUNC)\n"
    )
    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
    np.savez(tmp_path / "in.npz", x=x)
    words = ("--inputs", tmp_path / "in.npz", "--values", tmp_path / "v.npz")
    assert command("certainty", f"{tmp_path}/halves.py::halves", *words).code == 0
    with np.load(tmp_path / "v.npz", allow_pickle=False) as held:
        np.testing.assert_array_equal(held["y"], x.view(np.uint32) >> 16)
        assert held["y"].dtype == np.uint16


def test_two_chips_stand_side_by_side(command: Command, kernel: str, tmp_path: Path) -> None:
    path = inputs(tmp_path)
    words = ("certainty", kernel, "--inputs", path, "--json")
    both = command(*words, "--chip", "Ascend910B1", "--against", "Ascend950PR").json
    alone = {chip: command(*words, "--chip", chip).json for chip in ("Ascend910B1", "Ascend950PR")}
    kinds = ("by_documents", "by_choices", "undecided")
    assert [(each["name"], each["chip"]) for each in both["chips"]] == [
        (output["name"], chip) for output in both["outputs"] for chip in alone
    ]
    for each in both["chips"]:
        (wanted,) = (x for x in alone[each["chip"]]["outputs"] if x["name"] == each["name"])
        assert [each[kind] for kind in kinds] == [wanted[kind] for kind in kinds]
    assert "chips" not in alone["Ascend910B1"]
    shown = command(*words[:-1], "--against", "Ascend950DT").out
    assert "Ascend950DT" in shown
    assert "unknown chip 'A5'" in command(*words, "--against", "A5").error


def test_readings_of_the_950(command: Command, tmp_path: Path) -> None:
    """NaN to E2M1 and back is 0 or 6; beside A2/A3, which have no readings, only one chip does."""
    path, values = tmp_path / "k.py", tmp_path / "v.npz"
    path.write_text(
        "import pypto\n\n@pypto.jit\ndef small(x: pypto.Tensor[[1, 64], pypto.DT_BF16], "
        "y: pypto.Tensor[[1, 64], pypto.DT_BF16]):\n    pypto.set_vec_tile_shapes(1, 64)\n"
        "    y[:] = pypto.cast(pypto.cast(x, pypto.DT_FP4_E2M1X2), pypto.DT_BF16)\n\n"
        "@pypto.jit\ndef same(x: pypto.Tensor[[1, 64], pypto.DT_BF16], "
        "y: pypto.Tensor[[1, 64], pypto.DT_FP32]):\n    pypto.set_vec_tile_shapes(1, 64)\n"
        "    y[:] = pypto.cast(x, pypto.DT_FP32)\n"
    )
    np.savez(tmp_path / "in.npz", x=np.full((1, 64), 0x7FC0, np.uint16))
    words = (
        "certainty",
        f"{path}::small",
        "--inputs",
        tmp_path / "in.npz",
        "--chip",
        "Ascend950PR",
    )
    shown = ("--values", values, "--force")
    for reading, code in (("zero", 0x0000), ("max", 0x40C0)):
        ran = command(*words, *shown, "--reading", f"nan-e2m1={reading}")
        assert (ran.code, "READING_nan-e2m1       64" in ran.out) == (0, True)
        with np.load(values, allow_pickle=False) as held:
            assert set(held["y"].ravel().tolist()) == {code}
    read = ("--reading", "nan-e2m1=max")
    same = ("certainty", f"{path}::same", *words[2:4])
    for chips in (("Ascend950PR", "Ascend910B3"), ("Ascend910B3", "Ascend950PR")):
        found = command(*same, "--chip", chips[0], "--against", chips[1], *read, "--json").json
        assert [each["chip"] for each in found["chips"]] == [*chips]
    for neither in ((), ("--against", "Ascend910B1")):
        assert "Ascend910B3, of A2/A3, has none" in command(*same, *neither, *read).error
    wrong = ("--against", "Ascend950PR", "--reading", "nan-e2m=max")
    assert "the nearest is 'nan-e2m1'" in command(*same, *wrong).error


def test_what_is_trusted_changes_it(command: Command, kernel: str, tmp_path: Path) -> None:
    path = inputs(tmp_path)

    def undecided(trust: str) -> int:
        found = command("certainty", kernel, "--inputs", path, "--trust", trust, "--json").json
        return sum(output["undecided"] for output in found["outputs"])

    assert undecided("ieee") < undecided("default") <= undecided("documented")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"weight": None, "least": None}, "holds no weight, and its annotation"),
        ({"out": None}, "holds no out, and its annotation"),
        ({"least": None}, "lacks least, which quant takes"),
        ({"extra": np.zeros(3)}, "holds extra; quant takes x, weight, scale, out, least, factor"),
        ({"x": np.zeros((16, 64))}, "x holds float64, which is not DT_FP32"),
        ({"scale": np.zeros((3, 1), np.float32)}, "dimension N is 16 in x and 3 in scale"),
    ],
)
def test_inputs_that_do_not_go_with_the_kernel(
    command: Command, kernel: str, tmp_path: Path, changed: dict[str, object], text: str
) -> None:
    assert text in command("certainty", kernel, "--inputs", inputs(tmp_path, **changed)).error


def test_what_is_no_kernel_or_no_file(command: Command, kernel: str, tmp_path: Path) -> None:
    path, file = inputs(tmp_path), kernel.partition("::")[0]
    np.save(tmp_path / "one.npy", np.zeros(3))
    for words, text in (
        ([file, "--inputs", path], "a kernel is named FILE::KERNEL"),
        ([f"{file}::absent", "--inputs", path], "has no kernel absent; it has quant"),
        ([f"{tmp_path}/no.py::quant", "--inputs", path], "there is no such file"),
        ([kernel, "--inputs", tmp_path / "one.npy"], "is no .npz file of arrays"),
        ([kernel, "--inputs", tmp_path / "no.npz"], "No such file"),
        (
            [kernel, "--inputs", path, "--trust", "all"],
            "option trust must be one of ('default', 'documented'",
        ),
        ([kernel, "--inputs", path, "--html", path], "inputs.npz"),
        (
            [kernel, "--inputs", path, "--html", file + "x", "--bounds", file + "x"],
            "would be the same file",
        ),
    ):
        assert text in command("certainty", *words).error


# --- Results of elsewhere against saved bounds ---------------------------------------------------


@pytest.fixture
def saved(command: Command, kernel: str, tmp_path: Path) -> Path:
    path = tmp_path / "bounds.npz"
    assert command("certainty", kernel, "--inputs", inputs(tmp_path), "--bounds", path).code == 0
    return path


def test_results_that_can_be(command: Command, saved: Path, tmp_path: Path) -> None:
    bounds = load_bounds(saved)
    np.save(tmp_path / "dump.npy", bounds.high["out"])
    np.savez(tmp_path / "golden.npz", scale=bounds.low["scale"], out=bounds.low["out"])
    ran = command("diff", tmp_path / "dump.npy", tmp_path / "golden.npz", "--bounds", saved)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("elements can be") == 3


def test_the_first_result_that_cannot_be(command: Command, saved: Path, tmp_path: Path) -> None:
    bounds = load_bounds(saved)
    out = bounds.values["out"].copy()
    out[9, 40] = bounds.high["out"][9, 40] + 2
    np.save(tmp_path / "dump.npy", out)
    np.save(tmp_path / "scale.npy", bounds.high["scale"])
    words = ["diff", tmp_path / "dump.npy", tmp_path / "scale.npy", "--bounds", saved]
    ran = command(*words)
    assert ran.code == 1
    assert "1 of 1,024 elements cannot be" in ran.out
    assert "[9, 40]: cannot be" in ran.out
    assert "tile 1 at [1, 0], [1, 64] elements, core 1, cast FP16 -> INT8 at kernels" in ran.out
    assert "nearest operation with an open result: mul at kernels.py:20" in ran.out
    found = command(*words, "--json")
    assert found.code == 1
    assert [file["outputs"][0]["impossible"] for file in found.json["files"]] == [1, 0]


def test_one_file_against_saved_bounds(command: Command, saved: Path, tmp_path: Path) -> None:
    bounds, path = load_bounds(saved), tmp_path / "dump.npy"
    np.save(path, bounds.low["out"])
    assert command("diff", path, "--bounds", saved).out.count("elements can be") == 1
    np.save(path, ~bounds.low["out"])
    assert command("diff", path, "--bounds", saved).code == 1
    assert command("diff", path).error == "give B, which A is compared with, or --bounds"


def test_files_that_the_bounds_do_not_go_with(
    command: Command, saved: Path, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.npy", tmp_path / "bad.npy"
    np.save(good, load_bounds(saved).values["out"])
    np.savez(tmp_path / "other.npz", absent=np.zeros(3))
    for array, text in (
        (np.zeros((3, 3), np.int8), "holds [3, 3], which goes with none of the outputs scale"),
        (np.zeros((16, 64), np.int16), "out holds int16, which is not DT_INT8"),
    ):
        np.save(bad, array)
        assert text in command("diff", bad, good, "--bounds", saved).error
    other = tmp_path / "other.npz"
    assert "holds absent; the bounds are" in command("diff", good, other, "--bounds", saved).error
    assert "is no file of bounds" in command("diff", good, good, "--bounds", other).error


@pytest.mark.parametrize("version", [(1, 0), (2, 0)], ids=str)
def test_inputs_have_headers_of_either_version(tmp_path: Path, version: tuple[int, int]) -> None:
    path, array = tmp_path / "inputs.npz", np.arange(6.0).reshape(2, 3)
    with zipfile.ZipFile(path, "w") as archive, archive.open("x.npy", "w") as file:
        np.lib.format.write_array(file, array, version)
    assert npz_arrays(path)["x"].tolist() == array.tolist()
