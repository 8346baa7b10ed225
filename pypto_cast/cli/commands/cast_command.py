"""`pypto-cast cast`: an array cast, with its tile plan and a report on its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from pypto_cast.cast.cast_run import CastRun, run, without_advice
from pypto_cast.cli.app import (
    Array,
    ChipName,
    Facts,
    Force,
    Fp8Nan,
    GlobalSaturation,
    Held,
    InfNan,
    Json,
    Mode,
    Output,
    Readings,
    Satmode,
    Tile,
    To,
    readings_named,
)
from pypto_cast.dtypes.data_types import SaturationMode
from pypto_cast.dtypes.names import dtype_named, mode_named, satmode_named
from pypto_cast.options.context import MeasuredDevice, options
from pypto_cast.report import terminal
from pypto_cast.report.report import Fact, Report, Words, plain
from pypto_cast.report.text_format import printable, tile_named, written
from pypto_cast.tensors.array_files import as_saved, output_file, read_tensor
from pypto_cast.tensors.tensor import Tensor


def run_cast(
    source: Array,
    to: To,
    mode: Mode = "CAST_NONE",
    satmode: Satmode = "ON",
    tile: Tile = None,
    chip: ChipName = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Treat replaced modes and unaligned tiles as errors.")
    ] = False,
    inf_nan: InfNan = True,
    fp8_nan: Fp8Nan = False,
    global_saturation: GlobalSaturation = True,
    reading: Readings = None,
    from_: Held = None,
    facts: Facts = None,
    output: Output = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Cast an array; report on rounding, overflow and NaN."""
    dst = dtype_named(to)
    round_mode = mode_named(mode)
    sat = satmode_named(satmode)
    tile_shape = tile_named(tile) if tile is not None else ()
    with (
        options(
            vec_tile_shapes=tile_shape,
            strict=strict,
            inf_nan_mode=inf_nan,
            fp8_nan=fp8_nan,
            global_saturation=global_saturation,
            readings=readings_named(reading),
            chip=chip,
            facts=facts,
        ) as context,
        without_advice(),
        output_file(output, force=force, inputs=[source]) as out,
    ):
        tensor = read_tensor(source, None if from_ is None else dtype_named(from_))
        done = run(tensor, dst, round_mode, sat)
        if out is not None:
            np.save(out, as_saved(done.result.numpy()), allow_pickle=False)
    terminal.show(
        _report(source, output, tensor, sat, done, context.facts, is_tile_chosen=tile is None),
        as_json=json,
    )


def _report(
    source: Path,
    output: Path | None,
    tensor: Tensor,
    satmode: SaturationMode,
    done: CastRun,
    facts: MeasuredDevice | None,
    *,
    is_tile_chosen: bool,
) -> Report:
    """A cast: its title, the tile plan, the report on its numbers."""
    src, dst = tensor.dtype, done.result.dtype
    title = f"{printable(str(source))}: {src.format} -> {dst.format}"
    if done.plan is None:
        unplanned = Words(value=None, text=f"none: it is {dst.format} already")
        plan = Fact(key="plan", value=unplanned, label="plan")
    else:
        title = ", ".join([title, *done.plan.modes])
        plan = done.plan.fact(is_tile_chosen=is_tile_chosen)
    casts = () if done.plan is None else (done.plan.resolution,)
    standing = None if facts is None else facts.standing(casts)
    dtype = done.result.numpy().dtype
    # .npy has no name for a dtype that numpy lacks.
    is_named = as_saved(done.result.numpy()).dtype == dtype
    back = "" if is_named else f"; to read it: numpy.load(...).view(ml_dtypes.{dtype.name})"
    return Report(
        kind="cast",
        title=title,
        facts=(
            *plain(input=source, output=output),
            *plain(src=src.name, dst=dst.name, satmode=satmode.name, shape=tensor.shape),
            plan,
            *done.report.facts(),
            Fact(key="standing", value=standing, label="standing"),
        ),
        notes=tuple(line + back for line in written([output])),
    )
