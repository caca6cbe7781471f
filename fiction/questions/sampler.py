"""Samples the questions of a world: a number per template, without duplicates, each from its own random stream."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from zlib import crc32

from fiction.questions.composition_templates import QuestionTemplate
from fiction.questions.evaluate import ExpressionEvaluator
from fiction.questions.expressions import Expression, Having
from fiction.questions.names import NameFormatter
from fiction.questions.question import GeneratedQuestion, GoldBuilder
from fiction.questions.sparql import MAX_SET_SIZE
from fiction.questions.templates import build_templates
from fiction.questions.walk import RandomWalk
from fiction.questions.wording import word_question
from fiction.universe.options import GenerationOptions
from fiction.universe.universe import FactSources, Universe

MAX_ATTEMPTS = 100
"""Maximum draws for one question."""
MAX_FAILURES_IN_A_ROW = 2
"""Failed questions of a template in a row before it is abandoned."""
NO_START, NO_ANSWER, HAS_ANSWER = "had no suitable people", "had no answer", "had an answer"
TOO_MANY, DUPLICATE = "had too many people", "were duplicates"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A template with fewer questions than requested, and the number of failed draws by reason."""

    kind: str
    template: str
    requested: int
    made: int
    failures_by_reason: dict[str, int]

    def __str__(self) -> str:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.failures_by_reason.items())
        name = f"“{self.template}” ({self.kind})"
        return f"{self.made} of {self.requested} questions {name} were found. Failed draws: {reasons}."


@dataclass
class QuestionSampler(Iterator[GeneratedQuestion]):
    """Iterates over the questions; once exhausted, `shortfalls` lists the templates with too few questions."""

    universe: Universe
    fact_sources: FactSources
    options: GenerationOptions
    _made: Counter[QuestionTemplate] = field(default_factory=Counter)
    _failed: Counter[QuestionTemplate] = field(default_factory=Counter)
    _failures_by_reason: dict[QuestionTemplate, Counter[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._templates = build_templates(self.options)
        self._evaluation = ExpressionEvaluator(self.universe)
        self._names = NameFormatter(self.universe, plain=self.options.plain)
        self._used: set[Expression | str] = set()
        self._stream = self._generate()

    def __next__(self) -> GeneratedQuestion:
        return next(self._stream)

    @property
    def shortfalls(self) -> list[Shortfall]:
        """Templates with fewer questions than requested."""
        requested = self.options.per_template
        return [
            Shortfall(
                template.kind,
                template.text,
                requested,
                self._made[template],
                dict(sorted(self._failures_by_reason[template].items())),
            )
            for template in self._templates
            if template in self._failures_by_reason
        ]

    def draw(self) -> Iterator[tuple[QuestionTemplate, Expression, str]]:
        """Yield (template, expression, text) of each question, without its gold parts."""
        # Round by round, so that any prefix of the questions covers all templates.
        for round_ in range(self.options.per_template):
            for template in self._templates:
                if self._failed[template] < MAX_FAILURES_IN_A_ROW:
                    question = self._draw_question(template, round_)
                    self._failed[template] = 0 if question else self._failed[template] + 1
                    if question is not None:
                        self._made[template] += 1
                        yield template, *question

    def _generate(self) -> Iterator[GeneratedQuestion]:
        gold = GoldBuilder(self.universe, self.fact_sources, self._names)
        for number, (template, expression, text) in enumerate(self.draw(), 1):
            yield gold.build(number, expression, text, (template.kind, template.text))

    def _draw_question(self, template: QuestionTemplate, round_: int) -> tuple[Expression, str] | None:
        walk = RandomWalk(self.universe, self.options.seed, crc32(f"{template.kind}: {template.text}".encode()), round_)
        failures: Counter[str] = Counter()
        for _ in range(MAX_ATTEMPTS):
            expression = template.draw(walk)
            reason = NO_START if expression is None else self._rejection_reason(expression, template)
            if expression is not None and not reason:
                text = word_question(expression, self._names)
                if text not in self._used:
                    self._used |= {expression, text}
                    return expression, text
                reason = DUPLICATE
            failures[reason] += 1
        self._failures_by_reason.setdefault(template, Counter()).update(failures)
        return None

    def _rejection_reason(self, expression: Expression, template: QuestionTemplate) -> str:
        """Reason to reject the expression; "" if it is acceptable."""
        if expression in self._used:
            return DUPLICATE
        answer = self._evaluation.evaluate(expression)
        if template.has_answer != bool(answer.values):
            return NO_ANSWER if template.has_answer else HAS_ANSWER
        # The people with a start value may be many, since a further condition narrows them.
        starts = [result for part, result in self._evaluation.results.items() if isinstance(part, Having)]
        stages = [stage for stage in self._evaluation.stages if not any(stage is start for start in starts)]
        is_too_large = any(len(values) > MAX_SET_SIZE for _, values in stages)
        return TOO_MANY if is_too_large or len(answer.values) > MAX_SET_SIZE else ""


def sample_questions(universe: Universe, fact_sources: FactSources, options: GenerationOptions) -> QuestionSampler:
    """Sample the questions of a world; the same universe and options give the same questions."""
    return QuestionSampler(universe, fact_sources, options)
