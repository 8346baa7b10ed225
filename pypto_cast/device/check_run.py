"""A device check from its first step to its last: all that is measured is kept after each.

A step that fails is named and the next one follows; a device that has failed is opened anew. After
some failures one after another the check ends. What was measured until then can be resumed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from pypto_cast.device.check import assumed_facts, reasons_in
from pypto_cast.device.check_steps import CheckPlan, CheckStep
from pypto_cast.device.facts import (
    PARTS,
    CheckRun,
    DeviceDescription,
    DeviceFact,
    DeviceFacts,
)
from pypto_cast.report.text_format import printable
from tiling.chips import CHIPS

_MOST_FAILURES: Final = 3
"""Of a device, one after another; then it is taken to be gone."""


class StepError(RuntimeError):
    """A step that could not be measured.

    Attributes:
        is_gone: the device answers nothing more until it is opened anew.
    """

    def __init__(self, text: str, *, is_gone: bool) -> None:
        super().__init__(text)
        self.is_gone = is_gone


class DeviceGoneError(RuntimeError):
    """The device failed several times one after another."""


class OpenDevice(Protocol):
    """A device that measures steps."""

    @property
    def description(self) -> DeviceDescription: ...

    def measure(self, step: CheckStep) -> tuple[DeviceFact, ...]:
        """Measure a step.

        Raises:
            StepError: it could not be.
        """

    def close(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class DeviceCheck:
    """A check under way.

    Attributes:
        plan: what it is to measure.
        open_device: opens the device, at first and after it has failed.
        keep: is given everything that is known, after each step.
        tell: is told of each step before it: the results so far, those of all steps, its name.
        facts: measured so far, by name.
        run: how far it is.
        device: of which the facts are.
    """

    plan: CheckPlan
    open_device: Callable[[], OpenDevice]
    keep: Callable[[DeviceFacts], object]
    tell: Callable[[int, int, str], object] = lambda done, total, name: None
    facts: dict[str, DeviceFact] = field(default_factory=dict)
    run: CheckRun | None = None
    device: DeviceDescription | None = None

    def resume(self, earlier: DeviceFacts) -> None:
        """Take over the facts of an earlier run of the same plan."""
        assert earlier.run is not None
        self.device = earlier.device
        self.run = dataclasses.replace(earlier.run, done=list(earlier.run.done), failed={})
        self.facts = {fact.name: fact for fact in earlier.facts if fact.tested}

    def measure(self) -> DeviceFacts:
        """Measure all that is left.

        Raises:
            DeviceGoneError: the device failed several times one after another.
            ValueError: the device is another than that of the facts so far.
        """
        device = self.open_device()
        try:
            self._begin(device.description)
            steps = self._steps
            total, failures = sum(step.results for step in steps), 0
            assert self.run is not None
            so_far = sum(step.results for step in steps if step.name in self.run.done)
            if not steps:  # such as the cycles of a 950: the file says why
                self.keep(self.known())
            for step in steps:
                if step.name in self.run.done:
                    continue
                self.tell(so_far, total, step.name)
                try:
                    self._add(step, device.measure(step))
                    self.keep(self.known())
                    failures = 0
                except StepError as error:
                    self.run.failed[step.name] = str(error)
                    self.keep(self.known())  # the device may not open again
                    failures += error.is_gone
                    if failures == _MOST_FAILURES:
                        raise DeviceGoneError(
                            f"the device failed in {failures} steps one after another, at last in "
                            f"{step.name}: {error}. {self.run}; --resume goes on"
                        ) from error
                    if error.is_gone:
                        device.close()
                        device = self.open_device()
                so_far += step.results
            return self.known()
        finally:
            device.close()

    def known(self) -> DeviceFacts:
        """All facts of the plan: those measured so far, and the others as they are assumed."""
        assert self.run is not None
        assert self.device is not None
        run = dataclasses.replace(self.run, done=list(self.run.done), failed=dict(self.run.failed))
        return DeviceFacts(device=self.device, facts=tuple(self._all_facts()), run=run)

    @property
    def _steps(self) -> tuple[CheckStep, ...]:
        assert self.device is not None
        return self.plan.steps(self.device.chip)

    def _begin(self, found: DeviceDescription) -> None:
        if self.device is None:
            self.device = found
        if found != dataclasses.replace(self.device, date=found.date):
            raise ValueError(
                f"the facts so far are of another device or software: {self.device}; here is "
                f"{found}"
            )
        if self.run is None:
            self.run = CheckRun(
                parts=list(self.plan.parts),
                exhaustive=self.plan.exhaustive,
                random_codes=self.plan.random_codes,
                steps=len(self._steps),
            )

    def _add(self, step: CheckStep, facts: tuple[DeviceFact, ...]) -> None:
        assert self.run is not None
        for fact in facts:
            if fact.tested:
                before = self.facts.get(fact.name)
                self.facts[fact.name] = fact if before is None else before.merged(fact)
        self.run.done.append(step.name)

    def _all_facts(self) -> Iterator[DeviceFact]:
        assert self.run is not None
        assert self.device is not None
        left: Counter[str] = Counter()
        why: dict[str, str] = {}
        for step in self._steps:
            if step.name not in self.run.done:
                left.update(step.facts)
                text = self.run.failed.get(step.name, "its steps have not run")
                why |= {name: text for name in step.facts if name not in why}
        for part in self.plan.parts:
            for assumed in assumed_facts(part, family=self.device.family):
                fact = self.facts.get(assumed.name, assumed)
                if not fact.tested and fact.name not in reasons_in(self.device.family):
                    text = (
                        f"not measured: {why[fact.name]}"
                        if fact.name in why
                        else "no case shows it"
                    )
                    fact = dataclasses.replace(fact, measured=text)
                yield dataclasses.replace(fact, left=left[fact.name])


def check_resumable(earlier: DeviceFacts, plan: CheckPlan, version: str) -> None:
    """Refuse to go on with a file whose steps or facts are not those of this package.

    Args:
        earlier: the content of the file.
        plan: the plan where the command line says nothing else.
        version: of this package.

    Raises:
        ValueError: the file is of another chip, package or plan, or does not fit together; the text
            says in what.
    """
    run, device = earlier.run, earlier.device
    assert run is not None
    wrong: list[str] = []
    if device.pypto_cast != version:
        wrong.append(f"it is of pypto_cast {device.pypto_cast}, this is {version}")
    elif device.chip not in CHIPS:
        wrong.append(f"there are no kernels for {device.chip}, only for {', '.join(CHIPS)}")
    else:
        wrong += _strange(earlier, run, plan_of(run, plan), plan.random_codes)
    if wrong:
        raise ValueError(
            f"the check cannot go on: {printable(wrong[0])}; begin it anew with --force"
        )


def _strange(
    earlier: DeviceFacts, run: CheckRun, plan: CheckPlan, random_codes: int
) -> Iterator[str]:
    """The ways in which a file is none of a check by a plan."""
    chip, family = earlier.device.chip, earlier.device.family
    steps = {step.name: step for step in plan.steps(chip)}
    if not run.parts or run.parts != list(plan.parts) or run.random_codes != random_codes:
        yield f"it is of parts {run.parts} with {run.random_codes} random codes"
    if run.steps != len(steps):
        yield f"it has {run.steps} steps, and this package has {len(steps)}"
    if unknown := {*run.done, *run.failed} - set(steps):
        yield f"it has steps that this package has not, such as {min(unknown)!r}"
        return
    left = Counter(
        name for step in steps.values() if step.name not in run.done for name in step.facts
    )
    asked = {name for step in run.done for name in steps[step].facts}
    known = {fact.name: fact for part in plan.parts for fact in assumed_facts(part, family=family)}
    found = {fact.name: fact for fact in earlier.facts}
    if known.keys() != found.keys():
        yield f"its facts are not those of the check: {min(known.keys() ^ found.keys())!r}"
        return
    for name, fact in found.items():
        if fact.assumed != known[name].assumed:
            yield f"its fact {name!r} has another assumption, {fact.assumed!r}"
        if fact.left != left[name] or (fact.tested and name not in asked):
            yield f"its fact {name!r} does not fit its steps"


def plan_of(run: CheckRun, plan: CheckPlan) -> CheckPlan:
    """A plan as a check was begun with."""
    return dataclasses.replace(
        plan,
        parts=tuple(part for part in PARTS if part in run.parts),
        exhaustive=run.exhaustive,
        random_codes=run.random_codes,
    )
