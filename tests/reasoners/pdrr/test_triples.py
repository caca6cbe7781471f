"""Triples: the order in which they can be completed, against a brute force over all orders."""

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoners.pdrr.triples import Triple, check_triples, is_unknown, parse_condition, schedule_triples

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
        sharing = {number for number in done if set(triples[number].unknowns) & set(entry.triple.unknowns)}
        assert set(entry.after) == sharing
        bound |= set(entry.triple.unknowns)
        done.append(entry.number)


def test_independent_triples_do_not_wait():
    first, second = schedule_triples([triple("Ada", "born", "date#1"), triple("Bo", "born", "date#2")])
    assert (first.after, second.after) == (frozenset(), frozenset())


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
