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
    """The language model gave no reply; `usage` is what the call took all the same."""

    kind: ClassVar[ErrorKind] = ErrorKind.MODEL
    retryable = False
    """Whether the same request may succeed a little later."""
    usage_unknown = False
    """Whether the model may have worked on the request, so that tokens were spent of which nobody tells."""

    def __init__(self, sentence: str, wait: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = wait
        """Seconds after which the server wants to be asked again."""
        self.usage: Usage | None = None


class ChatUnavailable(ChatError):
    """No model is set up, or a package that it needs is missing."""


class ChatUnreachable(ChatError):
    """Nobody answers at the model's address."""

    retryable = True


class ChatAuthenticationError(ChatError):
    """The server refuses the key, or there is none."""


class ChatModelNotFound(ChatError):
    """The server has no model of that name."""


class ChatBadRequest(ChatError):
    """The server does not take this request."""


class ChatRateLimited(ChatError):
    """The server takes no more requests just now."""

    retryable = True


class ChatServerError(ChatError):
    """The server failed, or what it sent is no reply."""

    retryable = True
    usage_unknown = True


class ChatTimeout(ChatError):
    """The reply was not there in time."""

    usage_unknown = True


class ChatInterrupted(ChatError):
    """The reply broke off."""

    retryable = True
    usage_unknown = True


class ChatEmptyReply(ChatError):
    """The reply has neither words nor calls."""

    usage_unknown = True
