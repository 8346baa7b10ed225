"""Kernels that do not fit in UB: the moment, the culprit, and changes that were planned.

Ten of them have the sizes of public threads, whose addresses are in `THREADS`.
"""

from __future__ import annotations

import inspect
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from support.environment.command import Command, command

import pypto_cast as pypto
from pypto_cast.kernel import fit
from pypto_cast.kernel.graph import statement_order as order
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.tile_choice import replaced_tiles
from pypto_cast.testing import FitError, assert_fits

__all__ = ["command"]

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")
FP32, FP16, BF16 = pypto.DT_FP32, pypto.DT_FP16, pypto.DT_BF16
Flat = pypto.Tensor[[48000], FP32]
Flipped = pypto.Tensor[[64, 32, 2], FP32]
Column = pypto.Tensor[[4096, 1], FP32]
Wide = pypto.Tensor[[1, 151936], BF16]
WideFloat = pypto.Tensor[[1, 151936], FP32]
Cache = pypto.Tensor[[4, 128, 128], FP32]
CacheHalf = pypto.Tensor[[4, 128, 128], FP16]
Output = pypto.Tensor[[64, 512], FP32]
OutputHalf = pypto.Tensor[[64, 512], FP16]
Sized = pypto.Tensor[[160, 128], FP32]
Scores = pypto.Tensor[[32, 2048], FP32]
Rows = pypto.Tensor[[98, 512], FP32]


@pypto.frontend.jit
def blocks_of_48000(x: Flat, y: Flat) -> None:
    """https://github.com/triton-lang/triton-ascend/issues/302: 48,000 FP32 elements, twice."""
    pypto.set_vec_tile_shapes(48000)
    y[:] = pypto.exp(x) + x  # culprit


@pypto.frontend.jit
def flipped(x: Flipped, z: Flipped, y: Flipped) -> None:
    """https://github.com/triton-lang/triton-ascend/issues/1638: 64 x 64 in rows of 2."""
    pypto.set_vec_tile_shapes(64, 32, 2)
    column = pypto.sqrt(z)
    total = x + z  # culprit
    y[:] = pypto.where(x > z, total * x, column)


@pypto.frontend.jit
def as_column(x: Column, y: Column) -> None:
    """https://github.com/triton-lang/triton-ascend/issues/1640: 64 x 64 as a column of 4096."""
    pypto.set_vec_tile_shapes(4096, 1)
    y[:] = pypto.exp(x) * x  # culprit


@pypto.frontend.jit
def vocabulary(x: Wide, y: WideFloat) -> None:
    """https://github.com/triton-lang/triton-ascend/issues/2246: all 19 blocks of 151,936."""
    pypto.set_vec_tile_shapes(1, 151936)
    y[:] = pypto.exp(pypto.cast(x, FP32))  # culprit


@pypto.frontend.jit
def moved_cache(x: Cache, y: CacheHalf) -> None:
    """https://github.com/sgl-project/sgl-kernel-npu/pull/477: V x K whole, 262,144 B."""
    pypto.set_vec_tile_shapes(4, 128, 128)
    y[:] = pypto.cast(x, FP16)  # culprit


@pypto.frontend.jit
def attention_output(acc: Output, kv: OutputHalf, o: OutputHalf) -> None:
    """https://github.com/tile-ai/tilelang-mlir-ascend/pull/80: acc_o of 64 x 512 beside FP16."""
    pypto.set_vec_tile_shapes(64, 512)
    wide = pypto.cast(kv, FP32)
    o[:] = pypto.cast(acc * wide + wide, FP16)


@pypto.frontend.jit
def over_192_kb(a: Sized, b: Sized, y: Sized, z: Sized) -> None:
    """https://github.com/tile-ai/tilelang-ascend/issues/159: between 192 KB and 256 KB."""
    pypto.set_vec_tile_shapes(160, 128)
    product = a * b
    y[:] = product + a
    z[:] = product - b


@pypto.frontend.jit
def segments(scores: Scores, weights: Scores, y: Scores) -> None:
    """https://github.com/tile-ai/tilelang-ascend/issues/1156: 32 rows of the 2,048 best."""
    pypto.set_vec_tile_shapes(32, 2048)
    weighted = scores * weights
    y[:] = weighted / pypto.sum(weighted, -1, True)


@pypto.frontend.jit
def last_byte(x: Rows, y: Rows) -> None:
    """https://github.com/vllm-project/vllm-ascend/pull/16478: 192 KB to the last byte, a row on."""
    pypto.set_vec_tile_shapes(49, 512)
    y[:] = pypto.exp(x) + x  # culprit


@pypto.frontend.jit
def tuned_for_950(x: Rows, y: Rows) -> None:
    """https://github.com/Ascend/triton-ascend/issues/11: blocks that another chip takes."""
    pypto.set_vec_tile_shapes(56, 512)
    y[:] = pypto.exp(x) * x  # culprit


THREADS: tuple[Kernel, ...] = (
    *(blocks_of_48000, flipped, as_column, vocabulary, moved_cache, attention_output),
    *(over_192_kb, segments, last_byte, tuned_for_950),
)


def declared(kernel: Kernel) -> list[pypto.Tensor]:
    return [pypto.tensor(list(x.shape), x.dtype) for x in kernel.signature.tensors.values()]


@pytest.mark.parametrize("kernel", THREADS, ids=lambda kernel: kernel.__name__)
def test_a_thread_ends_in_a_culprit_and_a_tile_that_fits(kernel: Kernel) -> None:
    """The tile is planned here again, and the tile that was set is not."""
    given = declared(kernel)
    found = pypto.fit_report(kernel, *given)
    with pytest.raises(pypto.UBOverflowError) as caught:
        kernel.schedule(*given)
    assert caught.value.overflow == found.overflow
    lines, first = inspect.getsourcelines(inspect.unwrap(kernel))
    marked = [number for number, line in enumerate(lines, first) if "# culprit" in line]
    culprit = int(found.culprit.rpartition(":")[2])
    assert culprit in (marked or range(first, first + len(lines)))
    assert found.needed_ub_bytes > found.ub_bytes == 196_608
    owned = sum(x.size_bytes for x in found.overflow.buffers if x.place == found.culprit)
    assert owned == max(count for _, count in found.overflow.lines)
    assert found.nearest
    for change in found.nearest:
        with replaced_tiles({call.place: shape for call, shape in change.tiles}):
            planned = kernel.schedule(*given)
        assert planned.peak_ub_bytes <= 196_608
        assert planned.needed_ub_bytes == change.needed_ub_bytes


def test_the_nearest_tile_is_of_least_change() -> None:
    """The last byte of UB is taken by 48 rows of 512 elements, so one row less fits."""
    (change,) = pypto.fit_report(last_byte, *declared(last_byte)).nearest
    assert [shape for _, shape in change.tiles] == [(48, 512)]
    assert change.needed_ub_bytes == 196_608


def test_the_report_of_a_kernel_that_fits_has_its_figures() -> None:
    with pypto.options(vec_tile_shapes=(16, 512)):
        found = pypto.fit_report(untiled, *declared(untiled))
    assert (found.fits, found.overflow, found.changes, found.culprit) == (True, None, (), "")
    assert found.peak_ub_bytes == 2 * 16 * 512 * 4
    assert "fits in UB" in str(found)


@pypto.frontend.jit
def untiled(x: Rows, y: Rows) -> None:
    y[:] = pypto.exp(x) + x


def test_a_tile_of_the_context_is_varied_too() -> None:
    with pypto.options(vec_tile_shapes=(98, 512)):
        (change,) = pypto.fit_report(untiled, *declared(untiled)).nearest
    assert change.text == "set_vec_tile_shapes(48, 512)"


@pypto.frontend.jit
def never(x: Flat, y: Flat) -> None:
    pypto.set_vec_tile_shapes(48000)
    y[:] = pypto.exp(x) + x


def test_where_no_tile_fits_the_least_bad_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypto_cast.kernel.fit._extents", lambda extent, *_: [extent - 8, extent])
    found = pypto.fit_report(never, *declared(never))
    assert not found.nearest
    (change,) = found.changes
    assert (change.fits, change.needed_ub_bytes) == (False, 2 * 4 * 47_992)
    assert "set_vec_tile_shapes(47992): does not fit yet" in str(found)


def test_a_statement_moves_no_further_than_its_data() -> None:
    """Both ways, over the calls of a kernel: before its first reader, behind its operand."""
    events: list[object] = []
    with order.taken_in_order(lambda given: events.extend(given) or given):
        mixed.tensor_graphs(*declared(mixed))
    lines = [order.statement_place(group).rpartition(":")[2] for group in order.statements(events)]
    first, _, reader, cast, *_ = lines
    file = "test_fit.py:"
    later = order.moved(events, file + first, is_earlier=False)
    earlier = order.moved(events, file + cast, is_earlier=True)
    assert [order.statement_place(x)[len(file) :] for x in order.statements(later)][:3] == [
        lines[1],
        first,
        reader,
    ]
    assert [order.statement_place(x)[len(file) :] for x in order.statements(earlier)][:3] == [
        first,
        cast,
        lines[1],
    ]
    with order.taken_in_order(lambda given: order.moved(given, file + cast, is_earlier=True)):
        moved = mixed.schedule(*declared(mixed))
    assert moved.kernel == "mixed"


@pypto.frontend.jit
def mixed(x: Output, z: Output, y: OutputHalf) -> None:
    pypto.set_vec_tile_shapes(16, 512)
    a = pypto.exp(x)
    b = pypto.sqrt(z)
    c = a * b
    d = pypto.cast(a, FP16)
    e = pypto.cast(c, FP16)
    y[:] = d + e


def test_the_error_is_pickled_with_the_moment() -> None:
    with pytest.raises(pypto.UBOverflowError, match="`pypto-cast schedule FILE::KERNEL`") as caught:
        last_byte.schedule(*declared(last_byte))
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.overflow == caught.value.overflow
    assert str(again) == str(caught.value)
    assert [x.shape for x in again.overflow.buffers] == [(49, 512)] * 2


def test_a_call_that_the_tensor_level_refuses_leads_to_the_report() -> None:
    x = np.zeros((98, 512), np.float32)
    with pytest.raises(pypto.TileShapeError, match=r"no schedule is planned: .*`pypto-cast sched"):
        last_byte(x, x.copy())


def test_assert_fits() -> None:
    given = declared(untiled)
    with pypto.options(vec_tile_shapes=(16, 512)):
        assert_fits(untiled, *given)
        assert_fits(untiled, *given, peak_ub_bytes=65_536)
        with pytest.raises(FitError, match=r"65,536 B of UB as allocated, .* at most 65,535 B"):
            assert_fits(untiled, *given, peak_ub_bytes=65_535)
    with pytest.raises(FitError, match=r"culprit: test_fit.py:\d+, which owns") as caught:
        assert_fits(last_byte, *given)
    assert caught.value.fit.nearest


@pypto.frontend.jit
def two_tiles(x: Scores, y: Scores) -> None:
    pypto.set_vec_tile_shapes(32, 2048)
    e = pypto.exp(x) + 1.0
    pypto.set_vec_tile_shapes(64, 4096)
    y[:] = e * e


def test_of_two_calls_few_tile_shapes_are_looked_at_and_within_the_tensors() -> None:
    """Neither call fits alone; the second asks for four times the tensor."""
    found = pypto.fit_report(two_tiles, *declared(two_tiles))
    (change,) = found.nearest
    assert [shape for _, shape in change.tiles] == [(16, 2048)] * 2
    assert found.tile_shapes_planned <= 3 * fit._MOST_PLANS < 1000 < found.tile_shapes
    counted = f"{found.tile_shapes_planned} of {found.tile_shapes:,} tile shapes looked at"
    assert f"{found.planned} variants planned; {counted}" in str(found)
    assert json.loads(found.to_json())["tile_shapes"] == found.tile_shapes


@pytest.mark.parametrize(
    ("kernel", "asked", "error", "says"),
    [
        (last_byte, 0, ValueError, r"^peak_ub_bytes is a positive int; got 0$"),
        (last_byte, True, TypeError, r"^peak_ub_bytes is a positive int; got True$"),
        (last_byte, 1.5, TypeError, r"^peak_ub_bytes is a positive int; got 1.5$"),
        (len, None, TypeError, r"^a kernel is a function under @pypto.frontend.jit; got <built"),
    ],
)
def test_bad_input_is_one_line(
    kernel: Kernel, asked: int | None, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        assert_fits(kernel, peak_ub_bytes=asked)


KERNEL = """import pypto
Matrix = pypto.Tensor[[98, 512], pypto.DT_FP32]
@pypto.frontend.jit
def over(x: Matrix, y: Matrix):
    pypto.set_vec_tile_shapes(49, 512)
    y[:] = pypto.exp(x) + x
"""


def test_the_command_shows_the_report(command: Command, tmp_path: Path) -> None:
    file, page = tmp_path / "over.py", tmp_path / "over.html"
    file.write_text(KERNEL)
    ran = command("schedule", f"{file}::over", "--json")
    assert ran.code == 2
    told = json.loads(ran.out)
    assert (told["report_kind"], told["culprit"], told["fits"]) == ("fit", "over.py:6", False)
    assert told["changes"][0]["tiles"][0]["tile_shape"] == [48, 512]
    quiet = command("schedule", f"{file}::over", "--quiet")
    assert (quiet.code, quiet.out) == (2, "")
    assert quiet.err.startswith("pypto-cast: error: ")
    assert quiet.err.endswith(" [UBOverflowError]\n")
    assert quiet.err.count("\n") == 1
    ran = command("schedule", f"{file}::over", "--fail-over-ub", "--html", page)
    assert ran.code == 1
    assert "over.py:6, which owns 200,704 B" in " ".join(ran.out.split())
    assert "does not fit in UB" in page.read_text()
