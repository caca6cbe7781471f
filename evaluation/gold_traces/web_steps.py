"""Looking an operation up on web pages: they are searched with its question, and read until they tell enough."""

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.gold_traces import attempt
from evaluation.gold_traces.attempt import PLACE_RELATIONS, GoldAttempt, ValuePairs, people_with_fact, relation_pairs
from evaluation.gold_traces.text_steps import WebPageFactReader
from fiction.generator.sites import NAMESAKE, OUT_OF_DATE
from fiction.questions.evaluate import FACT_VALUE_KINDS
from fiction.questions.names import ThingCatalog
from fiction.questions.reasoning import ReasoningNode
from fiction.universe.universe import Universe

_SEARCH_WORDS = {
    **dict.fromkeys(("child", "daughter", "son"), "father mother"),
    **dict.fromkeys(PLACE_RELATIONS, "town region"),
    **dict.fromkeys(("birth", "death", "wedding"), "Courier notices"),
    "residence": "residents settled residence",
    "job": "register of trades became",
    "hobby": "fans took up",
}
"""What pages speak of instead: they name the parent of a child, the towns of a region, the people of a trade."""

_MARK_REASONS = {OUT_OF_DATE: "is out of date", NAMESAKE: "is about somebody else of that name"}

WrongFacts = Mapping[str, Sequence[dict[str, Any]]]
"""The marks of the pages by address, as pages.jsonl has them."""


class WebLookup:
    """Searches and reads web pages in one attempt; `told` is what they tell, `wrong` what is wrong on which page."""

    def __init__(self, attempt: GoldAttempt, things: ThingCatalog, source_facts: Universe, wrong: WrongFacts) -> None:
        self._attempt, self._things, self._told, self._wrong = attempt, things, source_facts, wrong
        self._pages = WebPageFactReader(things)

    def forward(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        """What pages tell of the heads."""
        observed: ValuePairs = set()
        for head in heads:
            expected = relation_pairs(self._told, leaf.relation, [head])
            name = self._things.sentence_text(leaf.inputs[0].kind, head)
            words = (attempt.relation_word(leaf), _SEARCH_WORDS.get(leaf.relation, ""))
            others = [f"{name} {word}" for word in words if word]
            observed |= self._look_up_pairs(
                leaf, expected, (attempt.question_about(self._things, leaf, head), *others, name)
            )
        return observed

    def backward(self, leaf: ReasoningNode, value: int) -> set[int]:
        """Everybody of whom a page tells that the fact is the value."""
        expected = {(row, value) for row in people_with_fact(self._told, leaf.relation, value)}
        fact_text = self._things.sentence_text(FACT_VALUE_KINDS[leaf.relation], value)
        observed = self._look_up_pairs(leaf, expected, (attempt.node_question(self._things, leaf), fact_text))
        return {row for row, _ in observed}

    def _look_up_pairs(self, leaf: ReasoningNode, expected: ValuePairs, queries: Sequence[str]) -> ValuePairs:
        """Search with the question, then with other words while something is missing; the last say what it is of."""
        question, about = queries[0], queries[-1]
        observed: ValuePairs = set()
        for query in queries:
            helpful = self._select_pages(leaf, expected - observed, query, question)
            if not helpful and query != about:
                continue
            seen = self._attempt.call_tool(f"{question} A web page may tell.", "websearch", query=query)
            for page in seen["pages"]:
                self._note_wrong_facts(leaf, about, page, [page["snippet"]])
            for title, address in helpful:
                read = self._attempt.call_tool(
                    f"The page {title} may tell it.", "read", title=address, question=question
                )
                self._note_wrong_facts(leaf, about, read, read["sentences"])
                observed |= self._find_stated_pairs(leaf, expected, read["sentences"])
            if observed == expected:
                return observed
        return observed

    def _note_wrong_facts(
        self, leaf: ReasoningNode, about: str, page: dict[str, Any], sentences: Sequence[str]
    ) -> None:
        """Note what is said there of whom or what is looked for and is not true."""
        for mark in self._wrong.get(page["address"], ()):
            source_facts = (mark["person"]["text"], (mark["stated"] or {}).get("text"))
            if mark["fact"] == leaf.relation and about in source_facts and mark["sentence"] in sentences:
                why = _MARK_REASONS[mark["why"]]
                self._attempt.add_finding(f"What {page['title']} ({page['date']}) says of {source_facts[0]} {why}.")

    def _select_pages(
        self, leaf: ReasoningNode, expected: ValuePairs, query: str, question: str
    ) -> list[tuple[str, str]]:
        """The pages among those found that each tell something more; nobody would show others the rest."""
        seen = self._attempt.preview_call("websearch", query=query)
        pages, missing = [], set(expected)
        for page in seen["pages"] if seen else ():
            read = self._attempt.preview_call("read", title=page["address"], question=question)
            more = self._find_stated_pairs(leaf, missing, read["sentences"]) if read else set()
            if more:
                pages.append((page["title"], page["address"]))
                missing -= more
        return pages

    def _find_stated_pairs(self, leaf: ReasoningNode, expected: ValuePairs, sentences: list[str]) -> ValuePairs:
        if leaf.relation in PLACE_RELATIONS:
            names = {pair: self._things.sentence_text(leaf.kind, pair[1]) for pair in expected}
            return {pair for pair, name in names.items() if any(f" {name}." in sentence for sentence in sentences)}
        return self._pages.find_stated_pairs(leaf.relation, expected, sentences)
