"""Looking an operation up in the graph: ids first, then a query, written by the tool where it understands."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from bench.gold import thoughts
from bench.gold.attempt import Attempt, Stuck
from bench.gold.pairs import Pairs, pairs
from worlds.generator.items import FEMALE, MALE, PROPERTY
from worlds.questions.evaluate import KIND_OF_FACT
from worlds.questions.facts import GENDERED
from worlds.questions.reasoning import Node
from worlds.questions.things import Things

MOST_HEADS = 30
"""Ids that a query lists."""


class Graph:
    """Asks the graph of one attempt."""

    def __init__(self, attempt: Attempt, things: Things) -> None:
        self._attempt, self._things = attempt, things

    def find(self, kind: str, number: int) -> str:
        """The id of a thing, looked up by its name unless some observation has it already."""
        item = str(self._things.entity(kind, number))
        if not self._attempt.knows(item):
            name = self._things.said(kind, number)
            found = self._attempt.act(f"To ask the graph I need the id of {name}.", "getWikiDataID", title=name)
            if item not in [entity["id"] for entity in found["entities"]]:
                raise Stuck(f"getWikiDataID does not find {item} for {name!r}")
        return item

    def forward(self, leaf: Node, heads: Sequence[int]) -> Pairs:
        """What each of the heads leads to; one query for all of them."""
        if len(heads) == 1:
            found = self.chain([leaf], heads)
            return {(heads[0], value) for value in found}
        items = self._items(leaf.heads[0].kind, heads)
        listed = " ".join(f"wd:{item}" for item in items.values())
        where = _pattern(leaf, "?of", "?found")
        who = thoughts.named(self._things, leaf.heads[0].kind, heads)
        rows = self._run(
            f"I ask the graph for the {thoughts.sought(leaf)} of {who} at once.",
            f"SELECT ?of ?found WHERE {{ VALUES ?of {{ {listed} }} {where} }}",
        )
        return {(self._number(of), self._number(value, _found(leaf))) for of, value in rows}

    def chain(self, leaves: Sequence[Node], heads: Sequence[int]) -> set[int]:
        """What the heads lead to over several operations in a row."""
        kind = leaves[0].heads[0].kind
        items = list(self._items(kind, heads).values())
        if len(leaves) == len(items) == 1 and (found := self._understood(leaves[0], heads[0], items[0])) is not None:
            return found
        first = f"wd:{items[0]}" if len(items) == 1 else "?x0"
        where = "" if len(items) == 1 else f"VALUES ?x0 {{ {' '.join(f'wd:{item}' for item in items)} }} "
        names = [first, *(f"?x{place}" for place in range(1, len(leaves)))]
        where += " ".join(
            _pattern(leaf, start, end) for leaf, start, end in zip(leaves, names, [*names[1:], "?found"], strict=True)
        )
        if len(leaves) == len(heads) == 1:
            thought = f"{thoughts.asked_of(self._things, leaves[0], heads[0])} The graph should know."
        else:
            ways = ", then ".join(thoughts.sought(leaf) for leaf in leaves)
            start = thoughts.named(self._things, kind, heads)
            thought = f"The graph can go all of the way in one query: from {start} to {ways}."
        rows = self._run(thought, f"SELECT DISTINCT ?found WHERE {{ {where} }}")
        return {self._number(value, _found(leaves[-1])) for (value,) in rows}

    def backward(self, leaf: Node, value: int) -> set[int]:
        """Everybody whose fact is the value."""
        kind = KIND_OF_FACT[leaf.relation]
        pid = PROPERTY[leaf.relation]
        if kind == "day":
            day = self._things.answer(kind, value)
            # The day is typed as the graph writes days.
            where = f'?found wdt:{pid} "{day}T00:00:00Z"^^xsd:dateTime .'
        else:
            where = f"?found wdt:{pid} wd:{self.find(kind, value)} ."
        rows = self._run(thoughts.asked(self._things, leaf), f"SELECT ?found WHERE {{ {where} }}")
        return {self._number(found) for (found,) in rows}

    def whole(self, sparql: str, kind: str) -> set[int]:
        """The answers of a query for the whole question."""
        table = self._attempt.act(
            "All of it is in the graph, so one query can answer the whole question.", "runQuery", sparql=sparql
        )
        if table["boolean"] is not None:
            return {int(table["boolean"])}
        return {self._number(row[0], kind) for row in table["rows"] if row[0] is not None}

    def _items(self, kind: str, heads: Iterable[int]) -> dict[int, str]:
        every = list(heads)
        if len(every) > MOST_HEADS:
            raise Stuck(f"a query would have to list {len(every)} ids")
        return {head: self.find(kind, head) for head in every}

    def _understood(self, leaf: Node, head: int, item: str) -> set[int] | None:
        """The answers by a query that the tool writes; None when it reads the question otherwise."""
        wanted = {value for _, value in pairs(self._things.universe, leaf.relation, [head])}
        question = thoughts.asked_of(self._things, leaf, head)
        arguments: dict[str, Any] = {"question": question, "entity_ids": [item]}
        written = self._attempt.peek("generateQuery", **arguments)
        if written is None or self._answers(self._attempt.peek("runQuery", sparql=_first(written)), leaf) != wanted:
            return None
        written = self._attempt.act(
            f"{question} I let the query for the graph be written.", "generateQuery", **arguments
        )
        reading = written["candidates"][0]["reading"]
        table = self._attempt.act(f"It is read as: {reading}. That is what I ask.", "runQuery", sparql=_first(written))
        return self._answers(table, leaf)

    def _answers(self, table: dict[str, Any] | None, leaf: Node) -> set[int] | None:
        """The numbers in a table of one column; None for any other."""
        if table is None or len(table["columns"]) != 1:
            return None
        try:
            return {self._number(cell, _found(leaf)) for (cell,) in table["rows"] if cell is not None}
        except (KeyError, ValueError):
            # It asks for something else, which has no such number.
            return None

    def _run(self, thought: str, sparql: str) -> list[list[Any]]:
        table = self._attempt.act(thought, "runQuery", sparql=sparql)
        if table["truncated"]:
            raise Stuck("the graph has more rows than a query may give")
        return [row for row in table["rows"] if None not in row]

    def _number(self, cell: dict[str, Any], kind: str = "person") -> int:
        """The number of a thing, a day or a count in a cell."""
        if cell["kind"] == "entity":
            return self._things.items.place(cell["value"])[1]
        return date.fromisoformat(cell["value"][:10]).toordinal() if kind == "day" else int(cell["value"])


def _found(leaf: Node) -> str:
    """The kind of what is looked up for each thing that an operation starts from; a filter looks at facts."""
    return KIND_OF_FACT.get(leaf.relation, leaf.kind)


def _first(written: dict[str, Any]) -> str:
    return str(written["candidates"][0]["sparql"])


def _pattern(leaf: Node, start: str, end: str) -> str:
    if leaf.relation in PROPERTY:
        return f"{start} wdt:{PROPERTY[leaf.relation]} {end} ."
    if leaf.relation == "parent":
        return f"{start} wdt:{PROPERTY['father']}|wdt:{PROPERTY['mother']} {end} ."
    base, women = GENDERED[leaf.relation]
    gender = FEMALE if women else MALE
    return f"{start} wdt:{PROPERTY[base]} {end} . {end} wdt:{PROPERTY['gender']} wd:{gender} ."
