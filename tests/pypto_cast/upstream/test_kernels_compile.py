"""Upstream's wheel compiles the kernels of examples and pages: only the import line differs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from support.environment.page_code import blocks_of
from support.environment.sources import ROOT
from support.environment.upstream_wheel import KernelText, compiled, kernels_in

from docs.generators import operation_examples

REFUSED: Final = MappingProxyType(
    {
        "int8_per_channel.py": "module 'pypto' has no attribute 'quantize'",
        "int8_per_group.py": "module 'pypto' has no attribute 'quantize'",
        "uint8_per_group.py": "The shape.size() only support 2~4, func Round",
        "adamw_bf16.py": "Operation already in a group",
        "the page of atomic_add": "module 'pypto' has no attribute 'atomic_add'",
        "the page of axpy_": "module 'pypto' has no attribute 'axpy_'",
        "the page of index_add__ub": "module 'pypto' has no attribute 'index_add__ub'",
        "kernel_fit.md: pypto.set_vec_tile_shapes(32, 1024)": "Run pass failed",
    }
)
"""Files, or lines of them, whose kernels 0.2.0 cannot compile, and its message."""


def refusal_of(kernel: KernelText) -> str | None:
    """The message with which 0.2.0 refuses a kernel."""
    for place, message in REFUSED.items():
        file, _, line = place.partition(": ")
        if kernel.place == file and line in kernel.text:
            return message
    return None


def modules() -> Iterator[tuple[str, str]]:
    """Python with kernels: name of the file, and source."""
    for path in sorted((ROOT / "examples").rglob("*.py")):
        yield path.name, path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")]):
        for block in blocks_of(path.read_text(encoding="utf-8")):
            _, start, code = block.text.partition("import pypto_cast as pypto")
            if start and block.language in ("python", "text"):
                yield path.name, start + code
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and "pypto.frontend.jit" in source:
                yield path.name, source.partition("\n")[2] if source[0] == "%" else source
    for name in operation_examples.STATEMENTS:
        yield f"the page of {name}", operation_examples.example(name)


def kernels() -> list[KernelText]:
    """Each kernel once: pages and their translations have the same."""
    found: dict[str, KernelText] = {}
    for place, source in modules():
        for kernel in kernels_in(place, source):
            found.setdefault(kernel.text, kernel)
    return list(found.values())


def test_kernels_are_found() -> None:
    places = {kernel.place for kernel in kernels()}
    assert {path.name for path in (ROOT / "examples" / "kernels").glob("*.py")} <= places
    assert {"start.md", "route.md", "README.md", "device_owners.md"} <= places
    assert {each.partition(": ")[0] for each in REFUSED} <= places


@pytest.mark.upstream
@pytest.mark.parametrize("kernel", kernels(), ids=lambda kernel: f"{kernel.place}-{kernel.name}")
def test_upstream_compiles_it(kernel: KernelText, python_with_wheel: Path) -> None:
    is_compiled, printed = compiled(python_with_wheel, kernel)
    message = refusal_of(kernel)
    if message is None:
        assert is_compiled, printed[-3000:]
    else:
        assert not is_compiled, f"{kernel.name} compiles now: take it off the list"
        assert message in printed, printed[-3000:]
