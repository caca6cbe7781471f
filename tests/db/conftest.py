"""Databases for the tests: SQLite files, and databases of a PostgreSQL server that is started for them."""

import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from showhow.db.database import Database
from showhow.db.models import Project, Question, User
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.storage.schema import check_database, upgrade
from tests.servers.postgresql import PostgresqlServer

KINDS = ["sqlite", "postgresql"]
ON_BOTH = {
    "test_queue.py",
    "test_leases.py",
    "test_database.py",
    "test_schema.py",
    "test_crash.py",
    "test_rate_limits.py",
}
"""The files whose tests `make test` runs on PostgreSQL too: what people and processes do at once, and the schema."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that SQLite has passed is long on PostgreSQL."""
    for item in items:
        is_here = item.path.parent == Path(__file__).parent and item.path.name not in ON_BOTH
        if is_here and "postgresql" in (item.callspec.params.values() if hasattr(item, "callspec") else ()):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: PostgresqlServer) -> str:
    """The name of a database at the program's schema, to be copied."""
    store = Database(postgresql_server.create_database("migrated"))
    upgrade(store)
    store.close()
    return "migrated"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a database at the program's schema, to be copied."""
    file = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    store = Database(f"sqlite:///{file}")
    upgrade(store)
    store.close()
    return file


@pytest.fixture(params=KINDS)
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without any table."""
    if request.param == "sqlite":
        store = Database(f"sqlite:///{tmp_path / 'empty.db'}")
    else:
        server = request.getfixturevalue("postgresql_server")
        store = Database(server.create_database(f"e{uuid4().hex}"))
    yield store
    store.close()


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database at the program's schema; it must pass its check after the test."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "showhow.db")
        store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    else:
        server = request.getfixturevalue("postgresql_server")
        template = request.getfixturevalue("postgresql_template")
        store = Database(server.create_database(f"t{uuid4().hex}", template))
    yield store
    try:
        assert check_database(store) == []
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question as a reader of question files gives it."""

    text: str
    source_id: str | None = None
    dataset: str | None = None
    split: str | None = None
    kind: str | None = None
    gold_answers: tuple[dict[str, Any], ...] = ()
    decomposition: tuple[dict[str, Any], ...] = ()
    details: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", self.details or {})


@dataclass(frozen=True, slots=True)
class Scene:
    """An administrator, a reviewer, and a project with three questions."""

    database: Database
    project: Project
    questions: list[Question]
    ada: User
    ben: User


@pytest.fixture
def sample_question() -> type[SampleQuestion]:
    """The class of questions to add."""
    return SampleQuestion


@pytest.fixture
def scene(database: Database) -> Scene:
    """Something to record in."""
    with database.begin() as session:
        project = projects.create_project(session, "harbours", "harbour")
        projects.add_questions(session, project.id, [SampleQuestion(f"Who built quay {n}?") for n in (1, 2, 3)])
        ada = users.register_user(session, "ada")
        users.register_user(session, "ben")
        ben = users.set_roles(session, "ben", [users.ANNOTATOR, users.REVIEWER])
        return Scene(database, project, projects.list_questions(session, project.id), ada, ben)


@contextmanager
def full_disk(largest_file: int) -> Iterator[None]:
    """Let no file of this process grow beyond that many bytes: the kernel refuses to write more, as on a full disk."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Only the soft limit, so that it can be raised again. Python ignores the signal that comes with the error.
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
