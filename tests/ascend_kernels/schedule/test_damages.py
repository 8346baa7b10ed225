"""One thing changed in upstream's own programs: a guard reports it, or an output shows it."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest
from support.programs.upstream_dumps import arrays_of, bounds_of, unpacked

import pypto_cast as pypto
from benchmarks import schedule_damages
from benchmarks.schedule_damages import KINDS, damages, judged
from simulator.machine.memory import SimulatorFault


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "every"), [("two_outputs", 8), ("loop_rows", 2), ("spill", 25)])
def test_damages_are_found(name: str, every: int, tmp_path: Path) -> None:
    schedule = pypto.read_schedule(unpacked(name, tmp_path))
    arrays = arrays_of(schedule)
    bounds = bounds_of(name, arrays)
    found: collections.Counter[tuple[str, str]] = collections.Counter()

    by_kind = {kind: [x for x in damages(schedule) if x.kind == kind] for kind in KINDS}
    for kind, every_one in by_kind.items():
        step = 1 if kind == "reload dropped" else every
        for damage in every_one[::step]:
            found[kind, judged(damage, arrays, bounds)] += 1

    assert {verdict for _, verdict in found} <= {"guard", "output"}
    for kind in ("sync removed", "buffer moved", "valid shape grown"):
        assert found[kind, "guard"] == len(by_kind[kind][::every]), kind
    assert found["opcode exchanged", "output"] == len(by_kind["opcode exchanged"][::every])
    if name == "spill":
        assert found["reload dropped", "guard"] == len(by_kind["reload dropped"]) > 0


@pytest.mark.parametrize(
    ("name", "opcode"),
    [
        *(("reshape_shared", "VIEW"), ("transposed_ragged", "VIEW"), ("spaced", "RANGE")),
        ("ordered", "EXTRACT"),
    ],
)
def test_tile_of_more_than_its_readers_take_is_refused(
    name: str, opcode: str, tmp_path: Path
) -> None:
    schedule = pypto.read_schedule(unpacked(name, tmp_path))
    arrays = arrays_of(schedule)
    grown = [
        each
        for each in damages(schedule)
        if each.kind == "valid shape grown" and f" {opcode}," in each.place
    ]

    told = []
    for damage in grown:
        with pytest.raises(SimulatorFault) as fault:
            damage.schedule.times_written(*(each.copy() for each in arrays))
        told.append(str(fault.value))

    assert any(opcode in each and ", and what reads it takes [" in each for each in told)


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert schedule_damages.main(["abs_1d"]) == 0
    printed = capsys.readouterr().out
    assert "| sync removed | 12 | 12 | 0 | 0 |" in printed
    assert "No result changed" not in printed
