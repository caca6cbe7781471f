"""`showhow ask "QUESTION" --world W`: have a reasoner answer a question, and watch it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import Annotated, Any

import typer

from app.cli.options import (
    DEFAULT_TIME_LIMIT,
    CostLimitOption,
    DemonstrationCountOption,
    LibraryOption,
    ReasonerOption,
    ReasonerSettingsOption,
    SelectionOption,
    StepLimitOption,
    TimeLimitOption,
    TokenLimitOption,
    build_limits,
    default_reasoner,
    parse_run_config,
)
from app.cli.output import CommandError, emit, print_progress
from app.services import services
from db.models import Step
from db.runs import RunOutcome
from db.trace_record import TraceRecord
from db.traces import load_trace
from runs.ask import ASK_ERRORS, AskRequest, begin_run
from runs.preparation import REPLAY
from runs.runner import RunControl

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MAX_OBSERVATION_CHARACTERS = 160
"""Characters of an observation that are shown as it happens."""


def ask(  # noqa: PLR0913 - every option of the verb is one parameter
    question: Annotated[str, typer.Argument(help="What is asked.")],
    *,
    world: Annotated[str, typer.Option(help="The world to answer it in; see showhow world list.")],
    reasoner: ReasonerOption = None,
    library: LibraryOption = None,
    k: DemonstrationCountOption = None,
    mode: SelectionOption = None,
    option: ReasonerSettingsOption = None,
    steps: StepLimitOption = None,
    tokens: TokenLimitOption = None,
    seconds: TimeLimitOption = DEFAULT_TIME_LIMIT,
    money: CostLimitOption = None,
    as_json: AsJson = False,
) -> None:
    """Have a reasoner answer a question: steps on stderr as they happen, the answer on stdout; Ctrl+C stops it."""
    if reasoner is None:
        reasoner = default_reasoner()
        told = "SHOWHOW_MODEL is not set: a demonstration is followed" if reasoner == REPLAY else f"by {reasoner}"
        print_progress(f"{told}; --reasoner chooses another way")
    way = parse_run_config(reasoner, library, k, mode, option)
    wanted = AskRequest(question, world, way, build_limits(way, steps, tokens, seconds, money))
    reins = RunControl()
    try:
        with _stop_on_interrupt(reins.stop):
            at_work = begin_run(services(), wanted, reins)
            at_work.on_step = _print_step
            ended = at_work.execute()
    except ASK_ERRORS as failed:
        raise CommandError(str(failed)) from failed
    with services().database.read() as session:
        record = load_trace(session, at_work.trace_id)
    if ended.answers is not None or as_json:
        emit(_result_value(record, ended), "\n".join(_result_lines(record, ended)), as_json=as_json)
    print_progress(f"the trace is {at_work.trace_id}")
    if ended.answers is None:
        raise CommandError(f"{ended.ending}: {ended.failure}")


@contextmanager
def _stop_on_interrupt(stop: Event) -> Iterator[None]:
    """Have Ctrl+C stop the run, so that its end is written; a second one ends the program."""

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, former)

    former = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def _print_step(step: Step) -> None:
    """A step when it is begun, and what it found when it is completed."""
    if step.finished_at is None or step.tool is None or step.latency is None:
        print_progress(f"{step.position}. {' '.join(step.thought.split())}")
        if step.tool is not None:
            given = ", ".join(f"{name}={value!r}" for name, value in step.arguments.items())
            print_progress(f"   {step.tool}({given})")
    if step.finished_at is not None and (found := step.error or step.observation):
        told = " ".join(found.split())
        print_progress(
            f"   {'error: ' if step.error else ''}{told[:MAX_OBSERVATION_CHARACTERS]}{' …' if len(told) > MAX_OBSERVATION_CHARACTERS else ''}"
        )


def _result_value(record: TraceRecord, ended: RunOutcome) -> dict[str, Any]:
    trace = record.trace
    return {
        "trace": str(trace.id),
        "question": record.question.text,
        "ending": ended.ending,
        "failure": ended.failure,
        "answer": trace.final_answer,
        "answer_text": trace.answer_text,
        "answer_graph": trace.answer_graph,
        "answer_model": trace.answer_model,
        "steps": len(record.steps),
        "seconds": round(ended.seconds, 3),
        "usage": ended.usage,
        "reasoner": trace.reasoner,
        "details": ended.details,
        "demonstrations": trace.configuration.get("demonstrations", []),
    }


def _result_lines(record: TraceRecord, ended: RunOutcome) -> Iterator[str]:
    response = str(ended.details.get("response") or "")
    yield record.trace.final_answer or ""
    if response and response != record.trace.final_answer:
        yield response
    agreement = ended.details.get("agreement")
    if agreement and agreement["words"] not in response:
        yield str(agreement["words"])
