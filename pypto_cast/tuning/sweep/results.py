"""The results of a sweep on disk: JSON lines, one per job, appended as they come."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pypto_cast.tensors.array_files import OutputFile
from pypto_cast.tuning.records import Record, record_fault
from tiling.input_files import regular

_START: Final = b'{"key": "'
"""The beginning of every line; a line without it is not of a results file."""


class ResultsFile:
    """Results that are there, and those that come; `open_results` makes one."""

    def __init__(self, file: OutputFile, records: dict[str, Record]) -> None:
        self._file = file
        self._records = records

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __getitem__(self, key: str) -> Record:
        return self._records[key]

    def add(self, record: Record) -> None:
        """Append a record; it outlives this process from here on.

        Raises:
            OSError: there is no room for it. What was written of it counts as cut short.
        """
        line = json.dumps(record).encode() + b"\n"
        # One write of a whole line, unbuffered: a process that dies leaves whole lines.
        if self._file.write(line) != len(line):
            raise OSError(f"{self._file.name}: no room left for the results")
        self._records[record["key"]] = record


@contextlib.contextmanager
def open_results(path: Path) -> Iterator[ResultsFile]:
    """Open the results of a sweep, which come into existence if they are not there.

    A last line that was cut short, by a crash or a full disk, is removed. Whole lines stay,
    whosever results they are.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: a line is no result; nothing was changed.
    """
    held = regular(path).read_bytes() if path.exists() else b""
    *whole, torn = held.split(b"\n")
    records = [_record(path, number, line) for number, line in enumerate(whole, start=1)]
    if torn and torn[: len(_START)] != _START[: len(torn)]:
        raise _no_result(path, len(whole) + 1)
    with OutputFile(path, "ab", path) as file:
        if torn:
            file.truncate(len(held) - len(torn))
        yield ResultsFile(file, {record["key"]: record for record in records})


def _record(path: Path, number: int, line: bytes) -> Record:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        raise _no_result(path, number) from None
    if fault := record_fault(read):
        raise _no_result(path, number, fault)
    found: Record = read
    return found


def _no_result(path: Path, number: int, fault: str = "") -> ValueError:
    because = f" ({fault})" if fault else ""
    return ValueError(
        f"{path}, line {number}: no result of a sweep{because}; delete the line, or name another "
        "output"
    )
