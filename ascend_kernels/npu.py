"""Finds the NPU, loads the library that runs casts on it, launches them, explains its faults.

The search is made once per process; where there is no NPU, one line in the log says why. Faults of
a device have one line with its remedy each: busy, out of memory, another driver.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ascend_kernels.build import (
    CAST_LIBRARIES,
    CAST_LIBRARY,
    Library,
    cached_library,
    root_cause,
    without_autoload,
)
from ascend_kernels.instances import instance_number
from ascend_kernels.program import TileProgram
from ascend_kernels.tiling_data import tiling_words
from simulator.compiled_library import CompiledLibraryError, cache_folder, check_private
from simulator.numbers.formats import Format
from tiling.chips import ASCEND_950, CHIPS, Chip
from tiling.grid import Shape

_NO_MEMORY: Final = (
    "the device has no memory left: free tensors there, or end the other programs that npu-smi "
    "info lists"
)
_BUSY: Final = (
    "the device is busy or does not start: npu-smi info lists the programs that hold it; end them, "
    "or name another device in ASCEND_RT_VISIBLE_DEVICES"
)
_OTHER_CANN: Final = (
    "CANN and the driver do not go together: install those of one release (npu-smi info shows the "
    "driver's), and build anew with python -m ascend_kernels.build"
)
_FAILED: Final = (
    "the kernel failed on the device, which is a fault of this package: please report it with the "
    "output of python -m ascend_kernels.build --dry-run"
)
_NO_END: Final = (
    "the kernel did not end in time and was stopped: a process that met this can launch nothing "
    "more, a new one can; if it comes again at the same step, please report it"
)
_LOST: Final = (
    "the device answers no more: npu-smi info shows its state; after npu-smi set -t reset it may "
    "answer again"
)
_MEMORY_ERROR: Final = (
    "the device's memory has errors that it cannot correct: npu-smi info -t ecc shows them; take "
    "another device"
)
FAULTS: Final = MappingProxyType(
    {
        207001: _NO_MEMORY,
        207004: "there is no device: npu-smi info has to list one",
        207005: _BUSY,
        207006: "this user may not use the device: the driver's group has to have the user",
        507010: _LOST,
        507012: _LOST,
        507014: _NO_END,
        507015: _FAILED,
        507016: _FAILED,
        507033: _BUSY,
        507034: _NO_END,
        507035: _FAILED,
        507036: _FAILED,
        507046: _NO_END,
        507053: _MEMORY_ERROR,
        507054: _MEMORY_ERROR,
        507899: _OTHER_CANN,
    }
)
"""By ACL's error codes (CANN, rt_error_codes.h)."""
_CODE: Final = re.compile(r"\b([1-5]0[0-9]{4})\b")
_TEXTS: Final = MappingProxyType({"out of memory": _NO_MEMORY, "EL0004": _NO_MEMORY})
"""Of torch_npu's allocator and of the runtime, which give no code."""


class DeviceFault(RuntimeError):
    """The device failed; the text gives the cause and the remedy."""


def advice(text: str) -> str | None:
    """The remedy for an error; None if its text names no known fault."""
    for words, found in _TEXTS.items():
        if words in text:
            return found
    codes = (int(code) for code in _CODE.findall(text))
    return next((FAULTS[code] for code in codes if code in FAULTS), None)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Raise a known fault in the body as a DeviceFault of one line; other errors as they are."""
    try:
        yield
    except RuntimeError as error:
        cause = root_cause(error)
        what = advice(cause)
        if what is None:
            raise
        raise DeviceFault(f"{what} ({cause})") from error


LIBRARY_VARIABLE: Final = "PYPTO_CAST_NPU_LIBRARY"
_NAMED_ON: Final = frozenset({ASCEND_950})
"""The families of whose chips the driver's names go on, as Ascend950PR_9599."""
_LOG: Final = logging.getLogger("pypto_cast")


class RunMode(enum.IntEnum):
    """The place of execution of a program: the NPU or the simulator."""

    NPU = 0
    SIM = 1

    def __repr__(self) -> str:
        return f"RunMode.{self.name}"

    def __int__(self) -> int:
        return int(self.value)


class NpuError(RuntimeError):
    """No cast can be launched on an NPU here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Npu:
    """The NPU, torch_npu and devices that were found.

    Attributes:
        run_mode: NPU if torch_npu imports and a device answers.
        reason: why, in words.
        torch_npu_version: None if it does not import.
        device_count: devices that answer.
        soc_name: the chip of the first of them, as the driver calls it.
    """

    run_mode: RunMode
    reason: str
    torch_npu_version: str | None = None
    device_count: int = 0
    soc_name: str | None = None


@functools.cache
def find() -> Npu:
    """Look for an NPU; a fallback to the simulator is logged, once."""
    found = _find()
    if found.run_mode is RunMode.SIM:
        _LOG.warning("RunMode.SIM: %s", found.reason)
    return found


def library_of_device() -> Library:
    """The library for the family of the first device, by the vendor's name of its chip.

    Of a device that no name fits, and without one, it is that of A2 and A3.
    """
    chip = chip_called(find().soc_name or "")
    return CAST_LIBRARY if chip is None else CAST_LIBRARIES[chip.isa]


def chip_called(soc_name: str) -> Chip | None:
    """The chip that the driver calls so; of a 950 it says more behind the name that is known."""
    for name, chip in CHIPS.items():
        if soc_name == name or (chip.isa in _NAMED_ON and soc_name.startswith(name)):
            return chip
    return None


def find_library() -> Path | None:
    """The library that `load` takes: the one that PYPTO_CAST_NPU_LIBRARY names, or the cache's
    for the family of the device.

    None if it is not there, or lies in a folder of the cache that another user can change.
    """
    try:
        return _library()
    except NpuError:
        return None


def _library() -> Path:
    named = os.environ.get(LIBRARY_VARIABLE)
    try:
        kind = library_of_device()
        library = Path(named) if named else cached_library(kind)
        if not library.is_file():
            raise NpuError(
                "the library for the NPU is not built for this torch_npu: run python -m "
                f"ascend_kernels.build{_asked(kind)} (or let {LIBRARY_VARIABLE} name it)"
            )
        if not named:
            check_private(cache_folder())
            check_private(library.parent)
    except (OSError, CompiledLibraryError) as error:
        raise NpuError(
            f"the library for the NPU is not taken from the cache: {error}. Make the folder your "
            "own with mode 700 and build again, or set XDG_CACHE_HOME"
        ) from error
    return library


def _asked(kind: Library) -> str:
    """The option that builds a library, where it needs one."""
    return "" if kind is CAST_LIBRARY else f" --arch {kind.architecture}"


@functools.cache
def load() -> Path:
    """Load the library, once; its op torch.ops.pypto_cast.launch is there then.

    Raises:
        NpuError: there is no NPU, no library, or it does not load or is another.
    """
    found = find()
    if found.run_mode is RunMode.SIM:
        raise NpuError(f"no cast can run on an NPU here: {found.reason}")
    library = _library()
    try:
        _import("torch").ops.load_library(str(library))
    except OSError as error:
        raise NpuError(
            f"{library} does not load: {root_cause(error)}. If it was built with another CANN or "
            "torch_npu, build it anew with python -m ascend_kernels.build"
        ) from error
    if not hasattr(_import("torch").ops.pypto_cast, "launch"):
        raise NpuError(
            f"{library} loads, but has no op pypto_cast::launch: build it anew with "
            "python -m ascend_kernels.build"
        )
    return library


def launch(x: Any, dtype: Any, program: TileProgram) -> Any:
    """Cast a torch tensor on the NPU, on its current stream.

    Args:
        x: a tensor on an NPU, of the shape and the source format of `program`; not modified. INT4,
            which torch has no dtype for, is held as bytes of two elements, the first in the low
            nibble, and has half the last axis.
        dtype: the torch dtype of the result; uint8 for INT4, held alike.
        program: the tile program of the cast, planned for the device's chip.

    Returns:
        The result on the device. The work is enqueued: what the device refuses is raised by
        torch_npu, at once or when it synchronizes.

    Raises:
        NpuError: there is no NPU or no library, the program is of another family than the library,
            or `x` is elsewhere or has another shape.
        DeviceFault: the device is busy, out of memory or of another driver.
        ValueError: the device keeps `x` in a layout other than ND.
    """
    load()
    if x.device.type != "npu":
        raise NpuError(f"launch takes a tensor on npu, this one is on {x.device}: x.npu() moves it")
    rule, target = program.resolution.rule, library_of_device().target
    if rule.family != target.family:  # its instances have other numbers
        raise NpuError(
            f"launch takes casts of {target.family}, the family of the device, and {rule} is of "
            f"{rule.family}: run it with another engine"
        )
    shape = held_shape(program.plan.shape, rule.src)
    if tuple(x.shape) != shape:
        raise NpuError(f"launch takes {rule.src} of shape {shape}, not {tuple(x.shape)}")
    instance = instance_number(program.resolution)
    words = list(tiling_words(program))
    held = list(held_shape(program.plan.shape, rule.dst))
    op = _import("torch").ops.pypto_cast.launch
    with told():
        return op(x, dtype, held, instance, words, len(program.cores))


def held_shape(shape: Shape, fmt: Format) -> Shape:
    """The shape of the device's tensor: elements of 4 bits share a byte along the last axis."""
    return (*shape[:-1], shape[-1] // 2) if fmt.bits == 4 else shape


def launch_from_host(x: Any, dtype: Any, program: TileProgram) -> Any:
    """Cast a torch tensor of the host on the NPU and bring the result back; see `launch`."""
    load()
    with told():
        return launch(x.to("npu"), dtype, program).cpu()


def _import(name: str) -> Any:
    return importlib.import_module(name)


def _find() -> Npu:
    try:
        with without_autoload():
            torch_npu = _import("torch_npu")
    except ModuleNotFoundError as error:
        if error.name == "torch_npu":
            return Npu(run_mode=RunMode.SIM, reason="torch_npu is not installed")
        return _no_import(error)
    except Exception as error:  # a broken installation may raise anything
        return _no_import(error)
    version = str(getattr(torch_npu, "__version__", "unknown"))
    try:
        count = int(torch_npu.npu.device_count())
        soc_name = str(torch_npu.npu.get_device_name(0)) if count else None
    except Exception as error:
        cause = root_cause(error)
        reason = f"torch_npu {version} imports, but no device answers: {cause}"
        if what := advice(cause):
            reason = f"{reason}. Perhaps {what}"
        return Npu(run_mode=RunMode.SIM, reason=reason, torch_npu_version=version)
    if count < 1:
        reason = f"torch_npu {version} imports and finds no device"
        return Npu(run_mode=RunMode.SIM, reason=reason, torch_npu_version=version)
    return Npu(
        run_mode=RunMode.NPU,
        reason=f"torch_npu {version} finds {count} x {soc_name}",
        torch_npu_version=version,
        device_count=count,
        soc_name=soc_name,
    )


def _no_import(error: Exception) -> Npu:
    reason = f"torch_npu is installed but does not import: {root_cause(error)}"
    return Npu(run_mode=RunMode.SIM, reason=reason)
