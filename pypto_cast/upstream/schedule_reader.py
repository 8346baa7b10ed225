"""The tile program that upstream's compiler made of a kernel, read from its dump.

A short file because the reader itself lies lower; here it gets upstream's numbers of dtypes.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ascend_kernels.schedule.reader.upstream_dump import read_dump
from ascend_kernels.schedule.schedule import RELEASE, Schedule
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.kernel.reports.schedule_report import with_notebook

_FORMATS: Final = MappingProxyType(
    {int(dtype): dtype.format for dtype in DataType if dtype.format is not None}
)


def read_schedule(folder: str | os.PathLike[str], kernel: str | None = None) -> Schedule:
    """Read the schedule of a kernel that upstream's compiler dumped.

    Args:
        folder: an `output_*` folder of a run with `compile_debug_mode` 1, or one that holds it.
        kernel: the name of the kernel; None where the dump has one.

    Returns:
        The schedule: leaves of tile operations with their UB addresses, tasks, loops. Opcodes that
        cannot be executed and leaves of the cube are in it; `Schedule.not_executed` names them.

    Raises:
        TypeError: the folder is no path, or the kernel no text.
        ValueError: an empty path, no dump, several kernels without a name, or a file that is cut
            short, of another version, too large or otherwise not as upstream writes it; names the
            file.
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"a folder is a path, not {folder!r}")
    if not os.fspath(folder):
        raise ValueError("the folder of a dump is wanted, not an empty path; '.' is this one")
    if kernel is not None and not isinstance(kernel, str):
        raise TypeError(f"kernel is the name of one, not {kernel!r}")
    return with_notebook(read_dump(Path(folder), _FORMATS, release=RELEASE, kernel=kernel))
