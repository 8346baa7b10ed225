"""Runs the kernels of a device check on the NPU; their library is built if it is not there.

A short file because everything else about them needs no device.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from ascend_kernels import build, npu
from ascend_kernels.checks.check_program import CheckProgram
from simulator.compiled_library import CompiledLibraryError, cache_folder, check_private
from simulator.machine.memory import Bytes


@functools.cache
def load_checks() -> None:
    """Load the library, once; its op torch.ops.pypto_cast.check is there then.

    Raises:
        NpuError: there is no NPU, or the library does not load.
        BuildError: it cannot be built; the text says what is missing.
    """
    npu.load()
    try:
        kind = build.CHECK_LIBRARIES[npu.library_of_device().target.family]
        library = build.cached_library(kind)
        if not library.is_file():
            build.build(kind=kind)
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
