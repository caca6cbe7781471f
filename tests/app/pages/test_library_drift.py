"""Two observations side by side: differences are marked, and text is never markup."""

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from showhow.app.pages.library.usage import highlight_changes

TEXTS = st.lists(st.sampled_from(["Ada", "Q1", "<b>", "\n", "  ", "&amp;", "was", "is"]), max_size=12).map(" ".join)


def visible_text(html: str) -> str:
    return unescape(re.sub(r"</?mark>", "", html))


@given(TEXTS, TEXTS)
def test_both_texts_are_complete_and_only_differences_are_marked(before, now):
    old, new = highlight_changes(before, now)
    assert (visible_text(old), visible_text(new)) == (before, now)
    unmarked = [re.sub(r"<mark>.*?</mark>", "", side, flags=re.DOTALL) for side in (old, new)]
    assert unmarked[0] == unmarked[1]
    assert "<b>" not in old + new


def test_a_changed_word_is_marked():
    assert highlight_changes("Ada was here", "Ada is here") == ("Ada <mark>was</mark> here", "Ada <mark>is</mark> here")
