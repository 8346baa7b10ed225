"""A cost set of the user's own, from a TOML file.

name = "calibrated"
base = "pto-isa-910b3"       # the set that gives what the file does not; the default without

standing = "chosen"          # of the sources: documented, inferred, chosen or measured

[figures]
read_startup_cycles = 251.0
read_bytes_per_cycle = 140.0

[sources]                    # where a figure comes from; "set by the user" without
read_startup_cycles = "msprof, 910B3, 20 runs"
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tiling.chips import Source, Standing
from tiling.cost import DEFAULT_COST_SET, STARTUP_RULE, CostParameters, cost_set
from tiling.input_files import toml_document

_KEYS: Final = ("name", "base", "standing", "figures", "sources")
_LEAST: Final = 1e-30
_MOST: Final = 1e30
"""Between these no product or ratio of figures, bytes and tiles leaves the range of a float."""


def read_cost_set(path: Path) -> CostParameters:
    """Read a cost set from a TOML file.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be read.
        ModuleNotFoundError: Python 3.10 has no TOML of its own, and tomli is not installed.
        ValueError: it is no TOML, has a key or a figure that is unknown, a figure that is no
            number, negative, below 1e-30 or above 1e30, or the name of a set that exists; the text
            names file and key.
    """
    read = toml_document(path)
    try:
        return cost_set_of(read)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def cost_set_of(read: Mapping[str, Any]) -> CostParameters:
    """Make a cost set of the content of a TOML file.

    Raises:
        ValueError: as `read_cost_set`.
    """
    unknown = [key for key in read if key not in _KEYS]
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; known: {', '.join(_KEYS)}")
    name, base = _text(read, "name", None), _text(read, "base", DEFAULT_COST_SET.name)
    standing = _standing(read)
    figures, sources = _table(read, "figures"), _table(read, "sources")
    for field, value in figures.items():
        if field == STARTUP_RULE:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"figure {field} must be a number, not {value!r}")
        if value > _MOST or 0 < value < _LEAST:
            found = reprlib.repr(value)
            raise ValueError(
                f"figure {field} must be 0 or from {_LEAST:g} to {_MOST:g}, is {found}"
            )
    made = cost_set(base).replaced(name, **figures)
    for field, text in sources.items():
        if field not in figures:
            raise ValueError(f"a source for {field}, which [figures] does not set")
        if not isinstance(text, str) or not text:
            raise ValueError(f"the source of {field} must be a text, not {text!r}")
    said = {f: Source(text=text, standing=standing) for f, text in sources.items()}
    return dataclasses.replace(made, sources=MappingProxyType({**made.sources, **said}))


def _standing(read: Mapping[str, Any]) -> Standing:
    text = _text(read, "standing", Standing.CHOSEN.value)
    known = {standing.value: standing for standing in Standing}
    if text not in known:
        raise ValueError(f"standing must be one of {', '.join(known)}, not {text!r}")
    return known[text]


def _text(read: Mapping[str, Any], key: str, default: str | None) -> str:
    value = read.get(key, default)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} must be a text, not {value!r}")
    return value


def _table(read: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = read.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be a table, [{key}], not {value!r}")
    return value
