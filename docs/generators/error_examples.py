"""Code that raises an error or warns, by class, and the message it gives here and now."""

from __future__ import annotations

import contextlib
import functools
import io
import linecache
import os
import shlex
import tempfile
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

START: Final = "import pypto_cast as pypto\n\npypto.set_vec_tile_shapes(16, 64)\n"
"""Stands before an example that does not begin with an import."""
_FILE: Final = "example.py"
_X: Final = "x = pypto.tensor([16, 64], pypto.DT_FP32, data=[[1.0] * 64] * 16)\n"
_KERNEL: Final = """\
import numpy as np
import pypto_cast as pypto

@pypto.frontend.jit
def kernel(x: pypto.Tensor[[{rows}, 64], pypto.DT_FP32],
           y: pypto.Tensor[[{rows}, 64], pypto.DT_{dtype}]):
    pypto.set_vec_tile_shapes({tile})
    y[:] = {value}

x = np.{x}((16, 64), np.float32)
y = np.{y}
"""


def _kernel(
    value: str,
    call: str,
    *,
    rows: str = "16",
    dtype: str = "FP32",
    tile: str = "16, 64",
    x: str = "ones",
    y: str = "zeros((16, 64), np.float32)",
) -> str:
    return _KERNEL.format(value=value, rows=rows, dtype=dtype, tile=tile, x=x, y=y) + call


_THIRD: Final = "x / 3.0"
_LARGE: Final = """\
import pypto_cast as pypto

@pypto.frontend.jit
def kernel(x: pypto.Tensor[[256, 256], pypto.DT_FP32],
           y: pypto.Tensor[[256, 256], pypto.DT_FP32]):
    pypto.set_vec_tile_shapes(256, 256)
    y[:] = pypto.exp(x) + x

declared = [pypto.tensor([256, 256], pypto.DT_FP32) for _ in range(2)]
"""
_ASCENDC: Final = """\
import numpy as np
from simulator import ascendc as asc

@asc.jit
def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress):
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    y_gm.set_global_buffer(y)
    buffer = asc.TBuf(asc.TPosition.VECCALC)
    asc.TPipe().init_buffer(buffer, 128)
    part = buffer.get(x.dtype)
"""
_LAUNCH: Final = "\nkernel[1](np.ones(64, np.float32), np.zeros(64, np.float32))"

_LOOP: Final = """\
import numpy as np
import pypto_cast as pypto

@pypto.frontend.jit
def kernel(x: pypto.Tensor[[16, 64], pypto.DT_FP32],
           y: pypto.Tensor[[16, 64], pypto.DT_FP32]):
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(2):
        y[:] = x * i

x, y = (np.ones((16, 64), np.float32) for _ in range(2))
"""

EXAMPLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ShapeError": "pypto.cast(pypto.tensor([0], pypto.DT_FP32), pypto.DT_FP16)",
        "TileShapeError": f"{_X}pypto.set_vec_tile_shapes(64)\npypto.cast(x, pypto.DT_FP16)",
        "TileMemoryError": "pypto.set_vec_tile_shapes(40000)\n"
        "x = pypto.tensor([50000], pypto.DT_FP32, data=[1.0] * 50000)\n"
        "pypto.cast(x, pypto.DT_FP16)",
        "TileShapeWarning": f"{_X}pypto.set_vec_tile_shapes(16, 3)\npypto.cast(x, pypto.DT_FP16)",
        "UBOverflowError": f"{_LARGE}kernel.schedule(*declared)",
        "UnsupportedCastError": f"{_X}pypto.cast(x, pypto.DT_INT8)",
        "CastModeError": f"{_X}with pypto.options(strict=True):\n"
        "    pypto.cast(x, pypto.DT_INT32, mode=pypto.CastMode.CAST_ODD)",
        "CastModeWarning": f"{_X}pypto.cast(x, pypto.DT_INT32, mode=pypto.CastMode.CAST_ODD)",
        "SaturationModeWarning": f"{_X}"
        "pypto.cast(x, pypto.DT_FP16, satmode=pypto.SaturationMode.OFF)",
        "RouteError": "pypto.routes(pypto.DT_FP32, pypto.DT_INT8, values=(2, 1))",
        "UpstreamRefusalError": f"{_LOOP}with pypto.options(strict=True):\n    kernel(x, y)",
        "UpstreamRefusalWarning": f"{_LOOP}kernel(x, y)",
        "UnplannedKernelWarning": _kernel(
            "pypto.where(pypto.isfinite(x), x, 0.0)",
            "with pypto.options(fidelity='instructions'):\n    kernel(x, y)",
        ),
        "DynamicOperandWarning": _kernel("x + 1.0", "kernel(x, y)", rows="pypto.DYNAMIC"),
        "PlanError": """\
import pypto_cast as pypto

@pypto.frontend.jit
def kernel(x: pypto.Tensor[[16, 64], pypto.DT_INT32]):
    pypto.set_vec_tile_shapes(16, 64)
    x[2, 3] = 5

kernel.schedule(pypto.tensor([16, 64], pypto.DT_INT32))""",
        "IgnoredSettingWarning": "pypto.set_global_config('codegen.parallel_compile', 4)",
        "BitsDifferError": "import numpy as np\nfrom pypto_cast.testing import assert_bits_equal\n"
        "assert_bits_equal(np.float16([1]), np.float16([2]))",
        "FitError": f"{_LARGE}\nfrom pypto_cast.testing import assert_fits\n"
        "assert_fits(kernel, *declared)",
        "ImpossibleError": _kernel(
            _THIRD,
            "from pypto_cast.testing import assert_possible\n"
            "assert_possible(x / 2, kernel.certainty(x, y))",
        ),
        "UndecidedError": _kernel(
            _THIRD,
            "from pypto_cast.testing import assert_certain\n"
            "with pypto.options(trust='documented'):\n"
            "    assert_certain(kernel.certainty(x, y))",
        ),
        "SimulatorFault": f"{_ASCENDC}    asc.data_copy(part, x_gm, 32)\n"
        f"    asc.data_copy(y_gm, part, 32)\n{_LAUNCH}",
        "KernelError": f"{_ASCENDC}"
        f"    asc.cast(part, part, asc.RoundMode.CAST_RINT, 64)\n{_LAUNCH}",
        "DumpError": "pypto.read_schedule('no-such-folder')",
        "ParserError": """\
import numpy as np
import pypto_cast as pypto

@pypto.frontend.jit
def kernel(x: pypto.Tensor[[16, 64], pypto.DT_FP32]):
    return x

kernel(np.ones((16, 64), np.float32))""",
        "FeError": "pypto.get_global_config('codegen.no_such_key')",
        "PassError": "pypto.set_pass_config('PVC2_OOO', 'SplitK', 'dump', True)",
        "FakeConvertError": "from pypto_cast.dialects import openvino\n"
        "openvino.fake_convert(1.5, 1.0)",
        "PromotionError": "import numpy as np\nfrom pypto_cast.dialects import openvino\n"
        "openvino.promoted_type(np.dtype('int64'), np.dtype('uint64'))",
        "OpenVINOError": "from pypto_cast.dialects import openvino\n"
        "openvino.promoted_type('f33', 'f32')",
    }
)


COMMANDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "CheckpointError": (
            "from pathlib import Path\nPath('m.safetensors').write_bytes(b'no model at all')",
            "pypto-cast checkpoint m.safetensors --to bf16",
        ),
        "UnusedPatternWarning": (
            "import numpy as np\nnp.savez('m.npz', w=np.ones(4, np.float32))",
            "pypto-cast checkpoint m.npz --to bf16 --include w --include 'layers.*'",
        ),
        "SkippedJobsWarning": (
            "from pathlib import Path\n"
            "lines = ['shapes = [[64, 96]]', 'output = \"s.jsonl\"',\n"
            '         \'pairs = [["bf16", "fp32"], ["fp32", "fp8e4m3"]]\',\n'
            '         \'chips = ["Ascend910B3", "Ascend950PR"]\']\n'
            "Path('s.toml').write_text('\\n'.join(lines))",
            "pypto-cast sweep s.toml --jobs 1",
        ),
        "CertificateError": (
            "from pathlib import Path\nPath('fp16-int8-rint.json').write_text('{}')",
            "pypto-cast verify --pair fp16-int8 --mode rint -o .",
        ),
        "FormerOptionWarning": (
            "",
            "pypto-cast tune --shape 64,96 --from fp32 --to fp16 --kernel 3",
        ),
    }
)
"""Code that makes files in an empty folder, and a command that fails or warns there."""


def example_of(name: str) -> str:
    """The example of a class, as a page shows it."""
    if name in EXAMPLES:
        return f"```py\n{EXAMPLES[name]}\n```"
    code, line = COMMANDS[name]
    return "\n\n".join((*([f"```py\n{code}\n```"] if code else []), f"```sh\n{line}\n```"))


@functools.cache
def message_of(name: str) -> str:
    """The text that the example of a class raises, warns with or prints.

    Raises:
        LookupError: it does none of it.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.callback(os.chdir, os.getcwd())
        os.chdir(folder)
        found = _raised(name) if name in EXAMPLES else _printed(name)
    if found is None:
        raise LookupError(f"the example of {name} neither raises it nor warns")
    return found


def _raised(name: str) -> str | None:
    import pypto_cast as pypto

    code = EXAMPLES[name]
    whole = f"{code if code.startswith(('import', 'from')) else START + code}\n"
    linecache.cache[_FILE] = (len(whole), None, whole.splitlines(keepends=True), _FILE)
    space: dict[str, object] = {"__name__": "example"}
    with pypto.options(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(compile(whole, _FILE, "exec"), space)
        except Exception as error:
            if name in {kind.__name__ for kind in type(error).__mro__}:
                return str(error)
            raise
    return next((str(w.message) for w in warned if w.category.__name__ == name), None)


def _printed(name: str) -> str | None:
    """The line on stderr that ends with the class."""
    from pypto_cast.cli.main import main

    code, line = COMMANDS[name]
    exec(code, {})
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        main(shlex.split(line)[1:])
    lines = printed.getvalue().splitlines()
    return next((text for text in lines if text.endswith(f"[{name}]")), None)
