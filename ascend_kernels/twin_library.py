"""The library of the g++ twin, compiled from the kernel's sources, and its C interface."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Final

from ascend_kernels.tiling_data import CastTilingData
from simulator.compiled_library import (
    CompiledLibraryError,
    LibrarySources,
    find_compiler,
    load_library,
)

SOURCES: Final = Path(__file__).with_name("csrc")
MAIN_SOURCE: Final = SOURCES / "twin" / "twin.cpp"
FLAGS: Final = ("-std=c++17", "-O3", "-fPIC", "-shared", "-pthread")
ERROR_BYTES: Final = 1024


class TwinUnavailableError(RuntimeError):
    """The twin cannot be built or loaded here; the text says why and what would help."""


class Launch(ctypes.Structure):
    """The struct PyptoTwinLaunch of the library."""

    _fields_ = [
        ("instance", ctypes.c_uint64),
        ("tiling", ctypes.POINTER(CastTilingData)),
        ("x", ctypes.c_void_p),
        ("x_bytes", ctypes.c_uint64),
        ("y", ctypes.c_void_p),
        ("y_bytes", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
    ]


class Record(ctypes.Structure):
    """One instruction of a trace: its kind, and what it was given."""

    _fields_ = [
        ("op", ctypes.c_int64),
        ("operands", ctypes.c_int64 * 13),
    ]


VISIT: Final = ctypes.CFUNCTYPE(None, ctypes.POINTER(Record))
NO_VISIT: Final = VISIT()


def library() -> ctypes.CDLL:
    """The twin, built if the cache has none of these sources, this compiler and these flags.

    Raises:
        TwinUnavailableError: no compiler, it fails, or the cache folder cannot be used.
    """
    try:
        return _declared(load_library(_library_sources()))
    except CompiledLibraryError as error:
        raise TwinUnavailableError(f"the twin is not available: {error}") from error


def compiler() -> tuple[str, ...]:
    """The command of the compiler that builds the twin: $CXX, else g++ or clang++.

    Raises:
        TwinUnavailableError: there is none.
    """
    try:
        return find_compiler()
    except CompiledLibraryError as error:
        raise TwinUnavailableError(f"the twin is not available: {error}") from error


def sources() -> list[Path]:
    """Every file that the library is made of."""
    return sorted([*SOURCES.glob("cast_*.h"), *MAIN_SOURCE.parent.iterdir()])


@functools.cache
def _library_sources() -> LibrarySources:
    return LibrarySources(name="twin", main=MAIN_SOURCE, files=tuple(sources()), flags=FLAGS)


@functools.lru_cache(maxsize=8)
def _declared(found: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its functions."""
    found.pypto_twin_run.argtypes = [
        ctypes.POINTER(Launch),
        ctypes.c_uint64,
        ctypes.c_uint64,
        VISIT,
        ctypes.c_char_p,
        ctypes.c_uint64,
    ]
    found.pypto_twin_run.restype = ctypes.c_int
    for repack in (found.pypto_twin_pack, found.pypto_twin_unpack):
        repack.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        repack.restype = None
    return found
