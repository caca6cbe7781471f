"""Example questions on the Ask page, such as demonstrations answer without a model."""

import re

from showhow.app.widgets.choices import parse_place, place_to_ask
from showhow.db.database import Database
from showhow.db.questions import projects
from showhow.db.runs.repetitions import OTHER_NAMES
from showhow.db.traces import libraries
from showhow.db.traces.libraries import DemonstrationFilter
from showhow.db.unanswerable import find_gold_reason

EXAMPLE_COUNT = 3
SCAN_LIMIT = 200
"""How many questions of a project are searched for examples."""
NAME_OR_NUMBER = re.compile(r"(?<!^)\b(?:[^\W\d_a-z][\w'-]*|\d+)(?: (?:[^\W\d_a-z][\w'-]*|\d+))*")
"""Words in capitals after the first word, and numbers: the questions of a pattern differ in them alone."""


def find_examples(database: Database, place: str, library: str | None) -> list[str]:
    """Find a few questions to ask at the place, each of another kind, that match demonstrations but are no such.

    Where tools of others are asked, they match demonstrations that were tried with other names.
    """
    if library is None:
        return []
    with database.read() as session:
        version_id = libraries.find_version(session, library).id
        demonstrations = libraries.load_demonstrations(session, version_id)
        tried = DemonstrationFilter(repeats=OTHER_NAMES)
        usable = libraries.list_matching_ids(session, tried, version_id) if parse_place(place)[1] else None
        questions = [
            question
            for project in projects.list_projects(session)
            if place_to_ask(project) == place
            for question in projects.list_questions(session, project.id, limit=SCAN_LIMIT)
        ]
    patterns = {_question_pattern(own.question) for own in demonstrations if usable is None or own.trace_id in usable}
    demonstrated = {demonstration.full_text for demonstration in demonstrations}
    examples: dict[str | None, str] = {}
    for question in questions:
        is_match = _question_pattern(question.text) in patterns and question.full_text not in demonstrated
        if is_match and question.gold_answers and not find_gold_reason(question.gold_answers):
            examples.setdefault(question.kind, question.text)
    return sorted(examples.values(), key=len)[:EXAMPLE_COUNT]


def _question_pattern(question: str) -> str:
    return NAME_OR_NUMBER.sub("_", question)
