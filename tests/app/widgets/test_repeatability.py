"""What a trace says of itself: whether it runs again, and which arguments are linked to nothing."""

from typing import Any

import pytest

from showhow.app.widgets.repeatability import describe_repeatability
from showhow.db.models import Project, Question, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.provenance import trace_argument_origins
from tests.app.nouns import step_with

ORDERS = {"result": [{"customer": "Ada Lund", "order": 1042}]}


def describe(question: str, *calls: tuple[dict[str, Any], dict[str, Any]]) -> str:
    """The description of a trace of these calls, each with its arguments and its data, as a person records it."""
    project = Project(name="p", world="")
    row = Question(project_id=project.id, position=1, text=question)
    steps, data = [], {}
    for position, (arguments, seen) in enumerate(calls, 1):
        step = step_with(seen)
        step.position, step.tool, step.arguments = position, "query_shop", arguments
        step.origins = trace_argument_origins(arguments, question, data)
        data[position] = seen
        steps.append(step)
    return describe_repeatability(TraceRecord(project, row, Trace(question_id=row.id), steps))


@pytest.mark.parametrize(
    "arguments",
    [{"order": 1042}, {"order": "1042"}, {"names": ["Ada Lund"]}, {"sql": "city WHERE name = 'ada lund'"}],
)
def test_a_trace_of_values_of_its_question_and_its_results_runs_again_for_other_names(arguments: dict[str, Any]):
    said = describe("Where do orders from Bern go?", ({"word": "Bern"}, ORDERS), (arguments, {"text": "Basel"}))
    assert "Runs again on its own question" in said
    assert "Every argument is linked" in said


@pytest.mark.parametrize("arguments", [{"word": "Geneva"}, {"words": ["Geneva", "Zug"]}, {"word": "Berne"}])
def test_an_argument_that_was_typed_is_named(arguments: dict[str, Any]):
    said = describe("Where do orders from Bern go?", ({"word": "Bern"}, ORDERS), (arguments, {}))
    assert "Runs again on its own question" in said
    assert f"*{next(iter(arguments)).capitalize()}* of step 2" in said
    assert "step 1" not in said


def test_a_trace_whose_origins_lead_nowhere_does_not_run_again():
    project = Project(name="p", world="")
    row = Question(project_id=project.id, position=1, text="Who?")
    step = step_with({})
    step.tool, step.arguments = "query_shop", {"word": "Bern"}
    step.origins = {"word": {"from": "step", "step": 7, "pointer": "/text"}}
    said = describe_repeatability(TraceRecord(project, row, Trace(question_id=row.id), [step]))
    assert "Does not run again" in said
