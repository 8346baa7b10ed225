"""The table of pypto's operations: one row each, which decorates the operation's function.

    @OperationRow(dtypes=everywhere(*FLOATS), parts=("mul", "exp", "add", "div"), is_method=True)
    def sigmoid(input: Tensor) -> Tensor: ...

The docstring is the text of its page. The bits of a primitive, with what is known of them, are in
the row of the same name of `simulator.arithmetic.OPERATIONS`. Source: upstream pypto,
framework/src/interface/operation/vector; paths below are under framework/src/interface/operation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, ParamSpec, TypeVar

from pypto_cast.call_sites import caller
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.error import name_operation
from pypto_cast.options.releases import RELEASES, Dtypes, ReleaseName
from pypto_cast.recording import tally
from pypto_cast.recording.recording import Recording, current, record_steering, replayable_operation
from pypto_cast.recording.steps import INTERCEPTOR, OperationStep, form_text, intercepted
from simulator.arithmetic import OPERATIONS, Fidelity, Operation
from simulator.arithmetic.trust import Assumption
from simulator.numbers.formats import Format
from tiling.chips import A2_A3, ASCEND_950, Standing
from tiling.grid import Shape

_Function = TypeVar("_Function", bound=Callable[..., object])
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

FLOATS: Final = (DataType.DT_FP32, DataType.DT_FP16, DataType.DT_BF16)
NUMBERS: Final = (*FLOATS, DataType.DT_INT32, DataType.DT_INT16)
INTEGERS: Final = (
    *(DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32),
    *(DataType.DT_UINT8, DataType.DT_UINT16, DataType.DT_UINT32),
)
COPIED: Final = (*FLOATS, *INTEGERS)

ByFamily = Mapping[str, Dtypes]
"""Dtypes by the family of a chip's instructions, `Chip.isa`."""
ByRelease = Mapping[ReleaseName, Dtypes]


def everywhere(*dtypes: DataType, ascend_950: Dtypes = ()) -> ByFamily:
    """Dtypes on every chip, and those that the 950 takes besides."""
    return {A2_A3: dtypes, ASCEND_950: (*dtypes, *ascend_950)}


def on_950(*dtypes: DataType) -> ByFamily:
    """Dtypes on the 950 alone."""
    return {ASCEND_950: dtypes}


BYTES: Final = (DataType.DT_INT8, DataType.DT_UINT8)
ADDED: Final = everywhere(*NUMBERS, ascend_950=BYTES)
"""Numbers, on the 950 those of 8 bits too."""
COMPARED: Final = everywhere(*NUMBERS, ascend_950=(*BYTES, DataType.DT_UINT16, DataType.DT_UINT32))
"""Operands of the greater and the lesser: on the 950 unsigned ones too."""

_BF16: Final = (DataType.DT_BF16,)
BF16_IN_FP32: Final[ByRelease] = {"0.2.0": _BF16, "head": _BF16}
"""AutoCast's list for BF16: opcode.h:632-649 in 0.2.0, 897-995 in head."""
SUMS_IN_FP32: Final[ByRelease] = {"0.2.0": _BF16, "head": (*_BF16, DataType.DT_FP16)}
"""The same with head's list for FP16."""

BF16_ON_950: Final[ByFamily] = {ASCEND_950: _BF16}
"""BF16 that AutoCast leaves as it is: opcode.h:997-1037 in head, UNSUPPORT_BF16_ARCH35_OPS."""

Scratch = Callable[[Shape, Format], int]
"""Bytes by the extents of a tile and the format that the instruction runs in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """One operation of pypto's; a decorator, which enters it in the table under its name.

    Attributes:
        name, function: upstream's name, and the function of that name.
        dtypes: by family, the dtypes that upstream's newest revision takes; none: any.
        index_dtypes: of the indices that it takes.
        added: dtypes that it adds or multiplies, if a call asks for that.
        run_in_fp32, cast_to_fp32, takes, refuses, least_dims: by release, as `Release` has them by
            operation.
        rounds_on: by family, dtypes that AutoCast leaves as they are, whatever the release: no FP32
            value goes in or comes out.
        lacked_by: releases that do not have it.
        scratch: UB bytes that it needs beside inputs and output.
        same_rank: operands must have as many dimensions as each other.
        parts: the primitives that it is composed of.
        opcodes: the tile opcode of a primitive by its operands, T a tensor and S a number.
        is_chain: the parts are instructions of one tile operation in one format, the first on the
            operands, each other on the result before.
        composed_by: releases whose compiler composes it of the tile opcodes of its parts here.
        composed_with_numbers: those that do so where an operand is a number.
        implied_scalar: the number that this opcode takes, where no operand is one.
        scalar_of: gives the number that it takes for an argument, of FP32 alone.
        instruction, source, fidelity, assumes: of one that has neither parts nor a row in
            `OPERATIONS`: the instructions, public texts, how much is known of its bits, and the
            assumptions they rest on. Of another, `fidelity` where less is known than of its parts.
        remark: a text beside the fidelity.
        example: an expression over the operands of `docs.generators.operation_examples`, or a
            statement of a kernel that writes to `out`; one of x, and of y if it takes two, if none
            is given.
        like: the operation whose arguments and errors it shares.
        is_experimental: it is one of `pypto.experimental`.
        is_method: tensors have it as a method, without the arguments in `NO_METHOD_HAS`.
    """

    name: str = ""
    function: Callable[..., object] | None = None
    dtypes: ByFamily = field(default_factory=dict)
    index_dtypes: ByFamily = field(default_factory=dict)
    added: ByFamily = field(default_factory=dict)
    run_in_fp32: ByRelease = field(default_factory=dict)
    cast_to_fp32: ByRelease = field(default_factory=dict)
    takes: ByRelease = field(default_factory=dict)
    refuses: ByRelease = field(default_factory=dict)
    least_dims: Mapping[ReleaseName, int] = field(default_factory=dict)
    rounds_on: ByFamily = field(default_factory=dict)
    lacked_by: tuple[ReleaseName, ...] = ()
    scratch: Scratch = lambda tile, fmt: 0
    same_rank: bool = False
    parts: tuple[str, ...] = ()
    opcodes: Mapping[str, str] = field(default_factory=dict)
    is_chain: bool = False
    composed_by: tuple[ReleaseName, ...] = ()
    composed_with_numbers: tuple[ReleaseName, ...] = ()
    implied_scalar: float | None = None
    scalar_of: Callable[[float], float] | None = None
    instruction: str = ""
    source: str = ""
    fidelity: Fidelity = Fidelity.EXACT
    assumes: tuple[Assumption, ...] = ()
    remark: str = ""
    example: str = ""
    like: str = ""
    is_experimental: bool = False
    is_method: bool = False

    def __call__(self, function: _Function) -> _Function:
        """Enter the row, and its differences by release, under the name of a function."""
        name = function.__name__
        ROWS[name] = replace(self, name=name, function=function)
        for fact in ("run_in_fp32", "cast_to_fp32", "takes", "refuses", "least_dims"):
            for release, value in getattr(self, fact).items():
                getattr(RELEASES[release], fact)[name] = value
        for release in self.lacked_by:
            RELEASES[release].lacks.add(name)
        return function

    @property
    def arithmetic(self) -> Operation:
        """Values, intervals, sources of a primitive, or of the first instruction of a chain."""
        return self.steps[0]

    @property
    def steps(self) -> tuple[Operation, ...]:
        """The rows of values of one instruction, or of several one after another."""
        names = self.parts if self.is_chain else (self.name,)
        return tuple(OPERATIONS[each] for each in names)

    @property
    def weakest(self) -> Fidelity:
        """The fidelity of its weakest part, or its own if that is less."""
        names = self.parts or (self.name,)
        known = (OPERATIONS[each].fidelity for each in names if each in OPERATIONS)
        return max((self.fidelity, *known), key=list(Fidelity).index)

    @property
    def standing(self) -> Standing:
        """Of its bits: chosen where they rest on an assumption of its own or of a part's."""
        rows = [OPERATIONS[each] for each in self.parts or (self.name,) if each in OPERATIONS]
        is_chosen = self.assumes or any(row.assumes for row in rows)
        return Standing.CHOSEN if is_chosen else Standing.DOCUMENTED

    @property
    def origin(self) -> str:
        """Its source: its own, that of the operation that it is like, or that of its module."""
        if self.source or self.parts or self.name in OPERATIONS:
            return self.source
        text = inspect.getdoc(inspect.getmodule(self.function)) or ""
        named = " ".join(text.partition("Source")[2].split()).removeprefix("s").removeprefix(": ")
        return ROWS[self.like].origin if self.like else named

    def result_dtype(self, dtype: DataType) -> DataType:
        """The dtype of a primitive's result."""
        arithmetic = OPERATIONS.get(self.name)
        return DataType.DT_BOOL if arithmetic is not None and arithmetic.gives_truth else dtype


ROWS: Final[dict[str, OperationRow]] = {}
"""The rows by name, in the order in which their modules are imported."""
NO_METHOD_HAS: Final = ("algo",)
"""Arguments of functions that upstream's methods do not take."""


def recorded(name: str, operation: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """An operation that is recorded, before the casts inside it, when it is called and succeeds.

    Its errors are one line and name it, those of its parts too. Most calls are neither kept nor
    intercepted; they take the short way, which does the same.
    """

    @functools.wraps(operation)
    def carried_out(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        try:
            recording = current()
            if recording is None:
                result = operation(*arguments, **named)
                if tally.OPEN:
                    tally.count("", operations=1)
                return result
            position, (file, line) = len(recording.steps), caller()
            result = operation(*arguments, **named)
        except Exception as error:
            name_operation(name, error)
            raise
        _insert(recording, position, name, result, file, line)
        return result

    whole = replayable_operation(intercepted(name, carried_out))

    @functools.wraps(operation)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        recording = current()
        if INTERCEPTOR.get() is not None:
            return whole(*arguments, **named)
        if recording is None:
            return carried_out(*arguments, **named)
        if recording.calls is not None or recording.tape is not None:
            return whole(*arguments, **named)
        try:
            return carried_out(*arguments, **named)
        except Exception:
            record_steering(arguments, named)
            raise

    return call


def _insert(
    recording: Recording, position: int, name: str, result: Any, file: str, line: int
) -> None:
    """Record a call that succeeded, before the steps inside it."""
    first = result[0] if isinstance(result, tuple) and result else result
    dtype, shape = getattr(first, "dtype", None), getattr(first, "shape", None)
    text = "" if dtype is None or shape is None else form_text(dtype, tuple(map(int, shape)))
    step = OperationStep(
        name=name,
        result=text,
        openness=first.openness() if hasattr(first, "openness") else bool,
        file=file,
        line=line,
        loops=(*recording.loops,),
        kernel=recording.kernel,
    )
    recording.steps.insert(position, step)
