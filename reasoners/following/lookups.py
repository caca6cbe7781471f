"""Looking things up as demonstrations show it: by queries that are written or were typed, in articles, on pages."""

import re
from collections.abc import Sequence

from reasoners.following import kin
from reasoners.following.asks import BLANK, GRAPH, TEXT, WEB, shown
from reasoners.following.english import as_day, listed, plain
from reasoners.following.lessons import Lessons
from reasoners.following.names import Names
from reasoners.following.reader import Reader
from reasoners.following.things import Thing, bare_name, merged, same_value, ways_to_write
from reasoners.following.walk import Broken, NotCalled, Steps, Walk
from reasoners.following.wordings import relation_of
from tools.wikisearch import MOST_HITS

MOST_PAGES = 3
_ON_THE_WAY = re.compile(r"\?x\d")


class Lookups:
    """One run's way of looking things up."""

    def __init__(self, walk: Walk, lessons: Lessons) -> None:
        self._walk, self._lessons, self._reader = walk, lessons, Reader(lessons)
        self.names = Names(walk, lessons)
        self._spread: bool | None = None  # not known until two sources were compared
        self._unclear: list[str] = []
        self._read: dict[str, list[str]] = {}
        self._best: dict[str, list[str]] = {}

    @property
    def spread(self) -> bool:
        """Whether the sources tell different facts, as far as is known."""
        return bool(self._spread)

    def ask(self, template: str, thing: Thing, *, on_the_way: bool = False) -> Steps:
        """What the sources tell in answer; [] where they tell that there is nothing, Broken where that is unclear.

        Of somebody on the way to others it needs no demonstration that there may be nothing.
        """
        way = kin.way(relation_of(template))
        if self._spread is None and kin.of_people(relation_of(template)):
            yield from self._probe(thing, template)
        if way is None or self._spread is not True:
            return (yield from self._told(template, thing, on_the_way=on_the_way))
        found: list[Thing] = []
        if not kin.is_compound(relation_of(template)):
            found = yield from self._told(template, thing, on_the_way=True)
        more = yield from self._along(way, thing)
        return merged(found, more)

    def _along(self, way: kin.Way, thing: Thing) -> Steps:
        """Whom relations lead to one after the other, where no source knows both."""
        things = [thing]
        for step in way.steps:
            reached: list[Thing] = []
            for each in things:
                more = yield from self.ask(self._lessons.wordings.asked(step), each, on_the_way=True)
                reached = merged(reached, more)
            things = reached
        return [each for each in things if not way.differs or plain(each.text) != plain(thing.text)]

    def _told(self, template: str, thing: Thing, *, on_the_way: bool) -> Steps:
        """What the sources tell by themselves."""
        self._unclear = []
        asked = template.replace(BLANK, thing.text)
        found: list[Thing] = []
        for source in (GRAPH, TEXT, WEB):
            if source not in self._lessons.sources or (found and not self._wanted(template)):
                continue
            ways = {GRAPH: self._by_query, TEXT: self._by_article, WEB: self._on_pages}
            more = yield from ways[source](template, thing, asked)
            found = merged(found, more)
            if source == GRAPH and self._spread is False and (found or not self._unclear):
                break
        if self._unclear and (not found or (self._spread is not False and template.startswith("Who "))):
            raise Broken(self._unclear[0])
        none_shown = on_the_way or template in self._lessons.found_nothing
        if not found and self._spread is not False and not none_shown:
            raise Broken(f"no source answers {asked!r}, and no demonstration shows that it can have no answer")
        self._walk.note(f"{asked} {listed([thing.text for thing in found])}.")
        return found

    def having(self, fact: str, value: str) -> Steps:
        """Everybody of whom the sources tell that the fact has the value."""
        shown_ways = self._lessons.backward.get(fact)
        found: list[Thing] = []
        if GRAPH in self._lessons.sources or (shown_ways and shown_ways.queries):
            found = yield from self._by_typed(fact, value)
        if found and self._spread is None:
            yield from self._probe(found[0], "")
        if self._goes_on(found) and self._lessons.searches and "wikisearch" in self._walk.tools:
            more = yield from self._by_search(fact, value)
            found = merged(found, more)
        if self._goes_on(found):
            for template in (shown_ways.templates if shown_ways else ())[:1]:
                more = yield from self._on_pages(template, Thing(value), template.replace(BLANK, value))
                found = merged(found, more)
        if not found:
            raise Broken(f"nobody is found whose {fact} is {value}")
        self._walk.note(f"Whose {fact} is {value}? {listed([thing.text for thing in found])}.")
        return found

    def _goes_on(self, found: Sequence[Thing]) -> bool:
        """Whether more sources are asked: where nothing was found, or each may tell a part."""
        return not found or self._spread is not False

    def _wanted(self, template: str) -> bool:
        """Whether another source is asked although one has answered: for people, who may be told in parts."""
        return self._spread is not False and template.startswith("Who ")

    def _compare(self, template: str, thing: Thing, asked: str, found: Sequence[Thing]) -> Steps:
        """Whether the article says what the graph does: if not, the facts are spread over the sources.

        Two people may be told of each other in two sources; then, and where nothing is found, other questions decide.
        """
        if TEXT not in self._lessons.sources or "read" not in self._walk.tools:
            self._spread = False
            return
        if not found or template.startswith("Who "):
            yield from self._probe(thing, template)
            return
        thought = self._lessons.thought("read", template, asked, thing.text)
        try:
            read = yield from self._walk.call(thought, "read", title=thing.text, question=asked)
        except NotCalled:
            return
        text = " ".join(read["sentences"])
        same = all(any(way in text for way in ways_to_write(each.text)) for each in found)
        # A town may stand in an article as something else; a day hardly does.
        if not same or any(as_day(each.text) for each in found):
            self._spread = not same

    def _probe(self, thing: Thing, asked_already: str) -> Steps:
        """Compare the sources by something else that demonstrations ask the graph for."""
        silent = TEXT in self._lessons.sources and self._spread is None
        for template in self._lessons.asked_of_graph:
            if template != asked_already and self._spread is None and not template.startswith("Who "):
                self._spread = True  # until it is told otherwise, and so that the probe is not probed
                asked = template.replace(BLANK, thing.text)
                found = yield from self._by_query(template, thing, asked)
                self._spread = None
                if found:
                    silent = False
                    yield from self._compare(template, thing, asked, found)
        if silent and self._spread is None:
            self._spread = True  # the graph knows nothing of somebody

    def _by_query(self, template: str, thing: Thing, asked: str) -> Steps:
        """By a query that a tool writes, if it is read as what is asked."""
        entity = thing.id or (yield from self.names.named(thing.text)).id
        lessons, walk = self._lessons, self._walk
        try:
            thought = lessons.thought("generateQuery", template, asked, thing.text)
            written = yield from walk.call(thought, "generateQuery", question=asked, entity_ids=[str(entity)])
        except NotCalled as failed:
            self._unclear.append(str(failed))
            return []
        # Who is a father only as the husband of the mother is asked for by way of her, source by source.
        spread_kin = bool(self._spread) and kin.of_people(relation_of(template))
        for candidate in written["candidates"]:
            reading = (
                candidate["reading"].removesuffix(f" of {thing.text}").removesuffix(f" of {bare_name(thing.text)}")
            )
            understood = reading != candidate["reading"] and lessons.understood(template, reading)
            if understood and not (spread_kin and _ON_THE_WAY.search(candidate["sparql"])):
                break
        else:
            if not (spread_kin and written["candidates"]):
                self._unclear.append(f"no query is written that asks {asked!r}")
            return []
        if self._spread and _ON_THE_WAY.search(candidate["sparql"]):
            self._unclear.append(f"the facts are spread over sources, and no demonstration takes {asked!r} apart")
            return []
        thought = f"It is read as: {candidate['reading']}. That is what I ask."
        found = yield from self._rows(thought, candidate["sparql"])
        if self._spread is None:
            yield from self._compare(template, thing, asked, found)
        if self._spread is not False and _ON_THE_WAY.search(candidate["sparql"]):
            self._unclear.append(f"the facts are spread over sources, and no demonstration takes {asked!r} apart")
            return []
        return found

    def _by_typed(self, fact: str, value: str) -> Steps:
        """By the query that a demonstration typed for the fact, else by one that is written and read as is asked."""
        ways = self._lessons.backward.get(fact)
        thing = None if as_day(value) else (yield from self._valued(fact, value))
        if thing is None and not as_day(value):
            return []
        if ways and ways.queries and thing:
            asked = ways.templates[0].replace(BLANK, value) if ways.templates else f"Whose {fact} is {value}?"
            return (yield from self._rows(asked, ways.queries[0].replace(BLANK, str(thing.id))))
        asked = f"Who is the person whose {fact} is {value}?"
        ids = [str(thing.id)] if thing else []
        written = yield from self._walk.call(asked, "generateQuery", question=asked, entity_ids=ids)
        for candidate in written["candidates"]:
            if plain(candidate["reading"]) == plain(f"those whose {fact} is {value}"):
                return (yield from self._rows(asked, candidate["sparql"]))
        return []

    def _valued(self, fact: str, value: str) -> Steps:
        """The thing that is a value of the fact; None where the graph has none of that name."""
        thought = self._lessons.thought("getWikiDataID", "", f"What is the id of {value}?", value)
        try:
            found = yield from self._walk.call(thought, "getWikiDataID", title=value)
        except NotCalled:
            return None
        same = [each for each in found["entities"] if plain(each["label"]) == plain(value)]
        told = [each for each in same if plain(each["description"] or "") == plain(fact)] if len(same) > 1 else same
        if len(told) > 1:
            raise Broken(f"several things are called {value}")
        return Thing(told[0]["label"], told[0]["id"]) if told else None

    def _rows(self, thought: str, sparql: str) -> Steps:
        table = yield from self._walk.call(thought, "runQuery", sparql=sparql)
        if table["truncated"]:
            raise Broken("the graph has more rows than a query may give")
        cells = [row[0] for row in table["rows"] if row and row[0] is not None]
        return [Thing(str(shown(cell)), cell["value"] if cell["kind"] == "entity" else None) for cell in cells]

    def _by_article(self, template: str, thing: Thing, asked: str) -> Steps:
        """By the sentences of the thing's article."""
        thought = self._lessons.thought("read", template, asked, thing.text)
        try:
            sentences = yield from self._sentences(thought, thing.text, asked)
        except NotCalled as failed:
            self._unclear.append(str(failed))
            return []
        found = self._reader.answers(template, TEXT, sentences, thing.text)
        if not found and (
            odd := self._reader.odd(sentences if self._spread else self._best[thing.text], thing.text, template, TEXT)
        ):
            self._unclear.append(f"{asked!r} may be answered by {odd!r}, which is said as in no demonstration")
        return [Thing(text) for text in found]

    def _sentences(self, thought: str, title: str, asked: str) -> Steps:
        """What an article or a page says; where much is asked because facts are spread, each is read once."""
        if not self._spread or title not in self._read:
            read = yield from self._walk.call(thought, "read", title=title, question=asked)
            self._read[title] = list(read["sentences"])
            self._best[title] = [best["text"] for best in read["best"]]
        return self._read[title]

    def _on_pages(self, template: str, thing: Thing, asked: str) -> Steps:
        """By pages that a search with the question finds, if their snippets say it."""
        relation = relation_of(template)
        pages: list[dict[str, str]] = []
        # Pages tell of fathers and mothers: a search for the parent finds them by no word.
        for word in self._lessons.words_on_pages(relation) if self._spread and kin.of_people(relation) else [""]:
            question = self._lessons.wordings.asked(word).replace(BLANK, thing.text) if word else asked
            thought = self._lessons.thought("websearch", template, question, thing.text)
            try:
                seen = yield from self._walk.call(thought, "websearch", query=question)
            except NotCalled as failed:
                self._unclear.append(str(failed))
                return []
            pages += seen["pages"]
        found: list[Thing] = []
        telling = [page for page in pages if self._reader.answers(template, WEB, [page["snippet"]], thing.text)]
        for address, title in list({page["address"]: page["title"] for page in telling}.items())[:MOST_PAGES]:
            read = yield from self._sentences(f"The page {title} may tell it.", address, asked)
            told = self._reader.answers(template, WEB, read, thing.text)
            found = merged(found, [Thing(text) for text in told])
        about = [page["snippet"] for page in pages if thing.text in page["snippet"]]
        if not found and (odd := self._reader.odd(about, thing.text, template, WEB)):
            self._unclear.append(f"{asked!r} may be answered by {odd!r}, which is said as in no demonstration")
        if len(found) > 1 and not template.startswith("Who "):
            raise Broken(f"web pages contradict each other about {asked!r}")
        return found

    def _by_search(self, fact: str, value: str) -> Steps:
        """By articles that a search for the value finds, if their snippets say it of whom they are about."""
        asked = f"Whose {fact} is {value}?"
        seen = yield from self._walk.call(f"{asked} I search the articles.", "wikisearch", query=value)
        template = self._lessons.wordings.asked(fact, what=True)
        whole = re.compile(rf"(?<!\w){re.escape(value)}(?![\w)])")
        telling = [hit for hit in seen["hits"] if whole.search(hit["snippet"])]
        for hit in telling:
            if not self._reader.answers(template, TEXT, [hit["snippet"]], hit["title"]):
                raise Broken(f"{asked!r} may be answered by {hit['snippet']!r}, which is said as in no demonstration")
        alike = [hit for hit in seen["hits"] if plain(value) in plain(hit["snippet"])]
        if len(alike) >= MOST_HITS:
            raise Broken(f"a search for {value} finds more than it shows")
        return [
            Thing(hit["title"], hit["entity"])
            for hit in telling
            if same_value(value)
            in map(same_value, self._reader.answers(template, TEXT, [hit["snippet"]], hit["title"]))
        ]
