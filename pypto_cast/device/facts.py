"""The findings of a device check: a record for each fact, and the file that holds them."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np

from pypto_cast.device.behaviour import CheckedCast, Mask, casts_of, family_of
from pypto_cast.device.repetition import Observation, Stability
from pypto_cast.report.report import Column, Fact, Report, Table, plain
from pypto_cast.report.text_format import printable, written
from simulator.numbers.formats import FORMATS
from tiling.input_files import document_bytes

Part = Literal["cast", "arithmetic", "cycles"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
FORMAT: Final = "pypto-cast device facts"
VERSION: Final = 3
_ASSUMED: Final = {"name": "fact", "assumed": "assumed"}
_MEASURED: Final = {
    **_ASSUMED,
    **{name: name for name in ("measured", "verdict", "stability", "tested", "touched")},
}
"""Columns of a table, and their headings."""
_MINOR: Final = ("assumed", "tested")


class Agreement(enum.Enum):
    """The verdict on one fact of a device."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_MEASURED = "not measured"

    @classmethod
    def of(cls, tested: int, touched: int) -> Agreement:
        """The verdict on so many results, of which so many differ from this package's."""
        if not tested:
            return cls.NOT_MEASURED
        return cls.DIFFERS if touched else cls.AGREES


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFact:
    """One fact about a device.

    Attributes:
        name: the behaviour it is about.
        assumed: what this package assumes.
        measured: what the device did, with an example where it differs; or why it was not asked.
        verdict: whether the two agree.
        tested: results that were compared.
        touched: those of them that differ from this package's.
        by_pair: of those, how many each cast has, such as "FP32 -> FP16 CAST_ODD", or each
            instruction or figure.
        example: the first of them, in words.
        stability: whether the device repeats its results; the worst of `varying`.
        varying: the casts, instructions or figures whose results it does not repeat, or not on
            every core and at every position: on what they depend.
        left: cases about it that have not run, or could not.
        results: for a cast that differs, by the sign of the sources for which it does: "negative",
            "positive": the one code that the device gave for all of them, or None for several.
        ulps: by format, the farthest that results were from the exact ones rounded once, in codes.
        exhausted: the formats of `ulps` of which every operand was measured.
        figures: measured numbers by name, in the units of the cost sets.
    """

    name: str
    assumed: str
    measured: str
    verdict: Agreement
    tested: int = 0
    touched: int = 0
    by_pair: dict[str, int] = dataclasses.field(default_factory=dict)
    example: str = ""
    stability: str = Stability.STABLE.value
    varying: dict[str, str] = dataclasses.field(default_factory=dict)
    left: int = 0
    results: dict[str, dict[str, int | None]] = dataclasses.field(default_factory=dict)
    ulps: dict[str, int] = dataclasses.field(default_factory=dict)
    exhausted: list[str] = dataclasses.field(default_factory=list)
    figures: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """True if every case about it has run."""
        return not self.left and self.verdict is not Agreement.NOT_MEASURED

    def document(self) -> dict[str, object]:
        """The fact as a JSON object."""
        return {**dataclasses.asdict(self), "verdict": self.verdict.value}

    def merged(self, other: DeviceFact) -> DeviceFact:
        """The fact with the findings of another case about it, which came after."""
        if not other.tested:
            return self
        if not self.tested:
            return other
        by_pair = dict(sorted((Counter(self.by_pair) + Counter(other.by_pair)).items()))
        tested, touched = self.tested + other.tested, sum(by_pair.values())
        example = self.example or other.example
        ulps = dict(self.ulps)
        for fmt, most in other.ulps.items():
            ulps[fmt] = max(ulps.get(fmt, 0), most)
        varying = dict(self.varying)
        for pair, words in other.varying.items():
            varying[pair] = Stability.worst([varying.get(pair, words), words])
        return DeviceFact(
            name=self.name,
            assumed=self.assumed,
            measured=_measured((), ulps, example),
            verdict=Agreement.of(tested, touched),
            tested=tested,
            touched=touched,
            by_pair=by_pair,
            example=example,
            stability=_worst(varying),
            varying=varying,
            results={**self.results, **other.results},
            ulps=ulps,
            exhausted=[*self.exhausted, *other.exhausted],
            figures={**self.figures, **other.figures},
        )


def _measured(words: Iterable[str], ulps: dict[str, int], example: str) -> str:
    far = ", ".join(f"{most} ulp in {fmt}" for fmt, most in ulps.items())
    return "; ".join(filter(None, (*words, far, example))) or "as assumed"


def _worst(varying: dict[str, str]) -> str:
    return Stability.of(Stability.worst(list(varying.values()))).value


@dataclass(slots=True, kw_only=True)
class Tally:
    """The findings so far about one fact.

    Attributes:
        name: of the fact.
        assumed: what this package assumes.
        tested: results that were compared.
        by_pair: how many differ, as in the fact.
        example: the first of them in words.
        varying: results that the device does not repeat, as in the fact.
    """

    name: str
    assumed: str
    tested: int = 0
    by_pair: Counter[str] = dataclasses.field(default_factory=Counter)
    example: str = ""
    varying: dict[str, str] = dataclasses.field(default_factory=dict)

    def vary(self, pair: str, words: str) -> None:
        """Note the stability of the results of a pair, in words."""
        worst = Stability.worst([self.varying.get(pair, words), words])
        if worst != Stability.STABLE.value:
            self.varying[pair] = worst

    def add(
        self,
        pair: str,
        here: Mask,
        differs: Mask,
        example: Callable[[int], str],
        seen: Observation | None = None,
    ) -> None:
        """Count results.

        Args:
            pair: under which those that differ are counted.
            here: the results that are about this fact, 1-D.
            differs: those that are not as assumed, as many.
            example: the words for one of them, by its place.
            seen: all runs of the results.
        """
        wrong = np.flatnonzero(here & differs)
        self.tested += int(np.count_nonzero(here))
        if seen is not None:
            self.vary(pair, seen.stability(here))
        if wrong.size:
            self.by_pair[pair] += wrong.size
            self.example = self.example or example(int(wrong[0]))

    def fact(self, *measured: str, **details: Any) -> DeviceFact:
        """The fact, with further words and details; it differs if any result is touched."""
        touched = sum(self.by_pair.values())
        words = _measured(measured, details.get("ulps", {}), self.example)
        return DeviceFact(
            name=self.name,
            assumed=self.assumed,
            measured=words if self.tested else "no case shows it",
            verdict=Agreement.of(self.tested, touched),
            tested=self.tested,
            touched=touched,
            by_pair=dict(self.by_pair),
            example=self.example,
            stability=_worst(self.varying),
            varying=dict(self.varying),
            **details,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDescription:
    """The device, software and day of a check; nothing of it names a user or a host.

    Attributes:
        chip: its name, as the driver calls it.
        cann: version of CANN.
        driver: version of the driver.
        torch_npu: version of torch_npu.
        library_sha256: of the library that ran the casts.
        pypto_cast: version of this package.
        date: the day of the check, UTC.
    """

    chip: str
    cann: str
    driver: str
    torch_npu: str
    library_sha256: str
    pypto_cast: str
    date: str

    @property
    def family(self) -> str:
        """The family of its chip."""
        return family_of(self.chip)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """The progress of a check.

    Attributes:
        parts: that it is to measure.
        exhaustive: all codes of 32-bit sources.
        random_codes: of larger sources, where it is not.
        steps: how many there are.
        done: those that are measured, in the order of the check.
        failed: those that were begun and could not be measured, and why.
    """

    parts: list[str]
    exhaustive: bool
    random_codes: int
    steps: int
    done: list[str] = dataclasses.field(default_factory=list)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return len(self.done) == self.steps

    def __str__(self) -> str:
        if self.is_whole:
            return f"all {self.steps} steps are measured"
        failed = f", {len(self.failed)} could not be" if self.failed else ""
        return f"{len(self.done)} of {self.steps} steps are measured{failed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """The facts of one device, and how far the check is that measured them, if that is known."""

    device: DeviceDescription
    facts: tuple[DeviceFact, ...]
    run: CheckRun | None = None

    def standing(self, names: Collection[str]) -> str:
        """The standing of results that rest on some facts, with chip and date.

        They are measured if every one of the facts is in the file, with all its cases.
        """
        whole = {fact.name for fact in self.facts if fact.is_whole}.intersection(names)
        where = f"on {self.device.chip}, {self.device.date}"
        if len(whole) == len(names):
            return f"measured {where}"
        return f"measured in part {where}: {len(whole)} of {len(names)} facts"

    @property
    def differ(self) -> bool:
        """True if any fact differs from its assumption."""
        return any(fact.verdict is Agreement.DIFFERS for fact in self.facts)

    def document(self) -> dict[str, object]:
        """Everything as a JSON object."""
        facts = [fact.document() for fact in self.facts]
        device = dataclasses.asdict(self.device)
        run = self.run and dataclasses.asdict(self.run)
        return {"format": FORMAT, "version": VERSION, "device": device, "run": run, "facts": facts}

    def to_json(self) -> bytes:
        """The content of a facts file."""
        return (json.dumps(self.document(), indent=2, allow_nan=False) + "\n").encode()


def facts_report(
    facts: Iterable[DeviceFact],
    device: DeviceDescription | None = None,
    outputs: Sequence[object] = (),
    run: CheckRun | None = None,
) -> Report:
    """A row for each fact, and below the device on which they were measured.

    Its JSON is a facts file if there is a device.

    Args:
        facts: in their order.
        device: None: the facts are assumed.
        outputs: files that were written.
        run: how far the check is.
    """
    people = _ASSUMED
    known: tuple[Fact, ...] = ()
    about = "no device was measured"
    if device is not None:
        people = _MEASURED
        progress = run and dataclasses.asdict(run)
        known = plain(
            format=FORMAT, version=VERSION, device=dataclasses.asdict(device), run=progress
        )
        about = (
            f"measured on {device.chip}, {device.date}: CANN {device.cann}, driver "
            f"{device.driver}, torch_npu {device.torch_npu}, library {device.library_sha256[:12]}"
        )
    names = [field.name for field in dataclasses.fields(DeviceFact)]
    table = Table(
        key="facts",
        caption="Facts",
        columns=tuple(
            Column(key=name, heading=people.get(name), is_minor=name in _MINOR) for name in names
        ),
        rows=[tuple(fact.document().values()) for fact in facts],
    )
    return Report(
        kind="device-check",
        title="",
        facts=known,
        tables=(table,),
        notes=(printable(about), *([printable(str(run))] if run else []), *written(outputs)),
    )


def read_facts(path: Path) -> DeviceFacts:
    """Read a facts file; see `facts_of`.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no facts.
    """
    return facts_of(path, document_bytes(path))


def facts_of(path: Path, content: bytes) -> DeviceFacts:
    """Take the content of a facts file apart; `path` is for the errors.

    Raises:
        ValueError: it is cut, no facts file, of another version, or holds what cannot be; the text
            names it.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no whole facts file: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is no facts file: pypto-cast device-check --output writes one")
    if document.get("version") != VERSION:
        raise ValueError(
            f"{path} is of version {document.get('version')!r}, this package reads {VERSION}: run "
            "pypto-cast device-check again"
        )
    device = document.get("device")
    names = [field.name for field in dataclasses.fields(DeviceDescription)]
    if not isinstance(device, dict) or sorted(device) != sorted(names):
        raise ValueError(f"{path}: device must have {', '.join(names)}")
    if not all(isinstance(text, str) for text in device.values()):
        raise ValueError(f"{path}: everything in device must be text")
    try:
        datetime.date.fromisoformat(device["date"])
    except ValueError:
        raise ValueError(f"{path}: {device['date']!r} is no date such as 2026-01-31") from None
    found = document.get("facts")
    if not isinstance(found, list) or not found:
        raise ValueError(f"{path}: facts must be a list of facts")
    casts = casts_of(family_of(device["chip"]))
    facts = tuple(_checked_fact(path, one, casts) for one in found)
    if len({fact.name for fact in facts}) < len(facts):
        raise ValueError(f"{path} has a fact twice")
    run = _checked_run(path, document.get("run"))
    return DeviceFacts(device=DeviceDescription(**device), facts=facts, run=run)


def _checked_run(path: Path, run: Any) -> CheckRun | None:
    if run is None:
        return None
    names = [field.name for field in dataclasses.fields(CheckRun)]
    if not isinstance(run, dict) or sorted(run) != sorted(names):
        raise ValueError(f"{path}: run must have {', '.join(names)}")
    done, failed, counts = run["done"], run["failed"], (run["random_codes"], run["steps"])
    if (
        not isinstance(run["parts"], list)
        or not set(map(str, run["parts"])) <= set(PARTS)
        or not isinstance(run["exhaustive"], bool)
        or not all(type(count) is int and count >= 0 for count in counts)
        or not isinstance(done, list)
        or not isinstance(failed, dict)
        or not all(isinstance(text, str) for text in (*done, *failed, *failed.values()))
        or len({*done, *failed}) != len(done) + len(failed)
        or len(done) + len(failed) > run["steps"]
    ):
        raise ValueError(f"{path}: run is impossible: {printable(str(run))[:200]}")
    return CheckRun(**run)


def _checked_fact(path: Path, one: Any, casts: Mapping[str, CheckedCast]) -> DeviceFact:
    names = [field.name for field in dataclasses.fields(DeviceFact)]
    if not isinstance(one, dict) or sorted(one) != sorted(names):
        raise ValueError(f"{path}: a fact must have {', '.join(names)}")
    label = f"{path}, fact {one['name']!r}"
    if not all(isinstance(one[text], str) for text in ("name", "assumed", "measured", "example")):
        raise ValueError(f"{label}: name, assumed, measured and example must be text")
    if one["verdict"] not in [verdict.value for verdict in Agreement]:
        raise ValueError(f"{label}: {one['verdict']!r} is no verdict")
    by_pair = one["by_pair"]
    counts = [one["tested"], one["touched"], one["left"]]
    counts += by_pair.values() if isinstance(by_pair, dict) else [None]
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError(f"{label}: tested, touched, left and by_pair must be counts")
    _check_measurements(label, one, casts)
    _check_stability(label, one)
    fact = DeviceFact(**{**one, "verdict": Agreement(one["verdict"])})
    if fact.touched > fact.tested or sum(by_pair.values()) != fact.touched:
        raise ValueError(
            f"{label} is impossible: {fact.touched} of {fact.tested} results differ, "
            f"{sum(by_pair.values())} by pair"
        )
    if fact.verdict is not Agreement.of(fact.tested, fact.touched):
        raise ValueError(
            f"{label} is impossible: {fact.touched} of {fact.tested} results differ, but its "
            f"verdict is {fact.verdict.value!r}"
        )
    return fact


def _check_stability(label: str, one: dict[str, Any]) -> None:
    """Refuse words that name no stability, and a worst one that is not theirs."""
    varying = one["varying"]
    try:
        worst = _worst(varying) if isinstance(varying, dict) else ""
    except (ValueError, AttributeError):
        worst = ""
    if not worst or worst != one["stability"]:
        raise ValueError(f"{label}: stability is {one['stability']!r}, varying is {varying!r}")


def _check_measurements(label: str, one: dict[str, Any], casts: Mapping[str, CheckedCast]) -> None:
    """Refuse codes that a format lacks, errors that are no counts, figures that no clock shows."""
    for name in ("results", "ulps", "figures"):
        if not isinstance(one[name], dict):
            raise ValueError(f"{label}: {name} must be an object")
    for cast, codes in one["results"].items():
        if cast not in casts:
            raise ValueError(f"{label}: there is no cast {cast!r}")
        if not isinstance(codes, dict) or not set(codes) <= {"negative", "positive"}:
            raise ValueError(f"{label}: the results of {cast} must be negative, positive")
        dst = casts[cast].dst
        held = [code for code in codes.values() if code is not None]
        if not all(type(code) is int and 0 <= code < 1 << dst.bits for code in held):
            raise ValueError(f"{label} is impossible: {codes} are no codes of {dst}")
    for fmt, ulps in one["ulps"].items():
        if fmt not in FORMATS or type(ulps) is not int or not 0 <= ulps < 1 << FORMATS[fmt].bits:
            raise ValueError(f"{label} is impossible: {ulps!r} ulp in {fmt}")
    exhausted = one["exhausted"]
    if not isinstance(exhausted, list) or not all(name in [*one["ulps"]] for name in exhausted):
        raise ValueError(f"{label}: exhausted must list formats of ulps")
    for name, figure in one["figures"].items():
        is_number = type(figure) in (int, float)
        if not is_number or not math.isfinite(figure) or figure < 0:
            raise ValueError(f"{label} is impossible: {name} is {figure!r}")
