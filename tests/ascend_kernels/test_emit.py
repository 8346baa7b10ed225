"""The generated C++: the committed header is current, the instances, the tiling data's layout."""

from __future__ import annotations

import ctypes
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.programs.twin_programs import CASES, CASES_950, REFUSED, Case

from ascend_kernels import emit, instances, tiling_data
from ascend_kernels.instances import A2_A3_TARGET, TARGETS
from ascend_kernels.matrix import MATRIX, CastControls, resolve
from ascend_kernels.program import lower
from ascend_kernels.routing.chains import ROUTE_FORMATS
from ascend_kernels.routing.vector_rows import storage_format
from ascend_kernels.tiling_data import TILING_FIELDS, CastTilingData
from simulator.machine.cast_table import CAST_TABLE
from simulator.numbers import formats as f
from tiling.chips import A2_A3, ASCEND_950


def test_the_committed_header_is_not_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    assert emit.HEADER.read_text(encoding="utf-8") == emit.header()
    monkeypatch.setattr("sys.argv", ["emit", "--check"])
    assert emit.main() == 0


def test_a_stale_header_is_found_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "cast_instances.h"
    monkeypatch.setattr(emit, "HEADER", stale)
    monkeypatch.setattr("sys.argv", ["emit", "--check"])
    assert emit.main() == 1
    stale.write_text(emit.header().replace("rint", "mint"), encoding="utf-8")
    assert emit.main() == 1
    assert "is stale: run python -m ascend_kernels.emit" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["emit"])
    assert emit.main() == 0
    monkeypatch.setattr("sys.argv", ["emit", "--check"])
    assert emit.main() == 0


@pytest.mark.parametrize("family", TARGETS)
def test_there_is_one_instance_per_pair_and_mode_of_the_instruction(family: str) -> None:
    instance = r"^    X\((\w+), ([\w:]+), ([\w:]+), AscendC::RoundMode::CAST_(\w+)\)"
    target = TARGETS[family]
    names = re.findall(instance, emit.target_header(target), re.M)
    modes = {pair: CAST_TABLE[family][pair].modes or (None,) for pair in MATRIX[family]}
    assert [(name, mode) for name, _, _, mode in names] == [
        (f"{src}_{dst}_{mode or 'NONE'}".lower(), str(mode or "NONE"))
        for (src, dst), of_pair in modes.items()
        for mode in of_pair
        if family == A2_A3 or (dst, mode) not in REFUSED
    ]
    assert len({name for name, *_ in names}) == len(names) == len(target.instances)


def test_what_cast_of_ascendc_lacks_is_named() -> None:
    """Pairs and modes of the 950, and low bits where each instruction goes by its SatMode."""
    for dst, mode in REFUSED:
        resolution = resolve(ASCEND_950, f.FP32, dst, mode)
        with pytest.raises(
            ValueError, match=rf"no instance for FP32 -> {dst} CAST_{mode}: .*_RINT"
        ):
            instances.instance_number(resolution)
    (case,) = (
        c
        for c in CASES_950
        if (c.rule.src, c.rule.dst) == (f.INT64, f.INT32) and c.is_plain and c.saturate
    )
    program = case.program((2,), (2,))
    low_bits = resolve(ASCEND_950, f.INT64, f.INT32, saturate=False)
    own = CastControls(global_saturation=False)
    with pytest.raises(ValueError, match=r"no SaturationMode.OFF under .* has SatMode SAT alone"):
        tiling_data.tiling_data(lower(program.plan, low_bits, own))
    with pytest.raises(ValueError, match="routes of at most"):
        instances.instance_number(replace(low_bits, steps=(*low_bits.steps, *low_bits.steps)))


def test_there_is_one_instance_for_routes_per_two_widths() -> None:
    listed = re.findall(
        r"^    X\(route_b(\d+)_b(\d+), .*, pypto_cast::Route::LISTED\)",
        emit.target_header(A2_A3_TARGET),
        re.M,
    )
    widths = [
        (storage_format(src).bits, storage_format(dst).bits)
        for src in ROUTE_FORMATS
        for dst in ROUTE_FORMATS
        if src is not dst
    ]
    assert [(int(src), int(dst)) for src, dst in listed] == list(dict.fromkeys(widths))
    assert len(listed) == len(A2_A3_TARGET.route_instances)
    (other,) = (target for family, target in TARGETS.items() if family != A2_A3)
    assert not other.route_instances
    assert "LISTED" not in emit.target_header(other)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_cast_has_its_instance(case: Case) -> None:
    program = case.program((2,), (2,))
    family, pair = case.rule.family, (case.rule.src, case.rule.dst)
    instance = TARGETS[family].instances[instances.instance_number(program.resolution)]
    assert instance.rule is MATRIX[family][pair]
    assert instance.mode == (case.mode if CAST_TABLE[family][pair].modes else None)


def test_both_sides_assert_one_layout() -> None:
    text = emit.header()
    for name in (field.name for field in TILING_FIELDS):
        offset = getattr(CastTilingData, name).offset
        assert f"static_assert(offsetof(CastTilingData, {name}) == {offset});" in text
    assert f"static_assert(sizeof(CastTilingData) == {ctypes.sizeof(CastTilingData)});" in text
    declared = re.findall(r"^    uint32_t (\w+)(?:\[(\d+)\])?;", text, re.M)
    assert declared == [(x.name, str(x.words) if x.words else "") for x in TILING_FIELDS]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.sampled(3)
def test_tiling_data_says_what_the_plan_says(case: Case) -> None:
    program = case.program((3, 5, 64), (2, 5, 32))
    data, tiles = tiling_data.tiling_data(program), program.plan
    assert list(data.shape) == [1, 1, 15, 64]
    assert list(data.tile_shape) == [1, 1, 10, 32]
    passes = np.reshape(data.pass_shapes, (16, 4))
    assert passes[0].tolist() == [1, *tiles.ub.pass_shape] == [1, 1, 10, 32]
    for kind in range(16):  # the tail along the axis of rows is its second bit
        assert passes[kind].tolist() == [1, 1, 5 if kind & 2 else 10, 32]
    assert data.one_pitch == 1
    assert data.tile_count == len(tiles.grid) == 4
    assert (data.inf_nan, data.saturate) == (case.inf_nan, case.saturate)
    assert data.fp8_nan == case.controls.fp8_nan
    assert data.own_saturation == (not case.controls.global_saturation)
    sizes = [data.in_bytes, data.out_bytes, data.tmp_bytes]
    # One after another, they lie where the plan puts them.
    ends = [sum((*sizes, *sizes[:2])[:number]) for number in range(6)]
    planned = [buffer.offset_bytes for buffer in tiles.ub.buffers]
    assert planned == sorted(set(ends[:5]))
    assert tiles.ub.used_bytes == ends[5]
    assert math.prod(data.shape) == math.prod(tiles.shape)
