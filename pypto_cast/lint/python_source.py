"""Reads Python sources of kernels without running them: the uses of tensors that checks look at.

Each function is walked in the order of its text, and again for each call that gives it tensors. A
name that branches set differently, or that a loop sets and reads from its pass before, is unknown
from there on.
"""

from __future__ import annotations

import ast
import dataclasses
import warnings
from collections.abc import Iterable, Mapping
from typing import Final

from pypto_cast.lint.dsl_casts import DSL_CASTS
from pypto_cast.lint.python_values import (
    INTEGERS,
    MOST,
    Dtype,
    Helper,
    Known,
    Path,
    Scope,
    as_dtype,
    attribute,
    below,
    created,
    defaults_of,
    effect_of,
    flat,
    has_stars,
    is_jit,
    language_of,
    language_of_kernel,
    mode_named,
    names_set,
    negated,
    positive_ints,
    same_shape,
    saturation_named,
    sets_tile,
    shape_given,
    sliced,
    summed_elems,
)
from pypto_cast.lint.tracked import (
    Cast,
    Comparison,
    DynamicOperation,
    Span,
    Sum,
    TiledOperation,
    Tracked,
    Unnamed,
    Use,
    framework_cast,
    result_of,
)
from pypto_cast.lint.vocabulary import (
    METHODS,
    PYPTO,
    Effect,
)
from simulator.numbers.formats import BOOL, INT32, FloatFormat, Format

_MOST_CALLS: Final = 300
"""Calls of functions of a file that are walked: where each calls the next twice, they are many."""
_MOST_DEPTH: Final = 8


def uses_in_python(text: str, name: str) -> list[Use]:
    """Returns the uses of tensors of a source, in the order of the text.

    Args:
        text: the source.
        name: of the file, for errors.

    Raises:
        ValueError: it is no Python, or is nested too deeply; the text says where.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of literals; they are no findings here
            tree = ast.parse(text)
        reader = _Reader(text)
        module = Scope()
        reader.add_helpers(tree.body, module)
        reader.walk(tree.body, module)
    except SyntaxError as error:
        place = f"{name}:{error.lineno or 1}:{error.offset or 1}"
        raise ValueError(f"{place}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"{name}: it is nested too deeply to be read") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return sorted(reader.uses, key=lambda use: (use.span.line, use.span.column))


class _Reader:
    """One walk over a source."""

    def __init__(self, text: str) -> None:
        self.uses: list[Use] = []
        self._lines = text.splitlines()
        self._kernel = ""
        self._language = ""
        self._loops = 0
        self._has_reported_dynamic = False
        self._returned: list[Known] = []
        self._helpers: list[Helper] = []
        self._calls = 0

    # --- Statements -----------------------------------------------------------------------------

    def add_helpers(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        """Name functions that are walked in a call; those of a module may be called before."""
        for each in body:
            if isinstance(each, ast.FunctionDef) and not each.decorator_list:
                scope.names[each.name] = Helper(node=each, scope=scope)

    def walk(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    whole = alias.name if alias.asname else bound
                    scope.names[bound] = Path(module=whole, name="")
            case ast.ImportFrom(module=module, names=names, level=0):
                for alias in names:
                    scope.names[alias.asname or alias.name] = below(
                        Path(module=module or "", name=""), alias.name
                    )
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, scope)
            case ast.Return(value=given):
                self._returned.append(None if given is None else self._value(given, scope))
            case ast.ClassDef(body=body):
                self.walk(body, Scope(scope))
            case ast.If(test=test, body=body, orelse=orelse):
                self._value(test, scope)
                self._branches((body, orelse), scope)
            case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
                self._value(iterated, scope)
                self._loop([target], [*body, *orelse], scope)
            case ast.While(test=test, body=body, orelse=orelse):
                self._loop([], [*body, *orelse], scope, test)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                self._branches(([*body, *orelse], *(each.body for each in handlers)), scope)
                self.walk(final, scope)
            case ast.With(items=items, body=body):
                for item in items:
                    value = self._value(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, value, scope)
                self.walk(body, scope)
            case ast.Assign(targets=targets, value=value):
                known = self._value(value, scope)
                for target in targets:
                    self._bind(target, known, scope)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._bind(target, self._value(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                old = self._value(target, scope)
                new = self._binary(node, op, old, self._value(value, scope), scope)
                self._bind(target, new, scope)
            case _:
                self._children(node, scope)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        decorators = [self._decorator(each, scope) for each in node.decorator_list]
        kernel = any(map(is_jit, decorators))
        inner = Scope(scope)
        inner.tile = None
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for each in every + [a for a in (arguments.vararg, arguments.kwarg) if a is not None]:
            annotated = None if each.annotation is None else self._value(each.annotation, scope)
            inner.names[each.arg] = annotated if isinstance(annotated, Tracked) else None
        for name, default in defaults_of(arguments):
            value = self._value(default, scope)
            if inner.names[name] is None and as_dtype(value) is not None:
                inner.names[name] = value  # a dtype= with a default is mostly left at it
        before = self._kernel, self._loops, self._has_reported_dynamic, self._returned
        language, self._language = self._language, language_of_kernel(decorators) or self._language
        self._kernel, self._loops, self._returned = (node.name if kernel else ""), 0, []
        self._has_reported_dynamic = False
        self.walk(node.body, inner)
        self._kernel, self._loops, self._has_reported_dynamic, self._returned = before
        self._language = language
        scope.names[node.name] = None
        self.add_helpers([node], scope)

    def _helped(self, helper: Helper, arguments: dict[str, Known], scope: Scope) -> Known:
        """The result of a function of the file, walked with the arguments of a call."""
        self._calls += 1
        inner, before = Scope(helper.scope), self._returned
        inner.names, inner.tile, self._returned = arguments, scope.tile, []
        self._helpers.append(helper)
        self.walk(helper.node.body, inner)
        self._helpers.pop()
        returned, self._returned = self._returned, before
        scope.tile = inner.tile
        first = returned[0] if returned else None
        return first if all(each == first for each in returned) else None

    def _decorator(self, node: ast.expr, scope: Scope) -> Known:
        return self._value(node.func if isinstance(node, ast.Call) else node, scope)

    def _branches(self, bodies: Iterable[list[ast.stmt]], scope: Scope) -> None:
        """Walks bodies of which one runs; names that they set otherwise are unknown then."""
        layers = [Scope(scope) for _ in bodies]
        for layer, body in zip(layers, bodies, strict=True):
            self.walk(body, layer)
        for name in {name for layer in layers for name in layer.names}:
            values = [layer.get(name) for layer in layers]
            scope.names[name] = values[0] if all(v == values[0] for v in values) else None
        if any(layer.tile != scope.tile for layer in layers):
            same = all(layer.tile == layers[0].tile for layer in layers)
            scope.tile = layers[0].tile if same else None

    def _loop(
        self,
        targets: list[ast.expr],
        body: list[ast.stmt],
        scope: Scope,
        test: ast.expr | None = None,
    ) -> None:
        layer = Scope(scope)
        for name in names_set([*targets, *body]):
            layer.names[name] = None
        if any(sets_tile(each) for each in body):
            layer.tile = None
        if test is not None:
            self._value(test, layer)
        self._loops += 1
        self.walk(body, layer)
        self._loops -= 1
        for name, value in layer.names.items():
            scope.names[name] = value if scope.get(name) == value else None
        if layer.tile != scope.tile:
            scope.tile = None

    def _bind(self, target: ast.expr, value: Known, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                values = value if isinstance(value, tuple) else ()
                for place, element in enumerate(elements):
                    fits = len(values) == len(elements)
                    self._bind(element, values[place] if fits else None, scope)
            case ast.Starred(value=inner):
                self._bind(inner, None, scope)
            case _:
                self._children(target, scope)

    def _children(self, node: ast.AST, scope: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child, scope)
            elif isinstance(child, ast.stmt):
                self._statement(child, scope)
            else:
                self._children(child, scope)

    # --- Expressions ----------------------------------------------------------------------------

    def _value(self, node: ast.expr, scope: Scope) -> Known:
        match node:
            case ast.Constant(value=int() | float() | str() as value):
                return value
            case ast.Name(id=name):
                return scope.get(name)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return tuple(flat(self._value(each, scope)) for each in elements)
            case ast.Attribute(value=owner, attr=name):
                return attribute(self._value(owner, scope), name)
            case ast.BinOp(left=left, op=op, right=right):
                first = self._value(left, scope)
                return self._binary(node, op, first, self._value(right, scope), scope)
            case ast.UnaryOp(op=op, operand=operand):
                return negated(op, self._value(operand, scope))
            case ast.Compare(left=left, comparators=others):
                operands = [self._value(each, scope) for each in (left, *others)]
                return self._compared(node, operands)
            case ast.Subscript(value=owner, slice=index):
                return self._subscript(self._value(owner, scope), index, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._value(test, scope)
                first, second = self._value(body, scope), self._value(orelse, scope)
                return first if first == second else None
            case ast.NamedExpr(target=target, value=value):
                known = self._value(value, scope)
                scope.names[target.id] = known
                return known
            case ast.Call():
                return self._call(node, scope)
            case ast.Lambda(body=body):
                inner = Scope(scope)
                inner.names.update(dict.fromkeys(a.arg for a in node.args.args))
                self._value(body, inner)
                return None
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                inner = Scope(scope)
                inner.names.update(dict.fromkeys(names_set(g.target for g in node.generators)))
                self._children(node, inner)
                return None
            case _:
                self._children(node, scope)
                return None

    def _binary(
        self, node: ast.AST, op: ast.operator, first: Known, second: Known, scope: Scope
    ) -> Known:
        if isinstance(first, int) and isinstance(second, int):
            compute = INTEGERS.get(type(op))
            if compute is None or (second == 0 and isinstance(op, ast.FloorDiv)):
                return None
            number = compute(int(first), int(second))
            return number if abs(number) < MOST else None
        tensors = [each for each in (first, second) if isinstance(each, Tracked)]
        if not tensors:
            return None
        self._operation(node, type(op).__name__.lower(), tensors)
        for each in tensors:
            self._tiled(node, each, each.format, scope)
        known = {each.format for each in tensors if each.format is not None}
        others = [each for each in (first, second) if not isinstance(each, (Tracked, int, float))]
        floats = [fmt for fmt in known if isinstance(fmt, FloatFormat)]
        if floats and (others or len(known) > 1):
            # A float and an unknown operand give a float of some width.
            return Tracked(format=max(floats, key=lambda fmt: fmt.bits))
        if others or len(known) != 1 or len(tensors) < sum(x is not None for x in (first, second)):
            shape = tensors[0].shape if len(tensors) == 1 else None
            return Tracked(format=known.pop() if len(known) == 1 else None, shape=shape)
        return Tracked(format=known.pop(), shape=same_shape(tensors))

    def _subscript(self, owner: Known, index: ast.expr, scope: Scope) -> Known:
        inner = self._value(index, scope)
        if isinstance(owner, Path):  # pypto.Tensor[[...], dtype]
            effect = effect_of(owner)
            parts = inner if isinstance(inner, tuple) else (inner,)
            return created(parts, {}) if effect is Effect.CREATE else None
        if isinstance(owner, Tracked):
            shape = sliced(owner.shape, index)
            return dataclasses.replace(owner, shape=shape, is_dynamic=False, is_open=False)
        if isinstance(owner, tuple) and isinstance(inner, int):
            return owner[inner] if -len(owner) <= inner < len(owner) else None
        return None

    def _compared(self, node: ast.AST, operands: Iterable[Known]) -> Known:
        tensors = tuple(each for each in operands if isinstance(each, Tracked))
        if not tensors:
            return None
        self.uses.append(Comparison(span=self._span(node), operands=tensors))
        return Tracked(format=BOOL, is_integral=True)

    # --- Calls ----------------------------------------------------------------------------------

    def _call(self, node: ast.Call, scope: Scope) -> Known:
        owner = None
        if isinstance(node.func, ast.Attribute):
            owner = self._value(node.func.value, scope)
            function = attribute(owner, node.func.attr)
            method = node.func.attr
        else:
            function, method = self._value(node.func, scope), ""
        plain = [each.value if isinstance(each, ast.Starred) else each for each in node.args]
        given = [self._value(each, scope) for each in plain]
        named = {each.arg or "": self._value(each.value, scope) for each in node.keywords}
        if isinstance(function, Helper) and not has_stars(node):
            inner = self._inner(function, given, named)
            if inner is not None:
                return self._helped(function, inner, scope)
        if isinstance(function, Path):
            language, effect = language_of(function), effect_of(function)
        elif isinstance(function, Dtype) and function.language == "tilelang":  # T.int8(x)
            language, effect, given = function.language, Effect.CAST, [*given[:1], function]
        else:
            language, effect = "", METHODS.get(method)
            if effect is None or (owner is None and effect is not Effect.CAST):
                self._opaque(function, method, owner, scope)
                if isinstance(node.func, ast.Name) and "equal" in node.func.id:
                    return self._compared(node, given)
                return None
            given = [owner, *given]
        if effect is None:
            if language not in PYPTO:
                self._opaque(function, method, owner, scope)
            return None
        if effect is Effect.TILE:
            parts = given[0] if len(given) == 1 and isinstance(given[0], tuple) else tuple(given)
            scope.tile = positive_ints(parts)
            return None
        return self._applied(node, language, effect, given, named, scope)

    def _inner(
        self, helper: Helper, given: list[Known], named: Mapping[str, Known]
    ) -> dict[str, Known] | None:
        """The arguments of a function that is walked for a call; None: it is not."""
        values = [*given, *named.values()]
        is_known = not values or any(isinstance(each, Tracked) for each in values)
        is_few = self._calls < _MOST_CALLS and len(self._helpers) < _MOST_DEPTH
        if not (is_known and is_few) or helper in self._helpers:
            return None
        return helper.arguments(given, named)

    def _opaque(self, function: Known, method: str, owner: Known, scope: Scope) -> None:
        """A function that the text does not show may set the tile shape."""
        if not method or function is not None:
            scope.tile = None

    def _applied(
        self,
        node: ast.Call,
        language: str,
        effect: Effect,
        given: list[Known],
        named: Mapping[str, Known],
        scope: Scope,
    ) -> Known:
        tensors = [each for each in (*given, *named.values()) if isinstance(each, Tracked)]
        first = tensors[0] if tensors else Tracked()
        name = getattr(node.func, "attr", getattr(node.func, "id", "a call"))
        if effect not in (Effect.PART, Effect.CREATE, Effect.LOOP, Effect.TRUTH):
            self._operation(node, name, tensors)
        match effect:
            case Effect.CAST_TO:
                source = named.get("value", given[1] if len(given) > 1 else None)
                return self._cast(node, language, [source, *given[:1]], named, scope)
            case Effect.CAST:
                return self._cast(node, language, given, named, scope)
            case Effect.CAST_INTO | Effect.COPY:
                return self._cast_into(node, effect, name, given, named, scope)
            case Effect.PART:
                return dataclasses.replace(
                    first, shape=shape_given(given[1:], named), is_dynamic=False, is_open=False
                )
            case Effect.CREATE:
                return created(given, named)
            case Effect.INTEGERS:
                return Tracked(format=INT32, is_integral=True)
            case Effect.TRUTH:
                return self._compared(node, [*given, *named.values()])
            case Effect.MULTIPLY:
                dtypes = [x for x in (*given, *named.values()) if isinstance(x, Dtype)]
                return Tracked(format=dtypes[0].format) if dtypes else None
            case Effect.SUM:
                return self._sum(node, first, given, named)
            case Effect.INTEGRAL:
                return Tracked(
                    format=first.format,
                    shape=first.shape,
                    is_integral=True,
                    has_floor=first.has_floor,
                    has_cap=first.has_cap,
                )
            case Effect.CLAMP | Effect.FLOOR | Effect.CAP:
                return Tracked(
                    format=first.format,
                    shape=first.shape,
                    is_integral=first.is_integral,
                    has_floor=first.has_floor or effect is not Effect.CAP,
                    has_cap=first.has_cap or effect is not Effect.FLOOR,
                )
            case Effect.ELEMENTWISE | Effect.FLOAT:
                self._tiled(node, first, first.format, scope)
                formats = {each.format for each in tensors}
                fmt = formats.pop() if len(formats) == 1 else None
                return Tracked(format=fmt, shape=same_shape(tensors))
            case _:
                return None

    def _cast(
        self,
        node: ast.Call,
        language: str,
        given: list[Known],
        named: Mapping[str, Known],
        scope: Scope,
    ) -> Known:
        source = given[0] if given else named.get("input")
        wanted = as_dtype(named.get("dtype", given[1] if len(given) > 1 else None))
        if wanted is None:
            return None
        tracked = source if isinstance(source, Tracked) else Tracked()
        language = language or wanted.language or self._language
        row_of_dsl = DSL_CASTS.get(language)
        if row_of_dsl is None:
            return framework_cast(tracked, wanted.format, self._span(node).line)
        saturation = named.get("satmode", given[3] if len(given) > 3 else Unnamed.DEFAULT)
        saturation = named.get("overflow_mode", saturation)
        is_pypto = language in PYPTO
        mode = named.get("mode", given[2] if is_pypto and len(given) > 2 else Unnamed.DEFAULT)
        if not is_pypto and isinstance(wanted.format, FloatFormat):
            mode = named.get("fp_downcast_rounding", mode)
        if "overflow_mode" in named:
            row_of_dsl = DSL_CASTS["triton-ascend"]
        cast = Cast(
            span=self._span(node),
            dsl=row_of_dsl,
            source=tracked,
            to=wanted.format,
            mode=mode_named(mode),
            saturation=saturation_named(saturation),
        )
        return self._add_cast(node, cast, scope)

    def _cast_into(
        self,
        node: ast.Call,
        effect: Effect,
        name: str,
        given: list[Known],
        named: Mapping[str, Known],
        scope: Scope,
    ) -> Known:
        """A cast between buffers, whose dtypes they were made with."""
        into_first = effect is Effect.CAST_INTO and name == "cast"
        places = (0, 1) if into_first else (1, 0)
        if len(given) < 2:
            return None
        target, source = (given[place] for place in places)
        node_of_target = node.args[places[0]]
        if isinstance(target, Tracked) and isinstance(source, Tracked) and target.format:
            row, mode = DSL_CASTS["tilelang-ascend"], named.get("mode", Unnamed.DEFAULT)
            if into_first and len(given) > 2:
                mode = given[2]
            elif effect is Effect.COPY:
                row = DSL_CASTS["tilelang"]
            elif not into_first:
                row = DSL_CASTS["tilelang-mlir-ascend"]
                mode = named.get("round_mode", given[3] if len(given) > 3 else Unnamed.DEFAULT)
            if source.format is not None and source.format is not target.format:
                cast = Cast(
                    span=self._span(node),
                    dsl=row,
                    source=source,
                    to=target.format,
                    mode=mode_named(mode),
                    saturation=Unnamed.DEFAULT,
                )
                written: Known = self._add_cast(node, cast, scope)
            else:
                written = dataclasses.replace(source, format=target.format, shape=target.shape)
            if isinstance(node_of_target, ast.Name):
                scope.names[node_of_target.id] = written
        return None

    def _add_cast(self, node: ast.AST, cast: Cast, scope: Scope) -> Tracked:
        self.uses.append(cast)
        self._tiled(node, cast.source, cast.to, scope)
        return result_of(cast)

    def _sum(
        self, node: ast.AST, source: Tracked, given: list[Known], named: Mapping[str, Known]
    ) -> Tracked:
        elems = summed_elems(source, given, named)
        self.uses.append(Sum(span=self._span(node), source=source, elems=elems))
        return Tracked(format=source.format)

    # --- Operations of a kernel -----------------------------------------------------------------

    def _operation(self, node: ast.AST, name: str, tensors: Iterable[Tracked]) -> None:
        if not self._kernel or self._loops or self._has_reported_dynamic:
            return
        if any(each.is_dynamic for each in tensors):
            self._has_reported_dynamic = True
            self.uses.append(
                DynamicOperation(span=self._span(node), operation=name, kernel=self._kernel)
            )

    def _tiled(self, node: ast.AST, source: Tracked, to: Format | None, scope: Scope) -> None:
        shape = source.shape
        if shape is not None:  # -1 is DYNAMIC
            shape = tuple(x if x is not None and x > 0 else None for x in shape)
        is_told = shape is not None or source.is_open
        if scope.tile and is_told and source.format is not None and to is not None:
            self.uses.append(
                TiledOperation(
                    span=self._span(node),
                    source=source.format,
                    to=to,
                    shape=shape,
                    tile=scope.tile,
                )
            )

    def _span(self, node: ast.AST) -> Span:
        line, bytes_before = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        column = len(text.encode()[:bytes_before].decode(errors="replace")) + 1
        last = getattr(node, "end_lineno", line)
        return Span(line=line, column=column, last_line=last)
