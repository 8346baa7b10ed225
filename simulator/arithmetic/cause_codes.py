"""Causes of open elements: the caller's index of an operation, and the choices that it rests on.

A choice is an assumption that would close the element, did it hold. Where elements meet, the index
of one of them goes on, and the choices of all.
"""

from __future__ import annotations

from collections.abc import Iterable
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
)

Causes = npt.NDArray[np.uint32]
"""The index in the low bits, a bit for each choice above them."""
INDEX_BITS: Final = 16
_INDEX_MASK: Final = (1 << INDEX_BITS) - 1
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
_BITS: Final = {choice: 1 << INDEX_BITS + k for k, choice in enumerate(NAMED_CHOICES)}


def choice_bits(*choices: Assumption) -> int:
    """The bits that stand for choices in a cause."""
    return sum(_BITS[choice] for choice in set(choices))


def index_of(cause: Any) -> Any:
    """The index of a cause or of each of an array of them."""
    return cause & _INDEX_MASK


def bits_of(cause: Any) -> Any:
    """The choices of a cause or of each of an array of them, as bits."""
    return cause & ~np.uint32(_INDEX_MASK)


def choices_in(bits: int) -> tuple[Assumption, ...]:
    """The choices that bits stand for."""
    return tuple(choice for choice in NAMED_CHOICES if bits & _BITS[choice])


def widest_along(causes: Causes, at: Any, is_open: Any, axis: int) -> Causes:
    """The causes at a place of each line, with the choices of all open elements of the line."""
    found: Causes = np.take_along_axis(causes, at, axis)
    bits = bits_of(causes)
    if bits.any():
        found = found | np.bitwise_or.reduce(bits * is_open, axis=axis, keepdims=True)
    return found


def joined_bits(causes: Iterable[Causes]) -> Any:
    """The choices of several causes together; 0 of none."""
    joined: Any = np.uint32(0)
    for cause in causes:
        joined = joined | bits_of(cause)
    return joined
