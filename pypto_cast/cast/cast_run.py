"""One cast with everything that can be told about it: plan, result, report."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from pypto_cast.cast.api import cast, cast_planned
from pypto_cast.cast.cast_plan import CastPlan, is_unchanged, known_formats, plan_cast
from pypto_cast.cast.cast_report import CastReport, report
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.tensors.tensor import Tensor
from tiling.plan import TileShapeWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRun:
    """A cast that has been carried out.

    Attributes:
        result: the tensor that `cast` gave.
        plan: None if the input came back as it was, having the dtype already.
        report: what happened to the numbers.
    """

    result: Tensor
    plan: CastPlan | None
    report: CastReport


def run(source: Tensor, dst: DataType, mode: CastMode, satmode: SaturationMode) -> CastRun:
    """Cast a tensor with values, and report on it. Raises and warns what `cast` does."""
    if is_unchanged(source.dtype, dst, mode):
        return _reported(source, cast(source, dst, mode, satmode), None)
    return run_planned(source, plan_cast(tuple(source.shape), source.dtype, dst, mode, satmode))


def run_planned(source: Tensor, plan: CastPlan) -> CastRun:
    """The same, as it was decided before."""
    return _reported(source, cast_planned(source, plan), plan)


def _reported(source: Tensor, result: Tensor, plan: CastPlan | None) -> CastRun:
    formats = known_formats(source.dtype, result.dtype)
    told = report(source.numpy(), result.numpy(), *formats, name=source.name)
    return CastRun(result=result, plan=plan, report=told)


@contextlib.contextmanager
def without_advice() -> Iterator[None]:
    """Leave the advice to set a tile shape in a kernel to kernels; the report has its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no tile shape is set", TileShapeWarning)
        yield
