"""The results file of a sweep: what is found again, what it forgives, what it leaves alone."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from test_sweep import sweep

from pypto_cast.sweep.jobs import evaluate
from pypto_cast.sweep.results import ResultsFile, open_results


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
    with pytest.raises(ValueError, match=r"line 1: no result of a sweep"), open_results(path):
        pass


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
    with pytest.raises(ValueError, match=r"line 1: no result of a sweep"), open_results(path):
        pass
    assert path.read_text(encoding="utf-8") == text
