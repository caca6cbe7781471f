"""A demonstration with external tools answers questions in its words with other values, or says why not."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from showhow.db.models import Project, Question, Step, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import utc_now
from showhow.reasoners.base import Task
from showhow.reasoners.provenance import trace_argument_origins
from showhow.reasoners.replay.agent import ReplayReasoner
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import run_reasoner
from showhow.tools.external.adapter import ToolRegistration, adapt_tool
from showhow.tools.external.output import ToolOutput
from showhow.tools.external.schema import ToolDescription
from showhow.tools.limits import ToolLimits
from showhow.tools.tool import Tool, ToolContext
from showhow.worlds.source import World

Answers = Callable[[Mapping[str, Any]], Any]
PEOPLE = [
    {"id": 17, "name": "Ada Lund", "city": "Bern", "orders": [1042, 1043]},
    {"id": 23, "name": "Eli Reed", "city": "Bern", "orders": []},
    {"id": 42, "name": "Cora Berg", "city": "Basel", "orders": [2001]},
]


def find_people(arguments: Mapping[str, Any]) -> Any:
    return [{"id": p["id"], "name": p["name"]} for p in PEOPLE if p["city"] == arguments["city"]]


def describe(arguments: Mapping[str, Any]) -> Any:
    person = next(p for p in PEOPLE if p["id"] == arguments["number"])
    return f"{person['name']} is a customer.\nThe city is {person['city']}."


def count(arguments: Mapping[str, Any]) -> Any:
    return [{"n": sum(f"'{p['city']}'" in arguments["sql"] for p in PEOPLE)}]


def list_all(_: Mapping[str, Any]) -> Any:
    return {"customers": [{"name": p["name"], "city": p["city"]} for p in PEOPLE]}


def find_number(arguments: Mapping[str, Any]) -> Any:
    return [{"n": place} for place, person in enumerate(PEOPLE) if f"'{person['name']}'" in arguments["sql"]]


def find_orders(arguments: Mapping[str, Any]) -> Any:
    number = int(arguments["sql"].rpartition(" = ")[2])
    return {"orders": PEOPLE[number]["orders"]}


TOOLS: dict[str, tuple[Answers, dict[str, str]]] = {
    "find_people": (find_people, {"city": "string"}),
    "describe": (describe, {"number": "integer"}),
    "count": (count, {"sql": "string"}),
    "find_number": (find_number, {"sql": "string"}),
    "find_orders": (find_orders, {"sql": "string"}),
    "list_all": (list_all, {}),
}


def external(name: str) -> Tool:
    answer, kinds = TOOLS[name]
    schema = {"type": "object", "properties": {argument: {"type": kind} for argument, kind in kinds.items()}}

    def call(arguments: dict[str, Any]) -> ToolOutput:
        value = answer(arguments)
        return ToolOutput(text=value) if isinstance(value, str) else ToolOutput(text="", structured=value)

    limits = ToolLimits(seconds=10, characters=10_000)
    return adapt_tool(
        ToolDescription(description=name, arguments=schema), ToolRegistration(name, name, "a test", limits), call
    )


CONTEXT = ToolContext(World(""), lambda texts: pytest.fail(f"the encoder was asked for {texts}"))
OFFERED = [external(name) for name in TOOLS]


def record(question: str, answer: str, *calls: tuple[str, dict[str, Any]], answer_format: Any = None) -> TraceRecord:
    """The trace of a person who made these calls, with the origins that the composer finds."""
    project = Project(name="p", world="", answer_format=answer_format or {})
    row = Question(project_id=project.id, position=1, text=question)
    trace = Trace(question_id=row.id, status="approved", final_answer=answer)
    steps, data = [], {}
    for position, (name, arguments) in enumerate(calls, 1):
        observation = next(tool for tool in OFFERED if tool.name == name).call(CONTEXT, arguments).observation
        assert observation is not None
        origins = trace_argument_origins(arguments, question, data)
        data[position] = observation.data
        steps.append(
            Step(
                trace_id=trace.id,
                position=position,
                tool=name,
                arguments=arguments,
                origins=origins,
                observation=observation.text,
                data=observation.data,
                finished_at=utc_now(),
            )
        )
    return TraceRecord(project, row, trace, steps)


def ask(question: str, *shown: TraceRecord) -> str:
    """The answer of replay, or the reason of its refusal after "refused: "."""
    outcome = run_reasoner(ReplayReasoner(), Task(question, CONTEXT, OFFERED, shown), MemoryRecorder())
    if outcome.answers is not None:
        return outcome.answers.final_answer or ""
    assert outcome.ending == "refused", outcome.failure
    return f"refused: {outcome.refusal_reason}"


SQL = "SELECT count(*) AS n FROM customer WHERE city = 'Bern'"
HOW_MANY = record("How many customers live in Bern?", "2", ("count", {"sql": SQL}))
WHO = record("Who lives in Bern?", "Ada Lund, Eli Reed", ("find_people", {"city": "Bern"}))
LENGTH = record("How many people are there in Bern?", "2", ("find_people", {"city": "Bern"}))
WHERE = record(
    "In which city is the only customer from Basel?",
    "Basel",
    ("find_people", {"city": "Basel"}),
    ("describe", {"number": 42}),
)
BY_NUMBER = record("Which city is customer 42 in?", "Basel", ("describe", {"number": 42}))
BY_ROW = record("Where does Cora Berg live?", "Basel", ("list_all", {}))
ORDERS = record(
    "Which orders has Ada Lund?",
    "1042, 1043",
    ("find_number", {"sql": "SELECT n FROM customer WHERE name = 'Ada Lund'"}),
    ("find_orders", {"sql": "SELECT number FROM orders WHERE customer = 0"}),
)


@pytest.mark.parametrize(
    ("question", "shown", "answer"),
    [
        ("How many customers live in Basel?", HOW_MANY, "1"),
        ("how many customers live in Basel", HOW_MANY, "1"),
        ("Who lives in Basel?", WHO, "Cora Berg"),
        ("How many people are there in Basel?", LENGTH, "1"),
        ("Which city is customer 17 in?", BY_NUMBER, "Bern"),
        ("Where does Ada Lund live?", BY_ROW, "Bern"),
        ("Which orders has Cora Berg?", ORDERS, "2001"),
    ],
)
def test_other_values_take_the_places_of_linked_ones(question: str, shown: TraceRecord, answer: str):
    assert ask(question, shown) == answer


@pytest.mark.parametrize(
    ("question", "shown", "why"),
    [
        ("How many customers live near Basel?", HOW_MANY, "other words"),
        ("How many customers live in Zug?", HOW_MANY, "observed nothing"),
        ("How many customers live in Bern and Basel?", HOW_MANY, "something else than"),
        ("How many customers live in the south?", HOW_MANY, "something else than"),
        ("How many customers live in 1990?", HOW_MANY, "something else than"),
        ("How many customers live in L'Aquila?", HOW_MANY, "mark that ends a text"),
        ("Who lives in Zug?", WHO, "observed nothing"),
        ("In which city is the only customer from Bern?", WHERE, "only a reader can tell"),
        ("Which orders has Eli Reed?", ORDERS, "observed nothing"),
        ("Where does Otis Marlow live?", BY_ROW, "only a reader can tell"),
    ],
)
def test_what_is_not_clear_is_refused_with_the_reason(question: str, shown: TraceRecord, why: str):
    said = ask(question, shown)
    assert said.startswith("refused: ")
    assert why in said


def test_an_answer_that_was_judged_is_repeated_on_its_own_question_alone():
    verdict = {"kind": "json", "schema": {"type": "object"}}
    answer = '{"city": "Basel", "urgency": "low"}'
    shown = record("Triage Cora Berg.", answer, ("list_all", {}), answer_format=verdict)
    assert ask("Triage Cora Berg.", shown) == answer
    assert "the part urgency of its answer stands in no result" in ask("Triage Ada Lund.", shown)


def test_an_argument_that_was_typed_stops_other_values():
    shown = record("Who lives in the capital of Switzerland?", "Ada Lund, Eli Reed", ("find_people", {"city": "Bern"}))
    assert ask("Who lives in the capital of Switzerland?", shown) == "Ada Lund, Eli Reed"
    assert "refused" in ask("Who lives in the capital of France?", shown)


def test_the_own_question_is_answered_with_what_the_tools_return_now(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PEOPLE[2], "city", "Bern")
    assert ask("How many customers live in Bern?", HOW_MANY) == "3"
    assert ask("Who lives in Bern?", WHO) == "Ada Lund, Eli Reed, Cora Berg"


def test_an_imported_trace_without_origins_is_linked_by_its_values():
    for step in (shown := record("Who lives in Bern?", "Ada Lund, Eli Reed", ("find_people", {"city": "Bern"}))).steps:
        step.origins = {}
    assert ask("Who lives in Basel?", shown) == "Cora Berg"
