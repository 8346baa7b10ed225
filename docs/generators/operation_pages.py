"""The pages of the operations, one each, made of their tables, docstrings and signatures."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import chain, product, zip_longest
from types import MappingProxyType
from typing import Any, Final

import pypto_cast
from docs.generators.argument_words import ARGUMENTS_ZH
from docs.generators.markdown_text import table
from docs.generators.operation_examples import example
from docs.generators.operation_words import (
    CHINESE,
    ENGLISH,
    PARAMETERS_ZH,
    RETURNS_ZH,
    SUMMARIES_ZH,
    TITLES_ZH,
    PageWords,
)
from docs.generators.table_words import in_chinese
from pypto_cast import operations
from pypto_cast.operations.elementwise_plan import elementwise
from pypto_cast.operations.lowering import axis_of
from pypto_cast.operations.operation_rows import ROWS, OperationRow
from pypto_cast.options.context import defaults
from pypto_cast.options.releases import RELEASES
from simulator.arithmetic import OPERATIONS, Operation

_SAME: Final = "A tensor of the operands' dtype and broadcast shape."
_REDUCED: Final = (
    "A tensor of the input's dtype without the dimension; with `keepdim` it has one element."
)
_GROUPS: Final = {
    "elementwise_functions": ("Elementwise arithmetic", _SAME),
    "truth_and_bits": ("Comparisons, truth and bits", _SAME),
    "reduction_functions": ("Reductions", _REDUCED),
    "composites": ("Composites and rounding", "A tensor of the input's dtype and shape."),
    "special_functions": (
        "Powers and special functions",
        "A tensor of the input's dtype and shape.",
    ),
    "creation": ("Creation", "A new tensor."),
    "random_numbers": ("Random numbers", ""),
    "movement": ("Movement", "A new tensor of the input's dtype."),
    "padding": ("Padding", "A new tensor of the input's dtype."),
    "quantization": ("Quantisation", ""),
    "gathering": ("Reading by index", ""),
    "scattering": ("Writing by index", ""),
    "additions": ("Adding by index and in place", ""),
    "sorting": ("Sorting and running sums", ""),
    "matrix_functions": ("Products of matrices", ""),
    "convolution": ("Convolution", ""),
}
"""By module: a title, and the result where a docstring says none."""
TITLES: Final = MappingProxyType({module: title for module, (title, _) in _GROUPS.items()})
_OPERAND: Final = "an operand of the dtypes below"
PARAMETERS: Final = {
    **dict.fromkeys(("input", "a", "self", "input1", "first"), _OPERAND),
    **dict.fromkeys(("other", "input2", "second"), "the other operand; shapes broadcast"),
    "dim": "the dimension; a negative one counts from the last",
    "keepdim": "whether the dimension stays, with one element",
    "precision_type": "upstream's; it changes no bit on A2/A3",
    "dtype": "of the result",
    "valid_shape": "the part of the result that holds data; by default all of it",
    "size": "the extents, as ints or one list of them",
}
"""Parameters that mean the same in every operation whose docstring does not say them."""
_SECTION: Final = re.compile(r"^(Args|Returns|Raises|Warns):\n((?:    .*\n?|\n)+)", re.M)
_WIDTH: Final = 80
"""Characters of a prototype on one line."""
_ENTRY: Final = re.compile(r"^    (\S[^:]*): ((?:.|\n {8})*)", re.M)


def _names_of_group(module: str) -> list[str]:
    """The operations that a module of `pypto_cast.operations` defines."""
    return [name for name in operations.__all__ if _home(name) == module]


def _home(name: str) -> str:
    return ROWS[name].function.__module__.rpartition(".")[2]


def _index(module: str, words: PageWords) -> str:
    """The page of a group: its operations, each with a description."""
    title = TITLES[module] if words is ENGLISH else TITLES_ZH[module]
    rows = (
        (f"[{name}](../{name}.md)", _plain(_summaries(name, words)[0]))
        for name in _names_of_group(module)
    )
    first, heading = words.group
    return "\n\n".join((f"# {title}", first, table((heading, ""), rows) + "\n"))


def _page(name: str, words: PageWords) -> str:
    function = getattr(pypto_cast, name)
    prototype, parameters, returns, constraints, fidelity, shown = words.headings
    code, printed = _example(name)
    parts = [f"# {name}", *map(_plain, _summaries(name, words))]
    parts += [f"## {prototype}", f"```text\npypto.{name}{_prototype(function)}\n```"]
    parts += [f"## {parameters}", table(words.of_parameters, _parameters(name, words))]
    given = result_of(name)
    parts += [f"## {returns}", _plain(given if words is ENGLISH else RETURNS_ZH[given])]
    for title, tables in (
        (constraints, _constraints(name, words)),
        (fidelity, _fidelity(name, words)),
    ):
        parts.append(f"## {title}")
        parts += tables if words is ENGLISH else map(in_chinese, tables)
    parts += [f"## {shown}", f"```python\n{code}```", f"```text\n{printed}```"]
    return "\n\n".join(parts) + "\n"


def _summaries(name: str, words: PageWords) -> list[str]:
    """The paragraphs at the start of the page of an operation."""
    if words is ENGLISH:
        return _text(getattr(pypto_cast, name))
    return [SUMMARIES_ZH[name], words.note]


@cache  # in every language it is the same
def _example(name: str) -> tuple[str, str]:
    code = example(name)
    return code, _printed(code)


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


def arguments_of(name: str) -> dict[str, str]:
    """The arguments that an operation's docstring describes, or that of the one it is like."""
    functions = (getattr(pypto_cast, function) for function in (_row(name).name, name))
    return dict(chain.from_iterable(_entries(function, "Args") for function in functions))


def _parameters(name: str, words: PageWords) -> Iterator[tuple[str, ...]]:
    meanings = dict(PARAMETERS if words is ENGLISH else PARAMETERS_ZH)
    for parameter, text in arguments_of(name).items():
        meanings[parameter] = text if words is ENGLISH else ARGUMENTS_ZH[text]
    for parameter in inspect.signature(getattr(pypto_cast, name)).parameters.values():
        default = parameter.default
        shown = "" if default is parameter.empty else f"`{_default(default)}`"
        many = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        label = f"`{many}{parameter.name}`"
        yield label, f"`{parameter.annotation}`", shown, _plain(meanings[parameter.name])


def _default(value: object) -> str:
    return re.sub(r"<([\w.]+): [^>]+>", r"\1", repr(value))


def _row(name: str) -> OperationRow:
    """The row of an operation, or of the one whose arguments it shares."""
    return ROWS[ROWS[name].like or name]


def _is_elementwise(row: OperationRow) -> bool:
    return row.name in OPERATIONS and not row.parts


def result_of(name: str) -> str:
    """An English sentence: the result of an operation."""
    row = _row(name)
    if _is_elementwise(row) and row.arithmetic.gives_truth:
        return "A BOOL tensor of the broadcast shape."
    if inspect.signature(getattr(pypto_cast, name)).return_annotation == "None":
        return "Nothing: it writes to an argument."
    sections = (_section(getattr(pypto_cast, each), "Returns") for each in (name, row.name))
    written = " ".join(next(filter(None, sections), "").split())
    return written or _GROUPS[_home(name)][1]


def _constraints(name: str, words: PageWords) -> Iterator[str]:
    """The dtypes, and the errors: its own, then those of every elementwise operation."""
    row = _row(name)
    dtypes = list(_dtypes(row))
    if dtypes:
        yield table(("", ""), dtypes)
    functions = [getattr(pypto_cast, name), getattr(pypto_cast, row.name)]
    if row.name in OPERATIONS or row.parts:
        functions.append(elementwise)
    if _is_elementwise(row) and "dim" in inspect.signature(functions[0]).parameters:
        functions.append(axis_of)
    raised: dict[str, dict[str, None]] = {}
    for function, title in product(functions, ("Raises", "Warns")):
        for error, text in _entries(function, title):
            raised.setdefault(error, {})[_plain(text)] = None
    rows = ((f"`{error}`", "; ".join(texts)) for error, texts in raised.items())
    yield table(words.of_errors, rows)


def _dtypes(row: OperationRow) -> Iterator[tuple[str, str]]:
    for title, listed in (
        ("dtypes", row.dtypes),
        ("dtypes of indices", row.index_dtypes),
        ("dtypes that are added", row.added),
    ):
        texts = {family: ", ".join(d.name for d in dtypes) for family, dtypes in listed.items()}
        yield from _where_they_differ(title, "on", texts)
    for title, by_release in (
        ("runs in FP32 (AutoCast)", row.run_in_fp32),
        ("cast to FP32 inside", row.cast_to_fp32),
        ("taken besides", row.takes),
        ("refused", row.refuses),
    ):
        found = {name: sorted(d.name for d in by_release.get(name, ())) for name in RELEASES}
        texts = {release: ", ".join(names) for release, names in found.items()}
        yield from _where_they_differ(title, "release", texts)
    if row.lacked_by:
        yield "not in release", ", ".join(row.lacked_by)
    if row.same_rank:
        yield "dimensions", "as many in each operand"


def _where_they_differ(
    title: str, kind: str, texts: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """One entry where all are the same, else one for each that has any."""
    if len(set(texts.values())) == 1:
        texts = {"": next(iter(texts.values()))}
    for name, text in texts.items():
        if text:
            yield f"{title}, {kind} {name}" if name else title, text


def _fidelity(name: str, words: PageWords) -> Iterator[str]:
    row = _row(name)
    if row.parts:
        reason = row.remark or "by its parts; casts are exact"
        facts = [("fidelity", f"{row.weakest.value}, {reason}")]
    else:
        facts = list(_of_operation(row.arithmetic) if _is_elementwise(row) else _of_row(row))
    facts.append(("standing", row.standing.value))
    facts.append(("upstream's page", f"`docs/zh/api/operation/pypto-{ROWS[name].name}.md`"))
    yield table(("", ""), facts)
    if row.parts:
        yield table(
            words.of_parts,
            (
                (
                    f"[{part}]({part}.md)",
                    OPERATIONS[part].fidelity.value,
                    dict(_of_operation(OPERATIONS[part])).get("bound", ""),
                )
                for part in row.parts
            ),
        )


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


def _of_row(row: OperationRow) -> Iterator[tuple[str, str]]:
    yield "fidelity", ": ".join(filter(None, (row.fidelity.value, row.remark)))
    if row.assumes:
        yield "assumes", ", ".join(sorted(map(str, row.assumes)))
    if row.instruction:
        yield "instruction", row.instruction
    if row.origin:
        yield "source", row.origin


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


GROUPS: Final[Mapping[str, list[str]]] = {
    f"operations/{module}/index.md": [f"operations/{name}.md" for name in _names_of_group(module)]
    for module in TITLES
}
"""The pages of operations by the page of their group, which mkdocs.yml names."""

PAGES: Final = MappingProxyType[str, Callable[[], str]](
    {
        f"{path.removesuffix('.md')}{suffix}": partial(write, words)
        for suffix, words in ((".md", ENGLISH), (".zh.md", CHINESE))
        for path, write in (
            *((page, partial(_index, module)) for page, module in zip(GROUPS, TITLES, strict=True)),
            *((f"operations/{name}.md", partial(_page, name)) for name in operations.__all__),
        )
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
