"""Wordings that the hits of searches share, learned in one article after another and tried on all others."""

import re
from itertools import combinations

from reasoners.replay.lessons import SnippetHit, find_shared_patterns
from reasoners.replay.sentences import extract_values
from tests.reasoners.replay.conftest import Namesakes


def hits_for(namesakes: Namesakes, fact: str) -> tuple[list[SnippetHit], dict[int, str]]:
    """A hit for the sentence of everybody that tells the fact, and what is true of whom."""
    universe = namesakes.universe
    kinds = universe.jobs if fact == "job" else universe.hobbies
    values = {row: kinds[int(value)] for row, value in enumerate(getattr(universe, fact)) if value >= 0}
    told = [
        (sentence, universe.titles[row], values[row])
        for row, sentence in namesakes.said()
        if row in values and re.search(rf"(?<!\w){re.escape(values[row])}(?![\w)])", sentence)
    ]
    return told, values


def test_what_hits_for_one_value_teach_is_read_of_everybody_else(namesakes: Namesakes) -> None:
    for fact in ("job", "hobby"):
        hits, values = hits_for(namesakes, fact)
        patterns = list(find_shared_patterns([(sentence, who, value) for sentence, who, value in hits[:12]]))
        found = 0
        for row, sentence in namesakes.said():
            told = extract_values(patterns, [sentence], namesakes.universe.titles[row], "")
            assert told in ([], [values.get(row)]), sentence
            found += bool(told)
        assert found > 5


def test_sentences_that_share_only_small_words_teach_nothing() -> None:
    hits = [("Ada Lund is a baker.", "Ada Lund", "baker"), ("Bo Reed plays chess.", "Bo Reed", "chess")]
    assert list(find_shared_patterns(hits)) == []
    assert list(find_shared_patterns(hits[:1])) == []


def test_what_is_shared_does_not_depend_on_the_order(namesakes: Namesakes) -> None:
    hits, _ = hits_for(namesakes, "hobby")
    for pair in combinations(hits[:8], 2):
        one, other = ({each.parts for each in find_shared_patterns(order)} for order in (pair, pair[::-1]))
        assert len(one) == len(other)
