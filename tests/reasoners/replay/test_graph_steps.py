"""Demonstrations that walk the graph step by step are replayed step by step from other entities."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from db.models import Step
from db.trace_record import TraceRecord
from fewshot_library.formats import find_writer, read_traces, readable_formats, writable_formats
from fewshot_library.formats.format import TraceExport
from reasoners.base import Task
from reasoners.provenance import resolve_origin
from reasoners.replay.agent import ReplayReasoner
from runs.budget import RunLimits
from runs.recorders import MemoryRecorder
from runs.runner import RunControl, run_reasoner
from tests.reasoners.fleet import recorded
from tools.registry import available_tools
from tools.tool import ToolContext
from worlds.build import WorldContents, build_world
from worlds.open import open_world


def mother(context: ToolContext) -> TraceRecord:
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("First her id.", "getWikiDataID", {"title": "Ada Reed"}),
        ("What is known of her?", "getRelationsAsHead", {"entity": "Q1"}),
        ("Her mother.", "getTailEntities", {"entity": "Q1", "relation": "P2"}),
    ]
    return recorded(context, "Who is the mother of Ada Reed?", steps, "Cora Reed")


def birth_of_the_mother(context: ToolContext) -> TraceRecord:
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("First her id.", "getWikiDataID", {"title": "Ada Reed"}),
        ("What is known of her?", "getRelationsAsHead", {"entity": "Q1"}),
        ("Her mother.", "getTailEntities", {"entity": "Q1", "relation": "P2"}),
        ("What is known of Cora?", "getRelationsAsHead", {"entity": "Q3"}),
        ("Her date of birth.", "getTailEntities", {"entity": "Q3", "relation": "P6"}),
    ]
    question = "What is the date of birth of the mother of Ada Reed?"
    return recorded(context, question, steps, "1924-07-08")


def films(context: ToolContext) -> TraceRecord:
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("First her id.", "getWikiDataID", {"title": "Ada Reed"}),
        ("What leads to her?", "getRelationsAsTail", {"entity": "Q1"}),
        ("The films.", "getHeadEntities", {"relation": "P10", "entity": "Q1"}),
    ]
    return recorded(context, "Which films have Ada Reed as director?", steps, "The Father of Tides")


def follow(context: ToolContext, shown: TraceRecord, question: str) -> tuple[str, list[Step]]:
    """The answer, or the reason of a refusal, and the steps of a replay of the demonstration."""
    recorder = MemoryRecorder()
    task = Task(question, context, available_tools(context.world), [shown])
    outcome = run_reasoner(ReplayReasoner(), task, recorder, RunControl(RunLimits(steps=30)))
    return outcome.answers.final_answer if outcome.answers else str(outcome.failure), recorder.steps


@pytest.mark.parametrize(
    ("shown", "question", "answer", "calls"),
    [
        (
            mother,
            "Who is the mother of Jan Reed?",
            "Fay Lund",
            [
                ("getWikiDataID", {"title": "Jan Reed"}),
                ("getRelationsAsHead", {"entity": "Q10"}),
                ("getTailEntities", {"entity": "Q10", "relation": "P2"}),
            ],
        ),
        (
            birth_of_the_mother,
            "What is the date of birth of the mother of Jan Reed?",
            "1947-02-03",
            [
                ("getWikiDataID", {"title": "Jan Reed"}),
                ("getRelationsAsHead", {"entity": "Q10"}),
                ("getTailEntities", {"entity": "Q10", "relation": "P2"}),
                ("getRelationsAsHead", {"entity": "Q6"}),
                ("getTailEntities", {"entity": "Q6", "relation": "P6"}),
            ],
        ),
        (
            films,
            "Which films have Fay Lund as director?",
            "Low Water",
            [
                ("getWikiDataID", {"title": "Fay Lund"}),
                ("getRelationsAsTail", {"entity": "Q6"}),
                ("getHeadEntities", {"entity": "Q6", "relation": "P10"}),
            ],
        ),
    ],
    ids=["tail", "two tails", "head"],
)
def test_the_steps_are_repeated_from_another_entity(
    shown: Any, question: str, answer: str, calls: list[tuple[str, dict[str, str]]], without_meaning: ToolContext
) -> None:
    given_answer, steps = follow(without_meaning, shown(without_meaning), question)
    assert given_answer == answer
    assert [(step.tool, step.arguments) for step in steps] == calls


def test_ids_of_entities_and_relations_come_from_observations(without_meaning: ToolContext) -> None:
    question = "What is the date of birth of the mother of Jan Reed?"
    _, steps = follow(without_meaning, birth_of_the_mother(without_meaning), question)
    data_by_step: dict[int, Any] = {}
    for step in steps:
        for name, value in step.arguments.items():
            assert resolve_origin(step.origins[name], question, data_by_step) == value
            assert step.origins[name]["from"] == ("question" if name == "title" else "step")
        data_by_step[step.position] = step.data


def test_an_entity_without_the_relation_is_refused_and_no_answer_is_made_up(without_meaning: ToolContext) -> None:
    failure, steps = follow(without_meaning, mother(without_meaning), "Who is the mother of Hugo Reed?")
    assert failure.startswith("I can't follow any demonstration here: nothing was found")
    assert [step.tool for step in steps] == ["getWikiDataID", "getRelationsAsHead"]


def test_a_relation_with_another_id_in_another_world_is_found_by_its_label(
    tmp_path: Path, without_meaning: ToolContext
) -> None:
    file = tmp_path / "other.ttl"
    file.write_text(
        """@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        wd:P2 rdfs:label "weight"@en . wd:P25 rdfs:label "mother"@en .
        wd:Q70 rdfs:label "Ira Holm"@en ; wdt:P2 60 ; wdt:P25 wd:Q71 . wd:Q71 rdfs:label "Una Holm"@en .""",
        encoding="utf-8",
    )
    build_world(tmp_path, "other", WorldContents(graph=file))
    other = replace(without_meaning, world=open_world(tmp_path, "other"))
    answer, steps = follow(other, mother(without_meaning), "Who is the mother of Ira Holm?")
    assert (answer, steps[-1].arguments) == ("Una Holm", {"entity": "Q70", "relation": "P25"})


@pytest.mark.parametrize("name", sorted({*readable_formats()} & {*writable_formats()}))
def test_exported_steps_are_imported_with_their_arguments(
    name: str, tmp_path: Path, without_meaning: ToolContext
) -> None:
    record = birth_of_the_mother(without_meaning)
    file = tmp_path / "traces"
    with file.open("wb") as stream:
        find_writer(name)(TraceExport([record]), stream)
    (imported,) = [read for read in read_traces(file, name) if isinstance(read, TraceRecord)]
    assert [(s.tool, s.arguments) for s in imported.steps if s.tool] == [(s.tool, s.arguments) for s in record.steps]
    assert [s.observation for s in imported.steps if s.tool] == [s.observation for s in record.steps]
    if name == "showhow":
        assert [(s.data, s.origins) for s in imported.steps] == [(s.data, s.origins) for s in record.steps]
        assert json.dumps(imported.steps[2].data) == json.dumps(record.steps[2].data)
