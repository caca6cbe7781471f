"""Shots of every skill: calls of a library's traces, or bundled ones, chosen for each request and shown before it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from showhow.db.models import SPAN_SKILL, Project, Question
from showhow.db.run_spec import RunLimits, RunSpec
from showhow.db.storage.merge import merge_trace
from showhow.db.traces.libraries import DemonstrationFilter
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.scoring.gold_demonstrations import make_world_gold_traces
from showhow.fewshot_library.library import FreezeOptions
from showhow.fiction.generator.build import generate_world
from showhow.fiction.questions.question_file import QUESTIONS_FILE, QuestionFile, QuestionFilter
from showhow.fiction.universe.options import GenerationOptions
from showhow.llm.client import build_chat_client
from showhow.llm.types import ModelProfile
from showhow.oracles.gold_traces.traces import build_question, open_gold_world
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.atomr.skills import OPERATE
from showhow.reasoners.baselines.skills import IN_CONTEXT, REASON_SENTENCE, SELF_ASK
from showhow.reasoners.prompting.run_state import count_message_tokens
from showhow.reasoners.registry import REASONERS
from showhow.reasoners.shots import ShotPool, fit_shots, list_form, load_bundled_shots, write_instructions
from showhow.reasoners.skills.skill import Shot, Skill, SkillCall, build_skill_messages
from showhow.runs.preparation import build_reasoner, prepare_task
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.worlds.folder import world_folder
from tests.servers.gold_model import GoldModel
from tests.servers.model import ModelServer, Reply, Request

METHODS = ("atomr", "pdrr", "geek")
ASKED = Project(name="asked", world="asked")
ANY = Project(name="shown", world="shown")


class Model:
    """Replies by the gold reasoning of the question that is asked next."""

    def __init__(self) -> None:
        self.gold: GoldModel | None = None

    def __call__(self, request: Request) -> Reply:
        assert self.gold is not None
        return self.gold(request)


MODEL = Model()


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(MODEL) as started:
        yield started


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, server: ModelServer) -> Iterator[Services]:
    """A library `gold` of three methods' gold traces of one world; another world to ask."""
    home = tmp_path_factory.mktemp("home")
    environ = {
        "SHOWHOW_HOME": str(home),
        "SHOWHOW_MODEL": "openai:scripted",
        "SHOWHOW_MODEL_BASE_URL": server.url,
        "OPENAI_API_KEY": "none",
    }
    built = Services(Settings.from_env(environ), environ)
    for world, seed in (("shown", 5), ("asked", 6)):
        generate_world(home / "worlds", world, GenerationOptions(people=60, seed=seed, depth=3, per_template=1))
    file = QuestionFile(world_folder(home / "worlds", "shown") / QUESTIONS_FILE)
    rows = [file.load_row(summary) for summary in file.select(QuestionFilter())[:6]]
    for method in METHODS:
        with built.database.begin() as session:
            for record in make_world_gold_traces(built, "shown", rows, method):
                assert merge_trace(session, record) == "added"
    built.freeze_version("gold", DemonstrationFilter(), FreezeOptions(by="ada"))
    yield built
    built.close()


def load_question(services: Services, project: Project, kind: str | None = None) -> Question:
    file = world_folder(services.settings.worlds_folder, project.world) / QUESTIONS_FILE
    return build_question(next(r for r in read_questions(file, "jsonl") if kind in (None, r.kind)), project, 1)


def is_asked(skill: Skill[Any, Any], instructions: str, request: str) -> bool:
    """Whether a request to the server is one of this skill."""
    try:
        call = SkillCall(skill, skill.request_type.model_validate_json(request), "any")
    except ValueError:
        return False
    return build_skill_messages(call)[0].text == instructions


def ask(
    services: Services,
    server: ModelServer,
    question: Question,
    spec: RunSpec,
    window: int | None = None,
) -> tuple[list[tuple[Skill[Any, Any], Mapping[str, Any], list[Shot[Any, Any]]]], MemoryRecorder]:
    """Each call that the server got: the skill, the request and the shots before it; and the record of the run."""
    project = next(project for project in (ASKED, ANY) if project.id == question.project_id)
    gold = open_gold_world(services, project.world)
    MODEL.gold = GoldModel(
        OracleResponder(GoldReasoning(gold, question.text, question.details)), REASONERS[spec.reasoner].skills
    )
    server.requests.clear()
    recorder = MemoryRecorder()
    task = prepare_task(services, question, project, spec).task
    if window is not None:
        profile = ModelProfile("scripted", server.url, context_window=window, reply_limit=window // 4)
        task = replace(task, context=replace(task.context, chat=build_chat_client(profile)))
    outcome = run_reasoner(build_reasoner(spec), task, recorder, RunControl(RunLimits(steps=None)))
    assert outcome.ending == "answered", outcome.failure
    calls = []
    for request in server.requests:
        system, *shown, asked = request.body["messages"]
        skills = REASONERS[spec.reasoner].skills
        skill = next((skill for skill in skills if is_asked(skill, system["content"], asked["content"])), None)
        if skill is None:
            # A tool that writes a query asks the model, too.
            continue
        shots = [
            Shot(
                skill.request_type.model_validate_json(before["content"]),
                skill.reply_type.model_validate_json(after["content"]),
            )
            for before, after in zip(shown[::2], shown[1::2], strict=True)
        ]
        calls.append((skill, json.loads(asked["content"]), shots))
    return calls, recorder


@pytest.mark.parametrize("method", METHODS)
def test_every_call_of_a_run_is_shown_answered_requests_of_its_skill(
    services: Services, server: ModelServer, method: str
):
    question = load_question(services, ASKED)
    spec = RunSpec(reasoner=method, options={"skill_shots": 2, "shots": 1}, library="gold")
    calls, recorder = ask(services, server, question, spec)
    assert len(calls) >= 3
    for skill, asked, shots in calls:
        assert len(shots) == (1 if skill.shape is not None else 2), skill.name
        assert all(skill.check(shot.request, shot.reply) is None for shot in shots)
        assert asked not in [shot.request.model_dump(mode="json", exclude_none=True) for shot in shots]
    stored = [step.data["shots"] for step in recorder.steps if step.data and "shots" in step.data]
    assert len(stored) == len(calls)
    known = {str(row.trace_id) for row in services.open_library("gold")[1].demonstrations}
    assert {shot["trace"] for shots in stored for shot in shots} <= known


def test_without_the_option_a_skill_is_shown_none(services: Services, server: ModelServer):
    question = load_question(services, ASKED)
    calls, recorder = ask(services, server, question, RunSpec(reasoner="pdrr", options={}, library="gold"))
    assert {skill.name for skill, _, shots in calls if shots} == {"triples"}
    calls, recorder = ask(services, server, question, RunSpec(reasoner="pdrr", options={"shots": 0}, library="gold"))
    assert not [skill for skill, _, shots in calls if shots]
    assert not [step for step in recorder.steps if step.data and "shots" in step.data]


def test_a_question_that_is_asked_is_in_no_shot(services: Services, server: ModelServer):
    question = load_question(services, ANY)
    shown = services.open_library("gold")[1].demonstrations
    own = {str(row.trace_id) for row in shown if row.question == question.text}
    assert len(own) == len(METHODS)
    _, recorder = ask(services, server, question, RunSpec(reasoner="geek", options={"skill_shots": 9}, library="gold"))
    stored = {shot["trace"] for step in recorder.steps for shot in (step.data or {}).get("shots", ())}
    assert stored
    assert not stored & own


def test_the_same_request_is_no_shot_and_the_forms_of_the_shots_differ(services: Services):
    shots = load_bundled_shots(OPERATE)
    pool = ShotPool(OPERATE, shots, services.encoder)
    chosen = pool.choose(shots[0].request, 4)
    assert shots[0] not in chosen
    assert chosen == pool.choose(shots[0].request, 4)
    assert len({tuple(list_form(OPERATE, shot)) for shot in chosen}) == 4
    instructions = [write_instructions(OPERATE, shot.request) for shot in shots]
    assert len(pool.choose(shots[0].request, 100)) == instructions.count(instructions[0]) - 1


def test_a_window_of_4096_tokens_has_room_for_fewer_shots_and_the_same_requests(
    services: Services, server: ModelServer
):
    question = load_question(services, ASKED)
    spec = RunSpec(reasoner="geek", options={"skill_shots": 40}, library="gold")
    wide, _ = ask(services, server, question, spec, 128_000)
    narrow, _ = ask(services, server, question, spec, 4_096)
    sizes = [len(request.prompt.encode()) // 3 for request in server.requests]
    assert sorted(str(asked) for _, asked, _ in wide) == sorted(str(asked) for _, asked, _ in narrow)
    assert sum(len(shots) for *_, shots in narrow) < sum(len(shots) for *_, shots in wide)
    assert any(shots for *_, shots in narrow)
    assert max(sizes) < 4_096 - 1_024


def test_a_small_context_window_drops_the_last_shots_first(services: Services):
    shots = load_bundled_shots(OPERATE)
    call = SkillCall(OPERATE, shots[0].request, "any", shots=shots * 4)
    profile = services.model_profile(None)
    assert profile is not None
    fitted = fit_shots(call, replace(profile, context_window=4_096, reply_limit=1_024))
    assert 0 < len(fitted.shots) < len(call.shots)
    assert fitted.shots[0] == call.shots[0]
    assert count_message_tokens(build_skill_messages(fitted)) <= 4_096 - 1_024 - 512
    assert not fit_shots(call, replace(profile, context_window=500, reply_limit=100)).shots
    assert list(fit_shots(call, replace(profile, context_window=100_000)).shots) == call.shots


def test_skills_have_shots_where_the_library_has_none(services: Services, server: ModelServer):
    question = load_question(services, ASKED)
    calls, recorder = ask(services, server, question, RunSpec(reasoner="atomr", options={"skill_shots": 2}))
    assert {len(shots) for skill, _, shots in calls if skill.shape is None} == {2}
    assert {len(shots) for skill, _, shots in calls if skill.shape is not None} == {3}
    assert {} in [shot for step in recorder.steps for shot in (step.data or {}).get("shots", ())]


NEVER_CALLED_BY_GOLD = {"best_chain"}
"""Or by a few only; the worked example of its prompt stands for it."""
SKILLS = {skill.name: skill for entry in REASONERS.values() for skill in entry.skills}
PROMPTED = SKILLS | {skill.name: skill for skill in (IN_CONTEXT, SELF_ASK, REASON_SENTENCE)}


@pytest.mark.parametrize("name", sorted(SKILLS.keys() - NEVER_CALLED_BY_GOLD))
def test_every_skill_that_gold_traces_call_has_bundled_shots(name: str):
    assert len(load_bundled_shots(SKILLS[name])) >= 6
    assert SPAN_SKILL not in SKILLS


@pytest.mark.parametrize("name", sorted(PROMPTED))
def test_the_worked_example_of_a_prompt_is_accepted(name: str):
    skill = PROMPTED[name]
    lines = files(skill.package).joinpath("prompts", f"{name}.jinja").read_text(encoding="utf-8").splitlines()
    requests = [line.removeprefix("Request: ") for line in lines if line.startswith("Request: ")]
    replies = [line.removeprefix("Reply: ") for line in lines if line.startswith("Reply: ")]
    assert len(requests) == len(replies)
    if skill.package.endswith(("baselines", "skills")):
        assert requests
    for written, answered in zip(requests, replies, strict=True):
        request, reply = skill.request_type.model_validate_json(written), skill.reply_type.model_validate_json(answered)
        assert skill.check(request, reply) is None


@pytest.mark.parametrize(
    "entry", [entry for entry in REASONERS.values() if entry.presets], ids=lambda entry: entry.name
)
def test_a_preset_sets_options_that_the_reasoner_has(entry: Any):
    for name in entry.presets:
        entry.parse_options(entry.apply_preset(name, {}))
