"""Resolution of names in a world where a third of the people share a name."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from db.trace_record import TraceRecord
from reasoners.base import Action, Task
from reasoners.replay.knowledge import ReplayKnowledge
from reasoners.replay.session import FoundEntity, ReplayBroken, ReplayGenerator, ReplaySession
from reasoners.replay.text_lookups import EntityResolver
from tests.fixtures.town import Town
from tests.reasoners.replay.conftest import Namesakes
from tools.registry import BUILT_IN_TOOLS
from tools.tool import ToolContext

Run = Callable[[str, str | FoundEntity], Any]


def asking(context: ToolContext, shown: list[TraceRecord]) -> Run:
    """The result of a method of EntityResolver, with real tool calls."""

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
    entity = namesakes.text.article(title).entity
    assert entity is not None
    return entity


def test_an_article_title_resolves_to_its_entity(run: Run, namesakes: Namesakes) -> None:
    titles = [title for title in namesakes.universe.titles if "(" in title]
    assert len(titles) > 20
    for title in titles:
        resolved = run("resolve", title)
        assert resolved.id == entity(namesakes, title)


def test_a_unique_name_resolves_and_a_shared_one_does_not(run: Run, namesakes: Namesakes) -> None:
    for name, people in Counter(namesakes.universe.names).items():
        if people == 1:
            assert run("resolve", name).id == entity(namesakes, name)
        else:
            with pytest.raises(ReplayBroken, match=f"entities are called {name}"):
                run("resolve", name)


def test_an_entity_of_the_graph_gets_its_article_title(run: Run, namesakes: Namesakes) -> None:
    for name, title in zip(namesakes.universe.names, namesakes.universe.titles, strict=True):
        thing = FoundEntity(name, entity(namesakes, title))
        assert run("find_title", thing) == title


def test_an_entity_without_an_id_keeps_its_name(run: Run) -> None:
    assert run("find_title", FoundEntity("Ada Lund")) == "Ada Lund"


def test_an_unknown_name_does_not_resolve(run: Run) -> None:
    with pytest.raises(ReplayBroken, match="'Zebedee Nobody' is not found"):
        run("resolve", "Zebedee Nobody")
