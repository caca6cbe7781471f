"""The most that requests can have used where servers do not report it, and what they cost."""

import json
from dataclasses import replace

from showhow.llm.types import ChatReply, ChatRequest
from showhow.llm.usage import TokenPrice, Usage

DEFAULT_REPLY_BOUND = 32_768
"""The most tokens of a reply for which no limit is set."""
_BYTES_PER_TOKEN = 2
"""Text has at least so many bytes for each token: about four in English, two to three in other scripts and in JSON."""
_TOKENS_PER_MESSAGE = 8


def bound_prompt_tokens(request: ChatRequest) -> int:
    """The most tokens that the messages and tools of a request can have."""
    texts = [message.text for message in request.messages]
    texts += [f"{call.name} {call.arguments}" for message in request.messages for call in message.calls]
    texts += [f"{tool.name} {tool.description} {json.dumps(dict(tool.schema))}" for tool in request.tools]
    return _bound_text(texts) + _TOKENS_PER_MESSAGE * (len(request.messages) + len(request.tools) + 1)


def bound_reply_tokens(reply: ChatReply) -> int:
    """The most tokens that a complete reply can have."""
    return _bound_text([reply.text, reply.thoughts, *(f"{call.name} {call.arguments}" for call in reply.calls)])


def price_usage(
    usage: Usage,
    price: TokenPrice | None,
    request: ChatRequest,
    reply: ChatReply | None,
    reply_limit: int | None = None,
) -> Usage:
    """The usage of a request with its cost; with upper bounds if the tokens of one of its attempts were not reported.

    `usage.unreported_calls` counts the failed attempts that may have spent tokens; `reply` is None if all have failed.
    """
    usage = replace(usage, cost=price.cost_of(usage) if price else None)
    is_unreported = reply is not None and usage.max_tokens is None
    if not usage.unreported_calls and not is_unreported:
        return usage
    prompt = bound_prompt_tokens(request)
    input_tokens = usage.unreported_calls * prompt
    output_tokens = usage.unreported_calls * (reply_limit or DEFAULT_REPLY_BOUND)
    if is_unreported and reply is not None:
        input_tokens, output_tokens = input_tokens + prompt, output_tokens + bound_reply_tokens(reply)
    return replace(
        usage,
        unreported_calls=usage.unreported_calls + is_unreported,
        token_bound=(usage.max_tokens or 0) + input_tokens + output_tokens,
        cost_bound=(usage.cost or 0.0) + price.max_cost_of(input_tokens, output_tokens) if price else None,
    )


def _bound_text(texts: list[str]) -> int:
    return sum(len(text.encode(errors="replace")) // _BYTES_PER_TOKEN + 1 for text in texts)
