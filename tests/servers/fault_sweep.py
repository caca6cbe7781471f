"""Fault injection: each server fault between Showhow and each source, with the steps tried and the steps lost.

A step is lost if it does not fail within its limit with one sentence, if it is stored as a result, if the response
cache records anything, or if the next step fails. The servers are those of the tests: a real MediaWiki, Oxigraph and
Virtuoso, and a scripted model over HTTP.
"""

import sqlite3
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from showhow.db.database import Database
from showhow.db.models import Question
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.storage.schema import upgrade
from showhow.db.traces import recording, traces
from showhow.llm.client import build_chat_client
from showhow.llm.types import ModelProfile
from showhow.tools.registry import get_tool
from showhow.tools.tool import EncodeFunction, ToolContext
from showhow.worlds.live.http.request import Access
from showhow.worlds.live.http.response_cache import RESPONSE_CACHE_FILE
from showhow.worlds.live.world import add_live_world
from showhow.worlds.open import open_world
from tests.servers.faults import FAULTS, Proxy, proxied
from tests.servers.live_world import description

ToolCallList = tuple[tuple[str, dict[str, Any]], ...]
TEXT_CALLS: ToolCallList = (
    ("wikisearch", {"query": "Timber Falls"}),
    ("read", {"title": "Timber Falls", "question": "Who directed it?"}),
)
GRAPH_CALLS: ToolCallList = (
    ("getWikiDataID", {"title": "Timber Falls"}),
    ("generateQuery", {"question": "Who is the director of Timber Falls?", "entity_ids": ["Q6027056"]}),
    ("runQuery", {"sparql": "SELECT ?who { wd:Q6027056 wdt:P57 ?who }"}),
    ("getLabel", {"ids": ["Q120353"]}),
)
MODEL_CALLS: ToolCallList = (TEXT_CALLS[1], GRAPH_CALLS[1])
GRACE_SECONDS = 5.0
"""Seconds beyond the limit after which a step counts as lost; allows for a busy machine."""


@dataclass(frozen=True, slots=True)
class SourceServers:
    """URLs of the servers; each endpoint with the IRI of its graph."""

    api: str
    endpoints: Mapping[str, tuple[str, str]]
    model: str


@dataclass(frozen=True, slots=True)
class FaultTrial:
    """One step under a fault; `problem` is "" if it failed as specified."""

    source: str
    fault: str
    tool: str
    seconds: float
    message: str
    problem: str


def sweep_fault(
    fault: str, servers: SourceServers, folder: Path, seconds: float, encode: EncodeFunction
) -> list[FaultTrial]:
    """Try every tool under this fault of every source; each source has its own world, and all run concurrently."""
    encode(["loads the encoder's model before the calls are timed"])
    sources = ("text", *servers.endpoints, "model")
    sweeps = [_FaultSweep(name, fault, servers, folder / name, seconds) for name in sources]
    with closing(Database(f"sqlite:///{folder / 'showhow.db'}")) as store, ThreadPoolExecutor(len(sources)) as threads:
        upgrade(store)
        futures = [threads.submit(sweep.run_trials, encode, _DraftTrace(store, sweep.source)) for sweep in sweeps]
        return [trial for future in futures for trial in future.result()]


class _FaultSweep:
    """One trace, recorded as by the Annotate page, while one source is faulty."""

    def __init__(self, source: str, fault: str, servers: SourceServers, folder: Path, seconds: float) -> None:
        self.source, self._fault = source, fault
        self._servers, self._folder, self._seconds = servers, folder, seconds
        folder.mkdir(parents=True)

    def run_trials(self, encode: EncodeFunction, trace: "_DraftTrace") -> list[FaultTrial]:
        """Try each call under the fault, and then without it."""
        with ExitStack() as opened:
            proxy, context = self._open_context(encode, opened)
            calls = {"text": TEXT_CALLS, "model": MODEL_CALLS}.get(self.source, GRAPH_CALLS)
            for name, arguments in calls if self.source == "model" else ():
                # The first call of a process loads LangChain, for seconds that are not the fault's.
                get_tool(name).call(self._use_own_model(context, f"loading-{name}", proxy), arguments)
            trials = [
                self._try_step(name, arguments, proxy, self._use_own_model(context, name, proxy), trace)
                for name, arguments in calls
            ]
            stored_steps = trace.submit()
        if stored_steps == 2 * len(calls):
            return trials
        return [_mark_lost(trial, f"{stored_steps} steps stored of {2 * len(calls)}") for trial in trials]

    def _open_context(self, encode: EncodeFunction, opened: ExitStack) -> tuple[Proxy, ToolContext]:
        """The proxy in front of the faulty source, and the context of the tools, whose other sources work."""
        servers = self._servers
        endpoint, graph = servers.endpoints.get(self.source) or next(iter(servers.endpoints.values()))
        upstream = {"text": servers.api, "model": servers.model}.get(self.source, endpoint)
        proxy = opened.enter_context(proxied(upstream))
        api = proxy.url if self.source == "text" else servers.api
        endpoint = proxy.url if self.source in servers.endpoints else endpoint
        limits = {"seconds": self._seconds, "attempts": 2}
        add_live_world(self._folder / "worlds", "live", description(api, endpoint, graph, **limits), "bench.toml")
        world = open_world(self._folder / "worlds", "live", Access("bench@showhow.example"))
        return proxy, ToolContext(world, encode)

    def _use_own_model(self, context: ToolContext, tool: str, proxy: Proxy) -> ToolContext:
        """The context with a model for this tool only: what a refusal says about a model outlasts its call."""
        if self.source != "model":
            return context
        profile = ModelProfile(f"scripted-{tool}", proxy.url, "no-key-is-needed", self._seconds)
        return replace(context, chat=build_chat_client(profile))

    def _try_step(
        self, name: str, arguments: dict[str, Any], proxy: Proxy, context: ToolContext, trace: "_DraftTrace"
    ) -> FaultTrial:
        recorded_before = self._count_recorded(proxy)
        proxy.fault = FAULTS[self._fault]
        requests_before = proxy.asked
        started = time.perf_counter()
        step = trace.record_step(name, arguments, context)
        seconds = time.perf_counter() - started
        reached_server = proxy.asked > requests_before
        proxy.fault = None
        recorded = self._count_recorded(proxy) - recorded_before
        message, problem = self._judge_step(step)
        # A model call may be retried within one limit, and the grammar answers after it.
        is_late = seconds > self._seconds + GRACE_SECONDS
        problem = (
            problem
            or ("it exceeded its time limit" if is_late else "")
            or ("no request reached the faulty server" if not reached_server else "")
        )
        problem = problem or (f"{recorded} responses were recorded" if recorded else "")
        next_step = trace.record_step(name, arguments, context)
        if next_step["error"] is not None or not next_step["observation"]:
            problem = problem or f"the next step failed: {next_step['error']}"
        return FaultTrial(self.source, self._fault, name, seconds, message, problem)

    def _judge_step(self, step: Mapping[str, Any]) -> tuple[str, str]:
        """The message of the stored step, and the problem with it ("" if none)."""
        if self.source == "model":
            # Tools fall back when the model fails, and report it.
            data = step["data"] or {}
            message = str(data.get("why") or "")
            problem = "" if data.get("route") in {"ranking", "grammar"} else f"its route was {data.get('route')}"
        else:
            message = str(step["error"] or "")
            problem = "it has a result" if step["observation"] is not None or step["data"] is not None else ""
        is_sentence = (
            message.endswith(".") and "\n" not in message and len(message) <= 500 and "Traceback" not in message
        )
        return message, problem or ("" if is_sentence else f"its message is not one sentence: {message!r}")

    def _count_recorded(self, proxy: Proxy) -> int:
        """Number of recorded responses of the faulty source."""
        file = self._folder / "worlds" / "live" / RESPONSE_CACHE_FILE
        with closing(sqlite3.connect(file)) as connection:
            query = "select count(*) from answers where url like ? || '%'"
            return int(connection.execute(query, (proxy.url,)).fetchone()[0])


class _DraftTrace:
    """An annotator's draft."""

    def __init__(self, store: Database, author: str) -> None:
        self._store = store
        with self._store.begin() as session:
            self._by = users.register_user(session, author).id
            project = projects.create_project(session, author, "live")
            question = Question(project_id=project.id, position=1, text="Who directed Timber Falls?")
            session.add(question)
            session.flush()
            self._id: UUID = recording.start_trace(session, question.id, self._by).id

    def record_step(self, name: str, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Record, run and complete a step as the Annotate page does; returns its stored fields."""
        new = recording.NewStep(f"I call {name}.", name, arguments)
        with self._store.begin() as session:
            step = recording.begin_step(session, self._id, new, seen=self._version(), by=self._by)
        outcome = get_tool(name).call(context, arguments)
        text, data = (outcome.observation.text, outcome.observation.data) if outcome.observation else (None, None)
        with self._store.begin() as session:
            result = recording.StepResult(text, data, outcome.error, outcome.seconds)
            recording.complete_step(session, step.id, result, by=self._by)
        with self._store.read() as session:
            stored_step = traces.load_trace(session, self._id).steps[-1]
            return {name: getattr(stored_step, name) for name in ("observation", "data", "error")}

    def submit(self) -> int:
        """Submit the trace; returns the number of completed steps stored."""
        with self._store.begin() as session:
            recording.submit_trace(
                session, self._id, recording.TraceAnswers("Tony Giglio"), seen=self._version(), by=self._by
            )
        with self._store.read() as session:
            return sum(step.finished_at is not None for step in traces.load_trace(session, self._id).steps)

    def _version(self) -> int:
        with self._store.read() as session:
            return int(traces.load_trace(session, self._id).trace.version)


def _mark_lost(trial: FaultTrial, problem: str) -> FaultTrial:
    return replace(trial, problem=trial.problem or problem)
