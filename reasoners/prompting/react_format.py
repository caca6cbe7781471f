"""The ReAct text format for models without tool calls: prompts as plain text, and the parser of the replies."""

import re
from collections.abc import Sequence

from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.questions.projects import DEFAULT_INSTRUCTION
from showhow.db.types import dump_json
from showhow.db.unanswerable import UnanswerableReason, write_unanswerable
from showhow.fewshot_library.formats.humaniq_record import parse_keyword_call
from showhow.fewshot_library.formats.react import step_to_turn
from showhow.fewshot_library.formats.react_text import (
    ReactTranscript,
    ReactTurn,
    format_transcript,
    normalize_markers,
    parse_transcript,
)
from showhow.llm.structured_output import split_reasoning
from showhow.llm.text_tool_calls import TextToolCall, match_tool_name, parse_text_reply
from showhow.llm.types import ChatReply, Message, ModelToolCall
from showhow.reasoners.prompting.builder import PromptExample, PromptParts, render_prompt
from showhow.reasoners.prompting.call_parser import InvalidToolCall, ParsedReply, ParsedToolCall, parse_call
from showhow.reasoners.prompting.tool_declarations import has_sources
from showhow.tools.tool import Tool

TEXT_FORMAT_NAME = "text"
_FREE_TEXT = AnswerFormat()
STOP_SEQUENCES: tuple[str, ...] = ("\nObservation:",)
_OBSERVATION = re.compile(r"^Observation:", re.MULTILINE)
_ACTION_OR_ANSWER = re.compile(r"^(?:Action|Final Answer):", re.MULTILINE)
_NEXT_MARKER = re.compile(r"^(?:Question|Thought|Action|Action Input):", re.MULTILINE)
_CALL_SYNTAX = re.compile(r"([\w.-]+)\s*[\[(](.*)[\])]", re.DOTALL)
TEXT_RETRY_HINT = (
    "Go on with a line `Thought:`, a line `Action:` that names one tool and a line `Action Input:`; "
    "or, if you know the answer, with a line `Final Answer:`."
)


class ReActFormat:
    """Prompts as plain text with stop sequences; the system message describes the tools."""

    name = TEXT_FORMAT_NAME
    stop_sequences = STOP_SEQUENCES

    def __init__(self, instruction: str = DEFAULT_INSTRUCTION, answer_format: AnswerFormat = _FREE_TEXT) -> None:
        self._instruction, self._answer_format = instruction, answer_format
        self._cached_examples: tuple[PromptExample, ...] | None = None
        self._cached_texts: list[str] = []

    def messages(self, parts: PromptParts) -> list[Message]:
        """Write the instructions with tools and demonstrations, then the question with its steps so far."""
        if self._cached_examples is not parts.demonstrations:
            self._cached_examples = parts.demonstrations
            self._cached_texts = [format_transcript(_convert_example(example)) for example in parts.demonstrations]
        system = render_prompt(
            "react",
            instruction=self._instruction,
            answer_kind=self._answer_format.kind,
            schema=dump_json(self._answer_format.schema),
            unanswerable=[write_unanswerable(reason) for reason in UnanswerableReason if reason.is_stated],
            has_sources=has_sources(parts.tools),
            sources=parts.sources,
            tools=parts.tools,
            demonstrations=self._cached_texts,
            demonstrated_by=parts.demonstrated_by,
        )
        transcript = format_transcript(_convert_example(parts.example))
        cue = f"({parts.instruction})\n" if parts.instruction else ""
        return [Message("system", system, ends_prefix=True), Message("user", f"{transcript}{cue}Thought:")]

    def tool_declarations(self, tools: Sequence[Tool], sources: str) -> Sequence[Tool]:  # noqa: ARG002 - the prompt names them
        """The tools to declare in the request: none."""
        return ()

    def parse_reply(self, reply: ChatReply, question: str, tools: Sequence[Tool]) -> ParsedReply:
        """Parse the first action or the answer."""
        return parse_react_reply(reply, question, tools, TEXT_RETRY_HINT)


def parse_react_reply(reply: ChatReply, question: str, tools: Sequence[Tool], hint: str) -> ParsedReply:
    """Parse the first thought with its action, or the answer; a reply without either is rejected with the `hint`.

    Text after the action is ignored: an observation or a further question in a reply is made up by the model.
    """
    reasoning, text = split_reasoning(reply.text)
    reasoning = reasoning or reply.thoughts
    if reply.stopped == "length":
        rejection = f"The reply was cut off, because it was too long. Think in a few words. {hint}"
        return ParsedReply(reply.text, rejection=rejection)
    transcript = parse_transcript(_truncate_at_observation(text))
    action_index = next((index for index, turn in enumerate(transcript.turns) if turn.action is not None), None)
    turns = transcript.turns if action_index is None else transcript.turns[: action_index + 1]
    thought = "\n".join(filter(None, (transcript.preamble, *(turn.thought for turn in turns))))
    if action_index is not None and not _is_answer_without_action(transcript, transcript.turns[action_index], tools):
        try:
            return ParsedReply(
                thought or reasoning, calls=(_parse_turn_call(transcript.turns[action_index], question, tools),)
            )
        except InvalidToolCall as error:
            return ParsedReply(reply.text, rejection=str(error))
    if transcript.final_answer is not None:
        thought = "\n".join(filter(None, (thought, transcript.final_thought)))
        return ParsedReply(thought or reasoning, final_answer=transcript.final_answer)
    # Models that were trained on calls in a notation of their own may write them in spite of the prompt.
    written = parse_text_reply(text, [tool.name for tool in tools])
    calls: list[ModelToolCall | TextToolCall] = [*reply.calls, *written.calls]
    if calls:
        return _parse_own_call(calls[0], written.text or reasoning, question, tools)
    return ParsedReply(reply.text, rejection=f"The reply has no action and no answer. {hint}")


def _parse_own_call(
    call: ModelToolCall | TextToolCall, thought: str, question: str, tools: Sequence[Tool]
) -> ParsedReply:
    name = match_tool_name(call.name, [tool.name for tool in tools])
    try:
        return ParsedReply(thought, calls=(parse_call(name, call.arguments, question, tools),))
    except InvalidToolCall as error:
        return ParsedReply(thought, rejection=str(error))


def _truncate_at_observation(text: str) -> str:
    """The text up to the first observation; if an answer comes before any action, up to the end of the answer."""
    labelled = _OBSERVATION.split(normalize_markers(text), maxsplit=1)[0]
    first_label = _ACTION_OR_ANSWER.search(labelled)
    if first_label is None or first_label[0] == "Action:":
        return labelled
    next_label = _NEXT_MARKER.search(labelled, first_label.end())
    return labelled[: next_label.start()] if next_label else labelled


def _is_answer_without_action(transcript: ReactTranscript, turn: ReactTurn, tools: Sequence[Tool]) -> bool:
    """Whether the action names no tool, such as `Action: none needed`, and an answer follows it."""
    tool_names = {tool.name.casefold() for tool in tools}
    return (
        transcript.final_answer is not None
        and not turn.action_input
        and not tool_names & set(_split_words(turn.action or ""))
    )


def _split_words(action: str) -> list[str]:
    return re.findall(r"[\w.-]+", action.casefold())


def _parse_turn_call(turn: ReactTurn, question: str, tools: Sequence[Tool]) -> ParsedToolCall:
    action, input_line = (turn.action or "").strip("` *"), turn.action_input
    call = _CALL_SYNTAX.fullmatch(action)
    if call and not input_line:
        arguments = parse_keyword_call(action)
        if arguments is not None:
            return parse_call(call[1], arguments, question, tools)
        action, input_line = call[1], call[2].strip().strip("\"'")
    return parse_call(action, input_line or "", question, tools)


def _convert_example(example: PromptExample) -> ReactTranscript:
    return ReactTranscript(
        question=example.question,
        turns=[step_to_turn(step, example.question) for step in example.steps],
        final_thought=example.final_thought or None,
        final_answer=example.final_answer,
    )
