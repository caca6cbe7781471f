"""Queries prepared for an endpoint, checked with rdflib's parser, an independent implementation."""

import json
import string

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.parser import parseQuery

from showhow.worlds import terms
from showhow.worlds.live.description import SparqlEndpoint
from showhow.worlds.live.sparql.rewrite import prepare_query
from showhow.worlds.source import QueryRefused
from showhow.worlds.sparql_syntax import tokenize_query
from tests.examples import examples

PLAIN = SparqlEndpoint("http://127.0.0.1/sparql", rows=100)
WITH_SERVICE = SparqlEndpoint("http://127.0.0.1/sparql", rows=100, label_service=True, labels="service")
OWN = SparqlEndpoint(
    "http://127.0.0.1/sparql",
    entity="http://ours.example/entity/",
    property="http://ours.example/prop/direct/",
    prefixes={"our": "http://ours.example/"},
)

FEW = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
"""Few examples, because rdflib's parser is slow."""

VARIABLES = st.sampled_from(["?x", "?y", "$z", "?limit", "?service"])
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).map(
    lambda t: json.dumps(t, ensure_ascii=False)
)
TERMS = st.one_of(
    VARIABLES,
    TEXTS,
    st.sampled_from(
        ["wd:Q42", "<http://a.example/limit#x>", "42", '"LIMIT 5 }"@en', "'''VALUES {'''", "rdfs:label", "_:b"]
    ),
)
VERBS = st.sampled_from(["wdt:P22", "wdt:P22/wdt:P25", "^wdt:P40", "<http://a.example/{}>".replace("{}", "p"), "a"])
PATTERNS = st.builds("{} {} {} .".format, st.one_of(VARIABLES, st.just("wd:Q1")), VERBS, TERMS)
GROUPS = st.recursive(
    st.lists(PATTERNS, min_size=1, max_size=3).map(" ".join),
    lambda inner: st.one_of(
        inner.map("OPTIONAL {{ {} }}".format),
        st.builds("{{ {} }} UNION {{ {} }}".format, inner, inner),
        inner.map("{{ SELECT ?x WHERE {{ {} }} LIMIT 7 }}".format),
        inner.map("?x wdt:P1 ?y FILTER NOT EXISTS {{ {} }}".format),
        st.builds("{} # LIMIT 3 }}\n".format, inner),
    ),
    max_leaves=3,
)
ENDS = st.sampled_from(
    ["", " ORDER BY ?x", " GROUP BY ?x", " ORDER BY DESC(?x) ?y", " GROUP BY ?x HAVING(COUNT(?y) > 1)"]
)
LIMITS = st.one_of(st.none(), st.integers(0, 3000))
OFFSETS = st.sampled_from(["", " OFFSET 5"])
VALUES = st.sampled_from(["", " VALUES ?x { wd:Q1 wd:Q2 }", " # the end", "\n"])
HEADS = st.sampled_from(["?x", "DISTINCT ?x", "(?x AS ?limits)", "(COUNT(*) AS ?n)"])


@st.composite
def selects(draw: st.DrawFn) -> tuple[str, int | None]:
    """A SELECT that contains texts like a limit in other places, and its limit."""
    limit = draw(LIMITS)
    written = (
        "" if limit is None else draw(st.sampled_from([" LIMIT {}", "\nlimit {}", " LIMIT#how many\n{}"])).format(limit)
    )
    head, group, end = draw(HEADS), draw(GROUPS), draw(ENDS)
    return f"SELECT {head} WHERE {{ {group} }}{end}{written}{draw(OFFSETS)}{draw(VALUES)}", limit


def declared(sparql: str) -> str:
    return "\n".join(f"PREFIX {prefix}: <{iri}>" for prefix, iri in terms.PREFIXES.items()) + "\n" + sparql


def parses(sparql: str) -> bool:
    try:
        parseQuery(sparql)
    except Exception:  # noqa: BLE001 - whatever the second parser raises, it does not take the query
        return False
    return True


@given(selects())
@FEW
def test_a_select_is_limited_to_one_row_more_and_otherwise_unchanged(made):
    sparql, limit = made
    assume(parses(declared(sparql)))
    prepared = prepare_query(sparql, PLAIN)
    expected = 101 if limit is None or limit > 100 else limit
    parsed = parseQuery(prepared.text)[1]
    assert int(parsed.limitoffset.limit) == expected
    assert prepared.limit_added is (limit is None or limit > 100)
    # With the same limit written by hand, both parse to the same algebra.
    original = parseQuery(declared(sparql))[1]
    for one in (parsed, original):
        one.pop("limitoffset", None)
    assert repr(parsed) == repr(original)


@pytest.mark.parametrize("limit", ["9" * 5_000, "9" * 10, "²"])
def test_a_limit_that_is_no_small_number_is_replaced(limit):
    assert " LIMIT 101" in prepare_query(f"SELECT ?x {{ ?x ?y ?z }} LIMIT {limit}", PLAIN).text


@given(selects())
@FEW
def test_missing_prefixes_are_added_once(made):
    sparql, _ = made
    assume(parses(declared(sparql)))
    prepared = prepare_query(sparql, PLAIN)
    prepareQuery(prepared.text)
    head = prepared.text.partition("\n")[0] if prepared.added_lines else ""
    assert head.count("PREFIX") == len(set(head.split("PREFIX ")[1:]))


@given(st.text(string.printable, max_size=60), st.text(string.printable, max_size=30))
def test_any_text_is_refused_or_is_a_select_or_ask(before, after):
    try:
        prepared = prepare_query(f"{before} SERVICE <http://evil.example/> {after}", PLAIN)
    except QueryRefused:
        return
    assert prepared.form in {"SELECT", "ASK"}
    # An accepted query has the call in a text, an IRI or a comment only.
    bare = " ".join(token.text for token in tokenize_query(prepared.text).tokens if token.kind in {"word", "name"})
    assert "service" not in bare.casefold()


@pytest.mark.parametrize(
    "sparql",
    [
        r"SELECT * { S\u0045RVICE <http://evil.example/> { ?a ?b ?c } }",
        r'SELECT * { ?a ?b "\u0022 . SERVICE <http://evil.example/> { ?a ?b ?c } #" }',
        "PREFIX wikibase: <http://evil.example/> SELECT * { SERVICE wikibase:label { ?a ?b ?c } }",
        "SELECT * { SERVICE wikibase:label { bd:serviceParam wikibase:language 'en' } SERVICE ?x { ?a ?b ?c } }",
        "SELECT * { SERVICE wikibase:labels { ?a ?b ?c } }",
        "SELECT * { 5 .SERVICE<http://evil.example/>{?a ?b ?c} }",
        "SELECT * { ?a ?b ?c } ; DROP ALL",
        "SELECT * { ?a ?b ?c } } ; DROP ALL",
        "ASK { ?a ?b ?c };\nINSERT DATA { <a:a> <a:b> <a:c> }",
        "SELECT * { ?a ?b ?c } LIMIT 1 DELETE { ?a ?b ?c } WHERE { ?a ?b ?c }",
        r"SELECT * { ?a ?b ?c } \u003B DR\u004FP ALL",
        'DEFINE get:soft "soft" SELECT * FROM <http://evil.example/> { ?a ?b ?c }',
        "BASE <http://a.example/> LOAD <x>",
    ],
)
@pytest.mark.parametrize("endpoint", [PLAIN, WITH_SERVICE], ids=["without", "with the service"])
def test_nothing_but_the_graph_itself_and_its_label_service_is_asked(sparql, endpoint):
    with pytest.raises(QueryRefused):
        prepare_query(sparql, endpoint)


ENGLISH = "bd:serviceParam wikibase:language 'en'"
LABELS = """SELECT ?film ?filmLabel ?when WHERE {
  ?film wdt:P57 wd:Q42 .
  SERVICE wikibase:label { bd:serviceParam wikibase:language "[AUTO_LANGUAGE],de". }
} ORDER BY ?filmLabel"""


def test_the_label_service_stays_where_there_is_one():
    assert "SERVICE wikibase:label" in prepare_query(LABELS, WITH_SERVICE).text


@pytest.mark.parametrize(
    "sparql",
    [
        LABELS,
        LABELS.replace("wikibase:label", "<http://wikiba.se/ontology#label>"),
        LABELS.replace("SERVICE", "service silent"),
        f"SELECT ?x ?name {{ ?x wdt:P57 ?y SERVICE wikibase:label {{ {ENGLISH} . ?x rdfs:label ?name }} }}",
        "SELECT ?x (COUNT(?y) AS ?n) ?xLabel ?xDescription ?xAltLabel { { ?x wdt:P57 ?y } UNION { ?x wdt:P58 ?y } "
        f"SERVICE wikibase:label {{ {ENGLISH} }} }} GROUP BY ?x ?xLabel ?xDescription ?xAltLabel",
        f"SELECT ?n {{ {{ SELECT ?x ?xLabel {{ ?x wdt:P57 ?y SERVICE wikibase:label {{ {ENGLISH} }} }} }} "
        "BIND(?xLabel AS ?n) }",
        f"SELECT ?x ?xLabel ?yLabel {{ {{ ?x wdt:P57 ?y SERVICE wikibase:label {{ {ENGLISH} }} }} "
        f"SERVICE wikibase:label {{ {ENGLISH} }} }}",
        f"SELECT ?x ?n ?xLabel {{ {{ ?x wdt:P57 ?y SERVICE wikibase:label {{ {ENGLISH} . ?x rdfs:label ?n }} }} "
        f"SERVICE wikibase:label {{ {ENGLISH} }} }}",
    ],
)
def test_the_label_service_is_written_otherwise_where_there_is_none_and_the_query_still_parses(sparql):
    text = prepare_query(sparql, PLAIN).text
    prepareQuery(text)
    assert "service" not in text.casefold().replace("serviceparam", "")
    assert "rdfs:label" in text


def test_the_lines_of_a_query_keep_their_numbers_in_what_a_server_says():
    prepared = prepare_query(LABELS, PLAIN)
    assert prepared.added_lines == 1
    line = next(n for n, text in enumerate(prepared.text.splitlines(), 1) if "ORDER BY" in text)
    assert prepared.restore_line_numbers(f"error at {line}:7: expected") == "error at 4:7: expected"
    assert prepared.restore_line_numbers(f"compiler, line {line}: syntax") == "compiler, line 4: syntax"
    assert prepared.restore_line_numbers("took 10:20:30 and 99 lines") == "took 10:20:30 and 99 lines"


def test_an_endpoint_may_have_name_spaces_and_prefixes_of_its_own():
    text = prepare_query("SELECT ?x { wd:Q1 wdt:P1 ?x . ?x our:is our:b }", OWN).text
    assert "PREFIX wd: <http://ours.example/entity/>" in text
    assert "PREFIX wdt: <http://ours.example/prop/direct/>" in text
    assert "PREFIX our: <http://ours.example/>" in text
