"""Facts files: read back as written; what is cut, of another version or impossible is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.environment.command import Command, command

from pypto_cast.device.facts import (
    Agreement,
    DeviceDescription,
    DeviceFact,
    DeviceFacts,
    facts_of,
    read_facts,
)
from tiling.chips import Standing
from tiling.cost import DEFAULT_COST_SET
from tiling.cost_file import read_cost_set

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
            verdict=Agreement.DIFFERS,
            tested=9,
            touched=2,
            by_pair={"FP32 -> FP16 CAST_RINT": 2},
            stability="core-dependent",
            varying={"FP32 -> FP16 CAST_RINT": "core-dependent: core 5"},
            left=1,
            results={"FP32 -> FP16 CAST_RINT": {"negative": 0}},
        ),
        DeviceFact(
            name="rounding",
            assumed="once",
            measured="as assumed",
            verdict=Agreement.AGREES,
            tested=7,
        ),
        DeviceFact(
            name="vexp",
            assumed="2 ulp",
            measured="3 ulp",
            verdict=Agreement.DIFFERS,
            tested=5,
            touched=1,
            by_pair={"FP32": 1},
            ulps={"FP32": 3, "FP16": 1},
            exhausted=["FP16"],
        ),
        DeviceFact(
            name="cycles of Cast",
            assumed="27",
            measured="30",
            verdict=Agreement.AGREES,
            tested=2,
            figures={"vector_startup_cycles": 30.0},
        ),
        DeviceFact(
            name="cycles", assumed="the sets", measured="no", verdict=Agreement.NOT_MEASURED
        ),
    ),
)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "device.json"
    path.write_bytes(content)
    return path


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_facts(written(tmp_path, FACTS.to_json())) == FACTS


def test_a_file_is_read_by_others() -> None:
    """Its fields under their own names, numbers that every parser of JSON takes."""
    found = json.loads(FACTS.to_json())
    assert (found["format"], found["version"]) == ("pypto-cast device facts", 3)
    assert found["device"] == dataclasses.asdict(DEVICE)
    assert found["facts"][0] == {
        "name": "sign of zero",
        "assumed": "kept",
        "measured": "FP32 -> FP16: 0x80000000 gives 0x0000, assumed 0x8000",
        "verdict": "differs",
        "tested": 9,
        "touched": 2,
        "by_pair": {"FP32 -> FP16 CAST_RINT": 2},
        "example": "",
        "stability": "core-dependent",
        "varying": {"FP32 -> FP16 CAST_RINT": "core-dependent: core 5"},
        "left": 1,
        "results": {"FP32 -> FP16 CAST_RINT": {"negative": 0}},
        "ulps": {},
        "exhausted": [],
        "figures": {},
    }
    unknown = dataclasses.replace(FACTS.facts[3], figures={"vector_startup_cycles": math.nan})
    with pytest.raises(ValueError, match="not JSON compliant"):
        DeviceFacts(device=DEVICE, facts=(unknown,)).to_json()


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = FACTS.to_json()
    for size in range(0, len(whole) - 2, 7):
        with pytest.raises(ValueError, match=r"device\.json is no whole facts file: "):
            read_facts(written(tmp_path, whole[:size]))


CAST = "FP32 -> FP16 CAST_RINT"
Change = Callable[[dict[str, Any]], Any]


def fact(change: Change) -> Change:
    return lambda document: change(document["facts"][0])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d.update(format="x"), "is no facts file: pypto-cast device-check"),
        (lambda d: d.update(version=1), "is of version 1, this package reads 3: run"),
        (lambda d: d["device"].pop("chip"), "device must have chip, cann, driver"),
        (lambda d: d["device"].update(chip=1), "everything in device must be text"),
        (lambda d: d.update(device=list(d["device"])), "device must have chip, cann, driver"),
        (lambda d: d.update(facts=[]), "facts must be a list of facts"),
        (lambda d: d.update(facts={"a": 1}), "facts must be a list of facts"),
        (lambda d: d.update(facts=[list(d["facts"][0])]), "a fact must have name, assumed"),
        (lambda d: d["facts"].append(d["facts"][0]), "has a fact twice"),
        (lambda d: d["device"].update(date="today"), "'today' is no date such as 2026-01-31"),
        (fact(lambda x: x.pop("tested")), "a fact must have name, assumed"),
        (fact(lambda x: x.update(measured=1)), "measured and example must be text"),
        (fact(lambda x: x.update(verdict="maybe")), "'sign of zero': 'maybe' is no verdict"),
        (fact(lambda x: x.update(tested=-1)), "must be counts"),
        (fact(lambda x: x.update(touched=2.0)), "must be counts"),
        (fact(lambda x: x.update(by_pair=[])), "must be counts"),
        (fact(lambda x: x.update(left=-1)), "must be counts"),
        (fact(lambda x: x.update(stability="stable")), "stability is 'stable', varying is"),
        (fact(lambda x: x.update(varying={})), "stability is 'core-dependent', varying is {}"),
        (fact(lambda x: x.update(varying=[])), "stability is 'core-dependent', varying is \\[\\]"),
        (fact(lambda x: x.update(varying={CAST: "seldom"})), "varying is {'FP32 -> FP16"),
        (fact(lambda x: x.update(varying={CAST: 1})), "varying is {'FP32 -> FP16"),
        (fact(lambda x: x.update(tested=1)), "impossible: 2 of 1 results differ, 2 by pair"),
        (fact(lambda x: x.update(touched=3)), "impossible: 3 of 9 results differ, 2 by pair"),
        (fact(lambda x: x.update(results=[])), "results must be an object"),
        (fact(lambda x: x.update(results={"x": {}})), "there is no cast 'x'"),
        (fact(lambda x: x["results"].update({CAST: {"no": 0}})), "must be negative, positive"),
        (fact(lambda x: x["results"].update({CAST: []})), "must be negative, positive"),
        (fact(lambda x: x["results"].update({CAST: {"positive": -1}})), "no codes of FP16"),
        (fact(lambda x: x["results"].update({CAST: {"negative": 1 << 16}})), "no codes of FP16"),
        (fact(lambda x: x.update(ulps={"FP32": -1})), "impossible: -1 ulp in FP32"),
        (fact(lambda x: x.update(ulps={"FP23": 1})), "impossible: 1 ulp in FP23"),
        (fact(lambda x: x.update(ulps={"FP16": 1 << 16})), "impossible: 65536 ulp in FP16"),
        (fact(lambda x: x.update(ulps={"FP16": 1.0})), "impossible: 1.0 ulp in FP16"),
        (fact(lambda x: x.update(exhausted=["FP32"])), "exhausted must list formats of ulps"),
        (fact(lambda x: x.update(exhausted={})), "exhausted must list formats of ulps"),
        (fact(lambda x: x.update(exhausted=[["FP16"]])), "exhausted must list formats of ulps"),
        (fact(lambda x: x.update(figures={"flag_cycles": -1.0})), "flag_cycles is -1.0"),
        (fact(lambda x: x.update(figures={"flag_cycles": math.inf})), "flag_cycles is inf"),
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
    printed = command("facts", path, "--json")
    assert FACTS.document().items() <= printed.json.items()
    assert facts_of(path, printed.out.encode()) == FACTS
    shown = command("facts", path)
    assert shown.code == 0
    for word in ("sign of zero", "differs", "measured on Ascend910B3, 2026-01-02", "NaN pattern"):
        assert word in shown.out
    assert "No such file" in command("facts", tmp_path / "no.json").error


def test_the_command_shows_what_is_assumed(command: Command) -> None:
    shown = command("facts")
    for word in ("NaN pattern", "0x7FFF", "vexp", "no device was measured"):
        assert word in shown.out
    facts = command("facts", "--json").json["facts"]
    assert {fact["verdict"] for fact in facts} == {"not measured"}


def test_the_measured_figures_become_a_cost_set(command: Command, tmp_path: Path) -> None:
    path, made = written(tmp_path, FACTS.to_json()), tmp_path / "mine.toml"
    assert command("facts", path, "--cost-set", made).code == 0
    found = read_cost_set(made)
    assert (found.name, found.vector_startup_cycles) == ("Ascend910B3 2026-01-02", 30.0)
    source = found.sources["vector_startup_cycles"]
    assert source.standing is Standing.MEASURED
    assert source.text == "device-check on Ascend910B3, 2026-01-02"
    assert found.sources["flag_cycles"] == DEFAULT_COST_SET.sources["flag_cycles"]
    assert found.standing.endswith(" figures measured: device-check on Ascend910B3, 2026-01-02")
    assert "exists" in command("facts", path, "--cost-set", made).error
    assert "goes with a facts file" in command("facts", "--cost-set", made).error
    without = DeviceFacts(device=DEVICE, facts=FACTS.facts[:1])
    path = written(tmp_path, without.to_json())
    assert "has no cycles" in command("facts", path, "--cost-set", made, "--force").error
