"""Programs of a single call that run again and again, each time on other arrays."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from simulator.arithmetic.native.node_program import Node, Program, check_status
from simulator.arithmetic.operation import Array

_memory_of: Final = ctypes.c_char.from_buffer
_address_of: Final = ctypes.addressof


class KeptProgram:
    """A program of a single call that runs again and again, each time on other arrays.

    Its arguments that never change are converted for C once, and so are the bytes of findings: a
    call takes some and gives them back empty, so that each of several threads has its own.

    Args:
        results: nodes, and arrays that are results as they are; none of them is computed.
        given: different arrays of few elements, C-contiguous, which the nodes depend on; all other
            arrays that they depend on are constants. None of them is kept.
    """

    def __init__(self, results: Sequence[Node | Array], given: Sequence[Array]) -> None:
        nodes = list({id(x): x for x in results if isinstance(x, Node)}.values())
        program = Program(nodes, {})
        places = {id(array): k for k, array in enumerate(given)}
        made = {id(array): id(node) for node, array in program.results}
        self.depends_on_addresses = not program.has_copies
        """False of one that holds copies of given arrays, which must not run again."""
        self._steps, self._joins = program.steps_and_joins()
        self._layout = struct.Struct("=" + "Q16s" * len(program.buffers))
        self._fields: list[int | bytes] = []
        for address, *layout in program.buffers:
            self._fields += address, struct.pack("=qii", *layout)
        self._given: list[tuple[int, int]] = []
        self._made: list[tuple[int, tuple[int, ...], np.dtype[np.generic]]] = []
        self._constants: list[Array] = []
        found: dict[int, int] = {}
        for buffer, array in program.arrays.items():
            if id(array) in places:
                self._given.append((2 * buffer, places[id(array)]))
            elif id(array) in made:
                found[made[id(array)]] = len(self._made)
                self._made.append((2 * buffer, array.shape, array.dtype))
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
        in_turn = [(True, k) for k in range(len(self._made))]
        others = self._results[len(in_turn) :]
        self._tail: list[Array] | None = None
        """The results after all that are made, in turn, where they are constants."""
        if self._results == in_turn + others and all(k < 0 for _, k in others):
            self._tail = [self._constants[-1 - k] for _, k in others]
        executor, (rows, columns) = nodes[0].executor, program.extents
        level, steps, joins = executor.levels.index(executor.level), self._steps, self._joins
        given_once = [level, _address_of(steps), len(steps), _address_of(joins)]
        span = [len(program.buffers), 0, rows, 0, columns]
        run = executor.library.pypto_cast_arithmetic_run
        kinds = [kind.from_param for kind in run.argtypes or ()]
        converted = [kind(each) for kind, each in zip(kinds, given_once, strict=False)]
        self._call = functools.partial(
            executor.library[run.__name__],  # which converts no argument again
            *converted,
        )
        after = kinds[len(given_once) + 1 :]  # the buffers are between
        self._span = [kind(each) for kind, each in zip(after, span, strict=False)]
        self._rooms: list[tuple[bytearray, Any]] = []
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
        made: list[Any] = []
        for field, shape, dtype in self._made:
            array: Any = np.empty(shape, dtype)
            try:
                fields[field] = _address_of(_memory_of(array))
            except (TypeError, ValueError):  # a dtype that is no C type
                fields[field] = array.ctypes.data
            made.append(array)
        packed = self._layout.pack(*fields)
        found = 0
        if not self._has_checks:
            if status := self._call(packed, *self._span, None, None, None):
                check_status(status)
        else:
            try:
                findings, at = self._rooms.pop()
            except IndexError:
                findings = bytearray(len(self._steps))
                at = ctypes.byref(_memory_of(findings))
            if status := self._call(packed, *self._span, at, None, None):
                check_status(status)
            for each in findings:
                found |= each
            findings[:] = bytes(len(findings))
            self._rooms.append((findings, at))
        if self._tail is not None:
            return made + self._tail, found
        results = [
            made[k] if is_made else given[k] if k >= 0 else self._constants[-1 - k]
            for is_made, k in self._results
        ]
        return results, found
