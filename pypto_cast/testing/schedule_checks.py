"""Executing a schedule under the machine's guards, and comparing it with the tensor level."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.schedule.parts import Parameter
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.scheduled import doubts_told, has_parameters_of
from pypto_cast.options.context import options
from pypto_cast.options.releases import RELEASES, ReleaseName
from pypto_cast.recording.buffers import slices
from pypto_cast.testing.possible import assert_possible
from simulator.machine.memory import SimulatorFault
from simulator.numbers.formats import FP32, FloatFormat

Array = npt.NDArray[Any]
SEED: Final = 20
OPEN_EXTENT: Final = 100
"""The length of dimensions that are known only when the kernel runs, in synthetic data."""
MOST_SYNTHETIC_ELEMS: Final = 1 << 26
"""Of one parameter; drawing more takes gigabytes."""


class ScheduleError(AssertionError):
    """A schedule that the hardware does not permit, or that computes something else."""


def synthetic_arrays(
    schedule: Schedule, kernel: Kernel | None = None, seed: int = SEED
) -> list[Array]:
    """Data for each parameter of a kernel, or of a schedule: normal floats and small integers.

    Numbers that loops, conditions and offsets go by are 1.

    Raises:
        ValueError: a parameter with more than `MOST_SYNTHETIC_ELEMS` elements.
    """
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    annotations = {} if kernel is None else kernel.signature.tensors
    for parameter in _parameters(schedule, kernel):
        asked: Sequence[object] = parameter.shape
        if parameter.name in annotations and len(annotations[parameter.name].shape) == len(asked):
            asked = annotations[parameter.name].shape
        shape = [each if isinstance(each, int) else OPEN_EXTENT for each in asked]
        if math.prod(shape) > MOST_SYNTHETIC_ELEMS:
            raise ValueError(
                f"{parameter.name} has the shape {shape}: too large to draw; give data"
            )
        values = rng.standard_normal(shape) * 2
        if parameter.name in schedule.numbers_read:
            values = np.ones(shape)
        elif not isinstance(parameter.format, FloatFormat):
            values = np.abs(values)
        found.append(values.astype(parameter.format.dtype))
    return found


def _parameters(schedule: Schedule, kernel: Kernel | None) -> Sequence[Parameter]:
    """Those of a schedule, and between them those of its kernel on which no result depends."""
    if kernel is None:
        return schedule.parameters
    known = {each.name: each for each in schedule.parameters}
    return [
        known.get(name)
        or Parameter(
            name=name,
            format=(each.dtype.format if each.dtype else None) or FP32,
            shape=tuple(x if isinstance(x, int) else str(x) for x in each.shape) or ("open",),
            is_read=False,
            is_written=False,
        )
        for name, each in kernel.signature.tensors.items()
    ]


def unknown_lines(
    schedule: Schedule,
    kernel: Kernel,
    arrays: Sequence[Array] | None = None,
    numbers: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Lines of a kernel's source that a schedule has no operation of, as "softmax.py:12".

    There are some where the file was changed after it was compiled, or the dump is of other paths
    or loops than this call takes; also where the compiler made copies alone of a line, as of a
    `concat`, or merged it with an equal one. Files are compared by their names, without folders.

    Args:
        schedule: as `pypto.read_schedule` returns it.
        kernel: the kernel that it is of; it runs once at the schedule's release.
        arrays: one for each parameter of the kernel; not modified. Synthetic data if there are
            none.
        numbers: those for parameters that are no tensors, by name.

    Raises:
        ValueError: as `assert_schedule_ok`.
    """
    given = synthetic_arrays(schedule, kernel) if arrays is None else arrays
    known = {
        (PurePath(each.file).name, each.line)
        for leaf in schedule.leaves
        for each in leaf.operations
    }
    with _as_compiled(schedule, kernel):
        steps = kernel.program(*(array.copy() for array in given), **(numbers or {})).steps
    lines = dict.fromkeys((PurePath(each.file).name, each.line) for each in steps)
    return tuple(f"{name}:{line}" for name, line in lines if (name, line) not in known)


def assert_schedule_ok(
    schedule: Schedule,
    kernel: Kernel | None = None,
    arrays: Sequence[Array] | None = None,
    numbers: Mapping[str, Any] | None = None,
) -> None:
    """Fail unless a schedule runs under every guard and gives results that the kernel may give.

    Every tile operation of every task is executed. With a kernel no element of an output may be
    written more often than there; without one an output that is written has to be written whole.

    Args:
        schedule: as `pypto.read_schedule` returns it.
        kernel: the kernel that it is of; its results are taken at the schedule's release, and
            without one only the guards judge.
        arrays: one for each parameter of the kernel, or of the schedule without one; not modified.
            Synthetic data if there are none.
        numbers: those for parameters of the kernel that are no tensors, by name.

    Raises:
        ScheduleError: an AssertionError; what, where, which operation and source line.
        ImpossibleError: an AssertionError; an element that the tensor level cannot give.
        NotExecutedError: a ValueError; leaves that cannot be executed, after all others were.
        ValueError: arrays that the parameters do not take, or a kernel with other parameters.

    Warns:
        EventReuseWarning: a flag that may be set again before the wait for its last set is over;
            under `options(strict=True)` a ScheduleError.
    """
    __tracebackhide__ = True  # pytest shows the line of the test instead
    with doubts_told() as doubt:
        check(schedule, kernel, arrays, numbers, doubt=doubt)


def check(
    schedule: Schedule,
    kernel: Kernel | None,
    arrays: Sequence[Array] | None,
    numbers: Mapping[str, Any] | None,
    *,
    doubt: Callable[[str], object] | None,
) -> None:
    """Check a schedule as `assert_schedule_ok` does.

    Args:
        schedule, kernel, arrays, numbers: see `assert_schedule_ok`.
        doubt: takes the text of each doubt; None: a doubt is an error.

    Raises:
        ScheduleError, ImpossibleError, NotExecutedError, ValueError: see `assert_schedule_ok`.
    """
    __tracebackhide__ = True
    if kernel is not None:
        _check_kernel(schedule, kernel)
    given = synthetic_arrays(schedule, kernel) if arrays is None else arrays
    parameters = _parameters(schedule, kernel)
    if len(given) != len(parameters):
        names = ", ".join(each.name for each in parameters)
        raise ValueError(
            f"{schedule.kernel} takes {len(parameters)} arrays ({names}), not {len(given)}"
        )
    executed = [
        array.copy()
        for parameter, array in zip(parameters, given, strict=True)
        if parameter in schedule.parameters
    ]
    shapes = {each.name: array.shape for each, array in zip(parameters, given, strict=True)}

    @functools.cache
    def bounds() -> Certainty:
        assert kernel is not None
        with _as_compiled(schedule, kernel):
            return kernel.certainty(*(array.copy() for array in given), **(numbers or {}))

    def allowed(name: str) -> Array:
        return _times_written(bounds(), name, shapes[name])

    expected = None if kernel is None else lambda name: allowed(name) > 0
    try:
        counts = schedule.times_written(*executed, doubt=doubt, expected=expected)
    except SimulatorFault as fault:
        raise ScheduleError(f"{schedule.kernel}: {fault}") from None
    if kernel is None:
        return
    outputs = {output.name for output in bounds().outputs}
    for name in sorted(outputs | counts.keys()):
        never = np.zeros(shapes[name], np.int64)
        _check_writes(schedule.kernel, name, counts.get(name, never), allowed(name))
    written = {
        parameter.name: array
        for parameter, array in zip(schedule.parameters, executed, strict=True)
        if parameter.is_written and parameter.name in outputs
    }
    assert_possible(written, bounds())


def _times_written(bounds: Certainty, name: str, shape: tuple[int, ...]) -> Array:
    """The number of writes of each element of a parameter at tensor level."""
    found = np.zeros(shape, np.int64)
    for output in bounds.outputs:
        for offset, extent, count in output.writes if output.name == name else ():
            found[slices(offset, extent)] += count
    return found


def _check_writes(kernel: str, output: str, counts: Array, allowed: Array) -> None:
    """Refuse elements that are written more often than at tensor level; earlier writes may go."""
    often = np.argwhere((counts > allowed) | ((counts == 0) & (allowed > 0)))
    if len(often):
        first = tuple(often[0].tolist())
        raise ScheduleError(
            f"{kernel}: {len(often)} elements of {output} are not written as often as at "
            f"tensor level, the first at {list(first)}: {counts[first]} times, not {allowed[first]}"
        )


def _check_kernel(schedule: Schedule, kernel: Kernel) -> ReleaseName:
    """Return the release of a schedule, or refuse one that is unknown, or of other parameters."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"a kernel is a function under pypto.frontend.jit, not {kernel!r}")
    release = next((name for name in RELEASES if name == schedule.release), None)
    if release is None:
        raise ValueError(
            f"{schedule.kernel} is of release {schedule.release}; known are {', '.join(RELEASES)}"
        )
    names = ", ".join(each.name for each in schedule.parameters)
    taken = ", ".join(kernel.signature.tensors)
    if not has_parameters_of(schedule, kernel.signature):
        raise ValueError(
            f"{kernel.signature.kernel} takes {taken}; the schedule of {schedule.kernel}, {names}"
        )
    return release


@contextlib.contextmanager
def _as_compiled(schedule: Schedule, kernel: Kernel) -> Iterator[None]:
    """Run a kernel as the compiler of a schedule took it."""
    release = _check_kernel(schedule, kernel)
    with options(release=release, satmode="upstream"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
