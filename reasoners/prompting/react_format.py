"""The prompt as plain ReAct text, for models without tool calls, and what is read out of their replies."""

import re
from collections.abc import Sequence

from fewshot_library.formats.react import step_to_turn
from fewshot_library.formats.react_text import MARKERS, ReactTranscript, ReactTurn, format_transcript, parse_transcript
from llm.structured_output import split_reasoning
from llm.types import ChatReply, Message
from reasoners.prompting.call_parser import InvalidToolCall, ParsedReply, ParsedToolCall, parse_call, parse_keyword_call
from reasoners.prompting.parts import PromptExample, PromptParts, render_prompt
from tools.tool import Tool

TEXT_FORMAT_NAME = "text"
STOP_SEQUENCES: tuple[str, ...] = ("\nObservation:",)
# Models set marks off in bold, as headings or items, number them, or write them in capitals.
_LOOSE_MARKER = re.compile(
    rf"^[ \t>]*(?:#+|-|\d+[.)])?[ \t]*[*_]*({'|'.join(MARKERS)})(?:[ \t]*\d+)?[*_]*:[*_]*"
    r"|^#+[ \t]*[*_]*(Final Answer)[*_]*[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_OBSERVATION = re.compile(r"^Observation:", re.MULTILINE)
_ACTION_OR_ANSWER = re.compile(r"^(?:Action|Final Answer):", re.MULTILINE)
_NEXT_MARKER = re.compile(r"^(?:Question|Thought|Action|Action Input):", re.MULTILINE)
_CALL_SYNTAX = re.compile(r"([\w.-]+)\s*[\[(](.*)[\])]", re.DOTALL)
TEXT_RETRY_HINT = (
    "Go on with a line `Thought:`, a line `Action:` that names one tool and a line `Action Input:`; "
    "or, if you know the answer, with a line `Final Answer:`."
)


class ReActFormat:
    """Text with stop sequences."""

    name = TEXT_FORMAT_NAME
    stop_sequences = STOP_SEQUENCES

    def __init__(self) -> None:
        self._cached_examples: tuple[PromptExample, ...] | None = None
        self._cached_texts: list[str] = []

    def messages(self, material: PromptParts) -> list[Message]:
        """The instructions with tools and demonstrations; the question and the steps, up to the next thought."""
        if self._cached_examples is not material.demonstrations:
            # Written once, as long as they are the same.
            self._cached_examples, self._cached_texts = (
                material.demonstrations,
                [format_transcript(_convert_example(example)) for example in material.demonstrations],
            )
        system = render_prompt(
            "react", sources=material.sources, tools=material.tools, demonstrations=self._cached_texts
        )
        so_far = format_transcript(_convert_example(material.example))
        cue = f"({material.instruction})\n" if material.instruction else ""
        return [Message("system", system), Message("user", f"{so_far}{cue}Thought:")]

    def tool_declarations(self, tools: Sequence[Tool]) -> Sequence[Tool]:  # noqa: ARG002 - the prompt names them
        """No tool goes beside the messages."""
        return ()

    def parse_reply(self, reply: ChatReply, question: str, tools: Sequence[Tool]) -> ParsedReply:
        """What the model decided."""
        return parse_react_reply(reply, question, tools, TEXT_RETRY_HINT)


def parse_react_reply(reply: ChatReply, question: str, tools: Sequence[Tool], how: str) -> ParsedReply:
    """The first thought with its action, or the answer; where it has neither, the model is told `how` to go on.

    What follows is left away: an observation or a next question that a model writes itself is made up.
    """
    thinking, said = split_reasoning(reply.text)
    if reply.stopped == "length":
        refused = f"The reply was cut off, because it was too long. Think in a few words. {how}"
        return ParsedReply(reply.text, rejection=refused)
    transcript = parse_transcript(_truncate_at_observation(said))
    acted = next((place for place, turn in enumerate(transcript.turns) if turn.action is not None), None)
    turns = transcript.turns if acted is None else transcript.turns[: acted + 1]
    thought = "\n".join(filter(None, (transcript.preamble, *(turn.thought for turn in turns))))
    if acted is not None and not _is_answer_without_action(transcript, transcript.turns[acted], tools):
        try:
            return ParsedReply(thought or thinking, calls=(_parse_turn_call(transcript.turns[acted], question, tools),))
        except InvalidToolCall as wrong:
            return ParsedReply(reply.text, rejection=str(wrong))
    if transcript.final_answer is not None:
        thought = "\n".join(filter(None, (thought, transcript.final_thought)))
        return ParsedReply(thought or thinking, final_answer=transcript.final_answer)
    return ParsedReply(reply.text, rejection=f"The reply has no action and no answer. {how}")


def _truncate_at_observation(said: str) -> str:
    """What is said up to the first observation, and no further than the answer where that comes before any action."""
    marked = _LOOSE_MARKER.sub(lambda match: f"{(match[1] or match[2]).title()}:", said)
    marked = _OBSERVATION.split(marked, maxsplit=1)[0]
    first = _ACTION_OR_ANSWER.search(marked)
    if first is None or first[0] == "Action:":
        return marked
    goes_on = _NEXT_MARKER.search(marked, first.end())
    return marked[: goes_on.start()] if goes_on else marked


def _is_answer_without_action(transcript: ReactTranscript, turn: ReactTurn, tools: Sequence[Tool]) -> bool:
    """Whether an action is none, such as `Action: none needed`, and an answer follows it."""
    names = {tool.name.casefold() for tool in tools}
    return (
        transcript.final_answer is not None
        and not turn.action_input
        and not names & set(_split_words(turn.action or ""))
    )


def _split_words(action: str) -> list[str]:
    return re.findall(r"[\w.-]+", action.casefold())


def _parse_turn_call(turn: ReactTurn, question: str, tools: Sequence[Tool]) -> ParsedToolCall:
    action, given = (turn.action or "").strip("` *"), turn.action_input
    written = _CALL_SYNTAX.fullmatch(action)
    if written and not given:
        named = parse_keyword_call(action)
        if named is not None:
            return parse_call(written[1], named, question, tools)
        action, given = written[1], written[2].strip().strip("\"'")
    return parse_call(action, given or "", question, tools)


def _convert_example(shown: PromptExample) -> ReactTranscript:
    return ReactTranscript(
        question=shown.question,
        turns=[step_to_turn(step, shown.question) for step in shown.steps],
        final_thought=shown.final_thought or None,
        final_answer=shown.final_answer,
    )
