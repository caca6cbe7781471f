"""Indexes that more than one place has to know, and those of some rows only."""

from sqlalchemy import Index, text

TOOL_CALL_COLUMNS = ("tool", "latency", "rating", "removed_at", "trace_id", "position", "started_at", "finished_at")
"""Of a step: all that is counted of the call of its tool."""
CALLED_MODEL_CONDITION = """cast(usage as text) like '%"tool": {%'"""
"""Of a step: its tool called the language model. Queries say it so too, and SQLite sees that the index fits."""


def partial_index(condition: str, name: str, *columns: str, unique: bool = False) -> Index:
    """An index of the rows for which the condition holds."""
    return Index(name, *columns, unique=unique, sqlite_where=text(condition), postgresql_where=text(condition))
