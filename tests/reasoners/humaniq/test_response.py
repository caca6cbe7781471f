"""The final response: asked apart, in the style that is wanted, its links sound, its words as sure as the sources."""

from dataclasses import replace

import pytest

from reasoners.humaniq.agent import HumanIQ
from reasoners.humaniq.options import AgentOptions
from tests.fixtures.town import Town
from tests.reasoners.agents import ask
from tests.servers.model import Fails, Reply, Says
from tools.tool import ToolContext

SHORT = AgentOptions(response="short")
NORMAL = AgentOptions(response="normal")
LOOK = Says("I look.", calls=[("wikisearch", {"query": "Ada Reed"})])


def ends(text: str, graph: str, final: str = "") -> Says:
    return Says(f"So.\n\nFinal Answer: {final or text}\nText says: {text}\nGraph says: {graph}")


@pytest.fixture
def context(town: Town) -> ToolContext:
    return town.context


def test_the_models_own_answer_is_asked_without_tools_or_what_was_found(context: ToolContext) -> None:
    asked = ask(context, [LOOK, ends("Cora", "Cora"), Says("Cora"), Says("Answer: Cora Reed")], HumanIQ(SHORT))
    own, response = asked.requests[-2:]
    assert own.tools == response.tools == []
    assert len(own.body["messages"]) == 1
    assert "Who is the mother of Ada Reed?" in own.prompt
    assert "Cora" not in own.prompt
    for part in (
        "The articles say: Cora",
        "The graph says: Cora",
        "without looking: Cora",
        "[step 1] wikisearch: Ada Reed",
    ):
        assert part in response.prompt
    assert str(asked.steps[0].observation) in response.prompt
    answers = asked.ended.answers
    assert answers is not None
    assert (answers.final_answer, answers.answer_text, answers.answer_graph, answers.answer_model) == (
        "Cora Reed",
        "Cora",
        "Cora",
        "Cora",
    )
    assert asked.ended.details["agreement"]["state"] == "all agree"
    assert asked.ended.usage["calls"] == 4
    assert asked.heard.endswith("Answer: Cora Reed")


def test_a_normal_response_links_to_steps_and_is_as_sure_as_its_sources(context: ToolContext) -> None:
    said = "Answer: Cora\nResponse: It is Cora [step 1]. She is a baker [step 8].\nShe lives in Gullhaven."
    asked = ask(context, [LOOK, ends("Cora", "none"), Says("Dora"), Says(said)], HumanIQ(NORMAL))
    details = asked.ended.details
    assert details["agreement"]["state"] == "conflict"
    hedge = "The sources disagree: the articles say Cora and the model's memory says Dora."
    assert details["response"] == f"{hedge} It is Cora [step 1]. She is a baker.\nShe lives in Gullhaven."
    assert hedge in asked.requests[-1].prompt
    (link,) = details["links"]
    assert (link["step"], details["response"][link["start"] : link["end"]]) == (1, "[step 1]")
    assert (details["dropped_links"], asked.answer) == (1, "Cora")


def test_a_step_that_saw_nothing_cannot_be_linked(context: ToolContext) -> None:
    fails = Says("I read.", calls=[("read", {"title": "Nobody at all", "question": "Who?"})])
    said = Says("Answer: Cora\nResponse: It is Cora [step 1][step 2].")
    asked = ask(context, [fails, LOOK, ends("Cora", "none"), Says("none"), said], HumanIQ(NORMAL))
    assert asked.steps[0].error
    assert [link["step"] for link in asked.ended.details["links"]] == [2]
    assert "[step 1]" not in asked.requests[-1].prompt.replace("[step 1] read", "")
    assert asked.ended.details["response"].startswith("Only the articles answer this; no other source confirms it.")


def test_an_answer_from_memory_alone_is_hedged(context: ToolContext) -> None:
    script = [LOOK, Says("Final Answer: unknown"), Says("Cora"), Says("Answer: Cora\nResponse: It may be Cora.")]
    asked = ask(context, script, HumanIQ(NORMAL))
    assert asked.answer == "Cora"
    assert asked.ended.details["response"].startswith("I could not verify this; I answer from memory alone.")


def test_without_the_models_own_answer_the_agreement_is_of_two_and_a_call_less_is_made(context: ToolContext) -> None:
    alone = HumanIQ(replace(SHORT, own_answer=False))
    asked = ask(context, [LOOK, ends("Cora", "Cora"), Says("Answer: Cora")], alone)
    assert asked.ended.details["agreement"] == {
        "state": "all agree",
        "words": "All the sources agree.",
        "answers": {"text": "Cora", "graph": "Cora"},
        "agreeing": ["text", "graph"],
    }
    assert len(asked.requests) == 3
    assert "without looking" not in asked.requests[-1].prompt


def test_a_short_answer_may_come_bare_and_a_long_one_is_none(context: ToolContext) -> None:
    begin = [LOOK, ends("Cora", "Cora"), Says("Cora")]
    assert ask(context, [*begin, Says("Cora Reed")], HumanIQ(SHORT)).answer == "Cora Reed"
    assert ask(context, [*begin, Says("Cora " * 500)], HumanIQ(SHORT)).answer == "Cora"
    assert ask(context, [*begin, Says("It is her [step 1].")], HumanIQ(NORMAL)).answer == "Cora"


@pytest.mark.parametrize(
    "broken",
    [
        Fails(500, "out of order"),
        Says(""),
        Says("<think>Answer: Eve</think>"),
        Says("Answer: Ev", reason="length"),
        Says(calls=[("wikisearch", {"query": "Ada"})]),
    ],
)
def test_a_response_that_cannot_be_written_leaves_the_answer_and_says_so(context: ToolContext, broken: Reply) -> None:
    asked = ask(context, [LOOK, ends("Cora", "none"), Says("Cora"), *[broken] * 4], HumanIQ(SHORT))
    assert (asked.ended.ending, asked.answer) == ("answered", "Cora")
    assert asked.ended.details["response"] is None
    assert asked.ended.details["unwritten"]


@pytest.mark.parametrize(("own", "why"), [(Says(""), "empty message"), (Says("Eve, or", reason="length"), "cut off")])
def test_an_own_answer_that_fails_is_told_and_leaves_two_sources(context: ToolContext, own: Reply, why: str) -> None:
    asked = ask(context, [LOOK, ends("Cora", "Cora"), own, Says("Answer: Cora")], HumanIQ(SHORT))
    assert asked.answer == "Cora"
    assert why in asked.ended.details["own_answer_failed"]
    assert asked.ended.details["agreement"]["state"] == "two agree"


def test_when_nobody_knows_it_is_refused(context: ToolContext) -> None:
    asked = ask(context, [LOOK, Says("Final Answer: unknown"), Says("none")], HumanIQ(SHORT))
    assert (asked.ended.ending, asked.ended.answers) == ("refused", None)
    assert asked.ended.usage["calls"] == 3


def test_evidence_gives_way_where_it_does_not_fit(town: Town) -> None:
    looks = [
        Says("", calls=[("wikisearch", {"query": f"{name} family"})]) for name in ("born", "mother", "father", "friend")
    ]
    setup = replace(SHORT, context_tokens=2_600, reply_tokens=300)
    script = [*looks, ends("Cora", "none"), Says("none"), Says("Answer: Cora")]
    asked = ask(town.context, script, HumanIQ(setup))
    assert asked.ended.ending == "answered", asked.ended.failure
    text = asked.requests[-1].prompt
    assert len(text.encode()) / 3 <= 2_300
