"""Upstream's `pypto.experimental`."""

from typing import TYPE_CHECKING

from pypto_cast.operations.cube import transposed_batchmatmul
from pypto_cast.operations.indexed.gathering import gather_in_l1, gather_in_ub
from pypto_cast.upstream.absent import names_of
from pypto_cast.upstream.setters import get_operation_options, set_operation_options

__all__ = [
    "gather_in_l1",
    "gather_in_ub",
    "get_operation_options",
    "set_operation_options",
    "transposed_batchmatmul",
]

if not TYPE_CHECKING:
    __path__, __getattr__ = names_of(__name__)
