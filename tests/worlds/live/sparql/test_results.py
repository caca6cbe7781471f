"""What servers write, each in its way: results and failures."""

import json

import pytest

from worlds.live.http.endpoint import SparqlEndpoint
from worlds.live.sparql.protocol import map_failure
from worlds.live.sparql.results import parse_results
from worlds.live.sparql.rewrite import prepare_query
from worlds.source import Cell, QueryRefused, SourceTimeout, SourceUnavailable, Table

XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = prepare_query("SELECT ?x\n{ ?x wdt:P22 ?y }", SparqlEndpoint("http://g.example/sparql"))


def result(columns: list[str], *rows: dict[str, dict[str, str]]) -> bytes:
    return json.dumps(
        {"head": {"link": [], "vars": columns}, "results": {"distinct": False, "bindings": rows}}
    ).encode()


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ({"type": "uri", "value": "http://a.example/"}, Cell("iri", "http://a.example/")),
        ({"type": "uri", "value": "nodeID://b10000"}, Cell("blank", "b10000")),
        ({"type": "bnode", "value": "b0"}, Cell("blank", "b0")),
        ({"type": "bnode", "value": "_:b0"}, Cell("blank", "b0")),
        ({"type": "literal", "value": "x"}, Cell("literal", "x", f"{XSD}string")),
        ({"type": "typed-literal", "value": "3", "datatype": f"{XSD}integer"}, Cell("literal", "3", f"{XSD}integer")),
        ({"type": "literal", "value": "3", "datatype": f"{XSD}integer"}, Cell("literal", "3", f"{XSD}integer")),
        (
            {"type": "literal", "value": "x", "xml:lang": "de"},
            Cell("literal", "x", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "de"),
        ),
    ],
)
def test_a_value_is_the_same_whichever_server_writes_it(value, cell):
    assert parse_results(result(["x", "y"], {"x": value}), "g.example") == Table(("x", "y"), ((cell, None),))


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b'{"head": {}, "boolean": true}', True),
        (b'{"head": {"link": []}, "boolean": false}', False),
        (result(["__ASK_RETVAL"], {"__ASK_RETVAL": {"type": "typed-literal", "value": "1"}}), True),
        (result(["__ASK_RETVAL"], {"__ASK_RETVAL": {"type": "typed-literal", "value": "0"}}), False),
        (result(["__ASK_RETVAL"]), False),
    ],
)
def test_yes_and_no_are_read_as_a_boolean_and_as_virtuosos_table(body, answer):
    assert parse_results(body, "g.example") == Table(boolean=answer)


WHOLE = result(["x"], *({"x": {"type": "uri", "value": f"http://a.example/{n}"}} for n in range(3)))


@pytest.mark.parametrize("length", [*range(1, len(WHOLE), 7), len(WHOLE) - 1])
def test_an_answer_cut_off_anywhere_is_a_failure(length):
    with pytest.raises(SourceUnavailable, match="broke off"):
        parse_results(WHOLE[:length], "g.example")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Busy</html>",
        b"[]",
        b"null",
        b"{}",
        b'{"results": {}}',
        b'{"head": {"vars": ["x"]}, "results": 3}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_result_is_a_failure_and_no_empty_table(body):
    with pytest.raises(SourceUnavailable, match=r"g\.example"):
        parse_results(body, "g.example")


BLAZEGRAPH = """SPARQL-QUERY: queryStr=PREFIX wdt: <x>
SELECT ?x
java.util.concurrent.ExecutionException: \
org.openrdf.query.MalformedQueryException: Encountered " "}" "} "" at line 3, column 14.
Was expecting one of:
    "(" ...
\tat java.util.concurrent.FutureTask.report(FutureTask.java:122)
"""
BLAZEGRAPH_LATE = """SPARQL-TIMEOUT: queryStr=SELECT ?x
java.util.concurrent.TimeoutException
\tat java.util.concurrent.FutureTask.get(FutureTask.java:205)
"""
VIRTUOSO = (
    "Virtuoso 37000 Error SP030: SPARQL compiler, line 3: syntax error at '}'\n\nSPARQL query:\n"
    "define sql:big-data-const 0 SELECT ?x { ?x wdt:P22 }"
)
VIRTUOSO_LATE = "Virtuoso S1T00 Error SR171: Transaction timed out\n\nSPARQL query:\nSELECT ?x"
QLEVER = json.dumps(
    {
        "exception": 'Invalid SPARQL query: Token "}": mismatched input',
        "metadata": {"startIndex": 50, "stopIndex": 50, "line": 3, "positionInLine": 13, "query": "SELECT"},
        "query": "SELECT",
    }
)


@pytest.mark.parametrize(
    ("status", "body", "error", "message_pattern"),
    [
        (400, "error at 3:14: expected one of ['a'..='z'], \"}\"", QueryRefused, r"error at 2:14: expected one of"),
        (400, VIRTUOSO, QueryRefused, r"SPARQL compiler, line 2: syntax error at '}'"),
        (400, BLAZEGRAPH, QueryRefused, r"at line 2, column 14"),
        (500, BLAZEGRAPH, QueryRefused, r"at line 2, column 14"),
        (400, QLEVER, QueryRefused, r"at 2:13: Invalid SPARQL query"),
        (400, "", QueryRefused, "does not say why"),
        (500, VIRTUOSO_LATE, SourceTimeout, "limit of time"),
        (500, BLAZEGRAPH_LATE, SourceTimeout, "limit of time"),
        (429, json.dumps({"exception": "Operation timed out."}), SourceTimeout, "limit of time"),
        (500, "Virtuoso 22012 Error SR084: Division by 0.", SourceUnavailable, r"status 500: .*Division by 0"),
        (401, "", SourceUnavailable, "headers"),
        (403, "<html><h1>Forbidden</h1></html>", SourceUnavailable, "Forbidden.*SHOWHOW_CONTACT"),
        (404, "<html>", SourceUnavailable, "no such address"),
        (414, "<html>", QueryRefused, "as long as"),
        (418, "", SourceUnavailable, "status 418"),
    ],
)
def test_a_failure_is_one_sentence_with_the_place_in_the_query_as_it_was_written(status, body, error, message_pattern):
    failure = map_failure(status, body.encode(), "g.example", QUERY)
    assert type(failure) is error
    message = str(failure)
    assert "\n" not in message
    assert "java." not in message
    assert "SELECT ?x" not in message
    with pytest.raises(error, match=message_pattern):
        raise failure


def test_a_long_explanation_is_cut():
    assert len(str(map_failure(400, b"x" * 100_000, "g.example", QUERY))) < 600
