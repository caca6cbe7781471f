"""The schema of the database: upgrade and downgrade by migrations."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from db.database import Database, StoreError, StoreUnavailable

MIGRATIONS_FOLDER = Path(__file__).resolve().parents[1] / "migrations"


def current_revision(database: Database) -> str | None:
    """Return the revision of the database; None when it is empty."""
    with database.read() as session:
        return MigrationContext.configure(session.connection()).get_current_revision()


def latest_revision() -> str:
    """Return the newest revision that the program has."""
    head = _script_directory().get_current_head()
    if head is None:
        raise StoreError(f"there are no migrations in {MIGRATIONS_FOLDER}; install Showhow again")
    return head


def upgrade(database: Database, to: str = "head") -> bool:
    """Upgrade the database to the revision; False when it is there already."""
    at = current_revision(database)
    scripts = _script_directory()
    if at == (scripts.get_current_head() if to == "head" else to):
        return False
    revisions = {script.revision for script in scripts.walk_revisions()}
    if at is not None and at not in revisions:
        raise StoreUnavailable(
            f"the database is at revision {at}, which this version of Showhow does not know; update the program"
        )
    # One write transaction: of two programs that start at once, the second finds the database upgraded.
    with database.begin() as session:
        command.upgrade(_alembic_config(session.connection()), to)
    return True


def downgrade(database: Database, to: str) -> None:
    """Downgrade the database to an older revision; data that it has no place for is lost."""
    with database.begin() as session:
        command.downgrade(_alembic_config(session.connection()), to)


def _alembic_config(connection: object) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _script_directory() -> ScriptDirectory:
    return ScriptDirectory(str(MIGRATIONS_FOLDER))
