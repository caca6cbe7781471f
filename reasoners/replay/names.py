"""Whom a name means, and under which title somebody is known among those of the same name."""

from reasoners.replay.english import plain
from reasoners.replay.lessons import ReplayKnowledge
from reasoners.replay.things import FoundEntity, bare_name
from reasoners.replay.walk import ReplayBroken, ReplayGenerator, ReplaySession, ToolCallFailed


class EntityResolver:
    """One run's way from names to things and back."""

    def __init__(self, walk: ReplaySession, lessons: ReplayKnowledge) -> None:
        self._walk, self._lessons = walk, lessons
        self._tools = lessons.tools & walk.tools

    def resolve(self, name: str) -> ReplayGenerator:
        """The thing of that name; Broken where there is none or several."""
        # Titles tell namesakes apart, labels do not.
        if "getWikiDataID" in self._tools and not ("(" in name and "wikisearch" in self._tools):
            things = yield from self._search_labels(name)
        else:
            things = yield from self._search_titles(name)
        same = [thing for thing in things if plain(bare_name(thing.text)) == plain(bare_name(name))]
        exact = [thing for thing in same if plain(thing.text) == plain(name)] if "(" in name else same
        if len(exact) != 1:
            raise ReplayBroken(f"{len(exact) or 'nothing'} of what is found is called {name}, and one is wanted")
        return exact[0]

    def find_title(self, thing: FoundEntity) -> ReplayGenerator:
        """The title of the article about a thing, where it is more than its name."""
        if not thing.id or "(" in thing.text or "wikisearch" not in self._tools:
            return thing.text
        things = yield from self._search_titles(thing.text)
        own = [entity.text for entity in things if entity.id == thing.id and bare_name(entity.text) == thing.text]
        return own[0] if own else thing.text

    def _search_labels(self, name: str) -> ReplayGenerator:
        thought = self._lessons.thought("getWikiDataID", "", f"What is the id of {name}?", name)
        try:
            results = yield from self._walk.call_tool(thought, "getWikiDataID", title=name)
        except ToolCallFailed as failed:
            raise ReplayBroken(f"{name!r} is not found: {failed}") from failed
        return [FoundEntity(entity["label"], entity["id"]) for entity in results["entities"]]

    def _search_titles(self, name: str) -> ReplayGenerator:
        thought = self._lessons.thought("wikisearch", "", f"Which article is about {name}?", name)
        results = yield from self._walk.call_tool(thought, "wikisearch", query=name)
        return [FoundEntity(hit["title"], hit["entity"]) for hit in results["hits"]]
