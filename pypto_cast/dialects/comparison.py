"""One conversion in every dialect, side by side: of a number, or of two formats."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np

from pypto_cast.dialects.systems import DIALECTS, Rule
from pypto_cast.dtypes.data_types import CastMode, check_choice
from pypto_cast.dtypes.names import format_named
from pypto_cast.report.report import Fact, Report, Table, Words, columns, headed, plain, said
from pypto_cast.report.text_format import hex_code, printable
from simulator.numbers import float_environment
from simulator.numbers.convert import unpack
from simulator.numbers.formats import Codes, Format, IntFormat
from simulator.numbers.literals import (
    CODE_PREFIX,
    Number,
    bits_text,
    code_named,
    nearest_code,
    number_named,
    number_of,
    short_text,
)
from simulator.numbers.rounding import Bools

_COUNTED_BITS: Final = 16
"""The widest source whose codes are all compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One dialect's answer.

    Attributes:
        dialect: its name in `DIALECTS`.
        rule: what it does with the pair.
        code: what it makes of the value, as bits; None without a value, without a conversion, and
            where the result, or which bits a NaN has, is not settled.
        value: the same as an exact number; None where even that is not settled.
        is_open: there is a conversion, but no settled result for this value.
    """

    dialect: str
    rule: Rule
    code: int | None
    value: Number | None
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectDifference:
    """The codes of a source in whose results two dialects differ.

    Attributes:
        first_dialect: name of one.
        second_dialect: name of the other.
        count: codes with different results; two NaNs are the same.
        open_count: codes that one of them has no settled result for; not in `count`.
        total: codes of the source format.
        first: the least code that differs, and both results, of which a NaN stands for any;
            None if none does.
    """

    first_dialect: str
    second_dialect: str
    count: int
    open_count: int
    total: int
    first: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A pair of formats, perhaps a value, and a row per dialect.

    Attributes:
        src: source format.
        dst: destination format.
        mode: the round mode that pypto was asked for.
        literal: the value as it was given; None if only the pair was.
        code: the value's bits in the source format.
        value: the same as an exact number.
        rows: by dialect, those that apply to the pair, in the order of `DIALECTS`.
    """

    src: Format
    dst: Format
    mode: CastMode
    literal: str | None
    code: int | None
    value: Number | None
    rows: tuple[Row, ...]

    def __getitem__(self, dialect: str) -> Row:
        """The row of a dialect.

        Raises:
            KeyError: no such dialect, or one without a row for the pair; the text lists the rows.
        """
        for row in self.rows:
            if row.dialect == dialect:
                return row
        raise KeyError(
            f"no dialect {dialect!r}; there are {', '.join(row.dialect for row in self.rows)} for "
            f"{self.src} -> {self.dst}"
        )

    @float_environment.quiet()
    def differences(self, first: str, second: str) -> DialectDifference:
        """Compare two dialects over all codes of the source.

        Raises:
            KeyError: as for a row.
            ValueError: a source of more than 16 bits, or a dialect without this conversion.
        """
        _check_countable(self.src)
        codes = np.arange(1 << self.src.bits, dtype=self.src.code_dtype)
        (results, opens), (others, other_opens) = (
            _converted(self[name], codes, self.src, self.dst) for name in (first, second)
        )
        differs = results != others
        if not isinstance(self.dst, IntFormat):
            differs &= ~(unpack(results, self.dst).nan & unpack(others, self.dst).nan)
        undecided = opens | other_opens
        where = np.flatnonzero(differs & ~undecided)
        least = None
        if where.size:
            least = (int(codes[where[0]]), int(results[where[0]]), int(others[where[0]]))
        return DialectDifference(
            first_dialect=first,
            second_dialect=second,
            count=int(where.size),
            open_count=int(undecided.sum()),
            total=codes.size,
            first=least,
        )

    def all_differences(self) -> tuple[DialectDifference, ...]:
        """Every two dialects that have this conversion.

        Raises:
            ValueError: a source of more than 16 bits.
        """
        _check_countable(self.src)
        names = [row.dialect for row in self.rows if row.rule.convert is not None]
        return tuple(self.differences(*pair) for pair in itertools.combinations(names, 2))

    def report(self, counted: Sequence[DialectDifference] | None = None) -> Report:
        """The rows, and differences if some were counted; values are exact, as decimal text."""
        title = f"{self.src} -> {self.dst}"
        if self.literal is not None:
            title = f"{printable(self.literal)}: {title}"
        code = None if self.code is None else hex_code(self.code, self.src)
        return Report(
            kind="compare",
            title=title,
            facts=(
                *plain(literal=self.literal, src=self.src.name, dst=self.dst.name),
                *plain(mode=self.mode.name, code=code),
                said("written", self._written),
                Fact(key="value", value=self.value and str(self.value), label="value"),
                said("bits", self._bits),
            ),
            tables=(self._by_dialect, *([] if counted is None else [self._table(counted)])),
        )

    @property
    def _bits(self) -> str:
        if self.code is None:
            return ""
        return f"{bits_text(self.code, self.src)}  {hex_code(self.code, self.src)}"

    @property
    def _written(self) -> str:
        """The number that was written, if the format cannot hold it."""
        if self.literal is None or self.literal.startswith(CODE_PREFIX):
            return ""
        if self.value is None or self.value.special or number_named(self.literal) == self.value:
            return ""
        return f"{printable(self.literal)}, which {self.src} cannot hold"

    @property
    def _by_dialect(self) -> Table:
        has_value = self.code is not None
        return Table(
            key="rows",
            caption="By dialect",
            columns=columns(
                dialect="dialect",
                value="result" if has_value else None,
                code="code" if has_value else None,
                converts=None,
                settled=None,
                rule="rule",
                source="source",
            ),
            rows=[self._cells(row) for row in self.rows],
            is_prose=True,
        )

    def _cells(self, row: Row) -> tuple[object, ...]:
        value = None if row.value is None else str(row.value)
        code = None if row.code is None else hex_code(row.code, self.dst)
        lacking = "not settled" if row.is_open else "no conversion"
        return (
            row.dialect,
            Words(value=value, text=lacking if value is None else short_text(value)),
            Words(value=code, text=code or ("" if value is None else "any")),
            row.rule.convert is not None,
            not row.is_open,
            row.rule.text,
            row.rule.source,
        )

    def _table(self, counted: Sequence[DialectDifference]) -> Table:
        return Table(
            key="differences",
            caption="Codes that differ",
            columns=(
                *columns(between="between"),
                *headed("and"),
                *columns(count="differ", total="of", not_settled="not settled"),
                *columns(first="first that differs"),
            ),
            rows=[
                (
                    Words(value=[one.first_dialect, one.second_dialect], text=one.first_dialect),
                    one.second_dialect,
                    *(one.count, one.total, one.open_count, self._first(one)),
                )
                for one in counted
            ],
        )

    def _first(self, one: DialectDifference) -> Words:
        if one.first is None:
            return Words(value=None, text="none")
        code, *results = one.first
        made = " and ".join(short_text(str(number_of(result, self.dst))) for result in results)
        source = short_text(str(number_of(code, self.src)))
        written = hex_code(code, self.src)
        return Words(
            value={"code": written, "results": [hex_code(result, self.dst) for result in results]},
            text=f"{written} = {source}: {made}",
        )


@float_environment.quiet()
def compare(
    value: Any, src: object, dst: object, *, mode: CastMode = CastMode.CAST_NONE
) -> Comparison:
    """Show one number as pypto, torch, ONNX, OpenVINO, Paddle and numpy convert it.

        compare(130.0, "float16", "int8")["torch"].value       # -126

    From rules, with their sources: no framework is imported. pypto is A2/A3 with
    SaturationMode.ON, "pypto-off" with OFF, "pypto-950" the Ascend 950 with ON; "onnx" saturates,
    "onnx-off" does not, "onnx-19" is the text of opset 19 to 23; OpenVINO is the evaluation of
    Convert by its core, "fake-reference", "fake-plugin" and "fake-rne" the three numerics of its
    FakeConvert with a scale of 1; numpy is joined by ml_dtypes. A setting has a row where it acts,
    FakeConvert where it takes the pair.
    -0, NaN and infinity go where each rule says; a NaN counts as equal to any other, and torch's,
    Paddle's and numpy's rows tell no bits of one, since these depend on the code path. pypto is in
    INF/NAN mode, whatever the options say.

    Args:
        value: a number (int, float, numpy scalar, Tensor of rank 0), its text ("0.1", "0x1.8p3",
            "nan", "code:0x3c00" for bits), rounded to the nearest one of `src`, ties to even.
        src: source dtype: any name ("float16", "DT_FP16", "half", "i8"), a dtype of numpy, pypto,
            torch, Paddle or OpenVINO, or a Tensor or an array, for its dtype.
        dst: destination dtype, likewise.
        mode: round mode of the pypto rows; CAST_NONE is the pair's default.

    Returns:
        A row per dialect.

    Raises:
        TypeError: no number, no dtype, or no `pypto.CastMode`.
        ValueError: a number out of the range of `src`, an infinity or NaN that it lacks, or an
            unknown name.
    """
    return _compared(_literal(value), src, dst, mode)


@float_environment.quiet()
def compare_formats(src: object, dst: object, *, mode: CastMode = CastMode.CAST_NONE) -> Comparison:
    """Show by which rules pypto, torch, ONNX, OpenVINO, Paddle and numpy convert one format.

        compare_formats("float16", "int8").differences("pypto", "onnx").count

    Args:
        src: source dtype, as for `compare`.
        dst: destination dtype, likewise.
        mode: round mode of the pypto rows; CAST_NONE is the pair's default.

    Returns:
        A row per dialect, without a value.

    Raises:
        TypeError: no dtype, or no `pypto.CastMode`.
        ValueError: an unknown name.
    """
    return _compared(None, src, dst, mode)


def _compared(literal: str | None, src: object, dst: object, mode: CastMode) -> Comparison:
    check_choice("mode", mode, CastMode)
    source, destination = format_named(src), format_named(dst)
    code = None if literal is None else _code(literal, source)
    return Comparison(
        src=source,
        dst=destination,
        mode=mode,
        literal=literal,
        code=code,
        value=None if code is None else number_of(code, source),
        rows=tuple(
            _row(name, code, source, destination, mode)
            for name, dialect in DIALECTS.items()
            if dialect.applies(source, destination)
        ),
    )


def _literal(value: Any) -> str:
    if isinstance(value, np.generic) or getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        # Exactly: the shortest text of a float may lie on the other side of a tie.
        return str(Decimal(value))
    raise TypeError(f"a value is a number or its text, not {value!r} ({type(value).__name__})")


def _code(literal: str, src: Format) -> int:
    if literal.startswith(CODE_PREFIX):
        return code_named(literal, src)
    return nearest_code(number_named(literal), src)


def _row(name: str, code: int | None, src: Format, dst: Format, mode: CastMode) -> Row:
    rule = DIALECTS[name].rule(src, dst, mode)
    row = Row(dialect=name, rule=rule, code=None, value=None, is_open=False)
    if code is None or rule.convert is None:
        return row
    # Two elements, because some libraries pack 4-bit types in pairs.
    codes = np.array([code, code], src.code_dtype)
    results, opens = _converted(row, codes, src, dst)
    if opens[0]:
        return Row(dialect=name, rule=rule, code=None, value=None, is_open=True)
    result = int(results[0])
    value = number_of(result, dst)
    told = not (rule.leaves_nan_bits_open and value.special == "nan")
    return Row(dialect=name, rule=rule, code=result if told else None, value=value, is_open=False)


def _converted(row: Row, codes: Codes, src: Format, dst: Format) -> tuple[Codes, Bools]:
    """Results, and which are not settled."""
    rule = row.rule
    if rule.convert is None:
        raise ValueError(f"{row.dialect} does not convert {src} to {dst}: {rule.text}")
    results = rule.convert(codes) & dst.code_dtype.type((1 << dst.bits) - 1)
    if rule.leaves_open is None:
        return results, np.zeros(codes.shape, np.bool_)
    return results, rule.leaves_open(codes)


def _check_countable(src: Format) -> None:
    if src.bits > _COUNTED_BITS:
        raise ValueError(
            f"all codes are compared of sources up to {_COUNTED_BITS} bits; {src} has "
            f"2^{src.bits} codes"
        )
