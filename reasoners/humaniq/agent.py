"""The HumanIQ agent: a language model with tools that imitates few-shot demonstrations by people.

The order of its tools is chosen by the model (dynamic), or fixed as in the paper's structured pipeline (static). A
task's tools can be restricted to one kind of source, for agents that may use only text or only the graph.
"""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from showhow.db.models import Step
from showhow.db.questions.answer_formats import AnswerKind, InvalidAnswer
from showhow.db.traces.recording import TraceAnswers, apply_result, build_step
from showhow.llm.client import ChatClient
from showhow.llm.errors import ChatEmptyReply, ChatError, ChatInterrupted
from showhow.llm.limitations import STOP_UNSUPPORTED, TOOLS_UNSUPPORTED
from showhow.llm.types import ChatReply, Message
from showhow.llm.usage import Usage
from showhow.reasoners.answers.extraction import extract_answers, final_or_empty, strip_answer_markup, strip_code_fence
from showhow.reasoners.base import (
    Action,
    FinalAnswer,
    NoUsableReply,
    QuestionRefused,
    ReasonerError,
    ReasonerGenerator,
    Task,
    to_step_result,
)
from showhow.reasoners.humaniq.options import AgentOptions
from showhow.reasoners.humaniq.response import ResponseWriter
from showhow.reasoners.prompting.builder import PARALLEL_NODE_PREFIX, PromptBuilder, group_parallel_steps, render_prompt
from showhow.reasoners.prompting.call_parser import ParsedReply, ParsedToolCall
from showhow.reasoners.prompting.chat_format import ChatFormat
from showhow.reasoners.prompting.react_format import ReActFormat
from showhow.reasoners.provenance import trace_argument_origins
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import SourceKind, Tool, ToolResult

# Entity search counts as a graph tool; in the paper's pipeline only the query writer maps names to ids.
_SOURCE_KINDS: Mapping[str, tuple[SourceKind, ...]] = {
    "text": (SourceKind.TEXT, SourceKind.WEB),
    "graph": (SourceKind.GRAPH,),
}
MAX_CONSECUTIVE_REJECTIONS = 3
MAX_REJECTIONS = 6
"""The rejected replies of a run after which it fails."""
MAX_THOUGHT_CHARS = 2_000
"""Longer thoughts are truncated."""
_MAX_FAILED_REPEATS = 2


def find_tool_source(tool: str) -> str | None:
    """Return the kind of source that the tool queries, "text" or "graph"; None for an external tool."""
    kind = BUILT_IN_TOOLS[tool].source if tool in BUILT_IN_TOOLS else None
    return next((sources for sources, kinds in _SOURCE_KINDS.items() if kind in kinds), None)


def restrict_to_sources(task: Task, sources: str) -> Task:
    """Return the task with only the tools of these sources; "both" keeps all tools, including external ones."""
    tools = select_tools(task.tools, sources)
    if not tools:
        raise ReasonerError(f"No tool offered here uses the {sources}; choose other sources.")
    return replace(task, tools=tools)


def select_tools(tools: Sequence[Tool], sources: str) -> list[Tool]:
    """The tools of these sources; "both" keeps all, including external ones."""
    return [tool for tool in tools if sources == "both" or tool.source in _SOURCE_KINDS[sources]]


STATIC_TOOL_ORDER = ("wikisearch", "getWikiDataID", "generateQuery", "runQuery", "getLabel")


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """What the model may do next. All tools stay declared, so that the beginning of the prompt stays the same."""

    instruction: str = ""
    required_tool: str | None = None
    """The only tool that may be called now; empty if only the answer is left, None for a free choice."""

    def check_reply(self, reply: ParsedReply) -> ParsedReply:
        """Return the reply, or a rejection if it does not fit this stage."""
        if self.required_tool is None or reply.rejection is not None:
            return reply
        is_wrong = any(call.tool != self.required_tool for call in reply.calls) or (
            bool(self.required_tool) and reply.ends_run
        )
        if is_wrong:
            thought = reply.finish.thought if reply.finish is not None else reply.thought
            return ParsedReply(thought or reply.final_answer or "", rejection=self.instruction)
        return replace(reply, calls=reply.calls[:1], notice=None)


def next_stage(pipeline: str, tools: Sequence[Tool], steps: Sequence[Step]) -> PipelineStage:
    """Return the stage after these steps; `pipeline` is "dynamic" or "static"."""
    if pipeline == "dynamic":
        return PipelineStage()
    offered = {tool.name: tool for tool in tools}
    called = {step.tool for step in steps}
    next_tool = next((offered[name] for name in STATIC_TOOL_ORDER if name in offered and name not in called), None)
    if next_tool is None:
        return PipelineStage(render_prompt("cue", tool="", several=False), "")
    several = len(next_tool.parameters) > 1
    return PipelineStage(render_prompt("cue", tool=next_tool.name, several=several), next_tool.name)


class RunHistory:
    """The steps of a run so far; `after` is the position of the last step before its own.

    Tool calls that were begun but never finished are left out.
    """

    def __init__(self, question: str, prior_steps: Sequence[Step], after: int = 0) -> None:
        self.question = question
        self.steps = [
            step for step in prior_steps if step.tool is None or step.observation is not None or step.error is not None
        ]
        self.last_position = prior_steps[-1].position if prior_steps else after
        self._trace_id = prior_steps[0].trace_id if prior_steps else uuid4()
        self._consecutive_rejections = 0
        self._rejections = 0

    def build_action(self, thought: str, call: ParsedToolCall, usage: dict[str, Any] | None) -> Action:
        """Build the action of a call; a repeated call becomes an action with a rejection.

        `thought` is that of the message, for a call without its own.
        """
        thought = call.thought or thought
        if repetition := self._check_repetition(call):
            return Action(truncate_thought(thought) or _format_call(call), usage=usage, rejection=repetition)
        data_by_step = {step.position: step.data for step in self.steps}
        origins = trace_argument_origins(call.arguments, self.question, data_by_step)
        return Action(truncate_thought(thought), call.tool, call.arguments, origins, usage)

    def _check_repetition(self, call: ParsedToolCall) -> str | None:
        same_calls = [step for step in self.steps if (step.tool, step.arguments) == (call.tool, call.arguments)]
        answered = next((step for step in same_calls if step.observation is not None), None)
        if answered is not None:
            return (
                f"This very call was made in step {answered.position}, and what it returned stands there. "
                f"Do something else, or give the answer."
            )
        if len(same_calls) >= _MAX_FAILED_REPEATS:
            return (
                f"This call failed {len(same_calls)} times already. "
                "Use other arguments or another tool, or give the answer."
            )
        return None

    @property
    def last_source(self) -> str | None:
        """The source of the last observation: text or graph, None for an external tool, model if there is none."""
        tools = [step.tool for step in self.steps if step.tool is not None and step.observation is not None]
        return find_tool_source(tools[-1]) if tools else "model"

    def add_step(self, action: Action, outcome: ToolResult | None) -> None:
        """Append the step with its result; NoUsableReply after too many rejected replies."""
        self.last_position += 1
        step = build_step(self._trace_id, self.last_position, action.to_new_step())
        if step.finished_at is None and outcome is not None:
            apply_result(step, to_step_result(outcome))
        self.steps.append(step)
        self._count_rejections(action.rejection)

    def _count_rejections(self, rejection: str | None) -> None:
        if rejection is None:
            self._consecutive_rejections = 0
            return
        self._consecutive_rejections += 1
        self._rejections += 1
        if self._consecutive_rejections >= MAX_CONSECUTIVE_REJECTIONS or self._rejections >= MAX_REJECTIONS:
            count = (
                f"{self._consecutive_rejections} in a row"
                if self._consecutive_rejections >= MAX_CONSECUTIVE_REJECTIONS
                else f"{self._rejections} in all"
            )
            raise NoUsableReply(
                f"The model wrote replies that cannot be run, {count}; try another model. The last: {rejection}"
            )


def truncate_thought(thought: str) -> str:
    """The thought, truncated to MAX_THOUGHT_CHARS with a notice."""
    omitted = len(thought) - MAX_THOUGHT_CHARS
    return thought if omitted <= 0 else f"{thought[:MAX_THOUGHT_CHARS]} ... {omitted:,} more characters left out"


def _format_call(call: ParsedToolCall) -> str:
    return f"{call.tool}({json.dumps(call.arguments, ensure_ascii=False)})"


_MENTIONS_TOOLS, _MENTIONS_STOP = (
    re.compile(r"\b(?:tool|function)", re.IGNORECASE),
    re.compile(r"\bstop\b", re.IGNORECASE),
)


@dataclass(frozen=True, slots=True)
class ReActResult:
    """The result of a loop; the final answer is empty if the model has none."""

    answers: TraceAnswers
    steps: Sequence[Step]
    usage: Usage
    """The usage of the last model call, which gave the answer."""
    prompt_format: str
    demonstration_count: int
    """The number of demonstrations in the prompts."""
    details: dict[str, Any] = field(default_factory=dict)
    """The answers as a list and the steps that show them, as a trace's result stores them."""

    @property
    def expected_model_calls(self) -> int:
        """One for each message with calls, and one for the answer."""
        return _count_rounds(self.steps) + 1


def _count_rounds(steps: Sequence[Step]) -> int:
    """The messages of the model that called tools; several calls of a message are one round."""
    return sum(group[0].tool is not None for group in group_parallel_steps(steps))


class ReActLoop:
    """One run of the loop; its steps are numbered from `after` + 1.

    After `rounds` messages the next one has to answer, or the question is refused.
    """

    def __init__(
        self, task: Task, options: AgentOptions, chat: ChatClient, *, after: int = 0, rounds: int | None = None
    ) -> None:
        self._task = task
        self._rounds = rounds
        self._options = options
        self._chat = chat.with_purpose("step")
        self._history = RunHistory(task.question, task.prior_steps, after)
        as_text = options.form == "text" or (options.form == "auto" and TOOLS_UNSUPPORTED in chat.known_limitations)
        self._prompt_builder = self._build_prompts(ReActFormat if as_text else ChatFormat)

    def _build_prompts(self, prompt_format: type[ChatFormat | ReActFormat]) -> PromptBuilder:
        task = self._task
        return PromptBuilder(prompt_format(task.instruction, task.answer_format), task, self._options)

    @property
    def last_position(self) -> int:
        """The position of the last step."""
        return self._history.last_position

    def build_prompt(self) -> Sequence[Message]:
        """Return the messages of the next request."""
        return self._prompt_builder.build_messages(self._history.steps, self._current_stage().instruction)

    def run(self) -> Generator[Action, ToolResult | None, ReActResult]:
        """Yield actions until the model answers."""
        while True:
            self._check_rounds()
            stage = self._current_stage()
            reply, usage = self._next_reply()
            reply = stage.check_reply(reply)
            if reply.ends_run and self._task.answer_format.kind != AnswerKind.TEXT:
                reply = self._check_answer(reply)
            if reply.ends_run:
                return self._conclude(reply, usage)
            if self._messages == self._rounds:
                limit = f"The limit of {self._rounds} rounds is reached, and this reply is no answer."
                reply = ParsedReply(reply.thought, rejection=limit)
            if reply.rejection is not None:
                rejected = Action(truncate_thought(reply.thought), usage=usage.to_json(), rejection=reply.rejection)
                self._history.add_step(rejected, (yield rejected))
            # Calls of one message share a node, so that the history retells them in one message.
            node = f"{PARALLEL_NODE_PREFIX}{self.last_position + 1}" if len(reply.calls) > 1 else None
            for index, call in enumerate(reply.calls):
                thought = reply.thought if index == 0 else ""
                action = self._history.build_action(thought, call, usage.to_json() if index == 0 else None)
                action = replace(action, node=node if action.tool is not None else None)
                self._history.add_step(action, (yield action))
            if reply.notice is not None:
                rejected = Action("", rejection=reply.notice)
                self._history.add_step(rejected, (yield rejected))

    @property
    def _messages(self) -> int:
        """The messages of the model so far; the first step of each has its usage."""
        return sum("thought" in step.usage for step in self._history.steps)

    def _check_rounds(self) -> None:
        """QuestionRefused if a message after the last round was no answer."""
        if self._rounds is None or self._messages <= self._rounds:
            return
        calls = _count_rounds(self._history.steps) + 1
        raise QuestionRefused(f"There is no answer after {self._rounds} rounds; allow more of them.", calls)

    def _check_answer(self, reply: ParsedReply) -> ParsedReply:
        """The reply with an answer of the task's format, or a rejection; QuestionRefused if it says there is none."""
        thought = reply.finish.thought if reply.finish is not None else reply.thought
        text, is_found = self._read_final_answer(reply.final_answer or "")
        is_found = reply.finish.is_done if reply.finish is not None else is_found
        if not is_found:
            calls = _count_rounds(self._history.steps) + 1
            raise QuestionRefused(f"The model says that it cannot be done: {truncate_thought(thought) or text}", calls)
        try:
            answer = self._task.answer_format.normalize(reply.finish.value or "" if reply.finish is not None else text)
        except InvalidAnswer as error:
            return ParsedReply(thought or text, rejection=f"{error} Then give the answer again.")
        return replace(reply, thought=thought, final_answer=answer)

    def _read_final_answer(self, answer: str) -> tuple[str, bool]:
        """The text after `Final Answer:`, and whether it is an answer; words inside a JSON value never deny one."""
        if self._task.answer_format.kind == AnswerKind.JSON:
            text = strip_code_fence(answer)
            return text, text.strip(' ."').casefold() not in ("", "unknown")
        text = strip_answer_markup(answer)
        return text, bool(final_or_empty(text))

    def _conclude(self, reply: ParsedReply, usage: Usage) -> ReActResult:
        steps, last_source, sources = self._history.steps, self._history.last_source, self._options.sources
        details: dict[str, Any] = {}
        if self._task.answer_format.kind != AnswerKind.TEXT:
            answers = TraceAnswers(reply.final_answer or "", final_thought=truncate_thought(reply.thought) or None)
        elif reply.finish is not None:
            finish = replace(reply.finish, thought=truncate_thought(reply.finish.thought))
            answers = finish.to_answers(last_source, sources)
            observed = {step.position for step in steps if step.observation is not None}
            cited = [position for position in reply.finish.steps if position in observed]
            if reply.finish.answers:
                details = {"answers": list(reply.finish.answers)} | ({"cited_steps": cited} if cited else {})
        else:
            answers = extract_answers(reply.final_answer or "", reply.thought, last_source, sources)
        builder = self._prompt_builder
        name, count = builder.prompt_format.name, builder.demonstration_count
        return ReActResult(answers, steps, usage, name, count, details)

    def _next_reply(self) -> tuple[ParsedReply, Usage]:
        try:
            reply = self._request_reply()
        except (ChatInterrupted, ChatEmptyReply) as error:
            return ParsedReply("", rejection=str(error)), error.usage or Usage()
        return self._prompt_builder.prompt_format.parse_reply(reply, self._task.question, self._task.tools), reply.usage

    def _request_reply(self) -> ChatReply:
        """Request a reply; if the server refuses the request, retry without the features that it does not support."""
        limitations: set[str] = set()
        while True:
            prompt_format = self._prompt_builder.prompt_format
            stop = (
                () if STOP_UNSUPPORTED in limitations | self._chat.known_limitations else prompt_format.stop_sequences
            )
            tools = self._prompt_builder.declared_tools
            try:
                reply = self._chat.ask(self.build_prompt(), stop=stop, tools=tools, on_text=self._task.on_text)
            except ChatError as error:
                if not error.is_refusal:
                    raise
                limitations |= self._disable_rejected_feature(error, stop)
            else:
                self._chat.known_limitations.learn(limitations)
                return reply

    def _disable_rejected_feature(self, error: ChatError, stop: Sequence[str]) -> set[str]:
        """Disable a feature that may have caused the error, and return the limitations that the error names.

        Raises the error again if no feature is left to disable.
        """
        if self._options.form == "auto" and self._prompt_builder.prompt_format.name != ReActFormat.name:
            declared = self._prompt_builder.declared_tools
            self._prompt_builder = self._build_prompts(ReActFormat)
            # What is said of one tool is no refusal of tools.
            is_about_one = any(re.search(rf"\b{re.escape(tool.name)}\b", str(error)) for tool in declared)
            is_about_tools = _MENTIONS_TOOLS.search(str(error)) and not is_about_one
            return {TOOLS_UNSUPPORTED} if is_about_tools else set()
        if stop and _MENTIONS_STOP.search(str(error)):
            return {STOP_UNSUPPORTED}
        raise error

    def _current_stage(self) -> PipelineStage:
        return next_stage(self._options.pipeline, self._task.tools, self._history.steps)


@dataclass(frozen=True, slots=True)
class HumanIQ:
    """The agent; one instance can solve many tasks at the same time."""

    options: AgentOptions = field(default_factory=AgentOptions)
    chat: ChatClient | None = None
    """The model that reasons; None uses the model of the task's tools."""
    name: str = field(default="humaniq", init=False)
    rounds: int | None = None
    """The most messages with calls of tools; None for no limit but that of the run's steps."""
    after: int = 0
    """The position of the last step that is not its own."""

    def solve(self, task: Task) -> ReasonerGenerator:
        """Run the ReAct loop until the model answers, then write the response."""
        chat = self.chat or require_model(task)
        options = fit_to_model(self.options, chat)
        task = restrict_to_sources(task, options.sources)
        loop = ReActLoop(task, options, chat, after=self.after, rounds=self.rounds)
        result: ReActResult = yield from loop.run()
        # Only the loop's own calls are planned; a response may take further ones.
        expected = result.expected_model_calls if options.response == "none" else None
        if not task.has_sources or task.answer_format.kind != AnswerKind.TEXT:
            # There are no sources whose answers could be compared.
            if task.answer_format.kind == AnswerKind.TEXT and not result.answers.final_answer:
                raise QuestionRefused("The tools gave no answer to this question.")
            final = FinalAnswer(result.answers, result.usage.to_json())
            return self._with_details(final, result, result.expected_model_calls)
        try:
            final = yield from ResponseWriter(options, task, chat).write_final_answer(
                result.answers, result.steps, result.usage
            )
        except QuestionRefused as refusal:
            refusal.expected_model_calls = expected
            raise
        return self._with_details(final, result, expected)

    @staticmethod
    def _with_details(final: FinalAnswer, result: ReActResult, expected_model_calls: int | None) -> FinalAnswer:
        prompt = {"prompt_format": result.prompt_format, "demonstrations_shown": result.demonstration_count}
        details = {**prompt, **result.details, **final.details}
        return replace(final, details=details, expected_model_calls=expected_model_calls)

    def build_prompt(self, task: Task) -> Sequence[Message]:
        """Return the messages of the next request, after the task's prior steps."""
        task = restrict_to_sources(task, self.options.sources)
        chat = self.chat or require_model(task)
        return ReActLoop(task, fit_to_model(self.options, chat), chat).build_prompt()


def fit_to_model(options: AgentOptions, chat: ChatClient) -> AgentOptions:
    """The options with the context window and the reply limit of the client's model."""
    return options.fit_to_model(chat.profile.context_window, chat.profile.reply_limit)


def require_model(task: Task) -> ChatClient:
    """Return the task's language model; ReasonerError if it has none."""
    if task.context.chat is None:
        raise ReasonerError(
            "This reasoner needs a language model: add a profile on the Settings page, or use the reasoner replay."
        )
    return task.context.chat
