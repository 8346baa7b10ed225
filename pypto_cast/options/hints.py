"""The table of upstream's hints: settings of its compiler and runtime.

No bit of a cast depends on them, and of a matmul on `enable_split_k` alone. They are checked for
type, kept with the options of the context, and read back as upstream's getters give them.

Source: upstream pypto, `python/pypto/config.py`, `_controller.py`, `experimental/operation.py`, the
defaults of `tile_fwk_config.json` and, at 883e7dfb0, the ranges of `tile_fwk_config_schema.json`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from ascend_kernels import npu
from pypto_cast.call_sites import warn_caller
from pypto_cast.dtypes.data_types import CompStage
from pypto_cast.error import FeError, error_of
from pypto_cast.unsupported import tolerate

Hints = Mapping[str, Mapping[str, Any]]
"""The hints that were set, by group and name."""

_FUNCTION_KEY: Final = re.compile(r"func\d+_\d+|DEFAULT")
_VERIFIED_PASSES: Final = (
    *("ExpandFunction", "ProcessAtomic", "L1CopyInReuseMerge", "InferDynShape"),
    *("PreGraphProcess", "InferParamIndex", "CodegenPreproc"),
)
_LIST: Final = "a list of "
_SIDES: Final = ("auto", "left", "right")
GLOBAL: Final = "global_config"
"""The group of upstream's settings of a whole process, by `pass.enable_slice` and the like."""
Ranges = tuple[range, ...]
_ANY: Final = (range(-(2**63), 2**63),)
_COUNT: Final = (range(2**31),)
_NO_COUNTS: Final[Mapping[int, int]] = MappingProxyType({})


class IgnoredSettingWarning(UserWarning):
    """A setting that is kept and read back, and that nothing here depends on."""


def warn_of_ignored(setting: str, reason: str) -> None:
    """Warn the caller that a setting changes nothing here.

    Args:
        setting: the call or the argument.
        reason: what it would change upstream.
    """
    text = f"{setting} is kept and changes nothing here: {reason}"
    warn_caller(text, IgnoredSettingWarning, once=True)


def _is_int(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_str(value: object) -> bool:
    return isinstance(value, str)


def _is_any(value: object) -> bool:
    return True


def _is_list(value: object, least: int, most: int, entry: Callable[[Any], bool] = _is_int) -> bool:
    return (
        isinstance(value, list | tuple) and least <= len(value) <= most and all(map(entry, value))
    )


def _has_extents(value: object, count: int) -> bool:
    extents = getattr(value, "extents", None)
    return isinstance(extents, tuple) and len(extents) == count


def _are_reuses(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        _is_int(count)
        or (
            isinstance(count, tuple) and len(count) == 2 and _is_int(count[0]) and _is_str(count[1])
        )
        for count in value.values()
    )


def _has_one_kind_of_key(value: Mapping[object, object]) -> bool:
    functions = [isinstance(key, str) and bool(_FUNCTION_KEY.fullmatch(key)) for key in value]
    return not (any(functions) and any(isinstance(key, int) for key in value))


def _has_legal_sides(value: Mapping[object, object]) -> bool:
    sides = (count[1] for count in value.values() if isinstance(count, tuple))
    return _has_one_kind_of_key(value) and all(side in _SIDES for side in sides)


def _is_scope(value: object) -> bool:
    if _is_list(value, 3, 3, _is_any):
        assert isinstance(value, list | tuple)
        return _is_int(value[0]) and all(map(_is_bool, value[1:]))
    return _is_int(value)


def _fault_of_scope(value: object) -> str:
    if not isinstance(value, list | tuple):
        return ""
    if len(value) != 3:
        return f". Expected 3 values, got {len(value)}"
    return ". Expected int" if not _is_int(value[0]) else ". Expected bool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One setting.

    Attributes:
        expected: its type in words, for messages.
        has_type: whether a value has it; another is a TypeError.
        is_legal: whether such a value has a length, a text or kinds of keys that upstream takes;
            another is a ValueError.
        default: what the getter gives before it is set; None where it gives nothing.
        kept: the value as upstream keeps it.
        values: the ints that upstream takes, in a dict as values; the first of several.
        keys: those that it takes as keys of a dict.
        fault: more words about a value of another type.
    """

    expected: str
    has_type: Callable[[Any], bool]
    is_legal: Callable[[Any], bool] = _is_any
    default: object = None
    kept: Callable[[Any], Any] = lambda value: value
    values: Ranges = _ANY
    keys: Ranges = _ANY
    fault: Callable[[Any], str] = lambda value: ""

    def checked(self, name: str, value: object) -> object:
        """The value as it is kept.

        Raises:
            TypeError: a value of another type than upstream's, an FeError too.
            ValueError: one that upstream refuses, an FeError too.
        """
        text = f"{name} must be {self.expected}, not {value!r}"
        if not self.has_type(value):
            raise error_of(FeError, TypeError, text + self.fault(value))
        if not self.is_legal(value):
            raise error_of(FeError, ValueError, text)
        return self.kept(value)

    def excess(self, value: object) -> tuple[int, Ranges] | None:
        """The first int of a value, as it is kept, that upstream does not take, and its ranges."""
        pairs: Iterable[tuple[object, object]] = ((0, value),)
        if isinstance(value, Mapping):
            pairs = value.items()
        for pair in pairs:
            for number, taken in zip(pair, (self.keys, self.values), strict=True):
                first: Any = number[0] if isinstance(number, tuple) else number
                if _is_int(first) and not any(operator.index(first) in part for part in taken):
                    return operator.index(first), taken
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HintGroup:
    """Settings that one function of upstream's sets, and one dict or list of `options`.

    Attributes:
        hints: by name.
        by_position: the setter takes them in this order; at first the required ones.
        required: how many the setter must get.
    """

    hints: Mapping[str, Hint] = field(default_factory=dict)
    by_position: bool = False
    required: int = 0


def _int(default: object = None, values: Ranges = _ANY) -> Hint:
    return Hint(expected="an int", has_type=_is_int, default=default, values=values)


def _flag(default: object = None) -> Hint:
    return Hint(expected="True or False", has_type=_is_bool, default=default)


def _text(default: object = None) -> Hint:
    return Hint(expected="a str", has_type=_is_str, default=default)


def _ints(least: int, most: int, kept: Callable[[Any], Any] = list) -> Hint:
    count = str(least) if least == most else f"{least} or {most}"
    return Hint(
        expected=f"a list of {count} ints",
        has_type=lambda value: _is_list(value, 0, 1 << 30),
        is_legal=lambda value: least <= len(value) <= most,
        kept=kept,
    )


def _names(of: str, entry: Callable[[Any], bool], default: tuple[object, ...] = ()) -> Hint:
    return Hint(
        expected=f"{_LIST}{of}",
        has_type=lambda v: _is_list(v, 0, 1 << 30, entry),
        default=default,
    )


def _counts(keys: Ranges, values: Ranges, default: Mapping[int, int] = _NO_COUNTS) -> Hint:
    return Hint(
        expected="a dict of ints, by hash order, labels or functions such as 'func1_0'; it cannot "
        "mix hash orders and functions",
        has_type=lambda value: isinstance(value, Mapping) and all(map(_is_int, value.values())),
        is_legal=_has_one_kind_of_key,
        default=default,
        kept=dict,
        keys=keys,
        values=values,
    )


def _named(**hints: Hint) -> HintGroup:
    return HintGroup(hints=hints)


GROUPS: Final[Mapping[str, HintGroup]] = {
    "pass_options": _named(
        vec_nbuffer_setting=_counts((range(-2, 2**31),), _COUNT),
        cube_l1_reuse_setting=Hint(
            expected="a dict of ints or (int, 'auto' | 'left' | 'right'), by hash order, labels "
            "or functions such as 'func1_0'; it cannot mix hash orders and functions",
            has_type=_are_reuses,
            is_legal=_has_legal_sides,
            default=MappingProxyType({}),
            kept=dict,
            keys=(range(-1, 2**31),),
            values=_COUNT,
        ),
        cube_nbuffer_setting=_counts(
            (range(-1, 2**31),), (range(1, 2**31),), MappingProxyType({-1: 1})
        ),
        sg_set_scope=Hint(
            expected="an int or (int, bool, bool)",
            has_type=_is_scope,
            default=(-1, False, False),
            kept=lambda value: (value, False, False) if _is_int(value) else tuple(value),
            values=(range(-1, 2**31),),
            fault=_fault_of_scope,
        ),
        auto_mix_partition=_int(0, (range(2),)),
        sg_set_ooo_scope=_int(-1, (range(-1, 0), range(1, 100001))),
        ooo_sched_mode=Hint(
            expected="'', 'GAPMIN' or 'HLF'",
            has_type=_is_str,
            is_legal=lambda value: value in ("", "GAPMIN", "HLF"),
            default="",
        ),
        sg_set_tunevf_mode=_int(0, (range(3),)),
        enable_slice=_flag(False),
    ),
    "codegen_options": _named(
        support_dynamic_aligned=_flag(False),
        soc_version=_text(""),
        enable_pmu_trace=_flag(False),
        vf_options=_text(""),
    ),
    "host_options": _named(
        compile_stage=Hint(
            expected="a pypto.CompStage",
            has_type=lambda value: isinstance(value, CompStage) or _is_int(value),
            default=0,
            kept=lambda value: value.value if isinstance(value, CompStage) else value,
            values=(range(6),),
        ),
        compile_monitor_enable=Hint(  # release 0.2.0 has a bool
            expected="an int, True or False",
            has_type=lambda value: _is_int(value) or _is_bool(value),
            default=1,
            values=(range(3),),
        ),
        compile_timeout=_int(600, _COUNT),
        compile_timeout_stage=_int(0, _COUNT),
        compile_monitor_print_interval=_int(60, _COUNT),
    ),
    "runtime_options": _named(
        device_sched_mode=_int(0, (range(4),)),
        stitch_function_max_num=_int(128, (range(1, 1025),)),
        max_workspace_kb=_int(0, _COUNT),
        valid_shape_optimize=_int(0, (range(2),)),
        ready_on_host_tensors=_names("str", _is_str),
        device_sched_parallelism=_int(1, (range(1, 9),)),
        launch_sched_aicpu_num=_int(7, (range(1, 8),)),
        launch_early_mode=_int(0, (range(3),)),
    ),
    "verify_options": _named(
        enable_pass_verify=_flag(False),
        pass_verify_save_tensor=_flag(False),
        pass_verify_save_tensor_dir=_text(""),
        pass_verify_pass_filter=_names("str", _is_str, _VERIFIED_PASSES),
        pass_verify_error_tol=_names("floats", lambda v: isinstance(v, int | float), (1e-3, 1e-3)),
    ),
    "debug_options": _named(
        compile_debug_mode=_int(0, (range(3),)),
        runtime_debug_mode=_int(0, (range(5),)),
        dump_pass_graph=_names("str", _is_str),
    ),
    "operation_options": _named(
        combine_axis=_flag(True),
    ),
    "print_options": _named(
        edgeitems=_int(3), precision=_int(4), threshold=_int(10), linewidth=_int(10)
    ),
    "cube_tile_shapes": HintGroup(
        hints={
            "m": _ints(2, 2),
            "k": _ints(2, 3, kept=lambda k: [*k, k[1]][:3]),
            "n": _ints(2, 2),
            "enable_split_k": _flag(False),
        },
        by_position=True,
        required=3,
    ),
    "conv_tile_shapes": HintGroup(
        hints={
            "tile_l1_info": Hint(expected="a TileL1Info", has_type=lambda v: _has_extents(v, 8)),
            "tile_l0_info": Hint(expected="a TileL0Info", has_type=lambda v: _has_extents(v, 4)),
            "set_l0_tile": _flag(False),
        },
        by_position=True,
        required=1,
    ),
    "matrix_size": HintGroup(hints={"size": _ints(3, 3)}, by_position=True, required=1),
    "semantic_label": HintGroup(
        hints={
            "label": Hint(
                expected="a str that is not the name of a function: 'func1_0' conflicts with "
                "function-granularity hashOrder keys",
                has_type=_is_str,
                is_legal=lambda value: value == "DEFAULT" or not _FUNCTION_KEY.fullmatch(value),
            )
        },
        by_position=True,
        required=1,
    ),
}


def by_name(group: str, given: object) -> Mapping[str, object]:
    """The settings of a group as `options` takes them: a dict, or a list where they have an order.

    Raises:
        TypeError: something else.
    """
    row = GROUPS[group]
    if row.by_position:
        most = len(row.hints)
        if not _is_list(given, row.required, most, _is_any):
            raise TypeError(f"{group} must be a list of {', '.join(row.hints)}, not {given!r}")
        assert isinstance(given, list | tuple)
        return dict(zip(row.hints, given, strict=False))
    if not isinstance(given, Mapping):
        raise TypeError(f"{group}: upstream's options are dicts, not {given!r}")
    return given


def merged(before: Hints, group: str, given: Mapping[str, object]) -> Hints:
    """The hints with those of one group changed; None leaves a setting as it is.

    A setting that the table lacks is kept unchecked: upstream's versions differ in them.

    Raises:
        TypeError, ValueError: as `Hint.checked`.
    """
    known = GROUPS[group].hints
    changed = {
        name: known[name].checked(f"{group}: {name}", value) if name in known else value
        for name, value in given.items()
        if value is not None
    }
    return {**before, group: {**before.get(group, {}), **changed}}


_IDLE: Final[Mapping[str, str]] = {
    "pass_verify_save_tensor": "no pass of upstream's compiler runs, and no tensor is saved",
    "compile_debug_mode": "nothing is compiled; `pypto-cast schedule` shows a kernel's tasks",
    "runtime_debug_mode": "no device is observed; `Kernel.schedule` and its report show times",
    "dump_pass_graph": "no pass of upstream's compiler runs, and no graph is dumped",
    "compile_stage": "upstream stops after that stage, and a kernel runs here whatever it is",
    "enable_pmu_trace": "no device is observed",
}
"""Settings of which a user expects more than another speed, and why nothing comes of them here."""

_PARTIAL: Final[Mapping[str, str]] = {
    "enable_pass_verify": "turns on pass_verify_print and pass_verify_save here, and nothing else: "
    "no pass of upstream's compiler runs, and none is compared with data",
}
"""Settings of which a part comes here."""

_OF_COMPILER: Final = ("infer_controlflow_shape", "use_cache", "create_new_logical_tensor")


def check_ranges(group: str, given: Mapping[str, object], *, strict: bool) -> None:
    """Warn of numbers that upstream refuses; call `merged` first, which checks their types.

    Raises:
        UpstreamRefusalError: under `strict`.

    Warns:
        IgnoredSettingWarning: a setting that would show or check something upstream.
    """
    told = _IDLE.keys() | _PARTIAL.keys()
    for name in told & given.keys() & GROUPS[group].hints.keys():
        hint, value = GROUPS[group].hints[name], given[name]
        if value is not None and hint.kept(value) not in (hint.default, [], ()):
            setting = f"{group}: {name}={value!r}"
            if name in _PARTIAL:
                text = f"{setting} {_PARTIAL[name]}"
                warn_caller(text, IgnoredSettingWarning, once=True)
            else:
                warn_of_ignored(setting, _IDLE[name])
    for name, hint in GROUPS[group].hints.items():
        found = hint.excess(hint.kept(given[name])) if given.get(name) is not None else None
        if found is not None:
            number, taken = found
            known = " or ".join(
                f"{part[0]} to {part[-1]}" if len(part) > 1 else str(part[0]) for part in taken
            )
            tolerate(f"{group}: {name}: upstream takes {known}, not {number}", strict=strict)


def values_of_group(hints: Hints, group: str) -> dict[str, Any]:
    """The settings of a group, its defaults where none was set; a new dict."""
    known = {n: hint.default for n, hint in GROUPS[group].hints.items() if hint.default is not None}
    prefix = f"{group.removesuffix('_options')}."
    rooted = {
        name.removeprefix(prefix): value
        for name, value in hints.get(GLOBAL, {}).items()
        if name.startswith(prefix)
    }
    found = {**known, **rooted, **hints.get(group, {})}
    as_lists = {
        n: list(v) if GROUPS[group].hints[n].expected.startswith(_LIST) else v
        for n, v in found.items()
        if n in GROUPS[group].hints
    }
    kept = {**found, **as_lists}
    return {n: dict(v) if isinstance(v, Mapping) else v for n, v in kept.items()}


def check_jit_option(name: str, value: Any) -> None:
    """Check an option of `jit` when it is given, before its kernel runs.

    Raises:
        TypeError, ValueError: as `merged`.

    Warns:
        IgnoredSettingWarning: an option that tells upstream's compiler alone something.
    """
    if name in GROUPS and value is not None:
        merged({}, name, value)
    if name in _OF_COMPILER and value:
        about = "it tells upstream's compiler how to build and keep its graph"
        warn_of_ignored(f"jit: {name}={value!r}", about)


# --- Checks of options of this project --------------------------------------------------------


def checked_flag(name: str, flag: object) -> bool:
    """The value of an option that is True or False.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(flag, bool):
        raise TypeError(f"option {name} must be True or False, not {flag!r}")
    return flag


def checked_choice(*known: str) -> Callable[[str, object], object]:
    """The check of an option that is one of some words, which raises ValueError for others."""

    def check(name: str, choice: object) -> object:
        if choice not in known:
            raise ValueError(f"option {name} must be one of {known}, not {choice!r}")
        return choice

    return check


def checked_count(least: int, most: int | None = None) -> Callable[[str, object], int]:
    """The check of an option that is an int within bounds.

    It raises TypeError for what is no int, and ValueError out of the bounds.
    """

    def check(name: str, count: object) -> int:
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"option {name} must be an int, not {count!r}")
        if count < least or (most is not None and count > most):
            wanted = f"{least} or more" if most is None else f"{least} to {most}"
            raise ValueError(f"option {name} must be {wanted}, not {count}")
        return count

    return check


@dataclass(frozen=True, slots=True, kw_only=True)
class JitOptions:
    """Upstream's options of a kernel. `run_mode` counts here, and no bit depends on the others."""

    host_options: Mapping[str, Any] | None = None
    codegen_options: Mapping[str, Any] | None = None
    pass_options: Mapping[str, Any] | None = None
    runtime_options: Mapping[str, Any] | None = None
    verify_options: Mapping[str, Any] | None = None
    debug_options: Mapping[str, Any] | None = None
    infer_controlflow_shape: object = None
    use_cache: bool | None = None
    new_ir: bool | None = None
    create_new_logical_tensor: bool | None = None

    @property
    def hints(self) -> dict[str, Any]:
        """The dicts of them, by name, as `pypto.options` takes them."""
        return {name: getattr(self, name) for name in self.__slots__ if name in GROUPS}

    @property
    def run_mode(self) -> npu.RunMode:
        """The place where the kernel runs: SIM unless `runtime_options` say otherwise.

        Raises:
            ValueError: no run mode.
        """
        mode = (self.runtime_options or {}).get("run_mode", npu.RunMode.SIM)
        return mode if isinstance(mode, npu.RunMode) else npu.RunMode(mode)
