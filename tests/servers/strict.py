"""What a server that validates requests strictly, as llama-cpp-python's does, says of a request."""

from typing import Any

from tests.servers.model import Fails, Reply, Request, Says

FORMATS = ("text", "json_object")


def find_refusal(body: dict[str, Any], *, parallel_calls: bool = True, empty_text: bool = True) -> Fails | None:
    """The server's error; None if it takes the request."""
    for place, message in enumerate(body["messages"]):
        content, calls = message.get("content"), message.get("tool_calls", ())
        where = f"body.messages.{place}"
        if ("content" in message or not calls) and not isinstance(content, str):
            return Fails(500, f"1 validation error: {where}.content: Input should be a valid string")
        if not empty_text and content == "":
            return Fails(400, f"1 validation error: {where}.content: String should have at least 1 character")
        if not parallel_calls and len(calls) > 1:
            return Fails(500, "This model only supports single calls at once!")
        if any(not isinstance(call["function"]["arguments"], str) for call in calls):
            return Fails(500, f"1 validation error: {where}.tool_calls: Input should be a valid string")
    kind = body.get("response_format", {}).get("type", "text")
    return None if kind in FORMATS else Fails(500, f"1 validation error: response_format.type: not one of {FORMATS}")


def make_script(text: str, **abilities: bool) -> Any:
    """A script that replies with the text to each request that a strict server takes."""

    def script(request: Request) -> Reply:
        return find_refusal(request.body, **abilities) or Says(text)

    return script
