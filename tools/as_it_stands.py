"""OpenAI's client asked without its walk through every field of every message.

The client looks for names to be rewritten and files to be read in; LangChain's messages have neither. With a prompt of
fifty messages that walk takes four times as long as all else together, while a body that is given beside the parameters
is sent as it stands.
"""

from typing import Any

_SENT_AS_IT_STANDS = ("messages", "tools")


class AsItStands:
    """The client's chat completions, as LangChain calls them."""

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    @property
    def with_raw_response(self) -> "AsItStands":
        """The same with the headers of the response beside it."""
        return AsItStands(self._completions.with_raw_response)

    def create(self, **asked: Any) -> Any:
        """Ask for a completion."""
        body = {name: asked.pop(name) for name in _SENT_AS_IT_STANDS if name in asked}
        beside = {**(asked.pop("extra_body", None) or {}), **body}
        return self._completions.create(messages=[], extra_body=beside, **asked)
