"""Programs of tile operations for the native executor, run at once or once a result is read.

A `Node` is an operation on arrays and other nodes. The nodes that a result comes from become one
program, which runs block by block of rows: intermediate results are in the cache alone, unless
somebody holds them. All nodes of a program have the same rows; they have one column or all.
"""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import numpy as np

from simulator.arithmetic.interval import Enclosure
from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.operation import Array
from simulator.arithmetic.reduction_order import Tiles
from simulator.numbers import elementwise, result_memory

_MOST_STEPS: Final = 480
_CALL_ELEMS: Final = 1 << 23
"""Elements of one call: signals are handled in between."""
_THREAD_ELEMS: Final = 1 << 17
"""Fewer elements are not worth a thread of their own."""
_OPERANDS: Final = 6
_STATUS_NO_MEMORY: Final = 3
NEEDS_CARE: Final = 1
IS_OPEN: Final = 2
HAS_CERTAIN: Final = 4
"""The findings of checks, as `Finding` in C++."""


_NOTHING: Final = np.empty(0, np.uint8)
"""The elements of a check that was made."""


class _Buffer(ctypes.Structure):
    """The struct Buffer in C++."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("row_bytes", ctypes.c_int64),
        ("elem_bytes", ctypes.c_int32),
        ("is_wide", ctypes.c_int32),
    )


class _Step(ctypes.Structure):
    """The struct Step in C++."""

    _fields_ = (
        ("opcode", ctypes.c_int32),
        ("out", ctypes.c_int32),
        ("operands", ctypes.c_int32 * _OPERANDS),
        ("joins", ctypes.c_int32),
        ("joins_end", ctypes.c_int32),
        ("extent", ctypes.c_int32),
    )


_Item = TypeVar("_Item", _Buffer, _Step, ctypes.c_int32)


@functools.cache
def _array_type(item: type[_Item], count: int) -> type[ctypes.Array[_Item]]:
    """The type of an array, made once: each is a cycle, which only a collection would free."""
    return item * count


class Holder(Protocol):
    """The holder of a node's result."""

    def take_note(self) -> None:
        """See `Enclosure.take_note`."""


class Node:
    """An operation of a program, and its result once it is computed.

    Args:
        executor: the library that runs it.
        name: of the operation, as the library spells it.
        operands: whose shapes broadcast to `shape`; not modified until the result is there.
        shape: of the result, with at least one dimension.
        dtype: of its elements.
        reduces: it has one element for each row.
        checks: it has findings in place of elements.
        tiles: of a sum.
        threads: that share the work, at most.
    """

    __slots__ = (
        "array",
        "checks",
        "columns",
        "dtype",
        "executor",
        "findings",
        "holder",
        "marks",
        "opcode",
        "operands",
        "reduces",
        "shape",
        "steps",
        "threads",
        "tiles",
    )

    def __init__(
        self,
        executor: Executor,
        name: str,
        operands: Sequence[Node | Array],
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        *,
        reduces: bool = False,
        checks: bool = False,
        tiles: Tiles | None = None,
        threads: int = 1,
    ) -> None:
        self.executor, self.threads = executor, threads
        self.opcode = executor.opcodes[name]
        self.shape, self.dtype, self.reduces, self.tiles = shape, dtype, reduces, tiles
        self.array: Array | None = None
        self.checks, self.findings = checks, 0
        self.marks: Array | None = None
        """Of a check at the end of a program: the findings of each row, or of a block of rows."""
        self.holder: Callable[[], Holder | None] | None = None
        """Of a check, who waits for its findings; of a result, who holds it."""
        self.columns = shape[-1]
        if reduces:  # of several operands the first may have one element for a row
            self.columns = max(x.shape[-1] for x in operands[:2] if x.shape)
        self.steps = 1
        taken: list[Node | Array] = []
        for x in operands:
            kept = x
            if isinstance(x, np.ndarray):
                is_repeated = bool(x.ndim) and x.shape[-1] > 1 and x.strides[-1] == 0
                if is_repeated and len(operands) > 1:
                    kept = x[..., :1]
            elif isinstance(x, Node):
                if x.array is not None or not self._joins(x):
                    kept = x.computed()
                else:
                    self.steps += x.steps
            taken.append(kept)
        self.operands = tuple(taken)
        if self.steps > _MOST_STEPS:  # shared ones were counted again and again
            self.steps = count_steps([self])
        if self.steps > _MOST_STEPS:
            compute_all([x for x in taken if isinstance(x, Node)], {})
            self.operands = tuple(x.computed() if isinstance(x, Node) else x for x in taken)
            self.steps = 1

    def _joins(self, x: Node) -> bool:
        """Takes a node into this one's program, if it has the same rows, and columns or one."""
        if x.shape[:-1] != self.shape[:-1]:
            return False
        if self.columns == 1:
            self.columns = x.columns
        return x.columns in (1, self.columns)

    def computed(self, out: Array | None = None) -> Array:
        """The result, computed now if it is not there.

        Args:
            out: the memory to write it to, of its shape and dtype, C-contiguous.
        """
        if self.array is None:
            Program([self], {} if out is None else {id(self): out}).run()
            assert self.array is not None
        return self.array

    def pending_operands(self) -> tuple[Node | Array, ...] | None:
        """The operands; None once the result is there, which another thread may compute meanwhile.

        The result is set before the operands are given up: whoever reads them in the other order
        has both, or the result.
        """
        operands = self.operands
        return operands if self.array is None else None


def compute_all(nodes: Sequence[Node], memory: Mapping[int, Array]) -> None:
    """Compute nodes, as one program where they have the same rows.

    Args:
        nodes: of any operations.
        memory: by the `id` of a node, where its result may go to; of its shape and dtype,
            C-contiguous, and apart from everything that any of the nodes reads. The last program
            alone writes there: if any fails, all of it is as it was.
    """
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in nodes:
        if node.array is None:
            key = id(node.executor), node.shape[:-1], node.columns
            groups.setdefault(key, []).append(node)
    batches: list[list[Node]] = []
    for group in groups.values():
        is_one = not has_more_steps(group, _MOST_STEPS)
        batches += [group] if is_one else [[node] for node in group]
    batches.sort(key=lambda batch: sum(_bytes_in(memory, node) for node in batch))
    for k, batch in enumerate(batches):
        if any(node.array is None for node in batch):
            Program(batch, memory if k == len(batches) - 1 else {}).run()


def _bytes_in(memory: Mapping[int, Array], node: Node) -> int:
    return memory[id(node)].nbytes if id(node) in memory else 0


def has_more_steps(nodes: Iterable[Node], most: int) -> bool:
    """True if `count_steps` gives more than so many; of few a sum tells that alone."""
    left = [node for node in nodes if node.array is None]
    return sum(node.steps for node in left) > most and count_steps(left) > most


def count_steps(nodes: Iterable[Node]) -> int:
    """The number of nodes that are not computed yet among some and those they depend on."""
    return len(_pending(nodes))


def _pending(nodes: Iterable[Node]) -> dict[int, Node]:
    found: dict[int, Node] = {}
    left = [node for node in nodes if node.array is None]
    while left:
        node = left.pop()
        if id(node) not in found:
            found[id(node)] = node
            left.extend(
                x for x in node.pending_operands() or () if isinstance(x, Node) and x.array is None
            )
    return found


def arrays_read(nodes: Iterable[Node]) -> list[Array]:
    """The arrays that nodes depend on which are not computed yet."""
    found: list[Array] = []
    for node in _pending(nodes).values():
        for x in node.pending_operands() or ():
            array = x.array if isinstance(x, Node) else x
            if array is not None:
                found.append(array)
    return found


class Deferred(Enclosure):
    """An exact enclosure whose values are computed when they are first read."""

    __slots__ = ("__weakref__", "node")
    node: Node

    def __init__(self, node: Node) -> None:
        object.__setattr__(self, "node", node)
        object.__setattr__(self, "interval", None)  # `values` is left out: see __getattr__
        node.holder = weakref.ref(self)

    def __getattr__(self, name: str) -> Array:
        if name != "values":
            raise AttributeError(name)
        values = self.node.computed()
        object.__setattr__(self, "values", values)
        return values

    @property
    def waits(self) -> bool:
        return self.node.array is None

    @property
    def is_pending(self) -> bool:
        return self.node.array is None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.node.dtype


class Program:
    """The steps of some nodes with the same rows, and of the nodes that they depend on.

    Args:
        roots: whose results are wanted.
        memory: as for `compute_all`.
        keeps: results of other nodes that somebody holds are wanted too.
    """

    def __init__(
        self, roots: Sequence[Node], memory: Mapping[int, Array], *, keeps: bool = True
    ) -> None:
        self._nodes: list[Node] = []
        self._operands: dict[int, tuple[Node | Array, ...]] = {}
        # Ends go as soon as they are seen, but those of a result that the last check marks.
        for node in sorted(roots, key=lambda x: x is roots[-1] or not x.checks):
            self._collect(node)
        if not self._nodes:
            return
        node = self._node = roots[0]
        wide = {x.columns for x in self._nodes} - {1}
        self._columns = wide.pop() if wide else 1
        self._lead = node.shape[:-1]
        self._rows = math.prod(self._lead)
        self.buffers: list[tuple[int, int, int, bool]] = []
        self._places: dict[int, int] = {}
        self.arrays: dict[int, Array] = {}
        self.has_copies = False
        self._free: dict[tuple[int, bool], list[int]] = {}
        self._joins: list[tuple[int, int]] = []
        asked = {id(x) for x in roots}
        self.results: list[tuple[Node, Array]] = []
        self._checks = [x for x in self._nodes if x.checks]
        for x in self._nodes:
            if x.checks:
                continue
            is_held = keeps and x.holder is not None and x.holder() is not None
            if is_held or id(x) in asked:
                out = memory.get(id(x))
                self.results.append((x, _room(x) if out is None else out))
        for x, array in self.results:
            self._places[id(x)] = self._buffer_of(array, is_wide=self._is_wide(x))
        self._guarded: dict[int, tuple[Node, int, int]] = {}
        if self._checks:  # of intervals
            from simulator.arithmetic.native.guarded_steps import find_guarded

            kept = {id(x) for x, _ in self.results} | {id(x) for x in self._checks}
            self._guarded = find_guarded(self._nodes, self._operands, kept)
        self.step_of: dict[int, int] = {}
        self._steps = self._make_steps()

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._rows, self._columns

    def _collect(self, node: Node) -> None:
        operands = node.pending_operands()
        if operands is None or id(node) in self._operands:
            return
        self._operands[id(node)] = operands
        for x in operands:
            if isinstance(x, Node):
                self._collect(x)
        self._nodes.append(node)

    def _is_wide(self, x: Node | Array) -> bool:
        """The rows of a node or an array have an element for each column."""
        if isinstance(x, Node) and x.reduces:
            return False
        return bool(x.shape) and (self._columns == 1 or x.shape[-1] != 1)

    def _buffer_of(self, array: Array, *, is_wide: bool) -> int:
        """An array as a buffer, or a copy of it where its rows do not lie evenly."""
        given = array = np.asarray(array)  # an operand may be a scalar of numpy's
        if not (array.flags.aligned and array.dtype.isnative):
            array = array.astype(array.dtype.newbyteorder("="))
        step = _row_bytes(array, self._lead)
        if step is None or (is_wide and self._columns > 1 and array.strides[-1] != array.itemsize):
            columns = array.shape[-1] if array.ndim else 1
            array = np.ascontiguousarray(np.broadcast_to(array, (*self._lead, columns)))
            step = columns * array.itemsize
        self.has_copies = self.has_copies or array is not given
        self.arrays[len(self.buffers)] = array
        self.buffers.append((array.ctypes.data, step, array.itemsize, is_wide))
        return len(self.buffers) - 1

    def _temporary(self, kind: tuple[int, bool]) -> int:
        free = self._free.setdefault(kind, [])
        if free:
            return free.pop()
        self.buffers.append((0, 0, *kind))
        return len(self.buffers) - 1

    def _make_steps(self) -> list[tuple[int, int, list[int], int, int, int]]:
        last_use = {
            id(x): k for k, node in enumerate(self._nodes) for x in self._operands[id(node)]
        }
        is_result = {id(x) for x, _ in self.results}
        steps = []
        for k, node in enumerate(self._nodes):
            if id(node) in self._guarded:
                last, guard, count = self._guarded[id(node)]
                ends = [self._place(x) for x in self._operands[id(last)][-2:]]
                self._give_place(last)
                at = self._places[id(last)]
                steps.append((guard, at, ends, len(self._joins), len(self._joins), count))
            operands = [self._place(x) for x in self._operands[id(node)]]
            self._give_place(node)
            first, extent = len(self._joins), node.columns
            if node.tiles is not None:
                extent = node.tiles.extent
                self._joins.extend(node.tiles.joins)
            out = self._places[id(node)]
            self.step_of[id(node)] = len(steps)
            steps.append((node.opcode, out, operands, first, len(self._joins), extent))
            for x in {id(x): x for x in self._operands[id(node)]}.values():
                is_between = id(x) in self._operands and id(x) not in is_result
                if is_between and last_use[id(x)] == k:
                    place = self._places[id(x)]
                    self._free[self.buffers[place][2:]].append(place)
        return steps

    def _place(self, x: Node | Array) -> int:
        """The buffer of an operand."""
        if id(x) not in self._places:
            array = x.computed() if isinstance(x, Node) else x
            self._places[id(x)] = self._buffer_of(array, is_wide=self._is_wide(x))
        return self._places[id(x)]

    def _give_place(self, node: Node) -> None:
        """A buffer for a result that has none."""
        if id(node) not in self._places:
            kind = (node.dtype.itemsize, self._is_wide(node))
            self._places[id(node)] = -1 if node.checks else self._temporary(kind)

    def run(self) -> None:
        """Compute the results, all of them or none."""
        if not self._nodes:
            return
        findings, marks = self.call(None)
        for node in self._checks:
            node.findings = findings[self.step_of[id(node)]]
        if self._nodes[-1].checks:
            self._nodes[-1].marks = marks
        for node, array in (*self.results, *((x, _NOTHING) for x in self._checks)):
            node.array = array
            node.operands = ()
        noted = (*(node for node, _ in self.results), *self._checks)
        holders = [node.holder() for node in noted if node.holder is not None]
        for holder in {id(x): x for x in holders}.values():
            if holder is not None:
                holder.take_note()

    def call(self, needed: Array | None) -> tuple[list[int], Array]:
        """Write the results; give the findings of each step, and of the last one those of each row.

        Args:
            needed: by row, False: it is not computed; None: all are.
        """
        steps, joins = self.steps_and_joins()
        buffers = _array_type(_Buffer, len(self.buffers))(*(_Buffer(*x) for x in self.buffers))
        executor = self._node.executor
        library, level = executor.library, executor.levels.index(executor.level)
        head = (level, steps, len(steps), joins, buffers, len(buffers))
        size = library.pypto_cast_arithmetic_scratch(
            steps, len(steps), buffers, len(buffers), self._columns
        )
        # All memory is there before the first result is written, which may be an output.
        marked = self._rows if self._nodes[-1].checks else 0
        rooms = [
            (np.zeros(len(steps), np.uint8), np.zeros(marked, np.uint8), np.empty(size, np.uint8))
            for _ in range(self._node.threads)
        ]
        free = deque(rooms)

        def call(*span: int) -> None:
            room = free.popleft()
            try:
                found, marks, scratch = (x.ctypes.data if x.size else None for x in room)
                check_status(library.pypto_cast_arithmetic_run(*head, *span, found, marks, scratch))
            finally:
                free.append(room)

        if self._rows and self._columns:
            self._share(call, [(0, self._rows)] if needed is None else _runs(needed))
        found, marks = (np.bitwise_or.reduce([room[k] for room in rooms]) for k in range(2))
        return found.tolist(), marks

    def steps_and_joins(self) -> tuple[ctypes.Array[_Step], ctypes.Array[ctypes.c_int32]]:
        """The steps as C++ reads them, and the order in which tiles are joined."""
        steps = _array_type(_Step, len(self._steps))()
        for step, (opcode, out, operands, first, end, extent) in zip(
            steps, self._steps, strict=True
        ):
            step.opcode, step.out, step.extent = opcode, out, extent
            step.joins, step.joins_end = first, end
            for k, operand in enumerate(operands):
                step.operands[k] = operand
        joins = _array_type(ctypes.c_int32, 2 * len(self._joins))(
            *(k for pair in self._joins for k in pair)
        )
        return steps, joins

    def _share(self, call: Callable[..., None], runs: Sequence[tuple[int, int]]) -> None:
        """Cut rows, or the columns of a single row, among threads and into calls.

        Args:
            runs: of rows, from each on up to each.
        """
        rows, columns = sum(end - start for start, end in runs), self._columns
        if rows * columns <= _THREAD_ELEMS:
            for start, end in runs:
                call(start, end, 0, columns)
            return
        by_columns = self._rows < self._node.threads and not any(x.reduces for x in self._nodes)
        piece = max(1, _CALL_ELEMS // (rows if by_columns else columns))
        stopped: list[bool] = []

        def work(span: slice, first: int, end: int) -> None:
            try:
                for start in range(span.start, span.stop, piece):
                    if stopped:
                        return
                    stop = min(start + piece, span.stop)
                    if by_columns:
                        call(first, end, start, stop)
                    else:
                        call(first + start, first + stop, 0, columns)
            except BaseException:
                stopped.append(True)
                raise

        for first, end in runs:
            count, beside = (columns, end - first) if by_columns else (end - first, columns)
            elementwise.share(
                functools.partial(work, first=first, end=end),
                count,
                self._node.threads,
                max(1, _THREAD_ELEMS // beside),
            )


_MOST_RUNS: Final = 64
"""More stretches of rows are one, with the rows between them."""


def _runs(needed: Array) -> list[tuple[int, int]]:
    """The stretches of rows that are needed."""
    edges = np.flatnonzero(np.diff(needed.astype(np.int8), prepend=0, append=0)).tolist()
    runs = list(zip(edges[::2], edges[1::2], strict=True))
    return runs if len(runs) <= _MOST_RUNS else [(runs[0][0], runs[-1][1])]


def compute_rows(
    result: Node, checks: Sequence[Node], needed: Array | None
) -> tuple[Array, int, Array] | None:
    """Compute some rows of a node, and nothing that is kept.

    Args:
        result: of any operation.
        checks: of the same program; what they find counts in these rows.
        needed: by row; None: all.

    Returns:
        The result, whose other rows are anything, what the checks find together, and what the last
        of them finds in each row; None where they are more than one program.
    """
    nodes = [result, *checks]
    layout = {(id(x.executor), x.shape[:-1], x.columns) for x in nodes}
    if len(layout) > 1 or has_more_steps(nodes, _MOST_STEPS):
        return None
    program = Program(nodes, {}, keeps=False)
    ((_, array),) = program.results
    findings, marks = program.call(needed)
    found = functools.reduce(operator.or_, (findings[program.step_of[id(x)]] for x in checks), 0)
    return array, found, marks


def check_status(status: int) -> None:
    if status == _STATUS_NO_MEMORY:
        raise MemoryError("no memory for a block of rows")
    if status:
        raise ValueError(f"the native executor refuses a program: status {status}")


def _room(node: Node) -> Array:
    return result_memory.empty(math.prod(node.shape), node.dtype).reshape(node.shape)


def _row_bytes(array: Array, lead: tuple[int, ...]) -> int | None:
    """The bytes from row to row of an array that is broadcast; None if they differ."""
    given = list(zip(array.shape[:-1], array.strides[:-1], strict=True))
    whole = [(1, 0)] * (len(lead) - len(given)) + given
    step: int | None = None
    expected = 0
    for length, (own, stride) in zip(reversed(lead), reversed(whole), strict=True):
        if length == 1:
            continue
        taken = 0 if own == 1 else stride
        if step is None:
            step = taken
        elif taken != expected:
            return None
        expected = taken * length
    return step or 0
