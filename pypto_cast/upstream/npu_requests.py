"""Requests of a driver to an NPU through torch, where there is none: refused, or done on the CPU.

Drivers of kernels move tensors with `torch_npu`, `.npu()`, `.to("npu:0")` and `device="npu"`. The
kernels themselves need none of this. What stands in is taken away at the end.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from enum import Enum
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from ascend_kernels import npu
from ascend_kernels.npu import Npu, RunMode
from tiling.chips import DEFAULT_CHIP

_DEVICE: Final = re.compile(r"npu(:[0-9]+)?")
_DEVICE_VARIABLE: Final = "TILE_FWK_DEVICE_ID"
"""Upstream's drivers read the number of the device from it, and end where it is not set."""
_SOC_VERSION: Final = 220
"""torch_npu's number of the Ascend910B1, the default chip; of the 950 it is 260."""
_ABSENT: Final = object()


class NpuRequestError(Exception):
    """A driver asks for an NPU, and none is here."""

    def __init__(self, asked: str, **more: Any) -> None:
        super().__init__(
            f"the program asks for an NPU ({asked}), and none is here; kernels run without one: "
            "leave that out, or have it mean the CPU with --npu-on-cpu",
            **more,
        )


class NpuImportError(NpuRequestError, ModuleNotFoundError):
    """It imports torch_npu."""


class NpuAttributeError(NpuRequestError, AttributeError):
    """It takes an attribute that torch_npu adds."""


class NpuDeviceError(NpuRequestError, RuntimeError):
    """It names the device."""


@contextlib.contextmanager
def npu_requests(*, on_cpu: bool) -> Iterator[None]:
    """Have requests for an NPU refused in words, or done on the CPU, until the end.

    They are left alone where torch_npu is installed, unless they are to be done on the CPU. Torch
    need not be imported yet. Functions of torch are watched in this thread only.

    Args:
        on_cpu: `.npu()`, `.to("npu")` and the functions of torch_npu that move or wait are the
            identity, device="npu" or its number is the CPU, TILE_FWK_DEVICE_ID is 0 where it is not
            set, what is registered for the NPU is for the CPU, and kernels are simulated whatever
            device there is.
    """
    if not on_cpu and importlib.util.find_spec("torch_npu") is not None:
        yield
        return
    with contextlib.ExitStack() as patches:
        finder = _Finder(patches, on_cpu=on_cpu)
        sys.meta_path.insert(0, finder)
        patches.callback(sys.meta_path.remove, finder)
        if on_cpu:
            simulated = Npu(run_mode=RunMode.SIM, reason="the CPU stands for the NPU")
            _set(npu, "find", lambda: simulated, patches)  # else kernels would find what stands in
            patches.callback(_restored(sys.modules, "torch_npu"))
            patches.callback(_restored(os.environ, _DEVICE_VARIABLE))
            os.environ.setdefault(_DEVICE_VARIABLE, "0")
            sys.modules["torch_npu"] = _torch_npu()
        if "torch" in sys.modules:
            _patch(sys.modules["torch"], patches, on_cpu=on_cpu)
        yield


class _Finder(importlib.abc.MetaPathFinder):
    """Patches torch when it is imported, and refuses torch_npu."""

    def __init__(self, patches: contextlib.ExitStack, *, on_cpu: bool) -> None:
        self._patches = patches
        self._on_cpu = on_cpu

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] == "torch_npu":
            raise NpuImportError(f"import {fullname}", name=fullname)
        if fullname != "torch":
            return None
        found = (f.find_spec(fullname, path, target) for f in sys.meta_path if f is not self)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_patch(module: ModuleType) -> None:
                execute(module)
                _patch(module, self._patches, on_cpu=self._on_cpu)

            vars(spec.loader)["exec_module"] = execute_and_patch
        return spec


def _patch(torch: Any, patches: contextlib.ExitStack, *, on_cpu: bool) -> None:
    """Have torch know the device: as the CPU, or as something to refuse."""

    def placed(value: Any) -> Any:
        if not isinstance(value, str) or not _DEVICE.fullmatch(value):
            return value
        if not on_cpu:
            raise NpuDeviceError(f"device {value!r}")
        return "cpu"

    def placed_call(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            if _is_number(named.get("device")):  # the number of an accelerator, which is the NPU
                named["device"] = f"npu:{named['device']}"
            return function(*map(placed, values), **{k: placed(v) for k, v in named.items()})

        return call

    def registered(library: Any, name: Any, function: Any, key: str = "", **named: Any) -> Any:
        if key == "NPU" and not on_cpu:
            raise NpuDeviceError(f"an implementation for dispatch key {key!r}")
        return register(library, name, function, "CPU" if key == "NPU" else key, **named)

    def watched(_: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return placed_call(function)(*args, **(kwargs or {}))

    class Device(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __call__(cls, *values: Any, **named: Any) -> Any:
            if len(values) == 1 and _is_number(values[0]):
                values = (f"npu:{values[0]}",)
            return placed_call(real)(*values, **named)

    real, register = torch.device, torch.library.Library.impl
    watching = type("Placed", (torch.overrides.TorchFunctionMode,), {"__torch_function__": watched})
    patches.enter_context(watching())
    _set(torch, "device", Device("device", (), {}), patches)
    _set(torch.library.Library, "impl", registered, patches)
    _set(torch.nn.Module, "to", placed_call(torch.nn.Module.to), patches)
    for owner in (torch.Tensor, torch.nn.Module):
        _set(owner, "npu", _identity if on_cpu else _refuse, patches)
    if on_cpu:
        _set(torch, "npu", sys.modules["torch_npu"].npu, patches)
        return
    missing = torch.__getattr__

    def attribute(name: str) -> Any:
        if name == "npu":
            raise NpuAttributeError("torch.npu")
        return missing(name)

    _set(torch, "__getattr__", attribute, patches)


def _set(owner: Any, name: str, value: object, patches: contextlib.ExitStack) -> None:
    """Set an attribute until the end."""
    before = vars(owner).get(name, _ABSENT)
    setattr(owner, name, value)
    undo = (delattr, owner, name) if before is _ABSENT else (setattr, owner, name, before)
    patches.callback(*undo)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _identity(value: Any, *_: object, **__: object) -> Any:
    return value


def _refuse(*_: object, **__: object) -> Any:
    raise NpuDeviceError(".npu()")


def _torch_npu() -> Any:
    """A torch_npu whose functions do nothing."""
    module, device = ModuleType("torch_npu"), ModuleType("torch_npu.npu")
    for name in ("set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all"):
        setattr(device, name, lambda *_, **__: None)
    vars(device).update(is_available=lambda: True, device_count=lambda: 1, current_device=lambda: 0)
    vars(device).update(config=SimpleNamespace(), get_device_name=lambda *_: DEFAULT_CHIP.name)
    vars(device).update(get_soc_version=lambda: _SOC_VERSION)
    layout = Enum("layout", {"ND": 2, "FRACTAL_NZ": 29})
    vars(module).update(npu=device, npu_format_cast=_identity, Format=layout)
    return module


def _restored(held: MutableMapping[str, Any], name: str) -> Callable[[], None]:
    before = held.get(name)

    def restore() -> None:
        held.pop(name, None)
        if before is not None:
            held[name] = before

    return restore
