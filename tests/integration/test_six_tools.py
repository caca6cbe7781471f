"""The six tools and the graph steps pass the same tests on an embedded world, on real servers, and offline."""

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext, ToolResult
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.live.http.request import Access
from showhow.worlds.live.world import add_live_world
from showhow.worlds.open import open_world
from tests.servers.live_world import description
from tests.servers.mediawiki import MediaWiki
from tests.servers.sparql import SparqlServer

pytestmark = pytest.mark.long

WORLDS = ("embedded", "oxigraph", "virtuoso", "offline")
WHO = Access("tests@showhow.example")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that both the text and the graph state."""

    title: str
    subject: str
    name: str
    relation: str
    property: str
    object: str
    object_label: str


FACTS = (
    Fact("Charles Mathew", "Q5079445", "Charles Mathew", "father", "P22", "Q18120934", "James Charles Mathew"),
    Fact("Queen Jeongsun (Wonjong)", "Q9635005", "Queen Jeongsun", "spouse", "P26", "Q493978", "Wonjong of Goryeo"),
    Fact("A Day of Roses in August", "Q3720687", "A Day of Roses in August", "director", "P57", "Q120353", "Max Mack"),
    Fact("Euphoria (Usher song)", "Q5410644", "Euphoria", "performer", "P175", "Q165911", "Usher"),
    Fact("In Heaven", "Q16846961", "In Heaven", "performer", "P175", "Q2071", "David Lynch"),
    Fact("Clarice Orsini", "Q261871", "Clarice Orsini", "spouse", "P26", "Q177854", "Lorenzo de' Medici"),
    Fact(
        'I Cannot Say "Farewell"', "Q4315417", 'I Cannot Say "Farewell"', "director", "P57", "Q4171102", "Boris Durov"
    ),
    Fact("Ręce do góry", "Q1642203", "Ręce do góry", "director", "P57", "Q51530", "Jerzy Skolimowski"),
    Fact(
        "The Sparrow's Fluttering", "Q3794030", "The Sparrow's Fluttering", "composer", "P86", "Q167546", "Lucio Dalla"
    ),
)
HOSTILE = {
    "nothing": "",
    "spaces": " \t\n ",
    "mark-up": "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "wikitext": "{{Infobox|x=[[y]]}} '''b''' ~~~~ __TOC__ #REDIRECT",
    "quotes": "\"'`\\\"\\' ''' \"\"\"",
    "SPARQL": '" } ; DROP ALL ; SELECT * { ?s ?p "',
    "full text": 'NEAR("a" OR *) AND title:x -y ^2 ~3',
    "signs": "%s {0} ${x} \x00\x07 &amp; %2F..%2F.. \r\nX-Evil: 1",
    "halves": "\ud800 a lone half",
    "right to left": "\u202eevil\u202c עברית العربية",
    "marks": "e\u0301 Zalgo\u0336\u0337 👩‍👩‍👧‍👦 \ufdd0",
    "an address": "http://127.0.0.1:9/w/api.php?action=delete",
    "very long": "word " * 40_000,
    "very long word": "x" * 200_000,
}
Ask = Callable[[str, Mapping[str, Any]], ToolResult]


@pytest.fixture(scope="module")
def endpoints(oxigraph: SparqlServer, virtuoso: SparqlServer) -> dict[str, SparqlServer]:
    return {"oxigraph": oxigraph, "virtuoso": virtuoso}


@pytest.fixture(scope="module")
def worlds(
    mediawiki: MediaWiki,
    endpoints: dict[str, SparqlServer],
    graph_files: dict[str, Path],
    shared_data: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A folder with three worlds of the same articles and graph: one embedded, two live."""
    folder = tmp_path_factory.mktemp("worlds")
    titles = {page.title for page in mediawiki.pages}
    lines = (shared_data / "world_2wiki" / "paragraphs.jsonl").read_text(encoding="utf-8").splitlines()
    articles = folder.parent / f"{folder.name}.jsonl"
    articles.write_text("\n".join(line for line in lines if json.loads(line)["title"] in titles), encoding="utf-8")
    build_world(folder, "embedded", WorldContents(read_articles(articles), graph_files["real"]))
    for name, server in endpoints.items():
        add_live_world(folder, name, description(mediawiki.api, server.url, server.graph("real")), "test.toml")
    return folder


@pytest.fixture(scope="module")
def open_context(worlds: Path) -> Callable[[str, Access], ToolContext]:
    encoder = SentenceEncoder(BUNDLED_MODEL)
    return lambda name, access: ToolContext(open_world(worlds, name, access), encoder)


@pytest.fixture(scope="module", params=WORLDS)
def ask(request: pytest.FixtureRequest, open_context: Callable[[str, Access], ToolContext]) -> Ask:
    """A function that calls a tool on one of the worlds; offline calls follow the same call online."""
    if request.param != "offline":
        context = open_context(request.param, WHO)
        return lambda name, arguments: get_tool(name).call(context, arguments)
    connected, offline = open_context("oxigraph", WHO), open_context("oxigraph", Access(offline=True))

    def ask_again(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        online_result, offline_result = (
            get_tool(name).call(connected, arguments),
            get_tool(name).call(offline, arguments),
        )
        assert (offline_result.observation, offline_result.error) == (online_result.observation, online_result.error)
        return offline_result

    return ask_again


def data_of(ask: Ask, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed; returns its data."""
    outcome = ask(name, arguments)
    assert outcome.observation is not None, outcome.error
    json.dumps(outcome.observation.data)
    return outcome.observation.data


def failed_call(ask: Ask, name: str, **arguments: Any) -> tuple[str, str]:
    """Call a tool that must fail; returns its error, which is one sentence, and the error's kind."""
    outcome = ask(name, arguments)
    assert outcome.observation is None
    assert outcome.error is not None
    assert "\n" not in outcome.error
    assert outcome.error.endswith(".")
    assert len(outcome.error) < 600
    return outcome.error, str(outcome.error_kind)


@pytest.fixture(params=FACTS, ids=lambda fact: fact.title)
def fact(request: pytest.FixtureRequest) -> Fact:
    return request.param


def test_a_search_finds_the_article_by_its_name_and_by_a_question(ask: Ask, fact: Fact):
    hits_by_name = data_of(ask, "wikisearch", query=fact.title)["hits"]
    assert (hits_by_name[0]["title"], hits_by_name[0]["entity"], hits_by_name[0]["relaxed"]) == (
        fact.title,
        fact.subject,
        False,
    )
    hits_by_question = data_of(ask, "wikisearch", query=f"Who is the {fact.relation} of {fact.title}?")["hits"]
    assert fact.title in [hit["title"] for hit in hits_by_question]
    assert all("<" not in hit["snippet"] for hit in hits_by_name + hits_by_question)


def test_an_article_is_read_with_its_entity_and_states_the_fact(ask: Ask, fact: Fact):
    data = data_of(ask, "read", title=fact.title, question=f"Who is the {fact.relation}?")
    assert (data["title"], data["entity"]) == (fact.title, fact.subject)
    text = " ".join(data["sentences"])
    assert fact.object_label.split()[0] in text
    assert [data["sentences"][best["place"]] for best in data["best"]] == [best["text"] for best in data["best"]]
    assert data["best"]


def test_a_title_and_a_name_give_the_entity(ask: Ask, fact: Fact):
    assert data_of(ask, "getWikiDataID", title=fact.title)["entities"][0]["id"] == fact.subject
    named = data_of(ask, "getWikiDataID", title=fact.name)["entities"]
    assert (fact.subject, fact.name) in [(entity["id"], entity["label"]) for entity in named]


def test_ids_of_entities_and_relations_give_labels(ask: Ask, fact: Fact):
    data = data_of(ask, "getLabel", ids=[fact.object, fact.property, "Q99999999999", fact.subject])
    assert [(label["id"], label["label"]) for label in data["labels"]] == [
        (fact.object, fact.object_label),
        (fact.property, fact.relation),
        (fact.subject, fact.name),
    ]


@pytest.fixture(scope="module")
def triples(shared_data: Path) -> dict[tuple[str, str], set[str]]:
    """The objects by subject and property, from the table that the graph was made from."""
    objects = defaultdict(set)
    with (shared_data / "world_2wiki" / "triples.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            objects[row["subject_qid"], row["pid"]].add(row["object_qid"])
    return objects


def test_a_query_returns_the_rows_of_the_graph(ask: Ask, fact: Fact, triples: dict[tuple[str, str], set[str]]):
    data = data_of(ask, "runQuery", sparql=f"SELECT ?x {{ wd:{fact.subject} wdt:{fact.property} ?x }}")
    assert data["columns"] == ["x"]
    assert {row[0]["value"] for row in data["rows"]} == triples[fact.subject, fact.property]
    assert {row[0]["kind"] for row in data["rows"]} == {"entity"}
    assert fact.object_label in {row[0]["label"] for row in data["rows"]}
    assert data["truncated"] is False


def test_steps_through_the_graph_reach_the_object_and_return(
    ask: Ask, fact: Fact, triples: dict[tuple[str, str], set[str]]
):
    relations = data_of(ask, "getRelationsAsHead", entity=fact.subject)["relations"]
    assert {"id": fact.property, "label": fact.relation, "direction": "head"} in [
        {name: value for name, value in link.items() if name != "count"} for link in relations
    ]
    tails = data_of(ask, "getTailEntities", entity=fact.subject, relation=fact.property)["values"]
    assert {link["id"] for link in tails} == triples[fact.subject, fact.property]
    assert fact.object_label in {link["label"] for link in tails}
    assert fact.property in [link["id"] for link in data_of(ask, "getRelationsAsTail", entity=fact.object)["relations"]]
    heads = data_of(ask, "getHeadEntities", relation=fact.property, entity=fact.object, limit=1000)
    assert {link["id"] for link in heads["values"]} == {
        subject
        for (subject, property_id), objects in triples.items()
        if property_id == fact.property and fact.object in objects
    }


def test_a_written_query_returns_the_object(ask: Ask, fact: Fact):
    question = f"Who is the {fact.relation} of {fact.name}?"
    best = data_of(ask, "generateQuery", question=question, entity_ids=[fact.subject])["candidates"][0]
    rows = data_of(ask, "runQuery", sparql=best["sparql"])["rows"]
    assert fact.object in {cell["value"] for row in rows for cell in row if cell}


def test_a_written_query_confirms_the_object(ask: Ask, fact: Fact):
    question = f"Is {fact.object_label} the {fact.relation} of {fact.name}?"
    arguments = {"question": question, "entity_ids": [fact.object, fact.subject]}
    best = data_of(ask, "generateQuery", **arguments)["candidates"][0]
    rows = data_of(ask, "runQuery", sparql=best["sparql"])["rows"]
    assert [[cell["value"] for cell in row] for row in rows] == [["yes"]]


@pytest.mark.parametrize(
    ("question", "facts", "cells"),
    [
        ("Are the directors of {0} and {1} the same?", (2, 7), ["no"]),
        ("Are the directors of {0} and {1} the same?", (2, 3), []),
        ("Which film was released first, {0} or {1}?", (2, 3), []),
        ("Was {0} released before {1}?", (2, 3), []),
    ],
)
def test_a_written_query_compares_only_what_has_values(
    ask: Ask, question: str, facts: tuple[int, int], cells: list[str]
):
    items = [FACTS[place] for place in facts]
    text = question.format(*(item.name for item in items))
    ids = [item.subject for item in items]
    best = data_of(ask, "generateQuery", question=text, entity_ids=ids)["candidates"][0]
    rows = data_of(ask, "runQuery", sparql=best["sparql"])["rows"]
    assert [cell["value"] for row in rows for cell in row] == cells


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (COUNT(*) AS ?n) { ?film wdt:P57 ?director }",
        "SELECT ?film ?born { ?film wdt:P57 ?d . ?d wdt:P569 ?born } ORDER BY ?film ?born LIMIT 40",
        "SELECT ?film ?label { ?film wdt:P57 wd:Q2071 ; rdfs:label ?label FILTER(LANG(?label) = 'en') }",
        "SELECT ?p { wd:Q5079445 ?p wd:Q18120934 }",
        "SELECT ?a ?b { wd:Q5079445 wdt:P22 ?a OPTIONAL { ?a wdt:P9999 ?b } }",
        'SELECT ?x { ?x rdfs:label "Ręce do góry"@en }',
        "ASK { wd:Q5079445 wdt:P22 wd:Q18120934 }",
        "ASK { wd:Q18120934 wdt:P22 wd:Q5079445 }",
    ],
)
def test_every_world_returns_the_rows_of_the_embedded_world(
    ask: Ask, query: str, open_context: Callable[[str, Access], ToolContext]
):
    files = get_tool("runQuery").call(open_context("embedded", WHO), {"sparql": query}).observation
    assert files is not None
    data = data_of(ask, "runQuery", sparql=query)
    assert (data["columns"], data["boolean"]) == (files.data["columns"], files.data["boolean"])
    assert as_set(data["rows"]) == as_set(files.data["rows"])


def as_set(rows: list[list[dict[str, Any] | None]]) -> set[tuple[tuple[str, str] | None, ...]]:
    return {tuple(cell and (cell["kind"], cell["value"]) for cell in row) for row in rows}


def test_an_empty_result_is_an_observation_and_not_an_error(ask: Ask):
    assert data_of(ask, "wikisearch", query="xyzzyplugh quuxblort")["hits"] == []
    data = data_of(ask, "runQuery", sparql="SELECT ?x { wd:Q5079445 wdt:P9999 ?x }")
    assert (data["columns"], data["rows"], data["boolean"]) == (["x"], [], None)


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("read", {"title": "No such article anywhere", "question": "Who?"}, "not found"),
        ("getWikiDataID", {"title": "Nobody is object_label so"}, "not found"),
        ("getLabel", {"ids": ["Q99999999999"]}, "not found"),
        ("getLabel", {"ids": []}, "wrong arguments"),
        ("getRelationsAsHead", {"entity": "Q99999999999"}, "not found"),
        ("getRelationsAsTail", {"entity": "David Lynch"}, "wrong arguments"),
        ("getTailEntities", {"entity": "Q5079445", "relation": "P9999"}, "not found"),
        ("getHeadEntities", {"entity": "Q5079445", "relation": "father"}, "wrong arguments"),
        ("generateQuery", {"question": "Who?", "entity_ids": ["Q99999999999"]}, "not found"),
        ("generateQuery", {"question": "xyzzy", "entity_ids": ["Q5079445"]}, "not found"),
        ("runQuery", {"sparql": "DELETE WHERE { ?s ?p ?o }"}, "refused query"),
        ("runQuery", {"sparql": "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }"}, "refused query"),
        ("runQuery", {"sparql": ""}, "wrong arguments"),
        ("wikisearch", {"words": "x"}, "wrong arguments"),
        ("read", {"title": "http://127.0.0.1:9/", "question": "Who?"}, "unavailable"),
    ],
)
def test_a_failure_has_one_sentence_and_the_same_kind_in_every_world(
    ask: Ask, name: str, arguments: dict[str, Any], kind: str
):
    assert failed_call(ask, name, **arguments)[1] == kind


@pytest.mark.parametrize("name", WORLDS[:3])
def test_a_syntax_error_of_a_query_is_reported_with_its_position(
    name: str, open_context: Callable[[str, Access], ToolContext]
):
    context = open_context(name, WHO)
    error, kind = failed_call(
        lambda *call: get_tool(call[0]).call(context, call[1]), "runQuery", sparql="SELECT ?x WHERE { ?x wdt:P57 }"
    )
    assert kind == "refused query"
    assert "Correct it" in error


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_input_is_answered_or_refused_with_one_sentence_and_the_next_call_works(ask: Ask, text: str):
    calls = [
        ("wikisearch", {"query": text}),
        ("read", {"title": text, "question": "Who?"}),
        ("read", {"title": "Timber Falls", "question": text}),
        ("getWikiDataID", {"title": text}),
        ("generateQuery", {"question": text, "entity_ids": ["Q6027056"]}),
        ("generateQuery", {"question": "Who is the director of Timber Falls?", "entity_ids": [text]}),
        ("runQuery", {"sparql": text}),
        ("getLabel", {"ids": [text]}),
        ("getRelationsAsHead", {"entity": text}),
        ("getRelationsAsTail", {"entity": text}),
        ("getTailEntities", {"entity": "Q6027056", "relation": text}),
        ("getHeadEntities", {"relation": "P57", "entity": text}),
    ]
    for name, arguments in calls:
        outcome = ask(name, arguments)
        if outcome.observation is None:
            failed_call(lambda *_, ended=outcome: ended, name)
        else:
            json.dumps(outcome.observation.data).encode()
    assert data_of(ask, "wikisearch", query="Timber Falls")["hits"][0]["entity"] == "Q6027056"
    assert data_of(ask, "getLabel", ids=["Q6027056"])["labels"][0]["label"] == "Timber Falls"


def test_offline_a_request_without_recorded_answer_is_an_error_and_not_an_empty_result(
    open_context: Callable[[str, Access], ToolContext],
):
    offline = open_context("oxigraph", replace(WHO, offline=True))
    for name, arguments in (
        ("wikisearch", {"query": "never asked before"}),
        ("read", {"title": "Never Asked Before", "question": "Who?"}),
        ("getWikiDataID", {"title": "Never asked before"}),
        ("generateQuery", {"question": "Who?", "entity_ids": ["Q123454321"]}),
        ("runQuery", {"sparql": "SELECT ?never { ?never ?asked 123454321 }"}),
        ("getLabel", {"ids": ["Q123454321"]}),
        ("getRelationsAsHead", {"entity": "Q123454321"}),
        ("getTailEntities", {"entity": "Q123454321", "relation": "P57"}),
    ):
        outcome = get_tool(name).call(offline, arguments)
        assert outcome.observation is None
        assert "to this request is recorded, and Showhow is offline" in (outcome.error or "")
