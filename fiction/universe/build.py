"""Generation of a universe: the same options give the same universe on every machine.

Also generates its places: invented towns in regions in countries, more of them for more people.
"""

from collections.abc import Sequence
from datetime import date
from functools import cache
from itertools import product
from math import isqrt
from pathlib import Path

import numpy as np

from fiction.universe.families import grow_families
from fiction.universe.life_events import assign_homes, draw_births, draw_deaths, draw_friendships, draw_weddings
from fiction.universe.names import draw_full_names, draw_namesakes
from fiction.universe.options import GenerationOptions
from fiction.universe.random_streams import RandomStream, create_generator, random_below
from fiction.universe.universe import IdArray, Places, Universe

_STEMS = (
    "Arv Bram Brel Cald Corv Dren Drum Eld Esk Fal Fenn Fjar Gald Garr Grim Hald Harr Hax Helm Ilm Isk Jarr Kald Keld "
    "Kest Lann Lorn Lund Marn Melk Morn Narr Nev Norr Orl Osk Pell Quar Rand Rav Rend Ross Sald Sarn Selk Skar Sol "
    "Sorr Tarn Telm Thorn Torv Ulv Und Vald Varn Vend Vik Wald Wend Wex Wilm Yarl Zell"
).split()
_MIDDLES = ("", "a", "en", "er")
_TOWN_ENDINGS = (
    "bek bridge brook bury combe cote croft ford gate ham haven holm hurst leigh mere minster mouth port stead stoke "
    "thwaite ton wick worth"
).split()
_REGION_ENDINGS = ("mark", "shire", "fell", "dale", "moor", "wold")
_COUNTRY_ENDINGS = ("avia", "esia", "oria", "una", "ovia", "athia")

_MIN_TOWNS, _PEOPLE_PER_TOWN, _TOWNS_PER_REGION = 6, 8, 8


def generate_places(people: int, generator: np.random.Generator) -> Places:
    """Generate places for this many people; every region has a town, every country a region, and names are unique."""
    towns = max(_MIN_TOWNS, min(people // _PEOPLE_PER_TOWN, 2 * isqrt(people)))
    regions = max(3, towns // _TOWNS_PER_REGION)
    countries = 1 + isqrt(regions)
    return Places(
        towns=_generate_names(towns, (_STEMS, _MIDDLES, _TOWN_ENDINGS), generator),
        regions=_generate_names(regions, (_STEMS, _MIDDLES, _REGION_ENDINGS), generator),
        countries=_generate_names(countries, (_STEMS, _COUNTRY_ENDINGS), generator),
        region=_assign_wholes(towns, regions, generator),
        country=_assign_wholes(regions, countries, generator),
    )


def _generate_names(
    count: int, parts: tuple[list[str] | tuple[str, ...], ...], generator: np.random.Generator
) -> tuple[str, ...]:
    names = ["".join(syllables) for syllables in product(*parts)]
    order = np.argsort(generator.random(len(names)), kind="stable")
    return tuple(names[place] for place in order[:count])


def _assign_wholes(parts: int, wholes: int, generator: np.random.Generator) -> IdArray:
    """Assign each part to a whole: the first parts one to each whole, the others at random."""
    assigned = np.arange(parts, dtype=np.int32)
    assigned[wholes:] = random_below(generator, wholes, parts - wholes)
    return assigned


TODAY = date(2026, 1, 1).toordinal()


def make_universe(options: GenerationOptions) -> Universe:
    """Generate the universe of these options; WorldError if they cannot be met."""
    options.check()
    seed = options.seed
    people = grow_families(options, create_generator(seed, RandomStream.FAMILIES))
    birth = draw_births(people, create_generator(seed, RandomStream.BIRTHS), TODAY)
    wedding = draw_weddings(people, birth, create_generator(seed, RandomStream.WEDDINGS), TODAY)
    death = draw_deaths(people, (birth, wedding), create_generator(seed, RandomStream.DEATHS), TODAY)
    land = generate_places(options.people, create_generator(seed, RandomStream.PLACES))
    birthplace, residence = assign_homes(people, land, create_generator(seed, RandomStream.HOMES))
    sakes = draw_namesakes(people, options.collisions, create_generator(seed, RandomStream.NAMESAKES))
    called = draw_full_names(people, sakes, seed)
    job = _draw_jobs(sakes.first, create_generator(seed, RandomStream.JOBS))
    return Universe(
        names=called,
        titles=_build_titles(called, sakes.first, job),
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
        hobby=random_below(
            create_generator(seed, RandomStream.HOBBIES), len(list_known_values("hobbies")), options.people
        ).astype(np.int32),
        friends=draw_friendships(options.people, options.friends, create_generator(seed, RandomStream.FRIENDSHIPS)),
        places=land,
        jobs=list_known_values("jobs"),
        hobbies=list_known_values("hobbies"),
        today=TODAY,
    )


@cache
def list_known_values(kind: str) -> tuple[str, ...]:
    """All values of "jobs" or "hobbies"."""
    return tuple((Path(__file__).parent / f"{kind}.txt").read_text(encoding="utf-8").split("\n")[:-1])


def _draw_jobs(first: IdArray, generator: np.random.Generator) -> IdArray:
    """Draw a job for each person; two namesakes never have the same one."""
    count = len(list_known_values("jobs"))
    jobs = random_below(generator, count, len(first))
    other = 1 + random_below(generator, count - 1, len(first))
    alike = (first >= 0) & (jobs == jobs[first])
    return np.where(alike, (jobs + other) % count, jobs).astype(np.int32)


def _build_titles(called: Sequence[str], first: IdArray, job: IdArray) -> Sequence[str]:
    """Titles: the names, with the job in parentheses for namesakes."""
    second = np.flatnonzero(first >= 0)
    titles, jobs = list(called), list_known_values("jobs")
    for row in np.concatenate((second, first[second])).tolist():
        titles[row] = f"{called[row]} ({jobs[job[row]]})"
    return titles
