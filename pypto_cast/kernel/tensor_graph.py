"""The graph of a kernel over whole tensors, as upstream's compiler takes it, with AutoCast's casts.

The operations of a recording are turned into tile opcodes by the column `opcodes` of their rows; an
operation that is composed of others is recorded as those, step by step. Paths below are those of
upstream pypto at tag r0.2.0, framework/src.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

from ascend_kernels.schedule.parts import Scalars
from ascend_kernels.schedule.planner.open_extents import of_result
from ascend_kernels.schedule.planner.tile_cutting import overlap
from ascend_kernels.schedule.planner.tile_graph import (
    Attributes,
    KernelGraphs,
    Memory,
    Node,
    PlanError,
    TileGraph,
    TileTensor,
    exchanged,
    in_order,
    whole_copy,
)
from ascend_kernels.schedule.scalars import constant, distance, text
from pypto_cast.dtypes.data_types import CastMode, SaturationMode
from pypto_cast.kernel.auto_cast import auto_cast, check_release
from pypto_cast.kernel.kernel_source import named_at_end, names_assigned
from pypto_cast.kernel.loop_runs import Slots, runs_of
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.operations.scalar_operands import Constant, is_element
from pypto_cast.options.releases import RELEASES, ReleaseName
from pypto_cast.recording.steps import Call
from pypto_cast.tensors import indexing
from pypto_cast.tensors.symbolic import are_known, scalar_of
from pypto_cast.tensors.tensor import Tensor
from simulator.numbers.formats import Format
from tiling.grid import Shape

_RAW_A_PARAMETER: Final = 4
"""The raw tensors that upstream makes for a parameter before the first operation."""
_RAW_A_COPY: Final = 6
"""Those that it makes for a view of an argument, or an assemble, when a function is closed."""
_PLACED: Final = ("view", "__getitem__", "assemble", "__setitem__")
"""Operations at places that may be known only when the kernel runs."""
_AROUND: Final = ("RESHAPE", "VIEW", "ASSEMBLE")
"""Opcodes that may stand before the one of an operation."""


def tensor_graphs(
    function: Callable[..., object],
    events: Sequence[Any],
    release: ReleaseName,
    *,
    parameters: int,
) -> KernelGraphs:
    """The graphs of a kernel from its recording: one of each run that is compiled by itself.

    That is a path through a loop's body, and what stands before, between and after loops.

    Args:
        function: the kernel's, whose source names the tensors that it keeps.
        events: of a recording for a schedule.
        release: of upstream's, for AutoCast's lists.
        parameters: how many tensors the kernel takes.

    Raises:
        PlanError: an operation that is not covered, or a tensor that bodies pass on in a way that
            is not; names it with its line.
    """
    assignments = names_assigned(function)
    recorded = runs_of(events)
    slots, readers = Slots(recorded.declared), []
    for run in recorded.runs:
        reader = _Reader(assignments, release, parameters, slots)
        for call in run.operations:
            reader.take(call)
        readers.append(reader)
    left = {slot for reader in readers for slot in reader.left()}
    for slot, place in slots.read.items():
        if slot not in left:
            raise PlanError(f"{place}: reads what no operation of the kernel wrote")
    graphs = [
        replace(auto_cast(reader.graph(), reader.wide), name=run.name if len(readers) > 1 else "")
        for reader, run in zip(readers, recorded.runs, strict=True)
    ]
    fixed = {name for reader in readers for name in reader.whole}
    axes = {each for reader in readers for each in reader.open_axes}
    return KernelGraphs(
        graphs=tuple(graphs),
        steps=slots.steps(recorded.steps),
        open_axes=frozenset((name, axis) for name, axis in axes if name not in fixed),
    )


class _Reader:
    """The nodes and tensors of a recording so far."""

    def __init__(
        self,
        assignments: Sequence[tuple[str, range]],
        release: ReleaseName,
        parameters: int,
        slots: Slots,
    ) -> None:
        self._assignments = assignments
        self._slots = slots
        self.open_axes: set[tuple[str, int]] = set()
        self.whole: set[str] = set()
        self._count = parameters
        self._lists = RELEASES[release].run_in_fp32
        self.wide: dict[int, frozenset[Format]] = {}
        self._nodes: list[Node] = []
        self._tensors: list[TileTensor] = []
        self._values: dict[int, int] = {}
        self._kept: dict[int, Tensor] = {}  # an id is a tensor's own as long as the tensor lives
        self._parameters: dict[str | int, int] = {}
        self._outputs: dict[int, str] = {}
        self._written: dict[str | int, int] = {}
        self._boxes: dict[str | int, list[tuple[Scalars, Shape]]] = {}
        self._lines: dict[int, int] = {}
        self._numbered: dict[int, list[tuple[int, ...]]] = {}
        self._checked = 0

    def take(self, call: Call) -> None:
        """Add the node of a call, if it is a primitive."""
        name = getattr(call.operation, "__name__", "")
        if id(call.result) in self._values or any(call.result is x for x in call.arguments):
            self._check_parts(call, name)  # they gave it, or a cast of equal dtypes its input
            return
        takes: Mapping[str, Callable[..., None]] = {
            "elementwise": self._elementwise,
            "reduced": self._reduced,
            "full": self._full,
            "cast": self._cast,
            "reshape": self._reshape,
            "expand_clone": self._expand,
            "concat": self._concat,
            "transpose": self._transpose,
            "view": self._view,
            "__getitem__": self._item,
            "assemble": self._assemble,
            "move": self._move,
            "__setitem__": self._assign,
        }
        if name not in takes:
            raise PlanError(f"{name} {call.place}: no tile opcodes are known for it")
        if name not in _PLACED and not are_known((*call.arguments, *call.named.values())):
            raise PlanError(f"{name} {call.place}: a number known only when the kernel runs")
        takes[name](call, *call.arguments, **call.named)
        if name in ROWS:
            check_release(call, name)
            self._checked = len(self._nodes)

    def _check_parts(self, call: Call, name: str) -> None:
        """Take the one opcode of an operation that upstream does not compose of its parts here."""
        if name not in ROWS:
            return
        check_release(call, name)
        made = [node.opcode for node in self._nodes[self._checked :]]
        self._checked = len(self._nodes)
        is_known = {*made} <= {*ROWS[name].opcodes.values(), *_AROUND}
        if not is_known and not ROWS[name].is_composed:
            self._take_whole(call, name)

    def _take_whole(self, call: Call, name: str) -> None:
        """Replace the nodes of an operation's parts, the last ones, by one of its own opcode."""
        row = ROWS[name]
        arguments = (*call.arguments, *call.named.values())
        operands = [self._value(call, each) for each in arguments if isinstance(each, Tensor)]
        others = [each for each in arguments if not isinstance(each, Tensor)]
        kinds = "T" * len(operands)
        kinds += "S" * (kinds + "S" * len(others) in row.opcodes) * len(others)
        is_given = kinds == "T" and any(others)
        if kinds not in row.opcodes or is_given or len({*map(self._format, operands)}) > 1:
            raise PlanError(f"{name} {call.place}: upstream has other tile operations for it")
        needed, kept, opcode = {self._values[id(call.result)]}, [], row.opcodes[kinds]
        scalar, function = row.implied_scalar, ""
        for node in reversed(self._nodes):
            if needed.isdisjoint(node.outputs):
                kept.append(node)
                continue
            needed.update({*node.inputs} - {*operands})
            del self._lines[node.outputs[0]], self.wide[node.number]
            if node.opcode == opcode:
                scalar, function = node.attributes.scalar, node.attributes.function
        self._nodes = kept[::-1]
        rank = len(call.result.shape)
        inputs = [self._of_rank(call, each, rank) for each in operands]
        self._node(call, name, opcode, inputs, scalar=scalar, function=function)
        self._checked = len(self._nodes)

    def _format(self, tensor: int) -> Format:
        return self._tensors[tensor].format

    def left(self) -> dict[int, int]:
        """By slot, the tensor that the run leaves in it, or writes parts of."""
        found = {slot: tensor for slot, tensor in self._written.items() if isinstance(slot, int)}
        taken = {*self._parameters.values()}
        for slot in self._slots.read:
            tensor = self._values.get(id(self._slots.tensor(slot)))
            if tensor is not None and tensor not in taken:
                found[slot] = tensor
        return found

    def graph(self) -> TileGraph:
        """The recorded nodes, and those that upstream adds around them.

        A whole view of each argument that is read, in the order of the arguments' first use, and an
        assemble of each output and of each tensor that has a name when the kernel ends.
        """
        nodes = list(self._nodes)
        raw = _RAW_A_PARAMETER * self._count
        for node in nodes:
            alone = [] if node.opcode == "ASSEMBLE" else [node.outputs]
            for tensors in self._numbered.get(node.number, alone):
                for tensor in tensors:
                    self._number(tensor, raw)
                raw += 1
        for name, tensor in self._parameters.items():
            source = len(self._tensors)
            held = self._tensors[tensor]
            if isinstance(name, int):
                held = replace(held, memory=Memory.SLOT, slot=name, raw=raw)
            else:
                held = replace(held, memory=Memory.ARGUMENT, name=name, raw=raw)
            self._tensors.append(held)
            self._number(tensor, raw + 1)
            raw += 2
            nodes.append(whole_copy("VIEW", len(nodes), source, tensor, len(held.shape)))
        for slot, tensor in self._written.items():
            if isinstance(slot, int) and slot not in self._slots.read:
                held = self._tensors[tensor]
                self._tensors[tensor] = replace(held, memory=Memory.LOCAL, slot=None)
        slots = {tensor: slot for slot, tensor in self.left().items() if slot not in self._written}
        for tensor in sorted(self._named() | self._outputs.keys() | slots.keys()):
            name, left = self._outputs.get(tensor, ""), slots.get(tensor)
            target = len(self._tensors)
            held = replace(self._tensors[tensor], valid=(), name=name, raw=raw)
            if left is not None:
                if name:
                    raise PlanError(f"{name} is an output, and what is written to it is read on")
                held = replace(held, slot=left, valid=self._slots.extents(left, held.shape))
            memory = Memory.ARGUMENT if name else Memory.LOCAL if left is None else Memory.SLOT
            self._tensors.append(replace(held, memory=memory))
            self._number(tensor, raw + 1)
            raw += 2
            nodes.append(whole_copy("ASSEMBLE", len(nodes), tensor, target, len(held.shape)))
        called = range(len(self._nodes))
        copies = len(nodes) - len(self._nodes)
        return TileGraph(
            nodes=in_order(nodes, called),
            tensors=tuple(self._tensors),
            next_raw=raw + _RAW_A_COPY * copies,
        )

    def _number(self, tensor: int, raw: int) -> None:
        self._tensors[tensor] = replace(self._tensors[tensor], raw=raw)

    def _named(self) -> set[int]:
        """The values that a name stands for at the end."""
        read_at: dict[int, set[int]] = {}
        for node in self._nodes:
            for tensor in node.inputs:
                read_at.setdefault(tensor, set()).add(node.attributes.line)
        return named_at_end(self._assignments, self._lines, read_at)

    def _value(self, call: Call, tensor: Tensor) -> int:
        if id(tensor) in self._values:
            return self._values[id(tensor)]
        operation = call.operation.__name__
        buffer = tensor.writable()
        if buffer is not None and buffer.is_given:
            key: str | int = tensor.name
            valid = self._note(tensor)
        else:
            key = self._slots.number(tensor)
            valid = self._slots.extents(key, tuple(map(int, tensor.shape)))
            self._slots.read.setdefault(key, f"{operation} {call.place}")
        if key in self._written or key in self._outputs.values():
            name = tensor.name or "a tensor"
            raise PlanError(f"{operation} {call.place}: {name} is read after it was written to")
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
        is_whole = tuple(map(int, tensor.valid_shape)) == shape and not made.valid
        if not (is_whole or made.is_open):
            name = call.operation.__name__
            raise PlanError(f"{name} {call.place}: a tensor that holds data in part is not planned")
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
                attributes=Attributes(file=PurePath(call.file).name, line=call.line, **asked),
                tile_shape=tile_shape or tuple(call.settings.vec_tile_shapes),
            )
        )
        dtypes = self._lists.get(name, ())
        self.wide[number] = frozenset(each.number_format for each in dtypes)

    def _extents(self, call: Call, opcode: str, inputs: Sequence[int]) -> Scalars:
        """Those of a result; an argument that is no view is taken at the length that was given."""
        for name, tensor in self._parameters.items():
            if tensor in inputs and isinstance(name, str):
                self.whole.add(name)
                self._tensors[tensor] = replace(self._tensors[tensor], valid=())
        operands = [self._tensors[each] for each in inputs]
        shape = tuple(map(int, call.result.shape))
        return of_result(f"{opcode} {call.place}", opcode, operands, shape)

    def _between(self, held: TileTensor, shape: Sequence[int]) -> int:
        """A tensor of an operation's own, between its nodes."""
        self._tensors.append(TileTensor(format=held.format, shape=tuple(shape)))
        return len(self._tensors) - 1

    def _elementwise(self, call: Call, name: str, *operands: Any, dtype: object = None) -> None:
        row = ROWS[name]
        tensors = [each for each in operands if isinstance(each, Tensor)]
        numbers = [each for each in operands if isinstance(each, Constant)]
        kinds = "".join("T" if isinstance(each, Tensor) else "S" for each in operands)
        opcode = row.opcodes.get(kinds)
        if opcode is None or len(numbers) > 1:
            raise PlanError(f"{name} {call.place}: no tile opcode is known for these operands")
        scalar = row.implied_scalar
        for number in numbers:
            if not isinstance(number.value, (int, float)):
                raise PlanError(f"{name} {call.place}: a number read from data is not planned")
            scalar = float(number.value)
        rank = len(call.result.shape)
        inputs = [self._of_rank(call, self._value(call, each), rank) for each in tensors]
        function = name if "CMP" in opcode else ""
        self._node(call, name, opcode, inputs, scalar=scalar, function=function)

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
            raise PlanError(f"full {call.place}: a number read from data is not planned")
        self._add(call, "full", ROWS["full"].opcodes["S"], [], scalar=float(value))

    def _reshape(self, call: Call, input: Tensor, *_: object, **named: object) -> None:
        self._add(call, "reshape", ROWS["reshape"].opcodes["T"], [input])

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

    def _view(
        self,
        call: Call,
        input: Tensor,
        shape: object,
        offsets: Sequence[int],
        *,
        valid_shape: Sequence[int] | None = None,
    ) -> None:
        valid = None if valid_shape is None else tuple(map(scalar_of, valid_shape))
        self._part(call, input, tuple(map(scalar_of, offsets)), valid)

    def _item(self, call: Call, input: Tensor, key: Any) -> None:
        if not isinstance(call.result, Tensor):
            return  # a number, which is an expression where it is used
        box = indexing.box_of(key, tuple(map(int, input.shape)))
        if box.dropped:
            raise PlanError(f"part {call.place}: a part of fewer dimensions is not planned")
        for each in box.extent:
            if constant(scalar_of(each)) is None:
                raise PlanError(f"part {call.place}: its extent {text(scalar_of(each))} varies")
        self._part(call, input, tuple(map(scalar_of, box.first)), None)

    def _part(self, call: Call, input: Tensor, offset: Scalars, valid: Scalars | None) -> None:
        """Add a view at offsets that were given by numbers of any kind."""
        source = self._tensors[self._value(call, input)]
        if valid is None:
            valid = source.part(offset, tuple(map(int, call.result.shape)))
        self._add(call, "view", "VIEW", [input], valid, offset=offset)

    def _assign(self, call: Call, target: Tensor, key: Any, value: Tensor) -> None:
        if indexing.is_whole(key):
            self._move(call, target, value)
        else:
            box = indexing.box_of(key, tuple(map(int, target.shape)))
            self._assemble(call, target, value, box.first)

    def _assemble(self, call: Call, target: Tensor, value: Tensor, offsets: Sequence[int]) -> None:
        """Write a part of an output, or of a tensor that the kernel declared."""
        source = self._value(call, value)
        shape = tuple(map(int, target.shape))
        key = self._target(call, target)
        if id(target) in self._values:
            raise PlanError(f"assemble {call.place}: a part of what is written whole in one run")
        place, extents = tuple(map(scalar_of, offsets)), self._tensors[source].shape
        others = self._boxes.setdefault(key, [])
        for start, covered in others:
            known = tuple(x for x in map(distance, place, start) if x is not None)
            if len(known) == len(place) and overlap(known, extents, (0,) * len(known), covered):
                raise PlanError(
                    f"assemble {call.place}: writes what another part of {target.name} holds; "
                    "nothing orders the two"
                )
        others.append((place, extents))
        if key not in self._written:
            self._written[key] = len(self._tensors)
            held = replace(self._tensors[source], shape=shape, valid=(), memory=Memory.ARGUMENT)
            if isinstance(key, int):
                held = replace(
                    held, memory=Memory.SLOT, slot=key, valid=self._slots.extents(key, shape)
                )
            else:
                held = replace(held, name=key)
                self._note(target)
            self._tensors.append(held)
        if isinstance(key, int) and self._tensors[source].shape != shape:
            self._slots.partial.add(key)
            written = self._written[key]
            self._tensors[written] = replace(self._tensors[written], is_partial=True)
        self._nodes.append(
            Node(
                opcode="ASSEMBLE",
                number=len(self._nodes),
                inputs=(source,),
                outputs=(self._written[key],),
                attributes=Attributes(offset=place),
            )
        )

    def _target(self, call: Call, target: Tensor) -> str | int:
        """The name of an output that is written, or the number of a slot.

        Raises:
            PlanError: tasks of the same run read it: nothing orders them.
        """
        buffer = target.writable()
        is_given = buffer is not None and buffer.is_given
        key = target.name if is_given else self._slots.number(target)
        if key in self._parameters:
            name = target.name or "a tensor"
            raise PlanError(
                f"assignment {call.place}: {name} is read and written in one run of operations, "
                "which is not planned"
            )
        return key

    def _move(self, call: Call, target: Tensor, value: Tensor) -> None:
        source = self._value(call, value)
        buffer = target.writable()
        if source in self._parameters.values():
            raise PlanError(f"assignment {call.place}: a copy of an argument is not planned")
        if buffer is not None and buffer.is_given:
            if target.shape != value.shape:
                raise PlanError(f"assignment {call.place}: only whole outputs are planned")
            key = self._target(call, target)
            if key in self._written:
                raise PlanError(f"assignment {call.place}: {target.name} has parts written before")
            if self._outputs.get(source, key) != key:
                raise PlanError(
                    f"assignment {call.place}: the value is {self._outputs[source]} already; one "
                    "in two outputs is not planned"
                )
            self._note(target)
            self.whole.add(target.name)
            self._outputs = {k: name for k, name in self._outputs.items() if name != target.name}
            self._outputs[source] = target.name
        elif self._slots.number(target) in self._written:
            raise PlanError(f"assignment {call.place}: what was written in parts is written whole")
        self._kept[id(target)] = target
        self._values[id(target)] = source
