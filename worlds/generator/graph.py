"""The universe as triples shaped like Wikidata's: items, direct properties, English labels, sitelinks from articles."""

import json
from collections.abc import Iterator

from worlds import terms
from worlds.generator.people import COUNTRIES, Person, Universe

PROPERTIES = {
    "P31": ("instance of", "is a"),
    "P21": ("sex or gender", "gender"),
    "P22": ("father", "dad"),
    "P25": ("mother", "mum"),
    "P26": ("spouse", "husband", "wife", "partner"),
    "P40": ("child", "son", "daughter"),
    "P3373": ("sibling", "brother", "sister"),
    "P3342": ("friend", "significant person"),
    "P106": ("occupation", "job", "profession"),
    "P2650": ("hobby", "pastime", "interested in"),
    "P569": ("date of birth", "born on", "birth date"),
    "P570": ("date of death", "died on", "death date"),
    "P19": ("place of birth", "birthplace", "born in"),
    "P551": ("residence", "home town", "lives in"),
    "P131": ("located in", "region"),
    "P17": ("country", "state"),
}
FIRST_ITEM = 9_000_001
TYPED_DATE = "<http://www.w3.org/2001/XMLSchema#dateTime>"


class Items:
    """The ids of everything in the universe, by kind and name, in a fixed order."""

    def __init__(self, universe: Universe) -> None:
        self.descriptions: dict[tuple[str, str], str] = {}
        for person in universe.people:
            life = f"{person.born.year}–{person.died.year if person.died else ''}"
            self.descriptions["person", person.name] = f"{person.job} from {person.birthplace} ({life})"
        for country, regions in COUNTRIES.items():
            self.descriptions["country", country] = "country"
            for region, towns in regions.items():
                self.descriptions["region", region] = f"region of {country}"
                for town in towns:
                    self.descriptions["town", town] = f"town in {region}, {country}"
        self.descriptions |= {("job", name): "occupation" for name in sorted({p.job for p in universe.people})}
        self.descriptions |= {("hobby", name): "hobby" for name in sorted({p.hobby for p in universe.people})}
        kinds = ("human", "female", "male", "town", "region", "country")
        self.descriptions |= {("kind", name): "class" for name in kinds}
        self._ids = {key: f"Q{FIRST_ITEM + place}" for place, key in enumerate(self.descriptions)}

    def id(self, kind: str, name: str) -> str:
        """The id of that thing."""
        return self._ids[kind, name]


def triples(universe: Universe, items: Items) -> Iterator[str]:
    """The graph in N-Triples, a line each."""
    for pid, (label, *aliases) in PROPERTIES.items():
        yield from _named(pid, label, aliases)
    for (kind, name), description in items.descriptions.items():
        item = items.id(kind, name)
        yield from _named(item, name, [])
        yield f"<{terms.ENTITY}{item}> <{terms.SCHEMA_DESCRIPTION}> {_text(description)} ."
        if kind in ("person", "town", "region", "country"):
            yield f"<{terms.page_of_title(name)}> <{terms.SCHEMA_ABOUT}> <{terms.ENTITY}{item}> ."
    for country, regions in COUNTRIES.items():
        yield _claim(items.id("country", country), "P31", items.id("kind", "country"))
        for region, towns in regions.items():
            yield _claim(items.id("region", region), "P31", items.id("kind", "region"))
            yield _claim(items.id("region", region), "P17", items.id("country", country))
            for town in towns:
                yield _claim(items.id("town", town), "P31", items.id("kind", "town"))
                yield _claim(items.id("town", town), "P131", items.id("region", region))
                yield _claim(items.id("town", town), "P17", items.id("country", country))
    for person in universe.people:
        yield from _person(person, items)


def _person(person: Person, items: Items) -> Iterator[str]:
    me = items.id("person", person.name)
    yield _claim(me, "P31", items.id("kind", "human"))
    yield _claim(me, "P21", items.id("kind", "female" if person.female else "male"))
    relatives = (("P22", [person.father]), ("P25", [person.mother]), ("P26", [person.spouse]))
    several = (("P40", person.children), ("P3373", person.siblings), ("P3342", person.friends))
    for pid, others in (*relatives, *several):
        for other in others:
            if other is not None:
                yield _claim(me, pid, items.id("person", other.name))
    yield _claim(me, "P106", items.id("job", person.job))
    yield _claim(me, "P2650", items.id("hobby", person.hobby))
    yield _claim(me, "P19", items.id("town", person.birthplace))
    yield _claim(me, "P551", items.id("town", person.residence))
    for pid, day in (("P569", person.born), ("P570", person.died)):
        if day is not None:
            yield f'<{terms.ENTITY}{me}> <{terms.DIRECT}{pid}> "{day.isoformat()}T00:00:00Z"^^{TYPED_DATE} .'


def _named(item: str, label: str, aliases: list[str]) -> Iterator[str]:
    yield f"<{terms.ENTITY}{item}> <{terms.RDFS_LABEL}> {_text(label)} ."
    for alias in aliases:
        yield f"<{terms.ENTITY}{item}> <{terms.SKOS_ALT_LABEL}> {_text(alias)} ."


def _claim(subject: str, pid: str, target: str) -> str:
    return f"<{terms.ENTITY}{subject}> <{terms.DIRECT}{pid}> <{terms.ENTITY}{target}> ."


def _text(value: str) -> str:
    # A JSON string is an N-Triples string for everything that is said here.
    return json.dumps(value, ensure_ascii=False) + "@en"
