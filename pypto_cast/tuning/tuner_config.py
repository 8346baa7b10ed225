"""The short list in the form that upstream's tuner reads, so that it can be timed on a device.

Read from tools/scripts/tuner (tuner.py, README.md, config.json) of hicann/pypto 883e7dfb0, 0.2.1.
The tuner knows files, lines and lists of values; of shapes, dtypes, chips and estimates it knows
nothing, so none is in the file. It inserts the string, filled in with one candidate after the
other, behind the named line, runs `python3 <test_name>` and reads the time of the busiest core from
bubble_analysis.log; for that the kernel's jit needs debug_options={"runtime_debug_mode": 1}.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tiling.grid import Shape
from tiling.input_files import document_bytes

_CALL: Final = "set_vec_tile_shapes("
_PARAMETER: Final = "cast_tile"
_REPEATS: Final = 5
"""Runs of each candidate; the tuner takes their median."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """The line where a kernel sets its tile shape; the tuner inserts its own call behind it."""

    path: str
    line: int


NO_KERNEL: Final = KernelLine(path="kernel.py", line=1)
"""Stands in the file where no kernel was named; to be replaced by hand."""


def kernel_line_named(text: str) -> KernelLine:
    """`models/kernel.py:29`; a file that is here must call `set_vec_tile_shapes` on that line.

    Raises:
        ValueError: no path and line, or the file's line is another one.
        OSError: the file cannot be read.
    """
    match = re.fullmatch(r"(.+):(\d{1,9})", text)
    if match is None or int(match[2]) < 1:
        raise ValueError(f"a kernel is a path and a line, as in kernel.py:29; got {text!r}")
    named = KernelLine(path=match[1], line=int(match[2]))
    path = Path(named.path)
    if path.exists():
        lines = document_bytes(path).decode(errors="replace").splitlines()
        found = lines[named.line - 1].strip() if named.line <= len(lines) else ""
        if _CALL not in found:
            calls = [str(n) for n, line in enumerate(lines, start=1) if _CALL in line]
            where = f"it is called on {', '.join(calls)}" if calls else "no line does"
            raise ValueError(
                f"line {named.line} of {named.path} does not call set_vec_tile_shapes; {where}"
            )
    return named


def tuner_config(tiles: Sequence[Shape], kernel: KernelLine) -> dict[str, Any]:
    """The config.json of upstream's tuner, candidates in order of rank.

    Args:
        tiles: the tile shapes to time, all with as many axes.
        kernel: where to insert the call.
    """
    axes = ", ".join(f"{{{_PARAMETER}[{axis}]}}" for axis in range(len(tiles[0])))
    return {
        "test_name": kernel.path,
        "results_folder": "measurements",
        "save_best_k": len(tiles),
        "repeats": _REPEATS,
        "files": [
            {
                kernel.path: [
                    {
                        "line": kernel.line,
                        "string": f"pypto.set_vec_tile_shapes({axes})",
                        _PARAMETER: [list(tile) for tile in tiles],
                    }
                ]
            }
        ],
    }
