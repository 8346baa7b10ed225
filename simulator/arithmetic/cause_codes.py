"""Causes of open elements: the caller's index of an operation, or choices that would close them.

A choice is an assumption. Under a `Trust` that names choices a cause holds a bit for each, and
where elements meet, the bits of all go on; else it is an index, and that of one of them goes on.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.trust import (
    ASSUME_CORRECT_ROUNDING,
    ASSUME_GRADUAL_CASTS,
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_IEEE_OVERFLOW,
    ASSUME_INF_NAN_MODE,
    ASSUME_NAN_PATTERN,
    ASSUME_ODD_UNDERFLOW,
    ASSUME_RNE,
    ASSUME_SIGN_OF_ZERO,
    ASSUME_STABLE_SORT,
    ASSUME_SUM_ORDER,
    CHOICES,
    Assumption,
    Trust,
)

Causes = npt.NDArray[np.uint16]
NAMED_CHOICES: Final = (
    ASSUME_RNE,
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_SUM_ORDER,
    ASSUME_STABLE_SORT,
    ASSUME_IEEE_OVERFLOW,
    ASSUME_NAN_PATTERN,
    ASSUME_GRADUAL_CASTS,
    ASSUME_SIGN_OF_ZERO,
    ASSUME_ODD_UNDERFLOW,
    ASSUME_INF_NAN_MODE,
    ASSUME_CORRECT_ROUNDING,
    *CHOICES.values(),
)
"""By bit; at most 16."""
_BITS: Final = {choice: 1 << k for k, choice in enumerate(NAMED_CHOICES)}


def choice_bits(*choices: Assumption) -> int:
    """The bits that stand for choices."""
    return sum(_BITS[choice] for choice in set(choices))


def own_cause(cause: int, trust: Trust, *assumptions: Assumption) -> int:
    """The cause of what an operation itself leaves open.

    Args:
        cause: the caller's index of the operation.
        trust: what is taken for granted.
        assumptions: those that would close it.
    """
    if not trust.names_choices:
        return cause
    return choice_bits(*(each for each in assumptions if each not in trust.assumed))


def meeting(trust: Trust, chosen: Any, other: Any) -> Any:
    """The cause of elements where two meet: the one that was chosen, or the choices of both."""
    return chosen | other if trust.names_choices else chosen


def cause_along(trust: Trust, causes: Causes, at: Any, is_open: Any, axis: int) -> Causes:
    """The cause at a place of each line, or the choices of all open elements of the line."""
    if not trust.names_choices:
        return np.take_along_axis(causes, at, axis)
    joined: Causes = np.bitwise_or.reduce(causes * is_open, axis=axis, keepdims=True)
    return joined
