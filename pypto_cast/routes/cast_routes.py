"""Routes in the user's words: which chain of casts gives the bits of one rounding, and its code.

routes -> routing.chain_ranking.lookup -> Route.cast, Route.kernel, Route.program
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ascend_kernels.matrix import CastRule, ScalarStep, default_mode
from ascend_kernels.program import TileProgram
from ascend_kernels.routing.chain_check import (
    DifferingCode,
    RouteError,
    Verdict,
    all_values,
    question_between,
)
from ascend_kernels.routing.chain_ranking import check_ends, lookup
from ascend_kernels.routing.chains import MOST_STEPS, Chain, route_estimate, route_program
from ascend_kernels.routing.vector_rows import WorkStep, storage_format
from pypto_cast.cast.api import cast
from pypto_cast.cast.cast_plan import known_formats
from pypto_cast.dtypes.data_types import (
    DTYPE_OF,
    CastMode,
    DataType,
    SaturationMode,
    check_choice,
    check_dtype,
)
from pypto_cast.options.context import current
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.report import Column, Report, Table, Words, columns, plain
from pypto_cast.report.text_format import hex_code, plural
from pypto_cast.tensors.arrays import from_numpy
from pypto_cast.tensors.tensor import Tensor
from simulator.machine.execute import execute
from simulator.numbers.convert import canonical_bools, codes_of, values_of
from simulator.numbers.formats import Format
from simulator.numbers.literals import number_of, short_text
from simulator.numbers.rounding import RoundMode
from tiling.estimate import CastEstimate

__all__ = ["Route", "RouteError", "RouteStep", "Routes", "Verdict", "routes"]

Values = tuple[float | Fraction, float | Fraction]
"""The least and the largest value that is asked about."""
_CAST_TEXT: Final = "pypto.cast({x}, pypto.{dtype}, pypto.CastMode.{mode}, pypto.SaturationMode.ON)"
_TRUTH_TEXT: Final = "pypto.logical_not(pypto.logical_not({x}))"
_STEP_TEXTS: Final = {
    **dict.fromkeys((f"{src} -> BOOL" for src in ("FP32", "FP16", "BF16", "INT32")), _TRUTH_TEXT),
    "BOOL -> FP16": "pypto.where({x}, pypto.Element(pypto.{dtype}, 1.0), "
    "pypto.Element(pypto.{dtype}, 0.0))",
    "FP32 -> FP16": "pypto.cast(pypto.mul({x}, 2.0**-24), pypto.{dtype}, pypto.CastMode.{mode}) "
    "* 4096.0 * 4096.0",
}
"""pypto's expressions for steps that are no casts, by their rows."""
_TILE: Final = (16, 512)
"""Tile shape of the kernels that are written: it fits UB for every pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteStep:
    """One step of a route.

    Attributes:
        dtype: the destination dtype.
        mode: CAST_NONE where the pair has no modes.
        is_cast: it is one Cast instruction; else vector instructions, with casts among them.
    """

    dtype: DataType
    mode: CastMode
    is_cast: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A chain of native casts from one dtype to another, with its verdict.

    Attributes:
        src: the dtype it begins with.
        dst: the dtype it ends with.
        mode: of the single rounding that it is held against.
        steps: the casts in order, and what is no cast.
        verdict: exact, and how that is known, or where it differs.
        cycles: estimated for 1048576 elements in tiles of 8192 on an Ascend910B3, or the 950 whose
            casts they are.
        chain: the same steps as rows of the matrix, or of vector instructions.
    """

    src: DataType
    dst: DataType
    mode: CastMode
    steps: tuple[RouteStep, ...]
    verdict: Verdict
    cycles: float
    chain: Chain

    @property
    def exact_range(self) -> str | None:
        """The widest range of values without a difference in words; None if there is none."""
        ends = self.verdict.exact_range
        if ends is None or self.src.format is None:
            return None
        return f"[{', '.join(short_text(str(number_of(c, self.src.format))) for c in ends)}]"

    def cast(self, input: Tensor) -> Tensor:
        """Cast a tensor step by step, as `pypto.cast` does under the options of this context.

        The verdict is about `options(inf_nan_mode=True)`, the default. A route that is not made of
        casts alone is run as `program`, with threads as the context says.

        Args:
            input: of dtype `src`; not modified.

        Returns:
            A tensor of dtype `dst`.

        Raises:
            TypeError: no Tensor, or one of another dtype.
            ShapeError, TileShapeError: as `pypto.cast`.

        Warns:
            As `pypto.cast`.
        """
        if not isinstance(input, Tensor) or input.dtype is not self.src:
            found = input.dtype if isinstance(input, Tensor) else type(input).__name__
            raise TypeError(f"this route takes a pypto Tensor of {self.src}, not {found}")
        if not self.chain.is_native:
            return self._run(input)
        result = input
        for step in self.steps:
            result = cast(result, step.dtype, step.mode, SaturationMode.ON)
        return result

    def _run(self, input: Tensor) -> Tensor:
        """Run the program over a tensor."""
        src, dst = self.chain.src, self.chain.dst
        values = values_of(
            codes_of(canonical_bools(input.numpy()), src), storage_format(src, self.chain.family)
        )
        codes = execute(self.program(values.shape), values, threads=current().threads)
        return from_numpy(values_of(codes, dst).reshape(values.shape), input.name)

    @property
    def has_kernel(self) -> bool:
        """pypto's operations can do all steps."""
        return not self._beyond_pypto()

    def _beyond_pypto(self) -> list[str]:
        pairs = zip(self.steps, self.chain.casts, strict=True)
        rows = [str(cast.rule) for step, cast in pairs if not step.is_cast]
        return [row for row in rows if row not in _STEP_TEXTS]

    @property
    def instructions(self) -> tuple[str, ...]:
        """The vector instructions on each element in order, such as "Maxs INT32 0"."""
        return tuple(map(_instruction, self.chain.work))

    def kernel(self) -> str:
        """The route as the text of a kernel of two-dimensional tensors, to be pasted.

        Raises:
            RouteError: a step that no operation of pypto does; `has_kernel` tells before.
        """
        beyond = self._beyond_pypto()
        if beyond:
            raise RouteError(
                f"{self.chain} has no kernel: pypto has no operation for {', '.join(beyond)}; its "
                f"program runs {', '.join(self.instructions)}"
            )
        name = f"{_word(self.src)}_to_{_word(self.dst)}_{self.mode.name[5:].lower()}"
        lines = [
            "import pypto_cast as pypto",
            "",
            "",
            "@pypto.frontend.jit",
            f"def {name}(",
            f"    x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.{self.src}],",
            f"    out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.{self.dst}],",
            "):",
            f'    """{self}."""',
            f"    pypto.set_vec_tile_shapes{_TILE}",
        ]
        x = "x"
        for number, (step, cast_of) in enumerate(zip(self.steps, self.chain.casts, strict=True), 1):
            target = "out[:]" if number == len(self.steps) else _word(step.dtype)
            text = _CAST_TEXT if step.is_cast else _STEP_TEXTS[str(cast_of.rule)]
            made = text.format(x=x, dtype=step.dtype, mode=step.mode.name)
            lines.append(f"    {target} = {made}")
            x = target
        return "\n".join(lines) + "\n"

    def program(self, shape: Sequence[int], tile_shape: Sequence[int] | None = None) -> TileProgram:
        """One tile program that takes all steps while a tile lies in UB.

        The machine runs it (`simulator.machine.execute.execute`) at both fidelities, the compiled
        kernel (`ascend_kernels.twin.execute`) with the same bits by the same instructions.

        Args:
            shape: of the tensor, 1 to 4 dimensions.
            tile_shape: at least as many entries; None: the planner chooses.

        Raises:
            ShapeError: the tensor is no shape for a cast.
            TileShapeError: the tile does not fit.
        """
        tile = None if tile_shape is None else tuple(tile_shape)
        context = current()
        return route_program(self.chain, tuple(shape), tile, context.chip, strict=context.strict)

    def estimate(
        self, shape: Sequence[int], tile_shape: Sequence[int] | None = None
    ) -> CastEstimate:
        """The estimated cycles of `program` under the default cost set; it raises as that does."""
        return route_estimate(self.program(shape, tile_shape))

    @property
    def differences(self) -> str:
        """The first codes whose result differs, in words."""
        return "; ".join(map(self.difference, self.verdict.first))

    def difference(self, one: DifferingCode) -> str:
        """A code whose result differs, in words."""
        src, dst = self.chain.src, self.chain.dst
        return (
            f"{hex_code(one.code, src)} = {short_text(str(number_of(one.code, src)))} gives "
            f"{short_text(str(number_of(one.found, dst)))}, not "
            f"{short_text(str(number_of(one.wanted, dst)))}"
        )

    def cells(self, shared: Sequence[str]) -> tuple[object, ...]:
        """The row of a table of routes; numbers are exact, as decimal text.

        Args:
            shared: attributes of the verdict that are cells as they are.
        """
        verdict, src, dst = self.verdict, self.chain.src, self.chain.dst
        differs = bool(verdict.differing)
        exact = verdict.exact_range and [str(number_of(code, src)) for code in verdict.exact_range]
        error = verdict.largest_error
        return (
            str(self.chain),
            Words(value=verdict.standing.name, text=str(verdict)),
            Words(value=error, text=f"{error:,}" if differs else ""),
            Words(value=exact, text=(self.exact_range or "") if differs else ""),
            self.cycles,
            [
                {"dtype": step.dtype.name, "mode": step.mode.name, "is_cast": step.is_cast}
                for step in self.steps
            ],
            list(self.instructions),
            *(getattr(verdict, name) for name in shared),
            [
                {
                    "code": hex_code(one.code, src),
                    "value": str(number_of(one.code, src)),
                    "found": str(number_of(one.found, dst)),
                    "wanted": str(number_of(one.wanted, dst)),
                }
                for one in verdict.first
            ],
            list(verdict.rests_on),
            self.kernel() if self.has_kernel else None,
        )

    def __str__(self) -> str:
        return f"{self.chain}: {self.verdict}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """The routes from one dtype to another, the best first.

    Attributes:
        src: the dtype they begin with.
        dst: the dtype they end with.
        mode: of the single rounding that they are held against.
        steps: of a route, at most.
        values: the range that was asked about; None: every value.
        all: the routes; none where no chain of so many steps leads from `src` to `dst`.
    """

    src: DataType
    dst: DataType
    mode: CastMode
    steps: int
    values: Values | None
    all: tuple[Route, ...]

    @property
    def best(self) -> Route:
        """The first.

        Raises:
            RouteError: there is none.
        """
        if not self.all:
            raise RouteError(
                f"no chain of {plural(self.steps, 'step')} leads from {self.src} to {self.dst}"
                f"{'; more steps may' if self.steps < MOST_STEPS else ''}"
            )
        return self.all[0]

    @property
    def exact(self) -> tuple[Route, ...]:
        """Those that are exact."""
        return tuple(route for route in self.all if route.verdict.is_exact)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, index: int) -> Route:
        return self.all[index]

    def __iter__(self) -> Iterator[Route]:
        return iter(self.all)

    def __str__(self) -> str:
        heading = f"{self.src} -> {self.dst} {self.mode.name}"
        if not self.all:
            return f"{heading}: no chain of {plural(self.steps, 'step')}"
        return "\n".join([heading, *(f"  {route}" for route in self.all)])

    @property
    def report(self) -> Report:
        """The routes, the differences of those that have some, the code of the best."""
        notes = []
        if self.all:
            best = self.best
            if not best.chain.is_native:
                notes.append(f"Instructions of the best: {', '.join(best.instructions)}.")
            if not best.has_kernel:
                notes.append("pypto has no operations for it; Route.program has its instructions.")
            notes += [f"The best rests on a choice: {text}." for text in best.verdict.rests_on]
            notes += [f"{one.chain}: {one.differences}" for one in self if one.verdict.differing]
            notes += ["", best.kernel().rstrip()] if best.has_kernel else []
        values = None if self.values is None else [str(bound) for bound in self.values]
        return Report(
            kind="route",
            title=f"{self.src} -> {self.dst} {self.mode.name}",
            facts=plain(
                src=self.src.name,
                dst=self.dst.name,
                mode=self.mode.name,
                steps=self.steps,
                values=values,
            ),
            tables=(self._table,),
            notes=tuple(notes[1:] if notes[:1] == [""] else notes),
        )

    @property
    def _table(self) -> Table:
        shared = dict.fromkeys(("basis", "codes", "differing", "is_least"))
        return Table(
            key="routes",
            caption=f"{self.src} -> {self.dst} {self.mode.name}: {plural(len(self), 'route')}",
            columns=(
                Column(heading="route"),
                Column(key="verdict", heading="verdict"),
                Column(key="largest_error", heading="largest error", is_minor=True),
                Column(key="exact_range", heading="exact on", is_minor=True),
                Column(key="cycles", heading="cycles", spec=",.0f", is_minor=True),
                *columns(steps=None, instructions=None, **shared),
                *columns(first=None, rests_on=None, kernel=None),
            ),
            rows=[route.cells(tuple(shared)) for route in self.all],
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report)


def routes(
    src: DataType,
    dst: DataType,
    mode: CastMode | None = None,
    *,
    values: Values | None = None,
    steps: int = 3,
    exhaustive: bool = False,
) -> Routes:
    """Find the chains of native casts from one dtype to another, and judge each.

    Where casts alone are not exact, a cast scaled by powers of two is among the steps. From and to
    DT_UINT16, DT_UINT32, DT_UINT64 and DT_BOOL clamps and shifts are: `RouteStep.is_cast` is False
    then. To DT_BOOL is "not zero", so NaN is true; all modes are one.

    Each way over dtypes is listed once, with the modes that differ from one rounding on the fewest
    codes. That rounding is the definition's, in the mode asked for: integers are clamped, FP16 and
    BF16 overflow as IEEE 754 says, NaN becomes 0 in integers and the one NaN in floats. Exact
    routes come first, then those with the fewest differing codes, then the fewest cycles. For all
    values and three steps the answer is that of the committed table, which has at most four routes;
    else it is computed: milliseconds to seconds, more where a 32-bit source has 32-bit results.

    Args:
        src: a dtype that the chip of this context casts from; of A2/A3 unsigned integers and
            DT_BOOL included.
        dst: one that it casts to, likewise; `src` itself only if that is DT_FP32 (to
            integral values).
        mode: of the single rounding. None: CAST_ROUND to HF8, which has no CAST_RINT, else
            CAST_RINT. CAST_NONE: as None, but CAST_TRUNC from float to integer, as of `cast`.
        values: the least and the largest value that matter; NaN is no question then. None: all.
        steps: of a route at most, 1 to 4.
        exhaustive: compute anew, and show that the best route is exact on every code of a source
            of 32 bits, some ten seconds.

    Raises:
        TypeError: an argument of the wrong type.
        UnsupportedCastError: a dtype without a number format here.
        RouteError: dtypes that no step leads from or to, equal dtypes, steps out of range,
            values that are upside down, no numbers, or hold no value of `src`.
    """
    check_dtype(src)
    check_dtype(dst)
    if mode is not None:
        check_choice("mode", mode, CastMode)
    src_format, dst_format = known_formats(src, dst)
    family, readings = current().chip.isa, current().readings
    check_ends(src_format, dst_format, steps, family)
    question = all_values(src_format, dst_format, family, readings)
    if values is not None:
        question = question_between(src_format, dst_format, values, family, readings)
    asked = asked_mode(src_format, dst_format, mode)
    found = lookup(question, asked, steps, exhaustive=exhaustive)
    return Routes(
        src=src,
        dst=dst,
        mode=CastMode[f"CAST_{asked}"],
        steps=steps,
        values=values,
        all=tuple(route_of(one.chain, asked, one.verdict, one.cycles) for one in found),
    )


def asked_mode(src: Format, dst: Format, mode: CastMode | None) -> RoundMode:
    """The mode of the single rounding: None takes that of the destination alone, see `routes`."""
    if mode is None:
        return default_mode(None, dst)
    return mode.round_mode or default_mode(src, dst)


def route_of(chain: Chain, mode: RoundMode, verdict: Verdict, cycles: float) -> Route:
    """A judged chain in the user's words."""
    return Route(
        src=DTYPE_OF[chain.src],
        dst=DTYPE_OF[chain.dst],
        mode=CastMode[f"CAST_{mode}"],
        steps=_steps(chain),
        verdict=verdict,
        cycles=cycles,
        chain=chain,
    )


def _steps(chain: Chain) -> tuple[RouteStep, ...]:
    return tuple(
        RouteStep(
            dtype=DTYPE_OF[cast.rule.dst],
            mode=CastMode[f"CAST_{cast.mode or 'NONE'}"],
            is_cast=isinstance(cast.rule, CastRule),
        )
        for cast in chain.casts
    )


def _instruction(step: WorkStep) -> str:
    if isinstance(step, ScalarStep):
        return f"{step.op.value} {step.format} {step.scalar:.17g}"
    mode = f" CAST_{step.mode}" if step.mode else ""
    return f"Cast {step.src} -> {step.dst}{mode}{' to low bits' if step.truncates else ''}"


def _word(dtype: DataType) -> str:
    return dtype.name.removeprefix("DT_").lower()
