"""The gallery of notebooks: executed anew, and as pages of the site.

python -m docs.generators.notebook_page    stores the outputs of all cells
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[2]
_FOLDER: Final = _ROOT / "docs" / "tutorials"
_MOST_PLAIN: Final = 1000
"""Characters of an object's text that is stored beside its table."""
NOTEBOOKS: Final[Mapping[str, Path]] = MappingProxyType(
    {name: _FOLDER / f"{name}_notebook.ipynb" for name in ("quantising", "fit", "checkpoint")}
)


def executed(path: Path) -> Any:
    """A notebook with the outputs of a run in a folder with the examples, without its metadata.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
    """
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(_ROOT / "examples", Path(folder, "examples"))
        resources = {"metadata": {"path": folder}}
        client = nbclient.NotebookClient(notebook, timeout=300, resources=resources)
        client.execute(env={**os.environ, "COLUMNS": "100", "PYTHONPATH": str(_ROOT)})
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode()
        for output in cell.get("outputs", ()):
            shown = output.get("data", {})
            if "text/html" in shown and len(shown.get("text/plain", "")) > _MOST_PLAIN:
                del shown["text/plain"]
    return notebook


def page(name: str) -> str:
    """A stored notebook as Markdown; its tables are HTML."""
    from nbconvert import MarkdownExporter

    text, _ = MarkdownExporter().from_filename(str(NOTEBOOKS[name]))
    return f"{text}\n[The notebook]({NOTEBOOKS[name].name})\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {f"tutorials/{name}_notebook.md": partial(page, name) for name in NOTEBOOKS}
)


if __name__ == "__main__":
    import nbformat

    for path in NOTEBOOKS.values():
        nbformat.write(executed(path), path)
