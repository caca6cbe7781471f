"""How the gold reasoning words its single questions and facts."""

from typing import Any

from worlds.generator.items import PROPERTIES, PROPERTY
from worlds.questions.facts import Triple
from worlds.questions.things import Things

WHAT = {
    "job": "What is the occupation of {}?",
    "hobby": "What is the hobby of {}?",
    "birth": "When was {} born?",
    "death": "When did {} die?",
    "wedding": "When did {} marry?",
    "birthplace": "Where was {} born?",
    "residence": "Where does {} live?",
}
WHO_HAS = {
    "job": "Who works as {}?",
    "hobby": "Whose hobby is {}?",
    "birthplace": "Who was born in {}?",
    "residence": "Who lives in {}?",
}
_DONE = {"birth": "was born", "death": "died", "wedding": "married"}
_IS = {
    "job": "works as {}",
    "hobby": "has the hobby {}",
    "birthplace": "was born in {}",
    "residence": "lives in {}",
}
_FACTS = {
    "gender": "{} is {}.",
    "birth": "{} was born on {}.",
    "death": "{} died on {}.",
    "wedding": "{} married on {}.",
    "birthplace": "{} was born in {}.",
    "residence": "{} lives in {}.",
    "region": "{} lies in the region {}.",
    "country": "{} lies in the country {}.",
}


def condition(fact: str, test: str, value: str) -> str:
    """What a person who fits does: "works as baker", "was born before 5 March 1931"."""
    if fact in _DONE:
        return f"{_DONE[fact]} {'on' if test == 'is' else test} {value}"
    return _IS[fact].format(value)


def most(fact: str, first: bool) -> str:  # noqa: FBT001 - as the expressions have it
    """What the one does who has the earliest or the latest day."""
    return f"{_DONE[fact]} {'first' if first else 'last'}"


def sentence(triple: Triple, things: Things) -> str:
    """A fact as a sentence of its own."""
    subject, told = things.said(*triple.subject), things.said(*triple.object)
    if triple.relation in _FACTS:
        return _FACTS[triple.relation].format(subject, told)
    return f"The {PROPERTIES[PROPERTY[triple.relation]][0]} of {subject} is {told}."


def overlap(*days: Any) -> tuple[Any, ...]:
    """The question whether two lives overlap, from two births and deaths; nobody of whom no death is known has died."""
    born, died, other_born, other_died = days
    return ("Do the lives from ", born, " to ", died, " and from ", other_born, " to ", other_died, " overlap?")


def within(*days: Any) -> tuple[Any, ...]:
    """The question whether a wedding lies in a life."""
    born, died, wedding = days
    return ("Is ", wedding, " after ", born, " and not after ", died, "?")
