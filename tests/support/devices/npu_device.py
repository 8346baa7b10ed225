"""An NPU that the compiled kernel stands in for: it gets what Python tells the library's op."""

from __future__ import annotations

import ctypes
import functools
import re
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.programs.twin_programs import needs_twin

from ascend_kernels import npu, twin
from ascend_kernels.npu import Npu, RunMode
from ascend_kernels.tiling_data import CastTilingData
from ascend_kernels.twin import SOURCES, Launch

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")


class OnNpu(torch.Tensor):
    """A tensor that says it is on an NPU."""

    @property
    def device(self) -> Any:
        return types.SimpleNamespace(type="npu", index=0)


def on_npu(tensor: Any) -> Any:
    return tensor.as_subclass(OnNpu)


class Device:
    """Remembers what was launched: the destination, the instance and the cores of each cast."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, soc_name: str = "Ascend910B3") -> None:
        needs_twin()
        _define()
        _launched.clear()
        self.launched = _launched
        found = Npu(run_mode=RunMode.NPU, reason="tested", device_count=1, soc_name=soc_name)
        monkeypatch.setattr(npu, "find", lambda: found)
        monkeypatch.setattr(npu, "load", lambda: None)
        monkeypatch.setattr(npu, "launch_from_host", _launch_from_host)


_launched: list[tuple[Any, int, int]] = []


def _launch_from_host(x: Any, *arguments: Any) -> Any:
    return npu.launch(on_npu(x), *arguments).as_subclass(torch.Tensor)


@functools.cache
def _define() -> Any:
    """The op as the library for the NPU defines it, on the memory of this machine."""
    source = (SOURCES / "cast_op.cpp").read_text(encoding="utf-8")
    ((arguments, returns),) = re.findall(r'm\.def\(\s*"(launch\(.*\))"\s*"( -> Tensor)"\);', source)
    library = torch.library.Library("pypto_cast", "FRAGMENT")
    library.define(arguments + returns)
    library.impl("launch", _launch, "CPU")
    return library


def _launch(
    x: Any, dtype: Any, shape: Sequence[int], instance: int, tiling: Sequence[int], cores: int
) -> Any:
    _launched.append((dtype, instance, cores))
    data = CastTilingData.from_buffer_copy(np.array(tiling, np.uint32))
    source = x.contiguous()
    result = torch.empty(shape, dtype=dtype)
    run = Launch(
        instance=instance,
        tiling=ctypes.pointer(data),
        x=source.data_ptr(),
        x_bytes=source.nbytes,
        y=result.data_ptr(),
        y_bytes=result.nbytes,
        blocks=cores,
    )
    twin._run(run, range(cores))
    return result
