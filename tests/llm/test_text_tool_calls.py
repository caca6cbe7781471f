"""Calls in the notations of models whose server does not parse them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.text_tool_calls import TextReply, TextToolCall, match_tool_name, parse_text_reply

TOOLS = ("read", "wikisearch", "getLabel")
PARIS = {"title": "Paris", "question": "Who {led} it?"}
CALL = json.dumps({"name": "read", "arguments": PARIS})
ONE = (TextToolCall("read", PARIS),)

FORMS = {
    "Hermes": (f"I look.\n<tool_call>\n{CALL}\n</tool_call>", "I look."),
    "Hermes, not closed": (f"<tool_call>{CALL}", ""),
    "bare JSON": (CALL, ""),
    "bare JSON after words": (f"I look.\n\n{CALL}", "I look."),
    "fenced JSON": (f"I look.\n```json\n{CALL}\n```", "I look."),
    "Llama": ("<|python_tag|>" + json.dumps({"name": "read", "parameters": PARIS}) + "<|eom_id|>", ""),
    "Llama, type function": (json.dumps({"type": "function", "name": "read", "parameters": PARIS}), ""),
    "OpenAI's object": (json.dumps({"function": {"name": "read", "arguments": json.dumps(PARIS)}}), ""),
    "a list under tool_calls": (json.dumps({"tool_calls": [{"name": "read", "arguments": PARIS}]}), ""),
    "Mistral": ("[TOOL_CALLS]" + json.dumps([{"name": "read", "arguments": PARIS}]), ""),
    "Mistral, new": ("[TOOL_CALLS]read[ARGS]" + json.dumps(PARIS), ""),
    "prefix": ("I look.\nfunctions.read:0" + json.dumps(PARIS), "I look."),
    "prefix in the name": (json.dumps({"name": "functions.read", "arguments": PARIS}), ""),
    "a call with brackets": (f"functions.read({json.dumps(PARIS)})", ""),
    "DeepSeek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n" + json.dumps(PARIS)
        + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "",
    ),
    "Llama 3.1 tags": (f"<function=read>{json.dumps(PARIS)}</function>", ""),
    "Qwen coder": (
        "I look.\n<tool_call>\n<function=read>\n<parameter=title>\nParis\n</parameter>\n<parameter=question>\n"
        "Who {led} it?\n</parameter>\n</function>\n</tool_call>",
        "I look.",
    ),
    "invoke tags": (
        '<function_calls><invoke name="read"><parameter name="title">Paris</parameter><parameter name="question">'
        "Who {led} it?</parameter></invoke></function_calls>",
        "",
    ),
    "harmony": (
        "<|channel|>commentary to=functions.read <|constrain|>json<|message|>" + json.dumps(PARIS) + "<|call|>",
        "",
    ),
    "harmony, recipient before the channel": (
        "<|start|>assistant to=functions.read<|channel|>commentary json<|message|>" + json.dumps(PARIS) + "<|call|>",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_read_in_each_notation(form: str) -> None:
    text, rest = FORMS[form]
    assert parse_text_reply(text, TOOLS) == TextReply(rest, ONE)


@pytest.mark.parametrize(
    "form", ["<tool_call>{}</tool_call>\n<tool_call>{}</tool_call>", "{}\n{}", "{}; {}", "[{}, {}]"]
)
def test_parallel_calls_are_read(form: str) -> None:
    other = json.dumps({"name": "wikisearch", "arguments": {"query": "x"}})
    text = form.replace("{}", CALL, 1).replace("{}", other, 1)
    assert parse_text_reply(text, TOOLS).calls == (*ONE, TextToolCall("wikisearch", {"query": "x"}))


def test_harmony_has_thoughts_calls_and_a_final_text() -> None:
    text = (
        "<|channel|>analysis<|message|>I need the page.<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.read <|constrain|>json<|message|>{json.dumps(PARIS)}<|call|>"
    )
    assert parse_text_reply(text, TOOLS) == TextReply("", ONE, "I need the page.")
    text = "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>Paris.<|return|>"
    assert parse_text_reply(text, ()) == TextReply("Paris.", (), "Easy.")


@pytest.mark.parametrize(
    "text",
    [
        "Paris is a city.",
        "Final Answer: Paris",
        f"A call such as {CALL} is made like this, but I know the answer: Paris.",
        '{"answer": "Paris"}',
        '{"name": "Paris", "arguments": {}}',
        '{"name": "read"}',
        "Thought: I look.\nAction: read\nAction Input: " + json.dumps(PARIS),
        "[1, 2, {",
        "{" * 500,
        '<tool_call>{"name": "read", "arguments": {"title": "Par',
    ],
)
def test_a_text_without_a_complete_call_is_unchanged(text: str) -> None:
    assert parse_text_reply(text, TOOLS) == TextReply(text)


def test_without_offered_tools_no_text_is_a_call() -> None:
    assert parse_text_reply(CALL, ()) == TextReply(CALL)


def test_a_marked_call_of_an_unknown_tool_and_bad_arguments_are_kept_for_the_caller_to_reject() -> None:
    text = '<tool_call>{"name": "fly", "arguments": "to Paris"}</tool_call>'
    assert parse_text_reply(text, TOOLS).calls == (TextToolCall("fly", "to Paris"),)


@pytest.mark.parametrize("name", ["read", "functions.read", "default_api.read", "functions.read:3", "read:0", " read"])
def test_prefixes_of_an_offered_tool_are_dropped(name: str) -> None:
    assert match_tool_name(name, TOOLS) == "read"


def test_names_that_are_not_offered_are_unchanged() -> None:
    assert [match_tool_name(name, TOOLS) for name in ("functions.fly", "fly", "")] == ["functions.fly", "fly", ""]
    assert match_tool_name("weather.today", ("weather.today", "today")) == "weather.today"


@given(st.text(st.sampled_from('<|channel>message{}[]"name:,arguments read functions.\n='), max_size=200))
def test_every_text_is_read_and_has_calls_of_the_offered_tools_only(text: str) -> None:
    for reply in (parse_text_reply(text, TOOLS), parse_text_reply(f"<|channel|>{text}", TOOLS)):
        assert {match_tool_name(call.name, TOOLS) for call in reply.calls} <= set(TOOLS)
