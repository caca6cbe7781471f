"""Request bodies are the same with and without the passthrough."""

from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from showhow.llm.langchain_model import to_langchain_message
from showhow.llm.openai_compatible import PassthroughCompletions
from showhow.llm.types import Message, ModelToolCall
from showhow.tools.registry import BUILT_IN_TOOLS
from tests.servers.model import ModelServer, Says

MESSAGES = [
    Message("system", "You help."),
    Message("user", "Who?"),
    Message("assistant", "I look.", (ModelToolCall("call_1", "wikisearch", {"query": "Ada"}),)),
    Message("tool", "1. Ada", (), "call_1"),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_request_body_is_the_same_with_and_without_passthrough(*, stream: bool) -> None:
    def bodies(*, plain: bool) -> list[dict[str, Any]]:
        with ModelServer([Says("Ada."), Says("Ada.")]) as server:
            model = ChatOpenAI(model="scripted", base_url=server.url, api_key=SecretStr("none"), max_retries=0)
            if plain:
                model.client = PassthroughCompletions(model.client)
            function = {"name": "read", "description": "Read.", "parameters": BUILT_IN_TOOLS["read"].schema}
            for runnable in (model, model.bind_tools([{"type": "function", "function": function}])):
                messages = [to_langchain_message(one) for one in MESSAGES]
                messages_received = (
                    list(runnable.stream(messages, stop=["x"])) if stream else [runnable.invoke(messages, stop=["x"])]
                )
                assert "".join(str(message.text) for message in messages_received) == "Ada."
            return [request.body for request in server.requests]

    assert bodies(plain=True) == bodies(plain=False)
