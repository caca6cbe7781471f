"""The tools as LangChain's."""

from langchain_core.messages import ToolMessage

from tools.langchain_tools import to_langchain_tools
from tools.registry import BUILT_IN_TOOLS
from tools.tool import ToolContext


def test_a_tool_call_gives_a_message_with_the_text_and_the_data(without_encoder: ToolContext) -> None:
    label = {one.name: one for one in to_langchain_tools(BUILT_IN_TOOLS.values(), without_encoder)}["getLabel"]
    message = label.invoke({"type": "tool_call", "id": "1", "name": "getLabel", "args": {"ids": "Q1"}})
    assert isinstance(message, ToolMessage)
    assert message.content == "Q1: Ada Reed (ferry pilot)"
    assert message.artifact["labels"][0]["id"] == "Q1"


def test_an_error_of_a_tool_and_a_wrong_argument_are_texts_that_the_model_can_read(
    without_encoder: ToolContext,
) -> None:
    label = next(one for one in to_langchain_tools(BUILT_IN_TOOLS.values(), without_encoder) if one.name == "getLabel")
    for arguments in ({"ids": ["Q999"]}, {"id": "Q1"}):
        message = label.invoke({"type": "tool_call", "id": "1", "name": "getLabel", "args": arguments})
        assert message.artifact == {"error": message.content}


def test_the_schema_that_a_model_sees_is_the_functions_own(without_encoder: ToolContext) -> None:
    query = next(one for one in to_langchain_tools([BUILT_IN_TOOLS["generateQuery"]], without_encoder))
    assert query.description == BUILT_IN_TOOLS["generateQuery"].description
    assert query.args["entity_ids"]["type"] == "array"
    assert query.args["question"]["description"] == "a question that the graph can answer"
