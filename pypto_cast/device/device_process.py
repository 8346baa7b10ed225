"""A device in a process of its own, which is ended where the device does not answer.

A call into the driver that hangs cannot be interrupted, and after an error of a core its process
can launch nothing more: a new one can. The process says that it is alive at every launch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Final, ParamSpec, TypeVar

from ascend_kernels.build import BuildError
from ascend_kernels.npu import NpuError
from pypto_cast.device.check_run import StepError
from pypto_cast.device.check_steps import CheckPlan, CheckStep
from pypto_cast.device.facts import DeviceDescription, DeviceFact
from pypto_cast.device.on_npu import CheckedDevice
from simulator.numbers import float_environment

TIME_LIMIT: Final = 300.0
"""Seconds between two signs of life."""
OPENING_LIMIT: Final = 3600.0
"""Seconds for opening a device: the libraries for it are built then."""
_P = ParamSpec("_P")
_T = TypeVar("_T")
_UNAVAILABLE: Final = (NpuError, BuildError)
"""Errors of a device that lacks something, and will lack it for the next step too."""


@float_environment.quiet()
def measured_by(device: CheckedDevice, step: CheckStep) -> tuple[DeviceFact, ...]:
    """Measure a step on a device of this process.

    Raises:
        StepError: it could not be measured.
    """
    try:
        return step.run(device)
    except _UNAVAILABLE as error:
        raise StepError(str(error), is_gone=False) from error
    except Exception as error:
        text = str(error) or type(error).__name__
        raise StepError(text, is_gone=isinstance(error, RuntimeError)) from error


class DeviceProcess:
    """A device that is opened in a process of its own.

    Args:
        start: opens the device there; a function of a module.
        plan: of which the steps are.
        time_limit: seconds without a sign of life after which the process is ended.

    Raises:
        NpuError: the device cannot be opened; the text says why.
    """

    def __init__(
        self,
        start: Callable[[], CheckedDevice],
        plan: CheckPlan,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        spawn = multiprocessing.get_context("spawn")  # the driver does not survive a fork
        self._pipe, other = spawn.Pipe()
        self._time_limit = time_limit
        self._process = spawn.Process(target=_serve, args=(other, start, plan), daemon=True)
        self._process.start()
        other.close()
        try:
            self.description: DeviceDescription = self._answer(OPENING_LIMIT)
        except StepError as error:
            self.close()
            raise NpuError(str(error)) from error

    def measure(self, step: CheckStep) -> tuple[DeviceFact, ...]:
        """Measure a step there.

        Raises:
            StepError: it could not be measured, or there was no sign of life for too long.
        """
        with contextlib.suppress(OSError):  # the answer tells of a process that has ended
            self._pipe.send(step.name)
        found: tuple[DeviceFact, ...] = self._answer(self._time_limit)
        return found

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.kill()
        self._process.join()

    def _answer(self, seconds: float) -> Any:
        while True:
            try:
                if not self._pipe.poll(seconds):
                    raise StepError(f"no answer within {seconds:g} s", is_gone=True)
                kind, found = self._pipe.recv()
            except (EOFError, OSError):
                self._process.join()
                code = self._process.exitcode
                raise StepError(
                    f"the process of the device ended with {code}", is_gone=True
                ) from None
            if kind == "error":
                text, is_gone = found
                raise StepError(text, is_gone=is_gone)
            if kind == "found":
                return found


def _serve(pipe: Connection, start: Callable[[], CheckedDevice], plan: CheckPlan) -> None:
    """Open a device, and measure the steps that are named until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever waits for this process ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(BrokenPipeError):  # nobody waits any more
        _answer_all(pipe, start, plan)


def _end_with_parent() -> None:
    """End this process where its parent was killed: a launch that hangs would keep the device."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _answer_all(pipe: Connection, start: Callable[[], CheckedDevice], plan: CheckPlan) -> None:
    try:
        device = start()
    except Exception as error:
        pipe.send(("error", (str(error) or type(error).__name__, False)))
        return
    pipe.send(("found", device.description))
    steps = {step.name: step for step in plan.steps(device.description.chip)}
    living = dataclasses.replace(
        device, cast=_telling(pipe, device.cast), check=_telling(pipe, device.check)
    )
    for name in _received(pipe):
        try:
            pipe.send(("found", measured_by(living, steps[name])))
        except StepError as error:
            pipe.send(("error", (str(error), error.is_gone)))


def _received(pipe: Connection) -> Iterator[str]:
    with contextlib.suppress(EOFError, OSError):
        while True:
            yield pipe.recv()


def _telling(pipe: Connection, launch: Callable[_P, _T]) -> Callable[_P, _T]:
    def told(*arguments: _P.args, **named: _P.kwargs) -> _T:
        pipe.send(("alive", None))
        return launch(*arguments, **named)

    return told
