"""Reading articles as demonstrations do, and searching them for a value."""

import re

from reasoners.replay import kin
from reasoners.replay.asks import BLANK, TEXT
from reasoners.replay.english import plain
from reasoners.replay.entities import FoundEntity
from reasoners.replay.inquiry import LookupState
from reasoners.replay.walk import ReplayBroken, ReplayGenerator, ToolCallFailed
from reasoners.replay.wordings import relation_of
from tools.wikisearch import MAX_HITS


class ArticleLookup:
    """What the articles tell in one run."""

    def __init__(self, inquiry: LookupState) -> None:
        self._inquiry = inquiry
        self._read: dict[str, list[str]] = {}
        self._best: dict[str, list[str]] = {}
        self._titles: dict[str, str] = {}

    def with_article_title(self, thing: FoundEntity) -> FoundEntity:
        """The thing under the title of its article, where that is known to be another one than its name."""
        return FoundEntity(self._titles.get(thing.id or "", thing.text), thing.id)

    def look_up(self, template: str, thing: FoundEntity) -> ReplayGenerator:
        """What the article about a thing says; [] where it says nothing."""
        inquiry, asked = self._inquiry, template.replace(BLANK, thing.text)
        try:
            sentences, best = yield from self.sentences(template, thing)
        except ToolCallFailed as failed:
            inquiry.unclear.append(str(failed))
            return []
        thing = self.with_article_title(thing)
        results = inquiry.reader.answers(template, TEXT, sentences, thing.text)
        if not results and (
            odd := inquiry.reader.find_unread(sentences if inquiry.spread else best, thing.text, template, TEXT)
        ):
            inquiry.doubt(asked, odd)
        people = kin.is_personal(relation_of(template))
        return [FoundEntity(text) for text in results if not people or plain(text) != plain(thing.text)]

    def sentences(self, template: str, thing: FoundEntity) -> ReplayGenerator:
        """All that the article says, and what fits the question best; where facts are spread it is read once."""
        asked = template.replace(BLANK, thing.text)
        if not self._inquiry.spread or thing.text not in self._read:
            thought = self._inquiry.lessons.thought("read", template, asked, thing.text)
            title = thing.text
            try:
                read = yield from self._inquiry.walk.call_tool(thought, "read", title=title, question=asked)
            except ToolCallFailed:
                # Namesakes have titles of their own, which graphs do not know.
                title = yield from self._inquiry.names.find_title(thing)
                if title == thing.text:
                    raise
                self._titles[str(thing.id)] = title
                read = yield from self._inquiry.walk.call_tool(thought, "read", title=title, question=asked)
            if "sentences" not in read:
                raise ReplayBroken(f"several articles are called {title}")
            self._read[thing.text] = list(read["sentences"])
            self._best[thing.text] = [best["text"] for best in read["best"]]
        return self._read[thing.text], self._best[thing.text]

    def find_having(self, fact: str, value: str) -> ReplayGenerator:
        """Whom articles tell to have the value, by the snippets of a search for it."""
        inquiry, asked = self._inquiry, f"Whose {fact} is {value}?"
        seen = yield from inquiry.walk.call_tool(f"{asked} I search the articles.", "wikisearch", query=value)
        whole = re.compile(rf"(?<!\w){re.escape(value)}(?![\w)])")
        telling = [hit for hit in seen["hits"] if whole.search(hit["snippet"])]
        results = []
        for hit in telling:
            has = inquiry.reader.states_value(fact, value, TEXT, hit["snippet"], hit["title"])
            if has is None:
                raise ReplayBroken(
                    f"{asked!r} may be answered by {hit['snippet']!r}, which is said as in no demonstration"
                )
            results += [FoundEntity(hit["title"], hit["entity"])] if has else []
        alike = [hit for hit in seen["hits"] if plain(value) in plain(hit["snippet"])]
        if len(alike) >= MAX_HITS:
            raise ReplayBroken(f"a search for {value} finds more than it shows")
        return results
