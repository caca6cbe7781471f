"""Typed responses of api.php: JSON of any other shape is an error."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.worlds.live.http.request import HttpResponse, InvalidResponse, ServerBusy
from showhow.worlds.live.wiki.api import (
    ExtensionsResponse,
    PagesResponse,
    ParseResponse,
    WikiApiResponse,
    WikibaseEntitiesResponse,
    WikibaseSearchResponse,
    WikiSearchResponse,
    parse_response,
)
from showhow.worlds.source import SourceError

KINDS = (
    PagesResponse,
    WikiSearchResponse,
    ExtensionsResponse,
    ParseResponse,
    WikibaseEntitiesResponse,
    WikibaseSearchResponse,
)
WORDS = st.sampled_from(
    "query pages search title pageid snippet parse text redirects normalized from to extract pageprops extensions name "
    "entities Q1 labels en value aliases sitelinks url missing id error code info size".split()
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


def answer(value: Any) -> HttpResponse:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return HttpResponse("http://w.example/api.php", 200, {"content-type": "application/json"}, body, datetime.now(UTC))


@given(VALUES, st.sampled_from(KINDS))
def test_any_reply_is_parsed_or_reported_in_one_sentence(value: Any, kind: type[WikiApiResponse]):
    message = "w.example"
    try:
        parse_response(answer(value), kind)
    except SourceError as failed:
        message = str(failed)
    assert "w.example" in message
    assert "\n" not in message


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not ParseResponse])
@pytest.mark.parametrize("value", [{}, {"boolean": True}, {"query": None}, {"query": "x"}, {"entities": 3}, []])
def test_a_response_of_another_type_is_never_an_empty_result(value: Any, kind: type[WikiApiResponse]):
    with pytest.raises(InvalidResponse, match=r"^w\.example answered with JSON that is not MediaWiki's \(at "):
        parse_response(answer(value), kind)


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"query":' * 200_000, b"[" * 50_000 + b"]" * 50_000, b'{"query'])
def test_deeply_nested_or_truncated_json_is_reported(body: bytes):
    with pytest.raises(InvalidResponse, match="truncated or invalid"):
        parse_response(answer(body), PagesResponse)


def test_a_missing_page_is_a_valid_response_and_other_errors_are_raised():
    missing = answer({"error": {"code": "missingtitle", "info": "The page you specified doesn't exist."}})
    assert parse_response(missing, ParseResponse).parse is None
    with pytest.raises(InvalidResponse, match=r"refused \(badtoken\): Invalid token"):
        parse_response(answer({"error": {"code": "badtoken", "info": "Invalid <b>token</b>"}}), ParseResponse)
    with pytest.raises(ServerBusy, match="is busy"):
        parse_response(answer({"error": {"code": "maxlag"}}), ParseResponse)


def test_an_empty_object_may_be_an_empty_list():
    page = {"title": "Ada", "pageid": 1, "pageprops": []}
    assert parse_response(answer({"query": {"pages": [page]}}), PagesResponse).query.pages[0].pageprops == {}
    facts = {"id": "Q1", "labels": [], "aliases": [], "descriptions": [], "sitelinks": []}
    assert parse_response(answer({"entities": {"Q1": facts}}), WikibaseEntitiesResponse).entities["Q1"].labels == {}
