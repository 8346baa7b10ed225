"""All tiles at once: what a tile program does to each element, over whole arrays.

Every element of a tensor lies in exactly one tile, and a cast looks at one element at a time. So
the result of the tiled program is, element for element, the chain of its conversions, in whatever
order and in however large chunks they are taken. That lets the fast fidelity go over GM in chunks
that suit the cache instead of in tiles; a property test holds it against the instructions.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers import fast, float_environment
from simulator.numbers.convert import Conversion
from simulator.numbers.engines import Engine, native_for
from simulator.numbers.formats import Codes
from simulator.numbers.native import library
from simulator.numbers.native.library import Native

Loop = fast.Loop
"""Converts source codes into destination codes: 1-D, contiguous, equally long, not overlapping."""

_CHUNK_ELEMS: Final = 1 << 15
_THREAD_ELEMS: Final = 1 << 16
"""Fewer elements than this are not worth a thread of their own, whose start takes some 30 us."""
_NATIVE_THREAD_ELEMS: Final = 1 << 19
"""The same of the native engine, which converts so many in 40 to 180 us."""


def loop(
    conversions: tuple[Conversion, ...], *, exact: bool = False, engine: Engine = "auto"
) -> Loop:
    """The path of a chain of conversions; every one gives the same codes.

    Args:
        conversions: the chain, applied in order.
        exact: take the definition.
        engine: "auto" takes the native engine where it has loops for the chain, or for a step of
            it, else the fastest proven path of numpy; "native" does without the loops, one element
            after another.

    Warns:
        EngineWarning: see `native_for`.
    """
    native = None if exact else native_for(engine)
    return _loop(conversions, exact, native, engine == "auto")


@functools.lru_cache(maxsize=512)
@float_environment.quiet()
def _loop(
    conversions: tuple[Conversion, ...], exact: bool, native: Native | None, needs_loops: bool
) -> Loop:
    if native is not None and (native.has_loops(conversions) or not needs_loops):
        path = native.loop(conversions)
        if path is not None:
            return path
    if len(conversions) == 1:
        return (_exact_loop if exact else _fast_loop)(conversions[0])
    steps = [_loop((c,), exact, native, needs_loops) for c in conversions]
    chain = _chain(conversions, steps)
    src, dst = conversions[0].src, conversions[-1].dst
    if exact or src.bits > fast.TABLE_BITS:
        return chain

    def convert_all(codes: Codes) -> Codes:
        table = np.empty(codes.size, dst.code_dtype)
        chain(codes, table)
        return table

    return fast.look_up(convert_all, src)


def run(
    conversions: tuple[Conversion, ...],
    values: npt.NDArray[Any],
    out: Codes,
    *,
    exact: bool = False,
    engine: Engine = "auto",
    threads: int = 1,
) -> None:
    """Convert an array of any strides and byte order into codes.

    Args:
        conversions: the chain, applied in order.
        values: source codes or values of the first format, any shape; not modified.
        out: destination codes, 1-D and contiguous, as many elements, in row-major order.
        exact: take the definition instead of the fast paths.
        engine: as for `loop`.
        threads: how many threads to share a contiguous array among.

    Warns:
        EngineWarning: see `native_for`.
    """
    path = loop(conversions, exact=exact, engine=engine)
    code_dtype = conversions[0].src.code_dtype
    if values.flags.c_contiguous and values.flags.aligned and values.dtype.isnative:
        codes = values.reshape(-1).view(code_dtype)
        if threads == 1:
            path(codes, out)
        else:
            is_native = not exact and engine != "numpy" and isinstance(library.find(), Native)
            least = _NATIVE_THREAD_ELEMS if is_native else _THREAD_ELEMS
            share(lambda span: path(codes[span], out[span]), codes.size, threads, least)
        return
    codes = values.view(code_dtype.newbyteorder(values.dtype.byteorder))
    for start in range(0, codes.size, _CHUNK_ELEMS):
        chunk = codes.flat[start : start + _CHUNK_ELEMS].astype(code_dtype, copy=False)
        path(chunk, out[start : start + chunk.size])


def share(
    work: Callable[[slice], None], count: int, threads: int, least: int = _THREAD_ELEMS
) -> None:
    """Do a work on elements that do not depend on each other, shared among threads.

    The caller's is one of them. The others have the context variables of the caller. The caller
    does the work of threads that cannot be started: while the process ends, or by its limits. No
    thread traps or warns of floating-point exceptions meanwhile.

    Spans do not overlap and make up all elements, and no two threads have one span. So what the
    work reads may be shared in any way, and what it writes lies in its own span. When this returns
    or raises, no thread works any more.

    Args:
        work: takes a span of the elements; it shares nothing itself, for it would wait for the
            thread that it runs on.
        count: all of them; a short array has fewer threads than it may, or only the caller's.
        threads: at most.
        least: elements that are worth a thread.

    Raises:
        BaseException: what the work raises, the caller's before those of others; spans that nobody
            has taken yet are left out then.
    """
    shares = max(1, min(threads, count // least))
    if shares == 1:
        with float_environment.quiet():
            work(slice(0, count))
        return
    bounds = [count * number // shares for number in range(shares + 1)]
    spans = deque(slice(start, stop) for start, stop in itertools.pairwise(bounds))

    @float_environment.quiet()
    def work_off() -> None:
        # Each span is taken once, so that nothing is left to a thread that starts too late.
        while True:
            try:
                span = spans.popleft()
            except IndexError:
                return
            work(span)

    others: list[Future[None]] = []
    with contextlib.suppress(RuntimeError):
        for _ in range(shares - 1):
            others.append(_pool(shares - 1).submit(contextvars.copy_context().run, work_off))
    try:
        work_off()
    finally:
        spans.clear()
        wait(others)
    for other in others:
        other.result()


@functools.lru_cache(maxsize=16)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="pypto_cast")


if hasattr(os, "register_at_fork"):  # a forked process has the pools, but not their threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _fast_loop(conversion: Conversion) -> Loop:
    """The fast path, or the definition where there is none or it cannot be trusted.

    The floating-point unit rounds in the fast paths, those from integers too; the definition has no
    use for that unit. A path is asked for on the thread that runs it.
    """
    path, exact = fast.loop(conversion), _exact_loop(conversion)
    if path is None:
        return exact
    trusted = path

    def run_guarded(codes: Codes, out: Codes) -> None:
        (trusted if float_environment.is_default() else exact)(codes, out)

    return run_guarded


def _exact_loop(conversion: Conversion) -> Loop:
    def run_exact(codes: Codes, out: Codes) -> None:
        for start in range(0, codes.size, _CHUNK_ELEMS):
            stop = start + _CHUNK_ELEMS
            out[start:stop] = conversion.reference(codes[start:stop])

    return run_exact


def _chain(conversions: tuple[Conversion, ...], steps: list[Loop]) -> Loop:
    """Apply loops one after another, a chunk at a time."""
    between = [c.dst.code_dtype for c in conversions[:-1]]

    def run_chain(codes: Codes, out: Codes) -> None:
        for start in range(0, codes.size, _CHUNK_ELEMS):
            chunk = codes[start : start + _CHUNK_ELEMS]
            targets = [np.empty(chunk.size, dtype) for dtype in between]
            targets.append(out[start : start + _CHUNK_ELEMS])
            for step, target in zip(steps, targets, strict=True):
                step(chunk, target)
                chunk = target

    return run_chain
