"""Upstream's functions that set hints and read them, one row of the table each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pypto_cast.options.context import current, set_hints
from pypto_cast.options.hints import GROUPS, values_of_group


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
            raise KeyError(f"no options {prefix!r}; there are {', '.join(GROUPS)}")
        return values_of_group(self._hints, group)


def get_current_scope() -> ConfigScope:
    """The hints of this context, to look at."""
    return ConfigScope()
