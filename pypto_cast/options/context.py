"""Tile shapes and options of the current context.

They live in a context variable: threads and asyncio tasks do not see each other's, unlike
upstream's, which are global to the process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

import numpy as np

from ascend_kernels.matrix import READ_OTHERWISE, CastControls, Resolution
from ascend_kernels.npu import RunMode
from pypto_cast.call_sites import warn_caller
from pypto_cast.dtypes.data_types import SaturationMode
from pypto_cast.loading import entry
from pypto_cast.options.hints import (
    GLOBAL,
    GROUPS,
    Hints,
    by_name,
    check_ranges,
    checked_choice,
    checked_count,
    checked_flag,
    merged,
)
from pypto_cast.options.releases import RELEASE_NAMES, RELEASES, Release, ReleaseName
from simulator.arithmetic.trust import CHOICES, Trust
from simulator.corrections import NO_CORRECTIONS, Corrections, Readings, corrections_of
from simulator.corrections import merged as merged_readings
from simulator.machine.cast_table import (
    CTRL_BITS,
    CTRL_CAST,
    CTRL_GLOBAL,
    CTRL_INT,
    CTRL_NAN,
)
from simulator.machine.execute import FIDELITIES, Fidelity
from simulator.machine.pipes import COPY_COMPLETIONS, CopyCompletion
from simulator.numbers import engines, result_memory
from tiling.chips import DEFAULT_CHIP, Chip, chip_named
from tiling.cost import DEFAULT_COST_SET, CostParameters
from tiling.plan import MAX_DIMS, TileShapeError

if TYPE_CHECKING:  # loaded when a schedule is used
    from ascend_kernels.schedule.schedule import Schedule

MAX_THREADS: Final = 16
_MAX_ENTRIES: Final = MAX_DIMS + 1
"""Of a tile shape: `pypto.conv` has a tensor of one more dimension, and others take the leading."""
Engine = Literal["auto", "native", "numpy", "twin"]
ENGINES: Final[tuple[Engine, ...]] = get_args(Engine)
TrustName = Literal["default", "documented", "ieee"]
AutoCast = Literal["as upstream", "every op"]
SatmodeName = Literal["seed", "upstream"]
Settings = Mapping[str, Any]


class MeasuredDevice(Protocol):
    """The facts of a device in the form that the simulator takes."""

    @property
    def corrections(self) -> Corrections:
        """The casts that the device carries out in its own way."""

    @property
    def cost_set(self) -> CostParameters | None:
        """The default set with the figures that were measured; None: none was."""

    def standing(self, casts: Iterable[Resolution], *, is_computed: bool = False) -> str:
        """The standing of a result of casts, or computed with them; `str` gives that of any."""

    def chip_for(self, asked: str | None) -> str:
        """The chip to plan for, the measured one; ValueError if another one is asked for."""

    def trusting(self, trust: Trust) -> Trust:
        """The trust with measured facts in place of assumed ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that a cast reads from its context.

    Attributes:
        vec_tile_shapes: as set by the user; empty if never set.
        strict: what upstream would replace or tolerate in silence is an error.
        inf_nan_mode: FP16 and BF16 results keep infinities and NaN, the A2/A3 default (CTRL[48]=1);
            False saturates them: overflow and infinity become the largest number, NaN becomes +0.
            On the 950 that holds of FP8 and HF8 too. The default is a choice there as well: CANN
            asc-devkit's page of boundary values has 1, SetCtrlSpr, table 3, 0.
        fp8_nan: CTRL[50] of the 950: NaN stays in E5M2 and E4M3FN where results saturate; False,
            its default, makes it +0. Documented: SetCtrlSpr, table 3.
        int_saturation: CTRL[53] of the 950: integer arithmetic clamps; False, its default, keeps
            low bits. Documented there. No cast depends on it.
        cast_saturation: CTRL[59] of a cast that names no satmode: False keeps the low bits of an
            integer, as SaturationMode.OFF; True, its default, leaves the choice to `satmode`. The
            bit and its default are documented there; that a named satmode sets the bit: pto-isa.
        global_saturation: CTRL[60] of the 950: CTRL[48] and CTRL[59] decide; False has the SatMode
            of each instruction decide, for floats too: ON saturates, OFF keeps infinities and NaN.
            The bit and its default, True, are documented there, table 4; that `satmode` is the
            SatMode, and that `fp8_nan` counts then too, are choices.
        readings: the readings, other than the default ones, of results that public texts of the 950
            give differently, by name and value; `simulator.corrections` has both texts of each.
        chip: whose UB and cores the plan is made for, UB without `simt_bytes`.
        simt_bytes: UB that SIMT takes as its data cache, 32 to 128 KiB on the 950; 0: none.
        fidelity: "fast" takes all tiles of a cast together; "instructions" executes every
            instruction of its tile program, of a kernel those of its planned schedule. The bits
            are the same, but for what the order of a schedule's sums decides.
        copy_completion: at fidelity "instructions", copies complete as late as the flags allow
            ("latest") or as early ("earliest"). The bits are the same.
        exact: convert by the definition instead of the fast paths. The bits are the same.
        threads: 1 to 16 threads share a cast at fidelity "fast".
        kept_bytes: memory of results that are gone kept for coming ones, by the whole process, once
            a result that was made under this option is gone; `release_memory` gives it back.
        engine: "native", "numpy", "twin" or "auto": compiled loops, the numpy paths, the AscendC
            kernel itself compiled for this machine (in `cast` only, numpy elsewhere), or the
            compiled loops where they are there and numpy otherwise; at fidelity "fast" and not
            `exact`. The bits are the same.
        trust: the facts of a device's arithmetic taken for granted: "documented" widens each named
            assumption to a bound; "ieee" takes div and sqrt as correctly rounded.
        assume: names of assumptions that hold besides: ASSUME_CUBE_RNE, ASSUME_CUBE_HF32.
        auto_cast: "as upstream": an operation on BF16 or FP16 that the release runs in FP32 gives
            the next such operation its FP32 value; "every op" rounds after each, in any release.
        release: upstream's release that operations follow: its AutoCast, and what it takes.
        satmode: the satmode of a `cast` that names none: "seed" ON, "upstream" OFF; None:
            upstream's where this package was imported as `pypto` (`as_pypto`), else the seed's.
        run_mode: NPU in a kernel that asks for it where a device answers; its casts are launched
            there, whatever fidelity and engine say.
        hints: what upstream's compiler is told; no bit depends on it.
        facts: the measured device that casts, intervals and costs follow; None: what is assumed.
        inspect: `numpy()` of a tensor gives a kernel a read-only copy of its values; every output
            then counts as unknown in certainty, for Python may have computed with them.
        schedule: the tile program that a call of its kernel executes, at fidelity "instructions",
            in place of the kernel's function: the bits are those of the schedule's chip, release
            and casts. Calls of other kernels are refused; what is no call of a kernel of `jit`, or
            only lists its steps, does not know of it. None: the function is run.
    """

    vec_tile_shapes: tuple[int, ...] = ()
    strict: bool = False
    inf_nan_mode: bool = True
    fp8_nan: bool = False
    int_saturation: bool = False
    cast_saturation: bool = True
    global_saturation: bool = True
    readings: Readings = ()
    chip: Chip = DEFAULT_CHIP
    simt_bytes: int = 0
    fidelity: Fidelity = "fast"
    copy_completion: CopyCompletion = "latest"
    exact: bool = False
    threads: int = 1
    kept_bytes: int = result_memory.DEFAULT_LIMIT_BYTES
    engine: Engine = "auto"
    trust: TrustName = "default"
    assume: tuple[str, ...] = ()
    auto_cast: AutoCast = "as upstream"
    release: ReleaseName = "head"
    satmode: SatmodeName | None = None
    run_mode: RunMode = RunMode.SIM
    hints: Hints = field(default_factory=dict, hash=False)
    facts: MeasuredDevice | None = None
    inspect: bool = False
    schedule: Schedule | None = field(default=None, hash=False)

    @property
    def landing(self) -> CopyCompletion:
        """The former name of `copy_completion`."""
        return self.copy_completion

    @property
    def followed_release(self) -> Release:
        """The row of the release."""
        return RELEASES[self.release]

    @property
    def satmode_rule(self) -> SatmodeName:
        """The default that a `cast` follows that names no satmode: the seed's or upstream's."""
        if self.satmode is not None:
            return self.satmode
        stands_in = sys.modules.get("pypto") is sys.modules["pypto_cast"]
        return "upstream" if stands_in else "seed"

    @property
    def default_satmode(self) -> SaturationMode:
        """The satmode of a `cast` that names none."""
        low_bits = self.global_saturation and not self.cast_saturation
        off = low_bits or self.satmode_rule == "upstream"
        return SaturationMode.OFF if off else SaturationMode.ON

    @property
    def controls(self) -> CastControls:
        """The control bits and the readings of its casts."""
        return _controls(self.inf_nan_mode, self.fp8_nan, self.global_saturation, self.readings)

    @property
    def corrections(self) -> Corrections:
        """The casts that the measured device, or a reading, carries out in its own way."""
        measured = NO_CORRECTIONS if self.facts is None else self.facts.corrections
        return corrections_of(self.readings, measured)

    @property
    def converter(self) -> engines.Engine:
        """The engine of conversions that no tile program carries out."""
        return "numpy" if self.engine == "twin" else self.engine

    @property
    def cost_set(self) -> CostParameters:
        """The measured cost set, or the default one."""
        measured = None if self.facts is None else self.facts.cost_set
        return DEFAULT_COST_SET if measured is None else measured

    def __reduce__(self) -> tuple[Callable[[Settings], Options], tuple[Settings]]:
        """Copied and pickled with the chip's name, which stands for a row of the table of chips."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return _restored, ({**fields, "chip": self.chip.name},)


_TYPES: Final = {"vec_tile_shapes": tuple, "run_mode": RunMode, "strict": bool, "threads": int}
_KEPT_CHANGES: Final = _TYPES | {"engine": str, "release": str, "trust": str}
_MOST_CHANGES: Final = 1 << 8
_CHANGES: Final[dict[tuple[int, str, object], tuple[Options, Options]]] = {}


def changed(before: Options, **changes: Any) -> Options:
    """The same options with some values changed; the same object where none of them is another.

    So it is where one of `_KEPT_CHANGES` alone is set again: plans are found by the object. A tile
    shape that a search marks is of its own type, and is kept as it is.
    """
    real = {name: value for name, value in changes.items() if getattr(before, name) is not value}
    if not real:
        return before
    (name, value), old = next(iter(real.items())), getattr(before, next(iter(real)))
    if len(real) > 1 or not type(old) is type(value) is _KEPT_CHANGES.get(name):
        return dataclasses.replace(before, **real)
    if old == value:
        return before
    key = id(before), name, value
    known = _CHANGES.get(key)
    if known is None:
        if len(_CHANGES) >= _MOST_CHANGES:
            _CHANGES.clear()
        known = _CHANGES[key] = before, dataclasses.replace(before, **real)
    return known[1]


@functools.cache
def _controls(
    inf_nan_mode: bool, fp8_nan: bool, global_saturation: bool, readings: Readings
) -> CastControls:
    return CastControls(
        inf_nan_mode=inf_nan_mode,
        fp8_nan=fp8_nan,
        global_saturation=global_saturation,
        readings=readings,
    )


def _restored(fields: Settings) -> Options:
    return Options(**{**fields, "chip": chip_named(fields["chip"]).with_simt(fields["simt_bytes"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """The options of a context, and the scopes that are open in it, outermost first."""

    options: Options
    scopes: tuple[Scope, ...] = ()


class Scope:
    """Options that hold until the end of a `with` statement, which restores those before.

    Left twice, in another context, or after a scope around it was left, it restores nothing.

    Args:
        changed: the options inside.
    """

    __slots__ = ("_before", "_changed")
    _before: _State

    def __init__(self, changed: Options) -> None:
        self._changed = changed

    def __enter__(self) -> Options:
        self._before = _CURRENT.get(_DEFAULT)
        scopes = (*self._before.scopes, self)
        _switch(_State(options=self._changed, scopes=scopes))
        return self._changed

    def __exit__(self, *_: object) -> None:
        if self in _CURRENT.get(_DEFAULT).scopes:
            _switch(self._before)

    def abandon(self) -> None:
        """Restore nothing when it is left."""
        state = _CURRENT.get(_DEFAULT)
        others = tuple(scope for scope in state.scopes if scope is not self)
        _switch(dataclasses.replace(state, scopes=others))


_DEFAULT: Final = _State(options=Options())
_CURRENT: Final[ContextVar[_State]] = ContextVar("pypto_cast_options")
TILE_CHOICE: Final[ContextVar[Callable[[tuple[int, ...]], tuple[int, ...]]]] = ContextVar(
    "pypto_cast_tile_choice", default=tuple
)
"""Gives the tile shape that holds where `set_vec_tile_shapes` asks for one: that one by default."""

_OPTIONS: Final = ContextVar("pypto_cast_current_options", default=_DEFAULT.options)
current: Final[Callable[[], Options]] = _OPTIONS.get
"""The options of this context, those of `_CURRENT`, which operations ask for again and again."""


def defaults() -> Scope:
    """Have every option at its default for the body of a `with` statement; no tile shape is set."""
    return Scope(_DEFAULT.options)


def set_vec_tile_shapes(*shapes: int) -> None:
    """Set the tile shape of the casts that follow in this context.

    Args:
        shapes: 1 to 5 positive ints, in elements, at least one per dimension of the output; of
            more the leading ones count.

    Raises:
        TypeError: an entry is no int (a list must be unpacked, a bool is no int).
        TileShapeError: no entry, more than 5, or one below 1.
    """
    tile = TILE_CHOICE.get()(_checked_tile(shapes))
    _change(changed(current(), vec_tile_shapes=tile))


def set_hints(group: str, given: Mapping[str, object]) -> None:
    """Set hints of a group in this context; see `pypto_cast.options.hints.merged`."""
    hints = merged(current().hints, group, given)
    check_ranges(group, given, strict=current().strict)
    _change(dataclasses.replace(current(), hints=hints))


def reset_options() -> None:
    """Forget the tile shape and the hints of this context, as upstream's `reset_options` does.

    What `set_global_config` and its kin set stays, as upstream's.
    """
    kept = {group: set_ for group, set_ in current().hints.items() if group == GLOBAL}
    _change(dataclasses.replace(current(), vec_tile_shapes=(), hints=kept))


def set_global(settings: Settings) -> None:
    """Change settings of the group of `set_global_config`, which checks them."""
    before = current().hints
    changed = {**before, GLOBAL: {**before.get(GLOBAL, {}), **settings}}
    _change(dataclasses.replace(current(), hints=changed))


def _change(to: Options) -> None:
    _switch(_State(options=to, scopes=_CURRENT.get(_DEFAULT).scopes))


def _switch(state: _State) -> None:
    _CURRENT.set(state)
    _OPTIONS.set(state.options)
    result_memory.LIMIT_BYTES.set(state.options.kept_bytes)


def get_vec_tile_shapes() -> list[int]:
    """The tile shape of this context; empty if none was set."""
    return list(current().vec_tile_shapes)


def running_on(run_mode: RunMode) -> Scope:
    """Have casts run there for the body of a `with` statement."""
    return Scope(changed(current(), run_mode=run_mode))


@contextlib.contextmanager
def options(
    name: str = "",
    *,
    vec_tile_shapes: Sequence[int] | None = None,
    strict: bool | None = None,
    inf_nan_mode: bool | None = None,
    fp8_nan: bool | None = None,
    int_saturation: bool | None = None,
    cast_saturation: bool | None = None,
    global_saturation: bool | None = None,
    readings: Mapping[str, str] | None = None,
    chip: str | None = None,
    simt_bytes: int | None = None,
    fidelity: Fidelity | None = None,
    copy_completion: CopyCompletion | None = None,
    exact: bool | None = None,
    threads: int | None = None,
    kept_bytes: int | None = None,
    engine: Engine | None = None,
    trust: TrustName | None = None,
    assume: Sequence[str] | None = None,
    auto_cast: AutoCast | None = None,
    release: ReleaseName | None = None,
    satmode: SatmodeName | None = None,
    facts: str | os.PathLike[str] | None = None,
    inspect: bool | None = None,
    schedule: Schedule | None = None,
    codegen_options: Settings | None = None,
    host_options: Settings | None = None,
    pass_options: Settings | None = None,
    runtime_options: Settings | None = None,
    verify_options: Settings | None = None,
    operation_options: Settings | None = None,
    debug_options: Settings | None = None,
    cube_tile_shapes: Sequence[object] | None = None,
    conv_tile_shapes: Sequence[object] | None = None,
    matrix_size: Sequence[int] | None = None,
    landing: CopyCompletion | None = None,
) -> Iterator[Options]:
    """Change options for the body of a `with` statement (or of a decorated function).

    Everything is restored at the end, a tile shape set inside with `set_vec_tile_shapes` too. What
    is not named keeps its value. Attributes of `Options` say what each one does.

    Args:
        vec_tile_shapes: a tile shape, or an empty sequence for "not set".
        strict: a mode that the pair lacks, a tile that is not aligned, and code that upstream
            refuses, are errors.
        inf_nan_mode: False saturates FP16 and BF16 results, and FP8 and HF8 on the 950.
        fp8_nan, int_saturation, cast_saturation, global_saturation: control bits of the 950.
        readings: values by name, of results of the 950 that public texts give differently, such as
            {"nan-e2m1": "max"}; a reading that is not named keeps its value.
        chip: the vendor's name, such as "Ascend910B1".
        simt_bytes: 0, or 32 to 128 KiB on the 950.
        fidelity: "fast" or "instructions".
        copy_completion: "latest" or "earliest".
        exact: True takes the definition of a conversion instead of its fast path.
        threads: 1 to 16.
        kept_bytes: 0 or more; 0 keeps nothing.
        engine: "auto", "native", "numpy" or "twin".
        trust: "default", "documented" or "ieee".
        assume: names of assumptions that hold besides, such as "ASSUME_CUBE_RNE".
        auto_cast: "as upstream" or "every op".
        release: "0.2.0" or "head", revision 883e7dfb0.
        satmode: "seed" or "upstream": ON or OFF where a `cast` names none.
        facts: a file that `pypto-cast device-check` wrote: casts, intervals and costs follow that
            device, and its chip is taken unless `chip` is given too; "" for none.
        inspect: True lets a kernel read values by `numpy()`, for debugging.
        schedule: of `pypto.read_schedule`; needs fidelity="instructions".
        name: upstream's name of the scope.
        codegen_options, host_options, pass_options, runtime_options, verify_options,
            operation_options, debug_options: upstream's dicts for its compiler and runtime, on
            which no bit depends. `get_pass_options` and its kin read them.
        landing: the former name of `copy_completion`.
        cube_tile_shapes: [m, k, n] or [m, k, n, enable_split_k]; conv_tile_shapes: [tile_l1_info]
            or with tile_l0_info and set_l0_tile; matrix_size: [m, k, n]; likewise.

    Raises:
        TypeError: a value of the wrong type.
        ValueError: a tile shape, a chip or a reading that does not exist; a control bit or reading
            that the chip lacks; no facts, or those of another chip; a schedule at another fidelity.
        OSError: a facts file that cannot be read.

    Warns:
        UpstreamRefusalWarning: a number in one of upstream's dicts that it refuses.
        DeviceFactsWarning: the device does something that the simulator cannot follow.
        DeprecationWarning: `landing`.
    """
    given = {option: value for option, value in locals().items() if value is not None}
    before = current()
    if given.pop("landing", None) is not None:
        text = "options(landing=) is options(copy_completion=) now; the former goes with the next"
        warn_caller(f"{text} release", DeprecationWarning)
        given["copy_completion"] = landing
    hints = before.hints
    for group in filter(given.__contains__, GROUPS):
        told = given.pop(group)
        named = by_name(group, [told] if group == "matrix_size" else told)
        hints = merged(hints, group, named)
        check_ranges(group, named, strict=before.strict if strict is None else strict)
    if not isinstance(given.pop("name"), str):
        raise TypeError(f"option name must be a str, not {name!r}")
    followed = before.facts if given.pop("facts", None) is None else _followed(facts)
    if facts is not None and followed is not None:
        given["chip"] = followed.chip_for(chip)
    given.pop("readings", None)
    checked: Any = {option: _CHECKS[option](option, value) for option, value in given.items()}
    if readings is not None:
        checked["readings"] = merged_readings(before.readings, readings)
    inside = changed(before, hints=hints, facts=followed, **checked)
    if {"chip", "simt_bytes"} & {*given}:
        inside = changed(inside, chip=chip_named(inside.chip.name).with_simt(inside.simt_bytes))
    if inside is not before:
        check_controls(inside, inside.chip)
    if inside.schedule is not None and inside.fidelity != "instructions":
        raise ValueError(
            f"option schedule ({inside.schedule.kernel}) needs fidelity='instructions', not "
            f"{inside.fidelity!r}"
        )
    with Scope(inside):
        yield inside


_CONTROL_BITS: Final[Mapping[str, int]] = {
    "fp8_nan": CTRL_NAN,
    "int_saturation": CTRL_INT,
    "cast_saturation": CTRL_CAST,
    "global_saturation": CTRL_GLOBAL,
}
"""The options that are control bits of some families alone, by name."""


def check_controls(given: Options, chip: Chip) -> None:
    """Refuse control bits and readings off their defaults where the chip's family has none.

    Raises:
        ValueError: naming option, bit and chip.
    """
    if given.readings and chip.isa not in READ_OTHERWISE:
        raise ValueError(
            f"option readings={dict(given.readings)} is of chips of {' and '.join(READ_OTHERWISE)};"
            f" {chip}, of {chip.isa}, has none"
        )
    for name, bit in _CONTROL_BITS.items():
        value, default = getattr(given, name), getattr(_DEFAULT.options, name)
        if value != default and bit not in CTRL_BITS.get(chip.isa, ()):
            having = " and ".join(isa for isa, bits in CTRL_BITS.items() if bit in bits)
            raise ValueError(
                f"option {name}={value} is CTRL[{bit}] of chips of {having}; {chip}, of "
                f"{chip.isa}, has none here"
            )


def _checked_tile(shapes: Sequence[int]) -> tuple[int, ...]:
    for extent in shapes:
        if isinstance(extent, (bool, np.bool_)) or not hasattr(extent, "__index__"):
            raise TypeError(
                f"a tile shape is 1 to {_MAX_ENTRIES} positive ints, as in "
                f"set_vec_tile_shapes(64, 128); got {extent!r} ({type(extent).__name__})"
            )
    tile = tuple(entry.concrete() if hasattr(entry, "concrete") else int(entry) for entry in shapes)
    if not 1 <= len(tile) <= _MAX_ENTRIES or any(entry < 1 for entry in tile):
        raise TileShapeError(f"a tile shape is 1 to {_MAX_ENTRIES} positive ints; got {list(tile)}")
    return tile


def _set_tile(name: str, shapes: object) -> tuple[int, ...]:
    if not isinstance(shapes, Sequence):
        raise TypeError(f"option {name} must be a list of ints, not {shapes!r}")
    return _checked_tile(shapes) if len(shapes) else ()


def _assumptions(name: str, assume: object) -> tuple[str, ...]:
    if isinstance(assume, str) or not isinstance(assume, Sequence):
        raise TypeError(f"option {name} must be a list of names, not {assume!r}")
    if unknown := [each for each in assume if each not in CHOICES]:
        raise ValueError(f"option {name}: {unknown} are none of {', '.join(CHOICES)}")
    return tuple(dict.fromkeys(assume))


def _schedule(name: str, schedule: object) -> object:
    if not isinstance(schedule, entry("Schedule")):
        raise TypeError(f"option {name} must be a pypto.Schedule, not {schedule!r}")
    return schedule


def _followed(facts: object) -> MeasuredDevice | None:
    if not isinstance(facts, (str, os.PathLike)):
        raise TypeError(f"option facts must be the path of a facts file, not {facts!r}")
    device: MeasuredDevice | None = None if facts == "" else entry("model_of_file")(Path(facts))
    return device


_CHECKS: Final[Mapping[str, Callable[[str, Any], object]]] = {
    "vec_tile_shapes": _set_tile,
    **dict.fromkeys(("strict", "inf_nan_mode", "exact", "inspect", *_CONTROL_BITS), checked_flag),
    "chip": lambda _, chip: chip_named(chip),
    "fidelity": checked_choice(*FIDELITIES),
    "copy_completion": checked_choice(*COPY_COMPLETIONS),
    "threads": checked_count(1, MAX_THREADS),
    **dict.fromkeys(("kept_bytes", "simt_bytes"), checked_count(0)),
    "engine": checked_choice(*ENGINES),
    "trust": checked_choice(*get_args(TrustName)),
    "assume": _assumptions,
    "auto_cast": checked_choice(*get_args(AutoCast)),
    "release": checked_choice(*RELEASE_NAMES),
    "schedule": _schedule,
    "satmode": checked_choice(*get_args(SatmodeName)),
}
"""By option, its value as it is kept; each raises for other values."""
