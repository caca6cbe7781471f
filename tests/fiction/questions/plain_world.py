"""A universe as plain dictionaries with independent relations: a second way to derive every answer."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Any

from showhow.fiction.universe.universe import Universe

Values = set[Any]
WOMEN = {"mother", "daughter", "sister", "wife"}
MEN = {"father", "son", "brother", "husband"}
FACTS = {
    "occupation": "job",
    "hobby": "hobby",
    "date of birth": "birth",
    "date of death": "death",
    "date of marriage": "wedding",
    "place of birth": "birthplace",
    "residence": "residence",
}


class PlainWorld:
    """People by title, each a dictionary of facts."""

    def __init__(self, universe: Universe) -> None:
        self.today = date.fromordinal(universe.today)
        places = universe.places
        self.towns = {
            town: (places.regions[region], places.countries[places.country[region]])
            for town, region in zip(places.towns, places.region.tolist(), strict=True)
        }
        self.people: dict[str, dict[str, Any]] = {
            title: self._person(universe, row) for row, title in enumerate(universe.titles)
        }
        for left, right in universe.friends.pairs.tolist():
            for one, other in ((left, right), (right, left)):
                self.people[universe.titles[one]]["friends"].add(universe.titles[other])

    def _person(self, universe: Universe, row: int) -> dict[str, Any]:
        person: dict[str, Any] = {"female": bool(universe.female[row]), "friends": set()}
        for fact in ("father", "mother", "spouse"):
            relative = int(getattr(universe, fact)[row])
            person[fact] = universe.titles[relative] if relative >= 0 else None
        for fact in ("birth", "death", "wedding"):
            day = int(getattr(universe, fact)[row])
            person[fact] = date.fromordinal(day) if day >= 0 else None
        person["job"], person["hobby"] = universe.jobs[universe.job[row]], universe.hobbies[universe.hobby[row]]
        for fact in ("birthplace", "residence"):
            person[fact] = universe.places.towns[getattr(universe, fact)[row]]
        return person

    def relate(self, thing: Any, relation: str) -> Values:
        """Values of a person, town or value by the label of a relation; empty if there are none."""
        if relation.endswith(" of"):
            fact = FACTS[relation.removesuffix(" of")]
            return {title for title, person in self.people.items() if person[fact] == thing}
        if relation in ("region", "country"):
            return {self.towns[thing][relation == "country"]}
        if relation in FACTS:
            value = self.people[thing][FACTS[relation]]
            return {value} - {None}
        return {relative for relative in self._relatives(thing, relation) if self._fits(relative, relation)}

    def _fits(self, title: str, relation: str) -> bool:
        female = self.people[title]["female"]
        return not (female and relation in MEN) and not (not female and relation in WOMEN)

    def _relatives(self, title: str, relation: str) -> Iterator[str]:
        person = self.people[title]
        match relation:
            case "mother" | "father" | "parent":
                yield from filter(None, (person["mother"], person["father"]))
            case "child" | "daughter" | "son":
                yield from (t for t, other in self.people.items() if title in (other["father"], other["mother"]))
            case "sibling" | "sister" | "brother":
                for parent in filter(None, (person["mother"], person["father"])):
                    yield from (child for child in self._relatives(parent, "child") if child != title)
            case "spouse" | "wife" | "husband":
                yield from filter(None, (person["spouse"],))
            case "friend":
                yield from person["friends"]
            case _:
                raise KeyError(relation)

    def fits(self, title: str, fact: str, test: str, value: str) -> bool:
        """Whether the person's fact is, or lies before or after, the value of a sentence."""
        own = self.people[title][fact]
        if not isinstance(own, date):
            return own is not None and test == "is" and own == value
        text = parse_day(value)
        return {"is": own == text, "before": own < text, "after": own > text}[test]

    def where(self, people: Iterable[str], fact: str, test: str, value: str) -> Values:
        """The people whose fact matches."""
        return {title for title in people if self.fits(title, fact, test, value)}


def parse_day(text: str) -> date:
    """The day of a sentence."""
    return datetime.strptime(text, "%d %B %Y").date()  # noqa: DTZ007 - a day has no time zone


def format_values(values: Iterable[Any]) -> list[str]:
    """Values formatted as answers, sorted."""
    return sorted(value.isoformat() if isinstance(value, date) else str(value) for value in values)
