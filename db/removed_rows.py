"""Hides archived and deleted rows: no session returns or changes one unless a query has the options WITH_REMOVED.

The condition is added to each occurrence of a removable table in a query, in joins and subqueries too. A query that
names such a table only in its conditions does not get it: let it select from the table.
"""

from sqlalchemy import event
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria

from showhow.db.models import Library, Project, Question, Run, Trace

REMOVABLE = (Project, Question, Run, Trace, Library)
WITH_REMOVED = {"with_removed": True}
"""Execution options of a query that reads what others rest on: the questions of a run, a library's demonstrations."""
# Not propagated: rows would keep the options, and copies of rows could not be made.
_IS_PRESENT = [
    with_loader_criteria(kind, kind.removal_id.is_(None), include_aliases=True, propagate_to_loaders=False)
    for kind in REMOVABLE
]


@event.listens_for(Session, "do_orm_execute")
def _hide_removed_rows(state: ORMExecuteState) -> None:
    is_query = state.is_select or state.is_update or state.is_delete
    is_refresh = state.is_column_load or state.is_relationship_load
    if is_query and not is_refresh and not state.execution_options.get("with_removed"):
        state.statement = state.statement.options(*_IS_PRESENT)
