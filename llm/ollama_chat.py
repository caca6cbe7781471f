"""Ollama's chat model; imported only if such a model is configured, since langchain-ollama is an extra."""

from typing import Any

from langchain_core.messages import BaseMessage
from langchain_ollama import ChatOllama


class ThinkingChatOllama(ChatOllama):
    """ChatOllama that keeps the thoughts of models that think by default, and asks no other model to think."""

    reasoning: bool | str | None = True

    def _chat_params(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        effort = self.reasoning if isinstance(self.reasoning, str) else None
        return {**super()._chat_params(messages, stop, **kwargs), "think": effort}
