"""Operations of the table as nodes of programs: which of them the native executor has, and how.

FP16 has no loops of its own: an operation of one operand looks its codes up, one of several runs in
FP32 and is rounded once, as `simulator.arithmetic.computed` defines it.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from simulator.arithmetic.interval import Enclosure
from simulator.arithmetic.native.deferred_intervals import DeferredInterval, are_covered, unheld
from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.native.executor_library import executor_for as executor_for
from simulator.arithmetic.native.interval_nodes import INT32_OF_FP32, OPERATIONS, TRUTHS, Builder
from simulator.arithmetic.native.interval_nodes import Added as Added
from simulator.arithmetic.native.node_program import (
    Deferred,
    Node,
    arrays_read,
    compute_all,
)
from simulator.arithmetic.native.small_programs import WAITING, Programs, are_few, most_elems
from simulator.arithmetic.native.small_programs import interval_of as small_interval
from simulator.arithmetic.native.small_programs import values_of as small_values
from simulator.arithmetic.operation import Array, Operation
from simulator.arithmetic.reduction_order import Tiles
from simulator.numbers.convert import INF_NAN, Conversion
from simulator.numbers.engines import Engine
from simulator.numbers.formats import BF16, BOOL, FP16, FP32, INT32, Format
from simulator.numbers.rounding import RoundMode


@contextlib.contextmanager
def deferring() -> Iterator[None]:
    """Let native operations wait, so that several become one program.

    Results that somebody still holds are computed when the outermost body ends, if nobody read them
    before; after an exception when they are read. Until then nothing may modify the operands: that
    is the caller's to see to.
    """
    if WAITING.get() is not None:
        yield
        return
    waiting: list[weakref.ref[Deferred]] = []
    token = WAITING.set(waiting)
    try:
        yield
    finally:
        WAITING.reset(token)
    _compute(waiting)


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """Let native operations run at once, for a caller who reads each result before the next."""
    token = WAITING.set(None)
    try:
        yield
    finally:
        WAITING.reset(token)


_SHORT_WORK: Final = 1 << 28
"""Steps of elements that take a good deal less than a second."""


def settle(later: Sequence[Enclosure]) -> None:
    """Compute the results that wait in this context and that somebody holds.

    Args:
        later: results that are left out, unless they take long.
    """
    waiting = WAITING.get()
    if waiting is None:
        return
    left = {
        id(x)
        for x in later
        if isinstance(x, Deferred) and x.node.steps * math.prod(x.shape) <= _SHORT_WORK
    }
    _compute([x for x in waiting if id(x()) not in left])
    waiting.clear()


def compute_into(take: Sequence[Callable[[], Enclosure]], homes: Sequence[Array]) -> list[Array]:
    """Compute results that wait, each right into an array where that changes nothing else.

    Such an array is C-contiguous, of the result's shape and dtype; no result reads it, and nobody
    else has the result.

    Args:
        take: gives each result, and holds it no longer.
        homes: the arrays, by result.

    Returns:
        The values of each result: its home, or other memory.
    """
    nodes = []
    for each in take:
        held = each()
        assert isinstance(held, Deferred)
        nodes.append(held.node)
        del held
    read = arrays_read(nodes)
    memory: dict[int, Array] = {}
    for node, home in zip(nodes, homes, strict=True):
        is_alone = node.holder is None or node.holder() is None
        if not is_alone or node.array is not None or id(node) in memory:
            continue
        flags = home.flags
        fits = flags.c_contiguous and flags.aligned and flags.writeable and home.dtype.isnative
        if not fits or home.shape != node.shape or home.dtype != node.dtype:
            continue
        if not any(np.may_share_memory(home, array) for array in (*read, *memory.values())):
            memory[id(node)] = home
    compute_all(nodes, memory)
    return [node.computed() for node in nodes]


def is_deferring() -> bool:
    """True if native operations wait in this context."""
    return WAITING.get() is not None


def _compute(waiting: list[weakref.ref[Deferred]]) -> None:
    while waiting:
        held = waiting.pop()()
        if held is not None:
            held.node.computed()


def has_function(executor: Executor, operation: Operation, fmt: Format, inf_nan_mode: bool) -> bool:
    """True if the executor has an elementwise operation in a format."""
    if fmt is FP32:
        return operation.name in executor.opcodes
    if fmt is BOOL:
        return operation.name in TRUTHS
    if fmt is not FP16 or not (inf_nan_mode or operation.gives_truth or operation.copies):
        return False
    return operation.name in executor.opcodes and (
        operation.operands > 1 or not operation.gives_truth
    )


def node_of(
    executor: Executor,
    operation: Operation,
    operands: Sequence[Node | Array],
    fmt: Format,
    shape: tuple[int, ...],
    table: Callable[[], Array],
    *,
    threads: int = 1,
) -> Node:
    """An elementwise operation that the executor has.

    Args:
        executor: the library.
        operation: the row.
        operands: values of `fmt`'s dtype, and nodes of such.
        fmt: FP32, FP16 or BOOL.
        shape: the broadcast shape.
        table: gives the results of all codes of FP16, of an operation of one operand.
        threads: that share the work, at most.
    """
    result = BOOL if operation.gives_truth else fmt

    def node(name: str, *taken: Node | Array, dtype: np.dtype[np.generic] = result.dtype) -> Node:
        whole = shape if dtype == result.dtype or not taken else taken[0].shape or (1,)
        return Node(executor, name, taken, whole, dtype, threads=threads)

    if fmt is FP32:
        return node(operation.name, *operands)
    if fmt is BOOL:
        return node(TRUTHS[operation.name], *operands)
    if operation.copies:
        return node("where16", *operands)
    if operation.operands == 1:
        return node("lookup16", operands[0], table())
    wide = [node("fp32_of_fp16", x, dtype=FP32.dtype) for x in operands]
    if operation.gives_truth:
        return node(operation.name, *wide)
    joined = Node(executor, operation.name, wide, shape, FP32.dtype, threads=threads)
    return node("fp16_of_fp32", joined)


def may_be_open(x: Enclosure) -> bool:
    """True if an enclosure has an interval, or may have one that is not computed yet."""
    if isinstance(x, DeferredInterval) and x.is_pending:
        return True
    return x.interval is not None


def interval_of(
    executor: Executor,
    operation: Operation,
    operands: Sequence[Enclosure],
    shape: tuple[int, ...],
    by_numpy: Callable[[Sequence[Enclosure]], Enclosure],
    *,
    added: Added,
    threads: int,
    programs: Programs | None,
) -> Enclosure | None:
    """An operation on intervals of FP32 or truths; None where the executor lacks its rule.

    Args:
        executor, operation, operands, threads: as for `evaluate`.
        shape: of the result.
        by_numpy: evaluates it on operands.
        added: by the operation.
        programs: of the operation, where the operands are as `are_few` wants them.
    """
    if operation.name not in OPERATIONS:
        return None
    if added.choices is None and not (added.ulps or are_covered(operands)):
        return None
    if any(not _is_flagless(x) for x in operands):
        return None
    if programs is not None:
        return small_interval(executor, operation, operands, shape, added, programs)
    kept = _unheld(operands)
    builder = Builder(executor, operands, threads, lambda: by_numpy(kept))
    found = builder.elementwise(operation, shape, added)
    return _now_or_later(found)


def _is_flagless(x: Enclosure) -> bool:
    if isinstance(x, DeferredInterval) and x.is_pending:
        return True
    return x.interval is None or x.interval.may_be_nan is None


def _unheld(operands: Sequence[Enclosure]) -> list[Enclosure]:
    """Operands that nobody holds, each of them once."""
    found = {id(x): unheld(x) for x in operands}
    return [found[id(x)] for x in operands]


def _now_or_later(found: Enclosure) -> Enclosure:
    """The result of nodes: later, if operations wait, else now."""
    if WAITING.get() is None:
        return Enclosure(values=found.values, interval=found.interval)
    return found


def rows_of_interval(
    executor: Executor,
    name: str,
    operand: Enclosure,
    tiles: Tiles | None,
    by_numpy: Callable[[Enclosure], Enclosure],
    *,
    threads: int,
) -> Enclosure | None:
    """A reduction of the last axis of intervals of FP32; None where the executor lacks its rule.

    Args:
        executor, name, tiles, threads: as for `row_node`.
        operand: it may be open.
        by_numpy: evaluates it.
    """
    if not are_covered([operand]):
        return None
    kept = unheld(operand)
    builder = Builder(executor, [operand], threads, lambda: by_numpy(kept))
    found = builder.rows(lambda part: row_node(executor, name, part, tiles, threads))
    return None if found is None else _now_or_later(found)


def rows_by_choices(
    executor: Executor,
    name: str,
    operand: Enclosure,
    tiles: Tiles | None,
    by_numpy: Callable[[Enclosure], Enclosure],
    *,
    rule: Array | None,
    own: int,
    threads: int,
) -> Enclosure | None:
    """A reduction as `rows_of_interval`, whose causes are the choices of all open elements.

    Args:
        executor, name, operand, tiles, by_numpy, threads: as for that; a sum's values alone are
            ordered by tiles.
        rule: the struct SumRule in C++, of a sum in any order.
        own: the choices that would close such a sum.
    """
    if not _is_flagless(operand):
        return None
    kept = unheld(operand)
    builder = Builder(executor, [operand], threads, lambda: by_numpy(kept))
    reduction = partial(row_node, executor, name, tiles=tiles, threads=threads)
    if rule is None:
        return _now_or_later(builder.rows_by_choices(reduction))
    return _now_or_later(builder.sum_in_any_order(reduction, rule, own))


def reduced_rows(
    executor: Executor,
    operation: Operation,
    name: str,
    operand: Enclosure,
    tiles: Tiles | None,
    threads: int,
    programs: Programs | None = None,
) -> Enclosure:
    """A reduction of the last axis of exact FP32 values; see `row_node`.

    The program of one of few elements goes to `programs`.
    """
    shape = (*operand.shape[:-1], 1)
    if operand.shape != shape and are_few(shape, [operand], most_elems()):
        values = small_values(
            *(executor, operation, [operand], FP32, shape),
            lambda given: row_node(executor, name, given[0], tiles, threads),
            order=(name, tiles),
            programs=programs,
        )
        if values is not None:
            return Enclosure(values=values)
    return enclosure_of(row_node(executor, name, operand_of(operand), tiles, threads))


def row_node(
    executor: Executor, name: str, operand: Node | Array, tiles: Tiles | None, threads: int
) -> Node:
    """A reduction of the last axis of FP32 values."""
    shape = (*operand.shape[:-1], 1)
    if operand.shape == shape and name == "sum_by_repeats":
        onto_zero = (operand, np.zeros(1, FP32.dtype))
        return Node(executor, "add", onto_zero, shape, FP32.dtype, threads=threads)
    if operand.shape == shape:  # the greater of an element and itself is that, or the one NaN
        taken = (operand, operand)
        return Node(executor, "maximum", taken, shape, FP32.dtype, threads=threads)
    return Node(
        executor, name, (operand,), shape, FP32.dtype, reduces=True, tiles=tiles, threads=threads
    )


_WIDENED: Final[Mapping[tuple[Format, Format], str]] = {
    (BF16, FP32): "fp32_of_bf16",
    (FP16, FP32): "fp32_of_fp16",
}
_ROUNDED: Final[Mapping[tuple[Format, Format], str]] = {
    (FP32, BF16): "bf16_of_fp32",
    (FP32, FP16): "fp16_of_fp32",
    (INT32, FP32): "fp32_of_int32",
}


def _cast_name(conversion: Conversion) -> str | None:
    """A conversion as the library spells it; None where it has none."""
    pair = conversion.src, conversion.dst
    if pair == (FP32, INT32):
        keeps_low_bits = conversion.policy.overflow.keeps_low_bits
        return None if keeps_low_bits else INT32_OF_FP32.get(conversion.mode)
    if pair in _WIDENED:
        return _WIDENED[pair]
    is_nearest = conversion.mode is RoundMode.RINT and conversion.policy == INF_NAN
    return _ROUNDED.get(pair) if is_nearest else None


def waiting_cast(
    chain: tuple[Conversion, ...],
    operand: Enclosure,
    again: Callable[[Enclosure], Enclosure],
    *,
    names_choices: bool,
    engine: Engine,
    threads: int,
) -> Enclosure | None:
    """A conversion as a node among others; None where none wait, or the executor lacks it.

    It has those of FP16 and BF16 from and to FP32 that round to the nearest and overflow to
    infinity, of INT32 to FP32, and of FP32 to INT32 that clamp.

    Args:
        chain: of one conversion or more.
        operand: values of its source.
        again: carries it out where its ends need care.
        names_choices: no rule of casts is taken for granted, and causes name choices.
        engine, threads: as for `evaluate`.
    """
    if WAITING.get() is None or len(chain) != 1 or not operand.shape:
        return None
    if not operand.is_pending and operand.interval is None and are_few(operand.shape, [operand]):
        return None
    (conversion,) = chain
    name = _cast_name(conversion)
    if name is None:
        return None
    executor = executor_for(engine)
    if executor is None:
        return None
    if names_choices or may_be_open(operand):
        if not _is_flagless(operand):
            return None
        kept = unheld(operand)
        builder = Builder(executor, [operand], threads, lambda: again(kept))
        return builder.cast(name, conversion.dst.dtype, names_choices=names_choices)
    given = operand_of(operand)
    node = Node(executor, name, (given,), given.shape, conversion.dst.dtype, threads=threads)
    return enclosure_of(node)


def operand_of(x: Enclosure) -> Node | Array:
    """The values of an enclosure, or the node that they wait for."""
    return x.node if isinstance(x, Deferred) else x.values


def enclosure_of(node: Node) -> Enclosure:
    """The result of a node: later, if operations wait, else now."""
    waiting = WAITING.get()
    if waiting is None:
        return Enclosure(values=node.computed())
    found = Deferred(node)
    waiting.append(weakref.ref(found))
    return found
