"""The operations of a recording as nodes over whole tensors, each as upstream's compiler takes it.

What an operation is turned into is in the column `opcodes` of its row. Paths below are those of
upstream pypto at tag r0.2.0, framework/src/interface/operation.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from ascend_kernels.schedule.parts import Scalars
from ascend_kernels.schedule.planner.tiles.open_extents import of_result
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Attributes,
    Node,
    PlanError,
    TileTensor,
    exchanged,
)
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.kernel.graph.loop_runs import Place, Slots
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.operations.scalar_operands import Constant, is_element
from pypto_cast.options.releases import RELEASES, ReleaseName
from pypto_cast.recording.steps import Call
from pypto_cast.tensors.symbolic import scalar_of
from pypto_cast.tensors.tensor import Tensor
from simulator.machine.tile_functions import CHAINS
from simulator.machine.tile_opcodes import NO_ROW, TILE_OPCODES
from simulator.machine.tile_steps import SHIFTED
from simulator.numbers.formats import FP32, INT64, Format, IntFormat
from tiling.grid import Shape

_PART_HELD: Final = "a tensor that holds data in a part of it is not planned"
OPEN_NUMBER: Final = "a number known only when the kernel runs is not planned"


class RecordedNodes:
    """The nodes and tensors of a recording so far."""

    def __init__(
        self,
        assignments: Sequence[tuple[str, range]],
        release: ReleaseName,
        parameters: int,
        slots: Slots,
        place: Place = (),
    ) -> None:
        self._assignments = assignments
        self._slots, self._place = slots, place
        self.open_axes: set[tuple[str, int]] = set()
        self.whole: set[str] = set()
        self.simplified: list[str] = []
        self._count = parameters
        self._lists = RELEASES[release].run_in_fp32
        self._casts = RELEASES[release].cast_to_fp32
        self.wide: dict[int, frozenset[Format]] = {}
        self._nodes: list[Node] = []
        self._tensors: list[TileTensor] = []
        self._values: dict[int, int] = {}
        self._kept: dict[int, Tensor] = {}  # an id is a tensor's own as long as the tensor lives
        self._parameters: dict[str | int, int] = {}
        self._outputs: dict[int, str] = {}
        self.put: dict[int, str] = {}  # results in the place of an argument
        self._written: dict[str | int, int] = {}
        self._boxes: dict[str | int, list[tuple[Scalars, Shape]]] = {}
        self._lines: dict[int, int] = {}
        self._numbered: dict[int, list[tuple[int, ...]]] = {}
        self._checked = 0
        self._tile: Shape = ()

    def _format(self, tensor: int) -> Format:
        return self._tensors[tensor].format

    def _value(self, call: Call, tensor: Tensor) -> int:
        if id(tensor) in self._values:
            return self._values[id(tensor)]
        buffer = tensor.writable()
        if buffer is not None and buffer.is_given:
            key: str | int = tensor.name
            valid = self._note(tensor)
        else:
            key = self._slots.number(tensor)
            valid = self._slots.extents(key, tuple(map(int, tensor.shape)))
            self._slots.read.setdefault(key, f"{call.name} {call.place}")
        if key in self._written or key in self._outputs.values():
            name = tensor.name or "a tensor"
            raise PlanError(f"{call.name} {call.place}: {name} is read after it was written to")
        self._parameters[key] = self._new(call, tensor, valid)
        return self._parameters[key]

    def _note(self, tensor: Tensor) -> Scalars:
        """The extents of a parameter; the axes of those known only when the kernel runs."""
        extents = tuple(map(scalar_of, tensor.shape))
        axes = [k for k, each in enumerate(extents) if not isinstance(each, int)]
        self.open_axes.update((tensor.name, axis) for axis in axes)
        return extents if axes else ()

    def _new(self, call: Call, tensor: Tensor, valid: Scalars = ()) -> int:
        shape = tuple(map(int, tensor.shape))
        made = TileTensor(
            format=tensor.dtype.number_format, shape=shape, valid=() if valid == shape else valid
        )
        self._tensors.append(made)
        self._kept[id(tensor)] = tensor
        self._values[id(tensor)] = len(self._tensors) - 1
        return len(self._tensors) - 1

    def _add(
        self,
        call: Call,
        name: str,
        opcode: str,
        operands: Iterable[Tensor],
        valid: Scalars | None = None,
        **asked: Any,
    ) -> None:
        inputs = [self._value(call, each) for each in operands]
        self._node(call, name, opcode, inputs, valid=valid, **asked)

    def _node(
        self,
        call: Call,
        name: str,
        opcode: str,
        inputs: Sequence[int],
        result: int | None = None,
        *,
        valid: Scalars | None = None,
        tile_shape: Shape = (),
        **asked: Any,
    ) -> None:
        """Add a node; its result is the call's unless it is said."""
        if valid is None:
            valid = self._extents(call, opcode, inputs)
        if result is None:
            result = self._new(call, call.result, valid)
        number = len(self._nodes)
        self._lines[result] = call.line
        self._nodes.append(
            Node(
                opcode=opcode,
                number=number,
                inputs=tuple(inputs),
                outputs=(result,),
                attributes=Attributes(file=os.path.basename(call.file), line=call.line, **asked),
                tile_shape=tile_shape or tuple(call.settings.vec_tile_shapes),
            )
        )
        dtypes = self._lists.get(name, ())
        self.wide[number] = frozenset(each.number_format for each in dtypes)

    def _extents(self, call: Call, opcode: str, inputs: Sequence[int]) -> Scalars:
        """Those of a result."""
        self._take_as_given(inputs)
        operands = [self._tensors[each] for each in inputs]
        shape = tuple(map(int, call.result.shape))
        return of_result(f"{opcode} {call.place}", opcode, operands, shape)

    def _take_as_given(self, inputs: Sequence[int]) -> None:
        """Take arguments that are no views at the length that was given."""
        for name, tensor in self._parameters.items():
            if tensor in inputs and isinstance(name, str):
                self.whole.add(name)
                self._tensors[tensor] = replace(self._tensors[tensor], valid=())

    def _whole_operand(self, call: Call, tensor: Tensor) -> int:
        """An operand, which has to hold data in all of it."""
        source = self._value(call, tensor)
        self._take_as_given([source])
        if self._tensors[source].is_open:
            raise PlanError(f"{call.name} {call.place}: {_PART_HELD}")
        return source

    def _between(self, held: TileTensor, shape: Sequence[int], fmt: Format | None = None) -> int:
        """A tensor of an operation's own, between its nodes."""
        made = TileTensor(format=fmt or held.format, shape=tuple(map(int, shape)))
        self._tensors.append(made)
        return len(self._tensors) - 1

    def _elementwise(self, call: Call, name: str, *operands: Any, dtype: object = None) -> None:
        row = ROWS[name]
        tensors = [each for each in operands if isinstance(each, Tensor)]
        numbers = [each for each in operands if isinstance(each, Constant)]
        kinds = "".join("T" if isinstance(each, Tensor) else "S" for each in operands)
        opcode = row.opcodes.get(kinds)
        runs = None if opcode is None else TILE_OPCODES.get(opcode)
        most = 1 if runs is None else max(1, runs.scalars)
        if opcode is None or len(numbers) > most:
            why = "no tile opcode is known for these operands"
            if opcode is not None and opcode in NO_ROW:
                why = f"{opcode} is not planned: it needs {NO_ROW[opcode]}"
            raise PlanError(f"{name} {call.place}: {why}")
        scalars = [row.implied_scalar]
        for number in numbers:
            if not isinstance(number.value, (int, float)):
                raise PlanError(f"{name} {call.place}: {OPEN_NUMBER}")
            scalars.append(float(number.value))
        asked: dict[str, Any] = {"scalar": scalars[-1]}
        if runs is not None and runs.scalars == 2:
            asked = dict(zip(("scalar", "other_scalar"), scalars[1:], strict=True))
        rank = len(call.result.shape)
        inputs = [self._of_rank(call, self._value(call, each), rank) for each in tensors]
        function = name if "CMP" in opcode else ""
        held = CHAINS.get(runs.function) if runs is not None else None
        fmt = self._format(inputs[0])
        if held is not None and isinstance(fmt, IntFormat) and fmt not in held:
            raise PlanError(f"{name} {call.place}: {opcode} that copies {fmt} is not planned")
        self._node(call, name, opcode, inputs, function=function, **asked)

    def _of_rank(self, call: Call, operand: int, rank: int) -> int:
        """An operand with as many dimensions as the result (vector/binary.cpp:32)."""
        held = self._tensors[operand]
        missing = rank - len(held.shape)
        if not missing:
            return operand
        widened = self._between(held, (1,) * missing + held.shape)
        self._node(call, "reshape", ROWS["reshape"].opcodes["T"], [operand], widened)
        return widened

    def _reduced(self, call: Call, name: str, x: Tensor, axis: int) -> None:
        self._add(call, name, ROWS[name].opcodes["T"], [x], axis=axis)

    def _full(self, call: Call, size: object, fill_value: Any, dtype: object, **_: object) -> None:
        value = fill_value.value if is_element(fill_value) else fill_value
        if not isinstance(value, (int, float)):
            raise PlanError(f"full {call.place}: {OPEN_NUMBER}")
        self._add(call, "full", ROWS["full"].opcodes["S"], [], scalar=float(value))

    def _reshape(self, call: Call, input: Tensor, *_: object, **named: object) -> None:
        pairs = ((x.shape, x.valid_shape) for x in (input, call.result))
        before, after = ([tuple(map(int, each)) for each in pair] for pair in pairs)
        if before == after:  # the operand itself (operation_impl.cpp:1294)
            self._stand_for(call, input)
            return
        self._add(call, "reshape", ROWS["reshape"].opcodes["T"], [input])

    def _stand_for(self, call: Call, input: Tensor) -> None:
        """Have the result of a call be its operand."""
        self._values[id(call.result)] = self._value(call, input)
        self._kept[id(call.result)] = call.result

    def _range(self, call: Call, *bounds: float) -> None:
        if not all(isinstance(each, (int, float)) for each in bounds):
            raise PlanError(f"arange {call.place}: {OPEN_NUMBER}")
        start, _, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        opcode = ROWS["arange"].opcodes["S"]
        self._add(call, "arange", opcode, [], scalar=float(start), step=float(step), number=0)

    def _triangle(self, call: Call, name: str, x: Tensor, diagonal: int) -> None:
        opcode = ROWS[name].opcodes["T"]
        self._add(call, name, opcode, [x], function=name, number=diagonal)

    def _pattern(self, call: Call, x: Tensor, pattern_mode: int) -> None:
        opcode = ROWS["gathermask"].opcodes["T"]
        self._add(call, "gathermask", opcode, [x], scalar=float(pattern_mode))

    def _one_hot(self, call: Call, input: Tensor, num_classes: int) -> None:
        self._add(call, "one_hot", ROWS["one_hot"].opcodes["T"], [input])

    def _clone(self, call: Call, input: Tensor) -> None:
        self._add(call, "clone", "REGISTER_COPY", [input])

    def _expand(self, call: Call, input: Tensor, *_: object, **named: object) -> None:
        pairs = zip(input.shape, call.result.shape, strict=True)
        axis = next((k for k, (before, after) in enumerate(pairs) if before != after), -1)
        self._add(call, "expand_clone", ROWS["expand_clone"].opcodes["T"], [input], axis=axis)

    def _concat(self, call: Call, tensors: Sequence[Tensor], dim: int = 0) -> None:
        """A copy of each operand, assembled in one tensor, and that in the result.

        Source: vector/tensor_transformation.cpp:642; the copies vanish again.
        """
        inputs = [self._value(call, each) for each in tensors]
        result = self._new(call, call.result)
        held = self._tensors[result]
        whole = self._between(held, held.shape)
        pieces, offset, place = [], [0] * len(held.shape), dim % len(held.shape)
        first = len(self._nodes)
        for operand in inputs:
            self._numbered[len(self._nodes)] = []
            pieces.append((self._between(held, self._tensors[operand].shape), tuple(offset)))
            self._node(call, "concat", "REGISTER_COPY", [operand], pieces[-1][0])
            offset[place] += self._tensors[operand].shape[place]
        self._numbered[first] = [(result,), tuple(each for each, _ in pieces), (whole,)]
        for piece, start in pieces:
            self._tensors[piece] = replace(self._tensors[piece], raw_shape=held.shape)
            self._node(call, "concat", "ASSEMBLE", [piece], whole, offset=start)
        origin = (0,) * len(held.shape)
        self._node(call, "concat", "ASSEMBLE", [whole], result, offset=origin)

    def _transpose(self, call: Call, input: Tensor, dim0: int, dim1: int) -> None:
        """Rows go out of UB to where they belong; the last axis is exchanged inside UB.

        Where it is exchanged with one that is not beside it, that one is brought there on the way
        in, and away on the way out (vector/tensor_transformation.cpp:301).
        """
        rank = len(input.shape)
        axes = sorted((dim0 % rank, dim1 % rank))
        tile = tuple(call.settings.vec_tile_shapes)
        if axes[1] != rank - 1:
            steps = [("TRANSPOSE_MOVEOUT", axes)]
        elif axes[0] == rank - 2:
            steps = [("TRANSPOSE_VNCHWCONV", axes)]
        else:
            steps = [
                ("TRANSPOSE_MOVEIN", [rank - 3, rank - 2]),
                ("TRANSPOSE_VNCHWCONV", [rank - 2, rank - 1]),
                ("TRANSPOSE_MOVEOUT", [rank - 3, rank - 2]),
            ]
        operand = self._value(call, input)
        for opcode, swapped in steps:
            held = self._tensors[operand]
            is_last = opcode == steps[-1][0]
            result = None if is_last else self._between(held, exchanged(held.shape, swapped))
            self._node(
                call, "transpose", opcode, [operand], result, tile_shape=tile, axes=tuple(swapped)
            )
            operand, tile = self._nodes[-1].outputs[0], exchanged(tile, swapped)

    def _permute(self, call: Call, input: Tensor, perm: Sequence[int]) -> None:
        """The operand itself, or one move in that keeps rows (vector/permute.cpp:226)."""
        axes = tuple(perm)
        if axes == tuple(range(len(axes))):
            self._stand_for(call, input)
            return
        if axes[-1] != len(axes) - 1:
            raise PlanError(
                f"permute {call.place}: PERMUTE_ELEMENT is not planned: it needs elements of GM "
                "that the scalar unit reads, whose cache is not modelled"
            )
        self._add(call, "permute", ROWS["permute"].opcodes["T"], [input], axes=axes)

    def _pack(self, call: Call, input: Tensor) -> None:
        """All elements on one axis, then their bytes (at 883e7dfb0, vector/unary.cpp:406)."""
        operand = self._value(call, input)
        held = self._tensors[operand]
        if len(held.shape) > 1:
            flat = self._between(held, (math.prod(held.shape),))
            self._node(call, "reshape", ROWS["reshape"].opcodes["T"], [operand], flat)
            operand = flat
        self._node(call, "pack", ROWS["pack"].opcodes["T"], [operand])

    def _unpack(self, call: Call, input: Tensor, dtype: DataType) -> None:
        self._add(call, "unpack", ROWS["unpack"].opcodes["T"], [input])

    def _scale_rows(self, call: Call, name: str, operands: Sequence[int]) -> None:
        """Rows with a number each; columns are transposed before and behind.

        One axis becomes two, and a scale alone has zeros beside it where they are taken from it
        (at 883e7dfb0, vector/quantization.cpp:723, :1026).
        """
        asked = inspect.signature(call.operation).bind(*call.arguments, **call.named).arguments
        source, *numbers = operands
        held, tile = self._tensors[source], tuple(call.settings.vec_tile_shapes)
        rank, given = len(held.shape), call.result.dtype.number_format
        swapped = (rank - 2, rank - 1) if int(asked["axis"]) in (-2, rank - 2) and rank > 1 else ()
        if swapped and rank > 2:
            raise PlanError(
                f"{name} {call.place}: along the axis before the last of {rank}, which upstream "
                "transposes with others merged, not planned"
            )
        shape, opcode = held.shape, ROWS[name].opcodes["T" * len(operands)]

        def between(fmt: Format) -> int:
            return self._between(held, shape, fmt)

        if rank == 1:
            shape, tile = (1, *shape), (1, *tile)
            source = between(held.format)
            self._node(call, "reshape", ROWS["reshape"].opcodes["T"], operands[:1], source)
        elif swapped:
            shape = exchanged(shape, swapped)
            turned = between(held.format)
            moved: dict[str, Any] = {"axes": swapped, "tile_shape": tile}
            self._node(call, name, "TRANSPOSE_VNCHWCONV", [source], turned, **moved)
            source, tile = turned, exchanged(tile, swapped)
        if name == "dequantize" and len(numbers) == 1:
            numbers.append(self._between(self._tensors[numbers[0]], shape[:-1]))
            self._node(
                call, "full", ROWS["full"].opcodes["S"], [], numbers[1], scalar=0.0, tile_shape=tile
            )
        is_last = rank > 1 and not swapped
        result = None if is_last else between(given)
        self._node(call, name, opcode, [source, *numbers], result, tile_shape=tile)
        result = self._nodes[-1].outputs[0]
        if swapped:
            moved = {"axes": swapped, "tile_shape": tile}
            self._node(call, name, "TRANSPOSE_VNCHWCONV", [result], **moved)
        elif rank == 1:
            self._node(call, "reshape", ROWS["reshape"].opcodes["T"], [result])

    def _cast(
        self,
        call: Call,
        input: Tensor,
        dtype: object,
        mode: CastMode = CastMode.CAST_NONE,
        satmode: SaturationMode | None = None,
    ) -> None:
        chosen = satmode or call.settings.default_satmode
        saturate = chosen is SaturationMode.ON
        self._add(call, "cast", "CAST", [input], mode=mode.round_mode, saturate=saturate)

    def _accumulate(self, call: Call, input: Tensor, dim: int) -> None:
        """Floats and INT16 are added in FP32; those along the last of several axes are transposed.

        Source: vector/math.cpp:660, :736.
        """
        name = call.operation.__name__
        rank, tile = len(input.shape), tuple(call.settings.vec_tile_shapes)
        axis, fmt = dim % rank, input.dtype.number_format
        is_whole = input.dtype in (DataType.DT_INT16, DataType.DT_INT32)
        if input.dtype is DataType.DT_INT16 and input.dtype not in self._casts.get(name, ()):
            raise PlanError(f"{name} {call.place}: INT16 that is added in INT32 is not planned")
        wide = fmt if input.dtype is DataType.DT_INT32 else FP32
        swapped = () if is_whole or rank == 1 or axis < rank - 1 else (rank - 2, rank - 1)
        turned = exchanged(tile, swapped)
        turn: dict[str, Any] = {"axes": swapped}
        cast, in_turn = {"saturate": False}, RELEASES[call.settings.release].sums_in_turn
        summed = {
            "axis": rank - 2 if swapped else axis,
            "function": "" if in_turn or name == "cumprod" else SHIFTED,
        }
        steps: list[tuple[str, Format, Shape, dict[str, Any]]] = [
            ("TRANSPOSE_VNCHWCONV", fmt, tile, turn),
            ("CAST", wide, turned, cast),
            (ROWS[name].opcodes["T"], wide, turned, summed),
            ("CAST", INT64 if is_whole else fmt, turned, cast),
            ("TRANSPOSE_VNCHWCONV", fmt, turned, turn),
        ]
        before = [fmt, *(step[1] for step in steps)]
        steps = [
            step
            for step, held in zip(steps, before, strict=False)
            if (step[3] is not turn or swapped) and (step[0] != "CAST" or step[1] is not held)
        ]
        operand = self._value(call, input)
        shape = exchanged(self._tensors[operand].shape, swapped)
        for step, (opcode, made, extents, asked) in enumerate(steps, 1):
            result = (
                None if step == len(steps) else self._between(self._tensors[operand], shape, made)
            )
            self._node(call, name, opcode, [operand], result, tile_shape=extents, **asked)
            operand = self._nodes[-1].outputs[0]

    def _pad(self, call: Call, x: Tensor, *given: object, **named: object) -> None:
        name = call.operation.__name__
        asked = inspect.signature(call.operation).bind(x, *given, **named)
        asked.apply_defaults()
        number = float(asked.arguments["value"])
        self._add(call, name, ROWS[name].opcodes["T"], [x], scalar=number)
