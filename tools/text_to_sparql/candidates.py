"""Rank queries for a question and its entities: all readings of the words, those with paths in the graph first.

An unknown word is matched to the relations with the most similar names.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

from showhow.tools.text_to_sparql.lexicon import (
    GraphLexicon,
    GraphPath,
    PathAtom,
    PathHop,
    RelationMention,
    entity_term,
    load_graph_lexicon,
)
from showhow.tools.text_to_sparql.parse import parse_question
from showhow.tools.text_to_sparql.queries import (
    ParsedQuestion,
    PathChoice,
    QueryComposer,
    QueryDraft,
    QuestionBranch,
    ValueRestriction,
)
from showhow.tools.text_to_sparql.vocabulary import Anchor, find_anchors
from showhow.tools.tool import EncodeFunction
from showhow.worlds.lexicon.english import (
    GENDERED_NOUNS,
    GENERIC_NOUNS,
    load_lexicon,
    phrase_key,
    split_words,
    stem_word,
)
from showhow.worlds.source import Entity, GraphSource, Relation, SourceTimeout

MIN_SIMILARITY = 0.35
CERTAIN_SIMILARITY = 0.85
"""From this on a phrase names a relation; below, "assistant director" is as near to "director" as real names are, which
`python -m showhow.benchmarks query_writing` measures.
"""
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
        relation, cost = self._relations[place], DISSIMILARITY_COST * (1.0 - like)
        return GraphPath((PathHop((PathAtom(relation),)),), relation.label, cost, certain=like >= CERTAIN_SIMILARITY)


_EXCLUDED_KINDS = {"when": ("entity",), "where": ("date", "number"), "who": ("date", "number")}
"""The kinds of values that do not answer a question of this word."""
_LOCATIVES = frozenset(["in", "at", "from"])
_PLACES = frozenset(["place", "location", "country", "region", "state", "town", "city", "village"])
MAX_DRAFTS = 24
MAX_CANDIDATES = 5
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
    unexplained: tuple[str, ...] = ()
    """The words of the question that no part of the query accounts for; () for a complete reading."""


def find_candidates(
    graph: GraphSource, vocabulary: Sequence[Relation], text: str, entities: Sequence[Entity], guess: RelationMatcher
) -> list[QueryCandidate]:
    """The best few queries for the question, best first; [] when no word of it can be read as a relation."""
    lexicon = load_graph_lexicon(tuple(vocabulary))
    words = split_words(text)
    anchors, unnamed = find_anchors(words, entities)
    # Without words of its own an entity is no part of what is asked: every reading leaves it out, and says so.
    anchors += [Anchor(entity, len(words), len(words)) for entity in unnamed]
    question = parse_question(text, anchors, lexicon)
    usable: dict[str, tuple[QueryDraft, bool]] = {}
    for tier in (
        _literal_readings,
        lambda q: _guessed_readings(q, guess),
        _readings_without_unknown_words,
    ):
        drafts = _cheapest_drafts(tier(question), lexicon)
        new = [draft for draft in drafts if draft.sparql not in usable]
        proven = _find_matching_drafts(graph, new[:1]) or _find_matching_drafts(graph, new)
        usable.update({draft.sparql: (draft, place in proven) for place, draft in enumerate(new)})
        if any(exists and not draft.unexplained for draft, exists in usable.values()):
            break
    ranked = sorted(usable.values(), key=lambda pair: (bool(pair[0].unexplained), not pair[1], pair[0].cost))
    if ranked and not ranked[0][1] and not ranked[0][0].unexplained and not _is_possible(graph, ranked[0][0], anchors):
        ranked = [
            (replace(draft, unexplained=draft.unexplained or _node_names(question.named)), False) for draft, _ in ranked
        ]
    return [
        QueryCandidate(draft.sparql, draft.reading, _candidate_score(draft, exists=exists), draft.unexplained)
        for draft, exists in ranked[:MAX_CANDIDATES]
    ]


def _candidate_score(draft: QueryDraft, *, exists: bool) -> float:
    """Above 0.5 for a path that exists, half of that or less for an incomplete reading."""
    score = (0.5 if exists else 0.0) + 0.5 / (1.0 + draft.cost / 2)
    return round(score / (2 + len(draft.unexplained)) if draft.unexplained else score, 3)


# The readings of a question, each with what it costs beyond its paths.


def _literal_readings(question: ParsedQuestion) -> Iterator[tuple[ParsedQuestion, float]]:
    yield question, 0.0
    if question.form in ("compare", "exceeds") and question.comparison and question.comparison.measures:
        yield from _comparison_readings(question, question.comparison.measures)
    trailing = question.branches[0].trailing if question.branches else ()
    for place in range(len(trailing) if len(trailing) > 1 else 0):
        left = trailing[:place] + trailing[place + 1 :]
        branches = tuple(replace(leg, trailing=left) for leg in question.branches)
        yield replace(question, branches=branches), PARTIAL_READING_COST
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


def _guessed_readings(question: ParsedQuestion, guess: RelationMatcher) -> Iterator[tuple[ParsedQuestion, float]]:
    """The question with its unknown words read by likeness of meaning."""
    if not question.branches:
        return
    if any(not mention.paths for mention in _collect_mentions(question)):
        branches = _map_mentions(question, lambda m: m if m.paths else replace(m, paths=guess(m.text)))
        yield replace(question, branches=branches), 0.0
    elif unknown := _unknown_words(question):
        phrase = " ".join(unknown.values())
        word = RelationMention(-2, -2, guess(phrase), phrase, merged_places=frozenset(unknown))
        for kept in (True, False):
            branches = tuple(replace(leg, trailing=(*leg.trailing * kept, word)) for leg in question.branches)
            yield replace(question, branches=branches), PARTIAL_READING_COST


def _unknown_words(question: ParsedQuestion) -> dict[int, str]:
    """The content words that belong to no relation of the question."""
    places = frozenset().union(*(mention.places for mention in _collect_mentions(question)))
    return {place: word for place, word in question.content_words.items() if place not in places}


def _readings_without_unknown_words(question: ParsedQuestion) -> Iterator[tuple[ParsedQuestion, float]]:
    """What is left of the question without the words that nothing explains."""
    branches = _map_mentions(question, lambda mention: mention if mention.paths else None)
    yield replace(question, branches=branches), IGNORED_ENTITY_COST


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
            draft = QueryComposer(question, choice, lexicon).compose() if _can_be_followed(question, choice) else None
            if draft is None:
                continue
            unexplained = _find_unexplained(question, choice, lexicon)
            new = replace(draft, cost=max(0.0, cost + extra), unexplained=unexplained)
            if draft.sparql not in drafts or _draft_rank(new) < _draft_rank(drafts[draft.sparql]):
                drafts[draft.sparql] = new
    return sorted(drafts.values(), key=_draft_rank)[:MAX_DRAFTS]


def _can_be_followed(question: ParsedQuestion, choice: PathChoice) -> bool:
    """Whether no path goes on from a date or a number, nor from a place to what only people and works have."""
    ways = ([choice[mention] for mention in (*leg.chain, *leg.trailing)] for leg in question.branches)
    return all(
        path.hops[-1].value_type not in {"date", "number"}
        and (following.inverted or not (_leads_to_place(path) and _holder(following)))
        for way in ways
        for path, following in pairwise(way)
    )


def _draft_rank(draft: QueryDraft) -> tuple[bool, float]:
    return bool(draft.unexplained), draft.cost


def _find_unexplained(question: ParsedQuestion, choice: PathChoice, lexicon: GraphLexicon) -> tuple[str, ...]:
    """The words that no part of the reading accounts for, in order, then the entities that it leaves out."""
    certain = [(mention, path) for mention, path in choice.items() if path.certain]
    places = frozenset().union(*(mention.places for mention, _ in certain))
    labels = frozenset().union(*(path.label_stems for _, path in certain))
    if any(path.inverted for _, path in certain):
        places |= question.answer_nouns
    ends = [
        leg.chain[-1:] if leg.chooses_end and question.form != "compare" else (*leg.chain, *leg.trailing)[-1:]
        for leg in question.branches
    ]
    presumed = {place for end in ends for mention in end if choice[mention].presumes_gender for place in mention.places}
    genders = {lexicon.stated_gender(choice[mention]) for end in ends for mention in end}
    words = {
        place: word
        for place, word in question.content_words.items()
        if (place not in places or place in presumed)
        and (place in question.mentioned or stem_word(word) not in labels)
        and GENDERED_NOUNS.get(stem_word(word)) not in genders - {None}
    } | _find_misfits(question, choice)
    if kinds := _EXCLUDED_KINDS.get(question.question_word or "") if question.form == "select" else None:
        answers = [choice[mention] for end in ends for mention in end]
        is_where = question.question_word == "where"
        if any(path.hops[-1].value_type in kinds or (is_where and not _leads_to_place(path)) for path in answers):
            return tuple(dict.fromkeys((str(question.question_word), *(words[place] for place in sorted(words)))))
    starts = (leg.start for leg in question.branches)
    used = {node for start in starts for node in (start, isinstance(start, ValueRestriction) and start.anchor)}
    unused = (
        node for node in question.named if node not in used or (isinstance(node, Anchor) and node.start == node.end)
    )
    return (*(words[place] for place in sorted(words)), *_node_names(unused))


def _node_names(nodes: Iterable[Anchor | ValueRestriction]) -> tuple[str, ...]:
    return tuple(sorted(node.text if isinstance(node, ValueRestriction) else node.entity.label for node in nodes))


def _leads_to_place(path: GraphPath) -> bool:
    """Whether a name of the path's last relation says that its values are places: place of birth, lives in."""
    if path.inverted:
        return False
    lexicon = load_lexicon()
    for atom in path.hops[-1].atoms:
        key = phrase_key(atom.relation.label)
        for name in (key, *map(phrase_key, (*atom.relation.aliases, *lexicon.other_names(key)))):
            if name[-1:] and (name[-1] in _LOCATIVES or name in lexicon.answers_to_where or _PLACES & set(name)):
                return True
    return False


def _find_misfits(question: ParsedQuestion, choice: PathChoice) -> dict[int, str]:
    """The words, by place, for people or things that the paths cannot be about: which film was born, who was released.

    Only people have a father, and only works a director, in any graph; other relations fit all nouns.
    """
    misfits: dict[int, str] = {}
    for leg in question.branches:
        paths = [choice[mention] for mention in (*leg.chain, *leg.trailing)]
        if question.form in ("compare", "exceeds", "same"):
            asked = paths[len(leg.chain) :] if leg.chooses_end else paths
            holder = _holder(asked[0]) if asked else None
        else:
            holder = _holder(paths[-1]) if paths and paths[-1].inverted else None
            if (
                question.asks_for_person
                and question.form == "select"
                and paths
                and (_leads_to_place(paths[-1]) or paths[-1].hops[-1].value_type not in ("entity", "text"))
            ):
                misfits[-1] = "who"
        misfits |= {place: noun for place, noun in question.class_nouns.items() if not _may_be(noun, holder)}
        if question.asks_for_person and question.form == "compare" and holder == "work":
            misfits[-1] = "who"
    return misfits


def _holder(path: GraphPath) -> str | None:
    """What has the path's first relation: person, work, or anything for None."""
    return load_lexicon().holders.get(phrase_key(path.hops[0].atoms[0].relation.label))


def _may_be(noun: str, holder: str | None) -> bool:
    is_place = noun in load_lexicon().kinds["where"]
    if holder == "person":
        # Nouns for people by what they do are conditions, which the query would lack.
        return noun in GENERIC_NOUNS and noun != "thing"
    return holder is None or not (is_place or (noun in GENERIC_NOUNS and noun != "thing"))


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
    """The paths of a mention, cheapest first."""
    paths: list[GraphPath] = []
    for path in mention.paths:
        # A comparison's own word names its relations; they are looked up only here, for the graph may lack some.
        paths += (
            [path] if path.hops else [replace(p, cost=p.cost + path.cost) for p in lexicon.direct_paths(path.phrase)]
        )
    return sorted(paths, key=lambda path: path.cost)


def _is_possible(graph: GraphSource, draft: QueryDraft, anchors: Sequence[Anchor]) -> bool:
    """Whether others have what the draft asks for: only then does the graph lack it for those who are asked about."""
    pattern = draft.pattern
    for place, anchor in enumerate(anchors):
        pattern = pattern.replace(f"{entity_term(anchor.entity.id)} ", f"?other{place} ")
    return bool(_find_matching_drafts(graph, [replace(draft, pattern=pattern)], timeout={0}))


def _find_matching_drafts(
    graph: GraphSource, drafts: Sequence[QueryDraft], timeout: Set[int] = frozenset()
) -> Set[int]:
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
        return timeout
    return {row[0].read_number() for row in table.rows if row[0] is not None}
