"""Traces, steps, attempts and scores as rows for data frames, with the meaning of each column."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from showhow.db.database import RowNotFound
from showhow.db.models import Attempt, Project, Question, Run, Score, Step, Trace, User
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.traces.trace_record import TRACE_STATUSES


class FrameColumn(NamedTuple):
    """A column of a table: its value in the store, and what it is."""

    value: Any
    meaning: str


@dataclass(frozen=True, slots=True)
class RowConditions:
    """Which rows are listed; None for all."""

    project: str | None = None
    statuses: Sequence[str] | None = None
    """Of traces."""
    run: str | None = None
    """The id of a run."""


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table: its columns by name, and the rows that fulfil conditions, in order."""

    columns: Mapping[str, FrameColumn]
    choose: Callable[[Select[Any], RowConditions, UUID | None], Select[Any]]


def _choose_traces(query: Select[Any], conditions: RowConditions, run: UUID | None) -> Select[Any]:
    query = query.select_from(Trace).join(Question, Question.id == Trace.question_id)
    query = query.join(Project, Project.id == Question.project_id).outerjoin(User, User.id == Trace.author_id)
    if conditions.project is not None:
        query = query.where(Project.name == conditions.project)
    if conditions.statuses is not None:
        query = query.where(Trace.status.in_(conditions.statuses))
    if run is not None:
        query = query.where(Trace.run_id == run)
    return query.order_by(Trace.started_at, Trace.id)


def _choose_steps(query: Select[Any], conditions: RowConditions, run: UUID | None) -> Select[Any]:
    query = _choose_traces(query, conditions, run)
    return query.join(Step, (Step.trace_id == Trace.id) & Step.removed_at.is_(None)).order_by(Step.position)


def _choose_attempts(query: Select[Any], _conditions: RowConditions, run: UUID | None) -> Select[Any]:
    query = query.select_from(Attempt).join(Run, Run.id == Attempt.run_id)
    query = query.join(Question, Question.id == Attempt.question_id).outerjoin(Trace, Trace.id == Attempt.trace_id)
    # A run goes on with a question that was removed; of removed runs only the one that is asked for is listed.
    query = query.where(Run.removal_id.is_(None) if run is None else Run.id == run)
    return query.order_by(Run.started_at, Run.id, Attempt.position, Attempt.repetition).execution_options(
        **WITH_REMOVED
    )


def _choose_scores(query: Select[Any], conditions: RowConditions, run: UUID | None) -> Select[Any]:
    query = _choose_attempts(query, conditions, run)
    return query.join(Score, Score.attempt_id == Attempt.id).order_by(Score.metric)


_QUESTION = {
    "question_id": FrameColumn(Question.id, "the id of the question"),
    "question": FrameColumn(Question.text, "its text"),
    "kind": FrameColumn(Question.kind, "its kind; empty if it has none"),
}
_GOLD = {"gold_answers": FrameColumn(Question.gold_answers, "the texts of its gold answers, as a list")}
_ATTEMPT = {
    "run": FrameColumn(Run.id, "the id of the run"),
    "reasoner": FrameColumn(Run.reasoner, "its reasoner"),
    "model": FrameColumn(Run.spec["model"].as_string(), "its model; empty without one"),
    "attempt": FrameColumn(Attempt.id, "the id of the attempt"),
    "repetition": FrameColumn(Attempt.repetition, "which of the repetitions of the question it is, from 1"),
    **_QUESTION,
}
TABLES = {
    "trace": RowTable(
        {
            "trace": FrameColumn(Trace.id, "the id of the trace"),
            "project": FrameColumn(Project.name, "the name of its project"),
            **_QUESTION,
            "status": FrameColumn(Trace.status, f"{', '.join(TRACE_STATUSES[:-1])} or {TRACE_STATUSES[-1]}"),
            "reasoner": FrameColumn(Trace.reasoner, "what recorded it; human for a person"),
            "author": FrameColumn(User.name, "the name of that person"),
            "run": FrameColumn(Trace.run_id, "the id of its run"),
            "final_answer": FrameColumn(Trace.final_answer, "the answer"),
            "answer_text": FrameColumn(Trace.answer_text, "the answer by the texts alone"),
            "answer_graph": FrameColumn(Trace.answer_graph, "the answer by the graph alone"),
            "answer_model": FrameColumn(Trace.answer_model, "the author's answer without a source"),
            **_GOLD,
            "ending": FrameColumn(Trace.ending, "how its run ended: answered, refused, failed, limit ..."),
            "failure": FrameColumn(Trace.failure, "why it ended without an answer, in one sentence"),
            "started_at": FrameColumn(Trace.started_at, "when it was begun"),
            "submitted_at": FrameColumn(Trace.submitted_at, "when it was submitted"),
            "wall_seconds": FrameColumn(Trace.wall_seconds, "how long it took"),
            "active_seconds": FrameColumn(Trace.active_seconds, "the part of it in which the person was active"),
        },
        _choose_traces,
    ),
    "step": RowTable(
        {
            "trace": FrameColumn(Trace.id, "the id of the trace"),
            "question": FrameColumn(Question.text, "its question"),
            "position": FrameColumn(Step.position, "which of its steps it is, from 1"),
            "thought": FrameColumn(Step.thought, "the thought"),
            "tool": FrameColumn(Step.tool, "the tool that was called; empty without a call"),
            "arguments": FrameColumn(Step.arguments, "the arguments of the call by name"),
            "observation": FrameColumn(Step.observation, "what the tool returned, as a text"),
            "data": FrameColumn(Step.data, "the same as JSON values"),
            "error": FrameColumn(Step.error, "why the call failed, in one sentence"),
            "error_kind": FrameColumn(Step.error_kind, "the kind of the error"),
            "skill": FrameColumn(Step.skill, "the skill that decided it, with its version"),
            "node": FrameColumn(Step.node, "its place in the reasoner's tree"),
            "rating": FrameColumn(Step.rating, "the stars that a person gave it, from 1 to 5"),
            "latency": FrameColumn(Step.latency, "the seconds that the tool took"),
            "started_at": FrameColumn(Step.started_at, "when it was begun"),
        },
        _choose_steps,
    ),
    "attempt": RowTable(
        {
            **_ATTEMPT,
            "ending": FrameColumn(Attempt.ending, "answered, refused, failed, limit ...; empty while it has not ended"),
            "answer": FrameColumn(Trace.final_answer, "the answer"),
            **_GOLD,
            "failure": FrameColumn(Trace.failure, "why there is none, in one sentence"),
            "trace": FrameColumn(Attempt.trace_id, "the id of its trace"),
            "model_calls": FrameColumn(Attempt.model_calls, "calls of the model"),
            "input_tokens": FrameColumn(Attempt.input_tokens, "tokens of the prompts; empty if not reported"),
            "output_tokens": FrameColumn(Attempt.output_tokens, "tokens of the replies; empty if not reported"),
            "cost": FrameColumn(Attempt.cost, "US dollars; empty if a price is unknown"),
            "seconds": FrameColumn(Attempt.seconds, "how long it took"),
        },
        _choose_attempts,
    ),
    "score": RowTable(
        {
            **_ATTEMPT,
            "metric": FrameColumn(Score.metric, "the metric"),
            "metric_version": FrameColumn(Score.metric_version, "its version"),
            "value": FrameColumn(Score.value, "the score"),
        },
        _choose_scores,
    ),
}
"""By what a row is."""


def list_rows(session: Session, kind: str, conditions: RowConditions) -> list[tuple[Any, ...]]:
    """The rows of a table; RowNotFound for a project, a status or a run that does not exist."""
    run = _find_run(session, conditions.run)
    if conditions.project is not None and not session.scalar(
        select(Project.id).where(Project.name == conditions.project)
    ):
        raise RowNotFound(f"there is no project {conditions.project!r}")
    if unknown := [status for status in conditions.statuses or () if status not in TRACE_STATUSES]:
        raise RowNotFound(f"there is no status {unknown[0]!r}; there are {', '.join(TRACE_STATUSES)}")
    table = TABLES[kind]
    query = table.choose(select(*(column.value for column in table.columns.values())), conditions, run)
    names = list(table.columns)
    gold = names.index("gold_answers") if "gold_answers" in names else None
    return [
        tuple(_read_gold(value) if place == gold else _plain(value) for place, value in enumerate(row))
        for row in session.execute(query)
    ]


def _find_run(session: Session, run: str | None) -> UUID | None:
    if run is None:
        return None
    try:
        key = UUID(run)
    except ValueError:
        raise RowNotFound(f"{run!r} is not the id of a run; `showhow runs list` lists them") from None
    if session.get(Run, key) is None:
        raise RowNotFound(f"there is no run {run}; `showhow runs list` lists them")
    return key


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _read_gold(answers: Any) -> list[str]:
    return [str(answer["text"]) for answer in answers if answer.get("text")]
