"""Upstream's control flow, C++ text: loops, conditions, and which root is handed to the cores.

Source: files kernel_aicpu/controlFlow_*.cpp of a dump of upstream pypto 0.2.0.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ascend_kernels.schedule.parts import Barrier, Branch, ControlStep, Loop, Renewal, Run
from ascend_kernels.schedule.reader.dump_scalars import CALLED, symbol_of
from ascend_kernels.schedule.scalars import Scalar

_BINARY: Final[Mapping[type[ast.AST], str]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Mod: "mod",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Not: "not",
}
_MAX_LETTERS: Final = 1 << 16
"""Of an expression; its tree takes hundreds of times as many bytes."""
_ROOT: Final = re.compile(r"// #name: (\S+) #hash: (\d+)")
_PATH: Final = re.compile(r"(?P<loop>.*)_PATH(?P<number>\d+)")
"""A way through the conditions of a loop's body, of which one is gone in each round."""
_LOOP: Final = re.compile(r"LOOP\((.*)\) \{$")
_STITCH: Final = re.compile(r"RUNTIME_RootStitch(\(\d+ULL\);)$")
_NO_STEP: Final = ("VALUE_", "SetExprBatch", "RUNTIME_RootStitch", "WaitAicoreStart", "return")
"""Lines that pass on values known here already, or wait for the device."""
_IF: Final = re.compile(r"(?:\} else )?if \((.*)\) \{$")


@dataclass(slots=True)
class _Block:
    """Steps that are being read, and the loop or condition that they stand under."""

    loop: tuple[str, Scalar, Scalar, Scalar] | None = None
    condition: Scalar | None = None
    then: tuple[ControlStep, ...] | None = None
    steps: list[ControlStep] = field(default_factory=list)
    chained: bool = False
    paths: dict[str, str] = field(default_factory=dict)
    paths_of_then: dict[str, str] = field(default_factory=dict)

    def step(self) -> ControlStep | None:
        steps = tuple(self.steps)
        if self.loop is not None:
            variable, begin, end, step = self.loop
            return Loop(variable=variable, begin=begin, end=end, step=step, steps=steps)
        if self.condition is None:
            return None
        if self.then is None:
            return Branch(condition=self.condition, steps=steps)
        return Branch(condition=self.condition, steps=self.then, otherwise=steps)


def kernel_name(text: str) -> str:
    """The kernel that a control flow belongs to.

    Raises:
        ValueError: the text names none.
    """
    found = _ROOT.search(text.partition("ControlFlowEntry")[0])
    if found is None or not found[1].startswith("TENSOR_"):
        raise ValueError("no kernel is named before its function")
    return found[1].removeprefix("TENSOR_")


def read_control_flow(text: str, bodies: Mapping[str, int]) -> tuple[ControlStep, ...]:
    """Read loops, conditions and runs.

    Args:
        text: the file.
        bodies: the place of each root, by its hash.

    Raises:
        ValueError: a line that is not understood, a root that the dump lacks, or no step.
    """
    blocks = [_Block()]
    is_inside = is_over = False
    root = allocated = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if found := _ROOT.match(line):
            root = found[2]
            if path := _PATH.fullmatch(found[1]):
                _take_paths(blocks[-1], [(path["loop"], path["number"])], number)
        elif line.endswith("{") and "ControlFlowEntry" in line:
            is_inside = True
        elif is_over and line and not line.startswith(("}", "//", "#")):
            raise ValueError(f"line {number}: {line[:60]!r} stands behind the end of its function")
        elif not is_inside or not line or line.startswith(("//", "#")):
            continue
        elif found := _LOOP.match(line):
            variable, *bounds = found[1].split(",", 1)
            scalars = scalars_of("".join(bounds))
            if len(scalars) != 3:
                raise ValueError(f"line {number}: {line[:60]!r} has no begin, end and step")
            begin, end, step = scalars
            blocks.append(_Block(loop=(variable.removeprefix("VAR_"), begin, end, step)))
        elif line.startswith("} else"):
            block = blocks[-1]
            if block.condition is None:
                raise ValueError(f"line {number}: an else without a condition")
            if block.then is not None:
                raise ValueError(f"line {number}: a second else of one condition")
            block.then, block.steps = tuple(block.steps), []
            block.paths_of_then, block.paths = block.paths, {}
            if found := _IF.match(line):
                blocks.append(_Block(condition=scalar_of(found[1]), chained=True))
        elif found := _IF.match(line):
            blocks.append(_Block(condition=scalar_of(found[1])))
        elif line == "}":
            while True:
                block = blocks.pop()
                made = block.step()
                if made is None:
                    is_inside, is_over = False, True
                    blocks.append(block)
                    break
                blocks[-1].steps.append(made)
                if block.loop is None:
                    inside = (*block.paths_of_then.items(), *block.paths.items())
                    _take_paths(blocks[-1], inside, number)
                if not block.chained:
                    break
        elif "RUNTIME_RootAlloc(" in line:
            if root not in bodies:
                raise ValueError(f"line {number}: root {root or '(unnamed)'} is not in the dump")
            if allocated:
                raise ValueError(f"line {number}: the root before it is allocated, not handed in")
            blocks[-1].steps.append(Run(body=bodies[root]))
            allocated = line.partition("RootAlloc")[2]
        elif line.startswith("RUNTIME_SlotMarkNeedAlloc("):
            blocks[-1].steps.append(Renewal())
        elif line.startswith("RUNTIME_RootStitch(RUNTIME_FUNCKEY_LOOP_BARRIER)"):
            blocks[-1].steps.append(Barrier())
        elif found := _STITCH.match(line):
            if found[1] != allocated:
                raise ValueError(f"line {number}: {line[:60]!r} hands in a root not allocated")
            allocated = ""
        elif not line.startswith(_NO_STEP):
            raise ValueError(f"line {number}: {line[:60]!r} is not understood")
    if allocated:
        raise ValueError("its last root is allocated, and not handed in")
    if not blocks[0].steps:
        raise ValueError("it runs nothing")
    return tuple(blocks[0].steps)


def _take_paths(block: _Block, paths: Sequence[tuple[str, str]], line: int) -> None:
    """Refuse paths that follow another one of their loop in a block: an else is missing."""
    before = dict(block.paths)
    for loop, path in paths:
        if before.get(loop, path) != path:
            raise ValueError(
                f"line {line}: path {path} of {loop} follows path {before[loop]} under one "
                "condition, and is one of another"
            )
        block.paths.setdefault(loop, path)


def scalars_of(text: str) -> list[Scalar]:
    """Read expressions between commas.

    Raises:
        ValueError: as `scalar_of`.
    """
    found, depth, start = [], 0, 0
    for place, letter in enumerate(f"{text},"):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if place == len(text) or (letter == "," and not depth):
            found.append(scalar_of(text[start:place]))
            start = place + 1
    return found


def scalar_of(text: str) -> Scalar:
    """Read an expression of C++ text.

    Raises:
        ValueError: a function or an operator that a schedule does not have.
    """
    if len(text) > _MAX_LETTERS:
        raise ValueError(f"an expression has {len(text)} letters, more than {_MAX_LETTERS}")
    text = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or "))
    try:
        return _scalar(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{text[:60]!r} is no expression") from None


def _scalar(node: ast.expr) -> Scalar:
    match node:
        case ast.Constant(value=int(value)):
            return int(value)
        case ast.Name(id=name):
            return symbol_of(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)], _scalar(left), _scalar(right)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _BINARY:
            return _BINARY[type(op)], _scalar(left), _scalar(right)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _BINARY:
            return _BINARY[type(op)], _scalar(operand)
        case ast.BoolOp(op=op, values=values):
            name = "min" if isinstance(op, ast.And) else "max"
            return name, *(("ne", _scalar(each), 0) for each in values)
        case ast.Call(func=ast.Name(id=name), args=operands):
            return CALLED.get(name, name), *map(_scalar, operands)
    raise ValueError(f"{ast.unparse(node)[:60]!r} is not understood")
