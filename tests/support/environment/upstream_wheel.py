"""Upstream's wheel in an environment of its own, and kernels as files that it can compile."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from pypto_cast.kernel.jit import Kernel
from pypto_cast.tensors.arguments import TensorAnnotation

RELEASE: Final = "pypto==0.2.0"
SECONDS: Final = 120
"""The longest that one process of the wheel may take."""
_OURS: Final = "import pypto_cast as pypto"
_OPTIONS: Final = '(runtime_options={"run_mode": pypto.RunMode.SIM})'
_LENGTH: Final = 32
"""The length of a dimension that an annotation leaves open."""
_CALL: Final = """
import json, sys, torch
tensors, others = json.loads(sys.argv[1])
{kernel}(*(torch.ones(shape, dtype=getattr(torch, dtype)) for shape, dtype in tensors), **others)
print("compiled")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """A kernel of an example or a page.

    Attributes:
        place: the file.
        name: the kernel's.
        text: its function, and the constants that it names.
    """

    place: str
    name: str
    text: str


def python_with_wheel(folder: Path) -> Path:
    """The interpreter of a new environment with upstream's wheel, and the torch of the tests."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("upstream needs torch, which is not installed")
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    installed = subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "--no-deps", RELEASE],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"{RELEASE} cannot be installed: {installed.stderr.strip()[-300:]}")
    (site,) = (environment / "lib").glob("python*/site-packages")
    torch = sysconfig.get_paths()["purelib"]
    (site / "torch_of_the_tests.pth").write_text(f"{torch}\n", encoding="utf-8")
    return python


def run(*command: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command that writes to no other folder; what upstream's compiler dumps stays there."""
    where = {"HOME": str(cwd), "TILE_FWK_OUTPUT_DIR": str(cwd)}
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path, **where}
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def compiled(python: Path, kernel: KernelText) -> tuple[bool, str]:
    """Compile a kernel with upstream's wheel: if that succeeds, and all that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.py"
        text = kernel.text.replace(_OURS, "import pypto")
        file.write_text(text + _CALL.format(kernel=kernel.name), encoding="utf-8")
        asked = json.dumps(_arguments(kernel))
        done = run(str(python), "-W", "ignore", str(file), asked, cwd=Path(folder))
    return done.stdout.endswith("compiled\n"), done.stdout + done.stderr


def _arguments(kernel: KernelText) -> tuple[list[tuple[list[int], str]], dict[str, int]]:
    """Shape and dtype of each tensor that a kernel takes, and a number for each other parameter."""
    space: dict[str, Any] = {}
    exec(kernel.text, space)
    found = space[kernel.name]
    assert isinstance(found, Kernel)
    tensors = [_tensor(annotation) for annotation in found.signature.tensors.values()]
    return tensors, dict.fromkeys(found.signature.others, 3)


def _tensor(annotation: TensorAnnotation) -> tuple[list[int], str]:
    shape = [entry if isinstance(entry, int) else _LENGTH for entry in annotation.shape]
    assert annotation.dtype is not None
    names = {"DT_FP32": "float32", "DT_FP16": "float16", "DT_BF16": "bfloat16"}
    name = annotation.dtype.name
    return shape, names.get(name, name.removeprefix("DT_").lower())


def kernels_in(place: str, source: str) -> Iterator[KernelText]:
    """The kernels of a module, each with the module's constants that it names."""
    tree = ast.parse(source)
    lines = source.splitlines()
    constants = {
        target.id: node
        for node in tree.body
        if isinstance(node, ast.Assign)
        for each in node.targets
        for target in ast.walk(each)
        if isinstance(target, ast.Name)
    }
    for node in tree.body:
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        called = [each.func if isinstance(each, ast.Call) else each for each in decorators]
        for name in map(ast.unparse, called):
            if isinstance(node, ast.FunctionDef) and name in ("pypto.frontend.jit", "pypto.jit"):
                needed = _named(node, constants)
                parts = [ast.unparse(each) for each in tree.body if each in needed]
                function = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                text = "\n".join([_OURS, "", *parts, "", f"@{name}{_OPTIONS}", function, ""])
                yield KernelText(place=place, name=node.name, text=text)


def _named(node: ast.AST, constants: dict[str, ast.Assign]) -> list[ast.Assign]:
    """The assignments to names that code reads, and to those that they read."""
    parameters = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    read = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - parameters
    found: list[ast.Assign] = []
    for made in map(constants.get, read):
        if made is not None and made is not node and made not in found:
            found += [made, *_named(made, constants)]
    return found
