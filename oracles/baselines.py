"""Gold replies to the skills of the baselines; oracles/skills.py has those of AtomR, PDRR and GEEK."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from showhow.fiction.questions.reasoning import DIRECT_REASONING, ReasoningNode
from showhow.oracles.reasoning import GoldOperation, GoldReasoning, UnknownOperation, combine_operands, last_leaf
from showhow.reasoners.baselines.chain_of_knowledge import (
    CorrectedRationaleReply,
    CorrectRationaleRequest,
    DraftReply,
    NextRationaleReply,
    NextRationaleRequest,
)
from showhow.reasoners.baselines.probtree import (
    MAX_FILLED_ANSWERS,
    QuestionDecomposition,
    QuestionTreeReply,
    SubQuestion,
)
from showhow.reasoners.baselines.skills import (
    ArticlesQuestion,
    ReasonSentenceReply,
    ReasonSentenceRequest,
    SelfAskReply,
    SelfAskRequest,
)
from showhow.reasoners.geek.skills import ExcavatedFact, fill_numbers
from showhow.reasoners.skills.values import AnswersReply, AnswerValue, ReasonedReply, format_values
from showhow.reasoners.sources import BareQuestion, PassageQuestion


class BaselineOracle:
    """Replies with the gold reasoning of one question, whatever was retrieved."""

    def __init__(self, gold: GoldReasoning) -> None:
        self._gold = gold

    def answer_question(self, request: PassageQuestion | BareQuestion) -> AnswersReply:
        """The gold answers to the question itself, or to that of an operation; unknown for any other."""
        if request.question == self._gold.text:
            return AnswersReply(answers=self._gold.root_answers)
        leaf = self.find_filled_leaf(request.question)
        if leaf is None:
            return AnswersReply(answers=[], unknown=True)
        return AnswersReply(answers=self._evaluate(leaf, {}))

    def find_filled_leaf(self, question: str) -> ReasoningNode | None:
        """The operation that has this question with the gold answers filled in, in any order; None for any other."""
        words = _count_words(question)
        return next((leaf for leaf in self._gold.root.leaves() if _count_words(self._fill_leaf(leaf)) == words), None)

    def _fill_leaf(self, leaf: ReasoningNode) -> str:
        return "".join(
            part if isinstance(part, str) else format_values(self._values_of(part)) for part in leaf.question
        )

    def reason(self, request: PassageQuestion | BareQuestion | ArticlesQuestion) -> ReasonedReply:
        """The gold answers to the question itself, with the gold facts in words, or to a question of the gold tree.

        Unknown for any other.
        """
        node = self.find_question(request.question)
        if node is None:
            return ReasonedReply(reasons="The gold reasoning is about another question.", answers=[], unknown=True)
        if node is not self._gold.root:
            return ReasonedReply(reasons="It is a gold fact.", answers=self._values_of(node))
        return ReasonedReply(reasons=" ".join(self._sentences), answers=self._gold.root_answers)

    def reason_sentence(self, request: ReasonSentenceRequest) -> ReasonSentenceReply:
        """The next gold fact in words with its answers; the last one states those of the question."""
        sentence = next((text for text in self._sentences if text not in request.sentences), self._last_sentence)
        if sentence != self._last_sentence:
            return ReasonSentenceReply(sentence=sentence)
        return ReasonSentenceReply(sentence=sentence, final=AnswersReply(answers=self._gold.root_answers))

    def self_ask(self, request: SelfAskRequest) -> SelfAskReply:
        """The answers to the pending follow-up about the earlier answers, then the next sub-question to look up.

        Unknown for a follow-up that is no sub-question, and for answers that the universe does not have.
        """
        try:
            return self._continue_asking(request)
        except UnknownOperation:
            unknown = AnswersReply(answers=[], unknown=True)
            return SelfAskReply(intermediate=None if request.pending is None else unknown, final=unknown)

    def _continue_asking(self, request: SelfAskRequest) -> SelfAskReply:
        looked_up = [leaf for leaf, _ in self._gold.subquestions if leaf.needs_retrieval]
        given = [answer.answers for answer in request.answered]
        known = self._evaluate_all(dict(zip(looked_up, given, strict=False)))
        intermediate = None
        if request.pending is not None:
            position = len(given)
            texts = self._fill_texts(known)
            if position >= len(looked_up) or texts[looked_up[position]] != request.pending:
                raise UnknownOperation(request.pending)
            intermediate = AnswersReply(answers=known[looked_up[position]])
            given = [*given, intermediate.answers]
        if len(given) < len(looked_up) and request.left:
            return SelfAskReply(intermediate=intermediate, follow_up=self._fill_texts(known)[looked_up[len(given)]])
        return SelfAskReply(intermediate=intermediate, final=AnswersReply(answers=known[last_leaf(self._gold.root)]))

    def find_follow_up(self, request: SelfAskRequest) -> tuple[GoldOperation, list[AnswerValue]]:
        """The operation of the pending follow-up, and the things that it is about."""
        looked_up = [leaf for leaf, _ in self._gold.subquestions if leaf.needs_retrieval]
        given = [answer.answers for answer in request.answered]
        if len(given) >= len(looked_up):
            raise UnknownOperation(request.pending or "")
        known = self._evaluate_all(dict(zip(looked_up, given, strict=False)))
        leaf = looked_up[len(given)]
        return self._gold.operation_of(leaf), self._inputs_of(leaf, known)

    def draft_rationales(self, _request: BareQuestion) -> DraftReply:
        """The different gold facts in words, and the gold answers."""
        return DraftReply(rationales=list(dict.fromkeys(self._sentences)), answers=self._gold.root_answers)

    def next_rationale(self, request: NextRationaleRequest) -> NextRationaleReply:
        """The next gold fact in words."""
        remaining = [text for text in self._sentences if text not in request.corrected]
        return NextRationaleReply(rationale=remaining[0] if remaining else self._last_sentence)

    def correct_rationale(self, request: CorrectRationaleRequest) -> CorrectedRationaleReply:
        """A gold fact in words as it is; others are not told."""
        is_gold = request.rationale in self._sentences
        return CorrectedRationaleReply(rationale=request.rationale, unknown=not is_gold)

    def question_tree(self, _request: BareQuestion) -> QuestionTreeReply:
        """The gold tree without searches for the things that the question names, which take no question."""
        numbers = self._gold.numbers
        return QuestionTreeReply(
            decompositions=[
                QuestionDecomposition(
                    of=numbers[node],
                    into=[SubQuestion(id=numbers[child], question=self._write_question(child)) for child in children],
                )
                for node, children in self._tree_children.items()
            ]
        )

    def find_question(self, question: str) -> ReasoningNode | None:
        """The node of the gold tree with this question, the gold answers filled in; None for another question."""
        return self._tree_questions.get(question)

    def match_children(self, node: ReasoningNode, state: Sequence[ExcavatedFact]) -> dict[ReasoningNode, int]:
        """The children of a node of the tree that the facts answer, with the numbers of the facts."""
        numbers = {fact.question: fact.number for fact in state}
        texts = {child: self._write_question(child) for child in self._tree_children.get(node, ())}
        return {child: numbers[text] for child, text in texts.items() if text in numbers}

    def lacks_facts(self, node: ReasoningNode, state: Sequence[ExcavatedFact]) -> bool:
        """Whether facts about all children of a node are there and one is unknown, or a gold rationale is missing."""
        if any(not fact.question for fact in state):
            return not set(self._sentences) <= {fact.fact for fact in state}
        children = self.match_children(node, state)
        is_tree = bool(children) and len(children) == len(self._tree_children[node])
        return is_tree and any(fact.unknown for fact in state if fact.number in children.values())

    @cached_property
    def _tree_children(self) -> dict[ReasoningNode, list[ReasoningNode]]:
        """The inner nodes with those of their children that take a question; a single one is the node itself."""
        children = {
            node: [child for child in node.children if child.children or _takes_question(child)]
            for node in self._gold.numbers
        }
        reached, splits = [self._gold.root], {}
        for node in reached:
            if len(children[node]) > 1:
                splits[node] = children[node]
                reached += children[node]
        return splits

    @cached_property
    def _tree_questions(self) -> dict[str, ReasoningNode]:
        """The nodes of the tree by their questions, with the gold answers filled in."""
        nodes = [child for children in self._tree_children.values() for child in children]
        return {self._fill_question(node): node for node in (self._gold.root, *nodes)}

    def _write_question(self, node: ReasoningNode) -> str:
        """The question of a node: #3 for the answers of a question of the tree, others by name."""
        asked = {child for children in self._tree_children.values() for child in children}
        return "".join(
            part
            if isinstance(part, str)
            else f"#{self._gold.numbers[part]}"
            if part in asked
            else format_values(self._values_of(part), MAX_FILLED_ANSWERS)
            for part in node.question
        )

    def _fill_question(self, node: ReasoningNode) -> str:
        facts = [
            ExcavatedFact(number=number, question="", fact="", answers=self._values_of(other))
            for other, number in self._gold.numbers.items()
        ]
        return fill_numbers(self._write_question(node), facts, MAX_FILLED_ANSWERS)

    @cached_property
    def _sentences(self) -> list[str]:
        """The gold facts in words with their answers, in order; the last one states those of the question."""
        known = self._complete
        texts = self._fill_texts(known)
        return [f"{text} {format_values(known[leaf])}." for leaf, text in texts.items()]

    @property
    def _last_sentence(self) -> str:
        return self._sentences[-1]

    def _evaluate_all(self, given: Mapping[ReasoningNode, list[AnswerValue]]) -> dict[ReasoningNode, list[AnswerValue]]:
        """The answers of all leaves: those that are given, and what follows from them for the others."""
        computed: dict[ReasoningNode, list[AnswerValue]] = {}
        for leaf in self._gold.root.leaves():
            computed[leaf] = given[leaf] if leaf in given else self._evaluate(leaf, computed)
        return computed

    def _fill_texts(self, known: Mapping[ReasoningNode, list[AnswerValue]]) -> dict[ReasoningNode, str]:
        """The sub-questions with their references filled in by the known answers."""
        facts = [
            ExcavatedFact(number=number, question=text, fact="", answers=known[leaf])
            for number, (leaf, text) in enumerate(self._gold.subquestions, 1)
        ]
        return {leaf: fill_numbers(text, facts) for leaf, text in self._gold.subquestions}

    def _values_of(self, node: ReasoningNode) -> list[AnswerValue]:
        return [self._gold.to_value(node.kind, number) for number in node.values.tolist()]

    def _evaluate(self, leaf: ReasoningNode, known: Mapping[ReasoningNode, list[AnswerValue]]) -> list[AnswerValue]:
        """The answers of a leaf about the known answers of its inputs, or about the gold ones where none are known."""
        if leaf.operator != DIRECT_REASONING:
            return self._gold.apply(self._gold.operation_of(leaf), self._inputs_of(leaf, known))
        lasts = [last_leaf(node) for node in leaf.inputs]
        return combine_operands(leaf, [known[last] if last in known else self._complete[last] for last in lasts])

    @cached_property
    def _complete(self) -> dict[ReasoningNode, list[AnswerValue]]:
        """The gold answers of all leaves, with what they belong to."""
        return self._evaluate_all({})

    def _inputs_of(self, leaf: ReasoningNode, known: Mapping[ReasoningNode, list[AnswerValue]]) -> list[AnswerValue]:
        """The things that the operation of a leaf is about."""
        lasts = [(node, last_leaf(node)) for node in leaf.inputs[:1]]
        return next((known[last] if last in known else self._values_of(node) for node, last in lasts), [])


def _takes_question(leaf: ReasoningNode) -> bool:
    """Whether it asks more than which thing a name of the question names."""
    return leaf.needs_retrieval or leaf.operator == DIRECT_REASONING


def _count_words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[^\s,?]+", text))
