"""The values that skills exchange: answers, passages and rows with their ids; and the final answer made of them."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from showhow.db.traces.recording import TraceAnswers
from showhow.db.unanswerable import UnanswerableReason, write_unanswerable
from showhow.llm.structured_output import ReplyText
from showhow.reasoners.answers.extraction import join_answers
from showhow.tools.read import find_quote
from showhow.tools.tool import ToolResult

MAX_SHOWN_CHARACTERS = 80
"""The words of a wrong quotation that its error repeats."""
MAX_WHOLE_TEXT = 2_000
"""Characters of an article or page that is shown as a whole, about 500 tokens."""


class AnswerValue(BaseModel):
    """One answer; `of` is the key of the input that it belongs to, where there are several."""

    model_config = ConfigDict(frozen=True)

    text: ReplyText
    """The answer as it is written: a name, a date, a number."""
    entity: ReplyText | None = None
    """The id of the answer in the graph, if it has one."""
    of: ReplyText | None = None
    """The id or text of the input that the answer belongs to, where there are several."""

    @property
    def key(self) -> str:
        """What identifies the value: its entity, else its text."""
        return self.entity or self.text


class OperandValue(BaseModel):
    """An argument of an operation: a text, or the answers of an earlier node."""

    text: str | None = None
    values: list[AnswerValue] | None = None

    @property
    def keys(self) -> set[str]:
        """What identifies it, whatever the order of the values."""
        return {self.text or ""} if self.values is None else {value.key for value in self.values}


class SourcePassage(BaseModel):
    """A passage or row that a tool returned; the id is STEP.NUMBER."""

    model_config = ConfigDict(frozen=True)

    id: str
    source: str
    """text, graph or web."""
    title: str
    text: str

    @property
    def step(self) -> int:
        """The position of the step that returned it."""
        return int(self.id.partition(".")[0])


class OfferedRelation(BaseModel):
    """A relation of the graph that the known end has; `direction` is the end at which it is."""

    id: str
    label: str
    direction: Literal["head", "tail"]

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from the others that are offered."""
        return self.id, self.direction


class GraphFact(BaseModel):
    """A fact of the graph, read from a known value to another one; the id is STEP.NUMBER."""

    model_config = ConfigDict(frozen=True)

    id: str
    known: AnswerValue
    relation: OfferedRelation
    other: AnswerValue

    @property
    def passage(self) -> SourcePassage:
        """The fact in words, as evidence of an answer."""
        ends = (self.known, self.other) if self.relation.direction == "head" else (self.other, self.known)
        text = f"{ends[0].text} | {self.relation.label} | {ends[1].text}"
        return SourcePassage(id=self.id, source="graph", title=self.known.text, text=text)


class Quotation(BaseModel):
    """Words of a passage."""

    model_config = ConfigDict(frozen=True)

    id: ReplyText
    """The id of the passage."""
    text: ReplyText
    """The words, as the passage has them."""


class AnswersReply(BaseModel):
    """Answers that rest on passages; `unknown` if the passages do not tell."""

    # Without a default: part of a broken reply must not read as an answer of nothing.
    answers: list[AnswerValue]
    """The answers; none together with unknown."""
    support: list[ReplyText] = Field(default_factory=list)
    """The ids of the passages that state the answers."""
    unknown: bool = False
    """Whether the passages do not tell the answers."""

    def __str__(self) -> str:
        return "unknown" if self.unknown else format_values(self.answers)


class QuotingReply(AnswersReply):
    """Answers that may quote the passages on which they rest."""

    quotes: list[Quotation] = Field(default_factory=list)
    """Words of the passages that state the answers, if any are quoted; they are looked up."""


class _Reasons(BaseModel):
    reasons: ReplyText
    """The reasoning that leads to the answers."""


# The fields of the last base class come first in the schema: a model has to reason before it answers.
class ReasonedReply(AnswersReply, _Reasons):
    """Reasons, then the answers that follow from them."""


class ReasonedQuotingReply(QuotingReply, ReasonedReply):
    """Reasons, then the answers that follow from them, which may quote passages."""


def check_answers(reply: AnswersReply, passages: Sequence[SourcePassage]) -> str | None:
    """What is wrong with answers as one sentence: unknown passages, words that they do not have, no clear answer."""
    texts = {passage.id: passage.text for passage in passages}
    quotes = reply.quotes if isinstance(reply, QuotingReply) else []
    unknown_ids = [id_ for id_ in [*reply.support, *(quote.id for quote in quotes)] if id_ not in texts]
    if unknown_ids:
        return f"There is no passage {unknown_ids[0]}; name ids of the passages that were given."
    misquoted = next((quote for quote in quotes if find_quote(quote.text, [texts[quote.id]]) is None), None)
    if misquoted is not None:
        return (
            f"Passage {misquoted.id} does not have the words {_shorten(misquoted.text)!r}; quote it word for word, at "
            "least a few words, or leave the quotation out."
        )
    if reply.unknown and reply.answers:
        return "The reply has answers and says that they are unknown; give one of the two."
    if any(not answer.text.strip() for answer in reply.answers):
        return "An answer is empty; leave it out, or say that it is unknown."
    return None


WITHOUT_SUPPORT = (
    "No passage is named as support of the answers; name in support the ids of those that state them, or say that they "
    "are unknown."
)


def lacks_support(reply: AnswersReply) -> bool:
    """Whether answers that need support rest on no passage."""
    return not reply.support and _need_support(answer.text for answer in reply.answers)


def _need_support(texts: Iterable[str]) -> bool:
    """Whether one of the answers has to rest on something; a count of 0 and a no say that nothing was found."""
    return any(text.strip().casefold() not in {"0", "no"} for text in texts)


def check_supported_answers(reply: AnswersReply, passages: Sequence[SourcePassage]) -> str | None:
    """What is wrong with answers that must rest on passages."""
    return check_answers(reply, passages) or (WITHOUT_SUPPORT if lacks_support(reply) else None)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."


def distinct_values(values: Iterable[AnswerValue]) -> list[AnswerValue]:
    """The values without duplicates, in order, without the inputs they belong to."""
    return list({value.key: value.model_copy(update={"of": None}) for value in values}.values())


def distinct_passages(passages: Sequence[SourcePassage]) -> list[SourcePassage]:
    """The passages without those whose source, title and text an earlier one has."""
    first = {(passage.source, passage.title, passage.text): passage for passage in reversed(passages)}
    return list(reversed(first.values()))


def format_values(values: Sequence[AnswerValue], limit: int = 10) -> str:
    """The distinct values as a list in a sentence; of many, the first ones and their number."""
    texts = list(dict.fromkeys(value.text for value in values))
    if not texts:
        return "nobody and nothing"
    shown = ", ".join(texts[:limit])
    return shown if len(texts) <= limit else f"{shown} and {len(texts) - limit} others"


def fill_references(question: str, answers: Mapping[int, Sequence[AnswerValue]]) -> str:
    """The question with each reference [3] replaced by the answers of question 3."""
    for number, values in answers.items():
        question = question.replace(f"[{number}]", format_values(values))
    return question


_PASSAGE_ID = re.compile(r"(\d{1,9})\.(\d+)")
_PASSAGE_ID_FIELDS = ("support", "facts")
"""The fields of requests and replies that list ids of passages; passages and facts themselves have an `id`."""


def renumber_passages(value: Any, new_position: Callable[[int], int]) -> Any:
    """The JSON value of a request or reply, with the ids of passages at the new positions of their steps."""

    def renumber(id_: Any) -> Any:
        match = _PASSAGE_ID.fullmatch(id_) if isinstance(id_, str) else None
        return id_ if match is None else f"{new_position(int(match[1]))}.{match[2]}"

    def convert(name: str, entry: Any) -> Any:
        if name == "id":
            return renumber(entry)
        if name in _PASSAGE_ID_FIELDS and isinstance(entry, list):
            return [
                renumber(item) if isinstance(item, str) else renumber_passages(item, new_position) for item in entry
            ]
        return renumber_passages(entry, new_position)

    if isinstance(value, list):
        return [renumber_passages(item, new_position) for item in value]
    return {name: convert(name, entry) for name, entry in value.items()} if isinstance(value, dict) else value


def observed_data(result: ToolResult) -> dict[str, Any]:
    """The data of an observation; empty after an error, which its step shows."""
    return {} if result.observation is None else result.observation.data


def read_passages(result: ToolResult, source: str) -> list[SourcePassage]:
    """A short article or page as a whole, in which pronouns have their context; the best sentences of a long one."""
    data = observed_data(result)
    text = " ".join(data.get("sentences", ()))
    if text and len(text) <= MAX_WHOLE_TEXT:
        return [SourcePassage(id=f"{result.step_position}.1", source=source, title=data["title"], text=text)]
    return best_sentences(result, source)


def best_sentences(result: ToolResult, source: str) -> list[SourcePassage]:
    data = observed_data(result)
    return [
        SourcePassage(id=f"{result.step_position}.{number}", source=source, title=data["title"], text=best["text"])
        for number, best in enumerate(data.get("best", ()), 1)
    ]


def entity_passages(result: ToolResult) -> list[SourcePassage]:
    """The entities that have a name, with their descriptions."""
    return [
        SourcePassage(
            id=f"{result.step_position}.{number}",
            source="graph",
            title=entity["label"],
            text=f"{entity['id']}: {entity['label']}" + (f", {entity['description']}" if entity["description"] else ""),
        )
        for number, entity in enumerate(observed_data(result).get("entities", ()), 1)
    ]


def table_passages(result: ToolResult) -> list[SourcePassage]:
    """The rows of a query's result, or its truth."""
    data = observed_data(result)
    if data.get("boolean") is not None:
        text = "yes" if data["boolean"] else "no"
        return [SourcePassage(id=f"{result.step_position}.1", source="graph", title="query", text=text)]
    return [
        SourcePassage(
            id=f"{result.step_position}.{number}",
            source="graph",
            title=", ".join(data["columns"]),
            text=" | ".join(_cell_text(cell) for cell in row),
        )
        for number, row in enumerate(data.get("rows", ()), 1)
    ]


def cell_value(cell: Mapping[str, Any], owner: str | None) -> AnswerValue:
    if cell["kind"] == "entity":
        return AnswerValue(text=cell.get("label", cell["value"]), entity=cell["value"], of=owner)
    return AnswerValue(text=format_literal_value(cell), of=owner)


def linked_value(link: Mapping[str, Any]) -> AnswerValue:
    if "id" in link:
        return AnswerValue(text=link["label"], entity=link["id"])
    return AnswerValue(text=format_literal_value({"value": link["literal"], "datatype": link["datatype"]}))


def format_literal_value(cell: Mapping[str, Any]) -> str:
    """A literal as an answer: a day as 1931-03-05."""
    text = str(cell["value"])
    return text.partition("T")[0] if str(cell.get("datatype", "")).endswith("#dateTime") else text


def _cell_text(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "-"
    return f"{cell['label']} ({cell['value']})" if "label" in cell else str(cell["value"])


OWN_KNOWLEDGE = "model"
"""The source of an answer that rests on the model's own knowledge."""
UNSUPPORTED = "unsupported"
"""Set in the details of an answer that rests neither on a step nor on own knowledge; the run refuses it."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The answers that a trace stores, and the details of its result."""

    answers: TraceAnswers
    details: dict[str, Any]


def conclude(
    values: Sequence[AnswerValue], steps: Collection[int], sources: Collection[str], reasons: str = ""
) -> Conclusion:
    """Conclude with these values; the final thought has the `reasons` and cites the `steps` by their positions.

    `sources` (text, graph, web, model) are those that the values rest on. Only an answer that rests on one kind alone
    is also the answer of that kind; text and web are one kind. Without a value the question cannot be answered; values
    that need a step and have none are UNSUPPORTED, unless they rest on own knowledge.
    """
    texts = list(dict.fromkeys(value.text for value in values))
    answer, is_own = join_answers(texts), OWN_KNOWLEDGE in sources
    statement = f"So the answer is: {answer}."
    if not texts:
        reason = UnanswerableReason.UNSTATED if set(sources) <= {OWN_KNOWLEDGE} else UnanswerableReason.NOT_IN_SOURCES
        answer = statement = write_unanswerable(reason)
    cited = sorted(set(steps))
    kinds = {"text" if source == "web" else source for source in sources}
    marks = "".join(f" [step {position}]" for position in cited)
    answers = TraceAnswers(
        answer,
        answer_text=answer if kinds == {"text"} else None,
        answer_graph=answer if kinds == {"graph"} else None,
        answer_model=answer if kinds == {OWN_KNOWLEDGE} else None,
        final_thought=f"{f'{reasons} ' if reasons else ''}{statement}{marks}",
    )
    details = {"answers": texts} | ({"cited_steps": cited} if cited else {})
    return Conclusion(
        answers, details | ({UNSUPPORTED: True} if _need_support(texts) and not cited and not is_own else {})
    )


def conclude_from_passages(reply: AnswersReply, passages: Sequence[SourcePassage], reasons: str = "") -> Conclusion:
    """Conclude with the answers of a reply, which rest on the passages that it names."""
    supporting = [passage for passage in passages if passage.id in reply.support]
    return conclude(
        reply.answers, {passage.step for passage in supporting}, {passage.source for passage in supporting}, reasons
    )
