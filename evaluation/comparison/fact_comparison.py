"""The facts of a run of GEEK beside those of the gold reasoning, and the mistakes of its wrong answers.

The counts behind GEEK's Tables 3 and 6. A fact in other words than the gold sub-question is the gold fact that has its
answers; without such a one its sub-question is beside the gold reasoning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from showhow.db.database import Conflict
from showhow.db.models import Run, Step
from showhow.db.review.review import AnswerToJudge
from showhow.db.traces.traces import load_traces
from showhow.evaluation.comparison.gold_comparison import (
    ComparedFact,
    are_equal,
    is_within,
    iterate_facts,
    open_gold_reasoning,
)
from showhow.oracles.reasoning import GoldReasoning
from showhow.reasoners.answers.extraction import join_answers
from showhow.reasoners.answers.normalization import answers_equal
from showhow.reasoners.geek.skills import CONCLUDE, NEXT_ACTION, ExcavatedFact, fill_numbers
from showhow.reasoners.skills.skill import SkillSteps, read_reply
from showhow.reasoners.skills.values import AnswerValue, format_values
from showhow.runs.services import Services

DECOMPOSITION, ACTION, FACTS, DEDUCTION = "decomposition", "action", "facts", "deduction"
MISTAKES = {
    DECOMPOSITION: "a sub-question beside the gold reasoning, or one that was never asked",
    ACTION: "concluded before the gold facts were known, or answered itself what is looked up",
    FACTS: "a fact that was looked up has other answers than the gold one",
    DEDUCTION: "a wrong answer from the gold facts",
}
"""The kinds of errors of GEEK's Table 6; an answer may have several."""


@dataclass(frozen=True, slots=True)
class FactComparison:
    """The facts of the lane that answered, beside the gold ones."""

    matched: int
    """Gold facts that the run has."""
    missed: int
    """Gold facts that it does not have, or has with other answers."""
    wrong: int
    """Facts with other answers than the gold ones."""
    beside: int
    """Facts that the gold reasoning does not know."""
    mistakes: tuple[str, ...]
    """The kinds of MISTAKES of the lane if its answer is wrong."""


def compare_facts(steps: Sequence[Step], gold: GoldReasoning, answer: str | None) -> FactComparison:
    """Compare the facts of the lane that gave this answer, or of the first one if none did."""
    skill_steps = SkillSteps(steps)
    facts = list(iterate_facts(skill_steps, gold))
    lane = _find_lane(skill_steps, [fact.lane for fact in facts] or ["lane"], answer)
    facts = [fact for fact in facts if is_within(lane, fact.lane)]
    asked = [fact for fact in facts if fact.expected is not None]
    wrong = [fact for fact in asked if not fact.is_right]
    missing = [[gold.to_value(leaf.kind, item) for item in leaf.values.tolist()] for leaf, _ in gold.subquestions]
    size = len(missing)
    matched = sum(_take(missing, fact.expected or ()) and fact.is_right for fact in asked)
    others = [fact for fact in facts if fact.expected is None]
    beside = [fact for fact in others if not _take(missing, fact.answers)]
    matched += len(others) - len(beside)
    ends = [
        reply["finish"]
        for step in skill_steps.calls.get(NEXT_ACTION.name, ())
        if _lane_of(step) == lane and (reply := read_reply(step)) is not None
    ]
    mistakes = _list_mistakes(wrong, beside, is_incomplete=bool(missing), is_early=bool(ends and ends[-1]))
    return FactComparison(matched, size - matched, len(wrong), len(beside), mistakes)


def write_facts(steps: Sequence[Step], gold: GoldReasoning, answer: str | None) -> tuple[str, str]:
    """The sub-questions with their answers, one a line: of the lane that gave this answer, and the gold ones."""
    skill_steps = SkillSteps(steps)
    facts = list(iterate_facts(skill_steps, gold))
    lane = _find_lane(skill_steps, [fact.lane for fact in facts] or ["lane"], answer)
    own = [f"{fact.step.thought} {format_values(fact.answers)}" for fact in facts if is_within(lane, fact.lane)]
    state: list[ExcavatedFact] = []
    for number, (leaf, text) in enumerate(gold.subquestions, 1):
        answers = [gold.to_value(leaf.kind, item) for item in leaf.values.tolist()]
        state.append(ExcavatedFact(number=number, question=text, fact="", answers=answers))
    expected = [f"{fill_numbers(fact.question, state)} {format_values(fact.answers)}" for fact in state]
    return "\n".join(own), "\n".join(expected)


def state_facts(services: Services, run: Run, answers: Sequence[AnswerToJudge]) -> Iterator[AnswerToJudge]:
    """The facts of the lane that gave each answer, and the gold ones, in place of the answers; for a judge."""
    if run.reasoner != "geek":
        raise Conflict("facts are those of a run of GEEK beside the gold ones; name a run of GEEK")
    find_gold = open_gold_reasoning(services, run.world)
    by_trace = {answer.trace_id: answer for answer in answers}
    with services.database.read() as session:
        for record in load_traces(session, by_trace):
            if (gold := find_gold(record.question.text)) is not None:
                facts, gold_facts = write_facts(record.steps, gold, record.trace.final_answer)
                yield by_trace[record.trace.id]._replace(answer=facts, other=gold_facts)


def _list_mistakes(
    wrong: Sequence[ComparedFact], beside: Sequence[ComparedFact], *, is_incomplete: bool, is_early: bool
) -> tuple[str, ...]:
    concluded = [fact.how == "concluded" for fact in wrong]
    # What follows from other sub-questions cannot be told to be too early.
    is_unasked = is_incomplete and not beside
    made = {
        DECOMPOSITION: bool(beside) or (is_unasked and not is_early),
        ACTION: any(concluded) or (is_unasked and is_early),
        FACTS: not all(concluded),
    }
    return tuple(kind for kind, is_made in made.items() if is_made) or (DEDUCTION,)


def _take(missing: list[list[AnswerValue]], answers: Sequence[AnswerValue]) -> bool:
    """Take the first gold fact with these answers away, if there is one."""
    place = next((place for place, values in enumerate(missing) if are_equal(answers, values)), None)
    if place is not None:
        del missing[place]
    return place is not None


def _lane_of(step: Step) -> str:
    """The lane of a call at LANE/ROUND/NAME."""
    return "/".join((step.node or "").split("/")[:-2])


def _find_lane(steps: SkillSteps, lanes: Sequence[str], answer: str | None) -> str:
    ends = [lane for lane in dict.fromkeys(lanes) if not any(other.startswith(f"{lane}.") for other in lanes)]
    for lane in ends:
        replies = [read_reply(step) for step in steps.calls.get(CONCLUDE.name, ()) if _lane_of(step) == lane]
        texts = [str(entry["text"]) for reply in replies[-1:] for entry in (reply or {}).get("answers", ())]
        if answer is not None and answers_equal(join_answers(texts), answer):
            return lane
    return ends[0]
