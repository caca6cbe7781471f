"""A streamed reply can be stored, whatever the model writes."""

import math

from llm.streaming import make_storable, stream_reply
from llm.types import Message
from tests.servers.model import ModelServer, Says


def test_the_text_is_streamed_and_the_reply_can_be_stored() -> None:
    deltas: list[str] = []
    reply = Says("Zero \x00 byte", calls=[("read\x00", {"title": "half \ud800", "list": [1, {"a\x00": "b"}]})])
    with ModelServer([reply, reply]) as server:
        streamed = stream_reply(server.chat(), [Message("user", "Hi")], on_text=deltas.append)
        whole = stream_reply(server.chat(), [Message("user", "Hi")])
    assert "".join(deltas).startswith("Zero ")
    for result in (streamed, whole):
        assert "\x00" not in result.text
        (call,) = result.calls
        assert "\x00" not in call.name
        assert "\x00" not in str(call.arguments)
        str(call.arguments).encode()


def test_numbers_that_are_not_json_become_text() -> None:
    assert make_storable([math.nan, -math.inf, 1.5, True, None]) == ["nan", "-inf", 1.5, True, None]
