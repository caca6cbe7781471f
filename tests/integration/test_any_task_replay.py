"""The examples of docs/how-to/any-task.md without a model: recorded with its tools, frozen, asked of replay."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from showhow.db.models import Question
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import review
from showhow.db.runs.repetitions import OTHER_NAMES, OWN_QUESTION
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording
from showhow.db.traces.recording import NewStep, TraceAnswers
from showhow.db.traces.traces import load_trace
from showhow.reasoners.base import to_step_result
from showhow.reasoners.provenance import trace_argument_origins
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.app.cli.in_process import run_in_process, shared_encoder
from tests.fixtures.any_task import prepare_examples

pytestmark = pytest.mark.long

Calls = list[tuple[str, dict[str, Any]]]
SPENT_MOST = "SELECT name FROM customer JOIN sale ON customer = id ORDER BY price DESC LIMIT 1"
IN_BERN = "SELECT count(*) AS n FROM customer WHERE city = 'Bern'"
TO_NOBODY = "SELECT item FROM sale WHERE customer NOT IN (SELECT id FROM customer WHERE city = 'Bern')"
RECORDED: dict[str, dict[str, tuple[Calls, str]]] = {
    "Shop": {
        "s1": ([("query_shop", {"sql": SPENT_MOST})], "Ada Lund"),
        "s2": ([("query_shop", {"sql": IN_BERN})], "2"),
        "s3": ([("query_shop", {"sql": TO_NOBODY})], "lamp"),
    },
    "Inbox": {
        "t1": (
            [("inbox_find_messages", {"word": "down"}), ("inbox_find_plan", {"address": "ada@lund.example"})],
            '{"urgency": "high", "team": "operations"}',
        ),
        "t2": (
            [("inbox_find_messages", {"word": "address"}), ("inbox_find_plan", {"address": "eli@reed.example"})],
            '{"urgency": "low", "team": "accounts"}',
        ),
    },
}


def open_services(home: Path) -> Services:
    values = {"SHOWHOW_HOME": str(home), "SHOP": str(home / "shop.db")}
    services = Services(Settings.from_env(values), values)
    vars(services)["encoder"] = shared_encoder()
    return services


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home in which the five questions of the page were recorded, approved and frozen."""
    home = tmp_path_factory.mktemp("home")
    prepare_examples(home)
    services = open_services(home)
    for project, answers in RECORDED.items():
        for source_id, (calls, answer) in answers.items():
            record(services, project, source_id, calls, answer)
    services.close()
    for project in RECORDED:
        run(home, "library", "freeze", project.lower(), "--project", project, "--json")
    return home


def run(home: Path, *words: str) -> Any:
    """The JSON that a verb prints in that home."""
    done = run_in_process(home, *words, SHOP=str(home / "shop.db"))
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def record(services: Services, project: str, source_id: str, calls: Calls, answer: str, *, world: str = "") -> None:
    """Record the calls as the Annotate page does, submit the answer, and approve it as another person."""
    database, data = services.database, dict[int, Any]()
    question = find_question(services, project, source_id)
    tools = services.tool_registry().offered_tools(services.open_world(world), [name for name, _ in calls])
    with database.begin() as session:
        lead, ann = (users.register_user(session, name).id for name in ("lead", "ann"))
        trace_id = recording.start_trace(session, question.id, ann).id
    for position, (name, arguments) in enumerate(calls, 1):
        new = NewStep("I look it up.", name, arguments, trace_argument_origins(arguments, question.full_text, data))
        with database.begin() as session:
            version = load_trace(session, trace_id).trace.version
            step = recording.begin_step(session, trace_id, new, seen=version, by=ann)
        outcome = next(tool for tool in tools if tool.name == name).call(services.tool_context(world), arguments)
        assert outcome.observation is not None, outcome.error
        data[position] = outcome.observation.data
        with database.begin() as session:
            recording.complete_step(session, step.id, to_step_result(outcome), by=ann)
    with database.begin() as session:
        version = load_trace(session, trace_id).trace.version
        recording.submit_trace(session, trace_id, TraceAnswers(answer), seen=version, by=ann)
    with database.begin() as session:
        review.approve_trace(session, trace_id, seen=trace_version(session, trace_id), by=lead)


def find_question(services: Services, project: str, source_id: str) -> Question:
    with services.database.read() as session:
        stored = projects.get_project(session, project)
        return next(q for q in projects.list_questions(session, stored.id) if q.source_id == source_id)


def ask(home: Path, project: str, question: str) -> dict[str, Any]:
    told: dict[str, Any] = run(
        home, "ask", question, "--project", project, "--reasoner", "replay", "--library", project.lower(), "--json"
    )
    return told


@pytest.mark.parametrize(
    ("project", "source_id"), [(project, source_id) for project, own in RECORDED.items() for source_id in own]
)
def test_each_of_the_five_questions_is_answered_by_its_own_demonstration(home: Path, project: str, source_id: str):
    services = open_services(home)
    question = find_question(services, project, source_id).full_text
    services.close()
    answer = ask(home, project, question)["answer"]
    expected = RECORDED[project][source_id][1]
    assert (json.loads(answer) == json.loads(expected)) if project == "Inbox" else answer == expected


@pytest.mark.parametrize(
    ("project", "question", "answer"),
    [
        ("Shop", "How many customers live in Basel?", "1"),
        ("Shop", "How many customers live in Zug?", None),
        ("Shop", "How many customers live in Switzerland?", None),
        ("Shop", "Which customer spent least?", None),
        ("Shop", "Which item was sold to nobody in Basel?", None),
        ("Inbox", "Triage this message.\n\nmessage:\nThe shop has been slow since nine.", None),
        ("Inbox", "Triage this message.", None),
    ],
)
def test_other_questions_are_answered_by_other_values_or_refused(
    home: Path, project: str, question: str, answer: str | None
):
    told = ask(home, project, question)
    assert told["answer"] == answer, told
    assert told["ending"] == ("refused" if answer is None else "answered")


def test_a_verification_still_leaves_the_own_demonstrations_out(home: Path):
    verified = run(home, "verify", "--project", "Shop", "--reasoner", "replay", "--library", "shop", "--json")
    assert verified["right"] == 0, verified


def test_it_is_found_out_and_kept_which_demonstrations_work_for_other_names(home: Path):
    results = run(
        home, "traces", "repeat", "--project", "Shop", "--question", "How many customers live in Basel?", "--json"
    )
    states = {result["question"]: result["state"] for result in results}
    assert states["How many customers live in Bern?"] == OTHER_NAMES
    assert states["Which customer spent most?"] != OTHER_NAMES
    assert run(home, "traces", "repeat", "--project", "Shop", "--not-tried", "--json") == []
    again = {r["question"]: r for r in run(home, "traces", "repeat", "--project", "Shop", "--json")}
    own = again["How many customers live in Bern?"]
    assert own["state"] == OWN_QUESTION
    assert "nothing here has a name of the same kind" in own["why"]
