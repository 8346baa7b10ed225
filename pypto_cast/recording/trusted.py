"""The assumptions on a device that an operation of a kernel is computed under."""

from __future__ import annotations

from pypto_cast.options import context as options
from pypto_cast.recording import recording
from pypto_cast.recording.suppositions import supposed_exact
from simulator.arithmetic import CHOICES, EXACT, TRUSTS, Trust
from simulator.arithmetic.trust import ASSUMPTIONS, NAMING_CHOICES


def trust(name: str) -> Trust:
    """The assumptions that this context makes for an operation asked for here; all where only
    values are asked for, none where public texts alone are.
    """
    if supposed_exact(name) or not recording.finds_bounds():
        return _with_named(EXACT)
    context = options.current()
    by_documents = recording.finds_by_documents()
    chosen = NAMING_CHOICES if by_documents else _with_named(TRUSTS[context.trust])
    if context.facts is not None:
        chosen = context.facts.trusting(chosen)
    if not by_documents:
        recording.note_assumed(chosen.assumed)
    return chosen


def cast_cause(trust: Trust) -> int:
    """The cause of a cast that is asked for here; 0 where no choice leaves one open."""
    return 0 if trust.assumed >= ASSUMPTIONS else recording.causes().index_here("cast")


def _with_named(chosen: Trust) -> Trust:
    for name in options.current().assume:
        chosen = chosen.also(CHOICES[name])
    return chosen
