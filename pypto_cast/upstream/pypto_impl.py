"""Upstream's `pypto.pypto_impl`, its C++ module: the enumerations and scalars that kernels use."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pypto_cast.dtypes.data_types import CastMode as CastMode
from pypto_cast.dtypes.data_types import ConvReLuType as ConvReLuType
from pypto_cast.dtypes.data_types import DataType as DataType
from pypto_cast.dtypes.data_types import LogBaseType as LogBaseType
from pypto_cast.dtypes.data_types import OpType as OpType
from pypto_cast.dtypes.data_types import OutType as OutType
from pypto_cast.dtypes.data_types import PrecisionType as PrecisionType
from pypto_cast.dtypes.data_types import ReLuType as ReLuType
from pypto_cast.dtypes.data_types import SaturationMode as SaturationMode
from pypto_cast.dtypes.data_types import TileOpFormat as TileOpFormat
from pypto_cast.dtypes.data_types import check_dtype
from pypto_cast.error import ExternalError as ExternalError
from pypto_cast.options.global_settings import set_rooted
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
        OverflowError: an int beyond 64-bit floats, for a float dtype.
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
            try:
                self._value = float(data)
            except OverflowError:
                raise OverflowError(
                    f"an Element of {dtype} holds no number of that length"
                ) from None

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


@dataclasses.dataclass(frozen=True, slots=True)
class _Extents:
    """The tile of a convolution in one memory, an int each."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            extent = getattr(self, field.name)
            if isinstance(extent, bool) or not isinstance(extent, int):
                raise TypeError(f"{field.name} must be an int, not {extent!r}")

    @property
    def extents(self) -> tuple[int, ...]:
        """All of them, in order."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.extents)})"


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class TileL1Info(_Extents):
    """The tile of a convolution in L1."""

    tileHin: int = 0
    tileHout: int = 0
    tileWin: int = 0
    tileWout: int = 0
    tileCinFmap: int = 0
    tileCinWeight: int = 0
    tileN: int = 0
    tileBatch: int = 0


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class TileL0Info(_Extents):
    """The tile of a convolution in L0."""

    tileH: int = 0
    tileW: int = 0
    tileK: int = 0
    tileN: int = 0


def SetGlobalConfig(settings: Mapping[str, Any]) -> None:
    """Upstream's way to set the options that `reset_options` leaves; see `set_global_config`.

    Raises:
        KeyError, TypeError, ValueError: an unknown name, or a value that upstream does not take.
    """
    set_rooted(settings)


def Reset() -> None:
    """Drop the graphs of upstream's compiler; here none is kept from one kernel to the next."""


if not TYPE_CHECKING:
    __path__, __getattr__ = module_getattr(__name__)
