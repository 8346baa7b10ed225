"""The host code of the NPU op decides as the Python side does, to the words of an error."""

from __future__ import annotations

import ctypes
import itertools
import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.codes import SEED

import pypto_cast as pypto
from ascend_kernels import emit
from ascend_kernels.matrix import MATRIX
from ascend_kernels.program import lower
from pypto_cast import emit_host
from pypto_cast.cast_plan import resolved
from pypto_cast.dtypes import CastMode, DataType, SaturationMode
from tiling.chips import CHIPS, DEFAULT_CHIP
from tiling.plan import ShapeError, TileShapeError, plan
from tiling.ub import ElementBits

CSRC = emit.HEADER.parent

# What a test sees of host_tiling.h: one decision, and what it says.
PROBE = """
#include "host_tiling.h"

using namespace pypto_cast::host;

struct Decision {
    int64_t kind;  // 0: decided, 1: Refused, 2: UnsupportedCast, 3: the input comes back
    int64_t instance, tile_count, busy_cores, tile_bytes;
    CastTilingData tiling;
    char text[4096];
};

extern "C" void decide(int64_t src, int64_t dst, int64_t mode, int64_t satmode,
                       const int64_t* shape, int64_t dims, const int64_t* tile, int64_t entries,
                       const char* chip, Decision* decision) {
    std::string text;
    try {
        const Request request{src, dst, mode, satmode, Dims(tile, tile + entries)};
        check_request(request);
        if (request.returns_input()) {
            decision->kind = 3;
            return;
        }
        const Resolved resolved = resolve(request);
        const ElementBits bits{dtype_numbered(src).bits, dtype_numbered(dst).bits,
                               resolved.tmp_bits};
        const TilePlan plan = plan_tiles(Dims(shape, shape + dims), request.tile_shape, bits,
                                         chip_named(chip));
        decision->kind = 0;
        decision->instance = resolved.instance();
        decision->tile_count = plan.tile_count;
        decision->busy_cores = plan.busy_cores;
        decision->tile_bytes = plan.tile_bytes;
        decision->tiling = tiling_data(plan, resolved);
        for (const std::string& warning : resolved.warnings) text += warning + "\\n";
        for (const std::string& warning : plan.warnings) text += warning + "\\n";
    } catch (const Refused& error) {
        decision->kind = 1;
        text = error.what();
    } catch (const UnsupportedCast& error) {
        decision->kind = 2;
        text = error.what();
    }
    std::snprintf(decision->text, sizeof decision->text, "%s", text.c_str());
}
"""

DECIDED, REFUSED, UNSUPPORTED, INPUT = range(4)


class Answer(ctypes.Structure):
    """The struct Decision."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "instance", "tile_count", "busy_cores")),
        ("tile_bytes", ctypes.c_int64),
        ("tiling", emit.CastTilingData),
        ("text", ctypes.c_char * 4096),
    )


@dataclass(frozen=True, kw_only=True)
class Cast:
    """What is asked of both sides."""

    src: DataType = DataType.DT_FP32
    dst: DataType = DataType.DT_FP16
    mode: CastMode = CastMode.CAST_NONE
    satmode: SaturationMode = SaturationMode.ON
    shape: tuple[int, ...] = (100,)
    tile: tuple[int, ...] = (16,)
    chip: str = DEFAULT_CHIP.name


class Host:
    """host_tiling.h, compiled."""

    def __init__(self, library: Path) -> None:
        self._decide = ctypes.CDLL(str(library)).decide
        self._decide.restype = None

    def decide(self, cast: Cast, **numbers: int) -> Answer:
        answer = Answer()
        words = {name: getattr(cast, name).value for name in ("src", "dst", "mode", "satmode")}
        shape, tile = _int64s(cast.shape), _int64s(cast.tile)
        self._decide(
            *(ctypes.c_int64(number) for number in (words | numbers).values()),
            *(shape, ctypes.c_int64(len(cast.shape)), tile, ctypes.c_int64(len(cast.tile))),
            *(cast.chip.encode(), ctypes.byref(answer)),
        )
        return answer


def _int64s(entries: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(entries))(*entries)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler, neither g++ nor clang++")
    place = tmp_path_factory.mktemp("host_tiling")
    source, library = place / "probe.cpp", place / "probe.so"
    source.write_text(PROBE, encoding="utf-8")
    warnings = ("-Wall", "-Wextra", "-Werror", "-Wconversion")
    command = [compiler, "-std=c++17", *warnings, "-shared", "-fPIC", f"-I{CSRC}", str(source)]
    done = subprocess.run([*command, "-o", str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Host(library)


def python_decides(cast: Cast) -> tuple[int, str, emit.CastTilingData | None, int]:
    """Kind, text, tiling data and busy cores, by the rooms that pypto_cast.cast walks through."""
    try:
        with pypto.options(vec_tile_shapes=cast.tile):
            resolution = resolved(cast.src, cast.dst, cast.mode, cast.satmode)
        rule = resolution.rule
        bits = ElementBits(src=rule.src.bits, dst=rule.dst.bits, tmp=resolution.tmp_bits)
        tiles = plan(cast.shape, cast.tile, bits, CHIPS[cast.chip])
    except pypto.UnsupportedCastError as error:
        return UNSUPPORTED, str(error), None, 0
    except (ShapeError, TileShapeError) as error:
        return REFUSED, str(error), None, 0
    said = [text for _, text in resolution.diagnostics] + list(tiles.diagnostics)
    data = emit.tiling_data(lower(tiles, resolution))
    return DECIDED, "".join(f"{text}\n" for text in said), data, tiles.busy_cores


def assert_same(host: Host, cast: Cast) -> int:
    """Both sides decide alike; returns the kind of the decision."""
    kind, text, data, busy_cores = python_decides(cast)
    answer = host.decide(cast)
    assert (answer.kind, answer.text.decode()) == (kind, text), cast
    if data is not None:
        assert bytes(answer.tiling) == bytes(data), cast
        assert answer.busy_cores == busy_cores, cast
    return kind


# --- The generated table -------------------------------------------------------------------------


def test_the_header_is_what_would_be_generated() -> None:
    assert emit_host.HEADER.read_text(encoding="utf-8") == emit_host.header()


def test_a_stale_header_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    header = tmp_path / "host_tables.h"
    monkeypatch.setattr(emit_host, "HEADER", header)
    monkeypatch.setattr("sys.argv", ["emit_host", "--check"])
    assert emit_host.main() == 1
    assert "host_tables.h is stale: run python -m pypto_cast.emit_host" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["emit_host"])
    assert emit_host.main() == 0
    monkeypatch.setattr("sys.argv", ["emit_host", "--check"])
    assert emit_host.main() == 0


# --- Pairs and modes -----------------------------------------------------------------------------


def test_every_pair_of_dtypes_mode_and_saturation_mode(host: Host) -> None:
    kinds = {}
    for src, dst in itertools.product(DataType, repeat=2):
        for mode, satmode in itertools.product(CastMode, SaturationMode):
            cast = Cast(src=src, dst=dst, mode=mode, satmode=satmode, tile=(64,))
            if src is dst and (src is not DataType.DT_FP32 or mode is CastMode.CAST_NONE):
                assert host.decide(cast).kind == INPUT
                continue
            kinds[src, dst] = assert_same(host, cast)
    assert sum(kind == DECIDED for kind in kinds.values()) == 25


def test_the_instance_is_the_one_that_python_counts(host: Host) -> None:
    seen = set()
    for src, dst in itertools.product(DataType, repeat=2):
        for mode in CastMode:
            cast = Cast(src=src, dst=dst, mode=mode, tile=(64,))
            answer = host.decide(cast)
            if answer.kind == DECIDED:
                resolution = resolved(src, dst, mode, SaturationMode.ON)
                assert answer.instance == emit.instance_number(resolution), cast
                seen.add(answer.instance)
    assert seen == set(range(len(emit.INSTANCES)))


@pytest.mark.parametrize(
    ("numbers", "enum"),
    [
        ({"dst": 25}, DataType),
        ({"dst": -1}, DataType),
        ({"mode": 7}, CastMode),
        ({"mode": -1}, CastMode),
        ({"satmode": 2}, SaturationMode),
    ],
    ids=str,
)
def test_a_number_that_names_nothing(host: Host, numbers: dict[str, int], enum: type) -> None:
    (number,) = numbers.values()
    with pytest.raises(ValueError, match="is not a valid") as python:
        enum(number)
    answer = host.decide(Cast(), **numbers)
    assert (answer.kind, answer.text.decode()) == (REFUSED, str(python.value))


# --- Tiles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip(host: Host, chip: str) -> None:
    assert_same(host, Cast(shape=(4096, 77), tile=(3, 16), chip=chip))


def test_a_chip_that_is_unknown(host: Host) -> None:
    with pytest.raises(ValueError, match="unknown chip") as python, pypto.options(chip="Ascend1"):
        pass
    assert host.decide(Cast(chip="Ascend1")).text.decode() == str(python.value)


EDGES = [
    Cast(shape=(40000,), tile=(32768,)),
    Cast(shape=(40000,), tile=(32776,)),
    Cast(shape=(3073, 3), tile=(3072, 3)),
    Cast(shape=(3073, 3), tile=(3073, 3)),
    Cast(shape=(40000,), tile=(31368,)),
    Cast(shape=(18000,), tile=(1,)),
    Cast(shape=(17999,), tile=(1,)),
    Cast(shape=(), tile=()),
    Cast(shape=(2,), tile=()),
    Cast(shape=(2,), tile=(2, 2)),
    Cast(shape=(2, 2), tile=(2,)),
    Cast(shape=(2,), tile=(0,)),
    Cast(shape=(2,), tile=(-8,)),
    Cast(shape=(2,), tile=(1, 1, 1, 1, 1)),
    Cast(shape=(1, 1, 1, 1, 1), tile=(1, 1, 1, 1)),
    Cast(shape=(3, 0), tile=(3, 1)),
    Cast(shape=(2**16, 2**15), tile=(1, 2**14)),
    Cast(shape=(2**31 - 1,), tile=(16384,)),
    Cast(shape=(2**31 - 1,), tile=(2**62,)),
    Cast(dst=DataType.DT_INT4, src=DataType.DT_FP16, shape=(6, 7), tile=(2, 6)),
    Cast(dst=DataType.DT_INT4, src=DataType.DT_FP16, shape=(6, 8), tile=(2, 7)),
    Cast(dst=DataType.DT_INT4, src=DataType.DT_FP16, shape=(6, 8), tile=(2, 90)),
    Cast(dst=DataType.DT_INT4, src=DataType.DT_FP16, shape=(6, 8), tile=(2, 2)),
]


@pytest.mark.parametrize("cast", EDGES, ids=lambda cast: f"{cast.shape}-{cast.tile}")
def test_edges_of_the_tile_rules(host: Host, cast: Cast) -> None:
    """An empty tile is refused by the device, where Python would choose one."""
    if cast.tile:
        assert_same(host, cast)
        return
    answer = host.decide(cast)
    assert answer.kind == REFUSED
    if cast.shape:
        assert answer.text.decode() == (
            "tile shape [] has 0 entries; the output [2] needs 1 entry, one for each dimension"
        )


def test_random_shapes_and_tiles(host: Host) -> None:
    chance = random.Random(SEED)
    dtypes = [d for d in DataType if d.format is not None]
    legal = [
        (src, dst)
        for src, dst in itertools.product(dtypes, repeat=2)
        if (src.format, dst.format) in MATRIX
    ]
    kinds = [0, 0]
    for _ in range(3000):
        src, dst = chance.choice(legal)
        dims = chance.randint(1, 4)
        longest = 300000 if dims == 1 else 4000 if dims == 2 else 60
        cast = Cast(
            src=src,
            dst=dst,
            mode=chance.choice(list(CastMode)),
            satmode=chance.choice(list(SaturationMode)),
            shape=tuple(chance.randint(1, longest) for _ in range(dims)),
            tile=tuple(int(longest ** chance.random()) for _ in range(dims)),
            chip=chance.choice(list(CHIPS)),
        )
        if src is dst and cast.mode is CastMode.CAST_NONE:
            continue
        kinds[assert_same(host, cast)] += 1
    assert min(kinds) > 300
