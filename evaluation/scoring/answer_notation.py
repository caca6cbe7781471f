"""The notation of answers in evaluations: metrics that compare words ask for the one of the question's data set.

Methods differ in how they write a date, and one that a metric is to compare by words is right in one notation only. So
a run over questions with gold answers stores days as their data set writes them, for every method alike; a question
that is asked in a project has the notation of the project's questions.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any, Protocol

from showhow.db.database import Database
from showhow.db.questions.projects import get_project, list_questions
from showhow.evaluation.datasets import QUESTION_FORMATS
from showhow.evaluation.metrics import find_dataset_name
from showhow.evaluation.metrics.metric import GoldAnswer, list_aliases
from showhow.reasoners.answers.dates_and_numbers import DateNotation, write_date

_READ_QUESTIONS = 1_000
"""The questions of a project that its notation is read from."""


@cache
def _list_declared() -> dict[str, DateNotation]:
    """The notations that loaders declare, by data set."""
    formats = QUESTION_FORMATS.values()
    return {find_dataset_name(form.name): form.date_notation for form in formats if form.date_notation is not None}


class DatasetQuestion(Protocol):
    """A question that may name its data set, with its gold answers."""

    @property
    def dataset(self) -> str | None: ...

    @property
    def gold_answers(self) -> list[dict[str, Any]]: ...


class DateNotations:
    """The notation of dates for each question of a run: as its loader declares it, else that of most golds."""

    def __init__(self, questions: Iterable[DatasetQuestion]) -> None:
        counts: Counter[DateNotation] = Counter()
        for question in questions:
            if _find_declared(question) is None:
                counts.update(notation for gold in question.gold_answers for notation in _notations_of(gold))
        self._of_most = next((notation for notation, _ in counts.most_common(1)), None)

    def find(self, question: DatasetQuestion) -> DateNotation | None:
        """The notation for the question; None if no gold answer of its file is a day."""
        return _find_declared(question) or self._of_most


def find_project_notation(database: Database, project_name: str | None) -> DateNotation | None:
    """The notation of most questions of a project, by its first ones; None if none of their answers is a day."""
    if project_name is None:
        return None
    with database.read() as session:
        project = get_project(session, project_name)
        questions = list_questions(session, project.id, limit=_READ_QUESTIONS)
    notations = DateNotations(questions)
    counts = Counter(notation for question in questions if (notation := notations.find(question)) is not None)
    return next((notation for notation, _ in counts.most_common(1)), None)


def _find_declared(question: DatasetQuestion) -> DateNotation | None:
    return None if question.dataset is None else _list_declared().get(find_dataset_name(question.dataset))


def _notations_of(gold: GoldAnswer) -> list[DateNotation]:
    """The notations in which one of its names is a day."""
    names = list_aliases(gold)
    written = ({notation: write_date(name, notation) for notation in DateNotation} for name in names)
    pairs = zip(names, written, strict=True)
    return [
        notation
        for name, forms in pairs
        if len(set(forms.values())) == len(DateNotation)
        for notation, form in forms.items()
        if form == name.strip()
    ]
