"""Parse a question: the relations from each entity, and the operation on their values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from showhow.tools.text_to_sparql.lexicon import GraphLexicon, RelationMention
from showhow.tools.text_to_sparql.queries import ParsedQuestion, QuestionBranch, ValueRestriction, to_iso_date
from showhow.tools.text_to_sparql.scan import QuestionScan
from showhow.tools.text_to_sparql.vocabulary import ASKING, QUESTION_WORDS, Anchor
from showhow.worlds.lexicon import english
from showhow.worlds.lexicon.english import phrase_key
from showhow.worlds.lexicon.kinship import relates_people

MAX_OF_DISTANCE = 6
"""An "of" further before a name than this does not belong to it."""


@dataclass(frozen=True, slots=True)
class _BranchStart:
    """What a leg starts at, and the words it covers."""

    node: Anchor | ValueRestriction
    first_word: int
    end_word: int


def parse_question(text: str, anchors: Sequence[Anchor], lexicon: GraphLexicon) -> ParsedQuestion:
    """The question in its parts."""
    scan = QuestionScan(text, anchors, lexicon)
    values = [*_find_value_restrictions(scan), *_find_dated_verbs(scan), *_find_stated_value(scan)]
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
        verb, begins = _find_relative_verb(scan, start)
        joined = (*verb, *_possessive_mentions(scan, start.end_word), *_of_mentions(scan, start.node, begins, used))
        # From a date nothing goes on: "the director of E's birthday" is the director's.
        chain = tuple(sorted(joined, key=RelationMention.ends_in_literals))
        used.update(place for mention in chain for place in mention.places)
        legs.append(QuestionBranch(start.node, chain))
    # The child whose mother is E is no child of whoever has that mother.
    used.update(m.start for m in scan.mentions if scan.words_between(m.end, m.end + 1) == ["whose"])
    spans = [range(value.first_word, value.end_word) for value in values]
    used.update(place for span in spans for place in span)
    # "The composer Ada Reed" asks for no composer.
    apposed = scan.apposed_places if scan.form == "select" and len(scan.mentions) > 1 else set()
    rest = [m for m in scan.mentions if m.start not in used and not apposed.issuperset(range(m.start, m.end))]
    branches = _distribute_relations(scan, legs, scan.order_mentions(rest))
    return ParsedQuestion(
        scan.form,
        tuple(_select_gender(scan, leg) for leg in branches) if scan.form in ("select", "count") else branches,
        scan.comparison,
        scan.find_content_words(spans),
        frozenset([*scan.anchors, *(start.node for start in values if not isinstance(start.node, Anchor))]),
        scan.question_word,
        scan.find_answer_nouns(),
        scan.find_class_nouns(),
        frozenset().union(*(mention.places for mention in scan.mentions)),
        scan.asks_for_person(),
        scan.differs,
        scan.date_part,
    )


# What is joined to a name: its possessives ("E's R's S"), then what is "of" it ("the S of the R of E").


def _find_relative_verb(scan: QuestionScan, start: _BranchStart) -> tuple[tuple[RelationMention, ...], int]:
    """The verb of a clause whose subject is the name ("the person by whom E was directed", "the man E married"), if
    there is one, and where what the clause describes begins.
    """
    nothing = (), start.first_word
    if not isinstance(start.node, Anchor):
        return nothing
    pronoun, verb = start.first_word - 1, scan.skip_words(start.end_word, english.AUXILIARY_VERBS)
    mention = next((m for m in scan.mentions if m.start == verb), None)
    if mention is None or pronoun < 1:
        return nothing
    if scan.words[pronoun].stem not in english.GENERIC_NOUNS:
        if scan.words[pronoun].folded not in english.RELATIVE_PRONOUNS | {"whom"}:
            return nothing
        pronoun -= scan.words[pronoun - 1].folded in english.PREPOSITIONS
        if pronoun < 1 or scan.words[pronoun - 1].stem not in english.GENERIC_NOUNS:
            return nothing
    return (_direct(scan, _reread(scan, mention, "who"), start.node),), pronoun


def _possessive_mentions(scan: QuestionScan, ends: int) -> Iterator[RelationMention]:
    if english.POSSESSIVE_PRONOUNS.intersection(scan.words_between(ends - 1, ends)) and (
        mention := scan.mention_starting_at(ends)
    ):
        yield mention
        ends = mention.end
    while scan.words_between(ends, ends + 1) == [english.POSSESSIVE_SUFFIX]:
        mention = scan.mention_starting_at(ends + 1 + len(scan.comparing_places.intersection([ends + 1])))
        if mention is None:
            return
        yield mention
        ends = mention.end


def _of_mentions(
    scan: QuestionScan, node: Anchor | ValueRestriction, begins: int, used: set[int]
) -> Iterator[RelationMention]:
    while True:
        place = _find_of_before(scan, begins)
        mention = scan.mention_ending_at(place) if place is not None else _find_verb_before(scan, node, begins)
        if mention is None or mention.start in used:
            return
        is_plural = scan.words[mention.end - 1].stem != scan.words[mention.end - 1].folded
        is_one_of_many = is_plural or scan.words_between(mention.start - 1, mention.start) in (["a"], ["an"])
        if is_one_of_many and not _names_value(scan, mention):
            mention = mention.opened
        owners = _owning_mentions(scan, mention.start)
        yield from (*owners, mention)
        begins = owners[0].start if owners else mention.start


def _owning_mentions(scan: QuestionScan, begins: int) -> list[RelationMention]:
    """The relations whose possessives stand before what begins there ("the S's R of E"), in reading order."""
    owners: list[RelationMention] = []
    while scan.words_between(begins - 1, begins) == [english.POSSESSIVE_SUFFIX]:
        owner = scan.mention_ending_at(begins - 1)
        if owner is None:
            break
        owners.insert(0, owner)
        begins = owner.start
    return owners


def _find_of_before(scan: QuestionScan, begins: int) -> int | None:
    """Where the "of" stands that joins what begins there to a relation, over articles and a noun for its class."""
    related = {place for mention in scan.mentions for place in mention.places}
    for place in range(begins - 1, max(-1, begins - MAX_OF_DISTANCE), -1):
        word = scan.words[place].folded
        if word in ("of", "behind") and place not in related:
            return place
        if (
            scan.in_entity_name(place)
            or word == "of"
            or word in (english.POSSESSIVE_SUFFIX, ",", "and", "or")
            or word in english.AUXILIARY_VERBS | english.RELATIVE_PRONOUNS
        ):
            return None
    return None


def _find_verb_before(scan: QuestionScan, node: Anchor | ValueRestriction, begins: int) -> RelationMention | None:
    """The verb of "(the one) who directed E", which leads from E to whoever did."""
    for mention in scan.mentions:
        between = set(range(mention.end, begins)) - scan.apposed_places
        pronoun = bool(english.RELATIVE_PRONOUNS.intersection(scan.words_between(mention.start - 1, mention.start)))
        if (
            mention.end <= begins
            and all(
                scan.words[place].folded in english.DETERMINERS or place in scan.apposed_places for place in between
            )
            and mention.start > 1
            and (pronoun or scan.words[mention.start].folded.endswith("ing"))
        ):
            verb = _direct(scan, _reread(scan, mention, "who"), node)
            agent = next((m for m in scan.mentions if m.end == mention.start - pronoun), None)
            # The artist who performs, the director that directs: the noun says no more than the verb.
            return (agent and verb.merge(agent)) or verb
    return None


def _reread(scan: QuestionScan, mention: RelationMention, question_word: str) -> RelationMention:
    """The mention as it would be understood after another question word."""
    words = scan.words[mention.start : mention.end]
    forms = tuple(word.folded for word in words), tuple(word.stem for word in words)
    paths = scan.lexicon.find_paths(forms[0], question_word) or scan.lexicon.find_paths(forms[1], question_word)
    return replace(mention, paths=paths or scan.lexicon.find_derived_paths(forms[1][0], question_word))


# Those "whose A is V".


def _find_value_restrictions(scan: QuestionScan) -> Iterator[_BranchStart]:
    for place, word in enumerate(scan.words):
        relation = _whose_relations(scan, place) if word.folded == "whose" and scan.form in ("select", "count") else ()
        value = _parse_value_after(scan, relation, relation[-1].end + 1) if relation else None
        if value:
            is_noun = place > 0 and scan.words[place - 1].folded not in english.DETERMINERS | {"and", ","}
            noun = is_noun and all(mention.end != place for mention in scan.mentions)
            yield _BranchStart(value[0], place - noun, value[1])


def _find_dated_verbs(scan: QuestionScan) -> Iterator[_BranchStart]:
    """Those who were born, or did something, on a day: "who was born on 5 March 1931"."""
    for mention in scan.mentions if scan.form in ("select", "count") else ():
        dated = _reread(scan, mention, "when")
        paths = tuple(path for path in dated.paths if path.hops and path.hops[-1].value_type == "date")
        start = mention.end + (scan.words_between(mention.end, mention.end + 1) == ["on"])
        value = _parse_value_after(scan, (replace(dated, paths=paths),), start) if paths else None
        if value and value[0].anchor is None and to_iso_date(value[0].text) is not None:
            yield _BranchStart(value[0], mention.start, value[1])


def _find_stated_value(scan: QuestionScan) -> Iterator[_BranchStart]:
    """What is said, in words, of the one that a question for yes or no is about: is E a mason, is chess E's hobby."""
    if scan.form != "whether" or len(scan.anchors) != 1:
        return
    anchor, end = scan.anchors[0], len(scan.words) - (scan.words[-1].folded == "?")
    chain = (*_possessive_mentions(scan, anchor.end), *_of_mentions(scan, anchor, anchor.start, set()))
    begin, start = min([anchor.start, *(m.start for m in chain)]), max([anchor.end, *(m.end for m in chain)])
    ends = chain[-1:] if scan.words_between(start, start + 1) not in (["a"], ["an"]) else ()
    relation = next((m for m in scan.mentions if m.start == start), ends[0] if ends else None)
    if (
        (last := scan.mentions[-1:])
        and last[0].end == end
        and (place := scan.find_role_word(last[0].start) or 0) > start
    ):
        # Has E chess as a hobby, is E a mason by trade.
        relation, end = last[0], place
    elif relation and start == end:
        start, end = 1, begin
    elif relation:
        start = max(start, relation.end)
    small = english.DETERMINERS | english.PREPOSITIONS | english.LIGHT_VERBS
    start, end = min(scan.skip_words(start, small), end), max(scan.skip_words(end, small, -1), start)
    if relation is None and scan.words[0].folded in english.COPULAS:
        ranked = (replace(p, cost=float(n)) for n, paths in enumerate(scan.kind_paths()) for p in paths)
        relation = RelationMention(anchor.end, start, tuple(ranked), "is a")
    said = scan.words_between(start, end)
    known = english.FUNCTION_WORDS.union(*(scan.words_between(m.start, m.end) for m in scan.mentions))
    if relation and "any" not in said and not (known - english.GENDERED_NOUNS.keys()).issuperset(said):
        text = scan.text[scan.words[start].start : scan.words[end - 1].end]
        yield _BranchStart(ValueRestriction((relation,), None, text), start, end)


def _whose_relations(scan: QuestionScan, place: int) -> tuple[RelationMention, ...]:
    """The relations from "whose" up to its verb; none when no verb follows them."""
    mentions: list[RelationMention] = []
    place += 1
    while mention := next((m for m in scan.mentions if m.start == place), None):
        mentions.append(mention)
        place = mention.end + (scan.words_between(mention.end, mention.end + 1) == [english.POSSESSIVE_SUFFIX])
    verb = scan.words_between(place, place + 1)
    return tuple(mentions) if verb and verb[0] in english.AUXILIARY_VERBS else ()


def _parse_value_after(
    scan: QuestionScan, relation: tuple[RelationMention, ...], start: int
) -> tuple[ValueRestriction, int] | None:
    anchor = next((a for a in scan.anchors if a.start in (start, start + 1)), None)
    if anchor:
        return ValueRestriction(relation, anchor, anchor.entity.label), anchor.end
    end = next((place for place in range(start, len(scan.words)) if _ends_value(scan, place)), len(scan.words))
    if (
        end <= start
        or any(map(scan.in_entity_name, range(start, end)))
        or scan.words[start].folded in english.RESTRICTIONS
    ):
        return None
    return ValueRestriction(relation, None, scan.text[scan.words[start].start : scan.words[end - 1].end]), end


def _ends_value(scan: QuestionScan, place: int) -> bool:
    if scan.words[place].folded == english.POSSESSIVE_SUFFIX:
        # "the baker's" goes on as a value, "the baker's father" does not.
        return any(mention.start == place + 1 for mention in scan.mentions)
    return (
        scan.words[place].folded in english.AUXILIARY_VERBS | {";", "and"}
        or (scan.words[place].folded == "," and _opens_clause(scan, place + 1))
        or (scan.words[place].folded == "?" and place + 1 == len(scan.words))
    )


def _opens_clause(scan: QuestionScan, place: int) -> bool:
    """Whether a new part of the question begins after a comma, which a date and a name may have as well."""
    opening = (
        english.RELATIVE_PRONOUNS
        | english.AUXILIARY_VERBS
        | {"whose", "what", "where", "when", "how", "and", "or", "?"}
    )
    return scan.words_between(place, place + 1) == [] or scan.words[place].folded in opening


# The relations that are left.


def _distribute_relations(
    scan: QuestionScan, legs: list[QuestionBranch], rest: tuple[RelationMention, ...]
) -> tuple[QuestionBranch, ...]:
    """The legs with what they have in common: "the R of A and B" is the R of both, and the rest is asked of each."""
    if scan.form in ("compare", "exceeds", "same"):
        apart = any(_stands_alone(scan, leg) for leg in legs)
        first_chain = legs[0].chain if legs and not apart else ()
        repeated = legs[0].chain[-1:] if legs else ()
        rest = tuple(mention.doubt() if scan.says_other(mention) else mention for mention in rest)
        if scan.form == "compare" and (len(legs) == 1 or (scan.words_between(0, 1) == ["who"] and legs[-1].chain)):
            legs = [_doubt_ranking(scan, legs[0])] if len(legs) == 1 else legs
            return tuple(replace(leg, trailing=rest, chooses_end=bool(leg.chain)) for leg in legs)
        return tuple(
            replace(leg, chain=leg.chain + repeated, trailing=rest)
            if leg is not legs[0] and _says_that_of(scan, leg)
            else replace(leg, chain=leg.chain or first_chain, trailing=rest)
            for leg in legs
        )
    rest = tuple(mention.doubt() if scan.says_class(mention) else mention for mention in rest)
    if scan.form == "whether":
        return _link_by_verb(scan, legs, rest)
    if len(legs) < 2:
        return tuple(
            replace(
                leg, trailing=tuple(_direct(scan, m, leg.start) for m in rest), chooses_end=_asks_for_ends(scan, leg)
            )
            for leg in legs
        )
    shared: list[QuestionBranch] = []
    before, last = -1, legs[-1]
    for leg in legs:
        end = leg.start.end if isinstance(leg.start, Anchor) else before
        mine = (m for m in rest if m.start >= before and (m.start < end or leg is last))
        shared.append(replace(leg, trailing=tuple(_direct(scan, mention, leg.start) for mention in mine)))
        before = end
    related = [leg for leg in shared if leg.chain or leg.trailing]
    if len(related) == 1 and all(scan.joins_names(place) for place in range(1, len(scan.anchors))):
        # Who directed E and F directed both.
        return tuple(replace(related[0], start=leg.start) for leg in legs)
    return tuple(shared)


def _doubt_ranking(scan: QuestionScan, leg: QuestionBranch) -> QuestionBranch:
    """The leg, in doubt unless the comparison is said of what its chain leads to: the eldest of the sons of E."""
    start, end = min(scan.comparing_places), max(scan.comparing_places) + 1
    between = [scan.words_between(end, mention.start) for mention in leg.chain[-1:] if mention.start >= end]
    is_attribute = any(english.DETERMINERS.issuperset(words) for words in between)
    is_predicate = all(mention.end <= start for mention in leg.chain) and _asks_for_ends(scan, leg)
    return leg if is_attribute or is_predicate else replace(leg, chain=tuple(map(RelationMention.doubt, leg.chain)))


def _select_gender(scan: QuestionScan, leg: QuestionBranch) -> QuestionBranch:
    """The leg, to those of a gender if the question asks for them: which women, which of E's friends are women."""
    relations = {place for mention in scan.mentions for place in mention.places}
    asked = (place for place in range(len(scan.words)) if scan.selects_gender(place) and place not in relations)
    gender = next((english.GENDERED_NOUNS[scan.words[place].stem] for place in asked), None)
    is_trailing = leg.trailing and not leg.chooses_end
    *others, end = (leg.trailing if is_trailing else leg.chain) or (None,)
    if gender is None or end is None:
        return leg
    mentions = (*others, scan.lexicon.select_gender(end, gender))
    return replace(leg, trailing=mentions) if is_trailing else replace(leg, chain=mentions)


def _asks_for_ends(scan: QuestionScan, leg: QuestionBranch) -> bool:
    """Whether it asks which, or how many, of those that the chain leads to are meant: which of E's sons."""
    if not leg.chain or not isinstance(leg.start, Anchor):
        return False
    begins = min(leg.start.start, leg.chain[-1].start)
    *before, last = ["", *scan.words_between(begins - 3, begins)]
    if before[-1:] == ["of"] and last == "the":
        *before, last = before
    return [before[-1] if last == "of" else last] in (*ASKING, ["many"])


def _link_by_verb(
    scan: QuestionScan, legs: list[QuestionBranch], rest: tuple[RelationMention, ...]
) -> tuple[QuestionBranch, ...]:
    """The two legs with what links them, on the one that has the relation: in "did E direct F" F, which has a director,
    in "was E directed by F" and "did E die in F" E. What links them in another way explains none of its words.
    """
    for value in (leg.start for leg in legs if isinstance(leg.start, ValueRestriction)):
        return tuple(
            leg if leg.start is value or leg.chain[-1:] == value.relations else replace(leg, trailing=value.relations)
            for leg in legs
        )
    if not 0 < len(legs) <= 2 or not rest:
        return tuple(legs)
    before = [n for n, leg in enumerate(legs) if isinstance(leg.start, Anchor) and leg.start.end <= rest[0].start]
    subject = before[-1] if before else 0
    linked, holder = tuple(_direct(scan, mention, legs[subject].start) for mention in rest), subject
    if scan.joins_equals():
        linked = (replace(rest[0], paths=tuple(path for path in rest[0].paths if path.is_symmetric)),)
    elif len(legs) > 1 and len(linked) == 1 and any(path.inverted for path in linked[0].paths):
        linked, holder = rest, 1 - subject
    if len(linked) > 1 or not linked[0].paths:
        linked = tuple(map(RelationMention.doubt, rest))
    return tuple(replace(leg, trailing=linked) if place == holder else leg for place, leg in enumerate(legs))


def _direct(scan: QuestionScan, mention: RelationMention, node: Anchor | ValueRestriction) -> RelationMention:
    """The mention with its paths from the entity to what is asked for: backwards where the entity is their value.

    The words say so: who directed a film is its director, but who won a prize has it. Only where they leave it open,
    the paths of both directions are kept, and what the graph has decides.
    """
    previous, following = (scan.words_between(p, p + 1) for p in (mention.start - 1, mention.end))
    auxiliary = scan.find_auxiliary(mention.start)
    is_name = _names_value(scan, mention)
    is_noun = scan.words[mention.end - 1].folded not in english.PREPOSITIONS and (
        bool((english.DETERMINERS | {"whose"}).intersection(previous)) or following in (["to"], ["of"])
    )
    is_asked = any(scan.words_between(place - 1, place) in (*ASKING, ["many"]) for place in mention.places)
    if isinstance(node, ValueRestriction) or is_asked or (is_noun and not is_name):
        return mention.opened
    follows = node.end <= mention.start or node.start == node.end
    role_word = scan.find_role_word(mention.start)
    if any(anchor.end == role_word for anchor in scan.anchors) or scan.is_owned_by_asked(mention):
        backwards = [True] * len(mention.paths)
    elif is_noun or (is_name and auxiliary in english.POSSESSIONS):
        # Who has the hobby E; E: who is its director?
        is_topic = bool((QUESTION_WORDS - {"whose"}).intersection(scan.words_between(node.end, mention.start)))
        has = auxiliary in english.POSSESSIONS
        is_value = follows and not is_topic if not has and role_word is None else has and mention.end == node.start
        backwards = [is_value] * len(mention.paths)
    else:
        is_passive = "by" in scan.words_between(mention.end - 1, mention.end + 1)
        is_said = follows and auxiliary in english.COPULAS
        backwards = [
            not is_said and (follows != is_passive) == scan.lexicon.is_done_by_value(path, mention.text)
            for path in mention.paths
        ]
    turned = (
        path.inverses if back and path.hops[-1].value_type == "entity" else (path,)
        for path, back in zip(mention.paths, backwards, strict=True)
    )
    return replace(mention, paths=tuple(path for paths in turned for path in paths))


def _names_value(scan: QuestionScan, mention: RelationMention) -> bool:
    """Whether the noun is what the relation leads to, a father or a director, and not what has it: a citizen."""
    return scan.lexicon.is_label(phrase_key(mention.text)) or relates_people(mention.text)


def _says_that_of(scan: QuestionScan, leg: QuestionBranch) -> bool:
    """Whether "that of" before a name repeats the last relation of the first."""
    begins, is_owner = min([mention.start for mention in leg.chain], default=0), False
    if isinstance(leg.start, Anchor) and not leg.chain:
        begins, end = leg.start.start, leg.start.end
        is_owner = scan.words_between(end, end + 1) == [english.POSSESSIVE_SUFFIX] and scan.ends_at(end + 1)
    before = [word for word in scan.words_between(begins - 3, begins) if word not in {"the", "a", "an"}]
    return is_owner or before[-2:] in (["that", "of"], ["those", "of"])


def _stands_alone(scan: QuestionScan, leg: QuestionBranch) -> bool:
    """In "the same R as B" and "older than the R of B" what is said of one is not said of the other."""
    begins = leg.start.start if isinstance(leg.start, Anchor) else 0
    return bool({"as", "than"}.intersection(scan.words_between(begins - MAX_OF_DISTANCE, begins)))
