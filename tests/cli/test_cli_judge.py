"""The command: judge."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.environment.command import Command, command

import pypto_cast as pypto

__all__ = ["command"]  # a fixture

KERNEL = """
import pypto_cast as pypto

M = pypto.Tensor[[8, 32], pypto.DT_FP32]
B = pypto.Tensor[[8, 32], pypto.DT_BF16]

@pypto.frontend.jit
def scaled(x: M, y: M):
    pypto.set_vec_tile_shapes(4, 16)
    y[:] = pypto.exp(x) * 2.0

@pypto.frontend.jit
def halves(x: M, y: B):
    pypto.set_vec_tile_shapes(4, 16)
    y[:] = pypto.cast(x, pypto.DT_BF16, mode=pypto.CAST_RINT)
"""


ROWS = """
import pypto_cast as pypto

M = pypto.Tensor[[1024, 128], pypto.DT_FP32]

@pypto.frontend.jit
def doubled(x: M, y: M):
    pypto.set_vec_tile_shapes(16, 128)
    y[:] = x * 2.0

@pypto.frontend.jit
def of_all(x: M, y: M):
    pypto.set_vec_tile_shapes(16, 128)
    y[:] = x * pypto.sum(x, 0, True)

@pypto.frontend.jit
def raises(x: M, y: M):
    pypto.set_vec_tile_shapes(16, 128)
    y[:] = x * 2.0

    1 // 0
"""
TWO = """
@pypto.frontend.jit
def both(x: M, y: M, z: B):
    pypto.set_vec_tile_shapes(4, 16)
    y[0:] = x * 2.0
    z[0:] = pypto.cast(x, pypto.DT_BF16, mode=pypto.CAST_TRUNC)
"""

UNSET = """
import pypto_cast as pypto

M = pypto.Tensor[[8, 32], pypto.DT_FP32]

@pypto.frontend.jit
def scaled_by(x: M, w: M, y: M):
    pypto.set_vec_tile_shapes(4, 16)
    y[:] = x * w

@pypto.frontend.jit
def added_to(x: M, y: M):
    pypto.set_vec_tile_shapes(4, 16)
    y[:] = y + x

@pypto.frontend.jit
def upper(x: M, y: M):
    pypto.set_vec_tile_shapes(4, 16)
    y[:4] = x[:4] * 2.0
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "k.py").write_text(KERNEL)
    x = np.random.default_rng(7).standard_normal((8, 32)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    right = (np.exp(x.astype(np.float64)).astype(np.float32) * np.float32(2)).astype(np.float32)
    np.save(tmp_path / "right.npy", right)
    wrong = right.copy()
    wrong[3, 17] = np.float32(-1)
    np.save(tmp_path / "wrong.npy", wrong)
    wrong.tofile(tmp_path / "wrong.bin")
    return tmp_path


def test_what_a_device_may_give(command: Command, files: Path) -> None:
    words = ("--kernel", f"{files}/k.py::scaled", "--inputs", files / "in.npz")
    ran = command("judge", files / "right.npy", *words)
    assert (ran.code, ran.err) == (0, "")
    assert "y: a device may give all 256 elements" in ran.out


def test_an_element_outside_is_named_with_tile_and_line(command: Command, files: Path) -> None:
    words = ("--kernel", f"{files}/k.py::scaled", "--inputs", files / "in.npz")
    ran = command("judge", files / "wrong.npy", *words)
    assert ran.code == 1
    assert "y: 1 of 256 elements cannot come from a device" in ran.out
    assert "[3, 17]: cannot be" in ran.out
    assert "tile 1 at [0, 16], [4, 16] elements, core 1, mul at k.py:10 in scaled" in ran.out


def test_a_golden_that_cannot_be_is_named(command: Command, files: Path) -> None:
    words = ("--kernel", f"{files}/k.py::scaled", "--inputs", files / "in.npz")
    ran = command("judge", files / "right.npy", "--golden", files / "wrong.npy", *words)
    assert ran.code == 0
    assert "the golden cannot come from a device, 1 of 256 elements cannot" in ran.out
    document = command(
        "judge", files / "right.npy", "--golden", files / "wrong.npy", *words, "--json"
    ).json
    assert document["passes"] is True
    (output,) = document["outputs"]
    assert (output["impossible"], output["golden_impossible"], output["differing"]) == (0, 1, 1)


def test_the_standard_decides_without_a_kernel(command: Command, files: Path) -> None:
    beside = ("judge", files / "wrong.npy", "--golden", files / "right.npy")
    assert command(*beside).code == 1
    assert "1 of 256 elements have other bits" in command(*beside).out
    assert command("judge", files / "right.npy", "--golden", files / "right.npy").code == 0
    assert command(*beside, "--standard", "community").code == 1


def test_raw_bytes_and_bf16_kept_as_fp32(command: Command, files: Path) -> None:
    raw = ("judge", files / "wrong.bin", "--golden", files / "wrong.npy")
    assert command(*raw, "--dtype", "fp32", "--shape", "8,32").code == 0
    with np.load(files / "in.npz") as held:
        x = held["x"]
    with pypto.options(vec_tile_shapes=[4, 16]):
        y = pypto.cast(pypto.from_numpy(x), pypto.DT_BF16, mode=pypto.CAST_RINT).numpy()
    codes = y.view(np.uint16)
    np.save(files / "codes.npy", codes)
    np.save(files / "wide.npy", (codes.astype(np.uint32) << np.uint32(16)).view(np.float32))
    words = ("--kernel", f"{files}/k.py::halves", "--inputs", files / "in.npz")
    for name in ("codes", "wide"):
        ran = command("judge", files / f"{name}.npy", *words)
        assert (ran.code, ran.err) == (0, "")
        assert "a device may give all 256 elements" in ran.out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("right.npy",), "give --golden, or --kernel with --inputs"),
        (("right.npy", "--kernel", "k.py::scaled"), "--kernel and --inputs go together"),
        (("right.npy", "--golden", "turned.npy"), "the golden [32, 8]; it is transposed"),
        (("right.npy", "--golden", "other.npy"), "the golden [32, 8]; one may be transposed"),
        (("right.npy", "--golden", "half.npy"), "dtype DT_FP32, the golden DT_FP16"),
        (("wrong.bin", "--golden", "right.npy"), "give --dtype and --shape"),
        (
            ("wrong.bin", "--golden", "right.npy", "--dtype", "fp32", "--shape", "8,31"),
            "has 1,024 B; DT_FP32 of shape [8, 31] has 992 B",
        ),
        (("right.npy", "--golden", "right.npy", "--standard", "2.0"), "standard is one of bits"),
        (("right.npy", "--golden", "right.npy", "--standard", "2.1:L0"), "give precise"),
        (("right.npy", "--golden", "right.npy", "--output", "y"), "--output names an output"),
        (("empty.npy", "--golden", "right.npy"), "empty.npy"),
        (("wide.npy", "--kernel", "k.py::halves", "--inputs", "in.npz"), "not all its values are"),
        (
            ("right.npy", "--kernel", "k.py::scaled", "--inputs", "in.npz", "--output", "z"),
            "the kernel writes y, not z",
        ),
        (("nothing.npy", "--golden", "right.npy"), "nothing.npy"),
        (("none.npy", "--golden", "none.npy"), "has shape [0, 4]: no elements to judge"),
        (("right.npy", "--kernel", "k.py::scaled", "--inputs", "none.npz"), "holds none of x, y"),
    ],
)
def test_what_cannot_be_judged(
    words: tuple[str, ...], found: str, command: Command, files: Path
) -> None:
    right = np.load(files / "right.npy")
    np.save(files / "turned.npy", right.T.copy())
    np.save(files / "other.npy", -right.T.copy())
    np.save(files / "half.npy", right.astype(np.float16))
    np.save(files / "wide.npy", right)
    (files / "empty.npy").write_bytes(b"")
    np.save(files / "none.npy", np.zeros((0, 4), np.float32))
    np.savez(files / "none.npz")
    known = {path.name for path in files.iterdir()} | {
        "nothing.npy",
        "k.py::scaled",
        "k.py::halves",
    }
    ran = command("judge", *(f"{files}/{word}" if word in known else word for word in words))
    assert ran.code == 2
    assert found in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("kernel", "name", "memory"),
    [("scaled_by", "w", ()), ("scaled_by", "w", ("--memory", "1K")), ("added_to", "y", ())],
    ids=["whole", "in parts", "an output"],
)
def test_inputs_that_are_missing_in_part(
    kernel: str, name: str, memory: tuple[str, ...], command: Command, files: Path
) -> None:
    (files / "unset.py").write_text(UNSET)
    words = ("--kernel", f"{files}/unset.py::{kernel}", "--inputs", files / "in.npz")
    ran = command("judge", files / "right.npy", *words, *memory)
    assert ran.code == 2
    assert f"{name}, for which no array was given, is read at [0, 0]" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_elements_that_are_neither_given_nor_written_may_be_any(
    command: Command, files: Path
) -> None:
    (files / "unset.py").write_text(UNSET)
    with np.load(files / "in.npz") as held:
        x = held["x"]
    y = x * np.float32(2)
    y[4:] = np.nan
    np.save(files / "upper.npy", y)
    words = ("--kernel", f"{files}/unset.py::upper", "--inputs")
    assert command("judge", files / "upper.npy", *words, files / "in.npz").code == 0
    document = command("certainty", f"{files}/unset.py::upper", "--inputs", files / "in.npz").out
    assert "unwritten elements at unset.py:" in document
    np.savez(files / "both.npz", x=x, y=np.zeros_like(x))
    assert command("judge", files / "upper.npy", *words, files / "both.npz").code == 1
    y[0, 0] += 1
    np.save(files / "upper.npy", y)
    ran = command("judge", files / "upper.npy", *words, files / "in.npz")
    assert "y: 1 of 256 elements cannot come from a device" in ran.out


def test_elements_outside_are_counted_by_tile_and_core(command: Command, files: Path) -> None:
    words = ("--kernel", f"{files}/k.py::scaled", "--inputs", files / "in.npz", "--json")
    wrong = np.load(files / "right.npy")
    wrong[:2, 16:20] = -1
    wrong[7, 0] = -1
    np.save(files / "worse.npy", wrong)
    found = command("judge", files / "worse.npy", *words).json["outside"]
    assert [(row["tile"], row["core"], row["count"]) for row in found] == [(1, 1, 8), (2, 2, 1)]
    assert {row["written_by"] for row in found} == {"mul at k.py:10 in scaled"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y: y.T.copy(), "it is transposed (axes 0 and 1), 100 % of the elements"),
        (lambda y: np.pad(y, ((0, 0), (0, 8))), "it is padded: its first [8, 32] elements"),
        (lambda y: y.reshape(-1), "it is reshaped, 100 %"),
    ],
)
def test_other_layouts_are_named(
    change: Callable[[np.ndarray], np.ndarray], words: str, command: Command, files: Path
) -> None:
    np.save(files / "moved.npy", change(np.load(files / "right.npy")))
    kernel = ("--kernel", f"{files}/k.py::scaled", "--inputs", files / "in.npz")
    for against in (kernel, ("--golden", files / "right.npy")):
        ran = command("judge", files / "moved.npy", *against)
        assert ran.code == 2
        assert words in ran.err


def test_an_image_whose_channels_come_last_is_named(command: Command, tmp_path: Path) -> None:
    x = np.random.default_rng(7).standard_normal((2, 3, 5, 4)).astype(np.float16)
    np.save(tmp_path / "nchw.npy", x)
    np.save(tmp_path / "nhwc.npy", x.transpose(0, 2, 3, 1).copy())
    ran = command("judge", tmp_path / "nhwc.npy", "--golden", tmp_path / "nchw.npy")
    assert ran.code == 2
    assert "it is transposed (its axes in the order 0, 3, 1, 2), 100 %" in ran.err


def test_a_square_golden_that_is_transposed_is_named(command: Command, tmp_path: Path) -> None:
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "t.npy", x.T.copy())
    ran = command("judge", tmp_path / "t.npy", "--golden", tmp_path / "x.npy")
    assert ran.code == 1
    assert "result: it is transposed (axes 0 and 1)" in ran.out


@pytest.mark.slow
def test_the_least_part_that_differs_is_written(command: Command, files: Path) -> None:
    words = ("--kernel", f"{files}/k.py::scaled", "--inputs", files / "in.npz")
    ran = command("judge", files / "wrong.npy", *words, "--reproduce", files / "part.npz")
    assert ran.code == 1
    assert "y[3:4, 17:18] still differs in 1 element, inputs 0 outside it" in ran.out
    with np.load(files / "part.npz") as held:
        assert np.count_nonzero(held["x"]) == 1
        assert held["result_y"].tolist() == [[-1]]
        assert set(held) == {"x", "result_y"}, "an output that was left out is saved"
    (files / "elsewhere").mkdir()
    for name in ("part.npz", "part.py"):
        (files / name).rename(files / "elsewhere" / name)
    script = run_script(files / "elsewhere" / "part.py")
    assert script.returncode == 1, script.stderr
    assert script.stdout.startswith("[3, 17] is -1.0 and may be ")


ROUNDS = """
import pypto_cast as pypto

N = pypto.frontend.dynamic("N")
T = pypto.Tensor[[N, 16], pypto.DT_FP16]

@pypto.frontend.jit
def rounds(x: T, y: T, k: float):
    pypto.set_vec_tile_shapes(8, 16)
    for i in pypto.loop(x.shape[0] // 8):
        t = x[i * 8 : i * 8 + 8, :]
        y[i * 8 : i * 8 + 8, :] = t * k + t
"""


@pytest.mark.slow
def test_a_part_with_a_number_and_of_a_release(command: Command, tmp_path: Path) -> None:
    """Release 0.2.0 rounds the product; the script is of the same release."""
    (tmp_path / "k.py").write_text(ROUNDS)
    x = np.random.default_rng(7).standard_normal((32, 16)).astype(np.float16)
    wide = x.astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x, k=1.3)
    result = (wide * np.float32(1.3) + wide).astype(np.float16)
    between = ((wide * np.float32(1.3)).astype(np.float16).astype(np.float32) + wide).astype("f2")
    differ = result != between
    differ[: differ.argmax(axis=0).max()] = False
    assert differ.any()
    np.save(tmp_path / "y.npy", np.where(differ, result, between))
    words = ("--kernel", f"{tmp_path}/k.py::rounds", "--inputs", tmp_path / "in.npz")
    part = ("--release", "0.2.0", "--reproduce", tmp_path / "part.npz")
    ran = command("judge", tmp_path / "y.npy", *words, *part)
    assert ran.code == 1, ran.err
    assert "inputs cut to it" in ran.out
    with np.load(tmp_path / "part.npz") as held:
        assert {name: held[name].shape for name in held}.items() >= {"k": ()}.items()
        assert set(held) == {"x", "k", "result_y"}
        assert held["x"].shape[0] < 32
    script = run_script(tmp_path / "part.py")
    assert script.returncode == 1, script.stderr
    assert " and may be " in script.stdout


def run_script(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(pypto.__file__).parents[1])},
    )


ASSERTS = """
import pypto_cast as pypto

N = pypto.frontend.dynamic("N")
T = pypto.Tensor[[N, 16], pypto.DT_FP32]

@pypto.frontend.jit
def asserts(x: T, y: T):
    pypto.set_vec_tile_shapes(8, 16)
    assert x.shape[0] == 32
    print("rows", x[0:1, 0:2])
    y[:] = x * 2.0
"""


def test_a_kernel_that_prints_and_asserts(command: Command, tmp_path: Path) -> None:
    """Its prints are not those of the command, and hypotheses print nothing."""
    (tmp_path / "k.py").write_text(ASSERTS)
    x = np.random.default_rng(7).standard_normal((32, 16)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    np.save(tmp_path / "y.npy", x * np.float32(3))
    words = ("--kernel", f"{tmp_path}/k.py::asserts", "--inputs", tmp_path / "in.npz")
    part = ("--reproduce", tmp_path / "part.npz", "--json")
    ran = command("judge", tmp_path / "y.npy", *words, *part)
    assert ran.code == 1
    assert ran.json["outputs"][0]["impossible"] == np.count_nonzero(x)
    assert 0 < ran.err.count("rows") <= 4, "of the runs that give the bounds"
    with np.load(tmp_path / "part.npz") as held:
        assert np.count_nonzero(held["x"]) == 1


def test_nothing_to_reproduce(command: Command, files: Path) -> None:
    words = ("--kernel", f"{files}/k.py::scaled", "--inputs", files / "in.npz")
    ran = command("judge", files / "right.npy", *words, "--reproduce", files / "part.npz")
    assert ran.code == 2
    assert "there is nothing to reproduce" in ran.err
    assert not (files / "part.npz").exists()
    beside = ("--golden", files / "right.npy", "--reproduce", files / "part.npz")
    assert "--reproduce cuts the inputs" in command("judge", files / "wrong.npy", *beside).err


def test_a_kernel_that_needs_more_memory_is_refused(command: Command, files: Path) -> None:
    words = ("--kernel", f"{files}/k.py::scaled", "--inputs", files / "in.npz")
    ran = command("judge", files / "right.npy", *words, "--memory", "10K")
    assert ran.code == 2
    (refused,) = ran.err.splitlines()
    told = r"needs about [\d,]+ B for the least of 2 parts; --memory allows 10,000 B"
    assert re.search(told, refused)
    ran = command("judge", files / "right.npy", *words, "--memory", "1M")
    assert (ran.code, ran.err) == (0, "the kernel may need 561,152 B at once\n")


def test_a_kernel_that_needs_more_memory_is_judged_in_parts(command: Command, files: Path) -> None:
    (files / "rows.py").write_text(ROWS)
    x = np.random.default_rng(7).standard_normal((1024, 128)).astype(np.float32)
    np.savez(files / "rows.npz", x=x)
    wrong = x * np.float32(2)
    wrong[513, 7] += 1
    np.save(files / "rows.npy", wrong)
    for name, code, told in (
        ("doubled", 1, "judged in "),
        ("of_all", 2, "it is not judged in parts: all its rows depend on each other"),
        ("raises", 2, "rows.py:21: ZeroDivisionError"),
    ):
        words = ("--kernel", f"{files}/rows.py::{name}", "--inputs", files / "rows.npz")
        ran = command("judge", files / "rows.npy", *words, "--memory", "2M")
        assert ran.code == code, ran.err
        assert told in ran.out + ran.err
        assert len(ran.err.splitlines()) == 1
        if code == 1:
            assert "y: 1 of 131,072 elements cannot come from a device" in ran.out
            assert "[513, 7]: cannot be" in ran.out
            words = (*words, "--memory", "2M", "--reproduce", files / "part.npz")
            ran = command("judge", files / "rows.npy", *words)
            assert (ran.code, "leave out --memory" in ran.err) == (2, True)


def test_outputs_in_files_of_their_own(command: Command, files: Path) -> None:
    (files / "two.py").write_text(KERNEL + TWO)
    with np.load(files / "in.npz") as held:
        x = held["x"]
    np.save(files / "y.npy", x * np.float32(2))
    np.save(files / "z.npy", (x.view(np.uint32) >> np.uint32(16)).astype(np.uint16))
    words = ("--kernel", f"{files}/two.py::both", "--inputs", files / "in.npz", "--output", "y")
    more = ("--output", f"z={files}/z.npy")
    ran = command("judge", files / "y.npy", *words, *more)
    assert (ran.code, ran.err) == (0, "")
    assert "z: a device may give all 256 elements" in ran.out
    ran = command("judge", files / "y.npy", *words)
    assert (ran.code, "the kernel writes z too: give --output z=FILE" in ran.err) == (2, True)
    for wrong in ("z=", "z"):
        ran = command("judge", files / "y.npy", *words, "--output", wrong)
        assert ran.code == 2
        assert "--output takes one NAME" in ran.err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--release", "0.2.0"), "--release would change nothing without --kernel"),
        (("--trust", "ieee"), "--trust would change nothing without --kernel"),
        (("--memory", "1G"), "--memory would change nothing without --kernel"),
        (("--pairs",), "--pairs would change nothing without --kernel"),
        (("--chip", "Ascend910B1"), "--chip would change nothing without --kernel"),
        (("--precise", "right.npy"), "--precise would change nothing beside --standard bits"),
    ],
)
def test_options_that_would_change_nothing(
    words: tuple[str, ...], found: str, command: Command, files: Path
) -> None:
    given = (f"{files}/{word}" if word.endswith(".npy") else word for word in words)
    beside = ("--golden", files / "right.npy")
    assert command("judge", files / "right.npy", *beside, *given).error == found


def test_a_standard_has_a_golden(command: Command, files: Path) -> None:
    words = ("--kernel", f"{files}/k.py::scaled", "--inputs", files / "in.npz")
    ran = command("judge", files / "right.npy", *words, "--standard", "community")
    assert (ran.code, "--standard would change nothing without --golden" in ran.err) == (2, True)


def test_an_unknown_trust_is_listed(command: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.zeros((16, 64), np.float16))
    np.savez(tmp_path / "in.npz", x=np.zeros((16, 64), np.float32))
    words = ("judge", tmp_path / "y.npy", "--kernel", "k.py::k", "--inputs", tmp_path / "in.npz")
    error = command(*words, "--trust", "documents").error
    assert error.startswith("option trust must be one of ('default', 'documented', 'ieee')")


def test_a_result_of_the_950_under_a_reading(command: Command, tmp_path: Path) -> None:
    """NaN becomes 6 by one reading alone; the script of the part has it too."""
    path, result = tmp_path / "small.py", tmp_path / "y.npy"
    path.write_text(
        "import pypto_cast as pypto\n\nM = pypto.Tensor[[1, 64], pypto.DT_BF16]\n\n"
        "@pypto.frontend.jit\ndef small(x: M, y: M):\n    pypto.set_vec_tile_shapes(1, 64)\n"
        "    y[:] = pypto.cast(pypto.cast(x, pypto.DT_FP4_E2M1X2), pypto.DT_BF16)\n"
    )
    np.savez(tmp_path / "in.npz", x=np.full((1, 64), 0x7FC0, np.uint16))
    np.save(result, np.full((1, 64), 0x40C0, np.uint16))
    words = ("judge", result, "--kernel", f"{path}::small", "--inputs", tmp_path / "in.npz")
    on = (*words, "--chip", "Ascend950PR")
    assert command(*on).code == 1
    assert command(*on, "--reading", "nan-e2m1=max").code == 0
    part = tmp_path / "part.npz"
    cut = command(*on, "--reading", "bf16-inf-e8m0=nan", "--reproduce", part)
    assert cut.code == 1
    assert "'bf16-inf-e8m0': 'nan'" in part.with_suffix(".py").read_text()
