"""Steps of work on each element, and casts of a measured device: corrected where it gives others.

A thin layer above `simulator.numbers`, which stays as it is proved. Fast paths, instructions and
intervals all come through here; conversions without corrections go straight on.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from simulator.numbers import elementwise, float_environment
from simulator.numbers.convert import Conversion, codes_of, values_of
from simulator.numbers.engines import Engine
from simulator.numbers.formats import FP16, Codes, Format
from simulator.numbers.rounding import boundary_codes

_PIECE_ELEMS: Final = 1 << 15


class ElementStep(Protocol):
    """Work on each element: a conversion, or an instruction with a number."""

    @property
    def src(self) -> Format: ...

    @property
    def dst(self) -> Format: ...

    def reference(self, codes: Codes) -> Codes:
        """Give the codes of the results."""
        ...

    def __hash__(self) -> int: ...


Correct = Callable[[Codes, Codes], None]
"""Called with source codes and the definition's results, 1-D, which it corrects in place."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Corrections:
    """The conversions that a device carries out in its own way.

    Attributes:
        by_conversion: what corrects the results of each.
    """

    by_conversion: Mapping[Conversion, Correct] = field(default_factory=lambda: _NOTHING)

    def touch(self, conversions: tuple[Conversion, ...]) -> bool:
        """True if any of the conversions is corrected."""
        return bool(self.by_conversion) and any(c in self.by_conversion for c in conversions)

    def is_monotone(self, conversions: tuple[Conversion, ...]) -> bool:
        """True if greater numbers still give greater results, or equal ones.

        Boundary codes decide: a correction depends on the sign and the class of a number alone.
        """
        return all(_is_monotone(c, self) for c in conversions if c in self.by_conversion)


_NOTHING: Final[Mapping[Conversion, Correct]] = MappingProxyType({})
NO_CORRECTIONS: Final = Corrections()


def loop(
    steps: tuple[ElementStep, ...],
    corrections: Corrections = NO_CORRECTIONS,
    *,
    exact: bool = False,
    engine: Engine = "auto",
) -> elementwise.Loop:
    """The path of a chain of steps: neighbouring conversions together, if none is corrected.

    Args:
        steps: applied in order.
        corrections: what a measured device converts in its own way.
        exact: take the definition of conversions instead of the fast paths.
        engine: as for `simulator.numbers.elementwise.loop`.
    """
    stages: list[tuple[elementwise.Loop, np.dtype[Any]]] = []
    for _, group in itertools.groupby(steps, lambda step: isinstance(step, Conversion)):
        alike = tuple(group)
        untouched = _untouched(alike, corrections)
        if untouched is not None:
            path = elementwise.loop(untouched, exact=exact, engine=engine)
            stages.append((path, alike[-1].dst.code_dtype))
            continue
        for step in alike:
            path = _scalar_loop(step)
            if isinstance(step, Conversion):
                path = elementwise.loop((step,), exact=exact, engine=engine)
                path = _corrected(path, corrections.by_conversion.get(step))
            stages.append((path, step.dst.code_dtype))
    if len(stages) == 1:
        return stages[0][0]

    def run_stages(codes: Codes, out: Codes) -> None:
        for start in range(0, codes.size, _PIECE_ELEMS):
            piece = codes[start : start + _PIECE_ELEMS]
            for path, dtype in stages:
                made = np.empty(piece.size, dtype)
                path(piece, made)
                piece = made
            out[start : start + _PIECE_ELEMS] = piece

    return run_stages


def _untouched(
    steps: tuple[ElementStep, ...], corrections: Corrections
) -> tuple[Conversion, ...] | None:
    """The steps as conversions, if all are and none is corrected."""
    chain = tuple(step for step in steps if isinstance(step, Conversion))
    return None if len(chain) < len(steps) or corrections.touch(chain) else chain


def _corrected(path: elementwise.Loop, correct: Correct | None) -> elementwise.Loop:
    if correct is None:
        return path

    def convert(codes: Codes, out: Codes) -> None:
        path(codes, out)
        correct(codes, out)

    return convert


def _scalar_loop(step: ElementStep) -> elementwise.Loop:
    if step.src is FP16:
        # numpy computes halves in software, one after another.
        def look_up(codes: Codes, out: Codes) -> None:
            np.take(_table(step), codes, out=out, mode="clip")

        return look_up

    def run_scalar(codes: Codes, out: Codes) -> None:
        out[:] = step.reference(codes)

    return run_scalar


@functools.lru_cache(maxsize=16)
def _table(step: ElementStep) -> Codes:
    """The results of all codes of 16 bits."""
    codes: Codes = np.arange(1 << 16, dtype=np.uint16)
    return step.reference(codes)


def run(
    steps: tuple[ElementStep, ...],
    values: npt.NDArray[Any],
    out: Codes,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    exact: bool = False,
    engine: Engine = "auto",
    threads: int = 1,
) -> None:
    """Take an array of any strides and byte order through steps.

    Args:
        steps, corrections, exact, engine: as for `loop`.
        values: source codes or values of the first format, any shape; not modified.
        out: destination codes, 1-D and contiguous, as many elements, in row-major order.
        threads: how many threads to share the work among.

    Warns:
        EngineWarning: see `native_for`.
    """
    untouched = _untouched(steps, corrections)
    if untouched is not None:
        elementwise.run(untouched, values, out, exact=exact, engine=engine, threads=threads)
        return
    native = values.astype(values.dtype.newbyteorder("="), order="C", copy=False).reshape(-1)
    codes = codes_of(native, steps[0].src)
    path = loop(steps, corrections, exact=exact, engine=engine)
    elementwise.share(lambda span: path(codes[span], out[span]), codes.size, threads)


@functools.lru_cache(maxsize=256)
def _is_monotone(conversion: Conversion, corrections: Corrections) -> bool:
    codes = boundary_codes(conversion.src)
    out = np.empty(codes.size, conversion.dst.code_dtype)
    loop((conversion,), corrections)(codes, out)
    before, after = values_of(codes, conversion.src), values_of(out, conversion.dst)
    with float_environment.quiet():
        before, after = (x.astype(np.longdouble) for x in (before, after))
    numbers = ~np.isnan(before)
    after = after[numbers][np.argsort(before[numbers], kind="stable")]
    return bool(np.all(after[1:] >= after[:-1]))
