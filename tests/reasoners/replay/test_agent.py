"""Replay repeats demonstrations on their own questions, and follows them on others or refuses."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.demonstrate import GRAPH, record_demonstrations
from db.runs import RunOutcome
from db.trace_record import TraceRecord
from evaluation.datasets import read_questions
from evaluation.datasets.record import QuestionRecord
from evaluation.demonstration_reruns import check_repetition
from evaluation.metrics import score_answer
from fewshot_library.encoder import SentenceEncoder
from reasoners.base import Task
from reasoners.provenance import resolve_origin
from reasoners.replay.agent import ReplayOptions, ReplayReasoner
from runs.budget import RunLimits
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from tests.fixtures.town import Town
from tools.registry import available_tools
from tools.tool import ToolContext
from worlds.build import WorldContents, build_world
from worlds.embedded.graph import EmbeddedGraph
from worlds.importers import read_articles
from worlds.open import open_world

REFUSED = "I can't follow any demonstration here: "


@dataclass(frozen=True)
class RealWorld:
    """The real world with demonstrations of some of its questions, and the other questions."""

    context: ToolContext
    shown: list[TraceRecord]
    asked: list[QuestionRecord]

    def answer(self, question: str, options: ReplayOptions | None = None) -> tuple[RunOutcome, MemoryRecorder]:
        return answer(question, self.context, self.shown, options)


def answer(
    question: str, context: ToolContext, shown: list[TraceRecord], options: ReplayOptions | None = None
) -> tuple[RunOutcome, MemoryRecorder]:
    recorder = MemoryRecorder()
    task = Task(question, context, available_tools(context.world), shown)
    return run_reasoner(ReplayReasoner(options), task, recorder, RunControl(RunLimits(steps=300))), recorder


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, meaning: SentenceEncoder, shared_data: Path) -> Iterator[RealWorld]:
    data, worlds = shared_data / "world_2wiki", tmp_path_factory.mktemp("real")
    contents = WorldContents(read_articles(data / "paragraphs.jsonl"), data / "kg_full.ttl")
    build_world(worlds, "real", contents)
    context = ToolContext(open_world(worlds, "real"), meaning)
    questions = read_questions(data / "questions_300.json")
    shown = list(record_demonstrations(questions, context, "real", 8, GRAPH))
    texts = {record.question.text for record in shown}
    yield RealWorld(context, shown, [question for question in questions if question.text not in texts])
    assert isinstance(context.world.graph, EmbeddedGraph)
    context.world.graph.close()


def test_each_gold_demonstration_repeats_exactly_on_its_own_question(town: Town) -> None:
    tools = available_tools(town.context.world)
    failures = {record.question.text: check_repetition(record, town.context, tools) for record in town.gold}
    assert {text: why for text, why in failures.items() if why} == {}


def test_each_demonstration_of_real_questions_repeats_exactly(real: RealWorld) -> None:
    tools = available_tools(real.context.world)
    assert len(real.shown) == 32
    assert [why for record in real.shown if (why := check_repetition(record, real.context, tools))] == []


def test_a_changed_world_is_told_by_the_step_that_fails_now(real: RealWorld, town: Town) -> None:
    why = check_repetition(real.shown[0], town.context, available_tools(town.context.world))
    assert why is not None
    assert why.startswith(f"{REFUSED}step 1 fails now: ")


def test_real_questions_are_answered_rightly_or_refused(real: RealWorld) -> None:
    """A fifth of the questions: at least a third right, and nearly none wrong."""
    asked = real.asked[::5]
    outcomes = [(question, real.answer(question.text)[0]) for question in asked]
    scores = [score_answer(o.answers.final_answer, q.gold_answers) for q, o in outcomes if o.answers]
    assert {o.ending for _, o in outcomes} == {"answered", "refused"}
    assert all((o.failure or "").startswith(REFUSED) for _, o in outcomes if o.ending == "refused")
    assert scores.count(1.0) >= len(asked) / 3
    assert len(scores) - scores.count(1.0) <= max(1, 0.03 * len(scores))


def find_question(real: RealWorld, beginning: str) -> QuestionRecord:
    return next(question for question in real.asked if question.text.startswith(beginning))


def test_names_are_slots_whatever_their_case(real: RealWorld) -> None:
    question = find_question(real, "Which film has the director died earlier")
    for text in (question.text, question.text.lower()):
        outcome, _ = real.answer(text)
        assert outcome.answers is not None, outcome.failure
        assert score_answer(outcome.answers.final_answer, question.gold_answers) == 1.0


def test_an_opposite_word_is_never_taken_for_the_demonstration_s(real: RealWorld) -> None:
    question = find_question(real, "Who died later, ")
    later, earlier = (real.answer(text)[0] for text in (question.text, question.text.replace("later", "earlier")))
    assert later.answers is not None
    assert earlier.answers is None or earlier.answers.final_answer != later.answers.final_answer


@pytest.mark.parametrize(
    "question",
    [
        "Who is the best director?",
        "Where was the director of film The Film Of No World born?",
        "Which film has the director who earned more, Hidden Power or Hiawanda'S Cross?",
        "",
    ],
)
def test_a_question_that_no_demonstration_shows_is_refused_with_the_nearest_one(real: RealWorld, question: str) -> None:
    outcome, _ = real.answer(question)
    assert outcome.ending == "refused"
    assert "like '" in (outcome.failure or "")


def test_the_details_name_demonstration_slots_and_confidence_and_a_corrected_slot_is_followed(real: RealWorld) -> None:
    question = find_question(real, "Who is the maternal grandfather of")
    outcome, _ = real.answer(question.text)
    details = outcome.details["replay"]
    assert json.loads(json.dumps(details)) == details
    (slot,) = [slot for slot in details["alignment"]["slots"] if not slot["relation"]]
    assert slot["here"] in question.text
    assert details["threshold"] <= details["confidence"] <= 1
    demonstration = details["demonstrations"][0]
    shown = next(record for record in real.shown if str(record.trace.id) == demonstration["id"])
    assert shown.question.text == demonstration["question"]
    own = [slot["there"] for slot in details["alignment"]["slots"]]
    again, _ = real.answer(question.text, ReplayOptions(demonstration=demonstration["id"], slots=own))
    assert again.answers is not None
    assert again.answers.final_answer == shown.trace.final_answer


def test_a_higher_threshold_refuses_and_says_so(real: RealWorld) -> None:
    question = find_question(real, "Who is the maternal grandfather of")
    outcome, recorder = real.answer(question.text, ReplayOptions(threshold=1.0))
    assert (outcome.ending, recorder.steps) == ("refused", [])
    assert "is below 1.00" in (outcome.failure or "")


def test_every_argument_resolves_from_its_origin(real: RealWorld) -> None:
    question = find_question(real, "Which film has the director who is older, ")
    outcome, recorder = real.answer(question.text)
    assert outcome.answers is not None
    data = {step.position: step.data for step in recorder.steps}
    for step in recorder.steps:
        for name, value in step.arguments.items():
            origin = step.origins[name]
            assert origin["from"] in ("question", "step")
            assert resolve_origin(origin, question.text, data).casefold() == value.casefold()


def test_without_demonstrations_it_refuses(town: Town) -> None:
    outcome, _ = answer("Who?", town.context, [])
    assert (outcome.ending, "there is none" in (outcome.failure or "")) == ("refused", True)
