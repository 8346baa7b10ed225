"""A measured device as the simulator follows it: corrected casts, bounds of errors, assumptions."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ascend_kernels.matrix import Resolution
from pypto_cast.call_sites import warn_caller
from pypto_cast.device.behaviour import (
    BEHAVIOURS,
    CheckedCast,
    behaviours_in,
    behaviours_of,
    casts_of,
    is_negative,
)
from pypto_cast.device.cases import NIBBLE_FACTS, SATMODE, SATMODE_FACTS, SHAPE_FACTS
from pypto_cast.device.facts import Agreement, DeviceFact, DeviceFacts, facts_of
from pypto_cast.device.unasked import unasked_for
from simulator.arithmetic import OPERATIONS
from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_CASTS,
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_IEEE_OVERFLOW,
    ASSUME_NAN_PATTERN,
    ASSUME_ODD_UNDERFLOW,
    ASSUME_RNE,
    ASSUME_SIGN_OF_ZERO,
    ASSUME_STABLE_SORT,
    ASSUME_SUM_ORDER,
    DEFAULT,
    Trust,
)
from simulator.corrections import Corrections
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FORMATS, Codes, FloatFormat
from tiling.chips import Standing
from tiling.cost import STARTUP_RULE, CostParameters
from tiling.cost_file import cost_set_of
from tiling.input_files import document_bytes

_PIECE_ELEMS: Final = 1 << 15
_PLACES: Final = MappingProxyType({behaviour.name: n for n, behaviour in enumerate(BEHAVIOURS)})
CLOCK: Final = "system clock"
"""The fact that all cycles rest on."""
OPERATION_FACTS: Final = MappingProxyType(
    {
        "vadd": "add",
        "vsub": "sub",
        "vmul": "mul",
        "vdiv": "div",
        "vsqrt": "sqrt",
        "vexp": "exp",
        "vln": "log",
        "vrsqrt": "rsqrt",
    }
)
"""The operation whose error each fact about an instruction tells."""
SUBNORMALS: Final = "subnormals in arithmetic"
SUM_ORDER: Final = "order of vcadd"
SPECIALS: Final = "special values of arithmetic"
AUTOCAST: Final = "FP16 of AutoCast"
SORTED_SCORES: Final = "sorts and merges"
SORT_ORDER: Final = "equal elements in a sort"
MERGE_ORDER: Final = "equal elements in a merge"
ARG_ORDER: Final = "equal elements of argmax and argmin"
_ARITHMETIC_RESULT_FACTS: Final = (
    *(*OPERATION_FACTS, SUBNORMALS, SPECIALS, SUM_ORDER),
    *(AUTOCAST, SORTED_SCORES, SORT_ORDER, MERGE_ORDER, ARG_ORDER),
)


def cast_result_facts(family: str) -> tuple[str, ...]:
    """The facts that a cast's results rest on, on chips of a family."""
    own = (*SHAPE_FACTS, *SATMODE_FACTS[family])
    return (*behaviours_in(family), NIBBLE_FACTS[family], *own)


def result_facts(family: str) -> tuple[str, ...]:
    """The facts that results rest on in which there is arithmetic."""
    return (*cast_result_facts(family), *_ARITHMETIC_RESULT_FACTS)


ASSUMPTION_FACTS: Final = MappingProxyType(
    {
        ASSUME_RNE: ("vadd", "vsub", "vmul"),
        ASSUME_GRADUAL_UNDERFLOW: (SUBNORMALS,),
        ASSUME_SUM_ORDER: (SUM_ORDER,),
        ASSUME_STABLE_SORT: (SORT_ORDER, MERGE_ORDER, ARG_ORDER),
    }
)
"""The facts that an assumption stands and falls with."""
CAST_FACTS: Final = MappingProxyType(
    {
        ASSUME_IEEE_OVERFLOW: (
            *("overflow of CAST_ODD", "overflow under directed rounding"),
            "overflow to nearest",
        ),
        ASSUME_NAN_PATTERN: ("NaN pattern",),
        ASSUME_GRADUAL_CASTS: ("subnormal inputs", "subnormal results"),
        ASSUME_SIGN_OF_ZERO: ("sign of zero",),
        ASSUME_ODD_UNDERFLOW: ("underflow of CAST_ODD",),
    }
)
"""The behaviours that a chosen rule of casts is measured by; casts follow those that differ."""
_Rule = tuple[int, Mapping[str, int]]
"""The place of a behaviour, and the code of each sign."""


class DeviceFactsWarning(UserWarning):
    """A measured device does something that the simulator cannot follow; it keeps its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceModel:
    """The facts of a device in the form that the simulator takes.

    Attributes:
        facts: as measured.
        corrections: the casts that the device carries out in its own way.
        unfollowed: what differs and is not followed, a line each.
        cost_set: the default one with the figures that were measured; None: none was.
    """

    facts: DeviceFacts
    corrections: Corrections
    unfollowed: tuple[str, ...]
    cost_set: CostParameters | None

    def __reduce__(self) -> tuple[Callable[[DeviceFacts], DeviceModel], tuple[DeviceFacts]]:
        return model_from, (self.facts,)

    def __str__(self) -> str:
        family = self.facts.device.family
        return self.facts.standing((*result_facts(family), *unasked_for(family, None)))

    def standing(self, casts: Iterable[Resolution], *, is_computed: bool = False) -> str:
        """The standing of a result.

        A round mode that no case asks a device for is one of the facts that it rests on.

        Args:
            casts: those that made it.
            is_computed: arithmetic made it too.
        """
        family = self.facts.device.family
        unasked = (name for each in casts for name in unasked_for(family, each))
        names = result_facts(family) if is_computed else cast_result_facts(family)
        return self.facts.standing((*names, *dict.fromkeys(unasked)))

    def chip_for(self, asked: str | None) -> str:
        """The chip to plan for: the measured one.

        Raises:
            ValueError: another one is asked for.
        """
        chip = self.facts.device.chip
        if asked not in (None, chip):
            raise ValueError(
                f"the facts are of {chip}, not of {asked}: leave the chip out, or measure a {asked}"
            )
        return chip

    def trusting(self, trust: Trust) -> Trust:
        """A choice of trust, with measurements in place of assumptions.

        A part of the cases that agrees makes nothing an assumption that was none.
        """
        assumed = set(trust.assumed)
        whole = {fact.name for fact in self.facts.facts if fact.is_whole}
        for assumption, names in ASSUMPTION_FACTS.items():
            if any(self._verdict(name) is Agreement.DIFFERS for name in names):
                assumed.discard(assumption)
            elif whole.issuperset(names):
                assumed.add(assumption)
        for assumption, names in CAST_FACTS.items():
            unfollowed = any(each.startswith(f"{n}: ") for n in names for each in self.unfollowed)
            if unfollowed:
                assumed.discard(assumption)
            elif whole.issuperset(names):
                assumed.add(assumption)
        return dataclasses.replace(
            trust,
            name=f"{trust.name}, {self}",
            assumed=frozenset(assumed),
            measured=MappingProxyType(self._ulps()),
        )

    def _verdict(self, name: str) -> Agreement:
        found = (fact.verdict for fact in self.facts.facts if fact.name == name)
        return next(found, Agreement.NOT_MEASURED)

    def _ulps(self) -> dict[tuple[str, FloatFormat], int]:
        """Bounds by operation and format; a sample of the operands never narrows one."""
        found = {}
        for fact in self.facts.facts:
            operation = OPERATION_FACTS.get(fact.name)
            if operation is None:
                continue
            for name, ulps in fact.ulps.items():
                if f"{fact.name} {name}" in fact.varying:
                    continue
                if not _is_rounding(name, ulps):
                    continue
                fmt = FORMATS[name]
                assert isinstance(fmt, FloatFormat)
                bound = OPERATIONS[operation].ulps(fmt, DEFAULT)
                is_whole = name in fact.exhausted
                found[operation, fmt] = ulps if is_whole else max(ulps, bound)
        return found


def model_from(facts: DeviceFacts) -> DeviceModel:
    """Make the facts of a device into a model that the simulator takes.

    A cast is followed where the device gives one code for all negative sources of a fact and one
    for all positive: NaN patterns, overflow, underflow, zeros, what is flushed or clamped. A cast
    of several steps follows from its steps. A correction holds for CTRL[48] and for SatMode alike;
    a pair that they have otherwise is not followed.

    Raises:
        ValueError: figures that no cost set has.
    """
    casts = casts_of(facts.device.family)
    unlike = {
        " ".join(name.split()[:3])
        for fact in facts.facts
        if fact.name == SATMODE
        for name in {*fact.by_pair, *fact.varying}
    }
    rules: dict[Conversion, tuple[CheckedCast, list[_Rule]]] = {}
    unfollowed: list[str] = []
    for fact in facts.facts:
        place = _PLACES.get(fact.name)
        if place is None:
            unfollowed += _unfollowed(fact, facts)
            continue
        for name in sorted({*fact.by_pair, *fact.varying}):
            cast, known = casts.get(name), _known_codes(fact, name)
            if cast is not None and str(cast.resolution.rule) in unlike:
                known = None
            if cast is None or len(cast.conversions) > 1 or known is None:
                unfollowed.append(f"{fact.name}: {name}")
            if cast is not None and len(cast.conversions) == 1 and known:
                rules.setdefault(cast.conversions[0], (cast, []))[1].append((place, known))
    by_conversion = {
        conversion: functools.partial(_correct, cast, tuple(found))
        for conversion, (cast, found) in rules.items()
    }
    return DeviceModel(
        facts=facts,
        corrections=Corrections(by_conversion=MappingProxyType(by_conversion)),
        unfollowed=tuple(unfollowed),
        cost_set=cost_set_of(document) if (document := cost_document(facts)) else None,
    )


def _known_codes(fact: DeviceFact, name: str) -> dict[str, int] | None:
    """The code that a cast gives for each sign where it differs; None if there is not one for each.

    One that the device does not repeat is none.
    """
    codes = fact.results.get(name, {})
    known = {sign: code for sign, code in codes.items() if code is not None}
    is_one = known and len(known) == len(codes) and name not in fact.varying
    return known if is_one and not BEHAVIOURS[_PLACES[fact.name]].is_rounding else None


def _unfollowed(fact: DeviceFact, facts: DeviceFacts) -> Iterator[str]:
    """The pairs of a fact about something else than codes that are not followed.

    Bounds of errors and figures are followed; an order of sums, of equal elements, and subnormal
    numbers are, as they are not assumed any more. What the device does not repeat is not followed.
    """
    if fact.name in itertools.chain.from_iterable(ASSUMPTION_FACTS.values()) and (
        fact.name not in OPERATION_FACTS
    ):
        return
    pairs = {*fact.by_pair, *fact.varying}
    if fact.name in OPERATION_FACTS:
        far = (name for name, ulps in fact.ulps.items() if not _is_rounding(name, ulps))
        pairs = {*fact.varying, *(f"{fact.name} {name}" for name in far)}
    elif fact.figures and _clock_holds(facts):
        pairs = {*fact.varying, *(fact.by_pair.keys() - fact.figures.keys())}  # no cost set has 0
    for pair in sorted(pairs):
        yield f"{fact.name}: {pair}"


def _is_rounding(name: str, ulps: int) -> bool:
    """True of errors that a bound in ulp can have: less than half a binade of the format.

    NaN in place of a number is farther off, and so is another sign.
    """
    fmt = FORMATS[name]
    return isinstance(fmt, FloatFormat) and 2 * ulps < 1 << fmt.man_bits


def _clock_holds(facts: DeviceFacts) -> bool:
    return all(fact.verdict is not Agreement.DIFFERS for fact in facts.facts if fact.name == CLOCK)


def model_of_file(path: Path) -> DeviceModel:
    """Read a facts file and follow it; see `read_facts` and `model_from`.

    Warns:
        DeviceFactsWarning: what differs and is not followed.
    """
    followed = _followed(path, document_bytes(path))
    if followed.unfollowed:
        by_fact: dict[str, list[str]] = {}
        for line in followed.unfollowed:
            fact, _, pair = line.partition(": ")
            by_fact.setdefault(fact, []).append(pair)
        words = "; ".join(
            f"{fact} ({pairs[0]}{f' and {len(pairs) - 1} more' if pairs[1:] else ''})"
            for fact, pairs in by_fact.items()
        )
        text = f"{path}: the simulator does not follow the device in {words}"
        warn_caller(text, DeviceFactsWarning)
    return followed


@functools.lru_cache(maxsize=8)
def _followed(path: Path, content: bytes) -> DeviceModel:
    facts = facts_of(path, content)
    try:
        return model_from(facts)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def cost_document(facts: DeviceFacts) -> dict[str, Any]:
    """The measured figures as the TOML file of a cost set holds them; empty without figures."""
    figures: dict[str, float] = {
        name: bool(x) if name == STARTUP_RULE else x
        for fact in facts.facts
        if not fact.varying and _clock_holds(facts)
        for name, x in fact.figures.items()
    }
    if not figures:
        return {}
    device = facts.device
    source = f"device-check on {device.chip}, {device.date}"
    return {
        "name": f"{device.chip} {device.date}",
        "standing": Standing.MEASURED.value,
        "figures": figures,
        "sources": dict.fromkeys(figures, source),
    }


def _correct(cast: CheckedCast, rules: tuple[_Rule, ...], codes: Codes, out: Codes) -> None:
    for start in range(0, codes.size, _PIECE_ELEMS):
        sources, results = (x[start : start + _PIECE_ELEMS] for x in (codes, out))
        behaviours = behaviours_of(cast, sources, results)
        negative = is_negative(sources, cast.src)
        for place, by_sign in rules:
            here = behaviours == place
            for sign, code in by_sign.items():
                results[here & (negative if sign == "negative" else ~negative)] = code
