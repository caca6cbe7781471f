"""Agreement between sources, against a second implementation of the rule."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.reasoners.answers.normalization import answers_equal, measure_agreement

ANSWERS = st.sampled_from([None, "Ada", "ada.", "Ben", "Cora, Dan", "Dan and Cora", "the Ben"])


@given(st.dictionaries(st.sampled_from(["text", "graph", "model"]), ANSWERS, min_size=1))
def test_the_state_agrees_with_counting_equal_pairs(answers: dict[str, str | None]) -> None:
    agreement = measure_agreement(answers)
    there = {name: answer for name, answer in answers.items() if answer is not None}
    alike = [
        pair for pair in itertools.combinations(there, 2) if answers_equal(str(there[pair[0]]), str(there[pair[1]]))
    ]
    if len(answers) > 1 and len(there) == len(answers) and len(alike) == len(answers) * (len(answers) - 1) / 2:
        assert agreement.state == "all agree"
    elif alike:
        assert agreement.state == "two agree"
        assert [tuple(agreement.agreeing_sources)] == [tuple(name for name in answers if name in alike[0])]
    elif len(there) > 1:
        assert agreement.state == "conflict"
    else:
        assert agreement.state == ("one only" if there else "none")
    assert bool(agreement.hedge) == (agreement.state in ("conflict", "one only"))
    assert agreement.summary.endswith(".")


def test_the_summary_names_the_agreeing_sources_and_the_hedge_fits_the_state() -> None:
    def words(text: str | None, graph: str | None, model: str | None) -> tuple[str, str]:
        agreement = measure_agreement({"text": text, "graph": graph, "model": model})
        return agreement.summary, agreement.hedge

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
def test_counts_dates_and_yes_agree_in_any_notation(told: tuple[str | None, ...], state: str) -> None:
    assert measure_agreement(dict(zip(("text", "graph", "model"), told, strict=True))).state == state
