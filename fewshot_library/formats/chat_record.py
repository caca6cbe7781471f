"""A chat from elsewhere as one of our traces, with keys that are the same whenever the same chat is read."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from db.models import Project, Question, Run, Step, Trace
from db.trace_record import TraceRecord
from fewshot_library.formats.chat import TraceMessage, split_final_answer
from fewshot_library.formats.documents import MalformedRecord, RecordOrigin
from fewshot_library.formats.format import ReadResult, RecordRemark
from fewshot_library.formats.humaniq_record import DEFAULT_TIMESTAMP, UUID_NAMESPACE

# No world is known of a chat from elsewhere; a project needs a name for it all the same.
UNKNOWN_WORLD = "unknown"


@dataclass(slots=True)
class ChatTranscript:
    """A chat that was read, with whatever else its record told."""

    messages: list[TraceMessage]
    tools: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    """What of the record has no place in a trace; it is remembered as it stands."""
    source_id: str | None = None
    gold_answers: list[str] = field(default_factory=list)
    answer: str | None = None
    """The answer where the record tells it beside the messages."""
    answered: bool = True
    """Whether what an assistant says last is the answer."""
    thought_in_answer: bool = False
    """Whether the last message may tell its thought and the answer in one text."""
    error: str | None = None
    """Why no answer came."""
    run: Run | None = None
    started_at: datetime = DEFAULT_TIMESTAMP
    finished_at: datetime | None = None
    project: str | None = None


def chat_to_records(chat: ChatTranscript, origin: RecordOrigin) -> Iterator[ReadResult]:
    """The trace that the chat tells, after remarks on what is odd about it; Malformed says why it tells none."""
    before, question_message, after = _split_at_question(chat)
    rest = chat.extra | ({"error": chat.error} if chat.error else {})
    rest |= {"system": [message.content for message in before]} if before else {}
    name = chat.project or f"{origin.file} ({origin.format})"
    project = Project(id=uuid5(UUID_NAMESPACE, name), name=name, world=UNKNOWN_WORLD, created_at=DEFAULT_TIMESTAMP)
    question = Question(
        id=uuid5(project.id, question_message.content),
        project_id=project.id,
        position=1,
        text=question_message.content,
        source_id=chat.source_id,
        gold_answers=[{"text": answer, "entity": None} for answer in chat.gold_answers],
        created_at=DEFAULT_TIMESTAMP,
    )
    trace = Trace(
        id=uuid5(question.id, json.dumps([*map(asdict, chat.messages), rest], sort_keys=True, default=str)),
        question_id=question.id,
        run_id=chat.run.id if chat.run else None,
        reasoner=chat.run.reasoner if chat.run else origin.format,
        started_at=chat.started_at,
        submitted_at=chat.finished_at or chat.started_at,
    )
    turns = _StepCollector(trace.id, chat.started_at, first=len(before) + 2)
    _set_final_answer(trace, turns.collect(after, answered=chat.answered), chat)
    beside = {str(place): message.rest for place, message in enumerate(chat.messages, start=1) if message.rest}
    rest |= {name: value for name, value in (("messages", beside), ("together", turns.parallel_steps)) if value}
    trace.configuration = {"tools": chat.tools} | ({origin.format: rest} if rest else {})
    yield from (RecordRemark(origin.place, remark) for remark in turns.remarks)
    yield TraceRecord(project, question, trace, turns.steps, run=chat.run)


def _split_at_question(chat: ChatTranscript) -> tuple[list[TraceMessage], TraceMessage, list[TraceMessage]]:
    """What stands before the question, the question, and what comes after it."""
    for number, message in enumerate(chat.messages, start=1):
        if message.calls and message.role != "assistant":
            raise MalformedRecord(f"message {number} calls a tool, though it is {message.role}'s")
        if message.reasoning and message.role != "assistant":
            message.rest["reasoning"] = message.reasoning
    position = next((place for place, message in enumerate(chat.messages) if message.role == "user"), None)
    if position is None:
        raise MalformedRecord("it has no message of a user")
    before = chat.messages[:position]
    if any(message.role != "system" for message in before):
        raise MalformedRecord(f"message {position}, before the question, is {before[-1].role}'s")
    return before, chat.messages[position], chat.messages[position + 1 :]


def _set_final_answer(trace: Trace, final: TraceMessage | None, chat: ChatTranscript) -> None:
    """Set the answer, or that there is none."""
    if final is not None:
        joined = chat.thought_in_answer and not final.reasoning
        reasoning, answer = split_final_answer(final.content) if joined else (final.reasoning, final.content)
        trace.final_thought, trace.final_answer = reasoning or None, answer or None
    if chat.answer is not None and chat.answer != trace.final_answer:
        # What was said last is then no answer but what led to it.
        trace.final_thought = "\n\n".join(part for part in (trace.final_thought, trace.final_answer) if part) or None
        trace.final_answer = chat.answer
    trace.status = "failed" if trace.final_answer is None or chat.error else "submitted"


@dataclass(slots=True)
class _StepCollector:
    """The messages after the question, gathered into steps."""

    trace_id: UUID
    started_at: datetime
    first: int
    """The number of the first message, for people."""
    steps: list[Step] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    parallel_steps: list[list[int]] = field(default_factory=list)
    """The positions of steps whose calls were made in one message."""
    open_calls: dict[str, Step] = field(default_factory=dict)

    def collect(self, messages: list[TraceMessage], *, answered: bool) -> TraceMessage | None:
        """Gather the steps; what is given back is the last message, when it is the answer."""
        said_last = bool(messages) and messages[-1].role == "assistant" and not messages[-1].calls
        final = messages[-1] if said_last and answered else None
        for number, message in enumerate(messages[: len(messages) - (final is not None)], start=self.first):
            if message.role == "assistant":
                self._add_assistant_message(message)
            elif message.role == "tool":
                self._add_tool_result(message, number)
            else:
                self._add_environment_message(message, number)
        return final

    def _add_step(self, thought: str, at: datetime | None) -> Step:
        position = len(self.steps) + 1
        step = Step(
            id=uuid5(self.trace_id, str(position)),
            trace_id=self.trace_id,
            position=position,
            thought=thought,
            started_at=at or self.started_at,
            finished_at=at or self.started_at,
        )
        self.steps.append(step)
        return step

    def _add_assistant_message(self, message: TraceMessage) -> None:
        thought = "\n\n".join(part for part in (message.reasoning, message.content) if part)
        made: list[int] = []
        for call in message.calls:
            step = self._add_step("" if made else thought, message.at)
            step.tool, step.arguments = call.name, call.arguments
            self.open_calls[call.id] = step
            made.append(step.position)
        if not made:
            self._add_step(thought, message.at)
        elif len(made) > 1:
            self.parallel_steps.append(made)

    def _add_tool_result(self, message: TraceMessage, number: int) -> None:
        call_id = message.call_id
        if call_id is None and len(self.open_calls) == 1:
            (call_id,) = self.open_calls
        step = self.open_calls.pop(call_id or "", None)
        if step is None:
            raise MalformedRecord(f"message {number} answers the call {call_id!r}, which is not open then")
        if message.failed:
            step.error = message.content
        else:
            step.observation = message.content
        step.data, step.rating = message.data, message.rating
        step.finished_at = message.at or step.finished_at

    def _add_environment_message(self, message: TraceMessage, number: int) -> None:
        """What anybody else says between is what came back of a step that called no tool."""
        last = self.steps[-1] if self.steps else None
        if last is None or last.tool is not None or last.observation is not None:
            last = self._add_step("", message.at)
        last.observation = message.content
        if message.role != "environment":
            self.remarks.append(
                f"message {number}, said by the {message.role}, was taken as what step {last.position} saw"
            )
