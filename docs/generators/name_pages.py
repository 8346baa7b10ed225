"""The page that leads from names of numpy and torch to those of pypto, in English and Chinese.

The rows are data; which operations there are, and which are a tensor's methods, is the table of
operations. A test compares the names of numpy and torch with those packages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from docs.generators.markdown_text import table
from pypto_cast.operations.operation_rows import ROWS

_SAME: Final = (
    *("abs", "acosh", "add", "amax", "amin", "arange", "argmax", "argmin", "argsort", "asinh"),
    *("atanh", "ceil", "copysign", "cos", "cosh", "cumprod", "cumsum", "exp"),
    *("exp2", "expm1", "floor", "fmod", "full", "gcd", "hypot", "isfinite", "isnan", "log"),
    *("log10", "log1p", "log2", "logical_and", "logical_not", "matmul", "maximum", "minimum"),
    *("ones", "prod", "remainder", "reshape", "round", "sign", "signbit", "sin", "sinh"),
    *("sqrt", "sum", "tan", "tanh", "tril", "triu", "trunc", "var", "where", "zeros"),
)
"""Names that pypto has as numpy or torch does."""
_OTHER: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "acos": ("arccos", "acos"),
        "asin": ("arcsin", "asin"),
        "assemble": ("x[a:b] = y", "x[a:b] = y"),
        "atan": ("arctan", "atan"),
        "atan2": ("arctan2", "atan2"),
        "bitwise_left_shift": ("left_shift", "bitwise_left_shift"),
        "bitwise_not": ("invert", "bitwise_not"),
        "bitwise_right_shift": ("right_shift", "bitwise_right_shift"),
        "cast": ("astype", "to"),
        "ceil_div": ("", ""),
        "cbrt": ("cbrt", ""),
        "clip": ("clip", "clamp"),
        "clone": ("copy", "clone"),
        "concat": ("concatenate", "cat"),
        "div": ("divide", "div"),
        "eq": ("equal", "eq"),
        "erf": ("", "erf"),
        "erfc": ("", "erfc"),
        "expand_clone": ("broadcast_to", "expand"),
        "floor_div": ("floor_divide", "floor_divide"),
        "gather": ("take_along_axis", "gather"),
        "ge": ("greater_equal", "ge"),
        "gt": ("greater", "gt"),
        "index_add": ("add.at", "index_add"),
        "index_put_": ("x[i] = y", "index_put"),
        "index_select": ("take", "index_select"),
        "le": ("less_equal", "le"),
        "logical_or": ("logical_or", "logical_or"),
        "lrelu": ("", "nn.functional.leaky_relu"),
        "lt": ("less", "lt"),
        "mul": ("multiply", "mul"),
        "ne": ("not_equal", "ne"),
        "neg": ("negative", "neg"),
        "one_hot": ("", "nn.functional.one_hot"),
        "pad": ("pad", "nn.functional.pad"),
        "permute": ("transpose", "permute"),
        "pow": ("power", "pow"),
        "prelu": ("", "nn.functional.prelu"),
        "reciprocal": ("reciprocal", "reciprocal"),
        "relu": ("", "relu"),
        "rms_norm": ("", "nn.functional.rms_norm"),
        "rsqrt": ("", "rsqrt"),
        "scatter": ("put_along_axis", "scatter"),
        "sigmoid": ("", "sigmoid"),
        "softmax": ("", "softmax"),
        "sort32": ("", ""),
        "sub": ("subtract", "sub"),
        "topk": ("", "topk"),
        "transpose": ("swapaxes", "transpose"),
        "unsqueeze": ("expand_dims", "unsqueeze"),
        "view": ("x[a:b]", "x[a:b]"),
    }
)
"""Those of numpy and of torch where they are others; empty where there is none."""
_BESIDE: Final = ("cast", "view", "assemble")
"""Names of pypto's that have no row in the table of operations."""

_TEXTS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "en": (
        "# Names of numpy and torch",
        "An operation of pypto's is a function, `pypto.exp(x)`; those marked are methods of a "
        "tensor too, `x.exp()`. Arguments and results may differ: the page of each operation says "
        "how. `pypto-cast operations NAME` prints dtypes, bounds and special values.",
        ("numpy", "torch", "pypto", "method"),
    ),
    "zh": (
        "# numpy 与 torch 名称对照",
        "pypto 的操作是函数，如 `pypto.exp(x)`；标有“是”的也是 Tensor 的方法，"
        "如 `x.exp()`。参数和结果可能不同，以各操作的页面为准。"
        "`pypto-cast operations NAME` 给出数据类型、误差界和特殊值的结果。",
        ("numpy", "torch", "pypto", "方法"),
    ),
}
_YES: Final = {"en": "yes", "zh": "是"}


def rows() -> Iterator[tuple[str, str, str]]:
    """The names of numpy, torch and pypto, in pypto's order."""
    names = {**{name: (name, name) for name in _SAME}, **_OTHER}
    for name in sorted(names):
        if name in ROWS or name in _BESIDE:
            yield (*names[name], name)


def page(language: str) -> str:
    """The page in a language, "en" or "zh"."""
    title, text, headings = _TEXTS[language]
    cells = (
        (
            f"`{of_numpy}`" if of_numpy else "",
            f"`{of_torch}`" if of_torch else "",
            f"[{name}](operations/{name}.md)" if name in ROWS else f"`{name}`",
            _YES[language] if name not in ROWS or ROWS[name].is_method else "",
        )
        for of_numpy, of_torch, name in rows()
    )
    return f"{title}\n\n{text}\n\n{table(headings, cells)}\n"


PAGES: Final = {"names.md": partial(page, "en"), "names.zh.md": partial(page, "zh")}
"""By their paths in docs/."""
