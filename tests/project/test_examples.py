"""The examples run as they stand, and type checkers accept them."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from support.environment.sources import ROOT

EXAMPLES = ROOT / "examples"
KERNELS = (
    "hello_cast",
    "cast_with_tails",
    "quantise",
    "quantised_linear",
    "tune_tile",
    "topk_router",
    "flash_attention",
)
SHOWN = {
    "hello_cast": "kernel hello_cast: 1 casts, 1 different programs",
    "cast_with_tails": "rows index=2 - [6, 64] in 1 tiles of [6, 64]",
    "quantise": "[   0    2   -2  127 -128    0]",
    "quantised_linear": "out: DT_BF16 [8, 256], 70.26% certain, 609 of 2,048 undecided",
    "tune_tile": "(16, 64)         29463 cycles, double-buffered",
    "topk_router": "experts: DT_INT32 [64, 8], 100% certain",
    "flash_attention": "out: DT_BF16 [32, 64], 41.94% certain, 7 of them given named choices, "
    "1,189 of 2,048 undecided",
}


def run(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{EXAMPLES}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", KERNELS)
def test_an_example_runs(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert SHOWN[name] in capsys.readouterr().out


def test_the_example_test_passes(tmp_path: Path) -> None:
    plugin = ("-p", "pypto_cast.pytest_plugin", "-p", "no:cacheprovider")
    test = str(EXAMPLES / "test_my_kernel.py")
    assert "6 passed" in run("-m", "pytest", "-q", *plugin, test, cwd=tmp_path)


def test_mypy_accepts_the_examples(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    settings = tmp_path / "mypy.ini"
    without_return = "disallow_untyped_defs = false\ndisallow_incomplete_defs = false\n"
    plugin = "plugins = pypto_cast.mypy_plugin\n"
    settings.write_text(f"[mypy]\nstrict = true\n{without_return}{plugin}")
    files = [str(EXAMPLES / f"{name}.py") for name in (*KERNELS, "test_my_kernel")]
    files += map(str, sorted((EXAMPLES / "kernels").glob("*.py")))
    where = ("--config-file", str(settings), "--cache-dir", str(tmp_path / "cache"))
    found = f"no issues found in {len(files)} source files"
    assert found in run("-m", "mypy", *where, *files, cwd=tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import pypto_cast as pypto\n"
        "x = pypto.tensor([1])\n"
        "pypto.scaled_batchmatmul\n"
        "divmod(x, 2)\n"
        "pypto.sigmoid(3)\n"
        "x.softmax('last')\n"
        "pypto.sqrt(x, None), x.sqrt(None, None)\n"
        "reveal_type(x.topk(1)), reveal_type(pypto.greater(x, x))\n"
        "pypto.gather_in_ub, pypto.ROWS, pypto.OperationRow\n"
    )
    with pytest.raises(
        AssertionError, match='Module has no attribute "scaled_batchmatmul"'
    ) as caught:
        run("-m", "mypy", *where, str(wrong), cwd=tmp_path)
    tensor = "pypto_cast.tensors.tensor.Tensor"
    for found in (
        'wrong.py:4: error: Unsupported operand types for divmod ("Tensor" and "int")',
        'wrong.py:5: error: Argument 1 to "sigmoid" has incompatible type "int"; expected "Tensor"',
        'wrong.py:6: error: Argument 1 to "softmax" of "OperationMethods" has incompatible type',
        'wrong.py:7: error: Too many arguments for "sqrt" of "OperationMethods"',
        f'wrong.py:8: note: Revealed type is "tuple[{tensor}, {tensor}]"',
        f'wrong.py:8: note: Revealed type is "{tensor}"',
        'wrong.py:9: error: Module has no attribute "gather_in_ub"',
        'wrong.py:9: error: Module has no attribute "ROWS"',
        'wrong.py:9: error: Module has no attribute "OperationRow"',
        "Found 8 errors",
    ):
        assert found in str(caught.value)
