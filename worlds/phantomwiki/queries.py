"""Published queries (lists of Prolog goals, the outermost relation first) as expressions."""

from collections.abc import Sequence

from worlds.phantomwiki.prolog import NotProlog, Term, Value, Variable, read_goal
from worlds.phantomwiki.values import FACT_OF, Values
from worlds.questions.evaluate import KIND_OF_FACT
from worlds.questions.expressions import Count, Expression, Fact, Having, Named, People, Related
from worlds.universe.relations import RELATIONS


class UnknownGoal(ValueError):
    """A goal is none that the published grammar makes, or does not hang together with those behind it."""


def read_query(goals: Sequence[str], answer: str, values: Values) -> Expression:
    """What a query asks; UnknownGoal names the goal that cannot be read."""
    reader = _Reader(values)
    if not goals:
        raise UnknownGoal("there is no goal")
    for goal in reversed(goals):
        try:
            reader.read(read_goal(goal))
        except (NotProlog, ValueError) as wrong:
            raise UnknownGoal(f"the goal {goal} cannot be read: {wrong}") from wrong
    if reader.expression is None or reader.bound != answer:
        raise UnknownGoal(f"the goal {goals[0]} does not give the answer {answer}")
    return reader.expression


class _Reader:
    """Reads goals from the innermost one; each speaks of the variable that the one before it has bound."""

    def __init__(self, values: Values) -> None:
        self.expression: Expression | None = None
        self.bound: str | None = None
        self._values = values

    def read(self, goal: Term) -> None:
        """Take one more goal round what was read."""
        match goal:
            case Term("aggregate_all", (Term("count", ()), Term("distinct", (Term() as counted,)), Variable(count))):
                of, _ = self._related(counted)
                self.expression, self.bound = Count(of, each=True), count
            case Term(name, (_, _)) if name in RELATIONS:
                self.expression, self.bound = self._related(goal)
            case Term(name, (Variable(who), str(text))) if name in FACT_OF and self.expression is None:
                fact = FACT_OF[name]
                number = self._values.number(KIND_OF_FACT[fact], text)
                self.expression, self.bound = Having(fact, number), who
            case Term(name, (whose, Variable(value))) if name in FACT_OF:
                self.expression, self.bound = Fact(FACT_OF[name], self._whose(whose)), value
            case _:
                raise ValueError("it is neither a relation, an attribute nor a count of a relation")

    def _related(self, goal: Term) -> tuple[Related, str]:
        match goal:
            case Term(name, (whose, Variable(who))) if name in RELATIONS:
                return Related(name, self._whose(whose)), who
        raise ValueError("a relation leads from somebody to a variable")

    def _whose(self, whose: Value) -> People:
        if isinstance(whose, str):
            if self.expression is not None:
                raise ValueError("what the goals behind it find is not used")
            return Named(self._values.number("person", whose))
        if not isinstance(whose, Variable) or whose.name != self.bound:
            raise ValueError("nothing behind it tells of whom it speaks")
        if not isinstance(self.expression, (Having, Related)):
            raise ValueError("it speaks of what is no person")  # noqa: TRY004 - the query is wrong, not its type
        return self.expression
