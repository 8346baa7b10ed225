"""The operations of a recording that take indices or give places, as nodes over whole tensors.

Paths are those of upstream pypto at tag r0.2.0, framework/src/interface/operation.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ascend_kernels.schedule.planner.tiles.tile_graph import Attributes, Node, PlanError
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.kernel.graph.recorded_nodes import OPEN_NUMBER, RecordedNodes
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.operations.scalar_operands import converted, is_element
from pypto_cast.options.releases import RELEASES
from pypto_cast.recording.steps import Call
from pypto_cast.tensors.tensor import Tensor
from simulator.machine.tile_opcodes import ADDED_IN_GM
from simulator.machine.tile_steps import ASCENDING
from simulator.numbers.formats import FP32


class IndexedNodes(RecordedNodes):
    """The nodes of a recording so far, with operations that take indices or give places."""

    def _gather(self, call: Call, input: Tensor, dim: int, index: Tensor) -> None:
        axis = dim % len(input.shape)
        self._add(call, "gather", ROWS["gather"].opcodes["TT"], [input, index], axis=axis)

    def _select(self, call: Call, input: Tensor, dim: int, index: Tensor) -> None:
        axis = dim % len(input.shape)
        self._add(
            call, "index_select", ROWS["index_select"].opcodes["TT"], [input, index], axis=axis
        )

    def _paged_rows(
        self,
        call: Call,
        param: Tensor,
        indices: Tensor,
        block_table: Tensor,
        block_size: int,
        axis: int,
    ) -> None:
        opcode, operands = ROWS["gather_in_ub"].opcodes["TTT"], [param, indices, block_table]
        self._add(call, "gather_in_ub", opcode, operands, scalar=float(block_size))

    def _update(self, call: Call, input: Tensor, dim: int, index: Tensor, src: Tensor) -> None:
        opcode = ROWS["scatter_update"].opcodes["TTT"]
        key = self._put_into(call, "scatter_update", input)
        self._add(call, "scatter_update", opcode, [src, index, input])
        self.put[self._nodes[-1].outputs[0]] = key

    def _put(
        self,
        call: Call,
        input: Tensor,
        indices: Sequence[Tensor],
        values: Tensor,
        accumulate: bool = False,
    ) -> None:
        """Write to an argument, which lies where the result does."""
        opcode = ROWS["index_put_"].opcodes["TTT"]
        if accumulate or len(indices) > 1:
            what = "that adds up" if accumulate else f"by {len(indices)} tensors of indices"
            raise PlanError(f"index_put_ {call.place}: {opcode} {what} is not planned")
        key = self._put_into(call, "index_put_", input)
        operands = [self._value(call, each) for each in (input, values, indices[0])]
        result = self._between(self._tensors[operands[0]], input.shape)
        self._node(call, "index_put_", opcode, operands, result, valid=())
        self.put[result], self._outputs[result] = key, key
        self.whole.add(key)
        del self._values[id(input)]

    def _put_into(self, call: Call, name: str, target: Tensor) -> str:
        """The name of an argument that is written to at places.

        Raises:
            PlanError: none, or a part of one.
        """
        number, buffer = self._value(call, target), target.writable()
        for key, each in self._parameters.items():
            if each == number and isinstance(key, str) and buffer is not None and buffer.is_given:
                self._whole_operand(call, target)
                return key
        raise PlanError(f"{name} {call.place}: into another tensor than an argument, not planned")

    def _scatter(
        self, call: Call, input: Tensor, dim: int, index: Tensor, src: object, *, reduce: Any = None
    ) -> None:
        if reduce is not None:
            raise PlanError(f"scatter {call.place}: reduce={reduce!r} is not planned")
        axis = dim % len(input.shape)
        if isinstance(src, Tensor):
            opcode = ROWS["scatter"].opcodes["TTT"]
            self._add(call, "scatter", opcode, [input, index, src], axis=axis)
            return
        value = src.value if is_element(src) else src
        if not isinstance(value, (int, float)):
            raise PlanError(f"scatter {call.place}: {OPEN_NUMBER}")
        opcode = ROWS["scatter"].opcodes["TT"]
        self._add(call, "scatter", opcode, [input, index], axis=axis, scalar=float(value))

    def _added(
        self,
        call: Call,
        name: str,
        input: Tensor,
        dim: int,
        index: Tensor,
        source: Tensor,
        alpha: float,
    ) -> None:
        opcode = ROWS[name].opcodes["TTT"]
        if opcode == "INDEX_ADD" and RELEASES[call.settings.release].index_adds_in_gm:
            raise PlanError(f"{name} {call.place}: {opcode} is not planned: it needs {ADDED_IN_GM}")
        factor = converted(name, alpha, input.dtype).value
        if not isinstance(factor, (int, float)):
            raise PlanError(f"{name} {call.place}: {OPEN_NUMBER}")
        axis = dim % len(input.shape)
        operands = [input, source, index]
        for each in operands:
            self._whole_operand(call, each)
        self._add(call, name, opcode, operands, axis=axis, scalar=float(FP32.dtype.type(factor)))

    def _extreme(self, call: Call, name: str, x: Tensor, axis: int) -> None:
        if x.dtype is not DataType.DT_FP32:
            places = f"of {x.dtype}, whose places upstream counts in INT16, not planned"
            raise PlanError(f"{name} {call.place}: {places}")
        self._whole_operand(call, x)
        self._add(call, name, ROWS[name].opcodes["T"], [x], axis=axis)

    def _sort32(self, call: Call, input: Tensor, index: int | None = None) -> None:
        self._whole_operand(call, input)
        opcode = ROWS["sort32"].opcodes["T"]
        self._add(
            call, "sort32", opcode, [input], scalar=float(index or 0), axis=len(input.shape) - 1
        )

    def _topk(
        self,
        call: Call,
        input: Tensor,
        k: int,
        dim: int | None = None,
        largest: bool = True,
        **_: object,
    ) -> None:
        self._sorted(call, "topk", input, call.result, descending=largest)

    def _argsort(
        self, call: Call, input: Tensor, dim: int | None = None, descending: bool = False
    ) -> None:
        if dim not in (None, -1, len(input.shape) - 1):
            raise PlanError(f"argsort {call.place}: along another axis than the last, not planned")
        if input.dtype is not DataType.DT_FP32:
            raise PlanError(f"argsort {call.place}: of {input.dtype}, which is cast, not planned")
        self._sorted(call, "argsort", input, (None, call.result), descending=descending)

    def _sorted(
        self,
        call: Call,
        name: str,
        input: Tensor,
        results: Sequence[Tensor | None],
        *,
        descending: bool,
    ) -> None:
        """Sorted elements and their numbers, two results of one operation."""
        source = self._whole_operand(call, input)
        held = self._tensors[source]
        made = tuple(
            self._between(held, held.shape) if each is None else self._new(call, each)
            for each in results
        )
        number = len(self._nodes)
        self._lines.update(dict.fromkeys(made, call.line))
        self._numbered[number] = [(each,) for each in made]
        self.wide[number] = frozenset()
        self._nodes.append(
            Node(
                opcode=ROWS[name].opcodes["T"],
                number=number,
                inputs=(source,),
                outputs=made,
                attributes=Attributes(
                    file=os.path.basename(call.file),
                    line=call.line,
                    scalar=0.0,
                    axis=len(held.shape) - 1,
                    function="" if descending else ASCENDING,
                ),
                tile_shape=tuple(call.settings.vec_tile_shapes),
            )
        )
