"""Builds the library that runs casts on the NPU, where CANN, torch and torch_npu are installed.

python -m ascend_kernels.build              into the user's cache, where npu.load() finds it
python -m ascend_kernels.build --out FILE   to FILE, which PYPTO_CAST_NPU_LIBRARY may name
python -m ascend_kernels.build --dry-run    prints every command
python -m ascend_kernels.build --arch dav-3510    for the 950
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ascend_kernels.instances import A2_A3_TARGET, TARGETS, KernelTarget
from ascend_kernels.twin import SOURCES
from simulator.compiled_library import CompiledLibraryError, cache_folder, make_private

LIBRARY: Final = "libpypto_cast_npu.so"
VERSION_FILES: Final = (
    "version.cfg",
    "toolkit/version.info",
    "share/info/asc-devkit/version.info",
    "version.info",
)
"""In a CANN folder, in the order in which they are asked (CANN's install scripts)."""
_VERSION: Final = re.compile(
    r"^(?:Version=|\w+_running_version=\[[^:\]]*:(?:CANN-)?)(([0-9]+)\.([0-9]+)[\w.-]*)",
    re.MULTILINE,
)
AUTOLOAD: Final = "TORCH_DEVICE_BACKEND_AUTOLOAD"


class BuildError(RuntimeError):
    """The library cannot be built here; the text names the missing part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One of the libraries for the NPU.

    Attributes:
        file: its name.
        kernels: the source of its kernels, within csrc.
        parts: the translation units that the source makes.
        op: the source of its op of torch.
        folders: what it is made of, within csrc.
        target: the chip family that it is compiled for.
    """

    file: str
    kernels: str
    parts: tuple[str, ...]
    op: str
    folders: tuple[str, ...]
    target: KernelTarget = A2_A3_TARGET

    @property
    def architecture(self) -> str:
        """The architecture by the compiler's name."""
        return f"dav-{self.target.architecture}"


def _cast_library(target: KernelTarget) -> Library:
    return Library(
        file=LIBRARY,
        kernels="cast_kernels.asc",
        parts=target.parts,
        op="cast_op.cpp",
        folders=(".",),
        target=target,
    )


CAST_LIBRARIES: Final = MappingProxyType({f: _cast_library(of) for f, of in TARGETS.items()})
"""Of casts, by chip family."""
CAST_LIBRARY: Final = CAST_LIBRARIES[A2_A3_TARGET.family]


def _check_library(target: KernelTarget) -> Library:
    return Library(
        file="libpypto_cast_check.so",
        kernels="checks/check_kernels.asc",
        parts=("CHECKS",),
        op="checks/check_op.cpp",
        folders=(".", "checks"),
        target=target,
    )


CHECK_LIBRARIES: Final = MappingProxyType({f: _check_library(of) for f, of in TARGETS.items()})
"""Of `pypto-cast device-check`, which builds them, by chip family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The tools and libraries of a build.

    Attributes:
        cann: CANN's folder, ASCEND_HOME_PATH.
        bisheng: its compiler.
        torch: the folder of the package torch.
        torch_npu: the folder of the package torch_npu.
        is_cxx11_abi: torch was built with the newer ABI of the C++ library.
        cann_version: what CANN's folder says, such as 8.5.0.
        gcc: the root of the GCC whose C++ library is taken; None: what bisheng finds itself.
    """

    cann: Path
    bisheng: Path
    torch: Path
    torch_npu: Path
    is_cxx11_abi: bool
    cann_version: str
    gcc: Path | None

    def commands(
        self, library: Path, objects: Path, kind: Library = CAST_LIBRARY
    ) -> tuple[tuple[str, ...], ...]:
        """The calls of the compiler that make the library, one a translation unit, then the link.

        Args:
            library: what is made.
            objects: an existing folder for what is compiled on the way.
            kind: which library.
        """
        arch = f"--npu-arch={kind.architecture}"
        instances = f"-DPYPTO_CAST_ARCH={kind.target.architecture}"
        units = [
            *(
                _Unit(source=kind.kernels, name=part, flags=(
                    "-x", "asc", arch, instances, f"-DPYPTO_CAST_PART={part}"))
                for part in kind.parts
            ),
            _Unit(source=kind.op, name=Path(kind.op).stem, flags=(
                instances,
                f"-D_GLIBCXX_USE_CXX11_ABI={int(self.is_cxx11_abi)}",
                f"-I{self.torch / 'include'}",
                f"-I{self.torch / 'include/torch/csrc/api/include'}",
                f"-I{self.torch_npu / 'include'}",
                f"-I{self.torch_npu / 'include/third_party/acl/inc'}")),
        ]  # fmt: skip
        made = [str(objects / f"{unit.name}.o") for unit in units]
        folders = (self.torch / "lib", self.torch_npu / "lib", self.cann / "lib64")
        gcc = [f"--gcc-toolchain={self.gcc}"] if self.gcc else []
        # fmt: off
        return (
            *(
                (
                    str(self.bisheng), *unit.flags, *gcc,
                    "-c", "-fPIC", "-O2", "-std=c++17", f"-I{SOURCES}",
                    str(SOURCES / unit.source), "-o", target,
                )
                for unit, target in zip(units, made, strict=True)
            ),
            (
                str(self.bisheng), "-shared", arch, *gcc, *made,
                *(f"-L{folder}" for folder in folders),
                "-ltorch_npu", "-ltorch", "-ltorch_cpu", "-lc10", "-lascendcl",
                "-o", str(library),
            ),
        )
        # fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    source: str
    name: str
    flags: tuple[str, ...]


def find_toolchain(target: KernelTarget = A2_A3_TARGET) -> Toolchain:
    """Look for everything that a build needs.

    Args:
        target: the chip family that is built for.

    Raises:
        BuildError: naming the first thing that is missing and what would provide it.
    """
    cann = _find_cann()
    version = cann_version(cann, target.minimum_cann)
    bisheng = _find_bisheng(cann)
    torch, torch_npu = (_find_package(name) for name in ("torch", "torch_npu"))
    try:
        with without_autoload():
            abi = bool(_import("torch")._C._GLIBCXX_USE_CXX11_ABI)
    except Exception as error:
        raise BuildError(f"torch is installed but does not import: {root_cause(error)}") from error
    return Toolchain(
        cann=cann,
        bisheng=bisheng,
        torch=torch,
        torch_npu=torch_npu,
        is_cxx11_abi=abi,
        cann_version=version,
        gcc=_find_gcc(),
    )


def build(library: Path | None = None, kind: Library = CAST_LIBRARY) -> Path:
    """Build a library; None: in the user's cache. Returns where it is.

    A library that is there already is replaced, at once, when the new one is complete.

    Raises:
        BuildError: something is missing, or the compiler fails.
    """
    toolchain = find_toolchain(kind.target)
    if library is None:
        target = cached_library(kind)
        _make_cache_private(target)
    else:
        target = library
        target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as place:
        made = Path(place) / kind.file
        for command in toolchain.commands(made, Path(place), kind):
            _run(command)
        os.replace(made, target)
    return target


def _run(command: tuple[str, ...]) -> None:
    """Run a compiler; the last word of the command is its output."""
    done = subprocess.run(command, check=False)
    made = Path(command[-1])
    if done.returncode or not made.is_file():
        raise BuildError(
            f"{command[0]} ended with status {done.returncode}"
            + ("" if made.is_file() else f" and made no {made.name}")
            + "; what it printed says why"
        )


def cached_library(kind: Library = CAST_LIBRARY) -> Path:
    """Return the cached library's path, by these sources and this torch and torch_npu."""
    digest = hashlib.sha256(kind.architecture.encode())
    sources = [path for folder in kind.folders for path in (SOURCES / folder).iterdir()]
    for source in sorted([path for path in sources if path.is_file()]):
        digest.update(source.read_bytes())
    for package in ("torch", "torch_npu"):
        digest.update(f"{package} {_version(package)} {platform.machine()}".encode())
    return cache_folder() / f"npu-{digest.hexdigest()[:32]}" / kind.file


def _make_cache_private(library: Path) -> None:
    try:
        make_private(cache_folder())
        make_private(library.parent)
    except OSError as error:
        raise BuildError(
            f"the library cannot be kept in {library.parent}: {error}. Set XDG_CACHE_HOME to a "
            "folder of your own that can be written to, or name a file with --out"
        ) from error


@contextmanager
def without_autoload() -> Iterator[None]:
    """Import torch by itself: its device backends fail where their runtime is missing."""
    before = os.environ.get(AUTOLOAD)
    os.environ[AUTOLOAD] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[AUTOLOAD]
        else:
            os.environ[AUTOLOAD] = before


def root_cause(error: BaseException) -> str:
    """The error that started it all, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(f"{type(error).__name__}: {error}".split())


def _import(name: str) -> Any:
    return importlib.import_module(name)


def _find_cann() -> Path:
    home = os.environ.get("ASCEND_HOME_PATH")
    if not home:
        raise BuildError(
            "ASCEND_HOME_PATH is not set: install CANN and source its set_env.sh, then build again"
        )
    if not Path(home).is_dir():
        raise BuildError(f"ASCEND_HOME_PATH={home} is no folder: source CANN's set_env.sh")
    return Path(home)


def cann_version(cann: Path, minimum: tuple[int, int] = A2_A3_TARGET.minimum_cann) -> str:
    """The version that a CANN folder says it has.

    Args:
        cann: the folder.
        minimum: the oldest one that the kernels need.

    Raises:
        BuildError: it says none, or one older than the kernels need.
    """
    for name in VERSION_FILES:
        try:
            text = (cann / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found = _VERSION.search(text)
        if found is None:
            continue
        version = found[1]
        if tuple(map(int, found.group(2, 3))) < minimum:
            needed = ".".join(map(str, minimum))
            raise BuildError(
                f"CANN {version} in {cann} ({name}) is older than {needed}, which the kernels "
                f"need: install CANN {needed} or newer"
            )
        return version
    raise BuildError(
        f"{cann} does not say which CANN it is: none of {', '.join(VERSION_FILES)} in it names a "
        "version; ASCEND_HOME_PATH has to be the folder of CANN's toolkit"
    )


def _find_gcc() -> Path | None:
    """The root of the machine's GCC, as CANN's torch samples find it."""
    gcc = shutil.which("g++") or shutil.which("gcc")
    if gcc is None:
        return None
    done = subprocess.run(
        [gcc, "-print-file-name=libgcc.a"], capture_output=True, text=True, check=False
    )
    root, separator, _ = str(Path(done.stdout.strip()).resolve()).rpartition("/lib/gcc/")
    return Path(root) if separator else None


def _find_bisheng(cann: Path) -> Path:
    places = (
        cann / f"{platform.machine()}-linux/ccec_compiler/bin",
        cann / "compiler/ccec_compiler/bin",
        cann / "bin",
    )
    path = os.pathsep.join([*map(str, places), os.environ.get("PATH", os.defpath)])
    found = shutil.which("bisheng", path=path)
    if found is None:
        raise BuildError(
            f"the compiler bisheng is neither in {cann} nor on PATH: install CANN's toolkit"
        )
    return Path(found)


def _find_package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise BuildError(f"{name} is not installed for {sys.executable}: pip install {name}")
    return Path(spec.submodule_search_locations[0])


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m ascend_kernels.build", description="Build the library for the NPU."
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the library, not in the cache")
    parser.add_argument("--dry-run", action="store_true", help="print every command, run nothing")
    kinds = {kind.architecture: kind for kind in CAST_LIBRARIES.values()}
    parser.add_argument(
        "--arch",
        choices=kinds,
        default=CAST_LIBRARY.architecture,
        help="what it is compiled for: dav-2201 is A2 and A3 (if not given), dav-3510 the 950",
    )
    arguments = parser.parse_args()
    kind = kinds[arguments.arch]
    try:
        if arguments.dry_run:
            library = arguments.out or cached_library(kind)
            toolchain = find_toolchain(kind.target)
            print(f"# CANN {toolchain.cann_version} in {toolchain.cann}")
            for command in toolchain.commands(library, library.parent, kind):
                print(shlex.join(command))
        else:
            print(build(arguments.out, kind))
    except (BuildError, CompiledLibraryError) as error:
        print(f"cannot build {LIBRARY}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
