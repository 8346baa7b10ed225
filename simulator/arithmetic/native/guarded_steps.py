"""Steps of a program that a guard leaves out in a block of rows where no element is open.

The choices and causes of an element that has one code are zero, whatever made them: so the steps
that nothing else reads need not run there. Most elements of a kernel that ends in a cast are such.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from simulator.arithmetic.native.executor_library import Executor


class _Step(Protocol):
    """A node of a program."""

    executor: Executor
    opcode: int


_AnyStep = TypeVar("_AnyStep", bound=_Step)

_GUARDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("choices_if_open", "cause_of", "rests"), "unless_closed"),
        **dict.fromkeys(("choices_if_open16", "rests16"), "unless_closed16"),
        **dict.fromkeys(("choices_if_open8", "cause_of8", "rests8"), "unless_closed8"),
    }
)
"""The guards of operations that give 0 where ends, the last two operands, are one code."""


@functools.cache
def _guards_of(executor: Executor) -> Mapping[int, int]:
    opcodes = executor.opcodes
    return {opcodes[name]: opcodes[guard] for name, guard in _GUARDED.items()}


def find_guarded(
    nodes: list[_AnyStep], operands: Mapping[int, tuple[object, ...]], kept: Container[int]
) -> dict[int, tuple[_AnyStep, int, int]]:
    """Find the steps that guards may leave out, and bring those of each side by side.

    Args:
        nodes: of a program, each after its operands; put into another such order.
        operands: by the `id` of a node.
        kept: the `id` of nodes that are wanted by themselves.

    Returns:
        By the `id` of the first node that a guard leaves out the last one, the number of the guard,
        and how many they are.
        Nothing but the last one reads the others' results.
    """
    guards = _guards_of(nodes[0].executor)
    readers: dict[int, list[int]] = {}
    for node in nodes:
        for x in operands[id(node)]:
            readers.setdefault(id(x), []).append(id(node))
    found: dict[int, tuple[_AnyStep, int, int]] = {}
    taken: set[int] = set()
    for k in range(len(nodes) - 1, -1, -1):
        last = nodes[k]
        if last.opcode not in guards or id(last) in taken:
            continue
        own, inside = [last], {id(last)}
        for node in reversed(nodes[:k]):
            is_free = id(node) not in kept and id(node) not in taken
            if is_free and inside.issuperset(readers.get(id(node), ())):
                inside.add(id(node))
                own.append(node)
        if inside & {id(x) for x in operands[id(last)][-2:]}:
            continue  # the ends would not be there
        taken |= inside
        nodes[: k + 1] = [*(x for x in nodes[:k] if id(x) not in inside), *reversed(own)]
        found[id(own[-1])] = (last, guards[last.opcode], len(own))
    return found
