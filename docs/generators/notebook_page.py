"""The tutorial that is a notebook: executed anew, and as a page of the site.

python -m docs.generators.notebook_page    stores the outputs of all cells
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

NOTEBOOK: Final = Path(__file__).parents[1] / "tutorials" / "quantising_notebook.ipynb"


def executed() -> Any:
    """The notebook with the outputs of a run in an empty folder, and no metadata but its kernel's.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
    """
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode()
    return notebook


def page() -> str:
    """The stored notebook as Markdown; its tables are HTML."""
    from nbconvert import MarkdownExporter

    text, _ = MarkdownExporter().from_filename(str(NOTEBOOK))
    return f"{text}\n[The notebook]({NOTEBOOK.name})\n"


if __name__ == "__main__":
    import nbformat

    nbformat.write(executed(), NOTEBOOK)
