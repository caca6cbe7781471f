"""Places: invented towns in regions in countries, more of them the more people there are."""

from itertools import product
from math import isqrt

import numpy as np

from worlds.universe.chance import below
from worlds.universe.universe import Ids, Places

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

_FEWEST_TOWNS, _PEOPLE_OF_TOWN, _TOWNS_OF_REGION = 6, 8, 8


def places(people: int, generator: np.random.Generator) -> Places:
    """Towns for so many people; every region has a town, every country a region, and no two names are the same."""
    towns = max(_FEWEST_TOWNS, min(people // _PEOPLE_OF_TOWN, 2 * isqrt(people)))
    regions = max(3, towns // _TOWNS_OF_REGION)
    countries = 1 + isqrt(regions)
    return Places(
        towns=_names(towns, (_STEMS, _MIDDLES, _TOWN_ENDINGS), generator),
        regions=_names(regions, (_STEMS, _MIDDLES, _REGION_ENDINGS), generator),
        countries=_names(countries, (_STEMS, _COUNTRY_ENDINGS), generator),
        region=_within(towns, regions, generator),
        country=_within(regions, countries, generator),
    )


def _names(
    count: int, parts: tuple[list[str] | tuple[str, ...], ...], generator: np.random.Generator
) -> tuple[str, ...]:
    known = ["".join(each) for each in product(*parts)]
    order = np.argsort(generator.random(len(known)), kind="stable")
    return tuple(known[place] for place in order[:count])


def _within(parts: int, wholes: int, generator: np.random.Generator) -> Ids:
    """Of which whole each part is: the first parts of one each, the others of any."""
    found = np.arange(parts, dtype=np.int32)
    found[wholes:] = below(generator, wholes, parts - wholes)
    return found
