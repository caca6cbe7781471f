"""Search words extracted from questions."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.worlds.live.wiki.mediawiki import MAX_QUERIES, extract_names, extract_words, relax_query
from showhow.worlds.text_normalization import STOP_WORDS

ANYTHING = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(["Ada", "Reed", "of", "the", "born", "1998", '"Low', 'Water"', "who", "AND", "-x", "a:b", "?"])
    ).map(" ".join),
)


@given(query=ANYTHING)
def test_relaxed_queries_have_fewer_words_and_no_duplicates(query: str):
    queries = relax_query(query)
    assert len(queries) <= MAX_QUERIES
    assert len(set(queries)) == len(queries)
    if not extract_words(query):
        assert queries == []
        return
    first = queries[0]
    telling = [word for word in extract_words(query) if word.lower() not in STOP_WORDS]
    assert list(first) == (telling or extract_words(query))
    for later in queries[1:]:
        assert 0 < len(later) < len(first)
        # The words keep their order, on which phrases depend.
        assert list(later) == [word for word in first if word in later]


@given(query=ANYTHING)
def test_search_operators_are_removed(query: str):
    for word in extract_words(query):
        assert word not in {"AND", "OR", "NOT"}
        assert not set(word) & set('"*~:!?()[]{}|<>+&^\\')
        assert word[0] not in string.punctuation.replace("_", "")


@given(query=ANYTHING)
def test_extracted_names_consist_of_words_of_the_query(query: str):
    for name in extract_names(query):
        assert set(extract_words(name)) <= {
            form for word in extract_words(query) for form in (word, word.lower(), word.upper())
        }


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Where was the place of burial of Charles Mathew's father?", ["Charles Mathew"]),
        ('Who wrote "low water" in 1988?', ["low water"]),
        ("Did Ada Reed and Ivo Marsh meet in Northbridge?", ["Ada Reed", "Ivo Marsh", "Northbridge"]),
        ("Which film came out first, The Passionate Pilgrim or Aanchal?", ["The Passionate Pilgrim", "Aanchal"]),
        ("Who directed The Lord of the Rings?", ["The Lord of the Rings", "Lord of the Rings"]),
        ("Which of the two is older, In Heaven or On the Town?", ["In Heaven", "On the Town"]),
        ("When was Of Mice and Men written?", ["Of Mice and Men"]),
        ("ada reed", ["ada reed"]),
        ("A. E. Ellis (author)", ["A. E. Ellis (author)"]),
        ("When was O'Brien born?", ["O'Brien"]),
        ("Which is older, Sleep, Ada or Harbour: The Return?", ["Sleep, Ada", "Harbour: The Return"]),
        ("Who directed Row! Row! Row Home – Part 2?", ["Row! Row! Row Home – Part 2"]),
        ("Are The Ferry (1938 Film) and Dr. Reed's Boat old?", ["The Ferry (1938 Film)", "Dr. Reed's Boat"]),
        ("Where did Eli Reed, 2nd Earl of Saltmouth's father die?", ["Eli Reed, 2nd Earl of Saltmouth", "Eli Reed"]),
        ("When was Dan Reed, Jr. born?", ["Dan Reed, Jr.", "Dan Reed"]),
    ],
)
def test_names_are_found(query: str, names: list[str]):
    assert set(names) <= set(extract_names(query))


def test_question_words_are_not_names():
    assert extract_names("Who is it?") == []
    assert extract_names("In which year did she die?") == []
    assert extract_names("Did I die? And why was it so?") == []


def test_the_words_of_names_are_dropped_last():
    queries = relax_query("Which city was the mayor of when Charles Mathew wrote his famous letter about harbours?")
    assert all({"Charles", "Mathew"} & set(query) for query in queries)
    assert ("Charles", "Mathew") in queries
