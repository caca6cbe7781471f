"""Libraries in the store: which traces are frozen, in which order, and that versions stay."""

import pytest

from db import forking, recording, review
from db.database import Conflict, Missing
from db.libraries import (
    MODELS,
    PEOPLE,
    Wanted,
    approved_stamp,
    candidates,
    choices,
    count,
    demonstrations,
    fitting_ids,
    freeze,
    page,
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


def test_words_of_the_question_are_a_condition_whatever_their_case_and_order(scene, three):
    with scene.database.read() as session:
        first = session.get_one(Question, scene.questions[0].id).text
        words = first.rstrip("?").split()
        for text in (first, first.upper(), f"  {words[-1]} {words[0]} "):
            assert three[0] in [each.trace_id for each in candidates(session, Wanted(text=text))]
        # What a pattern would read as "anything" is a character like any other.
        assert candidates(session, Wanted(text="%")) == candidates(session, Wanted(text="_")) == []


def test_demonstrations_are_browsed_a_page_at_a_time(scene, three):
    with scene.database.begin() as session:
        frozen = freeze(session, "quays", [three[1], three[0]], {})
    with scene.database.read() as session:
        every = {each.trace_id: each for each in candidates(session, Wanted())}
        both = [every[three[1]], every[three[0]]]
        for version_id, expected in ((None, [every[key] for key in sorted(every, reverse=True)]), (frozen.id, both)):
            pages = [page(session, Wanted(), version_id=version_id, start=at, limit=1) for at in range(3)]
            assert pages == [[expected[0]], [expected[1]], []]
            assert count(session, Wanted(), version_id) == 2
            assert page(session, Wanted(rating=4.5), version_id=version_id) == [every[three[0]]]
            assert count(session, Wanted(rating=4.5), version_id) == 1
            assert choices(session, version_id) == (["harbours"], ["count"])
        assert fitting_ids(session, Wanted(), frozen.id) == [three[1], three[0]]
        assert fitting_ids(session, Wanted(kind="count")) == [three[0]]


def test_the_stamp_of_the_approved_traces_changes_with_each_decision(scene, three):
    def stamp():
        with scene.database.read() as session:
            return approved_stamp(session)

    seen = [stamp()]
    with scene.database.begin() as session:
        review.reject(session, three[0], by=scene.ben.id, comment="no")
    seen.append(stamp())
    with scene.database.begin() as session:
        review.approve(session, three[0], by=scene.ben.id)
    seen.append(stamp())
    assert len(set(seen)) == 3
    assert stamp() == seen[-1]
