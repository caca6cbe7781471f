"""Agreement between the answers of several sources, which HumanIQ uses as a measure of confidence.

reasoners/answers/normalization.py decides which answers are equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reasoners.answers.normalization import group_equal_answers

SOURCE_NAMES = {"text": "the articles", "graph": "the graph", "model": "the model's memory"}
ALL_AGREE, TWO_AGREE, CONFLICT, SINGLE_SOURCE, NO_ANSWERS = "all agree", "two agree", "conflict", "one only", "none"


@dataclass(frozen=True, slots=True)
class Agreement:
    """The answer of each source, and which sources agree."""

    answers: Mapping[str, str | None]
    """By source; None for a source without an answer."""
    agreeing_sources: tuple[str, ...]
    """The largest group of sources with equal answers; empty if no two are equal."""

    @property
    def state(self) -> str:
        """One of: all agree, two agree, conflict, one only, none."""
        answering = [answer for answer in self.answers.values() if answer is not None]
        if len(self.agreeing_sources) == len(self.answers):
            return ALL_AGREE
        if self.agreeing_sources:
            return TWO_AGREE
        return CONFLICT if len(answering) > 1 else SINGLE_SOURCE if answering else NO_ANSWERS

    @property
    def hedge(self) -> str:
        """The opening sentence of a response if sources disagree or only one answers; otherwise empty."""
        statements = [
            f"{SOURCE_NAMES[name]} {_conjugate_say(name)} {answer}"
            for name, answer in self.answers.items()
            if answer is not None
        ]
        if self.state == CONFLICT:
            return f"The sources disagree: {', '.join(statements[:-1])} and {statements[-1]}."
        if self.state == SINGLE_SOURCE:
            (name,) = (name for name, answer in self.answers.items() if answer is not None)
            if name == "model":
                return "I could not verify this; I answer from memory alone."
            verb = "answer" if name == "text" else "answers"
            return f"Only {SOURCE_NAMES[name]} {verb} this; no other source confirms it."
        return ""

    @property
    def summary(self) -> str:
        """The state as a sentence."""
        if self.state == ALL_AGREE:
            return f"All {'three' if len(self.answers) == 3 else 'the'} sources agree."
        if self.state == TWO_AGREE:
            first, second = (SOURCE_NAMES[name] for name in self.agreeing_sources)
            other_sources = [name for name in self.answers if name not in self.agreeing_sources]
            no_answers = all(self.answers[name] is None for name in other_sources)
            rest = ", ".join(SOURCE_NAMES[name] for name in other_sources)
            tail = (
                f"{rest} {_conjugate_say(other_sources[0])} nothing"
                if no_answers
                else f"{rest} {_conjugate_say(other_sources[0])} otherwise"
            )
            sentence = f"{first} and {second} agree; {tail}."
            return sentence[0].upper() + sentence[1:]
        return self.hedge or "No source has an answer."

    def to_json(self) -> dict[str, Any]:
        """The fields stored in a trace's configuration."""
        return {
            "state": self.state,
            "words": self.summary,
            "answers": dict(self.answers),
            "agreeing": list(self.agreeing_sources),
        }


def measure_agreement(answers: Mapping[str, str | None]) -> Agreement:
    """Compare the answers of the sources; None stands for no answer."""
    groups = group_equal_answers({name: answer for name, answer in answers.items() if answer is not None})
    largest = max(groups, key=len, default=[])
    return Agreement(dict(answers), tuple(largest) if len(largest) > 1 else ())


def _conjugate_say(name: str) -> str:
    return "say" if name == "text" else "says"
