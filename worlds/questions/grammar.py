"""The templates of the paper's grammar: who, what and how many, over chains of relations.

    S  -> Who is R? | What is A? | How many <relations> does Rc have?
    R  -> the <relation> of Rc | the person whose <attribute> is <value>
    Rc -> R | <name>
    A  -> the <attribute> of R

Those of a depth are all whose tree of rules is at most so deep: 3 * depth - 10, from depth 4 on.
"""

from collections.abc import Callable, Iterator
from functools import partial

from worlds.questions.expressions import Count, Expression, Fact, Having, People, Related
from worlds.questions.template import Template, whom
from worlds.questions.walk import ATTRIBUTES, Walk

_NAME, _PERSON = "<name>", "the person whose <attribute> is <value>"


def grammar(depth: int, *, each: bool = False) -> Iterator[Template]:
    """The templates of that depth, short chains first; `each` is the paper's meaning of how many."""
    for links in range(depth // 2):
        for attribute, start in enumerate((_NAME, _PERSON)):
            # A name alone makes neither a question for who it is nor, in the paper, one for an attribute of it.
            whole = links > 0 or start == _PERSON
            if whole and 3 + 2 * links + attribute <= depth:
                yield _template("who", "Who is {}?", links, start, _who)
            if whole and 4 + 2 * links + attribute <= depth:
                yield _template("what", "What is the <attribute> of {}?", links, start, _what)
            if 4 + 2 * links + attribute <= depth:
                draw = partial(_how_many, each=each)
                yield _template("how many", "How many <relations> does {} have?", links, start, draw)


def _template(
    kind: str, text: str, links: int, start: str, ask: Callable[[Walk, tuple[People, int]], Expression | None]
) -> Template:
    def draw(walk: Walk) -> Expression | None:
        begun = walk.named() if start == _NAME else walk.having()
        reached = walk.chain(begun, links) if begun else None
        return ask(walk, reached) if reached else None

    return Template(kind, text.format(whom(links, start)), draw)


def _who(walk: Walk, reached: tuple[People, int]) -> Expression:  # noqa: ARG001 - nothing more is drawn
    return reached[0]


def _what(walk: Walk, reached: tuple[People, int]) -> Expression | None:
    people, person = reached
    # What somebody's hobby is whose hobby is chess is no question.
    said = people.fact if isinstance(people, Having) else ""
    known = [fact for fact in ATTRIBUTES if fact != said and walk.fact(fact, person) >= 0]
    return Fact(walk.one_of(known), people) if known else None


def _how_many(walk: Walk, reached: tuple[People, int], *, each: bool) -> Expression | None:
    people, person = reached
    taken = walk.step(person)
    return Count(Related(taken[0], people), each=each) if taken else None
