"""Background runs with a model over real HTTP: concurrent, stopped, resumed and rerun."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from showhow.db.database import Conflict
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import queue, review_queue
from showhow.db.review.review_queue import ReviewFilter, list_questions_to_review
from showhow.db.run_spec import RunLimits, RunSpec
from showhow.db.runs import runs
from showhow.db.traces import traces
from showhow.db.traces.libraries import MODELS
from showhow.db.traces.model_calls import list_model_calls, load_prompt
from showhow.db.traces.trace_record import TraceRecord
from showhow.llm.types import ModelProfile
from showhow.llm.usage import TokenPrice
from showhow.reasoners.registry import REASONERS
from showhow.runs.ask import ASK_ERRORS, ActiveRun, AskRequest, begin_run, is_running
from showhow.runs.process import current_worker_id, is_worker_alive, worker_id_of
from showhow.runs.resume import rerun_from_step, resume_run
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import read_world_metadata
from tests.servers.model import ModelServer, Request, Says

HARBOUR = Path(__file__).parents[1] / "tools"
MODEL = RunSpec(reasoner="humaniq", options={"own_answer": False, "response": "none"})
QUESTION = "Where was Ada Reed born?"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(answering) as started:
        yield started


@pytest.fixture
def services(tmp_path: Path, server: ModelServer) -> Iterator[Services]:
    """Services with the harbour world and a scripted model."""
    sources = WorldContents(read_articles(HARBOUR / "harbour.jsonl"), HARBOUR / "harbour.ttl")
    build_world(tmp_path / "worlds", "harbour", sources)
    environ = {
        "SHOWHOW_HOME": str(tmp_path),
        "SHOWHOW_MODEL": "openai:scripted",
        "SHOWHOW_MODEL_BASE_URL": server.url,
        "OPENAI_API_KEY": "none",
    }
    built = Services(Settings.from_env(environ), environ)
    yield built
    built.close()


def answering(request: Request) -> Any:
    """A reasoner that searches once and then answers."""
    if request.body["messages"][-1]["role"] == "tool":
        return Says("I know it.\nFinal Answer: Gullhaven")
    if "hang" in str(request.body["messages"][-1]["content"]):
        return Says("I look, and then I hang. " * 40, pause=0.02)
    return Says("I look.", calls=[("wikisearch", {"query": "Ada Reed"})])


def opened(services: Services, trace_id: UUID) -> TraceRecord:
    with services.database.read() as session:
        return traces.load_trace(session, trace_id)


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def begun(
    services: Services, question: str = QUESTION, config: RunSpec = MODEL, limits: RunLimits | None = None
) -> ActiveRun:
    return begin_run(services, AskRequest(question, "harbour", config.replace(limits=limits or RunLimits())))


def test_a_background_run_is_stored_from_start_to_end(services: Services):
    trace_id = services.active_runs.start(begun(services))
    assert opened(services, trace_id).question.text == QUESTION
    until(lambda: services.active_runs.get(trace_id) is None)
    record = opened(services, trace_id)
    assert (record.trace.ending, record.trace.final_answer, len(record.steps)) == ("answered", "Gullhaven", 1)
    assert record.project.name == "Asked of harbour"
    assert record.run is not None
    spec = record.run.spec
    assert (spec.reasoner, spec.options, spec.library) == ("humaniq", MODEL.options, None)
    assert spec.model == "openai:scripted"


def test_a_question_asked_twice_is_stored_once(services: Services):
    first, second = begun(services), begun(services, f"  {QUESTION} ")
    assert first.trace_id != second.trace_id
    assert opened(services, first.trace_id).question.id == opened(services, second.trace_id).question.id


def test_a_hanging_run_blocks_no_other_streams_its_text_and_stops_at_once(services: Services):
    hanging = begun(services, "Will this hang?")
    services.active_runs.start(hanging)
    until(lambda: "then I hang. I look" in hanging.streamed_text)
    assert is_running(services, opened(services, hanging.trace_id).trace)
    other = services.active_runs.start(begun(services))
    until(lambda: services.active_runs.get(other) is None)
    assert opened(services, other).trace.ending == "answered"

    assert services.active_runs.get(hanging.trace_id) is hanging
    began = time.monotonic()
    hanging.stop()
    until(lambda: services.active_runs.get(hanging.trace_id) is None)
    assert time.monotonic() - began < 5
    assert opened(services, hanging.trace_id).trace.ending == "stopped"
    assert not is_running(services, opened(services, hanging.trace_id).trace)


def test_an_interrupted_run_is_recognized_and_resumes(services: Services):
    ask = begun(services)
    assert not is_running(services, opened(services, ask.trace_id).trace)
    with services.database.read() as session:
        (listed,) = runs.list_latest_traces(session, "ask")
    assert (listed.trace_id, listed.ending) == (ask.trace_id, None)
    assert resume_run(services, ask.trace_id, RunLimits()).execute().ending == "answered"


def test_a_rerun_from_a_step_keeps_the_steps_before(services: Services):
    ask = begun(services)
    ask.execute()
    again = rerun_from_step(services, ask.trace_id, 1, MODEL)
    again.execute()
    record = opened(services, again.trace_id)
    assert (record.trace.parent_id, record.trace.parent_position) == (ask.trace_id, 1)
    assert (record.trace.ending, len(record.steps)) == ("answered", 1)


def sent_messages(server: ModelServer) -> list[list[tuple[str, str]]]:
    return [
        [(message["role"], message.get("content") or "") for message in request.body["messages"]]
        for request in server.requests
    ]


def stored_prompts(services: Services, trace_id: UUID) -> list[list[tuple[str, str]]]:
    with services.database.read() as session:
        prompts = [load_prompt(session, call.id) for call in list_model_calls(session, trace_id)]
    return [[(message["role"], message["content"]) for message in prompt] for prompt in prompts]


@pytest.mark.parametrize(
    "config", [MODEL, RunSpec(reasoner="fusion", options={"merge": "random"})], ids=["humaniq", "fusion"]
)
def test_every_request_is_stored_as_it_was_sent_with_its_reply(
    services: Services, server: ModelServer, config: RunSpec
):
    run = begun(services, config=config)
    run.execute()
    assert len(server.requests) >= 2
    assert stored_prompts(services, run.trace_id) == sent_messages(server)
    with services.database.read() as session:
        calls = list_model_calls(session, run.trace_id)
    assert {call.state for call in calls} == {"answered"}
    assert {call.model for call in calls} == {"openai:scripted"}
    assert calls[0].reply is not None
    assert calls[0].reply["calls"][0]["name"] == "wikisearch"
    # The first request decided the first step; the last one of a single agent gave the answer.
    assert calls[0].step_id == opened(services, run.trace_id).steps[0].id


def test_a_request_is_stored_before_it_is_sent_and_its_reply_before_it_is_used(services: Services, server: ModelServer):
    run = begun(services, "Will this hang?")
    services.active_runs.start(run)
    until(lambda: server.requests)
    with services.database.read() as session:
        (call,) = list_model_calls(session, run.trace_id)
    assert (call.state, call.reply, call.step_id) == ("open", None, None)
    run.stop()
    until(lambda: services.active_runs.get(run.trace_id) is None)
    with services.database.read() as session:
        (call,) = list_model_calls(session, run.trace_id)
    assert call.state == "lost"


def test_a_key_is_not_stored_with_a_request(tmp_path: Path, services: Services, server: ModelServer):
    environ = {**services.environ, "OTHER_API_KEY": "sk-0123456789"}
    keyed = Services(services.settings, environ)
    run = begun(keyed, "Is sk-0123456789 a key?")
    run.execute()
    text = str(stored_prompts(keyed, run.trace_id))
    assert "sk-0123456789" not in text
    assert "[key removed]" in text
    keyed.close()


def test_a_run_pins_what_determines_it(services: Services):
    run = opened(services, begun(services).trace_id).run
    assert run is not None
    spec = run.spec
    assert (spec.model, spec.encoder, spec.options) == ("openai:scripted", services.settings.encoder, MODEL.options)
    assert spec.code_version
    assert spec.tools is not None
    assert "wikisearch" in spec.tools
    assert spec.world_hash == read_world_metadata(services.settings.worlds_folder, "harbour")["hash"]


def test_a_run_does_not_continue_with_another_model(services: Services):
    trace_id = begun(services).trace_id
    changed = Services(replace(services.settings, model="openai:another"), services.environ)
    with pytest.raises(Conflict, match="started with the model openai:scripted, and openai:another is set up now"):
        resume_run(changed, trace_id, RunLimits())
    assert resume_run(services, trace_id, RunLimits()).execute().ending == "answered"
    changed.close()


def profiled(home: Path, services: Services, **changes: Any) -> ModelProfile:
    """Store a profile of the scripted model, or a changed one in its place."""
    stored = services.profile_file.load().get("local")
    before = stored or ModelProfile("openai:scripted", services.settings.model_base_url, name="local")
    profile = replace(before, **changes)
    services.profile_file.save(profile, replaces=stored)
    return profile


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_url": "http://127.0.0.1:9/v1"}, "base url was"),
        ({"temperature": 0.7}, "temperature was not set and is 0.7"),
        ({"reasoning_effort": "high"}, 'reasoning effort was not set and is "high"'),
        ({"reply_limit": 900}, "reply limit was 4000 and is 900"),
        ({"context_window": 9_000, "reply_limit": 4_000}, "context window was 16000 and is 9000"),
        ({"extra_body": {"top_k": 1}}, 'extra body was not set and is {"top_k": 1}'),
        ({"model": "openai:another"}, "started with the model openai:scripted, and openai:another is set up now"),
        ({"name": "renamed"}, "the model profile local, which was removed"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_run_does_not_continue_under_a_changed_profile(
    tmp_path: Path, services: Services, changes: dict[str, Any], said: str
):
    profiled(tmp_path, services)
    trace_id = begun(services, config=MODEL.replace(profile={"name": "local"})).trace_id
    profiled(tmp_path, services, **changes)
    with pytest.raises(Conflict, match=re.escape(said)):
        resume_run(services, trace_id, RunLimits())


def test_a_run_continues_where_only_price_or_rates_of_its_profile_changed(tmp_path: Path, services: Services):
    profiled(tmp_path, services)
    trace_id = begun(services, config=MODEL.replace(profile={"name": "local"})).trace_id
    profiled(tmp_path, services, price=TokenPrice(1.0, 1.0), requests_per_minute=6_000.0, seconds=50.0)
    outcome = resume_run(services, trace_id, RunLimits()).execute()
    assert outcome.ending == "answered"
    run = opened(services, trace_id).run
    assert run is not None
    assert run.spec.profile is not None
    recorded = run.spec.profile
    assert (recorded["name"], recorded["context_window"], recorded["seconds"]) == ("local", 16_000, 120.0)
    assert "price" not in recorded


def test_a_prompt_fits_the_window_of_the_profile(tmp_path: Path, services: Services):
    profiled(tmp_path, services, context_window=2_600, reply_limit=1_300)
    outcome = begun(services, config=MODEL.replace(profile={"name": "local"})).execute()
    # Instructions and tools alone take more than 1,300 tokens.
    assert outcome.ending == "failed"
    assert "the context window has room for 1,300" in (outcome.failure or "")
    profiled(tmp_path, services, context_window=16_000)
    assert begun(services, config=MODEL.replace(profile={"name": "local"})).execute().ending == "answered"


def test_of_two_continuations_of_one_trace_only_the_second_writes(services: Services):
    trace_id = begun(services, "Will this hang?").trace_id
    first = resume_run(services, trace_id, RunLimits())
    services.active_runs.start(first)
    until(lambda: "then I hang" in first.streamed_text)
    second = resume_run(services, trace_id, RunLimits())
    services.active_runs.start(second)
    until(lambda: "then I hang" in second.streamed_text)
    # The end of the first has not unregistered the second, and has not written an ending.
    assert first.stop_requested
    time.sleep(0.5)
    assert services.active_runs.get(trace_id) is second
    assert opened(services, trace_id).trace.ending is None
    second.stop()
    until(lambda: services.active_runs.get(trace_id) is None)
    assert opened(services, trace_id).trace.ending == "stopped"


@pytest.mark.parametrize(
    ("way", "world", "said"),
    [
        (RunSpec(reasoner="nobody"), "harbour", "there is no reasoner 'nobody'"),
        (RunSpec(reasoner="humaniq", options={"k": -1}), "harbour", "k is -1"),
        (RunSpec(reasoner="humaniq", library="nets"), "harbour", "there is no library 'nets'"),
        (MODEL, "moon", "There is no world 'moon'"),
    ],
)
def test_an_invalid_request_is_refused_before_anything_is_stored(
    services: Services, way: RunSpec, world: str, said: str
):
    with pytest.raises(ASK_ERRORS, match=said):
        begin_run(services, AskRequest("Who?", world, way))
    with services.database.read() as session:
        assert projects.list_projects(session) == []


def test_a_reached_limit_is_stored_on_the_trace(services: Services):
    outcome = begun(services, limits=RunLimits(seconds=0.01)).execute()
    assert (outcome.ending, outcome.failure) == (
        "limit",
        "the limit of 0.01 seconds is reached; ask again with a higher one",
    )


def test_traces_of_runs_are_no_drafts_of_a_person_and_reviewed_only_on_request(services: Services):
    begun(services)
    begun(services, "Another?").execute()
    with services.database.begin() as session:
        (project,) = projects.list_projects(session)
        ada = users.register_user(session, "ada")
        assert queue.list_drafts(session, project.id, ada.id) == []
        assert queue.measure_progress(session, project.id, ada.id).done == 0
        assert review_queue.count_by_status(session, project.id) == {}
        assert list_questions_to_review(session, project.id, ReviewFilter()) == []
        assert review_queue.count_by_status(session, project.id, by=MODELS) == {"draft": 1, "submitted": 1}
        (line,) = list_questions_to_review(session, project.id, ReviewFilter(by=MODELS))
        assert review_queue.load_questions(session, [line.id])[line.id].text == "Another?"


def test_a_process_is_identified_by_host_pid_and_creation_time():
    assert is_worker_alive(current_worker_id())
    host, pid, created = current_worker_id().split(":")
    assert not is_worker_alive(f"{host}:{pid}:{float(created) + 60}")
    assert not is_worker_alive(f"another-{host}:{pid}:{created}")
    assert not any(map(is_worker_alive, ["", "::", f"{host}:{pid}:", f"{host}:{pid}:x", f"{host}:x:{created}"]))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ}) as child:
        worker = worker_id_of(psutil.Process(child.pid))
        assert is_worker_alive(worker)
        child.kill()
    assert not is_worker_alive(worker)


def test_a_resumed_replay_keeps_the_limit_of_its_own_reasoner():
    assert {name: entry.default_step_limit for name, entry in REASONERS.items()} == {
        "replay": 501,
        "humaniq": 20,
        "fusion": 20,
        "atomr": 2_000,
        "pdrr": 2_000,
        "geek": 2_000,
        "direct": 20,
        "cot": 20,
        "cot-sc": 2_000,
        "rag": 20,
        "cot-rag": 20,
        "in-context": 20,
        "self-ask": 2_000,
        "ircot": 2_000,
        "react": 2_000,
        "react-cot-sc": 2_000,
        "cot-sc-react": 2_000,
        "probtree": 2_000,
        "chain-of-knowledge": 2_000,
        "tog": 2_000,
        "pog": 2_000,
        "tog-2": 2_000,
        "structgpt": 2_000,
    }
