"""Tool calls are put together from whatever pieces a server sends them in."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from showhow.llm.streamed_calls import assemble_calls

TOOLS = ("read", "wikisearch", "getLabel")
READ, SEARCH = '{"title": "Riverton", "question": "When?"}', '{"query": "Bridge of Moab"}'
BEGIN, END = READ[:9], READ[9:]
PIECES: dict[str, list[Any]] = {  # index, id, name, arguments
    "ids tell calls apart": [
        (0, "a", "read", ""), (0, "b", "wikisearch", ""), (0, "a", None, READ), (0, "b", None, SEARCH),
    ],
    "the index counts pieces": [
        (0, "a", "read", ""), (1, "a", None, BEGIN), (2, "a", None, END), (3, "b", "wikisearch", SEARCH),
    ],
    "the index counts pieces, and there is no id": [
        (0, None, "read", BEGIN), (1, None, "read", END), (2, None, "wikisearch", SEARCH),
    ],
    "everything comes again": [(0, "a", "read", READ), (1, "b", "wikisearch", SEARCH)] * 2,
    "everything comes again at one index": [(0, "", "read", READ), (0, "", "wikisearch", SEARCH)] * 2,
    "pieces are cumulative, and the last comes again": [
        (None, None, "read", BEGIN), *[(None, None, "read", READ)] * 2, (None, None, "wikisearch", SEARCH),
    ],
    "an empty object comes first": [
        (0, "a", "read", "{}"), (0, None, None, READ), (1, "b", "wikisearch", {}), (1, None, None, json.loads(SEARCH)),
    ],
    "names come in pieces": [
        (0, "a", "re", None), (0, "a", "ad", None), (0, "a", None, READ),
        (1, "b", "wiki", ""), (1, "b", "wikisearch", SEARCH),
    ],
    "names come again at the end": [
        (0, "a", "read", READ), (0, "a", "", "\n"), (0, "a", "read", ""),
        (0, "b", "wikisearch", SEARCH), (0, "b", "wikisearch", ""),
    ],
    "the index is text": [
        ("0", "a", "read", BEGIN), ("0", None, None, END), ("1", "b", "wikisearch", SEARCH),
    ],
    "arguments come again in another notation": [
        (0, "a", "read", READ), (0, None, None, READ.replace(": ", ":")), (1, "b", "wikisearch", SEARCH),
    ],
    "id, name and arguments come apart": [
        (0, "a", None, None), (0, None, "read", None), (0, None, None, READ),
        (1, "b", None, None), (1, None, "wikisearch", SEARCH),
    ],
}  # fmt: skip
CALLS = st.lists(
    st.tuples(st.sampled_from(TOOLS), st.dictionaries(st.text(max_size=3), st.text(max_size=8), min_size=1)),
    min_size=1,
    max_size=3,
)


def piece(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:  # noqa: A002 - the field's name
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id, "type": "function", "function": function}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES.keys())
def test_two_calls_are_two_calls_however_they_come(pieces: list[Any]):
    calls = [(name, json.loads(arguments)) for _, name, arguments in assemble_calls([piece(*p) for p in pieces], TOOLS)]
    assert calls == [("read", json.loads(READ)), ("wikisearch", json.loads(SEARCH))]


def test_calls_without_arguments_and_broken_arguments_stay_as_they_are():
    assert assemble_calls([piece(0, "a", "read", ""), piece(1, "b", "wikisearch", None)], TOOLS) == [
        ("a", "read", "{}"),
        ("b", "wikisearch", "{}"),
    ]
    broken = [piece(0, "a", "read", '{"title": '), piece(0, None, None, "Riverton}"), piece(1, "b", "read", READ)]
    assert assemble_calls(broken, TOOLS) == [("a", "read", '{"title": Riverton}'), ("b", "read", READ)]
    assert assemble_calls([piece(0, "a", "", READ)], TOOLS) == [("a", "", READ)]
    assert assemble_calls([piece(0, "x", "read", READ), piece(1, "x", "read", SEARCH)], TOOLS) == [
        ("x", "read", READ),
        ("x", "read", SEARCH),
    ]
    assert assemble_calls([piece(0, "a", "read", READ), piece(1, "b", "read", READ)], TOOLS) == [
        ("a", "read", READ),
        ("b", "read", READ),
    ]


@dataclass(frozen=True)
class Habits:
    """How a server sends calls."""

    indexes: str
    ids: str
    names: str
    form: str
    size: int
    starts_blank: bool
    interleaves: bool


HABITS = st.builds(
    Habits,
    st.sampled_from(["ordinal", "zero", "none", "left out"]),
    st.sampled_from(["once", "always", "blank", "changing"]),
    st.sampled_from(["once", "always"]),
    st.sampled_from(["pieces", "cumulative", "whole", "object"]),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
)


@given(CALLS, HABITS)
def test_no_habit_of_a_server_changes_the_calls(calls: list[tuple[str, dict[str, str]]], habits: Habits):
    # Servers that give calls neither an index nor an id cannot send the same call twice, or two at the same time.
    assume(len({json.dumps(call) for call in calls}) == len(calls))
    assume(not habits.interleaves or habits.indexes == "ordinal" or habits.ids == "always")
    # Where each piece has a new id and the name, a brace is all that tells a new call from a part of one.
    is_ambiguous = habits.ids == "changing" and habits.names == "always"
    assume(not is_ambiguous or all(json.dumps(arguments).count("{") == 1 for _, arguments in calls))

    def pieces_of(number: int) -> Iterator[Any]:
        name, arguments = calls[number]
        text = json.dumps(arguments)
        starts = range(0, len(text), habits.size)
        parts: list[Any] = {
            "pieces": [text[start : start + habits.size] for start in starts],
            "cumulative": [text[: start + habits.size] for start in starts],
            "whole": [text],
            "object": [arguments],
        }[habits.form]
        for place, part in enumerate(["", *parts] if habits.starts_blank else parts):
            once = f"c{number}" if place == 0 else None
            id_ = {"once": once, "always": f"c{number}", "blank": ""}.get(habits.ids, f"c{number}-{place}")
            index = {"ordinal": number, "zero": 0}.get(habits.indexes)
            sent = piece(index, id_, name if place == 0 or habits.names == "always" else None, part)
            yield {field: value for field, value in sent.items() if field != "index" or habits.indexes != "left out"}

    rows = [[*pieces_of(number)] for number in range(len(calls))]
    mixed = chain(*zip_longest(*rows)) if habits.interleaves else chain(*rows)
    assembled = assemble_calls(filter(None, mixed), TOOLS)
    assert [(name, json.loads(arguments)) for _, name, arguments in assembled] == calls
