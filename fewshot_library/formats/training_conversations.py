"""The conversations of a trace to train a model on: what its model was sent, and what it replied."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from showhow.db.models import SPAN_SKILL, Step
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.chat import (
    CHAT_FIELDS,
    MessageToolCall,
    TraceMessage,
    list_ambiguities,
    to_json_text,
    trace_to_messages,
)
from showhow.fewshot_library.formats.content_parts import read_arguments
from showhow.fewshot_library.formats.format import ModelExchange, TraceExport, lost_fields


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat to train a model on."""

    messages: list[TraceMessage]
    tools: list[dict[str, Any]] = field(default_factory=list)
    """The definitions of the tools that are declared with it."""
    shown: int = 0
    """The number of messages at its beginning that the trace's model did not write: instructions and examples."""
    is_sent: bool = False
    """Whether it was sent to a model; else it is the trace as thoughts and calls."""


def trace_to_conversations(record: TraceRecord, export: TraceExport) -> tuple[list[Conversation], list[str]]:
    """The conversations to train a model on, and what they lose: what it was sent, and what it replied.

    A method that calls skills has one for each reply. What it did between them is not the model's; its results are in
    the prompts. A trace that no model recorded, or that was edited since, is one conversation of thoughts and calls.
    """
    skills, decisions = list(_skill_conversations(record, export)), list(_sent_conversations(record, export))
    if skills or decisions:
        return [*skills, *decisions], list(lost_fields(record, {"step.input", *(CHAT_FIELDS if decisions else ())}))
    tools = export.tool_definitions(record)
    losses = [*lost_fields(record, CHAT_FIELDS), *list_ambiguities(record)]
    return [Conversation(trace_to_messages(record), tools)], losses


def calls_skills(record: TraceRecord) -> bool:
    """Whether its model replied to skills, and called no tools itself."""
    return any(_skill_reply(step) is not None for step in record.steps)


def _skill_conversations(record: TraceRecord, export: TraceExport) -> Iterator[Conversation]:
    for step in record.steps:
        reply = _skill_reply(step)
        if reply is not None:
            prompt = _skill_prompt(step, export)
            messages = [*prompt, TraceMessage("assistant", to_json_text(reply))]
            yield Conversation(messages, shown=len(prompt), is_sent=True)


def _skill_reply(step: Step) -> dict[str, Any] | None:
    """The reply that a step of a skill stores; None for other steps, and where there was no usable one."""
    if step.tool is not None or step.skill in (None, SPAN_SKILL):
        return None
    reply = (step.data or {}).get("reply")
    return reply if isinstance(reply, dict) else None


def _skill_prompt(step: Step, export: TraceExport) -> list[TraceMessage]:
    """The messages as they were sent, or where no model was asked, the request alone."""
    sent = export.find_prompt(step.id)
    if sent is None:
        return [TraceMessage("user", to_json_text(step.arguments))]
    return [TraceMessage(message["role"], message["content"]) for message in sent]


def _sent_conversations(record: TraceRecord, export: TraceExport) -> Iterator[Conversation]:
    """A conversation for each request that no later one begins with."""
    exchanges = export.find_exchanges(record)
    for place, exchange in enumerate(exchanges):
        prompt = list(exchange.prompt)
        if not any(list(later.prompt[: len(prompt)]) == prompt for later in exchanges[place + 1 :]):
            yield _sent_conversation(exchange, record.question.full_text)


def _sent_conversation(exchange: ModelExchange, question: str) -> Conversation:
    prompt = list(map(_sent_message, exchange.prompt))
    names = {call.id: call.name for message in prompt for call in message.calls}
    for message in prompt:
        message.name = names.get(message.call_id or "")
    asked = [place for place, message in enumerate(prompt) if (message.role, message.content) == ("user", question)]
    reply = TraceMessage("assistant", exchange.reply["text"], calls=list(map(_sent_call, exchange.reply["calls"])))
    return Conversation([*prompt, reply], list(exchange.tools), asked[-1] if asked else len(prompt), is_sent=True)


def _sent_message(message: Mapping[str, Any]) -> TraceMessage:
    calls = list(map(_sent_call, message.get("tool_calls", ())))
    return TraceMessage(message["role"], message["content"], calls=calls, call_id=message.get("tool_call_id"))


def _sent_call(call: Mapping[str, Any]) -> MessageToolCall:
    arguments, problem = read_arguments(call["arguments"])
    return MessageToolCall(call["id"], call["name"], arguments, problem)
