"""The algebra of relations: definitions, inverses, gendered words, and the phrases that state a relation."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from showhow.worlds.lexicon.english import (
    LexicalEntry,
    PathExpression,
    PathSegment,
    RelationTerm,
    load_lexicon,
    phrase_key,
)

_QUESTION_WORDS = ("who", "when", "where")
_MAX_NAME_WORDS = 6
"""Words of the longest name of a relation that is looked for in a text."""


@dataclass(frozen=True, slots=True)
class RelationPath:
    """Relations to follow one after the other: parent, brother for an uncle."""

    steps: tuple[str, ...]
    excludes_start: bool
    """Whether the end must differ from the start."""


@dataclass(frozen=True, slots=True)
class InverseRelation:
    """A relation seen from the other side, and the gender that the inverse requires of the start."""

    relation: str
    gender: str | None = None


@dataclass(frozen=True, slots=True)
class BasicPath:
    """A relation as steps of basic relations (parent, child, sibling, spouse, friend), and the gender of the end."""

    steps: tuple[str, ...]
    gender: str | None = None


def relation_label(relation: str) -> str:
    """Return the relation as English writes it: great-aunt, sister-in-law; KeyError if the lexicon has no such word."""
    key = phrase_key(relation)
    return next(form for form in load_lexicon().words[key].forms if phrase_key(form) == key)


def relation_names(relation: str) -> tuple[str, ...]:
    """Return the label and aliases of a relation in generated graphs: spouse, husband, wife, partner.

    KeyError if the lexicon has no such relation.
    """
    lexicon, key = load_lexicon(), phrase_key(relation)
    if key not in lexicon.relations:
        raise KeyError(relation)
    return (relation, *gendered_words(relation), *lexicon.relations[key].aliases)


def gendered_words(relation: str) -> tuple[str, ...]:
    """Return the words for one gender of a relation, in the order of the lexicon: son and daughter for child."""
    return tuple(_gendered_words().get(relation, ()))


@cache
def basic_path(relation: str) -> BasicPath:
    """Return the relation as steps of basic relations: parent, sibling, male for an uncle.

    KeyError if the lexicon has no such word.
    """
    if phrase_key(relation) not in load_lexicon().words:
        raise KeyError(relation)
    if base := _general_segment(relation):
        return BasicPath((_first_relation(base),), base.gender)
    path = find_relation_path(relation) if is_compound(relation) else None
    if path is None:
        return BasicPath((relation,))
    parts = [basic_path(step) for step in path.steps]
    return BasicPath(tuple(step for part in parts for step in part.steps), parts[-1].gender)


def inverse_step(relation: str) -> str:
    """Return the inverse of a basic relation: child for parent, spouse for spouse; KeyError if there is none."""
    for word in (inverse.relation for inverse in (*inverse_relations(relation), *_symmetric(relation))):
        if phrase_key(word) in load_lexicon().words and basic_path(word).steps == (word,):
            return word
    raise KeyError(relation)


def is_compound(relation: str) -> bool:
    """Whether the relation is only defined by others: cousins by their parents."""
    paths = _paths(relation)
    return bool(paths) and len(paths[0].segments) > 1


def relates_people(relation: str) -> bool:
    """Whether the lexicon knows the relation as one between people."""
    return phrase_key(relation) in load_lexicon().words and bool(
        find_relation_path(relation) or inverse_relations(relation) or symmetric_relation(relation)
    )


@cache
def find_relation_path(relation: str) -> RelationPath | None:
    """Return the definition of a relation by others; for brothers and sisters, by their parents; None if there is none.

    Sources also state brothers and sisters directly.
    """
    for path in _paths(relation):
        first = path.segments[0]
        if len(path.segments) > 1:
            if is_compound(relation) or first.relation == "parent":
                return RelationPath(tuple(map(_first_relation, path.segments)), path.excludes_start)
        elif first.gender and first.relation not in (None, relation) and (base := find_relation_path(first.relation)):
            last = _gendered_word(base.steps[-1], first.gender)
            return RelationPath((*base.steps[:-1], last), base.excludes_start) if last else None
    return None


@cache
def inverse_relations(relation: str) -> tuple[InverseRelation, ...]:
    """Return the relations that state this one from the other side: father and mother for a child."""
    inverses: list[InverseRelation] = []
    for segment in _single_segments(_paths(relation)):
        inverses += [InverseRelation(term.relation, segment.gender) for term in segment.terms if term.inverse]
        if segment.gender and segment.relation:
            inverses += [
                InverseRelation(inverse.relation, segment.gender) for inverse in inverse_relations(segment.relation)
            ]
    others = [inverse for inverse in inverses if inverse.relation != relation or relation in ("brother", "sister")]
    return tuple(dict.fromkeys(others))


@cache
def related_words(relation: str) -> tuple[str, ...]:
    """Return the words by which a relation is stated, from either side: father for parent, mother for son."""
    forwards = [word for segment in _ungendered_segments(relation) for word in _relations(segment, inverse=False)]
    return tuple(dict.fromkeys((*forwards, *(inverse.relation for inverse in inverse_relations(relation)))))


@cache
def narrower_relations(relation: str) -> tuple[str, ...]:
    """Return the relations that are a part of this one: son and daughter of child."""
    parts = [part for segment in _ungendered_segments(relation) for part in _relations(segment, inverse=False)]
    return tuple(part for part in parts if part != relation)


@cache
def inverse_words(relation: str) -> tuple[str, ...]:
    """Return the words for a relation as seen from its end: husband for wife."""
    return tuple(word for segment in _ungendered_segments(relation) for word in _relations(segment, inverse=True))


def symmetric_relation(relation: str) -> InverseRelation | None:
    """Return the symmetric relation that this one is, or is a part of: friend for friend, spouse for wife."""
    for segment in _single_segments(_paths(relation)):
        if RelationTerm(relation, inverse=True) in segment.terms:
            return InverseRelation(relation)
        if segment.gender and segment.relation and (base := symmetric_relation(segment.relation)):
            return InverseRelation(base.relation, segment.gender)
    return None


@cache
def relation_phrases(relation: str, question_word: str) -> frozenset[str]:
    """Return the phrases that state a relation in questions that begin with when, where ...: died, passed away."""
    lexicon = load_lexicon()
    phrases = {relation, *lexicon.other_names(phrase_key(relation))}
    for key, entry in lexicon.words.items():
        if relation in entry.paths_for(question_word)[0].relations:
            phrases.add(" ".join(key))
    return frozenset(phrases)


@cache
def relations_in_question(question: str, question_word: str) -> frozenset[str]:
    """Return the relations that the words of a question lead to: date of death for "When did she die?"."""
    words, entries = phrase_key(question), load_lexicon().words
    longest = max(map(len, entries))
    phrases = {words[start:end] for start in range(len(words)) for end in range(start + 1, start + longest + 1)}
    return frozenset(
        relation for key in phrases if key in entries for relation in entries[key].paths_for(question_word)[0].relations
    )


def named_relations(text: str) -> tuple[str, ...]:
    """Return the relations that a text names, or else those that its words lead to, whatever it asks for."""
    named = dict.fromkeys(" ".join(name) for name in _split_names(text) if name in load_lexicon().relations)
    meant = frozenset().union(*(relations_in_question(text, word) for word in _QUESTION_WORDS))
    return tuple(named) or tuple(sorted(meant))


def find_defined_relation(text: str) -> RelationPath | None:
    """Return the definition of the first relation between people that a text names and others define; else None."""
    names = (" ".join(name) for name in _split_names(text) if name in load_lexicon().words)
    return next(filter(None, map(find_relation_path, names)), None)


def words_for(relation: str) -> tuple[str, ...]:
    """Return the words by which a relation is stated, from either side: child, son, father for a child."""
    return tuple(dict.fromkeys((relation, *related_words(relation))))


def phrases_for(text: str) -> tuple[str, ...]:
    """Return the phrases that state the relations that a text names, each stem once: live, reside, home for lives."""
    relations = named_relations(text)
    phrases = [word for relation in relations for word in words_for(relation)]
    phrases += [
        phrase
        for relation in relations
        for phrase in sorted(frozenset().union(*(relation_phrases(relation, word) for word in _QUESTION_WORDS)))
    ]
    distinct: dict[tuple[str, ...], str] = {}
    for phrase in phrases:
        distinct.setdefault(phrase_key(phrase), phrase)
    return tuple(distinct.values())


def max_relatives(relation: str) -> int | None:
    """Return how many a person can have; None for any number."""
    entry = load_lexicon().words.get(phrase_key(relation))
    return entry.at_most if entry else None


def _split_names(text: str) -> Iterator[tuple[str, ...]]:
    """What may be a name in a text: each run of its words, the long ones first."""
    words = phrase_key(text)
    for start in range(len(words)):
        for end in range(min(len(words), start + _MAX_NAME_WORDS), start, -1):
            yield words[start:end]


def _paths(relation: str) -> tuple[PathExpression, ...]:
    entry: LexicalEntry | None = load_lexicon().words.get(phrase_key(relation))
    return entry.default_paths if entry else ()


def _single_segments(paths: Iterable[PathExpression]) -> Iterator[PathSegment]:
    """The segments of the paths that have only one."""
    return (path.segments[0] for path in paths if len(path.segments) == 1)


def _ungendered_segments(relation: str) -> Iterator[PathSegment]:
    return (segment for segment in _single_segments(_paths(relation)) if not segment.gender)


def _general_segment(relation: str) -> PathSegment | None:
    """The relation without its gender: child, male for a son."""
    return next((segment for segment in _single_segments(_paths(relation)) if segment.gender), None)


@cache
def _gendered_words() -> dict[str, dict[str, str]]:
    """The words for one gender of each relation, with the gender: son, daughter of child."""
    words: dict[str, dict[str, str]] = defaultdict(dict)
    for entry in load_lexicon().words.values():
        for segment in _single_segments(entry.default_paths):
            if segment.gender:
                words[_first_relation(segment)][entry.label] = segment.gender
    return words


def _gendered_word(relation: str, gender: str) -> str | None:
    """The word for a relation of one gender: a son for a child."""
    words = _gendered_words().get(relation, {})
    return next((word for word, stated in words.items() if stated == gender), None)


def _relations(segment: PathSegment, *, inverse: bool) -> Iterator[str]:
    return (term.relation for term in segment.terms if term.inverse == inverse)


def _first_relation(segment: PathSegment) -> str:
    return segment.terms[0].relation


def _symmetric(relation: str) -> Iterator[InverseRelation]:
    if (symmetric := symmetric_relation(relation)) and symmetric.gender is None:
        yield symmetric
