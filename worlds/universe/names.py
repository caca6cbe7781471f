"""Names by gender and family, from the lists of Faker: everybody bears the father's surname."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import numpy as np
import numpy.typing as npt

from worlds.folder import WorldError
from worlds.universe.chance import Stream, below, chance
from worlds.universe.families import Families
from worlds.universe.namesakes import Namesakes
from worlds.universe.universe import Ids

_LOCALES = (
    "da_DK de_AT de_CH de_DE en en_GB en_IE en_IN en_KE en_NZ en_US es_ES et_EE fi_FI fr_BE fr_CH fr_FR hr_HR it_IT "
    "nl_BE nl_NL no_NO pt_PT sv_SE zu_ZA"
).split()
_PLAIN = re.compile("[A-Z][a-z]+")


@dataclass(frozen=True, slots=True)
class Pools:
    """The names to draw from, sorted; no given name is both a woman's and a man's."""

    women: tuple[str, ...]
    men: tuple[str, ...]
    surnames: tuple[str, ...]


@cache
def pools() -> Pools:
    """Names in plain Latin letters; they change with the version of Faker, and every world with them."""
    women, men, surnames = (
        {name for locale in _LOCALES for name in _listed(locale, kind) if _PLAIN.fullmatch(name)}
        for kind in ("first_names_female", "first_names_male", "last_names")
    )
    return Pools(tuple(sorted(women - men)), tuple(sorted(men - women)), tuple(sorted(surnames)))


def _listed(locale: str, kind: str) -> tuple[str, ...]:
    # Only what is made needs Faker, which takes a while to import.
    provider = import_module(f"faker.providers.person.{locale}").Provider
    return tuple(getattr(provider, kind))


def names(people: Families, sakes: Namesakes, seed: int, known: Pools | None = None) -> list[str]:
    """The full names, all different but for namesakes; WorldError when a surname has more people than given names."""
    known = known or pools()
    surname = below(chance(seed, Stream.SURNAMES), len(known.surnames), len(people.female))[sakes.line]
    given = _given_names(people.female, surname, sakes.first, known, seed)
    women, men, surnames = known.women, known.men, known.surnames
    return [
        f"{women[first] if female else men[first]} {surnames[last]}"
        for female, first, last in zip(people.female.tolist(), given.tolist(), surname.tolist(), strict=True)
    ]


def _given_names(
    female: npt.NDArray[np.bool_], surname: npt.NDArray[np.int64], first: Ids, known: Pools, seed: int
) -> npt.NDArray[np.int64]:
    """The numbers of the given names: people of a surname and gender take them in an order of its own."""
    generator = chance(seed, Stream.GIVEN_NAMES)
    sizes = np.where(np.arange(2) == 1, len(known.women), len(known.men))
    steps, starts = [], []
    for size in sizes.tolist():
        # Steps that have no divisor in common with the size come to every name before they come to one again.
        coprime = np.flatnonzero(np.gcd(np.arange(size), size) == 1)
        steps.append(coprime[below(generator, len(coprime), len(known.surnames))])
        starts.append(below(generator, size, len(known.surnames)))
    own = np.flatnonzero(first < 0)
    gender = female[own].astype(np.int64)
    key = surname[own] * 2 + gender
    order = np.argsort(key, kind="stable")
    counts = np.bincount(key, minlength=2 * len(known.surnames))
    rank = np.empty(len(own), np.int64)
    rank[order] = np.arange(len(own)) - np.repeat(np.cumsum(counts) - counts, counts)
    if np.any(rank >= sizes[gender]):
        raise WorldError("More people share a surname than there are given names; ask for fewer people.")
    found = np.empty(len(female), np.int64)
    of = surname[own]
    found[own] = (np.array(starts)[gender, of] + rank * np.array(steps)[gender, of]) % sizes[gender]
    second = np.flatnonzero(first >= 0)
    found[second] = found[first[second]]
    return found
