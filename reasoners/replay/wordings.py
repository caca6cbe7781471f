"""How demonstrations ask for what a question calls so: for the date of birth by "When was Ada born?"."""

import re

from reasoners.replay.asks import BLANK
from reasoners.replay.english import content, words
from reasoners.replay.kin import is_attribute, is_personal

RELATION_QUESTION = re.compile(r"(?:Who|What) is the (?P<relation>.+) of \{\}\?")


class QuestionTemplates:
    """How demonstrations ask for what a question calls so: the date of birth by "When was {} born?"."""

    def __init__(self) -> None:
        self.by_phrase: dict[str, str] = {}
        self.templates: dict[str, None] = {}
        self.phrases: set[str] = set()
        """Everything that questions have asked for by a noun: occupation, date of birth."""

    def learn(self, template: str) -> None:
        """Take up a template, and the relation that it names."""
        self.templates.setdefault(template)
        if match := RELATION_QUESTION.fullmatch(template):
            self.by_phrase.setdefault(match["relation"], template)
            self.phrases.add(match["relation"])

    def template_for(self, phrase: str, *, what: bool = False) -> str:
        """The template for a relation, the general one where none was shown."""
        known = self.by_phrase.get(phrase)
        what = (what or is_attribute(phrase)) and not is_personal(phrase)
        return known or f"{'What' if what else 'Who'} is the {phrase} of {BLANK}?"

    def find_similar(self, region: str, like: str) -> str | None:
        """The template that asks for what a predicate speaks of, put as another one: died -> When did {} die?"""
        expected = content(region)
        beginning = words(like)[0]
        for template in self.templates:
            if content(template.replace(BLANK, "")) == expected and words(template)[0] == beginning:
                return template
        return None


def relation_of(template: str) -> str:
    """The relation that a template names; empty where it asks in another way."""
    results = RELATION_QUESTION.fullmatch(template)
    return results["relation"] if results else ""
