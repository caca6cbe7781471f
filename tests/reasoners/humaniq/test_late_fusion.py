"""Late fusion: two independent pipelines with their own tools, and the merge."""

import pytest

from showhow.reasoners.humaniq.late_fusion import LateFusion
from showhow.reasoners.humaniq.options import AgentOptions
from showhow.reasoners.registry import REASONERS
from tests.fixtures.town import Town
from tests.reasoners.agents import TOOLS_BY_SOURCE, ask
from tests.servers.model import Says

TEXT = [Says("I look.", calls=[("wikisearch", {"query": "Ada Reed"})]), Says("Final Answer: Cora\nText says: Cora")]
GRAPH = [
    Says("Her id.", calls=[("getWikiDataID", {"title": "Ada Reed"})]),
    Says("Final Answer: Dora\nGraph says: Dora"),
]
NOTHING = [Says("Final Answer: unknown")]


def test_the_pipelines_have_separate_tools_and_prompts(town: Town) -> None:
    script = [*TEXT, *GRAPH, Says("Answer: Eva"), Says("Answer: Cora")]
    run = ask(town.context, script, LateFusion(AgentOptions(merge="model")))
    assert [step.position for step in run.steps] == [1, 2, 3, 4]
    assert [step.tool for step in run.steps] == ["wikisearch", None, "getWikiDataID", None]
    assert (run.steps[1].thought, run.steps[3].thought) == ("From text only: Cora", "From the graph only: Dora")
    offered = [set(request.tools) for request in run.requests[:4]]
    assert offered[0] == offered[1] == {*TOOLS_BY_SOURCE["text"], "finish"}
    assert offered[2] == offered[3] == {*TOOLS_BY_SOURCE["graph"], "finish"}
    assert "Cora" not in run.requests[2].prompt + run.requests[3].prompt
    merged = run.requests[-1].prompt
    assert "The articles say: Cora" in merged
    assert "The graph says: Dora" in merged
    assert run.answer == "Cora"
    assert run.outcome.details["agreement"]["state"] == "conflict"
    assert run.outcome.usage["calls"] == 6


def test_the_published_pipelines_have_three_tools_for_the_graph_and_two_for_the_articles(town: Town) -> None:
    published = AgentOptions.from_mapping(dict(REASONERS["fusion"].presets["published"]))
    script = [*TEXT, Says("Final Answer: Dora\nGraph says: Dora"), Says('{"answers": ["Eva"]}'), Says("Answer: Eva")]
    run = ask(town.context, script, LateFusion(published))
    offered = [set(request.tools) - {"finish"} for request in run.requests]
    assert offered == [{"wikisearch", "read"}] * 2 + [{"generateQuery", "runQuery", "getLabel"}, set(), set()]
    assert "The articles say: Cora\nThe graph says: Dora\nThe language model says without looking: Eva" in (
        run.requests[-1].prompt
    )
    assert run.answer == "Eva"


def test_the_random_merge_chooses_either_answer_and_repeats_its_choice(town: Town) -> None:
    def answer(question: str) -> str:
        return ask(town.context, [*TEXT, *GRAPH], LateFusion(AgentOptions(merge="random")), question=question).answer

    questions = [f"Who is number {number}?" for number in range(8)]
    first = [answer(question) for question in questions]
    assert set(first) == {"Cora", "Dora"}
    assert [answer(question) for question in questions] == first


@pytest.mark.parametrize(("text", "graph", "answer"), [(TEXT, NOTHING, "Cora"), (NOTHING, GRAPH, "Dora")])
def test_a_single_answer_is_merged_unchanged(town: Town, text: list[Says], graph: list[Says], answer: str) -> None:
    run = ask(town.context, [*text, *graph], LateFusion(AgentOptions(merge="random")))
    assert run.answer == answer
    assert run.outcome.details["agreement"]["state"] == "one only"
    nobody = ask(town.context, [*NOTHING, *NOTHING], LateFusion(AgentOptions(merge="random")))
    assert nobody.outcome.ending == "refused"


def test_a_failed_pipeline_leaves_the_answer_of_the_other(town: Town) -> None:
    script = [Says("Hm.")] * 3 + [*GRAPH, Says("none")]
    run = ask(town.context, script, LateFusion(AgentOptions()))
    assert run.answer == "Dora"
    assert "3 in a row" in run.steps[3].thought


def test_a_thought_worded_like_a_pipeline_answer_does_not_end_the_pipeline(town: Town) -> None:
    broken = Says("From text only: I will search.")
    script = [broken, *TEXT, *GRAPH]
    whole = ask(town.context, script, LateFusion(AgentOptions(merge="random")))
    assert [step.node for step in whole.steps] == ["text"] * 2 + ["text answer", "graph", "graph answer"]
    resumed = ask(town.context, script[1:], LateFusion(AgentOptions(merge="random")), taken=whole.steps[:1])
    assert [step.thought for step in resumed.steps] == [step.thought for step in whole.steps]
    assert resumed.answer == whole.answer


def test_late_fusion_resumes_in_the_unfinished_pipeline(town: Town) -> None:
    script = [*TEXT, *GRAPH]
    whole = ask(town.context, script, LateFusion(AgentOptions(merge="random")))
    model_calls = {0: 4, 1: 3, 2: 2, 3: 1, 4: 0}
    for count, left in model_calls.items():
        rest = ask(
            town.context, script[4 - left :], LateFusion(AgentOptions(merge="random")), taken=whole.steps[:count]
        )
        assert rest.answer == whole.answer
        assert [(s.thought, s.tool, s.origins) for s in rest.steps] == [
            (s.thought, s.tool, s.origins) for s in whole.steps
        ]


def test_calls_of_one_message_belong_to_their_pipeline_when_it_is_resumed(town: Town) -> None:
    both = Says("Both.", calls=[("wikisearch", {"query": "Ada Reed"}), ("wikisearch", {"query": "Ada"})])
    script = [both, TEXT[1], *GRAPH]
    whole = ask(town.context, script, LateFusion(AgentOptions(merge="random")))
    assert [step.node for step in whole.steps] == ["text message 1"] * 2 + ["text answer", "graph", "graph answer"]
    resumed = ask(town.context, script[1:], LateFusion(AgentOptions(merge="random")), taken=whole.steps[:2])
    assert resumed.requests[0].body["messages"] == whole.requests[1].body["messages"]
    assert resumed.answer == whole.answer
