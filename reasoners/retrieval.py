"""Retrieval for reasoners: searches of text, graph and web by the tools of the task, as passages with ids.

Every retrieval is a step of the trace with an ordinary tool, so that it can be shown, rated, replayed and forked. The
sources are read at the same time.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from reasoners.base import Action, Branch, Move, Parallel, Task
from reasoners.provenance import trace_argument_origins
from reasoners.skills.shared_skills import SELECT_SOURCES, SelectSourcesReply, SelectSourcesRequest, SourceChoice
from reasoners.skills.skill import SkillCall, SkillResult
from reasoners.skills.values import AnswerValue, GraphFact, OfferedRelation, SourcePassage, format_values
from tools.tool import ToolResult
from worlds import terms

SOURCE_TOOLS: Mapping[str, tuple[str, ...]] = {
    "graph": ("getWikiDataID", "generateQuery", "runQuery"),
    "text": ("wikisearch", "read"),
    "web": ("websearch", "read"),
}
"""The sources, and the tools that retrieve from each."""
SOURCE_DESCRIPTIONS = {
    "graph": "a knowledge graph: facts about entities, exact and complete where it has them",
    "text": "articles of an encyclopedia: search, then read",
    "web": "web pages: search, then read; pages may be out of date",
}
IDS_PER_QUERY = 100
"""Entities in one query."""
MAX_HEADS = 12
"""How many values of a set are looked up one by one."""
MAX_WHOLE_TEXT = 2_000
"""Characters of an article or page that is shown as a whole, about 500 tokens."""
_SELECT_ONE = re.compile(r"SELECT DISTINCT \?(\w+) WHERE \{(.*)\}\s*", re.DOTALL)

RetrievalGenerator = Generator[Move, Any, list[SourcePassage]]


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """What to look up: the question in full, the values it is about, and the words for what is asked of them."""

    question: str
    heads: Sequence[AnswerValue]
    words: str = ""
    is_name: bool = False
    """Whether the first value is only a name, of which the thing is to be found."""
    names: Sequence[str] = ()
    """The names in a question that is about no values."""

    @property
    def is_about_each(self) -> bool:
        """Whether the same is asked of each of several values."""
        return len(self.heads) > 1 and format_values(self.heads) in self.question

    def question_about(self, head: AnswerValue | None) -> str:
        """The question about one of the values alone."""
        if head is None or not self.is_about_each:
            return self.question
        return self.question.replace(format_values(self.heads), head.text)

    @property
    def searches(self) -> list[tuple[AnswerValue | None, str]]:
        """The searches, one for each of the first values, or one for the question."""
        if not self.heads:
            return [(None, self.question)]
        return [(head, f"{head.text} {self.words}".strip()) for head in self.heads[:MAX_HEADS]]


def list_sources(task: Task) -> list[str]:
    """The sources whose tools the task offers."""
    offered = {tool.name for tool in task.tools}
    return [source for source, tools in SOURCE_TOOLS.items() if offered.issuperset(tools)]


def choose_sources(
    sources: Sequence[str], request: SelectSourcesRequest, node: str, parent: UUID | None
) -> Generator[Move, Any, tuple[Sequence[str], int]]:
    """Choose the sources to ask, by the skill if there are several; returns them, and the calls that this takes."""
    if len(sources) < 2:
        return sources, 0
    choices = [SourceChoice(name=name, description=SOURCE_DESCRIPTIONS[name]) for name in sources]
    request = request.model_copy(update={"sources": choices})
    selected: SkillResult[SelectSourcesReply] = yield SkillCall(SELECT_SOURCES, request, node, parent)
    return (sources if selected.reply is None else selected.reply.sources), 1


class Retriever:
    """Retrieves for one run; `passages_per_source` limits the texts that are read after a search."""

    def __init__(self, task: Task, passages_per_source: int = 3) -> None:
        self._question = task.question
        self._passages_per_source = passages_per_source
        self._data_by_step: dict[int, Any] = {}

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

    def link(self, name: str, node: str, parent: UUID | None) -> Generator[Move, Any, str | None]:
        """The id of the entity with this name, or of the best candidate; None if the graph has none."""
        candidates = yield from self._call("getWikiDataID", {"title": name}, node, parent)
        entities = _data(candidates).get("entities", ())
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
            return [_cell_value(row[1], row[0]["value"]) for row in rows if len(row) == 2]
        return [_cell_value(row[0], owner) for row in rows for owner in owners if len(row) == 1]

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
            for direction, tool in (("head", "getRelationsAsHead"), ("tail", "getRelationsAsTail"))
        ]
        results: list[ToolResult] = yield Parallel(calls)
        offered = {
            (link["id"], link["direction"]): OfferedRelation(
                id=link["id"], label=link["label"], direction=link["direction"]
            )
            for result in results
            for link in _data(result).get("relations", ())
        }
        return list(offered.values())

    def list_neighbours(
        self, value: AnswerValue, relation: OfferedRelation, node: str, parent: UUID | None
    ) -> Generator[Move, Any, tuple[list[GraphFact], int | None]]:
        """The facts of one relation of a value, literals included, and how many the graph has; None if unknown."""
        tool = "getTailEntities" if relation.direction == "head" else "getHeadEntities"
        listed = yield from self._call(tool, {"entity": value.entity, "relation": relation.id}, node, parent)
        facts = [
            GraphFact(id=f"{listed.step_position}.{number}", known=value, relation=relation, other=_linked_value(link))
            for number, link in enumerate(_data(listed).get("values", ()), 1)
        ]
        return facts, _data(listed).get("total")

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
            passages += _table_passages(table)
            pairs += [
                _cell_value(other, known[of["value"]].key)
                for of, other in _data(table).get("rows", ())
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
        hits = _data(article).get("hits", ())
        if article.observation is None:
            search = yield from self._call("wikisearch", {"query": value.text}, f"{node}/search", parent)
            hits = _data(search).get("hits", ())
        titles = [hit["title"] for hit in hits if hit.get("entity") == value.entity]
        if titles:
            arguments = {"title": titles[0], "question": question}
            article = yield from self._call("read", arguments, f"{node}/read", parent)
        scores = [best["score"] for best in _data(article).get("best", ())]
        return list(zip(_best_sentences(article, "text"), scores, strict=True))

    def _retrieve_text(self, query: RetrievalQuery, node: str, parent: UUID | None) -> RetrievalGenerator:
        return self._search_and_read(query, node, parent, "wikisearch", "hits", "title", "text")

    def _retrieve_web(self, query: RetrievalQuery, node: str, parent: UUID | None) -> RetrievalGenerator:
        return self._search_and_read(query, node, parent, "websearch", "pages", "address", "web")

    def _search_and_read(  # noqa: PLR0913, PLR0917 - text and web differ in these names only
        self, query: RetrievalQuery, node: str, parent: UUID | None, tool: str, hits: str, address: str, source: str
    ) -> RetrievalGenerator:
        searches = query.searches
        reads_each = self._passages_per_source if len(searches) == 1 else 1
        how = (tool, hits, address, source, reads_each)
        branches = [
            Branch(
                str(number),
                self._search_once(query.question_about(head), words, f"{node}/{number}", parent, how)
                if source == "web" or head is None or head.entity is None
                else self._read_article(query, head, words, f"{node}/{number}", parent, how),
            )
            for number, (head, words) in enumerate(searches)
        ]
        results: list[list[SourcePassage]] = yield Parallel(branches)
        return [passage for passages in results for passage in passages]

    def _read_article(  # noqa: PLR0913, PLR0917 - each is a part of the search
        self,
        query: RetrievalQuery,
        head: AnswerValue,
        words: str,
        node: str,
        parent: UUID | None,
        how: tuple[str, str, str, str, int],
    ) -> RetrievalGenerator:
        """Read the article about a known entity; search where there is none of its name."""
        question = query.question_about(head)
        article = yield from self._call("read", {"title": head.text, "question": question}, f"{node}/article", parent)
        passages = _read_passages(article, "text")
        return passages or (yield from self._search_once(question, words, node, parent, how))

    def _search_once(
        self,
        question: str,
        words: str,
        node: str,
        parent: UUID | None,
        how: tuple[str, str, str, str, int],
    ) -> RetrievalGenerator:
        """Search, then read the first hits; the snippets of the others are passages too."""
        tool, hits, address, source, reads_each = how
        search = yield from self._call(tool, {"query": words}, f"{node}/search", parent)
        listed = list({hit[address]: hit for hit in _data(search).get(hits, ())}.values())
        reads: list[ToolResult] = yield Parallel(
            [
                Branch(
                    str(number),
                    self._call("read", {"title": hit[address], "question": question}, f"{node}/read{number}", parent),
                )
                for number, hit in enumerate(listed[:reads_each])
            ]
        )
        snippets = [
            SourcePassage(id=f"{search.step_position}.{number}", source=source, title=hit["title"], text=hit["snippet"])
            for number, hit in enumerate(listed, 1)
            if number > reads_each
        ]
        return [passage for read in reads for passage in _read_passages(read, source)] + snippets

    def _retrieve_graph(self, query: RetrievalQuery, node: str, parent: UUID | None) -> RetrievalGenerator:
        entities: dict[str, AnswerValue] = {}
        heads = query.heads or [AnswerValue(text=name) for name in query.names]
        for number, head in enumerate(heads[:IDS_PER_QUERY]):
            entity = head.entity
            if entity is None:
                if number >= MAX_HEADS:
                    continue
                candidates = yield from self._call("getWikiDataID", {"title": head.text}, f"{node}/id{number}", parent)
                named = _data(candidates).get("entities", ())
                if query.is_name and (not query.words or _has_label(named, head.text)):
                    return _entity_passages(candidates)
                # What a search describes, such as a person born on a day, is not what "person" is the name of.
                entity = None if query.is_name or not named else named[0]["id"]
            if entity is not None:
                entities.setdefault(entity, head)
        if query.is_about_each and len(entities) > 1:
            return (yield from self._query_for_each(query, entities, node, parent))
        sparql = yield from self._write_query(query.question, list(entities), node, parent)
        return (yield from self._run_query(sparql, node, parent))

    def _query_for_each(
        self, query: RetrievalQuery, entities: Mapping[str, AnswerValue], node: str, parent: UUID | None
    ) -> RetrievalGenerator:
        """Ask the same of each entity: by one query with all of them if it allows that, else one by one."""
        first, head = next(iter(entities.items()))
        sparql = yield from self._write_query(query.question_about(head), [first], node, parent)
        general = generalize_query(sparql, first, list(entities))
        if general is not None:
            return (yield from self._run_query(general, node, parent))
        results: list[list[SourcePassage]] = yield Parallel(
            [
                Branch(entity, self._query_one(query.question_about(other), entity, f"{node}/{number}", parent))
                for number, (entity, other) in enumerate(list(entities.items())[:MAX_HEADS])
            ]
        )
        return [passage for passages in results for passage in passages]

    def _query_one(self, question: str, entity: str, node: str, parent: UUID | None) -> RetrievalGenerator:
        sparql = yield from self._write_query(question, [entity], node, parent)
        return (yield from self._run_query(sparql, node, parent))

    def _write_query(
        self, question: str, entities: Sequence[str], node: str, parent: UUID | None
    ) -> Generator[Move, Any, str | None]:
        """The likeliest query for a question; None if none is written, which its step explains."""
        arguments = {"question": question, "entity_ids": list(entities)}
        written = yield from self._call("generateQuery", arguments, f"{node}/write", parent)
        candidates = _data(written).get("candidates", ())
        return candidates[0]["sparql"] if candidates else None

    def _run_query(self, sparql: str | None, node: str, parent: UUID | None) -> RetrievalGenerator:
        if sparql is None:
            return []
        table = yield from self._call("runQuery", {"sparql": sparql}, f"{node}/run", parent)
        return _table_passages(table)

    def _call(
        self, tool: str, arguments: dict[str, Any], node: str, parent: UUID | None
    ) -> Generator[Move, ToolResult, ToolResult]:
        """Call a tool as a step of the trace; a recorded call with these arguments is taken again."""
        origins = trace_argument_origins(arguments, self._question, self._data_by_step)
        outcome = yield Action("", tool, arguments, origins, parent=parent, node=node, reuse=True)
        if outcome.observation is not None and outcome.step_position is not None:
            self._data_by_step[outcome.step_position] = outcome.observation.data
        return outcome


def generalize_query(sparql: str | None, entity: str, entities: Sequence[str]) -> str | None:
    """A query about one entity as one about several, with a column ?known for the entity that a row is about.

    None for a query whose answers would change: one that counts, sorts, limits, or does not name the entity.
    """
    match = None if sparql is None else _SELECT_ONE.fullmatch(sparql)
    node, nodes = terms.format_node(entity), [terms.format_node(other) for other in entities]
    if match is None or node is None or None in nodes:
        return None
    column, body = match[1], match[2]
    named = re.compile(rf"{re.escape(node)}(?![\w-])")
    if not named.search(body) or re.search(r"\?known\b|\b(SELECT|GROUP|LIMIT|ORDER|MINUS)\b", body):
        return None
    listed = " ".join(str(other) for other in nodes)
    return f"SELECT DISTINCT ?known ?{column} WHERE {{ VALUES ?known {{ {listed} }} {named.sub('?known', body)}}}"


def _has_label(entities: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(name.casefold() == entity["label"].casefold() for entity in entities)


_SOURCES = {
    "graph": Retriever._retrieve_graph,
    "text": Retriever._retrieve_text,
    "web": Retriever._retrieve_web,
}


def _data(result: ToolResult) -> dict[str, Any]:
    """The data of an observation; empty after an error, which its step shows."""
    return {} if result.observation is None else result.observation.data


def _read_passages(result: ToolResult, source: str) -> list[SourcePassage]:
    """A short article or page as a whole, in which pronouns have their context; the best sentences of a long one."""
    data = _data(result)
    text = " ".join(data.get("sentences", ()))
    if text and len(text) <= MAX_WHOLE_TEXT:
        return [SourcePassage(id=f"{result.step_position}.1", source=source, title=data["title"], text=text)]
    return _best_sentences(result, source)


def _best_sentences(result: ToolResult, source: str) -> list[SourcePassage]:
    data = _data(result)
    return [
        SourcePassage(id=f"{result.step_position}.{number}", source=source, title=data["title"], text=best["text"])
        for number, best in enumerate(data.get("best", ()), 1)
    ]


def _entity_passages(result: ToolResult) -> list[SourcePassage]:
    """The entities that have a name, with their descriptions."""
    return [
        SourcePassage(
            id=f"{result.step_position}.{number}",
            source="graph",
            title=entity["label"],
            text=f"{entity['id']}: {entity['label']}" + (f", {entity['description']}" if entity["description"] else ""),
        )
        for number, entity in enumerate(_data(result).get("entities", ()), 1)
    ]


def _table_passages(result: ToolResult) -> list[SourcePassage]:
    """The rows of a query's result, or its truth."""
    data = _data(result)
    if data.get("boolean") is not None:
        text = "yes" if data["boolean"] else "no"
        return [SourcePassage(id=f"{result.step_position}.1", source="graph", title="query", text=text)]
    return [
        SourcePassage(
            id=f"{result.step_position}.{number}",
            source="graph",
            title=", ".join(data["columns"]),
            text=" | ".join(_cell_text(cell) for cell in row),
        )
        for number, row in enumerate(data.get("rows", ()), 1)
    ]


def _cell_value(cell: Mapping[str, Any], owner: str) -> AnswerValue:
    if cell["kind"] == "entity":
        return AnswerValue(text=cell.get("label", cell["value"]), entity=cell["value"], of=owner)
    return AnswerValue(text=format_literal_value(cell), of=owner)


def _linked_value(link: Mapping[str, Any]) -> AnswerValue:
    if "id" in link:
        return AnswerValue(text=link["label"], entity=link["id"])
    return AnswerValue(text=format_literal_value({"value": link["literal"], "datatype": link["datatype"]}))


def format_literal_value(cell: Mapping[str, Any]) -> str:
    """A literal as an answer: a day as 1931-03-05."""
    text = str(cell["value"])
    return text.partition("T")[0] if str(cell.get("datatype", "")).endswith("#dateTime") else text


def _cell_text(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "-"
    return f"{cell['label']} ({cell['value']})" if "label" in cell else str(cell["value"])
