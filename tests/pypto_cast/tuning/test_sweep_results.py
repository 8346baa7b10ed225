"""The results file of a sweep: what is found again, repaired, and left alone."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.environment.sources import ROOT
from test_sweep import sweep

from pypto_cast.tuning.sweep.jobs import ResultsFile, evaluate, open_results


def test_results_are_there_again(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    records = [evaluate(job) for job in sweep(tmp_path).jobs]
    with open_results(path) as results:
        for record in records[:2]:
            results.add(record)
    with open_results(path) as results:
        assert records[0]["key"] in results
        assert results[records[1]["key"]] == records[1]
        assert records[2]["key"] not in results
        results.add(records[2])
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.parametrize("cut", [1, 5, 9, 200])
def test_a_torn_line_is_computed_again(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "sweep.jsonl"
    first, second = (evaluate(job) for job in sweep(tmp_path).jobs[:2])
    with open_results(path) as results:
        results.add(first)
        whole = path.read_bytes()
        results.add(second)
    path.write_bytes(path.read_bytes()[: len(whole) + cut])
    with open_results(path) as results:
        assert first["key"] in results
        assert second["key"] not in results
        assert path.read_bytes() == whole
        results.add(second)
    with open_results(path) as results:
        assert results[second["key"]] == second


def test_a_line_with_another_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    record = evaluate(sweep(tmp_path).jobs[0])
    path.write_text(json.dumps({**record, "key": [1]}) + "\n", encoding="utf-8")
    with (
        pytest.raises(ValueError, match=r"line 1: no result of a sweep or of tune"),
        open_results(path),
    ):
        pass


NOT_ITS_TYPE = {
    "key": 1,
    "shape": [64, "96"],
    "src": None,
    "top": True,
    "max_tiles": 1.5,
    "legal_count": "30",
    "bound_cycles": float("nan"),
    "is_stable": 1,
    "notes": "none",
    "candidates": {},
}
NOT_ITS_TYPE_IN_A_CANDIDATE = {
    "rank": "1",
    "tile_shape": 64,
    "cycles": "4,395",
    "microseconds": float("inf"),
    "gb_per_second": 10**400,
    "bound_share": True,
    "is_double_buffered": None,
    "warnings": [1],
    "reason": ["fast"],
}


@pytest.mark.parametrize(
    ("where", "field", "value"),
    [
        *(("record", *item) for item in NOT_ITS_TYPE.items()),
        *(("candidate", *item) for item in NOT_ITS_TYPE_IN_A_CANDIDATE.items()),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_field_of_another_type_is_refused_by_its_name(
    tmp_path: Path, where: str, field: str, value: object
) -> None:
    path = tmp_path / "sweep.jsonl"
    record = evaluate(sweep(tmp_path).jobs[0])
    (record if where == "record" else record["candidates"][0])[field] = value
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    before = path.read_bytes()
    name = field if where == "record" else f"candidates {field}"
    with (
        pytest.raises(
            ValueError, match=rf"line 1: no result of a sweep or of tune \({name} is no [a-z]+\)"
        ),
        open_results(path),
    ):
        pass
    assert path.read_bytes() == before


def test_a_result_without_a_candidate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    record = {**evaluate(sweep(tmp_path).jobs[0]), "candidates": []}
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="candidates is empty"), open_results(path):
        pass


def test_a_float_may_be_written_as_an_int(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    record = {**evaluate(sweep(tmp_path).jobs[0]), "bound_cycles": 3}
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    with open_results(path) as results:
        assert results[record["key"]]["bound_cycles"] == 3


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no resource limits")
def test_a_full_disk_is_told_with_file_and_size(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from pypto_cast.tuning.sweep.jobs import open_results\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "with open_results(Path(sys.argv[1])) as results:\n"
        "    for number in range(100):\n"
        "        try:\n"
        "            results.add({'key': str(number), 'pad': ' ' * 481})\n"
        "        except OSError as error:\n"
        "            print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    first, second, *_ = ran.stdout.splitlines()
    assert first == f"{path}: no room left for the results"
    assert "File too large; it has 1,000 B, and 505 B more do not fit" in second
    assert str(path) in second


def test_no_room_for_a_line(tmp_path: Path) -> None:
    class Full(io.BytesIO):
        name = "full.jsonl"

        def write(self, line: object) -> int:
            assert isinstance(line, bytes)
            return super().write(line[:10])

    record = evaluate(sweep(tmp_path).jobs[0])
    results = ResultsFile(Full(), {})
    with pytest.raises(OSError, match=r"full\.jsonl: no room left"):
        results.add(record)
    assert record["key"] not in results


@pytest.mark.parametrize(
    "text",
    [
        "a diary\n",
        "a diary",
        "[1]\n",
        '{"key": "1"}\n',
        '{"key": "1", "shape": [1]}\n',
        "[" * 100_000 + "\n",
    ],
    ids=["text", "torn-text", "list", "key", "fields", "deep"],
)
def test_another_file_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "diary.txt"
    path.write_text(text, encoding="utf-8")
    with (
        pytest.raises(ValueError, match=r"line 1: no result of a sweep or of tune"),
        open_results(path),
    ):
        pass
    assert path.read_text(encoding="utf-8") == text
