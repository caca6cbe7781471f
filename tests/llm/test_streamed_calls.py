"""Tool calls are put together from whatever pieces a server sends them in."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from llm.streamed_calls import assemble_calls

TOOLS = ("read", "wikisearch", "getLabel")
READ, SEARCH = '{"title": "Riverton", "question": "When?"}', '{"query": "Bridge of Moab"}'
CALLS = st.lists(
    st.tuples(st.sampled_from(TOOLS), st.dictionaries(st.text(max_size=3), st.text(max_size=8), min_size=1)),
    min_size=1,
    max_size=3,
)


def piece(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:  # noqa: A002 - the field's name
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id, "type": "function", "function": function}


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "a", "read", ""), piece(0, "b", "wikisearch", ""), piece(0, "a", None, READ), piece(0, "b", None, SEARCH)],
        [piece(0, "a", "read", ""), piece(1, "a", None, READ[:9]), piece(2, "a", None, READ[9:]), piece(3, "b", "wikisearch", SEARCH)],
        [piece(0, None, "read", READ[:9]), piece(1, None, "read", READ[9:]), piece(2, None, "wikisearch", SEARCH)],
        [piece(0, "a", "read", READ), piece(1, "b", "wikisearch", SEARCH), piece(0, "a", "read", READ), piece(1, "b", "wikisearch", SEARCH)],
        [piece(0, "", "read", READ), piece(0, "", "wikisearch", SEARCH), piece(0, "", "read", READ), piece(0, "", "wikisearch", SEARCH)],
        [piece(None, None, "read", READ[:9]), piece(None, None, "read", READ), piece(None, None, "read", READ), piece(None, None, "wikisearch", SEARCH)],
        [piece(0, "a", "read", "{}"), piece(0, None, None, READ), piece(1, "b", "wikisearch", {}), piece(1, None, None, json.loads(SEARCH))],
        [piece(0, "a", "re", None), piece(0, "a", "ad", None), piece(0, "a", None, READ), piece(1, "b", "wiki", ""), piece(1, "b", "wikisearch", SEARCH)],
        [piece(0, "a", "read", READ), piece(0, "a", "", "\n"), piece(0, "a", "read", ""), piece(0, "b", "wikisearch", SEARCH), piece(0, "b", "wikisearch", "")],
        [piece("0", "a", "read", READ[:9]), piece("0", None, None, READ[9:]), {"name": "wikisearch", "arguments": SEARCH}],
        [piece(0, "a", "read", READ), piece(0, None, None, json.dumps(json.loads(READ), separators=(",", ":"))), piece(1, "b", "wikisearch", SEARCH)],
        [piece(0, "a", None, None), piece(0, None, "read", None), piece(0, None, None, READ), piece(1, "b", None, None), piece(1, None, "wikisearch", SEARCH)],
    ],
    ids=[
        "ids only", "the index counts pieces", "the index counts pieces without ids", "everything again", "everything again without ids",
        "cumulative, repeated", "an empty object first", "names in pieces", "names again at the end", "an index that is text, fields without a function",
        "again in other notation", "id, name and arguments apart",
    ],
)  # fmt: skip
def test_two_calls_are_two_calls_however_they_come(pieces: list[Any]):
    calls = [(name, json.loads(arguments)) for _, name, arguments in assemble_calls(pieces, TOOLS)]
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


@given(
    CALLS,
    st.sampled_from(["ordinal", "zero", "none", "left out"]),
    st.sampled_from(["once", "always", "blank", "changing"]),
    st.sampled_from(["once", "always"]),
    st.sampled_from(["pieces", "cumulative", "whole", "object"]),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
)
def test_no_habit_of_a_server_changes_the_calls(  # noqa: PLR0913 - each is a habit
    calls: list[tuple[str, dict[str, str]]],
    indexes: str,
    ids: str,
    names: str,
    form: str,
    size: int,
    starts_blank: bool,  # noqa: FBT001 - drawn
    interleaved: bool,  # noqa: FBT001 - drawn
):
    # Servers that give calls neither an index nor an id cannot send the same call twice, or two at the same time.
    assume(len({json.dumps(call) for call in calls}) == len(calls))
    assume(not interleaved or indexes == "ordinal" or ids == "always")

    def pieces_of(number: int) -> Iterator[Any]:
        name, arguments = calls[number]
        text = json.dumps(arguments)
        ends = [*range(size, len(text), size), len(text)]
        parts = {
            "pieces": [text[end - size if end % size == 0 else end - end % size : end] for end in ends],
            "cumulative": [text[:end] for end in ends],
            "whole": [text],
            "object": [arguments],
        }[form]
        for place, part in enumerate(["", *parts] if starts_blank else parts):
            id_ = {"once": f"c{number}" if place == 0 else None, "always": f"c{number}", "blank": ""}
            index = {"ordinal": number, "zero": 0}.get(indexes)
            made = piece(
                index,
                id_.get(ids, f"c{number}-{place}"),
                name if place == 0 or names == "always" else None,
                part,
            )
            if indexes == "left out":
                del made["index"]
            yield made

    rows = [list(pieces_of(number)) for number in range(len(calls))]
    mixed = [one for turn in zip_longest(*rows) for one in turn if one] if interleaved else sum(rows, [])
    assembled = [(name, json.loads(arguments)) for _, name, arguments in assemble_calls(mixed, TOOLS)]
    assert assembled == calls
