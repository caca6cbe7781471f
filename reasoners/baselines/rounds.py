"""Baselines that call the model and retrieve in turn: Self-Ask (Press et al. 2023) and IRCoT (Trivedi et al. 2023)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from reasoners.base import (
    Action,
    FinalAnswer,
    QuestionRefused,
    ReasonerGenerator,
    StepCompletion,
    Task,
)
from reasoners.baselines.skills import (
    COT_RAG,
    REASON_SENTENCE,
    SELF_ASK,
    SOURCE_OPTIONS,
    FollowUpAnswer,
    ReasonSentenceReply,
    ReasonSentenceRequest,
    SelfAskReply,
    SelfAskRequest,
    require_answers,
    require_reply,
    require_sources,
)
from reasoners.humaniq.options import check_option, check_positive
from reasoners.retrieval import RetrievalQuery, Retriever
from reasoners.skills.conclusion import conclude, conclude_from_passages
from reasoners.skills.shared_skills import PassageQuestion
from reasoners.skills.skill import SkillCall, SkillResult
from reasoners.skills.values import AnswersReply, ReasonedReply, SourcePassage, format_values

READER_CHOICES = {
    "on": "a call of its own answers from what was gathered, as published",
    "off": "the answer is that of the last sentence",
}


@dataclass(frozen=True, slots=True)
class SelfAskOptions:
    """The options of Self-Ask."""

    rounds: int = 5
    """The most follow-ups; then it has to answer."""
    articles: int = 4
    """Articles or pages read after a search."""
    source: str = "text"
    """Where to search: text, web, graph, all."""

    def __post_init__(self) -> None:
        check_positive(rounds=self.rounds, articles=self.articles)
        check_option("source", self.source, SOURCE_OPTIONS)


@dataclass(frozen=True, slots=True)
class SelfAsk:
    """Follow-up, retrieval and intermediate answer in turn; one call gives an answer and the next follow-up."""

    options: SelfAskOptions = field(default_factory=SelfAskOptions)
    name: str = field(default="self-ask", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Ask follow-ups until the answer follows."""
        sources = require_sources(task, self.options.source)
        retriever = Retriever(task, self.options.articles)
        answered: list[FollowUpAnswer] = []
        cited: list[SourcePassage] = []
        request = SelfAskRequest(question=task.question, left=self.options.rounds)
        result: SkillResult[SelfAskReply] = yield SkillCall(SELF_ASK, request, "ask")
        reply = require_reply(result)
        while reply.next_question:
            number, follow_up = len(answered) + 1, reply.next_question
            place = f"round/{number}"
            opened = yield Action(follow_up, node=place, skill="node", open=True, reuse=True)
            passages = yield from retriever.retrieve(sources, RetrievalQuery(follow_up, ()), place, opened.step_id)
            request = SelfAskRequest(
                question=task.question,
                answered=answered,
                pending=follow_up,
                passages=passages,
                left=self.options.rounds - number,
            )
            result = yield SkillCall(SELF_ASK, request, f"{place}/ask", opened.step_id)
            reply = require_reply(result)
            intermediate = reply.intermediate or AnswersReply(answers=[], unknown=True)
            answer = FollowUpAnswer(question=follow_up, answers=intermediate.answers, unknown=intermediate.unknown)
            answered = [*answered, answer]
            cited += [passage for passage in passages if passage.id in intermediate.support]
            observation = "unknown" if answer.unknown else format_values(answer.answers)
            yield StepCompletion(opened.step_id, observation, answer.model_dump(exclude_none=True))
        if reply.final is None or reply.final.unknown:
            raise QuestionRefused(f"The follow-ups do not lead to an answer to: {task.question}")
        conclusion = conclude(
            reply.final.answers, {passage.step for passage in cited}, {passage.source for passage in cited}
        )
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=len(answered) + 1)


@dataclass(frozen=True, slots=True)
class IrcotOptions:
    """The options of IRCoT."""

    articles: int = 4
    """Articles or pages read after a search."""
    paragraphs: int = 15
    """Articles or pages of which sentences are kept; those that come later are dropped."""
    sentences: int = 10
    """The most sentences of reasoning."""
    reader: str = "on"
    """Whether a call of its own answers from what was gathered: on, off."""
    source: str = "text"
    """Where to search: text, web, graph, all."""

    def __post_init__(self) -> None:
        check_positive(articles=self.articles, paragraphs=self.paragraphs, sentences=self.sentences)
        check_option("reader", self.reader, READER_CHOICES)
        check_option("source", self.source, SOURCE_OPTIONS)


@dataclass(frozen=True, slots=True)
class Ircot:
    """A sentence of reasoning and a retrieval by it in turn, until a sentence states the answer; then a reader."""

    options: IrcotOptions = field(default_factory=IrcotOptions)
    name: str = field(default="ircot", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Reason and retrieve in turn, then answer."""
        sources = require_sources(task, self.options.source)
        retriever = Retriever(task, self.options.articles)
        gathered = _GatheredPassages(self.options.paragraphs)
        sentences: list[str] = []
        final: AnswersReply | None = None
        query = task.question
        while final is None and len(sentences) < self.options.sentences:
            number = len(sentences) + 1
            gathered.add(
                (yield from retriever.retrieve(sources, RetrievalQuery(query, ()), f"retrieve/{number}", None))
            )
            request = ReasonSentenceRequest(
                question=task.question, sentences=list(sentences), passages=gathered.passages
            )
            result: SkillResult[ReasonSentenceReply] = yield SkillCall(REASON_SENTENCE, request, f"sentence/{number}")
            reply = require_reply(result)
            query, final = reply.sentence, reply.final
            sentences.append(reply.sentence)
        if self.options.reader == "on":
            return (yield from self._read(task, gathered.passages, len(sentences) + 1))
        if final is None:
            raise QuestionRefused(
                f"None of the {len(sentences)} sentences states the answer; allow more sentences, or the reader."
            )
        if final.unknown:
            raise QuestionRefused(f"The reasoning ends without an answer to: {task.question}")
        conclusion = conclude_from_passages(final, gathered.passages, " ".join(sentences))
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=len(sentences))

    def _read(self, task: Task, passages: Sequence[SourcePassage], calls: int) -> ReasonerGenerator:
        """Answer from the gathered passages alone."""
        request = PassageQuestion(question=task.question, passages=list(passages))
        result: SkillResult[ReasonedReply] = yield SkillCall(COT_RAG, request, "read")
        reply = require_answers(result, task.question)
        conclusion = conclude_from_passages(reply, passages, reply.reasons)
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=calls)


class _GatheredPassages:
    """Different passages of at most so many articles or pages, in the order of their retrieval."""

    def __init__(self, paragraphs: int) -> None:
        self._paragraphs = paragraphs
        self._passages: dict[tuple[str, str], dict[str, SourcePassage]] = {}

    @property
    def passages(self) -> list[SourcePassage]:
        return [passage for texts in self._passages.values() for passage in texts.values()]

    def add(self, passages: Iterable[SourcePassage]) -> None:
        for passage in passages:
            place = (passage.source, passage.title)
            if place in self._passages or len(self._passages) < self._paragraphs:
                self._passages.setdefault(place, {}).setdefault(passage.text, passage)
