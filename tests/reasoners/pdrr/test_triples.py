"""Triples: the order in which they can be completed, against a brute force over all orders."""

from collections.abc import Sequence
from itertools import permutations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.reasoners.pdrr.triples import (
    ScheduledTriple,
    Triple,
    check_triples,
    is_unknown,
    join_values,
    parse_condition,
    schedule_triples,
)
from showhow.reasoners.skills.values import AnswerValue

ENDS = ["Ada", "Bo", "person#1", "person#2", "date#3", "before 5 March 1931"]


def triple(subject: str, relation: str, object_: str) -> Triple:
    return Triple(subject=subject, relation=relation, object=object_)


def can_begin(entry: Triple, bound: set[str]) -> bool:
    if not is_unknown(entry.subject) or entry.subject in bound:
        return True
    return entry.object in bound or not (is_unknown(entry.object) or parse_condition(entry.object))


def most_completed(triples: Sequence[Triple]) -> int:
    """The most triples that any order completes, each beginning at a known end."""
    best = 0
    for order in permutations(triples):
        bound: set[str] = set()
        done = 0
        for entry in order:
            if not can_begin(entry, bound):
                break
            bound |= set(entry.unknowns)
            done += 1
        best = max(best, done)
    return best


@given(st.lists(st.builds(triple, st.sampled_from(ENDS[:4]), st.just("mother"), st.sampled_from(ENDS)), max_size=5))
def test_as_many_triples_are_completed_as_any_order_allows(triples: list[Triple]):
    scheduled = schedule_triples(triples)
    assert len(scheduled) == most_completed(triples)
    bound: set[str] = set()
    done: list[int] = []
    for entry in scheduled:
        known = entry.triple.subject if entry.from_subject else entry.triple.object
        assert not is_unknown(known) or known in bound
        assert set(entry.after) <= set(done)
        assert set(entry.after) == {
            earlier.number for earlier in scheduled[: len(done)] if is_unknown(known) and earlier.other_end == known
        }
        bound |= set(entry.triple.unknowns)
        done.append(entry.number)


def test_independent_triples_do_not_wait():
    first, second = schedule_triples([triple("Ada", "born", "date#1"), triple("Bo", "born", "date#2")])
    assert (first.after, second.after) == (frozenset(), frozenset())


def test_triples_about_one_person_are_completed_at_the_same_time():
    mother, from_aunt, birth, work = schedule_triples(
        [
            triple("Ada", "mother", "person#1"),
            triple("Bo", "sister", "person#1"),
            triple("person#1", "born", "date#2"),
            triple("person#1", "job", "job#3"),
        ]
    )
    assert (mother.after, from_aunt.after, birth.after, work.after) == (set(), set(), {0, 1}, {0, 1})


NAMES = ("u", "v", "w")


@st.composite
def completed_triples(draw: st.DrawFn) -> list[tuple[ScheduledTriple, list[AnswerValue]]]:
    """Scheduled triples that share unknowns, with the facts that were found for each."""
    pairs = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=6, unique=True)
    triples = draw(
        st.lists(
            st.builds(triple, st.sampled_from(ENDS[:4]), st.just("mother"), st.sampled_from(ENDS[2:4])), max_size=4
        )
    )
    triples = [entry for entry in triples if entry.subject != entry.object]
    completed = []
    for entry in schedule_triples(triples):
        facts = draw(pairs)
        owner = None if is_unknown(entry.known_end) else entry.known_end
        completed.append((entry, [AnswerValue(text=other, of=owner or known) for known, other in facts]))
    return completed


def possible_values(completed: list[tuple[ScheduledTriple, list[AnswerValue]]]) -> dict[str, set[str]]:
    """The values of each unknown in the assignments for which every triple has a fact."""
    unknowns = sorted({end for entry, _ in completed for end in entry.triple.unknowns})
    possible: dict[str, set[str]] = {unknown: set() for unknown in unknowns}
    for choice in product(NAMES, repeat=len(unknowns)):
        assignment = dict(zip(unknowns, choice, strict=True))
        if all(
            any(
                pair.of == assignment.get(entry.known_end, entry.known_end) and pair.text == assignment[entry.other_end]
                for pair in pairs
            )
            for entry, pairs in completed
        ):
            for unknown, value in assignment.items():
                possible[unknown].add(value)
    return possible


@given(completed_triples(), st.randoms(use_true_random=False))
def test_joined_values_are_those_for_which_every_triple_has_a_fact(
    completed: list[tuple[ScheduledTriple, list[AnswerValue]]], random: Random
):
    joined = {unknown: {value.text for value in values} for unknown, values in join_values(completed).items()}
    possible = possible_values(completed)
    links = [entry for entry, _ in completed if len(entry.triple.unknowns) > 1]
    assert all(joined[unknown] >= values for unknown, values in possible.items())
    # With two unknowns at most one link makes no circle. A triple without facts leaves nothing possible anywhere.
    if len(links) < len(joined) and (len(links) == len(joined) - 1 or all(possible.values())):
        assert joined == possible
    shuffled = random.sample(completed, len(completed))
    assert {unknown: {value.text for value in values} for unknown, values in join_values(shuffled).items()} == joined


def test_a_condition_is_no_end_to_begin_at():
    assert schedule_triples([triple("person#1", "date of birth", "before 1931")]) == []
    (start, test) = schedule_triples(
        [triple("person#1", "date of birth", "before 1931"), triple("Ada", "child", "person#1")]
    )
    assert (start.number, test.number, test.from_subject) == (1, 0, True)


@pytest.mark.parametrize(("triples", "answer", "sentence"), [
    ([], "x", "There is no triple; write at least one."),
    ([triple("Ada", "", "person#1")], "person#1", "A part of a triple is empty."),
    ([triple("Ada", "what#1", "person#1")], "person#1", "The relation what#1 is unknown; name the relation in words."),
    ([triple("person#1", "mother", "person#2")], "person#2", "is connected with no name of the question"),
    ([triple("Ada", "mother", "person#1")], "person#2", "The answer person#2 is in no triple; name one of person#1."),
    ([triple("Ada", "mother", f"person#{n}") for n in range(21)], "person#1", "There are 21 triples; use at most 20."),
])  # fmt: skip
def test_each_defect_is_one_sentence(triples: list[Triple], answer: str, sentence: str):
    problem = check_triples(triples, answer)
    assert problem is not None
    assert sentence in problem
