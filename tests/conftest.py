"""What the tests of every room may ask for."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.browser.server import PREPARED
from tests.servers import oxigraph as oxigraph_server
from tests.servers import virtuoso as virtuoso_server
from tests.servers.mediawiki import MediaWiki, serving
from tests.servers.sparql import SparqlServer
from tests.servers.wiki_pages import real_pages, written_pages

pytest_plugins = (
    "tests.fixtures.harbour",
    "tests.fixtures.postgresql",
    "tests.fixtures.real_world",
    "tests.fixtures.town",
)

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Continuous integration draws the same examples each time; on a developer's machine new ones are looked for.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.register_profile("long", deadline=None, max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "explore"))

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    """Give all workers of this run one folder for prepared homes; workers inherit the environment."""
    # A run that was started in the background ignores SIGINT, and so would the verbs that tests start and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        os.environ[PREPARED] = tempfile.mkdtemp(prefix="showhow-tests-")
        # What a test runs in its own process opens no store of the person who runs it.
        os.environ["SHOWHOW_HOME"] = str(Path(os.environ[PREPARED]) / "nobody")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude the collected tests and their imports from garbage collection, which some libraries run at each call."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Collect after each file and exclude what stays: a late collection would take seconds, and blame another test."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the prepared homes."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(PREPARED), ignore_errors=True)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real questions, texts and graphs beside the checkout; required in continuous integration."""
    if not SHARED.is_dir():
        message = f"the test data is missing: there is no folder {SHARED}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return SHARED


@pytest.fixture(scope="session")
def mediawiki(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MediaWiki]:
    """A real MediaWiki of 254 pages, one for all tests of a worker."""
    pages = [*written_pages(), *real_pages(shared_data)]
    with serving(pages, tmp_path_factory.mktemp("mediawiki")) as wiki:
        yield wiki


@pytest.fixture(scope="session")
def graph_files(shared_data: Path) -> dict[str, Path]:
    """The graphs that the SPARQL servers have, by name: two small ones of our own and the real one."""
    tests = Path(__file__).parent
    return {
        "isle": tests / "worlds" / "isle.ttl",
        "harbour": tests / "tools" / "harbour.ttl",
        "real": shared_data / "world_2wiki" / "kg_full.ttl",
    }


@pytest.fixture(scope="session")
def oxigraph(graph_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlServer]:
    """A real Oxigraph server, one for all tests of a worker."""
    with oxigraph_server.serving(graph_files, tmp_path_factory.mktemp("oxigraph")) as server:
        yield server


@pytest.fixture(scope="session")
def virtuoso(graph_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlServer]:
    """A real Virtuoso, one for all tests of a worker."""
    with virtuoso_server.serving(graph_files, tmp_path_factory.mktemp("virtuoso"), query_seconds=5) as server:
        yield server
