"""The AtomR reasoner: plans a tree of operations and executes each as soon as what it refers to is answered.

Where what was retrieved makes the answers to an operation likely, those that refer to it alone are carried out at the
same time, and anew if the answers are others.
"""

import re
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from showhow.reasoners.atomr.options import AtomROptions
from showhow.reasoners.atomr.skills import (
    AGGREGATE,
    OPERATE,
    PLAN,
    AggregateRequest,
    AnsweredQuestion,
    OperateRequest,
    Operator,
    PlanArgument,
    PlanNode,
    PlanReply,
    PlanRequest,
    list_dependencies,
    list_references,
    open_node_spans,
    plan_single_search,
)
from showhow.reasoners.base import (
    Action,
    Branch,
    CallBudget,
    Fan,
    FinalAnswer,
    Move,
    NoUsableReply,
    Parallel,
    QuestionRefused,
    ReasonerError,
    ReasonerGenerator,
    StepCompletion,
    Task,
    ask_skill,
    fit_to_budget,
)
from showhow.reasoners.retrieval import Retriever
from showhow.reasoners.skills.set_operations import OperationUndefined, combine_answers
from showhow.reasoners.skills.skill import SkillCall, SkillResult, list_shots
from showhow.reasoners.skills.values import (
    OWN_KNOWLEDGE,
    AnswersReply,
    AnswerValue,
    OperandValue,
    QuotingReply,
    SourcePassage,
    conclude,
    distinct_passages,
    distinct_values,
    fill_references,
    format_values,
)
from showhow.reasoners.sources import (
    DIRECT_ANSWER,
    DIRECT_RAG,
    WIDER_RETRIEVALS,
    BareQuestion,
    PassageQuestion,
    RetrievalQuery,
    SelectSourcesRequest,
    choose_sources,
    list_sources,
)


@dataclass(slots=True)
class _NodeResult:
    """The answers of a node, and what they rest on."""

    values: list[AnswerValue] = field(default_factory=list)
    base: int | None = None
    """The node that `AnswerValue.of` refers to."""
    unknown: bool = False
    how: str = "operator"
    """operator, wider search, code, model, fallback, own knowledge, or nothing to ask."""
    problem: str | None = None
    """Why it is unknown, if no reply to its last request was usable."""
    steps: set[int] = field(default_factory=set)
    """The positions of the steps that state the answers."""
    sources: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Operation:
    """An operation on these operands, what was retrieved for it, and the reply."""

    place: str
    operands: list[OperandValue]
    passages: Sequence[SourcePassage]
    reply: AnswersReply | None


NodeGenerator = Generator[Move, Any, None]


@dataclass(frozen=True, slots=True)
class AtomR:
    """The reasoner; one instance can solve many tasks at the same time."""

    options: AtomROptions = field(default_factory=AtomROptions)
    name: str = field(default="atomr", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Plan, execute the tree, and answer with the answers of its root."""
        sources = list_sources(task)
        if not sources:
            raise ReasonerError(
                "AtomR needs the tools of a source: wikisearch and read, websearch and read, or getWikiDataID, "
                "generateQuery and runQuery. Offer them in the project."
            )
        request = PlanRequest(question=task.question, sources=sources)
        planned: SkillResult[PlanReply] = yield SkillCall(
            PLAN, request, "plan", shots=list_shots(PLAN, task.demonstrations)
        )
        if planned.reply is None:
            raise ReasonerError(f"There is no plan: {planned.error}")
        return (yield from _TreeRun(self.options, task, sources, planned.reply).run())


class _TreeRun:
    """Executes the tree of one question."""

    def __init__(self, options: AtomROptions, task: Task, sources: Sequence[str], plan: PlanReply) -> None:
        self._options = options
        self._task = task
        self._sources = sources
        self._nodes = plan.by_id
        self._retriever: Retriever
        self._spans: dict[int, UUID] = {}
        self._results: dict[int, _NodeResult] = {}
        self._filled_questions: dict[int, str] = {}
        self._ahead: dict[int, _Operation] = {}
        """Operations that were carried out before what they refer to was answered, by node."""
        self._chosen_sources: dict[int, Sequence[str]]
        self._expected_calls = 1
        self._chooses = True

    def run(self) -> ReasonerGenerator:
        """Execute all nodes and give the answer of the root."""
        choices = yield from self._fit_to_budget()
        self._spans = yield from open_node_spans(self._nodes)
        operations = self._operations
        self._chosen_sources = {node.id: self._sources for node in operations[choices:]}
        self._chooses = choices == len(operations)
        if self._options.source_time == "at once":
            # The sources of all operations are chosen at the same time, before what they refer to is known.
            yield Parallel([Branch(str(node.id), self._choose_sources(node)) for node in operations[:choices]])
        yield Parallel(
            [
                Branch(str(node.id), self._solve_node(node), frozenset(map(str, list_dependencies(node))))
                for node in self._nodes.values()
            ]
        )
        return self._conclude(self._results[0])

    @property
    def _operations(self) -> list[PlanNode]:
        return [node for node in self._nodes.values() if node.op is not None and node.op != "DR"]

    def _fit_to_budget(self) -> Generator[Move, Any, int]:
        """Cut the plan to what the run may still spend; returns how many operations choose their sources."""
        operations = len(self._operations)
        concluding = len(self._nodes) - operations
        searches = operations * len(self._sources)
        passages = yield from fit_to_budget(
            self._task,
            Fan("passages a search", self._options.passages, CallBudget(0, searches), CallBudget(0, searches)),
            "budget/passages",
            None,
        )
        self._retriever = Retriever(self._task, passages, self._options.most_things or sys.maxsize)
        tree = Fan("operations", operations, CallBudget(1, 2 * len(self._sources)), CallBudget(concluding, 0), least=0)
        kept = yield from fit_to_budget(self._task, tree, "budget/operations", None)
        if kept < operations:
            # Part of a tree has no answer; one search for the question has.
            self._nodes = plan_single_search(self._task.question).by_id
            return 0
        choices = Fan(
            "choices of sources", operations, CallBudget(1, 0), CallBudget(operations + concluding, 0), least=0
        )
        return (
            operations
            if len(self._sources) < 2
            else (yield from fit_to_budget(self._task, choices, "budget/sources", None))
        )

    def _solve_node(self, node: PlanNode) -> NodeGenerator:
        question = self._filled_questions[node.id] = self._fill_question(node)
        result = yield from self._answer_node(node, question)
        if not result.unknown:
            for number in list_dependencies(node):
                result.steps |= self._results[number].steps
                result.sources |= self._results[number].sources
        self._results[node.id] = result
        yield StepCompletion(
            self._spans[node.id],
            "unknown" if result.unknown else format_values(result.values),
            {
                "question": question,
                "op": node.op,
                "how": result.how,
                "answers": [value.model_dump(exclude_none=True) for value in result.values],
                "unknown": result.unknown,
                "cited": sorted(result.steps),
            },
        )

    def _fill_question(self, node: PlanNode) -> str:
        """The question with the answers that it refers to, and the questions of those that are unknown."""
        question, pending = node.question, [*list_dependencies(node)]
        for number in pending:
            pending += list_dependencies(self._nodes[number]) - {*pending}
            result = self._results[number]
            text = f"({self._filled_questions[number]})" if result.unknown else format_values(result.values)
            question = question.replace(f"[{number}]", text)
        return question

    def _choose_sources(self, node: PlanNode) -> Generator[Move, Any, None]:
        arguments = [OperandValue(text=argument.text or self._describe(argument.ref)) for argument in node.args]
        question = node.question
        for number in node.references:
            question = question.replace(f"[{number}]", f"({self._describe(number)})")
        yield from self._choose_for(node, question, arguments)

    def _choose_for(
        self, node: PlanNode, question: str, arguments: list[OperandValue], *, is_expected: bool = True
    ) -> Generator[Move, Any, Sequence[str]]:
        unsure = "all" if self._options.source_rule == "unsure: all" else None
        request = SelectSourcesRequest.model_validate(
            {"question": question, "op": node.op, "args": arguments, "unsure": unsure}
        )
        place = f"{node.id}/select" if is_expected else f"{node.id}/again/select"
        sources, calls = yield from choose_sources(self._sources, request, place, self._spans[node.id])
        if is_expected:
            self._chosen_sources[node.id] = sources
            self._expected_calls += calls
        return sources

    def _describe(self, number: int | None) -> str:
        """The question of a node that is not answered yet."""
        return self._nodes[number].question if number is not None else ""

    def _answer_node(self, node: PlanNode, question: str) -> Generator[Move, Any, _NodeResult]:
        if node.op is None or node.op == "DR":
            return (yield from self._combine(node, question))
        return (yield from self._operate(node, node.op, question))

    def _operate(self, node: PlanNode, op: Operator, question: str) -> Generator[Move, Any, _NodeResult]:
        if any(self._results[number].unknown for number in node.references):
            return (yield from self._answer_otherwise(node, question, ()))
        operands = [self._to_operand(argument) for argument in node.args]
        base = node.references[0] if node.references else None
        if base is not None and not self._results[base].values:
            return _NodeResult([], base, how="nothing to ask")
        if node.id not in self._chosen_sources:
            yield from self._choose_for(node, question, operands)
        self._expected_calls += 1
        operation = self._ahead.get(node.id)
        if operation is None or [part.keys for part in operation.operands] != [part.keys for part in operands]:
            operation = yield from self._carry_out(node, op, question, operands)
        how = "operator"
        if self._is_unknown(operation.reply) and self._options.second_look == "wider":
            operation, how = (yield from self._look_again(node, op, question, operation)), "wider search"
        if operation.reply is None or self._is_unknown(operation.reply):
            return (yield from self._answer_otherwise(node, question, operation.passages))
        return (yield from self._to_result(node, operation.reply, operation, base, how))

    def _is_unknown(self, reply: AnswersReply | None) -> bool:
        return reply is None or reply.unknown or (self._options.empty_list == "unknown" and not reply.answers)

    def _to_result(
        self, node: PlanNode, reply: AnswersReply, operation: _Operation, base: int | None, how: str
    ) -> Generator[Move, Any, _NodeResult]:
        """The answers with what they rest on; ids that the model made up are dropped."""
        place, span = f"{operation.place}/ids", self._spans[node.id]
        values = yield from self._retriever.drop_unknown_ids(reply.answers, place, span)
        supporting = [passage for passage in operation.passages if passage.id in reply.support]
        is_own = bool(reply.answers) and not supporting
        return _NodeResult(
            values,
            base,
            how="own knowledge" if is_own else how,
            steps={passage.step for passage in supporting},
            sources={OWN_KNOWLEDGE} if is_own else {passage.source for passage in supporting},
        )

    def _look_again(
        self, node: PlanNode, op: Operator, question: str, operation: _Operation
    ) -> Generator[Move, Any, _Operation]:
        """Carry out an operation anew on what a wider retrieval adds, if the budget has room for it."""
        place, span = f"{operation.place}/again", self._spans[node.id]
        open_nodes = sum(number not in self._results for number in self._nodes)
        reserve = CallBudget(open_nodes, 2 * open_nodes * len(self._sources))
        look = Fan("wider retrievals", 1, CallBudget(1, WIDER_RETRIEVALS * len(self._sources)), reserve, least=0)
        if not (yield from fit_to_budget(self._task, look, f"{place}/budget", span)):
            return operation
        query = _to_query(op, question, operation.operands)
        wider = yield from self._retriever.retrieve_wider(self._sources, query, place, span)
        passages = distinct_passages([*operation.passages, *wider])
        request = self._to_request(op, question, operation.operands, passages)
        again: SkillResult[QuotingReply] = yield SkillCall(OPERATE, request, f"{place}/operate", span)
        return _Operation(place, operation.operands, passages, again.reply)

    def _to_request(
        self, op: Operator, question: str, operands: list[OperandValue], passages: list[SourcePassage]
    ) -> OperateRequest:
        separate = True if self._options.operator_prompts == "three" else None
        return OperateRequest(
            op=op, question=question, args=operands, passages=passages, own=self._options.own_flag, separate=separate
        )

    def _filter_by_overlap(
        self, node: PlanNode, operands: list[OperandValue], query: RetrievalQuery, place: str
    ) -> Generator[Move, Any, tuple[list[OperandValue], list[SourcePassage]]]:
        """Retrieve for each thing apart, and drop those whose passages have too few words of what is asked of them."""
        span, sources = self._spans[node.id], self._chosen_sources[node.id]
        retrieved = yield from self._retriever.retrieve_each(sources, query, place, span)
        kept = [
            (head, passages)
            for head, passages in retrieved
            if measure_overlap(f"{head.text} {query.words}", passages) >= self._options.overlap
        ]
        if len(kept) < len(retrieved):
            dropped = [head.text for head, _ in retrieved if head not in [other for other, _ in kept]]
            yield Action(
                f"I drop {len(dropped)} of {len(retrieved)} things, whose passages share too few words with what is "
                "asked of them.",
                parent=span,
                node=f"{place}/overlap",
                data={"things": len(retrieved), "dropped": dropped, "overlap": self._options.overlap},
                reuse=True,
            )
        passages = [passage for _, of_head in kept or retrieved for passage in of_head]
        return [OperandValue(values=[head for head, _ in kept]), *operands[1:]], passages

    def _carry_out(
        self, node: PlanNode, op: Operator, question: str, operands: list[OperandValue]
    ) -> Generator[Move, Any, _Operation]:
        """Retrieve, and ask for the answers; at the same time carry out what follows if they are as expected."""
        place = f"{self._ahead[node.id].place}/anew" if node.id in self._ahead else str(node.id)
        query = _to_query(op, question, operands)
        span = self._spans[node.id]
        passages: list[SourcePassage]
        shown = operands
        if op == "Filter" and self._options.overlap and operands[0].values:
            shown, passages = yield from self._filter_by_overlap(node, operands, query, place)
            if not shown[0].values:
                return _Operation(place, operands, passages, None)
        else:
            passages = yield from self._retriever.retrieve(self._chosen_sources[node.id], query, place, span)
        request = self._to_request(op, question, shown, passages)
        may_guess = (
            self._task.may_guess_for(OPERATE.name) and self._options.source_time == "at once" and not query.tails
        )
        likely = self._retriever.guess_answers(query, passages) if may_guess else []
        followers = [follower for follower in self._operations if list_dependencies(follower) == {node.id}]
        results = yield Parallel(
            [
                Branch("operate", ask_skill(SkillCall(OPERATE, request, f"{place}/operate", span))),
                *(Branch(str(follower.id), self._look_ahead(follower, likely)) for follower in followers if likely),
            ]
        )
        return _Operation(place, operands, passages, results[0].reply)

    def _look_ahead(self, node: PlanNode, likely: list[AnswerValue]) -> Generator[Move, Any, None]:
        """Carry out an operation on the likely answers of the only node that it refers to."""
        question = fill_references(node.question, dict.fromkeys(node.references, likely))
        operands = [
            OperandValue(text=fill_references(argument.text or "", dict.fromkeys(node.references, likely)))
            if argument.ref is None
            else OperandValue(values=distinct_values(likely))
            for argument in node.args
        ]
        if node.op is not None:
            self._ahead[node.id] = yield from self._carry_out(node, node.op, question, operands)

    def _combine(self, node: PlanNode, question: str) -> Generator[Move, Any, _NodeResult]:
        """Answer an inner node, or DR, from earlier answers: by code if the plan says how, else by the model."""
        inputs, by_code = node.children or node.references, self._options.combine == "code"
        if by_code and any(self._results[number].unknown for number in inputs):
            return (yield from self._answer_otherwise(node, question, ()))
        if by_code and node.from_last and node.children:
            last = self._results[node.children[-1]]
            return _NodeResult(last.values, last.base, how="code")
        if by_code and node.how is not None:
            try:
                return _NodeResult(combine_answers(node.how, self._collect_operands(node)), how="code")
            except OperationUndefined:
                # The model may understand what the code does not, such as "the 1930s".
                pass
        self._expected_calls += 1
        operands = self._collect_operands(node) if node.how is not None else []
        answered = [
            AnsweredQuestion(
                question=self._nodes[number].question,
                answers=values,
                unknown=self._results[number].unknown or None,
            )
            for number, values in zip(
                inputs, operands or [self._results[number].values for number in inputs], strict=True
            )
        ]
        request = AggregateRequest(question=question, how=node.how, answered=answered, own=self._options.own_flag)
        place, span = f"{node.id}/aggregate", self._spans[node.id]
        aggregated: SkillResult[AnswersReply] = yield SkillCall(AGGREGATE, request, place, span)
        reply = aggregated.reply
        if reply is None or self._is_unknown(reply):
            return (yield from self._answer_otherwise(node, question, ()))
        if reply.support == [OWN_KNOWLEDGE]:
            return _NodeResult(list(reply.answers), how="own knowledge", sources={OWN_KNOWLEDGE})
        base = self._results[inputs[-1]].base if node.from_last else None
        return _NodeResult(list(reply.answers), base, how="model")

    def _answer_otherwise(
        self, node: PlanNode, question: str, passages: Sequence[SourcePassage]
    ) -> Generator[Move, Any, _NodeResult]:
        """Answer by the question as it stands: from the passages, or else new ones, or the model's own knowledge."""
        place, span = str(node.id), self._spans[node.id]
        shown = list(passages)
        if not shown:
            query = RetrievalQuery(question, ())
            sources = self._sources
            if self._options.source_time == "when filled" and self._chooses:
                sources = yield from self._choose_for(node, question, [], is_expected=False)
            shown = yield from self._retriever.retrieve(sources, query, f"{place}/again", span)
        request = PassageQuestion(question=question, passages=shown, own=self._options.own_flag)
        read: SkillResult[AnswersReply] = yield SkillCall(DIRECT_RAG, request, f"{place}/direct", span)
        reply = read.reply
        if reply is not None and not reply.unknown and (reply.support or not reply.answers or request.own):
            base = next((number for number in node.references if not self._results[number].unknown), None)
            operation = _Operation(place, [], shown, reply)
            return (yield from self._to_result(node, reply, operation, base if node.op != "DR" else None, "fallback"))
        if node.id == 0 and self._options.own == "fallback":
            bare = BareQuestion(question=self._task.question)
            own: SkillResult[AnswersReply] = yield SkillCall(DIRECT_ANSWER, bare, f"{place}/own", span)
            if own.reply is not None and not own.reply.unknown:
                return _NodeResult(list(own.reply.answers), how="own knowledge", sources={OWN_KNOWLEDGE})
        return _NodeResult(unknown=True, how="unknown", problem=read.error)

    def _collect_operands(self, node: PlanNode) -> list[list[AnswerValue]]:
        """The answers that DR refers to; those that belong to values of the first are traced back to them."""
        first = node.references[0]
        return [
            self._trace_back(number, first)
            if position and node.how in ("count each", "earliest", "latest")
            else self._results[number].values
            for position, number in enumerate(node.references)
        ]

    def _trace_back(self, number: int, target: int) -> list[AnswerValue]:
        """The answers of a node with the value of the target node that each belongs to."""
        result = self._results[number]
        pairs = [(value, value.of) for value in result.values]
        base = result.base
        while base is not None and base != target:
            between = self._results[base]
            owners: dict[str, list[str | None]] = {}
            for value in between.values:
                owners.setdefault(value.key, []).append(value.of)
            pairs = [(value, owner) for value, of in pairs for owner in owners.get(of or "", ())]
            base = between.base
        return [value.model_copy(update={"of": owner}) for value, owner in pairs]

    def _to_operand(self, argument: PlanArgument) -> OperandValue:
        if argument.ref is None:
            text = argument.text or ""
            answers = {number: self._results[number].values for number in list_references(text)}
            return OperandValue(text=fill_references(text, answers))
        return OperandValue(values=distinct_values(self._results[argument.ref].values))

    def _conclude(self, root: _NodeResult) -> FinalAnswer:
        if root.unknown and root.problem is not None:
            raise NoUsableReply(f"The model gave no usable reply: {root.problem}")
        if root.unknown:
            raise QuestionRefused(f"The sources do not tell the answer to: {self._task.question}", self._expected_calls)
        conclusion = conclude(root.values, root.steps, root.sources)
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=self._expected_calls)


def measure_overlap(query: str, passages: Sequence[SourcePassage]) -> float:
    """The overlap coefficient of the words of a query and those of passages: common ones over the fewer of both."""
    texts = (query, " ".join(f"{passage.title} {passage.text}" for passage in passages))
    asked, stated = (set(re.findall(r"\w+", text.casefold())) for text in texts)
    return len(asked & stated) / min(len(asked), len(stated)) if asked and stated else 0.0


def _to_query(op: Operator, question: str, operands: Sequence[OperandValue]) -> RetrievalQuery:
    first, rest = operands[0], operands[1:]
    tails = [value for operand in rest for value in operand.values or ()]
    words = " ".join([*(operand.text for operand in rest if operand.text), *(tail.text for tail in tails)])
    if first.values is not None:
        return RetrievalQuery(question, first.values, words, tails=tails)
    name = AnswerValue(text=first.text or question)
    return RetrievalQuery(question, [name], words, is_name=op == "Search", tails=tails)
