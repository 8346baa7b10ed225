"""Casts of a measured device: the definition's results, corrected where the device gives others.

A thin layer above `simulator.numbers`, which stays as it is proved. Fast paths, instructions and
intervals all come through here; without corrections they go straight on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers import elementwise, float_environment
from simulator.numbers.convert import Conversion, codes_of, values_of
from simulator.numbers.engines import Engine
from simulator.numbers.formats import Codes
from simulator.numbers.rounding import boundary_codes

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
        """Whether any of the conversions is corrected."""
        return bool(self.by_conversion) and any(c in self.by_conversion for c in conversions)

    def is_monotone(self, conversions: tuple[Conversion, ...]) -> bool:
        """Whether greater numbers still give greater results, or equal ones.

        Boundary codes decide: a correction depends on the sign and the class of a number alone.
        """
        return all(_is_monotone(c, self) for c in conversions if c in self.by_conversion)


_NOTHING: Final[Mapping[Conversion, Correct]] = MappingProxyType({})
NO_CORRECTIONS: Final = Corrections()


def loop(
    conversions: tuple[Conversion, ...],
    corrections: Corrections,
    *,
    exact: bool = False,
    engine: Engine = "auto",
) -> elementwise.Loop:
    """The path of a chain of conversions; see `simulator.numbers.elementwise.loop`."""
    if not corrections.touch(conversions):
        return elementwise.loop(conversions, exact=exact, engine=engine)
    steps = [(c, elementwise.loop((c,), exact=exact, engine=engine)) for c in conversions]

    def convert(codes: Codes, out: Codes) -> None:
        last = len(steps) - 1
        for place, (conversion, step) in enumerate(steps):
            target = out if place == last else np.empty(codes.size, conversion.dst.code_dtype)
            step(codes, target)
            correct = corrections.by_conversion.get(conversion)
            if correct is not None:
                correct(codes, target)
            codes = target

    return convert


def run(
    conversions: tuple[Conversion, ...],
    values: npt.NDArray[Any],
    out: Codes,
    corrections: Corrections,
    *,
    exact: bool = False,
    engine: Engine = "auto",
    threads: int = 1,
) -> None:
    """Convert an array; see `simulator.numbers.elementwise.run`."""
    if not corrections.touch(conversions):
        elementwise.run(conversions, values, out, exact=exact, engine=engine, threads=threads)
        return
    src = conversions[0].src
    native = values.astype(values.dtype.newbyteorder("="), order="C", copy=False).reshape(-1)
    codes = codes_of(native, src)
    path = loop(conversions, corrections, exact=exact, engine=engine)
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
