"""`pypto-cast schedule`: the tile program of a kernel, planned or of a dump, as tables and page."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

from ascend_kernels.schedule.planner.ub_overflow import UBOverflowError
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.simulated_cycles import STANDINGS, TASKS
from ascend_kernels.schedule.views.task_trace import schedule_perfetto
from pypto_cast.cli.app import ChipName, Force, Json, UpstreamDump, refuse_unread
from pypto_cast.cli.commands.certainty_command import (
    SEPARATOR,
    errors_at_lines,
    file_and_name,
    kernel_named,
)
from pypto_cast.cli.commands.compile_command import Inputs, Shapes, declared_of
from pypto_cast.kernel.fit import FitReport, fit_report
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.reports.schedule_diff import ScheduleDiff
from pypto_cast.kernel.reports.schedule_report import schedule_report
from pypto_cast.kernel.reports.timeline_comparison import comparison_report, timeline_beside
from pypto_cast.kernel.tile_choice import replaced_tiles, tile_recording
from pypto_cast.options.context import options
from pypto_cast.options.releases import RELEASE_NAMES, ReleaseName
from pypto_cast.report import terminal
from pypto_cast.report.page import check_pages, page_html
from pypto_cast.report.report import plain
from pypto_cast.report.text_format import plural, printable, tile_named, written
from pypto_cast.tensors.array_files import check_apart, check_free, output_file
from pypto_cast.tensors.tensor import tensor
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.schedule_reader import read_schedule
from tiling.chips import chip_named

_DIFFERENT: Final = 1
_OVER_UB: Final = 1


class _UnfitError(UBOverflowError):
    """A kernel that does not fit in UB, with the report."""

    fit: FitReport


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A schedule as the command line names it: of a dump, or planned of a kernel."""

    planned: str | None
    dump: Path | None
    dump_kernel: str | None
    inputs: Path | None
    shapes: tuple[str, ...]
    release: str
    chip: str | None
    tiles: tuple[str, ...]

    @property
    def name(self) -> str:
        return printable(str(self.dump if self.planned is None else self.planned))

    def schedule(self) -> Schedule:
        if self.dump is not None:
            return read_schedule(self.dump, self.dump_kernel)
        assert self.planned is not None
        # Whether it is a release is for the options to say, which list them.
        with (
            as_pypto(replace_installed=True),
            options(release=cast(ReleaseName, self.release), chip=self.chip),
        ):
            file, found = kernel_named(self.planned)
            declared, others = declared_of(found, self.inputs, list(self.shapes))
            tensors = [tensor(extents, dtype) for extents, dtype in declared]
            with errors_at_lines(file), _tiles_named(self.tiles, found, tensors, others):
                try:
                    return found.schedule(*tensors, **others)
                except UBOverflowError as error:
                    unfit = _UnfitError(error.overflow)
                    unfit.fit = fit_report(found, *tensors, **others)
                    raise unfit from None

    def against(self, texts: Sequence[str]) -> tuple[str, _Asked]:
        """The schedule to compare with, and its name."""
        changed = [text.partition("=") for text in texts]
        if all(name in _CHANGES for name, _, _ in changed):
            if self.planned is None:
                raise ValueError(f"--against {texts[0]} plans again, which a dump cannot be")
            tiles = tuple(value for name, _, value in changed if name == "tile")
            last = {name: value for name, _, value in changed}
            if len(changed) - len(tiles) > len(last.keys() - {"tile"}):
                raise ValueError(f"--against names a release or a chip twice: {' '.join(texts)}")
            return ", ".join(texts), dataclasses.replace(
                self,
                tiles=tiles or self.tiles,
                release=last.get("release", self.release),
                chip=last.get("chip", self.chip),
            )
        if len(texts) > 1:
            raise ValueError(f"--against is one FILE{SEPARATOR}KERNEL or DIR, or {_HOW}")
        if SEPARATOR in texts[0]:
            other = dataclasses.replace(self, planned=texts[0], dump=None)
        else:
            if not Path(texts[0]).is_dir():
                raise ValueError(
                    f"--against is FILE{SEPARATOR}KERNEL, the folder of a dump, or {_HOW}; got "
                    f"{texts[0]!r}"
                )
            other = dataclasses.replace(self, planned=None, dump=Path(texts[0]))
        return other.name, other


_CHANGES: Final = ("tile", "release", "chip")
_HOW: Final = "any of tile=N,N, release=NAME, chip=NAME"


def run_schedule(
    context: typer.Context,
    planned: Annotated[
        str | None,
        typer.Argument(metavar="[FILE::KERNEL]", help="A Python file and a kernel in it."),
    ] = None,
    upstream_dump: UpstreamDump = None,
    kernel: Annotated[
        str | None, typer.Option(metavar="KERNEL", help="Choose this kernel of the dump's.")
    ] = None,
    inputs: Inputs = None,
    shape: Shapes = None,
    tile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LINE=]N,N",
            help="Tile shape in place of all of as many entries, or of that line's; of more "
            "entries than a tensor has dimensions the leading ones count.",
        ),
    ] = None,
    release: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of {', '.join(RELEASE_NAMES)}.")
    ] = "head",
    chip: ChipName = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OTHER",
            help="Compare: tile=N,N, release=NAME, chip=NAME, FILE::KERNEL, or a dump's DIR.",
        ),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Compare with this timeline of the dump's run: of a device, or of upstream's "
            "simulator.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Draw UB and the timeline there.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.json", help="Write a trace for ui.perfetto.dev."
        ),
    ] = None,
    fail_over_ub: Annotated[
        bool, typer.Option("--fail-over-ub", help="Exit code 1 if it does not fit in UB.")
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show a kernel's tile program: lines, UB, tasks, cycles.

    Planned as upstream's compiler would, without it; nothing is computed. Cycles are those of
    upstream's simulator, not of a device. With --against or --timeline it compares two. Of a kernel
    that does not fit in UB: why, and tile shapes that fit; an error without --fail-over-ub.
    """
    if (planned is None) == (upstream_dump is None):
        raise ValueError("name either FILE::KERNEL or --upstream-dump DIR")
    if planned is not None and not any(Path(each).is_dir() for each in against or ()):
        refuse_unread(context, ("kernel",), f"beside {planned}; it is of a dump")
    if upstream_dump is not None and not any(SEPARATOR in each for each in against or ()):
        unread = ("inputs", "shape", "tile", "release", "chip")
        refuse_unread(context, unread, "of a dump, which is made")
    if against:
        refuse_unread(context, ("output",), "with --against; it is of one schedule")
    if timeline is not None:
        if upstream_dump is None:
            raise ValueError("--timeline goes with --upstream-dump DIR, the dump of its run")
        refuse_unread(context, ("against", "output", "html"), "of a comparison with a timeline")
        found = read_schedule(upstream_dump, kernel)
        compared = timeline_beside(found, upstream_dump, kernel, timeline)
        terminal.show(comparison_report(found, compared, timeline), as_json=json)
        if compared.differing:
            raise typer.Exit(_DIFFERENT)
        return
    others = [each for each in against or () if SEPARATOR in each]
    kernels = [each for each in (planned, *others) if each is not None]
    files = [file_and_name(each)[0] for each in kernels]
    given = [each for each in (inputs, upstream_dump, *files) if each is not None]
    check_apart([html, output])
    for path in (html, output):
        if path is not None:
            check_free(path, force=force, inputs=given)
    if html is not None:
        check_pages()
    asked = _Asked(
        planned=planned,
        dump=upstream_dump,
        dump_kernel=kernel,
        inputs=inputs,
        shapes=tuple(shape or ()),
        release=release,
        chip=chip,
        tiles=tuple(tile or ()),
    )
    sides = [(asked.name, asked)]
    if against:
        sides.append(asked.against(against))
    code, trace, unfit = 0, None, None
    schedules: list[Schedule] = []
    try:
        schedules += (each.schedule() for _, each in sides)
    except _UnfitError as error:
        told, notes = error.fit.report, []
        if against:
            notes.append(f"Not compared: {sides[len(schedules)][0]}.")
        if output is not None:
            notes.append(f"Not written: {printable(str(output))}, the trace of a schedule.")
        told, output = dataclasses.replace(told, notes=(*told.notes, *notes)), None
        if fail_over_ub:
            code = _OVER_UB
        else:
            unfit = UBOverflowError(error.overflow)
    else:
        if against:
            (one, _), (other, _) = sides
            first, second = schedules
            diff = ScheduleDiff(first=first, second=second, first_name=one, second_name=other)
            told = diff.report
            code = 0 if diff.is_equal else _DIFFERENT
        else:
            (schedule,) = schedules
            told = schedule_report(schedule)
            trace = None if output is None else schedule_perfetto(schedule, STANDINGS[TASKS])
        if fail_over_ub and any(x.peak_ub_bytes > chip_named(x.chip).ub_bytes for x in schedules):
            code = _OVER_UB
    with (
        output_file(html, force=force, inputs=given) as page,
        output_file(output, force=force, inputs=given) as file,
    ):
        if page is not None:
            page.write(page_html(told).encode())
        if file is not None and trace is not None:
            file.writelines(piece.encode() for piece in trace)
    report = dataclasses.replace(
        told,
        facts=(*told.facts, *plain(html=html, output=output)),
        notes=told.notes + written([html, output]),
    )
    terminal.show(report, as_json=json)
    if unfit is not None:
        raise unfit
    if code:
        raise typer.Exit(code)


@contextlib.contextmanager
def _tiles_named(
    texts: Sequence[str], kernel: Kernel, tensors: Sequence[Any], others: dict[str, Any]
) -> Iterator[None]:
    """Replace tile shapes as `--tile` names them.

    Raises:
        ValueError: no tile shape; none is set at that line or of that rank, with all calls; or one
            is named twice.
    """
    with contextlib.ExitStack() as stack:
        calls = tile_recording(kernel, tensors, others).calls if texts else ()
        named = dict[str, str]()
        # Those of a line last: they count before those of a rank.
        for text in sorted(texts, key=lambda each: "=" in each):
            line, separator, shape = text.rpartition("=")
            if separator and not line.isdecimal():
                raise ValueError(f"--tile is [LINE=]N,N, as 14=32,256; got {text!r}")
            tile = tile_named(shape)
            place = f"line {line}" if separator else plural(len(tile), "entry", "entries")
            if place in named:
                both = f"{named[place]} {text}"
                raise ValueError(f"--tile names a tile shape of {place} twice: {both}")
            named[place] = text
            found = [
                each
                for each in calls
                if (str(each.line) == line if separator else len(each.tile_shape) == len(tile))
            ]
            if not found:
                listed = "; ".join(map(str, calls)) or "none"
                raise ValueError(
                    f"--tile {text}: {kernel.signature.kernel} sets no tile shape of {place}; "
                    f"its calls: {listed}"
                )
            at = {each.place: tile for each in found} if separator else tile
            stack.enter_context(replaced_tiles(at))
        yield
