"""Looking an operation up on web pages: they are searched with its question, and read until they tell enough."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.gold import thoughts
from bench.gold.attempt import Attempt
from bench.gold.pairs import PLACES, Pairs, having, pairs
from bench.gold.stated import Pages
from worlds.generator.sites import NAMESAKE, OUT_OF_DATE
from worlds.questions.evaluate import KIND_OF_FACT
from worlds.questions.reasoning import Node
from worlds.questions.things import Things
from worlds.universe.universe import Universe

_WORDS = {
    **dict.fromkeys(("child", "daughter", "son"), "father mother"),
    **dict.fromkeys(PLACES, "town region"),
    **dict.fromkeys(("birth", "death", "wedding"), "Courier notices"),
    "residence": "residents settled residence",
    "job": "register of trades became",
    "hobby": "fans took up",
}
"""What pages speak of instead: they name the parent of a child, the towns of a region, the people of a trade."""

_WHY = {OUT_OF_DATE: "is out of date", NAMESAKE: "is about somebody else of that name"}

Wrong = Mapping[str, Sequence[dict[str, Any]]]
"""The marks of the pages by address, as pages.jsonl has them."""


class Web:
    """Searches and reads web pages in one attempt; `told` is what they tell, `wrong` what is wrong on which page."""

    def __init__(self, attempt: Attempt, things: Things, told: Universe, wrong: Wrong) -> None:
        self._attempt, self._things, self._told, self._wrong = attempt, things, told, wrong
        self._pages = Pages(things)

    def forward(self, leaf: Node, heads: Sequence[int]) -> Pairs:
        """What pages tell of the heads."""
        found: Pairs = set()
        for head in heads:
            wanted = pairs(self._told, leaf.relation, [head])
            name = self._things.said(leaf.heads[0].kind, head)
            words = (thoughts.sought(leaf), _WORDS.get(leaf.relation, ""))
            others = [f"{name} {word}" for word in words if word]
            found |= self._looked_up(leaf, wanted, (thoughts.asked_of(self._things, leaf, head), *others, name))
        return found

    def backward(self, leaf: Node, value: int) -> set[int]:
        """Everybody of whom a page tells that the fact is the value."""
        wanted = {(row, value) for row in having(self._told, leaf.relation, value)}
        said = self._things.said(KIND_OF_FACT[leaf.relation], value)
        found = self._looked_up(leaf, wanted, (thoughts.asked(self._things, leaf), said))
        return {row for row, _ in found}

    def _looked_up(self, leaf: Node, wanted: Pairs, queries: Sequence[str]) -> Pairs:
        """Search with the question, then with other words while something is missing; the last say what it is of."""
        question, about = queries[0], queries[-1]
        found: Pairs = set()
        for query in queries:
            helpful = self._helpful(leaf, wanted - found, query, question)
            if not helpful and query != about:
                continue
            seen = self._attempt.act(f"{question} A web page may tell.", "websearch", query=query)
            for page in seen["pages"]:
                self._doubt(leaf, about, page, [page["snippet"]])
            for title, address in helpful:
                read = self._attempt.act(f"The page {title} may tell it.", "read", title=address, question=question)
                self._doubt(leaf, about, read, read["sentences"])
                found |= self._stated(leaf, wanted, read["sentences"])
            if found == wanted:
                return found
        return found

    def _doubt(self, leaf: Node, about: str, page: dict[str, Any], sentences: Sequence[str]) -> None:
        """Note what is said there of whom or what is looked for and is not true."""
        for mark in self._wrong.get(page["address"], ()):
            told = (mark["person"]["text"], (mark["stated"] or {}).get("text"))
            if mark["fact"] == leaf.relation and about in told and mark["sentence"] in sentences:
                why = _WHY[mark["why"]]
                self._attempt.note(f"What {page['title']} ({page['date']}) says of {told[0]} {why}.")

    def _helpful(self, leaf: Node, wanted: Pairs, query: str, question: str) -> list[tuple[str, str]]:
        """The pages among those found that each tell something more; nobody would show others the rest."""
        seen = self._attempt.peek("websearch", query=query)
        pages, missing = [], set(wanted)
        for page in seen["pages"] if seen else ():
            read = self._attempt.peek("read", title=page["address"], question=question)
            more = self._stated(leaf, missing, read["sentences"]) if read else set()
            if more:
                pages.append((page["title"], page["address"]))
                missing -= more
        return pages

    def _stated(self, leaf: Node, wanted: Pairs, sentences: list[str]) -> Pairs:
        if leaf.relation in PLACES:
            names = {pair: self._things.said(leaf.kind, pair[1]) for pair in wanted}
            return {pair for pair, name in names.items() if any(f" {name}." in each for each in sentences)}
        return self._pages.stated(leaf.relation, wanted, sentences)
