"""The ends of products of FP32 matrices on the native executor: one pass over the sums of a block.

The rules are those of `simulator.arithmetic.cube.float_product`, of lines without infinity and NaN
whose sums cannot overflow.
"""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np

from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.native.node_program import IS_OPEN, NEEDS_CARE
from simulator.arithmetic.operation import Array

_POINTER, _COUNT, _REAL, _TRUTH = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_int32


class _ProductBounds(ctypes.Structure):
    """The struct ProductBounds in C++."""

    _fields_ = (
        *((name, _POINTER) for name in ("product", "middle", "size", "of_left", "of_right")),
        *((name, _POINTER) for name in ("exact", "exact_rows", "of_zeros")),
        *((name, _POINTER) for name in ("left_causes", "right_causes")),
        *((name, _POINTER) for name in ("values", "low", "high", "causes")),
        *((name, _COUNT) for name in ("rows", "columns", "row_elems")),
        *((name, _REAL) for name in ("growth", "reach", "factor", "underflow", "largest")),
        *((name, _TRUTH) for name in ("cause", "joins_causes")),
    )


class _ProductFactors(ctypes.Structure):
    """The struct ProductFactors in C++."""

    _fields_ = (
        *((name, _POINTER) for name in ("numbers", "low", "high", "causes")),
        *((name, _COUNT) for name in ("numbers_elems", "low_elems", "high_elems", "causes_elems")),
        *((name, _POINTER) for name in ("values", "middle", "radius", "reach", "weights")),
        *((name, _POINTER) for name in ("exact", "sides", "cause_of")),
        *((name, _COUNT) for name in ("rows", "terms")),
        *((name, _REAL) for name in ("least", "growth", "factor")),
        ("joins_causes", _TRUTH),
    )


_DENSE: Final = ("product", "middle", "size", "of_left", "of_right", "exact")
"""Arrays whose rows lie side by side."""


def bound(
    executor: Executor,
    sums: dict[str, Array | None],
    lines: dict[str, Array | None],
    out: dict[str, Array | None],
    *,
    joins_causes: bool,
    cause: int,
    **limits: float,
) -> bool | None:
    """Write the values, the ends and the causes of a block of a product.

    Args:
        executor: the library.
        sums: "product", "middle", "size", "of_left", "of_right" in float64, "exact" by element, or
            None of the last three.
        lines: "exact_rows", "of_zeros" by column, "left_causes", "right_causes" or None.
        out: "values", "low", "high", and "causes" or None; rows that are equally far apart.
        joins_causes: they are choices.
        cause: of the product itself.
        limits: "growth", "reach", "factor", "underflow", "largest", as C++ has them.

    Returns:
        True if an element is open; None where the rules do not hold: the outputs may be
        overwritten.
    """
    values = out["values"]
    assert values is not None
    rows, columns = values.shape
    given = {**{name: sums[name] for name in _DENSE}, **lines}
    held = {k: None if x is None else np.ascontiguousarray(x) for k, x in given.items()}
    block = _ProductBounds(
        **{name: _address(x) for name, x in {**held, **out}.items()},
        rows=rows,
        columns=columns,
        row_elems=_row_elems(values),
        **limits,
        cause=cause,
        joins_causes=joins_causes,
    )
    found = executor.library.pypto_cast_arithmetic_bound_products(
        executor.levels.index(executor.level), ctypes.byref(block)
    )
    return None if found & NEEDS_CARE else bool(found & IS_OPEN)


def prepared(
    executor: Executor,
    values: Array,
    low: Array,
    high: Array,
    causes: Array | None,
    rooms: dict[str, Array],
    *,
    least: float,
    growth: float,
    factor: float,
    joins_causes: bool,
) -> dict[str, Array] | None:
    """Prepare rows of an operand with intervals; None where an element may be infinite or NaN.

    Args:
        executor: the library.
        values, low, high: FP32, of one shape.
        causes: of the same shape; None: they are not asked for.
        rooms: the memory of "values", "middle", "radius", "reach" and perhaps "weights" in float64,
            C-contiguous.
        least: numbers below it may be zero.
        growth, factor: of the weights.
        joins_causes: they are choices.

    Returns:
        What is in the rooms; by row "exact", "cause" if `causes` were given, and "sides" with the
        weights, see `_with_weights` of `matrix_operand`.
    """
    given = [x if _has_rows(x) else np.ascontiguousarray(x) for x in (values, low, high)]
    held = None
    if causes is not None:
        held = causes if _has_rows(causes) else np.ascontiguousarray(causes)
    found = dict(rooms)
    found["exact"] = np.empty(values.shape[0], np.bool_)
    if "weights" in rooms:
        found["sides"] = np.empty(values.shape[0], np.uint8)
    if held is not None:
        found["cause"] = np.empty(values.shape[0], np.uint16)
    factors = _ProductFactors(
        numbers=_address(given[0]),
        low=_address(given[1]),
        high=_address(given[2]),
        causes=_address(held),
        numbers_elems=_row_elems(given[0]),
        low_elems=_row_elems(given[1]),
        high_elems=_row_elems(given[2]),
        causes_elems=0 if held is None else _row_elems(held),
        **{name: _address(room) for name, room in rooms.items()},
        exact=_address(found["exact"]),
        sides=_address(found.get("sides")),
        cause_of=_address(found.get("cause")),
        rows=values.shape[0],
        terms=values.shape[1],
        least=least,
        growth=growth,
        factor=factor,
        joins_causes=joins_causes,
    )
    status = executor.library.pypto_cast_arithmetic_prepare_factors(
        executor.levels.index(executor.level), ctypes.byref(factors)
    )
    return None if status & NEEDS_CARE else found


def _address(array: Array | None) -> int | None:
    return None if array is None else array.ctypes.data


def _row_elems(array: Array) -> int:
    return array.strides[0] // array.itemsize


def _has_rows(array: Array) -> bool:
    """The elements of each row lie side by side, in native order, and rows a whole number apart."""
    flags = array.flags.aligned and array.dtype.isnative
    return (
        bool(flags) and array.strides[1] == array.itemsize and not array.strides[0] % array.itemsize
    )
