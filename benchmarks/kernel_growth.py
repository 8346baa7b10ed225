"""The time of a kernel along one axis at a time: `python -m benchmarks.kernel_growth`.

Elements of one addition, operations of a chain on 64 elements, and tiles of a loop over rows, by
processor time, the best of several calls. `--write` draws docs/pictures/growth_NAME.svg.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

import pypto_cast as pypto
from benchmarks.measuring import Row, date_and_revision, markdown

PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures"
_D: Final = pypto.STATIC
_Fp32 = pypto.Tensor([_D, _D], pypto.DT_FP32)
_SECONDS: Final = 0.4
_MOST_CALLS: Final = 200
_LENGTH: Final = 64


@pypto.jit
def add(x: _Fp32, out: _Fp32) -> None:
    """One operation."""
    pypto.set_vec_tile_shapes(16, 512)
    out[:] = pypto.add(x, x)


@pypto.jit
def chain(x: _Fp32, out: _Fp32, count: int) -> None:
    """Operations of which each takes the result of the one before."""
    pypto.set_vec_tile_shapes(16, 512)
    total = x
    for _ in range(count):
        total = pypto.add(total, x)
    out[:] = total


@pypto.jit
def rows(x: _Fp32, out: _Fp32) -> None:
    """A tile an iteration."""
    pypto.set_vec_tile_shapes(1, _LENGTH)
    for i in pypto.loop(x.shape[0]):
        row = pypto.view(x, [1, 64], [i, 0])
        powers = pypto.exp(pypto.sub(row, pypto.amax(row, -1, True)))
        pypto.assemble(pypto.div(powers, pypto.sum(powers, -1, True)), [i, 0], out)


@pypto.jit
def steered_rows(x: _Fp32, out: _Fp32) -> None:
    """The same in a body that Python steers, so that iterations run one by one."""
    pypto.set_vec_tile_shapes(1, _LENGTH)
    for i in pypto.loop(x.shape[0]):
        row = pypto.view(x, [1, 64], [i, 0]) if i >= 0 else x
        powers = pypto.exp(pypto.sub(row, pypto.amax(row, -1, True)))
        pypto.assemble(pypto.div(powers, pypto.sum(powers, -1, True)), [i, 0], out)


def _array(count: int) -> np.ndarray:
    length = min(count, 512)
    return np.linspace(-2, 2, count, dtype=np.float32).reshape(-1, length)


def _rows(count: int) -> np.ndarray:
    return np.linspace(-2, 2, count * _LENGTH, dtype=np.float32).reshape(count, _LENGTH)


def _call(kernel: Callable[..., object], x: np.ndarray, *others: object) -> Callable[[], object]:
    out = np.zeros_like(x)
    return lambda: kernel(x, out, *others)


AXES: Final[Mapping[str, tuple[Sequence[int], Mapping[str, Callable[[int], Callable[[], object]]]]]]
AXES = {
    "elements": (
        [1 << k for k in range(6, 27, 2)],
        {
            "add": lambda n: _call(add, _array(n)),
            "its certainty": lambda n: _call(add.certainty, _array(n)),
        },
    ),
    "operations": (
        [1 << k for k in range(0, 13, 2)],
        {"add of 64 elements": lambda n: _call(chain, _array(64), n)},
    ),
    "tiles": (
        [1, 10, 100, 1000, 10_000, 100_000],
        {
            "softmax of a row": lambda n: _call(rows, _rows(n)),
            "steered by Python": lambda n: _call(steered_rows, _rows(min(n, 10_000))),
        },
    ),
}
"""By axis: its points, and what is measured at each."""


def seconds_of(run: Callable[[], object]) -> float:
    """The best processor time of a call."""
    best, calls, until = math.inf, 0, time.perf_counter() + _SECONDS
    run()
    while calls < 2 or (time.perf_counter() < until and calls < _MOST_CALLS):
        start = time.process_time()
        run()
        best, calls = min(best, time.process_time() - start), calls + 1
    return best


def measured(axis: str) -> Iterator[Row]:
    """The rows of an axis: microseconds of a call, and nanoseconds for each of what it counts."""
    points, works = AXES[axis]
    for point in points:
        row: Row = {axis: point}
        for name, make in works.items():
            if name == "steered by Python" and point > 10_000:
                continue
            spent = seconds_of(make(point))
            row[f"{name}, us"] = round(1e6 * spent, 1)
            row["ns each" if "ns each" not in row else "ns each there"] = round(
                1e9 * spent / point, 2
            )
        yield row


def picture(axis: str, table: Sequence[Row]) -> str:
    """Time of a call over an axis, both logarithmic, as SVG."""
    names = [name for name in table[0] if name.endswith(", us")]
    width, height, left, base = 640, 320, 70, 280
    most_x = math.log10(max(row[axis] for row in table))
    times = [row[name] for row in table for name in names if name in row]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def place(x: float, y: float) -> tuple[float, float]:
        across = left + (width - left - 20) * math.log10(x) / most_x
        return round(across, 1), round(base - (base - 20) * (math.log10(y) - low) / (high - low), 1)

    lines = []
    for power in range(low, high + 1):
        _, y = place(1, 10.0**power)
        lines.append(f'<path class="grid" d="M{left} {y}H{width - 20}"/>')
        lines.append(f'<text x="{left - 6}" y="{y + 4}" class="end">{10.0**power:g} us</text>')
    for power in range(math.floor(most_x) + 1):
        x, _ = place(10.0**power, 10.0**low)
        lines.append(f'<text x="{x}" y="{base + 18}" class="mid">{10**power:,}</text>')
    lines.append(f'<text x="{width / 2}" y="{base + 36}" class="mid">{axis}</text>')
    for number, name in enumerate(names):
        points = [place(row[axis], row[name]) for row in table if name in row]
        path = " ".join(f"{x},{y}" for x, y in points)
        lines.append(f'<polyline class="line{number}" points="{path}"/>')
        lines.append(f'<text x="{left + 12}" y="{34 + 18 * number}" class="name{number}">')
        lines.append(f"{name.removesuffix(', us')}</text>")
    style = (
        "text{font:12px sans-serif;fill:#1a1a1a} .end{text-anchor:end} .mid{text-anchor:middle} "
        ".grid{stroke:#ddd} polyline{fill:none;stroke-width:2} .line0{stroke:#2a6fb0} "
        ".line1{stroke:#c0561f} .name0{fill:#2a6fb0} .name1{fill:#c0561f}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" role="img" aria-label="time of a call by {axis}">\n'
        f'<style>{style}</style>\n<rect width="{width}" height="{height}" fill="#fff"/>\n'
        + "\n".join(lines)
        + "\n</svg>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_growth", description=__doc__)
    parser.add_argument("--axis", choices=list(AXES), action="append", help="repeatable")
    parser.add_argument("--write", action="store_true", help="draw the pictures")
    given = parser.parse_args()
    day, revision = date_and_revision()
    print(f"Taken on {day} at {revision}, processor time, best of up to {_MOST_CALLS} calls.")
    for axis in given.axis or AXES:
        table = list(measured(axis))
        print(f"\n{markdown(table)}", flush=True)
        if given.write:
            (PICTURES / f"growth_{axis}.svg").write_text(picture(axis, table), encoding="utf-8")


if __name__ == "__main__":
    main()
