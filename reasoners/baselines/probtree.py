"""ProbTree (Cao et al., EMNLP 2023): a tree of questions; at each node the answer that the model is surest of wins."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from showhow.llm.structured_output import ReplyText
from showhow.reasoners.atomr.skills import MAX_NODES, list_dependencies, list_order_problems, open_node_spans
from showhow.reasoners.base import (
    Branch,
    CallBudget,
    Fan,
    FinalAnswer,
    Move,
    NoUsableReply,
    Parallel,
    QuestionRefused,
    ReasonerGenerator,
    StepCompletion,
    Task,
    fit_to_budget,
)
from showhow.reasoners.baselines.single_call import most_frequent_reply
from showhow.reasoners.baselines.skills import (
    COT_ANSWER,
    COT_RAG,
    SOURCE_OPTIONS,
    ask_together,
    require_sources,
)
from showhow.reasoners.geek.skills import (
    CONCLUDE,
    ConcludeReply,
    ExcavatedFact,
    StateRequest,
    fill_numbers,
    list_references,
)
from showhow.reasoners.humaniq.options import (
    OWN_KNOWLEDGE_OPTIONS,
    check_at_least,
    check_choices,
    check_positive,
    check_temperature,
    choice,
)
from showhow.reasoners.retrieval import Retriever
from showhow.reasoners.skills.skill import Fallback, Skill, SkillCall, SkillResult
from showhow.reasoners.skills.values import OWN_KNOWLEDGE, ReasonedReply, SourcePassage, conclude
from showhow.reasoners.sources import BareQuestion, PassageQuestion, RetrievalQuery

MAX_FILLED_ANSWERS = 50
"""The most answers of an earlier question that a later one names."""
AGREEMENT_SAMPLES = 3
"""How often each reply is asked for where there are no log-probabilities."""
LOGPROB_MEASURE, AGREEMENT_MEASURE = "mean log-probability", f"agreement of {AGREEMENT_SAMPLES} samples"
"""What a confidence is: of tokens, or the logarithm of the share of samples with the same answers."""


@dataclass(frozen=True, slots=True)
class ProbTreeOptions:
    """The options of ProbTree.

    `own=free` is the published method. The default leaves its closed-book answers out, as for every method here that
    reads sources, so that a comparison of methods is not one of what a model remembers.
    """

    articles: int = 5
    """Articles or pages read after a search, which returns at most five."""
    source: str = choice("text", SOURCE_OPTIONS)
    """Where to search: text, web, graph, all."""
    own: str = choice("never", OWN_KNOWLEDGE_OPTIONS)
    """Whether the model's own knowledge competes with the sources: never, free."""
    temperature: float = 0.7
    """The temperature of the samples where there are no log-probabilities."""
    skill_shots: int = 0
    """Answered requests of other questions that each skill is shown."""

    def __post_init__(self) -> None:
        check_positive(articles=self.articles)
        check_at_least(0, skill_shots=self.skill_shots)
        check_choices(self)
        check_temperature(self.temperature)


class SubQuestion(BaseModel):
    """A question of the tree; `#2` in it stands for the answers of question 2."""

    id: int
    """The number of the sub-question."""
    question: ReplyText
    """The sub-question in words."""


class QuestionDecomposition(BaseModel):
    """The questions that together answer another one."""

    of: int
    """The number of the question that is split."""
    into: list[SubQuestion]
    """Its sub-questions."""


class QuestionTreeReply(BaseModel):
    """The decompositions of the question, which is number 0, and of its sub-questions."""

    decompositions: list[QuestionDecomposition]
    """The questions that are split, beginning with the whole one."""

    def __str__(self) -> str:
        lines = [f"{split.of} <- {entry.id}. {entry.question}" for split in self.decompositions for entry in split.into]
        return "\n".join(lines) or "one question"


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A question of the tree with the numbers of its sub-questions."""

    id: int
    question: str
    children: tuple[int, ...] = ()

    @property
    def references(self) -> list[int]:
        """The questions whose answers it names; the text of the question itself has no references."""
        return list_references(self.question) if self.id else []


def build_question_tree(question: str, reply: QuestionTreeReply) -> dict[int, TreeNode]:
    """The nodes of a tree by number; 0 is the question itself."""
    children = {split.of: tuple(entry.id for entry in split.into) for split in reply.decompositions}
    questions = {entry.id: entry.question for split in reply.decompositions for entry in split.into}
    return {
        number: TreeNode(number, text, children.get(number, ())) for number, text in ({0: question} | questions).items()
    }


def check_question_tree(request: BareQuestion, reply: QuestionTreeReply) -> str | None:
    """What is wrong with a tree as one sentence; None if its questions can be answered."""
    return next(_list_tree_problems(request.question, reply), None)


def _list_tree_problems(question: str, reply: QuestionTreeReply) -> Iterator[str]:
    ids = [0, *(entry.id for split in reply.decompositions for entry in split.into)]
    if len(ids) > MAX_NODES:
        yield f"There are {len(ids)} questions; use at most {MAX_NODES}."
    for number in (number for number in ids if ids.count(number) > 1):
        yield f"The number {number} is given twice; 0 is the question itself, and each other one needs its own."
    splits = [split.of for split in reply.decompositions]
    for split in reply.decompositions:
        if splits.count(split.of) > 1:
            yield f"Question {split.of} is split twice; split it once, into all of its sub-questions."
        if split.of not in ids:
            yield f"There is no question {split.of} to split."
        if len(split.into) < 2:
            yield f"Question {split.of} is split into fewer than two; give two or more, or do not split it."
    nodes = build_question_tree(question, reply)
    for node in nodes.values():
        if not node.question.strip():
            yield f"Question {node.id} is empty."
        for number in (number for number in node.references if number not in nodes):
            yield f"Question {node.id} refers to #{number}, which does not exist."
    yield from list_order_problems(nodes)


QUESTION_TREE: Skill[BareQuestion, QuestionTreeReply] = Skill(
    "question_tree",
    2,
    "I split the question into simpler ones.",
    "showhow.reasoners.baselines",
    BareQuestion,
    QuestionTreeReply,
    check_question_tree,
    Fallback("the question is not split", lambda _request: QuestionTreeReply(decompositions=[])),
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An answer to a node in one way, with the confidence in it."""

    way: str
    """children, open-book or closed-book."""
    reply: ReasonedReply
    confidence: float | None
    """A logarithm; None if it was not measured."""
    steps: frozenset[int] = frozenset()
    sources: frozenset[str] = frozenset()


_UNKNOWN = ReasonedReply(reasons="", answers=[], unknown=True)
_CandidateGenerator = Generator[Move, Any, _Candidate]


@dataclass(frozen=True, slots=True)
class ProbTree:
    """The reasoner; one instance can solve many tasks at the same time."""

    options: ProbTreeOptions = field(default_factory=ProbTreeOptions)
    name: str = field(default="probtree", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Split the question, answer the nodes, and answer with the surest answer of the root."""
        return (yield from _ProbTreeRun(self.options, task).run())


class _ProbTreeRun:
    """The run of one question."""

    def __init__(self, options: ProbTreeOptions, task: Task) -> None:
        self._options = options
        self._task = task
        self._sources = require_sources(task, options.source)
        self._retriever: Retriever
        self._nodes: dict[int, TreeNode] = {}
        self._spans: dict[int, UUID] = {}
        self._measure = LOGPROB_MEASURE
        self._split_confidences: dict[int, float | None] = {}
        self._alone: dict[int, list[_Candidate]] = {}
        """The answers to the nodes without their children."""
        self._chosen: dict[int, _Candidate] = {}
        self._expected_calls = 0
        self._filled: dict[int, str] = {}
        self._failures: list[str] = []
        """Why calls gave no usable reply."""

    def run(self) -> ReasonerGenerator:
        """Split the question, answer all nodes, and conclude."""
        yield from self._split()
        yield from self._fit_to_budget()
        self._spans = yield from open_node_spans(self._nodes)
        branches: list[Branch] = []
        for node in self._nodes.values():
            # An inner node is answered without its children while they are answered.
            alone, references = f"{node.id}/alone", frozenset(map(str, node.references))
            branches += [Branch(alone, self._answer_alone(node), references)]
            others = frozenset({alone, *map(str, list_dependencies(node))})
            branches += [Branch(str(node.id), self._answer_node(node), others)]
        yield Parallel(branches)
        return self._conclude(self._chosen[0])

    def _split(self) -> Generator[Move, Any, None]:
        """Plan the tree, with the confidence in each decomposition."""
        request = BareQuestion(question=self._task.question)
        self._expected_calls += 1
        scored = replace(QUESTION_TREE, scored_field="decompositions")
        planned: SkillResult[QuestionTreeReply] = yield SkillCall(scored, request, "plan")
        tree = planned.reply or QuestionTreeReply(decompositions=[])
        self._nodes = build_question_tree(self._task.question, tree)
        numbers = [split.of for split in tree.decompositions]
        logprobs = [logprob for logprob in planned.logprobs or () if logprob is not None]
        if planned.logprobs is not None and len(logprobs) == len(numbers):
            self._split_confidences = dict(zip(numbers, logprobs, strict=True))
            return
        self._measure = AGREEMENT_MEASURE
        others = yield from self._sample(QUESTION_TREE, request, "plan", None, range(1, AGREEMENT_SAMPLES))
        replies = [result.reply for result in others if result.reply is not None and result.fallback is None]
        # A tree agrees with a decomposition if it splits the node at the same place into as many questions.
        trees = [_locate_splits(self._nodes)]
        trees += [_locate_splits(build_question_tree(request.question, reply)) for reply in replies]
        self._split_confidences = {
            node.id: log(
                sum(place in tree and len(tree[place].children) == len(node.children) for tree in trees)
                / AGREEMENT_SAMPLES
            )
            for place, node in trees[0].items()
        }

    def _fit_to_budget(self) -> Generator[Move, Any, None]:
        """Cut the articles and the tree to what the run may still spend; what is left of a cut tree is the question."""
        searches = len(self._nodes) * len(self._sources)
        passages = Fan("articles a search", self._options.articles, CallBudget(0, searches), CallBudget(0, searches))
        articles = yield from fit_to_budget(self._task, passages, "budget/articles", None)
        self._retriever = Retriever(self._task, articles)
        samples = AGREEMENT_SAMPLES if self._measure == AGREEMENT_MEASURE else 1
        inner = sum(bool(node.children) for node in self._nodes.values())
        cost = CallBudget(samples * (1 + (self._options.own == "free")), 2 * len(self._sources))
        questions = Fan("questions of the tree", len(self._nodes), cost, CallBudget(samples * inner, 0), least=0)
        if (yield from fit_to_budget(self._task, questions, "budget/questions", None)) < len(self._nodes):
            self._nodes = {0: replace(self._nodes[0], children=())}

    def _sample(
        self, skill: Skill[Any, Any], request: BaseModel, place: str, span: UUID | None, samples: Sequence[int]
    ) -> Generator[Move, Any, list[SkillResult[Any]]]:
        """Ask for these samples of a reply at the same time."""
        self._expected_calls += len(samples)
        skill = replace(skill, temperature=self._options.temperature)
        calls = [SkillCall(skill, request, f"{place}/{sample}", span, sample) for sample in samples]
        results = yield from ask_together(calls)
        self._failures += [result.error for result in results if result.error is not None]
        return results

    def _answer_node(self, node: TreeNode) -> Generator[Move, Any, None]:
        """Choose the surest of the answers to a node, and complete its span."""
        # Of equally sure answers the first is taken: that from the children, which rests on most.
        candidates = [(yield from self._answer_from_children(node))] if node.children else []
        candidates += self._alone[node.id]
        known = [candidate for candidate in candidates if not candidate.reply.unknown]
        chosen = max(known, key=_measured, default=_Candidate("unknown", _UNKNOWN, None))
        references = [self._chosen[number] for number in node.references]
        if known:
            chosen = replace(
                chosen,
                steps=chosen.steps.union(*(reference.steps for reference in references)),
                sources=chosen.sources.union(*(reference.sources for reference in references)),
            )
        self._chosen[node.id] = chosen
        yield StepCompletion(
            self._spans[node.id],
            str(chosen.reply),
            {
                "question": self._fill(node),
                "how": chosen.way,
                "answers": [value.model_dump(exclude_none=True) for value in chosen.reply.answers],
                "unknown": chosen.reply.unknown,
                "cited": sorted(chosen.steps),
                "confidence": chosen.confidence,
                "measure": self._measure,
                "candidates": [
                    {"how": entry.way, "answer": str(entry.reply), "confidence": entry.confidence}
                    for entry in candidates
                ],
            },
        )

    def _answer_alone(self, node: TreeNode) -> Generator[Move, Any, None]:
        """Answer a node open-book and closed-book at the same time; in no way if it names an unknown answer."""
        self._alone[node.id] = []
        if self._names_unknown(node):
            return
        ways = [Branch("open", self._answer_open_book(node))]
        if self._options.own == "free":
            ways.append(Branch("closed", self._answer_closed_book(node)))
        self._alone[node.id] = yield Parallel(ways)

    def _answer_open_book(self, node: TreeNode) -> _CandidateGenerator:
        question, place, span = self._fill(node), f"{node.id}/open", self._spans[node.id]
        answers = [value for number in node.references for value in self._chosen[number].reply.answers]
        heads = yield from self._retriever.drop_unknown_ids(answers, f"{place}/ids", span)
        query = RetrievalQuery(question, heads, node.question if heads else "")
        passages: list[SourcePassage] = yield from self._retriever.retrieve(self._sources, query, place, span)
        request = PassageQuestion(question=question, passages=passages)
        reply, confidence = yield from self._ask(COT_RAG, request, place, span)
        supporting = [passage for passage in passages if passage.id in reply.support]
        steps, sources = ({passage.step for passage in supporting}, {passage.source for passage in supporting})
        return _Candidate("open-book", reply, confidence, frozenset(steps), frozenset(sources))

    def _answer_closed_book(self, node: TreeNode) -> _CandidateGenerator:
        request = BareQuestion(question=self._fill(node))
        reply, confidence = yield from self._ask(COT_ANSWER, request, f"{node.id}/closed", self._spans[node.id])
        return _Candidate("closed-book", reply, confidence, sources=frozenset({OWN_KNOWLEDGE}))

    def _answer_from_children(self, node: TreeNode) -> _CandidateGenerator:
        """Answer a node from the answers of its children.

        The confidence is the mean of those in the reasoning, the decomposition and the answer of each child.
        """
        answered = {number: self._chosen[number] for number in sorted(list_dependencies(node))}
        children = [self._chosen[number] for number in node.children]
        if self._names_unknown(node) or all(child.reply.unknown for child in children):
            return _Candidate("children", _UNKNOWN, None)
        request = StateRequest(question=self._fill(node), state=self._state(answered))
        reply, confidence = yield from self._ask(CONCLUDE, request, f"{node.id}/children", self._spans[node.id])
        parts = [confidence, self._split_confidences.get(node.id), *(child.confidence for child in children)]
        measured = [part for part in parts if part is not None]
        mean = sum(measured) / len(parts) if len(measured) == len(parts) else None
        used = [answered[number] for number in _used_numbers(reply, answered)]
        return _Candidate(
            "children",
            reply,
            mean,
            frozenset[int]().union(*(candidate.steps for candidate in used)),
            frozenset[str]().union(*(candidate.sources for candidate in used)),
        )

    def _ask(
        self, skill: Skill[Any, Any], request: BaseModel, place: str, span: UUID
    ) -> Generator[Move, Any, tuple[ReasonedReply, float | None]]:
        """The reply to a call and the confidence in its reasons, or the reply that most samples agree on."""
        if self._measure == AGREEMENT_MEASURE:
            results = yield from self._sample(skill, request, place, span, range(AGREEMENT_SAMPLES))
            reply, count = most_frequent_reply([result.reply or _UNKNOWN for result in results])
            return reply, log(count / AGREEMENT_SAMPLES)
        self._expected_calls += 1
        scored = replace(skill, scored_field="reasons")
        result: SkillResult[ReasonedReply] = yield SkillCall(scored, request, place, span)
        if result.error is not None:
            self._failures.append(result.error)
        return result.reply or _UNKNOWN, result.logprobs[0] if result.logprobs else None

    def _names_unknown(self, node: TreeNode) -> bool:
        return any(self._chosen[number].reply.unknown for number in node.references)

    def _fill(self, node: TreeNode) -> str:
        """The text of a node with the answers that it names; one that is unknown stays a reference."""
        if node.id not in self._filled:
            known = [number for number in node.references if not self._chosen[number].reply.unknown]
            referred = self._state({number: self._chosen[number] for number in known})
            self._filled[node.id] = fill_numbers(node.question, referred, MAX_FILLED_ANSWERS)
        return self._filled[node.id]

    def _state(self, answered: Mapping[int, _Candidate]) -> list[ExcavatedFact]:
        """Answered nodes as facts."""
        return [
            ExcavatedFact(
                number=number,
                question=self._nodes[number].question,
                fact=f"{self._fill(self._nodes[number])} {candidate.reply}.",
                answers=candidate.reply.answers,
                unknown=candidate.reply.unknown,
            )
            for number, candidate in answered.items()
        ]

    def _conclude(self, root: _Candidate) -> FinalAnswer:
        if root.reply.unknown and self._failures:
            raise NoUsableReply(f"The model gave no usable reply: {self._failures[-1]}")
        if root.reply.unknown:
            raise QuestionRefused(
                f"No node of the tree leads to an answer to: {self._task.question}", self._expected_calls
            )
        conclusion = conclude(root.reply.answers, root.steps, root.sources, root.reply.reasons)
        unmeasured = sum(not entry.reply.unknown and entry.confidence is None for entry in self._chosen.values())
        details = conclusion.details | {
            "confidence": root.confidence,
            "confidence_measure": self._measure,
            **({"unmeasured_nodes": unmeasured} if unmeasured else {}),
            **({"closed_book": "left out, since own=never"} if self._options.own == "never" else {}),
        }
        return FinalAnswer(conclusion.answers, details=details, expected_model_calls=self._expected_calls)


def _measured(candidate: _Candidate) -> float:
    """The confidence in an answer; less than any other if it was not measured."""
    return -inf if candidate.confidence is None else candidate.confidence


def _locate_splits(nodes: Mapping[int, TreeNode]) -> dict[tuple[int, ...], TreeNode]:
    """The nodes with children by their place: the positions among the children on the way from the root."""
    splits: dict[tuple[int, ...], TreeNode] = {}
    queue: list[tuple[tuple[int, ...], TreeNode]] = [((), nodes[0])]
    for place, node in queue:
        if node.children:
            splits[place] = node
        queue += [((*place, position), nodes[child]) for position, child in enumerate(node.children)]
    return splits


def _used_numbers(reply: ReasonedReply, answered: Mapping[int, _Candidate]) -> list[int]:
    """The nodes that a conclusion names; if it names none, all that have an answer."""
    named = reply.used if isinstance(reply, ConcludeReply) else []
    return named or [number for number, candidate in answered.items() if not candidate.reply.unknown]
