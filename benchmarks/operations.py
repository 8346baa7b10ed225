"""Time of operations and kernels beside torch's: `python -m benchmarks.operations`.

One process, one thread, all candidates of a row in turn, best of n rounds, in processor time: what
other processes take does not count, what fresh memory costs does. Ratios are our time over torch's
for the same operations in the same dtypes: below 1 we are faster. Where an operation runs in FP32
on the device, torch computes in float32 and casts as well.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

import pypto_cast as pypto
from benchmarks.measuring import Row, best_seconds, ints, print_tables, sample
from benchmarks.peers import torch_tensor
from benchmarks.whole_kernels import KERNELS, WholeKernel
from pypto_cast.recording import recording
from pypto_cast.recording.recording import Recording
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure, Interval

SHAPE: Final = (2048, 2048)
TILE: Final = (16, 512)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleOperation:
    """An operation of the table and its peer.

    Attributes:
        name: of the operation and the numbers it takes.
        ours: on tensors of pypto_cast.
        torch: the same on torch's.
        operands: how many tensors.
        positive: it takes positive numbers.
        dtype: of the operands.
    """

    name: str
    ours: Callable[..., Any]
    torch: Callable[..., Any]
    operands: int = 1
    positive: bool = False
    dtype: pypto.DataType = pypto.DT_FP32


def _in_float32(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: operation(*(x.float() for x in operands)).to(torch.bfloat16)


def _torch_sigmoid(x: torch.Tensor) -> torch.Tensor:
    below = torch.exp(x * -1.0) + 1.0
    return torch.ones_like(below) / below


def _alike(*names: str, **more: Any) -> Iterator[SingleOperation]:
    """Operations that torch has under the same names; BF16 computes in FP32, as on the device."""
    for name in names:
        peer = getattr(torch, name)
        if more.get("dtype") is pypto.DT_BF16:
            peer = _in_float32(peer)
        yield SingleOperation(name=name, ours=getattr(pypto, name), torch=peer, **more)


OPERATIONS: Final = (
    *_alike("add", "sub", "mul", "div", "maximum", "minimum", "lt", "eq", operands=2),
    *_alike("neg", "abs", "relu", "round", "floor", "reciprocal", "exp"),
    SingleOperation(name="sigmoid", ours=pypto.sigmoid, torch=_torch_sigmoid),
    *_alike("sqrt", "log", positive=True),
    SingleOperation(
        name="rsqrt",
        ours=pypto.rsqrt,
        torch=lambda x: torch.ones_like(x) / torch.sqrt(x),
        positive=True,
    ),
    SingleOperation(
        name="x * 0.5 (number)", ours=lambda x: pypto.mul(x, 0.5), torch=lambda x: x * 0.5
    ),
    SingleOperation(
        name="clip (-1, 1)",
        ours=lambda x: pypto.clip(x, -1.0, 1.0),
        torch=lambda x: torch.minimum(torch.maximum(x, torch.tensor(-1.0)), torch.tensor(1.0)),
    ),
    SingleOperation(
        name="where (x < y, x, y)",
        ours=lambda x, y: pypto.where(pypto.lt(x, y), x, y),
        torch=lambda x, y: torch.where(x < y, x, y),
        operands=2,
    ),
    *(
        SingleOperation(
            name=f"{name} of {of}",
            ours=lambda x, name=name, dim=dim: getattr(pypto, name)(x, dim, True),
            torch=lambda x, name=name, dim=dim: getattr(torch, name)(x, dim, keepdim=True),
        )
        for name in ("amax", "amin", "sum")
        for of, dim in {"rows": -1, "columns": 0}.items()
    ),
    *_alike("add", "mul", "div", "maximum", operands=2, dtype=pypto.DT_BF16),
    *_alike("exp", dtype=pypto.DT_BF16),
    *_alike("div", "maximum", operands=2, dtype=pypto.DT_FP16),
    *_alike("exp", dtype=pypto.DT_FP16),
)


def widened(values: np.ndarray[Any, Any], bits: int, cause: int) -> Enclosure:
    """Values that are not certain: two codes on either side are possible, for one cause."""
    codes = values.view(f"i{bits // 8}")
    magnitude = codes & np.array((1 << (bits - 1)) - 1, codes.dtype)
    far = magnitude > 2
    up, down = (np.where(far, codes + step, codes) for step in (2, -2))
    negative = codes < 0
    low, high = np.where(negative, up, down), np.where(negative, down, up)
    return Enclosure(
        values=values,
        interval=Interval(
            low=low.astype(codes.dtype).view(values.dtype),
            high=high.astype(codes.dtype).view(values.dtype),
            may_be_nan=None,
            cause=np.broadcast_to(np.uint16(cause), values.shape),
        ),
    )


def operation_row(row: SingleOperation, shape: tuple[int, ...], rounds: int) -> Row:
    """Time one operation; all times but torch's are multiples of that."""
    fmt = row.dtype.number_format
    arrays = [sample(fmt, math.prod(shape)).reshape(shape) for _ in range(row.operands)]
    if row.operands > 1:
        arrays[1] = np.ascontiguousarray(arrays[1][::-1])
    if row.positive:
        arrays = [np.abs(array) for array in arrays]
    exact = [pypto.from_numpy(array) for array in arrays]
    opened = [
        Tensor._from_result(shape, row.dtype, data=widened(array, fmt.bits, cause))
        for cause, array in enumerate(arrays)
    ]
    theirs = list(map(torch_tensor, arrays))

    def run(operands: list[Tensor], *, bounds: bool) -> object:
        with recording.running(Recording(kernel="benchmark", bounds=bounds)):
            return row.ours(*operands)

    def values() -> object:
        return run(exact, bounds=False)

    def peer() -> object:
        return row.torch(*theirs)

    best = best_seconds(
        {
            "torch": peer,
            "values": values,
            "exact": lambda: run(exact, bounds=True),
            "open": lambda: run(opened, bounds=True),
        },
        rounds,
        clock=time.thread_time,
    )
    fresh = best_seconds(
        {"torch": peer, "values": values}, min(rounds, 4), kept=[], clock=time.thread_time
    )
    return {
        "operation": row.name,
        "dtype": str(fmt),
        "torch_ms": round(best["torch"] * 1e3, 2),
        "values": round(best["values"] / best["torch"], 2),  # no intervals
        "values_fresh": round(fresh["values"] / fresh["torch"], 2),  # each in memory of its own
        "exact_operands": round(best["exact"] / best["torch"], 2),  # intervals, all certain
        "open_operands": round(best["open"] / best["torch"], 2),  # intervals, none certain
    }


def kernel_row(kernel: WholeKernel, rounds: int) -> Row:
    """Time a call of a kernel and its certainty against torch's time."""
    inputs = [sample(fmt, math.prod(shape)).reshape(shape) for fmt, shape in kernel.inputs]
    for position in kernel.positive:
        inputs[position] = np.abs(inputs[position])
    tensors = list(map(torch_tensor, inputs))
    ours, theirs = kernel.outputs(), kernel.outputs()
    best = best_seconds(
        {
            "torch": lambda: kernel.torch(*tensors, *theirs),
            "values": lambda: kernel.ours(*tensors, *ours),
            "certainty": lambda: kernel.ours.certainty(*tensors, *ours),
        },
        rounds,
        clock=time.thread_time,
    )
    found = kernel.ours.certainty(*tensors, *ours)
    return {
        "kernel": kernel.name,
        "shape": "x".join(map(str, kernel.inputs[0][1])),
        "torch_ms": round(best["torch"] * 1e3, 1),
        "values": round(best["values"] / best["torch"], 2),
        "certainty": round(best["certainty"] / best["torch"], 2),
        "certainty_ms": round(best["certainty"] * 1e3, 1),
        "certain": f"{1 - found.undecided / found.size:.2%}",
    }


def operation_rows(names: list[str], shape: tuple[int, ...], rounds: int) -> Iterator[Row]:
    """Measure the operations asked for, all of them if none is named."""
    for row in OPERATIONS:
        if not names or row.name.split()[0] in names:
            yield operation_row(row, shape, rounds)


def kernel_rows(names: list[str], rounds: int) -> Iterator[Row]:
    """Measure the kernels asked for, all of them if none is named."""
    for kernel in KERNELS:
        if not names or kernel.name in names:
            yield kernel_row(kernel, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations", description=__doc__)
    titles = ("operations", "kernels")
    parser.add_argument("--table", choices=titles, action="append", help="repeatable; else both")
    parser.add_argument("--name", action="append", default=[], help="of a row; repeatable")
    parser.add_argument("--shape", type=ints, default=SHAPE, help="of single operations")
    parser.add_argument("--rounds", type=int, default=7, help="best of so many")
    parser.add_argument("--json", action="store_true", help="JSON instead of tables of Markdown")
    given = parser.parse_args()
    torch.set_num_threads(1)
    sections = {
        "operations": operation_rows(given.name, given.shape, given.rounds),
        "kernels": kernel_rows(given.name, given.rounds),
    }
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=TILE):
        warnings.simplefilter("ignore", pypto.TileShapeWarning)
        asked = {t: rows for t, rows in sections.items() if t in (given.table or titles)}
        print_tables(asked, as_json=given.json)


if __name__ == "__main__":
    main()
