"""Names that become folders: safe on every system, reserved on none, and not taken for one another."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.folder_names import NAME_RULE, explain_refused_name, is_safe_name, shorten_name

UNSAFE = [
    "",
    " ",
    ".",
    "..",
    "../x",
    "a/b",
    "a\\b",
    ".hidden",
    "-x",
    "_x",
    "a b",
    "ä",
    "а",
    "x\n",
    "a\x00",
    "C:",
    "x" * 65,
]
RESERVED = ["con", "CON", "nul", "Prn", "aux", "com1", "COM9", "lpt0", "LPT3"]


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_name_is_refused_with_the_rule(name: str):
    assert not is_safe_name(name)
    assert str(explain_refused_name(name, [])).startswith(NAME_RULE)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Harbour Town docs", "Harbour-Town-docs"),
        ("../x", "x"),
        ("_x", "x"),
        ("notes.v2", "notes-v2"),
    ],
)
def test_a_refused_name_comes_with_one_that_is_near_it_and_safe(name: str, near: str):
    assert is_safe_name(near)
    assert explain_refused_name(name, []) == f"{NAME_RULE}, such as {near}"


def test_without_a_letter_or_a_digit_no_name_is_near():
    assert explain_refused_name("…", []) == NAME_RULE


@pytest.mark.parametrize("name", RESERVED)
def test_a_reserved_name_is_refused(name: str):
    assert "Windows" in str(explain_refused_name(name, []))


@pytest.mark.parametrize(
    ("name", "existing"),
    [
        ("Quays", "quays"),
        ("quays1", "quaysl"),
        ("quaysI", "quays1"),
        ("run-O", "run-0"),
        ("modem", "modern"),
        ("A", "a"),
    ],
)
def test_a_name_that_is_easily_taken_for_another_is_refused_and_names_the_other(name: str, existing: str):
    assert (
        explain_refused_name(name, ["other", existing]) == f"it is easily taken for '{existing}'; choose another name"
    )
    assert explain_refused_name(existing, ["other", name]) == f"it is easily taken for '{name}'; choose another name"


@pytest.mark.parametrize("name", ["quays", "world-2", "x", "0", "a_b", "x" * 64, "console", "com10", "nul-1"])
def test_other_names_are_accepted_also_where_similar_ones_exist(name: str):
    assert explain_refused_name(name, ["quay", "world-1", "y", "a-b", "worlds"]) is None


def test_an_existing_name_is_accepted_also_beside_one_that_looks_like_it():
    assert explain_refused_name("quays", ["quays", "Quays"]) is None


@given(st.text(max_size=80), st.lists(st.text(max_size=8), max_size=4))
def test_an_accepted_name_is_one_plain_component_of_a_path(name: str, existing: list[str]):
    if explain_refused_name(name, existing) is None:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name, flags=re.ASCII)


def test_a_long_name_is_shortened_in_a_message():
    assert shorten_name("x" * 300) == repr("x" * 80 + "…")
    assert shorten_name("a\nb") == r"'a\nb'"
