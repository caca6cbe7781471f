"""The English of an expression: one question for each, and one meaning for each question.

"The mother of the friend of X" is each mother of any friend of X. "How many friends does the child of X have?" asks how
many different people are a friend of any child of X, each counted once.
"""

from datetime import date
from functools import singledispatch

from worlds.questions.evaluate import KIND_OF_FACT
from worlds.questions.expressions import (
    Both,
    Compare,
    Count,
    Expression,
    Fact,
    Having,
    Judge,
    Most,
    Named,
    Only,
    People,
    Place,
    Related,
    Same,
)
from worlds.questions.names import Names
from worlds.universe.relations import relation

LABELS = {
    "job": "occupation",
    "hobby": "hobby",
    "birth": "date of birth",
    "death": "date of death",
    "wedding": "date of marriage",
    "birthplace": "place of birth",
    "residence": "residence",
}
"""What questions call a fact."""
_EVENTS = {"birth": "was born", "death": "died", "wedding": "married"}
_ENDS = {("birth", True): "earliest-born", ("birth", False): "latest-born"}
_ACTS = {"death": "die", "wedding": "marry"}
_HAVE = {"birthplace": "were born in", "residence": "have their residence in"}
_JUDGED = {
    "met": "Could {left} have met {right}?",
    "wedding": "Did {left} live to see the wedding of {right}?",
    "passport": "Would {left} have needed a passport to visit {right}?",
}


@singledispatch
def wording(expression: Expression, names: Names) -> str:  # noqa: ARG001 - those that are registered need it
    """The question that asks for the expression's value."""
    raise TypeError(f"nobody asks for {type(expression).__name__}")


@wording.register(Named)
@wording.register(Having)
@wording.register(Related)
def _(people: People, names: Names) -> str:
    return f"Who is {noun(people, names)}?"


@wording.register
def _(only: Only, names: Names) -> str:
    return f"Which {_several(only.of, names)} {_fit(only, names)}?"


@wording.register
def _(both: Both, names: Names) -> str:
    if isinstance(both.left, Having) and isinstance(both.right, Having):
        return f"Who is {noun(both, names)}?"
    return f"Who is both {_any(both.left, names)} and {_any(both.right, names)}?"


@wording.register
def _(most: Most, names: Names) -> str:
    end = "first" if most.first else "last"
    return f"Which of the {_several(most.of, names)} {_EVENTS[most.fact]} {end}?"


@wording.register
def _(fact: Fact, names: Names) -> str:
    whose = noun(fact.of, names)
    match fact.fact:
        case "death":
            return f"When did {whose} die?"
        case "wedding":
            return f"When did {whose} marry?"
        case "birthplace":
            return f"In which town was {whose} born?"
    return f"What is the {LABELS[fact.fact]} of {whose}?"


@wording.register
def _(place: Place, names: Names) -> str:
    whose = noun(place.of.of, names)
    if place.of.fact == "birthplace":
        return f"In which {place.kind} was {whose} born?"
    return f"In which {place.kind} is the residence of {whose}?"


@wording.register
def _(count: Count, names: Names) -> str:
    of = count.of
    if isinstance(of, Related):
        return f"How many {relation(of.relation).many} does {noun(of.of, names)} have?"
    if isinstance(of, Only):
        return f"How many {_several(of.of, names)} {_fit(of, names)}?"
    if isinstance(of, Both) and isinstance(of.left, Having) and isinstance(of.right, Having):
        return f"How many people are there {_whose(of.left, names)} and {_whose(of.right, names)}?"
    return f"How many {_several(of, names)} are there?"


@wording.register
def _(compare: Compare, names: Names) -> str:
    when = "earlier" if compare.first else "later"
    left, right = noun(compare.left, names), noun(compare.right, names)
    return f"Who {_EVENTS[compare.fact]} {when}, {left} or {right}?"


@wording.register
def _(same: Same, names: Names) -> str:
    both = f"{noun(same.left, names)} and {noun(same.right, names)}"
    where = "country" if same.country else "town"
    match same.fact:
        case "birthplace":
            return f"Were {both} born in the same {where}?"
        case "residence":
            return f"Are the residences of {both} in the same {where}?"
    return f"Do {both} have the same {LABELS[same.fact]}?"


@wording.register
def _(judge: Judge, names: Names) -> str:
    return _JUDGED[judge.strategy].format(left=noun(judge.left, names), right=noun(judge.right, names))


@singledispatch
def noun(people: People, names: Names) -> str:  # noqa: ARG001 - those that are registered need it
    """Who they are, as a part of a sentence: the mother of the person whose hobby is chess."""
    raise TypeError(f"{type(people).__name__} is nobody")


@noun.register
def _(named: Named, names: Names) -> str:
    return names.person(named.person)


@noun.register
def _(having: Having, names: Names) -> str:
    return f"the person {_whose(having, names)}"


@noun.register
def _(related: Related, names: Names) -> str:
    return f"the {relation(related.relation).words} of {noun(related.of, names)}"


@noun.register
def _(only: Only, names: Names) -> str:
    return f"those {_several(only.of, names)} who {_fit(only, names)}"


@noun.register
def _(both: Both, names: Names) -> str:
    if isinstance(both.left, Having) and isinstance(both.right, Having):
        return f"the person {_whose(both.left, names)} and {_whose(both.right, names)}"
    return f"the person who is both {_any(both.left, names)} and {_any(both.right, names)}"


@noun.register
def _(most: Most, names: Names) -> str:
    end = _ENDS.get((most.fact, most.first))
    if end:
        return f"the {end} of the {_several(most.of, names)}"
    end = "first" if most.first else "last"
    return f"the {end} to {_ACTS[most.fact]} of the {_several(most.of, names)}"


def _whose(having: Having, names: Names) -> str:
    return f"whose {LABELS[having.fact]} is {names.value(KIND_OF_FACT[having.fact], having.value)}"


def _any(people: People, names: Names) -> str:
    """One of them: an aunt of X."""
    if isinstance(people, Related):
        one = relation(people.relation).words
        return f"{'an' if one[0] in 'aeiou' else 'a'} {one} of {noun(people.of, names)}"
    if isinstance(people, Having):
        return f"a person {_whose(people, names)}"
    return noun(people, names)


def _several(people: People, names: Names) -> str:
    """All of them, without an article: friends of X."""
    if isinstance(people, Related):
        return f"{relation(people.relation).many} of {noun(people.of, names)}"
    if isinstance(people, Having):
        return f"people {_whose(people, names)}"
    if isinstance(people, Only):
        return f"{_several(people.of, names)} who {_fit(people, names)}"
    return f"people among {noun(people, names)}"


def _fit(only: Only, names: Names) -> str:
    """What is asked of them: have the occupation nurse, were born before 1950."""
    kind = KIND_OF_FACT[only.fact]
    if only.test == "is" and kind != "day":
        have = _HAVE.get(only.fact, f"have the {LABELS[only.fact]}")
        return f"{have} {names.value(kind, only.value)}"
    event = _EVENTS[only.fact].replace("was", "were")
    if only.test == "is":
        return f"{event} on {names.value(kind, only.value)}"
    return f"{event} {only.test} {_bound(only, names)}"


def _bound(only: Only, names: Names) -> str:
    # Before the first day of a year, or after its last, is before or after the year.
    day = date.fromordinal(only.value)
    if (day.month, day.day) == ((1, 1) if only.test == "before" else (12, 31)):
        return str(day.year)
    return names.value("day", only.value)
