"""`pypto-cast verify`: the fast paths against the definition, with a certificate if they agree."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from ascend_kernels.matrix import MATRIX, CastControls, CastRule, resolve
from ascend_kernels.program import conversions
from pypto_cast.cli.app import ChipName, Json, refuse_unread
from pypto_cast.dtypes.names import mode_named
from pypto_cast.report import terminal
from pypto_cast.report.report import Report, Table, columns, plain
from pypto_cast.tensors.array_files import check_free, new_file, new_output
from simulator.numbers.formats import FORMATS, FloatFormat, Format
from simulator.numbers.rounding import RoundMode
from simulator.numbers.verify import (
    BLOCK_CODES,
    BlockResult,
    Certificate,
    CertificateError,
    Mismatch,
    Subject,
    VerifiedEngine,
    confirm,
    verify,
    versions,
)
from tiling.chips import DEFAULT_CHIP, chip_named
from tiling.input_files import document_bytes

_DIFFERENT = 1
_FAMILIES: Final = (DEFAULT_CHIP.isa, *(isa for isa in MATRIX if isa != DEFAULT_CHIP.isa))
"""All chip families, that of the default chip first."""


def run_verify(
    context: typer.Context,
    pair: Annotated[
        str | None, typer.Option(metavar="SRC-DST", help="Such as fp32-fp16; all if not given.")
    ] = None,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="Such as CAST_RINT; all of the pair if not given.")
    ] = "CAST_NONE",
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="All 2^32 codes of FP32 and INT32 sources.")
    ] = False,
    variants: Annotated[
        bool, typer.Option("--variants", help="Also SaturationMode.OFF and saturated overflow.")
    ] = False,
    engine: Annotated[
        VerifiedEngine,
        typer.Option("--engine", help="What is compared with the definition."),
    ] = "numpy",
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Processes; all cores if not given.")
    ] = os.cpu_count() or 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write certificates there; an interrupted run resumes. Where there is one of the "
            "same codes, the engine has to give its digests without the definition.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace certificates.")] = False,
    as_json: Json = False,
    chip: ChipName = None,
    confirmed: Annotated[
        Path | None,
        typer.Option(
            "--confirm",
            metavar="DIR",
            help="Compute the digests of the certificates there by the engine alone where its code "
            "has changed since (all with --force), and note it in them.",
        ),
    ] = None,
) -> None:
    """Compare an engine with the definition, code by code.

    Every code up to 16 bits, else the boundaries and random codes, or with --exhaustive all 2^32.
    """
    if confirmed is not None:
        reason = "beside --confirm, whose certificates say what to compute and where to write"
        refuse_unread(context, ("out", "exhaustive", "variants"), reason)
        exhaustive = variants = True
    families = _FAMILIES if chip is None else (chip_named(chip).isa,)
    if pair is not None:
        rules = [pair_named(pair, families)]
    else:
        which = families if confirmed is not None else families[:1]
        rules = [rule for family in which for rule in MATRIX[family].values()]
    one = mode_named(mode).round_mode
    chosen = [
        subject
        for rule in rules
        if one is None or one in rule.modes
        for subject in subjects(rule, one, engine, exhaustive=exhaustive, variants=variants)
    ]
    if not chosen:
        known = ", ".join(f"CAST_{m}" for rule in rules for m in rule.modes) or "none"
        raise ValueError(f"{pair or 'no pair'} has no mode {mode}; it has {known}")
    if confirmed is not None:
        _confirm(chosen, confirmed, jobs, force, as_json)
        return
    if out is not None and not out.is_dir():
        raise NotADirectoryError(f"{out} is no directory; certificates go into one")
    paths = {subject: _path(out, subject) for subject in chosen}
    is_kept = out is not None and not force
    made = [_read(path) if is_kept and path.is_file() else None for path in paths.values()]
    for subject, one_made in zip(chosen, made, strict=True):
        if out is not None and (one_made is None or one_made.exhaustive != subject.is_whole):
            check_free(paths[subject], force=force)
    certificates, mismatches = [], []
    for subject, one_made in zip(chosen, made, strict=True):
        if out is not None and one_made is not None:
            certificates.append(_confirmed(one_made, subject, paths[subject], jobs)[0])
            continue
        found = _verified(subject, jobs, out, force)
        if isinstance(found, Certificate):
            certificates.append(found)
        else:
            mismatches += [(subject.name, mismatch) for mismatch in found]
    differing = {name for name, _ in mismatches}
    rows = [
        (subject.name, subject.total_codes, "differs" if subject.name in differing else "equal")
        for subject in chosen
    ]
    _show(engine, rows, certificates, mismatches, as_json=as_json)


def pair_named(text: str, families: Sequence[str] = _FAMILIES) -> CastRule:
    """`fp32-fp16`.

    Args:
        text: names of the formats.
        families: the instructions of chips, `Chip.isa`; the first that has the pair counts.

    Raises:
        ValueError: no such pair; the text lists them.
    """
    source, _, destination = text.upper().partition("-")
    formats: list[Format | None] = [FORMATS.get(name) for name in (source, destination)]
    rules = [rule for family in families for rule in MATRIX[family].values()]
    for rule in rules:
        if [rule.src, rule.dst] == formats:
            return rule
    known = ", ".join(dict.fromkeys(map(_pair_name, rules)))
    raise ValueError(f"no pair {text!r}; the pairs are {known}")


def _pair_name(rule: CastRule) -> str:
    """`fp32-fp16`."""
    return f"{rule.src}-{rule.dst}".lower()


def subjects(
    rule: CastRule,
    mode: RoundMode | None,
    engine: VerifiedEngine = "numpy",
    *,
    exhaustive: bool,
    variants: bool,
) -> Iterator[Subject]:
    """The comparisons of a pair.

    Args:
        rule: the pair.
        mode: one mode, or None for all that the pair has.
        engine: whose fast paths are compared.
        exhaustive: every code of a 32-bit source.
        variants: also SaturationMode.OFF where it acts, and results saturated without infinities.
    """
    for one in (mode,) if mode is not None else rule.modes or (None,):
        for saturate in (True, False) if variants and rule.off else (True,):
            for inf_nan_mode in (True, False) if variants and _has_two_overflows(rule) else (True,):
                resolution = resolve(
                    rule.family, rule.src, rule.dst, one, saturate=saturate, strict=True
                )
                name = "-".join(
                    [rule.family] * (_first_with(rule) is not rule)
                    + [_pair_name(rule), str(one or "exact").lower()]
                    + ["off"] * (not saturate)
                    + ["saturated"] * (not inf_nan_mode)
                )
                yield Subject(
                    name=name,
                    conversions=conversions(resolution, CastControls(inf_nan_mode=inf_nan_mode)),
                    exhaustive=exhaustive,
                    engine=engine,
                )


def _first_with(rule: CastRule) -> CastRule:
    """The rule of its pair in the first family that has it, by whose results certificates go."""
    return pair_named(_pair_name(rule))


def _has_two_overflows(rule: CastRule) -> bool:
    return isinstance(rule.dst, FloatFormat) and rule.dst.bits == 16 and not rule.is_exact


def _confirm(chosen: list[Subject], folder: Path, jobs: int, force: bool, as_json: bool) -> None:
    """Confirm the certificates of a folder; each is replaced as soon as it is confirmed."""
    paths = {subject: path for subject in chosen if (path := _path(folder, subject)).is_file()}
    if not paths:
        raise FileNotFoundError(f"{folder} has no certificate of what is asked for")
    rows, certificates = [], []
    differs = False
    for subject, path in paths.items():
        codes = None
        try:
            made = _read(path)
            codes = made.codes
            same = replace(subject, exhaustive=made.exhaustive)
            made, result = _confirmed(made, same, path, jobs, force=force)
            certificates.append(made)
        except CertificateError as error:
            differs = True
            result = str(error)
        rows.append((subject.name, codes, result))
    _show(chosen[0].engine, rows, certificates, as_json=as_json)
    if differs:
        raise typer.Exit(_DIFFERENT)


def _read(path: Path) -> Certificate:
    try:
        return Certificate.from_json(document_bytes(path).decode())
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{path}: {error}") from error


def _confirmed(
    made: Certificate, subject: Subject, path: Path, jobs: int, *, force: bool = False
) -> tuple[Certificate, str]:
    """A certificate of the engine's present code, which replaces its file, and a word on it."""
    if made.is_current(subject.engine) and not force:
        return made, "is of this code already"
    made = confirm(made, subject, jobs=jobs)
    with new_file(path, force=True) as file:
        file.write(made.to_json().encode())
    return made, "confirmed"


def _verified(
    subject: Subject, jobs: int, out: Path | None, force: bool
) -> Certificate | list[Mismatch]:
    """Compare one subject; its certificate, or where it differs."""
    if out is None:
        return _compared(subject, jobs, None)
    with new_output(_path(out, subject), force=force, key=subject.name) as made:
        found = _compared(subject, jobs, made.with_name("state"))
        if isinstance(found, Certificate):
            made.write_bytes(found.to_json().encode())
    return found


def _compared(subject: Subject, jobs: int, state: Path | None) -> Certificate | list[Mismatch]:
    results: dict[int, BlockResult] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with terminal.progress(*columns) as shown:
        task = shown.add_task(subject.name, total=subject.blocks, rate="")
        for result in verify(subject, jobs=jobs, state=state):
            results[result.block] = result
            speed = shown.tasks[task].speed
            rate = "" if speed is None else f"{speed * BLOCK_CODES / 1e6:.0f} Mcodes/s"
            shown.update(task, advance=1, rate=rate)
            if result.mismatches:
                break
    differences = [mismatch for result in results.values() for mismatch in result.mismatches]
    return differences or certificate(subject, results)


def certificate(subject: Subject, results: dict[int, BlockResult]) -> Certificate:
    """The certificate of a comparison without differences."""
    return Certificate(
        name=subject.name,
        exhaustive=subject.is_whole,
        codes=sum(result.codes for result in results.values()),
        digests=tuple(results[block].digest for block in range(subject.blocks)),
        engine=subject.engine,
        versions=versions(subject.engine),
    )


def _path(out: Path | None, subject: Subject) -> Path:
    return (out or Path()) / f"{subject.name}.json"


def _show(
    engine: VerifiedEngine,
    rows: Sequence[tuple[str, int | None, str]],
    certificates: Sequence[Certificate],
    mismatches: Sequence[tuple[str, Mismatch]] = (),
    *,
    as_json: bool,
) -> None:
    """Print the name, the codes and the result of each comparison, and the first mismatches.

    Raises:
        typer.Exit: there are mismatches.
    """
    compared = Table(
        key="comparisons",
        columns=columns(name="comparison", codes="codes", result="result"),
        rows=rows,
        is_prose=True,
    )
    differing = Table(
        key="differences",
        columns=columns(code="code", fast="fast", definition="definition", name="comparison"),
        rows=[
            (f"{one.code:#x}", f"{one.fast:#x}", f"{one.definition:#x}", name)
            for name, one in mismatches
        ],
    )
    documents = [json.loads(one.to_json()) for one in certificates]
    report = Report(
        kind="verify",
        title="",
        facts=plain(engine=engine, certificates=documents),
        tables=(compared, differing),
    )
    terminal.show(report, as_json=as_json)
    if mismatches:
        raise typer.Exit(_DIFFERENT)
