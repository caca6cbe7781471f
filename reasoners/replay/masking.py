"""Finds the names, dates and numbers of a question by what the world knows."""

from dataclasses import dataclass

from reasoners.provenance import DATE_PATTERN
from reasoners.replay.values import (
    FUNCTION_WORDS,
    UNREMARKABLE_WORDS,
    find_similar,
    stem,
    tokenize,
)
from tools.tool import EncodeFunction
from worlds import terms
from worlds.embedded.graph import EmbeddedGraph
from worlds.embedded.text import EmbeddedText
from worlds.source import World
from worlds.text_normalization import normalize_name

Words = list[tuple[str, int, int]]
MASKS = "XYZUVW"
MAX_NAME_WORDS = 14
"""The most words of a name that is looked up in the world."""
MAX_COMPARED_LABELS = 400
"""In a graph with more relations, a word names a relation only by its exact label."""
PROBED_ARTICLES, MIN_STATED_SHARE = 40, 0.5
"""The articles that are compared with the graph, and the share of its values that they state at least."""
DESCRIBING_SENTENCES = 2
"""The first sentences of an article, which say what kind of thing it is about."""


@dataclass(frozen=True, slots=True)
class MaskedQuestion:
    """A question whose names, dates and numbers are masked."""

    text: str
    mentions: tuple[tuple[int, int], ...]
    """The spans of the names, dates and numbers."""

    @property
    def fillers(self) -> list[str]:
        """The texts of the mentions."""
        return [self.text[start:end] for start, end in self.mentions]

    @property
    def masked(self) -> str:
        """The question with letters in place of the mentions."""
        pieces, end = [], 0
        for index, (start, stop) in enumerate(self.mentions):
            pieces += [self.text[end:start], MASKS[index % len(MASKS)]]
            end = stop
        return "".join([*pieces, self.text[end:]])

    @property
    def words(self) -> list[tuple[str, int, int]]:
        """The stems of the words outside mentions, with their spans; each mention is the word *."""
        starts = {start for start, _ in self.mentions}
        tokens = [
            (stem(word), start, end)
            for word, start, end in tokenize(self.text)
            if not any(begin < end and start < stop for begin, stop in self.mentions)
        ]
        return sorted(
            [*tokens, *(("*", start, end) for start, end in self.mentions if start in starts)], key=lambda t: t[1]
        )


def mask_question(question: str, world: "WorldWords", vocabulary: frozenset[str]) -> MaskedQuestion:
    """Find the mentions: dates, numbers, quotations and the longest names that the world knows, whatever their case.

    A single word of the vocabulary, which demonstrations use in their questions, is no name.
    """
    spans = [match.span() for match in DATE_PATTERN.finditer(question)]
    tokens = tokenize(question)
    has_names = any(question[start].isupper() for _, start, _ in tokens[1:])
    place = 0
    while place < len(tokens):
        if any(start <= tokens[place][1] < end for start, end in spans):
            place += 1
            continue
        last = _find_name(question, tokens[place:], world, vocabulary, has_names=has_names)
        if last:
            spans.append((tokens[place][1], _close_bracket(question, tokens[place][1], tokens[place + last - 1][2])))
        elif tokens[place][0].isdecimal():
            spans.append(tokens[place][1:])
        place += last or 1
    return MaskedQuestion(question, tuple(sorted(spans)))


def _find_name(
    question: str, tokens: Words, world: "WorldWords", vocabulary: frozenset[str], *, has_names: bool
) -> int:
    first = tokens[0]
    is_capital = question[first[1]].isupper() or first[0].isdecimal()
    if world.is_searchable:
        longest = MAX_NAME_WORDS if is_capital or not has_names else 3
        for count in range(min(longest, len(tokens)), 0, -1):
            word = tokens[count - 1]
            text = question[first[1] : _close_bracket(question, first[1], word[2])]
            if count == 1 and (stem(first[0]) in vocabulary or first[0] in UNREMARKABLE_WORDS):
                return 0
            if count == 1 and not is_capital and len(tokens) > 1 and tokens[1][0] not in FUNCTION_WORDS:
                # It belongs to the noun after it: male cousins.
                return 0
            if word[0] == "s" and question[word[1] - 1] in "'’":
                continue
            if world.knows(text):
                return count
    # A name that the world does not know, or cannot be asked for without a step.
    if not is_capital or first[0].isdecimal() or (first is tokens[0] and first[1] == 0):
        return 0
    count = 0
    for index, (_, start, _) in enumerate(tokens):
        if not question[start].isupper() and not question[start].isdecimal():
            break
        count = index + 1
    return count


def _close_bracket(question: str, start: int, end: int) -> int:
    text = question[start:end]
    return end + 1 if text.count("(") > text.count(")") and question[end : end + 1] == ")" else end


class WorldWords:
    """The names and relations of a world; one that is not embedded is asked only by steps."""

    def __init__(self, world: World, encode: EncodeFunction) -> None:
        self._text = world.text if isinstance(world.text, EmbeddedText) else None
        self._graph = world.graph if isinstance(world.graph, EmbeddedGraph) else None
        self._encode = encode
        self._labels: dict[str, str] = {}
        for relation in self._graph.vocabulary() if self._graph else ():
            self._labels |= {normalize_name(name): relation.label for name in (*relation.aliases, relation.label)}

    @property
    def is_searchable(self) -> bool:
        """Whether names can be looked up without a step."""
        return self._text is not None or self._graph is not None

    def knows(self, name: str) -> bool:
        """Whether an article or an entity has this name; relations are no names."""
        if normalize_name(name) in self._labels:
            return False
        return bool((self._text and self._text.has_title(name)) or (self._graph and self._graph.has_name(name)))

    def find_relation(self, phrase: str) -> str | None:
        """The label of the relation with this name, or with one that clearly resembles it; None if there is none."""
        exact = self._labels.get(normalize_name(phrase))
        labels = sorted(set(self._labels.values()))
        if exact is not None or len(labels) > MAX_COMPARED_LABELS or not phrase.islower():
            return exact
        place = find_similar(phrase, labels, self._encode)
        return None if place is None else labels[place]

    def spreads_facts(self) -> bool:
        """Whether articles lack facts that the graph has: then lists of one source may be incomplete."""
        if self._text is None or self._graph is None:
            return False
        stated = total = 0
        for article in self._text.list_articles(PROBED_ARTICLES):
            if article.entity is None:
                continue
            rows = self._graph.query(
                f"SELECT DISTINCT ?value WHERE {{ {terms.format_node(article.entity)} ?relation ?value }}"
            ).rows
            ids = [cell.value for (cell,) in rows if cell is not None and cell.kind == "entity"]
            labels = [entity.label for entity in self._graph.entities(ids)]
            total += len(labels)
            stated += sum(label.casefold() in article.text.casefold() for label in labels)
        return stated < MIN_STATED_SHARE * total

    def describes(self, name: str, word: str) -> bool:
        """Whether the first sentences of the article about a name have this word: they say what kind of thing it is."""
        if self._text is None or not self._text.has_title(name):
            return False
        sentences = self._text.article(name).sentences[:DESCRIBING_SENTENCES]
        return any(stem(token) == word for sentence in sentences for token, _, _ in tokenize(sentence))
