"""Facts of a tensor that follow from a text, and the operations of it that checks look at.

Everything here is a lower bound of knowledge: None or False says that the text does not tell.
"""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Final

from pypto_cast.lint.dsl_casts import Beyond, DslCast
from simulator.numbers.formats import BOOL, INT8, UINT8, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode


class Unnamed(enum.Enum):
    """A mode or saturation that the text does not name, or names by a variable."""

    DEFAULT = "left out"
    VARIABLE = "a variable"


Mode = RoundMode | Unnamed
Saturation = bool | Unnamed
"""True: the limit; False: the low bits."""

_BYTE_BITS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The place of a call: lines and characters, both from 1, the end included.

    Attributes:
        line: of its start.
        column: of its start.
        last_line: of its end.
    """

    line: int
    column: int
    last_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounding:
    """A cast that lost bits.

    Attributes:
        source: the format before it.
        to: the format that it was rounded to.
        mode: its round mode.
        line: of the cast.
    """

    source: Format
    to: Format
    mode: Mode
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """A tensor.

    Attributes:
        format: of its elements.
        shape: extents, None where one is not known; None: not even their number.
        is_integral: every element is an integer.
        has_floor: elements are limited from below.
        has_cap: elements are limited from above.
        wrapped_line: of the cast that kept the low bits of eight; 0: none did.
        rounding: the cast that its elements were rounded by last, with nothing computed since.
        is_dynamic: an extent is DYNAMIC, and no part was taken.
        is_open: an argument whose annotation has a dtype and no shape.
    """

    format: Format | None = None
    shape: tuple[int | None, ...] | None = None
    is_integral: bool = False
    has_floor: bool = False
    has_cap: bool = False
    wrapped_line: int = 0
    rounding: Rounding | None = None
    is_dynamic: bool = False
    is_open: bool = False

    @property
    def is_clamped(self) -> bool:
        """Elements are limited on both sides."""
        return self.has_floor and self.has_cap

    @property
    def holds_integers(self) -> bool:
        """A cast to an integer rounds nothing."""
        return self.is_integral or isinstance(self.format, IntFormat)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A cast of a tensor."""

    span: Span
    dsl: DslCast
    source: Tracked
    to: Format
    mode: Mode
    saturation: Saturation


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A sum; `elems` is the count of elements that make one of the result, None if not known."""

    span: Span
    source: Tracked
    elems: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of tensors."""

    span: Span
    operands: tuple[Tracked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicOperation:
    """An operation on a tensor with a DYNAMIC dimension, outside every loop of its kernel."""

    span: Span
    operation: str
    kernel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledOperation:
    """An operation where the tile shape is literal.

    Attributes:
        span: of the call.
        source: the operand's format.
        to: the result's format.
        shape: the operand's; an extent that the text does not tell is None. None: of any rank.
        tile: the tile shape.
    """

    span: Span
    source: Format
    to: Format
    shape: tuple[int | None, ...] | None
    tile: tuple[int, ...]


Use = Cast | Sum | Comparison | DynamicOperation | TiledOperation


def loses_bits(source: Format, to: Format) -> bool:
    """True if some number of one format has more significant bits than the other holds."""
    return _significand_bits(source) > _significand_bits(to)


def _significand_bits(fmt: Format) -> int:
    return fmt.man_bits + 1 if isinstance(fmt, FloatFormat) else fmt.bits - fmt.signed


def named_mode(cast: Cast) -> Mode:
    """The round mode of a cast: the language's where none is named."""
    if cast.mode is not Unnamed.DEFAULT:
        return cast.mode
    return cast.dsl.to_integer if isinstance(cast.to, IntFormat) else cast.dsl.to_float


def rounds(cast: Cast) -> bool:
    """True if the cast is known to round."""
    source = cast.source
    if isinstance(cast.to, IntFormat):
        return isinstance(source.format, FloatFormat) and not source.is_integral
    return source.format is not None and loses_bits(source.format, cast.to)


def wraps(cast: Cast) -> bool:
    """True if the cast is known to keep the low eight bits of numbers that may have more."""
    off = cast.saturation is False
    if cast.saturation is Unnamed.DEFAULT:
        off = cast.dsl.beyond is Beyond.LOW_BITS
    is_byte = isinstance(cast.to, IntFormat) and cast.to is not BOOL and cast.to.bits == _BYTE_BITS
    source = cast.source
    fits = source.format is not None and source.format.bits <= _BYTE_BITS
    return off and is_byte and not source.is_clamped and not fits


def result_of(cast: Cast) -> Tracked:
    """The tensor that a cast gives."""
    source = cast.source
    rounding = source.rounding
    if source.format is None or isinstance(cast.to, IntFormat):
        rounding = None  # integers are meant, and what comes after rounds them anew
    elif rounds(cast):
        rounding = Rounding(
            source=source.format, to=cast.to, mode=named_mode(cast), line=cast.span.line
        )
    return dataclasses.replace(
        source,
        format=cast.to,
        is_integral=source.holds_integers or isinstance(cast.to, IntFormat),
        wrapped_line=cast.span.line if wraps(cast) else source.wrapped_line,
        rounding=rounding,
    )


def framework_cast(source: Tracked, to: Format, line: int) -> Tracked:
    """A cast of torch or numpy, in a golden: integers keep the low bits."""
    narrow = to in (INT8, UINT8) and source.format not in (INT8, UINT8, BOOL)
    return Tracked(
        format=to,
        shape=source.shape,
        is_integral=source.is_integral or not isinstance(to, FloatFormat),
        has_floor=source.has_floor,
        has_cap=source.has_cap,
        wrapped_line=line if narrow and not source.is_clamped else source.wrapped_line,
    )
