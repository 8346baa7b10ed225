"""The cost sets: against the figures they were taken from, and what they refuse."""

from __future__ import annotations

import csv
import dataclasses

import pytest
from support.environment.sources import CASE_TABLES

from tiling.chips import Standing
from tiling.cost import (
    COST_SETS,
    DEFAULT_COST_SET,
    CostParameters,
    Direction,
    bitwise_cycles,
    cast_cycles,
    cost_set,
    dma_cycles,
    figure_names,
    gm_share_cycles,
)

PTO = cost_set("pto-isa-910b3")

TLOADS = {
    "c01_nd_float_128x128": (1, 65536, 776),
    "c02_nd_float_256x64": (8, 65536, 2624),
    "c03_nd_float_128x127_padmax": (1, 65024, 773),
    "c04_nd_int16_128x127_padmax": (1, 32512, 519),
    "c05_nd_uint8_128x127_padmin": (1, 16256, 392),
    "c06_nd_int16_64x128_dyn": (32, 16384, 8576),
    "c07_nd_int16_64x128_static": (32, 16384, 8576),
    "c08_nd_float_256x60_padmax": (8, 61440, 2497),
    "c09_dn_float_64x128": (32, 32768, 8704),
    "c10_dn_float_256x60": (8, 65280, 8352),
}
"""Copy instructions, bytes and cycles of the TLOADs that pto-isa keeps as profiled."""
VCONVS = {4: (33.0, 0.087), 128: (141.0, 0.02)}
"""Repeats of a vconv: cycles that pto-isa gives, and how far off a model may be (it tests the first
to a precision of 0.913; the second is quoted in a comment, beside the line through all points)."""

every_set = pytest.mark.parametrize("parameters", COST_SETS.values(), ids=str)


def table(name: str) -> list[dict[str, str]]:
    path = CASE_TABLES / name
    if not path.is_file():
        pytest.skip(f"the case tables are not beside this checkout: no {path.name}")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tload_cycles(parameters: CostParameters, copies: int, size_bytes: int) -> float:
    return copies * dma_cycles(parameters, Direction.READ, size_bytes // copies)


@pytest.mark.parametrize("name", TLOADS)
def test_profiled_copies(name: str) -> None:
    """All but one; that one copies stretches that are no whole lines of 32 B."""
    copies, size_bytes, profiled = TLOADS[name]
    error = tload_cycles(PTO, copies, size_bytes) / profiled - 1
    if name == "c10_dn_float_256x60":
        assert error == pytest.approx(-0.686, abs=0.001)
    else:
        assert abs(error) < 0.05
    if not name.startswith(("c08", "c10")):
        assert abs(tload_cycles(PTO, copies, size_bytes) - profiled) <= 1


def test_the_profiled_copies_are_those_of_the_table() -> None:
    rows = {
        row["case"]: (
            int(row["dma_instructions"]),
            int(row["bytes"]),
            int(row["profiled_cycles"]),
        )
        for row in table("pto_tload_cycles.csv")
    }
    assert rows == TLOADS


@pytest.mark.parametrize("repeats", VCONVS)
def test_measured_casts(repeats: int) -> None:
    cycles, tolerance = VCONVS[repeats]
    assert cast_cycles(PTO, repeats, starts_stream=True) == pytest.approx(cycles, rel=tolerance)


@pytest.mark.parametrize("repeats", [1, 8, 64, 128])
def test_the_line_through_the_measured_casts(repeats: int) -> None:
    assert cast_cycles(PTO, repeats, starts_stream=True) == pytest.approx(0.90 * repeats + 27)


def test_the_measured_casts_are_those_of_the_table() -> None:
    rows = [row for row in table("pto_tcvt_cycles.csv") if "no measurement" not in row["kind"]]
    points = [row for row in rows if row["repeats"].isdecimal()]
    assert {(int(row["repeats"]), float(row["expected_cycles"])) for row in points} == {
        (repeats, cycles) for repeats, (cycles, _) in VCONVS.items()
    }
    (line,) = (row for row in rows if not row["repeats"].isdecimal())
    assert line["expected_cycles"] == "0.90*r+27"
    assert {row["tolerance"] for row in points} == {"-", "precision>=0.913042 (|err|<=8.7%)"}


def test_the_figures_are_those_of_the_table() -> None:
    rows = {
        (row["quantity"], row["source->dest or direction"]): row["value"]
        for row in table("a2a3_cost_facts.csv")
    }
    assert float(rows["core clock", "-"]) == PTO.clock_hz
    line = "GM->UB profiled line recovered from the stored TLOAD figures", "GM->UB MTE2"
    assert rows[line].startswith(
        f"{PTO.read_startup_cycles:g} + bytes/{PTO.read_bytes_per_cycle:g} "
    )
    startup = "UB->GM start-up implied by Hill fit (K/peak)", "UB->GM MTE3"
    slope = "UB->GM slope implied by Hill fit", "UB->GM MTE3"
    assert float(rows[startup]) == PTO.write_startup_cycles
    assert float(rows[slope]) == PTO.write_bytes_per_cycle
    documented = cost_set("documented")
    bandwidth = float(rows["GM->UB documented bandwidth", "GM->UB MTE2"])
    assert documented.read_bytes_per_cycle == bandwidth
    flags = "set_flag/wait_flag/pipe_barrier/set_ctrl/set_vector_mask", "-"
    assert float(rows[flags]) == PTO.flag_cycles == PTO.barrier_cycles == PTO.scalar_cycles


@every_set
def test_every_figure_has_a_source(parameters: CostParameters) -> None:
    fields = {field.name for field in dataclasses.fields(parameters)}
    assert set(parameters.sources) == fields - {"name", "sources"}
    assert all(source.text for source in parameters.sources.values())
    assert all(name.endswith(UNITS) for name in figure_names())


UNITS = ("_cycles", "_hz", "_bytes_per_cycle", "_bytes_per_second", "_per_repeat", "_loss")


def test_only_what_the_vendor_documents_is_called_so() -> None:
    standing = {name: source.standing for name, source in PTO.sources.items()}
    documented = {name for name in standing if standing[name] is Standing.DOCUMENTED}
    assert documented == {"clock_hz", "gm_bytes_per_second"}
    assert standing["issue_cycles"] is Standing.CHOSEN


def test_the_sets_differ() -> None:
    assert list(COST_SETS) == [
        "documented",
        "pto-isa-910b3",
        "documented-upper",
        "pto-isa-flat-write",
        "pto-isa-hill-read",
        "pto-isa-any-address",
        "bank-conflicts",
    ]
    assert DEFAULT_COST_SET is PTO
    assert str(PTO) == "pto-isa-910b3"
    writes = {name: dma_cycles(p, Direction.WRITE, 16384) for name, p in COST_SETS.items()}
    # 16 KB get nine tenths of the bandwidth there.
    assert writes["documented"] == writes["documented-upper"] == pytest.approx(128 / 0.9, rel=1e-3)
    hill = pytest.approx(107.3 + 16384 / 16.36)
    assert writes["pto-isa-910b3"] == writes["pto-isa-hill-read"] == hill
    assert writes["pto-isa-flat-write"] == pytest.approx(16384 / 109.382)
    reads = {name: dma_cycles(p, Direction.READ, 16384) for name, p in COST_SETS.items()}
    assert reads["pto-isa-910b3"] == reads["pto-isa-flat-write"] == 264 + 128
    assert reads["pto-isa-hill-read"] == pytest.approx(213.6 + 16384 / 143.45)
    bandwidths = {p.gm_bytes_per_second for p in COST_SETS.values()}
    assert bandwidths == {1.6e12, 1.8e12}


def test_the_alternatives_are_those_of_the_table() -> None:
    rows = {
        (row["quantity"], row["source->dest or direction"], row["unit"]): row["value"]
        for row in table("a2a3_cost_facts.csv")
    }
    flat, hill = cost_set("pto-isa-flat-write"), cost_set("pto-isa-hill-read")
    bandwidth = rows["UB->GM bandwidth (flat, default)", "UB->GM MTE3", "bytes/cycle"]
    assert float(bandwidth) == flat.write_bytes_per_cycle
    startup = rows["GM->UB start-up implied by Hill fit (K/peak)", "GM->UB MTE2", "cycles"]
    slope = rows["GM->UB slope implied by Hill fit", "GM->UB MTE2", "bytes/cycle"]
    assert (float(startup), float(slope)) == (hill.read_startup_cycles, hill.read_bytes_per_cycle)


def test_cores_share_the_bandwidth_of_the_chip() -> None:
    alone = dma_cycles(PTO, Direction.READ, 65536)
    assert dma_cycles(PTO, Direction.READ, 65536, 6) == alone
    full = dma_cycles(PTO, Direction.READ, 65536, 40)
    share = 1.6e12 / 1.85e9 / 40
    assert 21 < share < 22
    assert full == pytest.approx(264 + 65536 / share)
    assert gm_share_cycles(PTO, 65536, 40) == pytest.approx(65536 / share)
    # Writing is slower than that anyway.
    assert dma_cycles(PTO, Direction.WRITE, 512, 40) == dma_cycles(PTO, Direction.WRITE, 512)


def test_a_copy_has_the_bandwidth_alone_unless_cores_are_named() -> None:
    slow = PTO.replaced("slow", gm_bytes_per_second=PTO.clock_hz)
    for direction in Direction:
        alone, default = (dma_cycles(slow, direction, 4096, *cores) for cores in ((1,), ()))
        assert default == alone < dma_cycles(slow, direction, 4096, 2)


def test_start_up_of_vector_instructions() -> None:
    assert cast_cycles(PTO, 10, starts_stream=False) == 9
    each = dataclasses.replace(PTO, is_startup_per_stream=False)
    assert cast_cycles(each, 10, starts_stream=False) == 36
    assert bitwise_cycles(PTO, 10, starts_stream=True) == pytest.approx(47.3)


def test_nothing_costs_nothing() -> None:
    assert dma_cycles(PTO, Direction.READ, 0) == 0
    assert cast_cycles(PTO, 0, starts_stream=True) == 0


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="known: documented, pto-isa-910b3"):
        cost_set("measured")
    with pytest.raises(ValueError, match="0 bytes or more, not -1"):
        dma_cycles(PTO, Direction.READ, -1)
    with pytest.raises(ValueError, match="at least 1 busy core, not 0"):
        dma_cycles(PTO, Direction.READ, 32, 0)
    with pytest.raises(ValueError, match="0 repeats or more, not -1"):
        cast_cycles(PTO, -1, starts_stream=True)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("read_startup_cycles", -1.0, "must be 0 or more, is -1"),
        ("read_bytes_per_cycle", 0.0, "must be positive, is 0"),
        ("clock_hz", float("nan"), "must be positive, is nan"),
        ("gm_bytes_per_second", float("inf"), "must be positive, is inf"),
    ],
)
def test_figures_without_meaning_are_refused(field: str, value: float, says: str) -> None:
    with pytest.raises(ValueError, match=f"{field} {says}"):
        dataclasses.replace(PTO, **{field: value})
    with pytest.raises(ValueError, match="no source for"):
        dataclasses.replace(PTO, sources={})


def test_own_figures_are_the_users() -> None:
    mine = PTO.replaced("mine", read_startup_cycles=100.0)
    assert (mine.name, mine.read_startup_cycles) == ("mine", 100.0)
    assert mine.sources["read_startup_cycles"].standing is Standing.CHOSEN
    assert mine.sources["write_startup_cycles"] == PTO.sources["write_startup_cycles"]
    assert dma_cycles(mine, Direction.READ, 128) == 101
    with pytest.raises(ValueError, match="no figure startup; known: clock_hz, "):
        PTO.replaced("mine", startup=1.0)
    with pytest.raises(ValueError, match="'documented' is a set of its own"):
        PTO.replaced("documented")
