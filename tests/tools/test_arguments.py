"""Ids of entities in the forms that people and models write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.tools.arguments import normalize_id, split_ids
from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext
from showhow.worlds.source import World


@pytest.mark.parametrize(
    "written",
    ["Q1,Q2", "Q1, Q2", "[Q1, Q2]", "['Q1', 'Q2']", '["Q1","Q2"]', "Q1\nQ2", " Q1 Q2 ", "(Q1; Q2)".replace(";", ",")],
)
def test_one_text_with_several_ids_is_a_list(written: str) -> None:
    assert split_ids(written) == ["Q1", "Q2"]


@pytest.mark.parametrize(
    "written",
    [
        "Q42",
        "wd:Q42",
        "<http://www.wikidata.org/entity/Q42>",
        "https://www.wikidata.org/entity/Q42",
        " Q42 ",
        "\u200bQ42",
        "Q42\u200e",
        "\ufeffwd:Q\u00ad42\u2060",
        "(Q42\u200f)",
    ],
)
def test_an_id_is_normalized_to_its_short_form(written: str) -> None:
    assert normalize_id(written) == "Q42"


def test_other_iris_are_not_changed() -> None:
    assert normalize_id("<http://harbour.example/livesIn>") == "http://harbour.example/livesIn"


@given(st.lists(st.from_regex(r"[QP][1-9][0-9]{0,6}", fullmatch=True)), st.sampled_from([",", ", ", "\n", " ", " ,\n"]))
def test_joining_and_splitting_gives_the_same_ids(ids: list[str], between: str) -> None:
    assert split_ids(between.join(ids)) == ids


@pytest.mark.parametrize(
    ("name", "arguments", "needs"),
    [
        ("wikisearch", {"query": "x"}, "articles"),
        ("read", {"title": "x", "question": "y"}, "articles"),
        ("getWikiDataID", {"title": "x"}, "a graph"),
        ("generateQuery", {"question": "x", "entity_ids": "Q1"}, "a graph"),
        ("runQuery", {"sparql": "ASK {}"}, "a graph"),
        ("getLabel", {"ids": "Q1"}, "a graph"),
    ],
)
def test_the_error_of_a_missing_source_names_it(
    name: str, arguments: dict[str, str], needs: str, without_encoder: ToolContext
) -> None:
    outcome = get_tool(name).call(ToolContext(World("empty"), without_encoder.encode), arguments)
    assert outcome.observation is None
    assert outcome.error is not None
    assert outcome.error.startswith(f"{name} needs {needs}, and the world empty has none")


def test_a_misspelled_argument_is_refused_with_the_right_names(without_encoder: ToolContext) -> None:
    error = get_tool("read").call(without_encoder, {"titel": "x", "question": "y"}).error
    assert error is not None
    assert "titel" in error
    assert "It takes title, question." in error
