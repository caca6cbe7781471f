"""How far sources agree: by a second reading of the rule."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoners.answers.agreement import measure_agreement
from reasoners.answers.normalization import answers_equal

ANSWERS = st.sampled_from([None, "Ada", "ada.", "Ben", "Cora, Dan", "Dan and Cora", "the Ben"])


@given(st.dictionaries(st.sampled_from(["text", "graph", "model"]), ANSWERS, min_size=1))
def test_the_state_is_what_counting_equal_pairs_says(answers: dict[str, str | None]) -> None:
    found = measure_agreement(answers)
    there = {name: answer for name, answer in answers.items() if answer is not None}
    alike = [
        pair for pair in itertools.combinations(there, 2) if answers_equal(str(there[pair[0]]), str(there[pair[1]]))
    ]
    if len(answers) > 1 and len(there) == len(answers) and len(alike) == len(answers) * (len(answers) - 1) / 2:
        assert found.state == "all agree"
    elif alike:
        assert found.state == "two agree"
        assert [tuple(found.agreeing_sources)] == [tuple(name for name in answers if name in alike[0])]
    elif len(there) > 1:
        assert found.state == "conflict"
    else:
        assert found.state == ("one only" if there else "none")
    assert bool(found.hedge) == (found.state in ("conflict", "one only"))
    assert found.summary.endswith(".")


def test_the_words_name_who_agrees_and_the_hedge_says_how_sure_the_answer_is() -> None:
    def words(text: str | None, graph: str | None, model: str | None) -> tuple[str, str]:
        found = measure_agreement({"text": text, "graph": graph, "model": model})
        return found.summary, found.hedge

    assert words("Ada", "Ada", "Ada") == ("All three sources agree.", "")
    assert words("Ada", "Ada", None) == ("The articles and the graph agree; the model's memory says nothing.", "")
    assert words("Ben", "Ada", "Ada") == ("The graph and the model's memory agree; the articles say otherwise.", "")
    disagree = "The sources disagree: the articles say Ada, the graph says Ben and the model's memory says Cora."
    assert words("Ada", "Ben", "Cora") == (disagree, disagree)
    assert words(None, "Ada", None)[1] == "Only the graph answers this; no other source confirms it."
    assert words(None, None, "Ada")[1] == "I could not verify this; I answer from memory alone."
    assert words(None, None, None) == ("No source has an answer.", "")


@pytest.mark.parametrize(
    ("told", "state"),
    [
        (("12", "12 people", "twelve"), "all agree"),
        (("12 people", "12 (Q12)", "13"), "two agree"),
        (("12 people", "12 dogs", None), "conflict"),
        (("12 people", "12 dogs", "12"), "conflict"),
        (("1990-05-03", "3 May 1990", None), "two agree"),
        (("yes", "true", "Yes, she is."), "all agree"),
        (("Ada Lund (Q5)", "Ada Lund (Q9)", None), "conflict"),
        (("John Smith", "John Smith (judge)", "John Smith (painter)"), "conflict"),
    ],
)
def test_counts_and_dates_and_yes_agree_however_they_are_written(told: tuple[str | None, ...], state: str) -> None:
    assert measure_agreement(dict(zip(("text", "graph", "model"), told, strict=True))).state == state
