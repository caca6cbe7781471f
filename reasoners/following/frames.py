"""The wording of a demonstration's question with holes, and what it then asks of what stands in them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from reasoners.following import operations
from reasoners.following.asks import BLANK, Ask, Demonstration
from reasoners.following.english import NAME, OPPOSITES, YEAR, content, names_in, singular, words
from reasoners.following.operations import Looked
from reasoners.following.phrases import Having, Named, Phrase, around, parse

RELATION_ASKED = re.compile(r"(?:Who|What) is the (?P<relation>.+) of \{\}\?")
_AUXILIARY = r"(?:(?:is|was|are|were|did|does|do|have|has|had|the|their) )*"
_PREPOSITION = r"(?: (?:in|on|at|as))?"


@dataclass(frozen=True, slots=True)
class Hole:
    """A place in a wording: for things, for a value that they are compared with, or for the word of a relation."""

    kind: str
    """things, value or relation."""
    text: str
    """What stood there."""
    asks: tuple[str, ...] = ()
    """What is asked of the things, as templates."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A wording, and the operation that gives the answer."""

    parts: tuple[str | Hole, ...]
    operation: str
    demonstration: Demonstration = field(compare=False)
    counted: bool = False
    """Whether the answers are counted in the end."""

    @property
    def holes(self) -> list[Hole]:
        """Those of its parts that are holes."""
        return [part for part in self.parts if isinstance(part, Hole)]

    @property
    def text(self) -> str:
        """Its words without the holes."""
        return " ".join(part for part in self.parts if isinstance(part, str))


@dataclass(frozen=True, slots=True)
class Fit:
    """A frame on another question: what stands in each hole."""

    frame: Frame
    filled: tuple[str, ...]
    phrases: tuple[Phrase | None, ...]
    """Of the holes for things what they mean."""
    asks: tuple[tuple[str, ...], ...]
    operation: str


class Wordings:
    """How demonstrations ask for what a question calls so: the date of birth by "When was {} born?"."""

    def __init__(self) -> None:
        self.by_phrase: dict[str, str] = {}
        self.templates: dict[str, None] = {}
        self.phrases: set[str] = set()
        """Everything that questions have asked for by a noun: occupation, date of birth."""

    def learn(self, template: str) -> None:
        """Take up a template, and the relation that it names."""
        self.templates.setdefault(template)
        if match := RELATION_ASKED.fullmatch(template):
            self.by_phrase.setdefault(match["relation"], template)
            self.phrases.add(match["relation"])

    def asked(self, phrase: str, *, what: bool = False) -> str:
        """The template for a relation, the general one where none was shown."""
        return self.by_phrase.get(phrase) or f"{'What' if what else 'Who'} is the {phrase} of {BLANK}?"

    def like(self, region: str, like: str) -> str | None:
        """The template that asks for what a predicate speaks of, put as another one: died -> When did {} die?"""
        wanted = content(region)
        beginning = like.split()[0]
        for template in self.templates:
            if content(template.replace(BLANK, "")) == wanted and template.split()[0] == beginning:
                return template
        return None


def learned(shown: Demonstration, wordings: Wordings) -> Frame | None:
    """The frame of a demonstration; None where its question and its steps do not explain each other.

    What its phrases ask by other words than their own is taken up in the wordings.
    """
    spans = _phrases_of(shown)
    holes = [_Open(shown.question[start:end], parse(shown.question[start:end]), shown.named) for start, end in spans]
    if not holes or any(hole.phrase is None for hole in holes):
        return None
    for ask in shown.asks:
        hole = _hole_for(ask, holes)
        if hole is None:
            return None
        hole.take(ask)
    for hole in holes:
        hole.explain(wordings)
        if hole.phrase:
            wordings.phrases.update(hole.phrase.names)
    return _frame(shown, spans, holes)


@dataclass
class _Open:
    """A hole while it is found out which asks belong to its phrase and which to what surrounds it."""

    text: str
    phrase: Phrase | None
    named: Sequence[str]
    """What arguments came from."""
    inner: list[str] = field(default_factory=list)
    outer: dict[str, list[Ask]] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    found: list[str] = field(default_factory=list)
    """What the phrase has come to, where its last relation was asked for."""
    unexplained: bool = False

    def take(self, ask: Ask) -> None:
        """Sort an ask in."""
        relation = RELATION_ASKED.fullmatch(ask.template)
        mine = self.phrase.relations if self.phrase else ()
        facts = self.phrase.start.facts if self.phrase and isinstance(self.phrase.start, Having) else ()
        self.reached.update(ask.values)
        if any(ask.subject == value for _, value in facts):
            return
        named = relation["relation"] if relation else None
        if named and named in (*mine, *(fact for fact, _ in facts)):
            self.inner.append(named)
        else:
            self.outer.setdefault(ask.template, []).append(ask)

    def explain(self, wordings: Wordings) -> None:
        """Take up what is left over on both sides as one wording for the other."""
        if self.phrase is None:
            return
        facts = self.phrase.start.facts if isinstance(self.phrase.start, Having) else ()
        asked = [fact for fact, value in facts if value not in self.named]
        left = [name for name in (*self.phrase.relations, *asked) if name not in self.inner]
        others = [template for template in self.outer if not RELATION_ASKED.fullmatch(template)]
        if len(left) == len(self.outer) == len(others) == 1:
            wordings.by_phrase.setdefault(left[0], others[0])
            self.found = [value for ask in self.outer.pop(others[0]) for value in ask.values]
        elif left:
            # A relation was taken apart into others: the granddaughter into the daughter of the child.
            self.unexplained = True
            self.outer = {template: self.outer[template] for template in others}


def _phrases_of(shown: Demonstration) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for span in shown.spans:
        wide = around(shown.question, *span)
        if not any(start <= wide[0] and wide[1] <= end for start, end in found):
            found.append(wide)
    return found


def _hole_for(ask: Ask, holes: Sequence[_Open]) -> _Open | None:
    """Whose subject it is; of several, who was reached by its steps."""
    for hole in holes:
        start = hole.phrase.start if hole.phrase else None
        if isinstance(start, Named) and start.text == ask.subject:
            return hole
    return next((hole for hole in holes if ask.subject in hole.reached), holes[0] if len(holes) == 1 else None)


def _frame(shown: Demonstration, spans: Sequence[tuple[int, int]], holes: Sequence[_Open]) -> Frame | None:
    parts: list[str | Hole] = []
    place = 0
    for (start, end), hole in zip(spans, holes, strict=True):
        parts += [shown.question[place:start], Hole("things", hole.text, tuple(hole.outer))]
        place = end
    parts.append(shown.question[place:])
    parts = [piece for part in parts for piece in (_with_values(part) if isinstance(part, str) else [part])]
    parts = _with_relation(parts)
    given = [part for part in parts if isinstance(part, Hole)]
    value = next((hole.text for hole in given if hole.kind == "value"), "")
    text = " ".join(part for part in parts if isinstance(part, str))
    asked = any(hole.asks for hole in given) or any(hole.kind == "relation" for hole in given)
    if not asked and (content(text) or any(hole.unexplained for hole in holes)):
        return None
    looked = [_looked(hole, given_hole) for hole, given_hole in zip(holes, _things(given), strict=True)]
    operation = operations.shown_by(looked, value, shown.answer, set(words(text)))
    if operation is None:
        # What was found is not all spoken of; a number counts it, and other answers are what was found.
        if value or words_of_order(text) or shown.answer.casefold() in ("yes", "no"):
            return None
        operation = operations.COUNT if shown.answer.isdecimal() else operations.ALL
    return Frame(tuple(part for part in parts if part), operation, shown)


def words_of_order(text: str) -> set[str]:
    """The words of a text that turn round when they are replaced by their opposite."""
    return set(words(text)) & OPPOSITES.keys()


def _things(holes: Sequence[Hole]) -> list[Hole]:
    return [hole for hole in holes if hole.kind == "things"]


def _looked(hole: _Open, given: Hole) -> Looked:
    subjects = list(dict.fromkeys(ask.subject for template in given.asks for ask in hole.outer[template]))
    values = tuple(
        tuple(
            tuple(value for ask in hole.outer[template] if ask.subject == subject for value in ask.values)
            for template in given.asks
        )
        for subject in subjects
    )
    return Looked(tuple(subjects), values) if subjects else Looked(tuple(hole.found))


def _with_values(text: str) -> Iterator[str | Hole]:
    """The names and years that are left in a wording are what is compared with."""
    names = [name for name in names_in(text) if text.index(name) > 0]
    found = next(iter([*names, *YEAR.findall(text)]), None)
    if found is None:
        yield text
        return
    before, _, after = text.partition(found)
    yield before
    yield Hole("value", found)
    yield after


def _with_relation(parts: Sequence[str | Hole]) -> list[str | Hole]:
    """The word of a relation that is asked of the things becomes a hole, where it stands in the wording."""
    asked = [RELATION_ASKED.fullmatch(t) for part in parts if isinstance(part, Hole) for t in part.asks]
    found: list[str | Hole] = []
    for part in parts:
        match = _relation_in(part, [m["relation"] for m in asked if m]) if isinstance(part, str) else None
        if isinstance(part, str) and match:
            found += [part[: match.start()], Hole("relation", match[0]), part[match.end() :]]
        else:
            found.append(part)
    return found


def _relation_in(text: str, relations: Sequence[str]) -> re.Match[str] | None:
    return next((m for m in re.finditer(r"[a-z][a-z-]*", text) if singular(m[0]) in relations), None)


def fit(frame: Frame, question: str, wordings: Wordings) -> Fit | None:
    """The frame on a question; None where the wording is another one or a hole holds what cannot stand there."""
    match = re.fullmatch("".join(_pattern(frame, wordings.phrases)), question)
    if match is None:
        return None
    filled = tuple(match[f"hole{place}"].strip() for place in range(len(frame.holes)))
    phrases = tuple(parse(t) if hole.kind == "things" else None for hole, t in zip(frame.holes, filled, strict=True))
    if any(hole.kind == "things" and not phrase for hole, phrase in zip(frame.holes, phrases, strict=True)):
        return None
    if any(hole.kind == "value" and words_of_order(text) for hole, text in zip(frame.holes, filled, strict=True)):
        return None
    asks = _asks(frame, match, filled, wordings)
    if asks is None:
        return None
    turned = words_of_order(frame.text) != words_of_order(question) and bool(words_of_order(frame.text))
    operation = operations.FLIPPED.get(frame.operation, frame.operation) if turned else frame.operation
    return Fit(frame, filled, phrases, asks, operation)


def counting(frame: Frame, head: str, instead: str) -> Frame | None:
    """The same frame behind another beginning, by which its answers are counted."""
    first = frame.parts[0]
    if not isinstance(first, str) or not first.startswith(instead) or frame.operation == operations.COUNT:
        return None
    return replace(frame, parts=(head + first.removeprefix(instead), *frame.parts[1:]), counted=True)


def _pattern(frame: Frame, known: Iterable[str]) -> Iterator[str]:
    region, place = _region(frame), 0
    for part in frame.parts:
        if isinstance(part, Hole):
            yield rf"(?P<hole{place}>{_INSIDE[part.kind]})"
            place += 1
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
    """A fixed text, whose words of order may be turned round."""
    return "".join(
        f"(?:{piece}|{OPPOSITES[piece]})" if piece in OPPOSITES else re.escape(piece)
        for piece in re.split(r"(\w+)", text)
    )


def _region(frame: Frame) -> str | None:
    """The words of the wording that say what is asked of the things, where that is one thing: was born, died."""
    templates = {template for hole in frame.holes for template in hole.asks}
    if len(templates) != 1 or any(hole.kind == "relation" for hole in frame.holes):
        return None
    about = content(templates.pop().replace(BLANK, ""))
    word = next((word for word in words(frame.text) if content(word) and content(word) <= about), None)
    return rf"{_AUXILIARY}\b{word}\b{_PREPOSITION}" if word else None


def _asks(
    frame: Frame, match: re.Match[str], filled: Sequence[str], wordings: Wordings
) -> tuple[tuple[str, ...], ...] | None:
    """What is asked of what stands in each hole; None where no demonstration asks for such a thing."""
    relation = next((t for hole, t in zip(frame.holes, filled, strict=True) if hole.kind == "relation"), None)
    region = match.groupdict().get("region")
    found = []
    for hole in frame.holes:
        templates = []
        for template in hole.asks:
            new: str | None = template
            if relation and RELATION_ASKED.fullmatch(template):
                new = wordings.asked(singular(relation))
            elif region is not None:
                new = _asked_by(region, template, frame, wordings)
            if new is None:
                return None
            templates.append(new)
        found.append(tuple(templates))
    return tuple(found)


def _asked_by(region: str, template: str, frame: Frame, wordings: Wordings) -> str | None:
    if content(region) == content(template.replace(BLANK, "")):
        return template
    noun = re.fullmatch(r"have (?:the|their) ([a-z ]+?)(?: in)?", region)
    if noun and frame.operation == operations.EQUAL:
        return wordings.asked(noun[1], what=True)
    return wordings.like(region, template)
