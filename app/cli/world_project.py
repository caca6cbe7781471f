"""The project that `showhow world import` makes over its world."""

from pathlib import Path

from app.cli.output import CommandError
from app.cli.questions import parse_column
from app.imports import QuestionImportPlan, import_questions
from app.services import current_services
from db.projects import create_project, find_project
from evaluation.datasets import open_question_file
from guard.input_bounds import bounded_work


def plan_project(
    world: str, project: str | None, questions: Path | None, columns: list[str]
) -> QuestionImportPlan | None:
    """What becomes a project over the world, checked before the world is made; None without a project."""
    if project is None:
        if questions is not None:
            raise CommandError("name the project of the questions with --project")
        return None
    with current_services().database.read() as session:
        if find_project(session, project) is not None:
            raise CommandError(f"there is a project {project!r} already; choose another name")
    plan = QuestionImportPlan(project, world, columns=dict(map(parse_column, columns)))
    if questions is not None:
        with bounded_work(questions):
            open_question_file(questions, plan.form, plan.language, plan.columns).survey()
    return plan


def make_project(plan: QuestionImportPlan, questions: Path | None) -> str:
    """Make the project with its questions; returns a line about it."""
    services = current_services()
    if questions is None:
        with services.database.begin() as session:
            create_project(session, plan.project, plan.world or "")
        return f"\n{plan.project}: a project without questions"
    with bounded_work(questions):
        report = import_questions(services, questions, plan)
    return f"\n{plan.project}: {'; '.join(report.lines())}"
