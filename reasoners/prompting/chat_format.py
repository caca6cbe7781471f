"""The chat format: prompts as messages with tool calls, and the parser of the replies.

A step is a call whose first argument is its thought; calls that came in one message are retold in one message. An
observation begins with the number of its step, by which the answer cites it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from showhow.db.models import Step
from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.questions.projects import DEFAULT_INSTRUCTION
from showhow.fewshot_library.formats.chat import step_outcome_text
from showhow.llm.structured_output import split_reasoning
from showhow.llm.types import ChatReply, Message, ModelToolCall
from showhow.reasoners.prompting.builder import PromptExample, PromptParts, group_parallel_steps, render_prompt
from showhow.reasoners.prompting.call_parser import (
    InvalidToolCall,
    ParsedReply,
    ParsedToolCall,
    parse_call,
    parse_json_arguments,
)
from showhow.reasoners.prompting.react_format import parse_react_reply
from showhow.reasoners.prompting.tool_declarations import (
    InvalidFinish,
    ToolDeclaration,
    declare_tools,
    finish_name,
    has_sources,
    parse_finish,
    thought_name,
)
from showhow.tools.tool import Tool

CHAT_FORMAT_NAME = "chat"
MAX_CALLS_PER_REPLY = 4
"""The calls of one reply that are run; a model that sends more no longer waits for observations."""
CHAT_RETRY_HINT = (
    "Go on with a call of a tool; or, if you know the answer, call finish, or write it behind `Final Answer:`."
)
_FREE_TEXT = AnswerFormat()
_FINISHED = "The question is answered."
"""What finish returns in a demonstration, since servers expect a result for every call."""


class ChatFormat:
    """Prompts as chat messages; the tools are declared in the request."""

    name = CHAT_FORMAT_NAME
    stop_sequences: tuple[str, ...] = ()

    def __init__(self, instruction: str = DEFAULT_INSTRUCTION, answer_format: AnswerFormat = _FREE_TEXT) -> None:
        self._instruction, self._answer_format = instruction, answer_format
        self._cached_examples: tuple[PromptExample, ...] | None = None
        self._cached_messages: list[Message] = []

    def messages(self, parts: PromptParts) -> list[Message]:
        """Write the instructions, the demonstrations as earlier questions, then the question with its steps so far."""
        writer = _ExampleWriter(parts.tools)
        opening, steps = self._opening_messages(parts, writer), [*writer.write(parts.example, "")]
        messages = [*opening, *steps[:-1], replace(steps[-1], ends_prefix=True)]
        return [*messages, Message("user", parts.instruction)] if parts.instruction else messages

    def _opening_messages(self, parts: PromptParts, writer: "_ExampleWriter") -> list[Message]:
        """The messages before the question, cached while the demonstrations stay the same."""
        if self._cached_examples is not parts.demonstrations:
            system = render_prompt(
                "chat",
                instruction=self._instruction,
                answer_kind=self._answer_format.kind,
                has_sources=has_sources(parts.tools),
                sources=parts.sources,
                demonstrations=len(parts.demonstrations),
                demonstrated_by=parts.demonstrated_by,
                finish=finish_name(tool.name for tool in parts.tools),
                max_calls=MAX_CALLS_PER_REPLY,
            )
            self._cached_examples, self._cached_messages = parts.demonstrations, [Message("system", system)]
            for number, demonstration in enumerate(parts.demonstrations, start=1):
                self._cached_messages += writer.write(demonstration, f"shown_{number}_")
            self._cached_messages[-1] = replace(self._cached_messages[-1], ends_prefix=True)
        return self._cached_messages

    def tool_declarations(self, tools: Sequence[Tool], sources: str) -> Sequence[ToolDeclaration]:
        """The tools to declare in the request: all of them, and finish."""
        return declare_tools(tools, sources, self._answer_format)

    def parse_reply(self, reply: ChatReply, question: str, tools: Sequence[Tool]) -> ParsedReply:
        """Parse the tool calls, or the text of a reply without calls."""
        if not reply.calls:
            return parse_react_reply(reply, question, tools, CHAT_RETRY_HINT)
        reasoning, text = split_reasoning(reply.text)
        beside = text or reasoning or reply.thoughts
        name = finish_name(tool.name for tool in tools)
        lookups = [call for call in reply.calls if call.name.casefold() != name]
        try:
            if not lookups:
                finish = parse_finish(_json_arguments(reply.calls[-1], tools), self._answer_format)
                return ParsedReply("", finish=replace(finish, thought=finish.thought or beside))
            calls = tuple(_parse_tool_call(call, question, tools) for call in lookups[:MAX_CALLS_PER_REPLY])
        except (InvalidToolCall, InvalidFinish) as error:
            return ParsedReply(_format_reply(reply), rejection=str(error))
        return ParsedReply(beside, calls, notice=_skipped_calls_notice(len(lookups), len(reply.calls), name))


def _skipped_calls_notice(lookups: int, calls: int, finish: str) -> str | None:
    notices = []
    if lookups > MAX_CALLS_PER_REPLY:
        notices.append(
            f"Only the first {MAX_CALLS_PER_REPLY} calls of a reply are run; {lookups - MAX_CALLS_PER_REPLY} more were "
            "left out. Read what they returned, then make those that are still needed."
        )
    if calls > lookups:
        notices.append(f"{finish} was left out, since it came with other calls. Read what they returned first.")
    return " ".join(notices) or None


def _json_arguments(call: ModelToolCall, tools: Sequence[Tool]) -> Mapping[str, object]:
    """The arguments of a call as an object; InvalidToolCall if their text is none."""
    if not isinstance(call.arguments, str):
        return call.arguments
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is not None:
        return parse_json_arguments(tool, call.arguments)
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise InvalidToolCall(f"The arguments of {call.name} are no valid JSON object; write them again.")
    return arguments


def _parse_tool_call(call: ModelToolCall, question: str, tools: Sequence[Tool]) -> ParsedToolCall:
    is_offered = any(tool.name == call.name for tool in tools)
    arguments = _json_arguments(call, tools) if is_offered or isinstance(call.arguments, dict) else {}
    return parse_call(call.name, arguments, question, tools)


def _format_reply(reply: ChatReply) -> str:
    calls = (
        f"{call.name}({call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)})"
        for call in reply.calls
    )
    return "\n".join(filter(None, (reply.text.strip(), *calls)))


class _ExampleWriter:
    """Writes worked examples as messages for the offered tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._parameters = {tool.name: [parameter.name for parameter in tool.parameters] for tool in tools}
        self._finish = finish_name(self._parameters)

    def write(self, example: PromptExample, prefix: str) -> Iterator[Message]:
        """The question, the steps and the answer; ids of calls begin with the prefix."""
        yield Message("user", example.question)
        for steps in group_parallel_steps(example.steps):
            yield from self._step_messages(steps, prefix)
        if example.finish is not None:
            call = ModelToolCall(f"{prefix}call_end", self._finish, dict(example.finish))
            yield Message("assistant", "", (call,))
            yield Message("tool", _FINISHED, answers=call.id)

    def _step_messages(self, steps: Sequence[Step], prefix: str) -> Iterator[Message]:
        if steps[0].tool is None:
            # Servers refuse an assistant message with neither text nor calls.
            yield Message("assistant", steps[0].thought or "(nothing)")
            outcome = step_outcome_text(steps[0])
            if outcome:
                yield Message("user", outcome)
            return
        yield Message("assistant", "", tuple(self._to_call(step, prefix) for step in steps))
        for step in steps:
            text = f"[step {step.position}]\n{step_outcome_text(step)}"
            yield Message("tool", text, answers=f"{prefix}call_{step.position}")

    def _to_call(self, step: Step, prefix: str) -> ModelToolCall:
        name = step.tool or ""
        thought_argument = thought_name(self._parameters.get(name, step.arguments.keys()))
        return ModelToolCall(f"{prefix}call_{step.position}", name, {thought_argument: step.thought, **step.arguments})
