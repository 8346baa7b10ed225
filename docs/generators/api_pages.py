"""The pages of the API, one a group: the names that mkdocstrings reads the docstrings of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Any, Final

import pypto_cast
from ascend_kernels.schedule import parts
from docs.generators.api_words import SENTENCES_ZH, TEXTS_ZH
from docs.generators.api_words import TITLES_ZH as GROUPS_ZH
from docs.generators.error_words import GROUPS as ERROR_GROUPS
from docs.generators.markdown_text import table
from docs.generators.operation_pages import TITLES
from docs.generators.operation_words import TITLES_ZH
from pypto_cast import dialects, operations, testing
from pypto_cast.dialects import onnx, openvino, paddle
from simulator import ascendc
from simulator.machine.tile_opcodes import TILE_OPCODES, instructions_inside

ROOMS: Final = ("tiling", "simulator", "ascend_kernels", "pypto_cast")
_LINKED_ZH: Final = "点击名称查看签名、参数和异常（英文文档）。"
_OWN_PAGES: Final = frozenset(operations.__all__)
"""Operations, which have pages of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A public name as users write it, the place of its definition, and its first sentence."""

    name: str
    home: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One page of the reference.

    Attributes:
        names: most used first.
        rooms: rooms; what else of `pypto_cast` they define follows, by the alphabet. The longest
            that fits counts.
        modules: modules whose names follow, but for those that `pypto_cast` has.
        text: Markdown below the title.
    """

    title: str
    page: str
    names: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()
    modules: tuple[ModuleType, ...] = ()
    text: str = ""


def _opcodes(*headings: str) -> str:
    return table(headings, ((f"`{name}`", instructions_inside(name)) for name in TILE_OPCODES))


def _operations(titles: Mapping[str, str], between: str) -> str:
    return between.join(
        f"[{title}](../operations/{module}/index.md)" for module, title in titles.items()
    )


_PARTS: Final = (
    *("Parameter", "Leaf", "TileOperation", "TileOperand", "Buffer", "Flag"),
    *("Body", "Task", "Access", "Temporary", "Run", "Loop", "Branch", "Renewal", "Barrier"),
)
"""The parts of a schedule, from the whole to its steps."""
GROUPS: Final = (
    Group(
        title="Tensors",
        page="reference/tensors.md",
        names=("Tensor", "tensor", "from_numpy", "from_torch", "from_dlpack", "ShapeError"),
        rooms=("pypto_cast.tensors",),
    ),
    Group(
        title="Dtypes",
        page="reference/dtypes.md",
        names=("DataType", "CastMode", "SaturationMode", "TileOpFormat", "Element", "element"),
        rooms=("pypto_cast.dtypes",),
    ),
    Group(
        title="Operations",
        page="reference/operations.md",
        names=("cast", "routes", "Routes", "Route"),
        rooms=(
            *("pypto_cast.cast", "pypto_cast.operations", "pypto_cast.routes"),
            *("ascend_kernels.matrix", "ascend_kernels.routing"),
        ),
        text=f"Each operation around the cast has a page: {_operations(TITLES, ', ')}.",
    ),
    Group(
        title="Tiling",
        page="reference/tiling.md",
        names=(
            *("set_vec_tile_shapes", "options", "get_vec_tile_shapes", "reset_options"),
            *("set_cube_tile_shapes", "get_cube_tile_shapes", "set_matrix_size"),
        ),
        rooms=("tiling", "pypto_cast.options"),
    ),
    Group(
        title="Kernels",
        page="reference/kernels.md",
        names=(
            *("jit", "Kernel", "loop", "view", "assemble", "function", "loop_unroll", "cond"),
            *("PlanError", "UBOverflowError", "UBOverflow"),
            *("fit_report", "FitReport", "FitChange"),
        ),
        rooms=("pypto_cast.kernel", "pypto_cast.upstream", "pypto_cast.unsupported"),
    ),
    Group(
        title="Inspection",
        page="reference/inspection.md",
        names=(
            *("Certainty", "OutputCertainty", "CertaintyCounts", "Cause", "what_if"),
            *("KernelProgram", "Estimate"),
        ),
        rooms=(
            *("pypto_cast.recording", "pypto_cast.report"),
            *("simulator.arithmetic", "simulator.machine", "simulator.traces"),
        ),
    ),
    Group(
        title="Schedules",
        page="reference/schedules.md",
        names=(
            *("read_schedule", "Schedule", "ScheduleDiff", "NotExecutedError", "EventReuseWarning"),
            *(f"{parts.__name__}.{name}" for name in _PARTS),
        ),
        rooms=("ascend_kernels.schedule",),
        modules=(parts,),
        text="[A kernel as tasks](../kernel_tasks.md) explains the parts, [From operations to "
        "tasks](../operations_to_tasks.md) the planning of a kernel. A number that is known only "
        "when the kernel runs, as the extent of a DYNAMIC axis, is a tuple of an operator and "
        'its operands: `("extent", "x", 0)`. '
        "[`Kernel.schedule`](kernels.md) plans a schedule. The commands are "
        "[`pypto-cast schedule`](command.md#schedule), "
        "[`pypto-cast compile`](command.md#compile) and "
        "[`pypto-cast check-schedule`](command.md#check-schedule), the checks in a test are "
        "[`testing.assert_schedule_ok` and `testing.unknown_lines`](testing.md).\n\n"
        "A tile operation is one step here, and some instructions on a device. Inside are those "
        "below, each named once and without the suffix of its types; formats and shapes decide "
        "which of them run. They are read in upstream's sources, at tag r0.2.0, and in pto-isa's, "
        "at revision dd3cb0fb, not measured; masks, flags and barriers are left out. Of an opcode "
        "that is not listed they are not known here. A printed schedule has those of its opcodes."
        f"\n\n{_opcodes('tile opcode', 'instructions inside')}",
    ),
    Group(
        title="Tuning",
        page="reference/tuning.md",
        names=("tune", "TuningResult"),
        rooms=("pypto_cast.tuning",),
    ),
    Group(
        title="Models",
        page="reference/dialects.md",
        rooms=("pypto_cast.checkpoints", "pypto_cast.dialects"),
        modules=(dialects, onnx, openvino, paddle),
        text="[`pypto-cast checkpoint`](command.md#checkpoint) casts whole models; below are the "
        "conversions of the systems that they come from.",
    ),
    Group(
        title="Testing",
        page="reference/testing.md",
        names=(
            *("testing.assert_bits_equal", "testing.special_values", "testing.boundary_values"),
            *("testing.assert_possible", "testing.assert_certain", "testing.differences"),
        ),
        rooms=("pypto_cast.testing",),
        modules=(testing,),
    ),
    Group(
        title="Device",
        page="reference/device.md",
        names=("Platform", "RunMode"),
        rooms=("pypto_cast.platform", "pypto_cast.device", "ascend_kernels", "simulator.numbers"),
    ),
    Group(title="AscendC's objects", page="reference/ascendc.md", modules=(ascendc,)),
)
"""In the order of the navigation, which mkdocs.yml has; a reader comes for the first ones most."""


def documented(module: ModuleType) -> list[Entry]:
    """The public names of a module that have a docstring, by the alphabet."""
    prefix = "" if module is pypto_cast else f"{module.__name__.removeprefix('pypto_cast.')}."
    found = []
    for name in sorted(getattr(module, "__all__", dir(module)), key=str.lower):
        value = getattr(module, name)
        is_documentable = inspect.isclass(value) or inspect.isfunction(value)
        if name.startswith("_") or name in _OWN_PAGES or not is_documentable:
            continue
        home = f"{value.__module__}.{value.__qualname__}"
        if home.split(".")[0] in ROOMS and inspect.getdoc(value) and "<locals>" not in home:
            found.append(Entry(name=f"{prefix}{name}", home=home, text=_summary(value)))
    return found


def _summary(value: Any) -> str:
    """The first sentence of its own docstring; the members of an enumeration without one."""
    if not value.__doc__ and issubclass(value, Enum):
        return ", ".join(f"`{member}`" for member in value.__members__)
    return inspect.cleandoc(value.__doc__ or "").partition("\n")[0]


def group_of(entry: Entry) -> Group:
    """The group whose page has a name of `pypto_cast`.

    Raises:
        LookupError: no group has it: its room is new.
    """
    for group in GROUPS:
        if entry.name in group.names:
            return group
    rooms = {room: group for group in GROUPS for room in group.rooms}
    fitting = [room for room in rooms if entry.home.startswith(f"{room}.")]
    if not fitting:
        raise LookupError(f"{entry.name} of {entry.home}: no group of {__name__} has its room")
    return rooms[max(fitting, key=len)]


def entries_of(group: Group) -> list[Entry]:
    """The entries of a group's page, in its order; a name that has two modules counts once."""
    of_package = documented(pypto_cast)
    known = {entry.home for entry in of_package}
    found = [entry for entry in of_package if group_of(entry) is group]
    for module in group.modules:
        found += [entry for entry in documented(module) if entry.home not in known]
    places = {name: place for place, name in enumerate(group.names)}
    return sorted(found, key=lambda entry: places.get(entry.name, len(places)))


def _page(group: Group) -> str:
    homes = dict.fromkeys(entry.home for entry in entries_of(group))
    parts = [f"# {group.title}", group.text, *(f"::: {home}" for home in homes)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _index() -> str:
    """All names by group, each with its first sentence and a link to the rest."""
    parts = ["# pypto_cast"]
    for group in GROUPS:
        page = group.page.rpartition("/")[2]
        names: dict[tuple[str, str], list[str]] = {}
        for entry in entries_of(group):
            names.setdefault((entry.home, entry.text), []).append(f"`{entry.name}`")
        rows = ((f"[{', '.join(n)}]({page}#{home})", text) for (home, text), n in names.items())
        parts += [f"## [{group.title}]({page})", table(("name", ""), rows)]
    return "\n\n".join(parts) + "\n"


def sentence_zh(entry: Entry) -> str:
    """The first sentence of an entry in Chinese."""
    of_errors = {name: words[1] for *_, classes in ERROR_GROUPS for name, words in classes.items()}
    found = SENTENCES_ZH.get(entry.name) or of_errors.get(entry.name.rpartition(".")[2])
    if found is None:
        raise LookupError(f"{entry.name} has no Chinese sentence in api_words.py")
    return found


def _table_zh(group: Group) -> str:
    """The names of a group, each with a sentence and a link to its English documentation."""
    names: dict[tuple[str, str], list[str]] = {}
    for entry in entries_of(group):
        names.setdefault((entry.home, sentence_zh(entry)), []).append(f"`{entry.name}`")
    page = group.page.replace(".md", ".html")
    rows = (
        (f'<a href="../../{page}#{home}">{"、".join(each)}</a>', text)
        for (home, text), each in names.items()
    )
    return table(("名称", "说明"), rows)


def _page_zh(group: Group) -> str:
    """The names of a group in Chinese; signatures and whole docstrings are in English, once."""
    text = TEXTS_ZH.get(group.title, "").format(
        operations=_operations(TITLES_ZH, "、"),
        opcodes=_opcodes("tile opcode", "其中的指令"),
    )
    parts = [f"# {GROUPS_ZH[group.title]}", _LINKED_ZH, _table_zh(group), text]
    return "\n\n".join(filter(None, parts)) + "\n"


def _index_zh() -> str:
    parts = ["# pypto_cast", _LINKED_ZH]
    for group in GROUPS:
        page = group.page.rpartition("/")[2]
        parts += [f"## [{GROUPS_ZH[group.title]}]({page})", _table_zh(group)]
    return "\n\n".join(parts) + "\n"


PAGES: Final = MappingProxyType[str, Callable[[], str]](
    {
        "reference/pypto_cast.md": _index,
        "reference/pypto_cast.zh.md": _index_zh,
        **{g.page: partial(_page, g) for g in GROUPS},
        **{g.page.replace(".md", ".zh.md"): partial(_page_zh, g) for g in GROUPS},
    }
)
