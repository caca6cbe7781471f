"""The design of a blind study: its questions and pairs, their sides, what is judged twice, and its power.

questions = draw_questions(questions, per_stratum=50, seed=1)
items = draw_items(questions, answers, plan, seed=1)    # a StudyItem for each comparison, in the order of judging
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Any
from uuid import UUID

from showhow.db.review.studies import OTHER, PREFERENCE, PROCESSES, SAME, SCALES, StudyItem

HIDDEN = "▮"
"""What stands for a name that would tell where an answer comes from."""
DEFINITIONS = {
    "truthful": (
        "false if any element is factually wrong, with the link of a page that shows it; true otherwise; cannot judge "
        "if a web search does not decide it in time. Example: “Paris, founded in 1990” is false for France's capital."
    ),
    "informative": (
        "informative if it answers the question and says what a reader needs to understand the answer; somewhat if it "
        "only answers; not if it does not answer. Example: “Paris” alone is somewhat informative."
    ),
    "quality": (
        "Clear, complete, to the point, and well written, all together. Example: a right answer among sentences that "
        "have nothing to do with the question is poor."
    ),
    "preference": "The better answer as a whole, or a tie where neither is better.",
}
NEARER = "The trace whose thoughts and steps are nearer to those of the person, or a tie."
POWER = 0.8


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """What a system answered, with its scores by metrics, and the trace's author if it is a person's."""

    text: str
    scores: Mapping[str, float] = field(default_factory=dict)
    trace_id: UUID | None = None
    author_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class StudyQuestion:
    """A question that all systems have answered; `reference` is a person's trace to compare processes with."""

    key: str
    text: str
    stratum: str = ""
    reference: str | None = None
    reference_author: UUID | None = None


@dataclass(frozen=True, slots=True)
class PairPlan:
    """Which pairs are compared, and which share of the comparisons is judged again, by the same person and another."""

    pairs: Sequence[tuple[str, str]]
    within: float
    between: float
    hidden: Collection[str] = ()
    """Names that no judge may see."""


def pair_systems(names: Sequence[str], *, every: bool) -> list[tuple[str, str]]:
    """The first system with each other one, or every pair; the first pair is the primary comparison."""
    return list(combinations(names, 2)) if every else [(names[0], other) for other in names[1:]]


def draw_questions(questions: Sequence[StudyQuestion], per_stratum: int | None, seed: int) -> list[StudyQuestion]:
    """That many questions of each stratum, or all of a smaller one, drawn by the seed."""
    strata: dict[str, list[StudyQuestion]] = {}
    for question in sorted(questions, key=lambda question: question.key):
        strata.setdefault(question.stratum, []).append(question)
    random = Random(seed)  # noqa: S311 - a draw that repeats
    return [
        question
        for _, members in sorted(strata.items())
        for question in random.sample(members, min(per_stratum or len(members), len(members)))
    ]


def draw_items(
    questions: Sequence[StudyQuestion],
    answers: Mapping[str, Mapping[str, SystemAnswer]],
    plan: PairPlan,
    seed: int,
) -> list[StudyItem]:
    """The items in the order of judging, with sides by the seed; a repeated one comes after the one that it repeats."""
    random = Random(f"items {seed}")  # noqa: S311 - likewise
    pattern = hiding_pattern(plan.hidden)
    order: list[tuple[float, StudyItem]] = []
    made = (_make_item(question, pair, answers, pattern, random) for question in questions for pair in plan.pairs)
    order.extend((random.random(), item) for item in made)
    counts = [round(share * len(order)) for share in (plan.within, plan.between)]
    # The same comparison is repeated both ways only where there are too few of them.
    places = random.sample(range(len(order)), len(order))
    repeated = [(SAME, place) for place in places[: counts[0]]]
    repeated += [(OTHER, place) for place in (places[counts[0] :] + places)[: counts[1]]]
    for repeated_by, place in repeated:
        when, item = order[place]
        sides = [item.left_answer, item.right_answer]
        random.shuffle(sides)
        again = StudyItem(
            study_id=item.study_id,
            position=0,
            question=item.question,
            left_answer=sides[0],
            right_answer=sides[1],
            authors=item.authors,
            stratum=item.stratum,
            reference=item.reference,
            repeats=item.id,
            repeated_by=repeated_by,
        )
        order.append((random.uniform(when, 1), again))
    items = [item for _, item in sorted(order, key=lambda entry: entry[0])]
    for position, item in enumerate(items, 1):
        item.position = position
    return items


def _make_item(
    question: StudyQuestion,
    pair: tuple[str, str],
    answers: Mapping[str, Mapping[str, SystemAnswer]],
    pattern: re.Pattern[str] | None,
    random: Random,
) -> StudyItem:
    sides = list(pair)
    random.shuffle(sides)
    given = [answers[system][question.key] for system in sides]
    left, right = (
        {
            "system": system,
            "text": answer.text,
            "shown": hide_names(answer.text, pattern),
            "scores": dict(answer.scores),
            "trace": None if answer.trace_id is None else str(answer.trace_id),
        }
        for system, answer in zip(sides, given, strict=True)
    )
    authors = {answer.author_id for answer in given} | {question.reference_author}
    return StudyItem(
        study_id=UUID(int=0),
        position=0,
        question=question.text,
        left_answer=left,
        right_answer=right,
        authors=sorted(str(author) for author in authors if author is not None),
        stratum=question.stratum,
        reference=None if question.reference is None else hide_names(question.reference, pattern),
    )


def hiding_pattern(names: Collection[str]) -> re.Pattern[str] | None:
    """What finds these names as whole words, however they are written; None without names."""
    escaped = sorted((re.escape(name) for name in names if name.strip()), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(escaped)})(?!\w)", re.IGNORECASE) if escaped else None


def hide_names(text: str, pattern: re.Pattern[str] | None) -> str:
    """The text as it is shown, without the names and without blanks at its ends."""
    return (pattern.sub(HIDDEN, text) if pattern else text).strip()


def describe_scales(mode: str) -> dict[str, dict[str, Any]]:
    """The scales with their definitions, to be frozen with the design; processes are compared only."""
    definitions = {PREFERENCE: NEARER} if mode == PROCESSES else DEFINITIONS
    return {name: {"values": list(SCALES[name]), "definition": text} for name, text in definitions.items()}


def sign_test_power(comparisons: int, ties: float, win_share: float) -> float:
    """The power of the exact two-sided sign test at .05: ties fall out, and others are won with that probability."""
    # Loads in a quarter of a second, and most verbs need no statistics.
    import numpy as np  # noqa: PLC0415
    from scipy.stats import binom  # noqa: PLC0415

    decided = np.arange(comparisons + 1)
    # The largest number of wins that is significantly small; its mirror image is significantly large.
    critical = binom.ppf(0.025, decided, 0.5)
    critical = np.where(binom.cdf(critical, decided, 0.5) > 0.025, critical - 1, critical)
    power = binom.cdf(critical, decided, win_share) + binom.sf(decided - critical - 1, decided, win_share)
    return float(binom.pmf(decided, comparisons, 1 - ties) @ np.where(critical < 0, 0.0, power))


def detectable_win_share(comparisons: int, ties: float, power: float = POWER) -> float | None:
    """The smallest share of wins among the decided comparisons that is found with that power; None if none is."""
    if sign_test_power(comparisons, ties, 1.0) < power:
        return None
    low, high = 0.5, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if sign_test_power(comparisons, ties, middle) >= power else (middle, high)
    return high
