"""The sorts of a device beside this package's: those that topk, sort and argsort are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.checks.check_program import (
    EXTREMES,
    REPEAT_BYTES,
    SORTS,
    CheckProgram,
    arithmetic_name,
)
from pypto_cast.device.device_model import ARG_ORDER, MERGE_ORDER, SORT_ORDER, SORTED_SCORES
from pypto_cast.device.facts import DeviceFact, Tally
from pypto_cast.device.repetition import Layout, Places, observe
from simulator.machine.memory import Bytes
from simulator.numbers.formats import FloatFormat
from tiling.chips import Chip

SORT_FACTS: Final = {
    SORTED_SCORES: "in descending order, each with its index, infinities at the ends",
    SORT_ORDER: "the one that lies first comes first, whatever its index",
    MERGE_ORDER: "those of the first list come first, also of lists of unequal length",
}
"""The facts that sorts tell, and the assumption of each."""
ARG_FACTS: Final = {ARG_ORDER: "the one that lies first"}
"""CANN asc-devkit, ReduceMax."""
_EXTREME_ROWS: Final = 4096
_PASS_ROWS: Final = 128
_ROWS: Final = 128
_LIST: Final = 32
_LISTS: Final = 4
_COUNT: Final = _LIST * _LISTS
_PAIR_BYTES: Final = 8
_SEED: Final = 20261127
Codes = npt.NDArray[Any]
Sorted = tuple[Codes, Codes]
"""Scores and indices, by row."""


def check_sorts(
    device: Callable[[CheckProgram], Bytes], fmt: FloatFormat, chip: Chip
) -> tuple[DeviceFact, ...]:
    """Compare a device's sorts and merges with this package's: scores of which many are equal.

    Args:
        device: runs a kernel.
        fmt: of the scores.
        chip: whose cores share the rows.
    """
    tallies = {name: Tally(name=name, assumed=text) for name, text in SORT_FACTS.items()}
    scores, indices = _operands(fmt)
    rows = scores.shape[0]
    lists = scores, indices
    for kernel in SORTS:
        run = partial(_sorted, device, kernel, fmt, chip)
        expected = _in_lists(lists) if kernel == "sort" else _merged(lists, SORTS[kernel][1])
        seen = observe(
            partial(_digest_in_order, run, scores, indices),
            partial(Layout.of_passes, rows, 1, min(rows, chip.vector_cores)),
            _digest(expected),
        )
        found = run(scores, indices)
        right = (found[0] == expected[0]).all(axis=1) & _belong(found, scores, indices)
        order = SORT_ORDER if kernel == "sort" else MERGE_ORDER
        pair = f"{kernel} {fmt}"
        example = partial(_example, pair, found, expected)
        here = np.ones(rows, np.bool_)
        differs = np.logical_or.reduce([codes != _digest(expected) for codes in seen.distinct])
        tallies[SORTED_SCORES].add(pair, here, ~right, example, seen)
        tallies[order].add(pair, right, differs & right, example, seen)
        if kernel == "sort":
            lists = found if right.all() else expected  # merges are of the device's own lists
    return tuple(tally.fact() for tally in tallies.values())


def _operands(fmt: FloatFormat) -> Sorted:
    """Scores of eight numbers and both infinities; the indices of odd rows count down."""
    random = np.random.default_rng([_SEED, fmt.bits])
    values = np.array([-np.inf, -3, -1, -0.5, 0.25, 1, 2, 1000, np.inf], fmt.dtype)
    scores = values[random.integers(0, values.size, (_ROWS, _COUNT))]
    indices = np.tile(np.arange(_COUNT, dtype=np.uint32), (_ROWS, 1))
    indices[1::2] = indices[1::2, ::-1]
    return scores, indices


def _sorted(
    device: Callable[[CheckProgram], Bytes],
    kernel: str,
    fmt: FloatFormat,
    chip: Chip,
    scores: Codes,
    indices: Codes,
) -> Sorted:
    """The device's scores and indices."""
    rows = scores.shape[0]
    x = np.concatenate([np.ascontiguousarray(each).view(np.uint8) for each in (scores, indices)], 1)
    program = CheckProgram(
        kernel=arithmetic_name(kernel, fmt),
        x=np.ascontiguousarray(x).reshape(-1),
        result_bytes=rows * _COUNT * _PAIR_BYTES,
        cores=min(rows, chip.vector_cores),
        tiling={"passes": rows},
    )
    count = sum(SORTS[kernel][1])
    pairs = device(program).reshape(rows, _COUNT, _PAIR_BYTES)[:, :count]
    width = fmt.dtype.itemsize
    found = np.ascontiguousarray(pairs[..., :width]).view(fmt.dtype)[..., 0]
    return found, np.ascontiguousarray(pairs[..., 4:]).view(np.uint32)[..., 0]


def _in_lists(pairs: Sorted) -> Sorted:
    """Each list by its scores, the first of equal ones first."""
    lists = [each.reshape(-1, _LISTS, _LIST) for each in pairs]
    order = np.argsort(-lists[0], axis=-1, kind="stable")
    one, other = (np.take_along_axis(each, order, -1).reshape(-1, _COUNT) for each in lists)
    return one, other


def _merged(pairs: Sorted, lengths: tuple[int, ...]) -> Sorted:
    """The beginnings of sorted lists as one, of equal scores those of the first list first."""
    kept = np.concatenate([np.arange(n) + at * _LIST for at, n in enumerate(lengths)])
    order = np.argsort(-pairs[0][:, kept], axis=-1, kind="stable")
    one, other = (np.take_along_axis(each[:, kept], order, -1) for each in pairs)
    return one, other


def _belong(found: Sorted, scores: Codes, indices: Codes) -> npt.NDArray[np.bool_]:
    """The rows in which every score still has an index of its own, and no index is there twice."""
    place = np.argsort(indices, axis=1)
    is_known = (found[1] < _COUNT).all(axis=1)
    known = np.where(found[1] < _COUNT, found[1], 0)
    own = np.take_along_axis(np.take_along_axis(scores, place, 1), known.astype(np.intp), 1)
    is_once = np.array([np.unique(row).size == row.size for row in found[1]])
    matching: npt.NDArray[np.bool_] = (own == found[0]).all(axis=1) & is_known & is_once
    return matching


def _digest(found: Sorted) -> npt.NDArray[np.uint64]:
    """A number for the whole of a row."""
    words = found[0].view(f"u{found[0].itemsize}").astype(np.uint64) << np.uint64(32) | found[1]
    weights = np.random.default_rng(_SEED).integers(1, 1 << 63, words.shape[1], np.uint64)
    total: npt.NDArray[np.uint64] = (words * (weights * np.uint64(2) + np.uint64(1))).sum(axis=1)
    return total


def _digest_in_order(
    run: Callable[[Codes, Codes], Sorted], scores: Codes, indices: Codes, order: Places
) -> npt.NDArray[np.uint64]:
    return _digest(run(scores[order], indices[order]))


def _example(pair: str, found: Sorted, expected: Sorted, row: int) -> str:
    differs = (found[0][row] != expected[0][row]) | (found[1][row] != expected[1][row])
    place = int(np.argmax(differs))
    texts = [f"{x[0][row][place]} of index {x[1][row][place]}" for x in (found, expected)]
    return f"{pair}, row {row}: number {place} is {texts[0]}, assumed {texts[1]}"


def check_extremes(
    device: Callable[[CheckProgram], Bytes], fmt: FloatFormat, chip: Chip
) -> DeviceFact:
    """Compare the greatest and least elements of a device's rows, and their places, with ours.

    Args:
        device: runs a kernel.
        fmt: of the elements, of which many are equal.
        chip: whose cores share the rows.
    """
    lanes = REPEAT_BYTES * 8 // fmt.bits
    random = np.random.default_rng([_SEED, fmt.bits, lanes])
    values = np.array([-np.inf, -3, -1, 0.25, 1, 2, np.inf], fmt.dtype)
    widths = random.integers(1, values.size, (_EXTREME_ROWS, 1))  # rows with and without infinities
    first = random.integers(0, values.size + 1 - widths)
    rows = values[first + random.integers(0, widths, (_EXTREME_ROWS, lanes))]
    tally = Tally(name=ARG_ORDER, assumed=ARG_FACTS[ARG_ORDER])
    for kernel, places in (("argmax", rows.argmax(axis=1)), ("argmin", rows.argmin(axis=1))):
        best = rows[np.arange(_EXTREME_ROWS), places].view(fmt.code_dtype)
        expected = best.astype(np.uint64) << np.uint64(32) | places.astype(np.uint64)
        cores = min(_EXTREME_ROWS // _PASS_ROWS, chip.vector_cores)
        seen = observe(
            partial(_extremes_in_order, device, kernel, fmt, chip, rows),
            partial(Layout.of_passes, _EXTREME_ROWS, _PASS_ROWS, cores),
            expected,
        )
        wrong = np.logical_or.reduce([found != expected for found in seen.distinct])
        example = partial(_extreme_example, f"{kernel} {fmt}", seen.distinct, expected)
        tally.add(f"{kernel} {fmt}", np.ones_like(wrong), wrong, example, seen)
    return tally.fact()


def _extremes_in_order(
    device: Callable[[CheckProgram], Bytes],
    kernel: str,
    fmt: FloatFormat,
    chip: Chip,
    rows: Codes,
    order: Places,
) -> npt.NDArray[np.uint64]:
    """The code of the extreme of each row, above its place."""
    assert kernel in EXTREMES
    passes = len(rows) // _PASS_ROWS
    program = CheckProgram(
        kernel=arithmetic_name(kernel, fmt),
        x=np.ascontiguousarray(rows[order]).reshape(-1).view(np.uint8),
        result_bytes=2 * len(rows) * fmt.bits // 8,
        cores=min(passes, chip.vector_cores),
        tiling={
            "passes": passes,
            "pass_elems": _PASS_ROWS * rows.shape[1],
            "result_elems": 2 * _PASS_ROWS,
        },
    )
    found = device(program).view(fmt.code_dtype).reshape(-1, 2).astype(np.uint64)
    words: npt.NDArray[np.uint64] = found[:, 0] << np.uint64(32) | found[:, 1]
    return words


def _extreme_example(
    pair: str, runs: list[Codes], expected: npt.NDArray[np.uint64], row: int
) -> str:
    found = next(int(words[row]) for words in runs if words[row] != expected[row])
    texts = [f"0x{x >> 32:X} at {x & 0xFFFFFFFF}" for x in (found, int(expected[row]))]
    return f"{pair}, row {row}: {texts[0]}, assumed {texts[1]}"
