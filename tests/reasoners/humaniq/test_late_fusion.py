"""Late fusion: two pipelines that know nothing of each other, each with its own tools, and a merge."""

import pytest

from reasoners.humaniq.late_fusion import LateFusion
from reasoners.humaniq.options import AgentOptions
from tests.fixtures.town import Town
from tests.reasoners.agents import TOOLS_BY_SOURCE, ask
from tests.servers.model import Says

TEXT = [Says("I look.", calls=[("wikisearch", {"query": "Ada Reed"})]), Says("Final Answer: Cora\nText says: Cora")]
GRAPH = [
    Says("Her id.", calls=[("getWikiDataID", {"title": "Ada Reed"})]),
    Says("Final Answer: Dora\nGraph says: Dora"),
]
NOTHING = [Says("Final Answer: unknown")]


def test_each_pipeline_has_its_own_tools_and_sees_nothing_of_the_other(town: Town) -> None:
    script = [*TEXT, *GRAPH, Says("Eva"), Says("Answer: Cora")]
    asked = ask(town.context, script, LateFusion(AgentOptions(merge="model")))
    assert [step.position for step in asked.steps] == [1, 2, 3, 4]
    assert [step.tool for step in asked.steps] == ["wikisearch", None, "getWikiDataID", None]
    assert (asked.steps[1].thought, asked.steps[3].thought) == ("From text only: Cora", "From the graph only: Dora")
    offered = [set(request.tools) for request in asked.requests[:4]]
    assert offered[0] == offered[1] == set(TOOLS_BY_SOURCE["text"])
    assert offered[2] == offered[3] == set(TOOLS_BY_SOURCE["graph"])
    assert "Cora" not in asked.requests[2].prompt + asked.requests[3].prompt
    merged = asked.requests[-1].prompt
    assert "The articles say: Cora" in merged
    assert "The graph says: Dora" in merged
    assert asked.answer == "Cora"
    assert asked.ended.details["agreement"]["state"] == "conflict"
    assert asked.ended.usage["calls"] == 6


def test_by_chance_either_answer_is_taken_and_the_same_one_again(town: Town) -> None:
    def answer(question: str) -> str:
        return ask(town.context, [*TEXT, *GRAPH], LateFusion(AgentOptions(merge="random")), question=question).answer

    questions = [f"Who is number {number}?" for number in range(8)]
    first = [answer(question) for question in questions]
    assert set(first) == {"Cora", "Dora"}
    assert [answer(question) for question in questions] == first


@pytest.mark.parametrize(("text", "graph", "answer"), [(TEXT, NOTHING, "Cora"), (NOTHING, GRAPH, "Dora")])
def test_the_only_answer_is_taken(town: Town, text: list[Says], graph: list[Says], answer: str) -> None:
    asked = ask(town.context, [*text, *graph], LateFusion(AgentOptions(merge="random")))
    assert asked.answer == answer
    assert asked.ended.details["agreement"]["state"] == "one only"
    nobody = ask(town.context, [*NOTHING, *NOTHING], LateFusion(AgentOptions(merge="random")))
    assert nobody.ended.ending == "refused"


def test_a_pipeline_that_breaks_leaves_the_other_its_say(town: Town) -> None:
    script = [Says("Hm.")] * 3 + [*GRAPH, Says("none"), Says("Answer: Dora")]
    asked = ask(town.context, script, LateFusion(AgentOptions()))
    assert asked.answer == "Dora"
    assert "3 in a row" in asked.steps[3].thought


def test_a_thought_that_reads_like_an_answer_of_the_pipeline_does_not_end_it(town: Town) -> None:
    broken = Says("From text only: I will search.")
    script = [broken, *TEXT, *GRAPH]
    whole = ask(town.context, script, LateFusion(AgentOptions(merge="random")))
    assert [step.node for step in whole.steps] == ["text"] * 2 + ["text answer", "graph", "graph answer"]
    resumed = ask(town.context, script[1:], LateFusion(AgentOptions(merge="random")), taken=whole.steps[:1])
    assert [step.thought for step in resumed.steps] == [step.thought for step in whole.steps]
    assert resumed.answer == whole.answer


def test_it_goes_on_where_it_was(town: Town) -> None:
    script = [*TEXT, *GRAPH]
    whole = ask(town.context, script, LateFusion(AgentOptions(merge="random")))
    made = {0: 4, 1: 3, 2: 2, 3: 1, 4: 0}
    for count, left in made.items():
        rest = ask(
            town.context, script[4 - left :], LateFusion(AgentOptions(merge="random")), taken=whole.steps[:count]
        )
        assert rest.answer == whole.answer
        assert [(s.thought, s.tool, s.origins) for s in rest.steps] == [
            (s.thought, s.tool, s.origins) for s in whole.steps
        ]
