"""The graph of a kernel over whole tensors, as upstream's compiler takes it, with AutoCast's casts.

The operations of a recording are turned into tile opcodes by the column `opcodes` of their rows; an
operation that is composed of others is recorded as those, step by step. Paths below are those of
upstream pypto at tag r0.2.0, framework/src.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ascend_kernels.schedule.parts import Scalars
from ascend_kernels.schedule.planner.kernel_plan import PASS_FAMILIES
from ascend_kernels.schedule.planner.tiles.tile_cutting import NO_INSTRUCTION
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Attributes,
    KernelGraphs,
    Memory,
    Node,
    PlanError,
    TileGraph,
    in_order,
    whole_copy,
)
from ascend_kernels.schedule.planner.tiles.tile_regions import overlap
from ascend_kernels.schedule.scalars import distance
from pypto_cast.dtypes.data_types import CastMode
from pypto_cast.kernel.graph.auto_cast import auto_cast, check_release
from pypto_cast.kernel.graph.indexed_nodes import IndexedNodes
from pypto_cast.kernel.graph.loop_runs import CalledRun, Slots, runs_of
from pypto_cast.kernel.kernel_source import named_at_end, names_assigned
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.options.hints import GROUPS
from pypto_cast.options.releases import ReleaseName
from pypto_cast.recording.steps import Call
from pypto_cast.tensors import indexing
from pypto_cast.tensors.symbolic import are_known, scalar_of
from pypto_cast.tensors.tensor import Tensor
from simulator.machine.tile_functions import CHAINS
from simulator.machine.tile_opcodes import NO_ROW, TILE_OPCODES, TileWork
from simulator.numbers.formats import FP32, FloatFormat

_RAW_A_PARAMETER: Final = 4
"""The raw tensors that upstream makes for a parameter before the first operation."""
_RAW_A_COPY: Final = 6
"""Those that it makes for a view of an argument, or an assemble, when a function is closed."""
_PLACED: Final = ("view", "__getitem__", "assemble", "__setitem__")
"""Operations at places that may be known only when the kernel runs."""
_PASSES: Final = "pass_options"
_UNROLLED: Final = re.compile(r"_Unroll(?!1_)")
_BY_ROWS: Final = ("quantize", "dequantize")
"""Operations whose parts here are one tile operation of upstream's, with a number for each row."""
_PADDED_DIMS: Final = 5
"""The axes that upstream's tile operations count, those that a tensor lacks before its own."""
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
        reader = _Reader(assignments, release, parameters, slots, run.place)
        operations = list(run.operations)
        _check_family(operations)
        for number, call in enumerate(operations):
            if _is_given_back(operations[number : number + 2]):
                continue
            try:
                reader.take(call)
            except PlanError:
                _refuse_around(call, operations[number + 1 :])
                raise
        slots.give(reader.extents(), run.place)
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
        simplified=(
            *_not_followed(recorded.runs).values(),
            *(each for reader in readers for each in reader.simplified),
        ),
    )


def _check_family(calls: Iterable[Call]) -> None:
    """Refuse operations that the chips lack whose compiler's passes are followed.

    Raises:
        PlanError: names the first.
    """
    for call in calls:
        name = getattr(call.operation, "__name__", "")
        families = ROWS[name].dtypes if name in ROWS else ()
        if families and not any(family in families for family in PASS_FAMILIES):
            followed = " and ".join(PASS_FAMILIES)
            raise PlanError(
                f"{name} {call.place}: upstream has it on {' and '.join(families)} alone; the "
                f"passes of {followed}, which are followed, have no tile operations of it"
            )


def _is_given_back(calls: Sequence[Call]) -> bool:
    """True of the assignment by which an operation writes to an argument, as it has one of its own.

    It comes before the operation.
    """
    names = [getattr(each.operation, "__name__", "") for each in calls]
    return names == ["move", "index_put_"] and calls[0].arguments[0] is calls[1].arguments[0]


def _refuse_around(call: Call, later: Iterable[Call]) -> None:
    """Refuse the operation without tile operations that an assignment is a part of.

    Raises:
        PlanError: names it.
    """
    for each in later:
        name = getattr(each.operation, "__name__", "")
        is_part = any(x is y for x in call.arguments[:1] for y in each.arguments)
        if is_part and each.place == call.place and name in ROWS and not _is_tiled(name):
            raise _unplanned(each, name) from None


def _is_tiled(name: str) -> bool:
    """An operation has tile opcodes here, so that it is not the reason for a refusal."""
    opcodes = {*ROWS[name].opcodes.values()}
    return bool(opcodes) and opcodes <= TILE_OPCODES.keys() | NO_INSTRUCTION.keys()


def _unplanned(call: Call, name: str) -> PlanError:
    """The error of an operation without tile operations here, with the reason if it is known."""
    opcodes = ROWS[name].opcodes.values() if name in ROWS else ()
    reasons = (f"{x} is not planned: it needs {NO_ROW[x]}" for x in opcodes if x in NO_ROW)
    return PlanError(f"{name} {call.place}: {next(reasons, 'no tile opcodes are known for it')}")


def _not_followed(runs: Sequence[CalledRun]) -> dict[str, str]:
    """The settings that upstream's passes follow and the planner does not, by name.

    Of hints those of its passes; and upstream keeps a tile shape that an unrolled body sets for
    the next copy of the body.
    """
    found: dict[str, str] = {}
    for run in runs:
        for call in run.calls:
            for name, value in call.settings.hints.get(_PASSES, {}).items():
                if value != GROUPS[_PASSES].hints[name].default and not name.startswith("cube_"):
                    found.setdefault(name, f"{name}={value!r} {call.place} is not followed")
            tile, first = (x.settings.vec_tile_shapes for x in (call, run.calls[0]))
            if tile != first and _UNROLLED.search(run.name):
                text = f"tile shape {list(tile)} {call.place}: in the next copy of the body, too"
                found.setdefault(text, text)
    return found


class _Reader(IndexedNodes):
    """The graph of one run of operations, as its calls come."""

    def take(self, call: Call) -> None:
        """Add the node of a call, if it is a primitive."""
        name = getattr(call.operation, "__name__", "")
        self._tile = tuple(call.settings.vec_tile_shapes)
        if id(call.result) in self._values or any(call.result is x for x in call.arguments):
            self._check_parts(call, name)  # they gave it, or a cast of equal dtypes its input
            return
        takes: Mapping[str, Callable[..., None]] = {
            "elementwise": self._elementwise,
            "reduced": self._reduced,
            "full": self._full,
            "cast": self._cast,
            "reshape": self._reshape,
            "clone": self._clone,
            "gathermask": self._pattern,
            "one_hot": self._one_hot,
            "arange": self._range,
            "triangular": self._triangle,
            "expand_clone": self._expand,
            "concat": self._concat,
            "transpose": self._transpose,
            "permute": self._permute,
            "pack": self._pack,
            "unpack": self._unpack,
            "cumsum": self._accumulate,
            "cumprod": self._accumulate,
            "gather": self._gather,
            "index_select": self._select,
            "gather_in_ub": self._paged_rows,
            "scatter_update": self._update,
            "index_put_": self._put,
            "scatter": self._scatter,
            "index_added": self._added,
            "extreme": self._extreme,
            "sort32": self._sort32,
            "topk": self._topk,
            "argsort": self._argsort,
            "pad": self._pad,
            "fillpad": self._pad,
            "view": self._view,
            "__getitem__": self._item,
            "assemble": self._assemble,
            "move": self._move,
            "__setitem__": self._assign,
        }
        if name == "__call__":
            name = getattr(call.arguments[0], "__name__", name)
            raise PlanError(f"{name} {call.place}: a kernel inside another is not planned")
        if name not in takes:
            raise _unplanned(call, name)
        if name not in _PLACED and not are_known((*call.arguments, *call.named.values())):
            raise PlanError(f"{call.name} {call.place}: a number known only when the kernel runs")
        takes[name](call, *call.arguments, **call.named)
        if name in ROWS:
            check_release(call, name)
            self._checked = len(self._nodes)

    def _check_parts(self, call: Call, name: str) -> None:
        """Take the one opcode of an operation that upstream does not compose of its parts here."""
        if name not in ROWS:
            return
        check_release(call, name)
        arguments = (*call.arguments, *call.named.values())
        operands = [self._value(call, each) for each in arguments if isinstance(each, Tensor)]
        if name in _BY_ROWS:
            self._drop_parts(call, operands)
            self._scale_rows(call, name, operands)
            self._checked = len(self._nodes)
            return
        made = {each.opcode for each in self._parts(call, operands, self._checked)}
        row, others = ROWS[name], [each for each in arguments if not isinstance(each, Tensor)]
        composed = row.composed_by
        if any(isinstance(each, (int, float)) for each in others):
            composed += row.composed_with_numbers
        is_known = made <= {*row.opcodes.values(), *_AROUND}
        if not is_known and call.settings.release not in composed:
            self._take_whole(call, name, operands, others)
        self._checked = len(self._nodes)

    def _parts(self, call: Call, operands: Sequence[int], first: int) -> Iterator[Node]:
        """The nodes from a place on that lead from an operation's operands to its result."""
        needed = {self._value(call, call.result)} - {*operands}
        for node in reversed(self._nodes[first:]):
            if not needed.isdisjoint(node.outputs):
                needed |= {*node.inputs} - {*operands}
                yield node

    def _drop_parts(self, call: Call, operands: Sequence[int]) -> list[Node]:
        """Take back the nodes that lead from an operation's operands to its result."""
        parts = [*self._parts(call, operands, 0)]
        first = min((self._nodes.index(each) for each in parts), default=len(self._nodes))
        for node in self._nodes[first:]:  # those of which nothing is in the result, too
            del self._lines[node.outputs[0]], self.wide[node.number]
            self._numbered.pop(node.number, None)
        del self._nodes[first:]
        return parts

    def _take_whole(self, call: Call, name: str, operands: list[int], others: list[Any]) -> None:
        """Replace the nodes of an operation's parts by one of its own opcode."""
        row = ROWS[name]
        kinds = "T" * len(operands)
        numbers = [each for each in others if each is not None]
        kinds += "S" * (kinds + "S" * len(numbers) in row.opcodes) * len(numbers)
        if kinds.endswith("S") and not isinstance(call.arguments[0], Tensor):
            raise PlanError(f"{name} {call.place}: a number before its tensor is not planned")
        is_given = "S" not in kinds and any(others)
        if row.scalar_of is not None and any(others):
            is_given = self._format(operands[0]) is not FP32
        if kinds not in row.opcodes or is_given or len({*map(self._format, operands)}) > 1:
            raise PlanError(
                f"{name} {call.place}: with these operands upstream has tile operations for it "
                "that are not planned"
            )
        opcode, scalar, function = row.opcodes[kinds], row.implied_scalar, ""
        for node in self._drop_parts(call, operands):
            if node.opcode == opcode:
                scalar, function = node.attributes.scalar, node.attributes.function
        if kinds.endswith("S"):
            (number,) = numbers
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                raise PlanError(f"{name} {call.place}: {number!r} as an operand is not planned")
            scalar = float(number) if row.scalar_of is None else row.scalar_of(number)
        rank, axis = len(call.result.shape), -1
        runs = TILE_OPCODES.get(opcode)
        if runs is not None and runs.work is TileWork.WEIGH:
            inputs, axis = operands, _PADDED_DIMS - rank + 1
        else:
            inputs = [self._of_rank(call, each, rank) for each in operands]
        inside = {each.number_format for each in self._casts.get(name, ())}
        fmt = self._format(inputs[0])
        if runs is not None and runs.function in CHAINS:
            inside = set()  # they convert inside of the tile
        given = call.result.dtype.number_format
        if fmt not in inside or given not in (fmt, FP32):
            self._node(call, name, opcode, inputs, scalar=scalar, function=function, axis=axis)
            return
        asked: dict[str, Any] = {"mode": CastMode.CAST_NONE.round_mode, "saturate": False}
        wide = []
        for each in inputs:
            wide.append(self._between(self._tensors[each], self._tensors[each].shape, FP32))
            self._node(call, "cast", "CAST", [each], wide[-1], **asked)
        result = None
        if given is not FP32:
            result = self._between(self._tensors[inputs[0]], call.result.shape, FP32)
        self._node(call, name, opcode, wide, result, scalar=scalar, function=function)
        if result is not None:
            if not isinstance(given, FloatFormat):
                asked["mode"] = CastMode.CAST_TRUNC.round_mode
            self._node(call, "cast", "CAST", [result], **asked)

    def extents(self) -> dict[int, Scalars]:
        """By the id of each tensor that the run gives a value, the extents that hold data."""
        taken = {*self._parameters.values()}
        return {k: self._tensors[x].valid for k, x in self._values.items() if x not in taken}

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
        self._check_put()
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
            view = whole_copy("VIEW", len(nodes), source, tensor, len(held.shape))
            nodes.append(replace(view, tile_shape=self._tile))
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
                    writer = next(each for each in reversed(self._nodes) if tensor in each.outputs)
                    raise PlanError(
                        f"{writer.place}: its result is the output {name} and a tensor that "
                        "another run of operations reads, which is not planned"
                    )
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
            first_raw=raw + _RAW_A_COPY * copies,
        )

    def _check_put(self) -> None:
        """Refuse a tensor at whose places something is written if another is meant, or reads it."""
        for node in self._nodes:
            for tensor in node.outputs:
                name = self.put.get(tensor)
                if name is not None and self._outputs.get(tensor) != name:
                    raise PlanError(
                        f"{node.place} is not planned: its result is not assigned to {name}, in "
                        "which upstream writes it"
                    )
            for tensor in node.inputs:
                if tensor in self.put:
                    raise PlanError(f"{node.place}: reads {self.put[tensor]} after it is written")

    def _number(self, tensor: int, raw: int) -> None:
        self._tensors[tensor] = replace(self._tensors[tensor], raw=raw)

    def _named(self) -> set[int]:
        """The values that a name stands for at the end."""
        read_at: dict[int, set[int]] = {}
        for node in self._nodes:
            for tensor in node.inputs:
                read_at.setdefault(tensor, set()).add(node.attributes.line)
        return named_at_end(self._assignments, self._lines, read_at)

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
        self._part(call, input, tuple(map(scalar_of, box.first)), None)

    def _part(self, call: Call, input: Tensor, offset: Scalars, valid: Scalars | None) -> None:
        """Add a view at offsets that were given by numbers of any kind."""
        number = self._value(call, input)
        source = self._tensors[number]
        if number in self._parameters.values():
            source = replace(source, valid=self._slots.viewed(input, self._place) or source.valid)
        elif source.valid and valid is None:
            self.simplified.append(
                f"view {call.place}: kept as a tile operation, as its extents vary"
            )
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
        source = self._whole_value(call, value, target)
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

    def _whole_value(self, call: Call, value: Tensor, target: Tensor) -> int:
        """The tensor of a value that is written.

        Raises:
            PlanError: it holds data in a part that is known: the rest would stay unwritten.
        """
        source = self._value(call, value)
        if (held := self._tensors[source].valid) and all(isinstance(x, int) for x in held):
            raise PlanError(
                f"assignment {call.place}: of what {target.name or 'a tensor'} is given only "
                f"{list(held)} hold data; pypto.fillpad fills the rest"
            )
        return source

    def _target(self, call: Call, target: Tensor, value: int | None = None) -> str | int:
        """The name of an output that is written, or the number of a slot.

        Raises:
            PlanError: tasks of the same run read it: nothing orders them.
        """
        buffer = target.writable()
        is_given = buffer is not None and buffer.is_given
        key = target.name if is_given else self._slots.number(target)
        if key in self._parameters and (value is None or self.put.get(value) != key):
            name = target.name or "a tensor"
            raise PlanError(
                f"assignment {call.place}: {name} is read and written in one run of operations, "
                "which is not planned"
            )
        return key

    def _move(self, call: Call, target: Tensor, value: Tensor) -> None:
        source = self._whole_value(call, value, target)
        buffer = target.writable()
        if source in self._parameters.values():
            raise PlanError(f"assignment {call.place}: a copy of an argument is not planned")
        if buffer is not None and buffer.is_given:
            if tuple(map(int, target.shape)) != tuple(map(int, value.shape)):
                raise PlanError(f"assignment {call.place}: only whole outputs are planned")
            key = self._target(call, target, source)
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
