"""Upstream's `pypto.error`: the classes of the errors that its frontend raises, with their codes.

An error that this package raises where upstream raises one of these is an instance of that class
and of the Python class that it stands for: `except ValueError` and `except pypto.error.FeError`
both catch it. Source: upstream pypto, `python/pypto/error.py`, `ExternalError` of its C++ module.
"""

from __future__ import annotations

import ast
import enum
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

__all__ = [
    "FeError",
    "ParserError",
    "PassError",
    "PyptoError",
    "PyptoGeneralError",
    "PyptoRtError",
    "RenderedParserError",
    "VerifyError",
]

_PYTHON: Final = 0xF00000
"""Upstream's mark of a code that Python code raises."""


class ExternalError(enum.IntEnum):
    """Upstream's codes of errors that the user can mend."""

    INVALID_TYPE = 0x1
    INVALID_VAL = 0x2
    RUNTIME_ERROR = 0x3
    NAME_ERROR = 0x4
    NOT_IMPLEMENTED_ERROR = 0x5
    KEY_ERROR = 0x6
    INVALID_OPERATION = 0x7
    OUT_OF_RANGE = 0x8
    BAD_FD = 0x9
    DYNAMIC_SHAPE_COMPUTE_UNSUPPORTED = 0xA
    COMMON_EXTERNAL_ERROR = 0xFFFF
    UNKNOWN = COMMON_EXTERNAL_ERROR


_CODES: Final[Mapping[type[Exception], ExternalError]] = {
    TypeError: ExternalError.INVALID_TYPE,
    ValueError: ExternalError.INVALID_VAL,
    RuntimeError: ExternalError.RUNTIME_ERROR,
    NameError: ExternalError.NAME_ERROR,
    NotImplementedError: ExternalError.NOT_IMPLEMENTED_ERROR,
    KeyError: ExternalError.KEY_ERROR,
    IndexError: ExternalError.OUT_OF_RANGE,
}


def _code_of(message: str | Exception) -> int:
    kind = type(message) if isinstance(message, Exception) else Exception
    return _PYTHON | _CODES.get(kind, ExternalError.UNKNOWN)


class PyptoError(Exception):
    """An error of upstream's, with its code before the text unless the text has one.

    Args:
        err_code: the code.
        msg: the text, or the exception whose class and text are named.
    """

    node: ast.AST | None = None
    """The statement of a kernel that it is about."""

    def __init__(self, err_code: int, msg: str | Exception) -> None:
        text = str(msg)
        if "ErrCode" not in text:
            named = f"{type(msg).__name__}: {text}" if isinstance(msg, Exception) else text
            text = f"ErrCode: {err_code:X}, {named}"
        super().__init__(text)


class PyptoGeneralError(PyptoError):
    """One whose code follows from the class of an exception.

    Args:
        msg: the text, or the exception.
    """

    def __init__(self, msg: str | Exception) -> None:
        super().__init__(_code_of(msg), msg)


class ParserError(PyptoError):
    """A statement of a kernel that upstream's parser refuses.

    Args:
        node: the statement.
        msg: the text, or the exception.
    """

    def __init__(self, node: ast.AST | None, msg: str | Exception) -> None:
        super().__init__(_code_of(msg), msg)
        self.node = node


class RenderedParserError(ParserError):
    """One whose text shows the line."""


class FeError(PyptoGeneralError):
    """An argument that upstream's frontend refuses."""


class PyptoRtError(PyptoGeneralError):
    """A call that upstream's runtime refuses."""


class PassError(PyptoGeneralError):
    """A setting of a pass of the compiler that upstream refuses."""


class VerifyError(PyptoGeneralError):
    """Upstream's comparison of a pass with its golden data fails."""


_Error = TypeVar("_Error", bound=PyptoError)


class _OfPython(PyptoError):
    """One that is of a class of Python's too; its text has no code before it."""

    kinds: tuple[type[PyptoError], type[Exception]]

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Callable[..., Exception], tuple[Any, ...]]:
        return error_of, (*self.kinds, str(self))


_JOINT: Final[dict[tuple[type[PyptoError], type[Exception]], Any]] = {}
"""The classes of both kinds that were needed so far."""


def error_of(family: type[_Error], kind: type[Exception], text: str) -> _Error:
    """An error of upstream's class that `except` of a class of Python's catches too.

    Args:
        family: the class of upstream's.
        kind: the class of Python's, by which upstream chooses the code.
        text: the message; upstream's has the code before it, this one has none.
    """
    if (family, kind) not in _JOINT:
        own = {"__module__": __name__, "kinds": (family, kind)}
        _JOINT[family, kind] = type(family.__name__, (_OfPython, family, kind), own)
    made: _Error = _JOINT[family, kind](text)
    return made


_Function = TypeVar("_Function", bound=Callable[..., Any])


def name_operation(name: str, error: Exception) -> None:
    """Make the text of an error of an operation, or of its parts, one line that names it."""
    text = error.args[0] if error.args else None
    if isinstance(text, str):
        line = re.sub(r"\s*\n\s*", " ", text)  # of an array
        is_named = re.search(rf"\b{re.escape(name)}\b", line)
        error.args = (line if is_named else f"{name}: {line}", *error.args[1:])


def _catch_and_wrap_error(operation_name: str) -> Callable[[_Function], _Function]:
    """Have a function raise a `PyptoGeneralError` that names an operation, whatever it raises."""

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapper(*arguments: Any, **named: Any) -> Any:
            try:
                return function(*arguments, **named)
            except PyptoError:
                raise
            except Exception as error:
                name = getattr(arguments[0] if arguments else None, "__name__", function.__name__)
                text = f"Failed to {operation_name} {name!r}.\n{error}"
                told = text if "ErrCode" in str(error) else type(error)(text)
                raise PyptoGeneralError(told).with_traceback(error.__traceback__) from None

        return cast(_Function, wrapper)

    return decorate
