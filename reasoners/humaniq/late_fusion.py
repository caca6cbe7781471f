"""Late fusion, the paper's baseline: separate pipelines query text and graph, then their answers are merged."""

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from showhow.db.models import Step
from showhow.db.traces.recording import TraceAnswers
from showhow.llm.client import ChatClient
from showhow.llm.usage import Usage
from showhow.reasoners.answers.extraction import NO_ANSWER
from showhow.reasoners.answers.normalization import measure_agreement
from showhow.reasoners.base import (
    Action,
    FinalAnswer,
    NoUsableReply,
    QuestionRefused,
    ReasonerError,
    ReasonerGenerator,
    Task,
)
from showhow.reasoners.humaniq.agent import ReActLoop, ReActResult, fit_to_model, require_model, restrict_to_sources
from showhow.reasoners.humaniq.options import AgentOptions
from showhow.reasoners.humaniq.response import ResponseWriter
from showhow.reasoners.prompting.builder import PARALLEL_NODE_PREFIX
from showhow.tools.tool import ToolResult

FUSION_NAME = "fusion"
PIPELINE_SOURCES = ("text", "graph")
ANSWER_NODES = {"text": "text answer", "graph": "graph answer"}
"""The node of the step that ends a pipeline; the node of its other steps begins with the source."""
PUBLISHED_TOOLS = {"text": ("wikisearch", "read"), "graph": ("generateQuery", "runQuery", "getLabel")}
"""The tools of the paper's pipelines (RQ4)."""
_ANSWER_PREFIXES = {"text": "From text only: ", "graph": "From the graph only: "}


@dataclass(frozen=True, slots=True)
class LateFusion:
    """Two independent agents, one for text and one for the graph, whose answers are merged."""

    options: AgentOptions = field(default_factory=AgentOptions)
    chat: ChatClient | None = None
    """The model that reasons; None uses the model of the task's tools."""
    name: str = field(default=FUSION_NAME, init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Run the text pipeline, then the graph pipeline, then merge; each pipeline's answer is stored as a step."""
        chat = self.chat or require_model(task)
        options = fit_to_model(self.options, chat)
        answer_by_source: dict[str, str | None] = {}
        failures: dict[str, str] = {}
        last_position = 0
        for source in PIPELINE_SOURCES:
            answer_step = _find_answer_step(task.prior_steps, source)
            if answer_step is None:
                data, last_position = yield from self._run_pipeline(
                    replace(options, sources=source), task, chat, last_position
                )
            else:
                data, last_position = answer_step.data or {}, answer_step.position
            answer_by_source[source] = data.get("answer")
            failures |= {source: data["failure"]} if data.get("failure") else {}
        if len(failures) == len(PIPELINE_SOURCES):
            raise NoUsableReply(failures[PIPELINE_SOURCES[0]])
        answers = TraceAnswers("", answer_text=answer_by_source["text"], answer_graph=answer_by_source["graph"])
        if self.options.merge == "random":
            return self._choose_randomly(task.question, answers)
        return (yield from ResponseWriter(options, task, chat).write_final_answer(answers, (), Usage()))

    def _run_pipeline(
        self, options: AgentOptions, task: Task, chat: ChatClient, after: int
    ) -> Generator[Action, ToolResult | None, tuple[dict[str, Any], int]]:
        """Run the pipeline of one source; return its answer or failure, and the position of the step that stores it."""
        source = options.sources
        own_steps = [step for step in task.prior_steps if _belongs_to(step, source)]
        restricted = restrict_to_sources(replace(task, prior_steps=own_steps), source)
        if options.fusion_tools == "published":
            tools = [tool for tool in restricted.tools if tool.name in PUBLISHED_TOOLS[source]]
            if not tools:
                raise ReasonerError(f"This pipeline needs {', '.join(PUBLISHED_TOOLS[source])}; none is offered here.")
            restricted = replace(restricted, tools=tools)
        loop = ReActLoop(restricted, options, chat, after=after)
        answer, usage, failure, is_failed = None, Usage(), "", False
        try:
            result: ReActResult = yield from _set_node(loop.run(), source)
            answer, usage = result.answers.final_answer or None, result.usage
        except ReasonerError as error:
            # The pipeline of the other source may still answer.
            failure, is_failed = f"\n{error}", not isinstance(error, QuestionRefused)
        data = {"answer": answer} | ({"failure": failure.strip()} if is_failed else {})
        thought = f"{_ANSWER_PREFIXES[source]}{' '.join((answer or NO_ANSWER).split())}{failure}"
        yield Action(
            thought,
            usage=usage.to_json() if usage.calls else None,
            node=ANSWER_NODES[source],
            data=data,
        )
        return data, loop.last_position + 1

    def _choose_randomly(self, question: str, answers: TraceAnswers) -> FinalAnswer:
        candidates = [answer for answer in (answers.answer_text, answers.answer_graph) if answer is not None]
        if not candidates:
            raise QuestionRefused("Neither pipeline found an answer to this question.")
        # Seeded by the question, so that repeated runs choose the same answer.
        chosen = random.Random(f"{self.options.seed} {question}").choice(candidates)  # noqa: S311 - no secret
        agreement = measure_agreement({"text": answers.answer_text, "graph": answers.answer_graph})
        return FinalAnswer(replace(answers, final_answer=chosen), details={"agreement": agreement.to_json()})


def _find_answer_step(steps: Sequence[Step], source: str) -> Step | None:
    return next((step for step in steps if step.node == ANSWER_NODES[source]), None)


def _belongs_to(step: Step, source: str) -> bool:
    return step.node == source or (step.node or "").startswith(f"{source} {PARALLEL_NODE_PREFIX}")


def _set_node(
    actions: Generator[Action, ToolResult | None, ReActResult], source: str
) -> Generator[Action, ToolResult | None, ReActResult]:
    """Yield the same actions with the source as their node, before the node of calls that came in one message."""
    outcome: ToolResult | None = None
    while True:
        try:
            action = actions.send(outcome)
        except StopIteration as end:
            result: ReActResult = end.value
            return result
        outcome = yield replace(action, node=" ".join(filter(None, (source, action.node))))
