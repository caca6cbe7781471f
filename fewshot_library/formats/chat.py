"""A trace as the messages of a chat: the question, by turns a thought with its call and what came back, the answer."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from db.models import Step
from db.trace_record import TraceRecord

# What a chat keeps of a trace, for the formats that are chats.
CHAT_FIELDS = {
    *("trace.final_answer", "trace.final_thought"),
    *("step.thought", "step.observation", "step.error"),
}
_ANSWER_PREFIX = "Final Answer: "
ERROR_LOSS = "that a step's error is one"


@dataclass(slots=True)
class MessageToolCall:
    """A tool's name with its arguments; the id ties the answer to it."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class TraceMessage:
    """What one side says; `role` is system, user, assistant, tool, or environment for what came back of no call."""

    role: str
    content: str = ""
    reasoning: str = ""
    """What an assistant thought before it said this."""
    calls: list[MessageToolCall] = field(default_factory=list)
    call_id: str | None = None
    """The call that a tool's message answers."""
    name: str | None = None
    """The tool that speaks."""
    failed: bool = False
    data: dict[str, Any] | None = None
    at: datetime | None = None
    rating: int | None = None
    rest: dict[str, Any] = field(default_factory=dict)
    """What a message from elsewhere had beside."""

    @property
    def text_with_reasoning(self) -> str:
        """What an assistant says where a format has no place of its own for its reasoning."""
        return f"{self.reasoning}\n\n{_ANSWER_PREFIX}{self.content}" if self.reasoning else self.content


def split_final_answer(text: str) -> tuple[str, str]:
    """The reasoning and the answer of a last message that was written as `said`."""
    reasoning, separator, answer = text.partition(f"\n\n{_ANSWER_PREFIX}")
    return (reasoning, answer) if separator else ("", text)


def trace_to_messages(record: TraceRecord) -> list[TraceMessage]:
    """The messages that tell the trace."""
    messages = [TraceMessage("user", record.question.text)]
    for step in record.steps:
        messages += step_to_messages(step)
    trace = record.trace
    if trace.final_answer is not None or trace.final_thought:
        messages.append(TraceMessage("assistant", trace.final_answer or "", trace.final_thought or ""))
    return messages


def step_to_messages(step: Step) -> list[TraceMessage]:
    """The step's thought with its call, and what came back."""
    message = TraceMessage("assistant", step.thought)
    if step.tool is None:
        # Without a call, only a user can have said what came back.
        back = (
            [] if step.observation is None and step.error is None else [TraceMessage("user", step_outcome_text(step))]
        )
        return [message, *back]
    call = MessageToolCall(f"call_{step.position}", step.tool, step.arguments)
    message.calls.append(call)
    failed = step.error is not None
    return [
        message,
        TraceMessage("tool", step_outcome_text(step), call_id=call.id, name=step.tool, failed=failed, data=step.data),
    ]


def step_outcome_text(step: Step) -> str:
    """What the step's author saw: the observation, or the error in its place."""
    return step.observation if step.observation is not None else step.error or ""


def list_ambiguities(record: TraceRecord) -> list[str]:
    """What a chat does not tell apart, beside what it has no place for."""
    lost: list[str] = []
    for step in record.steps:
        if step.error is not None and step.observation is not None:
            lost.append("a step's error beside its observation")
        elif step.error is not None:
            lost.append(ERROR_LOSS if step.tool is not None else "that the error of a step without a tool is one")
        elif step.tool is not None and step.observation is None:
            lost.append("that a step saw nothing")
    last = trace_to_messages(record)[-1]
    if last.role == "assistant" and not last.calls:
        if not record.trace.final_answer:
            lost.append("that there is no answer")
        elif split_final_answer(last.text_with_reasoning) != (last.reasoning, last.content):
            lost.append("where the final thought ends")
    return lost


def to_json_text(value: Any) -> str:
    """The value as the text that most chat formats want."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
