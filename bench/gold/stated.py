"""Whether sentences that were observed state a fact, by the ways in which articles and web pages state it."""

from collections.abc import Iterable, Iterator

from bench.gold.pairs import Pairs
from worlds.generator.phrasings import Manner, web
from worlds.questions.evaluate import KIND_OF_FACT
from worlds.questions.names import spoken
from worlds.questions.things import Things

KINDS = {
    "parent": ("father", "mother"),
    "child": ("daughter", "son"),
    "sibling": ("sister", "brother"),
    "spouse": ("wife", "husband"),
}
"""The kinds of sentences that state a relation; any other one states its own."""
_CHILDREN = ("child", "daughter", "son")


class Articles:
    """Reads facts in articles."""

    def __init__(self, things: Things, manner: Manner) -> None:
        self._things, self._manner = things, manner

    def stated(self, relation: str, head: int, wanted: Iterable[int], sentences: Iterable[str]) -> set[int]:
        """Those of the values that the sentences of the head's article state."""
        universe = self._things.universe
        subjects = {universe.names[head], universe.titles[head]}
        found = {name for said in sentences for subject in subjects for name in self._inner(relation, subject, said)}
        kind = KIND_OF_FACT.get(relation, "person")
        return {value for value in wanted if self._said(kind, value) in found}

    def _said(self, kind: str, value: int) -> str:
        return self._things.answer(kind, value) if self._manner.days == "digits" else self._things.said(kind, value)

    def _inner(self, relation: str, subject: str, sentence: str) -> Iterator[str]:
        """The values that a sentence lists if it states the relation of the subject."""
        for kind in KINDS.get(relation, (relation,)):
            for phrasing in self._manner.phrasings[kind].formats:
                before, _, after = phrasing.format(subject, "\x00").partition("\x00")
                if sentence.startswith(before) and sentence.endswith(after):
                    inner = sentence[len(before) : len(sentence) - len(after)]
                    first, _, last = inner.rpartition(self._manner.last)
                    yield from (inner, last, *first.split(", "))


class Pages:
    """Reads facts on web pages."""

    def __init__(self, things: Things) -> None:
        self._things = things

    def stated(self, relation: str, wanted: Pairs, sentences: Iterable[str]) -> Pairs:
        """Those of the pairs that the sentences state."""
        said = set(sentences)
        return {pair for pair in wanted if not said.isdisjoint(self._ways(relation, *pair))}

    def _ways(self, relation: str, head: int, value: int) -> Iterator[str]:
        kind = KIND_OF_FACT.get(relation, "person")
        if relation in ("spouse", "wife", "husband", "friend"):
            told = "friend" if relation == "friend" else "spouse"
            for one, other in ((head, value), (value, head)):
                yield from self._formatted(told, one, self._person(other))
        elif relation in ("parent", "father", "mother", *_CHILDREN):
            child, parent = (value, head) if relation in _CHILDREN else (head, value)
            told = "mother" if self._things.universe.female[parent] else "father"
            yield from self._formatted(told, child, self._person(parent))
        elif kind != "person":
            # Pages write days in words also where articles write digits.
            said = spoken(value) if kind == "day" else self._things.said(kind, value)
            yield from self._formatted(relation, head, said)

    def _formatted(self, kind: str, person: int, value: str) -> Iterator[str]:
        for then in (False, True):
            for phrasing in web(then=then)[kind].formats if kind in web(then=then) else ():
                yield phrasing.format(self._person(person), value)

    def _person(self, row: int) -> str:
        universe = self._things.universe
        return f"{'Ms' if universe.female[row] else 'Mr'} {universe.titles[row]}"
