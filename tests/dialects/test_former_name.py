"""`pypto_cast.frontends`, as the dialects were called: the same modules, and a warning."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORTS = {
    "package": "from pypto_cast import frontends",
    "module": "import pypto_cast.frontends as frontends",
    "dialects": "from pypto_cast.frontends import onnx, openvino, paddle",
    "dialect": "import pypto_cast.frontends.openvino",
    "deep": "from pypto_cast.frontends.onnx.types import TensorType",
    "deeper": "import pypto_cast.frontends.paddle.dtypes as table",
    "name": "from pypto_cast.frontends import compare",
}
PROGRAM = """
import sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {line}
(warning,) = caught
assert warning.category is DeprecationWarning, warning
assert warning.filename == "<string>", warning
assert "pypto_cast.dialects" in str(warning.message), warning
import pypto_cast.dialects.onnx.types, pypto_cast.dialects.paddle.dtypes
names = [name for name in sys.modules if name.startswith("pypto_cast.frontends")]
for name in names:
    assert sys.modules[name] is sys.modules[name.replace("frontends", "dialects")], name
    assert sys.modules[name].__spec__.name == sys.modules[name].__name__, name
assert len(names) == {depth}, names
"""
MISSING = """
import warnings
warnings.simplefilter("ignore")
import pypto_cast.frontends.tensorflow
"""


@pytest.mark.parametrize(
    ("line", "depth"), list(zip(IMPORTS.values(), (1, 1, 1, 2, 3, 3, 1), strict=True)), ids=IMPORTS
)
def test_the_former_name_gives_the_dialects_and_a_warning(line: str, depth: int) -> None:
    code = PROGRAM.format(line=line, depth=depth)
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_dialect_that_does_not_exist() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True)
    assert "ModuleNotFoundError: No module named 'pypto_cast.dialects.tensorflow'" in done.stderr


def test_nothing_of_the_package_takes_the_former_name() -> None:
    code = "import sys, pypto_cast.cli.main; assert 'pypto_cast.frontends' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_name_of_upstream_is_a_module_of_its_own() -> None:
    code = (
        "import pypto_cast.frontend as f; from pypto_cast.frontend import jit; assert f.jit is jit"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
