import pytest

from app.widgets.observation import MAX_TEXT_CHARACTERS, build_observation_view, find_values
from tests.app.nouns import step_with


def test_hits_keep_their_place_in_the_data():
    view = build_observation_view(
        step_with({"hits": [{"title": "A", "snippet": "s", "entity": "Q1", "relaxed": True}]})
    )
    assert view["kind"] == "hits"
    assert view["hits"][0]["pointer"] == "/hits/0"
    assert "some" in view["note"]


def test_that_no_article_has_all_words_is_said_only_where_it_is_so():
    hits = [{"title": name, "snippet": "s", "entity": None, "relaxed": name == "B"} for name in "AB"]
    assert build_observation_view(step_with({"hits": hits}))["note"] is None
    assert (
        build_observation_view(step_with({"hits": hits[1:]}))["note"]
        == "No article has all of the words; these have some."
    )


def test_pages_keep_their_address_and_their_place_in_the_data():
    page = {"title": "A", "address": "https://a.example/1", "snippet": "s", "relaxed": False}
    view = build_observation_view(step_with({"pages": [page]}))
    assert view == {"kind": "pages", "pages": [{**page, "pointer": "/pages/0"}], "note": None}
    assert build_observation_view(step_with({"pages": []}))["kind"] == "text"


def test_a_page_that_was_read_is_named_by_its_address():
    read = {
        "title": "T",
        "entity": None,
        "address": "https://a.example/1",
        "sentences": ["One."],
        "best": [{"place": 0}],
    }
    assert build_observation_view(step_with(read))["address"] == "https://a.example/1"


def test_no_hits_are_said_in_words():
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


def test_a_date_at_midnight_is_shown_as_a_day_and_kept_as_it_is():
    cell = {"kind": "literal", "value": "1931-03-05T00:00:00Z", "datatype": "http://www.w3.org/2001/XMLSchema#dateTime"}
    shown = build_observation_view(step_with({"columns": ["d"], "rows": [[cell, None]], "boolean": None}))["rows"][0]
    assert shown[0]["shown"] == "1931-03-05"
    assert shown[0]["value"] == "1931-03-05T00:00:00Z"
    assert shown[1] is None


def test_an_ask_is_yes_or_no():
    assert build_observation_view(step_with({"columns": [], "rows": [], "boolean": False})) == {
        "kind": "boolean",
        "value": False,
    }


def test_a_foreign_observation_is_its_text_and_a_cut_is_said():
    assert build_observation_view(step_with(None, "plain")) == {"kind": "text", "text": "plain"}
    long = build_observation_view(step_with(None, "x" * (MAX_TEXT_CHARACTERS + 5)))["text"]
    assert long.endswith("5 more characters; they are stored and exported")


def test_what_a_title_may_mean_is_offered_to_be_taken():
    choices = [{"title": "Mercury (planet)", "description": "planet", "entity": "Q308"}]
    data = {"title": "Mercury", "entity": None, "choices": choices, "sentences": [], "best": []}
    view = build_observation_view(step_with(data))
    assert view["kind"] == "hits"
    assert view["hits"] == [{**choices[0], "snippet": "", "pointer": "/choices/0"}]
    assert view["note"].startswith("Mercury may mean several things")


READ = {"title": "T", "entity": None, "sentences": ["One.", "Two is here.", "Three."], "best": [{"place": 0}]}


@pytest.mark.parametrize(
    ("answer", "supported", "invented", "sign"),
    [("Two", True, [], "good"), ("Two", False, ["Made up."], "poor"), (None, False, [], "none")],
)
def test_an_answer_is_shown_with_its_quotations_and_how_far_they_bear_it_out(
    answer: str | None,
    supported: bool,  # noqa: FBT001 - a case
    invented: list[str],
    sign: str,
):
    quotes = [{"place": 1, "text": "Two is"}] if answer else []
    told = {"route": "model", "answer": answer, "quotes": quotes, "invented": invented, "supported": supported}
    view = build_observation_view(step_with({**READ, **told}))
    assert (view["answer"]["text"], view["answer"]["sign"]) == (answer, sign)
    assert (view["answer"]["quotes"], view["answer"]["invented"]) == (quotes, invented)
    assert [sentence["place"] for sentence in view["best"]] == ([0, 1] if answer else [0])
    assert view["note"] is None


def test_without_the_model_nothing_is_said_of_an_answer_and_with_a_failed_one_why():
    assert build_observation_view(step_with(READ))["answer"] is None
    view = build_observation_view(step_with({**READ, "route": "ranking", "why": "The server refuses the key."}))
    assert view["answer"] is None
    assert view["note"] == "Ranked without the language model. The server refuses the key."


@pytest.mark.parametrize(
    ("told", "note"),
    [
        ({"route": "grammar"}, None),
        ({"route": "model", "tried": []}, "Written by the language model and tried on the graph."),
        ({"route": "grammar", "why": "It failed.", "tried": [{"sparql": "S"}]}, "Written by the grammar. It failed."),
        ({"route": "model", "why": "Nothing.", "tried": []}, "Written by the language model. Nothing."),
    ],
)
def test_queries_say_who_wrote_them_where_a_model_was_asked(told: dict[str, object], note: str | None):
    view = build_observation_view(step_with({"candidates": [{"sparql": "S", "reading": "r", "score": 1.0}], **told}))
    assert view["note"] == note
    assert view["tried"] == told.get("tried", [])


def values_of(sentence: str, names: frozenset[str] | None = None) -> list[str]:
    lookup = None if names is None else names.__contains__
    return [sentence[start:end] for start, end in find_values(sentence, lookup)]


def test_two_names_joined_by_and_are_two_values():
    sentence = "Her friends are Andreas Nkomose and Galen Giacconi."
    assert values_of(sentence) == ["Andreas Nkomose", "Galen Giacconi"]
    assert values_of(sentence, frozenset({"Andreas Nkomose", "Galen Giacconi"})) == [
        "Andreas Nkomose",
        "Galen Giacconi",
    ]


@pytest.mark.parametrize("date", ["19 September 1908", "September 19, 1908", "September 1908", "1908-09-19"])
@pytest.mark.parametrize("names", [None, frozenset({"September"})])
def test_a_whole_date_is_one_value_and_a_month_is_none(date: str, names: frozenset[str] | None):
    assert values_of(f"In September he recalled {date}.", names) == [date]


def test_only_names_that_the_world_knows_are_values_where_it_can_be_asked():
    names = frozenset({"Romeo and Juliet", "Ada King", "Ockham"})
    assert values_of("In Ockham Ada King's Uncle Bertram read Romeo and Juliet.", names) == [
        "Ockham",
        "Ada King",
        "Romeo and Juliet",
    ]


def test_numbers_are_values():
    assert values_of("It has 1,204 people and 3.5 ships.", frozenset()) == ["1,204", "3.5"]
