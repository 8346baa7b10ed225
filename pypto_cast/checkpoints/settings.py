"""The settings of a checkpoint's cast, of a TOML file and of the command line.

to = ["DT_BF16", "lm_head=DT_FP16"]     # a pattern is a regular expression, looked for in the name
include = []                            # only tensors with one of these
exclude = ["rotary"]
keep_fp32 = ["norm|router"]
mode = "CAST_NONE"
satmode = "ON"
tile = ["64,128"]
quantize = "int8"                       # fp8, mxfp8, mxfp4
strategy = "channel"                    # tensor, block
axis = 0
scale = "absmax"                        # percentile:99.9, mse
symmetric = true
dims = [2]                              # numbers of dimensions that are quantised
memory = "256MiB"
jobs = 8
shard_size = "4GiB"
report = true
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from pypto_cast.checkpoints.casting import CheckpointCast, choice_of, plan_checkpoint
from pypto_cast.checkpoints.code_formats import STRATEGIES
from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.checkpoints.scales import quantizing_of
from pypto_cast.dtypes.names import mode_named, satmode_named
from pypto_cast.report.text_format import tile_named
from tiling.input_files import toml_document

_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
}
_SIZE: Final = re.compile(r"(\d{1,15})\s*([KMGT]i?|)B?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of them, in the words in which they are given; see the head of this file."""

    to: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    keep_fp32: tuple[str, ...] = ()
    mode: str = "CAST_NONE"
    satmode: str = "ON"
    tile: tuple[str, ...] = ()
    quantize: str = ""
    strategy: str = STRATEGIES[0]
    axis: int = 0
    scale: str = "absmax"
    symmetric: bool = True
    dims: tuple[int, ...] = (2,)
    memory: str = "256MiB"
    jobs: int = 0
    shard_size: str = ""
    report: bool = True


SETTINGS: Final[Mapping[str, object]] = {one.name: one.default for one in fields(Settings)}
"""The default of each."""
_NEEDING: Final = {
    "to": ("mode", "satmode", "tile"),
    "quantize": ("strategy", "axis", "scale", "symmetric", "dims"),
}
"""Settings of plain casts and of codes, by the one that asks for these."""


def settings_of(config: Path | None, given: Mapping[str, Any]) -> Settings:
    """The settings of a file, over which those go that are given and not None or empty.

    Raises:
        OSError: the file cannot be read.
        ModuleNotFoundError: Python 3.10 has no TOML of its own, and tomli is not installed.
        ValueError: it is no TOML, or has a key that is unknown or of another type.
    """
    chosen = {} if config is None else _read(config)
    for key, value in given.items():
        if value is not None and value != []:
            chosen[key] = tuple(value) if isinstance(value, list) else value
    return Settings(**chosen)


def planned_by(source: Path, settings: Settings) -> CheckpointCast:
    """Open a checkpoint and plan the cast of its tensors; it raises as `plan_checkpoint` does."""
    if not settings.to and not settings.quantize:
        raise ValueError("there is nothing to do: name a dtype with --to, or ask for --quantize")
    for option, needing in _NEEDING.items():
        unused = [name for name in needing if getattr(settings, name) != SETTINGS[name]]
        if unused and not getattr(settings, option):
            raise ValueError(f"{unused[0]} is set, which changes nothing without --{option}")
    choice = choice_of(settings.to, settings.include, settings.exclude, settings.keep_fp32)
    quantizing = None
    if settings.quantize:
        quantizing = quantizing_of(
            settings.quantize,
            settings.axis,
            settings.scale,
            strategy=settings.strategy,
            symmetric=settings.symmetric,
            dims=settings.dims,
        )
    return plan_checkpoint(
        open_checkpoint(source),
        choice,
        mode_named(settings.mode),
        satmode_named(settings.satmode),
        [tile_named(entry) for entry in settings.tile],
        quantizing,
    )


def size_named(text: str, option: str) -> int:
    """`256MiB` as a number of bytes; kB are 1000 and KiB 1024 of them.

    Raises:
        ValueError: no size, or 0.
    """
    found = _SIZE.fullmatch(text.strip())
    units = {name.lower(): size for name, size in _UNITS.items()}
    size = int(found[1]) * units[found[2].lower()] if found else 0
    if size < 1:
        raise ValueError(f"{option} is a size as in 256MiB, not {text!r}")
    return size


def _read(path: Path) -> dict[str, Any]:
    read = toml_document(path)
    try:
        return {key: _checked(key, value) for key, value in read.items()}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _checked(key: str, value: object) -> object:
    """A value of the type of the default; of a list each of its entries."""
    if key not in SETTINGS:
        raise ValueError(f"unknown key {key!r}; known: {', '.join(SETTINGS)}")
    default = SETTINGS[key]
    if isinstance(default, tuple):
        kind = int if key == "dims" else str
        entries = [value] if isinstance(value, kind) else value
        if not isinstance(entries, list) or any(type(entry) is not kind for entry in entries):
            raise ValueError(f"{key} must be a list of {kind.__name__}, not {value!r}")
        return tuple(entries)
    if type(value) is not type(default):
        raise ValueError(f"{key} must be {type(default).__name__}, not {value!r}")
    return value
