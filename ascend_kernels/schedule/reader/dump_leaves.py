"""The leaves of a dump: tile operations with their operands, buffers and flags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ascend_kernels.schedule.parts import (
    COPIES,
    INWARD,
    PUTTERS,
    SYNCS,
    TAKERS,
    Buffer,
    Flag,
    Leaf,
    TileOperand,
    TileOperation,
    lives,
)
from ascend_kernels.schedule.planner.tiles.column_blocks import BLOCKS_OF_COLUMN
from ascend_kernels.schedule.planner.tiles.tile_graph import Node, exchanged, in_order, restored
from ascend_kernels.schedule.reader.control_flow import scalars_of
from ascend_kernels.schedule.scalars import Scalar
from simulator.arithmetic.indexed.by_place import TRIANGLES
from simulator.arithmetic.indexed.gather_scatter import is_factor
from simulator.machine.tile_opcodes import TILE_OPCODES, TileWork
from simulator.machine.tile_steps import ASCENDING, NUMBERS, ROUNDED
from simulator.numbers.formats import BF16, INT32, Format
from simulator.numbers.rounding import RoundMode

Formats = Mapping[int, Format]
_UB, _GM = 0, 15
_PIPES: Final = {0: "S", 1: "V", 2: "M", 3: "MTE1", 4: "MTE2", 5: "MTE3", 10: "FIX"}
"""By number (r0.2.0, framework/src/interface/utils/common.h:203); the cube has M, MTE1 and FIX."""
_MODES: Final = (None, *RoundMode)
"""By the number in `op_attr_mode`, which is upstream's of the mode."""
_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
_AXES: Final = ("op_attr_AXIS", "op_attr_EXPANDDIM", "op_attr_axis")
_MARKS: Final = ("PHASE1", "PHASE2")


@dataclass(slots=True)
class LeafText:
    """A leaf, and the data its callers need: the expressions of its copies, the entries of their
    argument lists that give a valid shape besides, and the tensors in GM that it reshapes, two by
    two, by their place among a call's operands; the places of numbers in their argument lists; and
    the tensors in GM that operations read there, by their place among a call's operands, and how
    many operands and results such a call has.
    """

    leaf: Leaf
    copies: list[tuple[int | None, Sequence[Any], Sequence[Any]]] = field(default_factory=list)
    shapes: list[int] = field(default_factory=list)
    reshaped: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    entries: int = 0


class LeafReader:
    """The operations of a leaf with their operands."""

    def __init__(
        self,
        function: Mapping[str, Any],
        shapes: Mapping[str, str],
        numbers: Mapping[str, float],
        of_task: Mapping[str, int],
        entries: Mapping[int, int],
        formats: Formats,
        ub_bytes: int,
    ) -> None:
        self._function = function
        self._shapes = shapes
        self._numbers = numbers
        self._of_task = of_task
        self._given: list[int] = []
        self._entries = entries
        self._asked: list[int] = []
        self._reshaped: list[int] = []
        self._taken: list[int] = []
        ends = (*function["incasts"], *function["outcasts"])
        self._ends: dict[int, int] = {
            magic: place for place, (magic, _) in reversed(list(enumerate(ends)))
        }
        self._formats = formats
        self._ub_bytes = ub_bytes
        self._raw = {each["rawmagic"]: each for each in function["rawtensors"]}
        self._tensors = {each["magic"]: each for each in function["tensors"]}
        self._buffers: dict[int, int] = {}
        self._ranges: list[tuple[str, int, int]] = []
        self._copies: list[tuple[int | None, Sequence[Any], Sequence[Any]]] = []
        self._symbols: dict[str, Scalar] = {}
        self._axes = {
            f"sym_{magic}_dim_{axis}"
            for magic, each in self._tensors.items()
            for axis in range(len(each["dynvalidshape"]))
        }

    def read(self) -> LeafText:
        operations = self._function["operations"]
        kinds = {each["mem_type"]["asis"] for each in self._tensors.values()}
        core = "HUB" if kinds <= {_GM} else "AIV" if kinds <= {_UB, _GM} else "AIC"
        self._record_valid_shapes()
        for each in operations:
            _check_place(each, core)
        made = tuple(self._operation(each) for each in operations if not self._is_mark(each))
        spans = lives(made)
        buffers = tuple(
            Buffer(
                name=name,
                address=start,
                size_bytes=stop - start,
                first=spans[place][0],
                last=spans[place][1],
            )
            for place, (name, start, stop) in enumerate(self._ranges)
        )
        name = str(self._function["func_magicname"])
        leaf = Leaf(name=name, core=core, operations=made, buffers=buffers)
        return LeafText(
            leaf=leaf,
            copies=self._copies,
            shapes=self._asked,
            reshaped=self._reshaped,
            numbers=self._given,
            taken=self._taken,
            entries=len(self._function["incasts"])
            + len(self._function["outcasts"])
            + len(self._entries),
        )

    def _is_mark(self, given: Mapping[str, Any]) -> bool:
        """True where nothing runs: for a mark, and a view of GM, whose reader says the place."""
        magics = (*given["ioperands"], *given["ooperands"])
        return given["opcode"] in _MARKS or (
            given["opcode"] == "VIEW"
            and all(self._tensors[each]["mem_type"]["asis"] == _GM for each in magics)
        )

    def _record_valid_shapes(self) -> None:
        """Record the symbols of valid shapes: a copy or an operation gives each."""
        operations = self._function["operations"]
        count = self._count
        access = 0
        for operation in operations:
            written = self._shapes.get(str(operation["opmagic"]))
            shape: Sequence[Scalar] = () if written is None else scalars_of(written)
            if operation["opcode"] in COPIES:
                dims = range(len(self._tensors[operation["ooperands"][0]]["shape"]))
                is_inward = operation["opcode"] in INWARD
                axes = exchanged(dims, _turned_axes(operation) if is_inward else ())
                shape = [("valid", access, axis) for axis in axes]
                access += 1
                if operation["opcode"] == "COPY_IN":
                    self._record_reload(operation["ooperands"][0], shape)
            elif not all(isinstance(extent, int) for extent in shape):
                entry = self._entries.get(operation["ooperands"][0])
                if entry is not None:
                    # The text is that of the first caller.
                    shape = [
                        ("valid", count + len(self._asked), axis) for axis in range(len(shape))
                    ]
                    self._asked.append(entry)
            for axis, extent in enumerate(shape):
                self._symbols[f"sym_{operation['ooperands'][0]}_dim_{axis}"] = extent

    @property
    def _count(self) -> int:
        """The accesses of the copies, and of the operations at places by data, come first."""
        opcodes = [str(each["opcode"]) for each in self._function["operations"]]
        read = (len(x["ioperands"]) for x in self._function["operations"] if x["opcode"] in TAKERS)
        return sum(each in COPIES or each in PUTTERS for each in opcodes) + sum(read)

    def _record_reload(self, magic: int, shape: Sequence[Scalar]) -> None:
        """Record the symbols that a reload keeps of a copy that is no longer in the leaf.

        Of an argument that is spilled before its first use, only the reloads are left: tensors
        made later than the one whose symbols they have. The first of them gives the extents.
        """
        given = self._tensors[magic]["dynvalidshape"]
        for axis, (each, extent) in enumerate(zip(given, shape, strict=False)):
            match each:
                case [1, str(symbol)] if symbol not in self._axes:
                    earlier = re.fullmatch(rf"sym_(\d+)_dim_{axis}", symbol)
                    if earlier and int(earlier[1]) < magic:
                        self._symbols.setdefault(symbol, extent)

    def _operation(self, given: Mapping[str, Any]) -> TileOperation:
        opcode = str(given["opcode"])
        attributes = given.get("op_attr") or {}
        row = TILE_OPCODES.get(opcode)
        access = None
        if opcode in PUTTERS:
            self._check_is_put(given)
        if opcode in COPIES:
            access = len(self._copies)
            self._copies.append(_copy_of(given, attributes))
        is_sync = opcode.startswith(SYNCS)
        value = attributes.get("SCALAR", attributes.get("op_attr_START", {})).get("value")
        value = attributes.get("op_attr_patternMode", attributes.get("block_size", value))
        function = ""
        if "op_attr_cmp_operation" in attributes:
            function = _COMPARISONS[attributes["op_attr_cmp_operation"]]
        elif "is_upper" in attributes:
            function = TRIANGLES[not attributes["is_upper"]]
        elif attributes.get("op_attr_scatter_mode"):
            function = f"scatter mode {attributes['op_attr_scatter_mode']}"
        elif row is not None and row.work in (TileWork.SORT32, TileWork.EXTRACT):
            function = NUMBERS if attributes.get("op_attr_makeMode") else ""
            function = function or ("" if attributes.get("op_attr_order") else ASCENDING)
            value = attributes.get("op_attr_offset", value)
        elif row is not None and row.work is TileWork.ADD_AT:
            function = self._rounding(given, attributes["SCALAR"])
        axis = next((attributes[each] for each in _AXES if each in attributes), -1)
        return TileOperation(
            opcode=opcode,
            pipe=row.pipe.name if row is not None else "",
            inputs=self._tiles(given, "input", access),
            outputs=self._tiles(given, "output", access),
            mode=_MODES[attributes.get("op_attr_mode", 0)],
            saturate=attributes.get("op_attr_satmode", 0) == 0,
            scalar=self._numbers.get(str(given["opmagic"])) if value is None else value,
            scalar_first=bool(attributes.get("op_attr_reverseOperand", False)),
            axis=int(axis),
            axes=_turned_axes(given),
            step=attributes.get("op_attr_STEP", {}).get("value"),
            numbers=self._number(given),
            function=function,
            flag=_flag_of(given["sync_queue"]) if is_sync else None,
            latency=int(given["latency"]),
            file=str(given.get("file", "")),
            line=int(given.get("line", 0)),
        )

    def _rounding(self, given: Mapping[str, Any], factor: Mapping[str, Any]) -> str:
        """True if additions by index in FP32 are rounded to BF16, one by one (indexadd.h:30)."""
        if self._formats.get(factor.get("data_type", 0)) is not BF16:
            return ""
        index = self._raw[self._tensors[given["ioperands"][-1]]["rawtensor"]]["datatype"]
        is_short = self._formats.get(index) is INT32
        return ROUNDED if is_short or is_factor(float(factor["value"] or 0)) else ""

    def _number(self, given: Mapping[str, Any]) -> tuple[Scalar, ...]:
        """The number of the task that an operation takes, as one that its last accesses have."""
        place = self._of_task.get(str(given["opmagic"]))
        if place is None:
            return ()
        self._given.append(place)
        return (("valid", self._count + len(self._asked) + len(self._given) - 1, 0),)

    def _tiles(
        self, given: Mapping[str, Any], end: str, access: int | None
    ) -> tuple[TileOperand, ...]:
        """The operands at one end, of which the operation says which are packed."""
        magics = given[f"{end[0]}operands"]
        attribute = f"op_attr_{end}_combine_axis"
        packed = (given.get("op_attr") or {}).get(attribute) or [False] * len(magics)
        if given["opcode"] == BLOCKS_OF_COLUMN and end == "input":
            packed = [True]  # it goes through all rows of both, and upstream names neither
        if len(packed) != len(magics):
            raise ValueError(
                f"operation {given['opmagic']}: {attribute} is of {len(packed)} tensors, not "
                f"{len(magics)}"
            )
        accesses = [access] * len(magics)
        if given["opcode"] in TAKERS | PUTTERS:
            in_gm = [x for x in magics if self._tensors[x]["mem_type"]["asis"] == _GM]
            if end == "input":
                self._taken += map(self._end_of, in_gm)
            copies = sum(each["opcode"] in COPIES for each in self._function["operations"])
            first = copies + len(self._taken) - len(in_gm)
            accesses = [first + (in_gm.index(x) if x in in_gm else 0) for x in magics]
        tiles = (
            self._tile(each, place, str(given["opcode"]))
            for each, place in zip(magics, accesses, strict=True)
        )
        return tuple(
            replace(tile, is_packed=tile.buffer is not None and len(tile.shape) > 1 and is_packed)
            for tile, is_packed in zip(tiles, packed, strict=True)
        )

    def _end_of(self, magic: int) -> int:
        """The place among a call's operands of a tensor in GM, or of the one that it views."""
        views = self._function["operations"]
        source: int = next((x["ioperands"][0] for x in views if x["ooperands"] == [magic]), magic)
        return self._ends[magic if magic in self._ends else source]

    def _check_is_put(self, given: Mapping[str, Any]) -> None:
        """Refuse rows written to another tensor than the one that the other rows are of."""
        ends = [self._tensors[each] for each in (*given["ioperands"], *given["ooperands"])]
        in_gm = [self._raw[x["rawtensor"]] for x in ends if x["mem_type"]["asis"] == _GM]
        if len({each.get("symbol") or each["rawmagic"] for each in in_gm}) > 1:
            raise ValueError(
                f"operation {given['opmagic']} {given['opcode']} writes rows to another tensor in "
                "GM than the one that it reads, and nothing writes the other rows there"
            )

    def _tile(self, magic: int, access: int | None, opcode: str) -> TileOperand:
        tensor = self._tensors[magic]
        raw = self._raw[tensor["rawtensor"]]
        number = raw["datatype"]
        if number not in self._formats:
            raise ValueError(f"tensor {magic} has dtype {number}, which has no format here")
        fmt = self._formats[number]
        if tensor["mem_type"]["asis"] == _GM:
            if access is None and opcode == "RESHAPE" and magic in self._ends:
                access = self._count + len(self._asked) + len(self._reshaped)
                self._reshaped.append(self._ends[magic])
            return TileOperand(access=access, format=fmt)
        first, stop = map(int, tensor["mem_range"])
        if not 0 <= first <= stop or (tensor["mem_type"]["asis"] == _UB and stop > self._ub_bytes):
            raise ValueError(f"tensor {magic} lies at bytes {first} to {stop} of UB")
        place = self._buffers.setdefault(int(tensor["mem_id"]), len(self._ranges))
        if place == len(self._ranges):
            self._ranges.append((str(tensor["mem_id"]), first, stop))
        name, start, end = self._ranges[place]
        if first < start:
            raise ValueError(f"tensor {magic} begins before its buffer {name}")
        self._ranges[place] = name, start, max(end, stop)
        return TileOperand(
            buffer=place,
            start_bytes=first - start,
            format=fmt,
            shape=tuple(map(int, raw["rawshape"])),
            valid_shape=self._valid_shape(tensor),
            offset=tuple(map(int, tensor["offset"])),
        )

    def _valid_shape(self, tensor: Mapping[str, Any]) -> tuple[Scalar, ...]:
        plain = tuple(map(int, tensor["validshape"]))
        if len(tensor["dynvalidshape"]) != len(plain):
            return plain  # scratch has the dimensions of the operation's input there
        found: list[Scalar] = []
        for axis, given in enumerate(tensor["dynvalidshape"]):
            match given:
                case [0, int(value)]:
                    found.append(value)
                case [1, str(symbol)] if symbol in self._symbols:
                    found.append(self._symbols[symbol])
                case [1, str(symbol)] if symbol not in self._axes:
                    raise ValueError(f"tensor {tensor['magic']}: {symbol} is no axis of its leaf")
                case _:
                    found.append(plain[axis])
        return tuple(found)


def entries_of(function: Mapping[str, Any]) -> dict[int, int]:
    """The entry of a call's argument list that belongs to the result of each operation.

    Lists are made before the leaf is sorted, and a sort turns its ties round
    (interface/function/function.cpp:2790, NormalizeCoaForNormalOperands).

    Raises:
        ValueError: two operations of one number, or a circle of them.
    """
    first = len(function["incasts"]) + len(function["outcasts"])
    ends = {magic for magic, _ in (*function["incasts"], *function["outcasts"])}
    nodes = [
        Node(
            opcode=each["opcode"],
            number=each["opmagic"],
            inputs=tuple(each["ioperands"]),
            outputs=tuple(each["ooperands"]),
        )
        for each in function["operations"]
    ]
    numbers = Counter(each.number for each in nodes)
    for number in (each for each, count in numbers.items() if count > 1):
        raise ValueError(f"two operations have the number {number}")
    made = [each for each in in_order(nodes) if each.outputs[0] not in ends]
    return {each.outputs[0]: first + place for place, each in enumerate(made)}


def _check_place(given: Mapping[str, Any], core: str) -> None:
    """Refuse an operation of another core than its leaf, or another pipe than its opcode.

    Upstream leaves the pipe of what is no sync at 0, so that of the opcode counts.
    """
    opcode, number = str(given["opcode"]), given["sync_queue"]["pipe_id"]
    where, row = f"operation {given['opmagic']} {opcode}", TILE_OPCODES.get(opcode)
    if (given.get("op_attr") or {}).get("IS_CUBE") and core != "AIC":
        raise ValueError(f"{where} is of the cube, and its leaf of {core}: all is in UB or GM")
    if row is not None and number and _PIPES.get(number) != row.pipe.name:
        raise ValueError(
            f"{where} is of pipe {_PIPES.get(number, number)}, and the opcode of {row.pipe.name}"
        )


def _copy_of(
    given: Mapping[str, Any], attributes: Mapping[str, Any]
) -> tuple[int | None, Sequence[Any], Sequence[Any]]:
    """The base offset of a copy's spill, and the expressions of its offset and valid shape."""
    _, _, dims, *items = given["attr"]
    pairs = list(zip(items[0::2], items[1::2], strict=False))
    offset = pairs[:dims]
    rest = items[6 * dims :]
    count, valid = rest[0], rest[1:]
    shape = list(zip(valid[0::2], valid[1::2], strict=False))[:count]
    if given["opcode"] in INWARD:  # that of the tile in UB
        shape = list(restored(shape, _turned_axes(given)))
    spill = attributes.get("workspace_base_offset")
    return None if spill is None else int(spill), offset, shape


def _turned_axes(given: Mapping[str, Any]) -> tuple[int, ...]:
    """The axes that a transposition exchanges; () of other operations."""
    is_turned = "TRANSPOSE" in given["opcode"]
    return tuple(map(int, given["op_attr"]["op_attr_shape"])) if is_turned else ()


def _flag_of(queue: Mapping[str, Any]) -> Flag:
    for pipe in (queue["pipe_id"], queue["trig_pipe"]):
        if pipe not in _PIPES and pipe not in range(11):
            raise ValueError(f"pipe {pipe!r} is not known")
    names = [_PIPES.get(queue[key], f"pipe {queue[key]}") for key in ("pipe_id", "trig_pipe")]
    return Flag(setter=names[0], waiter=names[1], event_id=int(queue["event_id"]))
