"""Gold traces of a real small world, made with the real tools and checked against the world's facts."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from showhow.db.models import GENERATED_REASONER, Project
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.scoring.gold_demonstrations import make_demonstrations
from showhow.fiction.generator.build import generate_world
from showhow.fiction.questions.expressions import Fact, Named, encode_expression
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import WEB
from showhow.oracles.gold_traces import attempt
from showhow.oracles.gold_traces.attempt import iterate_sentences
from showhow.oracles.gold_traces.traces import GoldWorld, make_gold_trace
from showhow.reasoners.provenance import resolve_origin
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import ToolContext
from showhow.worlds.folder import WorldError
from showhow.worlds.open import open_world

OPTIONS = GenerationOptions(
    people=150, seed=4, depth=4, per_template=1, collisions=0.1, split="text=50,graph=35,web=15"
)
PROJECT = Project(name="gold", world="gold")


def some_meaning(texts: Sequence[str]) -> np.ndarray:
    """A bag-of-words encoder that loads no model."""
    rows = np.array([sum(_word(word) for word in text.casefold().split()) for text in texts], dtype=np.float32)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms == 0, 1, norms)


@cache
def _word(word: str) -> np.ndarray:
    return np.random.default_rng(crc32(word.encode())).standard_normal(64)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a world whose facts are spread over text, graph and web."""
    folder = tmp_path_factory.mktemp("home") / "worlds"
    generate_world(folder, "gold", OPTIONS)
    return folder


@pytest.fixture(scope="module")
def world(worlds: Path) -> GoldWorld:
    return GoldWorld(worlds / "gold", ToolContext(open_world(worlds, "gold"), some_meaning))


@pytest.fixture(scope="module")
def asked(worlds: Path) -> list[QuestionRecord]:
    return read_questions(worlds / "gold" / "questions.jsonl")


@pytest.fixture(scope="module")
def made(asked: list[QuestionRecord], world: GoldWorld) -> list[TraceRecord]:
    """The gold trace of every question."""
    return [make_gold_trace(record, world, PROJECT, place) for place, record in enumerate(asked, 1)]


def seen(record: TraceRecord) -> str:
    """All observed texts."""
    return json.dumps([step.data for step in record.steps], ensure_ascii=False)


def test_nearly_every_question_has_an_approved_gold_trace(made: list[TraceRecord]) -> None:
    outcomes = Counter((record.question.kind, record.trace.status) for record in made)
    kinds = {record.question.kind for record in made}
    assert len(kinds) >= 11
    assert all(outcomes[kind, "approved"] for kind in kinds)
    failed = [record for record in made if record.trace.status == "failed"]
    assert len(failed) <= len(made) // 20
    for record in failed:
        assert str(record.trace.final_thought).startswith("No gold trace: ")
        assert record.trace.final_answer is None


def test_a_gold_trace_is_complete_and_marked_as_generated(made: list[TraceRecord]) -> None:
    for record in made:
        assert list(record.find_inconsistencies()) == []
        assert (record.trace.reasoner, record.trace.result.generated) == (GENERATED_REASONER, True)
        for step in record.steps:
            assert step.thought
            assert step.tool in BUILT_IN_TOOLS
            assert step.finished_at is not None


def test_the_final_answer_is_the_gold_one_and_was_observed(made: list[TraceRecord]) -> None:
    for record in approved(made):
        gold = [answer["text"] for answer in record.question.gold_answers]
        assert record.trace.final_answer == ", ".join(gold)
        for answer in record.question.gold_answers:
            # Counts, yes and no follow from what was observed; days are spoken in texts.
            if answer["entity"] is not None:
                assert answer["entity"] in seen(record) or answer["text"] in seen(record)


def test_running_the_steps_again_gives_the_same_observations(made: list[TraceRecord], world: GoldWorld) -> None:
    for record in approved(made)[::3]:
        for step in record.steps:
            again = BUILT_IN_TOOLS[str(step.tool)].call(world.context, step.arguments).observation
            assert again is not None
            assert (again.text, again.data) == (step.observation, step.data)


def test_only_the_sources_that_the_question_needs_are_queried(made: list[TraceRecord]) -> None:
    of_source = {
        "text": {"wikisearch"},
        "graph": {"getWikiDataID", "generateQuery", "runQuery", "getLabel"},
        "web": {"websearch"},
    }
    used_together = Counter()
    for record in approved(made):
        needs = set(record.trace.result.needs)
        assert sorted(needs) in [sorted(combination) for combination in record.question.details["needs"]]
        used = {source for source, tools in of_source.items() if tools & {step.tool for step in record.steps}}
        read = {str(step.arguments["title"]).startswith("https:") for step in record.steps if step.tool == "read"}
        used |= {"web" if page else "text" for page in read}
        assert used <= needs
        used_together[len(used)] += 1
    assert set(used_together) == {1, 2, 3}


def test_every_origin_resolves_to_its_value(made: list[TraceRecord]) -> None:
    forms: Counter[str] = Counter()
    for record in made:
        data: dict[int, Any] = {}
        for step in record.steps:
            for name, origin in step.origins.items():
                for part_origin, value in placed(origin, step.arguments[name]):
                    assert resolve_origin(part_origin, record.question.text, data).casefold() == value.casefold()
                    forms[
                        part_origin["from"] + ("/span" if "pointer" in part_origin and "start" in part_origin else "")
                    ] += 1
            data[step.position] = step.data
    assert set(forms) == {"question", "step", "step/span"}


def placed(origin: dict[str, Any], value: Any) -> list[tuple[dict[str, Any], str]]:
    """Yield the origins that point at one text, with their values."""
    if origin["from"] == "typed":
        return []
    if origin["from"] != "parts":
        return [(origin, str(value).strip())]
    return [
        span
        for part in origin["parts"]
        for span in placed(
            part["origin"], value[part["item"]] if "item" in part else value[part["start"] : part["end"]]
        )
    ]


def part_of(value: Any, part: dict[str, Any]) -> str:
    return str(value[part["item"]] if "item" in part else value[part["start"] : part["end"]])


def approved(made: list[TraceRecord]) -> list[TraceRecord]:
    return [record for record in made if record.trace.status == "approved"]


def test_a_trace_whose_observations_lack_a_fact_is_failed_with_the_reason(
    asked: list[QuestionRecord], world: GoldWorld
) -> None:
    lone = {"text": "graph", "graph": "text", "web": "graph"}
    for record in asked:
        for needs in record.details["needs"]:
            if len(needs) == 1 and record.gold_answers:
                other = replace(record, details=record.details | {"needs": [[lone[needs[0]]]]})
                gold_trace = make_gold_trace(other, world, PROJECT, 1)
                assert gold_trace.trace.status == "failed"
                assert str(gold_trace.trace.final_thought).startswith("No gold trace: ")
                return
    raise AssertionError("no question needs one source only")


def test_a_trace_has_no_more_steps_than_allowed(
    asked: list[QuestionRecord], world: GoldWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "MAX_STEPS", 2)
    records = [make_gold_trace(record, world, PROJECT, 1) for record in asked[:12]]
    assert max(len(record.steps) for record in records) == 2
    assert any("more than 2 steps" in str(record.trace.final_thought) for record in records)


def test_selected_demonstrations_are_short_and_of_every_kind(
    asked: list[QuestionRecord], world: GoldWorld, made: list[TraceRecord]
) -> None:
    every = make_demonstrations(asked, world, PROJECT, len(asked))
    short = [record for record in approved(made) if 1 < len(record.steps) <= 12]
    assert sorted(record.question.text for record in every) == sorted(record.question.text for record in short)
    places = {record.text: place for place, record in enumerate(asked, 1)}
    assert all(record.question.position == places[record.question.text] for record in every)
    few = make_demonstrations(asked, world, PROJECT, 8)
    assert len(few) == 8
    assert {record.question.text for record in few} <= {record.question.text for record in every}
    assert len({record.question.kind for record in few}) >= 6


def test_wrong_facts_of_a_page_are_noted_in_the_next_thought(world: GoldWorld) -> None:
    web_universe = world.things_known_to(WEB).universe
    doubts = []
    for mark in (mark for marks in world.page_marks.values() for mark in marks if mark["fact"] in ("job", "hobby")):
        kind, row = world.things_known_to(WEB).items.locate(mark["person"]["entity"])
        assert kind == "person"
        if getattr(web_universe, mark["fact"])[row] >= 0:
            details = {"expression": encode_expression(Fact(mark["fact"], Named(row))), "needs": [["web"]]}
            asked = QuestionRecord("What?", kind="what", gold_answers=[mark["true"]], details=details)
            made = make_gold_trace(asked, world, PROJECT, 1)
            thoughts = [*(step.thought for step in made.steps), str(made.trace.final_thought)]
            doubts += [thought for thought in thoughts if f"says of {mark['person']['text']}" in thought]
    assert doubts
    assert all("is out of date." in thought or "is about somebody else of that name." in thought for thought in doubts)


def test_a_question_without_an_expression_is_an_error(asked: list[QuestionRecord], world: GoldWorld) -> None:
    for details in ({}, {"expression": {"op": "nothing"}, "needs": [["text"]]}):
        with pytest.raises(WorldError, match="does not say what it asks for"):
            make_gold_trace(replace(asked[0], details=details), world, PROJECT, 1)


def test_sentences_are_those_of_articles_and_of_snippets() -> None:
    data = {"sentences": ["A."], "hits": [{"snippet": "B."}], "pages": [{"snippet": "C."}]}
    assert list(iterate_sentences(data)) == ["A.", "B.", "C."]
