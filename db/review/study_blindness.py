"""While a study is open, who only annotates reads nothing of the runs that it compares, but for the blind pairs.

The condition is added to each query for runs and traces, as that for removed rows is (removed_rows.py): on every page
the runs are as if they were not there, until the study is closed. Reviewers and administrators see them, since they
make studies of them; and everybody sees the traces of people.
"""

from uuid import UUID

from sqlalchemy import event, or_
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria

from showhow.db.models import Run, Trace
from showhow.db.people.users import ADMIN, REVIEWER, acting_person, has_acting_role
from showhow.db.review.studies import OPEN, list_studies

_RUNS = "runs_of_open_studies"
"""The key of the session's information with the ids of the hidden runs."""


@event.listens_for(Session, "do_orm_execute")
def _hide_runs_of_open_studies(state: ORMExecuteState) -> None:
    if not state.is_select or state.is_column_load or state.is_relationship_load:
        return
    if hidden := _list_hidden_runs(state.session):
        conditions = {Run: Run.id.not_in(hidden), Trace: or_(Trace.run_id.is_(None), Trace.run_id.not_in(hidden))}
        state.statement = state.statement.options(
            *(
                with_loader_criteria(kind, condition, include_aliases=True, propagate_to_loaders=False)
                for kind, condition in conditions.items()
            )
        )


def _list_hidden_runs(session: Session) -> list[UUID]:
    if acting_person(session) is None:
        return []
    if _RUNS not in session.info:
        # The queries for what is hidden hide nothing themselves.
        session.info[_RUNS] = []
        opened = list_studies(session, state=OPEN)
        systems = (system for study in opened for system in study.design.get("systems", ()))
        runs = [UUID(system["run"]) for system in systems if "run" in system]
        session.info[_RUNS] = [] if runs and has_acting_role(session, REVIEWER, ADMIN) else runs
    hidden: list[UUID] = session.info[_RUNS]
    return hidden
