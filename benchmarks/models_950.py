"""Upstream's models for the 950, unmodified, by their own drivers on the CPU.

    python -m benchmarks.models_950 CHECKOUT [--only NAME] [--json]

The drivers compare a kernel's results with two references, one of which calls operators of
torch_npu. Here they are written in FP32 by torch, so that a driver comes to its comparisons; they
are no model of a device. A row says whether the driver passed, and what the kernels did.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pypto_cast as pypto
from benchmarks.measuring import markdown
from pypto_cast.recording.tally import counting
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.npu_requests import npu_requests

CHIP: Final = "Ascend950PR"
_PG: Final = "python/tests/st/operator/pg"
_DEEPSEEK: Final = "models/deepseek_v32_exp"
DRIVERS: Final[Mapping[str, tuple[str, str]]] = {
    "prolog MXFP8": (f"{_PG}/test_pg_lightning_indexer_prolog_quant_mxfp8", "test_b1_s1_4_s2_8k"),
    "prolog HiF8": (f"{_PG}/test_pg_lightning_indexer_prolog_quant_hif8", "test_b1_s1_4_s2_8k"),
    "glm attention": ("models/glm_v4_5/glm_attention_fusion", "test_attention"),
    "sparse flash attention": (
        f"{_DEEPSEEK}/deepseekv32_sparse_flash_attention_quant",
        "test_sfa_bf16_b4_s2_seq64k_per_int8_d_950",
    ),
    "sparse attention": (
        f"{_DEEPSEEK}/deepseekv32_sparse_attention_antiquant",
        "test_sfa_bf16_b4_s2_seq64k_per_int8_d_950",
    ),
}
"""By name: the driver's module and one of its tests, the smallest that it has for the 950."""
_IN_PAGES: Final = "lightning_indexer_prolog_quant"
"""The kernel whose tensors are views of pages."""
HIF8: Final = "hifloat8"
"""Stands for `torch_npu.hifloat8`; its codes are in tensors of uint8, as the drivers have them."""


def _largest(torch: Any) -> dict[Any, float]:
    return {HIF8: 32768.0, torch.float8_e4m3fn: 448.0, torch.int8: 127.0}


def _to_codes(torch: Any, values: Any, dtype: Any) -> Any:
    """Values in a dtype by the casts of the 950; HiF8 as codes."""
    if dtype is HIF8:
        tensor = pypto.from_torch(values.float().reshape(values.shape[0], -1).contiguous())
        with pypto.options(chip=CHIP, vec_tile_shapes=(1, 256)):
            codes = pypto.cast(tensor, pypto.DT_HF8).numpy()
        return torch.from_numpy(codes.view("uint8").copy()).reshape(values.shape)
    if dtype is torch.int8:
        return values.round().clamp(-128, 127).to(dtype)
    return values.to(dtype)


def _to_fp32(torch: Any, values: Any, dtype: Any) -> Any:
    if dtype is not HIF8:
        return values.float()
    flat = values.reshape(values.shape[0], -1)
    with pypto.options(chip=CHIP, vec_tile_shapes=(1, 256)):
        found = pypto.cast(pypto.tensor(None, pypto.DT_HF8, data=flat.numpy()), pypto.DT_FP32)
        return torch.from_numpy(found.numpy().copy()).reshape(values.shape)


def _operators(torch: Any) -> dict[str, Callable[..., Any]]:
    """The operators of torch_npu that the drivers' references call."""

    def dtype_cast(values: Any, dtype: Any, *, input_dtype: Any = None) -> Any:
        return _to_codes(torch, _to_fp32(torch, values, input_dtype or values.dtype), dtype)

    def dynamic_quant(values: Any, *, dst_type: Any) -> tuple[Any, Any]:
        wide = values.float()
        scale = wide.abs().amax(-1, keepdim=True) / _largest(torch)[dst_type]
        return _to_codes(torch, wide / scale, dst_type), scale[..., 0]

    def quantize(values: Any, scale: Any, offset: Any, *_: Any) -> Any:
        return _to_codes(torch, values.float() * scale.float() + offset.float(), torch.int8)

    def quant_matmul(x1: Any, x2: Any, scale: Any, **given: Any) -> Any:
        left = _to_fp32(torch, x1, given.get("x1_dtype", x1.dtype))
        right = _to_fp32(torch, x2, given.get("x2_dtype", x2.dtype))
        rows = given.get("pertoken_scale", torch.ones(1)).float()
        if groups := given.get("group_sizes"):
            count = groups[-1]
            left = left * rows.reshape(len(left), -1).repeat_interleave(count, 1)
            turned = scale.float().transpose(1, 2).reshape(-1, right.shape[1])
            product = left @ (right * turned.repeat_interleave(count, 0))
        else:
            product = (left @ right + given.get("bias", 0)) * scale.float() * rows[:, None]
        return product.to(given["output_dtype"])

    def rotary_mul(values: Any, cos: Any, sin: Any) -> Any:
        low, high = values.float().chunk(2, -1)
        turned = torch.cat((-high, low), -1)
        return (values.float() * cos.float() + turned * sin.float()).to(values.dtype)

    def rms_norm(values: Any, gamma: Any, *, epsilon: float) -> tuple[Any]:
        wide = values.float()
        root = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
        return ((wide * root * gamma.float()).to(values.dtype),)

    return {
        "npu_dtype_cast": dtype_cast,
        "npu_dynamic_quant": dynamic_quant,
        "npu_quantize": quantize,
        "npu_quant_matmul": quant_matmul,
        "npu_rotary_mul": rotary_mul,
        "npu_rms_norm": rms_norm,
    }


def _apart(torch: Any, kernel: Callable[..., None]) -> Callable[..., None]:
    """A kernel that gets copies of tensors in one memory, whose changed bytes are put back.

    The prologs' drivers hand in the same pages twice, whole, as codes in FP8 and as scales in FP32,
    and the kernel writes to both. Inputs may overlap; outputs that do are refused here: a result is
    written back whole, and which bytes of the other's it would take back is for the kernel to say.
    Upstream checks no memory (`from_torch` takes any view), and on a device each write is of its
    rows alone.
    """

    def call(*given: Any) -> None:
        copies = {id(each): (each, each.clone(), each.clone()) for each in given}
        kernel(*(copies[id(each)][1] for each in given))
        for view, after, before in copies.values():
            new, old = (each.view(torch.uint8) for each in (after, before))
            changed = new != old
            view.view(torch.uint8)[changed] = new[changed]

    return call


def run(root: Path, name: str) -> dict[str, object]:
    """Run a driver; the row says what became of it."""
    module, test = DRIVERS[name]
    path = root / module
    sys.path[:0] = [str(path.parent)]
    torch: Any = importlib.import_module("torch")
    verdict, begun = "passed", time.perf_counter()
    with (
        as_pypto(replace_installed=True),
        npu_requests(on_cpu=True),
        pypto.options(chip=CHIP),
        counting() as tally,
    ):
        torch_npu: Any = importlib.import_module("torch_npu")
        vars(torch_npu).update(_operators(torch), hifloat8=HIF8)
        try:
            driver = importlib.import_module(path.name)
            if kernel := vars(driver).get(_IN_PAGES):
                vars(driver)[_IN_PAGES] = _apart(torch, kernel)
            getattr(driver, test)()
        except Exception as error:
            verdict = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
            logging.debug("%s", traceback.format_exc())
    seconds = round(time.perf_counter() - begun, 1)
    counted = re.sub(r"\s+", " ", str(tally))
    return {"model": name, "driver": verdict, "kernels": counted, "seconds": seconds}


def rows(root: Path, names: Sequence[str]) -> Iterator[dict[str, object]]:
    """Run each in a process of its own: models have modules of the same names."""
    for name in names:
        command = [sys.executable, "-m", __spec__.name, str(root), "--only", name, "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if not ran.stdout:
            raise RuntimeError(f"{name} ended with {ran.returncode}: {ran.stderr[-500:]}")
        yield from json.loads(ran.stdout.splitlines()[-1])  # behind what a driver prints


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models_950", description=__doc__)
    parser.add_argument("checkout", type=Path, help="of upstream, revision 883e7dfb0")
    parser.add_argument("--only", action="append", choices=DRIVERS, help="repeatable; else all")
    parser.add_argument("--verbose", action="store_true", help="show where a driver failed")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if given.verbose else logging.ERROR)
    names = given.only or list(DRIVERS)
    one = [run(given.checkout, names[0])] if len(names) == 1 else []
    found = one or list(rows(given.checkout, names))
    print(json.dumps(found) if given.json else markdown(found))
    return any(row["driver"] != "passed" for row in found)


if __name__ == "__main__":
    sys.exit(main())
