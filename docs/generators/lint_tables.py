"""The tables of lint: the defaults of casts in each kernel language, and the checks."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from docs.generators.markdown_text import table
from pypto_cast.lint.checks import CHECKS
from pypto_cast.lint.dsl_casts import DSL_CASTS, Beyond
from tiling.chips import Standing

_HEADINGS: Final = (
    *("language", "cast", "to an integer", "to a narrower float", "beyond an integer"),
    *("beyond a float", "arguments that name them", "source"),
)
_HEADINGS_ZH: Final = (
    *("语言", "cast 写法", "转为整数", "转为更窄的浮点", "超出整数范围"),
    *("超出浮点范围", "指定它们的参数", "来源"),
)
_BEYOND_ZH: Final = {
    Beyond.CLAMPED: "饱和到上下限",
    Beyond.LOW_BITS: "取低位",
    Beyond.OPEN: "未定义",
}
_STANDING_ZH: Final = {Standing.DOCUMENTED: "文档", Standing.INFERRED: "推断"}


def _dsl_casts(headings: tuple[str, ...], chinese: bool) -> str:
    def cells(name: str) -> tuple[str, ...]:
        row = DSL_CASTS[name]
        named = [f"`{a}`" for a in (row.mode_argument, row.saturation_argument) if a]
        standing = row.origin.standing
        beyond = row.beyond
        return (
            name,
            f"`{row.call}`",
            str(row.to_integer),
            str(row.to_float),
            _BEYOND_ZH[beyond] if chinese else beyond.value,
            row.beyond_float,
            ", ".join(named) or ("无" if chinese else "none"),
            f"{_STANDING_ZH[standing] if chinese else standing.value}: {row.origin.text}",
        )

    return table(headings, map(cells, DSL_CASTS))


def _checks() -> str:
    return table(
        ("code", "finding", "remedy"), ((c.code, c.summary, c.remedy) for c in CHECKS.values())
    )


TABLES: Final = MappingProxyType[str, Callable[[], str]](
    {
        "dsl_casts": lambda: _dsl_casts(_HEADINGS, chinese=False),
        "dsl_casts_zh": lambda: _dsl_casts(_HEADINGS_ZH, chinese=True),
        "lint_checks": _checks,
    }
)
