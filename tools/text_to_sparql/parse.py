"""Parse a question: the relations from each entity, and the operation on their values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tools.text_to_sparql.lexicon import GraphLexicon
from tools.text_to_sparql.scan import (
    AUXILIARY_VERBS,
    DETERMINERS,
    RELATIVE_PRONOUNS,
    Anchor,
    QuestionScan,
    RelationMention,
)
from worlds.lexicon.english import POSSESSIVE_SUFFIX, Comparison

MAX_OF_DISTANCE = 6
"""An "of" further before a name than this does not belong to it."""


@dataclass(frozen=True, slots=True)
class ValueRestriction:
    """Those whose relation leads to a value: an entity, or the words of a literal."""

    relations: tuple[RelationMention, ...]
    anchor: Anchor | None
    text: str


@dataclass(frozen=True, slots=True)
class QuestionBranch:
    """One start and the relations that the question joins to it, in the order they are followed."""

    start: Anchor | ValueRestriction
    chain: tuple[RelationMention, ...]
    trailing: tuple[RelationMention, ...] = ()
    """The relations that follow the chain and that the question says apart from it ("where was ... born")."""


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question's form (select, count, compare, exceeds, same, whether) and its legs."""

    form: str
    branches: tuple[QuestionBranch, ...]
    comparison: Comparison | None = None
    unexplained_words: str = ""
    """The words with a content that no part of the reading accounts for."""


@dataclass(frozen=True, slots=True)
class _BranchStart:
    """What a leg starts at, and the words it covers."""

    node: Anchor | ValueRestriction
    first_word: int
    end_word: int


def parse_question(text: str, anchors: Sequence[Anchor], lexicon: GraphLexicon) -> ParsedQuestion:
    """The question in its parts."""
    scan = QuestionScan(text, anchors, lexicon)
    values = list(_find_value_restrictions(scan))
    inside = [start.node.anchor for start in values if isinstance(start.node, ValueRestriction)]
    starts = [
        *values,
        *(_BranchStart(anchor, anchor.start, anchor.end) for anchor in scan.anchors if anchor not in inside),
    ]
    starts.sort(key=lambda start: start.first_word)
    used = {
        mention.start
        for start in values
        if isinstance(start.node, ValueRestriction)
        for mention in start.node.relations
    }
    legs = []
    for start in starts:
        chain = (*_possessive_mentions(scan, start.end_word), *_of_mentions(scan, start.first_word, used))
        used.update(mention.start for mention in chain)
        legs.append(QuestionBranch(start.node, chain))
    rest = [m for m in scan.mentions if m.start not in used and not _is_class_noun(scan, m)]
    parsed_mentions = [*scan.mentions, *(mention for leg in legs for mention in leg.chain)]
    return ParsedQuestion(
        scan.form,
        _distribute_relations(scan, legs, _order_mentions(scan, rest)),
        scan.comparison,
        scan.find_unexplained_words(parsed_mentions, [range(v.first_word, v.end_word) for v in values]),
    )


# What is joined to a name: its possessives ("E's R's S"), then what is "of" it ("the S of the R of E").


def _possessive_mentions(scan: QuestionScan, ends: int) -> Iterator[RelationMention]:
    while scan.words_between(ends, ends + 1) == [POSSESSIVE_SUFFIX]:
        mention = scan.mention_starting_at(ends + 1)
        if mention is None:
            return
        yield mention
        ends = mention.end


def _of_mentions(scan: QuestionScan, begins: int, used: set[int]) -> Iterator[RelationMention]:
    while True:
        place = _find_of_before(scan, begins)
        mention = scan.mention_ending_at(place) if place is not None else _find_verb_before(scan, begins)
        if mention is None or mention.start in used:
            return
        yield mention
        begins = mention.start


def _find_of_before(scan: QuestionScan, begins: int) -> int | None:
    """Where the "of" stands that joins what begins there to a relation, over articles and a noun for its class."""
    for place in range(begins - 1, max(-1, begins - MAX_OF_DISTANCE), -1):
        word = scan.words[place].folded
        if word == "of":
            return place
        if (
            scan.in_entity_name(place)
            or word in (POSSESSIVE_SUFFIX, ",", "and", "or")
            or word in AUXILIARY_VERBS | RELATIVE_PRONOUNS
        ):
            return None
    return None


def _find_verb_before(scan: QuestionScan, begins: int) -> RelationMention | None:
    """The verb of "(the one) who directed E", which leads from E to whoever did."""
    for mention in scan.mentions:
        joined = mention.end <= begins and set(scan.words_between(mention.end, begins)) <= DETERMINERS | {
            "film",
            "song",
            "book",
        }
        if (
            joined
            and mention.start > 1
            and scan.words_between(mention.start - 1, mention.start)[0] in RELATIVE_PRONOUNS
        ):
            return scan.reread_mention(mention, "who")
    return None


def _is_class_noun(scan: QuestionScan, mention: RelationMention) -> bool:
    """A noun that only says what an entity is ("the composer Ada Reed"), as no "of" stands between them."""
    beside = any(anchor.start == mention.end for anchor in scan.anchors)
    return beside and scan.form == "select" and len(scan.mentions) > 1


# Those "whose A is V".


def _find_value_restrictions(scan: QuestionScan) -> Iterator[_BranchStart]:
    for place, word in enumerate(scan.words):
        relation = _whose_relations(scan, place) if word.folded == "whose" and scan.form in ("select", "count") else ()
        value = _parse_value_after(scan, relation, relation[-1].end + 1) if relation else None
        if value:
            noun = place > 0 and scan.words[place - 1].folded not in DETERMINERS | {"and", ","}
            yield _BranchStart(value[0], place - noun, value[1])


def _whose_relations(scan: QuestionScan, place: int) -> tuple[RelationMention, ...]:
    """The relations from "whose" up to its verb; none when no verb follows them."""
    mentions: list[RelationMention] = []
    place += 1
    while mention := next((m for m in scan.mentions if m.start == place), None):
        mentions.append(mention)
        place = mention.end + (scan.words_between(mention.end, mention.end + 1) == [POSSESSIVE_SUFFIX])
    verb = scan.words_between(place, place + 1)
    return tuple(mentions) if verb and verb[0] in AUXILIARY_VERBS else ()


def _parse_value_after(
    scan: QuestionScan, relation: tuple[RelationMention, ...], start: int
) -> tuple[ValueRestriction, int] | None:
    anchor = next((a for a in scan.anchors if a.start in (start, start + 1)), None)
    if anchor:
        return ValueRestriction(relation, anchor, anchor.entity.label), anchor.end
    end = next((place for place in range(start, len(scan.words)) if _ends_value(scan, place)), len(scan.words))
    if end <= start:
        return None
    return ValueRestriction(relation, None, scan.text[scan.words[start].start : scan.words[end - 1].end]), end


def _ends_value(scan: QuestionScan, place: int) -> bool:
    if scan.words[place].folded == POSSESSIVE_SUFFIX:
        # "the baker's" goes on as a value, "the baker's father" does not.
        return any(mention.start == place + 1 for mention in scan.mentions)
    return scan.words[place].folded in AUXILIARY_VERBS | {"?", ",", ";", "and"}


# The relations that are left.


def _order_mentions(scan: QuestionScan, rest: list[RelationMention]) -> tuple[RelationMention, ...]:
    """The order in which they are followed: as read, "R of its S" turned, what "which R" asks for last."""
    ordered: list[RelationMention] = []
    for mention in rest:
        between = scan.words_between(ordered[-1].end, mention.start) if ordered else []
        if "of" in between and set(between) <= DETERMINERS:
            ordered.insert(len(ordered) - 1, mention)
        else:
            ordered.append(mention)
    requested = [m for m in ordered if scan.words_between(m.start - 1, m.start) in (["which"], ["what"], ["many"])]
    return _merge_mentions([m for m in ordered if m not in requested] + requested)


def _merge_mentions(mentions: list[RelationMention]) -> tuple[RelationMention, ...]:
    """Two words for one relation ("which award ... received") become one mention of what both may mean."""
    merged: list[RelationMention] = []
    for mention in mentions:
        costs = {path.hops: path.cost for path in mention.paths}
        for place, other in enumerate(merged):
            both = [replace(p, cost=p.cost + costs[p.hops]) for p in other.paths if p.hops in costs]
            if both:
                least = min(path.cost for path in both)
                both = sorted((replace(p, cost=p.cost - least) for p in both), key=lambda path: path.cost)
                merged[place] = replace(other, paths=tuple(both))
                break
        else:
            merged.append(mention)
    return tuple(merged)


def _distribute_relations(
    scan: QuestionScan, legs: list[QuestionBranch], rest: tuple[RelationMention, ...]
) -> tuple[QuestionBranch, ...]:
    """The legs with what they have in common: "the R of A and B" is the R of both, and the rest is asked of each."""
    if scan.form in ("compare", "exceeds", "same"):
        apart = any(_stands_alone(scan, leg) for leg in legs)
        first_chain = () if apart else next((leg.chain for leg in legs if leg.chain), ())
        return tuple(replace(leg, chain=leg.chain or first_chain, trailing=rest) for leg in legs)
    rest = tuple(replace(mention, invertible=_is_invertible(scan, mention)) for mention in rest)
    if len(legs) < 2 or scan.form == "whether":
        return tuple(replace(leg, trailing=rest) if place == 0 else leg for place, leg in enumerate(legs))
    shared, before, last = [], -1, legs[-1]
    for leg in legs:
        end = leg.start.end if isinstance(leg.start, Anchor) else before
        mine = [m for m in rest if m.start >= before and (m.start < end or leg is last)]
        shared.append(replace(leg, trailing=tuple(mine)))
        before = end
    return tuple(shared)


def _stands_alone(scan: QuestionScan, leg: QuestionBranch) -> bool:
    """In "the same R as B" and "older than the R of B" what is said of one is not said of the other."""
    begins = leg.start.start if isinstance(leg.start, Anchor) else 0
    return bool({"as", "than"}.intersection(scan.words_between(begins - MAX_OF_DISTANCE, begins)))


def _is_invertible(scan: QuestionScan, mention: RelationMention) -> bool:
    """Whether a relation may be meant backwards: not where an entity "has" it, unless it has a value beside it."""
    if not {"have", "has", "had"}.intersection(word.folded for word in scan.words):
        return True
    beside = any(anchor.start == mention.end for anchor in scan.anchors)
    return beside or scan.words_between(mention.start - 1, mention.start) == ["as"]
