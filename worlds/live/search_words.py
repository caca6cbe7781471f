"""From a question to words that a search engine can match: engines want every word, and know no grammar."""

import re
from collections.abc import Iterator

from worlds.question_words import STOP_WORDS

MOST_QUERIES = 5
_MOST_WORDS = 32
_LONGEST_WORD = 60
_MOST_NAMES = 8
_LONGEST_TITLE = 8
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")
_PART = re.compile(r"\b[A-Z]\.|\w+(?:['’.-]\w+)*|[^\w\s]")
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,100})[\"”“»]")
_POSSESSIVE = re.compile(r"['’]s$")
_JOINS = frozenset("of the de la le von van der den du di da del and & in on at for to a".split())
"""Small words that stand inside names."""
_ARTICLES = frozenset({"The", "A", "An"})


def words_of(text: str) -> list[str]:
    """The words of a text in their order, each once, without what engines take for operators."""
    found = (_POSSESSIVE.sub("", word) for word in _WORD.findall(text))
    short = (word for word in found if len(word) <= _LONGEST_WORD)
    seen = dict.fromkeys(word.lower() if word in {"AND", "OR", "NOT"} else word for word in short)
    return list(seen)[:_MOST_WORDS]


def names_of(query: str) -> list[str]:
    """What a query may name, most telling first: what stands in quotes, runs of capitals, a short query itself."""
    names = [" ".join(quoted.split()) for quoted in _QUOTED.findall(query)]
    bare = " ".join(query.split()).strip(" ?!.\"“”'")
    if bare and len(bare.split()) <= _LONGEST_TITLE and not _asks(bare):
        names.append(bare)
    runs = list(_runs(_QUOTED.sub(" , ", query)))
    names += sorted(runs, key=len, reverse=True)
    return list(dict.fromkeys(names))[:_MOST_NAMES]


def relaxations(query: str) -> list[tuple[str, ...]]:
    """Sets of words to search for, one after the other: all telling ones, those of names, then the most telling."""
    words = words_of(query)
    telling = [word for word in words if word.lower() not in STOP_WORDS] or words
    names = [{word.lower() for word in words_of(name)} for name in names_of(query)]
    # A short query that is no question counts as a name, but says nothing of its words.
    named = [name for name in names if not name.issuperset(word.lower() for word in telling)]
    of_names = frozenset[str]().union(*named)
    ranked = sorted(telling, key=lambda word: (word.lower() not in of_names, not word[0].isdigit(), -len(word)))
    halves = [frozenset(ranked[: len(ranked) >> times]) for times in range(1, len(ranked).bit_length())]
    wanted = [frozenset(telling), *(frozenset(w for w in telling if w.lower() in some) for some in (of_names, *named))]
    queries = [tuple(word for word in telling if word in some) for some in (*wanted, *halves)]
    return [query for query in dict.fromkeys(queries) if query][:MOST_QUERIES]


def _asks(text: str) -> bool:
    """Whether a text begins as a question does and goes on as one; titles such as In Heaven have capitals only."""
    first, *others = text.split()
    begins = first.lower() in STOP_WORDS and first.lower() not in {"a", "the", "all", "my"} and text[:1].isupper()
    return begins and any(word[:1].islower() and word not in _JOINS for word in others)


def _runs(query: str) -> Iterator[str]:
    """Runs of words with capitals, small words inside them allowed; with those also the parts between them."""
    run: list[str] = []
    before = "."
    for part in [*_PART.findall(query), ","]:
        word = _POSSESSIVE.sub("", part)
        capital = word[:1].isupper() or (word[:1].isdigit() and bool(run))
        # Within a sentence even a small word with a capital begins a name: the film In Heaven.
        within = before not in {".", "?", "!"} and word != "I"
        begins = capital and (word.lower() not in STOP_WORDS or word in _ARTICLES or within)
        before = part
        if begins or (run and (capital or word in _JOINS)):
            run.append(word)
        else:
            yield from _named(run)
            run = []
        if part != word:
            yield from _named(run)
            run = []


def _named(run: list[str]) -> Iterator[str]:
    while run and run[-1] in _JOINS:
        run = run[:-1]
    without = run[1:] if run and run[0] in _ARTICLES else run
    if not without:
        return
    yield " ".join(run)
    yield " ".join(without)
    parts = re.split(r" (?:and|in|at|for|on|to) ", " ".join(run))
    if len(parts) > 1:
        yield from parts
