"""What LiteLLM's proxy (1.108) makes of a reply of the server behind it, as it was seen in front of a scripted one.

Its package cannot be installed beside ours: it needs mcp 2 and a later certifi than are pinned.
"""

from dataclasses import replace

from tests.servers.model import Breaks, Cut, Fails, Reply

_KINDS = {
    400: ("BadRequestError", "invalid_request_error"),
    429: ("RateLimitError", "throttling_error"),
    500: ("InternalServerError", "internal_server_error"),
}
_NO_FALLBACK = "\n\nLiteLLM: model group 'scripted' failed with the error above. No fallback was attempted."


def pass_on(reply: Reply, *, streamed: bool) -> Reply:
    """The reply, or an error in the proxy's words: the code is the status, and headers have a prefix."""
    if isinstance(reply, Cut) and streamed and reply.text is not None:
        words = "litellm.APIConnectionError: APIConnectionError: OpenAIException - Connection error."
        return Breaks(reply.text, {"message": words, "type": None, "param": None, "code": "500"})
    if isinstance(reply, Cut):
        reply = Fails(500, "Connection error.")
    if not isinstance(reply, Fails):
        return reply
    name, type_ = _KINDS[reply.status]
    name = f"ContextWindowExceededError: litellm.{name}" if reply.code == "context_length_exceeded" else name
    message = f"litellm.{name}: {name}: OpenAIException - {reply.message}{_NO_FALLBACK}"
    headers = {f"llm_provider-{header}": value for header, value in reply.headers.items()}
    return replace(reply, message=message, code=str(reply.status), headers=headers, type_=type_)
