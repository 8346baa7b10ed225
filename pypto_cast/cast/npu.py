"""Casts on the device, planned for its chip; kernels of RunMode.NPU keep their memory on the host.

Parameters on the device are copied to the host when the kernel starts, and those it wrote are
copied back once all of it succeeded. Never run on a device: tested with stand-ins for torch_npu.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ascend_kernels import npu
from ascend_kernels.program import TileProgram
from pypto_cast.dtypes.data_types import DTYPE_OF, ROW_OF, DataType
from pypto_cast.tensors.torch_bridge import array_over, tensor_over, torch_dtype_of
from simulator.machine.memory import load, packed
from simulator.numbers.convert import codes_of
from simulator.numbers.formats import UINT8, Codes, Format


def run(program: TileProgram, values: npt.NDArray[Any]) -> Codes:
    """Run a cast program on the device.

    Args:
        program: planned for the device's chip.
        values: elements of its source format, of its shape, any strides; not modified.

    Returns:
        Codes of the destination, 1-D in row-major order.

    Raises:
        NpuError: there is no NPU or no library for it.
    """
    src, dst = program.resolution.rule.src, program.resolution.rule.dst
    codes = codes_of(values, src).copy()  # torch takes no read-only array
    if src.bits == 4:
        codes = packed(codes, src).reshape(npu.held_shape(values.shape, src))
    x = tensor_over(codes, _holder(src))
    y = array_over(npu.launch_from_host(x, torch_dtype_of(_holder(dst)), program), "the result")
    return load(np.ascontiguousarray(y).reshape(-1).view(np.uint8), dst)


def _holder(fmt: Format) -> DataType:
    """The dtype of the device's tensor: bytes where torch has none for the format."""
    dtype = DTYPE_OF[fmt]
    return DTYPE_OF[UINT8] if ROW_OF[dtype].torch is None else dtype


class HostCopies:
    """Tensors of the device as tensors on the host; those that share memory there share it here."""

    def __init__(self) -> None:
        self._storages: dict[int, Any] = {}
        self._copies: list[tuple[Any, Any]] = []

    def of(self, value: Any) -> Any:
        """A copy on the host of a tensor on the device; anything else as it is."""
        if getattr(getattr(value, "device", None), "type", None) != "npu":
            return value
        torch = importlib.import_module("torch")
        storage = value.untyped_storage()
        place = storage.data_ptr()
        if place not in self._storages:
            self._storages[place] = torch.UntypedStorage(storage.nbytes()).copy_(storage)
        copy = torch.empty(0, dtype=value.dtype).set_(
            self._storages[place], value.storage_offset(), value.size(), value.stride()
        )
        self._copies.append((copy, value))
        return copy

    def send_back(self, written: Iterable[object]) -> None:
        """Copy the outputs of a kernel to the device, given the copies that it wrote to."""
        changed = {id(copy) for copy in written}
        for copy, value in self._copies:
            if id(copy) in changed:
                value.copy_(copy)
