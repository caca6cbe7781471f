"""Errors of language models: one sentence each, without key or headers.

ChatError
  ChatUnavailable          no model is configured, or its provider's package is missing
  ChatUnreachable          no connection to the server
  ChatAuthenticationError  the server refuses the API key
  ChatQuotaExceeded        the account has no credit left
  ChatModelNotFound        the server has no such model
  ChatBadRequest           the server rejects the request, such as an unknown option
  ChatContextTooLong       the request is longer than the model or the account allows
  ChatRateLimited          the server's rate limit is reached
  ChatServerError          the server failed
    ChatInvalidReply       the server's response is no reply
  ChatTimeout              no complete reply in time
  ChatInterrupted          the reply broke off
  ChatReplyFiltered        the model refused to reply, or a filter withheld the reply
  ChatEmptyReply           the reply has neither text nor tool calls
"""

from typing import ClassVar

from showhow.llm.usage import Usage
from showhow.worlds.source import ErrorKind

MAX_ATTEMPTS = 4
"""The attempts of a request whose error may be permanent."""
MAX_EQUAL_FAILURES = 3
"""The attempts of a request to which the server fails with the same sentence."""


class ChatError(Exception):
    """A request to a language model failed; `usage` is that of the failed request."""

    kind: ClassVar[ErrorKind] = ErrorKind.MODEL
    retryable = False
    """Whether the same request may succeed if it is retried."""
    max_attempts: int | None = None
    """The attempts of a retryable request; None for as many as its deadline allows."""
    usage_unknown = False
    """Whether the model may have spent tokens that were not reported."""
    is_refusal = False
    """Whether the server may take the request in another form."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """The seconds that the server asks to wait."""
        self.unreported_attempts = 0
        """Earlier attempts of the request that may have spent tokens."""
        self.usage: Usage | None = None

    @property
    def counted_as(self) -> object:
        """What `max_attempts` counts: attempts with an equal value."""
        return type(self)


class ChatUnavailable(ChatError):
    """No model is configured, or its provider's package is missing."""


class ChatUnreachable(ChatError):
    """There is no connection to the server."""

    retryable = True


class ChatAuthenticationError(ChatError):
    """The server refuses the API key, or there is none."""


class ChatQuotaExceeded(ChatError):
    """The account has no credit left."""


class ChatModelNotFound(ChatError):
    """The server has no model with this name."""


class ChatBadRequest(ChatError):
    """The server rejects the request, such as an unknown option."""

    is_refusal = True


class ChatContextTooLong(ChatError):
    """The request is longer than the model or the account allows."""


class ChatRateLimited(ChatError):
    """The server's rate limit is reached."""

    retryable = True


class ChatServerError(ChatError):
    """The server failed.

    One that says the same again and again is not about to recover; by a status of 500 it may mean the request.
    """

    retryable = True
    status: int | None = None

    @property
    def counted_as(self) -> object:
        """The sentence, without words that have digits, such as the number of the request."""
        return type(self), tuple(word for word in str(self).split() if not any(map(str.isdigit, word)))


class ChatInvalidReply(ChatServerError):
    """The server's response is no reply."""

    max_attempts = MAX_ATTEMPTS
    usage_unknown = True


class ChatTimeout(ChatError):
    """There was no complete reply in time."""

    retryable = True
    max_attempts = 2
    usage_unknown = True


class ChatInterrupted(ChatError):
    """The reply broke off."""

    retryable = True
    max_attempts = MAX_ATTEMPTS
    usage_unknown = True


class ChatReplyFiltered(ChatError):
    """The model refused to reply, or a filter withheld the reply."""

    usage_unknown = True


class ChatEmptyReply(ChatError):
    """The reply has neither text nor tool calls."""

    usage_unknown = True
