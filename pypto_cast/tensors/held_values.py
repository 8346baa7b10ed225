"""A tensor's values in the protocols by which libraries of arrays take each other's."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.report.text_format import extra_hint
from pypto_cast.tensors.torch_bridge import tensor_over
from simulator.numbers import float_environment

_SHOWN_VALUES: Final = 6


@float_environment.quiet()
def shown(values: npt.NDArray[Any]) -> str:
    """The first values, as a list."""
    first = ", ".join(str(value) for value in values.flat[:_SHOWN_VALUES])
    return f"[{first}{', ...' if values.size > _SHOWN_VALUES else ''}]"


class HeldValues:
    """`numpy.asarray(x)`, DLPack and what else reads values through `numpy()`."""

    __slots__ = ()

    @property
    @abstractmethod
    def dtype(self) -> DataType:
        """Element type."""

    @abstractmethod
    def numpy(self) -> npt.NDArray[Any]:
        """The values, without a copy."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.numpy()
        if dtype is not None and np.dtype(dtype) != values.dtype:
            if copy is False:
                raise ValueError(f"no view of {self.dtype} as {np.dtype(dtype)} without a copy")
            return values.astype(dtype)
        return values.copy() if copy else values

    def __dlpack__(self, **arguments: Any) -> Any:
        """Export through DLPack, BF16 by torch.

        Raises:
            BufferError: DLPack has no such dtype (4-bit types), or BF16 and torch is not installed,
                or it is read-only and the taker does not know such memory.
        """
        values = self.numpy()
        if self.dtype is DataType.DT_BF16 and values.flags.writeable:
            try:
                return tensor_over(values, self.dtype).__dlpack__(**arguments)
            except ImportError:
                raise BufferError(f"BF16 goes through torch: {extra_hint('torch')}") from None
        return values.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self.numpy().__dlpack_device__()
        return int(kind), int(index)
