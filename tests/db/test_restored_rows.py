"""A large database is restored row by row as it was, on SQLite and on PostgreSQL."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select

from showhow.db.database import Database
from showhow.db.models import Edit, Project, Question, Step, Trace, User
from showhow.db.serialization import field_values
from showhow.db.storage.backup import back_up_database
from showhow.db.storage.restore import restore_database
from showhow.db.types import Base
from tests.db.test_restore import client_programs  # noqa: F401 - a fixture

pytestmark = pytest.mark.long

ROWS = 100_000
TEXTS = [
    "",
    "plain",
    "\\.",
    "\\N",
    "a\tb\nc\r\n\\",
    "'; DROP TABLE step; --",
    "ẞ 😀 \u2028",
    "COPY x FROM stdin;\n\\.\n",
    '"',
]


def test_a_database_of_100_000_rows_is_restored_equal(database: Database, tmp_path: Path):
    chance = random.Random(20261127)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    people = [User(name=f"person {number}", roles=["annotator"]) for number in range(3)]
    project = Project(name="large", world="w", answer_format={"kind": "text"})
    questions = [
        Question(
            project_id=project.id, position=number, text=chance.choice(TEXTS) + str(number), details={"n": [number]}
        )
        for number in range(1, 1001)
    ]
    traces = [
        Trace(question_id=question.id, reasoner="human", author_id=chance.choice(people).id) for question in questions
    ]

    def steps() -> Iterator[Step]:
        for number in range(ROWS // 2):
            yield Step(
                trace_id=traces[number % 1000].id,
                position=number // 1000 + 1,
                thought=chance.choice(TEXTS),
                arguments={"query": chance.choice(TEXTS), "k": chance.random()},
                latency=chance.choice([None, chance.random() * 1e-9, 1e300]),
                started_at=now + timedelta(microseconds=chance.randrange(10**15)),
            )

    def edits() -> Iterator[Edit]:
        for number in range(ROWS // 2):
            yield Edit(trace_id=traces[number % 1000].id, action="thought", before={"thought": chance.choice(TEXTS)})

    with database.begin() as session:
        fixed = [(User, people), (Project, [project]), (Question, questions), (Trace, traces)]
        for kind, rows in (*fixed, (Step, steps()), (Edit, edits())):
            session.execute(insert(kind.__table__), [field_values(row) for row in rows])
    before = read_everything(database)
    assert sum(map(len, before.values())) > ROWS
    back_up_database(database, tmp_path / "backup")
    with database.begin() as session:
        session.execute(Edit.__table__.delete())
    assert restore_database(database, tmp_path / "backup").findings == []
    assert read_everything(database) == before


def read_everything(database: Database) -> dict[str, list[Any]]:
    """Every row of every table."""
    with database.read() as session:
        return {
            table.name: sorted(map(tuple, session.connection().execute(select(table))), key=repr)
            for table in Base.metadata.sorted_tables
        }
