"""Extracts values from sentences, by the patterns of demonstrations or by their words if these are unambiguous."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reasoners.replay.english import FUNCTION_WORDS, LIGHT, NAME, TITLES, content, days_in, names_in, singular
from reasoners.replay.knowledge import ReplayKnowledge
from reasoners.replay.recorded_lookups import relation_of
from reasoners.replay.sentence_patterns import DAY, THING, WORD, extract_values, relation_in
from reasoners.replay.session import same_value
from worlds.lexicon import kinship
from worlds.lexicon.english import load_lexicon

_TITLED = rf"(?:(?P<title>{TITLES}) )?"
_BEGINNINGS = ("His", "Her", "He", "She", "The", "This", "By", "In", "Their", "They")
_IGNORED_WORDS = FUNCTION_WORDS | {"as"}
_SUBJECTS = ("<s>", "he", "she", "they")
_IS = "(?:is|was|are|were)"
_BECAME = re.compile(r"<s> (?:became|becomes) an? (?P<what>[a-z][a-z -]*)")


@dataclass(frozen=True, slots=True)
class MaskedSentence:
    """A sentence with <s> in place of the subject, <v> of other names, <d> of dates and <w> of a given value."""

    text: str
    names: tuple[tuple[str, str | None], ...]
    """The other names, each with the gender of its title (Mr, Ms), or None."""
    days: tuple[str, ...]

    @property
    def speaks_of_subject(self) -> bool:
        """Whether the subject occurs, by name or by pronoun."""
        return "<s>" in self.text or re.search(r"\b(?:he|she|his|her)\b", self.text) is not None

    @property
    def words(self) -> set[str]:
        """The content words without names and dates."""
        return content(re.sub(r"<[svdw]>(?:'s)?", " ", self.text))


def mask_sentence(sentence: str, subject: str) -> MaskedSentence:
    """Mask the subject, the other names and the dates of a sentence."""
    days = tuple(day for _, _, day in days_in(sentence))
    for start, end, _ in sorted(days_in(sentence), reverse=True):
        sentence = f"{sentence[:start]}<d>{sentence[end:]}"
    spellings = sorted({subject, subject.partition(" (")[0]}, key=len, reverse=True)
    sentence = re.sub(rf"{_TITLED}(?<!\w)(?:{'|'.join(map(re.escape, spellings))})(?!\w)", "<s>", sentence)
    names: list[tuple[str, str | None]] = []
    titles = load_lexicon().titles

    def taken(match: re.Match[str]) -> str:
        if match[0] in _BEGINNINGS:
            return match[0]
        first, _, rest = match[0].partition(" ")
        title = first if first in titles and rest else None
        names.append((rest if title else match[0], titles.get(title or "")))
        return "<v>"

    text = NAME.sub(taken, sentence).rstrip(".").casefold()
    text = re.sub(r"<v>(?:, <v>)*,? and <v>|<v>(?:, <v>)+", "<v>", text)
    return MaskedSentence(text, tuple(names), days)


def extract_people(sentence: str, subject: str, relation: str) -> list[str]:
    """The people whom a sentence states to be in this relation to the subject, in words of either direction."""
    masked = mask_sentence(sentence, subject)
    if not masked.names or masked.text.count("<v>") != 1 or not masked.speaks_of_subject or masked.days:
        return []
    if _find_relation_noun(masked.text, "<s>", "<v>") == relation:
        return [name for name, _ in masked.names]
    inverse_noun = _find_relation_noun(masked.text, "<v>", "<s>")
    for inverse in kinship.inverse_relations(relation):
        if inverse_noun == inverse.relation:
            return [name for name, gender in masked.names if inverse.gender in (None, gender)]
    return _extract_symmetric(masked, relation)


def _extract_symmetric(masked: MaskedSentence, relation: str) -> list[str]:
    symmetric = kinship.symmetric_relation(relation)
    if symmetric is None:
        return []
    phrase_words = {word for phrase in kinship.relation_phrases(symmetric.relation, "who") for word in content(phrase)}
    if not masked.words & phrase_words or masked.words - phrase_words - LIGHT:
        return []
    return [name for name, gender in masked.names if symmetric.gender in (None, gender)]


def _find_relation_noun(text: str, owner: str, owned: str) -> str | None:
    """The noun of the relation between two placeholders of a masked sentence, as a singular."""
    own = rf"(?:his|her|their|{owner}'s)" if owner == "<s>" else rf"{owner}'s"
    noun = r"(?P<noun>[a-z]+(?:[ -][a-z]+)*?)"
    patterns = (
        rf"{own} {noun} {_IS} {owned}",
        rf"the {noun} of {owner} {_IS} {owned}",
        rf"{owned} {_IS} (?:the|an?) {noun} of {owner}",
        rf"{owned} {_IS} {own} {noun}",
        rf"{owner} (?:has|had) (?:an? )?{noun}[,:] {owned}",
    )
    match = next((match for pattern in patterns if (match := re.fullmatch(pattern, text))), None)
    return singular(match["noun"]) if match else None


def extract_day(sentence: str, subject: str, phrases: Iterable[str]) -> list[str]:
    """The date that a sentence states for one of the phrases; [] if it states none or anything else."""
    masked = mask_sentence(sentence, subject)
    return list(masked.days) if len(masked.days) == 1 and not masked.names and _states_phrase(masked, phrases) else []


def extract_name(sentence: str, subject: str, phrases: Iterable[str]) -> list[str]:
    """The name that a sentence states for one of the phrases; [] if it states none or anything else."""
    masked = mask_sentence(sentence, subject)
    return (
        [masked.names[0][0]] if len(masked.names) == 1 and not masked.days and _states_phrase(masked, phrases) else []
    )


def extract_words(sentence: str, subject: str, phrases: Iterable[str]) -> list[str]:
    """The lower-case value that a sentence states for one of the phrases; [] if it has any other content words."""
    masked = mask_sentence(sentence, subject)
    if masked.days or masked.names or not masked.speaks_of_subject:
        return []
    phrase_set = set(phrases)
    became = _BECAME.fullmatch(masked.text)
    if became and "occupation" in phrase_set and not kinship.relates_people(became["what"]):
        return [became["what"]]
    phrase_words = {word for phrase in phrase_set for word in content(phrase)}
    runs: list[list[str]] = [[]]
    tokens = masked.text.replace(",", "").split()
    for before, token in zip(["", *tokens], tokens, strict=False):
        # A gerund belongs to the value, as in wine making.
        light = content(token) <= LIGHT and not token.endswith("ing")
        if "<s>" in token or token in _IGNORED_WORDS or light or content(token) <= phrase_words:
            runs.append([])
        elif not runs[-1] and before in _SUBJECTS:
            return []  # an unknown verb
        else:
            runs[-1].append(token)
    values = [" ".join(run) for run in runs if run]
    return values if len(values) == 1 and any(content(token) & phrase_words for token in tokens) else []


def states_value(sentence: str, who: str, value: str, phrases: Iterable[str]) -> bool:
    """Whether a sentence states that `who` has the value, and has no other content words."""
    if days_in(value):
        return False
    masked = mask_sentence(re.sub(rf"(?<![\w(]){re.escape(value)}(?![\w)])", "<w>", sentence), who)
    phrase_words = {word for phrase in phrases for word in content(phrase)}
    is_only_value = not masked.names and not masked.days and masked.text.count("<w>") == 1
    return (
        is_only_value
        and "<s>" in masked.text
        and "not" not in masked.text.split()
        and masked.words <= phrase_words | LIGHT
    )


def is_understood(sentence: str, subject: str) -> bool:
    """Whether the content of a sentence is known: a relation between people, a gender or an occupation."""
    masked = mask_sentence(sentence, subject)
    if re.fullmatch(r".*(?:\b(?:is|was)|<s>,) an? (?:man|woman|boy|girl)", masked.text):
        return True
    if (became := _BECAME.fullmatch(masked.text)) and not kinship.relates_people(became["what"]):
        return True
    if masked.text.count("<v>") != 1:
        return False
    if _find_relation_noun(masked.text, "<s>", "<v>") or _find_relation_noun(masked.text, "<v>", "<s>"):
        return True
    return any(_extract_symmetric(masked, relation) for relation in ("friend", "spouse"))


def _states_phrase(masked: MaskedSentence, phrases: Iterable[str]) -> bool:
    phrase_words = {word for phrase in phrases for word in content(phrase)}
    return masked.speaks_of_subject and bool(masked.words & phrase_words) and masked.words <= phrase_words | LIGHT


class SentenceReader:
    """Extracts values from sentences by the patterns and words learned from demonstrations."""

    def __init__(self, knowledge: ReplayKnowledge) -> None:
        self._knowledge = knowledge

    def answers(self, template: str, source: str, sentences: Sequence[str], subject: str) -> list[str]:
        """The values of a template in the sentences, also by narrower relations: father and mother for parent."""
        patterns = self._knowledge.patterns(template, source)
        relations = self._knowledge.narrower(relation_of(template))
        values = [
            value
            for relation_word in relations
            for value in extract_values(patterns, sentences, subject, relation_word)
        ]
        if kinship.relates_people(relation_of(template)):
            values += [
                value
                for sentence in sentences
                for relation_word in relations
                for value in extract_people(sentence, subject, relation_word)
            ]
        elif not values:
            values = [value for sentence in sentences for value in self._openly(sentence, subject, template)]
        return list(dict.fromkeys(values))

    def states_value(self, fact: str, value: str, source: str, sentence: str, who: str) -> bool | None:
        """Whether a sentence states that `who` has the value; None if that is uncertain."""
        template = self._knowledge.wordings.template_for(fact, what=True)
        if states_value(sentence, who, value, self._knowledge.phrases_for(template)):
            return True
        values = self.answers(template, source, [sentence], who)
        return same_value(value) in map(same_value, values) if values else None

    def _openly(self, sentence: str, subject: str, template: str) -> list[str]:
        """Extract values by the words of the template, if the sentence has a value of its kind and no other words."""
        kinds, phrases = self._knowledge.kinds(template), self._knowledge.phrases_for(template)
        extractors = {DAY: extract_day, THING: extract_name, WORD: extract_words}
        if not kinds and relation_of(template):
            kinds = set(extractors)
        return [
            value
            for kind, extract in extractors.items()
            if kind in kinds
            for value in extract(sentence, subject, phrases)
        ]

    def find_unread(self, sentences: Sequence[str], subject: str, template: str, source: str) -> str | None:
        """The first sentence that may state a value but matches no known pattern; None if there is none."""
        known_patterns = self._knowledge.every_pattern(source)
        for sentence in sentences:
            if any(pattern.values(sentence, subject, relation) for relation, pattern in known_patterns):
                continue
            if is_understood(sentence, subject):
                continue
            if self._may_answer(sentence, subject, template):
                return sentence
        return None

    def _may_answer(self, sentence: str, subject: str, template: str) -> bool:
        """Whether a sentence has words or values that the template may ask for."""
        relation = relation_of(template)
        if relation and self._knowledge.is_kin(relation):
            noun = relation_in(sentence, subject)
            if noun:
                return singular(noun) in self._knowledge.narrower(relation)
            return not self._knowledge.kin(relation).isdisjoint(map(singular, sentence.casefold().rstrip(".").split()))
        kinds = self._knowledge.kinds(template) or {DAY, THING, WORD}
        names = [name for name in names_in(sentence) if name not in (subject, subject.partition(" (")[0])]
        has_value = (
            (DAY in kinds and bool(days_in(sentence)))
            or (THING in kinds and bool(names))
            or (WORD in kinds and re.search(r" [a-z]+(?: [a-z]+)*\.$", sentence) is not None)
        )
        return has_value and not self._knowledge.speaks_of_other(mask_sentence(sentence, subject).text, template)
