"""Building the library for the NPU: the command it would run, and what it says where it cannot."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ascend_kernels import build

CSRC = Path(build.__file__).with_name("csrc")

FAKE_BISHENG = """\
#!/bin/sh
printf '%s\\n' "$@" -- >> "$RECORD"
for argument; do last=$argument; done
[ -n "$NO_LIBRARY" ] || echo made > "$last"
exit "${STATUS:-0}"
"""


VERSION_CFG = """\
# version: 1.0
runtime_running_version=[{0}:CANN-{0}]
compiler_running_version=[{0}:CANN-{0}]
"""


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No CANN, no compiler on PATH but the shell's tools, a cache of its own."""
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def cann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like CANN's, with a compiler that records how it is called."""
    home = tmp_path / "cann"
    bisheng = home / f"{platform.machine()}-linux" / "ccec_compiler" / "bin" / "bisheng"
    bisheng.parent.mkdir(parents=True)
    bisheng.write_text(FAKE_BISHENG, encoding="utf-8")
    bisheng.chmod(bisheng.stat().st_mode | stat.S_IXUSR)
    (home / "version.cfg").write_text(VERSION_CFG.format("8.5.0"), encoding="utf-8")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home))
    monkeypatch.setenv("RECORD", str(tmp_path / "record"))
    return home


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """torch and torch_npu as folders; torch imports as something that names its ABI."""
    site = tmp_path / "site"
    for name in ("torch", "torch_npu"):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("", encoding="utf-8")
    fake = SimpleNamespace(_C=SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True))

    def spec(name: str) -> SimpleNamespace | None:
        found = site / name
        return SimpleNamespace(submodule_search_locations=[str(found)]) if found.is_dir() else None

    monkeypatch.setattr(build.importlib.util, "find_spec", spec)
    monkeypatch.setattr(build, "_import", lambda name: fake)
    return site


def recorded(tmp_path: Path) -> list[list[str]]:
    """The arguments of each call of the compiler."""
    calls = (tmp_path / "record").read_text(encoding="utf-8").split("--\n")
    return [call.splitlines() for call in calls[:-1]]


# --- The command ---------------------------------------------------------------------------------


PARTS = ("FP32", "FP16", "BF16", "INT32", "INT16", "INT64", "UINT8", "INT8", "INT4", "ROUTES")


def test_the_commands_that_bisheng_is_given(tmp_path: Path, cann: Path, packages: Path) -> None:
    """A translation unit for each source format, one for the op, and the link."""
    out = tmp_path / "out" / "cast.so"
    assert build.build(out) == out
    assert out.read_text(encoding="utf-8") == "made\n"
    assert list(out.parent.iterdir()) == [out]
    *kernels, op, link = recorded(tmp_path)
    common = ["-c", "-fPIC", "-O2", "-std=c++17", f"-I{CSRC}"]
    gcc = [word for word in op if word.startswith("--gcc-toolchain=")]
    assert len(gcc) == 1
    assert Path(gcc[0].partition("=")[2]).is_dir()
    objects = []
    for part, command in zip(PARTS, kernels, strict=True):
        instances = f"-DPYPTO_CAST_PART=PYPTO_CAST_INSTANCES_{part}"
        assert command[:-1] == [
            *("-x", "asc", "--npu-arch=dav-2201", "-DPYPTO_CAST_ARCH=2201", instances),
            *(*gcc, *common),
            *(f"{CSRC}/cast_kernels.asc", "-o"),
        ]
        objects.append(command[-1])
    assert op[:-1] == [
        "-DPYPTO_CAST_ARCH=2201",
        "-D_GLIBCXX_USE_CXX11_ABI=1",
        f"-I{packages}/torch/include",
        f"-I{packages}/torch/include/torch/csrc/api/include",
        f"-I{packages}/torch_npu/include",
        f"-I{packages}/torch_npu/include/third_party/acl/inc",
        *gcc,
        *common,
        *(f"{CSRC}/cast_op.cpp", "-o"),
    ]
    objects.append(op[-1])
    assert len(set(objects)) == 11
    assert link[:-1] == [
        *("-shared", "--npu-arch=dav-2201", *gcc, *objects),
        *(f"-L{packages}/torch/lib", f"-L{packages}/torch_npu/lib", f"-L{cann}/lib64"),
        *("-ltorch_npu", "-ltorch", "-ltorch_cpu", "-lc10", "-lascendcl", "-o"),
    ]
    assert Path(link[-1]).parent.parent == out.parent


def commands() -> list[str]:
    made = build.find_toolchain().commands(Path("x.so"), Path("objects"))
    return [word for command in made for word in command]


def test_the_older_abi(packages: Path, cann: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = SimpleNamespace(_C=SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=False))
    monkeypatch.setattr(build, "_import", lambda name: old)
    assert "-D_GLIBCXX_USE_CXX11_ABI=0" in commands()


def test_without_gcc_bisheng_looks_itself(
    packages: Path, cann: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert not any(word.startswith("--gcc-toolchain") for word in commands())


def test_every_file_of_the_commands_that_is_ours_exists(packages: Path, cann: Path) -> None:
    ours = {word.removeprefix("-I") for word in commands() if str(CSRC) in word}
    assert len(ours) == 3
    assert all(Path(word).exists() for word in ours)


def test_without_a_place_it_goes_to_the_cache(tmp_path: Path, cann: Path, packages: Path) -> None:
    made = build.build()
    assert made == build.cached_library()
    assert made.is_relative_to(tmp_path / "cache" / "pypto_cast")
    assert made.name == "libpypto_cast_npu.so"


def test_the_cache_is_private(tmp_path: Path, cann: Path, packages: Path) -> None:
    """Whatever the umask: nothing is loaded from a folder that others could write to."""
    before = os.umask(0o002)
    try:
        folders = (build.build().parent, tmp_path / "cache" / "pypto_cast")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700, 0o700]
    folders[1].chmod(0o777)
    assert failure().startswith(f"the library cannot be kept in {folders[0]}: others can write to")


def test_the_cache_knows_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    places = set()
    for version in ("2.13.0", "2.14.0"):
        monkeypatch.setattr(build, "_version", lambda package, version=version: version)
        places.add(build.cached_library())
    assert len(places) == 2


def test_a_compiler_on_the_path_will_do(
    tmp_path: Path, cann: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bisheng,) = cann.rglob("bisheng")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    bisheng.rename(elsewhere / "bisheng")
    monkeypatch.setenv("PATH", f"{elsewhere}:/usr/bin:/bin")
    assert build.find_toolchain().bisheng == elsewhere / "bisheng"


def test_cmake_builds_the_same() -> None:
    """The same sources, parts, architecture, includes and libraries as the commands."""
    text = (CSRC / "CMakeLists.txt").read_text(encoding="utf-8")
    assert "set(CMAKE_ASC_ARCHITECTURES dav-${PYPTO_CAST_ARCH})" in text
    assert text.count("PYPTO_CAST_ARCH=${PYPTO_CAST_ARCH}") == 2  # of the kernels and of the op
    assert "OBJECT cast_kernels.asc)" in text
    assert "add_library(pypto_cast_npu SHARED cast_op.cpp ${KERNELS})" in text
    (libraries,) = re.findall(r"target_link_libraries\(pypto_cast_npu PRIVATE ([\w ]+)\)", text)
    toolchain = build.Toolchain(
        cann=Path("C"),
        bisheng=Path("B"),
        torch=Path("T"),
        torch_npu=Path("N"),
        is_cxx11_abi=True,
        cann_version="9.1.0",
        gcc=None,
    )
    *_, op, link = toolchain.commands(Path("x.so"), Path("o"))
    assert libraries.split() == [word[2:] for word in link if word.startswith("-l")]
    words = {"T": "${TORCH_DIR}", "N": "${TORCH_NPU_DIR}", "C": "$ENV{ASCEND_HOME_PATH}"}
    folders = [word[2:] for word in (*op, *link) if word.startswith(("-I", "-L"))]
    folders.remove(str(CSRC))
    for folder in folders:
        first, _, rest = folder.partition("/")
        assert f"{words[first]}/{rest}" in text


@pytest.mark.parametrize("kind", build.CAST_LIBRARIES.values(), ids=lambda kind: kind.architecture)
def test_cmake_finds_the_parts_of_a_family(tmp_path: Path, kind: build.Library) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    text = (CSRC / "CMakeLists.txt").read_text(encoding="utf-8")
    lines = text[text.index("file(READ") : text.index("foreach(part")]
    lines = lines.replace("${CMAKE_CURRENT_LIST_DIR}", str(CSRC))
    script = tmp_path / "parts.cmake"
    architecture = f"set(PYPTO_CAST_ARCH {kind.target.architecture})\n"
    script.write_text(f'{architecture}{lines}message("${{PARTS}}")\n', encoding="utf-8")
    ran = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
    names = [part.removeprefix("PYPTO_CAST_INSTANCES_") for part in kind.parts]
    assert ran.stderr.strip().split(";") == names


# --- Which CANN ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("version.cfg", VERSION_CFG.format("8.5.0"), "8.5.0"),
        ("version.cfg", "runtime_running_version=[8.5.0.1.220:8.5.RC1]\n", "8.5.RC1"),
        ("toolkit/version.info", "Version=9.0.1\nversion_dir=9.0.1\n", "9.0.1"),
        ("share/info/asc-devkit/version.info", "Version=9.1.0-beta.2\n", "9.1.0-beta.2"),
        ("version.info", "timestamp=20260713\nVersion=10.0.0\n", "10.0.0"),
    ],
)
def test_cann_says_its_version(cann: Path, name: str, text: str, version: str) -> None:
    (cann / "version.cfg").unlink()
    (cann / name).parent.mkdir(parents=True, exist_ok=True)
    (cann / name).write_text(text, encoding="utf-8")
    assert build.cann_version(cann) == version


@pytest.mark.parametrize("version", ["8.3.RC1", "8.0.0", "7.0.0"])
def test_an_older_cann(cann: Path, packages: Path, version: str) -> None:
    (cann / "version.cfg").write_text(VERSION_CFG.format(version), encoding="utf-8")
    assert failure() == (
        f"CANN {version} in {cann} (version.cfg) is older than 8.5, which the kernels need: "
        "install CANN 8.5 or newer"
    )


@pytest.mark.parametrize("text", [None, "", "Version=\n"])
def test_a_cann_that_says_no_version(cann: Path, packages: Path, text: str | None) -> None:
    (cann / "version.cfg").unlink()
    if text is not None:
        (cann / "version.cfg").write_text(text, encoding="utf-8")
    assert failure().startswith(f"{cann} does not say which CANN it is: none of version.cfg, ")


# --- What it says where it cannot ----------------------------------------------------------------


def failure() -> str:
    with pytest.raises(build.BuildError) as error:
        build.build()
    text = str(error.value)
    assert "\n" not in text
    return text


def test_without_cann() -> None:
    assert failure() == (
        "ASCEND_HOME_PATH is not set: install CANN and source its set_env.sh, then build again"
    )


def test_cann_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere/cann")
    assert failure() == "ASCEND_HOME_PATH=/nowhere/cann is no folder: source CANN's set_env.sh"


def test_without_bisheng(cann: Path) -> None:
    next(cann.rglob("bisheng")).unlink()
    assert failure() == (
        f"the compiler bisheng is neither in {cann} nor on PATH: install CANN's toolkit"
    )


@pytest.mark.parametrize("missing", ["torch", "torch_npu"])
def test_without_a_package(cann: Path, packages: Path, missing: str) -> None:
    (packages / missing / "__init__.py").unlink()
    (packages / missing).rmdir()
    assert failure() == f"{missing} is not installed for {sys.executable}: pip install {missing}"


def test_torch_that_does_not_import(
    cann: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> None:
        raise RuntimeError("backend") from ImportError("libx.so: cannot open\nshared object")

    monkeypatch.setattr(build, "_import", broken)
    assert failure() == (
        "torch is installed but does not import: ImportError: libx.so: cannot open shared object"
    )


def test_a_compiler_that_fails_leaves_the_old_library(
    tmp_path: Path, cann: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = build.build()
    target.write_text("old", encoding="utf-8")
    monkeypatch.setenv("STATUS", "3")
    (bisheng,) = cann.rglob("bisheng")
    assert failure() == f"{bisheng} ended with status 3; what it printed says why"
    assert target.read_text(encoding="utf-8") == "old"
    assert list(target.parent.iterdir()) == [target]


def test_a_compiler_that_makes_nothing(
    cann: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_LIBRARY", "1")
    assert "ended with status 0 and made no PYPTO_CAST_INSTANCES_FP32.o" in failure()


# --- The command line ----------------------------------------------------------------------------


def test_the_command_line_fails_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ascend_kernels.build"],
        cwd=CSRC.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "cannot build libpypto_cast_npu.so: ASCEND_HOME_PATH is not set: install CANN and source "
        "its set_env.sh, then build again\n"
    )


def test_a_dry_run_runs_nothing(
    tmp_path: Path,
    cann: Path,
    packages: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["build", "--dry-run", "--out", "/somewhere/x.so"])
    assert build.main() == 0
    first, *printed = capsys.readouterr().out.splitlines()
    assert first == f"# CANN 8.5.0 in {cann}"
    assert len(printed) == 12
    assert printed[-1].endswith("-o /somewhere/x.so")
    assert not (tmp_path / "record").exists()


def test_the_command_line_says_where_the_library_is(
    tmp_path: Path,
    cann: Path,
    packages: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "x.so"
    monkeypatch.setattr("sys.argv", ["build", "--out", str(out)])
    assert build.main() == 0
    assert capsys.readouterr().out == f"{out}\n"


def test_torch_is_imported_without_its_backends(tmp_path: Path) -> None:
    """Only while it is imported."""
    code = (
        "import json, os\nfrom ascend_kernels import build\nseen = []\n"
        "for _ in range(2):\n"
        "    with build.without_autoload(): seen.append(os.environ.get(build.AUTOLOAD))\n"
        "    seen.append(os.environ.get(build.AUTOLOAD))\n"
        "    os.environ[build.AUTOLOAD] = '1'\n"
        "print(json.dumps(seen))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CSRC.parents[1], capture_output=True, text=True
    )
    assert json.loads(done.stdout) == ["0", None, "0", "1"], done.stderr
