"""Judges that are models: a model rates the answers of a run, or compares them with those of another run, both ways.

Verdicts are scores under names that contain the judge's model, so they are never mixed with metrics or with the labels
of people. The labels measure the judge (sensitivity, specificity, kappa), and correct the share that it reports.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from threading import Event, Lock
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel

from showhow.db.database import Conflict, Database
from showhow.db.models import Run
from showhow.db.review.review import AnswerToJudge, list_answers_to_judge, list_labels
from showhow.db.runs import attempts, comparisons
from showhow.db.runs.attempts import MetricScore
from showhow.db.traces.model_calls import (
    begin_model_call,
    complete_model_call,
    fail_model_call,
    list_answered_calls,
    mark_calls_lost,
)
from showhow.evaluation.scoring.label_files import UnreadableLabels, read_label_rows
from showhow.evaluation.shared_model import SharedModel, TotalLimits, answer_in_parallel, ignore_note
from showhow.evaluation.statistics import (
    Interval,
    cluster_bootstrap,
    correct_share,
    mcnemar_exact,
    measure_judge,
    prediction_powered_mean,
    wilson_interval,
)
from showhow.llm.errors import ChatError
from showhow.llm.structured_output import ReplyText
from showhow.llm.types import ChatReply, OutgoingRequest
from showhow.llm.usage import Usage
from showhow.option_fields import group, option
from showhow.reasoners.skills.skill import ModelResponder, Skill, SkillCall, answer_skill_call
from showhow.runs.branch_workers import RunStopped
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS
from showhow.runs.model_call_recorder import to_chat_reply, to_failure, to_model_reply, to_model_request
from showhow.runs.process import hold_run_lock
from showhow.runs.services import Services

MIN_LABELS = 100
"""Labels of people below which a judge's measures are too uncertain to correct a share by."""
TRUE, FALSE, CANNOT_JUDGE = "true", "false", "cannot judge"
SCALES: Mapping[str, Mapping[str, float | None]] = {
    "truthfulness": {TRUE: 1.0, FALSE: 0.0, CANNOT_JUDGE: None},
    "informativeness": {"not": 0.0, "somewhat": 0.5, "informative": 1.0},
    "quality": {"terrible": 0.0, "poor": 1 / 3, "acceptable": 2 / 3, "high": 1.0},
}
"""The labels of each aspect, as in HumanIQ's human evaluation, with their values; None is no verdict."""
PREFERENCE_VALUES = {"win": 1.0, "tie": 0.5, "loss": 0.0}


class RatingRequest(BaseModel):
    """An answer to be rated."""

    question: str
    answer: str
    references: list[str]
    """Right answers, if any are known."""


class RatingReply(BaseModel):
    """The ratings of an answer."""

    reasons: ReplyText
    """How the answer compares with the references."""
    truthfulness: Literal["true", "false", "cannot judge"]
    """false if any statement is wrong."""
    informativeness: Literal["not", "somewhat", "informative"]
    """How much of what was asked the answer tells."""
    quality: Literal["terrible", "poor", "acceptable", "high"]
    """How well a reader is served."""


class PairRequest(BaseModel):
    """Two answers to be compared."""

    question: str
    first: str
    second: str
    references: list[str]
    """Right answers, if any are known."""


class PairReply(BaseModel):
    """The better one of two answers."""

    reasons: ReplyText
    """The difference that matters."""
    better: Literal["first", "second", "tie"]
    """The answer that serves a reader better."""


JUDGE_ANSWER: Skill[RatingRequest, RatingReply] = Skill(
    "judge_answer", 1, "I rate the answer.", "showhow.evaluation.scoring", RatingRequest, RatingReply
)
JUDGE_PAIR: Skill[PairRequest, PairReply] = Skill(
    "judge_pair", 1, "I compare the answers.", "showhow.evaluation.scoring", PairRequest, PairReply
)
JUDGE_FACTS: Skill[PairRequest, PairReply] = Skill(
    "judge_facts", 1, "I compare the facts.", "showhow.evaluation.scoring", PairRequest, PairReply
)
GOLD_FACTS = "gold facts"
"""What a judge compares the facts of a run with, in the place of another run."""


@dataclass(frozen=True, slots=True)
class JudgingOptions:
    """Who judges, and within which limits."""

    profile: str | None = option(None, "Profile of the judge's model; default: the first of `models list`.")
    against: UUID | None = option(None, "Compare with the answers of this verification, in both orders.")
    """None rates the answers alone."""
    concurrency: int = option(
        2, "Number of questions answered in parallel.", flag="--at-once", minimum=1, maximum=MAX_CONCURRENT_QUESTIONS
    )
    limits: TotalLimits = group(TotalLimits, "Limits of all questions together")
    facts: bool = option(
        default=False, help="Compare GEEK's facts with the gold ones of a generated world, in both orders."
    )

    @property
    def compared(self) -> UUID | str | None:
        """What the answers, or their facts, are compared with; None to rate them alone."""
        return GOLD_FACTS if self.facts else self.against


@dataclass(frozen=True, slots=True)
class JudgingResult:
    """What one call of `judge_run` did."""

    judge: str
    """The judge's model."""
    judged: int
    without_verdict: tuple[str, ...]
    """Why answers have no verdict, one sentence for each; they are neither right nor wrong."""
    left: int
    """The answers that were not judged, since a limit was reached or the server failed."""

    @property
    def problem(self) -> str | None:
        """Why the judging is not complete; None if it is."""
        return f"{self.left:,} answers are left; the same command judges them" if self.left else None


def score_name(aspect: str, judge: str) -> str:
    """The name of a judge's scores of an aspect."""
    return f"{aspect} by {judge}"


def preference_name(judge: str, other_run: UUID | str) -> str:
    """The name of a judge's scores of a run against another one."""
    return f"preference by {judge} over {other_run}"


_PREFERENCE_NAME = re.compile(preference_name("(?P<judge>.+)", "(?P<run>[0-9a-f-]{36})"))


def judge_run(  # noqa: PLR0913, PLR0917 - what is judged, how, and who hears of it
    services: Services,
    run_id: UUID,
    options: JudgingOptions,
    state_facts: Callable[[Services, Run, Sequence[AnswerToJudge]], Iterable[AnswerToJudge]],
    stop: Event,
    on_progress: Callable[[int, int], None],
    on_note: Callable[[str], None] = ignore_note,
) -> JudgingResult:
    """Have a model judge the answers of a run that it has not judged yet; `on_progress` gets done and total.

    `state_facts` puts facts of the run and gold ones in the place of answers, where these are compared.
    Conflict if there is no model, if it is the model that is to be judged, or if its server fails; what was judged is
    stored and is not asked again.
    """
    chat = services.chat_client(options.profile)
    if chat is None:
        raise Conflict("a judge is a language model; add a profile in models.toml, and name it with --profile")
    with services.database.read() as session:
        runs = [comparisons.find_comparable_run(session, key) for key in filter(None, (run_id, options.against))]
        skill: Skill[Any, Any] = JUDGE_ANSWER if options.compared is None else JUDGE_PAIR
        name = (
            score_name("quality", chat.name)
            if options.compared is None
            else preference_name(chat.name, options.compared)
        )
        answers = list_answers_to_judge(session, run_id, name, skill.version, options.against)
    if any(run.spec.model == chat.name for run in runs):
        raise Conflict(f"{chat.name} gave the answers itself; a judge has to be another model, best of another family")
    if options.facts:
        if options.against is not None:
            raise Conflict("facts are compared with the gold ones; leave the other run out")
        answers = list(state_facts(services, runs[0], answers))
    purpose = f"judge {run_id}"
    with hold_run_lock(services.settings.home, f"{run_id}-judge", "another process has this run judged; wait for it"):
        shared = SharedModel(chat, options.limits, stop, on_note=on_note)
        recorder = _JudgeCallRecorder(services, purpose)
        worker = _Judge(services.database, shared, recorder, chat.name, options.compared)
        done = 0
        for done, _ in enumerate(
            answer_in_parallel(answers, worker.judge, shared, lambda: options.concurrency, stop), 1
        ):
            on_progress(done, len(answers))
        if shared.error:
            raise Conflict(f"{shared.error} The same command again judges the rest.")
        if shared.reason_for_stopping:
            on_note(shared.reason_for_stopping)
    return JudgingResult(chat.name, worker.judged, tuple(worker.problems), len(answers) - done)


class _JudgeCallRecorder:
    """The ledger of the judging of one run; its calls belong to no trace. Thread-safe."""

    def __init__(self, services: Services, purpose: str) -> None:
        self._database = services.database
        self._purpose = purpose
        self._lock = Lock()
        with self._database.begin() as session:
            mark_calls_lost(session, purpose)
            self._unused = {call.request_hash: to_chat_reply(call) for call in list_answered_calls(session, purpose)}

    def take_unused_reply(self, request: OutgoingRequest) -> ChatReply | None:
        """The reply to an equal request that was stored before, each once; verdicts that were used are scores."""
        with self._lock:
            return self._unused.pop(to_model_request(request).redacted(self._database.redactor).hash, None)

    def begin(self, request: OutgoingRequest, most: Usage) -> UUID:
        """Store the request without secrets, and the most that it can use."""
        stored = replace(to_model_request(request), purpose=self._purpose)
        with self._database.begin() as session:
            call = begin_model_call(session, stored)
            call.usage = most.to_json()
            return call.id

    def complete(self, handle: UUID, reply: ChatReply) -> None:
        """Store the reply before it is used."""
        with self._database.begin() as session:
            complete_model_call(session, handle, to_model_reply(reply))

    def fail(self, handle: UUID, error: BaseException) -> None:
        """Store why there is no reply."""
        with self._database.begin() as session:
            fail_model_call(session, handle, *to_failure(error))


class _Judge:
    """Judges answers one by one, in several threads, and stores the verdicts."""

    def __init__(
        self,
        database: Database,
        shared: SharedModel,
        recorder: _JudgeCallRecorder,
        model: str,
        against: UUID | str | None,
    ) -> None:
        self._database = database
        self._shared = shared
        self._recorder = recorder
        self._model = model
        self._against = against
        self.judged = 0
        self.problems: list[str] = []

    def judge(self, answer: AnswerToJudge) -> bool | None:
        """Judge one answer; None if it has to be asked again later, False if there is no usable verdict."""
        if not self._shared.accepts_requests:
            return None
        chat = self._shared.guard(answer.question).recording(self._recorder)
        responder = ModelResponder(chat)
        try:
            scores = (
                self._rate(responder, answer)
                if self._against is None
                else self._compare(responder, answer, self._against)
            )
        except RunStopped:
            return None
        if scores is None:
            return False
        with self._database.begin() as session:
            attempts.save_scores(session, answer.attempt_id, answer.lease_token, scores)
        self.judged += 1
        return True

    def _ask(self, responder: ModelResponder, call: SkillCall[Any, Any], question: str) -> Any:
        try:
            result = answer_skill_call(responder, call)
        except ChatError as error:
            problem: object = error
        else:
            if result.reply is not None:
                return result.reply
            problem = result.error
        self.problems.append(f"no verdict on {question!r}: {problem}")
        return None

    def _rate(self, responder: ModelResponder, answer: AnswerToJudge) -> list[MetricScore] | None:
        request = RatingRequest(question=answer.question, answer=answer.answer, references=answer.references)
        reply = self._ask(responder, SkillCall(JUDGE_ANSWER, request, "judge"), answer.question)
        if reply is None:
            return None
        scores = []
        for aspect, scale in SCALES.items():
            label = getattr(reply, aspect)
            if (value := scale[label]) is not None:
                details = {"label": label, "reasons": reply.reasons}
                scores.append(MetricScore(score_name(aspect, self._model), JUDGE_ANSWER.version, value, details))
        return scores

    def _compare(self, responder: ModelResponder, answer: AnswerToJudge, other: UUID | str) -> list[MetricScore] | None:
        """Compare in both orders; a preference that depends on the order is a tie."""
        verdicts = []
        for first, second in ((answer.answer, answer.other), (answer.other, answer.answer)):
            request = PairRequest(
                question=answer.question, first=first or "", second=second or "", references=answer.references
            )
            skill = JUDGE_FACTS if other == GOLD_FACTS else JUDGE_PAIR
            reply = self._ask(responder, SkillCall(skill, request, "judge"), answer.question)
            if reply is None:
                return None
            verdicts.append(reply.better)
        outcome = {("first", "second"): "win", ("second", "first"): "loss"}.get((verdicts[0], verdicts[1]), "tie")
        details = {"label": outcome, "orders": verdicts}
        name = preference_name(self._model, other)
        return [MetricScore(name, JUDGE_PAIR.version, PREFERENCE_VALUES[outcome], details)]


def report_ratings(database: Database, run: Run, judge: str) -> dict[str, Any]:
    """The judge's labels of a run by aspect, beside those of people, and how well it agrees with them."""
    with database.read() as session:
        scores = {
            aspect: attempts.list_scores(session, run.id, score_name(aspect, judge), JUDGE_ANSWER.version)
            for aspect in SCALES
        }
        labels = {aspect: list_labels(session, run.id, aspect) for aspect in SCALES}
    judged = len(scores["quality"])
    aspects = {}
    for aspect, scale in SCALES.items():
        counts = Counter(str(score.details["label"]) for score in scores[aspect])
        without_value = next((label for label, value in scale.items() if value is None), None)
        if without_value is not None:
            counts[without_value] = judged - len(scores[aspect])
        people = {attempt: _majority(values) for attempt, values in labels[aspect].items()}
        aspects[aspect] = {
            "labels": {label: counts[label] for label in scale},
            "mean": fmean(score.value for score in scores[aspect]) if scores[aspect] else None,
            "people": {label: list(people.values()).count(label) for label in scale},
        }
    verdicts = {score.attempt_id: score.value == 1.0 for score in scores["truthfulness"]}
    truths = {
        attempt: label == TRUE
        for attempt, values in labels["truthfulness"].items()
        if (label := _majority(values)) in (TRUE, FALSE)
    }
    return {"judge": judge, "judged": judged, "aspects": aspects, "agreement": _compare_with_people(verdicts, truths)}


def _majority(labels: Sequence[str]) -> str | None:
    """The label that most people gave; None if several are given equally often."""
    (label, count), *others = Counter(labels).most_common()
    return label if not others or others[0][1] < count else None


def _compare_with_people(verdicts: Mapping[UUID, bool], truths: Mapping[UUID, bool]) -> dict[str, Any]:
    """Sensitivity, specificity, kappa and the corrected share of true answers; a `note` says why one is missing."""
    both = [attempt for attempt in verdicts if attempt in truths]
    result: dict[str, Any] = {"labelled_by_both": len(both)}
    if not verdicts:
        return result | {"note": "the judge has called no answer true or false"}
    right = sum(verdicts.values())
    result["share_true"] = _share_json(right, len(verdicts))
    people = [truths[attempt] for attempt in both]
    if len(set(people)) < 2:
        return result | {"note": "people's labels have to contain true and false answers that the judge has judged too"}
    quality = measure_judge([verdicts[attempt] for attempt in both], people)
    result |= {
        "sensitivity": _to_json(quality.sensitivity, quality.sensitivity_interval),
        "specificity": _to_json(quality.specificity, quality.specificity_interval),
        "kappa": quality.kappa,
    }
    if len(both) < MIN_LABELS:
        result["note"] = f"{len(both):,} answers have labels of both; a correction needs about {MIN_LABELS}"
    if quality.sensitivity + quality.specificity > 1:
        corrected = correct_share(right, len(verdicts), quality)
        result["corrected_share"] = _to_json(corrected.value, corrected.interval)
    else:
        result["note"] = "the judge is right no more often than by chance, so its share cannot be corrected"
    errors = [float(truths[attempt]) - float(verdicts[attempt]) for attempt in both]
    powered = prediction_powered_mean([float(verdict) for verdict in verdicts.values()], errors)
    result["prediction_powered_share"] = _to_json(powered.value, powered.interval)
    return result


def list_judges(database: Database, run_id: UUID) -> tuple[list[str], list[tuple[str, UUID]]]:
    """List the models that rated the answers of a run, and those that compared them, each with the other run."""
    with database.read() as session:
        names = sorted(row.metric for row in comparisons.list_run_scores(session, [run_id]))
    rated = score_name("quality", "")
    preferences = [match for name in names if (match := _PREFERENCE_NAME.fullmatch(name))]
    return (
        [name.removeprefix(rated) for name in names if name.startswith(rated)],
        [(match["judge"], UUID(match["run"])) for match in preferences],
    )


def report_preferences(database: Database, run: Run, judge: str, other_run: UUID | str) -> dict[str, Any]:
    """Wins, ties and losses against the other run, with the judge's bias for the answer that it reads first."""
    with database.read() as session:
        scores = attempts.list_scores(session, run.id, preference_name(judge, other_run), JUDGE_PAIR.version)
    counts = Counter(score.details["label"] for score in scores)
    result: dict[str, Any] = {
        "judge": judge,
        "compared": len(scores),
        **{name: counts[name] for name in PREFERENCE_VALUES},
    }
    if not scores:
        return result
    by_question: dict[UUID, list[float]] = defaultdict(list)
    for score in scores:
        by_question[score.question_id].append(score.value)
    values = [value for group in by_question.values() for value in group]
    clusters = [question for question, group in by_question.items() for _ in group]
    orders = Counter(verdict for score in scores for verdict in score.details["orders"])
    decided = orders["first"] + orders["second"]
    return result | {
        "mean": _to_json(fmean(values), cluster_bootstrap(values, clusters) if len(by_question) > 1 else None),
        # McNemar's exact test of wins and losses is the sign test without ties.
        "sign_test_p": mcnemar_exact(counts["win"], counts["loss"]),
        "depends_on_order": sum(score.details["orders"] in (["first"] * 2, ["second"] * 2) for score in scores),
        "first_preferred": _share_json(orders["first"], decided) if decided else None,
    }


def _share_json(count: int, of: int) -> dict[str, Any]:
    return _to_json(count / of, wilson_interval(count, of))


def _to_json(value: float, interval: Interval | None) -> dict[str, Any]:
    return {"value": value, "interval": None if interval is None else [interval.low, interval.high]}


PersonLabel = tuple[str, str, str, str]
"""The label that a person gave an answer: question, aspect, value and person, as db.review.add_labels takes them."""


def read_label_file(name: str, content: bytes) -> list[PersonLabel]:
    """The labels in a file of CSV or JSON Lines with this name; Conflict names what cannot be read."""
    try:
        return _read_labels(read_label_rows(name, content))
    except UnreadableLabels as error:
        raise Conflict(f"{name} was not read: {error}") from error


def _read_labels(rows: Collection[Mapping[str, Any]]) -> list[PersonLabel]:
    """The labels in rows with `question`, `value`, `person` and perhaps `aspect`; Conflict for a bad row."""
    labels: list[PersonLabel] = []
    for number, row in enumerate(rows, 1):
        if missing := [name for name in ("question", "value", "person") if not str(row.get(name) or "").strip()]:
            raise Conflict(f"row {number:,} has no {missing[0]}; each needs question, value and person")
        aspect = str(row.get("aspect") or "truthfulness")
        if aspect not in SCALES:
            raise Conflict(f"row {number:,}: there is no aspect {aspect!r}; choose from {', '.join(SCALES)}")
        if not isinstance(row["value"], str) or row["value"] not in SCALES[aspect]:
            raise Conflict(f"row {number:,}: {aspect} is not {row['value']!r} but one of {', '.join(SCALES[aspect])}")
        labels.append((str(row["question"]).strip(), aspect, str(row["value"]), str(row["person"]).strip()))
    return labels
