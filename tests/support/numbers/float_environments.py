"""Floating-point environments that another library may leave a thread in."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

# fenv.h's numbers of the directions.
_DIRECTIONS = {
    "x86_64": {"upward": 0x800, "downward": 0x400, "toward zero": 0xC00},
    "aarch64": {"upward": 0x400000, "downward": 0x800000, "toward zero": 0xC00000},
    "arm64": {"upward": 0x400000, "downward": 0x800000, "toward zero": 0xC00000},
}
FLUSHING = "flushing"
ENVIRONMENTS = ("upward", "downward", "toward zero", FLUSHING)


@contextmanager
def foreign(environment: str) -> Iterator[None]:
    """This thread in one of `ENVIRONMENTS`; fails if what runs inside leaves another one behind."""
    enter, probe, leave = _flushing() if environment == FLUSHING else _rounding(environment)
    enter()
    try:
        entered = probe()
        yield
        left = probe()
    finally:
        leave()
    assert left == entered, "the environment of the caller was changed"


_Switch = tuple[Callable[[], object], Callable[[], object], Callable[[], object]]


def _rounding(direction: str) -> _Switch:
    numbers = _DIRECTIONS.get(platform.machine())
    name = ctypes.util.find_library("m")
    if numbers is None or name is None:
        pytest.skip(f"how to set a rounding direction on {platform.machine()} is not known here")
    library = ctypes.CDLL(name)
    return (
        lambda: library.fesetround(numbers[direction]),
        library.fegetround,
        lambda: library.fesetround(0),
    )


def _flushing() -> _Switch:
    torch = pytest.importorskip("torch", reason="torch is not installed; it sets the flush mode")
    least_normal = sys.float_info.min
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormal numbers")
    torch.set_flush_denormal(False)
    return (
        lambda: torch.set_flush_denormal(True),
        lambda: least_normal / 2 == 0,
        lambda: torch.set_flush_denormal(False),
    )
