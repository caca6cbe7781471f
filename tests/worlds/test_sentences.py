"""A text is cut into sentences, and nothing of it is lost."""

from hypothesis import given
from hypothesis import strategies as st

from worlds.sentences import split_sentences


def test_abbreviations_end_no_sentence_and_lines_do():
    text = "Dr. Reed sailed. She came back.\n\nThen it rained"
    assert split_sentences(text) == ("Dr. Reed sailed.", "She came back.", "Then it rained")


@given(st.text())
def test_every_character_but_white_space_is_in_a_sentence(text: str):
    sentences = split_sentences(text)
    assert all(sentence.strip() == sentence != "" for sentence in sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())
