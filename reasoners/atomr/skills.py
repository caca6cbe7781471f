"""The skills of AtomR: the plan as a tree of operations, the operations, and what follows from their answers.

References in a plan are typed, never text to evaluate.
"""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from showhow.db.models import SPAN_SKILL
from showhow.llm.structured_output import ReplyText
from showhow.reasoners.base import Action, Move
from showhow.reasoners.skills.set_operations import Operation, operand_counts
from showhow.reasoners.skills.skill import Fallback, Skill
from showhow.reasoners.skills.values import (
    OWN_KNOWLEDGE,
    AnswersReply,
    AnswerValue,
    OperandValue,
    QuotingReply,
    SourcePassage,
    check_answers,
)

MAX_NODES = 40
MAX_DEPTH = 6
_REFERENCE = re.compile(r"\[(\d{1,9})\]")
Operator = Literal["Search", "Relate", "Filter", "DR"]
"""Find a thing; look up a relation of things; keep the things that meet a condition; reason over earlier answers."""


class QuestionNode(Protocol):
    """A question of a tree, whatever else its method knows of it."""

    @property
    def id(self) -> int: ...
    @property
    def question(self) -> str: ...
    @property
    def children(self) -> Sequence[int]: ...
    @property
    def references(self) -> Sequence[int]:
        """The nodes whose answers it uses."""


class PlanArgument(BaseModel):
    """An argument of an operation: a text, or the answers of another node."""

    model_config = ConfigDict(frozen=True)

    text: ReplyText | None = None
    """A name, a relation or a condition; none for a reference."""
    ref: int | None = None
    """The number of the node whose answers are the argument; none for a text."""

    @model_validator(mode="before")
    @classmethod
    def _read_reference(cls, argument: Any) -> Any:
        """A text that is nothing but a reference, such as [3], is that reference."""
        text = argument.get("text") if isinstance(argument, dict) else argument if isinstance(argument, str) else None
        match = _REFERENCE.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is not None and not (isinstance(argument, dict) and argument.get("ref") is not None):
            return {"ref": int(match[1])}
        return {"text": argument} if isinstance(argument, str) else argument


class PlanNode(BaseModel):
    """One question of the tree; `[3]` in it stands for the answers of node 3."""

    model_config = ConfigDict(frozen=True)

    id: int
    """The number of the node; 0 is the question itself."""
    question: ReplyText
    """The question; [3] in it stands for the answers of node 3."""
    children: list[int] = Field(default_factory=list)
    """The numbers of the questions that it is split into."""
    op: Operator | None = None
    """The operation that answers it; none if it has children."""
    args: list[PlanArgument] = Field(default_factory=list)
    """The arguments of the operation, in order."""
    how: Operation | None = None
    """How DR combines its arguments; None leaves it to the model."""
    from_last: bool = False
    """Whether the answers of its last child are its answers; otherwise the model concludes from all children."""

    @property
    def references(self) -> list[int]:
        """The nodes whose answers it uses: as arguments, or by [3] in the words of an argument."""
        return [
            number
            for argument in self.args
            for number in ([argument.ref] if argument.ref is not None else list_references(argument.text or ""))
        ]

    def __str__(self) -> str:
        if self.op is None:
            return f"{self.id}. {self.question} <- {', '.join(map(str, self.children))}"
        arguments = [argument.text or f"[{argument.ref}]" for argument in self.args]
        return f"{self.id}. {self.question} <- {self.op}({', '.join([*arguments, *([self.how] if self.how else [])])})"


class PlanReply(BaseModel):
    """The tree; node 0 is the question itself."""

    nodes: list[PlanNode]
    """The questions of the tree; each but node 0 is the child of one other."""

    @property
    def by_id(self) -> Mapping[int, PlanNode]:
        """The nodes by their ids."""
        return {node.id: node for node in self.nodes}

    def __str__(self) -> str:
        return "\n".join(map(str, self.nodes))


class PlanRequest(BaseModel):
    """A question, and the sources that can be asked."""

    question: str
    sources: list[str]


def open_node_spans(nodes: Mapping[int, QuestionNode]) -> Generator[Move, Any, dict[int, UUID]]:
    """Begin the span of each node of a tree, parents first; returns the ids of the spans by node."""
    spans: dict[int, UUID] = {}
    queue: list[tuple[int, UUID | None]] = [(0, None)]
    for number, parent in queue:
        node = nodes[number]
        opened = yield Action(node.question, parent=parent, node=str(number), skill=SPAN_SKILL, open=True, reuse=True)
        spans[number] = opened.step_id
        queue += [(child, opened.step_id) for child in node.children]
    return spans


def list_references(text: str) -> list[int]:
    """The numbers of the nodes that stand in a text as [3]."""
    return [int(number) for number in _REFERENCE.findall(text)]


def list_dependencies(node: QuestionNode) -> set[int]:
    """The nodes that must be answered before this one."""
    return {*node.children, *node.references}


def check_plan(_request: PlanRequest, plan: PlanReply) -> str | None:
    """What is wrong with a plan as one sentence; None if it can be executed."""
    if len(plan.nodes) > MAX_NODES:
        return f"The plan has {len(plan.nodes):,} nodes; use at most {MAX_NODES}."
    nodes = plan.by_id
    if len(nodes) != len(plan.nodes):
        return "Two nodes have the same id; number the nodes from 0."
    if 0 not in nodes:
        return "There is no node 0, which is the question itself."
    return next(
        (
            problem
            for problems in (_tree_problems(nodes), _node_problems(nodes), list_order_problems(nodes))
            for problem in problems
        ),
        None,
    )


def _tree_problems(nodes: Mapping[int, PlanNode]) -> Iterator[str]:
    parents: dict[int, int] = {}
    for node in nodes.values():
        for child in node.children:
            if child not in nodes:
                yield f"Node {node.id} names node {child} as a child, which does not exist."
            if child in parents:
                yield f"Node {child} is a child of both {parents[child]} and {node.id}; a node has one parent."
            parents[child] = node.id
    orphans = sorted(nodes.keys() - parents.keys() - {0})
    if orphans:
        yield f"Node {orphans[0]} belongs to no parent; every node but 0 is a child of another."
    if 0 in parents:
        yield "Node 0 is the question itself and cannot be a child."


def _node_problems(nodes: Mapping[int, PlanNode]) -> Iterator[str]:
    for node in nodes.values():
        for argument in node.args:
            if (argument.text is None) == (argument.ref is None):
                yield f"An argument of node {node.id} must be either a text or a reference."
        if missing := sorted({*node.references} - nodes.keys()):
            yield f"Node {node.id} refers to node {missing[0]}, which does not exist."
        if node.children and node.op is not None:
            yield f"Node {node.id} has both children and an operation; give it one of the two."
        if not node.children and node.op is None:
            yield f"Node {node.id} has neither children nor an operation."
        yield from _operation_problems(node)


def _operation_problems(node: PlanNode) -> Iterator[str]:
    count, referring = len(node.args), [argument.ref for argument in node.args if argument.ref is not None]
    if node.op == "Search" and not (1 <= count <= 2 and not referring):
        yield f"Search in node {node.id} takes a name and perhaps a description, both as texts."
    if node.op == "Relate" and count != 2:
        yield f"Relate in node {node.id} takes two arguments, the things and the relation, not {count}."
    if node.op == "Filter" and not (count == 2 and node.args[0].ref is not None and node.args[1].text):
        yield f"Filter in node {node.id} takes a reference to a list and a condition as text."
    if node.op == "DR":
        if not referring or len(referring) != count:
            yield f"DR in node {node.id} takes references to earlier nodes only, at least one."
        elif node.how is not None and count not in operand_counts(node.how):
            counts = " or ".join(map(str, operand_counts(node.how)))
            yield f"The operation {node.how!r} of node {node.id} takes {counts} references, not {count}."


def list_order_problems(nodes: Mapping[int, QuestionNode]) -> Iterator[str]:
    """What keeps the nodes from being answered in turn, as sentences: a cycle, or more than MAX_DEPTH levels."""
    states: dict[int, bool] = {}
    for start in nodes:
        stack = [(start, iter(sorted(list_dependencies(nodes[start]))))] if start not in states else []
        if stack:
            states[start] = False
        while stack:
            number, dependencies = stack[-1]
            dependency = next(dependencies, None)
            if dependency is None:
                states[number] = True
                stack.pop()
            elif dependency not in states:
                states[dependency] = False
                stack.append((dependency, iter(sorted(list_dependencies(nodes[dependency])))))
            elif not states[dependency]:
                yield f"Node {number} waits for node {dependency}, which waits for it; remove the circle."
                return
    depth = _tree_depth(nodes)
    if depth > MAX_DEPTH:
        yield f"The tree is {depth} levels deep; use at most {MAX_DEPTH}."


def _tree_depth(nodes: Mapping[int, QuestionNode]) -> int:
    depth, level = 0, [0]
    while level:
        level = [child for number in level for child in nodes[number].children]
        depth += 1
    return depth


def plan_single_search(question: str) -> PlanReply:
    """A plan of one node, which is answered from what a search for the question finds."""
    return PlanReply(nodes=[PlanNode(id=0, question=question, op="Search", args=[PlanArgument(text=question)])])


def list_plan_shape(plan: PlanReply) -> list[str]:
    """The operations of a plan, node by node; an inner node is a joining of its children."""
    return [node.op or f"join {len(node.children)}" if node.how is None else f"DR {node.how}" for node in plan.nodes]


PLAN: Skill[Any, PlanReply] = Skill(
    name="plan",
    version=2,
    description="I take the question apart into operations.",
    package="showhow.reasoners.atomr",
    request_type=PlanRequest,
    reply_type=PlanReply,
    check=check_plan,
    fallback=Fallback(
        "answer from a search for the whole question", lambda request: plan_single_search(request.question)
    ),
    shape=list_plan_shape,
    draft=lambda request: plan_single_search(request.question),
)


class OperateRequest(BaseModel):
    """An operation with its arguments, and the passages to answer it from."""

    op: Operator
    question: str
    args: list[OperandValue]
    passages: list[SourcePassage]
    own: bool | None = None
    """Whether the model may answer from its own knowledge where the passages do not tell; None for no."""
    separate: bool | None = None
    """Whether the instructions are those of this operation alone, as in the paper; None for one text for all."""


def _check_operation(request: OperateRequest, reply: AnswersReply) -> str | None:
    heads = [value.key for operand in request.args[:1] for value in operand.values or ()]
    owners = {answer.of for answer in reply.answers}
    if len(heads) > 1 and (strange := sorted(str(owner) for owner in owners if owner not in heads)):
        return f"An answer belongs to {strange[0]}, which is none of the things asked about; set `of` to one of them."
    if reply.answers and not reply.support and not request.own:
        return (
            'The answers name no passage; "support" has the ids of the passages that state them, or else say unknown.'
        )
    return check_answers(reply, request.passages)


OPERATE: Skill[OperateRequest, QuotingReply] = Skill(
    name="operate",
    version=3,
    description="I carry out the operation on what was retrieved.",
    package="showhow.reasoners.atomr",
    request_type=OperateRequest,
    reply_type=QuotingReply,
    check=_check_operation,
    fallback=Fallback("unknown", lambda _request: QuotingReply(answers=[], unknown=True)),
)


class AnsweredQuestion(BaseModel):
    """A question of the tree with its answers."""

    question: str
    answers: list[AnswerValue]
    unknown: bool | None = None
    """Whether its answers are not known; None if they are."""


class AggregateRequest(BaseModel):
    """A question, and the answered questions that it follows from."""

    question: str
    how: Operation | None = None
    answered: list[AnsweredQuestion] = Field(default_factory=list)
    own: bool | None = None
    """Whether the model may use its own knowledge where the earlier answers do not suffice; None for no."""


def _check_conclusion(request: AggregateRequest, reply: AnswersReply) -> str | None:
    if request.own and reply.support == [OWN_KNOWLEDGE]:
        reply = reply.model_copy(update={"support": []})
    return check_answers(reply, ())


AGGREGATE: Skill[AggregateRequest, AnswersReply] = Skill(
    name="aggregate",
    version=2,
    description="I conclude from the earlier answers.",
    package="showhow.reasoners.atomr",
    request_type=AggregateRequest,
    reply_type=AnswersReply,
    check=_check_conclusion,
    fallback=Fallback("unknown", lambda _request: AnswersReply(answers=[], unknown=True)),
)
