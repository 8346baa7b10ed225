"""Proving an engine equal to the definition, code by code, and writing it down.

Processes share the blocks of codes, and an interrupted run goes on where it stopped. A block that
agrees leaves the digest of its results; a certificate holds all digests. When the code changes, or
for another engine, the engine alone confirms it: it has to give every digest.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import platform
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

import ml_dtypes
import numpy as np

from simulator.numbers import elementwise, fast
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import Codes, Format
from simulator.numbers.native import library
from simulator.numbers.native.library import NativeUnavailableError
from simulator.numbers.rounding import boundary_codes

VerifiedEngine = Literal["numpy", "native"]
BLOCK_CODES: Final = 1 << 24
_SHORT_CODES: Final = 1 << 17
"""So few that no result of them bypasses the cache."""
_SHOWN_MISMATCHES: Final = 10
_FOLDER_OF_OTHERS: Final[dict[VerifiedEngine, str]] = {"numpy": "native", "native": "fast"}
"""The folder of simulator/numbers that an engine does without."""
_RANDOM_CODES: Final = 1 << 20
_SEED: Final = 20260401


class CertificateError(ValueError):
    """A certificate is damaged, or speaks of other results than the code gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A chain of conversions and the source codes on which it is compared.

    Attributes:
        name: identifies the chain, and names its certificate: pair, mode, saturation, overflow.
        conversions: the chain whose fast path is checked.
        exhaustive: every code, as always of up to 16 bits; else boundaries and seeded random ones.
        engine: whose fast path it is.
    """

    name: str
    conversions: tuple[Conversion, ...]
    exhaustive: bool
    engine: VerifiedEngine = "numpy"

    @property
    def source(self) -> Format:
        return self.conversions[0].src

    @property
    def total_codes(self) -> int:
        if self.is_whole:
            return 1 << self.source.bits
        return int(_sampled_codes(self.source).size)

    @property
    def blocks(self) -> int:
        return -(-self.total_codes // BLOCK_CODES)

    def codes(self, block: int) -> Codes:
        """The codes of a block."""
        if not self.is_whole:
            return _sampled_codes(self.source)
        start = block * BLOCK_CODES
        stop = min(start + BLOCK_CODES, self.total_codes)
        dtype = self.source.code_dtype
        unsigned = np.dtype(f"u{dtype.itemsize}")
        codes: Codes = (np.arange(stop - start, dtype=unsigned) + unsigned.type(start)).view(dtype)
        return codes

    @property
    def is_whole(self) -> bool:
        """Every code of the source is compared."""
        return self.source.bits <= 16 or (self.exhaustive and self.source.bits <= 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A code on which the two ways differ."""

    code: int
    fast: int
    definition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockResult:
    """The digest of a block's results, and the first codes on which they differ."""

    block: int
    codes: int
    digest: str
    mismatches: tuple[Mismatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A comparison that found no difference.

    Attributes:
        name: the subject.
        exhaustive: whether every code of the source was compared.
        codes: how many were.
        digests: SHA-256 of the destination codes of each block, the first 16 hex digits.
        engine: what was compared with the definition.
        versions: what that ran on, and the digest of the engine's code at that time.
        confirmed: the same, by engine, of its latest run alone that gave every digest again.
    """

    name: str
    exhaustive: bool
    codes: int
    digests: tuple[str, ...]
    engine: VerifiedEngine = "numpy"
    versions: dict[str, str] = field(default_factory=lambda: versions("numpy"))
    confirmed: dict[VerifiedEngine, dict[str, str]] = field(default_factory=dict)

    @property
    def engines(self) -> frozenset[VerifiedEngine]:
        """The engines of which it says that they give the definition's results."""
        return frozenset({self.engine, *self.confirmed})

    def is_current(self, engine: VerifiedEngine) -> bool:
        """Made or confirmed on the code of an engine as it is now."""
        compared = self.versions if engine == self.engine else {}
        return self.confirmed.get(engine, compared).get("simulator") == engine_digest(engine)

    @property
    def checksum(self) -> str:
        """SHA-256 over the digests of all blocks."""
        return hashlib.sha256("".join(self.digests).encode()).hexdigest()

    def to_json(self) -> str:
        src, dst, mode = self.name.split("-")[:3]
        named = {"pair": f"{src}-{dst}", "mode": mode, "checksum": self.checksum}
        return json.dumps({**named, **asdict(self)}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Certificate:
        """Read a certificate back.

        Raises:
            CertificateError: it is none, or the checksum does not fit the digests.
        """
        try:
            fields = json.loads(text)
            checksum = fields.pop("checksum")
            for derived in ("pair", "mode"):
                fields.pop(derived)
            certificate = Certificate(**{**fields, "digests": tuple(fields["digests"])})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CertificateError(f"no certificate: {error!r}") from error
        if certificate.checksum != checksum:
            raise CertificateError(f"certificate {certificate.name}: its checksum does not fit")
        return certificate


def digest(subject: Subject, block: int) -> str:
    """The digest of a block's results by the fast path alone; none if short arrays give others."""
    results = _fast_results(subject, subject.codes(block))
    return _digest(results[0]) if all(np.array_equal(results[0], r) for r in results) else ""


def confirm(certificate: Certificate, subject: Subject, *, jobs: int) -> Certificate:
    """Computes every digest of a certificate anew by the fast path alone, in `jobs` processes.

    Returns:
        The certificate with today's versions as `confirmed` of the engine, all else as it was.
        Instructions that it was confirmed with before, on the same code, stay beside the new ones.

    Raises:
        CertificateError: the certificate is of another subject, or blocks give other results.
        ValueError: the engine cannot run here, or a conversion has no fast path in it.
    """
    _check_fast(subject)
    found, wanted = (
        f"{name}, {codes} codes in {blocks} blocks"
        for name, codes, blocks in (
            (certificate.name, certificate.codes, len(certificate.digests)),
            (subject.name, subject.total_codes, subject.blocks),
        )
    )
    if found != wanted:
        raise CertificateError(f"the certificate is of {found}; the comparison is of {wanted}")
    blocks = range(subject.blocks)
    if jobs == 1 or len(blocks) == 1:
        digests = [digest(subject, block) for block in blocks]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            digests = list(pool.map(functools.partial(digest, subject), blocks))
    different = [block for block in blocks if digests[block] != certificate.digests[block]]
    if different:
        raise CertificateError(
            f"{certificate.name}: {len(different)} of {len(blocks)} blocks give other results than "
            f"its certificate says, block {different[0]} is the first"
        )
    ran_on, before = versions(subject.engine), certificate.confirmed.get(subject.engine, {})
    if "instructions" in ran_on and before.get("simulator") == ran_on["simulator"]:
        both = {*before["instructions"].split(), ran_on["instructions"]}
        ran_on["instructions"] = " ".join(sorted(both))
    return replace(certificate, confirmed={**certificate.confirmed, subject.engine: ran_on})


def compare(subject: Subject, block: int) -> BlockResult:
    """Convert a block both ways; raises ValueError as `confirm` does."""
    _check_fast(subject)
    codes = subject.codes(block)
    results = _fast_results(subject, codes)
    definition = _converted(subject, codes, exact=True)
    different = [
        (i, found)
        for found in results
        for i in np.flatnonzero(found != definition)[:_SHOWN_MISMATCHES]
    ]
    return BlockResult(
        block=block,
        codes=int(codes.size),
        digest=_digest(results[0]),
        mismatches=tuple(
            Mismatch(code=int(codes[i]), fast=int(found[i]), definition=int(definition[i]))
            for i, found in different[:_SHOWN_MISMATCHES]
        ),
    )


def verify(subject: Subject, *, jobs: int, state: Path | None = None) -> Iterator[BlockResult]:
    """Compare all blocks of a subject in `jobs` processes and yield them as they are done.

    `state` is a file of blocks that agreed, which the next run of this subject skips.
    """
    done = _remembered(subject, state)
    yield from done.values()
    left = [block for block in range(subject.blocks) if block not in done]
    for result in _compared(subject, left, jobs):
        if not result.mismatches:
            done[result.block] = result
            _remember(subject, done, state)
        yield result


def _compared(subject: Subject, blocks: list[int], jobs: int) -> Iterator[BlockResult]:
    if jobs == 1 or len(blocks) < 2:
        yield from (compare(subject, block) for block in blocks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(compare, subject, block) for block in blocks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _check_fast(subject: Subject) -> None:
    if subject.engine == "native":
        try:
            is_fast = library.native().has_loops(subject.conversions)
        except NativeUnavailableError as error:
            raise ValueError(f"{subject.name}: the native engine cannot run: {error}") from error
    else:
        is_fast = all(fast.loop(conversion) is not None for conversion in subject.conversions)
    if not is_fast:
        raise ValueError(f"{subject.name} has no fast path to hold against the definition")


def _fast_results(subject: Subject, codes: Codes) -> list[Codes]:
    """The results of one array, and those of short ones, which have other loops in native."""
    results = [_converted(subject, codes, exact=False)]
    if subject.engine == "native" and codes.size > _SHORT_CODES:
        short = [
            _converted(subject, codes[start : start + _SHORT_CODES], exact=False)
            for start in range(0, codes.size, _SHORT_CODES)
        ]
        results.append(np.concatenate(short))
    return results


def _converted(subject: Subject, codes: Codes, *, exact: bool) -> Codes:
    out = np.empty(codes.shape, subject.conversions[-1].dst.code_dtype)
    elementwise.run(subject.conversions, codes, out, exact=exact, engine=subject.engine)
    return out


def _digest(codes: Codes) -> str:
    little = codes.astype(codes.dtype.newbyteorder("<"), copy=False)
    return hashlib.sha256(little.tobytes()).hexdigest()[:16]


def _sampled_codes(fmt: Format) -> Codes:
    random = np.random.default_rng(_SEED).integers(
        0, (1 << fmt.bits) - 1, _RANDOM_CODES, dtype=np.uint64, endpoint=True
    )
    return np.concatenate([boundary_codes(fmt), random.astype(fmt.code_dtype)])


def versions(engine: VerifiedEngine) -> dict[str, str]:
    """The software that a comparison runs on; of the native engine also its instructions."""
    instructions = {"instructions": library.native().level} if engine == "native" else {}
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "machine": platform.machine(),
        "simulator": engine_digest(engine),
        **instructions,
    }


@functools.cache
def engine_digest(engine: VerifiedEngine) -> str:
    """The digest of simulator/numbers without the folder of the other engine."""
    return sources_digest(Path(__file__).parent, _FOLDER_OF_OTHERS[engine])


def sources_digest(folder: Path, left_out: str) -> str:
    """Digest what the code in a folder does, but for one folder in it: 16 hex digits of a SHA-256.

    Of Python the syntax trees count, without docstrings, comments and layout; of C++ the text.
    """
    found = hashlib.sha256()
    for source in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        if source.relative_to(folder).parts[0] == left_out:
            continue
        if source.suffix == ".py":
            content = _tree_text(ast.parse(source.read_bytes())).encode()
        elif source.suffix in (".h", ".cpp"):
            content = source.read_bytes()
        else:
            continue
        found.update(source.relative_to(folder).as_posix().encode() + b"\0" + content + b"\0")
    return found.hexdigest()[:16]


def _tree_text(node: object) -> str:
    """A syntax tree as text, the same in every version of Python: empty fields, new ones, go."""
    if isinstance(node, list):
        return f"[{','.join(map(_tree_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if _has_docstring(node):
        fields["body"] = fields["body"][1:]
    kept = (f"{k}={_tree_text(v)}" for k, v in fields.items() if v not in (None, []))
    return f"{type(node).__name__}({','.join(kept)})"


def _has_docstring(node: ast.AST) -> bool:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None


def _state_key(subject: Subject) -> dict[str, object]:
    return {
        "name": subject.name,
        "engine": subject.engine,
        "exhaustive": subject.exhaustive,
        "versions": versions(subject.engine),
    }


def _remembered(subject: Subject, state: Path | None) -> dict[int, BlockResult]:
    if state is None or not state.exists():
        return {}
    try:
        stored = json.loads(state.read_text())
        if stored["key"] != _state_key(subject):
            return {}
        return {
            block: BlockResult(block=block, codes=codes, digest=text, mismatches=())
            for block, codes, text in stored["blocks"]
        }
    except (ValueError, KeyError, TypeError):  # damaged: nothing is remembered
        return {}


def _remember(subject: Subject, done: dict[int, BlockResult], state: Path | None) -> None:
    if state is None:
        return
    blocks = [[result.block, result.codes, result.digest] for result in done.values()]
    temporary = state.with_name(f"{state.name}.{os.getpid()}")
    temporary.write_text(json.dumps({"key": _state_key(subject), "blocks": blocks}))
    os.replace(temporary, state)
