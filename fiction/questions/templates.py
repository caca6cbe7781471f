"""All question templates of a world, those of the paper's grammar, and those without an answer.

The grammar of the paper asks who, what and how many over chains of relations:

    S  -> Who is R? | What is A? | How many <relations> does Rc have?
    R  -> the <relation> of Rc | the person whose <attribute> is <value>
    Rc -> R | <name>
    A  -> the <attribute> of R

A grammar of depth d >= 4 has the 3 * d - 10 templates whose parse tree is at most d deep. Questions without an answer
are well formed, but nothing in the universe satisfies them.

The questions of a world are sampled: a number per template, without duplicates, each from its own random stream.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from zlib import crc32

import numpy as np

from showhow.fiction.questions.added_templates import (
    FACT_PAIRS,
    DrawFunction,
    QuestionTemplate,
    comparative_templates,
    comparison_templates,
    composition_templates,
    conjunction_templates,
    count_templates,
    filter_templates,
    implicit_templates,
    person_with_facts,
    relation_phrase,
    superlative_templates,
)
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.expressions import (
    Both,
    Count,
    Expression,
    Fact,
    Having,
    Named,
    Only,
    People,
    Related,
    child_expressions,
)
from showhow.fiction.questions.names import NameFormatter
from showhow.fiction.questions.question import PAIR_KIND, GeneratedQuestion, GoldBuilder
from showhow.fiction.questions.sparql import MAX_SET_SIZE
from showhow.fiction.questions.walk import (
    ATTRIBUTES,
    RandomWalk,
    find_balanced_count,
    find_countable_relations,
    find_onward_relations,
)
from showhow.fiction.questions.wording import FACT_LABELS, word_question
from showhow.fiction.universe.options import ABSENT_FACTS, GenerationOptions
from showhow.fiction.universe.relations import RELATIONS, get_relation, trace_frontiers
from showhow.fiction.universe.universe import NONE, FactSources, Universe

_NAMED_START, _DESCRIBED_START = "<name>", "the person whose <attribute> is <value>"
MAX_ATTEMPTS = 100
"""Maximum draws for one question."""
MAX_FAILURES_IN_A_ROW = 2
"""Failed questions of a template in a row before it is abandoned."""
NO_START, NO_ANSWER, HAS_ANSWER = "had no suitable people", "had no answer", "had an answer"
TOO_MANY, DUPLICATE, LED_BACK = "had too many people", "were duplicates", "led back to the named person"


def grammar_templates(depth: int, *, count_each: bool = False) -> Iterator[QuestionTemplate]:
    """Templates of this depth, short chains first; `count_each` selects the paper's meaning of "how many"."""
    for links in range(depth // 2):
        for attribute, start in enumerate((_NAMED_START, _DESCRIBED_START)):
            # A bare name makes no "who" question and, in the paper, no question for an attribute.
            is_question = links > 0 or start == _DESCRIBED_START
            if is_question and 3 + 2 * links + attribute <= depth:
                yield _build_template("who", "Who is {}?", links, start, _ask_who)
            if is_question and 4 + 2 * links + attribute <= depth:
                yield _build_template("what", "What is the <attribute> of {}?", links, start, _ask_what)
            if 4 + 2 * links + attribute <= depth:
                draw = partial(_ask_how_many, count_each=count_each)
                yield _build_template("how many", "How many <relations> does {} have?", links, start, draw)


def _build_template(
    kind: str, text: str, links: int, start: str, ask: Callable[[RandomWalk, tuple[People, int]], Expression | None]
) -> QuestionTemplate:
    def draw(walk: RandomWalk) -> Expression | None:
        begin = walk.start_at_person() if start == _NAMED_START else walk.start_at_value()
        end = walk.extend_chain(begin, links) if begin else None
        return ask(walk, end) if end else None

    return QuestionTemplate(kind, text.format(relation_phrase(links, start)), draw)


def _ask_who(walk: RandomWalk, end: tuple[People, int]) -> Expression:  # noqa: ARG001 - draws nothing
    return end[0]


def _ask_what(walk: RandomWalk, end: tuple[People, int]) -> Expression | None:
    people, person = end
    # "What is the hobby of the person whose hobby is chess?" would contain its answer.
    start_fact = people.fact if isinstance(people, Having) else ""
    facts = [fact for fact in ATTRIBUTES if fact != start_fact and walk.fact_value(fact, person) >= 0]
    return Fact(walk.choose(facts), people) if facts else None


def _ask_how_many(walk: RandomWalk, end: tuple[People, int], *, count_each: bool) -> Expression | None:
    # A relation of which everybody has the same number, such as mothers, is not worth counting.
    onward = find_onward_relations(end[0])
    names = [name for name in walk.shuffle(sorted(find_countable_relations(walk.universe))) if name in onward]
    if count_each:
        # In the paper's meaning there is a count per person, and one person at least has a relative.
        names = [name for name in names if walk.random_relative(name, end[1])][:1]
    counts = [Count(Related(name, end[0]), each=count_each) for name in names]
    return find_balanced_count(walk, counts)


NO_ANSWER_KIND, FALSE_PREMISE_KIND = "no answer", "false premise"


def unanswerable_templates() -> Iterator[QuestionTemplate]:
    """Templates of a missing relative, an event that did not happen, and a filter without matches."""
    for links in (0, 1):
        yield _unanswerable_template(f"Who is the <relation> of {relation_phrase(links)}?", _no_relative_draw(links))
    yield _unanswerable_template(f"What is the <attribute> of the <relation> of {relation_phrase(1)}?", _draw_no_event)
    yield _unanswerable_template(f"When did {relation_phrase(0)} die?", _no_event_draw("death"))
    yield _unanswerable_template(f"When did {relation_phrase(0)} marry?", _no_event_draw("wedding"))
    yield _unanswerable_template(
        f"Which <relations> of {relation_phrase(0)} have the occupation <job>?", _draw_empty_filter
    )
    yield _unanswerable_template(f"Who is {person_with_facts(*FACT_PAIRS[0])}?", _draw_unheld_value)


def _unanswerable_template(text: str, draw: DrawFunction, kind: str = NO_ANSWER_KIND) -> QuestionTemplate:
    return QuestionTemplate(kind, text, draw, has_answer=False)


def false_premise_templates() -> Iterator[QuestionTemplate]:
    """Templates about a fact of a relative who does not exist; the gold states which premise fails."""
    for links, fact, text in (
        (1, "wedding", "When did {} marry?"),
        (1, "death", "When did {} die?"),
        (1, "birthplace", "In which town was {} born?"),
        (1, "job", "What is the occupation of {}?"),
        (2, "hobby", "What is the hobby of {}?"),
        (2, "residence", "What is the residence of {}?"),
    ):
        draw = _false_premise_draw(fact, links)
        yield _unanswerable_template(text.format(relation_phrase(links)), draw, FALSE_PREMISE_KIND)


def pair_templates() -> Iterator[QuestionTemplate]:
    """Templates of what no source states of somebody; each question is followed by its twin, which has an answer."""
    for fact in ABSENT_FACTS:
        text = f"What is the {FACT_LABELS[fact]} of {relation_phrase(1)}?"
        yield QuestionTemplate(PAIR_KIND, text, _absence_draw(fact), has_answer=False, draw_twin=_draw_twin)


def _absence_draw(fact: str) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression | None:
        person = walk.choose(np.flatnonzero(getattr(walk.universe, fact) == NONE).tolist())
        step = walk.random_step(person)
        return _ask_of_relative(walk, fact, step[1], person) if step else None

    return draw


def _ask_of_relative(walk: RandomWalk, fact: str, start: int, person: int) -> Fact | None:
    """The fact of this person, as the only relative of some relation of the start; None if there is none."""
    ways = (Related(name, Named(start)) for name in walk.shuffle(tuple(RELATIONS)))
    return next((Fact(fact, way) for way in ways if walk.evaluate_people(way).tolist() == [person]), None)


def _draw_twin(walk: RandomWalk, expression: Expression) -> Expression | None:
    """The same question about the relative of another, of whom the fact is stated; None if no draw finds one."""
    if not isinstance(expression, Fact) or not isinstance(expression.of, Related):
        return None
    for _ in range(MAX_ATTEMPTS):
        way = Related(expression.of.relation, Named(walk.random_person()))
        relatives = walk.evaluate_people(way).tolist()
        if len(relatives) == 1 and walk.fact_value(expression.fact, relatives[0]) > NONE:
            return Fact(expression.fact, way)
    return None


def _false_premise_draw(fact: str, links: int) -> DrawFunction:
    no_relative = _no_relative_draw(links - 1)

    def draw(walk: RandomWalk) -> Expression | None:
        people = no_relative(walk)
        return Fact(fact, people) if people else None

    return draw


def _no_relative_draw(links: int) -> Callable[[RandomWalk], Related | None]:
    def draw(walk: RandomWalk) -> Related | None:
        end = walk.extend_chain(walk.start_at_person(), links)
        name = walk.find_missing_relation(*end) if end else None
        return Related(name, end[0]) if end and name else None

    return draw


def _draw_no_event(walk: RandomWalk) -> Expression | None:
    people = _no_relative_draw(1)(walk)
    return Fact(walk.choose(ATTRIBUTES), people) if people else None


def _no_event_draw(fact: str) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression:
        return Fact(fact, Named(walk.random_person()))

    return draw


def _draw_empty_filter(walk: RandomWalk) -> Expression | None:
    group = walk.draw_group(0)
    return Only(group, "job", "is", walk.fact_value("job", walk.random_person())) if group else None


def _draw_unheld_value(walk: RandomWalk) -> Expression:
    one, other = FACT_PAIRS[0]
    return Both(
        Having(one, walk.fact_value(one, walk.random_person())),
        Having(other, walk.fact_value(other, walk.random_person())),
    )


QUESTION_KINDS = (
    "who",
    "what",
    "how many",
    "composition",
    "conjunction",
    "filter",
    "comparative",
    "superlative",
    "count",
    "comparison",
    "implicit",
    NO_ANSWER_KIND,
    FALSE_PREMISE_KIND,
)
"""The first three are those of the paper's grammar. Worlds with pairs have PAIR_KIND as well."""
_ORDERED_KINDS = (*QUESTION_KINDS, PAIR_KIND)


def build_templates(options: GenerationOptions) -> list[QuestionTemplate]:
    """All templates, short chains first, then in the order of QUESTION_KINDS."""
    others: tuple[Callable[[], Iterator[QuestionTemplate]], ...] = (
        composition_templates,
        conjunction_templates,
        filter_templates,
        comparative_templates,
        superlative_templates,
        count_templates,
        comparison_templates,
        implicit_templates,
        unanswerable_templates,
        false_premise_templates,
    )
    if options.pairs:
        others = (*others, pair_templates)
    templates = list(grammar_templates(options.depth, count_each=options.each))
    for make_templates in others:
        templates.extend(make_templates())
    return sorted(
        templates, key=lambda template: (template.text.count("<relation"), _ORDERED_KINDS.index(template.kind))
    )


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
        self._names = NameFormatter(self.universe, plain=self.options.plain, generator=self.options.generator)
        self._used: set[Expression | str] = set()
        self._stream = self._generate()

    def __next__(self) -> GeneratedQuestion:
        return next(self._stream)

    @property
    def shortfalls(self) -> list[Shortfall]:
        """Templates with fewer questions than requested."""
        return [
            Shortfall(
                template.kind,
                template.text,
                self._requested(template),
                self._made[template],
                dict(sorted(self._failures_by_reason[template].items())),
            )
            for template in self._templates
            if template in self._failures_by_reason
        ]

    def draw(self) -> Iterator[tuple[QuestionTemplate, Expression, str]]:
        """Yield (template, expression, text) of each question, without its gold parts."""
        # Round by round, so that any prefix of the questions covers all templates.
        for round_ in range(max(self.options.per_template, self.options.pairs)):
            for template in self._templates:
                if round_ < self._requested(template) and self._failed[template] < MAX_FAILURES_IN_A_ROW:
                    questions = self._draw_questions(template, round_)
                    self._failed[template] = 0 if questions else self._failed[template] + 1
                    if questions:
                        self._made[template] += 1
                        yield from ((template, *question) for question in questions)

    def _requested(self, template: QuestionTemplate) -> int:
        """Number of questions of the template, or of pairs."""
        return self.options.pairs if template.draw_twin else self.options.per_template

    def _generate(self) -> Iterator[GeneratedQuestion]:
        gold = GoldBuilder(self.universe, self.fact_sources, self._names, self.options.generator)
        for number, (template, expression, text) in enumerate(self.draw(), 1):
            yield gold.build(number, expression, text, (template.kind, template.text))

    def _draw_questions(self, template: QuestionTemplate, round_: int) -> list[tuple[Expression, str]]:
        """A question with its text, and its twin if the template has twins; [] if none was found."""
        walk = RandomWalk(self.universe, self.options.seed, crc32(f"{template.kind}: {template.text}".encode()), round_)
        failures: Counter[str] = Counter()
        for _ in range(MAX_ATTEMPTS):
            expressions = [template.draw(walk)]
            if template.draw_twin and expressions[0]:
                expressions.append(template.draw_twin(walk, expressions[0]))
            drawn = [expression for expression in expressions if expression is not None]
            has_answers = (template.has_answer, True)
            reasons = [self._rejection_reason(one, has) for one, has in zip(drawn, has_answers, strict=False)]
            reason = NO_START if len(drawn) < len(expressions) else next(filter(None, reasons), "")
            if not reason:
                texts = [word_question(expression, self._names) for expression in drawn]
                if self._used.isdisjoint(texts):
                    self._used.update(drawn, texts)
                    return list(zip(drawn, texts, strict=True))
                reason = DUPLICATE
            failures[reason] += 1
        self._failures_by_reason.setdefault(template, Counter()).update(failures)
        return []

    def _rejection_reason(self, expression: Expression, has_answer: bool) -> str:  # noqa: FBT001 - what is required
        """Reason to reject the expression; "" if it is acceptable."""
        if expression in self._used:
            return DUPLICATE
        if _names_missing_value(expression):
            return NO_START
        answer = self._evaluation.evaluate(expression)
        if _leads_back(expression, self._evaluation, self.universe):
            return LED_BACK
        if has_answer != bool(answer.values):
            return NO_ANSWER if has_answer else HAS_ANSWER
        # The people with a start value may be many, since a further condition narrows them.
        starts = [result for part, result in self._evaluation.results.items() if isinstance(part, Having)]
        stages = [stage for stage in self._evaluation.stages if not any(stage is start for start in starts)]
        is_too_large = any(len(values) > MAX_SET_SIZE for _, values in stages)
        return TOO_MANY if is_too_large or len(answer.values) > MAX_SET_SIZE else ""


def _leads_back(expression: Expression, evaluation: ExpressionEvaluator, universe: Universe) -> bool:
    """Whether an answer, or a step of some relation, is a person whose relatives the expression asks for."""
    kind, answers = evaluation.results[expression]
    for person, related in _iter_paths(expression):
        _, people = evaluation.results[related.of]
        reached = trace_frontiers(universe, get_relation(related.relation), people)
        if (kind == "person" and person in answers) or any(person in step for step in reached):
            return True
    return False


def _iter_paths(expression: Expression) -> Iterator[tuple[int, Related]]:
    """Each relation of a chain that starts from a named person, with that person."""
    start: Expression = expression
    while isinstance(start, Related):
        start = start.of
    if isinstance(expression, Related) and isinstance(start, Named):
        yield start.person, expression
    for part in child_expressions(expression):
        yield from _iter_paths(part)


def _names_missing_value(expression: Expression) -> bool:
    """Whether a part of it asks for people with a value that is none: it was drawn of somebody without the fact."""
    names_none = isinstance(expression, (Having, Only)) and expression.value <= NONE
    return names_none or any(map(_names_missing_value, child_expressions(expression)))


def sample_questions(universe: Universe, fact_sources: FactSources, options: GenerationOptions) -> QuestionSampler:
    """Sample the questions of a world; the same universe and options give the same questions."""
    return QuestionSampler(universe, fact_sources, options)
