"""The spellings of dtypes and modes that people type.

`DT_FP16`, `FP16`, `fp16`, `float16`, `half`, `f16`, `torch.float16`, `np.float16` and
`tensor(float16)` are one dtype, in every dialect, in any case. A letter before a number counts
bits, so that the text "i8" is int8, though `np.dtype("i8")` is int64. What a dialect has names of
its own for comes first; a number is a type only where the dialect numbers its types.
"""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import numpy as np

from pypto_cast.dtypes.data_types import (
    DT_BOTTOM,
    ROWS,
    CastMode,
    DataType,
    DtypeRow,
    SaturationMode,
)
from simulator.numbers.formats import FORMATS, FloatFormat, Format

_T = TypeVar("_T")
_Enum = TypeVar("_Enum", bound=enum.Enum)

# fmt: off
_OWNERS: Final = frozenset((
    "torch", "np", "numpy", "ml_dtypes", "paddle", "pypto", "pypto_cast", "ov", "openvino", "type",
    "onnx", "tensorproto", "datatype", "castmode", "saturationmode",
))
# fmt: on
"""The words that may stand before a dot, as in pypto.DataType.DT_FP16."""

_ONNX_TYPE: Final = re.compile(r"tensor\((.*)\)")
_TYPESTR: Final = re.compile(r"[<>=|].+")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_NEAR: Final = 3
_LIKENESS: Final = 0.7
"""The most names in a question, and the least difflib ratio of a name that it asks about."""


def _derived(fmt: Format) -> Iterator[str]:
    """The format's name, and the width behind a letter or a word."""
    yield fmt.name
    if not isinstance(fmt, FloatFormat):
        if fmt.bits > 1:
            yield f"{fmt.dtype.name[0]}{fmt.bits}"
    elif fmt.name.endswith(str(fmt.bits)):
        yield fmt.name.replace("FP", "F")
    else:
        yield from (f"{word}{fmt.bits}{fmt.name}" for word in ("f", "fp", "float"))


def name_of_numpy(dtype: np.dtype[Any]) -> str:
    """The name of a numpy dtype; of one that holds bytes of a format alone, the format's."""
    return dtype.name if dtype.names is None else dtype.names[0].lower()


def _spellings() -> Iterator[tuple[str, DtypeRow]]:
    for row in ROWS:
        yield from ((spelling, row) for spelling in row.names)
        if row.dtype is not None:
            yield name_of_numpy(row.dtype), row
        if row.format is not None:
            yield from ((spelling, row) for spelling in _derived(row.format))


def _key(text: str) -> str:
    return text.lower().replace("_", "")


SPELLINGS: Final[Mapping[str, DtypeRow]] = {_key(spelling): row for spelling, row in _spellings()}
"""The dtype of every spelling, which is in lower case without underscores.

float8_e4m3 is missing, which in ml_dtypes is a type with infinities.
"""


def text_of(given: object) -> str | None:
    """The text that names a type: a str, or the name that an object of a framework has for itself.

    Args:
        given: a str, a number, a member of an enum, or a dtype of torch, Paddle or OpenVINO.

    Returns:
        None if it is nothing of that kind; a dtype of numpy is not, whose meaning numpy decides.
    """
    if isinstance(given, str):
        text = given.strip()
        return np.dtype(text).name if _is_typestr(text) else text
    if isinstance(given, enum.Enum):
        return given.name
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if isinstance(given, (type, np.dtype, np.generic, np.ndarray)):
        return None
    if type(given).__name__ == "Type" and hasattr(given, "get_type_name"):
        return str(given.get_type_name())
    text = str(given)
    return text if text.partition(".")[0] in _OWNERS else None


def spelled(text: str) -> DtypeRow | None:
    """The dtype that a text spells in every dialect, or None."""
    return SPELLINGS.get(_bare(text))


def _is_typestr(text: str) -> bool:
    """True for numpy's code of a dtype with its byte order, such as "<f4"."""
    if not _TYPESTR.fullmatch(text):
        return False
    try:
        np.dtype(text)
    except (TypeError, ValueError, SyntaxError):
        return False
    return True


class Names(Generic[_T]):
    """The types, or modes, of one dialect by name.

    Args:
        own: the dialect's names; they come before all others, and messages use the first of each.
        member_of: the dialect's type of a dtype, whose spellings in `SPELLINGS` it has too.
        numbers: by number, where the dialect numbers them.
    """

    __slots__ = ("_by_key", "_numbers", "_shown")

    def __init__(
        self,
        own: Mapping[str, _T],
        member_of: Callable[[DtypeRow], _T | None] = lambda row: None,
        numbers: Mapping[int, _T] = MappingProxyType({}),
    ) -> None:
        self._shown = {member: name for name, member in reversed(list(own.items()))}
        every = ((key, member_of(row)) for key, row in SPELLINGS.items())
        self._by_key = {key: member for key, member in every if member in self._shown} | {
            _key(name): member for name, member in own.items()
        }
        self._numbers = numbers

    def get(self, given: object) -> _T | None:
        """The type or mode that a name, a number or an object of a framework means; or None."""
        text = text_of(given)
        if text is None:
            return None
        if _NUMBER.fullmatch(text):
            return self._numbers.get(int(text))
        whole = self._by_key.get(_key(text))
        return self._by_key.get(_bare(text)) if whole is None else whole

    def near(self, given: object) -> str:
        """The question "did you mean ...?" with like names of the dialect; empty without any."""
        text = text_of(given)
        if text is None:
            return ""
        meant = difflib.get_close_matches(_bare(text), self._by_key, 2 * _NEAR, _LIKENESS)
        names = dict.fromkeys(self._shown[self._by_key[key]] for key in meant)
        return f" (did you mean {' or '.join(list(names)[:_NEAR])}?)" if names else ""


def _bare(text: str) -> str:
    """The key of a name without ONNX's tensor() and without the words before a dot."""
    typed = _ONNX_TYPE.fullmatch(text.strip().lower())
    owners, dot, name = (typed[1] if typed else text.lower()).rpartition(".")
    owned = dot and _OWNERS.issuperset(owners.split("."))
    return _key(name if owned else owners + dot + name)


_DTYPES: Final = tuple(dtype for dtype in DataType if dtype is not DT_BOTTOM)
_BY_NUMPY: Final = MappingProxyType({name_of_numpy(fmt.dtype): fmt for fmt in FORMATS.values()})

_PYPTO: Final = Names(
    {dtype.name: dtype for dtype in _DTYPES}
    | {dtype.name.removeprefix("DT_"): dtype for dtype in _DTYPES},
    lambda row: row.pypto,
    {int(dtype): dtype for dtype in _DTYPES},
)
_FORMATS: Final = Names(_BY_NUMPY, lambda row: row.format)
_MODES: Final = Names(
    {mode.name: mode for mode in CastMode}
    | {mode.name.removeprefix("CAST_"): mode for mode in CastMode},
    numbers={int(mode): mode for mode in CastMode},
)
_SATMODES: Final = Names({mode.name: mode for mode in SaturationMode})


def dtype_named(given: object) -> DataType:
    """pypto's dtype of any spelling, or of upstream's number.

    Raises:
        ValueError: no such dtype; the text lists them.
    """
    return _found(_PYPTO, "dtype", given, _DTYPES)


def mode_named(given: object) -> CastMode:
    """`CAST_RINT`, `RINT` or `rint`, or upstream's number.

    Raises:
        ValueError: no such mode; the text lists them.
    """
    return _found(_MODES, "mode", given, tuple(CastMode))


def satmode_named(given: object) -> SaturationMode:
    """`ON` or `OFF`, in any case; no number, since upstream's for ON is 0.

    Raises:
        ValueError: neither.
    """
    return _found(_SATMODES, "satmode", given, tuple(SaturationMode))


def format_named(dtype: object) -> Format:
    """The number format of a dtype, its name or a tensor that has it; no number, as these vary.

    Raises:
        TypeError: neither a dtype nor a name.
        ValueError: a name or a dtype without a number format here; the text lists the names.
    """
    if not isinstance(dtype, type) and hasattr(dtype, "dtype"):
        dtype = dtype_of_tensor(dtype)
    if isinstance(dtype, np.dtype) or (isinstance(dtype, type) and dtype is not object):
        text: str | None = name_of_numpy(np.dtype(dtype))
    else:
        text = None if isinstance(dtype, int) else text_of(dtype)
    if text is None:
        raise TypeError(
            f"a dtype is a name such as 'float16' or 'DT_FP16', a numpy dtype, a "
            f"pypto.DataType or a Tensor, not {dtype!r}"
        )
    fmt = _FORMATS.get(text)
    if fmt is None:
        raise ValueError(
            f"unknown dtype {text!r}{_FORMATS.near(text)}; known: {', '.join(_BY_NUMPY)}, "
            "and pypto's, such as DT_FP16"
        )
    return fmt


def _found(names: Names[_Enum], what: str, given: object, known: Iterable[_Enum]) -> _Enum:
    found = names.get(given)
    if found is None:
        listed = ", ".join(member.name for member in known)
        raise ValueError(f"unknown {what} {given!r}{names.near(given)}; known: {listed}")
    return found


def dtype_of_tensor(tensor: Any) -> np.dtype[Any] | DataType | str:
    """The dtype of a tensor of any library: numpy's and pypto's as they are, others by name.

    Args:
        tensor: anything with a `dtype`; "torch.float16" and "paddle.float16" are "float16".
    """
    dtype = tensor.dtype
    if isinstance(dtype, (np.dtype, DataType)):
        return dtype
    return str(dtype).rpartition(".")[2]
