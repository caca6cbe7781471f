"""The schema of the database: upgrade and downgrade by migrations."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from db.database import Database, StoreError, StoreUnavailable

MIGRATIONS_FOLDER = Path(__file__).resolve().parents[1] / "migrations"


def current_revision(database: Database) -> str | None:
    """Return the revision of the database; None if it is empty."""
    with database.read() as session:
        return MigrationContext.configure(session.connection()).get_current_revision()


def latest_revision() -> str:
    """Return the newest revision of the migrations."""
    head = _script_directory().get_current_head()
    if head is None:
        raise StoreError(f"there are no migrations in {MIGRATIONS_FOLDER}; install Showhow again")
    return head


def is_known_revision(revision: str | None) -> bool:
    """Whether the migrations of this version can upgrade from that revision; None is an empty database."""
    return revision is None or revision in {script.revision for script in _script_directory().walk_revisions()}


def upgrade(database: Database, to: str = "head") -> bool:
    """Upgrade the database to the revision; False if it already has this revision."""
    current = current_revision(database)
    if current == (latest_revision() if to == "head" else to):
        return False
    if not is_known_revision(current):
        raise StoreUnavailable(
            f"the database is at revision {current}, which this version of Showhow does not know; update the program"
        )
    # One write transaction: if two programs start at once, the second waits and has nothing to upgrade.
    with database.begin() as session:
        command.upgrade(_alembic_config(session.connection()), to)
    return True


def downgrade(database: Database, to: str) -> None:
    """Downgrade the database to an older revision; data of newer columns and tables are lost."""
    with database.begin() as session:
        command.downgrade(_alembic_config(session.connection()), to)


def _alembic_config(connection: object) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _script_directory() -> ScriptDirectory:
    return ScriptDirectory(str(MIGRATIONS_FOLDER))
