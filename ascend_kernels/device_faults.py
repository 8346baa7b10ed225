"""Faults of a device, each in one line with its remedy: busy, out of memory, another driver."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from ascend_kernels.build import root_cause

_NO_MEMORY: Final = (
    "the device has no memory left: free tensors there, or end the other programs that npu-smi "
    "info lists"
)
_BUSY: Final = (
    "the device is busy or does not start: npu-smi info lists the programs that hold it; end them, "
    "or name another device in ASCEND_RT_VISIBLE_DEVICES"
)
_OTHER_CANN: Final = (
    "CANN and the driver do not go together: install those of one release (npu-smi info shows the "
    "driver's), and build anew with python -m ascend_kernels.build"
)
_FAILED: Final = (
    "the kernel failed on the device, which is a fault of this package: please report it with the "
    "output of python -m ascend_kernels.build --dry-run"
)
FAULTS: Final = MappingProxyType(
    {
        207001: _NO_MEMORY,
        207004: "there is no device: npu-smi info has to list one",
        207005: _BUSY,
        207006: "this user may not use the device: the driver's group has to have the user",
        507033: _BUSY,
        507034: _FAILED,
        507035: _FAILED,
        507899: _OTHER_CANN,
    }
)
"""By ACL's error codes (CANN, rt_error_codes.h)."""
_CODE: Final = re.compile(r"\b([1-5]0[0-9]{4})\b")
_TEXTS: Final = MappingProxyType({"out of memory": _NO_MEMORY, "EL0004": _NO_MEMORY})
"""Of torch_npu's allocator and of the runtime, which give no code."""


class DeviceFault(RuntimeError):
    """The device failed; the text gives the cause and the remedy."""


def advice(text: str) -> str | None:
    """The remedy for an error; None if its text names no known fault."""
    for words, found in _TEXTS.items():
        if words in text:
            return found
    codes = (int(code) for code in _CODE.findall(text))
    return next((FAULTS[code] for code in codes if code in FAULTS), None)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Raise a known fault in the body as a DeviceFault of one line; other errors as they are."""
    try:
        yield
    except RuntimeError as error:
        cause = root_cause(error)
        what = advice(cause)
        if what is None:
            raise
        raise DeviceFault(f"{what} ({cause})") from error
