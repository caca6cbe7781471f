"""Analyzes a demonstration: its lookups, each with question template, subject, source and the values found."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from db.models import Step
from db.trace_record import TraceRecord
from reasoners.provenance import BrokenOrigin, Origin, resolve_origin
from reasoners.replay.english import (
    FUNCTION_WORDS,
    PropertyReference,
    as_day,
    content,
    days_in,
    names_in,
    parse_phrase,
    plain,
    widen_phrase,
    words,
)
from worlds.lexicon.kinship import is_attribute, relates_people

GRAPH, TEXT, WEB = "graph", "text", "web"
BLANK = "{}"


@dataclass(slots=True)
class RecordedLookup:
    """One lookup of a demonstration: a question template such as "When was {} born?", its subject and its values."""

    template: str
    subject: str
    source: str
    step: int
    """The position of the step."""
    sentences: list[str] = field(default_factory=list)
    """The sentences that the step read."""
    reading: str | None = None
    """The paraphrase of the generated query, without its subject: "date of birth"."""
    values: list[str] = field(default_factory=list)
    """The values found; days in ISO format."""
    graph_step: "RecordedGraphStep | None" = None
    """The step through the graph that looked it up; None for a question."""


@dataclass(frozen=True, slots=True)
class RecordedGraphStep:
    """A step along a relation, getTailEntities or getHeadEntities, and the tool that listed the relation before."""

    tool: str
    relation: str
    """The relation's id."""
    label: str
    listed_by: str | None
    """None if the relation was typed."""


@dataclass(frozen=True, slots=True)
class RecordedQuery:
    """A typed SPARQL query, with blanks in place of the ids of its subjects."""

    sparql: str
    subjects: tuple[str, ...]
    step: int


@dataclass(frozen=True, slots=True)
class RecordedSearch:
    """A search of the articles for a value, with the snippets of its hits."""

    value: str
    sentences: tuple[str, ...]
    step: int


class AnalyzedDemonstration:
    """The lookups, queries and searches of a demonstration; `spans` are the spans of its question used as arguments."""

    def __init__(self, record: TraceRecord) -> None:
        self.record = record
        self.question = record.question.text
        self.answer = record.trace.final_answer or ""
        self.spans = _smallest([_whole_day(self.question, span) for span in _spans(record.steps)], self.question)
        self.asks: list[RecordedLookup] = []
        self.queries: list[RecordedQuery] = []
        self.searches: list[RecordedSearch] = []
        self._data: dict[int, Mapping[str, Any] | None] = {}
        for step in record.steps:
            self._take(step)
            self._data[step.position] = step.data
        for ask in self.asks:
            ask.values = ask.values or self._people(ask, self._find_mentioned(ask))

    @property
    def span_texts(self) -> list[str]:
        """The texts of the spans."""
        return [self.question[start:end] for start, end in self.spans]

    def text_after(self, step: int) -> str:
        """The thoughts and arguments after a step, followed by the final thought and the answer."""
        texts = [
            f"{later_step.thought} {later_step.arguments}"
            for later_step in self.record.steps
            if later_step.position > step
        ]
        return " ".join((*texts, self.record.trace.final_thought or "", self.answer))

    def _take(self, step: Step) -> None:
        arguments, data = step.arguments, step.data or {}
        if step.error or not step.tool:
            return
        if "candidates" in data:
            self._ask(step, arguments.get("question", ""), GRAPH)
        elif "rows" in data:
            self._query(step, data)
        elif "values" in data and "relation_label" in data:
            self._follow_relation(step, data)
        elif "sentences" in data:
            source = WEB if data.get("address") else TEXT
            if self._ask(step, arguments.get("question", ""), source):
                self.asks[-1].sentences = list(data["sentences"])
        elif "pages" in data:
            self._ask(step, arguments.get("query", ""), WEB)
        elif "hits" in data:
            query = str(arguments.get("query", ""))
            self.searches.append(RecordedSearch(query, tuple(hit["snippet"] for hit in data["hits"]), step.position))

    def _ask(self, step: Step, text: str, source: str) -> bool:
        """Record the lookup of a step; False if its text has no subject. Reading a page repeats the lookup before."""
        subject = self._subject(step, text)
        if subject is None:
            return False
        template = text.replace(subject, BLANK)
        previous = self.asks[-1] if self.asks else None
        if (
            previous
            and source == WEB == previous.source
            and (previous.template, previous.subject) == (template, subject)
        ):
            return True
        self.asks.append(RecordedLookup(template, subject, source, step.position))
        return True

    def _subject(self, step: Step, text: str) -> str | None:
        """The subject of a question: the longest part with an origin, or the longest name in it."""
        if not text.endswith("?"):
            return None
        origin = next((o for name, o in step.origins.items() if step.arguments.get(name) == text), None)
        candidates = [part for part in _texts(origin, text) if part in text]
        candidates = candidates or [name for name in self.span_texts if name in text] or names_in(text)
        days = [
            text[start:end] for start, end, _ in days_in(text) if any(part in text[start:end] for part in candidates)
        ]
        return max(days or candidates, key=len) if candidates else None

    def _follow_relation(self, step: Step, data: Mapping[str, Any]) -> None:
        """Record a step through the graph as the question that it answers."""
        label, origin = str(data["relation_label"]), step.origins.get("relation") or {}
        listed_by = next((s.tool for s in self.record.steps if s.position == origin.get("step")), None)
        is_tail = data["direction"] == "tail"
        template = f"Whose {label} is {BLANK}?" if is_tail else relation_template(label, what=not relates_people(label))
        lookup = RecordedLookup(template, str(data["entity_label"]), GRAPH, step.position)
        lookup.reading = None if is_tail else label
        lookup.values = [value for value in map(format_link, data["values"]) if value]
        lookup.graph_step = RecordedGraphStep(str(step.tool), str(data["relation"]), label, listed_by)
        self.asks.append(lookup)

    def _query(self, step: Step, data: Mapping[str, Any]) -> None:
        origin = step.origins.get("sparql") or {}
        is_generated = origin.get("from") == "step" and "/candidates/" in origin.get("pointer", "")
        if is_generated and self.asks and self.asks[-1].source == GRAPH:
            self.asks[-1].values = [value for row in data["rows"] for value in map(format_cell, row[:1]) if value]
            self.asks[-1].reading = self._reading(origin)
            return
        sparql, subjects = str(step.arguments.get("sparql", "")), []
        for part in sorted(origin.get("parts", ()), key=lambda part: -int(part.get("start", 0))):
            label = self._label(part["origin"])
            if label:
                sparql = sparql[: part["start"]] + BLANK + sparql[part["end"] :]
                subjects.append(label)
        if subjects:
            self.queries.append(RecordedQuery(sparql, tuple(reversed(subjects)), step.position))

    def _reading(self, origin: Origin) -> str | None:
        """The paraphrase of the query without its subject."""
        candidate_index = int(origin["pointer"].split("/")[2])
        reading = str((self._data.get(origin["step"]) or {})["candidates"][candidate_index].get("reading", ""))
        return reading.rpartition(" of ")[0] or None

    def _label(self, origin: Origin) -> str | None:
        """The label beside the id in the observation that an origin points at."""
        pointer = str(origin.get("pointer", ""))
        label_fields = {"id": ("label",), "entity": ("title",), "value": ("label",)}.get(pointer.rpartition("/")[2], ())
        for name in label_fields:
            try:
                return resolve_origin(
                    {**origin, "pointer": f"{pointer.rpartition('/')[0]}/{name}"}, self.question, self._data
                )
            except BrokenOrigin:
                continue
        return None

    def _find_mentioned(self, ask: RecordedLookup) -> list[str]:
        """The values in the sentences of a lookup that occur in later steps or in the answer."""
        later, mentioned = self.text_after(ask.step), []
        days = {day for _, _, day in days_in(later)}
        for sentence in ask.sentences:
            if ask.source == WEB and ask.subject not in sentence:
                continue
            mentioned += [day for _, _, day in days_in(sentence) if day in days and day != as_day(ask.subject)]
            mentioned += [name for name in names_in(sentence) if name in later and name != ask.subject]
            mentioned += [value for value in self.words if value in sentence and value != ask.subject]
        return list(dict.fromkeys(mentioned))

    def _people(self, ask: RecordedLookup, values: list[str]) -> list[str]:
        """The people among the values that are subjects of later lookups; all values if there are none."""
        later_subjects = {lookup.subject for lookup in self.asks if lookup.step > ask.step} - {
            ask.subject,
            *self.span_texts,
        }
        if not ask.template.startswith("Who is the ") or not later_subjects:
            return values
        return [value for value in values if value in later_subjects]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The properties stated in the question: (occupation, baker) for "whose occupation is baker"."""
        phrases = [parse_phrase(self.question[slice(*widen_phrase(self.question, *span))]) for span in self.spans]
        return [
            fact
            for phrase in phrases
            if phrase and isinstance(phrase.start, PropertyReference)
            for fact in phrase.start.facts
        ]

    @property
    def words(self) -> list[str]:
        """The lower-case values of the question that were not used as arguments."""
        return [value for _, value in self.facts if value[:1].islower() and value not in self.span_texts]


def format_cell(cell: Mapping[str, Any] | None) -> str | None:
    """The text of a query result's cell as answers show it; days in ISO format."""
    if cell is None:
        return None
    value = str(cell.get("label", cell["value"]))
    return as_day(value) or value


def format_link(link: Mapping[str, Any]) -> str:
    """The text of a value of a graph step as answers show it; days in ISO format."""
    value = str(link.get("label", link.get("literal", "")))
    return as_day(value) or value


def relation_template(relation: str, *, what: bool) -> str:
    """The generic question template of a relation."""
    return f"{'What' if what else 'Who'} is the {relation} of {BLANK}?"


def _texts(origin: Origin | None, text: str) -> Iterator[str]:
    """Yield the parts of an argument that have an origin, without function words."""
    for part in (origin or {}).get("parts", ()):
        part_text = text[part["start"] : part["end"]] if "start" in part else ""
        if part_text and plain(part_text) not in FUNCTION_WORDS:
            yield part_text


def _spans(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    for step in steps:
        for origin in step.origins.values():
            yield from _in_question(origin)


def _whole_day(question: str, span: tuple[int, int]) -> tuple[int, int]:
    days = ((start, end) for start, end, _ in days_in(question) if start <= span[0] and span[1] <= end)
    return next(days, span)


def _in_question(origin: Origin) -> Iterator[tuple[int, int]]:
    if origin["from"] == "question":
        yield origin["start"], origin["end"]
    for part in origin.get("parts", ()):
        yield from _in_question(part["origin"])


def _smallest(spans: Sequence[tuple[int, int]], question: str) -> list[tuple[int, int]]:
    """The spans that contain no other span and are more than function words."""
    content_spans = {span for span in spans if not _has_only_function_words(question[slice(*span)])}
    return sorted(s for s in content_spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in content_spans))


def _has_only_function_words(text: str) -> bool:
    return all(word in FUNCTION_WORDS for word in re.findall(r"\w+", text.casefold()))


RELATION_QUESTION = re.compile(r"(?:Who|What) is the (?P<relation>.+) of \{\}\?")


class QuestionTemplates:
    """The templates of demonstrations, by the noun that questions use: "When was {} born?" for date of birth."""

    def __init__(self) -> None:
        self.by_phrase: dict[str, str] = {}
        self.templates: dict[str, None] = {}
        self.phrases: set[str] = set()
        """The nouns of relations and properties in questions: occupation, date of birth."""

    def learn(self, template: str) -> None:
        """Add a template and the relation that it names."""
        self.templates.setdefault(template)
        if match := RELATION_QUESTION.fullmatch(template):
            self.by_phrase.setdefault(match["relation"], template)
            self.phrases.add(match["relation"])

    def template_for(self, phrase: str, *, what: bool = False) -> str:
        """The template of a relation; a generic one if no demonstration has one."""
        template = self.by_phrase.get(phrase)
        what = (what or is_attribute(phrase)) and not relates_people(phrase)
        return template or relation_template(phrase, what=what)

    def find_similar(self, region: str, like: str) -> str | None:
        """The template for a predicate, with the question word of `like`: died -> When did {} die?"""
        content_words = content(region)
        question_word = words(like)[0]
        for template in self.templates:
            if content(template.replace(BLANK, "")) == content_words and words(template)[0] == question_word:
                return template
        return None


def relation_of(template: str) -> str:
    """The relation that a template names; empty if it names none."""
    match = RELATION_QUESTION.fullmatch(template)
    return match["relation"] if match else ""
