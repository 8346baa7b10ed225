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
from benchmarks.measuring import best_seconds, ints, print_tables, sample
from benchmarks.whole_kernels import KERNELS, WholeKernel
from pypto_cast.recording import recording
from pypto_cast.recording.recording import Recording
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure, Interval
from simulator.numbers.formats import BF16

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


OPERATIONS: Final = (
    *(
        SingleOperation(name=name, ours=getattr(pypto, name), torch=peer, operands=2)
        for name, peer in {
            "add": torch.add,
            "sub": torch.sub,
            "mul": torch.mul,
            "div": torch.div,
            "maximum": torch.maximum,
            "minimum": torch.minimum,
            "lt": torch.lt,
            "eq": torch.eq,
        }.items()
    ),
    *(
        SingleOperation(name=name, ours=getattr(pypto, name), torch=peer)
        for name, peer in {
            "neg": torch.neg,
            "abs": torch.abs,
            "relu": torch.relu,
            "round": torch.round,
            "floor": torch.floor,
            "reciprocal": torch.reciprocal,
            "exp": torch.exp,
            "sigmoid": _torch_sigmoid,
        }.items()
    ),
    *(
        SingleOperation(name=name, ours=getattr(pypto, name), torch=peer, positive=True)
        for name, peer in {"sqrt": torch.sqrt, "log": torch.log}.items()
    ),
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
            torch=lambda x, peer=peer, dim=dim: peer(x, dim, keepdim=True),
        )
        for name, peer in {"amax": torch.amax, "amin": torch.amin, "sum": torch.sum}.items()
        for of, dim in {"rows": -1, "columns": 0}.items()
    ),
    *(
        SingleOperation(
            name=name,
            ours=getattr(pypto, name),
            torch=_in_float32(getattr(torch, name)),
            operands=operands,
            dtype=pypto.DT_BF16,
        )
        for name, operands in {"add": 2, "mul": 2, "div": 2, "maximum": 2, "exp": 1}.items()
    ),
    *(
        SingleOperation(
            name=name,
            ours=getattr(pypto, name),
            torch=getattr(torch, name),
            operands=operands,
            dtype=pypto.DT_FP16,
        )
        for name, operands in {"div": 2, "maximum": 2, "exp": 1}.items()
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """Times of one operation, all but the first as multiples of torch's.

    Attributes:
        operation: its name.
        dtype: of the operands.
        torch_ms: torch's time.
        values: without intervals.
        values_fresh: the same, every result in memory of its own; torch's too.
        exact_operands: with intervals, the operands' all certain.
        open_operands: with intervals, no element of the operands certain.
    """

    operation: str
    dtype: str
    torch_ms: float
    values: float
    values_fresh: float
    exact_operands: float
    open_operands: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """Times of one kernel.

    Attributes:
        kernel: its name.
        shape: of the activations.
        torch_ms: torch's time.
        values: a call, as a multiple of torch's time.
        certainty: `Kernel.certainty`, as a multiple of torch's time.
        certainty_ms: its time.
        certain: the share of the results that are certain.
    """

    kernel: str
    shape: str
    torch_ms: float
    values: float
    certainty: float
    certainty_ms: float
    certain: str


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


def operation_row(row: SingleOperation, shape: tuple[int, ...], rounds: int) -> OperationRow:
    """Time one operation against its peer."""
    fmt = row.dtype.format
    assert fmt is not None
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
    theirs = [
        torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        if fmt is BF16
        else torch.from_numpy(array)
        for array in arrays
    ]

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
    return OperationRow(
        operation=row.name,
        dtype=str(fmt),
        torch_ms=round(best["torch"] * 1e3, 2),
        values=round(best["values"] / best["torch"], 2),
        values_fresh=round(fresh["values"] / fresh["torch"], 2),
        exact_operands=round(best["exact"] / best["torch"], 2),
        open_operands=round(best["open"] / best["torch"], 2),
    )


def kernel_row(kernel: WholeKernel, rounds: int) -> KernelRow:
    """Time one kernel against its peer."""
    inputs = [sample(fmt, math.prod(shape)).reshape(shape) for fmt, shape in kernel.inputs]
    for position in kernel.positive:
        inputs[position] = np.abs(inputs[position])
    tensors = [
        torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        if array.dtype == BF16.dtype
        else torch.from_numpy(array)
        for array in inputs
    ]
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
    return KernelRow(
        kernel=kernel.name,
        shape="x".join(map(str, kernel.inputs[0][1])),
        torch_ms=round(best["torch"] * 1e3, 1),
        values=round(best["values"] / best["torch"], 2),
        certainty=round(best["certainty"] / best["torch"], 2),
        certainty_ms=round(best["certainty"] * 1e3, 1),
        certain=f"{1 - found.undecided / found.size:.2%}",
    )


def operation_rows(names: list[str], shape: tuple[int, ...], rounds: int) -> Iterator[OperationRow]:
    """Measure the operations asked for, all of them if none is named."""
    for row in OPERATIONS:
        if not names or row.name.split()[0] in names:
            yield operation_row(row, shape, rounds)


def kernel_rows(names: list[str], rounds: int) -> Iterator[KernelRow]:
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
