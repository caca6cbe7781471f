from showhow.app.widgets.notebook import build_notebook_data, format_step_cost, format_trace_cost, format_usage_details
from showhow.db.models import Project, Question, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.value_format import format_money, format_seconds, format_tokens
from tests.app.nouns import step_with

CALL = {"model": "m", "calls": 1, "input_tokens": 1000, "output_tokens": 200, "seconds": 0.5, "cost": 0.003}
UNPRICED = CALL | {"model": "own", "calls": 2, "cost": None}


def test_a_step_shows_its_latency_and_the_tokens_and_cost_of_its_model_calls():
    step = step_with({})
    step.latency = 0.412
    assert format_step_cost(step) == ["0.41 s"]
    step.usage = {"thought": CALL, "tool": CALL}
    assert format_step_cost(step) == ["0.41 s", "2,400 tokens", "$0.0060"]
    assert format_usage_details(step.usage) == [
        "to write the step: 1 call of m, 1,000 tokens in and 200 out, 0.50 s, $0.0030",
        "inside the tool: 1 call of m, 1,000 tokens in and 200 out, 0.50 s, $0.0030",
    ]


def test_an_unknown_part_makes_the_total_unknown_instead_of_zero():
    step = step_with({})
    step.usage = {"thought": CALL, "tool": UNPRICED}
    assert format_step_cost(step) == ["2,400 tokens", "cost unknown"]
    step.usage = {"tool": UNPRICED | {"input_tokens": None}}
    assert format_step_cost(step) == ["unknown tokens", "cost unknown"]
    assert "unknown tokens in and 200 out" in format_usage_details(step.usage)[0]


def test_a_trace_shows_the_total_of_its_model_calls_if_there_are_any():
    unused_step, used_step = step_with({}), step_with({})
    assert format_trace_cost([unused_step]) == ""
    used_step.usage = {"thought": CALL, "tool": CALL}
    assert format_trace_cost([unused_step, used_step, used_step]) == "4 model calls · 4,800 tokens · $0.0120"


def test_the_notebook_shows_the_cost_beside_the_latency_with_details():
    project = Project(name="p", world="w")
    question = Question(project_id=project.id, position=1, text="Who?")
    trace = Trace(question_id=question.id)
    step = step_with({})
    step.latency, step.usage = 0.4, {"tool": CALL}
    data = build_notebook_data(TraceRecord(project, question, trace, [step]), editable=False, forkable=False)
    (step_data,) = data["steps"]
    assert data["spent"] == "1 model call · 1,200 tokens · $0.0030"
    assert step_data["spent"] == "0.40 s · 1,200 tokens · $0.0030"
    assert step_data["spent_details"].startswith("the tool took 0.400 s; inside the tool: 1 call of m")


def test_small_amounts_are_not_rounded_to_zero():
    assert (format_money(0.00001), format_money(0.0), format_money(12.5), format_money(None)) == (
        "under $0.0001",
        "$0.0000",
        "$12.50",
        "cost unknown",
    )
    assert (format_seconds(0.0012), format_seconds(0.0), format_seconds(1234.5)) == ("1.2 ms", "0.00 s", "1,234 s")
    assert (format_tokens(1, 0), format_tokens(None, 3)) == ("1 token", "unknown tokens")
