"""Looking things up as demonstrations show it, in every source that may tell a part."""

from collections.abc import Sequence

from reasoners.replay import kin
from reasoners.replay.articles import ArticleLookup
from reasoners.replay.asks import BLANK, GRAPH, TEXT, WEB
from reasoners.replay.english import as_day, join_names
from reasoners.replay.entities import FoundEntity, is_same, merge_entities, ways_to_write
from reasoners.replay.graph import ReplayGraphLookup, count_hops, relations
from reasoners.replay.inquiry import LookupState
from reasoners.replay.lessons import ReplayKnowledge
from reasoners.replay.pages import WebPageLookup
from reasoners.replay.walk import ReplayBroken, ReplayGenerator, ReplaySession, ToolCallFailed
from reasoners.replay.wordings import relation_of

_REQUIRED_TOOLS = {GRAPH: "generateQuery", TEXT: "read", WEB: "websearch"}


class SourceLookups:
    """One run's way of looking things up."""

    def __init__(self, walk: ReplaySession, lessons: ReplayKnowledge) -> None:
        self._inquiry = inquiry = LookupState.begin(walk, lessons)
        self._walk, self._lessons, self.names = walk, lessons, inquiry.names
        self._graph, self._articles, self._pages = (
            ReplayGraphLookup(inquiry),
            ArticleLookup(inquiry),
            WebPageLookup(inquiry),
        )
        self._sources = [source for source in (GRAPH, TEXT, WEB) if source in lessons.sources and self._has(source)]

    @property
    def facts_are_spread(self) -> bool:
        """Whether the sources tell different facts, as far as is known."""
        return bool(self._inquiry.spread)

    def look_up(self, template: str, thing: FoundEntity, *, on_the_way: bool = False) -> ReplayGenerator:
        """What the sources tell in answer; [] where they tell that there is nothing, Broken where that is unclear.

        Of somebody on the way to others it needs no demonstration that there may be nothing.
        """
        if self._inquiry.spread is None and kin.is_personal(relation_of(template)):
            yield from self._probe(thing, template)
        way = yield from self._find_path(template, thing)
        if way is None:
            return (yield from self._ask_sources(template, thing, on_the_way=on_the_way))
        results: list[FoundEntity] = []
        if kin.find_relation_path(relation_of(template)) and not kin.is_compound(relation_of(template)):
            results = yield from self._ask_sources(template, thing, on_the_way=True)
        more = yield from self._follow_path(way, thing)
        return merge_entities(results, more)

    def find_having(self, fact: str, value: str) -> ReplayGenerator:
        """Everybody of whom the sources tell that the fact has the value."""
        shown_ways = self._lessons.backward.get(fact)
        results: list[FoundEntity] = []
        if GRAPH in self._lessons.sources or (shown_ways and shown_ways.queries):
            results = yield from self._graph.find_having(fact, value)
        if results and self._inquiry.spread is None:
            yield from self._probe(results[0], "")
        if self._continues(results) and self._lessons.searches and "wikisearch" in self._walk.tools:
            more = yield from self._articles.find_having(fact, value)
            results = merge_entities(results, more)
        if self._continues(results) and WEB in self._sources and self._lessons.searches_pages:
            more = yield from self._pages.find_having(fact, value)
            results = merge_entities(results, more)
        if not results:
            raise ReplayBroken(f"nobody is found whose {fact} is {value}")
        self._walk.add_note(f"Whose {fact} is {value}? {join_names([thing.text for thing in results])}.")
        return results

    def _has(self, source: str) -> bool:
        """Whether this world has such a source; a tool that is not offered is missed when it is called."""
        return source != WEB or self._walk.has_web

    def _find_path(self, template: str, thing: FoundEntity) -> ReplayGenerator:
        """The relations to ask for one after the other, where no source tells or no query asks for all at once."""
        way = kin.find_relation_path(relation_of(template))
        if GRAPH not in self._sources:
            return way if self._inquiry.spread else None
        if way is not None:
            if self._inquiry.spread:
                return way
            if not kin.is_compound(relation_of(template)):
                return None
            return None if (yield from self._graph.find_candidate(template, thing)) else way
        if self._inquiry.spread and not kin.is_personal(relation_of(template)):
            candidate = yield from self._graph.find_candidate(template, thing)
            if candidate and count_hops(candidate) > 1:
                return kin.RelationPath(tuple(relations(candidate, thing)), excludes_start=False)
        return None

    def _follow_path(self, way: kin.RelationPath, thing: FoundEntity) -> ReplayGenerator:
        """Whom or what relations lead to one after the other."""
        things = [thing]
        for step in way.steps:
            reached: list[FoundEntity] = []
            what = not kin.is_personal(step)
            for entity in things:
                more = yield from self.look_up(
                    self._lessons.wordings.template_for(step, what=what), entity, on_the_way=True
                )
                reached = merge_entities(reached, more)
                if what and not more:
                    raise ReplayBroken(f"no source tells the {step} of {entity.text}")
            things = reached
        return [entity for entity in things if not way.excludes_start or not is_same(entity, thing)]

    def _ask_sources(self, template: str, thing: FoundEntity, *, on_the_way: bool) -> ReplayGenerator:
        """What the sources tell by themselves."""
        inquiry = self._inquiry
        inquiry.unclear = []
        asked = template.replace(BLANK, thing.text)
        results: list[FoundEntity] = []
        ways = {GRAPH: self._graph.look_up, TEXT: self._articles.look_up, WEB: self._pages.look_up}
        for source in self._sources:
            if results and not self._needs_more_sources(template, results):
                continue
            more = yield from ways[source](template, self._articles.with_article_title(thing))
            results = merge_entities(results, more)
            if source == GRAPH and inquiry.spread is None:
                yield from self._compare(template, thing, results)
            if source == GRAPH and inquiry.spread is False and (results or not (inquiry.unclear or inquiry.silent)):
                break
        if inquiry.unclear and (not results or self._needs_more_sources(template, results)):
            raise ReplayBroken(inquiry.unclear[0])
        # Everybody was born one day, but not everybody has a friend.
        may_lack = on_the_way and not template.startswith("When ")
        none_shown = may_lack or template in self._lessons.unanswered_templates
        if not results and inquiry.spread is not False and not none_shown:
            raise ReplayBroken(f"no source answers {asked!r}, and no demonstration shows that it can have no answer")
        self._walk.add_note(f"{asked} {join_names([thing.text for thing in results])}.")
        return results

    def _continues(self, results: Sequence[FoundEntity]) -> bool:
        """Whether more sources are asked: where nothing was found, or each may tell a part."""
        return not results or self._inquiry.spread is not False

    def _needs_more_sources(self, template: str, results: Sequence[FoundEntity]) -> bool:
        """Whether another source is asked although one has answered: for people, who may be told in parts."""
        relation = relation_of(template)
        most = kin.max_count(relation)
        several = most is None or len(results) < most
        return self._inquiry.spread is not False and template.startswith("Who ") and several

    def _compare(self, template: str, thing: FoundEntity, results: Sequence[FoundEntity]) -> ReplayGenerator:
        """Whether the article says what the graph does: if not, the facts are spread over the sources.

        Two people may be told of each other in two sources; then, and where nothing is found, other questions decide.
        """
        if TEXT not in self._sources or "read" not in self._walk.tools:
            self._inquiry.spread = False
            return
        if not results or template.startswith("Who "):
            yield from self._probe(thing, template)
            return
        try:
            sentences, _ = yield from self._articles.sentences(template, thing)
        except ToolCallFailed:
            return
        text = " ".join(sentences)
        same = all(any(way in text for way in ways_to_write(entity.text)) for entity in results)
        # A town may stand in an article as something else; a day hardly does.
        if not same or any(as_day(entity.text) for entity in results):
            self._inquiry.spread = not same

    def _probe(self, thing: FoundEntity, asked_already: str) -> ReplayGenerator:
        """Compare the sources by something else that demonstrations ask the graph for."""
        unclear, self._inquiry.unclear = self._inquiry.unclear, []
        for template in self._lessons.graph_templates:
            if template != asked_already and self._inquiry.spread is None and not template.startswith("Who "):
                self._inquiry.spread = True  # until it is told otherwise, and so that the probe is not probed
                results = yield from self._graph.look_up(template, thing)
                self._inquiry.spread = None
                if results:
                    yield from self._compare(template, thing, results)
        self._inquiry.unclear = unclear  # of the question at hand, not of the probes
        if TEXT in self._sources and self._inquiry.spread is None:
            self._inquiry.spread = True  # nothing shows that one source tells all
