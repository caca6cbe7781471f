"""Whom a name means, in a town where a third of the people share theirs with somebody."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from db.trace_record import TraceRecord
from reasoners.base import Action, Task
from reasoners.replay.entities import FoundEntity
from reasoners.replay.inquiry import EntityResolver
from reasoners.replay.lessons import ReplayKnowledge
from reasoners.replay.walk import ReplayBroken, ReplayGenerator, ReplaySession
from tests.fixtures.town import Town
from tests.reasoners.replay.conftest import Namesakes
from tools.registry import BUILT_IN_TOOLS
from tools.tool import ToolContext

Run = Callable[[str, str | FoundEntity], Any]


def asking(context: ToolContext, shown: list[TraceRecord]) -> Run:
    """What a method of Names comes to, with every call really made."""

    def asked(method: str, given: str | FoundEntity) -> Any:
        walk = ReplaySession(Task("Who?", context, list(BUILT_IN_TOOLS.values()), shown))
        steps: ReplayGenerator = getattr(EntityResolver(walk, ReplayKnowledge(shown)), method)(given)
        outcome = None
        while True:
            try:
                action = steps.send(outcome)
            except StopIteration as done:
                return done.value
            assert isinstance(action, Action)
            outcome = BUILT_IN_TOOLS[str(action.tool)].call(context, action.arguments)

    return asked


@pytest.fixture(scope="module")
def run(namesakes: Namesakes, town: Town) -> Run:
    return asking(namesakes.context, town.gold)


def entity(namesakes: Namesakes, title: str) -> str:
    found = namesakes.text.article(title).entity
    assert found is not None
    return found


def test_a_title_means_the_one_whose_article_has_it(run: Run, namesakes: Namesakes) -> None:
    titles = [title for title in namesakes.universe.titles if "(" in title]
    assert len(titles) > 20
    for title in titles:
        found = run("resolve", title)
        assert found.id == entity(namesakes, title)


def test_a_name_that_one_has_means_that_one_and_a_shared_one_nobody(run: Run, namesakes: Namesakes) -> None:
    for name, people in Counter(namesakes.universe.names).items():
        if people == 1:
            assert run("resolve", name).id == entity(namesakes, name)
        else:
            with pytest.raises(ReplayBroken, match=f"is called {name}"):
                run("resolve", name)


def test_whoever_the_graph_names_is_answered_by_title(run: Run, namesakes: Namesakes) -> None:
    for name, title in zip(namesakes.universe.names, namesakes.universe.titles, strict=True):
        thing = FoundEntity(name, entity(namesakes, title))
        assert run("find_title", thing) == title


def test_who_has_no_id_keeps_the_name(run: Run) -> None:
    assert run("find_title", FoundEntity("Ada Lund")) == "Ada Lund"


def test_nobody_is_found_under_a_name_that_nobody_has(run: Run) -> None:
    with pytest.raises(ReplayBroken, match="'Zebedee Nobody' is not found"):
        run("resolve", "Zebedee Nobody")
