"""Upstream's functions that set hints and read them, one row of the table each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pypto_cast.error import FeError, error_of
from pypto_cast.options.context import current, set_hints, set_vec_tile_shapes
from pypto_cast.options.hints import GLOBAL, GROUPS, by_name, values_of_group

_POSITION: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD
_EMPTY: Final = inspect.Parameter.empty
_BY_NAME: Final = inspect.Parameter.KEYWORD_ONLY
_PRINTED: Final = "print_options"
"""The group whose setter has upstream's defaults in its signature; the others have None."""


def _default(group: str, name: str) -> object:
    is_shown = group == _PRINTED or GROUPS[group].by_position
    return GROUPS[group].hints[name].default if is_shown else None


def _setter(group: str) -> Callable[..., None]:
    """The function `set_<group>`, which changes the context as a tile shape does."""
    row = GROUPS[group]
    names = tuple(row.hints)

    def setter(*values: object, **named: object) -> None:
        given = dict(zip(names, values, strict=False)) if row.by_position else {}
        twice = given.keys() & named.keys()
        unknown = named.keys() - row.hints.keys()
        excess = len(values) > (len(names) if row.by_position else 0)
        missing = [name for name in names[: row.required] if name not in {**given, **named}]
        if twice or unknown or excess or missing:
            takes = "" if row.by_position else " by name"
            raise TypeError(
                f"set_{group} takes {', '.join(names)}{takes}; it got {len(values)} values by "
                f"position and {sorted(named) or 'none'} by name"
            )
        set_hints(group, {**given, **named})

    setter.__name__ = setter.__qualname__ = f"set_{group}"
    vars(setter)["__signature__"] = inspect.Signature(
        [
            inspect.Parameter(
                name,
                _POSITION if row.by_position else _BY_NAME,
                default=_default(group, name) if place >= row.required else _EMPTY,
            )
            for place, name in enumerate(names)
        ]
    )
    setter.__doc__ = (
        f"Set upstream's {', '.join(names)} in this context; no bit depends on them.\n\n"
        "Raises:\n    TypeError, ValueError: a value that upstream does not take.\n"
    )
    return setter


def _getter(group: str) -> Callable[[], Any]:
    """The function `get_<group>`: a dict, or a tuple of the hints set by position."""
    row = GROUPS[group]

    def getter() -> Any:
        found = values_of_group(current().hints, group)
        if not row.by_position:
            return found
        return tuple(found.get(name, []) for name in row.hints)

    getter.__name__ = getter.__qualname__ = f"get_{group}"
    getter.__doc__ = f"Upstream's {', '.join(row.hints)} of this context, defaults included."
    return getter


set_pass_options: Final = _setter("pass_options")
get_pass_options: Final = _getter("pass_options")
set_codegen_options: Final = _setter("codegen_options")
get_codegen_options: Final = _getter("codegen_options")
set_host_options: Final = _setter("host_options")
get_host_options: Final = _getter("host_options")
set_verify_options: Final = _setter("verify_options")
get_verify_options: Final = _getter("verify_options")
set_debug_options: Final = _setter("debug_options")
get_debug_options: Final = _getter("debug_options")
set_operation_options: Final = _setter("operation_options")
get_operation_options: Final = _getter("operation_options")
set_print_options: Final = _setter("print_options")
set_cube_tile_shapes: Final = _setter("cube_tile_shapes")
get_cube_tile_shapes: Final = _getter("cube_tile_shapes")
set_matrix_size: Final = _setter("matrix_size")
set_semantic_label: Final = _setter("semantic_label")


def set_conv_tile_shapes(tile_l1_info: object, tile_l0_info: object = None) -> None:
    """Set the tiles of `pypto.conv` in this context; the order of its sums may depend on them.

    Args:
        tile_l1_info: a `pypto.pypto_impl.TileL1Info`.
        tile_l0_info: a `pypto.pypto_impl.TileL0Info`; None leaves the choice to the compiler.

    Raises:
        TypeError: something else, an `FeError` too.
    """
    given = {"tile_l1_info": tile_l1_info, "tile_l0_info": tile_l0_info}
    set_hints("conv_tile_shapes", {**given, "set_l0_tile": tile_l0_info is not None})


get_conv_tile_shapes: Final = _getter("conv_tile_shapes")


def set_options(
    codegen_options: Mapping[str, object] | None = None,
    host_options: Mapping[str, object] | None = None,
    pass_options: Mapping[str, object] | None = None,
    runtime_options: Mapping[str, object] | None = None,
    verify_options: Mapping[str, object] | None = None,
    debug_options: Mapping[str, object] | None = None,
    operation_options: Mapping[str, object] | None = None,
    vec_tile_shapes: Sequence[int] | None = None,
    cube_tile_shapes: Sequence[object] | None = None,
    conv_tile_shapes: Sequence[object] | None = None,
    matrix_size: Sequence[int] | None = None,
) -> None:
    """Set several groups of upstream's options in this context, as the setters of each do.

    Args:
        codegen_options, host_options, pass_options, runtime_options, verify_options,
            debug_options, operation_options: dicts by name.
        vec_tile_shapes: the tile shape of `set_vec_tile_shapes`.
        cube_tile_shapes: [m, k, n] or [m, k, n, enable_split_k].
        conv_tile_shapes: [tile_l1_info], or with tile_l0_info and set_l0_tile behind it.
        matrix_size: [m, k, n].

    Raises:
        TypeError, ValueError: a value that upstream does not take.
    """
    given = dict(locals())
    tile = given.pop("vec_tile_shapes")
    groups = {
        group: by_name(group, [told] if group == "matrix_size" else told)
        for group, told in given.items()
        if told is not None
    }
    if tile is not None:
        set_vec_tile_shapes(*tile)
    for group, named in groups.items():
        set_hints(group, named)


def get_options_tree() -> str:
    """All hints of this context, a line each, as "pass.enable_slice: False"."""
    return repr(get_current_scope())


class ConfigScope:
    """The hints of the context at the moment that `get_current_scope` was called."""

    __slots__ = ("_hints",)

    def __init__(self) -> None:
        self._hints = current().hints

    def get_matrix_size(self) -> list[int]:
        """The m, k and n of `set_matrix_size`; empty if it was not set."""
        return list(self._hints.get("matrix_size", {}).get("size", ()))

    def get_options(self, prefix: str) -> dict[str, Any]:
        """The settings of a group of options, such as "pass", by name."""
        group = f"{prefix.rstrip('.')}_options"
        if group not in GROUPS:
            text = f"no options {prefix!r}; there are {', '.join(GROUPS)}"
            raise error_of(FeError, KeyError, text)
        return values_of_group(self._hints, group)

    def get_all(self) -> dict[str, Any]:
        """All settings, by names such as "pass.enable_slice"; a new dict."""
        found = dict(self._hints.get(GLOBAL, {}))
        for group in GROUPS:
            prefix = group.removesuffix("_options")
            for name, value in values_of_group(self._hints, group).items():
                found[f"{prefix}.{name}"] = value
        return found

    def get_options_prefix(self, key: str) -> Any:
        """One setting by its whole name, such as "pass.enable_slice".

        Raises:
            KeyError: an unknown name, an `FeError` too.
        """
        found = self.get_all()
        if key not in found:
            raise error_of(FeError, KeyError, f"Option not found: {key}")
        return found[key]

    def has(self, key: str) -> bool:
        """True if a setting of that whole name is known."""
        return key in self.get_all()

    def __repr__(self) -> str:
        return "\n".join(f"{key}: {value}" for key, value in sorted(self.get_all().items()))


def get_current_scope() -> ConfigScope:
    """The hints of this context, to look at."""
    return ConfigScope()
