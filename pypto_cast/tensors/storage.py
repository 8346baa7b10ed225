"""The values of a tensor: in its own array, a parameter's memory, or a buffer of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from pypto_cast.call_sites import warn_caller
from pypto_cast.dtypes.data_types import CachePolicy, DataType, numpy_dtype
from pypto_cast.options import context as options
from pypto_cast.recording import recording
from pypto_cast.recording.buffers import Buffer, Uninitialized
from pypto_cast.recording.steps import Patch, Patches, part_of
from pypto_cast.report.notebook import fragment, values_table
from pypto_cast.report.report import Table
from pypto_cast.report.text_format import extra_hint
from pypto_cast.tensors.symbolic import Extent
from pypto_cast.tensors.torch_bridge import tensor_over
from simulator.arithmetic.interval import Enclosure, unknown
from simulator.numbers import float_environment
from simulator.numbers.convert import in_numpy
from tiling.grid import Shape

_Held = TypeVar("_Held", bound="Storage")
_SHOWN_VALUES: Final = 6


@float_environment.quiet()
def _shown(values: npt.NDArray[Any]) -> str:
    """The first values, as a list."""
    first = ", ".join(str(value) for value in values.flat[:_SHOWN_VALUES])
    return f"[{first}{', ...' if values.size > _SHOWN_VALUES else ''}]"


def _is_exact() -> bool:
    return False


def _check_outside() -> None:
    """Raises TypeError in a kernel that runs."""
    if recording.current() is not None:
        raise TypeError(
            "a kernel does not see values: what Python computes of them would not be in the "
            "device program"
        )


class Storage:
    """The values of a tensor, which parts of them hold data, and where they come from.

    Attributes:
        name: of the tensor, for messages and listings.
    """

    __slots__ = (
        "_buffer",
        "_cached",
        "_dtype",
        "_held",
        "_hidden",
        "_is_part",
        "_is_value",
        "_moved",
        "_patches",
        "_rounding",
        "_shape",
        "_uninitialized",
        "_valid",
        "name",
    )
    name: str
    _shape: Shape
    _dtype: DataType
    _held: Enclosure | None
    _rounding: Callable[[], Enclosure] | None
    _hidden: tuple[object, Enclosure] | None
    _valid: Shape | None
    _buffer: Buffer[Patch] | None
    _patches: Patches
    _uninitialized: Uninitialized | None
    _is_value: bool
    _is_part: bool
    _cached: bool
    _moved: recording.Moved | None

    def attach(self, buffer: Buffer[Patch] | None) -> None:
        """Have the memory of a parameter from now on, or none, for the package itself.

        What a running kernel declared stays with its recording, and ends with it.
        """
        running = recording.current()
        if buffer is not None and not buffer.is_given and running is not None:
            running.declare(self, buffer)
        else:
            self._buffer = buffer

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def valid_shape(self) -> list[int]:
        """The extents that hold data: less than `shape` where a view reaches over an edge."""
        return list(map(Extent, self._shape if self._valid is None else self._valid))

    @property
    def has_data(self) -> bool:
        """True if the tensor holds values."""
        buffer = self._live()
        if buffer is not None:
            return buffer.has_values
        return self._held is not None or self._rounding is not None

    def set_cache_policy(self, policy: CachePolicy, value: bool) -> None:
        """Set a cache policy of upstream's runtime; no bit depends on it."""
        if not isinstance(policy, CachePolicy) or not isinstance(value, bool):
            raise TypeError(f"a pypto.CachePolicy and True or False, not {policy!r} and {value!r}")
        self._cached = value

    def get_cache_policy(self, policy: CachePolicy) -> bool:
        """The value that `set_cache_policy` was given last."""
        return self._cached

    def enclosure(self) -> Enclosure | None:
        """The values of the valid shape and their interval; None if it only declares.

        In a kernel that runs, what nobody wrote holds zeros, which `uninitialized` tells.
        """
        buffer = self._live()
        if buffer is None and self._held is not None:
            return self._held
        if self._is_blank(buffer):
            return Enclosure(values=np.zeros(self.valid_shape, numpy_dtype(self._dtype)))
        if buffer is not None:
            return buffer.read((0,) * self.dim, tuple(self.valid_shape))
        return self._own()

    def quantity(self) -> Enclosure | None:
        """`enclosure` by its former name, which warns and goes with the next release."""
        text = "Tensor.quantity is Tensor.enclosure now; the former name goes with the next release"
        warn_caller(text, DeprecationWarning)
        return self.enclosure()

    def _is_blank(self, buffer: Buffer[Patch] | None) -> bool:
        """True if a kernel runs with values, and nobody wrote any of these in `_live`."""
        running = recording.current()
        if running is None or not running.executes or 0 in (self._valid or self._shape):
            return False
        return self._own() is None if buffer is None else buffer.is_blank

    @property
    def is_open(self) -> bool:
        """True if a device may give other values than those that it was made with."""
        return self.openness()()

    def openness(self) -> Callable[[], bool]:
        """Gives `is_open` later, without computing values that nobody needs."""
        hidden = None if self._hidden is None else self._hidden[1]
        made = hidden if self._held is None else self._held
        return _is_exact if made is None else made.openness

    @property
    def open_cause(self) -> int | None:
        """The cause of the first element that is open now; None if none is."""
        held = self.enclosure() if self.has_data else None
        if held is None or held.interval is None or (certain := held.certain()).all():
            return None
        return int(held.interval.cause[~certain][0])

    def _own(self) -> Enclosure | None:
        """The values that the tensor was made with, rounded by now."""
        if self._held is None and self._rounding is not None:
            self._held = self._rounding()
        return self._held

    def elements(self) -> npt.NDArray[Any] | None:
        """The values alone; see `enclosure`.

        Raises:
            TypeError: as for `numpy`.
        """
        _check_outside()
        held = self.enclosure()
        return None if held is None else held.values

    def made_unknown(self: _Held, cause: int | None) -> _Held:
        """The same where something open decides which elements these are, for the package itself.

        Args:
            cause: what is open; None leaves the tensor as it is.
        """
        if cause is not None and (own := self._own()) is not None:
            interval = unknown(own.values, self._dtype.number_format, cause)
            self._held, self._hidden = Enclosure(values=own.values, interval=interval), None
        return self

    def numpy(self) -> npt.NDArray[Any]:
        """The values, without a copy; BF16 and narrower types are ml_dtypes'.

        Under `options(inspect=True)` a running kernel gets a read-only copy, and every output of
        it counts as unknown in certainty.

        Raises:
            ValueError: the tensor is only declared.
            TypeError: a kernel is running without that option, or without values; no device
                program holds what Python makes of them.
        """
        running = recording.current()
        if running is not None and running.executes and options.current().inspect:
            return self._inspected()
        _check_outside()
        own = self._own()
        if own is None:
            raise ValueError(
                f"{self!r} is declared without values; give data= or use pypto.from_numpy"
            )
        return own.values

    def _inspected(self) -> npt.NDArray[Any]:
        """A read-only copy of the values in a kernel; Python may go by them from here on."""
        held = self.enclosure()
        if held is None or self._is_blank(self._live()):
            raise ValueError(f"{self!r} holds no values here; numpy() reads it once it is written")
        recording.record_control_dependence(recording.causes().index_here("numpy"))
        values = held.values.copy()
        values.flags.writeable = False
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.numpy()
        if dtype is not None and np.dtype(dtype) != values.dtype:
            if copy is False:
                raise ValueError(f"no view of {self._dtype} as {np.dtype(dtype)} without a copy")
            return values.astype(dtype)
        return values.copy() if copy else values

    def __dlpack__(self, **arguments: Any) -> Any:
        """Export through DLPack, BF16 by torch.

        Raises:
            BufferError: DLPack has no such dtype (4-bit types), or BF16 and torch is not installed,
                or it is read-only and the taker does not know such memory.
        """
        values = self.numpy()
        if self._dtype is DataType.DT_BF16 and values.flags.writeable:
            try:
                return tensor_over(values, self._dtype).__dlpack__(**arguments)
            except ImportError:
                raise BufferError(f"BF16 goes through torch: {extra_hint('torch')}") from None
        return values.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self.numpy().__dlpack_device__()
        return int(kind), int(index)

    def __reduce_ex__(self, protocol: Any) -> Any:
        _check_outside()  # the bytes, or a copy outside the kernel's memory, would show them
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        parts = [f"shape={list(self._shape)}", f"dtype={self._dtype}"]
        if self.name:
            parts.append(f"name={self.name!r}")
        if self._valid is not None:
            parts.append(f"valid_shape={self.valid_shape}")
        if recording.current() is not None:
            parts += [f"data={text}" for text in self._seen_inside()]
            return f"Tensor({', '.join(parts)})"
        data = self._seen()
        if data is not None:
            parts.append(f"data={_shown(in_numpy(data, self._dtype.number_format))}")
        return f"Tensor({', '.join(parts)})"

    def _repr_html_(self) -> str:
        caption = f"{self.name or 'Tensor'}: {self._dtype} {list(self._shape)}"
        if self._valid is not None:
            caption += f", valid {self.valid_shape}"
        data = self._seen()
        if recording.current() is not None:
            caption += "".join(f": {text}" for text in self._seen_inside())
        if data is None or not data.size:
            return fragment(Table(caption=f"{caption}, no values", columns=(), rows=()))
        return fragment(values_table(caption, in_numpy(data, self._dtype.number_format)))

    def _seen(self) -> npt.NDArray[Any] | None:
        """The values as far as there are any, outside kernels."""
        if recording.current() is not None:
            return None
        if self._buffer is None or self._buffer.home is None:
            own = self._own()
            return None if own is None else own.values
        return self.elements()

    @float_environment.quiet()
    def _seen_inside(self) -> Iterator[str]:
        """The first values in a running kernel; none where it runs without values.

        Of an element that a device may give otherwise it shows the ends of the interval, which are
        the same whatever the device gives: text that Python goes by leaves certainty true.
        """
        running = recording.current()
        if running is None or not running.executes or 0 in self.valid_shape:
            return
        held, missing = self.enclosure(), self.uninitialized()
        if held is None or (missing is not None and missing.mask.all()):
            return
        first = slice(_SHOWN_VALUES)
        fmt = self._dtype.number_format
        low, high = (in_numpy(x.reshape(-1)[first], fmt) for x in (held.low, held.high))
        certain = held.certain().reshape(-1)
        unwritten = np.zeros(certain.shape, np.bool_) if missing is None else missing.mask.ravel()
        texts = [
            "unwritten" if u else str(a) if c else f"{a!s}..{b!s}"
            for a, b, c, u in zip(low, high, certain[first], unwritten[first], strict=True)
        ]
        yield f"[{', '.join(texts)}{', ...' if certain.size > _SHOWN_VALUES else ''}]"

    def hidden(self) -> Enclosure | None:
        """The FP32 value that was rounded to this one, while upstream's program has it."""
        if self._hidden is None or self._hidden[0] is not recording.segment():
            return None
        buffer = self._live()
        if buffer is not None:
            return self._hidden[1] if buffer.wrote_last else None
        if recording.current() is None and self._is_overwritten():
            self._settle()
            return None
        return self._hidden[1]

    def _is_overwritten(self) -> bool:
        """True if the array has other bits than were rounded to it: who has it may write to it."""
        if self._held is None or self._rounding is None:
            return False
        held = self._held.values
        codes = f"u{held.itemsize}"
        return not np.array_equal(held.view(codes), self._rounding().values.view(codes))

    def _settle(self) -> None:
        """Keep the values alone."""
        own = self._own()
        self._held = None if own is None else Enclosure(values=own.values)
        self._hidden, self._rounding, self._patches = None, None, ()

    def take_results(self, changed: Iterable[Buffer[Patch]]) -> None:
        """Drop the interval and the unrounded value of former values, for the package itself.

        Args:
            changed: the buffers whose arrays a kernel has written.
        """
        own = self._own()
        if own is not None and any(buffer.is_of(own.values) for buffer in changed):
            self._settle()

    def uninitialized(self) -> Uninitialized | None:
        """The values that nobody wrote, for the package itself; None if there are none."""
        buffer = self._live()
        if buffer is None and self._held is not None:
            return self._uninitialized
        if self._is_blank(buffer):
            mask = np.ones(self.valid_shape, np.bool_)
            return Uninitialized(label=self._label(), mask=mask, first=(0,) * self.dim)
        if buffer is None:
            return self._uninitialized
        return buffer.uninitialized((0,) * self.dim, tuple(self.valid_shape))

    def partly_uninitialized(
        self: _Held, mask: npt.NDArray[np.bool_], cause: Uninitialized | None = None
    ) -> _Held:
        """The same tensor, which holds nothing where a mask is true, for the package itself.

        Args:
            mask: over the valid shape.
            cause: where such elements come from, for messages; by default this tensor.
        """
        if not mask.any() or (self._held is None and self._rounding is None):
            return self
        if self._uninitialized is not None:
            mask = mask | self._uninitialized.mask
        first = tuple(int(i) for i in np.argwhere(mask)[0])
        known = (
            cause
            or self._uninitialized
            or Uninitialized(label=self._label(), mask=mask, first=first)
        )
        self._uninitialized = known.masked(mask)
        return self

    def check_content(self) -> None:
        """Say once that upstream's program has moved the values away, for the package itself.

        Raises:
            UpstreamRefusalError: under `options(strict=True)`.

        Warns:
            UpstreamRefusalWarning: otherwise.
        """
        if self._moved is not None and recording.warn_moved(self._moved, self._label()):
            self._moved = None

    def move_away(self) -> None:
        """Have upstream's program move the values away here, for the package itself."""
        running = recording.current()
        self._moved = None if running is None else running.moved_here()

    def patches(self) -> Patches:
        """The casts that the values come from, for the package itself."""
        buffer = self._live()
        return self._patches if buffer is None else tuple(buffer.patches)

    def _patches_of(self, offset: Shape, extent: Shape) -> Patches:
        """The casts that the values of a box come from, as seen from it."""
        buffer = self._live()
        near = self._patches if buffer is None else buffer.patches_near(offset, extent)
        return part_of(near, offset, extent)

    def _label(self) -> str:
        return f"tensor {self.name!r}" if self.name else "the tensor"

    def writable(self) -> Buffer[Patch] | None:
        """The memory that writing to the tensor changes; None for a view or a given tensor."""
        buffer, running = self._live(), recording.current()
        own = not self._is_part if self._is_value else self._own() is None
        if buffer is None and running is not None and own and min(self._shape, default=0) >= 0:
            buffer = running.local(self._label(), self._shape)
            if self._is_value:
                extent = tuple(self.valid_shape)
                held, start = self.enclosure(), (0,) * self.dim
                buffer.write(held, start, extent, self._patches, self._uninitialized)
            running.declare(self, buffer)
        return buffer

    def _live(self) -> Buffer[Patch] | None:
        """The memory of a parameter, or of a tensor that the running kernel declared."""
        running = recording.current()
        if self._buffer is not None or running is None:
            return self._buffer
        return running.declared.get(self)

    def memory(self) -> Buffer[Patch]:
        """The memory that the running kernel writes to, for the package itself.

        Raises:
            TypeError: no kernel runs, or the tensor is a view or a constant.
            ValueError: it has a dimension that is not known.
        """
        if recording.current() is None:
            raise TypeError(
                f"{self._label()} is written outside a kernel; decorate the function with pypto.jit"
            )
        buffer = self.writable()
        if buffer is None and min(self._shape, default=0) < 0:
            raise ValueError(
                f"{self._label()} is declared with shape {list(self._shape)}, of which no part can "
                "be written: declare its dimensions, or write all of it: out[:] = value"
            )
        if buffer is None:
            raise TypeError(
                f"{self._label()} is a view or a constant, not an output of the kernel; write to "
                "the output itself: out[a:b] = value, or pypto.assemble(value, offsets, out)"
            )
        return buffer
