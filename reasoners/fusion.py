"""Late fusion, the paper's baseline: text and graph are asked in separate pipelines, then the answers are merged."""

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

from db.models import Step
from db.recording import Answers
from reasoners.agreement import agreement
from reasoners.ending import NOTHING, present
from reasoners.humaniq import model_of
from reasoners.investigation import Finding, Investigation
from reasoners.reasoner import Action, Conclusion, Moves, ReasonerError, Refused, Saying, Task
from reasoners.response import Writer
from reasoners.setup import Setup
from reasoners.sources import limited
from tools.chat import Chat
from tools.tool import Outcome
from tools.usage import Usage

NAME = "fusion"
SOURCES = ("text", "graph")
_MARKS = {"text": "From text only: ", "graph": "From the graph only: "}


@dataclass(frozen=True, slots=True)
class Fusion:
    """Two agents that know nothing of each other, and a merge."""

    setup: Setup = field(default_factory=Setup)
    stream: bool = True
    chat: Chat | None = None
    """The model that reasons, where it is not the one that the tools ask."""
    name: str = field(default=NAME, init=False)

    def solve(self, task: Task) -> Moves:
        """Ask the texts, then the graph, then merge; each pipeline's answer is a step of its own."""
        chat = self.chat or model_of(task)
        said: dict[str, str | None] = {}
        rest, after = list(task.taken), 0
        for source in SOURCES:
            own, done, rest = _split(rest, _MARKS[source])
            if done is None:
                said[source], after = yield from self._pipeline(source, replace(task, taken=own), chat, after)
            else:
                line = done.thought.removeprefix(_MARKS[source]).partition("\n")[0]
                said[source], after = present(line), done.position
        answers = Answers("", answer_text=said["text"], answer_graph=said["graph"])
        if self.setup.merge == "random":
            return self._by_chance(task.question, answers)
        return (yield from Writer(self.setup, task, chat, self.stream).conclude(answers, (), Usage()))

    def _pipeline(
        self, source: str, task: Task, chat: Chat, after: int
    ) -> Generator[Action | Saying, Outcome | None, tuple[str | None, int]]:
        """What this source alone answers, which becomes a step, and that step's position."""
        setup = replace(self.setup, sources=source)
        half = Investigation(limited(task, source), setup, chat, stream=self.stream, after=after)
        answer, usage, why = None, Usage(), ""
        try:
            finding: Finding = yield from half.run()
            answer, usage = finding.answers.final_answer or None, finding.usage
        except ReasonerError as failed:
            # The other source may still answer.
            why = f"\n{failed}"
        thought = f"{_MARKS[source]}{' '.join((answer or NOTHING).split())}{why}"
        yield Action(thought, usage=usage.to_json() if usage.calls else None)
        return answer, half.last_position + 1

    def _by_chance(self, question: str, answers: Answers) -> Conclusion:
        found = [answer for answer in (answers.answer_text, answers.answer_graph) if answer is not None]
        if not found:
            raise Refused("Neither pipeline found an answer to this question.")
        # The same question gets the same answer again, whenever and wherever it is asked.
        chosen = random.Random(f"{self.setup.seed} {question}").choice(found)  # noqa: S311 - no secret
        agreed = agreement({"text": answers.answer_text, "graph": answers.answer_graph})
        return Conclusion(replace(answers, final_answer=chosen), details={"agreement": agreed.to_json()})


def at_work(steps: Sequence[Step]) -> tuple[str, list[Step]]:
    """The source whose pipeline is at work after these steps, and its own steps; the last one where both are over."""
    own, rest = list[Step](), list(steps)
    for source in SOURCES:
        own, done, rest = _split(rest, _MARKS[source])
        if done is None:
            break
    return source, own


def _split(steps: Sequence[Step], mark: str) -> tuple[list[Step], Step | None, list[Step]]:
    """The steps before the one that tells this pipeline's answer, that one, and those after it."""
    for place, step in enumerate(steps):
        if step.tool is None and step.thought.startswith(mark):
            return list(steps[:place]), step, list(steps[place + 1 :])
    return list(steps), None, []
