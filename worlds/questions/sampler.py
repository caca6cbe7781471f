"""The questions of a world: of each template as many as are asked for, no two the same, each drawn by itself."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from zlib import crc32

from worlds.questions.evaluate import Evaluation
from worlds.questions.expressions import Expression, Having
from worlds.questions.kinds import templates
from worlds.questions.names import Names
from worlds.questions.question import GeneratedQuestion, Gold
from worlds.questions.sparql import WIDEST
from worlds.questions.template import Template
from worlds.questions.walk import Walk
from worlds.questions.wording import wording
from worlds.universe.options import Options
from worlds.universe.universe import Told, Universe

ATTEMPTS = 100
"""Draws for one question until it is given up."""
PATIENCE = 2
"""Questions of a template given up in a row until no more of it are drawn."""
NO_WAY, NO_ANSWER, ANSWER = "found nobody to ask about", "had no answer", "had an answer"
TOO_MANY, ASKED = "led to too many people", "had been asked already"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A template of which fewer questions were made than asked for; `why` counts the draws that failed, by reason."""

    kind: str
    template: str
    asked: int
    made: int
    why: dict[str, int]

    def __str__(self) -> str:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.why.items())
        return (
            f"{self.made} of {self.asked} questions “{self.template}” ({self.kind}) were found; of the draws {reasons}."
        )


@dataclass
class Questions(Iterator[GeneratedQuestion]):
    """Gives the questions one by one; when it is at its end, `shortfalls` tells what could not be asked."""

    universe: Universe
    told: Told
    options: Options
    _made: Counter[Template] = field(default_factory=Counter)
    _failed: Counter[Template] = field(default_factory=Counter)
    _why: dict[Template, Counter[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._templates = templates(self.options)
        self._evaluation = Evaluation(self.universe)
        self._names = Names(self.universe, plain=self.options.plain)
        self._asked: set[Expression | str] = set()
        self._stream = self._all()

    def __next__(self) -> GeneratedQuestion:
        return next(self._stream)

    @property
    def shortfalls(self) -> list[Shortfall]:
        """The templates that gave fewer questions than were asked for."""
        wanted = self.options.per_template
        return [
            Shortfall(each.kind, each.text, wanted, self._made[each], dict(sorted(self._why[each].items())))
            for each in self._templates
            if each in self._why
        ]

    def drawn(self) -> Iterator[tuple[Template, Expression, str]]:
        """What is asked and in which words, without its gold."""
        # Round after round, so that whoever takes the first questions has some of every template.
        for round_ in range(self.options.per_template):
            for template in self._templates:
                if self._failed[template] < PATIENCE:
                    found = self._ask(template, round_)
                    self._failed[template] = 0 if found else self._failed[template] + 1
                    if found is not None:
                        self._made[template] += 1
                        yield template, *found

    def _all(self) -> Iterator[GeneratedQuestion]:
        gold = Gold(self.universe, self.told, self._names)
        for number, (template, expression, text) in enumerate(self.drawn(), 1):
            yield gold.of(number, expression, text, (template.kind, template.text))

    def _ask(self, template: Template, round_: int) -> tuple[Expression, str] | None:
        walk = Walk(self.universe, self.options.seed, crc32(f"{template.kind}: {template.text}".encode()), round_)
        failed: Counter[str] = Counter()
        for _ in range(ATTEMPTS):
            expression = template.draw(walk)
            wrong = NO_WAY if expression is None else self._wrong(expression, template)
            if expression is not None and not wrong:
                text = wording(expression, self._names)
                if text not in self._asked:
                    self._asked |= {expression, text}
                    return expression, text
                wrong = ASKED
            failed[wrong] += 1
        self._why.setdefault(template, Counter()).update(failed)
        return None

    def _wrong(self, expression: Expression, template: Template) -> str:
        """Why this is not asked; "" when nothing speaks against it."""
        if expression in self._asked:
            return ASKED
        answer = self._evaluation.answer(expression)
        if template.answered != bool(answer.values):
            return NO_ANSWER if template.answered else ANSWER
        # Who shares a value may be many where nothing but a second condition on them is asked.
        starts = [found for part, found in self._evaluation.found.items() if isinstance(part, Having)]
        stages = [stage for stage in self._evaluation.stages if not any(stage is start for start in starts)]
        wide = any(len(values) > WIDEST for _, values in stages)
        return TOO_MANY if wide or len(answer.values) > WIDEST else ""


def questions(universe: Universe, told: Told, options: Options) -> Questions:
    """The questions of a world, the same for the same universe and options."""
    return Questions(universe, told, options)
