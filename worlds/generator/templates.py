"""The ways in which the generator asks; a template gives None when what it has drawn makes no good question."""

from collections.abc import Callable
from itertools import pairwise

from worlds.generator.people import Person
from worlds.generator.walk import FACTS, PLURALS, RELATIVES, Asked, Walk, label

MOST_ANSWERS = 6
LEADS_BACK = {
    *(("P22", pid) for pid in ("P40", "P26")),
    *(("P25", pid) for pid in ("P40", "P26")),
    *(("P26", pid) for pid in ("P40", "P26")),
    *(("P40", pid) for pid in ("P22", "P25", "P3373")),
    *(("P3373", pid) for pid in ("P22", "P25", "P3373")),
}
"""Steps after one another that nobody would ask for: the child of one's father, the mother of one's sibling."""


def relative(walk: Walk) -> Asked | None:
    """Who is the mother of E?"""
    person, pid = walk.start(), walk.chance.choice(list(RELATIVES))
    found = walk.relatives([person], pid)
    return walk.named(_who([pid], [found], person), found) if found else None


def fact(walk: Walk) -> Asked | None:
    """What is the occupation of E?"""
    person, pid = walk.start(), walk.chance.choice(list(FACTS))
    return walk.valued(f"What is the {label(pid)} of {person.name}?", FACTS[pid][0], walk.facts([person], pid))


def born(walk: Walk) -> Asked | None:
    """When was E born?"""
    person = walk.start()
    return walk.literal(f"When was {person.name} born?", walk.birth(person))


def died(walk: Walk) -> Asked | None:
    """When did E die?"""
    person = walk.start()
    day = walk.death(person)
    return walk.literal(f"When did {person.name} die?", day) if day else None


def relative_born(walk: Walk) -> Asked | None:
    """When was the mother of E born?"""
    person, pid = walk.start(), walk.chance.choice(("P22", "P25", "P26"))
    found = walk.relatives([person], pid)
    return walk.literal(f"When was the {label(pid)} of {person.name} born?", walk.birth(found[0])) if found else None


def count(walk: Walk) -> Asked | None:
    """How many children does E have?"""
    person, (pid, plural) = walk.start(), walk.chance.choice(list(PLURALS.items()))
    found = walk.relatives([person], pid)
    return walk.literal(f"How many {plural} does {person.name} have?", str(len(found))) if found else None


def count_of_relative(walk: Walk) -> Asked | None:
    """How many siblings does the mother of E have?"""
    person, pid = walk.start(), walk.chance.choice(("P22", "P25", "P26"))
    counted = walk.chance.choice([each for each in PLURALS if (pid, each) not in LEADS_BACK])
    found = walk.relatives(walk.relatives([person], pid), counted)
    asked = f"How many {PLURALS[counted]} does the {label(pid)} of {person.name} have?"
    return walk.literal(asked, str(len(found))) if found else None


def fact_of_relative(walk: Walk) -> Asked | None:
    """What is the hobby of the father of E?"""
    person, pid, asked = walk.start(), walk.chance.choice(list(RELATIVES)), walk.chance.choice(list(FACTS))
    found = walk.relatives([person], pid)
    if len(found) != 1:
        return None
    text = f"What is the {label(asked)} of the {label(pid)} of {person.name}?"
    return walk.valued(text, FACTS[asked][0], walk.facts(found, asked))


def relative_of_relative(walk: Walk) -> Asked | None:
    """Who are the siblings of the mother of E?"""
    return _chain(walk, 2)


def relative_of_three(walk: Walk) -> Asked | None:
    """Who is the father of the mother of the spouse of E?"""
    return _chain(walk, 3)


def country_of_relative(walk: Walk) -> Asked | None:
    """In which country was the mother of E born?"""
    person, pid = walk.start(), walk.chance.choice(("P22", "P25", "P26"))
    towns = walk.facts(walk.relatives([person], pid), "P19")
    if not towns:
        return None
    return walk.valued(
        f"In which country was the {label(pid)} of {person.name} born?", "country", walk.countries(towns)
    )


def earlier(walk: Walk) -> Asked | None:
    """Who was born earlier, A or B?"""
    return _compared(walk, "earlier")


def later(walk: Walk) -> Asked | None:
    """Who was born later, A or B?"""
    return _compared(walk, "later")


def same(walk: Walk) -> Asked | None:
    """Do A and B have the same occupation?"""
    one, pid = walk.start(), walk.chance.choice(("P19", "P551", "P106", "P2650"))
    read = FACTS[pid][1]
    alike = [person for person in walk.people if person is not one and read(person) == read(one)]
    other = walk.chance.choice(alike) if alike and walk.chance.random() < 0.5 else walk.another()
    if other is one:
        return None
    values = walk.facts([one, other], pid)
    text = f"Do {one.name} and {other.name} have the same {label(pid)}?"
    return walk.literal(text, "yes" if len(values) == 1 else "no")


def job_and_hobby(walk: Walk) -> Asked | None:
    """Who has the occupation V and the hobby W?"""
    return _conjunction(walk, "P106", "P2650")


def hobby_and_birthplace(walk: Walk) -> Asked | None:
    """Who has the hobby V and the place of birth W?"""
    return _conjunction(walk, "P2650", "P19")


def job_and_residence(walk: Walk) -> Asked | None:
    """Who has the occupation V and the residence W?"""
    return _conjunction(walk, "P106", "P551")


Template = Callable[[Walk], Asked | None]

KINDS: dict[str, dict[str, Template]] = {
    "one hop": {"fact": fact, "relative": relative},
    "date": {"born": born, "died": died, "relative born": relative_born},
    "count": {"count": count, "count of relative": count_of_relative},
    "two hops": {"fact of relative": fact_of_relative, "relative of relative": relative_of_relative},
    "comparison": {"earlier": earlier, "later": later},
    "yes or no": {"same": same},
    "conjunction": {
        "job and hobby": job_and_hobby,
        "hobby and birthplace": hobby_and_birthplace,
        "job and residence": job_and_residence,
    },
    "three hops": {"relative of three": relative_of_three, "country of relative": country_of_relative},
}
"""The templates of every kind by name, the kinds from easy to hard."""


def _chain(walk: Walk, length: int) -> Asked | None:
    person = walk.start()
    asked = [walk.chance.choice(list(RELATIVES)) for _ in range(length)]
    if any(pair in LEADS_BACK for pair in pairwise(asked)):
        return None
    reached = [[person]]
    for pid in asked:
        reached.append(walk.relatives(reached[-1], pid))
    found = reached[-1]
    everybody = [each for people in reached for each in people]
    # Whether one is a friend of one's friends is a riddle, so nobody comes up twice on the way.
    if not found or len(found) > MOST_ANSWERS or len(set(everybody)) < len(everybody):
        return None
    return walk.named(_who(asked, reached[1:], person), found)


def _who(asked: list[str], reached: list[list[Person]], person: Person) -> str:
    """Every step is told in the number of those it leads to: the mothers of the friends."""
    steps = zip(asked, reached, strict=True)
    chain = [PLURALS.get(pid, f"{label(pid)}s") if len(found) > 1 else label(pid) for pid, found in steps]
    be = "are" if len(reached[-1]) > 1 else "is"
    return f"Who {be} the {' of the '.join(reversed(chain))} of {person.name}?"


def _compared(walk: Walk, wanted: str) -> Asked | None:
    one, other = walk.start(), walk.another()
    if one.born == other.born:
        return None
    walk.birth(one)
    walk.birth(other)
    choose = min if wanted == "earlier" else max
    found = choose(one, other, key=lambda person: person.born)
    return walk.named(f"Who was born {wanted}, {one.name} or {other.name}?", [found])


def _conjunction(walk: Walk, first: str, second: str) -> Asked | None:
    model = walk.start()
    wanted = [(pid, FACTS[pid][1], FACTS[pid][1](model)) for pid in (first, second)]
    found = [person for person in walk.people if all(read(person) == value for _, read, value in wanted)]
    if len(found) > MOST_ANSWERS:
        return None
    told = " and ".join(f"whose {label(pid)} is {value}" for pid, _, value in wanted)
    for pid, _, _ in wanted:
        walk.facts(found, pid)
    be, who = ("are", "people") if len(found) > 1 else ("is", "person")
    return walk.named(f"Who {be} the {who} {told}?", found)
