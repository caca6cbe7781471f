"""A demonstration's frame on another question: whether the wording is the same, and what stands in the holes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reasoners.replay import operations
from reasoners.replay.asks import BLANK
from reasoners.replay.english import NAME, OPPOSITES, content, singular, words
from reasoners.replay.frames import FrameHole, QuestionFrame, words_of_order
from reasoners.replay.phrases import NounPhrase, parse_phrase
from reasoners.replay.wordings import RELATION_QUESTION, QuestionTemplates

_AUXILIARY = r"(?:(?:is|was|are|were|did|does|do|have|has|had|the|their) )*"
_PREPOSITION = r"(?: (?:in|on|at|as))?"


@dataclass(frozen=True, slots=True)
class FrameFit:
    """A frame on another question: what stands in each hole."""

    frame: QuestionFrame
    hole_texts: tuple[str, ...]
    phrases: tuple[NounPhrase | None, ...]
    """Of the holes for things what they mean."""
    asks: tuple[tuple[str, ...], ...]
    operation: str


def fit_frame(frame: QuestionFrame, question: str, wordings: QuestionTemplates) -> FrameFit | None:
    """The frame on a question; None where the wording is another one or a hole holds what cannot stand there."""
    match = re.fullmatch("".join(_pattern(frame, wordings.phrases)), question)
    if match is None:
        return None
    filled = tuple(match[f"hole{place}"].strip() for place in range(len(frame.holes)))
    phrases = tuple(
        parse_phrase(t) if hole.kind == "things" else None for hole, t in zip(frame.holes, filled, strict=True)
    )
    if any(hole.kind == "things" and not phrase for hole, phrase in zip(frame.holes, phrases, strict=True)):
        return None
    if any(hole.kind == "value" and words_of_order(text) for hole, text in zip(frame.holes, filled, strict=True)):
        return None
    asks = _adapt_templates(frame, match, filled, wordings)
    if asks is None:
        return None
    turned = words_of_order(frame.text) != words_of_order(question) and bool(words_of_order(frame.text))
    operation = operations.FLIPPED.get(frame.operation, frame.operation) if turned else frame.operation
    return FrameFit(frame, filled, phrases, asks, operation)


def make_counting_frame(frame: QuestionFrame, head: str, instead: str) -> QuestionFrame | None:
    """The same frame behind another beginning, by which its answers are counted."""
    first = frame.parts[0]
    if not isinstance(first, str) or not first.startswith(instead) or frame.operation == operations.COUNT:
        return None
    return replace(frame, parts=(head + first.removeprefix(instead), *frame.parts[1:]), counted=True)


def _pattern(frame: QuestionFrame, known: Iterable[str]) -> Iterator[str]:
    region, place = _region(frame), 0
    for part in frame.parts:
        if isinstance(part, FrameHole):
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


def _region(frame: QuestionFrame) -> str | None:
    """The words of the wording that say what is asked of the things, where that is one thing: was born, died."""
    templates = {template for hole in frame.holes for template in hole.asks}
    if len(templates) != 1 or any(hole.kind == "relation" for hole in frame.holes):
        return None
    about = content(templates.pop().replace(BLANK, ""))
    word = next((word for word in words(frame.text) if content(word) and content(word) <= about), None)
    return rf"{_AUXILIARY}\b{word}\b{_PREPOSITION}" if word else None


def _adapt_templates(
    frame: QuestionFrame, match: re.Match[str], filled: Sequence[str], wordings: QuestionTemplates
) -> tuple[tuple[str, ...], ...] | None:
    """What is asked of what stands in each hole; None where no demonstration asks for such a thing."""
    relation = next((t for hole, t in zip(frame.holes, filled, strict=True) if hole.kind == "relation"), None)
    region = match.groupdict().get("region")
    results = []
    for hole in frame.holes:
        templates = []
        for template in hole.asks:
            new: str | None = template
            if relation and RELATION_QUESTION.fullmatch(template):
                new = wordings.template_for(singular(relation))
            elif region is not None:
                new = _find_template(region, template, frame, wordings)
            if new is None:
                return None
            templates.append(new)
        results.append(tuple(templates))
    return tuple(results)


def _find_template(region: str, template: str, frame: QuestionFrame, wordings: QuestionTemplates) -> str | None:
    if content(region) == content(template.replace(BLANK, "")):
        return template
    noun = re.fullmatch(r"have (?:the|their) ([a-z ]+?)(?: in)?", region)
    if noun and frame.operation == operations.EQUAL:
        return wordings.template_for(noun[1], what=True)
    return wordings.find_similar(region, template)
