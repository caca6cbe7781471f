"""The conclusion of a run on the Ask page: evidence steps, agreement and answers by source."""

from typing import Any
from uuid import uuid4

import pytest

from showhow.app.pages.ask.run_view import build_conclusion, format_calls
from showhow.db.models import Project, Question, Step, Trace
from showhow.db.run_spec import RunResult
from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.answers.extraction import find_evidence_steps

ARTICLE = "[1] Ada Reed was born in Gullhaven. [2] She has 5 kites, made in 1995."


def record(answer: str | None, observations: list[str | None], **result: Any) -> TraceRecord:
    project = Project(name="p", world="w")
    question = Question(project_id=project.id, position=1, text="?")
    trace = Trace(question_id=question.id, final_answer=answer, result=RunResult.from_json(result), answer_text=answer)
    steps = [
        Step(trace_id=trace.id, position=position, tool="read", observation=text, id=uuid4())
        for position, text in enumerate(observations, 1)
    ]
    return TraceRecord(project, question, trace, steps)


@pytest.mark.parametrize(
    ("answer", "observations", "steps"),
    [
        ("Gullhaven", ["Nothing", ARTICLE, None, "| Gullhaven |"], [2, 4]),
        ("the Gullhaven (Q5)", [ARTICLE], [1]),
        # A number is not part of a longer number.
        ("5", ["made in 1995", ARTICLE], [2]),
        ("Ada Reed, Ben Cole", ["Ada Reed", "Ben Cole and Ada Reed", "Ben Cole"], [2]),
        ("Ada Reed, Ben Cole", ["Ada Reed", "Ben Cole"], [1, 2]),
        ("Saltwick", [ARTICLE], []),
        # Few steps that cover the most parts; ties go to the later step.
        ("Ada, Ben, Cy", ["Ada", "Ada", "Ben and Cy", "Cy"], [2, 3]),
        # The last steps of many; a number that occurs in too many steps is no evidence.
        ("Gullhaven", [ARTICLE] * 20, [13, 14, 15, 16, 17, 18, 19, 20]),
        ("5", [ARTICLE] * 20, []),
    ],
)
def test_evidence_is_the_steps_with_all_parts_of_the_answer_or_few_that_cover_them(
    answer: str, observations: list[str | None], steps: list[int]
):
    assert find_evidence_steps(record(answer, observations)) == steps


def test_the_conclusion_shows_agreement_and_response_and_prefers_links_to_evidence():
    agreement_data = {"state": "conflict", "words": "The sources disagree.", "answers": {}, "agreeing": []}
    links = [{"step": 1, "start": 9, "end": 17}]
    conclusion = build_conclusion(
        record("Gullhaven", [ARTICLE], agreement=agreement_data, response="It was G [step 1].", links=links)
    )
    assert conclusion is not None
    assert (conclusion["links"], conclusion["evidence"]) == (links, [])
    assert conclusion["agreement"] == {"words": "The sources disagree.", "sign": "poor"}
    assert conclusion["sources"] == [{"name": "From the text", "value": "Gullhaven"}]
    assert build_conclusion(record(None, [ARTICLE])) is None


def test_counted_calls_stand_beside_the_expected_ones():
    calls = {"model_calls": 14, "model_calls_expected": 13, "retrievals": 1, "critical_path": 2.5}
    sentence = "skills: 14 calls, 13 expected · 1 retrieval · critical path 2.50 s"
    assert format_calls(calls, has_skills=True) == sentence
    del calls["model_calls_expected"]
    assert format_calls(calls, has_skills=True) == sentence.replace(", 13 expected", "")


def test_a_run_without_skills_says_nothing_of_them():
    assert not format_calls({}, has_skills=True)
    assert not format_calls({"model_calls": 4, "retrievals": 3, "critical_path": 0.1}, has_skills=False)
