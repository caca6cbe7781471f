"""Long articles on the Worlds page are shown in parts."""

from hypothesis import given
from hypothesis import strategies as st

from showhow.app.pages.worlds.explorer import PART_CHARACTERS, split_article
from showhow.worlds.source import Article

LENGTHS = st.integers(0, 300) | st.integers(PART_CHARACTERS - 2, 3 * PART_CHARACTERS)


@given(st.lists(LENGTHS, max_size=8))
def test_the_parts_of_an_article_are_bounded_and_have_all_of_it(lengths: list[int]) -> None:
    sentences = tuple("x" * length for length in lengths)
    parts = split_article(Article("T", sentences))
    pieces = [piece for part in parts for piece in part]
    assert "".join(text for _, text in pieces) == "".join(sentences)
    assert [index for index, _ in pieces if index >= 0] == list(range(len(sentences)))
    assert all(sum(len(text) for _, text in part) <= PART_CHARACTERS for part in parts)
