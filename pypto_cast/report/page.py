"""Reports as HTML pages that load nothing: one template, one style, by Jinja2 with autoescape.

A short file because the templates, the style and the scripts beside it hold the page itself.
"""

from __future__ import annotations

import html
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pypto_cast
from pypto_cast.report.figure import HEAT, Figure, heat
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.report import Report, resource
from pypto_cast.report.text_format import extra_hint

if TYPE_CHECKING:
    from jinja2 import Environment

_FRAME_PX: Final = 640
"""The height of a page in a notebook; the rest of it scrolls."""


def check_pages() -> None:
    """Refuse to start on a page that could not be written.

    Raises:
        ModuleNotFoundError: Jinja2 is not installed.
    """
    _environment()


def page_html(
    report: Report,
    *,
    template: str = "report/page.html",
    script: str = "",
    data: object = None,
    **more: object,
) -> str:
    """A whole page, dark or light as the system is; a browser that opens it loads nothing.

    Args:
        report: with its figures and parts.
        template: path of a template within the package, `page.html` or one that extends it.
        script: path of a script within the package; it runs after that of the figures.
        data: what that script reads as JSON from the element `data`.
        more: what a template of its own asks for.

    Raises:
        ModuleNotFoundError: Jinja2 is not installed.
    """
    return (
        _environment()
        .get_template(template)
        .render(
            report=report,
            version=pypto_cast.__version__,
            script=script,
            data=script_json(data),
            **more,
        )
    )


def notebook_with_figures(report: Report) -> str:
    """A report for a notebook: its tables, and in a frame the figures and parts of its page.

    Without Jinja2, which draws them, there is a line that says so in place of the frame.
    """
    tables = notebook_html(report)
    try:
        page = page_html(replace(report, facts=(), tables=(), totals=(), notes=()))
    except ModuleNotFoundError as error:
        needed = f"The figures need {error.name}: {extra_hint('cli')}"
        return f"{tables}\n<p>{html.escape(needed)}</p>"
    title = html.escape(f"{report.title}: figures")
    return (
        f'{tables}\n<iframe title="{title}" style="width:100%;height:{_FRAME_PX}px;border:0" '
        f'sandbox="allow-scripts" srcdoc="{html.escape(page)}"></iframe>'
    )


def script_json(data: object) -> str:
    """JSON that cannot end the script element it stands in.

    Raises:
        ValueError: a NaN or an infinity, which JSON lacks.
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _environment() -> Environment:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ModuleNotFoundError as error:
        needed = f"a page of HTML needs {error.name}: {extra_hint('cli')}"
        raise ModuleNotFoundError(needed, name=error.name) from error
    made = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "percent": lambda part, whole: f"{100 * part / whole:.7g}%",
        "heat": heat,
    }
    made.tests |= {"figure": lambda thing: isinstance(thing, Figure)}
    made.globals |= {"resource": resource, "heat_stops": HEAT}
    return made
