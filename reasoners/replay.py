"""Answering without a model: the demonstrations are followed on the new question, or it is refused."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from db.recording import Answers
from reasoners.following.fitting import Fit
from reasoners.following.follow import Followed, Follower
from reasoners.following.lessons import Lessons
from reasoners.following.walk import Broken, NotCalled, Steps, Walk
from reasoners.reasoner import Conclusion, Moves, Refused, Task

MOST_TRIED = 3
"""Readings of a question that are followed until one leads to an answer."""


class Replay:
    """Follows demonstrations; what it has learned from one set of them is kept for the next question."""

    name = "replay"

    def __init__(self) -> None:
        self._learned: tuple[list[tuple[UUID, int]], Lessons] | None = None

    def solve(self, task: Task) -> Moves:
        """Re-run what the demonstrations show with the values of this question; Refused where the pattern breaks."""
        if not task.demonstrations:
            raise Refused("I can't follow any demonstration here: there is none; choose a library that has some.")
        lessons = self._lessons(task)
        walk = Walk(task)
        broken: list[str] = []
        for way in self._ways(task, Follower(walk, lessons), lessons):
            try:
                followed = yield from way()
            except (Broken, NotCalled) as stuck:
                broken.append(str(stuck))
                continue
            return _concluded(followed, walk, lessons)
        why = "; or ".join(dict.fromkeys(broken))
        raise Refused(f"I can't follow any demonstration here: {why}.")

    def _lessons(self, task: Task) -> Lessons:
        shown = sorted(task.demonstrations, key=lambda record: record.trace.id)
        keys = [(each.trace.id, each.trace.version) for each in shown]
        learned = self._learned
        if learned is None or learned[0] != keys:
            self._learned = learned = keys, Lessons(shown)
        return learned[1]

    def _ways(self, task: Task, follower: Follower, lessons: Lessons) -> list[Callable[[], Steps]]:
        """The readings that differ in what they ask, else the question's own words."""
        rank = {record.trace.id: place for place, record in enumerate(task.demonstrations)}
        fits: dict[object, Fit] = {}
        for fit in lessons.fits(task.question, rank):
            fits.setdefault((fit.phrases, fit.asks, fit.operation, fit.frame.counted), fit)
        ways: list[Callable[[], Steps]] = [partial(follower.follow, fit) for fit in list(fits.values())[:MOST_TRIED]]
        return ways or [partial(follower.own_words, task.question)]


def _concluded(followed: Followed, walk: Walk, lessons: Lessons) -> Conclusion:
    answer = ", ".join(followed.answers)
    if followed.nothing:
        if lessons.nothing is None:
            raise Refused(
                "I can't follow any demonstration here: nothing is found, and none shows what to answer then."
            )
        answer = lessons.nothing
    answers = Answers(final_answer=answer, final_thought=walk.thought(f"So the answer is: {answer}."))
    return Conclusion(answers, details={"replay": followed.details})
