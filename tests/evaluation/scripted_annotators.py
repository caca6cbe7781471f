"""People who record the same questions and agree with a known probability, for tests of agreement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import update

from showhow.db.database import Database
from showhow.db.models import Trace
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers

FIRST_DAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
ANSWERS = ("Gullhaven", "Port Ada", "Lund", "Kiel")
KINDS = ("place", "person", "count")


@dataclass(frozen=True, slots=True)
class ScriptedStep:
    """A call with the data that it brought, and the person's rating."""

    tool: str
    arguments: dict[str, Any]
    data: dict[str, Any] = field(default_factory=dict)
    rating: int | None = None


def read_article(title: str, rating: int | None = None) -> ScriptedStep:
    data = {"title": title, "entity": None, "sentences": [f"{title} is a town."]}
    return ScriptedStep("read", {"title": title, "question": "Where?"}, data, rating)


def search(query: str) -> ScriptedStep:
    return ScriptedStep("wikisearch", {"query": query}, {"hits": [{"title": "Lund"}]})


def record(  # noqa: PLR0917 - a trace
    database: Database,
    question: UUID,
    person: str,
    answer: str,
    steps: Sequence[ScriptedStep] = (ScriptedStep("wikisearch", {"query": "quay"}),),
    at: datetime | None = None,
) -> UUID:
    """Store a submitted trace of the person."""
    with database.begin() as session:
        author = users.register_user(session, person).id
        trace_id = recording.start_trace(session, question, author).id
        for made in steps:
            new = NewStep("so", made.tool, made.arguments)
            step = recording.begin_step(session, trace_id, new, seen=trace_version(session, trace_id), by=author)
            recording.complete_step(session, step.id, StepResult("seen", made.data, None, 0.1), by=author)
            if made.rating is not None:
                seen = trace_version(session, trace_id)
                recording.rate_step(session, step.id, made.rating, seen=seen, by=author)
        answers = TraceAnswers(answer, final_thought="so")
        recording.submit_trace(session, trace_id, answers, seen=trace_version(session, trace_id), by=author)
        if at is not None:
            session.execute(update(Trace).where(Trace.id == trace_id).values(submitted_at=at))
        return trace_id


def make_questions(database: Database, project: str, count: int, world: str = "w") -> list[UUID]:
    """Create a project of so many questions of three kinds."""
    with database.begin() as session:
        stored = projects.create_project(session, project, world)
        records = [QuestionRecord(text=f"Who owns quay {n}?", kind=KINDS[n % 3]) for n in range(count)]
        projects.add_questions(session, stored.id, records)
        return [question.id for question in projects.list_questions(session, stored.id)]


def record_team(database: Database, questions: Sequence[UUID], agreed: Mapping[str, float], seed: int = 5) -> None:
    """Let people answer all questions, one a day: each copies the truth with their probability, else guesses."""
    generator = np.random.default_rng(seed)
    for number, question in enumerate(questions):
        truth = int(generator.integers(len(ANSWERS)))
        for person, probability in agreed.items():
            knows = generator.random() < probability
            place = ANSWERS[truth if knows else int(generator.integers(len(ANSWERS)))]
            rating = int(np.clip(truth + 2 + (0 if knows else generator.integers(-1, 2)), 1, 5))
            steps = [search("quay"), *([] if knows else [search("owner")]), read_article(place, rating)]
            record(database, question, person, place, steps, FIRST_DAY + timedelta(days=number))
