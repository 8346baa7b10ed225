"""A call of a kernel that executes a schedule in place of the kernel's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ascend_kernels.npu import RunMode
from pypto_cast.kernel.kernel_source import Signature, written_parameters
from pypto_cast.options.context import Options, current
from pypto_cast.recording.recording import Recording
from simulator.arithmetic import Enclosure

if TYPE_CHECKING:
    from ascend_kernels.schedule.schedule import Schedule

_NOT_FOLLOWED: Final[Mapping[str, Callable[[Options], bool]]] = {
    "inf_nan_mode=False": lambda given: not given.inf_nan_mode,
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
        ValueError: names the option.
    """
    asked = f"{signature.kernel}({', '.join(signature.tensors)})"
    for option, holds in _NOT_FOLLOWED.items():
        if holds(current()):
            raise ValueError(f"{asked}: a schedule does not follow {option}; leave one of them out")


def execute(
    schedule: Schedule, signature: Signature, running: Recording, others: Mapping[str, Any]
) -> None:
    """Execute a schedule over the parameters of a kernel that runs, and write its outputs.

    Raises:
        ValueError: arrays that the schedule does not take, an array that is given twice, or an
            argument, other than a tensor, that is not its default: no schedule tells for which it
            was compiled.
        SimulatorFault, NotExecutedError: see `Schedule.run`; no output is written.
    """
    kernel = signature.kernel
    for name, value in others.items():
        default = signature.others[name].default
        if value is not default and value != default:
            raise ValueError(
                f"{kernel}: the schedule does not say for which {name} it was compiled; give the "
                f"default, or call Schedule.run"
            )
    buffers = [running.held(each.name) for each in schedule.parameters]
    if shared := next((each for each in buffers if len(each.names) > 1), None):
        raise ValueError(
            f"{kernel}: {' and '.join(shared.names)} are one array; a schedule takes copies"
        )
    arrays = []
    for buffer in buffers:
        assert buffer.home is not None
        native = buffer.home.dtype.newbyteorder("=")
        arrays.append(np.array(buffer.home, native, order="C"))
    schedule.run(*arrays, copy_completion=current().copy_completion)
    for parameter, buffer, array in zip(schedule.parameters, buffers, arrays, strict=True):
        if parameter.is_written:
            buffer.write(Enclosure(values=array), (0,) * array.ndim, array.shape, ())
