"""Reading the program that upstream's compiler dumps: the last pass, the control flow.

Format: upstream pypto at tag r0.2.0, framework/src/interface: function/function.cpp,
operation/operation.cpp and attribute.cpp, tensor/logical_tensor.cpp, tensor/symbolic_scalar.cpp. A
dump is written by others: whatever is wrong with one is a `DumpError` of one line with its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ascend_kernels.schedule.consistency import (
    check_body,
    check_leaf,
    check_parameters,
    check_steps,
)
from ascend_kernels.schedule.part_types import MAX_BITS
from ascend_kernels.schedule.parts import (
    COPIES,
    OUTWARD,
    PUTTERS,
    Access,
    Body,
    Leaf,
    Parameter,
    Task,
    Temporary,
    numbers_read,
)
from ascend_kernels.schedule.reader.control_flow import kernel_name, read_control_flow
from ascend_kernels.schedule.reader.dump_calls import (
    argument_list,
    base_of,
    callee_of,
    calls_before,
    in_order,
    item_of,
    operands_of,
)
from ascend_kernels.schedule.reader.dump_fields import FUNCTION, LEAF, ROOT, read_function
from ascend_kernels.schedule.reader.dump_files import DumpError, FileOf, Texts
from ascend_kernels.schedule.reader.dump_leaves import Formats, LeafReader, LeafText, entries_of
from ascend_kernels.schedule.reader.dump_scalars import Resolve
from ascend_kernels.schedule.reader.dump_slots import (
    Slots,
    check_ends,
    renewed,
    slots_of,
    through_slots,
)
from ascend_kernels.schedule.reader.dump_texts import read_arguments, read_leaf_text
from ascend_kernels.schedule.scalars import Scalar
from ascend_kernels.schedule.schedule import DUMP, Schedule
from ascend_kernels.schedule.step_lowering import not_executed
from tiling.chips import chip_named

LAST_PASS: Final = "Pass_36_CodegenPreproc"
FIRST_PASS: Final = "Pass_01_AutoCast"
"""The pass whose functions say in which slot of the kernel each argument lies."""
FIRST_LEAVES: Final = "Pass_27_SubgraphToFunction"
"""The pass after which the operands of a leaf's operations are listed as its calls list them."""
DUMP_FILES: Final = (
    f"{FIRST_PASS}/After_*.json",
    f"{FIRST_LEAVES}/After_*_LEAF_*.json",
    f"{LAST_PASS}/After_*_ROOT.json",
    f"{LAST_PASS}/After_*_LEAF_*",
    "kernel_aicpu/controlFlow_*.cpp",
    "kernel_aicpu/expression_0.h",
    "dyn_topo.txt",
)
"""The files of a dump that are kept: those that a schedule is read from, and the one that says how
upstream's runtime orders tasks. The other passes are large.
"""
CHIP: Final = "Ascend910B2"
"""The device of the wheel's model."""
_INT32: Final = 3
"""The number of the dtype that a control flow reads."""


def read_dump(
    folder: Path, formats: Formats, *, release: str, kernel: str | None = None
) -> Schedule:
    """Read the schedule of a kernel from a folder of dumps.

    Args:
        folder: an `output_*` folder of upstream's, or one that holds such folders.
        formats: the format of each dtype number.
        release: of the compiler.
        kernel: its name; None: the only one.

    Raises:
        DumpError: no dump, several kernels and no name, or a file that is not as it should be.
    """
    texts = Texts()
    stopped = {each.parent for each in folder.glob(f"**/{LAST_PASS}/After_*_LEAF_*.json")}
    if len(stopped) == 1 and not _flows(folder):
        reader = _Reader(stopped.pop().parent, formats, texts)
        return reader.leaves_alone(release, kernel or folder.name)
    path, name = flow_of_kernel(folder, kernel, texts, has_leaves=bool(stopped))
    return _Reader(path.parent.parent, formats, texts).schedule(path, release, name)


def _flows(folder: Path) -> list[Path]:
    return sorted(folder.glob("**/kernel_aicpu/controlFlow_*.cpp"))


def flow_of_kernel(
    folder: Path, kernel: str | None, texts: Texts, *, has_leaves: bool = False
) -> tuple[Path, str]:
    """The control flow of a kernel in a folder of dumps, and the kernel's name.

    Raises:
        DumpError: as of `read_dump`.
    """
    found: dict[str, list[Path]] = {}
    for path in _flows(folder):
        with FileOf(path):
            found.setdefault(kernel_name(texts.read(path)), []).append(path)
    if not found and has_leaves:
        raise DumpError(f"{folder}: leaves of several dumps without a control flow")
    if not found:
        raise DumpError(f"{folder}: no dump of upstream's compiler is there")
    names = ", ".join(found)
    if kernel is None and len(found) > 1:
        raise DumpError(f"{folder}: it holds several kernels, name one of {names}")
    if kernel is not None and kernel not in found:
        raise DumpError(f"{folder}: no kernel {kernel!r}; it holds {names}")
    (paths,) = found.values() if kernel is None else (found[kernel],)
    if len(paths) > 1:
        raise DumpError(f"{folder}: kernel {kernel or names} is there {len(paths)} times")
    return paths[0], kernel or names


class _Reader:
    """One kernel of one dump."""

    def __init__(self, folder: Path, formats: Formats, texts: Texts) -> None:
        self._formats = formats
        self._texts = texts
        self._folder = folder / LAST_PASS
        self._expressions = folder / "kernel_aicpu" / "expression_0.h"

    def leaves_alone(self, release: str, kernel: str) -> Schedule:
        """The leaves that are left where the compiler stopped before it wrote a control flow."""
        return Schedule(
            kernel=kernel,
            release=release,
            chip=CHIP,
            origin=DUMP,
            parameters=(),
            leaves=tuple(each.leaf for each in self._leaves().values()),
            bodies=(),
            steps=(),
        )

    def schedule(self, flow_path: Path, release: str, kernel: str) -> Schedule:
        with FileOf(flow_path):
            flow = self._texts.read(flow_path)
        arguments = self._arguments()
        leaves = self._leaves()
        numbers = {name: place for place, name in enumerate(leaves)}
        bodies: list[Body] = []
        by_hash: dict[str, int] = {}
        roots: dict[Path, _Root] = {}
        parameters: dict[str, Parameter] = {}
        for path in sorted(self._folder.glob("After_*_ROOT.json")):
            with FileOf(path):
                function = self._function(path, ROOT)
                if f"#hash: {function['hash']}" not in flow:
                    continue
                by_hash[str(function["hash"])] = len(roots)
                slots = self._slots(path) if _unnamed(function, arguments) else Slots()
                roots[path] = _Root(function, arguments, slots, self._formats)
        declared = _declared(roots)
        for path, root in roots.items():
            with FileOf(path):
                bodies.append(root.body(leaves, numbers, declared))
                check_body(bodies[-1], [each.leaf for each in leaves.values()])
                for each in root.parameters():
                    parameters[each.name] = _joined(parameters.get(each.name), each)
                check_parameters(tuple(parameters.values()))
        read = through_slots(bodies, [each.read for each in roots.values()])
        written = through_slots(bodies, [each.written for each in roots.values()])
        for name, each in parameters.items():
            parameters[name] = replace(each, is_read=name in read, is_written=name in written)
        with FileOf(flow_path):
            steps = renewed(read_control_flow(flow, by_hash), bodies)
            check_steps(steps, len(bodies))
            for name, dims in numbers_read(bodies, steps).items():
                shape = tuple(("extent", name, axis) for axis in range(dims))
                fmt = self._formats[_INT32]
                number = Parameter(
                    name=name, format=fmt, shape=shape, is_read=True, is_written=False
                )
                parameters[name] = replace(parameters.get(name, number), is_read=True)
        listed = [each.leaf for each in leaves.values()]
        self._check_written(parameters.values(), listed)
        with FileOf(self._expressions):
            check_ends(bodies)
        used = sorted(
            {task.leaf for body in bodies for task in body.tasks if task.leaf is not None}
        )
        kept = {leaf: place for place, leaf in enumerate(used)}
        return Schedule(
            kernel=kernel,
            release=release,
            chip=CHIP,
            origin=DUMP,
            parameters=tuple(parameters[name] for name in arguments if name in parameters),
            leaves=tuple(listed[place] for place in used),
            bodies=tuple(
                replace(
                    body,
                    tasks=tuple(
                        replace(task, leaf=None if task.leaf is None else kept[task.leaf])
                        for task in body.tasks
                    ),
                )
                for body in bodies
            ),
            steps=steps,
        )

    def _slots(self, root: Path) -> Slots:
        name = root.name.removeprefix("After_036_CodegenPreproc_").replace("_ROOT.json", ".json")
        path = self._folder.parent / FIRST_PASS / f"After_001_AutoCast_{name}"
        with FileOf(path):
            return slots_of(self._function(path))

    def _arguments(self) -> list[str]:
        with FileOf(self._expressions):
            return read_arguments(self._texts.read(self._expressions))

    def _check_written(self, parameters: Iterable[Parameter], leaves: Sequence[Leaf]) -> None:
        """Refuse a list of arguments of which none is written: an output is missing there."""
        with FileOf(self._expressions):
            if any(each.is_written for each in parameters) or not leaves:
                return
            if not any(not_executed(each, chip_named(CHIP).isa) for each in leaves):
                raise ValueError("none of its arguments is written")

    def _leaves(self) -> dict[str, LeafText]:
        entries: dict[str, dict[int, int]] = {}
        for path in sorted((self._folder.parent / FIRST_LEAVES).glob("After_*_LEAF_*.json")):
            with FileOf(path):
                function = self._function(path)
                entries[str(function["hash"])] = entries_of(function)
        found = {}
        for path in sorted(self._folder.glob("After_*_LEAF_*.json")):
            with FileOf(path):
                function = self._function(path, LEAF)
            text = path.with_suffix(".tifwkgr")
            with FileOf(text):
                attributes = read_leaf_text(self._texts.read(text), function)
            with FileOf(path):
                leaf_hash = str(function["hash"])
                reader = LeafReader(
                    function,
                    attributes.shapes,
                    attributes.numbers,
                    attributes.of_task,
                    entries.get(leaf_hash, {}),
                    self._formats,
                    chip_named(CHIP).ub_bytes,
                )
                found[leaf_hash] = reader.read()
                check_leaf(found[leaf_hash].leaf)
        return found

    def _function(self, path: Path, fields: Mapping[str, Any] = FUNCTION) -> Mapping[str, Any]:
        return read_function(self._texts.read(path), fields)


def _joined(one: Parameter | None, other: Parameter) -> Parameter:
    if one is None:
        return other
    if one.format != other.format:
        raise ValueError(f"parameter {other.name} has two dtypes: {one.format}, {other.format}")
    return one


def _declared(roots: Mapping[Path, _Root]) -> dict[str, tuple[int, ...]]:
    """The shape of each argument as its signature has it; -1 where only a run knows an extent.

    A body may have an argument flattened, where the kernel assigns a tensor of another shape to
    it. The signature's shape is one whose open extents are the argument's own, and which a body
    takes: a reshape makes the others from it.
    """
    found: dict[str, tuple[tuple[bool, bool], tuple[int, ...]]] = {}
    for path, root in roots.items():
        with FileOf(path):
            for name, rank, shape in root.shapes():
                if name not in found or rank > found[name][0]:
                    found[name] = rank, shape
    return {name: shape for name, (_, shape) in found.items()}


def _ends(function: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The raw tensors that a body takes or gives."""
    raw = {each["rawmagic"]: each for each in function["rawtensors"]}
    tensors = {each["magic"]: each for each in function["tensors"]}
    for magic, _ in (*function["incasts"], *function["outcasts"]):
        yield raw[tensors[magic]["rawtensor"]]


def _unnamed(function: Mapping[str, Any], arguments: Sequence[str]) -> bool:
    """True if an argument may have lost its name, as it does inside some operations."""
    return any(each.get("symbol") not in arguments for each in _ends(function))


class _Root:
    """The tasks of one body."""

    def __init__(
        self,
        function: Mapping[str, Any],
        arguments: Sequence[str],
        slots: Slots,
        formats: Formats,
    ) -> None:
        self._function = function
        self._slots = slots
        self._renamed = slots.of_arguments(tuple(_ends(function)), arguments)
        self._arguments = arguments
        self._formats = formats
        self._raw = {each["rawmagic"]: each for each in function["rawtensors"]}
        self._tensors = {each["magic"]: each for each in function["tensors"]}
        self._declared: Mapping[str, tuple[int, ...]] = {}
        ends = tuple(_ends(function))
        self._dtypes = {str(each.get("symbol", "")): each["datatype"] for each in ends}
        self.read: set[str] = set()
        self.written: set[str] = set()

    def shapes(self) -> Iterator[tuple[str, tuple[bool, bool], tuple[int, ...]]]:
        """The shapes that the arguments have here: whether each extent that is open is the
        argument's own, and whether the body takes it so.
        """
        for magic, raw in self._raw.items():
            if name := self._argument(raw):
                extents = _rawshape(raw)
                given = self._given(magic, extents) or _extents(name, extents)
                pairs = zip(extents, given, _extents(name, extents), strict=True)
                is_own = all(extent >= 0 or one == own for extent, one, own in pairs)
                yield name, (is_own, magic in self._taken), extents

    def body(
        self,
        leaves: Mapping[str, LeafText],
        numbers: Mapping[str, int],
        declared: Mapping[str, tuple[int, ...]],
    ) -> Body:
        """The tasks, given the shapes that the arguments have in the signature."""
        self._declared = declared
        calls = [each for each in self._function["operations"] if each["opcode"] == "CALL"]
        if len(calls) != len(self._function["operations"]):
            others = {str(each["opcode"]) for each in self._function["operations"]} - {"CALL"}
            raise ValueError(f"a root with operations {', '.join(sorted(others))}, not only CALL")
        aliases = self._aliases(calls, leaves)
        before = calls_before(calls)
        order = in_order(before)
        places = {place: new for new, place in enumerate(order)}
        tasks = []
        for place in order:
            after = sorted(places[each] for each in range(len(calls)) if place in before[each])
            tasks.append(self._task(calls[place], leaves, numbers, tuple(after)))
        temporaries = tuple(
            self._temporary(raw, aliases)
            for raw in self._raw.values()
            if self._name(raw) not in self._arguments
        )
        for uses in (self.read, self.written):
            uses.update(target for alias, target in aliases.items() if alias in uses)
        self._check_written([leaves[each] for each in map(callee_of, calls) if each in leaves])
        name = str(self._function["func_magicname"])
        return Body(name=name, tasks=tuple(tasks), temporaries=temporaries)

    def _check_written(self, called: Sequence[LeafText]) -> None:
        """Refuse an argument that the body gives and none of its leaves writes."""
        if any(not_executed(each.leaf, chip_named(CHIP).isa) for each in called):
            return  # an operation without a row may write to GM
        for magic, _ in self._function["outcasts"]:
            name = self._argument(self._raw_of(magic))
            if name and name not in self.written:
                raise ValueError(f"it gives {name}, which none of its tasks writes")

    def _temporary(self, raw: Mapping[str, Any], aliases: Mapping[str, str]) -> Temporary:
        name, magic, fmt = self._name(raw), raw["rawmagic"], self._formats[raw["datatype"]]
        shape, unknown = self._shape(raw)
        alias = aliases.get(name, "")
        if self._argument(raw):
            return Temporary(name=name, format=fmt, shape=shape, alias=alias, unknown=unknown)
        slot = self._slots.taken.get(magic)
        if not unknown and magic in self._taken and slot is None:
            unknown = f"the dump does not say where {name} comes from"
        return Temporary(
            name=name,
            format=fmt,
            shape=shape,
            alias=alias,
            reads_slot=slot,
            writes_slots=self._slots.left.get(magic, ()),
            is_partial=magic in self._slots.parts and magic in self._slots.left,
            unknown=unknown,
        )

    @property
    def _taken(self) -> set[int]:
        """The raw tensors that the body takes."""
        return {self._tensors[each]["rawtensor"] for each, _ in self._function["incasts"]}

    def _given(self, magic: int, extents: tuple[int, ...]) -> tuple[Scalar, ...]:
        """The extents of a raw tensor as a view of the whole gives them; () if there is none."""
        views = (x for x in self._tensors.values() if x["rawtensor"] == magic)
        whole = next((x for x in views if tuple(x["shape"]) == extents), None)
        given = () if whole is None else tuple(map(Resolve().read, whole["dynvalidshape"]))
        return given if len(given) == len(extents) else ()

    def _shape(self, raw: Mapping[str, Any]) -> tuple[tuple[Scalar, ...], str]:
        """The shape of a tensor, and the reason for which it is not known."""
        name, extents = self._name(raw), _rawshape(raw)
        if name in self._arguments or min(extents, default=0) >= 0:
            return _extents(name, extents), ""
        if given := self._given(raw["rawmagic"], extents):
            return given, ""
        return (0,) * len(extents), f"the dump does not say how long {name} is"

    def _aliases(
        self, calls: Sequence[Mapping[str, Any]], leaves: Mapping[str, LeafText]
    ) -> dict[str, str]:
        """The temporaries that are an argument or another temporary in another shape.

        A reshape in GM has nothing to run: both tensors lie in the same memory, and with them all
        that other reshapes lead to. It is an argument's, else that of a tensor in a slot.
        """
        groups: dict[str, dict[str, None]] = {}

        def join(one: str, other: str) -> None:
            both = groups.get(one, {one: None}) | groups.get(other, {other: None})
            groups.update(dict.fromkeys(both, both))

        ranks: dict[str, tuple[bool, ...]] = {}
        for magic, raw in self._raw.items():
            name, argument = self._name(raw), self._argument(raw)
            ranks[name] = False, magic in self._slots.taken, magic in self._slots.left
            if argument and argument != name:
                join(name, argument)
        ranks.update(dict.fromkeys(self._arguments, (True,)))
        for call in calls:
            callee = leaves.get(callee_of(call))
            places = [] if callee is None else callee.reshaped
            names = [self._name(self._raw_of(operands_of(call)[place])) for place in places]
            for source, target in zip(names[0::2], names[1::2], strict=True):
                join(source, target)
        found: dict[str, str] = {}
        for name, group in groups.items():
            held = max(group, key=ranks.__getitem__)
            if name in self._arguments and name != held:
                raise ValueError(f"a reshape from {name} to {held}, both of them arguments")
            if name != held:
                found[name] = held
        return found

    def _raw_of(self, magic: int) -> Mapping[str, Any]:
        """The memory of a tensor."""
        raw: Mapping[str, Any] = self._raw[self._tensors[magic]["rawtensor"]]
        return raw

    def parameters(self) -> Iterator[Parameter]:
        """The arguments that lie here, neither read nor written as far as one body can say."""
        for raw in self._raw.values():
            if name := self._argument(raw):
                yield Parameter(
                    name=name,
                    format=self._formats[raw["datatype"]],
                    shape=_extents(name, self._declared[name]),
                    is_read=False,
                    is_written=False,
                )

    def _argument(self, raw: Mapping[str, Any]) -> str:
        """The parameter in whose memory a tensor is, or "" for none.

        A cast inside an operation leaves the name to its result, which has another dtype.
        """
        argument = self._renamed.get(raw["rawmagic"], str(raw.get("symbol", "")))
        dtype = self._dtypes.get(argument, raw["datatype"])
        return argument if argument in self._arguments and dtype == raw["datatype"] else ""

    def _name(self, raw: Mapping[str, Any]) -> str:
        """The parameter that a tensor is, or a name of its own."""
        argument = self._argument(raw)
        if argument and _rawshape(raw) == self._declared[argument]:
            return argument
        return f"{raw.get('symbol') or 'temporary'}.{raw['rawmagic']}"

    def _task(
        self,
        call: Mapping[str, Any],
        leaves: Mapping[str, LeafText],
        numbers: Mapping[str, int],
        successors: tuple[int, ...],
    ) -> Task:
        callee = callee_of(call)
        if callee == "0":
            return Task(leaf=None, accesses=(), successors=successors)
        if callee not in leaves:
            raise ValueError(f"leaf {callee} is not in the dump")
        arguments, entries = argument_list(call["attr"])
        operands = operands_of(call)
        resolve = Resolve(arguments)
        accesses = []
        text = leaves[callee]
        copies = [each for each in text.leaf.operations if each.opcode in COPIES]
        for operation, (spill, offset, valid) in zip(copies, text.copies, strict=True):
            shape = tuple(item_of(each, resolve) for each in valid)
            if spill is not None:
                accesses.append(Access(tensor="", offset=(spill,), shape=shape))
                continue
            base = base_of(offset)
            if base not in entries or entries[base] >= len(operands):
                raise ValueError(f"argument {base} of a call is no tensor")
            name = self._name(self._raw_of(operands[entries[base]]))
            (self.written if operation.opcode in OUTWARD else self.read).add(name)
            accesses.append(
                Access(
                    tensor=name,
                    offset=tuple(item_of(each, resolve) for each in offset),
                    shape=shape,
                )
            )
        by_place = {entry: base for base, entry in entries.items()}

        def numbers_of(entry: int, part: int) -> tuple[Scalar, ...]:
            """Of an operand the offset, the extents, those of its tensor, and those with data."""
            dims = (by_place.get(entry + 1, len(arguments)) - by_place[entry] - 1) // 4
            first = by_place[entry] + 1 + part * dims
            return tuple(map(resolve.argument, range(first, first + dims)))

        if text.taken and len(entries) != text.entries:
            raise ValueError(
                f"a call of {text.leaf.name} has {len(entries)} lists for {text.entries} tensors: "
                "it reads a tensor in GM twice, or one that it writes, which one list tells"
            )
        in_place = {
            each.outputs[0].access for each in text.leaf.operations if each.opcode in PUTTERS
        }
        for entry in text.taken:
            name = self._name(self._raw_of(operands[entry]))
            self.read.add(name)
            if len(accesses) in in_place:
                self.written.add(name)
            offset, shape = numbers_of(entry, 0), numbers_of(entry, 3)
            accesses.append(Access(tensor=name, offset=offset, shape=shape))
        for entry in text.shapes:
            accesses.append(Access(tensor="", offset=(), shape=numbers_of(entry, 3)))
        for place in text.numbers:
            number = resolve.argument(place)
            if isinstance(number, int) and number >= 1 << MAX_BITS - 1:
                number -= 1 << MAX_BITS  # it is written without its sign
            accesses.append(Access(tensor="", offset=(), shape=(number,)))
        for place in text.reshaped:
            raw = self._raw_of(operands[place])
            extents, _ = self._shape(raw)
            offset = (0,) * len(extents)
            accesses.append(Access(tensor=self._name(raw), offset=offset, shape=extents))
        return Task(leaf=numbers[callee], accesses=tuple(accesses), successors=successors)


def _rawshape(raw: Mapping[str, Any]) -> tuple[int, ...]:
    """The extents of a raw tensor; -1 where only a run knows one."""
    return tuple(map(int, raw["rawshape"]))


def _extents(name: str, extents: Sequence[int]) -> tuple[Scalar, ...]:
    """The shape of an argument, with those extents that are known when the kernel runs."""
    return tuple(
        extent if extent >= 0 else ("extent", name, axis) for axis, extent in enumerate(extents)
    )
