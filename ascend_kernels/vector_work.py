"""The vector work of a cast as the cost model sees it: the resolution's steps as vector steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from ascend_kernels.matrix import CastControls, CastStep, Operand, Resolution, ScalarStep, Step
from tiling.loads import VectorKind, VectorStep, VectorWork
from tiling.ub import ElementBits

_BITWISE_BITS: Final = 16
_DEFAULTS: Final = CastControls()


def element_bits(resolution: Resolution) -> ElementBits:
    """Widths of one element of a cast's input, output and scratch."""
    rule = resolution.rule
    sides = {Operand.IN: rule.src.bits, Operand.TMP: rule.src.bits, Operand.OUT: rule.dst.bits}
    return ElementBits(
        src=rule.src.bits,
        dst=rule.dst.bits,
        tmp=resolution.tmp_bits,
        rows_may_differ=all(cast.dst.bits >= sides[cast.target] for cast in resolution.casts),
    )


def vector_work(resolution: Resolution, controls: CastControls = _DEFAULTS) -> VectorWork:
    """The steps of the vector unit on each part of a tile, in order.

    Args:
        resolution: of the cast.
        controls: the control bits, of which each that is not at its default is set once.
    """
    steps = (
        vector_step
        for number, step in enumerate(resolution.steps)
        for vector_step in _vector_steps(step, element_bits(resolution), follows_barrier=number > 0)
    )
    # The control bit goes back to what the first step of the next part needs.
    begins = resolution.begins_truncating
    truncations = [begins, *(cast.truncates for cast in resolution.casts), begins]
    changes = itertools.pairwise(truncations)
    return VectorWork(
        steps=tuple(steps),
        part_barriers=int(resolution.ends_on_scratch),
        part_scalars=sum(before != after for before, after in changes),
        set_up_scalars=2
        + controls.fp8_nan
        + (not controls.global_saturation)
        + any(cast.is_scaled for cast in resolution.casts),
    )


def _vector_steps(step: Step, bits: ElementBits, *, follows_barrier: bool) -> Iterator[VectorStep]:
    if isinstance(step, CastStep):
        # Rows of the scratch lie as far apart, in elements, as those of the input.
        sides = {operand is Operand.OUT for operand in (step.source, step.target)}
        yield VectorStep(
            kind=VectorKind.CAST,
            bits=max(step.src.bits, step.dst.bits),
            goes_by_rows=len(sides) > 1 and bits.src != bits.dst,
            # A scaled conversion comes with a register and a barrier of its own (pto-isa, TCVT).
            pays_startup=step.is_scaled,
            follows_barrier=follows_barrier,
        )
        return
    if isinstance(step, ScalarStep):
        yield VectorStep(
            kind=VectorKind.BITWISE, bits=step.format.bits, follows_barrier=follows_barrier
        )
        return
    for is_mask in (True, False):  # the mask, and the and with it
        yield VectorStep(
            kind=VectorKind.BITWISE,
            bits=_BITWISE_BITS,
            is_one_block=is_mask,
            takes_rest=not is_mask,
            follows_barrier=follows_barrier or not is_mask,
        )
