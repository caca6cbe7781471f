"""Plans of approved traces as demonstrations: frozen, chosen by question and shape, and shown to the planning skill."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from showhow.db.models import Project, Question
from showhow.db.run_spec import RunSpec
from showhow.db.storage.merge import merge_trace
from showhow.db.traces.libraries import DemonstrationFilter
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import load_trace
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.scoring.gold_demonstrations import make_world_gold_traces
from showhow.fewshot_library.formats import find_writer, read_traces, readable_formats, writable_formats
from showhow.fewshot_library.formats.format import TraceExport
from showhow.fewshot_library.library import FreezeOptions, LeakageError, shows_any
from showhow.fiction.generator.build import generate_world
from showhow.fiction.questions.question_file import QUESTIONS_FILE, QuestionFile, QuestionFilter
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.gold_traces.traces import build_question
from showhow.reasoners.atomr.skills import PLAN, PlanReply, PlanRequest, check_plan
from showhow.reasoners.registry import REASONERS
from showhow.reasoners.skills.skill import list_shots
from showhow.reasoners.withheld import list_withheld, write_shown_text
from showhow.runs.preparation import build_reasoner, find_entry, prepare_task, warn_of_tested_world
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import run_reasoner
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.worlds.folder import world_folder
from tests.servers.model import ModelServer, Says

PLANNERS = [entry.name for entry in REASONERS.values() if entry.planning_skill is not None]
ASKED = Project(name="asked", world="asked")


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(lambda _request: Says("I cannot.")) as started:
        yield started


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, server: ModelServer) -> Iterator[Services]:
    """A library `plans` of one world's gold traces by three reasoners and as people do it; another world to ask."""
    home = tmp_path_factory.mktemp("home")
    environ = {
        "SHOWHOW_HOME": str(home),
        "SHOWHOW_MODEL": "openai:scripted",
        "SHOWHOW_MODEL_BASE_URL": server.url,
        "OPENAI_API_KEY": "none",
    }
    built = Services(Settings.from_env(environ), environ)
    for world, seed in (("shown", 5), ("asked", 6)):
        generate_world(home / "worlds", world, GenerationOptions(people=80, seed=seed, depth=3, per_template=1))
    file = QuestionFile(world_folder(home / "worlds", "shown") / QUESTIONS_FILE)
    rows = [file.load_row(summary) for summary in file.select(QuestionFilter())[:12]]
    for reasoner in (*PLANNERS, None):
        with built.database.begin() as session:
            for record in make_world_gold_traces(built, "shown", rows, reasoner):
                if record.trace.status == "approved":
                    assert merge_trace(session, record) == "added"
    built.freeze_version("plans", DemonstrationFilter(), FreezeOptions(by="ada"))
    yield built
    built.close()


def test_a_library_of_the_tested_world_is_named_in_one_sentence(services: Services):
    spec = RunSpec(reasoner="humaniq", library="plans")
    warning = warn_of_tested_world(services, spec, "shown")
    assert warning is not None
    assert warning.startswith("the library plans:1 has demonstrations from the world shown, which is asked about")
    assert warn_of_tested_world(services, spec, "asked") is None
    assert warn_of_tested_world(services, spec.replace(options={"k": 0}), "shown") is None
    assert warn_of_tested_world(services, RunSpec(reasoner="direct", library="plans"), "shown") is None


@pytest.fixture(scope="module")
def question(services: Services) -> Question:
    file = world_folder(services.settings.worlds_folder, "asked") / QUESTIONS_FILE
    record = next(record for record in read_questions(file, "jsonl") if record.kind == "conjunction")
    return build_question(record, ASKED, 1)


@pytest.mark.parametrize("method", PLANNERS)
def test_a_planning_reasoner_gets_plans_of_its_own_kind(services: Services, question: Question, method: str):
    prepared = prepare_task(services, question, ASKED, RunSpec(reasoner=method, options={}, library="plans"))
    assert prepared.selection is not None
    assert [record.trace.reasoner for record in prepared.task.demonstrations] == [method] * 3
    skill = REASONERS[method].planning_skill
    assert skill is not None
    shots = list_shots(skill, prepared.task.demonstrations)
    assert len(shots) == 3
    assert len({shot.request.question for shot in shots}) == 3
    assert (
        prepare_task(
            services, question, ASKED, RunSpec(reasoner=method, options={"shots": 0}, library="plans")
        ).selection
        is None
    )


def test_the_dpp_prefers_plans_of_different_shapes(services: Services, question: Question):
    assert PLAN.shape is not None
    library = services.open_demonstrations("plans", PLAN)
    config = find_entry(RunSpec(reasoner="atomr")).selection_config({"shots": 4})
    picks = library.select(question.text, config).demonstrations
    with services.database.read() as session:
        shapes = [
            tuple(PLAN.shape(shot.reply))
            for shot in list_shots(PLAN, [load_trace(session, pick.trace_id) for pick in picks])
        ]
    assert len(set(shapes)) == 4


@pytest.mark.parametrize("guard", ["question", "entities", "answers"])
def test_an_evaluation_leaves_out_what_its_guard_names_and_the_default_is_the_strictest(services: Services, guard: str):
    """The library is of the world that is asked about."""
    home = world_folder(services.settings.worlds_folder, "shown")
    tested = Project(name="shown", world="shown")
    records = list(read_questions(home / QUESTIONS_FILE, "jsonl"))
    given_away = {"entities": 0, "answers": 0}
    for position, record in enumerate(records[12:40], 1):
        question = build_question(record, tested, position)
        spec = RunSpec(reasoner="humaniq", options={"guard": guard}, library="plans")
        shown = [
            write_shown_text(trace) for trace in prepare_task(services, question, tested, spec).task.demonstrations
        ]
        context = services.tool_context("shown")
        for name in given_away:
            withheld = list_withheld(name, question.text, question.gold_answers, context)
            given_away[name] += any(shows_any(text, withheld) for text in shown)
    expected = {"question": (True, True), "entities": (False, True), "answers": (False, False)}
    assert (given_away["entities"] > 0, given_away["answers"] > 0) == expected[guard]
    assert REASONERS["humaniq"].selection_config({}).guard == "answers"
    # Whoever asks is shown what there is.
    asked = prepare_task(
        services,
        build_question(records[12], tested, 1),
        tested,
        RunSpec(reasoner="humaniq", library="plans"),
        is_evaluated=False,
    )
    assert asked.task.demonstrations


@pytest.mark.parametrize("method", ["humaniq", "replay"])
def test_who_imitates_tool_calls_gets_no_traces_of_skills(services: Services, question: Question, method: str):
    options = {"k": 40} if method == "humaniq" else {}
    demonstrations = prepare_task(
        services, question, ASKED, RunSpec(reasoner=method, options=options, library="plans")
    ).task.demonstrations
    assert len(demonstrations) >= 5
    assert not [step for record in demonstrations for step in record.steps if step.skill is not None]


def test_the_model_is_shown_the_plans_as_answered_requests(services: Services, server: ModelServer, question: Question):
    prepared = prepare_task(services, question, ASKED, RunSpec(reasoner="atomr", options={}, library="plans"))
    server.requests.clear()
    run_reasoner(build_reasoner(RunSpec(reasoner="atomr")), prepared.task, MemoryRecorder())
    system, *shots, asked = server.requests[0].body["messages"]
    assert system["role"] == "system"
    assert [message["role"] for message in shots] == ["user", "assistant"] * 3
    assert PlanRequest.model_validate_json(asked["content"]).question == question.text
    for request, reply in zip(shots[::2], shots[1::2], strict=True):
        assert PlanRequest.model_validate_json(request["content"]).question != question.text
        plan = PlanReply.model_validate_json(reply["content"])
        assert check_plan(PlanRequest(question="?", sources=[]), plan) is None


def test_a_plan_that_the_skill_no_longer_accepts_is_no_shot(services: Services, question: Question):
    prepared = prepare_task(services, question, ASKED, RunSpec(reasoner="atomr", options={}, library="plans"))
    first, *others = prepared.task.demonstrations
    step = next(step for step in first.steps if step.skill == PLAN.reference)
    step.data = {"reply": {"nodes": [{"id": 0, "question": "?", "children": [7]}]}}
    assert len(list_shots(PLAN, [first, *others])) == 2
    step.data = {"reply": None}
    assert len(list_shots(PLAN, [first, *others])) == 2


@pytest.mark.parametrize("name", writable_formats())
def test_an_export_keeps_the_parents_of_a_tree_or_says_that_it_does_not(
    services: Services, question: Question, name: str, tmp_path: Path
):
    records = prepare_task(
        services, question, ASKED, RunSpec(reasoner="atomr", options={}, library="plans")
    ).task.demonstrations
    file = tmp_path / "traces"
    with file.open("wb") as stream:
        losses = find_writer(name)(TraceExport(records), stream)
    if losses.refused:
        assert len(losses.refused) == len(records)
        return
    children = sum(step.parent_id is not None for record in records for step in record.steps)
    kept = 0
    if name in readable_formats():
        read = [record for record in read_traces(file, name) if isinstance(record, TraceRecord)]
        kept = sum(step.parent_id is not None for record in read for step in record.steps)
    assert children > 10
    assert kept + losses.lost["a step's parent_id"] == children


def test_plans_of_test_questions_leak_like_other_demonstrations(services: Services):
    with services.database.begin() as session:
        asked = session.scalars(select(Question)).first()
        assert asked is not None
        asked.split = "test"
    with pytest.raises(LeakageError, match="of the split 'test'"):
        services.freeze_version("leaking", DemonstrationFilter(), FreezeOptions(by="ada"))
