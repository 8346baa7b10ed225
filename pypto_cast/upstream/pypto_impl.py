"""Upstream's `pypto.pypto_impl`, its C++ module: what kernels take from it."""

from typing import TYPE_CHECKING

from pypto_cast.dtypes.data_types import (
    CastMode,
    DataType,
    OpType,
    OutType,
    PrecisionType,
    ReLuType,
    SaturationMode,
    TileOpFormat,
)
from pypto_cast.tensors.symbolic import SymbolicScalar
from pypto_cast.upstream.absent import names_of
from pypto_cast.upstream.typed_scalar import Element

__all__ = [
    "CastMode",
    "DataType",
    "Element",
    "OpType",
    "OutType",
    "PrecisionType",
    "ReLuType",
    "SaturationMode",
    "SymbolicScalar",
    "TileOpFormat",
]

if not TYPE_CHECKING:
    __path__, __getattr__ = names_of(__name__)
