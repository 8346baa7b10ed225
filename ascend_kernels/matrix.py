"""The conversion matrix: the casts that pypto offers on each chip family.

One row per family and pair: its modes, the one that CAST_NONE stands for, what becomes of values
out of range, and the steps of SaturationMode.OFF where it acts. What the Cast instruction itself
has stands in `simulator.machine.cast_table`, which knows nothing of this table. Sources for A2/A3:
the pypto.cast document, constraints 1 to 3 (22 pairs); upstream pypto's newer document (FP32 ->
FP32, FP16 <-> INT4, the six pairs of SaturationMode.OFF); pto-isa a2a3 for the OFF sequences. For
950: upstream pypto's document at 883e7dfb0, its table of 950 (46 pairs); CANN asc-devkit, Cast of
the Reg vector API, tables 4 and 34, for values out of range; pto-isa a5 for the OFF sequences.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from simulator.corrections import FP4_MODES, FP8_MODES, INT32_FP16, Readings
from simulator.machine.isa import ScalarOp
from simulator.numbers import formats as f
from simulator.numbers.convert import INF_NAN, SATURATE, SATURATE_KEEP_NAN, Policy
from simulator.numbers.formats import FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, ASCEND_950, Source, chosen, documented


class UnsupportedCastError(TypeError):
    """A pair of dtypes that the chip family does not convert."""


class CastModeError(ValueError):
    """A round or saturation mode that the pair does not have, under strict options."""


class CastModeWarning(UserWarning):
    """A round mode that the pair does not have; its default was taken."""


class SaturationModeWarning(UserWarning):
    """SaturationMode.OFF for a pair on which it does not act; the result is clamped."""


class Operand(enum.Enum):
    """The UB buffers that a step reads or writes."""

    IN = "in"
    TMP = "tmp"
    OUT = "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class CastStep:
    """One Cast over the elements in UB.

    Attributes:
        src: source format.
        dst: destination format.
        mode: round mode of the instruction; None is AscendC's CAST_NONE.
        takes_mode: the caller's mode replaces `mode` when the rule is resolved.
        truncates: run with the control bit that keeps low bits instead of clamping.
        is_scaled: the instruction multiplies by a register that must be set before (pto-isa, TCVT).
        source: buffer read.
        target: buffer written; may be `source` where both formats are equally wide.
    """

    src: Format
    dst: Format
    mode: RoundMode | None = None
    takes_mode: bool = False
    truncates: bool = False
    is_scaled: bool = False
    source: Operand = Operand.IN
    target: Operand = Operand.OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class LowByteStep:
    """Keep the low byte of every INT16 in `operand`, by a bitwise and with a mask in `scratch`."""

    operand: Operand
    scratch: Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarStep:
    """Combine the elements in UB with one number; where formats are equally wide, codes are read
    as those of `format`.

    Attributes:
        op: the instruction.
        format: as which elements are read and written.
        scalar: a number of the format, or the bits of a shift.
        source: buffer read.
        target: buffer written.
    """

    op: ScalarOp
    format: Format
    scalar: float
    source: Operand = Operand.IN
    target: Operand = Operand.IN


Step = CastStep | LowByteStep | ScalarStep


@dataclass(frozen=True, slots=True, kw_only=True)
class CastControls:
    """The control bits that results of casts depend on, besides CTRL[59], which the steps set.

    Attributes:
        inf_nan_mode: CTRL[48]: infinities and NaN stay; else results in floats saturate.
        fp8_nan: CTRL[50]: NaN stays in E5M2 and E4M3FN where results saturate.
        global_saturation: CTRL[60]: the bits above decide; else the instruction's own SatMode.
        readings: no bits, but the readings of public texts other than the default ones.
    """

    inf_nan_mode: bool = True
    fp8_nan: bool = False
    global_saturation: bool = True
    readings: Readings = ()


DEFAULT_CONTROLS: Final = CastControls()
"""CTRL[50] and CTRL[60] as CANN asc-devkit, SetCtrlSpr, table 3, has them; CTRL[48] is a choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRule:
    """A row of the matrix.

    Attributes:
        family: the instructions of a chip, `Chip.isa`.
        src: source format.
        dst: destination format.
        modes: those that a caller can choose from; none where nothing is rounded.
        default: what CAST_NONE means; None where no mode applies.
        overflow: what becomes of NaN, infinity and values out of range, in INF/NAN mode.
        saturation: the same in saturation mode, `inf_nan_mode=False`.
        saturation_with_nan: the same with `fp8_nan=True`.
        on: the steps of SaturationMode.ON.
        off: the steps of SaturationMode.OFF; empty where OFF does not act.
        origin: the source of the row, and its standing.
    """

    family: str
    src: Format
    dst: Format
    modes: tuple[RoundMode, ...]
    default: RoundMode | None
    overflow: Policy
    saturation: Policy
    saturation_with_nan: Policy
    on: tuple[Step, ...]
    off: tuple[Step, ...]
    origin: Source

    @property
    def source(self) -> str:
        """The text of its origin."""
        return self.origin.text

    def policy(self, controls: CastControls, *, saturate: bool) -> Policy:
        """The rule of NaN, infinity and values out of range.

        Args:
            controls: the control bits.
            saturate: the satmode of the cast, which each instruction has as its SatMode.
        """
        if not controls.inf_nan_mode if controls.global_saturation else saturate:
            return self.saturation_with_nan if controls.fp8_nan else self.saturation
        return self.overflow

    def has_satmode(self, controls: CastControls) -> bool:
        """SaturationMode.OFF acts."""
        return bool(self.off) or (
            not controls.global_saturation and self.overflow != self.saturation
        )

    @property
    def instruction_modes(self) -> tuple[RoundMode | None, ...]:
        """The round modes of its instruction; None, AscendC's CAST_NONE, where none is chosen."""
        takes_mode = any(isinstance(step, CastStep) and step.takes_mode for step in self.on)
        return self.modes if takes_mode else (None,)

    @property
    def is_exact(self) -> bool:
        """Every source value is representable: no rounding, no overflow."""
        return self.default is None and not self.clamps

    @property
    def clamps(self) -> bool:
        """Values beyond the destination's range become its limits."""
        return isinstance(self.dst, IntFormat) and (
            isinstance(self.src, FloatFormat)
            or self.src.min < self.dst.min
            or self.src.max > self.dst.max
        )

    def __str__(self) -> str:
        return f"{self.src} -> {self.dst}"


_SEED: Final = documented("pypto.cast document, constraint 2")
_SEED_DEFAULTS: Final = documented("pypto.cast document, constraint 3.5")
_UPSTREAM: Final = documented("upstream pypto, newer pypto-cast document")

_LOW_BITS: Final[Mapping[tuple[Format, Format], tuple[Step, ...]]] = {
    (f.FP16, f.UINT8): (CastStep(src=f.FP16, dst=f.UINT8, takes_mode=True, truncates=True),),
    (f.INT64, f.INT32): (CastStep(src=f.INT64, dst=f.INT32, truncates=True),),
    (f.INT32, f.INT16): (CastStep(src=f.INT32, dst=f.INT16, truncates=True),),
    (f.FP32, f.INT16): (
        CastStep(src=f.FP32, dst=f.INT32, takes_mode=True, target=Operand.IN),
        CastStep(src=f.INT32, dst=f.INT16, truncates=True),
    ),
    (f.FP16, f.INT16): (
        CastStep(src=f.FP16, dst=f.INT32, takes_mode=True, target=Operand.TMP),
        CastStep(src=f.INT32, dst=f.INT16, truncates=True, source=Operand.TMP),
    ),
    (f.FP16, f.INT8): (
        CastStep(src=f.FP16, dst=f.INT32, takes_mode=True, target=Operand.TMP),
        CastStep(src=f.INT32, dst=f.INT16, truncates=True, source=Operand.TMP, target=Operand.IN),
        LowByteStep(operand=Operand.IN, scratch=Operand.TMP),
        CastStep(src=f.INT16, dst=f.FP16, mode=RoundMode.RINT, target=Operand.IN),
        CastStep(src=f.FP16, dst=f.INT8, mode=RoundMode.TRUNC, truncates=True),
    ),
}
"""SaturationMode.OFF, pair by pair (pto-isa a2a3, the sequences with and without scratch)."""


_SCALED: Final = (CastStep(src=f.INT32, dst=f.FP16, is_scaled=True),)
"""The instruction has CAST_NONE alone, which is RINT here."""


def _rule(
    src: Format,
    dst: Format,
    modes: tuple[RoundMode, ...],
    default: RoundMode | None,
    origin: Source,
    *,
    on: tuple[Step, ...] = (),
) -> CastRule:
    """A row of A2/A3, where integers clamp, and FP16 and BF16 saturate in saturation mode."""
    to_integer = isinstance(dst, IntFormat)
    saturation = SATURATE if to_integer or dst in (f.FP16, f.BF16) else INF_NAN
    return CastRule(
        family=A2_A3,
        src=src,
        dst=dst,
        modes=modes,
        default=default,
        overflow=SATURATE if to_integer else INF_NAN,
        saturation=saturation,
        saturation_with_nan=saturation,
        on=on or (CastStep(src=src, dst=dst, takes_mode=bool(modes)),),
        off=_LOW_BITS.get((src, dst), ()),
        origin=origin,
    )


_DOCUMENT_950: Final = documented("upstream pypto 883e7dfb0, pypto-cast document, table of 950")
_FP8_MODES: Final = chosen(str(FP8_MODES))
_FP4_MODES: Final = chosen(str(FP4_MODES))
_INT32_FP16: Final = chosen(
    f"{INT32_FP16}. Out of range as every integer to float: CANN asc-devkit, Cast, table 4"
)

_LOW_BITS_950: Final[Mapping[tuple[Format, Format], tuple[Step, ...]]] = {
    (f.FP32, f.INT16): (
        CastStep(src=f.FP32, dst=f.INT32, takes_mode=True, truncates=True, target=Operand.IN),
        CastStep(src=f.INT32, dst=f.INT16, truncates=True),
    ),
    (f.FP16, f.INT16): _LOW_BITS[f.FP16, f.INT16],
    (f.FP16, f.INT8): _LOW_BITS[f.FP16, f.INT8],
}
"""SaturationMode.OFF of 950 where it is several steps (pto-isa a5, which aligns inf with torch).

There one control bit holds for all of them. In UB in place of registers, from FP16 by way of INT32,
which holds all of its numbers: the results are the same.
"""

_SATURATED_950: Final = (f.FP16, f.BF16, f.E5M2, f.E4M3FN, f.HF8)
"""The destinations that CTRL[48] saturates, from a float that may be out of their range."""
_KEEPS_NAN_950: Final = (f.E5M2, f.E4M3FN)
"""Those of them in which CTRL[50] keeps NaN (CANN asc-devkit, SetCtrlSpr, table 3)."""

_CLAMPS_ALWAYS_950: Final = frozenset({(f.INT16, f.UINT32), (f.FP16, f.INT32)})
"""The pairs that clamp under SaturationMode.OFF too: INT16 -> UINT32 as CANN documents, and
FP16 -> INT32, of which infinity alone is out of range."""


def _rule_950(
    src: Format,
    dst: Format,
    modes: tuple[RoundMode, ...],
    default: RoundMode | None,
    origin: Source = _DOCUMENT_950,
    *,
    on: tuple[Step, ...] = (),
) -> CastRule:
    """A row of 950, where integers clamp, and FP4 and floats of integers always saturate."""
    from_integer, to_integer = isinstance(src, IntFormat), isinstance(dst, IntFormat)
    always = from_integer or to_integer or dst in (f.E2M1, f.E1M2)
    saturates = dst in _SATURATED_950 and src not in (f.E2M1, f.E1M2)
    takes_mode = bool(modes)
    direct = CastStep(src=src, dst=dst, takes_mode=takes_mode)
    saturation = SATURATE if always or saturates else INF_NAN
    rule = CastRule(
        family=ASCEND_950,
        src=src,
        dst=dst,
        modes=modes,
        default=default,
        overflow=SATURATE if always else INF_NAN,
        saturation=saturation,
        saturation_with_nan=SATURATE_KEEP_NAN if dst in _KEEPS_NAN_950 else saturation,
        on=on or (direct,),
        off=(),
        origin=origin,
    )
    if (src, dst) in _CLAMPS_ALWAYS_950 or not rule.clamps:
        return rule
    low_bits = (dataclasses.replace(direct, truncates=True),)
    return dataclasses.replace(rule, off=_LOW_BITS_950.get((src, dst), low_bits))


def _by_pair(*rules: CastRule) -> Mapping[tuple[Format, Format], CastRule]:
    return MappingProxyType({(rule.src, rule.dst): rule for rule in rules})


_RINT, _ROUND, _TRUNC = RoundMode.RINT, RoundMode.ROUND, RoundMode.TRUNC
_M5: Final = (_RINT, _ROUND, RoundMode.FLOOR, RoundMode.CEIL, _TRUNC)

MATRIX: Final[Mapping[str, Mapping[tuple[Format, Format], CastRule]]] = MappingProxyType(
    {
        A2_A3: _by_pair(
            _rule(f.FP32, f.FP16, (*_M5, RoundMode.ODD), _RINT, _SEED),
            _rule(f.FP32, f.BF16, _M5, _RINT, _SEED),
            _rule(f.FP32, f.FP32, _M5, _RINT, _UPSTREAM),
            _rule(f.FP32, f.INT16, _M5, _TRUNC, _SEED),
            _rule(f.FP32, f.INT32, _M5, _TRUNC, _SEED),
            _rule(f.FP32, f.INT64, _M5, _TRUNC, _SEED),
            _rule(f.FP16, f.FP32, (), None, _SEED),
            _rule(f.FP16, f.INT32, _M5, _TRUNC, _SEED),
            _rule(f.FP16, f.INT16, _M5, _TRUNC, _SEED),
            _rule(f.FP16, f.INT8, _M5, _TRUNC, _SEED),
            _rule(f.FP16, f.UINT8, _M5, _TRUNC, _SEED),
            _rule(f.FP16, f.INT4, _M5, _TRUNC, _UPSTREAM),
            _rule(f.BF16, f.FP32, (), None, _SEED),
            _rule(f.BF16, f.INT32, _M5, _TRUNC, _SEED),
            _rule(f.INT32, f.FP32, _M5, _RINT, _SEED),
            _rule(f.INT32, f.FP16, (_RINT,), _RINT, _SEED_DEFAULTS, on=_SCALED),
            _rule(f.INT32, f.INT16, (), None, _SEED),
            _rule(f.INT32, f.INT64, (), None, _SEED),
            _rule(f.INT16, f.FP32, (), None, _SEED),
            _rule(f.INT16, f.FP16, _M5, _RINT, _SEED),
            _rule(f.INT64, f.FP32, _M5, _RINT, _SEED),
            _rule(f.INT64, f.INT32, (), None, _SEED),
            _rule(f.UINT8, f.FP16, (), None, _SEED),
            _rule(f.INT8, f.FP16, (), None, _SEED),
            _rule(f.INT4, f.FP16, (), None, _UPSTREAM),
        ),
        ASCEND_950: _by_pair(
            _rule_950(f.FP32, f.FP32, _M5, _RINT),
            _rule_950(f.FP32, f.FP16, (*_M5, RoundMode.ODD), _RINT),
            _rule_950(f.FP32, f.BF16, _M5, _RINT),
            _rule_950(f.FP32, f.INT64, _M5, _TRUNC),
            _rule_950(f.FP32, f.INT32, _M5, _TRUNC),
            _rule_950(f.FP32, f.INT16, _M5, _TRUNC),
            _rule_950(f.FP32, f.E4M3FN, _M5, _RINT, _FP8_MODES),
            _rule_950(f.FP32, f.E5M2, _M5, _RINT, _FP8_MODES),
            _rule_950(f.FP32, f.HF8, (_ROUND,), _ROUND),
            _rule_950(f.FP16, f.FP32, (), None),
            _rule_950(f.FP16, f.INT32, _M5, _TRUNC),
            _rule_950(f.FP16, f.INT16, _M5, _TRUNC),
            _rule_950(f.FP16, f.INT8, _M5, _TRUNC),
            _rule_950(f.FP16, f.UINT8, _M5, _TRUNC),
            _rule_950(f.FP16, f.HF8, (_ROUND,), _ROUND),
            _rule_950(f.BF16, f.FP32, (), None),
            _rule_950(f.BF16, f.FP16, _M5, _RINT),
            _rule_950(f.BF16, f.INT32, _M5, _TRUNC),
            _rule_950(f.BF16, f.E2M1, (_RINT,), _RINT, _FP4_MODES),
            _rule_950(f.BF16, f.E1M2, (_RINT,), _RINT, _FP4_MODES),
            _rule_950(f.INT64, f.FP32, _M5, _RINT),
            _rule_950(f.INT64, f.INT32, (), None),
            _rule_950(f.INT32, f.FP32, _M5, _RINT),
            _rule_950(f.INT32, f.FP16, (_RINT,), _RINT, _INT32_FP16, on=_SCALED),
            _rule_950(f.INT32, f.INT64, (), None),
            _rule_950(f.INT32, f.INT16, (), None),
            _rule_950(f.INT32, f.UINT16, (), None),
            _rule_950(f.INT32, f.UINT8, (), None),
            _rule_950(f.INT16, f.FP32, (), None),
            _rule_950(f.INT16, f.FP16, _M5, _RINT),
            _rule_950(f.INT16, f.INT32, (), None),
            _rule_950(f.INT16, f.UINT32, (), None),
            _rule_950(f.INT16, f.UINT8, (), None),
            _rule_950(f.INT8, f.FP16, (), None),
            _rule_950(f.INT8, f.INT32, (), None),
            _rule_950(f.INT8, f.INT16, (), None),
            _rule_950(f.UINT32, f.INT16, (), None),
            _rule_950(f.UINT32, f.UINT16, (), None),
            _rule_950(f.UINT32, f.UINT8, (), None),
            _rule_950(f.UINT8, f.FP16, (), None),
            _rule_950(f.UINT8, f.UINT16, (), None),
            _rule_950(f.E4M3FN, f.FP32, (), None),
            _rule_950(f.E5M2, f.FP32, (), None),
            _rule_950(f.HF8, f.FP32, (), None),
            _rule_950(f.E2M1, f.BF16, (), None),
            _rule_950(f.E1M2, f.BF16, (), None),
        ),
    }
)
"""By the instructions of a chip (`Chip.isa`), then by source and destination."""

Pair = tuple[Format, Format]

READ_OTHERWISE: Final[
    Mapping[str, Mapping[tuple[str, str], Mapping[Pair, Mapping[str, Any] | None]]]
] = {
    ASCEND_950: {
        (FP8_MODES.name, "rint"): {
            (f.FP32, dst): {"modes": (_RINT,)} for dst in (f.E4M3FN, f.E5M2)
        },
        (FP4_MODES.name, "five"): {(f.BF16, dst): {"modes": _M5} for dst in (f.E2M1, f.E1M2)},
        (INT32_FP16.name, "none"): {(f.INT32, f.FP16): None},
    },
}
"""Rows by family under readings that are not the default ones: their changed fields; None: no row.

A family that is not here has no readings.
"""


@functools.lru_cache(maxsize=256)
def rules_of(family: str, readings: Readings = ()) -> Mapping[Pair, CastRule]:
    """The rows of a family, by source and destination; none where it is unknown.

    Args:
        family: the instructions of a chip, `Chip.isa`.
        readings: those that are not the default ones.
    """
    rules = dict(MATRIX.get(family, {}))
    for reading in readings:
        for pair, fields in READ_OTHERWISE.get(family, {}).get(reading, {}).items():
            if fields is None:
                del rules[pair]
            else:
                rules[pair] = dataclasses.replace(rules[pair], **fields)
    return MappingProxyType(rules)


def cast_formats(family: str) -> frozenset[Format]:
    """The formats that the chips of a family convert from or to."""
    return frozenset(fmt for pair in MATRIX[family] for fmt in pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A cast, decided: its steps on the elements in UB, and its warnings.

    Attributes:
        rule: the row of the matrix.
        mode: the round mode that applies; None where nothing is rounded.
        steps: vector work on the elements in UB, in order.
        diagnostics: category and text of each warning.
        saturate: the satmode asked for is ON.
    """

    rule: CastRule
    mode: RoundMode | None
    steps: tuple[Step, ...]
    diagnostics: tuple[tuple[type[UserWarning], str], ...]
    saturate: bool = True

    @property
    def casts(self) -> tuple[CastStep, ...]:
        """The steps that convert."""
        return tuple(step for step in self.steps if isinstance(step, CastStep))

    @property
    def tmp_bits(self) -> int:
        """Scratch memory per element that the steps need."""
        return max((cast.dst.bits for cast in self.casts if cast.target is Operand.TMP), default=0)

    @property
    def begins_truncating(self) -> bool:
        """The control bit that keeps low bits is set before the first part of a tile."""
        first = self.steps[0]
        return isinstance(first, CastStep) and first.truncates

    @property
    def ends_on_scratch(self) -> bool:
        """The last step uses the scratch, which the first of the next part then must wait for."""
        last = self.steps[-1]
        used = (last.scratch,) if isinstance(last, LowByteStep) else (last.source, last.target)
        return Operand.TMP in used


def resolve(
    family: str,
    src: Format,
    dst: Format,
    mode: RoundMode | None = None,
    *,
    saturate: bool = True,
    strict: bool = False,
    controls: CastControls = DEFAULT_CONTROLS,
) -> Resolution:
    """Decide how a cast is carried out.

    Args:
        family: the instructions of the chip, `Chip.isa`.
        src: source format.
        dst: destination format.
        mode: None takes the default of the pair.
        saturate: False asks for the low bits of an integer result instead of clamping it.
        strict: refuse a mode that the pair lacks, instead of a diagnostic.
        controls: the control bits, which decide on what SaturationMode.OFF acts.

    Raises:
        UnsupportedCastError: the family has no such pair.
        CastModeError: the pair lacks the mode, under `strict`.
    """
    rules = rules_of(family, controls.readings)
    rule = rules.get((src, dst))
    if rule is None:
        raise unsupported(family, src.name, dst.name, controls.readings)
    diagnostics: list[tuple[type[UserWarning], str]] = []
    effective = rule.default if mode is None or not rule.modes else mode
    if rule.modes and effective not in rule.modes:
        lacks = (
            f"{rule} has no mode CAST_{mode}; it has {', '.join(f'CAST_{m}' for m in rule.modes)}"
        )
        if strict:
            raise CastModeError(lacks)
        effective = rule.default
        taken = f"{lacks}. The default CAST_{effective} is taken, as upstream does without a word"
        diagnostics.append((CastModeWarning, taken))
    if not saturate and not rule.has_satmode(controls):
        acting = (row for row in rules.values() if row.has_satmode(controls))
        pairs = ", ".join(map(str, acting))
        diagnostics.append(
            (
                SaturationModeWarning,
                f"SaturationMode.OFF does not act on {rule}: values out of range are treated as "
                f"with ON. It acts on {pairs}",
            )
        )
    steps = rule.off if rule.off and not saturate else rule.on
    return Resolution(
        rule=rule,
        mode=effective,
        steps=tuple(with_mode(step, effective) for step in steps),
        diagnostics=tuple(diagnostics),
        saturate=saturate,
    )


def unsupported(family: str, src: str, dst: str, readings: Readings = ()) -> UnsupportedCastError:
    """The error for a pair outside the matrix, by the names of its formats."""
    rules = rules_of(family, readings).values()
    targets = [rule.dst.name for rule in rules if rule.src.name == src]
    if targets:
        others = f"{src} converts to {', '.join(targets)}"
    else:
        sources = dict.fromkeys(rule.src.name for rule in rules)
        others = f"{src} converts to nothing; sources are {', '.join(sources) or 'none'}"
    has = [
        other
        for other, of in MATRIX.items()
        if any((rule.src.name, rule.dst.name) == (src, dst) for rule in of.values())
    ]
    if family in has:
        has = [f"{family} without options(readings={dict(readings)})"]
    elsewhere = f". Chips of {' and '.join(has)} cast it: options(chip=)" if has else ""
    return UnsupportedCastError(f"{family} does not cast {src} -> {dst}: {others}{elsewhere}")


def default_mode(src: Format | None, dst: Format | None) -> RoundMode:
    """The mode that CAST_NONE means where something is rounded."""
    if isinstance(dst, IntFormat):
        return RoundMode.TRUNC if isinstance(src, FloatFormat) else RoundMode.RINT
    is_tapered = dst is not None and bool(dst.dots)
    return RoundMode.ROUND if is_tapered else RoundMode.RINT


def with_mode(step: Step, mode: RoundMode | None) -> Step:
    """The step with the caller's mode, where it takes one."""
    if isinstance(step, CastStep) and step.takes_mode:
        return dataclasses.replace(step, mode=mode)
    return step
