"""What is archived and deleted is gone from every list, comes back as it was, and leaves readable what rests on it."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Attempt, Project, Question, Run, Step, Trace
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.removal import purging, removals, renaming
from showhow.db.removal.removal_kinds import KEPT_DAYS, Kind
from showhow.db.removed_rows import REMOVABLE, WITH_REMOVED
from showhow.db.review import queue
from showhow.db.run_spec import RunSpec
from showhow.db.runs import comparisons, leases
from showhow.db.runs.verifications import list_outcomes, list_verifications
from showhow.db.serialization import field_values
from showhow.db.storage.merge import merge_trace
from showhow.db.traces import libraries, traces
from showhow.db.traces.libraries import DemonstrationFilter
from showhow.db.types import utc_now
from tests.db.test_libraries import recorded
from tests.fixtures.compared_runs import F1, make_questions

ANSWERED = {"ending": "answered", "score": 1.0}


def all_rows(session: Any) -> dict[str, list[Any]]:
    """Every row of the kinds that can be removed, and of the steps, as they are stored."""
    kinds = (*REMOVABLE, Step)
    rows = {kind: session.scalars(select(kind).order_by(kind.id), execution_options=WITH_REMOVED) for kind in kinds}
    return {
        kind.__name__: [(field_values(row), getattr(row, "removal_id", None)) for row in rows[kind]] for kind in kinds
    }


def count_rows(session: Any, kind: type[Any], **options: Any) -> int:
    return session.scalar(select(func.count()).select_from(kind), execution_options=options)


def frozen(scene: Any) -> Any:
    """Two approved traces in the library default:1, and a draft."""
    ids = [recorded(scene, question, ["read"]) for question in scene.questions[:2]]
    recorded(scene, scene.questions[2], ["read"], status="draft")
    with scene.database.begin() as session:
        return libraries.store_version(session, "default", ids, {"by": "ada"})


def test_a_deleted_project_leaves_all_lists_and_comes_back_as_it_was(scene):
    library = frozen(scene)
    with scene.database.read() as session:
        before = all_rows(session)
        effect = removals.describe_removal(session, Kind.PROJECT, scene.project.id)
    assert effect.touched == {"run": 0, "trace": 3, "question": 3}
    assert str(effect) == (
        "Project harbours with 3 traces and 3 questions. The library default:1 keeps its 2 demonstrations of it."
    )
    with scene.database.acting_as(users.ActingPerson("ada", is_local=True)).begin() as session:
        removal = removals.remove(session, Kind.PROJECT, scene.project.id)
    assert (removal.removed_by, removal.touched["question"]) == ("ada", 3)
    with scene.database.read() as session:
        assert projects.list_projects(session) == []
        assert projects.list_questions(session, scene.project.id) == []
        assert traces.list_trace_summaries(session) == []
        assert libraries.list_candidates(session, DemonstrationFilter()) == []
        assert libraries.list_facets(session).projects == []
        assert queue.list_drafts(session, scene.project.id, scene.ada.id) == []
        for kind in (Project, Question, Trace):
            assert count_rows(session, kind) == 0 < count_rows(session, kind, **WITH_REMOVED)
        # The frozen version is what it was.
        kept = libraries.load_demonstrations(session, library.id)
        assert [len(row.tools) for row in kept] == [1, 1]
        assert kept[0].project.startswith("harbours (deleted")
        assert len(traces.load_trace(session, kept[0].trace_id).steps) == 1
        assert libraries.count_demonstrations(session, DemonstrationFilter(), library.id) == 2
    # Another project may have the name meanwhile; then the first one cannot come back under it.
    with scene.database.begin() as session:
        other = projects.create_project(session, "harbours", "harbour")
    with pytest.raises(Conflict, match="rename it"), scene.database.begin() as session:
        removals.restore(session, removal.id)
    with scene.database.begin() as session:
        removals.remove(session, Kind.PROJECT, other.id)
        assert removals.restore(session, removal.id).name == "harbours"
    with scene.database.read() as session:
        after = all_rows(session)
        assert [row.name for row in projects.list_projects(session)] == ["harbours"]
    after["Project"] = [row for row in after["Project"] if row[0]["id"] != other.id]
    assert after == before


def test_a_deleted_question_leaves_the_queue_and_stays_in_the_runs_that_asked_it(database):
    made = make_questions(database, 6)
    outcomes = {(question.id, 1): ANSWERED for question in made.questions}
    runs = [made.add_run(made.questions, outcomes) for _ in range(2)]
    gone, others = made.questions[0], [made.questions[3].id]
    with database.read() as session:
        effect = removals.describe_removal(session, Kind.QUESTION, gone.id, others)
        pair = (runs[0].id, runs[1].id)
        compared = comparisons.list_compared_questions(session, pair, F1, comparisons.ComparisonFilter(), "asked", 50)
    assert effect.touched == {"trace": 4, "other question": 1}
    assert effect.title.endswith(" with 4 traces and 1 other question.")
    assert effect.stays == ("2 runs that asked it keep their answers.",)
    with database.begin() as session:
        removal = removals.remove(session, Kind.QUESTION, gone.id, others=others)
    with database.read() as session:
        assert [q.position for q in projects.list_questions(session, made.project.id)] == [2, 3, 5, 6]
        assert projects.count_questions(session, made.project.id) == 4
        assert len(list_outcomes(session, runs[0])) == 6
        again = comparisons.list_compared_questions(session, pair, F1, comparisons.ComparisonFilter(), "asked", 50)
        assert again == compared
    # It can be imported anew, at the end, and its number is not given to another one.
    with database.begin() as session:
        counts = projects.add_questions(session, made.project.id, [gone])
    assert counts.added == 1
    with database.begin() as session:
        assert projects.list_questions(session, made.project.id)[-1].position == 7
        removals.restore(session, removal.id)
        assert projects.count_questions(session, made.project.id) == 7


def test_a_run_is_deleted_when_it_rests_and_its_repairs_stay(database):
    made = make_questions(database, 3)
    outcomes = {(question.id, 1): {"ending": "refused"} for question in made.questions}
    run = made.add_run(made.questions, outcomes)
    again = made.add_run(made.questions, {}, repeats=run.id, finished_at=None)
    with database.begin() as session:
        ada = users.register_user(session, "ada")
        failed = session.scalars(select(Trace).where(Trace.run_id == run.id)).first()
        fork = traces.fork_trace(session, failed.id, 0, ada.id)
    with database.read() as session:
        effect = removals.describe_removal(session, Kind.RUN, run.id)
    assert effect.touched == {"trace": 3}
    assert effect.stays == ("1 repair by people stays.", "1 verification of its failures stays.")
    with database.begin() as session:
        (first, *_) = session.scalars(select(Attempt).where(Attempt.run_id == again.id))
        leases.take_attempt(session, first.id, leases.Taker("worker"))
    with pytest.raises(Conflict, match="at work"), database.begin() as session:
        removals.remove(session, Kind.PROJECT, made.project.id)
    with database.begin() as session:
        removal = removals.remove(session, Kind.RUN, run.id, archives=True)
    assert removal.is_archived
    with database.read() as session:
        assert [stored.id for stored in list_verifications(session, made.project.id)] == [again.id]
        assert [stored.id for stored in comparisons.list_comparable_runs(session)] == [again.id]
        assert traces.load_trace(session, fork.id).trace.parent_id == failed.id
        with pytest.raises(RowNotFound, match="no run"):
            comparisons.find_comparable_run(session, run.id)
    with database.begin() as session:
        removals.restore(session, removal.id)
        assert len(list_verifications(session, made.project.id)) == 2


def test_a_run_that_used_a_deleted_library_still_says_which(scene):
    library = frozen(scene)
    with scene.database.begin() as session:
        run = Run(name="verify", reasoner="replay", world="w", library_id=library.id)
        run.spec = RunSpec(library="default:1", project_id=scene.project.id)
        session.add(run)
    with scene.database.read() as session:
        effect = removals.describe_removal(session, Kind.LIBRARY, library.id)
    assert str(effect) == "Library default:1. 1 run that used it stays as it is."
    with scene.database.begin() as session:
        removal = removals.remove(session, Kind.LIBRARY, library.id)
    with scene.database.begin() as session:
        assert libraries.list_versions(session) == []
        with pytest.raises(RowNotFound):
            libraries.find_version(session, "default:1")
        # No number names two versions.
        ids = libraries.list_matching_ids(session, DemonstrationFilter())
        assert libraries.store_version(session, "default", ids, {}).number == 2
        removals.restore(session, removal.id)
        assert [row.number for row in libraries.list_versions(session)] == [2, 1]


def test_what_is_in_something_deleted_comes_back_with_it_only(scene):
    frozen(scene)
    with scene.database.begin() as session:
        question = removals.remove(session, Kind.QUESTION, scene.questions[0].id)
        project = removals.remove(session, Kind.PROJECT, scene.project.id)
        assert project.touched["question"] == 2
    with pytest.raises(Conflict, match="project of this question"), scene.database.begin() as session:
        removals.restore(session, question.id)
    with scene.database.begin() as session:
        removals.restore(session, project.id)
    with scene.database.read() as session:
        assert [q.position for q in projects.list_questions(session, scene.project.id)] == [2, 3]
    with scene.database.begin() as session:
        removals.restore(session, question.id)
        assert projects.count_questions(session, scene.project.id) == 3
    with pytest.raises(RowNotFound, match="restored"), scene.database.begin() as session:
        removals.restore(session, question.id)


def test_traces_of_something_deleted_are_not_imported_beside_it(scene):
    frozen(scene)
    with scene.database.read() as session:
        record = next(traces.iterate_traces(session, status="approved"))
    with scene.database.begin() as session:
        removal = removals.remove(session, Kind.PROJECT, scene.project.id)
    with pytest.raises(Conflict, match="restore it"), scene.database.begin() as session:
        merge_trace(session, record)
    with scene.database.begin() as session:
        removals.restore(session, removal.id)
        assert merge_trace(session, record) == "same"


def test_a_deletion_is_final_after_thirty_days_but_for_what_others_rest_on(scene):
    library = frozen(scene)
    made = make_questions(scene.database, 3)
    made.add_run(made.questions, {(question.id, 1): ANSWERED for question in made.questions})
    with scene.database.begin() as session:
        kept = removals.remove(session, Kind.PROJECT, scene.project.id)
        removals.remove(session, Kind.PROJECT, made.project.id)
        archived = removals.remove(session, Kind.LIBRARY, library.id, archives=True)
    assert purging.purge(scene.database).names == ()
    with scene.database.begin() as session:
        for removal in removals.list_removals(session, Kind.PROJECT):
            removal.kept_until = utc_now() - timedelta(minutes=1)
        assert utc_now() + timedelta(days=KEPT_DAYS - 1) > kept.removed_at
    assert set(purging.purge(scene.database).names) == {"project harbours", f"project {made.project.name}"}
    with scene.database.read() as session:
        assert [row.id for row in removals.list_removals(session)] == [archived.id]
        # The demonstrations of the library, with their questions; of the other project nothing.
        counts = [count_rows(session, kind, **WITH_REMOVED) for kind in (Project, Question, Trace, Run, Attempt)]
        assert counts == [1, 2, 2, 0, 0]
    with scene.database.begin() as session:
        removals.restore(session, archived.id)
        assert len(libraries.load_demonstrations(session, library.id)) == 2
        removals.remove(session, Kind.LIBRARY, library.id)
    purging.purge(scene.database, now=True)
    with scene.database.read() as session:
        assert [count_rows(session, kind, **WITH_REMOVED) for kind in (Project, Question, Trace)] == [0, 0, 0]


def test_names_change_and_what_named_them_goes_on(scene):
    library = frozen(scene)
    with scene.database.begin() as session:
        projects.collect_asked_questions(
            session, projects.asked_questions_project(session, "harbour", asked_in="harbours")
        )
        assert renaming.rename_project(session, "harbours", "  quays ").name == "quays"
        assert {row.name for row in projects.list_projects(session)} == {"quays", "Asked in quays"}
        with pytest.raises(Conflict, match="already"):
            renaming.rename_project(session, "quays", "Asked in quays")
        assert renaming.rename_library(session, "default", "baseline") == 1
        assert libraries.find_version(session, "default:1").id == library.id
        assert libraries.find_version(session, "baseline").id == library.id
        # A new library of the former name begins after it, so that default:1 means one version for ever.
        new = libraries.store_version(
            session, "default", libraries.list_matching_ids(session, DemonstrationFilter()), {}
        )
        assert (new.number, libraries.find_version(session, "default").id) == (2, new.id)
        with pytest.raises(Conflict, match="already"):
            renaming.rename_library(session, "baseline", "default")
        run = Run(name="verify", reasoner="replay", world="harbour")
        session.add(run)
        session.flush()
        named = renaming.name_run(session, run.id, title=" the  baseline ", note="before the repair\n")
        assert (named.title, named.note) == ("the baseline", "before the repair")
        assert renaming.name_run(session, run.id, note="").title == "the baseline"
        assert removals.find_key(session, Kind.RUN, "the baseline") == run.id
        with pytest.raises(Conflict, match="at most"):
            renaming.name_run(session, run.id, title="x" * 121)
