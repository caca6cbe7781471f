"""Baselines that call the model and retrieve in turn.

Self-Ask (Press et al. 2023), IRCoT (Trivedi et al. 2023), and ReAct (Yao et al. 2023) alone or joined with CoT-SC.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from showhow.fewshot_library.selection import SelectionConfig
from showhow.llm.client import ChatClient
from showhow.reasoners.base import (
    Action,
    FinalAnswer,
    NoUsableReply,
    QuestionRefused,
    Reasoner,
    ReasonerError,
    ReasonerGenerator,
    StepCompletion,
    Task,
)
from showhow.reasoners.baselines.phantomwiki import PHANTOMWIKI_TOOLS, load_exemplars
from showhow.reasoners.baselines.single_call import CotSc, CotScOptions
from showhow.reasoners.baselines.skills import (
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
from showhow.reasoners.humaniq.agent import HumanIQ
from showhow.reasoners.humaniq.options import (
    PROMPT_FORMATS,
    SOURCE_CHOICES,
    AgentOptions,
    check_choices,
    check_positive,
    choice,
)
from showhow.reasoners.retrieval import Retriever
from showhow.reasoners.skills.skill import SkillCall, SkillResult
from showhow.reasoners.skills.values import (
    AnswersReply,
    ReasonedReply,
    SourcePassage,
    conclude,
    conclude_from_passages,
    format_values,
)
from showhow.reasoners.sources import PassageQuestion, RetrievalQuery
from showhow.tools.tool import Tool

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
    source: str = choice("text", SOURCE_OPTIONS)
    """Where to search: text, web, graph, all."""

    def __post_init__(self) -> None:
        check_positive(rounds=self.rounds, articles=self.articles)
        check_choices(self)


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
            raise QuestionRefused(f"The follow-ups do not lead to an answer to: {task.question}", len(answered) + 1)
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
    reader: str = choice("on", READER_CHOICES)
    """Whether a call of its own answers from what was gathered: on, off."""
    source: str = choice("text", SOURCE_OPTIONS)
    """Where to search: text, web, graph, all."""

    def __post_init__(self) -> None:
        check_positive(articles=self.articles, paragraphs=self.paragraphs, sentences=self.sentences)
        check_choices(self)


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
                f"None of the {len(sentences)} sentences states the answer; allow more sentences, or the reader.",
                len(sentences),
            )
        if final.unknown:
            raise QuestionRefused(f"The reasoning ends without an answer to: {task.question}", len(sentences))
        conclusion = conclude_from_passages(final, gathered.passages, " ".join(sentences))
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=len(sentences))

    def _read(self, task: Task, passages: Sequence[SourcePassage], calls: int) -> ReasonerGenerator:
        """Answer from the gathered passages alone."""
        request = PassageQuestion(question=task.question, passages=list(passages))
        result: SkillResult[ReasonedReply] = yield SkillCall(COT_RAG, request, "read")
        reply = require_answers(result, task.question, calls)
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


SHOTS_CHOICES = {
    "none": "no demonstration",
    "fixed": "the first k demonstrations of the library, the same for every question",
    "phantomwiki": "ten fixed exemplars from a world of 25 people, as in PhantomWiki",
}
REACT_TOOLS = {
    "offered": "the tools that are offered for the question",
    "phantomwiki": "RetrieveArticle and Search over all articles, as in PhantomWiki",
}
PHANTOMWIKI_OBSERVATION_TOKENS = 4_000
"""The token limit of an observation of PhantomWiki's tools, so that lists of titles stay whole."""


@dataclass(frozen=True, slots=True)
class ReactOptions:
    """The options of ReAct, which is HumanIQ's agent without a choice of demonstrations and without a response."""

    rounds: int = 7
    """The most messages with calls of tools, 7 as published, 50 in PhantomWiki (section 4); then it has to answer."""
    shots: str = choice("none", SHOTS_CHOICES)
    """The demonstrations in the prompt: none, fixed, phantomwiki (section 4 of its paper)."""
    tools: str = choice("offered", REACT_TOOLS)
    """The tools: offered, phantomwiki (C.5 of its paper)."""
    k: int = 3
    """The number of fixed demonstrations."""
    sources: str = choice("both", SOURCE_CHOICES)
    """The tools to offer by their sources: both, text, graph."""
    form: str = choice("auto", PROMPT_FORMATS)
    """The form of the prompt: auto, chat, text."""

    def __post_init__(self) -> None:
        check_positive(rounds=self.rounds)
        check_choices(self)
        _ = self.agent_options

    @property
    def agent_options(self) -> AgentOptions:
        """The options of the agent, whose last message is the answer, without a further call."""
        agent = AgentOptions(k=self.k, sources=self.sources, form=self.form, response="none", own_answer=False)
        return replace(agent, observation_tokens=PHANTOMWIKI_OBSERVATION_TOKENS) if self.own_tools else agent

    @property
    def own_tools(self) -> Sequence[Tool]:
        """The tools that it brings, in place of those that are offered; none by default."""
        return PHANTOMWIKI_TOOLS if self.tools == "phantomwiki" else ()

    def selection_config(self) -> SelectionConfig:
        """Select the first demonstrations of the library, or none."""
        return SelectionConfig(k=self.k if self.shots == "fixed" else 0, mode="static")


@dataclass(frozen=True, slots=True)
class React:
    """Thought, action and observation in turn by HumanIQ's agent, until the model answers."""

    options: ReactOptions = field(default_factory=ReactOptions)
    chat: ChatClient | None = None
    """The model that reasons; None uses the model of the task's tools."""
    after: int = 0
    """The position of the last step that is not its own."""
    name: str = field(default="react", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Run the agent; QuestionRefused after `rounds` messages without an answer."""
        if self.options.shots == "fixed" and not task.demonstrations:
            raise ReasonerError("ReAct with fixed shots needs a library; choose one, or shots=none.")
        if self.options.shots == "phantomwiki":
            task = replace(task, demonstrations=[exemplar.to_trace() for exemplar in load_exemplars()])
        agent = HumanIQ(self.options.agent_options, self.chat, rounds=self.options.rounds, after=self.after)
        return (yield from agent.solve(task))


@dataclass(frozen=True, slots=True)
class ReactCotScOptions(ReactOptions):
    """The options of ReAct joined with CoT-SC."""

    samples: int = 21
    """Chains of thought that are sampled, as published for these joined methods."""
    temperature: float = 0.7
    """The temperature of the samples."""

    def __post_init__(self) -> None:
        ReactOptions.__post_init__(self)
        _ = self.cot_sc_options

    @property
    def cot_sc_options(self) -> CotScOptions:
        """The options of the samples."""
        return CotScOptions(self.samples, self.temperature)


HANDOVER_NODE = "handover"
"""The node of the step that says why the first method has no answer."""


@dataclass(frozen=True, slots=True)
class JoinedReasoner:
    """A method, and another one for the questions that it does not answer."""

    name: str
    first: Reasoner
    build_second: Callable[[int], Reasoner]
    """Makes the second method from the position of the last step before its own."""

    def solve(self, task: Task) -> ReasonerGenerator:
        """Answer with the first method, or else with the second, after a step that says why."""
        handover = next((step for step in task.prior_steps if step.node == HANDOVER_NODE), None)
        if handover is None:
            try:
                return (yield from self.first.solve(task))
            except (QuestionRefused, NoUsableReply) as error:
                reason = str(error)
                calls = error.expected_model_calls if isinstance(error, QuestionRefused) else None
            data = {"method": self.first.name, "model_calls_expected": calls}
            opened = yield Action(f"{self.first.name} has no answer: {reason}", node=HANDOVER_NODE, data=data)
            position = opened.step_position
        else:
            calls, position = (handover.data or {}).get("model_calls_expected"), handover.position
        later_steps = [step for step in task.prior_steps if step.position > position]
        second = self.build_second(position)
        try:
            final: FinalAnswer = yield from second.solve(replace(task, prior_steps=later_steps))
        except QuestionRefused as refusal:
            refusal.expected_model_calls = _add_calls(calls, refusal.expected_model_calls)
            raise
        details = final.details | {"answered_by": second.name}
        return replace(final, details=details, expected_model_calls=_add_calls(calls, final.expected_model_calls))


def _add_calls(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def build_react_cot_sc(options: ReactCotScOptions, chat: ChatClient | None = None) -> JoinedReasoner:
    """The baseline `react-cot-sc`: CoT-SC where ReAct ends without an answer; `chat` is the model of ReAct."""
    return JoinedReasoner("react-cot-sc", React(options, chat), lambda _after: CotSc(options.cot_sc_options))


def build_cot_sc_react(options: ReactCotScOptions, chat: ChatClient | None = None) -> JoinedReasoner:
    """The baseline `cot-sc-react`: ReAct where the samples of CoT-SC have no majority; `chat` is the model of ReAct."""
    return JoinedReasoner("cot-sc-react", CotSc(options.cot_sc_options), lambda after: React(options, chat, after))
