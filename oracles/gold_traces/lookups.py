"""Lookups of gold traces in the graph, in articles and in web pages.

The graph is asked by ids with a query, which the tool generates if it understands the question; of articles and web
pages, what is written about each head of an operation is read, by the phrasings that the generator uses.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from showhow.fiction.generator.articles import ProseStyle, load_web_phrasings, split_clauses
from showhow.fiction.generator.sites import NAMESAKE, OUT_OF_DATE
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS, GENDERED_RELATIONS
from showhow.fiction.questions.names import ThingCatalog, format_english_date
from showhow.fiction.questions.reasoning import ReasoningNode
from showhow.fiction.universe.items import FEMALE, MALE, PROPERTY_IDS, PROPERTY_LABELS
from showhow.fiction.universe.universe import Universe
from showhow.oracles.gold_traces import attempt
from showhow.oracles.gold_traces.attempt import (
    PLACE_RELATIONS,
    GoldAttempt,
    GoldTraceError,
    ValuePairs,
    people_with_fact,
    relation_pairs,
)
from showhow.worlds.lexicon.english import title_for
from showhow.worlds.lexicon.kinship import gendered_words

MAX_HEADS = 30
"""The maximum number of ids in a query."""


class GraphLookup:
    """The graph lookups of one attempt."""

    def __init__(self, attempt: GoldAttempt, things: ThingCatalog) -> None:
        self._attempt, self._things = attempt, things

    def find_id(self, kind: str, number: int) -> str:
        """The id of a thing, looked up by name unless it was observed before."""
        item = str(self._things.entity_id(kind, number))
        if not self._attempt.has_observed_value(item):
            name = self._things.sentence_text(kind, number)
            values = self._attempt.call_tool(f"To ask the graph I need the id of {name}.", "getWikiDataID", title=name)
            if item not in [entity["id"] for entity in values["entities"]]:
                raise GoldTraceError(f"getWikiDataID does not find {item} for {name!r}")
        return item

    def forward(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        """Look up the values of all heads in one query."""
        if len(heads) == 1:
            values = self.chain([leaf], heads)
            return {(heads[0], value) for value in values}
        items = self._find_ids(leaf.inputs[0].kind, heads)
        id_list = " ".join(f"wd:{item}" for item in items.values())
        where = _triple_pattern(leaf, "?of", "?found")
        head_names = attempt.name_values(self._things, leaf.inputs[0].kind, heads)
        rows = self._run_query(
            f"I ask the graph for the {attempt.relation_word(leaf)} of {head_names} at once.",
            f"SELECT ?of ?found WHERE {{ VALUES ?of {{ {id_list} }} {where} }}",
        )
        return {(self._parse_cell(of), self._parse_cell(value, _result_kind(leaf))) for of, value in rows}

    def chain(self, leaves: Sequence[ReasoningNode], heads: Sequence[int]) -> set[int]:
        """Look up the values of a chain of operations in one query."""
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
            relations = ", then ".join(attempt.relation_word(leaf) for leaf in leaves)
            head_names = attempt.name_values(self._things, kind, heads)
            thought = f"The graph can go all of the way in one query: from {head_names} to {relations}."
        rows = self._run_query(thought, f"SELECT DISTINCT ?found WHERE {{ {where} }}")
        return {self._parse_cell(value, _result_kind(leaves[-1])) for (value,) in rows}

    def backward(self, leaf: ReasoningNode, value: int) -> set[int]:
        """Look up the people whose fact has the value."""
        kind = FACT_VALUE_KINDS[leaf.relation]
        pid = PROPERTY_IDS[leaf.relation]
        if kind == "day":
            day = self._things.answer_text(kind, value)
            # Typed as in the graph.
            where = f'?found wdt:{pid} "{day}T00:00:00Z"^^xsd:dateTime .'
        else:
            where = f"?found wdt:{pid} wd:{self.find_id(kind, value)} ."
        rows = self._run_query(attempt.node_question(self._things, leaf), f"SELECT ?found WHERE {{ {where} }}")
        return {self._parse_cell(values) for (values,) in rows}

    def answer_by_query(self, sparql: str, kind: str) -> set[int]:
        """Run one query for the whole question; return its answers."""
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
        """The answers of the query that the tool generates; None if it would not return the gold values."""
        expected = {value for _, value in relation_pairs(self._things.universe, leaf.relation, [head])}
        question = attempt.question_about(self._things, leaf, head)
        arguments: dict[str, Any] = {"question": question, "entity_ids": [item]}
        generated = self._attempt.preview_call("generateQuery", **arguments)
        if (
            generated is None
            or not generated["candidates"]
            or self._read_answers(self._attempt.preview_call("runQuery", sparql=_first_candidate(generated)), leaf)
            != expected
        ):
            return None
        generated = self._attempt.call_tool(
            f"{question} I let the query for the graph be written.", "generateQuery", **arguments
        )
        reading = generated["candidates"][0]["reading"]
        table = self._attempt.call_tool(
            f"It is read as: {reading}. That is what I ask.", "runQuery", sparql=_first_candidate(generated)
        )
        return self._read_answers(table, leaf)

    def _read_answers(self, table: dict[str, Any] | None, leaf: ReasoningNode) -> set[int] | None:
        """The values in a table with one column; None for any other table."""
        if table is None or len(table["columns"]) != 1:
            return None
        try:
            return {self._parse_cell(cell, _result_kind(leaf)) for (cell,) in table["rows"] if cell is not None}
        except (KeyError, ValueError):
            # The query asks for something else, whose cells are no such values.
            return None

    def _run_query(self, thought: str, sparql: str) -> list[list[Any]]:
        table = self._attempt.call_tool(thought, "runQuery", sparql=sparql)
        if table["truncated"]:
            raise GoldTraceError("the graph has more rows than a query may give")
        return [row for row in table["rows"] if None not in row]

    def _parse_cell(self, cell: dict[str, Any], kind: str = "person") -> int:
        """The number of the thing, day or count in a cell."""
        if cell["kind"] == "entity":
            return self._things.items.locate(cell["value"])[1]
        return date.fromisoformat(cell["value"][:10]).toordinal() if kind == "day" else int(cell["value"])


def _result_kind(leaf: ReasoningNode) -> str:
    """The kind of the values that an operation looks up; a filter looks up facts."""
    return FACT_VALUE_KINDS.get(leaf.relation, leaf.kind)


def _first_candidate(generated: dict[str, Any]) -> str:
    return str(generated["candidates"][0]["sparql"])


def _triple_pattern(leaf: ReasoningNode, start: str, end: str) -> str:
    if leaf.relation in PROPERTY_IDS:
        return f"{start} wdt:{PROPERTY_IDS[leaf.relation]} {end} ."
    if leaf.relation == "parent":
        return f"{start} wdt:{PROPERTY_IDS['father']}|wdt:{PROPERTY_IDS['mother']} {end} ."
    base, women = GENDERED_RELATIONS[leaf.relation]
    gender = FEMALE if women else MALE
    return f"{start} wdt:{PROPERTY_IDS[base]} {end} . {end} wdt:{PROPERTY_IDS['gender']} wd:{gender} ."


SENTENCE_KINDS = {relation: gendered_words(relation) for relation in ("parent", "child", "sibling", "spouse")}
"""The kinds of sentences that state a relation; another relation has sentences of its own kind."""
_CHILD_KINDS = ("child", *gendered_words("child"))


class ArticleFactReader:
    """Reads facts from the sentences of articles."""

    def __init__(self, things: ThingCatalog, style: ProseStyle) -> None:
        self._things, self._style = things, style

    def find_stated_values(
        self, relation: str, head: int, expected: Iterable[int], sentences: Iterable[str]
    ) -> set[int]:
        """The expected values that the sentences of the head's article state."""
        universe = self._things.universe
        subjects = {universe.names[head], universe.titles[head]}
        observed = {
            name
            for sentence in sentences
            for clause in split_clauses(sentence)
            for subject in subjects
            for name in self._listed_values(relation, subject, clause)
        }
        kind = FACT_VALUE_KINDS.get(relation, "person")
        return {value for value in expected if self._value_text(kind, value) in observed}

    def _value_text(self, kind: str, value: int) -> str:
        return (
            self._things.answer_text(kind, value)
            if self._style.date_style == "digits"
            else self._things.sentence_text(kind, value)
        )

    def _listed_values(self, relation: str, subject: str, sentence: str) -> Iterator[str]:
        """Yield the values that a sentence lists for the subject's relation."""
        for kind in SENTENCE_KINDS.get(relation, (relation,)):
            for phrasing in self._style.phrasings[kind].formats:
                before, _, after = phrasing.format(subject, "\x00").partition("\x00")
                if sentence.startswith(before) and sentence.endswith(after):
                    inner = sentence[len(before) : len(sentence) - len(after)]
                    first, _, last = inner.rpartition(self._style.last_separator)
                    yield from (inner, last, *first.split(", "))


class WebPageFactReader:
    """Reads facts from the sentences of web pages."""

    def __init__(self, things: ThingCatalog) -> None:
        self._things = things

    def find_stated_pairs(self, relation: str, expected: ValuePairs, sentences: Iterable[str]) -> ValuePairs:
        """The expected pairs that the sentences state."""
        stated = set(sentences)
        return {pair for pair in expected if not stated.isdisjoint(self._phrasings(relation, *pair))}

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
            # Web pages write dates in words even if articles write digits.
            value_text = format_english_date(value) if kind == "day" else self._things.sentence_text(kind, value)
            yield from self._format_fact(relation, head, value_text)

    def _format_fact(self, kind: str, person: int, value: str) -> Iterator[str]:
        for past in (False, True):
            phrasings = load_web_phrasings(past=past)
            for phrasing in phrasings[kind].formats if kind in phrasings else ():
                yield phrasing.format(self._person_text(person), value)

    def _person_text(self, row: int) -> str:
        universe = self._things.universe
        return f"{title_for(female=bool(universe.female[row]))} {universe.titles[row]}"


class TextLookup:
    """The article lookups of one attempt; `source_facts` are the facts that articles state."""

    def __init__(self, attempt: GoldAttempt, things: ThingCatalog, source_facts: Universe, style: ProseStyle) -> None:
        self._attempt, self._things, self._source_facts = attempt, things, source_facts
        self._articles = ArticleFactReader(things, style)

    def find_title(self, kind: str, number: int) -> str:
        """The title of the article about a thing, searched by name unless it was observed."""
        title = self._things.sentence_text(kind, number)
        if not self._attempt.has_seen_text(title):
            # Only namesakes have a title that differs from their name.
            self._search(f"Several people have that name; I need the article about {title}.", title.partition(" (")[0])
            if not self._attempt.has_observed_value(title):
                raise GoldTraceError(f"wikisearch does not find the article {title!r} by its name")
        return title

    def search_start(self, kind: str, number: int) -> None:
        """Search for a thing that the question names."""
        title = self._things.sentence_text(kind, number)
        if not self._attempt.has_observed_value(title):
            self._search(f"The question starts from {title}; I look for the article first.", title)

    def forward(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        """Read the values in the articles about the heads."""
        observed = set()
        for head in heads:
            title = self.find_title(leaf.inputs[0].kind, head)
            question = attempt.question_about(self._things, leaf, head)
            read = self._attempt.call_tool(f"{question} The article may tell.", "read", title=title, question=question)
            expected = [value for _, value in relation_pairs(self._source_facts, leaf.relation, [head])]
            observed |= {(head, value) for value in self._find_stated_values(leaf, head, expected, read["sentences"])}
        return observed

    def backward(self, leaf: ReasoningNode, value: int) -> set[int]:
        """Search for the people whose article states that the fact has the value."""
        value_text = self._things.sentence_text(FACT_VALUE_KINDS[leaf.relation], value)
        question = attempt.node_question(self._things, leaf)
        expected = people_with_fact(self._source_facts, leaf.relation, value)
        observed: set[int] = set()
        labels = PROPERTY_LABELS[PROPERTY_IDS[leaf.relation]]
        queries = (value_text, question, *(f"{label} {value_text}" for label in labels))
        for query in queries:
            preview = self._attempt.preview_call("wikisearch", query=query)
            if self._matching_hits(preview, expected - observed) or query == queries[-1]:
                hits = self._search(f"{question} I search the articles.", query)
                observed |= {
                    row
                    for row, hit in self._matching_hits({"hits": hits}, expected)
                    if self._hit_states_fact(leaf, row, value, hit)
                }
            if observed == expected:
                break
        return observed

    def _matching_hits(self, search: dict[str, Any] | None, expected: set[int]) -> list[tuple[int, dict[str, str]]]:
        """The hits about expected people."""
        hits = [(self._things.items.locate(hit["entity"]), hit) for hit in (search or {"hits": []})["hits"]]
        return [(row, hit) for (kind, row), hit in hits if kind == "person" and row in expected]

    def _hit_states_fact(self, leaf: ReasoningNode, row: int, value: int, hit: dict[str, str]) -> bool:
        """Whether the snippet of a hit states the fact, or else its article."""
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
            texts = list(sentences)
            names = {value: self._things.sentence_text(leaf.kind, value) for value in expected}
            return {value for value, name in names.items() if any(f" in {name}." in text for text in texts)}
        return self._articles.find_stated_values(leaf.relation, head, expected, sentences)


_SEARCH_WORDS = {
    **dict.fromkeys(("child", "daughter", "son"), "father mother"),
    **dict.fromkeys(PLACE_RELATIONS, "town region"),
    **dict.fromkeys(("birth", "death", "wedding"), "Courier notices"),
    "residence": "residents settled residence",
    "job": "register of trades became",
    "hobby": "fans took up",
}
"""Search words by relation: pages name the parents of a child, the towns of a region, the people of a trade."""

_MARK_REASONS = {OUT_OF_DATE: "is out of date", NAMESAKE: "is about somebody else of that name"}

PageMarks = Mapping[str, Sequence[dict[str, Any]]]
"""The marks of wrong facts by the address of the page, as in pages.jsonl."""


class WebLookup:
    """The web lookups of one attempt; `source_facts` are the facts that pages state, `marks` their wrong facts."""

    def __init__(self, attempt: GoldAttempt, things: ThingCatalog, source_facts: Universe, marks: PageMarks) -> None:
        self._attempt, self._things, self._source_facts, self._marks = attempt, things, source_facts, marks
        self._pages = WebPageFactReader(things)

    def forward(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        """Look up the values of the heads, one search after the other."""
        observed: ValuePairs = set()
        for head in heads:
            expected = relation_pairs(self._source_facts, leaf.relation, [head])
            name = self._things.sentence_text(leaf.inputs[0].kind, head)
            words = (attempt.relation_word(leaf), _SEARCH_WORDS.get(leaf.relation, ""))
            others = [f"{name} {word}" for word in words if word]
            observed |= self._look_up_pairs(
                leaf, expected, (attempt.question_about(self._things, leaf, head), *others, name)
            )
        return observed

    def backward(self, leaf: ReasoningNode, value: int) -> set[int]:
        """Look up the people for whom a page states that the fact has the value."""
        expected = {(row, value) for row in people_with_fact(self._source_facts, leaf.relation, value)}
        fact_text = self._things.sentence_text(FACT_VALUE_KINDS[leaf.relation], value)
        observed = self._look_up_pairs(leaf, expected, (attempt.node_question(self._things, leaf), fact_text))
        return {row for row, _ in observed}

    def _look_up_pairs(self, leaf: ReasoningNode, expected: ValuePairs, queries: Sequence[str]) -> ValuePairs:
        """Search with one query after the other until all expected pairs are found.

        The first query is the question; the last is the name that the pairs are about.
        """
        question, name = queries[0], queries[-1]
        observed: ValuePairs = set()
        for query in queries:
            selected = self._select_pages(leaf, expected - observed, query)
            if not selected and query != name:
                continue
            search = self._attempt.call_tool(f"{question} A web page may tell.", "websearch", query=query)
            for hit in search["pages"]:
                self._note_wrong_facts(leaf, name, hit, [hit["snippet"]])
            for title, address in selected:
                page = self._attempt.call_tool(
                    f"The page {title} may tell it.", "read", title=address, question=question
                )
                self._note_wrong_facts(leaf, name, page, page["sentences"])
                observed |= self._find_stated_pairs(leaf, expected, page["sentences"])
            if observed == expected:
                return observed
        return observed

    def _note_wrong_facts(self, leaf: ReasoningNode, name: str, page: dict[str, Any], sentences: Sequence[str]) -> None:
        """Add a finding for each sentence with a wrong fact about this name."""
        for mark in self._marks.get(page["address"], ()):
            person, stated_value = mark["person"]["text"], (mark["stated"] or {}).get("text")
            if mark["fact"] == leaf.relation and name in (person, stated_value) and mark["sentence"] in sentences:
                reason = _MARK_REASONS[mark["why"]]
                self._attempt.add_finding(f"What {page['title']} ({page['date']}) says of {person} {reason}.")

    def _select_pages(self, leaf: ReasoningNode, expected: ValuePairs, query: str) -> list[tuple[str, str]]:
        """Select the pages among the hits that each state a further expected pair, as (title, address)."""
        search = self._attempt.preview_call("websearch", query=query)
        selected, missing = [], set(expected)
        for hit in search["pages"] if search else ():
            stated = self._find_stated_pairs(leaf, missing, self._attempt.preview_page(hit["address"]))
            if stated:
                selected.append((hit["title"], hit["address"]))
                missing -= stated
        return selected

    def _find_stated_pairs(self, leaf: ReasoningNode, expected: ValuePairs, sentences: list[str]) -> ValuePairs:
        if leaf.relation in PLACE_RELATIONS:
            names = {pair: self._things.sentence_text(leaf.kind, pair[1]) for pair in expected}
            return {pair for pair, name in names.items() if any(f" {name}." in sentence for sentence in sentences)}
        return self._pages.find_stated_pairs(leaf.relation, expected, sentences)
