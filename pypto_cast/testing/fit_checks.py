"""Checking that a kernel, planned as a whole, fits in UB."""

from __future__ import annotations

from typing import Any

from pypto_cast.kernel.fit import FitReport, check_kernel, fit_report
from pypto_cast.kernel.jit import Kernel


class FitError(AssertionError):
    """A kernel that does not fit in UB, or takes more of it than was asked.

    Attributes:
        fit: the report.
    """

    def __init__(self, text: str, fit: FitReport) -> None:
        super().__init__(text)
        self.fit = fit


def assert_fits(
    kernel: Kernel, *arguments: Any, peak_ub_bytes: int | None = None, **named: Any
) -> None:
    """Fail unless a kernel is planned in UB, and in no more of it than is said.

    The failure names the operation and its line, the buffers alive then, the line that owns most of
    them, and tile shapes that fit. Chip and release are those of `pypto.options`.

    Args:
        kernel: of `jit`.
        arguments, named: as `Kernel.schedule` takes them: arrays, or `pypto.tensor(shape, dtype)`.
        peak_ub_bytes: the most that may be allocated, in bytes; None: all of the chip's.

    Raises:
        FitError: an AssertionError; `fit` is the `FitReport`.
        TypeError: no kernel of `jit`, or `peak_ub_bytes` is no int.
        ValueError: `peak_ub_bytes` below 1.
        PlanError: as `Kernel.schedule`, for other reasons than UB.
    """
    __tracebackhide__ = True  # pytest shows the line of the test instead
    check_kernel(kernel)
    if peak_ub_bytes is not None:
        if type(peak_ub_bytes) is not int:
            raise TypeError(f"peak_ub_bytes is a positive int; got {peak_ub_bytes!r}")
        if peak_ub_bytes < 1:
            raise ValueError(f"peak_ub_bytes is a positive int; got {peak_ub_bytes}")
    found = fit_report(kernel, *arguments, **named)
    if found.peak_ub_bytes is None:
        raise FitError(str(found), found)
    if peak_ub_bytes is not None and found.peak_ub_bytes > peak_ub_bytes:
        raise FitError(
            f"{found.kernel}: {found.peak_ub_bytes:,} B of UB as allocated, "
            f"{found.needed_ub_bytes:,} B needed; at most {peak_ub_bytes:,} B are asked for",
            found,
        )
