"""Looking an operation up in the articles: the article of each thing that it starts from is read.

Whether sentences that were observed state a fact, by the ways in which articles and web pages state it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evaluation.gold_traces import attempt
from evaluation.gold_traces.attempt import (
    PLACE_RELATIONS,
    GoldAttempt,
    GoldTraceError,
    ValuePairs,
    people_with_fact,
    relation_pairs,
)
from fiction.generator.phrasings import ProseStyle, load_web_phrasings
from fiction.questions.evaluate import FACT_VALUE_KINDS
from fiction.questions.names import ThingCatalog, format_english_date
from fiction.questions.reasoning import ReasoningNode
from fiction.universe.items import PROPERTY_IDS, PROPERTY_LABELS
from fiction.universe.universe import Universe

SENTENCE_KINDS = {
    "parent": ("father", "mother"),
    "child": ("daughter", "son"),
    "sibling": ("sister", "brother"),
    "spouse": ("wife", "husband"),
}
"""The kinds of sentences that state a relation; any other one states its own."""
_CHILD_KINDS = ("child", "daughter", "son")


class ArticleFactReader:
    """Reads facts in articles."""

    def __init__(self, things: ThingCatalog, style: ProseStyle) -> None:
        self._things, self._manner = things, style

    def find_stated_values(
        self, relation: str, head: int, expected: Iterable[int], sentences: Iterable[str]
    ) -> set[int]:
        """Those of the values that the sentences of the head's article state."""
        universe = self._things.universe
        subjects = {universe.names[head], universe.titles[head]}
        observed = {
            name
            for sentence in sentences
            for subject in subjects
            for name in self._listed_values(relation, subject, sentence)
        }
        kind = FACT_VALUE_KINDS.get(relation, "person")
        return {value for value in expected if self._value_text(kind, value) in observed}

    def _value_text(self, kind: str, value: int) -> str:
        return (
            self._things.answer_text(kind, value)
            if self._manner.date_style == "digits"
            else self._things.sentence_text(kind, value)
        )

    def _listed_values(self, relation: str, subject: str, sentence: str) -> Iterator[str]:
        """The values that a sentence lists if it states the relation of the subject."""
        for kind in SENTENCE_KINDS.get(relation, (relation,)):
            for phrasing in self._manner.phrasings[kind].formats:
                before, _, after = phrasing.format(subject, "\x00").partition("\x00")
                if sentence.startswith(before) and sentence.endswith(after):
                    inner = sentence[len(before) : len(sentence) - len(after)]
                    first, _, last = inner.rpartition(self._manner.last_separator)
                    yield from (inner, last, *first.split(", "))


class WebPageFactReader:
    """Reads facts on web pages."""

    def __init__(self, things: ThingCatalog) -> None:
        self._things = things

    def find_stated_pairs(self, relation: str, expected: ValuePairs, sentences: Iterable[str]) -> ValuePairs:
        """Those of the pairs that the sentences state."""
        sentence = set(sentences)
        return {pair for pair in expected if not sentence.isdisjoint(self._phrasings(relation, *pair))}

    def _phrasings(self, relation: str, head: int, value: int) -> Iterator[str]:
        kind = FACT_VALUE_KINDS.get(relation, "person")
        if relation in ("spouse", "wife", "husband", "friend"):
            source_facts = "friend" if relation == "friend" else "spouse"
            for one, other in ((head, value), (value, head)):
                yield from self._format_fact(source_facts, one, self._person_text(other))
        elif relation in ("parent", "father", "mother", *_CHILD_KINDS):
            child, parent = (value, head) if relation in _CHILD_KINDS else (head, value)
            source_facts = "mother" if self._things.universe.female[parent] else "father"
            yield from self._format_fact(source_facts, child, self._person_text(parent))
        elif kind != "person":
            # Pages write days in words also where articles write digits.
            sentence = format_english_date(value) if kind == "day" else self._things.sentence_text(kind, value)
            yield from self._format_fact(relation, head, sentence)

    def _format_fact(self, kind: str, person: int, value: str) -> Iterator[str]:
        for then in (False, True):
            for phrasing in (
                load_web_phrasings(then=then)[kind].formats if kind in load_web_phrasings(then=then) else ()
            ):
                yield phrasing.format(self._person_text(person), value)

    def _person_text(self, row: int) -> str:
        universe = self._things.universe
        return f"{'Ms' if universe.female[row] else 'Mr'} {universe.titles[row]}"


class TextLookup:
    """Searches and reads the articles in one attempt; `told` is what they tell."""

    def __init__(self, attempt: GoldAttempt, things: ThingCatalog, source_facts: Universe, style: ProseStyle) -> None:
        self._attempt, self._things, self._told = attempt, things, source_facts
        self._articles = ArticleFactReader(things, style)

    def find_title(self, kind: str, number: int) -> str:
        """The title of the article about a thing, searched by name unless it has been seen."""
        title = self._things.sentence_text(kind, number)
        if not self._attempt.has_seen_text(title):
            # Only namesakes have a title that is not their name.
            self._search(f"Several people have that name; I need the article about {title}.", title.partition(" (")[0])
            if not self._attempt.has_observed_value(title):
                raise GoldTraceError(f"wikisearch does not find the article {title!r} by its name")
        return title

    def search_start(self, kind: str, number: int) -> None:
        """Search for something that the question names."""
        title = self._things.sentence_text(kind, number)
        if not self._attempt.has_observed_value(title):
            self._search(f"The question starts from {title}; I look for the article first.", title)

    def forward(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        """What the articles of the heads tell."""
        observed = set()
        for head in heads:
            title = self.find_title(leaf.inputs[0].kind, head)
            question = attempt.question_about(self._things, leaf, head)
            read = self._attempt.call_tool(f"{question} The article may tell.", "read", title=title, question=question)
            expected = [value for _, value in relation_pairs(self._told, leaf.relation, [head])]
            observed |= {(head, value) for value in self._find_stated_values(leaf, head, expected, read["sentences"])}
        return observed

    def backward(self, leaf: ReasoningNode, value: int) -> set[int]:
        """Everybody whose article tells that the fact is the value, as far as a search finds them."""
        sentence = self._things.sentence_text(FACT_VALUE_KINDS[leaf.relation], value)
        question = attempt.node_question(self._things, leaf)
        expected = people_with_fact(self._told, leaf.relation, value)
        observed: set[int] = set()
        queries = (sentence, question, *(f"{word} {sentence}" for word in PROPERTY_LABELS[PROPERTY_IDS[leaf.relation]]))
        for query in queries:
            seen = self._attempt.preview_call("wikisearch", query=query)
            if self._matching_hits(seen, expected - observed) or query == queries[-1]:
                hits = self._search(f"{question} I search the articles.", query)
                observed |= {
                    row
                    for row, hit in self._matching_hits({"hits": hits}, expected)
                    if self._hit_states_fact(leaf, row, value, hit)
                }
            if observed == expected:
                break
        return observed

    def _matching_hits(self, seen: dict[str, Any] | None, expected: set[int]) -> list[tuple[int, dict[str, str]]]:
        """The people among the hits who are looked for."""
        hits = [(self._things.items.locate(hit["entity"]), hit) for hit in (seen or {"hits": []})["hits"]]
        return [(row, hit) for (kind, row), hit in hits if kind == "person" and row in expected]

    def _hit_states_fact(self, leaf: ReasoningNode, row: int, value: int, hit: dict[str, str]) -> bool:
        """Whether the snippet of a hit tells the fact, or else the article."""
        if self._find_stated_values(leaf, row, [value], [hit["snippet"]]):
            return True
        question = attempt.question_about(self._things, leaf, value)
        thought = f"The snippet does not tell it; the article {hit['title']} may."
        read = self._attempt.call_tool(thought, "read", title=hit["title"], question=question)
        return bool(self._find_stated_values(leaf, row, [value], read["sentences"]))

    def _search(self, thought: str, query: str) -> list[dict[str, str]]:
        hits: list[dict[str, str]] = self._attempt.call_tool(thought, "wikisearch", query=query)["hits"]
        return hits

    def _find_stated_values(
        self, leaf: ReasoningNode, head: int, expected: Iterable[int], sentences: Iterable[str]
    ) -> set[int]:
        if leaf.relation in PLACE_RELATIONS:
            sentence = list(sentences)
            names = {value: self._things.sentence_text(leaf.kind, value) for value in expected}
            return {value for value, name in names.items() if any(f" in {name}." in text for text in sentence)}
        return self._articles.find_stated_values(leaf.relation, head, expected, sentences)
