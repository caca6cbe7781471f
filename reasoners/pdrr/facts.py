"""The facts that complete a triple: those of the relations that a skill chooses in the graph, else those of texts.

A set of known values is asked for together and has all its facts; a single value has at most MAX_FACTS of a relation,
as in the published code, from which some may be pruned.

Along a chain of triples the skill would be asked about one after the other. Where the words of a triple name a relation
that its known values have, such as mother, the finder looks ahead: it follows that relation, and asks about the next
triples at the same time. What it asked about other values than the reply leads to is asked again.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from showhow.reasoners.base import Branch, CallBudget, Fan, Move, Parallel, StepCompletion, Task, fit_to_budget
from showhow.reasoners.graph_retrieval import MAX_SAMPLED
from showhow.reasoners.pdrr.skills import (
    COMPLETE,
    RELATIONS,
    CandidateFact,
    ChosenRelation,
    CompleteRequest,
    RelationsReply,
    RelationsRequest,
)
from showhow.reasoners.pdrr.triples import ScheduledTriple, join_values, list_ancestors, name_owners
from showhow.reasoners.retrieval import Retriever
from showhow.reasoners.skills.skill import SkillCall, SkillResult
from showhow.reasoners.skills.values import (
    WITHOUT_SUPPORT,
    AnswerValue,
    GraphFact,
    OfferedRelation,
    SourcePassage,
    distinct_passages,
    distinct_values,
    format_values,
)
from showhow.reasoners.sources import WIDER_RETRIEVALS, RetrievalQuery
from showhow.worlds.lexicon import kinship

MAX_FACTS = 100
"""Facts of one relation of a single value; the tools list no more of them."""
GRAPH_STEP_TOOLS = ("getRelationsAsHead", "getRelationsAsTail", "runQuery", "getWikiDataID")
VALUE_TOOLS = ("getTailEntities", "getHeadEntities")
"""The tools that list the facts of a single value."""


@dataclass(slots=True)
class TripleFacts:
    """What completed one triple: pairs of known and other values, and the passages that state them."""

    pairs: list[AnswerValue] = field(default_factory=list)
    """The values of the other end; `of` is the key of the known value."""
    passages: list[SourcePassage] = field(default_factory=list)
    relations: list[ChosenRelation] = field(default_factory=list)
    from_graph: bool = True
    kept: list[CandidateFact] | None = None
    """The facts about single values; None if known values were asked for as a set."""
    left_out: int = 0
    """Facts beyond MAX_FACTS, as far as the graph can count them."""


@dataclass(frozen=True, slots=True)
class OpenTriple:
    """A triple of the schedule with the place and the span of its steps."""

    entry: ScheduledTriple
    place: str
    span: UUID


@dataclass(slots=True)
class _Choice:
    """The relations that a skill chose, or is asked to choose, for a triple about these known values."""

    place: str
    known: Sequence[AnswerValue]
    offered: Sequence[OfferedRelation] = ()
    chosen: list[tuple[ChosenRelation, OfferedRelation]] = field(default_factory=list)
    followed: dict[tuple[str, str], tuple[list[AnswerValue], list[SourcePassage]]] = field(default_factory=dict)
    """The facts of relations that were followed before the reply, by id and direction."""

    @property
    def guessed_pairs(self) -> list[AnswerValue]:
        """The values of the other end if the relations that were followed are chosen."""
        return name_owners([pair for pairs, _ in self.followed.values() for pair in pairs], self.known)


class TripleFactFinder:
    """Finds the facts of one question's triples; counts the calls of skills that this takes."""

    def __init__(
        self, task: Task, sources: Sequence[str], passages: int, *, has_graph: bool, as_sentences: bool = False
    ) -> None:
        self._task = task
        self._sources = sources
        self._has_graph = has_graph
        self._as_sentences = as_sentences
        self._retriever = Retriever(task, passages)
        self.expected_calls = 0
        self.completions = 0
        """How often a triple was completed from passages."""
        self.failures: list[str] = []
        """Why replies that choose or state facts were not usable."""
        self.unread: list[str] = []
        """The places of triples whose texts the budget had no room for."""
        self.reserved_calls = 0
        """Calls of the model that are still to be made for other facts and the answer; no texts are read with these."""
        self.triples: Mapping[int, OpenTriple] = {}
        """All triples of the schedule, by number."""
        self.completed: dict[int, TripleFacts] = {}
        """By the number of the triple."""
        self._choices: dict[int, _Choice] = {}
        """By the number of the triple; of triples that are not completed, those that were looked ahead to."""

    @property
    def triple_cost(self) -> CallBudget:
        """What one triple needs of the budget, about: with a graph it reads texts only where the graph is silent."""
        # The name, the relations both ways and the facts of one; or else a search and an article.
        return CallBudget(1, 4 if self._has_graph else 2 * len(self._sources))

    @property
    def wider_retrievals(self) -> int:
        """The retrievals of a wider search for one triple, about."""
        return WIDER_RETRIEVALS * (len(self._sources) + self._has_graph)

    def note_failure(self, result: SkillResult[Any]) -> None:
        """Keep why a reply was not usable, so that the question does not count as refused by the model."""
        if result.fallback is not None and result.error not in (None, WITHOUT_SUPPORT):
            self.failures.append(str(result.error))

    def _write_fact(self, passage: SourcePassage, relation: OfferedRelation) -> SourcePassage:
        """A fact of the graph in the form in which it goes to the answer."""
        cells = passage.text.split(" | ")
        if not self._as_sentences or len(cells) not in (2, 3):
            return passage
        # A row has the known value first, a fact with its relation the subject.
        subject, object_ = cells[0], cells[-1]
        if len(cells) == 2 and relation.direction == "tail":
            subject, object_ = object_, subject
        return passage.model_copy(update={"text": f"The {relation.label} of {subject} is {object_}."})

    def know(self, end: str, place: str, span: UUID) -> Generator[Move, Any, list[AnswerValue]]:
        """The value of an end that the question names, with its id in the graph."""
        if not self._has_graph:
            return [AnswerValue(text=end)]
        entity = yield from self._retriever.link(end, f"{place}/link", span)
        return [AnswerValue(text=end, entity=entity)]

    def find_for_set(
        self, triple: OpenTriple, known: Sequence[AnswerValue], keep: int
    ) -> Generator[Move, Any, TripleFacts]:
        """All facts of at most `keep` relations of the known values; where there are none, those of texts."""
        entry, place, span = triple.entry, triple.place, triple.span
        facts = TripleFacts()
        if known and self._has_graph:
            choice = self._choices.get(entry.number)
            if choice is None or choice.known != known:
                yield from self._look_ahead(triple, known, keep)
                choice = self._choices[entry.number]
            # A triple that was looked ahead to needs no call for itself; what was asked in vain is not expected.
            self.expected_calls += bool(choice.offered)
            facts.relations = [relation for relation, _ in choice.chosen]
            missing = [relation for _, relation in choice.chosen if relation.key not in choice.followed]
            followed = choice.followed | (yield from self._follow(missing, known, f"{choice.place}/chosen", span))
            results = [followed[relation.key] for _, relation in choice.chosen]
            facts.pairs = [pair for pairs, _ in results for pair in pairs]
            facts.passages = [
                self._write_fact(passage, relation)
                for (_, relation), (_, passages) in zip(choice.chosen, results, strict=True)
                for passage in passages
            ]
        return facts if facts.pairs or not known else (yield from self._read_texts(entry, known, facts, place, span))

    def _look_ahead(self, first: OpenTriple, known: Sequence[AnswerValue], keep: int) -> Generator[Move, Any, None]:
        """Choose the relations of a triple, and of those that follow it by relations that their words name."""
        reached = [(first, self._reach(first, known))]
        for triple, choice in reached:
            place, span = choice.place, triple.span
            choice.offered = yield from self._retriever.list_relations(choice.known[:MAX_SAMPLED], place, span)
            if not self._task.may_guess_for(RELATIONS.name):
                break
            guess = guess_relations(triple.entry, choice.offered)[:keep]
            choice.followed = yield from self._follow(guess, choice.known, f"{place}/facts", span)
            if choice.guessed_pairs:
                reached += [
                    (follower, self._reach(follower, guessed))
                    for follower in self.triples.values()
                    if triple.entry.number in follower.entry.after and (guessed := self._guess_known(follower.entry))
                ]
        yield Parallel([Branch(triple.place, self._choose(triple, choice, keep)) for triple, choice in reached])

    def _reach(self, triple: OpenTriple, known: Sequence[AnswerValue]) -> _Choice:
        """Begin the choice for a triple; where one was begun about other values, at another place."""
        former = self._choices.get(triple.entry.number)
        choice = _Choice(triple.place if former is None else f"{former.place}/anew", list(known))
        self._choices[triple.entry.number] = choice
        return choice

    def _guess_known(self, entry: ScheduledTriple) -> list[AnswerValue]:
        """The known values of a triple if all guesses are right; none if they are unclear, or were asked about."""
        ancestors = list_ancestors(entry, [triple.entry for triple in self.triples.values()])
        pairs = [
            self.completed[ancestor.number].pairs
            if ancestor.number in self.completed
            else self._choices[ancestor.number].guessed_pairs
            if ancestor.number in self._choices
            else []
            for ancestor in ancestors
        ]
        known = join_values(list(zip(ancestors, pairs, strict=True)))[entry.known_end] if all(pairs) else []
        return known if entry.number not in self._choices or self._choices[entry.number].known != known else []

    def _choose(self, triple: OpenTriple, choice: _Choice, keep: int) -> Generator[Move, Any, None]:
        """Let the skill choose relations for a triple that was reached."""
        choice.chosen = yield from self._ask_relations(
            triple.entry, choice.known, choice.offered, keep, choice.place, triple.span
        )

    def _follow(
        self, relations: Sequence[OfferedRelation], known: Sequence[AnswerValue], node: str, span: UUID
    ) -> Generator[Move, Any, dict[tuple[str, str], tuple[list[AnswerValue], list[SourcePassage]]]]:
        """The facts of each relation, by its id and direction."""
        results: list[tuple[list[AnswerValue], list[SourcePassage]]] = yield Parallel(
            [
                Branch(
                    str(number),
                    self._retriever.follow_relation(relation.id, relation.direction, known, f"{node}{number}", span),
                )
                for number, relation in enumerate(relations)
            ]
        )
        return {relation.key: result for relation, result in zip(relations, results, strict=True)}

    def find_for_value(
        self, entry: ScheduledTriple, known: AnswerValue, keep: int, place: str, span: UUID
    ) -> Generator[Move, Any, TripleFacts]:
        """The facts of at most `keep` relations of one value, each other end once; where there are none, of texts."""
        facts = TripleFacts()
        if self._has_graph:
            offered = yield from self._retriever.list_relations([known], place, span)
            chosen = yield from self._ask_relations(entry, [known], offered, keep, place, span)
            self.expected_calls += bool(offered)
            facts.relations = [relation for relation, _ in chosen]
            results: list[tuple[list[GraphFact], int | None]] = yield Parallel(
                [
                    Branch(
                        str(number),
                        self._retriever.list_neighbours(known, offered, f"{place}/facts{number}", span),
                    )
                    for number, (_, offered) in enumerate(chosen)
                ]
            )
            by_other = {fact.other.key: fact for listing, _ in reversed(results) for fact in reversed(listing)}
            graph_facts = [fact for listing, _ in results for fact in listing if by_other[fact.other.key] is fact]
            facts.left_out = sum(total - len(listing) for listing, total in results if total is not None)
            facts.passages = [self._write_fact(fact.passage, fact.relation) for fact in graph_facts]
            facts.kept = [
                CandidateFact(known=known, relation=fact.relation.label, other=fact.other, support=(fact.id,))
                for fact in graph_facts
            ]
        if not facts.kept:
            facts = yield from self._read_texts(entry, [known], facts, place, span)
            support = tuple(passage.id for passage in facts.passages)
            facts.kept = [
                CandidateFact(known=known, relation=entry.triple.relation, other=other, support=support)
                for other in distinct_values(facts.pairs)
            ]
        facts.pairs = [fact.other.model_copy(update={"of": known.key}) for fact in facts.kept]
        return facts

    def _ask_relations(  # noqa: PLR0913, PLR0917 - each is a part of the request or of its place
        self,
        entry: ScheduledTriple,
        known: Sequence[AnswerValue],
        offered: Sequence[OfferedRelation],
        keep: int,
        place: str,
        span: UUID,
    ) -> Generator[Move, Any, list[tuple[ChosenRelation, OfferedRelation]]]:
        """The relations with a score above 0 that state the triple, best first."""
        if not offered:
            return []
        request = RelationsRequest(
            triple=entry.triple,
            known=list(known),
            known_is="subject" if entry.from_subject else "object",
            relations=list(offered),
            keep=keep,
        )
        chosen: SkillResult[RelationsReply] = yield SkillCall(RELATIONS, request, f"{place}/relations", span)
        self.note_failure(chosen)
        self.reserved_calls -= 1
        by_id = {relation.key: relation for relation in offered}
        choices = [] if chosen.reply is None else chosen.reply.relations
        return [(choice, by_id[choice.id, choice.direction]) for choice in choices if choice.score > 0]

    def _read_texts(
        self, entry: ScheduledTriple, known: Sequence[AnswerValue], silent: TripleFacts, place: str, span: UUID
    ) -> Generator[Move, Any, TripleFacts]:
        """Complete a triple that the graph does not state from articles and pages, if the budget has room for it."""
        if not self._sources:
            return silent
        if self._has_graph:
            cost = CallBudget(1, 2 * len(self._sources))
            reading = Fan("searches of texts", 1, cost, CallBudget(self.reserved_calls, 0), least=0)
            if not (yield from fit_to_budget(self._task, reading, f"{place}/budget", span)):
                self.unread.append(place)
                return silent
        self.expected_calls += 1
        self.reserved_calls += self._has_graph
        query = _write_query(entry, known)
        passages = yield from self._retriever.retrieve(self._sources, query, f"{place}/texts", span)
        facts = yield from self._ask_to_complete(entry, known, passages, place, span)
        self.reserved_calls -= 1
        return facts or TripleFacts(from_graph=False)

    def look_again(self, triple: OpenTriple, known: Sequence[AnswerValue]) -> Generator[Move, Any, TripleFacts]:
        """Complete a triple from its facts and what a wider retrieval adds; its facts if that does not tell more."""
        entry, place, span = triple.entry, triple.place, triple.span
        former = self.completed[entry.number]
        if not known:
            return former
        sources = [*self._sources, *(["graph"] if self._has_graph else [])]
        wider = yield from self._retriever.retrieve_wider(sources, _write_query(entry, known), place, span)
        passages = distinct_passages([*former.passages, *wider])
        facts = yield from self._ask_to_complete(entry, known, passages, place, span)
        return former if facts is None else replace(facts, relations=former.relations)

    def _ask_to_complete(
        self,
        entry: ScheduledTriple,
        known: Sequence[AnswerValue],
        passages: Sequence[SourcePassage],
        place: str,
        span: UUID,
    ) -> Generator[Move, Any, TripleFacts | None]:
        """The facts that passages state; None if they do not tell."""
        self.completions += 1
        request = CompleteRequest(
            triple=entry.triple, known=list(known), from_subject=entry.from_subject, passages=list(passages)
        )
        completed = yield from self._retriever.ask_for_answers(SkillCall(COMPLETE, request, f"{place}/complete", span))
        self.note_failure(completed)
        if completed.reply is None or completed.reply.unknown:
            return None
        support = set(completed.reply.support)
        shown = [passage for passage in passages if passage.id in support]
        return TripleFacts(list(completed.reply.answers), shown, from_graph=False)


def close_triple(
    span: UUID,
    entry: ScheduledTriple,
    facts: TripleFacts,
    values: Mapping[str, Sequence[AnswerValue]],
    chains: Sequence[dict[str, Any]] | None = None,
) -> StepCompletion:
    """Completes the span of a triple with its values, facts and chains."""
    observation = "; ".join(f"{end}: {format_values(bound)}" for end, bound in values.items())
    data = {
        "triple": entry.triple.model_dump(),
        "values": {end: [value.model_dump(exclude_none=True) for value in bound] for end, bound in values.items()},
        "relations": [relation.model_dump() for relation in facts.relations],
        "facts": [passage.id for passage in facts.passages],
        "from_graph": facts.from_graph,
        **({} if chains is None else {"chains": list(chains)}),
        **({"left_out": facts.left_out} if facts.left_out else {}),
    }
    return StepCompletion(span, observation or format_values(facts.pairs), data)


def _write_query(entry: ScheduledTriple, known: Sequence[AnswerValue]) -> RetrievalQuery:
    """What a triple asks of its known values, in words."""
    relation, values = entry.triple.relation, format_values(known)
    return RetrievalQuery(f"{relation} of {values}" if entry.from_subject else f"{relation} {values}", known, relation)


def guess_relations(entry: ScheduledTriple, offered: Sequence[OfferedRelation]) -> list[OfferedRelation]:
    """The offered relations that the words of the triple name: child for daughter, father and mother for parent."""
    words = entry.triple.relation.strip().casefold()
    names = {words, *kinship.narrower_relations(words)}
    if kinship.relates_people(words) and len(steps := kinship.basic_path(words).steps) == 1:
        names |= {*steps}
    direction = "head" if entry.from_subject else "tail"
    return [relation for relation in offered if relation.direction == direction and relation.label.casefold() in names]
