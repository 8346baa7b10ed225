"""torch.ops.pypto_cast.cast: `cast` of torch tensors, as an op that torch.compile can take.

    import pypto_cast.torch_op                     # registers the op; needs the extra `torch`
    y = torch.ops.pypto_cast.cast(
        x, int(pypto.DT_FP16), int(pypto.CAST_RINT), int(pypto.SaturationMode.ON), [64, 128]
    )

    y = pypto_cast.torch_op.cast_torch(x, pypto.DT_FP16, pypto.CAST_RINT, tile_shape=[64, 128])

The op takes numbers, those of pypto's enums, and no names such as "DT_FP16"; `cast_torch` is the
same with the enums themselves. The tile shape is in elements. The options of the context that calls
the op hold, except the tile shape. On CPU tensors the op is `pypto_cast.cast`; nothing is copied on
the way in, bfloat16 and strided tensors neither. On NPU tensors the cast is planned for the chip of
the device and launched by the library that `python -m ascend_kernels.build` makes; an empty tile
shape is refused where the CPU chooses one, and so is `options(inf_nan_mode=False)`.
The op has no gradient: rounding is not differentiable.
"""

from __future__ import annotations

import enum
import functools
import importlib
import importlib.util
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from ascend_kernels import npu
from pypto_cast.cast.api import cast
from pypto_cast.cast.cast_plan import device_chip, plan_cast
from pypto_cast.dtypes.data_types import (
    CastMode,
    DataType,
    SaturationMode,
    check_choice,
    check_dtype,
)
from pypto_cast.options.context import options
from pypto_cast.tensors.tensor import DYNAMIC, Tensor
from pypto_cast.tensors.torch_bridge import array_over, data_type_of, tensor_over, torch_dtype_of
from tiling.plan import check_tile_shape

NAME: Final = "pypto_cast::cast"
_Enum = TypeVar("_Enum", bound=enum.Enum)
SCHEMA: Final = "(Tensor x, int dtype, int mode, int satmode, int[] tile_shape) -> Tensor"


@functools.cache
def register() -> Any:
    """Register the op with torch; importing this module has done so where torch is installed.

    Returns:
        The op, `torch.ops.pypto_cast.cast`.

    Raises:
        ImportError: torch is not installed.
    """
    torch = _torch()
    op = torch.library.custom_op(NAME, _cast, mutates_args=(), schema=SCHEMA)
    op.register_fake(_cast_fake)
    op.register_autograd(_no_gradient)
    return torch.ops.pypto_cast.cast


def cast_torch(
    x: Any,
    dtype: DataType,
    mode: CastMode = CastMode.CAST_NONE,
    satmode: SaturationMode = SaturationMode.ON,
    *,
    tile_shape: Sequence[int] = (),
) -> Any:
    """Call the op with pypto's enums.

    Args:
        x: a torch tensor of 1 to 4 dimensions, on cpu or npu; not modified.
        dtype: destination, as for `pypto_cast.cast`, one that torch has a dtype for.
        mode: the round mode, as there.
        satmode: saturation, as there.
        tile_shape: elements of a tile along each axis; if empty, the planner chooses on the CPU.

    Returns:
        A new contiguous torch tensor of the same shape.

    Raises:
        TypeError: an argument of the wrong type, or a dtype that torch or pypto does not have.
        UnsupportedCastError, TileShapeError, CastModeError, ValueError: as `pypto_cast.cast`.
        ImportError: torch is not installed.
        RuntimeError: `x` is on a device without a kernel, or torch refuses the arguments.
    """
    check_dtype(dtype)
    check_choice("mode", mode, CastMode)
    check_choice("satmode", satmode, SaturationMode)
    op = register() if _OP is None else _OP
    return op(x, dtype.value, mode.value, satmode.value, list(tile_shape))


def _torch() -> Any:
    return importlib.import_module("torch")


def _cast(x: Any, dtype: int, mode: int, satmode: int, tile_shape: Sequence[int]) -> Any:
    """The op on every device: torch has no key for npu before torch_npu is imported."""
    if x.device.type == "npu":
        return _cast_npu(x, dtype, mode, satmode, tile_shape)
    if x.device.type == "cpu":
        return _cast_cpu(x, dtype, mode, satmode, tile_shape)
    raise RuntimeError(
        f"{NAME} runs on tensors on cpu, and on npu once `python -m ascend_kernels.build` has "
        f"made its library and ascend_kernels.npu.load() has loaded it; x is on {x.device}"
    )


def _cast_cpu(x: Any, dtype: int, mode: int, satmode: int, tile_shape: Sequence[int]) -> Any:
    source = _tensor(x)
    result = _as_pypto(source, dtype, mode, satmode, tile_shape)
    if result is source:
        return _copy(x)
    return tensor_over(result.numpy(), result.dtype)


def _cast_npu(x: Any, dtype: int, mode: int, satmode: int, tile_shape: Sequence[int]) -> Any:
    if not tile_shape:
        check_tile_shape((), tuple(x.shape))
    declared = _declared(x)
    with options(chip=device_chip(), vec_tile_shapes=tuple(tile_shape)):
        result = _as_pypto(declared, dtype, mode, satmode, tile_shape)
        if result is declared:
            return _copy(x)
        modes = CastMode(mode), SaturationMode(satmode)
        plan = plan_cast(tuple(x.shape), declared.dtype, result.dtype, *modes)
    return npu.launch(x, torch_dtype_of(result.dtype), plan.program)


def _cast_fake(x: Any, dtype: int, mode: int, satmode: int, tile_shape: Sequence[int]) -> Any:
    """Shape and dtype alone; it refuses as cast does, and never warns."""
    declared = _declared(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = _as_pypto(declared, dtype, mode, satmode, tile_shape)
    return x.new_empty(x.shape, dtype=torch_dtype_of(result.dtype))


def _as_pypto(x: Tensor, dtype: int, mode: int, satmode: int, tile_shape: Sequence[int]) -> Tensor:
    numbers = (
        _member(DataType, dtype, check_dtype),
        _member(CastMode, mode, lambda other: check_choice("mode", other, CastMode)),
        _member(
            SaturationMode, satmode, lambda other: check_choice("satmode", other, SaturationMode)
        ),
    )
    with options(vec_tile_shapes=tuple(tile_shape)):
        return cast(x, *numbers)


def _member(kind: type[_Enum], number: int, refuse: Callable[[object], object]) -> _Enum:
    """The member of an enum with this number; the error is the one that `cast` gives."""
    if number not in {member.value for member in kind}:
        refuse(number)
    return kind(number)


def _copy(x: Any) -> Any:
    """An op may not return its input."""
    return x.clone(memory_format=_torch().contiguous_format)


def _declared(x: Any) -> Tensor:
    """Shape and dtype of a torch tensor; dimensions that are symbols are dynamic."""
    shape = [entry if isinstance(entry, int) else DYNAMIC for entry in x.shape]
    return Tensor(shape, data_type_of(x.dtype))


def _tensor(x: Any) -> Tensor:
    """A torch tensor on the CPU, with its memory shared."""
    dtype = data_type_of(x.dtype)
    if dtype is DataType.DT_DOUBLE:  # holds no data here, and is cast to nothing
        return Tensor(list(x.shape), dtype)
    return Tensor(dtype=dtype, data=array_over(x, "x"))


def _no_gradient(context: Any, gradient: Any) -> Any:
    raise RuntimeError(
        f"{NAME} is not differentiable: rounding has no useful gradient; call it under "
        "torch.no_grad() or on x.detach()"
    )


_OP: Final = register() if importlib.util.find_spec("torch") is not None else None
"""Held because torch.compile traces a global, and no import."""
