"""Upstream's `pypto.pypto_impl`, its C++ module: the enumerations and scalars that kernels use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pypto_cast.dtypes.data_types import CastMode as CastMode
from pypto_cast.dtypes.data_types import DataType as DataType
from pypto_cast.dtypes.data_types import OpType as OpType
from pypto_cast.dtypes.data_types import OutType as OutType
from pypto_cast.dtypes.data_types import PrecisionType as PrecisionType
from pypto_cast.dtypes.data_types import ReLuType as ReLuType
from pypto_cast.dtypes.data_types import SaturationMode as SaturationMode
from pypto_cast.dtypes.data_types import TileOpFormat as TileOpFormat
from pypto_cast.dtypes.data_types import check_dtype
from pypto_cast.tensors.symbolic import SymbolicScalar as SymbolicScalar
from pypto_cast.tensors.undecided import KernelNumber, UndecidedScalar
from pypto_cast.upstream.import_alias import module_getattr
from simulator.numbers.formats import IntFormat


class Element:
    """A number with a dtype.

    Args:
        dtype: a number of a float dtype is held as a Python float (64 bits), of an integer dtype as
            an int, its fraction dropped.
        data: an int or a float; a bool counts as an int.

    Raises:
        TypeError: another kind of data, or no dtype.
        ValueError: infinity or NaN for an integer dtype.
    """

    __slots__ = ("_dtype", "_value")

    def __init__(self, dtype: DataType, data: float) -> None:
        if not isinstance(data, int | float | KernelNumber):
            raise TypeError(f"an Element holds an int or a float, not {data!r}")
        self._dtype = check_dtype(dtype)
        if isinstance(data, UndecidedScalar):
            self._value: Any = data
        elif isinstance(dtype.format, IntFormat):
            try:
                self._value = int(data)
            except (ValueError, OverflowError) as error:
                raise ValueError(f"an Element of {dtype} cannot hold {data!r}") from error
        else:
            self._value = float(data)

    @property
    def dtype(self) -> DataType:
        """The dtype."""
        return self._dtype

    @property
    def value(self) -> Any:
        """The number: an int for an integer dtype, else a float; one of a kernel that is not
        decided as it is."""
        return self._value

    def base(self) -> Element:
        """The element as upstream's operations hold it, here itself."""
        return self

    def __repr__(self) -> str:
        return f"Element({self._dtype}, {self._value!r})"


if not TYPE_CHECKING:
    __path__, __getattr__ = module_getattr(__name__)
