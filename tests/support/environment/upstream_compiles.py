"""Compiles kernels with upstream's wheel, and writes the formats that their operations run in.

The cases are a file of JSON: a list of objects with `name`, `tensors` ([[name, dtype, shape]]),
`tile` and `body`, a statement. The second file gets a list with, for each, the operations after
pass 01 as [opcode, dtypes of the inputs], the error, if there is one, and what was logged. Each has
a process of its own, forked behind the imports: a refusal leaves half a kernel behind.
TILE_FWK_OUTPUT_DIR names the folder of the dumps.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

import torch

FOLDER = Path(os.environ["TILE_FWK_OUTPUT_DIR"])
# framework/include/tilefwk/data_type.h
NAMES = {2: "INT16", 3: "INT32", 6: "FP16", 7: "FP32", 8: "BF16", 15: "BOOL"}
TORCH = {
    "FP16": torch.float16,
    "BF16": torch.bfloat16,
    "FP32": torch.float32,
    "INT32": torch.int32,
    "INT16": torch.int16,
    "INT64": torch.int64,
    "BOOL": torch.bool,
}
KERNEL = """
import pypto

@pypto.frontend.jit(
    runtime_options={{"run_mode": pypto.RunMode.SIM}}, debug_options={{"compile_debug_mode": 1}}
)
def kernel_{number}({parameters}):
    pypto.set_vec_tile_shapes(*{tile})
    {body}
"""


def kernel_of(number, case):
    parameters = ", ".join(
        f"{name}: pypto.Tensor([], pypto.DT_{dtype})" for name, dtype, _ in case["tensors"]
    )
    path = Path(sys.argv[1]).parent / f"kernel_{number}.py"
    path.write_text(
        KERNEL.format(number=number, parameters=parameters, tile=case["tile"], body=case["body"])
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, path.stem)


def operations(path):
    for function in json.loads(path.read_text())["functions"]:
        kinds = {raw["rawmagic"]: raw["datatype"] for raw in function["rawtensors"]}
        tensors = {each["magic"]: kinds[each["rawtensor"]] for each in function["tensors"]}
        for each in function["operations"]:
            yield each["opcode"], [NAMES.get(tensors[i], "?") for i in each["ioperands"]]


def compile_one(number, case, folder):
    os.environ["TILE_FWK_OUTPUT_DIR"] = str(folder)
    error = ""
    try:
        kernel_of(number, case)(*(torch.zeros(s, dtype=TORCH[d]) for _, d, s in case["tensors"]))
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    after = sorted(folder.glob("**/Pass_01_AutoCast/After*.json"))
    found = [each for path in after for each in operations(path)]
    result = {"name": case["name"], "operations": found, "error": error}
    (folder / "result.json").write_text(json.dumps(result))


importlib.import_module("pypto")
results = []
for number, case in enumerate(json.loads(Path(sys.argv[1]).read_text())):
    folder = FOLDER / f"case_{number}"
    folder.mkdir()
    process = os.fork()
    if not process:
        with (folder / "log").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        compile_one(number, case, folder)
        os._exit(0)
    _, status = os.waitpid(process, 0)
    result = {"name": case["name"], "operations": [], "error": f"the process died: {status}"}
    if status == 0:
        result = json.loads((folder / "result.json").read_text())
    results.append({**result, "log": (folder / "log").read_text(errors="replace")})
Path(sys.argv[2]).write_text(json.dumps(results))
