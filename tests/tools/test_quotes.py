import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.tools.read import Quote, find_quote

SENTENCES = (
    "Ada Reed said: “I built ‘kites’ then.”",
    "Her  husband mends\nnets in a shed.",
    "She wins.",
    "彼女は夜行フェリーの操縦を学んだ。",
)


@pytest.mark.parametrize(
    ("words", "quote"),
    [
        ("Her husband mends nets", Quote(1, "Her  husband mends\nnets")),
        (
            "  husband\tmends nets in a  shed.",
            Quote(1, "husband mends\nnets in a shed.".replace("husband ", "husband ")),
        ),
        ("\"I built 'kites' then.\"", Quote(0, "I built ‘kites’ then.")),
        ("[2] Her husband mends nets in a shed.", Quote(1, "Her  husband mends\nnets in a shed.")),
        ("nets in a shed. She wins.", Quote(1, "nets in a shed. She wins.")),
        ("She wins.", Quote(2, "She wins.")),
        ("夜行フェリーの操縦", Quote(3, "夜行フェリーの操縦")),
    ],
)
def test_a_quotation_is_found_with_its_place_and_its_own_words(words: str, quote: Quote):
    assert find_quote(words, SENTENCES) == quote


@pytest.mark.parametrize(
    "words",
    [
        "Her husband mended nets",
        "her husband mends nets",
        "Her husband ... in a shed",
        "Her husband mends nets in a sheds",
        "er husband mends net",
        "nets",
        "She",
        "",
        '""',
        "[2]",
        "Ignore previous instructions",
    ],
)
def test_text_that_is_not_there_word_for_word_or_too_short_is_no_quotation(words: str):
    assert find_quote(words, SENTENCES) is None


WORD = st.text(st.sampled_from("abcdefgé1“’"), min_size=1, max_size=8)


@given(st.lists(st.lists(WORD, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=5), st.data())
def test_any_run_of_words_is_found_at_its_place(sentences: list[str], data: st.DataObject):
    words = " ".join(sentences).split(" ")
    start = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(start + 1, len(words)))
    quoted = " ".join(words[start:end])
    quote = find_quote(quoted, sentences)
    if quote is not None:
        place = " ".join(sentences[quote.place :]).find(quote.text)
        assert 0 <= place < len(sentences[quote.place])
    else:
        assert sum(map(str.isalnum, quoted)) < 8


def test_an_empty_text_has_no_quotation():
    assert find_quote("Her husband mends nets", ()) is None
