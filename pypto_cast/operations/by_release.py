"""Facts of operations by the release that is followed, noted where another release differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.options import context as options
from pypto_cast.options.releases import RELEASES, Release
from pypto_cast.recording import recording
from simulator.numbers.formats import FP32, Format

_Fact = TypeVar("_Fact")


def of_release(name: str, dtype: DataType, fact: Callable[[Release], _Fact]) -> _Fact:
    """A fact of the release of this context.

    Where it is another in another release, the operation is one whose results may be others there:
    a running kernel keeps it.

    Args:
        name: of the operation.
        dtype: of its operands.
        fact: what a release says.
    """
    followed = options.current().followed_release
    found = fact(followed)
    for other in RELEASES.values():
        if other is not followed and fact(other) != found:
            recording.note_release_dependence(name, dtype)
            break
    return found


def is_widened(name: str, dtype: DataType) -> bool:
    """Tells whether AutoCast runs an operation on a dtype in FP32; the newest lists where it rounds
    after every operation.
    """
    if options.current().auto_cast != "as upstream":
        return dtype in RELEASES["head"].run_in_fp32.get(name, ())
    return of_release(name, dtype, lambda release: dtype in release.run_in_fp32.get(name, ()))


def runs_in(name: str, dtype: DataType) -> Format:
    """The format of the instruction for operands of a dtype."""
    assert dtype.format is not None
    return FP32 if is_widened(name, dtype) else dtype.format


def is_cast_inside(name: str, dtype: DataType) -> bool:
    """Tells whether an operation itself casts a dtype to FP32 that it could take as it is."""
    return of_release(name, dtype, lambda release: dtype in release.cast_to_fp32.get(name, ()))
