"""What a step stores is bounded for every tool; what was cut is named in the text and in the data."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.app.widgets.observation import MAX_ITEMS, build_observation_view
from showhow.db.models import Step
from showhow.fewshot_library.encoder import SentenceEncoder
from showhow.reasoners.provenance import trace_argument_origins
from showhow.tools.limits import (
    MAX_STORED_DATA_CHARACTERS,
    MAX_STORED_TEXT_CHARACTERS,
    MAX_STORED_VALUE_CHARACTERS,
    bound_data,
    bound_text,
    cut_total,
)
from showhow.tools.registry import get_tool
from showhow.tools.tool import Observation, ToolContext
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import open_world

SENTENCES = 60_000
KEEPER = "The keeper of the last lighthouse is Zelda Quorn."


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory, meaning: SentenceEncoder) -> ToolContext:
    """A world with an article of 4 MB, one of one sentence of 2 MB, and a graph of 300 literals of 20 kB."""
    home = tmp_path_factory.mktemp("large")
    long = [f"Stone number {n} of the wall is grey and lies beside its neighbour." for n in range(SENTENCES)]
    articles = [
        {"title": "The Wall", "sentences": [*long, KEEPER]},
        {"title": "The Word", "sentences": ["a" * 2_000_000]},
    ]
    (home / "articles.jsonl").write_text("\n".join(map(json.dumps, articles)))
    triples = [f'<http://ex.example/{n}> <http://ex.example/text> "{n} {"x" * 20_000}" .' for n in range(300)]
    (home / "graph.nt").write_text("\n".join(triples))
    contents = WorldContents(read_articles(home / "articles.jsonl", "auto", {}), home / "graph.nt", {})
    build_world(home / "worlds", "large", contents)
    return ToolContext(open_world(home / "worlds", "large"), meaning)


def call(context: ToolContext, tool: str, **arguments: str) -> Observation:
    result = get_tool(tool).call(context, arguments)
    assert result.observation is not None, result.error
    assert len(json.dumps(result.observation.data, ensure_ascii=False)) < 1.01 * MAX_STORED_DATA_CHARACTERS
    assert len(result.observation.text) < 1.01 * MAX_STORED_TEXT_CHARACTERS
    return result.observation


def test_read_of_a_long_article_stores_its_first_sentences_and_the_best(context: ToolContext) -> None:
    seen = call(context, "read", title="The Wall", question="Who is the keeper of the last lighthouse?")
    stored = len(seen.data["sentences"])
    assert 5_000 < stored < SENTENCES
    assert seen.data["cut"] == [{"pointer": "/sentences", "stored": stored, "total": SENTENCES + 1}]
    assert f"Only the first {stored:,} of 60,001 sentences are stored with this step; the world has all." in seen.text
    assert KEEPER in seen.text
    view = build_observation_view(Step(trace_id=None, position=1, observation=seen.text, data=seen.data))  # type: ignore[arg-type]
    (keeper,) = [sentence for sentence in view["best"] if "Zelda" in sentence["text"]]
    assert (keeper["place"], keeper["text"]) == (SENTENCES, KEEPER)
    index = int(keeper["pointer"].split("/")[2])
    assert seen.data["best"][index]["text"] == KEEPER
    assert len(view["rest"]) == MAX_ITEMS
    assert view["count"] == SENTENCES + 1
    assert view["more"] == {"shown": 100, "on_request": 2_000, "total": SENTENCES + 1, "noun": "sentences"}
    origins = trace_argument_origins({"title": "Zelda Quorn"}, "Who?", {1: seen.data})
    assert origins["title"]["pointer"] == keeper["pointer"]


def test_a_sentence_of_two_million_characters_is_cut(context: ToolContext) -> None:
    seen = call(context, "read", title="The Word", question="What?")
    assert len(seen.data["sentences"][0]) == MAX_STORED_VALUE_CHARACTERS + 2
    assert {"pointer": "/sentences/0", "stored": 20_000, "total": 2_000_000} in seen.data["cut"]
    assert "2 texts were cut at 20,000 characters" in seen.text


def test_rows_of_a_query_are_stored_as_far_as_they_fit(context: ToolContext) -> None:
    seen = call(context, "runQuery", sparql="SELECT ?text { ?x <http://ex.example/text> ?text }")
    stored = len(seen.data["rows"])
    assert 10 < stored < 300
    assert cut_total(seen.data, "rows") == 300
    assert f"Only the first {stored} of 300 rows are stored" in seen.text


def test_what_fits_is_stored_unchanged(context: ToolContext) -> None:
    data = {"rows": [[{"kind": "literal", "value": "x" * 30_000}]] * 30, "boolean": None}
    assert bound_data(data) == (data, [])
    assert bound_text("x" * MAX_STORED_TEXT_CHARACTERS) == "x" * MAX_STORED_TEXT_CHARACTERS


def test_of_a_long_text_the_number_of_missing_characters_is_told() -> None:
    assert bound_text("x" * (MAX_STORED_TEXT_CHARACTERS + 1_234)).endswith(
        "cut at 100,000 characters; 1,234 more were not stored."
    )


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just("y" * 700_000),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc/~", min_size=1, max_size=3), JSON_VALUES, max_size=6))
def test_any_data_are_bounded_and_their_pointers_lead_to_what_was_cut(data: dict[str, Any]) -> None:
    bounded, notes = bound_data(data)
    assert len(json.dumps(bounded, ensure_ascii=False)) < 1.01 * MAX_STORED_DATA_CHARACTERS
    assert bool(notes) == ("cut" in bounded)
    for cut in bounded.get("cut", ()) if notes else ():
        assert 0 <= cut["stored"] < cut["total"]
