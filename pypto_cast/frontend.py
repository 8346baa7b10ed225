"""Upstream's `pypto.frontend`: the same jit under its older name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pypto_cast.kernel.jit import Kernel, jit
from pypto_cast.tensors.annotations import NamedDimension

__all__ = ["Kernel", "dynamic", "function", "jit"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def function(function: _Function) -> _Function:
    """Mark a function that kernels call; upstream inlines it, here it is called."""
    return function


def dynamic(name: str) -> NamedDimension:
    """A dynamic dimension for annotations; wherever it occurs in a kernel it has one length."""
    return NamedDimension(name)
