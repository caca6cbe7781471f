"""Who sees gold answers: reviewers and administrators, and everybody where the project shows them."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from showhow.db.models import Project
from showhow.db.people.users import ADMIN, REVIEWER, has_acting_role


def is_gold_visible(session: Session, project: Project) -> bool:
    """Whether the person who acts sees the gold answers of the project's questions."""
    return project.shows_gold or has_acting_role(session, REVIEWER, ADMIN)


def is_gold_of_world_visible(session: Session, world: str) -> bool:
    """Whether the person who acts sees the gold answers of the world's own questions: those of a project over it."""
    shown = select(Project.id).where(Project.world == world, Project.shows_gold).limit(1)
    return has_acting_role(session, REVIEWER, ADMIN) or session.scalar(shown) is not None
