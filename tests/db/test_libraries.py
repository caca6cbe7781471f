"""Libraries in the store: which traces are frozen, in which order, and that versions stay."""

import pytest

from db import forking, recording, review
from db.database import Conflict, Missing
from db.libraries import (
    MODELS,
    PEOPLE,
    Wanted,
    candidates,
    demonstrations,
    freeze,
    split_questions,
    version,
    versions,
)
from db.models import Question, Trace


def recorded(scene, question, tools, *, stars=(), status="approved"):
    """A trace of ada's that used the tools, with stars for its first steps."""
    with scene.database.begin() as session:
        trace = recording.start_trace(session, question.id, scene.ada.id)
    for number, tool in enumerate(tools):
        with scene.database.begin() as session:
            seen = session.get_one(Trace, trace.id).version
            step = recording.begin_step(session, trace.id, recording.NewStep("why", tool, {}), seen=seen)
        with scene.database.begin() as session:
            done = recording.complete_step(session, step.id, recording.Observed("seen", None, None, 0.1))
        if number < len(stars):
            with scene.database.begin() as session:
                seen = session.get_one(Trace, trace.id).version
                recording.rate(session, done.id, stars[number], seen=seen, by=scene.ada.id)
    if status != "draft":
        with scene.database.begin() as session:
            seen = session.get_one(Trace, trace.id).version
            answers = recording.Answers("Ines Moor", final_thought="so")
            recording.submit(session, trace.id, answers, seen=seen, by=scene.ada.id)
            if status == "approved":
                review.approve(session, trace.id, by=scene.ben.id)
    return trace.id


@pytest.fixture
def three(scene):
    """Two approved traces with stars and one draft."""
    first, second, third = scene.questions
    with scene.database.begin() as session:
        session.get_one(Question, first.id).kind = "count"
        session.get_one(Question, third.id).split = "test"
    return [
        recorded(scene, first, ["wikisearch", "read"], stars=(5, 4)),
        recorded(scene, second, ["runQuery"], stars=(2,)),
        recorded(scene, third, ["read"], status="draft"),
    ]


def test_only_approved_traces_that_fit_are_candidates(scene, three):
    with scene.database.read() as session:
        both = candidates(session, Wanted())
        assert [each.trace_id for each in both] == sorted(three[:2])
        found = {each.trace_id: each for each in both}[three[0]]
        assert found.tools == ("wikisearch", "read")
        assert (found.rating, found.kind, found.project, found.author) == (4.5, "count", "harbours", "ada")

        def chosen(**conditions):
            return [each.trace_id for each in candidates(session, Wanted(**conditions))]

        assert chosen(kind="count") == chosen(rating=4.5) == [three[0]]
        assert chosen(rating=4.6) == chosen(by=MODELS) == chosen(project="elsewhere") == []
        assert chosen(by=PEOPLE) == chosen(project="harbours") == sorted(three[:2])


def test_versions_are_numbered_and_stay_as_they_were(scene, three):
    with scene.database.begin() as session:
        first = freeze(session, "quays", [three[1], three[0]], {"note": "both"})
    with scene.database.begin() as session:
        second = freeze(session, "quays", [three[0]], {})
        other = freeze(session, "piers", [three[0]], {})
        assert (first.number, second.number, other.number) == (1, 2, 1)
    with scene.database.begin() as session:
        review.reject(session, three[1], by=scene.ben.id, comment="no longer")
        forking.fork(session, three[0], 1, scene.ben.id)
    with scene.database.read() as session:
        assert [each.trace_id for each in demonstrations(session, first.id)] == [three[1], three[0]]
        assert version(session, "quays").id == second.id
        assert version(session, "quays:1").card == {"note": "both"}
        listed = [(each.name, each.number, each.demonstrations) for each in versions(session)]
        assert listed == [("piers", 1, 1), ("quays", 2, 1), ("quays", 1, 2)]
        assert [each.number for each in versions(session, "quays")] == [2, 1]


@pytest.mark.parametrize("reference", ["nets", "quays:2", "quays:0", "quays:", "quays:one", "quays:²", ""])
def test_a_version_that_there_is_not_is_told(scene, three, reference):
    with scene.database.begin() as session:
        freeze(session, "quays", three[:1], {})
    with scene.database.read() as session, pytest.raises(Missing, match=r"library|version"):
        version(session, reference)


@pytest.mark.parametrize("name", ["", "  ", "a/b", "a:1"])
def test_a_name_that_cannot_be_referred_to_is_refused(scene, three, name):
    with pytest.raises(Conflict, match="name"), scene.database.begin() as session:
        freeze(session, name, three[:1], {})


def test_nothing_is_frozen_of_nothing(scene):
    with pytest.raises(Conflict, match="no approved trace"), scene.database.begin() as session:
        freeze(session, "quays", [], {})


def test_the_questions_of_a_split(scene, three):
    with scene.database.read() as session:
        assert split_questions(session, "test") == [(scene.questions[2].id, "Who built quay 3?")]
        assert split_questions(session, "dev") == []
