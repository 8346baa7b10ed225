"""Flags and barriers between pipes: what waits for ever, and what is left behind."""

from __future__ import annotations

import pytest
from support.programs.listings import (
    FENCE,
    Listing,
    copy_in,
    copy_out,
    execute,
    execute_anyway,
    fault_at,
    fault_of,
    flag,
    set_flag,
    ub,
    wait_flag,
    x_at,
    y_at,
)

from simulator.machine import hazards
from simulator.machine.isa import (
    Duplicate,
    HardEvent,
    Instruction,
    Pipe,
    PipeBarrier,
)
from simulator.machine.memory import Effect, Region, SimulatorFault
from simulator.machine.pipes import COPY_COMPLETIONS, CopyCompletion

every_event = pytest.mark.parametrize("event", list(HardEvent), ids=lambda event: event.name)
every_event_that_waits_here = pytest.mark.parametrize(
    "event", [HardEvent.MTE2_V, HardEvent.V_MTE3, HardEvent.MTE3_MTE2], ids=lambda e: e.name
)


def test_an_event_names_its_pipes() -> None:
    for event in HardEvent:
        assert f"{event.setter.name}_{event.waiter.name}" == event.name
        assert set_flag(event).pipe is event.setter
        assert wait_flag(event).pipe is event.waiter
    pipes = {Pipe.S, Pipe.MTE2, Pipe.V, Pipe.MTE3}
    assert len(HardEvent) == len(pipes) * (len(pipes) - 1)
    assert str(set_flag(HardEvent.V_MTE3, 5)) == "SetFlag V_MTE3 5"
    assert str(wait_flag(HardEvent.V_MTE3, 5)) == "WaitFlag V_MTE3 5"
    assert str(PipeBarrier(of=Pipe.V)) == "PipeBarrier V"
    assert str(FENCE) == "PipeBarrier ALL"


@every_event
def test_a_wait_needs_a_set(event: HardEvent) -> None:
    assert fault_at(0, wait_flag(event)) == "waits for ever: no instruction sets this flag"
    execute_anyway(*flag(event))


@every_event
def test_a_flag_is_one_of_its_event_and_its_number(event: HardEvent) -> None:
    """A flag of the same number between other pipes, or of another number, is another flag."""
    wanted = "waits for ever: no instruction sets this flag"
    assert fault_at(1, set_flag(event, 0), wait_flag(event, 1)) == wanted
    other = next(e for e in HardEvent if e.waiter is event.waiter and e is not event)
    assert fault_at(1, set_flag(other), wait_flag(event)) == wanted


@every_event
def test_a_set_needs_a_wait(event: HardEvent) -> None:
    assert fault_at(0, set_flag(event, 3), FENCE) == (
        "is never waited for: the flag is still set at the end"
    )
    twice = (*flag(event), FENCE, set_flag(event))
    assert fault_at(3, *twice) == "is never waited for: the flag is still set at the end"
    execute_anyway(*twice, wait_flag(event))


@every_event
def test_a_flag_is_not_set_twice(event: HardEvent) -> None:
    again = (set_flag(event), FENCE, set_flag(event), FENCE, wait_flag(event))
    first = f"instruction 0 ({set_flag(event)})"
    assert fault_at(2, *again) == f"is already set, by {first}, and nobody waited for it"
    execute_anyway(*flag(event), FENCE, *flag(event))
    execute_anyway(set_flag(event, 0), set_flag(event, 1), wait_flag(event, 1), wait_flag(event, 0))


BETWEEN_PIPES = [event for event in HardEvent if Pipe.S not in event.value]


@pytest.mark.parametrize("copy_completion", COPY_COMPLETIONS)
def test_a_flag_is_not_set_again_before_its_wait_is_known_to_be_over(
    copy_completion: CopyCompletion,
) -> None:
    for event in BETWEEN_PIPES:
        with pytest.raises(
            SimulatorFault, match=r"already set|may come before instruction 1 \(.*\) has"
        ):
            execute(*flag(event), *flag(event), copy_completion=copy_completion)


@pytest.mark.parametrize("event", [e for e in HardEvent if e.waiter is Pipe.S], ids=str)
def test_a_flag_for_the_scalar_pipe_is_issued_again_behind_its_wait(event: HardEvent) -> None:
    """Of two sets before the first wait the second may come first, however late copies land."""
    again = (set_flag(event), set_flag(event), wait_flag(event), wait_flag(event))
    for copy_completion in COPY_COMPLETIONS:
        with pytest.raises(
            SimulatorFault, match=r"already set|may come before instruction 2 \(.*\) has"
        ):
            execute(*again, copy_completion=copy_completion)
    execute_anyway(*flag(event), *flag(event))


def test_a_flag_is_set_again_once_its_wait_is_known_to_be_over() -> None:
    for event in BETWEEN_PIPES:
        back = HardEvent((event.waiter, event.setter))
        execute_anyway(*flag(event), *flag(back), *flag(event))


@every_event
def test_there_are_8_flags_of_an_event(event: HardEvent) -> None:
    for event_id in (0, 7):
        execute_anyway(*flag(event, event_id))
    for event_id in (8, -1, 64):
        assert fault_at(0, *flag(event, event_id)) == "event id must be 0 to 7"


@every_event
def test_a_wait_for_a_ninth_flag_is_told_by_its_place(event: HardEvent) -> None:
    assert fault_at(0, wait_flag(event, 8)) == "event id must be 0 to 7"


def test_all_flags_of_all_events_are_there_at_once() -> None:
    numbered = [(event, event_id) for event in HardEvent for event_id in range(8)]
    execute_anyway(
        *(set_flag(*each) for each in numbered), *(wait_flag(*each) for each in reversed(numbered))
    )


def test_a_set_after_the_wait_on_its_own_pipe_comes_too_late() -> None:
    """V waits for MTE2, which waits for V, which would set that flag after its wait."""
    circle: tuple[Instruction, ...] = (
        wait_flag(HardEvent.MTE2_V),
        set_flag(HardEvent.V_MTE2),
        wait_flag(HardEvent.V_MTE2),
        set_flag(HardEvent.MTE2_V),
    )
    for copy_completion in COPY_COMPLETIONS:
        text = fault_of(Listing({0: circle}), copy_completion=copy_completion)
        assert text in (
            "core 0, instruction 0 (WaitFlag MTE2_V 0): waits for ever: MTE2, which sets this flag "
            "in instruction 3 (SetFlag MTE2_V 0), is stuck in instruction 2 (WaitFlag V_MTE2 0): a "
            "dead-lock",
            "core 0, instruction 2 (WaitFlag V_MTE2 0): waits for ever: V, which sets this flag in "
            "instruction 1 (SetFlag V_MTE2 0), is stuck in instruction 0 (WaitFlag MTE2_V 0): a "
            "dead-lock",
        )
    wait, give, take, answer = circle
    execute_anyway(give, take, answer, wait)
    # The order in which the scalar pipe issues does not matter between the two.
    execute_anyway(take, answer, give, wait)


def test_a_dead_lock_of_three_pipes() -> None:
    circle = (
        wait_flag(HardEvent.MTE3_MTE2),
        set_flag(HardEvent.MTE2_V),
        wait_flag(HardEvent.MTE2_V),
        set_flag(HardEvent.V_MTE3),
        wait_flag(HardEvent.V_MTE3),
        set_flag(HardEvent.MTE3_MTE2),
    )
    for copy_completion in COPY_COMPLETIONS:
        text = fault_of(Listing({0: circle}), copy_completion=copy_completion)
        assert text.startswith("core 0, instruction ")
        assert text.endswith(": a dead-lock")
    execute_anyway(*circle[1:], circle[0])


def test_the_scalar_pipe_issues_nothing_while_it_waits() -> None:
    set_it, wait = flag(HardEvent.V_S)
    assert fault_at(0, wait, set_it) == "waits for ever: no instruction sets this flag"
    execute_anyway(set_it, wait)


def test_a_barrier_for_all_pipes_does_not_pass_a_pipe_that_waits() -> None:
    set_it, wait = flag(HardEvent.MTE2_V)
    assert "waits for ever" in fault_at(0, wait, FENCE, set_it)
    execute_anyway(wait, set_it, FENCE)
    execute_anyway(set_it, FENCE, wait)


def test_a_barrier_of_one_pipe_waits_for_no_other() -> None:
    set_it, wait = flag(HardEvent.MTE2_V)
    execute_anyway(wait, PipeBarrier(of=Pipe.MTE2), set_it, PipeBarrier(of=Pipe.V))


@every_event_that_waits_here
def test_a_long_queue_waits_as_well_as_a_short_one(event: HardEvent) -> None:
    """More instructions than any window of issue hold behind a wait that is answered at last."""
    on_pipe = {
        Pipe.V: Duplicate(dst=ub(), value=1, count=1),
        Pipe.MTE3: copy_out(y_at(), ub(), count=0),
        Pipe.MTE2: copy_in(ub(64), x_at(), count=0),
    }[event.waiter]
    behind = (on_pipe, PipeBarrier(of=event.waiter)) * 100
    set_it, wait = flag(event)
    execute_anyway(wait, *behind, set_it)
    assert "waits for ever" in fault_at(0, wait, *behind)


def test_what_every_pipe_knows_to_be_done_is_forgotten() -> None:
    known = hazards.Hazards(str)
    for index in range(1000):
        known.access(index, Pipe.V, Effect())
        known.barrier(Pipe.ALL)
    assert sum(map(len, known._in_flight.values())) <= hazards._KEPT


def test_a_pipe_that_reads_late_writes_waits_for_them() -> None:
    known = hazards.Hazards(str)
    region = Region(space="ub", start=0, width=32)
    known.access(0, Pipe.V, Effect(late_writes=(region,)))
    with pytest.raises(SimulatorFault, match="no flag or barrier puts V before MTE3"):
        known.access(1, Pipe.MTE3, Effect(reads=(region,)))


def test_flags_are_those_of_one_core() -> None:
    set_it, wait = flag(HardEvent.MTE2_V)
    text = fault_of(Listing({0: [set_it, wait], 1: [wait]}))
    assert text == (
        "core 1, instruction 0 (WaitFlag MTE2_V 0): waits for ever: no instruction sets this flag"
    )
    text = fault_of(Listing({0: [set_it], 1: [wait]}))
    assert text.startswith("core 0, instruction 0 (SetFlag MTE2_V 0): is never waited for")
