from datetime import date

import pytest

from showhow.fiction.questions import expressions as ask
from showhow.fiction.questions.names import NameFormatter
from showhow.fiction.questions.wording import word_question
from showhow.fiction.universe.universe import Universe
from tests.fiction.questions.sample_expressions import UNIVERSE

NAMES = NameFormatter(UNIVERSE)
ANN, BEN = UNIVERSE.titles[3], UNIVERSE.titles[4]
DAY = int(UNIVERSE.birth[3])
JOB, HOBBY, TOWN = UNIVERSE.jobs[7], UNIVERSE.hobbies[8], UNIVERSE.places.towns[0]
ann, ben = ask.Named(3), ask.Named(4)
friends, aunts = ask.Related("friend", ann), ask.Related("aunt", ben)
bakers, players = ask.Having("job", 7), ask.Having("hobby", 8)
NEW_YEAR = date(1940, 1, 1).toordinal()
SYLVESTER = NEW_YEAR - 1


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (aunts, f"Who is the aunt of {BEN}?"),
        (ask.Related("mother", bakers), f"Who is the mother of the person whose occupation is {JOB}?"),
        (ask.Fact("job", aunts), f"What is the occupation of the aunt of {BEN}?"),
        (ask.Fact("birth", friends), f"What is the date of birth of the friend of {ANN}?"),
        (ask.Fact("death", friends), f"When did the friend of {ANN} die?"),
        (ask.Fact("wedding", ann), f"When did {ANN} marry?"),
        (ask.Fact("birthplace", ann), f"In which town was {ANN} born?"),
        (ask.Place("country", ask.Fact("birthplace", ann)), f"In which country was {ANN} born?"),
        (ask.Place("region", ask.Fact("residence", ann)), f"In which region is the residence of {ANN}?"),
        (ask.Count(aunts), f"How many aunts does {BEN} have?"),
        (ask.Count(aunts, each=True), f"How many aunts does {BEN} have?"),
        (ask.Count(ask.Related("sister_in_law", friends)), f"How many sisters-in-law does the friend of {ANN} have?"),
        (ask.Count(ask.Only(aunts, "job", "is", 7)), f"How many aunts of {BEN} have the occupation {JOB}?"),
        (
            ask.Count(ask.Both(bakers, players)),
            f"How many people are there whose occupation is {JOB} and whose hobby is {HOBBY}?",
        ),
        (ask.Only(friends, "hobby", "is", 8), f"Which friends of {ANN} have the hobby {HOBBY}?"),
        (ask.Only(friends, "residence", "is", 0), f"Which friends of {ANN} have their residence in {TOWN}?"),
        (ask.Only(friends, "birthplace", "is", 0), f"Which friends of {ANN} were born in {TOWN}?"),
        (ask.Only(friends, "birth", "before", NEW_YEAR), f"Which friends of {ANN} were born before 1940?"),
        (ask.Only(friends, "death", "after", SYLVESTER), f"Which friends of {ANN} died after 1939?"),
        (ask.Only(friends, "wedding", "before", SYLVESTER), f"Which friends of {ANN} married before 31 December 1939?"),
        (ask.Only(friends, "birth", "after", NEW_YEAR), f"Which friends of {ANN} were born after 1 January 1940?"),
        (ask.Both(bakers, players), f"Who is the person whose occupation is {JOB} and whose hobby is {HOBBY}?"),
        (ask.Both(aunts, friends), f"Who is both an aunt of {BEN} and a friend of {ANN}?"),
        (ask.Most(friends, "birth", first=True), f"Which of the friends of {ANN} was born first?"),
        (ask.Most(bakers, "death", first=False), f"Which of the people whose occupation is {JOB} died last?"),
        (
            ask.Fact("job", ask.Most(friends, "birth", first=False)),
            f"What is the occupation of the latest-born of the friends of {ANN}?",
        ),
        (ask.Compare(ann, ben, "birth", first=True), f"Who was born earlier, {ANN} or {BEN}?"),
        (ask.Compare(ann, aunts, "death", first=False), f"Who died later, {ANN} or the aunt of {BEN}?"),
        (ask.Same(ann, ben, "job"), f"Do {ANN} and {BEN} have the same occupation?"),
        (ask.Same(ann, ben, "birthplace"), f"Were {ANN} and {BEN} born in the same town?"),
        (ask.Same(ann, ben, "birthplace", country=True), f"Were {ANN} and {BEN} born in the same country?"),
        (
            ask.Same(ann, ben, "residence", country=True),
            f"Are the residences of {ANN} and {BEN} in the same country?",
        ),
        (ask.Judge("met", ann, aunts), f"Could {ANN} have met the aunt of {BEN}?"),
        (ask.Judge("wedding", aunts, ann), f"Did the aunt of {BEN} live to see the wedding of {ANN}?"),
        (ask.Judge("passport", ann, ben), f"Would {ANN} have needed a passport to visit {BEN}?"),
    ],
)
def test_each_operation_has_an_english_text(expression: ask.Expression, text: str) -> None:
    assert word_question(expression, NAMES) == text


def test_days_are_formatted_in_the_style() -> None:
    born = ask.Fact("job", ask.Having("birth", date(1929, 4, 1).toordinal()))
    text = "What is the occupation of the person whose date of birth is {}?"
    assert word_question(born, NAMES) == text.format("1 April 1929")
    assert word_question(born, NameFormatter(UNIVERSE, plain=True)) == text.format("1929-04-01")


def test_namesakes_are_named_with_their_job() -> None:
    titles = [title for title in UNIVERSE.titles if "(" in title]
    assert titles
    row = UNIVERSE.titles.index(titles[0])
    assert word_question(ask.Related("aunt", ask.Named(row)), NAMES) == f"Who is the aunt of {titles[0]}?"


def test_wording_rejects_other_types() -> None:
    with pytest.raises(TypeError):
        word_question(Universe, NAMES)  # type: ignore[arg-type]
