"""Templates of questions without an answer: well formed, and what they ask for is true of nobody in the universe."""

from collections.abc import Iterator

from worlds.questions.compositions import PAIRS, whose
from worlds.questions.expressions import Both, Expression, Fact, Having, Named, Only, Related
from worlds.questions.template import Draw, Template, whom
from worlds.questions.walk import ATTRIBUTES, Walk

NO_ANSWER = "no answer"


def unanswerable() -> Iterator[Template]:
    """The templates; of a relation that leads to nobody, an event that never was, a filter that leaves nobody."""
    for links in (0, 1):
        yield _template(f"Who is the <relation> of {whom(links)}?", _nobody(links))
    yield _template(f"What is the <attribute> of the <relation> of {whom(1)}?", _nothing)
    yield _template(f"When did {whom(0)} die?", _never("death"))
    yield _template(f"When did {whom(0)} marry?", _never("wedding"))
    yield _template(f"Which <relations> of {whom(0)} have the occupation <job>?", _none_fits)
    yield _template(f"Who is {whose(*PAIRS[0])}?", _none_has)


def _template(text: str, draw: Draw) -> Template:
    return Template(NO_ANSWER, text, draw, answered=False)


def _nobody(links: int) -> Draw:
    def draw(walk: Walk) -> Related | None:
        reached = walk.chain(walk.named(), links)
        name = walk.none(reached[1]) if reached else None
        return Related(name, reached[0]) if reached and name else None

    return draw


def _nothing(walk: Walk) -> Expression | None:
    people = _nobody(1)(walk)
    return Fact(walk.one_of(ATTRIBUTES), people) if isinstance(people, Related) else None


def _never(fact: str) -> Draw:
    def draw(walk: Walk) -> Expression:
        return Fact(fact, Named(walk.person()))

    return draw


def _none_fits(walk: Walk) -> Expression | None:
    group = walk.group(0)
    return Only(group, "job", "is", walk.fact("job", walk.person())) if group else None


def _none_has(walk: Walk) -> Expression:
    one, other = PAIRS[0]
    return Both(Having(one, walk.fact(one, walk.person())), Having(other, walk.fact(other, walk.person())))
