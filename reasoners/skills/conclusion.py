"""The final answer of a reasoner that works with skills: its text, its citations, and the source that it rests on."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from db.recording import TraceAnswers
from reasoners.answers.extraction import NO_ANSWER, join_answers
from reasoners.skills.values import AnswersReply, AnswerValue, SourcePassage

OWN_KNOWLEDGE = "model"
"""The source of an answer that rests on the model's own knowledge."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The answers that a trace stores, and the details for its configuration."""

    answers: TraceAnswers
    details: dict[str, Any]


def conclude(
    values: Sequence[AnswerValue], steps: Collection[int], sources: Collection[str], reasons: str = ""
) -> Conclusion:
    """Conclude with these values; the final thought has the `reasons` and cites the `steps` by their positions.

    `sources` (text, graph, web, model) are those that the values rest on. Only an answer that rests on one kind alone
    is also the answer of that kind; text and web are one kind.
    """
    texts = list(dict.fromkeys(value.text for value in values))
    answer = join_answers(texts) or NO_ANSWER
    cited = sorted(set(steps))
    kinds = {"text" if source == "web" else source for source in sources}
    marks = "".join(f" [step {position}]" for position in cited)
    answers = TraceAnswers(
        answer,
        answer_text=answer if kinds == {"text"} else None,
        answer_graph=answer if kinds == {"graph"} else None,
        answer_model=answer if kinds == {OWN_KNOWLEDGE} else None,
        final_thought=f"{f'{reasons} ' if reasons else ''}So the answer is: {answer}.{marks}",
    )
    return Conclusion(answers, {"answers": texts} | ({"cited": cited} if cited else {}))


def conclude_from_passages(reply: AnswersReply, passages: Sequence[SourcePassage], reasons: str = "") -> Conclusion:
    """Conclude with the answers of a reply, which rest on the passages that it names."""
    supporting = [passage for passage in passages if passage.id in reply.support]
    return conclude(
        reply.answers, {passage.step for passage in supporting}, {passage.source for passage in supporting}, reasons
    )
