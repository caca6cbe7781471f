"""PDRR with pruned facts: what gold replies can reach is what a brute force over the people of the world predicts.

The brute force walks over the arrays of the universe; it knows neither the triples nor the gold replies. A perfect
pruner keeps the first facts from which an answer can still be reached.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from showhow.db.models import Question
from showhow.db.runs.runs import RunOutcome
from showhow.evaluation.scoring.scoring import score_outcome
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS, GENDERED_RELATIONS
from showhow.fiction.questions.expressions import (
    Count,
    Expression,
    Fact,
    Having,
    Named,
    Place,
    Related,
    child_expressions,
    is_chain,
)
from showhow.fiction.questions.reasoning import split_relation
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import find_related, get_relation
from showhow.fiction.universe.universe import Universe
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skill_sources import Fault, FaultyResponder
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.pdrr.skills import (
    ANSWER_TRIPLES,
    BEST_CHAIN,
    PRUNE_TRIPLES,
    TRIPLES,
    ChosenFact,
    OfferedFact,
    PruneTriplesReply,
    PruneTriplesRequest,
    TriplesRequest,
)
from showhow.reasoners.pdrr.triples import Triple, schedule_independently
from showhow.reasoners.registry import make_reasoner
from showhow.reasoners.skills.values import AnswerValue
from tests.oracles.test_skills import WORLDS as SPLIT_WORLDS
from tests.oracles.test_skills import Ground, make_ground

WORLDS = {
    "large": GenerationOptions(people=1000, seed=7),
    "small": GenerationOptions(people=200, seed=31, depth=8, per_template=3),
}
KEEP = 2
RUNS = {"large": 8, "small": 40}
"""Chains of each world that are run; the brute force follows all of them."""
CEILINGS = {"who": (0.854, 0.524), "what": (0.841, 0.481), "composition": (0.945, 0.757)}
"""Mean F1 and the share of questions with all answers that two facts a triple and branch can reach, by kind."""


@pytest.fixture(scope="module")
def large() -> Iterator[Ground]:
    yield from make_ground(WORLDS["large"], sampled=5_000)


@pytest.fixture(scope="module")
def small() -> Iterator[Ground]:
    yield from make_ground(WORLDS["small"], sampled=5_000)


@pytest.fixture(scope="module")
def spread() -> Iterator[Ground]:
    yield from make_ground(SPLIT_WORLDS["spread"])


@dataclass(frozen=True)
class Hop:
    """One step of a chain: a relation or fact of a thing, or the people who have a value."""

    relation: str
    is_inverse: bool = False


def list_hops(expression: Expression) -> tuple[int, list[Hop]]:
    """What a chain starts from, and its steps."""
    if isinstance(expression, Named):
        return expression.person, []
    if isinstance(expression, Having):
        return expression.value, [Hop(expression.fact, is_inverse=True)]
    start, hops = list_hops(child_expressions(expression)[0])
    if isinstance(expression, Related):
        return start, hops + [Hop(step.name) for step in split_relation(get_relation(expression.relation))]
    if isinstance(expression, Fact | Place):
        return start, [*hops, Hop(expression.fact if isinstance(expression, Fact) else expression.kind)]
    return start, hops


def list_candidates(universe: Universe, hop: Hop, value: int) -> tuple[list[int], list[int]]:
    """The facts of a step that the graph has in its order, and those of them that state it."""
    if hop.is_inverse:
        people = np.flatnonzero(getattr(universe, hop.relation) == value).tolist()
        return people, people
    if hop.relation in FACT_VALUE_KINDS:
        number = int(getattr(universe, hop.relation)[value])
        return [number] * (number >= 0), [number] * (number >= 0)
    if hop.relation in {"region", "country"}:
        region = int(universe.places.region[value])
        places = [region if hop.relation == "region" else int(universe.places.country[region])]
        return places, places
    base, women = GENDERED_RELATIONS.get(hop.relation, (hop.relation, None))
    if base == "parent":
        parents = [int(array[value]) for array in (universe.father, universe.mother) if array[value] >= 0]
        return parents, parents
    name = "spouse" if base == "spouse" else base
    people = find_related(universe, get_relation(name), np.array([value], np.int32)).tolist()
    return people, [person for person in people if women is None or bool(universe.female[person]) == women]


@dataclass(frozen=True)
class Walk:
    """A chain of values; `right` as long as each fact states its step."""

    values: tuple[int, ...]
    right: bool = True
    score: float = 1.0
    missing: int = 0


class BruteForce:
    """Follows the steps of one chain with few facts each."""

    def __init__(self, universe: Universe, expression: Expression) -> None:
        self.universe = universe
        self.start, self.hops = list_hops(expression)
        self.calls = 3
        self.reached = [{self.start}]
        """What right facts reach before each step, and at the end."""
        for hop in self.hops:
            self.reached.append({end for value in self.reached[-1] for end in list_candidates(universe, hop, value)[1]})
        self.ends = self.reached[-1]
        self.depth = sum(map(bool, self.reached)) - 1
        self._reach: dict[tuple[int, int], bool] = {}

    def leads_on(self, position: int, value: int) -> bool:
        """Whether facts continue from a value before a step up to the last step that has facts."""
        if position >= self.depth:
            return True
        key = (position, value)
        if key not in self._reach:
            right = list_candidates(self.universe, self.hops[position], value)[1]
            self._reach[key] = any(self.leads_on(position + 1, end) for end in right)
        return self._reach[key]

    def prune(self, position: int, value: int) -> list[tuple[int, float]]:
        """What a perfect pruner keeps: facts that lead from the start to an answer, else those that state the step."""
        right = list_candidates(self.universe, self.hops[position], value)[1]
        leading = [end for end in right if value in self.reached[position] and self.leads_on(position + 1, end)]
        return [(end, 1.0 if leading else 0.5) for end in (leading or right)[:KEEP]]

    def follow(self, mode: str) -> set[int]:
        """The ends that chains reach with right facts only; counts the calls of the model."""
        paths = [Walk((self.start,))]
        for position, hop in enumerate(self.hops):
            going_on = [path for path in paths if len(path.values) == position + 1]
            broken = [path for path in paths if len(path.values) <= position]
            offered = {path: list_candidates(self.universe, hop, path.values[-1])[0] for path in going_on}
            total = sum(map(len, offered.values()))
            extended = []
            for path, candidates in offered.items():
                # People who share a day have no id in the graph, so texts tell them: one call in place of another.
                by_day = hop.is_inverse and FACT_VALUE_KINDS[hop.relation] == "day"
                self.calls += 1 if candidates or by_day else 2
                pruned = len(candidates) > KEEP if mode == "published" else total > KEEP and bool(candidates)
                self.calls += pruned
                kept = self.prune(position, path.values[-1]) if pruned else [(end, 1.0) for end in candidates]
                right = list_candidates(self.universe, hop, path.values[-1])[1]
                extended += [
                    Walk((*path.values, end), path.right and end in right, path.score * score, path.missing)
                    for end, score in kept
                ]
                broken += [] if kept else [path]
            extended += [Walk(path.values, path.right, path.score, path.missing + 1) for path in broken]
            extended.sort(key=lambda path: (path.missing, -path.score))
            paths = extended[:KEEP] if mode == "beam" else extended
        return {path.values[-1] for path in paths if path.right and len(path.values) == len(self.hops) + 1}


def list_chains(ground: Ground) -> list[tuple[Question, GoldReasoning]]:
    """The questions whose structure is a chain."""
    golds = [(question, GoldReasoning(ground.gold, question.text, question.details)) for question in ground.questions]
    return [(question, gold) for question, gold in golds if is_chain(gold.expression)]


def predict_answers(gold: GoldReasoning, ends: set[int]) -> set[str]:
    if isinstance(gold.expression, Count):
        return {str(len(ends))}
    return {gold.things.answer_text(gold.root.kind, end) for end in ends}


def f1_of(answers: set[str], gold: set[str]) -> float:
    common = len(answers & gold)
    return 1.0 if not answers and not gold else 2 * common / (len(answers) + len(gold))


def answers_of(outcome: RunOutcome) -> set[str]:
    assert outcome.ending == "answered", outcome.failure
    return set(outcome.details["answers"])


def check_chains(ground: Ground, mode: str, count: int) -> None:
    """Run chains of every length, and compare answers and calls with the brute force."""
    chains = sorted(list_chains(ground), key=lambda chain: (len(chain[1].triples), chain[0].text))
    for question, gold in chains[:: -(-len(chains) // count)]:
        brute = BruteForce(gold.things.universe, gold.expression)
        ends = brute.follow(mode)
        outcome, _ = ground.run("pdrr", question, ground.oracle(question), mode=mode)
        assert answers_of(outcome) == predict_answers(gold, ends), question.text
        assert outcome.calls["model_calls"] == outcome.calls["model_calls_expected"] == brute.calls, question.text
        score = score_outcome(question, outcome)
        assert score.scores is not None
        f1 = f1_of(predict_answers(gold, ends), predict_answers(gold, brute.ends))
        assert score.scores["f1"] == pytest.approx(f1, abs=1e-12)


@pytest.mark.parametrize("mode", ["published", "beam"])
def test_gold_replies_reach_what_the_kept_facts_allow_with_the_expected_calls(small: Ground, mode: str):
    check_chains(small, mode, RUNS["small"])


def test_the_ceiling_of_two_facts_a_triple_and_branch(large: Ground):
    chains = list_chains(large)
    assert len(large.questions) == 1_240
    assert len(chains) / len(large.questions) == pytest.approx(0.548, abs=0.005)
    for kind, ceiling in CEILINGS.items():
        scores = []
        for question, gold in chains:
            if question.kind == kind:
                brute = BruteForce(gold.things.universe, gold.expression)
                answers = predict_answers(gold, brute.follow("published"))
                scores.append(f1_of(answers, predict_answers(gold, brute.ends)))
        reached = (sum(scores) / len(scores), sum(score == 1.0 for score in scores) / len(scores))
        assert reached == pytest.approx(ceiling, abs=0.006), kind
    check_chains(large, "published", RUNS["large"])


def test_a_chain_of_h_triples_takes_no_more_calls_than_the_formulas(small: Ground):
    for question, gold in list_chains(small)[::6]:
        hops, brute = len(gold.triples), BruteForce(gold.things.universe, gold.expression)
        brute.follow("published")
        assert brute.calls <= 2 + 2 * (2**hops - 1) + 2
        for options, most in ({"mode": "beam"}, 3 + 2 * KEEP * hops), ({"mode": "beam", "width": 1}, 3 + 2 * hops):
            outcome, _ = small.run("pdrr", question, small.oracle(question), **options)
            # Where the graph has no fact, one call about texts takes the place of one that prunes.
            assert outcome.calls["model_calls"] <= most


@pytest.mark.parametrize("mode", ["published", "beam"])
def test_the_best_chain_gives_one_answer_for_one_call_more(small: Ground, mode: str):
    asked = 0
    for question, gold in list_chains(small)[::4]:
        if isinstance(gold.expression, Count):
            continue
        without, _ = small.run("pdrr", question, small.oracle(question), mode=mode)
        outcome, recorder = small.run("pdrr", question, small.oracle(question), mode=mode, best_chain="on")
        calls = [step for step in recorder.steps if step.skill == BEST_CHAIN.reference]
        asked += len(calls)
        assert outcome.calls["model_calls"] == without.calls["model_calls"] + len(calls)
        assert outcome.calls["model_calls"] == outcome.calls["model_calls_expected"]
        assert answers_of(outcome) <= answers_of(without)
        assert len(answers_of(outcome)) == (1 if answers_of(without) else 0) or not calls
    assert asked


@pytest.mark.parametrize("world", ["small", "spread"])
def test_triples_alone_are_completed_and_those_without_a_name_are_left_out(world: str, request: pytest.FixtureRequest):
    ground: Ground = request.getfixturevalue(world)
    endings: Counter[str] = Counter()
    for question in ground.questions:
        gold = GoldReasoning(ground.gold, question.text, question.details)
        if is_chain(gold.expression):
            continue
        alone = schedule_independently(gold.triples)
        outcome, recorder = ground.run("pdrr", question, ground.oracle(question), mode="published")
        endings[outcome.ending] += 1
        assert outcome.calls["model_calls"] == outcome.calls["model_calls_expected"]
        asked = next(step for step in recorder.steps if step.skill == ANSWER_TRIPLES.reference)
        known = {entry.number for entry in alone}
        left_out = [str(triple) for number, triple in enumerate(gold.triples) if number not in known]
        told = [step.thought for step in recorder.steps if str(step.node).endswith("left_out")]
        assert [triple in thought for triple, thought in zip(left_out, told, strict=True)] == [True] * len(left_out)
        assert len(asked.arguments["triples"]) == len(gold.triples)
        if left_out:
            # The rest does not suffice for those who know nothing themselves.
            endings["left out"] += 1
            continue
        # The first relation of "parent" is the father; every other relation is one of the graph.
        if world == "small" and "parent" not in {triple.relation for triple in gold.triples}:
            assert answers_of(outcome) == {value.text for value in gold.root_answers}, question.text
    assert endings["answered"]
    assert endings["left out"]


@pytest.mark.parametrize("world", ["small", "spread"])
def test_gold_triples_name_what_the_question_asks_for(world: str, request: pytest.FixtureRequest):
    ground: Ground = request.getfixturevalue(world)
    for question in ground.questions:
        gold = GoldReasoning(ground.gold, question.text, question.details)
        asked = TriplesRequest(question=question.text)
        reply = ground.oracle(question).triples(asked)
        assert TRIPLES.check(asked, reply) is None
        assert reply.answer.startswith("date#") == (gold.root.kind == "day"), (question.text, reply.answer)
        answers = {value.text for value in gold.root_answers}
        assert (reply.answer == "yes or no") == bool(answers and answers <= {"yes", "no"}), question.text


def test_a_beam_answers_every_kind_of_question_from_what_it_keeps(spread: Ground):
    right = 0
    for question in spread.questions:
        outcome, _ = spread.run("pdrr", question, spread.oracle(question), mode="beam")
        assert outcome.ending == "answered", outcome.failure
        assert outcome.calls["model_calls"] == outcome.calls["model_calls_expected"]
        wide, _ = spread.run("pdrr", question, spread.oracle(question), mode="beam", width=1_000)
        score, wide_score = (score_outcome(question, run).scores for run in (outcome, wide))
        assert score is not None
        assert wide_score is not None
        assert score["f1"] <= wide_score["f1"]
        right += score["f1"] == 1.0
    assert right >= len(spread.questions) / 2


@pytest.mark.parametrize("mode", ["published", "beam"])
def test_a_broken_reply_never_makes_an_answer_wrong(small: Ground, mode: str):
    rejected = 0
    for question, gold in list_chains(small)[::8]:
        if isinstance(gold.expression, Count):
            continue
        faulty = FaultyResponder(small.oracle(question), Fault("malformed", 0.3, seed=5), gold)
        outcome, recorder = small.run("pdrr", question, faulty, mode=mode)
        rejected += sum("rejected" in (step.data or {}) for step in recorder.steps)
        assert outcome.ending in {"answered", "refused", "failed"}
        if outcome.ending == "answered":
            assert answers_of(outcome) <= {value.text for value in gold.root_answers}
    assert rejected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "wide"}, "there is no mode 'wide'"),
        ({"width": 0}, "width is 0"),
        ({"triples": 0}, "triples is 0"),
        ({"best_chain": "yes"}, "there is no best_chain 'yes'"),
    ],
)
def test_options_outside_their_range_are_one_sentence(options: dict[str, object], sentence: str):
    with pytest.raises(AgentOptionsError, match=sentence):
        make_reasoner("pdrr", options)


FACTS = [OfferedFact(number=number, relation="child", other=AnswerValue(text=f"Bo {number}")) for number in (1, 2, 3)]
PRUNING = PruneTriplesRequest(
    question="Who?",
    triple=Triple(subject="Ada", relation="child", object="person#1"),
    known=AnswerValue(text="Ada"),
    known_is="subject",
    facts=FACTS,
    keep=2,
)


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ([(1, 0.9), (3, 0.1)], None),
        ([], None),
        ([(4, 1.0)], "There is no fact 4"),
        ([(1, 1.0), (1, 0.5)], "A fact is kept twice"),
        ([(1, 1.0), (2, 1.0), (3, 1.0)], "keep at most 2"),
        ([(1, 1.5)], "The score 1.5 is not from 0 to 1"),
        ([(1, float("nan"))], "The score nan is not from 0 to 1"),
    ],
)
def test_pruning_is_checked_in_one_sentence(chosen: list[tuple[int, float]], problem: str | None):
    reply = PruneTriplesReply(facts=[ChosenFact(number=number, score=score) for number, score in chosen])
    said = PRUNE_TRIPLES.check(PRUNING, reply)
    assert said is None if problem is None else said is not None and problem in said
