"""The table of people's answers: agreement, what each person may see, and files that are safe in spreadsheets."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import openpyxl
import pytest

from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.people import users
from showhow.db.people.users import ActingPerson
from showhow.db.questions import projects
from showhow.db.questions.person_answers import AnswerConditions
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.storage.schema import upgrade
from showhow.db.traces import recording
from showhow.db.traces.recording import TraceAnswers
from showhow.evaluation.comparison.answer_table import PERSON_ANSWER_COLUMNS, iterate_person_answers, write_answer_table

FORMULAS = ["=1+1", "+49 30", "-2", "@cmd", "＝1+1", '=HYPERLINK("http://x.example")']
EVERYTHING = AnswerConditions(None)


@dataclass(frozen=True, slots=True)
class Team:
    """A project whose questions two people have answered."""

    database: Database
    project: Project


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """Ada and Ben answer the questions; Cleo annotates and has answered none."""
    database = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(database)
    with database.begin() as session:
        project = projects.create_project(session, "p", "w")
        gold = ({"text": "secret", "entity": None},)
        texts = ["=1+1?", *(f"Question {number}?" for number in range(len(FORMULAS)))]
        projects.add_questions(session, project.id, [QuestionRecord(text=text, gold_answers=gold) for text in texts])
        ada, ben = (users.register_user(session, name) for name in ("ada", "ben"))
        users.register_user(session, "cleo")
        answers = {ada.id: ["Kiel, Lund", *FORMULAS], ben.id: ["lund", *FORMULAS[:1]]}
        for person, given in answers.items():
            for question, text in zip(projects.list_questions(session, project.id), given, strict=False):
                trace = recording.start_trace(session, question.id, person)
                recording.begin_step(session, trace.id, recording.NewStep("so"), seen=trace.version, by=person)
                recording.submit_trace(session, trace.id, TraceAnswers(text), seen=trace.version, by=person)
    yield Team(database, project)
    database.close()


def write(team: Team, name: str) -> bytes:
    stream = io.BytesIO()
    assert write_answer_table(team.database, team.project, AnswerConditions(), name, stream) == len(FORMULAS) + 3
    return stream.getvalue()


def test_the_agreement_of_an_answer_is_its_mean_similarity_to_those_of_the_others(team: Team):
    rows = list(iterate_person_answers(team.database, team.project, AnswerConditions()))
    assert [(row["person"], row["agreement"]) for row in rows[:4]] == [
        ("ada", 0.5),
        ("ben", 0.5),
        ("ada", 1.0),
        ("ben", 1.0),
    ]
    assert {row["agreement"] for row in rows[4:]} == {None}
    assert {row["gold"] for row in rows} == {"secret"}


def test_no_text_of_a_written_table_is_a_formula_and_all_of_it_can_be_read_back(team: Team):
    listed = list(csv.DictReader(io.StringIO(write(team, "csv").decode(), newline="")))
    assert list(listed[0]) == list(PERSON_ANSWER_COLUMNS)
    assert [row["answer"] for row in listed if row["person"] == "ada"] == ["Kiel, Lund", *(f"'{x}" for x in FORMULAS)]
    assert listed[0]["question"] == "'=1+1?"
    book = openpyxl.load_workbook(io.BytesIO(write(team, "xlsx")))
    header, *rows = book.active.iter_rows()
    assert [cell.value for cell in header] == list(PERSON_ANSWER_COLUMNS)
    assert {cell.data_type for row in rows for cell in row} <= {"s", "n"}
    assert [row[4].value for row in rows] == [row["answer"] for row in listed]
    assert isinstance(rows[0][6].value, float)
    assert json.loads(write(team, "json"))[0]["answer"] == "Kiel, Lund"


def test_who_annotates_sees_their_own_answers_and_gold_only_where_the_project_shows_it(team: Team):
    def seen_by(name: str) -> list[tuple[str, str | None]]:
        acting = team.database.acting_as(ActingPerson(name, is_local=False))
        with acting.read() as session:
            project = projects.get_project(session, "p")
        rows = iterate_person_answers(acting, project, AnswerConditions(None, None))
        return sorted({(row["person"], row["gold"]) for row in rows}, key=str)

    assert seen_by("ada") == [("ada", "secret"), ("ben", "secret")]
    assert seen_by("ben") == [("ben", None)]
    assert seen_by("cleo") == []
    with team.database.begin() as session:
        projects.edit_project(session, "p", shows_gold=True)
    assert seen_by("ben") == [("ben", "secret")]
