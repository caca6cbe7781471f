"""`showhow ask "QUESTION" --world W`: has a reasoner answer a question and prints each step."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from types import FrameType
from typing import Any

import typer

from showhow.app.cli.drawn_options import draw_options
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.services import current_services
from showhow.db.models import Step
from showhow.db.runs.runs import RunOutcome
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import load_trace
from showhow.db.unanswerable import read_unanswerable
from showhow.evaluation.scoring.answer_notation import find_project_notation
from showhow.option_fields import group, option
from showhow.reasoners.registry import default_reasoner
from showhow.runs.ask import ASK_ERRORS, AskRequest, begin_run
from showhow.runs.preparation import warn_of_tested_world
from showhow.runs.runner import RunControl
from showhow.tasks.method import Method, QuestionLimits, build_spec
from showhow.tasks.progress import print_progress
from showhow.worlds.open import NO_WORLD

MAX_OBSERVATION_CHARACTERS = 160
"""Characters of an observation that are printed while the run goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskQuestion:
    """A question, where it is asked, and how it is answered."""

    question: str = option(help="The question.", is_argument=True)
    world: str | None = option(None, "The world to answer it in; see `showhow world list`.")
    project: str | None = option(None, "The project whose world, tools, instruction and answer format apply.")
    method: Method = group(Method, "Reasoner and model")
    limits: QuestionLimits = group(QuestionLimits, "Limits of each question")


@draw_options
def ask(asked: AskQuestion, *, as_json: AsJson = False) -> None:
    """Have a reasoner answer a question: steps on stderr as they happen, the answer on stdout; Ctrl+C stops it."""
    world, project = asked.world, asked.project
    if (world is None) == (project is None):
        raise typer.BadParameter("name either --world or --project.")
    services = current_services()
    if asked.method.reasoner is None:
        entry = default_reasoner(has_model=bool(services.model_profiles()))
        choice = f"the reasoner is {entry.name}"
        reason = choice if entry.needs_model else f"no model is set up, so {choice}"
        print_progress(f"{reason}; --reasoner chooses another one")
    spec = build_spec(services, asked.method, asked.limits.build())
    notation = find_project_notation(services.database, project)
    if notation is not None:
        print_progress(f"an answer that is a day is stored as those of {project}: {notation}")
    request = AskRequest(asked.question, world or NO_WORLD, spec.replace(date_notation=notation), project)
    control = RunControl()
    try:
        with _stop_on_interrupt(control.stop), _print_waits():
            run = begin_run(services, request, control)
            run.on_step = _print_step
            outcome = run.execute()
    except ASK_ERRORS as error:
        raise CommandError(str(error)) from error
    with services.database.read() as session:
        record = load_trace(session, run.trace_id)
    if warning := warn_of_tested_world(services, spec, record.project.world):
        print_progress(warning)
    if outcome.answers is not None or as_json:
        emit(_result_value(record, outcome), "\n".join(_result_lines(record, outcome)), as_json=as_json)
    print_progress(f"the trace is {run.trace_id}")
    if outcome.answers is None:
        raise CommandError(f"{outcome.ending}: {outcome.failure}")


@contextmanager
def _stop_on_interrupt(stop: Event) -> Iterator[None]:
    """Stop the run on the first Ctrl+C, so that its end is stored; the second one ends the program."""

    def stop_run(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, previous_handler)

    previous_handler = signal.signal(signal.SIGINT, stop_run)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


class _ProgressHandler(logging.Handler):
    """Prints what is logged as progress."""

    def emit(self, record: logging.LogRecord) -> None:
        print_progress(record.getMessage())


@contextmanager
def _print_waits() -> Iterator[None]:
    """Print what the run waits for, and what it learns about its model's server."""
    handler = _ProgressHandler(logging.INFO)
    loggers = [logging.getLogger(name) for name in ("showhow.llm", "showhow.worlds.live")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


def _print_step(step: Step) -> None:
    """Print a step when it begins, and its observation when it is complete."""
    if step.finished_at is None or step.tool is None or step.latency is None:
        print_progress(f"{step.position}. {' '.join(step.thought.split())}")
        if step.tool is not None:
            arguments = ", ".join(f"{name}={value!r}" for name, value in step.arguments.items())
            print_progress(f"   {step.tool}({arguments})")
    if step.finished_at is not None and (observation := step.error or step.observation):
        line = " ".join(observation.split())
        ellipsis = " …" if len(line) > MAX_OBSERVATION_CHARACTERS else ""
        print_progress(f"   {'error: ' if step.error else ''}{line[:MAX_OBSERVATION_CHARACTERS]}{ellipsis}")


def _result_value(record: TraceRecord, outcome: RunOutcome) -> dict[str, Any]:
    trace, spec = record.trace, record.spec
    return {
        "trace": str(trace.id),
        "question": record.question.text,
        "ending": outcome.ending,
        "failure": outcome.failure,
        "answer": trace.final_answer,
        "cannot_be_answered": read_unanswerable(trace.final_answer),
        "answer_text": trace.answer_text,
        "answer_graph": trace.answer_graph,
        "answer_model": trace.answer_model,
        "steps": len(record.steps),
        "seconds": round(outcome.seconds, 3),
        "usage": outcome.usage,
        "reasoner": trace.reasoner,
        "model": spec.model,
        "profile": spec.profile,
        "details": outcome.details,
        "demonstrations": [reference.to_json() for reference in trace.result.demonstrations or ()],
    }


def _result_lines(record: TraceRecord, outcome: RunOutcome) -> Iterator[str]:
    response = str(outcome.details.get("response") or "")
    yield record.trace.final_answer or ""
    if response and response != record.trace.final_answer:
        yield response
    agreement = outcome.details.get("agreement")
    if agreement and agreement["words"] not in response:
        yield str(agreement["words"])
