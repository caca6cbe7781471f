"""Questions of the published grammar: a chain of relations from one start, and the question at its end."""

from dataclasses import dataclass

from fiction.phantomwiki.prolog import quote_string
from fiction.phantomwiki.records import ATTRIBUTE_WORDS, FACT_ATTRIBUTES, ValueCodec
from fiction.questions.evaluate import FACT_VALUE_KINDS
from fiction.questions.expressions import Count, Expression, Fact, Having, Named, People, Related
from fiction.universe.relations import RELATIONS

WHO, WHAT, HOW_MANY = "who", "what", "how many"
GRAMMAR_DEPTH = 20
"""Depth of the grammar in the paper's evaluation."""


@dataclass(frozen=True, slots=True)
class RelationChain:
    """A question of the published grammar; `target` is the attribute of WHAT or the counted relation of HOW_MANY."""

    kind: str
    target: str | None
    relations: tuple[str, ...]
    """Outermost first."""
    start: Named | Having

    def build_goals(self, values: ValueCodec) -> tuple[list[str], str]:
        """Build the query (goals, outermost first) and its answer variable."""
        place, goals = 2 if self.kind == WHO else 3, []
        if self.kind == WHAT:
            goals.append((str(self.target), "Y_2"))
        elif self.kind == HOW_MANY:
            goals.append((str(self.target), "Y_1"))
        for relation in self.relations:
            goals.append((relation, f"Y_{place}"))
            place += 2
        written = []
        for number, (name, variable) in enumerate(goals):
            whose = goals[number + 1][1] if number + 1 < len(goals) else f"Y_{place}"
            if number + 1 == len(goals) and isinstance(self.start, Named):
                whose = quote_string(values.format_value("person", self.start.person))
            written.append(f"{name}({whose}, {variable})")
        if isinstance(self.start, Having):
            written.append(f"{FACT_ATTRIBUTES[self.start.fact]}(Y_{place}, {quote_string(self._value(values))})")
        if self.kind == HOW_MANY:
            written[0] = f"aggregate_all(count, distinct({written[0]}), Count_1)"
            return written, "Count_1"
        return written, "Y_2"

    def build_template(self) -> list[str]:
        """Words and numbered placeholders of its template."""
        place = 3 if self.kind == WHO else 4
        tokens = {
            WHO: ["Who is"],
            WHAT: ["What is", "the", "<attribute_name>_3", "of"],
            HOW_MANY: ["How many", "<relation_plural>_2", "does"],
        }[self.kind]
        for _ in self.relations:
            tokens += ["the", f"<relation>_{place}", "of"]
            place += 2
        if isinstance(self.start, Named):
            tokens.append(f"<name>_{place - 1}")
        else:
            tokens += ["the person whose", f"<attribute_name>_{place}", "is", f"<attribute_value>_{place}"]
        return [*tokens, "have", "?"] if self.kind == HOW_MANY else [*tokens, "?"]

    def format_text(self, values: ValueCodec) -> str:
        """The English text."""
        path = "".join(f"the {RELATIONS[relation].singular} of " for relation in self.relations)
        if isinstance(self.start, Named):
            whom = values.format_value("person", self.start.person)
        else:
            whom = f"the person whose {ATTRIBUTE_WORDS[FACT_ATTRIBUTES[self.start.fact]]} is {self._value(values)}"
        if self.kind == WHO:
            return f"Who is {path}{whom}?"
        if self.kind == WHAT:
            return f"What is the {ATTRIBUTE_WORDS[str(self.target)]} of {path}{whom}?"
        return f"How many {RELATIONS[str(self.target)].plural} does {path}{whom} have?"

    def template_number(self, depth: int = GRAMMAR_DEPTH) -> int:
        """Number of its template in a grammar of this depth."""
        last, deepest = self.depth - 1, depth - 1
        before = {WHO: 0, WHAT: deepest - 2, HOW_MANY: 2 * deepest - 5}[self.kind]
        return before + deepest - last

    @property
    def depth(self) -> int:
        """Minimum depth of a grammar that contains it."""
        place = (3 if self.kind == WHO else 4) + 2 * len(self.relations)
        return place if isinstance(self.start, Named) else place + 1

    def _value(self, values: ValueCodec) -> str:
        assert isinstance(self.start, Having)  # noqa: S101 - narrows the type; callers check it
        return values.format_value(FACT_VALUE_KINDS[self.start.fact], self.start.value)


def to_chain(expression: Expression) -> RelationChain | None:
    """Convert an expression to a chain; None if the published grammar cannot express it."""
    match expression:
        case Fact(fact, of) if fact in FACT_ATTRIBUTES:
            return _build_chain(WHAT, FACT_ATTRIBUTES[fact], of)
        case Count(Related(relation, of)) if relation in RELATIONS:
            return _build_chain(HOW_MANY, relation, of)
        case Related() | Having():
            return _build_chain(WHO, None, expression)
    return None


def _build_chain(kind: str, target: str | None, people: People) -> RelationChain | None:
    relations, start = [], people
    while isinstance(start, Related):
        relations.append(start.relation)
        start = start.of
    if not set(relations) <= RELATIONS.keys():
        return None
    if isinstance(start, Named):
        # "What is the hobby of Ann Lee?" is one goal, and none of the published templates.
        return None if kind == WHAT and not relations else RelationChain(kind, target, tuple(relations), start)
    if isinstance(start, Having) and start.fact in FACT_ATTRIBUTES:
        return RelationChain(kind, target, tuple(relations), start)
    return None
