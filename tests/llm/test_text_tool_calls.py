"""Calls in the notations of models whose server does not parse them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.llm.text_tool_calls import TextCallFilter, TextReply, TextToolCall, match_tool_name, parse_text_reply

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
    "GLM": (
        "I look.\n<tool_call>read\n<arg_key>title</arg_key>\n<arg_value>Paris</arg_value>\n"
        "<arg_key>question</arg_key>\n<arg_value>Who {led} it?</arg_value>\n</tool_call>",
        "I look.",
    ),
    "Granite": ("<|tool_call|>" + json.dumps([{"name": "read", "arguments": PARIS}]), ""),
    "Kimi": (
        "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
        + json.dumps(PARIS) + "<|tool_call_end|><|tool_calls_section_end|>",
        "I look.",
    ),
    "Python": ('I look.\n[read(title="Paris", question="Who {led} it?")]', "I look."),
    "Llama 4": ("<|python_start|>[read(title='Paris', question='Who {led} it?')]<|python_end|>", ""),
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
    "form", ["<tool_call>{}</tool_call>\n<tool_call>{}</tool_call>", "{}\n{}", "{}; {}", "[{}, {}]", "{};\n\n{}\n"]
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
        '[fly(to="Paris")]',
        '[read("Paris")]',
        '[read(title="Paris")] is how I would call it.',
        '[read(title=open("x"))]',
        "{" * 500,
        '<tool_call>{"name": "read", "arguments": {"title": "Par',
    ],
)
def test_a_text_without_a_complete_call_is_unchanged(text: str) -> None:
    assert parse_text_reply(text, TOOLS) == TextReply(text)


@pytest.mark.parametrize(
    "literal",
    [
        *("{[1]: 2}", "{1, 2}", "b'x'", "1j", "...", "1e999", "[-1e999]"),
        *(f"0x{'f' * 5_000}", "9" * 5_000, f"{'-' * 9_000}1", f"{'[' * 900}{']' * 900}"),
    ],
    ids=lambda literal: literal[:9],
)
def test_a_literal_of_python_that_json_does_not_have_is_no_argument(literal: str) -> None:
    text = f"[read(title={literal})]"
    assert parse_text_reply(text, TOOLS) == TextReply(text)
    assert "".join(stream(text, TOOLS, [7] * len(text))) in ("", text)


def test_a_number_of_any_length_ends_no_stream() -> None:
    text = f'{{"name": "read", "arguments": {{"title": {"9" * 5_000}}}}}'
    assert "".join(stream(text, TOOLS, [1_000] * 6)) == text


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


def stream(text: str, tools: tuple[str, ...], sizes: list[int], stopped_text: str | None = None) -> list[str]:
    """What is shown of a reply that comes in pieces of these sizes."""
    shown: list[str] = []
    call_filter = TextCallFilter(shown.append, tools)
    rest = text
    for size in [*sizes, len(text) or 1]:
        call_filter.feed(rest[:size])
        rest = rest[size:]
    call_filter.finish(parse_text_reply(text, tools).text if stopped_text is None else stopped_text)
    return shown


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("form", FORMS)
def test_no_part_of_a_call_is_shown_while_it_streams(form: str, size: int) -> None:
    text, rest = FORMS[form]
    assert "".join(stream(text, TOOLS, [size] * len(text))).strip() == rest


@pytest.mark.parametrize("size", [1, 4])
def test_harmony_shows_its_final_text_only(size: int) -> None:
    text = "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>Paris.<|return|>"
    assert "".join(stream(text, (), [size] * len(text))) == "Paris."


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize(
    "text",
    [
        "I shall read the page, and look up 1 < 2 [step 1].",
        "The word is read",
        f"A call such as {CALL} is made like this; I know the answer: Paris.",
        'In JSON: {"answer": "Paris"}. A set {a, b}, a list [1, 2], `code`.',
        "```python\nprint(1)\n```\nThat was it.",
    ],
)
def test_other_text_is_shown_whole_and_soon(text: str, size: int) -> None:
    shown = stream(text, TOOLS, [size] * len(text))
    assert "".join(shown) == text
    assert len(shown) > 3


@pytest.mark.parametrize(
    "text", ['I look. <tool_call>{"name": "read", "arg', f"I look. {CALL[:-4]}", "I look. [read(ti"]
)
def test_a_call_that_was_cut_off_is_not_shown(text: str) -> None:
    assert "".join(stream(text, TOOLS, [3] * len(text))) == "I look. "


PIECES = [CALL, "<tool_call>", "</tool_call>", "read", " ", "I look.", "[", "]", "{", '"', "```json\n", "<|channel|>"]
PIECES += ["final<|message|>", '(title="x")', "functions.", ", ", "\n"]
MARKUP = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(MARKUP, st.lists(st.integers(1, 9), max_size=60))
def test_what_is_shown_is_the_text_of_the_reply_and_none_of_its_calls(text: str, sizes: list[int]) -> None:
    reply = parse_text_reply(text, TOOLS)
    shown = "".join(stream(text, TOOLS, sizes))
    assert reply.text.strip().startswith(shown.strip()) or "<|channel|>" in text
    if reply.calls:
        assert "arguments" not in shown.removeprefix(reply.text[: len(shown)])
