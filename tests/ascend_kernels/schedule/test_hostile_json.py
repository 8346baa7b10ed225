"""JSON that is no schedule, or a damaged one: an error of one line that says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.programs.upstream_dumps import unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.schedule import Schedule

Function = dict[str, Any]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return unpacked("two_tile_shapes", tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "no schedule of version 1"),
        ('{"version": 2, "schedule": {}}', "no schedule of version 1"),
        (
            '{"version": 1, "schedule": {"kernel": 3}}',
            "schedule.kernel: printable text is wanted, not 3",
        ),
        ('{"version": 1, "schedule": {"kernel": "k"}}', "missing"),
        ('{"version": 1, "schedule": {"nonsense": 3}}', "a Schedule is wanted"),
        ('{"version": 1}', "a Schedule is wanted"),
        ("[]", "no schedule of version 1"),
        ("no JSON", "Expecting value"),
        ('{"version": 1, "schedule": ' + '{"steps":[' * 9_999, "nested too deeply|Expecting"),
        ('{"version": NaN}', "no schedule of version 1"),
    ],
)
def test_json_that_is_no_schedule_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Schedule.from_json(text)


PLAIN_DAMAGES: dict[str, tuple[Callable[[Function], object], str]] = {
    "chip": (lambda whole: whole.update(chip="Z80"), "unknown chip 'Z80'"),
    "dtype": (
        lambda whole: whole["parameters"][0].update(format="FP7"),
        r"schedule.parameters\[0\].format: a format is wanted, not 'FP7'",
    ),
    "one name": (
        lambda whole: whole["parameters"][0].update(name=whole["parameters"][1]["name"]),
        "two parameters have one name",
    ),
    "no elements": (
        lambda whole: whole["parameters"][0].update(shape=[0, 4]),
        r"has the shape \[0, 4\]",
    ),
    "buffer": (
        lambda whole: whole["leaves"][0]["operations"][0]["outputs"][0].update(buffer=99),
        "operation 0 COPY_IN: buffer 99 of",
    ),
    "life": (
        lambda whole: whole["leaves"][0]["buffers"][0].update(first=3),
        "it lives from operation 3 to",
    ),
    "no flag": (
        lambda whole: whole["leaves"][0]["operations"][0].update(opcode="BAR.V"),
        "operation 0 BAR.V: it has no flag",
    ),
    "pipe": (
        lambda whole: whole["leaves"][0]["operations"][0].update(pipe="V"),
        "operation 0 COPY_IN: it is of pipe 'V', and the opcode of MTE2",
    ),
    "core": (
        lambda whole: whole["leaves"][0].update(core="GPU"),
        "is of core 'GPU'; there are AIV, AIC, HUB",
    ),
    "hub": (
        lambda whole: whole["leaves"][0].update(core="HUB"),
        "operation 0 COPY_IN: it has tiles in UB, and on a HUB nothing runs",
    ),
    "leaf": (lambda whole: whole["bodies"][0]["tasks"][0].update(leaf=7), "task 0: leaf 7 of 2"),
    "accesses": (
        lambda whole: whole["bodies"][0]["tasks"][0].update(accesses=[]),
        "task 0: access 0 of 0",
    ),
    "circle": (
        lambda whole: whole["bodies"][0]["tasks"][0].update(successors=[0]),
        "do not follow it",
    ),
    "body": (
        lambda whole: whole.update(steps=[{"kind": "Run", "body": 5}]),
        "a run of body 5 of 1",
    ),
    "step": (
        lambda whole: whole.update(steps=[{"kind": "Jump"}]),
        r"schedule.steps\[0\]: a step is wanted",
    ),
    "scalar": (
        lambda whole: whole["parameters"][0].update(shape=[["add", 1.5, 2]]),
        r"shape\[0\]\[1\]: whole numbers and texts in lists is wanted, not 1.5",
    ),
    "mode": (
        lambda whole: whole["leaves"][0]["operations"][0].update(mode=3),
        r"operations\[0\].mode: a RoundMode is wanted, not '3'",
    ),
    "a number": (
        lambda whole: whole["leaves"][0]["operations"][0].update(latency=True),
        "latency: a whole number of 64 bits is wanted, not true",
    ),
}


@pytest.mark.parametrize("damage", PLAIN_DAMAGES)
def test_json_with_a_damage_is_refused(damage: str, dump: Path) -> None:
    change, said = PLAIN_DAMAGES[damage]
    document = json.loads(pypto.read_schedule(dump).to_json())
    change(document["schedule"])

    with pytest.raises(ValueError, match=said) as caught:
        Schedule.from_json(json.dumps(document))
    assert "\n" not in str(caught.value)
