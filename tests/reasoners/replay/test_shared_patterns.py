"""Patterns learned from search hits, applied to all other articles."""

import re
from itertools import combinations

from reasoners.replay.knowledge import SnippetHit, find_shared_patterns
from reasoners.replay.sentence_patterns import extract_values
from tests.reasoners.replay.conftest import Namesakes


def hits_for(namesakes: Namesakes, fact: str) -> tuple[list[SnippetHit], dict[int, str]]:
    """A hit for each sentence that states the fact, and the true values by person."""
    universe = namesakes.universe
    kinds = universe.jobs if fact == "job" else universe.hobbies
    values = {row: kinds[int(value)] for row, value in enumerate(getattr(universe, fact)) if value >= 0}
    hits = [
        (sentence, universe.titles[row], values[row])
        for row, sentence in namesakes.said()
        if row in values and re.search(rf"(?<!\w){re.escape(values[row])}(?![\w)])", sentence)
    ]
    return hits, values


def test_patterns_of_search_hits_apply_to_other_entities(namesakes: Namesakes) -> None:
    for fact in ("job", "hobby"):
        hits, values = hits_for(namesakes, fact)
        patterns = list(find_shared_patterns([(sentence, who, value) for sentence, who, value in hits[:12]]))
        extracted = 0
        for row, sentence in namesakes.said():
            extracted_values = extract_values(patterns, [sentence], namesakes.universe.titles[row], "")
            assert extracted_values in ([], [values.get(row)]), sentence
            extracted += bool(extracted_values)
        assert extracted > 5


def test_sentences_that_share_only_function_words_give_no_pattern() -> None:
    hits = [("Ada Lund is a baker.", "Ada Lund", "baker"), ("Bo Reed plays chess.", "Bo Reed", "chess")]
    assert list(find_shared_patterns(hits)) == []
    assert list(find_shared_patterns(hits[:1])) == []


def test_shared_patterns_do_not_depend_on_the_order_of_hits(namesakes: Namesakes) -> None:
    hits, _ = hits_for(namesakes, "hobby")
    for pair in combinations(hits[:8], 2):
        one, other = ({pattern.parts for pattern in find_shared_patterns(order)} for order in (pair, pair[::-1]))
        assert len(one) == len(other)
