"""Libraries in the database: the traces that are frozen, their order, and versions that never change."""

import pytest

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Library, Question, Trace
from showhow.db.review import review
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording, traces
from showhow.db.traces.libraries import (
    MODELS,
    PEOPLE,
    DemonstrationFilter,
    approval_fingerprint,
    count_demonstrations,
    find_version,
    list_candidates,
    list_demonstrations,
    list_facets,
    list_matching_ids,
    list_split_questions,
    list_versions,
    load_demonstrations,
    store_version,
)


def recorded(scene, question, tools, *, stars=(), status="approved"):
    """A trace of ada's with calls of these tools, with ratings of its first steps."""
    with scene.database.begin() as session:
        trace = recording.start_trace(session, question.id, scene.ada.id)
    for number, tool in enumerate(tools):
        with scene.database.begin() as session:
            seen = session.get_one(Trace, trace.id).version
            step = recording.begin_step(
                session, trace.id, recording.NewStep("why", tool, {}), seen=seen, by=trace.author_id
            )
        with scene.database.begin() as session:
            done = recording.complete_step(
                session, step.id, recording.StepResult("seen", None, None, 0.1), by=scene.ada.id
            )
        if number < len(stars):
            with scene.database.begin() as session:
                seen = session.get_one(Trace, trace.id).version
                recording.rate_step(session, done.id, stars[number], seen=seen, by=scene.ada.id)
    if status != "draft":
        with scene.database.begin() as session:
            seen = session.get_one(Trace, trace.id).version
            answers = recording.TraceAnswers("Ines Moor", final_thought="so")
            recording.submit_trace(session, trace.id, answers, seen=seen, by=scene.ada.id)
            if status == "approved":
                review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id)
    return trace.id


@pytest.fixture
def three(scene):
    """Two approved traces with ratings, and one draft."""
    first, second, third = scene.questions
    with scene.database.begin() as session:
        session.get_one(Question, first.id).kind = "count"
        session.get_one(Question, third.id).split = "test"
    return [
        recorded(scene, first, ["wikisearch", "read"], stars=(5, 4)),
        recorded(scene, second, ["runQuery"], stars=(2,)),
        recorded(scene, third, ["read"], status="draft"),
    ]


def test_only_approved_traces_that_match_are_candidates(scene, three):
    with scene.database.read() as session:
        both = list_candidates(session, DemonstrationFilter())
        assert [candidate.trace_id for candidate in both] == sorted(three[:2])
        demonstration = {candidate.trace_id: candidate for candidate in both}[three[0]]
        assert demonstration.tools == ("wikisearch", "read")
        assert (demonstration.rating, demonstration.kind, demonstration.project, demonstration.author) == (
            4.5,
            "count",
            "harbours",
            "ada",
        )

        def chosen(**conditions):
            return [candidate.trace_id for candidate in list_candidates(session, DemonstrationFilter(**conditions))]

        assert chosen(kind="count") == chosen(rating=4.5) == [three[0]]
        assert chosen(rating=4.6) == chosen(by=MODELS) == chosen(project="elsewhere") == []
        assert chosen(by=PEOPLE) == chosen(project="harbours") == sorted(three[:2])


def test_versions_are_numbered_and_stay_as_they_were(scene, three):
    with scene.database.begin() as session:
        first = store_version(session, "quays", [three[1], three[0]], {"note": "both"})
    with scene.database.begin() as session:
        second = store_version(session, "quays", [three[0]], {})
        other = store_version(session, "piers", [three[0]], {})
        assert (first.number, second.number, other.number) == (1, 2, 1)
    with scene.database.begin() as session:
        review.reject_trace(
            session, three[1], seen=trace_version(session, three[1]), by=scene.ben.id, comment="no longer"
        )
        traces.fork_trace(session, three[0], 1, scene.ben.id)
    with scene.database.read() as session:
        assert [demonstration.trace_id for demonstration in load_demonstrations(session, first.id)] == [
            three[1],
            three[0],
        ]
        assert find_version(session, "quays").id == second.id
        assert find_version(session, "quays:1").card == {"note": "both"}
        listed = [(version.name, version.number, version.demonstrations) for version in list_versions(session)]
        assert listed == [("piers", 1, 1), ("quays", 2, 1), ("quays", 1, 2)]
        assert [version.number for version in list_versions(session, "quays")] == [2, 1]


@pytest.mark.parametrize(
    "reference", ["nets", "quays:2", "quays:0", "quays:", "quays:one", "quays:²", f"quays:{2**70}", ""]
)
def test_an_unknown_library_version_is_not_found(scene, three, reference):
    with scene.database.begin() as session:
        store_version(session, "quays", three[:1], {})
    with scene.database.read() as session, pytest.raises(RowNotFound, match=r"library|version"):
        find_version(session, reference)


@pytest.mark.parametrize("name", ["", "  ", "a/b", "a:1", "..", "x" * 300, "con", "Quays", "quay5 ", "\x00"])
def test_a_library_name_follows_the_rule_of_names_of_worlds(scene, three, name):
    with scene.database.begin() as session:
        store_version(session, "quays", three[:1], {})
    with pytest.raises(Conflict, match="cannot be called") as refused, scene.database.begin() as session:
        store_version(session, name, three[:1], {})
    assert len(str(refused.value)) < 250
    with scene.database.read() as session:
        assert [version.name for version in list_versions(session)] == ["quays"]


def test_a_library_with_a_former_name_can_be_read_and_continued(scene, three):
    with scene.database.begin() as session:
        session.add(Library(name="../My library", number=1, card={}))
    with scene.database.begin() as session:
        assert store_version(session, "../My library", three[:1], {}).number == 2
    with scene.database.read() as session:
        assert find_version(session, "../My library:1").number == 1


def test_an_empty_library_is_not_frozen(scene):
    with pytest.raises(Conflict, match="no approved trace"), scene.database.begin() as session:
        store_version(session, "quays", [], {})


def test_the_questions_of_a_split_are_listed(scene, three):
    with scene.database.read() as session:
        assert list_split_questions(session, "test") == [(scene.questions[2].id, "Who built quay 3?")]
        assert list_split_questions(session, "dev") == []


def test_demonstrations_and_questions_of_a_split_have_their_attachments(scene, three):
    with scene.database.begin() as session:
        for question in scene.questions:
            session.get_one(Question, question.id).details = {"attachments": {"plan": [question.position, "é"]}}
    with scene.database.read() as session:
        assert list_split_questions(session, "test") == [
            (scene.questions[2].id, session.get_one(Question, scene.questions[2].id).full_text)
        ]
        candidates = list_candidates(session, DemonstrationFilter())
        texts = {session.get_one(Question, row.question_id).full_text for row in candidates}
        assert {row.full_text for row in candidates} == texts
        assert {row.attachments["plan"][1] for row in list_demonstrations(session, DemonstrationFilter())} == {"é"}


def test_words_of_the_question_match_in_any_case_and_order(scene, three):
    with scene.database.read() as session:
        first = session.get_one(Question, scene.questions[0].id).text
        words = first.rstrip("?").split()
        for text in (first, first.upper(), f"  {words[-1]} {words[0]} "):
            assert three[0] in [
                candidate.trace_id for candidate in list_candidates(session, DemonstrationFilter(text=text))
            ]
        # Wildcards of SQL patterns are ordinary characters here.
        assert (
            list_candidates(session, DemonstrationFilter(text="%"))
            == list_candidates(session, DemonstrationFilter(text="_"))
            == []
        )


def test_demonstrations_are_listed_by_page(scene, three):
    with scene.database.begin() as session:
        frozen = store_version(session, "quays", [three[1], three[0]], {})
    with scene.database.read() as session:
        every = {candidate.trace_id: candidate for candidate in list_candidates(session, DemonstrationFilter())}
        both = [every[three[1]], every[three[0]]]
        for version_id, expected in ((None, [every[key] for key in sorted(every, reverse=True)]), (frozen.id, both)):
            pages = [
                list_demonstrations(session, DemonstrationFilter(), version_id=version_id, start=at, limit=1)
                for at in range(3)
            ]
            assert pages == [[expected[0]], [expected[1]], []]
            assert count_demonstrations(session, DemonstrationFilter(), version_id) == 2
            assert list_demonstrations(session, DemonstrationFilter(rating=4.5), version_id=version_id) == [
                every[three[0]]
            ]
            assert count_demonstrations(session, DemonstrationFilter(rating=4.5), version_id) == 1
            assert list_facets(session, version_id) == (["harbours"], ["count"])
        assert list_matching_ids(session, DemonstrationFilter(), frozen.id) == [three[1], three[0]]
        assert list_matching_ids(session, DemonstrationFilter(kind="count")) == [three[0]]


def test_the_fingerprint_of_approved_traces_changes_with_each_decision(scene, three):
    def stamp():
        with scene.database.read() as session:
            return approval_fingerprint(session)

    seen = [stamp()]
    with scene.database.begin() as session:
        review.reject_trace(session, three[0], seen=trace_version(session, three[0]), by=scene.ben.id, comment="no")
    seen.append(stamp())
    with scene.database.begin() as session:
        review.approve_trace(session, three[0], seen=trace_version(session, three[0]), by=scene.ben.id)
    seen.append(stamp())
    assert len(set(seen)) == 3
    assert stamp() == seen[-1]
