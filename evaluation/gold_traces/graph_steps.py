"""Looking an operation up in the graph: ids first, then a query, written by the tool where it understands."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from evaluation.gold_traces import attempt
from evaluation.gold_traces.attempt import GoldAttempt, GoldTraceError, ValuePairs, relation_pairs
from fiction.questions.evaluate import FACT_VALUE_KINDS
from fiction.questions.facts import GENDERED_RELATIONS
from fiction.questions.names import ThingCatalog
from fiction.questions.reasoning import ReasoningNode
from fiction.universe.items import FEMALE, MALE, PROPERTY_IDS

MAX_HEADS = 30
"""Ids that a query lists."""


class GraphLookup:
    """Asks the graph of one attempt."""

    def __init__(self, attempt: GoldAttempt, things: ThingCatalog) -> None:
        self._attempt, self._things = attempt, things

    def find_id(self, kind: str, number: int) -> str:
        """The id of a thing, looked up by its name unless some observation has it already."""
        item = str(self._things.entity_id(kind, number))
        if not self._attempt.has_observed_value(item):
            name = self._things.sentence_text(kind, number)
            values = self._attempt.call_tool(f"To ask the graph I need the id of {name}.", "getWikiDataID", title=name)
            if item not in [entity["id"] for entity in values["entities"]]:
                raise GoldTraceError(f"getWikiDataID does not find {item} for {name!r}")
        return item

    def forward(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        """What each of the heads leads to; one query for all of them."""
        if len(heads) == 1:
            values = self.chain([leaf], heads)
            return {(heads[0], value) for value in values}
        items = self._find_ids(leaf.inputs[0].kind, heads)
        listed = " ".join(f"wd:{item}" for item in items.values())
        where = _triple_pattern(leaf, "?of", "?found")
        who = attempt.name_values(self._things, leaf.inputs[0].kind, heads)
        rows = self._run_query(
            f"I ask the graph for the {attempt.relation_word(leaf)} of {who} at once.",
            f"SELECT ?of ?found WHERE {{ VALUES ?of {{ {listed} }} {where} }}",
        )
        return {(self._parse_cell(of), self._parse_cell(value, _result_kind(leaf))) for of, value in rows}

    def chain(self, leaves: Sequence[ReasoningNode], heads: Sequence[int]) -> set[int]:
        """What the heads lead to over several operations in a row."""
        kind = leaves[0].inputs[0].kind
        items = list(self._find_ids(kind, heads).values())
        if (
            len(leaves) == len(items) == 1
            and (values := self._answer_by_generated_query(leaves[0], heads[0], items[0])) is not None
        ):
            return values
        first = f"wd:{items[0]}" if len(items) == 1 else "?x0"
        where = "" if len(items) == 1 else f"VALUES ?x0 {{ {' '.join(f'wd:{item}' for item in items)} }} "
        names = [first, *(f"?x{place}" for place in range(1, len(leaves)))]
        where += " ".join(
            _triple_pattern(leaf, start, end)
            for leaf, start, end in zip(leaves, names, [*names[1:], "?found"], strict=True)
        )
        if len(leaves) == len(heads) == 1:
            thought = f"{attempt.question_about(self._things, leaves[0], heads[0])} The graph should know."
        else:
            ways = ", then ".join(attempt.relation_word(leaf) for leaf in leaves)
            start = attempt.name_values(self._things, kind, heads)
            thought = f"The graph can go all of the way in one query: from {start} to {ways}."
        rows = self._run_query(thought, f"SELECT DISTINCT ?found WHERE {{ {where} }}")
        return {self._parse_cell(value, _result_kind(leaves[-1])) for (value,) in rows}

    def backward(self, leaf: ReasoningNode, value: int) -> set[int]:
        """Everybody whose fact is the value."""
        kind = FACT_VALUE_KINDS[leaf.relation]
        pid = PROPERTY_IDS[leaf.relation]
        if kind == "day":
            day = self._things.answer_text(kind, value)
            # The day is typed as the graph writes days.
            where = f'?found wdt:{pid} "{day}T00:00:00Z"^^xsd:dateTime .'
        else:
            where = f"?found wdt:{pid} wd:{self.find_id(kind, value)} ."
        rows = self._run_query(attempt.node_question(self._things, leaf), f"SELECT ?found WHERE {{ {where} }}")
        return {self._parse_cell(values) for (values,) in rows}

    def answer_by_query(self, sparql: str, kind: str) -> set[int]:
        """The answers of a query for the whole question."""
        table = self._attempt.call_tool(
            "All of it is in the graph, so one query can answer the whole question.", "runQuery", sparql=sparql
        )
        if table["boolean"] is not None:
            return {int(table["boolean"])}
        return {self._parse_cell(row[0], kind) for row in table["rows"] if row[0] is not None}

    def _find_ids(self, kind: str, heads: Iterable[int]) -> dict[int, str]:
        all_heads = list(heads)
        if len(all_heads) > MAX_HEADS:
            raise GoldTraceError(f"a query would have to list {len(all_heads)} ids")
        return {head: self.find_id(kind, head) for head in all_heads}

    def _answer_by_generated_query(self, leaf: ReasoningNode, head: int, item: str) -> set[int] | None:
        """The answers by a query that the tool writes; None when it reads the question otherwise."""
        expected = {value for _, value in relation_pairs(self._things.universe, leaf.relation, [head])}
        question = attempt.question_about(self._things, leaf, head)
        arguments: dict[str, Any] = {"question": question, "entity_ids": [item]}
        written = self._attempt.preview_call("generateQuery", **arguments)
        if (
            written is None
            or self._read_answers(self._attempt.preview_call("runQuery", sparql=_first_candidate(written)), leaf)
            != expected
        ):
            return None
        written = self._attempt.call_tool(
            f"{question} I let the query for the graph be written.", "generateQuery", **arguments
        )
        reading = written["candidates"][0]["reading"]
        table = self._attempt.call_tool(
            f"It is read as: {reading}. That is what I ask.", "runQuery", sparql=_first_candidate(written)
        )
        return self._read_answers(table, leaf)

    def _read_answers(self, table: dict[str, Any] | None, leaf: ReasoningNode) -> set[int] | None:
        """The numbers in a table of one column; None for any other."""
        if table is None or len(table["columns"]) != 1:
            return None
        try:
            return {self._parse_cell(cell, _result_kind(leaf)) for (cell,) in table["rows"] if cell is not None}
        except (KeyError, ValueError):
            # It asks for something else, which has no such number.
            return None

    def _run_query(self, thought: str, sparql: str) -> list[list[Any]]:
        table = self._attempt.call_tool(thought, "runQuery", sparql=sparql)
        if table["truncated"]:
            raise GoldTraceError("the graph has more rows than a query may give")
        return [row for row in table["rows"] if None not in row]

    def _parse_cell(self, cell: dict[str, Any], kind: str = "person") -> int:
        """The number of a thing, a day or a count in a cell."""
        if cell["kind"] == "entity":
            return self._things.items.locate(cell["value"])[1]
        return date.fromisoformat(cell["value"][:10]).toordinal() if kind == "day" else int(cell["value"])


def _result_kind(leaf: ReasoningNode) -> str:
    """The kind of what is looked up for each thing that an operation starts from; a filter looks at facts."""
    return FACT_VALUE_KINDS.get(leaf.relation, leaf.kind)


def _first_candidate(written: dict[str, Any]) -> str:
    return str(written["candidates"][0]["sparql"])


def _triple_pattern(leaf: ReasoningNode, start: str, end: str) -> str:
    if leaf.relation in PROPERTY_IDS:
        return f"{start} wdt:{PROPERTY_IDS[leaf.relation]} {end} ."
    if leaf.relation == "parent":
        return f"{start} wdt:{PROPERTY_IDS['father']}|wdt:{PROPERTY_IDS['mother']} {end} ."
    base, women = GENDERED_RELATIONS[leaf.relation]
    gender = FEMALE if women else MALE
    return f"{start} wdt:{PROPERTY_IDS[base]} {end} . {end} wdt:{PROPERTY_IDS['gender']} wd:{gender} ."
