"""The number of runs of each body of a schedule, by its control flow and the extents of a call.

A short file because both the schedule and the bound of its cycles, which stand apart, count so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ascend_kernels.schedule.parts import Branch, ControlStep, Loop, Run
from ascend_kernels.schedule.scalars import Scalar, Values, evaluate
from ascend_kernels.schedule.task_lowering import MAX_TASKS
from tiling.grid import Shape

NO_EXTENTS: Final[Mapping[str, Shape]] = MappingProxyType({})
"""Of a call that is not known."""
_Found = Iterator[tuple[int, int | None]]


def body_runs(
    steps: Sequence[ControlStep], extents: Mapping[str, Shape] = NO_EXTENTS
) -> dict[int, int | None]:
    """The number of runs of each body, by its place; None where a bound or a condition is open.

    Open is what goes by an extent that is not given or by an element of a parameter, and a loop of
    more rounds than `Schedule.run` executes, if what its body does goes by the round.

    Args:
        steps: of a schedule.
        extents: of the parameters of a call.
    """
    found: dict[int, int | None] = {}
    for body, count in _counted(steps, Values(extents=extents), 1, MAX_TASKS):
        held = found.get(body, 0)
        found[body] = None if held is None or count is None else held + count
    return found


def _counted(
    steps: Sequence[ControlStep], values: Values, times: int | None, rounds: int
) -> _Found:
    """The bodies of steps that run some times, those too that never do.

    Args:
        steps: of a schedule or in it.
        values: what is known.
        times: how often these steps run.
        rounds: of loops, how many may be gone through one by one.
    """
    for step in steps:
        match step:
            case Run(body=body):
                yield body, times
            case Branch(condition=condition):
                holds = _known((condition,), values)
                for inner, wanted in ((step.steps, True), (step.otherwise, False)):
                    share = None if holds is None else int(bool(holds[0]) == wanted)
                    yield from _counted(inner, values, _times(times, share), rounds)
            case Loop(variable=variable):
                bounds = _known((step.begin, step.end, step.step), values)
                passes = range(*bounds) if bounds is not None and bounds[2] > 0 else None
                symbols = {name: x for name, x in values.symbols.items() if name != variable}
                inside = replace(values, symbols=symbols)
                count = None if passes is None else len(passes)
                alike = list(_counted(step.steps, inside, _times(times, count), rounds))
                is_open = any(each is None for _, each in alike)
                if times is None or passes is None or not is_open or len(passes) > rounds:
                    yield from alike
                    continue
                for number in passes:
                    inside = replace(values, symbols={**symbols, variable: number})
                    yield from _counted(step.steps, inside, times, rounds // len(passes))


def _times(outer: int | None, inner: int | None) -> int | None:
    """The product of two counts; None where it is open."""
    if outer is None or inner is None:
        return 0 if 0 in (outer, inner) else None
    return outer * inner


def _known(scalars: Sequence[Scalar], values: Values) -> list[int] | None:
    try:
        return [evaluate(each, values) for each in scalars]
    except ValueError:
        return None
