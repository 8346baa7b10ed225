"""The reason for which a name is not here: upstream's part of that name, or the nearest name.

A name of upstream's that is out of reach says so, with the reason; one of another module says
which; any other name is taken for a typing error. Source: upstream pypto at 883e7dfb0,
`python/pypto/__init__.py` and the modules that it imports.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

from pypto_cast.unsupported import UPSTREAM

_COMPILER: Final = "a part of upstream's compiler, none of which runs here"
_MANY_DEVICES: Final = "memory shared by several devices, and one is simulated here"
_ON_950: Final = "of the 950 alone, and is not built here"
_EXPERIMENTAL: Final = "in pypto.experimental, here too"
_LOGS: Final = "of upstream's own log; warnings and errors here are Python's"
_OVERRUN: Final = (
    "a tile operation that copies twice the elements of its result (tileop/vector/sort.h), over "
    "other tensors in UB; sort32, argsort and topk are here"
)
_SECOND_LANGUAGE: Final = "upstream's second language, of the 950 alone"

_OUT_OF_REACH: Final[Mapping[str, tuple[str, ...]]] = {
    _COMPILER: (
        *("Function", "FunctionType", "GraphType", "IRBuilder", "LoopRange", "_controller"),
        *("begin_function", "build_online", "converter", "dump", "end_function", "functions"),
        *("get_current_function", "get_last_function", "ir", "liveness", "parser", "pass_config"),
        *("pil", "set_build_static", "cost_model", "verify"),
        *("BeginFunction", "EndFunction", "RecordFunc", "GetLastFunction"),
        *("CostModel", "_build_online", "_op_wrapper", "_utils", "_loader", "codegen", "nop"),
        *("setup_verify_data", "from_base", "logical_tensor", "set_logical_tensor"),
        *("from_logical_tensor", "base"),
    ),
    _MANY_DEVICES: (
        *("ShmemTensor", "create_shmem_signal", "create_shmem_tensor", "distributed"),
        *("my_symbolic_pe", "shmem_barrier_all", "shmem_clear_data", "shmem_clear_signal"),
        *("shmem_get", "shmem_load", "shmem_put", "shmem_signal", "shmem_store", "shmem_view"),
        "shmem_wait_until",
    ),
    _ON_950: ("scaled_batchmatmul",),
    _EXPERIMENTAL: (
        *("gather_in_l1", "gather_in_ub", "get_operation_options", "online_softmax"),
        *("online_softmax_update", "set_operation_options", "transposed_batchmatmul"),
    ),
    _LOGS: (
        *("LogLevel", "check", "get_log_level", "internal_check", "internal_error", "log_debug"),
        *("log_error", "log_event", "log_fatal", "log_info", "log_warn", "logging"),
        *("raise_error", "set_log_level", "value_error"),
    ),
    _OVERRUN: ("mrgsort",),
    _SECOND_LANGUAGE: ("pypto_pro",),
}
"""Names of upstream's by the reason."""
REASONS: Final = {name: why for why, names in _OUT_OF_REACH.items() for name in names}
_LIKENESS: Final = 0.7
"""Of the letters of two names, as `difflib` counts them."""
_SHORT: Final = 3
"""Letters of names of which all but one make two names alike."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like another; one of the same letters before any other."""
    cutoff = _LIKENESS if len(name) != _SHORT else (_SHORT - 1) / _SHORT
    near = difflib.get_close_matches(name, list(known), n=9, cutoff=cutoff)
    return min(near, key=lambda each: sorted(each) != sorted(name), default=None)


def unknown_name(name: str, owner: str, known: Iterable[str]) -> str:
    """The text of the error for a name that a module or a class here does not have.

    Args:
        name: the name, with dots where it is a module's.
        owner: the module or class, as messages call it.
        known: the names that it has.
    """
    parts = name.split(".")
    for part in parts:
        if part in REASONS:
            return f"{owner} has no {name!r}: upstream's {part} is {REASONS[part]}; see {UPSTREAM}"
    if name.startswith("_"):  # whoever probes for a protocol wants no advice
        return f"{owner} has no {name!r}"
    public = [each for each in known if not each.startswith("_")]
    near = nearest(parts[-1], public)
    hint = f"; did you mean {near!r}?" if near else ""
    return (
        f"{owner} has no {name!r}{hint}{' ' if hint else '; '}pypto_cast covers cast and the "
        f"operations of kernels, with what a kernel needs for them; others are in {UPSTREAM}"
    )
