"""Calls of operations by their names: errors name them, and a running kernel records them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pypto_cast.call_sites import caller
from pypto_cast.error import name_operation
from pypto_cast.recording import tally
from pypto_cast.recording.recording import Recording, current, record_steering, replayable_operation
from pypto_cast.recording.steps import INTERCEPTOR, OperationStep, form_text, intercepted

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def recorded(name: str, operation: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """An operation that is recorded, before the casts inside it, when it is called and succeeds.

    Its errors are one line and name it, those of its parts too. Most calls are neither kept nor
    intercepted; they take the short way, which does the same.
    """

    @functools.wraps(operation)
    def carried_out(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        try:
            recording = current()
            if recording is None:
                result = operation(*arguments, **named)
                if tally.OPEN:
                    tally.count("", operations=1)
                return result
            position, (file, line) = len(recording.steps), caller()
            result = operation(*arguments, **named)
        except Exception as error:
            name_operation(name, error)
            raise
        _insert(recording, position, name, result, file, line)
        return result

    whole = replayable_operation(intercepted(name, carried_out))

    @functools.wraps(operation)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        recording = current()
        if INTERCEPTOR.get() is not None:
            return whole(*arguments, **named)
        if recording is None:
            return carried_out(*arguments, **named)
        if recording.calls is not None or recording.tape is not None:
            return whole(*arguments, **named)
        try:
            return carried_out(*arguments, **named)
        except Exception:
            record_steering(arguments, named)
            raise

    return call


def _insert(
    recording: Recording, position: int, name: str, result: Any, file: str, line: int
) -> None:
    """Record a call that succeeded, before the steps inside it."""
    first = result[0] if isinstance(result, tuple) and result else result
    dtype, shape = getattr(first, "dtype", None), getattr(first, "shape", None)
    text = "" if dtype is None or shape is None else form_text(dtype, tuple(map(int, shape)))
    step = OperationStep(
        name=name,
        result=text,
        openness=first.openness() if hasattr(first, "openness") else bool,
        file=file,
        line=line,
        loops=(*recording.loops,),
        kernel=recording.kernel,
    )
    recording.steps.insert(position, step)
