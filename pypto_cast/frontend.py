"""Upstream's `pypto.frontend`: the same jit under its older name.

A module of its own because Python imports it by that name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pypto_cast.kernel.jit import Kernel, jit
from pypto_cast.tensors.symbolic import Symbol
from pypto_cast.upstream.import_alias import module_getattr

__all__ = ["Kernel", "dynamic", "function", "jit"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def function(function: _Function) -> _Function:
    """Mark a function that kernels call; upstream inlines it, here it is called."""
    return function


def dynamic(name: str) -> Symbol:
    """A dynamic dimension for annotations; wherever it occurs in a kernel it has one length."""
    return Symbol(name)


if not TYPE_CHECKING:
    __path__, __getattr__ = module_getattr(__name__)
