"""The kernels of a device check on a device as this package assumes it: compiled for this CPU."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

import numpy as np

from ascend_kernels.checks.check_program import CHECK_SOURCES, CheckProgram
from ascend_kernels.instances import target_of
from ascend_kernels.twin import ERROR_BYTES, FLAGS, NO_VISIT, loaded, sources
from simulator.compiled_library import LibrarySources
from simulator.machine.memory import Bytes, SimulatorFault
from tiling.chips import A2_A3

_MAIN: Final = CHECK_SOURCES / "check_twin.cpp"


def run_on_twin(program: CheckProgram, visit: Any = NO_VISIT, family: str = A2_A3) -> Bytes:
    """Run a check's kernel and return the bytes that it writes; `visit` is shown instructions.

    Raises:
        TwinUnavailableError: the twin cannot be built here.
        SimulatorFault: the kernel did what hardware does not permit.
    """
    y = np.zeros(program.result_bytes, np.uint8)
    error = ctypes.create_string_buffer(ERROR_BYTES)
    data = program.data
    failed = loaded(_sources(family)).pypto_check_run(
        ctypes.c_uint64(program.instance),
        ctypes.byref(data),
        ctypes.c_void_p(program.x.ctypes.data),
        ctypes.c_uint64(program.x.size),
        ctypes.c_void_p(y.ctypes.data),
        ctypes.c_uint64(y.size),
        ctypes.c_uint64(program.cores),
        visit,
        error,
        ctypes.c_uint64(ERROR_BYTES),
    )
    if failed:
        raise SimulatorFault(f"the kernel {program.kernel}: {error.value.decode()}")
    return y


@functools.cache
def _sources(family: str) -> LibrarySources:
    files = [*sources(), *sorted(CHECK_SOURCES.iterdir())]
    arch = f"-DPYPTO_CAST_ARCH={target_of(family).architecture}"
    headers = f"-I{_MAIN.parents[1] / 'twin'}"
    return LibrarySources(
        name="check-twin", main=_MAIN, files=tuple(files), flags=(*FLAGS, arch, headers)
    )
