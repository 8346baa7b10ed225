"""Dumps of upstream's compiler, reduced and packed, each beside the kernel that it is of.

`python tests/support/programs/upstream_dumps.py PYTHON [NAME ...]` compiles the kernels of
`tests/ascend_kernels/schedule/dumps` anew, with the interpreter of an environment that has
upstream's wheel; the tests need none.
"""

from __future__ import annotations

import importlib.util
import stat
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from support.numbers.codes import SEED

import pypto_cast as pypto
from ascend_kernels.schedule.reader.timeline_files import TIMELINES
from ascend_kernels.schedule.reader.upstream_dump import DUMP_FILES
from ascend_kernels.schedule.schedule import Schedule
from benchmarks.upstream_kernels import DTYPES
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.kernel.jit import Kernel
from pypto_cast.testing.schedule_checks import OPEN_EXTENT, synthetic_arrays
from pypto_cast.upstream.wheel_compile import compile_kernel

DUMPS: Final = Path(__file__).parents[2] / "ascend_kernels" / "schedule" / "dumps"
NOT_WHOLE: Final = (
    *("computed_offset", "loop_barrier", "loop_over", "packed", "read_back"),
    *("select_numbers", "select_pairs", "timeline"),
)
"""For tests of their own: not executed, written twice, with a fault or an option not planned, or
with the timelines of its run."""
NAMES: Final = tuple(sorted({path.stem for path in DUMPS.glob("*.py")} - set(NOT_WHOLE)))


def kernel_of(name: str) -> Kernel:
    """The kernel of a dump."""
    spec = importlib.util.spec_from_file_location(name, DUMPS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Any = getattr(module, name)
    assert isinstance(found, Kernel)
    return found


def unpacked(name: str, folder: Path) -> Path:
    """A dump as upstream wrote it, in a folder."""
    target = folder / name
    with zipfile.ZipFile(DUMPS / f"{name}.zip") as archive:
        archive.extractall(target)
    return target


def arrays_of(schedule: Schedule) -> list[np.ndarray]:
    """Data for every parameter; numbers that a schedule goes by count up from 0."""
    found = synthetic_arrays(schedule, kernel_of(schedule.kernel), SEED)
    for place, parameter in enumerate(schedule.parameters):
        if parameter.name in schedule.numbers_read:
            counted = np.arange(found[place].size).reshape(found[place].shape)
            found[place] = counted.astype(parameter.format.dtype)
    return found


def bounds_of(name: str, arrays: list[np.ndarray]) -> Certainty:
    """The results that a device may give by the tensor level, at the release of the dump."""
    with warnings.catch_warnings(), pypto.options(release="0.2.0", satmode="upstream"):
        warnings.simplefilter("ignore")
        return kernel_of(name).certainty(*arrays)


def compiled(name: str, folder: Path, python: str) -> None:
    """Compile a kernel by an interpreter that has upstream's wheel."""
    names = {ours: torchs for torchs, ours in DTYPES.items()}
    tensors = [
        (
            [extent if isinstance(extent, int) else OPEN_EXTENT for extent in each.shape],
            names[f"{each.dtype}"],
        )
        for each in kernel_of(name).signature.tensors.values()
    ]
    more = TIMELINES if name == "timeline" else ()
    compile_kernel(DUMPS / f"{name}.py", name, tensors, folder, python=python, more_files=more)


def pack(name: str, python: str) -> None:
    """Compile a kernel and pack what a schedule is read from."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump"
        compiled(name, dump, python)
        with zipfile.ZipFile(DUMPS / f"{name}.zip", "w", zipfile.ZIP_LZMA) as archive:
            for pattern in (*DUMP_FILES, *TIMELINES):
                for path in sorted(dump.glob(pattern)):
                    entry = zipfile.ZipInfo(str(path.relative_to(dump)))
                    entry.compress_type = zipfile.ZIP_LZMA
                    archive.writestr(entry, path.read_bytes())


def interpreter(folder: Path, *lines: str) -> Path:
    """An interpreter that runs lines of a shell where the compiler would run."""
    path = folder / "python"
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def compiler(folder: Path) -> Path:
    """One that leaves the dump of softmax, and what it was given beside it."""
    dump = unpacked("softmax", folder)
    given = f'printf %s "$3" > "{folder}/given.json"'
    return interpreter(folder, f'cp -r "{dump}" output_1', "touch output_1/large.json", given)


if __name__ == "__main__":
    for each in sys.argv[2:] or NAMES:
        pack(each, sys.argv[1])
        print(each)
