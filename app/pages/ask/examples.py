"""Example questions on the Ask page, such as demonstrations answer without a model."""

import re

from db import libraries, projects
from db.database import Database
from db.unanswerable import find_gold_reason

EXAMPLE_COUNT = 3
SCAN_LIMIT = 200
"""How many questions of a project are searched for examples."""
NAME_OR_NUMBER = re.compile(r"(?<!^)\b(?:[^\W\d_a-z][\w'-]*|\d+)(?: (?:[^\W\d_a-z][\w'-]*|\d+))*")
"""Words in capitals after the first word, and numbers: the questions of a pattern differ in them alone."""


def find_examples(database: Database, world: str, library: str | None) -> list[str]:
    """Find a few questions over the world, each of another kind, that match demonstrations but are not demonstrated."""
    if library is None:
        return []
    with database.read() as session:
        demonstrations = libraries.load_demonstrations(session, libraries.find_version(session, library).id)
        questions = [
            question
            for project in projects.list_projects(session)
            if project.world == world
            for question in projects.list_questions(session, project.id, limit=SCAN_LIMIT)
        ]
    patterns = {_question_pattern(demonstration.question) for demonstration in demonstrations}
    demonstrated = {demonstration.full_text for demonstration in demonstrations}
    examples: dict[str | None, str] = {}
    for question in questions:
        is_match = _question_pattern(question.text) in patterns and question.full_text not in demonstrated
        if is_match and question.gold_answers and not find_gold_reason(question.gold_answers):
            examples.setdefault(question.kind, question.text)
    return sorted(examples.values(), key=len)[:EXAMPLE_COUNT]


def _question_pattern(question: str) -> str:
    return NAME_OR_NUMBER.sub("_", question)
