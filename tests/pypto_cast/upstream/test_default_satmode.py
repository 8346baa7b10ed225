"""The satmode of a cast that names none: the seed's, and upstream's in upstream's files."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto

KERNELS = """
import numpy as np
import {module} as pypto

@pypto.frontend.jit
def left_out(x: pypto.Tensor([], pypto.DT_FP16), out: pypto.Tensor([], pypto.DT_INT8)):
    pypto.set_vec_tile_shapes(32)
    out[:] = pypto.cast(x, pypto.DT_INT8)

@pypto.frontend.jit
def named(x: pypto.Tensor([], pypto.DT_FP16), out: pypto.Tensor([], pypto.DT_INT8)):
    pypto.set_vec_tile_shapes(32)
    out[:] = pypto.cast(x, pypto.DT_INT8, satmode=pypto.SaturationMode.OFF)

def runs():
    large, small = (np.full(32, value, np.float16) for value in (300, 3))
    out = np.zeros(32, np.int8)
    for kernel, x in ((left_out, small), (left_out, large), (left_out, large), (named, large)):
        kernel(x, out)
        yield int(out[0])
"""
WRAPPED, CLAMPED = [3, 44, 44, 44], [3, 127, 127, 44]
SAID = "cast names no satmode"


def file_of(folder: Path, module: str = "pypto", name: str = "upstream_file.py") -> Path:
    path = folder / name
    text = KERNELS.format(module=module)
    path.write_text(f"{text}\nif __name__ == '__main__':\n    print(list(runs()))\n")
    return path


def results_of(path: Path) -> tuple[list[int], list[warnings.WarningMessage]]:
    found: dict[str, Any] = {"__name__": "kernels"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(path.read_text(), path, "exec"), found)
        results = list(found["runs"]())
    return results, [w for w in caught if w.category is pypto.SaturationModeWarning]


def test_the_seeds_default_holds_for_this_package(tmp_path: Path) -> None:
    path = file_of(tmp_path, "pypto_cast")
    assert results_of(path) == (CLAMPED, [])
    with pypto.as_pypto():  # nothing was imported under upstream's name
        assert results_of(path) == (CLAMPED, [])
        assert pypto.platform().satmode == "seed"


def test_upstreams_files_get_upstreams_default_and_one_warning(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    with pypto.as_pypto():
        results, (said,) = results_of(path)
        assert pypto.platform().satmode == "upstream"
        with pypto.options(satmode="seed"):
            assert results_of(path) == (CLAMPED, [])
            assert pypto.platform().satmode == "seed"
    assert results == WRAPPED
    assert str(said.message).startswith(SAID)
    assert (said.filename, said.lineno) == (str(path), 8)
    assert pypto.platform().satmode == "seed"


def test_it_holds_in_every_thread(tmp_path: Path) -> None:
    found: list[int] = []
    with pypto.as_pypto():
        path = file_of(tmp_path, name="in_a_thread.py")
        thread = threading.Thread(target=lambda: found.extend(results_of(path)[0]))
        thread.start()
        thread.join()
    assert found == WRAPPED


PAIRS = [
    (np.float16, pypto.DT_UINT8, 300, 44),
    (np.float16, pypto.DT_INT16, 40000, -25536),
    (np.float32, pypto.DT_INT16, 40000, -25536),
    (np.int64, pypto.DT_INT32, 2**32 + 5, 5),
    (np.int32, pypto.DT_INT16, 65536 + 7, 7),
]


@pytest.mark.parametrize(("source", "dst", "value", "wrapped"), PAIRS)
def test_every_pair_on_which_off_acts(source: Any, dst: Any, value: int, wrapped: int) -> None:
    x = pypto.from_numpy(np.array([value, 1] * 16, source))
    with pypto.options(satmode="upstream", vec_tile_shapes=(32,)):
        assert pypto.cast(x, dst).numpy().tolist() == [wrapped, 1] * 16
    with pypto.options(satmode="seed", vec_tile_shapes=(32,)):
        assert pypto.cast(x, dst).numpy()[0] != wrapped


def test_a_second_run_under_another_release_says_nothing_for_the_first() -> None:
    half = pypto.Tensor[[...], pypto.DT_FP16]
    byte = pypto.Tensor[[...], pypto.DT_INT8]

    @pypto.jit
    def kernel(x: half, out: byte) -> None:
        pypto.set_vec_tile_shapes(32)
        # 2048 + 1 is 2048 in FP16, which wraps; behind FP32 the rest is small.
        out[:] = pypto.cast((x + 1.0 - 2048.0) * 128.0, pypto.DT_INT8)

    x, out = np.full(32, 2048, np.float16), np.zeros(32, np.int8)
    with pypto.options(satmode="upstream", release="0.2.0"):
        kernel.certainty(x, out)
    with (
        pypto.options(satmode="upstream"),
        pytest.warns(pypto.SaturationModeWarning, match=SAID),
    ):
        kernel(x, out)
    assert out[0] == -128


def test_other_pairs_clamp_and_say_nothing() -> None:
    x = pypto.from_numpy(np.full(8, 3e9, np.float32))
    with (
        pypto.options(satmode="upstream", vec_tile_shapes=(8,)),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        assert (pypto.cast(x, pypto.DT_INT32).numpy() == 2**31 - 1).all()


def test_what_operations_cast_inside_is_not_left_out() -> None:
    x = pypto.from_numpy(np.array([[32767, -32768]], np.int16))
    with pypto.options(satmode="upstream", vec_tile_shapes=(1, 16)):
        found = pypto.round(x, -1).numpy().tolist()
    assert found == [[32767, -32768]]  # 32770 and -32770 are clamped


def test_a_wrong_satmode_is_refused() -> None:
    with (
        pytest.raises(ValueError, match="option satmode must be one of"),
        pypto.options(satmode="off"),
    ):
        pass
