"""What GEEK asks, searches and answers with a scripted model: ways to go on, queries, ablations, bad replies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from showhow.db.models import SPAN_SKILL
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.tools.tool import ToolContext
from tests.reasoners.baselines.scripted_runs import (
    QUESTION,
    BaselineRun,
    answers,
    read_request,
    run_baseline,
    says,
    skill_name,
)
from tests.servers.model import Request, Says

WHO, WHERE, COMMANDS = "Who is the captain of Sea Star?", "Where was #1 born?", "Who commands Sea Star?"
FILLED = "Where was Ada Lund born?"


def step(question: str) -> dict[str, Any]:
    return {"question": question, "pseudo": "", "names": []}


@dataclass
class Explorer:
    """Knows two ways to the captain, then asks where she was born; keeps what it was asked."""

    first: Sequence[str] = (WHO, COMMANDS)
    rest: Sequence[str] = (WHERE,)
    supported: bool = True
    enough: int = 2
    conclusion: Says | None = None
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, request: Request) -> Says:
        name, body = skill_name(request), read_request(request)
        self.asked.append((name, body))
        if name == "next_action":
            return says(finish=len(body["state"]) >= self.enough, why="")
        if name == "decompose":
            left = [way for way in self.first if way not in body["others"]] if not body["state"] else [None]
            steps = [step(text) for text in [*left[:1], *self.rest] if text]
            return says(branches=[{"steps": steps}] if left else [])
        if name == "select_sources":
            return says(sources=["text"])
        if name == "needs_retrieval":
            return says(retrieve=True)
        if name == "conclude":
            return self.conclusion or says(reasons="So it is.", used=[], **answers("Gullhaven"))
        asked_for = "Ada Lund" if "Sea Star" in body["planned"] else "Gullhaven"
        stating = [passage["id"] for passage in body.get("passages", ()) if asked_for in passage["text"]]
        return says(fact=f"It is {asked_for}.", **answers(asked_for, support=tuple(stating) if self.supported else ()))

    def requests(self, name: str) -> list[dict[str, Any]]:
        return [body for asked, body in self.asked if asked == name]


def searches(done: BaselineRun) -> list[str]:
    return [str(step.arguments["query"]) for step in done.steps if step.tool == "wikisearch"]


@pytest.mark.parametrize(("search", "prefix"), [("sub-question", ""), ("both", f"{QUESTION}, ")])
def test_a_search_has_the_answers_in_place_of_references(ships: ToolContext, search: str, prefix: str) -> None:
    done = run_baseline("geek", ships, Explorer(), {"search": search})
    assert searches(done) == [f"{prefix}{WHO}", f"{prefix}{FILLED}"]
    assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")


def test_ten_texts_of_a_search_are_asked_for_and_more_than_a_search_has_are_one_sentence(ships: ToolContext) -> None:
    done = run_baseline("geek", ships, Explorer(), {"passages": 10})
    assert {step.arguments["limit"] for step in done.steps if step.tool == "wikisearch"} == {10}
    with pytest.raises(AgentOptionsError, match="passages is 51; it must be 50 or less"):
        make_reasoner("geek", {"passages": 51})


def test_as_published_one_search_gives_the_best_paragraphs_of_a_hundred_articles(ships: ToolContext) -> None:
    explorer = Explorer()
    done = run_baseline("geek", ships, explorer, {**REASONERS["geek"].presets["published"], "explore": 1})
    assert set(done.tools) == {"wikisearch"}
    assert all((step.arguments["limit"], step.arguments["screened"]) == (10, 100) for step in done.steps if step.tool)
    first = explorer.requests("extract")[0]["passages"]
    # The fleet has fewer paragraphs.
    found = next(step for step in done.steps if step.tool).data or {}
    assert len(first) == min(10, found["paragraphs"])
    assert [passage["text"] for passage in first] == [hit["snippet"] for hit in found["hits"]]
    assert (done.answers.final_answer, done.answers.answer_text) == ("Gullhaven", "Gullhaven")
    with pytest.raises(AgentOptionsError, match="documents is 101; it must be 100 or less"):
        make_reasoner("geek", {"documents": 101})


def test_each_way_to_go_on_is_asked_for_alone_and_is_told_the_others(ships: ToolContext) -> None:
    explorer = Explorer()
    done = run_baseline("geek", ships, explorer, {"explore": 4})
    first = [body["others"] for body in explorer.requests("decompose") if not body["state"]]
    assert first == [[], [WHO], [WHO, COMMANDS]]
    assert {step.thought for step in done.steps if step.skill == SPAN_SKILL} >= {WHO, COMMANDS}
    assert done.outcome.details["votes"] == {"Gullhaven": 2}
    assert done.outcome.calls["model_calls_expected"] <= done.outcome.calls["model_calls"] == len(done.requests)


def test_a_plan_that_repeats_what_was_asked_goes_on_with_its_rest(ships: ToolContext) -> None:
    explorer = Explorer(rest=(WHO, WHERE))
    done = run_baseline("geek", ships, explorer)
    assert [body["planned"] for body in explorer.requests("extract")] == [WHO, WHERE]
    assert done.outcome.ending == "answered"


def test_a_plan_that_only_repeats_leads_to_the_conclusion(ships: ToolContext) -> None:
    explorer = Explorer(rest=(f" {WHO.upper()}",), enough=9)
    done = run_baseline("geek", ships, explorer)
    assert len(explorer.requests("extract")) == 1
    assert len(explorer.requests("conclude")) == 1
    assert done.outcome.ending == "answered", done.outcome.failure


def test_without_decomposition_the_model_concludes_at_once(ships: ToolContext) -> None:
    explorer = Explorer()
    done = run_baseline("geek", ships, explorer, {"decompose": "off", "own": "free"})
    assert explorer.asked == [("conclude", {"question": QUESTION, "state": [], "own": True})]
    assert (done.answers.answer_model, done.tools) == ("Gullhaven", [])


def test_without_retrieval_the_model_answers_sub_questions_itself(ships: ToolContext) -> None:
    explorer = Explorer()
    done = run_baseline("geek", ships, explorer, {"retrieve": "off", "own": "free"})
    assert [body["planned"] for body in explorer.requests("self_answer")] == [WHO, WHERE]
    assert all(body["own"] is True for body in explorer.requests("self_answer"))
    assert (done.answers.answer_model, done.tools) == ("Gullhaven", [])


def test_the_published_preset_explores_and_may_know_the_answer_itself(ships: ToolContext) -> None:
    explorer = Explorer(conclusion=says(reasons="", used=[], **answers(unknown=True)))
    done = run_baseline("geek", ships, explorer, REASONERS["geek"].apply_preset("published", {}))
    assert done.outcome.ending == "refused"
    assert all(body["own"] is True for body in explorer.requests("conclude"))
    assert all("own" not in body for body in explorer.requests("extract"))
    assert set(searches(done)) == {f"{QUESTION}, {text}" for text in (WHO, COMMANDS, FILLED)}
    assert not [step.node for step in done.steps if "/again" in str(step.node)]


def test_a_fact_that_names_no_passage_is_asked_again_and_does_not_count(ships: ToolContext) -> None:
    explorer = Explorer(supported=False)
    done = run_baseline("geek", ships, explorer, {"second_look": "off"})
    assert any("name in support" in request.prompt for request in done.requests)
    assert done.outcome.ending == "refused"
    assert "No source states what the answer rests on" in str(done.outcome.failure)


@pytest.mark.parametrize("broken", ["every reply", "the conclusion"])
def test_replies_that_never_parse_are_a_failure(ships: ToolContext, broken: str) -> None:
    nonsense = Says("The captain, I believe.")
    script = [nonsense] * 99 if broken == "every reply" else Explorer(conclusion=nonsense)
    done = run_baseline("geek", ships, script)
    assert done.outcome.ending == "failed"
    assert "JSON" in str(done.outcome.failure)


@pytest.mark.parametrize("option", ["decompose", "retrieve"])
def test_what_leaves_own_knowledge_only_needs_it_to_be_allowed(option: str) -> None:
    with pytest.raises(AgentOptionsError, match=f"{option}=off .* own=free"):
        make_reasoner("geek", {option: "off"})
