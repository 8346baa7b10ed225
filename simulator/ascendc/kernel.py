"""Kernels: a Python function, launched on some cores over arrays as global memory."""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Generic, ParamSpec, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from simulator.ascendc.ascendc_types import GlobalAddress, data_type_of
from simulator.ascendc.recorder import (
    KernelError,
    Recorded,
    Recorder,
    is_recording,
    recording,
)
from simulator.corrections import (
    NIBBLES,
    Readings,
    corrections_of,
    merged,
    value_of_reading,
)
from simulator.machine import execute as machine
from simulator.machine.cast_table import CTRL_CAST
from simulator.machine.isa import CastRepeat, Instruction, SetCtrl, SetDeqScale, UbAddress
from simulator.machine.memory import Bytes, GlobalMemory, UbRange, load, packed
from simulator.machine.pipes import CopyCompletion, check_completion
from simulator.machine.repeats import overwritten_bytes
from simulator.numbers.convert import codes_of, values_of
from simulator.numbers.formats import Format, IntFormat
from tiling.chips import DEFAULT_CHIP, Chip, chip_named

_STRETCHES_NAMED: Final = 3
_NIBBLE_BITS: Final = 4


class KernelWarning(UserWarning):
    """A kernel that runs, and leaves something that its author will hardly have meant."""


def leftovers(
    listings: Sequence[Sequence[Recorded]], chip: Chip, memory: GlobalMemory
) -> tuple[str, ...]:
    """Returns the warnings that a run deserves, each text once.

    Args:
        listings: the instructions of each core.
        chip: sizes and limits.
        memory: the global memory that they ran on.
    """
    texts = list(_written_in_part(memory))
    for listing in listings:
        texts += _overwriting_repeats(listing, chip)
        texts += _left_truncating(listing)
        texts += _left_scaling(listing)
    return tuple(dict.fromkeys(texts))


def _written_in_part(memory: GlobalMemory) -> Iterator[str]:
    for tensor in memory.written_tensors:
        missing = memory.unwritten(tensor)
        if missing:
            yield (
                f"gm.{tensor} is written in part: {sum(map(len, missing))} of its "
                f"{memory.size_bytes(tensor)} B never are, {_stretches(missing)}; they keep what "
                "the array held. Where that is meant, launch on a view of the part to be written"
            )


def _stretches(missing: Sequence[range]) -> str:
    named = [
        f"{each.start} to {each[-1]}" if len(each) > 1 else str(each.start)
        for each in missing[:_STRETCHES_NAMED]
    ]
    more = len(missing) - len(named)
    return f"bytes {', '.join(named)}" + (f" and {more} more stretches" if more else "")


def _overwriting_repeats(listing: Iterable[Recorded], chip: Chip) -> Iterator[str]:
    for each in listing:
        if isinstance(each.instruction, CastRepeat):
            lost = _lost_bytes(replace(each.instruction, dst=_ANYWHERE, src=_ANYWHERE), chip)
            if lost:
                yield (
                    f"{each.line}: repeats of one Cast overwrite each other's results, {lost} B "
                    f"are lost: dst_rep_stride is {each.instruction.dst_rep_stride} blocks"
                )


_ANYWHERE: Final = UbAddress(offset_bytes=0)
_lost_bytes = functools.lru_cache(maxsize=256)(overwritten_bytes)


def _left_truncating(listing: Iterable[Recorded]) -> Iterator[str]:
    """CTRL[59] outlives a kernel; CTRL[48] is the stream's, which sets it for every kernel."""
    line, is_set = "", False
    for each in listing:
        if isinstance(each.instruction, SetCtrl) and each.instruction.bit == CTRL_CAST:
            line, is_set = each.line, each.instruction.value
    if is_set:
        yield (
            f"{line}: saturation of integer results is still off when the kernel ends, and "
            "would be for the next one: set_saturation_flag(SaturationMode.CAST, True) puts it back"
        )


def _left_scaling(listing: Iterable[Recorded]) -> Iterator[str]:
    """The deq scale outlives a kernel too, and no kernel can read its value."""
    line, scale = "", 1.0
    for each in listing:
        if isinstance(each.instruction, SetDeqScale):
            line, scale = each.line, each.instruction.scale
    if scale != 1:
        yield (
            f"{line}: the deq scale is still {scale:g} when the kernel ends, and would be for the "
            "next one: set_deq_scale(1.0) puts it back"
        )


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

ConstExpr = Annotated[T, "constant at compile time"]
"""Marks a parameter that pyasc compiles in; any value here."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """The settings of a launch.

    Attributes:
        chip: sizes, limits and number of cores.
        copy_completion: copies complete as late or as early as the flags allow; a kernel whose
            flags are right gives the same bits.
        exact: convert by the definition instead of the fast paths.
        readings: readings of public texts of the 950 other than the default ones.
    """

    chip: Chip = DEFAULT_CHIP
    copy_completion: CopyCompletion = "latest"
    exact: bool = False
    readings: Readings = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProgram:
    """The instructions that a launch recorded, as a program for the machine.

    Attributes:
        name: the kernel's name.
        chip: sizes and limits.
        listings: the instructions of each core, each with its line.
        layouts: the buffers in the UB of each core, by name; tensors placed by hand may overlap.
    """

    name: str
    chip: Chip
    listings: tuple[tuple[Recorded, ...], ...]
    layouts: tuple[tuple[UbRange, ...], ...]

    @property
    def cores(self) -> range:
        """Cores of the launch."""
        return range(len(self.listings))

    def instructions(self, core: int) -> Iterator[Instruction]:
        """The instructions of a core, in program order."""
        return (recorded.instruction for recorded in self.listings[core])

    def issued(self, core: int) -> Iterator[Instruction | UbRange]:
        """The instructions of a core, and each buffer where alloc_tensor takes it."""
        for recorded in self.listings[core]:
            yield from recorded.allocated
            yield recorded.instruction

    def ub_ranges(self, core: int) -> tuple[UbRange, ...]:
        """The buffers in the UB of a core."""
        return self.layouts[core]

    def where(self, core: int, index: int) -> str:
        """The line of the kernel that recorded an instruction, such as `cast.py:12`."""
        return self.listings[core][index].line

    def listing(self, core: int) -> str:
        """The instructions of a core, one a line: number, pipe, instruction, line of the kernel."""
        return "\n".join(
            f"    {number:>4} {each.instruction.pipe.name:<5} {each.instruction}  # {each.line}"
            for number, each in enumerate(self.listings[core])
        )

    def __str__(self) -> str:
        lines = [f"KernelProgram {self.name}, cores: {len(self.listings)} of {self.chip}"]
        lines.append(f"  core 0 of {len(self.listings)}")
        lines += [
            f"  buffer  {each.name}: ub+{each.offset_bytes}, {each.size_bytes} B"
            for each in self.ub_ranges(0)
        ]
        return "\n".join([*lines, self.listing(0)])


class JitFunction(Generic[P, R]):
    """A function under `jit`: launched as `kernel[core_num](...)`, or called by another kernel."""

    def __init__(self, function: Callable[P, R], options: LaunchOptions) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.launch_options = options

    def options(
        self,
        *,
        chip: str | Chip | None = None,
        copy_completion: CopyCompletion | None = None,
        exact: bool | None = None,
        readings: Mapping[str, str] | None = None,
        landing: CopyCompletion | None = None,
    ) -> JitFunction[P, R]:
        """The same kernel with other options; those not given stay.

        Args:
            chip: a chip, or the vendor's name of one.
            copy_completion: "latest" or "earliest", as far as the flags allow.
            exact: convert by the definition instead of the fast paths.
            readings: values by name, of results of the 950 that public texts give differently.
            landing: the former name of `copy_completion`.

        Raises:
            TypeError: readings that are no dict of str.
            ValueError: unknown chip, completion of copies, or reading.

        Warns:
            DeprecationWarning: `landing`.
        """
        if landing is not None:
            text = (
                "options(landing=) is options(copy_completion=) now; the former goes with the next"
            )
            warnings.warn(f"{text} release", DeprecationWarning, stacklevel=2)
            copy_completion = landing
        if copy_completion is not None:
            check_completion(copy_completion)
        known = chip_named(chip) if isinstance(chip, str) else chip
        asked: Any = {"chip": known, "copy_completion": copy_completion, "exact": exact}
        if readings is not None:
            asked["readings"] = merged(self.launch_options.readings, readings)
        given = {name: value for name, value in asked.items() if value is not None}
        changed = replace(self.launch_options, **given)
        return JitFunction(self.function, changed)

    def __getitem__(self, core_num: SupportsIndex) -> Launch:
        """The kernel on `core_num` cores.

        Raises:
            KernelError: not a number of cores that the chip has.
        """
        chip = self.launch_options.chip
        try:
            cores = operator.index(core_num)
        except TypeError:
            raise KernelError(
                f"launch as kernel[core_num](...), without a stream: {core_num!r}"
            ) from None
        if not 1 <= cores <= chip.vector_cores:
            raise KernelError(
                f"core_num must be 1 to {chip.vector_cores}, the vector cores of {chip}, is {cores}"
            )
        return Launch(kernel=self, core_num=cores)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run as a part of the kernel that calls it.

        Raises:
            KernelError: no kernel does.
        """
        if not is_recording():
            raise KernelError(
                f"{self.function.__name__} called outside a kernel: launch it as "
                f"{self.function.__name__}[core_num](...)"
            )
        return self.function(*args, **kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A kernel on some cores, ready for its arguments.

    Attributes:
        kernel: the kernel.
        core_num: cores.
    """

    kernel: JitFunction[Any, Any]
    core_num: int

    def __call__(self, *args: object, **kwargs: object) -> None:
        """Record the kernel for each core, then run all of them.

        A KernelWarning tells of arrays that are written in part, of repeats of one Cast that
        overwrite each other, of integer saturation that is left off, and of a deq scale that is
        left at another number than 1.

        Args:
            args: the kernel's arguments. Arrays are global memory, written in place: contiguous,
                of a dtype that Cast knows (ml_dtypes for BF16 and INT4; elements of 4 bits lie in
                GM two to a byte). Anything else is passed on as it is.
            kwargs: likewise.

        Raises:
            KernelError: a call that AscendC has no meaning for, or arrays that are not GM.
            SimulatorFault: what the hardware does not permit, with the line of the kernel.
        """
        arrays, program = self._record(args, kwargs)
        options = self.kernel.launch_options
        first_nibble = value_of_reading(NIBBLES, options.readings)
        gm = {name: _to_gm(array, first_nibble) for name, array in arrays.items()}
        memory = machine.run(
            program,
            gm,
            copy_completion=options.copy_completion,
            exact=options.exact,
            corrections=corrections_of(options.readings),
            first_nibble=first_nibble,
        )
        for name, array in arrays.items():
            fmt = data_type_of(array.dtype).format
            if fmt.bits == _NIBBLE_BITS and array.flags.writeable:
                array.reshape(-1)[:] = _values_of_nibbles(gm[name], fmt, first_nibble)
        for text in leftovers(program.listings, program.chip, memory):
            warnings.warn(text, KernelWarning, stacklevel=2)

    def program(self, *args: object, **kwargs: object) -> KernelProgram:
        """Record the kernel for each core without running it; `str` of it is a listing.

        Raises:
            KernelError: a call that AscendC has no meaning for, or arrays that are not GM.
        """
        return self._record(args, kwargs)[1]

    def _record(
        self, args: Iterable[object], kwargs: Mapping[str, object]
    ) -> tuple[dict[str, Array], KernelProgram]:
        if is_recording():
            raise KernelError("a kernel cannot launch another; call it without [core_num]")
        function = self.kernel.function
        chip = self.kernel.launch_options.chip
        bound = inspect.signature(function).bind(*args, **kwargs)
        arrays = {k: v for k, v in bound.arguments.items() if isinstance(v, np.ndarray)}
        _check_arrays(arrays)
        for name, array in arrays.items():
            dtype = data_type_of(array.dtype)
            bound.arguments[name] = GlobalAddress(tensor=name, dtype=dtype, size=array.size)
        recorders = [Recorder(core, self.core_num, chip) for core in range(self.core_num)]
        for recorder in recorders:
            with recording(recorder):
                function(*bound.args, **bound.kwargs)
                recorder.end(function.__name__)
        return arrays, KernelProgram(
            name=function.__name__,
            chip=chip,
            listings=tuple(tuple(each.recorded) for each in recorders),
            layouts=tuple(tuple(dict.fromkeys(each.ranges)) for each in recorders),
        )


def jit(function: Callable[P, R]) -> JitFunction[P, R]:
    """Make a function a kernel: launch it as `kernel[core_num](...)`, with numpy arrays as GM."""
    return JitFunction(function, LaunchOptions())


def _check_arrays(arrays: Mapping[str, Array]) -> None:
    for name, array in arrays.items():
        dtype = data_type_of(array.dtype)
        if not array.flags.c_contiguous:
            raise KernelError(f"{name} is not contiguous; GM is: pass numpy.ascontiguousarray")
        if dtype.bitwidth == _NIBBLE_BITS and array.size % 2:
            raise KernelError(f"{name} has {array.size} elements of {dtype}: two share a byte")
    for (first, a), (second, b) in itertools.combinations(arrays.items(), 2):
        if np.may_share_memory(a, b):
            raise KernelError(f"{first} and {second} share memory: pass it as one parameter")


def _to_gm(array: Array, first_nibble: str) -> Bytes:
    """The bytes of an array, the same memory except for elements of 4 bits, which are packed."""
    fmt = data_type_of(array.dtype).format
    if fmt.bits != _NIBBLE_BITS:
        return array.reshape(-1).view(np.uint8)
    nibbles = packed(codes_of(array.reshape(-1), fmt), fmt, first_nibble)
    nibbles.flags.writeable = array.flags.writeable
    return nibbles


def _values_of_nibbles(memory: Bytes, fmt: Format, first_nibble: str) -> Array:
    codes = load(memory, fmt, first_nibble)
    if isinstance(fmt, IntFormat):  # ml_dtypes spreads the sign
        codes = ((codes.view(np.int8) ^ np.int8(8)) - np.int8(8)).view(np.uint8)
    return values_of(codes, fmt)
