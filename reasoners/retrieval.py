"""Retrieval for reasoners: searches of text, graph and web by the tools of the task, as passages with ids.

Every retrieval is a step of the trace with an ordinary tool, so that it can be shown, rated, replayed and forked. The
sources are read at the same time.
"""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from operator import itemgetter
from typing import Any
from uuid import UUID

from showhow.reasoners.base import Action, Branch, Move, Parallel, Task
from showhow.reasoners.provenance import OriginTracer
from showhow.reasoners.skills.values import (
    AnswerValue,
    GraphFact,
    OfferedRelation,
    SourcePassage,
    best_sentences,
    cell_value,
    entity_passages,
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
    choose_relations,
)
from showhow.tools.search import DEFAULT_RESULTS
from showhow.tools.text_to_sparql.queries import generalize_query
from showhow.tools.tool import ToolResult
from showhow.worlds import terms
from showhow.worlds.embedded.text import strip_parenthesis
from showhow.worlds.lexicon import kinship
from showhow.worlds.sentences import split_sentences

IDS_PER_QUERY = 100
"""Entities in one query."""
MAX_SAMPLED = 3
"""Values whose relations are listed; things of one kind have much the same relations."""
MAX_FACT_ROWS = 100
"""Facts about entities that are shown."""
FACT_COLUMNS = ("known", "relation", "other")
"""The columns of a table of facts about entities as heads; as tails they stand the other way round."""
RELATION_TOOLS = {"head": "getRelationsAsHead", "tail": "getRelationsAsTail"}
"""The tools that list the relations of an entity, by the end at which it is."""

RetrievalGenerator = Generator[Move, Any, list[SourcePassage]]


class Retriever:
    """Retrieves for one run.

    `passages_per_source` limits the texts that are read after a search, `most_heads` the values of a set that are
    looked up one by one. A step tells how many values were left out.
    """

    def __init__(self, task: Task, passages_per_source: int = 3, most_heads: int = MAX_HEADS) -> None:
        self._offered = {tool.name for tool in task.tools}
        self._passages_per_source = passages_per_source
        self._search_limit = {"limit": passages_per_source} if passages_per_source > DEFAULT_RESULTS else {}
        self._most_heads = most_heads
        self._data_by_step: dict[int, Any] = {}
        self._seen_ids: set[str] = set()
        self._tracer = OriginTracer(task.question)

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

    def drop_unknown_ids(
        self, values: Sequence[AnswerValue], node: str, parent: UUID | None
    ) -> Generator[Move, Any, list[AnswerValue]]:
        """The values without ids that neither a step of this run showed nor the graph has for something of that name.

        A model may make up an id, which would be looked up as if it were the thing's.
        """
        unseen = {value.entity for value in values if value.entity is not None} - self._seen_ids
        labels: dict[str, str] = {}
        if unseen and "getLabel" in self._offered:
            arguments = {"ids": sorted(unseen)}
            labelled = yield from self._call("getLabel", arguments, node, parent)
            labels = {entry["id"]: entry["label"].casefold() for entry in observed_data(labelled).get("labels", ())}

        def is_known(value: AnswerValue) -> bool:
            text, label = value.text.casefold(), labels.get(value.entity or "")
            return value.entity not in unseen or (label is not None and (label in text or text in label))

        confirmed = [value if is_known(value) else value.model_copy(update={"entity": None}) for value in values]
        self._seen_ids |= {value.entity for value in confirmed if value.entity is not None}
        return confirmed

    def _note_left_out(self, size: int, kept: int, node: str, parent: UUID | None) -> Generator[Move, Any, None]:
        """Record a step that tells how many values of a set are not looked up, if any."""
        if kept < size:
            yield Action(
                f"I look up {kept} of {size:,} things; {size - kept:,} are left out.",
                parent=parent,
                node=f"{node}/left out",
                data={"things": size, "looked_up": kept, "left_out": size - kept},
                reuse=True,
            )

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

    def link(self, name: str, node: str, parent: UUID | None) -> Generator[Move, Any, str | None]:
        """The id of the entity with this name, or of the best candidate; None if the graph has none."""
        candidates = yield from self._call("getWikiDataID", {"title": name}, node, parent)
        entities = observed_data(candidates).get("entities", ())
        exact = [entity for entity in entities if name.casefold() in {entity["label"].casefold(), entity["title"]}]
        best = (*exact, *entities)
        return best[0]["id"] if best else None

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

    def list_relations(
        self, values: Sequence[AnswerValue], node: str, parent: UUID | None
    ) -> Generator[Move, Any, list[OfferedRelation]]:
        """The relations of these values in both directions, each once."""
        calls = [
            Branch(
                f"{direction}{number}",
                self._call(tool, {"entity": value.entity}, f"{node}/{direction}{number}", parent),
            )
            for number, value in enumerate(values)
            if value.entity is not None
            for direction, tool in RELATION_TOOLS.items()
        ]
        results: list[ToolResult] = yield Parallel(calls)
        offered = {
            (link["id"], link["direction"]): OfferedRelation(
                id=link["id"], label=link["label"], direction=link["direction"]
            )
            for result in results
            for link in observed_data(result).get("relations", ())
        }
        return list(offered.values())

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
        return self._search_and_read(TEXTS, query, node, parent)

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

    def _retrieve_graph(self, query: RetrievalQuery, node: str, parent: UUID | None) -> RetrievalGenerator:
        entities: dict[str, AnswerValue] = {}
        nameless = [head for head in query.values if head.entity is None]
        left_out = {head.key for head in nameless[self._most_heads :]}
        yield from self._note_left_out(len(query.values), len(query.values) - len(left_out), f"{node}/ids", parent)
        for number, head in enumerate(query.values):
            entity = head.entity
            if entity is None:
                if head.key in left_out:
                    continue
                candidates = yield from self._call("getWikiDataID", {"title": head.text}, f"{node}/id{number}", parent)
                named = observed_data(candidates).get("entities", ())
                if query.is_name and (not query.words or _has_label(named, head.text)):
                    return entity_passages(candidates)
                # What a search describes, such as a person born on a day, is not what "person" is the name of.
                entity = None if query.is_name or not named else named[0]["id"]
            if entity is not None:
                entities.setdefault(entity, head)
        if query.tails:
            return (yield from self._find_relations(list(entities), query.tails, node, parent))
        if query.is_about_each and len(entities) > 1:
            return (yield from self._query_for_each(query, entities, node, parent))
        together = list(entities)[:IDS_PER_QUERY]
        yield from self._note_left_out(len(entities), len(together), node, parent)
        sparql = yield from self._write_query(query.question, together, node, parent)
        if sparql is None:
            return (yield from self._list_facts(together, query.question, node, parent))
        return (yield from self._run_query(sparql, node, parent))

    def _find_relations(
        self, heads: Sequence[str], tails: Sequence[AnswerValue], node: str, parent: UUID | None
    ) -> RetrievalGenerator:
        """The facts that join one of the heads with one of the tails, either way round."""
        linked = []
        for number, tail in enumerate(tails[: self._most_heads]):
            linked.append(tail.entity or (yield from self.link(tail.text, f"{node}/tail{number}", parent)))
        ends = [" ".join(filter(None, map(terms.format_node, filter(None, ids)))) for ids in (heads, linked)]
        if not all(ends):
            return []
        passages: list[SourcePassage] = []
        for direction, columns in (("head", FACT_COLUMNS), ("tail", FACT_COLUMNS[::-1])):
            variables = " ".join(f"?{column}" for column in columns)
            sparql = (
                f"SELECT DISTINCT {variables} WHERE {{ VALUES ?known {{ {ends[0]} }} "
                f"VALUES ?other {{ {ends[1]} }} {variables} }}"
            )
            passages += yield from self._run_query(sparql, f"{node}/{direction}", parent)
        return passages

    def _query_for_each(
        self, query: RetrievalQuery, entities: Mapping[str, AnswerValue], node: str, parent: UUID | None
    ) -> RetrievalGenerator:
        """Ask the same of each entity: by one query with all of them if it allows that, else one by one."""
        first, head = next(iter(entities.items()))
        sparql = yield from self._write_query(query.question_about(head), [first], node, parent)
        if sparql is None:
            return (yield from self._list_facts(list(entities), query.question, node, parent))
        ids, passages = list(entities), list[SourcePassage]()
        for start in range(0, len(ids), IDS_PER_QUERY):
            general = generalize_query(sparql, first, ids[start : start + IDS_PER_QUERY])
            if general is None:
                break
            passages += yield from self._run_query(general, f"{node}/{start}" if start else node, parent)
        else:
            return passages
        yield from self._note_left_out(len(ids), len(ids[: self._most_heads]), node, parent)
        results: list[list[SourcePassage]] = yield Parallel(
            [
                Branch(entity, self._query_one(query.question_about(other), entity, f"{node}/{number}", parent))
                for number, (entity, other) in enumerate(list(entities.items())[: self._most_heads])
            ]
        )
        return [passage for passages in results for passage in passages]

    def _query_one(self, question: str, entity: str, node: str, parent: UUID | None) -> RetrievalGenerator:
        sparql = yield from self._write_query(question, [entity], node, parent)
        return [] if sparql is None else (yield from self._run_query(sparql, node, parent))

    def _write_query(
        self, question: str, entities: Sequence[str], node: str, parent: UUID | None
    ) -> Generator[Move, Any, str | None]:
        """The likeliest query for a question; None if none is written, which its step explains."""
        arguments = {"question": question, "entity_ids": list(entities)}
        written = yield from self._call("generateQuery", arguments, f"{node}/write", parent)
        candidates = observed_data(written).get("candidates", ())
        return candidates[0]["sparql"] if candidates else None

    def _run_query(self, sparql: str, node: str, parent: UUID | None) -> RetrievalGenerator:
        table = yield from self._call("runQuery", {"sparql": sparql}, f"{node}/run", parent)
        return table_passages(table)

    def _list_facts(
        self, entities: Sequence[str], question: str, node: str, parent: UUID | None, sampled: int = MAX_SAMPLED
    ) -> RetrievalGenerator:
        """The facts of entities themselves, each with its relation; those that the question names come first."""
        if not self._offered.issuperset(RELATION_TOOLS.values()):
            return []
        sample = [AnswerValue(text=entity, entity=entity) for entity in entities[:sampled]]
        offered = yield from self.list_relations(sample, f"{node}/relations", parent)
        nodes = " ".join(filter(None, map(terms.format_node, entities)))
        ranked: list[tuple[int, SourcePassage]] = []
        for direction, relations in choose_relations(question, offered).items():
            predicates = " ".join(filter(None, (terms.format_predicate(relation.id) for relation in relations)))
            ends = FACT_COLUMNS if direction == "head" else FACT_COLUMNS[::-1]
            columns = " ".join(f"?{end}" for end in ends)
            sparql = (
                f"SELECT DISTINCT {columns} WHERE {{ VALUES ?known {{ {nodes} }} "
                f"VALUES ?relation {{ {predicates} }} {columns} }}"
            )
            table = yield from self._call("runQuery", {"sparql": sparql}, f"{node}/facts/{direction}/run", parent)
            ranks = {relation.id: rank for rank, relation in enumerate(relations)}
            rows = observed_data(table).get("rows", ())
            ranked += zip([ranks.get(row[1]["value"], len(ranks)) for row in rows], table_passages(table), strict=True)
        return [passage for _, passage in sorted(ranked, key=itemgetter(0))[:MAX_FACT_ROWS]]

    def _call(
        self, tool: str, arguments: dict[str, Any], node: str, parent: UUID | None
    ) -> Generator[Move, ToolResult, ToolResult]:
        """Call a tool as a step of the trace; a recorded call with these arguments is taken again."""
        outcome = yield Action("", tool, arguments, self._tracer.trace(arguments), parent=parent, node=node, reuse=True)
        if outcome.observation is not None and outcome.step_position is not None:
            self._data_by_step[outcome.step_position] = outcome.observation.data
            if tool != "getLabel":
                # It repeats what it was asked for.
                self._seen_ids.update(_list_ids(outcome.observation.data))
            self._tracer.observe(outcome.step_position, outcome.observation.data)
        return outcome


def _list_ids(data: Any) -> Iterator[str]:
    """The texts in a tool's data that may be ids of entities."""
    entries = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    for name, entry in entries:
        if isinstance(entry, str):
            if name in _ID_FIELDS:
                yield entry
        else:
            yield from _list_ids(entry)


_ID_FIELDS = ("id", "entity", "value")


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


def _has_label(entities: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(name.casefold() == entity["label"].casefold() for entity in entities)


_SOURCES = {
    "graph": Retriever._retrieve_graph,
    "text": Retriever._retrieve_text,
    "web": Retriever._retrieve_web,
}
