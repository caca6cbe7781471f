"""What can be archived and deleted; without SQLAlchemy, for verbs that start without the store."""

from enum import StrEnum

KEPT_DAYS = 30
"""Days for which a deletion can be taken back."""


class Kind(StrEnum):
    """A kind of thing that can be archived and deleted."""

    PROJECT = "project"
    QUESTION = "question"
    DRAFT = "draft"
    RUN = "run"
    LIBRARY = "library"
    WORLD = "world"
