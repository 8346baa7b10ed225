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


CHINESE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "quantising": (
            "# Notebook：量化算子\n\n把 FP32 的各行量化为 INT8，每行一个缩放因子，"
            "直到每个结果都唯一。对象按 notebook 的方式显示。"
            "更详细的步骤：[量化算子](quantising_kernel.md)。",
            "## 舍入的作用\n\n2.5 在两个整数之间，`RINT` 取其中的偶数：",
            "## 算子\n\n算子写在文件中：测试可以导入它，报告可以指出它的代码行。",
            "## 结果唯一吗？\n\n公开文档没有说明设备怎样舍入商。"
            "商过于接近平局点时，有两种可能的结果：",
            "## 使结果唯一\n\n在主机上预先算出缩放因子的倒数，算子只做乘法：",
        ),
        "fit": (
            "# Notebook：算子为什么放不下\n\n一个 Tile 在 UB 中放不下的算子：原因、改动，以及"
            "改动后的 schedule。更详细的步骤：[算子为什么放不下](kernel_fit.md)。",
            "## 占用最多的时刻\n\n不需要数组，声明的张量就够了。",
            "## 行数减半\n\nschedule 按上游编译器的方法规划；第一个表给出各项数值。",
            "## 周期数\n\n来自上游 wheel 中的模拟器，不是在设备上测得的：",
        ),
        "checkpoint": (
            "# Notebook：模型权重到 INT8 和 MXFP8\n\n一个识别手写数字的 FP32 小模型："
            "权重量化为 INT8，每行一个缩放因子；"
            "再量化为 MXFP8，每 32 个元素一个缩放因子。更详细的步骤：[模型权重](checkpoint.md)、"
            "[模型权重到 MXFP8](checkpoint_mxfp8.md)。",
            "## MXFP8\n\n缩放因子是 2 的幂，因此结果与设备怎样做除法无关；"
            "只有 Ascend 950 支持这种转换。",
            "## 权重\n\n位模式和缩放因子都是 numpy 的张量；两者的乘积接近原来的权重。",
        ),
    }
)
"""The text between the cells of code, in order."""


def page(name: str, language: str = "en") -> str:
    """A stored notebook as Markdown in a language; its tables are HTML."""
    import nbformat
    from nbconvert import MarkdownExporter

    notebook = nbformat.read(NOTEBOOKS[name], as_version=4)
    if language == "zh":
        texts = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
        for cell, source in zip(texts, CHINESE[name], strict=True):
            cell.source = source
    text, _ = MarkdownExporter().from_notebook_node(notebook)
    link = "The notebook" if language == "en" else "Notebook 文件（英文）"
    return f"{text}\n[{link}]({NOTEBOOKS[name].name})\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        f"tutorials/{name}_notebook{suffix}": partial(page, name, language)
        for name in NOTEBOOKS
        for suffix, language in ((".md", "en"), (".zh.md", "zh"))
    }
)


if __name__ == "__main__":
    import nbformat

    for path in NOTEBOOKS.values():
        nbformat.write(executed(path), path)
