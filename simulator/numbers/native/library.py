"""Finds, checks and calls the library of the native engine.

The library comes with an installation (`pip install .` or `pip install -e .`). It is taken only if
it was built from the sources that lie beside this file: its digest of them is compared, so that it
serves a checkout of the same sources and no other.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from simulator.compiled_library import CompiledLibraryError, find_compiler
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import Codes, FloatFormat
from simulator.numbers.native.format_tables import (
    FORMAT_NUMBERS,
    MAX_STEPS,
    MODE_NUMBERS,
    STATUS_TEXTS,
    STEP_FIELDS,
    VERSION,
    policy_bits,
)

SOURCES: Final = Path(__file__).with_name("csrc")
DISTRIBUTION: Final = "pypto-cast"
NAME: Final = "libpypto_cast_native"
SUFFIXES: Final = (".so", ".dylib")
LIBRARY_VARIABLE: Final = "PYPTO_CAST_NATIVE_LIBRARY"
"""A path, such as a build for debugging: no other library is looked at."""
LEVEL_VARIABLE: Final = "PYPTO_CAST_NATIVE_LEVEL"
"""Instructions to use instead of the fastest ones that the machine has."""


class NativeUnavailableError(RuntimeError):
    """The native engine cannot be used here; the text says why, in one line."""


class NativeAbsentError(NativeUnavailableError):
    """There is no library at all; nothing is damaged."""


class _Step(ctypes.Structure):
    """The struct Step in C++."""

    _fields_ = [(name, ctypes.c_uint32) for name in STEP_FIELDS]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Native:
    """A library that was found good.

    Attributes:
        path: where it is.
        levels: the instruction sets that this machine runs, by number; the last is the fastest.
        level: the one in use.
    """

    path: Path
    levels: tuple[str, ...]
    level: str
    library: ctypes.CDLL

    def loop(self, conversions: tuple[Conversion, ...]) -> Callable[[Codes, Codes], None] | None:
        """A function that carries out a chain of conversions, to the bits of the definition.

        NaN, infinity, -0, subnormal numbers and overflow become what the definition makes of them,
        whatever rounding direction and flush mode the calling thread has; both stay as they are.
        Unused bits of a source's bytes are ignored, those of a result are 0. Other threads run on
        meanwhile.

        Args:
            conversions: at least one; each begins with the format that the one before ends with.

        Returns:
            A function (source codes, destination codes) of 1-D contiguous arrays of equal length
            that do not overlap; the result may begin where the source does if its elements are no
            wider. Safe to run in several threads. None: the chain is too long, or not one that the
            definition has.
        """
        steps = _steps(conversions)
        if steps is None:
            return None
        level, count = self.levels.index(self.level), len(steps)
        run = self.library.pypto_cast_native_run
        src, dst = conversions[0].src.code_dtype, conversions[-1].dst.code_dtype

        def convert(codes: Codes, out: Codes) -> None:
            if codes.dtype != src or out.dtype != dst:
                raise ValueError(
                    f"the codes are {codes.dtype} and become {out.dtype}; these conversions take "
                    f"{src} and give {dst}"
                )
            if codes.shape != out.shape or codes.ndim != 1:
                raise ValueError(
                    f"{codes.shape} codes and {out.shape} results; both must be 1-D, equally long"
                )
            if not (codes.flags.c_contiguous and out.flags.c_contiguous and out.flags.writeable):
                raise ValueError("codes and results must be contiguous, and the results writable")
            status = run(level, steps, count, codes.ctypes.data, out.ctypes.data, codes.size)
            if status:
                raise ValueError([*STATUS_TEXTS.values()][status])

        return convert

    def has_loops(self, conversions: tuple[Conversion, ...]) -> bool:
        """Each conversion has a loop; else some go element by element, slowly."""
        steps = _steps(conversions)
        level = self.levels.index(self.level)
        return steps is not None and bool(
            self.library.pypto_cast_native_has_loops(level, steps, len(steps))
        )


def digest() -> str:
    """The digest of the sources: SHA-256 of the list of their names and digests."""
    sources = [*SOURCES.glob("*.cpp"), *SOURCES.glob("*.h"), SOURCES / "CMakeLists.txt"]
    listing = "".join(
        f"{source.name} {hashlib.sha256(source.read_bytes()).hexdigest()}\n"
        for source in sorted(sources)
    )
    return hashlib.sha256(listing.encode()).hexdigest()


def native() -> Native:
    """The library, looked for once in a process, by the two environment variables as they are then.

    Raises:
        NativeUnavailableError: there is none, or it is damaged, of other sources or another
            version, or lacks the level that is asked for.
    """
    found = find()
    if isinstance(found, NativeUnavailableError):
        raise found
    return found


@cache
def find() -> Native | NativeUnavailableError:
    """The library, or why there is none; see `native`."""
    override, level = os.environ.get(LIBRARY_VARIABLE), os.environ.get(LEVEL_VARIABLE)
    expected = digest()
    refused = []
    for path, recorded in [(Path(override), None)] if override else _installed():
        try:
            return _with_level(load(path, expected, recorded), level)
        except NativeUnavailableError as error:
            refused.append(error)
    return refused[0] if refused else NativeAbsentError(_why_absent())


def _installed() -> Iterator[tuple[Path, str | None]]:
    """The libraries of the installation that exist, and the hash that its RECORD has of each."""
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        path = Path(str(file.locate()))
        if file.name in (NAME + suffix for suffix in SUFFIXES) and path.is_file():
            yield path, file.hash.value if file.hash else None


def _why_absent() -> str:
    if sys.platform == "win32":
        return "the native engine is not built on Windows"
    try:
        importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return f"the native engine comes with an installation, and {DISTRIBUTION} is not installed"
    missing = f"{DISTRIBUTION} is installed without the native engine"
    try:
        compiler = find_compiler()[0]
    except CompiledLibraryError as error:
        return f"{missing}: {error}; then install {DISTRIBUTION} again"
    return f"{missing}, which {compiler} can build: `pip install -v` says what fails"


def load(path: Path, expected: str, recorded: str | None = None) -> Native:
    """Load a library after a look at the file: a foreign or damaged one is not even mapped.

    Args:
        path: where it is.
        expected: the digest of the sources.
        recorded: the SHA-256 of the file as a wheel's RECORD spells it, in URL-safe Base64; None
            takes the file as it is.

    Raises:
        NativeUnavailableError: it cannot be read or loaded, or is not of the expected sources.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise NativeAbsentError(f"{path} cannot be read: there is no such file") from error
    except OSError as error:
        raise NativeUnavailableError(f"{path} cannot be read: {error.strerror}") from error
    if expected.encode() not in content:
        raise NativeUnavailableError(
            f"{path} was not built from these sources; install {DISTRIBUTION} again"
        )
    if recorded not in (None, _record(content)):
        raise NativeUnavailableError(f"{path} is damaged; install {DISTRIBUTION} again")
    try:
        library = ctypes.CDLL(str(path))
        _declare(library)
    except (OSError, AttributeError) as error:
        raise NativeUnavailableError(f"{path} cannot be loaded: {error}") from error
    version = library.pypto_cast_native_version()
    if version != VERSION or library.pypto_cast_native_digest().decode() != expected:
        raise NativeUnavailableError(
            f"{path} has version {version} where {VERSION} of these sources is needed; install "
            f"{DISTRIBUTION} again"
        )
    levels = tuple(library.pypto_cast_native_levels().decode().split())
    return Native(path=path, levels=levels, level=levels[-1], library=library)


def _with_level(found: Native, level: str | None) -> Native:
    if level is None:
        return found
    if level not in found.levels:
        raise NativeUnavailableError(
            f"{LEVEL_VARIABLE}={level} is no level of {found.path} on this machine, which has "
            f"{', '.join(found.levels)}"
        )
    return Native(path=found.path, levels=found.levels, level=level, library=found.library)


def _record(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _declare(library: ctypes.CDLL) -> None:
    library.pypto_cast_native_digest.restype = ctypes.c_char_p
    library.pypto_cast_native_levels.restype = ctypes.c_char_p
    chain = (ctypes.c_int, ctypes.POINTER(_Step), ctypes.c_int64)
    memory = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    library.pypto_cast_native_has_loops.argtypes = chain
    library.pypto_cast_native_run.argtypes = (*chain, *memory)


def _steps(conversions: tuple[Conversion, ...]) -> ctypes.Array[_Step] | None:
    if not 0 < len(conversions) <= MAX_STEPS:
        return None
    steps = (_Step * len(conversions))()
    for step, conversion in zip(steps, conversions, strict=True):
        to_float = isinstance(conversion.dst, FloatFormat) and not conversion.is_integral
        if conversion.policy.overflow.keeps_low_bits and to_float:
            return None
        step.src = FORMAT_NUMBERS[conversion.src.name]
        step.dst = FORMAT_NUMBERS[conversion.dst.name]
        step.mode = MODE_NUMBERS[conversion.mode]
        step.policy = policy_bits(conversion.policy)
    return steps
