"""Sentences that no demonstration shows, read by their words as far as these leave no doubt."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from reasoners.replay import kin
from reasoners.replay.english import FUNCTION_WORDS, LIGHT, NAME, content, days_in, singular

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
