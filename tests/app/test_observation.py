from app.components.observation import MOST_TEXT, view_of
from tests.app.nouns import step_with


def test_hits_keep_their_place_in_the_data():
    view = view_of(step_with({"hits": [{"title": "A", "snippet": "s", "entity": "Q1", "relaxed": True}]}))
    assert view["kind"] == "hits"
    assert view["hits"][0]["pointer"] == "/hits/0"
    assert "some" in view["note"]


def test_that_no_article_has_all_words_is_said_only_where_it_is_so():
    hits = [{"title": name, "snippet": "s", "entity": None, "relaxed": name == "B"} for name in "AB"]
    assert view_of(step_with({"hits": hits}))["note"] is None
    assert view_of(step_with({"hits": hits[1:]}))["note"] == "No article has all of the words; these have some."


def test_pages_keep_their_address_and_their_place_in_the_data():
    page = {"title": "A", "address": "https://a.example/1", "snippet": "s", "relaxed": False}
    view = view_of(step_with({"pages": [page]}))
    assert view == {"kind": "pages", "pages": [{**page, "pointer": "/pages/0"}], "note": None}
    assert view_of(step_with({"pages": []}))["kind"] == "text"


def test_a_page_that_was_read_is_named_by_its_address():
    read = {
        "title": "T",
        "entity": None,
        "address": "https://a.example/1",
        "sentences": ["One."],
        "best": [{"place": 0}],
    }
    assert view_of(step_with(read))["address"] == "https://a.example/1"


def test_no_hits_are_said_in_words():
    assert view_of(step_with({"hits": []}))["kind"] == "text"


def test_the_names_of_a_sentence_can_be_taken_without_its_first_word():
    data = {
        "title": "T",
        "entity": None,
        "sentences": ["He married Ada King of Ockham in 1835."],
        "best": [{"place": 0}],
    }
    sentence = view_of(step_with(data))["best"][0]
    assert [sentence["text"][start:end] for start, end in sentence["names"]] == ["Ada King of Ockham"]


def test_a_date_at_midnight_is_shown_as_a_day_and_kept_as_it_is():
    cell = {"kind": "literal", "value": "1931-03-05T00:00:00Z", "datatype": "http://www.w3.org/2001/XMLSchema#dateTime"}
    shown = view_of(step_with({"columns": ["d"], "rows": [[cell, None]], "boolean": None}))["rows"][0]
    assert shown[0]["shown"] == "1931-03-05"
    assert shown[0]["value"] == "1931-03-05T00:00:00Z"
    assert shown[1] is None


def test_an_ask_is_yes_or_no():
    assert view_of(step_with({"columns": [], "rows": [], "boolean": False})) == {"kind": "boolean", "value": False}


def test_a_foreign_observation_is_its_text_and_a_cut_is_said():
    assert view_of(step_with(None, "plain")) == {"kind": "text", "text": "plain"}
    long = view_of(step_with(None, "x" * (MOST_TEXT + 5)))["text"]
    assert long.endswith("5 more characters; they are kept and exported")
