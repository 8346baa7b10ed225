"""Facts files: read back as written; what is cut, of another version or impossible is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command import Command, command

from pypto_cast.device.facts import (
    DeviceDescription,
    DeviceFact,
    DeviceFacts,
    Verdict,
    read_facts,
)

__all__ = ["command"]

DEVICE = DeviceDescription(
    chip="Ascend910B3",
    cann="9.0.1",
    driver="25.5.0",
    torch_npu="2.13.0",
    library_sha256="cd" * 32,
    pypto_cast="1.0",
    date="2026-01-02",
)
FACTS = DeviceFacts(
    device=DEVICE,
    facts=(
        DeviceFact(
            name="sign of zero",
            assumed="kept",
            measured="FP32 -> FP16: 0x80000000 gives 0x0000, assumed 0x8000",
            verdict=Verdict.DIFFERS,
            tested=9,
            touched=2,
            by_pair={"FP32 -> FP16": 2},
        ),
        DeviceFact(
            name="rounding",
            assumed="once",
            measured="as assumed",
            verdict=Verdict.AGREES,
            tested=7,
        ),
        DeviceFact(name="cycles", assumed="the sets", measured="no", verdict=Verdict.NOT_MEASURED),
    ),
)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "device.json"
    path.write_bytes(content)
    return path


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_facts(written(tmp_path, FACTS.to_json())) == FACTS


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = FACTS.to_json()
    for size in range(0, len(whole) - 2, 7):
        with pytest.raises(ValueError, match=r"device\.json is no whole facts file: "):
            read_facts(written(tmp_path, whole[:size]))


Change = Callable[[dict[str, Any]], Any]


def fact(change: Change) -> Change:
    return lambda document: change(document["facts"][0])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d.update(format="x"), "is no facts file: pypto-cast device-check"),
        (lambda d: d.update(version=2), "is of version 2, this package reads 1: run"),
        (lambda d: d["device"].pop("chip"), "device must have chip, cann, driver"),
        (lambda d: d["device"].update(chip=1), "everything in device must be text"),
        (lambda d: d.update(facts=[]), "facts must be a list of facts"),
        (lambda d: d["facts"].append(d["facts"][0]), "has a fact twice"),
        (fact(lambda x: x.pop("tested")), "a fact must have name, assumed"),
        (fact(lambda x: x.update(measured=1)), "measured must be text"),
        (fact(lambda x: x.update(verdict="maybe")), "'sign of zero': 'maybe' is no verdict"),
        (fact(lambda x: x.update(tested=-1)), "must be counts"),
        (fact(lambda x: x.update(touched=2.0)), "must be counts"),
        (fact(lambda x: x.update(by_pair=[])), "must be counts"),
        (fact(lambda x: x.update(tested=1)), "impossible: 2 of 1 results differ, 2 by pair"),
        (fact(lambda x: x.update(touched=3)), "impossible: 3 of 9 results differ, 2 by pair"),
        (fact(lambda x: x.update(verdict="agrees")), "2 of 9 results differ, but its verdict"),
    ],
)
def test_what_cannot_be_is_refused_by_name(change: Change, text: str, tmp_path: Path) -> None:
    document = json.loads(FACTS.to_json())
    change(document)
    with pytest.raises(ValueError, match=text):
        read_facts(written(tmp_path, json.dumps(document).encode()))


def test_the_command_shows_a_file(command: Command, tmp_path: Path) -> None:
    path = written(tmp_path, FACTS.to_json())
    assert command("facts", path, "--json").json == FACTS.document()
    shown = command("facts", path)
    assert shown.code == 0
    for word in ("sign of zero", "differs", "not measured", "Ascend910B3"):
        assert word in shown.out
    assert "No such file" in command("facts", tmp_path / "no.json").error
