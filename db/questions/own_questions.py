"""Questions that people add to a project themselves: administrators always may, others where the project allows it."""

from uuid import UUID

from sqlalchemy.orm import Session

from showhow.db.database import Conflict
from showhow.db.models import Project, Question
from showhow.db.people.users import ADMIN, ROLES, has_acting_role, require_acting_role
from showhow.db.questions.projects import QuestionSource, add_question, find_matching_question


def has_right_to_add_questions(session: Session, project: Project) -> bool:
    """Whether the person who acts may add questions of their own to the project."""
    return has_acting_role(session, *_accepted_roles(project))


def add_own_question(session: Session, project_id: UUID, record: QuestionSource) -> Question:
    """Add a question of the person who acts, or find the same one; Conflict if the project takes none from them."""
    require_acting_role(session, *_accepted_roles(session.get_one(Project, project_id)))
    if not record.text.strip():
        raise Conflict("a question has at least one word; write it, then add it")
    add_question(session, project_id, record)
    return find_matching_question(session, project_id, record)


def _accepted_roles(project: Project) -> tuple[str, ...]:
    return ROLES if project.allows_questions else (ADMIN,)
