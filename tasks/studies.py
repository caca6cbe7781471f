"""Make a blind study of the answers of runs, people and files, and report it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from showhow.db.models import Project, Question
from showhow.db.questions.projects import get_project, list_questions
from showhow.db.review import studies
from showhow.db.review.studies import ANSWERS, CLOSED, PROCESSES, Study
from showhow.db.review.study_answers import GivenAnswer, list_people_answers, list_run_answers
from showhow.db.runs.comparisons import list_comparable_runs
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import load_traces
from showhow.evaluation.comparison.study_design import (
    PairPlan,
    StudyQuestion,
    SystemAnswer,
    describe_scales,
    detectable_win_share,
    draw_items,
    draw_questions,
    hiding_pattern,
    pair_systems,
    sign_test_power,
)
from showhow.evaluation.metrics import ANSWER_F1
from showhow.evaluation.metrics.metric import ANSWER_FIELDS
from showhow.evaluation.scoring.prediction_files import PredictionFileError, find_id_field, read_rows
from showhow.option_fields import group, option
from showhow.runs.services import Services
from showhow.tasks.task import TaskError

PEOPLE = "people"
"""The source of a system that consists of people's traces."""
HUMANIQ = "humaniq"
HUMANIQ_SYSTEMS, HUMANIQ_STRATA, HUMANIQ_QUESTIONS = 5, 3, 50
SHORT, LONG = "short", "long"
STRATA = ("dataset", "kind")
MIN_HIDDEN_CHARACTERS = 3
"""A shorter name of a system, such as A, is a word of answers too, and is not hidden in them."""


def _check_choice(name: str, value: str, known: Collection[str]) -> None:
    if value and value not in known:
        raise TaskError(f"--{name} {value!r} is none of {', '.join(known)}; choose one of them")


def _check_shares(shares: Mapping[str, float]) -> None:
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise TaskError(f"--{name} is {share}; it is a share from 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDraw:
    """How the pairs of a study are drawn."""

    by: str = option("", f"Draw questions of each {' or '.join(STRATA)}; default: of all together.")
    questions: int | None = option(None, "Questions to draw, of each stratum; default: all.", minimum=1)
    every_pair: bool = option(default=False, help="Compare every pair; default: the first system with each other one.")
    within: float = option(0.1, "Share of comparisons that the same person judges again.", minimum=0, maximum=1)
    between: float = option(0.1, "Share of comparisons that another person judges, too.", minimum=0, maximum=1)
    seed: int = option(0, "The seed of questions, sides and order.")

    def check(self) -> None:
        """TaskError for a value out of bounds."""
        _check_choice("by", self.by, STRATA)
        _check_shares({"within": self.within, "between": self.between})
        if self.questions is not None and self.questions < 1:
            raise TaskError(f"--questions is {self.questions}; draw at least 1 of each stratum")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPower:
    """What is expected of a study's comparisons."""

    ties: float = option(0.4, "Expected share of ties, for the power.", minimum=0, maximum=0.99)
    win_share: float = option(0.65, "Expected share of wins among the decided, for the power.", minimum=0, maximum=1)

    def check(self) -> None:
        """TaskError for a value out of bounds."""
        _check_shares({"ties": self.ties, "win-share": self.win_share})


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeStudy:
    """A blind study of two or more systems over questions of a project."""

    name: str = option(help="The study's name.", is_argument=True)
    project: str = option(help="The project whose questions are judged.")
    system: tuple[str, ...] = option(
        (), f"LABEL=RUN, LABEL=FILE or LABEL={PEOPLE}, repeated: a run's id, answers as JSON Lines, people's traces."
    )
    preset: str = option("", f"{HUMANIQ}: the study of its paper, 5 systems on 50 questions of each of 3 data sets.")
    mode: str = option(ANSWERS, f"{ANSWERS}, or {PROCESSES}: which trace is nearer to a person's?")
    length: str = option(SHORT, f"{SHORT} answers, or {LONG}: the written responses of runs.")
    metric: str = option("", "The metric of runs beside which the manual score stands.")
    search_minutes: float = option(5.0, "Minutes of search before an answer may be called one that cannot be judged.")
    hide: tuple[str, ...] = option((), "A name or phrase that would tell where an answer comes from; repeated.")
    draw: StudyDraw = group(StudyDraw, "How pairs are drawn")
    power: StudyPower = group(StudyPower, "Expected, for the power")

    def check(self) -> None:
        """TaskError for a value that is none of its choices, or out of bounds."""
        _check_choice("preset", self.preset, (HUMANIQ,))
        _check_choice("mode", self.mode, (ANSWERS, PROCESSES))
        _check_choice("length", self.length, (SHORT, LONG))
        self.draw.check()
        self.power.check()
        if self.search_minutes < 0:
            raise TaskError(f"--search-minutes is {self.search_minutes}; it is 0 or more")


@dataclass(frozen=True, slots=True)
class _System:
    name: str
    source: dict[str, str]
    answers: dict[str, SystemAnswer]
    hidden: tuple[str, ...] = ()


def make_study(services: Services, request: MakeStudy) -> Study:
    """Draw a study and store it as a draft; TaskError for systems that cannot be compared."""
    request.check()
    if request.preset == HUMANIQ:
        draw = replace(
            request.draw, by="dataset", questions=HUMANIQ_QUESTIONS, every_pair=False, within=0.1, between=0.1
        )
        request = replace(request, draw=draw)
    database = services.database
    with database.read() as session:
        project = get_project(session, request.project)
        questions = {str(question.id): question for question in list_questions(session, project.id, limit=None)}
        systems = [_read_system(session, project, questions, text, request) for text in request.system]
    names = [system.name for system in systems]
    if len(set(names)) != len(names) or len(names) < 2:
        raise TaskError("a study compares at least two systems with different labels; name each with --system")
    shared = [key for key in questions if all(key in system.answers for system in systems)]
    candidates = [
        StudyQuestion(key, questions[key].full_text, _stratum(questions[key], request.draw.by)) for key in shared
    ]
    answers: dict[str, Mapping[str, SystemAnswer]] = {system.name: system.answers for system in systems}
    if request.mode == PROCESSES:
        with database.read() as session:
            people = _choose_references(list_people_answers(session, project.id), answers)
        candidates = [question for question in candidates if question.key in people]
        if shared and not candidates:
            raise TaskError(
                "no person answered these questions besides the systems; processes are compared with theirs"
            )
    drawn = draw_questions(candidates, request.draw.questions, request.draw.seed)
    if not drawn:
        raise TaskError("no question was answered by all these systems; choose runs over the same questions")
    if request.mode == PROCESSES:
        drawn, answers = _take_processes(services, drawn, answers, people)
    hidden = sorted({*request.hide, *(name for system in systems for name in (system.name, *system.hidden))})
    hidden = [name for name in hidden if len(name) >= MIN_HIDDEN_CHARACTERS]
    if (pattern := hiding_pattern(hidden)) and (named := pattern.search(request.name)):
        raise TaskError(f"judges read the study's name, which names {named[0]!r}; choose another name")
    plan = PairPlan(
        pair_systems(names, every=request.draw.every_pair), request.draw.within, request.draw.between, hidden
    )
    items = draw_items(drawn, answers, plan, request.draw.seed)
    strata = {stratum: sum(question.stratum == stratum for question in drawn) for stratum in _strata_of(drawn)}
    if request.preset == HUMANIQ:
        _require_humaniq(names, strata)
    pairs = len(drawn)
    design = {
        "preset": request.preset or None,
        "mode": request.mode,
        "length": request.length,
        "systems": [{"name": system.name, **system.source} for system in systems],
        "pairs": [list(pair) for pair in plan.pairs],
        "primary": f"mean of win 1, tie 1/2, loss 0 of {names[0]} against {names[1]}, and the exact sign test",
        "questions": len(drawn),
        "left_out": len(questions) - len(shared),
        "strata": strata,
        "by": request.draw.by or None,
        "repeated": {way: sum(item.repeated_by == way for item in items) for way in (studies.SAME, studies.OTHER)},
        "planned": len(items),
        "power": {
            "comparisons": pairs,
            "ties": request.power.ties,
            "win_share": request.power.win_share,
            "power": sign_test_power(pairs, request.power.ties, request.power.win_share),
            "detectable_win_share": detectable_win_share(pairs, request.power.ties),
        },
        "search_minutes": request.search_minutes,
        "metric": _choose_metric(systems, request.metric),
        "hidden": hidden,
        "hidden_in": sum(
            side["shown"] != side["text"].strip() for item in items for side in (item.left_answer, item.right_answer)
        ),
        "scales": describe_scales(request.mode),
    }
    with database.begin() as session:
        study = Study(project_id=project.id, name=request.name, seed=request.draw.seed, design=design)
        return studies.save_study(session, request.project, study, items)


def _stratum(question: Question, by: str) -> str:
    return str(getattr(question, by) or "") if by else ""


def _strata_of(drawn: Sequence[StudyQuestion]) -> list[str]:
    return sorted({question.stratum for question in drawn})


def _require_humaniq(names: Sequence[str], strata: Mapping[str, int]) -> None:
    if len(names) != HUMANIQ_SYSTEMS or list(strata.values()) != [HUMANIQ_QUESTIONS] * HUMANIQ_STRATA:
        available = ", ".join(f"{number} of {stratum or 'no data set'}" for stratum, number in strata.items())
        raise TaskError(
            f"the preset {HUMANIQ} compares {HUMANIQ_SYSTEMS} systems on {HUMANIQ_QUESTIONS} questions of each of "
            f"{HUMANIQ_STRATA} data sets; these are {len(names)} systems, which all answered {available}"
        )


def _choose_metric(systems: Sequence[_System], chosen: str) -> str | None:
    scored = [{metric for answer in system.answers.values() for metric in answer.scores} for system in systems]
    known = sorted(set().union(*scored))
    if chosen and chosen not in known:
        raise TaskError(f"no answer is scored by {chosen!r}; the answers have {', '.join(known) or 'no score'}")
    return chosen or (ANSWER_F1.name if ANSWER_F1.name in known else next(iter(known), None))


def _read_system(
    session: Any, project: Project, questions: Mapping[str, Question], text: str, request: MakeStudy
) -> _System:
    name, _, source = text.partition("=")
    name, source = name.strip(), source.strip()
    if not name or not source:
        raise TaskError(f"--system {text!r} names no label or no source; write LABEL=RUN, LABEL=FILE or LABEL={PEOPLE}")
    if source == PEOPLE:
        return _System(name, {"source": PEOPLE}, _keep_given(list_people_answers(session, project.id), request))
    if Path(source).is_file():
        if request.mode == PROCESSES:
            raise TaskError(f"{source} has answers and no traces; compare the processes of runs and people")
        return _System(name, {"source": "file", "file": Path(source).name}, _read_file(Path(source), questions))
    plain = source.lower().replace("-", "")
    runs = [run for run in list_comparable_runs(session) if plain and run.id.hex.startswith(plain)]
    if len(runs) != 1:
        reason = "begins the ids of several runs" if runs else "is no run and no file"
        raise TaskError(f"--system {name}: {source!r} {reason}; `showhow runs list` lists the runs")
    model = runs[0].spec.model or ""
    given = list_run_answers(session, runs[0].id)
    if request.length == LONG and request.mode == ANSWERS:
        # A short answer beside a long one would be told from it by its length.
        given = [answer for answer in given if answer.response]
        if not given:
            raise TaskError(f"--system {name}: no answer of this run has a written response; compare short answers")
    kept = _keep_given(given, request)
    return _System(name, {"source": "run", "run": str(runs[0].id)}, kept, (model, model.rpartition(":")[2]))


def _keep_given(given: Iterable[GivenAnswer], request: MakeStudy) -> dict[str, SystemAnswer]:
    """The first answer to each question; of a process, the trace may also end without one."""
    answers: dict[str, SystemAnswer] = {}
    for answer in given:
        text = (answer.response if request.length == LONG else None) or answer.answer
        if text.strip() or request.mode == PROCESSES:
            kept = SystemAnswer(text, answer.scores, answer.trace_id, answer.author_id)
            answers.setdefault(str(answer.question_id), kept)
    return answers


def _choose_references(
    given: Iterable[GivenAnswer], answers: Mapping[str, Mapping[str, SystemAnswer]]
) -> dict[str, GivenAnswer]:
    """A person's trace of each question to compare with, by somebody whose trace is none of those that are compared."""
    chosen: dict[str, GivenAnswer] = {}
    for reference in given:
        key = str(reference.question_id)
        if all(key not in own or own[key].author_id != reference.author_id for own in answers.values()):
            chosen.setdefault(key, reference)
    return chosen


def _read_file(file: Path, questions: Mapping[str, Question]) -> dict[str, SystemAnswer]:
    """The answers of a file by question, which is named by its id, its source id or its text."""
    keys = {question.text: key for key, question in questions.items()}
    keys |= {question.full_text: key for key, question in questions.items()}
    keys |= {question.source_id: key for key, question in questions.items() if question.source_id}
    keys |= {key: key for key in questions}
    answers: dict[str, SystemAnswer] = {}
    try:
        rows = read_rows(file)
    except PredictionFileError as error:
        raise TaskError(str(error)) from error
    for row in rows:
        named = [row.fields.get(find_id_field(row.fields) or ""), row.fields.get("question"), row.fields.get("query")]
        key = next((keys[str(value)] for value in named if value is not None and str(value) in keys), None)
        text = next((row.fields[name] for name in (*ANSWER_FIELDS, "answer") if name in row.fields), None)
        if not isinstance(text, str):
            raise TaskError(f"{file}, {row.place}: there is no text {ANSWER_FIELDS[0]!r} or 'answer'; add the answer")
        if key is not None and key in answers:
            raise TaskError(f"{file}, {row.place}: this question was answered before; keep one answer to each")
        if key is not None and text.strip():
            answers[key] = SystemAnswer(text)
    if not answers:
        raise TaskError(f"{file} answers no question of the project; name them by id, or by their text as question")
    return answers


def _take_processes(
    services: Services,
    drawn: Sequence[StudyQuestion],
    answers: Mapping[str, Mapping[str, SystemAnswer]],
    people: Mapping[str, GivenAnswer],
) -> tuple[list[StudyQuestion], dict[str, Mapping[str, SystemAnswer]]]:
    """The questions with a person's trace, and the traces of the systems in place of their answers."""
    keys = [question.key for question in drawn]
    ids = {people[key].trace_id for key in keys}
    ids |= {trace_id for given in answers.values() for key in keys if (trace_id := given[key].trace_id)}
    with services.database.read() as session:
        texts = {record.trace.id: format_process(record) for record in load_traces(session, sorted(ids))}
    processes: dict[str, Mapping[str, SystemAnswer]] = {
        system: {key: replace(given[key], text=texts[given[key].trace_id or UUID(int=0)]) for key in keys}
        for system, given in answers.items()
    }
    described = [
        replace(
            question, reference=texts[people[question.key].trace_id], reference_author=people[question.key].author_id
        )
        for question in drawn
    ]
    return described, processes


def format_process(record: TraceRecord) -> str:
    """The thoughts, calls and observations of a trace, and its answer, the same for people and systems."""
    lines: list[str] = []
    numbers = count(1)
    for step in record.steps:
        if step.tool is None and not step.thought:
            continue
        lines.append(f"{next(numbers)}. {step.thought}".rstrip())
        if step.tool is not None:
            arguments = ", ".join(f"{name}: {value}" for name, value in step.arguments.items())
            lines += [f"   {step.tool}({arguments})", f"   → {step.error or step.observation or ''}"]
    return "\n".join([*lines, f"Answer: {record.trace.final_answer or ''}"])


def report(services: Services, name: str, project: str | None = None) -> dict[str, Any]:
    """The design and progress of a study, and its results once it is closed: nobody stops by a result."""
    # Loads numpy and scipy, which the other verbs do without.
    from showhow.evaluation.comparison.study_report import report_study  # noqa: PLC0415

    with services.database.read() as session:
        study = studies.find_study(session, name, project)
        studies.check_frozen(session, study)
        judgements = studies.list_judgements(session, study.id)
        excluded = studies.list_exclusions(session, study.id)
        planned = studies.measure_progress(session, study.id).planned
    results = report_study(judgements, study.design, study.seed) if study.state == CLOSED else None
    return {
        "id": str(study.id),
        "name": study.name,
        "state": study.state,
        "digest": study.digest,
        "judged": len(judgements),
        "planned": planned,
        "excluded": [
            {
                **act._asdict(),
                "at": act.at.isoformat(),
                "after_close": study.closed_at is not None and act.at > study.closed_at,
            }
            for act in excluded
        ],
        "design": study.design,
        "results": results,
    }
