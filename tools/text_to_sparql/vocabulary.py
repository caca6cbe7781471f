"""What of a graph a question speaks of: the entities where it names them, and the relations that it may need.

These are all relations of a small graph; of a large one those of its entities and its words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property
from itertools import chain

from showhow.tools.text_to_sparql.lexicon import GENDER_RELATION
from showhow.worlds.embedded.text import strip_parenthesis
from showhow.worlds.lexicon import english
from showhow.worlds.lexicon.english import (
    Comparison,
    PathExpression,
    PhraseKey,
    QuestionWord,
    load_lexicon,
    phrase_key,
    split_words,
)
from showhow.worlds.source import Entity, GraphSource, NotFound, Relation, Relations, RelationSearch

MIN_SIMILARITY = 0.5
MIN_SPELLING = 0.75
"""Likeness of letters from which on a name, or a question word, is only spelt differently."""
_NAME_PARTICLES = frozenset("the a an of and or in on at to for by with from de la von van der den du le".split())


ASKING = (["which"], ["what"])
_RELATIVE_ADVERBS = english.RELATIVE_PRONOUNS | english.VALUE_QUESTION_WORDS
_MAX_APPOSITION_WORDS = 2
_BEFORE_APPOSITION = (
    english.DETERMINERS | english.PREPOSITIONS | english.CONJUNCTIONS | english.COPULAS | {"between"}
) - {"to"}
QUESTION_WORDS = frozenset(["who", "whom", "whose", "which", "what", "where", "when", "why", "how", "whether"])


@dataclass(frozen=True, slots=True)
class Anchor:
    """An entity and the words of the question, from `start` up to `end`, that name it."""

    entity: Entity
    start: int
    end: int


def find_anchors(words: Sequence[QuestionWord], entities: Sequence[Entity]) -> tuple[list[Anchor], list[Entity]]:
    """The anchors in reading order, and the entities that the question does not name.

    Exact names win over similar ones, long ones over short ones, so that "Ada Reed" is not found in "Ada Reed Hall".
    """
    anchors: list[Anchor] = []
    names = [(name, entity) for entity in entities for name in entity_names(entity)]
    for name, entity in sorted(names, key=lambda pair: -len(pair[0])):
        if all(anchor.entity is not entity for anchor in anchors):
            anchors.extend(_match_exact(words, name, entity, anchors))
    for search in (_match_similar, _match_capitalised, _match_pronoun):
        for entity in entities:
            if all(anchor.entity is not entity for anchor in anchors):
                anchors.extend(search(words, entity, anchors))
    named = [anchor.entity for anchor in anchors]
    return sorted(anchors, key=lambda anchor: anchor.start), [e for e in entities if e not in named]


def entity_names(entity: Entity) -> list[tuple[str, ...]]:
    """Everything that an entity is called, as folded words; also without what a title adds in brackets."""
    texts = [text for text in (entity.title, entity.label, *entity.aliases) if text]
    texts += [strip_parenthesis(text) for text in texts]
    return [name for name in dict.fromkeys(_fold_words(text) for text in texts) if name]


def _fold_words(text: str) -> tuple[str, ...]:
    return tuple(word.folded for word in split_words(text))


def _is_free(start: int, end: int, anchors: Sequence[Anchor]) -> bool:
    return all(end <= anchor.start or anchor.end <= start for anchor in anchors)


def _match_exact(
    words: Sequence[QuestionWord], name: tuple[str, ...], entity: Entity, anchors: Sequence[Anchor]
) -> Iterator[Anchor]:
    # Marks inside a name are compared too, but one that only one side has is forgiven by comparing without any.
    for spelling in (name, tuple(part for part in name if part.isalnum() or part == english.POSSESSIVE_SUFFIX)):
        for start in range(len(words) - len(spelling) + 1):
            end = start + len(spelling)
            if spelling and _is_free(start, end, anchors) and tuple(w.folded for w in words[start:end]) == spelling:
                yield Anchor(entity, start, _extend_over_brackets(words, end))
                return


def _extend_over_brackets(words: Sequence[QuestionWord], end: int) -> int:
    """The end of a name with the "(film)" or "(1890-1960)" that may follow it."""
    if end < len(words) and words[end].folded == "(":
        for place in range(end, len(words)):
            if words[place].folded == ")":
                return place + 1
    return end


def _match_similar(words: Sequence[QuestionWord], entity: Entity, anchors: Sequence[Anchor]) -> Iterator[Anchor]:
    """The run of words that shares most with one of the names: "Ada Reed" for "Ada Mary Reed"."""
    best, place = MIN_SIMILARITY, None
    for name in entity_names(entity):
        content_words = set(name) - _NAME_PARTICLES
        for start, end in _iterate_runs(words, anchors, len(name) + 2):
            run = [word.folded for word in words[start:end]]
            shared = len(content_words.intersection(run))
            likeness = 2 * shared / (len(content_words) + len(set(run) - _NAME_PARTICLES)) if shared else 0.0
            if run[0] in content_words and run[-1] in content_words and likeness > best:
                best, place = likeness, (start, end)
    if place:
        yield Anchor(entity, place[0], _extend_over_brackets(words, place[1]))


def _iterate_runs(words: Sequence[QuestionWord], anchors: Sequence[Anchor], longest: int) -> Iterator[tuple[int, int]]:
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + longest) + 1):
            if _is_free(start, end, anchors):
                yield start, end


def _match_capitalised(words: Sequence[QuestionWord], entity: Entity, anchors: Sequence[Anchor]) -> Iterator[Anchor]:
    """The longest run of capitalised words, the question's first word aside, that is spelled nearly as a name."""
    best = (0, 0)
    for start, end in _iterate_runs(words, anchors, 20):
        run = words[start:end]
        ends = run[0].capitalized and run[-1].capitalized and start > 0
        between = all(word.capitalized or word.folded in _NAME_PARTICLES or not word.folded.isalpha() for word in run)
        plain = between and all(w.folded != english.POSSESSIVE_SUFFIX for w in run)
        if ends and plain and end - start > best[1] - best[0] and _is_spelled_alike(run, entity):
            best = (start, end)
    if best[1]:
        yield Anchor(entity, best[0], _extend_over_brackets(words, best[1]))


def _is_spelled_alike(run: Sequence[QuestionWord], entity: Entity) -> bool:
    text = " ".join(word.folded for word in run)
    return any(SequenceMatcher(None, text, " ".join(name)).ratio() >= MIN_SPELLING for name in entity_names(entity))


def _match_pronoun(words: Sequence[QuestionWord], entity: Entity, anchors: Sequence[Anchor]) -> Iterator[Anchor]:
    """The first pronoun, where the question names nothing that it may stand for."""
    places = (place for place, word in enumerate(words) if word.folded in english.THIRD_PERSON_PRONOUNS)
    if not anchors and (place := next(places, None)) is not None:
        yield Anchor(entity, place, place + 1)


def _spell_question_word(words: list[QuestionWord]) -> list[QuestionWord]:
    """The words, where none asks, with the one of the first two that is nearly a question word spelt as it: wich."""
    folded = [word.folded for word in words]
    if QUESTION_WORDS.intersection(folded) or english.AUXILIARY_VERBS.intersection(folded[:1]):
        return words
    for place, word in enumerate(folded[:2]):
        if word not in english.FUNCTION_WORDS and (nearest := get_close_matches(word, QUESTION_WORDS, 1, MIN_SPELLING)):
            words[place] = replace(words[place], folded=nearest[0], stem=nearest[0])
            break
    return words


class QuestionWords:
    """The words of a question, by place, and where they name entities."""

    def __init__(self, text: str, anchors: Sequence[Anchor]) -> None:
        self.text = text
        self.words: Sequence[QuestionWord] = _spell_question_word(split_words(text))
        self.anchors = list(anchors)
        self._folded = [word.folded for word in self.words]
        self._named = frozenset(place for anchor in anchors for place in range(anchor.start, anchor.end))
        self.comparison, self.comparing_places = self._find_comparison()

    def words_between(self, start: int, end: int) -> list[str]:
        """The words from `start` up to `end`, folded."""
        return self._folded[max(0, start) : end]

    def skip_words(self, place: int, skipped: frozenset[str], step: int = 1) -> int:
        """Where these words end that begin there; with a step of -1, where those begin that end there."""
        while skipped.intersection(self.words_between(place - (step < 0), place + (step > 0))):
            place += step
        return place

    def in_entity_name(self, place: int) -> bool:
        """Whether the word is part of an entity's name."""
        return place in self._named

    def starts_question(self, place: int) -> bool:
        """Whether another question begins there: who directed E, and when did he die."""
        if self.in_entity_name(place) or not QUESTION_WORDS.intersection(self.words_between(place, place + 1)):
            return False
        earlier = (p for p in range(place) if not self.in_entity_name(p) and self.words[p].folded in QUESTION_WORDS)
        return not self.ends_at(place + 1) or next(earlier, None) is not None

    def ends_at(self, place: int) -> bool:
        """Whether no word follows from there on."""
        return self.words_between(place, len(self.words)) in ([], ["?"])

    def opens_request(self, place: int) -> bool:
        """Whether the word may stand before what is asked for: could you tell me."""
        if self.in_entity_name(place):
            return self.words[0].folded not in english.AUXILIARY_VERBS
        if self.words[place].folded in english.MODAL_VERBS:
            return bool(english.SPEAKERS.intersection(self.words_between(place - 1, place + 2)))
        return self.words[place].folded in english.PLAIN_WORDS | english.REQUEST_WORDS | english.CHOICE_WORDS

    def words_outside_names(self) -> list[str]:
        """The words that are part of no name, folded."""
        return [word.folded for place, word in enumerate(self.words) if not self.in_entity_name(place)]

    def asks_whether(self, free: Sequence[str]) -> bool:
        """Whether the question is one for yes or no, as asking whether two have the same value is."""
        if english.AUXILIARY_VERBS.intersection(free[:1]) and not english.SPEAKERS.intersection(free[1:2]):
            return True
        return "whether" in free

    def selects_gender(self, place: int) -> bool:
        """Whether the noun there asks for those of a gender, and does not only say who is spoken of: which woman."""
        word = self.words[place]
        if word.stem not in english.GENDERED_NOUNS or self.in_entity_name(place):
            return False
        # The man who fathered E is one, whoever that is; the women born in E are some of those.
        before = self.words_between(place - 1, place)
        return word.stem != word.folded or before in (*ASKING, ["many"], ["a"], ["are"], ["were"])

    def find_asking_who(self) -> int | None:
        """The place of the "who" that the question asks with (by whom, tell me who), which is no relative pronoun."""
        for place, word in enumerate(self._folded):
            if word in ("who", "whom") and not self.in_entity_name(place):
                return place
            if (
                not self.in_entity_name(place)
                and word not in english.REQUEST_WORDS | english.PREPOSITIONS | english.AUXILIARY_VERBS
            ):
                return None
        return None

    @cached_property
    def apposed_places(self) -> set[int]:
        """The nouns right before a name that only say what it names: "of the film E", "both villages, E and F"."""
        places: set[int] = set()
        for anchor in self.anchors:
            end = anchor.start
            while self.words_between(end - 1, end) in ([","], [":"], ['"']):
                end -= 1
            start = end
            while start > 0 and end - start < _MAX_APPOSITION_WORDS and self._may_be_apposed(start - 1):
                start -= 1
            before = self.words_between(start - 1, start)
            if start < end and before and before[0] in _BEFORE_APPOSITION:
                places.update(range(start, end))
        return places

    def _may_be_apposed(self, place: int) -> bool:
        word = self.words[place].folded
        return (
            word not in english.FUNCTION_WORDS | english.RESTRICTIONS
            and word.isalpha()
            and not self.in_entity_name(place)
            and place not in self.comparing_places
            and (word,) not in load_lexicon().comparisons
            and not (
                (word,) in load_lexicon().words
                and english.CONJUNCTIONS.intersection(self.words_between(place - 1, place))
            )
        )

    def _find_comparison(self) -> tuple[Comparison | None, frozenset[int]]:
        table = load_lexicon().comparisons
        for length in range(max(map(len, table)), 0, -1):
            for start in range(len(self.words) - length + 1):
                places = range(start, start + length)
                key = tuple(self.words[place].folded for place in places)
                if key in table and not any(map(self.in_entity_name, places)):
                    return table[key], frozenset(places)
        return None, frozenset()

    def kind_places(self, question_word: str) -> set[int]:
        """The nouns that stand for a question word: which town, the town in which, the same town."""
        return {
            place
            for place, word in enumerate(self.words)
            if word.stem in load_lexicon().kinds.get(question_word, ())
            and not self.in_entity_name(place)
            and (
                self.words_between(place - 1, place) in ASKING
                or (
                    question_word != "which"
                    and word.stem not in english.PARTS_OF_DATES
                    and self.words_between(place - 1, place) == ["same"]
                )
                or (self.words_between(place + 1, place + 2) == ["of"] and self._is_asked(place))
                or _RELATIVE_ADVERBS.intersection(self.words_between(place + 1, place + 2))
                or (
                    english.PREPOSITIONS.intersection(self.words_between(place + 1, place + 2))
                    and self.words_between(place + 2, place + 3) == ["which"]
                )
            )
        }

    def _is_asked(self, place: int) -> bool:
        """Whether the noun there follows "what is the" or "which is the"."""
        before = self.words_between(place - 3, place)
        return before[-1:] == ["the"] and before[:1] in ASKING and before[1] in english.COPULAS

    def find_role_word(self, start: int) -> int | None:
        """Where "as" stands before what starts there, which says as what somebody is had: E as a father, E by trade."""
        start = self.skip_words(start, english.DETERMINERS, -1)
        return start - 1 if self.words_between(start - 1, start) in (["as"], ["for"], ["by"]) else None

    def repeats_auxiliary(self, place: int) -> bool:
        """Whether a question has its verb a second time, as none does: how many sons do the friends does E have."""
        verbs = [p for p in range(place + 1) if self.words[p].folded in english.SUPPORTS and not self.in_entity_name(p)]
        return len(verbs) > 1 and verbs[-1] == place and not self.ends_at(place + 1)

    def joins_names(self, place: int) -> bool:
        """Whether only "and" stands before the name in that place of all names: both E and F, E as well as F."""
        start, end = self.anchors[place - 1].end, self.anchors[place].start
        between = {
            self.words[p].folded for p in range(start, end) if p not in self.apposed_places
        } - english.DETERMINERS
        return between in ({"and"}, {"as", "well"})

    def is_superlative(self) -> bool:
        """Whether one of its relatives is asked for by their order: the eldest son of E, which child was born last."""
        end = max(self.comparing_places, default=-1)
        word = self.words[end].folded if self.anchors and end >= 0 else ""
        return word.endswith("est") or (word in ("first", "last") and self.ends_at(end + 1))


_MAX_PHRASE_WORDS = 6
_MAX_NAMES = 200
_MAX_SEARCHED_PHRASES = 4
"""Phrases of the question for which the graph's own search is asked."""
_FINAL_WORDS = frozenset(["by", "in", "of", "at", "on", "to", "for", "from", "with"])
"""Function words in which the name of a relation may end: directed by, member of."""


def load_vocabulary(graph: GraphSource, question: str, entities: Sequence[Entity]) -> tuple[Relation, ...]:
    """The relations of the graph that the question may need, without duplicates."""
    if not isinstance(graph, RelationSearch) or not graph.has_large_vocabulary:
        return graph.vocabulary()
    relations_by_entity = [fetch_relations(graph, entity) for entity in entities]
    own = chain.from_iterable((*relations.outgoing, *relations.incoming) for relations in relations_by_entity)
    words = split_words(question)
    anchors, _ = find_anchors(words, entities)
    free = [all(not anchor.start <= place < anchor.end for anchor in anchors) for place in range(len(words))]
    spans = [words[start:end] for start, end in _iterate_spans(words, free)]
    names = dict.fromkeys(chain(_span_names(question, spans), _lexicon_names(spans), _relation_names(GENDER_RELATION)))
    phrases = [question[run[0].start : run[-1].end] for run in _content_runs(words, free)]
    named = graph.find_relations(list(names)[:_MAX_NAMES], phrases[:_MAX_SEARCHED_PHRASES])
    return tuple(dict.fromkeys((*own, *named)))


def fetch_relations(graph: GraphSource, entity: Entity) -> Relations:
    """The entity's relations; none if the graph knows nothing but its name."""
    try:
        return graph.relations(entity.id)
    except NotFound:
        return Relations()


def _iterate_spans(words: Sequence[QuestionWord], free: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The spans that may be a relation's name, outside the names of entities."""
    for start, first in enumerate(words):
        if not free[start] or first.folded in english.PLAIN_WORDS:
            continue
        for end in range(start + 1, min(len(words), start + _MAX_PHRASE_WORDS) + 1):
            last = words[end - 1].folded
            if not free[end - 1] or not last[:1].isalnum():
                break
            if last not in english.PLAIN_WORDS or last in _FINAL_WORDS:
                yield start, end


def _content_runs(words: Sequence[QuestionWord], free: Sequence[bool]) -> Iterator[list[QuestionWord]]:
    run: list[QuestionWord] = []
    for word, is_free in zip(words, free, strict=True):
        if is_free and word.folded not in english.PLAIN_WORDS and word.folded[:1].isalnum():
            run.append(word)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _span_names(question: str, spans: Sequence[Sequence[QuestionWord]]) -> Iterator[str]:
    for span in spans:
        yield question[span[0].start : span[-1].end]
        yield " ".join(word.stem for word in span)
        yield from load_lexicon().other_names(tuple(word.stem for word in span))


def _lexicon_names(spans: Sequence[Sequence[QuestionWord]]) -> Iterator[str]:
    """The relations that English says with these words: born is place of birth, and grandfather is father."""
    lexicon = load_lexicon()
    seen: set[PhraseKey] = set()
    for span in spans:
        for key in dict.fromkeys((tuple(word.folded for word in span), tuple(word.stem for word in span))):
            yield from _expand_word(key, seen)
            if comparison := lexicon.comparisons.get(key):
                for measure in (*comparison.measures, *comparison.date_span):
                    yield from _relation_names(measure)
                    yield from _expand_word(phrase_key(measure), seen)


def _expand_word(key: PhraseKey, seen: set[PhraseKey]) -> Iterator[str]:
    entry = load_lexicon().words.get(key)
    if entry is None or key in seen:
        return
    seen.add(key)
    expressions: Iterator[PathExpression] = chain(entry.default_paths, *entry.paths_by_question_word.values())
    for expression in expressions:
        for term in (term for segment in expression.segments for term in segment.terms):
            yield from _relation_names(term.relation)
            yield from _expand_word(phrase_key(term.relation), seen)


def _relation_names(name: str) -> Iterator[str]:
    yield name
    yield from load_lexicon().other_names(phrase_key(name))
