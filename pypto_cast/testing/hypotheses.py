"""Hypotheses about results that a device does not give: the kernel taken otherwise, one at a time.

Each call of the kernel is carried out in every way of `alternatives`, the whole kernel under other
options, and boxes of its outputs hold other elements (`misplacements`). A hypothesis explains an
element that the kernel as written does not give if it may give it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.kernel.certainty import Certainty, OutputCertainty
from pypto_cast.options.context import current, options
from pypto_cast.options.releases import RELEASE_NAMES
from pypto_cast.recording.output_certainty import number_text
from pypto_cast.recording.suppositions import Altered, Site, SiteCall, Supposition, supposing
from pypto_cast.report.text_format import plural
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.testing.alternatives import EVERYWHERE, WAYS, place_of
from pypto_cast.testing.bits import array_under_test, code_in_words, flat_codes, native
from pypto_cast.testing.misplacements import misplacements, rewritten
from simulator.numbers import float_environment
from tiling.grid import Shape

_Run = Callable[[], Certainty]
_Bools = npt.NDArray[np.bool_]
_NAMED: Final = 6
"""Hypotheses with the same intervals that are said in words."""
_Rewrite = Callable[[OutputCertainty], OutputCertainty]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Hypotheses with the same intervals, held against the results.

    Attributes:
        hypotheses: in words.
        explained: elements that the kernel as written does not give, and that this one may.
        contradicted: elements that the kernel as written may give, and that this one does not.
        of: elements that the kernel as written does not give.
        example: one explained element, worked through, a line each; only of the first explanation.
    """

    hypotheses: tuple[str, ...]
    explained: int
    contradicted: int
    of: int
    example: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        """The hypotheses in words; equal ones are named together, the first ones of many."""
        others = len(self.hypotheses) - _NAMED
        more = (plural(others, "other"),) if others > 0 else ()
        return " or ".join((*self.hypotheses[:_NAMED], *more))

    def __str__(self) -> str:
        against = f", and contradicts {plural(self.contradicted, 'other')}"
        against = against if self.contradicted else ""
        return (
            f"{self.cause} explains {self.explained:,} of {self.of:,} differing elements{against}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hypothesis:
    """A kernel taken otherwise.

    Attributes:
        text: in words.
        context: in which it runs; None: it does not run again.
        rewrite: changes an output of the run.
        excludes: of two hypotheses with the same one only one can hold; None: it goes with all.
        is_pair: two hypotheses together.
    """

    text: str
    context: Callable[[], contextlib.AbstractContextManager[object]] | None = None
    rewrite: _Rewrite | None = None
    excludes: object = None
    is_pair: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Study:
    """The kernel as written.

    Attributes:
        bounds: of it.
        results: arrays by the names of outputs.
        outside: true where a result cannot be.
        digest: of the intervals.
    """

    bounds: Certainty
    results: Mapping[str, npt.NDArray[Any]]
    outside: Mapping[str, _Bools]
    digest: bytes


@dataclass(slots=True, kw_only=True)
class _Group:
    """Hypotheses with the same intervals."""

    hypotheses: list[_Hypothesis]
    explained: int
    contradicted: int
    undecided: int
    bounds: Certainty | None

    @property
    def rank(self) -> tuple[int, int]:
        """The best is the least: it explains most, contradicts least, and leaves least open."""
        return self.contradicted - self.explained, self.undecided

    @property
    def helps(self) -> bool:
        """It explains more than it contradicts."""
        return self.explained > self.contradicted


def explanations(
    run: _Run,
    results: Mapping[str, Any],
    *,
    pairs: bool = False,
    told: Callable[[str], None] | None = None,
) -> tuple[Explanation, ...]:
    """Try hypotheses about a kernel: those that explain something, the best first.

    Each takes at most one more run of the kernel's certainty.

    Args:
        run: gives the kernel's bounds, as of `kernel.certainty(*arguments)`.
        results: arrays by the names of outputs, each of its output's dtype and shape.
        pairs: try every two hypotheses together too.
        told: gets the number of runs and their time beforehand.

    Raises:
        KeyError: results without one of the outputs.
    """
    start = time.perf_counter()
    with supposing(keeps_calls=True) as watch:
        bounds = run()
    took = time.perf_counter() - start
    arrays = {o.name: native(array_under_test(results[o.name], o.name)) for o in bounds.outputs}
    inside = _members(bounds, arrays)
    if all(each.all() for each in inside.values()):
        return ()
    study = _Study(
        bounds=bounds,
        results=arrays,
        outside={name: ~each for name, each in inside.items()},
        digest=_digest(bounds),
    )
    groups: dict[bytes, _Group] = {}

    def try_all(tried: list[_Hypothesis], seconds: float) -> list[tuple[_Hypothesis, _Group]]:
        """Add to the groups; returns those that change a result, with their groups.

        Args:
            tried: hypotheses.
            seconds: that one run takes.
        """
        runs = sum(each.context is not None for each in tried)
        if told is not None:
            text = f"{len(tried):,} hypotheses, {runs:,} runs of the kernel"
            told(f"{text}, about {seconds * runs:.1f} s")
        entered = [(each, _enter(groups, each, run, study)) for each in tried]
        return [(each, group) for each, group in entered if group is not None]

    hypotheses = list(_hypotheses(study, watch.calls or {}))
    del watch  # with all that the calls gave
    start = time.perf_counter()
    changing = try_all(hypotheses, took)
    if pairs:
        runs = sum(each.context is not None for each in hypotheses)
        took = (time.perf_counter() - start) / max(runs, 1)
        try_all(list(itertools.starmap(_both, _apart(changing))), took)
    ranked = sorted((g for g in groups.values() if g.explained), key=lambda group: group.rank)
    of = sum(int(np.count_nonzero(each)) for each in study.outside.values())
    return tuple(
        Explanation(
            hypotheses=tuple(each.text for each in group.hypotheses),
            explained=group.explained,
            contradicted=group.contradicted,
            of=of,
            example=() if place else tuple(_worked(group, run, study)),
        )
        for place, group in enumerate(ranked)
    )


def _enter(
    groups: dict[bytes, _Group], hypothesis: _Hypothesis, run: _Run, study: _Study
) -> _Group | None:
    """Put a hypothesis to those with its intervals, a pair to pairs alone.

    Returns the group; None if the intervals are those as written.
    """
    found = _bounds_under(hypothesis, run, study)
    if found is None or (key := _digest(found)) == study.digest:
        return None
    group = groups.get(key)
    if group is None:
        explained, contradicted = _counts(study, _members(found, study.results))
        group = groups[key] = _Group(
            hypotheses=[],
            explained=explained,
            contradicted=contradicted,
            undecided=found.undecided,
            bounds=found if explained else None,
        )
        best = min(groups.values(), key=lambda each: each.rank)
        for each in groups.values():
            if each is not best:
                each.bounds = None  # an example of the best alone is worked through
    if not hypothesis.is_pair or all(each.is_pair for each in group.hypotheses):
        group.hypotheses.append(hypothesis)
    return group


# --- The hypotheses ------------------------------------------------------------------------------


def _hypotheses(study: _Study, calls: Mapping[Site, tuple[SiteCall, Any]]) -> Iterator[_Hypothesis]:
    for row in WAYS:
        for site, (call, result) in calls.items():
            if isinstance(result, Tensor):
                for way in row.ways(call, result):
                    supposition = Supposition(site=site, alternative=way.alternative)
                    yield _Hypothesis(
                        text=f"{way.text} {place_of(site)}",
                        context=partial(supposing, supposition),
                        excludes=(row.kind, site) if row.exclusive else None,
                    )
    for way in EVERYWHERE:
        supposition = Supposition(site=None, alternative=way.alternative)
        context = partial(supposing, supposition)
        yield _Hypothesis(text=way.text, context=context, excludes=EVERYWHERE)
    for name in RELEASE_NAMES:
        if name != current().release:
            text = f"upstream's release {name}"
            yield _Hypothesis(text=text, context=partial(options, release=name))
    if current().inf_nan_mode:
        yield _Hypothesis(text="inf_nan_mode=False", context=partial(options, inf_nan_mode=False))
    if current().auto_cast == "as upstream":
        yield _Hypothesis(
            text="every FP16 and BF16 result rounded before it is used",
            context=partial(options, auto_cast="every op"),
        )
    for output in study.bounds.outputs:
        if len(output.shape) > 1 and output.shape[-1] == output.shape[-2]:
            yield _Hypothesis(
                text=f"{output.name} transposed", rewrite=partial(_turned, output.name)
            )
    for misplacement in misplacements(study.bounds.outputs, study.results, study.outside):
        yield _Hypothesis(
            text=misplacement.text, rewrite=partial(rewritten, misplacement=misplacement)
        )


def _turned(name: str, output: OutputCertainty) -> OutputCertainty:
    if output.name != name:
        return output

    def turn(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(np.swapaxes(array, -1, -2))

    return dataclasses.replace(
        output,
        values=turn(output.values),
        low=turn(output.low),
        high=turn(output.high),
        may_be_nan=None if output.may_be_nan is None else turn(output.may_be_nan),
    )


def _apart(
    singles: list[tuple[_Hypothesis, _Group]],
) -> Iterator[tuple[_Hypothesis, _Hypothesis]]:
    """Every two that can hold at once; of two that only move elements, both have to help."""
    for (one, first), (other, second) in itertools.combinations(singles, 2):
        if one.excludes is not None and one.excludes == other.excludes:
            continue
        runs = one.context is not None or other.context is not None
        if runs or (first.helps and second.helps):
            yield one, other


def _both(one: _Hypothesis, other: _Hypothesis) -> _Hypothesis:
    @contextlib.contextmanager
    def context() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for each in (one, other):
                if each.context is not None:
                    stack.enter_context(each.context())
            yield

    def rewrite(output: OutputCertainty) -> OutputCertainty:
        for each in (one, other):
            output = output if each.rewrite is None else each.rewrite(output)
        return output

    runs = one.context is not None or other.context is not None
    return _Hypothesis(
        text=f"{one.text} with {other.text}",
        context=context if runs else None,
        rewrite=rewrite,
        is_pair=True,
    )


# --- Runs ----------------------------------------------------------------------------------------


def _bounds_under(hypothesis: _Hypothesis, run: _Run, study: _Study) -> Certainty | None:
    """The bounds under a hypothesis; None where it makes no program, or one of other outputs."""
    bounds = study.bounds
    try:
        if hypothesis.context is not None:
            with supposing(), hypothesis.context():
                bounds = run()
        if hypothesis.rewrite is not None:
            changed = tuple(map(hypothesis.rewrite, bounds.outputs))
            bounds = dataclasses.replace(bounds, outputs=changed)
    except MemoryError:
        raise
    except Exception:  # the kernel's own too, as of an assertion that does not hold then
        return None
    shapes = {output.name: output.shape for output in bounds.outputs}
    asked = {output.name: output.shape for output in study.bounds.outputs}
    return bounds if shapes == asked else None


@float_environment.quiet()
def _members(bounds: Certainty, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, _Bools]:
    """True for each element of each output that a device may give."""
    return {output.name: output.contains(arrays[output.name]) for output in bounds.outputs}


def _counts(study: _Study, found: Mapping[str, _Bools]) -> tuple[int, int]:
    """Elements outside that may be, and elements that may be as written and then cannot."""
    pairs = [(study.outside[name], inside) for name, inside in found.items()]
    return (
        sum(int(np.count_nonzero(outside & inside)) for outside, inside in pairs),
        sum(int(np.count_nonzero(~outside & ~inside)) for outside, inside in pairs),
    )


def _digest(bounds: Certainty) -> bytes:
    """Of all intervals; -0 and +0 differ."""
    digest = hashlib.blake2b(digest_size=16)
    for output in bounds.outputs:
        nan = output.may_be_nan
        for array in (output.low, output.high, *(() if nan is None or not nan.any() else (nan,))):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


# --- One element, worked through -----------------------------------------------------------------


def _worked(group: _Group, run: _Run, study: _Study) -> Iterator[str]:
    """One element that a hypothesis explains: its possible values, and the call that gave it."""
    if group.bounds is None:
        return
    name, index = _example_of(group.bounds, study)
    as_written, supposed = study.bounds[name], group.bounds[name]
    value = study.results[name][index]
    code = int(flat_codes(value.reshape(1), as_written.format)[0])
    yield f"{name}{list(index)} is {value} = {code_in_words(code, as_written.format)}"
    yield f"  as written it is {as_written.possible(index)}"
    yield f"  under this hypothesis it is {supposed.possible(index)}"
    first = group.hypotheses[0]
    if first.context is not None:
        with supposing(keeps_altered=True) as watch, first.context():
            run()
        yield from _call_lines(watch.altered or [], index)


def _example_of(bounds: Certainty, study: _Study) -> tuple[str, Shape]:
    for name, inside in _members(bounds, study.results).items():
        where = np.argwhere(inside & study.outside[name])
        if len(where):
            return name, tuple(where[0].tolist())
    raise AssertionError("a group that explains nothing is none")


def _call_lines(altered: list[Altered], index: Shape) -> Iterator[str]:
    """The first call whose result is another, at the element of the output if it has one there."""
    for each in altered:
        plain, supposed = (_elements(x) for x in (each.plain, each.supposed))
        if plain is None or supposed is None or plain.shape != supposed.shape:
            continue
        differs = plain.reshape(-1).view(np.uint8) != supposed.reshape(-1).view(np.uint8)
        where = np.flatnonzero(differs)
        if not where.size:
            continue
        at = index
        if len(index) != plain.ndim or not _differs_at(plain, supposed, index):
            place = int(where[0]) // plain.itemsize
            at = tuple(int(axis) for axis in np.unravel_index(place, plain.shape))
        site = each.call.site
        yield f"  {site.operation} {place_of(site)}, element {list(at)} of its result:"
        for name, operand in each.call.operands().items():
            values = _elements(operand)
            if values is not None and values.shape == plain.shape:
                yield f"    {name} {_said(operand, values, at)}"
        yield f"    as written   {_said(each.plain, plain, at)}"
        yield f"    hypothesis   {_said(each.supposed, supposed, at)}"
        return


def _differs_at(a: npt.NDArray[Any], b: npt.NDArray[Any], index: Shape) -> bool:
    if any(i >= n for i, n in zip(index, a.shape, strict=True)):
        return False
    return bool(a[index].tobytes() != b[index].tobytes())


def _elements(x: object) -> npt.NDArray[Any] | None:
    held = x.enclosure() if isinstance(x, Tensor) else None
    return None if held is None else np.ascontiguousarray(held.values)


def _said(x: Tensor, values: npt.NDArray[Any], at: Shape) -> str:
    code = int(flat_codes(values[at].reshape(1), x.dtype.number_format)[0])
    fmt = x.dtype.number_format
    return f"{number_text(values, at, fmt)} = {code_in_words(code, fmt)}"
