"""The config of a sweep: a TOML file, checked whole before anything is computed.

shapes = [[1024, 512], [8192, 8192]]
pairs = [["DT_FP32", "DT_FP16"], ["DT_FP16", "DT_INT8"]]     # or "all"
modes = ["CAST_NONE"]           # from here on what holds if a line is left out; or "all"
satmodes = ["ON"]               # or "all"
chips = ["Ascend910B3"]         # or "all"
cost_set = "pto-isa-910b3"      # or a TOML file beside this one: "calibrated.toml"
objective = "time"              # or "ub", "robust"
top = 1                         # candidates per job
max_tiles = 18000
output = "sweep.jsonl"          # beside this file, named as it is
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final, TypeVar

from ascend_kernels.matrix import MATRIX, UnsupportedCastError
from ascend_kernels.vector_work import element_bits
from pypto_cast.cast.cast_plan import resolve_cast
from pypto_cast.dask_pool import code_version
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.dtypes.names import dtype_named, mode_named, satmode_named
from pypto_cast.tuning.sweep.jobs import Job, SweepJob, parameter_values
from tiling import cost
from tiling.chips import CHIPS, DEFAULT_CHIP, chip_named
from tiling.cost import DEFAULT_COST_SET
from tiling.cost_file import read_cost_set
from tiling.grid import Shape
from tiling.input_files import toml_document
from tiling.plan import check_shape
from tiling.ranking import OBJECTIVES, Objective
from tiling.search import MAX_TILES

_T = TypeVar("_T")
_Pair = tuple[DataType, DataType]
_ALL: Final = "all"
_KEYS: Final = (
    "shapes",
    "pairs",
    "modes",
    "satmodes",
    "chips",
    "cost_set",
    "objective",
    "top",
    "max_tiles",
    "output",
)


class SkippedJobsWarning(UserWarning):
    """A sweep has shapes that some of its pairs do not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A config, read.

    Attributes:
        jobs: every shape with every pair that takes it, mode, satmode and chip; the shape changes
            slowest. Or every kernel with every release and chip.
        output: the file of the results.
        inputs: the files that were read.
    """

    jobs: tuple[Job, ...]
    output: Path
    inputs: tuple[Path, ...]


def read_config(path: Path) -> Sweep:
    """Read the config of a sweep and list its jobs.

    Args:
        path: the file. Paths in it count from where it is.

    Raises:
        OSError: it, or the cost set that it names, cannot be read.
        ModuleNotFoundError: Python 3.10 has no TOML of its own, and tomli is not installed.
        ValueError: it is no TOML, a key is unknown or missing, a value has no meaning, a pair is
            outside the matrix, or no pair takes a shape: it is empty, too large, or odd where two
            elements share a byte. The text names the file.

    Warns:
        SkippedJobsWarning: a shape is not for all of the pairs; the text counts the jobs that are
            left out.
    """
    read = toml_document(path)
    try:
        return _sweep(path, read)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _sweep(path: Path, read: Mapping[str, Any]) -> Sweep:
    unknown = [key for key in read if key not in _KEYS]
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; known: {', '.join(_KEYS)}")
    shapes = listed(read, "shapes", shape_of)
    modes = listed(read, "modes", mode_named, tuple(CastMode), CastMode.CAST_NONE)
    satmodes = listed(read, "satmodes", satmode_named, tuple(SaturationMode), SaturationMode.ON)
    chips = listed(read, "chips", chip_of, tuple(CHIPS), DEFAULT_CHIP.name)
    pairs = listed(read, "pairs", _pair, _pairs_of(chips))
    costs = _cost_set(path, read.get("cost_set", DEFAULT_COST_SET.name))
    parameters = read_cost_set(costs) if isinstance(costs, Path) else cost.cost_set(costs)
    template = SweepJob(
        shape=shapes[0],
        src=pairs[0][0],
        dst=pairs[0][1],
        mode=modes[0],
        satmode=satmodes[0],
        chip=chips[0],
        objective=_objective(read.get("objective", OBJECTIVES[0])),
        top=count_of(read, "top", 1),
        max_tiles=count_of(read, "max_tiles", MAX_TILES),
        cost_set=parameters.name,
        figures=parameter_values(parameters),
        code=code_version(),
    )
    refusals = _refusals(shapes, pairs, chips)
    choices = tuple(itertools.product(modes, satmodes))
    if refusals:
        ((shape, (src, dst), _), reason) = next(iter(refusals.items()))
        total = len(shapes) * len(pairs) * len(chips)
        warnings.warn(
            f"{path}: {len(refusals) * len(choices)} of {total * len(choices)} jobs are left out, "
            f"the first for {list(shape)} {src} -> {dst}: {reason}",
            SkippedJobsWarning,
            stacklevel=3,
        )
    return Sweep(
        jobs=tuple(
            dataclasses.replace(
                template, shape=shape, src=src, dst=dst, mode=mode, satmode=satmode, chip=chip
            )
            for shape, (src, dst) in itertools.product(shapes, pairs)
            for (mode, satmode), chip in itertools.product(choices, chips)
            if (shape, (src, dst), chip) not in refusals
        ),
        output=path.parent / file_in("output", read.get("output", f"{path.stem}.jsonl")),
        inputs=(path, *([costs] if isinstance(costs, Path) else [])),
    )


def _pairs_of(chips: Sequence[str]) -> tuple[_Pair, ...]:
    """Every pair that one of the chips casts."""
    rules = (MATRIX.get(chip_named(chip).isa, {}).values() for chip in chips)
    named = ((rule.src.name, rule.dst.name) for rule in itertools.chain.from_iterable(rules))
    return tuple((dtype_named(src), dtype_named(dst)) for src, dst in dict.fromkeys(named))


def _refusals(
    shapes: Sequence[Shape], pairs: Sequence[_Pair], chips: Sequence[str]
) -> dict[tuple[Shape, _Pair, str], str]:
    """The reasons why chips do not cast pairs, or pairs do not take shapes.

    Raises:
        UnsupportedCastError: no chip casts a pair.
        ValueError: no pair takes a shape.
    """
    refusals: dict[tuple[Shape, _Pair, str], str] = {}
    for pair in pairs:
        bits, lacking = {}, {}
        for chip in chips:
            asked = (*pair, CastMode.CAST_NONE, SaturationMode.ON)
            try:
                bits[chip] = element_bits(resolve_cast(*asked, family=chip_named(chip).isa))
            except UnsupportedCastError as error:
                lacking[chip] = error
        if not bits:
            raise lacking[chips[0]]
        refusals |= {
            (shape, pair, chip): str(lacking[chip]) for shape in shapes for chip in lacking
        }
        for shape, chip in itertools.product(shapes, bits):
            try:
                check_shape(shape, bits[chip])
            except ValueError as error:
                refusals[shape, pair, chip] = str(error)
    for shape in shapes:
        found = [refusals.get((shape, pair, chip)) for pair in pairs for chip in chips]
        if all(found):
            src, dst = pairs[0]
            raise ValueError(f"{src} -> {dst}: {found[0]}")
    return refusals


def listed(
    read: Mapping[str, Any],
    key: str,
    entry: Callable[[object], _T],
    every: tuple[_T, ...] = (),
    default: _T | None = None,
) -> tuple[_T, ...]:
    """The entries under a key: each read by `entry`, or `every` one, or the default."""
    given = read.get(key)
    if given is None and default is not None:
        return (default,)
    if given is None:
        raise ValueError(f"{key} is missing; a sweep needs shapes and pairs")
    if given == _ALL and every:
        return every
    or_all = f', or "{_ALL}"' if every else ""
    if not isinstance(given, list):
        raise ValueError(f"{key} must be a list{or_all}, not {given!r}")
    if not given:
        raise ValueError(f"{key} is empty; name at least one{or_all}")
    entries = tuple(map(entry, given))
    for position, one in enumerate(entries):
        if one in entries[:position]:
            raise ValueError(f"{key} names {given[position]!r} twice")
    return entries


def shape_of(given: object) -> Shape:
    """A shape of a config."""
    if not isinstance(given, list) or any(
        isinstance(extent, bool) or not isinstance(extent, int) or extent < 1 for extent in given
    ):
        raise ValueError(f"a shape is 1 to 4 positive ints, as in [1024, 512]; got {given!r}")
    return tuple(given)


def _pair(given: object) -> _Pair:
    if not isinstance(given, list) or len(given) != 2:
        raise ValueError(f'a pair is two dtypes, as in ["DT_FP32", "DT_FP16"]; got {given!r}')
    return dtype_named(given[0]), dtype_named(given[1])


def chip_of(given: object) -> str:
    """The name of a chip of a config."""
    return chip_named(_text("a name", given)).name


def _cost_set(path: Path, given: object) -> str | Path:
    """A set by its name, or its file."""
    text = _text("cost_set", given)
    return path.parent / text if text.endswith(".toml") else text


def _objective(given: object) -> Objective:
    for objective in OBJECTIVES:
        if given == objective:
            return objective
    raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}; got {given!r}")


def count_of(read: Mapping[str, Any], key: str, default: int) -> int:
    """A number of at least 1 of a config."""
    given = read.get(key, default)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ValueError(f"{key} must be an int of at least 1, not {given!r}")
    return given


def file_in(key: str, given: object) -> str:
    """A path inside the config's folder, so that a config from others reaches no other file."""
    text = _text(key, given)
    asked = PureWindowsPath(text), PurePosixPath(text)
    if any(path.anchor or ".." in path.parts for path in asked):
        raise ValueError(f"{key} must be a file in the config's folder, not {text!r}")
    return text


def _text(what: str, given: object) -> str:
    if not isinstance(given, str) or not given:
        raise ValueError(f"{what} must be a text, not {given!r}")
    return given
