"""Graph items of a universe: ids (computed, not stored), labels, descriptions and aliases."""

from collections.abc import Iterator, Sequence
from datetime import date

from showhow.fiction.universe.universe import NONE, Universe
from showhow.worlds.lexicon.kinship import relation_names

HUMAN, FEMALE, MALE = "Q5", "Q6581072", "Q6581097"
TOWN, REGION, COUNTRY, OCCUPATION, HOBBY = "Q3957", "Q82794", "Q6256", "Q12737077", "Q47728"
"""Ids of classes on Wikidata."""
CLASSES = {
    HUMAN: "human",
    FEMALE: "female",
    MALE: "male",
    TOWN: "town",
    REGION: "region",
    COUNTRY: "country",
    OCCUPATION: "occupation",
    HOBBY: "hobby",
}
KIND_CLASS = {"town": TOWN, "region": REGION, "country": COUNTRY, "job": OCCUPATION, "hobby": HOBBY}
"""Class of the items of each kind; people are HUMAN."""

PROPERTY_RELATIONS = {
    "P31": "instance of",
    "P21": "sex or gender",
    "P22": "father",
    "P25": "mother",
    "P26": "spouse",
    "P40": "child",
    "P3373": "sibling",
    "P3342": "friend",
    "P106": "occupation",
    "P2650": "hobby",
    "P569": "date of birth",
    "P570": "date of death",
    "P580": "date of marriage",
    "P19": "place of birth",
    "P551": "residence",
    "P131": "located in",
    "P17": "country",
}
"""Relation of the lexicon that each Wikidata property states. P580 (start time) stands for the day of a marriage."""
_WIKIDATA_LABELS = {"P3342": ("significant person",), "P2650": ("interested in",)}
"""Labels on Wikidata that are no English name of the relation; graphs list them as aliases."""
PROPERTY_LABELS = {
    pid: (*relation_names(relation), *_WIKIDATA_LABELS.get(pid, ())) for pid, relation in PROPERTY_RELATIONS.items()
}
"""Label and aliases of each property."""
PROPERTY_IDS = {
    "gender": "P21",
    "father": "P22",
    "mother": "P25",
    "spouse": "P26",
    "child": "P40",
    "sibling": "P3373",
    "friend": "P3342",
    "job": "P106",
    "hobby": "P2650",
    "birth": "P569",
    "death": "P570",
    "wedding": "P580",
    "birthplace": "P19",
    "residence": "P551",
    "region": "P131",
    "country": "P17",
}
"""Property of each fact, relation to a relative, and relation of a town to its region and country."""

PLACE_KINDS = ("town", "region", "country")
ITEM_KINDS = ("person", *PLACE_KINDS, "job", "hobby")
IDS_PER_KIND = 1_000_000_000
"""Size of the id range of a kind; all ids have ten digits, more than any Wikidata item."""
FIRST_IDS = {kind: (place + 1) * IDS_PER_KIND for place, kind in enumerate(ITEM_KINDS)}
FACT_ITEM_KINDS = {
    "father": "person",
    "mother": "person",
    "spouse": "person",
    "birthplace": "town",
    "residence": "town",
    "job": "job",
    "hobby": "hobby",
}
"""Kind of the item that is the value of a fact; the values of all other facts are days."""


class ItemCatalog:
    """Ids, labels, descriptions and aliases of all items of a universe; withheld facts do not appear in them.

    Ids are the same in a restricted universe; descriptions and aliases are not.
    """

    def __init__(self, universe: Universe) -> None:
        self._universe = universe

    def person(self, row: int) -> str:
        """Id of the person in this row."""
        return f"Q{FIRST_IDS['person'] + row}"

    def town(self, number: int) -> str:
        """Id of the town with this number."""
        return f"Q{FIRST_IDS['town'] + number}"

    def region(self, number: int) -> str:
        """Id of the region with this number."""
        return f"Q{FIRST_IDS['region'] + number}"

    def country(self, number: int) -> str:
        """Id of the country with this number."""
        return f"Q{FIRST_IDS['country'] + number}"

    def job(self, number: int) -> str:
        """Id of the job with this number."""
        return f"Q{FIRST_IDS['job'] + number}"

    def hobby(self, number: int) -> str:
        """Id of the hobby with this number."""
        return f"Q{FIRST_IDS['hobby'] + number}"

    def value_id(self, fact: str, number: int) -> str | None:
        """Id of the value of a fact; None for a day, which is no item."""
        kind = FACT_ITEM_KINDS.get(fact)
        return None if kind is None else f"Q{FIRST_IDS[kind] + number}"

    def locate(self, item: str) -> tuple[str, int]:
        """Kind (one of ITEM_KINDS) and number of an id; KeyError if the universe has no such item."""
        number = int(item[1:]) if item[:1] == "Q" and item[1:].isdecimal() else 0
        place = number // IDS_PER_KIND - 1
        if not 0 <= place < len(ITEM_KINDS) or number % IDS_PER_KIND >= len(self.labels(ITEM_KINDS[place])):
            raise KeyError(item)
        return ITEM_KINDS[place], number % IDS_PER_KIND

    def labels(self, kind: str) -> Sequence[str]:
        """Labels of all items of a kind, by number."""
        universe, places = self._universe, self._universe.places
        labels = {
            "person": universe.names,
            "town": places.towns,
            "region": places.regions,
            "country": places.countries,
            "job": universe.jobs,
            "hobby": universe.hobbies,
        }
        return labels[kind]

    def label(self, item: str) -> str:
        """Label of an item; KeyError if there is none."""
        kind, number = self.locate(item)
        return self.labels(kind)[number]

    def description(self, kind: str, number: int) -> str:
        """One line that distinguishes items with the same label: "baker from Marnholm (1931–1990)"."""
        places = self._universe.places
        if kind == "person":
            return self._format_life(number)
        if kind == "town":
            region = int(places.region[number])
            return f"town in {places.regions[region]}, {places.countries[places.country[region]]}"
        if kind == "region":
            return f"region of {places.countries[places.country[number]]}"
        return {"country": "country", "job": "occupation", "hobby": "hobby"}[kind]

    def aliases(self, row: int) -> Iterator[str]:
        """Aliases of a person: initial and surname, and the married name of a wife if it differs."""
        universe = self._universe
        given_name, _, surname = universe.names[row].rpartition(" ")
        if len(given_name) < 3:
            # Too short to be abbreviated to an initial.
            return
        yield f"{given_name[0]}. {surname}"
        spouse = int(universe.spouse[row])
        if universe.female[row] and spouse > NONE:
            by_marriage = universe.names[spouse].rpartition(" ")[2]
            if by_marriage != surname:
                yield f"{given_name} {by_marriage}"

    def _format_life(self, row: int) -> str:
        universe = self._universe
        job, town = int(universe.job[row]), int(universe.birthplace[row])
        who = universe.jobs[job] if job > NONE else "person"
        origin = f" from {universe.places.towns[town]}" if town > NONE else ""
        return f"{who}{origin}{_format_years(int(universe.birth[row]), int(universe.death[row]))}"


def _format_years(birth: int, death: int) -> str:
    # A living person and one whose death is withheld look the same, so the description reveals nothing.
    if birth > NONE and death > NONE:
        return f" ({date.fromordinal(birth).year}–{date.fromordinal(death).year})"
    if birth > NONE:
        return f" (born {date.fromordinal(birth).year})"
    return f" (died {date.fromordinal(death).year})" if death > NONE else ""
