"""Upstream's `pypto.operation`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pypto_cast.upstream.absent import names_of

_Function = TypeVar("_Function", bound=Callable[..., Any])


def op_wrapper(function: _Function) -> _Function:
    """Mark a function that calls upstream's C++ operations; tensors here need no unwrapping."""
    return function


if not TYPE_CHECKING:
    __path__, __getattr__ = names_of(__name__)
