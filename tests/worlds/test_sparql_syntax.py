"""The syntax of SPARQL, compared with a parser."""

import pyoxigraph as ox
from hypothesis import example, given, settings
from hypothesis import strategies as st

from showhow.worlds.sparql_syntax import quote_literal, tokenize_query
from tests.examples import examples

EMPTY = ox.Store()


@settings(max_examples=examples(300), deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
@example('"""')
@example("\\u0041 \\n \\")
@example("\r\n\t'")
def test_a_quoted_text_is_one_token_that_a_parser_reads_as_the_text(text: str):
    query = f"SELECT ({quote_literal(text)} AS ?text) {{}}"
    assert [row["text"].value for row in EMPTY.query(query)] == [text]
    assert [token.text for token in tokenize_query(query).tokens if token.kind == "text"] == [quote_literal(text)]
