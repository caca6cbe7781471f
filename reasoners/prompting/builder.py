"""Builds the prompts of a run within the model's context window, in an order that servers can cache.

Instructions, tools and demonstrations come first and are the same in every prompt of a run; the question and the steps
so far come last. Demonstrations are fitted once, before the first step: their observations are truncated to
MIN_OBSERVATION_TOKENS, those of the last demonstration first, then demonstrations are left out, the last one first. The
run's own steps get the rest of the window (run_state.py). If a prompt is too long even so, PromptTooLong is raised.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from showhow.db.models import GENERATED_REASONER, Step
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.traces.libraries import HUMAN, PEOPLE
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import load_json
from showhow.db.unanswerable import read_unanswerable
from showhow.fewshot_library.formats.chat import step_outcome_text
from showhow.llm.prompts import PromptTemplates
from showhow.llm.types import ChatReply, Message, ToolSpec
from showhow.reasoners.answers.extraction import format_final_answer, join_answers
from showhow.reasoners.answers.normalization import answers_equal
from showhow.reasoners.base import ReasonerError, Task
from showhow.reasoners.prompting.call_parser import ParsedReply
from showhow.reasoners.prompting.run_state import (
    MIN_OBSERVATION_TOKENS,
    STATE_RESERVE,
    RunState,
    count_message_tokens,
    count_tool_tokens,
    replace_outcome,
    truncate_observation,
)
from showhow.reasoners.prompting.tool_declarations import UNANSWERABLE_NAME
from showhow.tools.tool import EncodeFunction, Tool

render_prompt = PromptTemplates("showhow.reasoners.prompting")
GENERATED, OTHERS = "generated", "others"
_DONE = "done"
"""What is written as the final answer where none is asked for, as the prompt says (prompts/react.jinja)."""


@dataclass(frozen=True, slots=True)
class PromptExample:
    """One worked example in a prompt: a question with its steps and answer."""

    question: str
    steps: tuple[Step, ...]
    final_thought: str = ""
    """The thought before the answer."""
    final_answer: str | None = None
    """The answer and the lines of the sources; None for the question that the run is working on."""
    finish: Mapping[str, Any] | None = None
    """The arguments of the call of finish that gives the same answer."""
    author: str = OTHERS
    """Who made it: people, generated (from the facts of a world), or others."""


def build_example(record: TraceRecord, tools: Collection[str] | None, sources: str = "both") -> PromptExample:
    """Build the example of a demonstration, with only the steps of these tools and the answers of these sources.

    `tools` holds the names of the tools to keep; None keeps all.
    """
    steps = tuple(step for step in record.steps if tools is None or step.tool is None or step.tool in tools)
    final_answer = format_final_answer(record.trace, sources)
    if final_answer is not None and _answer_kind(record) == AnswerKind.NONE:
        final_answer = _DONE
    finish = _finish_arguments(record, steps, sources) if final_answer is not None else None
    trace = record.trace
    is_generated = trace.result.generated or trace.reasoner == GENERATED_REASONER
    author = GENERATED if is_generated else PEOPLE if trace.reasoner == HUMAN else OTHERS
    return PromptExample(record.question.full_text, steps, trace.final_thought or "", final_answer, finish, author)


def _finish_arguments(record: TraceRecord, steps: Sequence[Step], sources: str) -> dict[str, Any]:
    trace, answer_kind = record.trace, _answer_kind(record)
    reason = read_unanswerable(trace.final_answer)
    if reason is not None:
        thought = trace.final_thought or ""
        empty: dict[str, Any] = {"answers": []} if answer_kind == AnswerKind.TEXT else {}
        return {"thought": thought, **empty, UNANSWERABLE_NAME: str(reason), "found": True, "steps": []}
    if answer_kind != AnswerKind.TEXT:
        value = {"value": _parse_value(trace.final_answer or "null")} if answer_kind == AnswerKind.JSON else {}
        return {"thought": trace.final_thought or "", **value, "found": True}
    stored = trace.result
    # An answer that was edited since has another list and other evidence.
    is_stored = bool(stored.answers) and join_answers(stored.answers) == trace.final_answer
    answers = list(stored.answers) if is_stored else split_listed_answers(trace.final_answer or "", record)
    says = {"text_says": trace.answer_text, "graph_says": trace.answer_graph}
    cited = stored.cited_steps if is_stored else _steps_with_answers(steps, answers)
    shown_positions = {step.position for step in steps}
    return {
        "thought": trace.final_thought or "",
        "answers": answers,
        **{
            name: split_listed_answers(source_answer, record) if source_answer else []
            for name, source_answer in says.items()
            if sources in ("both", name.removesuffix("_says"))
        },
        "found": True,
        "steps": [position for position in cited if position in shown_positions],
    }


def _answer_kind(record: TraceRecord) -> AnswerKind:
    return AnswerFormat.from_json(record.project.answer_format).kind


def _parse_value(answer: str) -> Any:
    try:
        return load_json(answer)
    except ValueError:
        # The answer is from before the project asked for JSON.
        return answer


def split_listed_answers(text: str, record: TraceRecord) -> list[str]:
    """The answers in a text of several; only a text whose parts are gold answers of the question is split."""
    golds = [str(gold.get("text", "")) for gold in record.question.gold_answers]
    pieces = [piece.strip() for piece in re.split(r"[,;\n]", text) if piece.strip()]
    is_list = len(golds) > 1 and len(pieces) > 1
    if is_list and all(any(answers_equal(piece, gold) for gold in golds) for piece in pieces):
        return pieces
    return [text]


def _steps_with_answers(steps: Sequence[Step], answers: Sequence[str]) -> list[int]:
    folded_answers = [answer.casefold() for answer in answers]
    return [
        step.position
        for step in steps
        if step.observation is not None and any(answer in step.observation.casefold() for answer in folded_answers)
    ]


PARALLEL_NODE_PREFIX = "message "
"""The node of steps whose calls came in one message begins so, and goes on with the position of the first one."""


def group_parallel_steps(steps: Sequence[Step]) -> list[list[Step]]:
    """Group the steps by message: calls of one message together, every other step alone, in order."""
    groups: dict[object, list[Step]] = {}
    for index, step in enumerate(steps):
        message = (step.node or "").rpartition(PARALLEL_NODE_PREFIX)
        key: object = message if message[1] and step.tool is not None else index
        groups.setdefault(key, []).append(step)
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class PromptParts:
    """The parts of one prompt, already within the token limits."""

    example: PromptExample
    """The question of the run with its steps so far."""
    demonstrations: tuple[PromptExample, ...]
    tools: Sequence[Tool]
    """All tools of the run."""
    sources: str
    instruction: str = ""
    """The instruction for the next step, if the model is not free to choose."""

    @property
    def demonstrated_by(self) -> str:
        """Who made the demonstrations; others also where not all of them have the same author."""
        authors = {demonstration.author for demonstration in self.demonstrations}
        return authors.pop() if len(authors) == 1 else OTHERS


class PromptTooLong(ReasonerError):
    """The parts of the prompt that cannot be left out exceed the context window."""


class PromptFormat(Protocol):
    """Writes prompts and parses replies in one format."""

    name: str
    stop_sequences: tuple[str, ...]

    def messages(self, parts: PromptParts) -> list[Message]: ...
    def tool_declarations(self, tools: Sequence[Tool], sources: str) -> Sequence[ToolSpec]: ...
    def parse_reply(self, reply: ChatReply, question: str, tools: Sequence[Tool]) -> ParsedReply: ...


class PromptOptions(Protocol):
    """The options of an agent that shape its prompts (reasoners/humaniq/options.py)."""

    @property
    def sources(self) -> str:
        """Which sources the agent may use: both, text or graph."""

    @property
    def prompt_tokens(self) -> int:
        """The most tokens of a prompt."""

    @property
    def observation_tokens(self) -> int:
        """The token limit of one observation."""


_MIN_DEMONSTRATION_SHARE, _MAX_DEMONSTRATION_SHARE = 1 / 3, 0.6
"""The shares of the room behind instructions and tools that demonstrations may take in any window."""


class PromptBuilder:
    """Builds the prompts of one run in one format."""

    def __init__(self, prompt_format: PromptFormat, task: Task, options: PromptOptions) -> None:
        self.prompt_format = prompt_format
        self.declared_tools = prompt_format.tool_declarations(task.tools, options.sources)
        """The tools to declare in every request of the run."""
        self._question = task.question
        self._tools = task.tools
        self._encode: EncodeFunction = task.context.encode
        self._options = options
        tool_names = None if options.sources == "both" else {tool.name for tool in task.tools}
        examples = (build_example(record, tool_names, options.sources) for record in task.demonstrations)
        self._token_limit = options.prompt_tokens
        self._demonstrations = self._fit_demonstrations([example for example in examples if example.steps])
        room = self._token_limit - self._count_tokens(self._demonstrations)
        self._state = RunState(
            room,
            options.observation_tokens,
            lambda step, max_tokens: self._cut_observation(step, self._question, max_tokens),
        )

    @property
    def demonstration_count(self) -> int:
        """The number of demonstrations in the prompts."""
        return len(self._demonstrations)

    def build_messages(self, steps: Sequence[Step], cue: str = "") -> list[Message]:
        """Build the messages for the next step; PromptTooLong if they cannot fit.

        `steps` are those of the former call and new ones behind them.
        """
        messages = self._write(self._demonstrations, self._state.fit(steps), cue)
        prompt_tokens = count_message_tokens(messages) + count_tool_tokens(self.declared_tools)
        if prompt_tokens > self._token_limit:
            raise PromptTooLong(
                f"The shortest prompt takes about {prompt_tokens:,} tokens, and the context window has room for "
                f"{self._token_limit:,}; use a model with a larger window, or lower the reply limit of its profile."
            )
        return messages

    def _write(self, demonstrations: tuple[PromptExample, ...], steps: tuple[Step, ...], cue: str) -> list[Message]:
        example = PromptExample(self._question, steps)
        return self.prompt_format.messages(
            PromptParts(example, demonstrations, self._tools, self._options.sources, cue)
        )

    def _count_tokens(self, demonstrations: tuple[PromptExample, ...]) -> int:
        """The tokens of the first prompt."""
        return count_message_tokens(self._write(demonstrations, (), "")) + count_tool_tokens(self.declared_tools)

    def _fit_demonstrations(self, examples: Sequence[PromptExample]) -> tuple[PromptExample, ...]:
        """Reduce the demonstrations until they leave enough room for the steps of the run."""
        base = self._count_tokens(())
        room = self._token_limit - base
        budget = min(max(room - STATE_RESERVE, room * _MIN_DEMONSTRATION_SHARE), room * _MAX_DEMONSTRATION_SHARE)
        for cut_count in range(2 * len(examples)):
            fitted = self._cut_examples(examples, cut_count)
            if self._count_tokens(fitted) - base <= budget:
                return fitted
        return ()

    def _cut_examples(self, examples: Sequence[PromptExample], cut_count: int) -> tuple[PromptExample, ...]:
        """The demonstrations after so many reductions."""
        count = len(examples)
        kept_count, uncut_count = count - max(cut_count - count, 0), count - cut_count
        max_tokens = self._options.observation_tokens
        min_tokens = min(MIN_OBSERVATION_TOKENS, max_tokens)
        return tuple(
            replace(
                example,
                steps=tuple(
                    self._cut_observation(step, example.question, max_tokens if index < uncut_count else min_tokens)
                    for step in example.steps
                ),
            )
            for index, example in enumerate(examples[:kept_count])
        )

    def _cut_observation(self, step: Step, question: str, max_tokens: int) -> Step:
        return replace_outcome(step, truncate_observation(step_outcome_text(step), max_tokens, question, self._encode))
