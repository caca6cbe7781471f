"""Looks up values in all sources and in the graph, as demonstrations do, and merges what the sources return."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reasoners.replay.english import as_day, join_names, plain
from reasoners.replay.knowledge import ReplayKnowledge
from reasoners.replay.recorded_lookups import (
    BLANK,
    GRAPH,
    TEXT,
    WEB,
    RecordedGraphStep,
    format_cell,
    format_link,
    relation_of,
)
from reasoners.replay.session import (
    FoundEntity,
    ReplayBroken,
    ReplayGenerator,
    ReplaySession,
    ToolCallFailed,
    bare_name,
    is_same,
    merge_entities,
    ways_to_write,
)
from reasoners.replay.text_lookups import ArticleLookup, LookupState, WebPageLookup
from tools.generate_query import NO_RELATION_MESSAGE
from worlds.lexicon import kinship

_INTERMEDIATE_VARIABLE = re.compile(r"\?x\d+")
QueryCandidate = Mapping[str, Any]


class ReplayGraphLookup:
    """Looks up values in the graph during one run."""

    def __init__(self, state: LookupState) -> None:
        self._state = state

    def find_candidate(self, template: str, subject: FoundEntity) -> ReplayGenerator:
        """The generated query whose paraphrase asks exactly for the template; None if there is none."""
        entity = subject.id or (yield from self._state.names.resolve(subject.text)).id
        if entity is None:
            return None
        knowledge, question = self._state.knowledge, template.replace(BLANK, subject.text)
        self._state.silent = False
        thought = knowledge.thought("generateQuery", template, question, subject.text)
        try:
            generated = yield from self._state.session.call_tool(
                thought, "generateQuery", question=question, entity_ids=[str(entity)]
            )
        except ToolCallFailed as error:
            self._note_missing_query(template, str(error), silent=str(error).startswith(NO_RELATION_MESSAGE))
            return None
        understood = [
            candidate for candidate in generated["candidates"] if self._is_understood(candidate, template, subject)
        ]
        return self._narrowest(understood, template, question)

    def look_up(self, template: str, subject: FoundEntity) -> ReplayGenerator:
        """Return the values of a demonstrated step through the graph, or of the generated query.

        [] if there is no query or the graph has no such relation.
        """
        step = self._state.knowledge.graph_steps.get(template)
        if step is not None and step.tool in self._state.session.tools:
            return (yield from self._follow_relation(step, template, subject))
        candidate = yield from self.find_candidate(template, subject)
        if candidate is None:
            return []
        thought = f"It is read as: {candidate['reading']}. That is what I ask."
        return (yield from self.rows(thought, candidate["sparql"]))

    def _follow_relation(self, step: RecordedGraphStep, template: str, subject: FoundEntity) -> ReplayGenerator:
        """Repeat a demonstrated step from another entity; [] if its relations do not include that of the step."""
        entity = subject.id or (yield from self._state.names.resolve(subject.text)).id
        if entity is None:
            return []
        session, question = self._state.session, template.replace(BLANK, subject.text)
        relation: str | None = step.relation
        if step.listed_by is not None:
            listed = yield from session.call_tool(question, step.listed_by, entity=entity)
            # Another graph may have the relation under another id.
            names = {link["id"]: link["label"] for link in listed["relations"]}
            same_label = (id_ for id_, label in names.items() if plain(label) == plain(step.label))
            relation = step.relation if names.get(step.relation) == step.label else next(same_label, None)
        self._state.silent = relation is None
        if relation is None:
            return []
        thought = self._state.knowledge.thought(step.tool, template, question, subject.text)
        data = yield from session.call_tool(thought, step.tool, entity=entity, relation=relation)
        if data["truncated"]:
            raise ReplayBroken("the graph has more values than a step may give")
        return [FoundEntity(str(format_link(link)), link.get("id")) for link in data["values"]]

    def find_having(self, fact: str, value: str) -> ReplayGenerator:
        """Return the entities with the value, by a demonstration's typed query or by a generated one."""
        reverse_lookups = self._state.knowledge.backward.get(fact)
        value_entity = None if as_day(value) else (yield from self._find_value(fact, value))
        if value_entity is None and not as_day(value):
            return []
        if reverse_lookups and reverse_lookups.queries and value_entity:
            question = (
                reverse_lookups.templates[0].replace(BLANK, value)
                if reverse_lookups.templates
                else f"Whose {fact} is {value}?"
            )
            return (yield from self.rows(question, reverse_lookups.queries[0].replace(BLANK, str(value_entity.id))))
        question = f"Who is the person whose {fact} is {value}?"
        ids = [str(value_entity.id)] if value_entity else []
        try:
            generated = yield from self._state.session.call_tool(
                question, "generateQuery", question=question, entity_ids=ids
            )
        except ToolCallFailed:
            return []
        for candidate in generated["candidates"]:
            if plain(candidate["reading"]) == plain(f"those whose {fact} is {value}"):
                return (yield from self.rows(question, candidate["sparql"]))
        return []

    def rows(self, thought: str, sparql: str) -> ReplayGenerator:
        """Run a query; return the entities in its first column."""
        table = yield from self._state.session.call_tool(thought, "runQuery", sparql=sparql)
        if table["truncated"]:
            raise ReplayBroken("the graph has more rows than a query may give")
        cells = [row[0] for row in table["rows"] if row and row[0] is not None]
        return [
            FoundEntity(str(format_cell(cell)), cell["value"] if cell["kind"] == "entity" else None) for cell in cells
        ]

    def _is_understood(self, candidate: QueryCandidate, template: str, subject: FoundEntity) -> bool:
        reading = _strip_subject(candidate["reading"], subject)
        return reading != candidate["reading"] and self._state.knowledge.is_understood(template, reading)

    def _narrowest(self, understood: list[QueryCandidate], template: str, question: str) -> QueryCandidate | None:
        """The first of the candidates; for kin, the one with the path length of the relation by blood, not marriage."""
        relation = relation_of(template)
        silent = not understood
        facts_are_spread = bool(self._state.spread) and kinship.relates_people(relation)
        if kinship.relates_people(relation):
            # A father known only as the husband of the mother is looked up through her, source by source.
            path_lengths = [1] if facts_are_spread else kinship.path_lengths(relation)
            understood = [
                candidate for length in path_lengths for candidate in understood if count_hops(candidate) == length
            ]
        if not understood and not facts_are_spread:
            self._note_missing_query(template, f"no generated query asks {question!r}", silent=silent)
        return understood[0] if understood else None

    def _note_missing_query(self, template: str, reason: str, *, silent: bool) -> None:
        """Note why there is no query: the graph lacks a known relation, or else the result is incomplete."""
        self._state.silent = silent and self._state.knowledge.is_known(template)
        if not self._state.silent:
            self._state.unclear.append(reason)

    def _find_value(self, fact: str, value: str) -> ReplayGenerator:
        """The entity that the value names; None if the graph has none with that name."""
        thought = self._state.knowledge.thought("getWikiDataID", "", f"What is the id of {value}?", value)
        try:
            search = yield from self._state.session.call_tool(thought, "getWikiDataID", title=value)
        except ToolCallFailed:
            return None
        namesakes = [candidate for candidate in search["entities"] if plain(candidate["label"]) == plain(value)]
        matches = (
            [candidate for candidate in namesakes if plain(candidate["description"] or "") == plain(fact)]
            if len(namesakes) > 1
            else namesakes
        )
        if len(matches) > 1:
            raise ReplayBroken(f"several things are called {value}")
        return FoundEntity(matches[0]["label"], matches[0]["id"]) if matches else None


def count_hops(candidate: QueryCandidate) -> int:
    """The number of relations in the path of a generated query."""
    return len(set(_INTERMEDIATE_VARIABLE.findall(candidate["sparql"]))) + 1


def relations(candidate: QueryCandidate, subject: FoundEntity) -> list[str]:
    """The relations in the path of a generated query, from the subject outwards."""
    return _strip_subject(candidate["reading"], subject).split(" of the ")[::-1]


def _strip_subject(reading: str, subject: FoundEntity) -> str:
    return reading.removesuffix(f" of {subject.text}").removesuffix(f" of {bare_name(subject.text)}")


_REQUIRED_TOOLS = {GRAPH: "generateQuery", TEXT: "read", WEB: "websearch"}


class SourceLookups:
    """The lookups of one run over graph, articles and web pages."""

    def __init__(self, session: ReplaySession, knowledge: ReplayKnowledge) -> None:
        self._state = state = LookupState.begin(session, knowledge)
        self._session, self._knowledge, self.names = session, knowledge, state.names
        self._graph, self._articles, self._pages = (
            ReplayGraphLookup(state),
            ArticleLookup(state),
            WebPageLookup(state),
        )
        self._sources = [source for source in (GRAPH, TEXT, WEB) if source in knowledge.sources and self._has(source)]

    @property
    def facts_are_spread(self) -> bool:
        """Whether different sources hold different facts, as far as is known."""
        return bool(self._state.spread)

    def look_up(self, template: str, subject: FoundEntity, *, on_the_way: bool = False) -> ReplayGenerator:
        """Return the values of a template for a subject; [] if there are none, ReplayBroken if that is uncertain.

        An intermediate lookup (`on_the_way`) may be empty without a demonstration that shows such a case.
        """
        if self._state.spread is None and kinship.relates_people(relation_of(template)):
            yield from self._probe(subject, template)
        path = yield from self._find_path(template, subject)
        if path is None:
            return (yield from self._ask_sources(template, subject, on_the_way=on_the_way))
        entities: list[FoundEntity] = []
        if kinship.find_relation_path(relation_of(template)) and not kinship.is_compound(relation_of(template)):
            entities = yield from self._ask_sources(template, subject, on_the_way=True)
        more = yield from self._follow_path(path, subject)
        return merge_entities(entities, more)

    def find_having(self, fact: str, value: str) -> ReplayGenerator:
        """Return the entities whose `fact` has the value; ReplayBroken if there is none."""
        reverse_lookups = self._knowledge.backward.get(fact)
        entities: list[FoundEntity] = []
        if GRAPH in self._knowledge.sources or (reverse_lookups and reverse_lookups.queries):
            entities = yield from self._graph.find_having(fact, value)
        if entities and self._state.spread is None:
            yield from self._probe(entities[0], "")
        if self._continues(entities) and self._knowledge.searches and "wikisearch" in self._session.tools:
            more = yield from self._articles.find_having(fact, value)
            entities = merge_entities(entities, more)
        if self._continues(entities) and WEB in self._sources and self._knowledge.searches_pages:
            more = yield from self._pages.find_having(fact, value)
            entities = merge_entities(entities, more)
        if not entities:
            raise ReplayBroken(f"no one was found whose {fact} is {value}")
        self._session.add_note(f"Whose {fact} is {value}? {join_names([entity.text for entity in entities])}.")
        return entities

    def _has(self, source: str) -> bool:
        """Whether this world has the source; a tool that is not offered fails when it is called."""
        return source != WEB or self._session.has_web

    def _find_path(self, template: str, subject: FoundEntity) -> ReplayGenerator:
        """The relations to look up one after the other, if no source and no query answers the template directly."""
        path = kinship.find_relation_path(relation_of(template))
        if GRAPH not in self._sources:
            return path if self._state.spread else None
        if path is not None:
            if self._state.spread:
                return path
            if not kinship.is_compound(relation_of(template)):
                return None
            return None if (yield from self._graph.find_candidate(template, subject)) else path
        if self._state.spread and not kinship.relates_people(relation_of(template)):
            candidate = yield from self._graph.find_candidate(template, subject)
            if candidate and count_hops(candidate) > 1:
                return kinship.RelationPath(tuple(relations(candidate, subject)), excludes_start=False)
        return None

    def _follow_path(self, path: kinship.RelationPath, start: FoundEntity) -> ReplayGenerator:
        """Look up the relations of a path one after the other; return the entities at its end."""
        entities = [start]
        for step in path.steps:
            reached: list[FoundEntity] = []
            what = not kinship.relates_people(step)
            for entity in entities:
                more = yield from self.look_up(
                    self._knowledge.wordings.template_for(step, what=what), entity, on_the_way=True
                )
                reached = merge_entities(reached, more)
                if what and not more:
                    raise ReplayBroken(f"no source has the {step} of {entity.text}")
            entities = reached
        return [entity for entity in entities if not path.excludes_start or not is_same(entity, start)]

    def _ask_sources(self, template: str, subject: FoundEntity, *, on_the_way: bool) -> ReplayGenerator:
        """Look the template up in each source and merge the values."""
        state = self._state
        state.unclear = []
        question = template.replace(BLANK, subject.text)
        entities: list[FoundEntity] = []
        lookups = {GRAPH: self._graph.look_up, TEXT: self._articles.look_up, WEB: self._pages.look_up}
        for source in self._sources:
            if entities and not self._needs_more_sources(template, entities):
                continue
            more = yield from lookups[source](template, self._articles.with_article_title(subject))
            entities = merge_entities(entities, more)
            if source == GRAPH and state.spread is None:
                yield from self._compare(template, subject, entities)
            if source == GRAPH and state.spread is False and (entities or not (state.unclear or state.silent)):
                break
        if state.unclear and (not entities or self._needs_more_sources(template, entities)):
            raise ReplayBroken(state.unclear[0])
        # Every person has a date of birth, but not every person has a friend.
        may_lack = on_the_way and not template.startswith("When ")
        none_shown = may_lack or template in self._knowledge.unanswered_templates
        if not entities and state.spread is not False and not none_shown:
            raise ReplayBroken(f"no source answers {question!r}, and no demonstration shows that it can have no answer")
        self._session.add_note(f"{question} {join_names([entity.text for entity in entities])}.")
        return entities

    def _continues(self, entities: Sequence[FoundEntity]) -> bool:
        """Whether to query further sources: nothing was found yet, or each source may hold a part."""
        return not entities or self._state.spread is not False

    def _needs_more_sources(self, template: str, entities: Sequence[FoundEntity]) -> bool:
        """Whether to query another source although one has answered: several people may be spread over sources."""
        relation = relation_of(template)
        max_entities = kinship.max_relatives(relation)
        several = max_entities is None or len(entities) < max_entities
        return self._state.spread is not False and template.startswith("Who ") and several

    def _compare(self, template: str, subject: FoundEntity, entities: Sequence[FoundEntity]) -> ReplayGenerator:
        """Compare the article with the graph; if they differ, facts are spread over the sources.

        Relations between people, and lookups without values, do not decide; other templates are compared instead.
        """
        if TEXT not in self._sources or "read" not in self._session.tools:
            self._state.spread = False
            return
        if not entities or template.startswith("Who "):
            yield from self._probe(subject, template)
            return
        try:
            sentences, _ = yield from self._articles.sentences(template, subject)
        except ToolCallFailed:
            return
        text = " ".join(sentences)
        agrees = all(any(spelling in text for spelling in ways_to_write(entity.text)) for entity in entities)
        # A town may occur in an article in another role; a date hardly does.
        if not agrees or any(as_day(entity.text) for entity in entities):
            self._state.spread = not agrees

    def _probe(self, subject: FoundEntity, asked_already: str) -> ReplayGenerator:
        """Compare the sources by the other templates that demonstrations look up in the graph."""
        unclear, self._state.unclear = self._state.unclear, []
        for template in self._knowledge.graph_templates:
            if template != asked_already and self._state.spread is None and not template.startswith("Who "):
                self._state.spread = True  # during the probe, so that it does not start another probe
                entities = yield from self._graph.look_up(template, subject)
                self._state.spread = None
                if entities:
                    yield from self._compare(template, subject, entities)
        self._state.unclear = unclear  # drops the doubts of the probes
        if TEXT in self._sources and self._state.spread is None:
            self._state.spread = True  # no comparison shows that one source holds all facts
