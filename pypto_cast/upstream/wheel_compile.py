"""Compiling a kernel with upstream's wheel, in the user's own environment, for its dump.

The user's file is not touched: a copy of it, with the import line exchanged, runs in a process with
a limit of time and of memory. Nothing is computed there; what is left is the folder of passes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ascend_kernels.schedule.upstream_dump import DUMP_FILES, LAST_PASS

SECONDS: Final = 180
MEMORY_BYTES: Final = 16 << 30
_IMPORT: Final = re.compile(r"^([ \t]*)import pypto_cast as pypto[ \t]*$", re.M)
_RECORDED: Final = re.compile(r"^ERROR:root:Record function \S+ failed: (.*)$", re.M)
_DRIVER: Final = """
import sys
sys.path[:] = [each for each in sys.path if each]  # a file of the user's may be called select.py
import importlib.util, json, torch, pypto
upstream = pypto.frontend.jit
def jit(*arguments, **options):
    options["runtime_options"] = {**options.get("runtime_options", {}),
                                  "run_mode": pypto.RunMode.SIM}
    options["debug_options"] = {"compile_debug_mode": 1, "runtime_debug_mode": 1}
    if arguments and callable(arguments[0]):
        return upstream(**options)(*arguments)
    return upstream(*arguments, **options)
pypto.frontend.jit = jit
path, name, tensors = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
spec = importlib.util.spec_from_file_location("kernel_file", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
getattr(module, name)(*(torch.ones(shape, dtype=getattr(torch, dtype)) for shape, dtype in tensors))
"""


class WheelError(RuntimeError):
    """Upstream's compiler refused a kernel, or did not end; the text is its first real error."""


def compile_kernel(
    file: Path,
    kernel: str,
    tensors: Sequence[tuple[Sequence[int], str]],
    output: Path,
    *,
    python: str,
    seconds: int = SECONDS,
) -> None:
    """Compile a kernel with upstream's wheel and keep the passes that a schedule is read from.

    Args:
        file: the kernel's source.
        kernel: its name in the file.
        tensors: shape and torch's dtype of each argument.
        output: a folder that does not exist yet.
        python: the interpreter of an environment with the wheel and torch.
        seconds: the limit of time.

    Raises:
        WheelError: no passes were left; the first error that upstream wrote.
        FileExistsError: the folder is there.
    """
    if output.exists():
        raise FileExistsError(f"{output} exists; name a folder that does not")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / file.name
        copy.write_text(
            _IMPORT.sub(r"\1import pypto", file.read_text(encoding="utf-8")), encoding="utf-8"
        )
        command = [python, "-c", _DRIVER, copy.name, kernel, json.dumps(list(tensors))]
        printed = _run(command, folder, seconds)
        (dump,) = sorted(folder.glob("output_*"))[-1:] or (None,)
        leaves = [] if dump is None else list(dump.glob(f"{LAST_PASS}/After_*_LEAF_*"))
        if dump is None or not leaves:
            raise WheelError(f"{file}: {kernel}: {_first_error(printed)}")
        _keep(dump, output, {f"{folder}/": ""})


def _run(command: Sequence[str], folder: Path, seconds: int) -> str:
    environment: Mapping[str, str] = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TILE_FWK_OUTPUT_DIR": str(folder),
    }

    def limit() -> None:
        import resource  # there is none on Windows, and no wheel either

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
            preexec_fn=limit,
        )
    except subprocess.TimeoutExpired:
        raise WheelError(f"upstream's compiler did not end within {seconds} s") from None
    except OSError as error:
        raise WheelError(f"{command[0]} cannot be run: {error}") from None
    return done.stdout + done.stderr


def _first_error(printed: str) -> str:
    """The error that upstream logged; what it raises afterwards comes from half a kernel."""
    lines = printed.splitlines()
    found = _RECORDED.search(printed)
    if found is not None:
        # An error of the compiler's is a code, and says behind it what it is about.
        behind = printed[found.end() :].strip().splitlines() if "Errcode" in found[1] else []
        return " ".join([found[1], *behind[:1]])
    errors = [line.strip() for line in lines if "Error" in line]
    return errors[-1] if errors else (lines[-1] if lines else "nothing was printed")


def _keep(dump: Path, output: Path, names: Mapping[str, str]) -> None:
    """Copy what is read, without the names of temporary folders."""
    with tempfile.TemporaryDirectory(dir=output.parent) as name:
        made = Path(name) / output.name
        for pattern in DUMP_FILES:
            for path in dump.glob(pattern):
                target = made / path.relative_to(dump)
                target.parent.mkdir(parents=True, exist_ok=True)
                text = path.read_text(encoding="utf-8")
                for old, new in names.items():
                    text = text.replace(old, new)
                target.write_text(text, encoding="utf-8")
        shutil.move(made, output)
