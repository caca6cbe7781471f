"""Look-ups that unite the sources: what the graph's rows, the articles and the web pages say of a thing by a relation.

A look-up is complete, or it says why it is not: no source then is missing that could tell more. A relation of which a
thing has one value is complete with the first that a source tells; of others, and of what is absent, all sources must
have been read and understood. A relation that others define is followed by its definition.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from showhow.reasoners.mentions import DATE, THING, WorldWords
from showhow.reasoners.replay.calls import ReplayCalls, ReplayMoves
from showhow.reasoners.replay.derivations import Mismatch, ReplayValue, list_values
from showhow.reasoners.replay.observed import is_called
from showhow.reasoners.replay.phrases import Phrase
from showhow.reasoners.replay.statements import Reading, SentenceReader
from showhow.tools.search import DEFAULT_RESULTS
from showhow.worlds.lexicon import kinship
from showhow.worlds.lexicon.english import has_content, list_words, pluralize

GENDER = "sex or gender"
MAX_FOLLOWED = 40
"""The values of one look-up that are followed."""


def unite(values: Iterable[ReplayValue]) -> list[ReplayValue]:
    """The values, each once by its name or day, with its id if any source tells it."""
    united: dict[str, ReplayValue] = {}
    for value in values:
        key = value_key(value)
        if key not in united or united[key].id is None:
            united[key] = value
    return list(united.values())


def value_key(value: ReplayValue) -> str:
    """What two values have in common if they are the same, whether or not one has an id."""
    return ReplayValue(value.text).key


class UnitedLookUps:
    """The look-ups of one run, each made once."""

    def __init__(
        self, calls: ReplayCalls, world: WorldWords, reader: SentenceReader, sources: Sequence[str], *, spreads: bool
    ) -> None:
        self._calls, self._world, self._reader, self._sources = calls, world, reader, sources
        self._spreads = spreads
        self._known: dict[tuple[str, str], list[ReplayValue]] = {}
        self._texts: dict[str, Sequence[str]] = {}

    def follow(self, subjects: Sequence[ReplayValue], relations: Sequence[str]) -> ReplayMoves:
        """The values at the end of a chain of relations."""
        values = list(subjects)
        for relation in relations:
            if len(values) > MAX_FOLLOWED:
                raise Mismatch(f"it would follow {len(values)} values, and at most {MAX_FOLLOWED} are followed")
            ends = []
            for value in values:
                ends += yield from self.look_up(value, relation)
            values = unite(ends)
        return values

    def find_things(self, phrase: Phrase) -> ReplayMoves:
        """The things that a phrase stands for."""
        starts = [ReplayValue(phrase.name)]
        if phrase.holds is not None:
            starts = yield from self._find_holders([(phrase.holds, phrase.name), *phrase.conditions])
        return (yield from self.follow(starts, phrase.relations))

    def _find_holders(self, conditions: Sequence[tuple[str, str]]) -> ReplayMoves:
        """The things that have these values of these relations; Mismatch if there may be more of them."""
        gaps: list[str] = []
        for relation, value in conditions:
            try:
                candidates = yield from self._list_candidates(relation, ReplayValue(value))
                break
            except _Incomplete as gap:
                gaps.append(str(gap))
        else:
            raise Mismatch(gaps[0])
        holders = []
        for candidate in candidates:
            for relation, value in conditions:
                values = yield from self.look_up(candidate, relation)
                if value_key(ReplayValue(value)) not in map(value_key, values):
                    break
            else:
                holders.append(candidate)
        return holders

    def _list_candidates(self, relation: str, value: ReplayValue) -> ReplayMoves:
        """All that may have a value: what the graph's rows, articles and pages name with it."""
        candidates: list[ReplayValue] = []
        for source in self._sources:
            candidates += yield from (
                self._list_in_articles(value) if source == "text" else _LISTINGS[source](self, relation, value)
            )
            if source == "graph" and candidates and not self._spreads:
                break
        if len(candidates) > MAX_FOLLOWED:
            raise _Incomplete(f"it would follow {len(candidates)} things, and at most {MAX_FOLLOWED} are followed")
        return unite(candidates)

    def _list_in_graph(self, relation: str, value: ReplayValue) -> ReplayMoves:
        ask = f"Who are the people whose {relation} is {value.text}?"
        identifier = None if value.kind == DATE else (yield from self._identify(value))
        return (yield from self._query_graph(ask, [identifier] if identifier else []))

    def _list_in_articles(self, value: ReplayValue) -> ReplayMoves:
        data = yield from self._calls.call(f"Articles may name {value.text}.", "wikisearch", {"query": value.text})
        hits = [hit for hit in data.get("hits", ()) if not hit["relaxed"]]
        if len(hits) == len(data.get("hits", ())) == DEFAULT_RESULTS:
            raise _Incomplete(f"more articles than a search returns name {value.text}")
        return [ReplayValue(hit["title"], hit.get("entity")) for hit in hits if hit["title"] != value.text]

    def _list_in_pages(self, relation: str, value: ReplayValue) -> ReplayMoves:
        pages = yield from self._search(value.text)
        strict = [page for page in pages if not page["relaxed"]]
        if len(strict) == len(pages) == DEFAULT_RESULTS:
            raise _Incomplete(f"more pages than a search returns name {value.text}")
        candidates = []
        for page in strict:
            ask = f"Whose {relation} is {value.text}?"
            for sentence in (yield from self._read(page["address"], ask, f"{ask} A page may tell.")):
                if value.text in sentence:
                    candidates += [ReplayValue(name) for name in self._reader.list_names(sentence, value.text)]
        return candidates

    def look_up(self, subject: ReplayValue, relation: str) -> ReplayMoves:
        """All values of a relation of a subject; Mismatch if a source may have others."""
        key = value_key(subject), relation
        if key not in self._known:
            definition = kinship.find_relation_path(relation) if kinship.relates_people(relation) else None
            values = []
            if "graph" in self._sources and not self._spreads:
                values = yield from self._try(self._ask_graph(subject, relation))
            if not values and definition is not None:
                values = yield from self.follow([subject], definition.steps)
            elif not values:
                values = yield from self._look_up_basic(subject, relation)
            if definition is not None and definition.excludes_start:
                values = [value for value in values if value_key(value) != key[0]]
            self._known[key] = values
        return self._known[key]

    def _look_up_basic(self, subject: ReplayValue, relation: str) -> ReplayMoves:
        most = kinship.max_relatives(relation) or (1 if self._world.has_one_value(relation) else None)
        values: list[ReplayValue] = []
        gaps: list[str] = []
        for source in self._sources:
            try:
                values = unite([*values, *(yield from _SOURCES[source](self, subject, relation))])
            except _Incomplete as gap:
                gaps.append(str(gap))
            if gaps and source == "web":
                # Pages may be out of date, or about somebody else of that name.
                break
            if values and len(values) == most:
                return values
        if most is not None and len(values) > most:
            raise Mismatch(f"the sources tell {len(values)} values of {relation} for {subject.text}")
        if gaps:
            raise Mismatch(gaps[0])
        return values

    @staticmethod
    def _try(moves: ReplayMoves) -> ReplayMoves:
        """The values of a look-up; none if it is not complete."""
        try:
            return (yield from moves)
        except _Incomplete:
            return []

    def _ask_graph(self, subject: ReplayValue, relation: str) -> ReplayMoves:
        identifier = subject.id or (yield from self._identify(subject))
        if identifier is None:
            return []
        word = "Who" if kinship.relates_people(relation) else "What"
        ask = f"{word} is the {relation} of {subject.text}?"
        return (yield from self._query_graph(ask, [identifier]))

    def _query_graph(self, ask: str, entity_ids: list[str]) -> ReplayMoves:
        """The values of the query that the tools write for the question; none if they write none."""
        written = yield from self._calls.try_call(ask, "generateQuery", {"question": ask, "entity_ids": entity_ids})
        if written is None:
            return []
        if not written.get("candidates"):
            raise _Incomplete(f"no query is written for {ask!r}")
        arguments = {"sparql": written["candidates"][0]["sparql"]}
        table = yield from self._calls.call(f"The query for: {ask}", "runQuery", arguments)
        if table.get("truncated"):
            raise _Incomplete(f"the graph has more rows for {ask!r} than it returns")
        return list_values(table).get("/rows", [])

    def _identify(self, subject: ReplayValue) -> ReplayMoves:
        """The id of the only thing with this name; None if the graph has none."""
        entities = yield from self._list_entities(subject)
        if len(entities) > 1:
            raise Mismatch(f"several things are called {subject.text}")
        return entities[0]["id"] if entities else None

    def _list_entities(self, subject: ReplayValue) -> ReplayMoves:
        """The things with this name, or the one with this id if the graph finds it by the name."""
        thought = f"I need the id of {subject.text}."
        data = yield from self._calls.try_call(thought, "getWikiDataID", {"title": subject.text})
        entities = (data or {}).get("entities", ())
        return [own for own in entities if (own["id"] == subject.id if subject.id else is_called(own, subject.text))]

    def _read_article(self, subject: ReplayValue, relation: str) -> ReplayMoves:
        ask, title = f"What is the {relation} of {subject.text}?", subject.text
        sentences = yield from self._read(title, ask, f"{ask} The article may tell.")
        if not sentences and "graph" in self._sources:
            entities = yield from self._list_entities(subject)
            title = next((own["title"] for own in entities if own["title"] and len(entities) == 1), title)
            sentences = yield from self._read(title, ask, f"{ask} The article is called {title}.")
        reading = self._reader.read(sentences, title, is_title=True)
        return (yield from self._collect([reading], subject, relation))

    def _read_pages(self, subject: ReplayValue, relation: str) -> ReplayMoves:
        """What the pages say that name the subject, or those that also have a word for the relation."""
        words = self._relation_words(relation)
        addresses: dict[str, None] = {}
        is_complete = False
        for query in (subject.text, *(f"{subject.text} {word}" for word in words)):
            pages = yield from self._search(query)
            addresses |= dict.fromkeys(page["address"] for page in pages if not page["relaxed"])
            is_all = any(page["relaxed"] for page in pages) or len(pages) < DEFAULT_RESULTS
            is_complete = is_complete or (is_all and query == subject.text)
            if is_complete:
                break
            if query != subject.text and not is_all:
                raise _Incomplete(f"more pages than a search returns may tell the {relation} of {subject.text}")
        readings = []
        for address in addresses:
            ask = f"What is the {relation} of {subject.text}?"
            sentences = yield from self._read(address, ask, f"{ask} A page may tell.")
            readings.append(self._reader.read(sentences, subject.text, is_title=False))
        return (yield from self._collect(readings, subject, relation))

    def _read(self, title: str, ask: str, thought: str) -> ReplayMoves:
        """The sentences of an article or a page, which is read once; none if there is no such article."""
        if title not in self._texts:
            data = yield from self._calls.try_call(thought, "read", {"title": title, "question": ask})
            self._texts[title] = (data or {}).get("sentences", ())
        return self._texts[title]

    def _search(self, query: str) -> ReplayMoves:
        data = yield from self._calls.call(f"Web pages may tell it: {query}.", "websearch", {"query": query})
        return data.get("pages", [])

    @staticmethod
    def _relation_words(relation: str) -> list[str]:
        """The words by which pages state a relation, each in both numbers."""
        names = [relation, *(w for base in _basic(relation) for w in (base, *kinship.gendered_words(base)))]
        phrases = [p for name in names for p in (*kinship.words_for(name), *kinship.phrases_for(name))]
        words = dict.fromkeys(w.folded for p in phrases for w in list_words(p) if has_content(w.folded))
        return list(dict.fromkeys(form for word in words for form in (word, pluralize(word))))

    def _collect(self, readings: Sequence[Reading], subject: ReplayValue, relation: str) -> ReplayMoves:
        """The values that texts state; _Incomplete if a clause that is not understood may state another."""
        names, gender = _accepted(relation)
        values: list[ReplayValue] = []
        for statement in (own for reading in readings for own in reading.statements):
            if statement.relation not in names:
                continue
            value = ReplayValue(statement.value)
            stated = _gender(statement.relation) or statement.gender
            if gender is not None and stated is None:
                genders = yield from self.look_up(value, GENDER)
                stated = genders[0].text if len(genders) == 1 else None
                if stated is None:
                    raise Mismatch(f"nothing tells whether {value.text} is a {relation} of {subject.text}")
            values += [value] if stated == gender or gender is None else []
        kinds = self._world.value_kinds(relation) - {THING}
        if not values or self._world.has_one_value(relation) is False:
            for own, clause in ((own, clause) for reading in readings for own, clause in reading.unread):
                if own & kinds:
                    raise _Incomplete(
                        f"a sentence that no demonstration reads may tell the {relation} of {subject.text}: {clause!r}"
                    )
        return values


class _Incomplete(Exception):
    """A source may have more values than were read; the message is a clause that says why."""


def _basic(relation: str) -> tuple[str, ...]:
    return kinship.basic_path(relation).steps if kinship.relates_people(relation) else (relation,)


def _gender(relation: str) -> str | None:
    return kinship.basic_path(relation).gender if kinship.relates_people(relation) else None


def _accepted(relation: str) -> tuple[frozenset[str], str | None]:
    """The relations that state this one, of any gender, and the gender that it needs."""
    if not kinship.relates_people(relation):
        return frozenset({relation}), None
    path = kinship.basic_path(relation)
    (base,) = path.steps
    return frozenset({base, *kinship.gendered_words(base)}), path.gender


_LISTINGS: dict[str, Any] = {
    "graph": UnitedLookUps._list_in_graph,
    "web": UnitedLookUps._list_in_pages,
}
_SOURCES: dict[str, Any] = {
    "graph": UnitedLookUps._ask_graph,
    "text": UnitedLookUps._read_article,
    "web": UnitedLookUps._read_pages,
}
