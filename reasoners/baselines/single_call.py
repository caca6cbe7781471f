"""Baselines with one call of the model: closed-book, after one retrieval, or with all articles in the prompt."""

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from showhow.llm.profiles import DEFAULT_CONTEXT_WINDOW
from showhow.reasoners.answers.normalization import group_equal_answers
from showhow.reasoners.base import (
    NOTHING,
    Action,
    CallBudget,
    Fan,
    FinalAnswer,
    Move,
    NoUsableReply,
    QuestionRefused,
    ReasonerError,
    ReasonerGenerator,
    Task,
    fit_to_budget,
)
from showhow.reasoners.baselines.phantomwiki import load_exemplars
from showhow.reasoners.baselines.skills import (
    COT_ANSWER,
    COT_RAG,
    EXEMPLAR_CHOICES,
    IN_CONTEXT,
    IN_CONTEXT_PLAIN,
    SOURCE_OPTIONS,
    AnswersT,
    ArticlesQuestion,
    ask_together,
    reasons_of,
    require_answers,
    require_sources,
)
from showhow.reasoners.humaniq.options import (
    DEFAULT_REPLY_TOKENS,
    AgentOptionsError,
    check_choices,
    check_positive,
    check_temperature,
    choice,
)
from showhow.reasoners.prompting.run_state import count_message_tokens
from showhow.reasoners.retrieval import Retriever
from showhow.reasoners.skills.skill import Shot, Skill, SkillCall, SkillResult, build_skill_messages
from showhow.reasoners.skills.values import (
    OWN_KNOWLEDGE,
    AnswersReply,
    AnswerValue,
    ReasonedQuotingReply,
    ReasonedReply,
    SourcePassage,
    conclude,
    conclude_from_passages,
)
from showhow.reasoners.sources import DIRECT_ANSWER, DIRECT_RAG, BareQuestion, PassageQuestion, RetrievalQuery
from showhow.worlds.source import ArticleListing

MIN_ARTICLE_TOKENS = 15
"""An article takes at least so many tokens of a prompt, by its id, its title and the names of its fields."""


@dataclass(frozen=True, slots=True)
class ClosedBook:
    """One call without sources: the answer is the model's own knowledge."""

    name: str
    skill: Skill[BareQuestion, Any]

    def solve(self, task: Task) -> ReasonerGenerator:
        """Ask once."""
        result: SkillResult[AnswersReply] = yield SkillCall(self.skill, BareQuestion(question=task.question), "answer")
        reply = require_answers(result, task.question, 1)
        conclusion = conclude(reply.answers, (), {OWN_KNOWLEDGE}, reasons_of(reply))
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=1)


def build_direct() -> ClosedBook:
    """The baseline `direct`."""
    return ClosedBook("direct", DIRECT_ANSWER)


def build_cot() -> ClosedBook:
    """The baseline `cot`."""
    return ClosedBook("cot", COT_ANSWER)


@dataclass(frozen=True, slots=True)
class CotScOptions:
    """The options of CoT-SC."""

    samples: int = 5
    """Chains of thought that are sampled, as in PhantomWiki; Chain-of-Knowledge takes 10, ReAct 21."""
    temperature: float = 0.7
    """The temperature of the samples."""

    def __post_init__(self) -> None:
        check_positive(samples=self.samples)
        check_temperature(self.temperature)


@dataclass(frozen=True, slots=True)
class CotSc:
    """Chains of thought that are sampled at the same time; the answers are those in more than half of them."""

    options: CotScOptions = field(default_factory=CotScOptions)
    name: str = field(default="cot-sc", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Ask for the samples and vote."""
        replies, samples = yield from sample_chains(task, self.options.samples, self.options.temperature)
        values, votes = vote_over_sets(replies)
        majority = samples // 2 + 1
        elected = [value for value in values if votes[value.text] >= majority]
        without_answers = sum(not reply.answers and not reply.unknown for reply in replies)
        if not elected and without_answers < majority:
            counts = ", ".join(f"{text} in {count}" for text, count in votes.most_common(3)) or "none has an answer"
            raise QuestionRefused(f"No answer is in more than half of the {samples} samples: {counts}.", samples)
        supporting = next(
            (reply for reply in replies if {value.text for value in reply.answers} == {v.text for v in elected}), None
        )
        conclusion = conclude(elected, (), {OWN_KNOWLEDGE}, "" if supporting is None else supporting.reasons)
        details = conclusion.details | {"votes": dict(votes), "samples": samples}
        return FinalAnswer(conclusion.answers, details=details, expected_model_calls=samples)


def sample_chains(
    task: Task, samples: int, temperature: float, reserve: CallBudget = NOTHING
) -> Generator[Move, Any, tuple[list[ReasonedReply], int]]:
    """Sample chains of thought at the same time, as many as the budget has room for besides the reserve, at least one.

    Returns the usable replies and the number of samples; NoUsableReply if no sample has a usable reply.
    """
    fan = Fan("samples", samples, CallBudget(1, 0), reserve)
    count = yield from fit_to_budget(task, fan, "budget/samples", None)
    skill = replace(COT_ANSWER, temperature=temperature)
    request = BareQuestion(question=task.question)
    calls = [SkillCall(skill, request, f"sample/{number}", sample=number) for number in range(count)]
    results = yield from ask_together(calls)
    replies = [result.reply for result in results if result.reply is not None]
    if not replies:
        raise NoUsableReply(f"The model gave no usable reply in any sample: {results[0].error}")
    return replies, count


def vote_over_sets(replies: Sequence[AnswersReply]) -> tuple[list[AnswerValue], Counter[str]]:
    """The different answers, each in its most frequent wording, and by this wording how many replies have it.

    reasoners/answers/normalization.py decides which answers are equal. A reply counts once for an answer.
    """
    values = _number_answers(replies)
    elected: list[AnswerValue] = []
    votes: Counter[str] = Counter()
    for group in group_equal_answers({place: value.text for place, value in values.items()}):
        wording = Counter(values[place].text for place in group).most_common(1)[0][0]
        elected.append(next(values[place] for place in group if values[place].text == wording))
        votes[wording] = len({place.partition("/")[0] for place in group})
    return elected, votes


def _number_answers(replies: Sequence[AnswersReply]) -> dict[str, AnswerValue]:
    """The answers by the number of their reply and their own: 0/1."""
    return {
        f"{sample}/{number}": value
        for sample, reply in enumerate(replies)
        for number, value in enumerate(reply.answers)
    }


def most_frequent_reply(replies: Sequence[AnswersT]) -> tuple[AnswersT, int]:
    """The first reply with the set of answers that most replies have, and the number of these replies.

    Replies that do not know agree with each other.
    """
    values = _number_answers(replies)
    answer_sets: list[set[int]] = [set() for _ in replies]
    for group, places in enumerate(group_equal_answers({place: value.text for place, value in values.items()})):
        for place in places:
            answer_sets[int(place.partition("/")[0])].add(group)
    keys = [None if reply.unknown else frozenset(answers) for reply, answers in zip(replies, answer_sets, strict=True)]
    best = max(keys, key=keys.count)
    return replies[keys.index(best)], keys.count(best)


@dataclass(frozen=True, slots=True)
class RagOptions:
    """The options of RAG."""

    articles: int = 4
    """Articles or pages read after the search, which returns at most five; 4 in PhantomWiki (C.2, C.4)."""
    source: str = choice("text", SOURCE_OPTIONS)
    """Where to search: text, web, graph, all."""
    exemplars: str = choice("none", EXEMPLAR_CHOICES)
    """The worked answers before the question, of CoT-RAG alone; PhantomWiki's are those of its CoT (C.4)."""

    def __post_init__(self) -> None:
        check_positive(articles=self.articles)
        check_choices(self)


@dataclass(frozen=True, slots=True)
class Rag:
    """One retrieval by the question, then one call with the passages."""

    name: str
    skill: Skill[PassageQuestion, Any]
    options: RagOptions = field(default_factory=RagOptions)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Retrieve and answer."""
        sources = require_sources(task, self.options.source)
        retriever = Retriever(task, self.options.articles)
        passages = yield from retriever.retrieve(sources, RetrievalQuery(task.question, ()), "retrieve", None)
        request = PassageQuestion(question=task.question, passages=passages)
        # Shots have the form of the requests, and no passages of their own, as published.
        shots = [
            Shot(PassageQuestion(question=shot.request.question, passages=[]), shot.reply)
            for shot in list_exemplar_shots(self.options.exemplars)
        ]
        result: SkillResult[AnswersReply] = yield SkillCall(self.skill, request, "answer", shots=shots)
        reply = require_answers(result, task.question, 1)
        conclusion = conclude_from_passages(reply, passages, reasons_of(reply))
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=1)


def build_rag(options: RagOptions) -> Rag:
    """The baseline `rag`."""
    return Rag("rag", DIRECT_RAG, options)


def build_cot_rag(options: RagOptions) -> Rag:
    """The baseline `cot-rag`."""
    return Rag("cot-rag", COT_RAG, options)


IN_CONTEXT_PROMPTING = {
    "reasons": "the reply reasons before it answers, as PhantomWiki's CoT",
    "zero-shot": "the reply is the answer alone, as PhantomWiki's zero-shot prompting",
}


@dataclass(frozen=True, slots=True)
class InContextOptions:
    """The options of in-context prompting; PhantomWiki has both kinds (section 4)."""

    prompting: str = choice("reasons", IN_CONTEXT_PROMPTING)
    """Whether the reply has reasons: zero-shot in PhantomWiki's C.1, reasons in its C.3."""
    exemplars: str = choice("none", EXEMPLAR_CHOICES)
    """The worked answers before the question; PhantomWiki has ten with reasons (section 4, C.3)."""

    def __post_init__(self) -> None:
        check_choices(self)
        if self.prompting == "zero-shot" and self.exemplars != "none":
            raise AgentOptionsError("exemplars show reasons; choose the prompting reasons, or no exemplars")


def list_exemplar_shots(exemplars: str) -> list[Shot[ArticlesQuestion, ReasonedQuotingReply]]:
    """The exemplars of an option as answered requests."""
    return [] if exemplars == "none" else [exemplar.to_shot() for exemplar in load_exemplars()]


@dataclass(frozen=True, slots=True)
class InContext:
    """All articles of the world in one prompt."""

    options: InContextOptions = field(default_factory=InContextOptions)
    name: str = field(default="in-context", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Read all articles and answer; QuestionRefused if they do not fit the context window of the model."""
        listing = task.context.world.text
        if listing is None or not isinstance(listing, ArticleListing):
            raise ReasonerError(
                f"The world {task.context.world.name} cannot list its articles; use the reasoner rag, which searches."
            )
        count = len(listing)
        self._check_window(task, count, count * MIN_ARTICLE_TOKENS)
        opened = yield Action(f"I read all {count:,} articles.", node="articles", data={"articles": count}, reuse=True)
        passages = [
            SourcePassage(id=f"{opened.step_position}.{number}", source="text", title=article.title, text=article.text)
            for number, article in enumerate(listing.list_articles(count) if count else (), 1)
        ]
        skill: Skill[ArticlesQuestion, Any] = IN_CONTEXT
        if is_plain := self.options.prompting == "zero-shot":
            skill = IN_CONTEXT_PLAIN
        request, shots = ArticlesQuestion(passages=passages, question=task.question), self.options.exemplars
        call = SkillCall(skill, request, "answer", shots=list_exemplar_shots(shots))
        self._check_window(task, count, count_message_tokens(build_skill_messages(call)))
        result: SkillResult[AnswersReply] = yield call
        reply = require_answers(result, task.question, 1)
        if is_plain:
            # The reply names no articles, and rests on the step that read every one.
            steps = [] if opened.step_position is None else [opened.step_position]
            conclusion = conclude(reply.answers, steps, {passage.source for passage in passages})
        else:
            conclusion = conclude_from_passages(reply, passages, reasons_of(reply))
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=1)

    def _check_window(self, task: Task, articles: int, tokens: int) -> None:
        """Refuse a prompt of more tokens than the model's window has room for; without a model there is no window."""
        chat = task.context.chat
        if chat is None:
            return
        window = chat.profile.context_window or DEFAULT_CONTEXT_WINDOW
        room = window - min(chat.profile.reply_limit or DEFAULT_REPLY_TOKENS, window)
        if tokens > room:
            raise QuestionRefused(
                f"The {articles:,} articles of the world {task.context.world.name} take at least {tokens:,} tokens "
                f"with the question, and the prompt may take {room:,} of the {window:,} in the context window of "
                f"{chat.name}; use a model with a larger window, or the reasoner rag.",
                0,
            )
