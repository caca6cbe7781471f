"""What sentences that were read say in answer to a question, as far as demonstrations show how it is said."""

import re
from collections.abc import Sequence

from reasoners.replay import kin, openly
from reasoners.replay.english import days_in, names_in, singular
from reasoners.replay.lessons import ReplayKnowledge
from reasoners.replay.openly import extract_people
from reasoners.replay.sentences import DAY, THING, WORD, extract_values, relation_in
from reasoners.replay.things import same_value
from reasoners.replay.wordings import relation_of


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
        if openly.states_value(sentence, who, value, self._lessons.phrases_for(template)):
            return True
        stated = self.answers(template, source, [sentence], who)
        return same_value(value) in map(same_value, stated) if stated else None

    def _openly(self, sentence: str, subject: str, template: str) -> list[str]:
        """By the words for what is asked, if the sentence has a value of the kind and no other words."""
        kinds, phrases = self._lessons.kinds(template), self._lessons.phrases_for(template)
        ways = {DAY: openly.extract_day, THING: openly.extract_name, WORD: openly.extract_words}
        if not kinds and relation_of(template):
            kinds = set(ways)
        return [value for kind, way in ways.items() if kind in kinds for value in way(sentence, subject, phrases)]

    def find_unread(self, sentences: Sequence[str], subject: str, template: str, source: str) -> str | None:
        """A sentence that may answer and is said as in no demonstration; None where the rest speaks of other things."""
        known = self._lessons.every_pattern(source)
        for sentence in sentences:
            if any(relation_word.values(sentence, subject, relation) for relation, relation_word in known):
                continue
            if openly.is_understood(sentence, subject):
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
        return held and not self._lessons.speaks_of_other(openly.mask_sentence(sentence, subject).text, template)
