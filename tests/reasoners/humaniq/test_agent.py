"""The agent over real HTTP in a real world: what a model does becomes a trace like a person's, however it replies."""

from dataclasses import replace

import pytest

from db.models import Step
from reasoners.base import Task
from reasoners.humaniq.agent import HumanIQ
from reasoners.humaniq.options import AgentOptions
from reasoners.humaniq.react_loop import MAX_CONSECUTIVE_REJECTIONS, MAX_REJECTIONS, MAX_THOUGHT_CHARS
from reasoners.humaniq.tool_order import STATIC_TOOL_ORDER
from runs.recorders import MemoryRecorder
from runs.runner import run_reasoner
from tests.fixtures.town import Town
from tests.reasoners.agents import ALONE, ENDS, TOOLS_BY_SOURCE, as_calls, as_text, ask
from tests.servers.model import Cut, Fails, ModelServer, Reply, Request, Says
from tools.registry import BUILT_IN_TOOLS
from tools.tool import ToolContext

LOOK = Says("I look.", calls=[("wikisearch", {"query": "Ada Reed"})])
TEXT = replace(ALONE, form="text")


@pytest.fixture
def context(town: Town) -> ToolContext:
    return town.context


def kept(steps: list[Step]) -> list[tuple[object, ...]]:
    return [(s.thought, s.tool, s.arguments, s.origins, s.observation, s.data, s.error) for s in steps]


@pytest.mark.parametrize("form", ["chat", "text"])
def test_a_model_that_does_what_a_gold_trace_did_leaves_the_same_trace(town: Town, form: str) -> None:
    for record in town.gold:
        script = as_calls(record) if form == "chat" else as_text(record)
        agent = HumanIQ(replace(ALONE, form=form))
        asked = ask(town.context, script, agent, question=record.question.text)
        assert asked.ended.ending == "answered", asked.ended.failure
        assert kept(asked.steps) == kept(record.steps)
        answers, trace = asked.ended.answers, record.trace
        assert answers is not None
        assert (answers.final_answer, answers.final_thought) == (trace.final_answer, trace.final_thought)
        assert (answers.answer_text, answers.answer_graph) == (trace.answer_text, trace.answer_graph)
        assert len(asked.requests) == len(record.steps) + 1


def test_words_are_heard_as_they_come(context: ToolContext) -> None:
    asked = ask(context, [LOOK, ENDS])
    assert asked.heard == "I look." + ENDS.text
    quiet = ask(context, [LOOK, ENDS], stream=False)
    assert quiet.heard == ""
    assert kept(quiet.steps) == kept(asked.steps)
    assert [request.body.get("stream", False) for request in asked.requests + quiet.requests] == [True] * 2 + [
        False
    ] * 2


def test_what_the_model_took_stands_with_the_step_that_it_wrote(context: ToolContext) -> None:
    asked = ask(context, [replace(LOOK, usage=(50, 7)), replace(ENDS, usage=(80, 9))])
    assert asked.steps[0].usage["thought"]["input_tokens"] == 50
    assert (asked.ended.usage["calls"], asked.ended.usage["input_tokens"], asked.ended.usage["output_tokens"]) == (
        2,
        130,
        16,
    )


BROKEN: dict[str, tuple[Reply, str]] = {
    "bad JSON": (Says("Hm.", calls=[("wikisearch", '{"query": "Ada')]), "no valid JSON"),
    "an unknown tool": (Says("Hm.", calls=[("google", {"q": "Ada"})]), "There is no tool 'google'. Use one of these"),
    "an unknown argument": (
        Says("Hm.", calls=[("wikisearch", {"words": "Ada"})]),
        "it has no argument 'words'; query is",
    ),
    "a missing argument": (Says("Hm.", calls=[("read", {"title": "Ada"})]), "question is missing"),
    "a wrong kind of argument": (Says("Hm.", calls=[("wikisearch", {"query": ["Ada"]})]), 'query: ["Ada"] is no text'),
    "JSON that is nested too deep": (Says("Hm.", calls=[("wikisearch", "[" * 5_000)], piece=5_000), "no valid JSON"),
    "endless arguments": (
        Says("Hm.", calls=[("wikisearch", {"query": "and then " * 5_000})], piece=50_000),
        "its arguments take 45,013 characters",
    ),
    "thoughts between marks and no word": (Says("<think>Final Answer: Eve</think>"), "no action and no answer"),
    "neither call nor answer": (Says("I should search for Ada first."), "no action and no answer"),
    "an empty message": (Says(""), "replied with an empty message"),
    "endless thoughts": (Says("and then " * 300, reason="length"), "too long"),
    "a cut stream": (Cut("I look for"), "broke off"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("how", ["streamed", "whole"])
def test_a_broken_reply_is_answered_with_how_to_do_it_right_and_the_run_goes_on(
    context: ToolContext, name: str, how: str
) -> None:
    broken, why = BROKEN[name]
    again = [broken] * (4 if isinstance(broken, Cut) and how == "whole" else 1)
    asked = ask(context, [*again, LOOK, ENDS], stream=how == "streamed")
    assert asked.ended.ending == "answered", asked.ended.failure
    refused, looked = asked.steps
    assert (refused.tool, refused.observation) == (None, None)
    assert why in str(refused.error)
    assert refused.finished_at is not None
    assert len(refused.thought) <= MAX_THOUGHT_CHARS + 50
    assert looked.observation is not None
    assert str(refused.error) in asked.requests[-2].prompt


@pytest.mark.parametrize("name", BROKEN)
def test_a_model_that_only_breaks_is_given_up_in_one_sentence(context: ToolContext, name: str) -> None:
    broken, why = BROKEN[name]
    asked = ask(context, lambda _: broken)
    assert asked.ended.ending == "failed"
    assert f"{MAX_CONSECUTIVE_REJECTIONS} in a row" in str(asked.ended.failure)
    assert why in str(asked.ended.failure)
    assert len(asked.steps) == len(asked.requests) == MAX_CONSECUTIVE_REJECTIONS
    assert all(step.error for step in asked.steps)


@pytest.mark.parametrize("form", ["chat", "text"])
def test_what_no_database_keeps_is_written_with_a_sign_in_its_place(context: ToolContext, form: str) -> None:
    call = Says("I look\x00.", calls=[("wikisearch", {"query": "Ada \ud800 Reed\x00"})])
    if form == "text":
        call = Says("I look\x00.\nAction: wikisearch\nAction Input: Ada \ud800 Reed\x00")
    asked = ask(context, [call, Says("Final Answer: Ada\x00")], HumanIQ(replace(ALONE, form=form)))
    (step,) = asked.steps
    assert (step.thought, step.arguments) == ("I look\ufffd.", {"query": "Ada \ufffd Reed\ufffd"})
    assert asked.answer == "Ada\ufffd"


def test_a_model_that_breaks_now_and_then_is_given_up_too(context: ToolContext) -> None:
    def reply(request: Request) -> Reply:
        search = Says("Hm.", calls=[("wikisearch", {"query": f"Ada {request.place}"})])
        return search if request.place % 2 else Says("Hm.")

    asked = ask(context, reply)
    assert asked.ended.ending == "failed"
    assert f"{MAX_REJECTIONS} in all" in str(asked.ended.failure)
    assert len(asked.steps) == 2 * MAX_REJECTIONS - 1


@pytest.mark.parametrize("form", ["chat", "text"])
def test_a_call_that_was_made_is_not_made_again(context: ToolContext, form: str) -> None:
    looks = LOOK if form == "chat" else Says(" I look.\nAction: wikisearch\nAction Input: Ada Reed")
    asked = ask(context, [looks, looks, ENDS], HumanIQ(replace(ALONE, form=form)))
    looked, again = asked.steps
    assert looked.observation is not None
    assert again.tool is None
    assert "This very call was made in step 1" in str(again.error)
    stuck = ask(context, lambda _: looks, HumanIQ(replace(ALONE, form=form)))
    assert len(stuck.steps) == 1 + MAX_CONSECUTIVE_REJECTIONS


def test_a_call_that_failed_may_be_made_once_more(context: ToolContext) -> None:
    read = Says("I read.", calls=[("read", {"title": "Nowhere at all", "question": "?"})])
    asked = ask(context, [read, read, read, ENDS])
    assert [step.tool for step in asked.steps] == ["read", "read", None]
    assert "failed 2 times already" in str(asked.steps[-1].error)


def test_several_calls_in_one_reply_are_run_one_after_the_other(context: ToolContext) -> None:
    calls = [("wikisearch", {"query": f"Ada {number}"}) for number in range(7)]
    asked = ask(context, [Says("All at once.", calls=calls), ENDS])
    assert [step.thought for step in asked.steps] == ["All at once.", "", "", "", ""]
    assert [step.tool for step in asked.steps] == ["wikisearch"] * 4 + [None]
    assert "3 more" in str(asked.steps[-1].error)
    assert [bool(step.usage) for step in asked.steps] == [True, False, False, False, False]
    said = asked.requests[1].body["messages"]
    assert [message["role"] for message in said[2:]] == ["assistant", "tool"] * 4 + ["assistant", "user"]


def test_an_answer_without_a_tool_rests_on_no_source(context: ToolContext) -> None:
    asked = ask(context, [Says("I know that.\n\nFinal Answer: Ada")])
    assert asked.steps == []
    assert asked.ended.answers is not None
    assert (asked.ended.answers.answer_model, asked.ended.answers.answer_text) == ("Ada", None)


@pytest.mark.parametrize(("tool", "source"), [("wikisearch", "text"), ("getWikiDataID", "graph")])
def test_an_answer_that_names_no_source_is_of_the_one_that_was_asked_last(town: Town, tool: str, source: str) -> None:
    name = next(iter(town.gold[0].question.gold_answers))["text"]
    arguments = {"query": name} if tool == "wikisearch" else {"title": name}
    asked = ask(town.context, [Says("I look.", calls=[(tool, arguments)]), Says("Final Answer: Ada")])
    answers = asked.ended.answers
    assert answers is not None
    assert {"text": answers.answer_text, "graph": answers.answer_graph}[source] == "Ada"
    assert {answers.answer_text, answers.answer_graph, answers.answer_model} == {"Ada", None}


def test_an_agent_that_finds_nothing_says_so_and_what_it_took_is_counted(context: ToolContext) -> None:
    asked = ask(context, [LOOK, Says("I looked everywhere.\n\nFinal Answer: unknown")])
    assert (asked.ended.ending, asked.ended.answers) == ("refused", None)
    assert asked.steps[-1].thought == "I looked everywhere."
    assert asked.ended.usage["calls"] == 2


def test_servers_that_are_busy_are_asked_again_and_their_failures_end_in_a_sentence(context: ToolContext) -> None:
    busy = Fails(429, "slow down", {"Retry-After": "0"})
    assert ask(context, [busy, busy, LOOK, ENDS]).answer == "Ada"
    always = ask(context, lambda _: busy)
    assert (always.ended.ending, always.steps) == ("failed", [])
    assert always.ended.failure
    assert len(always.requests) <= 5


def test_a_server_that_refuses_tools_is_asked_in_text_from_then_on(town: Town) -> None:
    def reply(request: Request) -> Reply:
        if request.tools:
            return Fails(400, "tools are not supported by this model")
        return text[sum(not each.tools for each in told) - 1]

    told: list[Request] = []

    def script(request: Request) -> Reply:
        told.append(request)
        return reply(request)

    record = town.gold[0]
    text = as_text(record)
    asked = ask(town.context, script, HumanIQ(ALONE), question=record.question.text)
    assert asked.answer == record.trace.final_answer
    assert kept(asked.steps) == kept(record.steps)
    assert asked.ended.details["form"] == "text"
    assert [bool(request.tools) for request in asked.requests] == [True] + [False] * len(text)
    chat_only = ask(town.context, [Fails(400, "no tools")], HumanIQ(replace(ALONE, form="chat")))
    assert (chat_only.ended.ending, len(chat_only.requests)) == ("failed", 1)


@pytest.mark.parametrize("form", ["auto", "text"])
def test_a_server_that_refuses_stop_sequences_is_asked_without_them_from_then_on(town: Town, form: str) -> None:
    record = town.gold[0]
    text = as_text(record)
    taken: list[Request] = []

    def script(request: Request) -> Reply:
        if request.tools:
            return Fails(400, "no")
        if "stop" in request.body:
            return Fails(400, "Unsupported parameter: 'stop' is not supported with this model.")
        taken.append(request)
        return text[len(taken) - 1]

    asked = ask(town.context, script, HumanIQ(replace(ALONE, form=form)), question=record.question.text)
    assert (asked.ended.ending, asked.ended.failure) == ("answered", None)
    assert kept(asked.steps) == kept(record.steps)
    refused = 1 if form == "text" else 2
    assert len(asked.requests) == refused + len(taken) == refused + len(text)


def test_a_request_that_is_refused_for_another_reason_teaches_nothing_of_tools(context: ToolContext) -> None:
    with ModelServer(lambda request: Fails(400, "too long") if request.tools else ENDS) as server:
        agent = HumanIQ(ALONE, chat=server.chat())
        for _ in range(2):
            assert (
                run_reasoner(agent, Task("Who?", context, list(BUILT_IN_TOOLS.values())), MemoryRecorder()).ending
                == "answered"
            )
        assert [bool(request.tools) for request in server.requests] == [True, False] * 2


@pytest.mark.parametrize("form", ["chat", "text"])
def test_a_run_goes_on_from_the_steps_that_are_there(town: Town, form: str) -> None:
    record = max(town.gold, key=lambda each: len(each.steps))
    script = as_calls(record) if form == "chat" else as_text(record)
    agent = HumanIQ(replace(ALONE, form=form))
    whole = ask(town.context, script, agent, question=record.question.text)
    for count in range(1, len(record.steps) + 1):
        rest = ask(town.context, script[count:], agent, question=record.question.text, taken=whole.steps[:count])
        assert kept(rest.steps) == kept(record.steps)
        assert rest.answer == record.trace.final_answer
        assert [request.body["messages"] for request in rest.requests] == [
            request.body["messages"] for request in whole.requests[count:]
        ]


STATIC = {
    "wikisearch": {"query": "Ada"},
    "getWikiDataID": {"title": "Ada"},
    "generateQuery": {"question": "Who is she?", "entity_ids": ["Q1"]},
    "runQuery": {"sparql": "ASK { ?s ?p ?o }"},
    "getLabel": {"ids": ["Q1"]},
}


@pytest.mark.parametrize("form", ["chat", "text"])
def test_the_static_pipeline_keeps_its_order_and_leaves_the_arguments_to_the_model(
    context: ToolContext, form: str
) -> None:
    def written(name: str) -> Says:
        if form == "chat":
            return Says("Next.", calls=[(name, STATIC[name])])
        only = STATIC[name]
        line = next(iter(only.values())) if len(only) == 1 and name != "getLabel" else str(only).replace("'", '"')
        return Says(f" Next.\nAction: {name}\nAction Input: {line}")

    astray = written("runQuery")
    script = [written("wikisearch"), astray, *(written(name) for name in STATIC_TOOL_ORDER[1:]), astray, ENDS]
    asked = ask(context, script, HumanIQ(replace(ALONE, form=form, pipeline="static")))
    assert asked.ended.ending == "answered", asked.ended.failure
    assert [step.tool for step in asked.steps if step.tool] == list(STATIC_TOOL_ORDER)
    assert [step.position for step in asked.steps if step.tool is None] == [2, 7]
    assert asked.told[0] == ("wikisearch", STATIC["wikisearch"])
    if form == "chat":
        assert [request.tools for request in asked.requests[:3]] == [
            ["wikisearch"],
            ["getWikiDataID"],
            ["getWikiDataID"],
        ]


@pytest.mark.parametrize("sources", ["text", "graph"])
@pytest.mark.parametrize("form", ["chat", "text"])
def test_sources_limit_the_tools_and_what_demonstrations_show(town: Town, sources: str, form: str) -> None:
    agent = HumanIQ(replace(ALONE, sources=sources, form=form))
    other = "text" if sources == "graph" else "graph"
    shown = [record for record in town.gold if {s.tool for s in record.steps} & set(TOOLS_BY_SOURCE[sources])][:3]
    forbidden = Says("Hm.", calls=[(TOOLS_BY_SOURCE[other][0], {})])
    if form == "text":
        forbidden = Says(f"Hm.\nAction: {TOOLS_BY_SOURCE[other][0]}\nAction Input: Ada")
    asked = ask(town.context, [forbidden, ENDS], agent, demonstrations=shown)
    assert "There is no tool" in str(asked.steps[0].error)
    prompt = asked.requests[0].body
    assert shown[0].question.text in str(prompt)
    assert set(asked.requests[0].tools) == (set(TOOLS_BY_SOURCE[sources]) if form == "chat" else set())
    assert f"{other.title()} says" not in str(prompt)
    answers = asked.ended.answers
    assert answers is not None
    assert (answers.answer_text, answers.answer_graph) == (("Ada", None) if sources == "text" else (None, None))
    for name in TOOLS_BY_SOURCE[other]:
        assert f"'{name}'" not in str(prompt)
        assert f"Action: {name}" not in str(prompt)


def test_without_a_model_or_a_tool_it_says_what_to_do(context: ToolContext) -> None:
    without = run_reasoner(HumanIQ(), Task("Who?", context, []), MemoryRecorder())
    assert "SHOWHOW_MODEL" in str(without.failure)
    with ModelServer([]) as server:
        agent = HumanIQ(AgentOptions(sources="graph"), chat=server.chat())
        ended = run_reasoner(agent, Task("Who?", context, [BUILT_IN_TOOLS["read"]]), MemoryRecorder())
    assert ended.failure == "None of the tools that are offered here asks the graph; choose other sources."
