"""Operations on few elements: their programs are made once for each layout of operands, and kept.

To make a program takes longer than to run it there. So such operations never wait for others, and
equal ones differ by the addresses of their arrays alone.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import numpy as np

from simulator.arithmetic.interval import Enclosure, Interval
from simulator.arithmetic.native.deferred_intervals import Part
from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.native.interval_nodes import Added, Builder
from simulator.arithmetic.native.node_program import IS_OPEN, NEEDS_CARE, Deferred, Node
from simulator.arithmetic.operation import Array, Operation
from simulator.arithmetic.reduction_order import Tiles
from simulator.numbers.formats import FP32, Format

if TYPE_CHECKING:
    from simulator.arithmetic.native.kept_program import KeptProgram

WAITING: Final[ContextVar[list[weakref.ref[Deferred]] | None]] = ContextVar(
    "waiting_operations", default=None
)
"""The results that wait in a context; None where operations run at once."""
FEW_ELEMS: Final = 1 << 12
"""Of each operand and of the result."""
_MORE_AT_ONCE: Final = 16
"""So many times as many are few for values alone, where operations do not wait for others."""
_MOST_KEPT: Final = 1 << 10
Programs = dict[tuple[int | tuple[int, ...], ...], "KeptProgram"]
"""The programs of an operation on exact operands, by their shapes after whether it squares and the
cause of what it leaves open, 0 where it leaves nothing open.
"""


class _Kept:
    """The programs of one kind, by all that decides them."""

    def __init__(self) -> None:
        self._programs: dict[tuple[object, ...], KeptProgram] = {}

    def run(
        self,
        key: tuple[object, ...],
        given: Sequence[Array],
        make: Callable[[], Sequence[Part]],
    ) -> tuple[list[Array], int] | None:
        """Run a program; see `KeptProgram.run`. None where none can be kept.

        Args:
            key: decides the program, for arrays of these shapes.
            given: different arrays.
            make: gives the nodes of the program, and arrays among its results.
        """
        program = self._programs.get(key)
        if program is None:
            from simulator.arithmetic.native.kept_program import KeptProgram

            program = KeptProgram(make(), given)
            if len(self._programs) >= _MOST_KEPT:
                self._programs.clear()
            self._programs[key] = program
        return program.run(given) if program.depends_on_addresses else None

    def kept(self, key: tuple[object, ...]) -> KeptProgram:
        """The program that ran last under a key."""
        return self._programs[key]


_UNUSED: Final = Enclosure(values=np.empty(0, np.float32))
_VALUES: Final = _Kept()
_INTERVALS: Final = _Kept()


def result_at(operands: Sequence[Enclosure], cause: int, programs: Programs) -> Enclosure | None:
    """The result of an operation on exact operands like those that one was given before.

    Args:
        operands: any that the operation takes.
        cause: of what the operation itself leaves open.
        programs: of the operation, by the shapes of its operands; see `values_of`.

    Returns:
        None where an operand may be open or no program is there.
    """
    given, shapes = [], []
    for x in operands:
        if type(x) is not Enclosure or x.interval is not None:
            return None
        array = x.values
        if not isinstance(array, np.ndarray):  # a number of numpy's, which has no address
            return None
        flags = array.flags
        if (array.size > FEW_ELEMS and array.size > most_elems()) or not (
            flags.carray or (flags.c_contiguous and flags.aligned)  # the first one asks for both
        ):
            return None
        given.append(array)
        shapes.append(array.shape)
    is_square = len(given) > 1 and given[1] is given[0]
    distinct = given[1:] if is_square else given
    program = programs.get((is_square, cause, *shapes))
    if program is None or (len(distinct) > 1 and len(set(map(id, distinct))) < len(distinct)):
        return None
    results, findings = program.run(distinct)
    return _enclosure(results, findings) if findings else Enclosure(values=results[0])


def _enclosure(results: Sequence[Array], findings: int) -> Enclosure | None:
    """The result of a program: values alone, or with both ends and causes."""
    if not findings & IS_OPEN:
        return None if findings & NEEDS_CARE else Enclosure(values=results[0])
    values, low, high, causes = results
    held = Interval(low=low, high=high, may_be_nan=None, cause=_spread(causes, values.shape))
    return None if findings & NEEDS_CARE else Enclosure(values=values, interval=held)


def _spread(causes: Array, shape: tuple[int, ...]) -> Array:
    """Causes over a shape, as `np.broadcast_to` gives them, which asks for more than one needs."""
    if causes.shape == shape and not causes.flags.writeable:
        return causes
    if causes.shape == shape or causes.size != 1:
        return np.broadcast_to(causes, shape)
    spread: Array = np.ndarray(shape, causes.dtype, causes, 0, (0,) * len(shape))
    spread.flags.writeable = False
    return spread


def most_elems() -> int:
    """So many elements are few for values alone."""
    return FEW_ELEMS if WAITING.get() is not None else FEW_ELEMS * _MORE_AT_ONCE


def are_few(shape: tuple[int, ...], operands: Sequence[Enclosure], most: int | None = None) -> bool:
    """True if a result and operands that are there have few elements, side by side."""
    most = FEW_ELEMS if most is None else most
    if math.prod(shape) > most:
        return False
    return not any(x.is_pending or not _lie_together(x.values, most) for x in operands)


def _lie_together(array: Array, most: int) -> bool:
    flags = array.flags
    return (
        isinstance(array, np.ndarray)
        and 0 < array.size <= most
        and flags.c_contiguous
        and flags.aligned
        and array.dtype.isnative
    )


def values_of(
    executor: Executor,
    operation: Operation,
    operands: Sequence[Enclosure],
    fmt: Format,
    shape: tuple[int, ...],
    make: Callable[[Sequence[Array]], Node],
    *,
    order: tuple[str, Tiles | None] | None = None,
    programs: Programs | None = None,
) -> Array | None:
    """The values of an elementwise operation or a reduction; None where no program is kept of it.

    Args:
        executor, operation, fmt, shape: as for `node_of`.
        operands: as `are_few` wants them.
        make: gives the node.
        order: of a reduction: its name there, and its tiles.
        programs: takes the program for `result_at`.
    """
    given = [x.values for x in operands]
    shapes = tuple([array.shape for array in given])
    if fmt is not FP32 and any(each != shape for each in shapes):
        return None  # a part of it would be computed by itself
    is_square = len(given) > 1 and given[1] is given[0]
    if len(given) > 2 and len(set(map(id, given))) + is_square < len(given):
        return None
    key = (executor, operation, fmt, shape, shapes, is_square, order)
    distinct = given[1:] if is_square else given
    found = _VALUES.run(key, distinct, lambda: [make(given)])
    if found is None:
        return None
    if programs is not None:
        _keep(programs, (is_square, 0, *shapes), _VALUES.kept(key))
    return found[0][0]


def _keep(programs: Programs, key: tuple[int | tuple[int, ...], ...], made: KeptProgram) -> None:
    if len(programs) >= _MOST_KEPT:
        programs.clear()
    programs[key] = made


def interval_of(
    executor: Executor,
    operation: Operation,
    operands: Sequence[Enclosure],
    shape: tuple[int, ...],
    added: Added,
    programs: Programs,
) -> Enclosure | None:
    """An operation on intervals of FP32; None where its rules do not cover it.

    Args:
        executor, operation, shape, added: as for `operation_nodes.interval_of`.
        operands: as `are_few` wants them, of no possible NaN.
        programs: takes the program for `result_at`, where all operands are exact.
    """
    is_square = len(operands) > 1 and operands[1] is operands[0]
    given: list[Array] = []
    layout: list[object] = []
    taken: list[Enclosure] = []
    for x in operands[1:] if is_square else operands:
        given.append(x.values)
        if x.interval is None:
            layout.append((x.values.shape, None))
            taken.append(x)
            continue
        low, high, causes = x.interval.low, x.interval.high, x.interval.cause
        if not any(causes.strides):
            causes = causes.reshape(-1)[:1].copy()
        ends = (low, high, causes)
        if x.values.shape != shape or not all(_lie_together(each, FEW_ELEMS) for each in ends):
            return None
        given.extend(ends)
        layout.append((shape, causes.shape))
        held = Interval(low=low, high=high, may_be_nan=None, cause=causes)
        taken.append(Enclosure(values=x.values, interval=held))
    if is_square:
        taken *= 2
    if len({id(array) for array in given}) < len(given):
        return None

    def make() -> Sequence[Part]:
        builder = Builder(executor, taken, 1, lambda: _UNUSED, is_kept=True)
        parts = builder.elementwise(operation, shape, added).parts
        cause = parts.cause
        if isinstance(cause, np.ndarray) and not any(cause is array for array in given):
            cause = _spread(cause, shape)  # a constant: once for all results
        return (parts.values, parts.low, parts.high, cause, *parts.checks)

    key = (executor, operation, shape, *layout, is_square, added)
    found = _INTERVALS.run(key, given, make)
    if found is not None and all(x.interval is None for x in operands):
        shapes = [x.values.shape for x in operands]
        _keep(programs, (is_square, added.cause, *shapes), _INTERVALS.kept(key))
    return None if found is None else _enclosure(*found)
