"""Looking an operation up in the articles: the article of each thing that it starts from is read."""

from collections.abc import Iterable, Sequence
from typing import Any

from bench.gold import thoughts
from bench.gold.attempt import Attempt, Stuck
from bench.gold.pairs import PLACES, Pairs, having, pairs
from bench.gold.stated import Articles
from worlds.generator.items import PROPERTIES, PROPERTY
from worlds.generator.phrasings import Manner
from worlds.questions.evaluate import KIND_OF_FACT
from worlds.questions.reasoning import Node
from worlds.questions.things import Things
from worlds.universe.universe import Universe


class Text:
    """Searches and reads the articles in one attempt; `told` is what they tell."""

    def __init__(self, attempt: Attempt, things: Things, told: Universe, manner: Manner) -> None:
        self._attempt, self._things, self._told = attempt, things, told
        self._articles = Articles(things, manner)

    def find(self, kind: str, number: int) -> str:
        """The title of the article about a thing, searched by name unless it has been seen."""
        title = self._things.said(kind, number)
        if not self._attempt.reads(title):
            # Only namesakes have a title that is not their name.
            self._search(f"Several people have that name; I need the article about {title}.", title.partition(" (")[0])
            if not self._attempt.knows(title):
                raise Stuck(f"wikisearch does not find the article {title!r} by its name")
        return title

    def start(self, kind: str, number: int) -> None:
        """Search for something that the question names."""
        title = self._things.said(kind, number)
        if not self._attempt.knows(title):
            self._search(f"The question starts from {title}; I look for the article first.", title)

    def forward(self, leaf: Node, heads: Sequence[int]) -> Pairs:
        """What the articles of the heads tell."""
        found = set()
        for head in heads:
            title = self.find(leaf.heads[0].kind, head)
            question = thoughts.asked_of(self._things, leaf, head)
            read = self._attempt.act(f"{question} The article may tell.", "read", title=title, question=question)
            wanted = [value for _, value in pairs(self._told, leaf.relation, [head])]
            found |= {(head, value) for value in self._stated(leaf, head, wanted, read["sentences"])}
        return found

    def backward(self, leaf: Node, value: int) -> set[int]:
        """Everybody whose article tells that the fact is the value, as far as a search finds them."""
        said = self._things.said(KIND_OF_FACT[leaf.relation], value)
        question = thoughts.asked(self._things, leaf)
        wanted = having(self._told, leaf.relation, value)
        found: set[int] = set()
        queries = (said, question, *(f"{word} {said}" for word in PROPERTIES[PROPERTY[leaf.relation]]))
        for query in queries:
            seen = self._attempt.peek("wikisearch", query=query)
            if self._fitting(seen, wanted - found) or query == queries[-1]:
                hits = self._search(f"{question} I search the articles.", query)
                found |= {
                    row for row, hit in self._fitting({"hits": hits}, wanted) if self._tells(leaf, row, value, hit)
                }
            if found == wanted:
                break
        return found

    def _fitting(self, seen: dict[str, Any] | None, wanted: set[int]) -> list[tuple[int, dict[str, str]]]:
        """The people among the hits who are looked for."""
        hits = [(self._things.items.place(hit["entity"]), hit) for hit in (seen or {"hits": []})["hits"]]
        return [(row, hit) for (kind, row), hit in hits if kind == "person" and row in wanted]

    def _tells(self, leaf: Node, row: int, value: int, hit: dict[str, str]) -> bool:
        """Whether the snippet of a hit tells the fact, or else the article."""
        if self._stated(leaf, row, [value], [hit["snippet"]]):
            return True
        question = thoughts.asked_of(self._things, leaf, value)
        thought = f"The snippet does not tell it; the article {hit['title']} may."
        read = self._attempt.act(thought, "read", title=hit["title"], question=question)
        return bool(self._stated(leaf, row, [value], read["sentences"]))

    def _search(self, thought: str, query: str) -> list[dict[str, str]]:
        hits: list[dict[str, str]] = self._attempt.act(thought, "wikisearch", query=query)["hits"]
        return hits

    def _stated(self, leaf: Node, head: int, wanted: Iterable[int], sentences: Iterable[str]) -> set[int]:
        if leaf.relation in PLACES:
            said = list(sentences)
            names = {value: self._things.said(leaf.kind, value) for value in wanted}
            return {value for value, name in names.items() if any(f" in {name}." in each for each in said)}
        return self._articles.stated(leaf.relation, head, wanted, sentences)
