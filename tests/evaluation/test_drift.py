"""Drift of traces in changed worlds: exactly the changed steps are reported."""

from pathlib import Path

import pytest

from showhow.db.models import Project, Question, Step, Trace
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import utc_now
from showhow.evaluation.comparison.drift import check_trace_drift
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.reasoners.provenance import (
    collect_known_sentences,
    collect_known_values,
    find_origin,
    strip_ignored_fields,
)
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import ToolContext
from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import open_world

HARBOUR = Path(__file__).parents[1] / "tools"
QUESTION = "Where was the mother of Ada Reed born?"


def harbour(folder: Path, *, graph: tuple[str, str] = ("", "")) -> ToolContext:
    """The harbour world, with a replacement in its graph."""
    changed = folder / "changed.ttl"
    folder.mkdir(exist_ok=True)
    changed.write_text(
        (HARBOUR / "harbour.ttl").read_text().replace(*graph) if graph[0] else (HARBOUR / "harbour.ttl").read_text()
    )
    build_world(folder / "worlds", "harbour", WorldContents(read_articles(HARBOUR / "harbour.jsonl"), changed))
    return ToolContext(open_world(folder / "worlds", "harbour"), SentenceEncoder(BUNDLED_MODEL))


def record(context: ToolContext, calls: list[tuple[str, dict[str, object]]]) -> TraceRecord:
    """Record a trace of these calls, with the origins of their arguments."""
    project = Project(name="p", world="harbour")
    question = Question(project_id=project.id, position=1, text=QUESTION)
    trace = Trace(question_id=question.id, status="approved", final_answer="?")
    steps: list[Step] = []
    for position, (tool, arguments) in enumerate(calls, 1):
        data = {step.position: step.data for step in steps}
        values, sentences = collect_known_values(data), collect_known_sentences(data)
        outcome = BUILT_IN_TOOLS[tool].call(context, arguments)
        seen = outcome.observation
        steps.append(
            Step(
                trace_id=trace.id,
                position=position,
                tool=tool,
                arguments=arguments,
                origins={name: find_origin(value, QUESTION, values, sentences) for name, value in arguments.items()},
                observation=seen.text if seen else None,
                data=seen.data if seen else None,
                error=outcome.error,
                finished_at=utc_now(),
            )
        )
    return TraceRecord(project, question, trace, steps)


CALLS: list[tuple[str, dict[str, object]]] = [
    ("getWikiDataID", {"title": "Ada Reed"}),
    ("runQuery", {"sparql": "SELECT ?m WHERE { wd:Q1 wdt:P2 ?m }"}),
    ("runQuery", {"sparql": "SELECT ?p WHERE { wd:Q3 wdt:P8 ?p }"}),
    ("getLabel", {"ids": ["Q52"]}),
    ("wikisearch", {"query": "night ferry"}),
    ("read", {"title": "Nobody Atall", "question": "who"}),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> TraceRecord:
    """A trace of six steps, the last of which failed."""
    recorded_trace = record(harbour(tmp_path_factory.mktemp("before")), CALLS)
    assert [bool(step.error) for step in recorded_trace.steps] == [False] * 5 + [True]
    return recorded_trace


def states(drift):
    return [step.state for step in drift.steps]


def test_in_the_same_world_every_step_is_the_same(recorded, tmp_path):
    drift = check_trace_drift(recorded, harbour(tmp_path), BUILT_IN_TOOLS.get)
    assert states(drift) == ["same"] * 6
    assert drift.state == "same"
    assert drift.to_json()["steps"] == []


def test_a_changed_value_that_a_later_step_uses_breaks_the_trace(recorded, tmp_path):
    # Her mother is another one now, and it is her mother whose place of birth step 3 asks for.
    moved = harbour(tmp_path, graph=("wdt:P2 wd:Q3 ; wdt:P3 wd:Q4", "wdt:P2 wd:Q9 ; wdt:P3 wd:Q4"))
    drift = check_trace_drift(recorded, moved, BUILT_IN_TOOLS.get)
    assert states(drift) == ["same", "broken", "same", "same", "same", "same"]
    assert "the value that step 3 took from here as its sparql has changed" in drift.steps[1].why
    assert ("Cora Reed (Q3)" in drift.steps[1].before, 'Ines O"Shea (Q9)' in drift.steps[1].now) == (True, True)
    assert [step["position"] for step in drift.to_json()["steps"]] == [2]


def test_a_changed_value_that_no_later_step_uses_only_differs(recorded, tmp_path):
    described = harbour(tmp_path, graph=('"ferry pilot"@en', '"pilot of ferries"@en'))
    drift = check_trace_drift(recorded, described, BUILT_IN_TOOLS.get)
    assert states(drift) == ["differs", "same", "same", "same", "same", "same"]
    assert drift.state == "differs"


def test_a_new_failure_and_a_missing_tool_are_broken(recorded, tmp_path):
    line = next(line for line in (HARBOUR / "harbour.ttl").read_text().splitlines() if line.startswith("wd:Q52"))
    without = harbour(tmp_path, graph=(line, ""))
    gone = {name: tool for name, tool in BUILT_IN_TOOLS.items() if name != "wikisearch"}
    drift = check_trace_drift(recorded, without, gone.get)
    assert states(drift)[3:5] == ["broken", "broken"]
    assert drift.steps[3].why == "it did not fail before"
    assert drift.steps[4].why == "the tool wikisearch is not available"


def test_all_fields_but_scores_are_compared():
    assert strip_ignored_fields({"best": [{"place": 1, "score": 0.5}]}) == strip_ignored_fields(
        {"best": [{"place": 1, "score": 0.7}]}
    )
    assert strip_ignored_fields({"best": [{"place": 1}]}) != strip_ignored_fields({"best": [{"place": 2}]})
