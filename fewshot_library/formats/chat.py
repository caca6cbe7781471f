"""Traces as chat messages, and back: the question, thoughts with calls and results in turn, then the answer."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid5

from showhow.db.models import Project, Question, Run, Step, Trace
from showhow.db.run_spec import RunResult
from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats.format import ReadResult, RecordRemark
from showhow.fewshot_library.formats.humaniq_record import DEFAULT_TIMESTAMP, UUID_NAMESPACE
from showhow.fewshot_library.formats.json_documents import MalformedRecord, RecordOrigin
from showhow.fewshot_library.formats.thoughts import split_thoughts, take_thoughts
from showhow.llm.text_tool_calls import TextToolCall, parse_marked_reply

# The fields of a trace that chat formats store.
CHAT_FIELDS = {
    *("trace.final_answer", "trace.final_thought"),
    *("step.thought", "step.observation", "step.error"),
}
_RESULT_TAGS = re.compile(r"<tool_response>((?:(?!<tool_response>).)*?)</tool_response>", re.DOTALL)
_ANSWER_PREFIX = "Final Answer: "
DATA_LOSS = "a step's data"
ERROR_LOSS = "the distinction of a step's error from an observation"


@dataclass(slots=True)
class MessageToolCall:
    """A tool call; the tool message with its result has the same id."""

    id: str
    """May be empty, or that of another call too; see `match_results`."""
    name: str
    arguments: dict[str, Any]
    problem: str = ""
    """Why the arguments are not those that the model wrote, if they are not."""


@dataclass(slots=True)
class TraceMessage:
    """One chat message; `role` is system, user, assistant, tool, or environment for an observation without a call."""

    role: str
    content: str = ""
    reasoning: str = ""
    """The reasoning of an assistant before the content."""
    calls: list[MessageToolCall] = field(default_factory=list)
    call_id: str | None = None
    """The id of the call whose result a tool message holds."""
    name: str | None = None
    """The tool's name in a tool message."""
    failed: bool = False
    data: dict[str, Any] | None = None
    at: datetime | None = None
    rating: int | None = None
    rest: dict[str, Any] = field(default_factory=dict)
    """Further fields of an imported message."""
    remarks: list[str] = field(default_factory=list)
    """What could not be read in an imported message, with its place."""

    @property
    def text_with_reasoning(self) -> str:
        """Reasoning and content in one text, for formats without a field for the reasoning."""
        return f"{self.reasoning}\n\n{_ANSWER_PREFIX}{self.content}" if self.reasoning else self.content


def split_final_answer(text: str) -> tuple[str, str]:
    """Split a last message in the form of `text_with_reasoning` into reasoning and answer."""
    reasoning, separator, answer = text.partition(f"\n\n{_ANSWER_PREFIX}")
    return (reasoning, answer) if separator else ("", text)


def trace_to_messages(record: TraceRecord) -> list[TraceMessage]:
    """Convert a trace to messages."""
    messages = [TraceMessage("user", record.question.full_text)]
    for step in record.steps:
        messages += step_to_messages(step)
    trace = record.trace
    if trace.final_answer is not None or trace.final_thought:
        messages.append(TraceMessage("assistant", trace.final_answer or "", trace.final_thought or ""))
    return messages


def step_to_messages(step: Step) -> list[TraceMessage]:
    """Convert a step to a message with thought and call, and a message with the result."""
    message = TraceMessage("assistant", step.thought)
    if step.tool is None:
        if step.observation is None and step.error is None:
            return [message]
        # Without a call there is no tool message, so the observation becomes a user message.
        return [message, TraceMessage("user", step_outcome_text(step))]
    call = MessageToolCall(f"call_{step.position}", step.tool, step.arguments)
    message.calls.append(call)
    failed = step.error is not None
    return [
        message,
        TraceMessage("tool", step_outcome_text(step), call_id=call.id, name=step.tool, failed=failed, data=step.data),
    ]


def step_outcome_text(step: Step) -> str:
    """The observation of the step, or its error if it has none."""
    return step.observation if step.observation is not None else step.error or ""


def list_error_losses(record: TraceRecord) -> list[str]:
    """Describe each error that a chat stores as an observation, or not at all."""
    losses: list[str] = []
    for step in record.steps:
        if step.error is not None and step.observation is not None:
            losses.append("a step's error beside its observation")
        elif step.error is not None:
            losses.append(ERROR_LOSS if step.tool is not None else f"{ERROR_LOSS}, for a step without a tool")
    return losses


def list_ambiguities(record: TraceRecord) -> list[str]:
    """Describe what a chat stores but does not distinguish, including `list_error_losses`."""
    losses = list_error_losses(record)
    losses += [
        "a step's missing observation"
        for step in record.steps
        if step.tool is not None and step.error is None and step.observation is None
    ]
    last = trace_to_messages(record)[-1]
    if last.role == "assistant" and not last.calls:
        if not record.trace.final_answer:
            losses.append("the absence of an answer")
        elif split_final_answer(last.text_with_reasoning) != (last.reasoning, last.content):
            losses.append("the end of the final thought")
    return losses


def to_json_text(value: Any) -> str:
    """Format a value as JSON text, as chat formats store arguments."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# The world of an imported chat is not known, but a project must name one.
UNKNOWN_WORLD = "unknown"


@dataclass(slots=True)
class ChatTranscript:
    """An imported chat, with the other fields of its record."""

    messages: list[TraceMessage]
    tools: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields that traces do not have; stored unchanged in the trace's result."""
    source_id: str | None = None
    gold_answers: list[str] = field(default_factory=list)
    answer: str | None = None
    """The answer, if the record stores it apart from the messages."""
    answered: bool = True
    """Whether the last message of the assistant is the answer."""
    thought_in_answer: bool = False
    """Whether the last message may hold thought and answer in one text."""
    error: str | None = None
    """Why there is no answer."""
    run: Run | None = None
    started_at: datetime = DEFAULT_TIMESTAMP
    finished_at: datetime | None = None
    project: str | None = None


def chat_to_records(chat: ChatTranscript, origin: RecordOrigin) -> Iterator[ReadResult]:
    """Convert a chat to a trace; yields remarks on unusual messages first. MalformedRecord if that is not possible."""
    _read_thoughts(chat)
    before, question_message, after = _split_at_question(chat)
    rest = chat.extra | ({"error": chat.error} if chat.error else {})
    if system := [message.content for message in before if message.role == "system"]:
        rest["system"] = system
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
        id=uuid5(question.id, json.dumps([*map(_message_fields, chat.messages), rest], sort_keys=True, default=str)),
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
    trace.result = RunResult(tools=tuple(chat.tools), details={origin.format: rest} if rest else {})
    remarks = [*(remark for message in chat.messages for remark in message.remarks), *turns.remarks]
    yield from (RecordRemark(origin.place, remark) for remark in remarks)
    yield TraceRecord(project, question, trace, turns.steps, run=chat.run)


def _read_thoughts(chat: ChatTranscript) -> None:
    """Read the thoughts of the model among further fields and between tags, and the calls and results between tags."""
    chat.messages = [part for message in chat.messages for part in _split_tagged_results(message)]
    for message in chat.messages:
        if message.role == "assistant":
            if not message.calls and (reply := parse_marked_reply(message.content)).calls:
                message.content, message.reasoning = reply.text, message.reasoning or reply.thoughts
                message.calls = [_to_call(call) for call in reply.calls]
            tagged, message.content = split_thoughts(message.content)
            thoughts = dict.fromkeys((message.reasoning, *take_thoughts(message.rest), tagged))
            message.reasoning = "\n\n".join(thought for thought in thoughts if thought)
    if chat.answer is not None:
        chat.answer = split_thoughts(chat.answer)[1] or None


def _to_call(written: TextToolCall) -> MessageToolCall:
    is_object = isinstance(written.arguments, dict)
    arguments = written.arguments if isinstance(written.arguments, dict) else {"input": written.arguments}
    problem = "" if is_object else "its arguments are no JSON object, and were kept as `input`"
    return MessageToolCall("", written.name, arguments, problem)


def _split_tagged_results(message: TraceMessage) -> list[TraceMessage]:
    """The results that a model's template put between tags, as messages of their own; else the message."""
    blocks = _RESULT_TAGS.split(message.content) if message.role in ("user", "tool") else []
    if len(blocks) < 3 or any(text.strip() for text in blocks[::2]):
        return [message]
    first, *others = [block.strip() for block in blocks[1::2]]
    message.role, message.content = "tool", first
    return [message, *(TraceMessage("tool", text, at=message.at) for text in others)]


def _message_fields(message: TraceMessage) -> dict[str, Any]:
    """What identifies a message; what is remarked on it does not."""
    fields = asdict(message)
    del fields["remarks"]
    for call in fields["calls"]:
        del call["problem"]
    return fields


def match_results(messages: list[TraceMessage]) -> Iterator[tuple[TraceMessage, MessageToolCall | None]]:
    """Yield each tool message with the call that it answers, by id, else by name and order; None if there is none."""
    # The calls without a result, those of the last message with calls first: a model goes on when it has results.
    current: list[MessageToolCall] = []
    earlier: list[MessageToolCall] = []
    for message in messages:
        if message.calls:
            current, earlier = list(message.calls), [*earlier, *current]
        if message.role == "tool":
            same_id = [call for call in [*current, *earlier] if message.call_id and call.id == message.call_id]
            candidates = same_id or [call for call in current if not (message.call_id and call.id)]
            by_order = candidates if same_id or not message.name or len(candidates) == 1 else []
            call = next((call for call in candidates if call.name == message.name), next(iter(by_order), None))
            if len(candidates) > 1 and not same_id and call is not None:
                message.remarks.append(
                    f"a result names no call, and was taken for that of the next call of {call.name}"
                )
            current, earlier = ([other for other in calls if other is not call] for calls in (current, earlier))
            yield message, call


def _split_at_question(chat: ChatTranscript) -> tuple[list[TraceMessage], TraceMessage, list[TraceMessage]]:
    """Split the messages into those before the question, the question, and those after it."""
    for number, message in enumerate(chat.messages, start=1):
        if message.role != "assistant":
            if message.calls:
                message.remarks.append(f"message {number} calls a tool, but has the role {message.role!r}")
                message.rest["calls"] = [asdict(call) for call in message.calls]
                message.calls = []
            if message.reasoning:
                message.rest["reasoning"] = message.reasoning
    position = next((place for place, message in enumerate(chat.messages) if message.role == "user"), None)
    if position is None:
        raise MalformedRecord("it has no user message")
    before = chat.messages[:position]
    if position == len(chat.messages) - 1 and any(message.calls for message in before):
        raise MalformedRecord("all its calls come before its question; the roles of its messages seem to be exchanged")
    for number, message in enumerate(before, start=1):
        if message.role != "system":
            message.remarks.append(
                f"message {number}, before the question, has the role {message.role!r}, and is in no step"
            )
            message.rest |= {"role": message.role, "content": message.content}
            message.rest |= {"calls": [asdict(call) for call in message.calls]} if message.calls else {}
    return before, chat.messages[position], chat.messages[position + 1 :]


def _set_final_answer(trace: Trace, final: TraceMessage | None, chat: ChatTranscript) -> None:
    """Set the final thought, the final answer and the status."""
    if final is not None:
        joined = chat.thought_in_answer and not final.reasoning
        reasoning, answer = split_final_answer(final.content) if joined else (final.reasoning, final.content)
        trace.final_thought, trace.final_answer = reasoning or None, answer or None
    if chat.answer is not None and chat.answer != trace.final_answer:
        # The last message is then not the answer but the thought before it.
        trace.final_thought = "\n\n".join(part for part in (trace.final_thought, trace.final_answer) if part) or None
        trace.final_answer = chat.answer
    trace.status = "failed" if trace.final_answer is None or chat.error else "submitted"


def _join_thoughts(messages: list[TraceMessage]) -> Iterator[int]:
    """Move a thought that stands alone to the message of the assistant behind it; yields the message's identity."""
    for message, after in pairwise(messages):
        if message.role == after.role == "assistant" and message.reasoning and not (message.content or message.calls):
            after.reasoning = "\n\n".join(part for part in (message.reasoning, after.reasoning) if part)
            yield id(message)


@dataclass(slots=True)
class _StepCollector:
    """Collects the messages after the question into steps."""

    trace_id: UUID
    started_at: datetime
    first: int
    """The number of the first message in the chat, for error messages."""
    steps: list[Step] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    parallel_steps: list[list[int]] = field(default_factory=list)
    """The positions of steps whose calls were made in one message."""
    steps_by_call: dict[int, Step] = field(default_factory=dict)
    """The steps by the identity of their calls, whose ids may be missing or repeated."""

    def collect(self, messages: list[TraceMessage], *, answered: bool) -> TraceMessage | None:
        """Collect the steps; return the last message if it is the answer."""
        ends_with_text = bool(messages) and messages[-1].role == "assistant" and not messages[-1].calls
        final = messages[-1] if ends_with_text and answered else None
        calls = {id(message): call for message, call in match_results(messages)}
        joined = set(_join_thoughts(messages))
        for number, message in enumerate(messages[: len(messages) - (final is not None)], start=self.first):
            if id(message) in joined:
                continue
            if message.role == "assistant":
                self._add_assistant_message(message)
            elif message.role == "tool":
                self._add_tool_result(message, calls[id(message)], number)
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
        positions: list[int] = []
        for call in message.calls:
            step = self._add_step("" if positions else thought, message.at)
            step.tool, step.arguments = call.name, call.arguments
            if call.problem:
                step.error = call.problem
                self.remarks.append(f"the call of step {step.position}: {call.problem}")
            self.steps_by_call[id(call)] = step
            positions.append(step.position)
        if not positions:
            self._add_step(thought, message.at)
        elif len(positions) > 1:
            self.parallel_steps.append(positions)

    def _add_tool_result(self, message: TraceMessage, call: MessageToolCall | None, number: int) -> None:
        if call is None:
            self._add_environment_message(message, number)
            return
        step = self.steps_by_call[id(call)]
        if message.failed:
            step.error = message.content
        else:
            step.observation = message.content
        step.data, step.rating = message.data, message.rating
        step.finished_at = message.at or step.finished_at

    def _add_environment_message(self, message: TraceMessage, number: int) -> None:
        """Store a message of another role as the observation of a step without a tool."""
        last = self.steps[-1] if self.steps else None
        if last is None or last.tool is not None or last.observation is not None:
            last = self._add_step("", message.at)
        last.observation = message.content
        if message.role != "environment":
            self.remarks.append(
                f"message {number} of the role {message.role} was imported as the observation of step {last.position}"
            )
