"""The fields of a dump's functions that are read, with their types: checked before they are used.

The types are those of `check_type`; fields that are not here are ignored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from ascend_kernels.schedule.document import check_type, whole_number

_VERSION: Final = "2.0"
_MAX_VALUES: Final = 1 << 23
"""Of one file; each takes some 100 B once it is parsed."""

_ENDS: Final = [(int, [int])]
_RAW_TENSOR: Final = {"rawmagic": int, "rawshape": [int], "datatype": int, "symbol?": str}
_TENSOR: Final = {"magic": int, "rawtensor": int}
_OPERATION: Final = {"opcode": str, "ioperands": [int], "ooperands": [int]}
FUNCTION: Final[Mapping[str, Any]] = {
    "hash": str,
    "func_magicname": str,
    "incasts": _ENDS,
    "outcasts": _ENDS,
    "rawtensors": [_RAW_TENSOR],
    "tensors": [_TENSOR],
    "operations": [_OPERATION],
}
ROOT: Final[Mapping[str, Any]] = {
    **FUNCTION,
    "operations": [_OPERATION | {"attr": [object], "opmagic?": int}],
}
LEAF: Final[Mapping[str, Any]] = {
    **FUNCTION,
    "tensors": [
        _TENSOR
        | {
            "shape": [int],
            "validshape": [int],
            "dynvalidshape": [[object]],
            "offset": [int],
            "mem_type": {"asis": int},
            "mem_id": int,
            "mem_range": (int, int),
        }
    ],
    "operations": [
        _OPERATION
        | {
            "opmagic": int,
            "latency": int,
            "file?": str,
            "line?": int,
            "attr?": [object],
            "sync_queue": {"pipe_id": int, "trig_pipe": int, "event_id": int},
            "op_attr?": {
                "IS_CUBE?": bool,
                "SCALAR?": {"value": float | None, "data_type?": int},
                "op_attr_START?": {"value": float | None},
                "op_attr_STEP?": {"value": float | None},
                "op_attr_patternMode?": int,
                "is_upper?": bool,
                "op_attr_reverseOperand?": bool,
                "op_attr_AXIS?": int,
                "op_attr_EXPANDDIM?": int,
                "op_attr_axis?": int,
                "op_attr_shape?": [int],
                "op_attr_mode?": int,
                "op_attr_order?": int,
                "op_attr_offset?": int,
                "op_attr_makeMode?": int,
                "op_attr_scatter_mode?": int,
                "op_attr_satmode?": int,
                "op_attr_cmp_operation?": int,
                "op_attr_input_combine_axis?": [bool],
                "op_attr_output_combine_axis?": [bool],
                "workspace_base_offset?": int,
            },
        }
    ],
}


def read_function(text: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The only function of a file, with its fields checked.

    Raises:
        ValueError: the text is no JSON, of another version or too large; a field that is missing or
            of another type, with its path; tensors of one magic, or one that is not there.
    """
    values = sum(map(text.count, ",[{:"))
    if values > _MAX_VALUES:
        raise ValueError(f"it has {values} values, more than the {_MAX_VALUES} of a file")
    document = json.loads(text, parse_constant=_refuse, parse_int=whole_number)
    check_type(document, {"version": object, "functions": [fields]}, "")
    if document["version"] != _VERSION:
        raise ValueError(f"version {document['version']!r} of a dump, only {_VERSION} is known")
    if len(document["functions"]) != 1:
        raise ValueError(f"it has {len(document['functions'])} functions, not 1")
    function: Mapping[str, Any] = document["functions"][0]
    _check_magics(function)
    return function


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _check_magics(function: Mapping[str, Any]) -> None:
    raw = _unique(function, "rawtensors", "rawmagic")
    magics = _unique(function, "tensors", "magic")
    for tensor in function["tensors"]:
        if tensor["rawtensor"] not in raw:
            raise ValueError(
                f"tensor {tensor['magic']}: raw tensor {tensor['rawtensor']} is missing"
            )
    used = {magic for magic, _ in (*function["incasts"], *function["outcasts"])}
    for operation in function["operations"]:
        used.update(operation["ioperands"], operation["ooperands"])
    if missing := used - magics:
        raise ValueError(f"tensor {min(missing)} is missing")


def _unique(function: Mapping[str, Any], group: str, key: str) -> set[int]:
    counts = Counter(each[key] for each in function[group])
    for magic, count in counts.items():
        if count > 1:
            raise ValueError(f"{group}: {key} {magic} is there {count} times")
    return set(counts)
