"""A text is cut into sentences, and nothing of it is lost."""

from hypothesis import example, given
from hypothesis import strategies as st

from showhow.worlds.sentences import split_sentences

PIECES = st.sampled_from([*'aA.!?" \xa0\u2009\u3000\n\té中', "Dr.", "J. Reed", "sailed. She"])


def test_abbreviations_end_no_sentence_and_lines_do():
    text = "Dr. Reed sailed. She came back.\n\nThen it rained"
    assert split_sentences(text) == ("Dr. Reed sailed.", "She came back.", "Then it rained")


@given(st.text() | st.lists(PIECES).map("".join), st.sampled_from(["en", "de", "fr", "ru", "zh"]))
@example("It sailed from quay A\xa0. She came back.", "en")
def test_every_character_but_white_space_is_in_a_sentence(text: str, language: str):
    sentences = split_sentences(text, language)
    assert all(sentence.strip() == sentence != "" for sentence in sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())
