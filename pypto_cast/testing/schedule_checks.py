"""Executing a schedule under the machine's guards, and comparing it with the tensor level."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.schedule.part_types import shown
from ascend_kernels.schedule.parts import Parameter
from ascend_kernels.schedule.schedule import Schedule, check_is_array
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.scheduled import (
    as_compiled,
    doubts_told,
    has_parameters_of,
    times_written,
    uneven_writes,
)
from pypto_cast.options.releases import RELEASES
from pypto_cast.testing.possible import assert_possible
from simulator.machine.memory import SimulatorFault
from simulator.machine.tile_opcodes import FROM_GM, TILE_OPCODES, TO_GM, TileWork
from simulator.numbers.formats import FP32, IntFormat

Array = npt.NDArray[Any]
SEED: Final = 20
OPEN_EXTENT: Final = 100
"""The length of dimensions that are known only when the kernel runs, in synthetic data."""
MOST_SYNTHETIC_ELEMS: Final = 1 << 26
"""Of one parameter; drawing more takes gigabytes."""

_WITH_INDICES: Final = (
    FROM_GM | TO_GM | {*(TileWork.ADD_AT, TileWork.GATHER, TileWork.SCATTER, TileWork.ONE_HOT)}
)


class ScheduleError(AssertionError):
    """A schedule that the hardware does not permit, or that computes something else."""


def synthetic_arrays(
    schedule: Schedule, kernel: Kernel | None = None, seed: int = SEED
) -> list[Array]:
    """Data for each parameter of a kernel, or of a schedule: normal floats, integers of all sizes.

    Half of the integers are small, of both signs, the others drawn from the whole range, its ends
    among them. Where an opcode reads elements by indices all are small and not negative. Numbers
    that loops, conditions and offsets go by are 1.

    Raises:
        ValueError: a parameter with more than `MOST_SYNTHETIC_ELEMS` elements.
    """
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    has_indices = any(
        row is not None and row.work in _WITH_INDICES
        for leaf in schedule.leaves
        for row in (TILE_OPCODES.get(each.opcode) for each in leaf.operations)
    )
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
        elif isinstance(parameter.format, IntFormat):
            found.append(np.abs(values).astype(parameter.format.dtype))
            if not has_indices:
                _spread(found[-1], rng)
            continue
        found.append(values.astype(parameter.format.dtype))
    return found


def _spread(integers: Array, rng: np.random.Generator) -> None:
    """Exchange small integers for small ones of both signs, and for any of their dtype."""
    if integers.dtype == np.bool_:
        return
    ends = np.iinfo(integers.dtype)
    anywhere = rng.integers(ends.min, ends.max, integers.shape, integers.dtype, endpoint=True)
    small = rng.integers(max(-8, ends.min), 9, integers.shape).astype(integers.dtype)
    integers[...] = np.where(rng.random(integers.shape) < 0.5, small, anywhere)
    flat = integers.reshape(-1)
    flat[: min(2, flat.size)] = (ends.min, ends.max)[: min(2, flat.size)]


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
        kernel: the kernel that it is of; it runs once, on the schedule's chip and at its release.
        arrays: one for each parameter of the kernel; not modified. Synthetic data if there are
            none.
        numbers: those for parameters that are no tensors, by name.

    Raises:
        ValueError: as `assert_schedule_ok`.
    """
    _check_kernel(schedule, kernel)
    given = synthetic_arrays(schedule, kernel) if arrays is None else arrays
    known = {
        (PurePath(each.file).name, each.line)
        for leaf in schedule.leaves
        for each in leaf.operations
    }
    with as_compiled(schedule):
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
        kernel: the kernel that it is of; its results are taken on the schedule's chip and at its
            release, and without one only the guards judge.
        arrays: one for each parameter of the kernel, or of the schedule without one; not modified.
            Synthetic data if there are none.
        numbers: those for parameters of the kernel that are no tensors, by name.

    Raises:
        ScheduleError: an AssertionError; what, where, which operation and source line.
        ImpossibleError: an AssertionError; an element that the tensor level cannot give.
        NotExecutedError: a ValueError; leaves that cannot be executed, after all others were.
        TypeError: a schedule, kernel, list of arrays, array or mapping that is none.
        ValueError: arrays that the parameters do not take, a kernel with other parameters, or
            numbers without a kernel.

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
        ScheduleError, ImpossibleError, NotExecutedError, TypeError, ValueError: see
            `assert_schedule_ok`.
    """
    __tracebackhide__ = True
    if not isinstance(schedule, Schedule):
        raise TypeError(
            f"a schedule is what read_schedule or a kernel's schedule() returns, not {schedule!r}"
        )
    if kernel is not None:
        _check_kernel(schedule, kernel)
    if not isinstance(numbers, Mapping | None):
        raise TypeError(f"numbers is a mapping of names, not {shown(numbers)}")
    if numbers and kernel is None:
        raise ValueError(f"numbers are those of a kernel, and none is given: {', '.join(numbers)}")
    if arrays is not None and (isinstance(arrays, str) or not isinstance(arrays, Sequence)):
        raise TypeError(f"arrays is a list, one for each parameter, not {shown(arrays)}")
    given = synthetic_arrays(schedule, kernel) if arrays is None else arrays
    parameters = _parameters(schedule, kernel)
    if len(given) != len(parameters):
        names = ", ".join(each.name for each in parameters)
        raise ValueError(
            f"{schedule.kernel} takes {len(parameters)} arrays ({names}), not {len(given)}"
        )
    for parameter, array in zip(parameters, given, strict=True):
        check_is_array(array, f"{schedule.kernel}: {parameter.name}")
    executed = [
        array.copy()
        for parameter, array in zip(parameters, given, strict=True)
        if parameter in schedule.parameters
    ]
    shapes = {each.name: array.shape for each, array in zip(parameters, given, strict=True)}

    @functools.cache
    def bounds() -> Certainty:
        assert kernel is not None
        with as_compiled(schedule):
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
        found = counts.get(name, never)
        if reason := uneven_writes(schedule.kernel, name, found, allowed(name)):
            raise ScheduleError(reason)
    written = {
        parameter.name: array
        for parameter, array in zip(schedule.parameters, executed, strict=True)
        if parameter.is_written and parameter.name in outputs
    }
    assert_possible(written, bounds())


def _times_written(bounds: Certainty, name: str, shape: tuple[int, ...]) -> Array:
    """The number of writes of each element of a parameter at tensor level."""
    writes = (output.writes for output in bounds.outputs if output.name == name)
    return times_written(itertools.chain.from_iterable(writes), shape)


def _check_kernel(schedule: Schedule, kernel: Kernel) -> None:
    """Refuse an object that is no kernel, and a schedule of an unknown release or other kernel."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"a kernel is a function under pypto.frontend.jit, not {kernel!r}")
    if schedule.release not in RELEASES:
        raise ValueError(
            f"{schedule.kernel} is of release {schedule.release}; known are {', '.join(RELEASES)}"
        )
    names = ", ".join(each.name for each in schedule.parameters)
    taken = ", ".join(kernel.signature.tensors)
    if not has_parameters_of(schedule, kernel.signature):
        raise ValueError(
            f"{kernel.signature.kernel} takes {taken}; the schedule of {schedule.kernel}, {names}"
        )
