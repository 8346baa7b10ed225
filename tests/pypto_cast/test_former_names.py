"""Former names give the modules and classes of the new ones, and warn at the line that asks."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from support.environment.sources import ROOT

import pypto_cast.former_names as former


def lines_of(code: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [line for line in ran.stderr.splitlines() if "DeprecationWarning" in line]


@pytest.mark.slow
def test_every_former_module_is_the_one_of_the_new_name() -> None:
    code = "\n".join(
        f"import pypto_cast.{old}\n"
        f"from pypto_cast.{new} import __name__ as name\n"
        f"assert sys.modules['pypto_cast.{old}'] is sys.modules['pypto_cast.{new}'], name"
        for old, new in former.MOVED.items()
    )
    told = lines_of(f"import sys\n{code}")
    assert told == [
        f"<string>:{3 * number + 2}: DeprecationWarning: pypto_cast.{old} is pypto_cast.{new} now; "
        "the former name goes with the next release"
        for number, (old, new) in enumerate(former.MOVED.items())
    ]


def test_the_changelog_lists_every_former_name() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    table = text.partition("| former | now |\n")[2].partition("\n\n")[0]
    row = r"\| (?:names of )?`pypto_cast\.([\w.]+)` \| `pypto_cast\.([\w.]+)` \|"
    _, *rows = table.splitlines()
    listed = [found.groups() if (found := re.fullmatch(row, r.strip())) else r for r in rows]
    assert listed == [*former.MOVED.items(), *former.SPLIT.items(), *former.RENAMED.items()]


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("code", "new"),
    [
        ("from pypto_cast.dtypes import DataType", "dtypes.data_types"),
        ("from pypto_cast.options import options, Options", "options.context"),
        ("from pypto_cast import names", "dtypes.names"),
        ("from pypto_cast.pages import markup", "report.page"),
        ("import pypto_cast.inspection.explanation as e; e.explain", "cast.explanation"),
        ("import pypto_cast.dtypes; pypto_cast.dtypes.DataType", "dtypes.data_types"),
    ],
    ids=["dtypes", "options", "package", "folder", "as", "attribute"],
)
def test_every_way_to_import(code: str, new: str) -> None:
    told = lines_of(f"\n{code}\n{code}")
    assert told
    assert all(line.startswith("<string>:2: ") or line.startswith("<string>:3: ") for line in told)
    assert all(f" is pypto_cast.{new} now; " in line for line in told)


@pytest.mark.slow
def test_every_former_name_of_a_class_is_that_class() -> None:
    """That of a method too, which warns where it is called."""
    lines, told = ["import numpy as np, pypto_cast as pypto"], []
    for old, new in former.RENAMED.items():
        (owner, _, was), name = old.rpartition("."), new.rpartition(".")[2]
        lines.append(f"from pypto_cast.{owner} import {was} as a, {name} as b; assert a is b")
        told.append(f"{len(lines)}: DeprecationWarning: pypto_cast.{old} is pypto_cast.{new}")
    lines.append("x = pypto.from_numpy(np.ones(2, np.float16))")
    lines.append("assert x.quantity().values.tobytes() == x.enclosure().values.tobytes()")
    told.append(f"{len(lines)}: DeprecationWarning: Tensor.quantity is Tensor.enclosure")
    end = " now; the former name goes with the next release"
    found = dict.fromkeys(lines_of("\n".join(lines)))
    assert list(found) == [f"<string>:{line}{end}" for line in told]


@pytest.mark.slow
def test_a_module_without_a_name_is_warned() -> None:
    told = lines_of("exec('import pypto_cast.wording', {})")
    assert told
    assert "pypto_cast.report.text_format now" in told[0]


def test_a_name_that_never_was() -> None:
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from pypto_cast.dtypes import nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from pypto_cast.dialects import nothing")
    with pytest.raises(ModuleNotFoundError):
        exec("import pypto_cast.pages.nothing")
