"""What an argument may be linked to: values of the question and of earlier results that equal or contain it."""

from typing import Any

import pytest

from showhow.reasoners.linking import find_offers
from showhow.reasoners.provenance import resolve_origin

QUESTION = "Where was the director of Mulan (Film) born?"
DATA = {
    1: {"hits": [{"title": "Mulan (1998 Film)", "snippet": "", "entity": "Q3"}]},
    2: {"result": [{"name": "Ada Lund", "orders": 7, "code": "AL-1042"}]},
}


@pytest.mark.parametrize(
    ("typed", "texts"),
    [
        ("ada lund", ["Ada Lund"]),
        ("Lund", ["Ada Lund"]),
        ("1998", ["Mulan (1998 Film)"]),
        (7, ["7"]),
        ("1042", ["AL-1042"]),
        ("Mulan", [QUESTION, "Mulan (1998 Film)"]),
        ("Geneva", []),
    ],
)
def test_places_that_equal_or_contain_a_value_are_offered(typed: Any, texts: list[str]):
    offers = find_offers(typed, QUESTION, DATA)
    assert [offer.text for offer in offers] == texts
    for offer in offers:
        assert resolve_origin(offer.origin, QUESTION, DATA).casefold() == str(typed).casefold()
