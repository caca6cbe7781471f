"""Models that a program lends: a chat model of LangChain, or a function from messages to a reply."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.utils import convert_to_messages, convert_to_openai_messages

from showhow.guard.redaction import redactor_of
from showhow.llm.errors import ChatBadRequest, ChatError
from showhow.llm.langchain_model import (
    LangChainModel,
    read_secrets,
    to_chat_reply,
    to_langchain_message,
    tool_definition,
)
from showhow.llm.openai_compatible import BackgroundCall
from showhow.llm.provider_errors import ModelEndpoint
from showhow.llm.types import ChatModel, ChatReply, ChatRequest, ModelProfile


def lend_model(model: Any) -> tuple[ModelProfile, ChatModel]:
    """The profile by which a run records the model, and the model; ChatBadRequest if it is neither of both."""
    if isinstance(model, BaseChatModel):
        values = {name: getattr(model, name, None) for name in ("model", "model_name", "model_id", "temperature")}
        name = next((value for value in values.values() if isinstance(value, str)), None)
        full_name = ":".join(filter(None, (type(model).__name__, name)))
        temperature = values["temperature"] if isinstance(values["temperature"], int | float) else None
        endpoint = ModelEndpoint(full_name, full_name, redactor_of(read_secrets(model)), "its own variable")
        return ModelProfile(full_name, temperature=temperature, name=full_name), _LentLangChainModel(model, endpoint)
    if callable(model) and not isinstance(model, type):
        name = getattr(model, "__qualname__", type(model).__qualname__)
        return ModelProfile(name, name=name), FunctionModel(model, name)
    raise ChatBadRequest(
        f"{type(model).__name__} is no model: give a chat model of LangChain, a function from messages to a reply, or "
        "the name of a model profile"
    )


class _LentLangChainModel(LangChainModel):
    """A chat model of LangChain, which may know no tools."""

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        if request.tools and type(self._model).bind_tools is BaseChatModel.bind_tools:
            raise ChatBadRequest(f"{self._endpoint.model} takes no tools")
        # Streams of models of others need not say how they ended, so that a broken one could not be told.
        reply = super().reply(replace(request, on_text=None), seconds)
        if request.on_text is not None:
            request.on_text(reply.text)
        return reply


class FunctionModel:
    """A function that gets messages in the form of OpenAI's API, and returns a text or such a message.

    One with a parameter `tools` gets the definitions of the tools; another one is told of them in the messages.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        self._takes_tools = "tools" in inspect.signature(function).parameters

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Call the function once; ChatError with what it raised, or if it returned no reply in time."""
        if request.tools and not self._takes_tools:
            raise ChatBadRequest(f"{self._name} takes no tools")
        call: BackgroundCall[ChatReply] = BackgroundCall(lambda _call: self._call(request))
        reply = call.result(seconds, lambda _text: None, f"{self._name} did not return in time")
        if request.on_text is not None:
            request.on_text(reply.text)
        return reply

    def _call(self, request: ChatRequest) -> ChatReply:
        messages = convert_to_openai_messages([to_langchain_message(message) for message in request.messages])
        tools = {"tools": [tool_definition(tool) for tool in request.tools]} if self._takes_tools else {}
        try:
            returned = self._function(messages, **tools)
        except ChatError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a function of others raises
            failure = ChatBadRequest(f"{self._name} failed with {type(error).__name__}: {error}")
        else:
            return to_chat_reply(self._read(returned), request, ModelEndpoint(self._name, self._name))
        failure.is_refusal = False
        raise failure

    def _read(self, returned: Any) -> AIMessage:
        if isinstance(returned, AIMessage):
            return returned
        if isinstance(returned, str):
            return AIMessage(returned)
        if isinstance(returned, Mapping):
            (message,) = convert_to_messages([{"role": "assistant", "content": "", **returned}])
            if isinstance(message, AIMessage):
                return message
        raise ChatBadRequest(f"{self._name} returned {type(returned).__name__}, which is neither a text nor a message")
