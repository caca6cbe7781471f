"""All question templates of a world, those of the paper's grammar, and those without an answer.

The grammar of the paper asks who, what and how many over chains of relations:

    S  -> Who is R? | What is A? | How many <relations> does Rc have?
    R  -> the <relation> of Rc | the person whose <attribute> is <value>
    Rc -> R | <name>
    A  -> the <attribute> of R

A grammar of depth d >= 4 has the 3 * d - 10 templates whose parse tree is at most d deep. Questions without an answer
are well formed, but nothing in the universe satisfies them.
"""

from collections.abc import Callable, Iterator
from functools import partial

from fiction.questions.composition_templates import (
    FACT_PAIRS,
    DrawFunction,
    QuestionTemplate,
    composition_templates,
    conjunction_templates,
    person_with_facts,
    relation_phrase,
)
from fiction.questions.expressions import Both, Count, Expression, Fact, Having, Named, Only, People, Related
from fiction.questions.people_templates import (
    comparative_templates,
    comparison_templates,
    count_templates,
    filter_templates,
    implicit_templates,
    superlative_templates,
)
from fiction.questions.walk import ATTRIBUTES, RandomWalk
from fiction.universe.options import GenerationOptions

_NAMED_START, _DESCRIBED_START = "<name>", "the person whose <attribute> is <value>"


def grammar_templates(depth: int, *, count_each: bool = False) -> Iterator[QuestionTemplate]:
    """Templates of this depth, short chains first; `count_each` selects the paper's meaning of "how many"."""
    for links in range(depth // 2):
        for attribute, start in enumerate((_NAMED_START, _DESCRIBED_START)):
            # A bare name makes no "who" question and, in the paper, no question for an attribute.
            is_question = links > 0 or start == _DESCRIBED_START
            if is_question and 3 + 2 * links + attribute <= depth:
                yield _build_template("who", "Who is {}?", links, start, _ask_who)
            if is_question and 4 + 2 * links + attribute <= depth:
                yield _build_template("what", "What is the <attribute> of {}?", links, start, _ask_what)
            if 4 + 2 * links + attribute <= depth:
                draw = partial(_ask_how_many, count_each=count_each)
                yield _build_template("how many", "How many <relations> does {} have?", links, start, draw)


def _build_template(
    kind: str, text: str, links: int, start: str, ask: Callable[[RandomWalk, tuple[People, int]], Expression | None]
) -> QuestionTemplate:
    def draw(walk: RandomWalk) -> Expression | None:
        begin = walk.start_at_person() if start == _NAMED_START else walk.start_at_value()
        end = walk.extend_chain(begin, links) if begin else None
        return ask(walk, end) if end else None

    return QuestionTemplate(kind, text.format(relation_phrase(links, start)), draw)


def _ask_who(walk: RandomWalk, end: tuple[People, int]) -> Expression:  # noqa: ARG001 - draws nothing
    return end[0]


def _ask_what(walk: RandomWalk, end: tuple[People, int]) -> Expression | None:
    people, person = end
    # "What is the hobby of the person whose hobby is chess?" would contain its answer.
    start_fact = people.fact if isinstance(people, Having) else ""
    facts = [fact for fact in ATTRIBUTES if fact != start_fact and walk.fact_value(fact, person) >= 0]
    return Fact(walk.choose(facts), people) if facts else None


def _ask_how_many(walk: RandomWalk, end: tuple[People, int], *, count_each: bool) -> Expression | None:
    people, person = end
    step = walk.random_step(person)
    return Count(Related(step[0], people), each=count_each) if step else None


NO_ANSWER_KIND = "no answer"


def unanswerable_templates() -> Iterator[QuestionTemplate]:
    """Templates of a missing relative, an event that did not happen, and a filter without matches."""
    for links in (0, 1):
        yield _unanswerable_template(f"Who is the <relation> of {relation_phrase(links)}?", _no_relative_draw(links))
    yield _unanswerable_template(f"What is the <attribute> of the <relation> of {relation_phrase(1)}?", _draw_no_event)
    yield _unanswerable_template(f"When did {relation_phrase(0)} die?", _no_event_draw("death"))
    yield _unanswerable_template(f"When did {relation_phrase(0)} marry?", _no_event_draw("wedding"))
    yield _unanswerable_template(
        f"Which <relations> of {relation_phrase(0)} have the occupation <job>?", _draw_empty_filter
    )
    yield _unanswerable_template(f"Who is {person_with_facts(*FACT_PAIRS[0])}?", _draw_unheld_value)


def _unanswerable_template(text: str, draw: DrawFunction) -> QuestionTemplate:
    return QuestionTemplate(NO_ANSWER_KIND, text, draw, has_answer=False)


def _no_relative_draw(links: int) -> DrawFunction:
    def draw(walk: RandomWalk) -> Related | None:
        end = walk.extend_chain(walk.start_at_person(), links)
        name = walk.find_missing_relation(end[1]) if end else None
        return Related(name, end[0]) if end and name else None

    return draw


def _draw_no_event(walk: RandomWalk) -> Expression | None:
    people = _no_relative_draw(1)(walk)
    return Fact(walk.choose(ATTRIBUTES), people) if isinstance(people, Related) else None


def _no_event_draw(fact: str) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression:
        return Fact(fact, Named(walk.random_person()))

    return draw


def _draw_empty_filter(walk: RandomWalk) -> Expression | None:
    group = walk.draw_group(0)
    return Only(group, "job", "is", walk.fact_value("job", walk.random_person())) if group else None


def _draw_unheld_value(walk: RandomWalk) -> Expression:
    one, other = FACT_PAIRS[0]
    return Both(
        Having(one, walk.fact_value(one, walk.random_person())),
        Having(other, walk.fact_value(other, walk.random_person())),
    )


QUESTION_KINDS = (
    "who",
    "what",
    "how many",
    "composition",
    "conjunction",
    "filter",
    "comparative",
    "superlative",
    "count",
    "comparison",
    "implicit",
    "no answer",
)
"""The first three are those of the paper's grammar."""


def build_templates(options: GenerationOptions) -> list[QuestionTemplate]:
    """All templates, short chains first, then in the order of QUESTION_KINDS."""
    others = (
        composition_templates,
        conjunction_templates,
        filter_templates,
        comparative_templates,
        superlative_templates,
        count_templates,
        comparison_templates,
        implicit_templates,
        unanswerable_templates,
    )
    templates = list(grammar_templates(options.depth, count_each=options.each))
    for make_templates in others:
        templates.extend(make_templates())
    return sorted(
        templates, key=lambda template: (template.text.count("<relation"), QUESTION_KINDS.index(template.kind))
    )
