"""The style and the distances of thoughts, against scipy and scikit-learn, and for authors whose styles are known."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import StandardScaler
from sqlalchemy import select
from sqlalchemy.orm import Session

from showhow.db.database import Database
from showhow.db.models import Question, Step, Trace
from showhow.db.questions.projects import create_project
from showhow.db.run_spec import RunResult
from showhow.db.storage.schema import upgrade
from showhow.evaluation.comparison.comparison import compare_runs
from showhow.evaluation.comparison.thoughts import (
    DEPTHS,
    PEOPLE,
    compare_thoughts,
    format_thought_lines,
    jensen_shannon,
    project_styles,
)
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from tests.fixtures.compared_runs import F1, ComparedRuns, make_questions

NOUNS = "harbour bridge river tower mayor school museum painter captain garden poem island".split()
STYLES = {
    "plain": (
        "I look for the {} first, and then I read about the {}.",
        "It says that the {} is near a {}, so I go on.",
    ),
    "formal": ("Searching: {}. Next action: retrieve {}.", "Observation indicates {}; required information: {}."),
    "german": ("Ich suche zuerst nach dem {} und lese dann vom {}.", "Da steht, dass das {} beim {} ist."),
    "japanese": ("まず{}を探して、それから{}を読む。", "{}は{}の近くにあると書いてある。"),
}


def write_thoughts(style: str, generator: random.Random, count: int = 4) -> list[str]:
    return [generator.choice(STYLES[style]).format(*generator.sample(NOUNS, 2)) for _ in range(count)]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(store)
    yield store
    store.close()


@pytest.mark.parametrize(("one", "other"), [("plain", "formal"), ("plain", "german"), ("german", "japanese")])
def test_authors_of_different_styles_are_apart_whatever_they_write_about(one: str, other: str):
    generator = random.Random(f"{one} {other}")
    texts = ["\n".join(write_thoughts(style, generator)) for style in (one, other) for _ in range(20)]
    places, (first, second) = project_styles(texts)
    assert first > second > 0
    sides = places[:20, 0], places[20:, 0]
    assert max(side.min() for side in sides) > min(side.max() for side in sides)
    # The same texts have the same points, also with those of the other author first.
    again, _ = project_styles(texts[20:] + texts[:20])
    assert np.roll(again, 20, axis=0) == pytest.approx(places)


def test_components_are_those_of_scikit_learn():
    generator = random.Random(5)
    texts = ["\n".join(write_thoughts(generator.choice(["plain", "formal"]), generator)) for _ in range(30)]
    pattern = {"token_pattern": r"[^\W\d_]+|[^\w\s]", "lowercase": True}
    columns = []
    for length in (1, 2):
        counter = CountVectorizer(ngram_range=(length, length), **pattern)
        counts = counter.fit_transform(texts).toarray()
        names = [tuple(name.split()) for name in counter.get_feature_names_out()]
        order = sorted(range(len(names)), key=lambda place: (-(counts[:, place] > 0).sum(), names[place]))
        columns.append(counts[:, order[:100]])
    words = CountVectorizer(**pattern).fit_transform(texts).toarray().sum(axis=1, keepdims=True)
    oracle = PCA(2).fit(scaled := StandardScaler().fit_transform(np.hstack(columns) / words))
    places, shares = project_styles(texts)
    assert np.abs(places) == pytest.approx(np.abs(oracle.transform(scaled)), abs=1e-8)
    assert shares == pytest.approx(oracle.explained_variance_ratio_)


@pytest.mark.parametrize("texts", [[], ["one thought"], ["12", "34", "56"], ["same words"] * 5])
def test_texts_that_have_no_two_features_that_vary_have_no_points(texts: list[str]):
    places, shares = project_styles(texts)
    assert (places.shape, shares) == ((0, 2), (0.0, 0.0))


def test_the_distance_is_that_of_scipy():
    rows = np.random.default_rng(3).dirichlet(np.ones(12), size=7)
    oracle = [[jensenshannon(row, other) for other in rows[4:]] for row in rows[:4]]
    assert jensen_shannon(rows[:4], rows[4:]) == pytest.approx(np.array(oracle))
    assert jensen_shannon(rows, rows).diagonal() == pytest.approx(np.zeros(7), abs=1e-7)


Thoughts = dict[str, list[list[str]]]


def add_steps(session: Session, trace: Trace, thoughts: list[str]) -> None:
    """Steps with these thoughts, every other one with a call; one without a thought, one undone and one of a tree."""
    for position, thought in enumerate(["", *thoughts]):
        call = {} if position % 2 else {"tool": "wikisearch", "arguments": {"query": "x"}}
        session.add(Step(trace_id=trace.id, position=position, thought=thought, **call))
    undone = Step(trace_id=trace.id, position=90, thought="Das war nichts.", removed_at=trace.started_at)
    session.add_all([undone, Step(trace_id=trace.id, position=91, thought="a part of the tree", skill="node")])


def add_trace(session: Session, question_id: UUID, thoughts: list[str], **values: Any) -> None:
    trace = Trace(question_id=question_id, **({"status": "approved"} | values))
    session.add(trace)
    session.flush()
    add_steps(session, trace, thoughts)


def store_thoughts(made: ComparedRuns, styles: list[str]) -> Thoughts:
    """Thoughts of each run in its style and of people, who write plainly; returned by style, and PEOPLE."""
    generator = random.Random(9)
    thoughts: Thoughts = {name: [] for name in (*styles, PEOPLE)}
    with made.database.begin() as session:
        for run, style, count in zip(made.runs, styles, (3, 5), strict=True):
            for trace in session.scalars(select(Trace).where(Trace.run_id == run.id)).all():
                trace.result = RunResult(demonstrations_shown=count)
                thoughts[style].append(write_thoughts(style, generator, count))
                add_steps(session, trace, thoughts[style][-1])
        for place, question in enumerate(made.questions):
            thoughts[PEOPLE].append(write_thoughts("plain", generator, 4))
            add_trace(session, question.id, thoughts[PEOPLE][-1], status="approved" if place else "submitted")
        # Neither drafts, nor other projects, nor repairs of a run's trace are what people think here.
        elsewhere = Question(project_id=create_project(session, "Elsewhere", "made").id, position=1, text="Who?")
        session.add(elsewhere)
        session.flush()
        agent = session.scalars(select(Trace.id).where(Trace.run_id == made.runs[0].id)).first()
        add_trace(session, elsewhere.id, ["Elsewhere"])
        add_trace(session, made.questions[0].id, ["A draft"], status="draft")
        add_trace(session, made.questions[0].id, ["A repair"], parent_id=agent)
    return thoughts


@pytest.mark.long
def test_a_run_that_thinks_as_people_do_is_nearer_to_them_than_another(database: Database):
    made = make_questions(database, 6, seed=81)
    answered = {(question.id, 1): {"ending": "answered", "score": 1.0} for question in made.questions}
    for _ in range(2):
        made.add_run(made.questions, answered)
    thoughts = store_thoughts(made, ["plain", "formal"])
    comparison = compare_runs(database, [run.id for run in made.runs], made.runs[0].id, F1)
    encode = SentenceEncoder(BUNDLED_MODEL)
    compared = compare_thoughts(database, comparison, encode)
    plain, formal, people = compared.groups
    assert [row["traces"] for row in compared.groups] == [6, 6, 6]
    assert [row["thoughts"] for row in compared.groups] == [18, 30, 24]
    assert [row["demonstrations"] for row in compared.groups] == [3, 5, 0]
    assert [row["tool_calls"] for row in compared.groups] == [2, 3, 3]
    assert plain["tokens"] < people["tokens"]
    assert len(compared.points) == 18
    assert abs(plain["pc1"] - people["pc1"]) < abs(formal["pc1"] - people["pc1"])
    texts = list({text for group in thoughts.values() for trace in group for text in trace})
    distributions = dict(zip(texts, softmax(encode(texts).astype(float), axis=1), strict=True))
    for row, style in ((plain, "plain"), (formal, "formal")):
        for depth in DEPTHS:
            pairs = [
                jensenshannon(distributions[own[place]], distributions[other[place]])
                for place in range(depth)
                for own in thoughts[style]
                for other in thoughts[PEOPLE]
                if place < min(len(own), len(other))
            ]
            assert row[f"distance_{depth}"] == pytest.approx(np.mean(pairs), rel=1e-5)
    assert all(plain[f"distance_{depth}"] < formal[f"distance_{depth}"] for depth in DEPTHS)
    assert people["distance_1"] is None
    assert compare_thoughts(database, comparison, encode) == compared
    assert len(list(format_thought_lines(compared))) == 8
