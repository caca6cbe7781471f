"""The HumanIQ agent over real HTTP in a real world, with valid and invalid replies."""

import json
from dataclasses import replace

import pytest

from showhow.db.models import Step, Trace
from showhow.evaluation.metrics.metric import split_answers
from showhow.reasoners.base import Task
from showhow.reasoners.humaniq.agent import (
    MAX_CONSECUTIVE_REJECTIONS,
    MAX_REJECTIONS,
    MAX_THOUGHT_CHARS,
    STATIC_TOOL_ORDER,
    HumanIQ,
)
from showhow.reasoners.humaniq.options import AgentOptions
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import run_reasoner
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import ToolContext
from tests.fixtures.town import Town
from tests.reasoners.agents import ALONE, ENDS, TOOLS_BY_SOURCE, as_calls, as_native_calls, as_text, ask
from tests.servers.model import Cut, Fails, ModelServer, Reply, Request, Says
from tests.servers.provider_models import CALL_NOTATIONS

LOOK = Says("I look.", calls=[("wikisearch", {"query": "Ada Reed"})])
TEXT = replace(ALONE, form="text")
TEXT_LOOK = "I look.\nAction: wikisearch\nAction Input: Ada Reed"


@pytest.fixture
def context(town: Town) -> ToolContext:
    return town.context


def kept(steps: list[Step]) -> list[tuple[object, ...]]:
    return [(s.thought, s.tool, s.arguments, s.origins, s.observation, s.data, s.error) for s in steps]


SCRIPTS = {"calls": as_calls, "native calls": as_native_calls, "text": as_text}


@pytest.mark.parametrize("how", SCRIPTS)
def test_a_model_that_repeats_a_gold_trace_produces_the_same_trace(town: Town, how: str) -> None:
    for record in town.gold:
        script = SCRIPTS[how](record)
        agent = HumanIQ(replace(ALONE, form="text" if how == "text" else "chat"))
        run = ask(town.context, script, agent, question=record.question.text)
        assert run.outcome.ending == "answered", run.outcome.failure
        assert kept(run.steps) == kept(record.steps)
        answers, trace = run.outcome.answers, record.trace
        assert answers is not None
        assert (answers.final_answer, answers.final_thought) == (trace.final_answer, trace.final_thought)
        assert (answers.answer_text, answers.answer_graph) == (trace.answer_text, trace.answer_graph)
        assert len(run.requests) == len(record.steps) + 1


def test_replies_are_streamed(context: ToolContext) -> None:
    run = ask(context, [LOOK, ENDS])
    assert run.streamed_text == "I look." + ENDS.text
    quiet = ask(context, [LOOK, ENDS], stream=False)
    assert quiet.streamed_text == ""
    assert kept(quiet.steps) == kept(run.steps)
    assert [request.body.get("stream", False) for request in run.requests + quiet.requests] == [True] * 2 + [False] * 2


@pytest.mark.parametrize("form", ["chat", "text"])
@pytest.mark.parametrize("notation", CALL_NOTATIONS)
def test_a_call_in_the_models_own_notation_is_run_and_not_shown(context: ToolContext, notation: str, form: str) -> None:
    written = CALL_NOTATIONS[notation]([("wikisearch", {"query": "Ada Reed"})])
    said = Says(f"I look.\n{written}" if notation != "harmony" else written, piece=3)
    run = ask(context, [said, ENDS], HumanIQ(replace(ALONE, form=form)))
    assert run.outcome.ending == "answered", run.outcome.failure
    assert run.calls == [("wikisearch", {"query": "Ada Reed"})]
    assert run.steps[0].thought == ("I look." if notation != "harmony" else "")
    # Without declared tools a call is known as one by its marks only.
    if form == "chat" or written.startswith(("<", "[TOOL")):
        assert run.streamed_text.removesuffix(ENDS.text).strip() == run.steps[0].thought


def test_the_usage_of_a_reply_is_stored_with_its_step(context: ToolContext) -> None:
    run = ask(context, [replace(LOOK, usage=(50, 7)), replace(ENDS, usage=(80, 9))])
    assert run.steps[0].usage["thought"]["input_tokens"] == 50
    assert (
        run.outcome.usage["calls"],
        run.outcome.usage["input_tokens"],
        run.outcome.usage["output_tokens"],
    ) == (
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
def test_an_invalid_reply_is_rejected_with_a_hint_and_the_run_continues(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    monkeypatch.setattr("showhow.llm.client._INITIAL_BACKOFF_SECONDS", 0.001)
    broken, why = BROKEN[name]
    again = [broken] * (4 if isinstance(broken, Cut) and how == "whole" else 1)
    run = ask(context, [*again, LOOK, ENDS], stream=how == "streamed")
    assert run.outcome.ending == "answered", run.outcome.failure
    refused, looked = run.steps
    assert (refused.tool, refused.observation) == (None, None)
    assert why in str(refused.error)
    assert refused.finished_at is not None
    assert len(refused.thought) <= MAX_THOUGHT_CHARS + 50
    assert looked.observation is not None
    assert str(refused.error) in run.requests[-2].prompt


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_fails_after_consecutive_rejections(context: ToolContext, name: str) -> None:
    broken, why = BROKEN[name]
    run = ask(context, lambda _: broken)
    assert run.outcome.ending == "failed"
    assert f"{MAX_CONSECUTIVE_REJECTIONS} in a row" in str(run.outcome.failure)
    assert why in str(run.outcome.failure)
    assert len(run.steps) == len(run.requests) == MAX_CONSECUTIVE_REJECTIONS
    assert all(step.error for step in run.steps)


@pytest.mark.parametrize("form", ["chat", "text"])
def test_unstorable_characters_are_replaced(context: ToolContext, form: str) -> None:
    call = Says("I look\x00.", calls=[("wikisearch", {"query": "Ada \ud800 Reed\x00"})])
    if form == "text":
        call = Says("I look\x00.\nAction: wikisearch\nAction Input: Ada \ud800 Reed\x00")
    run = ask(context, [call, Says("Final Answer: Ada\x00")], HumanIQ(replace(ALONE, form=form)))
    (step,) = run.steps
    assert (step.thought, step.arguments) == ("I look\ufffd.", {"query": "Ada \ufffd Reed\ufffd"})
    assert run.answer == "Ada\ufffd"


def test_a_run_fails_after_too_many_rejections_in_all(context: ToolContext) -> None:
    def reply(request: Request) -> Reply:
        search = Says("Hm.", calls=[("wikisearch", {"query": f"Ada {request.place}"})])
        return search if request.place % 2 else Says("Hm.")

    run = ask(context, reply)
    assert run.outcome.ending == "failed"
    assert f"{MAX_REJECTIONS} in all" in str(run.outcome.failure)
    assert len(run.steps) == 2 * MAX_REJECTIONS - 1


@pytest.mark.parametrize("form", ["chat", "text"])
def test_a_repeated_call_is_rejected(context: ToolContext, form: str) -> None:
    looks = LOOK if form == "chat" else Says(" I look.\nAction: wikisearch\nAction Input: Ada Reed")
    run = ask(context, [looks, looks, ENDS], HumanIQ(replace(ALONE, form=form)))
    looked, again = run.steps
    assert looked.observation is not None
    assert again.tool is None
    assert "This very call was made in step 1" in str(again.error)
    stuck = ask(context, lambda _: looks, HumanIQ(replace(ALONE, form=form)))
    assert len(stuck.steps) == 1 + MAX_CONSECUTIVE_REJECTIONS


def test_a_failed_call_may_be_repeated_once(context: ToolContext) -> None:
    read = Says("I read.", calls=[("read", {"title": "Nowhere at all", "question": "?"})])
    run = ask(context, [read, read, read, ENDS])
    assert [step.tool for step in run.steps] == ["read", "read", None]
    assert "failed 2 times already" in str(run.steps[-1].error)


def test_several_calls_of_one_reply_are_run_in_order(context: ToolContext) -> None:
    calls = [("wikisearch", {"query": f"Ada {number}"}) for number in range(7)]
    run = ask(context, [Says("All at once.", calls=calls), ENDS])
    assert [step.thought for step in run.steps] == ["All at once.", "", "", "", ""]
    assert [step.tool for step in run.steps] == ["wikisearch"] * 4 + [None]
    assert "3 more" in str(run.steps[-1].error)
    assert [bool(step.usage) for step in run.steps] == [True, False, False, False, False]
    sent_messages = run.requests[1].body["messages"]
    assert [message["role"] for message in sent_messages[2:]] == ["assistant", *["tool"] * 4, "assistant", "user"]
    retold = [json.loads(call["function"]["arguments"]) for call in sent_messages[2]["tool_calls"]]
    assert retold[0] == {"thought": "All at once.", "query": "Ada 0"}
    assert [arguments["query"] for arguments in retold] == [f"Ada {number}" for number in range(4)]


def test_calls_of_one_message_are_retold_as_they_were_sent_also_after_a_stop(context: ToolContext) -> None:
    both = Says(calls=[("wikisearch", {"thought": f"{n}.", "query": f"Ada {n}"}) for n in (1, 2)])
    repeated = Says(
        calls=[
            ("wikisearch", {"thought": "3.", "query": "Ada 3"}),
            ("wikisearch", {"thought": "again", "query": "Ada 1"}),
            ("wikisearch", {"thought": "4.", "query": "Ada 4"}),
        ]
    )
    script = [both, LOOK, repeated, ENDS]
    run = ask(context, script)
    sizes = [
        [json.loads(call["function"]["arguments"])["thought"] for call in message["tool_calls"]]
        for message in run.requests[-1].body["messages"]
        if message.get("tool_calls")
    ]
    assert sizes == [["1.", "2."], ["I look."], ["3.", "4."]]
    assert [step.thought for step in run.steps] == ["1.", "2.", "I look.", "3.", "again", "4."]
    assert "This very call was made in step 1" in str(run.steps[4].error)
    rest = ask(context, script[3:], taken=run.steps)
    assert rest.requests[0].body["messages"] == run.requests[-1].body["messages"]


def test_a_finish_beside_other_calls_is_left_out_until_their_results_were_read(context: ToolContext) -> None:
    hasty = Says(calls=[("wikisearch", {"query": "Ada Reed"}), ("finish", {"answers": ["Eve"], "found": True})])
    run = ask(context, [hasty, Says(calls=[("finish", {"answers": ["Ada"], "found": True})])])
    assert run.answer == "Ada"
    assert [step.tool for step in run.steps] == ["wikisearch", None]
    assert "finish was left out" in str(run.steps[1].error)


FOUND = {"answers": ["Washington, D.C.", "Bern"], "text_says": ["Bern"], "graph_says": [], "found": True}


def test_finish_ends_a_run_with_a_list_of_answers_and_the_steps_that_show_them(context: ToolContext) -> None:
    finish = {"thought": "So both.", **FOUND, "steps": [1, 2, 9]}
    failing = Says("", calls=[("read", {"thought": "I read.", "title": "Nobody", "question": "Who?"})])
    run = ask(context, [LOOK, failing, Says(calls=[("finish", finish)])])
    answers = run.outcome.answers
    assert answers is not None
    assert (answers.final_answer, answers.final_thought) == ("Washington, D.C.; Bern", "So both.")
    assert (answers.answer_text, answers.answer_graph, answers.answer_model) == ("Bern", None, None)
    assert run.outcome.details["answers"] == ["Washington, D.C.", "Bern"]
    assert run.outcome.details["cited_steps"] == [1]
    assert split_answers(answers.final_answer) == ["Washington, D.C.", "Bern"]


@pytest.mark.parametrize(
    "finish",
    [
        {"answers": [], "found": False},
        {"answers": ["Eve"], "found": False},
        {"answers": ["unknown"], "found": False},
        {"answers": []},
        {"found": False},
    ],
)
def test_finish_without_an_answer_refuses_the_question(context: ToolContext, finish: dict[str, object]) -> None:
    run = ask(context, [LOOK, Says(calls=[("finish", {"thought": "Nowhere.", **finish})])])
    assert (run.outcome.ending, run.outcome.answers) == ("refused", None)
    assert run.steps[-1].thought == "Nowhere."


NOT_THERE = "This question cannot be answered: the sources do not say it."


@pytest.mark.parametrize(
    "reply",
    [
        Says(calls=[("finish", {"thought": "No.", "cannot_be_answered": "not in the sources", "found": True})]),
        Says(calls=[("finish", {"thought": "No.", "cannot_be_answered": "Not in the sources", "found": False})]),
        Says(calls=[("finish", {"thought": "No.", "answers": [NOT_THERE], "found": True})]),
        Says(f"No.\n\nFinal Answer: {NOT_THERE}\nText says: none\nGraph says: none"),
        Says("No.\n\nFinal Answer: This question cannot be answered: not in the sources"),
    ],
)
def test_that_a_question_cannot_be_answered_is_an_answer_in_both_forms(context: ToolContext, reply: Says) -> None:
    agent = HumanIQ(ALONE if reply.calls else TEXT)
    run = ask(context, [LOOK if reply.calls else Says(TEXT_LOOK), reply], agent)
    assert (run.outcome.ending, run.answer) == ("answered", NOT_THERE)
    assert run.outcome.answers is not None
    assert run.outcome.answers.final_thought == "No."


@pytest.mark.parametrize("form", ["chat", "text"])
def test_a_demonstration_that_ends_so_is_shown_and_the_prompt_says_that_there_is_such_an_end(
    town: Town, form: str
) -> None:
    (shown, *_) = town.gold
    ended = replace(shown, trace=replace_answer(shown.trace, NOT_THERE))
    options = replace(ALONE, form=form)
    run = ask(town.context, [ENDS], HumanIQ(options), demonstrations=[ended])
    body = json.dumps(run.requests[0].body)
    assert ("not in the sources" if form == "chat" else NOT_THERE) in body
    assert body.count("cannot_be_answered" if form == "chat" else NOT_THERE) >= 2


def replace_answer(trace: Trace, answer: str) -> Trace:
    return Trace(question_id=trace.question_id, final_answer=answer, final_thought="It is nowhere.")


@pytest.mark.parametrize("arguments", [{}, {"answers": [], "found": True}, {"found": True}, '{"answers": ["A', "[]"])
def test_a_broken_finish_is_rejected_and_the_run_goes_on(context: ToolContext, arguments: object) -> None:
    run = ask(context, [LOOK, Says(calls=[("finish", arguments)]), Says(calls=[("finish", FOUND)])])  # type: ignore[list-item]
    assert run.outcome.ending == "answered"
    assert "finish" in str(run.steps[1].error)


@pytest.mark.parametrize(
    ("reply", "thought"),
    [
        (Says(calls=[("wikisearch", {"thought": " I look. ", "query": "Ada"})]), "I look."),
        (Says("Text.", calls=[("wikisearch", {"thought": "I look.", "query": "Ada"})]), "I look."),
        (Says("I look.", calls=[("wikisearch", {"query": "Ada"})]), "I look."),
        (Says("I look.", calls=[("wikisearch", {"thought": "", "query": "Ada"})]), "I look."),
        (Says("I look.", calls=[("wikisearch", {"thought": None, "query": "Ada"})]), "I look."),
        (Says("<think>I look.</think>", calls=[("wikisearch", {"query": "Ada"})]), "I look."),
        (Says(calls=[("wikisearch", {"query": "Ada"})]), ""),
        (Says(calls=[("wikisearch", {"thought": ["I", "look"], "query": "Ada"})]), '["I", "look"]'),
    ],
)
def test_the_thought_of_a_call_is_kept_wherever_the_model_writes_it(
    context: ToolContext, reply: Says, thought: str
) -> None:
    run = ask(context, [reply, ENDS])
    (step,) = run.steps
    assert (step.thought, step.arguments) == (thought, {"query": "Ada"})
    assert step.observation is not None


def test_every_tool_takes_the_thought_first_and_demonstrations_show_it(town: Town) -> None:
    run = ask(town.context, [LOOK, ENDS], demonstrations=town.gold[:1])
    body = run.requests[0].body
    for tool in body["tools"]:
        parameters = tool["function"]["parameters"]
        assert next(iter(parameters["properties"])) == parameters["required"][0] == "thought"
    calls = [call["function"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    written = [(call["name"], json.loads(call["arguments"])) for call in calls]
    steps, trace = town.gold[0].steps, town.gold[0].trace
    assert written[:-1] == [(step.tool, {"thought": step.thought, **step.arguments}) for step in steps]
    assert written[-1][0] == "finish"
    assert written[-1][1]["answers"] == [trace.final_answer]
    assert all(next(iter(arguments)) == "thought" for _, arguments in written)


def test_requests_of_a_run_declare_the_same_tools_and_begin_alike(town: Town) -> None:
    for pipeline in ("dynamic", "static"):
        script = [Says("Next.", calls=[(name, STATIC[name])]) for name in STATIC_TOOL_ORDER] + [ENDS]
        run = ask(town.context, script, HumanIQ(replace(ALONE, pipeline=pipeline)), demonstrations=town.gold[:2])
        bodies = [request.body for request in run.requests]
        assert all(body["tools"] == bodies[0]["tools"] for body in bodies)
        opening = bodies[0]["messages"][:-1] if pipeline == "static" else bodies[0]["messages"]
        assert all(body["messages"][: len(opening)] == opening for body in bodies)


def test_an_answer_without_observations_is_the_models_own(context: ToolContext) -> None:
    run = ask(context, [Says("I know that.\n\nFinal Answer: Ada")])
    assert run.steps == []
    assert run.outcome.answers is not None
    assert (run.outcome.answers.answer_model, run.outcome.answers.answer_text) == ("Ada", None)


@pytest.mark.parametrize(("tool", "source"), [("wikisearch", "text"), ("getWikiDataID", "graph")])
def test_an_answer_without_source_lines_belongs_to_the_last_source(town: Town, tool: str, source: str) -> None:
    answers_of_town = [answer for gold in town.gold for answer in gold.question.gold_answers]
    name = next(answer["text"] for answer in answers_of_town if answer["entity"])
    arguments = {"query": name} if tool == "wikisearch" else {"title": name}
    run = ask(town.context, [Says("I look.", calls=[(tool, arguments)]), Says("Final Answer: Ada")])
    answers = run.outcome.answers
    assert answers is not None
    assert {"text": answers.answer_text, "graph": answers.answer_graph}[source] == "Ada"
    assert {answers.answer_text, answers.answer_graph, answers.answer_model} == {"Ada", None}


def test_a_run_without_an_answer_is_refused_and_its_usage_counted(context: ToolContext) -> None:
    run = ask(context, [LOOK, Says("I looked everywhere.\n\nFinal Answer: unknown")])
    assert (run.outcome.ending, run.outcome.answers) == ("refused", None)
    assert run.steps[-1].thought == "I looked everywhere."
    assert run.outcome.usage["calls"] == 2


def test_busy_servers_are_retried_and_failures_end_in_one_sentence(context: ToolContext) -> None:
    busy = Fails(429, "slow down", {"Retry-After": "0"})
    assert ask(context, [busy, busy, LOOK, ENDS]).answer == "Ada"
    always = ask(context, lambda _: busy, seconds=2)
    assert (always.outcome.ending, always.steps) == ("failed", [])
    assert always.outcome.failure


def test_a_server_that_rejects_tools_gets_text_prompts_from_then_on(town: Town) -> None:
    def reply(request: Request) -> Reply:
        if request.tools:
            return Fails(400, "tools are not supported by this model")
        return text[sum(not request.tools for request in requests) - 1]

    requests: list[Request] = []

    def script(request: Request) -> Reply:
        requests.append(request)
        return reply(request)

    record = town.gold[0]
    text = as_text(record)
    run = ask(town.context, script, HumanIQ(ALONE), question=record.question.text)
    assert run.answer == record.trace.final_answer
    assert kept(run.steps) == kept(record.steps)
    assert run.outcome.details["prompt_format"] == "text"
    assert [bool(request.tools) for request in run.requests] == [True] + [False] * len(text)
    chat_only = ask(town.context, [Fails(400, "no tools")], HumanIQ(replace(ALONE, form="chat")))
    assert (chat_only.outcome.ending, len(chat_only.requests)) == ("failed", 1)


@pytest.mark.parametrize("form", ["auto", "text"])
def test_a_server_that_rejects_stop_sequences_gets_none_from_then_on(town: Town, form: str) -> None:
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

    run = ask(town.context, script, HumanIQ(replace(ALONE, form=form)), question=record.question.text)
    assert (run.outcome.ending, run.outcome.failure) == ("answered", None)
    assert kept(run.steps) == kept(record.steps)
    refused = 1 if form == "text" else 2
    assert len(run.requests) == refused + len(taken) == refused + len(text)


def test_a_bad_request_for_another_reason_sets_no_limitation(context: ToolContext) -> None:
    with ModelServer(lambda request: Fails(400, "too long") if request.tools else ENDS) as server:
        agent = HumanIQ(ALONE, chat=server.chat())
        for _ in range(2):
            assert (
                run_reasoner(agent, Task("Who?", context, list(BUILT_IN_TOOLS.values())), MemoryRecorder()).ending
                == "answered"
            )
        assert [bool(request.tools) for request in server.requests] == [True, False] * 2


@pytest.mark.parametrize("form", ["chat", "text"])
def test_a_run_continues_from_its_prior_steps(town: Town, form: str) -> None:
    record = max(town.gold, key=lambda gold: len(gold.steps))
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
def test_the_static_pipeline_fixes_the_tools_but_not_their_arguments(context: ToolContext, form: str) -> None:
    def written(name: str) -> Says:
        if form == "chat":
            return Says("Next.", calls=[(name, STATIC[name])])
        only = STATIC[name]
        line = next(iter(only.values())) if len(only) == 1 and name != "getLabel" else str(only).replace("'", '"')
        return Says(f" Next.\nAction: {name}\nAction Input: {line}")

    astray = written("runQuery")
    script = [written("wikisearch"), astray, *(written(name) for name in STATIC_TOOL_ORDER[1:]), astray, ENDS]
    run = ask(context, script, HumanIQ(replace(ALONE, form=form, pipeline="static")))
    assert run.outcome.ending == "answered", run.outcome.failure
    assert [step.tool for step in run.steps if step.tool] == list(STATIC_TOOL_ORDER)
    assert [step.position for step in run.steps if step.tool is None] == [2, 7]
    assert run.calls[0] == ("wikisearch", STATIC["wikisearch"])
    if form == "chat":
        assert len({tuple(request.tools) for request in run.requests}) == 1


@pytest.mark.parametrize("sources", ["text", "graph"])
@pytest.mark.parametrize("form", ["chat", "text"])
def test_sources_restrict_the_tools_and_the_demonstrations(town: Town, sources: str, form: str) -> None:
    agent = HumanIQ(replace(ALONE, sources=sources, form=form))
    other = "text" if sources == "graph" else "graph"
    shown = [record for record in town.gold if {s.tool for s in record.steps} & set(TOOLS_BY_SOURCE[sources])][:3]
    forbidden = Says("Hm.", calls=[(TOOLS_BY_SOURCE[other][0], {})])
    if form == "text":
        forbidden = Says(f"Hm.\nAction: {TOOLS_BY_SOURCE[other][0]}\nAction Input: Ada")
    run = ask(town.context, [forbidden, ENDS], agent, demonstrations=shown)
    assert "There is no tool" in str(run.steps[0].error)
    prompt = run.requests[0].body
    assert shown[0].question.text in str(prompt)
    assert set(run.requests[0].tools) == ({*TOOLS_BY_SOURCE[sources], "finish"} if form == "chat" else set())
    assert f"{other.title()} says" not in str(prompt)
    answers = run.outcome.answers
    assert answers is not None
    assert (answers.answer_text, answers.answer_graph) == (("Ada", None) if sources == "text" else (None, None))
    for name in TOOLS_BY_SOURCE[other]:
        assert f"'{name}'" not in str(prompt)
        assert f"Action: {name}" not in str(prompt)


def test_the_error_of_a_missing_model_or_tool_says_what_to_do(context: ToolContext) -> None:
    without = run_reasoner(HumanIQ(), Task("Who?", context, []), MemoryRecorder())
    assert "add a profile on the Settings page" in str(without.failure)
    with ModelServer([]) as server:
        agent = HumanIQ(AgentOptions(sources="graph"), chat=server.chat())
        outcome = run_reasoner(agent, Task("Who?", context, [BUILT_IN_TOOLS["read"]]), MemoryRecorder())
    assert outcome.failure == "No tool offered here uses the graph; choose other sources."
