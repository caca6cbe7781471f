"""What tools of others gave, as the notebook draws it."""

from typing import Any

from uuid_utils.compat import uuid7

from app.widgets.observation import MAX_ROWS, build_observation_view, build_result_view
from db.models import Step
from reasoners.provenance import collect_known_values, resolve_origin


def seen(data: dict[str, Any], text: str = "") -> dict[str, Any]:
    return build_observation_view(Step(trace_id=uuid7(), position=1, observation=text, data=data))


def test_rows_are_a_table_whose_known_values_can_be_taken_and_traced():
    data = {"result": {"count": 2, "found": [{"title": "Öst/West", "height": 1.5}, {"title": "Süd", "open": True}]}}
    view = seen(data, '{"count": 2 ...')
    assert (view["kind"], view["columns"], view["note"]) == ("table", ["title", "height", "open"], "count: 2")
    first, second = view["rows"]
    assert [cell and (cell["shown"], cell["kind"]) for cell in first] == [("Öst/West", "title"), ("1.5", None), None]
    assert second[2]["shown"] == "yes"
    for known in collect_known_values({1: data}):
        assert resolve_origin(known.origin, "", {1: data}) == known.text
    pointers = {row[0]["pointer"] for row in view["rows"]}
    assert pointers == {known.origin["pointer"] for known in collect_known_values({1: data})}


def test_anything_else_is_shown_line_by_line():
    view = build_result_view(
        {"a/b": {"id": "Q1", "tags": ["x", "y"]}, "things": [{"deep": [{"n": 1}]}], "none": None}, "Said."
    )
    assert view["note"] == "Said."
    lines = [(line["depth"], line["name"], line["value"], line["kind"]) for line in view["lines"]]
    assert lines[:3] == [(0, "a/b", "", None), (1, "id", "Q1", "entity"), (1, "tags", "x, y", None)]
    assert lines[-1] == (0, "none", "nothing", None)
    assert view["lines"][1]["pointer"] == "/result/a~1b/id"


def test_what_is_much_is_shown_in_part_and_says_so():
    view = build_result_view([{"title": str(n)} for n in range(MAX_ROWS + 5)], "")
    assert len(view["rows"]) == MAX_ROWS
    assert f"The first {MAX_ROWS} of {MAX_ROWS + 5} rows" in view["note"]
    wide = build_result_view([{f"column {n}": n for n in range(40)}], "")
    assert len(wide["columns"]) == 16
    assert "column 39" in wide["note"]


def test_words_and_nothing_are_text_and_parts_that_came_with_a_result_are_named():
    assert seen({}, "just words") == {"kind": "text", "text": "just words"}
    assert build_result_view(5, "5") == {"kind": "text", "text": "5"}
    assert build_result_view([], "")["lines"] == [
        {"depth": 0, "name": "", "value": "nothing", "kind": None, "pointer": "/result"}
    ]
    with_chart = seen({"result": [{"title": "A"}], "attachments": [{"kind": "image", "type": "image/png", "size": 3}]})
    assert with_chart["note"] == "Not shown: image image/png 3."
