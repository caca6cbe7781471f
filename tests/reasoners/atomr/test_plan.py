"""Plans of AtomR: what can be executed passes, and each defect is one sentence."""

from typing import Any

import pytest

from showhow.reasoners.atomr.skills import (
    PLAN,
    PlanArgument,
    PlanNode,
    PlanReply,
    PlanRequest,
    check_plan,
    list_dependencies,
)
from showhow.reasoners.skills.skill import SkillAttempt, SkillCall, SkillReply, answer_skill_call

REQUEST = PlanRequest(question="Who was born earlier, Ada or Bo?", sources=["text"])


def text(value: str) -> PlanArgument:
    return PlanArgument(text=value)


def ref(number: int) -> PlanArgument:
    return PlanArgument(ref=number)


def node(number: int, op: str | None = None, *args: PlanArgument, **more: Any) -> PlanNode:
    return PlanNode.model_validate({"id": number, "question": f"Question {number}?", "op": op, "args": args, **more})


GOOD = [
    node(0, children=[1, 2, 3, 4, 5], from_last=True),
    node(1, "Search", text("Ada")),
    node(2, "Relate", ref(1), text("date of birth")),
    node(3, "Search", text("Bo"), text("baker")),
    node(4, "Relate", ref(3), text("date of birth")),
    node(5, "DR", ref(1), ref(2), ref(3), ref(4), how="earlier"),
]


def check(*changes: PlanNode) -> str | None:
    nodes = {entry.id: entry for entry in GOOD} | {entry.id: entry for entry in changes}
    return check_plan(REQUEST, PlanReply(nodes=list(nodes.values())))


def test_a_good_plan_passes_and_knows_its_dependencies():
    assert check() is None
    assert [list_dependencies(entry) for entry in GOOD[1:3]] == [set(), {1}]
    assert "5. Question 5? <- DR([1], [2], [3], [4], earlier)" in str(PlanReply(nodes=GOOD))


@pytest.mark.parametrize(("changes", "sentence"), [
    ([node(1, "Relate", ref(2), text("mother"))], "Node 2 waits for node 1, which waits for it; remove the circle."),
    ([node(2, "Relate", ref(0), text("mother"))], "waits for it; remove the circle."),
    ([node(2, "Relate", ref(9), text("mother"))], "Node 2 refers to node 9, which does not exist."),
    ([node(0, children=[1, 2, 3, 4, 5, 7])], "Node 0 names node 7 as a child, which does not exist."),
    ([node(0, children=[1, 2, 3, 4])], "Node 5 belongs to no parent; every node but 0 is a child of another."),
    ([node(0, children=[1, 2, 3, 4, 5, 5])], "Node 5 is a child of both 0 and 0; a node has one parent."),
    ([node(1, "Search", text("Ada"), ref(3))], "Search in node 1 takes a name and perhaps a description"),
    ([node(2, "Relate", ref(1))], "Relate in node 2 takes two arguments, the things and the relation, not 1."),
    ([node(2, "Filter", text("Ada"), text("old"))], "Filter in node 2 takes a reference to a list and a condition"),
    ([node(5, "DR", text("Ada"))], "DR in node 5 takes references to earlier nodes only, at least one."),
    ([node(5, "DR", ref(1), ref(2), how="earlier")], "The operation 'earlier' of node 5 takes 4 references, not 2."),
    ([node(5, "DR", ref(1), children=[2])], "is a child of both"),
    ([node(5)], "Node 5 has neither children nor an operation."),
    ([node(2, "Relate", ref(1), PlanArgument())], "An argument of node 2 must be either a text or a reference."),
])  # fmt: skip
def test_each_defect_is_one_sentence(changes: list[PlanNode], sentence: str):
    problem = check(*changes)
    assert problem is not None
    assert sentence in problem
    assert "\n" not in problem


def test_a_plan_without_its_question_or_with_equal_ids_is_refused():
    assert check_plan(REQUEST, PlanReply(nodes=[])) == "There is no node 0, which is the question itself."
    twice = PlanReply(nodes=[*GOOD, GOOD[1]])
    assert check_plan(REQUEST, twice) == "Two nodes have the same id; number the nodes from 0."


@pytest.mark.parametrize("count", [41, 10_000])
def test_too_many_nodes_are_refused_at_once(count: int):
    nodes = [
        node(0, children=list(range(1, count))),
        *(node(number, "Search", text("x")) for number in range(1, count)),
    ]
    assert check_plan(REQUEST, PlanReply(nodes=nodes)) == f"The plan has {count:,} nodes; use at most 40."


def test_a_tree_that_is_too_deep_is_refused():
    chain = [*(node(number, children=[number + 1]) for number in range(7)), node(7, "Search", text("x"))]
    assert check_plan(REQUEST, PlanReply(nodes=chain)) == "The tree is 8 levels deep; use at most 6."


@pytest.mark.parametrize("reply", [
    '{"nodes": [{"id": 0, "question": "?", "op": "Guess", "args": []}]}',
    '{"nodes": [{"id": "first", "question": "?"}]}',
    '{"nodes": "none"}',
    "Ich weiß es nicht.",
    '{"nodes": [{"id": 0, "question": "?", "op": "Search", "args": [{"text":',
    "",
])  # fmt: skip
def test_a_reply_that_is_no_plan_ends_in_the_named_fallback(reply: str):
    class Stubborn:
        name = "stubborn"

        def reply(self, _call: SkillCall[Any, Any], _rejections: Any) -> SkillReply:
            return SkillReply(reply)

    result = answer_skill_call(Stubborn(), SkillCall(PLAN, REQUEST, "plan"))
    assert len(result.attempts) == 3
    assert all(isinstance(attempt, SkillAttempt) and attempt.error for attempt in result.attempts)
    assert result.fallback == "answer from a search for the whole question"
    assert result.reply is not None
    assert check_plan(REQUEST, result.reply) is None
