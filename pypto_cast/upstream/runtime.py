"""Upstream's `pypto.runtime`: functions that drivers call around `pypto.function`.

A module of its own because Python imports it by that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto_cast.kernel.functions import run_function
from pypto_cast.upstream.import_alias import module_getattr

__all__ = ["set_verify_golden_data"]


def _device_init() -> None:
    """Nothing is to be made ready."""


_device_fini = _device_synchronize = _device_init
_device_run_once_data_from_host = run_function


def set_verify_golden_data(
    in_out_tensors: Sequence[object] | None = None, goldens: Sequence[object] | None = None
) -> None:
    """Take the data that upstream's compiler compares its passes with; nothing is compared here.

    Results are compared by `pypto_cast.testing.assert_possible`.

    Raises:
        TypeError: no lists.
    """
    for name, given in (("in_out_tensors", in_out_tensors), ("goldens", goldens)):
        if given is not None and not isinstance(given, list | tuple):
            raise TypeError(f"set_verify_golden_data: {name} must be a list, not {given!r}")


if not TYPE_CHECKING:
    __path__, __getattr__ = module_getattr(__name__)
