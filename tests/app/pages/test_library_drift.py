"""Two observations side by side: what only one of them says is marked, and nothing is read as mark-up."""

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from app.pages.library.drift import highlight_changes

TEXTS = st.lists(st.sampled_from(["Ada", "Q1", "<b>", "\n", "  ", "&amp;", "was", "is"]), max_size=12).map(" ".join)


def shown(html: str) -> str:
    return unescape(re.sub(r"</?mark>", "", html))


@given(TEXTS, TEXTS)
def test_both_texts_are_shown_whole_and_only_what_differs_is_marked(before, now):
    old, new = highlight_changes(before, now)
    assert (shown(old), shown(new)) == (before, now)
    unmarked = [re.sub(r"<mark>.*?</mark>", "", side, flags=re.DOTALL) for side in (old, new)]
    assert unmarked[0] == unmarked[1]
    assert "<b>" not in old + new


def test_a_word_that_has_changed_is_marked():
    assert highlight_changes("Ada was here", "Ada is here") == ("Ada <mark>was</mark> here", "Ada <mark>is</mark> here")
