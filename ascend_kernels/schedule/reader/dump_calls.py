"""The calls of a root: the leaf, the tensors and the argument list of each, and their order.

A short file because it knows the fields of a call alone, and no file and no control flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ascend_kernels.schedule.reader.dump_scalars import Resolve
from ascend_kernels.schedule.scalars import Scalar


def callee_of(call: Mapping[str, Any]) -> str:
    """The hash of the leaf that a call runs; "0" where nothing runs."""
    return str(call["attr"][0])


def operands_of(call: Mapping[str, Any]) -> Sequence[int]:
    """The tensors that a call takes and gives, in the order of its leaf's ends."""
    return (*call["ioperands"], *call["ooperands"])


def argument_list(attr: Sequence[Any]) -> tuple[list[Sequence[Any]], dict[int, int]]:
    """The scalars of a call in one list, and the entry that begins at each place."""
    _, count, *rest = attr
    arguments: list[Sequence[Any]] = [(0, 0)]
    entries: dict[int, int] = {}
    start = 0
    for entry in range(count):
        length = rest[start]
        entries[len(arguments)] = entry
        arguments += rest[start + 1 : start + 1 + length]
        start += 1 + length
    return arguments, entries


def item_of(item: tuple[int, Any], resolve: Resolve) -> Scalar:
    """A number of a copy: a scalar, or an element of the argument list."""
    kind, value = item
    if kind == 2:
        return resolve.argument(int(value))
    return resolve.read(value)


def base_of(offset: Sequence[tuple[int, Any]]) -> int:
    """The place in the argument list that the offset of a copy is taken from."""
    for _, value in offset:
        if isinstance(value, list) and "RUNTIME_COA_GET_PARAM_OFFSET" in value:
            # The function, then three numbers, each behind a 0: dimensions, base, axis.
            return int(value[value.index("RUNTIME_COA_GET_PARAM_OFFSET") + 4])
    raise ValueError("a copy whose offset names no tensor of the task")


def calls_before(calls: Sequence[Mapping[str, Any]]) -> list[set[int]]:
    """The places of the calls whose results each call reads."""
    makers: dict[int, list[int]] = {}
    for place, call in enumerate(calls):
        for magic in call["ooperands"]:
            makers.setdefault(magic, []).append(place)
    return [
        {maker for magic in call["ioperands"] for maker in makers.get(magic, ())} - {place}
        for place, call in enumerate(calls)
    ]


def in_order(before: Sequence[set[int]]) -> list[int]:
    """An order in which each task comes after those before it, else as listed."""
    left = [set(each) for each in before]
    order: list[int] = []
    done: set[int] = set()
    waiting = list(range(len(before)))
    while waiting:
        ready = [place for place in waiting if left[place] <= done]
        if not ready:
            raise ValueError("the tasks of a root wait for each other in a circle")
        order += ready
        done |= set(ready)
        waiting = [place for place in waiting if place not in done]
    return order
