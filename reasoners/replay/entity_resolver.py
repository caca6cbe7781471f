"""Resolves names to entities during one run, and tells namesakes apart by article titles; the state of the lookups."""

from dataclasses import dataclass, field

from reasoners.replay.english import plain
from reasoners.replay.entities import FoundEntity, bare_name
from reasoners.replay.knowledge import ReplayKnowledge
from reasoners.replay.sentence_reader import SentenceReader
from reasoners.replay.session import ReplayBroken, ReplayGenerator, ReplaySession, ToolCallFailed


class EntityResolver:
    """Resolves names to entities and entities to article titles during one run."""

    def __init__(self, session: ReplaySession, knowledge: ReplayKnowledge) -> None:
        self._session, self._knowledge = session, knowledge
        self._tools = knowledge.tools & session.tools

    def resolve(self, name: str) -> ReplayGenerator:
        """Return the entity with this name; ReplayBroken if there is none or more than one."""
        # Article titles distinguish namesakes, labels do not.
        if "getWikiDataID" in self._tools and not ("(" in name and "wikisearch" in self._tools):
            entities = yield from self._search_labels(name)
        else:
            entities = yield from self._search_titles(name)
        namesakes = [entity for entity in entities if plain(bare_name(entity.text)) == plain(bare_name(name))]
        exact = [entity for entity in namesakes if plain(entity.text) == plain(name)] if "(" in name else namesakes
        if len(exact) != 1:
            raise ReplayBroken(f"{len(exact) or 'no'} entities are called {name}, instead of one")
        return exact[0]

    def find_title(self, subject: FoundEntity) -> ReplayGenerator:
        """The title of the article about an entity; its name if there is no such article."""
        if not subject.id or "(" in subject.text or "wikisearch" not in self._tools:
            return subject.text
        articles = yield from self._search_titles(subject.text)
        titles = [
            article.text for article in articles if article.id == subject.id and bare_name(article.text) == subject.text
        ]
        return titles[0] if titles else subject.text

    def _search_labels(self, name: str) -> ReplayGenerator:
        thought = self._knowledge.thought("getWikiDataID", "", f"What is the id of {name}?", name)
        try:
            search = yield from self._session.call_tool(thought, "getWikiDataID", title=name)
        except ToolCallFailed as error:
            raise ReplayBroken(f"{name!r} is not found: {error}") from error
        return [FoundEntity(entity["label"], entity["id"]) for entity in search["entities"]]

    def _search_titles(self, name: str) -> ReplayGenerator:
        thought = self._knowledge.thought("wikisearch", "", f"Which article is about {name}?", name)
        search = yield from self._session.call_tool(thought, "wikisearch", query=name)
        return [FoundEntity(hit["title"], hit["entity"]) for hit in search["hits"]]


@dataclass(slots=True)
class LookupState:
    """The state of the lookups in one run."""

    session: ReplaySession
    knowledge: ReplayKnowledge
    names: EntityResolver
    reader: SentenceReader
    spread: bool | None = None
    """Whether different sources hold different facts; None until two of them were compared."""
    unclear: list[str] = field(default_factory=list)
    """Why the values of the current lookup may be incomplete."""
    silent: bool = False
    """Whether the graph lacks the relation of the current lookup."""

    @classmethod
    def begin(cls, session: ReplaySession, knowledge: ReplayKnowledge) -> "LookupState":
        """The state at the start of a run."""
        return cls(session, knowledge, EntityResolver(session, knowledge), SentenceReader(knowledge))

    def doubt(self, question: str, sentence: str) -> None:
        """Record a sentence that may state a value but matches no known pattern."""
        self.unclear.append(f"{question!r} may be answered by {sentence!r}, whose wording occurs in no demonstration")
