"""The kernels of a device check: their header, their compilation, their build, their launch."""

from __future__ import annotations

import dataclasses
import subprocess
import types
from pathlib import Path

import numpy as np
import pytest
from support.devices.checks_on_twin import run_on_twin
from support.programs.twin_programs import needs_twin

from ascend_kernels import build, npu
from ascend_kernels.checks import check_runs
from ascend_kernels.checks.check_program import (
    CHECK_HEADER,
    CHECK_KERNELS,
    CHECK_SOURCES,
    CheckProgram,
    CheckTilingData,
    check_header,
)
from ascend_kernels.matrix import MATRIX
from ascend_kernels.twin import SOURCES, compiler
from simulator.machine.memory import SimulatorFault
from tiling.chips import A2_A3, ASCEND_950

LAUNCH = "-DPYPTO_CHECK_LAUNCH(kernel, cores, stream, x, y, tiling)=kernel(x, y, tiling)"
ADD = CheckProgram(
    kernel="vadd_fp32",
    x=np.arange(16, dtype=np.float32).view(np.uint8),
    result_bytes=32,
    cores=1,
    tiling={"passes": 1, "pass_elems": 8, "result_elems": 8},
)


def test_the_header_is_what_the_table_gives() -> None:
    assert CHECK_HEADER.read_text(encoding="utf-8") == check_header()


def test_there_is_a_kernel_for_each_instruction_and_pair() -> None:
    both = 2 * 9 + 2 * 3 + 2 * 2 + 4 + 3
    assert len(CHECK_KERNELS[A2_A3]) == both + 10 + 2 * len(MATRIX[A2_A3])
    assert len(CHECK_KERNELS[ASCEND_950]) == both + 4


def test_a_kernel_of_both_families_has_one_number() -> None:
    for names in CHECK_KERNELS.values():
        for number, name in enumerate(names):
            assert dataclasses.replace(ADD, kernel=name).instance == number


@pytest.mark.slow
@pytest.mark.parametrize(("cann", "arch"), [(80500, 2201), (90100, 2201), (90100, 3510)])
def test_the_kernels_compile(cann: int, arch: int) -> None:
    needs_twin()
    command = (
        *compiler(),
        *("-std=c++17", "-fsyntax-only", "-D__vector__=", LAUNCH, f"-DPYPTO_TWIN_CANN={cann}"),
        f"-DPYPTO_CAST_ARCH={arch}",
        *(f"-I{SOURCES}", f"-I{SOURCES / 'twin'}", "-Wall"),
        *("-x", "c++", str(CHECK_SOURCES / "check_kernels.asc")),
    )
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.slow
def test_the_twin_runs_a_kernel() -> None:
    needs_twin()
    assert run_on_twin(ADD).view(np.float32).tolist() == [8.0 + 2 * n for n in range(8)]


def test_the_twin_refuses_what_hardware_does() -> None:
    needs_twin()
    short = CheckProgram(
        kernel="vadd_fp32", x=ADD.x[:32], result_bytes=32, cores=1, tiling=ADD.tiling
    )
    with pytest.raises(SimulatorFault, match=r"the kernel vadd_fp32: bytes 0 to 64 of gm\.x"):
        run_on_twin(short)


def test_the_words_are_the_tiling_data() -> None:
    assert bytes(np.array(ADD.words, np.uint32)) == bytes(ADD.data)
    assert len(ADD.words) * 4 == len(bytes(CheckTilingData()))


def test_the_commands_that_bisheng_is_given(tmp_path: Path) -> None:
    toolchain = build.Toolchain(
        cann=tmp_path,
        bisheng=tmp_path / "bisheng",
        torch=tmp_path / "torch",
        torch_npu=tmp_path / "torch_npu",
        is_cxx11_abi=True,
        cann_version="8.5.0",
        gcc=None,
    )
    library = tmp_path / build.CHECK_LIBRARIES[A2_A3].file
    kernels, op, link = toolchain.commands(library, tmp_path, build.CHECK_LIBRARIES[A2_A3])
    assert str(CHECK_SOURCES / "check_kernels.asc") in kernels
    assert "--npu-arch=dav-2201" in kernels
    assert str(CHECK_SOURCES / "check_op.cpp") in op
    assert link[-1] == str(library)
    for made in (kernels[-1], op[-1]):
        assert made in link


def test_the_libraries_have_files_of_their_own() -> None:
    paths = {
        build.cached_library(kind) for kind in (build.CAST_LIBRARY, build.CHECK_LIBRARIES[A2_A3])
    }
    assert len({path.name for path in paths}) == len({path.parent for path in paths}) == 2


# --- The launch ----------------------------------------------------------------------------------


class FakeArray:
    """A tensor of bytes, on the host or the device."""

    def __init__(self, values: np.ndarray, place: str = "cpu") -> None:
        self.values, self.place = values, place

    def to(self, place: str) -> FakeArray:
        return FakeArray(self.values, place)

    def cpu(self) -> FakeArray:
        return self.to("cpu")

    def numpy(self) -> np.ndarray:
        return self.values


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> types.SimpleNamespace:
    """torch whose op gives back what it reads, and a library that is built by making a file."""

    def check(
        x: FakeArray, size_bytes: int, instance: int, tiling: list[int], cores: int
    ) -> FakeArray:
        assert x.place == "npu"
        assert tiling == ADD.words
        assert list(CHECK_KERNELS[A2_A3])[instance] == ADD.kernel
        return FakeArray(x.values[:size_bytes], "npu")

    def made(kind: build.Library) -> None:
        fake.built.append(kind.file)
        library = build.cached_library(kind)
        library.parent.mkdir(mode=0o700, parents=True)
        library.write_bytes(b"")

    fake = types.SimpleNamespace(
        from_numpy=FakeArray,
        built=[],
        loaded=[],
        ops=types.SimpleNamespace(pypto_cast=types.SimpleNamespace(check=check)),
    )
    fake.ops.load_library = fake.loaded.append
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "pypto_cast").mkdir(mode=0o700)
    monkeypatch.setattr(check_runs, "_torch", lambda: fake)
    monkeypatch.setattr(npu, "load", lambda: None)
    monkeypatch.setattr(build, "build", made)
    check_runs.load_checks.cache_clear()
    yield fake
    check_runs.load_checks.cache_clear()


def test_a_launch_builds_loads_and_calls(
    fake_torch: types.SimpleNamespace,
) -> None:
    for _ in range(2):
        assert check_runs.run_on_npu(ADD).tolist() == ADD.x[:32].tolist()
    assert fake_torch.built == ["libpypto_cast_check.so"]
    assert fake_torch.loaded == [str(build.cached_library(build.CHECK_LIBRARIES[A2_A3]))]


def test_faults_of_a_launch(fake_torch: types.SimpleNamespace) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("NPU out of memory. Tried to allocate 2 GiB")

    fake_torch.ops.pypto_cast.check = fails
    with pytest.raises(npu.DeviceFault, match="no memory left"):
        check_runs.run_on_npu(ADD)


def test_a_library_that_does_not_load(fake_torch: types.SimpleNamespace) -> None:
    def fails(path: str) -> None:
        raise OSError("undefined symbol")

    fake_torch.ops.load_library = fails
    with pytest.raises(npu.NpuError, match="of the device check does not load: OSError: undefined"):
        check_runs.run_on_npu(ADD)
