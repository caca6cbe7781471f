"""A new user records, submits, is returned, fixes, is approved, freezes, asks and compares."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.newcomer import walk
from tests.browser.server import Showhow


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with the default world and a reviewer, in a process started by the command line."""
    showhow = Showhow(tmp_path_factory.mktemp("fresh"), preloaded=False)
    showhow.appoint("grace")
    showhow.start()
    yield showhow
    showhow.stop()


def test_the_pages_lead_a_new_user_from_the_first_step_to_the_comparison_of_runs(page: Page, fresh: Showhow):
    pictures: list[str] = []
    walk(page, fresh, lambda _page, name: pictures.append(name))
    assert [name[0] for name in pictures] == list("12345678")


def test_the_server_keeps_memory_and_cores_for_its_pages(fresh: Showhow):
    environment = fresh.process_environment
    assert (environment["MALLOC_ARENA_MAX"], environment["OMP_NUM_THREADS"]) == ("2", "1")
