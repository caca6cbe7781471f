"""Making a universe: the same for the same options on any machine."""

from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np

from worlds.universe.chance import Stream, below, chance
from worlds.universe.families import families
from worlds.universe.friendships import friendships
from worlds.universe.homes import homes
from worlds.universe.lives import births, deaths, weddings
from worlds.universe.names import names
from worlds.universe.namesakes import namesakes
from worlds.universe.options import Options
from worlds.universe.places import places
from worlds.universe.universe import Ids, Universe

TODAY = date(2026, 1, 1).toordinal()


def make_universe(options: Options) -> Universe:
    """The universe of these options; WorldError when there can be none."""
    options.check()
    seed = options.seed
    people = families(options, chance(seed, Stream.FAMILIES))
    birth = births(people, chance(seed, Stream.BIRTHS), TODAY)
    wedding = weddings(people, birth, chance(seed, Stream.WEDDINGS), TODAY)
    death = deaths(people, (birth, wedding), chance(seed, Stream.DEATHS), TODAY)
    land = places(options.people, chance(seed, Stream.PLACES))
    birthplace, residence = homes(people, land, chance(seed, Stream.HOMES))
    sakes = namesakes(people, options.collisions, chance(seed, Stream.NAMESAKES))
    called = names(people, sakes, seed)
    job = _jobs(sakes.first, chance(seed, Stream.JOBS))
    return Universe(
        names=called,
        titles=_titles(called, sakes.first, job),
        female=people.female,
        father=people.father,
        mother=people.mother,
        spouse=people.spouse,
        birth=birth.astype(np.int32),
        death=death.astype(np.int32),
        wedding=wedding.astype(np.int32),
        birthplace=birthplace,
        residence=residence,
        job=job,
        hobby=below(chance(seed, Stream.HOBBIES), len(known("hobbies")), options.people).astype(np.int32),
        friends=friendships(options.people, options.friends, chance(seed, Stream.FRIENDSHIPS)),
        places=land,
        jobs=known("jobs"),
        hobbies=known("hobbies"),
        today=TODAY,
    )


@cache
def known(kind: str) -> tuple[str, ...]:
    """The plain English values there are: of jobs, of hobbies."""
    return tuple((Path(__file__).parent / f"{kind}.txt").read_text(encoding="utf-8").split("\n")[:-1])


def _jobs(first: Ids, generator: np.random.Generator) -> Ids:
    """A job for each; two namesakes never have the same."""
    count = len(known("jobs"))
    found = below(generator, count, len(first))
    other = 1 + below(generator, count - 1, len(first))
    alike = (first >= 0) & (found == found[first])
    return np.where(alike, (found + other) % count, found).astype(np.int32)


def _titles(called: Sequence[str], first: Ids, job: Ids) -> Sequence[str]:
    """The names, those of namesakes with the job in parentheses."""
    second = np.flatnonzero(first >= 0)
    titles, jobs = list(called), known("jobs")
    for row in np.concatenate((second, first[second])).tolist():
        titles[row] = f"{called[row]} ({jobs[job[row]]})"
    return titles
