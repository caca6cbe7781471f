"""A person plays skills of a run: it waits with open steps, takes written replies, and asks nothing twice."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from showhow.db.database import Conflict
from showhow.db.models import Step
from showhow.db.people import users
from showhow.db.review import review
from showhow.db.run_spec import RunLimits, RunSpec
from showhow.db.runs.runs import trace_version
from showhow.db.traces import traces
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.comparison.gold_comparison import find_gold_reasoning, find_gold_responder
from showhow.fiction.generator.build import generate_world
from showhow.fiction.questions.question_file import QUESTIONS_FILE, QuestionFile
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.humaniq.options import AgentOptionsError
from showhow.reasoners.registry import REASONERS
from showhow.reasoners.skills.skill import RejectedReply, SkillCall, list_shots
from showhow.runs.ask import ActiveRun, AskRequest, begin_run
from showhow.runs.resume import WrittenReply, list_awaited_steps, rerun_from_step, resume_run, resume_with_reply
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.worlds.folder import WorldError
from tests.servers.gold_model import GoldModel
from tests.servers.model import ModelServer

UNLIMITED = RunLimits(steps=None)


@dataclass(frozen=True)
class Desk:
    """A generated world with a question, and a model that replies with its gold reasoning."""

    services: Services
    question: str
    oracle: OracleResponder
    model: GoldModel

    def load(self, trace_id: UUID) -> TraceRecord:
        with self.services.database.read() as session:
            return traces.load_trace(session, trace_id)

    def begin(self, reasoner: str, *person_skills: str) -> ActiveRun:
        self.model.asked.clear()
        self.model.others = 0
        config = RunSpec(reasoner=reasoner, person_skills=person_skills)
        return begin_run(self.services, AskRequest(self.question, "gold", config.replace(limits=UNLIMITED)))

    def reply(self, record: TraceRecord, step: Step) -> dict[str, Any]:
        """The gold reply to the request of an open step."""
        skill = REASONERS[record.trace.reasoner].find_skill(step.skill)
        assert skill is not None
        request = skill.request_type.model_validate(step.arguments)
        value = self.oracle.reply(SkillCall(skill, request, step.node or ""), ()).value
        assert value is not None
        return value.model_dump(mode="json", exclude_none=True)

    def write(self, trace_id: UUID, step: Step, document: dict[str, Any] | None = None) -> ActiveRun | None:
        reply = self.reply(self.load(trace_id), step) if document is None else document
        return resume_with_reply(self.services, trace_id, WrittenReply(step.position, reply, "ada"), UNLIMITED)

    def play(self, run: ActiveRun) -> tuple[TraceRecord, list[Sequence[Step]]]:
        """Run to the end, with gold replies wherever the run waits; returns the steps of each wait."""
        waits: list[Sequence[Step]] = []
        while run.execute().ending == "waiting":
            waits.append(list_awaited_steps(self.load(run.trace_id)))
            resumed = [self.write(run.trace_id, step) for step in waits[-1]]
            assert [run is not None for run in resumed] == [False] * (len(resumed) - 1) + [True]
            assert resumed[-1] is not None
            run = resumed[-1]
        return self.load(run.trace_id), waits


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("home")
    generate_world(home / "worlds", "gold", GenerationOptions(people=80, seed=9, depth=4, per_template=1))
    heads = QuestionFile(home / "worlds" / "gold" / QUESTIONS_FILE).heads
    question = next(head.text for head in heads if head.kind == "conjunction" and head.answers == 1)
    environ = {"SHOWHOW_HOME": str(home), "SHOWHOW_MODEL": "gold", "OPENAI_API_KEY": "none"}
    offline = Services(Settings.from_env(environ), {})
    gold = find_gold_reasoning(offline, "gold", question)
    assert gold is not None
    oracle = OracleResponder(gold)
    model = GoldModel(oracle, {skill.name: skill for entry in REASONERS.values() for skill in entry.skills}.values())
    with ModelServer(model) as server:
        environ["SHOWHOW_MODEL_BASE_URL"] = server.url
        services = Services(Settings.from_env(environ), environ)
        with services.database.begin() as session:
            users.register_user(session, "ada")
        yield Desk(services, question, oracle, model)
        services.close()
    offline.close()


@pytest.mark.parametrize(
    ("method", "played"), [("pdrr", ["triples", "relations"]), ("atomr", ["plan", "operate"]), ("tog", ["enough"])]
)
def test_a_run_waits_for_each_played_skill_and_asks_the_model_the_rest_once(desk: Desk, method: str, played: list[str]):
    alone, waits = desk.play(desk.begin(method))
    assert not waits
    assert alone.trace.ending == "answered"
    asked_alone = Counter(desk.model.asked)
    assert set(played) <= asked_alone.keys()

    record, waits = desk.play(desk.begin(method, *played))
    assert record.trace.final_answer == alone.trace.final_answer
    assert Counter(desk.model.asked) == Counter({name: n for name, n in asked_alone.items() if name not in played})
    awaited = [step for wait in waits for step in wait]
    assert {str(step.skill).partition("/")[0] for step in awaited} == set(played)
    assert len({step.id for step in awaited}) == len(awaited) == sum(asked_alone[name] for name in played)
    if method == "atomr":
        # Branches that work at the same time wait together.
        assert max(map(len, waits)) > 1
    written = {step.id: step for step in record.steps if (step.data or {}).get("written_by") == "ada"}
    assert written.keys() == {step.id for step in awaited}
    assert all(step.data["calls"] == 0 and step.finished_at is not None for step in written.values())  # type: ignore[index]
    assert record.trace.result.calls["model_calls"] == len(desk.model.asked) + desk.model.others
    assert all(step.finished_at is not None for step in record.steps)


def test_an_unusable_reply_is_refused_and_the_run_waits_on(desk: Desk):
    run = desk.begin("atomr", "plan")
    outcome = run.execute()
    assert outcome.ending == "waiting"
    assert outcome.failure == "it waits for a person to write the reply of plan at step 1"
    (step,) = list_awaited_steps(desk.load(run.trace_id))
    with pytest.raises(RejectedReply, match="There is no node 0"):
        desk.write(run.trace_id, step, {"nodes": []})
    with pytest.raises(Conflict, match="step 2 does not wait"):
        resume_with_reply(desk.services, run.trace_id, WrittenReply(2, {}, "ada"), UNLIMITED)
    assert [waiting.id for waiting in list_awaited_steps(desk.load(run.trace_id))] == [step.id]
    # Without a reply the run waits again at the same step, and stores no other.
    assert resume_run(desk.services, run.trace_id, UNLIMITED).execute().ending == "waiting"
    assert [waiting.id for waiting in desk.load(run.trace_id).steps] == [step.id]
    desk.write(run.trace_id, step)
    with pytest.raises(Conflict, match="does not wait"):
        desk.write(run.trace_id, step)


def test_a_plan_that_a_person_wrote_during_a_run_is_a_shot_once_approved(desk: Desk):
    record, _ = desk.play(desk.begin("atomr", "plan"))
    with desk.services.database.begin() as session:
        users.register_user(session, "grace")
        reviewer = users.set_roles(session, "grace", ["reviewer"])
        review.approve_trace(session, record.trace.id, seen=trace_version(session, record.trace.id), by=reviewer.id)
    (shot,) = list_shots(REASONERS["atomr"].planning_skill, [desk.load(record.trace.id)])  # type: ignore[arg-type]
    assert shot.request.question == desk.question
    assert shot.reply == desk.oracle.plan(None)  # type: ignore[arg-type]


def test_a_copy_of_the_run_lets_the_same_person_play(desk: Desk):
    record, _ = desk.play(desk.begin("atomr", "plan"))
    again = rerun_from_step(
        desk.services, record.trace.id, 0, RunSpec(reasoner="atomr", person_skills=("plan",), limits=UNLIMITED)
    )
    assert again.execute().ending == "waiting"
    assert desk.load(again.trace_id).run.spec.person_skills == ("plan",)  # type: ignore[union-attr]


@pytest.mark.parametrize(("method", "told"), [("atomr", "it has plan, select_sources"), ("humaniq", "it lists none")])
def test_a_skill_that_the_method_lacks_cannot_be_played(desk: Desk, method: str, told: str):
    config = RunSpec(reasoner=method, person_skills=("guess",))
    with pytest.raises(AgentOptionsError, match=f"{method} has no skill 'guess' for a person to play; {told}"):
        begin_run(desk.services, AskRequest(desk.question, "gold", config))


def test_gold_reasoning_plays_the_rest_without_a_model(desk: Desk):
    environ = {"SHOWHOW_HOME": str(desk.services.settings.home)}
    services = Services(Settings.from_env(environ), environ)
    desk.model.asked.clear()
    config = RunSpec(reasoner="pdrr", person_skills=("triples",), skills="oracle")
    run = begin_run(services, AskRequest(desk.question, "gold", config.replace(limits=UNLIMITED)))
    run.responder = find_gold_responder(services, "oracle", "gold", desk.question)
    assert run.execute().ending == "waiting"
    (step,) = list_awaited_steps(desk.load(run.trace_id))
    written = WrittenReply(step.position, desk.reply(desk.load(run.trace_id), step), "ada")
    resumed = resume_with_reply(services, run.trace_id, written, UNLIMITED)
    assert resumed is not None
    outcome = resumed.execute()
    assert outcome.failure == "The skills of this run are played by oracle: continue it on the Ask page."
    resumed = resume_run(services, run.trace_id, UNLIMITED)
    resumed.responder = run.responder
    assert resumed.execute().ending == "answered"
    assert desk.load(run.trace_id).run.spec.skills == "oracle"  # type: ignore[union-attr]
    assert desk.load(run.trace_id).run.spec.model is None  # type: ignore[union-attr]
    assert desk.model.asked == []
    with pytest.raises(WorldError, match="has no gold reasoning for this question"):
        find_gold_responder(services, "oracle", "gold", "Who painted the ceiling?")
    services.close()
