"""Generation of a universe: the same options give the same universe on every machine.

Also generates its places: invented towns in regions in countries, more of them for more people.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import import_module
from itertools import product
from math import isqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from showhow.fiction.universe.families import FamilyTrees, RandomStream, create_generator, grow_families, random_below
from showhow.fiction.universe.life_events import assign_homes, draw_births, draw_deaths, draw_friendships, draw_weddings
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import NONE, IdArray, Places, Universe
from showhow.worlds.folder import WorldError

_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Namesakes:
    """People who share a surname, and pairs who share a full name."""

    line: IdArray
    """For each person a row that is the same for all who inherit one surname."""
    first: IdArray
    """For the second of two namesakes the row of the first; NONE for all others."""


def find_paternal_lines(people: FamilyTrees) -> IdArray:
    """For each person the first ancestor in the line of fathers; the person's own row without a father."""
    rows = np.arange(len(people.father), dtype=np.int32)
    heads = np.where(people.father < 0, rows, people.father)
    while True:
        further = heads[heads]
        if np.array_equal(further, heads):
            return heads
        heads = further


def draw_namesakes(people: FamilyTrees, share: float, generator: np.random.Generator) -> Namesakes:
    """Draw namesakes as a share of all people, rounded down to pairs; WorldError if there are too few families."""
    line = find_paternal_lines(people)
    first = np.full(len(line), NONE, np.int32)
    pairs = round(share * len(line)) // 2
    if not pairs:
        return Namesakes(line, first)
    line = _merge_lines(people, line, generator)
    one, other = _draw_candidate_pairs(people, line)
    if len(one) < pairs:
        raise WorldError(
            f"Only {2 * len(one):,} of these {len(line):,} people can share a name with a person of another family; "
            "ask for fewer collisions, more people or smaller families."
        )
    chosen = np.sort(np.argsort(generator.random(len(one)), kind="stable")[:pairs])
    first[other[chosen]] = one[chosen]
    return Namesakes(line, first)


def _merge_lines(people: FamilyTrees, line: IdArray, generator: np.random.Generator) -> IdArray:
    """Merge pairs of lines of different families with equal numbers of women and men, where possible."""
    heads = np.flatnonzero(line == np.arange(len(line)))
    women, men = (
        np.bincount(line[is_gender], minlength=len(line))[heads] for is_gender in (people.female, ~people.female)
    )
    tree = people.tree_numbers[heads]
    family_order = np.argsort(generator.random(int(tree[-1]) + 1), kind="stable")[tree]
    # First lines of all families, then second lines: neighbours belong to different families.
    rank = _rank_within_groups(np.lexsort((women, men, tree)), (tree, men, women))
    order = np.lexsort((family_order, rank, men, women))
    one, other = order[: len(order) // 2 * 2].reshape(-1, 2).T
    differ_in_family = tree[one] != tree[other]
    merged_lines = np.arange(len(line), dtype=np.int32)
    merged_lines[heads[other[differ_in_family]]] = heads[one[differ_in_family]]
    return merged_lines[line]


def _draw_candidate_pairs(people: FamilyTrees, line: IdArray) -> tuple[_Rows, _Rows]:
    """Disjoint pairs of people of the same line and gender but different families."""
    keys = (line, people.female, people.tree_numbers)
    rank = _rank_within_groups(np.lexsort((people.tree_numbers, people.female, line)), keys)
    order = np.lexsort((people.tree_numbers, rank, people.female, line))
    one, other = order[:-1], order[1:]
    alike = (line[one] == line[other]) & (people.female[one] == people.female[other]) & (rank[one] == rank[other])
    return one[alike], other[alike]


def _rank_within_groups(order: _Rows, keys: tuple[npt.NDArray[np.generic], ...]) -> _Rows:
    """Rank of each row among rows with equal keys; `order` places equal keys next to each other."""
    begins = np.ones(len(order), np.bool_)
    begins[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    places = np.arange(len(order))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return ranks


_LOCALES = (
    "da_DK de_AT de_CH de_DE en en_GB en_IE en_IN en_KE en_NZ en_US es_ES et_EE fi_FI fr_BE fr_CH fr_FR hr_HR it_IT "
    "nl_BE nl_NL no_NO pt_PT sv_SE zu_ZA"
).split()
_LATIN_NAME_PATTERN = re.compile("[A-Z][a-z]+")


@dataclass(frozen=True, slots=True)
class NamePools:
    """Names to draw from, sorted; the given names of women and men are disjoint."""

    women: tuple[str, ...]
    men: tuple[str, ...]
    surnames: tuple[str, ...]


@cache
def load_name_pools() -> NamePools:
    """Load names in plain Latin letters; another version of Faker gives other names, and other worlds."""
    women, men, surnames = (
        {
            name
            for locale in _LOCALES
            for name in _load_locale_names(locale, kind)
            if _LATIN_NAME_PATTERN.fullmatch(name)
        }
        for kind in ("first_names_female", "first_names_male", "last_names")
    )
    return NamePools(tuple(sorted(women - men)), tuple(sorted(men - women)), tuple(sorted(surnames)))


def _load_locale_names(locale: str, kind: str) -> tuple[str, ...]:
    # Faker takes a while to import, and only generation needs it.
    provider = import_module(f"faker.providers.person.{locale}").Provider
    return tuple(getattr(provider, kind))


def draw_full_names(people: FamilyTrees, namesakes: Namesakes, seed: int, pools: NamePools | None = None) -> list[str]:
    """Draw full names, unique except for namesakes; WorldError if a surname has more people than given names."""
    pools = pools or load_name_pools()
    surname = random_below(create_generator(seed, RandomStream.SURNAMES), len(pools.surnames), len(people.female))[
        namesakes.line
    ]
    given_names = _draw_given_names(people.female, surname, namesakes.first, pools, seed)
    women, men, surnames = pools.women, pools.men, pools.surnames
    return [
        f"{women[first] if female else men[first]} {surnames[last]}"
        for female, first, last in zip(people.female.tolist(), given_names.tolist(), surname.tolist(), strict=True)
    ]


def _draw_given_names(
    female: npt.NDArray[np.bool_], surname: npt.NDArray[np.int64], first: IdArray, pools: NamePools, seed: int
) -> npt.NDArray[np.int64]:
    """Indices of given names; people of one surname and gender take distinct names in a random order."""
    generator = create_generator(seed, RandomStream.GIVEN_NAMES)
    sizes = np.where(np.arange(2) == 1, len(pools.women), len(pools.men))
    steps, starts = [], []
    for size in sizes.tolist():
        # A step coprime to the size visits every name before it repeats one.
        coprime = np.flatnonzero(np.gcd(np.arange(size), size) == 1)
        steps.append(coprime[random_below(generator, len(coprime), len(pools.surnames))])
        starts.append(random_below(generator, size, len(pools.surnames)))
    own = np.flatnonzero(first < 0)
    gender = female[own].astype(np.int64)
    key = surname[own] * 2 + gender
    order = np.argsort(key, kind="stable")
    counts = np.bincount(key, minlength=2 * len(pools.surnames))
    rank = np.empty(len(own), np.int64)
    rank[order] = np.arange(len(own)) - np.repeat(np.cumsum(counts) - counts, counts)
    if np.any(rank >= sizes[gender]):
        raise WorldError("More people share a surname than there are given names; ask for fewer people.")
    numbers = np.empty(len(female), np.int64)
    surname_indices = surname[own]
    numbers[own] = (
        np.array(starts)[gender, surname_indices] + rank * np.array(steps)[gender, surname_indices]
    ) % sizes[gender]
    second = np.flatnonzero(first >= 0)
    numbers[second] = numbers[first[second]]
    return numbers


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
    return tuple(names[index] for index in order[:count])


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
    lives = birth, np.where(death == NONE, TODAY, death)
    if options.generator < 3:
        lives = np.zeros_like(birth), np.full_like(death, TODAY)
    places = generate_places(options.people, create_generator(seed, RandomStream.PLACES))
    birthplace, residence = assign_homes(people, places, create_generator(seed, RandomStream.HOMES))
    namesakes = draw_namesakes(people, options.collisions, create_generator(seed, RandomStream.NAMESAKES))
    full_names = draw_full_names(people, namesakes, seed)
    job = _draw_jobs(namesakes.first, create_generator(seed, RandomStream.JOBS))
    hobby = random_below(
        create_generator(seed, RandomStream.HOBBIES), len(list_known_values("hobbies")), options.people
    ).astype(np.int32)
    absences = create_generator(seed, RandomStream.ABSENCES)
    for values in (hobby, residence):
        values[absences.permutation(options.people)[: 2 * options.pairs]] = NONE
    return Universe(
        names=full_names,
        titles=_build_titles(full_names, namesakes.first, job),
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
        hobby=hobby,
        friends=draw_friendships(lives, options.friends, create_generator(seed, RandomStream.FRIENDSHIPS)),
        places=places,
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


def _build_titles(full_names: Sequence[str], first_namesake: IdArray, job: IdArray) -> Sequence[str]:
    """Titles: the names, with the job in parentheses for namesakes."""
    second_rows = np.flatnonzero(first_namesake >= 0)
    titles, jobs = list(full_names), list_known_values("jobs")
    for row in np.concatenate((second_rows, first_namesake[second_rows])).tolist():
        titles[row] = f"{full_names[row]} ({jobs[job[row]]})"
    return titles
