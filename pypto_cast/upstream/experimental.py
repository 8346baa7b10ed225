"""Upstream's `pypto.experimental`; a module of its own because Python imports it by that name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pypto_cast.operations import reduction_functions
from pypto_cast.operations.cube import matrix_functions
from pypto_cast.operations.indexed import gathering
from pypto_cast.operations.operation_rows import recorded
from pypto_cast.upstream.import_alias import module_getattr
from pypto_cast.upstream.setters import get_operation_options, set_operation_options

__all__ = [
    "gather_in_l1",
    "gather_in_ub",
    "get_operation_options",
    "online_softmax",
    "online_softmax_update",
    "set_operation_options",
    "transposed_batchmatmul",
]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _named(name: str, operation: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    return recorded(name, operation)


gather_in_l1 = _named("gather_in_l1", gathering.gather_in_l1)
gather_in_ub = _named("gather_in_ub", gathering.gather_in_ub)
online_softmax = _named("online_softmax", reduction_functions.online_softmax)
online_softmax_update = _named("online_softmax_update", reduction_functions.online_softmax_update)
transposed_batchmatmul = _named("transposed_batchmatmul", matrix_functions.transposed_batchmatmul)

if not TYPE_CHECKING:
    __path__, __getattr__ = module_getattr(__name__)
