"""The new database that a restore fills: of Showhow's schema at the backup's revision, then upgraded and checked."""

from dataclasses import dataclass
from pathlib import Path

from showhow.db.database import Database, StoreError, StoreUnavailable
from showhow.db.people.logins import close_all
from showhow.db.storage.schema import check_rules, current_revision, require_known_revision, upgrade
from showhow.db.storage.stored_values import find_invalid_values

IN_USE = "the database is in use; stop `showhow run` and every other verb that uses it, then restore again"


@dataclass(frozen=True, slots=True)
class RestoredDatabase:
    """What a restore has done: the revision now, the name of the former database, and findings of the check."""

    revision: str | None
    former: str | None
    findings: list[str]


def make_schema(store: Database, revision: str) -> None:
    """Make the tables as they were at the backup's revision, in an empty database."""
    require_known_revision(revision)
    upgrade(store, revision)


def finish_prepared(store: Database, backup: Path) -> tuple[list[str], str | None]:
    """Upgrade and check the filled database; returns the findings and the revision."""
    try:
        upgrade(store)
    except StoreError:
        raise
    except Exception as error:  # the values of a stranger can fail anywhere in a migration
        raise StoreUnavailable(
            f"the rows of {backup} cannot be upgraded ({error}); nothing was replaced, restore another backup"
        ) from error
    with store.begin() as session:
        close_all(session)
    if invalid := find_invalid_values(store):
        raise StoreUnavailable(f"{backup} is damaged ({invalid[0]}); nothing was replaced, restore another backup")
    return check_rules(store), current_revision(store)
