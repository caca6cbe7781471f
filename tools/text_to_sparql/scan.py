"""Classify the words of a question: its kind, its entities, and the words that mention relations."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from showhow.tools.text_to_sparql.lexicon import (
    GENDER_RELATION,
    GraphLexicon,
    GraphPath,
    PathHop,
    RelationMention,
    join_paths,
    merge_mentions,
)
from showhow.tools.text_to_sparql.vocabulary import ASKING, QUESTION_WORDS, Anchor, QuestionWords
from showhow.worlds.lexicon import english
from showhow.worlds.lexicon.english import load_lexicon, word_root

PLACE_READING_COST = 1.0
_SOURCES = ("of", "from")
_QUESTION_WORD_PHRASES = {
    "where": ("where", "which country", "what country"),
    "when": ("when",),
    "why": (
        "why",
        "how",
        "what cause",
        *(f"{word} what {verb}" for word in _SOURCES for verb in english.AUXILIARY_VERBS),
    ),
    "who": ("who", "whom"),
}


class QuestionScan(QuestionWords):
    """One question over one graph, its words sorted."""

    def __init__(self, text: str, anchors: Sequence[Anchor], lexicon: GraphLexicon) -> None:
        super().__init__(text, anchors)
        self.lexicon = lexicon
        self._comparison_places = self.comparing_places
        self.form = self._classify_form()
        if self.form not in ("compare", "exceeds"):
            # "first cousin" compares nothing.
            self.comparison, self._comparison_places = None, frozenset()
        self._negations = self._negated_choice() if self.comparison else set()
        if self.comparison and self._negations:
            self.comparison = replace(self.comparison, most=not self.comparison.most)
        self.differs = "different" in self.words_outside_names()
        self.question_word = "when" if self.comparison else self._find_question_word()
        self.mentions = list(self._find_mentions())
        self.mentions = [
            m for m in self.mentions if not (self._only_locates(m.start) and self._supports_relation(m.start))
        ]

    def mention_starting_at(self, start: int) -> RelationMention | None:
        """The mention that starts there: a relation, or an unknown word in the place of one."""
        return next((m for m in self.mentions if m.start == start), None) or self._unknown_mention(start)

    def mention_ending_at(self, end: int) -> RelationMention | None:
        """What ends there, likewise."""
        return next((m for m in self.mentions if m.end == end), None) or self._unknown_mention(end - 1)

    def find_content_words(self, values: Sequence[range]) -> dict[int, str]:
        """The words, by place, that a reading must account for by its relations: no entity, value, operator or plain
        word is among them, but every negation is.
        """
        explained = {place for span in values for place in span} | self.apposed_places | self._negations
        if self.comparison and not self._is_other_comparison():
            explained |= self._comparison_places
        kinds = set() if self.comparison else self.kind_places(self.question_word or "")
        explained |= kinds | self.kind_places("which") | self._described_noun_places()
        return {
            place: word.folded
            for place, word in enumerate(self.words)
            if place not in explained and not self.in_entity_name(place) and not self._is_operator(place)
        }

    def _described_noun_places(self) -> set[int]:
        """The nouns that only announce a clause, which says who is meant: the firm that published E, E is a film by."""
        nouns = (place for place in range(1, len(self.words)) if self._is_unknown_noun(place))
        return {
            noun
            for noun in nouns
            if self.words[noun - 1].folded in ("a", "an", "the")
            # What people do is a condition.
            and not self.words[noun].stem.endswith(english.PERSON_ENDINGS)
            and self._is_described(noun)
        }

    def _is_described(self, noun: int) -> bool:
        if english.RELATIVE_PRONOUNS.intersection(self.words_between(noun + 1, noun + 2)):
            return any(mention.start == noun + 2 for mention in self.mentions)
        is_predicate = self.words[noun - 2].folded in english.COPULAS and self.in_entity_name(noun - 3)
        is_last = self.ends_at(noun + 1) or noun + 1 in self._comparison_places or self._is_unknown_noun(noun + 1)
        return is_predicate and not is_last

    def find_answer_nouns(self) -> frozenset[int]:
        """The places of unknown nouns after which, what and how many; after "in which" they are values."""
        asking = (*ASKING, ["many"], ["any"])
        nouns = (
            noun
            for noun in range(1, len(self.words))
            if self.words_between(noun - 1, noun) in asking
            and not english.PREPOSITIONS.intersection(self.words_between(noun - 2, noun - 1))
        )
        return frozenset(noun for noun in nouns if self._is_unknown_noun(noun) and not self.selects_gender(noun))

    def has_class_position(self, place: int) -> bool:
        """Whether a noun there only says what the compared are: which film, the two films, is the older film."""
        if len(self.anchors) < 2:
            return False
        if place - 1 in self._comparison_places:
            before = self.words_between(min(self._comparison_places) - 2, min(self._comparison_places))
            return before[-1:] == ["the"] and before[0] in english.COPULAS
        if any(anchor.end == place for anchor in self.anchors[1:]) and self.words_between(place + 1, place + 2):
            return self.words[place + 1].folded in english.AUXILIARY_VERBS
        return self.words_between(place - 1, place) in (*ASKING, ["two"], ["both"], ["these"])

    def says_class(self, mention: RelationMention) -> bool:
        """Whether the plural noun of a relation only says what others are: how many of them are sons."""
        last = self.words[mention.end - 1]
        return last.stem != last.folded and self.words_between(mention.start - 1, mention.start) in (["are"], ["were"])

    def says_other(self, mention: RelationMention) -> bool:
        """Whether the noun of a relation says what the compared are, or that all values are the same: who is the older
        sibling, do they have the same parents.
        """
        last = self.words[mention.end - 1]
        before = [
            word for word in self.words_between(mention.start - 3, mention.start) if word not in english.DETERMINERS
        ]
        is_shared = self.form == "same" and not self.differs and bool(english.SAMENESS_WORDS.intersection(before[-1:]))
        return (is_shared and last.stem != last.folded) or (
            mention.start - 1 in self._comparison_places and self.has_class_position(mention.start)
        )

    def order_mentions(self, rest: Sequence[RelationMention]) -> tuple[RelationMention, ...]:
        """The order in which they are followed: as read, "R of its S" turned, what "which R" asks for last."""
        ordered: list[RelationMention] = []
        run = 0
        for place, mention in enumerate(rest):
            between = self.words_between(rest[place - 1].end, mention.start) if place else []
            run = run if "of" in between and set(between) <= english.DETERMINERS else place
            ordered.insert(run, mention)
        requested = [m for m in ordered if self.words_between(m.start - 1, m.start) in (*ASKING, ["many"])]
        merged = merge_mentions([m for m in ordered if m not in requested] + requested)
        merged = tuple(sorted(merged, key=lambda m: any(request.start in m.places for request in requested)))
        return tuple(m.doubt() if m in requested and self._is_subject(m, merged) else m for m in merged)

    def _is_subject(self, mention: RelationMention, others: Sequence[RelationMention]) -> bool:
        """Whether the noun after "which" is the subject of another relation's verb: which director was born in E."""
        end = mention.end + bool(english.COPULAS.intersection(self.words_between(mention.end, mention.end + 1)))
        return any(other.start == end and other is not mention for other in others)

    def is_owned_by_asked(self, mention: RelationMention) -> bool:
        """Whether the question asks whose relation leads to the entity, by a noun: which ship's captain is E."""
        owner = mention.start - 2
        return (
            self.words_between(owner + 1, mention.start) == [english.POSSESSIVE_SUFFIX]
            and self.words_between(owner - 1, owner) in ASKING
            and not any(owner in other.places for other in self.mentions)
            and bool(english.COPULAS.intersection(self.words_between(mention.end, mention.end + 1)))
        )

    def find_auxiliary(self, begins: int) -> str | None:
        """The auxiliary of the verb that begins there: the last one of its clause before it."""
        for place in range(begins - 1, -1, -1):
            word = self.words[place].folded
            is_opening = word == "that" and not any(place < mention.start < begins for mention in self.mentions)
            if not self.in_entity_name(place) and (is_opening or word in english.AUXILIARY_VERBS | {"be", "been"}):
                return {"be": "is", "been": "was"}.get(word, word)
        return None

    @property
    def date_part(self) -> str | None:
        """The part of a date that the question asks for: in which year."""
        stems = {self.words[place].stem for place in self.kind_places("when")} & english.PARTS_OF_DATES
        return next(iter(stems), None) if self.form == "select" else None

    def asks_for_person(self) -> bool:
        """Whether "who" is what the question asks for, and stands before no noun of that: who is the country."""
        place = self.find_asking_who()
        is_noun = place is not None and any(mention.start == place + 3 for mention in self.mentions)
        return place is not None and not (is_noun and self.words_between(place + 2, place + 3) == ["the"])

    def find_class_nouns(self) -> dict[int, str]:
        """The stems, by place, of the nouns that only say what the compared are."""
        places = {*filter(self.has_class_position, range(len(self.words))), *self.find_answer_nouns()}
        asked = (p for p in range(len(self.words)) if self.words_between(p - 1, p) in ASKING)
        nouns = {p for p in places if self._is_unknown_noun(p)} | {
            p for p in asked if self.words[p].stem in english.GENERIC_NOUNS or p in self.kind_places("where")
        }
        return {p: self.words[p].stem for p in sorted(nouns)}

    def _is_operator(self, place: int) -> bool:
        """Whether the word is plain, or an operator that the form of the question has."""
        word, stem = self.words[place].folded, self.words[place].stem
        if self.selects_gender(place) or self.repeats_auxiliary(place):
            return False
        if word == "whose" and self.form in ("select", "count"):
            return False
        if word == "?" and (QUESTION_WORDS | english.AUXILIARY_VERBS).intersection(
            self.words_between(place + 1, place + 2)
        ):
            return False
        if word == "can" and not english.SPEAKERS.intersection(self.words_between(place + 1, place + 2)):
            return False
        if word in english.CONJUNCTIONS and (
            self._joins_relations(place) or self._joins_names_wrongly(place) or self.starts_question(place + 1)
        ):
            return False
        several = len(self.anchors) > 1
        return (
            (
                word == "behind"
                and any(m.end == place and self.words[m.start - 1].folded == "the" for m in self.mentions)
            )
            or (
                word in english.PLAIN_WORDS
                and (word not in english.VALUE_QUESTION_WORDS or self.form in ("select", "count"))
            )
            or (
                word == "when"
                and not english.THIRD_PERSON_PRONOUNS.isdisjoint(self.words_between(place + 1, place + 2))
            )
            or stem in english.GENERIC_NOUNS
            or (word in english.REQUEST_WORDS and all(map(self.opens_request, range(place + 1))))
            or (word == "true" and self.words_between(place - 2, place + 2) == ["is", "it", "true", "that"])
            or ((word in english.LIGHT_VERBS or self._only_locates(place)) and self._supports_relation(place))
            or (word in english.COUNT_WORDS | {"how"} and self.form == "count")
            or (word in english.SAMENESS_WORDS and self.form == "same")
            or (word in english.COMPARISON_WORDS and self.comparison is not None and self._compares_at(place))
            or (word in english.CHOICE_WORDS and several)
            or (word in english.REASON_WORDS and self._asks_for_reason())
            or (several and self.has_class_position(place) and self._is_unknown_noun(place))
        )

    def _compares_at(self, place: int) -> bool:
        """Whether what the word there is followed by is compared as the form does: one of the two to the other where
        one is chosen, the second where the first is asked about, and no third to both.
        """
        if self.form == "exceeds":
            is_passive = self.words_between(place + 1, place + 2) == ["by"]
            between = len(self.anchors) == 2 and self.anchors[0].end <= place < self.anchors[1].start
            return between and not is_passive
        is_joining = (
            self.words[place].folded == "than"
            or self.words[place].folded in english.RESTRICTIONS | english.PREPOSITIONS
        )
        following = [word for word in self.words_between(place + 1, place + 4) if word not in english.DETERMINERS]
        return not is_joining or following[:1] in ([], [","], [":"], ["?"], ["other"])

    def _is_other_comparison(self) -> bool:
        """Whether its form does not ask what the comparison says: a third compared to both, the father of the older."""
        start, end = min(self._comparison_places), max(self._comparison_places)
        if self.form == "exceeds" and self.words_between(start - 1, start) == ["the"]:
            return True
        following = self.words_between(end + 1, end + 2)
        owned = self.words_between(start - 1, start) == ["the"] and following in (["of"], ["one"], [","], ["?"], [])
        return not self._compares_at(end) or (
            owned and bool(english.PREPOSITIONS & set(self.words_between(start - 2, start - 1)))
        )

    def _asks_for_reason(self) -> bool:
        """Whether a word of the question means something of its own after "why" or "how" (die: the cause of death)."""
        if self.question_word != "why":
            return False
        forms = ((*self.words_between(m.start, m.end),) for m in self.mentions)
        return any(self.lexicon.find_paths(f, "why") != self.lexicon.find_paths(f, None) for f in forms)

    def _supports_relation(self, place: int) -> bool:
        """Whether a light verb has the noun of a relation as its object (E took as a spouse, which award did E get), or
        as its subject where a value is asked of it (when did death come).
        """
        after = self.skip_words(place + 1, (english.DETERMINERS | english.SAMENESS_WORDS | {"as"}) - {"of"})
        before = self.skip_words(place, english.AUXILIARY_VERBS, -1)
        if any(after == mention.start for mention in self.mentions):
            return before > 0 and self.in_entity_name(before - 1)
        if self.words[place].folded in english.LIGHT_VERBS - english.INTRANSITIVE_LIGHT_VERBS:
            requested = any(self.words_between(m.start - 1, m.start) in (*ASKING, ["many"]) for m in self.mentions)
            return requested and self.ends_at(place + 1)
        owner = any(anchor.end == before for anchor in self.anchors) and any(m.end < before for m in self.mentions)
        asks_value = self.question_word in english.VALUE_QUESTION_WORDS
        return asks_value and (owner or any(before == mention.end for mention in self.mentions))

    def _only_locates(self, place: int) -> bool:
        """Whether the word there asks for no more than a location: where the grave lies is where it is."""
        entry = load_lexicon().words.get((self.words[place].folded,))
        return entry is not None and entry.paths_for("where")[0].relations == ("location",)

    def _is_unknown_noun(self, place: int) -> bool:
        return self._unknown_mention(place) is not None and all(m.start != place for m in self.mentions)

    def _joins_relations(self, place: int) -> bool:
        """Whether "and" or "or" stands between two relations, which no query of this grammar combines."""
        last = place - (self.words_between(place - 1, place) == [","])
        before = any(mention.end == last for mention in self.mentions)
        after = self.skip_words(place + 1, english.DETERMINERS | english.SAMENESS_WORDS)
        return before and any(mention.start == after for mention in self.mentions)

    def _joins_names_wrongly(self, place: int) -> bool:
        """Whether it joins two names as no query of this form does: who directed E or F, are E and F directors."""
        before = any(anchor.end == place for anchor in self.anchors)
        after = any(anchor.start == place + 1 for anchor in self.anchors)
        wrong = {"select": "or", "count": "or", "whether": "and"}.get(self.form)
        return before and after and self.words[place].folded == wrong and not self.joins_equals()

    def joins_equals(self) -> bool:
        """Whether two are asked about that may have a relation to each other: are E and F friends."""
        is_pair = len(self.anchors) == 2 and self.joins_names(1) and len(self.mentions) == 1
        last = self.mentions[-1] if is_pair and self.mentions[-1].start >= self.anchors[1].end else None
        return last is not None and any(path.is_symmetric for path in last.paths)

    def _unknown_mention(self, place: int) -> RelationMention | None:
        if (
            0 <= place < len(self.words)
            and not self.in_entity_name(place)
            and place not in self._comparison_places
            and self.words[place].folded not in english.FUNCTION_WORDS
            and place not in self.kind_places(self.question_word or "")
        ):
            return RelationMention(place, place + 1, (), self.words[place].folded)
        return None

    def _classify_form(self) -> str:
        free = self.words_outside_names()
        pairs = set(pairwise(free))
        if pairs & {("how", "many"), ("number", "of")}:
            return "count"
        asks_whether = self.asks_whether(free)
        if len(self.anchors) < 2:
            asks_value = (QUESTION_WORDS - {"whether"} | {"or"}).intersection(free)
            return "compare" if self.is_superlative() else "whether" if asks_whether and not asks_value else "select"
        if english.SAMENESS_WORDS.intersection(free) and asks_whether:
            return "same"
        if self.comparison:
            return "exceeds" if asks_whether and "or" not in free else "compare"
        return "whether" if asks_whether else "select"

    def _negated_choice(self) -> set[int]:
        """The place of the "not" in a choice of one of two, which then is the other: which was not released first."""
        places = (place for place, word in enumerate(self.words) if word.folded == "not")
        negations = {place for place in places if not self.in_entity_name(place)}
        is_choice = self.form == "compare" and len(self.anchors) == 2 and len(negations) == 1
        return negations if is_choice and max(negations) < min(self._comparison_places) else set()

    def _find_question_word(self) -> str | None:
        text = f" {' '.join(self.words_outside_names())} "
        return next(
            (
                question_word
                for question_word, signs in _QUESTION_WORD_PHRASES.items()
                if self.kind_places(question_word) or any(f" {sign} " in text for sign in signs)
            ),
            None,
        )

    def _find_mentions(self) -> Iterator[RelationMention]:
        place = 0
        if self.form == "whether" and self.words[0].folded in english.COPULAS and len(self.anchors) == 2:
            one, other = self.anchors
            if self.words_between(one.end, other.start) in (["a"], ["an"]) and self.ends_at(other.end):
                works, kinds, _ = self.kind_paths()
                yield RelationMention(one.end, other.start, join_paths(works, kinds) or works or kinds, "is a")
        while place < len(self.words):
            mention = self._find_mention_at(place)
            gender = english.GENDERED_NOUNS.get(self.words[place].folded) if mention is None else None
            if gender and not self.selects_gender(place) and (mention := self._find_mention_at(place + 1)):
                mention = replace(self.lexicon.select_gender(mention, gender), start=place)
            while mention and (either := self._join_alternative(mention)):
                mention = either
            if mention:
                yield mention
            place = mention.end if mention else place + 1

    def kind_paths(self) -> tuple[tuple[GraphPath, ...], ...]:
        """The relations that say what somebody or something is: by what they do, by kind, by gender."""
        return tuple(map(self.lexicon.direct_paths, ("occupation", "instance of", GENDER_RELATION)))

    def _join_alternative(self, mention: RelationMention) -> RelationMention | None:
        """The mention with the relation that "or" joins to it: husband or wife."""
        if self.words_between(mention.end, mention.end + 1) != ["or"] or self.form in ("same", "compare", "exceeds"):
            return None
        other = self._find_mention_at(self.skip_words(mention.end + 1, english.DETERMINERS))
        paths = join_paths(mention.paths, other.paths) if other else ()
        return replace(mention, end=other.end, paths=paths) if other and paths else None

    def _find_mention_at(self, start: int) -> RelationMention | None:
        """The longest phrase from there that is a relation of the graph, else one that English knows for a relation."""
        missing, derived = None, None
        for end in range(min(len(self.words), start + self.lexicon.max_phrase_length), start, -1):
            whole = tuple(self.words_between(start, end))
            occupied = any(
                self.in_entity_name(place) or place in self._comparison_places for place in range(start, end)
            )
            if occupied or self._is_plain_here(whole, start):
                continue
            for form in dict.fromkeys((whole, tuple(word.stem for word in self.words[start:end]))):
                if paths := self._find_paths(form):
                    return RelationMention(start, end, paths, " ".join(whole))
                if end - start == 1 and (paths := self.lexicon.find_derived_paths(form[0], self.question_word)):
                    derived = derived or RelationMention(start, end, paths, " ".join(whole))
                if missing is None and form in load_lexicon().words:
                    named = load_lexicon().words[form].paths_for(self.question_word)[0]
                    relation = named.segments[0].relation if len(named.segments) == 1 else None
                    missing = RelationMention(start, end, (), relation or " ".join(whole))
        return missing or derived

    def _find_paths(self, form: tuple[str, ...]) -> tuple[GraphPath, ...]:
        """What the words may mean; also what they would mean after another question word, if the question names it:
        "the cause of E's death", "the place where E was born". A verb alone may ask for a place: "was E born in F".
        """
        paths = self.lexicon.find_paths(form, self.question_word)
        hops = {path.hops for path in paths}
        others: dict[tuple[PathHop, ...], GraphPath] = {}
        for question_word in _QUESTION_WORD_PHRASES:
            may_be_place = question_word == "where" and self.question_word in (None, "who")
            for path in self.lexicon.find_paths(form, question_word):
                if path.hops not in hops and (may_be_place or self._says_more_of(path, form)):
                    others.setdefault(path.hops, replace(path, cost=path.cost + PLACE_READING_COST))
        return (*paths, *others.values())

    def _says_more_of(self, path: GraphPath, form: tuple[str, ...]) -> bool:
        """Whether the question has a content word of the path's relation beside those that led to it."""
        words = {word_root(word.folded) for place, word in enumerate(self.words) if not self.in_entity_name(place)}
        return bool(words & set(map(word_root, path.label_stems)) - set(map(word_root, form)))

    def _is_plain_here(self, form: tuple[str, ...], start: int) -> bool:
        """Whether a word that may speak of a relation does not: "do" before another verb, "state" as a request, "from"
        in "from what".
        """
        if (
            self.question_word == "when"
            and form[1:]
            and form[-1] in english.PREPOSITIONS
            and self.ends_at(start + len(form))
        ):
            # "What year was E born in" asks in which year.
            return True
        match form:
            case ("do",):
                return any(word.folded.isalpha() for word in self.words[start + 1 :])
            case ("from",):
                is_reason = self.question_word == "why" and self.words_between(start + 1, start + 2) == ["what"]
                return is_reason or self.words_between(start - 1, start) == ["different"]
            case (word,):
                is_kind = start in self.kind_places(self.question_word or "") and not self.lexicon.is_label(form)
                return is_kind or (word in english.REQUEST_WORDS and all(map(self.opens_request, range(start + 1))))
        return False
