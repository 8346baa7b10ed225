"""The table of operations that take or give indices, and the checks of their operands.

Sources: upstream pypto, framework/src/interface/operation/vector/{indexing,sort,reduction,math}.cpp
and operation_impl.cpp (dtypes, checks), framework/src/interface/tileop/vector/ (what runs).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.lowering import check_tensor
from pypto_cast.operations.movement import held_by
from pypto_cast.operations.operation_rows import COPIED, FLOATS, NUMBERS
from pypto_cast.recording import recording
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_RNE,
    ASSUME_STABLE_SORT,
    ASSUME_SUM_ORDER,
    Enclosure,
    Fidelity,
)
from simulator.arithmetic.trust import Assumption

_TILEOP: Final = "pypto tileop/vector"
_32_OR_64: Final = (DataType.DT_INT32, DataType.DT_INT64)
_FP32: Final = (DataType.DT_FP32,)
_WHOLE: Final = (
    *(DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, DataType.DT_INT64),
    *(DataType.DT_UINT8, DataType.DT_UINT16, DataType.DT_UINT32, DataType.DT_UINT64),
)
_ELEMENTS: Final = (*FLOATS, *(d for d in COPIED if d.format is not None and d.format.bits > 8))
_SORTED: Final = frozenset({ASSUME_STABLE_SORT})
_ADDED: Final = frozenset({ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW, ASSUME_SUM_ORDER})


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedRow:
    """One operation that takes or gives indices.

    Attributes:
        name: upstream's.
        dtypes: of the elements.
        index_dtypes: of the indices that it takes; none if it gives them.
        added: dtypes of elements that it can add up or multiply, where it can.
        instruction: what it becomes.
        fidelity: how much is known of the bits of what it gives.
        assumes: the assumptions that they rest on.
        source: public texts that the row rests on.
    """

    name: str
    dtypes: tuple[DataType, ...]
    instruction: str
    source: str
    index_dtypes: tuple[DataType, ...] = ()
    added: tuple[DataType, ...] = ()
    fidelity: Fidelity = Fidelity.EXACT
    assumes: frozenset[Assumption] = frozenset()


INDEXED_ROWS: Final = MappingProxyType(
    {
        row.name: row
        for row in (
            IndexedRow(
                name="gather",
                dtypes=tuple(dict.fromkeys(_ELEMENTS)),
                index_dtypes=_32_OR_64,
                instruction="vgather; scalar copies for INT64 indices",
                source=f"{_TILEOP}/gather.h: TgatherElement",
            ),
            IndexedRow(
                name="index_select",
                dtypes=COPIED,
                index_dtypes=_32_OR_64,
                instruction="copy_gm_to_ubuf, a row at a time",
                source=f"{_TILEOP}/gather.h: Tgather",
            ),
            IndexedRow(
                name="gather_in_ub",
                dtypes=COPIED,
                index_dtypes=_32_OR_64,
                instruction="copy_gm_to_ubuf, a row at a time",
                source=f"{_TILEOP}/gather.h: TgatherInUB reads from the start of the view on, in "
                "the tensor that is viewed",
            ),
            IndexedRow(
                name="gather_in_l1",
                dtypes=(*FLOATS, DataType.DT_INT8),
                index_dtypes=_32_OR_64,
                instruction="copy_gm_to_cbuf, a row at a time",
                source="pypto operation_impl.cpp: GatherInL1; the layout in L1 is the cube's",
            ),
            IndexedRow(
                name="scatter",
                dtypes=(*FLOATS, *COPIED[3:6], DataType.DT_UINT8),
                index_dtypes=_32_OR_64,
                added=NUMBERS,
                instruction="scalar stores, adds and multiplications in the order of the index",
                fidelity=Fidelity.ASSUMED,
                assumes=_ADDED,
                source=f"{_TILEOP}/scatter.h: A2/A3 has no vscatter; FP16 and BF16 are added and "
                "multiplied in FP32 and rounded at the end",
            ),
            IndexedRow(
                name="scatter_update",
                dtypes=(*FLOATS, *COPIED[3:6]),
                index_dtypes=(*_32_OR_64, DataType.DT_INT16),
                instruction="copy_ubuf_to_gm, a row at a time",
                source=f"{_TILEOP}/index_outcast.h: negative indices are left out",
            ),
            IndexedRow(
                name="index_put_",
                dtypes=(*COPIED, DataType.DT_INT64, DataType.DT_UINT64),
                index_dtypes=_WHOLE,
                added=NUMBERS,
                instruction="copy_ubuf_to_gm, with atomic addition where it accumulates",
                fidelity=Fidelity.BOUNDED,
                assumes=frozenset({ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW}),
                source="pypto docs/zh/api/operation/pypto-index_put_.md: the result of repeated "
                "indices is open",
            ),
            IndexedRow(
                name="atomic_add",
                dtypes=NUMBERS,
                instruction="copy_ubuf_to_gm with atomic addition",
                fidelity=Fidelity.BOUNDED,
                assumes=frozenset({ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW}),
                source="pypto docs/zh/api/operation/pypto-atomic_add.md: the order of additions by "
                "several cores is open",
            ),
            IndexedRow(
                name="topk",
                dtypes=_FP32,
                instruction="vbitsort, vmrgsort, vreducev2",
                fidelity=Fidelity.ASSUMED,
                assumes=_SORTED,
                source=f"{_TILEOP}/sort.h; pto-isa a2a3/TSort32.hpp, TMrgSort.hpp",
            ),
            IndexedRow(
                name="argsort",
                dtypes=FLOATS[:2],
                instruction="vbitsort, vmrgsort, vreducev2, on FP32",
                fidelity=Fidelity.ASSUMED,
                assumes=_SORTED,
                source="pypto docs/zh/api/operation/pypto-argsort.md: stable",
            ),
            *(
                IndexedRow(
                    name=name,
                    dtypes=FLOATS,
                    instruction="vcmax or vcmin with the index, vcmp and vsel, on FP32",
                    fidelity=Fidelity.ASSUMED,
                    assumes=_SORTED,
                    source=f"{_TILEOP}/reduce.h; asc-devkit ReduceMax.md: the smallest index",
                )
                for name in ("argmax", "argmin")
            ),
            IndexedRow(
                name="cumsum",
                dtypes=NUMBERS,
                instruction="vadd of tiles shifted by 1, 2, 4, ... elements",
                fidelity=Fidelity.ASSUMED,
                assumes=_ADDED,
                source=f"{_TILEOP}/cum_operation.h; pypto math.cpp: FP16 and BF16 run in FP32, "
                "integers in INT32",
            ),
            IndexedRow(
                name="one_hot",
                dtypes=(),
                index_dtypes=_WHOLE[:4],
                instruction="vector_dup 0, scalar stores of 1",
                source=f"{_TILEOP}/onehot.h",
            ),
        )
    }
)


def element_tensor(name: str, x: object, *, in_gm: bool = False) -> Tensor:
    """Refuse an operand that the row of this name does not list; see `check_tensor`."""
    return check_tensor(name, x, INDEXED_ROWS[name].dtypes, in_gm=in_gm)


def index_tensor(name: str, x: object, *, in_gm: bool = False) -> Tensor:
    """Refuse indices that the row of this name does not list; see `check_tensor`."""
    return check_tensor(name, x, INDEXED_ROWS[name].index_dtypes, in_gm=in_gm)


def held_indices(name: str, x: Tensor, length: int, *, least: int = 0) -> Enclosure | None:
    """The values of a tensor of indices; None if it has none.

    Raises:
        IndexError: one lies outside `least` to `length` - 1.
        ValueError: some of them nobody wrote.
    """
    held = held_by(x) if 0 not in x.valid_shape else None
    if held is not None:
        check_range(name, held.values, length, least=least)
        if held.interval is not None and (out := (held.low < least) | (held.high >= length)).any():
            recording.record_control_dependence(int(held.interval.cause[out][0]))
    return held


def check_range(name: str, indices: np.ndarray, length: int, *, least: int = 0) -> None:
    """Refuses indices that lead outside.

    Raises:
        IndexError: with the first of them.
    """
    outside = (indices < least) | (indices >= length)
    if outside.any():
        place = tuple(map(int, np.argwhere(outside)[0]))
        raise IndexError(
            f"{name}: index {indices[place]} at {list(place)} lies outside 0 to {length - 1}; a "
            "device would go elsewhere in memory"
        )


def same_dtype(name: str, first: Tensor, second: Tensor) -> DataType:
    """The dtype of two tensors.

    Raises:
        TypeError: they differ.
    """
    if first.dtype is not second.dtype:
        raise TypeError(f"{name} takes one dtype, not {first.dtype} and {second.dtype}; cast one")
    return first.dtype
