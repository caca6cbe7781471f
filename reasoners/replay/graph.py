"""Asking a graph as demonstrations do: by queries that a tool writes, or that were typed."""

import re
from collections.abc import Mapping
from typing import Any

from reasoners.replay import kin
from reasoners.replay.asks import BLANK, format_cell
from reasoners.replay.english import as_day, plain
from reasoners.replay.entities import FoundEntity, bare_name
from reasoners.replay.inquiry import LookupState
from reasoners.replay.walk import ReplayBroken, ReplayGenerator, ToolCallFailed
from reasoners.replay.wordings import relation_of
from tools.generate_query import NO_RELATION_MESSAGE

_INTERMEDIATE_VARIABLE = re.compile(r"\?x\d+")
QueryCandidate = Mapping[str, Any]


class ReplayGraphLookup:
    """What the graph tells in one run."""

    def __init__(self, inquiry: LookupState) -> None:
        self._inquiry = inquiry

    def find_candidate(self, template: str, thing: FoundEntity) -> ReplayGenerator:
        """The written query that is read as what is asked, and in no wider sense; None where there is none."""
        entity = thing.id or (yield from self._inquiry.names.resolve(thing.text)).id
        if entity is None:
            return None
        lessons, asked = self._inquiry.lessons, template.replace(BLANK, thing.text)
        self._inquiry.silent = False
        thought = lessons.thought("generateQuery", template, asked, thing.text)
        try:
            written = yield from self._inquiry.walk.call_tool(
                thought, "generateQuery", question=asked, entity_ids=[str(entity)]
            )
        except ToolCallFailed as failed:
            self._note_missing_query(template, str(failed), silent=str(failed).startswith(NO_RELATION_MESSAGE))
            return None
        understood = [
            candidate for candidate in written["candidates"] if self._is_understood(candidate, template, thing)
        ]
        return self._narrowest(understood, template, asked)

    def look_up(self, template: str, thing: FoundEntity) -> ReplayGenerator:
        """What a written query finds; [] where the graph is silent or none is written, which is then unclear."""
        candidate = yield from self.find_candidate(template, thing)
        if candidate is None:
            return []
        thought = f"It is read as: {candidate['reading']}. That is what I ask."
        return (yield from self.rows(thought, candidate["sparql"]))

    def find_having(self, fact: str, value: str) -> ReplayGenerator:
        """By the query that a demonstration typed for the fact, else by one that is written and read as is asked."""
        ways = self._inquiry.lessons.backward.get(fact)
        thing = None if as_day(value) else (yield from self._find_value(fact, value))
        if thing is None and not as_day(value):
            return []
        if ways and ways.queries and thing:
            asked = ways.templates[0].replace(BLANK, value) if ways.templates else f"Whose {fact} is {value}?"
            return (yield from self.rows(asked, ways.queries[0].replace(BLANK, str(thing.id))))
        asked = f"Who is the person whose {fact} is {value}?"
        ids = [str(thing.id)] if thing else []
        try:
            written = yield from self._inquiry.walk.call_tool(asked, "generateQuery", question=asked, entity_ids=ids)
        except ToolCallFailed:
            return []
        for candidate in written["candidates"]:
            if plain(candidate["reading"]) == plain(f"those whose {fact} is {value}"):
                return (yield from self.rows(asked, candidate["sparql"]))
        return []

    def rows(self, thought: str, sparql: str) -> ReplayGenerator:
        """The things in the first column of what a query finds."""
        table = yield from self._inquiry.walk.call_tool(thought, "runQuery", sparql=sparql)
        if table["truncated"]:
            raise ReplayBroken("the graph has more rows than a query may give")
        cells = [row[0] for row in table["rows"] if row and row[0] is not None]
        return [
            FoundEntity(str(format_cell(cell)), cell["value"] if cell["kind"] == "entity" else None) for cell in cells
        ]

    def _is_understood(self, candidate: QueryCandidate, template: str, thing: FoundEntity) -> bool:
        reading = _strip_subject(candidate["reading"], thing)
        return reading != candidate["reading"] and self._inquiry.lessons.is_understood(template, reading)

    def _narrowest(self, understood: list[QueryCandidate], template: str, asked: str) -> QueryCandidate | None:
        """The first of them; for kin the one that takes as many steps as the word means: by blood, not by marriage."""
        relation = relation_of(template)
        silent = not understood
        apart = bool(self._inquiry.spread) and kin.is_personal(relation)
        if kin.is_personal(relation):
            # Who is a father only as the husband of the mother is asked for by way of her, source by source.
            expected = [1] if apart else kin.path_lengths(relation)
            understood = [
                candidate for length in expected for candidate in understood if count_hops(candidate) == length
            ]
        if not understood and not apart:
            self._note_missing_query(template, f"no query is written that asks {asked!r}", silent=silent)
        return understood[0] if understood else None

    def _note_missing_query(self, template: str, why: str, *, silent: bool) -> None:
        """That no query asks what is known tells that the graph is silent about it; else there may be one."""
        self._inquiry.silent = silent and self._inquiry.lessons.is_known(template)
        if not self._inquiry.silent:
            self._inquiry.unclear.append(why)

    def _find_value(self, fact: str, value: str) -> ReplayGenerator:
        """The thing that is a value of the fact; None where the graph has none of that name."""
        thought = self._inquiry.lessons.thought("getWikiDataID", "", f"What is the id of {value}?", value)
        try:
            results = yield from self._inquiry.walk.call_tool(thought, "getWikiDataID", title=value)
        except ToolCallFailed:
            return None
        same = [candidate for candidate in results["entities"] if plain(candidate["label"]) == plain(value)]
        stated = (
            [candidate for candidate in same if plain(candidate["description"] or "") == plain(fact)]
            if len(same) > 1
            else same
        )
        if len(stated) > 1:
            raise ReplayBroken(f"several things are called {value}")
        return FoundEntity(stated[0]["label"], stated[0]["id"]) if stated else None


def count_hops(candidate: QueryCandidate) -> int:
    """How many relations a written query goes along."""
    return len(set(_INTERMEDIATE_VARIABLE.findall(candidate["sparql"]))) + 1


def relations(candidate: QueryCandidate, thing: FoundEntity) -> list[str]:
    """The relations that a written query goes along, the first one first."""
    return _strip_subject(candidate["reading"], thing).split(" of the ")[::-1]


def _strip_subject(reading: str, thing: FoundEntity) -> str:
    return reading.removesuffix(f" of {thing.text}").removesuffix(f" of {bare_name(thing.text)}")
