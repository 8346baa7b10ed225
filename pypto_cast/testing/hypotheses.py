"""Single hypotheses about results that a device does not give: a kernel taken otherwise.

Each cast of the kernel is taken with every other mode of its pair, and without saturation where the
pair has that; and the whole kernel by upstream's other release, and without infinities and NaN. A
hypothesis explains an element that the kernel as written does not give if it may give it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from ascend_kernels.matrix import MATRIX
from pypto_cast.call_sites import silenced
from pypto_cast.cast.cast_plan import CastSite, Supposition, supposing
from pypto_cast.dtypes.data_types import CastMode, SaturationMode
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.options.context import current, options
from pypto_cast.options.releases import RELEASE_NAMES
from pypto_cast.report.text_format import printable
from pypto_cast.testing.bits import array_under_test, native

_Run = Callable[[], Certainty]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Hypotheses with the same intervals, held against the results.

    Attributes:
        hypotheses: in words.
        explained: elements that the kernel as written does not give, and that this one may.
        contradicted: elements that the kernel as written may give, and that this one does not.
        of: elements that the kernel as written does not give.
    """

    hypotheses: tuple[str, ...]
    explained: int
    contradicted: int
    of: int

    def __str__(self) -> str:
        against = f", and contradicts {self.contradicted:,} others" if self.contradicted else ""
        return (
            f"{' or '.join(self.hypotheses)} explains {self.explained:,} of {self.of:,} differing "
            f"elements{against}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hypothesis:
    text: str
    context: Callable[[], contextlib.AbstractContextManager[object]]


def explanations(run: _Run, results: Mapping[str, Any]) -> tuple[Explanation, ...]:
    """Try single hypotheses about a kernel: those that explain something, the best first.

    Each takes one more run of the kernel's certainty.

    Args:
        run: gives the kernel's bounds, as of `kernel.certainty(*arguments)`.
        results: arrays by the names of outputs, each of its output's dtype and shape.

    Raises:
        KeyError: results without one of the outputs.
    """
    with silenced(), supposing(None) as sites:
        plain = _members(run(), results)
    outside = int(np.count_nonzero(~plain))
    if not outside:
        return ()
    alike: dict[bytes, tuple[list[str], int, int]] = {}
    for hypothesis in _hypotheses(tuple(sites)):
        try:
            with silenced(), hypothesis.context():
                found = _members(run(), results)
        except (ValueError, TypeError, RuntimeError):  # it is no program under this hypothesis
            continue
        explained = int(np.count_nonzero(found & ~plain))
        if explained:
            contradicted = int(np.count_nonzero(plain & ~found))
            key = np.packbits(found).tobytes()
            alike.setdefault(key, ([], explained, contradicted))[0].append(hypothesis.text)
    ranked = [
        Explanation(
            hypotheses=tuple(texts), explained=explained, contradicted=contradicted, of=outside
        )
        for texts, explained, contradicted in alike.values()
    ]
    return tuple(sorted(ranked, key=lambda each: each.contradicted - each.explained))


def _members(bounds: Certainty, results: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """True for each element of all outputs that a device may give, in one row."""
    inside = [
        output.contains(native(array_under_test(results[output.name], output.name))).reshape(-1)
        for output in bounds.outputs
    ]
    return np.concatenate(inside)


def _hypotheses(sites: tuple[CastSite, ...]) -> Iterator[_Hypothesis]:
    rules = MATRIX[current().chip.isa]
    for site in sites:
        if site.src.format is None or site.dst.format is None:
            continue
        rule = rules.get((site.src.format, site.dst.format))
        if rule is None:
            continue
        own = site.mode.round_mode or rule.default
        where = f"at {printable(Path(site.place[0]).name)}:{site.place[1]}"
        for mode in rule.modes:
            if mode is not own:
                yield _supposed(
                    f"CAST_{mode} {where}", site, CastMode[f"CAST_{mode}"], site.satmode
                )
        for satmode, text in _SATMODES:
            if rule.off and site.satmode is not satmode:
                yield _supposed(f"{text} {where}", site, site.mode, satmode)
    for name in RELEASE_NAMES:
        if name != current().release:
            yield _Hypothesis(
                text=f"upstream's release {name}", context=partial(options, release=name)
            )
    if current().inf_nan_mode:
        yield _Hypothesis(text="inf_nan_mode=False", context=partial(options, inf_nan_mode=False))


_SATMODES: Final = (
    (SaturationMode.OFF, "no saturation"),
    (SaturationMode.ON, "saturation"),
)


def _supposed(
    text: str, site: CastSite, mode: CastMode, satmode: SaturationMode | None
) -> _Hypothesis:
    supposition = Supposition(site=site, mode=mode, satmode=satmode)
    return _Hypothesis(text=text, context=partial(supposing, supposition))
