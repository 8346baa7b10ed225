"""The digest of sources: what changes it, and what does not."""

from __future__ import annotations

from pathlib import Path

from simulator.numbers.sources import sources_digest


def test_the_digest_of_sources_follows_what_they_do(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    python, header = inner / "code.py", inner / "code.h"
    python.write_text('"""Says."""\n\ndef f(x: int) -> int:\n    """Does."""\n    return x + 1\n')
    header.write_text("int f(int);\n")
    first = sources_digest(tmp_path, "fast")
    python.write_text("# Why.\ndef f( x: int ) -> int:\n    return (x + 1)\n")
    assert sources_digest(tmp_path, "fast") == first
    python.write_text("def f(x: int) -> int:\n    return x + 2\n")
    changed = sources_digest(tmp_path, "fast")
    header.write_text("long f(int);\n")
    assert len({first, changed, sources_digest(tmp_path, "fast")}) == 3
    python.rename(tmp_path / "code.py")
    assert len({first, changed, sources_digest(tmp_path, "fast")}) == 3
