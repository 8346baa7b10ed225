"""A sweep over kernels: its config, and its jobs.

output = "kernels.jsonl"        # beside this file, named as it is if left out
chips = ["Ascend910B3"]         # or "all"
releases = ["head"]             # or "all"
top = 1                         # candidates per job
seconds = 60                    # limit of a job

[[kernels]]
kernel = "softmax.py::softmax"  # beside this file
shapes = { x = [1024, 512], y = [1024, 512] }  # what annotations leave open
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pypto_cast.cli.commands.certainty_command import SEPARATOR, file_and_name
from pypto_cast.cli.commands.tune_command import kernel_tuned
from pypto_cast.dask_pool import code_version
from pypto_cast.options.releases import RELEASE_NAMES, ReleaseName
from pypto_cast.tuning.records import Record, kernel_fields, kernel_record
from pypto_cast.tuning.sweep.config import Sweep, chip_of, count_of, file_in, listed, shape_of
from pypto_cast.tuning.sweep.jobs import key_of
from tiling.chips import CHIPS, DEFAULT_CHIP
from tiling.input_files import MOST_DOCUMENT_BYTES, regular

_KEYS: Final = ("kernels", "chips", "releases", "top", "seconds", "output")
_OF_A_KERNEL: Final = ("kernel", "shapes")
_ONE_AT_A_TIME: Final = threading.Lock()
"""Files run under upstream's name, which holds for all threads of a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelJob:
    """One call of `Kernel.tune`. It can be pickled, and two jobs are equal if their results are.

    Attributes:
        folder: the config's.
        kernel: FILE::KERNEL in it.
        digest: SHA-256 of the file, without those that it imports.
        shapes: as `--shape` takes them.
        release, chip, top, seconds: as for `tune`.
        code: `code_version()` of whoever made the job.
    """

    folder: Path
    kernel: str
    digest: str
    shapes: tuple[str, ...]
    release: ReleaseName
    chip: str
    top: int
    seconds: int
    code: str

    @property
    def key(self) -> str:
        """The digest of all that the result depends on."""
        return key_of({**kernel_fields(self), "digest": self.digest, "code": self.code})

    def __str__(self) -> str:
        return " ".join((self.kernel, *self.shapes, self.release, self.chip))

    def record(self) -> Record:
        """Carry the job out, one at a time in a process.

        Raises:
            RuntimeError: the kernel's file is another than that of whoever made the job.
        """
        path = self.folder / file_and_name(self.kernel)[0]
        if _digest(path) != self.digest:
            raise RuntimeError(f"{path} is not as it was when the sweep began; start it again")
        with _ONE_AT_A_TIME:
            found = kernel_tuned(
                f"{self.folder / self.kernel}",
                None,
                list(self.shapes),
                self.release,
                self.chip,
                self.top,
                self.seconds,
            )
        return kernel_record(self.key, self, found)


def read_kernels(path: Path, read: Mapping[str, Any]) -> Sweep:
    """The jobs of a config that names kernels; the kernel changes slowest.

    Args:
        path: of the config. Paths in it count from where it is.
        read: its content.

    Raises:
        OSError: a kernel's file cannot be read.
        ValueError: a key is unknown, or a value has no meaning; the text names the config.
    """
    try:
        return _sweep(path, read)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _sweep(path: Path, read: Mapping[str, Any]) -> Sweep:
    _check_keys(read, _KEYS, "beside kernels")
    chips = listed(read, "chips", chip_of, tuple(CHIPS), DEFAULT_CHIP.name)
    releases = listed(read, "releases", _release, RELEASE_NAMES, "head")
    top, seconds = count_of(read, "top", 1), count_of(read, "seconds", 60)
    kernels = listed(read, "kernels", _kernel)
    digests = {name: _digest(path.parent / file_and_name(name)[0]) for name, _ in kernels}
    files = dict.fromkeys(path.parent / file_and_name(name)[0] for name in digests)
    return Sweep(
        jobs=tuple(
            KernelJob(
                folder=path.resolve().parent,
                kernel=name,
                digest=digests[name],
                shapes=shapes,
                release=release,
                chip=chip,
                top=top,
                seconds=seconds,
                code=code_version(),
            )
            for (name, shapes), release, chip in itertools.product(kernels, releases, chips)
        ),
        output=path.parent / file_in("output", read.get("output", f"{path.stem}.jsonl")),
        inputs=(path, *files),
    )


def _check_keys(read: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    if unknown := [key for key in read if key not in known]:
        raise ValueError(f"unknown key {unknown[0]!r} {where}; known: {', '.join(known)}")


def _kernel(given: object) -> tuple[str, tuple[str, ...]]:
    """The name of a kernel, and its shapes as `--shape` takes them."""
    if not isinstance(given, dict) or "kernel" not in given:
        raise ValueError(f'kernels has tables with kernel = "FILE{SEPARATOR}KERNEL"; got {given!r}')
    _check_keys(given, _OF_A_KERNEL, "of a kernel")
    name = file_in("kernel", given["kernel"])
    file_and_name(name)
    shapes = given.get("shapes", {})
    if not isinstance(shapes, dict):
        raise ValueError(f"shapes of a kernel are as in {{ x = [1024, 512] }}; got {shapes!r}")
    named = sorted((each, shape_of(shape)) for each, shape in shapes.items())
    return name, tuple(f"{each}={','.join(map(str, shape))}" for each, shape in named)


def _release(given: object) -> ReleaseName:
    for name in RELEASE_NAMES:
        if given == name:
            return name
    raise ValueError(f"a release is one of {', '.join(RELEASE_NAMES)}; got {given!r}")


def _digest(path: Path) -> str:
    return hashlib.sha256(regular(path, most_bytes=MOST_DOCUMENT_BYTES).read_bytes()).hexdigest()
