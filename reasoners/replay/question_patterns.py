"""Question frames: the pattern of a demonstration's question with holes, and what is looked up for each hole."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from reasoners.replay import english
from reasoners.replay.english import (
    NAME,
    OPPOSITES,
    YEAR,
    LookupValues,
    NameReference,
    NounPhrase,
    PropertyReference,
    content,
    names_in,
    parse_phrase,
    singular,
    widen_phrase,
    words,
)
from reasoners.replay.recorded_lookups import (
    BLANK,
    RELATION_QUESTION,
    AnalyzedDemonstration,
    QuestionTemplates,
    RecordedLookup,
)


@dataclass(frozen=True, slots=True)
class FrameHole:
    """A hole in a question pattern: for entities, for a value to compare with, or for the noun of a relation."""

    kind: str
    """things, value or relation."""
    text: str
    """The text of the hole in the demonstration's question."""
    asks: tuple[str, ...] = ()
    """The question templates that are looked up for the entities."""


@dataclass(frozen=True, slots=True)
class QuestionFrame:
    """A question pattern, and the operation that gives the answer."""

    parts: tuple[str | FrameHole, ...]
    operation: str
    demonstration: AnalyzedDemonstration = field(compare=False)
    counted: bool = False
    """Whether the final answer is the number of answers."""

    @property
    def holes(self) -> list[FrameHole]:
        """The parts that are holes."""
        return [part for part in self.parts if isinstance(part, FrameHole)]

    @property
    def text(self) -> str:
        """Its words without the holes."""
        return " ".join(part for part in self.parts if isinstance(part, str))


def learn_frame(demonstration: AnalyzedDemonstration, wordings: QuestionTemplates) -> QuestionFrame | None:
    """Learn the frame of a demonstration; None if its steps cannot be derived from its question.

    Question templates that differ from the words of the question are added to `wordings`.
    """
    spans = _phrases_of(demonstration)
    holes = [
        _HoleBuilder(
            demonstration.question[start:end], parse_phrase(demonstration.question[start:end]), demonstration.span_texts
        )
        for start, end in spans
    ]
    if not holes or any(hole.phrase is None for hole in holes):
        return None
    for ask in demonstration.asks:
        hole = _hole_for(ask, holes)
        if hole is None:
            return None
        hole.add_lookup(ask)
    for hole in holes:
        hole.explain(wordings)
        if hole.phrase:
            wordings.phrases.update(hole.phrase.names)
    return _frame(demonstration, spans, holes)


@dataclass
class _HoleBuilder:
    """Builds a hole: assigns each lookup to the phrase itself (inner) or to the question around it (outer)."""

    text: str
    phrase: NounPhrase | None
    named: Sequence[str]
    """The spans of the question used as arguments."""
    inner: list[str] = field(default_factory=list)
    outer: dict[str, list[RecordedLookup]] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    final_values: list[str] = field(default_factory=list)
    """The values of the phrase's last relation."""
    unexplained: bool = False

    def add_lookup(self, ask: RecordedLookup) -> None:
        """Assign a lookup to the phrase or to the question around it."""
        relation = RELATION_QUESTION.fullmatch(ask.template)
        own_relations = self.phrase.relations if self.phrase else ()
        facts = self.phrase.start.facts if self.phrase and isinstance(self.phrase.start, PropertyReference) else ()
        self.reached.update(ask.values)
        if any(ask.subject == value for _, value in facts):
            return
        relation_name = relation["relation"] if relation else None
        if relation_name and relation_name in (*own_relations, *(fact for fact, _ in facts)):
            self.inner.append(relation_name)
        else:
            self.outer.setdefault(ask.template, []).append(ask)

    def explain(self, wordings: QuestionTemplates) -> None:
        """Learn the one template and the one relation that are left unassigned as wordings of each other."""
        if self.phrase is None:
            return
        facts = self.phrase.start.facts if isinstance(self.phrase.start, PropertyReference) else ()
        asked = [fact for fact, value in facts if value not in self.named]
        unassigned = [name for name in (*self.phrase.relations, *asked) if name not in self.inner]
        others = [template for template in self.outer if not RELATION_QUESTION.fullmatch(template)]
        if len(unassigned) == len(self.outer) == len(others) == 1:
            wordings.by_phrase.setdefault(unassigned[0], others[0])
            self.final_values = [value for ask in self.outer.pop(others[0]) for value in ask.values]
        elif unassigned:
            # The demonstration splits a relation into others: the granddaughter into the daughter of the child.
            self.unexplained = True
            self.outer = {template: self.outer[template] for template in others}


def _phrases_of(demonstration: AnalyzedDemonstration) -> list[tuple[int, int]]:
    phrase_spans: list[tuple[int, int]] = []
    for span in demonstration.spans:
        wide = widen_phrase(demonstration.question, *span)
        if not any(start <= wide[0] and wide[1] <= end for start, end in phrase_spans):
            phrase_spans.append(wide)
    return phrase_spans


def _hole_for(ask: RecordedLookup, holes: Sequence[_HoleBuilder]) -> _HoleBuilder | None:
    """The hole of a lookup: the one that names its subject, or else the one whose lookups returned it."""
    for hole in holes:
        start = hole.phrase.start if hole.phrase else None
        if isinstance(start, NameReference) and start.text == ask.subject:
            return hole
    return next((hole for hole in holes if ask.subject in hole.reached), holes[0] if len(holes) == 1 else None)


def _frame(
    demonstration: AnalyzedDemonstration, spans: Sequence[tuple[int, int]], holes: Sequence[_HoleBuilder]
) -> QuestionFrame | None:
    parts: list[str | FrameHole] = []
    position = 0
    for (start, end), hole in zip(spans, holes, strict=True):
        parts += [demonstration.question[position:start], FrameHole("things", hole.text, tuple(hole.outer))]
        position = end
    parts.append(demonstration.question[position:])
    parts = [piece for part in parts for piece in (_with_values(part) if isinstance(part, str) else [part])]
    parts = _with_relation(parts)
    frame_holes = [part for part in parts if isinstance(part, FrameHole)]
    value = next((hole.text for hole in frame_holes if hole.kind == "value"), "")
    text = " ".join(part for part in parts if isinstance(part, str))
    has_lookups = any(hole.asks for hole in frame_holes) or any(hole.kind == "relation" for hole in frame_holes)
    if not has_lookups and (content(text) or any(hole.unexplained for hole in holes)):
        return None
    looked = [_collect_values(hole, given_hole) for hole, given_hole in zip(holes, _things(frame_holes), strict=True)]
    operation = english.infer_operation(looked, value, demonstration.answer, set(words(text)))
    if operation is None:
        # Not all values are known; a number is taken for their count, any other answer for the values themselves.
        if value or words_of_order(text) or demonstration.answer.casefold() in ("yes", "no"):
            return None
        operation = english.COUNT if demonstration.answer.isdecimal() else english.ALL
    return QuestionFrame(tuple(part for part in parts if part), operation, demonstration)


def words_of_order(text: str) -> set[str]:
    """The order words of a text, such as first, last, before and after."""
    return set(words(text)) & OPPOSITES.keys()


def _things(holes: Sequence[FrameHole]) -> list[FrameHole]:
    return [hole for hole in holes if hole.kind == "things"]


def _collect_values(hole: _HoleBuilder, frame_hole: FrameHole) -> LookupValues:
    subjects = list(dict.fromkeys(ask.subject for template in frame_hole.asks for ask in hole.outer[template]))
    values = tuple(
        tuple(
            tuple(value for ask in hole.outer[template] if ask.subject == subject for value in ask.values)
            for template in frame_hole.asks
        )
        for subject in subjects
    )
    return LookupValues(tuple(subjects), values) if subjects else LookupValues(tuple(hole.final_values))


def _with_values(text: str) -> Iterator[str | FrameHole]:
    """Turn the first name or year left in a wording into a hole for a value."""
    names = [name for name in names_in(text) if text.index(name) > 0]
    value = next(iter([*names, *YEAR.findall(text)]), None)
    if value is None:
        yield text
        return
    before, _, after = text.partition(value)
    yield before
    yield FrameHole("value", value)
    yield after


def _with_relation(parts: Sequence[str | FrameHole]) -> list[str | FrameHole]:
    """Turn the noun of a relation that is looked up into a hole, if it occurs in the wording."""
    matches = [RELATION_QUESTION.fullmatch(t) for part in parts if isinstance(part, FrameHole) for t in part.asks]
    new_parts: list[str | FrameHole] = []
    for part in parts:
        match = _relation_in(part, [m["relation"] for m in matches if m]) if isinstance(part, str) else None
        if isinstance(part, str) and match:
            new_parts += [part[: match.start()], FrameHole("relation", match[0]), part[match.end() :]]
        else:
            new_parts.append(part)
    return new_parts


def _relation_in(text: str, relations: Sequence[str]) -> re.Match[str] | None:
    return next((m for m in re.finditer(r"[a-z][a-z-]*", text) if singular(m[0]) in relations), None)


_AUXILIARY = r"(?:(?:is|was|are|were|did|does|do|have|has|had|the|their) )*"
_PREPOSITION = r"(?: (?:in|on|at|as))?"


@dataclass(frozen=True, slots=True)
class FrameFit:
    """A frame fitted to a question."""

    frame: QuestionFrame
    hole_texts: tuple[str, ...]
    phrases: tuple[NounPhrase | None, ...]
    """The parsed phrases of the holes for things; None for other holes."""
    asks: tuple[tuple[str, ...], ...]
    """The question templates to look up, by hole."""
    operation: str


def fit_frame(frame: QuestionFrame, question: str, wordings: QuestionTemplates) -> FrameFit | None:
    """Fit a frame to a question; None if the wording differs or the text of a hole is not valid for it."""
    match = re.fullmatch("".join(_pattern(frame, wordings.phrases)), question)
    if match is None:
        return None
    hole_texts = tuple(match[f"hole{index}"].strip() for index in range(len(frame.holes)))
    phrases = tuple(
        parse_phrase(t) if hole.kind == "things" else None for hole, t in zip(frame.holes, hole_texts, strict=True)
    )
    if any(hole.kind == "things" and not phrase for hole, phrase in zip(frame.holes, phrases, strict=True)):
        return None
    if any(hole.kind == "value" and words_of_order(text) for hole, text in zip(frame.holes, hole_texts, strict=True)):
        return None
    asks = _adapt_templates(frame, match, hole_texts, wordings)
    if asks is None:
        return None
    is_reversed = words_of_order(frame.text) != words_of_order(question) and bool(words_of_order(frame.text))
    operation = english.FLIPPED.get(frame.operation, frame.operation) if is_reversed else frame.operation
    return FrameFit(frame, hole_texts, phrases, asks, operation)


def make_counting_frame(frame: QuestionFrame, head: str, instead: str) -> QuestionFrame | None:
    """The frame with `head` in place of its beginning `instead`, as a question for the number of its answers."""
    first = frame.parts[0]
    if not isinstance(first, str) or not first.startswith(instead) or frame.operation == english.COUNT:
        return None
    return replace(frame, parts=(head + first.removeprefix(instead), *frame.parts[1:]), counted=True)


def _pattern(frame: QuestionFrame, known: Iterable[str]) -> Iterator[str]:
    region, index = _region(frame), 0
    for part in frame.parts:
        if isinstance(part, FrameHole):
            yield rf"(?P<hole{index}>{_INSIDE[part.kind]})"
            index += 1
        else:
            yield _around_region(part, region, known)


_INSIDE = {
    "things": rf"(?:[a-z][^?]*? of )?{NAME.pattern}(?! [A-Z])|[^?]*?\bwhose [^?]+?",
    "relation": r"[a-z][a-z -]*?",
    "value": r"[^?]+?",
}


def _around_region(text: str, region: str | None, known: Iterable[str]) -> str:
    match = re.search(region, text) if region else None
    if match is None:
        return _loose(text)
    nouns = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    either = rf"{_AUXILIARY}(?!of\b)[a-z]+{_PREPOSITION}|have (?:the|their) (?:{nouns}){_PREPOSITION}"
    return f"{_loose(text[: match.start()])}(?P<region>{either}){_loose(text[match.end() :])}"


def _loose(text: str) -> str:
    """The pattern of a fixed text in which order words may be replaced by their opposites."""
    return "".join(
        f"(?:{piece}|{OPPOSITES[piece]})" if piece in OPPOSITES else re.escape(piece)
        for piece in re.split(r"(\w+)", text)
    )


def _region(frame: QuestionFrame) -> str | None:
    """The predicate of the wording, such as was born or died; None unless the frame asks for a single template."""
    templates = {template for hole in frame.holes for template in hole.asks}
    if len(templates) != 1 or any(hole.kind == "relation" for hole in frame.holes):
        return None
    about = content(templates.pop().replace(BLANK, ""))
    word = next((word for word in words(frame.text) if content(word) and content(word) <= about), None)
    return rf"{_AUXILIARY}\b{word}\b{_PREPOSITION}" if word else None


def _adapt_templates(
    frame: QuestionFrame, match: re.Match[str], hole_texts: Sequence[str], wordings: QuestionTemplates
) -> tuple[tuple[str, ...], ...] | None:
    """The templates to look up for each hole; None if no demonstration has a template for the question's predicate."""
    relation = next((t for hole, t in zip(frame.holes, hole_texts, strict=True) if hole.kind == "relation"), None)
    region = match.groupdict().get("region")
    templates_by_hole = []
    for hole in frame.holes:
        templates = []
        for template in hole.asks:
            adapted: str | None = template
            if relation and RELATION_QUESTION.fullmatch(template):
                adapted = wordings.template_for(singular(relation))
            elif region is not None:
                adapted = _find_template(region, template, frame, wordings)
            if adapted is None:
                return None
            templates.append(adapted)
        templates_by_hole.append(tuple(templates))
    return tuple(templates_by_hole)


def _find_template(region: str, template: str, frame: QuestionFrame, wordings: QuestionTemplates) -> str | None:
    if content(region) == content(template.replace(BLANK, "")):
        return template
    noun = re.fullmatch(r"have (?:the|their) ([a-z ]+?)(?: in)?", region)
    if noun and frame.operation == english.EQUAL:
        return wordings.template_for(noun[1], what=True)
    return wordings.find_similar(region, template)
