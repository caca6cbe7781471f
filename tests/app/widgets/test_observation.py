import pytest

from showhow.app.widgets.observation import MAX_TEXT_CHARACTERS, build_observation_view
from tests.app.nouns import step_with


def test_hits_have_pointers_into_the_data():
    view = build_observation_view(
        step_with({"hits": [{"title": "A", "snippet": "s", "entity": "Q1", "relaxed": True}]})
    )
    assert view["kind"] == "hits"
    assert view["hits"][0]["pointer"] == "/hits/0"
    assert "some" in view["note"]


def test_the_note_about_relaxed_hits_appears_only_if_all_hits_are_relaxed():
    hits = [{"title": name, "snippet": "s", "entity": None, "relaxed": name == "B"} for name in "AB"]
    assert build_observation_view(step_with({"hits": hits}))["note"] is None
    assert (
        build_observation_view(step_with({"hits": hits[1:]}))["note"]
        == "No article has all of the words; these have some."
    )


def test_pages_have_their_address_and_pointers_into_the_data():
    page = {"title": "A", "address": "https://a.example/1", "snippet": "s", "relaxed": False}
    view = build_observation_view(step_with({"pages": [page]}))
    assert view == {"kind": "pages", "pages": [{**page, "pointer": "/pages/0"}], "note": None}
    assert build_observation_view(step_with({"pages": []}))["kind"] == "text"


def test_the_view_of_a_page_has_its_address():
    read = {
        "title": "T",
        "entity": None,
        "address": "https://a.example/1",
        "sentences": ["One."],
        "best": [{"place": 0}],
    }
    assert build_observation_view(step_with(read))["address"] == "https://a.example/1"


def test_no_hits_are_shown_as_text():
    assert build_observation_view(step_with({"hits": []}))["kind"] == "text"


def test_the_values_of_a_sentence_are_its_names_without_the_first_word_and_its_numbers():
    data = {
        "title": "T",
        "entity": None,
        "sentences": ["He married Ada King of Ockham in 1835."],
        "best": [{"place": 0}],
    }
    sentence = build_observation_view(step_with(data))["best"][0]
    assert [sentence["text"][start:end] for start, end in sentence["names"]] == ["Ada King of Ockham", "1835"]


def test_a_date_at_midnight_is_shown_as_a_day_and_keeps_its_value():
    cell = {"kind": "literal", "value": "1931-03-05T00:00:00Z", "datatype": "http://www.w3.org/2001/XMLSchema#dateTime"}
    rows = build_observation_view(step_with({"columns": ["d"], "rows": [[cell, None]], "boolean": None}))["rows"][0]
    assert rows[0]["shown"] == "1931-03-05"
    assert rows[0]["value"] == "1931-03-05T00:00:00Z"
    assert rows[1] is None


def test_an_ask_query_has_a_boolean_view():
    assert build_observation_view(step_with({"columns": [], "rows": [], "boolean": False})) == {
        "kind": "boolean",
        "value": False,
    }


def test_an_observation_without_data_is_shown_as_text_and_truncation_is_noted():
    assert build_observation_view(step_with(None, "plain")) == {"kind": "text", "text": "plain"}
    long = build_observation_view(step_with(None, "x" * (MAX_TEXT_CHARACTERS + 5)))["text"]
    assert long.endswith("5 more characters; they are stored and exported")


def test_the_choices_of_an_ambiguous_title_can_be_clicked():
    choices = [{"title": "Mercury (planet)", "description": "planet", "entity": "Q308"}]
    data = {"title": "Mercury", "entity": None, "choices": choices, "sentences": [], "best": []}
    view = build_observation_view(step_with(data))
    assert view["kind"] == "hits"
    assert view["hits"] == [{**choices[0], "snippet": "", "pointer": "/choices/0"}]
    assert view["note"].startswith("Mercury has several meanings")


READ = {"title": "T", "entity": None, "sentences": ["One.", "Two is here.", "Three."], "best": [{"place": 0}]}


@pytest.mark.parametrize(
    ("answer", "supported", "invented", "sign"),
    [("Two", True, [], "good"), ("Two", False, ["Made up."], "poor"), (None, False, [], "none")],
)
def test_an_answer_is_shown_with_its_quotations_and_a_verdict(
    answer: str | None,
    supported: bool,  # noqa: FBT001 - a case
    invented: list[str],
    sign: str,
):
    quotes = [{"place": 1, "text": "Two is"}] if answer else []
    answer_data = {"route": "model", "answer": answer, "quotes": quotes, "invented": invented, "supported": supported}
    view = build_observation_view(step_with({**READ, **answer_data}))
    assert (view["answer"]["text"], view["answer"]["sign"]) == (answer, sign)
    assert (view["answer"]["quotes"], view["answer"]["invented"]) == (quotes, invented)
    assert [sentence["place"] for sentence in view["best"]] == ([0, 1] if answer else [0])
    assert view["note"] is None


def test_without_the_model_there_is_no_answer_and_a_failed_model_leaves_a_note():
    assert build_observation_view(step_with(READ))["answer"] is None
    view = build_observation_view(step_with({**READ, "route": "ranking", "why": "The server refuses the key."}))
    assert view["answer"] is None
    assert view["note"] == "Ranked without the language model. The server refuses the key."


@pytest.mark.parametrize(
    ("query_data", "note"),
    [
        ({"route": "grammar"}, None),
        ({"route": "model", "tried": []}, "Written by the language model and tested on the graph."),
        ({"route": "grammar", "why": "It failed.", "tried": [{"sparql": "S"}]}, "Written by the grammar. It failed."),
        ({"route": "model", "why": "Nothing.", "tried": []}, "Written by the language model. Nothing."),
    ],
)
def test_the_note_on_queries_names_their_writer_if_a_model_was_asked(query_data: dict[str, object], note: str | None):
    view = build_observation_view(
        step_with({"candidates": [{"sparql": "S", "reading": "r", "score": 1.0}], **query_data})
    )
    assert view["note"] == note
    assert view["tried"] == query_data.get("tried", [])


def relation_link(number: int, count: int | None = 2) -> dict[str, object]:
    return {"id": f"P{number}", "label": f"relation {number}", "direction": "head", "count": count}


def graph_step(field: str, links: list[dict[str, object]], **more: object) -> dict[str, object]:
    return {"entity": "Q1", "direction": "head", field: links, "total": len(links), "truncated": False, **more}


def test_relations_are_links_that_fill_relations_with_the_number_of_their_facts():
    view = build_observation_view(step_with(graph_step("relations", [relation_link(1), relation_link(2, None)])))
    assert [(link["kind"], link["pointer"], link["description"]) for link in view["entities"]] == [
        ("relation", "/relations/0", "2 facts"),
        ("relation", "/relations/1", None),
    ]
    own = graph_step("relations", [relation_link(1, 1) | {"id": "http://isle.example/near"}])
    (link,) = build_observation_view(step_with(own))["entities"]
    assert (link["kind"], link["description"]) == ("relation", "1 fact")


def test_values_of_a_graph_step_are_entities_and_literals_that_can_be_clicked():
    date = {"literal": "1950-03-04T00:00:00Z", "datatype": "http://www.w3.org/2001/XMLSchema#dateTime"}
    data = graph_step("values", [{"id": "Q2", "label": "Bram"}, date], unnamed=1)
    view = build_observation_view(step_with(data))
    entity, literal = view["entities"]
    assert (entity["kind"], entity["pointer"]) == ("entity", "/values/0")
    assert (literal["literal"]["shown"], literal["literal"]["pointer"]) == ("1950-03-04", "/values/1")
    assert (literal["literal"]["kind"], view["note"]) == ("title", "Not listed, because they have no id: 1.")


@pytest.mark.parametrize(("total", "amount"), [(2_500, "2,500"), (None, "more")])
def test_a_graph_step_with_more_results_than_its_limit_says_so(total: int | None, amount: str):
    data = graph_step("values", [{"id": "Q2", "label": "Bram"}]) | {"total": total, "truncated": True}
    note = build_observation_view(step_with(data))["note"]
    assert note == f"The graph has {amount} values; these are the first within the limit of the step."


def test_a_graph_step_without_results_is_shown_as_its_sentence():
    for field in ("relations", "values"):
        view = build_observation_view(step_with(graph_step(field, []), "Ada is the head of no relations."))
        assert view == {"kind": "text", "text": "Ada is the head of no relations."}


def test_a_property_among_labels_and_in_a_table_fills_relations():
    labels = [{"id": "P57", "label": "director"}, {"id": "Q1", "label": "Ada"}]
    view = build_observation_view(step_with({"labels": labels}))
    assert [link["kind"] for link in view["entities"]] == ["relation", "entity"]
    rows = [[{"kind": "entity", "value": id_} for id_ in ("P57", "Q1")]]
    view = build_observation_view(step_with({"columns": ["p", "o"], "rows": rows}))
    assert [cell["kind"] for cell in view["rows"][0]] == ["relation", "entity"]
