"""The tool runQuery."""

import json
import re

import pytest

from showhow.tools.registry import get_tool
from showhow.tools.run_query import MAX_ROWS_SHOWN, format_value
from showhow.tools.tool import Observation, ToolContext

DATE_TIME, DATE = "http://www.w3.org/2001/XMLSchema#dateTime", "http://www.w3.org/2001/XMLSchema#date"


def ask(context: ToolContext, sparql: str) -> Observation:
    outcome = get_tool("runQuery").call(context, {"sparql": sparql})
    assert outcome.error is None
    assert outcome.observation is not None
    return outcome.observation


def test_entities_come_with_their_labels_and_dates_are_readable_in_the_text_only(without_encoder: ToolContext) -> None:
    observation = ask(without_encoder, "SELECT ?who ?born WHERE { wd:Q1 wdt:P2 ?who . ?who wdt:P6 ?born }")
    assert observation.data["columns"] == ["who", "born"]
    who, born = observation.data["rows"][0]
    assert who == {"kind": "entity", "value": "Q3", "label": "Cora Reed"}
    assert born["value"] == "1924-07-08"
    assert born["datatype"] == DATE
    assert observation.text == "who | born\nCora Reed (Q3) | 8 July 1924"


@pytest.mark.parametrize(("mother", "text", "value"), [("Q3", "Yes", True), ("Q2", "No", False)])
def test_an_ask_query_returns_yes_or_no(mother: str, text: str, value: bool, without_encoder: ToolContext) -> None:  # noqa: FBT001 - a table's cell
    observation = ask(without_encoder, f"ASK {{ wd:Q1 wdt:P2 wd:{mother} }}")
    assert (observation.text, observation.data["boolean"], observation.data["rows"]) == (text, value, [])
    assert json.dumps(value) in json.dumps(observation.data)


def test_an_empty_result_is_a_sentence(without_encoder: ToolContext) -> None:
    observation = ask(without_encoder, "SELECT ?x WHERE { wd:Q13 wdt:P1 ?x }")
    assert observation.text == "The query matches nothing: no rows."


def test_a_long_result_is_truncated_in_the_text_and_whole_in_the_data(without_encoder: ToolContext) -> None:
    observation = ask(without_encoder, "SELECT ?s ?p ?o WHERE { ?s ?p ?o }")
    assert observation.text.count("\n") == MAX_ROWS_SHOWN + 1
    left = re.search(r"\.\.\. (\d+) more rows$", observation.text)
    assert left is not None
    assert int(left[1]) == len(observation.data["rows"]) - MAX_ROWS_SHOWN


def test_unbound_cells_stay_empty(without_encoder: ToolContext) -> None:
    observation = ask(without_encoder, "SELECT ?a ?b WHERE { VALUES ?a { 1 } OPTIONAL { wd:Q999 wdt:P1 ?b } }")
    assert observation.data["rows"][0][1] is None
    assert observation.text == "a | b\n1 | -"


@pytest.mark.parametrize(
    "sparql", ["", "SELECT nonsense", "DROP ALL", "SELECT * WHERE { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }"]
)
def test_an_invalid_query_is_an_error_of_one_sentence(sparql: str, without_encoder: ToolContext) -> None:
    outcome = get_tool("runQuery").call(without_encoder, {"sparql": sparql})
    assert outcome.observation is None
    assert outcome.error


@pytest.mark.parametrize(
    ("value", "datatype", "text"),
    [
        ("1972-01-01T00:00:00Z", DATE_TIME, "1972 (1 January)"),
        ("2012-03-01T00:00:00Z", DATE_TIME, "1 March 2012"),
        ("0953-11-08", DATE, "8 November 953"),
        ("1950-01-01", DATE, "1 January 1950"),
        ("-0044-03-15T00:00:00Z", DATE_TIME, "-0044-03-15T00:00:00Z"),
        ("2012-03-01T12:30:00Z", DATE_TIME, "2012-03-01T12:30:00Z"),
        ("2012-03-01", None, "2012-03-01"),
        ("12", "http://www.w3.org/2001/XMLSchema#integer", "12"),
    ],
)
def test_dates_are_written_as_people_do(value: str, datatype: str | None, text: str) -> None:
    assert format_value(value, datatype) == text
