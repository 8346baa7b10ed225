"""Slots: the places through which the bodies of a dump pass tensors to each other.

A slot belongs to a tensor of the kernel's source. A body that takes it reads what the body before
left there. One that writes it whole leaves a tensor of its own; one that writes parts of it writes
into the tensor that lies there, which is new where the source declares it. Source: upstream pypto
at tag r0.2.0, framework/src: interface/tensor/tensor_slot.cpp, machine/host/backend.cpp
(`SlotMarkNeedAlloc`), machine/utils/dynamic/dev_workspace.h.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ascend_kernels.schedule.parts import Body, Branch, ControlStep, Loop, Renewal, Run

Function = Mapping[str, Any]
_NUMBER: Final = "_TensorExtract."
"""In the name of a tensor with one number (r0.2.0, interface/tensor/logical_tensor.cpp:594)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """The slots of a body's tensors, by raw tensor.

    Attributes:
        taken: those that it takes.
        left: those that it leaves something in.
        parts: the tensors that it writes parts of.
    """

    taken: Mapping[int, int] = field(default_factory=dict)
    left: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    parts: frozenset[int] = frozenset()

    def of_arguments(
        self, ends: Sequence[Mapping[str, Any]], arguments: Sequence[str]
    ) -> dict[int, str]:
        """The argument that each raw tensor is, or "" for none.

        Arguments lie in slots one after another, from one on that differs by kernel; a tensor may
        have lost its name, or have that of another.
        """
        slots = {**{raw: each[0] for raw, each in self.left.items()}, **self.taken}
        firsts = collections.Counter(
            slots[each["rawmagic"]] - arguments.index(each["symbol"])
            for each in ends
            if each["rawmagic"] in slots and each.get("symbol") in arguments
        )
        return {
            raw: arguments[slot - first] if 0 <= slot - first < len(arguments) else ""
            for first, _ in firsts.most_common(1)
            for raw, slot in slots.items()
        }


def slots_of(function: Function) -> Slots:
    """The slots of a body, from its tensor graph."""
    tensors = {each["magic"]: each for each in function["tensors"]}
    raw = {magic: int(each["rawtensor"]) for magic, each in tensors.items()}
    parts = {
        raw[target]
        for operation in function["operations"]
        if operation["opcode"] == "ASSEMBLE"
        for target in operation["ooperands"]
        if tensors[operation["ioperands"][0]]["shape"] != tensors[target]["shape"]
    }
    return Slots(
        taken={raw[magic]: int(slots[0]) for magic, slots in function["incasts"] if slots},
        left={raw[magic]: tuple(map(int, slots)) for magic, slots in function["outcasts"] if slots},
        parts=frozenset(parts),
    )


def check_ends(bodies: Sequence[Body]) -> None:
    """Refuse a tensor that a body gives and none takes, or takes and none gives.

    It is an argument that is missing; a tensor of which the control flow reads a number is no
    parameter of any body.

    Raises:
        ValueError: names body and tensor.
    """
    held = [(body, each) for body in bodies for each in body.temporaries]
    taken = {each.reads_slot for _, each in held}
    given = {slot for _, each in held for slot in each.writes_slots}
    for body, each in held:
        is_read = not taken.isdisjoint(each.writes_slots) or _NUMBER in each.name
        if each.writes_slots and not is_read:
            raise ValueError(f"{body.name} gives {each.name}, no argument, which no body takes")
        if each.reads_slot is not None and each.reads_slot not in given:
            raise ValueError(f"{body.name} takes {each.name}, no argument, which no body gives")


def renewed(steps: Sequence[ControlStep], bodies: Sequence[Body]) -> tuple[ControlStep, ...]:
    """The steps with the slots of each renewal.

    A dump numbers renewals by themselves. A tensor that is declared in a block is used nowhere
    else, so where a block has as many renewals as slots of its own that are written in parts, they
    are those; else it is not certain.
    """
    partial = {
        slot
        for body in bodies
        for each in body.temporaries
        if each.is_partial
        for slot in each.writes_slots
    }
    everywhere = _uses(steps, bodies)
    return _renewed(steps, bodies, partial, everywhere, set())


def _renewed(
    steps: Sequence[ControlStep],
    bodies: Sequence[Body],
    partial: set[int],
    everywhere: collections.Counter[int],
    known: set[int],
) -> tuple[ControlStep, ...]:
    def inner(given: Sequence[ControlStep]) -> tuple[ControlStep, ...]:
        return _renewed(given, bodies, partial, everywhere, known)

    made: list[ControlStep] = []
    count = 0
    for step in steps:
        match step:
            case Loop():
                made.append(replace(step, steps=inner(step.steps)))
            case Branch():
                made.append(replace(step, steps=inner(step.steps), otherwise=inner(step.otherwise)))
            case Renewal():
                count += 1
            case _:
                made.append(step)
    if not count:
        return tuple(made)
    here = _uses(steps, bodies)
    own = {slot for slot in partial - known if slot in here and here[slot] == everywhere[slot]}
    known |= own
    return Renewal(slots=tuple(sorted(own)), is_certain=len(own) == count), *made


def through_slots(bodies: Sequence[Body], used: Sequence[Collection[str]]) -> set[str]:
    """The tensors that bodies use in another shape, or in a slot where another body left them.

    Args:
        bodies: their temporaries say which slots they take and leave, and which share memory.
        used: the tensors that each body's tasks use by name, one for each body.
    """
    names = [set(each) for each in used]
    slots: set[int] = set()
    before = -1
    while before < (before := len(slots) + sum(map(len, names))):
        for body, own in zip(bodies, names, strict=True):
            for each in body.temporaries:
                if each.name in own or slots.intersection(each.writes_slots):
                    own.add(each.alias or each.name)
                    slots.update(() if each.reads_slot is None else (each.reads_slot,))
    return set().union(*names)


def _uses(steps: Sequence[ControlStep], bodies: Sequence[Body]) -> collections.Counter[int]:
    """The runs of bodies in these steps that use each slot, counted."""
    return collections.Counter(_slots_used(steps, bodies))


def _slots_used(steps: Sequence[ControlStep], bodies: Sequence[Body]) -> Iterator[int]:
    for step in steps:
        match step:
            case Loop():
                yield from _slots_used(step.steps, bodies)
            case Branch():
                yield from _slots_used((*step.steps, *step.otherwise), bodies)
            case Run():
                for each in bodies[step.body].temporaries:
                    yield from each.writes_slots
                    if each.reads_slot is not None:
                        yield each.reads_slot
            case _:
                pass
