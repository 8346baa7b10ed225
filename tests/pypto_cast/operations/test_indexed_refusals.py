"""Refusals of operations by index: places outside, shapes, tiles, and what nobody wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pypto_cast.experimental import gather_in_ub
from test_indexed_values import DATA, F32, SIM, tensor
from test_indexed_values import tile as tile  # set for every test here, too

import pypto_cast as pypto
from pypto_cast.operations.operation_rows import ROWS
from simulator.arithmetic import Fidelity
from tiling.plan import ShapeError, TileShapeError

INDEX = tensor(np.zeros((3, 5, 2), np.int32))
OUTSIDE = tensor(np.full((3, 5, 2), 6, np.int32))
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "gather outside": (
        lambda x: pypto.gather(x, 2, OUTSIDE),
        IndexError,
        r"gather: index 6 at \[0, 0, 0\] lies outside 0 to 5; a device would go elsewhere",
    ),
    "scatter outside": (lambda x: pypto.scatter(x, 2, OUTSIDE, 1.0), IndexError, "index 6 at"),
    "index of floats": (lambda x: pypto.gather(x, 0, x), TypeError, "DT_INT32, DT_INT64"),
    "index too long": (
        lambda x: pypto.gather(x[0:1], 2, INDEX),
        ShapeError,
        r"an index of \[3, 5, 2\] does not fit \[1, 5, 6\]",
    ),
    "reduce": (
        lambda x: pypto.scatter(x, 2, INDEX, 1.0, reduce="mean"),
        ValueError,
        '"add", "multiply" or None',
    ),
    "cut dimension": (
        lambda x: with_tile((8, 8, 4), lambda: pypto.scatter(x, 2, INDEX, 1.0)),
        TileShapeError,
        "a tile holds the whole dimension 2",
    ),
    "k": (lambda x: pypto.topk(x, 7), ValueError, "k is 1 to 6"),
    "k of a tile": (
        lambda x: with_tile((8, 8, 4), lambda: pypto.topk(x, 5)),
        TileShapeError,
        "less than k = 5",
    ),
    "radix select": (
        lambda x: pypto.topk(x, 2, algo=pypto.TopKAlgo.RADIX_SELECT),
        ValueError,
        "A2 and A3 have TopKAlgo.MERGE_SORT",
    ),
    "sort32 index": (lambda x: pypto.sort32(x, -1), ValueError, "its bits are FP32's"),
    "sort32 of an index of bits": (lambda x: pypto.sort32(x, 0x7F7FFFFF), ValueError, "its bits"),
    "sort32 of half": (lambda x: pypto.sort32(x, 0.5), TypeError, "takes an int as index"),
    "argsort tile": (lambda x: pypto.argsort(x), TileShapeError, "a multiple of 32"),
    "pad left": (lambda x: pypto.pad(x, [1, 1, 0, 0]), ValueError, "pads right and below"),
    "fillpad of three": (lambda x: pypto.fillpad(x), ShapeError, "one or two dimensions"),
    "pad mode": (lambda x: pypto.pad(x, [0, 1, 0, 0], "reflect"), ValueError, '"constant"'),
    "classes of a tile": (
        lambda x: with_tile((8, 8, 8, 9), lambda: pypto.one_hot(INDEX, 4)),
        TileShapeError,
        "must be the 4 classes",
    ),
    "no such class": (
        lambda x: with_tile((8, 8, 8, 4), lambda: pypto.one_hot(OUTSIDE, 4)),
        IndexError,
        "one_hot: index 6",
    ),
    "update dimension": (
        lambda x: pypto.scatter_update(x[0], 0, tensor([[1]]), x[0, 0:1]),
        ValueError,
        "takes dimension -2",
    ),
    "update shapes": (
        lambda x: pypto.scatter_update(x[0], -2, tensor([[1, 2]]), x[0, 0:1]),
        ShapeError,
        "takes .rows, d.",
    ),
    "update outside": (
        lambda x: pypto.scatter_update(x[0], -2, tensor([[5]]), x[0, 0:1]),
        IndexError,
        "index 5 at",
    ),
    "token outside": (
        lambda x: gather_in_ub(x[0], tensor([[4]]), tensor([[0]], np.int32), 4, -2),
        IndexError,
        "gather_in_ub: index 4 at",
    ),
    "block outside": (
        lambda x: gather_in_ub(x[0], tensor([[1]]), tensor([[2]], np.int32), 4, -2),
        IndexError,
        "is in block 2 of the cache, which has 5 rows",
    ),
    "add outside a kernel": (
        lambda x: pypto.atomic_add(x, [0, 0, 0], tensor(DATA)),
        TypeError,
        "written outside a kernel",
    ),
    "two variances": (lambda x: pypto.var(x, [0, -3]), ValueError, "name one twice"),
}


def with_tile(entries: tuple[int, ...], call: Any) -> Any:
    with pypto.options(vec_tile_shapes=entries):
        return call()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call(tensor(DATA))


def test_what_nobody_wrote_may_be_read_but_not_decide() -> None:
    @pypto.jit(runtime_options=SIM)
    def kernel(x: F32, out: F32, rows: int) -> None:
        pypto.set_vec_tile_shapes(4, 8)
        kept = pypto.tensor([4, 8], pypto.DT_FP32, "kept")
        pypto.assemble(x[0:2], [0, 0], kept)
        read = pypto.index_select(kept, 0, tensor([1, 3, 0]))
        out[0:1] = read[0:1] if rows == 1 else read[1:2]

    x, out = DATA.reshape(-1)[:32].reshape(4, 8), np.zeros((1, 8), np.float32)
    kernel(x, out, 1)
    assert (out == x[1]).all()
    with pytest.raises(ValueError, match="which the kernel has not written"):
        kernel(x, out, 2)
    assert (out == x[1]).all()


MOVES: dict[str, Any] = {
    "reshape": lambda x: x.reshape([2, 16]).reshape([4, 8]),
    "transpose": lambda x: x.transpose(0, 1).transpose(0, 1),
    "clone": lambda x: x.clone(),
}


@pytest.mark.parametrize("name", MOVES)
def test_what_nobody_wrote_moves_along(name: str) -> None:
    @pypto.jit(runtime_options=SIM)
    def kernel(x: F32, out: F32, rows: int) -> None:
        pypto.set_vec_tile_shapes(8, 8)
        kept = pypto.tensor([4, 8], pypto.DT_FP32, "kept")
        pypto.assemble(x[0:2], [0, 0], kept)
        out[0:rows] = MOVES[name](kept)[0:rows]

    x, out = DATA.reshape(-1)[:32].reshape(4, 8), np.zeros((4, 8), np.float32)
    kernel(x, out, 2)
    assert (out[:2] == x[:2]).all()
    with pytest.raises(ValueError, match="which the kernel has not written"):
        kernel(x, out, 3)


def test_atomic_add_needs_written_elements() -> None:
    @pypto.jit(runtime_options=SIM)
    def kernel(x: F32, out: F32) -> None:
        total = pypto.tensor([1, 8], pypto.DT_FP32, "total")
        pypto.atomic_add(x, [0, 0], total)
        out[:] = total

    with pytest.raises(ValueError, match=r"'total' is read at \[0, 0\], which the kernel has not"):
        kernel(DATA[0, :1, :1] + np.zeros((1, 8), np.float32), np.zeros((1, 8), np.float32))


def test_every_row_says_how_much_is_known() -> None:
    indexed = [row for row in ROWS.values() if row.index_dtypes or row.assumes]
    assert len(indexed) >= 14
    for row in indexed:
        assert row.source
        assert row.instruction
        assert bool(row.assumes) is (row.fidelity is not Fidelity.EXACT)
        name = pypto.experimental if row.is_experimental else pypto
        assert callable(getattr(name, row.name))
