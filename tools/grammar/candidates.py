"""From a question and entities to ranked queries: all readings that the words allow, those that the graph has first."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from tools.grammar.anchors import Anchor, find_anchors
from tools.grammar.lexicon import Lexicon
from tools.grammar.parse import Leg, Question, Value, parse
from tools.grammar.paths import Hop, Path
from tools.grammar.queries import Composer, Draft
from tools.grammar.scan import Mention
from tools.grammar.words import words_of
from worlds.source import Entity, GraphSource, SourceTimeout

TRIED = 24
OFFERED = 5
TURNED = 1.2
REORDERED = 2.0
PARTIAL = 1.0
IGNORED = 3.0
"""For leaving one of the entities out."""

Guess = Callable[[str], tuple[Path, ...]]
"""What a phrase that no name explains may mean, by likeness of meaning."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query, what it asks in plain English, and its score: above 0.5 if the graph was seen to have such a path."""

    sparql: str
    reading: str
    score: float


def find_candidates(graph: GraphSource, text: str, entities: Sequence[Entity], guess: Guess) -> list[Candidate]:
    """The best few queries for the question, best first; [] when no word of it can be read as a relation."""
    lexicon = Lexicon(graph.vocabulary())
    anchors, unnamed = find_anchors(words_of(text), entities)
    length = len(words_of(text))
    anchors += [Anchor(entity, length, length) for entity in unnamed]
    question = parse(text, anchors, lexicon)
    found: dict[str, tuple[Draft, bool]] = {}
    for tier in (_as_read, _reordered, lambda q: _guessed(q, guess), _without_unknown):
        drafts = _cheapest(tier(question), lexicon)
        new = [draft for draft in drafts if draft.sparql not in found]
        proven = _proven(graph, new[:1]) or _proven(graph, new)
        found.update({draft.sparql: (draft, place in proven) for place, draft in enumerate(new)})
        if any(exists for _, exists in found.values()):
            break
    ranked = sorted(found.values(), key=lambda pair: (not pair[1], pair[0].cost))
    return [Candidate(d.sparql, d.reading, _score(d.cost, exists=exists)) for d, exists in ranked[:OFFERED]]


def _score(cost: float, *, exists: bool) -> float:
    return round((0.5 if exists else 0.0) + 0.5 / (1.0 + cost / 2), 3)


# The readings of a question, each with what it costs beyond its paths.


def _as_read(question: Question) -> Iterator[tuple[Question, float]]:
    yield question, 0.0
    if question.form in ("compare", "exceeds") and question.than and question.than.of:
        yield from _measured(question, question.than.of)
    asked = question.legs[0].asked if question.legs else ()
    for place in range(len(asked) if len(asked) > 1 else 0):
        left = asked[:place] + asked[place + 1 :]
        yield replace(question, legs=tuple(replace(leg, asked=left) for leg in question.legs)), PARTIAL
    if question.form == "select" and len(question.legs) > 1:
        rest = tuple(mention for leg in question.legs for mention in leg.asked)
        for leg in question.legs:
            yield replace(question, legs=(replace(leg, asked=leg.asked or rest),)), IGNORED


def _measured(question: Question, names: tuple[str, ...]) -> Iterator[tuple[Question, float]]:
    """The comparison by what its own word compares ("older" by date of birth) where the question names no measure."""
    word = Mention(-1, -1, tuple(Path((), name, float(rank)) for rank, name in enumerate(names)), "")
    legs = tuple(replace(leg, asked=(*leg.asked, word)) for leg in question.legs)
    last = (*question.legs[-1].chain, *question.legs[-1].asked)[-1:]
    named = last and any(path.hops[-1].value != "entity" for path in last[0].paths)
    yield replace(question, legs=legs), PARTIAL * 2 if named else -PARTIAL


def _reordered(question: Question) -> Iterator[tuple[Question, float]]:
    """The same relations in other orders, for phrasings that the grammar reads wrongly."""
    for leg in question.legs[:1]:
        mentions = (*leg.chain, *leg.asked)
        for order in permutations(mentions) if 1 < len(mentions) <= 3 else ():
            yield (
                replace(question, legs=tuple(replace(each, chain=order, asked=()) for each in question.legs)),
                REORDERED,
            )


def _guessed(question: Question, guess: Guess) -> Iterator[tuple[Question, float]]:
    """The question with its unknown words read by likeness of meaning."""
    if not question.legs:
        return
    if any(not mention.paths for mention in _mentions(question)):
        yield replace(question, legs=_each(question, lambda m: m if m.paths else replace(m, paths=guess(m.text)))), 0.0
    elif question.unexplained:
        legs, word = question.legs, Mention(-2, -2, guess(question.unexplained), question.unexplained)
        yield replace(question, legs=tuple(replace(leg, asked=(*leg.asked, word)) for leg in legs)), PARTIAL
        yield replace(question, legs=tuple(replace(leg, asked=(word,)) for leg in legs)), PARTIAL


def _without_unknown(question: Question) -> Iterator[tuple[Question, float]]:
    """What is left of the question without the words that nothing explains."""
    yield replace(question, legs=_each(question, lambda mention: mention if mention.paths else None)), IGNORED


def _each(question: Question, change: Callable[[Mention], Mention | None]) -> tuple[Leg, ...]:
    """The legs with every mention of a relation changed, or left out for None."""

    def changed(mentions: tuple[Mention, ...]) -> tuple[Mention, ...]:
        return tuple(new for mention in mentions if (new := change(mention)) is not None)

    return tuple(replace(leg, chain=changed(leg.chain), asked=changed(leg.asked)) for leg in question.legs)


# From readings to drafts.


def _cheapest(readings: Iterator[tuple[Question, float]], lexicon: Lexicon) -> list[Draft]:
    """The cheapest drafts of all readings, without repetition."""
    drafts: dict[str, Draft] = {}
    for question, extra in readings:
        for choice, cost in _choices(question, lexicon):
            draft = Composer(question, choice, lexicon).draft()
            if draft and (draft.sparql not in drafts or drafts[draft.sparql].cost > cost + extra):
                drafts[draft.sparql] = replace(draft, cost=max(0.0, cost + extra))
    return sorted(drafts.values(), key=lambda draft: draft.cost)[:TRIED]


def _mentions(question: Question) -> list[Mention]:
    found: list[Mention] = []
    for leg in question.legs:
        inside = leg.start.relation if isinstance(leg.start, Value) else ()
        found += [*inside, *leg.chain, *leg.asked]
    return list(dict.fromkeys(found))


def _choices(question: Question, lexicon: Lexicon) -> Iterator[tuple[dict[Mention, Path], float]]:
    """Choices of a path for every mention, cheapest first, at most TRIED."""
    mentions = _mentions(question)
    options = [_options(mention, lexicon) for mention in mentions]
    if not all(options):
        return
    seen = {(0,) * len(options)}
    queue = [(sum(each[0].cost for each in options), (0,) * len(options))]
    for _ in range(TRIED):
        if not queue:
            return
        cost, places = heapq.heappop(queue)
        yield {m: each[at] for m, each, at in zip(mentions, options, places, strict=True)}, cost
        for slot, at in enumerate(places):
            following = (*places[:slot], at + 1, *places[slot + 1 :])
            if at + 1 < len(options[slot]) and following not in seen:
                seen.add(following)
                heapq.heappush(queue, (cost - options[slot][at].cost + options[slot][at + 1].cost, following))


def _options(mention: Mention, lexicon: Lexicon) -> list[Path]:
    """The paths of a mention, also turned round where that can be meant ("the films that E directed")."""
    paths: list[Path] = []
    for path in mention.paths:
        # A comparison's own word names its relations; they are looked up only here, for the graph may lack some.
        paths += [path] if path.hops else [replace(p, cost=p.cost + path.cost) for p in lexicon.plain(path.phrase)]
    if mention.turns:
        paths += [_turned(path) for path in paths if _can_turn(path)]
    return sorted(paths, key=lambda path: path.cost)


def _can_turn(path: Path) -> bool:
    hop = path.hops[0]
    return len(path.hops) == 1 and hop.value == "entity" and len(hop.atoms) == 1 and not hop.atoms[0].backwards


def _turned(path: Path) -> Path:
    atom = replace(path.hops[0].atoms[0], backwards=True)
    return Path((Hop((atom,)),), path.phrase, path.cost + TURNED, turned=True)


def _proven(graph: GraphSource, drafts: Sequence[Draft]) -> set[int]:
    """The places of the drafts whose pattern matches something, by one query for all of them.

    A graph too large to say so in time leaves them all unproven, in the order of their cost.
    """
    tests = [
        f"{{ SELECT (({place}) AS ?place) WHERE {{ {draft.pattern} }} LIMIT 1 }}" for place, draft in enumerate(drafts)
    ]
    if not tests:
        return set()
    try:
        table = graph.query(f"SELECT ?place WHERE {{ {' UNION '.join(tests)} }}")
    except SourceTimeout:
        return set()
    return {int(row[0].value) for row in table.rows if row[0] is not None}
