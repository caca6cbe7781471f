from pathlib import Path

import pytest

from showhow.fiction.phantomwiki.prolog import parse_facts
from showhow.fiction.phantomwiki.published_questions import parse_query, read_questions
from showhow.fiction.phantomwiki.records import ValueCodec
from showhow.fiction.questions import expressions as ask
from showhow.fiction.questions.question import compute_difficulty, count_hops

ANN = ask.Named(0)
FRIENDS = ask.Related("friend", ANN)
COUSINS = ask.Related("female_second_cousin", FRIENDS)


@pytest.mark.parametrize("instance", ["depth_20_size_50_seed_1", "depth_20_size_25_seed_2"])
def test_chains_have_the_difficulty_of_the_paper(shared_data: Path, instance: str) -> None:
    folder = shared_data / "phantomwiki" / instance
    values = ValueCodec(parse_facts(folder / "facts.pl", (folder / "facts.pl").read_text(encoding="utf-8")).universe)
    for _, question in read_questions([folder / "questions.json.gz"]):
        expression = parse_query(question.goals, question.variable, values)
        assert compute_difficulty(expression) == question.difficulty
        assert count_hops(expression) == len(question.goals)


@pytest.mark.parametrize(
    ("expression", "hard", "goals"),
    [
        (ask.Fact("death", COUSINS), 7, 3),
        (ask.Place("country", ask.Fact("birthplace", FRIENDS)), 3, 3),
        (ask.Only(COUSINS, "job", "is", 1), 7, 3),
        (ask.Count(ask.Only(FRIENDS, "job", "is", 1)), 3, 3),
        (ask.Count(ask.Both(ask.Having("job", 1), ask.Having("hobby", 1))), 3, 3),
        (ask.Most(FRIENDS, "birth", first=True), 2, 2),
        (ask.Both(FRIENDS, ask.Related("aunt", ANN)), 3, 2),
        (ask.Compare(ANN, FRIENDS, "birth", first=True), 3, 3),
        (ask.Same(ANN, ANN, "job"), 2, 2),
        (ask.Same(ANN, ANN, "birthplace", country=True), 4, 4),
        (ask.Judge("met", ANN, FRIENDS), 5, 5),
        (ask.Judge("wedding", ANN, ANN), 3, 3),
        (ask.Judge("passport", ANN, ANN), 4, 4),
    ],
)
def test_other_operations_count_the_facts_they_look_up(expression: ask.Expression, hard: int, goals: int) -> None:
    assert (compute_difficulty(expression), count_hops(expression)) == (hard, goals)
