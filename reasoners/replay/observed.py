"""What the steps of a demonstration observed: facts by relation, and what was asked of which thing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from showhow.db.models import Step
from showhow.reasoners.mentions import WorldWords, find_question_mentions
from showhow.reasoners.replay.derivations import ReplayValue, list_values
from showhow.reasoners.replay.statements import SentenceReader, find_relations
from showhow.worlds.lexicon import kinship
from showhow.worlds.lexicon.english import list_words, nouns_for_kinds
from showhow.worlds.source import World
from showhow.worlds.text_normalization import normalize_name

_TRIPLE = re.compile(r"(\?\w+|wd:Q\d+) wdt:(P\d+) (\?\w+|wd:Q\d+) ?[.}]")
Path = tuple[str, ...]


def read_ask(question: str, world: WorldWords, title: str = "") -> tuple[str, str] | None:
    """The thing that a question of one relation is about, and the relation; None for other questions.

    A question that names nothing is about the title of what is read.
    """
    mentions = find_question_mentions(question, world.knows, nouns_for_kinds())
    if len(mentions) != 1 and (mentions or not title):
        return None
    start, end = mentions[0] if mentions else (0, 0)
    words = [w.folded for w in list_words(question) if not start <= w.start < end]
    meanings = [meanings for _, _, meanings in find_relations(words, world)]
    if len(meanings) != 1:
        return None
    is_when = words[:1] == ["when"]
    fitting = [r for r in meanings[0] if is_when == ("date" in world.value_kinds(r)) or len(meanings[0]) == 1]
    if words[:1] == ["who"]:
        fitting = [r for r in fitting if kinship.relates_people(r)]
    return (question[start:end] or title, fitting[0]) if len(fitting) == 1 else None


class ObservedFacts:
    """The facts and the asks of one trace."""

    def __init__(
        self, steps: Sequence[Step], world: WorldWords, reader: SentenceReader, labels: Mapping[str, str]
    ) -> None:
        self._world, self._reader, self._labels = world, reader, labels
        self._names: dict[str, str] = {}
        self._facts: dict[tuple[str, str], dict[str, ReplayValue]] = {}
        self.asks: dict[tuple[str, Path], None] = {}
        """The keys of things, each with the relations that were followed from it at once."""
        asks: dict[str, tuple[str, str] | None] = {}
        for step in steps:
            data = step.data or {}
            self._note_names(data)
            if step.tool == "getWikiDataID":
                name = str(step.arguments["title"])
                same = [own["id"] for own in data.get("entities", ()) if is_called(own, name)]
                self._names |= dict.fromkeys(same, name)
            elif step.tool == "getTailEntities" and not data.get("truncated", True):
                subject = self._names.get(data["entity"], data["entity_label"])
                self._add(subject, data["relation_label"], list_values(data).get("/values", ()))
            elif step.tool == "generateQuery":
                asks |= {
                    own["sparql"]: read_ask(step.arguments["question"], world) for own in data.get("candidates", ())
                }
            elif step.tool == "runQuery":
                sparql = step.arguments["sparql"]
                ask = asks.get(sparql)
                if ask is not None:
                    self._add(ask[0], ask[1], list_values(data).get("/rows", ()))
                else:
                    self._add_rows(sparql, data)
            elif "sentences" in data:
                self._read(step, data)
            for hit in data.get("hits", ()):
                self._read_text([hit["snippet"]], hit["title"], is_title=True)

    def look_up(self, subject: ReplayValue, relation: str) -> list[ReplayValue]:
        """The observed values of a relation, also by its definition."""
        definition = kinship.find_relation_path(relation) if kinship.relates_people(relation) else None
        values = dict(self._facts.get((_key(subject.text), relation), {}))
        if kinship.relates_people(relation):
            path = kinship.basic_path(relation)
            for word in (path.steps[0], *kinship.gendered_words(path.steps[0])) if len(path.steps) == 1 else ():
                # What is observed of any gender was looked up for the one that is asked for.
                if path.gender is None or kinship.basic_path(word).gender in (None, path.gender):
                    values |= self._facts.get((_key(subject.text), word), {})
        if definition is not None:
            ends = [subject]
            for step in definition.steps:
                ends = [value for own in ends for value in self.look_up(own, step)]
            values |= {
                _key(v.text): v for v in ends if not definition.excludes_start or _key(v.text) != _key(subject.text)
            }
        return list(values.values())

    def follow(self, subjects: Sequence[ReplayValue], path: Path) -> list[ReplayValue]:
        """The observed values at the end of a path."""
        values = list(subjects)
        for relation in path:
            values = list({_key(v.text): v for own in values for v in self.look_up(own, relation)}.values())
        return values

    def strip_ids(self, answer: str) -> str:
        """An answer without the ids of what was observed, which stand behind names: Reed (Q1)."""
        for identifier in self._names:
            answer = answer.replace(f" ({identifier})", "")
        return answer

    def list_holders(self, relation: str, value: str) -> list[ReplayValue]:
        """The things that were observed to have a value."""
        holders = self._facts.get((_key(value), f"^{relation}"), {})
        return list(holders.values())

    def _add(self, subject: str, relation: str, values: Iterable[ReplayValue]) -> None:
        self.asks[_key(subject), (relation,)] = None
        self._store(subject, relation, values)

    def _store(self, subject: str, relation: str, values: Iterable[ReplayValue]) -> None:
        for value in values:
            self._facts.setdefault((_key(subject), relation), {})[_key(value.text)] = ReplayValue(value.text)
            self._facts.setdefault((_key(value.text), f"^{relation}"), {})[_key(subject)] = ReplayValue(subject)

    def _read(self, step: Step, data: Mapping[str, Any]) -> None:
        is_page = bool(data.get("address"))
        title = "" if is_page else str(step.arguments.get("title", ""))
        ask = read_ask(str(step.arguments.get("question", "")), self._world, title)
        if ask is not None:
            self.asks[_key(ask[0]), (ask[1],)] = None
        subjects = [ask[0]] if is_page and ask else [] if is_page else [title]
        for subject in subjects:
            self._read_text(data["sentences"], subject, is_title=not is_page)
        if ask is not None and self._world.kinds_of(ask[0]) & self._world.value_kinds(ask[1]):
            for sentence in (own for own in data["sentences"] if ask[0] in own):
                for name in self._reader.list_names(sentence, ask[0]):
                    self._read_text([sentence], name, is_title=False)

    def _read_text(self, sentences: Sequence[str], subject: str, *, is_title: bool) -> None:
        for statement in self._reader.read(sentences, subject, is_title=is_title).statements:
            self._store(subject, statement.relation, [ReplayValue(statement.value)])

    def _add_rows(self, sparql: str, data: Mapping[str, Any]) -> None:
        """The rows of a query that a person wrote: a path from a thing, or of several things."""
        triples = _TRIPLE.findall(sparql)
        if not triples or any(p not in self._labels for _, p, _ in triples):
            return
        path = tuple(self._labels[p] for _, p, _ in triples)
        start, end = triples[0][0], triples[-1][2]
        rows = [row for row in data.get("rows", ()) if all(row)]
        columns = list(data.get("columns", ()))
        if end.startswith("wd:") and len(triples) == 1:
            value = self._names.get(end.removeprefix("wd:"))
            for holder in list_values({"rows": [[row[0]] for row in rows]}).get("/rows", ()) if value else ():
                self._store(holder.text, path[0], [ReplayValue(str(value))])
        elif len(columns) == 1 and start.startswith("wd:"):
            self._add_path(self._names.get(start.removeprefix("wd:")), path, [row[0] for row in rows])
        elif len(columns) == 2 and f"?{columns[0]}" == start:
            for row in rows:
                self._add_path(row[0].get("label"), path, [row[1]])

    def _add_path(self, subject: str | None, path: Path, cells: Sequence[Any]) -> None:
        values = list_values({"rows": [[cell] for cell in cells]}).get("/rows", ())
        if subject is None:
            return
        self.asks[_key(subject), path] = None
        for place, relation in enumerate(path):
            # What lies between is not observed; it has a name of its own here.
            known = f"{subject} {path[:place]}" if place else subject
            ends = values if place == len(path) - 1 else [ReplayValue(f"{subject} {path[: place + 1]}")]
            self._store(known, relation, ends)

    def _note_names(self, data: Any) -> None:
        if isinstance(data, Mapping):
            identifier = data.get("id") or data.get("entity") or data.get("value")
            name = data.get("label") or data.get("title")
            if isinstance(identifier, str) and isinstance(name, str):
                self._names[identifier] = name
            for value in data.values():
                self._note_names(value)
        elif isinstance(data, list):
            for value in data:
                self._note_names(value)


def is_called(entity: Mapping[str, Any], name: str) -> bool:
    """Whether an observed entity has this label or title."""
    return normalize_name(name) in (normalize_name(entity["label"]), normalize_name(entity.get("title") or ""))


def _key(text: str) -> str:
    return ReplayValue(text).key


def relation_labels(world: World) -> dict[str, str]:
    """The labels of the graph's relations by their ids; those of live graphs are not listed."""
    vocabulary = getattr(world.graph, "vocabulary", None)
    return {relation.id: relation.label for relation in vocabulary()} if vocabulary else {}
