"""Settings of a lint: the table [tool.pypto-cast.lint] of the nearest pyproject.toml."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pypto_cast.lint.checks import CHECKS, MANY_ELEMS
from tiling.input_files import toml_document

_FILE: Final = "pyproject.toml"
_KEYS: Final = ("select", "ignore", "exclude", "baseline", "many-elems")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintSettings:
    """Settings of a lint.

    Attributes:
        codes: of the checks that run.
        exclude: patterns of paths that are left out of folders.
        baseline: a file of findings that are not reported.
        many_elems: elements from which PC201 reports a sum.
        home: the folder of pyproject.toml: patterns are of paths in it too.
    """

    codes: frozenset[str] = frozenset(CHECKS)
    exclude: tuple[str, ...] = ()
    baseline: Path | None = None
    many_elems: int = MANY_ELEMS
    home: Path | None = None


def read_settings(folder: Path) -> LintSettings:
    """Returns the settings of the nearest pyproject.toml in a folder or above it.

    Raises:
        ValueError: the file is no TOML, or a setting is unknown or of another type; the text names
            the file and the setting.
    """
    home = folder.resolve()
    for each in (home, *home.parents):
        if (each / _FILE).is_file():
            return _settings(each / _FILE)
    return LintSettings()


def _settings(file: Path) -> LintSettings:
    document: Any = toml_document(file)
    for key in ("tool", "pypto-cast", "lint"):
        document = document.get(key, {}) if isinstance(document, dict) else None
        if not isinstance(document, dict):
            raise ValueError(f"{file}: [tool.pypto-cast.lint] is no table")
    if unknown := sorted(set(document) - set(_KEYS)):
        raise ValueError(
            f"{file}: [tool.pypto-cast.lint] has no {', '.join(unknown)}; it has {', '.join(_KEYS)}"
        )
    many = document.get("many-elems", MANY_ELEMS)
    if not isinstance(many, int) or isinstance(many, bool) or many < 1:
        raise ValueError(f"{file}: many-elems is a positive number, not {many!r}")
    baseline = document.get("baseline")
    if baseline is not None and not isinstance(baseline, str):
        raise ValueError(f"{file}: baseline is a path, not {baseline!r}")
    selected = _texts(file, document, "select") or tuple(CHECKS)
    ignored = _texts(file, document, "ignore")
    _check_codes([*selected, *ignored], str(file))
    return LintSettings(
        codes=frozenset(selected) - frozenset(ignored),
        exclude=_texts(file, document, "exclude"),
        baseline=None if baseline is None else file.parent / baseline,
        many_elems=many,
        home=file.parent,
    )


def _texts(file: Path, document: dict[str, Any], key: str) -> tuple[str, ...]:
    value = document.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{file}: {key} is a list of texts, not {value!r}")
    return tuple(value)


def _check_codes(codes: Iterable[str], where: str) -> None:
    """Refuses codes that no check has.

    Raises:
        ValueError: names them.
    """
    if unknown := sorted(set(codes) - set(CHECKS)):
        raise ValueError(
            f"{where}: no check is {', '.join(unknown)}; there are {', '.join(CHECKS)}"
        )
