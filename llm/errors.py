"""Errors of language models: one sentence each, without key or headers.

ChatError
  ChatUnavailable          no model is configured, or its provider's package is missing
  ChatUnreachable          the server cannot be connected to
  ChatAuthenticationError  the server refuses the API key
  ChatModelNotFound        the server has no such model
  ChatBadRequest           the server rejects the request: too long, or an unknown option
  ChatRateLimited          the server takes no more requests just now
  ChatServerError          the server failed, or its response is no reply
  ChatTimeout              no complete reply in time
  ChatInterrupted          the reply broke off
  ChatEmptyReply           the reply has neither text nor tool calls
"""

from typing import ClassVar

from llm.usage import Usage
from worlds.source import ErrorKind


class ChatError(Exception):
    """A request to a language model failed; `usage` is what it took all the same."""

    kind: ClassVar[ErrorKind] = ErrorKind.MODEL
    retryable = False
    """Whether the same request may succeed if it is retried."""
    usage_unknown = False
    """Whether the model may have spent tokens that were not reported."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """The server's Retry-After in seconds."""
        self.usage: Usage | None = None


class ChatUnavailable(ChatError):
    """No model is configured, or its provider's package is missing."""


class ChatUnreachable(ChatError):
    """The server cannot be connected to."""

    retryable = True


class ChatAuthenticationError(ChatError):
    """The server refuses the API key, or there is none."""


class ChatModelNotFound(ChatError):
    """The server has no model of that name."""


class ChatBadRequest(ChatError):
    """The server rejects the request: too long, or an unknown option."""


class ChatRateLimited(ChatError):
    """The server takes no more requests just now."""

    retryable = True


class ChatServerError(ChatError):
    """The server failed, or its response is no reply."""

    retryable = True
    usage_unknown = True


class ChatTimeout(ChatError):
    """There was no complete reply in time."""

    usage_unknown = True


class ChatInterrupted(ChatError):
    """The reply broke off."""

    retryable = True
    usage_unknown = True


class ChatEmptyReply(ChatError):
    """The reply has neither text nor tool calls."""

    usage_unknown = True
