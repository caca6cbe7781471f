"""Demonstrations are followed on other questions, by people or generated; what breaks the pattern is refused."""

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
    """The demonstrations of the town, and a world of other people whose sources each tell all."""
    worlds = tmp_path_factory.mktemp("home") / "worlds"
    generate_world(worlds, "asked", GenerationOptions(people=120, seed=8, depth=6, per_template=1))
    here = ToolContext(open_world(worlds, "asked"), meaning)
    yield Lesson(town.gold, here, read_questions(worlds / "asked" / "questions.jsonl"))
    assert isinstance(here.world.graph, EmbeddedGraph)
    here.world.graph.close()


def follow(question: str, context: ToolContext, shown: Sequence[TraceRecord]) -> tuple[RunOutcome, list[Step]]:
    kept = MemoryRecorder()
    ended = run_reasoner(
        ReplayReasoner(),
        Task(question, context, list(BUILT_IN_TOOLS.values()), shown),
        kept,
        RunControl(RunLimits(steps=150)),
    )
    return ended, kept.steps


def answer(ended: RunOutcome) -> str:
    assert ended.answers is not None, ended.failure
    return ended.answers.final_answer


def test_most_questions_of_another_world_are_answered_and_no_answer_is_wrong(lesson: Lesson) -> None:
    replay, scores = ReplayReasoner(), []
    for asked in lesson.asked[::2]:
        task = Task(asked.text, lesson.context, list(BUILT_IN_TOOLS.values()), lesson.shown)
        ended = run_reasoner(replay, task, MemoryRecorder(), RunControl(RunLimits(steps=150)))
        assert ended.ending in ("answered", "refused"), ended.failure
        if ended.answers:
            scores.append(score_answer(ended.answers.final_answer, asked.gold_answers))
        else:
            assert (ended.failure or "").startswith(REFUSED)
    assert len(scores) >= 0.6 * len(lesson.asked[::2])
    assert sum(scores) >= 0.98 * len(scores)


@pytest.mark.parametrize("source", ["text", "graph", "web"])
def test_what_a_world_has_not_is_not_missed(
    source: str, tmp_path: Path, lesson: Lesson, meaning: SentenceEncoder
) -> None:
    """Where one source tells everything, questions are answered from it, and none wrongly."""
    generate_world(
        tmp_path, source, GenerationOptions(people=60, seed=12, depth=4, per_template=1, split=f"{source}=100")
    )
    context = ToolContext(open_world(tmp_path, source), meaning)
    asked = read_questions(tmp_path / source / "questions.jsonl")[::5]
    ended = [(each, follow(each.text, context, lesson.shown)[0]) for each in asked]
    scores = [score_answer(e.answers.final_answer, each.gold_answers) for each, e in ended if e.answers]
    assert set(scores) == {1.0}
    assert len(scores) >= len(asked) / 3
    context.world.graph.close()  # type: ignore[union-attr]


def test_every_argument_tells_truly_where_it_came_from(lesson: Lesson) -> None:
    asked = next(each.text for each in lesson.asked if each.kind == "comparative")
    _, steps = follow(asked, lesson.context, lesson.shown)
    seen: dict[int, object] = {}
    told = 0
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
                    told += 1
        seen[step.position] = step.data
    assert told >= len(steps)
    assert all(step.thought for step in steps)


def test_the_conclusion_names_the_demonstration_and_how_the_questions_are_aligned(lesson: Lesson) -> None:
    asked = next(each.text for each in lesson.asked if each.text.startswith("Who was born later, "))
    told = follow(asked, lesson.context, lesson.shown)[0].details["replay"]
    assert told["demonstrations"][0]["question"] in {record.question.text for record in lesson.shown}
    assert told["alignment"]["operation"] == "last"
    assert all(hole["here"] in asked for hole in told["alignment"]["holes"])


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("Who is the wizard of {}?", "no query is written that asks 'Who is the wizard of"),
        ("Who is the mother of Zebedee Nobody?", "'Zebedee Nobody' is not found"),
        ("Would {} like to dance?", ""),
        ("Do {} and Zebedee Nobody have the same hobby?", "its wording is that of no demonstration"),
        ("gibberish", "its wording is that of no demonstration"),
    ],
)
def test_what_no_demonstration_shows_is_refused(question: str, why: str, lesson: Lesson) -> None:
    person = next(found[1] for each in lesson.asked if (found := re.match(r"When did (\w+ \w+) die", each.text)))
    ended, _ = follow(question.format(person), lesson.context, lesson.shown)
    assert ended.ending == "refused"
    assert (ended.failure or "").startswith(REFUSED + why)


def test_a_name_that_two_people_have_is_refused(tmp_path: Path, lesson: Lesson, meaning: SentenceEncoder) -> None:
    generate_world(tmp_path, "twins", GenerationOptions(people=100, seed=3, depth=4, per_template=1, collisions=0.4))
    context = ToolContext(open_world(tmp_path, "twins"), meaning)
    graph = context.world.graph
    assert graph is not None
    table = graph.query("SELECT ?name WHERE { ?a rdfs:label ?name . ?b rdfs:label ?name . FILTER(?a != ?b) } LIMIT 1")
    assert table.rows[0][0] is not None
    ended, _ = follow(f"Who is the mother of {table.rows[0][0].value}?", context, lesson.shown)
    assert ended.ending == "refused"
    assert "are called" in (ended.failure or "") or "is called" in (ended.failure or "")
    graph.close()  # type: ignore[attr-defined]


def test_without_demonstrations_it_says_so(lesson: Lesson) -> None:
    ended, steps = follow("Who is the mother of Ada Lund?", lesson.context, [])
    assert (ended.ending, steps) == ("refused", [])
    assert "choose a library that has some" in (ended.failure or "")


# A person's demonstrations, in a world of articles.


@pytest.fixture
def ships(tmp_path: Path) -> ToolContext:
    return fleet(tmp_path, "fleet", articles())


def test_what_a_person_recorded_is_followed_on_other_things(ships: ToolContext) -> None:
    ended, steps = follow("Who is the captain of Blue Wave?", ships, [who_is_captain(ships)])
    assert answer(ended) == "Bo Reed"
    assert [(step.tool, step.arguments.get("title")) for step in steps] == [("wikisearch", None), ("read", "Blue Wave")]
    ended, steps = follow("In which town was the captain of Blue Wave born?", ships, [where_captain_was_born(ships)])
    assert answer(ended) == "Saltmouth"
    assert [step.arguments.get("title") for step in steps] == [None, "Blue Wave", "Bo Reed"]


def test_hops_of_several_demonstrations_make_a_longer_way(ships: ToolContext) -> None:
    steps = [
        ("I look.", "wikisearch", {"query": "Ada Lund"}),
        ("I read.", "read", {"title": "Ada Lund", "question": "Where was Ada Lund born?"}),
    ]
    born = recorded(ships, "In which town was Ada Lund born?", steps, "Gullhaven")
    ended, _ = follow("In which town was the captain of Low Tide born?", ships, [who_is_captain(ships), born])
    assert answer(ended) == "Gullhaven"


def test_nothing_is_answered_only_as_a_demonstration_does(ships: ToolContext) -> None:
    ended, _ = follow("Who is the captain of Grey Seal?", ships, [who_is_captain(ships)])
    assert ended.ending == "refused"
    shown = [who_is_captain(ships), which_were_born(ships)]
    assert answer(follow("Who is the captain of Grey Seal?", ships, shown)[0]) == "no answer"


def test_a_sentence_of_another_pattern_is_refused(tmp_path: Path, ships: ToolContext) -> None:
    shown = [who_is_captain(ships), which_were_born(ships)]
    drifted = fleet(tmp_path, "drifted", articles(captain="{name} commands {ship}, her captain says."))
    ended, _ = follow("Who is the captain of Blue Wave?", drifted, shown)
    assert ended.ending == "refused"
    assert "is said as in no demonstration" in (ended.failure or "")


def test_another_relation_of_the_same_place_is_no_captain(ships: ToolContext) -> None:
    ended, _ = follow("Who is the owner of Blue Wave?", ships, [who_is_captain(ships)])
    assert ended.ending == "refused"


NAMES = st.from_regex(r"[A-Z][a-z]{3,7} [A-Z][a-z]{3,7}", fullmatch=True)


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ship=NAMES, captain=NAMES, town=st.from_regex(r"[A-Z][a-z]{4,9}", fullmatch=True))
def test_other_names_leave_the_same_steps(
    ship: str, captain: str, town: str, ships: ToolContext, tmp_path_factory: pytest.TempPathFactory
) -> None:
    taken = {*SHIPS, *(name for name, _ in SHIPS.values())}
    if (
        len({ship, captain} | taken) < len(taken) + 2
        or town in f"{ship} {captain}"
        or set(ship.split()) & set(captain.split())
    ):
        return
    told = [
        article.__class__(*[_renamed(part, ship, captain, town) for part in (article.title, article.sentences)], None)
        for article in articles()
    ]
    renamed = fleet(tmp_path_factory.mktemp("renamed"), "fleet", told)
    shown = [where_captain_was_born(ships)]
    ended, steps = follow(f"In which town was the captain of {ship} born?", renamed, shown)
    _, first = follow("In which town was the captain of Blue Wave born?", ships, shown)
    assert answer(ended) == town
    assert [(step.tool, _shape(step.origins)) for step in steps] == [
        (step.tool, _shape(step.origins)) for step in first
    ]


def _renamed(told: str | tuple[str, ...], ship: str, captain: str, town: str) -> str | tuple[str, ...]:
    if isinstance(told, tuple):
        return tuple(str(_renamed(each, ship, captain, town)) for each in told)
    for old, new in (("Blue Wave", ship), ("Bo Reed", captain), ("Saltmouth", town)):
        told = told.replace(old, new)
    return told


def _shape(origins: dict[str, dict[str, object]]) -> dict[str, object]:
    return {name: (origin["from"], origin.get("step")) for name, origin in origins.items()}
