"""Rename projects, libraries and worlds, and give runs a name and a note."""

from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Library, Project, Run
from showhow.db.people.users import ADMIN, REVIEWER, acting_person, require_acting_role
from showhow.db.questions.projects import ASKED_IN, find_project, get_project
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.runs.runs import ASK_RUN_NAME
from showhow.db.traces.libraries import FORMER_NAMES, check_library_name

MAX_TITLE_LENGTH = 120


def rename_project(session: Session, name: str, new_name: str) -> Project:
    """Rename a project, and the one that collects what is asked in it, as an administrator."""
    require_acting_role(session, ADMIN)
    project = get_project(session, name)
    new_name = new_name.strip()
    if not new_name:
        raise Conflict("a project needs a name")
    asked = find_project(session, f"{ASKED_IN}{name}")
    for renamed, to in ((project, new_name), (asked, f"{ASKED_IN}{new_name}")):
        if renamed is not None and renamed.name != to:
            if find_project(session, to) is not None:
                raise Conflict(f"there is a project {to!r} already; choose another name")
            renamed.name = to
    session.flush()
    return project


def rename_library(session: Session, name: str, new_name: str) -> int:
    """Rename all versions of a library and return their number; its former name goes on naming them."""
    require_acting_role(session, REVIEWER, ADMIN)
    new_name = new_name.strip()
    versions = session.scalars(select(Library).where(Library.name == name), execution_options=WITH_REMOVED).all()
    if not versions:
        raise RowNotFound(f"there is no library {name!r}; `showhow library list` lists the existing ones")
    if new_name == name:
        return len(versions)
    if session.scalar(select(Library.id).where(Library.name == new_name).limit(1), execution_options=WITH_REMOVED):
        raise Conflict(f"there is a library {new_name!r} already; choose another name")
    check_library_name(session, new_name)
    for version in versions:
        version.card = {**version.card, FORMER_NAMES: [*version.card.get(FORMER_NAMES, ()), name]}
        version.name = new_name
    session.flush()
    return len(versions)


def rename_world(session: Session, name: str, new_name: str) -> None:
    """Have the projects and runs over a world name it by its new name, as an administrator."""
    require_acting_role(session, ADMIN)
    for kind in (Project, Run):
        change = update(kind).where(kind.world == name).values(world=new_name)
        session.execute(change, execution_options={**WITH_REMOVED, "synchronize_session": False})


def roles_for_run(session: Session, run: Run) -> tuple[str, ...]:
    """Who may name, archive and delete the run: any role for the person who asked its question."""
    actor = acting_person(session)
    is_own = actor is not None and run.name == ASK_RUN_NAME and run.spec.asked_by == actor.name
    return () if is_own else (REVIEWER, ADMIN)


def name_run(session: Session, run_id: UUID, *, title: str | None = None, note: str | None = None) -> Run:
    """Change the name and the note of a run that are given; the person who asked may, reviewers and administrators."""
    run = session.get(Run, run_id)
    if run is None:
        raise RowNotFound(f"there is no run {run_id}; `showhow runs list` lists them")
    require_acting_role(session, *roles_for_run(session, run))
    if title is not None and len(title.strip()) > MAX_TITLE_LENGTH:
        raise Conflict(f"the name of a run has at most {MAX_TITLE_LENGTH} characters; write the rest into its note")
    run.title = run.title if title is None else " ".join(title.split())
    run.note = run.note if note is None else note.strip()
    session.flush()
    return run
