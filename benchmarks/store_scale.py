"""Store latency at scale: pages over 100,000 traces with 1,000,000 steps, figures of a run with 1,000,000 attempts.

Then 8 runs over 100,000 questions are compared, as on the Compare page, and 5 people who answered 10,000 questions.
"""

import resource
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from showhow.db.database import Database
from showhow.db.models import Attempt, Project, Question, Run, Score, Step, Trace
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import queue, review_queue
from showhow.db.run_spec import RunSpec
from showhow.db.runs import comparisons, runs
from showhow.db.runs.comparisons import ComparisonFilter, MetricVersion
from showhow.db.runs.verifications import VERIFICATION_NAME
from showhow.db.serialization import field_values, insert_rows
from showhow.db.storage.schema import upgrade
from showhow.db.traces import traces as trace_store
from showhow.evaluation.comparison.comparison import compare_runs
from showhow.evaluation.comparison.project_agreement import load_shared_work, measure_units
from showhow.evaluation.metrics import ANSWER_F1, METRICS, Metric
from showhow.evaluation.scoring.scoring import load_verification_report

QUESTION_COUNT, STEP_COUNT, PERSON_COUNT, REPEAT_COUNT, BATCH_SIZE = 100_000, 10, 50, 20, 2_000
ATTEMPT_COUNT = 1_000_000
COMPARED_RUN_COUNT = 8
TEAM_SIZE, TEAM_QUESTIONS, TEAM_STEPS = 5, 10_000, 4
START_TIME = datetime(2026, 1, 1, tzinfo=UTC)
STATUSES = ("approved", "submitted", "approved", "rejected", "approved", "submitted", "failed", "approved")
TOOLS = ("wikisearch", "read", "getWikiDataID", "generateQuery", "runQuery", "getLabel", "websearch")
OBSERVATION = (
    "The quay was built in 1824 and rebuilt after the flood; its architect is buried in the chapel above it. " * 4
)
STEP_VALUES = field_values(
    Step(
        trace_id=UUID(int=0),
        position=0,
        thought="I need to know who built it.",
        tool="read",
        arguments={"title": "The quay", "question": "Who built it?"},
        origins={"title": {"from": "step", "step": 1, "pointer": "/hits/0/title"}},
        observation=OBSERVATION,
        data={"hits": [{"title": "The quay", "snippet": OBSERVATION}]},
        latency=0.02,
        finished_at=START_TIME,
    )
)


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Fill a store and time the queries of the Annotate and Review pages."""
    del data  # generated rows suffice
    database = Database(f"sqlite:///{home / 'scale.db'}")
    upgrade(database)
    started = time.perf_counter()
    project_id, people, traces = fill_store(database, QUESTION_COUNT, STEP_COUNT)
    size = f"{QUESTION_COUNT:,} traces, {QUESTION_COUNT * STEP_COUNT:,} steps"
    yield _scale_result("store_fill", size, time.perf_counter() - started, "s", "bulk inserts")
    for name, query in store_queries(database, project_id, people, traces).items():
        times = [_time_ms(query, number) for number in range(REPEAT_COUNT)]
        note = f"median of {REPEAT_COUNT}, worst {max(times):.1f} ms"
        yield _scale_result(name, size, statistics.median(times), "ms", note)
    yield from _measure_attempts(database, project_id)
    yield from _measure_comparison(database, project_id)
    yield from measure_project_agreement(database, people[:TEAM_SIZE])
    database.close()


def _measure_attempts(database: Database, project_id: UUID) -> Iterator[dict[str, Any]]:
    """The figures of the Verify page for one run of ATTEMPT_COUNT attempts with a score by each metric."""
    started = time.perf_counter()
    run = fill_attempts(database, project_id, ATTEMPT_COUNT // QUESTION_COUNT)
    size = f"{ATTEMPT_COUNT:,} attempts, {len(METRICS) * ATTEMPT_COUNT:,} scores"
    yield _scale_result("attempts_fill", size, time.perf_counter() - started, "s", "bulk inserts")
    times = [_time_ms(lambda _: load_verification_report(database, run), number) for number in range(5)]
    yield _scale_result(
        "attempt_figures", size, statistics.median(times), "ms", f"median of 5, worst {max(times):.1f} ms"
    )


def _measure_comparison(database: Database, project_id: UUID) -> Iterator[dict[str, Any]]:
    """COMPARED_RUN_COUNT runs over all questions: their comparison, and the first page of questions that differ."""
    stored = [fill_attempts(database, project_id, 1, shift).id for shift in range(COMPARED_RUN_COUNT)]
    size = f"{COMPARED_RUN_COUNT} runs, {QUESTION_COUNT:,} questions"
    metric = MetricVersion(ANSWER_F1.name, ANSWER_F1.version)
    cpu = time.process_time()
    times = [_time_ms(lambda _: compare_runs(database, stored, stored[0], metric), number) for number in range(3)]
    cpu = (time.process_time() - cpu) / len(times)
    note = f"median of 3, first {times[0]:.0f} ms, uncached; {cpu:.1f} s of processor time"
    yield _scale_result("compare_runs", size, statistics.median(times), "ms", note)

    def list_gains(_number: int) -> None:
        pair, gains = (stored[1], stored[0]), ComparisonFilter(verdict="gain")
        with database.read() as session:
            comparisons.count_compared_questions(session, pair, metric, gains)
            comparisons.list_compared_questions(session, pair, metric, gains)

    times = [_time_ms(list_gains, number) for number in range(3)]
    yield _scale_result("compare_questions", size, statistics.median(times), "ms", "median of 3, gains of one run")


def measure_project_agreement(database: Database, people: list[UUID]) -> Iterator[dict[str, Any]]:
    """TEAM_SIZE people who answered the same questions: what they did is read, then measured."""
    project = fill_team(database, people)
    size = f"{TEAM_QUESTIONS:,} questions, {len(people)} people, {TEAM_STEPS} steps each"
    started = time.perf_counter()
    units = load_shared_work(database, project)
    yield _scale_result("agreement_read", size, time.perf_counter() - started, "s", "three queries")
    for measure, parts in units.items():
        started = time.perf_counter()
        entry = measure_units(measure, parts)
        note = "no pair" if entry is None else f"alpha {entry.agreement.alpha}, {entry.agreement.interval}"
        yield _scale_result(f"agreement_{measure}", size, time.perf_counter() - started, "s", note)


def fill_team(database: Database, people: list[UUID]) -> Project:
    """Store a project whose questions all of the people have answered, every third one alike."""
    with database.begin() as session:
        project = projects.create_project(session, "team", "none")
    for first in range(0, TEAM_QUESTIONS, BATCH_SIZE):
        with database.begin() as session:
            questions = [question_row(project, number) for number in range(first, first + BATCH_SIZE)]
            insert_rows(session, Question, questions)
            made = [
                {**trace_row(question["id"], people, number), "status": "submitted", "final_answer": f"Quay {answer}"}
                for question in questions
                for number in range(len(people))
                for answer in [question["position"] * 7 + (number if question["position"] % 3 else 0)]
            ]
            insert_rows(session, Trace, made)
            insert_rows(
                session,
                Step,
                [
                    {**step_row(trace["id"], number), "arguments": {"title": trace["final_answer"]}}
                    for trace in made
                    for number in range(1, TEAM_STEPS + 1)
                ],
            )
    return project


def fill_attempts(database: Database, project_id: UUID, repetitions: int, shift: int = 0) -> Run:
    """Store a run that asked every question so often; one in ten was refused. `shift` moves which ones are right."""
    spec = RunSpec(reasoner="replay", project_id=project_id)
    run = Run(name=VERIFICATION_NAME, reasoner="replay", world="none", spec=spec)
    with database.begin() as session:
        runs.start_run(session, run)
        questions = projects.list_questions(session, project_id, limit=QUESTION_COUNT)
    for repetition in range(1, repetitions + 1):
        with database.begin() as session:
            rows = [attempt_row(run, question.id, number, repetition) for number, question in enumerate(questions, 1)]
            insert_rows(session, Attempt, rows)
            answered = [row for row in rows if row["ending"] == "answered"]
            scores = [score_row(row, metric, shift) for metric in METRICS.values() for row in answered]
            insert_rows(session, Score, scores)
    return run


def attempt_row(run: Run, question_id: UUID, number: int, repetition: int) -> dict[str, Any]:
    """A finished attempt at a question of one of twelve kinds."""
    usage = {"model_calls": 5, "input_tokens": 4_000 + number % 977, "output_tokens": 300, "cost": 0.01, "seconds": 9.5}
    attempt = Attempt(
        run_id=run.id, question_id=question_id, position=number, repetition=repetition, kind=f"kind {number % 12}"
    )
    ending = "refused" if number % 10 == 0 else "answered"
    return field_values(attempt) | usage | {"state": "ended", "ending": ending}


def score_row(attempt: dict[str, Any], metric: Metric, shift: int) -> dict[str, Any]:
    """The score of an attempt's answer."""
    values = {name: attempt[name] for name in ("run_id", "kind")}
    value = (attempt["position"] * (shift + 1) % 5) / 4
    return field_values(
        Score(**values, attempt_id=attempt["id"], metric=metric.name, metric_version=metric.version, value=value)
    )


def store_queries(
    database: Database, project_id: UUID, people: list[UUID], traces: list[UUID]
) -> dict[str, Callable[[int], Any]]:
    """The timed queries by result name; each takes the repetition number, so that no two are identical."""

    def open_queue(number: int) -> None:
        person = people[number % PERSON_COUNT]
        with database.begin() as session:
            queue.list_drafts(session, project_id, person)
            queue.list_returned_traces(session, project_id, person)
            queue.next_question(session, project_id, person)
            queue.measure_progress(session, project_id, person)

    def open_review(number: int) -> None:
        with database.read() as session:
            review_queue.count_by_status(session, project_id)
            chosen = review_queue.ReviewFilter()
            rows = review_queue.list_questions_to_review(session, project_id, chosen)
            review_queue.list_answers(session, [row.id for row in rows if row.answers > 1], chosen.by)
            page = rows[number % 3 * 25 : number % 3 * 25 + 25]
            review_queue.list_traces_to_review(session, [row.id for row in page], chosen.by)

    def open_trace(number: int) -> None:
        with database.read() as session:
            trace_store.load_trace(session, traces[number * len(traces) // REPEAT_COUNT])

    return {
        "store_queue": open_queue,
        "store_review": open_review,
        "store_open_trace": open_trace,
    }


def fill_store(database: Database, count: int, steps: int) -> tuple[UUID, list[UUID], list[UUID]]:
    """Create a project with two traces per second question; returns ids of the project, users and traces."""
    with database.begin() as session:
        people = [users.register_user(session, f"annotator {n}").id for n in range(PERSON_COUNT)]
        project = projects.create_project(session, "scale", "none")
    traces: list[UUID] = []
    for first in range(0, count, BATCH_SIZE):
        with database.begin() as session:
            question_rows = [question_row(project, n) for n in range(first, first + BATCH_SIZE)]
            insert_rows(session, Question, question_rows)
            trace_rows = [trace_row(question_rows[n // 2 * 2]["id"], people, first + n) for n in range(BATCH_SIZE)]
            insert_rows(session, Trace, trace_rows)
            insert_rows(session, Step, [step_row(trace["id"], n) for trace in trace_rows for n in range(1, steps + 1)])
            traces += [trace["id"] for trace in trace_rows]
    return project.id, people, traces


def question_row(project: Project, number: int) -> dict[str, Any]:
    """A question row; every second one is completed."""
    text = f"Who is buried in the chapel above quay number {number}?"
    return field_values(Question(project_id=project.id, position=number + 1, text=text, completed=1 - number % 2))


def trace_row(question_id: UUID, people: list[UUID], number: int) -> dict[str, Any]:
    """A submitted trace row, authors in rotation; one in 2,000 is still a draft."""
    status = "draft" if number % 2_000 == 0 else STATUSES[number % len(STATUSES)]
    submitted_at = START_TIME + timedelta(seconds=number)
    return field_values(
        Trace(
            question_id=question_id,
            author_id=people[number % PERSON_COUNT],
            status=status,
            final_answer="its architect",
            started_at=submitted_at - timedelta(minutes=5),
            submitted_at=None if status == "draft" else submitted_at,
        )
    )


def step_row(trace_id: UUID, position: int) -> dict[str, Any]:
    """A step row of typical length; one in twenty failed, and two thirds of the others are rated."""
    key = uuid7()
    # The random bits of the key serve as the random number.
    number = key.int % 1_000_003
    step = {**STEP_VALUES, "id": key, "trace_id": trace_id, "position": position}
    step |= {"tool": TOOLS[number % len(TOOLS)], "latency": 0.001 * (1 + number % 5_000)}
    if number % 20 == 0:
        return {
            **step,
            "observation": None,
            "data": None,
            "error": f"There is no article titled {number}; search for it.",
        }
    return {**step, "rating": position % 5 + 1 if number % 3 else None}


def _time_ms(query: Callable[[int], Any], number: int) -> float:
    started = time.perf_counter()
    query(number)
    return (time.perf_counter() - started) * 1000


def _scale_result(name: str, size: str, value: float, unit: str, note: str) -> dict[str, Any]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"name": name, "size": size, "value": round(value, 2), "unit": unit, "peak_mb": round(peak), "note": note}
