"""A call of a kernel that executes a schedule, given or planned, in place of its function."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.npu import RunMode
from pypto_cast.call_sites import silenced, warn_caller
from pypto_cast.dtypes.data_types import dtype_of_numpy
from pypto_cast.kernel.kernel_source import Signature, written_parameters
from pypto_cast.loading import entry
from pypto_cast.options.context import Options, current, options
from pypto_cast.options.releases import RELEASES
from pypto_cast.recording.buffers import slices
from pypto_cast.recording.recording import Recording
from pypto_cast.tensors.arrays import array_of
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure
from simulator.machine.memory import SimulatorFault
from simulator.numbers.formats import Format
from tiling.grid import Shape

if TYPE_CHECKING:
    from ascend_kernels.schedule.schedule import Schedule


TensorForms = Mapping[str, tuple[Format, Shape]]
"""Format and shape of each tensor of a call, by its name."""


class UnplannedKernelWarning(UserWarning):
    """A kernel that runs cast by cast at fidelity "instructions", as no schedule is planned."""


_NOT_FOLLOWED: Final[Mapping[str, Callable[[Options], bool]]] = {
    "inf_nan_mode=False": lambda given: not given.inf_nan_mode,
    "cast_saturation=False": lambda given: not given.cast_saturation,
    "global_saturation=False": lambda given: not given.global_saturation,
    "readings": lambda given: bool(given.readings),
    "auto_cast='every op'": lambda given: given.auto_cast != "as upstream",
    "facts": lambda given: given.facts is not None,
    "RunMode.NPU": lambda given: given.run_mode is RunMode.NPU,
}
"""Options that would change bits, or the place, and that a schedule says nothing of."""


def has_parameters_of(schedule: Schedule, signature: Signature) -> bool:
    """True if a schedule has a kernel's parameters, in order: all that a result depends on.

    Upstream's compiler drops the others, as one that the kernel does not use.
    """
    left = iter(signature.tensors)
    return all(each.name in left for each in schedule.parameters)


def check_schedule(
    schedule: Schedule, signature: Signature, function: Callable[..., None], *, is_nested: bool
) -> None:
    """Refuse a schedule that is of another kernel, and options that it does not follow.

    Args:
        schedule: of the kernel, or of another.
        signature: the kernel's.
        function: the kernel's, of which a schedule has all parameters that it writes.
        is_nested: the kernel is called inside another.

    Raises:
        ValueError: such a schedule or option, or a call inside another kernel.
    """
    kernel, names = signature.kernel, [each.name for each in schedule.parameters]
    asked = f"{kernel}({', '.join(signature.tensors)})"
    if is_nested:
        raise ValueError(
            f"{asked} is called inside another kernel, under options(schedule=...): a schedule is "
            "of the whole of the outermost kernel"
        )
    is_its = schedule.kernel == kernel and has_parameters_of(schedule, signature)
    unused = signature.tensors.keys() - names
    if not is_its or (unused and unused & written_parameters(function)):
        raise ValueError(
            f"{asked} is called, and the schedule is of {schedule.kernel}({', '.join(names)}): "
            f"compile {kernel}, or call it outside options(schedule=...)"
        )
    check_options(signature)


def check_options(signature: Signature) -> None:
    """Refuse options that no schedule of a kernel follows.

    Raises:
        PlanError: names the option.
    """
    asked = f"{signature.kernel}({', '.join(signature.tensors)})"
    for option, holds in _NOT_FOLLOWED.items():
        if holds(current()):
            raise entry("PlanError")(
                f"{asked}: a schedule does not follow {option}; leave one of them out"
            )


def check_shared(schedule: Schedule, running: Recording) -> None:
    """Refuse an array that is given twice, and written.

    Raises:
        PlanError: names its parameters.
    """
    written = {each.name for each in schedule.parameters if each.is_written}
    for buffer in running.buffers:
        if len(buffer.names) > 1 and not written.isdisjoint(buffer.names):
            raise entry("PlanError")(
                f"{schedule.kernel}: {' and '.join(buffer.names)} are one array; a schedule takes "
                "copies"
            )


def check_planned(schedule: Schedule, running: Recording) -> None:
    """Refuse a planned schedule for the arrays of a call.

    Raises:
        PlanError: an array that is given twice and written, or tasks that nothing orders where
            offsets or bounds are these.
    """
    from ascend_kernels.schedule.planner.kernel_plan import check_ordered

    check_shared(schedule, running)
    if schedule.numbers_read:
        arrays = {each.name: _home(running, each.name) for each in schedule.parameters}
        known = {name: arrays[name] for name in schedule.numbers_read}
        extents = {name: array.shape for name, array in arrays.items()}
        check_ordered(schedule, extents, known)


def _home(running: Recording, name: str) -> npt.NDArray[Any]:
    home = running.held(name).home
    assert home is not None
    return home


def execute(
    schedule: Schedule,
    signature: Signature,
    running: Recording,
    others: Mapping[str, Any] = MappingProxyType({}),
    *,
    recorded: Callable[[], Recording],
) -> None:
    """Execute a schedule over the parameters of a kernel that runs, and write its outputs.

    Elements that the kernel does not write keep what they held.

    Args:
        schedule: of the kernel.
        signature: the kernel's.
        running: the run.
        others: arguments that the schedule may not have been made for.
        recorded: gives a recording of the same call, which knows of each element what wrote it,
            and how often.

    Raises:
        ValueError: arrays that the schedule does not take, an array that is given twice and
            written, or an argument, other than a tensor, that is not its default: a dump does not
            tell for which it was compiled.
        SimulatorFault: see `Schedule.run`; or an element that is written more often than by the
            kernel. No output is written.
        NotExecutedError: see `Schedule.run`; no output is written.

    Warns:
        EventReuseWarning: see `Schedule.run`; under `strict` a SimulatorFault.
    """
    kernel = signature.kernel
    for name, value in others.items():
        default = signature.others[name].default
        if value is not default and value != default:
            raise ValueError(
                f"{kernel}: the schedule does not say for which {name} it was compiled; give the "
                f"default, or call Schedule.run"
            )
    check_shared(schedule, running)
    buffers = [running.held(each.name) for each in schedule.parameters]
    homes = [_home(running, each.name) for each in schedule.parameters]
    arrays = [np.array(x, x.dtype.newbyteorder("="), order="C") for x in homes]

    @functools.cache
    def known() -> Recording:
        with as_compiled(schedule, strict=False), silenced():
            return recorded()

    def allowed(name: str) -> npt.NDArray[np.int64]:
        buffer = known().held(name)
        return times_written(buffer.writes, buffer.shape)

    with doubts_told() as doubt:
        counts = schedule.times_written(
            *arrays,
            copy_completion=current().copy_completion,
            doubt=doubt,
            expected=lambda name: allowed(name) > 0,
        )
    for name, found in counts.items():
        if reason := uneven_writes(kernel, name, found, allowed(name)):
            raise SimulatorFault(reason)
    for parameter, buffer, array in zip(schedule.parameters, buffers, arrays, strict=True):
        if parameter.is_written:
            patches = known().held(parameter.name).patches
            buffer.write(Enclosure(values=array), (0,) * array.ndim, array.shape, patches)


def times_written(
    writes: Iterable[tuple[Shape, Shape, int]], shape: Shape
) -> npt.NDArray[np.int64]:
    """The number of writes of each element, by offset, extent and count of each box."""
    found = np.zeros(shape, np.int64)
    for offset, extent, count in writes:
        found[slices(offset, extent)] += count
    return found


def uneven_writes(
    kernel: str, output: str, counts: npt.NDArray[Any], allowed: npt.NDArray[Any]
) -> str:
    """Elements that a schedule writes more often than the tensor level, or not at all; "" without.

    Earlier writes of an element may go.
    """
    is_uneven = (counts > allowed) | ((counts == 0) & (allowed > 0))
    if not is_uneven.any():
        return ""
    often = np.argwhere(is_uneven)
    first = tuple(often[0].tolist())
    return (
        f"{kernel}: {len(often)} elements of {output} are not written as often as at "
        f"tensor level, the first at {list(first)}: {counts[first]} times, not {allowed[first]}"
    )


@contextlib.contextmanager
def as_compiled(schedule: Schedule, **changed: Any) -> Iterator[None]:
    """Run a kernel as the compiler of a schedule took it: its chip, and its release if known."""
    release = next((x for x in RELEASES if x == schedule.release), current().release)
    with (
        options(release=release, chip=schedule.chip, satmode="upstream", **changed),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextlib.contextmanager
def doubts_told() -> Iterator[Callable[[str], object] | None]:
    """Warn the caller of doubts about a schedule, at the end; under `strict` there are none."""
    doubts: list[str] = []
    try:
        yield None if current().strict else doubts.append
    finally:
        for doubt in doubts:
            warn_caller(doubt, entry("EventReuseWarning"))


def formats_and_shapes(
    signature: Signature, arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> TensorForms:
    """Those of the tensors of a call."""
    found: dict[str, tuple[Format, Shape]] = {}
    values, _ = signature.split(arguments, named)
    for name, value in zip(signature.tensors, values, strict=True):
        if isinstance(value, Tensor):
            found[name] = value.dtype.number_format, tuple(map(int, value.shape))
        else:
            array = array_of(value, name)
            found[name] = dtype_of_numpy(array.dtype).number_format, array.shape
    return found
