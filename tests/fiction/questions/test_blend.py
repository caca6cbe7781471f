"""Blended questions of a generated world: by brute force over its facts, each needs exactly its two sources."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from showhow.db.models import Question
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.scoring.scoring import score_outcome
from showhow.fiction.generator.world_files import FACT_SOURCES_FILE, UNIVERSE_FILE
from showhow.fiction.questions.blend import BLEND_KINDS, BlendedQuestion, QuestionBlender
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS
from showhow.fiction.questions.names import NameFormatter, ThingCatalog
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.relations import RELATIONS
from showhow.fiction.universe.universe import SOURCES, FactSources, Universe
from tests.oracles.test_gold_traces import PROJECT
from tests.oracles.test_skills import WORLDS, Ground, generate_once, make_ground

COUNT = 12


class BruteForce:
    """Answers expressions by loops over everybody, from the facts that some sources state."""

    def __init__(self, universe: Universe, fact_sources: FactSources, sources: int) -> None:
        self.universe, self.people = universe, range(len(universe))
        self._masks, self._sources = fact_sources.masks, sources
        pairs = zip(universe.friends.pairs.tolist(), fact_sources.friends.tolist(), strict=True)
        self._friends = {tuple(pair) for pair, mask in pairs if mask & sources}

    def value(self, fact: str, person: int) -> int:
        is_stated = int(self._masks[fact][person]) & self._sources
        return int(getattr(self.universe, fact)[person]) if is_stated else -1

    def step(self, step: str, person: int) -> set[int]:
        ways: dict[str, Callable[[int], bool]] = {
            "parent": lambda other: other in {self.value("father", person), self.value("mother", person)},
            "child": lambda other: person in {self.value("father", other), self.value("mother", other)},
            "sibling": lambda other: (
                other != person
                and any(self.value(kind, other) == self.value(kind, person) >= 0 for kind in ("father", "mother"))
            ),
            "spouse": lambda other: self.value("spouse", person) == other,
            "friend": lambda other: bool({(person, other), (other, person)} & self._friends),
        }
        return set(filter(ways[step], self.people))

    def evaluate(self, expression: dict[str, Any]) -> set[int]:
        match expression:
            case {"op": "named", "person": person}:
                return {person}
            case {"op": "having", "fact": fact, "value": value}:
                return {person for person in self.people if self.value(fact, person) == value}
            case {"op": "fact", "fact": fact, "of": of}:
                return {self.value(fact, person) for person in self.evaluate(of)} - {-1, -2}
            case {"op": "related", "relation": name, "of": of}:
                people = self.evaluate(of)
                for step in RELATIONS[name].steps:
                    people = {other for person in people for other in self.step(step, person)}
                women = RELATIONS[name].women
                return {person for person in people if women is None or bool(self.universe.female[person]) == women}
        raise AssertionError(expression)


@pytest.fixture(scope="module")
def folder() -> Path:
    return generate_once(WORLDS["spread"]) / "gold"


@pytest.fixture(scope="module")
def facts(folder: Path) -> tuple[Universe, FactSources]:
    return Universe.load(folder / UNIVERSE_FILE), FactSources.load(folder / FACT_SOURCES_FILE)


@pytest.fixture(scope="module")
def blended(facts: tuple[Universe, FactSources]) -> dict[str, list[BlendedQuestion]]:
    blender = QuestionBlender(*facts, NameFormatter(facts[0], generator=3), 3)
    questions = {kind: list(blender.draw(kind, COUNT, 5)) for kind in BLEND_KINDS}
    assert questions == {kind: list(blender.draw(kind, COUNT, 5)) for kind in BLEND_KINDS}
    return questions


@pytest.mark.parametrize("kind", BLEND_KINDS)
def test_the_answers_follow_from_two_sources_and_from_no_one_of_them(
    facts: tuple[Universe, FactSources], blended: dict[str, list[BlendedQuestion]], kind: str
):
    universe = facts[0]
    names = NameFormatter(universe, generator=3)
    things = ThingCatalog(universe, ItemCatalog(universe), names)
    questions = blended[kind]
    assert len(questions) == COUNT == len({question.question.text for question in questions})
    for entry in questions:
        row = entry.to_row()
        expression = row["expression"]
        everything = BruteForce(*facts, sum(SOURCES.values())).evaluate(expression)
        kind_of_answer = "person" if expression["op"] == "related" else FACT_VALUE_KINDS[expression["fact"]]
        gold = {things.answer_text(kind_of_answer, value) for value in everything}
        assert {answer["text"] for answer in row["answers"]} == gold
        bits = {source: SOURCES[source] for source in BLEND_KINDS[kind]}
        assert BruteForce(*facts, sum(bits.values())).evaluate(expression) == everything
        for source in SOURCES.values():
            assert BruteForce(*facts, source).evaluate(expression) != everything, row["text"]
        bridge = BruteForce(*facts, sum(SOURCES.values())).evaluate(expression["of"])
        assert len(bridge) == 1
        name = things.answer_text("person", bridge.pop())
        assert entry.bridge["text"] == name
        assert name not in row["text"]
        assert sorted(source for _, source in entry.parts) == sorted(bits)
        (_, source), (asked, other) = entry.parts
        assert BruteForce(*facts, SOURCES[source]).evaluate(expression["of"])
        assert not BruteForce(*facts, SOURCES[other]).evaluate(expression["of"])
        assert name in asked
        assert not [answer for answer in row["answers"] if str(answer["text"]) in row["text"]]


def test_both_ways_of_naming_and_both_orders_of_sources_occur(blended: dict[str, list[BlendedQuestion]]):
    for questions in blended.values():
        assert {question.to_row()["expression"]["of"]["op"] for question in questions} == {"having", "related"}
    orders = {tuple(source for _, source in entry.parts) for entries in blended.values() for entry in entries}
    assert len(orders) == 6


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield from make_ground(WORLDS["spread"])


def test_a_method_of_skills_answers_them_with_gold_replies(
    tmp_path: Path, ground: Ground, blended: dict[str, list[BlendedQuestion]]
):
    """They are read as a world's own questions are, with their needs and hops."""
    file = tmp_path / "blend.jsonl"
    rows = [entry.to_row() for entries in blended.values() for entry in entries[:2]]
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    for record, row in zip(read_questions(file), rows, strict=True):
        assert (record.kind, record.source_id) == (row["kind"], row["id"])
        assert record.details["needs"] == row["needs"]
        assert len(record.decomposition) >= 2
        question = Question(
            project_id=PROJECT.id,
            position=1,
            text=record.text,
            kind=record.kind,
            gold_answers=record.gold_answers,
            details=record.details,
        )
        outcome, _ = ground.run("atomr", question, ground.oracle(question))
        scores = score_outcome(question, outcome).scores
        assert scores is not None
        assert scores["f1"] == 1.0, record.text
