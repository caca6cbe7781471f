"""The wording of a demonstration's question with holes, and what it then asks of what stands in them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reasoners.replay import operations
from reasoners.replay.asks import AnalyzedDemonstration, RecordedLookup
from reasoners.replay.english import OPPOSITES, YEAR, content, names_in, singular, words
from reasoners.replay.operations import LookupValues
from reasoners.replay.phrases import NameReference, NounPhrase, PropertyReference, parse_phrase, widen_phrase
from reasoners.replay.wordings import RELATION_QUESTION, QuestionTemplates


@dataclass(frozen=True, slots=True)
class FrameHole:
    """A place in a wording: for things, for a value that they are compared with, or for the word of a relation."""

    kind: str
    """things, value or relation."""
    text: str
    """What stood there."""
    asks: tuple[str, ...] = ()
    """What is asked of the things, as templates."""


@dataclass(frozen=True, slots=True)
class QuestionFrame:
    """A wording, and the operation that gives the answer."""

    parts: tuple[str | FrameHole, ...]
    operation: str
    demonstration: AnalyzedDemonstration = field(compare=False)
    counted: bool = False
    """Whether the answers are counted in the end."""

    @property
    def holes(self) -> list[FrameHole]:
        """Those of its parts that are holes."""
        return [part for part in self.parts if isinstance(part, FrameHole)]

    @property
    def text(self) -> str:
        """Its words without the holes."""
        return " ".join(part for part in self.parts if isinstance(part, str))


def learn_frame(shown: AnalyzedDemonstration, wordings: QuestionTemplates) -> QuestionFrame | None:
    """The frame of a demonstration; None where its question and its steps do not explain each other.

    What its phrases ask by other words than their own is taken up in the wordings.
    """
    spans = _phrases_of(shown)
    holes = [
        _HoleBuilder(shown.question[start:end], parse_phrase(shown.question[start:end]), shown.span_texts)
        for start, end in spans
    ]
    if not holes or any(hole.phrase is None for hole in holes):
        return None
    for ask in shown.asks:
        hole = _hole_for(ask, holes)
        if hole is None:
            return None
        hole.add_lookup(ask)
    for hole in holes:
        hole.explain(wordings)
        if hole.phrase:
            wordings.phrases.update(hole.phrase.names)
    return _frame(shown, spans, holes)


@dataclass
class _HoleBuilder:
    """A hole while it is found out which asks belong to its phrase and which to what surrounds it."""

    text: str
    phrase: NounPhrase | None
    named: Sequence[str]
    """What arguments came from."""
    inner: list[str] = field(default_factory=list)
    outer: dict[str, list[RecordedLookup]] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    final_values: list[str] = field(default_factory=list)
    """What the phrase has come to, where its last relation was asked for."""
    unexplained: bool = False

    def add_lookup(self, ask: RecordedLookup) -> None:
        """Sort an ask in."""
        relation = RELATION_QUESTION.fullmatch(ask.template)
        mine = self.phrase.relations if self.phrase else ()
        facts = self.phrase.start.facts if self.phrase and isinstance(self.phrase.start, PropertyReference) else ()
        self.reached.update(ask.values)
        if any(ask.subject == value for _, value in facts):
            return
        named = relation["relation"] if relation else None
        if named and named in (*mine, *(fact for fact, _ in facts)):
            self.inner.append(named)
        else:
            self.outer.setdefault(ask.template, []).append(ask)

    def explain(self, wordings: QuestionTemplates) -> None:
        """Take up what is left over on both sides as one wording for the other."""
        if self.phrase is None:
            return
        facts = self.phrase.start.facts if isinstance(self.phrase.start, PropertyReference) else ()
        asked = [fact for fact, value in facts if value not in self.named]
        left = [name for name in (*self.phrase.relations, *asked) if name not in self.inner]
        others = [template for template in self.outer if not RELATION_QUESTION.fullmatch(template)]
        if len(left) == len(self.outer) == len(others) == 1:
            wordings.by_phrase.setdefault(left[0], others[0])
            self.final_values = [value for ask in self.outer.pop(others[0]) for value in ask.values]
        elif left:
            # A relation was taken apart into others: the granddaughter into the daughter of the child.
            self.unexplained = True
            self.outer = {template: self.outer[template] for template in others}


def _phrases_of(shown: AnalyzedDemonstration) -> list[tuple[int, int]]:
    results: list[tuple[int, int]] = []
    for span in shown.spans:
        wide = widen_phrase(shown.question, *span)
        if not any(start <= wide[0] and wide[1] <= end for start, end in results):
            results.append(wide)
    return results


def _hole_for(ask: RecordedLookup, holes: Sequence[_HoleBuilder]) -> _HoleBuilder | None:
    """Whose subject it is; of several, who was reached by its steps."""
    for hole in holes:
        start = hole.phrase.start if hole.phrase else None
        if isinstance(start, NameReference) and start.text == ask.subject:
            return hole
    return next((hole for hole in holes if ask.subject in hole.reached), holes[0] if len(holes) == 1 else None)


def _frame(
    shown: AnalyzedDemonstration, spans: Sequence[tuple[int, int]], holes: Sequence[_HoleBuilder]
) -> QuestionFrame | None:
    parts: list[str | FrameHole] = []
    place = 0
    for (start, end), hole in zip(spans, holes, strict=True):
        parts += [shown.question[place:start], FrameHole("things", hole.text, tuple(hole.outer))]
        place = end
    parts.append(shown.question[place:])
    parts = [piece for part in parts for piece in (_with_values(part) if isinstance(part, str) else [part])]
    parts = _with_relation(parts)
    given = [part for part in parts if isinstance(part, FrameHole)]
    value = next((hole.text for hole in given if hole.kind == "value"), "")
    text = " ".join(part for part in parts if isinstance(part, str))
    asked = any(hole.asks for hole in given) or any(hole.kind == "relation" for hole in given)
    if not asked and (content(text) or any(hole.unexplained for hole in holes)):
        return None
    looked = [_collect_values(hole, given_hole) for hole, given_hole in zip(holes, _things(given), strict=True)]
    operation = operations.infer_operation(looked, value, shown.answer, set(words(text)))
    if operation is None:
        # What was found is not all spoken of; a number counts it, and other answers are what was found.
        if value or words_of_order(text) or shown.answer.casefold() in ("yes", "no"):
            return None
        operation = operations.COUNT if shown.answer.isdecimal() else operations.ALL
    return QuestionFrame(tuple(part for part in parts if part), operation, shown)


def words_of_order(text: str) -> set[str]:
    """The words of a text that turn round when they are replaced by their opposite."""
    return set(words(text)) & OPPOSITES.keys()


def _things(holes: Sequence[FrameHole]) -> list[FrameHole]:
    return [hole for hole in holes if hole.kind == "things"]


def _collect_values(hole: _HoleBuilder, given: FrameHole) -> LookupValues:
    subjects = list(dict.fromkeys(ask.subject for template in given.asks for ask in hole.outer[template]))
    values = tuple(
        tuple(
            tuple(value for ask in hole.outer[template] if ask.subject == subject for value in ask.values)
            for template in given.asks
        )
        for subject in subjects
    )
    return LookupValues(tuple(subjects), values) if subjects else LookupValues(tuple(hole.final_values))


def _with_values(text: str) -> Iterator[str | FrameHole]:
    """The names and years that are left in a wording are what is compared with."""
    names = [name for name in names_in(text) if text.index(name) > 0]
    results = next(iter([*names, *YEAR.findall(text)]), None)
    if results is None:
        yield text
        return
    before, _, after = text.partition(results)
    yield before
    yield FrameHole("value", results)
    yield after


def _with_relation(parts: Sequence[str | FrameHole]) -> list[str | FrameHole]:
    """The word of a relation that is asked of the things becomes a hole, where it stands in the wording."""
    asked = [RELATION_QUESTION.fullmatch(t) for part in parts if isinstance(part, FrameHole) for t in part.asks]
    results: list[str | FrameHole] = []
    for part in parts:
        match = _relation_in(part, [m["relation"] for m in asked if m]) if isinstance(part, str) else None
        if isinstance(part, str) and match:
            results += [part[: match.start()], FrameHole("relation", match[0]), part[match.end() :]]
        else:
            results.append(part)
    return results


def _relation_in(text: str, relations: Sequence[str]) -> re.Match[str] | None:
    return next((m for m in re.finditer(r"[a-z][a-z-]*", text) if singular(m[0]) in relations), None)
