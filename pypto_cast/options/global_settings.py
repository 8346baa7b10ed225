"""Upstream's settings of a whole process: `set_global_config`, and those of the compiler's passes.

Nothing here reads them, so that setting one is an `IgnoredSettingWarning`; the getters give what
was set, or upstream's default. Like all options they belong to the context.

Source: upstream pypto at 883e7dfb0, `tile_fwk_config.json` (names and defaults),
`python/pypto/config.py` and `pass_config.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pypto_cast.error import FeError, PassError, error_of
from pypto_cast.options.context import current, set_global
from pypto_cast.options.hints import GLOBAL, GROUPS, warn_of_ignored

_DEFAULTS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(
        (
            *("platform.enable_cost_model", "platform.enable_dyn_cost_model"),
            *("platform.test_is_tig", "platform.enable_checker", "platform.enable_prof_func"),
            *("platform.enable_prof_aicore_time", "platform.enable_prof_aicore_pmu"),
            *("simulation.debug_single_func", "codegen.support_dynamic_aligned"),
            *("codegen.fixed_output_path", "pass.enable_binary_cache", "pass.enable_cv_fuse"),
            "pass.vf_opt_mark_for",
        ),
        False,
    ),
    **dict.fromkeys(
        (
            *("platform.enable_aihac_backend", "platform.dump_source_location"),
            *("simulation.draw_function_graph", "simulation.build_task_based_topo"),
            *("codegen.force_overwrite", "codegen.codegen_support_tile_tensor"),
            *("pass.enable_pass_configs", "pass.enable_vf"),
        ),
        True,
    ),
    "platform.device_platform": "ASCEND_910B2",
    "host.strategy": "PVC2_OOO",
    "simulation.leaf_function": "DEBUG_LEAF_FUNC",
    "simulation.sim_mode": 0,
    "simulation.accuracy_level": 1,
    "simulation.pv_run_level": 0,
    "simulation.log_level": 3,
    "simulation.timeout_threshold": -1,
    "simulation.json_path": "",
    "simulation.agent_json_path": "",
    "simulation.args": (
        *("Model.statisticReportToFile=true", "Model.deviceArch=A2A3"),
        *("Model.useOOOPassSeq=true", "Core.logLabelMode=0", "Core.bufferBackPressure=false"),
    ),
    "codegen.parallel_compile": 128,
    "codegen.soc_version": "",
    "tensor_print.edgeitems": 3,
    "tensor_print.precision": 4,
    "tensor_print.threshold": 1000,
    "tensor_print.linewidth": 80,
    "pass.pass_thread_num": 1,
}
_PASS_DEFAULTS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("print_graph", "dump_graph", "pre_check", "post_check"), False),
    **dict.fromkeys(("disable_pass", "health_check"), False),
    "dump_pass_time_cost": True,
}


def _of_kind(default: Any) -> tuple[type[Any], ...]:
    return (list, tuple) if isinstance(default, tuple) else (type(default),)


def set_global_config(key: str, value: Any) -> None:
    """Keep one of upstream's settings of a whole process; nothing here depends on it.

    Args:
        key: such as "simulation.accuracy_level".
        value: of the type of upstream's default.

    Raises:
        KeyError, TypeError: an unknown key, or a value of another type; both an `FeError` too.

    Warns:
        IgnoredSettingWarning: always.
    """
    default = _default_of(key)
    if type(value) not in _of_kind(default):
        wanted = " or ".join(kind.__name__ for kind in _of_kind(default))
        text = f"global setting {key!r} must be of type {wanted}, not {value!r}"
        raise error_of(FeError, TypeError, text)
    set_global({f"global.{key}": value})
    about = "it tells upstream's compiler or its simulator how to go about it"
    warn_of_ignored(f"set_global_config({key!r}, {value!r})", about)


def get_global_config(key: str) -> Any:
    """One of upstream's settings of a whole process, as it was set, or its default.

    Raises:
        KeyError: an unknown key, an `FeError` too.
    """
    default = _default_of(key)
    found = current().hints.get(GLOBAL, {}).get(f"global.{key}", default)
    return list(found) if isinstance(found, tuple) else found


def _default_of(key: str) -> Any:
    if key not in _DEFAULTS:
        text = f"Option not found: global.{key}; there are {', '.join(sorted(_DEFAULTS))}"
        raise error_of(FeError, KeyError, text)
    return _DEFAULTS[key]


def set_rooted(settings: Mapping[str, Any]) -> None:
    """Upstream's `SetGlobalConfig`: settings by their whole names, which `reset_options` leaves.

    Those of a group of options, as "pass.enable_slice", are the defaults of its getter.

    Raises:
        KeyError, TypeError, ValueError: an unknown name, or a value that upstream does not take.
    """
    for name, value in settings.items():
        prefix, _, key = name.partition(".")
        if prefix == "global":
            set_global_config(key, value)
            continue
        hints = GROUPS[f"{prefix}_options"].hints if f"{prefix}_options" in GROUPS else {}
        if key not in hints:
            raise error_of(FeError, KeyError, f"key: {name} does not exist.")
        set_global({name: hints[key].checked(name, value)})


class PassConfigKey(enum.Enum):
    """The setting of a pass that `set_pass_config` takes."""

    KEY_DUMP_GRAPH = "dump_graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassConfigs:
    """Upstream's settings of one pass of its compiler, to look at."""

    printGraph: bool
    dumpGraph: bool
    dumpPassTimeCost: bool
    preCheck: bool
    postCheck: bool
    disablePass: bool
    healthCheck: bool


def get_pass_default_config(key: PassConfigKey, default_value: bool) -> bool:
    """The setting of all passes that have none of their own; `default_value` where it is unknown.

    Raises:
        PassError: no key, or a default that is no bool.
    """
    _check_pass(key, default_value)
    return _pass_setting(key.value)


def set_pass_default_config(key: PassConfigKey, value: bool) -> None:
    """Keep the setting of all passes that have none of their own; nothing here depends on it.

    Raises:
        PassError: no key, or a value that is no bool.

    Warns:
        IgnoredSettingWarning: always.
    """
    _check_pass(key, value)
    set_global({f"global.pass.default_pass_configs.{key.value}": value})
    _warn_of_pass(f"set_pass_default_config({key}, {value})")


def get_pass_config(
    strategy: str, identifier: str, key: PassConfigKey, default_value: bool
) -> bool:
    """The setting of one pass; `default_value` where it has none of its own.

    Args:
        strategy: such as "PVC2_OOO".
        identifier: the name of the pass.
        key: the setting.
        default_value: given back where none was set.

    Raises:
        PassError: no key, or a default that is no bool.
    """
    _check_pass(key, default_value)
    name = f"global.pass_strategies.{strategy}.{identifier}.{key.value}"
    return bool(current().hints.get(GLOBAL, {}).get(name, default_value))


def set_pass_config(strategy: str, identifier: str, key: PassConfigKey, value: bool) -> None:
    """Keep the setting of one pass; nothing here depends on it, for no pass of upstream's runs.

    Raises:
        PassError: no key, or a value that is no bool.

    Warns:
        IgnoredSettingWarning: always.
    """
    _check_pass(key, value)
    set_global({f"global.pass_strategies.{strategy}.{identifier}.{key.value}": value})
    _warn_of_pass(f"set_pass_config({strategy!r}, {identifier!r}, {key}, {value})")


def get_pass_configs(strategy: str, identifier: str) -> PassConfigs:
    """All settings of one pass, those of all passes where it has none of its own."""
    own = current().hints.get(GLOBAL, {})
    prefix = f"global.pass_strategies.{strategy}.{identifier}"
    found = {
        name: bool(own.get(f"{prefix}.{name}", _pass_setting(name))) for name in _PASS_DEFAULTS
    }
    return PassConfigs(
        printGraph=found["print_graph"],
        dumpGraph=found["dump_graph"],
        dumpPassTimeCost=found["dump_pass_time_cost"],
        preCheck=found["pre_check"],
        postCheck=found["post_check"],
        disablePass=found["disable_pass"],
        healthCheck=found["health_check"],
    )


def _pass_setting(name: str) -> bool:
    own = current().hints.get(GLOBAL, {})
    return bool(own.get(f"global.pass.default_pass_configs.{name}", _PASS_DEFAULTS[name]))


def _check_pass(key: object, value: object) -> None:
    if not isinstance(value, bool):
        text = f"Expected boolean type, but received {type(value).__name__}"
        raise error_of(PassError, TypeError, text)
    if not isinstance(key, PassConfigKey):
        text = f"key must be a member of PassConfigKey, got {key}"
        raise error_of(PassError, ValueError, text)


def _warn_of_pass(call: str) -> None:
    warn_of_ignored(call, "no pass of upstream's compiler runs")
