"""What runs report of model calls is what the model's server was asked, for every reasoner; limits of calls hold."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from showhow.db.models import ModelCall, Trace
from showhow.evaluation.datasets import read_questions
from showhow.fiction.generator.build import generate_world
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.gold_traces.traces import GoldWorld
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.baselines.skills import COT_ANSWER, COT_RAG, IN_CONTEXT, REASON_SENTENCE, SELF_ASK
from showhow.reasoners.registry import REASONERS
from showhow.reasoners.skills.skill import Skill, SkillCall, build_skill_messages
from showhow.reasoners.sources import DIRECT_ANSWER, DIRECT_RAG
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tools.tool import ToolContext
from showhow.worlds.open import open_world
from tests.app.cli.in_process import run_in_process
from tests.oracles.test_gold_traces import some_meaning
from tests.servers.model import ModelServer, Reply, Request, Says, Sends

OPTIONS = GenerationOptions(people=50, seed=9, depth=3, per_template=1)
ASKING = [entry.name for entry in REASONERS.values() if entry.needs_model]
SKILLS = {
    skill.name: skill
    for skill in (
        *(skill for entry in REASONERS.values() for skill in entry.skills),
        *(COT_ANSWER, COT_RAG, IN_CONTEXT, REASON_SENTENCE, SELF_ASK, DIRECT_ANSWER, DIRECT_RAG),
    )
}
LIMIT = 2
RAMBLING = "The ship sailed on over the sea, and on. " * 60
NONSENSE = [
    ("Lorem ipsum {dolor", "stop"),
    (RAMBLING, "length"),
    (None, "stop"),
    (None, "length"),
    (" \n ", "stop"),
    (RAMBLING, "stop"),
    None,
]
"""The texts and ends of replies that nobody can read, one after the other; None for a reply without choices."""
PRICE = "1000/2000"
"""US dollars for a million tokens read and written."""


def instructions_of(skill: Skill[Any, Any]) -> str:
    return build_skill_messages(SkillCall(skill, skill.request_type.model_construct(), "any"))[0].text


def say_nonsense(choice: tuple[str | None, str] | None, usage: tuple[int, int]) -> Sends:
    choices = []
    if choice is not None:
        content, reason = choice
        message = {"role": "assistant", "content": content}
        choices = [{"index": 0, "message": message, "finish_reason": reason}]
    tokens = dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))
    document = {"object": "chat.completion", "choices": choices, "usage": tokens}
    return Sends(json.dumps(document).encode(), "application/json")


@dataclass
class GoldServer:
    """Gold replies to the skills of all questions; to agents with tools a search, a reading and an answer."""

    oracles: list[OracleResponder]
    nonsense: bool = False
    used: list[tuple[int, int]] = field(default_factory=list)
    """The tokens of each reply."""

    def __post_init__(self) -> None:
        self.skills = {instructions_of(skill): skill for skill in SKILLS.values()}

    def __call__(self, request: Request) -> Reply:
        usage = (100 + request.place % 7, 10 + request.place % 3)
        self.used.append(usage)
        if self.nonsense:
            return say_nonsense(NONSENSE[request.place % len(NONSENSE)], usage)
        text, calls = self.reply(request)
        return Says(text, calls=calls, usage=usage)

    def reply(self, request: Request) -> tuple[str, Any]:
        messages = request.body["messages"]
        skill = self.skills.get(messages[0]["content"])
        if skill is not None:
            asked = skill.request_type.model_validate_json(messages[-1]["content"])
            replies = [oracle.reply(SkillCall(skill, asked, "any"), ()) for oracle in self.oracles]
            known = [reply for reply in replies if not getattr(reply.value, "unknown", False)]
            return (known or replies)[0].text, ()
        looked = sum(message["role"] == "tool" for message in messages)
        if request.tools and looked < 2:
            name = "Ada"
            calls = [("wikisearch", {"query": name}), ("read", {"title": name, "question": "Who?"})]
            return "I look.", calls[looked : looked + 1]
        return "Final Answer: Ada\nText says: Ada", ()


@dataclass
class Home:
    """A home with two questions of a generated world, and a server behind its model."""

    folder: Path
    questions: list[str]
    script: GoldServer
    server: ModelServer

    def run(self, *words: str) -> tuple[dict[str, Any], int]:
        """The JSON that a verb prints, and the requests that its server got."""
        before = len(self.server.requests)
        self.script.used.clear()
        environ = {"SHOWHOW_MODEL": "openai:gold", "SHOWHOW_MODEL_BASE_URL": self.server.url, "OPENAI_API_KEY": "none"}
        done = run_in_process(self.folder, *words, "--json", **environ, SHOWHOW_MODEL_PRICE=PRICE)
        return json.loads(done.stdout or "{}") | {"said": done.stderr}, len(self.server.requests) - before

    def evaluate(self, reasoner: str) -> tuple[dict[str, Any], int]:
        return self.run("evaluate", "--project", "Two", "--reasoner", reasoner, "--limit", "1", "--keep")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("home")
    generate_world(folder / "worlds", "gold", OPTIONS)
    records = read_questions(folder / "worlds" / "gold" / "questions.jsonl")
    chosen = [next(row for row in records if row.kind == kind) for kind in ("composition", "comparison")]
    file = folder / "two.jsonl"
    rows = [{"question": row.text, "answers": [gold["text"] for gold in row.gold_answers]} for row in chosen]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    done = run_in_process(folder, "questions", "import", str(file), "--project", "Two", "--world", "gold")
    assert done.returncode == 0, done.stderr
    world = open_world(folder / "worlds", "gold")
    gold = GoldWorld(folder / "worlds" / "gold", ToolContext(world, some_meaning))
    oracles = [OracleResponder(GoldReasoning(gold, row.text, row.details)) for row in chosen]
    script = GoldServer(oracles)
    with ModelServer(script) as server:
        yield Home(folder, [row.text for row in chosen], script, server)
    world.graph.close()  # type: ignore[union-attr]


@contextmanager
def open_traces(home: Home, run: str) -> Iterator[tuple[Session, list[Trace]]]:
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(home.folder)}), {})
    with services.database.read() as session:
        yield session, list(session.scalars(select(Trace).where(Trace.run_id == UUID(run))))
    services.close()


@pytest.mark.parametrize("reasoner", ASKING)
def test_calls_tokens_and_cost_are_those_of_the_servers_log(home: Home, reasoner: str):
    told, sent = home.evaluate(reasoner)
    used = home.script.used
    assert sent == len(used) > 0
    tokens = [sum(counts) for counts in zip(*used, strict=True)]
    cost = (tokens[0] * 1000 + tokens[1] * 2000) / 1e6
    assert (told["model_calls"], told["input_tokens"], told["output_tokens"]) == (sent, *tokens), told
    assert told["cost"] == pytest.approx(cost)
    with open_traces(home, told["run"]) as (session, traces):
        calls = list(session.scalars(select(ModelCall).where(ModelCall.trace_id.in_([trace.id for trace in traces]))))
        results = [trace.result for trace in traces]
    assert len(calls) == sent
    assert sum(result.calls["model_calls"] for result in results) == sent
    assert sum(trace.cost["calls"] for trace in traces) == sent
    assert sum(trace.cost["input_tokens"] for trace in traces) == tokens[0]
    assert sum(trace.cost["cost"] for trace in traces) == pytest.approx(cost)


@pytest.mark.parametrize("reasoner", ASKING)
def test_no_run_sends_more_requests_than_its_limit_allows(home: Home, reasoner: str):
    _, sent = home.run("ask", home.questions[0], "--world", "gold", "--reasoner", reasoner, "--model-calls", str(LIMIT))
    assert 0 < sent <= LIMIT


@pytest.mark.parametrize("reasoner", ASKING)
def test_a_model_that_writes_nonsense_has_failed_and_not_refused(home: Home, reasoner: str):
    home.script.nonsense = True
    try:
        told, sent = home.evaluate(reasoner)
    finally:
        home.script.nonsense = False
    assert (told["failed"], told["model_calls"]) == (1, sent), told
    with open_traces(home, told["run"]) as (_, traces):
        (failure,) = [trace.failure for trace in traces]
    assert re.search(r"cut off|empty message|used up its tokens|requested form|no action", failure), failure
