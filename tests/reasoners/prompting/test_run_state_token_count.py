"""Estimated tokens of texts, messages and tools: three bytes a token, and four for each message and call."""

import pytest

from showhow.llm.types import Message, ModelToolCall
from showhow.reasoners.prompting.run_state import (
    count_message_tokens,
    count_tool_tokens,
    estimate_tokens,
    truncate_to_tokens,
)
from showhow.tools.registry import BUILT_IN_TOOLS


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("\N{EURO SIGN}", 1)])
def test_three_bytes_of_utf8_are_a_token(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_text_is_truncated_at_whole_characters() -> None:
    assert truncate_to_tokens("abcdefg", 2) == "abcdef"
    assert truncate_to_tokens("ab\N{EURO SIGN}", 1) == "ab"


def test_a_message_costs_four_tokens_more_than_its_text_and_so_does_each_call() -> None:
    call = ModelToolCall("1", "read", {"title": "Ada"})
    arguments = estimate_tokens('{"title": "Ada"}')
    assert count_message_tokens([Message("user", "abc")]) == 4 + 1
    assert count_message_tokens([Message("assistant", "abc", (call,))]) == 4 + 1 + 4 + 2 + arguments


def test_a_tool_costs_its_name_its_description_and_its_schema() -> None:
    read, search = BUILT_IN_TOOLS["read"], BUILT_IN_TOOLS["wikisearch"]
    assert count_tool_tokens([read]) > estimate_tokens(read.description) + 4
    assert count_tool_tokens([read, search]) == count_tool_tokens([read]) + count_tool_tokens([search])
