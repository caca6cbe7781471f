"""The cards of a method's form, and how a reasoner's spans and calls of skills become cards.

card = build_span_card(steps, span, "3", "3. Who is the mother of Ada?", lines=tuple(list_sources(steps, span)))
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from showhow.db.models import Step
from showhow.reasoners.skills.skill import SkillSteps, read_reply
from showhow.reasoners.skills.values import AnswersReply, AnswerValue, Quotation, format_values
from showhow.reasoners.sources import SOURCE_TOOLS

MAX_LISTED = 12
"""Pruned relations or facts that a card names; of the others it has the number."""


@dataclass(frozen=True, slots=True)
class TitlePart:
    """A part of a card's title; a chip is an unknown, with its values once they are known."""

    text: str
    is_chip: bool = False
    values: str = ""


@dataclass(frozen=True, slots=True)
class CardLine:
    """A labelled line of a card; `grey` for what was not used, `steps` are positions to open."""

    label: str
    text: str
    grey: bool = False
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FormCard:
    """One part of the method: a question, a triple, a fact, a sample."""

    key: str
    """Unique within the form, and stable while it fills."""
    title: tuple[TitlePart, ...]
    position: int | None = None
    """The step that it stands for."""
    depth: int = 0
    marks: tuple[str, ...] = ()
    answer: str = ""
    state: str = "waiting"
    """waiting, working, done or unknown."""
    lines: tuple[CardLine, ...] = ()
    changeable: int | None = None
    """The step of the skill that decided it, whose reply a person may change."""


@dataclass(frozen=True, slots=True)
class CardGroup:
    """Cards below each other: a tree, a chain of triples, a lane."""

    title: str
    cards: tuple[FormCard, ...]


@dataclass(frozen=True, slots=True)
class TallyEntry:
    """An answer with its votes."""

    text: str
    count: int
    of: int
    is_elected: bool


@dataclass(frozen=True, slots=True)
class MethodForm:
    """The form of one run."""

    title: str
    legend: str
    """One sentence on how to read it."""
    groups: tuple[CardGroup, ...]
    tally: tuple[TallyEntry, ...] = ()
    summary: tuple[CardLine, ...] = ()
    plan: int | None = None
    """The step whose reply is the plan."""


def author_marks(*steps: Step | None) -> tuple[str, ...]:
    """The marks of replies that a person has written."""
    authors = ((step.data or {}).get("written_by") for step in steps if step is not None)
    return tuple(f"written by {author}" for author in dict.fromkeys(filter(None, authors)))


def read_values(entries: Iterable[Any]) -> list[AnswerValue]:
    """Answers as a step stores them."""
    return [AnswerValue.model_validate(entry) for entry in entries]


def build_span_card(steps: SkillSteps, span: Step | None, key: str, title: str, **parts: Any) -> FormCard:
    """The card of a span, with its state and the call that decided it; `parts` are further fields of the card."""
    call = steps.deciding_call(span)
    position = None if span is None else span.position
    changeable = None if call is None or call.finished_at is None else call.position
    data = steps.result(span)
    state = "waiting" if span is None else "working" if span.finished_at is None else "done"
    answer = "" if not data or data.get("unknown") else format_values(read_values(data.get("answers", ())))
    defaults = {"state": "unknown" if data.get("unknown") else state, "answer": answer}
    marks = (*parts.pop("marks", ()), *author_marks(call))
    lines = (*parts.pop("lines", ()), *list_quotations(call))
    fields = {"marks": marks, "lines": lines, "changeable": changeable, **defaults, **parts}
    return FormCard(key, (TitlePart(title),), position, **fields)


def list_quotations(call: Step | None) -> Iterator[CardLine]:
    """The words of passages that a call's reply quotes, with the steps that returned them."""
    reply = None if call is None else read_reply(call)
    for entry in (reply or {}).get("quotes", ()):
        quote = Quotation.model_validate(entry)
        yield CardLine("quoted", f"“{quote.text}”", steps=(int(quote.id.partition(".")[0]),))


def build_call_card(step: Step, key: str, title: str, reply: AnswersReply | None, line: CardLine | None) -> FormCard:
    """The card of a skill's call; `reply` has its answers, if it gave any."""
    is_unknown_answer = step.finished_at is not None and (read_reply(step) is None or (reply and reply.unknown))
    return FormCard(
        key,
        (TitlePart(title),),
        step.position,
        marks=author_marks(step),
        answer="" if reply is None or reply.unknown else str(reply),
        state="working" if step.finished_at is None else "unknown" if is_unknown_answer else "done",
        lines=(*(() if line is None else (line,)), *list_quotations(step)),
        changeable=None if step.finished_at is None else step.position,
    )


def build_final_card(key: str, title: str, reply: AnswersReply) -> FormCard:
    """The card of final answers that no step of its own stands for."""
    return FormCard(key, (TitlePart(title),), answer=str(reply), state="unknown" if reply.unknown else "done")


def list_sources(steps: SkillSteps, span: Step | None) -> Iterator[CardLine]:
    """The sources that were asked within a span, in order."""
    places = (part for step in steps.below(span) if step.tool for part in (step.node or "").split("/"))
    if sources := list(dict.fromkeys(part for part in places if part in SOURCE_TOOLS)):
        yield CardLine("asked", ", ".join(sources))


def join_some(texts: Iterable[str]) -> str:
    """The first different texts, and the number of the others."""
    listed = list(dict.fromkeys(texts))
    rest = f" and {len(listed) - MAX_LISTED} others" if len(listed) > MAX_LISTED else ""
    return ", ".join(listed[:MAX_LISTED]) + rest
