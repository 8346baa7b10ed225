"""Upstream's `pypto.operation`; a module of its own because Python imports it by that name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pypto_cast.upstream.import_alias import module_getattr

_Function = TypeVar("_Function", bound=Callable[..., Any])


def op_wrapper(function: _Function) -> _Function:
    """Mark a function that calls upstream's C++ operations; tensors here need no unwrapping."""
    return function


if not TYPE_CHECKING:
    __path__, __getattr__ = module_getattr(__name__)
