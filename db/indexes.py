"""Index definitions that models and queries share, and partial indexes."""

from sqlalchemy import Index, text

TOOL_CALL_COLUMNS = ("tool", "latency", "rating", "removed_at", "trace_id", "position", "started_at", "finished_at")
"""The columns of a step that tool reports count."""
CALLED_MODEL_CONDITION = """cast(usage as text) like '%"tool": {%'"""
"""A step whose tool called a model. Queries use the same text, so that SQLite recognises the index."""


def partial_index(condition: str, name: str, *columns: str, unique: bool = False) -> Index:
    """Define an index of the rows for which the condition holds."""
    return Index(name, *columns, unique=unique, sqlite_where=text(condition), postgresql_where=text(condition))
