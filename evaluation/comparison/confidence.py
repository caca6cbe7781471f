"""How confident a run is of its answers, by the agreement of repetitions or sources, and how often it is right then."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from showhow.db.database import Database
from showhow.db.runs import comparisons
from showhow.db.runs.attempts import CORRECT_SCORE
from showhow.db.runs.comparisons import AnswerSources, MetricVersion
from showhow.evaluation.statistics import RiskCoverage, risk_coverage
from showhow.reasoners.answers.normalization import answers_equal, group_equal_answers

REPETITIONS, SOURCES = "repetitions", "sources"
CONFIDENCE_DESCRIPTIONS = {
    REPETITIONS: "the share of the repetitions of a question that agree",
    SOURCES: "the share of the three sources (texts, graph, model) that agree with the answer",
}


@dataclass(frozen=True, slots=True)
class ConfidenceCurve:
    """The risk-coverage curve of a run's questions by the confidence at hand."""

    run_id: UUID
    basis: str
    """REPETITIONS or SOURCES: a key of CONFIDENCE_DESCRIPTIONS."""
    questions: int
    curve: RiskCoverage


def load_confidence_curve(database: Database, run_id: UUID, metric: MetricVersion) -> ConfidenceCurve | None:
    """The curve over the questions that the run answered; None if nothing says how confident its answers are."""
    by_question: dict[UUID, list[AnswerSources]] = defaultdict(list)
    with database.read() as session:
        for row in comparisons.list_answer_sources(session, run_id, metric):
            by_question[row.question_id].append(row)
    if any(len(rows) > 1 for rows in by_question.values()):
        basis, measured = REPETITIONS, [_agreement_of_repetitions(rows) for rows in by_question.values()]
    else:
        answers = [rows[0] for rows in by_question.values()]
        has_sources = any(row.text or row.graph or row.model for row in answers)
        basis, measured = SOURCES, [_agreement_of_sources(row) for row in answers] if has_sources else []
    pairs = [pair for pair in measured if pair is not None]
    if not pairs:
        return None
    confidences, is_right = zip(*pairs, strict=True)
    return ConfidenceCurve(run_id, basis, len(pairs), risk_coverage(confidences, is_right))


def _agreement_of_repetitions(rows: Sequence[AnswerSources]) -> tuple[float, bool] | None:
    """The share of the most frequent answer, and whether it is right; None if there is no scored answer."""
    answers = {str(place): row.answer for place, row in enumerate(rows) if row.answer}
    if not answers:
        return None
    largest = max(group_equal_answers(answers), key=len)
    score = rows[int(largest[0])].score
    return None if score is None else (len(largest) / len(rows), score >= CORRECT_SCORE)


def _agreement_of_sources(row: AnswerSources) -> tuple[float, bool] | None:
    """The share of the sources that give the final answer, and whether it is right; None without a scored answer."""
    if not row.answer or row.score is None:
        return None
    sources = {"text": row.text, "graph": row.graph, "model": row.model}
    agreeing = [name for name, answer in sources.items() if answer and answers_equal(answer, row.answer)]
    return len(agreeing) / len(sources), row.score >= CORRECT_SCORE
