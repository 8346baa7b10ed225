"""The subjects that `verify` compares, by the names a user gives them, and their certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ascend_kernels.matrix import MATRIX, CastRule, resolve
from ascend_kernels.program import conversions
from simulator.numbers.formats import FORMATS, FloatFormat, Format
from simulator.numbers.rounding import RoundMode
from simulator.numbers.verify import BlockResult, Certificate, Subject


def pair_named(text: str) -> CastRule:
    """`fp32-fp16`.

    Raises:
        ValueError: no such pair; the text lists them.
    """
    source, _, destination = text.upper().partition("-")
    formats: list[Format | None] = [FORMATS.get(name) for name in (source, destination)]
    for (src, dst), rule in MATRIX.items():
        if [src, dst] == formats:
            return rule
    known = ", ".join(pair_name(rule) for rule in MATRIX.values())
    raise ValueError(f"no pair {text!r}; the pairs are {known}")


def pair_name(rule: CastRule) -> str:
    """`fp32-fp16`."""
    return f"{rule.src}-{rule.dst}".lower()


def subjects(
    rule: CastRule, mode: RoundMode | None, *, exhaustive: bool, variants: bool
) -> Iterator[Subject]:
    """What there is to compare of a pair.

    Args:
        rule: the pair.
        mode: one mode, or None for all that the pair has.
        exhaustive: every code of a 32-bit source.
        variants: also SaturationMode.OFF where it acts, and results saturated without infinities.
    """
    for one in (mode,) if mode is not None else rule.modes or (None,):
        for saturate in (True, False) if variants and rule.off else (True,):
            for inf_nan_mode in (True, False) if variants and _has_two_overflows(rule) else (True,):
                resolution = resolve(rule.src, rule.dst, one, saturate=saturate, strict=True)
                name = "-".join(
                    [pair_name(rule), str(one or "exact").lower()]
                    + ["off"] * (not saturate)
                    + ["saturated"] * (not inf_nan_mode)
                )
                yield Subject(
                    name=name,
                    conversions=conversions(resolution, inf_nan_mode=inf_nan_mode),
                    exhaustive=exhaustive,
                )


def _has_two_overflows(rule: CastRule) -> bool:
    return isinstance(rule.dst, FloatFormat) and rule.dst.bits == 16 and not rule.is_exact


def certificate(subject: Subject, results: dict[int, BlockResult]) -> Certificate:
    """What a comparison without differences leaves."""
    return Certificate(
        name=subject.name,
        exhaustive=subject.is_whole,
        codes=sum(result.codes for result in results.values()),
        digests=tuple(results[block].digest for block in range(subject.blocks)),
    )


def subject_of(certificate: Certificate) -> Subject:
    """The subject that a certificate speaks of.

    Raises:
        ValueError: its name is of no subject.
    """
    pair = "-".join(certificate.name.split("-")[:2])
    for subject in subjects(
        pair_named(pair), None, exhaustive=certificate.exhaustive, variants=True
    ):
        if subject.name == certificate.name:
            return subject
    raise ValueError(f"no comparison is named {certificate.name!r}")


def read_certificate(path: Path) -> Certificate:
    """A certificate from its file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged.
    """
    return Certificate.from_json(path.read_text())
