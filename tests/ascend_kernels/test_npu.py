"""Finding an NPU, and what is said where there is none; the modules of torch are fakes."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import subprocess
import sys
import types
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.environment.sources import ROOT
from support.programs.twin_programs import CASES, CASES_950

import pypto_cast as pypto
from ascend_kernels import build, instances, npu, tiling_data
from ascend_kernels.program import TileProgram

REAL_WHEEL = "PYPTO_CAST_TEST_TORCH_NPU"


@pytest.fixture(autouse=True)
def asked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(npu.LIBRARY_VARIABLE, raising=False)
    for answer in (npu.find, npu.load):
        answer.cache_clear()
    yield
    for answer in (npu.find, npu.load):
        answer.cache_clear()


class FakeTensor:
    """The attributes of a tensor that launch reads."""

    def __init__(self, kind: str, shape: tuple[int, ...] = (100, 64)) -> None:
        self.shape = shape
        self.device = types.SimpleNamespace(type=kind)


class FakeTorch:
    """torch and torch_npu with devices, and libraries that remember what they are asked."""

    def __init__(self, devices: int = 2) -> None:
        self.loaded: list[str] = []
        self.calls: list[tuple[object, ...]] = []
        self.fails_to_load = False
        self.npu = types.SimpleNamespace(
            device_count=lambda: devices, get_device_name=lambda index: f"Ascend910B{index + 3}"
        )
        self.torch_npu = types.SimpleNamespace(__version__="9.9.9", npu=self.npu)
        pypto_ops = types.SimpleNamespace(launch=self._launch)
        self.ops = types.SimpleNamespace(load_library=self._load_library, pypto_cast=pypto_ops)
        self.torch = types.SimpleNamespace(ops=self.ops)

    def _load_library(self, path: str) -> None:
        if self.fails_to_load:
            raise OSError("undefined symbol")
        self.loaded.append(path)

    def _launch(self, *arguments: object) -> str:
        self.calls.append(arguments)
        return "result"


def install(monkeypatch: pytest.MonkeyPatch, fake: FakeTorch) -> FakeTorch:
    monkeypatch.setattr(npu, "_import", lambda name: getattr(fake, name))
    return fake


def importing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(name: str) -> None:
        raise error

    monkeypatch.setattr(npu, "_import", fails)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


# --- What is found -------------------------------------------------------------------------------

NOT_FOUND: list[tuple[str, Callable[[], Exception], str]] = [
    (
        "not installed",
        lambda: ModuleNotFoundError("No module named 'torch_npu'", name="torch_npu"),
        "torch_npu is not installed",
    ),
    (
        "no torch",
        lambda: ModuleNotFoundError("No module named 'torch'", name="torch"),
        "torch_npu is installed but does not import: ModuleNotFoundError: No module named 'torch'",
    ),
    (
        "no CANN",
        lambda: caused(RuntimeError("Failed to load"), ImportError("libhccl.so: cannot open")),
        "torch_npu is installed but does not import: ImportError: libhccl.so: cannot open",
    ),
    (
        "anything",
        lambda: SystemError("two\nlines"),
        "torch_npu is installed but does not import: SystemError: two lines",
    ),
]


@pytest.mark.parametrize(
    ("error", "reason"), [row[1:] for row in NOT_FOUND], ids=[row[0] for row in NOT_FOUND]
)
def test_the_fallback_is_logged_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Callable[[], Exception],
    reason: str,
) -> None:
    importing(monkeypatch, error())
    with caplog.at_level(logging.INFO, logger="pypto_cast"):
        found = npu.find()
        assert npu.find() is found
    assert found == npu.Npu(run_mode=npu.RunMode.SIM, reason=reason)
    assert [record.getMessage() for record in caplog.records] == [f"RunMode.SIM: {reason}"]


def test_torch_npu_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeTorch(devices=0))
    found = npu.find()
    assert found.run_mode is npu.RunMode.SIM
    assert found.reason == "torch_npu 9.9.9 imports and finds no device"
    assert found.torch_npu_version == "9.9.9"


def test_a_device_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, FakeTorch())

    def refuses(index: int) -> str:
        raise RuntimeError("driver: error 507033")

    fake.npu.get_device_name = refuses
    found = npu.find()
    assert found.run_mode is npu.RunMode.SIM
    assert found.reason == (
        "torch_npu 9.9.9 imports, but no device answers: RuntimeError: driver: error 507033. "
        "Perhaps the device is busy or does not start: npu-smi info lists the programs that hold "
        "it; end them, or name another device in ASCEND_RT_VISIBLE_DEVICES"
    )


def test_devices_that_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, FakeTorch())
    with caplog.at_level(logging.INFO, logger="pypto_cast"):
        found = npu.find()
    assert found == npu.Npu(
        run_mode=npu.RunMode.NPU,
        reason="torch_npu 9.9.9 finds 2 x Ascend910B3",
        torch_npu_version="9.9.9",
        device_count=2,
        soc_name="Ascend910B3",
    )
    assert caplog.records == []


# --- The library ---------------------------------------------------------------------------------


def built_library(kind: build.Library = build.CAST_LIBRARY) -> Path:
    library = build.cached_library(kind)
    for folder in (library.parent.parent, library.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    library.write_bytes(b"")
    return library


def test_the_library_of_the_cache_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, FakeTorch())
    library = built_library()
    assert npu.load() == npu.load() == library
    assert fake.loaded == [str(library)]


def test_a_library_that_is_named_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, FakeTorch())
    built_library()
    named = tmp_path / "named.so"
    monkeypatch.setenv(npu.LIBRARY_VARIABLE, str(named))
    assert npu.find_library() is None
    named.write_bytes(b"")
    assert npu.load() == named


@pytest.mark.parametrize("level", [0, 1])
def test_a_library_that_others_could_have_put_there(
    level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = install(monkeypatch, FakeTorch())
    folder = built_library().parents[level]
    folder.chmod(0o770)
    assert npu.find_library() is None
    assert pypto.platform().library is None
    with pytest.raises(npu.NpuError, match=f"others can write to {folder}. Make the folder your"):
        npu.load()
    assert fake.loaded == []
    folder.chmod(0o700)
    assert npu.find_library() is not None


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeTorch())
    with pytest.raises(npu.NpuError, match=r"run python -m ascend_kernels\.build"):
        npu.load()


def test_a_library_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeTorch()).fails_to_load = True
    built_library()
    with pytest.raises(npu.NpuError, match=r"undefined symbol\. If it was built with another CANN"):
        npu.load()


def test_a_library_without_the_op(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, FakeTorch())
    built_library()
    del fake.ops.pypto_cast.launch
    with pytest.raises(npu.NpuError, match=r"has no op pypto_cast::launch: build it anew with"):
        npu.load()


def program() -> TileProgram:
    return CASES[0].program((100, 64), (8, 64))


def test_a_launch_calls_the_op(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, FakeTorch())
    built_library()
    x = FakeTensor("npu")
    assert npu.launch(x, "float16", program()) == "result"
    ((*others, words, cores),) = fake.calls
    assert others == [x, "float16", [100, 64], instances.instance_number(program().resolution)]
    assert words[:12] == [1, 1, 1, 6400, *[1, 1, 1, 512] * 2]
    assert bytes(array("I", words)) == bytes(tiling_data.tiling_data(program()))
    assert cores == 13


def test_four_bit_elements_share_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, FakeTorch())
    built_library()
    cast = {str(case): case.program((100, 64), (8, 64)) for case in CASES}
    npu.launch(FakeTensor("npu"), "uint8", cast["fp16-int4-rint"])
    npu.launch(FakeTensor("npu", (100, 32)), "float16", cast["int4-fp16-exact"])
    assert [call[2] for call in fake.calls] == [[100, 32], [100, 64]]


@pytest.mark.parametrize("shape", [(64, 100), (100, 32), (6400,)])
def test_a_launch_of_another_shape(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, FakeTorch())
    built_library()
    with pytest.raises(npu.NpuError, match=r"launch takes FP32 of shape \(100, 64\), not"):
        npu.launch(FakeTensor("npu", shape), "float16", program())
    assert fake.calls == []


def test_a_launch_of_a_family_that_the_library_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, FakeTorch())
    built_library()
    with pytest.raises(npu.NpuError, match=r"launch takes casts of A2/A3, .* is of 950: run it"):
        npu.launch(FakeTensor("npu"), "float16", CASES_950[0].program((100, 64), (8, 64)))
    assert fake.calls == []


@pytest.mark.parametrize("soc_name", ["Ascend950PR", "Ascend950DT_957x"])
def test_a_device_has_the_library_of_its_family(
    soc_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = install(monkeypatch, FakeTorch())
    fake.npu.get_device_name = lambda index: soc_name
    built_library()  # of A2 and A3
    with pytest.raises(npu.NpuError, match=r"run python -m ascend_kernels\.build --arch dav-3510"):
        npu.load()
    library = built_library(build.CAST_LIBRARIES["950"])
    assert npu.find_library() == library
    cast = CASES_950[0].program((100, 64), (8, 64))
    assert npu.launch(FakeTensor("npu"), "float16", cast) == "result"
    assert fake.loaded == [str(library)]
    assert fake.calls[0][3] == instances.instance_number(cast.resolution)
    with pytest.raises(npu.NpuError, match=r"launch takes casts of 950, .* is of A2/A3: run it"):
        npu.launch(FakeTensor("npu"), "float16", program())


def test_a_launch_of_a_tensor_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, FakeTorch())
    built_library()
    with pytest.raises(npu.NpuError, match="takes a tensor on npu"):
        npu.launch(FakeTensor("cpu"), "float16", program())
    assert fake.calls == []


def test_a_launch_without_an_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    importing(monkeypatch, ModuleNotFoundError(name="torch_npu"))
    with pytest.raises(npu.NpuError, match="torch_npu is not installed"):
        npu.launch(FakeTensor("npu"), "float16", program())


# --- pypto's words -------------------------------------------------------------------------------


def test_run_modes_are_numbered_as_upstream() -> None:
    assert {mode.name: int(mode) for mode in pypto.RunMode} == {"NPU": 0, "SIM": 1}
    assert repr(pypto.RunMode.SIM) == "RunMode.SIM"


def test_the_platform_with_an_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeTorch())
    library = built_library()
    with pypto.options(chip="Ascend910_9391"):
        found = pypto.platform()
    assert found.run_mode is pypto.RunMode.NPU
    assert (found.device_count, found.soc_name) == (2, "Ascend910B3")
    assert found.library == library
    assert found.chip.name == "Ascend910_9391"
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.device_count = 3


@pytest.mark.parametrize("compiler", ["sh", "no-such-compiler"])
def test_the_platform_without_an_npu(monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    importing(monkeypatch, ModuleNotFoundError(name="torch_npu"))
    monkeypatch.setenv("CXX", compiler)
    found = pypto.platform()
    assert (found.run_mode, found.reason) == (pypto.RunMode.SIM, "torch_npu is not installed")
    assert (found.torch_npu_version, found.soc_name, found.library) == (None, None, None)
    assert found.is_twin_available is (compiler == "sh")


def test_the_platform_has_upstreams_attribute() -> None:
    assert pypto.platform.npuarch == "DAV_2201"
    pypto.platform.npuarch = "DAV_2201"
    with pytest.raises(ValueError, match=r"is 'DAV_2201', .* cannot be set to 'DAV_3510'"):
        pypto.platform.npuarch = "DAV_3510"
    assert repr(pypto.platform) == "<pypto_cast.platform of DAV_2201>"


# --- torch_npu itself, without CANN --------------------------------------------------------------
#
# Only where a folder with the wheel is named, of the version for the installed torch:
#
#     pip install --no-deps --target FOLDER torch-npu==2.13.0
#     PYPTO_CAST_TEST_TORCH_NPU=FOLDER python -m pytest tests/ascend_kernels/test_npu.py

WITH_THE_WHEEL = """
import json, logging, sys
lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("pypto_cast").addHandler(handler)
logging.getLogger("pypto_cast").setLevel(logging.INFO)
import pypto_cast as pypto
before = "torch" in sys.modules
found = pypto.platform()
import torch
import pypto_cast.torch_op
y = torch.ops.pypto_cast.cast(torch.tensor([2.0, 2049.0]), 6, 1, 0, [16])
print(json.dumps([before, found.run_mode.name, found.reason, lines, y.tolist(), str(y.dtype)]))
"""

if REAL_WHEEL in os.environ:

    def test_the_wheel_of_torch_npu_without_cann_does_no_harm(tmp_path: Path) -> None:
        paths = os.pathsep.join([str(ROOT), os.environ[REAL_WHEEL]])
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", WITH_THE_WHEEL],
            env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        before, mode, reason, lines, values, dtype = json.loads(done.stdout.splitlines()[-1])
        assert (before, mode) == (False, "SIM")
        assert reason.startswith("torch_npu is installed but does not import: ImportError: lib")
        assert lines == [f"RunMode.SIM: {reason}"]
        assert (values, dtype) == ([2.0, 2048.0], "torch.float16")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ("NPU out of memory. Tried to allocate 2 GiB", "the device has no memory left: free"),
        ("call aclrtMalloc failed, error code is 207001", "the device has no memory left: free"),
        ("NPU function error: SetDevice, error code is 507033", "the device is busy or does not"),
        ("drv: 507899", "CANN and the driver do not go together: install"),
        ("failed with ACL error 507035: vec", "a fault of this package: please report"),
    ],
)
def test_faults_of_a_launch_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: str, says: str
) -> None:
    def fails(*arguments: object) -> str:
        raise RuntimeError(f"{error}\nTraceBack (most recent call last):\n  frame")

    fake = install(monkeypatch, FakeTorch())
    built_library()
    fake.ops.pypto_cast.launch = fails
    with pytest.raises(npu.DeviceFault, match=says) as raised:
        npu.launch(FakeTensor("npu"), "float16", program())
    assert "\n" not in str(raised.value)
    assert error.split(",", maxsplit=1)[0] in str(raised.value)


def test_other_errors_of_a_launch_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> str:
        raise RuntimeError("x has 100 elements, 1000000 are wanted")

    fake = install(monkeypatch, FakeTorch())
    built_library()
    fake.ops.pypto_cast.launch = fails
    with pytest.raises(RuntimeError, match=r"^x has 100 elements"):
        npu.launch(FakeTensor("npu"), "float16", program())
