"""Parsing of chat replies: where the thought of a call comes from."""

import pytest

from showhow.llm.types import ChatReply, ModelToolCall
from showhow.llm.usage import Usage
from showhow.reasoners.prompting.chat_format import ChatFormat
from showhow.tools.registry import BUILT_IN_TOOLS
from tests.reasoners.example_traces import QUESTION

OFFERED = list(BUILT_IN_TOOLS.values())


@pytest.mark.parametrize(
    ("text", "argument", "reasoning", "thought"),
    [
        ("Text.", "Argument.", "Reasoning.", "Argument."),
        ("Text.", "", "Reasoning.", "Text."),
        ("<think>Tagged.</think>", "", "Reasoning.", "Tagged."),
        ("", "", "Reasoning.", "Reasoning."),
        ("", "", "", ""),
    ],
)
@pytest.mark.parametrize("name", ["wikisearch", "finish"])
def test_the_thought_is_the_argument_then_the_text_then_the_reasoning(
    name: str, text: str, argument: str, reasoning: str, thought: str
) -> None:
    arguments = {"query": "Ada"} if name == "wikisearch" else {"answers": ["Ada"], "found": True}
    call = ModelToolCall("1", name, {"thought": argument, **arguments})
    parsed = ChatFormat().parse_reply(ChatReply(text, (call,), Usage(), "tool_calls", reasoning), QUESTION, OFFERED)
    assert parsed.rejection is None
    if parsed.finish is not None:
        assert (name, parsed.finish.thought, parsed.finish.answers) == ("finish", thought, ("Ada",))
    else:
        assert parsed.calls[0].arguments == {"query": "Ada"}
        assert (parsed.calls[0].thought or parsed.thought) == thought


def test_several_calls_keep_their_own_thoughts() -> None:
    calls = tuple(ModelToolCall(str(n), "wikisearch", {"thought": f"{n}.", "query": f"Ada {n}"}) for n in range(6))
    parsed = ChatFormat().parse_reply(ChatReply("", calls, Usage(), "tool_calls"), QUESTION, OFFERED)
    assert [call.thought for call in parsed.calls] == ["0.", "1.", "2.", "3."]
    assert "2 more were left out" in str(parsed.notice)
