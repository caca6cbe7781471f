import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from showhow.fiction.phantomwiki.published_questions import read_questions, to_chain
from showhow.fiction.questions.expressions import Fact, Having
from showhow.fiction.questions.templates import grammar_templates
from showhow.fiction.questions.walk import RandomWalk
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions


@pytest.mark.parametrize("depth", [*range(4, 21), 31, 100])
def test_the_number_of_templates_is_that_of_the_paper(depth: int) -> None:
    texts = [template.text for template in grammar_templates(depth)]
    assert len(texts) == len(set(texts)) == 3 * depth - 10


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_grammar_below_the_minimum_depth_has_no_templates(depth: int) -> None:
    assert list(grammar_templates(depth)) == []


def test_the_templates_of_depth_20_are_those_of_the_papers_evaluation() -> None:
    kinds = Counter(template.kind for template in grammar_templates(20))
    assert kinds == {"who": 17, "what": 16, "how many": 17}
    assert max(template.text.count("<relation> of") for template in grammar_templates(20)) == 8


def test_a_deeper_grammar_has_all_templates_of_a_shallower_one() -> None:
    every = [{template.text for template in grammar_templates(depth)} for depth in range(4, 22)]
    assert all(less < more for less, more in pairwise(every))


@pytest.mark.parametrize("depth", [6, 20])
def test_each_template_draws_a_question_of_its_published_depth(depth: int) -> None:
    universe = make_universe(GenerationOptions(people=300, seed=4))
    types = set()
    for number, template in enumerate(grammar_templates(depth)):
        expression = next(
            candidate for walk in range(20) if (candidate := template.draw(RandomWalk(universe, 1, number, walk)))
        )
        chain = to_chain(expression)
        assert chain is not None
        assert chain.depth <= depth
        assert chain.kind == template.kind
        types.add(chain.template_number(depth))
    assert types == set(range(3 * depth - 10))


def test_a_question_does_not_contain_its_answer() -> None:
    universe = make_universe(GenerationOptions(people=100, seed=4))
    (template,) = [
        template
        for template in grammar_templates(5)
        if template.text.endswith("of the person whose <attribute> is <value>?")
    ]
    for number in range(60):
        expression = template.draw(RandomWalk(universe, 1, 1, number))
        assert isinstance(expression, Fact)
        assert isinstance(expression.of, Having)
        assert expression.fact != expression.of.fact


def test_the_templates_are_the_published_ones(shared_data: Path) -> None:
    names = {"relation_plural": "relations", "attribute_name": "attribute", "attribute_value": "value"}
    folder = shared_data / "phantomwiki" / "depth_20_size_50_seed_1"
    published = set()
    for _, question in read_questions([folder / "questions.json.gz"]):
        text = " ".join(question.template).replace(" ?", "?")
        published.add(re.sub(r"<(\w+)>_\d+", lambda gap: f"<{names.get(gap[1], gap[1])}>", text))
    assert {template.text for template in grammar_templates(20)} == published
