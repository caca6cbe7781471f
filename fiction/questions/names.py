"""What people, places, values and days are called in questions and answers."""

from datetime import date

from fiction.universe.universe import Universe

# Not from the system's calendar, which speaks the language of the machine.
MONTHS = "January February March April May June July August September October November December".split()


class NameFormatter:
    """The names of one universe; `plain` writes days as the published articles do."""

    def __init__(self, universe: Universe, *, plain: bool = False) -> None:
        self._universe = universe
        self._plain = plain

    def person_title(self, row: int) -> str:
        """The title of the person's article: the name, or what tells namesakes apart."""
        return self._universe.titles[row]

    def question_text(self, kind: str, number: int) -> str:
        """A value as a question writes it: 5 March 1931."""
        if kind == "day" and not self._plain:
            return format_english_date(number)
        return self.answer_text(kind, number)

    def answer_text(self, kind: str, number: int) -> str:
        """A value as an answer gives it: an ISO date, digits, yes or no, else the name."""
        places = self._universe.places
        match kind:
            case "person":
                return self._universe.titles[number]
            case "day":
                return date.fromordinal(number).isoformat()
            case "number":
                return str(number)
            case "truth":
                return "yes" if number else "no"
        texts = {
            "job": self._universe.jobs,
            "hobby": self._universe.hobbies,
            "town": places.towns,
            "region": places.regions,
            "country": places.countries,
        }
        return texts[kind][number]


def format_english_date(day: int) -> str:
    """A date as English writes it: 5 March 1931."""
    when = date.fromordinal(day)
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}"
