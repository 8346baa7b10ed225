"""The choice of what a checkpoint's tensors become: targets and patterns, by their names."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.dtypes.names import dtype_named

Pattern = re.Pattern[str]
_SCALED: Final = (DataType.DT_INT8, DataType.DT_UINT8)


class UnusedPatternWarning(UserWarning):
    """A pattern that matches no tensor of the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A dtype, for the tensors whose names have the pattern in them; None: for all others."""

    dtype: DataType
    pattern: Pattern | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The dtype that each tensor is to have, or that it stays.

    Attributes:
        targets: those with patterns go before the one without; of several that match, the first.
        include: if there are any, a tensor needs one of them to be changed.
        exclude: a tensor with one of them stays as it is.
        keep_fp32: the same, and the report says that it was meant to stay in its dtype.
    """

    targets: tuple[Target, ...] = ()
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    keep_fp32: tuple[Pattern, ...] = ()

    @staticmethod
    def of(dtype: DataType) -> Choice:
        """One target for all tensors."""
        return Choice(targets=(Target(dtype=dtype),))

    def kept(self, name: str) -> str:
        """The reason why a tensor stays as it is by the patterns; empty if it does not."""
        for words, patterns in (("kept by", self.keep_fp32), ("excluded by", self.exclude)):
            for pattern in patterns:
                if pattern.search(name):
                    return f"{words} {pattern.pattern!r}"
        if self.include and not any(pattern.search(name) for pattern in self.include):
            return "not included"
        return ""

    def target(self, name: str) -> DataType | None:
        """The dtype that a tensor is to have; None if no target is for it."""
        for target in self.targets:
            if target.pattern is not None and target.pattern.search(name):
                return target.dtype
        return next((t.dtype for t in self.targets if t.pattern is None), None)

    def warn_unused(self, names: Sequence[str]) -> None:
        """Name patterns that are in no name, which are likely misspelt.

        Warns:
            UnusedPatternWarning: one for each.
        """
        targeted = (t.pattern for t in self.targets if t.pattern is not None)
        for pattern in (*self.include, *self.exclude, *self.keep_fp32, *targeted):
            if not any(pattern.search(name) for name in names):
                text = f"the pattern {pattern.pattern!r} is in the name of no tensor"
                warnings.warn(text, UnusedPatternWarning, stacklevel=3)


def choice_of(
    to: Iterable[str],
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    keep_fp32: Iterable[str] = (),
) -> Choice:
    """Read targets, `DT_BF16` or `pattern=DT_FP16`, and patterns, which are regular expressions.

    Raises:
        ValueError: an unknown dtype, no regular expression, or two targets for all tensors.
    """
    targets = tuple(map(_target, to))
    plain = [target.dtype for target in targets if target.pattern is None]
    if len(plain) > 1:
        raise ValueError(
            f"{plain[0]} and {plain[1]} are both for all tensors; one of them needs a pattern, as "
            f"in lm_head={plain[1]}"
        )
    return Choice(
        targets=targets,
        include=tuple(map(_pattern, include)),
        exclude=tuple(map(_pattern, exclude)),
        keep_fp32=tuple(map(_pattern, keep_fp32)),
    )


def check_scaled(choice: Choice) -> None:
    """Refuse 8-bit integers as plain targets.

    Raises:
        ValueError: the text says how to ask for scales.
    """
    for target in choice.targets:
        if target.dtype in _SCALED:
            raise ValueError(
                f"a checkpoint in {target.dtype} needs a scale for each channel, without which "
                "weights would round to 0; --quantize int8 --axis 0 computes one a row"
            )


def _target(text: str) -> Target:
    pattern, equals, name = text.rpartition("=")
    return Target(dtype=dtype_named(name), pattern=_pattern(pattern) if equals else None)


def _pattern(text: str) -> Pattern:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
