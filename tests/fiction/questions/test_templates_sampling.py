import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyoxigraph as ox
import pytest

from showhow.fiction.generator.articles import generate_people_articles
from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.generator.web_pages import generate_pages
from showhow.fiction.generator.world_files import generate_triples
from showhow.fiction.questions import expressions as ask
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.expressions import encode_expression
from showhow.fiction.questions.names import NameFormatter
from showhow.fiction.questions.question import GeneratedQuestion, count_hops
from showhow.fiction.questions.sparql import MAX_SET_SIZE
from showhow.fiction.questions.templates import (
    MAX_ATTEMPTS,
    QUESTION_KINDS,
    QuestionSampler,
    build_templates,
    sample_questions,
)
from showhow.fiction.questions.walk import ATTRIBUTES
from showhow.fiction.questions.wording import word_question
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import ABSENT_FACTS, GenerationOptions
from showhow.fiction.universe.relations import RELATIONS
from showhow.fiction.universe.universe import GRAPH, TEXT, Universe
from tests.fiction.generator.sentence_reader import PROSE, WEB, Reading, clauses, read

WIKIDATA_PROPERTY = "http://www.wikidata.org/prop/direct/"
GRAMMAR = ("who", "what", "how many")
WORDS = {
    "<relations>": "|".join(re.escape(relation.plural) for relation in RELATIONS.values()),
    "<relation>": "|".join(re.escape(relation.singular) for relation in RELATIONS.values()),
    "<attribute>": "date of birth|occupation|hobby",
    "<year>": r"\d{4}",
}


def sample(options: GenerationOptions) -> tuple[Universe, QuestionSampler, list[GeneratedQuestion]]:
    universe = make_universe(options)
    stream = sample_questions(universe, assign_sources(universe, parse_split(options.split), options.seed), options)
    return universe, stream, list(stream)


@pytest.fixture(scope="module")
def world() -> tuple[Universe, QuestionSampler, list[GeneratedQuestion]]:
    return sample(GenerationOptions(people=1000, seed=7, per_template=2, collisions=0.2))


def draw(options: GenerationOptions) -> list[tuple[str, ask.Expression, str]]:
    """Kind, expression and text of each question."""
    universe = make_universe(options)
    stream = sample_questions(universe, assign_sources(universe, parse_split(options.split), options.seed), options)
    return [(template.kind, expression, text) for template, expression, text in stream.draw()]


def chain(expression: ask.Expression) -> Iterator[ask.Expression]:
    """Operations of a chain, outermost first."""
    yield expression
    for below in ask.child_expressions(expression):
        yield from chain(below)


def test_every_template_gives_its_questions_without_duplicates(world) -> None:
    _, stream, questions = world
    templates = build_templates(stream.options)
    assert stream.shortfalls == []
    assert Counter((one.kind, one.template) for one in questions) == {(one.kind, one.text): 2 for one in templates}
    assert {one.kind for one in questions} == set(QUESTION_KINDS)
    assert (
        len({one.text for one in questions})
        == len({json.dumps(encode_expression(one.expression)) for one in questions})
        == len(questions)
    )
    assert [one.id for one in questions] == [f"q-{number:06d}" for number in range(1, len(questions) + 1)]


def test_the_first_questions_are_short_and_of_many_kinds(world) -> None:
    first = world[2][:60]
    assert {one.kind for one in first} == set(QUESTION_KINDS)
    assert all(one.hops <= 6 for one in first)


def test_a_text_in_the_singular_matches_its_template(world) -> None:
    names = NameFormatter(world[0])
    for one in world[2]:
        parts = re.split(r"(<\w+>)", one.template)
        pattern = "".join(f"({WORDS.get(part, '.+')})" if part[:1] == "<" else re.escape(part) for part in parts)
        pattern = pattern.replace(r"\ a\ ", r"\ an?\ ")
        assert re.fullmatch(pattern, word_question(one.expression, names)), (one.template, one.text)


def test_the_plural_does_not_tell_how_many_answers_there_are(world) -> None:
    asked = [one for one in world[2] if isinstance(one.expression, (ask.Related, ask.Having)) and one.answers]
    plural = [one for one in asked if one.text.startswith("Who are the ")]
    assert {len(one.answers) > 1 for one in plural} == {True, False}
    for one in asked:
        if one not in plural:
            # Only what everybody has at most one of is named in the singular.
            assert one.text.startswith(("Who is the mother", "Who is the father", "Who is the wife", "Who is the husb"))
            assert len(one.answers) == 1


def test_no_question_leads_back_to_the_person_that_it_names(world) -> None:
    evaluation = ExpressionEvaluator(world[0])
    for one in world[2]:
        for part in chain(one.expression):
            start: ask.Expression = part
            while isinstance(start, ask.Related):
                start = start.of
            if isinstance(part, ask.Related) and isinstance(start, ask.Named):
                assert start.person not in evaluation.evaluate(part).values, one.text


def test_great_great_aunts_have_their_english_name_outside_the_paper() -> None:
    universe = make_universe(GenerationOptions(people=60, seed=5))
    aunts = ask.Related("second_aunt", ask.Named(0))
    texts = [word_question(aunts, NameFormatter(universe, generator=version)).split(" of ")[0] for version in (1, 2, 3)]
    assert texts == ["Who is the second aunt", "Who is the second aunt", "Who are the great-great-aunts"]
    assert "second aunt" in word_question(aunts, NameFormatter(universe, plain=True, generator=3))


def test_answers_are_complete_and_only_unanswerable_questions_have_none(world) -> None:
    universe, _, questions = world
    evaluation = ExpressionEvaluator(universe)
    for one in questions:
        answer = evaluation.evaluate(one.expression)
        assert len(one.answers) == len(answer.values) == len({tuple(answer.items()) for answer in one.answers})
        assert (one.kind in ("no answer", "false premise")) == (one.answers == [])
        assert len(one.answers) <= MAX_SET_SIZE


def test_one_question_of_a_pair_asks_for_what_no_source_states_and_the_other_for_the_same_of_another_relative() -> None:
    options = GenerationOptions(people=400, seed=31, per_template=0, pairs=9, split="text=50,graph=35,web=15")
    universe, stream, questions = sample(options)
    assert not stream.shortfalls
    assert len(questions) == 2 * 2 * options.pairs
    by_id = {one.id: one for one in questions}
    absent = set()
    for one in questions:
        twin = by_id[str(one.pair)]
        assert twin.pair == one.id
        assert isinstance(one.expression, ask.Fact)
        assert isinstance(twin.expression, ask.Fact)
        assert isinstance(one.expression.of, ask.Related)
        assert isinstance(twin.expression.of, ask.Related)
        assert (one.expression.fact, one.expression.of.relation) == (twin.expression.fact, twin.expression.of.relation)
        assert (one.answers == []) == (twin.answers != []) == (one.false_premise is not None)
        if one.false_premise is not None:
            assert one.false_premise["relation"] == one.expression.fact
            absent |= {(subject["text"], one.expression.fact) for subject in one.false_premise["subjects"]}
    stated = _read_stated_facts(universe, options)
    assert len(absent) > options.pairs
    assert absent.isdisjoint(stated)
    present = {
        (title, fact)
        for fact in ABSENT_FACTS
        for title, value in zip(universe.titles, getattr(universe, fact).tolist(), strict=True)
        if value >= 0
    }
    assert stated == present
    assert len(present) == 2 * len(universe) - 4 * options.pairs


def _name_subject(reading: Reading) -> str:
    """The person of a web page's sentence, without title and pronoun ("Ms Ada Reed & her")."""
    return reading.who.partition(" & ")[0].removeprefix("Mr ").removeprefix("Ms ")


def _read_stated_facts(universe: Universe, options: GenerationOptions) -> set[tuple[str, str]]:
    """Title and kind of each hobby and residence that an article, the graph or a web page states."""
    fact_sources = assign_sources(universe, parse_split(options.split), options.seed)
    text = universe.restrict_to_sources(fact_sources, TEXT)
    sentences = [
        (article.title, clause, PROSE)
        for article in generate_people_articles(text, ItemCatalog(text), options, range(len(text)))
        for sentence in article.sentences
        for clause in clauses(sentence)
    ]
    sentences += [
        ("", sentence, WEB)
        for page in generate_pages(universe, fact_sources, options)
        for sentence in page.page.sentences
    ]
    readings = [(title, read(sentence, patterns)) for title, sentence, patterns in sentences]
    stated = {(title or _name_subject(reading), reading.kind) for title, reading in readings}
    graph = b"".join(generate_triples(universe.restrict_to_sources(fact_sources, GRAPH)))
    triples = list(ox.parse(graph, format=ox.RdfFormat.N_TRIPLES))
    labels = {triple.subject: triple.object.value for triple in triples if triple.predicate.value.endswith("#label")}
    ids = {node.value.rpartition("/")[2]: label for node, label in labels.items() if label in ABSENT_FACTS}
    properties = {f"{WIKIDATA_PROPERTY}{id_}": label for id_, label in ids.items() if id_.startswith("P")}
    stated |= {(labels[t.subject], properties[t.predicate.value]) for t in triples if t.predicate.value in properties}
    return {(title, kind) for title, kind in stated if kind in ABSENT_FACTS}


@pytest.mark.parametrize("kind", ["comparison", "implicit"])
def test_yes_and_no_answers_are_balanced_per_template(world, kind: str) -> None:
    truths = defaultdict(list)
    for one in world[2]:
        if one.kind == kind and one.answers[0]["text"] in ("yes", "no"):
            truths[one.template].append(one.answers[0]["text"])
    assert len(truths) >= 6
    for answers in truths.values():
        assert answers in (["yes", "no"], ["no", "yes"])
    # The first questions of a world have both answers.
    assert {answers[0] for answers in truths.values()} == {"yes", "no"}


def test_comparisons_filters_and_superlatives_exclude_at_least_one_person(world) -> None:
    universe, _, questions = world
    evaluation = ExpressionEvaluator(universe)
    for one in questions:
        for part in chain(one.expression):
            if isinstance(part, (ask.Only, ask.Most)) and one.answers and one.kind != "count":
                assert len(evaluation.evaluate(part).values) < len(evaluation.evaluate(part.of).values), one.text


def test_counts_are_balanced_and_of_relations_of_which_people_have_different_numbers() -> None:
    options = GenerationOptions(people=500, seed=3, depth=8, per_template=10)
    universe = make_universe(options)
    evaluation = ExpressionEvaluator(universe)
    asked = [one for _, one, _ in draw(options) if isinstance(one, ask.Count)]
    classes = Counter(min(evaluation.evaluate(one).values[0], 4) for one in asked)
    assert set(classes) == {0, 1, 2, 3, 4}
    # Few relatives share a job or a hobby.
    assert max(classes.values()) < 0.45 * len(asked), classes
    for one in asked:
        counted = one.of.of if isinstance(one.of, ask.Only) else one.of
        if isinstance(counted, ask.Related):
            everyone = (evaluation.evaluate(ask.Related(counted.relation, ask.Named(row))) for row in range(500))
            assert len({len(answer.values) for answer in everyone} - {0}) > 1, counted.relation


def test_the_chains_of_a_world_are_drawn_independently() -> None:
    """The published sampler restarts from one seed for each template: of the 470 chains of two or more goals in an
    instance of 1,000 people, only 160 differ before their last goal, and 340 innermost goals differ.
    """
    questions = draw(GenerationOptions(people=1000, seed=1))
    chains = [expression for kind, expression, _ in questions if kind in GRAMMAR and count_hops(expression) > 1]
    assert len(chains) == 470
    inner = [next(iter(ask.child_expressions(one))) for one in chains]
    # Short chains may coincide: there are 1,000 people, and about 900 occupations and hobbies.
    assert len(set(inner)) > 0.97 * len(chains)
    long = [one for one in inner if len(list(chain(one))) > 3]
    assert len(long) > 300
    assert len(set(long)) == len(long)


def test_start_people_are_uniform() -> None:
    people, starts = 400, []
    for seed in range(3):
        questions = draw(GenerationOptions(people=people, seed=seed, depth=12, per_template=12))
        starts += [list(chain(one))[-1] for kind, one, _ in questions if kind in GRAMMAR]
    named = [start.person for start in starts if isinstance(start, ask.Named)]
    differ = people * (1 - (1 - 1 / people) ** len(named))
    assert len(named) > 400
    assert abs(len(set(named)) - differ) < 4 * np.sqrt(people * 0.25)
    thirds = np.bincount(np.array(named) * 3 // people, minlength=3)
    assert abs(thirds - len(named) / 3).max() < 4 * np.sqrt(len(named) * 2 / 9)


def test_more_depth_or_more_questions_keep_the_other_questions() -> None:
    small = {text for _, _, text in draw(GenerationOptions(people=200, seed=3, depth=8, per_template=2))}
    large = {text for _, _, text in draw(GenerationOptions(people=200, seed=3, depth=12, per_template=3))}
    assert small < large
    assert small.isdisjoint(text for _, _, text in draw(GenerationOptions(people=200, seed=4, depth=8, per_template=2)))


@pytest.mark.parametrize("people", [1, 9])
def test_impossible_templates_are_abandoned_and_listed(people: int) -> None:
    options = GenerationOptions(people=people, seed=2, per_template=2, depth=6)
    _, stream, questions = sample(options)
    short = {(template.kind, template.template): template for template in stream.shortfalls}
    made = Counter((one.kind, one.template) for one in questions)
    for template in build_templates(options):
        name = (template.kind, template.text)
        if made[name] < options.per_template:
            shortfall = short.pop(name)
            assert (shortfall.requested, shortfall.made) == (options.per_template, made[name])
            assert all(count > 0 for count in shortfall.failures_by_reason.values())
            assert f"{shortfall.made} of 2 questions" in str(shortfall)
            assert shortfall.template in str(shortfall)
    assert short == {}
    assert stream.shortfalls


def test_zero_per_template_gives_no_questions() -> None:
    _, stream, questions = sample(GenerationOptions(people=50, seed=1, per_template=0))
    assert (questions, stream.shortfalls) == ([], [])


def test_questions_with_too_many_answers_are_rejected() -> None:
    options = GenerationOptions(people=MAX_SET_SIZE + 1, seed=1, depth=4, per_template=1)
    universe = make_universe(options)
    alike = {fact: np.full(len(universe), int(getattr(universe, fact)[0]), np.int32) for fact in ATTRIBUTES}
    fact_sources = assign_sources(universe, parse_split("everywhere"), 1)
    stream = sample_questions(replace(universe, **alike), fact_sources, options)
    assert "Who is the person whose <attribute> is <value>?" not in [template.text for template, _, _ in stream.draw()]
    (short,) = [shortfall for shortfall in stream.shortfalls if shortfall.kind == "who"]
    assert short.failures_by_reason == {"had too many people": MAX_ATTEMPTS}


def test_the_same_options_give_the_same_questions_in_every_process() -> None:
    program = (
        "import hashlib, json\n"
        "from showhow.fiction.generator.source_split import assign_sources, parse_split\n"
        "from showhow.fiction.questions.templates import sample_questions\n"
        "from showhow.fiction.universe.build import make_universe\n"
        "from showhow.fiction.universe.options import GenerationOptions\n"
        "options = GenerationOptions(people=150, seed=5, per_template=1, split='text=40,graph=40,web=20')\n"
        "universe = make_universe(options)\n"
        "fact_sources = assign_sources(universe, parse_split(options.split), 5)\n"
        "rows = [json.dumps(question.to_row()) for question in sample_questions(universe, fact_sources, options)]\n"
        "print(len(rows), hashlib.sha256(''.join(rows).encode()).hexdigest())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert int(outputs.pop().split()[0]) > 100
