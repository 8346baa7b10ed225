"""`pypto-cast compile` and `check-schedule`: upstream's own program of a kernel, executed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path, PurePath
from types import SimpleNamespace

import numpy as np
import pytest
from support.environment.command import Command, command
from support.environment.signals import heard
from support.programs.upstream_dumps import DUMPS, compiler, interpreter, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.reader.upstream_dump import DUMP_FILES
from pypto_cast.upstream.wheel_compile import MEMORY_BYTES, compile_kernel

__all__ = ["command"]

ERROR = """ERROR:root:Record function softmax failed: RuntimeError: Errcode: FC0000!
Only allow to expand one axis!, func Expand
[op EXP]tile shape not set"""


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = tmp_path / "softmax.py"
    path.write_text((DUMPS / "softmax.py").read_text())
    return f"{path}::softmax"


def test_a_dump_is_executed_under_the_guards(command: Command, kernel: str, tmp_path: Path) -> None:
    dump = unpacked("softmax", tmp_path)
    arrays = {name: np.full((128, 512), 0.5, np.float32) for name in ("x", "y")}
    np.savez(tmp_path / "inputs.npz", **arrays)

    words = ("check-schedule", "--upstream-dump", dump)
    assert command(*words).out == "OK: softmax, 1 leaf, 4 tasks, by every guard\n"
    compared = command(*words, "--kernel", kernel, "--inputs", tmp_path / "inputs.npz")
    assert compared.out == "OK: softmax, 1 leaf, 4 tasks, by every guard and the tensor level\n"


def test_what_is_found_ends_with_1_and_what_is_not_executed_with_2(
    command: Command, kernel: str, tmp_path: Path
) -> None:
    dump = unpacked("softmax", tmp_path)
    (leaf,) = dump.glob("Pass_36_*/*_LEAF_*.json")
    whole = leaf.read_text()
    words = ("check-schedule", "--upstream-dump", dump, "--kernel", kernel)

    leaf.write_text(whole.replace('"BAR.V"', '"PHASE1"'))
    ran = command(*words)
    assert (ran.code, ran.err) == (1, "")
    assert "operation 5 ROWMAX_SINGLE" in ran.out.replace("\n", " ")
    assert "no flag or barrier puts V before V" in ran.out.replace("\n", " ")
    leaf.write_text(whole.replace('"EXP"', '"ABS"'))
    ran = command(*words)
    assert (ran.code, "elements cannot be" in ran.out) == (1, True)
    leaf.write_text(whole.replace('"EXP"', '"WHIRL"'))
    assert "not executed: 1 of 1 leaves" in command(*words).error


def test_prints_of_the_kernel_go_to_stderr(command: Command, kernel: str, tmp_path: Path) -> None:
    file = Path(kernel.partition("::")[0])
    call = "pypto.set_vec_tile_shapes("
    file.write_text(file.read_text().replace(call, f"print('of the kernel'); {call}"))
    dump = unpacked("softmax", tmp_path)

    ran = command("check-schedule", "--upstream-dump", dump, "--kernel", kernel, "--json")

    assert ran.json["found"] is None
    assert "of the kernel" in ran.err


def reuse_an_event(leaf: Path) -> None:
    """Let each of the first two copies set the same flag."""
    document = json.loads(leaf.read_text())
    (function,) = document["functions"]
    marks = [each for each in function["operations"] if each["opcode"].startswith("PHASE")]
    first, second, put, take, *others = (
        each for each in function["operations"] if each not in marks
    )
    function["operations"] = [first, put, take, second, put, take, *others, *marks]
    leaf.write_text(json.dumps(document))


def test_a_file_that_ends_the_program_is_no_success(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "ends.py"
    file.write_text("import sys\nsys.exit(0)\n")

    ran = command("check-schedule", f"{file}::softmax")

    assert "ends.py ends the program, with 0, as it is imported" in ran.error


def test_what_is_known_beside_a_leaf_that_is_not_executed_is_told(
    command: Command, tmp_path: Path
) -> None:
    dump = unpacked("ragged_add", tmp_path)
    first, second, *_ = sorted(dump.glob("Pass_36_*/*_LEAF_*.json"))
    reuse_an_event(first)
    second.write_text(second.read_text().replace('"ADD"', '"WHIRL"'))
    file = tmp_path / "ragged_add.py"
    file.write_text("\n" + (DUMPS / "ragged_add.py").read_text())

    ran = command("check-schedule", "--upstream-dump", dump, "--kernel", f"{file}::ragged_add")

    assert "not executed: 1 of 4 leaves" in ran.error
    assert "the dump knows no operation of ragged_add.py:" in ran.error
    assert "operation 4 SetFlag MTE2_V 0" in ran.err.splitlines()[0]


def test_a_doubt_is_counted_and_listed_and_strict_refuses_it(
    command: Command, tmp_path: Path
) -> None:
    dump = unpacked("softmax", tmp_path)
    reuse_an_event(next(dump.glob("Pass_36_*/*_LEAF_*.json")))
    words = ("check-schedule", "--upstream-dump", dump)

    ran = command(*words)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("OK: softmax, 1 leaf, 4 tasks, by every guard; 1 doubt\n")
    assert "doubt: TENSOR_default_loop_1_Unroll1_PATH0_hiddenfunc0_leaf0_8, operation 4" in ran.out
    assert len(command(*words, "--json").json["doubts"]) == 1
    ran = command(*words, "--strict")
    assert (ran.code, "operation 4 SetFlag MTE2_V 0" in ran.out) == (1, True)


def test_lines_that_the_dump_does_not_know_are_named(
    command: Command, kernel: str, tmp_path: Path
) -> None:
    dump = unpacked("softmax", tmp_path)
    file = Path(kernel.partition("::")[0])
    file.write_text(file.read_text().replace("    e = pypto.exp", "\n    e = pypto.exp"))

    ran = command("check-schedule", "--upstream-dump", dump, "--kernel", kernel)

    assert (ran.code, ran.err) == (0, "")
    # Line 14 was that of the division, and is that of exp now.
    assert ran.out.splitlines()[2:] == ["the dump knows no operation of softmax.py:15"]


def test_inputs_that_do_not_fit_a_dump_are_refused(
    command: Command, kernel: str, tmp_path: Path
) -> None:
    words = ("check-schedule", "--upstream-dump", unpacked("softmax", tmp_path), "--inputs")
    x = np.ones((128, 512), np.float32)
    for name, arrays, says in (
        ("other", {"x": x, "q": x}, "holds q; softmax takes x, y"),
        ("none", {"y": x}, "lacks x, which softmax takes"),
        ("short", {"x": x[:4]}, "x is FP32 [128, 512], C-contiguous; given was float32 [4, 512]"),
        ("half", {"x": x.astype(np.float16)}, "half.npz: x holds float16, which is not DT_FP32"),
    ):
        np.savez(tmp_path / f"{name}.npz", **arrays)
        assert says in command(*words, tmp_path / f"{name}.npz").error
    np.savez(tmp_path / "columns.npz", x=np.asfortranarray(x))
    assert command(*words, tmp_path / "columns.npz").code == 0


def test_a_kernel_with_other_parameters_is_refused(
    command: Command, kernel: str, tmp_path: Path
) -> None:
    dump = unpacked("softmax", tmp_path)
    file = Path(kernel.partition("::")[0])
    file.write_text(file.read_text().replace("    x:", "    z:").replace("(x", "(z"))

    ran = command("check-schedule", "--upstream-dump", dump, "--kernel", kernel)

    assert "softmax takes z, y; the schedule of softmax, x, y" in ran.error


def test_a_kernel_of_a_dump_of_several_is_chosen_by_name(command: Command, tmp_path: Path) -> None:
    for name in ("softmax", "abs_1d"):
        unpacked(name, tmp_path / "dumps")
    words = ("check-schedule", "--upstream-dump", tmp_path / "dumps")

    assert "several kernels, name one of abs_1d, softmax" in command(*words).error
    assert command(*words, "--kernel", "abs_1d").out.startswith("OK: abs_1d, 2 leaves, 4 tasks")


def test_a_kernel_is_compiled_and_its_file_stays(
    command: Command, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(kernel.partition("::")[0])
    before = file.read_text()
    python = f"./{compiler(tmp_path).name}"

    ran = command("compile", kernel, "--python", python, "-o", tmp_path / "kept")

    assert ran.code == 0
    assert ran.out.startswith("softmax: 1 leaf, 4 tasks, UB 181248 B as allocated, 131072 B")
    assert file.read_text() == before
    given = json.loads((tmp_path / "given.json").read_text())
    assert (given["file"], given["module"], given["kernel"]) == (str(file), "softmax", "softmax")
    assert given["tensors"] == [[[128, 512], "float32"]] * 2
    kept = {str(x.relative_to(tmp_path / "kept")) for x in (tmp_path / "kept").rglob("*.*")}
    assert "large.json" not in kept
    assert all(any(map(PurePath(path).match, DUMP_FILES)) for path in kept)
    assert "exists" in command("compile", kernel, "-o", tmp_path / "kept").error
    checked = command("check-schedule", kernel, "--python", python, "--json")
    assert checked.json == {
        "report_version": 1,
        "report_kind": "check-schedule",
        "kernel": "softmax",
        "leaves": 1,
        "tasks": 4,
        "peak_ub_bytes": 181_248,
        "needed_ub_bytes": 131_072,
        "judged_by": "every guard and the tensor level",
        "found": None,
        "unknown_lines": [],
        "doubts": [],
    }


LOG = """\
[INFO] PYPTO(1):2026-05-14 17:42:00.380 [pass.cpp:70][PASS]:[Pass.Function]:Run pass [OoOSchedule].
[ERROR] PYPTO(1):2026-05-14 17:42:00.390 [schedule_base.h:347][PASS]:[OoOScheduleBase.Operation]:\
Alloc tensor [7] size [1048576] exceeds MEM_UB size [196608]!
[ERROR] PYPTO(1):2026-05-14 17:42:00.390 [pass.cpp:79][PASS]:[Pass.Function]:Run pass failed."""
"""Of a tile that is too large for UB, as upstream logs it."""


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((f"cat <<'END'\n{ERROR}\nEND",), "FC0000! Only allow to expand one axis!, func Expand"),
        (
            (
                "mkdir -p ascend/log/debug/plog",
                f"cat > ascend/log/debug/plog/pypto-log-1_1.log <<'END'\n{LOG}\nEND",
                "echo 'error.RenderedParserError: Errcode: FFFFFF!'",
                "echo 'Run pass failed., func CompileFunction, file host_machine.cpp, line 179'",
            ),
            "softmax: Alloc tensor [7] size [1048576] exceeds MEM_UB size [196608]!",
        ),
        (
            ("sleep 60",),
            "softmax: upstream's compiler did not end within 1 s; --seconds N gives it",
        ),
        (
            ("echo MemoryError", "exit 1"),
            "MemoryError; each process of the compiler may have 16 GiB",
        ),
        ((), "softmax: upstream's compiler ended with 0 and left no dump; nothing was printed"),
        (("echo a hint", "exit 3"), "ended with 3 and left no dump; its last line is: a hint"),
        (
            ("echo \"pypto-cast: No module named 'torch'\"; exit 1",),
            "named 'torch'; name the interp",
        ),
        (("kill -9 $$",), "upstream's compiler was ended by signal 9"),
        (("read line || echo no terminal",), "no terminal"),
    ],
    ids=[
        "refused",
        "pass refused",
        "endless",
        "large",
        "silent",
        "talks",
        "no wheel",
        "killed",
        "asks",
    ],
)
def test_the_first_real_error_is_shown(
    command: Command, kernel: str, tmp_path: Path, lines: tuple[str, ...], says: str
) -> None:
    words = ("--python", interpreter(tmp_path, *lines), "--seconds", 1, "-o", tmp_path / "kept")

    assert says in command("compile", kernel, *words).error
    assert not (tmp_path / "kept").exists()
    assert not list(tmp_path.glob("tmp*"))


@pytest.mark.parametrize("extent", ["128", "pypto.DYNAMIC"])
@pytest.mark.parametrize("words", ["compile", "check-schedule"])
def test_an_error_about_a_dynamic_dimension_says_so(
    command: Command, kernel: str, tmp_path: Path, words: str, extent: str
) -> None:
    file = Path(kernel.partition("::")[0])
    file.write_text(file.read_text().replace("[128, 512]", f"[{extent}, 512]"))
    said = "The shape size of tensor must less than or equal to INT32_MAX(2,147,483,647)"
    python = interpreter(tmp_path, f"echo 'ERROR:root:Record function softmax failed: {said}'")
    output = ("-o", tmp_path / "kept") if words == "compile" else ()
    shapes = ("--shape", "x=128,512", "--shape", "y=128,512")

    error = command(words, kernel, *shapes, "--python", python, *output).error

    assert said in error
    assert ("; DYNAMIC dimensions of x, y: upstream takes no" in error) == ("DYN" in extent)


def test_a_full_folder_of_temporary_files_is_named(
    command: Command, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    dump = unpacked("softmax", tmp_path)
    cut = next(dump.glob("kernel_aicpu/*.cpp"))
    cut.write_text(cut.read_text()[:100])
    python = interpreter(tmp_path, f'cp -r "{dump}" output_1')

    ran = command("compile", kernel, "--python", python, "-o", tmp_path / "kept")

    assert (ran.code, ran.out) == (2, "")
    assert f"{temporary}: no space is left there: No space left on device" in ran.error
    assert not (tmp_path / "kept").exists()


def test_a_full_folder_of_the_output_is_named(
    command: Command, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = unpacked("softmax", tmp_path)
    python = interpreter(tmp_path, f'cp -r "{dump}" output_1')

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    ran = command("compile", kernel, "--python", python, "-o", tmp_path / "kept")

    assert (ran.code, ran.out) == (2, "")
    assert f"{tmp_path / 'kept'}: no space is left there: No space left on device" in ran.error
    assert not (tmp_path / "kept").exists()


def test_what_a_file_prints_is_not_among_the_results(
    command: Command, kernel: str, tmp_path: Path
) -> None:
    file = Path(kernel.partition("::")[0])
    file.write_text(file.read_text() + '\nprint("imported")\n')
    dump = unpacked("softmax", tmp_path)
    python = interpreter(tmp_path, f'cp -r "{dump}" output_1')

    ran = command("compile", kernel, "--python", python, "-o", tmp_path / "kept", "--json")

    assert (ran.code, ran.err) == (0, "imported\n")
    assert ran.json["report_kind"] == "compile"
    shown = command("schedule", kernel, "--json")
    assert (shown.code, shown.err) == (0, "imported\n")
    assert shown.json["report_kind"] == "schedule"


def test_the_help_says_when_an_output_has_to_be_written_whole(command: Command) -> None:
    text = " ".join(command("check-schedule", "--help").out.replace("│", " ").split())
    assert "Without FILE:: an output has to be written whole" in text
    assert "each output is expected to be written whole" in text


def test_leaves_of_a_compiler_that_does_not_end_are_kept(
    command: Command, kernel: str, tmp_path: Path
) -> None:
    dump = unpacked("softmax", tmp_path)
    shutil.rmtree(dump / "kernel_aicpu")
    python = interpreter(tmp_path, f'cp -r "{dump}" output_1', "sleep 60")
    words = ("--python", python, "--seconds", 1, "-o", tmp_path / "kept")

    assert command("compile", kernel, *words).code == 0
    assert pypto.read_schedule(tmp_path / "kept") == replace(
        pypto.read_schedule(dump), kernel="kept"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("compile", "{}"), "name a new folder for the dump: -o DIR"),
        (("compile", "{}", "-o", "d", "--shape", "x=a"), "NAME=N,N of 1 or more, as x=1024,256"),
        (("compile", "{}", "-o", "d", "--shape", "z=4,4"), "softmax takes x, y, not z"),
        (("compile", "{}", "-o", "d", "--shape", "x=0,4"), "NAME=N,N of 1 or more"),
        (
            ("schedule", "{}", "--shape", f"x={2**63},4"),
            f"--shape x={2**63},4: numbers of a kernel have 64 bits, so a length is below 2^63",
        ),
        (("compile", "{}", "-o", "d", *("--shape", "x=1", "--shape", "x=2")), "a tensor twice"),
        (
            ("compile", "{}", "-o", "d", "--shape", "x=4,4"),
            "x is annotated Tensor[[128, 512], DT_FP32",
        ),
        (("compile", "{}", "-o", "no/d"), "no is no folder; no/d is made in one that is"),
        (
            ("compile", "{}", "-o", "d", "--python", "/nowhere"),
            "/nowhere cannot be run: No such file",
        ),
        (("check-schedule",), "name either FILE::KERNEL or --upstream-dump DIR"),
        (("check-schedule", "{}", "--upstream-dump", "d"), "name either FILE::KERNEL or"),
        (("check-schedule", "{}", "--kernel", "softmax"), "--kernel is of --upstream-dump"),
        (
            ("check-schedule", "--upstream-dump", "d", "--shape", "x=4,4"),
            "--shape would change nothing of a dump, which is compiled; --inputs says its open",
        ),
        (
            ("check-schedule", "--upstream-dump", "d", "--seconds", "120", "--python", "python3"),
            "--python and --seconds would change nothing of a dump, which is compiled",
        ),
        (
            ("checkpoint", "m.npy", "--to", "bf16", "--shard-size", "2kB", "--dry-run"),
            "--shard-size and --dry-run would change nothing without an output; name it with",
        ),
        (
            ("device-check", "--only", "cycles", "--exhaustive"),
            "--exhaustive would change nothing of the cycles, which depend on no code",
        ),
        (("check-schedule", "--upstream-dump", "nothing"), "no dump of upstream's compiler"),
        (("check-schedule", "--upstream-dump", ""), "the folder of a dump is empty; '.' is"),
        (("schedule", "--upstream-dump", ""), "the folder of a dump is empty; '.' is this one"),
    ],
)
def test_bad_words_are_refused(
    command: Command,
    kernel: str,
    words: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)

    assert says in command(*(word.format(kernel) for word in words)).error
    assert os.listdir(tmp_path) == ["softmax.py"]


WHEEL = """
import os, shutil
class RunMode: SIM = 1
class pypto_impl:
    KEY_DUMP_GRAPH, KEY_PRINT_GRAPH = range(2)
    dumped = []
    SetPassConfig = lambda strategy, name, key, value: pypto_impl.dumped.append(name)
class frontend:
    @staticmethod
    def jit(**options):
        def call(*tensors, **others):
            assert options["runtime_options"] == {{"stitch": 1, "run_mode": 1}}, options
            assert {{"AutoCast", "SubgraphToFunction", "CodegenPreproc"}} == {{*pypto_impl.dumped}}
            shutil.copytree({dump!r}, os.environ["TILE_FWK_OUTPUT_DIR"] + "/output_1")
        return lambda function: call
DT_FP32 = 7
def Tensor(*given): return given
"""
TORCH = f"""
import resource
assert resource.getrlimit(resource.RLIMIT_AS) == ({MEMORY_BYTES}, {MEMORY_BYTES})
float32 = "f"
def ones(shape, dtype): return shape, dtype
"""
KERNEL = """
import pypto_cast
import pypto_cast as pypto  # a comment
from .sizes import SHAPE
from beside import NAME
import near

@pypto_cast.frontend.jit(runtime_options={{"stitch": 1}})
def softmax(x: pypto.Tensor([], pypto.DT_FP32), y: pypto.Tensor([], pypto.DT_FP32), {number}):
    y[:] = pypto.exp(x)

named = softmax
"""


@pytest.fixture
def wheel(tmp_path: Path) -> str:
    """An environment with modules that stand for upstream's wheel and torch."""
    folder = tmp_path / "wheel"
    folder.mkdir()
    (folder / "pypto.py").write_text(WHEEL.format(dump=str(unpacked("softmax", tmp_path))))
    (folder / "torch.py").write_text(TORCH)
    return str(interpreter(tmp_path, f'PYTHONPATH="{folder}" exec "{sys.executable}" "$@"'))


def kernel_file(tmp_path: Path, number: str = "scale=2.0") -> Path:
    """A kernel in a package, beside files that it imports, in a folder with an odd name."""
    package = tmp_path / "m\u00fc llers kernels" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("import pypto_cast as pypto\nSHAPE = (128, 512)\n")
    (package.parent / "beside.py").write_text("NAME = 'beside'\n")
    (package / "near.py").write_text("NAME = 'near'\n")
    file = package / "soft max.py"
    file.write_text(KERNEL.format(number=number))
    return file


def test_a_kernel_of_a_package_is_compiled_where_it_is(
    command: Command, wheel: str, tmp_path: Path
) -> None:
    file = kernel_file(tmp_path)
    before = list(file.parent.parent.rglob("*"))
    shapes = ("--shape", "x=128,512", "--shape", "y=128,512")
    output = file.parent.parent / "d\u00fcmp 1"

    ran = command("compile", f"{file}::named", "--python", wheel, "-o", output, *shapes)

    assert (ran.code, ran.err) == (0, "")
    found = {each for each in output.parent.rglob("*") if output not in each.parents}
    assert {each for each in found if "__pycache__" not in each.parts} == {*before, output}


def test_numbers_beside_the_tensors_come_from_a_file(
    command: Command, wheel: str, tmp_path: Path
) -> None:
    file = kernel_file(tmp_path, "scale")
    words = ("compile", f"{file}::softmax", "--python", wheel, "-o", tmp_path / "kept")
    x = np.ones((128, 512), np.float32)
    np.savez(tmp_path / "x.npz", x=x, y=x)
    np.savez(tmp_path / "all.npz", x=x, y=x, scale=2.0)
    np.savez(tmp_path / "half.npz", x=x.astype(np.float16), y=x, scale=2.0)

    assert "softmax takes scale, a number" in command(*words, "--inputs", tmp_path / "x.npz").error
    assert "half.npz: x" in command(*words, "--inputs", tmp_path / "half.npz").error
    assert command(*words, "--inputs", tmp_path / "all.npz").code == 0


def test_another_release_of_the_wheel_is_refused(
    command: Command, wheel: str, kernel: str, tmp_path: Path
) -> None:
    information = tmp_path / "wheel" / "pypto-0.9.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: pypto\nVersion: 0.9.0\n")

    ran = command("compile", kernel, "--python", wheel, "-o", tmp_path / "kept")

    assert (
        "it has pypto 0.9.0; name the interpreter of an environment with pypto==0.2.0" in ran.error
    )


def test_no_process_of_the_compiler_is_left(kernel: str, tmp_path: Path) -> None:
    lines = f'sleep 600 & echo $! > "{tmp_path}/pid"', "kill -INT $PPID", "wait"
    python = interpreter(tmp_path, *lines)
    file = Path(kernel.partition("::")[0])

    with heard(), pytest.raises(KeyboardInterrupt):
        compile_kernel(file, "softmax", [], tmp_path / "kept", python=str(python))

    stat = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    for _ in range(1000):  # a killed process ends when it is next scheduled
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            break
        time.sleep(0.01)
    else:
        pytest.fail("the compiler's own process lives")
    assert not (tmp_path / "kept").exists()
    assert not list(tmp_path.glob(".kept*"))
