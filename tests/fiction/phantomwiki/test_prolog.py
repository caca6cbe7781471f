"""Prolog terms: parsing, errors, and round trips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.fiction.phantomwiki.prolog import (
    PrologSyntaxError,
    PrologTerm,
    PrologVariable,
    format_fact,
    parse_goal,
    parse_value,
    quote_string,
)

# Surrogates cannot be written to a file.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS)
def test_a_quoted_string_parses_back(text: str):
    assert parse_value(quote_string(text), 0) == (text, len(quote_string(text)))


@given(st.from_regex(r"[a-z]\w{0,8}", fullmatch=True), st.lists(TEXTS, min_size=1, max_size=3))
def test_a_formatted_fact_parses_back(name: str, values: list[str]):
    assert parse_goal(format_fact(name, *values)) == PrologTerm(name, tuple(values))


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ('job(Y_18, "civil engineer")', PrologTerm("job", (PrologVariable("Y_18"), "civil engineer"))),
        (' type ("Ann" , person ) . ', None),
        ('type("Ann" , person ) . ', PrologTerm("type", ("Ann", PrologTerm("person")))),
        ("a(_, 1, b(c))", PrologTerm("a", (PrologVariable("_"), PrologTerm("1"), PrologTerm("b", (PrologTerm("c"),))))),
        (r'a("\x41\\u00e9\U0001F600\n\t\"""")', PrologTerm("a", ('Aé😀\n\t""',))),
    ],
)
def test_goals_are_parsed(text: str, goal: PrologTerm | None):
    if goal is None:
        with pytest.raises(PrologSyntaxError):
            parse_goal(text)
    else:
        assert parse_goal(text) == goal


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a name, string or number is expected, not the end of the text"),
        ('"Ann"', "a goal must begin with the name of a relation"),
        ("X", "a goal must begin with the name of a relation"),
        ('job("Ann", "baker"', "a comma or ) is expected, not the end of the text"),
        ('job("Ann" "baker")', """a comma or ) is expected, not '"baker")'"""),
        ('job("Ann"), job("Bo")', """', job("Bo")' follows the goal"""),
        ('job("Ann)', "a name, string or number is expected, not '\"Ann)'"),
        (r'job("\q")', r"the escape \q is unknown"),
        (r'job("\xD800\")', r"\xD800\ is not a character"),
        (r'job("\U00110000")', r"\U00110000 is not a character"),
        ("a(" * 50, "terms are nested more than 20 deep"),
    ],
)
def test_malformed_goals_raise_a_clear_error(text: str, reason: str):
    with pytest.raises(PrologSyntaxError) as refused:
        parse_goal(text)
    assert str(refused.value) == reason


@given(st.text('abX_"\\(),. \n0'))
def test_any_text_parses_or_raises_a_syntax_error(text: str):
    try:
        goal = parse_goal(text)
    except PrologSyntaxError:
        return
    assert goal.name in text
