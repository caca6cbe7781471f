"""Runs as logs of Inspect and back; a log that Inspect wrote is recorded beside the trace formats."""

import io
import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from showhow.db.database import Conflict, Database, RowNotFound
from showhow.db.models import Run, Step, Trace
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.questions.projects import create_project
from showhow.db.runs import attempts, comparisons
from showhow.db.runs.comparisons import IMPORTED_RUN_NAME
from showhow.db.storage.schema import upgrade
from showhow.db.traces.model_calls import ModelReply, ModelRequest, begin_model_call, complete_model_call
from showhow.db.traces.traces import load_trace
from showhow.evaluation.comparison.comparison import compare_runs
from showhow.evaluation.verification.inspect_import import import_inspect_log
from showhow.evaluation.verification.inspect_runs import (
    JOINED_TARGETS,
    NOT_A_NUMBER,
    OTHER_TARGET,
    OUT_OF_RANGE,
    write_inspect_log,
)
from showhow.fewshot_library.formats.format import FormatError
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.fixtures.compared_runs import F1, ComparedRuns, draw_outcomes, make_questions

RECORDED = Path(__file__).parents[1] / "fewshot_library" / "recorded"


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    environ = {"SHOWHOW_HOME": str(tmp_path)}
    made = Services(Settings.from_env(environ), environ)
    upgrade(made.database)
    yield made
    made.close()


def add_project(services: Services, name: str) -> None:
    with services.database.begin() as session:
        create_project(session, name, "made")


def made_run(database: Database) -> tuple[ComparedRuns, Run]:
    """A run with repetitions whose answers ended in every way; one question has two gold answers."""

    made = make_questions(database, 12, seed=3)
    with database.begin() as session:
        two = session.get_one(type(made.questions[0]), made.questions[0].id)
        two.gold_answers = [{"text": "Ada", "entity": "Q7"}, {"text": "Bo", "entity": None, "aliases": ["Bob"]}]
        made.questions[0].gold_answers = two.gold_answers
    outcomes = draw_outcomes(made.questions, 2, random.Random(5))
    return made, made.add_run(made.questions, outcomes, repetitions=2, model="openai:gpt", options={"k": 3})


def write(database: Database, run_id: UUID, file: Path) -> Any:
    with file.open("wb") as stream:
        return write_inspect_log(database, run_id, stream, packed=file.suffix == ".eval")


def answers_of(database: Database, run_id: UUID) -> list[tuple[Any, ...]]:
    """What is compared of a run: question, repetition, ending, answer, failure, usage and scores of each answer."""
    rows = []
    with database.read() as session:
        for attempt, scores in comparisons.iterate_scored_attempts(session, run_id):
            if attempt.ending in (None, "stopped"):
                continue
            record = load_trace(session, attempt.trace_id)
            usage = [getattr(attempt, name) for name in ("model_calls", "input_tokens", "output_tokens", "cost")]
            rows.append(
                (
                    record.question.text,
                    record.question.gold_answers,
                    record.question.kind,
                    record.question.details,
                    attempt.repetition,
                    attempt.ending,
                    record.trace.final_answer,
                    record.trace.failure,
                    *usage,
                    attempt.seconds,
                    [(score.metric, score.metric_version, score.value) for score in scores if score.metric == "f1"],
                )
            )
    return sorted(rows, key=lambda row: (row[0], row[4]))


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_a_run_that_is_exported_and_imported_elsewhere_is_the_same(services: Services, tmp_path: Path, suffix: str):
    made, run = made_run(services.database)
    file = tmp_path / f"run{suffix}"
    losses = write(services.database, run.id, file)
    left = sum(row.ending in (None, "stopped") for row in made.answers)
    assert losses.written == len(made.answers) - left
    assert losses.lost["an attempt that has not ended"] == left
    assert losses.lost[JOINED_TARGETS] == sum(
        row.question == made.questions[0].id and row.ending not in (None, "stopped") for row in made.answers
    )
    add_project(services, "Elsewhere")
    report = import_inspect_log(services, file, "Elsewhere")
    assert report.answers == losses.written
    assert not report.refused
    assert not report.losses
    # An answer without a score gets one when it is imported, and only that differs.
    before, after = answers_of(services.database, run.id), answers_of(services.database, report.run_id)
    assert [row[:-1] for row in after] == [row[:-1] for row in before]
    for row, original in zip(after, before, strict=True):
        assert original[-1] in ([], row[-1])
    with services.database.read() as session:
        imported = session.get_one(Run, report.run_id)
    assert (imported.name, imported.reasoner, imported.spec.model) == (IMPORTED_RUN_NAME, "replay", "openai:gpt")
    assert (imported.spec.options, imported.world, imported.spec.world_hash) == ({"k": 3}, "made", "w1")


def test_a_sample_of_skills_has_their_prompts_as_events_and_the_answer_once(services: Services, tmp_path: Path):
    _, run = made_run(services.database)
    sent = [{"role": "system", "content": "Make a plan."}, {"role": "user", "content": "Who?"}]
    reply = {"tree": "born(x)"}
    with services.database.begin() as session:
        scored = next(
            entry
            for entry in comparisons.iterate_scored_attempts(session, run.id)
            if entry.attempt.ending == "answered"
        )
        trace = session.get_one(Trace, scored.attempt.trace_id)
        trace.final_answer, trace.final_thought = "Zanzibar", "So the answer is: Zanzibar. [step 1]"
        step = Step(trace_id=trace.id, position=1, thought="I think.", skill="plan/1", data={"reply": reply})
        step.observation = "born(x)"
        session.add(step)
        session.flush()
        call = begin_model_call(session, ModelRequest("skill:plan", "gpt", sent), trace_id=trace.id, step_id=step.id)
        complete_model_call(session, call.id, ModelReply({"text": json.dumps(reply), "calls": [], "stopped": "stop"}))
    losses = write(services.database, run.id, tmp_path / "run.json")
    assert losses.lost["a step's thought"] == 1
    samples = json.loads((tmp_path / "run.json").read_text())["samples"]
    (sample,) = (sample for sample in samples if "events" in sample)
    assert [message["role"] for message in sample["messages"]] == ["user", "assistant"]
    assert sample["messages"][-1] == {"role": "assistant", "content": "Zanzibar", "source": "generate"}
    (event,) = sample["events"]
    assert event["input"] == sent
    assert json.loads(event["output"]["choices"][0]["message"]["content"]) == reply
    # The method's own words are no message.
    assert "So the answer is" not in json.dumps(sample)
    assert "I think." not in json.dumps(sample)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_a_run_that_was_asked_for_no_answers_is_the_same_after_export_and_import(
    services: Services, tmp_path: Path, suffix: str
):
    made = make_questions(services.database, 3)
    outcomes: dict[tuple[UUID, int], dict[str, Any]] = {
        (question.id, 1): {"ending": ending, "answer": answer}
        for question, ending, answer in zip(
            made.questions, ("answered", "failed", "limit"), ("", None, None), strict=True
        )
    }
    run = made.add_run(made.questions, outcomes)
    write(services.database, run.id, tmp_path / f"run{suffix}")
    with services.database.begin() as session:
        create_project(session, "Elsewhere", "made", answer_format=AnswerFormat(AnswerKind.NONE))
    report = import_inspect_log(services, tmp_path / f"run{suffix}", "Elsewhere")
    before, after = answers_of(services.database, run.id), answers_of(services.database, report.run_id)
    assert [row[:-1] for row in after] == [row[:-1] for row in before]
    assert [row[5:8] for row in after] == [
        ("answered", "", None),
        ("failed", None, "it cannot"),
        ("limit", None, "it cannot"),
    ]


def test_a_sample_of_a_project_without_answers_failed_only_with_an_error(services: Services, tmp_path: Path):
    def change(log: dict[str, Any]) -> None:
        log["samples"] = log["samples"][:2]
        for sample in log["samples"]:
            sample["output"] = {}
        log["samples"][1]["error"] = {"message": "broken", "traceback": "", "traceback_ansi": ""}

    with services.database.begin() as session:
        create_project(session, "Theirs", "made", answer_format=AnswerFormat(AnswerKind.NONE))
    report = import_inspect_log(services, changed_log(tmp_path, change), "Theirs")
    endings = [row[5:8] for row in answers_of(services.database, report.run_id)]
    assert sorted(endings, key=lambda row: row[0]) == [("answered", "", None), ("failed", None, "broken")]


def test_an_imported_log_is_compared_with_the_run_that_it_was(services: Services, tmp_path: Path):
    made = make_questions(services.database, 8, seed=4)
    outcomes = {
        (question.id, 1): {"ending": "answered", "score": float(number % 2)}
        for number, question in enumerate(made.questions)
    }
    run = made.add_run(made.questions, outcomes)
    write(services.database, run.id, tmp_path / "run.eval")
    report = import_inspect_log(services, tmp_path / "run.eval", made.project.name)
    assert report.new_questions == 0
    comparison = compare_runs(services.database, [run.id, report.run_id], run.id, F1)
    assert comparison.warnings == []
    assert comparison.differences[report.run_id].paired.ties == 8
    with pytest.raises(Conflict, match="imported already"):
        import_inspect_log(services, tmp_path / "run.eval", made.project.name)


def test_a_log_that_inspect_wrote_is_a_run_with_the_scores_of_its_scorer(services: Services):
    add_project(services, "Theirs")
    report = import_inspect_log(services, RECORDED / "inspect_log.eval", "Theirs")
    assert (report.answers, report.new_questions, dict(report.scores)) == (2, 2, {"includes": 2})
    with services.database.read() as session:
        run = comparisons.find_comparable_run(session, report.run_id)
        scores = {
            (attempt.model_calls > 0, score.metric, score.value)
            for attempt, stored in comparisons.iterate_scored_attempts(session, run.id)
            for score in stored
        }
        questions = attempts.list_asked_questions(session, run.id)
    # Showhow's own metrics are computed, since all questions have gold answers.
    assert {metric for _, metric, _ in scores} == {"includes", "f1", "official_f1"}
    assert (True, "includes", 1.0) in scores
    aliases = [[gold.get("aliases") for gold in question.gold_answers] for question in questions]
    assert aliases == [[["Ada"]], [None]]
    assert (run.spec.model, run.finished_at is not None) == ("mockllm/model", True)


def changed_log(tmp_path: Path, change: Any) -> Path:
    log = json.loads((RECORDED / "inspect_log.json").read_text())
    change(log)
    (tmp_path / "changed.json").write_text(json.dumps(log))
    return tmp_path / "changed.json"


@pytest.mark.parametrize(
    ("value", "stored", "lost"),
    [
        ("C", {"x": 1.0}, {}),
        ("P", {"x": 0.5}, {}),
        (False, {"x": 0.0}, {}),
        ("0.25", {"x": 0.25}, {}),
        ({"a": 1, "b": "I"}, {"x.a": 1.0, "x.b": 0.0}, {}),
        ([1, 0], {"x.1": 1.0, "x.2": 0.0}, {}),
        ("good", {}, {NOT_A_NUMBER: 1}),
        (7, {}, {OUT_OF_RANGE: 1}),
    ],
)
def test_scores_of_every_form_are_read_or_counted(
    services: Services, tmp_path: Path, value: Any, stored: dict[str, float], lost: dict[str, int]
):
    def change(log: dict[str, Any]) -> None:
        log["samples"] = log["samples"][:1]
        log["samples"][0]["scores"] = {"x": {"value": value}}

    add_project(services, "Theirs")
    report = import_inspect_log(services, changed_log(tmp_path, change), "Theirs")
    assert dict(report.losses) == lost
    assert dict(report.scores) == dict.fromkeys(stored, 1)
    with services.database.read() as session:
        ((_, scores),) = comparisons.iterate_scored_attempts(session, report.run_id)
    assert {score.metric: score.value for score in scores if score.metric.startswith("x")} == stored


def test_a_scorer_with_the_name_of_a_metric_is_not_taken_for_it(services: Services, tmp_path: Path):
    add_project(services, "Theirs")
    file = changed_log(tmp_path, lambda log: [s.update(scores={"f1": {"value": 0.9}}) for s in log["samples"]])
    report = import_inspect_log(services, file, "Theirs")
    assert dict(report.scores) == {"inspect/f1": 2}


def test_the_gold_answers_of_a_known_question_count(services: Services, tmp_path: Path):
    add_project(services, "Theirs")
    import_inspect_log(services, RECORDED / "inspect_log.eval", "Theirs")

    def change(log: dict[str, Any]) -> None:
        log["eval"]["run_id"] = "another"
        log["samples"][0]["target"] = "Zoe"

    report = import_inspect_log(services, changed_log(tmp_path, change), "Theirs")
    assert (report.new_questions, dict(report.losses)) == (0, {OTHER_TARGET: 1})


def test_a_sample_with_an_error_or_without_an_answer_failed(services: Services, tmp_path: Path):
    def change(log: dict[str, Any]) -> None:
        log["samples"][0]["error"] = {"message": "out of time", "traceback": "", "traceback_ansi": ""}
        log["samples"][1]["output"]["completion"] = ""
        log["samples"][1]["messages"] = log["samples"][1]["messages"][:2]

    add_project(services, "Theirs")
    report = import_inspect_log(services, changed_log(tmp_path, change), "Theirs")
    with services.database.read() as session:
        rows = comparisons.iterate_attempt_rows(session, [report.run_id], F1)
        endings = sorted((row.ending, row.failure, row.answer) for row in rows)
    assert endings == [("failed", "out of time", None), ("failed", "the sample of the log has no answer", None)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda log: log.update(samples=[]), "it has no samples"),
        (lambda log: log.pop("eval"), "eval: field required"),
        (lambda log: log["samples"].append(log["samples"][0]), "occurs twice"),
        (lambda log: [sample.pop("messages") for sample in log["samples"]], "messages: field required"),
    ],
)
def test_nothing_of_a_malformed_log_is_imported(services: Services, tmp_path: Path, change: Any, reason: str):
    add_project(services, "Theirs")
    with pytest.raises(FormatError, match=reason):
        import_inspect_log(services, changed_log(tmp_path, change), "Theirs")
    with services.database.read() as session:
        assert comparisons.list_comparable_runs(session) == []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["eval", "metadata"], "none"),
        (["eval", "metadata"], {"showhow": {"options": [1]}}),
        (["eval", "config"], {"epochs": "two"}),
        (["samples", 0, "metadata"], [1]),
        (["samples", 0, "metadata"], {"showhow": {"question": {"gold_answers": [{"name": "Ada"}]}}}),
        (["samples", 0, "metadata"], {"showhow": {"usage": {"cost": "much"}}}),
        (["samples", 0, "metadata"], {"showhow": {"usage": {"calls": 10**30}}}),
        (["samples", 0, "metadata"], {"showhow": {"sources": {"id": "x"}}}),
        (["samples", 0, "scores"], {"includes": 1.0}),
        (["samples", 0, "scores"], {"includes": {"value": 1.0, "metadata": {"showhow": {"version": "new"}}}}),
        (["samples", 0, "model_usage"], {"mockllm/model": {"input_tokens": "many"}}),
        (["samples", 0, "total_time"], "long"),
        (["samples", 0, "epoch"], 10**9),
        (["samples", 0, "epoch"], 0),
    ],
)
def test_a_field_of_another_shape_is_named_and_its_sample_left_out(
    services: Services, tmp_path: Path, place: list[Any], value: Any
):
    def change(log: dict[str, Any]) -> None:
        *containers, last = place
        for key in containers:
            log = log[key]
        log[last] = value

    add_project(services, "Theirs")
    file = changed_log(tmp_path, change)
    if place[0] == "eval":
        with pytest.raises(FormatError, match=f"no sample that can be read .*{place[1]}"):
            import_inspect_log(services, file, "Theirs")
        return
    report = import_inspect_log(services, file, "Theirs")
    assert report.answers == 1
    (refusal,) = report.refused
    assert "sample 1" in refusal.place
    assert refusal.reason.startswith(place[2])


def test_a_log_that_is_nested_too_deeply_is_refused_in_one_sentence(services: Services, tmp_path: Path):
    add_project(services, "Theirs")
    with zipfile.ZipFile(tmp_path / "deep.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "t"}, "version": 2}))
        archive.writestr("samples/1_epoch_1.json", "[" * 200_000 + "]" * 200_000)
    with pytest.raises(FormatError, match="nested too deeply"):
        import_inspect_log(services, tmp_path / "deep.eval", "Theirs")


def test_a_damaged_or_foreign_archive_is_refused_in_one_sentence(services: Services, tmp_path: Path):
    add_project(services, "Theirs")
    whole = (RECORDED / "inspect_log.eval").read_bytes()
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("readme.txt", "no log")
    with zipfile.ZipFile(RECORDED / "inspect_log.eval") as archive:
        start = next(member.header_offset for member in archive.infolist() if member.filename.startswith("samples/"))
    spoilt = whole[: start + 300] + bytes(50) + whole[start + 350 :]
    for content in (whole[:3000], empty.getvalue(), b"PK\x03\x04" + bytes(50), spoilt):
        (tmp_path / "x.eval").write_bytes(content)
        with pytest.raises(FormatError) as refusal:
            import_inspect_log(services, tmp_path / "x.eval", "Theirs")
        assert "x.eval" in str(refusal.value)
        assert "\n" not in str(refusal.value)
    with pytest.raises(RowNotFound, match="there is no project"):
        import_inspect_log(services, RECORDED / "inspect_log.eval", "Nowhere")
