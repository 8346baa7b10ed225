"""Upstream's prints and files of a kernel that runs: `pass_verify_print`, `pass_verify_save`.

Source: upstream pypto at 883e7dfb0, python/pypto/op/verify.py, the pages of both in docs/zh/api,
and for the lines of the .csv file calc_common.cpp of its interpreter. It adds the time to the names
of files, which its page does not; files have the names of the page here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from pypto_cast.call_sites import is_silenced
from pypto_cast.error import VerifyError
from pypto_cast.options import context
from pypto_cast.recording import recording
from pypto_cast.tensors.array_files import new_file
from pypto_cast.tensors.tensor import Tensor

_OUTPUT: Final = "output"
_TENSORS: Final = "tensor"
_NAME: Final = re.compile(r"\$([a-zA-Z0-9_]+)")


def pass_verify_print(*values: object, cond: Any = 1) -> None:
    """Print tensors and numbers of a kernel that runs; no result depends on it.

    As upstream's, it needs `enable_pass_verify=True` in `verify_options`, and does nothing else.

    Args:
        values: tensors, of which the first elements are shown; numbers and other objects.
        cond: 0 prints nothing.

    Raises:
        TypeError: None for `cond`.
    """
    if _is_on(cond):
        print("".join(map(str, values)))


def pass_verify_save(tensor: Tensor, fname: object, cond: Any = 1, **named: Any) -> None:
    """Save a tensor of a kernel that runs; no result depends on it.

    As upstream's, it needs `enable_pass_verify=True` in `verify_options`, and writes FNAME.data,
    the elements row by row, and FNAME.csv: the dtype's number, shape and element_count. The folder
    is `tensor` in `pass_verify_save_tensor_dir`, or in `output`; files there are replaced.

    Args:
        tensor: of the kernel.
        fname: a name without folders; "$NAME" in it is replaced by the argument of that name.
        cond: 0 saves nothing.
        named: the values of names.

    Raises:
        TypeError: no tensor, or None for `cond`.
        VerifyError: a name in `fname` without an argument.
        ValueError: a name with folders.
        OSError: a file cannot be written.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"pass_verify_save saves a tensor, not {tensor!r}")

    def value(found: re.Match[str]) -> str:
        if found[1] not in named:
            raise VerifyError(f"placeholder '${found[1]}' of {fname!r} is not among the arguments")
        return str(named[found[1]])

    name = _NAME.sub(value, str(fname))
    if name in ("", "..") or Path(name).name != name:
        raise ValueError(f"pass_verify_save: {name!r} is no name of a file without folders")
    held = tensor.enclosure() if _is_on(cond) else None
    if held is None:
        return
    asked = context.current().hints.get("verify_options", {})
    folder = Path(str(asked.get("pass_verify_save_tensor_dir") or _OUTPUT), _TENSORS)
    folder.mkdir(parents=True, exist_ok=True)
    shape = "x".join(map(str, held.values.shape))
    with new_file(folder / f"{name}.data", force=True) as file:
        file.write(np.ascontiguousarray(held.values).tobytes())
    with new_file(folder / f"{name}.csv", force=True) as file:
        rows = {"key": "value", "dtype": int(tensor.dtype), "shape": shape}
        rows["element_count"] = held.values.size
        file.write("".join(f"{key},{value}\n" for key, value in rows.items()).encode())


def _is_on(cond: Any) -> bool:
    """True in a kernel that runs with values, with the option, where the condition holds."""
    if cond is None:
        raise TypeError("cond is 1 or 0, or a condition of the kernel, not None; leave it out")
    running = recording.current()
    asked = context.current().hints.get("verify_options", {})
    enabled = bool(asked.get("enable_pass_verify", False))
    is_first = running is not None and running.executes and not is_silenced()
    return enabled and is_first and bool(cond)
