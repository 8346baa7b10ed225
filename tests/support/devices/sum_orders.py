"""The orders in which the vector core adds, spelt out on lists of anything that has a plus.

Source: pto-isa include/pto/npu/a2a3/TRowSum.hpp, TRowReduceOps.hpp and TColSum.hpp.
"""

from __future__ import annotations

from typing import Any


def neighbours(lanes: list[Any]) -> Any:
    """The tree of neighbours, by its positions in a full repeat: an absent one is skipped."""
    width = 1 << max(0, len(lanes) - 1).bit_length()
    held = dict(enumerate(lanes))
    step = 1
    while step < width:
        for position in range(0, width, 2 * step):
            if position + step in held:
                held[position] = held[position] + held.pop(position + step)
        step *= 2
    return held[0]


def row_sum(elements: list[Any], repeat: int) -> Any:
    """A row as the instructions add it, each of them spelt out on named lanes."""
    full = [elements[k : k + repeat] for k in range(0, len(elements) - repeat + 1, repeat)]
    tail = elements[len(full) * repeat :]
    if len(elements) <= repeat:
        return neighbours(elements)
    held = []
    for k in range(len(full) // 2):
        held.append([a + b for a, b in zip(full[2 * k], full[2 * k + 1], strict=True)])
    if len(full) == 1:
        held = [list(full[0])]
    elif len(full) % 2:
        held[0] = [a + b for a, b in zip(held[0], full[-1], strict=True)]
    for lane, more in enumerate(tail):
        held[0][lane] = held[0][lane] + more
    left = len(full) // 2
    while left > 1:
        odd = left % 2
        for k in range(left // 2):
            held[k] = [a + b for a, b in zip(held[2 * k], held[2 * k + 1], strict=True)]
        left //= 2
        if odd:
            held[left - 1] = [a + b for a, b in zip(held[left - 1], held[2 * left], strict=True)]
    return neighbours(held[0])


def column_sum(elements: list[Any]) -> Any:
    """A column: rows pairwise, an odd last one onto the first."""
    held, left = list(elements), len(elements)
    while left > 1:
        odd = held[left - 1] if left % 2 else None
        for k in range(left // 2):
            held[k] = held[2 * k] + held[2 * k + 1]
        if odd is not None:
            held[0] = held[0] + odd
        left //= 2
    return held[0]
