"""Compares the parts of a run with the gold reasoning of its question: nodes of AtomR, triples of PDRR, facts of GEEK.

    verdicts = compare_with_gold("atomr", record.steps, GoldReasoning(world, question.text, question.details))
    wrong = find_first_difference(verdicts)

The gold answers of a part are those that its question has with the gold answers of the parts that it refers to, so that
the first difference is the first mistake, not what followed from it. A part whose question the gold reasoning does not
know has no verdict.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from showhow.db.models import Step
from showhow.db.run_spec import MODEL_SKILLS
from showhow.evaluation.datasets.record import parse_question
from showhow.fiction.questions.question_file import QUESTIONS_FILE, QuestionFile
from showhow.oracles.gold_traces.traces import open_gold_world
from showhow.oracles.reader import ReaderResponder
from showhow.oracles.reasoning import GoldReasoning
from showhow.oracles.skill_sources import GoldSkillSource
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.answers.normalization import answers_equal
from showhow.reasoners.atomr.skills import PLAN, OperateRequest, PlanArgument, PlanNode, PlanReply, list_dependencies
from showhow.reasoners.geek.skills import ExcavatedFact, ExtractRequest, known_references
from showhow.reasoners.pdrr.skills import TRIPLES, TriplesReply
from showhow.reasoners.pdrr.triples import ScheduledTriple, join_values, list_ancestors, schedule_triples
from showhow.reasoners.skills.skill import Responder, SkillSteps
from showhow.reasoners.skills.values import AnswerValue, OperandValue, distinct_values, format_values
from showhow.runs.services import Services
from showhow.worlds.folder import WorldError, world_folder

_REFERENCE = re.compile(r"\[(\d{1,9})\]")
GoldAnswers = list[AnswerValue] | None
"""The gold answers of a part; None if the gold reasoning does not know its question."""


@dataclass(frozen=True, slots=True)
class GoldVerdict:
    """Whether the answers of one part of a run are the gold ones."""

    position: int
    """The position of the part's step."""
    is_equal: bool
    gold: str
    """The gold answers in words."""


def compare_with_gold(reasoner: str, steps: Sequence[Step], gold: GoldReasoning) -> list[GoldVerdict]:
    """The verdicts on the parts that are finished and known to the gold reasoning, in the order of their dependence."""
    list_gold_answers = _METHODS.get(reasoner)
    if list_gold_answers is None:
        return []
    return [
        GoldVerdict(step.position, are_equal(answers, expected), format_values(expected))
        for step, answers, expected in list_gold_answers(SkillSteps(steps), gold)
        if expected is not None
    ]


def summarize_verdicts(verdicts: Sequence[GoldVerdict]) -> dict[str, Any]:
    """The comparison as the page draws it: a sentence, the first difference, and the positions of parts that agree."""
    first = find_first_difference(verdicts)
    if first is not None:
        sentence = f"The first difference from the gold answers is at step {first.position}."
    elif verdicts:
        sentence = f"The parts that can be compared, {len(verdicts)}, have the gold answers."
    else:
        sentence = "The gold reasoning has no part that can be compared with this run."
    return {
        "sentence": sentence,
        "first": first and {"position": first.position, "gold": first.gold},
        "agreeing": [verdict.position for verdict in verdicts if verdict.is_equal],
    }


def open_gold_reasoning(services: Services, world: str) -> Callable[[str], GoldReasoning | None]:
    """What finds the gold reasoning of a generated question of a world, as `find_gold_reasoning` does."""
    file = world_folder(services.settings.worlds_folder, world) / QUESTIONS_FILE
    questions = QuestionFile(file)
    heads = {head.text: head for head in reversed(questions.heads)}
    opened = cache(lambda: open_gold_world(services, world))

    def find(question: str) -> GoldReasoning | None:
        if (head := heads.get(question)) is None:
            return None
        details = parse_question(questions.load_row(head), file, head.line).details
        return GoldReasoning(opened(), question, details) if "expression" in details else None

    return find


def find_gold_reasoning(services: Services, world: str, question: str) -> GoldReasoning | None:
    """The gold reasoning of a generated question; None for any other one. WorldError for a world without a universe."""
    return open_gold_reasoning(services, world)(question)


def find_gold_responder(services: Services, skills: str, world: str, question: str) -> Responder | None:
    """What replies to the skills of a question by this source of ASK_SKILLS; None for the model.

    WorldError if the question has no gold reasoning.
    """
    if skills == MODEL_SKILLS:
        return None
    gold = find_gold_reasoning(services, world, question)
    if gold is None:
        raise WorldError(f"The world {world} has no gold reasoning for this question; let the model play its skills.")
    return GoldSkillSource(reads=skills == ReaderResponder.name).make_responder(gold)


def can_compare(reasoner: str | None) -> bool:
    """Whether the runs of a reasoner have parts that the gold reasoning can be compared with."""
    return reasoner in _METHODS


def find_first_difference(verdicts: Iterable[GoldVerdict]) -> GoldVerdict | None:
    """The first part whose answers are not the gold ones; None if there is none."""
    return next((verdict for verdict in verdicts if not verdict.is_equal), None)


ComparedParts = Iterator[tuple[Step, Sequence[AnswerValue], GoldAnswers]]
"""The steps of finished parts, each with its answers and the gold ones."""


def _compare_nodes(steps: SkillSteps, gold: GoldReasoning) -> ComparedParts:
    planned = steps.reply(PLAN.name)
    if planned is None:
        return
    nodes = PlanReply.model_validate(planned[1]).by_id
    tree = _GoldTree(gold)
    for number in _order_by_dependence(nodes):
        expected = tree.answer(nodes[number])
        step = steps.spans.get(str(number))
        if step is not None and steps.result(step):
            yield step, _read_answers(steps.result(step).get("answers", ())), expected


class _GoldTree:
    """The gold answers of the nodes of a plan, each found after those that it refers to."""

    def __init__(self, gold: GoldReasoning) -> None:
        self._gold = gold
        self._oracle = OracleResponder(gold)
        self._known: dict[int, GoldAnswers] = {}
        self._gold_numbers: dict[int, int] = {}
        """The nodes of the plan that ask what a node of the gold tree asks, with its number."""
        self._gold_nodes = {gold.question_of(node): (number, node) for node, number in gold.numbers.items()}

    def answer(self, node: PlanNode) -> GoldAnswers:
        """The gold answers of a node, whose references are all known."""
        self._known[node.id] = answers = self._find_answers(node)
        return answers

    def _find_answers(self, node: PlanNode) -> GoldAnswers:
        if node.id == 0:
            return self._gold.root_answers
        question = _REFERENCE.sub(lambda match: f"[{self._gold_numbers.get(int(match[1]), '?')}]", node.question)
        if question in self._gold_nodes:
            self._gold_numbers[node.id], same = self._gold_nodes[question]
            return [self._gold.to_value(same.kind, value) for value in same.values.tolist()]
        if node.from_last and node.children:
            return self._known[node.children[-1]]
        if node.op is None or node.op == "DR" or any(self._known[number] is None for number in node.references):
            return None
        operands = [self._to_operand(argument) for argument in node.args]
        reply = self._oracle.operate(OperateRequest(op=node.op, question=node.question, args=operands, passages=[]))
        return None if reply.unknown else list(reply.answers)

    def _to_operand(self, argument: PlanArgument) -> OperandValue:
        if argument.ref is None:
            return OperandValue(text=argument.text)
        return OperandValue(values=distinct_values(self._known[argument.ref] or ()))


def _order_by_dependence(nodes: Mapping[int, PlanNode]) -> list[int]:
    """The nodes, each after those that it depends on; a plan has no cycles."""
    order: dict[int, None] = {}

    def visit(number: int) -> None:
        for dependency in sorted(list_dependencies(nodes[number]) - order.keys()):
            visit(dependency)
        order[number] = None

    visit(0)
    return list(order)


def _compare_triples(steps: SkillSteps, gold: GoldReasoning) -> ComparedParts:
    decomposed = steps.reply(TRIPLES.name)
    if decomposed is None:
        return
    completed: dict[int, tuple[ScheduledTriple, list[AnswerValue]]] = {}
    scheduled = schedule_triples(TriplesReply.model_validate(decomposed[1]).triples)
    for entry in scheduled:
        asked = entry.triple
        gold_triple = gold.triples[entry.number] if entry.number < len(gold.triples) else asked
        # Where only the relation differs from that of the gold triple, the relation is the mistake.
        is_same_place = (gold_triple.subject, gold_triple.object) == (asked.subject, asked.object)
        earlier = [
            completed[source.number] for source in list_ancestors(entry, scheduled) if source.number in completed
        ]
        gold_entry = replace(entry, triple=gold_triple) if is_same_place else entry
        pairs = gold.complete_triple(gold_entry, join_values(earlier))
        if pairs is not None:
            completed[entry.number] = (entry, pairs)
        expected = {} if pairs is None else join_values([*earlier, (entry, pairs)])
        step = steps.latest_span(f"triple/{entry.number + 1}")
        values = steps.result(step).get("values", {})
        for unknown in asked.unknowns[::-1]:
            if step is not None and unknown in values:
                answers, gold_answers = _read_answers(values[unknown]), expected.get(unknown)
                is_pruned = "chains" in steps.result(step)
                yield step, answers, _select_kept(answers, gold_answers) if is_pruned and gold_answers else gold_answers
                break


def _select_kept(answers: Sequence[AnswerValue], expected: Sequence[AnswerValue]) -> list[AnswerValue]:
    """Of the gold answers those that chains kept; all of them if the chains kept none, or also others."""
    keys = {answer.key for answer in answers}
    kept = [value for value in expected if value.key in keys]
    return kept if kept and len(kept) == len(keys) else list(expected)


@dataclass(frozen=True, slots=True)
class ComparedFact:
    """A sub-question that GEEK answered, with its gold answers."""

    lane: str
    step: Step
    answers: Sequence[AnswerValue]
    expected: GoldAnswers
    how: str
    """retrieved, wider search or concluded."""

    @property
    def is_right(self) -> bool:
        """Whether its answers are the gold ones."""
        return self.expected is not None and are_equal(self.answers, self.expected)


def _compare_facts(steps: SkillSteps, gold: GoldReasoning) -> ComparedParts:
    for fact in iterate_facts(steps, gold):
        yield fact.step, fact.answers, fact.expected


def iterate_facts(steps: SkillSteps, gold: GoldReasoning) -> Iterator[ComparedFact]:
    """The facts of a run of GEEK, in the order of their steps."""
    oracle = OracleResponder(gold)
    expected_facts: dict[str, ExcavatedFact] = {}
    for node, step in steps.spans.items():
        data = steps.result(step)
        if "planned" not in data:
            continue
        lane, _, number = node.rpartition("/")
        state = [fact for place, fact in expected_facts.items() if is_within(lane, place.rpartition("/")[0])]
        references = dict(known_references(data["planned"], state))
        request = ExtractRequest(
            question=gold.text, planned=data["planned"], references=references, state=state, pseudo="", passages=[]
        )
        reply = oracle.extract(request)
        answers = _read_answers(data.get("answers", ()))
        known = answers if reply.unknown else reply.answers
        expected_facts[node] = ExcavatedFact(number=int(number), question=data["planned"], fact="", answers=known)
        expected = None if reply.unknown else reply.answers
        yield ComparedFact(lane, step, answers, expected, str(data.get("how")))


def is_within(lane: str, other: str) -> bool:
    """Whether a lane is the other one, or branched off from it."""
    return lane == other or lane.startswith(f"{other}.")


_METHODS: Mapping[str, Callable[[SkillSteps, GoldReasoning], ComparedParts]] = {
    "atomr": _compare_nodes,
    "pdrr": _compare_triples,
    "geek": _compare_facts,
}


def _read_answers(entries: Iterable[Any]) -> list[AnswerValue]:
    return [AnswerValue.model_validate(entry) for entry in entries]


def are_equal(answers: Sequence[AnswerValue], expected: Sequence[AnswerValue]) -> bool:
    """Whether two sets of answers are equal: by entity, or else by their texts."""
    keys, expected_keys = {value.key for value in answers}, {value.key for value in expected}
    rest = [value for value in answers if value.key not in expected_keys]
    missing = [value for value in expected if value.key not in keys]
    return all(any(_names_same(value, other) for other in expected) for value in rest) and all(
        any(_names_same(value, other) for other in answers) for value in missing
    )


def _names_same(first: AnswerValue, second: AnswerValue) -> bool:
    if first.entity is not None and second.entity is not None:
        return first.entity == second.entity
    return answers_equal(first.text, second.text)
