"""A small universe and random expressions over it, with all operations, relations and facts."""

from hypothesis import strategies as st

from showhow.fiction.questions import expressions as ask
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.names import NameFormatter, ThingCatalog
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import RELATIONS

UNIVERSE = make_universe(GenerationOptions(people=60, seed=5, family_size=20, collisions=0.1))
THINGS = ThingCatalog(UNIVERSE, ItemCatalog(UNIVERSE), NameFormatter(UNIVERSE))
DAYS = ("birth", "death", "wedding")
VALUES = ("job", "hobby", "birthplace", "residence")
RELATION_NAMES = st.sampled_from(sorted(RELATIONS))
NAMED = st.integers(0, len(UNIVERSE) - 1).map(ask.Named)


def values(fact: str, rows: tuple[int, ...]) -> list[int]:
    """Values of a fact of these people, ascending."""
    every = getattr(UNIVERSE, fact).tolist()
    return sorted({every[row] for row in rows if every[row] >= 0})


@st.composite
def having(draw: st.DrawFn) -> ask.Having:
    """A value that at least one person has."""
    fact = draw(st.sampled_from((*VALUES, "birth")))
    return ask.Having(fact, draw(st.sampled_from(values(fact, tuple(range(len(UNIVERSE)))))))


@st.composite
def chains(draw: st.DrawFn) -> ask.People:
    """A chain of relations from one person."""
    people: ask.People = draw(st.one_of(NAMED, NAMED, having()))
    for _ in range(draw(st.integers(0, 2))):
        people = ask.Related(draw(RELATION_NAMES), people)
    return people


RELATED = st.builds(ask.Related, RELATION_NAMES, chains())


@st.composite
def only(draw: st.DrawFn) -> ask.Only:
    """Relatives filtered by a value at or near that of one of them."""
    people, fact = draw(RELATED), draw(st.sampled_from((*VALUES, *DAYS)))
    near = values(fact, ExpressionEvaluator(UNIVERSE).evaluate(people).values) or values(
        fact, tuple(range(len(UNIVERSE)))
    )
    test = draw(st.sampled_from(("is", "before", "after"))) if fact in DAYS else "is"
    return ask.Only(people, fact, test, draw(st.sampled_from(near)))


SOME = st.one_of(RELATED, only(), having())
PEOPLE = st.one_of(
    chains(),
    only(),
    st.builds(ask.Both, SOME, SOME),
    st.builds(ask.Most, RELATED, st.sampled_from(DAYS), st.booleans()),
)
ONE = chains().filter(lambda people: len(ExpressionEvaluator(UNIVERSE).evaluate(people).values) <= 1)
TOWNS = st.sampled_from(("birthplace", "residence"))
EXPRESSIONS = st.one_of(
    PEOPLE,
    st.builds(ask.Fact, st.sampled_from((*VALUES, *DAYS)), PEOPLE),
    st.builds(ask.Place, st.sampled_from(("region", "country")), st.builds(ask.Fact, TOWNS, PEOPLE)),
    st.builds(ask.Count, PEOPLE.filter(lambda people: not isinstance(people, ask.Named))),
    st.builds(ask.Count, RELATED, st.just(value=True)),
    st.builds(ask.Compare, ONE, ONE, st.sampled_from(DAYS), st.booleans()),
    st.builds(ask.Same, ONE, ONE, st.sampled_from(VALUES)),
    st.builds(ask.Same, ONE, ONE, TOWNS, st.just(value=True)),
    st.builds(ask.Judge, st.sampled_from(("met", "wedding", "passport")), ONE, ONE),
)
