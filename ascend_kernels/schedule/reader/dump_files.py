"""The files of a dump: read up to limits, whole to their last line, and named in errors."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tiling.input_files import regular

_LAST_LINES: Final = {
    ".cpp": "} // namespace npu::tile_fwk",
    ".h": "#endif/*TILE_FWK_EXPRESSION_H*/",
    ".tifwkgr": "}",
}
"""Of whole files; in those of JSON the parser finds that the end is missing."""
MAX_FILE_BYTES: Final = 256 << 20
MAX_DUMP_BYTES: Final = 1 << 30


class DumpError(ValueError):
    """A dump of upstream's that cannot be read; names the file."""


class Texts:
    """Reads files, up to the limits of a dump."""

    def __init__(self) -> None:
        self._taken_bytes = 0

    def read(self, path: Path) -> str:
        """The text of a file.

        Raises:
            ValueError: it is too large, or cut short at its end.
            OSError: it cannot be read.
        """
        size_bytes = regular(path).stat().st_size
        if size_bytes > MAX_FILE_BYTES:
            raise ValueError(f"it has {size_bytes} B, more than the {MAX_FILE_BYTES} B of a file")
        self._taken_bytes += size_bytes
        if self._taken_bytes > MAX_DUMP_BYTES:
            raise ValueError(f"with it the dump has more than {MAX_DUMP_BYTES} B")
        text = path.read_text(encoding="utf-8")
        last = _LAST_LINES.get(path.suffix, "")
        if not text.rstrip().endswith(f"\n{last}" if last else ""):
            raise ValueError(f"it is cut short: its last line is not {last!r}")
        return text


class FileOf:
    """Turns an error in reading a file into a `DumpError` that names it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        text = None
        if isinstance(error, DumpError) or error is None:
            return
        if isinstance(error, KeyError):
            text = f"{error} is missing"
        elif isinstance(error, RecursionError):
            text = "it is nested too deeply"
        elif isinstance(error, OSError):
            text = error.strerror or str(error)
        elif isinstance(error, ValueError):
            text = " ".join(str(error).removeprefix(f"{self._path} ").split())
        elif isinstance(error, (TypeError, IndexError, AttributeError, ArithmeticError)):
            text = f"it is not as upstream writes it: {error}"
        if text is not None:
            raise DumpError(f"{self._path}: {text[:300]}") from None
