"""Replay of recorded and generated demonstrations on other questions, and refusals."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.models import Step
from db.runs import RunOutcome
from db.trace_record import TraceRecord
from evaluation.datasets import read_questions
from evaluation.datasets.record import QuestionRecord
from evaluation.metrics import score_answer
from fewshot_library.encoder import SentenceEncoder
from fiction.generator.build import generate_world
from fiction.universe.options import GenerationOptions
from reasoners.base import Task
from reasoners.provenance import resolve_origin
from reasoners.replay.agent import ReplayReasoner
from runs.budget import RunLimits
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from tests.examples import examples
from tests.fixtures.town import Town
from tests.reasoners.fleet import (
    SHIPS,
    articles,
    fleet,
    recorded,
    where_captain_was_born,
    which_were_born,
    who_is_captain,
)
from tools.registry import BUILT_IN_TOOLS
from tools.tool import ToolContext
from worlds.embedded.graph import EmbeddedGraph
from worlds.open import open_world

REFUSED = "I can't follow any demonstration here: "


@dataclass(frozen=True)
class Lesson:
    """Demonstrations of one world, and another world with questions."""

    shown: list[TraceRecord]
    context: ToolContext
    asked: list[QuestionRecord]


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory, town: Town, meaning: SentenceEncoder) -> Iterator[Lesson]:
    """Demonstrations, and another world in which each source has all facts."""
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    generate_world(worlds, "asked", GenerationOptions(people=120, seed=8, depth=6, per_template=1))
    here = ToolContext(open_world(worlds, "asked"), meaning)
    yield Lesson(town.gold, here, read_questions(worlds / "asked" / "questions.jsonl"))
    assert isinstance(here.world.graph, EmbeddedGraph)
    here.world.graph.close()


def follow(question: str, context: ToolContext, shown: Sequence[TraceRecord]) -> tuple[RunOutcome, list[Step]]:
    kept = MemoryRecorder()
    outcome = run_reasoner(
        ReplayReasoner(),
        Task(question, context, list(BUILT_IN_TOOLS.values()), shown),
        kept,
        RunControl(RunLimits(steps=150)),
    )
    return outcome, kept.steps


def answer(ended: RunOutcome) -> str:
    assert ended.answers is not None, ended.failure
    return ended.answers.final_answer


def test_replay_answers_most_questions_of_another_world_and_none_wrongly(lesson: Lesson) -> None:
    replay, scores = ReplayReasoner(), []
    for asked in lesson.asked[::2]:
        task = Task(asked.text, lesson.context, list(BUILT_IN_TOOLS.values()), lesson.shown)
        outcome = run_reasoner(replay, task, MemoryRecorder(), RunControl(RunLimits(steps=150)))
        assert outcome.ending in ("answered", "refused"), outcome.failure
        if outcome.answers:
            scores.append(score_answer(outcome.answers.final_answer, asked.gold_answers))
        else:
            assert (outcome.failure or "").startswith(REFUSED)
    assert len(scores) >= 0.6 * len(lesson.asked[::2])
    assert sum(scores) >= 0.98 * len(scores)


@pytest.mark.parametrize("source", ["text", "graph", "web"])
def test_a_missing_source_of_the_world_is_not_queried(
    source: str, tmp_path: Path, lesson: Lesson, meaning: SentenceEncoder
) -> None:
    """In a world where each source has all facts, most questions are answered and none wrongly."""
    generate_world(
        tmp_path, source, GenerationOptions(people=60, seed=12, depth=4, per_template=1, split=f"{source}=100")
    )
    context = ToolContext(open_world(tmp_path, source), meaning)
    asked = read_questions(tmp_path / source / "questions.jsonl")[::5]
    outcome = [(question, follow(question.text, context, lesson.shown)[0]) for question in asked]
    scores = [score_answer(e.answers.final_answer, question.gold_answers) for question, e in outcome if e.answers]
    assert set(scores) == {1.0}
    assert len(scores) >= len(asked) / 3
    context.world.graph.close()  # type: ignore[union-attr]


def test_every_argument_resolves_from_its_origin(lesson: Lesson) -> None:
    asked = next(question.text for question in lesson.asked if question.kind == "comparative")
    _, steps = follow(asked, lesson.context, lesson.shown)
    seen: dict[int, object] = {}
    origins = 0
    for step in steps:
        for name, given_value in step.arguments.items():
            parts = step.origins[name].get("parts") or [{"origin": step.origins[name]}]
            for part in parts:
                if part["origin"]["from"] in ("question", "step"):
                    wanted = (
                        given_value[part["item"]]
                        if "item" in part
                        else given_value[part.get("start") : part.get("end")]
                    )
                    assert resolve_origin(part["origin"], asked, seen).casefold() == wanted.casefold()  # type: ignore[arg-type]
                    origins += 1
        seen[step.position] = step.data
    assert origins >= len(steps)
    assert all(step.thought for step in steps)


def test_the_details_name_the_demonstration_and_the_alignment(lesson: Lesson) -> None:
    asked = next(question.text for question in lesson.asked if question.text.startswith("Who was born later, "))
    details = follow(asked, lesson.context, lesson.shown)[0].details["replay"]
    assert details["demonstrations"][0]["question"] in {record.question.text for record in lesson.shown}
    assert details["alignment"]["operation"] == "last"
    assert all(hole["here"] in asked for hole in details["alignment"]["holes"])


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("Who is the wizard of {}?", "no generated query asks 'Who is the wizard of"),
        ("Who is the mother of Zebedee Nobody?", "'Zebedee Nobody' is not found"),
        ("Would {} like to dance?", ""),
        ("Do {} and Zebedee Nobody have the same hobby?", "no demonstration in this library has this question pattern"),
        ("gibberish", "no demonstration in this library has this question pattern"),
    ],
)
def test_a_question_without_a_matching_demonstration_is_refused(question: str, why: str, lesson: Lesson) -> None:
    person = next(
        match[1] for question in lesson.asked if (match := re.match(r"When did (\w+ \w+) die", question.text))
    )
    outcome, _ = follow(question.format(person), lesson.context, lesson.shown)
    assert outcome.ending == "refused"
    assert (outcome.failure or "").startswith(REFUSED + why)


def test_an_ambiguous_name_is_refused(tmp_path: Path, lesson: Lesson, meaning: SentenceEncoder) -> None:
    generate_world(tmp_path, "twins", GenerationOptions(people=100, seed=3, depth=4, per_template=1, collisions=0.4))
    context = ToolContext(open_world(tmp_path, "twins"), meaning)
    graph = context.world.graph
    assert graph is not None
    table = graph.query("SELECT ?name WHERE { ?a rdfs:label ?name . ?b rdfs:label ?name . FILTER(?a != ?b) } LIMIT 1")
    assert table.rows[0][0] is not None
    outcome, _ = follow(f"Who is the mother of {table.rows[0][0].value}?", context, lesson.shown)
    assert outcome.ending == "refused"
    assert "are called" in (outcome.failure or "") or "is called" in (outcome.failure or "")
    graph.close()  # type: ignore[attr-defined]


def test_a_question_without_demonstrations_is_refused(lesson: Lesson) -> None:
    outcome, steps = follow("Who is the mother of Ada Lund?", lesson.context, [])
    assert (outcome.ending, steps) == ("refused", [])
    assert "choose a library with demonstrations" in (outcome.failure or "")


# A person's demonstrations, in a world of articles.


@pytest.fixture
def ships(tmp_path: Path) -> ToolContext:
    return fleet(tmp_path, "fleet", articles())


def test_a_recorded_demonstration_is_replayed_on_other_entities(ships: ToolContext) -> None:
    outcome, steps = follow("Who is the captain of Blue Wave?", ships, [who_is_captain(ships)])
    assert answer(outcome) == "Bo Reed"
    assert [(step.tool, step.arguments.get("title")) for step in steps] == [("wikisearch", None), ("read", "Blue Wave")]
    outcome, steps = follow("In which town was the captain of Blue Wave born?", ships, [where_captain_was_born(ships)])
    assert answer(outcome) == "Saltmouth"
    assert [step.arguments.get("title") for step in steps] == [None, "Blue Wave", "Bo Reed"]


def test_hops_of_several_demonstrations_are_combined(ships: ToolContext) -> None:
    steps = [
        ("I look.", "wikisearch", {"query": "Ada Lund"}),
        ("I read.", "read", {"title": "Ada Lund", "question": "Where was Ada Lund born?"}),
    ]
    born = recorded(ships, "In which town was Ada Lund born?", steps, "Gullhaven")
    outcome, _ = follow("In which town was the captain of Low Tide born?", ships, [who_is_captain(ships), born])
    assert answer(outcome) == "Gullhaven"


def test_an_empty_result_is_answered_only_as_in_a_demonstration(ships: ToolContext) -> None:
    outcome, _ = follow("Who is the captain of Grey Seal?", ships, [who_is_captain(ships)])
    assert outcome.ending == "refused"
    shown = [who_is_captain(ships), which_were_born(ships)]
    assert answer(follow("Who is the captain of Grey Seal?", ships, shown)[0]) == "no answer"


def test_a_question_answered_by_an_unknown_sentence_pattern_is_refused(tmp_path: Path, ships: ToolContext) -> None:
    shown = [who_is_captain(ships), which_were_born(ships)]
    drifted = fleet(tmp_path, "drifted", articles(captain="{name} commands {ship}, her captain says."))
    outcome, _ = follow("Who is the captain of Blue Wave?", drifted, shown)
    assert outcome.ending == "refused"
    assert "whose wording occurs in no demonstration" in (outcome.failure or "")


def test_a_sentence_about_another_relation_is_not_used(ships: ToolContext) -> None:
    outcome, _ = follow("Who is the owner of Blue Wave?", ships, [who_is_captain(ships)])
    assert outcome.ending == "refused"


NAMES = st.from_regex(r"[A-Z][a-z]{3,7} [A-Z][a-z]{3,7}", fullmatch=True)


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ship=NAMES, captain=NAMES, town=st.from_regex(r"[A-Z][a-z]{4,9}", fullmatch=True))
def test_replay_with_other_names_takes_the_same_steps(
    ship: str, captain: str, town: str, ships: ToolContext, tmp_path_factory: pytest.TempPathFactory
) -> None:
    taken = {*SHIPS, *(name for name, _ in SHIPS.values())}
    if (
        len({ship, captain} | taken) < len(taken) + 2
        or town in f"{ship} {captain}"
        or set(ship.split()) & set(captain.split())
    ):
        return
    renamed_steps = [
        article.__class__(*[_renamed(part, ship, captain, town) for part in (article.title, article.sentences)], None)
        for article in articles()
    ]
    renamed = fleet(tmp_path_factory.mktemp("renamed"), "fleet", renamed_steps)
    shown = [where_captain_was_born(ships)]
    outcome, steps = follow(f"In which town was the captain of {ship} born?", renamed, shown)
    _, first = follow("In which town was the captain of Blue Wave born?", ships, shown)
    assert answer(outcome) == town
    assert [(step.tool, _shape(step.origins)) for step in steps] == [
        (step.tool, _shape(step.origins)) for step in first
    ]


def _renamed(told: str | tuple[str, ...], ship: str, captain: str, town: str) -> str | tuple[str, ...]:
    if isinstance(told, tuple):
        return tuple(str(_renamed(part, ship, captain, town)) for part in told)
    for old, new in (("Blue Wave", ship), ("Bo Reed", captain), ("Saltmouth", town)):
        told = told.replace(old, new)
    return told


def _shape(origins: dict[str, dict[str, object]]) -> dict[str, object]:
    return {name: (origin["from"], origin.get("step")) for name, origin in origins.items()}
