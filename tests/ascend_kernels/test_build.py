"""Building the library for the NPU: the command it would run, and what it says where it cannot."""

from __future__ import annotations

import json
import os
import platform
import re
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
printf '%s\\n' "$@" > "$RECORD"
for argument; do last=$argument; done
[ -n "$NO_LIBRARY" ] || echo made > "$last"
exit "${STATUS:-0}"
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


def recorded(tmp_path: Path) -> list[str]:
    return (tmp_path / "record").read_text(encoding="utf-8").splitlines()


# --- The command ---------------------------------------------------------------------------------


def test_the_command_that_bisheng_is_given(tmp_path: Path, cann: Path, packages: Path) -> None:
    out = tmp_path / "out" / "cast.so"
    assert build.build(out) == out
    assert out.read_text(encoding="utf-8") == "made\n"
    *command, flag, made = recorded(tmp_path)
    assert command == [
        *("-x", "asc", "--npu-arch=dav-2201", "-shared", "-fPIC", "-O2", "-std=c++17"),
        "-D_GLIBCXX_USE_CXX11_ABI=1",
        f"-I{CSRC}",
        f"-I{packages}/torch/include",
        f"-I{packages}/torch/include/torch/csrc/api/include",
        f"-I{packages}/torch_npu/include",
        f"-I{packages}/torch_npu/include/third_party/acl/inc",
        f"{CSRC}/cast.asc",
        *(f"-L{packages}/torch/lib", f"-L{packages}/torch_npu/lib", f"-L{cann}/lib64"),
        *("-ltorch_npu", "-ltorch", "-ltorch_cpu", "-lc10", "-lascendcl"),
    ]
    assert flag == "-o"
    assert Path(made).parent.parent == out.parent
    assert list(out.parent.iterdir()) == [out]


def test_the_older_abi(packages: Path, cann: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = SimpleNamespace(_C=SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=False))
    monkeypatch.setattr(build, "_import", lambda name: old)
    command = build.find_toolchain().command(Path("x.so"))
    assert "-D_GLIBCXX_USE_CXX11_ABI=0" in command


def test_every_file_of_the_command_that_is_ours_exists(packages: Path, cann: Path) -> None:
    command = build.find_toolchain().command(Path("x.so"))
    ours = [word.removeprefix("-I") for word in command if str(CSRC) in word]
    assert len(ours) == 2
    assert all(Path(word).exists() for word in ours)


def test_without_a_place_it_goes_to_the_cache(tmp_path: Path, cann: Path, packages: Path) -> None:
    made = build.build()
    assert made == build.cached_library()
    assert made.is_relative_to(tmp_path / "cache" / "pypto_cast")
    assert made.name == "libpypto_cast_npu.so"


def test_the_cache_is_private(tmp_path: Path, cann: Path, packages: Path) -> None:
    """Whatever the umask: what others could write to, nothing is loaded from."""
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
    """The same source, architecture, includes and libraries as the command."""
    text = (CSRC / "CMakeLists.txt").read_text(encoding="utf-8")
    assert f"set(CMAKE_ASC_ARCHITECTURES {build.ARCHITECTURE})" in text
    assert "add_library(pypto_cast_npu SHARED cast.asc)" in text
    (libraries,) = re.findall(r"target_link_libraries\(pypto_cast_npu PRIVATE ([\w ]+)\)", text)
    toolchain = build.Toolchain(
        cann=Path("C"), bisheng=Path("B"), torch=Path("T"), torch_npu=Path("N"), is_cxx11_abi=True
    )
    command = toolchain.command(Path("x.so"))
    assert libraries.split() == [word[2:] for word in command if word.startswith("-l")]
    words = {"T": "${TORCH_DIR}", "N": "${TORCH_NPU_DIR}", "C": "$ENV{ASCEND_HOME_PATH}"}
    folders = [word[2:] for word in command if word.startswith(("-I", "-L"))]
    for folder in folders[1:]:
        first, _, rest = folder.partition("/")
        assert f"{words[first]}/{rest}" in text


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
    assert "ended with status 0 and made no library" in failure()


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
    printed = capsys.readouterr().out
    assert printed.endswith("-o /somewhere/x.so\n")
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
