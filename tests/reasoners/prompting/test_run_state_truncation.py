"""Truncation of observations: within the token limit, with a notice, keeping what is relevant to the question."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.fewshot_library.encoder import SentenceEncoder
from showhow.reasoners.prompting.run_state import estimate_tokens, truncate_observation
from tests.fixtures.harbour import no_meaning

NOTICE = re.compile(r"\.\.\. ([\d,]+) more (rows?|sentences?|characters) left out$")
WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
TEXTS = (
    st.lists(WORDS, max_size=60).map("\n".join) | st.lists(WORDS, max_size=60).map(". ".join) | st.text(max_size=4_000)
)


@given(TEXTS, st.integers(1, 300), WORDS)
def test_a_text_within_the_limit_is_unchanged_and_a_longer_one_is_truncated_with_a_notice(
    text: str, max_tokens: int, question: str
) -> None:
    shown = truncate_observation(text, max_tokens, question, no_meaning)
    if estimate_tokens(text) <= max_tokens:
        assert shown == text
    else:
        assert estimate_tokens(shown) <= max(max_tokens, 16)
        assert "left out" in shown


def rows(count: int) -> list[str]:
    return [f"Person {number} | {1900 + number}" for number in range(count)]


@pytest.mark.parametrize("max_tokens", [60, 100, 200])
def test_the_header_and_the_rows_nearest_to_the_question_stay_in_order(
    max_tokens: int, meaning: SentenceEncoder
) -> None:
    table = ["person | year", *rows(100)]
    shown = truncate_observation("\n".join(table), max_tokens, "In which year was Person 77 born?", meaning)
    *kept, last = shown.splitlines()
    assert kept[0] == "person | year"
    assert "Person 77 | 1977" in kept
    assert kept == [row for row in table if row in kept]
    notice = NOTICE.fullmatch(last)
    assert notice is not None
    assert (int(notice[1]), notice[2]) == (len(table) - len(kept), "rows")


def test_the_sentences_nearest_to_the_question_stay(meaning: SentenceEncoder) -> None:
    filler = [f"The harbour has a crane number {number}." for number in range(60)]
    text = " ".join([*filler[:30], "Ada Reed is married to Dan.", *filler[30:]])
    shown = truncate_observation(text, 80, "Who is the husband of Ada Reed?", meaning)
    assert "Ada Reed is married to Dan." in shown
    assert NOTICE.search(shown)


def test_the_notice_of_an_earlier_truncation_stays(meaning: SentenceEncoder) -> None:
    table = ["person", *rows(100), "... 3,000 more rows"]
    assert "... 3,000 more rows" in truncate_observation("\n".join(table), 60, "Who?", meaning).splitlines()


def test_one_long_line_keeps_its_beginning(meaning: SentenceEncoder) -> None:
    shown = truncate_observation("x" * 10_000, 50, "Who?", meaning)
    assert shown.startswith("xxx")
    assert NOTICE.search(shown)
    assert estimate_tokens(shown) <= 50
