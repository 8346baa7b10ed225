"""Runs the kernels of a device check: on the NPU, or compiled for this machine.

The library for the NPU is built if it is not there. The twin is a device as this package assumes
it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any, Final

import numpy as np

from ascend_kernels import build, npu
from ascend_kernels.checks.check_program import CHECK_SOURCES, CheckProgram
from ascend_kernels.twin import ERROR_BYTES, FLAGS, loaded, sources
from simulator.compiled_library import (
    CompiledLibraryError,
    LibrarySources,
    cache_folder,
    check_private,
)
from simulator.machine.memory import Bytes, SimulatorFault

_MAIN: Final = CHECK_SOURCES / "check_twin.cpp"


@functools.cache
def load_checks() -> None:
    """Load the library, once; its op torch.ops.pypto_cast.check is there then.

    Raises:
        NpuError: there is no NPU, or the library does not load.
        BuildError: it cannot be built; the text says what is missing.
    """
    npu.load()
    try:
        library = build.cached_library(build.CHECK_LIBRARY)
        if not library.is_file():
            build.build(kind=build.CHECK_LIBRARY)
        for folder in (cache_folder(), library.parent):
            check_private(folder)
        _torch().ops.load_library(str(library))
    except (OSError, CompiledLibraryError) as error:
        reason = build.root_cause(error)
        raise npu.NpuError(f"the library of the device check does not load: {reason}") from error


def run_on_npu(program: CheckProgram) -> Bytes:
    """Run a check's kernel and return the bytes that it writes.

    Raises:
        NpuError: there is no NPU, or the library does not load.
        BuildError: the library cannot be built.
        DeviceFault: the device is busy, out of memory or of another driver.
    """
    load_checks()
    torch = _torch()
    with npu.told():
        x = torch.from_numpy(program.x).to("npu")
        op = torch.ops.pypto_cast.check
        y = op(x, program.result_bytes, program.instance, program.words, program.cores)
        return np.asarray(y.cpu().numpy())


def _torch() -> Any:
    return importlib.import_module("torch")


def run_on_twin(program: CheckProgram) -> Bytes:
    """Run a check's kernel and return the bytes that it writes.

    Raises:
        TwinUnavailableError: the twin cannot be built here.
        SimulatorFault: the kernel did what hardware does not permit.
    """
    y = np.zeros(program.result_bytes, np.uint8)
    error = ctypes.create_string_buffer(ERROR_BYTES)
    data = program.data
    failed = loaded(_sources()).pypto_check_run(
        ctypes.c_uint64(program.instance),
        ctypes.byref(data),
        ctypes.c_void_p(program.x.ctypes.data),
        ctypes.c_uint64(program.x.size),
        ctypes.c_void_p(y.ctypes.data),
        ctypes.c_uint64(y.size),
        ctypes.c_uint64(program.cores),
        error,
        ctypes.c_uint64(ERROR_BYTES),
    )
    if failed:
        raise SimulatorFault(f"the kernel {program.kernel}: {error.value.decode()}")
    return y


@functools.cache
def _sources() -> LibrarySources:
    files = [*sources(), *sorted(CHECK_SOURCES.iterdir())]
    headers = f"-I{_MAIN.parents[1] / 'twin'}"
    flags = tuple("-O0" if flag == "-O3" else flag for flag in FLAGS)  # built sooner than it runs
    return LibrarySources(
        name="check-twin", main=_MAIN, files=tuple(files), flags=(*flags, headers)
    )
