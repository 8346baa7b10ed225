"""Programs that import pypto, run on each engine: the digests of all that their kernels leave.

    python -m support.programs.engine_digests FILE...

A test runs this in a directory of its own. On stdout stands, after what the programs print, a line
for each engine and each outermost call of a kernel: the engine, the kernel's name, the number of
its tensors, and the SHA-256 of their elements; then the outcome of the program. Draws have a seed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import sys
from typing import Any

import numpy as np

import pypto_cast as pypto
from pypto_cast.cli.main import main
from pypto_cast.kernel.jit import Kernel
from pypto_cast.recording import recording

MARK = "engine-digest"
ENGINES = ("native", "numpy")
_lines: list[str] = []


def _codes(value: Any) -> bytes | None:
    if isinstance(value, pypto.Tensor):
        value = value.data
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else None


def _noted(call: Any) -> Any:
    @functools.wraps(call)
    def run(kernel: Kernel, *arguments: Any, **named: Any) -> Any:
        is_outermost = recording.current() is None
        found = call(kernel, *arguments, **named)
        if is_outermost:
            codes = [code for x in (*arguments, *named.values()) if (code := _codes(x)) is not None]
            digest = hashlib.sha256(b"".join(codes)).hexdigest()
            _lines.append(f"{kernel.signature.kernel} {len(codes)} {digest}")
        return found

    return run


def _run(engine: Any, file: str) -> None:
    np.random.seed(36)
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("torch").manual_seed(36)
    _lines.clear()
    outcome = "0"
    try:
        with pypto.options(engine=engine):
            outcome = str(main(["run", "--npu-on-cpu", file]))
    except SystemExit as ended:
        outcome = str(ended.code)
    except Exception as error:
        outcome = type(error).__name__
    for line in (*_lines, f"outcome {outcome}"):
        print(MARK, engine, line)


if __name__ == "__main__":
    Kernel.__call__ = _noted(Kernel.__call__)  # type: ignore[method-assign]
    for each in sys.argv[1:]:
        for engine in ENGINES:
            _run(engine, each)
