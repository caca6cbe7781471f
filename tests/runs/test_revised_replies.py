"""A person changes the reply of a skill: the run goes on from there and takes every result that still applies."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from showhow.db.database import Conflict, Database
from showhow.db.models import SPAN_SKILL, Question, Run
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.run_spec import RunLimits
from showhow.db.runs import runs
from showhow.db.storage.schema import upgrade
from showhow.db.traces import traces
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.metrics import score_against_gold
from showhow.fiction.generator.build import generate_world
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.gold_traces.traces import GoldWorld
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.atomr.skills import PLAN, PlanArgument, PlanReply
from showhow.reasoners.base import Task
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.reasoners.skills.skill import (
    RejectedReply,
    SkillAttempt,
    SkillCall,
    SkillReply,
    check_written_reply,
    written_step_data,
)
from showhow.reasoners.skills.values import renumber_passages
from showhow.runs.recorders import StoreRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from showhow.tools.tool import ToolContext
from showhow.worlds.open import open_world
from tests.oracles.test_gold_traces import some_meaning

OPTIONS = GenerationOptions(people=120, seed=4, depth=4, per_template=1, split="text=50,graph=35,web=15")


@dataclass
class WrongPlan:
    """The oracle, except that one relation of the plan is a wrong one; counts the calls by skill."""

    oracle: OracleResponder
    is_wrong: bool = True
    calls: Counter[str] = field(default_factory=Counter)
    name: str = "wrong plan"

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        self.calls[call.skill.name] += 1
        reply = self.oracle.reply(call, rejections)
        if call.skill is not PLAN or not self.is_wrong:
            return reply
        assert isinstance(reply.value, PlanReply)
        value = spoil_last_relation(reply.value)
        return SkillReply(value.model_dump_json(), value)


def spoil_last_relation(plan: PlanReply) -> PlanReply:
    last = next(node for node in reversed(plan.nodes) if node.op == "Relate")
    wrong_relation = "mother" if last.args[1].text != "mother" else "father"
    spoilt = last.model_copy(update={"args": [last.args[0], PlanArgument(text=wrong_relation)]})
    return PlanReply(nodes=[spoilt if node is last else node for node in plan.nodes])


@dataclass(frozen=True)
class World:
    """A generated world, a store, and a question of several relations."""

    gold: GoldWorld
    store: Database
    question: Question

    def run(self, trace_id: UUID, responder: WrongPlan) -> TraceRecord:
        context = self.gold.context
        task = Task(self.question.text, context, available_tools(context.world), responder=responder)
        with self.store.read() as session:
            trace = traces.load_trace(session, trace_id).trace
        control = RunControl(RunLimits(steps=None, seconds=None))
        run_reasoner(make_reasoner("atomr"), task, StoreRecorder(self.store, trace), control)
        with self.store.read() as session:
            return traces.load_trace(session, trace_id)

    def responder(self, *, is_wrong: bool) -> WrongPlan:
        gold = GoldReasoning(self.gold, self.question.text, self.question.details)
        return WrongPlan(OracleResponder(gold), is_wrong)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("home")
    generate_world(home, "gold", OPTIONS)
    rows = read_questions(home / "gold" / "questions.jsonl")
    row = next(row for row in rows if row.kind == "composition" and len(row.gold_answers) == 1)
    store = Database(f"sqlite:///{home / 'showhow.db'}")
    upgrade(store)
    opened = open_world(home, "gold")
    with store.begin() as session:
        project = projects.create_project(session, "gold", "gold")
        projects.add_questions(session, project.id, [row])
        (question,) = projects.list_questions(session, project.id)
        users.register_user(session, "ada")
    yield World(GoldWorld(home / "gold", ToolContext(opened, some_meaning)), store, question)
    opened.graph.close()  # type: ignore[union-attr]
    store.close()


@pytest.fixture(scope="module")
def wrong(world: World) -> TraceRecord:
    """A finished run whose plan has a wrong relation."""
    with world.store.begin() as session:
        run = runs.start_run(session, Run(name="ask", reasoner="atomr", world="gold"))
        trace = runs.start_run_trace(session, run, world.question.id, "")
    return world.run(trace.id, world.responder(is_wrong=True))


def fork(world: World, record: TraceRecord, position: int, reply: Any) -> UUID:
    with world.store.begin() as session:
        ada = users.register_user(session, "ada")
        run = runs.start_run(session, Run(name="ask", reasoner="atomr", world="gold"))
        revised = runs.RevisedReply(str(reply), written_step_data(reply, "ada"), ada.id)
        return runs.fork_run_trace(session, record.trace.id, position, run, revised).id


def test_a_corrected_plan_leads_to_the_gold_answer_and_asks_only_what_changed(world: World, wrong: TraceRecord):
    assert score_of(world, wrong) < 1.0
    plan = wrong.steps[0]
    gold_plan = world.responder(is_wrong=False).oracle.plan(None)  # type: ignore[arg-type]
    corrected = world.responder(is_wrong=True)
    record = world.run(fork(world, wrong, plan.position, gold_plan), corrected)
    assert score_of(world, record) == 1.0
    asked = sum(corrected.calls.values())
    first_time = sum(step.tool is None and step.skill != SPAN_SKILL for step in record.steps)
    assert corrected.calls["plan"] == 0
    # The relation that was changed, and the choice of its sources.
    assert 1 <= asked <= 3 < first_time
    calls = record.trace.result.calls
    assert calls["reused"] > len(record.steps) / 3
    assert record.steps[0].data == written_step_data(gold_plan, "ada")
    assert [(edit.action, edit.before["data"]["reply"]) for edit in record.edits if edit.action == "reply"] == [
        ("reply", plan.data["reply"])
    ]
    assert [step.position for step in record.steps] == list(range(1, len(record.steps) + 1))
    assert all(step.finished_at is not None for step in record.steps)


def test_a_reply_that_stays_as_it_is_takes_every_later_result(world: World, wrong: TraceRecord):
    for number in (0, len(wrong.steps) // 2):
        step = next(step for step in wrong.steps[number:] if step.tool is None and step.skill != SPAN_SKILL)
        responder = world.responder(is_wrong=True)
        skill = make_skill(step.skill)
        reply = check_written_reply(skill, step.arguments, step.data["reply"])
        record = world.run(fork(world, wrong, step.position, reply), responder)
        assert responder.calls == Counter()
        assert [comparable(made) for made in record.steps] == [comparable(made) for made in wrong.steps]
        assert record.trace.final_answer == wrong.trace.final_answer


def test_results_that_rest_on_steps_at_other_positions_are_taken_with_the_new_ids(world: World, wrong: TraceRecord):
    """With the first operation asked anew, every later position moves."""
    plan = wrong.steps[0]
    reply = PlanReply.model_validate(plan.data["reply"])
    leaf = next(node for node in reply.nodes if node.op == "Relate")
    extra = leaf.model_copy(update={"id": len(reply.nodes), "question": "An extra question."})
    root = reply.nodes[0].model_copy(update={"children": [extra.id, *reply.nodes[0].children]})
    grown = PlanReply(nodes=[root, *reply.nodes[1:], extra])
    responder = world.responder(is_wrong=True)
    record = world.run(fork(world, wrong, plan.position, grown), responder)
    assert record.trace.final_answer == wrong.trace.final_answer
    assert responder.calls["operate"] == 1
    for step in record.steps:
        ids = [passage["id"] for passage in step.arguments.get("passages", ())] if step.skill == "operate/3" else []
        sources = [record.steps[int(id_.partition(".")[0]) - 1] for id_ in ids]
        assert all(source.tool is not None and source.position < step.position for source in sources)


def test_a_step_without_a_skill_has_no_reply_to_change(world: World, wrong: TraceRecord):
    tool_step = next(step for step in wrong.steps if step.tool is not None)
    gold_plan = world.responder(is_wrong=False).oracle.plan(None)  # type: ignore[arg-type]
    with pytest.raises(Conflict, match="not the call of a skill"):
        fork(world, wrong, tool_step.position, gold_plan)


def test_what_is_wrong_with_a_written_reply_is_said_in_one_sentence(wrong: TraceRecord):
    arguments, reply = wrong.steps[0].arguments, wrong.steps[0].data["reply"]
    with pytest.raises(RejectedReply, match="There is no node 0"):
        check_written_reply(PLAN, arguments, {"nodes": reply["nodes"][1:]})
    with pytest.raises(RejectedReply, match=r"^nodes › 1 › id: "):
        check_written_reply(PLAN, arguments, {"nodes": [{"id": "x", "question": "?"}]})


def test_only_ids_of_passages_are_renumbered():
    request = {"question": "5.1?", "passages": [{"id": "5.1", "text": "5.1"}], "state": [{"support": ["6.2", "x"]}]}
    assert renumber_passages(request, lambda position: position + 2) == {
        "question": "5.1?",
        "passages": [{"id": "7.1", "text": "5.1"}],
        "state": [{"support": ["8.2", "x"]}],
    }
    walked = {"walked": [{"id": "5.2", "relation": {"id": "P5.1"}}], "facts": [{"id": "4.1", "score": 0.5}, "4.2"]}
    assert renumber_passages(walked, lambda position: position + 1) == {
        "walked": [{"id": "6.2", "relation": {"id": "P5.1"}}],
        "facts": [{"id": "5.1", "score": 0.5}, "5.2"],
    }


def make_skill(reference: str | None) -> Any:
    return REASONERS["atomr"].find_skill(reference)


def comparable(step: Any) -> tuple[Any, ...]:
    data = {name: value for name, value in (step.data or {}).items() if name not in ("calls", "written_by")}
    return step.position, step.node, step.skill, step.tool, step.arguments, step.observation, data


def score_of(world: World, record: TraceRecord) -> float:
    return score_against_gold(record.trace.final_answer or "", world.question.gold_answers)
