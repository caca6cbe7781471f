"""Classify the words of a question: its kind, its entities, and the words that mention relations."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tools.text_to_sparql.lexicon import GraphLexicon, GraphPath
from worlds.lexicon.english import POSSESSIVE_SUFFIX, Comparison, QuestionWord, load_lexicon, split_words
from worlds.source import Entity

MIN_SIMILARITY = 0.5
_BRACKETED_SUFFIX = re.compile(r"\s*\([^)]*\)\s*$")
_FUNCTION_WORDS = frozenset(
    [
        "the",
        "a",
        "an",
        "of",
        "and",
        "or",
        "in",
        "on",
        "at",
        "to",
        "for",
        "by",
        "with",
        "from",
        "de",
        "la",
        "von",
        "van",
        "der",
        "den",
        "du",
        "le",
    ]
)


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
    for search in (_match_similar, _match_capitalised):
        for entity in entities:
            if all(anchor.entity is not entity for anchor in anchors):
                anchors.extend(search(words, entity, anchors))
    named = [anchor.entity for anchor in anchors]
    return sorted(anchors, key=lambda anchor: anchor.start), [e for e in entities if e not in named]


def entity_names(entity: Entity) -> list[tuple[str, ...]]:
    """Everything that an entity is called, as folded words; also without what a title adds in brackets."""
    texts = [text for text in (entity.title, entity.label, *entity.aliases) if text]
    texts += [_BRACKETED_SUFFIX.sub("", text) for text in texts]
    return [name for name in dict.fromkeys(_fold_words(text) for text in texts) if name]


def _fold_words(text: str) -> tuple[str, ...]:
    return tuple(word.folded for word in split_words(text))


def _is_free(start: int, end: int, anchors: Sequence[Anchor]) -> bool:
    return all(end <= anchor.start or anchor.end <= start for anchor in anchors)


def _match_exact(
    words: Sequence[QuestionWord], name: tuple[str, ...], entity: Entity, anchors: Sequence[Anchor]
) -> Iterator[Anchor]:
    # Marks inside a name are compared too, but one that only one side has is forgiven by comparing without any.
    for spelling in (name, tuple(part for part in name if part.isalnum() or part == POSSESSIVE_SUFFIX)):
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
        content_words = set(name) - _FUNCTION_WORDS
        for start, end in _iterate_runs(words, anchors, len(name) + 2):
            run = [word.folded for word in words[start:end]]
            shared = len(content_words.intersection(run))
            likeness = 2 * shared / (len(content_words) + len(set(run) - _FUNCTION_WORDS)) if shared else 0.0
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
    """The longest run of capitalised words, the question's first word aside: a name that the graph does not know."""
    best = (0, 0)
    for start, end in _iterate_runs(words, anchors, 20):
        run = words[start:end]
        ends = run[0].capitalized and run[-1].capitalized and start > 0
        between = all(word.capitalized or word.folded in _FUNCTION_WORDS or not word.folded.isalpha() for word in run)
        if ends and between and all(w.folded != POSSESSIVE_SUFFIX for w in run) and end - start > best[1] - best[0]:
            best = (start, end)
    if best[1]:
        yield Anchor(entity, best[0], _extend_over_brackets(words, best[1]))


AUXILIARY_VERBS = frozenset(["is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can"])
DETERMINERS = frozenset(["the", "a", "an", "both", "his", "her", "its", "their", "all", "of"])
RELATIVE_PRONOUNS = frozenset(["who", "that", "which"])
FUNCTION_WORDS = (
    AUXILIARY_VERBS
    | DETERMINERS
    | RELATIVE_PRONOUNS
    | frozenset(
        [
            "what",
            "whom",
            "whose",
            "where",
            "when",
            "why",
            "how",
            "many",
            "much",
            "and",
            "or",
            "this",
            "it",
            "be",
            "been",
            "by",
            "in",
            "on",
            "at",
            "to",
            "for",
            "with",
            "from",
            "as",
            "same",
            "share",
            "one",
            "ones",
            "each",
            "other",
            "than",
            "out",
            "name",
            "please",
            "tell",
            "me",
            "give",
            "list",
            "about",
            "there",
            "any",
            "person",
            "man",
            "woman",
            "thing",
            "someone",
            "they",
            "he",
            "she",
            ",",
            "?",
            ";",
            ":",
            "(",
            ")",
            '"',
            "'s",
            "number",
        ]
    )
)
PLACE_READING_COST = 1.0
_SAMENESS_WORDS = frozenset(["same", "share", "shared", "common"])
_QUESTION_WORD_PHRASES = {
    "where": (
        "where",
        "which place",
        "what place",
        "which city",
        "what city",
        "which town",
        "what town",
        "which country",
        "what country",
    ),
    "when": ("when", "what year", "which year", "what date", "which date", "what day"),
    "why": ("why", "how", "what cause", "of what"),
    "who": ("who", "whom"),
}


@dataclass(frozen=True, slots=True)
class RelationMention:
    """The words from `start` up to `end` that speak of a relation, and what they may mean; none for an unknown word."""

    start: int
    end: int
    paths: tuple[GraphPath, ...]
    text: str
    invertible: bool = False
    """It may lead to what has the entity as its value ("the films that E directed")."""


class QuestionScan:
    """One question over one graph, its words sorted."""

    def __init__(self, text: str, anchors: Sequence[Anchor], lexicon: GraphLexicon) -> None:
        self.text = text
        self.words: Sequence[QuestionWord] = split_words(text)
        self.anchors = list(anchors)
        self.lexicon = lexicon
        self.comparison, self._comparison_places = self._find_comparison()
        self.form = self._classify_form()
        if self.form not in ("compare", "exceeds"):
            # "first cousin" compares nothing.
            self.comparison, self._comparison_places = None, frozenset()
        self._question_word = "when" if self.comparison else self._find_question_word()
        self.mentions = list(self._find_mentions())

    def words_between(self, start: int, end: int) -> list[str]:
        """The words from `start` up to `end`, folded."""
        return [word.folded for word in self.words[max(0, start) : end]]

    def in_entity_name(self, place: int) -> bool:
        """Whether the word is part of an entity's name."""
        return any(anchor.start <= place < anchor.end for anchor in self.anchors)

    def mention_starting_at(self, start: int) -> RelationMention | None:
        """The mention that starts there: a relation, or an unknown word in the place of one."""
        return next((m for m in self.mentions if m.start == start), None) or self._unknown_mention(start)

    def mention_ending_at(self, end: int) -> RelationMention | None:
        """What ends there, likewise."""
        return next((m for m in self.mentions if m.end == end), None) or self._unknown_mention(end - 1)

    def reread_mention(self, mention: RelationMention, question_word: str) -> RelationMention:
        """The mention as it would be understood after another question word."""
        key = tuple(word.stem for word in self.words[mention.start : mention.end])
        whole = tuple(self.words_between(mention.start, mention.end))
        paths = self.lexicon.find_paths(whole, question_word) or self.lexicon.find_paths(key, question_word)
        return RelationMention(mention.start, mention.end, paths, mention.text)

    def find_unexplained_words(self, mentions: Sequence[RelationMention], values: Sequence[range]) -> str:
        """The words with a content that no entity, none of these relations and no value accounts for."""
        spans = (*values, *(range(mention.start, mention.end) for mention in mentions if mention.paths))
        explained = {place for span in spans for place in span} | self._comparison_places
        left = [
            word.folded
            for place, word in enumerate(self.words)
            if place not in explained and not self.in_entity_name(place) and word.folded not in FUNCTION_WORDS
        ]
        return " ".join(left)

    def _unknown_mention(self, place: int) -> RelationMention | None:
        if (
            0 <= place < len(self.words)
            and not self.in_entity_name(place)
            and self.words[place].folded not in FUNCTION_WORDS
        ):
            return RelationMention(place, place + 1, (), self.words[place].folded)
        return None

    def _words_outside_names(self) -> list[str]:
        return [word.folded for place, word in enumerate(self.words) if not self.in_entity_name(place)]

    def _find_comparison(self) -> tuple[Comparison | None, frozenset[int]]:
        table = load_lexicon().comparisons
        for length in range(max(map(len, table)), 0, -1):
            for start in range(len(self.words) - length + 1):
                places = range(start, start + length)
                key = tuple(self.words[place].folded for place in places)
                if key in table and not any(map(self.in_entity_name, places)):
                    return table[key], frozenset(places)
        return None, frozenset()

    def _classify_form(self) -> str:
        free = self._words_outside_names()
        pairs = set(pairwise(free))
        if pairs & {("how", "many"), ("number", "of")}:
            return "count"
        if len(self.anchors) < 2:
            return "select"
        if _SAMENESS_WORDS.intersection(free):
            return "same"
        if self.comparison:
            return "exceeds" if free[0] in AUXILIARY_VERBS and "or" not in free else "compare"
        return "whether" if free and free[0] in AUXILIARY_VERBS else "select"

    def _find_question_word(self) -> str | None:
        text = f" {' '.join(self._words_outside_names())} "
        return next(
            (
                question_word
                for question_word, signs in _QUESTION_WORD_PHRASES.items()
                if any(f" {sign} " in text for sign in signs)
            ),
            None,
        )

    def _find_mentions(self) -> Iterator[RelationMention]:
        place = 0
        while place < len(self.words):
            mention = self._find_mention_at(place)
            if mention:
                yield mention
            place = mention.end if mention else place + 1

    def _find_mention_at(self, start: int) -> RelationMention | None:
        """The longest phrase from there that is a relation of the graph, else one that English knows for a relation."""
        missing = None
        for end in range(min(len(self.words), start + self.lexicon.max_phrase_length), start, -1):
            whole = tuple(self.words_between(start, end))
            occupied = any(
                self.in_entity_name(place) or place in self._comparison_places for place in range(start, end)
            )
            if occupied or self._is_auxiliary_do(whole, end):
                continue
            for form in dict.fromkeys((whole, tuple(word.stem for word in self.words[start:end]))):
                if paths := self._find_paths(form):
                    return RelationMention(start, end, paths, " ".join(whole))
                if missing is None and form in load_lexicon().words:
                    named = load_lexicon().words[form].paths_for(self._question_word)[0]
                    relation = named.segments[0].relation if len(named.segments) == 1 else None
                    missing = RelationMention(start, end, (), relation or " ".join(whole))
        return missing

    def _find_paths(self, form: tuple[str, ...]) -> tuple[GraphPath, ...]:
        """What the words may mean; without a question word a verb may also ask for a place ("was Ada born in ...")."""
        paths = self.lexicon.find_paths(form, self._question_word)
        if self._question_word not in (None, "who"):
            return paths
        hops = {path.hops for path in paths}
        places = (path for path in self.lexicon.find_paths(form, "where") if path.hops not in hops)
        return (*paths, *(replace(path, cost=path.cost + PLACE_READING_COST) for path in places))

    def _is_auxiliary_do(self, form: tuple[str, ...], end: int) -> bool:
        """ "do" is a verb of its own only at the end ("what does Ada do?")."""
        return form == ("do",) and any(word.folded.isalpha() for word in self.words[end:])
