"""Gold replies to skills: the gold reasoning of a generated question behind the skills of a reasoner, without a model.

    responder = OracleResponder(GoldReasoning(world, record))

An oracle answers what it is asked, from the facts of the universe, whatever was retrieved: it tests a reasoner's
machinery. It answers about the things it is given, not about those of the gold path, so that a wrong earlier answer
leads to wrong later ones.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

from pydantic import BaseModel

from showhow.fiction.questions.decomposition import classify_structure
from showhow.fiction.questions.expressions import Compare, Judge, Most, Same
from showhow.fiction.questions.reasoning import DIRECT_REASONING, RELATE, SEARCH, ReasoningNode
from showhow.fiction.universe.universe import SOURCES
from showhow.oracles.baselines import BaselineOracle
from showhow.oracles.fact_finder import FactFinder, RetrievedFacts
from showhow.oracles.graph_walks import GRAPH_WALK_REPLIES
from showhow.oracles.reasoning import (
    GoldOperation,
    GoldReasoning,
    GoldTriples,
    UnknownOperation,
    last_leaf,
    list_property_ids,
)
from showhow.reasoners.atomr.skills import (
    AggregateRequest,
    OperateRequest,
    PlanArgument,
    PlanNode,
    PlanReply,
    PlanRequest,
)
from showhow.reasoners.baselines.skills import SelfAskRequest
from showhow.reasoners.geek.skills import (
    ConcludeReply,
    DecomposeReply,
    DecomposeRequest,
    ExcavatedFact,
    ExtractRequest,
    FactReply,
    NeedsRetrievalReply,
    NextActionReply,
    PlannedLane,
    PlannedStep,
    StateRequest,
    SubquestionRequest,
    list_references,
)
from showhow.reasoners.pdrr.skills import (
    AnswerTriplesRequest,
    BestChainReply,
    BestChainRequest,
    ChosenFact,
    ChosenRelation,
    CompleteRequest,
    PdrrQuestion,
    PruneTriplesReply,
    PruneTriplesRequest,
    RelationsReply,
    RelationsRequest,
    StructureReply,
    TriplesReply,
    TriplesRequest,
)
from showhow.reasoners.pdrr.triples import is_unknown, schedule_triples
from showhow.reasoners.skills.set_operations import OperationUndefined, combine_answers
from showhow.reasoners.skills.skill import SkillAttempt, SkillCall, SkillReply
from showhow.reasoners.skills.values import (
    AnswersReply,
    AnswerValue,
    ReasonedReply,
    SourcePassage,
    conclude,
    format_values,
)
from showhow.reasoners.sources import PassageQuestion, SelectSourcesReply, SelectSourcesRequest


class OracleResponder(BaselineOracle):
    """Replies with the gold reasoning of one question; names the passages that state it, as far as they do.

    Its replies let a run go on whatever was retrieved; `conclude_from_retrieved` answers from that alone.
    """

    name = "oracle"

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:  # noqa: ARG002 - it never errs
        """Reply to the call; KeyError for a skill that has no gold reasoning."""
        if call.skill.name in GRAPH_WALK_REPLIES:
            value = GRAPH_WALK_REPLIES[call.skill.name](self._gold, call.request)
        else:
            value = _REPLIES[call.skill.name](self, call.request)
            if not isinstance(value, call.skill.reply_type):
                # Gold replies quote nothing, so those of skills that may quote are answers like all others.
                value = call.skill.reply_type.model_validate(value.model_dump())
            if hasattr(call.request, "passages"):
                value = self._cite(value, self._retrieved.add(call.request.passages, self.list_asked(call.request)))
        return SkillReply(value.model_dump_json(exclude_none=True), value)

    def _cite(self, reply: BaseModel, stating: list[str]) -> BaseModel:
        """The reply with the passages that state its facts, as far as they do."""
        part = next((name for name in ("intermediate", "final") if getattr(reply, name, None) is not None), None)
        if part is not None:
            return reply.model_copy(update={part: self._cite(getattr(reply, part), stating)})
        if not hasattr(reply, "support") or reply.support or getattr(reply, "unknown", False):
            return reply
        return reply.model_copy(update={"support": stating})

    def conclude_from_retrieved(self) -> dict[str, str | None]:
        """The `answer` that follows from what the run retrieved alone, and what that `lacks`; empty if it had no use.

        Walks along facts of the graph are answered from these facts anyway.
        """
        if self._retrieved.is_unused:
            return {}
        answers, lacks = self._retrieved.conclude()
        text = None if answers is None else conclude(answers, (), {"text"}).answers.final_answer
        return {"answer": text, "lacks": lacks}

    @cached_property
    def facts(self) -> FactFinder:
        """Finds the passages that state facts."""
        return FactFinder(self._gold)

    @cached_property
    def _retrieved(self) -> RetrievedFacts:
        return RetrievedFacts(self._gold, self.facts)

    def list_asked(self, request: Any) -> list[tuple[GoldOperation, list[AnswerValue]]]:
        """The operations whose facts a reply to the request rests on, each with the things that it is about."""
        try:
            if isinstance(request, OperateRequest | CompleteRequest | ExtractRequest):
                return [self.find_operation(request)]
            if isinstance(request, SelfAskRequest) and request.pending is not None:
                return [self.find_follow_up(request)]
        except UnknownOperation:
            return []
        if isinstance(request, PassageQuestion) and (leaf := self.find_filled_leaf(request.question)):
            return self.list_operations(leaf)
        return self.list_operations()

    def plan(self, _request: PlanRequest) -> PlanReply:
        """The gold tree."""
        return PlanReply(nodes=[_encode_node(node, self._gold) for node in self._gold.numbers])

    def select_sources(self, request: SelectSourcesRequest) -> SelectSourcesReply:
        """The fewest sources that state the gold facts of the operation; all of them for an unknown one."""
        names = [source.name for source in request.sources]
        leaf = self._find_operation_leaf(request)
        if leaf is None:
            return SelectSourcesReply(sources=names)
        operation = self._gold.operation_of(leaf)
        heads = self._values_of(leaf.inputs[0]) if leaf.inputs else []
        complete = self._gold.apply(operation, heads)
        for size in range(1, len(names)):
            for chosen in combinations(names, size):
                known = self._gold.world.things_known_to(sum(SOURCES[name] for name in chosen)).universe
                if self._gold.apply(operation, heads, known) == complete:
                    return SelectSourcesReply(sources=list(chosen))
        return SelectSourcesReply(sources=names)

    def _find_operation_leaf(self, request: SelectSourcesRequest) -> ReasoningNode | None:
        """The operation of the gold tree that is asked, with its references described; None for another one."""
        numbers = self._gold.numbers
        for leaf in self._gold.root.leaves():
            question = self._gold.question_of(leaf)
            for node in leaf.inputs:
                question = question.replace(f"[{numbers[node]}]", f"({self._gold.question_of(node)})")
            if leaf.operator == request.op and question == request.question:
                return leaf
        return None

    def operate(self, request: OperateRequest) -> AnswersReply:
        """The answers about the things that are given, resting on the passages that name them, or else the first."""
        reply = self._apply(request)
        names = {name for answer in reply.answers for name in (answer.text, answer.entity) if name}
        naming = [shown.id for shown in request.passages if any(name in shown.text for name in names)]
        return reply.model_copy(update={"support": naming or [shown.id for shown in request.passages[:1]]})

    def _apply(self, request: OperateRequest | CompleteRequest) -> AnswersReply:
        try:
            operation, heads = self.find_operation(request)
            return AnswersReply(answers=self._gold.apply(operation, heads))
        except UnknownOperation:
            return AnswersReply(answers=[], unknown=True)

    def find_operation(
        self, request: OperateRequest | CompleteRequest | ExtractRequest
    ) -> tuple[GoldOperation, list[AnswerValue]]:
        """The operation that is asked for and the things that it is about; UnknownOperation for another one."""
        if isinstance(request, CompleteRequest):
            relation, from_subject = request.triple.relation, request.from_subject
            return self._gold.find_completion(relation, request.known, from_subject=from_subject)
        if isinstance(request, OperateRequest):
            first = request.args[0]
            heads = [AnswerValue(text=first.text)] if request.op == RELATE and first.text else first.values or []
            return self._gold.find_operation(request.op, request.args), heads
        leaf, given = self._match_subquestion(request.planned, request.references, request.state)
        if leaf is None or leaf.operator == DIRECT_REASONING:
            raise UnknownOperation(request.planned)
        return self._gold.operation_of(leaf), self._inputs_of(leaf, given)

    def list_operations(self, node: ReasoningNode | None = None) -> list[tuple[GoldOperation, list[AnswerValue]]]:
        """The operations of the gold reasoning, or of one node, that need a source, with what they are about."""
        leaves = [leaf for leaf in (node or self._gold.root).leaves() if leaf.needs_retrieval]
        return [(self._gold.operation_of(leaf), self._inputs_of(leaf, {})) for leaf in leaves]

    def aggregate(self, request: AggregateRequest) -> AnswersReply:
        """What follows from the answers that are given."""
        if request.how is None:
            # A question of the gold tree has the answers of its last child.
            last = request.answered[-1]
            return AnswersReply(answers=[] if last.unknown else last.answers, unknown=bool(last.unknown))
        try:
            return AnswersReply(answers=combine_answers(request.how, [asked.answers for asked in request.answered]))
        except OperationUndefined:
            return AnswersReply(answers=[], unknown=True)

    def next_action(self, request: StateRequest) -> NextActionReply:
        """Finish when no sub-question remains."""
        remaining = len(self._gold.subquestions) - len(self._match_state(request.state))
        return NextActionReply(finish=not remaining, why=f"{remaining} sub-questions remain.")

    def decompose(self, request: DecomposeRequest) -> DecomposeReply:
        """The sub-questions that remain, with their gold answers as pseudo-answers.

        It begins with the first that can be answered now and begins no other way; none if each of them begins one.
        """
        numbers = self._match_state(request.state)
        remaining = [(leaf, text) for leaf, text in self._gold.subquestions if leaf not in numbers]
        ready = [
            leaf
            for leaf, text in remaining
            if self._referred_leaves(text) <= numbers.keys() and self._renumber(text, numbers) not in request.others
        ]
        steps = []
        planned = dict(numbers)
        for leaf, text in sorted(remaining, key=lambda entry: entry[0] is not ready[0]) if ready else ():
            planned[leaf] = len(planned) + 1
            steps.append(
                PlannedStep(
                    question=self._renumber(text, planned),
                    pseudo=format_values(self._values_of(leaf)),
                    names=self._list_names(leaf),
                )
            )
        return DecomposeReply(branches=[PlannedLane(steps=steps)] if steps else [])

    def _list_names(self, leaf: ReasoningNode) -> list[str]:
        """The names in the sub-question of a leaf: what it starts from, unless that is an earlier answer."""
        starts = [node for node in leaf.inputs if node.operator == SEARCH and not node.relation]
        return [value.text for node in starts for value in self._values_of(node)]

    def needs_retrieval(self, request: SubquestionRequest) -> NeedsRetrievalReply:
        """Whether the operation of the sub-question reads a source; true for an unknown one."""
        leaf, _ = self._find_leaf(request.planned, self._match_state(request.state))
        return NeedsRetrievalReply(retrieve=leaf is None or leaf.needs_retrieval)

    def extract(self, request: ExtractRequest) -> FactReply:
        """The fact about the things that the sub-question refers to."""
        reply = self._answer_subquestion(request.planned, request.references, request.state)
        return reply.model_copy(update={"support": _support(reply, request.passages)})

    def self_answer(self, request: SubquestionRequest) -> FactReply:
        """What follows from the answers that the sub-question refers to."""
        return self._answer_subquestion(request.planned, request.references, request.state)

    def conclude(self, request: StateRequest) -> ConcludeReply:
        """The answer that follows from the facts; those that are missing are taken from the gold reasoning.

        Of the questions of a tree, and of rationales, none may be missing.
        """
        node = self.find_question(request.question)
        if node is None or self.lacks_facts(node, request.state):
            return ConcludeReply(reasons="It follows from other facts.", answers=[], unknown=True)
        try:
            answers = self._evaluate_all(self._given_answers(node, request.state))[last_leaf(node)]
        except UnknownOperation as error:
            return ConcludeReply(reasons=f"A fact does not fit: {error}.", answers=[], unknown=True)
        return ConcludeReply(
            reasons="It follows from the facts.", answers=answers, used=[fact.number for fact in request.state]
        )

    def follows(self, request: StateRequest) -> bool:
        """Whether the facts are all that the question needs, so that nothing is taken from the gold reasoning."""
        node = self.find_question(request.question)
        # Rationales are complete, or there is no conclusion.
        if node is None or any(not fact.question for fact in request.state):
            return True
        given = self._given_answers(node, request.state)
        needed = [last_leaf(node)]
        for leaf in needed:
            needed += [] if leaf in given else [last_leaf(other) for other in leaf.inputs]
        return not any(leaf.needs_retrieval and leaf not in given for leaf in needed)

    def _given_answers(
        self, node: ReasoningNode, state: Sequence[ExcavatedFact]
    ) -> dict[ReasoningNode, list[AnswerValue]]:
        """The answers that facts have to operations of a question."""
        facts = {fact.number: fact.answers for fact in state if not fact.unknown}
        numbers = self._match_state(state) if node is self._gold.root else {}
        # Sub-questions refer to facts by number, questions of a tree to other questions: one text may be of both kinds.
        others = [fact for fact in state if fact.number not in numbers.values()]
        numbers |= {last_leaf(child): number for child, number in self.match_children(node, others).items()}
        return {leaf: facts[number] for leaf, number in numbers.items() if number in facts}

    def structure(self, _request: PdrrQuestion) -> StructureReply:
        """The gold structure."""
        return StructureReply.model_validate({"structure": classify_structure(self._gold.expression)})

    def triples(self, _request: TriplesRequest) -> TriplesReply:
        """The gold decomposition, with what it is that the question asks for."""
        triples, expression = self._gold.triples, self._gold.expression
        unknowns = [unknown for triple in triples for unknown in triple.unknowns]
        answer = unknowns[-1] if unknowns else triples[-1].object
        if isinstance(expression, Same | Judge):
            answer = "yes or no"
        elif isinstance(expression, Compare):
            # The last triples of both sides tell the dates of those who are compared.
            last = triples[-1].relation
            dated = [triple.subject for triple in triples if triple.relation == last and is_unknown(triple.object)]
            answer = " or ".join(sorted({dated[0], dated[-1]}, key=lambda end: not is_unknown(end)))
        elif isinstance(expression, Most):
            answer = triples[-1].subject
        return TriplesReply(triples=list(triples), answer=answer)

    def relations(self, request: RelationsRequest) -> RelationsReply:
        """The relations that state the triple, among those that are offered."""
        expected = list_property_ids(request.triple.relation)
        direction = "head" if request.known_is == "subject" else "tail"
        chosen = [
            ChosenRelation(id=relation.id, direction=relation.direction)
            for relation in request.relations
            if relation.id in expected and relation.direction == direction
        ]
        return RelationsReply(relations=chosen[: request.keep])

    def prune_triples(self, request: PruneTriplesRequest) -> PruneTriplesReply:
        """The first facts that lead on to the answer, else, with a lower score, those that state the triple."""
        facts, is_leading = self._triples.select_facts(request)
        score = 1.0 if is_leading else 0.5
        chosen = [ChosenFact(number=fact.number, score=score) for fact in facts]
        return PruneTriplesReply(facts=chosen[: request.keep])

    def best_chain(self, request: BestChainRequest) -> BestChainReply:
        """The first chain whose facts all lead on and complete every triple; else the first one."""
        triples = [entry.triple for entry in schedule_triples(request.triples)]
        ending = [
            chain.number
            for chain in request.chains
            if len(chain.facts) == len(triples)
            and all(
                self._triples.leads_on(triple, fact.known, fact.other)
                for triple, fact in zip(triples, chain.facts, strict=True)
            )
        ]
        number = (*ending, request.chains[0].number)[0]
        return BestChainReply(reasons=f"{len(ending)} chains end in an answer.", chain=number)

    def complete(self, request: CompleteRequest) -> AnswersReply:
        """The values of the other end about those that are given."""
        reply = self._apply(request)
        return reply.model_copy(update={"support": _support(reply, request.passages)})

    def answer_triples(self, request: AnswerTriplesRequest) -> ReasonedReply:
        """What follows from the values that were joined; unknown if they are too few, or if what was followed is wrong.

        Where facts were pruned, the answers are those that follow from the facts that were kept.
        """
        triples = [completed.triple for completed in request.triples]
        wrong = [
            relation.id
            for completed in request.triples
            for relation in completed.relations
            if relation.id not in list_property_ids(completed.triple.relation)
        ]
        if triples != list(self._gold.triples) or wrong:
            return ReasonedReply(reasons="Other triples than the gold ones.", answers=[], unknown=True)
        if all(completed.kept is None for completed in request.triples):
            answers = self._triples.answer_joined(
                request.values,
                lambda operation, heads: self.facts.find_stated(operation, heads, request.passages).answers,
            )
            if answers is None:
                return ReasonedReply(reasons="Too few values were joined.", answers=[], unknown=True)
            reasons = "The triples state it." if answers else "The triples have no answer."
            shown = {passage.id for passage in request.passages}
            cited = [id_ for completed in request.triples for id_ in completed.facts if id_ in shown]
            return ReasonedReply(reasons=reasons, answers=answers, support=list(dict.fromkeys(cited)))
        answers = self._triples.answer([completed.kept or () for completed in request.triples])
        if answers is None:
            return ReasonedReply(reasons="A triple has no fact that is right.", answers=[], unknown=True)
        facts = {id_: None for completed in request.triples for fact in completed.kept or () for id_ in fact.support}
        shown = {passage.id for passage in request.passages}
        return ReasonedReply(
            reasons="The kept facts state it.", answers=answers, support=[id_ for id_ in facts if id_ in shown]
        )

    @cached_property
    def _triples(self) -> GoldTriples:
        return GoldTriples(self._gold)

    def _match_state(self, state: Sequence[ExcavatedFact]) -> dict[ReasoningNode, int]:
        """The operations that the facts answer, with the numbers of the facts, in whatever order they were asked."""
        numbers: dict[ReasoningNode, int] = {}
        for fact in state:
            leaf, _ = self._find_leaf(fact.question, numbers)
            if leaf is not None:
                numbers[leaf] = fact.number
        return numbers

    def _find_leaf(self, planned: str, numbers: Mapping[ReasoningNode, int]) -> tuple[ReasoningNode | None, str]:
        """The operation of a sub-question that refers to facts with these numbers, and its gold text."""
        for leaf, text in self._gold.subquestions:
            if leaf not in numbers and self._renumber(text, numbers) == planned:
                return leaf, text
        return None, ""

    def _referred_leaves(self, text: str) -> set[ReasoningNode]:
        return {self._gold.subquestions[number - 1][0] for number in list_references(text)}

    def _renumber(self, text: str, numbers: Mapping[ReasoningNode, int]) -> str:
        """A gold text whose references are the numbers of facts; one without a number refers to none."""
        leaves = [leaf for leaf, _ in self._gold.subquestions]
        return re.sub(r"#(\d{1,9})", lambda match: f"#{numbers.get(leaves[int(match[1]) - 1], 0)}", text)

    def _answer_subquestion(
        self, planned: str, references: Mapping[int, Sequence[AnswerValue]], state: Sequence[ExcavatedFact]
    ) -> FactReply:
        leaf, given = self._match_subquestion(planned, references, state)
        if leaf is None:
            return FactReply(answers=[], unknown=True)
        try:
            answers = self._evaluate(leaf, given)
        except UnknownOperation:
            return FactReply(answers=[], unknown=True)
        return FactReply(fact=f"{planned} {format_values(answers)}.", answers=answers)

    def _match_subquestion(
        self, planned: str, references: Mapping[int, Sequence[AnswerValue]], state: Sequence[ExcavatedFact]
    ) -> tuple[ReasoningNode | None, dict[ReasoningNode, list[AnswerValue]]]:
        """The operation of a sub-question, and the answers that its references stand for."""
        numbers = self._match_state(state)
        leaf, _ = self._find_leaf(planned, numbers)
        leaf_by_number = {number: answered for answered, number in numbers.items()}
        return leaf, {
            leaf_by_number[number]: list(values) for number, values in references.items() if number in leaf_by_number
        }


def _support(reply: AnswersReply, passages: Sequence[SourcePassage]) -> list[str]:
    """What a gold reply names as its support: all passages, since it says nothing of what they state."""
    return [passage.id for passage in passages] if reply.answers else []


def _encode_node(node: ReasoningNode, gold: GoldReasoning) -> PlanNode:
    numbers, question = gold.numbers, gold.question_of(node)
    if node.children:
        children = [numbers[child] for child in node.children]
        return PlanNode(id=numbers[node], question=question, children=children, from_last=True)
    arguments = [
        PlanArgument(text=part) if isinstance(part, str) else PlanArgument(ref=numbers[part]) for part in node.arguments
    ]
    how = node.relation if node.operator == DIRECT_REASONING else None
    return PlanNode.model_validate(
        {"id": numbers[node], "question": question, "op": node.operator, "args": arguments, "how": how}
    )


_REPLIES: dict[str, Callable[[OracleResponder, Any], BaseModel]] = {
    "plan": OracleResponder.plan,
    "select_sources": OracleResponder.select_sources,
    "operate": OracleResponder.operate,
    "aggregate": OracleResponder.aggregate,
    "direct_rag": OracleResponder.answer_question,
    "direct_answer": OracleResponder.answer_question,
    "structure": OracleResponder.structure,
    "triples": OracleResponder.triples,
    "relations": OracleResponder.relations,
    "prune_triples": OracleResponder.prune_triples,
    "best_chain": OracleResponder.best_chain,
    "complete": OracleResponder.complete,
    "answer_triples": OracleResponder.answer_triples,
    "next_action": OracleResponder.next_action,
    "decompose": OracleResponder.decompose,
    "needs_retrieval": OracleResponder.needs_retrieval,
    "extract": OracleResponder.extract,
    "self_answer": OracleResponder.self_answer,
    "conclude": OracleResponder.conclude,
    "cot_answer": OracleResponder.reason,
    "cot_rag": OracleResponder.reason,
    "in_context": OracleResponder.reason,
    "in_context_plain": OracleResponder.reason,
    "reason_sentence": OracleResponder.reason_sentence,
    "self_ask": OracleResponder.self_ask,
    "question_tree": OracleResponder.question_tree,
    "draft_rationales": OracleResponder.draft_rationales,
    "next_rationale": OracleResponder.next_rationale,
    "correct_rationale": OracleResponder.correct_rationale,
}
