"""Asking in the background: side by side, stopped, gone on with, run again; a model over real HTTP behind it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from db import projects, queue, review, runs, traces
from db.libraries import MODELS
from db.trace_record import TraceRecord
from runs.ask import (
    ASK_ERRORS,
    ActiveRun,
    AskRequest,
    begin_run,
    is_running,
    rebuild_prompt,
    rerun_from_step,
    resume_run,
)
from runs.budget import RunLimits
from runs.preparation import RunConfig
from runs.process import current_worker_id, is_worker_alive
from runs.services import Services
from settings import Settings
from tests.servers.model import ModelServer, Request, Says
from worlds.build import WorldContents, build_world
from worlds.importers import read_articles

HARBOUR = Path(__file__).parents[1] / "tools"
MODEL = RunConfig("humaniq", {"own_answer": False, "response": "none"})
QUESTION = "Where was Ada Reed born?"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(answering) as started:
        yield started


@pytest.fixture
def services(tmp_path: Path, server: ModelServer) -> Iterator[Services]:
    """The harbour and a scripted model."""
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
    """Searches once, then knows."""
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
    services: Services, question: str = QUESTION, config: RunConfig = MODEL, limits: RunLimits | None = None
) -> ActiveRun:
    return begin_run(services, AskRequest(question, "harbour", config, limits or RunLimits()))


def test_an_ask_in_the_background_is_in_the_store_from_the_start_and_ends_there(services: Services):
    trace_id = services.active_runs.start(begun(services))
    assert opened(services, trace_id).question.text == QUESTION
    until(lambda: services.active_runs.get(trace_id) is None)
    record = opened(services, trace_id)
    assert (record.trace.ending, record.trace.final_answer, len(record.steps)) == ("answered", "Gullhaven", 1)
    assert record.project.name == "Asked of harbour"
    assert record.trace.configuration["way"] == {"reasoner": "humaniq", "options": MODEL.options, "library": None}
    assert record.trace.configuration["model"] == "openai:scripted"


def test_the_same_question_is_asked_twice_and_kept_once(services: Services):
    first, second = begun(services), begun(services, f"  {QUESTION} ")
    assert first.trace_id != second.trace_id
    assert opened(services, first.trace_id).question.id == opened(services, second.trace_id).question.id


def test_one_who_hangs_blocks_no_other_is_heard_and_stops_at_once(services: Services):
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


def test_what_was_interrupted_is_known_and_goes_on(services: Services):
    ask = begun(services)
    assert not is_running(services, opened(services, ask.trace_id).trace)
    with services.database.read() as session:
        (listed,) = runs.list_latest_traces(session, "ask")
    assert (listed.trace_id, listed.ending) == (ask.trace_id, None)
    assert resume_run(services, ask.trace_id, RunLimits()).execute().ending == "answered"


def test_run_again_from_a_step_keeps_what_was_before(services: Services):
    ask = begun(services)
    ask.execute()
    again = rerun_from_step(services, ask.trace_id, 1, MODEL, RunLimits())
    again.execute()
    record = opened(services, again.trace_id)
    assert (record.trace.parent_id, record.trace.parent_position) == (ask.trace_id, 1)
    assert (record.trace.ending, len(record.steps)) == ("answered", 1)


def test_the_prompt_that_is_shown_is_the_one_that_was_sent(services: Services, server: ModelServer):
    ask = begun(services)
    ask.execute()
    record = opened(services, ask.trace_id)
    assert len(server.requests) == 2
    for position, request in enumerate(server.requests, 1):
        sent = [(each["role"], each.get("content") or "") for each in request.body["messages"]]
        assert [(each.role, each.text) for each in rebuild_prompt(services, record, position)] == sent


def test_of_two_pipelines_the_prompt_is_shown_that_each_was_sent(services: Services, server: ModelServer):
    ask = begun(services, config=RunConfig("fusion", {"merge": "random"}))
    ask.execute()
    record = opened(services, ask.trace_id)
    # The graph's pipeline is given up after three calls of a tool that it has not.
    assert [bool(step.tool) for step in record.steps] == [True] + [False] * 5
    assert len(server.requests) == len(record.steps) - 1
    for position, request in enumerate(server.requests, 1):
        sent = [(each["role"], each.get("content") or "") for each in request.body["messages"]]
        assert [(each.role, each.text) for each in rebuild_prompt(services, record, position)] == sent


@pytest.mark.parametrize(
    ("way", "world", "said"),
    [
        (RunConfig("nobody"), "harbour", "there is no reasoner 'nobody'"),
        (RunConfig("humaniq", {"k": -1}), "harbour", "k is -1"),
        (RunConfig("humaniq", library="nets"), "harbour", "there is no library 'nets'"),
        (MODEL, "moon", "There is no world 'moon'"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_stored(
    services: Services, way: RunConfig, world: str, said: str
):
    with pytest.raises(ASK_ERRORS, match=said):
        begin_run(services, AskRequest("Who?", world, way))
    with services.database.read() as session:
        assert projects.list_projects(session) == []


def test_a_limit_is_told_on_the_trace(services: Services):
    ended = begun(services, limits=RunLimits(seconds=0.01)).execute()
    assert (ended.ending, ended.failure) == (
        "limit",
        "the limit of 0.01 seconds is reached; ask again with a higher one",
    )


def test_a_runs_traces_are_nobodys_drafts_and_reviewed_only_when_models_are_asked_for(services: Services):
    begun(services)
    begun(services, "Another?").execute()
    with services.database.begin() as session:
        (project,) = projects.list_projects(session)
        ada = projects.get_or_create_user(session, "ada")
        assert queue.list_drafts(session, project.id, ada.id) == []
        assert queue.measure_progress(session, project.id, ada.id).done == 0
        assert review.count_by_status(session, project.id) == {}
        assert review.list_for_review(session, project.id).items == []
        assert review.count_by_status(session, project.id, by=MODELS) == {"draft": 1, "submitted": 1}
        (line,) = review.list_for_review(session, project.id, by=MODELS).items
    assert line.question == "Another?"


def test_a_process_is_known_to_be_alive_by_more_than_its_number():
    assert is_worker_alive(current_worker_id())
    host, number, started = current_worker_id().split(":")
    assert not is_worker_alive(f"{host}:{number}:{int(started) + 1}")
    assert not is_worker_alive(f"another-{host}:{number}:{started}")
    assert not is_worker_alive("")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ}) as child:
        told = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
        worker = f"{host}:{child.pid}:{told}"
        assert is_worker_alive(worker)
        child.kill()
    assert not is_worker_alive(worker)
