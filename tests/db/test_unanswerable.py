"""The answer that a question cannot be answered: written, read, normalized, submitted and counted."""

import pytest
from sqlalchemy import select

from showhow.db.models import Trace
from showhow.db.questions.answer_formats import AnswerFormat, InvalidAnswer
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers
from showhow.db.unanswerable import (
    CANNOT_BE_ANSWERED,
    UnanswerableReason,
    find_gold_reason,
    group_of_question,
    normalize_unanswerable,
    read_unanswerable,
    says_unanswerable,
    write_unanswerable,
)

FALSE_PREMISE = "This question cannot be answered: its premise is false."


@pytest.mark.parametrize("reason", UnanswerableReason)
def test_each_reason_is_read_from_what_is_written_for_it(reason: UnanswerableReason) -> None:
    written = write_unanswerable(reason)
    for text in (written, written.upper(), f"  {written[:-1]}\n", written.replace(" ", "  ")):
        assert read_unanswerable(text) == reason
        assert normalize_unanswerable(text) == written


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("this question cannot be answered: False premise", FALSE_PREMISE),
        ("This question cannot be answered", "This question cannot be answered."),
        ("this question cannot be answered: He never married", "This question cannot be answered: He never married."),
    ],
)
def test_another_wording_of_the_reason_is_kept(text: str, stored: str) -> None:
    assert normalize_unanswerable(text) == stored
    assert normalize_unanswerable(stored) == stored


@pytest.mark.parametrize("text", ["", None, "none", "unknown", "This question cannot be answered with yes", "Lisbon"])
def test_other_answers_are_none_of_it(text: str | None) -> None:
    assert read_unanswerable(text) is None
    assert find_gold_reason([{"text": text or "", "entity": None}]) is None


def test_a_question_with_this_gold_answer_is_in_a_group_of_its_own() -> None:
    assert group_of_question("bridge", [{"text": FALSE_PREMISE, "entity": None}]) == CANNOT_BE_ANSWERED
    assert group_of_question("bridge", []) == "bridge"


def test_it_is_an_answer_in_every_format_that_asks_for_answers() -> None:
    schema = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
    as_json = AnswerFormat.from_json({"kind": "json", "schema": schema})
    for form in (AnswerFormat(), as_json):
        assert form.normalize(FALSE_PREMISE.upper()) == FALSE_PREMISE
    with pytest.raises(InvalidAnswer):
        as_json.normalize("unknown")
    with pytest.raises(InvalidAnswer, match="say why the question cannot be answered"):
        AnswerFormat().normalize(" ")


def test_a_submitted_one_is_told_apart_by_every_database(scene) -> None:
    answers = [FALSE_PREMISE, write_unanswerable(UnanswerableReason.UNSTATED), "Ada Quay"]
    for question, answer in zip(scene.questions, answers, strict=True):
        with scene.database.begin() as session:
            trace = recording.start_trace(session, question.id, scene.ada.id)
            step = recording.begin_step(session, trace.id, NewStep("look", "read"), seen=trace.version, by=scene.ada.id)
            recording.complete_step(session, step.id, StepResult("seen", {}, None, 0.1), by=scene.ada.id)
            seen = trace_version(session, trace.id)
            recording.submit_trace(session, trace.id, TraceAnswers(answer.lower()), seen=seen, by=scene.ada.id)
    with scene.database.read() as session:
        stored = set(session.scalars(select(Trace.final_answer).where(says_unanswerable(Trace.final_answer))))
    assert stored == set(answers[:2])
