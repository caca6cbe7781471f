"""Readings of hostile questions: what no query says is refused, and what is asked the wrong way round has no answer."""

from pathlib import Path

import pytest

from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import open_world
from tests.fixtures.harbour import no_meaning
from tests.tools.test_generate_query import answers

WITHOUT_GENDERS = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
wd:P19 rdfs:label "place of birth"@en . wd:P26 rdfs:label "spouse"@en . wd:P40 rdfs:label "child"@en .
wd:P57 rdfs:label "director"@en . wd:P25 rdfs:label "mother"@en . wd:P3373 rdfs:label "sibling"@en .
wd:Q1 rdfs:label "Una Vane"@en ; wdt:P26 wd:Q2 ; wdt:P40 wd:Q3 ; wdt:P3373 wd:Q4 .
wd:Q2 rdfs:label "Per Holt"@en ; wdt:P19 wd:Q6 .
wd:Q3 rdfs:label "Sam Holt"@en ; wdt:P25 wd:Q1 ; wdt:P19 wd:Q6 .
wd:Q4 rdfs:label "Robin Vane"@en .
wd:Q5 rdfs:label "Night Ferry"@en ; wdt:P57 wd:Q3 .
wd:Q6 rdfs:label "Holm Quay"@en .
"""


@pytest.fixture(scope="module")
def without_genders(tmp_path_factory: pytest.TempPathFactory) -> ToolContext:
    """A graph of a family and a film that states no genders."""
    folder = tmp_path_factory.mktemp("family")
    file = folder / "family.ttl"
    file.write_text(WITHOUT_GENDERS, encoding="utf-8")
    build_world(folder / "worlds", "family", WorldContents(graph=Path(file)))
    return ToolContext(open_world(folder / "worlds", "family"), no_meaning)


def check_refused(context: ToolContext, question: str, ids: str, word: str) -> None:
    """The question has no complete reading, and the word is among those that no reading explains."""
    observation = get_tool("generateQuery").call(context, {"question": question, "entity_ids": ids}).observation
    assert observation is not None
    assert observation.data["candidates"] == [], observation.text
    assert word in observation.data["unexplained"]
    assert observation.text.startswith("No query is written: ")


def ask(context: ToolContext, question: str, ids: str) -> str:
    """The answers of the text that generateQuery returns."""
    observation = get_tool("generateQuery").call(context, {"question": question, "entity_ids": ids}).observation
    assert observation is not None
    return answers(context, observation.text)


@pytest.mark.parametrize(
    ("question", "ids", "word"),
    [
        # nouns for another kind of thing than the relation has
        ("Which film was born first, Ada Reed or Eli Reed?", "Q1 Q5", "film"),
        ("Which films did Bram Reed father?", "Q2", "film"),
        ("Which film was born in Gullhaven?", "Q21", "film"),
        ("Which village is younger, Ada Reed or Eli Reed?", "Q1 Q5", "village"),
        ("Who was released first, Low Water or The Father of Tides?", "Q51 Q50", "who"),
        ("Which person was released first, Low Water or The Father of Tides?", "Q51 Q50", "person"),
        ("Which town was released first, Low Water or The Father of Tides?", "Q51 Q50", "town"),
        ("Which people did Fay Lund direct?", "Q6", "person"),
        ("Which dog's father is Bram Reed?", "Q2", "dog"),
        ("Who is Saltmouth's country?", "Q20", "who"),
        ("How many directors were born in Saltmouth?", "Q20", "directors"),
        # a third compared to both, the one of a comparison as owner, and passive comparisons
        ("Which film is more recent than both Low Water and The Father of Tides?", "Q51 Q50", "than"),
        ("Who is younger than Ada Reed and Eli Reed?", "Q1 Q5", "than"),
        ("Which film was released after Low Water and The Father of Tides?", "Q51 Q50", "after"),
        ("Who is the father of the older of Ada Reed and Eli Reed?", "Q1 Q5", "older"),
        ("What is the hobby of the younger one, Ada Reed or Eli Reed?", "Q1 Q5", "younger"),
        ("Which of Ada Reed and Eli Reed is the second oldest?", "Q1 Q5", "second"),
        ("Is Ada Reed the oldest child of Bram Reed?", "Q1 Q2", "oldest"),
        ("Was Bram Reed outlived by Cora Reed?", "Q2 Q3", "outlived"),
        ("Who is older, Ada Reed or her father?", "Q1", "older"),
        ("Who is the older sibling, Ada Reed or Eli Reed?", "Q1 Q5", "sibling"),
        # the same value is asked for, not whether it is the same
        ("Which same country are Ada Reed and Eli Reed from?", "Q1 Q5", "same"),
        ("What nationality do Ada Reed and Eli Reed have in common?", "Q1 Q5", "common"),
        ("Who has the same nationality as Ada Reed and Eli Reed?", "Q1 Q5", "same"),
        ("Do Ada Reed and Eli Reed have the same parents?", "Q1 Q5", "parents"),
        ("Were Ada Reed and Eli Reed born in the same year?", "Q1 Q5", "year"),
        # what is not read off one date
        ("In which century was Ada Reed born?", "Q1", "century"),
        ("In what decade did Bram Reed die?", "Q2", "decade"),
        ("How old was Bram Reed when he died?", "Q2", "old"),
        ("In which month and year was Ada Reed born?", "Q1", "year"),
        ("Do Ada Reed and Eli Reed have the same father, or the same mother?", "Q1 Q5", "or"),
        # ids of entities that the question does not name
        ("Who directed Casablanca?", "Q51", "Low Water"),
        ("Where was Marie Curie born?", "Q1", "Ada Reed"),
        ("Who is older, Ada Reed or Marie Curie?", "Q1 Q5", "Eli Reed"),
        ("Was Ada Reed born in Paris?", "Q1 Q21", "Gullhaven"),
        # a gender that is asked for
        ("Which woman is the father of Ada Reed?", "Q1", "Ada Reed"),
        # two questions, words beside the relation, and nouns that say what somebody is
        ("Where was Ada Reed born and when?", "Q1", "and"),
        ("When was Ada Reed born? Who is her father?", "Q1", "?"),
        ("Who was born when Ada Reed was born?", "Q1", "who"),
        ("Who can direct Low Water?", "Q51", "can"),
        ("Did the same person direct Low Water and write The Father of Tides?", "Q51 Q50", "write"),
        ("Which friend of Ada Reed is a mason?", "Q1", "mason"),
        ("How many of the children of Bram Reed are sons?", "Q2", "sons"),
        ("Which film directed Ada Reed?", "Q1", "film"),
    ],
)
def test_what_no_query_says_is_refused_and_named(
    question: str, ids: str, word: str, without_meaning: ToolContext
) -> None:
    check_refused(without_meaning, question, ids, word)


@pytest.mark.parametrize(
    ("question", "ids", "expected"),
    [
        ("Did Ada Reed direct The Father of Tides?", "Q1 Q50", "yes"),
        ("Did Eli Reed direct Low Water?", "Q5 Q51", "no"),
        ("Did The Father of Tides direct Ada Reed?", "Q1 Q50", ""),
        ("Was The Father of Tides directed by Ada Reed?", "Q1 Q50", "yes"),
        ("Was Ada Reed directed by The Father of Tides?", "Q1 Q50", ""),
        ("Is it true that Fay Lund directed Low Water?", "Q6 Q51", "yes"),
        ("Is it true that Low Water directed Fay Lund?", "Q6 Q51", ""),
        ("Did Bram Reed father Ada Reed?", "Q2 Q1", "yes"),
        ("Did Ada Reed father Bram Reed?", "Q2 Q1", "no"),
        ("Was Ada Reed fathered by Bram Reed?", "Q2 Q1", "yes"),
        ("Was Bram Reed fathered by Ada Reed?", "Q2 Q1", "no"),
        ("Does Ada Reed have Bram Reed as a father?", "Q1 Q2", "yes"),
        ("Does Bram Reed have Ada Reed as a father?", "Q1 Q2", "no"),
        ("Was Gullhaven born in Bram Reed?", "Q21 Q2", ""),
        ("Is Ada Reed friends with Gus Holm?", "Q1 Q7", "no"),
        ("Did the director of Born to Row father Jan Reed?", "Q52 Q10", "yes"),
        ("Is the father of Ada Reed the father of Eli Reed?", "Q1 Q5", "yes"),
        ("What did Fay Lund direct?", "Q6", "Low Water"),
        ("What did Low Water direct?", "Q51", ""),
        ("Who lives in Ada Reed?", "Q1", ""),
        ("What did the Golden Oar receive?", "Q40", ""),
        ("Who is Ada Reed mother to?", "Q1", "Kit Reed|Lea Reed"),
        ("Of whom is Bram Reed the father?", "Q2", "Ada Reed|Eli Reed"),
        ("Which person's father is Bram Reed?", "Q2", "Ada Reed|Eli Reed"),
        ("Who made Low Water?", "Q51", "Fay Lund"),
        ("Who is the country of the place of birth of Ada Reed?", "Q1", "Norland"),
        ("Who is the country is the place of birth of Ada Reed?", "Q1", "Norland"),
    ],
)
def test_a_relation_is_followed_in_the_direction_of_its_verb(
    question: str, ids: str, expected: str, without_meaning: ToolContext
) -> None:
    assert ask(without_meaning, question, ids) == expected


@pytest.mark.parametrize(
    ("question", "ids", "expected"),
    [
        ("Who is older, Ada Reed or the father of Jan Reed?", "Q1 Q10", "1950-03-04|Ada Reed"),
        ("Which film has more directors, Low Water or The Father of Tides?", "Q51 Q50", ""),
        ("Where was she born?", "Q1", "Saltmouth"),
        ("When did her father's father die?", "Q1", ""),
        ("Who was born in Saltmowth?", "Q20", "Ada Reed|Cora Reed"),
        ("What is the country of her place of birth?", "Q1", "Norland"),
    ],
)
def test_the_compared_and_the_pronouns_are_those_that_the_question_means(
    question: str, ids: str, expected: str, without_meaning: ToolContext
) -> None:
    assert ask(without_meaning, question, ids) == expected


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        # a child together is no marriage, and an aunt's husband no brother of a parent
        ("Who is the spouse of Eli Reed?", "Q5"),
        ("Who is the wife of Eli Reed?", "Q5"),
        ("Who is the uncle of Jan Reed?", "Q10"),
        ('Who is the nephew of Dan O"Shea?', "Q4"),
        # the father's wife is the mother
        ("Who is the stepmother of Ada Reed?", "Q1"),
    ],
)
def test_another_meaning_of_a_word_does_not_answer_where_the_first_has_no_value(
    question: str, ids: str, without_meaning: ToolContext
) -> None:
    observation = get_tool("generateQuery").call(without_meaning, {"question": question, "entity_ids": ids}).observation
    assert observation is not None
    assert all(not answers(without_meaning, reading["sparql"]) for reading in observation.data["candidates"])


def test_a_definition_that_is_not_the_first_is_named_in_the_reading(without_meaning: ToolContext) -> None:
    arguments = {"question": "Who is the father of Kit Reed?", "entity_ids": "Q11"}
    observation = get_tool("generateQuery").call(without_meaning, arguments).observation
    assert observation is not None
    assert observation.data["candidates"][0]["reading"] == "father (spouse of the mother) of Kit Reed"


@pytest.mark.parametrize(
    ("question", "ids", "word"),
    [
        ("Who is the husband of Una Vane?", "Q1", "husband"),
        ("Who is the daughter of Una Vane?", "Q1", "daughter"),
        ("Where was the daughter of Una Vane born?", "Q1", "daughter"),
        ("How many sisters does Una Vane have?", "Q1", "sisters"),
        ("Is Sam Holt the daughter of Una Vane?", "Q3 Q1", "daughter"),
        ("Which woman directed Night Ferry?", "Q5", "woman"),
        # a parent's sibling is no aunt, and a child's child no granddaughter, before their gender is known
        ("Who is Sam Holt's aunt?", "Q3", "aunt"),
        ("Who is the granddaughter of Una Vane?", "Q1", "granddaughter"),
    ],
)
def test_a_gender_is_refused_where_the_graph_states_none(
    question: str, ids: str, word: str, without_genders: ToolContext
) -> None:
    check_refused(without_genders, question, ids, word)


@pytest.mark.parametrize(
    ("question", "ids", "expected"),
    [
        ("Where was the husband of Una Vane born?", "Q1", "Holm Quay"),
        ("Which woman is the mother of Sam Holt?", "Q3", "Una Vane"),
        ("Where was the woman who directed Night Ferry born?", "Q5", "Holm Quay"),
    ],
)
def test_a_gender_that_selects_nobody_is_presumed(
    question: str, ids: str, expected: str, without_genders: ToolContext
) -> None:
    assert ask(without_genders, question, ids) == expected


@pytest.mark.parametrize(
    ("question", "ids", "expected"),
    [
        # ages at a date, not dates
        ("Who was older at death, Bram Reed or Cora Reed?", "Q2 Q3", "Cora Reed"),
        ("Who was younger when they died, Bram Reed or Cora Reed?", "Q2 Q3", "Bram Reed"),
        # whoever has somebody as a relative, not that one's own
        ("Who has Bram Reed as father?", "Q2", "Ada Reed|Eli Reed"),
        ("Which people have Ada Reed for a mother?", "Q1", "Kit Reed|Lea Reed"),
        # those of whom something is said, not what is said of them
        ("Which parents of Ada Reed are dead?", "Q1", "Bram Reed|Cora Reed"),
        ("Which of the friends of Ada Reed have children?", "Q1", "Eli Reed|Fay Lund"),
        ("How many of Ada Reed's friends have children?", "Q1", "2"),
        # one of several by their order
        ("Who is the youngest child of Bram Reed?", "Q2", "1953-01-02|Eli Reed"),
        ("Who is Bram Reed's eldest daughter?", "Q2", "1950-03-04|Ada Reed"),
        ("Which of Bram Reed's children was born last?", "Q2", "1953-01-02|Eli Reed"),
        # of both, of neither, differing, and not the first
        ("Who is the father of both Ada Reed and Eli Reed?", "Q1 Q5", "Bram Reed"),
        ("Who directed both Low Water and Born to Row?", "Q51 Q52", ""),
        ("Do Ada Reed and Fay Lund have different nationalities?", "Q1 Q6", "yes"),
        ("Are Low Water and The Father of Tides from different countries?", "Q51 Q50", "no"),
        (
            "Which film was not released first, Low Water or The Father of Tides?",
            "Q51 Q50",
            "1988-09-10|The Father of Tides",
        ),
        ("Are Ada Reed and Eli Reed friends?", "Q1 Q5", "yes"),
        ("How many daughters has Ada Reed got?", "Q1", "2"),
        # the part of a date that is asked for, and no month where only the year is known
        ("What year was Ada Reed born in?", "Q1", "1950"),
        ("In what year was Ada Reed's father born?", "Q1", "1920"),
        ("In which year was The Father of Tides released?", "Q50", "1988"),
        ("Tell me the year in which Bram Reed died.", "Q2", "1990"),
        ("In which month was Ada Reed born?", "Q1", "March"),
        ("In what month did Cora Reed die?", "Q3", "December"),
        ("In which month was Bram Reed born?", "Q2", ""),
        ("On which day was Ada Reed born?", "Q1", "1950-03-04"),
        ("In wich town was Ada Reed born?", "Q1", "Saltmouth"),
        # states, and what is said in words
        ("Is Bram Reed dead?", "Q2", "yes"),
        ("Does Ada Reed have children?", "Q1", "yes"),
        ("Has Ada Reed directed any films?", "Q1", "yes"),
        ("Is Ada Reed the mother of someone?", "Q1", "yes"),
        ("Was Ada Reed born in Saltmouth?", "Q1", "yes"),
        ("Was Ada Reed born in Gullhaven?", "Q1", "no"),
        ("Is Ada Reed a woman?", "Q1", "yes"),
        ("Is Bram Reed female?", "Q2", "no"),
        # those of a gender, also by adjective
        ("Which children of Bram Reed are women?", "Q2", "Ada Reed"),
        ("Who are the male children of Bram Reed?", "Q2", "Eli Reed"),
        ("How many women were born in Saltmouth?", "Q20", "2"),
        # who has a prize, but a film's director; the noun of a place or of who lives there
        ("Who received the Golden Oar?", "Q40", 'Dan O"Shea'),
        ("Who directed Low Water?", "Q51", "Fay Lund"),
        ("Is Ada Reed a citizen of Norland?", "Q1 Q30", "yes"),
        ("How many people are citizens of Norland?", "Q30", "2"),
        ("When is the director of the film Low Water's birthday?", "Q51", "1947-02-03"),
    ],
)
def test_the_query_returns_what_the_words_ask_for(
    question: str, ids: str, expected: str, without_meaning: ToolContext
) -> None:
    assert ask(without_meaning, question, ids) == expected


@pytest.mark.parametrize(
    ("question", "ids", "word"),
    [
        ("Who was the child whose mother was Ada Reed?", "Q1", "child"),
        ("When was the eldest child of Bram Reed born?", "Q2", "when"),
        ("Who is the father of the eldest child of Bram Reed?", "Q2", "child"),
        ("Who is the older child of Bram Reed?", "Q2", "older"),
        ("Who was the first spouse of Ada Reed?", "Q1", "first"),
        ("How many sons do the friends does Ada Reed have?", "Q1", "does"),
    ],
)
def test_another_thing_than_what_is_asked_for_is_no_answer(
    question: str, ids: str, word: str, without_meaning: ToolContext
) -> None:
    check_refused(without_meaning, question, ids, word)
