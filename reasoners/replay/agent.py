"""Answering without a model: the demonstrations are followed on the new question, or it is refused."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from db.recording import TraceAnswers
from reasoners.base import FinalAnswer, QuestionRefused, ReasonerGenerator, Task
from reasoners.replay.fitting import FrameFit
from reasoners.replay.follow import DemonstrationReplayer, ReplayResult
from reasoners.replay.lessons import ReplayKnowledge
from reasoners.replay.walk import ReplayBroken, ReplayGenerator, ReplaySession, ToolCallFailed

MAX_READINGS = 3
"""Readings of a question that are followed until one leads to an answer."""


class ReplayReasoner:
    """Follows demonstrations; what it has learned from one set of them is kept for the next question."""

    name = "replay"

    def __init__(self) -> None:
        self._cached_knowledge: tuple[list[tuple[UUID, int]], ReplayKnowledge] | None = None

    def solve(self, task: Task) -> ReasonerGenerator:
        """Re-run what the demonstrations show with the values of this question; Refused where the pattern breaks."""
        if not task.demonstrations:
            raise QuestionRefused(
                "I can't follow any demonstration here: there is none; choose a library that has some."
            )
        lessons = self._learn_demonstrations(task)
        walk = ReplaySession(task)
        broken: list[str] = []
        for way in self._candidate_replays(task, DemonstrationReplayer(walk, lessons), lessons):
            try:
                followed = yield from way()
            except (ReplayBroken, ToolCallFailed) as stuck:
                broken.append(str(stuck))
                continue
            return _build_final_answer(followed, walk, lessons)
        why = "; or ".join(dict.fromkeys(broken))
        raise QuestionRefused(f"I can't follow any demonstration here: {why}.")

    def _learn_demonstrations(self, task: Task) -> ReplayKnowledge:
        shown = sorted(task.demonstrations, key=lambda record: record.trace.id)
        keys = [(item.trace.id, item.trace.version) for item in shown]
        learned = self._cached_knowledge
        if learned is None or learned[0] != keys:
            self._cached_knowledge = learned = keys, ReplayKnowledge(shown)
        return learned[1]

    def _candidate_replays(
        self, task: Task, follower: DemonstrationReplayer, lessons: ReplayKnowledge
    ) -> list[Callable[[], ReplayGenerator]]:
        """The readings that differ in what they ask, else the question's own words."""
        rank = {record.trace.id: place for place, record in enumerate(task.demonstrations)}
        fits: dict[object, FrameFit] = {}
        for fit in lessons.fits(task.question, rank):
            fits.setdefault((fit.phrases, fit.asks, fit.operation, fit.frame.counted), fit)
        ways: list[Callable[[], ReplayGenerator]] = [
            partial(follower.follow, fit) for fit in list(fits.values())[:MAX_READINGS]
        ]
        return ways or [partial(follower.follow_own_words, task.question)]


def _build_final_answer(followed: ReplayResult, walk: ReplaySession, lessons: ReplayKnowledge) -> FinalAnswer:
    answer = ", ".join(followed.answers)
    if followed.is_empty:
        if lessons.no_answer_text is None:
            raise QuestionRefused(
                "I can't follow any demonstration here: nothing is found, and none shows what to answer then."
            )
        answer = lessons.no_answer_text
    answers = TraceAnswers(final_answer=answer, final_thought=walk.compose_thought(f"So the answer is: {answer}."))
    return FinalAnswer(answers, details={"replay": followed.details})
