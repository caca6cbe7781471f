"""Late fusion, the paper's baseline: text and graph are asked in separate pipelines, then the answers are merged."""

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

from db.models import Step
from db.recording import TraceAnswers
from llm.client import ChatClient
from llm.usage import Usage
from reasoners.answers.agreement import measure_agreement
from reasoners.answers.extraction import NO_ANSWER
from reasoners.base import Action, FinalAnswer, QuestionRefused, ReasonerError, ReasonerGenerator, Task
from reasoners.humaniq.agent import require_model
from reasoners.humaniq.options import AgentOptions
from reasoners.humaniq.react_loop import ReActLoop, ReActResult
from reasoners.humaniq.response import ResponseWriter
from reasoners.humaniq.tool_order import restrict_to_sources
from tools.tool import ToolResult

FUSION_NAME = "fusion"
PIPELINE_SOURCES = ("text", "graph")
ANSWER_NODES = {"text": "text answer", "graph": "graph answer"}
"""The node of the step that ends a pipeline; the node of its other steps is the source."""
_ANSWER_PREFIXES = {"text": "From text only: ", "graph": "From the graph only: "}


@dataclass(frozen=True, slots=True)
class LateFusion:
    """Two independent agents, one for each kind of source, and a merge of their answers."""

    options: AgentOptions = field(default_factory=AgentOptions)
    chat: ChatClient | None = None
    """The model that reasons, if it is not the one of the task's tools."""
    name: str = field(default=FUSION_NAME, init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Ask the texts, then the graph, then merge; each pipeline's answer is a step of its own."""
        chat = self.chat or require_model(task)
        answer_of: dict[str, str | None] = {}
        last_position = 0
        for source in PIPELINE_SOURCES:
            end = _find_answer_step(task.prior_steps, source)
            if end is None:
                answer_of[source], last_position = yield from self._run_pipeline(source, task, chat, last_position)
            else:
                answer_of[source], last_position = (end.data or {}).get("answer"), end.position
        answers = TraceAnswers("", answer_text=answer_of["text"], answer_graph=answer_of["graph"])
        if self.options.merge == "random":
            return self._choose_randomly(task.question, answers)
        return (yield from ResponseWriter(self.options, task, chat).write_final_answer(answers, (), Usage()))

    def _run_pipeline(
        self, source: str, task: Task, chat: ChatClient, after: int
    ) -> Generator[Action, ToolResult | None, tuple[str | None, int]]:
        """Return the answer of this source alone, which becomes a step, and that step's position."""
        own_steps = [step for step in task.prior_steps if step.node == source]
        restricted = restrict_to_sources(replace(task, prior_steps=own_steps), source)
        loop = ReActLoop(restricted, replace(self.options, sources=source), chat, after=after)
        answer, usage, failure = None, Usage(), ""
        try:
            result: ReActResult = yield from _set_node(loop.run(), source)
            answer, usage = result.answers.final_answer or None, result.usage
        except ReasonerError as failed:
            # The other source may still answer.
            failure = f"\n{failed}"
        thought = f"{_ANSWER_PREFIXES[source]}{' '.join((answer or NO_ANSWER).split())}{failure}"
        yield Action(
            thought,
            usage=usage.to_json() if usage.calls else None,
            node=ANSWER_NODES[source],
            data={"answer": answer},
        )
        return answer, loop.last_position + 1

    def _choose_randomly(self, question: str, answers: TraceAnswers) -> FinalAnswer:
        candidates = [answer for answer in (answers.answer_text, answers.answer_graph) if answer is not None]
        if not candidates:
            raise QuestionRefused("Neither pipeline found an answer to this question.")
        # The same question gets the same answer in every run.
        chosen = random.Random(f"{self.options.seed} {question}").choice(candidates)  # noqa: S311 - no secret
        agreement = measure_agreement({"text": answers.answer_text, "graph": answers.answer_graph})
        return FinalAnswer(replace(answers, final_answer=chosen), details={"agreement": agreement.to_json()})


def _find_answer_step(steps: Sequence[Step], source: str) -> Step | None:
    return next((step for step in steps if step.node == ANSWER_NODES[source]), None)


def _set_node(
    actions: Generator[Action, ToolResult | None, ReActResult], node: str
) -> Generator[Action, ToolResult | None, ReActResult]:
    """The same actions, each at this node."""
    outcome: ToolResult | None = None
    while True:
        try:
            action = actions.send(outcome)
        except StopIteration as end:
            result: ReActResult = end.value
            return result
        outcome = yield replace(action, node=node)
