"""Retrieval from a graph for reasoners: queries, facts, and ids that are known for names.

A step of the trace tells how many values of a set were left out.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, TypeVar
from uuid import UUID

from showhow.reasoners.base import Action, Branch, Move, Parallel, Task
from showhow.reasoners.provenance import OriginTracer
from showhow.reasoners.skills.skill import SkillCall, SkillResult
from showhow.reasoners.skills.values import (
    AnswersReply,
    AnswerValue,
    OfferedRelation,
    SourcePassage,
    entity_passages,
    observed_data,
    table_passages,
)
from showhow.reasoners.sources import (
    MAX_HEADS,
    RetrievalQuery,
    choose_relations,
)
from showhow.tools.search import DEFAULT_RESULTS
from showhow.tools.text_to_sparql.queries import generalize_query
from showhow.tools.tool import ToolResult
from showhow.worlds import terms

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
AnswersT = TypeVar("AnswersT", bound=AnswersReply)


class GraphRetriever:
    """Retrieves for one run from the graph.

    `passages_per_source` limits the texts that are read after a search, `most_heads` the values of a set that are
    looked up one by one. With `screened`, texts are the best paragraphs of so many articles.
    """

    def __init__(
        self, task: Task, passages_per_source: int = 3, most_heads: int = MAX_HEADS, screened: int = 0
    ) -> None:
        self._offered = {tool.name for tool in task.tools}
        self._passages_per_source = passages_per_source
        self._search_limit = {"limit": passages_per_source} if passages_per_source > DEFAULT_RESULTS else {}
        self._most_heads = most_heads
        self._screened = screened
        self._data_by_step: dict[int, Any] = {}
        self._seen_ids: set[str] = set()
        self._tracer = OriginTracer(task.question)

    def link(self, name: str, node: str, parent: UUID | None) -> Generator[Move, Any, str | None]:
        """The id of the entity with this name, or of the best candidate; None if the graph has none."""
        candidates = yield from self._call("getWikiDataID", {"title": name}, node, parent)
        entities = observed_data(candidates).get("entities", ())
        exact = [entity for entity in entities if name.casefold() in {entity["label"].casefold(), entity["title"]}]
        best = (*exact, *entities)
        return best[0]["id"] if best else None

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

    def ask_for_answers(self, call: SkillCall[Any, AnswersT]) -> Generator[Move, Any, SkillResult[AnswersT]]:
        """The result of a skill whose answers may be looked up next, without the ids that the model made up."""
        result: SkillResult[AnswersT] = yield call
        if result.reply is None:
            return result
        answers = yield from self.drop_unknown_ids(result.reply.answers, f"{call.node}/ids", call.parent)
        return replace(result, reply=result.reply.model_copy(update={"answers": answers}))

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


def _has_label(entities: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(name.casefold() == entity["label"].casefold() for entity in entities)
