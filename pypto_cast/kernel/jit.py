"""jit: a function over tensors becomes a kernel that is called with arrays."""

from __future__ import annotations

import copy
import dataclasses
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Literal, overload

from ascend_kernels import npu
from pypto_cast.call_sites import Place, asked_at, silenced, warn_caller, warnings_held
from pypto_cast.cast.npu import HostCopies
from pypto_cast.dtypes.data_types import TileOpFormat
from pypto_cast.error import ParserError, error_of
from pypto_cast.kernel.certainty import Certainty, Remedy, announce, remedies
from pypto_cast.kernel.choices import (
    OtherRelease,
    Outputs,
    judged,
    other_release,
    resting_on_readings,
    resting_on_release,
)
from pypto_cast.kernel.kernel_source import (
    BEFORE_NEW_IR,
    Signature,
    inner,
    outermost,
    parsed,
    reassigned,
    refused_statements,
    signature_of,
    written_parameters,
)
from pypto_cast.kernel.listing import Cost, Estimate, KernelProgram, checked_model, estimated
from pypto_cast.kernel.scheduled import (
    TensorForms,
    UnplannedKernelWarning,
    check_options,
    check_planned,
    check_schedule,
    execute,
    formats_and_shapes,
)
from pypto_cast.loading import entry
from pypto_cast.options.context import Scope, Settings, current, options, running_on
from pypto_cast.options.hints import GROUPS, JitOptions, check_jit_option
from pypto_cast.recording import recording, steps, tally
from pypto_cast.recording.output_writing import settle
from pypto_cast.recording.recording import Recording
from pypto_cast.tensors.arguments import TensorAnnotation
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.unfinished import held_back
from pypto_cast.unsupported import UpstreamRefusalError, tolerate
from simulator.arithmetic.trust import Assumption
from simulator.numbers import float_environment
from tiling.plan import TilePlan

if TYPE_CHECKING:  # loaded when a schedule is asked for
    from ascend_kernels.schedule.planner.tiles.tile_graph import KernelGraphs, TileGraph
    from ascend_kernels.schedule.schedule import Schedule
    from pypto_cast.kernel.task_estimate import TaskEstimate
    from pypto_cast.kernel.tuned_kernel import TunedKernel
    from pypto_cast.recording.plan_tape import PlanTape

_NO_RETURN = "Return statements are not allowed: a kernel writes its outputs in place, out[:] = ..."


class Kernel:
    """A function made a kernel by `jit`.

    Calling it takes torch CPU tensors or numpy arrays for its tensor parameters, by position, then
    anything else; where it runs on an NPU, tensors on that too. It writes its outputs in place once
    all of it succeeded, and returns nothing; if it raises, every array is as it was. Ctrl-C while
    outputs are written raises KeyboardInterrupt once all of them are. Tile shapes set inside end
    with it. What is not an output is never modified; an array that Python changes meanwhile may be
    read later. A call inside another kernel takes its tensors, and runs where that one does.
    """

    def __init__(
        self, function: Callable[..., None], jit_options: JitOptions, names: Mapping[str, Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self.options = jit_options
        self.run_mode = jit_options.run_mode
        self._hints = {name: hint for name, hint in jit_options.hints.items() if hint is not None}
        self._function = function
        self._signature = signature_of(function, names)

    @recording.replayable
    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Run the kernel.

        Raises:
            TypeError: an argument of another kind or dtype than annotated, a return value, or an
                operation that is not in upstream's kernels or not in this package.
            ValueError: a shape other than annotated, or outputs that share memory with something;
                a schedule of another kernel, or options that it does not follow.
            UpstreamRefusalError: it assigns to a tensor parameter; or, under
                `options(strict=True)`, what else upstream refuses.
            SimulatorFault, NotExecutedError: under `options(schedule=...)`; see `Schedule.run`.
            NpuError: the kernel runs on an NPU (it asks for RunMode.NPU, and a device answers) and
                the library for it is not built, or a cast is none that the device does. Where no
                device answers it runs in the simulator, and a log line says why.

        Warns:
            DynamicOperandWarning: an operation on a dynamic dimension.
            UpstreamRefusalWarning: what else upstream refuses.
            UnplannedKernelWarning: at fidelity "instructions", a kernel of which no schedule is
                planned; an error under `strict`.
        """
        outer = recording.current()
        if outer is not None:
            with outer.undone_on_error():
                self._run(outer, arguments, named, is_nested=True)
            return
        own = self._recording(bounds=tally.is_counting() and current().schedule is None)
        run_mode = npu.find().run_mode if self.run_mode is npu.RunMode.NPU else npu.RunMode.SIM
        copies = HostCopies()
        if run_mode is npu.RunMode.NPU:
            npu.load()
            arguments = tuple(copies.of(value) for value in arguments)
            named = {name: copies.of(value) for name, value in named.items()}
        with recording.running(own), running_on(run_mode):
            self._run(own, arguments, named)
            outputs, ran = self._outputs(own) if own.bounds else (), own
            if own.bounds and own.numbers.came_later():
                outputs, ran = self._again(own, arguments, named)
            if own.bounds and run_mode is npu.RunMode.SIM:
                outputs, _ = self._judged(outputs, ran, arguments, named)
            settle(own.buffers)
            with held_back():
                changed = own.commit()
                for value in (*arguments, *named.values()):
                    if isinstance(value, Tensor):
                        value.take_results(changed)
                copies.send_back(buffer.owner for buffer in changed)
                steps.remember(changed)
            own.count(outputs)

    def _recording(self, **fields: Any) -> Recording:
        new_ir = self.options.new_ir is not False
        return Recording(kernel=self._signature.kernel, new_ir=new_ir, **fields)

    def _again(self, ran: Recording, *given: Any, **fields: Any) -> tuple[Outputs, Recording]:
        """Another run for its bounds, which knows the numbers that come later."""
        other = self._recording(bounds=True, numbers=ran.numbers.for_next_run(), **fields)
        with silenced(), recording.running(other):
            self._run(other, *given)
            return self._outputs(other), other

    @property
    def signature(self) -> Signature:
        """The parameters."""
        return self._signature

    def with_tensors(self, tensors: Mapping[str, TensorAnnotation]) -> Kernel:
        """The same kernel with other annotations of its tensors, by their names."""
        other = copy.copy(self)
        held = {**self._signature.tensors, **tensors}
        other._signature = dataclasses.replace(self._signature, tensors=held)
        return other

    def certainty(self, *arguments: Any, **named: Any) -> Certainty:
        """The results of a call and, for each element, the range that a device may give instead.

        Takes what a call takes, and runs in the simulator; no array is written. The function runs
        again without the named choices, to tell which results rest on them, and where operations
        depend on upstream's release twice more under the other one, for `other_release`.

        Raises:
            TypeError, ValueError: as for a call; under `options(schedule=...)`.
            RuntimeError: inside a kernel.
        """
        from pypto_cast.recording.suppositions import is_supposing

        found = self._certainty(arguments, named, is_judged=not is_supposing())
        announce(found)
        return found

    def _certainty(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], *, is_judged: bool = False
    ) -> Certainty:
        from simulator.arithmetic.remembered_results import remembering

        if recording.current() is not None:
            raise RuntimeError(f"{self!r}.certainty is asked for outside kernels only")
        if current().schedule is not None:
            raise ValueError(
                f"{self!r}.certainty is of the tensor level, and a schedule has no intervals: ask "
                "for it outside options(schedule=...), at the schedule's release"
            )
        own, other = self._recording(bounds=True), None
        with remembering(), recording.running(own):
            self._run(own, arguments, named)
            outputs, ran = self._outputs(own), own
            if own.numbers.came_later():
                outputs, ran = self._again(own, arguments, named)
            if is_judged:
                outputs, other = self._judged(outputs, ran, arguments, named)
        for output in outputs:
            steps.remember_array(output.values, output.values, ran.held(output.name).patches)
        facts = current().facts
        casts = (record.program.resolution for record in ran.records)
        return Certainty(
            outputs=outputs,
            kernel=ran.kernel,
            standing="" if facts is None else facts.standing(casts, is_computed=True),
            release=str(current().followed_release),
            other_release=other,
        )

    def _outputs(self, ran: Recording) -> Outputs:
        """The outputs of a run; another way through the kernel may write to more."""
        return ran.outputs(written_parameters(self._function) if ran.control_dependence else ())

    @float_environment.quiet()
    def _judged(
        self,
        outputs: Outputs,
        ran: Recording,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> tuple[Outputs, OtherRelease]:
        """The outputs of a run, with the choices that their certain elements rest on; by documents
        those of the other release too.
        """

        def again(**fields: Any) -> tuple[Outputs, frozenset[Assumption]]:
            found, other = self._again(ran, arguments, named, **fields)
            return found, other.assumed

        def by_choices(found: Outputs, assumed: frozenset[Assumption]) -> Outputs:
            return judged(found, assumed, lambda asked: again(by_documents=True, asked=asked)[0])

        other = other_release(
            outputs,
            ran.release_dependence,
            lambda: by_choices(*again()),
            lambda name: ran.certainty_of(ran.held(name)),
        )
        found = resting_on_release(by_choices(outputs, ran.assumed), other, ran.doubts_release)
        found = resting_on_readings(found, ran, lambda: again()[0])
        names = [buffer.name for buffer in ran.buffers]
        return tuple(sorted(found, key=lambda output: names.index(output.name))), other

    def remedies(self, *arguments: Any, most: int = 3, **named: Any) -> tuple[Remedy, ...]:
        """Ways to settle the results that the heaviest causes leave open; see `what_if`.

        Args:
            arguments, named: as for a call.
            most: the number of causes; each takes three more runs.
        """
        return remedies(lambda: self._certainty(arguments, named), most)

    def program(self, *arguments: Any, **named: Any) -> KernelProgram:
        """The casts of a call, how the cores do them, and the operations around them.

        Nothing is computed or written. Takes what a call takes; `pypto.tensor(shape, dtype)` does
        instead of an array.
        """
        name = self._signature.kernel
        own = self._recorded(arguments, named)
        return KernelProgram(kernel=name, casts=tuple(own.records), steps=tuple(own.steps))

    def tensor_graphs(self, *arguments: Any, **named: Any) -> tuple[TileGraph, ...]:
        """The operations of a call by their tile opcodes, over whole tensors; see `program`.

        One graph of each run of operations that is compiled by itself, as each path through a
        loop's body is. AutoCast's casts are those of the release of `options(release=)`.

        Raises:
            PlanError: an operation whose tile opcodes are not known, or control flow that is not
                planned; names its line.
        """
        from pypto_cast.recording.plan_tape import PlanTape

        return self._graphs(self._recorded(arguments, named, PlanTape())).graphs

    def _recorded(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], tape: PlanTape | None = None
    ) -> Recording:
        """The recording of a call that computes nothing, or that a schedule is planned of."""
        own = self._recording(executes=False, tape=tape)
        with recording.running(own):
            try:
                self._run(own, arguments, named)
            except (NameError, IndexError, TypeError, ValueError) as error:
                why = "" if own.tape is None else own.tape.why_never(error)
                if not why:
                    raise
                message = f"{self._signature.kernel}: {error}{why}"
                raise entry("PlanError")(message) from None
        return own

    def _graphs(self, recorded: Recording) -> KernelGraphs:
        return self._graphs_of(recorded, recorded.calls or [])

    def _graphs_of(self, recorded: Recording, calls: Sequence[Any]) -> KernelGraphs:
        """The graphs of a recording's events, or of those in their place."""
        from pypto_cast.kernel.graph.tensor_graph import tensor_graphs

        count = len(self._signature.tensors)
        with recording.running(recorded):
            return tensor_graphs(self._function, calls, current().release, parameters=count)

    def schedule(self, *arguments: Any, **named: Any) -> Schedule:
        """The tile program of a call as upstream's compiler would make it: tasks, UB, flags.

        Planned without its wheel, by the passes of release 0.2.0, for the chip of `options(chip=)`;
        AutoCast's casts are those of `options(release=)`. Takes what `program` takes; values are
        not looked at. `Schedule.run` executes it, as `options(schedule=)` does in a call.

        Raises:
            PlanError: an operation or a control flow that is not planned, or more in UB at one
                moment than it holds; names operation and line. Or options that a schedule does not
                follow. Nothing is planned in part.
        """
        from pypto_cast.kernel.reports.schedule_report import with_notebook

        return with_notebook(self._planned(arguments, named)[0])

    def _planned(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[Schedule, Recording]:
        """The schedule of a call, and the recording that it is planned of."""
        recorded, tensors = self._recorded_for_plan(arguments, named)
        return self._planned_of(self._graphs(recorded), tensors), recorded

    def _planned_of(self, graphs: KernelGraphs, tensors: TensorForms) -> Schedule:
        """The schedule of the graphs of a recording; see `schedule`."""
        from ascend_kernels.schedule.planner.kernel_plan import planned_schedule

        return planned_schedule(
            graphs,
            tensors,
            kernel=self._signature.kernel,
            release=current().release,
            chip=current().chip,
        )

    def _recorded_for_plan(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[Recording, TensorForms]:
        """The recording of a call that is to be planned, and format and shape of its tensors."""
        from ascend_kernels.schedule.planner.kernel_plan import check_shapes
        from pypto_cast.kernel.graph.loop_runs import recorded_for_plan

        check_options(self._signature)
        for name, annotation in self._signature.tensors.items():
            if annotation.format is not TileOpFormat.TILEOP_ND:
                raise entry("PlanError")(
                    f"{self._signature.kernel}: {name} has the layout {annotation.format.name}; a "
                    "schedule takes TILEOP_ND"
                )
        if not parsed(self._function)[0]:
            raise entry("PlanError")(
                f"{self._signature.kernel}: its source cannot be read, and the plan goes by the "
                "names in it; define the kernel in a file"
            )
        tensors = formats_and_shapes(self._signature, arguments, named)
        check_shapes(self._signature.kernel, tensors)
        return recorded_for_plan(functools.partial(self._recorded, arguments, named)), tensors

    def tune(
        self, *arguments: Any, top: int = 10, seconds: float = 60, processes: int = 1, **named: Any
    ) -> TunedKernel:
        """The tile shapes for the calls of `set_vec_tile_shapes`, ranked by planned cycles.

        Takes what `schedule` takes; nothing is computed and the kernel stays as it is.

        Args:
            arguments, named: of a call.
            top: candidates to show, 1 or more.
            seconds: from then on no further candidate is planned once one fits.
            processes: that plan; they are spawned, and a script has to guard its main part.

        Raises:
            PlanError: as `schedule`; a kernel without such a call; or no candidate fits.
            ValueError: `top` or `processes` below 1.
        """
        asked = {"top": top, "seconds": seconds, "processes": processes}
        found: TunedKernel = entry("tune_kernel")(self, arguments, named, **asked)
        return found

    def _silently_planned(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Schedule:
        with silenced():
            return self._planned(arguments, named)[0]

    def _is_executed_as_planned(
        self, running: Recording, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> bool:
        """Execute the schedule of a call at fidelity "instructions"; False: the function runs.

        Raises:
            PlanError: none is planned, under `strict`.

        Warns:
            UnplannedKernelWarning: none is planned.
        """
        settings = current()
        if settings.fidelity != "instructions" or settings.run_mode is npu.RunMode.NPU:
            return False
        with warnings_held() as give:
            try:
                schedule, recorded = self._planned(arguments, named)
                if recorded.loops_at:  # of a loop it has one iteration a path
                    with silenced():
                        recorded = self._recorded(arguments, named)
                check_planned(schedule, running)
            except entry("PlanError") as error:
                if settings.strict:
                    raise
                reason = str(error)
            else:
                reason = ""
        if not reason:
            give()
            execute(schedule, self._signature, running, recorded=lambda: recorded)
            return True
        warn_caller(
            f"{self._signature.kernel} runs cast by cast, not as a schedule: {reason}",
            UnplannedKernelWarning,
        )
        return False

    def plan(self, *arguments: Any, **named: Any) -> tuple[TilePlan, ...]:
        """The tile plan of each cast of a call; see `program`."""
        return self.program(*arguments, **named).plans

    @overload
    def estimate(self, *arguments: Any, model: Literal["tasks"], **named: Any) -> TaskEstimate: ...

    @overload
    def estimate(
        self, *arguments: Any, cost: Cost = None, model: Literal["loop"] | None = None, **named: Any
    ) -> Estimate: ...

    def estimate(
        self, *arguments: Any, cost: Cost = None, model: str | None = None, **named: Any
    ) -> Estimate | TaskEstimate:
        """The cycles of a call: of its `schedule`, or (model "loop", None) of its casts alone.

        Of casts by a cost set or its name; None takes that of `options(facts=...)`, or the default.
        """
        if checked_model(model, cost) == "tasks":
            found: TaskEstimate = entry("TaskEstimate").of(self.schedule(*arguments, **named))
            return found
        return estimated(self.program(*arguments, **named), cost)

    def __repr__(self) -> str:
        tensors = ", ".join(f"{name}: {a}" for name, a in self._signature.tensors.items())
        return f"<kernel {self._signature.kernel}({tensors})>"

    @functools.cached_property
    def _reassigned(self) -> tuple[str, Place] | None:
        return reassigned(self._function, self._signature.tensors)

    def _check_statements(self) -> None:
        """Refuse an assignment to a tensor parameter; warn of statements that upstream refuses.

        Raises:
            UpstreamRefusalError: such an assignment; such a statement, under `strict`.
        """
        name = self._signature.kernel
        if self._reassigned is not None and not current().followed_release.rebinds_parameters:
            tensor, (file, line) = self._reassigned
            text = f"{name}: line {line} of {file} assigns to the parameter {tensor}. Input tensor"
            text += f" {tensor!r} cannot be reassigned; write {tensor}[:] = ... instead"
            raise error_of(ParserError, UpstreamRefusalError, text)
        self._tolerate_statements()

    def _tolerate_statements(self, loops_at: frozenset[Place] = frozenset()) -> None:
        """Warn of statements that upstream refuses, once a run; see `refused_statements`."""
        name, strict = self._signature.kernel, current().strict
        parser: str = current().release
        if parser == "head" and self.options.new_ir is False:
            parser = BEFORE_NEW_IR
        for place, reason, parsers in refused_statements(self._function, loops_at):
            if parser in parsers:
                with asked_at(place):
                    tolerate(f"{name}: {reason}", strict=strict, family=ParserError)

    def _run(
        self,
        running: Recording,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        *,
        is_nested: bool = False,
    ) -> None:
        self._check_statements()
        schedule = current().schedule if running.executes else None
        if not is_nested and running.tape is None:
            context = copy_context()
            running.plan = lambda: context.copy().run(self._silently_planned, arguments, named)
        if schedule is not None:
            check_schedule(schedule, self._signature, self._function, is_nested=is_nested)
        values, others = self._signature.split(arguments, named)
        tensors = {}
        for (name, annotation), value in zip(self._signature.tensors.items(), values, strict=True):
            label = f"{self._signature.kernel}: {name}"
            if isinstance(value, Tensor) and (is_nested or not running.executes):
                annotation.check(label, tuple(value.shape), value.dtype)
                tensors[name] = inner(name, value, annotation, running, is_nested=is_nested)
            else:
                tensors[name] = outermost(label, name, value, annotation, running)
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        self._signature.check_dimensions(shapes)
        if schedule is not None:
            recorded = functools.partial(self._recorded, arguments, named)
            execute(schedule, self._signature, running, others, recorded=recorded)
            return
        takes_plan = running.executes and not running.bounds and not is_nested
        if takes_plan and self._is_executed_as_planned(running, arguments, named):
            return
        with options(**self._hints) if self._hints else Scope(current()):
            returned: object = self._function(*tensors.values(), **others)
        self._tolerate_statements(frozenset(running.loops_at))
        if returned is not None:
            text = f"{self._signature.kernel} returned {returned!r}. {_NO_RETURN}"
            raise error_of(ParserError, TypeError, text)


@overload
def jit(function: Callable[..., None]) -> Kernel: ...


@overload
def jit(
    *,
    host_options: Settings | None = None,
    codegen_options: Settings | None = None,
    pass_options: Settings | None = None,
    runtime_options: Settings | None = None,
    verify_options: Settings | None = None,
    debug_options: Settings | None = None,
    infer_controlflow_shape: object = None,
    use_cache: bool | None = None,
    new_ir: bool | None = None,
    create_new_logical_tensor: bool | None = None,
) -> Callable[[Callable[..., None]], Kernel]: ...


def jit(
    function: Callable[..., None] | None = None, **settings: Any
) -> Kernel | Callable[[Callable[..., None]], Kernel]:
    """Make a kernel of a function, as `@pypto.jit` or `@pypto.jit(runtime_options={...})`.

    Args:
        function: its tensor parameters come first, annotated `pypto.Tensor[[shape], dtype]`.
        settings: upstream's options; what is called `..._options` is a dict. The default is
            `runtime_options={"run_mode": pypto.RunMode.SIM}`; the others change no bit and are kept
            for upstream; an `IgnoredSettingWarning` names those that would show something there.

    Raises:
        TypeError: no function, annotations that say no tensor, or options that are no dicts or
            hold values of other types than upstream's.
        ValueError: an unknown run mode, or a value that upstream refuses.
    """
    if function is not None and not callable(function):
        raise TypeError(f"jit takes a function, not {function!r}; its options are given by name")
    for name, value in settings.items():
        if name not in JitOptions.__dataclass_fields__:
            known = ", ".join(JitOptions.__dataclass_fields__)
            raise TypeError(f"jit has no option {name!r}; it has {known}")
        if name in GROUPS and not isinstance(value, Mapping | None):
            raise TypeError(f"jit: {name} must be a dict, not {value!r}")
        check_jit_option(name, value)
    jit_options = JitOptions(**settings)
    names = dict(sys._getframe(1).f_locals)
    if function is not None:
        return Kernel(function, jit_options, names)
    return lambda decorated: Kernel(decorated, jit_options, names)
