"""What llama-cpp-python's server says of a request, as version 0.3.36 did with a real model.

It answers 500 where others answer 400, takes no schema, and reports no tokens of a stream. A prompt beyond its context
is refused in so many words in one piece; a stream of it begins well and breaks off before its first event.
"""

from typing import Any

from tests.servers.model import Cut, Fails, Reply, Request, Says

FORMATS = ("text", "json_object")


def find_refusal(
    body: dict[str, Any], *, parallel_calls: bool = True, empty_text: bool = True, context: int | None = None
) -> Fails | Cut | None:
    """The server's error; None if it takes the request. Each word of a prompt counts as a token of its context."""
    for place, message in enumerate(body["messages"]):
        content, calls = message.get("content"), message.get("tool_calls", ())
        where = f"body.messages.{place}"
        if "content" not in message and calls and empty_text:
            return Fails(500, "'content'")
        if ("content" in message or not calls) and not isinstance(content, str):
            return Fails(500, f"1 validation error: {where}.content: Input should be a valid string")
        if not empty_text and content == "":
            return Fails(400, f"1 validation error: {where}.content: String should have at least 1 character")
        if not parallel_calls and len(calls) > 1:
            return Fails(500, "This model only supports single calls at once!")
        if any(not isinstance(call["function"]["arguments"], str) for call in calls):
            return Fails(500, f"1 validation error: {where}.tool_calls: Input should be a valid string")
    return _refuse_format(body) or _refuse_length(body, context)


def _refuse_format(body: dict[str, Any]) -> Fails | None:
    kind = body.get("response_format", {}).get("type", "text")
    words = f"\"Input should be 'text' or 'json_object'\", 'input': '{kind}'"
    error = (
        f"1 validation error:\n  {{'loc': ('body', 'response_format', 'type'), 'msg': {words}}}\n\n  File \"app.py\""
    )
    return None if kind in FORMATS else Fails(500, error)


def _refuse_length(body: dict[str, Any], context: int | None) -> Fails | Cut | None:
    used = sum(len(message.get("content", "").split()) for message in body["messages"])
    if context is None or used < context:
        return None
    error = (
        f"This model's maximum context length is {context} tokens. However, you requested {used} tokens ({used} in the "
        "messages, None in the completion). Please reduce the length of the messages or completion."
    )
    return Cut(None) if body.get("stream") else Fails(400, error, code="context_length_exceeded")


def make_script(text: str, **abilities: Any) -> Any:
    """A script that replies with the text to each request that a strict server takes."""

    def script(request: Request) -> Reply:
        usage = None if request.body.get("stream") else (100, 10)
        return find_refusal(request.body, **abilities) or Says(text, usage=usage)

    return script
