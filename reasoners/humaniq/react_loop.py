"""The ReAct loop: thought, action and observation in turn, until the model gives an answer."""

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from db.models import Step
from db.recording import TraceAnswers, apply_result, build_step
from llm.client import ChatClient
from llm.errors import ChatBadRequest, ChatEmptyReply, ChatInterrupted
from llm.streaming import stream_reply
from llm.types import ChatReply, Message
from llm.usage import Usage
from reasoners.answers.extraction import extract_answers
from reasoners.base import Action, ReasonerError, Task, to_step_result
from reasoners.humaniq.options import AgentOptions
from reasoners.humaniq.tool_order import PipelineStage, find_tool_source, next_stage
from reasoners.prompting.builder import PromptBuilder
from reasoners.prompting.call_parser import ParsedReply, ParsedToolCall
from reasoners.prompting.chat_format import MAX_CALLS_PER_REPLY, ChatFormat
from reasoners.prompting.react_format import ReActFormat
from reasoners.provenance import trace_argument_origins
from tools.tool import ToolResult

MAX_CONSECUTIVE_REJECTIONS = 3
MAX_REJECTIONS = 6
"""Replies that cannot be run, after which a run is given up."""
MAX_THOUGHT_CHARS = 2_000
"""Characters of a thought that are kept."""
_MAX_FAILED_REPEATS = 2


class RunHistory:
    """What was done so far, its first step standing `after` others that it does not look at.

    Steps that were begun and never finished show nothing and are passed over.
    """

    def __init__(self, question: str, taken: Sequence[Step], after: int = 0) -> None:
        self.question = question
        self.steps = [
            step for step in taken if step.tool is None or step.observation is not None or step.error is not None
        ]
        self.last_position = taken[-1].position if taken else after
        self._key = taken[0].trace_id if taken else uuid4()
        self._consecutive_rejections = 0
        self._rejections = 0

    def build_action(self, thought: str, call: ParsedToolCall, usage: dict[str, Any] | None) -> Action:
        """The call as an action, or why it is not to be run again."""
        if again := self._check_repetition(call):
            return Action(truncate_thought(thought) or _format_call(call), usage=usage, rejection=again)
        data = {step.position: step.data for step in self.steps}
        origins = trace_argument_origins(call.arguments, self.question, data)
        return Action(truncate_thought(thought), call.tool, call.arguments, origins, usage)

    def _check_repetition(self, call: ParsedToolCall) -> str | None:
        same = [step for step in self.steps if (step.tool, step.arguments) == (call.tool, call.arguments)]
        seen = next((step for step in same if step.observation is not None), None)
        if seen is not None:
            return (
                f"This very call was made in step {seen.position}, and what it returned stands there. "
                f"Do something else, or give the answer."
            )
        if len(same) >= _MAX_FAILED_REPEATS:
            return (
                f"This call failed {len(same)} times already. Use other arguments or another tool, or give the answer."
            )
        return None

    @property
    def last_source(self) -> str | None:
        """What was seen last: text or graph; the model itself where nothing was, None of other people's tools."""
        seen = [step.tool for step in self.steps if step.tool is not None and step.observation is not None]
        return find_tool_source(seen[-1]) if seen else "model"

    def add_step(self, action: Action, outcome: ToolResult | None) -> None:
        """Remember a step with what came of it; ReasonerError when too many could not be run."""
        self.last_position += 1
        step = build_step(self._key, self.last_position, action.to_new_step())
        if step.finished_at is None and outcome is not None:
            apply_result(step, to_step_result(outcome))
        self.steps.append(step)
        self._count_rejections(action.rejection)

    def _count_rejections(self, refused: str | None) -> None:
        if refused is None:
            self._consecutive_rejections = 0
            return
        self._consecutive_rejections += 1
        self._rejections += 1
        if self._consecutive_rejections >= MAX_CONSECUTIVE_REJECTIONS or self._rejections >= MAX_REJECTIONS:
            often = (
                f"{self._consecutive_rejections} in a row"
                if self._consecutive_rejections >= MAX_CONSECUTIVE_REJECTIONS
                else f"{self._rejections} in all"
            )
            raise ReasonerError(
                f"The model wrote replies that cannot be run, {often}, the last because: {refused} "
                f"Try another model, or fix the trace from the step before."
            )


def truncate_thought(thought: str) -> str:
    """The thought, of a very long one the beginning."""
    left = len(thought) - MAX_THOUGHT_CHARS
    return thought if left <= 0 else f"{thought[:MAX_THOUGHT_CHARS]} ... {left:,} more characters left out"


def _format_call(call: ParsedToolCall) -> str:
    return f"{call.tool}({json.dumps(call.arguments, ensure_ascii=False)})"


_TOOLS_UNSUPPORTED, _STOP_UNSUPPORTED = "refuses tools", "refuses stop sequences"
"""Learnt of a server that named them when it refused a request, and that took one without."""
_MENTIONS_TOOLS, _MENTIONS_STOP = (
    re.compile(r"\b(?:tool|function)", re.IGNORECASE),
    re.compile(r"\bstop\b", re.IGNORECASE),
)
_CALL_LIMIT_NOTICE = f"Only the first {MAX_CALLS_PER_REPLY} calls of a reply are run;"
_CALL_LIMIT_ADVICE = "Read what they returned, then make those that are still needed."


@dataclass(frozen=True, slots=True)
class ReActResult:
    """The result of a loop; the final answer is empty if there is none."""

    answers: TraceAnswers
    steps: Sequence[Step]
    usage: Usage
    """Of the call that ended it."""
    prompt_format: str
    demonstration_count: int
    """So many had room in the last prompt."""


class ReActLoop:
    """One run of the loop, which begins `after` so many steps of others."""

    def __init__(self, task: Task, setup: AgentOptions, chat: ChatClient, *, after: int = 0) -> None:
        self._task = task
        self._setup = setup
        self._chat = chat.with_purpose("step")
        self._history = RunHistory(task.question, task.prior_steps, after)
        as_text = setup.form == "text" or (setup.form == "auto" and _TOOLS_UNSUPPORTED in chat.known_limitations)
        self._prompting = PromptBuilder(ReActFormat() if as_text else ChatFormat(), task, setup)

    @property
    def last_position(self) -> int:
        """Of the last step there is."""
        return self._history.last_position

    def build_prompt(self) -> Sequence[Message]:
        """What the model would be sent now."""
        return self._build_messages(self._current_stage())

    def run(self) -> Generator[Action, ToolResult | None, ReActResult]:
        """Act until there is an answer."""
        while True:
            now = self._current_stage()
            decision, usage = self._next_reply(now)
            decision = now.check_reply(decision)
            if decision.final_answer is not None:
                last, sources = self._history.last_source, self._setup.sources
                answers = extract_answers(decision.final_answer, decision.thought, last, sources)
                prompting = self._prompting
                return ReActResult(
                    answers, self._history.steps, usage, prompting.prompt_format.name, prompting.demonstration_count
                )
            if decision.rejection is not None:
                refused = Action(
                    truncate_thought(decision.thought), usage=usage.to_json(), rejection=decision.rejection
                )
                self._history.add_step(refused, (yield refused))
            for place, call in enumerate(decision.calls):
                thought = decision.thought if place == 0 else ""
                action = self._history.build_action(thought, call, usage.to_json() if place == 0 else None)
                self._history.add_step(action, (yield action))
            if decision.skipped_calls:
                refused = Action(
                    "",
                    rejection=f"{_CALL_LIMIT_NOTICE} {decision.skipped_calls} more were left out. {_CALL_LIMIT_ADVICE}",
                )
                self._history.add_step(refused, (yield refused))

    def _next_reply(self, now: PipelineStage) -> tuple[ParsedReply, Usage]:
        try:
            reply = self._request_reply(now)
        except (ChatInterrupted, ChatEmptyReply) as broken:
            return ParsedReply("", rejection=str(broken)), broken.usage or Usage()
        return self._prompting.prompt_format.parse_reply(reply, self._task.question, now.tools), reply.usage

    def _request_reply(self, now: PipelineStage) -> ChatReply:
        """The reply, asked for without what the server refuses."""
        learnt: set[str] = set()
        while True:
            form = self._prompting.prompt_format
            stop = () if _STOP_UNSUPPORTED in learnt | self._chat.known_limitations else form.stop_sequences
            tools = form.tool_declarations(now.tools)
            try:
                reply = stream_reply(self._chat, self._build_messages(now), stop, tools, self._task.on_text)
            except ChatBadRequest as refused:
                learnt |= self._disable_rejected_feature(refused, stop)
            else:
                self._chat.known_limitations.update(learnt)
                return reply

    def _disable_rejected_feature(self, refused: ChatBadRequest, stop: Sequence[str]) -> set[str]:
        """Leave out what the server may have meant, and give what it has named; the refusal where that is nothing."""
        if self._setup.form == "auto" and self._prompting.prompt_format.name != ReActFormat.name:
            self._prompting = PromptBuilder(ReActFormat(), self._task, self._setup)
            return {_TOOLS_UNSUPPORTED} if _MENTIONS_TOOLS.search(str(refused)) else set()
        if stop and _MENTIONS_STOP.search(str(refused)):
            return {_STOP_UNSUPPORTED}
        raise refused

    def _current_stage(self) -> PipelineStage:
        return next_stage(self._setup.pipeline, self._task.tools, self._history.steps)

    def _build_messages(self, now: PipelineStage) -> list[Message]:
        return self._prompting.build_messages(self._history.steps, now.tools, now.instruction)
