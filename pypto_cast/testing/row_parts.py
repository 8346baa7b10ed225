"""Parts of a kernel's call that compute some rows alone, where its schedule shows that they can.

The rows of a part are those of whole tasks. The call of a part is planned too, and has to have the
tile operations and copies of these tasks and no others: a kernel that goes by the number of its
rows, or by the place of a row, is not called in parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy.typing as npt

from ascend_kernels.schedule.views.row_groups import NotCutError, RowGroup, Rows, RowTasks
from pypto_cast.call_sites import muted
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.kernel.jit import Kernel
from pypto_cast.tensors.arguments import TensorAnnotation

_Array = npt.NDArray[Any]
_MOST_LEAST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPart:
    """A call that computes some rows alone.

    Attributes:
        rows: the first one, and the one behind the last.
        kernel: takes that many rows.
        arguments: its tensors, cut to the rows where they have these.
        others: its arguments that are no tensors.
    """

    rows: Rows
    kernel: Kernel
    arguments: tuple[_Array, ...]
    others: Mapping[str, Any]

    def bounds(self) -> Certainty:
        """The intervals of the rows."""
        return self.kernel.certainty(*self.arguments, **self.others)


class RowParts:
    """The rows of a call, in groups that do not depend on each other.

    Args:
        kernel: of the call.
        arguments: arrays for its tensors.
        others: its arguments that are no tensors.

    Raises:
        PlanError: the call has no schedule.
        NotCutError: its rows depend on each other, or may do so.
    """

    def __init__(
        self, kernel: Kernel, arguments: Sequence[_Array], others: Mapping[str, Any]
    ) -> None:
        self._kernel, self._others = kernel, dict(others)
        self._arguments = dict(zip(kernel.signature.tensors, arguments, strict=True))
        if any(not array.ndim for array in arguments):
            raise NotCutError("a tensor of it has no rows")
        self._tasks = self._tasks_of(kernel, tuple(arguments))
        self.groups = self._tasks.groups()
        self._checked: set[tuple[int, int]] = set()
        self.count = self._tasks.count
        """Of rows."""

    def least(self) -> int:
        """The fewest groups at the beginning, a power of two, that a call computes alone.

        Upstream's compiler joins operations to tasks otherwise where there are few tiles.

        Raises:
            NotCutError: as `part`, of as many as `_MOST_LEAST`.
        """
        count = 1
        while True:
            try:
                self.part(0, min(count, len(self.groups)))
            except NotCutError:
                count *= 2
                if count > min(_MOST_LEAST, len(self.groups)):
                    raise
            else:
                return count

    def part(self, first: int, last: int) -> RowPart:
        """The call of the groups from one to before another.

        Raises:
            NotCutError: the call of these rows has other tasks.
        """
        groups = self.groups[first:last]
        begin = groups[0].rows[0] if first else 0
        end = self.groups[last].rows[0] if last < len(self.groups) else self.count
        cut = self._tasks.cut
        part = RowPart(
            rows=(begin, end),
            kernel=_of_rows(self._kernel, cut, end - begin),
            arguments=tuple(
                x[begin:end] if name in cut else x for name, x in self._arguments.items()
            ),
            others=self._others,
        )
        if (first, last) not in self._checked:
            self._check(part, groups)
            self._checked.add((first, last))
        return part

    def _check(self, part: RowPart, groups: Sequence[RowGroup]) -> None:
        reason = "a call of some of its rows has other tasks"
        try:
            found = self._tasks_of(part.kernel, part.arguments).work()
        except MemoryError:
            raise
        except Exception as error:  # the kernel's own too, as of an assertion about its shapes
            raise NotCutError(f"{reason}: {error}") from error
        if found != self._tasks.work(groups, part.rows[0]):
            raise NotCutError(reason)

    def _tasks_of(self, kernel: Kernel, arguments: tuple[_Array, ...]) -> RowTasks:
        with muted():
            schedule = kernel.schedule(*arguments, **self._others)
        shapes = {
            name: array.shape
            for name, array in zip(self._arguments, arguments, strict=True)
            if name in {each.name for each in schedule.parameters}
        }
        return RowTasks(schedule, shapes)


def _of_rows(kernel: Kernel, cut: frozenset[str], count: int) -> Kernel:
    """A kernel whose tensors may have another number of rows."""

    def annotated(name: str, of: TensorAnnotation) -> TensorAnnotation:
        if name not in cut or not of.shape or not isinstance(of.shape[0], int) or of.shape[0] < 0:
            return of
        return dataclasses.replace(of, shape=(count, *of.shape[1:]))

    return kernel.with_tensors(
        {name: annotated(name, of) for name, of in kernel.signature.tensors.items()}
    )
