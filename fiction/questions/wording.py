"""English text of questions, and of the steps and facts of the gold reasoning.

Each expression has one text and each text one meaning: "the mothers of the friends of X" are all mothers of any friend
of X, and "How many friends do the children of X have?" counts the distinct people who are a friend of any child of X.
"""

from datetime import date
from functools import singledispatch
from typing import Any

from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS, FactTriple
from showhow.fiction.questions.expressions import (
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
from showhow.fiction.questions.names import NameFormatter, ThingCatalog
from showhow.fiction.universe.items import PROPERTY_IDS, PROPERTY_RELATIONS
from showhow.fiction.universe.relations import get_relation
from showhow.worlds.lexicon.english import takes_article_an

FACT_LABELS = {fact: PROPERTY_RELATIONS[PROPERTY_IDS[fact]] for fact in FACT_VALUE_KINDS}
"""Nouns for facts in questions."""
FACT_QUESTIONS = {
    "job": f"What is the {FACT_LABELS['job']} of {{}}?",
    "hobby": f"What is the {FACT_LABELS['hobby']} of {{}}?",
    "birth": "When was {} born?",
    "death": "When did {} die?",
    "wedding": "When did {} marry?",
    "birthplace": "Where was {} born?",
    "residence": f"What is the {FACT_LABELS['residence']} of {{}}?",
}
VALUE_QUESTIONS = {
    "job": f"Whose {FACT_LABELS['job']} is {{}}?",
    "hobby": f"Whose {FACT_LABELS['hobby']} is {{}}?",
    "birthplace": "Who was born in {}?",
    "residence": f"Whose {FACT_LABELS['residence']} is {{}}?",
}
_EVENT_PHRASES = {"birth": "was born", "death": "died", "wedding": "married"}
_VALUE_PHRASES = {
    "job": f"has the {FACT_LABELS['job']} {{}}",
    "hobby": f"has the {FACT_LABELS['hobby']} {{}}",
    "birthplace": "was born in {}",
    "residence": f"has the {FACT_LABELS['residence']} {{}}",
}
_FACT_SENTENCES = {
    "gender": "{} is {}.",
    "birth": "{} was born on {}.",
    "death": "{} died on {}.",
    "wedding": "{} married on {}.",
    "birthplace": "{} was born in {}.",
    "region": "{} lies in the region {}.",
    "country": "{} lies in the country {}.",
}


def condition_phrase(fact: str, test: str, value: str) -> str:
    """Phrase of a condition: "has the occupation baker", "was born before 5 March 1931"."""
    if fact in _EVENT_PHRASES:
        return f"{_EVENT_PHRASES[fact]} {'on' if test == 'is' else test} {value}"
    return _VALUE_PHRASES[fact].format(value)


def superlative_phrase(fact: str, first: bool) -> str:  # noqa: FBT001 - a field of the expression
    """Phrase of a superlative: "was born first"."""
    return f"{_EVENT_PHRASES[fact]} {'first' if first else 'last'}"


def fact_sentence(triple: FactTriple, things: ThingCatalog) -> str:
    """A fact as a sentence."""
    subject, value = things.sentence_text(*triple.subject), things.sentence_text(*triple.object)
    if triple.relation in _FACT_SENTENCES:
        return _FACT_SENTENCES[triple.relation].format(subject, value)
    return f"The {PROPERTY_RELATIONS[PROPERTY_IDS[triple.relation]]} of {subject} is {value}."


def overlap_question(*days: Any) -> tuple[Any, ...]:
    """Question whether two lives overlap, from (birth, death) of both; a person without a death is alive."""
    born, died, other_born, other_died = days
    return ("Do the lives from ", born, " to ", died, " and from ", other_born, " to ", other_died, " overlap?")


def wedding_question(*days: Any) -> tuple[Any, ...]:
    """Question whether a wedding lies within a life, from (birth, death, wedding)."""
    born, died, wedding = days
    return ("Is ", wedding, " after ", born, " and not after ", died, "?")


_SUPERLATIVES = {("birth", True): "earliest-born", ("birth", False): "latest-born"}
_EVENT_VERBS = {"death": "die", "wedding": "marry"}
_PLACE_PHRASES = {"birthplace": "were born in", "residence": f"have their {FACT_LABELS['residence']} in"}
_STRATEGY_TEXTS = {
    "met": "Could {left} have met {right}?",
    "wedding": "Did {left} live to see the wedding of {right}?",
    "passport": "Would {left} have needed a passport to visit {right}?",
}


@singledispatch
def word_question(expression: Expression, names: NameFormatter) -> str:  # noqa: ARG001 - used by the registered functions
    """The question for the value of an expression."""
    raise TypeError(f"{type(expression).__name__} is no expression")


@word_question.register(Named)
@word_question.register(Having)
@word_question.register(Related)
def _(people: People, names: NameFormatter) -> str:
    return f"Who {_verb('is', people, names)} {noun_phrase(people, names)}?"


@word_question.register
def _(only: Only, names: NameFormatter) -> str:
    return f"Which {_plural_phrase(only.of, names)} {_condition_clause(only, names)}?"


@word_question.register
def _(both: Both, names: NameFormatter) -> str:
    if isinstance(both.left, Having) and isinstance(both.right, Having):
        return f"Who {_verb('is', both, names)} {noun_phrase(both, names)}?"
    return f"Who is both {_indefinite_phrase(both.left, names)} and {_indefinite_phrase(both.right, names)}?"


@word_question.register
def _(most: Most, names: NameFormatter) -> str:
    end = "first" if most.first else "last"
    return f"Which of the {_plural_phrase(most.of, names)} {_EVENT_PHRASES[most.fact]} {end}?"


@word_question.register
def _(fact: Fact, names: NameFormatter) -> str:
    whose = noun_phrase(fact.of, names)
    match fact.fact:
        case "death":
            return f"When did {whose} die?"
        case "wedding":
            return f"When did {whose} marry?"
        case "birthplace":
            return f"In which town {_verb('was', fact.of, names)} {whose} born?"
    return f"What is the {FACT_LABELS[fact.fact]} of {whose}?"


@word_question.register
def _(place: Place, names: NameFormatter) -> str:
    whose = noun_phrase(place.of.of, names)
    if place.of.fact == "birthplace":
        return f"In which {place.kind} {_verb('was', place.of.of, names)} {whose} born?"
    return f"In which {place.kind} is the residence of {whose}?"


@word_question.register
def _(count: Count, names: NameFormatter) -> str:
    of = count.of
    if isinstance(of, Related):
        whose = f"{_verb('does', of.of, names)} {noun_phrase(of.of, names)}"
        return f"How many {_relatives_noun(of, names)} {whose} have?"
    if isinstance(of, Only):
        return f"How many {_plural_phrase(of.of, names)} {_condition_clause(of, names)}?"
    if isinstance(of, Both) and isinstance(of.left, Having) and isinstance(of.right, Having):
        return f"How many people are there {_value_clause(of.left, names)} and {_value_clause(of.right, names)}?"
    return f"How many {_plural_phrase(of, names)} are there?"


@word_question.register
def _(compare: Compare, names: NameFormatter) -> str:
    when = "earlier" if compare.first else "later"
    left, right = noun_phrase(compare.left, names), noun_phrase(compare.right, names)
    return f"Who {_EVENT_PHRASES[compare.fact]} {when}, {left} or {right}?"


@word_question.register
def _(same: Same, names: NameFormatter) -> str:
    both = f"{noun_phrase(same.left, names)} and {noun_phrase(same.right, names)}"
    where = "country" if same.country else "town"
    match same.fact:
        case "birthplace":
            return f"Were {both} born in the same {where}?"
        case "residence":
            return f"Are the residences of {both} in the same {where}?"
    return f"Do {both} have the same {FACT_LABELS[same.fact]}?"


@word_question.register
def _(judge: Judge, names: NameFormatter) -> str:
    return _STRATEGY_TEXTS[judge.strategy].format(
        left=noun_phrase(judge.left, names), right=noun_phrase(judge.right, names)
    )


@singledispatch
def noun_phrase(people: People, names: NameFormatter) -> str:  # noqa: ARG001 - used by the registered functions
    """Noun phrase for people: the mother of the person whose hobby is chess."""
    raise TypeError(f"{type(people).__name__} denotes no people")


@noun_phrase.register
def _(named: Named, names: NameFormatter) -> str:
    return names.person_title(named.person)


@noun_phrase.register
def _(having: Having, names: NameFormatter) -> str:
    return f"the {_person_noun(having, names)} {_value_clause(having, names)}"


@noun_phrase.register
def _(related: Related, names: NameFormatter) -> str:
    noun = names.relation_noun(get_relation(related.relation), plural=names.is_plural(related))
    return f"the {noun} of {noun_phrase(related.of, names)}"


@noun_phrase.register
def _(only: Only, names: NameFormatter) -> str:
    return f"those {_plural_phrase(only.of, names)} who {_condition_clause(only, names)}"


@noun_phrase.register
def _(both: Both, names: NameFormatter) -> str:
    if isinstance(both.left, Having) and isinstance(both.right, Having):
        noun = _person_noun(both, names)
        return f"the {noun} {_value_clause(both.left, names)} and {_value_clause(both.right, names)}"
    return f"the person who is both {_indefinite_phrase(both.left, names)} and {_indefinite_phrase(both.right, names)}"


@noun_phrase.register
def _(most: Most, names: NameFormatter) -> str:
    end = _SUPERLATIVES.get((most.fact, most.first))
    if end:
        return f"the {end} of the {_plural_phrase(most.of, names)}"
    end = "first" if most.first else "last"
    return f"the {end} to {_EVENT_VERBS[most.fact]} of the {_plural_phrase(most.of, names)}"


_PLURAL_VERBS = {"is": "are", "was": "were", "does": "do"}


def _verb(singular: str, people: People, names: NameFormatter) -> str:
    return _PLURAL_VERBS[singular] if names.is_plural(people) else singular


def _relatives_noun(related: Related, names: NameFormatter) -> str:
    return names.relation_noun(get_relation(related.relation), plural=True)


def _person_noun(people: People, names: NameFormatter) -> str:
    return "people" if names.is_plural(people) else "person"


def _value_clause(having: Having, names: NameFormatter) -> str:
    return f"whose {FACT_LABELS[having.fact]} is {names.question_text(FACT_VALUE_KINDS[having.fact], having.value)}"


def _indefinite_phrase(people: People, names: NameFormatter) -> str:
    """Indefinite noun phrase: an aunt of X."""
    if isinstance(people, Related):
        one = names.relation_noun(get_relation(people.relation))
        return f"{'an' if takes_article_an(one) else 'a'} {one} of {noun_phrase(people.of, names)}"
    if isinstance(people, Having):
        return f"a person {_value_clause(people, names)}"
    return noun_phrase(people, names)


def _plural_phrase(people: People, names: NameFormatter) -> str:
    """Plural noun phrase without article: friends of X."""
    if isinstance(people, Related):
        return f"{_relatives_noun(people, names)} of {noun_phrase(people.of, names)}"
    if isinstance(people, Having):
        return f"people {_value_clause(people, names)}"
    if isinstance(people, Only):
        return f"{_plural_phrase(people.of, names)} who {_condition_clause(people, names)}"
    return f"people among {noun_phrase(people, names)}"


def _condition_clause(only: Only, names: NameFormatter) -> str:
    """Clause of a filter: have the occupation nurse, were born before 1950."""
    kind = FACT_VALUE_KINDS[only.fact]
    if only.test == "is" and kind != "day":
        have = _PLACE_PHRASES.get(only.fact, f"have the {FACT_LABELS[only.fact]}")
        return f"{have} {names.question_text(kind, only.value)}"
    event = _EVENT_PHRASES[only.fact].replace("was", "were")
    if only.test == "is":
        return f"{event} on {names.question_text(kind, only.value)}"
    return f"{event} {only.test} {_format_bound(only, names)}"


def _format_bound(only: Only, names: NameFormatter) -> str:
    # Before 1 January, or after 31 December, means before or after the year.
    day = date.fromordinal(only.value)
    if (day.month, day.day) == ((1, 1) if only.test == "before" else (12, 31)):
        return str(day.year)
    return names.question_text("day", only.value)
