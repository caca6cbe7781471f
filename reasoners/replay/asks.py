"""What a demonstration asked, of whom, in which source, and what it found."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from db.models import Step
from db.trace_record import TraceRecord
from reasoners.provenance import BrokenOrigin, Origin, resolve_origin
from reasoners.replay.english import FUNCTION_WORDS, as_day, days_in, names_in, plain
from reasoners.replay.phrases import PropertyReference, parse_phrase, widen_phrase

GRAPH, TEXT, WEB = "graph", "text", "web"
BLANK = "{}"


@dataclass(slots=True)
class RecordedLookup:
    """One thing that was looked up: "When was {} born?" of whom, and what was found."""

    template: str
    subject: str
    source: str
    step: int
    """Whose thought says why."""
    sentences: list[str] = field(default_factory=list)
    """What was read for it."""
    reading: str | None = None
    """How the tool that wrote a query for it understood it: "date of birth"."""
    values: list[str] = field(default_factory=list)
    """Days as 1930-08-20."""


@dataclass(frozen=True, slots=True)
class RecordedQuery:
    """A query that was typed, with blanks for the ids of these subjects."""

    sparql: str
    subjects: tuple[str, ...]
    step: int


@dataclass(frozen=True, slots=True)
class RecordedSearch:
    """Articles that were searched by a value, and the snippets of the hits."""

    value: str
    sentences: tuple[str, ...]
    step: int


class AnalyzedDemonstration:
    """A trace as what it asked; `spans` are the places of its question that arguments came from."""

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
        """Everything that was thought and asked after a step, down to the answer."""
        stated = [f"{item.thought} {item.arguments}" for item in self.record.steps if item.position > step]
        return " ".join((*stated, self.record.trace.final_thought or "", self.answer))

    def _take(self, step: Step) -> None:
        arguments, data = step.arguments, step.data or {}
        if step.error or not step.tool:
            return
        if "candidates" in data:
            self._ask(step, arguments.get("question", ""), GRAPH)
        elif "rows" in data:
            self._query(step, data)
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
        """Whether the step asks something of somebody; of a page that was found it asks the same once more."""
        subject = self._subject(step, text)
        if subject is None:
            return False
        template = text.replace(subject, BLANK)
        last = self.asks[-1] if self.asks else None
        if last and source == WEB == last.source and (last.template, last.subject) == (template, subject):
            return True
        self.asks.append(RecordedLookup(template, subject, source, step.position))
        return True

    def _subject(self, step: Step, text: str) -> str | None:
        """Of whom or what a text asks: the span that came from elsewhere, else the one name in it."""
        if not text.endswith("?"):
            return None
        origin = next((o for name, o in step.origins.items() if step.arguments.get(name) == text), None)
        given = [part for part in _texts(origin, text) if part in text]
        given = given or [name for name in self.span_texts if name in text] or names_in(text)
        days = [text[start:end] for start, end, _ in days_in(text) if any(part in text[start:end] for part in given)]
        return max(days or given, key=len) if given else None

    def _query(self, step: Step, data: Mapping[str, Any]) -> None:
        origin = step.origins.get("sparql") or {}
        written = origin.get("from") == "step" and "/candidates/" in origin.get("pointer", "")
        if written and self.asks and self.asks[-1].source == GRAPH:
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
        """The words of the reading without whom it is of."""
        place = int(origin["pointer"].split("/")[2])
        reading = str((self._data.get(origin["step"]) or {})["candidates"][place].get("reading", ""))
        return reading.rpartition(" of ")[0] or None

    def _label(self, origin: Origin) -> str | None:
        """What the id is called that an origin points at: what stands beside it in the observation."""
        pointer = str(origin.get("pointer", ""))
        beside = {"id": ("label",), "entity": ("title",), "value": ("label",)}.get(pointer.rpartition("/")[2], ())
        for name in beside:
            try:
                return resolve_origin(
                    {**origin, "pointer": f"{pointer.rpartition('/')[0]}/{name}"}, self.question, self._data
                )
            except BrokenOrigin:
                continue
        return None

    def _find_mentioned(self, ask: RecordedLookup) -> list[str]:
        """What was read for an ask and is spoken of afterwards; pages speak of many, articles of one."""
        later, results = self.text_after(ask.step), []
        days = {day for _, _, day in days_in(later)}
        for sentence in ask.sentences:
            if ask.source == WEB and ask.subject not in sentence:
                continue
            results += [day for _, _, day in days_in(sentence) if day in days and day != as_day(ask.subject)]
            results += [name for name in names_in(sentence) if name in later and name != ask.subject]
            results += [value for value in self.words if value in sentence and value != ask.subject]
        return list(dict.fromkeys(results))

    def _people(self, ask: RecordedLookup, values: list[str]) -> list[str]:
        """Of those whom a question for people may have found, those of whom is asked next, if anything is."""
        later = {item.subject for item in self.asks if item.step > ask.step} - {ask.subject, *self.span_texts}
        if not ask.template.startswith("Who is the ") or not later:
            return values
        return [value for value in values if value in later]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What its question tells of whom it speaks of: whose occupation is baker."""
        phrases = [parse_phrase(self.question[slice(*widen_phrase(self.question, *span))]) for span in self.spans]
        return [
            fact for item in phrases if item and isinstance(item.start, PropertyReference) for fact in item.start.facts
        ]

    @property
    def words(self) -> list[str]:
        """The values in small letters that its question tells and nothing was searched by: and whose hobby is chess."""
        return [value for _, value in self.facts if value[:1].islower() and value not in self.span_texts]


def format_cell(cell: Mapping[str, Any] | None) -> str | None:
    """A cell as an answer shows it."""
    if cell is None:
        return None
    value = str(cell.get("label", cell["value"]))
    return as_day(value) or value


def _texts(origin: Origin | None, text: str) -> Iterator[str]:
    """The parts of an argument that came from elsewhere, without the words that any question has."""
    for part in (origin or {}).get("parts", ()):
        results = text[part["start"] : part["end"]] if "start" in part else ""
        if results and plain(results) not in FUNCTION_WORDS:
            yield results


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
    """The spans that hold no other and are more than a word that any question has."""
    stated = {span for span in spans if not _has_only_function_words(question[slice(*span)])}
    return sorted(s for s in stated if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in stated))


def _has_only_function_words(text: str) -> bool:
    return all(word in FUNCTION_WORDS for word in re.findall(r"\w+", text.casefold()))
