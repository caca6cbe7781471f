"""AtomR's options against a scripted server: what is asked, what is retrieved, and what the answer rests on."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from showhow.db.models import SPAN_SKILL, Step
from showhow.db.run_spec import RunLimits
from showhow.db.runs.runs import RunOutcome
from showhow.reasoners.atomr.agent import measure_overlap
from showhow.reasoners.atomr.options import PUBLISHED, AtomROptions
from showhow.reasoners.base import Task
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.reasoners.skills.skill import ModelResponder, skill_name
from showhow.reasoners.skills.values import SourcePassage
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import open_world
from showhow.worlds.source import Article
from tests.oracles.test_gold_traces import some_meaning
from tests.reasoners.fleet import articles, fleet_graph
from tests.servers.model import ModelServer, Request, Says

QUESTION = "Who is in the Pilots Guild?"
UNLIMITED = RunLimits(steps=None, seconds=None, model_calls=10_000)
"""Within limits nothing is guessed ahead."""
Replies = Mapping[str, Callable[[dict[str, Any]], Any]]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolContext]:
    worlds = tmp_path_factory.mktemp("worlds")
    graph = worlds / "fleet.ttl"
    graph.write_text(fleet_graph(), encoding="utf-8")
    pilots = [
        Article(f"Pilot {number}", (f"Pilot {number} {'wears a hat' if number % 2 else 'sails alone'}.",), None)
        for number in range(100, 125)
    ]
    guild = Article("Pilots Guild", ("Pilots Guild is a guild of 25 people.",), None)
    build_world(worlds, "fleet", WorldContents([*articles(), *pilots, guild], graph))
    world = open_world(worlds, "fleet")
    yield ToolContext(world, some_meaning)
    world.graph.close()  # type: ignore[union-attr]


@dataclass
class Played:
    """A run with the requests that the server got, by the skill that they are of."""

    outcome: RunOutcome
    steps: list[Step]
    asked: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    """Skill, request and instructions."""

    def requests(self, skill: str) -> list[dict[str, Any]]:
        return [request for name, request, _ in self.asked if name == skill]

    def calls(self, tool: str) -> list[Step]:
        return [step for step in self.steps if step.tool == tool]


def name_skill(request: Mapping[str, Any]) -> str:
    """The skill whose request has these fields."""
    if "answered" in request:
        return "aggregate"
    if "passages" in request:
        return "operate" if "op" in request else "direct_rag"
    if "sources" not in request:
        return "direct_answer"
    return "plan" if all(isinstance(source, str) for source in request["sources"]) else "select_sources"


def play(context: ToolContext, replies: Replies, question: str = QUESTION, **options: Any) -> Played:
    """Run AtomR with a server that answers each request by its skill; what is no text is sent as JSON."""
    asked: list[tuple[str, dict[str, Any], str]] = []

    def answer(sent: Request) -> Says:
        messages = sent.body["messages"]
        request = json.loads(next(message["content"] for message in messages if message["role"] == "user"))
        skill = name_skill(request)
        asked.append((skill, request, messages[0]["content"]))
        reply = replies[skill](request)
        return Says(reply if isinstance(reply, str) else json.dumps(reply))

    with ModelServer(answer) as server:
        task = Task(
            question, context, available_tools(context.world), responder=ModelResponder(server.chat(seconds=60))
        )
        recorder = MemoryRecorder()
        outcome = run_reasoner(make_reasoner("atomr", options), task, recorder, RunControl(UNLIMITED))
    assert outcome.calls["model_calls"] == len(asked)
    return Played(outcome, recorder.steps, asked)


def tree(*nodes: tuple[str, str, list[Any]]) -> dict[str, Any]:
    """A plan: the question, answered by its last part; each part is (question, operation, arguments)."""
    parts = [
        {"id": number, "question": text, "op": op, "args": arguments}
        for number, (text, op, arguments) in enumerate(nodes, 1)
    ]
    root = {"id": 0, "question": QUESTION, "children": [part["id"] for part in parts], "from_last": True}
    return {"nodes": [root, *parts]}


def unknown(_request: Any = None) -> dict[str, Any]:
    return {"answers": [], "unknown": True}


def answers(*texts: str, support: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"answers": [{"text": text, **more} for text in texts], "support": support or []}


def first_passage(request: Mapping[str, Any], *texts: str) -> dict[str, Any]:
    shown = request["passages"]
    return answers(*texts, support=[shown[0]["id"]]) if shown else unknown()


SHIP = tree(("What is Sea Star?", "Search", [{"text": "Sea Star"}]))
SOURCES = {"select_sources": lambda _request: {"sources": ["text"]}}
BASE: dict[str, Callable[[Any], Any]] = {**SOURCES, "direct_rag": unknown, "direct_answer": unknown}


def test_the_published_preset_has_every_choice_of_the_paper_and_the_default_has_none_of_them():
    entry = REASONERS["atomr"]
    published = entry.parse_options(entry.apply_preset("published", {}))
    default = AtomROptions()
    assert {name: getattr(published, name) for name in PUBLISHED} == PUBLISHED
    assert all(getattr(default, name) != value for name, value in PUBLISHED.items())
    with pytest.raises(AgentOptionsError, match="overlap is 2; it is a number from 0 to 1"):
        AtomROptions(overlap=2)


def test_own_knowledge_answers_at_a_leaf_only_where_it_is_free_and_is_marked(context: ToolContext):
    replies = {**BASE, "plan": lambda _request: SHIP, "operate": lambda _request: answers("A yacht")}
    free = play(context, replies, own="free")
    assert free.outcome.answers is not None
    assert (free.outcome.answers.final_answer, free.outcome.answers.answer_model) == ("A yacht", "A yacht")
    leaf = next(step for step in free.steps if step.node == "1" and step.data)
    assert leaf.data["how"] == "own knowledge"  # type: ignore[index]
    assert free.requests("operate")[0]["own"] is True
    for own in ("never", "fallback"):
        barred = play(context, replies, own=own)
        assert barred.outcome.ending == "refused"
        assert "own" not in barred.requests("operate")[0]
        rejected = [part for step in barred.steps for part in (step.data or {}).get("rejected", ())]
        assert "The answers name no passage" in rejected[0]["error"]


def test_an_answer_of_the_last_resort_without_support_is_no_answer_where_own_knowledge_is_barred(context: ToolContext):
    replies = {
        **BASE,
        "plan": lambda _request: SHIP,
        "operate": unknown,
        "direct_rag": lambda _request: answers("A yacht"),
    }
    assert play(context, replies).outcome.ending == "refused"
    free = play(context, replies, own="free")
    assert free.outcome.answers is not None
    assert free.outcome.answers.answer_model == "A yacht"


def test_sources_are_chosen_after_what_they_refer_to_is_answered_by_the_rule_that_asks_all(context: ToolContext):
    plan = tree(
        ("What is Sea Star?", "Search", [{"text": "Sea Star"}]),
        ("Who is the captain of [1]?", "Relate", [{"ref": 1}, {"text": "captain"}]),
    )
    replies = {
        **BASE,
        "plan": lambda _request: plan,
        "operate": lambda request: first_passage(request, "Sea Star" if request["op"] == "Search" else "Ada Lund"),
        "aggregate": lambda request: {"answers": request["answered"][-1]["answers"]},
    }
    ours = play(context, replies)
    assert [skill for skill, _, _ in ours.asked[:3]] == ["plan", "select_sources", "select_sources"]
    # Both are asked for at the same time.
    asked = {request["question"] for request in ours.requests("select_sources")}
    assert asked == {"What is Sea Star?", "Who is the captain of (What is Sea Star?)?"}
    theirs = play(context, replies, **PUBLISHED)
    assert [skill for skill, _, _ in theirs.asked] == [
        *("plan", "select_sources", "operate", "select_sources", "operate", "aggregate")
    ]
    request = theirs.requests("select_sources")[1]
    assert (request["question"], request["unsure"]) == ("Who is the captain of Sea Star?", "all")
    instructions = next(text for skill, _, text in theirs.asked if skill == "select_sources")
    assert "If you are unsure, choose all sources." in instructions
    assert "fewest" not in instructions
    assert theirs.outcome.calls["model_calls"] == theirs.outcome.calls["model_calls_expected"] == len(theirs.asked)


def test_each_operator_has_a_prompt_of_its_own_where_the_paper_has_three(context: ToolContext):
    plan = tree(
        ("What is Sea Star?", "Search", [{"text": "Sea Star"}]),
        ("Who is the captain of [1]?", "Relate", [{"ref": 1}, {"text": "captain"}]),
        ("Which of [2] like rain?", "Filter", [{"ref": 2}, {"text": "likes rain"}]),
    )
    replies = {**BASE, "plan": lambda _request: plan, "operate": lambda request: first_passage(request, "Ada Lund")}
    texts = {
        kind: [text for skill, _, text in play(context, replies, operator_prompts=kind).asked if skill == "operate"]
        for kind in ("one", "three")
    }
    assert len(set(texts["one"])) == 1
    assert len(set(texts["three"])) == 3
    assert [text.partition(" the ")[0][:8] for text in texts["three"]] == ["You find", "You look", "You keep"]


def test_an_empty_list_is_nothing_by_default_and_searched_for_as_published(context: ToolContext):
    replies = {
        **BASE,
        "plan": lambda _request: SHIP,
        "operate": lambda _request: {"answers": []},
        "direct_rag": lambda request: first_passage(request, "a ship"),
    }
    ours = play(context, replies)
    assert not ours.requests("direct_rag")
    theirs = play(context, replies, empty_list="unknown", second_look="none")
    assert theirs.outcome.answers is not None
    assert theirs.outcome.answers.final_answer == "a ship"
    assert len(theirs.requests("operate")) == 1


GUILD = tree(
    ("What is the Pilots Guild?", "Search", [{"text": "Pilots Guild"}]),
    ("Which of [1] wear a hat?", "Filter", [{"ref": 1}, {"text": "wears a hat"}]),
)
PILOTS = [f"Pilot {number}" for number in range(100, 125)]


def filter_pilots(request: dict[str, Any]) -> dict[str, Any]:
    if request["op"] == "Search":
        return first_passage(request, *PILOTS)
    hats = [passage for passage in request["passages"] if "wears a hat" in passage["text"]]
    keys = {value["text"]: value.get("entity", value["text"]) for value in request["args"][0]["values"]}
    found = [{"text": passage["title"], "of": keys[passage["title"]]} for passage in hats]
    return {"answers": found, "support": [passage["id"] for passage in hats]}


def test_what_is_left_out_of_a_set_is_told_and_every_one_is_looked_up_as_published(context: ToolContext):
    replies = {**BASE, "plan": lambda _request: GUILD, "operate": filter_pilots}
    ours = play(context, replies, passages=1)
    notes = [step for step in ours.steps if (step.data or {}).get("left_out")]
    assert [step.thought for step in notes] == ["I look up 12 of 25 things; 13 are left out."]
    assert notes[0].parent_id == next(step.id for step in ours.steps if step.node == "2")
    theirs = play(context, replies, passages=1, most_things=0)
    assert not [step for step in theirs.steps if (step.data or {}).get("left_out")]
    searched = {str(step.arguments["query"]) for step in theirs.calls("wikisearch")}
    assert searched >= {f"{name} wears a hat" for name in PILOTS}
    assert theirs.outcome.answers is not None
    assert theirs.outcome.answers.final_answer.count("Pilot") == 12


def test_filter_drops_things_whose_passages_overlap_too_little_and_says_so(context: ToolContext):

    def operate(request: dict[str, Any]) -> dict[str, Any]:
        reply = filter_pilots(request)
        if request["op"] == "Search":
            # Of a thing with an id, its own article is read and no other.
            reply["answers"] = [{"text": name, "entity": f"Q{name[-3:]}"} for name in PILOTS]
        return reply

    replies = {**BASE, "plan": lambda _request: GUILD, "operate": operate}
    run = play(context, replies, most_things=0, overlap=0.9)
    request = run.requests("operate")[-1]
    kept = [value["text"] for value in request["args"][0]["values"]]
    assert kept == [name for number, name in enumerate(PILOTS, 100) if number % 2]
    dropped = next(step for step in run.steps if (step.data or {}).get("dropped"))
    assert dropped.data["dropped"] == [name for name in PILOTS if name not in kept]  # type: ignore[index]
    none_left = play(context, {**replies, "plan": lambda _request: tree(
        *[("What is the Pilots Guild?", "Search", [{"text": "Pilots Guild"}])],
        *[("Which of [1] were born in Ulm?", "Filter", [{"ref": 1}, {"text": "zx yv qp kk born Ulm"}])],
    )}, overlap=1.0, second_look="none")  # fmt: skip
    assert len(none_left.requests("operate")) == 1
    assert len(none_left.requests("direct_rag")) >= 1


@pytest.mark.parametrize(("query", "text", "overlap"), [
    ("Bo born in 1955", "Bo was born in 1955.", 1.0),
    ("Bo born in 1955", "It rains.", 0.0),
    ("Bo likes cake and tea", "Bo likes", 1.0),
    ("Bo tea", "Tea, tea; hot tea for Ada!", 0.5),
    ("", "Bo", 0.0),
])  # fmt: skip
def test_the_overlap_is_that_of_the_paper(query: str, text: str, overlap: float):
    assert measure_overlap(query, [SourcePassage(id="1.1", source="text", title="", text=text)]) == overlap


def test_the_relation_between_two_things_is_looked_up_in_both_directions(context: ToolContext):
    plan = tree(
        ("Who is Ada Lund?", "Search", [{"text": "Ada Lund"}]),
        ("What is Sea Star?", "Search", [{"text": "Sea Star"}]),
        ("What is [1] to [2]?", "Relate", [{"ref": 1}, {"ref": 2}]),
    )

    def operate(request: dict[str, Any]) -> dict[str, Any]:
        passages = request["passages"]
        if request["op"] == "Search":
            return answers(request["args"][0]["text"], support=[passages[0]["id"]])
        fact = next(passage for passage in passages if "captain" in passage["text"])
        assert [part.partition(" (")[0] for part in fact["text"].split(" | ")] == ["Sea Star", "captain", "Ada Lund"]
        return answers("captain", support=[fact["id"]])

    graph = {"select_sources": lambda _request: {"sources": ["graph"]}}
    run = play(context, {**BASE, **graph, "plan": lambda _request: plan, "operate": operate})
    assert run.outcome.answers is not None
    assert (run.outcome.answers.final_answer, run.outcome.answers.answer_graph) == ("captain", "captain")


def test_a_made_up_id_is_not_looked_up_and_a_real_one_that_was_not_shown_is_kept(context: ToolContext):
    plan = tree(
        ("What is Sea Star?", "Search", [{"text": "Sea Star"}]),
        ("Who is the captain of [1]?", "Relate", [{"ref": 1}, {"text": "captain"}]),
    )

    def run(entity: str) -> Played:
        def operate(request: dict[str, Any]) -> dict[str, Any]:
            ship = request["op"] == "Search"
            more = {"entity": entity} if ship else {}
            return answers("Sea Star" if ship else "Ada Lund", support=[request["passages"][0]["id"]], **more)

        sources = iter([["text"], ["graph"]])
        chosen = {"select_sources": lambda _request: {"sources": next(sources)}}
        return play(
            context, {**BASE, **chosen, "plan": lambda _request: plan, "operate": operate}, source_time="when filled"
        )

    for made_up in ("Q999", "Q5", "nonsense"):
        played = run(made_up)
        assert played.requests("operate")[1]["args"][0]["values"] == [{"text": "Sea Star"}]
        queried = json.dumps([step.arguments for step in played.steps if step.tool in {"generateQuery", "runQuery"}])
        assert made_up not in queried
        assert "Q1" in queried
    assert run("Q1").requests("operate")[1]["args"][0]["values"] == [{"text": "Sea Star", "entity": "Q1"}]


@pytest.mark.parametrize("argument", ["[1]", {"text": "[1]"}, {"text": " [1] "}, {"ref": 1}])
def test_a_text_that_is_a_reference_is_filled_in(context: ToolContext, argument: Any):
    plan = tree(
        ("What is Sea Star?", "Search", ["Sea Star"]),
        ("Who is the captain of [1]?", "Relate", [argument, "captain"]),
        ("Which town has the birthplace of [2]?", "Relate", ["[2]", {"text": "place of birth of [2]"}]),
    )
    replies = {
        **BASE,
        "plan": lambda _request: plan,
        "operate": lambda request: first_passage(request, "Sea Star" if request["op"] == "Search" else "Ada Lund"),
    }
    run = play(context, replies)
    queries = [str(step.arguments["query"]) for step in run.calls("wikisearch")]
    assert {"Sea Star captain", "Ada Lund place of birth of Ada Lund"} <= {*queries}
    assert not [query for query in queries if "[" in query], queries


def test_a_model_whose_replies_never_parse_has_failed_and_one_that_does_not_know_has_refused(context: ToolContext):
    babble = dict.fromkeys(("plan", "select_sources", "operate", "direct_rag"), lambda _request: "I had rather not.")
    for options in ({}, PUBLISHED):
        failed = play(context, babble, **options)
        assert failed.outcome.ending == "failed", failed.outcome
        assert "gave no usable reply" in str(failed.outcome.failure)
    replies = {**BASE, "plan": lambda _request: SHIP, "operate": unknown}
    assert play(context, replies).outcome.ending == "refused"
    mixed = play(context, {**babble, "plan": lambda _request: SHIP, "direct_rag": unknown})
    assert mixed.outcome.ending == "refused"


def test_operators_and_sources_can_be_counted_from_the_steps(context: ToolContext):
    replies = {**BASE, "plan": lambda _request: GUILD, "operate": filter_pilots}
    run = play(context, replies, passages=1)
    spans = [step.data["op"] for step in run.steps if step.skill == SPAN_SKILL and step.data and step.data.get("op")]
    assert spans == ["Search", "Filter"]
    chosen = [step.data["reply"] for step in run.steps if skill_name(step) == "select_sources" and step.data]
    assert chosen == [{"sources": ["text"]}] * 2
