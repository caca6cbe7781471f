"""Prolog's terms, read from whatever a file may hold and written so that they come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worlds.phantomwiki.prolog import NotProlog, Term, Variable, fact, quoted, read_goal, read_value

# No surrogate can be written to a file.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS)
def test_a_quoted_text_comes_back(text: str):
    assert read_value(quoted(text), 0) == (text, len(quoted(text)))


@given(st.from_regex(r"[a-z]\w{0,8}", fullmatch=True), st.lists(TEXTS, min_size=1, max_size=3))
def test_a_written_fact_comes_back(name: str, values: list[str]):
    assert read_goal(fact(name, *values)) == Term(name, tuple(values))


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ('job(Y_18, "civil engineer")', Term("job", (Variable("Y_18"), "civil engineer"))),
        (' type ("Ann" , person ) . ', None),
        ('type("Ann" , person ) . ', Term("type", ("Ann", Term("person")))),
        ("a(_, 1, b(c))", Term("a", (Variable("_"), Term("1"), Term("b", (Term("c"),))))),
        (r'a("\x41\\u00e9\U0001F600\n\t\"""")', Term("a", ('Aé😀\n\t""',))),
    ],
)
def test_goals_are_read(text: str, goal: Term | None):
    if goal is None:
        with pytest.raises(NotProlog):
            read_goal(text)
    else:
        assert read_goal(text) == goal


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a name, string or number is needed, not the end of the text"),
        ('"Ann"', "a goal begins with the name of a relation"),
        ("X", "a goal begins with the name of a relation"),
        ('job("Ann", "baker"', "a comma or ) is needed, not the end of the text"),
        ('job("Ann" "baker")', """a comma or ) is needed, not '"baker")'"""),
        ('job("Ann"), job("Bo")', """', job("Bo")' follows the goal"""),
        ('job("Ann)', "a name, string or number is needed, not '\"Ann)'"),
        (r'job("\q")', r"the escape \q is not known"),
        (r'job("\xD800\")', r"\xD800\ is no character"),
        (r'job("\U00110000")', r"\U00110000 is no character"),
        ("a(" * 50, "terms are nested more than 20 deep"),
    ],
)
def test_what_is_no_goal_is_named(text: str, reason: str):
    with pytest.raises(NotProlog) as refused:
        read_goal(text)
    assert str(refused.value) == reason


@given(st.text('abX_"\\(),. \n0'))
def test_any_text_is_a_goal_or_is_refused(text: str):
    try:
        goal = read_goal(text)
    except NotProlog:
        return
    assert goal.name in text
