"""A chain of casts held against one rounding: on all codes of its source, and on a user's data.

check_chain -> routing.chains.chain_of -> routing.chain_ranking.chain_verdict -> ChainCheck
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ascend_kernels.routing.chain_check import (
    SAMPLED_BASIS,
    Evidence,
    Question,
    RouteError,
    Verdict,
    all_values,
    compared,
    enumerated,
)
from ascend_kernels.routing.chain_ranking import chain_verdict, cycles_of
from ascend_kernels.routing.chains import chain_of, function_of, single_rounding
from pypto_cast.cast.cast_plan import known_formats
from pypto_cast.dtypes.data_types import CastMode, DataType, check_choice, check_dtype
from pypto_cast.options.context import current
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.report import Column, Report, Table, Words, columns, plain
from pypto_cast.routes.cast_routes import Route, asked_mode, route_of
from pypto_cast.tensors.arrays import from_numpy
from pypto_cast.tensors.tensor import Tensor
from simulator.numbers.convert import canonical_bools, codes_of
from simulator.numbers.formats import FP32

__all__ = ["ChainCheck", "check_chain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCheck:
    """A chain of casts beside one rounding.

    Attributes:
        route: the chain, with its verdict on all codes of the source; its mode is that of the one
            rounding.
        data: the verdict on the elements that were given; None: none were.
    """

    route: Route
    data: Verdict | None = None

    @property
    def is_exact(self) -> bool:
        """No code of the source is converted differently; True is said of all, not of a sample."""
        return self.route.verdict.is_exact

    @property
    def _verdicts(self) -> dict[str, Verdict]:
        of_data = {} if self.data is None else {"data": self.data}
        return {"all codes": self.route.verdict, **of_data}

    def _example(self, verdict: Verdict) -> str:
        return self.route.difference(verdict.first[0]) if verdict.first else ""

    def __str__(self) -> str:
        lines = [f"{self.route.chain} beside one {self.route.mode.name}"]
        for name, verdict in self._verdicts.items():
            example = self._example(verdict)
            lines.append(f"  {name}: {verdict}" + (f"; {example}" if example else ""))
        return "\n".join(lines)

    @property
    def report(self) -> Report:
        """Both verdicts, with an example of each."""
        route = self.route
        examples = (
            f"{of}: {self._example(one)}" for of, one in self._verdicts.items() if one.first
        )
        rests = (f"It rests on a choice: {text}." for text in route.verdict.rests_on)
        return Report(
            kind="chain",
            title=f"{route.chain} beside one {route.mode.name}",
            facts=plain(
                src=route.src.name,
                dst=route.dst.name,
                once=route.mode.name,
                steps=[{"dtype": one.dtype.name, "mode": one.mode.name} for one in route.steps],
            ),
            tables=(
                Table(
                    key="verdicts",
                    caption="",
                    columns=(
                        *columns(of="of"),
                        Column(key="verdict", heading="verdict"),
                        Column(key="largest_error", heading="largest error", is_minor=True),
                        *columns(example=None, basis=None, codes=None),
                        *columns(differing=None, is_least=None, exact_range=None),
                    ),
                    rows=[
                        (
                            name,
                            Words(value=verdict.standing.name, text=str(verdict)),
                            verdict.largest_error,
                            self._example(verdict),
                            verdict.basis,
                            verdict.codes,
                            verdict.differing,
                            verdict.is_least,
                            route.exact_range if verdict is route.verdict else None,
                        )
                        for name, verdict in self._verdicts.items()
                    ],
                ),
            ),
            notes=(*examples, f"Of all codes: {route.verdict.basis}.", *rests),
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report)


def check_chain(
    src: DataType,
    steps: Sequence[tuple[DataType, CastMode]],
    once: CastMode | None = None,
    *,
    data: Any = None,
    exhaustive: bool = False,
) -> ChainCheck:
    """Count the source codes that a chain of casts converts otherwise than one rounding.

    Each cast is that of `pypto.cast` with SaturationMode.ON; the one rounding is the definition's,
    see `routes`: integers clamp, FP16 and BF16 overflow as IEEE 754 says, NaN becomes 0 in integers
    and the one NaN in floats.
    The verdict counts all codes of the source. From 64 bits to more than 16 it is a sample:
    boundary codes and 65,536 evenly spaced ones, and says so.

    Args:
        src: the dtype of the source, one that the chip of this context casts from.
        steps: dtype and mode of each cast in order; CAST_NONE: the mode that it means for the
            pair. Where a pair rounds nothing its mode is ignored.
        once: the mode of the one rounding; None and CAST_NONE as `mode` of `routes`.
        data: elements to be counted beside: a Tensor, or an array that `from_numpy` takes, of
            dtype `src`, of any shape; not modified.
        exhaustive: show an exact chain of a source of 32 bits on every code, some ten seconds,
            where thresholds alone prove it.

    Raises:
        TypeError: an argument of the wrong type; data of another dtype.
        UnsupportedCastError: a pair that the chip does not convert.
        CastModeError: a mode that a pair lacks.
        RouteError: no steps; a chain that ends in the dtype it begins with, unless FP32 is rounded
            to integral values on the way.
    """
    check_dtype(src)
    if once is not None:
        check_choice("once", once, CastMode)
    given = _checked_steps(steps)
    formats = [known_formats(src, src)[0], *(known_formats(src, one)[1] for one, _ in given)]
    family, readings = current().chip.isa, current().readings
    chain = chain_of(formats, [mode.round_mode for _, mode in given], family, readings)
    if chain.src is chain.dst and (FP32, FP32) not in itertools.pairwise(formats):
        raise RouteError(
            f"{chain} ends where it began, and one rounding of {chain.src} to itself changes "
            "nothing; leave the last step out"
        )
    asked = asked_mode(chain.src, chain.dst, once)
    question = all_values(chain.src, chain.dst, family, readings)
    once_rounded = single_rounding(chain.src, chain.dst, asked, family, readings)
    functions = tuple(function_of(one, readings) for one in (chain.conversions, (once_rounded,)))
    codes = None if data is None else _codes_of_data(data, src)
    verdict = chain_verdict(question, chain, asked) or _tried(question)
    if exhaustive and question.is_enumerable and verdict.standing is Evidence.PROVED:
        shown = enumerated(question, *functions)
        verdict = dataclasses.replace(shown, rests_on=verdict.rests_on)
    return ChainCheck(
        route=route_of(chain, asked, verdict, cycles_of(chain)),
        data=None if codes is None else compared(question, codes, *functions),
    )


def _checked_steps(steps: object) -> list[tuple[DataType, CastMode]]:
    if isinstance(steps, str) or not isinstance(steps, Sequence):
        raise TypeError(
            "steps are pairs of a dtype and a mode, as [(pypto.DT_FP16, pypto.CAST_RINT)]; got "
            f"{type(steps).__name__}"
        )
    if not steps:
        raise RouteError("a chain has one step at least, as [(pypto.DT_FP16, pypto.CAST_RINT)]")
    for each in steps:
        if not isinstance(each, tuple) or len(each) != 2:
            raise TypeError(f"a step is a dtype and a mode, not {each!r}")
        check_dtype(each[0])
        check_choice("mode", each[1], CastMode)
    return list(steps)


def _tried(question: Question) -> Verdict:
    """The verdict where there is none of all codes: nothing differs on the boundary codes."""
    return Verdict(
        standing=Evidence.TRIED,
        codes=question.boundaries().size,
        differing=0,
        basis=SAMPLED_BASIS,
        is_least=True,
    )


def _codes_of_data(data: Any, src: DataType) -> Any:
    tensor = data if isinstance(data, Tensor) else from_numpy(data)
    if tensor.dtype is not src or src.format is None:
        raise TypeError(f"data are of {src}, as the chain begins; got {tensor.dtype}")
    return codes_of(canonical_bools(tensor.numpy()), src.format).reshape(-1)
