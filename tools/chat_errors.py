"""What can go wrong with a language model, each told in one sentence without key or headers.

ToolError
  ChatError
    ChatUnavailable      no model is set up, or its provider's package is missing
    ChatUnreachable      the server does not answer the door
    ChatKeyRefused       it refuses the key
    ChatUnknownModel     it has no such model
    ChatRejected         it does not take the request: too long, an option that it does not know
    ChatBusy             it takes no more requests just now
    ChatBroken           it failed, or what it sent is no reply
    ChatTimeout          it did not finish in time
    ChatCut              its reply broke off
    ChatEmpty            its reply says nothing
"""

from tools.tool_error import ToolError
from tools.usage import Usage


class ChatError(ToolError):
    """The language model gave no reply; `usage` is what the call took all the same."""

    again = False
    """Whether the same request may succeed a little later."""
    answered = False
    """Whether the model may have worked on the request, so that tokens were spent of which nobody tells."""

    def __init__(self, sentence: str, wait: float | None = None) -> None:
        super().__init__(sentence)
        self.wait = wait
        """Seconds after which the server wants to be asked again."""
        self.usage: Usage | None = None


class ChatUnavailable(ChatError):
    """No model is set up, or a package that it needs is missing."""


class ChatUnreachable(ChatError):
    """Nobody answers at the model's address."""

    again = True


class ChatKeyRefused(ChatError):
    """The server refuses the key, or there is none."""


class ChatUnknownModel(ChatError):
    """The server has no model of that name."""


class ChatRejected(ChatError):
    """The server does not take this request."""


class ChatBusy(ChatError):
    """The server takes no more requests just now."""

    again = True


class ChatBroken(ChatError):
    """The server failed, or what it sent is no reply."""

    again = True
    answered = True


class ChatTimeout(ChatError):
    """The reply was not there in time."""

    answered = True


class ChatCut(ChatError):
    """The reply broke off."""

    again = True
    answered = True


class ChatEmpty(ChatError):
    """The reply has neither words nor calls."""

    answered = True
