"""Time of special functions beside torch's, and of their certainty beside plain calls.

One thread, best of 2 in its processor time, on FP32 numbers inside the domain and INT32 for gcd.
"Special" is the certainty of the same with zeros, infinities and NaN, one of 100 numbers.

    python -m benchmarks.special_function_speed
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import torch

import pypto_cast as pypto
from benchmarks.measuring import Row, print_tables
from pypto_cast.recording import recording
from pypto_cast.recording.recording import Recording

SHAPE: Final = (4096, 4096)
TILE: Final = (16, 512)
ROUNDS: Final = 2
_RANDOM: Final = np.random.default_rng(1)
_X, _Y = (_RANDOM.normal(0, 1, SHAPE).astype(np.float32) for _ in range(2))
_INSIDE_ONE: Final = np.clip(_X / 5, -0.99, 0.99)
_FROM_ONE: Final = np.abs(_X) + 1
_INTEGERS: Final = tuple(
    _RANDOM.integers(low, high, SHAPE).astype(np.int32) for low, high in ((-100, 100), (1, 20))
)
Case = tuple[Callable[..., Any], Callable[..., Any], tuple[np.ndarray, ...]]
"""Ours, torch's, and the operands."""


def _alike(names: str, *operands: np.ndarray) -> dict[str, Case]:
    return {name: (getattr(pypto, name), getattr(torch, name), operands) for name in names.split()}


CASES: Final[dict[str, Case]] = {
    **_alike("atan asinh cos sin cosh sinh tan tanh erf erfc expm1 sign signbit", _X),
    **_alike("isfinite isnan tril triu", _X),
    **_alike("acos asin atanh", _INSIDE_ONE),
    **_alike("acosh log10 log1p log2", _FROM_ONE),
    **_alike("atan2 hypot fmod remainder copysign", _X, _Y),
    **_alike("pow", _FROM_ONE, _Y),
    **_alike("gcd", *_INTEGERS),
    "cbrt": (pypto.cbrt, lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3), (_X,)),
    "lrelu": (
        lambda x: pypto.lrelu(x, 0.01),
        lambda x: torch.nn.functional.leaky_relu(x, 0.01),
        (_X,),
    ),
    "prelu": (pypto.prelu, torch.nn.functional.prelu, (_X, _Y[0].copy())),
    "floor_div": (pypto.floor_div, torch.floor_divide, (_X, _Y)),
    "prod of rows": (
        lambda x: pypto.prod(x, -1, True),
        lambda x: torch.prod(x, -1, keepdim=True),
        (_X,),
    ),
    "cumprod": (lambda x: pypto.cumprod(x, 1), lambda x: torch.cumprod(x, 1), (_X,)),
    "permute": (
        lambda x: pypto.permute(x, [1, 0]),
        lambda x: x.permute(1, 0).contiguous(),
        (_X,),
    ),
}


def _best(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        run()
        seconds.append(time.thread_time() - start)
    return min(seconds)


def _with_specials(numbers: np.ndarray, first: int) -> np.ndarray:
    """A copy in which every hundredth float is a zero, an infinity or NaN."""
    found = numbers.copy()
    if found.dtype.kind == "f":
        places = found.reshape(-1)[first::100]
        places[:] = np.resize(np.array([0.0, -0.0, np.inf, -np.inf, np.nan]), places.size)
    return found


def measured() -> Iterator[Row]:
    """A row for each function."""
    for name, (ours, theirs, operands) in CASES.items():
        tensors = [torch.from_numpy(each) for each in operands]
        held = [pypto.from_numpy(each) for each in operands]
        special = [
            pypto.from_numpy(_with_specials(each, 37 * k)) for k, each in enumerate(operands)
        ]

        def run(bounds: bool, held: Any, ours: Any = ours) -> object:
            with recording.running(Recording(kernel="benchmark", bounds=bounds)):
                found = ours(*held).enclosure()
            return found.low if bounds else found.values

        base = _best(lambda theirs=theirs, tensors=tensors: theirs(*tensors))
        plain, certainty, plain_special, certainty_special = (
            _best(lambda run=run, b=b, x=x: run(b, x))
            for x in (held, special)
            for b in (False, True)
        )
        yield {
            "operation": name,
            "torch_ms": round(base * 1e3, 1),
            "plain": round(plain / base, 1),  # in torch's time
            "certainty": round(certainty / plain, 1),  # in plain's time
            "special": round(certainty_special / plain_special, 1),  # the same
        }


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=TILE):
        warnings.simplefilter("ignore")
        print_tables({"special functions": measured()}, as_json=False)


if __name__ == "__main__":
    main()
