"""What the Ask page shows of an answer: where it was seen, and what the sources say."""

from uuid import uuid4

import pytest

from app.pages.ask.run_view import build_conclusion, find_evidence_steps
from db.models import Project, Question, Step, Trace
from db.trace_record import TraceRecord

ARTICLE = "[1] Ada Reed was born in Gullhaven. [2] She has 5 kites, made in 1995."


def record(answer: str | None, observations: list[str | None], **told: object) -> TraceRecord:
    project = Project(name="p", world="w")
    question = Question(project_id=project.id, position=1, text="?")
    trace = Trace(question_id=question.id, final_answer=answer, configuration=dict(told), answer_text=answer)
    steps = [
        Step(trace_id=trace.id, position=place, tool="read", observation=text, id=uuid4())
        for place, text in enumerate(observations, 1)
    ]
    return TraceRecord(project, question, trace, steps)


@pytest.mark.parametrize(
    ("answer", "observations", "steps"),
    [
        ("Gullhaven", ["Nothing", ARTICLE, None, "| Gullhaven |"], [2, 4]),
        ("the Gullhaven (Q5)", [ARTICLE], [1]),
        # A number is not seen within another one.
        ("5", ["made in 1995", ARTICLE], [2]),
        ("Ada Reed, Ben Cole", ["Ada Reed", "Ben Cole and Ada Reed", "Ben Cole"], [2]),
        ("Ada Reed, Ben Cole", ["Ada Reed", "Ben Cole"], [1, 2]),
        ("Saltwick", [ARTICLE], []),
        # Few steps that together show the most, the latest of equals.
        ("Ada, Ben, Cy", ["Ada", "Ada", "Ben and Cy", "Cy"], [2, 3]),
        # Of many the ones nearest to the answer; a number that stands everywhere says nothing.
        ("Gullhaven", [ARTICLE] * 20, [13, 14, 15, 16, 17, 18, 19, 20]),
        ("5", [ARTICLE] * 20, []),
    ],
)
def test_an_answer_is_linked_to_the_steps_that_show_all_of_it_or_else_to_few_that_do_together(
    answer: str, observations: list[str | None], steps: list[int]
):
    assert find_evidence_steps(record(answer, observations)) == steps


def test_what_a_run_told_of_its_answer_is_shown_and_links_come_before_guesses():
    agreed = {"state": "conflict", "words": "The sources disagree.", "answers": {}, "agreeing": []}
    links = [{"step": 1, "start": 9, "end": 17}]
    shown = build_conclusion(
        record("Gullhaven", [ARTICLE], agreement=agreed, response="It was G [step 1].", links=links)
    )
    assert shown is not None
    assert (shown["links"], shown["evidence"]) == (links, [])
    assert shown["agreement"] == {"words": "The sources disagree.", "sign": "poor"}
    assert shown["sources"] == [{"name": "From the text", "value": "Gullhaven"}]
    assert build_conclusion(record(None, [ARTICLE])) is None
