"""Phrases of a question that stand for things by relations: the friends of the husband of X; and what is left of it.

What is left, with a letter for each phrase and for each word that means a relation, is the question's frame: questions
with one frame ask the same of other things and by other relations.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from showhow.reasoners.mentions import WorldWords, find_question_mentions
from showhow.reasoners.replay.statements import find_relations
from showhow.worlds.lexicon.english import (
    CONJUNCTIONS,
    DETERMINERS,
    GENERIC_NOUNS,
    MINOR_WORDS,
    PREPOSITIONS,
    RESTRICTIONS,
    asks_yes_or_no,
    has_content,
    list_words,
    load_lexicon,
    nouns_for_kinds,
    stem_word,
)

THING, RELATION = "X", "R"
MAX_ALTERNATIVES = 64
"""The ways of reading the phrases of one question."""
_MAX_NOUN_WORDS = 5
_OF = re.compile(r"\bof (?:(?:each of )?(?:the|all) ){0,3}\Z")
_DETERMINER = re.compile(r"\b(?:the|a|an) \Z", re.IGNORECASE)
_WHOSE = re.compile(
    r"\b(?P<noun>[^\W\d_]+)(?: (?:is|are))?(?: there)? whose (?P<relation>[^,?]{1,60}?) (?:is|are|was|were) \Z"
)
_AND_WHOSE = re.compile(r" and whose (?P<relation>[^,?]{1,60}?) (?:is|are|was|were) \Z")


class Phrase(NamedTuple):
    """A span of a question that stands for the things at the end of relations from a name, or that have some values."""

    start: int
    end: int
    text: str
    name: str
    """What it begins with."""
    relations: tuple[str, ...] = ()
    """The relations to follow from there, the nearest to the name first."""
    holds: str | None = None
    """The relation whose value the name is, of the things that are meant: whose occupation is X."""
    conditions: tuple[tuple[str, str], ...] = ()
    """Further relations of these things, each with its value."""


class Frame(NamedTuple):
    """A question without its phrases and relations."""

    words: tuple[str, ...]
    """The stems of its words that matter, with letters for phrases and relations."""
    is_yes_or_no: bool


class FramedQuestion(NamedTuple):
    """A question as a frame with its phrases and relations in their order."""

    frame: Frame
    phrases: tuple[Phrase, ...]
    relations: tuple[frozenset[str], ...]
    """What each word for a relation may mean."""


def frame_question(question: str, world: WorldWords) -> list[FramedQuestion]:
    """The ways of reading a question, those with the longest phrases first."""
    mentions = find_question_mentions(question, world.knows, nouns_for_kinds())
    longest = [list(_list_phrases(question, start, end, world))[::-1] for start, end in mentions]
    framed: dict[tuple[Phrase, ...], FramedQuestion] = {}
    for phrases in itertools.islice(itertools.product(*longest), MAX_ALTERNATIVES):
        united = _unite_conditions(question, phrases, world)
        framed.setdefault(united, _build(question, united, world))
    return list(framed.values()) if mentions else []


def _build(question: str, phrases: tuple[Phrase, ...], world: WorldWords) -> FramedQuestion:
    words: list[tuple[int, str]] = [(phrase.start, THING) for phrase in phrases]
    words += [
        (word.start, word.folded)
        for word in list_words(question)
        if not any(phrase.start <= word.start < phrase.end for phrase in phrases)
    ]
    texts = [text for _, text in sorted(words)]
    relations: list[frozenset[str]] = []
    kept: list[str] = []
    end = 0
    for start, stop, meanings in find_relations(texts, world):
        kept += [*texts[end:start], RELATION]
        relations.append(meanings)
        end = stop
    kept += texts[end:]
    own, rest = list[str](), [word for place, word in enumerate(kept) if _matters(kept, place)]
    while rest:
        length = 2 if tuple(rest[:2]) in load_lexicon().comparisons else 1
        own.append(unify_word(*rest[:length]))
        rest = rest[length:]
    return FramedQuestion(Frame(tuple(own), asks_yes_or_no(question)), phrases, tuple(relations))


def _matters(words: Sequence[str], place: int) -> bool:
    """Whether a word may change what is asked; small words do where they join other things than two names, compare with
    a name, or turn a relation round at the end: whom is X the father of.
    """
    word, before, behind = words[place], words[:place][::-1], words[place + 1 :]
    if word in CONJUNCTIONS:
        return any(next((w for w in side if w not in MINOR_WORDS), None) != THING for side in (before, behind))
    is_compared = word == "than" and next((w for w in behind if w not in DETERMINERS), None) == THING
    return word not in MINOR_WORDS or is_compared or (not behind and word in PREPOSITIONS)


def unify_word(*words: str, turned: bool = False) -> str:
    """The stem of a word, and one word for all that compare alike, or the other way round: earlier for first."""
    comparisons = load_lexicon().comparisons
    own = comparisons.get(words) if words[0] not in RESTRICTIONS else None
    own = replace(own, most=not own.most) if own and turned else own
    alike = (key[0] for key, other in comparisons.items() if other == own and len(key) == 1)
    return stem_word(min((other for other in alike if other not in RESTRICTIONS), default=words[-1]))


def _list_phrases(question: str, start: int, end: int, world: WorldWords) -> Iterator[Phrase]:
    """The phrases that end with a name, the shortest first."""
    begin = _skip_description(question, start, question[start:end], world)
    phrase = Phrase(begin, end, question[begin:end], question[start:end])
    yield phrase
    if (match := _WHOSE.search(question[:begin])) and stem_word(match["noun"].casefold()) in GENERIC_NOUNS:
        relation = read_noun(match["relation"], world)
        if relation is not None:
            first = _skip_determiner(question, match.start())
            phrase = Phrase(first, end, question[first:end], phrase.name, holds=relation)
            yield phrase
    while match := _OF.search(question[: phrase.start]):
        noun = _find_noun(question[: match.start()].rstrip(), world)
        if noun is None:
            return
        first, relation = noun
        relations = (*phrase.relations, relation)
        first = _skip_determiner(question, first)
        phrase = phrase._replace(start=first, text=question[first:end], relations=relations)
        yield phrase


def _skip_description(question: str, start: int, name: str, world: WorldWords) -> int:
    """Where what stands for a name begins, with the noun that says what kind of thing it is: of film X."""
    before, noun = [None, None, *list_words(question[:start])][-2:]
    if before is None or noun is None or before.folded not in DETERMINERS or question[noun.end : start] != " ":
        return start
    is_kind = has_content(noun.folded) and not world.meanings_of(noun.folded) and world.describes(name, noun.stem)
    return noun.start if is_kind else start


def _find_noun(text: str, world: WorldWords) -> tuple[int, str] | None:
    """The longest relation that a text ends with, and where it starts."""
    words = list_words(text)[-_MAX_NOUN_WORDS:]
    for word in words:
        relation = read_noun(text[word.start :], world)
        if relation is not None:
            return word.start, relation
    return None


def read_noun(text: str, world: WorldWords) -> str | None:
    """The only relation that a noun names; None for other texts."""
    words = [word.folded for word in list_words(text)]
    spans = find_relations(words, world)
    if len(spans) != 1 or spans[0][:2] != (0, len(words)) or len(spans[0][2]) != 1:
        return None
    (relation,) = spans[0][2]
    return relation


def _skip_determiner(question: str, start: int) -> int:
    match = _DETERMINER.search(question[:start])
    return match.start() if match else start


def _unite_conditions(question: str, phrases: Sequence[Phrase], world: WorldWords) -> tuple[Phrase, ...]:
    """The phrases with one of "whose R is X and whose S is Y" in place of two."""
    united: list[Phrase] = []
    for phrase in phrases:
        last = united[-1] if united else None
        match = _AND_WHOSE.search(question[: phrase.start]) if not phrase.relations and phrase.holds is None else None
        relation = read_noun(match["relation"], world) if match else None
        if last is not None and last.holds is not None and match and relation and match.start() == last.end:
            conditions = (*last.conditions, (relation, phrase.name))
            united[-1] = last._replace(end=phrase.end, text=question[last.start : phrase.end], conditions=conditions)
        elif last is not None and last.relations and _is_shared(question, last, phrase):
            united.append(phrase._replace(relations=last.relations))
        else:
            united.append(phrase)
    return tuple(united)


def _is_shared(question: str, phrase: Phrase, other: Phrase) -> bool:
    """Whether a noun in the plural belongs to two names: the residences of X and Y."""
    nouns = list_words(question[phrase.start : phrase.end].partition(" of ")[0])
    is_plural = len(phrase.relations) == 1 and bool(nouns) and nouns[-1].folded != nouns[-1].stem
    is_bare = not other.relations and other.holds is None
    return is_plural and is_bare and question[phrase.end : other.start] == " and "
