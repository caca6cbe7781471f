"""Views of the results of external tools."""

from typing import Any

from uuid_utils.compat import uuid7

from showhow.app.widgets.observation import MAX_ITEMS, build_observation_view, build_result_view
from showhow.db.models import Step
from showhow.reasoners.provenance import collect_known_values, resolve_origin


def view_of(data: dict[str, Any], text: str = "") -> dict[str, Any]:
    return build_observation_view(Step(trace_id=uuid7(), position=1, observation=text, data=data))


def test_rows_become_a_table_whose_values_can_be_clicked_and_traced():
    data = {"result": {"count": 2, "found": [{"title": "Öst/West", "height": 1.5}, {"title": "Süd", "open": True}]}}
    view = view_of(data, '{"count": 2 ...')
    assert (view["kind"], view["columns"], view["note"]) == ("table", ["title", "height", "open"], "count: 2")
    first, second = view["rows"]
    assert [cell and (cell["shown"], cell["kind"]) for cell in first] == [
        ("Öst/West", "title"),
        ("1.5", "number"),
        None,
    ]
    assert second[2]["shown"] == "yes"
    for known_value in collect_known_values({1: data}):
        assert resolve_origin(known_value.origin, "", {1: data}) == known_value.text
    pointers = {cell["pointer"] for row in view["rows"] for cell in row if cell and cell["kind"]}
    # A value above the table is named in the note alone.
    assert pointers == {known.origin["pointer"] for known in collect_known_values({1: data})} - {"/result/count"}


def test_other_results_are_shown_as_lines():
    view = build_result_view(
        {"a/b": {"id": "Q1", "tags": ["x", "y"]}, "things": [{"deep": [{"n": 1}]}], "none": None}, "Said."
    )
    assert view["note"] == "Said."
    lines = [(line["depth"], line["name"], line["value"], line["kind"]) for line in view["lines"]]
    assert lines[:3] == [(0, "a/b", "", None), (1, "id", "Q1", "entity"), (1, "tags", "x, y", None)]
    assert lines[-1] == (0, "none", "nothing", None)
    assert view["lines"][1]["pointer"] == "/result/a~1b/id"


def test_long_results_are_truncated_with_a_note():
    view = build_result_view([{"title": str(n)} for n in range(MAX_ITEMS + 5)], "")
    assert len(view["rows"]) == MAX_ITEMS
    assert view["more"] == {"shown": MAX_ITEMS, "on_request": MAX_ITEMS + 5, "total": MAX_ITEMS + 5, "noun": "rows"}
    wide = build_result_view([{f"column {n}": n for n in range(40)}], "")
    assert len(wide["columns"]) == 16
    assert "column 39" in wide["note"]


def test_plain_results_are_text_and_attachments_are_listed():
    assert view_of({}, "just words") == {"kind": "text", "text": "just words"}
    assert build_result_view(5, "5") == {"kind": "text", "text": "5"}
    assert build_result_view([], "")["lines"] == [
        {"depth": 0, "name": "", "value": "nothing", "kind": None, "pointer": "/result"}
    ]
    with_chart = view_of(
        {"result": [{"title": "A"}], "attachments": [{"kind": "image", "type": "image/png", "size": 3}]}
    )
    assert with_chart["note"] == "Not shown: image image/png 3."
