"""Reading web pages as demonstrations do: about somebody, or about all who have a value."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from reasoners.replay import kin
from reasoners.replay.asks import BLANK, WEB
from reasoners.replay.english import as_day, names_in, plain
from reasoners.replay.entities import FoundEntity, bare_name, merge_entities
from reasoners.replay.inquiry import LookupState
from reasoners.replay.walk import ReplayBroken, ReplayGenerator, ToolCallFailed
from reasoners.replay.wordings import relation_of
from tools.websearch import MAX_PAGES

MAX_PAGES_READ = 3
"""Pages that are read where one source tells all."""
_OUTDATED_DAYS = 3 * 365
"""Days after which a page may be out of date about what changes."""
PageResult = Mapping[str, Any]


class WebPageLookup:
    """What the web pages tell in one run."""

    def __init__(self, inquiry: LookupState) -> None:
        self._inquiry = inquiry
        self._read: dict[str, list[str]] = {}
        self._newest = ""

    def look_up(self, template: str, thing: FoundEntity) -> ReplayGenerator:
        """What pages say of a thing; [] where they say nothing."""
        inquiry, asked = self._inquiry, template.replace(BLANK, thing.text)
        try:
            pages = yield from self._about(template, thing)
        except ToolCallFailed as failed:
            inquiry.unclear.append(str(failed))
            return []
        results: list[FoundEntity] = []
        said: list[str] = []
        for page in pages:
            sentences = [one for one in (yield from self._sentences(page, asked)) if thing.text in one]
            said += sentences
            stated = inquiry.reader.answers(template, WEB, sentences, thing.text)
            results = merge_entities(results, [FoundEntity(text) for text in stated])
        if not results and (odd := inquiry.reader.find_unread(said, thing.text, template, WEB)):
            inquiry.doubt(asked, odd)
        if len(results) > 1 and not template.startswith("Who "):
            raise ReplayBroken(f"web pages contradict each other about {asked!r}")
        return results

    def find_having(self, fact: str, value: str) -> ReplayGenerator:
        """Whom pages tell to have the value, asked as demonstrations ask, and by the value where facts are spread."""
        inquiry, asked = self._inquiry, f"Whose {fact} is {value}?"
        ways = inquiry.lessons.backward.get(fact)
        queries = [template.replace(BLANK, value) for template in (ways.templates[:1] if ways else ())]
        queries += [value] if inquiry.spread is not False and not as_day(value) else []
        whole = re.compile(rf"(?<!\w){re.escape(value)}(?![\w)])")
        results: list[FoundEntity] = []
        for page in (yield from self._search(queries, asked, value)):
            if not whole.search(page["snippet"]) or (_changes(fact) and self._is_old(page)):
                continue
            for sentence in (yield from self._sentences(page, asked)):
                if whole.search(sentence):
                    people = self._who(fact, value, sentence)
                    results = merge_entities(results, [item for item in people if self._is_about(page, item)])
        return results

    def _who(self, fact: str, value: str, sentence: str) -> list[FoundEntity]:
        names = [name for name in names_in(sentence) if plain(name) != plain(value)]
        stated = [(name, self._inquiry.reader.states_value(fact, value, WEB, sentence, name)) for name in names]
        if names and all(has is None for _, has in stated):
            asked = f"Whose {fact} is {value}?"
            raise ReplayBroken(f"{asked!r} may be answered by {sentence!r}, which is said as in no demonstration")
        return [FoundEntity(name) for name, has in stated if has]

    def _about(self, template: str, thing: FoundEntity) -> ReplayGenerator:
        """The pages that may tell: all that name somebody where facts are spread, else those whose snippets tell it."""
        asked, relation = template.replace(BLANK, thing.text), relation_of(template)
        changes = _changes(relation or template)
        if not self._inquiry.spread:
            pages = yield from self._search([asked], template, thing.text)
            reader = self._inquiry.reader
            telling = [item for item in pages if reader.answers(template, WEB, [item["snippet"]], thing.text)]
            about = [item["snippet"] for item in pages if thing.text in item["snippet"]]
            if not telling and (odd := reader.find_unread(about, thing.text, template, WEB)):
                self._inquiry.doubt(asked, odd)
            return [page for page in telling if self._is_about(page, thing)][:MAX_PAGES_READ]
        pages = yield from self._search([thing.text], template, thing.text)
        if _is_full(pages):
            words = self._inquiry.lessons.words_on_pages(template)
            if not (kin.is_personal(relation) or template.startswith("When ")):
                # Somebody may have become a baker on a page that has no word for an occupation.
                self._inquiry.unclear.append(f"a search for {thing.text} finds more pages than it shows")
            for query in (f"{thing.text} {word}" for word in words):
                more = yield from self._search([query], template, thing.text)
                pages = list({page["address"]: page for page in (*more, *pages)}.values())
                if _is_full(more):
                    self._inquiry.unclear.append(f"a search for {query} finds more pages than it shows")
        named = [page for page in pages if thing.text in page["snippet"]]
        return [page for page in named if self._is_about(page, thing) and not (changes and self._is_old(page))]

    def _search(self, queries: Sequence[str], template: str, subject: str) -> ReplayGenerator:
        pages: dict[str, PageResult] = {}
        for query in queries:
            thought = self._inquiry.lessons.thought("websearch", template, query, subject)
            seen = yield from self._inquiry.walk.call_tool(thought, "websearch", query=query)
            for page in seen["pages"]:
                # A page counts by the snippet that names whom it is about.
                if subject not in pages.get(page["address"], {"snippet": ""})["snippet"]:
                    pages[page["address"]] = page
        self._newest = max((self._newest, *(page["date"] or "" for page in pages.values())))
        return list(pages.values())

    def _sentences(self, page: PageResult, asked: str) -> ReplayGenerator:
        """What a page says; each is read once."""
        address = page["address"]
        if address not in self._read:
            thought = f"The page {page['title']} may tell it."
            read = yield from self._inquiry.walk.call_tool(thought, "read", title=address, question=asked)
            self._read[address] = list(read["sentences"])
        return self._read[address]

    def _is_about(self, page: PageResult, thing: FoundEntity) -> bool:
        """Whether a page is not about a namesake, as its title tells: Ada Lund (1690-1742)."""
        title = str(page["title"])
        return "(" not in title or bare_name(title) != bare_name(thing.text) or title == thing.text

    def _is_old(self, page: PageResult) -> bool:
        """Whether a page is much older than another one that was seen."""
        if not (page["date"] and self._newest):
            return False
        return (date.fromisoformat(self._newest) - date.fromisoformat(page["date"])).days > _OUTDATED_DAYS


def _is_full(pages: Sequence[PageResult]) -> bool:
    """Whether a search may have found more pages with all words than it shows."""
    return len([page for page in pages if not page["relaxed"]]) >= MAX_PAGES


def _changes(asked: str) -> bool:
    """Whether what is asked for may have been otherwise: homes, jobs and hobbies, no days and no parents."""
    return not (kin.is_personal(asked) or asked.startswith("When ") or "date" in asked.split())
