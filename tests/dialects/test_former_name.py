"""`pypto_cast.frontends`, as the dialects were called: the same modules, and a warning."""

from __future__ import annotations

import subprocess
import sys

IMPORTS = {
    "package": "from pypto_cast import frontends",
    "module": "import pypto_cast.frontends as frontends",
    "dialects": "from pypto_cast.frontends import onnx, openvino, paddle",
    "dialect": "import pypto_cast.frontends.openvino",
    "deep": "from pypto_cast.frontends.onnx.types import TensorType",
    "deeper": "import pypto_cast.frontends.paddle.dtypes as table",
    "name": "from pypto_cast.frontends import compare",
}
DEPTHS = dict(zip(IMPORTS, (1, 1, 1, 2, 3, 3, 1), strict=True))
PROGRAM = f"""
import sys, warnings
import pypto_cast
for form, line in {IMPORTS}.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(line, form, "exec"))
    (warning,) = caught
    assert warning.category is DeprecationWarning, warning
    assert warning.filename == form, warning
    assert "pypto_cast.dialects" in str(warning.message), warning
    import pypto_cast.dialects.onnx.types, pypto_cast.dialects.paddle.dtypes
    names = [name for name in sys.modules if name.startswith("pypto_cast.frontends")]
    for name in names:
        assert sys.modules[name] is sys.modules[name.replace("frontends", "dialects")], name
        assert sys.modules[name].__spec__.name == sys.modules[name].__name__, name
    assert len(names) == {DEPTHS}[form], (form, names)
    for name in names:
        del sys.modules[name]
    del pypto_cast.frontends
warnings.simplefilter("ignore")
import pypto_cast.frontends.tensorflow
"""


def test_the_former_name_gives_the_dialects_and_a_warning() -> None:
    """Every form of import, each without what the one before left; last a missing module."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: No module named 'pypto_cast.dialects.tensorflow'"
    ), done.stderr


def test_nothing_of_the_package_takes_the_former_name() -> None:
    """And the name of upstream is a module of its own."""
    code = (
        "import sys, pypto_cast.cli.main; assert 'pypto_cast.frontends' not in sys.modules\n"
        "import pypto_cast.frontend as f; from pypto_cast.frontend import jit; assert f.jit is jit"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
