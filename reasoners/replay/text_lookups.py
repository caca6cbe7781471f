"""Lookups in articles and web pages: the text about an entity, and searches for entities with a value.

Names are resolved to entities during one run; article titles tell namesakes apart.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from reasoners.replay.english import as_day, names_in, plain
from reasoners.replay.knowledge import ReplayKnowledge
from reasoners.replay.recorded_lookups import BLANK, TEXT, WEB, relation_of
from reasoners.replay.sentence_reader import SentenceReader
from reasoners.replay.session import (
    FoundEntity,
    ReplayBroken,
    ReplayGenerator,
    ReplaySession,
    ToolCallFailed,
    bare_name,
    merge_entities,
)
from tools.websearch import MAX_PAGES
from tools.wikisearch import MAX_HITS
from worlds.lexicon import kinship

MAX_PAGES_READ = 3
"""The pages read for one lookup if one source holds all facts."""
_OUTDATED_DAYS = 3 * 365
"""A page this much older than the newest one may be outdated about facts that change."""
PageResult = Mapping[str, Any]


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


class ArticleLookup:
    """Looks up values in the articles during one run; reads each article once where facts are spread over sources."""

    def __init__(self, state: LookupState) -> None:
        self._state = state
        self._read: dict[str, list[str]] = {}
        self._best: dict[str, list[str]] = {}
        self._titles: dict[str, str] = {}

    def with_article_title(self, subject: FoundEntity) -> FoundEntity:
        """The entity under the title of its article, if that is known to differ from its name."""
        return FoundEntity(self._titles.get(subject.id or "", subject.text), subject.id)

    def look_up(self, template: str, subject: FoundEntity) -> ReplayGenerator:
        """Return the values in the article about an entity; [] if it states none."""
        state, question = self._state, template.replace(BLANK, subject.text)
        try:
            sentences, best = yield from self.sentences(template, subject)
        except ToolCallFailed as error:
            state.unclear.append(str(error))
            return []
        subject = self.with_article_title(subject)
        values = state.reader.answers(template, TEXT, sentences, subject.text)
        if not values and (
            unread := state.reader.find_unread(sentences if state.spread else best, subject.text, template, TEXT)
        ):
            state.doubt(question, unread)
        names_people = kinship.relates_people(relation_of(template))
        return [FoundEntity(text) for text in values if not names_people or plain(text) != plain(subject.text)]

    def sentences(self, template: str, subject: FoundEntity) -> ReplayGenerator:
        """Return all sentences of the article and those most relevant to the question."""
        question = template.replace(BLANK, subject.text)
        if not self._state.spread or subject.text not in self._read:
            thought = self._state.knowledge.thought("read", template, question, subject.text)
            title = subject.text
            try:
                article = yield from self._state.session.call_tool(thought, "read", title=title, question=question)
            except ToolCallFailed:
                # Articles about namesakes have titles that the graph does not have.
                title = yield from self._state.names.find_title(subject)
                if title == subject.text:
                    raise
                self._titles[str(subject.id)] = title
                article = yield from self._state.session.call_tool(thought, "read", title=title, question=question)
            if "sentences" not in article:
                raise ReplayBroken(f"several articles are called {title}")
            self._read[subject.text] = list(article["sentences"])
            self._best[subject.text] = [sentence["text"] for sentence in article["best"]]
        return self._read[subject.text], self._best[subject.text]

    def find_having(self, fact: str, value: str) -> ReplayGenerator:
        """Search for the value; return the entities whose snippet states that they have it."""
        state, question = self._state, f"Whose {fact} is {value}?"
        search = yield from state.session.call_tool(f"{question} I search the articles.", "wikisearch", query=value)
        whole_value = re.compile(rf"(?<!\w){re.escape(value)}(?![\w)])")
        hits_with_value = [hit for hit in search["hits"] if whole_value.search(hit["snippet"])]
        entities = []
        for hit in hits_with_value:
            has_value = state.reader.states_value(fact, value, TEXT, hit["snippet"], hit["title"])
            if has_value is None:
                raise ReplayBroken(
                    f"{question!r} may be answered by {hit['snippet']!r}, whose wording occurs in no demonstration"
                )
            entities += [FoundEntity(hit["title"], hit["entity"])] if has_value else []
        similar_hits = [hit for hit in search["hits"] if plain(value) in plain(hit["snippet"])]
        if len(similar_hits) >= MAX_HITS:
            raise ReplayBroken(f"a search for {value} finds more than it shows")
        return entities


class WebPageLookup:
    """Looks up values in web pages during one run; each page is read once."""

    def __init__(self, state: LookupState) -> None:
        self._state = state
        self._read: dict[str, list[str]] = {}
        self._newest = ""

    def look_up(self, template: str, subject: FoundEntity) -> ReplayGenerator:
        """Return the values that pages state about an entity; [] if they state none."""
        state, question = self._state, template.replace(BLANK, subject.text)
        try:
            pages = yield from self._about(template, subject)
        except ToolCallFailed as error:
            state.unclear.append(str(error))
            return []
        entities: list[FoundEntity] = []
        all_sentences: list[str] = []
        for page in pages:
            sentences = [
                sentence for sentence in (yield from self._sentences(page, question)) if subject.text in sentence
            ]
            all_sentences += sentences
            values = state.reader.answers(template, WEB, sentences, subject.text)
            entities = merge_entities(entities, [FoundEntity(text) for text in values])
        if not entities and (unread := state.reader.find_unread(all_sentences, subject.text, template, WEB)):
            state.doubt(question, unread)
        if len(entities) > 1 and not template.startswith("Who "):
            raise ReplayBroken(f"web pages contradict each other about {question!r}")
        return entities

    def find_having(self, fact: str, value: str) -> ReplayGenerator:
        """Return the entities that pages state to have the value.

        Searches as demonstrations do, and also by the value itself if facts are spread over the sources.
        """
        state, question = self._state, f"Whose {fact} is {value}?"
        reverse_lookups = state.knowledge.backward.get(fact)
        queries = [
            template.replace(BLANK, value) for template in (reverse_lookups.templates[:1] if reverse_lookups else ())
        ]
        queries += [value] if state.spread is not False and not as_day(value) else []
        whole_value = re.compile(rf"(?<!\w){re.escape(value)}(?![\w)])")
        entities: list[FoundEntity] = []
        for page in (yield from self._search(queries, question, value)):
            if not whole_value.search(page["snippet"]) or (_changes(fact) and self._is_old(page)):
                continue
            for sentence in (yield from self._sentences(page, question)):
                if whole_value.search(sentence):
                    people = self._who(fact, value, sentence)
                    entities = merge_entities(entities, [entity for entity in people if self._is_about(page, entity)])
        return entities

    def _who(self, fact: str, value: str, sentence: str) -> list[FoundEntity]:
        names = [name for name in names_in(sentence) if plain(name) != plain(value)]
        has_value_by_name = [
            (name, self._state.reader.states_value(fact, value, WEB, sentence, name)) for name in names
        ]
        if names and all(has_value is None for _, has_value in has_value_by_name):
            question = f"Whose {fact} is {value}?"
            raise ReplayBroken(
                f"{question!r} may be answered by {sentence!r}, whose wording occurs in no demonstration"
            )
        return [FoundEntity(name) for name, has_value in has_value_by_name if has_value]

    def _about(self, template: str, subject: FoundEntity) -> ReplayGenerator:
        """The pages to read: all that name the subject if facts are spread, else those whose snippet states a value."""
        question, relation = template.replace(BLANK, subject.text), relation_of(template)
        can_change = _changes(relation or template)
        if not self._state.spread:
            pages = yield from self._search([question], template, subject.text)
            reader = self._state.reader
            matching = [page for page in pages if reader.answers(template, WEB, [page["snippet"]], subject.text)]
            snippets = [page["snippet"] for page in pages if subject.text in page["snippet"]]
            if not matching and (unread := reader.find_unread(snippets, subject.text, template, WEB)):
                self._state.doubt(question, unread)
            return [page for page in matching if self._is_about(page, subject)][:MAX_PAGES_READ]
        pages = yield from self._search([subject.text], template, subject.text)
        if _is_full(pages):
            words = self._state.knowledge.words_on_pages(template)
            if not (kinship.relates_people(relation) or template.startswith("When ")):
                # A page may state an occupation without a word for it: "became a baker".
                self._state.unclear.append(f"a search for {subject.text} finds more pages than it shows")
            for query in (f"{subject.text} {word}" for word in words):
                more = yield from self._search([query], template, subject.text)
                pages = list({page["address"]: page for page in (*more, *pages)}.values())
                if _is_full(more):
                    self._state.unclear.append(f"a search for {query} finds more pages than it shows")
        named = [page for page in pages if subject.text in page["snippet"]]
        return [page for page in named if self._is_about(page, subject) and not (can_change and self._is_old(page))]

    def _search(self, queries: Sequence[str], template: str, subject: str) -> ReplayGenerator:
        pages: dict[str, PageResult] = {}
        for query in queries:
            thought = self._state.knowledge.thought("websearch", template, query, subject)
            search = yield from self._state.session.call_tool(thought, "websearch", query=query)
            for page in search["pages"]:
                # Of several snippets of one page, the one that names the subject is kept.
                if subject not in pages.get(page["address"], {"snippet": ""})["snippet"]:
                    pages[page["address"]] = page
        self._newest = max((self._newest, *(page["date"] or "" for page in pages.values())))
        return list(pages.values())

    def _sentences(self, page: PageResult, question: str) -> ReplayGenerator:
        """The sentences of a page; each page is read once."""
        address = page["address"]
        if address not in self._read:
            thought = f"The page {page['title']} may tell it."
            page_data = yield from self._state.session.call_tool(thought, "read", title=address, question=question)
            self._read[address] = list(page_data["sentences"])
        return self._read[address]

    def _is_about(self, page: PageResult, subject: FoundEntity) -> bool:
        """Whether the page is about this entity, and not a namesake by its title, such as Ada Lund (1690-1742)."""
        title = str(page["title"])
        return "(" not in title or bare_name(title) != bare_name(subject.text) or title == subject.text

    def _is_old(self, page: PageResult) -> bool:
        """Whether the page is much older than the newest page of the run."""
        if not (page["date"] and self._newest):
            return False
        return (date.fromisoformat(self._newest) - date.fromisoformat(page["date"])).days > _OUTDATED_DAYS


def _is_full(pages: Sequence[PageResult]) -> bool:
    """Whether the search returned the maximum number of pages, so that there may be more."""
    return len([page for page in pages if not page["relaxed"]]) >= MAX_PAGES


def _changes(asked: str) -> bool:
    """Whether the fact can change over time: homes, jobs and hobbies can, dates and parents cannot."""
    return not (kinship.relates_people(asked) or asked.startswith("When ") or "date" in asked.split())
