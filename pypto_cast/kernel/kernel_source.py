"""The function of a kernel: its parameters, and those it writes, its arguments, refused statements.

Tensors come first, as annotated, then anything else. Parameters count as written on any path,
whether or not a run comes by there.
"""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pypto_cast.call_sites import Place
from pypto_cast.dtypes.data_types import TileOpFormat, dtype_of_numpy
from pypto_cast.error import ParserError, error_of
from pypto_cast.options.releases import RELEASES
from pypto_cast.recording.recording import Recording
from pypto_cast.tensors.arguments import TensorAnnotation, codes_held
from pypto_cast.tensors.arrays import array_of, check_contiguous
from pypto_cast.tensors.nz_layout import matrices_in
from pypto_cast.tensors.symbolic import Symbol
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.tensors.undecided import KernelNumber
from tiling.grid import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The parameters of a kernel.

    Attributes:
        kernel: its name.
        tensors: annotations of its tensor parameters by name, in order.
        others: the parameters that follow, by name.
    """

    kernel: str
    tensors: Mapping[str, TensorAnnotation]
    others: Mapping[str, inspect.Parameter]

    def split(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Split the arguments of a call into tensors and others.

        Raises:
            TypeError: arguments are missing, too many, unknown, or a tensor is given by name.
        """
        count = len(self.tensors)
        by_name = [name for name in self.tensors if name in named]
        if by_name or len(arguments) < count:
            wanted = ", ".join(self.tensors)
            raise TypeError(
                f"{self.kernel} takes {count} tensors by position ({wanted}), as upstream's "
                f"kernels do; it got {len(arguments)} arguments by position"
                + (f" and {', '.join(by_name)} by name" if by_name else "")
            )
        rest = arguments[count:]
        if len(rest) > len(self.others) or set(named) - set(self.others):
            raise TypeError(
                f"{self.kernel} takes {', '.join(self.others) or 'nothing'} after its tensors; it "
                f"got {len(rest)} more arguments by position and {sorted(named)} by name"
            )
        values = dict(zip(self.others, rest, strict=False))
        if twice := sorted(set(values) & set(named)):
            raise TypeError(f"{self.kernel} got {', '.join(twice)} twice")
        for name, value in (*values.items(), *named.items()):
            if hasattr(value, "__array__") and not isinstance(value, KernelNumber):
                raise TypeError(
                    f"{self.kernel}: {name} is an array ({type(value).__name__}); annotate it as "
                    f"{name}: pypto.Tensor[...]"
                )
        values.update(named)
        for name, parameter in self.others.items():
            if name not in values and parameter.default is inspect.Parameter.empty:
                raise TypeError(f"{self.kernel} misses its argument {name}")
        return list(arguments[:count]), values

    def check_dimensions(self, shapes: Mapping[str, Shape]) -> None:
        """Compare dimensions that have the same name.

        Raises:
            ValueError: two of them differ in length.
        """
        lengths: dict[str, tuple[str, int]] = {}
        for name, annotation in self.tensors.items():
            for entry, length in zip(annotation.shape, shapes[name], strict=False):
                if isinstance(entry, Symbol):
                    before, known = lengths.setdefault(entry.name, (name, length))
                    if known != length:
                        raise ValueError(
                            f"{self.kernel}: dimension {entry.name} is {known} in {before} and "
                            f"{length} in {name}"
                        )


def signature_of(function: Callable[..., None], names: Mapping[str, Any]) -> Signature:
    """Read the annotations of a function.

    Args:
        function: the kernel.
        names: local names where it is defined, for annotations that are strings.

    Raises:
        TypeError: no tensor parameter, one after another kind of parameter, `*args` or `**kwargs`,
            or a string annotation with names that are not there.
    """
    tensors: dict[str, TensorAnnotation] = {}
    others: dict[str, inspect.Parameter] = {}
    kernel = getattr(function, "__name__", "kernel")
    try:
        found = inspect.get_annotations(function, locals=names, eval_str=True)
    except NameError as error:
        raise TypeError(
            f"{kernel}: the annotations cannot be read ({error}); define what they name before the "
            "kernel, or leave `from __future__ import annotations` out, as upstream needs"
        ) from error
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            text = f"{kernel}: a kernel has no {parameter}; name each parameter"
            raise error_of(ParserError, TypeError, text)
        annotation = _tensor_annotation(found.get(name))
        if annotation is None:
            others[name] = parameter
        elif others:
            raise TypeError(
                f"{kernel}: tensor {name} comes after {', '.join(others)}; tensors come first"
            )
        else:
            tensors[name] = annotation
    if not tensors:
        raise TypeError(
            f"{kernel} has no tensor parameter: annotate them, as in "
            "x: pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32]"
        )
    return Signature(kernel=kernel, tensors=tensors, others=others)


def _tensor_annotation(annotation: object) -> TensorAnnotation | None:
    """`Tensor[...]`, upstream's older `Tensor(...)` or plain `Tensor`; None if it is no tensor."""
    if isinstance(annotation, Tensor):
        return annotation.annotation
    if annotation is Tensor:
        return TensorAnnotation()
    return annotation if isinstance(annotation, TensorAnnotation) else None


REFUSED: Final = frozenset(
    (
        *("AsyncFor", "AsyncFunctionDef", "AsyncWith", "ClassDef", "Global", "Import"),
        *("ImportFrom", "Match", "Nonlocal", "Return", "Try", "TryStar", "With"),
    )
)
"""Statements that no parser of upstream's takes in a kernel; nor an `else` of a loop.

Source: upstream pypto, `python/pypto/frontend/parser/parser.py` at r0.2.0 and 883e7dfb0, and
`python/pypto/pil/parser.py` at 883e7dfb0: the methods `_visit_*` and `visit_*`.
"""
REFUSED_IN_LOOPS: Final = frozenset(("Break", "Continue"))
"""Statements that none of them takes in the body of a `pypto.loop`."""
LOOPS: Final = ("loop", "loop_unroll")
"""The names of such loops, which tell them before the kernel runs."""


BEFORE_NEW_IR: Final = "new_ir=False"
_PARSERS: Final[Mapping[str, AbstractSet[str]]] = {
    **{name: each.lacks_statements for name, each in RELEASES.items()},
    BEFORE_NEW_IR: RELEASES["0.2.0"].lacks_statements - {"AnnAssign"},
}
"""Statements that one parser of upstream's lacks, by release; that of the head's `new_ir=False`."""
Parsers = frozenset[str]


@functools.lru_cache(maxsize=128)
def refused_statements(
    function: Callable[..., Any], loops_at: frozenset[Place] = frozenset()
) -> tuple[tuple[Place, str, Parsers], ...]:
    """The statements of a function that upstream refuses in a kernel.

    Args:
        function: the function.
        loops_at: the lines of `for` statements that were loops of a kernel, by whatever name.

    Returns:
        For each its place, the reason with its first line, and the parsers that refuse it.

    A function whose source cannot be read, which upstream cannot compile, has none.
    """
    lines, first, tree = parsed(function)
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.FunctionDef) else ()
    file = inspect.getfile(function) if body else ""
    loop_lines = [line - first + 1 for at, line in loops_at if at == file]
    found = list(_refused(body, loop_lines, in_loop=False))
    return tuple(
        ((file, first + each.lineno - 1), _reason(each, lines[each.lineno - 1].strip()), parsers)
        for each, parsers in found
    )


def _reason(statement: ast.stmt, line: str) -> str:
    kind = type(statement).__name__
    if kind in ("For", "While") and getattr(statement, "orelse", []):
        kind = "An else of a loop"
    why = "Return statements are not allowed"
    if kind != "Return":
        why = f"{kind} is not supported by the PTO parser"
    return f"upstream refuses `{line}` in a kernel: {why}"


@functools.lru_cache(maxsize=32)
def parsed(function: Callable[..., object]) -> tuple[list[str], int, ast.Module]:
    """The lines of a function, the number of the first, and their tree; empty without a source."""
    try:
        lines, first = inspect.getsourcelines(function)
        return lines, first, ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return [], 0, ast.Module(body=[], type_ignores=[])


@functools.lru_cache(maxsize=32)
def names_assigned(function: Callable[..., object]) -> tuple[tuple[str, range], ...]:
    """The names that a function assigns to, with the lines of each assignment."""
    _, first, tree = parsed(function)
    statements = (each for each in ast.walk(tree) if isinstance(each, ast.Assign))
    return tuple(
        (target.id, range(node.lineno + first - 1, (node.end_lineno or node.lineno) + first))
        for node in sorted(statements, key=lambda each: each.lineno)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def named_at_end(
    assignments: Iterable[tuple[str, range]],
    lines: Mapping[int, int],
    read_at: Mapping[int, AbstractSet[int]],
) -> set[int]:
    """The values that a name stands for at the end.

    Args:
        assignments: names with their lines, as of `names_assigned`.
        lines: of each value the line that makes it.
        read_at: of each value the lines that read it.
    """
    names = {}
    for name, within in assignments:
        for value, line in lines.items():
            if line in within and read_at.get(value, set()).isdisjoint(within):
                names[name] = value
    return set(names.values())


def _refused(
    body: Sequence[ast.stmt], loop_lines: Collection[int], *, in_loop: bool
) -> Iterator[tuple[ast.stmt, Parsers]]:
    for statement in body:
        kind, is_loop = type(statement).__name__, isinstance(statement, ast.For | ast.While)
        alternative = getattr(statement, "orelse", [])
        if kind in REFUSED or (in_loop and kind in REFUSED_IN_LOOPS) or (is_loop and alternative):
            yield statement, frozenset(_PARSERS)
        elif names := [name for name, lacks in _PARSERS.items() if kind in lacks]:
            yield statement, frozenset(names)
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        within = _is_kernel_loop(statement, loop_lines) if is_loop else in_loop
        yield from _refused(getattr(statement, "body", []), loop_lines, in_loop=within)
        yield from _refused(alternative, loop_lines, in_loop=in_loop)


def _is_kernel_loop(statement: ast.stmt, loop_lines: Collection[int]) -> bool:
    """True if a statement is a `for` over `pypto.loop(...)`, or was one in a run."""
    if not isinstance(statement, ast.For):
        return False
    called, last = statement.iter, statement.iter.end_lineno or statement.lineno
    if any(statement.lineno <= line <= last for line in loop_lines):
        return True
    if not isinstance(called, ast.Call):
        return False
    return getattr(called.func, "attr", getattr(called.func, "id", "")) in LOOPS


def reassigned(function: Callable[..., Any], names: Collection[str]) -> tuple[str, Place] | None:
    """The first of some parameters that a function assigns to, and where; None without one.

    The variable of a `for` statement and of a comprehension is no assignment, as upstream has it.
    It reads the bytecode, which a function that was typed in or piped has too.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    lines, line, before = dict(dis.findlinestarts(code)), code.co_firstlineno, ""
    variables = {s.argval for s in dis.get_instructions(code) if s.opname == "LOAD_FAST_AND_CLEAR"}
    for step in dis.get_instructions(code):
        line = lines.get(step.offset) or line
        if step.opname.startswith(("STORE_FAST", "STORE_DEREF")) and before != "FOR_ITER":
            stored = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            for name in stored[:1] if step.opname.endswith("LOAD_FAST") else stored:
                if name in names and name not in variables:
                    return name, (code.co_filename, line)
        before = step.opname
    return None


_WRITERS: Final[Mapping[str, tuple[int, str]]] = {
    "assemble": (-1, "out"),
    "atomic_add": (-1, "dst"),
    "index_put_": (0, "input"),
    "scatter_": (0, "input"),
}
"""Operations that write to an operand: its position and its name."""
_METHODS: Final = ("__setitem__", "assemble", "fill_", "move", "scatter_")
"""Methods that write to their tensor."""
_OURS: Final = __name__.partition(".")[0]
_OF_SCOPES: Final = ("eval", "exec", "globals", "locals", "vars")
"""Python's own functions that reach a variable without its name in the source."""
_SCOPES: Final = (ast.ClassDef, ast.Global)
"""Statements that make variables of a function into those of something else."""
_GIVES_NO_TENSOR: Final = (
    *(abs, bool, divmod, float, hash, id, int, isinstance, len, pow, print, range, repr, round),
    str,
)
_CALLS_OR_HIDES: Final = (filter, getattr, map, setattr, type)
"""Python's own functions that call their arguments, or reach a method by another name."""
_READERS: Final = (
    *(ast.Assert, ast.Compare, ast.Expr, ast.FormattedValue, ast.If, ast.JoinedStr, ast.Slice),
    ast.While,
)
"""Expressions and statements that write to none of their operands and hand none on."""
_HOLDERS: Final = (
    *(ast.BoolOp, ast.GeneratorExp, ast.List, ast.ListComp, ast.Set, ast.SetComp, ast.Starred),
    ast.Tuple,
)
"""Expressions that pass on their operands."""

_Known = dict[object, frozenset[str]]


def written_parameters(function: Callable[..., object]) -> frozenset[str]:
    """Find the parameters that a function writes to, or hands to a call that may.

    A name that stands for a parameter, or for what an operation returns of it, which may be the
    parameter itself, counts as the parameter. One that goes to a call that is not known may be
    written. Functions that can be told by their name, and methods of modules and classes, are
    looked into. Where there is no source, or it reaches variables by text, all may be.
    """
    return _written(function, {})


def _written(function: Callable[..., object], found: _Known) -> frozenset[str]:
    function = inspect.unwrap(function)
    if function in found:
        return found[function]
    parameters = frozenset(inspect.signature(function).parameters)
    found[function] = parameters  # where it calls itself
    lines, _, tree = parsed(function)
    if not lines:
        return parameters
    scope = inspect.getclosurevars(function)
    names = {**scope.builtins, **scope.globals, **scope.nonlocals}
    nodes = list(ast.walk(tree))  # each before its parts
    if any(isinstance(node, _SCOPES) or getattr(node, "id", "") in _OF_SCOPES for node in nodes):
        return parameters
    bases = {id(x.value) for x in nodes if isinstance(x, ast.Subscript) and not _loads(x)}
    assigned = [x for x in nodes if isinstance(x, ast.Assign) and isinstance(x.value, _HOLDERS)]
    lists = {each.id for x in assigned for each in x.targets if isinstance(each, ast.Name)}
    source = _Source(names=names, parameters=parameters, lists=lists, found=found)
    while True:  # until no more names are found that may be written
        read: set[int] = set()
        for node in nodes:
            read.update(map(id, source.read(node, is_read=id(node) in read)))
        rest = [x for x in nodes if isinstance(x, ast.Name) and _loads(x) and id(x) not in read]
        written, handed_on = {x.id for x in rest}, {x.id for x in rest if id(x) not in bases}
        if written == source.written and handed_on == source.handed_on:
            found[function] = parameters & written
            return found[function]
        source.written, source.handed_on = written, handed_on


def _loads(node: ast.Name | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Load)


class _Source:
    """The source of a function, and the names in it that may be written.

    Args:
        names: values by name, of what is not local.
        parameters: of the function.
        lists: names of what holds other things.
        found: the parameters that functions write to.

    Attributes:
        written: names that may be written, as far as that was found.
        handed_on: those of them that are more than overwritten in parts.
    """

    def __init__(
        self,
        *,
        names: Mapping[str, Any],
        parameters: frozenset[str],
        lists: set[str],
        found: _Known,
    ) -> None:
        self.written, self.handed_on = set[str](), set[str]()
        self._names, self._parameters, self._lists, self._found = names, parameters, lists, found

    def read(self, node: ast.AST, *, is_read: bool) -> Iterator[ast.AST]:
        """Finds the parts of a node that it reads and neither writes to nor hands on.

        Args:
            node: an expression or a statement.
            is_read: it is such a part itself, so that what it hands on is too.
        """
        if isinstance(node, ast.Call):
            yield from self._read_by_call(node, is_read)
        elif isinstance(node, ast.Subscript):
            yield node.slice
            if is_read:
                yield node.value
        elif isinstance(node, ast.Attribute):
            is_fact = inspect.isdatadescriptor(getattr(Tensor, node.attr, None))
            if is_fact or (is_read and node.attr not in _METHODS and node.attr[:2] != "__"):
                yield node.value
        elif isinstance(node, ast.Assign):
            if all(map(self._keeps_apart, node.targets)):
                yield node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            if self._keeps_apart(node.target):
                yield node.iter
        elif isinstance(node, ast.AugAssign):
            if not self._holds(node.value) or self._keeps_apart(node.target):
                yield node.value
        elif isinstance(node, ast.BinOp):
            if is_read or not (self._holds(node.left) or self._holds(node.right)):
                yield from (node.left, node.right)
        elif isinstance(node, ast.IfExp):
            yield from (node.test, node.body, node.orelse) if is_read else (node.test,)
        elif isinstance(node, ast.UnaryOp):
            if is_read or not isinstance(node.op, ast.UAdd):
                yield node.operand
        elif isinstance(node, _READERS) or (is_read and isinstance(node, _HOLDERS)):
            yield from ast.iter_child_nodes(node)

    def _holds(self, node: ast.AST) -> bool:
        """True if a sum or a multiple of it holds the same things."""
        return isinstance(node, _HOLDERS) or getattr(node, "id", None) in self._lists

    def _keeps_apart(self, target: ast.AST) -> bool:
        """True if the value that a target gets is not written by way of the target.

        A part of a tensor takes over the elements; a list would keep what it is given.
        """
        if isinstance(target, (ast.List, ast.Tuple)):
            return all(map(self._keeps_apart, target.elts))
        if isinstance(target, ast.Name):
            return target.id not in self.written
        if not isinstance(target, ast.Subscript):
            return False
        owners = {node.id for node in ast.walk(target.value) if isinstance(node, ast.Name)}
        return not owners & (self.handed_on | self._names.keys()) - self._parameters

    def _read_by_call(self, node: ast.Call, is_read: bool) -> Iterator[ast.AST]:
        called, named = node.func, {each.arg: each.value for each in node.keywords}
        function, written = self._value(called), node.args[:0]
        if function is None and isinstance(called, ast.Attribute):
            function = getattr(Tensor, called.attr, None)  # it writes to its own tensor alone
            if is_read:
                yield called
        elif _is_ours(function):
            name = getattr(function, "__name__", "")
            position, keyword = _WRITERS.get(name, (0 if name in _METHODS else len(node.args), ""))
            written = [named[keyword]] if keyword in named else node.args[position:][:1]
        if not callable(function) or any(isinstance(each, ast.Starred) for each in node.args):
            return
        if getattr(builtins, getattr(function, "__name__", ""), None) is function:
            if function in _CALLS_OR_HIDES or "key" in named:
                return
            is_read = is_read or function in _GIVES_NO_TENSOR
        elif _is_ours(function):
            returned = getattr(function, "__annotations__", {}).get("return", Tensor)
            is_read = is_read or "Tensor" not in str(returned)
        elif inspect.isfunction(inspect.unwrap(function)):
            may, is_read = _written(function, self._found), True
            parameters = list(inspect.signature(inspect.unwrap(function)).parameters)
            if len(node.args) > len(parameters) or not set(named) <= set(parameters):
                return
            given = [*zip(parameters, node.args, strict=False), *named.items()]
            written = [value for parameter, value in given if parameter in may]
        else:
            return
        if is_read:
            yield from (x for x in (*node.args, *named.values()) if x not in written)

    def _value(self, node: ast.AST) -> Any:
        """The value of a name, or of an attribute of a module or a class; None: not known."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self._value(node.value), node.attr, None)
        return None


def _is_ours(function: Any) -> bool:
    """True for an operation, which writes to the operand that `_WRITERS` names."""
    module = str(getattr(inspect.unwrap(function), "__module__", "")) if callable(function) else ""
    return module.partition(".")[0] == _OURS


def outermost(
    label: str, name: str, value: Any, annotation: TensorAnnotation, running: Recording
) -> Tensor:
    """An array of the user as the kernel sees it."""
    if isinstance(value, Tensor) and not value.has_data:
        raise TypeError(f"{label} is declared without values; a kernel is called with arrays")
    held = value.enclosure() if isinstance(value, Tensor) else None
    array = array_of(value if held is None else held.values, label)
    interval = None if held is None else held.interval
    check_contiguous(array, label)
    if array.dtype == np.uint8 and annotation.dtype is not None:
        array = codes_held(array, annotation.dtype)
    if annotation.format is TileOpFormat.TILEOP_NZ:
        laid_out = functools.partial(matrices_in, dimensions=len(annotation.shape))
        array = laid_out(array)
        interval = None if interval is None else interval.map(laid_out)
    dtype = dtype_of_numpy(array.dtype)
    annotation.check(label, array.shape, dtype)
    declared = Tensor._from_result(array.shape, dtype, name)
    buffer = running.parameter(name, array, value, interval)
    return declared.as_parameter(name, buffer, annotation)


def inner(
    name: str, value: Tensor, annotation: TensorAnnotation, running: Recording, *, is_nested: bool
) -> Tensor:
    """A tensor of the kernel around, or one that is only declared, to look at the program."""
    value.check_content()
    held = None if is_nested else value.enclosure()
    if is_nested:
        buffer = value.writable()
    elif held is not None:
        buffer = running.parameter(name, held.values, value)
    else:
        buffer = running.local(name, tuple(value.shape), is_given=True)
    return value.as_parameter(name, buffer, annotation, is_nested=is_nested)
