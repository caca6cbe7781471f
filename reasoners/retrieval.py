"""Retrieval for reasoners: searches of text, graph and web by the tools of the task, as passages with ids.

Every retrieval is a step of the trace with an ordinary tool, so that it can be shown, rated, replayed and forked. The
sources are read at the same time.
"""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any
from uuid import UUID

from showhow.reasoners.base import Branch, Move, Parallel
from showhow.reasoners.graph_retrieval import FACT_COLUMNS, IDS_PER_QUERY, GraphRetriever, RetrievalGenerator
from showhow.reasoners.skills.values import (
    AnswerValue,
    GraphFact,
    OfferedRelation,
    SourcePassage,
    best_sentences,
    cell_value,
    format_values,
    linked_value,
    observed_data,
    read_passages,
    table_passages,
)
from showhow.reasoners.sources import (
    MAX_HEADS,
    MAX_WIDER_READS,
    MAX_WIDER_SEARCHES,
    PAGES,
    TEXTS,
    RetrievalQuery,
    SearchedSource,
)
from showhow.tools.tool import ToolResult
from showhow.worlds import terms
from showhow.worlds.embedded.text import strip_parenthesis
from showhow.worlds.lexicon import kinship
from showhow.worlds.sentences import split_sentences


class Retriever(GraphRetriever):
    """Retrieves for one run from all sources."""

    def retrieve(
        self, sources: Sequence[str], query: RetrievalQuery, node: str, parent: UUID | None
    ) -> RetrievalGenerator:
        """Retrieve from the sources at the same time; a source that fails or has nothing gives no passage."""
        branches = [
            Branch(source, _SOURCES[source](self, query, f"{node}/{source}", parent))
            for source in dict.fromkeys(sources)
        ]
        results: list[list[SourcePassage]] = yield Parallel(branches)
        return [passage for passages in results for passage in passages]

    def retrieve_each(
        self, sources: Sequence[str], query: RetrievalQuery, node: str, parent: UUID | None
    ) -> Generator[Move, Any, list[tuple[AnswerValue, list[SourcePassage]]]]:
        """Retrieve for each value of a query apart, from every source; returns the values with their passages."""
        heads = query.heads[: self._most_heads]
        yield from self._note_left_out(len(query.heads), len(heads), node, parent)
        branches = [
            Branch(
                str(number),
                self.retrieve(
                    sources,
                    replace(query, question=query.question_about(head), heads=[head]),
                    f"{node}/each{number}",
                    parent,
                ),
            )
            for number, head in enumerate(heads)
        ]
        results: list[list[SourcePassage]] = yield Parallel(branches)
        return list(zip(heads, results, strict=True))

    def retrieve_wider(
        self, sources: Sequence[str], query: RetrievalQuery, node: str, parent: UUID | None
    ) -> RetrievalGenerator:
        """Look for the same again: by other words, in more texts, and at all facts of the entities in the graph.

        Where others define a relation, as their parents make people sisters, what leads there is looked up too.
        """
        definition = None if query.is_name else kinship.find_defined_relation(query.words or query.question)
        passages = yield from self._look_around(sources, query, f"{node}/wider", parent)
        if definition is None:
            return passages
        values = query.values
        for number, relation in enumerate(definition.steps[:-1], 1):
            step = RetrievalQuery(f"{relation} of {format_values(values)}", values, relation)
            around = yield from self._look_around(sources, step, f"{node}/by{number}", parent)
            passages += around
            values = yield from self._link_related(values, relation, around, f"{node}/by{number}/link", parent)
        last = definition.steps[-1]
        step = RetrievalQuery(f"{last} of {format_values(values)}", values, last)
        return passages + ((yield from self._look_around(sources, step, f"{node}/by", parent)) if values else [])

    def _look_around(
        self, sources: Sequence[str], query: RetrievalQuery, node: str, parent: UUID | None
    ) -> RetrievalGenerator:
        reads = max(1, MAX_WIDER_READS // max(len(query.values), 1))
        if not query.is_name and (TEXTS.name in sources or PAGES.name in sources):
            size = len(query.values)
            yield from self._note_left_out(size, min(size, MAX_WIDER_SEARCHES), node, parent)
        branches = []
        for source in (TEXTS, PAGES):
            branches += [
                Branch(
                    f"{source.name}{number}",
                    self._search_once(source, question, searches, f"{node}/{source.name}/{number}", parent, reads),
                )
                for number, (question, searches) in enumerate(query.wider_searches)
                if source.name in sources
            ]
        if "graph" in sources:
            branches.append(Branch("graph", self._list_facts_of(query, f"{node}/graph", parent)))
        results: list[list[SourcePassage]] = yield Parallel(branches)
        return [passage for passages in results for passage in passages]

    def _list_facts_of(self, query: RetrievalQuery, node: str, parent: UUID | None) -> RetrievalGenerator:
        """The facts of the entities that a query is about; without any, the rows that it asks for."""
        entities = []
        for number, value in enumerate([] if query.is_name else query.values[:IDS_PER_QUERY]):
            if value.entity is not None:
                entities.append(value.entity)
            elif number < MAX_HEADS and (entity := (yield from self.link(value.text, f"{node}/id{number}", parent))):
                entities.append(entity)
        if entities:
            return (yield from self._list_facts(entities, query.question, node, parent, MAX_HEADS))
        sparql = yield from self._write_query(query.question, [], node, parent)
        return [] if sparql is None else (yield from self._run_query(sparql, node, parent))

    def _link_related(
        self,
        values: Sequence[AnswerValue],
        relation: str,
        passages: Sequence[SourcePassage],
        node: str,
        parent: UUID | None,
    ) -> Generator[Move, Any, list[AnswerValue]]:
        """What passages name as related to values: the other ends of rows, and the articles that sentences name."""
        words = {*kinship.words_for(relation)}
        keys = {name for value in values for name in (value.key, value.text)}
        steps = dict.fromkeys(passage.step for passage in passages if passage.source == "graph")
        rows = [value for step in steps for value in _list_related(self._data_by_step[step], relation, keys)]
        linked = {value.key: value for value in rows}
        sentences = [
            sentence
            for passage in passages
            if passage.source != "graph"
            for sentence in split_sentences(passage.text)
            if words & set(re.findall(r"\w+", sentence.casefold()))
            and any(value.text in sentence or value.text == passage.title for value in values)
        ]
        searches = [
            Branch(str(number), self._call("wikisearch", {"query": sentence}, f"{node}{number}", parent))
            for number, sentence in enumerate(list(dict.fromkeys(sentences))[:MAX_HEADS])
            if "wikisearch" in self._offered
        ]
        results: list[ToolResult] = yield Parallel(searches)
        for search in results:
            for hit in observed_data(search).get("hits", ()):
                name = strip_parenthesis(hit["title"])
                if any(name in sentence for sentence in sentences) and not keys & {hit["title"], hit["entity"]}:
                    value = AnswerValue(text=hit["title"], entity=hit["entity"])
                    linked.setdefault(value.key, value)
        return list(linked.values())

    def guess_answers(self, query: RetrievalQuery, passages: Sequence[SourcePassage]) -> list[AnswerValue]:
        """What the graph makes likely answers: the only entity of a name, or the few that one query alone returned."""
        retrieved = [self._data_by_step.get(step, {}) for step in dict.fromkeys(passage.step for passage in passages)]
        if query.is_name:
            named = [entity for data in retrieved for entity in data.get("entities", ()) if not query.words]
            same = [entity for entity in named if entity["label"].casefold() == query.heads[0].text.casefold()]
            return [AnswerValue(text=entity["label"], entity=entity["id"]) for entity in same] if len(same) == 1 else []
        rows = retrieved[0].get("rows", ()) if len(retrieved) == 1 else ()
        if len(rows) > MAX_HEADS or any(cell is None or cell["kind"] != "entity" for row in rows for cell in row):
            return []
        owners = [query.heads[0].key] if len(query.heads) == 1 else []
        if retrieved[:1] and retrieved[0].get("columns", ())[:1] == ["known"]:
            return [cell_value(row[1], row[0]["value"]) for row in rows if len(row) == 2]
        return [cell_value(row[0], owner) for row in rows for owner in owners if len(row) == 1]

    def list_neighbours(
        self, value: AnswerValue, relation: OfferedRelation, node: str, parent: UUID | None
    ) -> Generator[Move, Any, tuple[list[GraphFact], int | None]]:
        """The facts of one relation of a value, literals included, and how many the graph has; None if unknown."""
        tool = "getTailEntities" if relation.direction == "head" else "getHeadEntities"
        listed = yield from self._call(tool, {"entity": value.entity, "relation": relation.id}, node, parent)
        facts = [
            GraphFact(id=f"{listed.step_position}.{number}", known=value, relation=relation, other=linked_value(link))
            for number, link in enumerate(observed_data(listed).get("values", ()), 1)
        ]
        return facts, observed_data(listed).get("total")

    def follow_relation(
        self, relation: str, direction: str, values: Sequence[AnswerValue], node: str, parent: UUID | None
    ) -> Generator[Move, Any, tuple[list[AnswerValue], list[SourcePassage]]]:
        """The values at the other end of a relation, each with the known value it belongs to, and the rows."""
        known: dict[str, AnswerValue] = {value.entity: value for value in values if value.entity is not None}
        pairs: list[AnswerValue] = []
        passages: list[SourcePassage] = []
        nodes_of_values = [node for node in map(terms.format_node, known) if node is not None]
        for start in range(0, len(nodes_of_values), IDS_PER_QUERY):
            nodes = " ".join(nodes_of_values[start : start + IDS_PER_QUERY])
            predicate = terms.format_predicate(relation)
            pattern = f"?known {predicate} ?other" if direction == "head" else f"?other {predicate} ?known"
            sparql = f"SELECT DISTINCT ?known ?other WHERE {{ VALUES ?known {{ {nodes} }} {pattern} }}"
            table = yield from self._call("runQuery", {"sparql": sparql}, f"{node}/{start}", parent)
            passages += table_passages(table)
            pairs += [
                cell_value(other, known[of["value"]].key)
                for of, other in observed_data(table).get("rows", ())
                if of is not None and other is not None and of["value"] in known
            ]
        return pairs, passages

    def read_about(
        self, value: AnswerValue, question: str, node: str, parent: UUID | None
    ) -> Generator[Move, Any, list[tuple[SourcePassage, float]]]:
        """The passages of the article about an entity that best match the question, with their scores.

        Of several articles with its name, and of those that a search finds, the one about the entity is read.
        """
        arguments = {"title": value.text, "question": question}
        article = yield from self._call("read", arguments, f"{node}/article", parent)
        hits = observed_data(article).get("hits", ())
        if article.observation is None:
            search = yield from self._call("wikisearch", {"query": value.text}, f"{node}/search", parent)
            hits = observed_data(search).get("hits", ())
        titles = [hit["title"] for hit in hits if hit.get("entity") == value.entity]
        if titles:
            arguments = {"title": titles[0], "question": question}
            article = yield from self._call("read", arguments, f"{node}/read", parent)
        scores = [best["score"] for best in observed_data(article).get("best", ())]
        return list(zip(best_sentences(article, "text"), scores, strict=True))

    def _retrieve_text(self, query: RetrievalQuery, node: str, parent: UUID | None) -> RetrievalGenerator:
        if self._screened:
            return self._search_paragraphs(query, node, parent)
        return self._search_and_read(TEXTS, query, node, parent)

    def _search_paragraphs(self, query: RetrievalQuery, node: str, parent: UUID | None) -> RetrievalGenerator:
        """The best paragraphs of the articles that one search finds for the question, whatever it is about."""
        before = f"{query.context}, " if query.context else ""
        arguments = {
            "query": f"{before}{query.question}",
            "limit": self._passages_per_source,
            "screened": self._screened,
        }
        search = yield from self._call(TEXTS.tool, arguments, f"{node}/search", parent)
        return [
            SourcePassage(
                id=f"{search.step_position}.{number}", source=TEXTS.name, title=hit["title"], text=hit["snippet"]
            )
            for number, hit in enumerate(observed_data(search).get(TEXTS.hits, ()), 1)
        ]

    def _retrieve_web(self, query: RetrievalQuery, node: str, parent: UUID | None) -> RetrievalGenerator:
        return self._search_and_read(PAGES, query, node, parent)

    def _search_and_read(
        self, source: SearchedSource, query: RetrievalQuery, node: str, parent: UUID | None
    ) -> RetrievalGenerator:
        listed = query.list_searches(self._most_heads)
        yield from self._note_left_out(len(query.heads), min(len(query.heads), len(listed)), node, parent)
        # Values without an article of their own may be searched for by the same words.
        searches: dict[tuple[str | None, str], AnswerValue | None] = {}
        for head, words in listed:
            searches.setdefault((None if head is None or source is PAGES else head.entity, words), head)
        reads = self._passages_per_source if len(searches) == 1 else 1
        branches = [
            Branch(
                str(number),
                self._search_once(source, query.question_about(head), [words], f"{node}/{number}", parent, reads)
                if head is None or entity is None
                else self._read_article(query, head, words, f"{node}/{number}", parent, reads),
            )
            for number, ((entity, words), head) in enumerate(searches.items())
        ]
        results: list[list[SourcePassage]] = yield Parallel(branches)
        return [passage for passages in results for passage in passages]

    def _read_article(  # noqa: PLR0913, PLR0917 - each is a part of the search
        self, query: RetrievalQuery, head: AnswerValue, words: str, node: str, parent: UUID | None, reads: int
    ) -> RetrievalGenerator:
        """Read the article about a known entity; search where there is none of its name."""
        question = query.question_about(head)
        article = yield from self._call("read", {"title": head.text, "question": question}, f"{node}/article", parent)
        passages = read_passages(article, "text")
        return passages or (yield from self._search_once(TEXTS, question, [words], node, parent, reads))

    def _search_once(  # noqa: PLR0913, PLR0917 - each is a part of the search
        self,
        source: SearchedSource,
        question: str,
        searches: Sequence[str],
        node: str,
        parent: UUID | None,
        reads: int,
    ) -> RetrievalGenerator:
        """Search, then read the first hits of all searches; the snippets of the others are passages too."""
        results: list[ToolResult] = yield Parallel(
            [
                Branch(
                    str(number),
                    self._call(
                        source.tool, {"query": words, **self._search_limit}, f"{node}/search{number or ''}", parent
                    ),
                )
                for number, words in enumerate(searches)
            ]
        )
        ranked = [
            (rank, search, hit)
            for search in results
            for rank, hit in enumerate(observed_data(search).get(source.hits, ()), 1)
        ]
        ranked.sort(key=lambda entry: entry[0])
        first: dict[str, tuple[int, ToolResult, Mapping[str, Any]]] = {}
        for entry in ranked:
            first.setdefault(entry[2][source.address], entry)
        pages: list[ToolResult] = yield Parallel(
            [
                Branch(
                    str(number),
                    self._call("read", {"title": title, "question": question}, f"{node}/read{number}", parent),
                )
                for number, title in enumerate(list(first)[:reads])
            ]
        )
        snippets = [
            SourcePassage(
                id=f"{search.step_position}.{rank}", source=source.name, title=hit["title"], text=hit["snippet"]
            )
            for rank, search, hit in list(first.values())[reads:]
        ]
        return [passage for page in pages for passage in read_passages(page, source.name)] + snippets


def _list_related(table: Mapping[str, Any], relation: str, keys: Set[str]) -> Iterator[AnswerValue]:
    """The entities that rows of facts name as related to the things with these keys."""
    columns = tuple(table["columns"])
    if columns == FACT_COLUMNS:
        names = {relation, *kinship.narrower_relations(relation)}
    elif columns == FACT_COLUMNS[::-1]:
        names = {inverse.relation for inverse in kinship.inverse_relations(relation)}
    else:
        return
    for row in table["rows"]:
        known, by, other = row if columns == FACT_COLUMNS else row[::-1]
        if known["value"] in keys and other["kind"] == "entity" and by.get("label", "").casefold() in names:
            yield cell_value(other, None)


_SOURCES = {
    "graph": Retriever._retrieve_graph,
    "text": Retriever._retrieve_text,
    "web": Retriever._retrieve_web,
}
