"""The pages of the operations, one each, made of their tables, docstrings and signatures."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain, product, zip_longest
from types import MappingProxyType
from typing import Any, Final

import pypto_cast
from docs.generators.markdown_text import table
from docs.generators.operation_examples import example
from docs.generators.operation_facts import (
    ALIKE,
    DTYPES,
    OWN_PARAMETERS,
    PARAMETERS,
    PARTS,
    RETURNS,
    STANDINGS,
    TITLES,
)
from pypto_cast import operations
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.indexed.indexed_rows import INDEXED_ROWS, IndexedRow
from pypto_cast.operations.lowering import axis_of, elementwise
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.options.context import defaults
from pypto_cast.options.releases import RELEASES
from simulator.arithmetic import OPERATIONS, Fidelity, Operation

_SECTION: Final = re.compile(r"^(Args|Returns|Raises|Warns):\n((?:    .*\n?|\n)+)", re.M)
_WIDTH: Final = 80
"""Characters of a prototype on one line."""
_ENTRY: Final = re.compile(r"^    (\S[^:]*): ((?:.|\n {8})*)", re.M)


def _names_of_group(module: str) -> list[str]:
    """The operations that a module of `pypto_cast.operations` defines."""
    functions = importlib.import_module(f"pypto_cast.operations.{module}")
    return [name for name in operations.__all__ if _home(name) == functions.__name__]


def _home(name: str) -> str:
    return inspect.unwrap(getattr(pypto_cast, name)).__module__


def _index(module: str) -> str:
    """The page of a group: its operations, and what each does."""
    rows = (
        (f"[{name}](../{name}.md)", _plain(_text(getattr(pypto_cast, name))[0]))
        for name in _names_of_group(module)
    )
    return "\n\n".join(
        (
            f"# {TITLES[module]}",
            "What holds for all of them, formats, AutoCast, sums, memory, is in "
            "[Operations around the cast](../../operations.md).",
            table(("operation", ""), rows) + "\n",
        )
    )


@cache  # a page is asked for in every language
def _page(name: str) -> str:
    function = getattr(pypto_cast, name)
    first, *others = _text(function)
    code = example(name)
    parts = [f"# {name}", _plain(first), *map(_plain, others)]
    parts += ["## Prototype", f"```text\npypto.{name}{_prototype(function)}\n```"]
    parts += ["## Parameters", table(("name", "type", "default", ""), _parameters(name))]
    parts += ["## Returns", _plain(_returns(name))]
    parts += ["## Constraints", *_constraints(name)]
    parts += ["## Fidelity", *_fidelity(name)]
    parts += ["## Example", f"```python\n{code}```", f"```text\n{_printed(code)}```"]
    return "\n\n".join(parts) + "\n"


def _prototype(function: Callable[..., object]) -> str:
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    shown = re.sub(r"<([\w.]+): [^>]+>", r"\1", shown)
    if len(shown) < _WIDTH:
        return shown
    inner, _, result = shown[1:].rpartition(") -> ")
    lines = re.sub(r", (?=\w+: |\*)", ",\n    ", inner)
    return f"(\n    {lines},\n) -> {result}"


def _text(function: Callable[..., object]) -> list[str]:
    """The docstring's paragraphs without its sections."""
    return _SECTION.sub("", inspect.getdoc(function) or "").strip().split("\n\n")


def _section(function: Callable[..., object], title: str) -> str:
    found = _SECTION.finditer((inspect.getdoc(function) or "") + "\n")
    return next((match[2] for match in found if match[1] == title), "")


def _entries(function: Callable[..., object], title: str) -> Iterator[tuple[str, str]]:
    for names, text in _ENTRY.findall(_section(function, title)):
        for name in names.split(", "):
            yield name, " ".join(text.split()).removesuffix(".")


def _parameters(name: str) -> Iterator[tuple[str, ...]]:
    alike = getattr(pypto_cast, ALIKE.get(name, name))
    meanings = {**PARAMETERS, **dict(_entries(alike, "Args"))}
    meanings.update({own: text for (of, own), text in OWN_PARAMETERS.items() if of == name})
    meanings.update(_entries(getattr(pypto_cast, name), "Args"))
    for parameter in inspect.signature(getattr(pypto_cast, name)).parameters.values():
        default = parameter.default
        shown = "" if default is parameter.empty else f"`{_default(default)}`"
        many = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        label = f"`{many}{parameter.name}`"
        yield label, f"`{parameter.annotation}`", shown, _plain(meanings[parameter.name])


def _default(value: object) -> str:
    return re.sub(r"<([\w.]+): [^>]+>", r"\1", repr(value))


def _returns(name: str) -> str:
    written = " ".join(_section(getattr(pypto_cast, name), "Returns").split())
    like = ALIKE.get(name, name)
    if like in ROWS and ROWS[like].arithmetic.gives_truth:
        return "A BOOL tensor of the broadcast shape."
    group = _home(name).removeprefix("pypto_cast.operations.")
    return written or (RETURNS[name] if name in RETURNS else RETURNS[group])


def _constraints(name: str) -> Iterator[str]:
    """The dtypes, and the errors: its own, then those of every elementwise operation."""
    like = ALIKE.get(name, name)
    dtypes = list(_dtypes(like))
    if dtypes:
        yield table(("", ""), dtypes)
    functions = [getattr(pypto_cast, name), getattr(pypto_cast, like)]
    if like in ROWS or like in PARTS:
        functions.append(elementwise)
    if like in ROWS and "dim" in inspect.signature(functions[0]).parameters:
        functions.append(axis_of)
    raised: dict[str, dict[str, None]] = {}
    for function, title in product(functions, ("Raises", "Warns")):
        for error, text in _entries(function, title):
            raised.setdefault(error, {})[_plain(text)] = None
    rows = ((f"`{error}`", "; ".join(texts)) for error, texts in raised.items())
    yield table(("raises, warns", "on"), rows)


def _dtypes(name: str) -> Iterator[tuple[str, str]]:
    if name in DTYPES:
        yield "dtypes", _joined(DTYPES[name])
    if name in ROWS:
        row = ROWS[name]
        if name not in DTYPES:
            yield "dtypes", _joined(row.dtypes)
        for title, lists in (
            ("runs in FP32 (AutoCast)", {r.name: r.run_in_fp32 for r in RELEASES.values()}),
            ("cast to FP32 inside", {r.name: r.cast_to_fp32 for r in RELEASES.values()}),
            ("taken besides", {r.name: r.takes for r in RELEASES.values()}),
            ("refused", {r.name: r.refuses for r in RELEASES.values()}),
        ):
            yield from _by_release(title, {each: by.get(name, ()) for each, by in lists.items()})
        if row.same_rank:
            yield "dimensions", "as many in each operand"
    if name in INDEXED_ROWS:
        indexed = INDEXED_ROWS[name]
        lists = {
            "dtypes": indexed.dtypes,
            "dtypes of indices": indexed.index_dtypes,
            "dtypes that are added": indexed.added,
        }
        yield from ((title, _joined(dtypes)) for title, dtypes in lists.items() if dtypes)


def _by_release(title: str, dtypes: Mapping[str, Iterable[DataType]]) -> Iterator[tuple[str, str]]:
    """One entry where all releases have the same dtypes, else one for each that has any."""
    texts = {release: ", ".join(sorted(d.name for d in each)) for release, each in dtypes.items()}
    if len(set(texts.values())) == 1:
        texts = {"": next(iter(texts.values()))}
    for release, text in texts.items():
        if text:
            yield f"{title}, release {release}" if release else title, text


def _joined(names: tuple[object, ...]) -> str:
    return ", ".join(str(name).removeprefix("DataType.") for name in names)


def _fidelity(name: str) -> Iterator[str]:
    like = ALIKE.get(name, name)
    facts: list[tuple[str, str]] = []
    if like in ROWS:
        facts += _of_operation(ROWS[like].arithmetic)
    elif like in INDEXED_ROWS:
        facts += _of_indexed(INDEXED_ROWS[like])
    elif like in PARTS:
        parts = [OPERATIONS[part] for part in PARTS[like]]
        weakest = max((part.fidelity for part in parts), key=list(Fidelity).index)
        facts.append(("fidelity", f"{weakest.value}, by its parts; casts are exact"))
    else:
        facts.append(("fidelity", STANDINGS[name]))
    facts.append(("upstream's page", f"`docs/zh/api/operation/pypto-{_upstream(name)}.md`"))
    yield table(("", ""), facts)
    if like in PARTS:
        yield table(
            ("part", "fidelity", "bound"),
            (
                (
                    f"[{part}]({part}.md)",
                    OPERATIONS[part].fidelity.value,
                    dict(_of_operation(OPERATIONS[part])).get("bound", ""),
                )
                for part in PARTS[like]
            ),
        )


def _upstream(name: str) -> str:
    """The operation whose page upstream has; it has none of `greater`."""
    return "gt" if name == "greater" else name


def _of_operation(arithmetic: Operation) -> Iterator[tuple[str, str]]:
    yield "fidelity", arithmetic.fidelity.value
    if arithmetic.bound is not None:
        ulps = ", ".join(f"{fmt.name} {count} ulp" for fmt, count in arithmetic.bound.ulps.items())
        yield "bound", f"{ulps}: {arithmetic.bound.source}"
    if arithmetic.assumes:
        yield "assumes", ", ".join(map(str, arithmetic.assumes))
    yield "instruction", arithmetic.instruction
    yield "source", arithmetic.source
    if arithmetic.tables:
        yield "boundary tables", ", ".join(map(str, arithmetic.tables))


def _of_indexed(row: IndexedRow) -> Iterator[tuple[str, str]]:
    yield "fidelity", row.fidelity.value
    if row.assumes:
        yield "assumes", ", ".join(sorted(map(str, row.assumes)))
    yield "instruction", row.instruction
    yield "source", row.source


def _plain(line: str) -> str:
    """The line with Markdown's signs escaped, but for code."""
    parts = line.split("`")
    escaped = [re.sub(r"([\[\]*<])", r"\\\1", part) for part in parts[::2]]
    both = chain.from_iterable(zip_longest(escaped, parts[1::2]))
    return "`".join(part for part in both if part is not None)


def _printed(code: str) -> str:
    shown = io.StringIO()
    with defaults(), warnings.catch_warnings(), contextlib.redirect_stdout(shown):
        warnings.simplefilter("error")
        exec(code, {"__name__": "page"})
    return shown.getvalue()


GROUPS: Final[Mapping[str, list[str]]] = MappingProxyType(
    {
        f"operations/{module.rpartition('.')[2]}/index.md": [
            f"operations/{name}.md" for name in _names_of_group(module)
        ]
        for module in TITLES
    }
)
"""The pages of operations by the page of their group, which mkdocs.yml names."""

PAGES: Final = MappingProxyType[str, Callable[[], str]](
    {
        **{page: partial(_index, module) for page, module in zip(GROUPS, TITLES, strict=True)},
        **{f"operations/{name}.md": partial(_page, name) for name in operations.__all__},
    }
)


def with_operations(nav: Any) -> Any:
    """A navigation of mkdocs with the operations below the page of their group."""
    if isinstance(nav, list):
        return [with_operations(entry) for entry in nav]
    if isinstance(nav, dict):
        return {title: with_operations(_group(entry)) for title, entry in nav.items()}
    return nav


def _group(entry: Any) -> Any:
    return [entry, *GROUPS[entry]] if isinstance(entry, str) and entry in GROUPS else entry
