"""`showhow ask "QUESTION" --world W`: have a reasoner answer a question, and watch it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import Annotated, Any

import typer

from app.asking import FAILURES, Wanted, begin
from app.resources import database
from app.solving import REPLAY
from app.verbs.output import CommandFailed, emit, progress
from app.verbs.way import (
    SECONDS_DEFAULT,
    K,
    LibraryName,
    Mode,
    Money,
    Options,
    Reasoner,
    Seconds,
    Steps,
    Tokens,
    default_reasoner,
    limits_of,
    way_of,
)
from db.models import Step
from db.reading import open_trace
from db.record import TraceRecord
from db.runs import Ended
from reasoners.run import Reins

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LONGEST = 160
"""Characters of an observation that are shown as it happens."""


def ask(  # noqa: PLR0913 - every option of the verb is one parameter
    question: Annotated[str, typer.Argument(help="What is asked.")],
    *,
    world: Annotated[str, typer.Option(help="The world to answer it in; see showhow world list.")],
    reasoner: Reasoner = None,
    library: LibraryName = None,
    k: K = None,
    mode: Mode = None,
    option: Options = None,
    steps: Steps = None,
    tokens: Tokens = None,
    seconds: Seconds = SECONDS_DEFAULT,
    money: Money = None,
    as_json: AsJson = False,
) -> None:
    """Have a reasoner answer a question: steps on stderr as they happen, the answer on stdout; Ctrl+C stops it."""
    if reasoner is None:
        reasoner = default_reasoner()
        told = "SHOWHOW_MODEL is not set: a demonstration is followed" if reasoner == REPLAY else f"by {reasoner}"
        progress(f"{told}; --reasoner chooses another way")
    way = way_of(reasoner, library, k, mode, option)
    wanted = Wanted(question, world, way, limits_of(way, steps, tokens, seconds, money))
    reins = Reins()
    try:
        with _stopped_by_interrupt(reins.stop):
            at_work = begin(wanted, reins)
            at_work.on_step = _tell
            ended = at_work.work()
    except FAILURES as failed:
        raise CommandFailed(str(failed)) from failed
    with database().read() as session:
        record = open_trace(session, at_work.trace_id)
    if ended.answers is not None or as_json:
        emit(_value(record, ended), "\n".join(_lines(record, ended)), as_json=as_json)
    progress(f"the trace is {at_work.trace_id}")
    if ended.answers is None:
        raise CommandFailed(f"{ended.ending}: {ended.failure}")


@contextmanager
def _stopped_by_interrupt(stop: Event) -> Iterator[None]:
    """Have Ctrl+C stop the run, so that its end is written; a second one ends the program."""

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, former)

    former = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def _tell(step: Step) -> None:
    """A step when it is begun, and what it found when it is completed."""
    if step.finished_at is None or step.tool is None or step.latency is None:
        progress(f"{step.position}. {' '.join(step.thought.split())}")
        if step.tool is not None:
            given = ", ".join(f"{name}={value!r}" for name, value in step.arguments.items())
            progress(f"   {step.tool}({given})")
    if step.finished_at is not None and (found := step.error or step.observation):
        told = " ".join(found.split())
        progress(f"   {'error: ' if step.error else ''}{told[:LONGEST]}{' …' if len(told) > LONGEST else ''}")


def _value(record: TraceRecord, ended: Ended) -> dict[str, Any]:
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


def _lines(record: TraceRecord, ended: Ended) -> Iterator[str]:
    response = str(ended.details.get("response") or "")
    yield record.trace.final_answer or ""
    if response and response != record.trace.final_answer:
        yield response
    agreement = ended.details.get("agreement")
    if agreement and agreement["words"] not in response:
        yield str(agreement["words"])
