"""Inputs full of special values beside ordinary ones, for every row with a float source."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX
from benchmarks.measuring import best_seconds, sample
from simulator.numbers.convert import codes_of, values_of
from simulator.numbers.formats import Codes, FloatFormat
from tiling.chips import A2_A3


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialRow:
    """One pair and mode: the time of an input over that of an ordinary one, 1 if it is the same."""

    pair: str
    mode: str
    nan: float
    infinite: float
    half_overflow: float
    subnormal: float


def inputs(src: FloatFormat, elems: int) -> dict[str, Codes]:
    """Codes of a format by what they are, of values in an order that no branch can foresee."""
    random = np.random.default_rng(11)
    ordinary = codes_of(sample(src, elems), src)
    dtype = ordinary.dtype
    largest = dtype.type(src.max_code)
    return {
        "us": ordinary,
        "nan": np.full(elems, src.nan_code, dtype),
        "infinite": np.full(elems, src.inf_code, dtype),
        "half_overflow": np.where(random.random(elems) < 0.5, ordinary, largest),
        "subnormal": random.integers(1, 1 << src.man_bits, elems, dtype),
    }


def rows(pairs: list[str], elems: int, rounds: int) -> Iterator[SpecialRow]:
    """Measure the pairs asked for (all of them if none is named), every mode."""
    pypto.set_vec_tile_shapes(4096)
    for rule in MATRIX[A2_A3].values():
        asked = not pairs or f"{rule.src}-{rule.dst}".lower() in pairs
        if not isinstance(rule.src, FloatFormat) or not asked:
            continue
        dtype = next(d for d in pypto.DataType if d.format is rule.dst)
        tensors = {
            name: pypto.from_numpy(values_of(codes, rule.src))
            for name, codes in inputs(rule.src, elems).items()
        }
        for mode in rule.modes or ("NONE",):
            cast_mode = pypto.CastMode[f"CAST_{mode}"]
            casts = {
                name: functools.partial(pypto.cast, tensor, dtype, cast_mode)
                for name, tensor in tensors.items()
            }
            best = best_seconds(casts, rounds)
            ordinary = best.pop("us")
            times = {name: round(seconds / ordinary, 2) for name, seconds in best.items()}
            yield SpecialRow(pair=str(rule), mode=str(mode), **times)
