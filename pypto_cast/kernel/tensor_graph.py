"""The graph of a kernel over whole tensors, as upstream's compiler takes it, with AutoCast's casts.

The operations of a recording are turned into tile opcodes by the column `opcodes` of their rows; an
operation that is composed of others is recorded as those, step by step. Paths below are those of
upstream pypto at tag r0.2.0, framework/src.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

from ascend_kernels.schedule.planner.tile_graph import (
    Attributes,
    Memory,
    Node,
    PlanError,
    TileGraph,
    TileTensor,
    in_order,
)
from pypto_cast.dtypes.data_types import CastMode, SaturationMode
from pypto_cast.kernel.auto_cast import auto_cast
from pypto_cast.kernel.kernel_source import parsed
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.operations.scalar_operands import Constant, is_element
from pypto_cast.options.releases import RELEASES, ReleaseName
from pypto_cast.recording.steps import Call
from pypto_cast.tensors import indexing
from pypto_cast.tensors.tensor import Tensor
from simulator.numbers.formats import Format
from tiling.grid import Shape

_RAW_A_PARAMETER: Final = 4
"""The raw tensors that upstream makes for a parameter before the first operation."""
_RAW_A_COPY: Final = 6
"""Those that it makes for a view of an argument, or an assemble, when a function is closed."""
_AROUND: Final = ("RESHAPE", "VIEW", "ASSEMBLE")
"""Opcodes that may stand before the one of an operation."""


def tensor_graphs(
    function: Callable[..., object],
    calls: Sequence[Call],
    release: ReleaseName,
    *,
    parameters: int,
) -> tuple[TileGraph, ...]:
    """The graphs of a kernel from its recorded calls: one of each run that is compiled by itself.

    That is an iteration of a loop, and what stands before, between and after loops.

    Args:
        function: the kernel's, whose source names the tensors that it keeps.
        calls: of a recording that keeps parts.
        release: of upstream's, for AutoCast's lists.
        parameters: how many tensors the kernel takes.

    Raises:
        PlanError: an operation that is not covered, or one that reads a result of another run;
            names it with its line.
    """
    assignments = _assignments(function)
    runs = [list(run) for _, run in itertools.groupby(calls, key=lambda call: id(call.segment))]
    graphs = []
    for run in runs:
        reader = _Reader(assignments, release, parameters)
        for call, following in zip(run, [*run[1:], None], strict=True):
            if not _is_inside(call, following):
                reader.take(call)
        graphs.append(auto_cast(reader.graph(), reader.wide))
    return tuple(each for each in graphs if each.nodes)


def _is_inside(call: Call, following: Call | None) -> bool:
    """True for the assemble that an assignment to a whole tensor carries out."""
    return (
        call.operation.__name__ == "assemble"
        and following is not None
        and following.operation.__name__ in ("__setitem__", "move")
        and following.arguments[0] is call.arguments[0]
        and following.arguments[-1] is call.arguments[1]
    )


class _Reader:
    """The nodes and tensors of a recording so far."""

    def __init__(
        self,
        assignments: Sequence[tuple[str, range]],
        release: ReleaseName,
        parameters: int,
    ) -> None:
        self._assignments = assignments
        self._count = parameters
        self._lists = RELEASES[release].run_in_fp32
        self.wide: dict[int, frozenset[Format]] = {}
        self._nodes: list[Node] = []
        self._tensors: list[TileTensor] = []
        self._values: dict[int, int] = {}
        self._held: list[Tensor] = []  # an id is a tensor's own as long as the tensor lives
        self._parameters: dict[str, int] = {}
        self._outputs: dict[int, str] = {}
        self._written: dict[str, int] = {}
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
        takes[name](call, *call.arguments, **call.named)
        if name in ROWS:
            self._checked = len(self._nodes)

    def _check_parts(self, call: Call, name: str) -> None:
        """Take the one opcode of an operation that upstream does not compose of its parts here."""
        if name not in ROWS:
            return
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
        result = self._new(call, call.result)
        self._node(call, name, opcode, inputs, result, scalar=scalar, function=function)
        self._checked = len(self._nodes)

    def _format(self, tensor: int) -> Format:
        return self._tensors[tensor].format

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
            self._tensors.append(replace(held, memory=Memory.ARGUMENT, name=name, raw=raw))
            self._number(tensor, raw + 1)
            raw += 2
            nodes.append(self._copy("VIEW", len(nodes), source, tensor))
        for tensor in sorted(self._named() | self._outputs.keys()):
            name = self._outputs.get(tensor, "")
            memory = Memory.ARGUMENT if name else Memory.LOCAL
            target = len(self._tensors)
            held = self._tensors[tensor]
            self._tensors.append(replace(held, memory=memory, name=name, raw=raw))
            self._number(tensor, raw + 1)
            raw += 2
            nodes.append(self._copy("ASSEMBLE", len(nodes), tensor, target))
        called = range(len(self._nodes))
        copies = len(nodes) - len(self._nodes)
        return TileGraph(
            nodes=in_order(nodes, called),
            tensors=tuple(self._tensors),
            next_raw=raw + _RAW_A_COPY * copies,
        )

    def _number(self, tensor: int, raw: int) -> None:
        self._tensors[tensor] = replace(self._tensors[tensor], raw=raw)

    def _copy(self, opcode: str, number: int, source: int, target: int) -> Node:
        offset = (0,) * len(self._tensors[source].shape)
        return Node(
            opcode=opcode,
            number=number,
            inputs=(source,),
            outputs=(target,),
            attributes=Attributes(offset=offset),
        )

    def _named(self) -> set[int]:
        """The values that a name stands for at the end."""
        read_at: dict[int, set[int]] = {}
        for node in self._nodes:
            for tensor in node.inputs:
                read_at.setdefault(tensor, set()).add(node.attributes.line)
        names = {}
        for name, lines in self._assignments:
            for tensor, line in self._lines.items():
                if line in lines and not read_at.get(tensor, set()) & set(lines):
                    names[name] = tensor
        return set(names.values())

    def _value(self, call: Call, tensor: Tensor) -> int:
        if id(tensor) not in self._values:
            buffer = tensor.writable()
            if buffer is None or not buffer.is_given or tensor.name in self._written:
                name = call.operation.__name__
                raise PlanError(
                    f"{name} {call.place}: reads what is neither an argument nor a result of the "
                    "same iteration"
                )
            if tensor.name in self._outputs.values():
                raise PlanError(f"{call.place}: {tensor.name} is read after it was written to")
            self._parameters[tensor.name] = self._new(call, tensor)
        return self._values[id(tensor)]

    def _new(self, call: Call, tensor: Tensor) -> int:
        shape = tuple(map(int, tensor.shape))
        if tuple(map(int, tensor.valid_shape)) != shape:
            name = call.operation.__name__
            raise PlanError(f"{name} {call.place}: a tensor that holds data in part is not planned")
        self._tensors.append(TileTensor(format=tensor.dtype.number_format, shape=shape))
        self._held.append(tensor)
        self._values[id(tensor)] = len(self._tensors) - 1
        return len(self._tensors) - 1

    def _add(
        self, call: Call, name: str, opcode: str, operands: Iterable[Tensor], **asked: Any
    ) -> None:
        inputs = [self._value(call, each) for each in operands]
        self._node(call, name, opcode, inputs, self._new(call, call.result), **asked)

    def _node(
        self,
        call: Call,
        name: str,
        opcode: str,
        inputs: Iterable[int],
        result: int,
        *,
        tile_shape: Shape = (),
        **asked: Any,
    ) -> None:
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
        self._node(
            call,
            name,
            opcode,
            inputs,
            self._new(call, call.result),
            scalar=scalar,
            function=name if "CMP" in opcode else "",
        )

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
            shape = _exchanged(held.shape, swapped)
            result = self._new(call, call.result) if is_last else self._between(held, shape)
            self._node(
                call, "transpose", opcode, [operand], result, tile_shape=tile, axes=tuple(swapped)
            )
            operand, tile = result, _exchanged(tile, swapped)

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
        valid_shape: Sequence[object] | None = None,
    ) -> None:
        if not all(isinstance(extent, int) for extent in valid_shape or ()):
            raise PlanError(
                f"view {call.place}: a valid shape known only when it runs is not planned"
            )
        self._part(call, input, offsets, offsets)

    def _item(self, call: Call, input: Tensor, key: Any) -> None:
        if not isinstance(call.result, Tensor):
            raise PlanError(f"element {call.place}: a number read from data is not planned")
        box = indexing.box_of(key, tuple(map(int, input.shape)))
        if box.dropped:
            raise PlanError(f"part {call.place}: a part of fewer dimensions is not planned")
        ends = [x for each in _listed(key) for x in (each.start, each.stop) if x is not None]
        self._part(call, input, box.start.offset, ends)

    def _part(
        self, call: Call, input: Tensor, offsets: Sequence[int], given: Iterable[object]
    ) -> None:
        """Add a view at offsets that were given by numbers of any kind."""
        self._add(call, "view", "VIEW", [input], offset=tuple(map(int, offsets)))
        is_open = not all(isinstance(each, int) for each in given)
        made = self._nodes[-1].outputs[0]
        self._tensors[made] = replace(self._tensors[made], is_open=is_open)

    def _assign(self, call: Call, target: Tensor, key: Any, value: Tensor) -> None:
        if indexing.is_whole(key):
            self._move(call, target, value)
        else:
            start = indexing.box_of(key, tuple(map(int, target.shape))).start
            self._assemble(call, target, value, start.offset)

    def _assemble(self, call: Call, target: Tensor, value: Tensor, offsets: Sequence[int]) -> None:
        """Write a part of an argument, of which nothing is read afterwards."""
        buffer = target.writable()
        if buffer is None or not buffer.is_given or id(target) in self._values:
            raise PlanError(f"assemble {call.place}: only parts of outputs are planned")
        source = self._value(call, value)
        self._check_target(call, target)
        if target.name not in self._written:
            self._written[target.name] = len(self._tensors)
            self._tensors.append(
                replace(
                    self._tensors[source],
                    shape=tuple(map(int, target.shape)),
                    memory=Memory.ARGUMENT,
                    name=target.name,
                )
            )
        self._nodes.append(
            Node(
                opcode="ASSEMBLE",
                number=len(self._nodes),
                inputs=(source,),
                outputs=(self._written[target.name],),
                attributes=Attributes(offset=tuple(map(int, offsets))),
            )
        )

    def _check_target(self, call: Call, target: Tensor) -> None:
        """Refuse to write a tensor that tasks of the same run read: nothing orders them."""
        if target.name in self._parameters:
            raise PlanError(
                f"assignment {call.place}: {target.name} is read and written in one run of "
                "operations, which is not planned"
            )

    def _move(self, call: Call, target: Tensor, value: Tensor) -> None:
        buffer = target.writable()
        if buffer is None or not buffer.is_given or target.shape != value.shape:
            raise PlanError(f"assignment {call.place}: only whole outputs are planned")
        source = self._value(call, value)
        self._check_target(call, target)
        if source in self._parameters.values():
            raise PlanError(f"assignment {call.place}: a copy of an argument is not planned")
        self._outputs = {k: name for k, name in self._outputs.items() if name != target.name}
        self._outputs[source] = target.name
        self._held.append(target)
        self._values[id(target)] = source


def _exchanged(shape: Shape, axes: Sequence[int]) -> Shape:
    entries = list(shape)
    entries[axes[0]], entries[axes[1]] = shape[axes[1]], shape[axes[0]]
    return tuple(entries)


def _listed(key: Any) -> list[slice]:
    keys = key if isinstance(key, tuple) else (key,)
    return [each for each in keys if isinstance(each, slice)]


def _assignments(function: Callable[..., object]) -> list[tuple[str, range]]:
    """The names that a function assigns to, with the lines of each assignment."""
    _, first, tree = parsed(function)
    return [
        (target.id, range(node.lineno + first - 1, (node.end_lineno or node.lineno) + first))
        for node in sorted(_statements(tree), key=lambda each: each.lineno)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def _statements(tree: ast.AST) -> Iterator[ast.Assign]:
    return (each for each in ast.walk(tree) if isinstance(each, ast.Assign))
