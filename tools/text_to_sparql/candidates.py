"""Rank queries for a question and its entities: all readings of the words, those with paths in the graph first.

An unknown word is matched to the relations with the most similar names.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from tools.text_to_sparql.lexicon import GraphLexicon, GraphPath, PathAtom, PathHop
from tools.text_to_sparql.parse import ParsedQuestion, QuestionBranch, ValueRestriction, parse_question
from tools.text_to_sparql.queries import QueryComposer, QueryDraft
from tools.text_to_sparql.scan import Anchor, RelationMention, find_anchors
from tools.tool import EncodeFunction
from worlds.lexicon.english import split_words
from worlds.source import Entity, GraphSource, Relation, SourceTimeout

MIN_SIMILARITY = 0.35
MAX_RELATIONS = 4
DISSIMILARITY_COST = 4.0


class SemanticRelationMatcher:
    """Matches a phrase to relations by similarity; the encoder is loaded at the first phrase."""

    def __init__(self, relations: Sequence[Relation], encode: EncodeFunction) -> None:
        self._relations = list(dict.fromkeys(relations))
        self._encode = encode

    def __call__(self, phrase: str) -> tuple[GraphPath, ...]:
        """The nearest relations as paths, nearest first; () when none is near."""
        names = [(name, place) for place, r in enumerate(self._relations) for name in (r.label, *r.aliases)]
        if not names:
            return ()
        rows = self._encode([phrase, *(name for name, _ in names)])
        likeness: dict[int, float] = {}
        for (_, place), like in zip(names, rows[1:] @ rows[0], strict=True):
            likeness[place] = max(likeness.get(place, 0.0), float(like))
        nearest = sorted(likeness.items(), key=lambda pair: -pair[1])[:MAX_RELATIONS]
        return tuple(self._path(place, like) for place, like in nearest if like >= MIN_SIMILARITY)

    def _path(self, place: int, like: float) -> GraphPath:
        relation = self._relations[place]
        return GraphPath((PathHop((PathAtom(relation),)),), relation.label, DISSIMILARITY_COST * (1.0 - like))


MAX_DRAFTS = 24
MAX_CANDIDATES = 5
INVERSION_COST = 1.2
REORDERING_COST = 2.0
PARTIAL_READING_COST = 1.0
IGNORED_ENTITY_COST = 3.0
"""For leaving one of the entities out."""

RelationMatcher = Callable[[str], tuple[GraphPath, ...]]
"""What a phrase that no name explains may mean, by likeness of meaning."""


@dataclass(frozen=True, slots=True)
class QueryCandidate:
    """A query, what it asks in plain English, and its score: above 0.5 if the graph was seen to have such a path."""

    sparql: str
    reading: str
    score: float


def find_candidates(
    graph: GraphSource, vocabulary: Sequence[Relation], text: str, entities: Sequence[Entity], guess: RelationMatcher
) -> list[QueryCandidate]:
    """The best few queries for the question, best first; [] when no word of it can be read as a relation."""
    lexicon = GraphLexicon(vocabulary)
    anchors, unnamed = find_anchors(split_words(text), entities)
    length = len(split_words(text))
    anchors += [Anchor(entity, length, length) for entity in unnamed]
    question = parse_question(text, anchors, lexicon)
    usable: dict[str, tuple[QueryDraft, bool]] = {}
    for tier in (
        _literal_readings,
        _reordered_readings,
        lambda q: _guessed_readings(q, guess),
        _readings_without_unknown_words,
    ):
        drafts = _cheapest_drafts(tier(question), lexicon)
        new = [draft for draft in drafts if draft.sparql not in usable]
        proven = _find_matching_drafts(graph, new[:1]) or _find_matching_drafts(graph, new)
        usable.update({draft.sparql: (draft, place in proven) for place, draft in enumerate(new)})
        if any(exists for _, exists in usable.values()):
            break
    ranked = sorted(usable.values(), key=lambda pair: (not pair[1], pair[0].cost))
    return [
        QueryCandidate(d.sparql, d.reading, _candidate_score(d.cost, exists=exists))
        for d, exists in ranked[:MAX_CANDIDATES]
    ]


def _candidate_score(cost: float, *, exists: bool) -> float:
    return round((0.5 if exists else 0.0) + 0.5 / (1.0 + cost / 2), 3)


# The readings of a question, each with what it costs beyond its paths.


def _literal_readings(question: ParsedQuestion) -> Iterator[tuple[ParsedQuestion, float]]:
    yield question, 0.0
    if question.form in ("compare", "exceeds") and question.comparison and question.comparison.measures:
        yield from _comparison_readings(question, question.comparison.measures)
    trailing = question.branches[0].trailing if question.branches else ()
    for place in range(len(trailing) if len(trailing) > 1 else 0):
        left = trailing[:place] + trailing[place + 1 :]
        yield (
            replace(question, branches=tuple(replace(leg, trailing=left) for leg in question.branches)),
            PARTIAL_READING_COST,
        )
    if question.form == "select" and len(question.branches) > 1:
        rest = tuple(mention for leg in question.branches for mention in leg.trailing)
        for leg in question.branches:
            yield replace(question, branches=(replace(leg, trailing=leg.trailing or rest),)), IGNORED_ENTITY_COST


def _comparison_readings(question: ParsedQuestion, names: tuple[str, ...]) -> Iterator[tuple[ParsedQuestion, float]]:
    """The comparison by what its own word compares ("older" by date of birth) where the question names no measure."""
    word = RelationMention(-1, -1, tuple(GraphPath((), name, float(rank)) for rank, name in enumerate(names)), "")
    legs = tuple(replace(leg, trailing=(*leg.trailing, word)) for leg in question.branches)
    last = (*question.branches[-1].chain, *question.branches[-1].trailing)[-1:]
    named = last and any(path.hops[-1].value_type != "entity" for path in last[0].paths)
    yield replace(question, branches=legs), PARTIAL_READING_COST * 2 if named else -PARTIAL_READING_COST


def _reordered_readings(question: ParsedQuestion) -> Iterator[tuple[ParsedQuestion, float]]:
    """The same relations in other orders, for phrasings that the grammar reads wrongly."""
    for leg in question.branches[:1]:
        mentions = (*leg.chain, *leg.trailing)
        for order in permutations(mentions) if 1 < len(mentions) <= 3 else ():
            yield (
                replace(
                    question, branches=tuple(replace(branch, chain=order, trailing=()) for branch in question.branches)
                ),
                REORDERING_COST,
            )


def _guessed_readings(question: ParsedQuestion, guess: RelationMatcher) -> Iterator[tuple[ParsedQuestion, float]]:
    """The question with its unknown words read by likeness of meaning."""
    if not question.branches:
        return
    if any(not mention.paths for mention in _collect_mentions(question)):
        yield (
            replace(
                question, branches=_map_mentions(question, lambda m: m if m.paths else replace(m, paths=guess(m.text)))
            ),
            0.0,
        )
    elif question.unexplained_words:
        legs, word = (
            question.branches,
            RelationMention(-2, -2, guess(question.unexplained_words), question.unexplained_words),
        )
        yield (
            replace(question, branches=tuple(replace(leg, trailing=(*leg.trailing, word)) for leg in legs)),
            PARTIAL_READING_COST,
        )
        yield replace(question, branches=tuple(replace(leg, trailing=(word,)) for leg in legs)), PARTIAL_READING_COST


def _readings_without_unknown_words(question: ParsedQuestion) -> Iterator[tuple[ParsedQuestion, float]]:
    """What is left of the question without the words that nothing explains."""
    yield (
        replace(question, branches=_map_mentions(question, lambda mention: mention if mention.paths else None)),
        IGNORED_ENTITY_COST,
    )


def _map_mentions(
    question: ParsedQuestion, change: Callable[[RelationMention], RelationMention | None]
) -> tuple[QuestionBranch, ...]:
    """The legs with every mention of a relation changed, or left out for None."""

    def changed(mentions: tuple[RelationMention, ...]) -> tuple[RelationMention, ...]:
        return tuple(new for mention in mentions if (new := change(mention)) is not None)

    return tuple(replace(leg, chain=changed(leg.chain), trailing=changed(leg.trailing)) for leg in question.branches)


# From readings to drafts.


def _cheapest_drafts(readings: Iterator[tuple[ParsedQuestion, float]], lexicon: GraphLexicon) -> list[QueryDraft]:
    """The cheapest drafts of all readings, without repetition."""
    drafts: dict[str, QueryDraft] = {}
    for question, extra in readings:
        for choice, cost in _iterate_path_choices(question, lexicon):
            draft = QueryComposer(question, choice, lexicon).compose()
            if draft and (draft.sparql not in drafts or drafts[draft.sparql].cost > cost + extra):
                drafts[draft.sparql] = replace(draft, cost=max(0.0, cost + extra))
    return sorted(drafts.values(), key=lambda draft: draft.cost)[:MAX_DRAFTS]


def _collect_mentions(question: ParsedQuestion) -> list[RelationMention]:
    mentions: list[RelationMention] = []
    for leg in question.branches:
        inside = leg.start.relations if isinstance(leg.start, ValueRestriction) else ()
        mentions += [*inside, *leg.chain, *leg.trailing]
    return list(dict.fromkeys(mentions))


def _iterate_path_choices(
    question: ParsedQuestion, lexicon: GraphLexicon
) -> Iterator[tuple[dict[RelationMention, GraphPath], float]]:
    """Choices of a path for every mention, cheapest first, at most TRIED."""
    mentions = _collect_mentions(question)
    options = [_path_options(mention, lexicon) for mention in mentions]
    if not all(options):
        return
    seen = {(0,) * len(options)}
    queue = [(sum(paths[0].cost for paths in options), (0,) * len(options))]
    for _ in range(MAX_DRAFTS):
        if not queue:
            return
        cost, places = heapq.heappop(queue)
        yield {m: paths[at] for m, paths, at in zip(mentions, options, places, strict=True)}, cost
        for slot, at in enumerate(places):
            following = (*places[:slot], at + 1, *places[slot + 1 :])
            if at + 1 < len(options[slot]) and following not in seen:
                seen.add(following)
                heapq.heappush(queue, (cost - options[slot][at].cost + options[slot][at + 1].cost, following))


def _path_options(mention: RelationMention, lexicon: GraphLexicon) -> list[GraphPath]:
    """The paths of a mention, also turned round where that can be meant ("the films that E directed")."""
    paths: list[GraphPath] = []
    for path in mention.paths:
        # A comparison's own word names its relations; they are looked up only here, for the graph may lack some.
        paths += (
            [path] if path.hops else [replace(p, cost=p.cost + path.cost) for p in lexicon.direct_paths(path.phrase)]
        )
    if mention.invertible:
        paths += [_invert_path(path) for path in paths if _can_invert(path)]
    return sorted(paths, key=lambda path: path.cost)


def _can_invert(path: GraphPath) -> bool:
    hop = path.hops[0]
    return len(path.hops) == 1 and hop.value_type == "entity" and len(hop.atoms) == 1 and not hop.atoms[0].inverse


def _invert_path(path: GraphPath) -> GraphPath:
    atom = replace(path.hops[0].atoms[0], inverse=True)
    return GraphPath((PathHop((atom,)),), path.phrase, path.cost + INVERSION_COST, inverted=True)


def _find_matching_drafts(graph: GraphSource, drafts: Sequence[QueryDraft]) -> set[int]:
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
