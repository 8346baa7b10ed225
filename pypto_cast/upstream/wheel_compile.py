"""Compiling a kernel with upstream's wheel, in the user's own environment, for its dump.

The user's file is run where it is, in a process with limits of time and memory in which
`pypto_cast` is the wheel's `pypto`. Nothing is computed there; what is left is the dump.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ascend_kernels.schedule.reader.upstream_dump import (
    DUMP_FILES,
    FIRST_LEAVES,
    FIRST_PASS,
    LAST_PASS,
)
from ascend_kernels.schedule.schedule import RELEASE
from pypto_cast.unfinished import held_back, place, unfinished

SECONDS: Final = 180
MEMORY_BYTES: Final = 16 << 30
_MOST_PRINTED_BYTES: Final = 1 << 24
_LEAST_FREE_BYTES: Final = 1 << 16
"""Left where a dump was written; with less it is not known to be whole: upstream says no word."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_NO_SPACE: Final = "no space is left there"
_NO_WHEEL: Final = re.compile(r"^pypto-cast: (.*)$", re.M)
"""The line that the driver prints where the environment cannot compile."""
_RECORDED: Final = re.compile(r"^ERROR:root:Record function \S+ failed: (.*)$", re.M)
_PASS_FAILED: Final = "Run pass failed"
"""The line that is printed where a pass refuses the kernel; the reason is in the log alone."""
_OF_SYMBOLS: Final = ("INT32_MAX", "Cannot convert symbols to int")
"""In the errors of operations on a tensor with an open length, of which they say no word."""
_OF_MEMORY: Final = ("MemoryError", "bad_alloc")
"""In errors of a process that has reached the limit of memory, which name no limit."""
_LOGGED: Final = re.compile(r"^\[ERROR\] .*?\[PASS\]:(?:\[[^]]*\]:)?[ \t]*(.*\S)", re.M)
_LOGS: Final = "ascend/log/debug/plog/*.log"
_DRIVER: Final = """
import sys
sys.path[:] = [each for each in sys.path if each]  # a file of the user's may be called select.py
sys.dont_write_bytecode = True
import importlib.metadata, importlib.util, json
given = json.loads(sys.argv[1])
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (given["memory_bytes"],) * 2)
    import torch, pypto
except ImportError as error:
    sys.exit(f"pypto-cast: {error}")
try:
    version = importlib.metadata.version("pypto")
except importlib.metadata.PackageNotFoundError:
    version = given["release"]  # built from source
if version != given["release"]:
    sys.exit(f"pypto-cast: it has pypto {version}")
upstream = pypto.frontend.jit
def jit(*arguments, **options):
    options["runtime_options"] = {**options.get("runtime_options", {}),
                                  "run_mode": pypto.RunMode.SIM}
    options["debug_options"] = {"compile_debug_mode": 0, "runtime_debug_mode": 1}
    if arguments and callable(arguments[0]):
        return upstream(**options)(*arguments)
    return upstream(*arguments, **options)
pypto.frontend.jit = jit
from pypto import pypto_impl as wheel
for name in given["passes"]:  # a dump of all of them is many times as large, and slow
    for key in (wheel.KEY_DUMP_GRAPH, wheel.KEY_PRINT_GRAPH):
        wheel.SetPassConfig("PVC2_OOO", name, key, True)
sys.modules["pypto_cast"] = pypto
sys.path += given["folders"]
spec = importlib.util.spec_from_file_location(given["module"], given["file"])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
tensors = [torch.ones(shape, dtype=getattr(torch, dtype)) for shape, dtype in given["tensors"]]
getattr(module, given["kernel"])(*tensors, **given["others"])
"""


class WheelError(RuntimeError):
    """Upstream's compiler refused a kernel, or did not end; the text is its first real error."""


def module_name(file: Path) -> tuple[Path, str]:
    """The folder that a file is imported from, and its name as a module of its packages."""
    folder, names = file.resolve().parent, [file.stem]
    while (folder / "__init__.py").is_file():
        folder, names = folder.parent, [folder.name, *names]
    return folder, ".".join(names)


def compile_kernel(
    file: Path,
    kernel: str,
    tensors: Sequence[tuple[Sequence[int], str]],
    output: Path,
    *,
    python: str,
    seconds: int = SECONDS,
    others: Mapping[str, Any] | None = None,
    dynamic: Sequence[str] = (),
    more_files: Sequence[str] = (),
) -> None:
    """Compile a kernel with upstream's wheel and keep the passes that a schedule is read from.

    Args:
        file: the kernel's source.
        kernel: its name in the file.
        tensors: shape and torch's dtype of each argument.
        output: a folder that does not exist yet, in one that does.
        python: the interpreter of an environment with the wheel and torch.
        seconds: the limit of time.
        others: numbers for parameters that are no tensors, by name.
        dynamic: the arguments that have a DYNAMIC dimension, which an error may be about.
        more_files: patterns of files in upstream's dump that are kept besides.

    Raises:
        ValueError: an empty `python`.
        WheelError: no passes were left; the first error that upstream wrote.
        FileExistsError: the output is there.
        OSError: it cannot be made there, before anything is compiled; or no space is left, there
            or in the folder of temporary files, which it names.
    """
    if not python:
        raise ValueError("name the interpreter of an environment with the wheel: --python PATH")
    target = Path(os.path.abspath(output))
    if os.path.lexists(target):
        raise FileExistsError(f"{output} exists; name a folder that does not")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is no folder; {output} is made in one that is")
    root, module = module_name(file)
    given = {
        "release": RELEASE,
        "passes": [each.rpartition("_")[2] for each in (FIRST_PASS, FIRST_LEAVES, LAST_PASS)],
        "memory_bytes": MEMORY_BYTES,
        "folders": [str(root), str(file.resolve().parent)],
        "module": module,
        "file": str(file.resolve()),
        "kernel": kernel,
        "tensors": list(tensors),
        "others": dict(others or {}),
    }
    with (
        _space_in(target),
        unfinished(target) as making,
        _space_in(Path(tempfile.gettempdir())),
        tempfile.TemporaryDirectory() as name,
    ):
        folder = Path(name)
        # It runs in another folder, so that a path is made whole; a symlink stays one: a venv's is.
        interpreter = os.path.abspath(python) if os.path.dirname(python) else python
        command = [interpreter, "-c", _DRIVER, json.dumps(given)]
        printed, code = _run(command, folder, seconds)
        (dump,) = sorted(folder.glob("output_*"))[-1:] or (None,)
        if found := _NO_WHEEL.search(printed):
            raise WheelError(
                f"{python}: {found[1]}; name the interpreter of an environment with "
                f"pypto=={RELEASE} and torch: --python PATH"
            )
        if shutil.disk_usage(folder).free < _LEAST_FREE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if dump is None or not list(dump.glob(f"{LAST_PASS}/After_*_LEAF_*")):
            if code is None:
                raise WheelError(
                    f"{file}: {kernel}: upstream's compiler did not end within {seconds} s; "
                    "--seconds N gives it longer"
                )
            said = _first_error(printed, code, folder)
            if any(each in said for each in _OF_MEMORY):
                said += f"; each process of the compiler may have {MEMORY_BYTES >> 30} GiB"
            if dynamic and any(each in said for each in _OF_SYMBOLS):
                said += (
                    f"; DYNAMIC dimensions of {', '.join(dynamic)}: upstream takes no such operand"
                )
                said += ", whatever its shape: compute on views in a loop"
            raise WheelError(f"{file}: {kernel}: {said}")
        with _space_in(target):
            _keep(dump, making / "dump", {f"{folder}/": "", f"{root}/": ""}, more_files)
            place(making / "dump", target, replace=False)


@contextlib.contextmanager
def _space_in(path: Path) -> Iterator[None]:
    """Let the error of a full disk, which has no path of its own, name this one."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL or (error.strerror or "").startswith(_NO_SPACE):
            raise
        raise OSError(error.errno, f"{_NO_SPACE}: {error.strerror}", os.fspath(path)) from None


def _run(command: Sequence[str], folder: Path, seconds: int) -> tuple[str, int | None]:
    """Return the output of a process, and its exit code if it ends; leave no process of its own."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TILE_FWK_OUTPUT_DIR": str(folder),
        "PYTHONIOENCODING": "utf-8",
    }

    # A file and no pipe: whoever is left of the compiler's processes may hold a pipe open.
    with (folder / "printed").open("w+b") as printed:
        process = None
        try:
            with held_back():  # an interrupt inside Popen would leave a process that nobody knows
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            code: int | None = process.wait(seconds)
        except OSError as error:
            raise WheelError(f"{command[0]} cannot be run: {error.strerror or error}") from None
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process is not None:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        printed.seek(0)
        return printed.read(_MOST_PRINTED_BYTES).decode(errors="replace"), code


def _first_error(printed: str, code: int, home: Path) -> str:
    """The error that upstream logged; later ones come from half a kernel."""
    lines = printed.splitlines()
    for path in sorted(home.glob(_LOGS)) if _PASS_FAILED in printed else ():
        with path.open(encoding="utf-8", errors="replace") as log:
            logged = _LOGGED.search(log.read(_MOST_PRINTED_BYTES))
        if logged is not None:
            return logged[1]
    found = _RECORDED.search(printed)
    if found is not None:
        # An error of the compiler's is a code, and says behind it what it is about.
        behind = printed[found.end() :].strip().splitlines() if "Errcode" in found[1] else []
        return " ".join([found[1], *behind[:1]])
    errors = [line.strip() for line in lines if "Error" in line]
    if code < 0:
        errors.append(f"upstream's compiler was ended by signal {-code}")
    if errors:
        return errors[-1]
    last = f"its last line is: {lines[-1]}" if lines else "nothing was printed"
    return f"upstream's compiler ended with {code} and left no dump; {last}"


def _keep(dump: Path, made: Path, names: Mapping[str, str], more_files: Sequence[str]) -> None:
    """Copy the files that are read, without the names of the user's and of temporary folders."""
    for pattern in (*DUMP_FILES, *more_files):
        for path in dump.glob(pattern):
            target = made / path.relative_to(dump)
            target.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            for old, new in names.items():
                text = text.replace(old, new)
            target.write_text(text, encoding="utf-8", errors="surrogateescape")
