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
import struct
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

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
        """Of a check at the end of a program: what it finds in each row, or beside it."""
        self.holder: weakref.ref[Enclosure] | None = None
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
            _Program([self], {} if out is None else {id(self): out}).run()
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
        is_one = count_steps(group) <= _MOST_STEPS
        batches += [group] if is_one else [[node] for node in group]
    batches.sort(key=lambda batch: sum(_bytes_in(memory, node) for node in batch))
    for k, batch in enumerate(batches):
        if any(node.array is None for node in batch):
            _Program(batch, memory if k == len(batches) - 1 else {}).run()


def _bytes_in(memory: Mapping[int, Array], node: Node) -> int:
    return memory[id(node)].nbytes if id(node) in memory else 0


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


_GUARDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("choices_if_open", "cause_of", "cause_among"), "unless_closed"),
        "choices_if_open16": "unless_closed16",
        **dict.fromkeys(("choices_if_open8", "cause_of8"), "unless_closed8"),
    }
)
"""The guards of operations that give 0 where ends, the last two operands, are one code."""


@functools.cache
def _guards(executor: Executor) -> Mapping[int, int]:
    opcodes = executor.opcodes
    return {opcodes[name]: opcodes[guard] for name, guard in _GUARDED.items()}


class _Program:
    """The steps of some nodes with the same rows, and of the nodes that they depend on."""

    def __init__(self, roots: Sequence[Node], memory: Mapping[int, Array]) -> None:
        self._nodes: list[Node] = []
        self._operands: dict[int, tuple[Node | Array, ...]] = {}
        for node in roots:
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
            if id(x) in asked or (x.holder is not None and x.holder() is not None):
                out = memory.get(id(x))
                self.results.append((x, _room(x) if out is None else out))
        for x, array in self.results:
            self._places[id(x)] = self._buffer_of(array, is_wide=self._is_wide(x))
        self._guarded = self._find_guarded()
        self._step_of: dict[int, int] = {}
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

    def _find_guarded(self) -> dict[int, tuple[Node, int]]:
        """By the first node that a guard skips the last one, and how many they are.

        They come to lie side by side, and nothing but the last one reads the others' results.
        """
        guards = _guards(self._node.executor)
        if not any(x.opcode in guards for x in self._nodes):
            return {}
        readers: dict[int, list[int]] = {}
        for node in self._nodes:
            for x in self._operands[id(node)]:
                readers.setdefault(id(x), []).append(id(node))
        kept = {id(x) for x, _ in self.results} | {id(x) for x in self._checks}
        found: dict[int, tuple[Node, int]] = {}
        owner: dict[int, int] = {}
        for k in range(len(self._nodes) - 1, -1, -1):
            last = self._nodes[k]
            if last.opcode not in guards or id(last) in owner:
                continue
            inside = {id(last)}
            own = [last]
            for node in reversed(self._nodes[:k]):
                if id(node) in kept or id(node) in owner:
                    continue
                if all(reader in inside for reader in readers.get(id(node), ())):
                    inside.add(id(node))
                    own.append(node)
            ends = {id(x) for x in self._operands[id(last)][-2:]}
            if ends & inside:
                continue
            owner.update(dict.fromkeys(inside, k))
            own.reverse()
            others = [x for x in self._nodes[:k] if id(x) not in inside]
            self._nodes[: k + 1] = [*others, *own]
            found[id(own[0])] = (last, len(own))
        return found

    def _make_steps(self) -> list[tuple[int, int, list[int], int, int, int]]:
        guards = _guards(self._node.executor)
        last_use = {
            id(x): k for k, node in enumerate(self._nodes) for x in self._operands[id(node)]
        }
        is_result = {id(x) for x, _ in self.results}
        steps = []
        for k, node in enumerate(self._nodes):
            if id(node) in self._guarded:
                last, count = self._guarded[id(node)]
                ends = [self._place(x) for x in self._operands[id(last)][-2:]]
                self._give_place(last)
                at = self._places[id(last)]
                steps.append(
                    (guards[last.opcode], at, ends, len(self._joins), len(self._joins), count)
                )
            operands = [self._place(x) for x in self._operands[id(node)]]
            self._give_place(node)
            first, extent = len(self._joins), node.columns
            if node.tiles is not None:
                extent = node.tiles.extent
                self._joins.extend(node.tiles.joins)
            out = self._places[id(node)]
            self._step_of[id(node)] = len(steps)
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
            node.findings = findings[self._step_of[id(node)]]
        if self._nodes[-1].checks:
            self._nodes[-1].marks = marks
        for node, array in (*self.results, *((x, _NOTHING) for x in self._checks)):
            node.array = array
            node.operands = ()

    def call(self, needed: Array | None) -> tuple[list[int], Array]:
        """Write the results, and give what each step finds, and the last one in each row.

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
                _check_status(
                    library.pypto_cast_arithmetic_run(*head, *span, found, marks, scratch)
                )
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
    if len(layout) > 1 or count_steps(nodes) > _MOST_STEPS:
        return None
    program = _Program(nodes, {})
    (array,) = (array for node, array in program.results if node is result)
    findings, marks = program.call(needed)
    found = functools.reduce(operator.or_, (findings[program._step_of[id(x)]] for x in checks), 0)
    return array, found, marks


_memory_of: Final = ctypes.c_char.from_buffer
_address_of: Final = ctypes.addressof


class KeptProgram:
    """A program of a single call that runs again and again, each time on other arrays.

    Args:
        results: nodes, and arrays that are results as they are; none of them is computed.
        given: different arrays of few elements, C-contiguous, which the nodes depend on; all other
            arrays that they depend on are constants. None of them is kept.
    """

    def __init__(self, results: Sequence[Node | Array], given: Sequence[Array]) -> None:
        nodes = list({id(x): x for x in results if isinstance(x, Node)}.values())
        program = _Program(nodes, {})
        places = {id(array): k for k, array in enumerate(given)}
        made = {id(array): id(node) for node, array in program.results}
        self.depends_on_addresses = not program.has_copies
        """False of one that holds copies of given arrays, which must not run again."""
        self._steps, self._joins = program.steps_and_joins()
        self._fields = [field for buffer in program.buffers for field in buffer]
        self._layout = struct.Struct("=" + "Qqii" * len(program.buffers))
        self._given: list[tuple[int, int]] = []
        self._made: list[tuple[int, tuple[int, ...], np.dtype[np.generic]]] = []
        self._constants: list[Array] = []
        found: dict[int, int] = {}
        for buffer, array in program.arrays.items():
            if id(array) in places:
                self._given.append((4 * buffer, places[id(array)]))
            elif id(array) in made:
                found[made[id(array)]] = len(self._made)
                self._made.append((4 * buffer, array.shape, array.dtype))
            else:
                self._constants.append(array)
        self._results: list[tuple[bool, int]] = []
        for x in results:
            if isinstance(x, Node):
                if not x.checks:
                    self._results.append((True, found[id(x)]))
            elif id(x) in places:
                self._results.append((False, places[id(x)]))
            else:
                self._results.append((False, -1 - len(self._constants)))
                self._constants.append(x)
        executor, (rows, columns) = nodes[0].executor, program.extents
        self._call = functools.partial(
            executor.library.pypto_cast_arithmetic_run,
            *(executor.levels.index(executor.level), self._steps, len(self._steps), self._joins),
        )
        self._span = (len(program.buffers), 0, rows, 0, columns)
        self._has_checks = any(x.checks for x in nodes)

    def run(self, given: Sequence[Array]) -> tuple[list[Array], int]:
        """Compute the results, all of them or none.

        Args:
            given: arrays of the shapes and dtypes of those that the program was made for.

        Returns:
            The results in their order, without checks, and what all checks find together.

        Raises:
            MemoryError: there is no room for a block of rows.
        """
        fields = self._fields.copy()
        try:
            for field, place in self._given:
                memory: Any = given[place]  # a buffer, which numpy's types do not say
                fields[field] = _address_of(_memory_of(memory))
        except (TypeError, ValueError):  # read-only, or a dtype that is no C type
            for field, place in self._given:
                fields[field] = given[place].ctypes.data
        made = []
        for field, shape, dtype in self._made:
            array = np.empty(shape, dtype)
            fields[field] = _address(array)
            made.append(array)
        findings = bytearray(len(self._steps) if self._has_checks else 0)
        at = _address_of_bytes(findings) if self._has_checks else None
        _check_status(self._call(self._layout.pack(*fields), *self._span, at, None, None))
        results = [
            made[k] if is_made else given[k] if k >= 0 else self._constants[-1 - k]
            for is_made, k in self._results
        ]
        return results, functools.reduce(operator.or_, findings) if self._has_checks else 0


def _address_of_bytes(memory: bytearray) -> int:
    return _address_of(_memory_of(memory))


def _address(array: Array) -> int:
    """The address of a C-contiguous array's elements, of which there are some."""
    memory: Any = array
    try:
        return _address_of(_memory_of(memory))
    except (TypeError, ValueError):  # read-only, or a dtype that is no C type
        return array.ctypes.data


def _check_status(status: int) -> None:
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
