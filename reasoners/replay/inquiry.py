"""What the ways of looking things up in one run share: what is known of the world so far, and what stays unclear.

Whom a name means, and under which title somebody is known among those of the same name.
Sentences that no demonstration shows, read by their words as far as these leave no doubt.
What sentences that were read say in answer to a question, as far as demonstrations show how it is said.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from reasoners.replay import kin
from reasoners.replay.english import FUNCTION_WORDS, LIGHT, NAME, content, days_in, names_in, plain, singular
from reasoners.replay.entities import FoundEntity, bare_name, same_value
from reasoners.replay.lessons import ReplayKnowledge
from reasoners.replay.sentences import DAY, THING, WORD, extract_values, relation_in
from reasoners.replay.walk import ReplayBroken, ReplayGenerator, ReplaySession, ToolCallFailed
from reasoners.replay.wordings import relation_of


class EntityResolver:
    """One run's way from names to things and back."""

    def __init__(self, walk: ReplaySession, lessons: ReplayKnowledge) -> None:
        self._walk, self._lessons = walk, lessons
        self._tools = lessons.tools & walk.tools

    def resolve(self, name: str) -> ReplayGenerator:
        """The thing of that name; Broken where there is none or several."""
        # Titles tell namesakes apart, labels do not.
        if "getWikiDataID" in self._tools and not ("(" in name and "wikisearch" in self._tools):
            things = yield from self._search_labels(name)
        else:
            things = yield from self._search_titles(name)
        same = [thing for thing in things if plain(bare_name(thing.text)) == plain(bare_name(name))]
        exact = [thing for thing in same if plain(thing.text) == plain(name)] if "(" in name else same
        if len(exact) != 1:
            raise ReplayBroken(f"{len(exact) or 'nothing'} of what is found is called {name}, and one is wanted")
        return exact[0]

    def find_title(self, thing: FoundEntity) -> ReplayGenerator:
        """The title of the article about a thing, where it is more than its name."""
        if not thing.id or "(" in thing.text or "wikisearch" not in self._tools:
            return thing.text
        things = yield from self._search_titles(thing.text)
        own = [entity.text for entity in things if entity.id == thing.id and bare_name(entity.text) == thing.text]
        return own[0] if own else thing.text

    def _search_labels(self, name: str) -> ReplayGenerator:
        thought = self._lessons.thought("getWikiDataID", "", f"What is the id of {name}?", name)
        try:
            results = yield from self._walk.call_tool(thought, "getWikiDataID", title=name)
        except ToolCallFailed as failed:
            raise ReplayBroken(f"{name!r} is not found: {failed}") from failed
        return [FoundEntity(entity["label"], entity["id"]) for entity in results["entities"]]

    def _search_titles(self, name: str) -> ReplayGenerator:
        thought = self._lessons.thought("wikisearch", "", f"Which article is about {name}?", name)
        results = yield from self._walk.call_tool(thought, "wikisearch", query=name)
        return [FoundEntity(hit["title"], hit["entity"]) for hit in results["hits"]]


_TITLED = r"(?:(?P<title>Mr|Ms|Mrs) )?"
_BEGINNINGS = ("His", "Her", "He", "She", "The", "This", "By", "In", "Their", "They")
_IGNORED_WORDS = FUNCTION_WORDS | {"as"}
_SUBJECTS = ("<s>", "he", "she", "they")
_IS = "(?:is|was|are|were)"
_BECAME = re.compile(r"<s> (?:became|becomes) an? (?P<what>[a-z][a-z -]*)")


@dataclass(frozen=True, slots=True)
class MaskedSentence:
    """A sentence with <s> for whom it is asked of, <v> for other names and <d> for a day."""

    text: str
    names: tuple[tuple[str, str | None], ...]
    """Every other name with the gender that its title tells."""
    days: tuple[str, ...]

    @property
    def speaks_of_subject(self) -> bool:
        """Whether the subject stands in it, by name or as he or she."""
        return "<s>" in self.text or re.search(r"\b(?:he|she|his|her)\b", self.text) is not None

    @property
    def words(self) -> set[str]:
        """What it says beside names and days."""
        return content(re.sub(r"<[svdw]>(?:'s)?", " ", self.text))


def mask_sentence(sentence: str, subject: str) -> MaskedSentence:
    """The sentence without its names and days."""
    days = tuple(day for _, _, day in days_in(sentence))
    for start, end, _ in sorted(days_in(sentence), reverse=True):
        sentence = f"{sentence[:start]}<d>{sentence[end:]}"
    ways = sorted({subject, subject.partition(" (")[0]}, key=len, reverse=True)
    sentence = re.sub(rf"{_TITLED}(?<!\w)(?:{'|'.join(map(re.escape, ways))})(?!\w)", "<s>", sentence)
    names: list[tuple[str, str | None]] = []

    def taken(match: re.Match[str]) -> str:
        if match[0] in _BEGINNINGS:
            return match[0]
        first, _, rest = match[0].partition(" ")
        title = first if kin.gender_of(first) and rest else None
        names.append((rest if title else match[0], kin.gender_of(title)))
        return "<v>"

    text = NAME.sub(taken, sentence).rstrip(".").casefold()
    text = re.sub(r"<v>(?:, <v>)*,? and <v>|<v>(?:, <v>)+", "<v>", text)
    return MaskedSentence(text, tuple(names), days)


def extract_people(sentence: str, subject: str, relation: str) -> list[str]:
    """Whom a sentence tells as that relation of the subject, in the words for it from either side."""
    results = mask_sentence(sentence, subject)
    if not results.names or results.text.count("<v>") != 1 or not results.speaks_of_subject or results.days:
        return []
    if _find_relation_noun(results.text, "<s>", "<v>") == relation:
        return [name for name, _ in results.names]
    other = _find_relation_noun(results.text, "<v>", "<s>")
    for reverse in kin.inverse_relations(relation):
        if other == reverse.word:
            return [name for name, gender in results.names if reverse.gender in (None, gender)]
    return _extract_symmetric(results, relation)


def _extract_symmetric(results: MaskedSentence, relation: str) -> list[str]:
    both = kin.symmetric_relation(relation)
    if both is None:
        return []
    speaking = {word for phrase in kin.words_for(both.word, "who") for word in content(phrase)}
    if not results.words & speaking or results.words - speaking - LIGHT:
        return []
    return [name for name, gender in results.names if both.gender in (None, gender)]


def _find_relation_noun(text: str, owner: str, owned: str) -> str | None:
    """The noun by which a bare sentence calls somebody the relation of another."""
    own = rf"(?:his|her|their|{owner}'s)" if owner == "<s>" else rf"{owner}'s"
    noun = r"(?P<noun>[a-z]+(?:[ -][a-z]+)*?)"
    ways = (
        rf"{own} {noun} {_IS} {owned}",
        rf"the {noun} of {owner} {_IS} {owned}",
        rf"{owned} {_IS} (?:the|an?) {noun} of {owner}",
        rf"{owned} {_IS} {own} {noun}",
        rf"{owner} (?:has|had) (?:an? )?{noun}[,:] {owned}",
    )
    match = next((match for way in ways if (match := re.fullmatch(way, text))), None)
    return singular(match["noun"]) if match else None


def extract_day(sentence: str, subject: str, phrases: Iterable[str]) -> list[str]:
    """The day that a sentence tells of what the phrases speak of."""
    results = mask_sentence(sentence, subject)
    return (
        list(results.days) if len(results.days) == 1 and not results.names and _states_phrase(results, phrases) else []
    )


def extract_name(sentence: str, subject: str, phrases: Iterable[str]) -> list[str]:
    """The one name that a sentence tells in answer to what the phrases speak of."""
    results = mask_sentence(sentence, subject)
    return (
        [results.names[0][0]]
        if len(results.names) == 1 and not results.days and _states_phrase(results, phrases)
        else []
    )


def extract_words(sentence: str, subject: str, phrases: Iterable[str]) -> list[str]:
    """The words in small letters that a sentence tells, where nothing stands beside them but what was asked for."""
    results = mask_sentence(sentence, subject)
    if results.days or results.names or not results.speaks_of_subject:
        return []
    stated = set(phrases)
    became = _BECAME.fullmatch(results.text)
    if became and "occupation" in stated and not kin.is_personal(became["what"]):
        return [became["what"]]
    speaking = {word for phrase in stated for word in content(phrase)}
    runs: list[list[str]] = [[]]
    tokens = results.text.replace(",", "").split()
    for before, token in zip(["", *tokens], tokens, strict=False):
        # Making is no light verb but a part of what somebody likes: wine making.
        light = content(token) <= LIGHT and not token.endswith("ing")
        if "<s>" in token or token in _IGNORED_WORDS or light or content(token) <= speaking:
            runs.append([])
        elif not runs[-1] and before in _SUBJECTS:
            return []  # a verb that is not known
        else:
            runs[-1].append(token)
    left = [" ".join(run) for run in runs if run]
    return left if len(left) == 1 and any(content(token) & speaking for token in tokens) else []


def states_value(sentence: str, who: str, value: str, phrases: Iterable[str]) -> bool:
    """Whether a sentence tells that somebody has a value that is known, in words that say nothing else."""
    if days_in(value):
        return False
    results = mask_sentence(re.sub(rf"(?<![\w(]){re.escape(value)}(?![\w)])", "<w>", sentence), who)
    speaking = {word for phrase in phrases for word in content(phrase)}
    alone = not results.names and not results.days and results.text.count("<w>") == 1
    return alone and "<s>" in results.text and "not" not in results.text.split() and results.words <= speaking | LIGHT


def is_understood(sentence: str, subject: str) -> bool:
    """Whether a sentence tells, in words for it, how people are related, or what somebody is."""
    results = mask_sentence(sentence, subject)
    if re.fullmatch(r".*(?:\b(?:is|was)|<s>,) an? (?:man|woman|boy|girl)", results.text):
        return True
    if (became := _BECAME.fullmatch(results.text)) and not kin.is_personal(became["what"]):
        return True
    if results.text.count("<v>") != 1:
        return False
    if _find_relation_noun(results.text, "<s>", "<v>") or _find_relation_noun(results.text, "<v>", "<s>"):
        return True
    return any(_extract_symmetric(results, relation) for relation in ("friend", "spouse"))


def _states_phrase(results: MaskedSentence, phrases: Iterable[str]) -> bool:
    speaking = {word for phrase in phrases for word in content(phrase)}
    return results.speaks_of_subject and bool(results.words & speaking) and results.words <= speaking | LIGHT


class SentenceReader:
    """Reads as the demonstrations do."""

    def __init__(self, lessons: ReplayKnowledge) -> None:
        self._lessons = lessons

    def answers(self, template: str, source: str, sentences: Sequence[str], subject: str) -> list[str]:
        """What sentences say in answer, also by narrower words: a father and a mother are parents."""
        patterns = self._lessons.patterns(template, source)
        relations = self._lessons.narrower(relation_of(template))
        results = [
            value
            for relation_word in relations
            for value in extract_values(patterns, sentences, subject, relation_word)
        ]
        if kin.is_personal(relation_of(template)):
            results += [
                value
                for one in sentences
                for relation_word in relations
                for value in extract_people(one, subject, relation_word)
            ]
        elif not results:
            results = [value for one in sentences for value in self._openly(one, subject, template)]
        return list(dict.fromkeys(results))

    def states_value(self, fact: str, value: str, source: str, sentence: str, who: str) -> bool | None:
        """Whether a sentence tells that somebody has a value; None where that is not clear."""
        template = self._lessons.wordings.template_for(fact, what=True)
        if states_value(sentence, who, value, self._lessons.phrases_for(template)):
            return True
        stated = self.answers(template, source, [sentence], who)
        return same_value(value) in map(same_value, stated) if stated else None

    def _openly(self, sentence: str, subject: str, template: str) -> list[str]:
        """By the words for what is asked, if the sentence has a value of the kind and no other words."""
        kinds, phrases = self._lessons.kinds(template), self._lessons.phrases_for(template)
        ways = {DAY: extract_day, THING: extract_name, WORD: extract_words}
        if not kinds and relation_of(template):
            kinds = set(ways)
        return [value for kind, way in ways.items() if kind in kinds for value in way(sentence, subject, phrases)]

    def find_unread(self, sentences: Sequence[str], subject: str, template: str, source: str) -> str | None:
        """A sentence that may answer and is said as in no demonstration; None where the rest speaks of other things."""
        known = self._lessons.every_pattern(source)
        for sentence in sentences:
            if any(relation_word.values(sentence, subject, relation) for relation, relation_word in known):
                continue
            if is_understood(sentence, subject):
                continue
            if self._may_answer(sentence, subject, template):
                return sentence
        return None

    def _may_answer(self, sentence: str, subject: str, template: str) -> bool:
        """Whether the words of a sentence, or the values in it, could be what the template asks for."""
        relation = relation_of(template)
        if relation and self._lessons.is_kin(relation):
            said_of = relation_in(sentence, subject)
            if said_of:
                return singular(said_of) in self._lessons.narrower(relation)
            return not self._lessons.kin(relation).isdisjoint(map(singular, sentence.casefold().rstrip(".").split()))
        kinds = self._lessons.kinds(template) or {DAY, THING, WORD}
        names = [name for name in names_in(sentence) if name not in (subject, subject.partition(" (")[0])]
        held = (
            (DAY in kinds and bool(days_in(sentence)))
            or (THING in kinds and bool(names))
            or (WORD in kinds and re.search(r" [a-z]+(?: [a-z]+)*\.$", sentence) is not None)
        )
        return held and not self._lessons.speaks_of_other(mask_sentence(sentence, subject).text, template)


@dataclass(slots=True)
class LookupState:
    """One run as far as it has come."""

    walk: ReplaySession
    lessons: ReplayKnowledge
    names: EntityResolver
    reader: SentenceReader
    spread: bool | None = None
    """Whether the sources tell different facts; None until two of them were compared."""
    unclear: list[str] = field(default_factory=list)
    """Why what was found for the question at hand may not be all."""
    silent: bool = False
    """Whether the graph has no such relation as the question at hand asks for."""

    @classmethod
    def begin(cls, walk: ReplaySession, lessons: ReplayKnowledge) -> "LookupState":
        """The inquiry of a run in which nothing is known yet."""
        return cls(walk, lessons, EntityResolver(walk, lessons), SentenceReader(lessons))

    def doubt(self, asked: str, sentence: str) -> None:
        """Take down a sentence that may answer, and that cannot be read."""
        self.unclear.append(f"{asked!r} may be answered by {sentence!r}, which is said as in no demonstration")
