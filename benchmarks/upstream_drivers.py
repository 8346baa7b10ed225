"""Kernels of upstream's models, reached as upstream reaches them: by the drivers of their tests.

The drivers run under pytest until one calls the kernel; other kernels do nothing there. The name
`pypto_cast` is this package or, in a process that compiles, upstream's wheel.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

import pypto_cast as pypto
from benchmarks.upstream_kernels import Written, tensors_of

_REPOSITORY: Final = Path(__file__).resolve().parents[1]
_REQUESTS: Final = "npu_requests"
_TEST: Final = re.compile(r"^def te\w*\(", re.M)
_RESULT_CHECK: Final = re.compile(r"compare|assert_\w+")
"""Functions by which drivers check results, which nobody computes here."""
_MAIN: Final = '__name__ == "__main__"'
_PYTEST: Final = (
    *("-q", "--assert=plain", "--import-mode=importlib", "--noconftest", "-p", "no:cacheprovider"),
    *("-c", os.devnull, "-o", "python_files=*.py", "-o", "python_functions=te*"),
)
_DRIVEN: Final = """\
import sys
from pathlib import Path

sys.path.append({repository!r})
from benchmarks.upstream_drivers import call_of


def reached(accepts):
    return call_of(Path({file!r}), {name!r}, Path({root!r}), accepts)


def model():
    reached(lambda run, given, named: run(*given, **named) is None)
"""
_CALLED: Final = """\
import runpy
import sys

sys.path.insert(0, {folder!r})
sys.path.append({repository!r})
from benchmarks.upstream_drivers import drop_unknown

drop_unknown()
space = runpy.run_path({file!r})
kernel = space[{name!r}]
{name} = {call}
"""
_CUBE_TILE: Final = [[128, 128]] * 3
_OBJECTS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "flash_attention_varlen_forward_kernel_910": (
        "FlashAttentionTileShapeConfig",
        {
            "q_tile": 128,
            "k_tile": 2048,
            "c1_cube_tile": _CUBE_TILE,
            "v1_tile": [128, 128],
            "c2_cube_tile": _CUBE_TILE,
            "v2_tile": [128, 128],
        },
    ),
}
"""An object behind the tensors of a kernel that no driver calls: its class and fields.

The list cuts its text short behind `k_tile`; the other tiles are chosen."""
Call = tuple[Any, tuple[Any, ...], Mapping[str, Any]]
Accepts = Callable[[Callable[..., None], tuple[Any, ...], Mapping[str, Any]], bool]
_FRACTAL_NZ: Final = 29
_MOST_CALLS: Final = 3
"""So many calls of the kernel are tried."""


def driven(row: Mapping[str, str], folders: Sequence[Path]) -> Iterator[Written]:
    """The files that call a kernel of a model as its drivers do, one for each checkout that has it;
    behind each, where the row has tensors and numbers alone, one that calls it with these.

    Args:
        row: of the list; its kernel is a path in a checkout and a name, as "models/a.py:make.it".
        folders: the checkouts.
    """
    id, (path, _, name) = row["id"], row["kernel"].partition(":")
    for place, root in enumerate(folders):
        file = root / path
        if file.is_file() and f"def {name.rpartition('.')[2]}(" in file.read_text("utf-8"):
            text = _DRIVEN.format(
                repository=str(_REPOSITORY), file=str(file), name=name, root=str(root)
            )
            yield Written(id=f"{id}.{place}", name="model", text=text, tensors=())
            with contextlib.suppress(ValueError, SyntaxError):
                shapes = [each for each in row["shape"].split() if ":" in each]
                more = _arguments_behind(name, row["shape"].split()[len(shapes) :])
                if name.isidentifier() and (tensors := tensors_of(" ".join(shapes))):
                    text = _CALLED.format(
                        repository=str(_REPOSITORY),
                        folder=str(file.parent),
                        file=str(file),
                        name=name,
                        call=f"lambda *x: kernel(*x, {more})" if more else "kernel",
                    )
                    yield Written(id=f"{id}.{place}.row", name=name, text=text, tensors=tensors)


def _arguments_behind(name: str, listed: Sequence[str]) -> str:
    """The text of a kernel's arguments behind its tensors, which may use `space`, its module.

    Raises:
        ValueError, SyntaxError: the list has another text than a number, and nothing stands for it.
    """
    if name in _OBJECTS:
        kind, fields = _OBJECTS[name]
        return f"space[{kind!r}](**{fields!r})"
    return ", ".join(repr(ast.literal_eval(each)) for each in listed)


def drivers_of(file: Path, root: Path) -> list[Path]:
    """The files that call the kernels of a file: with tests of its own, or those that import it."""
    if _TEST.search(file.read_text(encoding="utf-8")):
        return [file]
    imports = re.compile(rf"^\s*(?:from|import) (?:[\w.]*\.)?{file.stem}\b", re.M)
    found = []
    for path in sorted(root.glob("**/*.py")):
        text = path.read_text(encoding="utf-8")
        if (path == file or imports.search(text)) and (_TEST.search(text) or _MAIN in text):
            found.append(path)
    return sorted(found, key=lambda each: (each == file, -len(os.path.commonpath([each, file]))))


def call_of(file: Path, name: str, root: Path, accepts: Accepts) -> Call:
    """Run the drivers of a kernel until one calls it as wanted.

    Args:
        file: the kernel's.
        name: of the kernel, behind the names of the functions that make it.
        root: of the checkout.
        accepts: gets what runs the kernel and the arguments of a call, and says whether it will do;
            what it raises, the driver gets.

    Returns:
        The compiled kernel and the arguments of that call.

    Raises:
        RuntimeError: no driver calls it; with the first error of one.
    """
    files = drivers_of(file, root)
    if not files:
        raise RuntimeError("no driver of it is in the checkout")
    kind = _class_of_kernels()
    reached = _Reached(str(file), name, kind.__call__, accepts)
    above = {each for path in (file, *files) for each in path.parents if each.is_relative_to(root)}
    sys.path[:0] = [str(each) for each in sorted(above, key=lambda each: -len(each.parts))]
    drop_unknown()
    real = kind.__call__
    with _module(_REQUESTS).npu_requests(on_cpu=True):
        _more_of_torch_npu()
        kind.__call__ = reached.keep
        torch = importlib.import_module("torch")  # the list is read without it
        torch.rand = _rand(torch)
        pytest.main([*_PYTEST, *map(str, files)], plugins=[reached])
        for path in files:
            if reached.call is None:
                sys.argv = [str(path)]
                with reached.first_error():
                    runpy.run_path(str(path), run_name="__main__")
        kind.__call__ = real
    if reached.call is None:
        why = reached.refusal or reached.error
        raise RuntimeError(f"no driver of it calls it as wanted: {why}")
    return reached.call


def _more_of_torch_npu() -> None:
    """Give drivers what they ask besides: graphs that nobody replays, and the layout of a tensor.

    They ask a module of their own for the layout, which knows the device alone.
    """
    given: dict[int, Any] = {}

    def cast(tensor: Any, layout: Any) -> Any:
        given[id(tensor)] = tensor, "NZ" if layout == _FRACTAL_NZ else "ND"
        return tensor

    torch_npu = sys.modules["torch_npu"]
    vars(torch_npu).update(npu_format_cast=cast)
    vars(vars(torch_npu)["npu"]).update(
        NPUGraph=lambda: SimpleNamespace(replay=lambda: None),
        graph=lambda *_: contextlib.nullcontext(),
    )
    with contextlib.suppress(ImportError):
        module = importlib.import_module("utils.get_format")
        vars(module)["get_format"] = lambda tensor: given.get(id(tensor), (None, "ND"))[1]


def _is_wheel() -> bool:
    return pypto.__name__ == "pypto"


def _class_of_kernels() -> Any:
    if _is_wheel():
        return importlib.import_module("pypto.frontend.parser.entry").JitCallableWrapper
    return importlib.import_module("pypto_cast.kernel.jit").Kernel


def _rand(torch: Any) -> Callable[..., Any]:
    """A `torch.rand` that draws integers too, as that of an NPU does: all of them are 0."""
    rand = torch.rand

    def drawn(*size: Any, **options: Any) -> Any:
        dtype = options.pop("dtype", None) or torch.get_default_dtype()
        if dtype.is_floating_point:
            return rand(*size, dtype=dtype, **options)
        return torch.zeros(*size, dtype=dtype, **options)

    return drawn


class _Reached:
    """The first call of a kernel, as a plugin of pytest's."""

    def __init__(self, file: str, name: str, run: Callable[..., None], accepts: Accepts) -> None:
        self._wanted = file, name
        self._run = run
        self._accepts = accepts
        self._calls = 0
        self.call: Call | None = None
        self.error = "none fails"
        self.refusal = ""

    @property
    def keep(self) -> Callable[..., None]:
        """The function that replaces the call of any kernel while the drivers run."""

        def call(kernel: Any, *given: Any, **named: Any) -> None:
            function = vars(kernel).get("_original_func") or kernel.__wrapped__
            name = function.__qualname__.replace("<locals>.", "")
            if (function.__code__.co_filename, name) == self._wanted:
                self._calls += 1
                given = tuple(map(_dense, given))
                named = {key: _dense(value) for key, value in named.items()}
                try:
                    accepted = self._calls <= _MOST_CALLS and self._accepts(
                        functools.partial(self._run, kernel), given, named
                    )
                except Exception as error:
                    self.refusal = self.refusal or _line(error)
                    raise
                if accepted:
                    self.call = kernel, given, named
                if self.call or self._calls >= _MOST_CALLS:
                    pytest.exit("the kernel is reached")

        return call

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run those too that wait for a device or are large, after the others; no result is
        checked, for kernels that are not wanted compute none.
        """
        for space in [vars(item.module) for item in items if isinstance(item, pytest.Function)]:
            space.update((each, _nothing) for each in list(space) if _RESULT_CHECK.fullmatch(each))
        items.sort(key=lambda item: any("skip" in each.name for each in item.iter_markers()))
        for item in items:
            item.own_markers = [each for each in item.own_markers if "skip" not in each.name]

    def pytest_exception_interact(self, call: Any) -> None:
        """Keep the first error of a test."""
        with self.first_error():
            raise call.excinfo.value

    @contextlib.contextmanager
    def first_error(self) -> Iterator[None]:
        """Keep the error that ends a driver, if it is the first."""
        try:
            yield
        except (Exception, SystemExit) as error:
            if self.error == "none fails":
                self.error = _line(error)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _dense(value: Any) -> Any:
    """A tensor as an NPU has it once it was copied there; anything else as it is."""
    return value.contiguous() if hasattr(value, "is_contiguous") else value


def _nothing(*_: object, **__: object) -> None:
    """Check nothing."""


def _module(name: str) -> Any:
    """A module of this package that stands alone, where `pypto_cast` is upstream's wheel too."""
    path = _REPOSITORY / "pypto_cast" / "upstream" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drop_unknown() -> None:
    """Have the wheel, if it is there, go without the options and arguments of later releases."""
    if not _is_wheel():
        return
    lines = str(vars(pypto)["get_options_tree"]()).splitlines()
    known = {line.partition(":")[0] for line in lines}  # with their groups

    def kept(group: str, values: Mapping[str, Any]) -> dict[str, Any]:
        now = vars(pypto).get(f"get_{group}_options", dict)()
        return {
            name: bool(value) if isinstance(now.get(name), bool) else value  # 0.2.0 takes no 1
            for name, value in values.items()
            if f"{group}.{name}" in known
            and (not isinstance(value, dict) or all(isinstance(key, int) for key in value))
        }

    def dropping(function: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
        names = inspect.signature(real).parameters

        def call(*given: Any, **options: Any) -> Any:
            taken = {name: value for name, value in options.items() if name in names}
            for name, value in taken.items():
                group, found, _ = name.partition("_options")
                if found and isinstance(value, dict):
                    taken[name] = kept(group, value)
            return function(*given, **taken)

        return call

    def setting(group: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda **values: function(**kept(group, values))

    options, frontend = vars(pypto)["options"], pypto.frontend
    vars(pypto)["options"] = dropping(options, options)
    real = importlib.import_module("pypto.frontend.parser.entry").jit  # the driver's takes anything
    vars(frontend)["jit"] = dropping(frontend.jit, real)
    for name in list(vars(pypto)):
        if found := re.fullmatch(r"set_(\w+)_options", name):
            vars(pypto)[name] = setting(found[1], vars(pypto)[name])
