"""Executing a schedule under the machine's guards, and comparing it with the tensor level."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.kernel.jit import Kernel
from pypto_cast.options.context import options
from pypto_cast.options.releases import RELEASES
from pypto_cast.testing.possible import assert_possible
from simulator.machine.memory import SimulatorFault
from simulator.numbers.formats import FloatFormat

Array = npt.NDArray[Any]
SEED: Final = 20
OPEN_EXTENT: Final = 100
"""The length of dimensions that are known only when the kernel runs, in synthetic data."""


class ScheduleError(AssertionError):
    """A schedule that the hardware does not permit, or that computes something else."""


def synthetic_arrays(schedule: Schedule, kernel: Kernel | None = None) -> list[Array]:
    """Data for each parameter of a schedule: normal floats, small integers, the same every time.

    Numbers that loops, conditions and offsets go by are 1.
    """
    rng = np.random.default_rng(SEED)
    found: list[Array] = []
    annotations = {} if kernel is None else kernel.signature.tensors
    for parameter in schedule.parameters:
        asked: Sequence[object] = parameter.shape
        if parameter.name in annotations and len(annotations[parameter.name].shape) == len(asked):
            asked = annotations[parameter.name].shape
        shape = [each if isinstance(each, int) else OPEN_EXTENT for each in asked]
        values = rng.standard_normal(shape)
        if parameter.name in schedule.numbers_read:
            values = np.ones(shape)
        elif not isinstance(parameter.format, FloatFormat):
            values = np.abs(values) * 3
        found.append(values.astype(parameter.format.dtype))
    return found


def assert_schedule_ok(
    schedule: Schedule, kernel: Kernel | None = None, arrays: Sequence[Array] | None = None
) -> None:
    """Fail unless a schedule runs under every guard and gives results that the kernel may give.

    Every tile operation of every task is executed; each element of an output is written once.

    Args:
        schedule: as `pypto.read_schedule` returns it.
        kernel: the kernel that it is of; its results are taken at the schedule's release, and
            without one only the guards judge.
        arrays: one for each parameter; not modified. Synthetic data if there are none.

    Raises:
        ScheduleError: an AssertionError; what, where, which operation and source line.
        ImpossibleError: an AssertionError; an element that the tensor level cannot give.
        NotExecutedError: a ValueError; leaves that cannot be executed, after all others were.
        ValueError: arrays that the parameters do not take.
    """
    __tracebackhide__ = True  # pytest shows the line of the test instead
    given = synthetic_arrays(schedule, kernel) if arrays is None else arrays
    executed = [array.copy() for array in given]
    try:
        counts = schedule.times_written(*executed)
    except SimulatorFault as fault:
        raise ScheduleError(f"{schedule.kernel}: {fault}") from None
    for name, count in counts.items():
        often = np.argwhere(count > 1)
        if len(often):
            raise ScheduleError(
                f"{schedule.kernel}: {len(often)} elements of {name} are written more than once, "
                f"the first at {often[0].tolist()}"
            )
    if kernel is None:
        return
    release = next((name for name in RELEASES if name == schedule.release), None)
    if release is None:
        raise ValueError(
            f"{schedule.kernel} is of release {schedule.release}; known are {', '.join(RELEASES)}"
        )
    with options(release=release, satmode="upstream"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        bounds = kernel.certainty(*(array.copy() for array in given))
    written = {
        parameter.name: array
        for parameter, array in zip(schedule.parameters, executed, strict=True)
        if parameter.is_written
    }
    assert_possible(written, bounds)
