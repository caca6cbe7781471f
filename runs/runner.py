"""Drives a reasoner: each step is stored before its tool runs and completed after, within limits, until it ends.

The reasoner works in one thread, and so do tools and skills, unless branches call several at the same time. They report
to the driver through a queue; it abandons them when the run is stopped or reaches its time limit: both take effect at
once even if a tool or a model hangs, and a late result is dropped.

In each round every branch that can go on makes one move: a tool call, or, if no branch has one, a call of a skill. The
steps of a round are stored in the order of the branches and executed together; the next begins when all are done.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Any, Protocol
from uuid import UUID

from showhow.db.database import StoreError
from showhow.db.models import WAITING, ModelCall, Step
from showhow.db.questions.answer_formats import InvalidAnswer
from showhow.db.run_spec import RunLimits
from showhow.db.runs.runs import RunOutcome
from showhow.db.traces.recording import StepResult
from showhow.llm.errors import ChatError
from showhow.llm.usage import Usage
from showhow.reasoners.base import (
    Action,
    FinalAnswer,
    Parallel,
    QuestionRefused,
    Reasoner,
    ReasonerError,
    StepCompletion,
    Task,
    to_step_result,
)
from showhow.reasoners.shots import fit_shots
from showhow.reasoners.skills.skill import (
    ModelResponder,
    SkillCall,
    SkillResult,
    answer_skill_call,
    skill_step_data,
)
from showhow.reasoners.skills.values import UNSUPPORTED
from showhow.runs.branch_workers import (
    CancellableWorkers,
    PersonAwaited,
    RunStopped,
    Strand,
    list_successors,
    next_move,
)
from showhow.runs.budget import BudgetMeter, CallCounts, RunLimitExceeded
from showhow.runs.model_call_recorder import current_step, working_on_step
from showhow.runs.recorders import NO_OUTCOME, RecordedSteps, StepRecorder, read_recorded, to_new_step
from showhow.runs.reply_tally import ReplyTally
from showhow.tools.arguments import ToolError
from showhow.tools.read import read
from showhow.tools.tool import ToolContext, ToolResult
from showhow.worlds.source import ErrorKind, SourceError


class RunRecorder(StepRecorder, Protocol):
    """Records one run in the database or in memory (runs/recorders.py)."""

    @property
    def trace_id(self) -> UUID:
        """The id of the run's trace."""

    @property
    def recorded_steps(self) -> list[Step]:
        """The stored steps; tool calls and open steps among them may be unfinished."""

    @property
    def reusable_steps(self) -> Sequence[Step]:
        """Steps of the trace that it was forked from, whose results the run takes where they apply."""

    @property
    def usage(self) -> Usage:
        """The usage of the run's model calls so far, without that of the unused replies."""

    @property
    def calls_of_no_step(self) -> int:
        """How many of these calls no step has."""

    @property
    def unused_replies(self) -> Sequence[ModelCall]:
        """Replies that an earlier process stored and did not use; the run takes those that it asks for."""

    def finish(self, outcome: RunOutcome) -> None:
        """Store the outcome of the run."""


@dataclass(frozen=True, slots=True)
class RunControl:
    """The limits, the stop event and the text callback of a run."""

    limits: RunLimits = field(default_factory=RunLimits)
    stop: Event = field(default_factory=Event)
    on_text: Callable[[str], None] | None = None
    """Called with the model's text deltas in the thread that drives the run; None turns streaming off."""
    concurrency: int = 8
    """How many tools and skills of branches work at the same time."""


def run_reasoner(
    reasoner: Reasoner, task: Task, recorder: RunRecorder, control: RunControl | None = None
) -> RunOutcome:
    """Run the reasoner on the task's question; store and return the outcome.

    The recorder's steps are kept: unfinished tool calls are run first, and open steps without a tool are left to the
    reasoner. A StoreError leaves the trace unfinished, to be resumed; any other exception is a programming error, which
    fails the trace and is raised.
    """
    telemetry = task.context.telemetry
    if telemetry is None:
        return _run_recorded(reasoner, task, recorder, control or RunControl())
    with telemetry.agent_run(reasoner.name, task.question, recorder.trace_id) as span:
        outcome = _run_recorded(reasoner, task, recorder, control or RunControl())
        span.set_attributes({"showhow.ending": outcome.ending})
        if outcome.ending == "failed":
            span.set_error(outcome.ending, outcome.failure or "")
        if outcome.answers is not None:
            answer = {"type": "text", "content": outcome.answers.final_answer}
            span.set_content("gen_ai.output.messages", [{"role": "assistant", "parts": [answer]}])
        return outcome


def _run_recorded(reasoner: Reasoner, task: Task, recorder: RunRecorder, control: RunControl) -> RunOutcome:
    driver = _RunDriver(task, recorder, control)
    try:
        outcome = driver.run(reasoner)
    except StoreError:
        raise
    # Every other exception, also KeyboardInterrupt, is recorded as the trace's failure and raised again: a trace on
    # which no process works must not stay a draft.
    except BaseException as fault:
        recorder.finish(driver.make_result("failed", f"a fault of the program ended it: {type(fault).__name__}"))
        raise
    recorder.finish(outcome)
    return outcome


@dataclass(slots=True)
class _Job:
    """A move of a strand that takes time: a tool to call, or a skill to ask."""

    strand: Strand
    move: Action | SkillCall[Any, Any]
    seconds: float
    """The time that the reasoner took to decide."""
    step: Step | None = None


_UNSUPPORTED_REASON = "The method names no source that states its answer, and its own knowledge is not to be used"


class _RunDriver:
    """Drives one run."""

    def __init__(self, task: Task, recorder: RunRecorder, control: RunControl) -> None:
        self._recorder = recorder
        self._control = control
        unused = (Usage(**(call.usage or {})) for call in recorder.unused_replies)
        self._meter = BudgetMeter(control.limits, len(recorder.recorded_steps), recorder.usage, current_step, unused)
        self._workers = CancellableWorkers(control.on_text)
        task = _set_model_deadline(task, control.limits.seconds)
        if (chat := task.context.chat) is not None:
            task = replace(task, context=replace(task.context, chat=chat.with_gate(self._meter)))
        task = replace(task, budget=lambda: self._meter.remaining(self._recorded.count_calls()))
        self._task = replace(task, on_text=self._workers.emit_text) if control.on_text is not None else task
        self._tools = {tool.name: tool for tool in task.tools}
        self._open_steps: dict[UUID, Step] = {}
        self._completed_before: set[UUID] = set()
        """Spans that the resumed run had completed."""
        self._recorded = RecordedSteps(())
        self._strands: list[Strand] = []
        self._replies = ReplyTally()
        self._awaited: list[Step] = []
        """Calls of skills whose replies a person has to write."""
        self._responder = task.responder or (None if task.context.chat is None else ModelResponder(task.context.chat))

    def run(self, reasoner: Reasoner) -> RunOutcome:
        """Run to the end and return the outcome."""
        try:
            final = self._task.write_dates(self._solve(reasoner))
        except RunStopped:
            return self.make_result("stopped", f"it was stopped after {_format_step_count(self._meter.steps)}")
        except (PersonAwaited, RunLimitExceeded) as error:
            return self.make_result(WAITING if isinstance(error, PersonAwaited) else "limit", str(error))
        except QuestionRefused as error:
            self._meter.expected_model_calls = error.expected_model_calls
            return self._make_refusal(str(error), error.reason or str(error))
        except (ReasonerError, ChatError, ToolError, SourceError) as error:
            return self._make_failure(error)
        self._settle_decision(final.usage)
        return self._judge_answer(reasoner.name, final)

    def _judge_answer(self, reasoner: str, final: FinalAnswer) -> RunOutcome:
        """The outcome of a run that came to its end: an answer, unless it has no form or rests on nothing."""
        try:
            answer = self._task.answer_format.normalize(final.answers.final_answer)
        except InvalidAnswer as error:
            is_empty = not final.answers.final_answer.strip()
            problem = "without an answer" if is_empty else f"with an answer that does not fit: {error}"
            return self.make_result("failed", f"{reasoner} came to an end {problem}")
        self._meter.expected_model_calls = final.expected_model_calls
        if final.details.get(UNSUPPORTED) or self._replies.unusable is not None:
            question = self._task.question
            return self._make_refusal(f"{_UNSUPPORTED_REASON}: {answer!r} for {question}", _UNSUPPORTED_REASON)
        return replace(
            self.make_result("answered", None),
            answers=replace(final.answers, final_answer=answer),
            details=final.details,
        )

    def _make_refusal(self, message: str, reason: str) -> RunOutcome:
        """The outcome of a run that refuses its question; a failure if no reply of the model said anything."""
        if (error := self._replies.unusable) is not None:
            return self.make_result("failed", f"The model gave no usable reply: {error}")
        return replace(self.make_result("refused", message), refusal_reason=reason)

    def _make_failure(self, error: Exception) -> RunOutcome:
        """The outcome of a run that this error ended."""
        if not isinstance(error, ChatError):
            return self.make_result("failed", str(error))
        self._meter.settle_rest(error)
        # The model's requests end with the time of the run.
        limit = self._meter.exceeded_time_limit
        return self.make_result("limit" if limit else "failed", limit or str(error))

    def make_result(self, ending: str, failure: str | None) -> RunOutcome:
        """The outcome of the run with its usage and seconds so far."""
        self._meter.settle_rest()
        usage = self._meter.usage.to_json() if self._meter.usage.calls else {}
        calls = self._meter.describe_calls()
        # Only gold replies can tell what follows from what was retrieved.
        if (conclude := getattr(self._responder, "conclude_from_retrieved", None)) and (retrieved := conclude()):
            calls["retrieved"] = retrieved
        return RunOutcome(ending, failure, usage=usage, seconds=self._meter.seconds, calls=calls)

    def _solve(self, reasoner: Reasoner) -> FinalAnswer:
        try:
            steps = self._complete_tool_calls()
            self._open_steps = {step.id: step for step in steps if step.finished_at is None}
            self._recorded = RecordedSteps(steps, self._recorder.reusable_steps)
            root = Strand(reasoner.name, reasoner.solve(replace(self._task, prior_steps=steps)))
            self._strands.append(root)
            jobs = self._advance([root])
            while not root.has_ended:
                if not jobs:
                    # Nothing but these replies lets any branch go on.
                    raise PersonAwaited(self._awaited)
                # Skills wait for the tools of other branches, so that the calls of a slow model go together.
                batch = [job for job in jobs if isinstance(job.move, Action)] or jobs
                held = [] if batch is jobs else [job for job in jobs if not isinstance(job.move, Action)]
                jobs = held + self._advance([job.strand for job in self._execute(batch)])
            final: FinalAnswer = root.result
            return final
        finally:
            self._workers.abandon(self._close_strands)

    def _close_strands(self) -> None:
        for strand in reversed(self._strands):
            strand.moves.close()

    def _advance(self, ready: Sequence[Strand]) -> list[_Job]:
        """Let each strand go on to its next move that takes time, in order; return these moves."""
        queue, jobs = deque(ready), list[_Job]()
        while queue:
            strand = queue.popleft()
            self._meter.check_model()
            before = self._meter.seconds
            move = self._workers.run(partial(next_move, strand), self._check_cancelled)
            if move is None:
                queue.extendleft(reversed(list_successors(strand)))
            elif isinstance(move, Parallel):
                queue.extendleft(reversed(self._fork(strand, move)))
            elif isinstance(move, StepCompletion):
                strand.received = self._complete_open_step(move)
                queue.appendleft(strand)
            elif isinstance(move, Action) and (move.tool is None or move.rejection is not None):
                strand.received = self._store_action(move, self._meter.seconds - before)
                queue.appendleft(strand)
            else:
                jobs.append(_Job(strand, move, self._meter.seconds - before))
        return jobs

    def _fork(self, strand: Strand, move: Parallel) -> list[Strand]:
        """Make the strands of the branches; return those that can begin, or the strand itself if there is none."""
        names = {branch.name for branch in move.branches}
        strand.branches = [Strand(branch.name, branch.moves, strand) for branch in move.branches]
        for child, branch in zip(strand.branches, move.branches, strict=True):
            child.waiting_for = set(branch.after & names)
        self._strands += strand.branches
        first = [child for child in strand.branches if not child.waiting_for]
        if strand.branches and not first:
            raise ReasonerError("the branches of a move wait for each other, so none can begin")
        if not first:
            strand.received = []
            return [strand]
        return first

    def _execute(self, jobs: Sequence[_Job]) -> list[_Job]:
        """Store the steps of the jobs in order and do them, several at the same time; return those that are done.

        The others wait for a person.
        """
        started = self._meter.seconds
        longest = 0.0
        done: list[_Job] = []

        def handle_result(number: int, result: ToolResult | SkillResult[Any]) -> None:
            nonlocal longest
            longest = max(longest, self._meter.seconds - started)
            done[number].strand.received = self._complete_job(done[number], result)

        exceeded: RunLimitExceeded | None = None

        def begin_jobs() -> Iterator[Callable[[], ToolResult | SkillResult[Any]]]:
            # What has begun before a limit is reached is finished and stored.
            nonlocal exceeded
            for job in jobs:
                try:
                    step = self._begin_job(job)
                except RunLimitExceeded as error:
                    exceeded = error
                    return
                if step.finished_at is None and self._is_played_by_person(job.move):
                    self._awaited.append(step)
                    continue
                done.append(job)
                yield partial(self._perform, step, job.move)

        self._workers.run_all(begin_jobs(), self._control.concurrency, self._check_cancelled, handle_result)
        self._meter.critical_path += longest
        if exceeded is not None:
            raise exceeded
        self._meter.check_retries()
        return done

    def _begin_job(self, job: _Job) -> Step:
        """Store the step of a job before it is done, or take the recorded one."""
        new = to_new_step(job.move, job.seconds)
        recorded = self._recorded.take(job.move, new)
        if recorded is not None:
            self._open_steps.pop(recorded.id, None)
            if recorded.finished_at is None:
                self._begin_call(job.move)
            job.step = recorded
            return recorded
        if isinstance(job.move, Action):
            self._settle_decision(job.move.usage)
        self._meter.check_steps()
        reused = self._recorded.take_later(job.move, new, self._meter.steps + 1)
        if reused is None:
            self._begin_call(job.move)
        else:
            self._meter.reused += 1
        self._meter.steps += 1
        job.step = self._recorder.begin(new)
        if reused is not None:
            job.step = self._recorder.complete(job.step, reused)
        return job.step

    def _begin_call(self, move: Action | SkillCall[Any, Any]) -> None:
        if not self._is_played_by_person(move):
            self._meter.begin_call(is_skill=isinstance(move, SkillCall))

    def _is_played_by_person(self, move: Action | SkillCall[Any, Any]) -> bool:
        return isinstance(move, SkillCall) and move.skill.name in self._task.person_skills

    def _perform(self, step: Step, move: Action | SkillCall[Any, Any]) -> ToolResult | SkillResult[Any]:
        """Call the tool or ask the skill of a step, in a thread of the run."""
        if step.finished_at is not None:
            return read_recorded(step, move)
        return self._call_tool(step) if isinstance(move, Action) else self._ask_skill(step, move)

    def _call_tool(self, step: Step) -> ToolResult:
        tool = self._tools.get(step.tool or "")
        if tool is None:
            error = f"there is no tool {step.tool} here; use one of {', '.join(self._tools)}"
            return ToolResult(observation=None, error=error, seconds=0.0, error_kind=ErrorKind.UNAVAILABLE)
        with working_on_step(step.id):
            return tool.call(self._context_of(step), step.arguments)

    def _context_of(self, step: Step) -> ToolContext:
        """The context of a step's tool, without a model where that would answer what the method answers itself.

        The steps of methods have a node; what they read are passages. A tool that writes a query needs the model.
        """
        takes_passages = step.node is not None and step.tool == read.__name__
        context = self._task.context
        return replace(context, chat=None) if takes_passages else context

    def _ask_skill(self, step: Step, call: SkillCall[Any, Any]) -> SkillResult[Any]:
        if self._responder is None:
            raise ReasonerError(
                "This reasoner needs a language model: add a profile on the Settings page, or use the reasoner replay."
            )
        choose, chat = self._task.choose_shots, self._task.context.chat
        if choose is not None and not call.shots:
            call = replace(call, shots=choose(call))
        if chat is not None:
            call = fit_shots(call, chat.profile)
        with working_on_step(step.id):
            return replace(answer_skill_call(self._responder, call, self._meter.begin_retry), shots=call.shots)

    def _complete_job(self, job: _Job, result: ToolResult | SkillResult[Any]) -> ToolResult | SkillResult[Any]:
        """Store and count the result of a job, unless its step was finished before; return it with its step."""
        step = job.step
        if step is None:
            raise ReasonerError("a result came for a step that was never stored")
        if step.finished_at is None and isinstance(result, ToolResult):
            self._complete_tool_step(step, result)
            self._meter.end_tool()
        elif step.finished_at is None and isinstance(result, SkillResult):
            self._complete_skill_step(step, result)
            self._meter.end_skill(len(result.attempts), result.usage, step.id)
        if isinstance(result, SkillResult) and isinstance(job.move, SkillCall):
            self._replies.add(job.move.skill, result)
        return replace(result, step_id=step.id, step_position=step.position)

    def _complete_tool_step(self, step: Step, result: ToolResult) -> Step:
        usage = result.usage or Usage()
        self._meter.settle(usage.calls, usage, step.id)
        return self._recorder.complete(step, to_step_result(result))

    def _complete_skill_step(self, step: Step, result: SkillResult[Any]) -> None:
        usage = None if result.usage is None else result.usage.to_json()
        failure = result.error if result.reply is None else None
        self._recorder.complete(
            step,
            StepResult(
                text=None if result.reply is None else str(result.reply),
                data=skill_step_data(result),
                error=failure,
                latency=None,
                usage=usage,
                error_kind=None if failure is None else str(ErrorKind.MODEL),
            ),
        )

    def _settle_decision(self, usage: Mapping[str, Any] | None) -> None:
        """Count the model calls that decided an action, the completion of a step or the answer."""
        if usage:
            self._meter.settle(int(usage.get("calls", 0)), Usage(**usage))

    def _store_action(self, action: Action, seconds: float) -> ToolResult:
        """Store a step that calls no tool."""
        new = action.to_new_step(seconds)
        step = self._recorded.take(action, new)
        if step is None:
            self._settle_decision(action.usage)
            self._meter.check_steps()
            self._meter.steps += 1
            step = self._recorder.begin(new)
            if step.finished_at is None:
                self._open_steps[step.id] = step
        elif step.finished_at is not None:
            self._completed_before.add(step.id)
        outcome = NO_OUTCOME
        if action.rejection is not None:
            outcome = ToolResult(None, action.rejection, 0.0, error_kind=ErrorKind.WRONG_ARGUMENTS)
        return replace(outcome, step_id=step.id, step_position=step.position)

    def _complete_tool_calls(self) -> list[Step]:
        """Run the tools of unfinished steps; return the recorded steps. Steps without a tool stay open."""
        steps = self._recorder.recorded_steps
        for index, step in enumerate(steps):
            if step.finished_at is None and step.tool is not None:
                result = self._workers.run(partial(self._call_tool, step), self._check_cancelled)
                steps[index] = self._complete_tool_step(step, result)
        self._meter.calls = CallCounts.from_steps(steps)
        self._meter.calls.model_calls += self._recorder.calls_of_no_step
        return steps

    def _complete_open_step(self, completion: StepCompletion) -> ToolResult:
        if completion.step in self._completed_before:
            return NO_OUTCOME
        step = self._open_steps.pop(completion.step, None)
        if step is None:
            raise ReasonerError(f"the step {completion.step} is not open, so it cannot be completed")
        self._settle_decision(completion.usage)
        self._recorder.complete(
            step,
            StepResult(
                text=completion.observation,
                data=completion.data,
                error=completion.error,
                latency=None,
                usage=completion.usage,
                error_kind=str(completion.error_kind) if completion.error_kind is not None else None,
            ),
        )
        return NO_OUTCOME

    def _check_cancelled(self) -> None:
        if self._control.stop.is_set():
            raise RunStopped
        self._meter.check_time()


def _set_model_deadline(task: Task, seconds: float | None) -> Task:
    """The task with a model that retries its requests until the time limit of the run."""
    chat = task.context.chat
    if seconds is None or chat is None:
        return task
    return replace(task, context=replace(task.context, chat=chat.with_deadline(time.monotonic() + seconds)))


def _format_step_count(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"
