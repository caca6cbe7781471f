"""Late fusion, the paper's baseline: text and graph are asked in separate pipelines, then the answers are merged."""

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

from db.models import Step
from db.recording import TraceAnswers
from llm.client import ChatClient
from llm.types import TextDelta
from llm.usage import Usage
from reasoners.answers.agreement import measure_agreement
from reasoners.answers.extraction import NO_ANSWER, strip_or_none
from reasoners.base import Action, FinalAnswer, QuestionRefused, ReasonerError, ReasonerGenerator, Task
from reasoners.humaniq.agent import require_model
from reasoners.humaniq.options import AgentOptions
from reasoners.humaniq.react_loop import ReActLoop, ReActResult
from reasoners.humaniq.response import ResponseWriter
from reasoners.humaniq.tool_order import restrict_to_sources
from tools.tool import ToolResult

FUSION_NAME = "fusion"
PIPELINE_SOURCES = ("text", "graph")
_ANSWER_PREFIXES = {"text": "From text only: ", "graph": "From the graph only: "}


@dataclass(frozen=True, slots=True)
class LateFusion:
    """Two agents that know nothing of each other, and a merge."""

    options: AgentOptions = field(default_factory=AgentOptions)
    stream: bool = True
    chat: ChatClient | None = None
    """The model that reasons, where it is not the one that the tools ask."""
    name: str = field(default=FUSION_NAME, init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Ask the texts, then the graph, then merge; each pipeline's answer is a step of its own."""
        chat = self.chat or require_model(task)
        said: dict[str, str | None] = {}
        rest, after = list(task.prior_steps), 0
        for source in PIPELINE_SOURCES:
            own, done, rest = _split_at_answer(rest, _ANSWER_PREFIXES[source])
            if done is None:
                said[source], after = yield from self._run_pipeline(source, replace(task, prior_steps=own), chat, after)
            else:
                line = done.thought.removeprefix(_ANSWER_PREFIXES[source]).partition("\n")[0]
                said[source], after = strip_or_none(line), done.position
        answers = TraceAnswers("", answer_text=said["text"], answer_graph=said["graph"])
        if self.options.merge == "random":
            return self._choose_randomly(task.question, answers)
        return (
            yield from ResponseWriter(self.options, task, chat, self.stream).write_final_answer(answers, (), Usage())
        )

    def _run_pipeline(
        self, source: str, task: Task, chat: ChatClient, after: int
    ) -> Generator[Action | TextDelta, ToolResult | None, tuple[str | None, int]]:
        """What this source alone answers, which becomes a step, and that step's position."""
        setup = replace(self.options, sources=source)
        half = ReActLoop(restrict_to_sources(task, source), setup, chat, stream=self.stream, after=after)
        answer, usage, why = None, Usage(), ""
        try:
            finding: ReActResult = yield from half.run()
            answer, usage = finding.answers.final_answer or None, finding.usage
        except ReasonerError as failed:
            # The other source may still answer.
            why = f"\n{failed}"
        thought = f"{_ANSWER_PREFIXES[source]}{' '.join((answer or NO_ANSWER).split())}{why}"
        yield Action(thought, usage=usage.to_json() if usage.calls else None)
        return answer, half.last_position + 1

    def _choose_randomly(self, question: str, answers: TraceAnswers) -> FinalAnswer:
        found = [answer for answer in (answers.answer_text, answers.answer_graph) if answer is not None]
        if not found:
            raise QuestionRefused("Neither pipeline found an answer to this question.")
        # The same question gets the same answer again, whenever and wherever it is asked.
        chosen = random.Random(f"{self.options.seed} {question}").choice(found)  # noqa: S311 - no secret
        agreed = measure_agreement({"text": answers.answer_text, "graph": answers.answer_graph})
        return FinalAnswer(replace(answers, final_answer=chosen), details={"agreement": agreed.to_json()})


def find_active_pipeline(steps: Sequence[Step]) -> tuple[str, list[Step]]:
    """The source whose pipeline is at work after these steps, and its own steps; the last one where both are over."""
    own, rest = list[Step](), list(steps)
    for source in PIPELINE_SOURCES:
        own, done, rest = _split_at_answer(rest, _ANSWER_PREFIXES[source])
        if done is None:
            break
    return source, own


def _split_at_answer(steps: Sequence[Step], mark: str) -> tuple[list[Step], Step | None, list[Step]]:
    """The steps before the one that tells this pipeline's answer, that one, and those after it."""
    for place, step in enumerate(steps):
        if step.tool is None and step.thought.startswith(mark):
            return list(steps[:place]), step, list(steps[place + 1 :])
    return list(steps), None, []
