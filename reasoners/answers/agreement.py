"""How far the answers of the sources agree: the signal of trust that the paper found.

The rule: two answers are the same when the sets of their parts are, written in one way (reasoners/comparable.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reasoners.answers.normalization import normalize_for_comparison

SOURCE_NAMES = {"text": "the articles", "graph": "the graph", "model": "the model's memory"}
ALL_AGREE, TWO_AGREE, CONFLICT, SINGLE_SOURCE, NO_ANSWERS = "all agree", "two agree", "conflict", "one only", "none"


@dataclass(frozen=True, slots=True)
class Agreement:
    """What each source that was asked says, and which of them say the same."""

    answers: Mapping[str, str | None]
    """By source; None where it has no answer."""
    agreeing_sources: tuple[str, ...]
    """The most sources that say the same, where more than one does."""

    @property
    def state(self) -> str:
        """all agree, two agree, conflict, one only, or none."""
        answering = [answer for answer in self.answers.values() if answer is not None]
        if len(self.agreeing_sources) == len(self.answers):
            return ALL_AGREE
        if self.agreeing_sources:
            return TWO_AGREE
        return CONFLICT if len(answering) > 1 else SINGLE_SOURCE if answering else NO_ANSWERS

    @property
    def hedge(self) -> str:
        """The sentence that says how sure the answer is, before a response; empty where nothing need be said."""
        said = [
            f"{SOURCE_NAMES[name]} {_conjugate_say(name)} {answer}"
            for name, answer in self.answers.items()
            if answer is not None
        ]
        if self.state == CONFLICT:
            return f"The sources disagree: {', '.join(said[:-1])} and {said[-1]}."
        if self.state == SINGLE_SOURCE:
            (name,) = (name for name, answer in self.answers.items() if answer is not None)
            if name == "model":
                return "I could not verify this; I answer from memory alone."
            return f"Only {SOURCE_NAMES[name]} {'answer' if name == 'text' else 'answers'} this; no other source confirms it."
        return ""

    @property
    def summary(self) -> str:
        """The state in a sentence."""
        if self.state == ALL_AGREE:
            return f"All {'three' if len(self.answers) == 3 else 'the'} sources agree."
        if self.state == TWO_AGREE:
            first, second = (SOURCE_NAMES[name] for name in self.agreeing_sources)
            others = [name for name in self.answers if name not in self.agreeing_sources]
            silent = all(self.answers[name] is None for name in others)
            rest = ", ".join(SOURCE_NAMES[name] for name in others)
            tail = (
                f"{rest} {_conjugate_say(others[0])} nothing"
                if silent
                else f"{rest} {_conjugate_say(others[0])} otherwise"
            )
            told = f"{first} and {second} agree; {tail}."
            return told[0].upper() + told[1:]
        return self.hedge or "No source has an answer."

    def to_json(self) -> dict[str, Any]:
        """As a trace's configuration keeps it."""
        return {
            "state": self.state,
            "words": self.summary,
            "answers": dict(self.answers),
            "agreeing": list(self.agreeing_sources),
        }


def measure_agreement(answers: Mapping[str, str | None]) -> Agreement:
    """The agreement of these answers by source."""
    alike: dict[frozenset[str], list[str]] = {}
    for name, told in normalize_for_comparison(
        {name: answer for name, answer in answers.items() if answer is not None}
    ).items():
        alike.setdefault(told, []).append(name)
    most = max(alike.values(), key=len, default=[])
    return Agreement(dict(answers), tuple(most) if len(most) > 1 else ())


def _conjugate_say(name: str) -> str:
    return "say" if name == "text" else "says"
