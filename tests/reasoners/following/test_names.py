"""Whom a name means, in a town where a third of the people share theirs with somebody."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from db.record import TraceRecord
from reasoners.following.lessons import Lessons
from reasoners.following.names import Names
from reasoners.following.things import Thing
from reasoners.following.walk import Broken, Steps, Walk
from reasoners.reasoner import Action, Task
from tests.reasoners.conftest import Town
from tests.reasoners.following.conftest import Namesakes
from tools.registry import TOOLS
from tools.tool import Context

Run = Callable[[str, str | Thing], Any]


def asking(context: Context, shown: list[TraceRecord]) -> Run:
    """What a method of Names comes to, with every call really made."""

    def asked(method: str, given: str | Thing) -> Any:
        walk = Walk(Task("Who?", context, list(TOOLS.values()), shown))
        steps: Steps = getattr(Names(walk, Lessons(shown)), method)(given)
        outcome = None
        while True:
            try:
                action = steps.send(outcome)
            except StopIteration as done:
                return done.value
            assert isinstance(action, Action)
            outcome = TOOLS[str(action.tool)].call(context, action.arguments)

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
        found = run("named", title)
        assert found.id == entity(namesakes, title)


def test_a_name_that_one_has_means_that_one_and_a_shared_one_nobody(run: Run, namesakes: Namesakes) -> None:
    for name, people in Counter(namesakes.universe.names).items():
        if people == 1:
            assert run("named", name).id == entity(namesakes, name)
        else:
            with pytest.raises(Broken, match=f"is called {name}"):
                run("named", name)


def test_whoever_the_graph_names_is_answered_by_title(run: Run, namesakes: Namesakes) -> None:
    for name, title in zip(namesakes.universe.names, namesakes.universe.titles, strict=True):
        thing = Thing(name, entity(namesakes, title))
        assert run("title", thing) == title


def test_who_has_no_id_keeps_the_name(run: Run) -> None:
    assert run("title", Thing("Ada Lund")) == "Ada Lund"


def test_nobody_is_found_under_a_name_that_nobody_has(run: Run) -> None:
    with pytest.raises(Broken, match="'Zebedee Nobody' is not found"):
        run("named", "Zebedee Nobody")
